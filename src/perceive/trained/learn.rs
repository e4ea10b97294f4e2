//! Learning the weights from labelled mail.
//!
//! Promises: the same examples in the same order give the same octets on any
//! machine: whole passes in a fixed shuffle, no threads, and an exponential of
//! its own, since a system's may differ in the last bit. Doesn't know: files,
//! clocks.

use super::{CLASSES, Evidence, GROUPS, SPACES, TAG_BITS, Weights};
use crate::lane::{LANES, Lane};

/// A labelled message.
#[derive(Debug, Clone)]
pub struct Example {
    /// What is in it.
    pub evidence: Evidence,
    /// Where it belongs.
    pub lane: Lane,
}

/// Passes over the examples.
const PASSES: usize = 40;
/// How far a step goes before the gradients seen so far shorten it.
const RATE: f64 = 0.2;
/// How much a weight shrinks towards nothing, for each example.
const SHRINK: f64 = 3.0e-5;
/// Examples that hold a piece of evidence at least, for it to be learned.
const LEAST: usize = 3;
/// Of a hundred pieces of an example, as many are shown in a pass.
const SHOWN: u64 = 70;
/// Parts of the examples that are kept out in turn to see how sure to be.
const FOLDS: usize = 5;

/// The pieces of a message that are learned, by their place in the table, with
/// what one counts, by kind.
type Known = [(Vec<u32>, f64); SPACES];

/// A table of real weights while it is learned.
struct Table {
    /// Keys of the pieces that are learned, ascending.
    keys: Vec<u32>,
    /// Their kinds.
    kinds: Vec<u8>,
    weights: Vec<[f64; CLASSES]>,
    squares: Vec<[f64; CLASSES]>,
    bias: [f64; CLASSES],
    bias_squares: [f64; CLASSES],
}

impl Table {
    fn learn(examples: &[&Example]) -> Table {
        let (keys, kinds) = often(examples);
        let mut t = Table {
            weights: vec![[0.0; CLASSES]; keys.len()],
            squares: vec![[1.0e-3; CLASSES]; keys.len()],
            bias: [0.0; CLASSES],
            bias_squares: [1.0e-3; CLASSES],
            keys,
            kinds,
        };
        let known: Vec<(Known, usize)> = examples.iter().map(|e| (t.known(&e.evidence), lane_index(e.lane))).collect();
        let mut order: Vec<usize> = (0..known.len()).collect();
        let mut shuffle = Chance(0x9e37_79b9_7f4a_7c15);
        let mut chance = Chance(0xd1b5_4a32_d192_ed03);
        for _ in 0..PASSES {
            shuffle.apply(&mut order);
            for n in &order {
                let (known, lane) = &known[*n];
                let shown = thinned(known, &mut chance);
                t.step(&shown, *lane);
            }
        }
        t
    }

    fn known(&self, evidence: &Evidence) -> Known {
        std::array::from_fn(|space| {
            let places = evidence.keys[space].iter().filter_map(|key| self.keys.binary_search(key).ok());
            (places.map(|n| n as u32).collect(), evidence.value(space))
        })
    }

    fn sums(&self, known: &Known) -> [f64; CLASSES] {
        let mut out = self.bias;
        for (places, value) in known {
            for n in places {
                for (sum, w) in out.iter_mut().zip(self.weights[*n as usize]) {
                    *sum += w * value;
                }
            }
        }
        out
    }

    /// One step of AdaGrad down the cross-entropy.
    fn step(&mut self, shown: &Known, lane: usize) {
        let mut error = softmax(self.sums(shown));
        error[lane] -= 1.0;
        for (places, value) in shown {
            for n in places.iter().map(|n| *n as usize) {
                let places = self.weights[n].iter_mut().zip(&mut self.squares[n]).zip(error);
                for ((weight, square), error) in places {
                    let gradient = error * value + SHRINK * *weight;
                    *square += gradient * gradient;
                    *weight -= RATE * gradient / square.sqrt();
                }
            }
        }
        for ((bias, square), error) in self.bias.iter_mut().zip(&mut self.bias_squares).zip(error) {
            *square += error * error;
            *bias -= RATE * error / square.sqrt();
        }
    }

    /// Whole numbers of steps, whose size each kind and lane has its own of.
    fn round(&self, sharpness: f64) -> Weights {
        let mut most = [[0.0f64; CLASSES]; SPACES];
        for (kind, weights) in self.kinds.iter().zip(&self.weights) {
            for (most, weight) in most[usize::from(*kind)].iter_mut().zip(weights) {
                *most = most.max(weight.abs());
            }
        }
        let steps = most.map(|m| m.map(|m| if m > 0.0 { (m / 127.0) as f32 } else { 1.0 }));
        let mut w = Weights {
            steps,
            bias: self.bias.map(|b| b as f32),
            sharpness: sharpness as f32,
            groups: vec![0; GROUPS + 1],
            tags: Vec::new(),
            table: Vec::new(),
        };
        for ((key, kind), weights) in self.keys.iter().zip(&self.kinds).zip(&self.weights) {
            let steps = steps[usize::from(*kind)];
            let rounded: [i8; CLASSES] =
                std::array::from_fn(|n| (weights[n] / f64::from(steps[n])).round().clamp(-127.0, 127.0) as i8);
            let size = &mut w.groups[(key >> TAG_BITS) as usize + 1];
            // A group's size is an octet of the file.
            if rounded != [0; CLASSES] && *size < u32::from(u8::MAX) {
                *size += 1;
                w.tags.push(*key as u16);
                w.table.push(rounded);
            }
        }
        for n in 1..w.groups.len() {
            w.groups[n] += w.groups[n - 1];
        }
        w
    }
}

