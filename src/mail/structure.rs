//! ENVELOPE, BODY and BODYSTRUCTURE (RFC 3501 §7.4.2), as octets to send.
//!
//! Promises: header text goes out as it came, never decoded; whatever a quoted
//! string can't carry goes out as a literal.

use super::parts::{ContentType, Part, disposition};

/// `text` as nstring: NIL, quoted, or a literal.
pub(crate) fn nstring(out: &mut Vec<u8>, text: Option<&[u8]>) {
    match text {
        None => out.extend_from_slice(b"NIL"),
        Some(text) => string(out, text),
    }
}

/// `text` quoted, or as a literal.
pub(crate) fn string(out: &mut Vec<u8>, text: &[u8]) {
    if text.len() > 900 || text.iter().any(|b| !(0x20..0x7f).contains(b)) {
        out.extend_from_slice(format!("{{{}}}\r\n", text.len()).as_bytes());
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for b in text {
        if matches!(b, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*b);
    }
    out.push(b'"');
}

/// The ENVELOPE of the message that `part` is.
pub(crate) fn envelope(out: &mut Vec<u8>, octets: &[u8], part: &Part) {
    let field = |name: &str| part.field(octets, name);
    out.push(b'(');
    nstring(out, field("Date").as_deref());
    out.push(b' ');
    nstring(out, field("Subject").as_deref());
    let from = field("From").map(|v| addresses(&v)).unwrap_or_default();
    for name in ["From", "Sender", "Reply-To", "To", "Cc", "Bcc"] {
        out.push(b' ');
        let list = field(name).map(|v| addresses(&v)).unwrap_or_default();
        // RFC 3501 §7.4.2: an absent Sender or Reply-To is told as the From.
        let list = if list.is_empty() && matches!(name, "Sender" | "Reply-To") { &from } else { &list };
        address_list(out, list);
    }
    for name in ["In-Reply-To", "Message-ID"] {
        out.push(b' ');
        nstring(out, field(name).as_deref());
    }
    out.push(b')');
}

fn address_list(out: &mut Vec<u8>, list: &[EnvelopeAddress]) {
    if list.is_empty() {
        out.extend_from_slice(b"NIL");
        return;
    }
    out.push(b'(');
    for address in list {
        out.push(b'(');
        nstring(out, address.name.as_deref());
        out.extend_from_slice(b" NIL ");
        nstring(out, address.mailbox.as_deref());
        out.push(b' ');
        nstring(out, address.host.as_deref());
        out.push(b')');
    }
    out.push(b')');
}

/// One address structure; the start of a group has only a mailbox, its end
/// has nothing.
#[derive(Debug, Default, PartialEq, Eq)]
struct EnvelopeAddress {
    name: Option<Vec<u8>>,
    mailbox: Option<Vec<u8>>,
    host: Option<Vec<u8>>,
}

/// What stands between two commas.
#[derive(Default)]
struct Entry {
    /// As written, without comments and blanks.
    raw: Vec<u8>,
    /// As a phrase, quotes removed.
    phrase: Vec<u8>,
    comment: Vec<u8>,
    angle: Option<Vec<u8>>,
}

impl Entry {
    fn finish(self) -> Option<EnvelopeAddress> {
        let some = |text: Vec<u8>| (!text.is_empty()).then_some(text);
        let name = match &self.angle {
            Some(_) => some(self.phrase.trim_ascii().to_vec()).or(some(self.comment)),
            None => some(self.comment),
        };
        let spec = self.angle.unwrap_or(self.raw);
        if spec.is_empty() && name.is_none() {
            return None;
        }
        // An obsolete source route (RFC 5322 §4.4) ends at the colon.
        let spec = match (spec.first(), memchr::memchr(b':', &spec)) {
            (Some(b'@'), Some(colon)) => spec[colon + 1..].to_vec(),
            _ => spec,
        };
        let (mailbox, host) = match memchr::memrchr(b'@', &spec) {
            Some(at) => (spec[..at].to_vec(), spec[at + 1..].to_vec()),
            None => (spec, Vec::new()),
        };
        Some(EnvelopeAddress { name, mailbox: Some(mailbox), host: Some(host) })
    }
}

fn addresses(value: &[u8]) -> Vec<EnvelopeAddress> {
    let mut list = Vec::new();
    let mut entry = Entry::default();
    let mut at = 0;
    let mut grouped = false;
    while let Some(&b) = value.get(at) {
        at += 1;
        match b {
            b'"' => {
                let (text, next) = quoted(value, at);
                entry.raw.extend_from_slice(&value[at - 1..next]);
                entry.phrase.extend_from_slice(&text);
                at = next;
            }
            b'(' => {
                let (text, next) = comment(value, at);
                entry.comment = text;
                at = next;
            }
            b'<' => {
                let end = memchr::memchr(b'>', &value[at..]).map_or(value.len(), |n| at + n);
                entry.angle = Some(value[at..end].iter().copied().filter(|b| !b.is_ascii_whitespace()).collect());
                at = (end + 1).min(value.len());
            }
            b',' => list.extend(std::mem::take(&mut entry).finish()),
            b':' if !grouped => {
                let name = std::mem::take(&mut entry).phrase.trim_ascii().to_vec();
                list.push(EnvelopeAddress { mailbox: Some(name), ..EnvelopeAddress::default() });
                grouped = true;
            }
            b';' if grouped => {
                list.extend(std::mem::take(&mut entry).finish());
                list.push(EnvelopeAddress::default());
                grouped = false;
            }
            b if b.is_ascii_whitespace() => {
                if !entry.phrase.is_empty() && entry.phrase.last() != Some(&b' ') {
                    entry.phrase.push(b' ');
                }
            }
            b => {
                entry.raw.push(b);
                entry.phrase.push(b);
            }
        }
    }
    list.extend(entry.finish());
    if grouped {
        list.push(EnvelopeAddress::default());
    }
    list
}

/// The text of a quoted string whose opening quote stands before `at`, and
/// the offset after its end.
fn quoted(value: &[u8], mut at: usize) -> (Vec<u8>, usize) {
    let mut text = Vec::new();
    while let Some(&b) = value.get(at) {
        at += 1;
        match b {
            b'"' => return (text, at),
            b'\\' => {
                text.extend(value.get(at));
                at = (at + 1).min(value.len());
            }
            b => text.push(b),
        }
    }
    (text, at)
}

fn comment(value: &[u8], mut at: usize) -> (Vec<u8>, usize) {
    let mut text = Vec::new();
    let mut depth = 1;
    while let Some(&b) = value.get(at) {
        at += 1;
        match b {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'\\' => {
                text.extend(value.get(at));
                at = (at + 1).min(value.len());
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        text.push(b);
    }
    (text, at)
}

/// BODYSTRUCTURE, or BODY where not `extended`.
pub(crate) fn body(out: &mut Vec<u8>, octets: &[u8], part: &Part, extended: bool) {
    out.push(b'(');
    if part.is_multipart() {
        for child in &part.children {
            body(out, octets, child, extended);
        }
        out.push(b' ');
        string(out, &part.kind.sub);
        if extended {
            out.push(b' ');
            params(out, &part.kind);
            extension(out, octets, part);
        }
    } else {
        leaf(out, octets, part, extended);
    }
    out.push(b')');
}

fn leaf(out: &mut Vec<u8>, octets: &[u8], part: &Part, extended: bool) {
    string(out, &part.kind.main);
    out.push(b' ');
    string(out, &part.kind.sub);
    out.push(b' ');
    params(out, &part.kind);
    for name in ["Content-ID", "Content-Description"] {
        out.push(b' ');
        nstring(out, part.field(octets, name).as_deref());
    }
    out.push(b' ');
    let encoding = part.field(octets, "Content-Transfer-Encoding").filter(|v| !v.is_empty());
    string(out, &encoding.map_or_else(|| b"7BIT".to_vec(), |v| v.to_ascii_uppercase()));
    out.extend_from_slice(format!(" {}", part.body.len()).as_bytes());
    let lines = memchr::memchr_iter(b'\n', &octets[part.body.clone()]).count();
    if let Some(message) = &part.message {
        out.push(b' ');
        envelope(out, octets, message);
        out.push(b' ');
        body(out, octets, message, extended);
        out.extend_from_slice(format!(" {lines}").as_bytes());
    } else if part.kind.main == b"TEXT" {
        out.extend_from_slice(format!(" {lines}").as_bytes());
    }
    if extended {
        out.push(b' ');
        nstring(out, part.field(octets, "Content-MD5").as_deref());
        extension(out, octets, part);
    }
}

/// Disposition, language and location.
fn extension(out: &mut Vec<u8>, octets: &[u8], part: &Part) {
    out.push(b' ');
    match part.field(octets, "Content-Disposition").and_then(|v| disposition(&v)) {
        None => out.extend_from_slice(b"NIL"),
        Some(d) => {
            out.push(b'(');
            string(out, &d.main);
            out.push(b' ');
            params(out, &d);
            out.push(b')');
        }
    }
    for name in ["Content-Language", "Content-Location"] {
        out.push(b' ');
        nstring(out, part.field(octets, name).as_deref());
    }
}

fn params(out: &mut Vec<u8>, kind: &ContentType) {
    if kind.params.is_empty() {
        out.extend_from_slice(b"NIL");
        return;
    }
    for (i, (name, value)) in kind.params.iter().enumerate() {
        out.push(if i == 0 { b'(' } else { b' ' });
        string(out, name);
        out.push(b' ');
        string(out, value);
    }
    out.push(b')');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn an_envelope_tells_names_groups_and_odd_octets() {
        let m = b"Date: d\r\nSubject: a \"q\" \\\r\nFrom: \"Doe, J\" <j@example.org>\r\nTo: x@example.org (Mr X), G: a@example.net, b <b@example.net>;\r\nMessage-ID: <1@x>\r\nCc: \xfcber@example.org\r\n\r\n";
        let text = told(|out| envelope(out, m, &Part::of(m)));
        assert!(text.starts_with(r#"("d" "a \"q\" \\" (("Doe, J" NIL "j" "example.org")) (("Doe, J""#), "{text}");
        assert!(
            text.contains(
                r#"(("Mr X" NIL "x" "example.org")(NIL NIL "G" NIL)(NIL NIL "a" "example.net")("b" NIL "b" "example.net")(NIL NIL NIL NIL))"#
            ),
            "{text}"
        );
        assert!(text.contains("((NIL NIL {4}\r\n"), "{text}");
        assert!(text.ends_with(r#" NIL NIL "<1@x>")"#), "{text}");
    }

    #[test]
    fn a_bodystructure_counts_octets_and_lines() {
        let m = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na\r\nb\r\n\r\n--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"x.pdf\"\r\nContent-Transfer-Encoding: base64\r\n\r\nQQ==\r\n--b--\r\n";
        let text = told(|out| body(out, m, &Part::of(m), true));
        assert_eq!(
            text,
            r#"(("TEXT" "PLAIN" ("CHARSET" "utf-8") NIL NIL "7BIT" 6 2 NIL NIL NIL NIL)("APPLICATION" "PDF" NIL NIL NIL "BASE64" 4 NIL ("ATTACHMENT" ("FILENAME" "x.pdf")) NIL NIL) "MIXED" ("BOUNDARY" "b") NIL NIL NIL)"#
        );
    }
}
