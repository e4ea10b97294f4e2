//! Lines and counted octets from a client, bounded.
//!
//! Promises: what was read but not asked for stays for the next call, also
//! when a call is dropped half-way. Doesn't know: protocols.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Room that one read may fill.
const CHUNK: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Input<R> {
    pub(crate) fn new(reader: R) -> Input<R> {
        Input { reader, buffer: Vec::new() }
    }

    async fn more(&mut self) -> io::Result<bool> {
        self.buffer.reserve(4096);
        Ok((&mut self.reader).take(CHUNK as u64).read_buf(&mut self.buffer).await? > 0)
    }

    fn split(&mut self, at: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(at);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// The next line with its LF; none at the end of the stream.
    pub(crate) async fn line(&mut self, max: usize) -> io::Result<Option<Vec<u8>>> {
        let mut seen = 0;
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.buffer[seen..]) {
                return Ok(Some(self.split(seen + n + 1)));
            }
            seen = self.buffer.len();
            if seen > max {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "line too long"));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// Exactly `n` octets.
    pub(crate) async fn exact(&mut self, n: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < n {
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.split(n))
    }

    /// The octets before the final dot of DATA, dots unstuffed, or none where
    /// there are more than `max` (all are read then).
    ///
    /// RFC 5321 §4.1.1.4: only CRLF "." CRLF ends the mail; the first CRLF
    /// belongs to it. Every other octet is kept, bare CR and LF too.
    pub(crate) async fn dotted(&mut self, max: usize) -> io::Result<Option<Vec<u8>>> {
        let mut mail = Vec::new();
        let mut start_of_line = true;
        let mut fits = true;
        loop {
            let Some(line) = self.line(max).await? else { return Err(io::ErrorKind::UnexpectedEof.into()) };
            if start_of_line && line == b".\r\n" {
                return Ok(fits.then_some(mail));
            }
            let kept = if start_of_line { line.strip_prefix(b".").unwrap_or(&line) } else { &line };
            fits = fits && mail.len() + kept.len() <= max;
            if fits {
                mail.extend_from_slice(kept);
            } else {
                mail = Vec::new();
            }
            start_of_line = line.ends_with(b"\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn undot(wire: &[u8]) -> Vec<u8> {
        Input::new(wire).dotted(1000).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn only_crlf_dot_crlf_ends_a_mail() {
        assert_eq!(undot(b".\r\n").await, b"");
        assert_eq!(undot(b"..\r\n.\r\n").await, b".\r\n");
        assert_eq!(
            undot(b"a\n.\nb\r\n.\nc\r\n\n.\r\nd\r\n..e\r\n.\r\nQUIT").await,
            b"a\n.\nb\r\n\nc\r\n\n.\r\nd\r\n.e\r\n"
        );
        assert!(Input::new(&b"a\n.\n"[..]).dotted(1000).await.is_err());
        assert_eq!(Input::new(&b"aaaa\r\nb\r\n.\r\n"[..]).dotted(7).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_follows_a_line_stays() {
        let mut input = Input::new(&b"a\r\nbcd"[..]);
        assert_eq!(input.line(10).await.unwrap().unwrap(), b"a\r\n");
        assert_eq!(input.exact(2).await.unwrap(), b"bc");
        assert!(input.exact(2).await.is_err());
    }
}
