//! The IMAP4rev1 face of the embedded provider (RFC 3501).
//!
//! Promises: numbers of messages change for a client only at points where the
//! RFC allows it; a message that another session removed is served until its
//! EXPUNGE was told. Doesn't know: TLS, quotas, ACL.

mod fetch;
mod mailboxes;
mod messages;
mod search;
mod selected;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use imap_codec::CommandCodec;
use imap_codec::decode::Decoder;
use imap_codec::imap_types::auth::AuthMechanism;
use imap_codec::imap_types::command::{Command, CommandBody};
use imap_codec::imap_types::mailbox::Mailbox;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::faults::{Counted, ImapEffect};
use super::frame::Input;
use super::state::{Refusal, Shared};
use selected::Selected;

/// Longest command line, literals apart.
const MAX_LINE: usize = 64 * 1024;
/// Largest message that APPEND takes.
const MAX_APPEND: usize = 64 * 1024 * 1024;
/// Largest literal of any other command.
const MAX_LITERAL: usize = 256 * 1024;
/// Most literals of one command.
const MAX_LITERALS: usize = 64;
/// Output that collects before it is sent.
const FLUSH_AT: usize = 256 * 1024;

/// Why a command wasn't carried out.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// NO with this text.
    #[error("NO {0}")]
    No(String),
    /// BAD with this text.
    #[error("BAD {0}")]
    Bad(String),
    /// The connection broke, or has to end.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        // RFC 5530 §3.
        let code = match refusal {
            Refusal::Missing => "NONEXISTENT",
            Refusal::Exists => "ALREADYEXISTS",
            Refusal::Inbox | Refusal::Name => "CANNOT",
            Refusal::Storage => "SERVERBUG",
        };
        Failure::No(format!("[{code}] {refusal}"))
    }
}

/// The text of a tagged OK.
type Done = Result<String, Failure>;

fn ok(text: &str) -> Done {
    Ok(text.to_owned())
}

/// A command as it came.
struct Raw {
    /// All of it, but for the message of an APPEND, which is `{0}` here.
    text: Vec<u8>,
    message: Option<Vec<u8>>,
}

impl Raw {
    fn words(&self) -> (String, String) {
        let line = String::from_utf8_lossy(&self.text);
        let mut words = line.split_whitespace();
        let tag = words.next().unwrap_or("*").to_owned();
        let mut name = words.next().unwrap_or("").to_ascii_uppercase();
        if name == "UID" {
            name = format!("UID {}", words.next().unwrap_or("").to_ascii_uppercase());
        }
        (tag, name)
    }
}

struct Session {
    shared: Arc<Shared>,
    input: Input<OwnedReadHalf>,
    output: OwnedWriteHalf,
    out: Vec<u8>,
    /// Where in `out` the first literal of this answer begins.
    literal_at: Option<usize>,
    /// End the connection after so many octets of that literal.
    cut: Option<usize>,
    /// End the IDLE in hand after this.
    idle_ends: Option<Duration>,
    counted: Counted,
    user: Option<String>,
    selected: Option<Selected>,
}

/// Serves one connection to its end.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let mut kick = shared.kick.subscribe();
    let mut freeze = shared.freeze.subscribe();
    let counted = Counted::new(shared.clone());
    let (reader, output) = stream.into_split();
    let mut session = Session {
        shared,
        input: Input::new(reader),
        output,
        out: Vec::new(),
        literal_at: None,
        cut: None,
        idle_ends: None,
        counted,
        user: None,
        selected: None,
    };
    tokio::select! {
        result = session.run() => result,
        // The connection stays open, and nothing comes of it any more.
        _ = freeze.changed() => std::future::pending().await,
        _ = kick.changed() => {
            let text = kick.borrow().1.clone();
            match text {
                Some(text) => session.output.write_all(format!("* BYE {text}\r\n").as_bytes()).await,
                None => Ok(()),
            }
        }
    }
}

