//! Faults that a test asks for.
//!
//! Promises: a rule acts only at the command that it names and only as often
//! as it says; without rules the provider behaves. Rules are asked in the
//! order in which they were added; the first that fits acts.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::state::Shared;

/// What stands for the greeting in a rule.
const GREETING: &str = "GREETING";

/// What happens at an IMAP command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImapEffect {
    /// The command isn't carried out; the tagged answer is `NO text`.
    No(String),
    /// The command isn't carried out; the tagged answer is `BAD text`.
    Bad(String),
    /// `* BYE text`, then the connection ends.
    Bye(String),
    /// The tagged answer is `BAD` with the first text, then `* BYE` with the
    /// second and the end, as where a provider throttles.
    BadAndBye(String, String),
    /// The connection ends without a word.
    Drop,
    /// The command is carried out, but the connection ends after this many
    /// octets of the first literal of its answer (or of the answer, if it has
    /// no literal).
    DropInLiteral(usize),
    /// The command is carried out, but the connection ends before its tagged
    /// answer.
    DropBeforeAnswer,
    /// The command is carried out after a pause.
    Delay(Duration),
    /// The command is read and nothing is ever answered.
    Silence,
    /// These octets are sent as they stand, then the command is carried out.
    Octets(Vec<u8>),
    /// At IDLE: the provider ends it by itself after a while, with OK.
    EndIdle(Duration),
}

/// Where in a submission something happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmtpAt {
    /// In place of the greeting.
    Greeting,
    /// At EHLO or HELO.
    Ehlo,
    /// At AUTH.
    Auth,
    /// At MAIL.
    Mail,
    /// At RCPT, for one recipient (as between `<` and `>`) or for all.
    Rcpt(Option<String>),
    /// At DATA.
    Data,
    /// After the final dot, before anything is recorded or delivered.
    Dot,
    /// After the final dot, when the message is already recorded and delivered.
    AfterDot,
    /// At RSET.
    Rset,
    /// At QUIT.
    Quit,
}

/// What happens there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmtpEffect {
    /// This whole reply line, for instance `450 4.2.0 later`, and nothing else.
    Reply(String),
    /// The connection ends without a word.
    Close,
    /// Nothing is ever answered.
    Silence,
    /// A pause, then all goes on.
    Delay(Duration),
}

/// How a body comes out that the provider renders anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyChange {
    /// As long as before, with another octet near the end.
    SameLength,
    /// With another line at the end; each rendering is longer than the last.
    Longer,
    /// Without some octets at the end; each rendering is shorter than the last.
    Shorter,
}

impl BodyChange {
    /// The `version`th rendering of a message; 0 is the message itself.
    pub(crate) fn render(self, octets: &[u8], version: usize) -> Vec<u8> {
        let mut out = octets.to_vec();
        if version == 0 {
            return out;
        }
        let body = octets.windows(4).position(|w| w == b"\r\n\r\n").map_or(octets.len(), |at| at + 4);
        match self {
            BodyChange::SameLength => {
                if let Some(last) = out[body..].iter_mut().rfind(|b| b.is_ascii_alphanumeric()) {
                    let digit = u8::try_from(version % 10).unwrap_or(0);
                    *last = b'0' + digit;
                }
            }
            BodyChange::Longer => {
                out.resize(out.len() + version, b'x');
                out.extend_from_slice(b"\r\n");
            }
            BodyChange::Shorter => out.truncate(out.len().saturating_sub(version).max(body)),
        }
        out
    }
}

#[derive(Debug, Default)]
struct Rules {
    reject_auth: bool,
    imap: Vec<(Option<String>, ImapEffect, Option<u32>)>,
    smtp: Vec<(SmtpAt, SmtpEffect, Option<u32>)>,
    /// Of messages that hold these octets, RFC822.SIZE is wrong by so many.
    size_lies: Vec<(Vec<u8>, i64)>,
    /// How bodies are rendered anew, and whether at each FETCH.
    body_change: Option<(BodyChange, bool)>,
    /// Renderings so far.
    rendered: usize,
    /// Most connections that may sign in.
    most_connections: Option<usize>,
    hidden_imap: BTreeSet<String>,
    hidden_smtp: BTreeSet<String>,
    /// Commands as they came, where they are kept.
    commands: Option<Vec<(usize, Vec<u8>)>>,
}

/// The faults of one provider; shared with all its sessions.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Mutex<Rules>,
    /// IMAP connections that were made so far.
    made: AtomicUsize,
    /// IMAP connections that are open now.
    open: AtomicUsize,
}

