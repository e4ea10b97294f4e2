//! What every implementation of [`Store`] must pass.
//!
//! [`run_all`] runs each case in a fresh folder of its own; an implementation
//! that keeps its state elsewhere takes the folder's path as its name.

use std::collections::HashSet;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::blob::{BlobId, MAX_IN_DATABASE};
use super::{Reader, SCHEMA, SCHEMA_KEY, Store, StoreError, TABLES, Table, get_json, put_json, read, write};

/// Opens the store of a folder; called again to reopen it.
pub type Make<'m> = &'m dyn Fn(&Path) -> Result<Arc<dyn Store>, StoreError>;

type Case = fn(&tokio::runtime::Runtime, &Path, Make<'_>);

const CASES: &[(&str, Case)] = &[
    ("an error rolls everything back", an_error_rolls_everything_back),
    ("a panic rolls back and the store lives on", a_panic_rolls_back_and_the_store_lives_on),
    ("a neighbour's error doesn't undo a work", a_neighbours_error_does_not_undo_a_work),
    ("work reads its own writes", work_reads_its_own_writes),
    ("a snapshot doesn't move", a_snapshot_does_not_move),
    ("scans are ordered and bounded", scans_are_ordered_and_bounded),
    ("scans merge pending changes", scans_merge_pending_changes),
    ("prefixes end where they end", prefixes_end_where_they_end),
    ("tables are apart", tables_are_apart),
    ("what was written survives reopening", what_was_written_survives_reopening),
    ("compare and set is exact", compare_and_set_is_exact),
    ("a newer schema is refused", a_newer_schema_is_refused),
    ("a second opening is refused", a_second_opening_is_refused),
    ("an older schema is raised", an_older_schema_is_raised),
    ("octets are kept by content", octets_are_kept_by_content),
    ("a sweep keeps what is named", a_sweep_keeps_what_is_named),
];

/// Runs every case.
pub fn run_all(make: Make<'_>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for (name, case) in CASES {
        let folder = tempfile::tempdir().unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| case(&runtime, folder.path(), make)));
        assert!(outcome.is_ok(), "the store fails the case: {name}");
    }
}

fn set(runtime: &tokio::runtime::Runtime, store: &dyn Store, table: Table, pairs: &[(&[u8], &[u8])]) {
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = pairs.iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    runtime
        .block_on(write(store, move |w| {
            pairs.iter().try_for_each(|(k, v)| w.put(table, k, v))?;
            Ok::<_, StoreError>(())
        }))
        .unwrap();
}

fn value(store: &dyn Store, table: Table, key: &[u8]) -> Option<Vec<u8>> {
    read(store, |r| r.get(table, key)).unwrap()
}

fn keys(r: &(impl Reader + ?Sized), prefix: &[u8], from: &[u8], limit: usize) -> Vec<Vec<u8>> {
    r.scan(Table::Hold, prefix, from, limit).unwrap().into_iter().map(|(k, _)| k).collect()
}

/// The caller's own error, which the store has no word for.
#[derive(Debug, PartialEq)]
struct No;

impl From<StoreError> for No {
    fn from(error: StoreError) -> No {
        panic!("{error}");
    }
}

