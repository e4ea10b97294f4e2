//! `tollgate replay`: what would move under another rule.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, gate, show};
use crate::gateway::control::Request;

/// Moves that the text lists; `--json` lists more.
const LISTED: usize = 50;

/// Under what.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// A threshold that differs from the configured one, named as under [rule]
    /// in gateway.toml; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, f64)>,
    /// Thresholds from a TOML file: its [rule] table, or names by themselves.
    /// --set wins
    #[arg(long, value_name = "FILE.toml")]
    rule: Option<PathBuf>,
    /// Only this account's decisions
    #[arg(long, value_name = "ADDRESS")]
    account: Option<String>,
}

fn setting(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("it is NAME=VALUE, such as push_urgency=0.8")?;
    let value = value.trim().parse::<f64>().map_err(|e| format!("{value:?}: {e}"))?;
    Ok((name.trim().to_owned(), value))
}

pub(super) fn run(globals: &Globals, args: ReplayArgs) -> Outcome {
    let mut thresholds = match &args.rule {
        Some(path) => file(path)?,
        None => BTreeMap::new(),
    };
    thresholds.extend(args.set);
    let answer = gate::ask(globals.load()?, Request::Replay { account: args.account, thresholds })?;
    super::print(globals, &answer, lines);
    Ok(())
}

fn file(path: &Path) -> Result<BTreeMap<String, f64>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::new(Exit::NoInput, "no_rule", format!("cannot read {}: {e}", path.display())))?;
    let wrong = |e: String| Failure::new(Exit::Data, "rule_file", format!("{}: {e}", path.display()));
    let whole: toml::Table = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    let table = match whole.get("rule").and_then(toml::Value::as_table) {
        Some(rule) => rule.clone(),
        None => whole,
    };
    let number = |(name, value): (String, toml::Value)| match value {
        toml::Value::Float(f) => Ok((name, f)),
        toml::Value::Integer(0) => Ok((name, 0.0)),
        toml::Value::Integer(1) => Ok((name, 1.0)),
        other => Err(wrong(format!("{name} = {other} is no number between 0 and 1"))),
    };
    table.into_iter().map(number).collect()
}

fn lines(answer: &Value) -> String {
    let n = |name: &str| answer[name].as_u64().unwrap_or(0);
    let mut out = format!(
        "{} of {} decisions would move under rule {}",
        n("moved"),
        n("traces"),
        show::text(&answer["rule_version"])
    );
    let moves = answer["moves"].as_object().cloned().unwrap_or_default();
    for (from, to) in &moves {
        for (to, count) in to.as_object().into_iter().flatten() {
            out += &format!("\n  {from} to {to}: {count}");
        }
    }
    let list = answer["list"].as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() {
        return out;
    }
    let row = |m: &Value| {
        let time = m["time"].as_i64().map_or_else(|| "-".to_owned(), show::time);
        let mut row = vec![time];
        row.extend(["old", "new", "branch", "guards", "from", "decision"].map(|name| show::text(&m[name])));
        row
    };
    let rows: Vec<Vec<String>> = list.iter().take(LISTED).map(row).collect();
    out += "\n\n";
    out += &show::table(&["TIME", "WAS", "WOULD BE", "ROW", "GUARDS", "FROM", "DECISION"], &rows);
    match n("moved").saturating_sub(rows.len() as u64) {
        0 => out,
        more => format!("{out}\nand {more} more (--json lists up to {})", crate::gateway::replay::MAX_MOVES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_come_from_a_rule_table_or_by_themselves() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.toml");
        for text in ["[rule]\npush_urgency = 0.8\n", "push_urgency = 0.8\n"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(file(&path).unwrap(), BTreeMap::from([("push_urgency".to_owned(), 0.8)]));
        }
        for text in ["push_urgency = \"high\"\n", "push_urgency = 7\n", "= 1"] {
            std::fs::write(&path, text).unwrap();
            assert!(file(&path).is_err(), "{text}");
        }
        assert!(setting("push_urgency").is_err() && setting("a=b").is_err());
    }
}
