//! The trained part of the offline scorer: five linear sums over hashed
//! evidence, one a lane, made into probabilities.
//!
//! Promises: pure and deterministic; the sums are whole numbers, so nothing
//! depends on the order of evidence; every probability can be taken apart into
//! the pieces that made it ([`Weights::explain`]). The weights come from
//! `eval/train.jsonl` by `tollgate train`, to the octet. Doesn't know: who the
//! sender is, what the person did before.

pub(super) mod concepts;
mod grams;
pub mod learn;

use std::cell::Cell;
use std::sync::LazyLock;

pub(super) use grams::MAX_CHARACTERS;
use grams::{SPACES, Space, walk};

use super::offline::Case;
use crate::lane::{LANES, Lane};

/// Lanes in the order of the sums, as [`crate::lane::LANES`] has them.
pub(super) const CLASSES: usize = 5;
/// Places that evidence is hashed into.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 17;
/// What a file of weights begins with: its form and version.
const MAGIC: &[u8; 8] = b"tgw\x01\x00\x00\x00\x11";
/// Octets of a file of weights.
const FILE: usize = MAGIC.len() + 4 * (SPACES * CLASSES + CLASSES + 1) + SLOTS * CLASSES;
/// Pieces of evidence that a trace keeps.
const EXPLAINED: usize = 8;

/// The file that this program was built with.
static FILE_SHIPPED: &[u8] = include_bytes!("weights.bin");
static SHIPPED: LazyLock<Option<Weights>> = LazyLock::new(|| Weights::read(FILE_SHIPPED));

/// What was learned.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// What one step of a place's weight stands for, by kind and lane.
    steps: [[f32; CLASSES]; SPACES],
    bias: [f32; CLASSES],
    /// The sums are multiplied by this before they become probabilities.
    sharpness: f32,
    table: Vec<[i8; CLASSES]>,
}

/// What the trained part says of a message.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    odds: [f64; CLASSES],
    /// The likeliest lane.
    pub(super) best: Lane,
    /// What spoke most for it, against the next likely one, or against it.
    pub(super) pieces: Vec<(String, f64)>,
}

impl Judged {
    /// The probability of a lane, 0..=1.
    pub(super) fn of(&self, lane: Lane) -> f64 {
        LANES.iter().position(|l| *l == lane).map_or(0.0, |n| self.odds[n])
    }
}

/// Reads the weights, unless that is done.
pub(super) fn warm() {
    LazyLock::force(&SHIPPED);
}

/// How much worse it is to miss a push than to see one too many.
const MISSED: f64 = 1.5;

/// What remains possible whatever the words are.
const DOUBT: f64 = 0.002;

/// Factor on the odds of push where the time that is named is over or far off.
const OUT_OF_TIME: f64 = 0.005;
/// Hours ahead from which on a time is far off.
const FAR_HOURS: f64 = 34.0;
/// Hours ago from which on a time is over.
const OVER_HOURS: f64 = 2.0;

/// A mail whose every end, and every time at all, is over or far off: however
/// pressing its words are, nobody is needed within hours.
fn is_out_of_time(case: &Case<'_>) -> bool {
    let ahead = |at: i64| (at - case.now) as f64 / 3600.0;
    let mut ends = false;
    for s in &case.doc.sentences {
        for m in &s.moments {
            let hours = ahead(m.at);
            if hours > -OVER_HOURS && hours < FAR_HOURS {
                return false;
            }
            ends |= m.by || m.exact;
        }
    }
    ends
}

/// Judges a message; without words or weights every lane is as likely.
pub(super) fn judge(case: &Case<'_>) -> Judged {
    let Some(weights) = Weights::shipped().filter(|_| !case.doc.sentences.is_empty()) else {
        return Judged { odds: [1.0 / CLASSES as f64; CLASSES], best: Lane::Queue, pieces: Vec::new() };
    };
    let (evidence, met) = Evidence::gather(case);
    let mut odds = weights.odds(&evidence);
    odds[0] *= if is_out_of_time(case) { OUT_OF_TIME } else { MISSED };
    let whole: f64 = odds.iter().sum();
    odds = odds.map(|p| (p / whole + DOUBT) / (1.0 + CLASSES as f64 * DOUBT));
    let mut order: [usize; CLASSES] = std::array::from_fn(|n| n);
    order.sort_by(|a, b| odds[*b].total_cmp(&odds[*a]));
    let pieces = weights.explain(case, &evidence, &met, order[0], order[1]);
    Judged { odds, best: LANES[order[0]], pieces }
}