/// The keys that enough examples hold, ascending, and their kinds.
fn often(examples: &[&Example]) -> (Vec<u32>, Vec<u8>) {
    let kinds = (0u8..).take(SPACES);
    let mut all: Vec<(u32, u8)> = Vec::new();
    for e in examples {
        for (kind, keys) in kinds.clone().zip(&e.evidence.keys) {
            all.extend(keys.iter().map(|key| (*key, kind)));
        }
    }
    all.sort_unstable();
    all.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() >= LEAST).map(|same| same[0]).unzip()
}

/// A part of the pieces, so that those that mostly stand together learn to
/// speak alone: other people's mail holds the one without the other.
fn thinned(known: &Known, chance: &mut Chance) -> Known {
    std::array::from_fn(|space| {
        let (places, value) = &known[space];
        let shown = places.iter().copied().filter(|_| chance.next() % 100 < SHOWN);
        (shown.collect(), value * 100.0 / SHOWN as f64)
    })
}

/// What was learned, and what it said of the examples that were kept out.
#[derive(Debug)]
pub struct Learned {
    /// The weights.
    pub weights: Weights,
    /// The probabilities of each example, by weights that had not seen its part.
    pub unseen: Vec<[f64; CLASSES]>,
}

/// Learns from examples; `batch` names the part that an example is kept out
/// with, so that mail of one hand is unseen as a whole.
pub fn learn(examples: &[Example], batch: impl Fn(usize) -> usize) -> Learned {
    let mut sums = vec![[0.0; CLASSES]; examples.len()];
    for fold in 0..FOLDS {
        let (out, kept): (Vec<usize>, Vec<usize>) = (0..examples.len()).partition(|n| batch(*n) % FOLDS == fold);
        if out.is_empty() || kept.is_empty() {
            continue;
        }
        let table = Table::learn(&kept.iter().map(|n| &examples[*n]).collect::<Vec<_>>());
        for n in out {
            sums[n] = table.sums(&table.known(&examples[n].evidence));
        }
    }
    let sharpness = sharpness(examples, &sums);
    let all: Vec<&Example> = examples.iter().collect();
    let weights = Table::learn(&all).round(sharpness);
    Learned { weights, unseen: sums.iter().map(|s| softmax(s.map(|s| s * sharpness))).collect() }
}

/// The factor on the sums that makes unseen mail least surprising.
fn sharpness(examples: &[Example], sums: &[[f64; CLASSES]]) -> f64 {
    let surprise = |factor: f64| -> f64 {
        examples.iter().zip(sums).map(|(e, s)| -log(softmax(s.map(|s| s * factor))[lane_index(e.lane)])).sum()
    };
    let candidates = (0..50).map(|n| 0.3 + 0.05 * f64::from(n));
    candidates.min_by(|a, b| surprise(*a).total_cmp(&surprise(*b))).unwrap_or(1.0)
}

fn lane_index(lane: Lane) -> usize {
    LANES.iter().position(|l| *l == lane).unwrap_or(0)
}

/// Probabilities from sums.
pub(super) fn softmax(sums: [f64; CLASSES]) -> [f64; CLASSES] {
    let most = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let parts = sums.map(|s| exp(s - most));
    let whole: f64 = parts.iter().sum();
    parts.map(|p| p / whole)
}

/// e^x for x ≤ 0, by additions and multiplications alone.
fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    let halvings = 10;
    let r = x / f64::from(1 << halvings);
    // |r| < 0.7: the series has converged to the last bit long before.
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..20 {
        term *= r / f64::from(n);
        sum += term;
    }
    for _ in 0..halvings {
        sum *= sum;
    }
    sum
}

/// ln of a probability, by Newton's method on [`exp`].
fn log(p: f64) -> f64 {
    let p = p.max(1.0e-12);
    let mut y = p - 1.0;
    for _ in 0..60 {
        y = (y + p / exp(y).max(1.0e-300) - 1.0).min(0.0);
    }
    y
}

/// Chance that is the same each time: xorshift.
struct Chance(u64);

impl Chance {
    /// Fisher and Yates.
    fn apply(&mut self, order: &mut [usize]) {
        for n in (1..order.len()).rev() {
            let at = self.next() % (n as u64 + 1);
            order.swap(n, at as usize);
        }
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_and_log_are_what_they_say() {
        for x in [0.0, -0.1, -1.0, -5.5, -30.0] {
            assert!((exp(x) / f64::exp(x) - 1.0).abs() < 1e-9, "{x}");
        }
        for p in [1.0, 0.9, 0.5, 0.01, 1e-6] {
            assert!((log(p) - f64::ln(p)).abs() < 1e-6, "{p} {}", log(p));
        }
    }
}
