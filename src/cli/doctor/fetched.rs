//! FETCH answers taken apart, and who is asked for them.
//!
//! Promises: an item's octets are those that came, whether as a literal, as a
//! quoted string or as NIL (RFC 9051 §9, `nstring`). Doesn't know: whether
//! they are right.

use crate::demo::client::imap::{Answer, ImapClient, Response};
use crate::upstream::imap::{Connection, ImapError, Outcome, Status, Untagged};

/// Why nothing was answered.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The connection ended, or what came is no IMAP.
    #[error("{0}")]
    Lost(String),
}

/// A server that is asked.
pub trait Peer {
    /// Sends a command without literals and reads its whole answer, NO and
    /// BAD included.
    fn command(&mut self, command: &str) -> impl Future<Output = Result<Answer, PeerError>> + Send;
}

impl Peer for ImapClient {
    async fn command(&mut self, command: &str) -> Result<Answer, PeerError> {
        ImapClient::command(self, command).await.map_err(|e| PeerError::Lost(e.to_string()))
    }
}

impl Peer for Connection {
    async fn command(&mut self, command: &str) -> Result<Answer, PeerError> {
        self.run(command.as_bytes()).await.map(answer).map_err(|e: ImapError| PeerError::Lost(e.to_string()))
    }
}

fn answer(outcome: Outcome) -> Answer {
    let status = match outcome.status {
        Status::Ok => "OK",
        Status::No => "NO",
        Status::Bad => "BAD",
    };
    let code = outcome.code.map_or(String::new(), |c| format!("[{}] ", String::from_utf8_lossy(&c)));
    Answer {
        untagged: outcome.untagged.iter().map(response).collect(),
        status: format!("{status} {code}{}", String::from_utf8_lossy(&outcome.text)),
    }
}

/// The text with each literal as `{n}`, and the literals.
fn response(data: &Untagged) -> Response {
    let (mut text, mut at) = (Vec::new(), 0);
    for literal in &data.literals {
        // A literal is a slice of the text; its place follows from there.
        let start = (literal.as_ptr() as usize).wrapping_sub(data.text.as_ptr() as usize);
        let Some(before) = data.text.get(at..start) else { break };
        text.extend_from_slice(before.strip_suffix(b"\r\n").unwrap_or(before));
        at = start + literal.len();
    }
    text.extend_from_slice(data.text.get(at..).unwrap_or_default());
    let text = String::from_utf8_lossy(&text);
    Response {
        text: text.strip_prefix("* ").unwrap_or(&text).to_owned(),
        literals: data.literals.iter().map(|l| l.to_vec()).collect(),
    }
}

/// The octets of the item `name` (as a server answers it: `BODY[TEXT]<0>`, in
/// any case) in a FETCH response; `None` where it isn't there.
pub fn octets(response: &Response, name: &str) -> Option<Vec<u8>> {
    items(response).into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// The number that the item `name` has.
pub fn number(response: &Response, name: &str) -> Option<u64> {
    std::str::from_utf8(&octets(response, name)?).ok()?.parse().ok()
}

/// Names and values in order. A value in parentheses is its raw text.
fn items(response: &Response) -> Vec<(String, Vec<u8>)> {
    let mut out = Vec::new();
    let mut literals = response.literals.iter();
    let Some((_, rest)) = response.text.split_once('(') else { return out };
    let mut rest = rest.as_bytes();
    loop {
        rest = rest.trim_ascii_start();
        let Some(end) = name_end(rest) else { return out };
        let name = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let (value, used) = match rest.first() {
            Some(b'(') => parenthesised(rest, &mut literals),
            _ => simple(rest, &mut literals),
        };
        out.push((name, value));
        rest = &rest[used..];
        if rest.first() == Some(&b')') {
            return out;
        }
    }
}

/// A name ends at the first blank outside of brackets.
fn name_end(text: &[u8]) -> Option<usize> {
    let mut inside = false;
    for (at, octet) in text.iter().enumerate() {
        match octet {
            b'[' => inside = true,
            b']' => inside = false,
            b' ' if !inside => return Some(at),
            _ => {}
        }
    }
    None
}

/// A value that is no list, and how many octets of the text it takes.
fn simple<'a>(text: &[u8], literals: &mut impl Iterator<Item = &'a Vec<u8>>) -> (Vec<u8>, usize) {
    match text.first() {
        Some(b'{') => {
            let end = memchr::memchr(b'}', text).map_or(text.len(), |at| at + 1);
            (literals.next().cloned().unwrap_or_default(), end)
        }
        Some(b'"') => quoted(text),
        _ => {
            let end = text.iter().position(|b| matches!(b, b' ' | b')')).unwrap_or(text.len());
            let atom = &text[..end];
            (if atom.eq_ignore_ascii_case(b"NIL") { Vec::new() } else { atom.to_vec() }, end)
        }
    }
}

