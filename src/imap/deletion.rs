//! Looking at messages that are to be removed, and removing them once a
//! person has approved it.
//!
//! Promises: nothing is removed but under a [`Permit`], and only messages
//! whose octets, fetched a moment before, have the hash that was approved, in
//! the mailbox and under the UIDVALIDITY that were approved; one difference
//! and nothing is removed. INBOX is changed by the watching connection alone.
//! Doesn't know: who approved, states.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use sha2::{Digest, Sha256};

use crate::account::AccountId;
use crate::floor::deletion::{Act, Deletion, MAX_MESSAGES, MAX_SHOWN_CHARS, Permit, Victim};
use crate::floor::release::Used;
use crate::mail::header;
use crate::outbox::deletion::{Executor, Stopped};
use crate::store::{StoreError, read};
use crate::upstream::imap::{ImapError, Outcome, UntaggedData};
use crate::wire::imap::Piece;

use super::encode::quote;
use super::measured::mark_of;
use super::mirror::{FlagChange, Mirror, Op, OpError};
use super::pool::{Lease, PoolError};
use super::session::Fail;
use super::uid::{UpstreamUid, sequence_set};

/// Most octets of all messages of one deletion.
pub const MAX_OCTETS: u64 = 256 * 1024 * 1024;
/// Octets of a message in which its header is looked for.
const HEAD: usize = 64 * 1024;

/// Why messages can't be looked at.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The connection or the provider.
    #[error(transparent)]
    Imap(#[from] ImapError),
    /// There is none.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// More than [`MAX_MESSAGES`].
    #[error("at most {MAX_MESSAGES} messages are asked for at a time")]
    TooMany,
    /// More than [`MAX_OCTETS`].
    #[error("at most {MAX_OCTETS} octets are asked for at a time")]
    TooLarge,
    /// One isn't there, or doesn't come whole.
    #[error("message {0} can't be read any more")]
    Gone(u32),
}

/// What stands in a mailbox.
pub(super) struct Look {
    pub(super) uidvalidity: u32,
    pub(super) messages: Vec<Victim>,
}

/// Whether the provider of an account renders messages anew, so that their
/// hashes say nothing.
pub(super) fn is_remade(mirror: &Mirror) -> Result<bool, Fail> {
    let mark = read::<_, StoreError>(&*mirror.store, |r| mark_of(r, &mirror.account));
    Ok(mark.map_err(OpError::from)?.is_some())
}

/// Fetches and hashes messages of a mailbox by UID, or all of them.
pub(super) async fn look(mirror: &Mirror, mailbox: &[u8], uids: Option<Vec<u32>>) -> Result<Look, CheckError> {
    let mut lease = mirror.pool.any().await?;
    lease.forget_selection();
    let uidvalidity = lease.select_plainly(mailbox, true).await?.uidvalidity;
    let uids = match uids {
        Some(uids) => uids,
        None => search(&mut lease, "ALL").await?,
    };
    let messages = hash_all(&mut lease, &uids).await?;
    vacate(lease).await;
    Ok(Look { uidvalidity, messages })
}

/// Leaves what is selected; the connection serves others.
async fn vacate(mut lease: Lease) {
    if lease.capabilities().has("UNSELECT") && lease.briefly(b"UNSELECT").await.is_ok_and(|o| o.ok().is_ok()) {
        lease.give_back();
    }
}

async fn search(lease: &mut Lease, what: &str) -> Result<Vec<u32>, ImapError> {
    let outcome = lease.run(format!("UID SEARCH {what}").as_bytes()).await?.ok()?;
    let mut uids: Vec<u32> = outcome
        .untagged
        .iter()
        .flat_map(|u| match u.parse() {
            UntaggedData::Search(found) => found,
            _ => Vec::new(),
        })
        .collect();
    uids.sort_unstable();
    uids.dedup();
    Ok(uids)
}

async fn hash_all(lease: &mut Lease, uids: &[u32]) -> Result<Vec<Victim>, CheckError> {
    if uids.len() > MAX_MESSAGES {
        return Err(CheckError::TooMany);
    }
    let (mut messages, mut left) = (Vec::new(), MAX_OCTETS);
    for uid in uids {
        let victim = hash_one(lease, *uid, left).await?;
        left = left.saturating_sub(victim.length);
        messages.push(victim);
    }
    Ok(messages)
}

