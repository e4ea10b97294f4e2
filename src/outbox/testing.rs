//! For tests: an outbox of the embedded account before a scripted provider.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Hold, HoldError, HoldId, Intake, Outbox, Tuning};
use crate::account::{AccountId, Accounts};
use crate::account::{KeyId, Role, demo};
use crate::config::{Config, Endpoint, TlsMode};
use crate::floor::action::Action;
use crate::floor::deletion::{self, Act, Deletion, Victim};
use crate::floor::envelope::{BodyType, Envelope, ForwardPath};
use crate::floor::hold::Reason;
use crate::floor::submission::State;
use crate::store::blob::{MAX_IN_DATABASE, Settled};
use crate::store::disk::{Change, Disk, Watch};
use crate::store::redb::{DATABASE_FILE, RedbStore};
use crate::store::{self, Store, StoreError, Table, Writer};
use crate::upstream::smtp::TIMEOUTS;
use crate::upstream::smtp::scripted::Provider;

/// Short times: a silent provider is silent for 300 ms, a retry is due at once.
pub(crate) fn tuning() -> Tuning {
    let mut timeouts = TIMEOUTS;
    timeouts.data_end = Duration::from_millis(300);
    Tuning { timeouts, retry_seconds: |_| 0, ..Tuning::default() }
}

/// A message with every trap of a transfer in it.
pub(crate) const MESSAGE: &[u8] = b"From: demo@example.org\r\nSubject: x\r\n\r\n.dot\r\n..two\r\n.\r\nend\r\n";

/// One that is a file: too large for a row.
pub(crate) fn large() -> Vec<u8> {
    [MESSAGE, "somewhat longer\r\n".repeat(MAX_IN_DATABASE / 16).as_bytes()].concat()
}

/// From the sample account, without parameters.
pub(crate) fn envelope(to: &[&str]) -> Envelope {
    let paths = to.iter().map(|t| ForwardPath::parse(t).unwrap()).collect();
    Envelope::new("demo@example.org", paths, BodyType::SevenBit, false).unwrap()
}

/// A disk that is full while it is told to be.
#[derive(Debug, Default)]
pub(crate) struct Fills(pub(crate) AtomicBool);

impl Watch for Fills {
    fn room(&self) -> std::io::Result<()> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(std::io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn changed(&self, _: Change<'_>) {}
}

/// An outbox and what it stands on.
pub(crate) struct Bench {
    /// Removed with the bench.
    _folder: Option<tempfile::TempDir>,
    pub(crate) config: Arc<Config>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) account: AccountId,
}

impl Bench {
    /// The embedded account before `provider`; `change` alters the configuration.
    pub(crate) async fn new(provider: &Provider, tuning: Tuning, change: impl FnOnce(&mut Config)) -> Bench {
        Bench::at(provider.endpoint(TlsMode::None), tuning, change).await
    }

    /// Before a provider that is to be reached by STARTTLS.
    pub(crate) async fn over_tls(provider: &Provider, tuning: Tuning) -> Bench {
        Bench::at(provider.endpoint(TlsMode::StartTls), tuning, |_| {}).await
    }

    /// Before a port that nobody listens on.
    pub(crate) async fn elsewhere(tuning: Tuning) -> Bench {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        drop(taken);
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port, tls: TlsMode::None, ca: None };
        Bench::at(endpoint, tuning, |_| {}).await
    }

