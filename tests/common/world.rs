//! A whole world: Dovecot and Postfix behind the gateway, the sink outside.

use super::dovecot::{Dovecot, USERS};
use super::eventually;
use super::gateway::{Gateway, Upstream};
use super::http::Browser;
use super::imap::Imap;
use super::postfix::Postfix;
use super::sink::Sink;
use super::smtp::Smtp;

/// The PIN of both approvers.
pub(crate) const PIN: &str = "271828";
/// Every lane's mailbox in the preset `folders`; INBOX shows what no lane took.
pub(crate) const LANES: [&str; 5] = ["Lanes/Push", "Lanes/Meeting", "Lanes/Queue", "Lanes/Info", "Lanes/Silent"];

/// What an account signs in with.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) address: String,
    pub(crate) person: String,
    pub(crate) agent: String,
}

/// All of it. Fields are dropped in this order: the gateway first.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) gateway: Gateway,
    /// Alice's and Bob's submission server, unless it is the sink itself.
    pub(crate) postfix: Option<Postfix>,
    pub(crate) dovecot: Dovecot,
    pub(crate) sink: Sink,
    pub(crate) alice: Keys,
    pub(crate) bob: Keys,
}

impl World {
    /// Starts everything. Alice's provider is reached over TLS (implicit for
    /// IMAP, STARTTLS for submission), Bob's without.
    #[track_caller]
    pub(crate) fn start() -> World {
        World::with_preset("folders")
    }

    #[track_caller]
    pub(crate) fn with_preset(preset: &str) -> World {
        World::build(preset, true)
    }

    /// Without Postfix: the sink itself is the submission server, so that a
    /// test decides what it answers.
    #[track_caller]
    pub(crate) fn with_the_sink_as_provider() -> World {
        World::build("folders", false)
    }

    #[track_caller]
    fn build(preset: &str, with_postfix: bool) -> World {
        let sink = Sink::start();
        let dovecot = Dovecot::start();
        let postfix = with_postfix.then(|| Postfix::start(&dovecot, sink.port));
        let submission = postfix.as_ref().map(|p| p.submission);
        let [(alice, alice_password), (bob, bob_password)] = USERS;
        let first = Upstream {
            user: alice,
            password: alice_password,
            imap: (dovecot.imaps, "implicit"),
            smtp: submission.map_or((sink.port, "none"), |port| (port, "starttls")),
            ca: Some(&dovecot.authority.ca),
        };
        let second = Upstream {
            user: bob,
            password: bob_password,
            imap: (dovecot.imap, "none"),
            smtp: (submission.unwrap_or(sink.port), "none"),
            ca: None,
        };
        let rest = format!("[lanes]\npreset = \"{preset}\"\n\n{}{}", first.toml(), second.toml());
        let gateway = Gateway::spawn(&rest);
        let keys = |user: &str| {
            let address = format!("{user}@example.test");
            gateway.set_pin(&address, PIN);
            let key = |role| gateway.add_key(&address, role, "test");
            let (person, agent) = (key("person"), key("agent"));
            Keys { address, person, agent }
        };
        let (alice, bob) = (keys(alice), keys(bob));
        World { gateway, postfix, dovecot, sink, alice, bob }
    }

    /// An IMAP session of an account's person.
    #[track_caller]
    pub(crate) fn person(&self, keys: &Keys) -> Imap {
        Imap::login(self.gateway.imap, &keys.address, &keys.person)
    }

    /// An IMAP session of an account's agent.
    #[track_caller]
    pub(crate) fn agent(&self, keys: &Keys) -> Imap {
        Imap::login(self.gateway.imap, &keys.address, &keys.agent)
    }

    /// An SMTP session with a key of an account.
    #[track_caller]
    pub(crate) fn smtp(&self, keys: &Keys, key: &str) -> Smtp {
        Smtp::sign_in(self.gateway.smtp, &keys.address, key)
    }

    /// A browser in which an account's approver is signed in.
    #[track_caller]
    pub(crate) fn approver(&self, keys: &Keys) -> Browser {
        self.gateway.approver(&keys.address, PIN)
    }

    /// Has the agent submit a message; the id of its hold.
    #[track_caller]
    pub(crate) fn hold(&self, keys: &Keys, to: &[&str], octets: &[u8]) -> String {
        let reply = self.smtp(keys, &keys.agent).submit(&keys.address, to, octets);
        held_id(&reply)
    }

    /// Waits until a message is in exactly one lane mailbox (or INBOX), and
    /// leaves it selected; the mailbox and the UID.
    #[track_caller]
    pub(crate) fn lane_of(&self, session: &mut Imap, id: &str) -> (String, u32) {
        eventually(&format!("{id} to be in a lane"), || {
            let mut found = Vec::new();
            for mailbox in LANES.iter().chain(&["INBOX"]) {
                session.ok(&format!("SELECT \"{mailbox}\""));
                found.extend(session.find(id).into_iter().map(|uid| ((*mailbox).to_owned(), uid)));
            }
            assert!(found.len() <= 1, "{id} is in several lanes: {found:?}");
            let (mailbox, uid) = found.pop()?;
            session.ok(&format!("SELECT \"{mailbox}\""));
            Some((mailbox, uid))
        })
    }
}

/// The id in `250 2.0.0 held for approval as ID`.
#[track_caller]
pub(crate) fn held_id(reply: &str) -> String {
    let id = reply.strip_prefix("250 2.0.0 held for approval as ");
    id.unwrap_or_else(|| panic!("not held but: {reply}")).trim().to_owned()
}
