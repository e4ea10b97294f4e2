//! The providers, and a gateway before one of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::dovecot::Dovecot;
use crate::common::eventually;
use crate::common::gateway::{Gateway, Upstream};
use crate::common::imap::Imap;
use crate::common::sink::Sink;
use crate::courier::Courier;
use crate::cyrus::Cyrus;

/// The users of every provider, with their passwords.
pub(crate) const USERS: [(&str, &str); 1] = [("alice", "alicepw")];
/// Where another folder holds the unpacked providers.
const FOLDER: &str = "TOLLGATE_TEST_PROVIDERS";
/// The leaves of the lane mailboxes in the preset `folders`.
pub(crate) const LEAVES: [&str; 5] = ["Push", "Meeting", "Queue", "Info", "Silent"];
/// What Courier offers when nothing is configured, without its own logins.
const COURIER_ALL: &str =
    "IMAP4rev1 UIDPLUS CHILDREN NAMESPACE THREAD=ORDEREDSUBJECT THREAD=REFERENCES SORT QUOTA IDLE";

/// A provider, and how it is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Delimiter `/`, no prefix, with everything that it offers.
    Dovecot,
    /// Delimiter `.`, prefix `INBOX.`, with everything that it offers.
    Cyrus,
    /// The same without MOVE, UIDPLUS, IDLE and CONDSTORE.
    CyrusBare,
    /// Delimiter `.`, prefix `INBOX.`; no MOVE, as ever.
    Courier,
    /// The same without UIDPLUS and IDLE.
    CourierBare,
    /// With this mailbox, from which Courier sends what is put there.
    CourierOutbox(&'static str),
}

impl Kind {
    fn start(self) -> Provider {
        let server = match self {
            Kind::Dovecot => Server::Dovecot(Dovecot::start()),
            Kind::Cyrus => Server::Cyrus(Cyrus::start("")),
            Kind::CyrusBare => Server::Cyrus(Cyrus::start("MOVE UIDPLUS IDLE CONDSTORE QRESYNC")),
            Kind::Courier => Server::Courier(Courier::start(COURIER_ALL, &[])),
            Kind::CourierBare => Server::Courier(Courier::start("IMAP4rev1 CHILDREN NAMESPACE", &[])),
            Kind::CourierOutbox(leaf) => {
                let more = [("OUTBOX", leaf), ("HEADERFROM", "X-IMAP-Sender")];
                Server::Courier(Courier::start(COURIER_ALL, &more))
            }
        };
        Provider { server }
    }

    /// Its hierarchy delimiter.
    pub(crate) fn delimiter(self) -> char {
        if self == Kind::Dovecot { '/' } else { '.' }
    }

    /// Its personal prefix.
    pub(crate) fn prefix(self) -> &'static str {
        if self == Kind::Dovecot { "" } else { "INBOX." }
    }

    /// Whether the provider says where a message went.
    pub(crate) fn has_uidplus(self) -> bool {
        !matches!(self, Kind::CyrusBare | Kind::CourierBare)
    }

    /// What a mailbox is called there; `path` with slashes, from the top.
    pub(crate) fn name(self, path: &str) -> String {
        if path == "INBOX" {
            return path.to_owned();
        }
        format!("{}{}", self.prefix(), path.replace('/', &self.delimiter().to_string()))
    }
}

#[derive(Debug)]
enum Server {
    Dovecot(Dovecot),
    Cyrus(Cyrus),
    Courier(Courier),
}

/// A running provider.
#[derive(Debug)]
pub(crate) struct Provider {
    server: Server,
}

impl Provider {
    fn imap(&self) -> u16 {
        match &self.server {
            Server::Dovecot(d) => d.imap,
            Server::Cyrus(c) => c.imap,
            Server::Courier(c) => c.imap,
        }
    }

    /// A session without the gateway.
    #[track_caller]
    pub(crate) fn direct(&self) -> Imap {
        let [(user, password)] = USERS;
        Imap::login(self.imap(), user, password)
    }

    /// What Courier sent from its mailbox for that.
    #[track_caller]
    pub(crate) fn sent(&self) -> String {
        let Server::Courier(courier) = &self.server else { panic!("only Courier sends") };
        courier.sent()
    }

    /// Delivers as the provider's own mail server would.
    #[track_caller]
    pub(crate) fn deliver(&self, octets: &[u8]) {
        let [(user, _)] = USERS;
        match &self.server {
            Server::Dovecot(d) => d.deliver(user, "ann@example.com", octets),
            Server::Cyrus(c) => c.deliver(user, octets),
            Server::Courier(c) => c.deliver(user, octets),
        }
    }
}

/// One mailbox as it is at the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    subscribed: bool,
    /// The flags that it knows: keywords stay here after their last use.
    known: Vec<String>,
    /// UID, flags, octets.
    pub(crate) messages: Vec<(u64, Vec<String>, Vec<u8>)>,
}

