//! `tollgate key`: app passwords that only this gateway understands.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, gate, show};
use crate::account::grants::VERBS;
use crate::account::{Change, GrantError, Role};
use crate::gateway::control::Request;

/// Verbs of keys.
#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key; it is printed once and stored only as a hash. An account
    /// that stores no password (auth = "login") takes none
    Add(AddArgs),
    /// List the keys, revoked ones too
    List(ListArgs),
    /// Show what a key may do
    Show {
        /// The key's id, as `key list` shows it
        id: String,
    },
    /// Change what an agent's key may do; open sessions see it at once.
    ///
    /// VERB is read, flag, file, draft, send, forward or delete; VALUE is
    /// allow, ask (a person approves first), off, or default. With a mailbox
    /// it holds there only; a MAILBOX that ends in * stands for all that begin
    /// so. send, forward and delete are never `allow`, and `file` always names
    /// its mailbox:
    ///
    ///   tollgate key grant ID flag=allow file@Archive=allow
    ///   tollgate key grant ID 'read@Private/*=off' delete=ask
    #[command(verbatim_doc_comment)]
    Grant {
        /// The key's id, as `key list` shows it
        id: String,
        /// What to change; all of it or nothing
        #[arg(required = true, value_name = "VERB[@MAILBOX]=VALUE", value_parser = change)]
        changes: Vec<String>,
    },
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
        KeyCommand::Show { id } => {
            let answer = gate::ask(config, Request::KeyShow { id })?;
            super::print(globals, &answer, shown);
        }
        KeyCommand::Grant { id, changes } => {
            let answer = gate::ask(config, Request::KeyGrant { id, changes })?;
            super::print(globals, &answer, shown);
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

/// A change that can be read, as it was written.
fn change(text: &str) -> Result<String, GrantError> {
    text.parse::<Change>().map(|change| change.to_string())
}

fn shown(answer: &Value) -> String {
    let key = &answer["key"];
    let head = format!(
        "{} ({}, {} key of {}){}",
        show::text(&key["id"]),
        show::text(&key["name"]),
        show::text(&key["role"]),
        show::text(&key["account"]),
        if key["revoked_at"].is_null() { "" } else { ", revoked" },
    );
    let row = |name: String, grants: &Value| {
        let cells = VERBS.iter().map(|verb| grants.get(verb.name()).map_or_else(|| "-".to_owned(), show::text));
        std::iter::once(name).chain(cells).collect::<Vec<String>>()
    };
    let mailboxes = answer["mailboxes"].as_object().into_iter().flatten();
    let mut rows: Vec<Vec<String>> = mailboxes.map(|(name, grants)| row(show::visible(name), grants)).collect();
    rows.push(row("all others".to_owned(), &answer["everywhere"]));
    let columns: Vec<String> =
        std::iter::once("MAILBOX".to_owned()).chain(VERBS.iter().map(|v| v.name().to_uppercase())).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut out = format!("{head}\n\n{}", show::table(&columns, &rows));
    if key["role"] == "agent" {
        out.push_str("\n\nask: held until a person approves it on the page; off: refused.\n");
        out.push_str("Never, whatever is granted: filing into INBOX, Lanes, Tollgate, Drafts, Sent, Templates,\n");
        out.push_str("Outbox or Scheduled; Junk is at most ask; renaming; sending or deleting unasked.");
    }
    out
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
