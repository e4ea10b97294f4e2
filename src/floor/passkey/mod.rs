//! Passkeys (WebAuthn Level 3): registering one, and checking what it signed.
//!
//! The challenge of an approval is SHA-256 of [`APPROVE_PREFIX`] and the
//! canonical payload; of a batch, of [`BATCH_PREFIX`] and the canonical JSON
//! list of the payloads' hashes. So an assertion is for one page view of one
//! hold, or for exactly the holds of one batch.
//!
//! Promises: [`Assertion::check`] accepts only `webauthn.get` of this
//! origin, not framed by another, with user presence and user verification,
//! under this key and this challenge; it needs no network, clock or state, so
//! that a receipt can be checked on another machine. Doesn't know: counters
//! seen before and which keys are registered; they are the caller's.
//!
//! Attestation isn't checked: who registers has an approver's proof or a code
//! from the console, and that is what makes the key trusted.

mod cbor;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p256::ecdsa::signature::Verifier;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::payload::{Payload, PayloadHash};
use super::text;
use cbor::Reader;

/// What precedes the payload under the challenge of an approval.
pub const APPROVE_PREFIX: &[u8] = b"tollgate/webauthn/approve/v1\n";
/// What precedes the list of hashes under the challenge of a batch.
pub const BATCH_PREFIX: &[u8] = b"tollgate/webauthn/approve-batch/v1\n";
/// Most payloads that one assertion approves.
pub const MAX_BATCH: usize = 10;

/// Longest credential id (WebAuthn L3 §7.1 step 25), in octets.
const MAX_CREDENTIAL_ID: usize = 1023;
/// Largest clientDataJSON, authenticator data or attestation object, in octets.
const MAX_OCTETS: usize = 8 * 1024;
/// rpIdHash, flags, counter (WebAuthn L3 §6.1).
const FIXED: usize = 37;
const USER_PRESENT: u8 = 0x01;
const USER_VERIFIED: u8 = 0x04;
const ATTESTED_DATA: u8 = 0x40;
const EXTENSIONS: u8 = 0x80;

/// What an assertion is for, where it approves nothing. None of these
/// challenges is one of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Denies the payload that was shown.
    Deny,
    /// Denies all of a key and revokes it.
    Revoke,
    /// Begins a sign-in.
    SignIn,
    /// Makes a credential (the challenge of `webauthn.create`).
    Create,
    /// Vouches for a new credential.
    Add,
    /// Removes a credential.
    Remove,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Purpose; 6] =
        [Purpose::Deny, Purpose::Revoke, Purpose::SignIn, Purpose::Create, Purpose::Add, Purpose::Remove];

    /// What precedes the subject under the challenge.
    pub fn prefix(self) -> &'static [u8] {
        match self {
            Purpose::Deny => b"tollgate/webauthn/deny/v1\n",
            Purpose::Revoke => b"tollgate/webauthn/revoke/v1\n",
            Purpose::SignIn => b"tollgate/webauthn/sign-in/v1\n",
            Purpose::Create => b"tollgate/webauthn/create/v1\n",
            Purpose::Add => b"tollgate/webauthn/add/v1\n",
            Purpose::Remove => b"tollgate/webauthn/remove/v1\n",
        }
    }

    /// The challenge over `subject`.
    pub fn challenge(self, subject: &[u8]) -> [u8; 32] {
        hashed(self.prefix(), subject)
    }
}

fn hashed(prefix: &[u8], subject: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(prefix);
    hasher.update(subject);
    hasher.finalize().into()
}

/// The challenge that approves one payload.
pub fn challenge(payload: &Payload) -> [u8; 32] {
    hashed(APPROVE_PREFIX, &payload.canonical())
}

/// The challenge that approves every payload of a list.
pub fn batch_challenge(hashes: &[PayloadHash]) -> [u8; 32] {
    hashed(BATCH_PREFIX, &text::canonical(&hashes))
}

/// How a passkey signs (COSE, RFC 9053 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256 (-7).
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519 (-8).
    #[serde(rename = "EdDSA")]
    EdDsa,
}

