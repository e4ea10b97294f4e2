use ::redb::StorageBackend;
use std::io::{BufRead, BufReader, ErrorKind};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::{TABLES, read, suite, write};
use super::backend::BackendResult;
use super::*;
use crate::store::blob::MAX_IN_DATABASE;

#[test]
fn the_redb_store_passes_the_suite() {
    suite::run_all(&|folder| Ok(Arc::new(RedbStore::open(folder)?)));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn state_is_for_its_owner_only_even_where_it_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("deep/state");
    drop(RedbStore::open(&state).unwrap());
    fs::set_permissions(&state, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(state.join(DATABASE_FILE), Permissions::from_mode(0o644)).unwrap();
    let store = RedbStore::open(&state).unwrap();
    let mut writer = store.blobs().writer();
    writer.write(&vec![b'x'; MAX_IN_DATABASE + 1]).unwrap();
    let (id, _) = runtime().block_on(writer.finish()).unwrap();
    let name = id.to_string();
    let blobs = state.join(BLOB_FOLDER);
    for private in [state.clone(), blobs.clone(), blobs.join("tmp"), blobs.join(&name[..2])] {
        assert_eq!(mode(&private), 0o700, "{}", private.display());
    }
    for private in [state.join(DATABASE_FILE), state.join(LOCK_FILE), blobs.join(&name[..2]).join(name)] {
        assert_eq!(mode(&private), 0o600, "{}", private.display());
    }
}

#[test]
fn every_table_has_a_name_of_its_own() {
    use ::redb::TableHandle;
    let names: std::collections::HashSet<String> = TABLES.iter().map(|t| definition(*t).name().to_owned()).collect();
    assert_eq!(names.len(), TABLES.len());
}

#[test]
fn a_database_without_a_schema_is_damaged_not_new() {
    let folder = tempfile::tempdir().unwrap();
    let store = RedbStore::open(folder.path()).unwrap();
    runtime().block_on(write(&store, |w| w.delete(Table::Meta, SCHEMA_KEY))).unwrap();
    drop(store);
    assert!(matches!(RedbStore::open(folder.path()), Err(StoreError::Damaged { table: Table::Meta, .. })));
}

// ---- a second process, and one that is killed ------------------------------

const CHILD_FOLDER: &str = "TOLLGATE_TEST_CHILD_FOLDER";

/// Runs the test `name` of this module in a process of its own.
fn child(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("store::redb::tests::{name}"), "--nocapture", "--ignored"]);
    command.env(CHILD_FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

#[test]
#[ignore = "the child of another test"]
fn child_that_opens_once() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    match RedbStore::open(Path::new(&folder)) {
        Ok(_) => println!("\nCHILD opened"),
        Err(error) => println!("\nCHILD {error}"),
    }
}

#[test]
fn a_second_process_is_refused_and_told_who_holds_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let answer = || {
        let output = child("child_that_opens_once", folder.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let store = RedbStore::open(folder.path()).unwrap();
    let refused = answer();
    let expected = format!(
        "CHILD another process uses the state folder {} (process {})",
        folder.path().display(),
        std::process::id()
    );
    assert!(refused.contains(&expected), "{refused}");
    drop(store);
    let opened = answer();
    assert!(opened.contains("CHILD opened"), "{opened}");
}

#[test]
#[ignore = "the child of another test"]
fn child_that_writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    let store = RedbStore::open(Path::new(&folder)).unwrap();
    println!();
    runtime().block_on(async {
        for n in 0_u64.. {
            write(&store, move |w| {
                w.put(Table::Hold, &n.to_be_bytes(), b"held")?;
                w.put(Table::Ledger, &n.to_be_bytes(), b"entry")
            })
            .await
            .unwrap();
            println!("ACK {n}");
        }
    });
}

#[test]
fn what_was_acknowledged_survives_a_kill_and_pairs_stay_whole() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=3 {
        let mut process = child("child_that_writes_until_it_is_killed", folder.path()).spawn().unwrap();
        let mut acknowledged = None;
        for line in BufReader::new(process.stdout.take().unwrap()).lines() {
            if let Some(n) = line.unwrap().strip_prefix("ACK ") {
                acknowledged = Some(n.parse::<u64>().unwrap());
                if acknowledged == Some(round * 20) {
                    process.kill().unwrap();
                }
            }
        }
        process.wait().unwrap();
        let store = RedbStore::open(folder.path()).unwrap();
        let (holds, entries) = read(&store, |r| {
            Ok::<_, StoreError>((
                r.scan(Table::Hold, b"", b"", usize::MAX)?,
                r.scan(Table::Ledger, b"", b"", usize::MAX)?,
            ))
        })
        .unwrap();
        assert!(holds.len() as u64 > acknowledged.unwrap(), "{} after {acknowledged:?}", holds.len());
        assert!(holds.iter().map(|(k, _)| k).eq(entries.iter().map(|(k, _)| k)));
    }
}

// ---- a full disk ---------------------------------------------------------------

