//! What a key may do: per verb, and per verb and mailbox.
//!
//! Promises: no value of these types lets an agent send, forward or delete
//! without being asked for; there is no such variant to construct or to read
//! back from the store. `file` opens only mailboxes that are named. Doesn't
//! know: which command needs which verb, what a mailbox is for.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use unicode_normalization::UnicodeNormalization;

/// Most mailboxes that one key has grants of their own for.
pub const MAX_MAILBOXES: usize = 64;
/// Longest name of a mailbox in a grant, in characters.
pub const MAX_MAILBOX_CHARS: usize = 255;

/// What a command does, as the closed table of commands names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Read messages and mailboxes.
    Read,
    /// Change flags other than \Deleted.
    Flag,
    /// Copy and move into a mailbox, make it.
    File,
    /// Append drafts.
    Draft,
    /// Submit mail.
    Send,
    /// Submit mail that carries a mailbox message to outside.
    Forward,
    /// Set \Deleted, expunge, delete a mailbox.
    Delete,
}

/// Every verb, in a fixed order.
pub const VERBS: [Verb; 7] = [Verb::Read, Verb::Flag, Verb::File, Verb::Draft, Verb::Send, Verb::Forward, Verb::Delete];

impl Verb {
    /// The name in the store, in listings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Flag => "flag",
            Verb::File => "file",
            Verb::Draft => "draft",
            Verb::Send => "send",
            Verb::Forward => "forward",
            Verb::Delete => "delete",
        }
    }

    /// Whether it can be granted for one mailbox. Mail that leaves has none.
    pub fn is_per_mailbox(self) -> bool {
        match self {
            Verb::Read | Verb::Flag | Verb::File | Verb::Draft | Verb::Delete => true,
            Verb::Send | Verb::Forward => false,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The answer for one verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grant {
    /// Done at once.
    Allow,
    /// Done after a person approved it.
    Ask,
    /// Refused.
    Off,
}

impl Grant {
    /// The name in the store, in listings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Grant::Allow => "allow",
            Grant::Ask => "ask",
            Grant::Off => "off",
        }
    }

    /// The one that permits less.
    pub fn least(self, other: Grant) -> Grant {
        match (self, other) {
            (Grant::Off, _) | (_, Grant::Off) => Grant::Off,
            (Grant::Ask, _) | (_, Grant::Ask) => Grant::Ask,
            (Grant::Allow, Grant::Allow) => Grant::Allow,
        }
    }
}

/// The answer for a verb of the floor, where `allow` doesn't exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FloorGrant {
    /// Done after a person approved it.
    Ask,
    /// Refused.
    Off,
}

impl From<FloorGrant> for Grant {
    fn from(grant: FloorGrant) -> Grant {
        match grant {
            FloorGrant::Ask => Grant::Ask,
            FloorGrant::Off => Grant::Off,
        }
    }
}

/// What a key may do in one mailbox, where that is something else than
/// elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailboxGrants {
    /// Reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Grant>,
    /// Flags other than \Deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<Grant>,
    /// Filing into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Grant>,
    /// Drafts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Grant>,
    /// Deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<FloorGrant>,
}

impl MailboxGrants {
    /// The answer for `verb`; `None`: as elsewhere.
    pub fn of(&self, verb: Verb) -> Option<Grant> {
        match verb {
            Verb::Read => self.read,
            Verb::Flag => self.flag,
            Verb::File => self.file,
            Verb::Draft => self.draft,
            Verb::Delete => self.delete.map(Grant::from),
            Verb::Send | Verb::Forward => None,
        }
    }

    fn is_empty(&self) -> bool {
        VERBS.iter().all(|v| self.of(*v).is_none())
    }
}

/// An agent key's grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentGrants {
    /// Reading.
    pub read: Grant,
    /// Flags other than \Deleted.
    pub flag: Grant,
    /// Filing into mailboxes that aren't named: always refused, whatever
    /// stands here.
    pub file: Grant,
    /// Drafts.
    pub draft: Grant,
    /// Submissions.
    pub send: FloorGrant,
    /// Forwards to outside.
    pub forward: FloorGrant,
    /// Deletion.
    pub delete: FloorGrant,
    /// Mailboxes where it is otherwise, by name as a person writes it; one
    /// that ends in `*` names all that begin so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mailboxes: BTreeMap<String, MailboxGrants>,
}

