//! Whether an agent's message carries mail of the mailbox to outside: what
//! makes a submission a `forward_external` instead of a `send_email`.
//!
//! Promises: total; an enclosed message to outside always counts, as does
//! earlier mail in bulk to an outsider whom that mail doesn't name, and the
//! greater part of a message that arrived, without quote marks. Doesn't know:
//! rewordings. It is detection on top of an equal barrier: both actions wait
//! for a person, and each receipt names its own.

use std::collections::BTreeSet;

use crate::mail::address::Address;
use crate::perceive::Written;

use super::lineage::{PASSAGE_UNITS, hash, hash_all, units};

/// Words of earlier mail from which on a quotation is bulk.
pub const BULK_UNITS: usize = 40;
/// Passages of an arrived message that are kept: those with the smallest
/// hashes, a sample of the whole that is the same in a copy.
pub const SKETCH: usize = 64;
/// People of an arrived message that are kept.
const MAX_PEOPLE: usize = 256;
/// Shorter arrived messages are not looked for: everybody writes such lines.
const MIN_SKETCH: usize = 12;

/// A sample of an arrived message's passages, and who has the message anyway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    /// Ascending.
    passages: Vec<u64>,
    /// Hashes of the addresses of its senders and recipients.
    people: BTreeSet<u64>,
}

impl Sketch {
    /// Of an arrived message's own words; `None` where they are few.
    pub fn of(written: &Written) -> Option<Sketch> {
        let all: BTreeSet<u64> = passages(&written.own);
        let people = written.senders.union(&written.recipients);
        (all.len() >= MIN_SKETCH).then(|| Sketch {
            passages: all.into_iter().take(SKETCH).collect(),
            people: people.take(MAX_PEOPLE).map(|a| hash(a.as_bytes())).collect(),
        })
    }

    /// As a row: how many passages, the passages, the people; each eight
    /// octets, big-endian.
    pub fn to_row(&self) -> Vec<u8> {
        let count = std::iter::once(self.passages.len() as u64);
        count
            .chain(self.passages.iter().copied())
            .chain(self.people.iter().copied())
            .flat_map(u64::to_be_bytes)
            .collect()
    }

    /// From a row.
    pub fn from_row(row: &[u8]) -> Sketch {
        let mut all = row.as_chunks::<8>().0.iter().map(|h| u64::from_be_bytes(*h));
        let count = all.next().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        Sketch { passages: all.by_ref().take(count).collect(), people: all.collect() }
    }

    /// Whether at least half of the message is in a text of these passages.
    pub fn is_mostly_in(&self, passages: &BTreeSet<u64>) -> bool {
        let met = self.passages.iter().filter(|h| passages.contains(h)).count();
        !self.passages.is_empty() && met * 2 >= self.passages.len()
    }

    /// Whether one of these is none of those who have the message.
    pub fn is_new_to(&self, outside: &[String]) -> bool {
        let known =
            |to: &String| Address::parse(to).is_ok_and(|to| self.people.contains(&hash(to.canonical().as_bytes())));
        !outside.iter().all(known)
    }
}

/// Every passage of a text.
pub fn passages(text: &str) -> BTreeSet<u64> {
    units(text).windows(PASSAGE_UNITS).map(hash_all).collect()
}

/// Whether a message encloses or quotes earlier mail to one of `outside`,
/// addresses that are outside the account's domains.
pub fn carries(written: &Written, outside: &[String]) -> bool {
    if outside.is_empty() {
        return false;
    }
    if written.encloses {
        return true;
    }
    units(&written.quoted).len() >= BULK_UNITS && {
        let named = addresses(&written.quoted);
        // A reply goes back to those whom the earlier mail names.
        outside.iter().any(|to| Address::parse(to).map_or(true, |to| !named.contains(&to.canonical())))
    }
}

/// The addresses that a text names.
fn addresses(text: &str) -> BTreeSet<String> {
    let ends = |c: char| c.is_whitespace() || "<>()[]\"',;:".contains(c);
    let words = text.split(ends).filter(|w| w.contains('@')).map(|w| w.trim_matches(['.', '*', '_']));
    words.filter_map(|w| Address::parse(w).ok()).map(|a| a.canonical()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perceive::written;

    fn long(n: usize) -> String {
        (0..n).map(|i| format!("word{i} ")).collect::<Vec<_>>().chunks(8).map(|l| l.concat() + "\r\n").collect()
    }

    fn quoted(n: usize) -> String {
        long(n).lines().map(|l| format!("> {l}\r\n")).collect()
    }

    fn message(body: &str) -> Written {
        written(format!("Subject: x\r\n\r\n{body}").as_bytes())
    }

    #[test]
    fn bulk_to_whom_it_does_not_name_is_a_forward_and_a_reply_is_none() {
        let reply = message(&format!("Fine.\r\n\r\nOn 2 Nov 2026, Ann <ann@example.com> wrote:\r\n{}", quoted(60)));
        let to = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert!(!carries(&reply, &to(&["Ann@EXAMPLE.com"])));
        assert!(carries(&reply, &to(&["bo@example.net"])));
        assert!(carries(&reply, &to(&["ann@example.com", "bo@example.net"])));
        assert!(!carries(&reply, &[]), "inside");
        let short = message(&format!("Fine.\r\n\r\nOn 2 Nov 2026, Ann <ann@example.com> wrote:\r\n{}", quoted(20)));
        assert!(!carries(&short, &to(&["bo@example.net"])));
        let forward = format!(
            "See below.\r\n\r\n---------- Forwarded message ---------\r\nFrom: Ann <ann@example.com>\r\n\r\n{}",
            long(60)
        );
        assert!(carries(&message(&forward), &to(&["bo@example.net"])));
    }

    #[test]
    fn an_enclosed_message_to_outside_is_a_forward() {
        let enclosing = written(
            b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nx\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n\
            Subject: y\r\n\r\nz\r\n--b--\r\n",
        );
        assert!(carries(&enclosing, &["ann@example.com".to_owned()]) && !carries(&enclosing, &[]));
    }

    #[test]
    fn a_copy_without_quote_marks_is_found_and_half_of_it_too() {
        let arrived = Sketch::of(&message(&long(200))).unwrap();
        assert_eq!(Sketch::from_row(&arrived.to_row()), arrived);
        let copy = |text: &str| arrived.is_mostly_in(&passages(text));
        assert!(copy(&format!("Look what she wrote. {}", long(200))));
        assert!(copy(&long(170)) && !copy(&long(40)) && !copy("other words"));
        assert!(Sketch::of(&message("A short one.")).is_none());
        let named =
            written(format!("From: Ann <ann@example.com>\r\nCc: bo@example.net\r\n\r\n{}", long(60)).as_bytes());
        let named = Sketch::from_row(&Sketch::of(&named).unwrap().to_row());
        let new_to = |list: &[&str]| named.is_new_to(&list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        assert!(!new_to(&["ANN@example.com", "bo@example.net"]) && new_to(&["ann@example.com", "carl@example.net"]));
    }
}
