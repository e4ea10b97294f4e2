//! Holding, approving and dispatching submissions.
//!
//! Promises: what [`Outbox::hold`] returned an id for is on disk; every
//! transition is one atomic compare-and-set together with its ledger entry;
//! nothing is dispatched but the approved octets, and never twice by itself;
//! what a restart finds under way is `unknown`. Doesn't know: who may ask
//! for what (the faces check that), how a page proves an approver.
//!
//! What counts, and when (a crash before it leaves the state in front of it):
//!
//! | instant | state on disk |
//! |---|---|
//! | the hold's transaction is durable, then the client's 250 | `held` |
//! | the approving transaction, receipt and ledger entry included | `approved` |
//! | the claiming transaction, before the provider is called | `sending` |
//! | the transaction after the provider's final reply | `sent`, `failed`, `approved` |
//! | a start that finds `sending` | `unknown` |
//! | a start that finds a restored backup (see [`witness`]) | `unknown`, all that was open |

mod approver;
mod decide;
pub mod deletion;
mod dispatch;
pub mod forward;
mod hold;
mod identity;
mod lease;
pub mod lineage;
mod listing;
mod record;
mod recover;
mod route;
mod run;
pub mod strict;
mod witness;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tokio::sync::{Notify, broadcast};

pub use approver::{CHANGES_SHOWN_SECONDS, Proof};
pub use hold::{ApproveError, Denial, Hold, HoldError, HoldEvent, HoldId, Intake, RevokeError, Shown};
pub use identity::IdentityError;
pub use lease::LEASE_SECONDS;
pub use listing::Listed;
pub use recover::Found;
pub use route::{Route, RouteError};

use crate::account::{AccountId, Accounts};
use crate::config::{Config, Endpoint};
use crate::floor::identity::VerifyingKey;
use crate::floor::ledger::{Entry, LedgerHead};
use crate::floor::receipt::Receipt;
use crate::store::blob::{BlobId, BlobReader};
use crate::store::{self, Reader, Store, StoreError, Table, Writer, failpoint};
use crate::upstream::smtp::{TIMEOUTS, Timeouts};
use identity::Identity;
use lease::Dispatcher;
use witness::Witness;

/// Name of the file that holds the signing key, in the state folder.
pub const IDENTITY_FILE: &str = "identity.key";
/// Events that a slow listener may fall behind.
const EVENT_BACKLOG: usize = 256;
/// Pairs read from the store at once.
const SCAN_PAGE: usize = 256;

/// Minutes from a refusal for now to the next attempt; the last one repeats
/// until the receipt expires.
pub const RETRY_MINUTES: [i64; 6] = [1, 2, 5, 15, 30, 60];
/// How long a payload that was shown can be approved, in seconds.
pub const SHOWN_TTL_SECONDS: i64 = 3600;
/// Locks that keep the events of one hold in order; holds share them.
const ORDER_LOCKS: usize = 64;
/// Most payloads of one hold that can be approved at a time (open pages).
pub const MAX_SHOWN: usize = 16;

/// What tests set otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Tuning {
    /// How long the provider may take.
    pub timeouts: Timeouts,
    /// Seconds from a refusal for now to the next attempt.
    pub retry_seconds: fn(attempt: u32) -> i64,
    /// Seconds since 1970 (UTC).
    pub clock: fn() -> i64,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning { timeouts: TIMEOUTS, retry_seconds, clock }
    }
}

/// The delay after attempt number `attempt`, from 1.
fn retry_seconds(attempt: u32) -> i64 {
    let place = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    RETRY_MINUTES[place.min(RETRY_MINUTES.len() - 1)] * 60
}

fn clock() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}

/// The outbox of every account.
pub struct Outbox {
    config: Arc<Config>,
    store: Arc<dyn Store>,
    accounts: Arc<Accounts>,
    identity: RwLock<Identity>,
    rotating: tokio::sync::Mutex<()>,
    dispatcher: Dispatcher,
    witness: Witness,
    /// Whether what a start finds was dealt with.
    recovered: tokio::sync::Mutex<bool>,
    embedded: OnceLock<Endpoint>,
    executor: OnceLock<deletion::Executor>,
    events: broadcast::Sender<HoldEvent>,
    /// Held from before a transition until it is announced, by hold id: the
    /// events of one hold come in the order of its transitions.
    order: [tokio::sync::Mutex<()>; ORDER_LOCKS],
    wake: Notify,
    tuning: Tuning,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("gateway_id", &self.gateway_id()).finish_non_exhaustive()
    }
}

impl Outbox {
    /// Loads the gateway's identity from the state folder, or makes it. The
    /// folder exists: the store was opened in it.
    pub fn new(config: Arc<Config>, store: Arc<dyn Store>, accounts: Arc<Accounts>) -> Result<Outbox, IdentityError> {
        Self::tuned(config, store, accounts, Tuning::default())
    }

