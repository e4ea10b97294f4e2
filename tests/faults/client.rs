//! A client that takes nothing for granted.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stand::{BOUND, PATIENCE};

/// What became of a command.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The tagged response without its tag; none where the connection ended.
    pub(crate) status: Option<String>,
    /// Whether `* BYE` came.
    pub(crate) bye: bool,
    /// Whether the end came inside a response.
    pub(crate) cut: bool,
    pub(crate) untagged: Vec<(String, Vec<Vec<u8>>)>,
}

impl Reply {
    pub(crate) fn is(&self, word: &str) -> bool {
        self.status.as_deref().is_some_and(|s| s.starts_with(word))
    }

    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        self.untagged.iter().filter(|(t, _)| t.contains(" FETCH ")).flat_map(|(_, l)| l.clone()).collect()
    }

    pub(crate) fn has(&self, part: &str) -> bool {
        self.untagged.iter().any(|(t, _)| t.contains(part))
    }
}

/// A client that takes nothing for granted.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) buffer: Vec<u8>,
    pub(crate) tag: u32,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut client = Client { stream, buffer: Vec::new(), tag: 0 };
        assert!(client.line().await.unwrap().starts_with(b"* OK [CAPABILITY IMAP4rev1"));
        client
    }

    pub(crate) async fn send(&mut self, octets: &[u8]) {
        // A connection that ended is noticed when it is read.
        let _ = self.stream.write_all(octets).await;
    }

    pub(crate) async fn more(&mut self) -> io::Result<()> {
        match tokio::time::timeout(BOUND, self.stream.read_buf(&mut self.buffer)).await {
            Err(_) => panic!("a hang, after {:?}", String::from_utf8_lossy(&self.buffer)),
            Ok(Ok(0)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(e),
        }
    }

    pub(crate) async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|w| w == b"\r\n") {
                let mut line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                line.truncate(at);
                assert!(!line.iter().any(|b| matches!(b, 0 | b'\r' | b'\n')), "{:?}", String::from_utf8_lossy(&line));
                return Ok(line);
            }
            self.more().await?;
        }
    }

    pub(crate) async fn exact(&mut self, n: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < n {
            self.more().await?;
        }
        Ok(self.buffer.drain(..n).collect())
    }

    /// One response with its literals; an error says whether it was begun.
    pub(crate) async fn response(&mut self) -> Result<(String, Vec<Vec<u8>>), bool> {
        let (mut text, mut literals) = (String::new(), Vec::new());
        loop {
            let begun = !text.is_empty();
            let line = self.line().await.map_err(|_| begun || !self.buffer.is_empty())?;
            text.push_str(&String::from_utf8_lossy(&line));
            let status = text.split(' ').nth(1).is_some_and(|w| ["OK", "NO", "BAD", "BYE"].contains(&w));
            let announced = text.strip_suffix('}').and_then(|t| t.rsplit_once('{')?.1.parse().ok());
            match announced {
                Some(n) if !status => literals.push(self.exact(n).await.map_err(|_| true)?),
                _ => return Ok((text, literals)),
            }
        }
    }

    /// Reads to the tagged response, or to the end of the connection.
    pub(crate) async fn reply(&mut self, tag: &str) -> Reply {
        let mut reply = Reply { status: None, bye: false, cut: false, untagged: Vec::new() };
        loop {
            match self.response().await {
                Err(cut) => {
                    reply.cut = cut;
                    return reply;
                }
                Ok((text, literals)) => {
                    if let Some(status) = text.strip_prefix(tag).and_then(|t| t.strip_prefix(' ')) {
                        reply.status = Some(status.to_owned());
                        return reply;
                    }
                    assert!(text.starts_with("* ") || text.starts_with('+'), "a line that is no response: {text}");
                    reply.bye |= text.starts_with("* BYE");
                    reply.untagged.push((text, literals));
                }
            }
        }
    }

    pub(crate) fn tag(&mut self) -> String {
        self.tag += 1;
        format!("c{}", self.tag)
    }

    pub(crate) async fn command(&mut self, command: &str) -> Reply {
        let tag = self.tag();
        self.send(format!("{tag} {command}\r\n").as_bytes()).await;
        self.reply(&tag).await
    }

    pub(crate) async fn ok(&mut self, command: &str) -> Reply {
        let reply = self.command(command).await;
        assert!(reply.is("OK"), "{command}: {reply:?}");
        reply
    }

    pub(crate) async fn until_ok(&mut self, command: &str) -> Reply {
        let began = Instant::now();
        loop {
            let reply = self.command(command).await;
            if reply.is("OK") {
                return reply;
            }
            assert!(reply.status.is_some() && began.elapsed() < PATIENCE, "{command}: {reply:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn append(&mut self, mailbox: &str, octets: &[u8]) -> Reply {
        let tag = self.tag();
        self.send(format!("{tag} APPEND {mailbox} {{{}+}}\r\n", octets.len()).as_bytes()).await;
        self.send(octets).await;
        self.send(b"\r\n").await;
        self.reply(&tag).await
    }

    pub(crate) async fn idle(&mut self, during: Duration) -> Reply {
        let tag = self.tag();
        self.send(format!("{tag} IDLE\r\n").as_bytes()).await;
        tokio::time::sleep(during).await;
        self.send(b"DONE\r\n").await;
        self.reply(&tag).await
    }
}
