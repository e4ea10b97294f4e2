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
use crate::lane::{LANES, Lane, Signal};

/// Lanes in the order of the sums, as [`crate::lane::LANES`] has them.
pub(super) const CLASSES: usize = 5;
/// Bits of a piece of evidence's key, a hash: of the pieces that are learned
/// some hundred share theirs, of those that aren't one in ten thousand meets one.
const KEY_BITS: u32 = 30;
/// The low bits of a key, which its group keeps.
const TAG_BITS: u32 = 16;
/// Groups of pieces whose keys begin alike.
const GROUPS: usize = 1 << (KEY_BITS - TAG_BITS);
/// Octets of a piece in a file.
const PIECE_OCTETS: usize = 2 + CLASSES;
/// What a file of weights begins with: its form and version.
const MAGIC: &[u8; 8] = b"tgw\x02\x00\x00\x00\x1e";
/// Octets of a file of weights before its pieces.
const HEAD: usize = MAGIC.len() + 4 * (SPACES * CLASSES + CLASSES + 1) + GROUPS;
/// Pieces of evidence that a trace keeps.
const EXPLAINED: usize = 8;

/// The file that this program was built with.
static FILE_SHIPPED: &[u8] = include_bytes!("weights.bin");
static SHIPPED: LazyLock<Option<Weights>> = LazyLock::new(|| Weights::read(FILE_SHIPPED));

/// What was learned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Weights {
    /// What one step of a place's weight stands for, by kind and lane.
    steps: [[f32; CLASSES]; SPACES],
    bias: [f32; CLASSES],
    /// The sums are multiplied by this before they become probabilities.
    sharpness: f32,
    /// Where each group of pieces begins, and where the last one ends.
    groups: Vec<u32>,
    /// The low bits of each piece's key, ascending in its group.
    tags: Vec<u16>,
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
const MISSED: f64 = 2.0;

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

/// Factor on the odds of push where a mail holds several baits of fakes.
const BAITED: f64 = 0.05;

/// What asks for cards, codes or payments by a new way, in secret or under a
/// threat, and more than one of these: pressing is how fakes are written, and
/// who is known to the account is believed.
fn is_baited(case: &Case<'_>, evidence: &Evidence) -> bool {
    let many = ["3-4", "5-8", "9-16"].iter().any(|n| evidence.holds(Space::Fact, &["baits", n]));
    many && !case.context.is_known()
}

/// The lanes that a person's drags of the sender's mail make likelier, with the
/// factor on their odds for each drag: two to queue bring the plainest campaign
/// there, one that is pushed still has to press a little itself. None makes
/// silent likelier: what hides mail is a pin, a person's own act.
const LEARNED: [(Lane, f64); 2] = [(Lane::Push, 3.0), (Lane::Queue, 10.0)];
/// Drags that count.
const DRAGS: u32 = 3;

/// What a person's drags of the sender's earlier mail say: lane, how often, and
/// the factor on its odds. A From that may be forged inherits nothing.
fn dragged(case: &Case<'_>) -> impl Iterator<Item = (Lane, u32, f64)> {
    let forged = case.context.authentication.is_bad() || case.signals.has(Signal::Spoofed);
    let drags = case.context.corrections.iter().filter(move |(_, n)| !forged && *n > 0);
    drags.filter_map(|(lane, n)| {
        let (_, factor) = LEARNED.iter().find(|(l, _)| l == lane)?;
        Some((*lane, *n, factor.powi((*n).min(DRAGS) as i32)))
    })
}

