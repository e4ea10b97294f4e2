//! Reading a FETCH response of the provider while it streams, and small
//! pieces of other responses.
//!
//! Promises: a literal of any size passes through; text that isn't understood
//! is an error, never a guess. Doesn't know: what the items are for.

use std::borrow::Cow;

use bytes::Bytes;

use crate::upstream::imap::{Untagged, UntaggedData, Value};
use crate::wire::imap::{Kind, Scanner};

use super::lanes::DEFAULT_DELIMITER;
use super::uid::UpstreamUid;

/// What a streaming FETCH response is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `* n FETCH (` was read.
    Begin {
        /// The provider's sequence number.
        seq: u32,
    },
    /// The name of the next item as the provider wrote it.
    Item(Vec<u8>),
    /// Part of the item's value as it came (literal announcements and their
    /// CRLF included when they stand inside a list).
    Raw(Bytes),
    /// The value is a literal of this length; chunks follow.
    Literal(u64),
    /// Octets of a literal.
    Chunk(Bytes),
    /// The item's value is complete.
    ItemEnd,
    /// The response's closing parenthesis was read.
    End,
}

/// The response can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the provider's FETCH response can't be read near {0:?}")]
pub struct Unreadable(pub String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Between,
    /// Inside a parenthesised value, at this depth.
    List(usize),
    /// Inside a literal that is the whole value.
    Whole(u64),
    /// Inside a literal within a list.
    Inner(u64, usize),
    Done,
}

/// Splits one FETCH response.
#[derive(Debug)]
pub struct FetchScan {
    at: At,
}

impl Default for FetchScan {
    fn default() -> FetchScan {
        FetchScan { at: At::Start }
    }
}

impl FetchScan {
    /// Takes a text piece. When `literal` is set, the text ends with the
    /// announcement of a literal of that length.
    pub fn text(&mut self, text: &Bytes, literal: Option<u64>, out: &mut Vec<Event>) -> Result<(), Unreadable> {
        // RFC 9051 §9: text holds no NUL and no bare CR; the client must not
        // see one, whatever the provider writes.
        let cleaned = match super::encode::fit(text) {
            Cow::Borrowed(_) => text.clone(),
            Cow::Owned(cleaned) => cleaned.into(),
        };
        let text = &cleaned;
        let near =
            |at: usize| Unreadable(String::from_utf8_lossy(&text[at.min(text.len())..]).chars().take(40).collect());
        let mut i = 0;
        loop {
            match self.at {
                At::Start => {
                    let (seq, after) = fetch_head(text).ok_or_else(|| near(0))?;
                    out.push(Event::Begin { seq });
                    i = after;
                    self.at = At::Between;
                }
                At::Between => {
                    while text.get(i) == Some(&b' ') {
                        i += 1;
                    }
                    match text.get(i) {
                        None => return if literal.is_none() { Ok(()) } else { Err(near(i)) },
                        Some(b')') => {
                            out.push(Event::End);
                            self.at = At::Done;
                            return Ok(());
                        }
                        Some(_) => {}
                    }
                    let end = name_end(text, i).ok_or_else(|| near(i))?;
                    out.push(Event::Item(text[i..end].to_vec()));
                    i = end + 1;
                    match text.get(i) {
                        Some(b'(') => self.at = At::List(0),
                        Some(b'"') => {
                            let end = quoted_end(text, i).ok_or_else(|| near(i))?;
                            out.push(Event::Raw(text.slice(i..end)));
                            out.push(Event::ItemEnd);
                            i = end;
                        }
                        Some(b'{' | b'~') if literal.is_some() && memchr::memchr(b' ', &text[i..]).is_none() => {
                            let len = literal.unwrap_or(0);
                            out.push(Event::Literal(len));
                            self.at = At::Whole(len);
                            return Ok(());
                        }
                        Some(_) => {
                            let len = text[i..].iter().position(|b| *b == b' ' || *b == b')').unwrap_or(text.len() - i);
                            out.push(Event::Raw(text.slice(i..i + len)));
                            out.push(Event::ItemEnd);
                            i += len;
                        }
                        None => return Err(near(i)),
                    }
                }
                At::List(depth) => {
                    let (end, depth) = list_end(text, i, depth);
                    if depth == 0 {
                        out.push(Event::Raw(text.slice(i..end)));
                        out.push(Event::ItemEnd);
                        self.at = At::Between;
                        i = end;
                        continue;
                    }
                    let Some(len) = literal else { return Err(near(i)) };
                    let mut raw = text[i..].to_vec();
                    raw.extend(b"\r\n");
                    out.push(Event::Raw(raw.into()));
                    self.at = At::Inner(len, depth);
                    return Ok(());
                }
                At::Whole(0) => {
                    out.push(Event::ItemEnd);
                    self.at = At::Between;
                }
                At::Inner(0, depth) => self.at = At::List(depth),
                At::Whole(_) | At::Inner(..) => return Err(near(i)),
                At::Done => return Ok(()),
            }
        }
    }

