//! The client's octets into whole commands.
//!
//! Promises: a [`CommandEvent::Command`] holds the command's lines and
//! literals exactly as they came. The message of an APPEND is never
//! collected. Text of all lines of one command counts against one limit, so a
//! chain of empty literals can't grow without end.
//!
//! Doesn't know: whether the client may do what it asks.

use bytes::{Buf, Bytes, BytesMut};

use super::{Announcement, FrameError, Limits, announced, ends_in_quotes};

/// Octets of an ID command before authentication: RFC 2971 §3.3 allows 30
/// pairs of a name of 30 and a value of 1024 octets.
const ID_LINE: usize = 40 * 1024;

/// What the client's octets amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEvent {
    /// A whole command: lines and literals as they came, with the final CRLF.
    Command(Bytes),
    /// A synchronizing literal fits: the caller sends `+ OK` and CRLF.
    NeedContinuation {
        /// Tag of the command.
        tag: Bytes,
        /// Octets promised.
        len: u64,
    },
    /// A literal doesn't fit; the caller answers the tag with NO or BAD. The
    /// command ends here when `sync`, else the reader drops the literal and
    /// the rest of the command by itself.
    LiteralRefused {
        /// Tag of the command.
        tag: Bytes,
        /// Octets promised; `u64::MAX` when the number was larger than that.
        len: u64,
        /// Whether the client waits for a continuation.
        sync: bool,
    },
    /// An APPEND up to and including the announcement of its message (and the
    /// CRLF after it). When `sync`, the caller sends `+ OK` and CRLF to get
    /// the message; whether or not, it calls [`CommandReader::refuse_append`]
    /// when it doesn't want it.
    AppendHead {
        /// Everything up to the message.
        line: Bytes,
        /// Octets of the message.
        len: u64,
        /// Whether the client waits for a continuation.
        sync: bool,
    },
    /// The next octets of the message; together exactly `len`.
    AppendChunk(Bytes),
    /// What followed the message, CRLF included. Anything but CRLF (or `)`
    /// and CRLF after `UTF8 (~{n}`) is more than one message and has to be
    /// answered BAD; a literal announced here is dropped by the reader.
    AppendTail(Bytes),
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Text of a command.
    Line,
    /// A literal that is kept.
    Literal { left: u64 },
    /// The message of an APPEND.
    Append { left: u64 },
    /// The text after that message.
    Tail,
    /// A refused literal.
    Discard { left: u64 },
    /// The text after a refused literal.
    DiscardLine,
}

/// See the module.
#[derive(Debug)]
pub struct CommandReader {
    limits: Limits,
    authenticated: bool,
    buf: BytesMut,
    /// How far `buf` was searched for the end of a line.
    searched: usize,
    /// The command so far.
    command: BytesMut,
    /// Octets of text in the command so far.
    text: usize,
    /// Octets of literals in the command so far.
    literals: u64,
    state: State,
    failed: Option<FrameError>,
}

impl CommandReader {
    /// A reader for a connection that hasn't logged in.
    pub fn new(limits: Limits) -> CommandReader {
        CommandReader {
            limits,
            authenticated: false,
            buf: BytesMut::new(),
            searched: 0,
            command: BytesMut::new(),
            text: 0,
            literals: 0,
            state: State::Line,
            failed: None,
        }
    }

    /// Applies the limits of a client that has logged in; from here on the
    /// message of an APPEND is streamed.
    pub fn set_authenticated(&mut self) {
        self.authenticated = true;
    }

    /// Takes octets from the client. Call [`next`](Self::next) until `None`
    /// after each: what waits here is then bounded by one push and the limits.
    pub fn push(&mut self, octets: &[u8]) {
        self.buf.extend_from_slice(octets);
    }

