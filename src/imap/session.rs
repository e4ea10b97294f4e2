//! A session with one mail client: reading commands, signing in, telling
//! what changed, completing.
//!
//! Promises: one command at a time, answered with its tag; an EXPUNGE is told
//! only where RFC 9051 §7.5.1 allows it; a revoked key ends the session.
//! Doesn't know: what single commands do; each has its own file.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use bytes::Bytes;
use imap_codec::CommandCodec;
use imap_codec::decode::Decoder;
use imap_codec::imap_types::auth::AuthMechanism;
use imap_codec::imap_types::command::{Command, CommandBody};
use imap_codec::imap_types::mailbox::ListMailbox;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufWriter};
use tokio::sync::watch;

use crate::account::{AccountId, Accounts, Grants, Principal, Role};
use crate::downstream::{Connection, Stream};
use crate::upstream::imap::ImapError;
use crate::wire::imap::{CommandEvent, CommandReader, FrameError, Limits};

use super::mirror::{Mirror, OpError};
use super::pass::Passing;
use super::pool::PoolError;
use super::rows::ViewId;
use super::select::name_of;
use super::timing::Timing;
use super::uid::UpstreamUid;
use super::view::{Audience, Known};

/// A signed-in client may be silent for this long (RFC 9051 §5.4: at least 30 minutes).
pub const AUTOLOGOUT: Duration = Duration::from_secs(31 * 60);
/// BAD commands before the connection ends.
const MAX_BAD: u32 = 50;
/// Octets of responses that are collected before they are sent.
const WRITE_BUFFER: usize = 32 * 1024;
/// Octets read at once.
const READ_AT_ONCE: usize = 16 * 1024;

/// What works whatever the provider can do. IDLE is there by polling where
/// the provider has none.
pub const CAPABILITIES: &str = "IMAP4rev1 LITERAL+ SASL-IR ID NAMESPACE IDLE UNSELECT CHILDREN SPECIAL-USE";

/// What sessions share.
pub struct Services {
    /// Mirrors by account.
    pub mirrors: HashMap<AccountId, Arc<Mirror>>,
    /// Who may sign in.
    pub accounts: Arc<Accounts>,
    /// Largest message taken by APPEND.
    pub max_message_bytes: u64,
    /// Name in the greeting.
    pub hostname: String,
    /// How long things may take.
    pub timing: Timing,
}

/// Why a command was not completed.
#[derive(Debug, thiserror::Error)]
pub enum Fail {
    /// NO with a response code.
    #[error("NO [{0}] {1}")]
    No(&'static str, String),
    /// NO without one.
    #[error("NO {0}")]
    Refused(String),
    /// BAD.
    #[error("BAD {0}")]
    Bad(String),
    /// The connection has to end, as where a passed-through mailbox lost its
    /// own.
    #[error("BYE {0}")]
    Bye(String),
    /// The connection has to end inside a response that can't be finished:
    /// without a word, since a word would be taken for the rest of it.
    #[error("{0}")]
    Cut(String),
    /// The client is gone.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<OpError> for Fail {
    fn from(e: OpError) -> Fail {
        let text = e.to_string();
        match e {
            OpError::Unavailable(_) | OpError::Store(_) => Fail::No("UNAVAILABLE", text),
            OpError::Refused(_) => Fail::Refused(text),
            OpError::Gone => Fail::No("EXPUNGEISSUED", text),
            OpError::Cannot(_) => Fail::No("CANNOT", text),
        }
    }
}

impl From<PoolError> for Fail {
    fn from(e: PoolError) -> Fail {
        match e {
            PoolError::Limit => Fail::No("LIMIT", e.to_string()),
            PoolError::Unavailable(text) => Fail::No("UNAVAILABLE", text),
        }
    }
}

impl From<ImapError> for Fail {
    fn from(e: ImapError) -> Fail {
        match e {
            ImapError::No { text, code } => match code.as_deref().and_then(passed_code) {
                Some(code) => Fail::No(code, text),
                None => Fail::Refused(format!("the provider answered NO: {text}")),
            },
            ImapError::Bad { .. } => Fail::Refused(e.to_string()),
            other => Fail::No("UNAVAILABLE", other.to_string()),
        }
    }
}

/// What the provider's refusal means to programs (RFC 9051 §7.1, RFC 5530 §3),
/// where it means the same to a client of ours.
pub(super) fn passed_code(code: &[u8]) -> Option<&'static str> {
    const PASSED: [&str; 11] = [
        "ALREADYEXISTS",
        "CANNOT",
        "EXPUNGEISSUED",
        "HASCHILDREN",
        "INUSE",
        "LIMIT",
        "NONEXISTENT",
        "NOPERM",
        "OVERQUOTA",
        "SERVERBUG",
        "TRYCREATE",
    ];
    PASSED.into_iter().find(|p| code.eq_ignore_ascii_case(p.as_bytes()))
}