fn an_error_rolls_everything_back(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    set(runtime, &*store, Table::Hold, &[(b"a", b"1")]);
    let outcome = runtime.block_on(write(&*store, |w| {
        w.put(Table::Hold, b"a", b"2")?;
        w.put(Table::Ledger, b"b", b"2")?;
        w.delete(Table::Hold, b"a")?;
        Err::<(), No>(No)
    }));
    assert_eq!(outcome, Err(No));
    assert_eq!(value(&*store, Table::Hold, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(value(&*store, Table::Ledger, b"b"), None);
}

fn a_panic_rolls_back_and_the_store_lives_on(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    let outcome = runtime.block_on(write(&*store, |w| {
        w.put(Table::Hold, b"a", b"1")?;
        if w.get(Table::Hold, b"a")?.is_some() {
            panic!("a panic that this case means to cause");
        }
        Ok::<_, StoreError>(())
    }));
    assert!(matches!(outcome, Err(StoreError::Failed(_))));
    assert_eq!(value(&*store, Table::Hold, b"a"), None);
    set(runtime, &*store, Table::Hold, &[(b"a", b"2")]);
    assert_eq!(value(&*store, Table::Hold, b"a").as_deref(), Some(&b"2"[..]));
}

fn a_neighbours_error_does_not_undo_a_work(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    let outcomes = runtime.block_on(async {
        let works = (0..64_u8).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                write(&*store, move |w| {
                    w.put(Table::Hold, &[n], b"x").unwrap();
                    if n % 2 == 0 { Ok(()) } else { Err(No) }
                })
                .await
            })
        });
        let mut outcomes = Vec::new();
        for work in works.collect::<Vec<_>>() {
            outcomes.push(work.await.unwrap());
        }
        outcomes
    });
    for (n, outcome) in (0..64_u8).zip(outcomes) {
        assert_eq!(outcome.is_ok(), n % 2 == 0);
        assert_eq!(value(&*store, Table::Hold, &[n]).is_some(), n % 2 == 0, "{n}");
    }
}

fn work_reads_its_own_writes(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    set(runtime, &*store, Table::Hold, &[(b"old", b"1")]);
    let seen = runtime.block_on(write(&*store, |w| {
        w.put(Table::Hold, b"new", b"2")?;
        w.delete(Table::Hold, b"old")?;
        Ok::<_, StoreError>((w.get(Table::Hold, b"new")?, w.get(Table::Hold, b"old")?, w.last(Table::Hold, b"")?))
    }));
    assert_eq!(seen.unwrap(), (Some(b"2".to_vec()), None, Some((b"new".to_vec(), b"2".to_vec()))));
}

fn a_snapshot_does_not_move(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    set(runtime, &*store, Table::Hold, &[(b"a", b"1")]);
    let (before, within) = read(&*store, |r| {
        let before = r.get(Table::Hold, b"a")?;
        set(runtime, &*store, Table::Hold, &[(b"a", b"2"), (b"b", b"2")]);
        Ok::<_, StoreError>((before, (r.get(Table::Hold, b"a")?, keys(r, b"", b"", 9))))
    })
    .unwrap();
    assert_eq!(before.as_deref(), Some(&b"1"[..]));
    assert_eq!(within, (before, vec![b"a".to_vec()]));
    assert_eq!(value(&*store, Table::Hold, b"a").as_deref(), Some(&b"2"[..]));
}

fn scans_are_ordered_and_bounded(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    let numbers: Vec<[u8; 8]> = [300_u64, 2, 1, 70_000, 255, 256].map(u64::to_be_bytes).to_vec();
    let pairs: Vec<(&[u8], &[u8])> = numbers.iter().map(|k| (&k[..], &b""[..])).collect();
    set(runtime, &*store, Table::Hold, &pairs);
    read(&*store, |r| {
        let mut sorted = numbers.clone();
        sorted.sort();
        assert_eq!(keys(r, b"", b"", usize::MAX), sorted);
        assert_eq!(keys(r, b"", b"", 2), sorted[..2]);
        assert_eq!(keys(r, b"", b"", 0), Vec::<Vec<u8>>::new());
        assert_eq!(keys(r, b"", &256_u64.to_be_bytes(), 2), sorted[3..5]);
        assert_eq!(keys(r, b"", &257_u64.to_be_bytes(), 9), sorted[4..]);
        assert_eq!(keys(r, b"", &[0xff], 9), Vec::<Vec<u8>>::new());
        assert_eq!(r.last(Table::Hold, b"")?.unwrap().0, 70_000_u64.to_be_bytes());
        assert_eq!(r.last(Table::Web, b"")?, None);
        Ok::<_, StoreError>(())
    })
    .unwrap();
}

