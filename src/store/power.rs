//! For tests: what a power cut at any moment could have left on a disk.
//!
//! A [`Journal`] writes down every change that goes through a
//! [`Disk`](super::disk::Disk), and [`Journal::image`] makes a folder that the
//! disk could have held after the first so many of them. Nothing is promised
//! of what was not synced: each write since the last sync of its file is
//! there, is missing, or is there in part (whole sectors), in any order; each
//! name that was made, moved or removed since the last sync of its folder is
//! as before or as after; a rename may leave either name, both, or none. What
//! the code opens afterwards are real files.
//!
//! Not modelled: a disk that acknowledges a sync and forgets, and sectors that
//! are half old and half new.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::disk::{Change, Disk, Watch};

/// The unit that a disk writes whole or not at all.
const SECTOR: usize = 512;

/// A change, kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    Create(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    SetLength(PathBuf, u64),
    Sync(PathBuf),
    MakeFolder(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncFolder(PathBuf),
}

/// Everything that was changed under one folder, in order.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    kept: Mutex<Vec<Kept>>,
}

impl Watch for Journal {
    fn changed(&self, change: Change<'_>) {
        let own = Path::to_path_buf;
        let kept = match change {
            Change::Create(path) => Kept::Create(own(path)),
            Change::Write { path, offset, octets } => Kept::Write(own(path), offset, octets.to_vec()),
            Change::SetLength { path, length } => Kept::SetLength(own(path), length),
            Change::Sync(path) => Kept::Sync(own(path)),
            Change::MakeFolder(path) => Kept::MakeFolder(own(path)),
            Change::Rename { from, to } => Kept::Rename(own(from), own(to)),
            Change::Link { from, to } => Kept::Link(own(from), own(to)),
            Change::Remove(path) => Kept::Remove(own(path)),
            Change::SyncFolder(path) => Kept::SyncFolder(own(path)),
        };
        self.lock().push(kept);
    }
}

/// Small, and the same everywhere: xorshift64*.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % end.max(1)
    }
}

/// A file's octets on the disk, and the writes that may or may not be.
#[derive(Debug, Clone, Default)]
struct Inode {
    durable: Vec<u8>,
    since: Vec<Since>,
}

#[derive(Debug, Clone)]
enum Since {
    Write(u64, Vec<u8>),
    Length(u64),
}

impl Since {
    fn apply(&self, octets: &mut Vec<u8>) {
        match self {
            Since::Write(offset, new) => {
                let (from, end) = (usize::try_from(*offset).unwrap(), usize::try_from(*offset).unwrap() + new.len());
                if octets.len() < end {
                    octets.resize(end, 0);
                }
                octets[from..end].copy_from_slice(new);
            }
            Since::Length(length) => octets.resize(usize::try_from(*length).unwrap(), 0),
        }
    }
}

/// A name that was made (to an inode) or removed.
#[derive(Debug, Clone)]
struct Renamed {
    name: PathBuf,
    to: Option<usize>,
}

#[derive(Debug, Default)]
struct Model {
    inodes: Vec<Inode>,
    /// As the running system sees them.
    now: BTreeMap<PathBuf, usize>,
    /// As they are on the disk.
    durable: BTreeMap<PathBuf, usize>,
    folders_now: Vec<PathBuf>,
    folders_durable: Vec<PathBuf>,
    since: Vec<Renamed>,
}

impl Model {
    fn inode(&mut self, path: &Path) -> &mut Inode {
        let n = self.now[path];
        &mut self.inodes[n]
    }

    fn name(&mut self, path: &Path, to: Option<usize>) {
        match to {
            Some(n) => self.now.insert(path.to_owned(), n),
            None => self.now.remove(path),
        };
        self.since.push(Renamed { name: path.to_owned(), to });
    }

    fn play(&mut self, kept: &Kept) {
        match kept {
            Kept::Create(path) => {
                self.inodes.push(Inode::default());
                let n = self.inodes.len() - 1;
                self.name(path, Some(n));
            }
            Kept::Write(path, offset, octets) => {
                self.inode(path).since.push(Since::Write(*offset, octets.clone()));
            }
            Kept::SetLength(path, length) => self.inode(path).since.push(Since::Length(*length)),
            Kept::Sync(path) => {
                let inode = self.inode(path);
                for since in std::mem::take(&mut inode.since) {
                    since.apply(&mut inode.durable);
                }
            }
            Kept::MakeFolder(path) => self.folders_now.push(path.clone()),
            Kept::Rename(from, to) => {
                let n = self.now[from];
                self.name(to, Some(n));
                self.name(from, None);
            }
            Kept::Link(from, to) => {
                let n = self.now[from];
                self.name(to, Some(n));
            }
            Kept::Remove(path) => self.name(path, None),
            Kept::SyncFolder(folder) => {
                let inside = |path: &Path| path.parent() == Some(folder);
                for renamed in self.since.extract_if(.., |r| inside(&r.name)) {
                    match renamed.to {
                        Some(n) => self.durable.insert(renamed.name, n),
                        None => self.durable.remove(&renamed.name),
                    };
                }
                self.folders_durable.extend(self.folders_now.extract_if(.., |f| inside(f)));
            }
        }
    }

