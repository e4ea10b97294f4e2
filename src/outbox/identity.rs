//! The gateway's identity on disk: its id and the seed of its signing key.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use zeroize::Zeroizing;

use crate::floor::digest::{from_hex, to_hex};
use crate::floor::identity::{SigningKey, signing_key};

/// First line of the file.
const HEADING: &str = "tollgate identity 1";
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
}

/// Who signs.
pub(super) struct Identity {
    /// Names this gateway in payloads.
    pub(super) gateway_id: String,
    /// Signs receipts.
    pub(super) signing: SigningKey,
}

impl Identity {
    /// Reads the file, or makes it where there is none.
    pub(super) fn load_or_make(path: &Path) -> Result<Identity, IdentityError> {
        let shown = || path.display().to_string();
        let io = |source| IdentityError::Io { path: shown(), source };
        match fs::metadata(path) {
            Ok(meta) if meta.permissions().mode() & 0o077 != 0 => return Err(IdentityError::Open(shown())),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => make(path)?,
            Err(e) => return Err(io(e)),
        }
        let text = Zeroizing::new(fs::read_to_string(path).map_err(io)?);
        parse(&text).ok_or_else(|| IdentityError::Damaged(shown()))
    }
}

fn parse(text: &str) -> Option<Identity> {
    let mut lines = text.lines();
    let heading = lines.next()?;
    let gateway_id = lines.next()?.strip_prefix("gateway ")?;
    let seed = Zeroizing::new(from_hex(lines.next()?.strip_prefix("seed ")?)?);
    let good = heading == HEADING && !gateway_id.is_empty() && lines.next().is_none();
    good.then(|| Identity { gateway_id: gateway_id.to_owned(), signing: signing_key(&seed) })
}

/// Writes a new identity whole or not at all; one that appeared meanwhile stays.
fn make(path: &Path) -> Result<(), IdentityError> {
    let random = |octets: &mut [u8]| getrandom::fill(octets).map_err(|e| IdentityError::Random(e.to_string()));
    let (mut id, mut seed) = ([0; ID_OCTETS], Zeroizing::new([0; 32]));
    random(&mut id)?;
    random(seed.as_mut())?;
    let text = Zeroizing::new(format!("{HEADING}\ngateway {}\nseed {}\n", to_hex(&id), to_hex(seed.as_ref())));
    let temp = path.with_extension(format!("{}.tmp", to_hex(&id)));
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temp)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        // A link, unlike a rename, never replaces a key that is in use.
        match fs::hard_link(&temp, path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        fs::remove_file(&temp)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
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
        let first = Identity::load_or_make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let again = Identity::load_or_make(&path).unwrap();
        assert_eq!(first.gateway_id, again.gateway_id);
        assert_eq!(first.signing.to_bytes(), again.signing.to_bytes());
    }

    #[test]
    fn an_open_or_damaged_file_is_refused_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.key");
        Identity::load_or_make(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Identity::load_or_make(&path), Err(IdentityError::Open(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "nonsense").unwrap();
        assert!(matches!(Identity::load_or_make(&path), Err(IdentityError::Damaged(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "nonsense");
    }
}
