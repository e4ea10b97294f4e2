//! The process that is killed: an outbox over a state folder of its own.
//!
//! It writes down what its caller would have been told (`told`), a line at a
//! time, only after it is true.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use tollgate::account::{AccountId, Accounts, KeyId, Role};
use tollgate::config::{self, Config, Env, Overrides};
use tollgate::floor::action::Action;
use tollgate::floor::envelope::{BodyType, Envelope, ForwardPath};
use tollgate::floor::hold::Reason;
use tollgate::floor::submission::State;
use tollgate::outbox::{Denial, Hold, HoldId, Intake, Outbox, Tuning};
use tollgate::store::blob::{MAX_IN_DATABASE, Settled};
use tollgate::store::redb::RedbStore;
use tollgate::store::{Store, failpoint};
use tollgate::upstream::smtp::TIMEOUTS;

use crate::acts_child::{self, ACTS, ACTS_AGAIN};
use crate::common::postfix::{DEFERRED, REFUSED};

/// The folder that the child works in.
pub(crate) const FOLDER: &str = "TOLLGATE_FLOOR_FOLDER";
/// What it does there: [`SCENARIO`], [`RECOVER`], [`ACTS`] or [`ACTS_AGAIN`].
pub(crate) const MODE: &str = "TOLLGATE_FLOOR_MODE";
/// Everything, from an empty folder.
pub(crate) const SCENARIO: &str = "scenario";
/// What a start does after a crash, and then what is due.
pub(crate) const RECOVER: &str = "recover";
/// What was told, one line each.
pub(crate) const TOLD: &str = "told";
/// The account behind Postfix.
pub(crate) const ALICE: &str = "alice@example.test";
/// The account whose provider falls silent after the dot.
pub(crate) const BOB: &str = "bob@example.test";
/// Name of the key that is revoked.
pub(crate) const DOOMED: &str = "doomed";
/// Messages that are files; the others are rows.
const LARGE: [&str; 3] = ["send", "refuse", "revoke"];
/// The one whose octets are durable before it is held, as a removal's list is.
const EARLY: &str = "later";
const APPROVER: &str = "owner";
const HOUR: i64 = 3600;
/// How long one step may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Seconds that the child's clock is ahead.
static AHEAD: AtomicI64 = AtomicI64::new(0);

fn clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap() + AHEAD.load(Ordering::SeqCst)
}

pub(crate) fn load(folder: &Path) -> Config {
    config::load(Some(&folder.join("gateway.toml")), &Env::new(), &Overrides::default()).unwrap()
}

/// A state folder, opened.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) outbox: Arc<Outbox>,
}

pub(crate) fn open(folder: &Path) -> Opened {
    let config = Arc::new(load(folder));
    let store: Arc<dyn Store> = Arc::new(RedbStore::open(&config.state_dir).unwrap());
    let accounts = Accounts::new(config.clone(), store.clone()).unwrap();
    let mut timeouts = TIMEOUTS;
    timeouts.data_end = Duration::from_secs(20);
    let tuning = Tuning { timeouts, retry_seconds: |_| HOUR, clock };
    let outbox = Outbox::tuned(config, store.clone(), accounts.clone(), tuning).unwrap();
    Opened { store, accounts, outbox: Arc::new(outbox) }
}

struct Child {
    opened: Opened,
    told: File,
    folder: PathBuf,
}

