//! The closed table of what an agent's key, and the operator's console, may do
//! over IMAP.
//!
//! Promises: what isn't in the table is refused; no row lets an agent flag,
//! file, delete or rename. Doesn't know: how a permitted command is done.

use imap_codec::imap_types::command::CommandBody;
use imap_codec::imap_types::flag::Flag;

use crate::account::Verb;

use super::session::{Fail, Session};

/// The verb that a command needs. `None`: not in the table.
pub(super) fn verb(body: &CommandBody<'_>) -> Option<Verb> {
    match body {
        // An agent's SELECT is opened read-only and its CLOSE expunges nothing.
        CommandBody::Noop
        | CommandBody::Check
        | CommandBody::Namespace
        | CommandBody::Select { .. }
        | CommandBody::Examine { .. }
        | CommandBody::Unselect
        | CommandBody::Close
        | CommandBody::List { .. }
        | CommandBody::Lsub { .. }
        | CommandBody::Status { .. }
        | CommandBody::Idle
        | CommandBody::Fetch { .. }
        | CommandBody::Search { .. } => Some(Verb::Read),
        // To the mailbox for drafts only, which `append` checks.
        CommandBody::Append { .. } => Some(Verb::Draft),
        _ => None,
    }
}

/// Whether flags of an APPEND are harmless for an agent.
pub(super) fn draft_flags(flags: &[Flag<'_>]) -> bool {
    flags.iter().all(|f| matches!(f, Flag::Draft | Flag::Seen))
}

impl Session {
    /// Refuses what the key has no grant for.
    pub(super) fn permit(&self, body: &CommandBody<'_>) -> Result<(), Fail> {
        let signed = self.signed()?;
        if signed.is_console() && matches!(body, CommandBody::Select { .. } | CommandBody::Close) {
            return Err(Fail::No("NOPERM", "the console opens mailboxes by EXAMINE".into()));
        }
        if !signed.is_agent() && !signed.is_console() {
            return Ok(());
        }
        match verb(body) {
            Some(verb) if signed.principal.grants.allows(verb) => Ok(()),
            Some(verb) => Err(Fail::No("NOPERM", format!("this key has no grant to {}", verb.name()))),
            None if signed.is_console() => Err(Fail::No("NOPERM", "the console only reads".into())),
            None => Err(Fail::No("NOPERM", "an agent's key may not do this".into())),
        }
    }
}
