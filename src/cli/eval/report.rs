//! What a set says of perception.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::compare::Comparison;
use super::item::Item;
use super::models::ModelRun;
use super::twins::Twins;
use crate::lane::trace::Trace;
use crate::lane::{Features, LANES, Lane, Signals, Thresholds};

/// One item with its decision.
#[derive(Debug, Clone, Serialize)]
pub struct Scored {
    /// The item's id.
    pub id: String,
    /// The lane that it is labelled with, or `any`.
    pub lane: String,
    /// The lane that was decided.
    pub got: String,
    /// The rule's row.
    pub branch: String,
    /// The guards that fired.
    pub guards: Vec<&'static str>,
    /// The scorer's numbers.
    pub features: Features,
    /// The signals.
    pub signals: Signals,
    /// The reason as shown.
    pub reason: String,
    /// The deadline, RFC 3339.
    pub deadline: Option<String>,
    /// The language that it seemed to be in.
    pub language: Option<String>,
    #[serde(skip)]
    labelled_language: Option<String>,
    #[serde(skip)]
    micros: u64,
    /// What the item cost, in millionths.
    #[serde(skip)]
    cost_micros: u64,
}

impl Scored {
    /// A decision without a message, for tests of what is made of decisions.
    #[cfg(test)]
    pub(super) fn bare(id: &str, lane: &str, got: &str, branch: &str, features: Features) -> Scored {
        Scored {
            id: id.to_owned(),
            lane: lane.to_owned(),
            got: got.to_owned(),
            branch: branch.to_owned(),
            guards: Vec::new(),
            features,
            signals: Signals::NONE,
            reason: String::new(),
            deadline: None,
            language: None,
            labelled_language: None,
            micros: 0,
            cost_micros: 0,
        }
    }

    pub(super) fn new(item: &Item, trace: &Trace, micros: u64) -> Scored {
        Scored {
            id: item.id.clone(),
            lane: item.lane.clone(),
            got: trace.verdict.lane.name().to_owned(),
            branch: trace.verdict.branch.name().to_owned(),
            guards: trace.verdict.guards.iter().map(|g| g.name()).collect(),
            features: trace.features(),
            signals: trace.signals,
            reason: trace.reason.clone(),
            deadline: trace.deadline.as_ref().map(|d| d.local.clone()),
            language: trace.read.language.clone(),
            labelled_language: item.lang.clone(),
            micros,
            cost_micros: trace.scorers.iter().filter_map(|s| s.cost_micros).sum(),
        }
    }
}

/// Precision and recall of one lane.
#[derive(Debug, Clone, Serialize)]
pub struct LaneReport {
    /// Items labelled with it.
    pub items: usize,
    /// Share of what was put there that belongs there; none where nothing was.
    pub precision: Option<f64>,
    /// 95 % interval of the precision (Wilson).
    pub precision_interval: Option<(f64, f64)>,
    /// Share of what belongs there that was put there; none without items.
    pub recall: Option<f64>,
    /// 95 % interval of the recall (Wilson).
    pub recall_interval: Option<(f64, f64)>,
}

/// Least and most values; names as in the report.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floors {
    /// At least.
    pub accuracy: Option<f64>,
    /// At least.
    pub urgent_recall: Option<f64>,
    /// At least.
    pub push_precision: Option<f64>,
    /// At most, as a count.
    pub urgent_hidden: Option<f64>,
    /// At most, as a count.
    pub wanted_hidden: Option<f64>,
    /// At most, as a count.
    pub noise_pushed: Option<f64>,
    /// At most, as a count; takes a set with twins.
    pub twins_broken: Option<f64>,
    /// At most, as a count; takes a set with attacks and their clean twins.
    pub twins_moved: Option<f64>,
    /// At most, as a count; takes `--compare`.
    pub flips: Option<f64>,
    /// At most, as a count; takes `--compare`.
    pub flips_broken: Option<f64>,
    /// At most, as a count; takes `--compare`.
    pub margins_eroded: Option<f64>,
}

