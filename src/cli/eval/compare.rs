//! `tollgate eval --compare OLD.json`: this run against an earlier report.
//!
//! Promises: items are compared by id; an item whose lane changed is listed
//! with its truth, and so is one whose lane held but came closer to changing.
//! Doesn't know: why a number changed.
//!
//! The exit status isn't moved by a change alone: floors decide, and a floors
//! file can name [`FLIPS_BROKEN`], `flips` and `margins_eroded`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::EvalError;
use super::report::{Report, Scored};
use crate::lane::rule::Branch;
use crate::lane::{Features, LANES, Thresholds};

/// A margin that shrank by less is noise.
const SHRANK: f64 = 0.02;
/// A margin that is wider than this is no concern.
const NARROW: f64 = 0.10;
/// Items of one kind that the text lists; `--json` lists all.
const LISTED: usize = 40;

/// What an earlier report is read for.
#[derive(Debug, Deserialize)]
struct Old {
    set: String,
    #[serde(default)]
    scorer: String,
    accuracy: f64,
    urgent_recall: f64,
    push_precision: f64,
    urgent_hidden: f64,
    wanted_hidden: f64,
    noise_pushed: f64,
    #[serde(default)]
    calibration_error: Option<f64>,
    #[serde(default)]
    lanes: BTreeMap<String, OldLane>,
    /// Read apart: an older version may lack a threshold.
    #[serde(default)]
    thresholds: Option<serde_json::Value>,
    items: Vec<OldItem>,
}

#[derive(Debug, Deserialize)]
struct OldLane {
    precision: Option<f64>,
    recall: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct OldItem {
    id: String,
    got: String,
    branch: String,
    features: Features,
}

/// A value before and after.
#[derive(Debug, Clone, Serialize)]
pub struct Delta {
    /// In the earlier report; none where it had none.
    pub old: Option<f64>,
    /// Now.
    pub new: Option<f64>,
    /// New minus old, where both are there.
    pub delta: Option<f64>,
}

impl Delta {
    fn of(old: Option<f64>, new: Option<f64>) -> Delta {
        let delta = old.zip(new).map(|(old, new)| new - old);
        Delta { old, new, delta }
    }

    fn text(&self) -> String {
        let show = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"));
        match self.delta {
            Some(delta) => format!("{} to {} ({delta:+.3})", show(self.old), show(self.new)),
            None => format!("{} to {}", show(self.old), show(self.new)),
        }
    }
}

/// What a changed lane means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlipKind {
    /// Was right, is wrong.
    Broken,
    /// Was wrong, is right.
    Fixed,
    /// Wrong both times.
    StillWrong,
    /// The item has no truth.
    NoTruth,
}

/// An item whose lane changed.
#[derive(Debug, Clone, Serialize)]
pub struct Flip {
    /// The item.
    pub id: String,
    /// Its lane in the earlier report.
    pub old: String,
    /// Its lane now.
    pub new: String,
    /// The lane that it is labelled with, or `any`.
    pub truth: String,
    /// What that means.
    pub kind: FlipKind,
}

/// An item whose lane held, at a smaller distance from a threshold that would
/// change it.
#[derive(Debug, Clone, Serialize)]
pub struct Erosion {
    /// The item.
    pub id: String,
    /// Its lane, both times.
    pub lane: String,
    /// The lane that it is labelled with, or `any`.
    pub truth: String,
    /// `confidence` or `urgency`.
    pub feature: &'static str,
    /// The threshold, as `gateway.toml` names it.
    pub threshold: &'static str,
    /// The distance in the earlier report.
    pub old: f64,
    /// The distance now.
    pub new: f64,
}