fn scans_merge_pending_changes(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    set(runtime, &*store, Table::Hold, &[(b"b", b"1"), (b"d", b"1"), (b"f", b"1")]);
    runtime
        .block_on(write(&*store, |w| {
            for key in [b"a", b"c", b"e", b"g"] {
                w.put(Table::Hold, key, b"2")?;
            }
            w.put(Table::Hold, b"d", b"2")?;
            w.delete(Table::Hold, b"f")?;
            w.delete(Table::Hold, b"g")?;
            assert_eq!(keys(w, b"", b"", 9), [b"a", b"b", b"c", b"d", b"e"]);
            assert_eq!(keys(w, b"", b"", 3), [b"a", b"b", b"c"]);
            assert_eq!(keys(w, b"", b"c", 2), [b"c", b"d"]);
            assert_eq!(w.scan(Table::Hold, b"d", b"", 9)?, [(b"d".to_vec(), b"2".to_vec())]);
            assert_eq!(w.last(Table::Hold, b"")?.unwrap().0, b"e");
            Ok::<_, StoreError>(())
        }))
        .unwrap();
    assert_eq!(read(&*store, |r| Ok::<_, StoreError>(keys(r, b"", b"", 9))).unwrap().len(), 5);
}

fn prefixes_end_where_they_end(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    let all: [&[u8]; 8] = [b"a", b"a\x00", b"a\xfe", b"a\xff", b"a\xff\xff\x01", b"b", b"\xff", b"\xff\xff\x00"];
    set(runtime, &*store, Table::Hold, &all.map(|k| (k, &b""[..])));
    read(&*store, |r| {
        assert_eq!(keys(r, b"a", b"", 9), all[..5]);
        assert_eq!(keys(r, b"a\xff", b"", 9), all[3..5]);
        assert_eq!(keys(r, b"\xff", b"", 9), all[6..]);
        assert_eq!(keys(r, b"\xff\xff", b"", 9), all[7..]);
        assert_eq!(keys(r, b"a", b"a\xfe", 9), all[2..5]);
        assert_eq!(keys(r, b"a", b"b", 9), Vec::<Vec<u8>>::new());
        assert_eq!(keys(r, b"b", b"a", 9), all[5..6]);
        assert_eq!(r.last(Table::Hold, b"a")?.unwrap().0, all[4]);
        assert_eq!(r.last(Table::Hold, b"\xff")?.unwrap().0, all[7]);
        assert_eq!(r.last(Table::Hold, b"c")?, None);
        Ok::<_, StoreError>(())
    })
    .unwrap();
}

fn tables_are_apart(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    for (n, table) in (0_u8..).zip(TABLES) {
        set(runtime, &*store, table, &[(b"same key", &[n])]);
    }
    for (n, table) in (0_u8..).zip(TABLES) {
        assert_eq!(value(&*store, table, b"same key"), Some(vec![n]), "{table:?}");
    }
}

fn what_was_written_survives_reopening(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    set(runtime, &*store, Table::Hold, &[(b"a", b"1"), (b"empty", b"")]);
    drop(store);
    let store = make(folder).unwrap();
    assert_eq!(value(&*store, Table::Hold, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(value(&*store, Table::Hold, b"empty").as_deref(), Some(&b""[..]));
    let schema = read(&*store, |r| get_json::<u64>(r, Table::Meta, SCHEMA_KEY)).unwrap();
    assert_eq!(schema, Some(SCHEMA));
}

fn compare_and_set_is_exact(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    const TASKS: u64 = 100;
    let store = make(folder).unwrap();
    let mut seen = runtime.block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move {
                    write(&*store, |w| {
                        let next = get_json::<u64>(w, Table::Web, b"count")?.unwrap_or(0) + 1;
                        put_json(w, Table::Web, b"count", &next)?;
                        Ok::<_, StoreError>(next)
                    })
                    .await
                    .unwrap()
                })
            })
            .collect();
        let mut seen = Vec::new();
        for task in tasks {
            seen.push(task.await.unwrap());
        }
        seen
    });
    seen.sort_unstable();
    assert!(seen.into_iter().eq(1..=TASKS));
    let count = read(&*store, |r| get_json::<u64>(r, Table::Web, b"count")).unwrap();
    assert_eq!(count, Some(TASKS));
}

