//! An authenticator made of software: real keys, real signatures, and every
//! lie that a test needs.

use p256::ecdsa::SigningKey;
use p256::ecdsa::signature::Signer;
use sha2::{Digest, Sha256};

use super::{Assertion, encode};

/// User presence and user verification.
pub(crate) const PRESENT_AND_VERIFIED: u8 = super::USER_PRESENT | super::USER_VERIFIED;

/// One passkey. The public fields are what it says of itself.
#[derive(Clone)]
pub(crate) struct Authenticator {
    key: SigningKey,
    pub(crate) id: Vec<u8>,
    pub(crate) counter: u32,
    pub(crate) flags: u8,
    pub(crate) rp_id: String,
    pub(crate) origin: String,
    pub(crate) kind: &'static str,
    /// Further members of the client data, such as `,"crossOrigin":true`.
    pub(crate) more: &'static str,
}

impl Authenticator {
    pub(crate) fn new(seed: u8, origin: &str) -> Authenticator {
        Authenticator {
            key: SigningKey::from_slice(&[seed; 32]).unwrap(),
            id: vec![seed; 16],
            counter: 1,
            flags: PRESENT_AND_VERIFIED,
            rp_id: "localhost".to_owned(),
            origin: origin.to_owned(),
            kind: "webauthn.get",
            more: ",\"crossOrigin\":false",
        }
    }

    fn client_data(&self, kind: &str, challenge: &[u8; 32]) -> Vec<u8> {
        let (challenge, origin) = (encode(challenge), &self.origin);
        format!("{{\"type\":\"{kind}\",\"challenge\":\"{challenge}\",\"origin\":\"{origin}\"{}}}", self.more)
            .into_bytes()
    }

    fn data(&self, flags: u8, counter: u32) -> Vec<u8> {
        [&Sha256::digest(&self.rp_id)[..], &[flags], &counter.to_be_bytes()].concat()
    }

    /// Signs, and counts.
    pub(crate) fn get(&mut self, challenge: &[u8; 32]) -> Assertion {
        let (client, data) = (self.client_data(self.kind, challenge), self.data(self.flags, self.counter));
        let signed = [&data[..], &Sha256::digest(&client)].concat();
        let signature: p256::ecdsa::Signature = self.key.sign(&signed);
        self.counter += u32::from(self.counter > 0);
        Assertion {
            credential: encode(&self.id),
            authenticator_data: encode(&data),
            client_data: encode(&client),
            signature: encode(signature.to_der().as_bytes()),
            batch: Vec::new(),
        }
    }

    /// clientDataJSON and attestationObject of a registration, which comes
    /// before the first signature.
    pub(crate) fn create(&self, challenge: &[u8; 32]) -> (String, String) {
        let point = self.key.verifying_key().to_sec1_point(false);
        let octets = point.as_bytes();
        let mut data = self.data(self.flags | super::ATTESTED_DATA, self.counter.saturating_sub(1));
        data.extend([0; 16]);
        data.extend(u16::try_from(self.id.len()).unwrap().to_be_bytes());
        data.extend(&self.id);
        // {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        data.extend([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]);
        data.extend(&octets[1..33]);
        data.extend([0x22, 0x58, 0x20]);
        data.extend(&octets[33..65]);
        // {"fmt": "none", "attStmt": {}, "authData": …}
        let mut object = vec![0xa3, 0x63];
        object.extend(b"fmt");
        object.push(0x64);
        object.extend(b"none");
        object.push(0x67);
        object.extend(b"attStmt");
        object.extend([0xa0, 0x68]);
        object.extend(b"authData");
        object.push(0x58);
        object.push(u8::try_from(data.len()).unwrap());
        object.extend(data);
        (encode(&self.client_data("webauthn.create", challenge)), encode(&object))
    }
}
