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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The stamp that a superseded entry was always shown with, while the
    /// message has a new one: its UID goes on to name the same octets.
    #[serde(rename = "st", default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Box<str>>,
    /// The id of the only key whose sessions see the entry; everybody's
    /// without.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Box<str>>,
}

impl Entry {
    /// A plain entry.
    pub fn new(source: Source) -> Entry {
        Entry { source, superseded: false, deleted: false, stamp: None, key: None }
    }

    /// Whether a session of this key sees the entry.
    pub fn is_for(&self, key: Option<&str>) -> bool {
        self.key.is_none() || self.key.as_deref() == key
    }
}

/// A view in memory.
#[derive(Debug, Clone)]
pub struct View {
    /// UIDVALIDITY, below 2^31 since some clients sign it.
    pub uidvalidity: u32,
    next: ViewUid,
    /// From this UID on no session was told of a message (`\Recent`).
    recent: ViewUid,
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
        View {
            uidvalidity,
            next: ViewUid::FIRST,
            recent: ViewUid::FIRST,
            entries: BTreeMap::new(),
            by_source: BTreeMap::new(),
            version: 1,
        }
    }

    /// A view as it was stored.
    pub fn restore(
        uidvalidity: u32,
        next: ViewUid,
        recent: Option<ViewUid>,
        entries: impl IntoIterator<Item = (ViewUid, Entry)>,
    ) -> View {
        let entries: BTreeMap<ViewUid, Entry> = entries.into_iter().collect();
        let after = entries.last_key_value().and_then(|(u, _)| u.next()).unwrap_or(ViewUid::FIRST);
        let by_source = entries.iter().filter(|(_, e)| !e.superseded).map(|(u, e)| (e.source, *u)).collect();
        let next = next.max(after);
        View { uidvalidity, next, recent: recent.unwrap_or(next), entries, by_source, version: 1 }
    }

    /// UIDNEXT.
    pub fn next_uid(&self) -> ViewUid {
        self.next
    }

    /// The first UID that no session was told of yet.
    pub fn recent(&self) -> ViewUid {
        self.recent
    }

    /// How many messages no session was told of yet, of those that `key` sees.
    pub fn count_recent(&self, key: Option<&str>) -> usize {
        self.entries.range(self.recent..).filter(|(_, e)| e.is_for(key)).count()
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
        self.push_entry(Entry::new(source))
    }

    /// Appends an entry as it is and returns its UID.
    pub fn push_entry(&mut self, entry: Entry) -> Result<ViewUid, UidsUsedUp> {
        let (uid, source) = (self.next, entry.source);
        self.next = uid.next().ok_or(UidsUsedUp)?;
        self.entries.insert(uid, entry);
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
    pub fn update(&mut self, uid: ViewUid, entry: Entry) {
        let Some(e) = self.entries.get_mut(&uid) else { return };
        if entry.superseded && self.by_source.get(&e.source) == Some(&uid) {
            self.by_source.remove(&e.source);
        }
        *e = Entry { source: e.source, ..entry };
    }

    /// The UID that shows a source now.
    pub fn uid_of(&self, source: Source) -> Option<ViewUid> {
        self.by_source.get(&source).copied()
    }

    /// Every UID that shows a source, superseded ones included.
    pub fn all_uids_of(&self, source: Source) -> Vec<ViewUid> {
        // Superseded entries are rare and not indexed: look for them only
        // where there are any.
        if !self.has_superseded() {
            return self.uid_of(source).into_iter().collect();
        }
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
    /// Those that this session was the first to be told of, ascending.
    recent: Vec<ViewUid>,
    /// Whether being told takes `\Recent` from the sessions after this one
    /// (SELECT, not EXAMINE).
    claims: bool,
    /// Whose session it is, where some entries are for one key alone.
    key: Option<Box<str>>,
    version: u64,
}

/// What a session has to be told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// Sequence numbers to expunge, in the order in which to send them.
    pub expunged: Vec<SeqNum>,
    /// The new EXISTS, when messages were added.
    pub exists: Option<u32>,
    /// The new RECENT, when recent messages were added.
    pub recent: Option<u32>,
}

impl Known {
    /// What a session knows right after SELECT (`claims`) or EXAMINE.
    pub fn of(view: &mut View, claims: bool) -> Known {
        Known::of_key(view, claims, None)
    }

    /// The same for a session of this key.
    pub fn of_key(view: &mut View, claims: bool, key: Option<&str>) -> Known {
        let uids = view.entries.iter().filter(|(_, e)| e.is_for(key)).map(|(u, _)| *u).collect();
        let mut known = Known { uids, recent: Vec::new(), claims, key: key.map(Into::into), version: view.version };
        known.take_recent(view);
        known
    }

    fn take_recent(&mut self, view: &mut View) {
        let from = self.uids.partition_point(|u| *u < view.recent);
        let new = self.uids[from..].iter().filter(|u| self.recent.binary_search(u).is_err()).copied();
        let new: Vec<ViewUid> = new.collect();
        self.recent.extend(new);
        if self.claims {
            view.recent = view.next;
        }
    }

    /// How many messages are recent to this session.
    pub fn count_recent(&self) -> u32 {
        u32::try_from(self.recent.len()).unwrap_or(u32::MAX)
    }

