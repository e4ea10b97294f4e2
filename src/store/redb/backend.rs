//! The database's file, by way of [`Disk`].

use std::ops::Bound;
use std::path::PathBuf;

use ::redb::backends::FileBackend;
use ::redb::{BackendError, StorageBackend};

use crate::store::disk::{Change, Disk};
use crate::store::failpoint;

/// The database's file, by way of the disk.
#[derive(Debug)]
pub(super) struct OnDisk {
    pub(super) file: FileBackend,
    pub(super) path: PathBuf,
    pub(super) disk: Disk,
}

pub(super) type BackendResult<T> = Result<T, std::io::Error>;

impl StorageBackend for OnDisk {
    fn len(&self) -> BackendResult<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> BackendResult<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, length: u64) -> BackendResult<()> {
        // Which transaction finds the file too short is a matter of timing.
        failpoint::hit("db.length");
        self.disk.room()?;
        self.file.set_len(length)?;
        self.disk.told(Change::SetLength { path: &self.path, length });
        Ok(())
    }

    fn sync_data(&self) -> BackendResult<()> {
        failpoint::hit_here("db.sync");
        self.file.sync_data()?;
        self.disk.told(Change::Sync(&self.path));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> BackendResult<()> {
        failpoint::hit_here("db.write");
        self.disk.room()?;
        self.file.write(offset, data)?;
        self.disk.told(Change::Write { path: &self.path, offset, octets: data });
        Ok(())
    }

    fn close(&self) -> BackendResult<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
