//! The parts of a message, as spans of its octets.
//!
//! Promises: every span lies inside the message and is served as it stands;
//! any octets give a tree. Doesn't know: transfer encodings or charsets.

use std::ops::Range;

use super::header::{self, HeaderSpans};

/// Deepest nesting that is looked into; what is deeper is a leaf.
const MAX_DEPTH: usize = 40;

/// A part: the message itself, a part of a multipart, or an enclosed message.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Header section with its empty line.
    pub(crate) header: Range<usize>,
    /// What follows it.
    pub(crate) body: Range<usize>,
    pub(crate) kind: ContentType,
    /// Parts of a multipart, at least one there.
    pub(crate) children: Vec<Part>,
    /// The enclosed message of a message/rfc822.
    pub(crate) message: Option<Box<Part>>,
}

/// Names in upper case with their values.
pub(crate) type Params = Vec<(Vec<u8>, Vec<u8>)>;

/// A Content-Type or Content-Disposition with its parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ContentType {
    /// Upper case.
    pub(crate) main: Vec<u8>,
    /// Upper case; empty for a disposition.
    pub(crate) sub: Vec<u8>,
    pub(crate) params: Params,
}

impl ContentType {
    fn new(main: &str, sub: &str) -> ContentType {
        ContentType { main: main.into(), sub: sub.into(), params: Vec::new() }
    }

    pub(crate) fn is(&self, main: &str, sub: &str) -> bool {
        self.main == main.as_bytes() && self.sub == sub.as_bytes()
    }

    fn param(&self, name: &str) -> Option<&[u8]> {
        self.params.iter().find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, v)| v.as_slice())
    }
}

impl Part {
    /// The tree of a whole message.
    pub(crate) fn of(octets: &[u8]) -> Part {
        parse(octets, 0..octets.len(), ContentType::new("TEXT", "PLAIN"), 0)
    }

    /// Whether it has parts of its own.
    pub(crate) fn is_multipart(&self) -> bool {
        !self.children.is_empty()
    }

    /// The fields of the header, with spans relative to `header.start`.
    pub(crate) fn fields(&self, octets: &[u8]) -> HeaderSpans {
        header::split(&octets[self.header.clone()])
    }

    /// The unfolded first field called `name`.
    pub(crate) fn field(&self, octets: &[u8], name: &str) -> Option<Vec<u8>> {
        let head = &octets[self.header.clone()];
        header::split(head).fields.iter().find(|f| f.is(head, name)).map(|f| f.unfolded(head))
    }

    /// The part with this number (RFC 3501 §6.4.5), or none.
    pub(crate) fn at(&self, path: &[u32]) -> Option<&Part> {
        let (first, rest) = path.split_first()?;
        let mut part = self.inside_message(*first)?;
        for n in rest {
            part = match (&part.message, part.is_multipart()) {
                (_, true) => part.child(*n)?,
                (Some(message), _) => message.inside_message(*n)?,
                (None, false) => return None,
            };
        }
        Some(part)
    }

    /// RFC 3501 §6.4.5: a message that isn't a multipart has itself as part 1.
    fn inside_message(&self, n: u32) -> Option<&Part> {
        match self.is_multipart() {
            true => self.child(n),
            false => (n == 1).then_some(self),
        }
    }

    fn child(&self, n: u32) -> Option<&Part> {
        self.children.get(usize::try_from(n).ok()?.checked_sub(1)?)
    }
}

fn parse(octets: &[u8], span: Range<usize>, default: ContentType, depth: usize) -> Part {
    let slice = &octets[span.clone()];
    let spans = header::split(slice);
    let value = spans.fields.iter().find(|f| f.is(slice, "Content-Type")).map(|f| f.unfolded(slice));
    let kind = value.and_then(|v| content_type(&v)).unwrap_or(default);
    let split = span.start + spans.body_start;
    let mut part = Part { header: span.start..split, body: split..span.end, kind, children: vec![], message: None };
    if depth >= MAX_DEPTH {
        return part;
    }
    if part.kind.main == b"MULTIPART" {
        let inner = match part.kind.sub == b"DIGEST" {
            true => ContentType::new("MESSAGE", "RFC822"),
            false => ContentType::new("TEXT", "PLAIN"),
        };
        let boundary = part.kind.param("boundary").unwrap_or_default().to_vec();
        for child in split_multipart(octets, part.body.clone(), &boundary) {
            part.children.push(parse(octets, child, inner.clone(), depth + 1));
        }
        if part.children.is_empty() {
            // The grammar of BODYSTRUCTURE wants at least one part.
            let end = part.body.end;
            part.children.push(parse(octets, end..end, ContentType::new("TEXT", "PLAIN"), MAX_DEPTH));
        }
    } else if part.kind.is("MESSAGE", "RFC822") {
        let inner = parse(octets, part.body.clone(), ContentType::new("TEXT", "PLAIN"), depth + 1);
        part.message = Some(Box::new(inner));
    }
    part
}

/// RFC 2046 §5.1.1: the line end before a delimiter belongs to the delimiter.
fn split_multipart(octets: &[u8], body: Range<usize>, boundary: &[u8]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    if boundary.is_empty() {
        return parts;
    }
    let mut open: Option<usize> = None;
    let mut at = body.start;
    while at < body.end {
        let end = memchr::memchr(b'\n', &octets[at..body.end]).map_or(body.end, |n| at + n + 1);
        if let Some(last) = delimiter(&octets[at..end], boundary) {
            if let Some(start) = open.take() {
                parts.push(start..before_line_end(octets, start, at));
            }
            if last {
                return parts;
            }
            open = Some(end);
        }
        at = end;
    }
    if let Some(start) = open {
        parts.push(start..body.end);
    }
    parts
}