/// The distinct places of a message's evidence, by kind.
#[derive(Debug, Clone)]
pub struct Evidence {
    slots: [Vec<u32>; SPACES],
}

impl Evidence {
    pub(super) fn of(case: &Case<'_>) -> Evidence {
        Evidence::gather(case).0
    }

    /// The evidence, and where it was met.
    fn gather(case: &Case<'_>) -> (Evidence, Met) {
        let mut seen = vec![0u64; SLOTS / 64];
        let mut slots: [Vec<u32>; SPACES] = Default::default();
        let mut met = Met::default();
        let walked = Cell::new(0);
        let mut starts = Vec::new();
        let mut every = |_| {
            starts.push(walked.get());
            true
        };
        walk(case, &mut every, &mut |space, parts| {
            let slot = slot(space, parts);
            let (word, bit) = (slot as usize / 64, 1u64 << (slot % 64));
            if seen[word] & bit == 0 {
                seen[word] |= bit;
                slots[space as usize].push(slot);
                met.first[space as usize].push(walked.get());
            }
            walked.set(walked.get() + 1);
        });
        met.starts = starts;
        (Evidence { slots }, met)
    }

    /// What one place of a kind counts: many words of a long text count little each.
    fn value(&self, space: usize) -> f64 {
        if space == Space::Fact as usize {
            return FACT;
        }
        if space == Space::Concept as usize {
            return CONCEPT;
        }
        WORTH[space] / (self.slots[space].len().max(FEW) as f64).sqrt()
    }
}

/// Where a walk met the evidence, by the number of a piece.
#[derive(Debug, Default)]
struct Met {
    /// Of each place of [`Evidence`], the first piece that it holds.
    first: [Vec<u32>; SPACES],
    /// The first piece of each sentence.
    starts: Vec<u32>,
}

/// What a fact counts.
const FACT: f64 = 0.225;
/// What a concept counts.
const CONCEPT: f64 = 0.30;
/// What the kinds count beside one another, in the order of [`Space`].
const WORTH: [f64; SPACES] = [1.0, 0.7, 0.7, 0.5, 1.3, 0.7, 0.6, 0.6, 0.0, 0.0, 0.7, 0.8];
/// A text of fewer words than this counts as one of as many.
const FEW: usize = 8;

/// FNV-1a, folded to the table's size.
fn slot(space: Space, parts: &[&str]) -> u32 {
    let mut h: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |octet: u8| h = (h ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3);
    eat(space as u8);
    for part in parts {
        part.bytes().for_each(&mut eat);
        eat(0x1f);
    }
    ((h ^ (h >> 32)) as u32 ^ (h >> 17) as u32) & (SLOTS as u32 - 1)
}