    /// As [`Outbox::new`], with other times.
    pub fn tuned(
        config: Arc<Config>,
        store: Arc<dyn Store>,
        accounts: Arc<Accounts>,
        tuning: Tuning,
    ) -> Result<Outbox, IdentityError> {
        let identity = Identity::load_or_make(&config.state_dir.join(IDENTITY_FILE), store.disk())?;
        let dispatcher = Dispatcher::new().map_err(|e| IdentityError::Random(e.to_string()))?;
        let witness = Witness::at(&config.witness_file, store.disk().clone());
        let (events, _) = broadcast::channel(EVENT_BACKLOG);
        let (embedded, executor, wake) = (OnceLock::new(), OnceLock::new(), Notify::new());
        let order = std::array::from_fn(|_| tokio::sync::Mutex::new(()));
        Ok(Outbox {
            config,
            store,
            accounts,
            identity: RwLock::new(identity),
            rotating: tokio::sync::Mutex::default(),
            dispatcher,
            witness,
            recovered: tokio::sync::Mutex::default(),
            embedded,
            executor,
            events,
            order,
            wake,
            tuning,
        })
    }

    /// Names this gateway in payloads.
    pub fn gateway_id(&self) -> String {
        self.identity().gateway_id
    }

    /// The keys that receipts of this gateway verify under, the current one
    /// first.
    pub fn verifying_keys(&self) -> Vec<VerifyingKey> {
        self.identity().verifying_keys()
    }

    fn identity(&self) -> Identity {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_identity(&self, new: Identity) {
        *self.identity.write().unwrap_or_else(PoisonError::into_inner) = new;
    }

    fn identity_path(&self) -> PathBuf {
        self.config.state_dir.join(IDENTITY_FILE)
    }

    /// Every transition from now on.
    pub fn events(&self) -> broadcast::Receiver<HoldEvent> {
        self.events.subscribe()
    }

    /// Wakes the dispatcher.
    pub fn kick(&self) {
        self.wake.notify_one();
    }

    /// An account's holds, ended ones too, oldest first; one whose row can't
    /// be read is only in the log.
    pub fn list(&self, account: &AccountId) -> Result<Vec<Hold>, HoldError> {
        store::read(self.store.as_ref(), |r| record::of_account(r, account))
    }

    /// One hold of an account; `None` for another account's.
    pub fn get(&self, account: &AccountId, id: &HoldId) -> Result<Option<Hold>, HoldError> {
        let hold = store::read(self.store.as_ref(), |r| record::load(r, id))?;
        Ok(hold.filter(|hold| hold.account == *account))
    }

    /// The octets of a hold.
    pub fn open(&self, hold: &Hold) -> Result<BlobReader, HoldError> {
        Ok(self.store.blobs().open(&hold.blob)?)
    }

    /// The receipt of a hold that was approved.
    pub fn receipt(&self, id: &HoldId) -> Result<Option<Receipt>, HoldError> {
        let row = store::read(self.store.as_ref(), |r| record::receipt(r, id))?;
        Ok(row.map(|row| row.receipt))
    }

    /// Up to `limit` ledger entries from number `from` on.
    pub fn ledger(&self, from: u64, limit: usize) -> Result<Vec<Entry>, HoldError> {
        store::read(self.store.as_ref(), |r| {
            let rows = r.scan(Table::Ledger, b"", &from.to_be_bytes(), limit)?;
            let entries: Result<Vec<Entry>, StoreError> =
                rows.iter().map(|(_, value)| store::from_json(Table::Ledger, value)).collect();
            Ok(entries?)
        })
    }

    /// The whole ledger.
    pub fn whole_ledger(&self) -> Result<Vec<Entry>, HoldError> {
        let mut all: Vec<Entry> = Vec::new();
        loop {
            let from = all.last().map_or(0, |e| e.number.saturating_add(1));
            let page = self.ledger(from, SCAN_PAGE)?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    }

    /// The last entry's number and hash.
    pub fn ledger_head(&self) -> Result<Option<LedgerHead>, HoldError> {
        let last = store::read(self.store.as_ref(), |r| -> Result<_, HoldError> { Ok(record::last_entry(r)?) })?;
        Ok(last.map(|entry| entry.head()))
    }

    /// The octets that holds name; at start, all others may be swept.
    /// [`StoreError::Damaged`] where a hold can't be read.
    pub fn live_blobs(&self) -> Result<HashSet<BlobId>, StoreError> {
        store::read(self.store.as_ref(), |r| {
            let mut live = HashSet::new();
            record::each(r, |hold| {
                live.insert(hold.blob);
            })?;
            Ok(live)
        })
    }

    /// The time that counts: the later of the clock and the last entry's.
    fn now(&self, r: &(impl Reader + ?Sized)) -> Result<i64, StoreError> {
        record::now(r, (self.tuning.clock)())
    }

    /// Held by whoever changes a hold, until the change is announced.
    async fn in_order(&self, id: &HoldId) -> tokio::sync::MutexGuard<'_, ()> {
        let place = id.as_str().bytes().fold(0, |sum: usize, octet| sum.wrapping_mul(31).wrapping_add(octet.into()));
        self.order[place % ORDER_LOCKS].lock().await
    }

    /// One durable transaction; `doing` names it among the failpoints.
    async fn commit<T, E>(
        &self,
        doing: &'static str,
        work: impl FnMut(&mut dyn Writer) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        failpoint::within(doing, async {
            failpoint::hit_here("begin");
            let result = store::write(self.store.as_ref(), work).await;
            failpoint::hit_here("durable");
            result
        })
        .await
    }

    fn announce(&self, hold: &Hold) {
        // Nobody listening is fine.
        let _ = self.events.send(hold.event());
    }
}

#[cfg(test)]
mod lease_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod outcome_tests;
#[cfg(test)]
mod power_tests;
#[cfg(test)]
mod recover_tests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin_tests;
