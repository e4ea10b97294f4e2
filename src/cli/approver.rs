//! `tollgate approver`: whose passkeys approve. Registering one takes the
//! page and an approver's proof, or a code that is made here.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, gate, show};
use crate::gateway::control::Request;

/// Verbs of approvers.
#[derive(Debug, Subcommand)]
pub(super) enum ApproverCommand {
    /// Make a code that registers one passkey: at /enrol of the pages, once,
    /// within ten minutes
    Code(AccountArg),
    /// List the passkeys that may approve
    List(AccountArg),
    /// Print public keys for `receipt verify --approver-key`, one a line
    Export {
        #[command(flatten)]
        account: AccountArg,
        /// Only this passkey (its id as `approver list` shows it)
        #[arg(long, value_name = "ID")]
        passkey: Option<String>,
    },
    /// Remove a passkey; what waits must then be opened anew
    Remove {
        /// Its id, as `approver list` shows it
        passkey: String,
        #[command(flatten)]
        account: AccountArg,
    },
}

/// Whose.
#[derive(Debug, Args)]
pub(super) struct AccountArg {
    /// The account's address; needed where several are configured
    #[arg(long, value_name = "ADDRESS")]
    account: Option<String>,
}

pub(super) fn run(globals: &Globals, command: ApproverCommand) -> Outcome {
    let config = globals.load()?;
    match command {
        ApproverCommand::Code(arg) => {
            let account = super::account_or_only(&config, arg.account)?;
            let url = format!("{}/enrol", config.web_url);
            let answer = gate::ask(config, Request::ApproverCode { account })?;
            super::print(globals, &answer, |v| {
                format!(
                    "{}\n\nIt registers one passkey for {} at {url}, within {} minutes.",
                    show::text(&v["code"]),
                    show::text(&v["account"]),
                    v["seconds"].as_i64().unwrap_or_default() / 60
                )
            });
        }
        ApproverCommand::List(arg) => {
            let answer = gate::ask(config, Request::ApproverList { account: arg.account })?;
            super::print(globals, &answer, listed);
        }
        ApproverCommand::Export { account, passkey } => {
            let answer = gate::ask(config, Request::ApproverList { account: account.account })?;
            let keys: Vec<&Value> = passkeys(&answer)
                .iter()
                .map(|p| &p["key"])
                .filter(|k| passkey.as_ref().is_none_or(|id| k["credential"] == id.as_str()))
                .collect();
            if keys.is_empty() {
                return Err(Failure::new(Exit::Data, "no_passkey", "no such passkey is registered"));
            }
            for key in keys {
                // JSON for people too: it is a file for another program.
                super::exit::say(&key.to_string());
            }
        }
        ApproverCommand::Remove { passkey, account } => {
            let account = super::account_or_only(&config, account.account)?;
            let answer = gate::ask(config, Request::ApproverRemove { account, credential: passkey })?;
            super::print(globals, &answer, |v| format!("removed: {}", show::text(&v["credential"])));
        }
    }
    Ok(())
}

fn passkeys(answer: &Value) -> &[Value] {
    answer["approvers"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn listed(answer: &Value) -> String {
    if passkeys(answer).is_empty() {
        return "no passkey is registered".to_owned();
    }
    let time = |v: &Value| v.as_i64().map_or_else(|| "-".to_owned(), show::time);
    let rows: Vec<Vec<String>> = passkeys(answer)
        .iter()
        .map(|p| {
            let key = &p["key"];
            vec![
                show::text(&key["credential"]),
                show::text(&key["account"]),
                show::text(&key["algorithm"]),
                time(&p["added"]),
                time(&p["used"]),
                show::text(&p["name"]),
            ]
        })
        .collect();
    show::table(&["ID", "ACCOUNT", "KIND", "ADDED", "USED", "NAME"], &rows)
}
