//! The default store: one redb file, one writer thread with group commit,
//! and files beside it for octets that are too many for a row.
//!
//! ```text
//! state/            0700
//!   lock            held as long as the store is open; names the process
//!   tollgate.redb   0600
//!   blobs/          see [`super::blob`]
//! ```
//!
//! The writer takes what is queued, up to [`MAX_BATCH`], runs each work over
//! an overlay of its own inside one transaction, and answers after the
//! commit has been synced: also to those that said no, because what they saw
//! may have been written by a neighbour in the batch.
//!
//! Promises: those of [`super`], with one limit that no database can lift: of
//! a commit whose last sync failed nobody knows whether it is on disk; it is
//! answered with the error, and the next work sees which it was. After a
//! failure the file is opened anew, so a full disk that is freed again needs
//! no restart. Work that is queued runs even when its caller stops waiting.
//! Doesn't know: what the values mean.

mod backend;
mod octets;

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{Read, Write};
use std::ops::Bound;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ::redb::backends::FileBackend;
use ::redb::{
    Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, TableError,
    WriteTransaction,
};
use tokio::sync::{mpsc, oneshot};

use super::blob::{self, Blobs, FILE_MODE, FOLDER_MODE, io_error};
use super::disk::{Change, Disk};
use super::failpoint;
use super::overlay::{Base, Changes, Overlay, Span};
use crate::floor::digest::to_hex;
use backend::OnDisk;
use octets::OctetRows;

use super::{BoxFuture, Reader, SCHEMA, SCHEMA_KEY, Store, StoreError, Table, Visit, Work, from_json};

/// Most work functions in one commit.
pub const MAX_BATCH: usize = 256;
/// Most work functions that wait; callers beyond wait to be queued.
pub const MAX_QUEUE: usize = 1024;
/// Memory for cached pages, in octets.
pub const CACHE_BYTES: usize = 8 * 1024 * 1024;
/// How often a reopening looks whether the last reader is gone.
const REOPEN_PAUSE: Duration = Duration::from_millis(5);
/// How many times it looks.
const REOPEN_TRIES: u32 = 400;

/// Random octets in the name of an opening.
const OPENING_OCTETS: usize = 16;

/// Name of the database in the state folder.
pub const DATABASE_FILE: &str = "tollgate.redb";
/// Name of a database that is being made.
const UNFINISHED_FILE: &str = "tollgate.redb.tmp";
/// Name of the lock in the state folder.
pub const LOCK_FILE: &str = "lock";
/// Name of the folder of content-addressed files in the state folder.
pub const BLOB_FOLDER: &str = "blobs";
/// Most of the lock file that is read for a message.
const MAX_LOCK_TEXT: u64 = 32;

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;
type Opener = Box<dyn Fn() -> Result<Database, StoreError> + Send + Sync>;
type Answer = Result<bool, StoreError>;

struct Job {
    work: Work,
    /// What it belongs to, for failpoints.
    doing: &'static str,
    answer: oneshot::Sender<Answer>,
}

/// The store of one state folder.
pub struct RedbStore {
    /// `None` only while dropping.
    jobs: Option<mpsc::Sender<Job>>,
    writer: Option<JoinHandle<()>>,
    slot: Arc<Slot>,
    blobs: Blobs,
    disk: Disk,
    /// Random; names this opening.
    opening: String,
    /// Released last.
    _lock: File,
}

impl std::fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedbStore").field("blobs", &self.blobs).finish_non_exhaustive()
    }
}

impl RedbStore {
    /// Opens the state folder, making it where it is missing.
    pub fn open(state_dir: &Path) -> Result<RedbStore, StoreError> {
        RedbStore::open_on(state_dir, Disk::default())
    }

    /// As [`RedbStore::open`], by way of `disk`.
    pub fn open_on(state_dir: &Path, disk: Disk) -> Result<RedbStore, StoreError> {
        make_private(&disk, state_dir)?;
        let lock = take_lock(state_dir)?;
        let (folder, way) = (state_dir.to_owned(), disk.clone());
        RedbStore::start(state_dir, lock, disk, Box::new(move || open_database(&folder, &way)))
    }

