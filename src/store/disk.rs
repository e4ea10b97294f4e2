//! Every change of the file system that durable state depends on.
//!
//! Promises: each change passes here, is a failpoint ([`super::failpoint`])
//! before it happens, and is told to a [`Watch`] after it did. Tests watch,
//! to work out what a power cut at any moment could have left. Doesn't know:
//! what the files mean.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::failpoint;

/// One change that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// A new, empty file.
    Create(&'a Path),
    /// Octets of a file.
    Write {
        /// The file.
        path: &'a Path,
        /// Where they begin.
        offset: u64,
        /// What was written.
        octets: &'a [u8],
    },
    /// The length of a file.
    SetLength {
        /// The file.
        path: &'a Path,
        /// Octets.
        length: u64,
    },
    /// A file's octets and length are on disk; its name need not be.
    Sync(&'a Path),
    /// A new folder.
    MakeFolder(&'a Path),
    /// A file has another name; one that had it is gone.
    Rename {
        /// The name before.
        from: &'a Path,
        /// The name after.
        to: &'a Path,
    },
    /// A file has a second name.
    Link {
        /// The first.
        from: &'a Path,
        /// The second.
        to: &'a Path,
    },
    /// A name is gone.
    Remove(&'a Path),
    /// The names in a folder are on disk.
    SyncFolder(&'a Path),
}

/// Is asked before something is made or written, and told what was changed.
pub trait Watch: Send + Sync + std::fmt::Debug {
    /// Whether there is room; tests say no.
    fn room(&self) -> io::Result<()> {
        Ok(())
    }

    /// It was carried out.
    fn changed(&self, change: Change<'_>);
}

/// The way to the file system.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    watch: Option<Arc<dyn Watch>>,
}

impl Disk {
    /// With a watch.
    pub fn watched(watch: Arc<dyn Watch>) -> Disk {
        Disk { watch: Some(watch) }
    }

    pub(super) fn room(&self) -> io::Result<()> {
        self.watch.as_ref().map_or(Ok(()), |watch| watch.room())
    }

    pub(super) fn told(&self, change: Change<'_>) {
        if let Some(watch) = &self.watch {
            watch.changed(change);
        }
    }

    /// A new file of this mode; one that is there is an error.
    pub fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        failpoint::hit_here("file.create");
        self.room()?;
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        self.told(Change::Create(path));
        Ok(file)
    }

    /// Appends to a file that is `offset` octets long.
    pub fn write(&self, file: &mut File, path: &Path, offset: u64, octets: &[u8]) -> io::Result<()> {
        failpoint::hit_here("file.write");
        self.room()?;
        file.write_all(octets)?;
        self.told(Change::Write { path, offset, octets });
        Ok(())
    }

    /// Makes a file's octets durable.
    pub fn sync(&self, file: &File, path: &Path) -> io::Result<()> {
        failpoint::hit_here("file.sync");
        file.sync_all()?;
        self.told(Change::Sync(path));
        Ok(())
    }

    /// Gives a file another name.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        failpoint::hit_here("file.rename");
        fs::rename(from, to)?;
        self.told(Change::Rename { from, to });
        Ok(())
    }

    /// Gives a file a second name; one that has it already is an error.
    pub fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        failpoint::hit_here("file.link");
        fs::hard_link(from, to)?;
        self.told(Change::Link { from, to });
        Ok(())
    }

    /// Removes a name.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        failpoint::hit_here("file.remove");
        fs::remove_file(path)?;
        self.told(Change::Remove(path));
        Ok(())
    }

    /// Makes one folder; says whether it is new.
    pub fn make_folder(&self, path: &Path, mode: u32) -> io::Result<bool> {
        if path.is_dir() {
            return Ok(false);
        }
        failpoint::hit_here("folder.make");
        self.room()?;
        match DirBuilder::new().mode(mode).create(path) {
            Ok(()) => {
                self.told(Change::MakeFolder(path));
                Ok(true)
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Makes the names in a folder durable.
    pub fn sync_folder(&self, path: &Path) -> io::Result<()> {
        failpoint::hit_here("folder.sync");
        let place = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        File::open(place)?.sync_all()?;
        self.told(Change::SyncFolder(path));
        Ok(())
    }

    /// Replaces a file whole or not at all: under `temporary` until it is on
    /// disk, then by its name, then the name durable.
    pub fn replace(&self, path: &Path, temporary: &Path, mode: u32, octets: &[u8]) -> io::Result<()> {
        match fs::remove_file(temporary) {
            // Left by a process that was stopped here.
            Ok(()) => self.told(Change::Remove(temporary)),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let mut file = self.create(temporary, mode)?;
        let written = self
            .write(&mut file, temporary, 0, octets)
            .and_then(|()| self.sync(&file, temporary))
            .and_then(|()| self.rename(temporary, path));
        if let Err(error) = written {
            // The half-written file is of no use; the first error is the one to tell.
            let _ = fs::remove_file(temporary);
            return Err(error);
        }
        self.sync_folder(path.parent().unwrap_or(Path::new(".")))
    }
}
