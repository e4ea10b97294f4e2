//! A small IMAP client.

use std::io;
use std::time::Duration;

use super::{Duplex, Wire};
use crate::config::Endpoint;

/// Largest literal that is read.
const MAX_LITERAL: usize = 128 * 1024 * 1024;

/// A session.
#[derive(Debug)]
pub struct ImapClient {
    wire: Wire,
    tag: u32,
}

/// One response: its text, and the literals that stood in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// The text; each literal stands as `{n}`.
    pub text: String,
    /// The literals in order.
    pub literals: Vec<Vec<u8>>,
}

impl Response {
    /// The number after `name` in the text, such as that of `UID`.
    pub fn number(&self, name: &str) -> Option<u64> {
        let words: Vec<&str> = self.text.split([' ', '(', ')', '[', ']']).collect();
        let at = words.iter().position(|w| w.eq_ignore_ascii_case(name))?;
        words.get(at + 1)?.parse().ok()
    }
}

/// What a command was answered with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The untagged responses, without `* `.
    pub untagged: Vec<Response>,
    /// The tagged response without its tag: `OK …`, `NO …`, `BAD …`.
    pub status: String,
}

impl Answer {
    /// Whether it is OK.
    pub fn is_ok(&self) -> bool {
        self.status.starts_with("OK")
    }

    /// Itself where OK, an error with the status where not.
    pub fn ok(self) -> io::Result<Answer> {
        if self.is_ok() { Ok(self) } else { Err(io::Error::other(format!("the server said {}", self.status))) }
    }

    /// The FETCH responses.
    pub fn fetched(&self) -> impl Iterator<Item = &Response> {
        self.untagged.iter().filter(|r| r.text.split(' ').nth(1) == Some("FETCH"))
    }

    /// The numbers of SEARCH.
    pub fn found(&self) -> Vec<u32> {
        let lines = self.untagged.iter().filter_map(|r| r.text.strip_prefix("SEARCH"));
        lines.flat_map(str::split_whitespace).filter_map(|n| n.parse().ok()).collect()
    }

    /// The names that LIST told of mailboxes that can be selected.
    pub fn mailboxes(&self) -> Vec<String> {
        let mut names = Vec::new();
        for response in &self.untagged {
            let Some(rest) = response.text.strip_prefix("LIST ") else { continue };
            if rest.to_ascii_lowercase().contains("\\noselect") {
                continue;
            }
            // ( attributes ) SP delimiter SP mailbox
            let Some((_, rest)) = rest.split_once(") ") else { continue };
            let Some((_, name)) = rest.split_once(' ') else { continue };
            names.push(match (response.literals.last(), name.strip_prefix('"')) {
                (Some(literal), _) => String::from_utf8_lossy(literal).into_owned(),
                (None, Some(quoted)) => quoted.trim_end_matches('"').replace("\\\"", "\"").replace("\\\\", "\\"),
                (None, None) => name.to_owned(),
            });
        }
        names
    }
}