/// Who is signed in and what that opens.
pub(super) struct Signed {
    pub(super) principal: Principal,
    pub(super) mirror: Arc<Mirror>,
    pub(super) audience: Audience,
}

impl Signed {
    pub(super) fn is_agent(&self) -> bool {
        self.principal.role == Role::Agent
    }

    /// Whether it is the operator's console: it sees what people see, and
    /// only reads.
    pub(super) fn is_console(&self) -> bool {
        self.principal.role == Role::Person && self.principal.grants != Grants::Person
    }
}

/// A selected view.
pub(super) struct Viewing {
    pub(super) id: ViewId,
    pub(super) known: Known,
    /// The state's clock up to which flags were told.
    pub(super) told: u64,
    /// How many sets of flags were in use when keywords were last told.
    pub(super) flag_sets: usize,
    /// How many keywords were told; none is ever taken back.
    pub(super) keywords: usize,
    pub(super) read_only: bool,
    pub(super) uidvalidity: u32,
    /// Header length of the message asked for last, for partials.
    pub(super) header_len: Option<(UpstreamUid, u64)>,
}

/// What is selected.
pub(super) enum Selection {
    Nothing,
    View(Box<Viewing>),
    Pass(Box<Passing>),
}

/// Where responses go, and where commands come from.
pub(super) type Out = BufWriter<Stream>;

/// One session.
pub struct Session {
    pub(super) out: Out,
    pub(super) reader: CommandReader,
    pub(super) services: Arc<Services>,
    pub(super) login_allowed: bool,
    pub(super) signed: Option<Signed>,
    pub(super) selection: Selection,
    /// The FETCH in hand has `RFC822.PEEK`.
    pub(super) rfc822_peek: bool,
    pub(super) login_failures: u32,
    bad: u32,
    ended: bool,
    /// Ended by LOGOUT.
    logged_out: bool,
    shutdown: watch::Receiver<bool>,
    /// When the connection began.
    began: Instant,
    /// When the command in hand began to be read.
    asked: Instant,
}

/// Serves one client until it or we end.
pub async fn serve(stream: Stream, peer: SocketAddr, services: Arc<Services>, shutdown: watch::Receiver<bool>) {
    // Where STARTTLS is offered, it comes before a sign-in; plain listeners
    // have none and take clients of this machine only.
    let login_allowed = stream.is_tls() || (peer.ip().to_canonical().is_loopback() && !stream.can_start_tls());
    let mut session = Session::new(stream, login_allowed, services, shutdown);
    if let Err(e) = session.run("OK").await {
        tracing::debug!(%peer, "IMAP session ended: {e}");
    }
    let _ = session.out.shutdown().await;
    if session.logged_out {
        // A connection between commands serves others.
        session.leave().await;
    }
}

impl Session {
    pub(super) fn new(
        stream: Stream,
        login_allowed: bool,
        services: Arc<Services>,
        shutdown: watch::Receiver<bool>,
    ) -> Session {
        let limits = Limits { append: services.max_message_bytes, ..Limits::default() };
        Session {
            out: BufWriter::with_capacity(WRITE_BUFFER, stream),
            reader: CommandReader::new(limits),
            services,
            login_allowed,
            signed: None,
            selection: Selection::Nothing,
            rfc822_peek: false,
            login_failures: 0,
            bad: 0,
            ended: false,
            logged_out: false,
            shutdown,
            began: Instant::now(),
            asked: Instant::now(),
        }
    }

    /// Greets with this condition and serves.
    pub(super) async fn run(&mut self, greeting: &str) -> Result<(), Fail> {
        let host = self.services.hostname.clone();
        let caps = self.capability_line();
        self.line(&format!("* {greeting} [CAPABILITY {caps}] {host} Tollgate ready")).await?;
        self.out.flush().await?;
        while !self.ended {
            match self.reader.next() {
                Ok(Some(event)) => {
                    let done = self.event(event).await;
                    match done {
                        Ok(()) => {}
                        Err(Fail::Io(e)) => return Err(e.into()),
                        Err(Fail::Cut(why)) => {
                            self.out.flush().await?;
                            return Err(Fail::Cut(why));
                        }
                        Err(other) => {
                            let text = other.to_string();
                            self.line(&format!("* {}", clean(&text))).await?;
                            self.ended = true;
                        }
                    }
                    self.out.flush().await?;
                    self.asked = Instant::now();
                }
                Ok(None) => {
                    if !self.fill().await? {
                        return Ok(());
                    }
                }
                Err(e) => return self.frame_error(&e).await,
            }
        }
        Ok(())
    }