/// A registered passkey's public half and where it may be used: what is
/// stored, exported, and given to an offline check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverKey {
    /// The account that it approves for.
    pub account: String,
    /// The credential id, base64url.
    pub credential: String,
    /// How it signs.
    pub algorithm: Algorithm,
    /// SEC1 point or Ed25519 key, base64.
    pub public_key: String,
    /// The relying party's id: the host name of the pages.
    pub rp_id: String,
    /// The pages' origin.
    pub origin: String,
}

/// Where passkeys may be used.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The relying party's id.
    pub rp_id: &'a str,
    /// The origin, to the byte.
    pub origin: &'a str,
}

/// What a passkey signed, as it is kept in a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// The credential id, base64url.
    pub credential: String,
    /// authenticatorData, base64url.
    pub authenticator_data: String,
    /// clientDataJSON, base64url.
    pub client_data: String,
    /// The signature, base64url.
    pub signature: String,
    /// The hashes of every payload that it approves, ascending; empty where
    /// it approves one alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batch: Vec<PayloadHash>,
}

/// Why an assertion or a registration is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AssertionError {
    /// The receipt's method is `passkey`, and there is no assertion.
    #[error("there is no passkey assertion")]
    Missing,
    /// There is an assertion beside another method.
    #[error("there is a passkey assertion, but the method is another")]
    Unasked,
    /// It can't be read.
    #[error("the passkey's answer can't be read")]
    Unreadable,
    /// Another act, such as a registration.
    #[error("the passkey's answer is for another kind of act")]
    Type,
    /// For another payload, page view, hold or batch.
    #[error("the passkey signed another challenge")]
    Challenge,
    /// Made on another origin.
    #[error("the passkey was used on another origin")]
    Origin,
    /// Made in a frame of another site.
    #[error("the passkey was used inside another site's page")]
    CrossOrigin,
    /// Made for another relying party.
    #[error("the passkey was used for another site's name")]
    RpId,
    /// Nobody touched it.
    #[error("the passkey says that nobody was there")]
    NotPresent,
    /// It didn't verify its person.
    #[error("the passkey did not verify its user")]
    NotVerified,
    /// A key that isn't known.
    #[error("this passkey is not registered")]
    Unknown,
    /// A kind of key that isn't taken.
    #[error("this kind of passkey is not taken (ES256 and EdDSA are)")]
    Algorithm,
    /// The signature is wrong.
    #[error("the passkey's signature does not verify")]
    Signature,
    /// Its counter did not go on: a copy may exist.
    #[error("the passkey's counter went back; it may have been copied")]
    Counter,
}

/// The client data that is read (WebAuthn L3 §5.8.1); others may stand there.
#[derive(Deserialize)]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(default, rename = "crossOrigin")]
    cross_origin: bool,
    #[serde(default, rename = "topOrigin")]
    top_origin: Option<String>,
}

fn decode(text: &str) -> Result<Vec<u8>, AssertionError> {
    if text.len() > MAX_OCTETS * 4 / 3 {
        return Err(AssertionError::Unreadable);
    }
    URL_SAFE_NO_PAD.decode(text).map_err(|_| AssertionError::Unreadable)
}

/// base64url without padding, as ids and challenges are written.
pub fn encode(octets: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(octets)
}

fn client_data(octets: &[u8], kind: &str, challenge: &[u8; 32], place: Place<'_>) -> Result<(), AssertionError> {
    let data: ClientData = serde_json::from_slice(octets).map_err(|_| AssertionError::Unreadable)?;
    if data.kind != kind {
        return Err(AssertionError::Type);
    }
    if data.challenge != encode(challenge) {
        return Err(AssertionError::Challenge);
    }
    if data.origin != place.origin {
        return Err(AssertionError::Origin);
    }
    if data.cross_origin || data.top_origin.is_some() {
        return Err(AssertionError::CrossOrigin);
    }
    Ok(())
}

/// Flags and counter of authenticator data for `rp_id`, and what follows.
fn authenticator<'a>(data: &'a [u8], rp_id: &str) -> Result<(u8, u32, &'a [u8]), AssertionError> {
    let (fixed, rest) = data.split_at_checked(FIXED).ok_or(AssertionError::Unreadable)?;
    if fixed[..32] != Sha256::digest(rp_id)[..] {
        return Err(AssertionError::RpId);
    }
    let flags = fixed[32];
    if flags & USER_PRESENT == 0 {
        return Err(AssertionError::NotPresent);
    }
    if flags & USER_VERIFIED == 0 {
        return Err(AssertionError::NotVerified);
    }
    let counter = fixed[33..].iter().fold(0, |n: u32, b| n << 8 | u32::from(*b));
    Ok((flags, counter, rest))
}

