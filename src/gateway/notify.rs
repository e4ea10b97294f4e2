//! Telling, outside of mail, that something waits: a webhook, ntfy, a command.
//!
//! Promises: what is told is a number and nothing else; it goes to the
//! configured endpoints alone, seldom, and is given up after a few tries.
//! Doesn't know: what waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::core::Core;
use crate::config::{Notify, NotifyUrl};
use crate::outbox::HoldError;
use crate::upstream::net::{ConnectError, connect};

/// Events that come together are told together.
const GATHER: Duration = Duration::from_secs(1);
/// Between two that are told; what comes meanwhile is told then.
const SELDOM: Duration = Duration::from_secs(10);
/// Pauses before another try.
const RETRIES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(60)];
/// How long one request, or the command, may take.
const ANSWER: Duration = Duration::from_secs(15);
/// Octets of an answer that are read.
const MAX_ANSWER: u64 = 512;

/// Why nothing was told.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("no answer in time")]
    Late,
    #[error("it answered {0}")]
    Refused(String),
}

/// Tells until told to stop.
pub(super) async fn run(core: Arc<Core>, mut stop: watch::Receiver<bool>) {
    let Some(notify) = core.config.notify.clone() else { return };
    let mut events = core.outbox.events();
    let mut told = 0;
    loop {
        let waiting = count(&core).unwrap_or_else(|e| {
            tracing::warn!("what waits can't be counted: {e}");
            told
        });
        let pause = if waiting == told {
            None
        } else {
            let done = async { tell(&notify, waiting, waiting > told).await };
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = done => {}
            }
            told = waiting;
            Some(SELDOM)
        };
        if let Some(pause) = pause {
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = tokio::time::sleep(pause) => {}
            }
            continue;
        }
        tokio::select! {
            () = stopped(&mut stop) => return,
            event = events.recv() => match event {
                Ok(_) | Err(RecvError::Lagged(_)) => tokio::time::sleep(GATHER).await,
                Err(RecvError::Closed) => return,
            },
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone ends it too.
    let _ = stop.wait_for(|s| *s).await;
}

fn count(core: &Core) -> Result<usize, HoldError> {
    let mut waiting = 0;
    for account in core.accounts.ids() {
        waiting += core.outbox.waiting(&account)?;
    }
    Ok(waiting)
}

/// How many wait, in words.
fn words(waiting: usize) -> String {
    if waiting == 1 {
        "1 message waits for approval".to_owned()
    } else {
        format!("{waiting} messages wait for approval")
    }
}

/// `more`: another one waits. A webhook learns of every change, people only
/// of that.
async fn tell(notify: &Notify, waiting: usize, more: bool) {
    if let Some(url) = &notify.webhook {
        let body = format!("{{\"waiting\":{waiting}}}");
        with_retries("webhook", || post(url, "application/json", "", &body)).await;
    }
    if let Some(url) = notify.ntfy.as_ref().filter(|_| more) {
        let body = words(waiting);
        with_retries("ntfy", || post(url, "text/plain; charset=us-ascii", "Title: Tollgate\r\n", &body)).await;
    }
    if more && !notify.command.is_empty() {
        command(&notify.command, &words(waiting)).await;
    }
}

async fn with_retries<F: Future<Output = Result<(), NotifyError>>>(what: &str, mut again: impl FnMut() -> F) {
    let mut pauses = RETRIES.into_iter();
    loop {
        let tried = tokio::time::timeout(ANSWER, again()).await.unwrap_or(Err(NotifyError::Late));
        let Err(error) = tried else { return };
        let Some(pause) = pauses.next() else {
            tracing::warn!("{what}: given up: {error}");
            return;
        };
        tracing::info!("{what}: {error}");
        tokio::time::sleep(pause).await;
    }
}

/// One POST on a connection of its own; redirections are not followed.
async fn post(url: &NotifyUrl, kind: &str, fields: &str, body: &str) -> Result<(), NotifyError> {
    let mut stream = connect(&url.endpoint).await?;
    let request = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tollgate\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         {fields}Content-Length: {}\r\n\r\n{body}",
        url.path,
        url.authority,
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    let mut start = stream.take(MAX_ANSWER);
    // The status line is enough; how the connection ends says nothing.
    while !answer.contains(&b'\n') {
        if start.read_buf(&mut answer).await? == 0 {
            break;
        }
    }
    let line = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
    match line.split(' ').nth(1) {
        Some(code) if code.len() == 3 && code.starts_with('2') => Ok(()),
        _ => Err(NotifyError::Refused(line.chars().filter(|c| !c.is_control()).take(80).collect())),
    }
}

/// Runs the command with the words as its last argument.
async fn command(words: &[String], text: &str) {
    let Some((program, arguments)) = words.split_first() else { return };
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).arg(text).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    command.stderr(std::process::Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(ANSWER, command.status()).await {
        Ok(Ok(status)) if status.success() => {}
        Ok(Ok(status)) => tracing::warn!("the command of [notify] ended with {status}"),
        Ok(Err(e)) => tracing::warn!("the command of [notify]: {e}"),
        Err(_) => tracing::warn!("the command of [notify] took too long"),
    }
}