impl Session {
    async fn run(&mut self) -> io::Result<()> {
        match self.shared.faults.at_greeting() {
            Some(ImapEffect::Bye(text)) => {
                self.push(&format!("* BYE {text}\r\n"));
                return self.flush().await;
            }
            Some(ImapEffect::Drop) => return Ok(()),
            Some(ImapEffect::Silence) => return std::future::pending().await,
            Some(ImapEffect::Delay(pause)) => tokio::time::sleep(pause).await,
            Some(ImapEffect::Octets(octets)) => self.out.extend_from_slice(&octets),
            Some(
                ImapEffect::No(_)
                | ImapEffect::Bad(_)
                | ImapEffect::BadAndBye(..)
                | ImapEffect::DropInLiteral(_)
                | ImapEffect::DropBeforeAnswer
                | ImapEffect::EndIdle(_),
            )
            | None => {}
        }
        match self.shared.character.greeting() {
            Some(text) => self.push(&format!("* OK {text}\r\n")),
            None => self.push(&format!("* OK [CAPABILITY {}] Tollgate demo provider\r\n", self.capabilities())),
        }
        self.flush().await?;
        loop {
            let raw = match self.read_command().await {
                Ok(Some(raw)) => raw,
                Ok(None) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                    self.push(&format!("* BYE {e}\r\n"));
                    return self.flush().await;
                }
                Err(e) => return Err(e),
            };
            if !self.command(raw).await? {
                return Ok(());
            }
        }
    }

    fn push(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    async fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            let out = std::mem::take(&mut self.out);
            self.output.write_all(&out).await?;
            self.output.flush().await?;
        }
        Ok(())
    }

    /// What this connection may use now.
    fn capabilities(&self) -> String {
        let caps = self.shared.caps;
        if let Some(list) = self.shared.character.capabilities(self.user.is_some()) {
            let mut names: Vec<&str> = list.split(' ').filter(|n| !self.shared.faults.imap_hidden(n)).collect();
            names.extend((self.user.is_none() && self.no_passwords()).then_some("LOGINDISABLED"));
            return names.join(" ");
        }
        let mut names = vec!["IMAP4rev1", "LITERAL+", "SASL-IR", "AUTH=PLAIN", "ID"];
        names.extend(["NAMESPACE", "UNSELECT", "CHILDREN", "SPECIAL-USE", "STATUS=SIZE"]);
        names.extend(caps.idle.then_some("IDLE"));
        names.extend(caps.move_.then_some("MOVE"));
        names.extend(caps.uidplus.then_some("UIDPLUS"));
        names.retain(|name| !self.shared.faults.imap_hidden(name));
        names.join(" ")
    }

    /// Whether logins by password are hidden.
    fn no_passwords(&self) -> bool {
        self.shared.faults.imap_hidden("AUTH=PLAIN")
    }

    /// Whether this provider has an extension that some lack.
    fn has(&self, name: &str) -> bool {
        let caps = self.shared.caps;
        let plain = match name {
            "IDLE" => caps.idle,
            "MOVE" => caps.move_,
            "UIDPLUS" => caps.uidplus,
            _ => false,
        };
        self.shared.character.has(name).unwrap_or(plain)
    }

    /// The name in store of a mailbox that a client named.
    fn name_of(&self, mailbox: &Mailbox<'_>) -> Result<String, Failure> {
        Ok(self.shared.character.stored_name(&name_of(mailbox)?))
    }

    fn offers(&self, on: bool, name: &str) -> Result<(), Failure> {
        if on && !self.shared.faults.imap_hidden(name) {
            return Ok(());
        }
        Err(Failure::Bad(format!("{name} is not offered")))
    }

    /// Reads a whole command, asking for its literals.
    async fn read_command(&mut self) -> io::Result<Option<Raw>> {
        let mut raw = Raw { text: Vec::new(), message: None };
        for _ in 0..=MAX_LITERALS {
            let Some(line) = self.input.line(MAX_LINE).await? else { return Ok(None) };
            raw.text.extend_from_slice(&line);
            let Some((start, size, waits)) = literal(&line) else { return Ok(Some(raw)) };
            // A mailbox name may be a literal too, so the message is the one
            // that comes after a mailbox name.
            let is_message = raw.words().1 == "APPEND" && append_has_mailbox(&raw.text);
            if size > if is_message { MAX_APPEND } else { MAX_LITERAL } {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "literal too large"));
            }
            if waits {
                self.push("+ go on\r\n");
                self.flush().await?;
            }
            let octets = self.input.exact(size).await?;
            if is_message {
                raw.text.truncate(raw.text.len() - (line.len() - start));
                raw.text.extend_from_slice(b"{0}\r\n");
                raw.message = Some(octets);
            } else {
                raw.text.extend_from_slice(&octets);
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "too many literals"))
    }

    /// Carries out one command; answers whether the connection goes on.
    async fn command(&mut self, raw: Raw) -> io::Result<bool> {
        let (tag, name) = raw.words();
        self.shared.faults.note_command(self.counted.number(), &raw.text);
        let mut last = false;
        let done = match self.shared.faults.at_imap(&name) {
            Some(ImapEffect::No(text)) => Err(Failure::No(text)),
            Some(ImapEffect::Bad(text)) => Err(Failure::Bad(text)),
            Some(ImapEffect::Bye(text)) => {
                self.push(&format!("* BYE {text}\r\n"));
                self.flush().await?;
                return Ok(false);
            }
            Some(ImapEffect::BadAndBye(bad, bye)) => {
                self.push(&format!("{tag} BAD {bad}\r\n* BYE {bye}\r\n"));
                self.flush().await?;
                return Ok(false);
            }
            Some(ImapEffect::Drop) => return Ok(false),
            Some(ImapEffect::Silence) => return std::future::pending().await,
            Some(ImapEffect::Delay(pause)) => {
                tokio::time::sleep(pause).await;
                self.decode_and_do(raw).await
            }
            Some(ImapEffect::DropInLiteral(octets)) => {
                self.cut = Some(octets);
                self.decode_and_do(raw).await
            }
            Some(ImapEffect::DropBeforeAnswer) => {
                last = true;
                self.decode_and_do(raw).await
            }
            Some(ImapEffect::Octets(octets)) => {
                self.out.extend_from_slice(&octets);
                self.decode_and_do(raw).await
            }
            Some(ImapEffect::EndIdle(after)) => {
                self.idle_ends = Some(after);
                self.decode_and_do(raw).await
            }
            None => self.decode_and_do(raw).await,
        };
        if let Some(octets) = self.cut.take() {
            let end = self.literal_at.unwrap_or(0).saturating_add(octets);
            self.out.truncate(end);
            last = true;
        }
        self.literal_at = None;
        let answer = match done {
            Ok(text) => format!("{tag} OK {text}\r\n"),
            Err(Failure::No(text)) => format!("{tag} NO {text}\r\n"),
            Err(Failure::Bad(text)) => format!("{tag} BAD {text}\r\n"),
            Err(Failure::Io(e)) => return Err(e),
        };
        if last {
            self.flush().await?;
            return Ok(false);
        }
        if name != "LOGOUT" && !self.tell_changes(may_renumber(&name)) {
            self.flush().await?;
            return Ok(false);
        }
        self.push(&answer);
        self.flush().await?;
        Ok(name != "LOGOUT")
    }

    async fn decode_and_do(&mut self, raw: Raw) -> Done {
        let codec = CommandCodec::default();
        match codec.decode(&raw.text) {
            // With a message the codec saw `{0}` and the end of the command.
            Ok((rest, Command { body, .. })) if rest.is_empty() || raw.message.is_some() => {
                self.body(body, raw.message).await
            }
            _ => Err(Failure::Bad("not understood".to_owned())),
        }
    }

    async fn body(&mut self, body: CommandBody<'_>, message: Option<Vec<u8>>) -> Done {
        match body {
            CommandBody::Capability => {
                self.push(&format!("* CAPABILITY {}\r\n", self.capabilities()));
                ok("done")
            }
            CommandBody::Noop | CommandBody::Check => ok("done"),
            CommandBody::Logout => {
                self.push("* BYE until next time\r\n");
                ok("done")
            }
            CommandBody::Id { .. } => {
                self.push("* ID (\"name\" \"Tollgate demo provider\")\r\n");
                ok("done")
            }
            CommandBody::Login { username, password } => {
                self.sign_in(username.as_ref(), password.declassify().as_ref())
            }
            CommandBody::Authenticate { mechanism, initial_response } => {
                self.authenticate(mechanism, initial_response.map(|r| r.declassify().to_vec())).await
            }
            CommandBody::Fetch { sequence_set, macro_or_item_names, uid, .. } => {
                self.fetch(&sequence_set, macro_or_item_names, uid).await
            }
            CommandBody::Idle => self.idle().await,
            CommandBody::Append { mailbox, flags, date, .. } => {
                self.append(&mailbox, &flags, date.as_ref(), message.unwrap_or_default())
            }
            other => self.messages_or_mailboxes(other),
        }
    }

    /// RFC 7162 §3.1.8: whether SELECT asks for CONDSTORE, the only parameter
    /// that anyone here has.
    fn opens_with(&self, parameters: bool) -> Result<bool, Failure> {
        match parameters && !self.has("CONDSTORE") {
            true => Err(Failure::Bad("Unexpected extra arguments".to_owned())),
            false => Ok(parameters),
        }
    }

    fn messages_or_mailboxes(&mut self, body: CommandBody<'_>) -> Done {
        match body {
            CommandBody::Namespace => {
                self.user()?;
                let (prefix, delimiter) = (self.shared.character.prefix(), self.shared.character.delimiter());
                self.push(&format!("* NAMESPACE ((\"{prefix}\" \"{delimiter}\")) NIL NIL\r\n"));
                ok("done")
            }
            CommandBody::Select { mailbox, parameters } => {
                let condstore = self.opens_with(!parameters.is_empty())?;
                self.select(&mailbox, false, condstore)
            }
            CommandBody::Examine { mailbox, parameters } => {
                let condstore = self.opens_with(!parameters.is_empty())?;
                self.select(&mailbox, true, condstore)
            }
            CommandBody::Create { mailbox } => self.create(&mailbox),
            CommandBody::Delete { mailbox } => self.delete(&mailbox),
            CommandBody::Rename { from, to } => self.rename(&from, &to),
            CommandBody::Subscribe { mailbox } => self.subscribe(&mailbox, true),
            CommandBody::Unsubscribe { mailbox } => self.subscribe(&mailbox, false),
            CommandBody::List { reference, mailbox_wildcard } => self.list(&reference, &mailbox_wildcard),
            CommandBody::Lsub { reference, mailbox_wildcard } => self.lsub(&reference, &mailbox_wildcard),
            CommandBody::Status { mailbox, item_names } => self.status(&mailbox, &item_names),
            CommandBody::Close => self.close(true),
            CommandBody::Unselect => self.close(false),
            CommandBody::Expunge => self.expunge(None),
            CommandBody::ExpungeUid { sequence_set } => self.expunge(Some(&sequence_set)),
            CommandBody::Search { charset, criteria, uid } => self.search(charset.as_ref(), criteria.as_ref(), uid),
            CommandBody::Store { sequence_set, kind, response, flags, uid, .. } => {
                self.store(&sequence_set, kind, response, &flags, uid)
            }
            CommandBody::Copy { sequence_set, mailbox, uid } => self.copy(&sequence_set, &mailbox, uid, false),
            CommandBody::Move { sequence_set, mailbox, uid } => {
                self.offers(self.has("MOVE"), "MOVE")?;
                self.copy(&sequence_set, &mailbox, uid, true)
            }
            _ => Err(Failure::Bad("not offered".to_owned())),
        }
    }

    /// The signed-in user's login.
    fn user(&self) -> Result<String, Failure> {
        self.user.clone().ok_or_else(|| Failure::Bad("sign in first".to_owned()))
    }

    fn sign_in(&mut self, login: &[u8], password: &[u8]) -> Done {
        if self.user.is_some() {
            return Err(Failure::Bad("signed in already".to_owned()));
        }
        if self.no_passwords() {
            return Err(Failure::No("LOGIN failed.".to_owned()));
        }
        match self.shared.password_fits(login, password) {
            Some(login) => {
                let (most, refusal) = self.shared.character.connections();
                if self.shared.faults.connections() > self.shared.faults.connection_limit().unwrap_or(most) {
                    return Err(Failure::No(refusal.to_owned()));
                }
                self.user = Some(login.clone());
                let told = self.capabilities();
                match self.shared.character.welcome(&login) {
                    None => Ok(format!("[CAPABILITY {told}] signed in")),
                    Some((text, apart)) => {
                        if apart {
                            self.push(&format!("* CAPABILITY {told}\r\n"));
                        }
                        Ok(text)
                    }
                }
            }
            None => Err(Failure::No("[AUTHENTICATIONFAILED] wrong login or password".to_owned())),
        }
    }

    /// RFC 3501 §6.2.2, RFC 4616; the initial response by RFC 4959.
    async fn authenticate(&mut self, mechanism: AuthMechanism<'_>, initial: Option<Vec<u8>>) -> Done {
        if mechanism != AuthMechanism::Plain {
            return Err(Failure::No("[CANNOT] only PLAIN is offered".to_owned()));
        }
        let response = match initial {
            Some(response) => response,
            None => {
                self.push("+ \r\n");
                self.flush().await?;
                let line = self.input.line(MAX_LINE).await?.ok_or_else(ended)?;
                BASE64.decode(line.trim_ascii()).map_err(|_| Failure::Bad("cancelled, or not base64".to_owned()))?
            }
        };
        let parts: Vec<&[u8]> = response.split(|b| *b == 0).collect();
        match parts.as_slice() {
            [_, login, password] => self.sign_in(login, password),
            _ => Err(Failure::Bad("not a PLAIN response".to_owned())),
        }
    }

    /// RFC 2177: tells changes at once until the client says DONE.
    async fn idle(&mut self) -> Done {
        self.offers(self.has("IDLE"), "IDLE")?;
        self.user()?;
        let mut changes = self.shared.changes.subscribe();
        self.push("+ idling\r\n");
        let ends = self.idle_ends.take();
        let over = async {
            match ends {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over);
        loop {
            changes.borrow_and_update();
            if !self.tell_changes(true) {
                self.flush().await?;
                return Err(io::Error::from(io::ErrorKind::ConnectionAborted).into());
            }
            self.flush().await?;
            tokio::select! {
                line = self.input.line(MAX_LINE) => {
                    let line = line?.ok_or_else(ended)?;
                    if line.trim_ascii().eq_ignore_ascii_case(b"DONE") {
                        return ok("done");
                    }
                    return Err(Failure::Bad("DONE was expected".to_owned()));
                }
                () = &mut over => return ok("too long"),
                changed = changes.changed() => {
                    if changed.is_err() {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
            }
        }
    }
}

fn ended() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// RFC 3501 §7.4.1: no EXPUNGE while FETCH, STORE or SEARCH speak of numbers.
fn may_renumber(name: &str) -> bool {
    !matches!(name, "FETCH" | "STORE" | "SEARCH")
}

/// A literal announced at the end of a line: where its brace stands, its size,
/// and whether the client waits to be asked (RFC 3501 §4.3, RFC 7888).
fn literal(line: &[u8]) -> Option<(usize, usize, bool)> {
    let text = line.strip_suffix(b"\r\n").or_else(|| line.strip_suffix(b"\n"))?;
    let inner = text.strip_suffix(b"}")?;
    let start = memchr::memrchr(b'{', inner)?;
    let digits = &inner[start + 1..];
    let (digits, waits) = match digits.strip_suffix(b"+") {
        Some(digits) => (digits, false),
        None => (digits, true),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Digits only, so this fails only for what no machine can hold.
    let size = std::str::from_utf8(digits).ok()?.parse().unwrap_or(usize::MAX);
    Some((start, size, waits))
}

/// Whether an APPEND that ends in a literal already names its mailbox.
fn append_has_mailbox(text: &[u8]) -> bool {
    // tag SP "APPEND" SP mailbox SP … {n}: three blanks at the least before
    // the brace, or a literal (with its line end) where the mailbox stands.
    let Some(last) = text.strip_suffix(b"\n").and_then(|t| memchr::memrchr(b'{', t)) else { return false };
    let blanks = text[..last].iter().filter(|b| **b == b' ').count();
    blanks >= 3
}

/// The mailbox name in its wire form (modified UTF-7 stays as it is).
fn name_of(mailbox: &Mailbox<'_>) -> Result<String, Failure> {
    match mailbox {
        Mailbox::Inbox => Ok("INBOX".to_owned()),
        Mailbox::Other(other) => String::from_utf8(other.as_ref().to_vec())
            .map_err(|_| Failure::No("[CANNOT] a mailbox name is ASCII".to_owned())),
    }
}
