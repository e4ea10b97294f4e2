//! The submission face of the embedded provider (RFC 5321, RFC 6409).
//!
//! Promises: what is recorded is what stood between DATA and the final dot,
//! with the stuffed dots removed and nothing else; a recipient that is a user
//! here gets it in INBOX. Keeps no copy in Sent. Doesn't know: relaying.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::dates::InternalDate;
use super::faults::{SmtpAt, SmtpEffect};
use super::frame::Input;
use super::provider::Accepted;
use super::state::Shared;

/// The name in greetings; also the authserv-id of the sample mail.
const HOST: &str = crate::config::EMBEDDED_AUTHSERV;
/// Longest command line (long AUTH responses included).
const MAX_LINE: usize = 16 * 1024;
/// Largest message, as EHLO tells it.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;
/// Most recipients of one message.
const MAX_RECIPIENTS: usize = 1000;

/// A mail transaction between MAIL and the final dot.
#[derive(Debug)]
struct Transaction {
    reverse_path: String,
    params: Vec<String>,
    utf8: bool,
    forward_paths: Vec<String>,
}

struct Session {
    shared: Arc<Shared>,
    input: Input<OwnedReadHalf>,
    output: OwnedWriteHalf,
    greeted: bool,
    user: Option<String>,
    transaction: Option<Transaction>,
}

/// Whether the connection goes on.
enum Next {
    Go,
    End,
}

/// Serves one connection to its end.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let mut kick = shared.kick.subscribe();
    let (reader, output) = stream.into_split();
    let mut session =
        Session { shared, input: Input::new(reader), output, greeted: false, user: None, transaction: None };
    tokio::select! {
        result = session.run() => result,
        _ = kick.changed() => Ok(()),
    }
}

