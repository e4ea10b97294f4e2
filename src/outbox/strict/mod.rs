//! What an agent's message must be before it is held: MIME that every reader
//! reads the same way, and nothing that instructs a provider.
//!
//! Promises: a message that passes has one meaning for the approval page,
//! the provider and the recipient, as far as structure, encodings and the
//! singular fields go; it is read in pieces, in bounded memory. Doesn't
//! know: whether the content is good; the envelope.
//!
//! | refused | reply |
//! |---|---|
//! | malformed or repeated fields, unknown fields, structure, encodings | 550 5.6.0 |
//! | `From` or `Sender` of another account, `Bcc`, provider instructions | 550 5.7.1 |
//! | 8-bit text without `BODY=8BITMIME` | 554 5.6.3 |
//! | UTF-8 in the header without SMTPUTF8 | 550 5.6.7 |

mod body;
mod content;
mod header;

use std::collections::BTreeSet;

use crate::wire::smtp::Reply;

/// Longest line without its CRLF (RFC 5322 §2.1.1, RFC 5321 §4.5.3.1.6).
pub const MAX_LINE: usize = 998;
/// Longest header of a message or part, in octets.
pub const MAX_HEADER: usize = 128 * 1024;
/// Most fields of one header.
pub const MAX_FIELDS: usize = 200;
/// Deepest nesting of multiparts.
pub const MAX_DEPTH: usize = 16;
/// Most parts of a message.
pub const MAX_PARTS: usize = 500;

/// What the message is checked against.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The account's addresses in canonical form.
    pub addresses: BTreeSet<String>,
    /// `BODY=8BITMIME` was given.
    pub eight_bit: bool,
    /// SMTPUTF8 was given.
    pub smtputf8: bool,
}

/// What is worth keeping of a message that passed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Passed {
    /// The Message-ID field, trimmed.
    pub message_id: Option<String>,
    /// The Subject field, unfolded, not decoded.
    pub subject: Option<String>,
}

/// Why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A line that is longer than [`MAX_LINE`].
    #[error("a line is longer than {MAX_LINE} octets")]
    LongLine,
    /// A header over [`MAX_HEADER`] or [`MAX_FIELDS`].
    #[error("a header is too long")]
    LongHeader,
    /// A NUL.
    #[error("the message holds a NUL")]
    Nul,
    /// A header line that is no field.
    #[error("a header line is no field")]
    FieldSyntax,
    /// A field that may stand once stands again.
    #[error("the field {0} stands more than once")]
    Repeated(String),
    /// A field that must stand is missing.
    #[error("the field {0} is missing; providers would add one and change the message")]
    Missing(&'static str),
    /// A field outside the allow-list.
    #[error("the field {0} is not accepted from an agent")]
    FieldNotAllowed(String),
    /// `Bcc` in the header.
    #[error("the field Bcc is not accepted: it would show the hidden recipients")]
    Bcc,
    /// A field that instructs the provider or asks for receipts.
    #[error("the field {0} instructs the provider and is not accepted from an agent")]
    Instruction(String),
    /// `From` or `Sender` can't be read as a list of addresses.
    #[error("the field {0} is not a plain list of addresses")]
    Addresses(&'static str),
    /// `From` or `Sender` is not the account's.
    #[error("the field {0} names an address that is not this account's")]
    ForeignAddress(&'static str),
    /// UTF-8 in the header without SMTPUTF8.
    #[error("the header holds UTF-8 and SMTPUTF8 was not asked for")]
    NeedsSmtputf8,
    /// The header is not UTF-8.
    #[error("the header is not valid UTF-8")]
    HeaderNotUtf8,
    /// 8-bit text without `BODY=8BITMIME`.
    #[error("the text is 8-bit and BODY=8BITMIME was not given")]
    NeedsEightBit,
    /// MIME-Version other than 1.0.
    #[error("MIME-Version is not 1.0")]
    MimeVersion,
    /// A Content-Type that can't be read in one way.
    #[error("a Content-Type is not valid")]
    ContentType,
    /// A type that brings content from elsewhere or in pieces.
    #[error("a part of type {0} is not accepted")]
    TypeNotAllowed(String),
    /// A Content-Transfer-Encoding that is unknown or may not stand there.
    #[error("a Content-Transfer-Encoding is not valid")]
    Encoding,
    /// A charset that isn't known.
    #[error("the charset {0} is not known")]
    Charset(String),
    /// A multipart's boundary is missing, malformed or could be mistaken.
    #[error("a multipart's boundary is not valid")]
    Boundary,
    /// A multipart has no end, or no part.
    #[error("a multipart is not closed")]
    Unclosed,
    /// Too deep or too many parts.
    #[error("the message has too many parts")]
    TooManyParts,
    /// Octets that the declared encoding does not allow.
    #[error("a part is not what its Content-Transfer-Encoding says")]
    BadlyEncoded,
}

impl Refusal {
    /// The reply to the client.
    pub fn reply(&self) -> Reply {
        use Refusal::*;
        let (code, enhanced) = match self {
            LongLine | LongHeader | Nul | FieldSyntax | Repeated(_) | Missing(_) | FieldNotAllowed(_)
            | Addresses(_) | HeaderNotUtf8 | MimeVersion | ContentType | TypeNotAllowed(_) | Encoding | Charset(_)
            | Boundary | Unclosed | TooManyParts | BadlyEncoded => (550, "5.6.0"),
            Bcc | Instruction(_) | ForeignAddress(_) => (550, "5.7.1"),
            NeedsSmtputf8 => (550, "5.6.7"),
            NeedsEightBit => (554, "5.6.3"),
        };
        Reply::new(code, enhanced, self.to_string())
    }
}

/// Checks a message as it comes. The octets must be free of bare CR and LF.
#[derive(Debug)]
pub struct Checker {
    rules: Rules,
    line: Vec<u8>,
    walk: body::Walk,
    refused: Option<Refusal>,
}

impl Checker {
    /// At the first octet of a message.
    pub fn new(rules: Rules) -> Self {
        Checker { rules, line: Vec::new(), walk: body::Walk::new(), refused: None }
    }

    /// Takes the next octets.
    pub fn feed(&mut self, mut octets: &[u8]) {
        while self.refused.is_none() && !octets.is_empty() {
            let Some(lf) = memchr::memchr(b'\n', octets) else {
                self.line.extend_from_slice(octets);
                if self.line.len() > MAX_LINE + 1 {
                    self.refused = Some(Refusal::LongLine);
                }
                return;
            };
            let (head, tail) = octets.split_at(lf + 1);
            octets = tail;
            let whole = if self.line.is_empty() {
                head.to_vec()
            } else {
                self.line.extend_from_slice(head);
                std::mem::take(&mut self.line)
            };
            let line = whole.strip_suffix(b"\r\n").unwrap_or(&whole);
            if let Err(refusal) = self.line(line) {
                self.refused = Some(refusal);
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Refusal> {
        if line.len() > MAX_LINE {
            return Err(Refusal::LongLine);
        }
        if memchr::memchr(0, line).is_some() {
            return Err(Refusal::Nul);
        }
        self.walk.line(line, &self.rules)
    }

    /// The verdict, after the last octet.
    pub fn finish(self) -> Result<Passed, Refusal> {
        match self.refused {
            Some(refusal) => Err(refusal),
            None => self.walk.finish(&self.rules),
        }
    }
}

#[cfg(test)]
mod tests;
