//! What is known about the sender from outside the message.
//!
//! Promises: nothing that a scorer or the message's text says is written here.
//! "Not looked" and "looked and found nothing" are told apart everywhere; the
//! former fires no guard.

use serde::{Deserialize, Serialize};

use super::Lane;

/// A fact that may not have been looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History<T> {
    /// Not looked up; fires no guard.
    #[default]
    Unavailable,
    /// Looked up, and there is nothing.
    Absent,
    /// Looked up and found.
    Present(T),
}

/// What an address and the person have exchanged, by people's acts alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Correspondence {
    /// Messages that the person wrote to the address.
    pub sent_to: u32,
    /// Messages from the address that the person answered.
    pub replied: u32,
    /// Messages that arrived from the address.
    pub received: u32,
    /// First seen, Unix seconds; 0 where unknown.
    pub first_seen: i64,
    /// Last seen, Unix seconds; 0 where unknown.
    pub last_seen: i64,
    /// Median time until the person answered, in seconds.
    pub median_reply_seconds: Option<i64>,
}

/// What the provider's own check of the sender's domain says (RFC 8601).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authentication {
    /// No result by a trusted server; fires no guard.
    #[default]
    Unavailable,
    /// Passed, and aligned with the From domain.
    Authenticated,
    /// Checked, and nothing that passed is aligned with the From domain.
    NotAligned,
    /// Checked and failed.
    Failed,
}

impl Authentication {
    /// Looked at and not in the sender's favour.
    pub fn is_bad(self) -> bool {
        match self {
            Authentication::Unavailable | Authentication::Authenticated => false,
            Authentication::NotAligned | Authentication::Failed => true,
        }
    }
}

/// A display name that belongs to a known correspondent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownName {
    /// The display name as it was seen.
    pub name: String,
    /// The canonical address that it belongs to.
    pub address: String,
}

/// External context of one message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// What the sender's address and the person exchanged.
    pub history: History<Correspondence>,
    /// The provider's check of the sender's domain; `perceive` fills it in.
    pub authentication: Authentication,
    /// The lane that the person pinned the sender's address to.
    pub pinned: Option<Lane>,
    /// The lane that the person dragged this very message to.
    pub correction: Option<Lane>,
    /// Earlier corrections of mail from this address: lane and how often.
    pub corrections: Vec<(Lane, u32)>,
    /// The sender is of the account's own organisation.
    pub organisation: bool,
    /// Known correspondents that carry this message's display name.
    pub known_names: Vec<KnownName>,
}

/// Trust cap of a sender whose authentication failed.
const CAP_FAILED: f64 = 0.10;
/// Trust cap of a sender that was looked for and never seen.
const CAP_ABSENT: f64 = 0.45;
/// Trust cap of a sender that only ever wrote to the person.
const CAP_UNANSWERED: f64 = 0.65;
/// Trust floor of someone the person wrote to.
const FLOOR_KNOWN: f64 = 0.60;
/// Trust floor of someone the person answers regularly.
const FLOOR_REGULAR: f64 = 0.75;
/// Exchanges from which on a correspondent is regular.
const REGULAR: u32 = 3;
/// Trust floor of an authenticated sender of the same organisation.
const FLOOR_ORGANISATION: f64 = 0.50;

impl Context {
    /// The exchanges, where there are any.
    pub fn correspondence(&self) -> Option<&Correspondence> {
        match &self.history {
            History::Present(c) => Some(c),
            History::Unavailable | History::Absent => None,
        }
    }

    /// The person wrote to this address before, or answered it.
    pub fn is_known(&self) -> bool {
        self.correspondence().is_some_and(|c| c.sent_to > 0 || c.replied > 0)
    }

    /// Looked for and never seen.
    pub fn is_absent(&self) -> bool {
        match &self.history {
            History::Unavailable => false,
            History::Absent => true,
            History::Present(c) => c.sent_to == 0 && c.replied == 0 && c.received == 0,
        }
    }

    /// The least and the most trust that a scorer may give this sender.
    pub fn trust_bounds(&self) -> (f64, f64) {
        if self.authentication.is_bad() {
            return (0.0, CAP_FAILED);
        }
        let authenticated = self.authentication == Authentication::Authenticated;
        let organisation = if self.organisation && authenticated { FLOOR_ORGANISATION } else { 0.0 };
        if let Some(c) = self.correspondence().filter(|_| self.is_known()) {
            let exchanges = c.sent_to.saturating_add(c.replied);
            let floor = if exchanges >= REGULAR { FLOOR_REGULAR } else { FLOOR_KNOWN };
            return (floor, 1.0);
        }
        if self.organisation {
            return (organisation, 1.0);
        }
        match &self.history {
            History::Unavailable => (0.0, 1.0),
            History::Absent => (0.0, CAP_ABSENT),
            History::Present(_) if self.is_absent() => (0.0, CAP_ABSENT),
            History::Present(_) => (0.0, CAP_UNANSWERED),
        }
    }

    /// A scorer's trust, brought within what the context allows.
    pub fn bound_trust(&self, scored: f64) -> f64 {
        let (least, most) = self.trust_bounds();
        scored.clamp(least, most)
    }

    /// Trust from the context alone, as no scorer can write it.
    pub fn own_trust(&self) -> f64 {
        self.trust_bounds().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(sent_to: u32, replied: u32, received: u32) -> Context {
        let c = Correspondence { sent_to, replied, received, ..Correspondence::default() };
        Context { history: History::Present(c), ..Context::default() }
    }

    #[test]
    fn a_person_is_known_by_what_the_owner_did() {
        assert!(present(1, 0, 0).is_known());
        assert!(present(0, 1, 0).is_known());
        assert!(!present(0, 0, 900).is_known());
        assert!(!Context::default().is_known());
    }

    #[test]
    fn only_a_look_that_found_nothing_is_absence() {
        assert!(!Context::default().is_absent());
        assert!(Context { history: History::Absent, ..Context::default() }.is_absent());
        assert!(present(0, 0, 0).is_absent());
        assert!(!present(0, 0, 1).is_absent());
    }

    #[test]
    fn a_forged_sender_inherits_no_trust() {
        let mut c = present(9, 9, 9);
        assert_eq!(c.bound_trust(0.0), FLOOR_REGULAR);
        for bad in [Authentication::Failed, Authentication::NotAligned] {
            c.authentication = bad;
            assert_eq!(c.bound_trust(1.0), CAP_FAILED);
        }
    }

    #[test]
    fn context_reads_back_as_it_was_stored() {
        let mut c = present(1, 2, 3);
        c.pinned = Some(Lane::Info);
        c.corrections = vec![(Lane::Queue, 2)];
        let back: Context = serde_json::from_str(&serde_json::to_string(&c).unwrap()).unwrap();
        assert_eq!(c, back);
        let absent = Context { history: History::Absent, ..Context::default() };
        let back: Context = serde_json::from_str(&serde_json::to_string(&absent).unwrap()).unwrap();
        assert_eq!(absent, back);
    }
}