impl Weights {
    /// The weights that this program was built with.
    pub(super) fn shipped() -> Option<&'static Weights> {
        SHIPPED.as_ref()
    }

    /// The file that this program was built with.
    pub fn shipped_bytes() -> &'static [u8] {
        FILE_SHIPPED
    }

    /// Reads a file of weights; none where it isn't one.
    pub fn read(octets: &[u8]) -> Option<Weights> {
        let rest = octets.strip_prefix(MAGIC).filter(|_| octets.len() == FILE)?;
        let (numbers, table) = rest.split_at(4 * (SPACES * CLASSES + CLASSES + 1));
        let mut numbers = numbers.chunks_exact(4).filter_map(|c| c.try_into().ok().map(f32::from_le_bytes));
        let mut take = || numbers.next().filter(|n| n.is_finite());
        let mut w =
            Weights { steps: [[0.0; CLASSES]; SPACES], bias: [0.0; CLASSES], sharpness: 1.0, table: Vec::new() };
        for step in w.steps.iter_mut().flatten() {
            *step = take()?;
        }
        for bias in &mut w.bias {
            *bias = take()?;
        }
        w.sharpness = take()?;
        w.table = table.chunks_exact(CLASSES).map(|c| std::array::from_fn(|n| c[n] as i8)).collect();
        Some(w)
    }

    /// The file of these weights.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let numbers = self.steps.iter().flatten().chain(&self.bias).chain(std::iter::once(&self.sharpness));
        out.extend(numbers.flat_map(|n| n.to_le_bytes()));
        out.extend(self.table.iter().flatten().map(|w| *w as u8));
        out
    }

    fn sums(&self, evidence: &Evidence) -> [f64; CLASSES] {
        let mut out = self.bias.map(f64::from);
        for (space, slots) in evidence.slots.iter().enumerate() {
            let mut whole = [0i32; CLASSES];
            for slot in slots {
                let w = self.table[*slot as usize];
                for (sum, w) in whole.iter_mut().zip(w) {
                    *sum += i32::from(w);
                }
            }
            let value = evidence.value(space);
            for (n, sum) in whole.into_iter().enumerate() {
                out[n] += f64::from(sum) * f64::from(self.steps[space][n]) * value;
            }
        }
        out
    }

    /// The probabilities of the lanes.
    pub fn odds(&self, evidence: &Evidence) -> [f64; CLASSES] {
        learn::softmax(self.sums(evidence).map(|s| s * f64::from(self.sharpness)))
    }

    /// The evidence that spoke most for `class` against `other`, with how much.
    fn explain(
        &self,
        case: &Case<'_>,
        evidence: &Evidence,
        met: &Met,
        class: usize,
        other: usize,
    ) -> Vec<(String, f64)> {
        let mut all: Vec<(u32, u32, f64)> = Vec::new();
        for (space, slots) in evidence.slots.iter().enumerate() {
            let value = evidence.value(space) * f64::from(self.sharpness);
            for (slot, met) in slots.iter().zip(&met.first[space]) {
                let w = self.table[*slot as usize];
                let part = |n: usize| f64::from(w[n]) * f64::from(self.steps[space][n]) * value;
                all.push((*slot, *met, part(class) - part(other)));
            }
        }
        let by_weight = |a: &(u32, u32, f64), b: &(u32, u32, f64)| b.2.abs().total_cmp(&a.2.abs()).then(a.0.cmp(&b.0));
        if all.len() > EXPLAINED {
            all.select_nth_unstable_by(EXPLAINED - 1, by_weight);
            all.truncate(EXPLAINED);
        }
        all.sort_by(by_weight);
        // The words themselves weren't kept: the same walk meets them again.
        let mut wanted: Vec<(u32, usize)> = all.iter().zip(0..).map(|(a, n)| (a.1, n)).collect();
        wanted.sort_unstable();
        let mut out: Vec<Option<(String, f64)>> = vec![None; all.len()];
        let walked = Cell::new(0);
        let mut some = |sentence: usize| {
            let Some(start) = met.starts.get(sentence).copied() else { return false };
            walked.set(start);
            let end = met.starts.get(sentence + 1).copied().unwrap_or(u32::MAX);
            wanted.iter().any(|w| (start..end).contains(&w.0))
        };
        walk(case, &mut some, &mut |space, parts| {
            if let Ok(at) = wanted.binary_search_by_key(&walked.get(), |w| w.0) {
                let n = wanted[at].1;
                out[n] = Some((space.tell(parts), all[n].2));
            }
            walked.set(walked.get() + 1);
        });
        out.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_weights_can_be_read_and_written() {
        let w = Weights::shipped().unwrap();
        assert_eq!(w.to_bytes(), Weights::shipped_bytes());
        assert!(Weights::read(&Weights::shipped_bytes()[1..]).is_none());
        assert!(Weights::read(b"").is_none());
        let mut broken = Weights::shipped_bytes().to_vec();
        broken[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&f32::NAN.to_le_bytes());
        assert!(Weights::read(&broken).is_none());
    }

    #[test]
    fn kinds_of_evidence_are_told_apart() {
        assert_ne!(slot(Space::Word, &["late"]), slot(Space::Subject, &["late"]));
        assert_ne!(slot(Space::Pair, &["a", "bc"]), slot(Space::Pair, &["ab", "c"]));
    }
}