    async fn frame_error(&mut self, e: &FrameError) -> Result<(), Fail> {
        self.line(&format!("* BAD {}", clean(&e.to_string()))).await?;
        self.line("* BYE the rest can't be read").await?;
        Ok(self.out.flush().await?)
    }

    /// Reads more octets; false at the end.
    pub(super) async fn fill(&mut self) -> Result<bool, Fail> {
        let limit = if self.signed.is_some() { AUTOLOGOUT } else { self.left_before_login() };
        let mut buf = [0u8; READ_AT_ONCE];
        let mut shutdown = self.shutdown.clone();
        let mut revoked = self.signed.as_ref().map(|s| s.principal.revoked.clone());
        let why_revoked = self.signed.as_ref().map_or("", |s| s.principal.why_revoked());
        let revocation = async {
            match &mut revoked {
                Some(r) => drop(r.wait_for(|gone| *gone).await),
                None => std::future::pending().await,
            }
        };
        let bye = tokio::select! {
            n = self.out.read(&mut buf) => {
                let n = n?;
                self.reader.push(&buf[..n]);
                return Ok(n > 0);
            }
            () = tokio::time::sleep(limit) => "silent for too long",
            _ = shutdown.wait_for(|stop| *stop) => "the gateway is stopping",
            () = revocation => why_revoked,
        };
        self.line(&format!("* BYE {bye}")).await?;
        self.out.flush().await?;
        self.ended = true;
        Ok(false)
    }

    /// How long a client that hasn't signed in may still take: for this
    /// command, however slowly its octets come, and in all.
    fn left_before_login(&self) -> Duration {
        let timing = &self.services.timing;
        let command = timing.before_login.saturating_sub(self.asked.elapsed());
        command.min(timing.until_login.saturating_sub(self.began.elapsed()))
    }

    /// Writes one line.
    pub(super) async fn line(&mut self, text: &str) -> Result<(), Fail> {
        self.out.write_all(text.as_bytes()).await?;
        Ok(self.out.write_all(b"\r\n").await?)
    }

    /// Writes octets.
    pub(super) async fn write(&mut self, octets: &[u8]) -> Result<(), Fail> {
        Ok(self.out.write_all(octets).await?)
    }

    async fn event(&mut self, event: CommandEvent) -> Result<(), Fail> {
        match event {
            CommandEvent::Command(raw) => self.command(raw).await,
            CommandEvent::NeedContinuation { .. } => self.line("+ OK").await,
            CommandEvent::LiteralRefused { tag, .. } => {
                let tag = String::from_utf8_lossy(&tag).into_owned();
                self.line(&format!("{tag} NO [TOOBIG] the literal is too large")).await
            }
            CommandEvent::AppendHead { line, len, sync } => self.append(line, len, sync).await,
            // Both follow a head and are read by `append`.
            CommandEvent::AppendChunk(_) | CommandEvent::AppendTail(_) => Ok(()),
        }
    }

    async fn command(&mut self, raw: Bytes) -> Result<(), Fail> {
        let rewritten = super::section::without_rfc822_peek(&raw);
        self.rfc822_peek = rewritten.is_some();
        let (tag, command) = match CommandCodec::default().decode(rewritten.as_deref().unwrap_or(&raw)) {
            Ok(([], command)) => (command.tag.as_ref().to_owned(), command),
            _ => return self.undecoded(&raw).await,
        };
        self.note_asked(&command.body);
        if let Err(e) = sane_names(&command.body) {
            return self.complete(&tag, Err(e)).await;
        }
        if let Selection::Pass(_) = &self.selection
            && self.passes(&command)
        {
            return self.pass_command(&tag, &raw, &command).await;
        }
        let done = self.dispatch(&tag, &command).await;
        if matches!(command.body, CommandBody::StartTLS) && done.is_ok() {
            // Its OK went out before the handshake.
            return Ok(());
        }
        self.complete(&tag, done).await
    }

