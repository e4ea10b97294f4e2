//! Lines and counted octets of a server, over a plain socket.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::PATIENCE;

/// A connection to 127.0.0.1.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The last line, which may say why there is no other.
    last: Vec<u8>,
}

impl Wire {
    #[track_caller]
    pub(crate) fn connect(port: u16) -> Wire {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap_or_else(|e| panic!("no answer on {port}: {e}"));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Wire { stream, buffer: Vec::new(), last: Vec::new() }
    }

    #[track_caller]
    pub(crate) fn send(&mut self, octets: impl AsRef<[u8]>) {
        self.stream.write_all(octets.as_ref()).unwrap();
    }

    /// Sends where the other side may have closed already.
    pub(crate) fn try_send(&mut self, octets: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(octets.as_ref())
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    fn more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 64 * 1024];
        let read = loop {
            match self.stream.read(&mut chunk) {
                // signal(7): a read with a time limit is interrupted where
                // the machine stops this program for a moment.
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        match read {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                self.buffer.extend_from_slice(&chunk[..n]);
                Ok(())
            }
        }
    }

    fn take(&mut self, n: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(n);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// The next line without its CRLF; `UnexpectedEof` when there is none.
    pub(crate) fn try_line(&mut self) -> io::Result<Vec<u8>> {
        let mut seen = 0;
        loop {
            if let Some(n) = self.buffer[seen..].iter().position(|b| *b == b'\n') {
                let mut line = self.take(seen + n + 1);
                assert!(line.ends_with(b"\r\n"), "a bare LF from the server: {:?}", String::from_utf8_lossy(&line));
                line.truncate(line.len() - 2);
                return Ok(line);
            }
            seen = self.buffer.len();
            self.more()?;
        }
    }

    #[track_caller]
    pub(crate) fn line(&mut self) -> Vec<u8> {
        let line = self.try_line().unwrap_or_else(|e| {
            let last = String::from_utf8_lossy(&self.last).into_owned();
            panic!("no line from the server ({e}) after {last:?}; so far {:?}", self.seen())
        });
        self.last.clone_from(&line);
        line
    }

    #[track_caller]
    pub(crate) fn exact(&mut self, n: usize) -> Vec<u8> {
        while self.buffer.len() < n {
            self.more().unwrap_or_else(|e| panic!("{n} octets were announced ({e}); so far {}", self.buffer.len()));
        }
        self.take(n)
    }

    /// Everything until the server closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.more().is_ok() {}
        std::mem::take(&mut self.buffer)
    }

    fn seen(&self) -> String {
        String::from_utf8_lossy(&self.buffer).into_owned()
    }
}
