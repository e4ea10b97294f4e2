//! One client connection: octets in, replies out.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use crate::downstream::Connection;
use crate::wire::smtp::{LineError, LineReader, Reply};

/// Octets read from the client at once.
const READ_CHUNK: usize = 16 * 1024;
/// How long the end of a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The client went, or the connection broke.
    Closed,
    /// The client was silent for too long.
    Timeout,
    /// The gateway stops.
    Shutdown,
    /// The key was revoked.
    Revoked,
}

impl End {
    /// What the client is told, where it can still be told something.
    pub(super) fn reply(self) -> Option<Reply> {
        match self {
            End::Closed => None,
            End::Timeout => Some(Reply::new(421, "4.4.2", "you were silent for too long; closing")),
            End::Shutdown => Some(Reply::new(421, "4.3.2", "the gateway stops; try again later")),
            End::Revoked => Some(Reply::new(421, "4.7.0", "this key was revoked; closing")),
        }
    }
}

/// The connection.
pub(super) struct Conn<S> {
    stream: S,
    pub(super) lines: LineReader,
    /// Replies that are not written yet. They go out together when the client
    /// has nothing more to say (RFC 2920 §3.2).
    out: Vec<u8>,
    shutdown: watch::Receiver<bool>,
    /// Of the key that signed in.
    pub(super) revoked: Option<watch::Receiver<bool>>,
}

impl<S: Connection> Conn<S> {
    pub(super) fn new(stream: S, shutdown: watch::Receiver<bool>) -> Self {
        Conn { stream, lines: LineReader::new(), out: Vec::new(), shutdown, revoked: None }
    }

    /// Puts a reply behind those that wait.
    pub(super) fn reply(&mut self, reply: &Reply) {
        self.out.extend_from_slice(&reply.to_bytes());
    }

    /// Writes what waits.
    pub(super) async fn flush(&mut self) -> Result<(), End> {
        let (stream, out) = (&mut self.stream, &self.out);
        let write = async {
            stream.write_all(out).await?;
            stream.flush().await
        };
        let written = tokio::time::timeout(super::CLIENT_TIMEOUT, write).await;
        self.out.clear();
        written.map_err(|_| End::Closed)?.map_err(|_| End::Closed)
    }

    /// The next command line; replies that wait are written before it blocks.
    pub(super) async fn line(&mut self, limit: Duration) -> Result<Result<bytes::BytesMut, LineError>, End> {
        loop {
            if is_true(self.revoked.as_ref()) {
                return Err(End::Revoked);
            }
            if let Some(line) = self.lines.next_line() {
                return Ok(line);
            }
            self.flush().await?;
            self.fill(limit, true).await?;
        }
    }

    /// Octets of message data: what is buffered, else what comes next.
    pub(super) async fn data(&mut self) -> Result<bytes::BytesMut, End> {
        if is_true(self.revoked.as_ref()) {
            return Err(End::Revoked);
        }
        if self.lines.buffered() == 0 {
            // A message that is half in may finish while the gateway stops.
            self.fill(super::CLIENT_TIMEOUT, false).await?;
        }
        Ok(self.lines.take_buffered())
    }

    async fn fill(&mut self, limit: Duration, until_shutdown: bool) -> Result<(), End> {
        let mut chunk = [0; READ_CHUNK];
        let shutdown = until_shutdown.then_some(&mut self.shutdown);
        let read = tokio::select! {
            biased;
            () = becomes_true(self.revoked.as_mut()) => return Err(End::Revoked),
            () = becomes_true(shutdown) => return Err(End::Shutdown),
            read = tokio::time::timeout(limit, self.stream.read(&mut chunk)) => read,
        };
        match read {
            Err(_) => Err(End::Timeout),
            Ok(Err(_) | Ok(0)) => Err(End::Closed),
            Ok(Ok(n)) => {
                self.lines.push(&chunk[..n]);
                Ok(())
            }
        }
    }

    /// Whether STARTTLS can be offered.
    pub(super) fn can_start_tls(&self) -> bool {
        self.stream.can_start_tls()
    }

    /// Writes `consent`, then speaks TLS. Octets that already wait behind the
    /// command were sent without protection and end the connection (RFC 3207
    /// §4.2 has the client wait).
    pub(super) async fn start_tls(&mut self, consent: &Reply) -> Result<(), End> {
        if self.lines.buffered() > 0 {
            return Err(End::Closed);
        }
        self.reply(consent);
        self.flush().await?;
        self.stream.start_tls().await.map_err(|_| End::Closed)
    }

    /// Ends the connection.
    pub(super) async fn close(&mut self) {
        let _ = self.flush().await;
        // A peer that doesn't read must not keep the session.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.stream.shutdown()).await;
    }
}

fn is_true(receiver: Option<&watch::Receiver<bool>>) -> bool {
    receiver.is_some_and(|r| *r.borrow())
}

/// Resolves when the value becomes true; never where there is none to watch.
async fn becomes_true(receiver: Option<&mut watch::Receiver<bool>>) {
    if let Some(receiver) = receiver
        && receiver.wait_for(|value| *value).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
