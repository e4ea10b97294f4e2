//! Durable state behind one trait: ordered tables with atomic transactions,
//! and content-addressed octets.
//!
//! Promises: a [`Store::write`] that returned `Ok` is on disk, whole; one that
//! returned `Err` left nothing. Reads see one snapshot. Work functions of one
//! store run one after another, so a read inside a work function and the
//! write that follows it are one compare-and-set. Doesn't know: what the
//! values mean; the domain modules own their encoding (JSON through
//! [`put_json`] and [`get_json`]).

pub mod blob;
pub mod disk;
pub mod failpoint;
mod overlay;
#[cfg(test)]
pub(crate) mod power;
pub mod redb;
pub mod scratch;
#[cfg(test)]
pub mod suite;

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A table of the store. Keys are byte strings in lexicographic order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Schema version, gateway id and other single values.
    Meta,
    /// Keys by key id (`account`).
    Key,
    /// Held submissions by hold id (`outbox`).
    Hold,
    /// Ledger entries by big-endian number (`outbox`, `floor`).
    Ledger,
    /// Receipts by receipt id (`outbox`).
    Receipt,
    /// Mirrored messages of the provider's INBOX (`imap`).
    Mirror,
    /// View entries (`imap`).
    View,
    /// Decision traces by decision id (`imap`).
    Decision,
    /// Indexes from other names to decision ids (`imap`).
    DecisionIndex,
    /// Local messages such as notices (`imap`).
    Local,
    /// Subscriptions of local mailboxes (`imap`).
    Subscription,
    /// Corrections and pins by people (`imap`).
    Correction,
    /// What is known of correspondents (`perceive`'s context, written by `imap` and `smtp`).
    Correspondent,
    /// Sign-ins, page nonces, the PIN's hash (`web`).
    Web,
    /// What agents drafted (`outbox`).
    Lineage,
    /// Small blobs by content address ([`blob`]).
    Octets,
}

/// Every table, in a fixed order.
pub const TABLES: [Table; 16] = [
    Table::Meta,
    Table::Key,
    Table::Hold,
    Table::Ledger,
    Table::Receipt,
    Table::Mirror,
    Table::View,
    Table::Decision,
    Table::DecisionIndex,
    Table::Local,
    Table::Subscription,
    Table::Correction,
    Table::Correspondent,
    Table::Web,
    Table::Lineage,
    Table::Octets,
];

/// The schema that this program writes, and the newest that it reads. 2: small
/// blobs are rows, which a program that knows 1 wouldn't find.
pub const SCHEMA: u64 = 2;
/// Key of the schema version in [`Table::Meta`], a JSON number.
pub const SCHEMA_KEY: &[u8] = b"schema";

/// Key of a decision's trace in [`Table::Decision`]. Addresses hold no NUL.
pub fn decision_key(account: &str, id: &str) -> Vec<u8> {
    [account.as_bytes(), b"\0", id.as_bytes()].concat()
}

