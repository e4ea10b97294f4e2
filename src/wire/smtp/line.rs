//! Command lines: CRLF and nothing else ends one.

use bytes::{Buf, BytesMut};

/// Longest command line in octets, CRLF included. RFC 5321 §4.5.3.1.4 says
/// 512; the extensions add to it (SIZE 26, BODY 17, SMTPUTF8 10, and RFC 4954
/// §4 allows 12288 for AUTH, of which app passwords need a few hundred).
pub const MAX_COMMAND_LINE: usize = 4096;

/// Why a line was refused. The line was consumed up to its CRLF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Longer than [`MAX_COMMAND_LINE`].
    #[error("the line is too long")]
    TooLong,
    /// A CR without LF or an LF without CR inside the line (RFC 5321 §2.3.8).
    #[error("a bare CR or LF stands in the line")]
    BareLineEnd,
}

/// Collects octets and hands out lines.
#[derive(Debug, Default)]
pub struct LineReader {
    buf: BytesMut,
    /// How far `buf` was searched for an LF already.
    searched: usize,
    /// A fault of the line whose end has not come yet.
    fault: Option<LineError>,
}

impl LineReader {
    /// An empty reader.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what was received.
    pub fn push(&mut self, octets: &[u8]) {
        self.buf.extend_from_slice(octets);
    }

    /// Octets that were received and not handed out. While lines are taken
    /// as they come it stays below one line and one push.
    pub fn buffered(&self) -> usize {
        self.buf.len()
    }

    /// Takes everything that was not handed out: what follows DATA, or what
    /// must not be there before a TLS handshake.
    pub fn take_buffered(&mut self) -> BytesMut {
        self.searched = 0;
        self.buf.split()
    }

    /// Puts octets back in front: what followed the end of the data.
    pub fn put_back(&mut self, octets: &[u8]) {
        let rest = self.buf.split();
        self.buf.extend_from_slice(octets);
        self.buf.extend_from_slice(&rest);
        self.searched = 0;
    }

    /// The next line without its CRLF; `None` when more octets are needed.
    pub fn next_line(&mut self) -> Option<Result<BytesMut, LineError>> {
        loop {
            let Some(lf) = memchr::memchr(b'\n', &self.buf[self.searched..]).map(|n| n + self.searched) else {
                return self.shorten_unfinished();
            };
            if lf == 0 || self.buf[lf - 1] != b'\r' {
                self.fault.get_or_insert(LineError::BareLineEnd);
                self.searched = lf + 1;
                continue;
            }
            let mut line = self.buf.split_to(lf + 1);
            self.searched = 0;
            line.truncate(lf - 1);
            if line.len() + 2 > MAX_COMMAND_LINE {
                self.fault.get_or_insert(LineError::TooLong);
            }
            if memchr::memchr2(b'\r', b'\n', &line).is_some() {
                self.fault.get_or_insert(LineError::BareLineEnd);
            }
            return Some(match self.fault.take() {
                Some(fault) => Err(fault),
                None => Ok(line),
            });
        }
    }

    /// Keeps memory bounded while the end of a line is awaited.
    fn shorten_unfinished(&mut self) -> Option<Result<BytesMut, LineError>> {
        self.searched = self.buf.len();
        if self.buf.len() > MAX_COMMAND_LINE {
            let bare = self.buf[..self.buf.len() - 1].contains(&b'\r');
            self.fault.get_or_insert(if bare { LineError::BareLineEnd } else { LineError::TooLong });
            // The last octet stays: it may be the CR of the line's end.
            self.buf.advance(self.buf.len() - 1);
            self.searched = self.buf.len();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], step: usize) -> Vec<Result<Vec<u8>, LineError>> {
        let mut reader = LineReader::new();
        let mut out = Vec::new();
        for part in input.chunks(step) {
            reader.push(part);
            while let Some(line) = reader.next_line() {
                out.push(line.map(|l| l.to_vec()));
            }
        }
        out
    }

    #[test]
    fn lines_are_the_same_under_any_split() {
        let input = b"EHLO a\r\nbad\nline\r\nNOOP\r\nx\ry\r\n\r\n\n\r\n";
        let whole = all(input, input.len());
        assert_eq!(
            whole,
            vec![
                Ok(b"EHLO a".to_vec()),
                Err(LineError::BareLineEnd),
                Ok(b"NOOP".to_vec()),
                Err(LineError::BareLineEnd),
                Ok(Vec::new()),
                Err(LineError::BareLineEnd),
            ]
        );
        for step in 1..input.len() {
            assert_eq!(all(input, step), whole, "step {step}");
        }
    }

    #[test]
    fn a_long_line_is_one_error_and_the_next_line_is_read() {
        for extra in [0, 1, 2, 5000, 100_000] {
            let mut input = vec![b'a'; MAX_COMMAND_LINE - 1 + extra];
            input.extend_from_slice(b"\r\nNOOP\r\n");
            for step in [1, 7, 4095, input.len()] {
                assert_eq!(all(&input, step), vec![Err(LineError::TooLong), Ok(b"NOOP".to_vec())], "{extra} {step}");
            }
        }
        let mut input = vec![b'a'; MAX_COMMAND_LINE - 2];
        input.extend_from_slice(b"\r\n");
        assert!(all(&input, 100)[0].is_ok());
    }

    #[test]
    fn an_endless_line_takes_no_memory() {
        let mut reader = LineReader::new();
        for _ in 0..1000 {
            reader.push(&[b'a'; 1000]);
            assert!(reader.next_line().is_none());
            assert!(reader.buffered() <= MAX_COMMAND_LINE + 1000);
        }
    }
}