/// This run against an earlier one.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The file of the earlier report.
    pub with: String,
    /// The set that it measured.
    pub old_set: String,
    /// What decided its numbers.
    pub old_scorer: String,
    /// Items that both have.
    pub both: usize,
    /// Ids that only the earlier report has.
    pub only_old: Vec<String>,
    /// Ids that only this run has.
    pub only_new: Vec<String>,
    /// The overall figures, by their names.
    pub overall: BTreeMap<&'static str, Delta>,
    /// Precision and recall by lane.
    pub lanes: BTreeMap<&'static str, BTreeMap<&'static str, Delta>>,
    /// Items whose lane changed, broken ones first.
    pub flips: Vec<Flip>,
    /// How many of them were right and are wrong.
    pub flips_broken: usize,
    /// Items that came close to changing, the closest first. Those that are
    /// wrong anyway aren't counted.
    pub eroding: Vec<Erosion>,
}

/// Reads the earlier report and compares.
pub(super) fn compare(path: &Path, new: &Report) -> Result<Comparison, EvalError> {
    let fault = |reason: String| EvalError::Old { path: path.to_owned(), reason };
    let old: Old = serde_json::from_str(&super::read(path)?).map_err(|e| fault(e.to_string()))?;
    Ok(Comparison::of(path.display().to_string(), &old, new))
}

impl Comparison {
    fn of(with: String, old: &Old, new: &Report) -> Comparison {
        let then = old.thresholds.clone().and_then(|t| serde_json::from_value(t).ok()).unwrap_or_default();
        let before: HashMap<&str, &OldItem> = old.items.iter().map(|i| (i.id.as_str(), i)).collect();
        let now: HashMap<&str, &Scored> = new.items.iter().map(|i| (i.id.as_str(), i)).collect();
        let pairs: Vec<(&OldItem, &Scored)> =
            new.items.iter().filter_map(|n| before.get(n.id.as_str()).map(|o| (*o, n))).collect();
        let mut flips: Vec<Flip> = pairs.iter().filter(|(o, n)| o.got != n.got).map(|(o, n)| flip(o, n)).collect();
        flips.sort_by_key(|f| f.kind != FlipKind::Broken);
        let held = pairs.iter().filter(|(o, n)| o.got == n.got && (n.lane == n.got || n.lane == "any"));
        let mut eroding: Vec<Erosion> = held.flat_map(|(o, n)| erosions(o, &then, n, &new.thresholds)).collect();
        eroding.sort_by(|a, b| a.new.total_cmp(&b.new));
        let some = |v: f64| Some(v);
        #[expect(clippy::cast_precision_loss, reason = "counts of items")]
        let count = |v: usize| Some(v as f64);
        let overall = BTreeMap::from([
            ("accuracy", Delta::of(some(old.accuracy), some(new.accuracy))),
            ("urgent_recall", Delta::of(some(old.urgent_recall), some(new.urgent_recall))),
            ("push_precision", Delta::of(some(old.push_precision), some(new.push_precision))),
            ("urgent_hidden", Delta::of(some(old.urgent_hidden), count(new.urgent_hidden))),
            ("wanted_hidden", Delta::of(some(old.wanted_hidden), count(new.wanted_hidden))),
            ("noise_pushed", Delta::of(some(old.noise_pushed), count(new.noise_pushed))),
            ("calibration_error", Delta::of(old.calibration_error, some(new.calibration_error))),
        ]);
        let lanes = LANES.iter().map(|lane| {
            let (was, is) = (old.lanes.get(lane.name()), new.lanes.get(lane.name()));
            let of = |old: fn(&OldLane) -> Option<f64>, new: Option<f64>| Delta::of(was.and_then(old), new);
            let precision = of(|l| l.precision, is.and_then(|l| l.precision));
            let recall = of(|l| l.recall, is.and_then(|l| l.recall));
            (lane.name(), BTreeMap::from([("precision", precision), ("recall", recall)]))
        });
        Comparison {
            with,
            old_set: old.set.clone(),
            old_scorer: old.scorer.clone(),
            both: pairs.len(),
            only_old: old.items.iter().filter(|i| !now.contains_key(i.id.as_str())).map(|i| i.id.clone()).collect(),
            only_new: new.items.iter().filter(|i| !before.contains_key(i.id.as_str())).map(|i| i.id.clone()).collect(),
            overall,
            lanes: lanes.collect(),
            flips_broken: flips.iter().filter(|f| f.kind == FlipKind::Broken).count(),
            flips,
            eroding,
        }
    }