/// Why the store could not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the state folder.
    #[error("another process uses the state folder {0}")]
    InUse(String),
    /// The state was written by a newer version.
    #[error("the state has schema {found}, this program knows up to {known}")]
    Newer {
        /// Schema found.
        found: u64,
        /// Newest schema that this program reads.
        known: u64,
    },
    /// No space is left for a write.
    #[error("no space left: {0}")]
    Full(String),
    /// A stored value can't be read back.
    #[error("damaged value in {table:?}: {why}")]
    Damaged {
        /// Table that holds it.
        table: Table,
        /// What is wrong.
        why: String,
    },
    /// Octets that were kept are there no longer.
    #[error("{0}")]
    Gone(String),
    /// The database or file system failed.
    #[error("{0}")]
    Failed(String),
}

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Sees pairs one after another until it breaks.
pub type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Reads inside one snapshot or transaction.
pub trait Reader {
    /// The value of `key`, where there is one.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;
    /// Shows `visit` the pairs whose keys start with `prefix` and are greater
    /// than or equal to `from` (an empty `from` means from the first),
    /// ascending, without copying them. `visit` must not read by this reader.
    fn visit(&self, table: Table, prefix: &[u8], from: &[u8], visit: Visit<'_>) -> Result<(), StoreError>;
    /// Up to `limit` of the pairs that [`Reader::visit`] shows.
    fn scan(&self, table: Table, prefix: &[u8], from: &[u8], limit: usize) -> Result<Vec<Pair>, StoreError>;
    /// The pair with the greatest key that starts with `prefix`.
    fn last(&self, table: Table, prefix: &[u8]) -> Result<Option<Pair>, StoreError>;
}

/// Reads and writes inside one transaction.
pub trait Writer: Reader {
    /// Sets `key` to `value`.
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError>;
    /// Removes `key` where it exists.
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError>;
}

/// Work of one transaction. It may be run more than once; only its last run
/// counts. `Err(())` leaves nothing behind (the caller keeps its own error).
pub type Work = Box<dyn FnMut(&mut dyn Writer) -> Result<(), ()> + Send>;

/// A future that can be sent between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an implementation provides. Callers use [`read()`] and [`write()`].
pub trait Store: Send + Sync + 'static {
    /// Runs `work` over one snapshot.
    fn read(&self, work: &mut dyn FnMut(&dyn Reader)) -> Result<(), StoreError>;
    /// Runs `work` in a transaction; resolves when it is durable, or to
    /// `Ok(false)` when the work said `Err(())`.
    fn write(&self, work: Work) -> BoxFuture<'_, Result<bool, StoreError>>;
    /// The content-addressed octets of this state.
    fn blobs(&self) -> &blob::Blobs;
    /// The way to the file system, for files beside the store.
    fn disk(&self) -> &disk::Disk;
    /// Names this opening where only one process at a time can have the store
    /// open: whoever names another opening has ended. `None` where several can.
    fn sole_opening(&self) -> Option<&str>;
}

/// Reads over one snapshot and returns what `work` returns.
pub fn read<T, E: From<StoreError>>(
    store: &dyn Store,
    mut work: impl FnMut(&dyn Reader) -> Result<T, E>,
) -> Result<T, E> {
    let mut out = None;
    store.read(&mut |r| out = Some(work(r)))?;
    out.unwrap_or_else(|| Err(StoreError::Failed("the store did not run the work".into()).into()))
}

/// Runs `work` as one durable transaction and returns what it returned; an
/// `Err` of the work rolls back.
pub async fn write<T, E>(
    store: &dyn Store,
    mut work: impl FnMut(&mut dyn Writer) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let out = Arc::new(Mutex::new(None));
    let slot = out.clone();
    store
        .write(Box::new(move |w| {
            let result = work(w);
            let verdict = if result.is_ok() { Ok(()) } else { Err(()) };
            *slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(result);
            verdict
        }))
        .await?;
    let result = out.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    result.unwrap_or_else(|| Err(StoreError::Failed("the store did not run the work".into()).into()))
}

/// Reads a JSON value.
pub fn get_json<T: DeserializeOwned>(
    r: &(impl Reader + ?Sized),
    table: Table,
    key: &[u8],
) -> Result<Option<T>, StoreError> {
    r.get(table, key)?.map(|v| from_json(table, &v)).transpose()
}

/// Decodes a JSON value of `table`.
pub fn from_json<T: DeserializeOwned>(table: Table, value: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(value).map_err(|e| StoreError::Damaged { table, why: e.to_string() })
}

/// Writes a JSON value.
pub fn put_json<T: Serialize>(
    w: &mut (impl Writer + ?Sized),
    table: Table,
    key: &[u8],
    value: &T,
) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec(value).map_err(|e| StoreError::Failed(e.to_string()))?;
    w.put(table, key, &bytes)
}
