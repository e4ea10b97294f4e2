//! What the client knows of the selected mailbox, and how it learns more.
//!
//! Promises: message numbers are those that the client was told; a client
//! learns of a change once.

use std::collections::BTreeSet;
use std::time::Instant;

use imap_codec::imap_types::sequence::{SeqOrUid, Sequence, SequenceSet};

use super::super::state::{Mailbox, Message};
use super::{Failure, Session};

/// The selected mailbox as the client knows it.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) validity: u32,
    pub(super) read_only: bool,
    /// It was opened with CONDSTORE.
    pub(super) condstore: bool,
    /// By message number; ascending by UID.
    pub(super) known: Vec<Known>,
    /// The mailbox's version that `known` stands for, if all could be told.
    pub(super) version: Option<u64>,
}

/// A message as the client knows it.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) message: Message,
    pub(super) recent: bool,
}

impl Known {
    /// The flags as a list in parentheses.
    pub(super) fn flags(&self) -> String {
        let recent = self.recent.then_some("\\Recent");
        let all: Vec<&str> = self.message.flags.iter().map(String::as_str).chain(recent).collect();
        format!("({})", all.join(" "))
    }
}

impl Selected {
    pub(super) fn new(mailbox: &mut Mailbox, read_only: bool, condstore: bool) -> Selected {
        let mut selected = Selected {
            validity: mailbox.validity,
            read_only,
            condstore,
            known: Vec::new(),
            version: Some(mailbox.version),
        };
        selected.learn_new(mailbox);
        selected
    }

    /// Takes in what arrived after the last known message.
    fn learn_new(&mut self, mailbox: &mut Mailbox) -> bool {
        let last = self.known.last().map_or(0, |k| k.message.uid);
        let first_new = mailbox.messages.partition_point(|m| m.uid <= last);
        for message in &mut mailbox.messages[first_new..] {
            message.announced.get_or_insert_with(Instant::now);
            self.known.push(Known { message: message.clone(), recent: message.uid >= mailbox.recent_from });
        }
        if !self.read_only {
            mailbox.recent_from = mailbox.recent_from.max(mailbox.uid_next);
        }
        first_new < mailbox.messages.len()
    }

    pub(super) fn recent(&self) -> usize {
        self.known.iter().filter(|k| k.recent).count()
    }

    /// The indices into `known` that a set names, ascending. A message number
    /// that doesn't exist is an error, a UID that doesn't exist is not.
    pub(super) fn resolve(&self, set: &SequenceSet, uid: bool) -> Result<Vec<usize>, Failure> {
        let largest = match uid {
            true => self.known.last().map_or(0, |k| k.message.uid),
            false => u32::try_from(self.known.len()).unwrap_or(u32::MAX),
        };
        let value = |v: &SeqOrUid| match v {
            SeqOrUid::Value(n) => n.get(),
            SeqOrUid::Asterisk => largest,
        };
        let mut found = BTreeSet::new();
        for sequence in set.0.as_ref() {
            let (a, b) = match sequence {
                Sequence::Single(v) => (value(v), value(v)),
                Sequence::Range(a, b) => (value(a).min(value(b)), value(a).max(value(b))),
            };
            if uid {
                let from = self.known.partition_point(|k| k.message.uid < a);
                let to = self.known.partition_point(|k| k.message.uid <= b);
                found.extend(from..to);
            } else if a == 0 || b > largest {
                return Err(Failure::Bad("no such message number".to_owned()));
            } else {
                // Both are at most the length of `known`, so they fit.
                found.extend(a as usize - 1..b as usize);
            }
        }
        Ok(found.into_iter().collect())
    }
}

impl Session {
    /// The selected mailbox, or BAD.
    pub(super) fn selected(&self) -> Result<&Selected, Failure> {
        self.selected.as_ref().ok_or_else(|| Failure::Bad("no mailbox is selected".to_owned()))
    }

    /// The selected mailbox where it may be changed.
    pub(super) fn writable(&self) -> Result<&Selected, Failure> {
        match self.selected()? {
            selected if selected.read_only => Err(Failure::No("[CANNOT] the mailbox is read-only".to_owned())),
            selected => Ok(selected),
        }
    }

    /// Writes what changed in the selected mailbox since the client was last
    /// told; EXPUNGE only where `renumber`. Answers false where the mailbox
    /// itself is gone and the connection has to end.
    pub(super) fn tell_changes(&mut self, renumber: bool) -> bool {
        let Some(selected) = &mut self.selected else { return true };
        let Some(login) = &self.user else { return true };
        let mut state = self.shared.lock();
        let Some(mailbox) = state.user(login).and_then(|u| u.by_validity(selected.validity)) else {
            self.out.extend_from_slice(b"* BYE the mailbox is gone\r\n");
            return false;
        };
        if selected.version == Some(mailbox.version) {
            return true;
        }
        let mut lines = String::new();
        let mut waiting = false;
        let mut at = 0;
        let mut index = 0;
        while index < selected.known.len() {
            let known = &mut selected.known[index];
            while mailbox.messages.get(at).is_some_and(|m| m.uid < known.message.uid) {
                at += 1;
            }
            match mailbox.messages.get(at).filter(|m| m.uid == known.message.uid) {
                Some(message) => {
                    if message.flags != known.message.flags {
                        known.message.flags.clone_from(&message.flags);
                        let (uid, flags) = (message.uid, known.flags());
                        // RFC 7162 §3.2: whoever asked for CONDSTORE gets MODSEQ.
                        let modseq = match selected.condstore {
                            true => format!(" MODSEQ ({})", mailbox.version + 1),
                            false => String::new(),
                        };
                        lines.push_str(&format!("* {} FETCH (UID {uid} FLAGS {flags}{modseq})\r\n", index + 1));
                    }
                }
                None if renumber => {
                    lines.push_str(&format!("* {} EXPUNGE\r\n", index + 1));
                    selected.known.remove(index);
                    continue;
                }
                None => waiting = true,
            }
            index += 1;
        }
        if selected.learn_new(mailbox) {
            lines.push_str(&format!("* {} EXISTS\r\n* {} RECENT\r\n", selected.known.len(), selected.recent()));
        }
        selected.version = (!waiting).then_some(mailbox.version);
        self.out.extend_from_slice(lines.as_bytes());
        true
    }
}
