//! The ledger: numbered entries, each bound to the one before it by hash.
//!
//! An entry's hash is SHA-256 of [`DOMAIN`] and the RFC 8785 JSON of
//! `{"event":…,"number":"…","prev":"…","time":"…"}`; the first entry has
//! number 1 and a `prev` of zeros.
//!
//! Promises: [`verify`] finds an entry that was changed, dropped, swapped or
//! rebuilt on another past. What was cut off at the end shows only against a
//! head kept elsewhere; without one the verdict says that the tail isn't
//! witnessed. Doesn't know: where entries are kept.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use super::digest::Hash;
use super::payload::PayloadHash;
use super::text;

/// What precedes an entry under its hash.
pub const DOMAIN: &[u8] = b"tollgate/ledger/v1\n";
/// `prev` of the first entry.
pub const GENESIS: Hash = Hash([0; 32]);

/// What happened. Ids, digests and settings only: no text of a message stands
/// here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// A submission waits for a person.
    Held {
        /// The hold.
        hold: String,
        /// The account.
        account: String,
        /// The submitting key.
        key: String,
        /// SHA-256 of the message.
        sha256: Hash,
        /// Length of the message in octets.
        #[serde(with = "text::decimal")]
        length: u64,
    },
    /// A person approved a payload; its receipt names this entry as its head.
    Approved {
        /// The hold.
        hold: String,
        /// Hash of the approved payload.
        payload: PayloadHash,
        /// Who approved.
        approver: String,
    },
    /// A person denied it.
    Denied {
        /// The hold.
        hold: String,
        /// Who denied.
        approver: String,
    },
    /// Nobody decided in time.
    Expired {
        /// The hold.
        hold: String,
    },
    /// The submitter took it back, or its key was revoked.
    Withdrawn {
        /// The hold.
        hold: String,
        /// Why, as a short code.
        reason: String,
    },
    /// An attempt to send began.
    Sending {
        /// The hold.
        hold: String,
        /// Number of the attempt, from 1.
        #[serde(with = "text::decimal")]
        attempt: u32,
    },
    /// The attempt ended with nothing sent; another follows.
    Retry {
        /// The hold.
        hold: String,
        /// Number of the attempt.
        #[serde(with = "text::decimal")]
        attempt: u32,
        /// Why, as a reply code or a short code.
        reason: String,
    },
    /// The provider took the message.
    Sent {
        /// The hold.
        hold: String,
        /// Number of the attempt.
        #[serde(with = "text::decimal")]
        attempt: u32,
        /// Hash of the payload that was carried out.
        payload: PayloadHash,
    },
    /// The provider refused for good, and nothing was sent.
    Failed {
        /// The hold.
        hold: String,
        /// Number of the attempt.
        #[serde(with = "text::decimal")]
        attempt: u32,
        /// Why, as a reply code or a short code.
        reason: String,
    },
    /// Nobody knows whether the provider took it.
    Unknown {
        /// The hold.
        hold: String,
        /// Number of the attempt.
        #[serde(with = "text::decimal")]
        attempt: u32,
        /// Why, as a short code.
        reason: String,
    },
    /// A person acknowledged an unknown outcome and asked for the same
    /// octets to be held again under a new id.
    Reheld {
        /// The hold whose outcome is unknown.
        hold: String,
        /// The new hold.
        again: String,
        /// Who acknowledged.
        approver: String,
    },
    /// The state turned out to be that of a restored backup; what was open in
    /// it is unknown now.
    Restored {
        /// The head that was witnessed outside the state, `N:HASH`; empty
        /// where the witness is gone.
        witnessed: String,
        /// How many holds were open.
        #[serde(with = "text::decimal")]
        open: u64,
    },
    /// The gateway signs with another key from now on.
    SigningKey {
        /// Id of the key before.
        retired: String,
        /// Id of the new key.
        key: String,
        /// The new public key, as in `identity.pub`.
        public: String,
    },
    /// A key was made.
    KeyAdded {
        /// The account.
        account: String,
        /// The key.
        key: String,
        /// `person` or `agent`.
        role: String,
    },
    /// A key was revoked.
    KeyRevoked {
        /// The account.
        account: String,
        /// The key.
        key: String,
    },
    /// What an agent's key may do was changed.
    GrantsChanged {
        /// The account.
        account: String,
        /// The key.
        key: String,
        /// Each as `VERB[@MAILBOX]=VALUE`.
        changes: Vec<String>,
    },
    /// The approver's PIN was set.
    PinSet {
        /// The account.
        account: String,
    },
    /// A passkey may approve from now on.
    PasskeyAdded {
        /// The account.
        account: String,
        /// SHA-256 of its credential id.
        passkey: Hash,
        /// What vouched for it: `pin`, `passkey` or `code`.
        proof: String,
    },
    /// A passkey may approve no longer.
    PasskeyRemoved {
        /// The account.
        account: String,
        /// SHA-256 of its credential id.
        passkey: Hash,
        /// What vouched for the removal: `pin`, `passkey` or `console`.
        proof: String,
    },
}

