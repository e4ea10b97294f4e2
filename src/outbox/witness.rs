//! A file outside the state folder that knows how far the ledger went.
//!
//! ```text
//! tollgate witness 1
//! gateway 0123456789abcdef
//! head N:HASH
//! ```
//!
//! Whoever restores the state folder from a backup brings a ledger back that
//! is shorter than the witness says, or that went on otherwise; what is open
//! in it may have been decided or sent since.
//!
//! Promises: the head of every attempt to send is here, durable, before the
//! provider is called, so a restored state never sends twice by itself; other
//! transitions follow within a minute. Doesn't know: a backup that holds this
//! file too, such as one of the whole disk. Against that only a head kept on
//! another machine helps (`tollgate ledger verify --head`).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::floor::ledger::LedgerHead;
use crate::store::disk::Disk;

/// First line of the file.
const HEADING: &str = "tollgate witness 1";
/// Mode of the file; it holds no secret.
const MODE: u32 = 0o600;

/// Writers of this process take turns, so that no head goes back.
static WRITING: Mutex<()> = Mutex::new(());

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) gateway: String,
    pub(super) head: LedgerHead,
}

/// The file.
#[derive(Debug)]
pub(super) struct Witness {
    path: PathBuf,
    disk: Disk,
}

impl Witness {
    pub(super) fn at(path: &Path, disk: Disk) -> Witness {
        Witness { path: path.to_owned(), disk }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What was witnessed; `None` where there is no such file, or one that
    /// says nothing.
    pub(super) fn read(&self) -> io::Result<Option<Seen>> {
        match std::fs::read(&self.path) {
            Ok(octets) => Ok(String::from_utf8(octets).ok().as_deref().and_then(parse)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Witnesses `head`, durably, unless a later one of this gateway is
    /// witnessed already.
    pub(super) fn advance(&self, gateway: &str, head: LedgerHead) -> io::Result<()> {
        let _turn = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.read()?;
        if seen.is_some_and(|seen| seen.gateway == gateway && seen.head.number >= head.number) {
            return Ok(());
        }
        self.put(gateway, head)
    }

    /// Witnesses `head` whatever was witnessed before.
    pub(super) fn reset(&self, gateway: &str, head: LedgerHead) -> io::Result<()> {
        let _turn = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        self.put(gateway, head)
    }

    fn put(&self, gateway: &str, head: LedgerHead) -> io::Result<()> {
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(".tmp");
        let text = format!("{HEADING}\ngateway {gateway}\nhead {head}\n");
        self.disk.replace(&self.path, Path::new(&temporary), MODE, text.as_bytes())
    }
}

fn parse(text: &str) -> Option<Seen> {
    let mut lines = text.lines();
    let heading = lines.next()?;
    let gateway = lines.next()?.strip_prefix("gateway ")?.to_owned();
    let head = lines.next()?.strip_prefix("head ")?.parse().ok()?;
    (heading == HEADING).then_some(Seen { gateway, head })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::digest::Hash;

    #[test]
    fn a_head_reads_back_and_never_goes_back() {
        let folder = tempfile::tempdir().unwrap();
        let witness = Witness::at(&folder.path().join("state.witness"), Disk::default());
        assert_eq!(witness.read().unwrap(), None);
        let head = |number| LedgerHead { number, hash: Hash([7; 32]) };
        witness.advance("g", head(5)).unwrap();
        witness.advance("g", head(4)).unwrap();
        assert_eq!(witness.read().unwrap(), Some(Seen { gateway: "g".into(), head: head(5) }));
        witness.advance("other", head(1)).unwrap();
        assert_eq!(witness.read().unwrap().unwrap().head, head(1));
        witness.advance("other", head(9)).unwrap();
        witness.reset("other", head(2)).unwrap();
        assert_eq!(witness.read().unwrap().unwrap().head, head(2));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        std::fs::write(witness.path(), "nonsense").unwrap();
        assert_eq!(witness.read().unwrap(), None);
    }
}
