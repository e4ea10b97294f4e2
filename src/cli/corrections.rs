//! `tollgate corrections`: what people moved and pinned.

use clap::Subcommand;
use serde_json::Value;

use super::exit::Outcome;
use super::{Globals, gate, show};
use crate::gateway::control::Request;

/// Verbs of corrections.
#[derive(Debug, Subcommand)]
pub(super) enum CorrectionsCommand {
    /// List corrections and pins
    List,
}

pub(super) fn run(globals: &Globals, command: CorrectionsCommand) -> Outcome {
    let CorrectionsCommand::List = command;
    let answer = gate::ask(globals.load()?, Request::CorrectionsList)?;
    super::print(globals, &answer, |v| {
        let list = v["corrections"].as_array().map(Vec::as_slice).unwrap_or_default();
        if list.is_empty() {
            return "nobody corrected anything".to_owned();
        }
        let row = |c: &Value| {
            let (account, c) = (show::text(&c["account"]), &c["correction"]);
            let time = c["time"].as_i64().map_or_else(|| "-".to_owned(), show::time);
            vec![time, account, show::text(&c["from"]), show::text(&c["to"]), show::text(&c["message_id"])]
        };
        let rows: Vec<Vec<String>> = list.iter().map(row).collect();
        show::table(&["TIME", "ACCOUNT", "FROM", "TO", "MESSAGE-ID"], &rows)
    });
    Ok(())
}