/// `text` as a quoted string. It must not hold line ends.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl ImapClient {
    /// Connects and reads the greeting.
    pub async fn connect(endpoint: &Endpoint) -> io::Result<ImapClient> {
        ImapClient::greeted(Wire::connect(endpoint).await?, "* OK").await
    }

    /// Reads the greeting of a server over a stream on which the client counts
    /// as signed in (RFC 9051 §7.1.4). An answer may take `patience`.
    pub async fn signed_in(stream: impl Duplex + 'static, patience: Duration) -> io::Result<ImapClient> {
        ImapClient::greeted(Wire::over(stream, patience), "* PREAUTH").await
    }

    async fn greeted(wire: Wire, with: &str) -> io::Result<ImapClient> {
        let mut client = ImapClient { wire, tag: 0 };
        let greeting = client.response().await?;
        if !greeting.text.starts_with(with) {
            return Err(io::Error::other(format!("the server greets with {}", greeting.text)));
        }
        Ok(client)
    }

    /// Connects and signs in.
    pub async fn sign_in(endpoint: &Endpoint, user: &str, password: &str) -> io::Result<ImapClient> {
        let mut client = ImapClient::connect(endpoint).await?;
        client.command(&format!("LOGIN {} {}", quoted(user), quoted(password))).await?.ok()?;
        Ok(client)
    }

    /// Sends a command (without tag) and reads its whole answer.
    pub async fn command(&mut self, command: &str) -> io::Result<Answer> {
        self.tag += 1;
        let tag = format!("c{}", self.tag);
        self.wire.send(format!("{tag} {command}\r\n").as_bytes()).await?;
        self.answer(&tag).await
    }

    /// APPEND.
    pub async fn append(&mut self, mailbox: &str, flags: &str, octets: &[u8]) -> io::Result<Answer> {
        self.tag += 1;
        let tag = format!("c{}", self.tag);
        let line = format!("{tag} APPEND {} ({flags}) {{{}}}\r\n", quoted(mailbox), octets.len());
        self.wire.send(line.as_bytes()).await?;
        let first = self.response().await?;
        if !first.text.starts_with('+') {
            return Ok(Answer { untagged: Vec::new(), status: after_tag(&first.text, &tag).unwrap_or(first.text) });
        }
        self.wire.send(octets).await?;
        self.wire.send(b"\r\n").await?;
        self.answer(&tag).await
    }

    /// Starts IDLE; then [`ImapClient::told`] waits, [`ImapClient::done`] ends.
    pub async fn idle(&mut self) -> io::Result<()> {
        self.tag += 1;
        self.wire.send(format!("c{} IDLE\r\n", self.tag).as_bytes()).await?;
        let first = self.response().await?;
        if first.text.starts_with('+') { Ok(()) } else { Err(io::Error::other(first.text)) }
    }

    /// The next untagged response while idle.
    pub async fn told(&mut self) -> io::Result<Response> {
        let mut response = self.response().await?;
        response.text = response.text.strip_prefix("* ").unwrap_or(&response.text).to_owned();
        Ok(response)
    }

    /// Ends IDLE.
    pub async fn done(&mut self) -> io::Result<Answer> {
        self.wire.send(b"DONE\r\n").await?;
        let tag = format!("c{}", self.tag);
        self.answer(&tag).await
    }

    async fn answer(&mut self, tag: &str) -> io::Result<Answer> {
        let mut answer = Answer::default();
        loop {
            let mut response = self.response().await?;
            if let Some(status) = after_tag(&response.text, tag) {
                answer.status = status;
                return Ok(answer);
            }
            if let Some(text) = response.text.strip_prefix("* ") {
                response.text = text.to_owned();
                answer.untagged.push(response);
            }
        }
    }

    /// A line, and on with every literal that it announces.
    async fn response(&mut self) -> io::Result<Response> {
        let mut response = Response::default();
        loop {
            let line = self.wire.line().await?;
            response.text.push_str(&String::from_utf8_lossy(&line));
            // RFC 3501 §7.1: the text of a status response holds no literal.
            let status = ["OK", "NO", "BAD", "BYE", "PREAUTH"];
            let second = response.text.split(' ').nth(1).unwrap_or("");
            let size = match status.contains(&second) {
                true => None,
                false => announced(&line),
            };
            let Some(size) = size else { return Ok(response) };
            if size > MAX_LITERAL {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the server's literal is too large"));
            }
            response.literals.push(self.wire.exact(size).await?);
        }
    }
}

fn after_tag(text: &str, tag: &str) -> Option<String> {
    text.strip_prefix(tag)?.strip_prefix(' ').map(str::to_owned)
}

fn announced(line: &[u8]) -> Option<usize> {
    let inner = line.strip_suffix(b"}")?;
    let open = memchr::memrchr(b'{', inner)?;
    std::str::from_utf8(&inner[open + 1..]).ok()?.parse().ok()
}
