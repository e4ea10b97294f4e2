//! Replies (RFC 5321 §4.2) and enhanced status codes (RFC 2034, RFC 3463).

use std::fmt::Write as _;

/// Longest reply line that we write, CRLF included (RFC 5321 §4.5.3.1.5).
const MAX_REPLY_LINE: usize = 512;
/// Longest whole reply that we read, in octets.
pub const MAX_REPLY_OCTETS: usize = 64 * 1024;
/// Most lines of one reply that we read.
pub const MAX_REPLY_LINES: usize = 256;

/// A reply: a code and at least one line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    code: u16,
    lines: Vec<String>,
}

impl Reply {
    /// A reply of ours. `enhanced` is written on every line (RFC 2034 §4);
    /// an empty one where the RFC wants none (220, 354, EHLO).
    pub fn new(code: u16, enhanced: &str, text: impl AsRef<str>) -> Self {
        let lines = text.as_ref().split('\n').map(|line| match enhanced {
            "" => line.to_owned(),
            enhanced => format!("{enhanced} {line}"),
        });
        Reply { code, lines: lines.collect() }
    }

    /// A reply of several lines without an enhanced code (EHLO).
    pub fn lines_of(code: u16, lines: Vec<String>) -> Self {
        let lines = if lines.is_empty() { vec![String::new()] } else { lines };
        Reply { code, lines }
    }

    /// The code, 200 to 599.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// 2yz.
    pub fn is_positive(&self) -> bool {
        self.code / 100 == 2
    }

    /// 4yz.
    pub fn is_transient(&self) -> bool {
        self.code / 100 == 4
    }

    /// 5yz.
    pub fn is_permanent(&self) -> bool {
        self.code / 100 == 5
    }

    /// The texts of the lines, an enhanced code included.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The enhanced code at the start of the first line, where its class
    /// agrees with the code (RFC 2034 §4).
    pub fn enhanced(&self) -> Option<&str> {
        let word = self.lines.first()?.split(' ').next()?;
        let parts: Vec<&str> = word.split('.').collect();
        let [class, subject, detail] = parts.as_slice() else { return None };
        let number = |s: &str| (1..=3).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
        (*class == (self.code / 100).to_string() && number(subject) && number(detail)).then_some(word)
    }

    /// One line for logs and for people: code and text, bounded.
    pub fn summary(&self) -> String {
        let mut text = format!("{} {}", self.code, self.lines.join(" / "));
        shorten(&mut text, 300);
        text.chars().map(visible).collect()
    }

    /// The octets of the reply. Whatever the text holds, this is one reply:
    /// control characters become blanks, long lines are cut.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = String::new();
        let last = self.lines.len() - 1; // `lines` is never empty: both makers see to it.
        for (n, line) in self.lines.iter().enumerate() {
            let mut text: String = line.chars().map(visible).collect();
            shorten(&mut text, MAX_REPLY_LINE - "250-\r\n".len());
            let mark = if n == last { ' ' } else { '-' };
            let _ = write!(out, "{}{mark}{text}\r\n", self.code);
        }
        out.into_bytes()
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.summary())
    }
}

fn visible(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

fn shorten(text: &mut String, limit: usize) {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
        text.truncate(end);
    }
}

/// Why what a server sent is no reply. The connection is of no further use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// A line without three digits from 200 to 599 and a blank or `-`.
    #[error("the server sent something that is no reply")]
    Syntax,
    /// A multi-line reply with different codes (RFC 5321 §4.2.1).
    #[error("the server sent a reply with two codes")]
    MixedCodes,
    /// A line end that is no CRLF.
    #[error("the server sent a bare CR or LF")]
    BareLineEnd,
    /// More than [`MAX_REPLY_OCTETS`] or [`MAX_REPLY_LINES`].
    #[error("the server sent too long a reply")]
    TooLong,
}

/// Collects octets and hands out replies.
#[derive(Debug, Default)]
pub struct ReplyReader {
    buf: Vec<u8>,
    octets: usize,
    open: Option<Reply>,
}

impl ReplyReader {
    /// An empty reader.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what was received.
    pub fn push(&mut self, octets: &[u8]) {
        self.buf.extend_from_slice(octets);
    }

