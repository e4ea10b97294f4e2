//! A client's own copy, for Sent, of a message that is held.
//!
//! Promises: such an APPEND is answered OK, kept here and shown nowhere until
//! the message is sent; of an agent's copy nothing is kept, since the gateway
//! puts the very octets that were sent there itself. Doesn't know: how it is
//! put into Sent (`gateway`).
//!
//! A copy belongs to a submission by its Message-ID, so that it also finds
//! one that a person had held again after an unknown outcome.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::account::{AccountId, Role};
use crate::config::SentCopy;
use crate::floor::submission::State;
use crate::outbox::{Hold, HoldId, Outbox};
use crate::store::blob::BlobId;
use crate::store::{Reader, StoreError, Table, from_json, get_json, put_json, read, write};

use super::list::leaf;
use super::mirror::{Mirror, OpError};
use super::perceiving::now;
use super::rows::for_each;
use super::session::{Fail, Session};

/// Leaf names by which Sent is known where the provider has no SPECIAL-USE.
pub const SENT_NAMES: [&str; 5] = ["sent", "sent items", "sent messages", "sent mail", "sent-mail"];
/// A client's copy that comes so long after the message was sent, in seconds,
/// may still be the one that was put into Sent for it.
const LATE: i64 = 3600;

/// How far the copy of a sent message got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The provider was asked to append it.
    #[serde(default)]
    pub begun: bool,
    /// Who was written to is noted.
    #[serde(default)]
    pub noted: bool,
    /// Nothing is left to do.
    #[serde(default)]
    pub done: bool,
    /// It is in Sent by our doing.
    #[serde(default)]
    pub appended: bool,
}

/// A client's copy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parked {
    /// Where it goes.
    pub mailbox: Vec<u8>,
    /// Flags and date, as APPEND has them: ` (\Seen) "…"`.
    pub middle: String,
    /// Its octets.
    pub blob: BlobId,
    /// How many.
    pub length: u64,
    /// When it came, seconds since 1970 (UTC).
    pub since: i64,
}

/// Key of a [`Progress`] in [`Table::Meta`].
pub fn progress_key(id: &HoldId) -> Vec<u8> {
    format!("sentcopy\0{id}").into_bytes()
}

fn parked_prefix() -> &'static [u8] {
    b"parked\0"
}

/// Key of a [`Parked`] in [`Table::Meta`].
pub fn parked_key(account: &AccountId, message_id: &str) -> Vec<u8> {
    [parked_prefix(), format!("{account}\0{}", message_id.trim()).as_bytes()].concat()
}

/// The files that parked copies name.
pub fn live_blobs(r: &dyn Reader) -> Result<Vec<BlobId>, StoreError> {
    let mut live = Vec::new();
    for_each(r, Table::Meta, parked_prefix(), |_, v| {
        live.push(from_json::<Parked>(Table::Meta, v)?.blob);
        Ok(())
    })?;
    Ok(live)
}

/// The provider's Sent among mailboxes as it lists them, with what it says of
/// each: by SPECIAL-USE (RFC 6154), else by name.
pub fn sent_among(list: &[(Vec<u8>, Vec<String>)], delimiter: char) -> Option<Vec<u8>> {
    let by_role = list.iter().find(|(_, flags)| flags.iter().any(|f| f.eq_ignore_ascii_case("\\Sent")));
    let selectable = |flags: &[String]| !flags.iter().any(|f| f.eq_ignore_ascii_case("\\Noselect"));
    let by_name = || {
        let named = |name: &&str| {
            let fits =
                |(full, flags): &&(Vec<u8>, Vec<String>)| selectable(flags) && leaf_of(full, delimiter) == **name;
            list.iter().find(fits)
        };
        SENT_NAMES.iter().find_map(named)
    };
    by_role.or_else(by_name).map(|(name, _)| name.clone())
}

fn leaf_of(name: &[u8], delimiter: char) -> String {
    let text = String::from_utf8_lossy(name).to_ascii_lowercase();
    text.rsplit(delimiter).next().unwrap_or_default().to_owned()
}

/// Whether a copy of this submission would be parked.
fn is_open(hold: &Hold, time: i64) -> bool {
    match hold.state {
        State::Held | State::Approved | State::Sending | State::Unknown => true,
        State::Sent => time.saturating_sub(hold.changed_at) < LATE,
        State::Failed | State::Denied | State::Expired | State::Withdrawn => false,
    }
}

impl Session {
    /// Submissions whose copy this session may bring.
    fn submissions(&self, outbox: &Outbox) -> Result<Vec<Hold>, Fail> {
        let signed = self.signed()?;
        let (account, time) = (&signed.principal.account, now());
        let mut holds = outbox.list(account).map_err(|e| OpError::Store(e.to_string()))?;
        let mine = |h: &Hold| match signed.principal.role {
            Role::Person => h.role == Role::Person,
            Role::Agent => h.key == signed.principal.key,
        };
        holds.retain(|h| h.action.sends() && mine(h) && is_open(h, time));
        Ok(holds)
    }

