//! For tests: a submission server that does what a script says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::config::{Endpoint, TlsMode};

/// What the server does at the final dot.
#[derive(Debug, Clone)]
pub(crate) enum Dot {
    Reply(&'static str),
    Silence,
    Close,
}

/// In place of a reply: the connection ends.
pub(crate) const CLOSE: &str = "(close)";
/// In place of a reply: nothing is ever said.
pub(crate) const SILENCE: &str = "(silence)";

/// What the server says; [`CLOSE`] and [`SILENCE`] stand for any reply.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) greeting: &'static str,
    pub(crate) ehlo: Vec<&'static str>,
    /// In place of what `ehlo` offers.
    pub(crate) no_ehlo: Option<&'static str>,
    pub(crate) starttls: &'static str,
    pub(crate) auth: &'static str,
    pub(crate) mail: &'static str,
    /// Replies by a word in the address; else 250.
    pub(crate) rcpt: Vec<(&'static str, &'static str)>,
    pub(crate) data: &'static str,
    pub(crate) dot: Dot,
    /// The connection ends after so many octets of data.
    pub(crate) leaves_after: Option<usize>,
    /// The reply to DATA waits for this.
    pub(crate) waits_at_data: Option<Arc<tokio::sync::Notify>>,
}

impl Default for Script {
    fn default() -> Self {
        Script {
            greeting: "220 provider.example.com ESMTP",
            ehlo: vec![
                "provider.example.com",
                "PIPELINING",
                "SIZE 1000000",
                "8BITMIME",
                "SMTPUTF8",
                "AUTH PLAIN LOGIN",
            ],
            no_ehlo: None,
            starttls: "220 go",
            auth: "235 2.7.0 ok",
            mail: "250 2.1.0 ok",
            rcpt: Vec::new(),
            data: "354 go",
            dot: Dot::Reply("250 2.0.0 queued as 1"),
            leaves_after: None,
            waits_at_data: None,
        }
    }
}

/// One transaction, as the server saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) mail: String,
    pub(crate) rcpt: Vec<String>,
    /// The data as it stood on the wire, the end mark too.
    pub(crate) wire: Vec<u8>,
    pub(crate) complete: bool,
}

impl Got {
    /// The message, its dots unstuffed by the plainest reading of the RFC.
    pub(crate) fn message(&self) -> Vec<u8> {
        let text = self.wire.strip_suffix(b".\r\n").unwrap();
        let mut out = Vec::new();
        for line in text.split_inclusive(|b| *b == b'\n') {
            out.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
        }
        out
    }
}

#[derive(Debug, Default)]
struct Log {
    got: Vec<Got>,
    commands: Vec<String>,
}

/// The server.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<Script>>,
    log: Arc<Mutex<Log>>,
}

impl Provider {
    pub(crate) async fn start(script: Script) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let this = Provider {
            address: listener.local_addr().unwrap(),
            script: Arc::new(Mutex::new(script)),
            log: Arc::default(),
        };
        let server = this.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        this
    }

    pub(crate) fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap());
    }

    /// Transactions that reached DATA.
    pub(crate) fn got(&self) -> Vec<Got> {
        self.log.lock().unwrap().got.clone()
    }

    /// Messages whose end mark came.
    pub(crate) fn complete(&self) -> Vec<Got> {
        self.got().into_iter().filter(|g| g.complete).collect()
    }

    pub(crate) fn commands(&self) -> Vec<String> {
        self.log.lock().unwrap().commands.clone()
    }

    pub(crate) fn endpoint(&self, tls: TlsMode) -> Endpoint {
        Endpoint { host: "127.0.0.1".to_owned(), port: self.address.port(), tls, ca: None }
    }

    async fn serve(self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        let script = || self.script.lock().unwrap().clone();
        say(&mut stream, script().greeting).await?;
        let mut open = Got::default();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            let line = line.strip_suffix("\r\n")?.to_owned();
            self.log.lock().unwrap().commands.push(line.clone());
            let script = script();
            let verb = line.split(' ').next()?.to_ascii_uppercase();
            match verb.as_str() {
                "EHLO" if script.no_ehlo.is_some() => say(&mut stream, script.no_ehlo?).await?,
                "EHLO" => {
                    let last = script.ehlo.len() - 1;
                    for (n, word) in script.ehlo.iter().enumerate() {
                        say(&mut stream, &format!("250{}{word}", if n == last { ' ' } else { '-' })).await?;
                    }
                }
                "STARTTLS" => say(&mut stream, script.starttls).await?,
                "AUTH" if line.to_ascii_uppercase().starts_with("AUTH LOGIN") => {
                    for prompt in ["334 VXNlcm5hbWU6", "334 UGFzc3dvcmQ6"] {
                        say(&mut stream, prompt).await?;
                        let mut answer = String::new();
                        stream.read_line(&mut answer).await.ok()?;
                        self.log.lock().unwrap().commands.push(answer.trim_end().to_owned());
                    }
                    say(&mut stream, script.auth).await?;
                }
                "AUTH" => say(&mut stream, script.auth).await?,
                "MAIL" => {
                    open = Got { mail: line, ..Got::default() };
                    say(&mut stream, script.mail).await?;
                }
                "RCPT" => {
                    let reply =
                        script.rcpt.iter().find(|(word, _)| line.contains(word)).map_or("250 2.1.5 ok", |r| r.1);
                    if reply.starts_with('2') {
                        open.rcpt.push(line);
                    }
                    say(&mut stream, reply).await?;
                }
                "DATA" => {
                    if let Some(wait) = &script.waits_at_data {
                        wait.notified().await;
                    }
                    say(&mut stream, script.data).await?;
                    if script.data.starts_with("354") {
                        self.data(&mut stream, std::mem::take(&mut open), script.leaves_after).await?;
                        match script.dot {
                            Dot::Reply(reply) => say(&mut stream, reply).await?,
                            Dot::Silence => tokio::time::sleep(Duration::from_secs(3600)).await,
                            Dot::Close => return None,
                        }
                    }
                }
                "RSET" => say(&mut stream, "250 2.0.0 ok").await?,
                "QUIT" => {
                    say(&mut stream, "221 2.0.0 bye").await?;
                    return None;
                }
                _ => say(&mut stream, "500 5.5.1 what").await?,
            }
        }
    }

    /// Reads data to the end mark, or to the end of the connection.
    async fn data(&self, stream: &mut BufReader<TcpStream>, got: Got, leaves_after: Option<usize>) -> Option<()> {
        let place = {
            let mut log = self.log.lock().unwrap();
            log.got.push(got);
            log.got.len() - 1
        };
        let mut wire = Vec::new();
        loop {
            let mut octet = [0];
            let ended = stream.read(&mut octet).await.ok()? == 0;
            if !ended {
                wire.push(octet[0]);
            }
            let complete = wire == b".\r\n" || wire.ends_with(b"\r\n.\r\n");
            if ended || complete || wire.len() % 1024 == 0 {
                let mut log = self.log.lock().unwrap();
                log.got[place].wire.clone_from(&wire);
                log.got[place].complete = complete;
            }
            if ended || leaves_after.is_some_and(|n| wire.len() >= n) {
                return None;
            }
            if complete {
                return Some(());
            }
        }
    }
}

async fn say(stream: &mut BufReader<TcpStream>, line: &str) -> Option<()> {
    match line {
        CLOSE => None,
        SILENCE => std::future::pending().await,
        line => stream.write_all(format!("{line}\r\n").as_bytes()).await.ok(),
    }
}
