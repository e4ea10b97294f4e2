//! `tollgate eval`: measures perception against labelled mail.
//!
//! Promises: the same set gives the same numbers; an item that can't be read
//! stops the run with its line. Doesn't know: what models are asked
//! ([`models`] does).

mod compare;
mod delta;
pub(super) mod item;
mod report;
mod twins;

use std::path::{Path, PathBuf};

use clap::Args;

use super::Globals;
use super::exit::{Exit, Failure, Outcome};
use crate::lane::trace::Trace;
use crate::lane::{LANES, Lane, Thresholds};
use crate::perceive;

mod models;

pub use compare::{Comparison, Delta, Erosion, Flip, FlipKind};
pub use models::ModelRun;
pub use report::{Floors, LaneReport, Report, Scored};
pub use twins::{Broken, Moved, Tally, Twins};

/// The set that is measured where none is named.
pub const DEFAULT_SET: &str = "eval/gate.jsonl";
/// Largest set that is read, in octets.
const MAX_SET: u64 = 256 * 1024 * 1024;

/// What decides the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Scorer {
    /// The offline scorer.
    #[default]
    Offline,
    /// The configured chain of models.
    Chain,
    /// One configured model.
    Model(String),
}

impl Scorer {
    fn name(&self) -> &str {
        match self {
            Scorer::Offline => crate::lane::trace::OFFLINE,
            Scorer::Chain => "chain",
            Scorer::Model(name) => name,
        }
    }
}

impl std::str::FromStr for Scorer {
    type Err = std::convert::Infallible;

    fn from_str(name: &str) -> Result<Scorer, Self::Err> {
        Ok(match name {
            crate::lane::trace::OFFLINE => Scorer::Offline,
            "chain" => Scorer::Chain,
            name => Scorer::Model(name.to_owned()),
        })
    }
}

/// Arguments of the verb.
#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// The labelled set, one JSON object a line
    #[arg(long, value_name = "FILE.jsonl", default_value = DEFAULT_SET)]
    set: PathBuf,
    /// What decides the numbers: offline, chain (the configured models), or
    /// the name of one configured model
    #[arg(long, value_name = "offline|chain|MODEL", default_value = crate::lane::trace::OFFLINE)]
    scorer: Scorer,
    /// Least and most values that the report must keep (exit code 65 otherwise)
    #[arg(long, value_name = "FILE.toml")]
    floors: Option<PathBuf>,
    /// Compare with an earlier --json report: changed lanes and eroding
    /// margins. Changes alone don't move the exit code; the floors
    /// flips_broken, flips and margins_eroded do
    #[arg(long, value_name = "OLD.json", conflicts_with = "delta")]
    compare: Option<PathBuf>,
    #[command(flatten)]
    delta: delta::DeltaArgs,
}

/// Runs the verb; needs a configuration for models only.
pub(super) fn command(globals: &Globals, args: &EvalArgs) -> Outcome {
    if args.delta.delta {
        return delta::command(globals, &args.set, &args.delta, args.floors.as_deref());
    }
    let mut report = match &args.scorer {
        Scorer::Offline => run(&args.set, globals.json, args.floors.as_deref()).map_err(failure)?,
        Scorer::Chain | Scorer::Model(_) => models::measure(globals, args)?,
    };
    if let Some(old) = &args.compare {
        let comparison = compare::compare(old, &report).map_err(failure)?;
        report.compared(comparison);
    }
    super::exit::say(&report.output().to_string());
    if report.passed() {
        return Ok(());
    }
    let (name, why) = match report.no_measurement() {
        Some(why) => ("fell_back", why),
        None => ("floors", report.broken_floors.join("; ")),
    };
    // The report says so too; scripts read the exit code.
    Err(Failure { in_output: true, ..Failure::new(Exit::Data, name, why) })
}

pub(super) fn failure(e: EvalError) -> Failure {
    let (exit, name) = match &e {
        EvalError::File { .. } => (Exit::NoInput, "no_set"),
        EvalError::Item { .. } => (Exit::Data, "item"),
        EvalError::Empty(_) => (Exit::Data, "empty"),
        EvalError::Floors { .. } => (Exit::Data, "floors_file"),
        EvalError::Old { .. } => (Exit::Data, "old_report"),
        EvalError::History { .. } => (Exit::Data, "history"),
        EvalError::Unmatched(_) => (Exit::Data, "unmatched"),
    };
    Failure::new(exit, name, e)
}

