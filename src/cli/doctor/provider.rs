//! The checks at the provider, over connections of their own.
//!
//! Promises: a capability counts only after it was used; nothing is changed
//! and nothing is sent. Doesn't know: the gateway.

use std::time::Duration;

use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::super::exit::Exit;
use super::oracle::{self, Oracle};
use super::report::{Check, Done, Fault};
use super::{CHECK_TIME, DoctorArgs};
use crate::account::secret;
use crate::config::{Network, TlsMode};
use crate::upstream::imap::{Connection, ImapError, ImapTarget, Part, Response, UntaggedData};
use crate::upstream::net::{self, ConnectError};
use crate::upstream::smtp::{Submission, SubmissionError};

/// How long IDLE is held: a server that doesn't mean it ends it at once.
const IDLE_HOLD: Duration = Duration::from_millis(500);
/// Silence after which a command is given up.
const SILENCE: Duration = Duration::from_secs(20);
/// Newest messages whose changes are asked for.
const CHANGES_OF: u32 = 1000;
/// A provider's clock may be ahead of ours by this much.
const CLOCK_SLACK: i64 = 120;
/// The capabilities that the gateway makes use of.
const USED: [&str; 11] = [
    "IDLE",
    "UIDPLUS",
    "MOVE",
    "CONDSTORE",
    "NAMESPACE",
    "SPECIAL-USE",
    "UNSELECT",
    "LITERAL+",
    "LITERAL-",
    "SASL-IR",
    "AUTH=PLAIN",
];
const CHANGES_MAIL: &str = "no way to try it changes nothing";
const NO_CONNECTION: &str = "there is no signed-in connection";

/// The provider of an account.
pub(super) struct Upstream {
    network: Result<Network, &'static str>,
    password: Option<Zeroizing<String>>,
    connection: Option<Connection>,
    /// Whether a sign-in succeeded; without one nobody signs in again.
    signs_in: bool,
}

impl Upstream {
    pub(super) fn new(network: Network) -> Upstream {
        Upstream { network: Ok(network), password: None, connection: None, signs_in: false }
    }

    /// One whose address isn't known, and why.
    pub(super) fn unknown(why: &'static str) -> Upstream {
        Upstream { network: Err(why), password: None, connection: None, signs_in: false }
    }

    pub(super) async fn close(mut self) {
        if let Some(connection) = self.connection.take() {
            // Nothing more is wanted of it.
            let _ = tokio::time::timeout(SILENCE, connection.logout()).await;
        }
    }

    /// All checks, in an order in which each rests on those before it.
    pub(super) async fn checks(&mut self, args: &DoctorArgs) -> Vec<Check> {
        let retries = args.retry;
        let mut checks = Vec::new();
        let network = match self.network.clone() {
            Ok(network) => network,
            Err(why) => return vec![Check::known("imap.login", "signs in", Ok(Done::not_tried(why)))],
        };
        let mut password = None;
        checks.push(
            Check::run(
                "password",
                "fetches the provider password from where it is kept",
                retries,
                CHECK_TIME,
                async || {
                    let text = secret::fetch(&network.secret).await;
                    password = Some(Zeroizing::new(text.map_err(|e| Fault::new("password", Exit::Config, e))?));
                    Ok(Done::ok("there is one", json!({})))
                },
            )
            .await,
        );
        self.password = password;
        let (tcp, tls) = match network.imap.tls {
            TlsMode::Implicit => ("connects and speaks the TLS handshake", true),
            TlsMode::StartTls | TlsMode::None => ("connects", false),
        };
        checks.push(
            Check::run("imap.connect", tcp, retries, CHECK_TIME, async || {
                let stream = net::connect(&network.imap).await.map_err(|e| connect_fault(&e))?;
                let facts = json!({ "tls": stream.is_tls(), "tls_first": tls });
                Ok(Done::ok(format!("{}:{}", network.imap.host, network.imap.port), facts))
            })
            .await,
        );
        let does = "connects, speaks TLS as configured, signs in, asks for capabilities";
        checks.push(match &self.password {
            None => Check::known("imap.login", does, Ok(Done::not_tried("there is no password"))),
            Some(_) => Check::run("imap.login", does, retries, CHECK_TIME, async || self.login().await).await,
        });
        self.capabilities(retries, &mut checks).await;
        checks.push(self.octets(args).await);
        let does = "connects, says EHLO, speaks TLS as configured, signs in; sends no message";
        checks.push(match &self.password {
            None => Check::known("smtp.login", does, Ok(Done::not_tried("there is no password"))),
            Some(password) => {
                Check::run("smtp.login", does, retries, CHECK_TIME, async || submission(&network, password).await).await
            }
        });
        checks
    }

