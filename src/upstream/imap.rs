//! The IMAP client.
//!
//! Promises: [`Connection::open`] gives a connection that is logged in inside
//! the TLS that the configuration asks for. Reading is cancel-safe: what
//! arrived stays with the connection, so [`Connection::next_response`] and
//! [`Connection::next_piece`] can stand in `select!`. Whatever waits for an
//! answer gives up when the server is silent for the deadline. Untagged
//! responses are taken wherever they come; several commands may be in flight.
//!
//! Doesn't know: what the mailboxes are for, who may see them, when to try
//! again.

mod commands;
mod login;
mod response;
mod sets;
#[cfg(test)]
mod tests;
mod untagged;

pub use commands::{ListEntry, Selected};
pub use response::{Outcome, Response, Status, Untagged};
pub use sets::{MAX_SET_UIDS, expand_set, parse_appenduid, parse_copyuid};
pub use untagged::{FetchItems, UntaggedData, Value};

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use zeroize::Zeroizing;

use super::net::{ConnectError, Stream};
use crate::config::Endpoint;
use crate::store::failpoint;
use crate::wire::imap::{FrameError, Piece, ResponseReader};
use response::Assembly;

/// Silence of the server after which a command is given up.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(60);
/// How long greeting, STARTTLS and login may take together.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Most octets of one response that [`Connection::next_response`] collects.
pub const MAX_RESPONSE: usize = 8 * 1024 * 1024;
/// Most octets of untagged responses that one command collects.
pub const MAX_COLLECTED: usize = 64 * 1024 * 1024;
/// Most responses kept while something else is waited for.
const MAX_PENDING: usize = 100_000;
/// Octets to write that are collected before they are sent.
const WRITE_BUFFER: usize = 64 * 1024;
/// Room made for each read.
const READ_BUFFER: usize = 32 * 1024;

/// Where to log in, and as whom.
#[derive(Clone)]
pub struct ImapTarget {
    /// The provider's IMAP server.
    pub endpoint: Endpoint,
    /// User name there.
    pub user: String,
    /// Password there; erased when dropped.
    pub password: Zeroizing<String>,
}

impl fmt::Debug for ImapTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImapTarget").field("endpoint", &self.endpoint).field("user", &self.user).finish_non_exhaustive()
    }
}

/// What went wrong with the provider.
#[derive(Debug, thiserror::Error)]
pub enum ImapError {
    /// No connection, or no TLS.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The provider refused our user name and password.
    #[error("the provider refused the login: {text}")]
    Auth {
        /// What it said.
        text: String,
    },
    /// The server sent what can't be understood, or may not be asked so.
    #[error("IMAP protocol: {0}")]
    Protocol(String),
    /// The connection ended.
    #[error("the provider closed the connection")]
    Closed,
    /// The server was silent for the deadline.
    #[error("the provider did not answer in time")]
    Timeout,
    /// The server answered NO.
    #[error("the provider answered NO: {text}")]
    No {
        /// Text for people.
        text: String,
        /// Response code without brackets.
        code: Option<Bytes>,
    },
    /// The server answered BAD.
    #[error("the provider answered BAD: {text}")]
    Bad {
        /// Text for people.
        text: String,
    },
    /// A response exceeds what is collected ([`MAX_RESPONSE`], [`MAX_COLLECTED`]).
    #[error("the provider's response is too large")]
    TooLarge,
}

impl ImapError {
    /// Whether the connection is of no more use. After NO and BAD it goes on.
    pub fn ends_connection(&self) -> bool {
        match self {
            ImapError::No { .. } | ImapError::Bad { .. } => false,
            ImapError::Connect(_)
            | ImapError::Auth { .. }
            | ImapError::Protocol(_)
            | ImapError::Closed
            | ImapError::Timeout
            | ImapError::TooLarge => true,
        }
    }

    /// Whether the server refused since too many connections are in use.
    pub fn is_limit(&self) -> bool {
        matches!(self, ImapError::No { code: Some(code), .. } if code.eq_ignore_ascii_case(b"LIMIT"))
    }
}