    /// Takes octets of a literal.
    pub fn chunk(&mut self, chunk: Bytes, out: &mut Vec<Event>) -> Result<(), Unreadable> {
        let len = chunk.len() as u64;
        match &mut self.at {
            At::Whole(left) if *left >= len => {
                *left -= len;
                out.push(Event::Chunk(chunk));
                Ok(())
            }
            At::Inner(left, _) if *left >= len => {
                *left -= len;
                out.push(Event::Raw(chunk));
                Ok(())
            }
            _ => Err(Unreadable("a literal".into())),
        }
    }

    /// Whether the response was read to its closing parenthesis.
    pub fn is_done(&self) -> bool {
        self.at == At::Done
    }
}

/// Whether a text piece begins a FETCH response: its number and the offset
/// after the opening parenthesis.
pub fn fetch_head(text: &[u8]) -> Option<(u32, usize)> {
    let rest = text.strip_prefix(b"* ")?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let seq = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let word = rest.get(digits..digits + 8)?;
    word.eq_ignore_ascii_case(b" FETCH (").then_some((seq, 2 + digits + 8))
}

/// End of an item name: the blank that is outside of brackets.
fn name_end(text: &[u8], from: usize) -> Option<usize> {
    let mut bracket = false;
    let mut quoted = false;
    for (i, b) in text.iter().enumerate().skip(from) {
        match b {
            b'"' => quoted = !quoted,
            b'[' if !quoted => bracket = true,
            b']' if !quoted => bracket = false,
            b' ' if !bracket && !quoted => return Some(i),
            _ => {}
        }
    }
    None
}

/// Offset after the closing quote of a string that opens at `from`.
fn quoted_end(text: &[u8], from: usize) -> Option<usize> {
    let mut i = from + 1;
    while let Some(b) = text.get(i) {
        match b {
            b'\\' => i += 2,
            b'"' => return Some(i + 1),
            _ => i += 1,
        }
    }
    None
}

/// Goes on in a list: offset after its end and 0, or the end of the text and
/// the depth there.
fn list_end(text: &[u8], from: usize, mut depth: usize) -> (usize, usize) {
    let mut i = from;
    while let Some(b) = text.get(i) {
        match b {
            b'"' => match quoted_end(text, i) {
                Some(end) => i = end,
                None => return (text.len(), depth.max(1)),
            },
            b'(' => {
                depth += 1;
                i += 1;
            }
            b')' => {
                depth -= 1;
                i += 1;
                if depth == 0 {
                    return (i, 0);
                }
            }
            _ => i += 1,
        }
    }
    (text.len(), depth)
}

/// Prefix and delimiter of the first personal namespace (RFC 2342 §5).
pub fn personal_namespace(response: &[u8]) -> Option<(String, char)> {
    let head = response.get(..12)?;
    if !head.eq_ignore_ascii_case(b"* NAMESPACE ") {
        return None;
    }
    let mut scanner = Scanner::starting_at(response, 12);
    if scanner.next()?.kind != Kind::Open || scanner.next()?.kind != Kind::Open {
        return None;
    }
    let prefix = String::from_utf8(scanner.next()?.content(response).into_owned()).ok()?;
    let delimiter = scanner.next()?;
    // NIL: names have no levels there.
    let flat = delimiter.kind == Kind::Nil;
    let delimiter = if flat { DEFAULT_DELIMITER } else { char::from(*delimiter.content(response).first()?) };
    Some((prefix, delimiter))
}

