//! The gateway's signing identity.
//!
//! Promises: a key id is derived from the public key alone. Doesn't know:
//! where the secret lies.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

pub use ed25519_dalek::{SigningKey, VerifyingKey};

/// Hexadecimal digits of a key id.
pub const KEY_ID_DIGITS: usize = 16;

/// The signing key of a 32-byte seed.
pub fn signing_key(seed: &[u8; 32]) -> SigningKey {
    SigningKey::from_bytes(seed)
}

/// The first 16 hexadecimal digits of the public key's SHA-256. It finds a
/// key and proves nothing; the signature does.
pub fn key_id(key: &VerifyingKey) -> String {
    let mut digits = super::digest::to_hex(&Sha256::digest(key.as_bytes()));
    digits.truncate(KEY_ID_DIGITS);
    digits
}

/// The public key as base64 of its 32 octets.
pub fn to_text(key: &VerifyingKey) -> String {
    STANDARD.encode(key.as_bytes())
}

/// Reads what [`to_text`] wrote; `None` for anything else, weak keys included.
pub fn from_text(text: &str) -> Option<VerifyingKey> {
    let octets: [u8; 32] = STANDARD.decode(text.trim()).ok()?.try_into().ok()?;
    VerifyingKey::from_bytes(&octets).ok().filter(|key| !key.is_weak())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_key_reads_back_and_has_a_short_id() {
        let key = signing_key(&[7; 32]).verifying_key();
        assert_eq!(from_text(&to_text(&key)), Some(key));
        assert_eq!(key_id(&key).len(), KEY_ID_DIGITS);
        assert_ne!(key_id(&key), key_id(&signing_key(&[8; 32]).verifying_key()));
    }

    #[test]
    fn a_weak_key_and_other_lengths_are_refused() {
        let mut identity_point = [0; 32];
        identity_point[0] = 1;
        assert_eq!(from_text(&STANDARD.encode(identity_point)), None);
        assert_eq!(from_text(&STANDARD.encode([1; 31])), None);
        assert_eq!(from_text("not base64!"), None);
    }
}
