//! `tollgate ledger`: the numbered record of what was decided.

use clap::Subcommand;
use serde_json::Value;

use super::exit::Outcome;
use super::{Globals, gate, show};
use crate::gateway::control::Request;

/// Entries asked for at a time.
const PAGE: usize = 500;

/// Verbs of the ledger.
#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// Check every entry and the chain between them (exit code 17 when broken)
    ///
    /// Without --head, entries that were cut off at the end can't be noticed:
    /// keep what `ledger head` prints somewhere else, and give it here.
    Verify {
        /// A head that was kept elsewhere
        #[arg(long, value_name = "N:HASH")]
        head: Option<String>,
    },
    /// Print the last entry's number and hash, to keep elsewhere
    Head,
    /// Print the entries, one JSON object a line
    List {
        /// From this number on
        #[arg(long, default_value_t = 1)]
        from: u64,
    },
}

pub(super) fn run(globals: &Globals, command: LedgerCommand) -> Outcome {
    let config = globals.load()?;
    match command {
        LedgerCommand::Verify { head } => {
            let answer = gate::ask(config, Request::LedgerVerify { head })?;
            super::print(globals, &answer, |v| {
                let head = v["head"].as_str().map_or_else(String::new, |h| format!("\nhead {h}"));
                format!("{}{head}", show::text(&v["text"]))
            });
        }
        LedgerCommand::Head => {
            let answer = gate::ask(config, Request::LedgerHead)?;
            super::print(globals, &answer, |v| match v["head"].as_str() {
                Some(head) => head.to_owned(),
                None => "the ledger is empty".to_owned(),
            });
        }
        LedgerCommand::List { mut from } => loop {
            let answer = gate::ask(config.clone(), Request::LedgerList { from, limit: PAGE })?;
            let entries = answer["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
            for entry in entries {
                super::exit::say(&entry.to_string());
            }
            let Some(last) = entries.last().and_then(number) else { break };
            from = last.saturating_add(1);
        },
    }
    Ok(())
}

/// Integers of entries are texts (they are hashed as such).
fn number(entry: &Value) -> Option<u64> {
    entry["number"].as_str()?.parse().ok()
}