    async fn login(&mut self) -> Result<Done, Fault> {
        let connection = self.sign_in().await.map_err(|e| imap_fault(&e))?;
        let capabilities = connection.capabilities();
        let used: Vec<&str> = USED.into_iter().filter(|name| capabilities.has(name)).collect();
        let done = Done::ok(format!("signed in; it offers {}", used.join(" ")), json!({ "offers": used }));
        self.connection = Some(connection);
        self.signs_in = true;
        Ok(done)
    }

    async fn sign_in(&self) -> Result<Connection, ImapError> {
        let (Ok(network), Some(password)) = (&self.network, &self.password) else { return Err(ImapError::Closed) };
        let target =
            ImapTarget { endpoint: network.imap.clone(), user: network.imap_user.clone(), password: password.clone() };
        let mut connection = Connection::open(&target).await?;
        connection.set_deadline(SILENCE);
        Ok(connection)
    }

    /// The connection, or another where a fault ended it.
    pub(super) async fn connection(&mut self) -> Result<&mut Connection, ImapError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.sign_in().await?,
        };
        Ok(self.connection.insert(connection))
    }

    pub(super) fn signs_in(&self) -> bool {
        self.signs_in
    }

    /// One check that uses `capability`, where it is offered.
    async fn used(
        &mut self,
        (name, does): (&'static str, &'static str),
        capability: &'static str,
        retries: u32,
        work: impl AsyncFn(&mut Connection) -> Result<Done, ImapError>,
    ) -> Check {
        if !self.signs_in {
            return Check::known(name, does, Ok(Done::not_tried(NO_CONNECTION)));
        }
        Check::run(name, does, retries, CHECK_TIME, async || {
            let connection = self.connection().await.map_err(|e| imap_fault(&e))?;
            let offered = connection.capabilities().has(capability);
            if !capability.is_empty() && !offered {
                return Ok(Done::not_offered(format!("{capability} is not offered")));
            }
            let done = work(connection).await;
            if done.is_err() {
                // Whatever state it is in, the next check begins anew.
                self.connection = None;
            }
            done.map_err(|e| imap_fault(&e))
        })
        .await
    }

    async fn capabilities(&mut self, retries: u32, checks: &mut Vec<Check>) {
        let does = ("imap.idle", "enters IDLE in INBOX, waits, leaves it");
        checks.push(self.used(does, "IDLE", retries, idle).await);
        let does = ("imap.condstore", "STATUS, EXAMINE and FETCH with mod-sequences of INBOX");
        checks.push(self.used(does, "CONDSTORE", retries, condstore).await);
        let does = ("imap.namespace", "asks for the namespaces");
        checks.push(self.used(does, "NAMESPACE", retries, namespace).await);
        let does = ("imap.special-use", "lists all mailboxes, counts those with a special use");
        checks.push(self.used(does, "SPECIAL-USE", retries, special_use).await);
        let does = ("imap.literal", "sends a mailbox name as a literal, unasked where that is offered");
        checks.push(self.used(does, "", retries, literal).await);
        for (name, capability) in [("imap.uidplus", "UIDPLUS"), ("imap.move", "MOVE")] {
            let offered = self.connection.as_ref().is_some_and(|c| c.capabilities().has(capability));
            let result = match (self.signs_in, offered) {
                (false, _) => Done::not_tried(NO_CONNECTION),
                (true, true) => Done::not_tried(CHANGES_MAIL),
                (true, false) => Done::not_offered(format!("{capability} is not offered")),
            };
            checks.push(Check::known(name, "nothing: it changes a mailbox", Ok(result)));
        }
        let does = ("imap.clock", "compares the arrival time of the newest message with this machine's clock");
        checks.push(self.used(does, "", retries, clock).await);
    }

    /// The oracle, on the provider itself.
    async fn octets(&mut self, args: &DoctorArgs) -> Check {
        let (name, does) = ("imap.octets", "reads the newest messages of INBOX in every way and compares");
        if !self.signs_in {
            return Check::known(name, does, Ok(Done::not_tried(NO_CONNECTION)));
        }
        let limit = CHECK_TIME + oracle::DEFAULT_TIME;
        Check::run(name, does, args.retry, limit, async || {
            let connection = self.connection().await.map_err(|e| imap_fault(&e))?;
            let mut oracle = Oracle::new(args.limits());
            let read = oracle.mailbox(connection, "INBOX").await;
            let again = match &read {
                Ok(_) => {
                    // A new session must see the same.
                    self.connection = None;
                    let connection = self.connection().await.map_err(|e| imap_fault(&e))?;
                    oracle.compare(connection, "INBOX").await
                }
                Err(_) => Ok(()),
            };
            if read.is_err() || again.is_err() {
                self.connection = None;
            }
            judged(&oracle, read.and(again).err().map(|e| e.to_string()), Exit::Protocol)
        })
        .await
    }
}

