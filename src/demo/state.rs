//! What the provider holds: users, mailboxes, messages.
//!
//! Promises: UIDs ascend and are never reused in a mailbox; no two mailboxes
//! of a user ever had the same UIDVALIDITY; every change is on disk (where
//! there is a folder) before it is told to anybody. Doesn't know: protocols.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::character::Character;
use super::dates::InternalDate;
use super::disk::Disk;
use super::faults::Faults;
use super::provider::{Accepted, Caps};

/// The hierarchy delimiter.
pub(crate) const DELIMITER: char = '/';
/// The mailboxes that every user has from the start, with their special use
/// (RFC 6154 §2).
pub(crate) const SPECIAL: [(&str, &str); 5] =
    [("Archive", "\\Archive"), ("Drafts", "\\Drafts"), ("Junk", "\\Junk"), ("Sent", "\\Sent"), ("Trash", "\\Trash")];
/// Longest mailbox name in octets.
const MAX_NAME: usize = 500;
/// UIDVALIDITY counts from here, so that it stays below 2^31 for long.
const VALIDITY_EPOCH: i64 = 1_600_000_000;

/// Why a mailbox operation is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// There is no such mailbox.
    #[error("no such mailbox")]
    Missing,
    /// There is one already.
    #[error("the mailbox exists already")]
    Exists,
    /// INBOX can't be made or deleted.
    #[error("INBOX is always there")]
    Inbox,
    /// Empty, too long, not ASCII, or with a wildcard or empty level.
    #[error("the mailbox name is not allowed")]
    Name,
    /// The folder can't be written.
    #[error("the change could not be stored")]
    Storage,
}

/// A message.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) uid: u32,
    pub(crate) octets: Arc<[u8]>,
    /// Name of its file, where there is a folder.
    pub(crate) file: Option<Arc<str>>,
    /// As on the wire: `\Seen`, `$Forwarded`; never `\Recent`.
    pub(crate) flags: BTreeSet<String>,
    pub(crate) date: InternalDate,
    /// When the first session told its client of it.
    pub(crate) announced: Option<Instant>,
}

/// A mailbox.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) validity: u32,
    pub(crate) uid_next: u32,
    /// Messages from this UID on are recent to the next session.
    pub(crate) recent_from: u32,
    /// Ascending by UID.
    pub(crate) messages: Vec<Message>,
    /// Rises with every change.
    pub(crate) version: u64,
}

/// A user.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) password: String,
    pub(crate) next_validity: u32,
    pub(crate) mailboxes: BTreeMap<String, Mailbox>,
    pub(crate) subscribed: BTreeSet<String>,
    pub(crate) disk: Option<Disk>,
}

/// All that sessions share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Rises with every change of any mailbox.
    pub(crate) changes: watch::Sender<u64>,
    /// Rises when all connections are to end; the text is the BYE, if any.
    pub(crate) kick: watch::Sender<(u64, Option<String>)>,
    /// Rises to make the present connections dead.
    pub(crate) freeze: watch::Sender<u64>,
    pub(crate) faults: Faults,
    pub(crate) caps: Caps,
    pub(crate) character: Character,
}

/// The part behind the lock.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// By login in lower case.
    pub(crate) users: BTreeMap<String, User>,
    pub(crate) accepted: Vec<Accepted>,
}

impl Shared {
    pub(crate) fn new(state: State, caps: Caps, character: Character) -> Shared {
        Shared {
            state: Mutex::new(state),
            changes: watch::Sender::new(0),
            kick: watch::Sender::new((0, None)),
            freeze: watch::Sender::new(0),
            faults: Faults::default(),
            caps,
            character,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes every session to look at its mailbox.
    pub(crate) fn wake(&self) {
        self.changes.send_modify(|n| *n += 1);
    }

    /// Whether login and password belong together.
    pub(crate) fn password_fits(&self, login: &[u8], password: &[u8]) -> Option<String> {
        if self.faults.auth_rejected() {
            return None;
        }
        let login = std::str::from_utf8(login).ok()?.to_lowercase();
        let fits = self.lock().users.get(&login)?.password.as_bytes() == password;
        fits.then_some(login)
    }
}

impl State {
    pub(crate) fn user(&mut self, login: &str) -> Option<&mut User> {
        self.users.get_mut(&login.to_lowercase())
    }
}

/// `INBOX` in any case is `INBOX` (RFC 3501 §5.1); as a first level too.
pub(crate) fn canonical(name: &str) -> String {
    match name.get(..5) {
        Some(head)
            if head.eq_ignore_ascii_case("INBOX") && matches!(name[5..].chars().next(), None | Some(DELIMITER)) =>
        {
            format!("INBOX{}", &name[5..])
        }
        _ => name.to_owned(),
    }
}

fn valid_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'*' && b != b'%')
        && name.split(DELIMITER).all(|level| !level.is_empty())
}