    /// The comparison for a person.
    pub(super) fn text(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\nagainst {} ({}, scorer {}): {} items in both",
            self.with, self.old_set, self.old_scorer, self.both
        )?;
        for (what, ids) in [("only there", &self.only_old), ("only here", &self.only_new)] {
            if !ids.is_empty() {
                let more = ids.len().saturating_sub(LISTED);
                let ids: Vec<&str> = ids.iter().take(LISTED).map(String::as_str).collect();
                writeln!(out, "{what}: {}{}", ids.join(" "), and_more(more))?;
            }
        }
        for (name, delta) in &self.overall {
            writeln!(out, "{name:<18} {}", delta.text())?;
        }
        for (lane, deltas) in &self.lanes {
            let one = |name: &str| deltas.get(name).map_or_else(String::new, Delta::text);
            writeln!(out, "{lane:<18} precision {}  recall {}", one("precision"), one("recall"))?;
        }
        writeln!(out, "flips: {}, {} of them broken", self.flips.len(), self.flips_broken)?;
        for f in self.flips.iter().take(LISTED) {
            let kind = match f.kind {
                FlipKind::Broken => "broken",
                FlipKind::Fixed => "fixed",
                FlipKind::StillWrong => "still wrong",
                FlipKind::NoTruth => "no truth",
            };
            writeln!(out, "flip: {} {} to {} (is {}): {kind}", f.id, f.old, f.new, f.truth)?;
        }
        writeln!(out, "eroding margins: {}", self.eroding.len())?;
        for e in self.eroding.iter().take(LISTED) {
            writeln!(
                out,
                "eroding: {} in {} (is {}): {} is {:.3} from {}, was {:.3}",
                e.id, e.lane, e.truth, e.feature, e.new, e.threshold, e.old
            )?;
        }
        let more = self.flips.len().saturating_sub(LISTED) + self.eroding.len().saturating_sub(LISTED);
        if more > 0 {
            writeln!(out, "{more} more with --json")?;
        }
        Ok(())
    }
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}

fn flip(old: &OldItem, new: &Scored) -> Flip {
    let kind = match new.lane.as_str() {
        "any" => FlipKind::NoTruth,
        truth if truth == old.got => FlipKind::Broken,
        truth if truth == new.got => FlipKind::Fixed,
        _ => FlipKind::StillWrong,
    };
    Flip { id: new.id.clone(), old: old.got.clone(), new: new.got.clone(), truth: new.lane.clone(), kind }
}

