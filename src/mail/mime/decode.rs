//! Transfer encodings, charsets and encoded words, strictly.
//!
//! Promises: every octet that a decoder skipped or replaced is reported, so
//! that what is shown never looks sounder than what is sent. Doesn't know:
//! where the octets stood.

use mail_parser::decoders::charsets::map::charset_decoder;

/// Longest encoded word that is decoded. RFC 2047 §2 allows 75 characters;
/// some programs write a whole field as one.
const MAX_WORD: usize = 4096;

/// What a decoder made of its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<T> {
    /// The result.
    pub value: T,
    /// Whether something could not be decoded as written.
    pub damaged: bool,
}

/// A transfer encoding (RFC 2045 §6.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferEncoding {
    /// `7bit`, `8bit`, `binary`, or none declared.
    Identity,
    /// `quoted-printable`.
    QuotedPrintable,
    /// `base64`.
    Base64,
    /// A name that no client agrees about.
    Unknown(String),
}

impl TransferEncoding {
    /// Reads the value of a Content-Transfer-Encoding field.
    pub fn parse(value: &str) -> TransferEncoding {
        let value = value.trim();
        match value.to_ascii_lowercase().as_str() {
            "" | "7bit" | "8bit" | "binary" => TransferEncoding::Identity,
            "quoted-printable" => TransferEncoding::QuotedPrintable,
            "base64" => TransferEncoding::Base64,
            _ => TransferEncoding::Unknown(value.to_owned()),
        }
    }

    /// Undoes the encoding; an unknown one leaves the octets as they are.
    pub fn decode(&self, body: &[u8]) -> Decoded<Vec<u8>> {
        match self {
            TransferEncoding::Identity => Decoded { value: body.to_vec(), damaged: false },
            TransferEncoding::Unknown(_) => Decoded { value: body.to_vec(), damaged: true },
            TransferEncoding::QuotedPrintable => quoted_printable(body),
            TransferEncoding::Base64 => base64(body),
        }
    }
}

/// RFC 2045 §6.8. Blanks and line ends are skipped; any other foreign octet,
/// octets after the padding, an incomplete quantum or stray bits are damage.
pub fn base64(input: &[u8]) -> Decoded<Vec<u8>> {
    let mut value = Vec::with_capacity(input.len() / 4 * 3);
    let (mut bits, mut held, mut padding, mut damaged) = (0u32, 0u32, 0usize, false);
    for &octet in input {
        let six = match octet {
            b'A'..=b'Z' => octet - b'A',
            b'a'..=b'z' => octet - b'a' + 26,
            b'0'..=b'9' => octet - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padding += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            _ => {
                damaged = true;
                continue;
            }
        };
        if padding > 0 {
            // Clients differ about what follows the padding: some stop, some go on.
            damaged = true;
            (bits, held, padding) = (0, 0, 0);
        }
        bits = (bits << 6) | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            value.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    let wanted_padding = match held {
        0 => 0,
        4 => 2,
        2 => 1,
        _ => usize::MAX,
    };
    damaged |= bits != 0 || padding != wanted_padding;
    Decoded { value, damaged }
}

/// RFC 2045 §6.7. A `=` that starts neither a hex pair nor a soft line break
/// stays as it is and is damage, and so is a raw 8-bit or control octet.
pub fn quoted_printable(input: &[u8]) -> Decoded<Vec<u8>> {
    let mut value = Vec::with_capacity(input.len());
    let mut damaged = false;
    for line in input.split_inclusive(|b| *b == b'\n') {
        let content = line.trim_ascii_end();
        let end: &[u8] = match line {
            [.., b'\r', b'\n'] => b"\r\n",
            [.., b'\n'] => b"\n",
            _ => b"",
        };
        let soft = content.last() == Some(&b'=');
        let content = if soft { &content[..content.len() - 1] } else { content };
        let mut at = 0;
        while at < content.len() {
            let pair = content.get(at + 1).zip(content.get(at + 2)).and_then(|(h, l)| Some(hex(*h)? << 4 | hex(*l)?));
            match (content[at], pair) {
                (b'=', Some(octet)) => {
                    value.push(octet);
                    at += 3;
                }
                (octet, _) => {
                    damaged |= octet == b'=' || octet >= 0x7f || (octet < b' ' && octet != b'\t');
                    value.push(octet);
                    at += 1;
                }
            }
        }
        if !soft {
            value.extend_from_slice(end);
        }
    }
    Decoded { value, damaged }
}

fn hex(octet: u8) -> Option<u8> {
    (octet as char).to_digit(16).map(|d| d as u8)
}

/// Why a charset could not be used as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharsetProblem {
    /// No decoder knows the name; the text was read as UTF-8.
    Unknown,
    /// Some octets mean nothing in it; they stand as U+FFFD.
    Damaged,
}

