//! Deletions that wait for a person, and are then carried out by whoever
//! speaks to the mailbox.
//!
//! A deletion is held like a message: its list ([`Deletion`]) takes the place
//! of the octets, so states, receipts, expiry, limits and revocation are the
//! same. Promises: the list that is carried out is the one that was approved,
//! octet for octet. Doesn't know: IMAP; the gateway sets an [`Executor`].

use std::io::Read;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::Outbox;
use super::dispatch::{Standing, Stop, Why, not_covered};
use super::hold::{Hold, HoldError, HoldId, Intake};
use super::record;
use crate::account::{AccountId, KeyId, Role};
use crate::floor::action::Action;
use crate::floor::deletion::{Deletion, Permit};
use crate::floor::envelope::Envelope;
use crate::floor::hold::Reason;
use crate::floor::payload::PayloadHash;
use crate::floor::release::Used;
use crate::floor::submission::State;
use crate::store::blob::BlobId;
use crate::store::{self, BoxFuture, StoreError};

/// Largest list that is read, in octets.
pub const MAX_LIST: u64 = 4 * 1024 * 1024;

/// Why a permitted deletion was not carried out to its end.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// Nothing was removed; another attempt may help.
    #[error("{0}")]
    ForNow(String),
    /// Nothing was removed that isn't told; no attempt will help.
    #[error("{0}")]
    ForGood(String),
    /// Nobody knows what was removed.
    #[error("{0}")]
    Unknown(String),
}

/// Carries out what a permit permits, in the mailbox of its account.
pub type Executor = Arc<dyn Fn(AccountId, Permit) -> BoxFuture<'static, Result<Used, Stopped>> + Send + Sync>;

impl Outbox {
    /// Says who carries deletions out; once, at start.
    pub fn set_executor(&self, executor: Executor) {
        if self.executor.set(executor).is_err() {
            tracing::warn!("what carries deletions out was set twice; the first stays");
        }
    }

    /// Holds a deletion. The same one of the same key that waits already is
    /// not held twice.
    pub async fn hold_deletion(&self, key: &KeyId, deletion: &Deletion) -> Result<HoldId, HoldError> {
        let account = AccountId(deletion.account.as_str().into());
        let list = deletion.canonical();
        let digest: [u8; 32] = Sha256::digest(&list).into();
        let waits = |h: &Hold| h.key == *key && h.state == State::Held && h.action == Action::DeletePermanent;
        let open = store::read(self.store.as_ref(), |r| record::open(r))?;
        if let Some(known) = open.iter().find(|h| waits(h) && h.account == account && h.blob == BlobId(digest)) {
            return Ok(known.id.clone());
        }
        let mut writer = self.store.blobs().writer();
        writer.write(&list)?;
        let (blob, length) = writer.finish().await?;
        let intake = Intake {
            account,
            key: key.clone(),
            role: Role::Agent,
            envelope: Envelope::nobody(),
            blob,
            row: None,
            length,
            message_id: None,
            subject: Some(deletion.summary()),
            reason: Reason::AgentKey,
            action: Action::DeletePermanent,
            lineage: None,
        };
        self.hold(intake).await
    }

    /// The list of a held deletion, where it is the one that was hashed.
    pub fn deletion(&self, hold: &Hold) -> Result<Deletion, HoldError> {
        let listed = self.listed(hold).map_err(|e| HoldError::Store(StoreError::Failed(e.to_string())))?;
        Ok(listed.1)
    }

    fn listed(&self, hold: &Hold) -> Result<(Vec<u8>, Deletion), ListError> {
        let file = self.open(hold).map_err(|error| match error {
            HoldError::Store(StoreError::Gone(_)) => ListError::Gone(error),
            other => ListError::Read(std::io::Error::other(other.to_string())),
        })?;
        let mut list = Vec::new();
        file.take(MAX_LIST).read_to_end(&mut list)?;
        let same = list.len() as u64 == hold.length && Sha256::digest(&list)[..] == hold.blob.0;
        let read = same.then(|| Deletion::read(&list)).flatten().ok_or(ListError::Changed)?;
        Ok((list, read))
    }

    /// Carries out `hold`, which the caller has claimed.
    pub(super) async fn delete(&self, hold: &Hold) -> Result<(PayloadHash, String), Stop> {
        if self.is_revoked(&hold.key) {
            return Err(Stop::for_good("the submitting key was revoked"));
        }
        let executor = self.executor.get().ok_or_else(|| Stop::for_now("the mailboxes are not watched"))?;
        let Standing { verified, head, now, .. } = self.standing(hold)?;
        let (list, _) = self.listed(hold)?;
        let permit = Permit::from_receipt(verified, now, &list).map_err(not_covered)?;
        // As before a message is sent: a restored backup must be able to tell
        // that this was tried, and nobody else may try it meanwhile.
        self.witness_head(head).map_err(|e| Stop::for_now(e.to_string()))?;
        self.keep_lease(hold).await.map_err(|e| Stop::for_now(e.to_string()))?;
        let used = executor(hold.account.clone(), permit).await?;
        Ok((used.payload_hash, "the messages were removed".to_owned()))
    }
}

/// Why a held list can't be used.
#[derive(Debug, thiserror::Error)]
enum ListError {
    /// There is no file.
    #[error("the list of messages is gone: {0}")]
    Gone(HoldError),
    /// The file can't be read at the moment.
    #[error("the list of messages can't be read: {0}")]
    Read(#[from] std::io::Error),
    /// It is not what was held.
    #[error("the list of messages was changed after it was held")]
    Changed,
}

impl From<ListError> for Stop {
    fn from(error: ListError) -> Stop {
        match error {
            // As for a message: no attempt brings the approved octets back.
            ListError::Gone(_) | ListError::Changed => Stop::for_good(error.to_string()),
            ListError::Read(_) => Stop::for_now(error.to_string()),
        }
    }
}

impl From<Stopped> for Stop {
    fn from(stopped: Stopped) -> Stop {
        match stopped {
            Stopped::ForNow(text) => Stop::for_now(text),
            Stopped::ForGood(text) => Stop::for_good(text),
            Stopped::Unknown(text) => Stop::Unknown(Why { code: "no_answer".to_owned(), text }),
        }
    }
}