/// A file that answers every write with "no space left" while `full` is set.
#[derive(Debug)]
struct FullDisk {
    file: FileBackend,
    full: Arc<AtomicBool>,
}

impl FullDisk {
    fn room(&self) -> BackendResult<()> {
        if self.full.load(Ordering::SeqCst) { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl StorageBackend for FullDisk {
    fn len(&self) -> BackendResult<u64> {
        self.file.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> BackendResult<()> {
        self.file.read(offset, out)
    }
    fn set_len(&self, len: u64) -> BackendResult<()> {
        self.room()?;
        self.file.set_len(len)
    }
    fn sync_data(&self) -> BackendResult<()> {
        self.file.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> BackendResult<()> {
        self.room()?;
        self.file.write(offset, data)
    }
    fn close(&self) -> BackendResult<()> {
        self.file.close()
    }
}

fn on_disk(folder: &Path, full: Arc<AtomicBool>) -> RedbStore {
    let lock = take_lock(folder).unwrap();
    let path = folder.join(DATABASE_FILE);
    let opener = move || {
        let file = FileBackend::new(private_file(&Disk::default(), &path)?).map_err(failed)?;
        let disk = FullDisk { file, full: full.clone() };
        Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(disk).map_err(failed)
    };
    RedbStore::start(folder, lock, Disk::default(), Box::new(opener)).unwrap()
}

#[test]
fn a_full_disk_says_so_leaves_nothing_and_needs_no_restart() {
    let folder = tempfile::tempdir().unwrap();
    let full = Arc::new(AtomicBool::new(false));
    let store = on_disk(folder.path(), full.clone());
    let runtime = runtime();
    let put = |key: &'static [u8]| runtime.block_on(write(&store, move |w| w.put(Table::Hold, key, &[7; 9000])));
    put(b"before").unwrap();
    full.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let outcome = put(b"during");
        assert!(matches!(outcome, Err(StoreError::Full(_))), "{outcome:?}");
    }
    full.store(false, Ordering::SeqCst);
    put(b"after").unwrap();
    let keys: Vec<Vec<u8>> =
        read(&store, |r| r.scan(Table::Hold, b"", b"", 9)).unwrap().into_iter().map(|(k, _)| k).collect();
    assert_eq!(keys, [b"after".to_vec(), b"before".to_vec()]);
}

#[test]
fn a_reader_never_sees_a_write_that_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let full = Arc::new(AtomicBool::new(false));
    let store = on_disk(folder.path(), full.clone());
    let runtime = runtime();
    runtime.block_on(write(&store, |w| w.put(Table::Hold, b"a", b"1"))).unwrap();
    full.store(true, Ordering::SeqCst);
    assert!(runtime.block_on(write(&store, |w| w.put(Table::Hold, b"b", b"1"))).is_err());
    match read(&store, |r| r.get(Table::Hold, b"b")) {
        Ok(found) => assert_eq!(found, None),
        // This disk refuses even the writes in place that opening needs.
        Err(StoreError::Full(_)) => {}
        Err(other) => panic!("{other}"),
    }
    full.store(false, Ordering::SeqCst);
    // Reading alone opens the file again.
    assert_eq!(read(&store, |r| r.get(Table::Hold, b"b")).unwrap(), None);
    assert_eq!(read(&store, |r| r.get(Table::Hold, b"a")).unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_failure_while_a_reader_is_at_work_ends_when_the_reader_does() {
    let folder = tempfile::tempdir().unwrap();
    let full = Arc::new(AtomicBool::new(false));
    let store = on_disk(folder.path(), full.clone());
    let runtime = runtime();
    let (started, wait_started) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            store.read(&mut |_| {
                started.send(()).unwrap();
                std::thread::sleep(Duration::from_millis(100));
            })
        });
        wait_started.recv().unwrap();
        full.store(true, Ordering::SeqCst);
        let refused = runtime.block_on(write(&store, |w| w.put(Table::Hold, b"a", b"1")));
        assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
        full.store(false, Ordering::SeqCst);
        runtime.block_on(write(&store, |w| w.put(Table::Hold, b"a", b"2"))).unwrap();
    });
    assert_eq!(read(&store, |r| r.get(Table::Hold, b"a")).unwrap().as_deref(), Some(&b"2"[..]));
}

/// A batch is one commit: works that wait together cost one sync together.
#[test]
fn works_that_wait_together_share_commits() {
    const WORKS: u64 = 500;
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(RedbStore::open(folder.path()).unwrap());
    let runtime = runtime();
    let written = runtime.block_on(async {
        let works: Vec<_> = (0..WORKS)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move { write(&*store, move |w| w.put(Table::Hold, &n.to_be_bytes(), b"")).await })
            })
            .collect();
        let mut written = 0;
        for work in works {
            work.await.unwrap().unwrap();
            written += 1;
        }
        written
    });
    assert_eq!(written, WORKS);
    let found = read(&*store, |r| r.scan(Table::Hold, b"", b"", usize::MAX)).unwrap();
    assert_eq!(found.len() as u64, WORKS);
}
