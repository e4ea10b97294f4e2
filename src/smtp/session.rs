//! One client's session: commands, sign-in, transactions one after another.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::sync::watch;
use zeroize::Zeroizing;

use super::conn::{Conn, End};
use super::data::{self, Done};
use super::transaction::Transaction;
use super::{
    AUTH_FAILURE_DELAY, AUTH_TURN, CLIENT_TIMEOUT, MAX_AUTH_FAILURES, MAX_ERRORS, MAX_STRANGER_COMMANDS,
    STRANGER_TIMEOUT, Services,
};
use crate::account::{Principal, Reach, Unproven};
use crate::downstream::Connection;
use crate::outbox::RouteError;
use crate::store::failpoint;
use crate::upstream::smtp::SubmissionError;
use crate::wire::smtp::{Command, CommandError, LineError, Parameter, Path, PathError, Reply, parse_command};

/// Speaks with one client until it goes. `tls` says whether the stream is
/// inside TLS; without it, only a client on this machine may sign in.
pub async fn serve<S: Connection>(
    stream: S,
    tls: bool,
    peer: SocketAddr,
    services: Arc<Services>,
    shutdown: watch::Receiver<bool>,
) {
    let mut session = Session {
        // Where STARTTLS is offered, it comes before a sign-in; the plain
        // listener has none and takes clients of this machine only.
        may_sign_in: tls || (peer.ip().to_canonical().is_loopback() && !stream.can_start_tls()),
        conn: Conn::new(stream, shutdown),
        services,
        greeted: false,
        principal: None,
        transaction: None,
        commands: 0,
        errors: 0,
        auth_failures: 0,
    };
    let greeting = Reply::new(220, "", format!("{} ESMTP Tollgate", session.services.config.hostname));
    session.conn.reply(&greeting);
    let end = session.run().await;
    tracing::debug!(%peer, ?end, "SMTP session ended");
    if let Some(transaction) = session.transaction.take() {
        transaction.abandon();
    }
    if let Some(reply) = end.and_then(End::reply) {
        session.conn.reply(&reply);
    }
    session.conn.close().await;
}

struct Session<S> {
    conn: Conn<S>,
    services: Arc<Services>,
    may_sign_in: bool,
    greeted: bool,
    principal: Option<Principal>,
    transaction: Option<Transaction>,
    commands: u32,
    errors: u32,
    auth_failures: u32,
}

/// Whether the session goes on.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Go,
    Stop,
}

impl<S: Connection> Session<S> {
    /// Commands until the end; `None` where the client was told already.
    async fn run(&mut self) -> Option<End> {
        loop {
            let limit = if self.principal.is_some() { CLIENT_TIMEOUT } else { STRANGER_TIMEOUT };
            match self.step(limit).await {
                Ok(Next::Go) => {}
                Ok(Next::Stop) => return None,
                Err(end) => return Some(end),
            }
            if self.errors > MAX_ERRORS {
                self.conn.reply(&Reply::new(421, "4.7.0", "too many errors; closing"));
                return None;
            }
        }
    }

    async fn step(&mut self, limit: Duration) -> Result<Next, End> {
        let line = match self.conn.line(limit).await? {
            Ok(line) => Zeroizing::new(line.to_vec()),
            Err(error) => {
                self.answer(line_fault(error));
                return Ok(Next::Go);
            }
        };
        self.commands = self.commands.saturating_add(1);
        if self.principal.is_none() && self.commands > MAX_STRANGER_COMMANDS {
            self.conn.reply(&Reply::new(421, "4.7.0", "too many commands without signing in; closing"));
            return Ok(Next::Stop);
        }
        match parse_command(&line) {
            Ok(command) => self.command(command).await,
            Err(error) => {
                self.answer(command_fault(error));
                Ok(Next::Go)
            }
        }
    }

    fn answer(&mut self, reply: Reply) {
        if reply.is_permanent() {
            self.errors += 1;
        }
        self.conn.reply(&reply);
    }

