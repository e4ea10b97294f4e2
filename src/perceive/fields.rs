//! Header fields as text: encoded words, raw 8-bit, mailboxes.
//!
//! Promises: decoding never fails, it only loses; adjacent encoded words of
//! one charset are joined before they are decoded, so that a character may be
//! split over two. Doesn't know: MIME parts below the top.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use mail_parser::decoders::charsets::map::charset_decoder;

use super::Sender;
use crate::mail::address::Address;
use crate::mail::header::{self, HeaderSpans};

/// Longest field value that is decoded; the rest is not read.
const MAX_VALUE: usize = 8 * 1024;
/// Longest encoded word that is decoded. RFC 2047 §2 allows 75 characters;
/// some programs write a whole subject as one.
const MAX_WORD: usize = 1024;

/// The header section of one message.
pub(super) struct Fields<'a> {
    octets: &'a [u8],
    spans: HeaderSpans,
}

impl<'a> Fields<'a> {
    pub(super) fn new(octets: &'a [u8]) -> Fields<'a> {
        Fields { octets, spans: header::split(octets) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.fields.is_empty()
    }

    pub(super) fn body(&self) -> &'a [u8] {
        &self.octets[self.spans.body_start..]
    }

    /// Unfolded values of every field of this name, undecoded, in order.
    pub(super) fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = String> + 's {
        self.spans.fields.iter().filter(move |f| f.is(self.octets, name)).map(|f| {
            let mut value = f.unfolded(self.octets);
            value.truncate(MAX_VALUE);
            eight_bit(&value)
        })
    }

    /// The first run of adjacent fields of this name that belong together.
    /// Fields of `between` don't end it: providers write some of their own there.
    pub(super) fn first_run(&self, name: &str, between: &[&str], belongs: impl Fn(&str) -> bool) -> Vec<String> {
        let mut run = Vec::new();
        for f in &self.spans.fields {
            let value = if f.is(self.octets, name) { Some(eight_bit(&f.unfolded(self.octets))) } else { None };
            match value.filter(|v| belongs(v)) {
                Some(v) => run.push(v),
                None if run.is_empty() || between.iter().any(|b| f.is(self.octets, b)) => {}
                None => break,
            }
        }
        run
    }

    pub(super) fn first(&self, name: &str) -> Option<String> {
        self.all(name).next()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.spans.fields.iter().any(|f| f.is(self.octets, name))
    }

    /// The first value with encoded words decoded, controls to blanks.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.first(name).map(|v| decode_words(&v))
    }

    /// The first From mailbox of the first From field.
    pub(super) fn sender(&self) -> Option<Sender> {
        mailboxes(&self.first("From")?).into_iter().next()
    }

    /// Whether there are From fields that name different addresses.
    pub(super) fn senders_disagree(&self) -> bool {
        let mut addresses = self.all("From").filter_map(|v| mailboxes(&v).into_iter().next()).map(|s| s.address);
        let first = addresses.next();
        addresses.any(|a| Some(a) != first)
    }

    /// Every mailbox of every field of this name.
    pub(super) fn mailboxes(&self, name: &str) -> Vec<Sender> {
        self.all(name).flat_map(|v| mailboxes(&v)).collect()
    }

    /// Unix seconds of the Date field, where it is a date.
    pub(super) fn date(&self) -> Option<i64> {
        let value = self.first("Date")?;
        let date = mail_parser::DateTime::parse_rfc822(&value)?;
        // The parser takes 31 February and 25:61; such a date says nothing.
        date.is_valid().then(|| date.to_timestamp())
    }
}

/// UTF-8 where it is UTF-8, else Windows-1252, as readers do with raw 8-bit fields.
pub(super) fn eight_bit(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => latin(value),
    }
}

/// Octets of a charset as text; unknown charsets as UTF-8 or Windows-1252.
pub(super) fn decode_charset(charset: &str, octets: &[u8]) -> String {
    let name = charset.trim().to_ascii_lowercase();
    if matches!(name.as_str(), "" | "utf-8" | "utf8" | "us-ascii" | "ascii") {
        return match std::str::from_utf8(octets) {
            Ok(text) => text.to_owned(),
            Err(_) if name.starts_with("utf") => String::from_utf8_lossy(octets).into_owned(),
            Err(_) => latin(octets),
        };
    }
    let alias = match name.as_str() {
        "cp932" | "ms932" | "windows-31j" | "x-sjis" => "shift_jis",
        "ks_c_5601-1987" | "cp949" | "uhc" | "windows-949" => "euc-kr",
        "cp936" | "ms936" => "gbk",
        "cp950" => "big5",
        "unicode-1-1-utf-7" => "utf-7",
        other => other,
    };
    match charset_decoder(alias.as_bytes()) {
        Some(decode) => decode(octets),
        None => eight_bit(octets),
    }
}

