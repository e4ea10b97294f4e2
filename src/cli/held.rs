//! `tollgate held`: what waits for approval. Approving is not here: it takes
//! the web page and the PIN.

use std::io::Write;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Subcommand;
use serde_json::Value;

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, gate, show};
use crate::config::private;
use crate::gateway::control::Request;

/// Holds of one account that are listed unless it is said how many.
const DEFAULT_LIMIT: usize = 1000;

/// Verbs of held mail.
#[derive(Debug, Subcommand)]
pub(super) enum HeldCommand {
    /// List what waits
    List {
        /// Only this account's
        #[arg(long, value_name = "ADDRESS")]
        account: Option<String>,
        /// Also what was sent, denied, expired or withdrawn
        #[arg(long)]
        all: bool,
        /// At most so many of each account, the newest; 0: all
        #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT)]
        limit: usize,
    },
    /// Show one held message's envelope and state
    Show {
        /// The id, as `held list` shows it
        id: String,
        /// Also write its exact octets to this new file (`-`: standard output,
        /// and nothing else)
        #[arg(long, value_name = "FILE")]
        message: Option<PathBuf>,
    },
    /// Hold one again whose outcome is unknown; it needs a new approval
    ///
    /// Nobody knows whether the provider took it: look into Sent, or ask a
    /// recipient, before you do this.
    Resend {
        /// The id
        id: String,
        /// I know that it may arrive a second time
        #[arg(long, required = true)]
        it_may_arrive_twice: bool,
    },
    /// Deny one; its submitter is told
    Deny {
        /// The id
        id: String,
        /// Why, for the submitter
        #[arg(long, value_name = "TEXT", default_value = "denied at the console")]
        reason: String,
    },
}

pub(super) fn run(globals: &Globals, command: HeldCommand) -> Outcome {
    let config = globals.load()?;
    match command {
        HeldCommand::List { account, all, limit } => {
            let limit = (limit > 0).then_some(limit);
            let answer = gate::ask(config, Request::HeldList { account, all, limit })?;
            super::print(globals, &answer, listed);
        }
        HeldCommand::Show { id, message: None } => {
            let answer = gate::ask(config, Request::HeldShow { id })?;
            super::print(globals, &answer, shown);
        }
        HeldCommand::Show { id, message: Some(path) } => {
            // Both come from one process, or from one opening of the state each.
            let answer = gate::ask(config.clone(), Request::HeldShow { id: id.clone() })?;
            let octets = gate::ask(config, Request::HeldMessage { id })?;
            save(&path, &octets)?;
            if path.as_os_str() != "-" {
                super::print(globals, &answer, shown);
            }
        }
        HeldCommand::Resend { id, it_may_arrive_twice: _ } => {
            let answer = gate::ask(config, Request::HeldResend { id })?;
            super::print(globals, &answer, |v| {
                format!("held again as {}; it waits for an approval of its own", show::text(&v["id"]))
            });
        }
        HeldCommand::Deny { id, reason } => {
            let answer = gate::ask(config, Request::HeldDeny { id, reason })?;
            super::print(globals, &answer, |v| format!("denied: {}", show::text(&v["id"])));
        }
    }
    Ok(())
}

fn save(path: &std::path::Path, answer: &Value) -> Outcome {
    let octets = answer["base64"].as_str().and_then(|t| STANDARD.decode(t).ok());
    let octets = octets.ok_or_else(|| Failure::new(Exit::Software, "answer", "the message can't be read back"))?;
    let written = match path.as_os_str() == "-" {
        true => std::io::stdout().write_all(&octets),
        false => private::create(path, &octets),
    };
    written.map_err(|e| Failure::new(Exit::CantCreate, "write", format!("{}: {e}", path.display())))
}

fn listed(answer: &Value) -> String {
    let holds = answer["holds"].as_array().map(Vec::as_slice).unwrap_or_default();
    if holds.is_empty() {
        return "nothing is held".to_owned();
    }
    let rows: Vec<Vec<String>> = holds
        .iter()
        .map(|h| {
            let at = h["held_at"].as_i64().map_or_else(|| "-".to_owned(), show::time);
            vec![show::text(&h["id"]), show::text(&h["state"]), at, show::text(&h["to"]), show::text(&h["subject"])]
        })
        .collect();
    let table = show::table(&["ID", "STATE", "HELD", "TO", "SUBJECT"], &rows);
    match answer["more"].as_u64().unwrap_or_default() {
        0 => table,
        more => format!("{table}\nand {more} older ones (--limit 0 lists all)"),
    }
}

fn shown(hold: &Value) -> String {
    let times = ["held_at", "expires_at", "changed_at", "next_attempt"];
    let Some(fields) = hold.as_object() else { return show::text(hold) };
    let order = [
        "id",
        "account",
        "state",
        "detail",
        "approver",
        "reason",
        "role",
        "key",
        "from",
        "to",
        "subject",
        "message_id",
        "length",
        "sha256",
        "held_at",
        "expires_at",
        "changed_at",
        "attempt",
        "next_attempt",
        "again",
    ];
    let lines = order.iter().filter_map(|name| {
        let value = fields.get(*name).filter(|v| !v.is_null())?;
        let text = match value.as_i64() {
            Some(second) if times.contains(name) => show::time(second),
            Some(_) | None => show::text(value),
        };
        Some(format!("{:<13}{text}", format!("{name}:")))
    });
    lines.collect::<Vec<_>>().join("\n")
}
