//! Files that the configuration names: they must be there, be readable, and,
//! where they hold a secret, not be everybody's.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::table::{Found, Origin, Source};

/// Any access of users other than the owner and the group.
const OTHERS: u32 = 0o007;

/// Notes a file that can't be read.
pub(super) fn readable(source: &Source<'_>, found: &Found<PathBuf>) -> bool {
    match File::open(&found.value).and_then(|f| f.metadata()) {
        Ok(meta) if meta.is_dir() => {
            source.problem(&found.at, format!("{} is a folder", found.value.display()));
            false
        }
        Ok(_) => true,
        Err(e) => {
            source.problem(&found.at, format!("{} can't be read: {e}", found.value.display()));
            false
        }
    }
}

/// Notes a file that can't be read or that everybody can.
pub(super) fn readable_secret(source: &Source<'_>, found: &Found<PathBuf>) {
    if !readable(source, found) {
        return;
    }
    let mode = std::fs::metadata(&found.value).map_or(0, |m| m.permissions().mode());
    if mode & OTHERS != 0 {
        let path = found.value.display();
        source.problem(&found.at, format!("every user can use {path}; `chmod 600 {path}`"));
    }
}

/// Notes a password in a configuration file that everybody can read.
pub(super) fn holder_of_secret(source: &Source<'_>, at: &Origin) {
    let mode = std::fs::metadata(&source.file).map_or(0, |m| m.permissions().mode());
    if mode & OTHERS != 0 {
        let path = source.file.display();
        source.problem(at, format!("every user can read this file; `chmod 600 {path}`, or use password_file"));
    }
}