    fn start(state_dir: &Path, lock: File, disk: Disk, opener: Opener) -> Result<RedbStore, StoreError> {
        let mut opening = [0; OPENING_OCTETS];
        getrandom::fill(&mut opening).map_err(|e| StoreError::Failed(e.to_string()))?;
        let slot = Arc::new(Slot { opener, open: RwLock::new(None) });
        slot.current()?;
        let (jobs, queue) = mpsc::channel(MAX_QUEUE);
        let rows = Arc::new(OctetRows { jobs: jobs.downgrade(), slot: slot.clone() });
        // Makes the names in the state folder durable too, the database's among them.
        let blobs = Blobs::at(&state_dir.join(BLOB_FOLDER), disk.clone(), rows)?;
        let writer = thread::Builder::new()
            .name("store-writer".into())
            .spawn({
                let slot = slot.clone();
                move || write_batches(&slot, queue)
            })
            .map_err(|e| StoreError::Failed(e.to_string()))?;
        let opening = to_hex(&opening);
        Ok(RedbStore { jobs: Some(jobs), writer: Some(writer), slot, blobs, disk, opening, _lock: lock })
    }
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        // The writer ends when the last sender is gone and the queue is empty.
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Store for RedbStore {
    fn read(&self, work: &mut dyn FnMut(&dyn Reader)) -> Result<(), StoreError> {
        let database = self.slot.current()?;
        let snapshot = Snapshot::of(&database)?;
        work(&Overlay::new(&snapshot));
        Ok(())
    }

    fn write(&self, work: Work) -> BoxFuture<'_, Answer> {
        Box::pin(async move { submit(self.jobs.as_ref().ok_or_else(closed)?, work).await })
    }

    fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    fn disk(&self) -> &Disk {
        &self.disk
    }

    fn sole_opening(&self) -> Option<&str> {
        Some(&self.opening)
    }
}

fn closed() -> StoreError {
    StoreError::Failed("the store's writer has ended".into())
}

/// Hands work to the writer and waits for its commit.
async fn submit(jobs: &mpsc::Sender<Job>, work: Work) -> Answer {
    let (answer, answered) = oneshot::channel();
    let doing = failpoint::doing();
    jobs.send(Job { work, doing, answer }).await.map_err(|_| closed())?;
    answered.await.map_err(|_| closed())?
}

// ---- opening -------------------------------------------------------------

/// Makes the state folder, and takes it from everybody else's eyes.
fn make_private(disk: &Disk, state_dir: &Path) -> Result<(), StoreError> {
    make_folders(disk, state_dir)?;
    restrict(state_dir, FOLDER_MODE)
}

