//! Whole responses, put together from pieces.
//!
//! Promises: a response's text is what came, literals inline (`{n}`, CRLF, n
//! octets), without the final CRLF. Doesn't know: what untagged data says;
//! see [`Untagged::parse`].

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::{ImapError, MAX_RESPONSE, Tag};
use crate::wire::imap::Piece;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok,
    /// Not done.
    No,
    /// Not understood.
    Bad,
}

/// One whole response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// `*` and data.
    Untagged(Untagged),
    /// The answer to a command.
    Tagged {
        /// The command, where the tag is one of ours.
        tag: Option<Tag>,
        /// The tag as it came.
        raw_tag: Bytes,
        /// How it ended.
        status: Status,
        /// Response code without brackets.
        code: Option<Bytes>,
        /// Text for people.
        text: Bytes,
    },
    /// `+` and its text.
    Continue(Bytes),
}

/// Untagged data as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untagged {
    /// All of it from `*` on, literals inline, without the final CRLF.
    pub text: Bytes,
    /// The literals in order; slices of `text`.
    pub literals: Vec<Bytes>,
}

/// What a command brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Response code of the tagged response, without brackets.
    pub code: Option<Bytes>,
    /// Its text.
    pub text: Bytes,
    /// Untagged responses that came before it, in order.
    pub untagged: Vec<Untagged>,
}

impl Outcome {
    /// Turns NO and BAD into errors.
    pub fn ok(self) -> Result<Outcome, ImapError> {
        let text = || String::from_utf8_lossy(&self.text).into_owned();
        match self.status {
            Status::Ok => Ok(self),
            Status::No => Err(ImapError::No { text: text(), code: self.code }),
            Status::Bad => Err(ImapError::Bad { text: text() }),
        }
    }
}

/// A response on its way.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: BytesMut,
    literals: Vec<Range<usize>>,
    /// A response was too large; its end must not pass for a whole one.
    failed: bool,
}

impl Assembly {
    /// Adds a piece; a response comes back when it is complete. Empty lines,
    /// which mean nothing, are passed over.
    pub(super) fn add(&mut self, piece: Piece) -> Result<Option<Response>, ImapError> {
        match piece {
            Piece::Text(text) => self.extend(&text)?,
            Piece::Chunk(octets) => {
                self.extend(&octets)?;
                if let Some(last) = self.literals.last_mut() {
                    last.end = self.text.len();
                }
            }
            Piece::Literal { len } => {
                self.failed |= len > MAX_RESPONSE as u64; // refused before its octets come
                self.extend(b"\r\n")?;
                self.literals.push(self.text.len()..self.text.len());
            }
            Piece::End if self.text.is_empty() => {}
            Piece::End => {
                let text = self.text.split().freeze();
                let literals = self.literals.drain(..).map(|span| text.slice(span)).collect();
                return classify(text, literals).map(Some);
            }
        }
        Ok(None)
    }

    /// Fails for good once a response was too large.
    pub(super) fn check(&self) -> Result<(), ImapError> {
        if self.failed { Err(ImapError::TooLarge) } else { Ok(()) }
    }

    fn extend(&mut self, octets: &[u8]) -> Result<(), ImapError> {
        self.failed |= self.text.len() + octets.len() > MAX_RESPONSE;
        self.check()?;
        self.text.extend_from_slice(octets);
        Ok(())
    }
}

fn classify(text: Bytes, literals: Vec<Bytes>) -> Result<Response, ImapError> {
    match text.first() {
        Some(b'+') => Ok(Response::Continue(after_blanks(&text, 1))),
        Some(b'*') => Ok(Response::Untagged(Untagged { text, literals })),
        _ => tagged(&text),
    }
}

fn tagged(line: &Bytes) -> Result<Response, ImapError> {
    let (raw_tag, rest) = word(line);
    let (status, rest) = word(&rest);
    let Some(status) = status_of(&status) else {
        return Err(ImapError::Protocol("a line that is no response".into()));
    };
    let (code, text) = split_code(&rest);
    Ok(Response::Tagged { tag: Tag::parse(&raw_tag), raw_tag, status, code, text })
}

fn status_of(word: &[u8]) -> Option<Status> {
    [(&b"OK"[..], Status::Ok), (b"NO", Status::No), (b"BAD", Status::Bad)]
        .into_iter()
        .find_map(|(name, status)| word.eq_ignore_ascii_case(name).then_some(status))
}

/// The first word, and what follows the blanks after it.
pub(super) fn word(text: &Bytes) -> (Bytes, Bytes) {
    let end = text.iter().position(|&b| b == b' ').unwrap_or(text.len());
    (text.slice(..end), after_blanks(text, end))
}

pub(super) fn after_blanks(text: &Bytes, from: usize) -> Bytes {
    let blanks = text[from..].iter().take_while(|&&b| b == b' ').count();
    text.slice(from + blanks..)
}

/// Splits `[code] text`. RFC 9051 §7.1: the code stands in brackets first.
///
/// A keyword may hold `]` (`[PERMANENTFLAGS (a])]`): the code ends at the
/// first `]` outside of parentheses and quotes, or at the first at all where
/// those don't come out even.
pub(super) fn split_code(text: &Bytes) -> (Option<Bytes>, Bytes) {
    if text.first() != Some(&b'[') {
        return (None, text.clone());
    }
    let end = balanced_end(text).or_else(|| memchr::memchr(b']', text));
    match end {
        Some(end) => (Some(text.slice(1..end)), after_blanks(text, end + 1)),
        None => (None, text.clone()),
    }
}

fn balanced_end(text: &[u8]) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, &octet) in text.iter().enumerate() {
        match octet {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b']' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}