    async fn at(endpoint: Endpoint, tuning: Tuning, change: impl FnOnce(&mut Config)) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::embedded(folder.path());
        change(&mut config);
        let bench = Bench::on(config, endpoint, tuning, Disk::default()).await;
        Bench { _folder: Some(folder), ..bench }
    }

    /// On a disk that can be filled.
    pub(crate) async fn filling(provider: &Provider, fills: Arc<Fills>) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::embedded(folder.path());
        let bench = Bench::on(config, provider.endpoint(TlsMode::None), tuning(), Disk::watched(fills)).await;
        Bench { _folder: Some(folder), ..bench }
    }

    /// In a folder that the caller keeps.
    pub(crate) async fn in_folder(folder: &Path, provider: &Provider, tuning: Tuning) -> Bench {
        Bench::on(Config::embedded(folder), provider.endpoint(TlsMode::None), tuning, Disk::default()).await
    }

    /// As a process that came after would find it: a copy of the state.
    pub(crate) async fn reopened_at(self, folder: &Path, provider: &Provider) -> Bench {
        let state = folder.join("state");
        std::fs::create_dir(&state).unwrap();
        for name in [DATABASE_FILE, super::IDENTITY_FILE] {
            std::fs::copy(self.config.state_dir.join(name), state.join(name)).unwrap();
        }
        Bench::in_folder(folder, provider, tuning()).await
    }

    pub(crate) async fn on(config: Config, endpoint: Endpoint, tuning: Tuning, disk: Disk) -> Bench {
        let config = Arc::new(config);
        let store: Arc<dyn Store> = Arc::new(RedbStore::open_on(&config.state_dir, disk).unwrap());
        let accounts = Accounts::new(config.clone(), store.clone()).unwrap();
        accounts.ensure_demo_keys().await.unwrap();
        let outbox = Outbox::tuned(config.clone(), store.clone(), accounts.clone(), tuning).unwrap();
        outbox.set_embedded_submission(endpoint);
        let account = accounts.ids().remove(0);
        Bench { _folder: None, config, store, accounts, outbox: Arc::new(outbox), account }
    }

    /// The hold once it is in `state`; panics after five seconds.
    pub(crate) async fn wait_for(&self, id: &HoldId, state: State) -> Hold {
        for _ in 0..500 {
            let hold = self.outbox.get(&self.account, id).unwrap().unwrap();
            if hold.state == state {
                return hold;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never {state}: {:?}", self.outbox.get(&self.account, id));
    }

    /// The key of the sample account's agent.
    pub(crate) fn agent(&self) -> KeyId {
        self.accounts.authenticate(demo::ADDRESS, demo::AGENT_KEY).unwrap().key
    }

    /// One message of a mailbox, to be expunged.
    pub(crate) fn deletion(&self, mailbox: &str) -> Deletion {
        let victim = Victim { uid: 3, sha256: [1; 32], length: 9, subject: None, from: None, date: None };
        Deletion {
            schema: deletion::SCHEMA,
            account: self.account.to_string(),
            host: "imap.example.org".to_owned(),
            login: "demo".to_owned(),
            act: Act::Expunge,
            mailbox: mailbox.to_owned(),
            uidvalidity: 7,
            messages: vec![victim],
        }
    }

    /// Where the octets of a hold lie, if they are no row.
    pub(crate) fn file_of(&self, id: &HoldId) -> std::path::PathBuf {
        let name = self.hold(id).blob.to_string();
        self.config.state_dir.join("blobs").join(&name[..2]).join(name)
    }

    /// Puts other octets where those of a hold lie, or none.
    pub(crate) async fn swap(&self, id: &HoldId, octets: Option<Vec<u8>>) {
        let (blob, path) = (self.hold(id).blob, self.file_of(id));
        match (path.exists(), octets) {
            (true, Some(octets)) => std::fs::write(path, octets).unwrap(),
            (true, None) => std::fs::remove_file(path).unwrap(),
            (false, octets) => {
                let change = move |w: &mut dyn Writer| -> Result<(), StoreError> {
                    match &octets {
                        Some(octets) => w.put(Table::Octets, &blob.0, octets),
                        None => w.delete(Table::Octets, &blob.0),
                    }
                };
                store::write(self.store.as_ref(), change).await.unwrap();
            }
        }
    }

    /// Submits octets as a face does.
    pub(crate) async fn submit(&self, role: Role, envelope: Envelope, octets: &[u8]) -> Result<HoldId, HoldError> {
        let mut writer = self.store.blobs().writer();
        writer.write(octets)?;
        let Settled { id: blob, length, row } = writer.settle().await?;
        let intake = Intake {
            account: self.account.clone(),
            key: self.agent(),
            role,
            envelope,
            blob,
            row,
            length,
            message_id: None,
            subject: Some("x".to_owned()),
            reason: Reason::AgentKey,
            action: Action::SendEmail,
            lineage: None,
        };
        self.outbox.hold(intake).await
    }

    /// Submits [`MESSAGE`] and approves it.
    pub(crate) async fn approved(&self, envelope: Envelope, octets: &[u8]) -> HoldId {
        let id = self.submit(Role::Agent, envelope, octets).await.unwrap();
        self.approve(&id).await;
        id
    }

    /// The hold.
    pub(crate) fn hold(&self, id: &HoldId) -> Hold {
        self.outbox.get(&self.account, id).unwrap().unwrap()
    }

    /// One attempt, as the dispatcher makes it.
    pub(crate) async fn attempt(&self, id: &HoldId) -> Hold {
        let claimed = self.outbox.claim(&self.hold(id)).await.unwrap().expect("it can be claimed");
        self.outbox.begin_work(id);
        let outcome = self.outbox.send(&claimed).await;
        self.outbox.settle(&claimed, &outcome).await.unwrap();
        self.outbox.end_work(id);
        self.hold(id)
    }

    /// Shows and approves as the page does.
    pub(crate) async fn approve(&self, id: &HoldId) {
        let shown = self.outbox.show(&self.account, id, "owner").await.unwrap();
        let hash = shown.hash.to_string();
        self.outbox.approve(&self.account, id, &shown.payload.nonce, &hash, "owner").await.unwrap();
    }
}
