//! What would be removed for good, in place of a message.
//!
//! Promises: what is shown is read from the octets that the approval's hash is
//! of. Doesn't know: whether the messages still are as they were; that is
//! compared before anything is removed.

use maud::{Markup, html};

use super::{Frame, count, octets};
use crate::floor::deletion::{Act, Deletion, Victim};
use crate::floor::digest::to_hex;
use crate::floor::submission::State;
use crate::mail::mime::decode;
use crate::mail::mime::visible::{Shape, reveal};
use crate::mail::mutf7;
use crate::outbox::{Hold, Shown};

/// The list of a hold that removes messages: `None` where it sends one,
/// `Some(None)` where the list can't be read or was changed.
pub(super) fn of(frame: &Frame<'_>, hold: &Hold) -> Option<Option<Deletion>> {
    (!hold.action.sends()).then(|| frame.services.outbox.deletion(hold).ok())
}

fn mailbox(wire: &str) -> String {
    let name = mutf7::decode(wire.as_bytes()).unwrap_or_else(|| wire.to_owned());
    reveal(&name, Shape::Line).text
}

fn words(field: Option<&String>, without: &'static str) -> String {
    let decoded = field.map(|f| decode::words(f.as_bytes()).value).unwrap_or_default();
    let shown = reveal(decoded.trim(), Shape::Line).text;
    if shown.is_empty() { without.to_owned() } else { shown }
}

/// What is done, in a sentence.
fn sentence(list: &Deletion) -> Markup {
    let (many, from) = (count(list.messages.len(), "message"), mailbox(&list.mailbox));
    html! {
        @match &list.act {
            Act::Expunge => { "Approving deletes exactly these " strong { (many) } " from the mailbox " strong { (from) } "." },
            Act::DeleteMailbox => {
                "Approving deletes the mailbox " strong { (from) } " and with it exactly these " strong { (many) } "."
            },
            Act::Move { to } => {
                "Approving moves exactly these " strong { (many) } " from " strong { (from) } " to "
                strong { (mailbox(to)) } ", where they are out of sight and may be removed by the provider."
            },
        }
    }
}

/// The messages.
pub(super) fn content(frame: &Frame<'_>, shown: &Shown, list: Option<&Deletion>, base: &str) -> Markup {
    let Some(list) = list else { return unreadable() };
    let total: u64 = list.messages.iter().map(|m| m.length).sum();
    let payload = String::from_utf8_lossy(&shown.payload.canonical()).into_owned();
    html! {
        div.read {
            section.card aria-labelledby="vanish" {
                h2 #vanish { "What would be removed" }
                p { (sentence(list)) " Together they have " (octets(total)) "." }
                ul.recipients {
                    @for message in &list.messages { (row(message)) }
                }
            }
            section.card aria-labelledby="what" {
                h2 #what { "What is approved" }
                p { "This list, to the octet. Before anything is removed each message is fetched again; if one of them "
                    "is no longer the same, or the mailbox is another, nothing is removed. "
                    a href={ (base) "/raw" } { "The list (JSON)" } }
                dl.short {
                    dt { "SHA-256 of the list" } dd { code.hash { (shown.hold.blob) } }
                    dt { "At" } dd { (list.host) " as " (list.login) }
                    dt { "UIDVALIDITY" } dd { (list.uidvalidity) }
                    dt { "Asked by" } dd { (frame.key_name(&shown.hold)) }
                    @if shown.hold.state == State::Held {
                        dt { "Hash of this approval" } dd { code.hash { (shown.hash) } }
                    }
                }
                @if shown.hold.state == State::Held {
                    details {
                        summary { "Payload (canonical JSON)" }
                        pre.json tabindex="0" { (reveal(&payload, Shape::Line).text) }
                    }
                }
            }
        }
    }
}

fn row(message: &Victim) -> Markup {
    html! {
        li {
            strong { (words(message.subject.as_ref(), "(no subject)")) }
            span { "from " (words(message.from.as_ref(), "nobody")) ", " (words(message.date.as_ref(), "no date")) ", "
                (octets(message.length)) }
            details { summary { "UID " (message.uid) } code.hash { (to_hex(&message.sha256)) } }
        }
    }
}

/// In place of the decision, where the list isn't what was held.
pub(super) fn unreadable() -> Markup {
    html! {
        section.card.warnings.danger aria-labelledby="w" {
            h2 #w { "The list was changed" }
            p { "What is stored is not what was held, so it can't be shown or approved. Deny it at the console." }
        }
    }
}

/// What approving does.
pub(super) fn approving(list: &Deletion) -> Markup {
    html! { p { (sentence(list)) " It can't be called back." } }
}

/// The button's text.
pub(super) fn button(list: &Deletion) -> &'static str {
    match list.act {
        Act::Expunge | Act::DeleteMailbox => "Approve and delete",
        Act::Move { .. } => "Approve and move",
    }
}

/// The state as a badge.
pub(super) fn badge(state: State) -> Markup {
    let (class, text) = match state {
        State::Held => ("wait", "Waits for you"),
        State::Approved => ("go", "Approved, under way"),
        State::Sending => ("go", "Under way"),
        State::Sent => ("done", "Removed"),
        State::Failed => ("bad", "Not removed"),
        State::Unknown => ("bad", "Outcome unknown"),
        State::Denied => ("off", "Denied"),
        State::Expired => ("off", "Expired"),
        State::Withdrawn => ("off", "Withdrawn"),
    };
    html! { span class={ "badge " (class) } { (text) } }
}

/// How it ended.
pub(super) fn outcome(state: State) -> &'static str {
    match state {
        State::Held => "It waits for you.",
        State::Approved => "You approved it. It waits for the next attempt.",
        State::Sending => "The messages are being compared and removed.",
        State::Sent => "The messages were the ones that were approved, and were removed.",
        State::Failed => "It was not carried out; what was said tells why.",
        State::Unknown => {
            "The connection was lost, or the gateway stopped, while the messages were removed, so nobody knows which \
             ones are gone; some may still be there and flagged as deleted. It is not tried again by itself."
        }
        State::Denied => "It was denied. Nothing was removed.",
        State::Expired => "Nobody decided in time. Nothing was removed.",
        State::Withdrawn => "Its key was revoked. Nothing was removed.",
    }
}
