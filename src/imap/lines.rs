//! What passes between client and provider, line by line.
//!
//! Promises: text of the provider reaches the client without what ends a line
//! elsewhere, and no line of it answers a command that it doesn't answer; a
//! client's command reaches the provider in the parts that it has here.
//! Doesn't know: connections.

use std::borrow::Cow;

use bytes::Bytes;
use imap_codec::CommandCodec;
use imap_codec::encode::{Encoder, Fragment};
use imap_codec::imap_types::command::{Command, CommandBody};
use imap_codec::imap_types::fetch::{MacroOrMessageDataItemNames, MessageDataItemName};

use crate::upstream::imap::{Untagged, UntaggedData};

use super::session::{Fail, is_sane};

/// What a response line of the provider is to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// None was begun.
    Between,
    Passed,
    /// Between the provider and us, or an answer to nothing that was asked.
    Dropped,
    /// The command's own response.
    Last,
}

impl Line {
    /// `ours` is the command's tag at the provider and a blank.
    pub(super) fn of(text: &[u8], ours: &[u8]) -> Result<Line, Fail> {
        let begins = |what: &[u8]| text.get(..what.len()).is_some_and(|t| t.eq_ignore_ascii_case(what));
        if let Some(rest) = text.strip_prefix(ours) {
            let known = [&b"OK"[..], b"NO", b"BAD"].iter().any(|w| {
                rest.get(..w.len()).is_some_and(|r| r.eq_ignore_ascii_case(w))
                    && rest.get(w.len()).is_none_or(|b| *b == b' ')
            });
            return if known { Ok(Line::Last) } else { Err(Fail::Bye("the provider's answer is none".into())) };
        }
        if begins(b"* BYE") {
            return Err(Fail::Bye("the provider ended the session".into()));
        }
        // A tag that isn't the command's might be one that the client used.
        Ok(if text.starts_with(b"* ") && !begins(b"* CAPABILITY") { Line::Passed } else { Line::Dropped })
    }
}

/// Whether untagged data is for clients, not between the provider and us.
pub(super) fn is_for_clients(u: &Untagged) -> bool {
    match u.parse() {
        UntaggedData::Bye { .. } | UntaggedData::Capability(_) => false,
        UntaggedData::Ok { code: Some(code), .. } => {
            !code.get(..10).is_some_and(|c| c.eq_ignore_ascii_case(b"CAPABILITY"))
        }
        _ => true,
    }
}

/// Text of the provider without what ends a line or a string elsewhere.
pub(super) fn fit(text: &[u8]) -> Cow<'_, [u8]> {
    if is_sane(text) {
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

/// An agent's command, encoded anew; FETCH never sets `\Seen`.
pub(super) fn encoded(command: &Command<'_>) -> Result<Vec<(Bytes, Option<Bytes>)>, Fail> {
    let mut command = command.clone();
    if let CommandBody::Fetch {
        macro_or_item_names: MacroOrMessageDataItemNames::MessageDataItemNames(items), ..
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
    fn commands_split_at_their_literals() {
        let split = parts(b"SEARCH SUBJECT {3+}\r\na{1 FROM {2}\r\n\r\n SEEN\r\n");
        assert_eq!(split.len(), 3);
        assert_eq!(split[0], (Bytes::from_static(b"SEARCH SUBJECT "), Some(Bytes::from_static(b"a{1"))));
        assert_eq!(split[1], (Bytes::from_static(b" FROM "), Some(Bytes::from_static(b"\r\n"))));
        assert_eq!(split[2], (Bytes::from_static(b" SEEN"), None));
    }

    #[test]
    fn a_line_of_another_tag_answers_nothing() {
        let of = |text: &[u8]| Line::of(text, b"t7 ").ok();
        assert_eq!(of(b"t7 OK done"), Some(Line::Last));
        assert_eq!(of(b"t7 no"), Some(Line::Last));
        assert_eq!(of(b"t7 OKAY"), None);
        assert_eq!(of(b"t71 OK done"), Some(Line::Dropped));
        assert_eq!(of(b"c1 OK done"), Some(Line::Dropped));
        assert_eq!(of(b"+ go on"), Some(Line::Dropped));
        assert_eq!(of(b"* capability X"), Some(Line::Dropped));
        assert_eq!(of(b"* bye"), None);
        assert_eq!(of(b"* 1 EXISTS"), Some(Line::Passed));
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