/// Judges a message; without words or weights every lane is as likely.
pub(super) fn judge(case: &Case<'_>) -> Judged {
    let Some(weights) = Weights::shipped().filter(|_| !case.doc.sentences.is_empty()) else {
        return Judged { odds: [1.0 / CLASSES as f64; CLASSES], best: Lane::Queue, pieces: Vec::new() };
    };
    let (evidence, met) = Evidence::gather(case);
    let known = weights.known(&evidence);
    let mut odds = weights.odds(&evidence, &known);
    odds[0] *= if is_out_of_time(case) { OUT_OF_TIME } else { MISSED };
    let baited = is_baited(case, &evidence);
    if baited {
        odds[0] *= BAITED;
    }
    let whole: f64 = odds.iter().sum();
    odds = odds.map(|p| (p / whole + DOUBT) / (1.0 + CLASSES as f64 * DOUBT));
    // After the doubt: what a person did counts against the surest words too.
    for (lane, _, factor) in dragged(case) {
        LANES.iter().zip(&mut odds).filter(|(l, _)| **l == lane).for_each(|(_, odds)| *odds *= factor);
        let whole: f64 = odds.iter().sum();
        odds = odds.map(|p| p / whole);
    }
    let mut order: [usize; CLASSES] = std::array::from_fn(|n| n);
    order.sort_by(|a, b| odds[*b].total_cmp(&odds[*a]));
    let mut pieces = weights.explain(case, (&evidence, &known, &met), (order[0], order[1]));
    if baited {
        pieces.push(("against push: several baits of fakes".to_owned(), BAITED.ln()));
    }
    pieces.extend(dragged(case).map(|(lane, n, f)| (format!("dragged to {} before, times: {n}", lane.name()), f.ln())));
    Judged { odds, best: LANES[order[0]], pieces }
}

/// The keys of a message's distinct pieces of evidence, by kind.
#[derive(Debug, Clone)]
pub struct Evidence {
    keys: [Vec<u32>; SPACES],
}

/// Bits of a key by which a message's repeated pieces are told: of a text as
/// long as is looked at, one piece in two hundred passes for a repeated one.
const SEEN_BITS: u32 = 19;

impl Evidence {
    pub(super) fn of(case: &Case<'_>) -> Evidence {
        Evidence::gather(case).0
    }

    /// The evidence, and where it was met.
    fn gather(case: &Case<'_>) -> (Evidence, Met) {
        let mut seen = vec![0u64; 1 << (SEEN_BITS - 6)];
        let mut keys: [Vec<u32>; SPACES] = Default::default();
        let mut met = Met::default();
        let walked = Cell::new(0);
        let mut starts = Vec::new();
        let mut every = |_| {
            starts.push(walked.get());
            true
        };
        walk(case, &mut every, &mut |space, parts| {
            let key = key(space, parts);
            let low = key & ((1 << SEEN_BITS) - 1);
            let (word, bit) = (low as usize / 64, 1u64 << (low % 64));
            if seen[word] & bit == 0 {
                seen[word] |= bit;
                keys[space as usize].push(key);
                met.first[space as usize].push(walked.get());
            }
            walked.set(walked.get() + 1);
        });
        met.starts = starts;
        (Evidence { keys }, met)
    }

    fn holds(&self, space: Space, parts: &[&str]) -> bool {
        self.keys[space as usize].contains(&key(space, parts))
    }

    /// What one piece of a kind counts: many words of a long text count little each.
    fn value(&self, space: usize) -> f64 {
        if space == Space::Fact as usize {
            return FACT;
        }
        if space == Space::Concept as usize {
            return CONCEPT;
        }
        WORTH[space] / (self.keys[space].len().max(FEW) as f64).sqrt()
    }
}

