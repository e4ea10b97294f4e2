//! IMAP framing in both directions.
//!
//! Promises: [`CommandReader`] and [`ResponseReader`] give the same events
//! whichever way the octets were cut into reads; concatenated, the events are
//! the octets that came (a [`Piece`] leaves out each CRLF, which it implies).
//! A literal is recognised exactly where a peer that follows RFC 9051 §4.3
//! would recognise it, a doubtful one is an error and never "no literal".
//! Every line and literal is bounded, and memory grows only with octets that
//! arrived.
//!
//! Doesn't know: which commands exist (but for APPEND, whose message is
//! streamed), whether arguments are well-formed, what a mailbox name means
//! (names stay wire octets, modified UTF-7 isn't decoded).

mod astring;
mod command;
mod response;
#[cfg(test)]
mod tests;
mod token;

pub use astring::{Quoted, encode_astring};
pub use command::{CommandEvent, CommandReader};
pub use response::{MAX_TEXT_PART, Piece, ResponseReader};
pub use token::{Kind, Scanner, Token, unescape};

/// Longest command text (all lines of a command, without its literals) of a
/// client that has logged in.
pub const MAX_LINE: usize = 64 * 1024;
/// Longest command text before login.
pub const MAX_LINE_BEFORE_AUTH: usize = 8 * 1024;
/// Most octets that the buffered literals of one command may have together.
pub const MAX_LITERALS: u64 = 64 * 1024;
/// The same before login.
pub const MAX_LITERALS_BEFORE_AUTH: u64 = 4 * 1024;
/// Largest message of an APPEND unless configured otherwise.
pub const DEFAULT_MAX_APPEND: u64 = 64 * 1024 * 1024;

/// Bounds of a [`CommandReader`], in octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Text of one command, without literals, before login.
    pub line_before_auth: usize,
    /// Text of one command, without literals, after login.
    pub line: usize,
    /// Buffered literals of one command together, before login.
    pub literals_before_auth: u64,
    /// Buffered literals of one command together, after login.
    pub literals: u64,
    /// The streamed message of an APPEND.
    pub append: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            line_before_auth: MAX_LINE_BEFORE_AUTH,
            line: MAX_LINE,
            literals_before_auth: MAX_LITERALS_BEFORE_AUTH,
            literals: MAX_LITERALS,
            append: DEFAULT_MAX_APPEND,
        }
    }
}

/// Why the octets can't be framed. After one of these the stream is lost:
/// the reader repeats the error and the connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// LF without CR before it.
    #[error("a line ended with a bare LF")]
    BareLf,
    /// CR without LF after it (client side only).
    #[error("a line contained a bare CR")]
    BareCr,
    /// The text of a command or response exceeds its limit.
    #[error("line too long")]
    LineTooLong,
    /// A non-synchronizing or server literal whose length isn't representable,
    /// so that its end can't be found.
    #[error("literal too large")]
    LiteralTooLarge,
    /// A literal is announced inside a quoted string that never ends: two
    /// peers could read this differently.
    #[error("literal announced inside an unfinished quoted string")]
    Ambiguous,
}

/// What the end of a line announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Announcement {
    /// Offset of `{`, or of the `~` before it.
    start: usize,
    /// Octets promised; `None` when the number doesn't fit.
    len: Option<u64>,
    /// Whether the sender waits for a continuation.
    sync: bool,
}

/// Reads `{n}`, `{n+}` or `~{n}` at the end of `line` (without CRLF).
///
/// RFC 9051 §4.3: literal = "{" number64 ["+"] "}" CRLF *CHAR8; RFC 3516 §4.2
/// puts "~" before it. Signs and blanks inside aren't part of the grammar.
fn announced(line: &[u8]) -> Option<Announcement> {
    let inner = line.strip_suffix(b"}")?;
    let (inner, sync) = match inner.strip_suffix(b"+") {
        Some(rest) => (rest, false),
        None => (inner, true),
    };
    let digits = inner.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let (before, number) = inner.split_at(inner.len() - digits);
    let before = before.strip_suffix(b"{")?;
    if digits == 0 {
        return None;
    }
    let len =
        number.iter().try_fold(0u64, |n, digit| n.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit - b'0'))));
    let start = before.len() - usize::from(before.ends_with(b"~"));
    Some(Announcement { start, len, sync })
}

/// Whether `line` ends inside a quoted string.
fn ends_in_quotes(line: &[u8]) -> bool {
    let mut quoted = false;
    let mut octets = line.iter();
    while let Some(octet) = octets.next() {
        match octet {
            b'"' => quoted = !quoted,
            b'\\' if quoted => {
                octets.next();
            }
            _ => {}
        }
    }
    quoted
}
