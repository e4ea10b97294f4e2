use super::super::redb::RedbStore;
use super::super::{Store, StoreError, Table, read, write};
use super::*;
use crate::store::blob::{BlobId, MAX_IN_DATABASE};

/// How many images of the default run; `TOLLGATE_LONG` makes ten times as many.
const IMAGES: u64 = 150;

pub(crate) fn images() -> u64 {
    if std::env::var_os("TOLLGATE_LONG").is_some() { IMAGES * 10 } else { IMAGES }
}

fn changed(journal: &Arc<Journal>, changes: &[Change<'_>]) {
    changes.iter().for_each(|change| journal.changed(*change));
}

fn left(journal: &Journal, changes: usize, seed: u64) -> BTreeMap<String, Vec<u8>> {
    let folder = Journal::folder();
    journal.image(changes, &mut Dice::new(seed), Path::new("/r"), folder.path());
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            files.insert(name, std::fs::read(path).unwrap());
        }
    }
    files
}

#[test]
fn what_was_synced_is_always_there_and_what_was_not_is_sometimes_missing() {
    let journal = Arc::new(Journal::default());
    let (a, b, r) = (Path::new("/r/a"), Path::new("/r/b"), Path::new("/r"));
    let write = |octets| Change::Write { path: a, offset: 0, octets };
    changed(&journal, &[Change::Create(a), write(b"old"), Change::Sync(a), Change::SyncFolder(r)]);
    let synced = journal.len();
    changed(&journal, &[write(b"new"), Change::Rename { from: a, to: b }]);
    let (mut old, mut new, mut neither, mut both) = (0, 0, 0, 0);
    for seed in 0..200 {
        assert_eq!(left(&journal, synced, seed), BTreeMap::from([("a".to_owned(), b"old".to_vec())]));
        let files = left(&journal, synced + 2, seed);
        old += u32::from(files.values().any(|octets| octets == b"old"));
        new += u32::from(files.values().any(|octets| octets == b"new"));
        neither += u32::from(files.is_empty());
        both += u32::from(files.len() == 2);
    }
    assert!(old > 20 && new > 20 && neither > 20 && both > 20, "{old} {new} {neither} {both}");
    changed(&journal, &[Change::Sync(b), Change::SyncFolder(r)]);
    for seed in 0..50 {
        assert_eq!(left(&journal, synced + 4, seed), BTreeMap::from([("b".to_owned(), b"new".to_vec())]));
    }
}

/// A pair of rows and a blob, written as one, and when that was acknowledged.
struct Acknowledged {
    at: usize,
    key: [u8; 8],
    blob: BlobId,
}

