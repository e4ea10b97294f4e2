//! External context from what the store knows of a correspondent.
//!
//! Promises: only people's acts and arrivals count; who counts them is the
//! caller. Doesn't know: where records are kept (one per canonical address).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Sender, auth};
use crate::lane::{Context, Correspondence, History, KnownName, Lane};

/// Display names kept of one correspondent.
pub const MAX_NAMES: usize = 8;
/// Reply times kept for the median.
pub const MAX_REPLY_TIMES: usize = 32;

/// Campaigns of one address that a person drags to silent before it is pinned.
pub const DRAGS_TO_PIN: u32 = 2;

/// What is known of one address, as stored by its canonical form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CorrespondentRecord {
    /// The canonical address.
    pub address: String,
    /// Display names that the address was seen with, newest last.
    pub names: Vec<String>,
    /// Messages that the person wrote to it.
    pub sent_to: u32,
    /// Messages from it that the person answered.
    pub replied: u32,
    /// Messages that arrived from it.
    pub received: u32,
    /// First seen, Unix seconds; 0 before that.
    pub first_seen: i64,
    /// Last seen, Unix seconds.
    pub last_seen: i64,
    /// Seconds until the person answered, newest last.
    pub reply_seconds: Vec<i64>,
    /// The lane that the person pinned the address to.
    pub pinned: Option<Lane>,
    /// How often mail from it was dragged to a lane.
    pub corrections: Vec<(Lane, u32)>,
}

impl CorrespondentRecord {
    /// Nothing known yet.
    pub fn new(address: &str) -> CorrespondentRecord {
        CorrespondentRecord { address: address.to_owned(), ..CorrespondentRecord::default() }
    }

    /// A message from the address arrived.
    pub fn saw_arrival(&mut self, display: &str, at: i64) {
        self.received = self.received.saturating_add(1);
        self.seen_at(at);
        self.named(display);
    }

    /// The person wrote to the address; `answered` where it replies to a
    /// message from it, with the seconds that took where they are known.
    pub fn saw_sent(&mut self, at: i64, answered: bool, reply_seconds: Option<i64>) {
        self.sent_to = self.sent_to.saturating_add(1);
        self.seen_at(at);
        if answered {
            self.replied = self.replied.saturating_add(1);
            self.reply_seconds.extend(reply_seconds.filter(|s| *s >= 0));
            let over = self.reply_seconds.len().saturating_sub(MAX_REPLY_TIMES);
            self.reply_seconds.drain(..over);
        }
    }

    /// The person dragged a message from the address to `lane`.
    pub fn saw_correction(&mut self, lane: Lane) {
        match self.corrections.iter_mut().find(|(l, _)| *l == lane) {
            Some((_, n)) => *n = n.saturating_add(1),
            None => self.corrections.push((lane, 1)),
        }
    }

    /// The person dragged a message from the address to `lane`. Dragging its
    /// campaigns to silent, [`DRAGS_TO_PIN`] times more than anything of it
    /// elsewhere, pins it there.
    pub fn saw_drag(&mut self, lane: Lane, campaign: bool) {
        self.saw_correction(lane);
        let of = |silent: bool| self.corrections.iter().filter(move |(l, _)| (*l == Lane::Silent) == silent);
        let (silent, other) = (of(true).map(|c| c.1).sum::<u32>(), of(false).map(|c| c.1).sum::<u32>());
        if campaign && lane == Lane::Silent && silent >= other.saturating_add(DRAGS_TO_PIN) {
            self.pinned = Some(Lane::Silent);
        }
    }

    /// A correction to `lane` was taken back.
    pub fn took_back(&mut self, lane: Lane) {
        if let Some((_, n)) = self.corrections.iter_mut().find(|(l, _)| *l == lane) {
            *n = n.saturating_sub(1);
        }
        self.corrections.retain(|(_, n)| *n > 0);
    }

    /// What a look through Sent counted. A count never falls and is never
    /// added to what was counted as it happened, so that a second look, or
    /// mail that is known already, changes nothing.
    pub fn saw_sent_before(&mut self, counted: &SentBefore) {
        self.sent_to = self.sent_to.max(counted.sent_to);
        self.replied = self.replied.max(counted.replied);
        for at in [counted.first, counted.last] {
            if at > 0 {
                self.seen_at(at);
            }
        }
        counted.names.iter().for_each(|name| self.named(name));
    }

    /// Nothing was exchanged: there may be a pin, or corrections.
    fn is_blank(&self) -> bool {
        self.sent_to == 0 && self.replied == 0 && self.received == 0
    }

