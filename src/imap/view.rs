//! A view: an ordered list from view UIDs to what they show, and what a
//! client session has been told of it.
//!
//! Promises: UIDs ascend and are never reused; a session's sequence numbers
//! change only when it is told so, and an EXPUNGE is worked out against what
//! that very session knows. Doesn't know: octets, stamps, the provider.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::uid::{SeqNum, UpstreamUid, ViewUid};

/// Whose view it is. Views of people and of agents have separate UIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Audience {
    /// Mail clients of people.
    People,
    /// Agents.
    Agents,
}

impl Audience {
    /// Both.
    pub const BOTH: [Audience; 2] = [Audience::People, Audience::Agents];

    /// A fixed octet for keys of the store; never change one.
    pub fn code(self) -> u8 {
        match self {
            Audience::People => b'p',
            Audience::Agents => b'a',
        }
    }
}

/// What a view UID shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// A message of the provider's INBOX.
    #[serde(rename = "u")]
    Upstream(UpstreamUid),
    /// A local message by its number.
    #[serde(rename = "l")]
    Local(u32),
}

/// One line of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What is shown.
    #[serde(rename = "s")]
    pub source: Source,
    /// The message was copied to another lane; this entry waits for the
    /// client to delete it, which touches the entry alone.
    #[serde(rename = "old", default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
    /// `\Deleted` of a superseded entry, which is no flag of the message.
    #[serde(rename = "del", default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

impl Entry {
    /// A plain entry.
    pub fn new(source: Source) -> Entry {
        Entry { source, superseded: false, deleted: false }
    }
}

/// A view in memory.
#[derive(Debug, Clone)]
pub struct View {
    /// UIDVALIDITY, below 2^31 since some clients sign it.
    pub uidvalidity: u32,
    next: ViewUid,
    entries: BTreeMap<ViewUid, Entry>,
    by_source: BTreeMap<Source, ViewUid>,
    /// Rises with every change of the list.
    pub version: u64,
}

/// The range of UIDs is used up; the view needs a new UIDVALIDITY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the view has no UID left")]
pub struct UidsUsedUp;

impl View {
    /// An empty view.
    pub fn new(uidvalidity: u32) -> View {
        View { uidvalidity, next: ViewUid::FIRST, entries: BTreeMap::new(), by_source: BTreeMap::new(), version: 1 }
    }

    /// A view as it was stored.
    pub fn restore(uidvalidity: u32, next: ViewUid, entries: impl IntoIterator<Item = (ViewUid, Entry)>) -> View {
        let entries: BTreeMap<ViewUid, Entry> = entries.into_iter().collect();
        let after = entries.last_key_value().and_then(|(u, _)| u.next()).unwrap_or(ViewUid::FIRST);
        let by_source = entries.iter().filter(|(_, e)| !e.superseded).map(|(u, e)| (e.source, *u)).collect();
        View { uidvalidity, next: next.max(after), entries, by_source, version: 1 }
    }

    /// UIDNEXT.
    pub fn next_uid(&self) -> ViewUid {
        self.next
    }

    /// How many messages it shows.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it shows none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends an entry and returns its UID.
    pub fn push(&mut self, source: Source) -> Result<ViewUid, UidsUsedUp> {
        let uid = self.next;
        self.next = uid.next().ok_or(UidsUsedUp)?;
        self.entries.insert(uid, Entry::new(source));
        self.by_source.insert(source, uid);
        self.version += 1;
        Ok(uid)
    }

    /// Takes an entry away.
    pub fn remove(&mut self, uid: ViewUid) -> Option<Entry> {
        let entry = self.entries.remove(&uid)?;
        if self.by_source.get(&entry.source) == Some(&uid) {
            self.by_source.remove(&entry.source);
        }
        self.version += 1;
        Some(entry)
    }

    /// The entry of a UID.
    pub fn get(&self, uid: ViewUid) -> Option<&Entry> {
        self.entries.get(&uid)
    }

    /// Changes an entry in place (the source stays).
    pub fn update(&mut self, uid: ViewUid, superseded: bool, deleted: bool) {
        if let Some(e) = self.entries.get_mut(&uid) {
            e.deleted = deleted;
            if superseded && !e.superseded {
                e.superseded = true;
                self.by_source.remove(&e.source);
            }
        }
    }

    /// The UID that shows a source now.
    pub fn uid_of(&self, source: Source) -> Option<ViewUid> {
        self.by_source.get(&source).copied()
    }

    /// Every UID that shows a source, superseded ones included.
    pub fn all_uids_of(&self, source: Source) -> Vec<ViewUid> {
        self.entries.iter().filter(|(_, e)| e.source == source).map(|(u, _)| *u).collect()
    }

    /// Whether any entry waits for its deletion by a client.
    pub fn has_superseded(&self) -> bool {
        self.entries.len() != self.by_source.len()
    }

    /// UIDs and entries, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (ViewUid, &Entry)> {
        self.entries.iter().map(|(u, e)| (*u, e))
    }
}