/// Writes for a while and keeps the journal.
fn history(root: &Path) -> (Arc<Journal>, Vec<Acknowledged>) {
    let journal = Arc::new(Journal::default());
    let store = RedbStore::open_on(&root.join("deep/state"), journal.disk()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut acknowledged = Vec::new();
    for n in 0..12_u64 {
        let mut writer = store.blobs().writer();
        // Every other one is a file.
        let part_length = if n % 2 == 0 { 700 } else { MAX_IN_DATABASE / 3 };
        for part in 0..4_u8 {
            writer.write(&vec![u8::try_from(n).unwrap() * 7 + part; part_length]).unwrap();
        }
        let (blob, _) = runtime.block_on(writer.finish()).unwrap();
        let key = n.to_be_bytes();
        let value = vec![3; usize::try_from(n).unwrap() * 900];
        runtime
            .block_on(write(&store, move |w| {
                w.put(Table::Hold, &key, &value)?;
                w.put(Table::Ledger, &key, &blob.0)
            }))
            .unwrap();
        acknowledged.push(Acknowledged { at: journal.len(), key, blob });
    }
    drop(store);
    (journal, acknowledged)
}

/// What is wrong with the image of a moment; nothing where it is as promised.
fn wrong_with(
    journal: &Journal,
    acknowledged: &[Acknowledged],
    root: &Path,
    moment: usize,
    seed: u64,
) -> Result<(), String> {
    let folder = Journal::folder();
    journal.image(moment, &mut Dice::new(seed), root, folder.path());
    let state = folder.path().join("deep/state");
    let store = RedbStore::open(&state).map_err(|e| format!("it doesn't open: {e}"))?;
    let pairs = |table| read(&store, |r| r.scan(table, b"", b"", usize::MAX));
    let scan = |table| pairs(table).map_err(|e: StoreError| e.to_string());
    let (holds, entries) = (scan(Table::Hold)?, scan(Table::Ledger)?);
    if !holds.iter().map(|(k, _)| k).eq(entries.iter().map(|(k, _)| k)) {
        return Err(format!("half a pair: {} and {}", holds.len(), entries.len()));
    }
    for one in acknowledged.iter().filter(|one| one.at <= moment) {
        if !entries.iter().any(|(k, v)| *k == one.key && *v == one.blob.0) {
            return Err("an acknowledged pair is gone".to_owned());
        }
    }
    for (_, blob) in &entries {
        let id = BlobId(blob.as_slice().try_into().unwrap());
        let mut octets = Vec::new();
        let mut file = store.blobs().open(&id).map_err(|e| format!("a named blob is gone: {e}"))?;
        std::io::Read::read_to_end(&mut file, &mut octets).unwrap();
        if BlobId(<sha2::Sha256 as sha2::Digest>::digest(&octets).into()) != id {
            return Err("a named blob isn't whole".to_owned());
        }
    }
    Ok(())
}

#[test]
fn after_a_power_cut_what_was_acknowledged_is_there_whole() {
    let root = tempfile::tempdir().unwrap();
    let (journal, acknowledged) = history(root.path());
    let mut dice = Dice::new(1);
    for seed in 0..images() {
        let moment = dice.below(journal.len() + 1);
        if let Err(wrong) = wrong_with(&journal, &acknowledged, root.path(), moment, seed) {
            panic!("after {moment} of {} changes, seed {seed}: {wrong}", journal.len());
        }
    }
}

/// Without any one kind of sync something is lost, so the test above can see.
#[test]
fn a_store_that_forgets_a_sync_is_found_out() {
    let root = tempfile::tempdir().unwrap();
    let (journal, acknowledged) = history(root.path());
    let is_database = |path: &Path| path.ends_with("tollgate.redb");
    let in_blobs = |path: &Path| path.parent().is_some_and(|p| p.ends_with("blobs"));
    type Forgets<'f> = Box<dyn Fn(&Kept) -> bool + 'f>;
    let kinds: [(&str, Forgets<'_>); 5] = [
        ("the database", Box::new(|k| matches!(k, Kept::Sync(p) if is_database(p)))),
        ("blobs", Box::new(|k| matches!(k, Kept::Sync(p) if !is_database(p)))),
        ("the folders of blobs", Box::new(|k| matches!(k, Kept::SyncFolder(p) if in_blobs(p)))),
        ("the folder of those", Box::new(|k| matches!(k, Kept::SyncFolder(p) if p.ends_with("blobs")))),
        ("the folder above the state", Box::new(|k| matches!(k, Kept::SyncFolder(p) if p.ends_with("deep")))),
    ];
    for (what, forgets) in kinds {
        let forgetful = journal.without(forgets);
        let mut dice = Dice::new(2);
        let mut found = 0;
        for seed in 0..60 {
            let moment = dice.below(journal.len() + 1);
            // A database that was torn in ways that no disk tears one may make
            // its reader panic.
            let look = || wrong_with(&forgetful, &acknowledged, root.path(), moment, seed);
            let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look));
            found += u32::from(!matches!(looked, Ok(Ok(()))));
        }
        assert!(found > 0, "a store that doesn't sync {what} passes");
        println!("without a sync of {what}: {found} of 60 images are found out");
    }
}
