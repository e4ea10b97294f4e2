//! Python programs: ours under `tests/clients/py`, others' in a private
//! environment that `tests/run imap` makes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::program::{Ran, finish};

/// Names the folder of the private environment.
const ENVIRONMENT: &str = "TOLLGATE_TEST_PYTHON";

/// Runs a script of `tests/clients/py` with the system's Python.
#[track_caller]
pub(crate) fn script(name: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new("python3");
    command.arg(path(name)).args(arguments);
    finish(command, b"")
}

/// The private environment's Python.
#[track_caller]
pub(crate) fn python() -> PathBuf {
    let folder =
        std::env::var_os(ENVIRONMENT).unwrap_or_else(|| panic!("{ENVIRONMENT} isn't set: bash tests/run imap"));
    Path::new(&folder).join("bin/python")
}

/// A script of ours.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/py").join(name)
}
