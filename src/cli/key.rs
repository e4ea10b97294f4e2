//! `tollgate key`: app passwords that only this gateway understands.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, gate, show};
use crate::account::Role;
use crate::gateway::control::Request;

/// Verbs of keys.
#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key; it is printed once and stored only as a hash. An account
    /// that stores no password (auth = "login") takes none
    Add(AddArgs),
    /// List the keys, revoked ones too
    List(ListArgs),
    /// Revoke a key at once: its sessions end, its held mail is withdrawn
    Revoke {
        /// The key's id, as `key list` shows it
        id: String,
    },
}

/// Whose key, and what it is called.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("role").required(true)))]
pub(super) struct AddArgs {
    /// For a person's mail client
    #[arg(long, group = "role", value_name = "NAME")]
    person: Option<String>,
    /// For an AI agent: it reads and drafts, and what it sends is held
    #[arg(long, group = "role", value_name = "NAME")]
    agent: Option<String>,
    /// The account's address; needed where several are configured
    #[arg(long, value_name = "ADDRESS")]
    account: Option<String>,
}

/// Which keys.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only this account's
    #[arg(long, value_name = "ADDRESS")]
    account: Option<String>,
}

pub(super) fn run(globals: &Globals, command: KeyCommand) -> Outcome {
    let config = globals.load()?;
    match command {
        KeyCommand::Add(args) => {
            let account = super::account_or_only(&config, args.account)?;
            let (role, name) = match (args.person, args.agent) {
                (Some(name), None) => (Role::Person, name),
                (None, Some(name)) => (Role::Agent, name),
                // The argument group asks for exactly one.
                _ => return Err(Failure::new(Exit::Usage, "usage", "either --person or --agent")),
            };
            let answer = gate::ask(config, Request::KeyAdd { account, role, name })?;
            super::print(globals, &answer, added);
        }
        KeyCommand::List(args) => {
            let answer = gate::ask(config, Request::KeyList { account: args.account })?;
            super::print(globals, &answer, listed);
        }
        KeyCommand::Revoke { id } => {
            let answer = gate::ask(config, Request::KeyRevoke { id })?;
            super::print(globals, &answer, |v| {
                format!(
                    "revoked: {} ({} of {})",
                    show::text(&v["id"]),
                    show::text(&v["name"]),
                    show::text(&v["account"])
                )
            });
        }
    }
    Ok(())
}

fn added(answer: &Value) -> String {
    format!(
        "{}\n\nThis is shown once. Sign in with user name {} and the line above as the password.",
        show::text(&answer["key"]),
        show::text(&answer["account"]),
    )
}

fn listed(answer: &Value) -> String {
    let rows: Vec<Vec<String>> = answer["keys"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|k| {
            let revoked = k["revoked_at"].as_i64().map_or_else(|| "-".to_owned(), show::time);
            let created = k["created"].as_i64().map_or_else(|| "-".to_owned(), show::time);
            vec![
                show::text(&k["id"]),
                show::text(&k["account"]),
                show::text(&k["role"]),
                show::text(&k["name"]),
                created,
                revoked,
            ]
        })
        .collect();
    show::table(&["ID", "ACCOUNT", "ROLE", "NAME", "MADE", "REVOKED"], &rows)
}
