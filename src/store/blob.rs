//! Content-addressed octets: those of messages. Small ones are rows of the
//! database, larger ones files beside it.
//!
//! `blobs/ab/<64 hexadecimal digits>`, named by SHA-256; unfinished ones in
//! `blobs/tmp`. Up to [`MAX_IN_DATABASE`] octets there is no file: a file of
//! its own costs a message two syncs that nobody shares with it, a row shares
//! the commit of everything that arrives at the same time.
//!
//! Promises: when [`BlobWriter::finish`] returned an id, the octets are on
//! disk, whole, and so are the folders that name a file; a crash at any point
//! leaves nothing half-written under a content address, only a temporary file
//! that [`Blobs::sweep`] reclaims. Doesn't know: who names a blob; the caller
//! writes the state that names it after `finish`, and sweeps only at start.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest, Sha256};

use super::disk::Disk;
use super::{BoxFuture, StoreError, Table, Writer, failpoint};
use crate::floor::digest::{digest, to_hex};

/// Mode of folders under the state folder.
pub(super) const FOLDER_MODE: u32 = 0o700;
/// Mode of files under the state folder.
pub(super) const FILE_MODE: u32 = 0o600;
/// Folder of unfinished files, beside the content addresses.
const TMP: &str = "tmp";
/// Most octets of a blob that is a row and no file.
pub const MAX_IN_DATABASE: usize = 32 * 1024;
/// Random octets in the name of an unfinished file.
const NAME_OCTETS: usize = 16;

digest! {
    /// The content address: SHA-256 of the octets.
    BlobId
}

/// The rows that small blobs are.
pub(super) trait Rows: Send + Sync + std::fmt::Debug {
    /// Makes the octets durable; those that are there already are replaced.
    fn put(&self, id: BlobId, octets: Arc<[u8]>) -> BoxFuture<'_, Result<(), StoreError>>;
    /// The octets, where there are any.
    fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError>;
    /// Removes every row that `live` doesn't name; says how many.
    fn sweep<'r>(&'r self, live: &'r HashSet<BlobId>) -> BoxFuture<'r, Result<usize, StoreError>>;
}

/// The content-addressed octets of one state folder.
#[derive(Debug)]
pub struct Blobs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    disk: Disk,
    rows: Arc<dyn Rows>,
    /// Subfolders whose own name is known to be on disk. One made by another
    /// writer a moment ago exists, but isn't durable until the root is synced.
    durable: [AtomicBool; 256],
}

/// The octets of a blob, from its first on.
#[derive(Debug)]
pub enum BlobReader {
    /// Of a row.
    Row(Cursor<Vec<u8>>),
    /// Of a file.
    File(File),
}

impl Read for BlobReader {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match self {
            BlobReader::Row(octets) => octets.read(out),
            BlobReader::File(file) => file.read(out),
        }
    }
}

impl Blobs {
    /// Opens the files under `root`, making the folders where they are missing.
    pub(super) fn at(root: &Path, disk: Disk, rows: Arc<dyn Rows>) -> Result<Blobs, StoreError> {
        for folder in [root.to_owned(), root.join(TMP)] {
            make_folder(&disk, &folder)?;
        }
        sync_folder(&disk, root)?;
        if let Some(parent) = root.parent() {
            sync_folder(&disk, parent)?;
        }
        let durable = std::array::from_fn(|_| AtomicBool::new(false));
        Ok(Blobs { shared: Arc::new(Shared { root: root.to_owned(), disk, rows, durable }) })
    }

    /// Begins a blob. Dropped unfinished, it leaves nothing.
    pub fn writer(&self) -> BlobWriter {
        BlobWriter { shared: self.shared.clone(), octets: Vec::new(), file: None, hasher: Sha256::new(), length: 0 }
    }

    /// Opens a finished blob for reading; [`StoreError::Gone`] where there is
    /// none, which no further try changes.
    pub fn open(&self, id: &BlobId) -> Result<BlobReader, StoreError> {
        if let Some(octets) = self.shared.rows.get(id)? {
            return Ok(BlobReader::Row(Cursor::new(octets)));
        }
        let path = self.shared.path(id);
        // Small ones too are files in a state from before there were rows.
        File::open(&path).map(BlobReader::File).map_err(|e| match e.kind() {
            ErrorKind::NotFound => StoreError::Gone(format!("{}: {e}", path.display())),
            _ => io_error(&path, e),
        })
    }

    /// Removes unfinished files and every content address that `live` doesn't
    /// name; says how many. Only at start: a blob that is being written is
    /// not named yet.
    pub async fn sweep(&self, live: &HashSet<BlobId>) -> Result<usize, StoreError> {
        let mut removed = self.shared.rows.sweep(live).await?;
        for folder in entries(&self.shared.root)? {
            let unfinished = folder.file_name().is_some_and(|name| name == TMP);
            for file in entries(&folder)? {
                let id = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<BlobId>().ok());
                // A name that isn't ours is left alone.
                if unfinished || id.is_some_and(|id| !live.contains(&id)) {
                    self.shared.disk.remove(&file).map_err(|e| io_error(&file, e))?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }
}

impl Shared {
    fn path(&self, id: &BlobId) -> PathBuf {
        let name = id.to_string();
        self.root.join(&name[..2]).join(name)
    }

    /// A new unfinished file.
    fn unfinished(&self) -> Result<Unfinished, StoreError> {
        let mut name = [0; NAME_OCTETS];
        getrandom::fill(&mut name).map_err(|e| StoreError::Failed(e.to_string()))?;
        let path = self.root.join(TMP).join(to_hex(&name));
        let file = self.disk.create(&path, FILE_MODE).map_err(|e| io_error(&path, e))?;
        Ok(Unfinished { file, written: 0, temp: Temp { path, disk: self.disk.clone(), kept: false } })
    }
}

/// An unfinished file's path; removed when dropped, unless it was kept.
#[derive(Debug)]
struct Temp {
    path: PathBuf,
    disk: Disk,
    kept: bool,
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.kept {
            // What stays is swept at start.
            let _ = self.disk.remove(&self.path);
        }
    }
}

/// A file on its way to a content address.
#[derive(Debug)]
struct Unfinished {
    file: File,
    written: u64,
    temp: Temp,
}

impl Unfinished {
    fn write(&mut self, octets: &[u8]) -> Result<(), StoreError> {
        let (path, disk) = (&self.temp.path, &self.temp.disk);
        disk.write(&mut self.file, path, self.written, octets).map_err(|e| io_error(path, e))?;
        self.written += octets.len() as u64;
        Ok(())
    }