    /// Whether nothing is waiting. Must hold before a TLS handshake, or what
    /// was injected in front of it would be read as if it came from inside.
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty() && self.open.is_none()
    }

    /// The next whole reply; `None` when more octets are needed.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, ReplyError> {
        while let Some(lf) = memchr::memchr(b'\n', &self.buf) {
            let line: Vec<u8> = self.buf.drain(..=lf).collect();
            self.octets += line.len();
            let Some(text) = line.strip_suffix(b"\r\n") else { return Err(ReplyError::BareLineEnd) };
            if text.contains(&b'\r') {
                return Err(ReplyError::BareLineEnd);
            }
            if self.octets > MAX_REPLY_OCTETS {
                return Err(ReplyError::TooLong);
            }
            if self.line(text)? {
                self.octets = 0;
                return Ok(self.open.take());
            }
        }
        if self.octets + self.buf.len() > MAX_REPLY_OCTETS { Err(ReplyError::TooLong) } else { Ok(None) }
    }

    /// Takes one line; whether it was the last of its reply.
    fn line(&mut self, line: &[u8]) -> Result<bool, ReplyError> {
        let (digits, rest) = line.split_at_checked(3).ok_or(ReplyError::Syntax)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err(ReplyError::Syntax);
        }
        let code = digits.iter().fold(0u16, |n, d| n * 10 + u16::from(d - b'0'));
        // RFC 5321 §4.2: the first digit is 2 to 5; 1yz is of no command here.
        if !(200..=599).contains(&code) {
            return Err(ReplyError::Syntax);
        }
        let (last, text) = match rest {
            // RFC 5321 §4.2: a client takes a code without the blank too.
            [] => (true, rest),
            [b' ', text @ ..] => (true, text),
            [b'-', text @ ..] => (false, text),
            _ => return Err(ReplyError::Syntax),
        };
        let reply = self.open.get_or_insert(Reply { code, lines: Vec::new() });
        if reply.code != code {
            return Err(ReplyError::MixedCodes);
        }
        if reply.lines.len() == MAX_REPLY_LINES {
            return Err(ReplyError::TooLong);
        }
        reply.lines.push(String::from_utf8_lossy(text).into_owned());
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8]) -> Result<Vec<Reply>, ReplyError> {
        let mut reader = ReplyReader::new();
        let mut out = Vec::new();
        for octet in input {
            reader.push(&[*octet]);
            while let Some(reply) = reader.next_reply()? {
                out.push(reply);
            }
        }
        Ok(out)
    }

    #[test]
    fn replies_are_read_with_their_lines() {
        let got = read(b"250-mx.example.net\r\n250-SIZE 100\r\n250 OK\r\n354\r\n550 5.7.508 no\r\n").unwrap();
        assert_eq!(got.len(), 3);
        assert_eq!(got[0].lines(), ["mx.example.net", "SIZE 100", "OK"]);
        assert_eq!((got[1].code(), got[1].lines()), (354, [String::new()].as_slice()));
        assert_eq!(got[2].enhanced(), Some("5.7.508"));
        assert_eq!(got[2].to_bytes(), b"550 5.7.508 no\r\n");
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        assert_eq!(read(b"250-a\r\n550 b\r\n"), Err(ReplyError::MixedCodes));
        for text in ["999 x\r\n", "199 x\r\n", "25x y\r\n", "25\r\n", "250x\r\n", "600 a\r\n", "\r\n"] {
            assert_eq!(read(text.as_bytes()), Err(ReplyError::Syntax), "{text:?}");
        }
        for text in ["250 a\n", "250 a\rb\r\n"] {
            assert_eq!(read(text.as_bytes()), Err(ReplyError::BareLineEnd), "{text:?}");
        }
        assert_eq!(read("250-a\r\n".repeat(300).as_bytes()), Err(ReplyError::TooLong));
        assert_eq!(read(&[b'2'; MAX_REPLY_OCTETS + 1]), Err(ReplyError::TooLong));
    }

    #[test]
    fn text_can_not_make_a_second_reply() {
        let reply = Reply::new(550, "5.1.1", "no\r250 2.0.0 yes\u{85}\0");
        assert_eq!(reply.to_bytes(), "550 5.1.1 no 250 2.0.0 yes  \r\n".as_bytes());
        let reply = Reply::new(550, "5.1.1", "one\ntwo");
        assert_eq!(reply.to_bytes(), b"550-5.1.1 one\r\n550 5.1.1 two\r\n");
        let long = Reply::new(250, "2.0.0", "é".repeat(600)).to_bytes();
        assert!(long.len() <= MAX_REPLY_LINE && long.ends_with(b"\r\n"));
    }

    #[test]
    fn an_enhanced_code_of_another_class_is_text() {
        assert_eq!(Reply::new(250, "", "5.0.0 x").enhanced(), None);
        assert_eq!(Reply::new(250, "", "2.0 x").enhanced(), None);
        assert_eq!(Reply::new(250, "2.1.5", "x").enhanced(), Some("2.1.5"));
    }
}
