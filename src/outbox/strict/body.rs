//! The walk over a message's lines: headers, boundaries, encoded octets.

use super::content::{self, Content, Encoding};
use super::header::{self, ContentFields};
use super::{MAX_DEPTH, MAX_HEADER, MAX_PARTS, Passed, Refusal, Rules};

/// Where the next line belongs.
#[derive(Debug)]
enum At {
    /// The header of the message, or of a part.
    Header { of_part: bool, lines: Vec<u8> },
    /// The octets of a leaf.
    Leaf(Leaf),
    /// Before the first part of a multipart, or behind its last.
    Between,
}

/// A multipart whose end has not come.
#[derive(Debug)]
struct Open {
    boundary: Vec<u8>,
    parts: usize,
}

/// The walk.
#[derive(Debug)]
pub(super) struct Walk {
    at: At,
    open: Vec<Open>,
    parts: usize,
    passed: Passed,
}

impl Walk {
    pub(super) fn new() -> Self {
        let at = At::Header { of_part: false, lines: Vec::new() };
        Walk { at, open: Vec::new(), parts: 0, passed: Passed::default() }
    }

    /// Takes one line without its CRLF.
    pub(super) fn line(&mut self, line: &[u8], rules: &Rules) -> Result<(), Refusal> {
        if let Some((level, closing)) = self.boundary(line)? {
            return self.turn(level, closing, rules);
        }
        match &mut self.at {
            At::Header { lines, .. } if !line.is_empty() => {
                if lines.len() + line.len() > MAX_HEADER {
                    return Err(Refusal::LongHeader);
                }
                lines.extend_from_slice(line);
                lines.extend_from_slice(b"\r\n");
                Ok(())
            }
            At::Header { .. } => self.header_ends(rules),
            At::Leaf(leaf) => leaf.line(line, rules),
            At::Between if !line.is_ascii() => Err(Refusal::BadlyEncoded),
            At::Between => Ok(()),
        }
    }

    /// Which open multipart's boundary the line is (the innermost is the
    /// last), and whether it closes it.
    fn boundary(&self, line: &[u8]) -> Result<Option<(usize, bool)>, Refusal> {
        let Some(rest) = line.strip_prefix(b"--") else { return Ok(None) };
        for (level, open) in self.open.iter().enumerate().rev() {
            let Some(tail) = rest.strip_prefix(open.boundary.as_slice()) else { continue };
            let (closing, tail) = match tail.strip_prefix(b"--") {
                Some(tail) => (true, tail),
                None => (false, tail),
            };
            // RFC 2046 §5.1.1: blanks may follow. With anything else behind
            // it, some readers see a boundary and some see text.
            if tail.iter().any(|b| *b != b' ' && *b != b'\t') {
                return Err(Refusal::Boundary);
            }
            return Ok(Some((level, closing)));
        }
        Ok(None)
    }