/// Whether the line is a delimiter, and if so whether the closing one.
fn delimiter(line: &[u8], boundary: &[u8]) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?;
    let (rest, last) = match rest.strip_prefix(b"--") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    rest.iter().all(u8::is_ascii_whitespace).then_some(last)
}

fn before_line_end(octets: &[u8], start: usize, at: usize) -> usize {
    let mut end = at;
    if end > start && octets[end - 1] == b'\n' {
        end -= 1;
        if end > start && octets[end - 1] == b'\r' {
            end -= 1;
        }
    }
    end
}

/// `type/subtype; name=value; …`; none where there is no type.
fn content_type(value: &[u8]) -> Option<ContentType> {
    let (head, params) = split_params(value);
    let slash = memchr::memchr(b'/', &head)?;
    let main = head[..slash].trim_ascii().to_ascii_uppercase();
    let sub = head[slash + 1..].trim_ascii().to_ascii_uppercase();
    (!main.is_empty() && !sub.is_empty()).then_some(ContentType { main, sub, params })
}

/// `inline; name=value; …` (RFC 2183 §2).
pub(crate) fn disposition(value: &[u8]) -> Option<ContentType> {
    let (head, params) = split_params(value);
    let main = head.trim_ascii().to_ascii_uppercase();
    (!main.is_empty()).then_some(ContentType { main, sub: Vec::new(), params })
}

/// Splits at `;` outside quotes and comments; the comments are dropped.
fn split_params(value: &[u8]) -> (Vec<u8>, Params) {
    let mut pieces: Vec<Vec<u8>> = vec![Vec::new()];
    let (mut quoted, mut comment) = (false, 0_usize);
    let mut bytes = value.iter().copied();
    while let Some(b) = bytes.next() {
        match b {
            b'\\' if quoted || comment > 0 => {
                let next = bytes.next();
                if let (0, Some(next), Some(piece)) = (comment, next, pieces.last_mut()) {
                    piece.extend([b, next]);
                }
                continue;
            }
            b'"' if comment == 0 => quoted = !quoted,
            b'(' if !quoted => comment += 1,
            b')' if !quoted && comment > 0 => {
                comment -= 1;
                continue;
            }
            b';' if !quoted && comment == 0 => {
                pieces.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if let (0, Some(piece)) = (comment, pieces.last_mut()) {
            piece.push(b);
        }
    }
    let head = pieces.remove(0);
    let params = pieces.iter().filter_map(|piece| {
        let equals = memchr::memchr(b'=', piece)?;
        let name = piece[..equals].trim_ascii();
        (!name.is_empty()).then(|| (name.to_ascii_uppercase(), unquote(piece[equals + 1..].trim_ascii())))
    });
    (head, params.collect())
}

fn unquote(value: &[u8]) -> Vec<u8> {
    let Some(inner) = value.strip_prefix(b"\"") else { return value.to_vec() };
    let inner = inner.strip_suffix(b"\"").unwrap_or(inner);
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(b) = bytes.next() {
        out.push(match b {
            b'\\' => bytes.next().unwrap_or(b),
            b => b,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NESTED: &[u8] = b"Subject: x\r\nContent-Type: multipart/mixed; boundary=\"o;1\"\r\n\r\npre\r\n--o;1\r\n\r\none\r\n--o;1\r\nContent-Type: message/rfc822\r\n\r\nSubject: in\r\nContent-Type: multipart/alternative; boundary=i (c)\r\n\r\n--i\r\nContent-Type: text/plain\r\n\r\nA\r\n--i\r\nContent-Type: text/html\r\n\r\nB\r\n--i--\r\n--o;1-- \r\npost";

    fn body(part: Option<&Part>) -> Option<&'static str> {
        part.map(|p| std::str::from_utf8(&NESTED[p.body.clone()]).unwrap())
    }

    #[test]
    fn part_numbers_reach_into_enclosed_messages() {
        let root = Part::of(NESTED);
        assert_eq!(body(root.at(&[1])), Some("one"));
        assert_eq!(body(root.at(&[2, 1])), Some("A"));
        assert_eq!(body(root.at(&[2, 2])), Some("B"));
        assert!(root.at(&[3]).is_none() && root.at(&[1, 1]).is_none() && root.at(&[2, 3]).is_none());
        let inner = root.at(&[2]).unwrap().message.as_ref().unwrap();
        assert_eq!(inner.field(NESTED, "subject").unwrap(), b"in");
    }

    #[test]
    fn a_plain_message_is_its_own_part_one() {
        let m = b"A: b\r\n\r\nhello";
        let root = Part::of(m);
        assert_eq!(&m[root.at(&[1]).unwrap().body.clone()], b"hello");
        assert!(root.at(&[1, 1]).is_none());
    }

    #[test]
    fn any_octets_give_a_tree() {
        for m in [&b""[..], b"\r\n", b"\0\xff", b"Content-Type: multipart/mixed\r\n\r\n--\r\n", b"Content-Type: ;;\"\\"]
        {
            let root = Part::of(m);
            assert_eq!(root.body.end, m.len());
        }
    }

    #[test]
    fn parameters_keep_quoted_semicolons_and_lose_comments() {
        let t = content_type(b"Text/Plain (a;b); NAME=\"a;\\\"b\" ; x=y").unwrap();
        assert!(t.is("TEXT", "PLAIN"));
        assert_eq!(t.param("name").unwrap(), b"a;\"b");
        assert_eq!(t.param("X").unwrap(), b"y");
    }
}
