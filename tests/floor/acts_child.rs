//! The process that is killed while it removes messages and puts copies into
//! Sent: a whole gateway without faces, before Dovecot and Postfix.
//!
//! Each run has mailboxes of its own, named after its folder, and its own
//! messages in INBOX. Like the other child it writes down what was told.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tollgate::account::{AccountId, KeyId, Role};
use tollgate::config::Provider;
use tollgate::floor::action::Action;
use tollgate::floor::deletion::{Act, Deletion, SCHEMA, Victim};
use tollgate::floor::envelope::{BodyType, Envelope, ForwardPath};
use tollgate::floor::hold::Reason;
use tollgate::floor::submission::State;
use tollgate::gateway::Gateway;
use tollgate::imap::mirror::Health;
use tollgate::imap::parking::{Progress, progress_key};
use tollgate::outbox::{Hold, HoldId, Intake};
use tollgate::store::{StoreError, Table, get_json, read};

use crate::child::{TOLD, load};
use crate::common::dovecot::USERS;
use crate::common::imap::Imap;

/// Removes and sends, from an empty folder.
pub(crate) const ACTS: &str = "acts";
/// What a start does after a crash; then a person has what is unknown held
/// again, and approves it.
pub(crate) const ACTS_AGAIN: &str = "acts-again";
/// What is removed, and how.
pub(crate) const KINDS: [&str; 4] = ["expunge", "move", "inbox", "mailbox"];
/// Messages of each kind; those with an odd number are to be removed.
pub(crate) const MESSAGES: usize = 4;
/// What the agent sends.
pub(crate) const MAIL: &str = "mail";
const APPROVER: &str = "owner";
/// How long one step may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Names a run: its mailboxes, and the Message-IDs of its messages.
pub(crate) fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap().to_string_lossy().into_owned()
}

/// The mailbox of a kind of removal.
pub(crate) fn mailbox(run: &str, kind: &str) -> String {
    if kind == "inbox" { "INBOX".to_owned() } else { format!("{run}-{kind}") }
}

/// Where `move` moves to.
pub(crate) fn away(run: &str) -> String {
    format!("{run}-away")
}

/// The Message-ID of a message.
pub(crate) fn message_id(run: &str, kind: &str, n: usize) -> String {
    format!("{kind}.{n}.{run}@acts.example.test")
}

/// Whether a message is to be removed.
pub(crate) fn is_victim(kind: &str, n: usize) -> bool {
    // With a mailbox goes all that is in it.
    kind == "mailbox" || n % 2 == 1
}

/// A session at the provider.
pub(crate) fn direct(folder: &Path) -> Imap {
    let config = load(folder);
    let Provider::Network(network) = &config.accounts[0].provider else { panic!("a network account") };
    let (user, password) = USERS[0];
    Imap::login(network.imap.port, user, password)
}

/// Makes a mailbox. Of a name that nobody else has Dovecot sometimes says, with
/// other sessions listing meanwhile, that it exists already: it made it.
fn make(imap: &mut Imap, name: &str) {
    let answer = imap.command(&format!("CREATE {name}")).status;
    assert!(answer.starts_with("OK") || answer.starts_with("NO [ALREADYEXISTS]"), "CREATE {name}: {answer}");
}

/// The mailboxes, with what is in them; of each kind the list to be removed.
fn fill(folder: &Path) -> Vec<(String, Deletion)> {
    let (run, mut imap) = (name_of(folder), direct(folder));
    make(&mut imap, &away(&run));
    let mut lists = Vec::new();
    for kind in KINDS {
        let mailbox = mailbox(&run, kind);
        if kind != "inbox" {
            make(&mut imap, &mailbox);
        }
        for n in 0..MESSAGES {
            let id = message_id(&run, kind, n);
            let octets =
                format!("From: ann@example.com\r\nSubject: {kind} {n}\r\nMessage-ID: <{id}>\r\n\r\n{id} {n}\r\n");
            assert!(imap.append(&mailbox, "", octets.as_bytes()).status.starts_with("OK"));
        }
        let opened = imap.ok(&format!("EXAMINE {mailbox}"));
        let uidvalidity = opened.untagged.iter().find_map(|r| r.number("UIDVALIDITY")).unwrap();
        let mut messages: Vec<Victim> = (0..MESSAGES)
            .filter(|n| is_victim(kind, *n))
            .map(|n| {
                let [uid] = imap.find(&message_id(&run, kind, n))[..] else { panic!("{kind} {n}") };
                let octets = imap.body(uid);
                let (sha256, length) = (Sha256::digest(&octets).into(), octets.len() as u64);
                Victim { uid, sha256, length, subject: None, from: None, date: None }
            })
            .collect();
        messages.sort_by_key(|m| m.uid);
        let act = match kind {
            "move" => Act::Move { to: away(&run) },
            "mailbox" => Act::DeleteMailbox,
            _ => Act::Expunge,
        };
        let deletion = Deletion {
            schema: SCHEMA,
            account: "alice@example.test".to_owned(),
            host: "localhost".to_owned(),
            login: USERS[0].0.to_owned(),
            act,
            mailbox,
            uidvalidity: u32::try_from(uidvalidity).unwrap(),
            messages,
        };
        lists.push((kind.to_owned(), deletion));
    }
    imap.ok("LOGOUT");
    lists
}

