//! What a person wrote themselves, so that it isn't taken for an agent's: the
//! footer under all of their mail, above all, which an agent's draft has too.
//!
//! Promises: words count as the person's own where they ended a mail that the
//! person sent before the draft was made, or two mails since then that differ
//! otherwise; a draft that is only sent to many is not explained so. Doesn't
//! know: words that stand elsewhere than at the end of a mail's own text.
//!
//! Like all of lineage this is for honest mistakes. Whoever wants an agent's
//! words out of it needs a person who sends them twice, in different mails.

use std::collections::BTreeSet;

use super::{PASSAGE_UNITS, hash_all, units};
use crate::perceive::Written;

/// Mails of one account that are remembered; the oldest go first.
pub(super) const MAX_MAILS: usize = 200;
/// Passages of a mail that are kept: those at the end of its own words.
const MAX_PASSAGES: usize = 128;
/// Mails after the draft that explain a passage.
const MAILS: usize = 2;
/// Two mails differ where at most so many of four passages are in both.
const SAME_OF_FOUR: usize = 3;

/// The end of a mail's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending(BTreeSet<u64>);

impl Ending {
    /// Of a mail; `None` where it says nothing.
    pub(super) fn of(written: &Written) -> Option<Ending> {
        let text = units(&written.own);
        let first = text.len().saturating_sub(MAX_PASSAGES + PASSAGE_UNITS - 1);
        let mut all: BTreeSet<u64> = text[first..].windows(PASSAGE_UNITS).map(hash_all).collect();
        if all.is_empty() && !text.is_empty() {
            all.insert(hash_all(&text));
        }
        (!all.is_empty()).then_some(Ending(all))
    }

    /// As a row: each passage in eight octets, big-endian.
    pub(super) fn to_row(&self) -> Vec<u8> {
        self.0.iter().flat_map(|p| p.to_be_bytes()).collect()
    }

    /// From a row.
    pub(super) fn from_row(row: &[u8]) -> Ending {
        Ending(row.as_chunks::<8>().0.iter().map(|p| u64::from_be_bytes(*p)).collect())
    }

    fn differs_from(&self, other: &Ending) -> bool {
        let same = self.0.intersection(&other.0).count();
        same * 4 <= self.0.len().min(other.0.len()) * SAME_OF_FOUR
    }
}

/// What is remembered of an account: when, and the end of it.
#[derive(Debug, Default)]
pub(super) struct Own(pub(super) Vec<(i64, Ending)>);

impl Own {
    /// Whether a passage of a draft made at `drafted` is the person's own.
    pub(super) fn explains(&self, passage: u64, drafted: i64) -> bool {
        let mut since: Vec<&Ending> = Vec::new();
        for (time, ending) in self.0.iter().filter(|(_, e)| e.0.contains(&passage)) {
            if *time < drafted {
                return true;
            }
            if since.iter().all(|other| ending.differs_from(other)) {
                since.push(ending);
            }
        }
        since.len() >= MAILS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perceive::written;

    const FOOTER: &str =
        "Robin Demo, Oak and Ash Joinery, 12 Mill Lane, Springfield, registered in England number 1234567";

    fn mail(text: &str) -> Ending {
        Ending::of(&written(format!("Subject: x\r\n\r\n{text}\r\n\r\n{FOOTER}\r\n").as_bytes())).unwrap()
    }

    /// Every passage of the footer alone.
    fn footer() -> BTreeSet<u64> {
        let all = units(FOOTER).windows(PASSAGE_UNITS).map(hash_all).collect::<BTreeSet<u64>>();
        assert!(!all.is_empty());
        all
    }

    const ONE: &str = "The delivery is on its way and should be with you before the end of this week at the latest";
    const TWO: &str = "Could you send me the plan of the kitchen again with all of the measures that we talked about";

    #[test]
    fn what_ended_a_mail_before_the_draft_is_the_persons_own() {
        let own = Own(vec![(9, mail(ONE))]);
        assert!(footer().iter().all(|p| own.explains(*p, 10)));
        assert!(!footer().iter().any(|p| own.explains(*p, 9)), "not before: at the same time");
        assert!(!own.explains(1, 10), "other words");
    }

    #[test]
    fn what_ends_two_different_mails_is_the_persons_own_and_one_mail_sent_to_many_is_not() {
        let different = Own(vec![(20, mail(ONE)), (30, mail(TWO))]);
        assert!(footer().iter().all(|p| different.explains(*p, 10)));
        let merged = Own((0..9).map(|n| (20 + n, mail(&format!("Dear {n}, {ONE} {TWO}")))).collect());
        assert!(!footer().iter().any(|p| merged.explains(*p, 10)));
        assert!(!Own(vec![(20, mail(ONE))]).explains(*footer().first().unwrap(), 10));
    }

    #[test]
    fn an_ending_is_the_last_words_and_reads_back() {
        let long = mail(&"word after word ".repeat(200));
        assert!(long.0.len() <= MAX_PASSAGES);
        assert!(footer().is_subset(&long.0));
        assert_eq!(Ending::from_row(&long.to_row()), long);
        let short = Ending::of(&written(b"Subject: x\r\n\r\nThanks!\r\n")).unwrap();
        assert_eq!(short.0, BTreeSet::from([hash_all(&units("thanks"))]));
        assert_eq!(Ending::of(&written(b"Subject: x\r\n\r\n")), None);
    }
}