    /// Whether an APPEND to this mailbox may bring a copy of a submission.
    pub(super) async fn may_park(&mut self, mirror: &Mirror, mailbox: &[u8]) -> Result<bool, Fail> {
        let Some(outbox) = mirror.outbox.get() else { return Ok(false) };
        if self.submissions(outbox)?.is_empty() {
            return Ok(false);
        }
        let roles = self.roles(mirror, mailbox).await?;
        let named = SENT_NAMES.contains(&leaf(mirror, mailbox).as_str());
        Ok(roles.iter().any(|r| r == "\\sent") || (named && !roles.iter().any(|r| r == "\\drafts" || r == "\\trash")))
    }

    /// The submission that a message beginning so is a copy of.
    pub(super) fn copied(&self, mirror: &Mirror, start: &[u8]) -> Result<Option<Hold>, Fail> {
        let (Some(outbox), Some(id)) = (mirror.outbox.get(), super::scan::message_id(start)) else { return Ok(None) };
        let same = |h: &Hold| h.message_id.as_deref().is_some_and(|m| m.trim() == id.trim());
        let Some(hold) = self.submissions(outbox)?.into_iter().rev().find(same) else { return Ok(None) };
        let key = progress_key(&hold.id);
        let known = read::<_, StoreError>(&*mirror.store, |r| get_json(r, Table::Meta, &key)).map_err(OpError::from)?;
        // What nobody put into Sent is the client's to put there.
        Ok(Some(hold).filter(|_| !known.is_some_and(|p: Progress| p.done && !mirror.is_in_sent(p))))
    }

    /// Takes the copy in; `start` was read.
    pub(super) async fn park(
        &mut self,
        mirror: &Mirror,
        hold: &Hold,
        (mailbox, middle): (&[u8], &str),
        start: &[u8],
    ) -> Result<String, Fail> {
        let keeps = !self.signed()?.is_agent();
        match self.take_in(mirror, keeps, start).await {
            Ok(kept) => {
                if let (Some((blob, length)), Some(id)) = (kept, &hold.message_id) {
                    let row =
                        Parked { mailbox: mailbox.to_vec(), middle: middle.to_owned(), blob, length, since: now() };
                    keep(mirror, hold, parked_key(&mirror.account, id), row).await?;
                }
                tracing::info!(account = %mirror.account, hold = %hold.id, "a copy for Sent waits with its message");
                Ok("kept until the message is sent".into())
            }
            Err(e) => {
                self.reader.refuse_append(false);
                Err(e)
            }
        }
    }

    async fn take_in(&mut self, mirror: &Mirror, keeps: bool, start: &[u8]) -> Result<Option<(BlobId, u64)>, Fail> {
        let mut writer = keeps.then(|| mirror.store.blobs().writer());
        let mut chunk = Some(Bytes::copy_from_slice(start));
        while let Some(octets) = chunk {
            if let Some(writer) = &mut writer {
                writer.write(&octets).map_err(OpError::from)?;
            }
            chunk = self.next_chunk().await?;
        }
        let Some(writer) = writer else { return Ok(None) };
        Ok(Some(writer.finish().await.map_err(OpError::from)?))
    }
}

/// Writes the row, unless the message is in Sent already.
async fn keep(mirror: &Mirror, hold: &Hold, key: Vec<u8>, row: Parked) -> Result<(), Fail> {
    let (progress, row) = (progress_key(&hold.id), Arc::new(row));
    let written = write(&*mirror.store, move |w| {
        let known: Progress = get_json(w, Table::Meta, &progress)?.unwrap_or_default();
        if !known.done {
            put_json(w, Table::Meta, &key, &*row)?;
        }
        Ok(known)
    });
    let known = written.await.map_err(|e: StoreError| OpError::from(e))?;
    if known.done && !mirror.is_in_sent(known) {
        // It was sent in this very moment; the next try passes.
        return Err(Fail::No("UNAVAILABLE", "the message was just sent: try again".into()));
    }
    Ok(())
}

impl Mirror {
    /// Whether a message that was sent is in Sent, by our doing or the
    /// provider's.
    fn is_in_sent(&self, progress: Progress) -> bool {
        progress.appended || self.settings.sent == SentCopy::Provider
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_is_found_by_its_role_then_by_its_name() {
        let of = |list: &[(&str, &str)]| {
            let list: Vec<_> = list.iter().map(|(n, f)| (n.as_bytes().to_vec(), vec![(*f).to_owned()])).collect();
            sent_among(&list, '/').map(|n| String::from_utf8(n).unwrap())
        };
        assert_eq!(of(&[("Sent", ""), ("Gesendet", "\\Sent")]).as_deref(), Some("Gesendet"));
        assert_eq!(of(&[("Archive/Sent", ""), ("x", "")]).as_deref(), Some("Archive/Sent"));
        assert_eq!(of(&[("Sent", "\\Noselect"), ("Sent/Sent Items", "")]).as_deref(), Some("Sent/Sent Items"));
        assert_eq!(of(&[("INBOX", ""), ("Sentinel", "")]), None);
    }
}