fn latin(octets: &[u8]) -> String {
    charset_decoder(b"windows-1252").map_or_else(|| String::from_utf8_lossy(octets).into_owned(), |d| d(octets))
}

/// One encoded word (RFC 2047 §2): charset, octets, and where it ends.
fn encoded_word(text: &str) -> Option<(&str, Vec<u8>, usize)> {
    let rest = text.strip_prefix("=?")?;
    let (charset, rest) = rest.split_once('?')?;
    let (encoding, rest) = rest.split_once('?')?;
    // Without a limit each of many openings would be searched to the field's end.
    let end = memchr::memmem::find(&rest.as_bytes()[..rest.len().min(MAX_WORD)], b"?=")?;
    let body = &rest[..end];
    if charset.is_empty() || charset.len() > 40 || body.contains(' ') && !encoding.eq_ignore_ascii_case("q") {
        return None;
    }
    let octets = match encoding {
        "b" | "B" => base64_lenient(body.as_bytes()),
        "q" | "Q" => q_decode(body.as_bytes()),
        _ => return None,
    };
    // RFC 2231 §5: a language may follow the charset.
    let charset = charset.split('*').next().unwrap_or(charset);
    Some((charset, octets, text.len() - rest.len() + end + 2))
}

/// A field's text with its encoded words decoded (RFC 2047 §6.2), on one line.
pub(super) fn decode_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut run: Option<(String, Vec<u8>)> = None;
    let mut blanks = String::new();
    let mut after_word = false;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("=?")
            && let Some((charset, octets, length)) = encoded_word(rest)
        {
            match &mut run {
                Some((c, collected)) if c.eq_ignore_ascii_case(charset) => collected.extend_from_slice(&octets),
                _ => {
                    flush(&mut run, &mut out);
                    if !after_word {
                        out.push_str(&blanks);
                    }
                    run = Some((charset.to_owned(), octets));
                }
            }
            // Blanks between two encoded words are not shown.
            blanks.clear();
            after_word = true;
            at += length;
            continue;
        }
        // `at` stands on a character boundary and before the end.
        let Some(c) = rest.chars().next() else { break };
        at += c.len_utf8();
        if c == ' ' || c == '\t' {
            blanks.push(' ');
            continue;
        }
        flush(&mut run, &mut out);
        after_word = false;
        out.push_str(&blanks);
        blanks.clear();
        out.push(if c.is_control() { ' ' } else { c });
    }
    flush(&mut run, &mut out);
    out.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

fn flush(run: &mut Option<(String, Vec<u8>)>, out: &mut String) {
    if let Some((charset, octets)) = run.take() {
        out.push_str(&decode_charset(&charset, &octets));
    }
}

fn q_decode(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut at = 0;
    while at < body.len() {
        match body[at] {
            b'_' => out.push(b' '),
            b'=' => match body.get(at + 1..at + 3).and_then(hex) {
                Some(octet) => {
                    out.push(octet);
                    at += 2;
                }
                None => out.push(b'='),
            },
            other => out.push(other),
        }
        at += 1;
    }
    out
}

fn hex(two: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(two).ok()?;
    if two.iter().all(u8::is_ascii_hexdigit) { u8::from_str_radix(text, 16).ok() } else { None }
}

/// Base64 as far as it goes: characters outside the alphabet are skipped.
fn base64_lenient(body: &[u8]) -> Vec<u8> {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&alphabet::STANDARD, config);
    let mut clean: Vec<u8> =
        body.iter().copied().filter(|b| b.is_ascii_alphanumeric() || *b == b'+' || *b == b'/').collect();
    // One character over a group carries no whole octet.
    if clean.len() % 4 == 1 {
        clean.pop();
    }
    engine.decode(&clean).unwrap_or_default()
}

