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
    /// Take a correction back: lane, mailbox and stamp become what they were
    Undo {
        /// The correction's id, as `corrections list` shows it
        id: String,
        /// The account's address; needed where several are configured
        #[arg(long, value_name = "ADDRESS")]
        account: Option<String>,
    },
}

pub(super) fn run(globals: &Globals, command: CorrectionsCommand) -> Outcome {
    if let CorrectionsCommand::Undo { id, account } = command {
        let config = globals.load()?;
        let account = super::account_or_only(&config, account)?;
        let answer = gate::ask(config, Request::CorrectionsUndo { account, id })?;
        super::print(globals, &answer, |v| format!("correction {} is taken back", show::text(&v["undone"])));
        return Ok(());
    }
    let answer = gate::ask(globals.load()?, Request::CorrectionsList)?;
    super::print(globals, &answer, |v| {
        let list = v["corrections"].as_array().map(Vec::as_slice).unwrap_or_default();
        if list.is_empty() {
            return "nobody corrected anything".to_owned();
        }
        let row = |row: &Value| {
            let (account, c) = (show::text(&row["account"]), &row["correction"]);
            let time = c["time"].as_i64().map_or_else(|| "-".to_owned(), show::time);
            vec![
                show::text(&row["id"]),
                time,
                account,
                show::text(&c["from"]),
                show::text(&c["to"]),
                match &c["address"] {
                    Value::Null => show::text(&c["message_id"]),
                    address => format!("pin of {}", show::text(address)),
                },
            ]
        };
        let rows: Vec<Vec<String>> = list.iter().map(row).collect();
        show::table(&["ID", "TIME", "ACCOUNT", "FROM", "TO", "WHAT"], &rows)
    });
    Ok(())
}