/// Where a walk met the evidence, by the number of a piece.
#[derive(Debug, Default)]
struct Met {
    /// Of each key of [`Evidence`], the first piece that has it.
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

/// FNV-1a, folded to a key's size.
fn key(space: Space, parts: &[&str]) -> u32 {
    let mut h: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |octet: u8| h = (h ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3);
    eat(space as u8);
    for part in parts {
        part.bytes().for_each(&mut eat);
        eat(0x1f);
    }
    (h ^ (h >> KEY_BITS)) as u32 & ((1 << KEY_BITS) - 1)
}

/// The pieces of a message that were learned: their places among the keys of
/// [`Evidence`], and their weights, by kind.
type Known = [Vec<(usize, [i8; CLASSES])>; SPACES];

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
        let pieces = octets.len().checked_sub(HEAD).filter(|rest| rest % PIECE_OCTETS == 0)? / PIECE_OCTETS;
        let rest = octets.strip_prefix(MAGIC)?;
        let (numbers, rest) = rest.split_at(4 * (SPACES * CLASSES + CLASSES + 1));
        let (sizes, rest) = rest.split_at(GROUPS);
        let (tags, table) = rest.split_at(2 * pieces);
        let mut numbers = numbers.chunks_exact(4).filter_map(|c| c.try_into().ok().map(f32::from_le_bytes));
        let mut take = || numbers.next().filter(|n| n.is_finite());
        let mut w = Weights::default();
        for step in w.steps.iter_mut().flatten() {
            *step = take()?;
        }
        for bias in &mut w.bias {
            *bias = take()?;
        }
        w.sharpness = take()?;
        let mut end = 0;
        w.groups.push(end);
        for size in sizes {
            end += u32::from(*size);
            w.groups.push(end);
        }
        w.tags = tags.chunks_exact(2).filter_map(|c| c.try_into().ok().map(u16::from_le_bytes)).collect();
        w.table = table.chunks_exact(CLASSES).map(|c| std::array::from_fn(|n| c[n] as i8)).collect();
        (end as usize == pieces).then_some(w)
    }

    /// The file of these weights.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let numbers = self.steps.iter().flatten().chain(&self.bias).chain(std::iter::once(&self.sharpness));
        out.extend(numbers.flat_map(|n| n.to_le_bytes()));
        out.extend(self.groups.windows(2).map(|pair| (pair[1] - pair[0]) as u8));
        out.extend(self.tags.iter().flat_map(|t| t.to_le_bytes()));
        out.extend(self.table.iter().flatten().map(|w| *w as u8));
        out
    }

    /// The weights of a piece of evidence, where it was learned.
    fn of(&self, key: u32) -> Option<&[i8; CLASSES]> {
        let group = (key >> TAG_BITS) as usize;
        let (from, to) = (*self.groups.get(group)? as usize, *self.groups.get(group + 1)? as usize);
        let at = self.tags.get(from..to)?.iter().position(|t| *t == key as u16)?;
        self.table.get(from + at)
    }

    /// The pieces that were learned, by kind.
    fn known(&self, evidence: &Evidence) -> Known {
        std::array::from_fn(|space| {
            let keys = &evidence.keys[space];
            let mut known = Vec::with_capacity(keys.len());
            known.extend(keys.iter().enumerate().filter_map(|(at, key)| Some((at, *self.of(*key)?))));
            known
        })
    }

    fn sums(&self, evidence: &Evidence, known: &Known) -> [f64; CLASSES] {
        let mut out = self.bias.map(f64::from);
        for (space, pieces) in known.iter().enumerate() {
            let mut whole = [0i32; CLASSES];
            for (_, w) in pieces {
                for (sum, w) in whole.iter_mut().zip(w) {
                    *sum += i32::from(*w);
                }
            }
            let value = evidence.value(space);
            for (n, sum) in whole.into_iter().enumerate() {
                out[n] += f64::from(sum) * f64::from(self.steps[space][n]) * value;
            }
        }
        out
    }

    /// The probabilities of the lanes, by the pieces that are known.
    fn odds(&self, evidence: &Evidence, known: &Known) -> [f64; CLASSES] {
        learn::softmax(self.sums(evidence, known).map(|s| s * f64::from(self.sharpness)))
    }

    /// The evidence that spoke most for `class` against `other`, with how much.
    fn explain(
        &self,
        case: &Case<'_>,
        (evidence, known, met): (&Evidence, &Known, &Met),
        (class, other): (usize, usize),
    ) -> Vec<(String, f64)> {
        let mut all: Vec<(u32, u32, f64)> = Vec::new();
        for (space, pieces) in known.iter().enumerate() {
            let value = evidence.value(space) * f64::from(self.sharpness);
            for (at, w) in pieces {
                let part = |n: usize| f64::from(w[n]) * f64::from(self.steps[space][n]) * value;
                all.push((evidence.keys[space][*at], met.first[space][*at], part(class) - part(other)));
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
        assert_ne!(key(Space::Word, &["late"]), key(Space::Subject, &["late"]));
        assert_ne!(key(Space::Pair, &["a", "bc"]), key(Space::Pair, &["ab", "c"]));
    }
}
