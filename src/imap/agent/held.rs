//! What an agent asks to remove: found, fetched, hashed, and held.
//!
//! Promises: the command changes nothing; its answer names the hold, which
//! binds mailbox, UIDVALIDITY and each message's octets as they are now.
//! Doesn't know: who approves, and what is done then.

use imap_codec::imap_types::mailbox::Mailbox;
use imap_codec::imap_types::sequence::SequenceSet;

use crate::floor::deletion::{Act, Deletion, MAX_MESSAGES, SCHEMA};
use crate::imap::deletion::{self, CheckError};
use crate::imap::encode::set_text;
use crate::imap::mirror::Mirror;
use crate::imap::ops::has_flag;
use crate::imap::pass::lost;
use crate::imap::select::name_of;
use crate::imap::session::{Fail, Selection, Session};
use crate::imap::view::Source;
use crate::outbox::HoldError;
use crate::store::StoreError;
use crate::upstream::imap::{Outcome, UntaggedData};

use super::{Permission, names};

/// What is to be removed.
pub(super) enum Victims<'a> {
    /// These of the selected mailbox.
    Named { set: &'a SequenceSet, uid: bool },
    /// Those that are flagged \Deleted, of these UIDs or of all.
    Deleted(Option<&'a SequenceSet>),
    /// A mailbox with all that is in it.
    Mailbox(&'a Mailbox<'a>),
    /// These, to where they are out of sight.
    Moved { set: &'a SequenceSet, uid: bool, to: Vec<u8> },
}

impl Session {
    /// Holds a removal; says `Done` where there is nothing to remove.
    pub(super) async fn hold(&mut self, victims: Victims<'_>) -> Result<Permission, Fail> {
        let mirror = self.mirror()?;
        let act = match &victims {
            Victims::Named { .. } | Victims::Deleted(_) => Act::Expunge,
            Victims::Mailbox(_) => Act::DeleteMailbox,
            Victims::Moved { to, .. } => Act::Move { to: text(to)? },
        };
        let (mailbox, uids) = match &victims {
            Victims::Mailbox(mailbox) => {
                let name = name_of(mailbox);
                self.deletable(&mirror, &name).await?;
                (name, None)
            }
            Victims::Named { .. } | Victims::Deleted(_) | Victims::Moved { .. } => {
                self.must_be_writable()?;
                let (name, uids) = self.victims(&mirror, &victims).await?;
                if uids.is_empty() {
                    return Ok(Permission::Done("nothing to do".into()));
                }
                (name, Some(uids))
            }
        };
        if uids.as_ref().is_some_and(|u| u.len() > MAX_MESSAGES) {
            return Err(Fail::No("LIMIT", format!("at most {MAX_MESSAGES} messages are asked for at a time")));
        }
        if deletion::is_remade(&mirror)? {
            let text = "the provider renders messages anew, so it can't be told which ones would be removed";
            return Err(Fail::No("CANNOT", text.into()));
        }
        let (host, login) = mirror.pool.names();
        let mut list = Deletion {
            schema: SCHEMA,
            account: mirror.account.to_string(),
            host,
            login,
            act,
            mailbox: text(&mailbox)?,
            uidvalidity: 0,
            messages: Vec::new(),
        };
        let seen = deletion::look(&mirror, &mailbox, uids).await.map_err(fail)?;
        list.uidvalidity = seen.uidvalidity;
        list.messages = seen.messages;
        let outbox = mirror.outbox.get().ok_or_else(|| Fail::No("UNAVAILABLE", "the account is starting".into()))?;
        let key = self.signed()?.principal.key.clone();
        let id = outbox.hold_deletion(&key, &list).await.map_err(held_fail)?;
        Err(Fail::No("NOPERM", format!("held for approval as {id}; nothing is removed before")))
    }

    /// Refuses to delete what people and clients rely on.
    async fn deletable(&mut self, mirror: &Mirror, name: &[u8]) -> Result<(), Fail> {
        let never = || Fail::No("NOPERM", "an agent's key may not delete this mailbox".into());
        let lanes = mirror.state().lanes.clone();
        let lanes = lanes.ok_or_else(|| Fail::No("UNAVAILABLE", "the account is starting".into()))?;
        if lanes.find(name).is_some() || lanes.owns(name) {
            return Err(never());
        }
        let decoded = names::decoded(name, lanes.delimiter()).ok_or_else(never)?;
        let roles = self.roles(mirror, name).await?;
        let special = ["\\trash", "\\archive", "\\junk"].iter().any(|s| roles.iter().any(|r| r == s));
        let ordinary =
            names::by_name(&decoded, lanes.delimiter()).or(names::by_attributes(&roles)) == names::Purpose::Ordinary;
        if ordinary && !special { Ok(()) } else { Err(never()) }
    }

    /// The provider's mailbox and the UIDs there of what is named.
    async fn victims(&mut self, mirror: &Mirror, victims: &Victims<'_>) -> Result<(Vec<u8>, Vec<u32>), Fail> {
        match &self.selection {
            Selection::Nothing => Err(Fail::Bad("select a mailbox first".into())),
            Selection::View(_) => Ok((b"INBOX".to_vec(), self.view_victims(mirror, victims)?)),
            Selection::Pass(passing) => {
                let name = passing.name().to_vec();
                let command = match victims {
                    Victims::Named { set, uid: true } | Victims::Moved { set, uid: true, .. } => {
                        format!("UID SEARCH UID {}", set_text(set))
                    }
                    Victims::Named { set, uid: false } | Victims::Moved { set, uid: false, .. } => {
                        format!("UID SEARCH {}", set_text(set))
                    }
                    Victims::Deleted(None) => "UID SEARCH DELETED".to_owned(),
                    Victims::Deleted(Some(set)) => format!("UID SEARCH DELETED UID {}", set_text(set)),
                    Victims::Mailbox(_) => return Err(Fail::Bad("not a set of messages".into())),
                };
                Ok((name, self.own_search(&command).await?))
            }
        }
    }

    /// A UID SEARCH over the selected mailbox's own connection.
    async fn own_search(&mut self, command: &str) -> Result<Vec<u32>, Fail> {
        self.wake_passed().await?;
        let outcome = self.own_lease()?.run(command.as_bytes()).await.and_then(Outcome::ok).map_err(lost)?;
        let (mut uids, mut news) = (Vec::new(), Vec::new());
        for u in outcome.untagged {
            match u.parse() {
                UntaggedData::Search(found) => uids.extend(found),
                _ => news.push(u),
            }
        }
        self.pass_untagged(&news).await?;
        uids.sort_unstable();
        uids.dedup();
        Ok(uids)
    }

    fn view_victims(&mut self, mirror: &Mirror, victims: &Victims<'_>) -> Result<Vec<u32>, Fail> {
        let viewing = self.viewing()?;
        let (chosen, flagged) = match victims {
            Victims::Named { set, uid } | Victims::Moved { set, uid, .. } => (viewing.resolve(set, *uid)?, false),
            Victims::Deleted(Some(set)) => (viewing.resolve(set, true)?, true),
            Victims::Deleted(None) => {
                let all = viewing.known.uids().to_vec();
                (all.into_iter().filter_map(|u| Some((viewing.known.seq(u)?, u))).collect(), true)
            }
            Victims::Mailbox(_) => return Err(Fail::Bad("not a set of messages".into())),
        };
        let state = mirror.state();
        let Some(view) = state.view(viewing.id) else { return Ok(Vec::new()) };
        let mut uids: Vec<u32> = Vec::new();
        for (_, uid) in chosen {
            let Some(entry) = view.get(uid).filter(|e| !e.superseded) else { continue };
            let Source::Upstream(up) = entry.source else { continue };
            if !flagged || has_flag(&state.shown_flags(viewing.id, entry), "\\Deleted") {
                uids.push(up.get());
            }
        }
        uids.sort_unstable();
        uids.dedup();
        Ok(uids)
    }

    /// Octets and number of the messages that a COPY names.
    pub(super) async fn weight(&mut self, mirror: &Mirror, set: &SequenceSet, uid: bool) -> Result<(u64, u64), Fail> {
        if let Selection::View(_) = &self.selection {
            let uids = self.view_victims(mirror, &Victims::Named { set, uid })?;
            let state = mirror.state();
            let sizes: Vec<u64> = uids
                .iter()
                .filter_map(|u| crate::imap::uid::UpstreamUid::new(*u))
                .filter_map(|u| state.messages.get(&u).map(|m| m.row.size))
                .collect();
            return Ok((sizes.iter().sum(), sizes.len() as u64));
        }
        self.wake_passed().await?;
        let verb = if uid { "UID FETCH" } else { "FETCH" };
        let command = format!("{verb} {} (RFC822.SIZE)", set_text(set));
        let outcome = self.own_lease()?.run(command.as_bytes()).await.and_then(Outcome::ok).map_err(lost)?;
        let (mut octets, mut messages, mut news) = (0u64, 0, Vec::new());
        for u in outcome.untagged {
            match u.parse() {
                UntaggedData::Fetch { items, .. } if items.size.is_some() && items.flags.is_none() => {
                    octets = octets.saturating_add(items.size.unwrap_or_default());
                    messages += 1;
                }
                _ => news.push(u),
            }
        }
        self.pass_untagged(&news).await?;
        Ok((octets, messages))
    }
}

/// A name on the wire as text, which a list needs.
fn text(name: &[u8]) -> Result<String, Fail> {
    String::from_utf8(name.to_vec()).map_err(|_| Fail::No("CANNOT", "the mailbox has no name that can be shown".into()))
}

fn fail(e: CheckError) -> Fail {
    match e {
        CheckError::Imap(e) => e.into(),
        CheckError::Pool(e) => e.into(),
        CheckError::TooMany | CheckError::TooLarge => Fail::No("LIMIT", e.to_string()),
        CheckError::Gone(_) => Fail::No("EXPUNGEISSUED", e.to_string()),
    }
}

fn held_fail(e: HoldError) -> Fail {
    let text = e.to_string();
    match e {
        HoldError::TooMany(_) | HoldError::TooManyOctets(_) | HoldError::Crowded | HoldError::NeverFits(_) => {
            Fail::No("LIMIT", text)
        }
        HoldError::KeyRevoked => Fail::Bye(text),
        HoldError::Store(StoreError::Full(_)) => Fail::No("UNAVAILABLE", "the disk is full; nothing was held".into()),
        _ => Fail::No("UNAVAILABLE", text),
    }
}
