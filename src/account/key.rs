//! The text of a key, `tg1_<id>_<secret>`, and what is stored of it.
//!
//! Promises: a new key carries 160 random bits; what is stored of it doesn't
//! let anyone present it. Doesn't know: whose key it is.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// What every key starts with; the number is the format's version.
const PREFIX: &str = "tg1_";
/// RFC 4648 §6 alphabet in lower case.
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Random octets of a secret: 160 bits, 32 characters.
const SECRET_OCTETS: usize = 20;
/// Characters of a secret.
const SECRET_CHARS: usize = 32;
/// Random octets of an id: 50 bits are kept, ten characters.
const ID_OCTETS: usize = 10;
/// Longest id that is looked up.
const MAX_ID_CHARS: usize = 16;

/// A key's text in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyText<'a> {
    /// The part that finds the key; no secret.
    pub(crate) id: &'a str,
    /// The secret part.
    pub(crate) secret: &'a str,
}

impl<'a> KeyText<'a> {
    /// Splits a well-formed key; anything else is `None`.
    pub(crate) fn parse(text: &'a str) -> Option<KeyText<'a>> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let base32 = |s: &str| s.bytes().all(|b| BASE32.contains(&b));
        let well =
            !id.is_empty() && id.len() <= MAX_ID_CHARS && secret.len() == SECRET_CHARS && base32(id) && base32(secret);
        well.then_some(KeyText { id, secret })
    }
}

/// SHA-256 of the whole text. A secret of 160 random bits needs no stretching.
pub(crate) fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Compares in constant time.
pub(crate) fn matches(text: &str, stored: &[u8; 32]) -> bool {
    bool::from(hash(text).ct_eq(stored))
}

/// A new key: its id and its whole text.
pub(crate) fn generate() -> Result<(String, Zeroizing<String>), getrandom::Error> {
    let mut id = [0u8; ID_OCTETS];
    getrandom::fill(&mut id)?;
    let id: String = id.iter().map(|b| char::from(BASE32[usize::from(b & 31)])).collect();
    let mut secret = Zeroizing::new([0u8; SECRET_OCTETS]);
    getrandom::fill(secret.as_mut_slice())?;
    let mut text = Zeroizing::new(format!("{PREFIX}{id}_"));
    base32(secret.as_slice(), &mut text);
    Ok((id, text))
}

/// RFC 4648 §6 without padding; `octets` is a multiple of five long.
fn base32(octets: &[u8], into: &mut String) {
    for group in octets.chunks(5) {
        let bits = group.iter().fold(0u64, |acc, b| (acc << 8) | u64::from(*b));
        for place in (0..8).rev() {
            into.push(char::from(BASE32[((bits >> (place * 5)) & 31) as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_is_well_formed_and_matches_only_its_own_hash() {
        let (id, text) = generate().unwrap();
        let parsed = KeyText::parse(&text).unwrap();
        assert_eq!((parsed.id, parsed.secret.len()), (id.as_str(), SECRET_CHARS));
        assert!(matches(&text, &hash(&text)));
        let (_, other) = generate().unwrap();
        assert!(!matches(&other, &hash(&text)));
    }

    #[test]
    fn base32_is_the_rfcs() {
        let mut out = String::new();
        base32(b"fooba", &mut out);
        assert_eq!(out, "mzxw6ytb");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let secret = "a".repeat(SECRET_CHARS);
        for text in [
            String::new(),
            "tg1_".into(),
            format!("tg1__{secret}"),
            format!("tg2_abc_{secret}"),
            format!("tg1_abc_{secret}a"),
            format!("tg1_ABC_{secret}"),
            format!("tg1_abc_{}1", &secret[1..]),
            format!(" tg1_abc_{secret}"),
        ] {
            assert_eq!(KeyText::parse(&text), None, "{text:?}");
        }
    }
}