    /// Makes the file durable under its content address.
    fn finish(self, shared: &Shared, id: &BlobId, length: u64) -> Result<(), StoreError> {
        let Unfinished { file, mut temp, .. } = self;
        let disk = &shared.disk;
        // A write that failed half-way left octets that were not hashed.
        let written = file.metadata().map_err(|e| io_error(&temp.path, e))?.len();
        if written != length {
            return Err(StoreError::Failed(format!("{}: {written} octets instead of {length}", temp.path.display())));
        }
        disk.sync(&file, &temp.path).map_err(|e| io_error(&temp.path, e))?;
        drop(file);
        let path = shared.path(id);
        let folder = path.parent().unwrap_or(&shared.root);
        make_folder(disk, folder)?;
        let there = fs::metadata(&path).is_ok_and(|existing| existing.is_file() && existing.len() == length);
        if !there {
            disk.rename(&temp.path, &path).map_err(|e| io_error(&path, e))?;
            temp.kept = true;
        }
        // Also where the file was there already: whoever put it there may not
        // have come to this line yet.
        sync_folder(disk, folder)?;
        let durable = &shared.durable[usize::from(id.0[0])];
        if !durable.load(Ordering::Acquire) {
            sync_folder(disk, &shared.root)?;
            durable.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// Octets that were all written.
#[derive(Debug)]
pub struct Settled {
    /// Their content address.
    pub id: BlobId,
    /// How many.
    pub length: u64,
    /// The octets, where they are no blob yet; a file is durable already.
    pub row: Option<Arc<[u8]>>,
}

/// Makes small octets a blob, together with the rest of a transaction.
pub fn put(w: &mut dyn Writer, id: &BlobId, octets: &[u8]) -> Result<(), StoreError> {
    w.put(Table::Octets, &id.0, octets)
}

/// A blob being written.
#[derive(Debug)]
pub struct BlobWriter {
    shared: Arc<Shared>,
    /// All of them, while there is no file.
    octets: Vec<u8>,
    file: Option<Unfinished>,
    hasher: Sha256,
    length: u64,
}

impl BlobWriter {
    /// Appends octets.
    pub fn write(&mut self, octets: &[u8]) -> Result<(), StoreError> {
        match &mut self.file {
            Some(file) => file.write(octets)?,
            None if self.octets.len().saturating_add(octets.len()) <= MAX_IN_DATABASE => {
                self.octets.extend_from_slice(octets);
            }
            None => {
                let mut file = self.shared.unfinished()?;
                file.write(&std::mem::take(&mut self.octets))?;
                file.write(octets)?;
                self.file = Some(file);
            }
        }
        self.hasher.update(octets);
        self.length += octets.len() as u64;
        Ok(())
    }

    /// How many octets were written so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Makes the octets durable under their content address; returns the
    /// address and the length in octets.
    pub async fn finish(self) -> Result<(BlobId, u64), StoreError> {
        let shared = self.shared.clone();
        let Settled { id, length, row } = self.settle().await?;
        if let Some(octets) = row {
            shared.rows.put(id, octets).await?;
        }
        Ok((id, length))
    }

    /// As [`BlobWriter::finish`], but what is to be a row is left to the
    /// caller's own transaction, by [`put`].
    pub async fn settle(self) -> Result<Settled, StoreError> {
        let BlobWriter { shared, octets, file, hasher, length } = self;
        let id = BlobId(hasher.finalize().into());
        let Some(file) = file else { return Ok(Settled { id, length, row: Some(octets.into()) }) };
        let doing = failpoint::doing();
        let finished =
            tokio::task::spawn_blocking(move || failpoint::here(doing, || file.finish(&shared, &id, length)));
        finished.await.map_err(|e| StoreError::Failed(e.to_string()))??;
        Ok(Settled { id, length, row: None })
    }
}

/// Makes one folder of mode 0700; one that exists is fine.
pub(super) fn make_folder(disk: &Disk, path: &Path) -> Result<bool, StoreError> {
    disk.make_folder(path, FOLDER_MODE).map_err(|e| io_error(path, e))
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(disk: &Disk, path: &Path) -> Result<(), StoreError> {
    disk.sync_folder(path).map_err(|e| io_error(path, e))
}

/// The paths in a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let read = fs::read_dir(folder).map_err(|e| io_error(folder, e))?;
    read.map(|entry| entry.map(|e| e.path()).map_err(|e| io_error(folder, e))).collect()
}

/// A file system error; a full disk or quota is told apart.
pub(super) fn io_error(path: &Path, error: std::io::Error) -> StoreError {
    let text = format!("{}: {error}", path.display());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full(text),
        _ => StoreError::Failed(text),
    }
}

#[cfg(test)]
mod tests;
