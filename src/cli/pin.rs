//! `tollgate pin`: the PIN that every approval carries.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::exit::Outcome;
use super::{Globals, gate, secrets};
use crate::gateway::control::{Pin, Request};

/// Verbs of the PIN.
#[derive(Debug, Subcommand)]
pub(super) enum PinCommand {
    /// Set the PIN of an account's approver; it is asked twice. An account
    /// that stores no password (auth = "login") has nothing to approve
    Set(SetArgs),
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

pub(super) fn run(globals: &Globals, command: PinCommand) -> Outcome {
    let PinCommand::Set(args) = command;
    let config = globals.load()?;
    let account = super::account_or_only(&config, args.account)?;
    let pin = secrets::pin(args.pin_file.as_deref())?;
    let answer = gate::ask(config, Request::PinSet { account, pin: Pin(pin.to_string()) })?;
    super::print(globals, &answer, |v| format!("the PIN of {} is set", super::show::text(&v["account"])));
    Ok(())
}
