//! Octets of commands and responses on their way through: quoting, sets,
//! splitting at literals, an agent's command encoded anew.
//!
//! Promises: nothing that is quoted here can end its string or line; what an
//! agent sent is never passed on as it came. Doesn't know: connections.

use std::borrow::Cow;

use bytes::Bytes;
use imap_codec::CommandCodec;
use imap_codec::encode::{Encoder, Fragment};
use imap_codec::imap_types::command::{Command, CommandBody};
use imap_codec::imap_types::fetch::{MacroOrMessageDataItemNames, MessageDataItemName};
use imap_codec::imap_types::sequence::{SeqOrUid, Sequence, SequenceSet};

use crate::upstream::imap::Untagged;

use super::session::Fail;

/// A quoted string (RFC 9051 §9, `quoted`). Names reach us as atoms, quoted
/// strings or literals; octets that no quoted string can carry (CR, LF, NUL)
/// are left out, so that nothing can be injected, and the name won't be found.
pub fn quote(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    for b in text {
        match b {
            b'"' | b'\\' => out.extend([b'\\', *b]),
            b'\r' | b'\n' | 0 => {}
            _ => out.push(*b),
        }
    }
    out.push(b'"');
    out
}

/// A sequence set as text.
pub(super) fn set_text(set: &SequenceSet) -> String {
    let value = |v: &SeqOrUid| match v {
        SeqOrUid::Value(n) => n.to_string(),
        SeqOrUid::Asterisk => "*".to_owned(),
    };
    let parts: Vec<String> = set
        .0
        .as_ref()
        .iter()
        .map(|s| match s {
            Sequence::Single(v) => value(v),
            Sequence::Range(a, b) => format!("{}:{}", value(a), value(b)),
        })
        .collect();
    parts.join(",")
}

/// Splits a raw command, after its tag, at its literals.
pub(super) fn parts(raw: &[u8]) -> Vec<(Bytes, Option<Bytes>)> {
    let mut out = Vec::new();
    let mut rest = raw;
    loop {
        let end = memchr::memmem::find(rest, b"\r\n").unwrap_or(rest.len());
        let line = &rest[..end];
        let announced = line.strip_suffix(b"}").and_then(|l| {
            let open = memchr::memrchr(b'{', l)?;
            let digits = l[open + 1..].strip_suffix(b"+").unwrap_or(&l[open + 1..]);
            let len: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Some((open, len))
        });
        match announced {
            Some((open, len)) if rest.len() >= end + 2 + len => {
                let data = &rest[end + 2..end + 2 + len];
                out.push((Bytes::copy_from_slice(&line[..open]), Some(Bytes::copy_from_slice(data))));
                rest = &rest[end + 2 + len..];
            }
            _ => {
                out.push((Bytes::copy_from_slice(line), None));
                return out;
            }
        }
    }
}

/// Text of the provider without what ends a line or a string elsewhere.
pub(super) fn fit(text: &[u8]) -> Cow<'_, [u8]> {
    if super::session::is_sane(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.iter().map(|b| if matches!(b, 0 | b'\r' | b'\n') { b'?' } else { *b }).collect())
}

/// A whole response likewise; literals stay what they are.
pub(super) fn fit_response(u: &Untagged) -> Cow<'_, [u8]> {
    if u.literals.is_empty() {
        return fit(&u.text);
    }
    let mut out = Vec::with_capacity(u.text.len());
    let mut from = 0;
    for literal in &u.literals {
        // Text holds a line end only where a literal was announced.
        let rest = u.text.get(from..).unwrap_or_default();
        let Some(end) = memchr::memmem::find(rest, b"\r\n") else { break };
        out.extend_from_slice(&fit(&rest[..end]));
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(literal);
        from += end + 2 + literal.len();
    }
    out.extend_from_slice(&fit(u.text.get(from..).unwrap_or_default()));
    Cow::Owned(out)
}

