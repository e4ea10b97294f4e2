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

/// Where each message goes, newest last.
fn lines(answer: &Value) -> String {
    let messages = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    if messages.is_empty() {
        return "nothing to do: every one of these messages has its lane".to_owned();
    }
    let row = |m: &Value| ["uid", "lane", "mailbox", "subject"].map(|name| show::text(&m[name])).to_vec();
    let rows: Vec<Vec<String>> = messages.iter().map(row).collect();
    show::table(&["UID", "LANE", "MAILBOX", "SUBJECT"], &rows)
}