/// Reads `octets` in `charset` (none declared: UTF-8, of which US-ASCII is a part).
pub fn charset(octets: &[u8], charset: Option<&str>) -> (String, Option<CharsetProblem>) {
    let name = charset.unwrap_or("utf-8").trim().to_ascii_lowercase();
    let utf8 = || match std::str::from_utf8(octets) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (String::from_utf8_lossy(octets).into_owned(), Some(CharsetProblem::Damaged)),
    };
    match name.as_str() {
        "utf-8" | "utf8" => utf8(),
        "us-ascii" | "ascii" | "ansi_x3.4-1968" => {
            let (text, problem) = utf8();
            (text, if octets.is_ascii() { problem } else { Some(CharsetProblem::Damaged) })
        }
        // Decoders that answer every input with the same character, or with private ones.
        "iso-2022-kr" | "iso-2022-cn" | "hz-gb-2312" | "replacement" | "x-user-defined" => {
            (utf8().0, Some(CharsetProblem::Unknown))
        }
        _ => match charset_decoder(name.as_bytes()) {
            None => (utf8().0, Some(CharsetProblem::Unknown)),
            Some(decoder) => {
                let text = decoder(octets);
                let problem = text.contains('\u{fffd}').then_some(CharsetProblem::Damaged);
                (text, problem)
            }
        },
    }
}

/// Decodes the encoded words of an unfolded field value (RFC 2047 §2, RFC
/// 2231 §5). White space between neighbours is dropped; neighbours of one
/// charset are joined before the charset is applied, since clients do so, and
/// a character that was split that way is damage.
pub fn words(value: &[u8]) -> Decoded<String> {
    let mut out = Decoded { value: String::new(), damaged: false };
    // Octets of neighbouring words in one charset, not yet turned into text.
    let mut pending: Option<(String, Vec<u8>)> = None;
    // Where the last of these words starts.
    let mut last = 0;
    let mut rest = value;
    while !rest.is_empty() {
        let Some(start) = memchr::memmem::find(rest, b"=?") else {
            flush(&mut pending, &mut out);
            plain(rest, &mut out);
            break;
        };
        let (gap, from) = rest.split_at(start);
        match word(from) {
            Some((charset_name, octets, damaged, length)) => {
                let joined = pending.is_some() && gap.iter().all(u8::is_ascii_whitespace);
                if !joined {
                    flush(&mut pending, &mut out);
                    plain(gap, &mut out);
                }
                out.damaged |= damaged;
                match &mut pending {
                    Some((name, held)) if *name == charset_name => {
                        // A word that isn't whole by itself; all of them each time would be quadratic.
                        out.damaged |= charset(&held[last..], Some(name)).1.is_some();
                        last = held.len();
                        held.extend_from_slice(&octets);
                    }
                    _ => {
                        flush(&mut pending, &mut out);
                        last = 0;
                        pending = Some((charset_name, octets));
                    }
                }
                rest = &from[length..];
            }
            None => {
                flush(&mut pending, &mut out);
                plain(gap, &mut out);
                plain(&from[..2], &mut out);
                // What looks like an encoded word and isn't one is shown as it stands.
                rest = &from[2..];
            }
        }
    }
    flush(&mut pending, &mut out);
    out
}

fn plain(octets: &[u8], out: &mut Decoded<String>) {
    let (text, problem) = charset(octets, None);
    out.value.push_str(&text);
    out.damaged |= problem.is_some();
}

fn flush(pending: &mut Option<(String, Vec<u8>)>, out: &mut Decoded<String>) {
    if let Some((name, octets)) = pending.take() {
        let (text, problem) = charset(&octets, Some(&name));
        out.value.push_str(&text);
        out.damaged |= problem.is_some();
    }
}

