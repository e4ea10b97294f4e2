//! A small submission client.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::Wire;
use crate::config::Endpoint;

/// A session.
#[derive(Debug)]
pub struct SmtpClient {
    wire: Wire,
}

/// A whole reply: its lines without line ends, first to last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The lines, codes included.
    pub lines: Vec<String>,
}

impl Reply {
    /// The three digits of the last line; 0 where there are none.
    pub fn code(&self) -> u16 {
        self.lines.last().and_then(|l| l.get(..3)).and_then(|c| c.parse().ok()).unwrap_or(0)
    }

    /// The lines, joined by blanks.
    pub fn text(&self) -> String {
        self.lines.join(" ")
    }

    /// Itself where the code's first digit is `class`, else an error.
    pub fn expect(self, class: u16) -> io::Result<Reply> {
        if self.code() / 100 == class {
            Ok(self)
        } else {
            Err(io::Error::other(format!("the server said {}", self.text())))
        }
    }
}

impl SmtpClient {
    /// Connects, says EHLO and signs in by AUTH PLAIN.
    pub async fn sign_in(endpoint: &Endpoint, user: &str, password: &str) -> io::Result<SmtpClient> {
        let mut client = SmtpClient { wire: Wire::connect(endpoint).await? };
        client.reply().await?.expect(2)?;
        client.command("EHLO client.example.org").await?.expect(2)?;
        let response = BASE64.encode(format!("\0{user}\0{password}"));
        client.command(&format!("AUTH PLAIN {response}")).await?.expect(2)?;
        Ok(client)
    }

    /// Sends a command and reads its reply.
    pub async fn command(&mut self, line: &str) -> io::Result<Reply> {
        self.wire.send(format!("{line}\r\n").as_bytes()).await?;
        self.reply().await
    }

    /// A whole transaction; the reply is that to the final dot. Where a
    /// command before it is refused, the error is that reply.
    pub async fn submit(&mut self, from: &str, to: &[&str], octets: &[u8]) -> io::Result<Reply> {
        self.command(&format!("MAIL FROM:<{from}>")).await?.expect(2)?;
        for path in to {
            self.command(&format!("RCPT TO:<{path}>")).await?.expect(2)?;
        }
        self.command("DATA").await?.expect(3)?;
        self.wire.send(&stuffed(octets)).await?;
        self.reply().await
    }

    async fn reply(&mut self) -> io::Result<Reply> {
        let mut lines = Vec::new();
        loop {
            let line = String::from_utf8_lossy(&self.wire.line().await?).into_owned();
            let more = line.get(3..4) == Some("-");
            lines.push(line);
            if !more {
                return Ok(Reply { lines });
            }
        }
    }
}

/// Octets that end with CRLF, with dots stuffed and the final dot
/// (RFC 5321 §4.5.2).
fn stuffed(octets: &[u8]) -> Vec<u8> {
    let mut wire = Vec::with_capacity(octets.len() + 16);
    for line in octets.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(b".") {
            wire.push(b'.');
        }
        wire.extend_from_slice(line);
    }
    wire.extend_from_slice(b".\r\n");
    wire
}

#[cfg(test)]
mod tests {
    use super::stuffed;

    #[test]
    fn dots_at_line_starts_are_doubled() {
        assert_eq!(stuffed(b".\r\na.\r\n..b\r\n"), b"..\r\na.\r\n...b\r\n.\r\n");
    }
}
