use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

use super::*;

/// No rows: whatever is small stays unfinished.
#[derive(Debug)]
struct NoRows;

impl Rows for NoRows {
    fn put(&self, _: BlobId, _: Arc<[u8]>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Err(StoreError::Failed("no rows".to_owned())) })
    }

    fn get(&self, _: &BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn sweep<'r>(&'r self, _: &'r HashSet<BlobId>) -> BoxFuture<'r, Result<usize, StoreError>> {
        Box::pin(async { Ok(0) })
    }
}

fn files(root: &Path) -> Blobs {
    Blobs::at(root, Disk::default(), Arc::new(NoRows)).unwrap()
}

/// Too much for a row.
fn large(word: &[u8]) -> Vec<u8> {
    word.repeat(MAX_IN_DATABASE / word.len() + 1)
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn keep(blobs: &Blobs, octets: &[u8]) -> BlobId {
    let mut writer = blobs.writer();
    for chunk in octets.chunks(3001) {
        writer.write(chunk).unwrap();
    }
    let (id, length) = wait(writer.finish()).unwrap();
    assert_eq!(length, octets.len() as u64);
    id
}

fn octets(blobs: &Blobs, id: &BlobId) -> Vec<u8> {
    let mut out = Vec::new();
    blobs.open(id).unwrap().read_to_end(&mut out).unwrap();
    out
}

fn unfinished(root: &Path) -> usize {
    fs::read_dir(root.join(TMP)).unwrap().count()
}

#[test]
fn a_blob_is_named_by_its_content_and_reads_back() {
    let root = tempfile::tempdir().unwrap();
    let blobs = files(&root.path().join("blobs"));
    // FIPS 180-4, appendix B.3: a million times "a".
    let million = vec![b'a'; 1_000_000];
    let id = keep(&blobs, &million);
    assert_eq!(id.to_string(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    assert_eq!(octets(&blobs, &id), million);
    assert!(root.path().join("blobs/cd").join(id.to_string()).is_file());
    assert_eq!(unfinished(&root.path().join("blobs")), 0);
}

/// Held before small blobs were rows, still to be read, sent and kept.
#[test]
fn a_small_file_of_an_older_state_is_read_and_kept() {
    let root = tempfile::tempdir().unwrap();
    let blobs = files(root.path());
    let id = BlobId(Sha256::digest(b"small").into());
    let path = blobs.shared.path(&id);
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, b"small").unwrap();
    assert_eq!(octets(&blobs, &id), b"small");
    assert_eq!(wait(blobs.sweep(&HashSet::from([id]))).unwrap(), 0);
    assert_eq!(octets(&blobs, &id), b"small");
    assert!(matches!(blobs.open(&BlobId([7; 32])), Err(StoreError::Gone(_))));
}

#[test]
fn an_unfinished_blob_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let blobs = files(root.path());
    let mut writer = blobs.writer();
    writer.write(b"half").unwrap();
    assert_eq!(unfinished(root.path()), 0, "nothing yet of what may be a row");
    writer.write(&large(b"more")).unwrap();
    assert_eq!(unfinished(root.path()), 1);
    drop(writer);
    assert_eq!(unfinished(root.path()), 0);
}

#[test]
fn the_same_octets_twice_are_one_file_and_a_damaged_one_is_replaced() {
    let root = tempfile::tempdir().unwrap();
    let blobs = files(root.path());
    let twice = large(b"twice");
    let id = keep(&blobs, &twice);
    assert_eq!(keep(&blobs, &twice), id);
    let path = blobs.shared.path(&id);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, b"tw").unwrap();
    assert_eq!(keep(&blobs, &twice), id);
    assert_eq!(octets(&blobs, &id), twice);
    assert_eq!(unfinished(root.path()), 0);
}

#[test]
fn octets_that_were_not_hashed_are_never_finished() {
    let root = tempfile::tempdir().unwrap();
    let blobs = files(root.path());
    let mut writer = blobs.writer();
    writer.write(&large(b"hashed")).unwrap();
    // What a write that failed half-way leaves behind.
    writer.file.as_mut().unwrap().file.write_all(b"not").unwrap();
    assert!(matches!(wait(writer.finish()), Err(StoreError::Failed(_))));
    assert_eq!(unfinished(root.path()), 0);
}

#[test]
fn a_sweep_removes_what_nothing_names_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let blobs = files(root.path());
    let live = keep(&blobs, &large(b"live"));
    let orphan = keep(&blobs, &large(b"orphan"));
    fs::write(root.path().join(TMP).join("crashed"), b"half").unwrap();
    fs::write(root.path().join("README"), b"a person's own note").unwrap();
    assert_eq!(wait(blobs.sweep(&HashSet::from([live]))).unwrap(), 2);
    assert_eq!(octets(&blobs, &live), large(b"live"));
    assert!(blobs.open(&orphan).is_err());
    assert!(root.path().join("README").exists());
    assert_eq!(wait(blobs.sweep(&HashSet::from([live]))).unwrap(), 0);
}

#[test]
fn writers_of_the_same_octets_at_once_agree() {
    let root = tempfile::tempdir().unwrap();
    let blobs = files(root.path());
    let ids: HashSet<BlobId> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(|| keep(&blobs, &[5; 100_000]))).collect();
        writers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    for id in ids {
        assert_eq!(octets(&blobs, &id), [5; 100_000]);
    }
    assert_eq!(unfinished(root.path()), 0);
}

#[test]
fn a_full_disk_is_told_apart() {
    let path = Path::new("x");
    assert!(matches!(io_error(path, ErrorKind::StorageFull.into()), StoreError::Full(_)));
    assert!(matches!(io_error(path, ErrorKind::QuotaExceeded.into()), StoreError::Full(_)));
    assert!(matches!(io_error(path, ErrorKind::NotFound.into()), StoreError::Failed(_)));
}

#[test]
fn an_id_reads_only_as_it_is_written() {
    let id = BlobId([0xab; 32]);
    assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{id}\""));
    assert_eq!(serde_json::from_str::<BlobId>(&format!("\"{id}\"")).unwrap(), id);
    assert!(id.to_string().to_uppercase().parse::<BlobId>().is_err());
    assert!("../../etc/passwd".parse::<BlobId>().is_err());
}
