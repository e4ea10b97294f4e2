//! `tollgate identity`: the key that receipts are signed with.

use clap::Subcommand;
use serde_json::Value;

use super::exit::Outcome;
use super::{Globals, gate};
use crate::gateway::control::Request;
use crate::gateway::core::PUBLIC_KEY_FILE;

/// Verbs of the signing key.
#[derive(Debug, Subcommand)]
pub(super) enum IdentityCommand {
    /// Sign with a new key from now on
    ///
    /// Receipts of the keys before stay verifiable: `identity.pub` in the state
    /// folder holds every public key, the new one first. Give it out again.
    /// The change is an entry of the ledger. The secret of the key before is
    /// overwritten; receipts that it signed while somebody else had it are not
    /// told apart from ours.
    Rotate,
}

pub(super) fn run(globals: &Globals, command: IdentityCommand) -> Outcome {
    let config = globals.load()?;
    match command {
        IdentityCommand::Rotate => {
            let file = config.state_dir.join(PUBLIC_KEY_FILE);
            let answer = gate::ask(config, Request::IdentityRotate)?;
            super::print(globals, &answer, |v| {
                let keys = v["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
                let new = keys.first().and_then(Value::as_str).unwrap_or("-");
                format!("new key:   {new}\nall keys:  {} in {}", keys.len(), file.display())
            });
        }
    }
    Ok(())
}