    /// Takes what chance leaves of everything that was not synced.
    fn cut(mut self, dice: &mut Dice) -> BTreeMap<PathBuf, Vec<u8>> {
        for renamed in std::mem::take(&mut self.since) {
            if dice.below(2) == 0 {
                match renamed.to {
                    Some(n) => self.durable.insert(renamed.name, n),
                    None => self.durable.remove(&renamed.name),
                };
            }
        }
        for folder in std::mem::take(&mut self.folders_now) {
            if dice.below(2) == 0 {
                self.folders_durable.push(folder);
            }
        }
        let mut files = BTreeMap::new();
        for (path, n) in &self.durable {
            let mut octets = self.inodes[*n].durable.clone();
            for since in &self.inodes[*n].since {
                match (since, dice.below(3)) {
                    (_, 0) => {}
                    (Since::Write(offset, new), 1) => {
                        for (k, sector) in new.chunks(SECTOR).enumerate() {
                            if dice.below(2) == 0 {
                                Since::Write(offset + (k * SECTOR) as u64, sector.to_vec()).apply(&mut octets);
                            }
                        }
                    }
                    (since, _) => since.apply(&mut octets),
                }
            }
            files.insert(path.clone(), octets);
        }
        files
    }
}

impl Journal {
    /// A disk that this journal watches.
    pub(crate) fn disk(self: &Arc<Self>) -> Disk {
        Disk::watched(self.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many changes there are so far.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The journal of code that forgets some changes: what `forgets` names
    /// never happened. Counts stay, so that moments stay.
    pub(crate) fn without(&self, forgets: impl Fn(&Kept) -> bool) -> Journal {
        // A sync of a folder that isn't there changes nothing.
        let nothing = || Kept::SyncFolder(PathBuf::from("/nowhere"));
        let kept = self.lock().iter().map(|k| if forgets(k) { nothing() } else { k.clone() }).collect();
        Journal { kept: Mutex::new(kept) }
    }

    /// A folder for an image, in memory where the system has such a place:
    /// what is synced there was worked out before.
    pub(crate) fn folder() -> tempfile::TempDir {
        let memory = Path::new("/dev/shm");
        let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        made.or_else(|_| tempfile::tempdir()).unwrap()
    }

    /// Fills the empty folder `into` with what a power cut after the first
    /// `changes` changes under `root` could have left there.
    pub(crate) fn image(&self, changes: usize, dice: &mut Dice, root: &Path, into: &Path) {
        let mut model = Model { folders_durable: vec![root.to_owned()], ..Model::default() };
        for kept in &self.lock()[..changes] {
            model.play(kept);
        }
        let folders = model.folders_durable.clone();
        let mut also = model.folders_now.clone();
        let mut later = dice.clone();
        also.retain(|_| later.below(2) == 0);
        let there = |path: &Path| folders.iter().chain(&also).any(|f| f == path);
        // A folder is reached only by way of folders that are there.
        let reached = |path: &Path| path.ancestors().skip(1).take_while(|a| *a != root).all(there);
        for folder in folders.iter().chain(&also).filter(|f| *f != root && reached(f)) {
            std::fs::create_dir_all(into.join(folder.strip_prefix(root).unwrap())).unwrap();
        }
        for (path, octets) in model.cut(dice) {
            let Ok(inside) = path.strip_prefix(root) else { continue };
            if reached(&path) {
                write_sparse(&into.join(inside), &octets);
            }
        }
    }
}

/// Long runs of zeros, which a database file has, cost nothing.
fn write_sparse(path: &Path, octets: &[u8]) {
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    const PAGE: usize = 4096;
    let file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path).unwrap();
    file.set_len(octets.len() as u64).unwrap();
    for (n, page) in octets.chunks(PAGE).enumerate() {
        if page.iter().any(|octet| *octet != 0) {
            file.write_all_at(page, (n * PAGE) as u64).unwrap();
        }
    }
}

#[cfg(test)]
mod tests;