/// What a set says.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The set.
    pub set: String,
    /// What gave the numbers.
    pub scorer: String,
    /// What models did, where they were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelRun>,
    /// Labelled items.
    pub labelled: usize,
    /// Share of labelled items in their lane.
    pub accuracy: f64,
    /// Share of push items in push; 1 where there are none.
    pub urgent_recall: f64,
    /// Share of what was pushed that belongs there; 1 where nothing was.
    pub push_precision: f64,
    /// Push items in info or silent.
    pub urgent_hidden: usize,
    /// Queue or meeting items in silent.
    pub wanted_hidden: usize,
    /// Silent, info or queue items in push.
    pub noise_pushed: usize,
    /// By lane.
    pub lanes: BTreeMap<&'static str, LaneReport>,
    /// Label, then decision, then how many.
    pub confusion: BTreeMap<&'static str, BTreeMap<&'static str, usize>>,
    /// Share in their lane by language.
    pub languages: BTreeMap<String, f64>,
    /// Mean distance of confidence and being right (ten bins).
    pub calibration_error: f64,
    /// Median and 95th percentile of the time for one item, microseconds.
    pub latency_us: (u64, u64),
    /// Tokens that models read and wrote; none are offline.
    pub tokens: u64,
    /// What models cost, in units of the price table; nothing offline.
    pub cost: f64,
    /// The thresholds that decided.
    pub thresholds: Thresholds,
    /// Twins that don't keep what was said of them; none without such twins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twins_broken: Option<usize>,
    /// Attacks that gained on their clean twins; none without attacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twins_moved: Option<usize>,
    /// What twins show; none in a set without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twins: Option<Twins>,
    /// Items whose lane changed; none without `--compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flips: Option<usize>,
    /// Those that were right and are wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flips_broken: Option<usize>,
    /// Items that came close to another lane; none without `--compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margins_eroded: Option<usize>,
    /// This run against an earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<Comparison>,
    /// Floors that don't hold, in words.
    pub broken_floors: Vec<String>,
    /// Every item.
    pub items: Vec<Scored>,
    #[serde(skip)]
    json: bool,
    #[serde(skip)]
    floors: Floors,
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The Wilson score interval at 95 %.
fn wilson(part: usize, whole: usize) -> Option<(f64, f64)> {
    const Z: f64 = 1.959_964;
    let p = share(part, whole)?;
    let n = whole as f64;
    let middle = p + Z * Z / (2.0 * n);
    let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    Some((((middle - spread) / scale).max(0.0), ((middle + spread) / scale).min(1.0)))
}

impl Report {
    pub(super) fn new(set: String, items: Vec<Scored>, floors: Option<Floors>, json: bool) -> Report {
        let mut confusion: BTreeMap<&'static str, BTreeMap<&'static str, usize>> = BTreeMap::new();
        for item in &items {
            if let (Some(lane), Some(got)) = (Lane::from_name(&item.lane), Lane::from_name(&item.got)) {
                *confusion.entry(lane.name()).or_default().entry(got.name()).or_default() += 1;
            }
        }
        let cell =
            |lane: Lane, got: Lane| confusion.get(lane.name()).and_then(|r| r.get(got.name())).copied().unwrap_or(0);
        let labelled = LANES.iter().map(|l| LANES.iter().map(|g| cell(*l, *g)).sum::<usize>()).sum();
        let right = LANES.iter().map(|l| cell(*l, *l)).sum();
        let lanes: BTreeMap<&'static str, LaneReport> =
            LANES.into_iter().map(|l| (l.name(), lane_report(l, &cell))).collect();
        let push = &lanes[Lane::Push.name()];
        let mut report = Report {
            scorer: crate::lane::trace::OFFLINE.to_owned(),
            models: None,
            labelled,
            accuracy: share(right, labelled).unwrap_or(1.0),
            urgent_recall: push.recall.unwrap_or(1.0),
            push_precision: push.precision.unwrap_or(1.0),
            urgent_hidden: cell(Lane::Push, Lane::Info) + cell(Lane::Push, Lane::Silent),
            wanted_hidden: cell(Lane::Queue, Lane::Silent) + cell(Lane::Meeting, Lane::Silent),
            noise_pushed: cell(Lane::Silent, Lane::Push) + cell(Lane::Info, Lane::Push) + cell(Lane::Queue, Lane::Push),
            languages: languages(&items),
            calibration_error: calibration(&items),
            latency_us: latency(&items),
            tokens: 0,
            cost: items.iter().map(|i| i.cost_micros).sum::<u64>() as f64 / 1e6,
            thresholds: Thresholds::default(),
            twins_broken: None,
            twins_moved: None,
            twins: None,
            flips: None,
            flips_broken: None,
            margins_eroded: None,
            compared: None,
            floors: floors.unwrap_or_default(),
            broken_floors: Vec::new(),
            set,
            lanes,
            confusion,
            items,
            json,
        };
        report.weigh();
        report
    }

    /// The same with what models did. It bears their name only where they
    /// judged every item that they were asked about.
    pub(super) fn by_models(mut self, name: &str, run: ModelRun) -> Report {
        self.scorer = match run.measurement {
            true => name.to_owned(),
            false => format!("{name} and offline (no measurement of {name})"),
        };
        self.models = Some(run);
        self
    }