    fn seen_at(&mut self, at: i64) {
        if self.first_seen == 0 || at < self.first_seen {
            self.first_seen = at;
        }
        self.last_seen = self.last_seen.max(at);
    }

    fn named(&mut self, display: &str) {
        let display = display.trim();
        if display.is_empty() || self.names.iter().any(|n| n == display) {
            return;
        }
        if self.names.len() >= MAX_NAMES {
            self.names.remove(0);
        }
        self.names.push(display.to_owned());
    }

    fn median_reply(&self) -> Option<i64> {
        let mut times = self.reply_seconds.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }
}

/// What was sent to one address before, as Sent shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentBefore {
    /// Messages to it.
    pub sent_to: u32,
    /// Those that answer something.
    pub replied: u32,
    /// The first and the last of them, Unix seconds; 0 where unknown.
    pub first: i64,
    /// See `first`.
    pub last: i64,
    /// The names that it was written to under.
    pub names: Vec<String>,
}

impl Context {
    /// The context of a sender with a record.
    pub fn from_history(record: &CorrespondentRecord) -> Context {
        Context {
            history: History::Present(Correspondence {
                sent_to: record.sent_to,
                replied: record.replied,
                received: record.received,
                first_seen: record.first_seen,
                last_seen: record.last_seen,
                median_reply_seconds: record.median_reply(),
            }),
            pinned: record.pinned,
            corrections: record.corrections.clone(),
            ..Context::default()
        }
    }

    /// The context of a sender that was looked up: without a record it is
    /// absent where everything was `scanned`, else unavailable.
    pub fn looked_up(record: Option<&CorrespondentRecord>, scanned: bool) -> Context {
        match record {
            Some(record) if record.is_blank() => {
                // A pin or a correction is no exchange.
                let history = if scanned { History::Absent } else { History::Unavailable };
                Context { history, ..Context::from_history(record) }
            }
            Some(record) => Context::from_history(record),
            None if scanned => Context { history: History::Absent, ..Context::default() },
            None => Context::default(),
        }
    }

    /// The context of a message's sender, for a gateway and for measuring
    /// alike: the record of its very address, and the people who are known by
    /// the name that it shows.
    pub fn of_sender(
        record: Option<&CorrespondentRecord>,
        scanned: bool,
        known: &KnownNames,
        sender: &Sender,
    ) -> Context {
        Context::looked_up(record, scanned).with_names_like(known, sender)
    }

    /// Adds the people of an index who carry the sender's display name.
    pub fn with_names_like(mut self, known: &KnownNames, sender: &Sender) -> Context {
        self.known_names.extend_from_slice(known.like(&sender.display));
        self
    }

    /// Adds the known correspondents that carry the message's display name.
    pub fn with_known_names<'a>(mut self, records: impl IntoIterator<Item = &'a CorrespondentRecord>) -> Context {
        for record in records.into_iter().filter(|r| r.sent_to > 0 || r.replied > 0) {
            for name in &record.names {
                self.known_names.push(KnownName { name: name.clone(), address: record.address.clone() });
            }
        }
        self
    }
}

/// Addresses of one look that an index keeps; more people than that share no name.
const MAX_SHARERS: usize = 16;
/// Looks that an index keeps, so that no mailbox makes it grow without end.
const MAX_LOOKS: usize = 100_000;

/// The names of everyone that the person wrote to, by how they look, so that a
/// new message costs one look-up instead of a walk over all correspondents.
/// The caller fills it from its records and keeps it beside them.
#[derive(Debug, Clone, Default)]
pub struct KnownNames {
    by_look: HashMap<String, Vec<KnownName>>,
}

impl KnownNames {
    /// Takes in what a record says now: after it was read, and after a change.
    pub fn learn(&mut self, record: &CorrespondentRecord) {
        if record.sent_to == 0 && record.replied == 0 {
            return;
        }
        for name in &record.names {
            let look = auth::skeleton(name);
            if look.is_empty() || (self.by_look.len() >= MAX_LOOKS && !self.by_look.contains_key(&look)) {
                continue;
            }
            let sharers = self.by_look.entry(look).or_default();
            if sharers.len() < MAX_SHARERS && !sharers.iter().any(|k| k.address == record.address) {
                sharers.push(KnownName { name: name.clone(), address: record.address.clone() });
            }
        }
    }