/// One open connection, counted while it lives.
#[derive(Debug)]
pub(crate) struct Counted(Arc<Shared>, usize);

impl Counted {
    pub(crate) fn new(shared: Arc<Shared>) -> Counted {
        let number = shared.faults.made.fetch_add(1, Ordering::SeqCst);
        shared.faults.open.fetch_add(1, Ordering::SeqCst);
        Counted(shared, number)
    }

    /// Counts connections from 0 as they were made.
    pub(crate) fn number(&self) -> usize {
        self.1
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.faults.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Faults {
    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all faults.
    pub fn clear(&self) {
        *self.rules() = Rules::default();
    }

    /// Whether every login is refused, right password or not.
    pub fn reject_auth(&self, on: bool) {
        self.rules().reject_auth = on;
    }

    /// Refuses the login of a connection beyond so many; without it the
    /// character's own limit counts.
    pub fn limit_connections(&self, most: Option<usize>) {
        self.rules().most_connections = most;
    }

    pub(crate) fn connection_limit(&self) -> Option<usize> {
        self.rules().most_connections
    }

    /// How many IMAP connections are open.
    pub fn connections(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// How many IMAP connections were made so far.
    pub fn connections_made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    /// Keeps every IMAP command from now on, or forgets them.
    pub fn keep_commands(&self, on: bool) {
        self.rules().commands = on.then(Vec::new);
    }

    /// The IMAP commands of all connections since
    /// [`keep_commands`](Faults::keep_commands), as they came; the message of
    /// an APPEND is `{0}`.
    pub fn commands(&self) -> Vec<Vec<u8>> {
        self.commands_by_connection().into_iter().map(|(_, command)| command).collect()
    }

    /// The same, each with the number of its connection.
    pub fn commands_by_connection(&self) -> Vec<(usize, Vec<u8>)> {
        self.rules().commands.clone().unwrap_or_default()
    }

    pub(crate) fn note_command(&self, connection: usize, text: &[u8]) {
        if let Some(commands) = &mut self.rules().commands {
            commands.push((connection, text.to_vec()));
        }
    }

    /// Adds a rule for the IMAP command `command` (`FETCH` means `UID FETCH`
    /// too, `UID FETCH` only that; `None` means any). `times` limits how often
    /// it acts. `IDLE` acts when IDLE starts; `GREETING` acts in place of the
    /// greeting (only BYE, Drop, Silence, Delay and Octets mean something there).
    pub fn imap(&self, command: Option<&str>, effect: ImapEffect, times: Option<u32>) {
        self.rules().imap.push((command.map(str::to_ascii_uppercase), effect, times));
    }

    /// Adds a rule for a place in a submission.
    pub fn smtp(&self, at: SmtpAt, effect: SmtpEffect, times: Option<u32>) {
        self.rules().smtp.push((at, effect, times));
    }

    /// RFC822.SIZE of every message is told wrong by this many octets.
    pub fn size_lie(&self, octets: i64) {
        self.size_lie_where("", octets);
    }

    /// RFC822.SIZE of the messages that hold `part` is told wrong by this many
    /// octets; the last such rule that fits a message acts.
    pub fn size_lie_where(&self, part: &str, octets: i64) {
        self.rules().size_lies.push((part.as_bytes().to_vec(), octets));
    }

    /// From now on bodies are rendered anew: once, or anew at each FETCH of a
    /// body (`each`). RFC822.SIZE goes on to be that of the message as it was
    /// stored. None ends it: bodies are as they were stored again.
    pub fn body_changes(&self, change: Option<BodyChange>, each: bool) {
        let mut rules = self.rules();
        rules.body_change = change.map(|change| (change, each));
        rules.rendered = 0;
    }

    /// An IMAP capability that is neither told nor accepted, such as `IDLE`.
    pub fn hide_imap_capability(&self, name: &str) {
        self.rules().hidden_imap.insert(name.to_ascii_uppercase());
    }

    /// An EHLO keyword that is neither told nor accepted, such as `8BITMIME`.
    pub fn hide_ehlo_keyword(&self, name: &str) {
        self.rules().hidden_smtp.insert(name.to_ascii_uppercase());
    }

    pub(crate) fn auth_rejected(&self) -> bool {
        self.rules().reject_auth
    }

    /// By how much RFC822.SIZE of this message is told wrong.
    pub(crate) fn size_error(&self, octets: &[u8]) -> i64 {
        let rules = self.rules();
        let fits = |part: &[u8]| part.is_empty() || memchr::memmem::find(octets, part).is_some();
        rules.size_lies.iter().rfind(|(part, _)| fits(part)).map_or(0, |(_, error)| *error)
    }

    /// The rendering that is due at a FETCH of bodies, counted.
    pub(crate) fn rendering(&self) -> Option<(BodyChange, usize)> {
        let mut rules = self.rules();
        let (change, each) = rules.body_change?;
        if each || rules.rendered == 0 {
            rules.rendered += 1;
        }
        Some((change, rules.rendered))
    }

    pub(crate) fn imap_hidden(&self, name: &str) -> bool {
        self.rules().hidden_imap.contains(name)
    }

    pub(crate) fn smtp_hidden(&self, name: &str) -> bool {
        self.rules().hidden_smtp.contains(name)
    }

    /// The effect due at the IMAP command `name`, counted as used.
    pub(crate) fn at_imap(&self, name: &str) -> Option<ImapEffect> {
        let bare = name.strip_prefix("UID ").unwrap_or(name);
        take(&mut self.rules().imap, |command: &Option<String>| {
            command.as_deref().map_or(name != GREETING, |c| c == name || c == bare)
        })
    }

    /// The effect due in place of the greeting, counted as used.
    pub(crate) fn at_greeting(&self) -> Option<ImapEffect> {
        self.at_imap(GREETING)
    }

    /// The effect due at a place of a submission, counted as used.
    pub(crate) fn at_smtp(&self, at: &SmtpAt) -> Option<SmtpEffect> {
        take(&mut self.rules().smtp, |rule: &SmtpAt| match (rule, at) {
            (SmtpAt::Rcpt(None), SmtpAt::Rcpt(_)) => true,
            (a, b) => a == b,
        })
    }
}

fn take<P, E: Clone>(rules: &mut Vec<(P, E, Option<u32>)>, fits: impl Fn(&P) -> bool) -> Option<E> {
    let index = rules.iter().position(|(place, _, _)| fits(place))?;
    let effect = rules[index].1.clone();
    if let Some(left) = &mut rules[index].2 {
        *left = left.saturating_sub(1);
        if *left == 0 {
            rules.remove(index);
        }
    }
    Some(effect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_acts_as_often_as_it_says_and_only_there() {
        let faults = Faults::default();
        faults.imap(Some("fetch"), ImapEffect::Drop, Some(1));
        assert_eq!(faults.at_imap("STORE"), None);
        assert_eq!(faults.at_imap("UID FETCH"), Some(ImapEffect::Drop));
        assert_eq!(faults.at_imap("FETCH"), None);
        faults.smtp(SmtpAt::Rcpt(Some("a@example.org".into())), SmtpEffect::Close, None);
        assert_eq!(faults.at_smtp(&SmtpAt::Rcpt(Some("b@example.org".into()))), None);
        assert_eq!(faults.at_smtp(&SmtpAt::Rcpt(Some("a@example.org".into()))), Some(SmtpEffect::Close));
    }

    #[test]
    fn sizes_and_bodies_are_wrong_where_asked_and_nowhere_else() {
        let faults = Faults::default();
        let mail = b"Subject: x\r\n\r\nbody\r\n";
        assert_eq!((faults.size_error(mail), faults.rendering()), (0, None));
        faults.size_lie(3);
        faults.size_lie_where("Subject: y", 9);
        assert_eq!((faults.size_error(mail), faults.size_error(b"Subject: y\r\n\r\n")), (3, 9));
        faults.body_changes(Some(BodyChange::Longer), true);
        assert_eq!(faults.rendering(), Some((BodyChange::Longer, 1)));
        assert_eq!(faults.rendering(), Some((BodyChange::Longer, 2)));
        faults.body_changes(Some(BodyChange::Longer), false);
        assert_eq!((faults.rendering(), faults.rendering()).0, faults.rendering());
        for change in [BodyChange::SameLength, BodyChange::Longer, BodyChange::Shorter] {
            let (one, two) = (change.render(mail, 1), change.render(mail, 2));
            assert!(change.render(mail, 0) == mail && one != mail && two != mail && one != two, "{change:?}");
            assert!(one.starts_with(b"Subject: x\r\n\r\nb"), "{change:?}");
            assert_eq!(one.len().cmp(&mail.len()), two.len().cmp(&one.len()), "{change:?}");
        }
    }
}