impl User {
    /// A user of the plain provider.
    #[cfg(test)]
    pub(crate) fn open(login: &str, password: String, folder: Option<&Path>) -> io::Result<User> {
        User::with_character(Character::Plain, password, folder, login)
    }

    /// A user with INBOX and the mailboxes of the character, or what the
    /// folder of an earlier start holds.
    pub(crate) fn with_character(
        character: Character,
        password: String,
        folder: Option<&Path>,
        login: &str,
    ) -> io::Result<User> {
        let disk = folder.map(|f| Disk::open(f, login)).transpose()?;
        let mut user =
            User { password, next_validity: 0, mailboxes: BTreeMap::new(), subscribed: BTreeSet::new(), disk: None };
        if let Some(disk) = &disk {
            disk.load(&mut user)?;
        }
        user.disk = disk;
        if user.mailboxes.is_empty() {
            for name in std::iter::once("INBOX").chain(character.mailboxes().iter().map(|(name, _)| *name)) {
                let mut made = user.fresh_mailbox();
                if character.labels() {
                    made.recent_from = u32::MAX;
                }
                user.mailboxes.insert(name.to_owned(), made);
                user.subscribed.insert(name.to_owned());
            }
            user.save_or_error()?;
        }
        Ok(user)
    }

    /// Whether no mailbox ever held a message.
    pub(crate) fn is_new(&self) -> bool {
        self.mailboxes.values().all(|m| m.uid_next == 1)
    }

    fn fresh_mailbox(&mut self) -> Mailbox {
        let by_clock = InternalDate::now().unix.saturating_sub(VALIDITY_EPOCH);
        let by_clock = u32::try_from(by_clock).unwrap_or(1);
        let validity = self.next_validity.max(by_clock).max(1);
        self.next_validity = validity.saturating_add(1);
        Mailbox { validity, uid_next: 1, recent_from: 1, messages: Vec::new(), version: 0 }
    }

    /// Gives a mailbox a new UIDVALIDITY and its messages new UIDs, as a
    /// server does that lost its index.
    pub(crate) fn renumber(&mut self, name: &str) -> Result<(), Refusal> {
        let mut fresh = self.fresh_mailbox();
        let old = self.mailbox(name)?;
        for message in std::mem::take(&mut old.messages) {
            fresh.push(message);
        }
        *old = fresh;
        self.save()
    }

    fn save_or_error(&self) -> io::Result<()> {
        match &self.disk {
            Some(disk) => disk.save(self),
            None => Ok(()),
        }
    }

    /// Writes the index, where there is a folder.
    pub(crate) fn save(&self) -> Result<(), Refusal> {
        self.save_or_error().map_err(|error| {
            tracing::error!(%error, "the embedded provider can't write its folder");
            Refusal::Storage
        })
    }

    pub(crate) fn mailbox(&mut self, name: &str) -> Result<&mut Mailbox, Refusal> {
        self.mailboxes.get_mut(&canonical(name)).ok_or(Refusal::Missing)
    }

    /// The mailbox that a session selected, unless it is gone.
    pub(crate) fn by_validity(&mut self, validity: u32) -> Option<&mut Mailbox> {
        self.mailboxes.values_mut().find(|m| m.validity == validity)
    }

    pub(crate) fn create(&mut self, name: &str) -> Result<(), Refusal> {
        let name = canonical(name.strip_suffix(DELIMITER).unwrap_or(name));
        if name == "INBOX" {
            return Err(Refusal::Inbox);
        }
        if !valid_name(&name) {
            return Err(Refusal::Name);
        }
        if self.mailboxes.contains_key(&name) {
            return Err(Refusal::Exists);
        }
        let made = self.fresh_mailbox();
        self.mailboxes.insert(name, made);
        self.save()
    }

