//! The value that opens the provider's DATA.
//!
//! Promises: a [`Release`] comes from a verified receipt for exactly this
//! envelope, or from the decision that no hold applies; there is no other
//! way to one. It can't be copied, and the dispatch consumes it. Doesn't
//! know: the connection that it opens.

use super::action::Action;
use super::envelope::Envelope;
use super::hold::NoHold;
use super::payload::PayloadHash;
use super::receipt::{Mismatch, ReceiptError, Verified};

/// Permission to send one message once.
#[derive(Debug)]
pub struct Release(Grounds);

#[derive(Debug)]
enum Grounds {
    /// A person approved these octets.
    Receipt(Box<Verified>),
    /// A person's own mail.
    Person,
}

/// What a used release leaves for the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// The hold.
    pub hold_id: String,
    /// Hash of the payload that was carried out.
    pub payload_hash: PayloadHash,
}

impl Release {
    /// From a receipt. It must be for `action`, what is about to be carried
    /// out and an action that sends; unexpired at `now` (the later of the
    /// clock and the last ledger entry); and name exactly `envelope`.
    pub fn from_receipt(
        verified: Verified,
        action: Action,
        now: i64,
        envelope: &Envelope,
    ) -> Result<Release, ReceiptError> {
        let p = verified.payload();
        if p.action != action || !p.action.sends() {
            return Err(ReceiptError::Action { found: p.action, expected: action });
        }
        if p.envelope != *envelope {
            return Err(ReceiptError::Payload(Mismatch::Envelope));
        }
        if now >= p.expiry {
            return Err(ReceiptError::Expired { expiry: p.expiry });
        }
        Ok(Release(Grounds::Receipt(Box::new(verified))))
    }

    /// For a person's own mail that no hold applies to.
    pub fn person_unheld(_decision: NoHold) -> Release {
        Release(Grounds::Person)
    }

    /// SHA-256 and length that the octets must have before the final dot;
    /// `None` for a person's own mail, which is relayed as it comes.
    pub fn expected(&self) -> Option<(&[u8; 32], u64)> {
        self.payload_ref().map(|p| (&p.sha256, p.length))
    }

    /// Whether octets of this hash and length may be completed.
    pub fn permits(&self, sha256: &[u8; 32], length: u64) -> bool {
        self.expected().is_none_or(|expected| expected == (sha256, length))
    }

    /// The approved envelope; `None` for a person's own mail.
    pub fn envelope(&self) -> Option<&Envelope> {
        self.payload_ref().map(|p| &p.envelope)
    }

    /// Host and login of the provider that was approved; `None` for a
    /// person's own mail.
    pub fn upstream(&self) -> Option<(&str, &str)> {
        self.payload_ref().map(|p| (p.upstream_host.as_str(), p.upstream_login.as_str()))
    }

    /// Ends the release: what the ledger records of it, `None` for a
    /// person's own mail.
    pub fn into_used(self) -> Option<Used> {
        match self.0 {
            Grounds::Receipt(v) => Some(Used { hold_id: v.payload().hold_id.clone(), payload_hash: v.payload_hash() }),
            Grounds::Person => None,
        }
    }

    fn payload_ref(&self) -> Option<&super::payload::Payload> {
        match &self.0 {
            Grounds::Receipt(v) => Some(v.payload()),
            Grounds::Person => None,
        }
    }
}

#[cfg(test)]
mod tests;
