//! `tollgate train`: the offline scorer's weights from labelled mail.
//!
//! Promises: the same set gives the same octets; nothing is written unless all
//! of it was read. Doesn't know: the set that the scorer is measured on.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::eval::{self, EvalError, item};
use super::exit::{Exit, Failure, Outcome};
use super::{Globals, print};
use crate::lane::{LANES, Lane};
use crate::perceive::{self, PerceiveInput, trained::Weights, trained::learn};

/// The set that is learned from where none is named.
const DEFAULT_SET: &str = "eval/train.jsonl";

/// Arguments of the verb.
#[derive(Debug, Args)]
pub(super) struct TrainArgs {
    /// The labelled set, one JSON object a line
    #[arg(long, value_name = "FILE.jsonl", default_value = DEFAULT_SET)]
    set: PathBuf,
    /// Where the weights go
    #[arg(long, value_name = "FILE", required_unless_present = "check")]
    out: Option<PathBuf>,
    /// Compare with the weights in this program instead of writing (exit code
    /// 65 where they differ)
    #[arg(long, conflicts_with = "out")]
    check: bool,
}

pub(super) fn run(globals: &Globals, args: &TrainArgs) -> Outcome {
    let items = eval::items(&args.set).map_err(eval::failure)?;
    let mut examples = Vec::with_capacity(items.len());
    let mut batches: Vec<&str> = Vec::new();
    let mut batch_of = Vec::with_capacity(items.len());
    for (line, item) in &items {
        let fault = |reason: String| eval::failure(EvalError::Item { path: args.set.clone(), line: *line, reason });
        let Some(lane) = eval::truth(&item.lane).map_err(fault)? else { continue };
        examples.push(example(item, lane).map_err(fault)?);
        // An id is its batch, a hyphen, and a number.
        let batch = item.id.rsplit_once('-').map_or(item.id.as_str(), |(batch, _)| batch);
        let n = batches.iter().position(|b| *b == batch).unwrap_or_else(|| {
            batches.push(batch);
            batches.len() - 1
        });
        batch_of.push(n);
    }
    let learned = learn::learn(&examples, |n| batch_of[n]);
    let octets = learned.weights.to_bytes();
    let same = Weights::shipped_bytes() == octets.as_slice();
    if let Some(out) = &args.out {
        let fault = |e| Failure::new(Exit::CantCreate, "write", format!("cannot write {}: {e}", out.display()));
        std::fs::write(out, &octets).map_err(fault)?;
    }
    let wanted: Vec<Lane> = examples.iter().map(|e| e.lane).collect();
    let unseen: Vec<serde_json::Value> = items
        .iter()
        .zip(&learned.unseen)
        .map(|((_, i), odds)| json!({"id": i.id, "lane": i.lane, "odds": odds}))
        .collect();
    let answer = json!({
        "examples": examples.len(),
        "octets": octets.len(),
        "same_as_built_in": same,
        "unseen_share": share(&wanted, &learned.unseen),
        "unseen": unseen,
    });
    print(globals, &answer, |v| {
        format!(
            "{} examples; of those kept out in turn, {:.3} got their lane the most probable; {}",
            v["examples"],
            v["unseen_share"].as_f64().unwrap_or_default(),
            if same { "the same weights as in this program" } else { "other weights than in this program" }
        )
    });
    if args.check && !same {
        return Err(Failure::new(Exit::Data, "weights", "this set doesn't make the weights in this program"));
    }
    Ok(())
}

fn example(item: &item::Item, lane: Lane) -> Result<learn::Example, String> {
    let mail = item.mail()?;
    let input = PerceiveInput {
        octets: &mail.octets,
        size: mail.octets.len() as u64,
        account: &mail.account,
        now: mail.now,
        internaldate: mail.now,
        context: mail.context,
    };
    Ok(learn::Example { evidence: perceive::evidence(&input), lane })
}

/// The share of examples whose own lane was the most probable.
fn share(wanted: &[Lane], odds: &[[f64; 5]]) -> f64 {
    let best = |o: &[f64; 5]| LANES[(0..5).max_by(|a, b| o[*a].total_cmp(&o[*b])).unwrap_or(0)];
    wanted.iter().zip(odds).filter(|(w, o)| best(o) == **w).count() as f64 / wanted.len().max(1) as f64
}