/// The mailboxes of an address list (RFC 5322 §3.4), groups opened, comments
/// dropped, decoded display names. What is no address is skipped.
pub(super) fn mailboxes(value: &str) -> Vec<Sender> {
    let mut found = Vec::new();
    let (mut display, mut angle) = (String::new(), None::<String>);
    let (mut quoted, mut comment, mut in_angle) = (false, 0u32, false);
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted || comment > 0 => {
                if let Some(next) = chars.next()
                    && comment == 0
                {
                    display.push(next);
                }
            }
            '"' if comment == 0 => quoted = !quoted,
            '(' if !quoted => comment += 1,
            ')' if !quoted && comment > 0 => comment -= 1,
            _ if comment > 0 => {}
            '<' if !quoted => {
                in_angle = true;
                angle = Some(String::new());
            }
            '>' if !quoted && in_angle => in_angle = false,
            ',' | ';' if !quoted && !in_angle => {
                take_mailbox(&mut display, &mut angle, &mut found);
            }
            // A group's name ends at its colon.
            ':' if !quoted && !in_angle => display.clear(),
            c if in_angle => {
                if let Some(a) = &mut angle {
                    a.push(c);
                }
            }
            c => display.push(c),
        }
    }
    take_mailbox(&mut display, &mut angle, &mut found);
    found
}

fn take_mailbox(display: &mut String, angle: &mut Option<String>, found: &mut Vec<Sender>) {
    let shown = std::mem::take(display);
    let mailbox = match angle.take() {
        Some(a) => Address::parse(a.trim()).ok().map(|address| Sender { address, display: decode_words(shown.trim()) }),
        None => Address::parse(shown.trim()).ok().map(|address| Sender { address, display: String::new() }),
    };
    found.extend(mailbox);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_may_be_split_over_two_encoded_words() {
        // The two octets of "é" and the three of "한" fall apart.
        assert_eq!(decode_words("=?utf-8?q?caf=C3?= =?utf-8?q?=A9_noir?="), "café noir");
        assert_eq!(decode_words("=?UTF-8?B?7Q==?=\t=?utf-8?B?lZw=?="), "한");
    }

    #[test]
    fn words_and_plain_text_keep_their_blanks() {
        assert_eq!(decode_words("Re: =?iso-8859-1?Q?Gr=FC=DFe?= aus Bonn"), "Re: Grüße aus Bonn");
        assert_eq!(decode_words("a =?utf-8?q?b?= =?iso-8859-1?q?=E9?= c"), "a bé c");
        assert_eq!(decode_words("=?x?y?z"), "=?x?y?z");
    }

    #[test]
    fn line_ends_in_encoded_words_do_not_come_through() {
        assert_eq!(decode_words("=?utf-8?q?a=0D=0AX-Tollgate-Lane:_push?="), "a  X-Tollgate-Lane: push");
    }

    #[test]
    fn raw_octets_read_as_utf8_or_latin() {
        let f = b"Subject: Gr\xfc\xdfe\r\nX: gr\xc3\xbc\xc3\x9fe\r\n\r\n";
        let f = Fields::new(f);
        assert_eq!(f.text("subject").unwrap(), "Grüße");
        assert_eq!(f.text("x").unwrap(), "grüße");
    }

    #[test]
    fn mailboxes_of_all_shapes() {
        let all = |v: &str| -> Vec<String> {
            mailboxes(v).into_iter().map(|s| format!("{}|{}", s.display, s.address)).collect()
        };
        assert_eq!(all("a@example.org"), ["|a@example.org"]);
        assert_eq!(all("\"Doe, Jo\" <jo@example.org>, b@example.net"), ["Doe, Jo|jo@example.org", "|b@example.net"]);
        assert_eq!(all("Team: a@example.org, B (x,y) <b@example.org>;"), ["|a@example.org", "B|b@example.org"]);
        assert_eq!(all("=?utf-8?B?6rmA?= <k@example.com>"), ["김|k@example.com"]);
        assert_eq!(all("\"boss@example.org\" <x@example.net>"), ["boss@example.org|x@example.net"]);
        assert!(all("undisclosed-recipients:;").is_empty());
    }

    #[test]
    fn dates_that_are_none_say_nothing() {
        let date = |v: &str| Fields::new(format!("Date: {v}\r\n\r\n").as_bytes()).date();
        assert_eq!(date("Thu, 01 Jan 1970 01:00:00 +0100"), Some(0));
        assert_eq!(date("31 Feb 2026 25:61:00 +0000"), None);
        assert_eq!(date("soon"), None);
    }

    #[test]
    fn from_fields_that_disagree_are_told() {
        assert!(Fields::new(b"From: a@example.org\r\nFrom: b@example.org\r\n\r\n").senders_disagree());
        assert!(!Fields::new(b"From: a@example.org\r\nFrom: A <a@example.org>\r\n\r\n").senders_disagree());
    }
}