impl Assertion {
    /// Checks everything that can be known from the assertion, a registered
    /// key and the challenge; returns the key's counter.
    pub fn check(&self, key: &ApproverKey, challenge: &[u8; 32]) -> Result<u32, AssertionError> {
        if self.credential != key.credential {
            return Err(AssertionError::Unknown);
        }
        let (client, data) = (decode(&self.client_data)?, decode(&self.authenticator_data)?);
        client_data(&client, "webauthn.get", challenge, Place { rp_id: &key.rp_id, origin: &key.origin })?;
        let (flags, counter, rest) = authenticator(&data, &key.rp_id)?;
        // WebAuthn L3 §6.1: attested data comes with a registration only.
        if flags & ATTESTED_DATA != 0 || (rest.is_empty() != (flags & EXTENSIONS == 0)) {
            return Err(AssertionError::Unreadable);
        }
        let mut signed = data;
        signed.extend_from_slice(&Sha256::digest(&client));
        key.verify(&signed, &decode(&self.signature)?)?;
        Ok(counter)
    }

    /// The challenge that this assertion must be for to approve `payload`.
    pub fn challenge_for(&self, payload: &Payload) -> Result<[u8; 32], AssertionError> {
        if self.batch.is_empty() {
            return Ok(challenge(payload));
        }
        let ascending = self.batch.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || self.batch.len() > MAX_BATCH || !self.batch.contains(&payload.hash()) {
            return Err(AssertionError::Challenge);
        }
        Ok(batch_challenge(&self.batch))
    }

    /// Whether the client data names the payload's challenge. This needs no
    /// key, and without one it proves nothing.
    pub fn names(&self, payload: &Payload) -> Result<(), AssertionError> {
        let challenge = self.challenge_for(payload)?;
        let data: ClientData =
            serde_json::from_slice(&decode(&self.client_data)?).map_err(|_| AssertionError::Unreadable)?;
        if data.challenge == encode(&challenge) { Ok(()) } else { Err(AssertionError::Challenge) }
    }
}

/// Whether a counter may follow the one that was last seen. Passkeys that are
/// copied between devices on purpose always say 0 (WebAuthn L3 §6.1.1).
pub fn counter_goes_on(seen: u32, now: u32) -> bool {
    now > seen || (now == 0 && seen == 0)
}

impl ApproverKey {
    /// Reads a registration: `client_data` and `attestation` are
    /// clientDataJSON and attestationObject in base64url. Returns the key and
    /// its counter.
    pub fn register(
        account: &str,
        place: Place<'_>,
        challenge: &[u8; 32],
        client: &str,
        attestation: &str,
    ) -> Result<(ApproverKey, u32), AssertionError> {
        client_data(&decode(client)?, "webauthn.create", challenge, place)?;
        let object = decode(attestation)?;
        let data = auth_data(&object).ok_or(AssertionError::Unreadable)?;
        let (flags, counter, rest) = authenticator(data, place.rp_id)?;
        if flags & ATTESTED_DATA == 0 {
            return Err(AssertionError::Unreadable);
        }
        let (credential, cose) = attested(rest).ok_or(AssertionError::Unreadable)?;
        let mut reader = Reader::new(cose);
        let (algorithm, public_key) = cose_key(&mut reader)?;
        // Extensions, where they are announced, and nothing else.
        let tail = if flags & EXTENSIONS == 0 { Some(()) } else { reader.skip() };
        if tail.is_none() || !reader.rest().is_empty() {
            return Err(AssertionError::Unreadable);
        }
        let key = ApproverKey {
            account: account.to_owned(),
            credential: encode(credential),
            algorithm,
            public_key: STANDARD.encode(public_key),
            rp_id: place.rp_id.to_owned(),
            origin: place.origin.to_owned(),
        };
        Ok((key, counter))
    }

