//! The submission client: what we say to the provider's submission server.
//!
//! Promises: credentials go only inside the TLS that the configuration asks
//! for; a server that doesn't offer STARTTLS, or that says something before
//! the handshake, is left; a parameter that the server doesn't offer is an
//! error and never silently dropped; DATA opens only for a
//! [`Release`](crate::floor::release::Release). Doesn't know: why a message
//! is sent, what becomes of its outcome.

mod caps;
mod data;

use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zeroize::Zeroizing;

pub use caps::EhloCaps;
pub use data::{DataError, DataWriter, Ended};

use crate::config::{Endpoint, TlsMode};
use crate::store::failpoint;
use crate::upstream::net::{self, ConnectError, Stream};
use crate::wire::smtp::{Reply, ReplyError, ReplyReader};

/// Octets read from the server at once.
const READ_CHUNK: usize = 4096;

/// How long each step may take.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// The greeting, EHLO, STARTTLS and each step of AUTH.
    pub greeting: Duration,
    /// The reply to MAIL.
    pub mail: Duration,
    /// The reply to RCPT.
    pub rcpt: Duration,
    /// The reply to DATA.
    pub data_start: Duration,
    /// Each piece of data that is written.
    pub data_block: Duration,
    /// The reply to the final dot.
    pub data_end: Duration,
    /// The reply to RSET and QUIT.
    pub other: Duration,
}

/// RFC 5321 §4.5.3.2.2 to §4.5.3.2.6. Deviation from §4.5.3.2.1 (five minutes
/// for the greeting): a person's client waits in front of it and gives up
/// sooner; a refusal for now after one minute is what it can use.
pub const TIMEOUTS: Timeouts = Timeouts {
    greeting: Duration::from_secs(60),
    mail: Duration::from_secs(5 * 60),
    rcpt: Duration::from_secs(5 * 60),
    data_start: Duration::from_secs(2 * 60),
    data_block: Duration::from_secs(3 * 60),
    data_end: Duration::from_secs(10 * 60),
    other: Duration::from_secs(60),
};

