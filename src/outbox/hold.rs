//! What is kept of a held submission.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::identity::IdentityError;
use super::lease::Lease;
use super::lineage::Lineage;
use crate::account::{AccountId, AccountsError, KeyId, Role};
use crate::floor::action::Action;
use crate::floor::envelope::Envelope;
use crate::floor::hold::Reason;
use crate::floor::passkey::AssertionError;
use crate::floor::payload::{Payload, PayloadHash};
use crate::floor::submission::{Illegal, State};
use crate::store::StoreError;
use crate::store::blob::BlobId;

/// Characters of an id: no vowels, no look-alikes and one case, so that none
/// is a word and none is misread.
const ALPHABET: &[u8; 27] = b"23456789bcdfghjkmnpqrstvwxz";
/// Characters of an id; 4.7 random bits each.
const ID_CHARS: usize = 16;

/// Names a held submission: short, and safe in a URL and in a reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct HoldId(Arc<str>);

impl HoldId {
    /// A new id.
    pub(super) fn random() -> Result<HoldId, HoldError> {
        let mut octets = [0u8; ID_CHARS];
        getrandom::fill(&mut octets).map_err(|e| HoldError::Random(e.to_string()))?;
        let text: String = octets.iter().map(|o| char::from(ALPHABET[usize::from(*o) % ALPHABET.len()])).collect();
        Ok(HoldId(text.into()))
    }

    /// Reads an id; `None` for what can't be one.
    pub fn parse(text: &str) -> Option<HoldId> {
        let good = text.len() == ID_CHARS && text.bytes().all(|b| ALPHABET.contains(&b));
        good.then(|| HoldId(text.into()))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for HoldId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HoldId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        HoldId::parse(&text).ok_or_else(|| serde::de::Error::custom("not a hold id"))
    }
}

/// What a face hands in.
#[derive(Debug, Clone)]
pub struct Intake {
    /// The account.
    pub account: AccountId,
    /// The submitting key.
    pub key: KeyId,
    /// Whose key it is.
    pub role: Role,
    /// Who it goes to.
    pub envelope: Envelope,
    /// The octets.
    pub blob: BlobId,
    /// The octets themselves, where they aren't durable yet: they become a
    /// blob together with the hold.
    pub row: Option<Arc<[u8]>>,
    /// How many.
    pub length: u64,
    /// The Message-ID field as it stands.
    pub message_id: Option<String>,
    /// The Subject field, unfolded, not decoded.
    pub subject: Option<String>,
    /// Why it waits.
    pub reason: Reason,
    /// What the submission is.
    pub action: Action,
    /// What it has of an agent's draft.
    pub lineage: Option<Lineage>,
}

/// A held submission.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hold {
    /// Its id.
    pub id: HoldId,
    /// The account.
    pub account: AccountId,
    /// The submitting key.
    pub key: KeyId,
    /// Whose key it is.
    pub role: Role,
    /// Why it waits.
    pub reason: Reason,
    /// What an approval permits. Holds from before there were other acts are
    /// mail to be sent.
    #[serde(default = "send_email")]
    pub action: Action,
    /// What it has of an agent's draft.
    #[serde(default)]
    pub lineage: Option<Lineage>,
    /// Who it goes to.
    pub envelope: Envelope,
    /// The octets: SHA-256.
    pub blob: BlobId,
    /// Length in octets.
    pub length: u64,
    /// The Message-ID field as it stands.
    pub message_id: Option<String>,
    /// The Subject field, unfolded, not decoded.
    pub subject: Option<String>,
    /// Where it stands.
    pub state: State,
    /// When it was submitted, seconds since 1970 (UTC).
    pub held_at: i64,
    /// When it expires undecided; never for a person's own mail.
    pub expires_at: Option<i64>,
    /// When it was last changed.
    pub changed_at: i64,
    /// Attempts to send so far.
    pub attempt: u32,
    /// When the next attempt is due, while approved.
    pub next_attempt: Option<i64>,
    /// What the last change said: a reply of the provider, a reason.
    pub detail: Option<String>,
    /// Who approved or denied.
    pub approver: Option<String>,
    /// The hold that followed an unknown outcome.
    pub again: Option<HoldId>,
    /// Payloads that were shown and can be approved.
    pub(super) shown: Vec<ShownRecord>,
    /// Who sends it, while it is being sent.
    #[serde(default)]
    pub(super) lease: Option<Lease>,
}

fn send_email() -> Action {
    Action::SendEmail
}

/// What a payload holds beside the hold's own values.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ShownRecord {
    pub(super) nonce: String,
    pub(super) approver: String,
    pub(super) method: String,
    pub(super) time: i64,
    pub(super) expiry: i64,
}