/// Whether what follows a tag is a command on the selected mailbox alone, with
/// arguments. (`SEARCH IN` of RFC 7377 is spelt ESEARCH.)
pub(super) fn is_raw_verb(rest: &[u8]) -> bool {
    let mut words = rest.strip_suffix(b"\r\n").unwrap_or(rest).split(|b| *b == b' ').skip(1);
    let mut next = || words.next().unwrap_or_default().to_ascii_uppercase();
    let mut verb = next();
    if verb == b"UID" {
        verb = next();
    }
    [&b"FETCH"[..], b"STORE", b"SEARCH", b"SORT", b"THREAD"].contains(&&verb[..]) && !next().is_empty()
}

/// An agent's command, encoded anew; FETCH sets `\Seen` only where it may.
pub(super) fn encoded(command: &Command<'_>, may_flag: bool) -> Result<Vec<(Bytes, Option<Bytes>)>, Fail> {
    let mut command = command.clone();
    if may_flag {
        // As the client wrote it.
    } else if let CommandBody::Fetch {
        macro_or_item_names: MacroOrMessageDataItemNames::MessageDataItemNames(items),
        ..
    } = &mut command.body
    {
        for item in items {
            if let MessageDataItemName::BodyExt { peek, .. } = item {
                *peek = true;
            }
        }
    }
    let tag_len = command.tag.as_ref().len() + 1;
    let mut out: Vec<(Bytes, Option<Bytes>)> = Vec::new();
    let mut text: Vec<u8> = Vec::new();
    for fragment in CommandCodec::default().encode(&command) {
        match fragment {
            Fragment::Line { data } => text.extend(data),
            Fragment::Literal { data, .. } => {
                let open = memchr::memrchr(b'{', &text).unwrap_or(text.len());
                out.push((Bytes::copy_from_slice(&text[..open]), Some(Bytes::from(data))));
                text.clear();
            }
        }
    }
    out.push((Bytes::copy_from_slice(text.trim_ascii_end()), None));
    match out.first_mut() {
        Some((first, _)) if first.len() > tag_len => *first = first.slice(tag_len..),
        _ => return Err(Fail::Bad("the command can't be passed on".into())),
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_can_not_be_left() {
        assert_eq!(quote(b"a\"b\\c\r\nd"), b"\"a\\\"b\\\\cd\"");
    }

    #[test]
    fn commands_split_at_their_literals() {
        let split = parts(b"SEARCH SUBJECT {3+}\r\na{1 FROM {2}\r\n\r\n SEEN\r\n");
        assert_eq!(split.len(), 3);
        assert_eq!(split[0], (Bytes::from_static(b"SEARCH SUBJECT "), Some(Bytes::from_static(b"a{1"))));
        assert_eq!(split[1], (Bytes::from_static(b" FROM "), Some(Bytes::from_static(b"\r\n"))));
        assert_eq!(split[2], (Bytes::from_static(b" SEEN"), None));
    }

    #[test]
    fn only_commands_on_the_selected_mailbox_pass_raw() {
        for rest in
            [" FETCH 1 (X)\r\n", " uid Store 1 +X (y)\r\n", " SEARCH X-GM-RAW a\r\n", " UID SORT (DATE) UTF-8 ALL\r\n"]
        {
            assert!(is_raw_verb(rest.as_bytes()), "{rest:?}");
        }
        for rest in [
            " FETCH\r\n",
            "  FETCH 1 (X)\r\n",
            " UID FETCH\r\n",
            " COPY 1 x\r\n",
            " UID COPY 1 x\r\n",
            " ESEARCH IN (x)\r\n",
            "FETCH 1 X\r\n",
            " FETCHX 1\r\n",
        ] {
            assert!(!is_raw_verb(rest.as_bytes()), "{rest:?}");
        }
    }

    #[test]
    fn literals_keep_their_octets_and_text_loses_what_ends_lines() {
        let text = Bytes::from_static(b"* X a\rb {2}\r\n\r\n {0}\r\n c\0 {1}\r\n\0)");
        let literals = vec![Bytes::from_static(b"\r\n"), Bytes::new(), Bytes::from_static(b"\0")];
        let fitted = fit_response(&Untagged { text, literals }).into_owned();
        assert_eq!(fitted, b"* X a?b {2}\r\n\r\n {0}\r\n c? {1}\r\n\0)");
    }
}
