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

use super::dispatch::{Outcome, Why};
use super::hold::{Hold, HoldError, HoldId, Intake};
use super::{Outbox, record};
use crate::account::{AccountId, KeyId, Role};
use crate::floor::action::Action;
use crate::floor::deletion::{Deletion, Permit};
use crate::floor::envelope::Envelope;
use crate::floor::hold::Reason;
use crate::floor::receipt::{Expect, ReceiptError};
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
        if let Some(known) = self.list(&account)?.iter().find(|h| waits(h) && h.blob == BlobId(digest)) {
            return Ok(known.id.clone());
        }
        let mut writer = self.store.blobs().writer()?;
        let written = tokio::task::spawn_blocking(move || -> Result<(BlobId, u64), StoreError> {
            writer.write(&list)?;
            writer.finish()
        });
        let (blob, length) = written.await.map_err(|e| StoreError::Failed(e.to_string()))??;
        let intake = Intake {
            account,
            key: key.clone(),
            role: Role::Agent,
            envelope: Envelope::nobody(),
            blob,
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
        self.deletion_octets(hold).map(|(_, deletion)| deletion)
    }

    fn deletion_octets(&self, hold: &Hold) -> Result<(Vec<u8>, Deletion), HoldError> {
        let failed = |why: String| HoldError::Store(StoreError::Failed(why));
        let mut list = Vec::new();
        self.open(hold)?.take(MAX_LIST).read_to_end(&mut list).map_err(|e| failed(e.to_string()))?;
        let same = list.len() as u64 == hold.length && Sha256::digest(&list)[..] == hold.blob.0;
        let read = same.then(|| Deletion::read(&list)).flatten();
        let read = read.ok_or_else(|| failed("the list of messages was changed after it was held".to_owned()))?;
        Ok((list, read))
    }

    /// Carries out `hold`, which the caller has claimed.
    pub(super) async fn delete(&self, hold: &Hold) -> Outcome {
        let why = |text: String| Why { code: "local".to_owned(), text };
        if self.is_revoked(&hold.key) {
            return Outcome::ForGood(why("the submitting key was revoked".to_owned()));
        }
        let Some(executor) = self.executor.get() else {
            return Outcome::ForNow(why("the mailboxes are not watched".to_owned()));
        };
        let permit = match self.permit(hold) {
            Ok(Ok(permit)) => permit,
            Ok(Err(refused)) => {
                return Outcome::ForGood(why(format!("the receipt does not cover it: {refused}")));
            }
            Err(e) => return Outcome::ForNow(why(e.to_string())),
        };
        match executor(hold.account.clone(), permit).await {
            Ok(used) => Outcome::Sent(used.payload_hash, "the messages were removed".to_owned()),
            Err(Stopped::ForNow(text)) => Outcome::ForNow(why(text)),
            Err(Stopped::ForGood(text)) => Outcome::ForGood(why(text)),
            Err(Stopped::Unknown(text)) => Outcome::Unknown(Why { code: "no_answer".to_owned(), text }),
        }
    }

    /// The permit of the stored receipt.
    fn permit(&self, hold: &Hold) -> Result<Result<Permit, ReceiptError>, HoldError> {
        let (host, login) = self.upstream_names(&hold.account).ok_or(HoldError::NoAccount)?;
        let (list, _) = self.deletion_octets(hold)?;
        let (row, entry, now) = store::read(self.store.as_ref(), |r| -> Result<_, HoldError> {
            let row = record::receipt(r, &hold.id)?.ok_or(HoldError::NotFound)?;
            let entry = record::entry(r, row.receipt.ledger_head.number)?;
            Ok((row, entry, self.now(r)?))
        })?;
        let expect = Expect {
            action: Action::DeletePermanent,
            message: Some((hold.blob.0, hold.length)),
            envelope: Some(&hold.envelope),
            account: Some(hold.account.as_str()),
            hold: Some(hold.id.as_str()),
            upstream: Some((&host, &login)),
            approver: hold.approver.as_deref(),
            spent: row.spent,
            at: Some(now),
        };
        let verified = row.receipt.verify(&self.verifying_keys(), &expect);
        let checked = verified.and_then(|v| row.receipt.check_ledger(entry.as_ref()).map(|()| v));
        Ok(checked.and_then(|verified| Permit::from_receipt(verified, now, &list)))
    }
}
