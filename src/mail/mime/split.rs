//! The parts of a message as spans of its octets (RFC 2046 §5.1).
//!
//! Promises: linear in the message times the depth, never deeper than
//! [`MAX_DEPTH`], never more than [`MAX_PARTS`] parts, and a note where either
//! limit cut something off. Doesn't know: what the parts hold.
//!
//! The splitter is our own because mail-parser 0.11.9 keeps a nested message
//! inside its parent: some twenty thousand `message/rfc822` fields in a mail
//! of 640 KB overflow the stack when the result is dropped, and the process
//! ends. Field values are still read by that crate.

use std::borrow::Cow;
use std::ops::Range;

use mail_parser::HeaderValue;
use mail_parser::parsers::MessageStream;

use crate::mail::header::{self, Field};

use super::decode::TransferEncoding;

/// Most parts that are shown; more than any client writes.
pub const MAX_PARTS: usize = 500;
/// Deepest nesting that is followed.
pub const MAX_DEPTH: usize = 40;
/// Largest header that is read, of the message or of a part.
const MAX_HEADER: usize = 256 * 1024;
/// Most fields of one header that are kept.
pub const MAX_FIELDS: usize = 500;
/// Longest boundary (RFC 2046 §5.1.1).
const MAX_BOUNDARY: usize = 70;

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `multipart/*` with a usable boundary.
    Multipart,
    /// `message/rfc822` or `message/global` whose message is split further.
    Message,
    /// Anything else.
    Leaf,
}

/// What is odd about a part's structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Oddity {
    DuplicateField(String),
    BoundaryUnusable,
    NotClosed,
    OutsideParts,
    TooDeep,
    EncodedContainer,
    HeaderTooLong,
}

/// One part.
#[derive(Debug, Clone)]
pub(crate) struct Entity {
    /// `""` for the message itself, then `1`, `1.2`, …, as in IMAP.
    pub(crate) path: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) body: Range<usize>,
    pub(crate) kind: Kind,
    pub(crate) content: ContentType,
    pub(crate) disposition: Option<ContentType>,
    pub(crate) encoding: TransferEncoding,
    pub(crate) oddities: Vec<Oddity>,
    /// Whether its siblings are alternatives of one another.
    pub(crate) alternative: Option<String>,
    /// Place in the list of the multipart or message that holds it.
    pub(crate) parent: Option<usize>,
}

/// The parts in order, and whether there were more.
#[derive(Debug, Default)]
pub(crate) struct Structure {
    pub(crate) entities: Vec<Entity>,
    pub(crate) more: bool,
}

/// A Content-Type or Content-Disposition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentType {
    /// `text/plain`, `attachment`, …, in lower case.
    pub(crate) name: String,
    /// Whether the field was there and could be read.
    pub(crate) declared: bool,
    parameters: Vec<(String, String)>,
}

impl ContentType {
    fn implied(name: &str) -> ContentType {
        ContentType { name: name.to_owned(), declared: false, parameters: Vec::new() }
    }

    fn parse(value: &[u8]) -> Option<ContentType> {
        // The parser wants a line end behind the value.
        let mut line = value.to_vec();
        line.extend_from_slice(b"\r\n");
        let HeaderValue::ContentType(parsed) = MessageStream::new(&line).parse_content_type() else { return None };
        let name = match &parsed.c_subtype {
            Some(subtype) => format!("{}/{subtype}", parsed.c_type),
            None => parsed.c_type.to_string(),
        };
        let parameters = parsed.attributes.iter().flatten();
        let parameters = parameters.map(|a| (a.name.to_ascii_lowercase(), a.value.to_string())).collect();
        Some(ContentType { name: name.trim().to_ascii_lowercase(), declared: true, parameters })
    }

    /// The first parameter of that name.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// Splits `octets` into parts.
pub(crate) fn split(octets: &[u8]) -> Structure {
    whole(octets, Containers::AsStandardised)
}

/// Splits `octets` into parts as most clients do: what a multipart says of a
/// transfer encoding of its own is passed over.
pub(crate) fn split_as_read(octets: &[u8]) -> Structure {
    whole(octets, Containers::AsRead)
}

fn whole(octets: &[u8], containers: Containers) -> Structure {
    let mut out = Structure::default();
    let root =
        Place { path: String::new(), depth: 0, default: "text/plain", alternative: None, parent: None, containers };
    entity(octets, 0..octets.len(), root, &mut out);
    out
}

/// What an encoded multipart is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Containers {
    /// Never encoded (RFC 2045 §6.4), so that one which says it is can't be split.
    AsStandardised,
    /// A multipart whatever it says.
    AsRead,
}

struct Place<'a> {
    path: String,
    depth: usize,
    default: &'a str,
    alternative: Option<String>,
    parent: Option<usize>,
    containers: Containers,
}

