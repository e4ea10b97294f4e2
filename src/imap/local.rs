//! Local messages: what exists only in a view, such as a notice that
//! something waits for approval, a report of what became of it, or what an
//! agent's key submitted.
//!
//! Promises: the same octets for good; envelope, structure and sections agree
//! with the octets; a notice is ASCII and one text/plain part. Doesn't know:
//! what the message is about.

use crate::mail::parts::Part;
use crate::mail::structure;

use super::section::{Fields, Item, cut, select_fields};

/// Longest local message in octets.
pub const MAX_LOCAL: usize = 16 * 1024;

/// Builds a notice. Everything is made ASCII; `lines` are the text.
pub fn notice(from: &str, to: &str, message_id: &str, date: &str, subject: &str, lines: &[String]) -> String {
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

/// Text as one line of ASCII.
pub fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' }).collect()
}

/// A local message taken apart.
pub struct Whole {
    octets: Vec<u8>,
    tree: Part,
}

impl Whole {
    /// Takes the octets apart; any octets will do.
    pub fn of(octets: Vec<u8>) -> Whole {
        let tree = Part::of(&octets);
        Whole { octets, tree }
    }

    /// The value of a FETCH item: its name and the octets that follow it
    /// (literal or list), or `None` where the octets say nothing about it.
    pub fn item(&self, item: &Item) -> Option<(String, Vec<u8>)> {
        match item {
            Item::Flags | Item::Date | Item::Size => None,
            Item::Whole(name, partial) => Some((name.clone(), literal(cut(&self.octets, *partial)))),
            Item::Header(name, fields, partial) => {
                let head = &self.octets[self.tree.header.clone()];
                Some((name.clone(), literal(cut(&select_fields(head, fields), *partial))))
            }
            Item::Pass(name, asked) => {
                let (answered, value) = self.pass(asked)?;
                Some((name.clone().unwrap_or(answered), value))
            }
        }
    }

    fn pass(&self, asked: &str) -> Option<(String, Vec<u8>)> {
        let mut out = Vec::new();
        match asked {
            "ENVELOPE" => structure::envelope(&mut out, &self.octets, &self.tree),
            "BODY" | "BODYSTRUCTURE" => {
                structure::body(&mut out, &self.octets, &self.tree, asked == "BODYSTRUCTURE");
            }
            section => return self.section(section),
        }
        Some((asked.to_owned(), out))
    }

    fn section(&self, asked: &str) -> Option<(String, Vec<u8>)> {
        let (section, range) = asked.strip_prefix("BODY.PEEK[")?.rsplit_once(']')?;
        let partial = range.strip_prefix('<').and_then(|r| r.strip_suffix('>')).and_then(|r| {
            let (from, count) = r.split_once('.')?;
            Some((from.parse().ok()?, count.parse().ok()?))
        });
        let origin = partial.map_or(String::new(), |(from, _): (u32, u32)| format!("<{from}>"));
        let value = self.content(section).map_or_else(|| b"NIL".to_vec(), |data| literal(cut(&data, partial)));
        Some((format!("BODY[{section}]{origin}"), value))
    }

    /// The octets of a section (RFC 9051 §6.4.5.1); `None` where there is no
    /// such part.
    fn content(&self, section: &str) -> Option<Vec<u8>> {
        let mut path: Vec<u32> = Vec::new();
        let mut rest = section;
        while let Ok(number) = rest.split('.').next().unwrap_or_default().parse() {
            path.push(number);
            rest = rest.split_once('.').map_or("", |(_, rest)| rest);
        }
        let part = if path.is_empty() { None } else { Some(self.tree.at(&path)?) };
        // HEADER and TEXT speak of the message that a message/rfc822 encloses.
        let message = part.map_or(Some(&self.tree), |p| p.message.as_deref());
        let range = match rest {
            "" => part?.body.clone(),
            "MIME" => part?.header.clone(),
            "TEXT" => message?.body.clone(),
            fields => {
                let head = &self.octets[message?.header.clone()];
                return Some(select_fields(head, &self::fields(fields)?));
            }
        };
        Some(self.octets[range].to_vec())
    }
}

/// `HEADER`, `HEADER.FIELDS (…)` or `HEADER.FIELDS.NOT (…)`.
fn fields(text: &str) -> Option<Fields> {
    let rest = text.strip_prefix("HEADER")?;
    let Some(list) = rest.strip_prefix(".FIELDS") else { return rest.is_empty().then_some(Fields::All) };
    let (list, not) = list.strip_prefix(".NOT").map_or((list, false), |list| (list, true));
    let names = list.trim().trim_start_matches('(').trim_end_matches(')').split_ascii_whitespace();
    let names = names.map(|n| n.trim_matches('"').as_bytes().to_vec()).collect();
    Some(if not { Fields::Not(names) } else { Fields::Only(names) })
}

fn literal(data: &[u8]) -> Vec<u8> {
    let mut out = format!("{{{}}}\r\n", data.len()).into_bytes();
    out.extend(data);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::header;

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
        let whole = Whole::of(n.clone().into_bytes());
        let value = |i: &Item| whole.item(i).map(|(_, v)| v).unwrap_or_default();
        let strip = |v: Vec<u8>| v[v.iter().position(|b| *b == b'\n').unwrap_or(0) + 1..].to_vec();
        let head = strip(value(&Item::Header("H".into(), Fields::All, None)));
        let text = strip(value(&Item::Pass(None, "BODY.PEEK[TEXT]".into())));
        let whole = strip(value(&Item::Whole("BODY[]".into(), None)));
        assert_eq!([head, text].concat(), whole);
        assert_eq!(whole, n.as_bytes());
    }

    #[test]
    fn sections_reach_into_the_parts() {
        let m = b"Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\none\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: in\r\nA: b\r\n\r\ntwo\r\n--b--\r\n";
        let whole = Whole::of(m.to_vec());
        let asked = |section: &str| {
            let (_, value) = whole.item(&Item::Pass(None, format!("BODY.PEEK[{section}]"))).unwrap();
            String::from_utf8(value).unwrap()
        };
        assert_eq!(asked("1"), "{3}\r\none");
        assert_eq!(asked("2.HEADER.FIELDS (SUBJECT)"), "{15}\r\nSubject: in\r\n\r\n");
        assert_eq!(asked("2.HEADER.FIELDS.NOT (\"Subject\")"), "{8}\r\nA: b\r\n\r\n");
        assert_eq!(asked("2.TEXT"), "{3}\r\ntwo");
        assert_eq!(asked("2.MIME"), "{32}\r\nContent-Type: message/rfc822\r\n\r\n");
        assert_eq!(asked("3"), "NIL");
        assert_eq!(asked("1.HEADER"), "NIL");
    }
}