impl Default for AgentGrants {
    /// What a new agent key gets: read and draft at once, send and forward
    /// after a person's approval, nothing else.
    fn default() -> AgentGrants {
        AgentGrants {
            read: Grant::Allow,
            flag: Grant::Off,
            file: Grant::Off,
            draft: Grant::Allow,
            send: FloorGrant::Ask,
            forward: FloorGrant::Ask,
            delete: FloorGrant::Off,
            mailboxes: BTreeMap::new(),
        }
    }
}

/// INBOX is one mailbox in any writing (RFC 9051 §5.1).
fn canonical(mailbox: &str) -> &str {
    if mailbox.eq_ignore_ascii_case("INBOX") { "INBOX" } else { mailbox }
}

/// A name as providers may compare it.
fn folded(name: &str) -> String {
    name.nfc().flat_map(char::to_lowercase).collect()
}

impl AgentGrants {
    /// The answer for `verb` where no mailbox has its own.
    pub fn of(&self, verb: Verb) -> Grant {
        match verb {
            Verb::Read => self.read,
            Verb::Flag => self.flag,
            Verb::File => Grant::Off,
            Verb::Draft => self.draft,
            Verb::Send => self.send.into(),
            Verb::Forward => self.forward.into(),
            Verb::Delete => self.delete.into(),
        }
    }

    /// The answer for `verb` in a mailbox. Its own name decides before one
    /// with `*`, a longer one of these before a shorter. Providers differ on
    /// whether case and composition tell mailboxes apart: a name that is
    /// written otherwise than in the grant gets what permits less.
    pub fn of_in(&self, verb: Verb, mailbox: &str) -> Grant {
        let mailbox = canonical(mailbox);
        if let Some(own) = self.mailboxes.get(mailbox).and_then(|g| g.of(verb)) {
            return own;
        }
        let found = |text: fn(&str) -> String| {
            let wanted = text(mailbox);
            let mut best: Option<(usize, Grant)> = None;
            for (name, grant) in self.mailboxes.iter().filter_map(|(name, g)| Some((name, g.of(verb)?))) {
                let (start, open) = name.strip_suffix('*').map_or((name.as_str(), false), |start| (start, true));
                let start = text(start);
                let length = match open {
                    true if wanted.starts_with(&start) => start.len(),
                    false if wanted == start => usize::MAX,
                    true | false => continue,
                };
                best = match best {
                    Some((most, known)) if most == length => Some((most, known.least(grant))),
                    Some((most, known)) if most > length => Some((most, known)),
                    _ => Some((length, grant)),
                };
            }
            best.map_or_else(|| self.of(verb), |(_, grant)| grant)
        };
        found(str::to_owned).least(found(folded))
    }

    /// Whether anything can be filed anywhere.
    pub fn files(&self) -> bool {
        self.mailboxes.values().any(|g| g.file.is_some_and(|g| g != Grant::Off))
    }

    /// Makes one change; what is refused changes nothing.
    pub fn change(&mut self, change: &Change) -> Result<(), GrantError> {
        change.check()?;
        let Change { verb, mailbox, value } = change;
        match mailbox {
            None => {
                let value = value.unwrap_or_else(|| AgentGrants::default().of(*verb));
                match verb {
                    Verb::Read => self.read = value,
                    Verb::Flag => self.flag = value,
                    Verb::File => self.file = value,
                    Verb::Draft => self.draft = value,
                    Verb::Send => self.send = floor(value)?,
                    Verb::Forward => self.forward = floor(value)?,
                    Verb::Delete => self.delete = floor(value)?,
                }
            }
            Some(name) => {
                let name = canonical(name);
                if !self.mailboxes.contains_key(name) && self.mailboxes.len() >= MAX_MAILBOXES {
                    return Err(GrantError::TooMany);
                }
                let mut own = self.mailboxes.get(name).copied().unwrap_or_default();
                match verb {
                    Verb::Read => own.read = *value,
                    Verb::Flag => own.flag = *value,
                    Verb::File => own.file = *value,
                    Verb::Draft => own.draft = *value,
                    Verb::Delete => own.delete = value.map(floor).transpose()?,
                    Verb::Send | Verb::Forward => return Err(GrantError::NoMailbox(*verb)),
                }
                if own.is_empty() {
                    self.mailboxes.remove(name);
                } else {
                    self.mailboxes.insert(name.to_owned(), own);
                }
            }
        }
        Ok(())
    }
}