impl Event {
    /// The hold that the event is about.
    pub fn hold(&self) -> Option<&str> {
        match self {
            Event::Held { hold, .. }
            | Event::Approved { hold, .. }
            | Event::Denied { hold, .. }
            | Event::Expired { hold }
            | Event::Withdrawn { hold, .. }
            | Event::Sending { hold, .. }
            | Event::Retry { hold, .. }
            | Event::Sent { hold, .. }
            | Event::Failed { hold, .. }
            | Event::Unknown { hold, .. }
            | Event::Reheld { hold, .. } => Some(hold),
            Event::Restored { .. }
            | Event::SigningKey { .. }
            | Event::KeyAdded { .. }
            | Event::KeyRevoked { .. }
            | Event::GrantsChanged { .. }
            | Event::PinSet { .. }
            | Event::PasskeyAdded { .. }
            | Event::PasskeyRemoved { .. } => None,
        }
    }
}

/// One numbered entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// From 1, without gaps.
    #[serde(with = "text::decimal")]
    pub number: u64,
    /// Seconds since 1970 (UTC); never less than in the entry before.
    #[serde(with = "text::decimal")]
    pub time: i64,
    /// Hash of the entry before.
    pub prev: Hash,
    /// What happened.
    pub event: Event,
    /// Hash of all of the above.
    pub hash: Hash,
}

/// What of an entry is hashed.
#[derive(Serialize)]
struct Hashed<'a> {
    #[serde(with = "text::decimal")]
    number: u64,
    #[serde(with = "text::decimal")]
    time: i64,
    prev: Hash,
    event: &'a Event,
}

impl Entry {
    /// The entry that follows `prev`. Its time is the later of `now` and the
    /// time of `prev`, so a clock that was set back shortens nothing.
    pub fn next(prev: Option<&Entry>, now: i64, event: Event) -> Entry {
        let (number, time, before) = match prev {
            // A ledger of 2^64 entries can't be written; saturating keeps this total.
            Some(p) => (p.number.saturating_add(1), now.max(p.time), p.hash),
            None => (1, now, GENESIS),
        };
        let hash = hash_of(number, time, before, &event);
        Entry { number, time, prev: before, event, hash }
    }

    /// Number and hash, as kept elsewhere to witness the ledger.
    pub fn head(&self) -> LedgerHead {
        LedgerHead { number: self.number, hash: self.hash }
    }

    /// Whether the hash is that of the entry's content.
    pub fn is_intact(&self) -> bool {
        hash_of(self.number, self.time, self.prev, &self.event) == self.hash
    }
}

fn hash_of(number: u64, time: i64, prev: Hash, event: &Event) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(DOMAIN);
    hasher.update(text::canonical(&Hashed { number, time, prev, event }));
    Hash(hasher.finalize().into())
}

/// Number and hash of an entry; written `N:HASH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerHead {
    /// Number of the entry.
    #[serde(with = "text::decimal")]
    pub number: u64,
    /// Its hash.
    pub hash: Hash,
}

impl fmt::Display for LedgerHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, self.hash)
    }
}

/// A text is not `N:HASH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a ledger head is written N:HASH, with 64 hexadecimal digits")]
pub struct NotAHead;