fn a_newer_schema_is_refused(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    let newer = SCHEMA + 1;
    runtime.block_on(write(&*store, move |w| put_json(w, Table::Meta, SCHEMA_KEY, &newer))).unwrap();
    drop(store);
    for _ in 0..2 {
        match make(folder) {
            Err(StoreError::Newer { found, known }) => assert_eq!((found, known), (newer, SCHEMA)),
            other => panic!("{:?}", other.map(drop)),
        }
    }
}

fn a_second_opening_is_refused(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    match make(folder) {
        Err(error @ StoreError::InUse(_)) => {
            let text = error.to_string();
            assert!(text.contains("another process uses the state folder"), "{text}");
            assert!(text.contains(&*folder.to_string_lossy()), "{text}");
        }
        other => panic!("{:?}", other.map(drop)),
    }
    set(runtime, &*store, Table::Hold, &[(b"a", b"1")]);
    drop(store);
    assert_eq!(value(&*make(folder).unwrap(), Table::Hold, b"a").as_deref(), Some(&b"1"[..]));
}

fn keep(runtime: &tokio::runtime::Runtime, store: &dyn Store, octets: &[u8]) -> BlobId {
    let mut writer = store.blobs().writer();
    octets.chunks(4093).for_each(|part| writer.write(part).unwrap());
    let (id, length) = runtime.block_on(writer.finish()).unwrap();
    assert_eq!((length, id.0), (octets.len() as u64, Sha256::digest(octets).into()));
    id
}

fn octets_of(store: &dyn Store, id: &BlobId) -> Vec<u8> {
    let mut octets = Vec::new();
    store.blobs().open(id).unwrap().read_to_end(&mut octets).unwrap();
    octets
}

fn octets_are_kept_by_content(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let lengths = [0, 1, 4093, MAX_IN_DATABASE - 1, MAX_IN_DATABASE, MAX_IN_DATABASE + 1, 3 * MAX_IN_DATABASE];
    let all: Vec<Vec<u8>> = lengths.iter().map(|n| (0..*n).map(|i| (i % 251) as u8).collect()).collect();
    let store = make(folder).unwrap();
    let ids: Vec<BlobId> = all.iter().map(|octets| keep(runtime, &*store, octets)).collect();
    // Twice the same are one.
    assert_eq!(ids, all.iter().map(|octets| keep(runtime, &*store, octets)).collect::<Vec<_>>());
    drop(store);
    let store = make(folder).unwrap();
    for (id, octets) in ids.iter().zip(&all) {
        assert_eq!(octets_of(&*store, id), *octets, "{} octets", octets.len());
    }
}

fn a_sweep_keeps_what_is_named(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    let (small, large) = ([b"live", &b"dead"[..]], [[1; MAX_IN_DATABASE + 1], [2; MAX_IN_DATABASE + 1]]);
    let small = small.map(|octets| keep(runtime, &*store, octets));
    let large = large.map(|octets| keep(runtime, &*store, &octets));
    let live = HashSet::from([small[0], large[0]]);
    for removed in [2, 0] {
        assert_eq!(runtime.block_on(store.blobs().sweep(&live)).unwrap(), removed);
        assert_eq!(octets_of(&*store, &small[0]), b"live");
        assert_eq!(octets_of(&*store, &large[0]), [1; MAX_IN_DATABASE + 1]);
        assert!(store.blobs().open(&small[1]).is_err() && store.blobs().open(&large[1]).is_err());
    }
}

fn an_older_schema_is_raised(runtime: &tokio::runtime::Runtime, folder: &Path, make: Make<'_>) {
    let store = make(folder).unwrap();
    set(runtime, &*store, Table::Hold, &[(b"a", b"1")]);
    runtime.block_on(write(&*store, move |w| put_json(w, Table::Meta, SCHEMA_KEY, &1))).unwrap();
    drop(store);
    let store = make(folder).unwrap();
    let schema = read(&*store, |r| get_json::<u64>(r, Table::Meta, SCHEMA_KEY)).unwrap();
    assert_eq!((schema, value(&*store, Table::Hold, b"a").as_deref()), (Some(SCHEMA), Some(&b"1"[..])));
}