    /// STARTTLS (RFC 9051 §6.2.1). Octets that wait behind the command were
    /// sent without protection: they end the connection.
    async fn start_tls(&mut self, tag: &str) -> Result<String, Fail> {
        if !self.out.get_ref().can_start_tls() {
            return Err(Fail::Bad("STARTTLS is not offered here".into()));
        }
        if self.reader.take_buffered() > 0 {
            return Err(Fail::Bye("nothing may follow STARTTLS".into()));
        }
        self.line(&format!("{tag} OK begin TLS")).await?;
        self.out.flush().await?;
        self.out.get_mut().start_tls().await?;
        self.login_allowed = true;
        Ok(String::new())
    }

    /// A command that the decoder doesn't know.
    async fn undecoded(&mut self, raw: &Bytes) -> Result<(), Fail> {
        let end = raw.iter().position(|b| *b == b' ' || *b == b'\r').unwrap_or(raw.len());
        let tag = String::from_utf8_lossy(&raw[..end]).into_owned();
        let fine = !tag.is_empty() && tag.bytes().all(|b| b.is_ascii_graphic() && !b"(){%*\"\\+".contains(&b));
        if fine && self.passes_raw(raw, end) {
            return self.pass_raw(&tag, raw).await;
        }
        let tag = if fine { tag } else { "*".to_owned() };
        self.complete(&tag, Err(Fail::Bad("the command is not known or not well formed".into()))).await
    }

    /// Ends a command with its tagged response.
    pub(super) async fn complete(&mut self, tag: &str, done: Result<String, Fail>) -> Result<(), Fail> {
        match done {
            Ok(text) => self.line(&format!("{tag} OK {text}")).await,
            Err(Fail::No(code, text)) => self.line(&format!("{tag} NO [{code}] {}", clean(&text))).await,
            Err(Fail::Refused(text)) => self.line(&format!("{tag} NO {}", clean(&text))).await,
            Err(Fail::Bad(text)) => {
                self.bad += 1;
                self.line(&format!("{tag} BAD {}", clean(&text))).await?;
                if self.bad > MAX_BAD {
                    return Err(Fail::Bye("too many bad commands".into()));
                }
                Ok(())
            }
            Err(e @ (Fail::Bye(_) | Fail::Cut(_) | Fail::Io(_))) => Err(e),
        }
    }

    async fn dispatch(&mut self, tag: &str, command: &Command<'_>) -> Result<String, Fail> {
        match &command.body {
            CommandBody::Capability => {
                let caps = self.capability_line();
                self.line(&format!("* CAPABILITY {caps}")).await?;
                return Ok("done".into());
            }
            CommandBody::Logout => {
                self.line("* BYE until next time").await?;
                self.ended = true;
                self.logged_out = true;
                return Ok("done".into());
            }
            CommandBody::Id { .. } => {
                let version = env!("CARGO_PKG_VERSION");
                self.line(&format!("* ID (\"name\" \"Tollgate\" \"version\" \"{version}\")")).await?;
                return Ok("done".into());
            }
            CommandBody::StartTLS => return self.start_tls(tag).await,
            CommandBody::Noop if self.signed.is_none() => return Ok("done".into()),
            CommandBody::Login { username, password } => {
                return self.sign_in_octets(username.as_ref(), password.declassify().as_ref()).await;
            }
            CommandBody::Authenticate { mechanism, initial_response } => {
                let initial = initial_response.as_ref().map(|r| r.declassify().to_vec());
                return self.authenticate(mechanism, initial).await;
            }
            _ => {}
        }
        if self.signed.is_none() {
            return Err(Fail::Bad("sign in first".into()));
        }
        self.signed_command(tag, &command.body).await
    }

