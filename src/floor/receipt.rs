//! The signed record that a person approved a payload.
//!
//! The signature (Ed25519) is over the action's prefix, the canonical
//! payload, the canonical JSON of the ledger head (that of the `approved`
//! entry, which names the payload's hash), and that of the passkey's
//! assertion where there is one.
//!
//! Without the approver's own key the signature is the gateway's word that a
//! proof came with the payload; [`Receipt::check_approver`] needs no such word.
//!
//! Promises: [`Receipt::verify`] fails with an error of its own for each way
//! a receipt can be wrong, and only it makes a [`Verified`]. Doesn't know:
//! the clock, whether a receipt was spent, which keys are trusted; they are
//! arguments.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer};
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::envelope::Envelope;
use super::identity::{SigningKey, VerifyingKey, key_id};
use super::ledger::{Entry, Event, LedgerHead};
use super::passkey::{ApproverKey, Assertion, AssertionError};
use super::payload::{PASSKEY, Payload, PayloadHash, SCHEMA};
use super::text;

/// Largest JSON text of a receipt in octets.
pub const MAX_RECEIPT: usize = 4 * 1024 * 1024;

/// A receipt as it is kept and handed out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// What was approved.
    pub payload: Payload,
    /// [`Payload::hash`].
    pub payload_hash: PayloadHash,
    /// Ed25519 signature, base64.
    pub signature: String,
    /// Which key signed: [`key_id`].
    pub key_id: String,
    /// The ledger entry of the approval.
    pub ledger_head: LedgerHead,
    /// What the approver's passkey signed, where the method is `passkey`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assertion: Option<Assertion>,
}

/// What a receipt must be for. `None` means that the caller has nothing to
/// compare with; it is never a wildcard for what is then executed, because a
/// [`super::release::Release`] carries the receipt's own values.
#[derive(Debug, Clone, Copy)]
pub struct Expect<'a> {
    /// The act about to be carried out.
    pub action: Action,
    /// SHA-256 and length of the message's octets.
    pub message: Option<([u8; 32], u64)>,
    /// The envelope.
    pub envelope: Option<&'a Envelope>,
    /// The account.
    pub account: Option<&'a str>,
    /// The hold.
    pub hold: Option<&'a str>,
    /// Host and login of the provider's submission server.
    pub upstream: Option<(&'a str, &'a str)>,
    /// The approver.
    pub approver: Option<&'a str>,
    /// Whether the receipt was spent before.
    pub spent: bool,
    /// The time, seconds since 1970 (UTC); the later of the clock and the
    /// last ledger entry.
    pub at: Option<i64>,
}

impl<'a> Expect<'a> {
    /// Expects `action` and nothing else.
    pub fn new(action: Action) -> Expect<'a> {
        Expect {
            action,
            message: None,
            envelope: None,
            account: None,
            hold: None,
            upstream: None,
            approver: None,
            spent: false,
            at: None,
        }
    }
}

/// Which part of a payload is not what it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Mismatch {
    /// The JSON is no receipt.
    #[error("it can't be read")]
    Unreadable,
    /// The payload's hash isn't the one that the receipt names.
    #[error("the payload's hash differs")]
    Hash,
    /// SHA-256 or length of the message.
    #[error("the message differs")]
    Message,
    /// Sender, a recipient or a parameter.
    #[error("the envelope differs")]
    Envelope,
    /// The account.
    #[error("the account differs")]
    Account,
    /// The hold.
    #[error("the hold differs")]
    Hold,
    /// Host or login of the provider.
    #[error("the provider differs")]
    Upstream,
}

/// Why a receipt opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReceiptError {
    /// Written under a schema that this program doesn't know.
    #[error("schema {found} is not known here (known: {SCHEMA})")]
    Schema {
        /// Schema found.
        found: u32,
    },
    /// For another act.
    #[error("the receipt is for {found}, not for {expected}")]
    Action {
        /// Action of the receipt.
        found: Action,
        /// Action about to be carried out.
        expected: Action,
    },
    /// The payload isn't what is about to be carried out.
    #[error("payload: {0}")]
    Payload(Mismatch),
    /// Approved by another.
    #[error("approved by another approver")]
    Approver,
    /// The approver's own proof is missing or wrong.
    #[error("{0}")]
    Proof(AssertionError),
    /// Its time is over.
    #[error("expired at {expiry}")]
    Expired {
        /// Expiry, seconds since 1970.
        expiry: i64,
    },
    /// Spent before.
    #[error("spent before")]
    Spent,
    /// No known key signed this.
    #[error("the signature is not of a known key over this payload and ledger head")]
    Signature,
    /// The ledger has no such approval.
    #[error("the ledger holds no such approval")]
    Chain,
}

