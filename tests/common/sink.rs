//! A strict SMTP server that keeps what it gets, exactly.
//!
//! It stands where the outside world would be (Postfix relays to it), and in
//! the place of a provider where a test needs one that falls silent. It reads
//! by CRLF alone and writes down every bare CR or LF as a fault.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a waiting thread looks whether it should end.
const TICK: Duration = Duration::from_millis(20);

/// A message that arrived, dots undoubled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// As between `<` and `>`.
    pub(crate) from: String,
    /// As between `<` and `>`, in order.
    pub(crate) to: Vec<String>,
    pub(crate) octets: Vec<u8>,
}

/// What follows the final dot; the message counts as arrived either way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AfterDot {
    Accept,
    /// Nothing is ever said.
    Silence,
    /// The connection ends without a word.
    Close,
    /// This reply.
    Say(&'static str),
}

#[derive(Debug)]
struct Shared {
    arrived: Mutex<Vec<Arrived>>,
    faults: Mutex<Vec<String>>,
    after_dot: Mutex<AfterDot>,
    ends: AtomicBool,
}

/// A running sink.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink {
    pub(crate) fn start() -> Sink {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            arrived: Mutex::default(),
            faults: Mutex::default(),
            after_dot: Mutex::new(AfterDot::Accept),
            ends: AtomicBool::new(false),
        });
        let all = shared.clone();
        let listener = std::thread::spawn(move || {
            let mut sessions = Vec::new();
            while !all.ends.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let shared = all.clone();
                        sessions.push(std::thread::spawn(move || {
                            // A client that goes away ends its session.
                            let _ = Session::serve(stream, shared);
                        }));
                    }
                    Err(_) => std::thread::sleep(TICK),
                }
            }
            for session in sessions {
                let _ = session.join();
            }
        });
        Sink { port, shared, listener: Some(listener) }
    }

    /// What arrived so far.
    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        lock(&self.shared.arrived).clone()
    }

    /// The messages with this Message-ID.
    pub(crate) fn with_id(&self, id: &str) -> Vec<Arrived> {
        let mut all = self.arrived();
        all.retain(|m| super::mail::header(&m.octets, "Message-ID").is_some_and(|v| v.contains(id)));
        all
    }

    /// What was wrong with what clients sent.
    pub(crate) fn faults(&self) -> Vec<String> {
        lock(&self.shared.faults).clone()
    }

    pub(crate) fn after_dot(&self, what: AfterDot) {
        *lock(&self.shared.after_dot) = what;
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        let faults = self.faults();
        if !std::thread::panicking() {
            assert!(faults.is_empty(), "the sink was spoken to wrongly: {faults:?}");
        }
    }
}

struct Session {
    stream: TcpStream,
    buffer: Vec<u8>,
    shared: Arc<Shared>,
}

impl Session {
    fn serve(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_nodelay(true)?;
        Session { stream, buffer: Vec::new(), shared }.talk()
    }

    fn say(&mut self, reply: &str) -> io::Result<()> {
        self.stream.write_all(format!("{reply}\r\n").as_bytes())
    }

    fn fault(&self, what: &str, line: &[u8]) {
        lock(&self.shared.faults).push(format!("{what}: {:?}", String::from_utf8_lossy(line)));
    }

    /// The next line with its CRLF.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(n) = self.buffer.windows(2).position(|w| w == b"\r\n") {
                let rest = self.buffer.split_off(n + 2);
                let line = std::mem::replace(&mut self.buffer, rest);
                let text = &line[..line.len() - 2];
                if text.contains(&b'\n') || text.contains(&b'\r') {
                    self.fault("a bare CR or LF", text);
                }
                return Ok(line);
            }
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.buffer.extend_from_slice(&chunk[..n]),
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if self.shared.ends.load(Ordering::Relaxed) {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn talk(&mut self) -> io::Result<()> {
        self.say("220 sink.example.net ESMTP")?;
        let (mut from, mut to) = (None, Vec::new());
        loop {
            let line = self.line()?;
            let text = String::from_utf8_lossy(&line[..line.len() - 2]).into_owned();
            let verb = text.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
            match verb.as_str() {
                "EHLO" => self.say(
                    "250-sink.example.net\r\n250-PIPELINING\r\n250-SIZE 52428800\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n\
                     250-ENHANCEDSTATUSCODES\r\n250 AUTH PLAIN",
                )?,
                "HELO" => self.say("250 sink.example.net")?,
                "AUTH" => self.say("235 2.7.0 whoever you are")?,
                "MAIL" => {
                    from = path(&text);
                    to.clear();
                    self.say("250 2.1.0 ok")?;
                }
                "RCPT" => match (&from, path(&text)) {
                    (Some(_), Some(path)) => {
                        to.push(path);
                        self.say("250 2.1.5 ok")?;
                    }
                    _ => self.say("503 5.5.1 MAIL comes first")?,
                },
                "DATA" => match from.take() {
                    Some(from) if !to.is_empty() => self.data(from, std::mem::take(&mut to))?,
                    _ => self.say("503 5.5.1 RCPT comes first")?,
                },
                "RSET" => {
                    from = None;
                    to.clear();
                    self.say("250 2.0.0 ok")?;
                }
                "NOOP" => self.say("250 2.0.0 ok")?,
                "QUIT" => return self.say("221 2.0.0 bye"),
                _ => {
                    self.fault("an unknown command", text.as_bytes());
                    self.say("500 5.5.1 what?")?;
                }
            }
        }
    }

    fn data(&mut self, from: String, to: Vec<String>) -> io::Result<()> {
        self.say("354 go on")?;
        let mut octets = Vec::new();
        loop {
            let line = self.line()?;
            if line == b".\r\n" {
                break;
            }
            octets.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
        }
        lock(&self.shared.arrived).push(Arrived { from, to, octets });
        let what = lock(&self.shared.after_dot).clone();
        match what {
            AfterDot::Accept => self.say("250 2.0.0 taken"),
            AfterDot::Say(reply) => self.say(reply),
            AfterDot::Close => Err(io::ErrorKind::ConnectionAborted.into()),
            AfterDot::Silence => loop {
                // Ends with the client or with the sink.
                self.line()?;
            },
        }
    }
}

fn path(line: &str) -> Option<String> {
    let (_, rest) = line.split_once('<')?;
    rest.rsplit_once('>').map(|(path, _)| path.to_owned())
}
