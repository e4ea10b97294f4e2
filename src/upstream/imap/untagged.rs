//! What untagged data says.
//!
//! Promises: never fails; what isn't understood is [`UntaggedData::Other`], or
//! is passed on raw. Takes what real servers send against the grammar: blanks
//! before `)`, NIL where a value belongs, sizes beyond 32 bits, quotes and
//! backslashes unescaped.
//!
//! Doesn't know: message structures, dates, envelopes: they stay raw.

use bytes::Bytes;

use super::Untagged;
use super::response::{after_blanks, split_code, word};
use crate::wire::imap::{Kind, Scanner, Token};

/// Untagged data, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UntaggedData {
    /// The mailbox has so many messages.
    Exists(u32),
    /// So many are recent.
    Recent(u32),
    /// The message with this sequence number is gone.
    Expunge(u32),
    /// Data of one message.
    Fetch {
        /// Its sequence number.
        seq: u32,
        /// The data.
        items: FetchItems,
    },
    /// Flags of the mailbox.
    Flags(Vec<Bytes>),
    /// A mailbox.
    List {
        /// Its attributes.
        flags: Vec<Bytes>,
        /// Its hierarchy delimiter, if it has one.
        delimiter: Option<u8>,
        /// Its name in wire octets, without quoting.
        name: Bytes,
    },
    /// A subscribed mailbox.
    Lsub {
        /// Its attributes.
        flags: Vec<Bytes>,
        /// Its hierarchy delimiter, if it has one.
        delimiter: Option<u8>,
        /// Its name in wire octets, without quoting.
        name: Bytes,
    },
    /// Counters of a mailbox.
    Status {
        /// Its name in wire octets.
        mailbox: Bytes,
        /// Names in upper case, and values; what isn't a number is left out.
        items: Vec<(String, u64)>,
    },
    /// Numbers that a SEARCH found.
    Search(Vec<u32>),
    /// What the server can do.
    Capability(Vec<String>),
    /// `* OK`
    Ok {
        /// Response code without brackets.
        code: Option<Bytes>,
        /// Text for people.
        text: Bytes,
    },
    /// `* NO`
    No {
        /// Response code without brackets.
        code: Option<Bytes>,
        /// Text for people.
        text: Bytes,
    },
    /// `* BAD`
    Bad {
        /// Response code without brackets.
        code: Option<Bytes>,
        /// Text for people.
        text: Bytes,
    },
    /// `* BYE`: the server closes.
    Bye {
        /// Code and text.
        text: Bytes,
    },
    /// Messages that are gone, by UID (RFC 7162 §3.2.10).
    Vanished {
        /// Whether they went before this session looked.
        earlier: bool,
        /// The UIDs as a set, as it came.
        raw: Bytes,
    },
    /// Anything else.
    Other,
}

/// Data of one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchItems {
    /// UID.
    pub uid: Option<u32>,
    /// FLAGS.
    pub flags: Option<Vec<Bytes>>,
    /// RFC822.SIZE.
    pub size: Option<u64>,
    /// INTERNALDATE without quotes.
    pub internaldate: Option<Bytes>,
    /// MODSEQ.
    pub modseq: Option<u64>,
    /// All other items: name as sent (`BODY[HEADER]`), and value.
    pub other: Vec<(Bytes, Value)>,
}

/// The value of a FETCH item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// An atom or a list as it came, literals inline.
    Raw(Bytes),
    /// A literal's octets.
    Literal(Bytes),
    /// NIL.
    Nil,
    /// A quoted string without its quoting.
    Quoted(Bytes),
}

impl Untagged {
    /// Takes it apart.
    pub fn parse(&self) -> UntaggedData {
        let text = after_blanks(&self.text, 1.min(self.text.len()));
        let (first, rest) = word(&text);
        match number(&first) {
            Some(n) => numbered(n, &rest),
            None => named(&first, &rest),
        }
    }
}

fn numbered(n: u64, rest: &Bytes) -> UntaggedData {
    let (name, rest) = word(rest);
    let Ok(n) = u32::try_from(n) else { return UntaggedData::Other };
    match upper(&name).as_slice() {
        b"EXISTS" => UntaggedData::Exists(n),
        b"RECENT" => UntaggedData::Recent(n),
        b"EXPUNGE" => UntaggedData::Expunge(n),
        b"FETCH" => UntaggedData::Fetch { seq: n, items: fetch(&rest) },
        _ => UntaggedData::Other,
    }
}

fn named(name: &Bytes, rest: &Bytes) -> UntaggedData {
    match upper(name).as_slice() {
        b"OK" => {
            let (code, text) = split_code(rest);
            UntaggedData::Ok { code, text }
        }
        b"NO" => {
            let (code, text) = split_code(rest);
            UntaggedData::No { code, text }
        }
        b"BAD" => {
            let (code, text) = split_code(rest);
            UntaggedData::Bad { code, text }
        }
        b"BYE" => UntaggedData::Bye { text: rest.clone() },
        b"CAPABILITY" => UntaggedData::Capability(capabilities(rest)),
        b"FLAGS" => UntaggedData::Flags(atoms(rest)),
        b"SEARCH" => UntaggedData::Search(search(rest)),
        b"LIST" => match list(rest) {
            Some((flags, delimiter, name)) => UntaggedData::List { flags, delimiter, name },
            None => UntaggedData::Other,
        },
        b"LSUB" => match list(rest) {
            Some((flags, delimiter, name)) => UntaggedData::Lsub { flags, delimiter, name },
            None => UntaggedData::Other,
        },
        b"STATUS" => status(rest),
        b"VANISHED" => {
            let (first, set) = word(rest);
            let earlier = first.eq_ignore_ascii_case(b"(EARLIER)");
            UntaggedData::Vanished { earlier, raw: if earlier { set } else { first } }
        }
        _ => UntaggedData::Other,
    }
}