    /// Why a run with models is no measurement of them.
    pub fn no_measurement(&self) -> Option<String> {
        let run = self.models.as_ref().filter(|m| !m.measurement)?;
        Some(match run.asked {
            0 => "no item was one that models are asked about: this measures no model".to_owned(),
            asked => {
                format!("{} of {asked} items fell back to the offline scorer: this measures no model", run.fell_back)
            }
        })
    }

    fn weigh(&mut self) {
        self.broken_floors = self.floors.broken(self);
    }

    /// Takes in what twins show.
    pub(super) fn paired(&mut self, twins: Option<Twins>) {
        let of = |all: &BTreeMap<String, super::Tally>, failed: usize| (!all.is_empty()).then_some(failed);
        self.twins_broken = twins.as_ref().and_then(|t| of(&t.changes, t.broken.len()));
        self.twins_moved = twins.as_ref().and_then(|t| of(&t.attacks, t.moved.len()));
        self.twins = twins;
        self.weigh();
    }

    /// Takes in a comparison with an earlier report.
    pub(super) fn compared(&mut self, comparison: Comparison) {
        self.flips = Some(comparison.flips.len());
        self.flips_broken = Some(comparison.flips_broken);
        self.margins_eroded = Some(comparison.eroding.len());
        self.compared = Some(comparison);
        self.weigh();
    }

    /// Whether every floor holds, and the numbers are those of what was asked for.
    pub fn passed(&self) -> bool {
        self.broken_floors.is_empty() && self.no_measurement().is_none()
    }

    /// The report as it was asked for: text, or one JSON object.
    pub fn output(&self) -> String {
        if self.json {
            // A report is made of strings, numbers and maps of strings.
            return serde_json::to_string_pretty(self).unwrap_or_default();
        }
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.text(&mut out);
        out
    }

    fn text(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "{}: {} labelled of {} items, scorer {}",
            self.set,
            self.labelled,
            self.items.len(),
            self.scorer
        )?;
        writeln!(
            out,
            "accuracy {:.3}  urgent_recall {:.3}  push_precision {:.3}",
            self.accuracy, self.urgent_recall, self.push_precision
        )?;
        writeln!(
            out,
            "urgent_hidden {}  wanted_hidden {}  noise_pushed {}  calibration_error {:.3}  latency {} µs (95 %: {} µs)  \
             tokens {}  cost {:.4}",
            self.urgent_hidden,
            self.wanted_hidden,
            self.noise_pushed,
            self.calibration_error,
            self.latency_us.0,
            self.latency_us.1,
            self.tokens,
            self.cost
        )?;
        if let Some(m) = &self.models {
            writeln!(
                out,
                "models: asked about {}, fell back {}; {} and {} tokens, cost {:.6}, {} ms (95 %: {} ms)",
                m.asked, m.fell_back, m.input_tokens, m.output_tokens, m.cost, m.latency_ms.0, m.latency_ms.1
            )?;
            for (error, count) in &m.errors {
                writeln!(out, "models: {count} times {error}")?;
            }
            if let Some(why) = self.no_measurement() {
                writeln!(out, "models: {why}")?;
            }
        }
        writeln!(out, "\n{:<8} {:>5} {:>22} {:>22}", "lane", "items", "precision", "recall")?;
        for lane in LANES {
            let r = &self.lanes[lane.name()];
            let show = |p: Option<f64>, i: Option<(f64, f64)>| match (p, i) {
                (Some(p), Some((low, high))) => format!("{p:.3} ({low:.2} to {high:.2})"),
                _ => "-".to_owned(),
            };
            let (p, q) = (show(r.precision, r.precision_interval), show(r.recall, r.recall_interval));
            writeln!(out, "{:<8} {:>5} {p:>22} {q:>22}", lane.name(), r.items)?;
        }
        write!(out, "\n{:<10}", "is / got")?;
        for got in LANES {
            write!(out, "{:>9}", got.name())?;
        }
        for lane in LANES {
            write!(out, "\n{:<10}", lane.name())?;
            for got in LANES {
                let n = self.confusion.get(lane.name()).and_then(|r| r.get(got.name())).copied().unwrap_or(0);
                write!(out, "{n:>9}")?;
            }
        }
        let languages: Vec<String> = self.languages.iter().map(|(l, a)| format!("{l} {a:.2}")).collect();
        writeln!(out, "\n\nby language: {}", languages.join("  "))?;
        for i in self.items.iter().filter(|i| i.lane != i.got && i.lane != "any") {
            let f = &i.features;
            writeln!(
                out,
                "wrong: {} is {}, got {} ({}; conf {:.2} trust {:.2} rev {:.2} urg {:.2}; {}; {})",
                i.id,
                i.lane,
                i.got,
                i.branch,
                f.confidence(),
                f.sender_trust(),
                f.reversibility(),
                f.urgency(),
                i.signals.names().join(" "),
                i.reason
            )?;
        }
        if let Some(twins) = &self.twins {
            twins.text(out)?;
        }
        if let Some(comparison) = &self.compared {
            comparison.text(out)?;
        }
        for floor in &self.broken_floors {
            writeln!(out, "floor: {floor}")?;
        }
        Ok(())
    }
}