    pub(crate) fn delete(&mut self, name: &str) -> Result<(), Refusal> {
        let name = canonical(name);
        if name == "INBOX" {
            return Err(Refusal::Inbox);
        }
        self.mailboxes.remove(&name).ok_or(Refusal::Missing)?;
        self.save()
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<(), Refusal> {
        let (from, to) = (canonical(from), canonical(to.strip_suffix(DELIMITER).unwrap_or(to)));
        if !valid_name(&to) {
            return Err(Refusal::Name);
        }
        if self.mailboxes.contains_key(&to) {
            return Err(Refusal::Exists);
        }
        if from == "INBOX" {
            return self.rename_inbox(to);
        }
        let below = format!("{from}{DELIMITER}");
        if to.starts_with(&below) {
            return Err(Refusal::Name);
        }
        let moved: Vec<String> =
            self.mailboxes.keys().filter(|n| **n == from || n.starts_with(&below)).cloned().collect();
        if moved.is_empty() {
            return Err(Refusal::Missing);
        }
        let target = |old: &str| format!("{to}{}", &old[from.len()..]);
        if moved.iter().any(|old| self.mailboxes.contains_key(&target(old))) {
            return Err(Refusal::Exists);
        }
        for old in moved {
            if let Some(mailbox) = self.mailboxes.remove(&old) {
                self.mailboxes.insert(target(&old), mailbox);
            }
        }
        self.save()
    }

    /// RFC 3501 §6.3.5: renaming INBOX moves its messages and leaves it empty.
    fn rename_inbox(&mut self, to: String) -> Result<(), Refusal> {
        let mut made = self.fresh_mailbox();
        let inbox = self.mailbox("INBOX")?;
        inbox.version += 1;
        for mut message in std::mem::take(&mut inbox.messages) {
            message.uid = made.uid_next;
            made.uid_next += 1;
            made.messages.push(message);
        }
        self.mailboxes.insert(to, made);
        self.save()
    }

    /// Where mailboxes are labels: a message came under one.
    pub(crate) fn after_add(&mut self, labels: bool, name: &str, uid: u32) {
        if labels
            && let Ok(mailbox) = self.mailbox(name)
            && let Some(message) = mailbox.find(uid).cloned()
        {
            self.labelled(&canonical(name), &message);
        }
    }

    /// Adds a message; answers UIDVALIDITY and UID.
    pub(crate) fn add(
        &mut self,
        name: &str,
        octets: Arc<[u8]>,
        flags: BTreeSet<String>,
        date: InternalDate,
    ) -> Result<(u32, u32), Refusal> {
        let file = match &self.disk {
            Some(disk) => Some(disk.put(&octets).map_err(|_| Refusal::Storage)?),
            None => None,
        };
        let mailbox = self.mailbox(name)?;
        let uid = mailbox.push(Message { uid: 0, octets, file, flags, date, announced: None });
        let validity = mailbox.validity;
        self.save()?;
        Ok((validity, uid))
    }
}

impl Mailbox {
    /// Appends `message` under the next UID.
    pub(crate) fn push(&mut self, mut message: Message) -> u32 {
        message.uid = self.uid_next;
        self.uid_next = self.uid_next.saturating_add(1);
        self.version += 1;
        let uid = message.uid;
        self.messages.push(message);
        uid
    }

    pub(crate) fn find(&mut self, uid: u32) -> Option<&mut Message> {
        let index = self.messages.binary_search_by_key(&uid, |m| m.uid).ok()?;
        self.messages.get_mut(index)
    }

    /// Removes the messages with these UIDs.
    pub(crate) fn remove(&mut self, uids: &BTreeSet<u32>) {
        let before = self.messages.len();
        self.messages.retain(|m| !uids.contains(&m.uid));
        if self.messages.len() != before {
            self.version += 1;
        }
    }

    pub(crate) fn unseen(&self) -> usize {
        self.messages.iter().filter(|m| !m.flags.contains("\\Seen")).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> User {
        User::open("a@example.org", "x".into(), None).unwrap()
    }

    #[test]
    fn a_mailbox_made_again_has_a_higher_uidvalidity() {
        let mut user = user();
        user.create("A/B").unwrap();
        let first = user.mailbox("A/B").unwrap().validity;
        user.delete("A/B").unwrap();
        user.create("A/B").unwrap();
        assert!(user.mailbox("A/B").unwrap().validity > first);
        assert_eq!(user.create("A/B"), Err(Refusal::Exists));
        assert_eq!(user.create("inbox"), Err(Refusal::Inbox));
        assert_eq!(user.create("a//b"), Err(Refusal::Name));
    }

    #[test]
    fn rename_takes_what_is_beneath_along() {
        let mut user = user();
        user.create("A").unwrap();
        user.create("A/B").unwrap();
        user.rename("A", "C").unwrap();
        assert!(user.mailbox("C/B").is_ok());
        assert_eq!(user.rename("A", "D"), Err(Refusal::Missing));
        assert_eq!(user.rename("C", "C/D"), Err(Refusal::Name));
    }

    #[test]
    fn uids_are_never_reused() {
        let mut user = user();
        let date = InternalDate { unix: 0, offset_minutes: 0 };
        let (_, first) = user.add("INBOX", Arc::from(&b"x"[..]), BTreeSet::new(), date).unwrap();
        user.mailbox("inbox").unwrap().remove(&BTreeSet::from([first]));
        let (_, second) = user.add("INBOX", Arc::from(&b"x"[..]), BTreeSet::new(), date).unwrap();
        assert_eq!((first, second), (1, 2));
    }
}
