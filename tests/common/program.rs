//! Other people's programs, run to their end.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long one may take.
const LIMIT: Duration = Duration::from_secs(90);

/// What a program left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    line: String,
}

impl Ran {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Itself where the exit code is 0.
    #[track_caller]
    pub(crate) fn ok(self) -> Ran {
        self.code(0)
    }

    /// Itself where the exit code is this one.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Ran {
        let (text, stderr) = (self.text(), &self.stderr);
        assert_eq!(self.code, Some(code), "{}\nsaid: {text}\nand: {stderr}", self.line);
        self
    }
}

/// Runs a program without input.
#[track_caller]
pub(crate) fn run(program: impl AsRef<Path>, arguments: &[&str]) -> Ran {
    let mut command = Command::new(program.as_ref());
    command.args(arguments);
    finish(command, b"")
}

/// Runs a prepared command with this input.
#[track_caller]
pub(crate) fn finish(mut command: Command, input: &[u8]) -> Ran {
    let line = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{line} can't be run: {e}; see tests/run"));
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    let writer = thread::spawn(move || {
        // A program need not read its input.
        let _ = stdin.write_all(&input);
    });
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let out = thread::spawn(move || read_all(&mut out));
    let err = thread::spawn(move || read_all(&mut err));
    let began = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if began.elapsed() > LIMIT => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    writer.join().unwrap();
    let (stdout, stderr) = (out.join().unwrap(), err.join().unwrap());
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.is_some(), "{line} took longer than {LIMIT:?}\n{stderr}");
    Ran { code: status.and_then(|s| s.code()), stdout, stderr, line }
}

fn read_all(from: &mut impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    from.read_to_end(&mut all).unwrap();
    all
}

/// Runs a Python program of `tests/py`.
#[track_caller]
pub(crate) fn python(script: &str, arguments: &[&str]) -> Ran {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/py").join(script);
    let mut command = Command::new("python3");
    command.arg(path).args(arguments);
    finish(command, b"")
}
