//! `tollgate backfill`: mail from before Tollgate into lanes.

use clap::Args;
use serde_json::Value;

use super::exit::Outcome;
use super::{Globals, gate, show};
use crate::gateway::control::Request;

/// What to look at.
#[derive(Debug, Args)]
pub(super) struct BackfillArgs {
    /// How many of the newest messages in INBOX
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    last: u32,
    /// Only print what would go where
    #[arg(long)]
    dry_run: bool,
    /// The account's address; needed where several are configured
    #[arg(long, value_name = "ADDRESS")]
    account: Option<String>,
}

pub(super) fn run(globals: &Globals, args: BackfillArgs) -> Outcome {
    let config = globals.load()?;
    let account = super::account_or_only(&config, args.account)?;
    let answer = gate::ask(config, Request::Backfill { account, last: args.last, dry_run: args.dry_run })?;
    super::print(globals, &answer, lines);
    Ok(())
}

/// A list of objects as a table of its first one's fields; other answers as
/// their fields, one a line.
fn lines(answer: &Value) -> String {
    let Some(messages) = answer["messages"].as_array() else {
        let fields = answer.as_object().into_iter().flatten();
        return fields.map(|(k, v)| format!("{k}: {}", show::text(v))).collect::<Vec<_>>().join("\n");
    };
    let Some(head) = messages.first().and_then(Value::as_object) else { return "no messages".to_owned() };
    let names: Vec<&str> = head.keys().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = messages.iter().map(|m| names.iter().map(|n| show::text(&m[*n])).collect()).collect();
    show::table(&names, &rows)
}