/// Why the provider could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SubmissionError {
    /// No connection, or no TLS.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// STARTTLS is configured and not offered, or refused.
    #[error("the provider doesn't offer STARTTLS")]
    NoStartTls,
    /// The server spoke between STARTTLS and the handshake.
    #[error("the provider sent plaintext in front of TLS")]
    PlaintextInjected,
    /// The server takes neither PLAIN nor LOGIN.
    #[error("the provider offers neither AUTH PLAIN nor AUTH LOGIN")]
    NoMechanism,
    /// The server refused our credentials.
    #[error("the provider refused the credentials: {0}")]
    Auth(Reply),
    /// The server answered a step with something that ends it.
    #[error("the provider refused {step}: {reply}")]
    Refused {
        /// Which command.
        step: &'static str,
        /// What it said.
        reply: Reply,
    },
    /// The envelope needs an extension that the server doesn't offer.
    #[error("the provider doesn't offer {0}")]
    NotOffered(&'static str),
    /// The message is larger than the server's SIZE.
    #[error("the provider takes at most {limit} octets")]
    TooLarge {
        /// Its limit.
        limit: u64,
    },
    /// Not a reply, or one nobody asked for.
    #[error(transparent)]
    Reply(#[from] ReplyError),
    /// The server spoke out of turn; its replies can't be told apart any more.
    #[error("the provider sent a reply that nobody asked for")]
    OutOfStep,
    /// A step took too long.
    #[error("the provider did not answer {0} in time")]
    Timeout(&'static str),
    /// The connection broke.
    #[error("the connection to the provider broke: {0}")]
    Io(#[from] io::Error),
    /// The connection was closed, by either side.
    #[error("the provider closed the connection")]
    Closed,
}

/// What MAIL carries beside the reverse-path.
#[derive(Debug, Clone, Copy, Default)]
pub struct MailParameters {
    /// Octets of the message, where they are known.
    pub size: Option<u64>,
    /// `BODY=8BITMIME`.
    pub eight_bit: bool,
    /// `SMTPUTF8`.
    pub smtputf8: bool,
}

/// A connection on which mail can be submitted: greeted, secured, signed in.
#[derive(Debug)]
pub struct Submission {
    /// Gone while a [`DataWriter`] has it, and after a fault.
    stream: Option<Stream>,
    reader: ReplyReader,
    caps: EhloCaps,
    timeouts: Timeouts,
}

impl Submission {
    /// Connects, secures and signs in, within [`TIMEOUTS`].
    pub async fn connect(endpoint: &Endpoint, user: &str, password: &str) -> Result<Self, SubmissionError> {
        Self::connect_within(endpoint, user, password, TIMEOUTS).await
    }

    /// As [`Submission::connect`], with other timeouts.
    pub async fn connect_within(
        endpoint: &Endpoint,
        user: &str,
        password: &str,
        timeouts: Timeouts,
    ) -> Result<Self, SubmissionError> {
        let mut this = Self::greet(endpoint, timeouts).await?;
        this.authenticate(user, password).await?;
        Ok(this)
    }

    /// Connects and secures, and reads what the server offers, without
    /// signing in.
    pub async fn greet(endpoint: &Endpoint, timeouts: Timeouts) -> Result<Self, SubmissionError> {
        let stream = net::connect(endpoint).await?;
        let mut this =
            Submission { stream: Some(stream), reader: ReplyReader::new(), caps: EhloCaps::default(), timeouts };
        let greeting = this.reply("the connection", timeouts.greeting).await?;
        if greeting.code() != 220 {
            return Err(SubmissionError::Refused { step: "the connection", reply: greeting });
        }
        this.ehlo_command().await?;
        if endpoint.tls == TlsMode::StartTls {
            this.start_tls(endpoint).await?;
            // RFC 3207 §4.2: what was said before TLS is forgotten.
            this.ehlo_command().await?;
        }
        Ok(this)
    }

    /// What the server offers.
    pub fn ehlo(&self) -> &EhloCaps {
        &self.caps
    }

    async fn ehlo_command(&mut self) -> Result<(), SubmissionError> {
        let name = self.stream.as_ref().map_or_else(|| "localhost".to_owned(), client_name);
        let reply = self.command("EHLO", &format!("EHLO {name}\r\n"), self.timeouts.greeting).await?;
        if !reply.is_positive() {
            return Err(SubmissionError::Refused { step: "EHLO", reply });
        }
        self.caps = EhloCaps::parse(&reply);
        Ok(())
    }

    async fn start_tls(&mut self, endpoint: &Endpoint) -> Result<(), SubmissionError> {
        if !self.caps.starttls {
            return Err(SubmissionError::NoStartTls);
        }
        let reply = self.command("STARTTLS", "STARTTLS\r\n", self.timeouts.greeting).await?;
        if reply.code() != 220 {
            return Err(SubmissionError::NoStartTls);
        }
        if !self.reader.is_empty() {
            return Err(SubmissionError::PlaintextInjected);
        }
        let plain = self.stream.take().ok_or(SubmissionError::Closed)?;
        self.stream = Some(net::start_tls(endpoint, plain).await?);
        Ok(())
    }

    async fn authenticate(&mut self, user: &str, password: &str) -> Result<(), SubmissionError> {
        let offered = |name: &str| self.caps.auth.iter().any(|m| m == name);
        let reply = if offered("PLAIN") {
            let text = Zeroizing::new(format!("\0{user}\0{password}"));
            let line = Zeroizing::new(format!("AUTH PLAIN {}\r\n", BASE64.encode(text.as_bytes())));
            self.command("AUTH", &line, self.timeouts.greeting).await?
        } else if offered("LOGIN") {
            self.auth_login(user, password).await?
        } else {
            return Err(SubmissionError::NoMechanism);
        };
        if reply.code() == 235 { Ok(()) } else { Err(SubmissionError::Auth(reply)) }
    }

    async fn auth_login(&mut self, user: &str, password: &str) -> Result<Reply, SubmissionError> {
        let mut reply = self.command("AUTH", "AUTH LOGIN\r\n", self.timeouts.greeting).await?;
        for answer in [user, password] {
            if reply.code() != 334 {
                break;
            }
            let line = Zeroizing::new(format!("{}\r\n", BASE64.encode(answer.as_bytes())));
            reply = self.command("AUTH", &line, self.timeouts.greeting).await?;
        }
        Ok(reply)
    }

    /// Whether the server takes what the parameters say.
    pub fn takes(&self, parameters: &MailParameters) -> Result<(), SubmissionError> {
        if parameters.eight_bit && !self.caps.eight_bit_mime {
            return Err(SubmissionError::NotOffered("8BITMIME"));
        }
        if parameters.smtputf8 && !self.caps.smtputf8 {
            return Err(SubmissionError::NotOffered("SMTPUTF8"));
        }
        // RFC 1870 §4: zero means that no fixed limit is in force.
        match (self.caps.size, parameters.size) {
            (Some(limit), Some(size)) if limit > 0 && size > limit => Err(SubmissionError::TooLarge { limit }),
            _ => Ok(()),
        }
    }

    /// MAIL. The path is given without angle brackets; empty for `<>`.
    pub async fn mail(&mut self, from: &str, parameters: &MailParameters) -> Result<Reply, SubmissionError> {
        let line = self.mail_line(from, parameters)?;
        self.command("MAIL", &line, self.timeouts.mail).await
    }

    fn mail_line(&self, from: &str, parameters: &MailParameters) -> Result<String, SubmissionError> {
        self.takes(parameters)?;
        let mut line = format!("MAIL FROM:<{}>", one_line(from)?);
        if let (Some(_), Some(size)) = (self.caps.size, parameters.size) {
            line.push_str(&format!(" SIZE={size}"));
        }
        if parameters.eight_bit {
            line.push_str(" BODY=8BITMIME");
        }
        if parameters.smtputf8 {
            line.push_str(" SMTPUTF8");
        }
        line.push_str("\r\n");
        Ok(line)
    }

    /// RCPT. The path is given without angle brackets.
    pub async fn rcpt(&mut self, to: &str) -> Result<Reply, SubmissionError> {
        let line = format!("RCPT TO:<{}>\r\n", one_line(to)?);
        self.command("RCPT", &line, self.timeouts.rcpt).await
    }

    /// MAIL and every RCPT; the replies in order. In one go where the server
    /// offers PIPELINING (RFC 2920), else one by one. After a MAIL that was
    /// refused the replies of RCPT mean nothing and there may be none.
    pub async fn envelope(
        &mut self,
        from: &str,
        parameters: &MailParameters,
        to: &[String],
    ) -> Result<(Reply, Vec<Reply>), SubmissionError> {
        let mut replies = Vec::with_capacity(to.len());
        if !self.caps.pipelining {
            let mail = self.mail(from, parameters).await?;
            if mail.is_positive() {
                for path in to {
                    replies.push(self.rcpt(path).await?);
                }
            }
            return Ok((mail, replies));
        }
        let mut lines = self.mail_line(from, parameters)?;
        for path in to {
            lines.push_str(&format!("RCPT TO:<{}>\r\n", one_line(path)?));
        }
        let mail = self.command("MAIL", &lines, self.timeouts.mail).await?;
        for _ in to {
            replies.push(self.reply("RCPT", self.timeouts.rcpt).await?);
        }
        Ok((mail, replies))
    }

    /// RSET.
    pub async fn rset(&mut self) -> Result<Reply, SubmissionError> {
        self.command("RSET", "RSET\r\n", self.timeouts.other).await
    }

    /// QUIT, and the connection ends.
    pub async fn quit(mut self) {
        let _ = self.command("QUIT", "QUIT\r\n", self.timeouts.other).await;
        if let Some(mut stream) = self.stream.take() {
            let _ = stream.shutdown().await;
        }
    }

    /// Whether the connection can still be used.
    pub fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Writes one or more command lines and reads the first reply.
    async fn command(&mut self, step: &'static str, lines: &str, timeout: Duration) -> Result<Reply, SubmissionError> {
        if !self.reader.is_empty() {
            self.stream = None;
            return Err(SubmissionError::OutOfStep);
        }
        failpoint::hit_within(step);
        let stream = self.stream.as_mut().ok_or(SubmissionError::Closed)?;
        let write = async {
            stream.write_all(lines.as_bytes()).await?;
            stream.flush().await
        };
        let written = match tokio::time::timeout(timeout, write).await {
            Ok(result) => result.map_err(SubmissionError::Io),
            Err(_) => Err(SubmissionError::Timeout(step)),
        };
        if let Err(error) = written {
            self.stream = None;
            return Err(error);
        }
        self.reply(step, timeout).await
    }

    /// The next reply; after an error the connection is gone.
    async fn reply(&mut self, step: &'static str, timeout: Duration) -> Result<Reply, SubmissionError> {
        let mut stream = self.stream.take().ok_or(SubmissionError::Closed)?;
        let read = read_reply(&mut stream, &mut self.reader);
        let reply = tokio::time::timeout(timeout, read).await.map_err(|_| SubmissionError::Timeout(step))??;
        self.stream = Some(stream);
        Ok(reply)
    }
}

/// Reads up to the end of one reply.
async fn read_reply(stream: &mut Stream, reader: &mut ReplyReader) -> Result<Reply, SubmissionError> {
    let mut chunk = [0; READ_CHUNK];
    loop {
        if let Some(reply) = reader.next_reply()? {
            return Ok(reply);
        }
        match stream.read(&mut chunk).await? {
            0 => return Err(SubmissionError::Closed),
            n => reader.push(&chunk[..n]),
        }
    }
}

/// A path can't make a second command, whoever checked it before.
fn one_line(path: &str) -> Result<&str, SubmissionError> {
    let clean = !path.chars().any(|c| c.is_control());
    if clean { Ok(path) } else { Err(SubmissionError::Io(io::Error::other("a control character in a path"))) }
}

/// RFC 5321 §4.1.4: a client without a name of its own says its address.
fn client_name(stream: &Stream) -> String {
    let tcp = match stream {
        Stream::Plain(tcp) => tcp,
        Stream::Tls(tls) => tls.get_ref().0,
    };
    match tcp.local_addr().map(|a| a.ip().to_canonical()) {
        Ok(std::net::IpAddr::V4(ip)) => format!("[{ip}]"),
        Ok(std::net::IpAddr::V6(ip)) => format!("[IPv6:{ip}]"),
        Err(_) => "localhost".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;