    async fn signed_command(&mut self, tag: &str, body: &CommandBody<'_>) -> Result<String, Fail> {
        self.permit(body)?;
        match body {
            CommandBody::Noop | CommandBody::Check => {
                self.freshen().await;
                self.tell(true).await?;
                Ok("done".into())
            }
            CommandBody::Namespace => self.namespace().await,
            CommandBody::Select { mailbox, .. } => self.select(mailbox, false).await,
            CommandBody::Examine { mailbox, .. } => self.select(mailbox, true).await,
            CommandBody::Unselect => self.unselect(false).await,
            CommandBody::Close => self.unselect(true).await,
            CommandBody::List { reference, mailbox_wildcard } => self.list(reference, mailbox_wildcard, false).await,
            CommandBody::Lsub { reference, mailbox_wildcard } => self.list(reference, mailbox_wildcard, true).await,
            CommandBody::Status { mailbox, item_names } => self.status(mailbox, item_names).await,
            CommandBody::Create { mailbox } => self.manage(b"CREATE", &[mailbox]).await,
            CommandBody::Delete { mailbox } => self.manage(b"DELETE", &[mailbox]).await,
            CommandBody::Rename { from, to } => self.manage(b"RENAME", &[from, to]).await,
            CommandBody::Subscribe { mailbox } => self.subscribe(mailbox, true).await,
            CommandBody::Unsubscribe { mailbox } => self.subscribe(mailbox, false).await,
            CommandBody::Idle => self.idle(tag).await,
            CommandBody::Fetch { sequence_set, macro_or_item_names, uid, modifiers } if modifiers.is_empty() => {
                self.fetch(sequence_set, macro_or_item_names, *uid).await
            }
            CommandBody::Search { criteria, uid, charset } => self.search(charset.as_ref(), criteria, *uid).await,
            CommandBody::Store { sequence_set, kind, response, flags, uid, modifiers } if modifiers.is_empty() => {
                self.store(sequence_set, *kind, *response, flags, *uid).await
            }
            CommandBody::Copy { sequence_set, mailbox, uid } => self.copy(sequence_set, mailbox, *uid, false).await,
            CommandBody::Move { sequence_set, mailbox, uid } => self.copy(sequence_set, mailbox, *uid, true).await,
            CommandBody::Expunge => self.expunge(None).await,
            CommandBody::ExpungeUid { sequence_set } => self.expunge(Some(sequence_set)).await,
            _ => Err(Fail::Bad("the command is not offered here".into())),
        }
    }

    /// Before the sign-in nothing says which account's provider it will be.
    pub(super) fn capability_line(&self) -> String {
        match (&self.signed, self.login_allowed) {
            (Some(s), _) => {
                let offers = s.mirror.state().offers;
                let uidplus = if offers.uidplus { " UIDPLUS" } else { "" };
                let moves = if offers.moves { " MOVE" } else { "" };
                format!("{CAPABILITIES}{uidplus}{moves}")
            }
            (None, _) if self.out.get_ref().can_start_tls() => format!("{CAPABILITIES} STARTTLS LOGINDISABLED"),
            (None, true) => format!("{CAPABILITIES} AUTH=PLAIN"),
            (None, false) => format!("{CAPABILITIES} LOGINDISABLED"),
        }
    }

    async fn authenticate(&mut self, mechanism: &AuthMechanism<'_>, initial: Option<Vec<u8>>) -> Result<String, Fail> {
        if *mechanism != AuthMechanism::Plain {
            return Err(Fail::Refused("only the mechanism PLAIN is offered".into()));
        }
        let response = match initial {
            Some(r) => r,
            None => {
                self.line("+ ").await?;
                self.out.flush().await?;
                let line = self.read_line().await?;
                if line == "*" {
                    return Err(Fail::Bad("cancelled".into()));
                }
                let engine = base64::engine::general_purpose::STANDARD;
                engine.decode(line).map_err(|_| Fail::Bad("not base64".into()))?
            }
        };
        // RFC 4616 §2: [authzid] NUL authcid NUL passwd
        let mut parts = response.split(|b| *b == 0);
        let (Some(authzid), Some(user), Some(password), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Fail::Bad("not a PLAIN response".into()));
        };
        if !authzid.is_empty() && authzid != user {
            return Err(Fail::No("AUTHORIZATIONFAILED", "nobody may act for another".into()));
        }
        self.sign_in_octets(user, password).await
    }

    /// Reads one line outside of commands, without its CRLF.
    pub(super) async fn read_line(&mut self) -> Result<String, Fail> {
        loop {
            match self.reader.next_line() {
                Ok(Some(line)) => {
                    let text = String::from_utf8_lossy(&line);
                    return Ok(text.trim_end_matches(['\r', '\n']).to_owned());
                }
                Ok(None) => {
                    if !self.fill().await? {
                        return Err(Fail::Io(io::ErrorKind::UnexpectedEof.into()));
                    }
                }
                Err(e) => return Err(Fail::Bye(e.to_string())),
            }
        }
    }

    /// The signed-in side, which [`Session::dispatch`] has checked.
    pub(super) fn signed(&self) -> Result<&Signed, Fail> {
        self.signed.as_ref().ok_or_else(|| Fail::Bad("sign in first".into()))
    }

    pub(super) fn mirror(&self) -> Result<Arc<Mirror>, Fail> {
        Ok(self.signed()?.mirror.clone())
    }

    /// Syncs a selected view when its last sync is old. A provider that can't
    /// be reached doesn't make NOOP fail.
    pub(super) async fn freshen(&mut self) {
        if let (Some(signed), Selection::View(_)) = (&self.signed, &self.selection)
            && let Err(e) = signed.mirror.freshen().await
        {
            tracing::debug!("no sync: {e}");
        }
    }

    /// Tells what changed in the selected view.
    pub(super) async fn tell(&mut self, expunges: bool) -> Result<(), Fail> {
        let Session { signed: Some(signed), selection: Selection::View(viewing), out, .. } = self else {
            return Ok(());
        };
        let lines = changes(&signed.mirror, viewing, expunges)?;
        for line in lines {
            out.write_all(line.as_bytes()).await?;
        }
        Ok(())
    }
}

