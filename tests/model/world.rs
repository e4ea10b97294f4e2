//! The model, and what all actors share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};

use tollgate::demo::provider::Provider;
use tollgate::gateway::Gateway;

/// Mailboxes of ours that show one message each time, beside `Lanes/All`.
pub(crate) const PLACES: [&str; 6] =
    ["INBOX", "Lanes/Push", "Lanes/Meeting", "Lanes/Queue", "Lanes/Info", "Lanes/Silent"];
/// A mailbox that passes through.
pub(crate) const ARCHIVE: &str = "Archive";

/// What is known of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// Who alone changes it.
    pub(crate) owner: usize,
    /// Where it is; none until it was seen for the first time.
    pub(crate) place: Option<String>,
    /// The lane, where one was decided or named.
    pub(crate) lane: Option<String>,
    /// The lane that its stamp says; none without a stamp.
    pub(crate) stamp: Option<String>,
    /// Flags, without those that we show only.
    pub(crate) flags: BTreeSet<String>,
    /// Its octets at the provider.
    pub(crate) octets: Vec<u8>,
}

/// Where octets were seen: whose view, mailbox, UID.
type Seen = (&'static str, String, u32);

/// What outlives a restart.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Messages by number.
    pub(crate) messages: BTreeMap<u32, Known>,
    /// What every UID was ever seen to name.
    octets: HashMap<Seen, u64>,
    next: u32,
    counts: BTreeMap<&'static str, u64>,
}

/// The gateway and the model.
pub(crate) struct World {
    pub(crate) gateway: Gateway,
    state: Mutex<State>,
}

impl World {
    pub(crate) fn new(gateway: Gateway) -> World {
        World::again(gateway, State::default())
    }

    pub(crate) fn again(gateway: Gateway, state: State) -> World {
        World { gateway, state: Mutex::new(state) }
    }

    pub(crate) fn into_parts(self) -> (Gateway, State) {
        (self.gateway, self.state.into_inner().unwrap())
    }

    pub(crate) fn provider(&self) -> &Provider {
        self.gateway.provider().unwrap()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// A number for a new message and its octets.
    pub(crate) fn compose(&self, random: &mut Random) -> (u32, Vec<u8>) {
        let number = {
            let mut state = self.state();
            state.next += 1;
            state.next
        };
        let (subject, list) = match random.below(4) {
            0 => (
                "Weekly offers, up to 50 % off",
                "List-Unsubscribe: <https://shop.example.net/u>\r\nPrecedence: bulk\r\n",
            ),
            1 => ("Your receipt", ""),
            2 => ("Can we meet on Thursday?", ""),
            _ => ("Hello", ""),
        };
        let body = "words of it\r\n".repeat(random.below(40) as usize);
        let text = format!(
            "From: writer{number}@example.com\r\nTo: demo@example.org\r\nSubject: {subject}\r\n{list}\
             X-Tollgate-Lane: push\r\nMessage-ID: <m{number}@model.example>\r\n\r\n{body}end\r\n"
        );
        (number, text.into_bytes())
    }

    /// Notes that a UID names octets; it must never have named others.
    pub(crate) fn names(&self, audience: &'static str, mailbox: &str, uid: u32, octets: &[u8]) {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        octets.hash(&mut hasher);
        let hash = hasher.finish();
        let first = *self.state().octets.entry((audience, mailbox.to_owned(), uid)).or_insert(hash);
        assert_eq!(first, hash, "{audience} {mailbox} {uid} names other octets: {}", String::from_utf8_lossy(octets));
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.state().counts.entry(what).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> String {
        let state = self.state();
        let list: Vec<String> = state.counts.iter().map(|(what, n)| format!("{n} {what}")).collect();
        format!("{} messages, {} UIDs: {}", state.messages.len(), state.octets.len(), list.join(", "))
    }
}

/// The number of a message, from its octets.
pub(crate) fn number_of(octets: &[u8]) -> Option<u32> {
    let id = tollgate::mail::header::values(octets, "Message-ID").into_iter().next()?;
    String::from_utf8(id).ok()?.strip_prefix("<m")?.split('@').next()?.parse().ok()
}

/// Random numbers that a seed repeats (xorshift64*).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn fork(&mut self) -> Random {
        Random::new(self.next())
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 33) % n
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}