/// What came of a body: its hash so far, its length, its first octets.
type Body = (Sha256, u64, Vec<u8>);

/// One message, hashed as it comes. A connection whose message is too large
/// must not be used again: the caller drops it with the error.
async fn hash_one(lease: &mut Lease, uid: u32, most: u64) -> Result<Victim, CheckError> {
    let tag = lease.send(format!("UID FETCH {uid} (UID BODY.PEEK[])").as_bytes()).await?;
    let ours = format!("{tag} ").into_bytes();
    let mut found: Option<Body> = None;
    loop {
        // One response: its text, and the body that it may carry.
        let (mut text, mut body): (Vec<u8>, Option<Body>) = (Vec::new(), None);
        let mut open = false;
        loop {
            match lease.piece_in_time().await? {
                Piece::Text(part) => text.extend_from_slice(&part),
                Piece::Literal { .. } => {
                    // The announcement ends the text so far.
                    let upper = text.to_ascii_uppercase();
                    let at = memchr::memmem::rfind(&upper, b"BODY[]").map(|at| at + b"BODY[] ".len());
                    open = at.is_some_and(|at| upper.get(at..).is_some_and(|rest| rest.starts_with(b"{")));
                    if open {
                        body = Some((Sha256::new(), 0, Vec::new()));
                    }
                }
                Piece::Chunk(octets) => {
                    if let (true, Some((hasher, length, head))) = (open, &mut body) {
                        hasher.update(&octets);
                        *length += octets.len() as u64;
                        if *length > most {
                            return Err(CheckError::TooLarge);
                        }
                        let room = HEAD.saturating_sub(head.len());
                        head.extend_from_slice(&octets[..octets.len().min(room)]);
                    }
                }
                Piece::End => break,
            }
        }
        if let Some(rest) = text.strip_prefix(&ours[..]) {
            if !rest.get(..2).is_some_and(|r| r.eq_ignore_ascii_case(b"OK")) {
                let text = String::from_utf8_lossy(rest).into_owned();
                return Err(ImapError::No { code: None, text }.into());
            }
            let (hasher, length, head) = found.ok_or(CheckError::Gone(uid))?;
            return Ok(victim(uid, hasher.finalize().into(), length, &head));
        }
        if body.is_some() && names_uid(&text, uid) {
            found = body;
        }
    }
}

/// Whether the text of a FETCH response, its literals left out, names a UID.
fn names_uid(text: &[u8], uid: u32) -> bool {
    let text = String::from_utf8_lossy(text).to_ascii_uppercase();
    let words: Vec<&str> = text.split([' ', '(', ')']).collect();
    let uid = uid.to_string();
    words.windows(2).any(|pair| pair[0] == "UID" && pair[1] == uid)
}

fn victim(uid: u32, sha256: [u8; 32], length: u64, head: &[u8]) -> Victim {
    let field = |name: &str| {
        let value = header::values(head, name).first().map(|v| String::from_utf8_lossy(v).trim().to_owned())?;
        Some(value.chars().take(MAX_SHOWN_CHARS).collect())
    };
    Victim { uid, sha256, length, subject: field("Subject"), from: field("From"), date: field("Date") }
}

/// Carries out what is permitted.
pub fn executor(mirrors: &HashMap<AccountId, Arc<Mirror>>) -> Executor {
    // A mirror holds the outbox, which holds this: one of them must not keep
    // the other, or the store stays open after a shutdown.
    let mirrors: HashMap<AccountId, Weak<Mirror>> =
        mirrors.iter().map(|(account, mirror)| (account.clone(), Arc::downgrade(mirror))).collect();
    Arc::new(move |account, permit| {
        let mirror = mirrors.get(&account).and_then(Weak::upgrade);
        Box::pin(async move {
            let mirror = mirror.ok_or_else(|| Stopped::ForNow("the account is not running".into()))?;
            carry_out(&mirror, permit).await
        })
    })
}

impl From<CheckError> for Stopped {
    fn from(e: CheckError) -> Stopped {
        match e {
            CheckError::Imap(ImapError::No { .. } | ImapError::Bad { .. })
            | CheckError::TooMany
            | CheckError::TooLarge
            | CheckError::Gone(_) => Stopped::ForGood(format!("nothing was removed: {e}")),
            CheckError::Imap(_) | CheckError::Pool(_) => Stopped::ForNow(format!("nothing was removed: {e}")),
        }
    }
}