impl Child {
    fn tell(&mut self, line: &str) {
        self.told.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// As the gateway does at its start.
    async fn start(&self) {
        let live = self.opened.outbox.live_blobs().unwrap();
        failpoint::within("sweep", self.opened.store.blobs().sweep(&live)).await.unwrap();
        self.opened.outbox.recover().await.unwrap();
    }

    async fn key(&self, account: &AccountId) -> KeyId {
        let accounts = &self.opened.accounts;
        if accounts.list_keys(Some(account)).is_empty() {
            accounts.add_key(account, Role::Agent, "agent").await.unwrap();
        }
        accounts.list_keys(Some(account)).remove(0).id
    }

    async fn hold(&mut self, account: &str, to: &str, kind: &str) -> HoldId {
        let account = self.opened.accounts.find(account).unwrap();
        let key = self.key(&account).await;
        self.hold_of(account, key, to, kind).await
    }

    async fn hold_of(&mut self, account: AccountId, key: KeyId, to: &str, kind: &str) -> HoldId {
        let run = self.folder.file_name().unwrap().to_string_lossy().into_owned();
        let id = format!("{kind}.{run}.{}@tests.example.test", std::process::id());
        let mut octets =
            format!("From: {account}\r\nTo: {to}\r\nSubject: {kind}\r\nMessage-ID: <{id}>\r\n\r\n.{kind}\r\n.\r\n");
        if LARGE.contains(&kind) {
            octets.push_str(&".and more of it\r\n".repeat(MAX_IN_DATABASE / 16));
        }
        let settled = failpoint::within("intake", async {
            let mut writer = self.opened.store.blobs().writer();
            for part in octets.as_bytes().chunks(octets.len().div_ceil(3)) {
                writer.write(part).unwrap();
            }
            if kind == EARLY {
                let (id, length) = writer.finish().await.unwrap();
                return Settled { id, length, row: None };
            }
            writer.settle().await.unwrap()
        })
        .await;
        let paths = vec![ForwardPath::parse("ann@example.com").unwrap(), ForwardPath::parse(to).unwrap()];
        let envelope = Envelope::new(account.as_str(), paths, BodyType::SevenBit, false).unwrap();
        let intake = Intake {
            account,
            key,
            role: Role::Agent,
            envelope,
            blob: settled.id,
            row: settled.row,
            length: settled.length,
            message_id: None,
            subject: Some(kind.to_owned()),
            reason: Reason::AgentKey,
            action: Action::SendEmail,
            lineage: None,
        };
        let hold = self.opened.outbox.hold(intake).await.unwrap();
        self.tell(&format!("held {hold} {kind} {id}"));
        hold
    }

    fn find(&self, id: &HoldId) -> Hold {
        let get = |account| self.opened.outbox.get(&account, id).unwrap();
        self.opened.accounts.ids().into_iter().find_map(get).unwrap()
    }

    async fn wait(&mut self, id: &HoldId, what: &str, mut until: impl FnMut(&Hold) -> bool) {
        let began = std::time::Instant::now();
        loop {
            let hold = self.find(id);
            if until(&hold) {
                self.tell(&format!("state {id} {}", hold.state));
                return;
            }
            assert!(began.elapsed() < PATIENCE, "never {what}: {hold:?}");
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    async fn wait_for(&mut self, id: &HoldId, state: State) {
        self.wait(id, state.name(), |hold| hold.state == state).await;
    }

    async fn approve(&mut self, id: &HoldId) {
        let outbox = self.opened.outbox.clone();
        let account = self.find(id).account;
        let shown = outbox.show(&account, id, APPROVER).await.unwrap();
        outbox.approve(&account, id, &shown.payload.nonce, &shown.hash.to_string(), APPROVER).await.unwrap();
        self.tell(&format!("state {id} approved"));
    }

    async fn scenario(&mut self) {
        let outbox = self.opened.outbox.clone();
        let denied = self.hold(ALICE, "ben@example.net", "deny").await;
        let withdrawn = self.hold(ALICE, "ben@example.net", "withdraw").await;
        let expired = self.hold(ALICE, "ben@example.net", "expire").await;
        let sent = self.hold(ALICE, "ben@example.net", "send").await;
        let refused = self.hold(ALICE, REFUSED, "refuse").await;
        let later = self.hold(ALICE, DEFERRED, "later").await;
        let lost = self.hold(BOB, "ben@example.net", "lost").await;
        let (alice, bob) = (self.find(&sent).account, self.find(&lost).account);

        outbox.deny(&alice, &denied, "no", APPROVER).await.unwrap();
        self.tell(&format!("state {denied} denied"));
        outbox.withdraw(&alice, &withdrawn).await.unwrap();
        self.tell(&format!("state {withdrawn} withdrawn"));

        self.approve(&sent).await;
        self.wait_for(&sent, State::Sent).await;
        self.approve(&refused).await;
        self.wait_for(&refused, State::Failed).await;
        self.approve(&later).await;
        self.wait(&later, "tried", |h| h.state == State::Approved && h.attempt > 0).await;
        self.approve(&lost).await;
        self.wait_for(&lost, State::Unknown).await;
        let again = outbox.resend_unknown(&bob, &lost, APPROVER).await.unwrap();
        self.tell(&format!("held {again} again -"));
        outbox.deny(&bob, &again, "it arrived", APPROVER).await.unwrap();
        self.tell(&format!("state {again} denied"));

        outbox.rotate_key().await.unwrap();
        let rotated = self.hold(ALICE, "ben@example.net", "rotated").await;
        self.approve(&rotated).await;
        self.wait_for(&rotated, State::Sent).await;

        self.revoke().await;

        // The receipt of what is tried again ends, then the hold that waits.
        AHEAD.store(25 * HOUR, Ordering::SeqCst);
        outbox.kick();
        self.wait_for(&later, State::Failed).await;
        AHEAD.store(80 * HOUR, Ordering::SeqCst);
        outbox.kick();
        self.wait_for(&expired, State::Expired).await;
    }

    /// A key with two messages waiting: all of it ends in one act, or nothing.
    async fn revoke(&mut self) {
        let (accounts, outbox) = (self.opened.accounts.clone(), self.opened.outbox.clone());
        let account = accounts.find(ALICE).unwrap();
        let text = accounts.add_key(&account, Role::Agent, DOOMED).await.unwrap();
        let key = accounts.key_info(&text).unwrap().id;
        let mut holds = Vec::new();
        for _ in 0..2 {
            holds.push(self.hold_of(account.clone(), key.clone(), "ben@example.net", "revoke").await);
        }
        let denial = Denial { approver: APPROVER.to_owned(), reason: "no more".to_owned() };
        outbox.revoke_key(&key, Some(denial)).await.unwrap();
        for hold in holds {
            self.tell(&format!("state {hold} denied"));
        }
    }

    /// Until nothing is due or under way.
    async fn until_quiet(&self) {
        let began = std::time::Instant::now();
        let last = self.opened.outbox.whole_ledger().unwrap().last().map_or(0, |e| e.time);
        let due = |h: &Hold| match h.state {
            State::Sending => true,
            State::Approved => h.next_attempt.is_none_or(|at| at <= last.max(clock())),
            _ => false,
        };
        let busy = |account| self.opened.outbox.list(&account).unwrap().iter().any(due);
        while self.opened.accounts.ids().into_iter().any(busy) {
            assert!(began.elapsed() < PATIENCE, "it never gets quiet");
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
}

#[test]
#[ignore = "the child of another test"]
fn child_that_may_be_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let mode = std::env::var(MODE).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        if [ACTS, ACTS_AGAIN].contains(&mode.as_str()) {
            return acts_child::work(folder, &mode).await;
        }
        let told = File::options().create(true).append(true).open(folder.join(TOLD)).unwrap();
        let mut child = Child { opened: open(&folder), told, folder };
        child.start().await;
        let (stop, shutdown) = watch::channel(false);
        let running = tokio::spawn(child.opened.outbox.clone().run(shutdown));
        match mode.as_str() {
            SCENARIO => child.scenario().await,
            _ => child.until_quiet().await,
        }
        stop.send(true).unwrap();
        running.await.unwrap();
    });
}