fn floor(value: Grant) -> Result<FloorGrant, GrantError> {
    match value {
        Grant::Ask => Ok(FloorGrant::Ask),
        Grant::Off => Ok(FloorGrant::Off),
        Grant::Allow => Err(GrantError::Floor),
    }
}

/// Why a grant can't be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// Not `VERB[@MAILBOX]=VALUE`.
    #[error("{0:?} is not VERB[@MAILBOX]=VALUE, with a verb of {verbs} and allow, ask, off or default", verbs = verbs())]
    Form(String),
    /// `allow` for a verb of the floor.
    #[error("send, forward and delete are never done without a person's approval: ask or off")]
    Floor,
    /// `ask` where nothing can be held.
    #[error("{0} can't be asked for: allow or off")]
    NoAsk(Verb),
    /// `file` without a mailbox.
    #[error("file is granted per mailbox: file@MAILBOX=allow (MAILBOX may end in *)")]
    FileWhere,
    /// A mailbox for a verb that has none.
    #[error("{0} has no mailbox")]
    NoMailbox(Verb),
    /// A mailbox's name that is none.
    #[error(
        "a mailbox's name is 1 to {MAX_MAILBOX_CHARS} characters without control characters; `*` stands at its end only"
    )]
    Name,
    /// [`MAX_MAILBOXES`] reached.
    #[error("a key has grants of its own for at most {MAX_MAILBOXES} mailboxes")]
    TooMany,
}

fn verbs() -> String {
    VERBS.map(Verb::name).join(", ")
}

/// One change of a key's grants: `VERB[@MAILBOX]=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The verb.
    pub verb: Verb,
    /// The mailbox; everywhere without one.
    pub mailbox: Option<String>,
    /// The answer; `None`: what a new key has, or what is elsewhere.
    pub value: Option<Grant>,
}

impl Change {
    fn check(&self) -> Result<(), GrantError> {
        if let Some(name) = &self.mailbox {
            let chars = name.chars().count();
            let body = name.strip_suffix('*').unwrap_or(name);
            if chars == 0 || chars > MAX_MAILBOX_CHARS || body.contains('*') || name.chars().any(char::is_control) {
                return Err(GrantError::Name);
            }
            if !self.verb.is_per_mailbox() {
                return Err(GrantError::NoMailbox(self.verb));
            }
        }
        match (self.verb, self.value) {
            (Verb::Send | Verb::Forward | Verb::Delete, Some(Grant::Allow)) => Err(GrantError::Floor),
            (Verb::Read | Verb::Flag | Verb::Draft, Some(Grant::Ask)) => Err(GrantError::NoAsk(self.verb)),
            (Verb::File, Some(Grant::Allow | Grant::Ask)) if self.mailbox.is_none() => Err(GrantError::FileWhere),
            _ => Ok(()),
        }
    }
}

impl FromStr for Change {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Change, GrantError> {
        let form = || GrantError::Form(text.to_owned());
        // A mailbox's name may hold `=` and `@`.
        let (left, value) = text.rsplit_once('=').ok_or_else(form)?;
        let (verb, mailbox) = left.split_once('@').map_or((left, None), |(verb, mailbox)| (verb, Some(mailbox)));
        let verb = VERBS.into_iter().find(|v| v.name() == verb).ok_or_else(form)?;
        let value = match value {
            "default" => None,
            value => {
                let known = [Grant::Allow, Grant::Ask, Grant::Off].into_iter().find(|g| g.name() == value);
                Some(known.ok_or_else(form)?)
            }
        };
        let change = Change { verb, mailbox: mailbox.map(str::to_owned), value };
        change.check()?;
        Ok(change)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.name())?;
        if let Some(mailbox) = &self.mailbox {
            write!(f, "@{mailbox}")?;
        }
        write!(f, "={}", self.value.map_or("default", Grant::name))
    }
}