fn differs(what: &str) -> Stopped {
    Stopped::ForGood(format!("nothing was removed: {what} since it was approved"))
}

/// What went wrong once the provider was told to remove.
fn under_way(e: ImapError) -> Stopped {
    match e {
        ImapError::No { .. } | ImapError::Bad { .. } => Stopped::ForGood(format!("the provider refused: {e}")),
        other => Stopped::Unknown(format!("the connection was lost while messages were removed: {other}")),
    }
}

async fn carry_out(mirror: &Mirror, permit: Permit) -> Result<Used, Stopped> {
    let asked = permit.deletion();
    if asked.account != mirror.account.as_str() || (asked.host.clone(), asked.login.clone()) != mirror.pool.names() {
        return Err(differs("the account's provider changed"));
    }
    if is_remade(mirror).map_err(|e| Stopped::ForNow(e.to_string()))? {
        return Err(Stopped::ForGood("nothing was removed: the provider renders messages anew".into()));
    }
    let mut lease = mirror.pool.any().await.map_err(CheckError::from)?;
    lease.forget_selection();
    verify(&mut lease, &permit).await?;
    let uids: Vec<u32> = asked.messages.iter().map(|m| m.uid).collect();
    let moves = lease.capabilities().has("MOVE");
    if !(lease.capabilities().has("UIDPLUS") || moves && matches!(asked.act, Act::Move { .. })) {
        return Err(Stopped::ForGood("nothing was removed: the provider can't expunge single messages".into()));
    }
    if asked.mailbox.eq_ignore_ascii_case("INBOX") {
        vacate(lease).await;
        remove_from_inbox(mirror, &permit, &uids).await?;
    } else {
        remove(&mut lease, &permit, &uids).await?;
        vacate(lease).await;
    }
    Ok(permit.into_used())
}

/// Fetches, hashes and compares everything, by EXAMINE.
async fn verify(lease: &mut Lease, permit: &Permit) -> Result<(), Stopped> {
    let asked = permit.deletion();
    let selected = lease.select_plainly(asked.mailbox.as_bytes(), true).await.map_err(CheckError::from)?;
    if selected.uidvalidity != asked.uidvalidity {
        return Err(differs("the mailbox was made anew"));
    }
    let uids: Vec<u32> = asked.messages.iter().map(|m| m.uid).collect();
    if asked.act == Act::DeleteMailbox && search(lease, "ALL").await.map_err(CheckError::from)? != uids {
        return Err(differs("other messages came or went"));
    }
    let found = hash_all(lease, &uids).await?;
    match found.iter().find(|v| !permit.permits(v.uid, &v.sha256, v.length)) {
        Some(other) => Err(differs(&format!("message {} changed", other.uid))),
        None => Ok(()),
    }
}

/// The messages of a mailbox other than INBOX, over the connection that has
/// just compared them.
async fn remove(lease: &mut Lease, permit: &Permit, uids: &[u32]) -> Result<(), Stopped> {
    let asked: &Deletion = permit.deletion();
    let selected = lease.select_plainly(asked.mailbox.as_bytes(), false).await.map_err(CheckError::from)?;
    if selected.uidvalidity != asked.uidvalidity {
        return Err(differs("the mailbox was made anew"));
    }
    if !uids.is_empty() {
        let set = sequence_set(uids);
        let to = match &asked.act {
            Act::Move { to } => Some(quote(to.as_bytes())),
            Act::Expunge | Act::DeleteMailbox => None,
        };
        match to {
            Some(to) if lease.capabilities().has("MOVE") => {
                told(lease, &[format!("UID MOVE {set} ").as_bytes(), &to].concat()).await.map_err(under_way)?;
            }
            to => {
                if let Some(to) = to {
                    let copied = told(lease, &[format!("UID COPY {set} ").as_bytes(), &to].concat()).await;
                    copied.map_err(CheckError::from)?;
                }
                let flagged = told(lease, format!("UID STORE {set} +FLAGS.SILENT (\\Deleted)").as_bytes()).await;
                flagged.map_err(CheckError::from)?;
                if let Err(e) = told(lease, format!("UID EXPUNGE {set}").as_bytes()).await {
                    if !e.ends_connection() {
                        // As it was: only what is expunged is removed.
                        let _ = told(lease, format!("UID STORE {set} -FLAGS.SILENT (\\Deleted)").as_bytes()).await;
                    }
                    return Err(under_way(e));
                }
            }
        }
        let left = search(lease, &format!("UID {set}")).await.map_err(under_way)?;
        if !left.is_empty() {
            return Err(Stopped::ForGood(format!("the provider kept {} of {} messages", left.len(), uids.len())));
        }
    }
    if asked.act == Act::DeleteMailbox {
        delete_mailbox(lease, asked).await?;
    }
    Ok(())
}

