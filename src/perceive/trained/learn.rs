//! Learning the weights from labelled mail.
//!
//! Promises: the same examples in the same order give the same octets on any
//! machine: whole passes in a fixed shuffle, no threads, and an exponential of
//! its own, since a system's may differ in the last bit. Doesn't know: files,
//! clocks.

use super::{CLASSES, Evidence, SLOTS, SPACES, Weights};
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
const LEAST: u32 = 2;
/// Parts of the examples that are kept out in turn to see how sure to be.
const FOLDS: usize = 5;

/// A table of real weights while it is learned.
struct Table {
    weights: Vec<[f64; CLASSES]>,
    squares: Vec<[f64; CLASSES]>,
    bias: [f64; CLASSES],
    bias_squares: [f64; CLASSES],
    learned: Vec<bool>,
}

impl Table {
    fn learn(examples: &[&Example]) -> Table {
        let mut held = vec![0u32; SLOTS];
        for slot in examples.iter().flat_map(|e| e.evidence.slots.iter().flatten()) {
            held[*slot as usize] += 1;
        }
        let mut t = Table {
            weights: vec![[0.0; CLASSES]; SLOTS],
            squares: vec![[1.0e-3; CLASSES]; SLOTS],
            bias: [0.0; CLASSES],
            bias_squares: [1.0e-3; CLASSES],
            learned: held.iter().map(|n| *n >= LEAST).collect(),
        };
        let mut order: Vec<usize> = (0..examples.len()).collect();
        let mut shuffle = Shuffle(0x9e37_79b9_7f4a_7c15);
        for _ in 0..PASSES {
            shuffle.apply(&mut order);
            for n in &order {
                t.step(examples[*n]);
            }
        }
        t
    }

    fn sums(&self, evidence: &Evidence) -> [f64; CLASSES] {
        let mut out = self.bias;
        for (space, slots) in evidence.slots.iter().enumerate() {
            let value = evidence.value(space);
            for slot in slots {
                for (sum, w) in out.iter_mut().zip(self.weights[*slot as usize]) {
                    *sum += w * value;
                }
            }
        }
        out
    }

    /// One step of AdaGrad down the cross-entropy.
    fn step(&mut self, example: &Example) {
        let mut error = softmax(self.sums(&example.evidence));
        error[lane_index(example.lane)] -= 1.0;
        for (space, slots) in example.evidence.slots.iter().enumerate() {
            let value = example.evidence.value(space);
            for slot in slots.iter().map(|s| *s as usize).filter(|s| self.learned[*s]) {
                let places = self.weights[slot].iter_mut().zip(&mut self.squares[slot]).zip(error);
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
    fn round(&self, examples: &[&Example], sharpness: f64) -> Weights {
        let mut most = [[0.0f64; CLASSES]; SPACES];
        let mut kind = vec![usize::MAX; SLOTS];
        for slots in examples.iter().map(|e| &e.evidence.slots) {
            for (space, slot) in
                slots.iter().enumerate().flat_map(|(space, v)| v.iter().map(move |s| (space, *s as usize)))
            {
                kind[slot] = kind[slot].min(space);
                for (most, weight) in most[space].iter_mut().zip(self.weights[slot]) {
                    *most = most.max(weight.abs());
                }
            }
        }
        let steps = most.map(|m| m.map(|m| if m > 0.0 { (m / 127.0) as f32 } else { 1.0 }));
        let round = |slot: usize, n: usize| {
            let Some(steps) = steps.get(kind[slot]) else { return 0 };
            (self.weights[slot][n] / f64::from(steps[n])).round().clamp(-127.0, 127.0) as i8
        };
        Weights {
            steps,
            bias: self.bias.map(|b| b as f32),
            sharpness: sharpness as f32,
            table: (0..SLOTS).map(|slot| std::array::from_fn(|n| round(slot, n))).collect(),
        }
    }
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
            sums[n] = table.sums(&examples[n].evidence);
        }
    }
    let sharpness = sharpness(examples, &sums);
    let all: Vec<&Example> = examples.iter().collect();
    let weights = Table::learn(&all).round(&all, sharpness);
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

/// Fisher and Yates by xorshift.
struct Shuffle(u64);

impl Shuffle {
    fn apply(&mut self, order: &mut [usize]) {
        for n in (1..order.len()).rev() {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            order.swap(n, (self.0 % (n as u64 + 1)) as usize);
        }
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