fn entity(octets: &[u8], span: Range<usize>, place: Place<'_>, out: &mut Structure) {
    if out.entities.len() >= MAX_PARTS {
        out.more = true;
        return;
    }
    let head = span.start..span.end.min(span.start.saturating_add(MAX_HEADER));
    let spans = header::split(&octets[head.clone()]);
    let shift = |r: Range<usize>| r.start + span.start..r.end + span.start;
    let mut oddities = Vec::new();
    let ended = spans.body_start < head.len() || head.end == span.end;
    if !ended || spans.fields.len() > MAX_FIELDS {
        oddities.push(Oddity::HeaderTooLong);
    }
    let kept = spans.fields.into_iter().take(MAX_FIELDS);
    let fields: Vec<Field> = kept.map(|f| Field { name: shift(f.name), value: shift(f.value) }).collect();
    let body = span.start + spans.body_start..span.end;
    let content = single(octets, &fields, "Content-Type", &mut oddities)
        .and_then(|v| ContentType::parse(&v))
        .filter(|c| c.name.contains('/'))
        .unwrap_or_else(|| ContentType::implied(place.default));
    let disposition =
        single(octets, &fields, "Content-Disposition", &mut oddities).and_then(|v| ContentType::parse(&v));
    let encoding = single(octets, &fields, "Content-Transfer-Encoding", &mut oddities)
        .map_or(TransferEncoding::Identity, |v| TransferEncoding::parse(&String::from_utf8_lossy(&v)));
    let kind = kind_of(&content, &encoding, &place, &mut oddities);
    let at = out.entities.len();
    let Place { path, depth, alternative, parent, containers, .. } = place;
    out.entities.push(Entity {
        path: path.clone(),
        fields,
        body: body.clone(),
        kind,
        content: content.clone(),
        disposition,
        encoding,
        oddities,
        alternative,
        parent,
    });
    match kind {
        Kind::Leaf => {}
        Kind::Message => {
            let (path, parent) = (child(&path, 0), Some(at));
            let inner = Place { path, depth: depth + 1, default: "text/plain", alternative: None, parent, containers };
            entity(octets, body, inner, out);
        }
        Kind::Multipart => {
            let (children, oddities) = children(octets, body, content.parameter("boundary").unwrap_or_default());
            out.entities[at].oddities.extend(oddities);
            // RFC 2046 §5.1.5: inside a digest the default type is a message.
            let default = if content.name == "multipart/digest" { "message/rfc822" } else { "text/plain" };
            let alternative = (content.name == "multipart/alternative").then(|| path.clone());
            for (n, range) in children.into_iter().enumerate() {
                let (path, alternative) = (child(&path, n), alternative.clone());
                let place = Place { path, depth: depth + 1, default, alternative, parent: Some(at), containers };
                entity(octets, range, place, out);
            }
        }
    }
}

fn child(path: &str, n: usize) -> String {
    if path.is_empty() { (n + 1).to_string() } else { format!("{path}.{}", n + 1) }
}

/// The first field of that name, unfolded; more than one is an oddity, since
/// clients differ about which of them counts.
fn single(octets: &[u8], fields: &[Field], name: &str, oddities: &mut Vec<Oddity>) -> Option<Vec<u8>> {
    let mut found = fields.iter().filter(|f| f.is(octets, name));
    let first = found.next()?;
    if found.next().is_some() {
        oddities.push(Oddity::DuplicateField(name.to_owned()));
    }
    Some(first.unfolded(octets))
}

fn kind_of(content: &ContentType, encoding: &TransferEncoding, place: &Place<'_>, oddities: &mut Vec<Oddity>) -> Kind {
    let kind = match content.name.as_str() {
        "message/rfc822" | "message/global" => Kind::Message,
        name if name.starts_with("multipart/") => Kind::Multipart,
        _ => return Kind::Leaf,
    };
    // RFC 2045 §6.4, RFC 2046 §5.2.1: neither may be encoded; some clients decode it all the same.
    if *encoding != TransferEncoding::Identity {
        oddities.push(Oddity::EncodedContainer);
        if kind == Kind::Message || place.containers == Containers::AsStandardised {
            return Kind::Leaf;
        }
    }
    if place.depth >= MAX_DEPTH {
        oddities.push(Oddity::TooDeep);
        return Kind::Leaf;
    }
    let boundary = content.parameter("boundary").unwrap_or_default();
    if kind == Kind::Multipart && (boundary.is_empty() || boundary.len() > MAX_BOUNDARY) {
        oddities.push(Oddity::BoundaryUnusable);
        return Kind::Leaf;
    }
    kind
}