    /// The next event, or `None` when more octets are needed.
    #[allow(clippy::should_implement_trait)] // a fallible pull, not an iterator that ends
    pub fn next(&mut self) -> Result<Option<CommandEvent>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.step().inspect_err(|error| self.failed = Some(*error))
    }

    /// The next line without its CRLF, for the modes in which the client
    /// doesn't send commands: SASL answers and the end of IDLE. To be called
    /// only between commands.
    pub fn next_line(&mut self) -> Result<Option<Bytes>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let line = self.take_line().inspect_err(|error| self.failed = Some(*error))?;
        Ok(line.map(|mut line| line.split_to(line.len() - 2)))
    }

    /// How many octets are waiting.
    pub fn buffered(&self) -> usize {
        self.buf.len()
    }

    /// How many octets were waiting; they are dropped. Before TLS starts this
    /// must be 0, else a stranger may have put them there.
    pub fn take_buffered(&mut self) -> usize {
        let waiting = self.buf.len();
        self.buf.clear();
        self.searched = 0;
        waiting
    }

    /// After [`CommandEvent::AppendHead`]: the message isn't wanted. A client
    /// that waits ends the command itself; another one's message and the rest
    /// of its command are dropped here. The caller answers the tag.
    pub fn refuse_append(&mut self, sync: bool) {
        if let State::Append { left } = self.state {
            self.state = if sync { State::Line } else { State::Discard { left } };
            self.reset();
        }
    }

    fn step(&mut self) -> Result<Option<CommandEvent>, FrameError> {
        loop {
            match self.state {
                State::Line => {
                    let Some(line) = self.take_line()? else { return Ok(None) };
                    if let Some(event) = self.command_line(line)? {
                        return Ok(Some(event));
                    }
                }
                State::Literal { left } => {
                    let part = self.take_up_to(left);
                    self.command.extend_from_slice(&part);
                    let left = left - part.len() as u64;
                    if left > 0 {
                        self.state = State::Literal { left };
                        return Ok(None);
                    }
                    self.state = State::Line;
                }
                State::Append { left: 0 } => self.state = State::Tail,
                State::Append { left } => {
                    let part = self.take_up_to(left);
                    if part.is_empty() {
                        return Ok(None);
                    }
                    self.state = State::Append { left: left - part.len() as u64 };
                    return Ok(Some(CommandEvent::AppendChunk(part)));
                }
                State::Tail => {
                    let Some(line) = self.take_line()? else { return Ok(None) };
                    self.drop_rest(&line)?;
                    return Ok(Some(CommandEvent::AppendTail(line)));
                }
                State::Discard { left } => {
                    let part = self.buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.buf.advance(part);
                    let left = left - part as u64;
                    if left > 0 {
                        self.state = State::Discard { left };
                        return Ok(None);
                    }
                    self.state = State::DiscardLine;
                }
                State::DiscardLine => {
                    let Some(line) = self.take_line()? else { return Ok(None) };
                    self.drop_rest(&line)?;
                }
            }
        }
    }

    /// One more line of the command in hand.
    fn command_line(&mut self, line: Bytes) -> Result<Option<CommandEvent>, FrameError> {
        let Some(announcement) = announcement_of(&line)? else {
            self.state = State::Line;
            let whole = if self.command.is_empty() {
                line
            } else {
                self.command.extend_from_slice(&line);
                self.command.split().freeze()
            };
            self.reset();
            return Ok(Some(CommandEvent::Command(whole)));
        };
        let head = self.command.len() + announcement.start;
        self.command.extend_from_slice(&line);
        self.text += line.len();
        if self.authenticated && is_append_message(&self.command[..head]) {
            return self.append(announcement).map(Some);
        }
        self.literal(announcement)
    }

    fn append(&mut self, announcement: Announcement) -> Result<CommandEvent, FrameError> {
        match announcement.len {
            Some(len) if len <= self.limits.append => {
                self.state = State::Append { left: len };
                Ok(CommandEvent::AppendHead { line: self.command.split().freeze(), len, sync: announcement.sync })
            }
            _ => self.refuse(announcement),
        }
    }

    fn literal(&mut self, announcement: Announcement) -> Result<Option<CommandEvent>, FrameError> {
        let limit = if self.authenticated { self.limits.literals } else { self.limits.literals_before_auth };
        match announcement.len {
            Some(len) if self.literals.saturating_add(len) <= limit => {
                self.literals += len;
                self.state = State::Literal { left: len };
                let tag = tag_of(&self.command);
                Ok(announcement.sync.then_some(CommandEvent::NeedContinuation { tag, len }))
            }
            _ => self.refuse(announcement).map(Some),
        }
    }

    fn refuse(&mut self, announcement: Announcement) -> Result<CommandEvent, FrameError> {
        let tag = tag_of(&self.command);
        self.state = match (announcement.sync, announcement.len) {
            (true, _) => State::Line,
            (false, Some(left)) => State::Discard { left },
            (false, None) => return Err(FrameError::LiteralTooLarge),
        };
        self.reset();
        Ok(CommandEvent::LiteralRefused { tag, len: announcement.len.unwrap_or(u64::MAX), sync: announcement.sync })
    }

    /// Where a command that is already answered goes on after `line`: a
    /// client that announces another literal and waits has got its answer, one
    /// that doesn't wait goes on sending.
    fn drop_rest(&mut self, line: &[u8]) -> Result<(), FrameError> {
        self.state = match announcement_of(line)? {
            Some(Announcement { sync: false, len: Some(left), .. }) => State::Discard { left },
            Some(Announcement { sync: false, len: None, .. }) => return Err(FrameError::LiteralTooLarge),
            Some(Announcement { sync: true, .. }) | None => State::Line,
        };
        self.reset();
        Ok(())
    }

    fn reset(&mut self) {
        self.command.clear();
        self.text = 0;
        self.literals = 0;
    }

    fn take_up_to(&mut self, left: u64) -> Bytes {
        let part = self.buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.buf.split_to(part).freeze()
    }

    /// A line with its CRLF, within what the limit leaves to this command.
    fn take_line(&mut self) -> Result<Option<Bytes>, FrameError> {
        let limit = match self.authenticated {
            true => self.limits.line,
            false if names_client(&self.buf) => self.limits.line_before_auth.max(ID_LINE),
            false => self.limits.line_before_auth,
        };
        let room = limit.saturating_sub(self.text);
        let Some(at) = memchr::memchr(b'\n', &self.buf[self.searched..]).map(|at| at + self.searched) else {
            self.searched = self.buf.len();
            return if self.buf.len() > room { Err(FrameError::LineTooLong) } else { Ok(None) };
        };
        if at >= room {
            return Err(FrameError::LineTooLong);
        }
        self.searched = 0;
        let line = self.buf.split_to(at + 1).freeze();
        match line.strip_suffix(b"\r\n") {
            None => Err(FrameError::BareLf),
            Some(text) if memchr::memchr(b'\r', text).is_some() => Err(FrameError::BareCr),
            Some(_) => Ok(Some(line)),
        }
    }
}

