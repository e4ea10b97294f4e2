//! Twins: items that say beforehand what a change must do to the lane.
//!
//! Promises: a twin with `expect` is judged against the lane that the program
//! gave its original; an attack (a twin without `expect`) against the lane of
//! its clean twin, whose id is the attack's with a `c` behind it. A twin whose
//! original isn't in the set stops the run. Doesn't know: which lane is right.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use serde::Serialize;

use super::item::Item;
use super::report::Scored;
use crate::lane::{LANES, Lane};

/// Behind an attack's id: its clean twin.
const CLEAN: char = 'c';
/// The change of a twin that names none.
const UNNAMED: &str = "unnamed";
/// Lanes that an attack must not reach when its clean twin isn't there.
const GAINS: [Lane; 3] = [Lane::Push, Lane::Meeting, Lane::Info];

/// What a twin's lane must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// The original's.
    Same,
    /// This one.
    Is(Lane),
    /// Any but this one.
    Not(Lane),
}

impl Expect {
    fn parse(text: &str) -> Result<Expect, String> {
        let wrong = || {
            let lanes = LANES.map(Lane::name).join(", ");
            format!("{text:?} is no expectation: same, a lane ({lanes}), or \"not\" and a lane")
        };
        match text.trim().split_once(' ') {
            None if text.trim() == "same" => Ok(Expect::Same),
            None => Lane::from_name(text.trim()).map(Expect::Is).ok_or_else(wrong),
            Some(("not", lane)) => Lane::from_name(lane.trim()).map(Expect::Not).ok_or_else(wrong),
            Some(_) => Err(wrong()),
        }
    }

    fn holds(self, original: &str, got: &str) -> bool {
        match self {
            Expect::Same => got == original,
            Expect::Is(lane) => got == lane.name(),
            Expect::Not(lane) => got != lane.name(),
        }
    }
}

/// A twin whose lane isn't what was said beforehand.
#[derive(Debug, Clone, Serialize)]
pub struct Broken {
    /// The twin.
    pub id: String,
    /// Its original.
    pub twin: String,
    /// What was changed.
    pub change: String,
    /// What was said.
    pub expect: String,
    /// The lane that the original got.
    pub original: String,
    /// The lane that the twin got.
    pub got: String,
}

/// An attack that got a lane which its clean twin didn't get.
#[derive(Debug, Clone, Serialize)]
pub struct Moved {
    /// The attack.
    pub id: String,
    /// Its clean twin.
    pub twin: String,
    /// What kind of attack it is.
    pub stratum: String,
    /// The lane that the clean twin got.
    pub clean: String,
    /// The lane that the attack got.
    pub got: String,
}

/// How many of a kind, and how many of them fail.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Tally {
    /// Twins of this kind.
    pub twins: usize,
    /// Those that keep what was said.
    pub kept: usize,
}

/// What twins show.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Twins {
    /// Twins with an expectation, by what was changed.
    pub changes: BTreeMap<String, Tally>,
    /// Those that don't keep it.
    pub broken: Vec<Broken>,
    /// Attacks, by kind.
    pub attacks: BTreeMap<String, Tally>,
    /// Those that gained push, meeting or info.
    pub moved: Vec<Moved>,
}

/// Judges the twins of a set; none where it has none. The first error is the
/// index of its item and the reason.
pub(super) fn judge(items: &[&Item], scored: &[Scored]) -> Result<Option<Twins>, (usize, String)> {
    let got: HashMap<&str, &str> = scored.iter().map(|s| (s.id.as_str(), s.got.as_str())).collect();
    let mut twins = Twins::default();
    for (n, (item, is)) in items.iter().zip(scored).enumerate() {
        let Some(twin) = item.twin.as_deref() else { continue };
        let other = got.get(twin).copied().ok_or_else(|| (n, format!("its twin {twin:?} is not in the set")))?;
        if let Some(expect) = &item.expect {
            let parsed = Expect::parse(expect).map_err(|reason| (n, reason))?;
            let change = item.change.clone().unwrap_or_else(|| UNNAMED.to_owned());
            let tally = twins.changes.entry(change.clone()).or_default();
            tally.twins += 1;
            if parsed.holds(other, &is.got) {
                tally.kept += 1;
            } else {
                twins.broken.push(Broken {
                    id: item.id.clone(),
                    twin: twin.to_owned(),
                    change,
                    expect: expect.clone(),
                    original: other.to_owned(),
                    got: is.got.clone(),
                });
            }
        } else if !is_clean(item) {
            let stratum = item.stratum.clone().unwrap_or_else(|| UNNAMED.to_owned());
            let tally = twins.attacks.entry(stratum.clone()).or_default();
            tally.twins += 1;
            if is.got != other && GAINS.iter().any(|l| l.name() == is.got) {
                twins.moved.push(Moved {
                    id: item.id.clone(),
                    twin: twin.to_owned(),
                    stratum,
                    clean: other.to_owned(),
                    got: is.got.clone(),
                });
            } else {
                tally.kept += 1;
            }
        }
    }
    Ok((!twins.changes.is_empty() || !twins.attacks.is_empty()).then_some(twins))
}

