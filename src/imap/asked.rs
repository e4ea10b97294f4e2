//! What clients ask, in the log at level debug: the name of each command and
//! the kind of mailbox that it concerns.
//!
//! Promises: no argument of a command is ever written, so neither a mailbox's
//! name nor a password. Doesn't know: whether the command succeeded.

use imap_codec::imap_types::command::CommandBody;

use crate::downstream::Connection;

use super::select::name_of;
use super::session::{Selection, Session};

/// The target of these lines, for a log filter.
pub const TARGET: &str = "tollgate::imap::asked";

impl Session {
    /// Writes a command's name to the log.
    pub(super) fn note_asked(&self, body: &CommandBody<'_>) {
        if !tracing::enabled!(target: TARGET, tracing::Level::DEBUG) {
            return;
        }
        let named = match body {
            CommandBody::Select { mailbox, .. }
            | CommandBody::Examine { mailbox, .. }
            | CommandBody::Status { mailbox, .. }
            | CommandBody::Append { mailbox, .. }
            | CommandBody::Create { mailbox }
            | CommandBody::Delete { mailbox }
            | CommandBody::Rename { from: mailbox, .. }
            | CommandBody::Subscribe { mailbox }
            | CommandBody::Unsubscribe { mailbox } => Some(name_of(mailbox)),
            _ => None,
        };
        let kind = match (named, &self.signed, &self.selection) {
            _ if concerns_none(body) => "none",
            (_, None, _) | (None, _, Selection::Nothing) => "none",
            (Some(name), Some(signed), _) => {
                let state = signed.mirror.state();
                if state.lanes.as_ref().is_some_and(|l| l.owns(&name) || l.find(&name).is_some()) {
                    "view"
                } else {
                    "passed"
                }
            }
            (None, _, Selection::View(_)) => "view",
            (None, _, Selection::Pass(_)) => "passed",
        };
        let uid = if is_by_uid(body) { "UID " } else { "" };
        let layer = if self.out.get_ref().is_tls() { "tls" } else { "plain" };
        tracing::debug!(target: TARGET, "asked over {layer} {uid}{} {kind}", body.name());
    }
}

/// Whether a command is about the session or the account.
fn concerns_none(body: &CommandBody<'_>) -> bool {
    matches!(
        body,
        CommandBody::Capability
            | CommandBody::Id { .. }
            | CommandBody::StartTLS
            | CommandBody::Login { .. }
            | CommandBody::Authenticate { .. }
            | CommandBody::Logout
            | CommandBody::Namespace
            | CommandBody::List { .. }
            | CommandBody::Lsub { .. }
    )
}

/// Whether a command names messages by UID.
fn is_by_uid(body: &CommandBody<'_>) -> bool {
    match body {
        CommandBody::Fetch { uid, .. }
        | CommandBody::Search { uid, .. }
        | CommandBody::Store { uid, .. }
        | CommandBody::Copy { uid, .. }
        | CommandBody::Move { uid, .. } => *uid,
        CommandBody::ExpungeUid { .. } => true,
        _ => false,
    }
}
