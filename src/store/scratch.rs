//! A file without a name: octets that are too many to hold in memory and
//! that nobody needs after a crash.
//!
//! Promises: no name is left behind, whatever happens after it was opened.
//! Doesn't know: what is in it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::StoreError;
use super::blob::{FILE_MODE, io_error};
use crate::floor::digest::to_hex;

/// Random octets in the name that it has for a moment.
const NAME_OCTETS: usize = 16;

/// Opens a new file in the state folder for writing and reading.
pub fn scratch(state_dir: &Path) -> Result<File, StoreError> {
    let mut name = [0; NAME_OCTETS];
    getrandom::fill(&mut name).map_err(|e| StoreError::Failed(e.to_string()))?;
    let path = state_dir.join(format!("scratch-{}", to_hex(&name)));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(&path);
    let file = file.map_err(|e| io_error(&path, e))?;
    fs::remove_file(&path).map_err(|e| io_error(&path, e))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn it_holds_octets_and_leaves_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = scratch(folder.path()).unwrap();
        file.write_all(b"abc").unwrap();
        file.rewind().unwrap();
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"abc");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