/// What the oracle found, as the outcome of a check.
pub(super) fn judged(oracle: &Oracle, lost: Option<String>, exit: Exit) -> Result<Done, Fault> {
    let looked = oracle.looked();
    let labels = Labels::of(oracle);
    let findings: Vec<Value> = oracle
        .findings()
        .iter()
        .map(|f| json!({ "law": f.law.name(), "mailbox": labels.get(&f.mailbox), "uid": f.uid, "detail": f.detail }))
        .collect();
    let facts = json!({
        "mailboxes": looked.mailboxes, "messages": looked.messages, "octets": looked.octets,
        "read_again": looked.compared, "too_large": looked.too_large, "went": looked.went,
        "cut_short": looked.cut_short, "findings": findings, "count": oracle.count(),
    });
    if let Some(first) = oracle.findings().first() {
        let text = format!(
            "{} findings; the first: {} does not hold ({}) in {}, UID {}: {}",
            oracle.count(),
            first.law.name(),
            first.law.says(),
            first.mailbox,
            first.uid,
            first.detail
        );
        return Err(Fault { facts, ..Fault::new("inconsistent", exit, text) });
    }
    if let Some(why) = lost {
        return Err(Fault { facts, ..Fault::new("closed", Exit::Unavailable, why) });
    }
    let cut = if looked.cut_short { "; time or octets ran out before all were read" } else { "" };
    let text = format!(
        "{} messages of {} mailboxes, {} octets, agree{cut}; {} read again in a new session, {} passed over as too large",
        looked.messages, looked.mailboxes, looked.octets, looked.compared, looked.too_large
    );
    Ok(Done::ok(text, facts))
}

/// What mailboxes are called in a receipt.
struct Labels(Vec<String>);

impl Labels {
    fn of(oracle: &Oracle) -> Labels {
        let mut names: Vec<String> = oracle.findings().iter().map(|f| f.mailbox.clone()).collect();
        names.sort();
        names.dedup();
        Labels(names)
    }

    fn get(&self, name: &str) -> String {
        const OURS: [&str; 6] = ["Push", "Meeting", "Queue", "Info", "Silent", "All"];
        if name.eq_ignore_ascii_case("INBOX") {
            return "INBOX".to_owned();
        }
        let ours = OURS.into_iter().find(|leaf| {
            let parent = name.strip_suffix(leaf).map(|p| p.trim_end_matches(['/', '.']));
            parent.is_some_and(|p| {
                p.len() < name.len() - leaf.len() && (p == "Lanes" || p == "INBOX.Lanes" || p == "INBOX/Lanes")
            })
        });
        match (ours, self.0.iter().position(|n| n == name)) {
            (Some(leaf), _) => format!("Lanes/{leaf}"),
            (None, at) => format!("mailbox {}", at.map_or(0, |at| at + 1)),
        }
    }
}

async fn idle(connection: &mut Connection) -> Result<Done, ImapError> {
    connection.select(b"INBOX", true).await?;
    connection.idle_start().await?;
    let hold = tokio::time::sleep(IDLE_HOLD);
    tokio::pin!(hold);
    loop {
        tokio::select! {
            () = &mut hold => break,
            response = connection.next_response() => match response? {
                Response::Untagged(_) | Response::Continue(_) => {}
                Response::Tagged { .. } => {
                    connection.idle_over();
                    return Err(ImapError::Protocol("IDLE was ended by the server at once".into()));
                }
            },
        }
    }
    connection.idle_done().await?;
    Ok(Done::ok("entered and left", json!({})))
}