    /// SHA-256 of the credential id: the passkey's name in the ledger.
    pub fn id(&self) -> super::digest::Hash {
        super::digest::Hash(Sha256::digest(self.credential.as_bytes()).into())
    }

    fn verify(&self, signed: &[u8], signature: &[u8]) -> Result<(), AssertionError> {
        let wrong = |_| AssertionError::Signature;
        let octets = STANDARD.decode(&self.public_key).map_err(|_| AssertionError::Algorithm)?;
        match self.algorithm {
            Algorithm::Es256 => {
                let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(&octets).map_err(|_| AssertionError::Algorithm)?;
                let signature = p256::ecdsa::Signature::from_der(signature).map_err(wrong)?;
                key.verify(signed, &signature).map_err(wrong)
            }
            Algorithm::EdDsa => {
                let octets = octets.try_into().map_err(|_| AssertionError::Algorithm)?;
                let key = ed25519_dalek::VerifyingKey::from_bytes(&octets).map_err(|_| AssertionError::Algorithm)?;
                let signature = ed25519_dalek::Signature::from_slice(signature).map_err(wrong)?;
                key.verify_strict(signed, &signature).map_err(wrong)
            }
        }
    }
}

/// `authData` of an attestation object; the statement is read over.
fn auth_data(object: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(object);
    let mut found = None;
    for _ in 0..reader.map()? {
        match reader.text()? {
            "authData" if found.is_none() => found = Some(reader.bytes()?),
            "authData" => return None,
            _ => reader.skip()?,
        }
    }
    found.filter(|_| reader.rest().is_empty())
}

/// Credential id and the octets from the COSE key on (WebAuthn L3 §6.5.1).
fn attested(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    const AAGUID: usize = 16;
    let (length, rest) = octets.get(AAGUID..)?.split_at_checked(2)?;
    let length = usize::from(u16::from_be_bytes(length.try_into().ok()?));
    if length == 0 || length > MAX_CREDENTIAL_ID {
        return None;
    }
    rest.split_at_checked(length)
}

/// A COSE_Key (RFC 9052 §7) of a kind that is taken.
fn cose_key(reader: &mut Reader<'_>) -> Result<(Algorithm, Vec<u8>), AssertionError> {
    let unreadable = AssertionError::Unreadable;
    let (mut kty, mut alg, mut crv, mut x, mut y) = (None, None, None, None, None);
    for _ in 0..reader.map().ok_or(unreadable)? {
        let label = reader.int().ok_or(unreadable)?;
        let twice = match label {
            1 => kty.replace(reader.int().ok_or(unreadable)?).is_some(),
            3 => alg.replace(reader.int().ok_or(unreadable)?).is_some(),
            // What curve and coordinates are called depends on the kind; RSA has others.
            -1 if kty.is_none_or(|k| k == 1 || k == 2) => crv.replace(reader.int().ok_or(unreadable)?).is_some(),
            -2 if kty.is_none_or(|k| k == 1 || k == 2) => x.replace(reader.bytes().ok_or(unreadable)?).is_some(),
            -3 if kty.is_none_or(|k| k == 2) => y.replace(reader.bytes().ok_or(unreadable)?).is_some(),
            _ => {
                reader.skip().ok_or(unreadable)?;
                false
            }
        };
        if twice {
            return Err(unreadable);
        }
    }
    match (kty, alg, crv, x, y) {
        (Some(2), Some(-7), Some(1), Some(x), Some(y)) if x.len() == 32 && y.len() == 32 => {
            let point = [&[4], x, y].concat();
            p256::ecdsa::VerifyingKey::from_sec1_bytes(&point).map_err(|_| AssertionError::Algorithm)?;
            Ok((Algorithm::Es256, point))
        }
        (Some(1), Some(-8), Some(6), Some(x), None) => {
            let key: [u8; 32] = x.try_into().map_err(|_| unreadable)?;
            let key = ed25519_dalek::VerifyingKey::from_bytes(&key).map_err(|_| AssertionError::Algorithm)?;
            if key.is_weak() { Err(AssertionError::Algorithm) } else { Ok((Algorithm::EdDsa, key.to_bytes().to_vec())) }
        }
        _ => Err(AssertionError::Algorithm),
    }
}

#[cfg(test)]
pub(crate) mod software;
#[cfg(test)]
mod tests;
