//! Small clients that play a person, an agent and a browser.
//!
//! Promises: what a server said is handed over as it stood on the wire, and a
//! server that doesn't answer in [`PATIENCE`] is an error. Doesn't know:
//! pipelining, or how to be fast.

pub mod http;
pub mod imap;
pub mod smtp;

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::config::Endpoint;
use crate::upstream::net;

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Longest line that is read.
const MAX_LINE: usize = 1024 * 1024;

/// What a server is spoken to over.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug> Duplex for S {}

/// Lines and counted octets of a server.
#[derive(Debug)]
struct Wire {
    stream: Box<dyn Duplex>,
    buffer: Vec<u8>,
    patience: Duration,
}

impl Wire {
    async fn connect(endpoint: &Endpoint) -> io::Result<Wire> {
        let stream = net::connect(endpoint).await.map_err(io::Error::other)?;
        Ok(Wire::over(stream, PATIENCE))
    }

    fn over(stream: impl Duplex + 'static, patience: Duration) -> Wire {
        Wire { stream: Box::new(stream), buffer: Vec::new(), patience }
    }

    async fn send(&mut self, octets: &[u8]) -> io::Result<()> {
        within(self.patience, send(&mut self.stream, octets)).await
    }

    async fn more(&mut self) -> io::Result<()> {
        match within(self.patience, self.stream.read_buf(&mut self.buffer)).await? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            _ => Ok(()),
        }
    }

    fn split(&mut self, at: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(at);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// The next line without its CRLF.
    async fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut seen = 0;
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.buffer[seen..]) {
                let mut line = self.split(seen + n + 1);
                line.truncate(line.trim_ascii_end().len());
                return Ok(line);
            }
            seen = self.buffer.len();
            if seen > MAX_LINE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the server's line is too long"));
            }
            self.more().await?;
        }
    }

    async fn exact(&mut self, n: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < n {
            self.more().await?;
        }
        Ok(self.split(n))
    }
}

async fn send<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, octets: &[u8]) -> io::Result<()> {
    stream.write_all(octets).await?;
    stream.flush().await
}

/// `work`, unless it takes too long.
async fn patient<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    within(PATIENCE, work).await
}

async fn within<T>(patience: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(patience, work)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "the server doesn't answer")))
}

#[cfg(test)]
mod tests;