/// The words of a CAPABILITY response or code.
pub(super) fn capabilities(words: &[u8]) -> Vec<String> {
    words
        .split(|&b| b == b' ')
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// The words of a list, flat; a flag may be called NIL.
pub(super) fn atoms(text: &Bytes) -> Vec<Bytes> {
    let word = |kind: &Kind| matches!(kind, Kind::Atom | Kind::Nil);
    Scanner::new(text).filter(|token| word(&token.kind)).map(|token| text.slice(token.span)).collect()
}

/// RFC 7162 §3.1.5 puts `(MODSEQ n)` after the numbers.
fn search(text: &[u8]) -> Vec<u32> {
    Scanner::new(text)
        .take_while(|token| token.kind == Kind::Atom)
        .filter_map(|token| u32::try_from(number(&text[token.span])?).ok())
        .collect()
}

fn list(text: &Bytes) -> Option<(Vec<Bytes>, Option<u8>, Bytes)> {
    let mut scanner = Scanner::new(text);
    let attributes = scanner.value()?;
    let flags = atoms(&text.slice(attributes.span));
    let (delimiter, after) = delimiter(text, scanner.position())?;
    let mut scanner = Scanner::starting_at(text, after);
    let name = scanner.value()?;
    Some((flags, delimiter, name_of(text, &name)))
}

/// The delimiter, and where the name starts. Some servers send `"\"` without
/// the second backslash, which would quote the quote.
fn delimiter(text: &Bytes, from: usize) -> Option<(Option<u8>, usize)> {
    let rest = after_blanks(text, from);
    let at = text.len() - rest.len();
    if rest.starts_with(b"\"\\\" ") {
        return Some((Some(b'\\'), at + 3));
    }
    let mut scanner = Scanner::starting_at(text, at);
    let token = scanner.next()?;
    let content = token.content(text);
    Some((content.first().copied(), scanner.position()))
}

/// A mailbox name in any form. A mailbox named NIL may come as that word.
fn name_of(text: &Bytes, token: &Token) -> Bytes {
    match &token.kind {
        Kind::Nil => text.slice(token.span.clone()),
        Kind::Atom | Kind::Quoted | Kind::Literal { .. } | Kind::Open | Kind::Close => content(text, token),
    }
}

fn content(text: &Bytes, token: &Token) -> Bytes {
    match token.content(text) {
        std::borrow::Cow::Borrowed(octets) => text.slice_ref(octets),
        std::borrow::Cow::Owned(octets) => Bytes::from(octets),
    }
}

fn status(text: &Bytes) -> UntaggedData {
    let mut scanner = Scanner::new(text);
    let Some(mailbox) = scanner.value() else { return UntaggedData::Other };
    let mut items = Vec::new();
    if scanner.next().is_some_and(|token| token.kind == Kind::Open) {
        while let Some(name) = scanner.value() {
            let Some(value) = scanner.value() else { break };
            if let Some(value) = number(&text[value.span]) {
                items.push((String::from_utf8_lossy(&text[name.span]).to_ascii_uppercase(), value));
            }
        }
    }
    UntaggedData::Status { mailbox: name_of(text, &mailbox), items }
}

fn fetch(text: &Bytes) -> FetchItems {
    let mut items = FetchItems::default();
    let mut scanner = Scanner::new(text);
    if scanner.next().is_none_or(|token| token.kind != Kind::Open) {
        return items;
    }
    while let Some(name) = scanner.value() {
        let Some(value) = scanner.value() else { break };
        fetch_item(&mut items, text, text.slice(name.span), &value);
    }
    items
}

fn fetch_item(items: &mut FetchItems, text: &Bytes, name: Bytes, value: &Token) {
    let raw = text.slice(value.span.clone());
    match upper(&name).as_slice() {
        b"UID" => items.uid = number(&raw).and_then(|n| u32::try_from(n).ok()),
        // NIL in place of the list is how some say that there are none.
        b"FLAGS" if raw.eq_ignore_ascii_case(b"NIL") => items.flags = Some(Vec::new()),
        b"FLAGS" => items.flags = Some(atoms(&raw)),
        b"RFC822.SIZE" => items.size = number(&raw),
        b"INTERNALDATE" => items.internaldate = (value.kind != Kind::Nil).then(|| content(text, value)),
        b"MODSEQ" => items.modseq = atoms(&raw).first().and_then(|n| number(n)),
        _ => items.other.push((
            name,
            match value.kind {
                Kind::Nil => Value::Nil,
                Kind::Quoted => Value::Quoted(content(text, value)),
                Kind::Literal { .. } => Value::Literal(content(text, value)),
                Kind::Atom | Kind::Open | Kind::Close => Value::Raw(raw),
            },
        )),
    }
}

/// Digits alone; a value that doesn't fit is no number.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn upper(text: &[u8]) -> Vec<u8> {
    text.to_ascii_uppercase()
}
