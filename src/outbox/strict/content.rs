//! Content-Type and Content-Transfer-Encoding (RFC 2045), read strictly.

use super::Refusal;
use super::header::ContentFields;

/// Charsets that the approval page can show; UTF-7 is not among them, since
/// it hides ASCII from whoever doesn't expect it.
const CHARSETS: [&str; 42] = [
    "us-ascii",
    "utf-8",
    "iso-8859-1",
    "iso-8859-2",
    "iso-8859-3",
    "iso-8859-4",
    "iso-8859-5",
    "iso-8859-6",
    "iso-8859-7",
    "iso-8859-8",
    "iso-8859-9",
    "iso-8859-10",
    "iso-8859-13",
    "iso-8859-14",
    "iso-8859-15",
    "iso-8859-16",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "windows-1253",
    "windows-1254",
    "windows-1255",
    "windows-1256",
    "windows-1257",
    "windows-1258",
    "koi8-r",
    "koi8-u",
    "macintosh",
    "ibm866",
    "gb2312",
    "gbk",
    "gb18030",
    "big5",
    "euc-jp",
    "euc-kr",
    "iso-2022-jp",
    "shift_jis",
    "ks_c_5601-1987",
    "tis-620",
    "windows-874",
    "iso-8859-11",
    "ascii",
];

/// Longest boundary (RFC 2046 §5.1.1).
const MAX_BOUNDARY: usize = 70;

/// How a part's octets are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    SevenBit,
    EightBit,
    QuotedPrintable,
    Base64,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Parts between boundaries.
    Multipart(Vec<u8>),
    /// Octets. `utf8` says that 8-bit octets must be UTF-8, `ascii` that
    /// there must be none.
    Leaf { encoding: Encoding, utf8: bool, ascii: bool },
}

/// Reads the two fields together: each limits the other.
pub(super) fn content(fields: &ContentFields) -> Result<Content, Refusal> {
    let encoding = match fields.encoding.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("7bit") => Encoding::SevenBit,
        Some("8bit") => Encoding::EightBit,
        Some("quoted-printable") => Encoding::QuotedPrintable,
        Some("base64") => Encoding::Base64,
        // RFC 2045 §6.2 knows `binary`, which needs BINARYMIME.
        Some(_) => return Err(Refusal::Encoding),
    };
    let Some(value) = &fields.content_type else {
        return Ok(Content::Leaf { encoding, utf8: false, ascii: true });
    };
    let parsed = Type::parse(value).ok_or(Refusal::ContentType)?;
    let plain = matches!(encoding, Encoding::SevenBit | Encoding::EightBit);
    match parsed.main.as_str() {
        "multipart" => {
            // RFC 2045 §6.4: a composite type takes no encoding of its own.
            if !plain {
                return Err(Refusal::Encoding);
            }
            let boundary = parsed.parameter("boundary").ok_or(Refusal::Boundary)?;
            if !is_boundary(boundary) {
                return Err(Refusal::Boundary);
            }
            Ok(Content::Multipart(boundary.as_bytes().to_vec()))
        }
        "message" => {
            if matches!(parsed.sub.as_str(), "external-body" | "partial") {
                return Err(Refusal::TypeNotAllowed(format!("message/{}", parsed.sub)));
            }
            if parsed.sub == "rfc822" && !plain {
                return Err(Refusal::Encoding);
            }
            Ok(Content::Leaf { encoding, utf8: false, ascii: false })
        }
        "text" => {
            let charset = parsed.parameter("charset").unwrap_or("us-ascii").to_ascii_lowercase();
            if !CHARSETS.contains(&charset.as_str()) {
                return Err(Refusal::Charset(charset));
            }
            let ascii = matches!(charset.as_str(), "us-ascii" | "ascii");
            Ok(Content::Leaf { encoding, utf8: charset == "utf-8", ascii })
        }
        _ => Ok(Content::Leaf { encoding, utf8: false, ascii: false }),
    }
}

/// RFC 2046 §5.1.1: 1 to 70 of `bcharsnospace`, blanks inside.
fn is_boundary(text: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&b);
    (1..=MAX_BOUNDARY).contains(&text.len()) && !text.ends_with(' ') && text.bytes().all(good)
}

/// A Content-Type.
struct Type {
    main: String,
    sub: String,
    parameters: Vec<(String, String)>,
}

impl Type {
    fn parse(value: &str) -> Option<Type> {
        let (kind, mut rest) = match value.split_once(';') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (value, None),
        };
        let (main, sub) = kind.trim().split_once('/')?;
        if !is_token(main) || !is_token(sub) {
            return None;
        }
        let mut parameters: Vec<(String, String)> = Vec::new();
        while let Some(text) = rest {
            let text = text.trim_start();
            if text.is_empty() {
                break; // A semicolon at the end; common, and of one meaning.
            }
            let (name, tail) = text.split_once('=')?;
            let name = name.to_ascii_lowercase();
            let (value, tail) = parameter_value(tail)?;
            // RFC 2231 forms of these two could say another value.
            let hidden = name.starts_with("boundary*") || name.starts_with("charset*");
            if !is_token(&name) || hidden || parameters.iter().any(|(n, _)| *n == name) {
                return None;
            }
            parameters.push((name, value));
            let tail = tail.trim_start();
            rest = if tail.is_empty() { None } else { Some(tail.strip_prefix(';')?) };
        }
        Some(Type { main: main.to_ascii_lowercase(), sub: sub.to_ascii_lowercase(), parameters })
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// A token or a quoted string at the start of `text`; the value and the rest.
fn parameter_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ' ', '\t']).unwrap_or(text.len());
        return is_token(&text[..end]).then(|| (text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// RFC 2045 §5.1 `token`.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b))
}