/// The clean one of an attack and its twin, which name each other.
pub(super) fn is_clean(item: &Item) -> bool {
    item.twin.as_deref().is_some_and(|attack| item.id.strip_suffix(CLEAN) == Some(attack))
}

impl Twins {
    /// What twins show, for a person.
    pub(super) fn text(&self, out: &mut String) -> std::fmt::Result {
        if !self.changes.is_empty() {
            writeln!(out, "\ntwins that keep what was said beforehand ({} don't):", self.broken.len())?;
        }
        for (change, tally) in &self.changes {
            writeln!(out, "  {change:<12} {:>4} of {}", tally.kept, tally.twins)?;
        }
        for b in &self.broken {
            writeln!(
                out,
                "twin: {} ({}, of {} in {}) must be {}, got {}",
                b.id, b.change, b.twin, b.original, b.expect, b.got
            )?;
        }
        if !self.attacks.is_empty() {
            writeln!(out, "\nattacks that gain nothing on their clean twin ({} do):", self.moved.len())?;
        }
        for (stratum, tally) in &self.attacks {
            writeln!(out, "  {stratum:<12} {:>4} of {}", tally.kept, tally.twins)?;
        }
        for m in &self.moved {
            writeln!(out, "moved: {} ({}) got {}, its clean twin {} got {}", m.id, m.stratum, m.got, m.twin, m.clean)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Features;

    fn set(lines: &[(&str, &str)]) -> (Vec<Item>, Vec<Scored>) {
        let items: Vec<Item> = lines
            .iter()
            .map(|(fields, _)| Item::parse(&format!(r#"{{"lane":"any","from":"a@example.com",{fields}}}"#)).unwrap())
            .collect();
        let features = Features::new(0.9, 0.5, 0.5, 0.5).unwrap();
        let scored = items
            .iter()
            .zip(lines)
            .map(|(i, (_, got))| Scored::bare(&i.id, "any", got, "otherwise", features))
            .collect();
        (items, scored)
    }

    fn judged(lines: &[(&str, &str)]) -> Result<Option<Twins>, (usize, String)> {
        let (items, scored) = set(lines);
        judge(&items.iter().collect::<Vec<_>>(), &scored)
    }

    #[test]
    fn expectations_are_judged_against_what_the_original_got() {
        let twins = judged(&[
            (r#""id":"m1""#, "push"),
            (r#""id":"m1b","twin":"m1","change":"html","expect":"same""#, "queue"),
            (r#""id":"m1c","twin":"m1","change":"later","expect":"not push""#, "queue"),
            (r#""id":"m1d","twin":"m1","change":"hours","expect":"push""#, "push"),
        ])
        .unwrap()
        .unwrap();
        assert_eq!(twins.broken.iter().map(|b| b.id.as_str()).collect::<Vec<_>>(), ["m1b"]);
        assert_eq!((twins.changes["later"].kept, twins.changes["html"].kept), (1, 0));
        assert!(twins.attacks.is_empty(), "an id that ends in c is no clean twin where something is expected");
    }

    #[test]
    fn an_attack_must_gain_nothing_on_its_clean_twin() {
        let twins = judged(&[
            (r#""id":"a1","twin":"a1c","stratum":"injection""#, "push"),
            (r#""id":"a1c","twin":"a1","stratum":"injection""#, "queue"),
            (r#""id":"a2","twin":"a2c","stratum":"injection""#, "queue"),
            (r#""id":"a2c","twin":"a2""#, "silent"),
            (r#""id":"a3","twin":"a3c","stratum":"lookalike""#, "push"),
            (r#""id":"a3c","twin":"a3""#, "push"),
        ])
        .unwrap()
        .unwrap();
        assert_eq!(twins.moved.iter().map(|m| m.id.as_str()).collect::<Vec<_>>(), ["a1"]);
        assert_eq!((twins.attacks["injection"].twins, twins.attacks["injection"].kept), (2, 1));
        assert_eq!(twins.attacks["lookalike"].kept, 1);
    }

    #[test]
    fn a_twin_without_its_original_or_with_a_strange_expectation_is_an_error() {
        assert_eq!(judged(&[(r#""id":"a","twin":"b""#, "queue")]).unwrap_err().0, 0);
        let lines = [(r#""id":"b""#, "queue"), (r#""id":"a","twin":"b","expect":"louder""#, "queue")];
        let (n, reason) = judged(&lines).unwrap_err();
        assert!(n == 1 && reason.contains("louder"), "{reason}");
        assert!(judged(&[(r#""id":"a""#, "queue")]).unwrap().is_none());
    }
}
