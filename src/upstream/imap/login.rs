//! From a TCP connection to a session that is logged in.
//!
//! Promises: the password is sent only inside the TLS that the configuration
//! asks for, and nothing that came before TLS counts after it. Doesn't know:
//! OAuth.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use zeroize::Zeroizing;

use super::response::{Outcome, Response, Status};
use super::untagged::{UntaggedData, capabilities};
use super::{Capabilities, Connection, ImapError, ImapTarget, LOGIN_TIMEOUT, Tag, in_time};
use crate::config::TlsMode;
use crate::upstream::net;
use crate::wire::imap::{Quoted, encode_astring};

impl Connection {
    /// Connects, starts TLS where that is configured, logs in, and learns what
    /// the server can do.
    pub async fn open(target: &ImapTarget) -> Result<Connection, ImapError> {
        let stream = net::connect(&target.endpoint).await?;
        let login = async {
            let mut connection = Connection::new(stream);
            connection.greeting().await?;
            if target.endpoint.tls == TlsMode::StartTls {
                connection = connection.into_tls(target).await?;
            }
            connection.ask_capabilities().await?;
            connection.authenticate(target).await?;
            // RFC 9051 §6.1.1: they may differ after login.
            connection.ask_capabilities().await?;
            Ok(connection)
        };
        tokio::time::timeout(LOGIN_TIMEOUT, login).await.map_err(|_| ImapError::Timeout)?
    }

    async fn greeting(&mut self) -> Result<(), ImapError> {
        let Response::Untagged(greeting) = self.read_response().await? else {
            return Err(ImapError::Protocol("no greeting".into()));
        };
        match greeting.parse() {
            UntaggedData::Ok { .. } => Ok(()),
            UntaggedData::Bye { text } => {
                let (code, text) = super::response::split_code(&text);
                Err(ImapError::No { text: String::from_utf8_lossy(&text).into_owned(), code })
            }
            // RFC 9051 §11.1: PREAUTH is how STARTTLS is kept from happening;
            // and we wouldn't know as whom we are logged in.
            _ => Err(ImapError::Protocol("the greeting is not OK".into())),
        }
    }

    /// RFC 9051 §6.2.1. What arrived behind the tagged OK was sent without
    /// TLS, by whomever; what was known before TLS is asked again.
    async fn into_tls(mut self, target: &ImapTarget) -> Result<Connection, ImapError> {
        self.ask_capabilities().await?;
        if !self.capabilities.has("STARTTLS") {
            return Err(ImapError::Protocol("the server does not offer STARTTLS".into()));
        }
        self.run(b"STARTTLS").await?.ok()?;
        if self.reader.buffered() > 0 || !self.reader.between_responses() || !self.pending.is_empty() {
            return Err(ImapError::Protocol("octets after the answer to STARTTLS, before TLS".into()));
        }
        let stream = net::start_tls(&target.endpoint, self.stream).await?;
        Ok(Connection::new(stream))
    }

    async fn ask_capabilities(&mut self) -> Result<(), ImapError> {
        let outcome = self.run(b"CAPABILITY").await?.ok()?;
        let words = outcome.untagged.iter().filter_map(|data| match data.parse() {
            UntaggedData::Capability(words) => Some(words),
            _ => None,
        });
        let from_code = outcome.code.as_deref().and_then(|code| code.strip_prefix(b"CAPABILITY ")).map(capabilities);
        match words.last().or(from_code) {
            Some(words) => self.capabilities = Capabilities(words),
            None => return Err(ImapError::Protocol("CAPABILITY was answered without any".into())),
        }
        Ok(())
    }

    /// AUTHENTICATE PLAIN where it takes one round trip, else LOGIN, else
    /// AUTHENTICATE PLAIN in two.
    async fn authenticate(&mut self, target: &ImapTarget) -> Result<(), ImapError> {
        if target.user.contains('\0') || target.password.contains('\0') {
            return Err(ImapError::Auth { text: "user name or password contains a NUL".into() });
        }
        let plain = self.capabilities.has("AUTH=PLAIN");
        let outcome = if plain && self.capabilities.has("SASL-IR") {
            let line = Zeroizing::new([b"AUTHENTICATE PLAIN ", sasl_plain(target).as_slice()].concat());
            let tag = self.send_secret(&line).await?;
            self.wait(tag).await?
        } else if !self.capabilities.has("LOGINDISABLED") {
            self.login(target).await?
        } else if plain {
            let tag = self.send(b"AUTHENTICATE PLAIN").await?;
            if self.continuation(tag).await? {
                self.write_secret(&Zeroizing::new([sasl_plain(target).as_slice(), b"\r\n"].concat())).await?;
            }
            self.wait(tag).await?
        } else {
            return Err(ImapError::Auth { text: "the server offers no login that we know".into() });
        };
        logged_in(outcome)
    }

