//! The socket itself.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};

use super::execute::account_of;
use super::{ControlError, Request, SOCKET, execute, names};
use crate::account::AccountId;
use crate::gateway::core::{Core, FaceFn};

/// Longest request line in octets.
const MAX_REQUEST: u64 = 64 * 1024;
/// Longest answer that a caller reads, in octets: a message in base64.
const MAX_ANSWER: u64 = 2 * 1024 * 1024 * 1024;
/// Longest answer to a request for the face, in octets.
const MAX_FACE_ANSWER: usize = 16 * 1024;
/// Requests that run at the same time.
const MAX_AT_ONCE: usize = 8;
/// How long a caller may take to send its request or to read its answer.
const CALLER_TIMEOUT: Duration = Duration::from_secs(30);

/// An answer's line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Ok(Value),
    Error { name: String, message: String },
}

/// Why a call brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nothing listens: no gateway runs on this state.
    #[error("no gateway runs on this state")]
    NotRunning,
    /// The gateway refused.
    #[error("{message}")]
    Refused {
        /// One of [`names`].
        name: String,
        /// For a person.
        message: String,
    },
    /// The socket failed.
    #[error("the running gateway can't be asked: {0}")]
    Io(#[from] io::Error),
    /// What came is no answer.
    #[error("the running gateway's answer can't be read: {0}")]
    Protocol(String),
}

/// Asks the gateway that runs on `state_dir`.
pub async fn call(state_dir: &Path, request: &Request) -> Result<Value, CallError> {
    let mut stream = send(state_dir, request).await?;
    let mut answer = Vec::new();
    BufReader::new(&mut stream).take(MAX_ANSWER).read_until(b'\n', &mut answer).await?;
    read_answer(&answer)
}

/// A connection on which the gateway that runs on `state_dir` speaks IMAP to
/// the operator ([`Request::Face`]); its greeting comes next.
pub async fn face(state_dir: &Path, account: &str) -> Result<UnixStream, CallError> {
    let mut stream = send(state_dir, &Request::Face { account: account.to_owned() }).await?;
    let mut answer = Vec::new();
    // Octet by octet: what follows the line is IMAP and not ours to take.
    while answer.last() != Some(&b'\n') && answer.len() < MAX_FACE_ANSWER {
        match stream.read_u8().await {
            Ok(octet) => answer.push(octet),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(e) => return Err(e.into()),
        }
    }
    read_answer(&answer).map(|_| stream)
}

async fn send(state_dir: &Path, request: &Request) -> Result<UnixStream, CallError> {
    let mut stream = UnixStream::connect(state_dir.join(SOCKET)).await.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => CallError::NotRunning,
        _ => CallError::Io(e),
    })?;
    let mut line = serde_json::to_vec(request).map_err(|e| CallError::Protocol(e.to_string()))?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    Ok(stream)
}

fn read_answer(answer: &[u8]) -> Result<Value, CallError> {
    if answer.last() != Some(&b'\n') {
        return Err(CallError::Protocol("it was cut off".to_owned()));
    }
    match serde_json::from_slice(answer).map_err(|e| CallError::Protocol(e.to_string()))? {
        Answer::Ok(value) => Ok(value),
        Answer::Error { name, message } => Err(CallError::Refused { name, message }),
    }
}

/// Listens until `shutdown` is true. The caller holds the state folder's
/// lock, so a socket that is already there was left by a process that ended.
pub async fn serve(core: Arc<Core>, mut shutdown: watch::Receiver<bool>) -> io::Result<()> {
    let path = core.config.state_dir.join(SOCKET);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        Ok(()) | Err(_) => {}
    }
    // The folder is ours alone (0700), so nobody comes between these two.
    let listener = UnixListener::bind(&path).map_err(|e| explain_bind(e, &path))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    let slots = Arc::new(Semaphore::new(MAX_AT_ONCE));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = shutdown.wait_for(|ended| *ended) => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors: the next caller may fare better.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(slot) = slots.clone().acquire_owned().await else { break };
        let core = core.clone();
        tokio::spawn(async move {
            if let Err(e) = answer(&core, stream).await {
                tracing::warn!(error = %e, "control connection");
            }
            drop(slot);
        });
    }
    let _ = std::fs::remove_file(&path);
    Ok(())
}

/// The system's own words for a path that is too long help nobody.
fn explain_bind(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("control socket {} (107 octets at most): {error}", path.display()))
}

async fn answer(core: &Core, stream: UnixStream) -> io::Result<()> {
    // The socket's mode keeps others out; this holds where a mode doesn't count.
    let peer = stream.peer_cred()?;
    if peer.uid() != nix::unistd::getuid().as_raw() {
        tracing::warn!(uid = peer.uid(), "control connection of another user refused");
        return Ok(());
    }
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    let mut reader = (&mut stream).take(MAX_REQUEST);
    tokio::time::timeout(CALLER_TIMEOUT, reader.read_until(b'\n', &mut line)).await??;
    let mut face = None;
    let answer = match parse(&line) {
        Err(message) => Err((names::INVALID, message)),
        // What waits behind the request would be lost with the buffer.
        Ok(Request::Face { .. }) if !stream.buffer().is_empty() => {
            Err((names::INVALID, "nothing may follow before the answer".to_owned()))
        }
        Ok(Request::Face { account }) => opened(core, &account).map(|serve| {
            face = Some(serve);
            Value::Object(serde_json::Map::new())
        }),
        Ok(request) => execute(core, request).await.map_err(|e| (e.name(), e.to_string())),
    };
    zeroize::Zeroize::zeroize(&mut line);
    let answer = match answer {
        Ok(value) => Answer::Ok(value),
        Err((name, message)) => Answer::Error { name: name.to_owned(), message },
    };
    let mut out = serde_json::to_vec(&answer)?;
    out.push(b'\n');
    tokio::time::timeout(CALLER_TIMEOUT, stream.get_mut().write_all(&out)).await??;
    if let Some((serve, account)) = face {
        serve(account, stream.into_inner()).await;
    }
    Ok(())
}

/// What serves the face of an account.
fn opened(core: &Core, account: &str) -> Result<(FaceFn, AccountId), (&'static str, String)> {
    let named = |e: ControlError| (e.name(), e.to_string());
    let account = account_of(core, account).map_err(named)?;
    let serve = core.face.get().ok_or_else(|| named(ControlError::NotRunning("doctor")))?;
    Ok((serve.clone(), account))
}

fn parse(line: &[u8]) -> Result<Request, String> {
    if line.last() != Some(&b'\n') {
        return Err(format!("a request is one line of up to {MAX_REQUEST} octets"));
    }
    serde_json::from_slice(line).map_err(|e| format!("not a request: {e}"))
}
