//! `tollgate pin`: the PIN that every approval carries, and the senders whose
//! lane a person has decided.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::exit::{Failure, Outcome};
use super::{Globals, gate, secrets, show};
use crate::gateway::control::{Pin, Request};
use crate::lane::{LANES, Lane};

/// Verbs of the PIN and of pins.
#[derive(Debug, Subcommand)]
pub(super) enum PinCommand {
    /// Set the PIN of an account's approver; it is asked twice. An account
    /// that stores no password (auth = "login") has nothing to approve
    Set(SetArgs),
    /// Pin a sender: mail from this address goes to this lane from now on,
    /// unless authentication says that it isn't from there. `corrections`
    /// lists it and takes it back
    Sender {
        /// The sender's address
        address: String,
        /// push, meeting, queue, info or silent
        #[arg(value_parser = lane)]
        lane: Lane,
        /// The account's address; needed where several are configured
        #[arg(long, value_name = "ADDRESS")]
        account: Option<String>,
    },
    /// List the pinned senders
    List {
        /// Only this account's
        #[arg(long, value_name = "ADDRESS")]
        account: Option<String>,
    },
    /// Take a sender's pin away: the rule decides again
    Remove {
        /// The sender's address
        address: String,
        /// The account's address; needed where several are configured
        #[arg(long, value_name = "ADDRESS")]
        account: Option<String>,
    },
}

/// Whose PIN.
#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// The account's address; needed where several are configured
    #[arg(long, value_name = "ADDRESS")]
    account: Option<String>,
    /// Take the PIN from this file's first line (`-`: standard input) instead
    /// of asking on the terminal
    #[arg(long, value_name = "FILE")]
    pin_file: Option<PathBuf>,
}

fn lane(text: &str) -> Result<Lane, String> {
    Lane::from_name(text).ok_or_else(|| format!("lanes are {}", LANES.map(Lane::name).join(", ")))
}

pub(super) fn run(globals: &Globals, command: PinCommand) -> Outcome {
    match command {
        PinCommand::Set(args) => set(globals, args),
        PinCommand::Sender { address, lane, account } => {
            let config = globals.load()?;
            let account = super::account_or_only(&config, account)?;
            let answer = gate::ask(config, Request::PinSender { account, address, lane })?;
            super::print(globals, &answer, |v| {
                let already = if v["changed"] == Value::Bool(false) { " already" } else { "" };
                format!("mail from {} goes to {}{already}", show::text(&v["address"]), show::text(&v["lane"]))
            });
            Ok(())
        }
        PinCommand::List { account } => list(globals, account),
        PinCommand::Remove { address, account } => {
            let config = globals.load()?;
            let account = super::account_or_only(&config, account)?;
            let answer = gate::ask(config, Request::PinRemove { account, address })?;
            super::print(globals, &answer, |v| format!("{} is not pinned any more", show::text(&v["address"])));
            Ok(())
        }
    }
}

fn set(globals: &Globals, args: SetArgs) -> Result<(), Failure> {
    let config = globals.load()?;
    let account = super::account_or_only(&config, args.account)?;
    let pin = secrets::pin(args.pin_file.as_deref())?;
    let answer = gate::ask(config, Request::PinSet { account, pin: Pin(pin.to_string()) })?;
    super::print(globals, &answer, |v| format!("the PIN of {} is set", show::text(&v["account"])));
    Ok(())
}

fn list(globals: &Globals, account: Option<String>) -> Result<(), Failure> {
    let answer = gate::ask(globals.load()?, Request::PinList { account })?;
    super::print(globals, &answer, |v| {
        let list = v["pins"].as_array().map(Vec::as_slice).unwrap_or_default();
        if list.is_empty() {
            return "nobody is pinned".to_owned();
        }
        let rows: Vec<Vec<String>> =
            list.iter().map(|p| ["account", "address", "lane"].map(|name| show::text(&p[name])).to_vec()).collect();
        show::table(&["ACCOUNT", "ADDRESS", "LANE"], &rows)
    });
    Ok(())
}
