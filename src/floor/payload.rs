//! What a person approves, in one canonical form.
//!
//! Promises: [`Payload::canonical`] is RFC 8785 JSON in which every integer
//! is a decimal string and every digest 64 hexadecimal digits; two payloads
//! that differ anywhere differ there. Doesn't know: whether it was approved.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::action::Action;
use super::digest::digest;
use super::envelope::Envelope;
use super::text;

/// The payload schema that this program writes, and the newest it reads.
pub const SCHEMA: u32 = 1;

/// [`Payload::method`]: the PIN came with the approval.
pub const PIN: &str = "pin";
/// [`Payload::method`]: a passkey signed the payload.
pub const PASSKEY: &str = "passkey";
/// [`Payload::method`]: the link of the notice was enough.
pub const LINK: &str = "link";

digest! {
    /// SHA-256 of the action's prefix and the canonical payload; what the
    /// page shows and an approval repeats.
    PayloadHash
}

/// What a receipt says was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// [`SCHEMA`].
    #[serde(with = "text::decimal")]
    pub schema: u32,
    /// The gateway that will carry it out.
    pub gateway_id: String,
    /// The account's address.
    pub account: String,
    /// The act.
    pub action: Action,
    /// The hold.
    pub hold_id: String,
    /// Id of the key that submitted it.
    pub submitter_key: String,
    /// Host of the provider's submission server.
    pub upstream_host: String,
    /// Login there.
    pub upstream_login: String,
    /// The envelope as dispatched.
    pub envelope: Envelope,
    /// SHA-256 of the message's octets as received at submission.
    #[serde(with = "text::hex")]
    pub sha256: [u8; 32],
    /// Length of the message in octets.
    #[serde(with = "text::decimal")]
    pub length: u64,
    /// Message-ID field as it stands in the message.
    pub message_id: Option<String>,
    /// Who approves.
    pub approver: String,
    /// The proof the approver gives (`pin`, `passkey`, `link`).
    pub method: String,
    /// When the payload was shown, seconds since 1970 (UTC).
    #[serde(with = "text::decimal")]
    pub time: i64,
    /// From this second on the receipt is expired.
    #[serde(with = "text::decimal")]
    pub expiry: i64,
    /// Fresh for each page view.
    pub nonce: String,
}

impl Payload {
    /// RFC 8785 JSON of this payload.
    pub fn canonical(&self) -> Vec<u8> {
        text::canonical(self)
    }

    /// SHA-256 of the action's prefix and [`Payload::canonical`].
    pub fn hash(&self) -> PayloadHash {
        let mut hasher = Sha256::new();
        hasher.update(self.action.prefix());
        hasher.update(self.canonical());
        PayloadHash(hasher.finalize().into())
    }
}

#[cfg(test)]
pub(in crate::floor) mod tests;