/// All that the provider holds, by name.
#[track_caller]
pub(crate) fn holdings(direct: &mut Imap) -> BTreeMap<String, Held> {
    let subscribed: Vec<String> = direct.ok("LSUB \"\" \"*\"").listed().into_iter().map(|(_, n)| n).collect();
    let mut all = BTreeMap::new();
    for name in direct.mailboxes() {
        let selected = direct.ok(&format!("EXAMINE \"{name}\""));
        let told = selected.untagged.iter().find_map(|r| r.text.strip_prefix("* FLAGS (")).expect("FLAGS");
        let known = flags(told.trim_end_matches(')'));
        let answer = direct.ok("UID FETCH 1:* (UID FLAGS BODY.PEEK[])");
        let mut messages = Vec::new();
        for one in answer.fetched() {
            let told = one.text.split("FLAGS (").nth(1).and_then(|t| t.split(')').next()).expect("FLAGS");
            messages.push((one.number("UID").expect("UID"), flags(told), one.literals[0].clone()));
        }
        all.insert(name.clone(), Held { subscribed: subscribed.contains(&name), known, messages });
    }
    all
}

fn flags(told: &str) -> Vec<String> {
    let mut flags: Vec<String> = told.split_whitespace().map(str::to_owned).collect();
    flags.retain(|f| f != "\\Recent");
    flags.sort();
    flags
}

/// A gateway before a provider. Fields are dropped in this order.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) gateway: Gateway,
    pub(crate) provider: Provider,
    pub(crate) kind: Kind,
    _sink: Sink,
    pub(crate) address: String,
    key: String,
    agent_key: String,
}

impl World {
    #[track_caller]
    pub(crate) fn start(kind: Kind) -> World {
        World::with_preset(kind, "folders")
    }

    #[track_caller]
    pub(crate) fn with_preset(kind: Kind, preset: &str) -> World {
        let sink = Sink::start();
        let provider = kind.start();
        // Some make the mailboxes of a user at the first login.
        provider.direct().ok("LOGOUT");
        let [(user, password)] = USERS;
        let account = Upstream { user, password, imap: (provider.imap(), "none"), smtp: (sink.port, "none"), ca: None };
        let gateway = Gateway::spawn(&format!("[lanes]\npreset = \"{preset}\"\n\n{}", account.toml()));
        let address = format!("{user}@example.test");
        gateway.set_pin(&address, "271828");
        let key = gateway.add_key(&address, "person", "test");
        let agent_key = gateway.add_key(&address, "agent", "test");
        World { gateway, provider, kind, _sink: sink, address, key, agent_key }
    }

    /// A session of the person.
    #[track_caller]
    pub(crate) fn person(&self) -> Imap {
        Imap::login(self.gateway.imap, &self.address, &self.key)
    }

    /// A session of the agent.
    #[track_caller]
    pub(crate) fn agent(&self) -> Imap {
        Imap::login(self.gateway.imap, &self.address, &self.agent_key)
    }

    /// A session at the provider.
    #[track_caller]
    pub(crate) fn direct(&self) -> Imap {
        self.provider.direct()
    }

    /// What a mailbox is called.
    pub(crate) fn name(&self, path: &str) -> String {
        self.kind.name(path)
    }

    /// The names of the lane mailboxes.
    pub(crate) fn lanes(&self) -> Vec<String> {
        LEAVES.iter().map(|leaf| self.name(&format!("Lanes/{leaf}"))).collect()
    }

    /// Waits until a message is in exactly one lane mailbox (or INBOX), and
    /// leaves it selected; the mailbox and the UID.
    #[track_caller]
    pub(crate) fn lane_of(&self, session: &mut Imap, id: &str) -> (String, u32) {
        eventually(&format!("{id} to be in a lane"), || {
            let mut found = Vec::new();
            for mailbox in self.lanes().iter().chain(&["INBOX".to_owned()]) {
                session.ok(&format!("SELECT \"{mailbox}\""));
                found.extend(session.find(id).into_iter().map(|uid| (mailbox.clone(), uid)));
            }
            assert!(found.len() <= 1, "{id} is in several lanes: {found:?}");
            let (mailbox, uid) = found.pop()?;
            session.ok(&format!("SELECT \"{mailbox}\""));
            Some((mailbox, uid))
        })
    }

    /// A lane other than this one.
    pub(crate) fn other_lane(&self, lane: &str) -> String {
        self.lanes().into_iter().find(|l| l != lane && !l.ends_with("Push")).expect("several lanes")
    }
}

/// Where `tests/run` has unpacked a provider.
#[track_caller]
pub(crate) fn unpacked(name: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_BIN_EXE_tollgate")).ancestors().nth(2).map(|t| t.join("providers"));
    let folder = std::env::var_os(FOLDER).map(PathBuf::from).or_else(beside).expect("a target folder").join(name);
    assert!(folder.join("usr").is_dir(), "{} is missing; run `bash tests/run providers`", folder.display());
    folder
}

/// The numbers of the user `nobody`.
pub(crate) fn nobody() -> (u32, u32) {
    let nobody = nix::unistd::User::from_name("nobody").unwrap().expect("the user nobody");
    (nobody.uid.as_raw(), nobody.gid.as_raw())
}

/// Gives a folder and all in it to `nobody`.
pub(crate) fn chown_to_nobody(path: &Path) {
    let (uid, gid) = nobody();
    std::os::unix::fs::chown(path, Some(uid), Some(gid))
        .unwrap_or_else(|e| panic!("{}: {e}; run the tests as root", path.display()));
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            chown_to_nobody(&entry.unwrap().path());
        }
    }
}