/// Why a set could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// A line is no item.
    #[error("{}:{line}: {reason}", path.display())]
    Item {
        /// The set.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The set holds nothing.
    #[error("{} holds no items", .0.display())]
    Empty(PathBuf),
    /// The earlier report is none.
    #[error("{}: no report of `tollgate --json eval`: {reason}", path.display())]
    Old {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The history is none.
    #[error("{}: {reason}", path.display())]
    History {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Honest and hostile mail could not be matched as the delta needs it.
    #[error("{0}")]
    Unmatched(String),
    /// The floors could not be read.
    #[error("{}: {reason}", path.display())]
    Floors {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Measures a set with the offline scorer. The report says whether the floors
/// hold ([`Report::passed`]) and prints itself as text or, with `json`, as JSON
/// ([`Report::output`]).
pub fn run(set: &Path, json: bool, floors: Option<&Path>) -> Result<Report, EvalError> {
    let floors = match floors {
        Some(path) => Some(read_floors(path)?),
        None => None,
    };
    let items = items(set)?;
    let mut scored = Vec::new();
    for (line, item) in &items {
        scored.push(score(item).map_err(|reason| EvalError::Item { path: set.to_owned(), line: *line, reason })?);
    }
    let all: Vec<&item::Item> = items.iter().map(|(_, item)| item).collect();
    let twins = twins::judge(&all, &scored).map_err(|(n, reason)| EvalError::Item {
        path: set.to_owned(),
        line: items[n].0,
        reason,
    })?;
    let mut report = Report::new(set.display().to_string(), scored, floors, json);
    report.paired(twins);
    Ok(report)
}

/// The items of a set, each with its line.
pub(super) fn items(set: &Path) -> Result<Vec<(usize, item::Item)>, EvalError> {
    let mut all = Vec::new();
    for (n, line) in read(set)?.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let fault = |reason: String| EvalError::Item { path: set.to_owned(), line: n + 1, reason };
        all.push((n + 1, item::Item::parse(line).map_err(fault)?));
    }
    if all.is_empty() {
        return Err(EvalError::Empty(set.to_owned()));
    }
    Ok(all)
}

fn read(path: &Path) -> Result<String, EvalError> {
    let fault = |source| EvalError::File { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(fault)?.len();
    if size > MAX_SET {
        return Err(fault(std::io::Error::other(format!("larger than {MAX_SET} octets"))));
    }
    std::fs::read_to_string(path).map_err(fault)
}

fn read_floors(path: &Path) -> Result<Floors, EvalError> {
    toml::from_str(&read(path)?).map_err(|e| EvalError::Floors { path: path.to_owned(), reason: e.to_string() })
}

fn score(item: &item::Item) -> Result<Scored, String> {
    let (_, trace, micros) = perceived(item)?;
    Ok(Scored::new(item, &trace, micros))
}

/// What the offline scorer makes of an item, and the microseconds that took.
fn perceived(item: &item::Item) -> Result<(item::Mail, Trace, u64), String> {
    let mail = item.mail()?;
    let input = perceive::PerceiveInput {
        octets: &mail.octets,
        size: mail.octets.len() as u64,
        account: &mail.account,
        now: mail.now,
        internaldate: mail.now,
        context: mail.context.clone(),
    };
    let started = std::time::Instant::now();
    let trace = perceive::perceive(&input, &Thresholds::default(), item.id.clone());
    let micros = started.elapsed().as_micros() as u64;
    Ok((mail, trace, micros))
}

/// `any`: scored only, no truth.
pub(super) fn truth(name: &str) -> Result<Option<Lane>, String> {
    if name == "any" {
        return Ok(None);
    }
    let names = || LANES.map(Lane::name).join(", ");
    Lane::from_name(name).map(Some).ok_or_else(|| format!("no lane is called {name:?}; lanes are {}, or any", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(DEFAULT_SET)
    }

    #[test]
    fn the_shipped_sets_keep_their_floors() {
        for (set_name, floors) in [
            ("seed.jsonl", "seed-floors.toml"),
            ("gate.jsonl", "floors.toml"),
            ("stream.jsonl", "stream-floors.toml"),
            ("metamorphic.jsonl", "metamorphic-floors.toml"),
        ] {
            let (set, floors) = (set().with_file_name(set_name), set().with_file_name(floors));
            let report = run(&set, false, Some(&floors)).unwrap();
            assert!(report.passed(), "{}", report.output());
        }
    }

    #[test]
    fn no_injected_payload_gains_a_lane() {
        let report = run(&set().with_file_name("adversarial.jsonl"), true, None).unwrap();
        let v: serde_json::Value = serde_json::from_str(&report.output()).unwrap();
        let moved = v["twins"]["moved"].as_array().unwrap();
        let injected: Vec<&str> =
            moved.iter().filter(|m| m["stratum"] == "injection").filter_map(|m| m["id"].as_str()).collect();
        assert_eq!(injected, [""; 0]);
    }

    #[test]
    fn json_names_what_others_read() {
        let report = run(&set(), true, None).unwrap();
        let v: serde_json::Value = serde_json::from_str(&report.output()).unwrap();
        for key in ["accuracy", "urgent_recall", "push_precision", "urgent_hidden", "wanted_hidden", "noise_pushed"] {
            assert!(v[key].is_number(), "{key}");
        }
        for key in ["id", "lane", "got", "branch", "features", "signals"] {
            assert!(!v["items"][0][key].is_null(), "{key}");
        }
    }

    #[test]
    fn a_broken_item_is_named_by_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("set.jsonl");
        std::fs::write(&path, "\n{\"id\":\"a\",\"lane\":\"loud\",\"raw\":\"x\"}\n").unwrap();
        let e = run(&path, false, None).unwrap_err().to_string();
        assert!(e.contains(":2:") && e.contains("loud"), "{e}");
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(run(&path, false, None), Err(EvalError::Empty(_))));
    }

    #[test]
    fn floors_that_do_not_hold_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let floors = dir.path().join("floors.toml");
        std::fs::write(&floors, "accuracy = 1.01\nurgent_hidden = 0\n").unwrap();
        let report = run(&set(), false, Some(&floors)).unwrap();
        assert!(!report.passed());
        assert!(report.output().contains("accuracy"));
        std::fs::write(&floors, "acuracy = 0.9\n").unwrap();
        assert!(matches!(run(&set(), false, Some(&floors)), Err(EvalError::Floors { .. })));
    }
}