    async fn command(&mut self, command: Command) -> Result<Next, End> {
        match command {
            Command::Ehlo(_) => {
                self.hello();
                let lines = self.offered();
                self.conn.reply(&Reply::lines_of(250, lines));
            }
            Command::Helo(_) => {
                self.hello();
                let name = self.services.config.hostname.clone();
                self.conn.reply(&Reply::new(250, "", name));
            }
            Command::Auth { mechanism, initial } => return self.auth(&mechanism, initial).await,
            Command::Mail { from, parameters } => {
                let reply = self.mail(&from, &parameters).await;
                let closing = reply.code() == 421;
                self.answer(reply);
                if closing {
                    return Ok(Next::Stop);
                }
            }
            Command::Rcpt { to, parameters } => {
                match &mut self.transaction {
                    Some(transaction) => {
                        // Not an error of the session: people have old
                        // addresses in their lists, and the provider says so.
                        let reply = transaction.add(&self.services, to, &parameters).await;
                        self.conn.reply(&reply);
                    }
                    None => {
                        let reply = self.out_of_order("MAIL comes first");
                        self.answer(reply);
                    }
                }
            }
            Command::Data => return self.data().await,
            Command::Rset => {
                self.reset();
                self.conn.reply(&Reply::new(250, "2.0.0", "reset"));
            }
            Command::StartTls => return self.start_tls().await,
            Command::Noop => self.conn.reply(&Reply::new(250, "2.0.0", "ok")),
            // RFC 5321 §7.3: whether an address exists is not told.
            Command::Vrfy => self.conn.reply(&Reply::new(252, "2.0.0", "send some mail, and the provider will say")),
            Command::Help => self.conn.reply(&Reply::new(214, "2.0.0", "RFC 5321 and RFC 6409 apply")),
            Command::Quit => {
                self.conn.reply(&Reply::new(221, "2.0.0", "bye"));
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Go)
    }

    /// RFC 3207 §4.2: what was said before is forgotten.
    async fn start_tls(&mut self) -> Result<Next, End> {
        if !self.conn.can_start_tls() {
            self.answer(Reply::new(502, "5.5.1", "STARTTLS is not offered here"));
            return Ok(Next::Go);
        }
        self.reset();
        self.conn.start_tls(&Reply::new(220, "2.0.0", "go ahead")).await?;
        self.greeted = false;
        self.may_sign_in = true;
        Ok(Next::Go)
    }

    fn hello(&mut self) {
        self.reset();
        self.greeted = true;
    }

    fn reset(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            transaction.abandon();
        }
    }

    fn offered(&self) -> Vec<String> {
        let services = &self.services;
        let everybody = services.accounts.ids();
        let accounts = match &self.principal {
            Some(principal) => std::slice::from_ref(&principal.account),
            None => everybody.as_slice(),
        };
        let offer = services.offers.common(accounts, services.config.max_message_bytes);
        let mut lines = vec![services.config.hostname.clone(), "PIPELINING".to_owned(), format!("SIZE {}", offer.size)];
        if offer.eight_bit_mime {
            lines.push("8BITMIME".to_owned());
        }
        if offer.smtputf8 {
            lines.push("SMTPUTF8".to_owned());
        }
        lines.push("ENHANCEDSTATUSCODES".to_owned());
        if self.conn.can_start_tls() {
            lines.push("STARTTLS".to_owned());
        }
        if self.may_sign_in && self.principal.is_none() {
            lines.push("AUTH PLAIN LOGIN".to_owned());
        }
        lines
    }

    /// 530 before the sign-in, else 503: RFC 4954 §6.
    fn out_of_order(&self, why: &str) -> Reply {
        match &self.principal {
            Some(_) => Reply::new(503, "5.5.1", why),
            None => Reply::new(530, "5.7.0", "sign in first"),
        }
    }

    async fn mail(&mut self, from: &Path, parameters: &[Parameter]) -> Reply {
        if !self.greeted {
            return Reply::new(503, "5.5.1", "EHLO comes first");
        }
        let Some(principal) = &self.principal else { return Reply::new(530, "5.7.0", "sign in first") };
        if self.transaction.is_some() {
            return Reply::new(503, "5.5.1", "a transaction is open");
        }
        match Transaction::open(&self.services, principal, from, parameters).await {
            Ok((transaction, reply)) => {
                self.transaction = Some(transaction);
                reply
            }
            Err(reply) => reply,
        }
    }

