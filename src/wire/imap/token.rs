//! Tokens of one whole response, with the span of each.
//!
//! Promises: never fails and always advances; spans point into the text that
//! was given, so what isn't understood can be passed on as it came. Bears
//! what servers get wrong: quotes inside quoted strings, blanks before `)`.
//!
//! Doesn't know: which tokens belong together.

use std::borrow::Cow;
use std::ops::Range;

use super::announced;

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A word, number or flag; `BODY[HEADER.FIELDS (A B)]<0>` is one.
    Atom,
    /// A quoted string; the span includes the quotes.
    Quoted,
    /// A literal; the span includes its announcement.
    Literal {
        /// The octets of the literal alone.
        data: Range<usize>,
    },
    /// The word NIL.
    Nil,
    /// `(`
    Open,
    /// `)`
    Close,
}

/// A token and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where it stands in the text.
    pub span: Range<usize>,
}

impl Token {
    /// What the token says: an atom as it stands, a string without its quoting.
    /// `text` is what the scanner was given.
    pub fn content<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match &self.kind {
            Kind::Atom | Kind::Open | Kind::Close => Cow::Borrowed(&text[self.span.clone()]),
            Kind::Nil => Cow::Borrowed(&[]),
            Kind::Literal { data } => Cow::Borrowed(&text[data.clone()]),
            Kind::Quoted => unescape(&text[inside(&text[self.span.clone()], &self.span)]),
        }
    }
}

/// The span between the quotes; a string that never ended has only one.
fn inside(quoted: &[u8], span: &Range<usize>) -> Range<usize> {
    let closed = quoted.len() >= 2 && quoted.ends_with(b"\"");
    span.start + 1..span.end - usize::from(closed)
}

/// Removes the backslash before `"` and `\`; another backslash stays.
pub fn unescape(inside: &[u8]) -> Cow<'_, [u8]> {
    if !inside.contains(&b'\\') {
        return Cow::Borrowed(inside);
    }
    let mut out = Vec::with_capacity(inside.len());
    let mut octets = inside.iter().copied().peekable();
    while let Some(octet) = octets.next() {
        match (octet, octets.peek()) {
            (b'\\', Some(&next @ (b'"' | b'\\'))) => {
                octets.next();
                out.push(next);
            }
            _ => out.push(octet),
        }
    }
    Cow::Owned(out)
}

/// See the module. The text holds literals inline, `{n}` CRLF and n octets.
#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `text`.
    pub fn new(text: &'a [u8]) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    /// A scanner at `at`.
    pub fn starting_at(text: &'a [u8], at: usize) -> Scanner<'a> {
        Scanner { text, at: at.min(text.len()) }
    }

    /// Offset of what comes next.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next value: a token, or a list with all that it holds, whose span
    /// then runs from `(` to `)` and whose kind is [`Kind::Open`]. `None` at
    /// the end and before a `)`, which is left unread.
    pub fn value(&mut self) -> Option<Token> {
        let before = self.at;
        let first = self.next()?;
        match first.kind {
            Kind::Close => {
                self.at = before;
                None
            }
            Kind::Open => {
                let mut depth = 1usize;
                while depth > 0 {
                    match self.next() {
                        Some(Token { kind: Kind::Open, .. }) => depth += 1,
                        Some(Token { kind: Kind::Close, .. }) => depth -= 1,
                        Some(_) => {}
                        None => break,
                    }
                }
                Some(Token { kind: Kind::Open, span: first.span.start..self.at })
            }
            Kind::Atom | Kind::Quoted | Kind::Literal { .. } | Kind::Nil => Some(first),
        }
    }
}

impl Iterator for Scanner<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let blanks = self.text[self.at..].iter().take_while(|b| matches!(b, b' ' | b'\r' | b'\n' | b'\t')).count();
        let start = self.at + blanks;
        let rest = &self.text[start..];
        let (kind, len) = match rest.first()? {
            b'(' => (Kind::Open, 1),
            b')' => (Kind::Close, 1),
            b'"' => (Kind::Quoted, quoted_len(rest)),
            b'{' | b'~' => match literal(rest) {
                Some((skip, len)) => (Kind::Literal { data: start + skip..start + skip + len }, skip + len),
                None => (Kind::Atom, atom_len(rest)),
            },
            _ => match atom_len(rest) {
                3 if rest[..3].eq_ignore_ascii_case(b"NIL") => (Kind::Nil, 3),
                len => (Kind::Atom, len),
            },
        };
        self.at = start + len;
        Some(Token { kind, span: start..start + len })
    }
}

/// Length of the quoted string at the start of `rest`, both quotes included.
///
/// A quote ends the string only where a string may end. Some servers send a
/// display name's own quotes unescaped (`"a "b" c"`).
fn quoted_len(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&octet) = rest.get(at) {
        match octet {
            b'\\' => at += 1,
            b'"' if matches!(rest.get(at + 1), None | Some(b' ' | b'(' | b')' | b']' | b'\r')) => return at + 1,
            _ => {}
        }
        at += 1;
    }
    rest.len()
}

/// Announcement length (CRLF included) and data length of the literal at the
/// start of `rest`, cut to what is there.
fn literal(rest: &[u8]) -> Option<(usize, usize)> {
    let end = memchr::memchr(b'\r', rest)?;
    let found = announced(&rest[..end])?;
    if found.start != 0 || rest.get(end + 1) != Some(&b'\n') {
        return None;
    }
    let skip = end + 2;
    let len = usize::try_from(found.len?).unwrap_or(usize::MAX).min(rest.len() - skip);
    Some((skip, len))
}

/// Length of the atom at the start of `rest`; at least 1.
fn atom_len(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&octet) = rest.get(at) {
        match octet {
            b' ' | b'(' | b')' | b'\r' | b'\n' => break,
            b'[' if is_section(&rest[..at]) => at += section_len(&rest[at..]),
            _ => at += 1,
        }
    }
    at.max(1)
}

/// Whether `[` after `name` opens a section; elsewhere (in keywords) it is a
/// character like others.
fn is_section(name: &[u8]) -> bool {
    [&b"BODY"[..], b"BODY.PEEK", b"BINARY", b"BINARY.PEEK", b"BINARY.SIZE"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

/// Length of `[…]` at the start of `rest`; field names in it may be quoted.
fn section_len(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&octet) = rest.get(at) {
        match octet {
            b']' => return at + 1,
            b'"' => at += quoted_len(&rest[at..]),
            b'{' => at += literal(&rest[at..]).map_or(1, |(skip, len)| skip + len),
            _ => at += 1,
        }
    }
    rest.len()
}