impl Hold {
    pub(super) fn new(id: HoldId, intake: Intake, now: i64, ttl_seconds: i64) -> Hold {
        // A person's own mail waits for its person as long as it takes.
        let expires_at = (intake.role == Role::Agent).then(|| now.saturating_add(ttl_seconds));
        Hold {
            id,
            account: intake.account,
            key: intake.key,
            role: intake.role,
            reason: intake.reason,
            action: intake.action,
            lineage: intake.lineage,
            envelope: intake.envelope,
            blob: intake.blob,
            length: intake.length,
            message_id: intake.message_id,
            subject: intake.subject,
            state: State::Held,
            held_at: now,
            expires_at,
            changed_at: now,
            attempt: 0,
            next_attempt: None,
            detail: None,
            approver: None,
            again: None,
            shown: Vec::new(),
            lease: None,
        }
    }

    pub(super) fn event(&self) -> HoldEvent {
        HoldEvent {
            account: self.account.clone(),
            hold: self.id.clone(),
            state: self.state,
            summary: self.detail.clone().unwrap_or_default(),
        }
    }
}

/// A transition, as it is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldEvent {
    /// The account.
    pub account: AccountId,
    /// The hold.
    pub hold: HoldId,
    /// The new state.
    pub state: State,
    /// What the change said.
    pub summary: String,
}

/// A payload as it is shown to an approver.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The hold.
    pub hold: Hold,
    /// What an approval signs; its nonce is fresh.
    pub payload: Payload,
    /// Its hash; the approval repeats it.
    pub hash: PayloadHash,
}

/// Why the outbox could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key has as many open holds as it may.
    #[error("this key has {0} messages waiting; more are taken when some are decided")]
    TooMany(usize),
    /// The key has as many octets in open holds as it may.
    #[error("this key has {0} octets of messages waiting at most; more are taken when some are decided")]
    TooManyOctets(u64),
    /// Agents have as many open holds, or octets in them, as they may.
    #[error("too many messages wait for approval here; more are taken when some are decided")]
    Crowded,
    /// The message alone is larger than what a key may have waiting.
    #[error("a key may have {0} octets waiting, and this message is larger")]
    NeverFits(u64),
    /// The attempt is another dispatcher's by now.
    #[error("the attempt is not ours any more")]
    LostLease,
    /// The file outside the state can't be used.
    #[error("the witness can't be read or written: {0} (see witness_file in gateway.toml)")]
    Witness(String),
    /// The signing identity can't be changed.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// No such hold in this account.
    #[error("no such held message")]
    NotFound,
    /// The hold is in another state.
    #[error(transparent)]
    Illegal(#[from] Illegal),
    /// The submitting key was revoked.
    #[error("the submitting key was revoked")]
    KeyRevoked,
    /// The account is not configured any more.
    #[error("the account is not configured")]
    NoAccount,
    /// The outcome was acknowledged before; the new hold's id.
    #[error("it is held again as {0}")]
    Again(HoldId),
    /// The system has no randomness.
    #[error("no randomness: {0}")]
    Random(String),
}

/// What the holds of a revoked key are denied with.
#[derive(Debug, Clone)]
pub struct Denial {
    /// Who denies.
    pub approver: String,
    /// Why, for the submitter.
    pub reason: String,
}

/// Why a key was not revoked for good: it opens nothing until the next start,
/// and may have messages waiting.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    /// The key.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// What it has waiting.
    #[error(transparent)]
    Hold(#[from] HoldError),
}

/// Why an approval was refused; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No such hold in this account.
    #[error("no such held message")]
    NotFound,
    /// It was decided, or its time is over.
    #[error("the message is {0}, not held")]
    NotHeld(State),
    /// The page is too old, of another approver, or was never shown.
    #[error("this page can't approve any more; open it again")]
    Stale,
    /// What was shown is not what would be approved.
    #[error("what was shown is not what would be approved; open the page again")]
    HashDiffers,
    /// The submitting key was revoked.
    #[error("the submitting key was revoked")]
    KeyRevoked,
    /// The account is not configured any more.
    #[error("the account is not configured")]
    NoAccount,
    /// The proof is of another kind than was shown or is configured.
    #[error("this page asks for another proof; open it again")]
    Method,
    /// The passkey's answer is not for what was shown.
    #[error("{0}")]
    Proof(AssertionError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_url_safe_and_read_back() {
        let id = HoldId::random().unwrap();
        assert_eq!(HoldId::parse(id.as_str()), Some(id.clone()));
        assert_ne!(HoldId::random().unwrap(), id);
        assert!(id.as_str().bytes().all(|b| b.is_ascii_alphanumeric()));
        for text in ["", "../../etc/passwd", "aaaaaaaaaaaaaaaa", "2222222222222222x"] {
            assert_eq!(HoldId::parse(text), None, "{text}");
        }
    }
}