    async fn data(&mut self) -> Result<Next, End> {
        let (Some(principal), Some(transaction)) = (&self.principal, self.transaction.take()) else {
            let reply = self.out_of_order("MAIL and RCPT come first");
            self.answer(reply);
            return Ok(Next::Go);
        };
        match data::receive(&mut self.conn, &self.services, principal, transaction).await? {
            Done::Reply(reply) => self.answer(reply),
            Done::Held(id) => {
                // On disk; only now is it said.
                self.conn.reply(&Reply::new(250, "2.0.0", format!("held for approval as {id}")));
                self.conn.flush().await?;
                failpoint::hit("hold.after_250");
            }
        }
        Ok(Next::Go)
    }

    async fn auth(&mut self, mechanism: &str, initial: Option<String>) -> Result<Next, End> {
        if let Some(reply) = self.auth_is_out_of_place(mechanism) {
            self.answer(reply);
            return Ok(Next::Go);
        }
        let credentials = match mechanism {
            "PLAIN" => self.plain(initial).await?,
            _ => self.login(initial).await?,
        };
        let (user, password) = match credentials {
            Ok(credentials) => credentials,
            Err(reply) => {
                self.answer(reply);
                return Ok(Next::Go);
            }
        };
        if let Some(own) = self.services.accounts.own_login(&user, &password) {
            return Ok(self.sign_in_there(own).await);
        }
        match self.services.accounts.authenticate(&user, &password) {
            Ok(principal) => Ok(self.signed_in(principal)),
            Err(_) => Ok(self.failed_sign_in("user or password is wrong").await),
        }
    }

    /// A sign-in with the person's own login, which the provider's submission
    /// server answers. Its transactions sign in there with it again.
    async fn sign_in_there(&mut self, own: Unproven) -> Next {
        // RFC 4954 §6: 454 is for what may work later.
        let later = |text: &str| Reply::new(454, "4.7.0", text);
        let Some(_turn) = own.turn(AUTH_TURN).await else {
            self.conn.reply(&later("too many sign-ins of this account wait"));
            return Next::Go;
        };
        let account = own.account().clone();
        match self.services.outbox.connect_with(&account, own.password()).await {
            Ok(submission) => {
                self.services.offers.learn(&account, submission.ehlo());
                tokio::spawn(submission.quit());
                self.signed_in(own.accepted(Reach::Submission))
            }
            // The turn is held through the pause.
            Err(RouteError::Submission(SubmissionError::Auth(reply))) if reply.is_permanent() => {
                tracing::info!(%account, "SMTP sign-in refused by the provider");
                self.failed_sign_in(&format!("the provider refused: {}", reply.lines().join(" "))).await
            }
            Err(error) => {
                tracing::warn!(%account, %error, "a sign-in could not be tried at the provider");
                self.conn.reply(&later("the provider can't be asked now; try again later"));
                Next::Go
            }
        }
    }

    fn signed_in(&mut self, principal: Principal) -> Next {
        tracing::info!(account = %principal.account, key = principal.key.as_str(), "SMTP sign-in");
        self.conn.revoked = Some(principal.revoked.clone());
        self.principal = Some(principal);
        self.conn.reply(&Reply::new(235, "2.7.0", "signed in"));
        Next::Go
    }

    async fn failed_sign_in(&mut self, why: &str) -> Next {
        self.auth_failures += 1;
        tokio::time::sleep(AUTH_FAILURE_DELAY).await;
        self.answer(Reply::new(535, "5.7.8", why));
        if self.auth_failures >= MAX_AUTH_FAILURES {
            self.conn.reply(&Reply::new(421, "4.7.0", "too many failed sign-ins; closing"));
            return Next::Stop;
        }
        Next::Go
    }