    fn turn(&mut self, level: usize, closing: bool, rules: &Rules) -> Result<(), Refusal> {
        // An outer boundary inside an open inner multipart ends both for
        // some readers and neither for others.
        if level + 1 != self.open.len() {
            return Err(Refusal::Unclosed);
        }
        self.part_ends(rules)?;
        let Some(open) = self.open.last_mut() else { return Err(Refusal::Boundary) };
        if closing {
            if open.parts == 0 {
                return Err(Refusal::Unclosed);
            }
            self.open.pop();
            self.at = At::Between;
            return Ok(());
        }
        open.parts += 1;
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(Refusal::TooManyParts);
        }
        self.at = At::Header { of_part: true, lines: Vec::new() };
        Ok(())
    }

    /// The part in front of a boundary, or of the message's end, is over.
    fn part_ends(&mut self, rules: &Rules) -> Result<(), Refusal> {
        if let At::Header { .. } = self.at {
            self.header_ends(rules)?;
        }
        if let At::Leaf(leaf) = &self.at {
            leaf.ends()?;
        }
        Ok(())
    }

    fn header_ends(&mut self, rules: &Rules) -> Result<(), Refusal> {
        let At::Header { of_part, lines } = std::mem::replace(&mut self.at, At::Between) else { return Ok(()) };
        let fields: ContentFields = if of_part {
            header::part(&lines, rules)?
        } else {
            let (passed, fields) = header::message(&lines, rules)?;
            self.passed = passed;
            fields
        };
        match content::content(&fields)? {
            Content::Leaf { encoding, utf8, ascii } => self.at = At::Leaf(Leaf::new(encoding, utf8, ascii)),
            Content::Multipart(boundary) => {
                if self.open.len() == MAX_DEPTH {
                    return Err(Refusal::TooManyParts);
                }
                // One boundary that begins with another can't be told apart.
                let mistaken = |o: &Open| o.boundary.starts_with(&boundary) || boundary.starts_with(&o.boundary);
                if self.open.iter().any(mistaken) {
                    return Err(Refusal::Boundary);
                }
                self.open.push(Open { boundary, parts: 0 });
                self.at = At::Between;
            }
        }
        Ok(())
    }

    /// The message is over.
    pub(super) fn finish(mut self, rules: &Rules) -> Result<Passed, Refusal> {
        self.part_ends(rules)?;
        if self.open.is_empty() { Ok(self.passed) } else { Err(Refusal::Unclosed) }
    }
}

/// The octets of a leaf, checked against its encoding.
#[derive(Debug)]
struct Leaf {
    encoding: Encoding,
    utf8: bool,
    ascii: bool,
    /// Base64 digits so far, modulo 4, padding included.
    digits: usize,
    padded: bool,
    /// Quoted-printable: the last line ended in a soft break.
    soft: bool,
}

impl Leaf {
    fn new(encoding: Encoding, utf8: bool, ascii: bool) -> Self {
        Leaf { encoding, utf8, ascii, digits: 0, padded: false, soft: false }
    }

    fn line(&mut self, line: &[u8], rules: &Rules) -> Result<(), Refusal> {
        let ascii = line.is_ascii();
        if !ascii && !rules.eight_bit {
            return Err(Refusal::NeedsEightBit);
        }
        let good = match self.encoding {
            Encoding::SevenBit => ascii,
            Encoding::EightBit => ascii || (!self.ascii && (!self.utf8 || std::str::from_utf8(line).is_ok())),
            Encoding::QuotedPrintable => self.quoted_printable(line),
            Encoding::Base64 => self.base64(line),
        };
        if good { Ok(()) } else { Err(Refusal::BadlyEncoded) }
    }

    /// RFC 2045 §6.7: `=` and two hexadecimal digits, or a soft break; no
    /// blank at the end of a line.
    fn quoted_printable(&mut self, line: &[u8]) -> bool {
        self.soft = false;
        let mut at = 0;
        while at < line.len() {
            match line[at] {
                b'=' if at + 1 == line.len() => self.soft = true,
                b'=' => {
                    let hex = |n: usize| line.get(n).is_some_and(u8::is_ascii_hexdigit);
                    if !hex(at + 1) || !hex(at + 2) {
                        return false;
                    }
                    at += 2;
                }
                b' '..=b'~' | b'\t' => {}
                _ => return false,
            }
            at += 1;
        }
        !line.ends_with(b" ") && !line.ends_with(b"\t")
    }

    /// RFC 2045 §6.8, without characters outside the alphabet: what one
    /// reader skips, another stops at.
    fn base64(&mut self, line: &[u8]) -> bool {
        for octet in line {
            match octet {
                b'=' if self.digits >= 2 => self.padded = true,
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if !self.padded => {}
                _ => return false,
            }
            self.digits = (self.digits + 1) % 4;
        }
        true
    }

    fn ends(&self) -> Result<(), Refusal> {
        if self.digits == 0 && !self.soft { Ok(()) } else { Err(Refusal::BadlyEncoded) }
    }
}