/// The response code of an untagged OK.
pub fn ok_code(u: &Untagged) -> Option<Bytes> {
    match u.parse() {
        UntaggedData::Ok { code, .. } => code,
        _ => None,
    }
}

/// The Message-ID of a header, without blanks around it.
pub fn message_id(octets: &[u8]) -> Option<String> {
    let values = crate::mail::header::values(octets, "Message-ID");
    values.first().and_then(|v| String::from_utf8(v.clone()).ok()).filter(|v| !v.is_empty())
}

/// The body that a FETCH response of this message carries.
pub fn body_of(u: &Untagged, uid: UpstreamUid) -> Option<Vec<u8>> {
    match u.parse() {
        UntaggedData::Fetch { items, .. } if items.uid == Some(uid.get()) => {
            items.other.iter().find_map(|(name, value)| match value {
                Value::Literal(b) | Value::Quoted(b) if name.to_ascii_uppercase().starts_with(b"BODY[") => {
                    Some(b.to_vec())
                }
                _ => None,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(parts: &[(&[u8], Option<u64>, &[u8])]) -> Vec<Event> {
        let mut scan = FetchScan::default();
        let mut out = Vec::new();
        for (text, literal, data) in parts {
            scan.text(&Bytes::copy_from_slice(text), *literal, &mut out).unwrap();
            if literal.is_some() {
                scan.chunk(Bytes::copy_from_slice(data), &mut out).unwrap();
            }
        }
        assert!(scan.is_done());
        out
    }

    #[test]
    fn a_body_streams_between_other_items() {
        let events = run(&[
            (b"* 12 FETCH (UID 5 BODY[HEADER.FIELDS (A B)] {3}", Some(3), b"abc"),
            (b" FLAGS (\\Seen))", None, b""),
        ]);
        assert_eq!(
            events,
            vec![
                Event::Begin { seq: 12 },
                Event::Item(b"UID".to_vec()),
                Event::Raw(Bytes::from_static(b"5")),
                Event::ItemEnd,
                Event::Item(b"BODY[HEADER.FIELDS (A B)]".to_vec()),
                Event::Literal(3),
                Event::Chunk(Bytes::from_static(b"abc")),
                Event::ItemEnd,
                Event::Item(b"FLAGS".to_vec()),
                Event::Raw(Bytes::from_static(b"(\\Seen)")),
                Event::ItemEnd,
                Event::End,
            ]
        );
    }

    #[test]
    fn a_literal_inside_a_list_stays_raw() {
        let events = run(&[(b"* 1 FETCH (ENVELOPE (\"d (\" {2}", Some(2), b"()"), (b" NIL) UID 4 )", None, b"")]);
        let raw: Vec<u8> = events
            .iter()
            .skip(2)
            .take_while(|e| **e != Event::ItemEnd)
            .flat_map(|e| match e {
                Event::Raw(b) => b.to_vec(),
                _ => vec![],
            })
            .collect();
        assert_eq!(raw, b"(\"d (\" {2}\r\n() NIL)");
    }

    #[test]
    fn an_empty_literal_is_a_value() {
        let events = run(&[(b"* 1 FETCH (BODY[] {0}", Some(0), b""), (b" UID 4)", None, b"")]);
        assert_eq!(events[2], Event::Literal(0));
        assert!(events.contains(&Event::Item(b"UID".to_vec())));
    }

    #[test]
    fn what_is_no_fetch_is_refused() {
        let mut out = Vec::new();
        for text in [&b"* 1 EXISTS"[..], b"* 1 FETCH (BODY[] ", b"* 1 FETCH (A (", b"* x FETCH ("] {
            assert!(FetchScan::default().text(&Bytes::copy_from_slice(text), None, &mut out).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_personal_namespace_is_found() {
        let line = b"* NAMESPACE ((\"INBOX.\" \".\")) NIL NIL";
        assert_eq!(personal_namespace(line), Some(("INBOX.".into(), '.')));
        assert_eq!(personal_namespace(b"* NAMESPACE ((\"\" NIL)) NIL NIL"), Some((String::new(), '/')));
        assert_eq!(personal_namespace(b"* NAMESPACE NIL NIL NIL"), None);
    }
}