    fn auth_is_out_of_place(&self, mechanism: &str) -> Option<Reply> {
        if !self.greeted {
            return Some(Reply::new(503, "5.5.1", "EHLO comes first"));
        }
        // RFC 4954 §4: one AUTH a session, none in a transaction.
        if self.principal.is_some() {
            return Some(Reply::new(503, "5.5.1", "already signed in"));
        }
        if !self.may_sign_in {
            return Some(Reply::new(538, "5.7.11", "sign-in needs TLS"));
        }
        if !matches!(mechanism, "PLAIN" | "LOGIN") {
            return Some(Reply::new(504, "5.5.4", "PLAIN and LOGIN are offered"));
        }
        None
    }

    /// RFC 4616: `[authzid] NUL authcid NUL password`.
    async fn plain(&mut self, initial: Option<String>) -> Result<Result<Credentials, Reply>, End> {
        let text = match self.response("", initial).await? {
            Ok(text) => text,
            Err(reply) => return Ok(Err(reply)),
        };
        let mut parts = text.split('\0');
        Ok(match (parts.next(), parts.next(), parts.next(), parts.next()) {
            // Acting as somebody else is nobody's right here.
            (Some(acting), Some(user), Some(password), None) if acting.is_empty() || acting == user => {
                Ok((Zeroizing::new(user.to_owned()), Zeroizing::new(password.to_owned())))
            }
            _ => Err(Reply::new(535, "5.7.8", "the credentials are not valid")),
        })
    }

    /// The two prompts of LOGIN, as old clients know them.
    async fn login(&mut self, initial: Option<String>) -> Result<Result<Credentials, Reply>, End> {
        let user = match self.response("VXNlcm5hbWU6", initial).await? {
            Ok(user) => user,
            Err(reply) => return Ok(Err(reply)),
        };
        Ok(self.response("UGFzc3dvcmQ6", None).await?.map(|password| (user, password)))
    }

    /// The decoded answer to a challenge, or the initial response.
    async fn response(
        &mut self,
        challenge: &str,
        initial: Option<String>,
    ) -> Result<Result<Zeroizing<String>, Reply>, End> {
        let line = match initial.map(Zeroizing::new) {
            // RFC 4954 §4: `=` is an empty initial response.
            Some(initial) if *initial == "=" => Zeroizing::new(String::new()),
            Some(initial) => initial,
            None => {
                self.conn.reply(&Reply::new(334, "", challenge));
                match self.conn.line(STRANGER_TIMEOUT).await? {
                    Ok(line) => Zeroizing::new(String::from_utf8_lossy(&line).into_owned()),
                    Err(error) => return Ok(Err(line_fault(error))),
                }
            }
        };
        if *line == "*" {
            return Ok(Err(Reply::new(501, "5.7.0", "sign-in given up")));
        }
        let decoded = BASE64.decode(line.as_bytes()).ok().and_then(|octets| String::from_utf8(octets).ok());
        Ok(decoded.map(Zeroizing::new).ok_or_else(|| Reply::new(501, "5.5.2", "that is not base64 of UTF-8")))
    }
}

/// User and password.
type Credentials = (Zeroizing<String>, Zeroizing<String>);

fn line_fault(error: LineError) -> Reply {
    match error {
        LineError::TooLong => Reply::new(500, "5.5.2", "the line is too long"),
        LineError::BareLineEnd => Reply::new(500, "5.5.2", "a bare CR or LF stands in the line"),
    }
}

fn command_fault(error: CommandError) -> Reply {
    match error {
        CommandError::Unknown => Reply::new(500, "5.5.1", error.to_string()),
        CommandError::NotImplemented => Reply::new(502, "5.5.1", error.to_string()),
        CommandError::Syntax(_) => Reply::new(501, "5.5.4", error.to_string()),
        CommandError::ReversePath(path) => path_fault(path, "5.1.7"),
        CommandError::ForwardPath(path) => path_fault(path, "5.1.3"),
    }
}

fn path_fault(error: PathError, enhanced: &str) -> Reply {
    let code = match error {
        PathError::Syntax | PathError::NotUtf8 => 501,
        PathError::SourceRoute | PathError::NoDomain | PathError::TooLong => 553,
    };
    Reply::new(code, enhanced, error.to_string())
}
