//! The gateway's identity on disk: its id, the seed of its signing key, and
//! the public keys that it signed with before.
//!
//! ```text
//! tollgate identity 1
//! gateway 0123456789abcdef
//! seed <64 hexadecimal digits>
//! retired <base64>              (one line for each key before, oldest first)
//! ```

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use zeroize::Zeroizing;

use crate::floor::digest::{from_hex, to_hex};
use crate::floor::identity::{SigningKey, VerifyingKey, from_text, signing_key, to_text};
use crate::store::disk::Disk;

/// First line of the file.
const HEADING: &str = "tollgate identity 1";
/// Mode of the file.
const MODE: u32 = 0o600;
/// Most keys that were retired; one more is refused.
const MAX_RETIRED: usize = 1000;
/// Random octets of a gateway id.
const ID_OCTETS: usize = 8;

/// Why the identity can't be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file system failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Others can read the signing key.
    #[error("{0} can be read by others; chmod 600 it, and replace it if they did")]
    Open(String),
    /// The file is not an identity.
    #[error("{0} is not an identity file")]
    Damaged(String),
    /// The system has no randomness.
    #[error("no randomness: {0}")]
    Random(String),
    /// The key was changed too often.
    #[error("the signing key was changed {MAX_RETIRED} times")]
    TooMany,
}

/// Who signs.
#[derive(Clone)]
pub(super) struct Identity {
    /// Names this gateway in payloads.
    pub(super) gateway_id: String,
    /// Signs receipts.
    pub(super) signing: SigningKey,
    /// Keys before it, oldest first.
    pub(super) retired: Vec<VerifyingKey>,
}

impl Identity {
    /// Reads the file, or makes it where there is none.
    pub(super) fn load_or_make(path: &Path, disk: &Disk) -> Result<Identity, IdentityError> {
        let shown = || path.display().to_string();
        let io = |source| IdentityError::Io { path: shown(), source };
        // What a crash left of an earlier write may hold a seed.
        remove_unfinished(path, disk).map_err(io)?;
        match fs::metadata(path) {
            Ok(meta) if meta.permissions().mode() & 0o077 != 0 => return Err(IdentityError::Open(shown())),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => make(path, disk)?,
            Err(e) => return Err(io(e)),
        }
        let text = Zeroizing::new(fs::read_to_string(path).map_err(io)?);
        parse(&text).ok_or_else(|| IdentityError::Damaged(shown()))
    }

    /// An identity of the same gateway with a new key, on disk in place of
    /// this one. Nobody can sign with the key before any more.
    pub(super) fn rotate(&self, path: &Path, disk: &Disk) -> Result<Identity, IdentityError> {
        if self.retired.len() >= MAX_RETIRED {
            return Err(IdentityError::TooMany);
        }
        let seed = random_seed()?;
        let mut retired = self.retired.clone();
        retired.push(self.signing.verifying_key());
        let new = Identity { gateway_id: self.gateway_id.clone(), signing: signing_key(&seed), retired };
        let temporary = path.with_extension("tmp");
        disk.replace(path, &temporary, MODE, new.text(&seed).as_bytes())
            .map_err(|source| IdentityError::Io { path: path.display().to_string(), source })?;
        Ok(new)
    }

    fn text(&self, seed: &[u8; 32]) -> Zeroizing<String> {
        let retired: String = self.retired.iter().map(|key| format!("retired {}\n", to_text(key))).collect();
        Zeroizing::new(format!("{HEADING}\ngateway {}\nseed {}\n{retired}", self.gateway_id, to_hex(seed)))
    }

    /// Every key that receipts may bear, the current one first.
    pub(super) fn verifying_keys(&self) -> Vec<VerifyingKey> {
        std::iter::once(self.signing.verifying_key()).chain(self.retired.iter().rev().copied()).collect()
    }
}

