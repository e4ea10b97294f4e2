//! Files that only their owner may read, written whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Mode of a file that holds a secret.
pub const PRIVATE_MODE: u32 = 0o600;

/// Writes `octets` to `path`: mode 0600 from the first octet, under another
/// name until they are on disk, replacing what was there.
pub fn write(path: &Path, octets: &[u8]) -> io::Result<()> {
    let (temporary, mut file) = temporary(path)?;
    let written =
        file.write_all(octets).and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&temporary, path));
    if let Err(e) = written {
        // The half-written file is of no use; the first error is the one to tell.
        let _ = std::fs::remove_file(&temporary);
        return Err(e);
    }
    sync_folder(path)
}

/// As [`write`], but an existing `path` is an error and stays as it is.
pub fn create(path: &Path, octets: &[u8]) -> io::Result<()> {
    let (temporary, mut file) = temporary(path)?;
    // A hard link fails where a file is already there; a rename would replace it.
    let written =
        file.write_all(octets).and_then(|()| file.sync_all()).and_then(|()| std::fs::hard_link(&temporary, path));
    let _ = std::fs::remove_file(&temporary);
    written?;
    sync_folder(path)
}

fn temporary(path: &Path) -> io::Result<(std::path::PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let open = || OpenOptions::new().write(true).create_new(true).mode(PRIVATE_MODE).open(&temporary);
    let file = open().or_else(|e| {
        if e.kind() != io::ErrorKind::AlreadyExists {
            return Err(e);
        }
        // Left by an earlier process that had our number and was stopped.
        std::fs::remove_file(&temporary)?;
        open()
    })?;
    Ok((temporary, file))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        Some(_) | None => File::open(".")?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_private_file_is_its_owners_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, PRIVATE_MODE);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn create_refuses_to_replace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.toml");
        create(&path, b"one").unwrap();
        assert_eq!(create(&path, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