async fn condstore(connection: &mut Connection) -> Result<Done, ImapError> {
    let missing = |what: &str| ImapError::Protocol(format!("{what} tells no mod-sequence"));
    let status = connection.run(b"STATUS INBOX (HIGHESTMODSEQ)").await?.ok()?;
    let told = status.untagged.iter().find_map(|u| match u.parse() {
        UntaggedData::Status { items, .. } => items.iter().find(|(n, _)| n == "HIGHESTMODSEQ").map(|(_, v)| *v),
        _ => None,
    });
    told.ok_or_else(|| missing("STATUS"))?;
    let opened = connection.select(b"INBOX", true).await?;
    let highest = opened.highestmodseq.ok_or_else(|| missing("EXAMINE"))?;
    let mut changed = 0u32;
    if opened.exists > 0 {
        let from = opened.exists.saturating_sub(CHANGES_OF - 1).max(1);
        let command = format!("FETCH {from}:* (UID FLAGS) (CHANGEDSINCE {highest})");
        let outcome = connection.run(command.as_bytes()).await?.ok()?;
        for data in &outcome.untagged {
            let UntaggedData::Fetch { items, .. } = data.parse() else { continue };
            let modseq = items.modseq.ok_or_else(|| missing("FETCH"))?;
            if modseq <= highest {
                let why = "FETCH CHANGEDSINCE gives messages that did not change";
                return Err(ImapError::Protocol(why.into()));
            }
            changed += 1;
        }
    }
    let text = format!("mod-sequences are kept; {changed} messages changed while this ran");
    Ok(Done::ok(text, json!({ "changed": changed })))
}

async fn namespace(connection: &mut Connection) -> Result<Done, ImapError> {
    let outcome = connection.run(b"NAMESPACE").await?.ok()?;
    let told = outcome.untagged.iter().any(|u| u.text.to_ascii_uppercase().starts_with(b"* NAMESPACE"));
    if !told {
        return Err(ImapError::Protocol("NAMESPACE was answered without namespaces".into()));
    }
    Ok(Done::ok("told", json!({})))
}

async fn special_use(connection: &mut Connection) -> Result<Done, ImapError> {
    const USES: [&[u8]; 7] = [b"\\All", b"\\Archive", b"\\Drafts", b"\\Flagged", b"\\Junk", b"\\Sent", b"\\Trash"];
    let list = connection.list(b"", b"*").await?;
    let mut uses: Vec<String> = USES
        .iter()
        .filter(|u| list.iter().any(|m| m.flags.iter().any(|f| f.eq_ignore_ascii_case(u))))
        .map(|u| String::from_utf8_lossy(u).into_owned())
        .collect();
    uses.sort();
    let text = format!(
        "{} mailboxes, marked among them: {}",
        list.len(),
        if uses.is_empty() { "none".into() } else { uses.join(" ") }
    );
    Ok(Done::ok(text, json!({ "mailboxes": list.len(), "uses": uses })))
}

async fn literal(connection: &mut Connection) -> Result<Done, ImapError> {
    let unasked = ["LITERAL+", "LITERAL-"].into_iter().any(|c| connection.capabilities().has(c));
    let parts = [Part::Text(b"STATUS "), Part::Literal(b"INBOX"), Part::Text(b" (MESSAGES UIDNEXT)")];
    let outcome = connection.run_parts(&parts).await?.ok()?;
    let told = outcome.untagged.iter().any(|u| matches!(u.parse(), UntaggedData::Status { .. }));
    if !told {
        return Err(ImapError::Protocol("STATUS was answered without a status".into()));
    }
    Ok(Done::ok(if unasked { "taken unasked" } else { "taken after a continuation" }, json!({ "unasked": unasked })))
}

/// IMAP tells no time. What a message's arrival shows is only whether the
/// server's clock is ahead.
async fn clock(connection: &mut Connection) -> Result<Done, ImapError> {
    let opened = connection.select(b"INBOX", true).await?;
    if opened.exists == 0 {
        return Ok(Done::not_tried("INBOX is empty, and IMAP tells no time otherwise"));
    }
    let outcome = connection.run(b"FETCH * (UID INTERNALDATE)").await?.ok()?;
    let date = outcome.untagged.iter().find_map(|u| match u.parse() {
        UntaggedData::Fetch { items, .. } => items.internaldate,
        _ => None,
    });
    let arrived =
        date.and_then(|d| arrival(&d)).ok_or_else(|| ImapError::Protocol("INTERNALDATE can't be read".into()))?;
    let ahead = arrived - jiff::Timestamp::now().as_second();
    if ahead > CLOCK_SLACK {
        return Err(ImapError::Protocol(format!("the newest message arrives {ahead} s from now: one clock is wrong")));
    }
    Ok(Done::ok("the newest message is not from the future", json!({ "ahead": false })))
}

