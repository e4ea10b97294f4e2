//! What an agent is told of the removals that it asked for.
//!
//! Promises: ASCII; says what was asked, as the agent asked for it, and how it
//! ended; nothing of what stands in the messages; an unknown outcome is never
//! called a failure. Doesn't know: where it is shown.

use super::reports::date;
use crate::floor::submission::State;
use crate::imap::local::ascii;
use crate::outbox::Hold;

/// Title and text of a state; both tell the whole of it.
fn said(state: State) -> (&'static str, &'static str) {
    match state {
        State::Held => ("Waits for approval", "This waits for a person. Nothing is removed before."),
        State::Approved | State::Sending => ("Approved", "A person approved this. It is about to be carried out."),
        State::Sent => ("Removed", "A person approved this, and it was carried out."),
        State::Failed => ("Not removed", "A person approved this, and it was not carried out. The reason says why."),
        State::Unknown => (
            "Removed or not",
            "It is not known whether this was carried out. Don't ask for it again; a person decides.",
        ),
        State::Denied => ("Denied", "A person denied this. Nothing was removed."),
        State::Expired => ("Not approved in time", "Nobody approved this in time. Nothing was removed."),
        State::Withdrawn => ("Withdrawn", "This was taken back. Nothing was removed."),
    }
}

fn asked(hold: &Hold) -> String {
    ascii(hold.subject.as_deref().unwrap_or("Remove messages"))
}

/// As a whole message, after the fields that name hold and state.
pub(super) fn shown(hold: &Hold, host: &str, state: &str) -> String {
    let head = head(hold, host, &format!("outbox.{}.{state}", hold.id), &asked(hold), hold.held_at);
    head + "\r\n" + &text(hold)
}

/// The report of how one ended.
pub(super) fn report(hold: &Hold, host: &str, now: i64) -> String {
    let subject = format!("{}: {}", said(hold.state).0, asked(hold));
    let id = format!("report.{}.{}", hold.id, hold.state.name());
    let ours = format!("X-Tollgate-Hold: {}\r\nX-Tollgate-State: {}\r\n", hold.id, hold.state.name());
    head(hold, host, &id, &subject, now) + &ours + "\r\n" + &text(hold)
}

fn head(hold: &Hold, host: &str, id: &str, subject: &str, at: i64) -> String {
    format!(
        "From: \"Tollgate\" <tollgate@{host}>\r\nTo: <{}>\r\nSubject: {subject}\r\nDate: {}\r\nMessage-ID: \
         <{id}@{host}>\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; \
         charset=us-ascii\r\n",
        hold.account,
        date(at)
    )
}

fn text(hold: &Hold) -> String {
    let mut lines = vec![said(hold.state).1.to_owned(), String::new(), format!("Hold: {}", hold.id)];
    lines.push(format!("Asked: {}", asked(hold)));
    if let Some(detail) = hold.detail.as_deref().map(str::trim).filter(|d| hold.state.is_final() && !d.is_empty()) {
        lines.push(format!("Reason: {}", ascii(detail)));
    }
    lines.iter().map(|line| format!("{line}\r\n")).collect()
}