struct Child {
    gateway: Gateway,
    told: File,
    folder: PathBuf,
    account: AccountId,
}

impl Child {
    async fn start(folder: PathBuf) -> Child {
        let told = File::options().create(true).append(true).open(folder.join(TOLD)).unwrap();
        let gateway = Gateway::start(load(&folder)).await.unwrap();
        let account = gateway.core().accounts.ids().remove(0);
        let mut health = gateway.mirror(&account).unwrap().health();
        tokio::time::timeout(PATIENCE, health.wait_for(|h| *h == Health::Live)).await.unwrap().unwrap();
        Child { gateway, told, folder, account }
    }

    fn tell(&mut self, line: &str) {
        self.told.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn holds(&self) -> Vec<Hold> {
        self.gateway.core().outbox.list(&self.account).unwrap()
    }

    async fn until(&self, what: &str, mut done: impl FnMut(&Child) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(began.elapsed() < PATIENCE, "never {what}: {:?}", self.holds());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Approves, and waits for the end of it.
    async fn carry_out(&mut self, id: &HoldId) {
        let outbox = self.gateway.core().outbox.clone();
        let shown = outbox.show(&self.account, id, APPROVER).await.unwrap();
        let hash = shown.hash.to_string();
        outbox.approve(&self.account, id, &shown.payload.nonce, &hash, APPROVER).await.unwrap();
        self.tell(&format!("state {id} approved"));
        let state = |c: &Child| c.holds().into_iter().find(|h| h.id == *id).unwrap().state;
        self.until("carried out", |c| state(c).is_final()).await;
        let state = state(self);
        self.tell(&format!("state {id} {state}"));
    }

    async fn key(&self) -> KeyId {
        let accounts = &self.gateway.core().accounts;
        accounts.add_key(&self.account, Role::Agent, "agent").await.unwrap();
        accounts.list_keys(Some(&self.account)).remove(0).id
    }

    async fn send(&mut self, key: KeyId) {
        let id = message_id(&name_of(&self.folder), MAIL, 0);
        let account = &self.account;
        let octets = format!("From: {account}\r\nTo: ann@example.com\r\nMessage-ID: <{id}>\r\n\r\nHello.\r\n");
        let core = self.gateway.core().clone();
        let mut writer = core.store.blobs().writer();
        writer.write(octets.as_bytes()).unwrap();
        let (blob, length) = writer.finish().await.unwrap();
        let paths = vec![ForwardPath::parse("ann@example.com").unwrap()];
        let intake = Intake {
            account: self.account.clone(),
            key,
            role: Role::Agent,
            envelope: Envelope::new(self.account.as_str(), paths, BodyType::SevenBit, false).unwrap(),
            blob,
            row: None,
            length,
            message_id: Some(format!("<{id}>")),
            subject: None,
            reason: Reason::AgentKey,
            action: Action::SendEmail,
            lineage: None,
        };
        let hold = core.outbox.hold(intake).await.unwrap();
        self.tell(&format!("held {hold} {MAIL} {id}"));
        self.carry_out(&hold).await;
    }

    async fn until_copied(&self) {
        let store = self.gateway.core().store.clone();
        let done = |hold: &Hold| {
            let key = progress_key(&hold.id);
            let row: Option<Progress> = read::<_, StoreError>(&*store, |r| get_json(r, Table::Meta, &key)).unwrap();
            row.is_some_and(|p| p.done)
        };
        let due = |h: &Hold| h.action.sends() && h.state == State::Sent;
        self.until("copied", |c| c.holds().iter().filter(|h| due(h)).all(&done)).await;
    }

    async fn act(&mut self, lists: Vec<(String, Deletion)>) {
        let key = self.key().await;
        for (kind, list) in lists {
            let hold = self.gateway.core().outbox.hold_deletion(&key, &list).await.unwrap();
            self.tell(&format!("held {hold} {kind} -"));
            self.carry_out(&hold).await;
        }
        self.send(key).await;
        self.until_copied().await;
    }

    async fn again(&mut self) {
        self.until("quiet", |c| c.holds().iter().all(|h| h.state.is_final() || h.state == State::Held)).await;
        let unknown = |h: &&Hold| h.state == State::Unknown && !h.action.sends() && h.again.is_none();
        let unknown: Vec<HoldId> = self.holds().iter().filter(unknown).map(|h| h.id.clone()).collect();
        for id in unknown {
            let again = self.gateway.core().outbox.resend_unknown(&self.account, &id, APPROVER).await.unwrap();
            self.tell(&format!("held {again} again-{id} -"));
            self.carry_out(&again).await;
        }
        self.until_copied().await;
    }
}

/// The child's work in this mode.
pub(crate) async fn work(folder: PathBuf, mode: &str) {
    let lists = match mode {
        ACTS => {
            let folder = folder.clone();
            tokio::task::spawn_blocking(move || fill(&folder)).await.unwrap()
        }
        _ => Vec::new(),
    };
    let mut child = Child::start(folder).await;
    match mode {
        ACTS => child.act(lists).await,
        _ => child.again().await,
    }
    child.gateway.shutdown().await;
}