fn quoted(text: &[u8]) -> (Vec<u8>, usize) {
    let (mut value, mut escaped) = (Vec::new(), false);
    for (at, octet) in text.iter().enumerate().skip(1) {
        match octet {
            _ if escaped => {
                value.push(*octet);
                escaped = false;
            }
            b'\\' => escaped = true,
            b'"' => return (value, at + 1),
            _ => value.push(*octet),
        }
    }
    (value, text.len())
}

fn parenthesised<'a>(text: &[u8], literals: &mut impl Iterator<Item = &'a Vec<u8>>) -> (Vec<u8>, usize) {
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        match text[at] {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'"' => at += quoted(&text[at..]).1 - 1,
            b'{' => at += simple(&text[at..], literals).1 - 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    (text[..at].to_vec(), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, literals: &[&[u8]]) -> Vec<(String, String)> {
        let response = Response { text: text.to_owned(), literals: literals.iter().map(|l| l.to_vec()).collect() };
        let text = |v: Vec<u8>| String::from_utf8(v).unwrap();
        items(&response).into_iter().map(|(n, v)| (n, text(v))).collect()
    }

    #[test]
    fn a_value_may_be_a_literal_a_quoted_string_or_nothing() {
        let got = read(
            "3 FETCH (FLAGS (\\Seen $a) UID 7 BODY[HEADER.FIELDS (A B)] {4} BODY[TEXT]<9> \"x \\\") y\" ENVELOPE (\"a)\" {1} (NIL)) BODY[1] NIL RFC822.SIZE 12)",
            &[b"A: 1", b"z"],
        );
        let want = [
            ("FLAGS", "(\\Seen $a)"),
            ("UID", "7"),
            ("BODY[HEADER.FIELDS (A B)]", "A: 1"),
            ("BODY[TEXT]<9>", "x \") y"),
            ("ENVELOPE", "(\"a)\" {1} (NIL))"),
            ("BODY[1]", ""),
            ("RFC822.SIZE", "12"),
        ];
        assert_eq!(got, want.map(|(n, v)| (n.to_owned(), v.to_owned())));
    }

    #[test]
    fn what_breaks_off_ends_and_is_not_made_up() {
        for text in [
            "1 FETCH",
            "1 FETCH (",
            "1 FETCH (UID",
            "1 FETCH (BODY[",
            "1 FETCH (BODY[] {3",
            "1 FETCH (X \"a",
            "1 FETCH (X (a",
        ] {
            assert!(items(&Response { text: text.to_owned(), literals: Vec::new() }).len() <= 1, "{text}");
        }
        assert_eq!(octets(&Response { text: "1 FETCH (UID 2)".into(), literals: Vec::new() }, "BODY[]"), None);
    }

    #[test]
    fn literals_of_a_connection_are_taken_out_of_its_text() {
        let text = bytes::Bytes::from_static(b"* 1 FETCH (UID 2 BODY[] {3}\r\na\r\n RFC822.SIZE 3)");
        let response = response(&Untagged { literals: vec![text.slice(29..32)], text });
        assert_eq!(response.text, "1 FETCH (UID 2 BODY[] {3} RFC822.SIZE 3)");
        assert_eq!(octets(&response, "body[]").unwrap(), b"a\r\n");
        assert_eq!(number(&response, "RFC822.SIZE"), Some(3));
    }
}