/// The spans between the delimiter lines of one multipart body.
fn children(octets: &[u8], body: Range<usize>, boundary: &str) -> (Vec<Range<usize>>, Vec<Oddity>) {
    let text = &octets[body.clone()];
    let needle: Cow<'_, [u8]> = Cow::Owned([b"--", boundary.as_bytes()].concat());
    let (mut found, mut oddities) = (Vec::new(), Vec::new());
    let mut open: Option<usize> = None;
    let mut closed_at = None;
    for at in memchr::memmem::find_iter(text, needle.as_ref()) {
        if at > 0 && text[at - 1] != b'\n' {
            continue;
        }
        let rest = &text[at + needle.len()..];
        let line_end = memchr::memchr(b'\n', rest).map_or(rest.len(), |n| n + 1);
        let tail = rest[..line_end].trim_ascii();
        // RFC 2046 §5.1.1: only blanks may follow, or two hyphens and blanks; longer boundaries are others.
        let closing = tail == b"--";
        if !tail.is_empty() && !closing {
            continue;
        }
        // The line end before the delimiter belongs to it.
        let end = match &text[..at] {
            [.., b'\r', b'\n'] => at - 2,
            [.., b'\n'] => at - 1,
            _ => at,
        };
        match open {
            Some(start) => found.push(body.start + start..body.start + end.max(start)),
            None if !text[..end].trim_ascii().is_empty() => oddities.push(Oddity::OutsideParts),
            None => {}
        }
        let next = at + needle.len() + line_end;
        if closing {
            open = None;
            closed_at = Some(next);
            break;
        }
        open = Some(next);
        if found.len() > MAX_PARTS {
            break;
        }
    }
    match (open, closed_at) {
        (_, Some(end)) if !text[end..].trim_ascii().is_empty() && !oddities.contains(&Oddity::OutsideParts) => {
            oddities.push(Oddity::OutsideParts);
        }
        (_, Some(_)) => {}
        (Some(start), None) => {
            found.push(body.start + start..body.end);
            oddities.push(Oddity::NotClosed);
        }
        (None, None) => oddities.push(Oddity::NotClosed),
    }
    (found, oddities)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(message: &[u8]) -> Vec<(String, String)> {
        split(message).entities.into_iter().map(|e| (e.path, e.content.name)).collect()
    }

    const MIXED: &[u8] = b"Content-Type: multipart/mixed; boundary=\"b\"\r\n\r\n\
        --b\r\nContent-Type: multipart/alternative; boundary=bb\r\n\r\n--bb\r\n\r\nplain\r\n--bb\r\n\
        Content-Type: text/html\r\n\r\n<p>html\r\n--bb--\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n\
        Subject: inner\r\n\r\ninner text\r\n--b--\r\n";

    #[test]
    fn parts_are_numbered_as_in_imap_and_are_spans() {
        let s = split(MIXED);
        let got: Vec<_> = s.entities.iter().map(|e| (e.path.as_str(), e.content.name.as_str())).collect();
        assert_eq!(
            got,
            [
                ("", "multipart/mixed"),
                ("1", "multipart/alternative"),
                ("1.1", "text/plain"),
                ("1.2", "text/html"),
                ("2", "message/rfc822"),
                ("2.1", "text/plain"),
            ]
        );
        assert_eq!(&MIXED[s.entities[2].body.clone()], b"plain");
        assert_eq!(&MIXED[s.entities[5].body.clone()], b"inner text");
        assert!(s.entities.iter().all(|e| e.oddities.is_empty()), "{:?}", s.entities);
    }

    #[test]
    fn a_longer_boundary_is_another_one() {
        let m = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\none\r\n--bc\r\nstill one\r\n--b--\r\n";
        assert_eq!(paths(m).len(), 2);
    }

    #[test]
    fn text_outside_the_parts_and_a_missing_end_are_said() {
        let outside = b"Content-Type: multipart/mixed; boundary=b\r\n\r\nhidden\r\n--b\r\n\r\none\r\n--b--\r\n";
        assert_eq!(split(outside).entities[0].oddities, [Oddity::OutsideParts]);
        let after = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\none\r\n--b--\r\nhidden";
        assert_eq!(split(after).entities[0].oddities, [Oddity::OutsideParts]);
        let open = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\none\r\n";
        assert_eq!(split(open).entities[0].oddities, [Oddity::NotClosed]);
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let deep = b"Content-Type: message/rfc822\r\n\r\n".repeat(50_000);
        let s = split(&deep);
        assert_eq!(s.entities.len(), MAX_DEPTH + 1);
        assert_eq!(s.entities[MAX_DEPTH].oddities, [Oddity::TooDeep]);
        let mut wide = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n".to_vec();
        wide.extend(b"--b\r\n\r\nx\r\n".repeat(2_000));
        let s = split(&wide);
        assert_eq!((s.entities.len(), s.more), (MAX_PARTS, true));
    }

    #[test]
    fn a_header_without_end_is_bounded_and_said() {
        let s = split(&b"a:\r\n".repeat(300_000));
        assert_eq!(
            (s.entities[0].fields.len(), &s.entities[0].oddities[..]),
            (MAX_FIELDS, &[Oddity::HeaderTooLong][..])
        );
        assert!(split(b"a: b").entities[0].oddities.is_empty());
    }

    #[test]
    fn every_prefix_and_every_octet_can_be_split() {
        for end in 0..MIXED.len() {
            split(&MIXED[..end]);
            let mut changed = MIXED.to_vec();
            for octet in [0, b'\n', b'-', b':', 0xff] {
                changed[end] = octet;
                split(&changed);
            }
        }
    }
}