/// The mailbox itself, once it is empty.
async fn delete_mailbox(lease: &mut Lease, asked: &Deletion) -> Result<(), Stopped> {
    let stays = |why: String| Stopped::ForGood(format!("the messages were removed, the mailbox stays: {why}"));
    if !search(lease, "ALL").await.map_err(under_way)?.is_empty() {
        return Err(stays("other messages came meanwhile".into()));
    }
    // RFC 9051 §6.3.5 leaves it open whether a selected mailbox can be deleted.
    lease.select_plainly(b"INBOX", true).await.map_err(under_way)?;
    let done = told(lease, &[b"DELETE ".as_slice(), &quote(asked.mailbox.as_bytes())].concat()).await;
    done.map_err(|e| if e.ends_connection() { under_way(e) } else { stays(e.to_string()) })
}

async fn told(lease: &mut Lease, command: &[u8]) -> Result<(), ImapError> {
    lease.run(command).await.and_then(Outcome::ok).map(drop)
}

/// The messages of INBOX, by the connection that changes it.
async fn remove_from_inbox(mirror: &Mirror, permit: &Permit, uids: &[u32]) -> Result<(), Stopped> {
    let uids: Vec<UpstreamUid> = uids.iter().filter_map(|u| UpstreamUid::new(*u)).collect();
    if mirror.state().uidvalidity != Some(permit.deletion().uidvalidity) {
        return Err(Stopped::ForNow("nothing was removed: INBOX is not synced yet".into()));
    }
    let after = |e: OpError| match e {
        OpError::Refused(_) | OpError::Cannot(_) => Stopped::ForGood(e.to_string()),
        OpError::Unavailable(_) | OpError::Gone | OpError::Store(_) => {
            Stopped::Unknown(format!("the connection was lost while messages were removed: {e}"))
        }
    };
    match &permit.deletion().act {
        Act::DeleteMailbox => return Err(Stopped::ForGood("INBOX is not deleted".into())),
        Act::Move { to } => {
            let name = to.clone().into_bytes();
            mirror.ask(|r| Op::CopyOut(uids.clone(), name, true, r)).await.map_err(after)?;
        }
        Act::Expunge => {
            let flag = vec!["\\Deleted".to_owned()];
            let flagged = mirror.ask(|r| Op::Store(uids.clone(), FlagChange::Add, flag.clone(), r)).await;
            flagged.map_err(|e| match e {
                OpError::Unavailable(_) => Stopped::ForNow(format!("nothing was removed: {e}")),
                other => after(other),
            })?;
            if let Err(e) = mirror.ask(|r| Op::Expunge(uids.clone(), r)).await {
                if let OpError::Refused(_) = e {
                    // As it was: only what is expunged is removed.
                    let _ = mirror.ask(|r| Op::Store(uids.clone(), FlagChange::Remove, flag, r)).await;
                }
                return Err(after(e));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_belongs_to_the_uid_that_it_names() {
        for text in
            [&b"* 3 FETCH (UID 9 BODY[] {5})"[..], b"* 3 FETCH (BODY[] {5} UID 9)", b"* 9 FETCH (FLAGS () uid 9)"]
        {
            assert!(names_uid(text, 9), "{}", String::from_utf8_lossy(text));
        }
        for text in [&b"* 9 FETCH (UID 99 BODY[] {5})"[..], b"* 9 FETCH (BODY[] {9})", b"* UID 9"] {
            assert_eq!(names_uid(text, 9), text == b"* UID 9", "{}", String::from_utf8_lossy(text));
        }
    }
}