impl From<FrameError> for ImapError {
    fn from(error: FrameError) -> ImapError {
        match error {
            FrameError::LineTooLong | FrameError::LiteralTooLarge => ImapError::TooLarge,
            FrameError::BareLf | FrameError::BareCr | FrameError::Ambiguous => ImapError::Protocol(error.to_string()),
        }
    }
}

/// Names a command of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag(u32);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

impl Tag {
    /// Reads back what [`Display`](fmt::Display) wrote.
    fn parse(raw: &[u8]) -> Option<Tag> {
        let tag = Tag(std::str::from_utf8(raw.strip_prefix(b"t")?).ok()?.parse().ok()?);
        (tag.to_string().as_bytes() == raw).then_some(tag)
    }
}

/// A part of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text, without CR and LF. Before a literal it ends with a blank or `(`.
    Text(&'a [u8]),
    /// A literal's octets; the announcement is made here.
    Literal(&'a [u8]),
}

/// What the server says it can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities(Vec<String>);

impl Capabilities {
    /// Whether it can do `name`, in any case.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// All of them, as they came.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// A connection that is logged in. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    reader: ResponseReader,
    assembly: Assembly,
    /// What is still to be sent. Kept here so that a cancelled send goes on
    /// with the next one and doesn't tear a command.
    out: BytesMut,
    /// Responses read while something else was waited for.
    pending: VecDeque<Response>,
    capabilities: Capabilities,
    last_tag: u32,
    deadline: Duration,
    idle: Option<Tag>,
}

impl Connection {
    fn new(stream: Stream) -> Connection {
        Connection {
            stream,
            reader: ResponseReader::with_max_text(MAX_RESPONSE),
            assembly: Assembly::default(),
            out: BytesMut::new(),
            pending: VecDeque::new(),
            capabilities: Capabilities::default(),
            last_tag: 0,
            deadline: DEFAULT_DEADLINE,
            idle: None,
        }
    }

    /// What the server offers to a logged-in client.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Sets after how much silence waiting commands give up.
    pub fn set_deadline(&mut self, silence: Duration) {
        self.deadline = silence;
    }

    /// After how much silence waiting commands give up.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// A tag that no command of this connection had, for commands that are
    /// written raw.
    pub fn fresh_tag(&mut self) -> String {
        self.next_tag().to_string()
    }

    fn next_tag(&mut self) -> Tag {
        self.last_tag = self.last_tag.wrapping_add(1);
        Tag(self.last_tag)
    }

    /// Sends one command: `command` has neither tag nor CRLF nor literals.
    pub async fn send(&mut self, command: &[u8]) -> Result<Tag, ImapError> {
        self.send_parts(&[Part::Text(command)]).await
    }

    /// Sends one command made of parts. Where the server wants to be asked
    /// before a literal, this waits for its continuation; when it refuses, the
    /// rest isn't sent and [`wait`](Self::wait) on the tag tells why.
    ///
    /// Not cancel-safe once it waits for a continuation.
    pub async fn send_parts(&mut self, parts: &[Part<'_>]) -> Result<Tag, ImapError> {
        for part in parts {
            if let Part::Text(text) = part
                && text.iter().any(|b| matches!(b, b'\r' | b'\n' | 0))
            {
                return Err(ImapError::Protocol("a command's text can't hold a line end".into()));
            }
        }
        let verb = match parts.first() {
            Some(Part::Text(text)) => text,
            Some(Part::Literal(_)) | None => &b""[..],
        };
        failpoint::hit_command(verb, "");
        let tag = self.next_tag();
        self.out.extend_from_slice(tag.to_string().as_bytes());
        self.out.extend_from_slice(b" ");
        for part in parts {
            match part {
                Part::Text(text) => self.out.extend_from_slice(text),
                Part::Literal(octets) => {
                    if !self.send_literal(tag, octets).await? {
                        return Ok(tag);
                    }
                }
            }
        }
        self.out.extend_from_slice(b"\r\n");
        self.flush().await?;
        failpoint::hit_command(verb, ".written");
        Ok(tag)
    }

    /// RFC 7888 §4, §5: LITERAL+ takes any size unasked, LITERAL- up to 4096.
    async fn send_literal(&mut self, tag: Tag, octets: &[u8]) -> Result<bool, ImapError> {
        const LITERAL_MINUS: usize = 4096;
        let unasked =
            self.capabilities.has("LITERAL+") || self.capabilities.has("LITERAL-") && octets.len() <= LITERAL_MINUS;
        let plus = if unasked { "+" } else { "" };
        self.out.extend_from_slice(format!("{{{}{plus}}}\r\n", octets.len()).as_bytes());
        if !unasked {
            self.flush().await?;
            if !self.continuation(tag).await? {
                return Ok(false);
            }
        }
        for chunk in octets.chunks(WRITE_BUFFER) {
            self.write_raw(chunk).await?;
        }
        Ok(true)
    }

    /// Waits for `+`. False when the command was answered instead. All else
    /// that comes meanwhile is kept for later.
    async fn continuation(&mut self, tag: Tag) -> Result<bool, ImapError> {
        loop {
            let response = self.read_response().await?;
            if matches!(response, Response::Continue(_)) {
                return Ok(true);
            }
            let refused = matches!(&response, Response::Tagged { tag: Some(t), .. } if *t == tag);
            if self.pending.len() >= MAX_PENDING {
                return Err(ImapError::TooLarge);
            }
            self.pending.push_back(response);
            if refused {
                return Ok(false);
            }
        }
    }

    /// Adds octets to what is sent next; sends when enough have gathered.
    pub async fn write_raw(&mut self, octets: &[u8]) -> Result<(), ImapError> {
        self.out.extend_from_slice(octets);
        if self.out.len() >= WRITE_BUFFER { self.flush().await } else { Ok(()) }
    }

    /// Sends everything written so far. When cancelled, the next call goes on
    /// where this one stood. What the server sends meanwhile is taken in (up
    /// to [`MAX_RESPONSE`]), or both sides could wait for the other to read.
    pub async fn flush(&mut self) -> Result<(), ImapError> {
        let Connection { stream, reader, out, deadline, .. } = self;
        while !out.is_empty() {
            in_time(*deadline, poll_fn(|cx| write_some(stream, reader, out, cx))).await?;
        }
        in_time(*deadline, stream.flush()).await
    }

    /// The next piece of what the server sends, as it comes, without a
    /// deadline. Cancel-safe. Responses that were read while a continuation
    /// was waited for are given by [`next_response`](Self::next_response) only.
    pub async fn next_piece(&mut self) -> Result<Piece, ImapError> {
        loop {
            if let Some(piece) = self.reader.next()? {
                return Ok(piece);
            }
            self.fill().await?;
        }
    }

    /// The next piece, where it needs no more octets.
    pub fn ready_piece(&mut self) -> Result<Option<Piece>, ImapError> {
        Ok(self.reader.next()?)
    }

    /// As [`next_piece`](Self::next_piece), within the deadline.
    pub async fn piece_in_time(&mut self) -> Result<Piece, ImapError> {
        let deadline = self.deadline;
        tokio::time::timeout(deadline, self.next_piece()).await.map_err(|_| ImapError::Timeout)?
    }

    /// As [`next_response`](Self::next_response), within the deadline.
    pub async fn response_in_time(&mut self) -> Result<Response, ImapError> {
        let deadline = self.deadline;
        tokio::time::timeout(deadline, self.next_response()).await.map_err(|_| ImapError::Timeout)?
    }

    /// A response that was read while a continuation was waited for. Whoever
    /// reads by pieces takes these first.
    pub fn take_pending(&mut self) -> Option<Response> {
        self.pending.pop_front()
    }

    /// The next whole response, without a deadline (so that IDLE can wait).
    /// Cancel-safe. Not to be called in the middle of a response whose first
    /// pieces [`next_piece`](Self::next_piece) gave away.
    pub async fn next_response(&mut self) -> Result<Response, ImapError> {
        loop {
            if let Some(response) = self.take_response()? {
                return Ok(response);
            }
            self.fill().await?;
        }
    }

    /// A response that needs no more octets.
    fn take_response(&mut self) -> Result<Option<Response>, ImapError> {
        if let Some(response) = self.pending.pop_front() {
            return Ok(Some(response));
        }
        self.assembled()
    }

    fn assembled(&mut self) -> Result<Option<Response>, ImapError> {
        self.assembly.check()?;
        while let Some(piece) = self.reader.next()? {
            if let Some(response) = self.assembly.add(piece)? {
                return Ok(Some(response));
            }
        }
        Ok(None)
    }

    /// The next response from the wire (not from `pending`), within the
    /// deadline for each read.
    async fn read_response(&mut self) -> Result<Response, ImapError> {
        loop {
            if let Some(response) = self.assembled()? {
                return Ok(response);
            }
            let deadline = self.deadline;
            tokio::time::timeout(deadline, self.fill()).await.map_err(|_| ImapError::Timeout)??;
        }
    }

    /// One read. Cancel-safe.
    async fn fill(&mut self) -> Result<(), ImapError> {
        let buffer = self.reader.buffer();
        if buffer.capacity() - buffer.len() < READ_BUFFER / 4 {
            buffer.reserve(READ_BUFFER);
        }
        match self.stream.read_buf(buffer).await {
            Ok(0) => Err(ImapError::Closed),
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::debug!(%error, "reading from the provider");
                Err(ImapError::Closed)
            }
        }
    }

    /// Sends one command (no literals) and collects what comes until it is
    /// answered. NO and BAD are outcomes, not errors; see [`Outcome::ok`].
    pub async fn run(&mut self, command: &[u8]) -> Result<Outcome, ImapError> {
        let tag = self.send(command).await?;
        self.wait(tag).await
    }

    /// As [`run`](Self::run), with literals.
    pub async fn run_parts(&mut self, parts: &[Part<'_>]) -> Result<Outcome, ImapError> {
        let tag = self.send_parts(parts).await?;
        self.wait(tag).await
    }

    /// Collects the untagged responses until `tag` is answered. Answers to
    /// other commands are kept for their own `wait` or for `next_response`.
    ///
    /// Not cancel-safe: what was collected goes with it.
    pub async fn wait(&mut self, tag: Tag) -> Result<Outcome, ImapError> {
        let mut others = VecDeque::new();
        let mut untagged = Vec::new();
        let mut collected = 0usize;
        let outcome = loop {
            let response = match self.pending.pop_front() {
                Some(response) => response,
                None => self.read_response().await?,
            };
            match response {
                Response::Untagged(data) => {
                    collected += data.text.len();
                    if collected > MAX_COLLECTED {
                        return Err(ImapError::TooLarge);
                    }
                    untagged.push(data);
                }
                Response::Tagged { tag: Some(done), status, code, text, .. } if done == tag => {
                    break Outcome { status, code, text, untagged };
                }
                Response::Tagged { .. } | Response::Continue(_) if others.len() >= MAX_PENDING => {
                    return Err(ImapError::TooLarge);
                }
                other @ (Response::Tagged { .. } | Response::Continue(_)) => others.push_back(other),
            }
        };
        others.append(&mut self.pending);
        self.pending = others;
        Ok(outcome)
    }
}

/// Writes some of `out`; while the server doesn't take it, reads what it says.
/// Ready when either made progress.
fn write_some(
    stream: &mut Stream,
    reader: &mut ResponseReader,
    out: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    match Pin::new(&mut *stream).poll_write(cx, out) {
        Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
        Poll::Ready(Ok(written)) => {
            out.advance(written);
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
        Poll::Pending if reader.buffered() >= MAX_RESPONSE => return Poll::Pending,
        Poll::Pending => {}
    }
    let mut octets = [0; 4096];
    let mut read = ReadBuf::new(&mut octets);
    std::task::ready!(Pin::new(stream).poll_read(cx, &mut read))?;
    if read.filled().is_empty() {
        return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
    }
    reader.push(read.filled());
    Poll::Ready(Ok(()))
}

async fn in_time<T>(limit: Duration, io: impl Future<Output = io::Result<T>>) -> Result<T, ImapError> {
    match tokio::time::timeout(limit, io).await {
        Err(_) => Err(ImapError::Timeout),
        Ok(Err(error)) => {
            tracing::debug!(%error, "writing to the provider");
            Err(ImapError::Closed)
        }
        Ok(Ok(done)) => Ok(done),
    }
}