impl ReceiptError {
    /// A short code, as in vectors and JSON output.
    pub fn code(&self) -> &'static str {
        match self {
            ReceiptError::Schema { .. } => "schema",
            ReceiptError::Action { .. } => "action",
            ReceiptError::Payload(_) => "payload",
            ReceiptError::Approver | ReceiptError::Proof(_) => "approver",
            ReceiptError::Expired { .. } => "expired",
            ReceiptError::Spent => "spent",
            ReceiptError::Signature => "signature",
            ReceiptError::Chain => "chain",
        }
    }
}

/// Signs `payload` as approved. `head` is that of the ledger's `approved`
/// entry for it.
pub fn mint(payload: &Payload, key: &SigningKey, head: LedgerHead) -> Receipt {
    mint_with(payload, key, head, None)
}

/// As [`mint`], with what the approver's passkey signed.
pub fn mint_with(payload: &Payload, key: &SigningKey, head: LedgerHead, assertion: Option<Assertion>) -> Receipt {
    let signature: Signature = key.sign(&signed_octets(payload, &head, assertion.as_ref()));
    Receipt {
        payload: payload.clone(),
        payload_hash: payload.hash(),
        signature: STANDARD.encode(signature.to_bytes()),
        key_id: key_id(&key.verifying_key()),
        ledger_head: head,
        assertion,
    }
}

/// Prefix ‖ canonical payload ‖ canonical ledger head ‖ canonical assertion.
/// The parts are JSON objects, so where one ends is never in doubt.
fn signed_octets(payload: &Payload, head: &LedgerHead, assertion: Option<&Assertion>) -> Vec<u8> {
    let mut octets = payload.action.prefix().to_vec();
    octets.extend(payload.canonical());
    octets.extend(text::canonical(head));
    octets.extend(assertion.map(text::canonical).unwrap_or_default());
    octets
}

/// The schema alone, read before the rest: a newer schema may have fields
/// that this program doesn't know, and must not look like damage.
#[derive(Deserialize)]
struct SchemaOnly {
    payload: SchemaField,
}

#[derive(Deserialize)]
struct SchemaField {
    #[serde(with = "text::decimal")]
    schema: u32,
}

impl Receipt {
    /// Reads the JSON text of a receipt.
    pub fn parse(json: &[u8]) -> Result<Receipt, ReceiptError> {
        let unreadable = |_| ReceiptError::Payload(Mismatch::Unreadable);
        if json.len() > MAX_RECEIPT {
            return Err(ReceiptError::Payload(Mismatch::Unreadable));
        }
        let peek: SchemaOnly = serde_json::from_slice(json).map_err(unreadable)?;
        if peek.payload.schema != SCHEMA {
            return Err(ReceiptError::Schema { found: peek.payload.schema });
        }
        serde_json::from_slice(json).map_err(unreadable)
    }

    /// Checks everything that can be known from the receipt and `expect`, in
    /// this order: schema, action, payload hash, message, envelope, account,
    /// hold, provider, approver, signature, form of the approver's proof,
    /// expiry, spent.
    pub fn verify(&self, keys: &[VerifyingKey], expect: &Expect<'_>) -> Result<Verified, ReceiptError> {
        let p = &self.payload;
        if p.schema != SCHEMA {
            return Err(ReceiptError::Schema { found: p.schema });
        }
        if p.action != expect.action {
            return Err(ReceiptError::Action { found: p.action, expected: expect.action });
        }
        self.check_payload(expect)?;
        if expect.approver.is_some_and(|approver| approver != p.approver) {
            return Err(ReceiptError::Approver);
        }
        self.check_signature(keys)?;
        self.check_proof().map_err(ReceiptError::Proof)?;
        if expect.at.is_some_and(|at| at >= p.expiry) {
            return Err(ReceiptError::Expired { expiry: p.expiry });
        }
        if expect.spent {
            return Err(ReceiptError::Spent);
        }
        Ok(Verified {
            payload: p.clone(),
            hash: self.payload_hash,
            key_id: self.key_id.clone(),
            head: self.ledger_head,
        })
    }