    /// The people whom the person wrote to under a name that looks like `display`.
    pub fn like(&self, display: &str) -> &[KnownName] {
        self.by_look.get(&auth::skeleton(display)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_context() {
        let mut r = CorrespondentRecord::new("ana@example.com");
        r.saw_arrival("Ana", 100);
        r.saw_arrival(" Ana ", 200);
        r.saw_sent(260, true, Some(60));
        r.saw_correction(Lane::Queue);
        r.saw_correction(Lane::Queue);
        let c = Context::from_history(&r);
        let seen = c.correspondence().unwrap();
        assert_eq!((seen.sent_to, seen.replied, seen.received), (1, 1, 2));
        assert_eq!((seen.first_seen, seen.last_seen, seen.median_reply_seconds), (100, 260, Some(60)));
        assert_eq!(c.corrections, [(Lane::Queue, 2)]);
        assert_eq!(r.names, ["Ana"]);
    }

    #[test]
    fn absence_needs_a_look() {
        assert_eq!(Context::looked_up(None, false).history, History::Unavailable);
        assert_eq!(Context::looked_up(None, true).history, History::Absent);
    }

    #[test]
    fn two_drags_of_a_campaign_pin_its_address_and_of_nothing_else() {
        let mut r = CorrespondentRecord::new("shop@example.net");
        r.saw_drag(Lane::Silent, true);
        assert_eq!(r.pinned, None);
        r.saw_drag(Lane::Queue, true);
        r.saw_drag(Lane::Silent, true);
        assert_eq!(r.pinned, None, "back and forth is one wish");
        r.took_back(Lane::Queue);
        r.saw_drag(Lane::Silent, true);
        assert_eq!((r.pinned, r.corrections.as_slice()), (Some(Lane::Silent), &[(Lane::Silent, 3)][..]));
        let mut person = CorrespondentRecord::new("ann@example.net");
        (0..5).for_each(|_| person.saw_drag(Lane::Silent, false));
        assert_eq!(person.pinned, None);
    }

    #[test]
    fn a_pin_alone_is_no_history() {
        let record = CorrespondentRecord { pinned: Some(Lane::Push), ..CorrespondentRecord::new("a@example.net") };
        let unseen = Context::looked_up(Some(&record), false);
        assert_eq!((unseen.history, unseen.pinned), (History::Unavailable, Some(Lane::Push)));
        assert_eq!(Context::looked_up(Some(&record), true).history, History::Absent);
    }

    #[test]
    fn a_second_look_through_sent_changes_nothing() {
        let mut r = CorrespondentRecord::new("a@example.net");
        r.saw_sent(500, true, None);
        let names = vec!["Ana".to_owned()];
        let counted = SentBefore { sent_to: 3, replied: 0, first: 100, last: 400, names };
        r.saw_sent_before(&counted);
        let once = r.clone();
        r.saw_sent_before(&counted);
        assert_eq!(r, once);
        assert_eq!((r.sent_to, r.replied, r.first_seen, r.last_seen), (3, 1, 100, 500));
        assert_eq!(r.names, ["Ana"]);
    }

    #[test]
    fn only_names_of_people_the_owner_wrote_to_are_known() {
        let mut r = CorrespondentRecord::new("shop@example.net");
        r.saw_arrival("Shop", 1);
        assert!(Context::default().with_known_names([&r]).known_names.is_empty());
        r.saw_sent(2, false, None);
        assert_eq!(Context::default().with_known_names([&r]).known_names.len(), 1);
    }

    #[test]
    fn an_index_finds_names_that_look_alike_and_only_of_people_written_to() {
        let mut ana = CorrespondentRecord::new("ana@example.com");
        ana.saw_arrival("Ana Marin", 1);
        let mut known = KnownNames::default();
        known.learn(&ana);
        assert!(known.like("Ana Marin").is_empty());
        ana.saw_sent(2, false, None);
        known.learn(&ana);
        known.learn(&ana);
        // The second starts with a Cyrillic letter.
        for shown in ["ana marin", "Аna Marin", "Ana  Marin"] {
            assert_eq!(known.like(shown).len(), 1, "{shown}");
        }
        assert!(known.like("").is_empty() && known.like("Ana").is_empty());
        let sender = Sender {
            address: crate::mail::address::Address::parse("x@example.net").unwrap(),
            display: "ANA MARIN".to_owned(),
        };
        assert_eq!(Context::default().with_names_like(&known, &sender).known_names[0].address, "ana@example.com");
    }

    #[test]
    fn lists_of_a_record_are_bounded() {
        let mut r = CorrespondentRecord::new("a@example.net");
        for n in 0..100 {
            r.saw_arrival(&format!("Name {n}"), n);
            r.saw_sent(n, true, Some(n));
        }
        assert_eq!((r.names.len(), r.reply_seconds.len()), (MAX_NAMES, MAX_REPLY_TIMES));
    }
}