fn erosions(old: &OldItem, then: &Thresholds, new: &Scored, now: &Thresholds) -> Vec<Erosion> {
    let before = margins(&old.branch, old.features, then);
    let found = margins(&new.branch, new.features, now).into_iter().filter_map(|m| {
        let was = before.iter().find(|b| (b.feature, b.threshold) == (m.feature, m.threshold))?.distance;
        (was - m.distance >= SHRANK && m.distance < NARROW).then(|| Erosion {
            id: new.id.clone(),
            lane: new.got.clone(),
            truth: new.lane.clone(),
            feature: m.feature,
            threshold: m.threshold,
            old: was,
            new: m.distance,
        })
    });
    found.collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Margin {
    feature: &'static str,
    threshold: &'static str,
    distance: f64,
}

/// How far the numbers are from thresholds that would move the item out of
/// the row that decided. Rows that signals or the person decide have none.
fn margins(branch: &str, f: Features, t: &Thresholds) -> Vec<Margin> {
    let margin = |feature, threshold, distance: f64| Margin { feature, threshold, distance: distance.abs() };
    let (confidence, urgency) = (f.confidence(), f.urgency());
    let sure = margin("confidence", "confidence_min", confidence - t.confidence_min);
    // Push takes both: what lacks most of it keeps the item out.
    let (lacks_urgency, lacks_confidence) = (t.push_urgency - urgency, t.push_confidence - confidence);
    let calm = if lacks_urgency >= lacks_confidence {
        margin("urgency", "push_urgency", lacks_urgency.max(0.0))
    } else {
        margin("confidence", "push_confidence", lacks_confidence.max(0.0))
    };
    let is = |b: Branch| b.name() == branch;
    if is(Branch::Urgent) {
        vec![
            margin("urgency", "push_urgency", urgency - t.push_urgency),
            margin("confidence", "push_confidence", confidence - t.push_confidence),
        ]
    } else if is(Branch::Unsure) {
        vec![sure]
    } else if is(Branch::Scheduling) || is(Branch::Otherwise) {
        vec![sure, calm]
    } else if is(Branch::Campaign) {
        vec![sure, margin("urgency", "silent_urgency", t.silent_urgency - urgency)]
    } else if is(Branch::Record) {
        vec![sure, margin("urgency", "info_urgency", t.info_urgency - urgency)]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old(items: &str) -> Old {
        let text = format!(
            r#"{{"set":"a","accuracy":0.5,"urgent_recall":1,"push_precision":1,"urgent_hidden":2,"wanted_hidden":0,"noise_pushed":0,"lanes":{{"push":{{"precision":1.0,"recall":null}}}},"items":[{items}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn item(id: &str, got: &str, branch: &str, confidence: f64, urgency: f64) -> String {
        format!(
            r#"{{"id":"{id}","got":"{got}","branch":"{branch}","features":{{"confidence":{confidence},"sender_trust":0,"reversibility":0.5,"urgency":{urgency}}}}}"#
        )
    }

    fn scored(id: &str, truth: &str, got: &str, branch: &str, confidence: f64, urgency: f64) -> Scored {
        let features = Features::new(confidence, 0.0, 0.5, urgency).unwrap();
        Scored::bare(id, truth, got, branch, features)
    }

    #[test]
    fn a_flip_says_what_it_means_and_margins_that_shrank_are_told() {
        let was = [
            item("a", "push", "urgent", 0.9, 0.9),
            item("b", "queue", "otherwise", 0.9, 0.2),
            item("c", "queue", "otherwise", 0.9, 0.4),
            item("d", "info", "record", 0.9, 0.1),
            item("gone", "info", "record", 0.9, 0.1),
        ];
        let now = vec![
            scored("a", "push", "queue", "otherwise", 0.9, 0.6),
            scored("b", "info", "info", "record", 0.9, 0.2),
            scored("c", "queue", "queue", "otherwise", 0.9, 0.65),
            scored("d", "queue", "info", "record", 0.9, 0.49),
            scored("new", "any", "push", "urgent", 0.9, 0.9),
        ];
        let report = Report::new("s".to_owned(), now, None, false);
        let c = Comparison::of("old.json".to_owned(), &old(&was.join(",")), &report);
        assert_eq!((c.both, c.only_old, c.only_new), (4, vec!["gone".to_owned()], vec!["new".to_owned()]));
        let flips: Vec<(&str, FlipKind)> = c.flips.iter().map(|f| (f.id.as_str(), f.kind)).collect();
        assert_eq!(flips, [("a", FlipKind::Broken), ("b", FlipKind::Fixed)]);
        assert_eq!(c.flips_broken, 1);
        // `d` is wrong anyway, so that its margin protects nothing.
        let eroding: Vec<(&str, &str)> = c.eroding.iter().map(|e| (e.id.as_str(), e.threshold)).collect();
        assert_eq!(eroding, [("c", "push_urgency")]);
        assert_eq!(c.overall["urgent_hidden"].delta, Some(-2.0));
        assert_eq!(c.lanes["push"]["recall"].delta, None);
    }

    #[test]
    fn the_distance_to_push_is_what_lacks_most() {
        let t = Thresholds::default();
        let f = Features::new(0.42, 0.0, 0.5, 0.69).unwrap();
        let m = margins("otherwise", f, &t);
        assert_eq!((m[1].feature, m[1].threshold), ("confidence", "push_confidence"));
        assert!((m[1].distance - 0.08).abs() < 1e-9);
        assert!(margins("pin", f, &t).is_empty() && margins("code", f, &t).is_empty());
    }
}