    fn check_payload(&self, expect: &Expect<'_>) -> Result<(), ReceiptError> {
        let p = &self.payload;
        let differs = |what| Err(ReceiptError::Payload(what));
        if p.hash() != self.payload_hash {
            return differs(Mismatch::Hash);
        }
        if expect.message.is_some_and(|message| message != (p.sha256, p.length)) {
            return differs(Mismatch::Message);
        }
        if p.envelope.check().is_err() || expect.envelope.is_some_and(|envelope| *envelope != p.envelope) {
            return differs(Mismatch::Envelope);
        }
        if expect.account.is_some_and(|account| account != p.account) {
            return differs(Mismatch::Account);
        }
        if expect.hold.is_some_and(|hold| hold != p.hold_id) {
            return differs(Mismatch::Hold);
        }
        if expect.upstream.is_some_and(|upstream| upstream != (p.upstream_host.as_str(), p.upstream_login.as_str())) {
            return differs(Mismatch::Upstream);
        }
        Ok(())
    }

    fn check_signature(&self, keys: &[VerifyingKey]) -> Result<(), ReceiptError> {
        let signature = STANDARD.decode(&self.signature).map_err(|_| ReceiptError::Signature)?;
        let signature = Signature::from_slice(&signature).map_err(|_| ReceiptError::Signature)?;
        let octets = signed_octets(&self.payload, &self.ledger_head, self.assertion.as_ref());
        // verify_strict refuses small-order keys and non-canonical forms, under
        // which one signature could stand for two messages.
        let signed = |key: &&VerifyingKey| key_id(key) == self.key_id && key.verify_strict(&octets, &signature).is_ok();
        keys.iter().find(signed).map(|_| ()).ok_or(ReceiptError::Signature)
    }

    /// Whether there is an assertion exactly where the method asks for one,
    /// and it names this payload.
    fn check_proof(&self) -> Result<(), AssertionError> {
        match (self.payload.method == PASSKEY, &self.assertion) {
            (true, Some(assertion)) => assertion.names(&self.payload),
            (true, None) => Err(AssertionError::Missing),
            (false, Some(_)) => Err(AssertionError::Unasked),
            (false, None) => Ok(()),
        }
    }

    /// Checks the approver's passkey by itself: whether one of `keys` signed
    /// this very payload, at its origin, its person present and verified.
    pub fn check_approver<'k>(&self, keys: &'k [ApproverKey]) -> Result<&'k ApproverKey, ReceiptError> {
        let assertion = self.assertion.as_ref().ok_or(ReceiptError::Proof(AssertionError::Missing))?;
        let challenge = assertion.challenge_for(&self.payload).map_err(ReceiptError::Proof)?;
        let key = keys.iter().find(|k| k.credential == assertion.credential);
        let key = key.ok_or(ReceiptError::Proof(AssertionError::Unknown))?;
        if key.account != self.payload.approver {
            return Err(ReceiptError::Approver);
        }
        assertion.check(key, &challenge).map_err(ReceiptError::Proof)?;
        Ok(key)
    }

    /// Checks that `entry`, the ledger's entry of the receipt's head number,
    /// is the approval of this payload. The chain itself is
    /// [`super::ledger::verify`]'s matter.
    pub fn check_ledger(&self, entry: Option<&Entry>) -> Result<(), ReceiptError> {
        let entry = entry.filter(|e| e.is_intact() && e.head() == self.ledger_head).ok_or(ReceiptError::Chain)?;
        match &entry.event {
            Event::Approved { hold, payload, approver }
                if *payload == self.payload_hash
                    && *hold == self.payload.hold_id
                    && *approver == self.payload.approver =>
            {
                Ok(())
            }
            _ => Err(ReceiptError::Chain),
        }
    }
}

/// A receipt that was verified; only [`Receipt::verify`] makes one.
#[derive(Debug)]
pub struct Verified {
    payload: Payload,
    hash: PayloadHash,
    key_id: String,
    head: LedgerHead,
}

impl Verified {
    /// What was approved.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Its hash.
    pub fn payload_hash(&self) -> PayloadHash {
        self.hash
    }

    /// Which key signed.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The ledger entry of the approval.
    pub fn ledger_head(&self) -> LedgerHead {
        self.head
    }
}

#[cfg(test)]
mod tests;
