//! Local messages: what exists only in a view of people, such as a notice
//! that something waits for approval.
//!
//! Promises: ASCII, one text/plain part, the same octets for good; its
//! envelope and structure agree with its octets. Doesn't know: what the
//! notice is about.

use crate::mail::header;

use super::section::{Item, cut, select_fields};

/// Longest local message in octets.
pub const MAX_LOCAL: usize = 16 * 1024;

/// Builds a notice. Everything is made ASCII; `lines` are the text.
pub fn notice(from: &str, to: &str, message_id: &str, date: &str, subject: &str, lines: &[String]) -> String {
    let ascii =
        |s: &str| s.chars().map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' }).collect::<String>();
    let mut out = String::new();
    for (name, value) in [
        ("From", format!("\"Tollgate\" <{}>", ascii(from))),
        ("To", format!("<{}>", ascii(to))),
        ("Subject", ascii(subject).chars().take(200).collect()),
        ("Date", ascii(date)),
        ("Message-ID", format!("<{}>", ascii(message_id))),
        ("Auto-Submitted", "auto-generated".to_owned()),
        ("MIME-Version", "1.0".to_owned()),
        ("Content-Type", "text/plain; charset=us-ascii".to_owned()),
    ] {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out.push_str("\r\n");
    for line in lines {
        out.push_str(&ascii(line).chars().take(900).collect::<String>());
        out.push_str("\r\n");
    }
    out.truncate(MAX_LOCAL);
    out
}

/// The value of a FETCH item over a local message: its name and the octets
/// that follow it (literal or list), or `None` where there is nothing such.
pub fn item(octets: &[u8], item: &Item) -> Option<(String, Vec<u8>)> {
    let body_start = header::split(octets).body_start;
    let (head, text) = octets.split_at(body_start);
    match item {
        Item::Flags | Item::Date | Item::Size => None,
        Item::Whole(name, partial) => Some((name.clone(), literal(cut(octets, *partial)))),
        Item::Header(name, fields, partial) => {
            Some((name.clone(), literal(cut(&select_fields(head, fields), *partial))))
        }
        Item::Pass(name, asked) => {
            let (answered, value) = pass(octets, head, text, asked)?;
            Some((name.clone().unwrap_or(answered), value))
        }
    }
}

fn pass(octets: &[u8], head: &[u8], text: &[u8], asked: &str) -> Option<(String, Vec<u8>)> {
    match asked {
        "ENVELOPE" => return Some((asked.into(), envelope(octets))),
        "BODY" | "BODYSTRUCTURE" => return Some((asked.into(), structure(text, asked == "BODYSTRUCTURE"))),
        _ => {}
    }
    let (section, range) = asked.strip_prefix("BODY.PEEK[")?.split_once(']')?;
    let partial = range.strip_prefix('<').and_then(|r| r.strip_suffix('>')).and_then(|r| {
        let (from, count) = r.split_once('.')?;
        Some((from.parse().ok()?, count.parse().ok()?))
    });
    let origin = partial.map_or(String::new(), |(from, _): (u32, u32)| format!("<{from}>"));
    let data: &[u8] = match section {
        "TEXT" | "1" => text,
        // RFC 9051 §6.4.5.1: the MIME header of the only part is the message's.
        "1.MIME" => head,
        _ => b"",
    };
    Some((format!("BODY[{section}]{origin}"), literal(cut(data, partial))))
}

fn literal(data: &[u8]) -> Vec<u8> {
    let mut out = format!("{{{}}}\r\n", data.len()).into_bytes();
    out.extend(data);
    out
}

fn field(octets: &[u8], name: &str) -> Option<Vec<u8>> {
    header::values(octets, name).into_iter().next()
}

fn string(value: Option<Vec<u8>>) -> Vec<u8> {
    value.map_or_else(|| b"NIL".to_vec(), |v| super::encode::quote(&v))
}

fn mailbox(value: Option<Vec<u8>>) -> Vec<u8> {
    let Some(value) = value else { return b"NIL".to_vec() };
    let text = String::from_utf8_lossy(&value).into_owned();
    let (name, address) = match text.split_once('<') {
        Some((name, rest)) => (name.trim().trim_matches('"').to_owned(), rest.trim_end_matches('>').to_owned()),
        None => (String::new(), text),
    };
    let (local, domain) = address.rsplit_once('@').unwrap_or((&address, ""));
    let name = if name.is_empty() { b"NIL".to_vec() } else { super::encode::quote(name.as_bytes()) };
    let parts = [b"((".to_vec(), name, b" NIL ".to_vec(), super::encode::quote(local.as_bytes()), b" ".to_vec()];
    [parts.concat(), super::encode::quote(domain.as_bytes()), b"))".to_vec()].concat()
}

fn envelope(octets: &[u8]) -> Vec<u8> {
    let from = mailbox(field(octets, "From"));
    let fields = [
        string(field(octets, "Date")),
        string(field(octets, "Subject")),
        from.clone(),
        from.clone(),
        from,
        mailbox(field(octets, "To")),
        b"NIL".to_vec(),
        b"NIL".to_vec(),
        b"NIL".to_vec(),
        string(field(octets, "Message-ID")),
    ];
    [b"(".to_vec(), fields.join(&b' '), b")".to_vec()].concat()
}

fn structure(text: &[u8], extended: bool) -> Vec<u8> {
    let lines = memchr::memchr_iter(b'\n', text).count();
    let tail = if extended { " NIL NIL NIL NIL" } else { "" };
    format!("(\"TEXT\" \"PLAIN\" (\"CHARSET\" \"us-ascii\") NIL NIL \"7BIT\" {} {lines}{tail})", text.len())
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::section::Fields;
    use super::*;

    fn sample() -> String {
        notice(
            "tollgate@localhost",
            "a@example.org",
            "x@localhost",
            "Mon, 1 Jan 2026 00:00:00 +0000",
            "Wait: ü\r\nBcc: x",
            &["one".into(), "two".into()],
        )
    }

    #[test]
    fn a_notice_is_ascii_and_its_subject_makes_no_field() {
        let n = sample();
        assert!(n.is_ascii());
        assert!(header::values(n.as_bytes(), "Bcc").is_empty());
    }

    #[test]
    fn header_and_text_concatenate_to_the_whole() {
        let n = sample();
        let value = |i: &Item| item(n.as_bytes(), i).map(|(_, v)| v).unwrap_or_default();
        let strip = |v: Vec<u8>| v[v.iter().position(|b| *b == b'\n').unwrap_or(0) + 1..].to_vec();
        let head = strip(value(&Item::Header("H".into(), Fields::All, None)));
        let text = strip(value(&Item::Pass(None, "BODY.PEEK[TEXT]".into())));
        let whole = strip(value(&Item::Whole("BODY[]".into(), None)));
        assert_eq!([head, text].concat(), whole);
        assert_eq!(whole, n.as_bytes());
    }
}