/// What a signed-in key may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grants {
    /// A person: everything, at once.
    Person,
    /// An agent: what its key says. The console too: it reads.
    Agent(Arc<AgentGrants>),
}

impl Grants {
    /// What a new agent key gets.
    pub fn default_agent() -> Grants {
        Grants::Agent(Arc::default())
    }

    /// Reading, and nothing else.
    pub fn read_only() -> Grants {
        Grants::Agent(Arc::new(AgentGrants {
            draft: Grant::Off,
            send: FloorGrant::Off,
            forward: FloorGrant::Off,
            ..AgentGrants::default()
        }))
    }

    /// The answer for `verb` where no mailbox has its own.
    pub fn of(&self, verb: Verb) -> Grant {
        match self {
            Grants::Person => Grant::Allow,
            Grants::Agent(g) => g.of(verb),
        }
    }

    /// The answer for `verb` in a mailbox, by its decoded name.
    pub fn of_in(&self, verb: Verb, mailbox: &str) -> Grant {
        match self {
            Grants::Person => Grant::Allow,
            Grants::Agent(g) => g.of_in(verb, mailbox),
        }
    }

    /// True only where `verb` is done at once, where no mailbox has its own.
    pub fn allows(&self, verb: Verb) -> bool {
        self.of(verb) == Grant::Allow
    }
}

/// A key's grants as they are at the moment: a change is seen by sessions
/// that are open.
#[derive(Debug, Clone)]
pub struct LiveGrants(watch::Receiver<Grants>);

impl LiveGrants {
    /// Grants that don't change.
    pub fn fixed(grants: Grants) -> LiveGrants {
        LiveGrants(watch::channel(grants).1)
    }

    pub(super) fn of_key(grants: &watch::Sender<Grants>) -> LiveGrants {
        LiveGrants(grants.subscribe())
    }

    /// The grants now.
    pub fn now(&self) -> Grants {
        self.0.borrow().clone()
    }