    async fn login(&mut self, target: &ImapTarget) -> Result<Outcome, ImapError> {
        let mut line = Zeroizing::new(Vec::from(&b"LOGIN"[..]));
        let mut sent: Option<Tag> = None;
        for argument in [target.user.as_bytes(), target.password.as_bytes()] {
            line.push(b' ');
            match encode_astring(argument) {
                Quoted::Plain(plain) => line.extend_from_slice(&Zeroizing::new(plain)),
                Quoted::NeedsLiteral(octets) => {
                    // Synchronizing always: it costs one round trip, and works
                    // with every server.
                    line.extend_from_slice(format!("{{{}}}", octets.len()).as_bytes());
                    let tag = match sent {
                        Some(tag) => {
                            line.extend_from_slice(b"\r\n");
                            self.write_secret(&line).await?;
                            tag
                        }
                        None => self.send_secret(&line).await?,
                    };
                    sent = Some(tag);
                    if !self.continuation(tag).await? {
                        return self.wait(tag).await;
                    }
                    line = Zeroizing::new(octets);
                }
            }
        }
        let tag = match sent {
            Some(tag) => {
                line.extend_from_slice(b"\r\n");
                self.write_secret(&line).await?;
                tag
            }
            None => self.send_secret(&line).await?,
        };
        self.wait(tag).await
    }

    /// Sends a line with a tag without leaving a copy in the write buffer.
    async fn send_secret(&mut self, line: &[u8]) -> Result<Tag, ImapError> {
        let tag = self.next_tag();
        let whole = Zeroizing::new([tag.to_string().as_bytes(), b" ", line, b"\r\n"].concat());
        self.write_secret(&whole).await?;
        Ok(tag)
    }

    async fn write_secret(&mut self, octets: &[u8]) -> Result<(), ImapError> {
        self.flush().await?;
        in_time(self.deadline, self.stream.write_all(octets)).await?;
        self.flush().await
    }
}

/// RFC 4616 §2: authorization identity (none), user name, password.
fn sasl_plain(target: &ImapTarget) -> Zeroizing<Vec<u8>> {
    let message = Zeroizing::new(["", target.user.as_str(), target.password.as_str()].join("\0"));
    Zeroizing::new(STANDARD.encode(message.as_bytes()).into_bytes())
}

/// The code of a refusal for too many connections.
const LIMIT: &[u8] = b"LIMIT";
/// RFC 5530 §3: these codes say that the server can't now, not that the
/// password is wrong.
const NOT_OUR_FAULT: [&[u8]; 5] = [b"UNAVAILABLE", LIMIT, b"INUSE", b"SERVERBUG", b"CONTACTADMIN"];

/// Whether a refusal is about the number of connections, not the password.
/// Gmail's has the code ALERT, so that the text has to tell: "Too many
/// simultaneous connections".
fn is_limit(code: Option<&Bytes>, text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    let says = |word: &[u8]| memchr::memmem::find(&text, word).is_some();
    code.is_some_and(|c| c.eq_ignore_ascii_case(b"LIMIT"))
        || says(b"too many") && says(b"connection")
        || says(b"number of connections")
}

fn logged_in(mut outcome: Outcome) -> Result<(), ImapError> {
    if outcome.status == Status::No && is_limit(outcome.code.as_ref(), &outcome.text) {
        outcome.code = Some(Bytes::from_static(LIMIT));
    }
    let code: Option<&Bytes> = outcome.code.as_ref();
    let excused = code.is_some_and(|code| NOT_OUR_FAULT.iter().any(|known| code.eq_ignore_ascii_case(known)));
    match outcome.status {
        Status::Ok => Ok(()),
        Status::No if excused => outcome.ok().map(drop),
        Status::No | Status::Bad => Err(ImapError::Auth { text: String::from_utf8_lossy(&outcome.text).into_owned() }),
    }
}
