//! The server's octets into pieces of responses.
//!
//! Promises: a literal passes through chunk by chunk and is never collected;
//! text of status responses (`OK`, `NO`, `BAD`, `BYE`, `PREAUTH`, tagged, `+`)
//! announces nothing, whatever it ends with.
//!
//! Doesn't know: what a response says.

use bytes::{Bytes, BytesMut};

use super::{Announcement, FrameError, announced};

/// Longest part of a response between literals, unless set otherwise.
pub const MAX_TEXT_PART: usize = 1024 * 1024;

/// A piece of a response. The octets of a response are its pieces in order,
/// with CRLF after a text before [`Piece::Literal`] and at [`Piece::End`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Part of the response without CRLF; before a literal it ends with the
    /// announcement. An empty part after a literal is left out.
    Text(Bytes),
    /// So many octets follow in chunks.
    Literal {
        /// Octets.
        len: u64,
    },
    /// Octets of the literal.
    Chunk(Bytes),
    /// The response is complete.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a response.
    Start,
    /// Inside a response, after a literal.
    Text,
    /// Inside a literal.
    Literal { left: u64 },
}

/// See the module.
#[derive(Debug)]
pub struct ResponseReader {
    buf: BytesMut,
    searched: usize,
    max_text: usize,
    state: State,
    /// What follows the piece given last.
    queued: Option<Piece>,
    failed: Option<FrameError>,
}

impl Default for ResponseReader {
    fn default() -> ResponseReader {
        ResponseReader::new()
    }
}

impl ResponseReader {
    /// A reader before the first response.
    pub fn new() -> ResponseReader {
        ResponseReader::with_max_text(MAX_TEXT_PART)
    }

    /// A reader that takes text parts of up to `max_text` octets.
    pub fn with_max_text(max_text: usize) -> ResponseReader {
        ResponseReader { buf: BytesMut::new(), searched: 0, max_text, state: State::Start, queued: None, failed: None }
    }

    /// Takes octets from the server.
    pub fn push(&mut self, octets: &[u8]) {
        self.buf.extend_from_slice(octets);
    }

    /// The buffer itself, to read into without a copy: append only.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buf
    }

    /// How many octets wait unread.
    pub fn buffered(&self) -> usize {
        self.buf.len()
    }

    /// Whether the reader stands between two responses.
    pub fn between_responses(&self) -> bool {
        self.state == State::Start && self.queued.is_none()
    }

    /// The next piece, or `None` when more octets are needed.
    #[allow(clippy::should_implement_trait)] // a fallible pull, not an iterator that ends
    pub fn next(&mut self) -> Result<Option<Piece>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.step().inspect_err(|error| self.failed = Some(*error))
    }

    fn step(&mut self) -> Result<Option<Piece>, FrameError> {
        if let Some(piece) = self.queued.take() {
            return Ok(Some(piece));
        }
        match self.state {
            State::Literal { left: 0 } => self.state = State::Text,
            State::Literal { left } => {
                let part = self.buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                if part == 0 {
                    return Ok(None);
                }
                self.state = State::Literal { left: left - part as u64 };
                return Ok(Some(Piece::Chunk(self.buf.split_to(part).freeze())));
            }
            State::Start | State::Text => {}
        }
        let Some(text) = self.take_line()? else { return Ok(None) };
        let first = self.state == State::Start;
        let then = match announcement_of(&text, first) {
            Some(Announcement { len: Some(len), .. }) => {
                self.state = State::Literal { left: len };
                Piece::Literal { len }
            }
            Some(Announcement { len: None, .. }) => return Err(FrameError::LiteralTooLarge),
            None => {
                self.state = State::Start;
                Piece::End
            }
        };
        if text.is_empty() && !first {
            return Ok(Some(then));
        }
        self.queued = Some(then);
        Ok(Some(Piece::Text(text)))
    }

    /// A line without its CRLF.
    fn take_line(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(at) = memchr::memchr(b'\n', &self.buf[self.searched..]).map(|at| at + self.searched) else {
            self.searched = self.buf.len();
            return if self.buf.len() > self.max_text { Err(FrameError::LineTooLong) } else { Ok(None) };
        };
        if at >= self.max_text {
            return Err(FrameError::LineTooLong);
        }
        self.searched = 0;
        let mut line = self.buf.split_to(at + 1).freeze();
        match line.strip_suffix(b"\r\n") {
            Some(text) => Ok(Some(line.split_to(text.len()))),
            None => Err(FrameError::BareLf),
        }
    }
}

/// The announcement at the end of `text`, the first part of a response or a
/// later one.
///
/// Quotes need no tracking here: a quoted string can't hold CRLF, so `{n}`
/// inside one never stands at the end of a line. Where the quotes don't come
/// out even, a server left one unescaped before, and the announcement is
/// real; to ignore it would let a message's octets be read as responses.
fn announcement_of(text: &[u8], first: bool) -> Option<Announcement> {
    if first && is_status(text) {
        return None;
    }
    let found = announced(text)?;
    // An unquoted name may end like an announcement; a value stands apart.
    let before = text[..found.start].last();
    matches!(before, None | Some(b' ' | b'(' | b']' | b'>')).then_some(found)
}

/// RFC 9051 §7.1: resp-text is free text; it holds no literal.
fn is_status(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(b"*") else {
        return true; // tagged, or `+`
    };
    let word = rest.split(|&b| b == b' ').find(|word| !word.is_empty()).unwrap_or_default();
    [&b"OK"[..], b"NO", b"BAD", b"BYE", b"PREAUTH"].iter().any(|status| word.eq_ignore_ascii_case(status))
}
