//! STORE, COPY, MOVE, EXPUNGE, APPEND.

use std::collections::BTreeSet;
use std::sync::Arc;

use imap_codec::imap_types::datetime::DateTime;
use imap_codec::imap_types::flag::{Flag, StoreResponse, StoreType};
use imap_codec::imap_types::mailbox::Mailbox;
use imap_codec::imap_types::sequence::SequenceSet;

use super::super::dates::InternalDate;
use super::super::state::Refusal;
use super::{Done, Failure, Session, ok};

/// The flags as text, without \Recent, which nobody can set.
fn texts(flags: &[Flag<'_>]) -> BTreeSet<String> {
    flags.iter().map(ToString::to_string).filter(|f| !f.eq_ignore_ascii_case("\\Recent")).collect()
}

/// `flags` after the change; keywords compare without case.
fn changed(flags: &BTreeSet<String>, kind: StoreType, named: &BTreeSet<String>) -> BTreeSet<String> {
    let has = |set: &BTreeSet<String>, flag: &str| set.iter().any(|f| f.eq_ignore_ascii_case(flag));
    match kind {
        StoreType::Replace => named.clone(),
        StoreType::Add => flags.iter().cloned().chain(named.iter().filter(|n| !has(flags, n)).cloned()).collect(),
        StoreType::Remove => flags.iter().filter(|f| !has(named, f)).cloned().collect(),
    }
}

/// UIDs as a set in their order, runs shortened.
fn uid_set(uids: &[u32]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < uids.len() {
        let mut end = at;
        while end + 1 < uids.len() && uids[end + 1] == uids[end] + 1 {
            end += 1;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&uids[at].to_string());
        if end > at {
            text.push_str(&format!(":{}", uids[end]));
        }
        at = end + 1;
    }
    text
}

impl Session {
    /// Refuses keywords that this provider doesn't have.
    fn accepts(&self, flags: &BTreeSet<String>) -> Result<(), Failure> {
        match flags.iter().any(|f| self.shared.character.refuses(f)) {
            true => Err(Failure::Bad("Command Argument Error. 11".to_owned())),
            false => Ok(()),
        }
    }

    pub(super) fn store(
        &mut self,
        set: &SequenceSet,
        kind: StoreType,
        response: StoreResponse,
        flags: &[Flag<'_>],
        uid: bool,
    ) -> Done {
        let selected = self.writable()?;
        let (indices, validity) = (selected.resolve(set, uid)?, selected.validity);
        let uids: Vec<u32> = indices.iter().map(|i| selected.known[*i].message.uid).collect();
        let named = texts(flags);
        self.accepts(&named)?;
        let labels = self.shared.character.labels();
        let results = self.with_user(|user| {
            let mailbox = user.by_validity(validity).ok_or(Refusal::Missing)?;
            let mut results = Vec::with_capacity(uids.len());
            let mut any = false;
            for uid in &uids {
                results.push(mailbox.find(*uid).map(|message| {
                    let new = changed(&message.flags, kind, &named);
                    any |= new != message.flags;
                    message.flags.clone_from(&new);
                    new
                }));
            }
            if any {
                mailbox.version += 1;
                if labels {
                    user.flagged(validity, &uids);
                }
                user.save()?;
            }
            Ok(results)
        })?;
        let mut gone = false;
        let mut lines = String::new();
        if let Some(selected) = &mut self.selected {
            for (index, new) in indices.into_iter().zip(results) {
                let known = &mut selected.known[index];
                let Some(new) = new else {
                    gone = true;
                    continue;
                };
                // Silence covers the client's own change, not another's.
                let expected = changed(&known.message.flags, kind, &named);
                let tell = response == StoreResponse::Answer || expected != new;
                known.message.flags = new;
                if tell {
                    let uid_item = if uid { format!("UID {} ", known.message.uid) } else { String::new() };
                    lines.push_str(&format!("* {} FETCH ({uid_item}FLAGS {})\r\n", index + 1, known.flags()));
                }
            }
        }
        self.push(&lines);
        self.shared.wake();
        if gone && !uid {
            return Err(Failure::No("[EXPUNGEISSUED] some of these messages are gone".to_owned()));
        }
        ok("done")
    }

    pub(super) fn append(
        &mut self,
        mailbox: &Mailbox<'_>,
        flags: &[Flag<'_>],
        date: Option<&DateTime>,
        message: Vec<u8>,
    ) -> Done {
        let name = self.name_of(mailbox)?;
        let date = date.map_or_else(InternalDate::now, |d| InternalDate {
            unix: d.as_ref().timestamp(),
            offset_minutes: d.as_ref().offset().local_minus_utc() / 60,
        });
        let flags = texts(flags);
        let labels = self.shared.character.labels();
        let (validity, uid) = self
            .with_user(|user| {
                let added = user.add(&name, Arc::from(message), flags, date);
                if let Ok((_, uid)) = &added {
                    user.after_add(labels, &name, *uid);
                }
                Ok(added)
            })?
            .map_err(|refusal| target_missing(refusal, &name))?;
        self.shared.wake();
        match self.offers(self.has("UIDPLUS"), "UIDPLUS") {
            Ok(()) => Ok(format!("[APPENDUID {validity} {uid}] appended")),
            Err(_) => ok("appended"),
        }
    }

    /// COPY, or MOVE (RFC 6851).
    pub(super) fn copy(&mut self, set: &SequenceSet, mailbox: &Mailbox<'_>, uid: bool, moves: bool) -> Done {
        let selected = if moves { self.writable()? } else { self.selected()? };
        let (indices, validity) = (selected.resolve(set, uid)?, selected.validity);
        let uids: Vec<u32> = indices.iter().map(|i| selected.known[*i].message.uid).collect();
        let name = self.name_of(mailbox)?;
        let labels = self.shared.character.labels();
        let (target, from, to) = self.with_user(|user| {
            user.mailbox(&name).map_err(|refusal| target_missing(refusal, &name))?;
            let source = user.by_validity(validity).ok_or(Refusal::Missing)?;
            let copies: Vec<_> = uids.iter().filter_map(|uid| source.find(*uid).cloned()).collect();
            if !uid && copies.len() < uids.len() {
                return Err(Failure::No("[EXPUNGEISSUED] some of these messages are gone".to_owned()));
            }
            let from: Vec<u32> = copies.iter().map(|m| m.uid).collect();
            let target = user.mailbox(&name)?;
            let mut to = Vec::with_capacity(copies.len());
            for mut message in copies {
                message.announced = None;
                to.push(target.push(message));
            }
            let target = target.validity;
            for uid in &to {
                user.after_add(labels, &name, *uid);
            }
            if moves && let Some(source) = user.by_validity(validity) {
                source.remove(&from.iter().copied().collect());
            }
            user.save()?;
            Ok((target, from, to))
        })?;
        self.shared.wake();
        let told = !from.is_empty() && self.offers(self.has("UIDPLUS"), "UIDPLUS").is_ok();
        let code =
            if told { format!("[COPYUID {target} {} {}] ", uid_set(&from), uid_set(&to)) } else { String::new() };
        if moves && told {
            // RFC 6851 §4.3: before the EXPUNGE responses, untagged.
            self.push(&format!("* OK {code}moved\r\n"));
            return ok("done");
        }
        Ok(format!("{code}done"))
    }

    pub(super) fn expunge(&mut self, set: Option<&SequenceSet>) -> Done {
        if set.is_some() {
            self.offers(self.has("UIDPLUS"), "UIDPLUS")?;
        }
        self.writable()?;
        self.remove_deleted(set)?;
        ok("done")
    }

    /// Removes \Deleted messages, of `set` only where given (RFC 4315 §2.1).
    pub(super) fn remove_deleted(&mut self, set: Option<&SequenceSet>) -> Result<(), Failure> {
        let selected = self.writable()?;
        let validity = selected.validity;
        let named: Option<BTreeSet<u32>> = match set {
            None => None,
            Some(set) => Some(selected.resolve(set, true)?.iter().map(|i| selected.known[*i].message.uid).collect()),
        };
        self.with_user(|user| {
            let mailbox = user.by_validity(validity).ok_or(Refusal::Missing)?;
            let fits = |uid: &u32| named.as_ref().is_none_or(|n| n.contains(uid));
            let doomed: BTreeSet<u32> =
                mailbox.messages.iter().filter(|m| m.flags.contains("\\Deleted")).map(|m| m.uid).filter(fits).collect();
            if !doomed.is_empty() {
                mailbox.remove(&doomed);
                user.save()?;
            }
            Ok(())
        })?;
        self.shared.wake();
        Ok(())
    }
}

/// RFC 3501 §6.3.11: a missing target that could be made says so.
fn target_missing(refusal: Refusal, name: &str) -> Failure {
    match refusal {
        Refusal::Missing => Failure::No(format!("[TRYCREATE] no mailbox {name}")),
        Refusal::Exists | Refusal::Inbox | Refusal::Name | Refusal::Storage => refusal.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uid_sets_shorten_runs_and_keep_order() {
        assert_eq!(uid_set(&[1, 2, 3, 7, 9, 10]), "1:3,7,9:10");
        assert_eq!(uid_set(&[]), "");
    }

    #[test]
    fn keywords_change_without_case() {
        let flags = BTreeSet::from(["$Label".to_owned(), "\\Seen".to_owned()]);
        let named = BTreeSet::from(["$label".to_owned()]);
        assert_eq!(changed(&flags, StoreType::Add, &named), flags);
        assert_eq!(changed(&flags, StoreType::Remove, &named), BTreeSet::from(["\\Seen".to_owned()]));
        assert_eq!(changed(&flags, StoreType::Replace, &named), named);
    }
}