/// What one client session knows of a view: UIDs in sequence order.
#[derive(Debug, Clone, Default)]
pub struct Known {
    uids: Vec<ViewUid>,
    version: u64,
}

/// What a session has to be told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// Sequence numbers to expunge, in the order in which to send them.
    pub expunged: Vec<SeqNum>,
    /// The new EXISTS, when messages were added.
    pub exists: Option<u32>,
}

impl Known {
    /// What a session knows right after SELECT.
    pub fn of(view: &View) -> Known {
        Known { uids: view.iter().map(|(u, _)| u).collect(), version: view.version }
    }

    /// How many messages the session believes in.
    pub fn exists(&self) -> u32 {
        u32::try_from(self.uids.len()).unwrap_or(u32::MAX)
    }

    /// The UIDs in sequence order.
    pub fn uids(&self) -> &[ViewUid] {
        &self.uids
    }

    /// The UID at a sequence number.
    pub fn uid(&self, seq: SeqNum) -> Option<ViewUid> {
        self.uids.get(seq.get() as usize - 1).copied()
    }

    /// The sequence number of a UID.
    pub fn seq(&self, uid: ViewUid) -> Option<SeqNum> {
        let i = self.uids.binary_search(&uid).ok()?;
        u32::try_from(i + 1).ok().and_then(SeqNum::new)
    }

    /// Whether there is something to tell.
    pub fn is_stale(&self, view: &View) -> bool {
        self.version != view.version
    }

    /// Brings the session up to date. With `expunges` false (FETCH, STORE
    /// and SEARCH, RFC 9051 §7.5.1) only additions are told, and what left
    /// stays known until the next call that may expunge.
    pub fn catch_up(&mut self, view: &View, expunges: bool) -> Told {
        let mut told = Told::default();
        if !self.is_stale(view) {
            return told;
        }
        if expunges {
            for i in (0..self.uids.len()).rev() {
                if view.get(self.uids[i]).is_none() {
                    self.uids.remove(i);
                    told.expunged.extend(u32::try_from(i + 1).ok().and_then(SeqNum::new));
                }
            }
            self.version = view.version;
        }
        let last = self.uids.last().copied();
        let before = self.uids.len();
        let from = last.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        self.uids.extend(view.entries.range((from, std::ops::Bound::Unbounded)).map(|(u, _)| *u));
        if self.uids.len() != before {
            told.exists = Some(self.exists());
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn up(n: u32) -> Source {
        Source::Upstream(UpstreamUid::new(n).unwrap())
    }

    #[test]
    fn uids_start_at_one_and_are_never_reused() {
        let mut v = View::new(7);
        let a = v.push(up(10)).unwrap();
        assert_eq!(a, ViewUid::FIRST);
        v.remove(a);
        let b = v.push(up(10)).unwrap();
        assert!(b > a);
        let again = View::restore(7, v.next_uid(), v.iter().map(|(u, e)| (u, *e)).collect::<Vec<_>>());
        assert_eq!(again.next_uid(), v.next_uid());
    }

    #[test]
    fn a_removed_message_keeps_its_number_until_an_expunge_may_be_sent() {
        let mut v = View::new(1);
        let uids: Vec<ViewUid> = (1..=3).map(|n| v.push(up(n)).unwrap()).collect();
        let mut k = Known::of(&v);
        v.remove(uids[1]);
        v.push(up(9)).unwrap();
        assert_eq!(k.catch_up(&v, false), Told { expunged: vec![], exists: Some(4) });
        assert_eq!(k.uid(SeqNum::new(2).unwrap()), Some(uids[1]));
        assert_eq!(k.catch_up(&v, true), Told { expunged: vec![SeqNum::new(2).unwrap()], exists: None });
        assert_eq!(k.exists(), 3);
    }

    proptest! {
        /// A client that applies what it is told ends with the view.
        #[test]
        fn a_client_that_applies_what_it_is_told_agrees(ops in prop::collection::vec((0u8..4, 0usize..40), 1..80)) {
            let mut v = View::new(1);
            let mut k = Known::of(&v);
            let mut client: Vec<ViewUid> = Vec::new();
            for (op, n) in ops {
                match op {
                    0 => { v.push(up(n as u32 + 1)).unwrap(); }
                    1 => { let uid = v.iter().map(|(u, _)| u).nth(n); uid.map(|u| v.remove(u)); }
                    _ => {
                        let told = k.catch_up(&v, op == 2);
                        for s in &told.expunged { client.remove(s.get() as usize - 1); }
                        if let Some(e) = told.exists {
                            let added = e as usize - client.len();
                            client.extend(&k.uids()[k.uids().len() - added..]);
                        }
                        prop_assert_eq!(&client[..], k.uids());
                    }
                }
            }
            k.catch_up(&v, true);
            let truth: Vec<ViewUid> = v.iter().map(|(u, _)| u).collect();
            prop_assert_eq!(k.uids(), &truth[..]);
        }
    }
}