/// `dd-Mon-yyyy hh:mm:ss +zzzz` as seconds since 1970.
fn arrival(date: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(date).ok()?;
    jiff::Zoned::strptime("%d-%b-%Y %H:%M:%S %z", text.trim()).ok().map(|z| z.timestamp().as_second())
}

async fn submission(network: &Network, password: &str) -> Result<Done, Fault> {
    let submission =
        Submission::connect(&network.smtp, &network.smtp_user, password).await.map_err(|e| submission_fault(&e))?;
    let caps = submission.ehlo().clone();
    submission.quit().await;
    let facts = json!({
        "size": caps.size, "8bitmime": caps.eight_bit_mime, "smtputf8": caps.smtputf8,
        "pipelining": caps.pipelining, "dsn": caps.dsn,
    });
    let names = [
        ("8BITMIME", caps.eight_bit_mime),
        ("SMTPUTF8", caps.smtputf8),
        ("PIPELINING", caps.pipelining),
        ("DSN", caps.dsn),
    ];
    let offers: Vec<&str> = names.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect();
    Ok(Done::ok(format!("signed in; it offers {} (not tried: that takes a message)", offers.join(" ")), facts))
}

fn connect_fault(error: &ConnectError) -> Fault {
    let kind = match error {
        ConnectError::Unreachable { .. } => "unreachable",
        ConnectError::Timeout { .. } => "timeout",
        ConnectError::Tls { .. } => "tls",
    };
    Fault::new(kind, Exit::Unavailable, error)
}

/// What an error of the provider means.
pub(super) fn imap_fault(error: &ImapError) -> Fault {
    match error {
        ImapError::Connect(e) => connect_fault(e),
        ImapError::Auth { .. } => Fault { once: true, ..Fault::new("password_refused", Exit::NoPerm, error) },
        ImapError::Protocol(_) => Fault::new("protocol", Exit::Protocol, error),
        ImapError::Closed => Fault::new("closed", Exit::Unavailable, error),
        ImapError::Timeout => Fault::new("timeout", Exit::Unavailable, error),
        ImapError::No { .. } => Fault::new("refused", Exit::Protocol, error),
        ImapError::Bad { .. } => Fault::new("not_understood", Exit::Protocol, error),
        ImapError::TooLarge => Fault::new("too_large", Exit::Protocol, error),
    }
}

fn submission_fault(error: &SubmissionError) -> Fault {
    match error {
        SubmissionError::Connect(e) => connect_fault(e),
        SubmissionError::Auth(_) => Fault { once: true, ..Fault::new("password_refused", Exit::NoPerm, error) },
        SubmissionError::NoStartTls | SubmissionError::PlaintextInjected => Fault::new("tls", Exit::Unavailable, error),
        SubmissionError::Refused { .. } => Fault::new("refused", Exit::Unavailable, error),
        SubmissionError::Timeout(_) => Fault::new("timeout", Exit::Unavailable, error),
        SubmissionError::Io(_) | SubmissionError::Closed => Fault::new("closed", Exit::Unavailable, error),
        SubmissionError::NoMechanism
        | SubmissionError::NotOffered(_)
        | SubmissionError::TooLarge { .. }
        | SubmissionError::Reply(_)
        | SubmissionError::OutOfStep => Fault::new("protocol", Exit::Protocol, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailboxes_of_the_person_are_numbered_and_ours_are_named() {
        let labels = Labels(vec!["Divorce".into(), "Lanes/Push".into()]);
        for (name, label) in [
            ("inbox", "INBOX"),
            ("Lanes/Push", "Lanes/Push"),
            ("INBOX.Lanes.All", "Lanes/All"),
            ("Divorce", "mailbox 1"),
            ("Divorce/Lanes/All", "mailbox 0"),
            ("LanesAll", "mailbox 0"),
        ] {
            assert_eq!(labels.get(name), label, "{name}");
        }
    }

    #[test]
    fn arrival_times_are_read_with_their_zones() {
        assert_eq!(arrival(b" 1-Jan-1970 01:00:00 +0100"), Some(0));
        assert_eq!(arrival(b"01-Jan-1970 00:00:09 +0000"), Some(9));
        assert_eq!(arrival(b"yesterday"), None);
    }
}