/// Makes a folder and those above it that are missing; their names are on
/// disk before anything is put into them.
fn make_folders(disk: &Disk, path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    parent.map_or(Ok(()), |parent| make_folders(disk, parent))?;
    if blob::make_folder(disk, path)? {
        blob::sync_folder(disk, parent.unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// Takes every permission beyond `mode` away.
fn restrict(path: &Path, mode: u32) -> Result<(), StoreError> {
    let found = fs::metadata(path).map_err(|e| io_error(path, e))?.permissions().mode() & 0o7777;
    if found & !mode != 0 {
        fs::set_permissions(path, Permissions::from_mode(found & mode)).map_err(|e| io_error(path, e))?;
    }
    Ok(())
}

/// Opens or makes a file that only its owner may read.
fn private_file(disk: &Disk, path: &Path) -> Result<File, StoreError> {
    let is_new = !path.exists();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(path)
        .map_err(|e| io_error(path, e))?;
    if is_new {
        disk.told(Change::Create(path));
    }
    restrict(path, FILE_MODE)?;
    Ok(file)
}

/// Takes the folder's lock, or says which process holds it.
fn take_lock(state_dir: &Path) -> Result<File, StoreError> {
    let path = state_dir.join(LOCK_FILE);
    // What it says is worth nothing after a crash, nor is its name.
    let mut file = private_file(&Disk::default(), &path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only for the message: a lock without a readable number is a lock too.
            let _ = file.take(MAX_LOCK_TEXT).read_to_string(&mut holder);
            let holder = match holder.trim() {
                "" => String::new(),
                pid => format!(" (process {pid})"),
            };
            return Err(StoreError::InUse(format!("{}{holder}", state_dir.display())));
        }
        Err(TryLockError::Error(e)) => return Err(io_error(&path, e)),
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(|e| io_error(&path, e))?;
    Ok(file)
}

fn open_database(state_dir: &Path, disk: &Disk) -> Result<Database, StoreError> {
    let path = state_dir.join(DATABASE_FILE);
    if !path.exists() {
        make_database(state_dir, &path, disk)?;
    }
    database_at(state_dir, &path, disk)
}

/// Makes the database under another name until it is whole: a power cut in
/// between leaves none, and not one that can't be opened.
fn make_database(state_dir: &Path, path: &Path, disk: &Disk) -> Result<(), StoreError> {
    let unfinished = state_dir.join(UNFINISHED_FILE);
    if unfinished.exists() {
        disk.remove(&unfinished).map_err(|e| io_error(&unfinished, e))?;
    }
    let database = database_at(state_dir, &unfinished, disk)?;
    check_schema(&database)?;
    drop(database);
    disk.rename(&unfinished, path).map_err(|e| io_error(path, e))?;
    blob::sync_folder(disk, state_dir)
}

fn database_at(state_dir: &Path, path: &Path, disk: &Disk) -> Result<Database, StoreError> {
    let file = FileBackend::new(private_file(disk, path)?).map_err(failed)?;
    let backend = OnDisk { file, path: path.to_owned(), disk: disk.clone() };
    Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend).map_err(|e| match e {
        ::redb::DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(state_dir.display().to_string()),
        other => failed(other),
    })
}

/// Writes the schema version into a new database, and into an older one whose
/// rows are all still good; refuses a newer one.
fn check_schema(database: &Database) -> Result<(), StoreError> {
    let snapshot = database.begin_read().map_err(failed)?;
    match snapshot.open_table(definition(Table::Meta)) {
        Ok(meta) => {
            let stored = get(&meta, SCHEMA_KEY)?;
            let damaged = || StoreError::Damaged { table: Table::Meta, why: "no schema version".into() };
            let found: u64 = from_json(Table::Meta, &stored.ok_or_else(damaged)?)?;
            match found.cmp(&SCHEMA) {
                Ordering::Less => write_schema(database, SCHEMA),
                Ordering::Equal => Ok(()),
                Ordering::Greater => Err(StoreError::Newer { found, known: SCHEMA }),
            }
        }
        Err(TableError::TableDoesNotExist(_)) => write_schema(database, SCHEMA),
        Err(other) => Err(failed(other)),
    }
}

fn write_schema(database: &Database, schema: u64) -> Result<(), StoreError> {
    let mut transaction = database.begin_write().map_err(failed)?;
    transaction.set_durability(Durability::Immediate).map_err(failed)?;
    {
        let mut meta = transaction.open_table(definition(Table::Meta)).map_err(failed)?;
        meta.insert(SCHEMA_KEY, schema.to_string().as_bytes()).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// The name of each table in the file; never changes for a table once used.
fn definition(table: Table) -> Definition {
    TableDefinition::new(match table {
        Table::Meta => "meta",
        Table::Key => "key",
        Table::Hold => "hold",
        Table::Ledger => "ledger",
        Table::Receipt => "receipt",
        Table::Mirror => "mirror",
        Table::View => "view",
        Table::Decision => "decision",
        Table::DecisionIndex => "decision_index",
        Table::Local => "local",
        Table::Subscription => "subscription",
        Table::Correction => "correction",
        Table::Correspondent => "correspondent",
        Table::Web => "web",
        Table::Lineage => "lineage",
        Table::Octets => "octets",
    })
}

/// A redb error; a full disk or quota is told apart.
fn failed(error: impl Into<::redb::Error>) -> StoreError {
    match error.into() {
        ::redb::Error::Io(e) => io_error(Path::new(DATABASE_FILE), e),
        other => StoreError::Failed(other.to_string()),
    }
}

// ---- reading -------------------------------------------------------------

fn get(table: &impl ReadableTable<&'static [u8], &'static [u8]>, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(table.get(key).map_err(failed)?.map(|value| value.value().to_vec()))
}

fn each(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    span: Span<'_>,
    back: bool,
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    if span.is_empty() {
        return Ok(());
    }
    let end = span.end();
    let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut range = table.range::<&[u8]>((Bound::Included(span.start()), upper)).map_err(failed)?;
    while let Some(pair) = if back { range.next_back() } else { range.next() } {
        let (key, value) = pair.map_err(failed)?;
        if visit(key.value(), value.value()).is_break() {
            break;
        }
    }
    Ok(())
}

type StoredTable = ::redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

/// A snapshot; a table that was never written is empty. Opening a table costs
/// more than reading a value of it, so each is opened once.
struct Snapshot {
    transaction: ReadTransaction,
    tables: RefCell<BTreeMap<Table, Option<Rc<StoredTable>>>>,
}

impl Snapshot {
    fn of(database: &Database) -> Result<Snapshot, StoreError> {
        let transaction = database.begin_read().map_err(failed)?;
        Ok(Snapshot { transaction, tables: RefCell::default() })
    }

    fn table(&self, table: Table) -> Result<Option<Rc<StoredTable>>, StoreError> {
        if let Some(open) = self.tables.borrow().get(&table) {
            return Ok(open.clone());
        }
        let open = match self.transaction.open_table(definition(table)) {
            Ok(open) => Some(Rc::new(open)),
            Err(TableError::TableDoesNotExist(_)) => None,
            Err(other) => return Err(failed(other)),
        };
        self.tables.borrow_mut().insert(table, open.clone());
        Ok(open)
    }
}

impl Base for Snapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.table(table)?.map_or(Ok(None), |t| get(t.as_ref(), key))
    }

    fn each(&self, table: Table, span: Span<'_>, visit: Visit<'_>) -> Result<(), StoreError> {
        self.table(table)?.map_or(Ok(()), |t| each(t.as_ref(), span, false, visit))
    }

    fn each_back(&self, table: Table, span: Span<'_>, visit: Visit<'_>) -> Result<(), StoreError> {
        self.table(table)?.map_or(Ok(()), |t| each(t.as_ref(), span, true, visit))
    }
}

// ---- writing -------------------------------------------------------------

type OpenTable<'t> = ::redb::Table<'t, &'static [u8], &'static [u8]>;

/// An open write transaction; tables are opened when first used.
struct Pending<'t> {
    transaction: &'t WriteTransaction,
    tables: RefCell<BTreeMap<Table, OpenTable<'t>>>,
}

impl<'t> Pending<'t> {
    fn with<T>(
        &self,
        table: Table,
        act: impl FnOnce(&mut OpenTable<'t>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut tables = self.tables.borrow_mut();
        let open = match tables.entry(table) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(self.transaction.open_table(definition(table)).map_err(failed)?)
            }
        };
        act(open)
    }

    fn apply(&self, changed: BTreeMap<Table, Changes>) -> Result<(), StoreError> {
        for (table, changes) in changed {
            self.with(table, |open| {
                for (key, change) in changes {
                    match change {
                        Some(value) => open.insert(key.as_slice(), value.as_slice()).map(drop),
                        None => open.remove(key.as_slice()).map(drop),
                    }
                    .map_err(failed)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl Base for Pending<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.with(table, |open| get(open, key))
    }

    fn each(&self, table: Table, span: Span<'_>, visit: Visit<'_>) -> Result<(), StoreError> {
        self.with(table, |open| each(open, span, false, visit))
    }

    fn each_back(&self, table: Table, span: Span<'_>, visit: Visit<'_>) -> Result<(), StoreError> {
        self.with(table, |open| each(open, span, true, visit))
    }
}

/// The writer thread: until every sender is gone.
fn write_batches(slot: &Slot, mut queue: mpsc::Receiver<Job>) {
    let mut batch = Vec::new();
    while let Some(first) = queue.blocking_recv() {
        failpoint::on_this_thread(first.doing);
        batch.push(first);
        while batch.len() < MAX_BATCH {
            match queue.try_recv() {
                Ok(next) => batch.push(next),
                Err(_) => break,
            }
        }
        let outcome = slot.current().and_then(|database| run_batch(&database, &mut batch));
        match outcome {
            Ok(verdicts) => {
                for (job, verdict) in batch.drain(..).zip(verdicts) {
                    // Nobody waits any more where the caller was dropped.
                    let _ = job.answer.send(verdict);
                }
            }
            Err(error) => {
                tracing::error!(%error, "a commit failed");
                slot.reopen();
                for job in batch.drain(..) {
                    let _ = job.answer.send(Err(copy(&error)));
                }
            }
        }
    }
}

/// One transaction: each job's verdict after the commit, or the error that
/// undid them all.
fn run_batch(database: &Database, batch: &mut [Job]) -> Result<Vec<Answer>, StoreError> {
    let mut transaction = database.begin_write().map_err(failed)?;
    transaction.set_durability(Durability::Immediate).map_err(failed)?;
    let mut verdicts = Vec::with_capacity(batch.len());
    let mut dirty = false;
    {
        let pending = Pending { transaction: &transaction, tables: RefCell::default() };
        for job in batch {
            let mut overlay = Overlay::new(&pending);
            let run = catch_unwind(AssertUnwindSafe(|| (job.work)(&mut overlay)));
            verdicts.push(match run {
                Ok(Ok(())) => {
                    let changed = overlay.into_changes();
                    dirty |= !changed.is_empty();
                    pending.apply(changed)?;
                    Ok(true)
                }
                Ok(Err(())) => Ok(false),
                Err(_) => Err(StoreError::Failed("the work panicked; nothing of it was written".into())),
            });
        }
    }
    if dirty {
        transaction.commit().map_err(failed)?;
    } else {
        transaction.abort().map_err(failed)?;
    }
    Ok(verdicts)
}

fn copy(error: &StoreError) -> StoreError {
    match error {
        StoreError::InUse(s) => StoreError::InUse(s.clone()),
        StoreError::Newer { found, known } => StoreError::Newer { found: *found, known: *known },
        StoreError::Full(s) => StoreError::Full(s.clone()),
        StoreError::Damaged { table, why } => StoreError::Damaged { table: *table, why: why.clone() },
        StoreError::Gone(s) => StoreError::Gone(s.clone()),
        StoreError::Failed(s) => StoreError::Failed(s.clone()),
    }
}

/// The open database, replaced after a failed commit: redb refuses all
/// further work on a file that an I/O error was seen on.
struct Slot {
    opener: Opener,
    open: RwLock<Option<Arc<Database>>>,
}

impl Slot {
    /// The database; opened anew where an earlier try failed.
    fn current(&self) -> Result<Arc<Database>, StoreError> {
        if let Some(open) = &*self.open.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(open.clone());
        }
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        match &*open {
            Some(database) => Ok(database.clone()),
            None => Ok(open.insert(self.fresh()?).clone()),
        }
    }

    fn fresh(&self) -> Result<Arc<Database>, StoreError> {
        let database = (self.opener)()?;
        check_schema(&database)?;
        Ok(Arc::new(database))
    }

    /// Closes the database when its last reader is gone, and opens it again;
    /// new readers wait. Where that fails, whoever needs it next tries again.
    fn reopen(&self) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let Some(mut database) = open.take() else { return };
        for _ in 0..REOPEN_TRIES {
            match Arc::try_unwrap(database) {
                Ok(last) => {
                    drop(last);
                    match self.fresh() {
                        Ok(fresh) => *open = Some(fresh),
                        Err(error) => tracing::error!(%error, "the database can't be opened again yet"),
                    }
                    return;
                }
                Err(shared) => database = shared,
            }
            thread::sleep(REOPEN_PAUSE);
        }
        // A reader that doesn't end keeps the file; the next failure tries again.
        *open = Some(database);
    }
}

#[cfg(test)]
mod tests;