fn parse(text: &str) -> Option<Identity> {
    let mut lines = text.lines();
    let heading = lines.next()?;
    let gateway_id = lines.next()?.strip_prefix("gateway ")?;
    let seed = Zeroizing::new(from_hex(lines.next()?.strip_prefix("seed ")?)?);
    let retired: Option<Vec<VerifyingKey>> =
        lines.map(|line| line.strip_prefix("retired ").and_then(from_text)).collect();
    let identity = Identity { gateway_id: gateway_id.to_owned(), signing: signing_key(&seed), retired: retired? };
    (heading == HEADING && !gateway_id.is_empty()).then_some(identity)
}

/// Removes `identity.tmp` and `identity.….tmp`.
fn remove_unfinished(path: &Path, disk: &Disk) -> io::Result<()> {
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem()) else { return Ok(()) };
    let stem = format!("{}.", stem.to_string_lossy());
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(&stem) && name.ends_with(".tmp") {
            disk.remove(&folder.join(name))?;
        }
    }
    Ok(())
}

fn random_seed() -> Result<Zeroizing<[u8; 32]>, IdentityError> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(seed.as_mut()).map_err(|e| IdentityError::Random(e.to_string()))?;
    Ok(seed)
}

/// Writes a new identity whole or not at all; one that appeared meanwhile stays.
fn make(path: &Path, disk: &Disk) -> Result<(), IdentityError> {
    let mut id = [0; ID_OCTETS];
    getrandom::fill(&mut id).map_err(|e| IdentityError::Random(e.to_string()))?;
    let seed = random_seed()?;
    let new = Identity { gateway_id: to_hex(&id), signing: signing_key(&seed), retired: Vec::new() };
    let text = new.text(&seed);
    let temp = path.with_extension(format!("{}.tmp", to_hex(&id)));
    let write = || -> io::Result<()> {
        let mut file = disk.create(&temp, MODE)?;
        disk.write(&mut file, &temp, 0, text.as_bytes())?;
        disk.sync(&file, &temp)?;
        // A link, unlike a rename, never replaces a key that is in use.
        match disk.link(&temp, path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        disk.remove(&temp)?;
        path.parent().map_or(Ok(()), |folder| disk.sync_folder(folder))
    };
    write().map_err(|source| IdentityError::Io { path: path.display().to_string(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_made_once_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.key");
        let first = Identity::load_or_make(&path, &Disk::default()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let again = Identity::load_or_make(&path, &Disk::default()).unwrap();
        assert_eq!(first.gateway_id, again.gateway_id);
        assert_eq!(first.signing.to_bytes(), again.signing.to_bytes());
    }

    #[test]
    fn an_open_or_damaged_file_is_refused_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.key");
        Identity::load_or_make(&path, &Disk::default()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Identity::load_or_make(&path, &Disk::default()), Err(IdentityError::Open(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "nonsense").unwrap();
        assert!(matches!(Identity::load_or_make(&path, &Disk::default()), Err(IdentityError::Damaged(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "nonsense");
    }

    #[test]
    fn a_new_key_leaves_the_ones_before_to_verify_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.key");
        let disk = Disk::default();
        let first = Identity::load_or_make(&path, &disk).unwrap();
        let second = first.rotate(&path, &disk).unwrap();
        let third = second.rotate(&path, &disk).unwrap();
        let key = |identity: &Identity| identity.signing.verifying_key();
        assert_eq!(third.verifying_keys(), [key(&third), key(&second), key(&first)]);
        let again = Identity::load_or_make(&path, &disk).unwrap();
        assert_eq!(again.verifying_keys(), third.verifying_keys());
        assert_eq!(
            (again.gateway_id.as_str(), again.signing.to_bytes()),
            (&*first.gateway_id, third.signing.to_bytes())
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&to_hex(&first.signing.to_bytes())), "the seed before is gone");
        fs::write(&path, text + "retired nonsense\n").unwrap();
        assert!(matches!(Identity::load_or_make(&path, &disk), Err(IdentityError::Damaged(_))));
    }
}