/// One encoded word at the start of `from`: charset, octets, damage, length.
fn word(from: &[u8]) -> Option<(String, Vec<u8>, bool, usize)> {
    let inner = from.strip_prefix(b"=?")?;
    let mut marks = memchr::memchr_iter(b'?', inner);
    let (first, second) = (marks.next()?, marks.next()?);
    // Without a limit each of many openings would be searched to the field's end.
    let reach = &inner[second + 1..inner.len().min(second + 1 + MAX_WORD)];
    let end = second + 1 + memchr::memmem::find(reach, b"?=")?;
    let name = std::str::from_utf8(&inner[..first]).ok()?;
    // RFC 2231 §5: a language tag may follow the charset.
    let name = name.split('*').next().filter(|n| !n.is_empty())?.to_ascii_lowercase();
    let data = &inner[second + 1..end];
    if name.bytes().any(|b| b.is_ascii_whitespace()) || data.iter().any(|b| b.is_ascii_whitespace() && *b != b' ') {
        return None;
    }
    let decoded = match &inner[first + 1..second] {
        [b'b' | b'B'] => base64(data),
        [b'q' | b'Q'] => {
            let spaced: Vec<u8> = data.iter().map(|b| if *b == b'_' { b' ' } else { *b }).collect();
            // `quoted_printable` trims line ends; a word is no line, so its blanks are kept.
            let blanks = spaced.len() - spaced.trim_ascii_end().len();
            let mut decoded = quoted_printable(&spaced);
            decoded.value.extend(std::iter::repeat_n(b' ', blanks));
            decoded
        }
        _ => return None,
    };
    Some((name, decoded.value, decoded.damaged, 2 + end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_base64_is_sound() {
        for (text, want) in
            [("aGVsbG8=", "hello"), ("aGVs\r\nbG8=\r\n", "hello"), ("", ""), ("aGk=", "hi"), ("YQ==", "a")]
        {
            assert_eq!(base64(text.as_bytes()), Decoded { value: want.as_bytes().to_vec(), damaged: false }, "{text}");
        }
    }

    #[test]
    fn damaged_base64_is_decoded_and_said() {
        for text in ["aGVs*bG8=", "aGVsbG8", "aGVsbG8=aGk=", "a", "YR==", "aGVsbG8=="] {
            assert!(base64(text.as_bytes()).damaged, "{text}");
        }
        assert_eq!(base64(b"aGVs*bG8=").value, b"hello");
    }

    #[test]
    fn quoted_printable_knows_soft_breaks_and_says_what_is_broken() {
        let sound = quoted_printable(b"a=3Db=\r\nc  \r\nd=E2=82=AC");
        assert_eq!((sound.value.as_slice(), sound.damaged), ("a=bc\r\nd€".as_bytes(), false));
        let broken = quoted_printable(b"50% =zz\xff");
        assert_eq!((broken.value.as_slice(), broken.damaged), (&b"50% =zz\xff"[..], true));
    }

    #[test]
    fn words_are_joined_across_folds() {
        assert_eq!(words(b"=?utf-8?q?a_b?= =?utf-8?B?YyBk?= e").value, "a bc d e");
        assert_eq!(words(b"plain =?iso-8859-1*de?Q?Gr=FC=DFe?=").value, "plain Grüße");
        // A character split over two words is joined, and said.
        let split = words(b"=?utf-8?q?=E2=82?= =?utf-8?q?=AC?=");
        assert_eq!((split.value.as_str(), split.damaged), ("€", true));
    }

    #[test]
    fn what_is_no_encoded_word_stays() {
        for text in ["=?utf-8?x?abc?=", "=?utf-8?q?abc", "=??=", "a =? b", "=?utf-8?q?a\tb?="] {
            assert_eq!(words(text.as_bytes()).value, text);
        }
    }

    #[test]
    fn unknown_charsets_and_eight_bit_ascii_are_said() {
        assert_eq!(charset(b"x", Some("x-nonsense")).1, Some(CharsetProblem::Unknown));
        assert_eq!(charset(b"\xff", Some("us-ascii")).1, Some(CharsetProblem::Damaged));
        assert_eq!(charset(b"\xe9", Some("iso-8859-1")), ("é".to_owned(), None));
        assert_eq!(charset("ü".as_bytes(), None).1, None);
    }
}