impl FromStr for LedgerHead {
    type Err = NotAHead;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digits, hash) = text.trim().split_once(':').ok_or(NotAHead)?;
        let number: u64 = digits.parse().map_err(|_| NotAHead)?;
        if number == 0 || number.to_string() != digits {
            return Err(NotAHead);
        }
        Ok(LedgerHead { number, hash: hash.parse().map_err(|_| NotAHead)? })
    }
}

/// What a ledger without fault says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// How many entries there are.
    pub entries: u64,
    /// The last entry.
    pub head: Option<LedgerHead>,
    /// Up to which entry a head kept elsewhere vouches; 0 without one.
    pub witnessed: u64,
}

impl Verdict {
    /// Whether a head kept elsewhere vouches for the last entry too; if not,
    /// entries may have been cut off or replaced after [`Verdict::witnessed`].
    pub fn tail_is_witnessed(&self) -> bool {
        self.witnessed == self.entries && self.entries > 0
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries, chain whole", self.entries)?;
        match (self.tail_is_witnessed(), self.witnessed) {
            (true, _) => f.write_str(", witnessed to the last"),
            (false, 0) => f.write_str("; the tail isn't witnessed (no head from elsewhere was given)"),
            (false, n) => write!(f, ", witnessed to {n}; the tail after it isn't witnessed"),
        }
    }
}

/// What is wrong with a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// An entry's content isn't what its hash says.
    #[error("entry {number} was changed")]
    Changed {
        /// The entry.
        number: u64,
    },
    /// An entry is missing.
    #[error("entry {number} was dropped")]
    Dropped {
        /// The first missing entry.
        number: u64,
    },
    /// An entry stands where another belongs.
    #[error("entry {found} stands in place {place}")]
    Swapped {
        /// Where it stands.
        place: u64,
        /// What stands there.
        found: u64,
    },
    /// An entry follows another past than the one before it.
    #[error("entry {number} was built on another past")]
    Forked {
        /// The entry.
        number: u64,
    },
    /// An entry is older than the one before it.
    #[error("entry {number} goes back in time")]
    Backwards {
        /// The entry.
        number: u64,
    },
    /// The ledger ends before the witnessed head.
    #[error("the ledger ends at {last}, a head of {witnessed} was witnessed")]
    Truncated {
        /// Last entry found.
        last: u64,
        /// Number of the witnessed head.
        witnessed: u64,
    },
}

/// Checks a whole ledger in order, and against a `head` that was kept
/// elsewhere where there is one.
pub fn verify<E: Borrow<Entry>>(
    entries: impl IntoIterator<Item = E>,
    head: Option<LedgerHead>,
) -> Result<Verdict, LedgerError> {
    let mut entries = entries.into_iter();
    let mut last: Option<E> = None;
    let mut witnessed = 0;
    while let Some(entry) = entries.next() {
        let e = entry.borrow();
        let (place, prev, since) = last
            .as_ref()
            .map(Borrow::borrow)
            .map_or((1, GENESIS, i64::MIN), |p: &Entry| (p.number.saturating_add(1), p.hash, p.time));
        if e.number != place {
            return Err(out_of_place(place, e.number, entries));
        }
        if !e.is_intact() {
            return Err(LedgerError::Changed { number: e.number });
        }
        if e.prev != prev {
            return Err(LedgerError::Forked { number: e.number });
        }
        if e.time < since {
            return Err(LedgerError::Backwards { number: e.number });
        }
        if let Some(h) = head.filter(|h| h.number == e.number) {
            if h.hash != e.hash {
                return Err(LedgerError::Forked { number: e.number });
            }
            witnessed = h.number;
        }
        last = Some(entry);
    }
    let end = last.as_ref().map(|e| e.borrow().head());
    let entries = end.map_or(0, |h| h.number);
    match head {
        Some(h) if witnessed == 0 => Err(LedgerError::Truncated { last: entries, witnessed: h.number }),
        _ => Ok(Verdict { entries, head: end, witnessed }),
    }
}

/// Tells a dropped entry from one that stands elsewhere.
fn out_of_place<E: Borrow<Entry>>(place: u64, found: u64, mut rest: impl Iterator<Item = E>) -> LedgerError {
    if found > place && !rest.any(|e| e.borrow().number == place) {
        LedgerError::Dropped { number: place }
    } else {
        LedgerError::Swapped { place, found }
    }
}

#[cfg(test)]
mod tests;
