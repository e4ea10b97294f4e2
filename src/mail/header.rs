//! Header fields by offset into the received octets (RFC 5322 §2.2).
//!
//! Promises: every octet of the input belongs to exactly one field, to the
//! separator or to the body; nothing is decoded or normalised here. Doesn't
//! know: what a field means.

use std::ops::Range;

/// One header field, as spans of the message that it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name, without the colon and without trailing blanks before it.
    pub name: Range<usize>,
    /// The value after the colon, folding and final line end included.
    pub value: Range<usize>,
}

impl Field {
    /// The field name as it was written.
    pub fn name<'a>(&self, message: &'a [u8]) -> &'a [u8] {
        &message[self.name.clone()]
    }

    /// Whether the name equals `name`, ASCII case ignored.
    pub fn is(&self, message: &[u8], name: &str) -> bool {
        self.name(message).eq_ignore_ascii_case(name.as_bytes())
    }

    /// The value unfolded: line ends removed, outer blanks trimmed.
    pub fn unfolded(&self, message: &[u8]) -> Vec<u8> {
        let raw: Vec<u8> = message[self.value.clone()].iter().copied().filter(|b| *b != b'\r' && *b != b'\n').collect();
        raw.trim_ascii().to_vec()
    }
}

/// Where the header of a message ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderSpans {
    /// The fields in order of appearance.
    pub fields: Vec<Field>,
    /// Offset of the first body octet: after the empty line, or the length
    /// of the message where there is none.
    pub body_start: usize,
}

/// Splits the header section of `message` into fields.
///
/// A line before the empty line that is neither a continuation nor has a
/// colon is skipped (no field covers it). Line ends may be CRLF or LF.
pub fn split(message: &[u8]) -> HeaderSpans {
    let mut fields: Vec<Field> = Vec::new();
    let mut at = 0;
    let mut open = false;
    while at < message.len() {
        let end = memchr::memchr(b'\n', &message[at..]).map_or(message.len(), |n| at + n + 1);
        let line = &message[at..end];
        if line == b"\r\n" || line == b"\n" {
            return HeaderSpans { fields, body_start: end };
        }
        if line[0] == b' ' || line[0] == b'\t' {
            if open && let Some(last) = fields.last_mut() {
                last.value.end = end;
            }
        } else if let Some(colon) = memchr::memchr(b':', line) {
            let name_len = line[..colon].trim_ascii_end().len();
            fields.push(Field { name: at..at + name_len, value: at + colon + 1..end });
            open = true;
        } else {
            open = false;
        }
        at = end;
    }
    HeaderSpans { fields, body_start: message.len() }
}

/// The unfolded values of every field called `name`, in order.
pub fn values(message: &[u8], name: &str) -> Vec<Vec<u8>> {
    split(message).fields.iter().filter(|f| f.is(message, name)).map(|f| f.unfolded(message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_fields_are_one_field() {
        let m = b"A: 1\r\n 2\r\nb : 3\r\n\r\nbody";
        let s = split(m);
        assert_eq!(s.fields.len(), 2);
        assert_eq!(s.fields[0].unfolded(m), b"1 2");
        assert_eq!(s.fields[1].name(m), b"b");
        assert_eq!(&m[s.body_start..], b"body");
    }

    #[test]
    fn a_message_without_separator_is_all_header() {
        let m = b"A: 1\r\nnot a field\r\n x\r\nB: 2";
        let s = split(m);
        assert_eq!(s.fields.len(), 2);
        assert_eq!(s.body_start, m.len());
    }
}
