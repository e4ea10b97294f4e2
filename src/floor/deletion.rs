//! Removing messages for good: what is asked, and the value that permits it.
//!
//! Promises: a [`Permit`] comes from a verified receipt over exactly this
//! list, and nothing else makes one; it names each message by UID under one
//! UIDVALIDITY together with the SHA-256 of its octets, so that it permits
//! nothing of a mailbox that has changed. It can't be copied, and carrying it
//! out consumes it. Doesn't know: how messages are fetched or expunged.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::action::Action;
use super::payload::Payload;
use super::receipt::{Mismatch, ReceiptError, Verified};
use super::release::Used;
use super::text;

/// The schema of the list that this program writes, and the newest it reads.
pub const SCHEMA: u32 = 1;
/// Most messages of one deletion.
pub const MAX_MESSAGES: usize = 200;
/// Characters of a subject, sender or date that are kept to be shown.
pub const MAX_SHOWN_CHARS: usize = 500;

/// What is done with the messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// They are expunged.
    Expunge,
    /// They are expunged, all that the mailbox holds, and it is deleted.
    DeleteMailbox,
    /// They are moved to where they are out of sight.
    Move {
        /// That mailbox's name on the wire.
        to: String,
    },
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Victim {
    /// Its UID at the provider.
    #[serde(with = "text::decimal")]
    pub uid: u32,
    /// SHA-256 of its octets.
    #[serde(with = "text::hex")]
    pub sha256: [u8; 32],
    /// How many.
    #[serde(with = "text::decimal")]
    pub length: u64,
    /// Its Subject field, not decoded.
    pub subject: Option<String>,
    /// Its From field, not decoded.
    pub from: Option<String>,
    /// Its Date field.
    pub date: Option<String>,
}

/// What a person is asked to approve. Its canonical form is what the payload's
/// SHA-256 is of, as it is of a message where mail is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deletion {
    /// [`SCHEMA`].
    #[serde(with = "text::decimal")]
    pub schema: u32,
    /// The account's address.
    pub account: String,
    /// Host of the provider's IMAP server.
    pub host: String,
    /// Login there.
    pub login: String,
    /// What is done.
    pub act: Act,
    /// The mailbox's name on the wire.
    pub mailbox: String,
    /// Its UIDVALIDITY.
    #[serde(with = "text::decimal")]
    pub uidvalidity: u32,
    /// The messages, by ascending UID.
    pub messages: Vec<Victim>,
}

impl Deletion {
    /// RFC 8785 JSON of this list.
    pub fn canonical(&self) -> Vec<u8> {
        text::canonical(self)
    }

    /// Reads a list; `None` for octets that [`Deletion::canonical`] doesn't
    /// write, or that could name a message twice.
    pub fn read(octets: &[u8]) -> Option<Deletion> {
        let read: Deletion = serde_json::from_slice(octets).ok()?;
        let ordered = read.messages.is_sorted_by(|a, b| a.uid < b.uid);
        let some = matches!(read.act, Act::DeleteMailbox) || !read.messages.is_empty();
        (read.schema == SCHEMA && ordered && some && read.canonical() == octets).then_some(read)
    }

    /// One line for lists.
    pub fn summary(&self) -> String {
        let messages = match self.messages.len() {
            1 => "1 message".to_owned(),
            n => format!("{n} messages"),
        };
        match &self.act {
            Act::Expunge => format!("Delete {messages} in {} for good", self.mailbox),
            Act::DeleteMailbox => format!("Delete the mailbox {} and its {messages} for good", self.mailbox),
            Act::Move { to } => format!("Move {messages} from {} to {to}, out of sight", self.mailbox),
        }
    }
}

/// Permission to carry out one deletion once.
#[derive(Debug)]
pub struct Permit {
    deletion: Deletion,
    receipt: Box<Verified>,
}

impl Permit {
    /// From a receipt. It must be for a deletion, unexpired at `now` (the
    /// later of the clock and the last ledger entry), over exactly the octets
    /// of `list`, and of the account that the list names.
    pub fn from_receipt(verified: Verified, now: i64, list: &[u8]) -> Result<Permit, ReceiptError> {
        let p: &Payload = verified.payload();
        let expected = Action::DeletePermanent;
        if p.action != expected {
            return Err(ReceiptError::Action { found: p.action, expected });
        }
        if p.length != list.len() as u64 || Sha256::digest(list)[..] != p.sha256 {
            return Err(ReceiptError::Payload(Mismatch::Message));
        }
        let deletion = Deletion::read(list).ok_or(ReceiptError::Payload(Mismatch::Unreadable))?;
        if deletion.account != p.account {
            return Err(ReceiptError::Payload(Mismatch::Account));
        }
        if now >= p.expiry {
            return Err(ReceiptError::Expired { expiry: p.expiry });
        }
        Ok(Permit { deletion, receipt: Box::new(verified) })
    }

    /// What is permitted.
    pub fn deletion(&self) -> &Deletion {
        &self.deletion
    }

    /// Whether the message under `uid` is the one that was shown.
    pub fn permits(&self, uid: u32, sha256: &[u8; 32], length: u64) -> bool {
        let found = self.deletion.messages.iter().find(|m| m.uid == uid);
        found.is_some_and(|m| m.sha256 == *sha256 && m.length == length)
    }