    /// Whether a message is recent to this session.
    pub fn is_recent(&self, uid: ViewUid) -> bool {
        self.recent.binary_search(&uid).is_ok()
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
    pub fn catch_up(&mut self, view: &mut View, expunges: bool) -> Told {
        let mut told = Told::default();
        if !self.is_stale(view) {
            return told;
        }
        if expunges {
            for i in (0..self.uids.len()).rev() {
                if view.get(self.uids[i]).is_none() {
                    let uid = self.uids.remove(i);
                    self.recent.retain(|u| *u != uid);
                    told.expunged.extend(u32::try_from(i + 1).ok().and_then(SeqNum::new));
                }
            }
            self.version = view.version;
        }
        let last = self.uids.last().copied();
        let before = self.uids.len();
        let from = last.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let new = view.entries.range((from, std::ops::Bound::Unbounded));
        self.uids.extend(new.filter(|(_, e)| e.is_for(self.key.as_deref())).map(|(u, _)| *u));
        if self.uids.len() != before {
            told.exists = Some(self.exists());
            let recent = self.recent.len();
            self.take_recent(view);
            told.recent = (self.recent.len() != recent).then(|| self.count_recent());
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
        let again = View::restore(7, v.next_uid(), None, v.iter().map(|(u, e)| (u, e.clone())).collect::<Vec<_>>());
        assert_eq!(again.next_uid(), v.next_uid());
    }

    #[test]
    fn a_removed_message_keeps_its_number_until_an_expunge_may_be_sent() {
        let mut v = View::new(1);
        let uids: Vec<ViewUid> = (1..=3).map(|n| v.push(up(n)).unwrap()).collect();
        let mut k = Known::of(&mut v, true);
        v.remove(uids[1]);
        v.push(up(9)).unwrap();
        assert_eq!(k.catch_up(&mut v, false), Told { expunged: vec![], exists: Some(4), recent: Some(4) });
        assert_eq!(k.uid(SeqNum::new(2).unwrap()), Some(uids[1]));
        assert_eq!(
            k.catch_up(&mut v, true),
            Told { expunged: vec![SeqNum::new(2).unwrap()], exists: None, recent: None }
        );
        assert_eq!(k.exists(), 3);
    }

    #[test]
    fn one_session_alone_is_told_that_a_message_is_recent() {
        let mut v = View::new(1);
        let old = v.push(up(1)).unwrap();
        let looks = Known::of(&mut v, false);
        assert!(looks.is_recent(old), "EXAMINE tells and takes nothing");
        let mut first = Known::of(&mut v, true);
        let mut second = Known::of(&mut v, true);
        assert!(first.is_recent(old) && !second.is_recent(old));
        let new = v.push(up(2)).unwrap();
        assert_eq!(v.count_recent(None), 1);
        assert_eq!(second.catch_up(&mut v, false).recent, Some(1));
        assert_eq!(first.catch_up(&mut v, false).recent, None);
        assert!(second.is_recent(new) && !first.is_recent(new));
        assert_eq!(v.count_recent(None), 0);
    }

    #[test]
    fn what_is_for_one_key_is_told_to_that_key_alone() {
        let mut v = View::new(1);
        v.push(up(1)).unwrap();
        let of = |n, key: &str| Entry { key: Some(key.into()), ..Entry::new(Source::Local(n)) };
        v.push_entry(of(1, "a")).unwrap();
        let mut a = Known::of_key(&mut v, true, Some("a"));
        let mut b = Known::of_key(&mut v, true, Some("b"));
        let mut people = Known::of(&mut v, true);
        assert_eq!((a.exists(), b.exists(), people.exists()), (2, 1, 1));
        let second = v.push_entry(of(2, "b")).unwrap();
        assert_eq!((v.count_recent(Some("a")), v.count_recent(Some("b"))), (0, 1));
        assert_eq!(a.catch_up(&mut v, true), Told::default());
        assert_eq!(people.catch_up(&mut v, true), Told::default());
        assert_eq!(b.catch_up(&mut v, true).exists, Some(2));
        v.remove(second);
        assert_eq!(a.catch_up(&mut v, true), Told::default());
        assert_eq!(b.catch_up(&mut v, true).expunged, vec![SeqNum::new(2).unwrap()]);
    }

    proptest! {
        /// A client that applies what it is told ends with the view.
        #[test]
        fn a_client_that_applies_what_it_is_told_agrees(ops in prop::collection::vec((0u8..4, 0usize..40), 1..80)) {
            let mut v = View::new(1);
            let mut k = Known::of(&mut v, true);
            let mut client: Vec<ViewUid> = Vec::new();
            for (op, n) in ops {
                match op {
                    0 => { v.push(up(n as u32 + 1)).unwrap(); }
                    1 => { let uid = v.iter().map(|(u, _)| u).nth(n); uid.map(|u| v.remove(u)); }
                    _ => {
                        let told = k.catch_up(&mut v, op == 2);
                        for s in &told.expunged { client.remove(s.get() as usize - 1); }
                        if let Some(e) = told.exists {
                            let added = e as usize - client.len();
                            client.extend(&k.uids()[k.uids().len() - added..]);
                        }
                        prop_assert_eq!(&client[..], k.uids());
                    }
                }
            }
            k.catch_up(&mut v, true);
            let truth: Vec<ViewUid> = v.iter().map(|(u, _)| u).collect();
            prop_assert_eq!(k.uids(), &truth[..]);
        }
    }
}