impl Session {
    async fn run(&mut self) -> io::Result<()> {
        if let Some(Next::End) = self.fault(&SmtpAt::Greeting).await? {
            return Ok(());
        }
        self.reply(&format!("220 {HOST} ESMTP Tollgate demo provider")).await?;
        while let Some(line) = self.input.line(MAX_LINE).await? {
            if let Next::End = self.command(&line).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn reply(&mut self, line: &str) -> io::Result<()> {
        self.output.write_all(format!("{line}\r\n").as_bytes()).await
    }

    async fn say(&mut self, line: &str) -> io::Result<Next> {
        self.reply(line).await?;
        Ok(Next::Go)
    }

    /// Acts a fault out: none where the command is to be carried out.
    async fn fault(&mut self, at: &SmtpAt) -> io::Result<Option<Next>> {
        match self.shared.faults.at_smtp(at) {
            None => Ok(None),
            Some(SmtpEffect::Reply(line)) => self.say(&line).await.map(Some),
            Some(SmtpEffect::Close) => Ok(Some(Next::End)),
            Some(SmtpEffect::Silence) => std::future::pending().await,
            Some(SmtpEffect::Delay(pause)) => {
                tokio::time::sleep(pause).await;
                Ok(None)
            }
        }
    }

    async fn command(&mut self, line: &[u8]) -> io::Result<Next> {
        // RFC 5321 §2.3.8: a line ends with CRLF and nothing else.
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return self.say("500 5.5.2 a line ends with CRLF").await;
        };
        let Ok(line) = std::str::from_utf8(line) else {
            return self.say("500 5.5.2 not UTF-8").await;
        };
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let verb = verb.to_ascii_uppercase();
        let place = match verb.as_str() {
            "EHLO" | "HELO" => Some(SmtpAt::Ehlo),
            "AUTH" => Some(SmtpAt::Auth),
            "MAIL" => Some(SmtpAt::Mail),
            "RCPT" => Some(SmtpAt::Rcpt(path(rest, "TO:").map(|(path, _)| path))),
            "DATA" => Some(SmtpAt::Data),
            "RSET" => Some(SmtpAt::Rset),
            "QUIT" => Some(SmtpAt::Quit),
            _ => None,
        };
        if let Some(place) = place
            && let Some(next) = self.fault(&place).await?
        {
            return Ok(next);
        }
        match verb.as_str() {
            "EHLO" | "HELO" => self.hello(verb == "EHLO").await,
            "AUTH" => self.auth(rest).await,
            "MAIL" => self.mail(rest).await,
            "RCPT" => self.rcpt(rest).await,
            "DATA" => self.data(rest).await,
            "RSET" => {
                self.transaction = None;
                self.say("250 2.0.0 reset").await
            }
            "NOOP" => self.say("250 2.0.0 still here").await,
            "VRFY" => self.say("252 2.1.5 send and see").await,
            "QUIT" => {
                self.reply("221 2.0.0 until next time").await?;
                Ok(Next::End)
            }
            _ => self.say("500 5.5.2 unknown command").await,
        }
    }

    fn offers(&self, keyword: &str) -> bool {
        !self.shared.faults.smtp_hidden(keyword)
    }

    async fn hello(&mut self, extended: bool) -> io::Result<Next> {
        self.greeted = true;
        self.transaction = None;
        if !extended {
            return self.say(&format!("250 {HOST}")).await;
        }
        let size = format!("SIZE {MAX_MESSAGE}");
        let all = ["PIPELINING", size.as_str(), "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES", "AUTH PLAIN LOGIN"];
        let mut lines = vec![HOST];
        lines.extend(all.into_iter().filter(|k| self.offers(k.split(' ').next().unwrap_or(k))));
        let last = lines.len() - 1;
        let text: Vec<String> =
            lines.iter().enumerate().map(|(i, l)| format!("250{}{l}", if i == last { ' ' } else { '-' })).collect();
        self.say(&text.join("\r\n")).await
    }

    /// A line that answers a 334, decoded.
    async fn challenge(&mut self, text: &str) -> io::Result<Option<Vec<u8>>> {
        self.reply(&format!("334 {text}")).await?;
        let line = self.input.line(MAX_LINE).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(BASE64.decode(line.trim_ascii()).ok())
    }

    async fn auth(&mut self, rest: &str) -> io::Result<Next> {
        if !self.greeted || self.user.is_some() || self.transaction.is_some() {
            return self.say("503 5.5.1 not now").await;
        }
        let (mechanism, initial) = rest.split_once(' ').unwrap_or((rest, ""));
        let initial = match initial {
            "" => None,
            "=" => Some(Some(Vec::new())),
            text => Some(BASE64.decode(text).ok()),
        };
        let pair = match mechanism.to_ascii_uppercase().as_str() {
            "PLAIN" => {
                let response = match initial {
                    Some(response) => response,
                    None => self.challenge("").await?,
                };
                response.and_then(|r| {
                    let parts: Vec<&[u8]> = r.split(|b| *b == 0).collect();
                    match parts.as_slice() {
                        [_, login, password] => Some((login.to_vec(), password.to_vec())),
                        _ => None,
                    }
                })
            }
            "LOGIN" => {
                let login = match initial {
                    Some(login) => login,
                    None => self.challenge("VXNlcm5hbWU6").await?,
                };
                match login {
                    Some(login) => self.challenge("UGFzc3dvcmQ6").await?.map(|password| (login, password)),
                    None => None,
                }
            }
            _ => return self.say("504 5.5.4 PLAIN or LOGIN").await,
        };
        let Some((login, password)) = pair else { return self.say("501 5.5.2 can't decode that").await };
        self.user = self.shared.password_fits(&login, &password);
        match self.user {
            Some(_) => self.say("235 2.7.0 signed in").await,
            None => self.say("535 5.7.8 wrong login or password").await,
        }
    }

    async fn mail(&mut self, rest: &str) -> io::Result<Next> {
        if self.user.is_none() {
            return self.say("530 5.7.0 sign in first").await;
        }
        if self.transaction.is_some() {
            return self.say("503 5.5.1 one message at a time").await;
        }
        let Some((reverse_path, params)) = path(rest, "FROM:") else {
            return self.say("501 5.5.4 MAIL FROM:<path> was expected").await;
        };
        let mut utf8 = false;
        for param in &params {
            let (name, value) = param.split_once('=').unwrap_or((param, ""));
            let upper = name.to_ascii_uppercase();
            let fine = match upper.as_str() {
                "SIZE" => match value.parse::<u64>() {
                    Ok(size) if size > MAX_MESSAGE as u64 => return self.say("552 5.3.4 too large").await,
                    parsed => parsed.is_ok() && self.offers("SIZE"),
                },
                "BODY" => {
                    let known = value.eq_ignore_ascii_case("7BIT") || value.eq_ignore_ascii_case("8BITMIME");
                    known && self.offers("8BITMIME")
                }
                "SMTPUTF8" => {
                    utf8 = true;
                    value.is_empty() && self.offers("SMTPUTF8")
                }
                "AUTH" => true,
                _ => false,
            };
            if !fine {
                return self.say(&format!("555 5.5.4 parameter {name} is not offered")).await;
            }
        }
        if !utf8 && !reverse_path.is_ascii() {
            return self.say("553 5.6.7 this address needs SMTPUTF8").await;
        }
        self.transaction = Some(Transaction { reverse_path, params, utf8, forward_paths: Vec::new() });
        self.say("250 2.1.0 sender taken").await
    }

    async fn rcpt(&mut self, rest: &str) -> io::Result<Next> {
        let Some(transaction) = &mut self.transaction else {
            return self.say("503 5.5.1 MAIL comes first").await;
        };
        let text = match path(rest, "TO:") {
            None => "501 5.5.4 RCPT TO:<path> was expected",
            Some((path, _)) if path.is_empty() => "501 5.1.3 a recipient has a name",
            Some((_, params)) if !params.is_empty() => "555 5.5.4 parameter is not offered",
            Some((path, _)) if !transaction.utf8 && !path.is_ascii() => "553 5.6.7 this address needs SMTPUTF8",
            Some(_) if transaction.forward_paths.len() >= MAX_RECIPIENTS => "452 4.5.3 too many recipients",
            Some((path, _)) => {
                transaction.forward_paths.push(path);
                "250 2.1.5 recipient taken"
            }
        };
        self.say(text).await
    }

    async fn data(&mut self, rest: &str) -> io::Result<Next> {
        if !rest.is_empty() {
            return self.say("501 5.5.4 DATA stands alone").await;
        }
        if self.transaction.as_ref().is_none_or(|t| t.forward_paths.is_empty()) {
            return self.say("503 5.5.1 a recipient comes first").await;
        }
        self.reply("354 end with a dot").await?;
        let octets = self.input.dotted(MAX_MESSAGE).await?;
        let transaction = self.transaction.take();
        if let Some(next) = self.fault(&SmtpAt::Dot).await? {
            return Ok(next);
        }
        let (Some(octets), Some(transaction), Some(login)) = (octets, transaction, self.user.clone()) else {
            return self.say("552 5.3.4 too large").await;
        };
        let number = match take(&self.shared, login, transaction, octets) {
            Some(number) => number,
            None => return self.say("451 4.3.0 can't store it").await,
        };
        if let Some(next) = self.fault(&SmtpAt::AfterDot).await? {
            return Ok(next);
        }
        self.say(&format!("250 2.0.0 taken as {number}")).await
    }
}

/// Records a message and delivers it to the recipients that live here.
fn take(shared: &Shared, login: String, transaction: Transaction, octets: Vec<u8>) -> Option<usize> {
    let mut state = shared.lock();
    let local: BTreeSet<String> = transaction
        .forward_paths
        .iter()
        .map(|path| path.to_lowercase())
        .filter(|path| state.users.contains_key(path))
        .collect();
    let shown: Arc<[u8]> = octets.as_slice().into();
    for name in local {
        state.user(&name)?.add("INBOX", shown.clone(), BTreeSet::new(), InternalDate::now()).ok()?;
    }
    state.accepted.push(Accepted {
        login,
        reverse_path: transaction.reverse_path,
        forward_paths: transaction.forward_paths,
        mail_params: transaction.params,
        octets,
    });
    let number = state.accepted.len();
    drop(state);
    shared.wake();
    Some(number)
}

/// `<path> params…` after `FROM:` or `TO:`; the path as between the brackets.
fn path(rest: &str, keyword: &str) -> Option<(String, Vec<String>)> {
    let head = rest.get(..keyword.len())?;
    if !head.eq_ignore_ascii_case(keyword) {
        return None;
    }
    let rest = rest[keyword.len()..].strip_prefix('<')?;
    let (mut quoted, mut escaped) = (false, false);
    let end = rest.char_indices().find(|(_, c)| {
        let ends = *c == '>' && !quoted;
        if *c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && *c == '\\' && !escaped;
        ends
    })?;
    let params = &rest[end.0 + 1..];
    if !params.is_empty() && !params.starts_with(' ') {
        return None;
    }
    Some((rest[..end.0].to_owned(), params.split_whitespace().map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn a_path_keeps_quoted_brackets() {
        let (p, params) = path("to:<\"a>\\\" b\"@example.org> X=1 Y", "TO:").unwrap();
        assert_eq!(p, "\"a>\\\" b\"@example.org");
        assert_eq!(params, ["X=1", "Y"]);
        assert_eq!(path("FROM:<>", "FROM:").unwrap().0, "");
        assert!(path("FROM: <a@b>", "FROM:").is_none());
        assert!(path("FROM:<a@b>x", "FROM:").is_none());
    }
}