    /// Ends the permit: what the ledger records of it.
    pub fn into_used(self) -> Used {
        Used { hold_id: self.receipt.payload().hold_id.clone(), payload_hash: self.receipt.payload_hash() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::envelope::Envelope;
    use crate::floor::identity::SigningKey;
    use crate::floor::ledger::{Entry, Event};
    use crate::floor::payload::tests::sample;
    use crate::floor::receipt::{Expect, Receipt, mint};
    use crate::floor::release::Release;

    fn deletion() -> Deletion {
        let victim = |uid| Victim {
            uid,
            sha256: [uid as u8; 32],
            length: 10,
            subject: Some("Invoice".into()),
            from: None,
            date: None,
        };
        Deletion {
            schema: SCHEMA,
            account: sample().account,
            host: "imap.example.com".into(),
            login: "you".into(),
            act: Act::Expunge,
            mailbox: "Archive".into(),
            uidvalidity: 7,
            messages: vec![victim(3), victim(9)],
        }
    }

    fn key() -> SigningKey {
        SigningKey::from_bytes(&[7; 32])
    }

    fn payload(list: &[u8]) -> Payload {
        Payload {
            action: Action::DeletePermanent,
            envelope: Envelope::nobody(),
            sha256: Sha256::digest(list).into(),
            length: list.len() as u64,
            ..sample()
        }
    }

    fn receipt(payload: &Payload) -> Receipt {
        let event = Event::Approved {
            hold: payload.hold_id.clone(),
            payload: payload.hash(),
            approver: payload.approver.clone(),
        };
        mint(payload, &key(), Entry::next(None, payload.time, event).head())
    }

    fn verified(payload: &Payload, action: Action) -> Result<Verified, ReceiptError> {
        receipt(payload).verify(&[key().verifying_key()], &Expect::new(action))
    }

    #[test]
    fn a_receipt_over_the_list_permits_exactly_its_messages() {
        let list = deletion().canonical();
        let payload = payload(&list);
        let permit = Permit::from_receipt(verified(&payload, payload.action).unwrap(), payload.time, &list).unwrap();
        assert!(permit.permits(3, &[3; 32], 10) && permit.permits(9, &[9; 32], 10));
        for (uid, sha256, length) in [(3, [9; 32], 10), (9, [9; 32], 11), (4, [4; 32], 10)] {
            assert!(!permit.permits(uid, &sha256, length), "{uid} {length}");
        }
        assert_eq!(permit.into_used().payload_hash, payload.hash());
    }

    #[test]
    fn anything_else_than_the_approved_list_permits_nothing() {
        let list = deletion().canonical();
        let good = payload(&list);
        let of = |list: &[u8], now| Permit::from_receipt(verified(&good, good.action).unwrap(), now, list).unwrap_err();
        let others = [
            Deletion { uidvalidity: 8, ..deletion() },
            Deletion { mailbox: "archive".into(), ..deletion() },
            Deletion { act: Act::DeleteMailbox, ..deletion() },
            Deletion { messages: deletion().messages[..1].to_vec(), ..deletion() },
        ];
        for other in others {
            assert_eq!(of(&other.canonical(), good.time), ReceiptError::Payload(Mismatch::Message));
        }
        assert_eq!(of(&list, good.expiry), ReceiptError::Expired { expiry: good.expiry });
        let foreign = Deletion { account: "ann@example.com".into(), ..deletion() }.canonical();
        let theirs = payload(&foreign);
        let error = Permit::from_receipt(verified(&theirs, theirs.action).unwrap(), theirs.time, &foreign).unwrap_err();
        assert_eq!(error, ReceiptError::Payload(Mismatch::Account));
    }

    #[test]
    fn receipts_of_sending_delete_nothing_and_those_of_deleting_send_nothing() {
        let list = deletion().canonical();
        let sends = Payload { sha256: Sha256::digest(&list).into(), length: list.len() as u64, ..sample() };
        let error = Permit::from_receipt(verified(&sends, sends.action).unwrap(), sends.time, &list).unwrap_err();
        assert!(matches!(error, ReceiptError::Action { .. }));
        let deletes = payload(&list);
        let release = Release::from_receipt(
            verified(&deletes, deletes.action).unwrap(),
            deletes.action,
            deletes.time,
            &deletes.envelope,
        );
        assert!(matches!(release, Err(ReceiptError::Action { .. })));
        // A deletion with recipients is none, and mail without them neither.
        let mixed = Payload { envelope: sample().envelope, ..payload(&list) };
        assert!(matches!(verified(&mixed, mixed.action), Err(ReceiptError::Payload(Mismatch::Envelope))));
        let nobody = Payload { envelope: Envelope::nobody(), ..sample() };
        assert!(matches!(verified(&nobody, nobody.action), Err(ReceiptError::Payload(Mismatch::Envelope))));
    }

    #[test]
    fn a_list_has_one_spelling() {
        let list = deletion().canonical();
        assert_eq!(Deletion::read(&list), Some(deletion()));
        let text = String::from_utf8(list).unwrap();
        let twice =
            Deletion { messages: vec![deletion().messages[0].clone(), deletion().messages[0].clone()], ..deletion() };
        let swapped = Deletion { messages: deletion().messages.into_iter().rev().collect(), ..deletion() };
        let none = Deletion { messages: Vec::new(), ..deletion() };
        for bad in [
            text.replace(":", ": "),
            text.replace("\"schema\":\"1\"", "\"schema\":\"2\""),
            text.replacen('{', "{\"also\":\"x\",", 1),
        ]
        .into_iter()
        .map(String::into_bytes)
        .chain([twice.canonical(), swapped.canonical(), none.canonical()])
        {
            assert_eq!(Deletion::read(&bad), None);
        }
    }
}
