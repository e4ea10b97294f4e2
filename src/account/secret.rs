//! Provider passwords, from where the configuration says.
//!
//! Promises: a secret stands in no log, error or Debug output; a command that
//! doesn't answer is stopped. Doesn't know: whether the provider takes it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use crate::config::SecretSource;

/// How long a password command may take.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// Most octets read from a password file or command.
const MAX_SECRET_OCTETS: u64 = 8 * 1024;

/// Why there is no password.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The account isn't configured.
    #[error("no such account")]
    NoAccount,
    /// The account stores none: each session brings its own.
    #[error("no password is stored for the account; each session signs in with its own")]
    OwnLogin,
    /// The file can't be read.
    #[error("can't read {path}: {source}")]
    File {
        /// Configured path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The command can't be run.
    #[error("can't run {program}: {source}")]
    Spawn {
        /// First word of the command.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The command ended with a failure; its output isn't repeated.
    #[error("{program} ended with {status}")]
    Status {
        /// First word of the command.
        program: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// The command took longer than [`COMMAND_TIMEOUT`].
    #[error("{program} did not answer within {} s", COMMAND_TIMEOUT.as_secs())]
    Timeout {
        /// First word of the command.
        program: String,
    },
    /// The first line is empty or not UTF-8.
    #[error("the first line from {from} holds no password")]
    Empty {
        /// File or program.
        from: String,
    },
}

/// The password that `source` names.
pub async fn fetch(source: &SecretSource) -> Result<String, SecretError> {
    match source {
        SecretSource::Inline(text) => Ok(text.clone()),
        SecretSource::File(path) => from_file(path).await,
        SecretSource::Command(argv) => from_command(argv).await,
        SecretSource::Login => Err(SecretError::OwnLogin),
    }
}

async fn from_file(path: &Path) -> Result<String, SecretError> {
    let wrong = |source| SecretError::File { path: path.to_owned(), source };
    let file = tokio::fs::File::open(path).await.map_err(wrong)?;
    let mut octets = Vec::new();
    file.take(MAX_SECRET_OCTETS).read_to_end(&mut octets).await.map_err(wrong)?;
    first_line(octets).ok_or_else(|| SecretError::Empty { from: path.display().to_string() })
}

async fn from_command(argv: &[String]) -> Result<String, SecretError> {
    let program = argv.first().cloned().unwrap_or_default();
    let spawn = |source| SecretError::Spawn { program: program.clone(), source };
    let mut child = tokio::process::Command::new(&program)
        .args(argv.iter().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(spawn)?;
    let Some(stdout) = child.stdout.take() else {
        return Err(SecretError::Empty { from: program });
    };
    let run = async {
        let mut octets = Vec::new();
        let mut limited = stdout.take(MAX_SECRET_OCTETS);
        limited.read_to_end(&mut octets).await?;
        // Closing our end stops a command that writes without end.
        drop(limited);
        Ok::<_, std::io::Error>((octets, child.wait().await?))
    };
    let (octets, status) = tokio::time::timeout(COMMAND_TIMEOUT, run)
        .await
        .map_err(|_| SecretError::Timeout { program: program.clone() })?
        .map_err(spawn)?;
    if !status.success() {
        return Err(SecretError::Status { program, status });
    }
    first_line(octets).ok_or(SecretError::Empty { from: program })
}

/// The first line without its line end.
fn first_line(octets: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(octets).ok()?;
    let line = text.lines().next()?;
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(argv: &[&str]) -> SecretSource {
        SecretSource::Command(argv.iter().map(|s| (*s).to_owned()).collect())
    }

    #[tokio::test]
    async fn only_the_first_line_is_the_password() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pw");
        std::fs::write(&path, "first line \r\nsecond\n").unwrap();
        assert_eq!(fetch(&SecretSource::File(path)).await.unwrap(), "first line ");
        assert_eq!(fetch(&command(&["printf", "a b\nc"])).await.unwrap(), "a b");
    }

    #[tokio::test]
    async fn arguments_reach_the_command_without_a_shell() {
        assert_eq!(fetch(&command(&["printf", "%s", "$HOME; ls"])).await.unwrap(), "$HOME; ls");
    }

    #[tokio::test]
    async fn a_failing_command_is_an_error_that_does_not_repeat_its_output() {
        let error = fetch(&command(&["sh", "-c", "echo hunter2; exit 3"])).await.unwrap_err();
        assert!(matches!(error, SecretError::Status { .. }));
        assert!(!error.to_string().contains("hunter2"));
    }

    #[tokio::test]
    async fn nothing_is_no_password() {
        assert!(matches!(fetch(&command(&["true"])).await, Err(SecretError::Empty { .. })));
        let gone = SecretSource::File("/nonexistent/password".into());
        assert!(matches!(fetch(&gone).await, Err(SecretError::File { .. })));
    }

    #[tokio::test]
    async fn a_command_that_writes_without_end_is_bounded() {
        let answer = fetch(&command(&["yes", "x"])).await;
        // `yes` ends by SIGPIPE, which is a failure and no password.
        assert!(matches!(answer, Err(SecretError::Status { .. })), "{answer:?}");
    }
}