/// Whether a line begins an ID command.
fn names_client(line: &[u8]) -> bool {
    let tag = line.iter().take_while(|b| b.is_ascii_graphic()).count();
    line.get(tag..tag + 5).is_some_and(|verb| verb.eq_ignore_ascii_case(b" ID ("))
}

/// The announcement at the end of `line`, which ends with CRLF.
///
/// A quoted string can't hold CRLF, so a line that ends inside one is
/// malformed anyway; with an announcement at its end, a server behind us could
/// read a literal where we don't, and take what follows for data or command.
fn announcement_of(line: &[u8]) -> Result<Option<Announcement>, FrameError> {
    let text = line.strip_suffix(b"\r\n").unwrap_or(line);
    match announced(text) {
        Some(found) if ends_in_quotes(&text[..found.start]) => Err(FrameError::Ambiguous),
        found => Ok(found),
    }
}

/// Whether what comes after `head` is the message of an APPEND: the mailbox is
/// already there (as atom, quoted string, or literal).
fn is_append_message(head: &[u8]) -> bool {
    let mut words = head.splitn(3, |&b| b == b' ');
    let (Some(_tag), Some(command), Some(arguments)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    command.eq_ignore_ascii_case(b"APPEND") && arguments.iter().any(|&b| b != b' ')
}

fn tag_of(command: &[u8]) -> Bytes {
    let end = command.iter().position(|&b| matches!(b, b' ' | b'\r')).unwrap_or(command.len());
    Bytes::copy_from_slice(&command[..end])
}