fn lane_report(lane: Lane, cell: &dyn Fn(Lane, Lane) -> usize) -> LaneReport {
    let right = cell(lane, lane);
    let put: usize = LANES.iter().map(|l| cell(*l, lane)).sum();
    let items: usize = LANES.iter().map(|g| cell(lane, *g)).sum();
    LaneReport {
        items,
        precision: share(right, put),
        precision_interval: wilson(right, put),
        recall: share(right, items),
        recall_interval: wilson(right, items),
    }
}

fn labelled(items: &[Scored]) -> impl Iterator<Item = &Scored> {
    items.iter().filter(|i| i.lane != "any")
}

fn languages(items: &[Scored]) -> BTreeMap<String, f64> {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for i in labelled(items) {
        let language = i.labelled_language.clone().or_else(|| i.language.clone()).unwrap_or_else(|| "none".to_owned());
        let (right, all) = counts.entry(language).or_default();
        *right += usize::from(i.lane == i.got);
        *all += 1;
    }
    counts.into_iter().filter_map(|(l, (right, all))| share(right, all).map(|s| (l, s))).collect()
}

/// Expected calibration error over ten bins of confidence.
fn calibration(items: &[Scored]) -> f64 {
    const BINS: usize = 10;
    let mut bins = [(0.0f64, 0usize, 0usize); BINS];
    for i in labelled(items) {
        let c = i.features.confidence();
        let bin = &mut bins[((c * BINS as f64) as usize).min(BINS - 1)];
        *bin = (bin.0 + c, bin.1 + usize::from(i.lane == i.got), bin.2 + 1);
    }
    let all: usize = bins.iter().map(|b| b.2).sum();
    bins.iter()
        .filter(|b| b.2 > 0)
        .map(|(sum, right, n)| (sum - *right as f64).abs() / *n as f64 * (*n as f64 / all as f64))
        .sum()
}

fn latency(items: &[Scored]) -> (u64, u64) {
    let mut all: Vec<u64> = items.iter().map(|i| i.micros).collect();
    all.sort_unstable();
    let at = |share: f64| {
        all.get(((all.len() as f64 * share) as usize).min(all.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    (at(0.5), at(0.95))
}

impl Floors {
    fn broken(&self, r: &Report) -> Vec<String> {
        let mut out = Vec::new();
        for (name, floor, value) in [
            ("accuracy", self.accuracy, r.accuracy),
            ("urgent_recall", self.urgent_recall, r.urgent_recall),
            ("push_precision", self.push_precision, r.push_precision),
        ] {
            if let Some(floor) = floor.filter(|f| value < *f) {
                out.push(format!("{name} is {value:.3}, must be at least {floor}"));
            }
        }
        for (name, most, value) in [
            ("urgent_hidden", self.urgent_hidden, r.urgent_hidden),
            ("wanted_hidden", self.wanted_hidden, r.wanted_hidden),
            ("noise_pushed", self.noise_pushed, r.noise_pushed),
        ] {
            if let Some(most) = most.filter(|m| value as f64 > *m) {
                out.push(format!("{name} is {value}, must be at most {most}"));
            }
        }
        for (name, most, value) in [
            ("twins_broken", self.twins_broken, r.twins_broken),
            ("twins_moved", self.twins_moved, r.twins_moved),
            ("flips", self.flips, r.flips),
            ("flips_broken", self.flips_broken, r.flips_broken),
            ("margins_eroded", self.margins_eroded, r.margins_eroded),
        ] {
            match (most, value) {
                (Some(most), Some(value)) if value as f64 > most => {
                    out.push(format!("{name} is {value}, must be at most {most}"));
                }
                // A floor under nothing would hold whatever happens. What
                // comes later weighs again.
                (Some(most), None) => out.push(format!("{name} was not measured, must be at most {most}")),
                (Some(_) | None, _) => {}
            }
        }
        out
    }
}