/// The untagged responses that bring a client up to date.
pub(super) fn changes(mirror: &Mirror, viewing: &mut Viewing, expunges: bool) -> Result<Vec<String>, Fail> {
    let mut lines = Vec::new();
    let mut state = mirror.state();
    let Some(view) = state.views.get_mut(&viewing.id) else {
        return Err(Fail::Bye("the mailbox is no longer shown".into()));
    };
    // RFC 9051 §2.3.1.1: a new UIDVALIDITY can't be told inside a session.
    if view.uidvalidity != viewing.uidvalidity {
        return Err(Fail::Bye("the mailbox was rebuilt, please select it again".into()));
    }
    let told = viewing.known.catch_up(view, expunges);
    lines.extend(told.expunged.iter().map(|n| format!("* {n} EXPUNGE\r\n")));
    if let Some(n) = told.exists {
        lines.push(format!("* {n} EXISTS\r\n"));
    }
    if let Some(n) = told.recent {
        lines.push(format!("* {n} RECENT\r\n"));
    }
    let Some(view) = state.view(viewing.id) else { return Ok(lines) };
    lines.extend(viewing.new_keywords(&state).iter().map(|l| format!("{l}\r\n")));
    if state.clock != viewing.told {
        for uid in viewing.known.uids() {
            let Some(entry) = view.get(*uid) else { continue };
            if state.flags_at(entry.source) > viewing.told
                && let Some(seq) = viewing.known.seq(*uid)
            {
                let flags = viewing.flags(&state, *uid, entry).join(" ");
                lines.push(format!("* {seq} FETCH (UID {uid} FLAGS ({flags}))\r\n"));
            }
        }
        viewing.told = state.clock;
    }
    Ok(lines)
}

/// Refuses names that no quoted string can carry (RFC 9051 §9, `quoted`): a
/// name that another octet more or less could turn into another mailbox's.
fn sane_names(body: &CommandBody<'_>) -> Result<(), Fail> {
    let names: Vec<Vec<u8>> = match body {
        CommandBody::Select { mailbox, .. }
        | CommandBody::Examine { mailbox, .. }
        | CommandBody::Status { mailbox, .. }
        | CommandBody::Create { mailbox }
        | CommandBody::Delete { mailbox }
        | CommandBody::Subscribe { mailbox }
        | CommandBody::Unsubscribe { mailbox }
        | CommandBody::Copy { mailbox, .. }
        | CommandBody::Move { mailbox, .. } => vec![name_of(mailbox)],
        CommandBody::Rename { from, to } => vec![name_of(from), name_of(to)],
        CommandBody::List { reference, mailbox_wildcard } | CommandBody::Lsub { reference, mailbox_wildcard } => {
            let pattern = match mailbox_wildcard {
                ListMailbox::Token(t) => t.as_ref().to_vec(),
                ListMailbox::String(s) => s.as_ref().to_vec(),
            };
            vec![name_of(reference), pattern]
        }
        _ => Vec::new(),
    };
    if names.iter().any(|name| !is_sane(name)) {
        return Err(Fail::No("CANNOT", "a mailbox name can't hold a line end or a NUL".into()));
    }
    Ok(())
}

/// Whether a name holds nothing that ends lines or strings.
pub(super) fn is_sane(name: &[u8]) -> bool {
    !name.iter().any(|b| matches!(b, 0 | b'\r' | b'\n'))
}

/// Text of another side or of an error, fit to stand in a response line.
pub(super) fn clean(text: &str) -> String {
    let cleaned: String =
        text.chars().map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' }).take(400).collect();
    if cleaned.is_empty() { "refused".into() } else { cleaned }
}