    /// Resolves when the grants are such that `found`; fixed ones never are.
    pub async fn until(&mut self, found: impl FnMut(&Grants) -> bool) {
        if self.0.wait_for(found).await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(changes: &[&str]) -> AgentGrants {
        let mut grants = AgentGrants::default();
        for change in changes {
            grants.change(&change.parse().unwrap()).unwrap();
        }
        grants
    }

    #[test]
    fn a_new_agent_key_reads_and_drafts_and_asks_to_send() {
        let g = Grants::default_agent();
        let got: Vec<Grant> = VERBS.iter().map(|v| g.of(*v)).collect();
        use Grant::{Allow, Ask, Off};
        assert_eq!(got, [Allow, Off, Off, Allow, Ask, Ask, Off]);
    }

    #[test]
    fn a_person_may_do_everything() {
        assert!(VERBS.iter().all(|v| Grants::Person.allows(*v)));
    }

    #[test]
    fn who_only_reads_may_do_nothing_else() {
        let allowed: Vec<&Verb> = VERBS.iter().filter(|v| Grants::read_only().of(**v) != Grant::Off).collect();
        assert_eq!(allowed, [&Verb::Read]);
    }

    /// As keys were stored before mailboxes had grants of their own.
    const STORED: &str =
        r#"{"read":"allow","flag":"allow","file":"allow","draft":"allow","send":"ask","forward":"off","delete":"off"}"#;

    #[test]
    fn a_stored_allow_for_a_verb_of_the_floor_is_no_value() {
        let grants: AgentGrants = serde_json::from_str(STORED).unwrap();
        assert_eq!(grants.of(Verb::Send), Grant::Ask);
        assert!(grants.mailboxes.is_empty() && grants.of(Verb::File) == Grant::Off, "file opens what is named only");
        assert_eq!(serde_json::to_string(&grants).unwrap(), STORED, "written as it was read");
        for verb in ["send", "forward", "delete"] {
            let forged = STORED
                .replace(&format!(r#""{verb}":"ask""#), &format!(r#""{verb}":"allow""#))
                .replace(&format!(r#""{verb}":"off""#), &format!(r#""{verb}":"allow""#));
            assert!(serde_json::from_str::<AgentGrants>(&forged).is_err(), "{verb}");
        }
        let own = STORED.replacen('}', r#","mailboxes":{"Archive":{"delete":"allow"}}}"#, 1);
        assert!(serde_json::from_str::<AgentGrants>(&own).is_err());
        assert!(
            serde_json::from_str::<AgentGrants>(&own.replace(r#""delete":"allow"}}"#, r#""delete":"ask"}}"#)).is_ok()
        );
    }

    #[test]
    fn changes_are_read_and_what_can_not_be_is_refused() {
        for text in ["read=off", "file@Archive=allow", "delete@INBOX=ask", "flag@a=b@c=allow", "read@Private/*=default"]
        {
            assert_eq!(text.parse::<Change>().unwrap().to_string(), text);
        }
        let refused = |text: &str| text.parse::<Change>().unwrap_err();
        for text in ["send=allow", "forward=allow", "delete=allow", "delete@Trash=allow"] {
            assert_eq!(refused(text), GrantError::Floor, "{text}");
        }
        assert_eq!(refused("file=allow"), GrantError::FileWhere);
        assert_eq!(refused("send@INBOX=ask"), GrantError::NoMailbox(Verb::Send));
        assert_eq!(refused("draft=ask"), GrantError::NoAsk(Verb::Draft));
        for text in ["read@=off", "read@a*b=off", "read@a\u{7}=off"] {
            assert_eq!(refused(text), GrantError::Name, "{text}");
        }
        for text in ["", "read", "raed=off", "read=on", "READ=off", "read=", "=off"] {
            assert_eq!(refused(text), GrantError::Form(text.to_owned()));
        }
    }

    #[test]
    fn the_nearest_name_decides() {
        let g = with(&[
            "read=off",
            "read@Work/*=allow",
            "read@Work/Pay*=off",
            "read@Work/Pay/Mine=allow",
            "read@inbox=allow",
        ]);
        for (mailbox, grant) in [
            ("INBOX", Grant::Allow),
            ("Inbox", Grant::Allow),
            ("Work", Grant::Off),
            ("Work/A", Grant::Allow),
            ("Work/Payroll", Grant::Off),
            ("Work/Pay/Mine", Grant::Allow),
            ("work/a", Grant::Off),
            ("Work/PAYROLL", Grant::Off),
        ] {
            assert_eq!(g.of_in(Verb::Read, mailbox), grant, "{mailbox}");
        }
        assert_eq!(g.of_in(Verb::Draft, "Work/A"), Grant::Allow, "other verbs are as elsewhere");
    }

    #[test]
    fn another_writing_of_a_name_opens_nothing() {
        let g = with(&["read@Private=off", "file@Archive=allow", "read@Büro=off"]);
        for name in ["private", "PRIVATE", "bu\u{308}ro", "BÜRO"] {
            assert_eq!(g.of_in(Verb::Read, name), Grant::Off, "{name}");
        }
        assert_eq!(g.of_in(Verb::File, "Archive"), Grant::Allow);
        assert_eq!(g.of_in(Verb::File, "archive"), Grant::Off);
    }

    #[test]
    fn default_takes_a_change_back() {
        let g = with(&["flag=allow", "flag=default", "file@Archive=allow", "file@Archive=default"]);
        assert_eq!(g, AgentGrants::default());
    }

    #[test]
    fn mailboxes_are_bounded() {
        let mut g = AgentGrants::default();
        for n in 0..MAX_MAILBOXES {
            g.change(&format!("file@M{n}=allow").parse().unwrap()).unwrap();
        }
        assert_eq!(g.change(&"file@Other=allow".parse().unwrap()), Err(GrantError::TooMany));
        g.change(&"file@M0=off".parse().unwrap()).unwrap();
    }
}
