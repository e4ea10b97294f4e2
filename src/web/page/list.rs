//! The lists: what waits, and what was decided.

use maud::{Markup, html};

use super::{Frame, Here, badge, count, octets, subject};
use crate::config::ApprovalMode;
use crate::floor::submission::State;
use crate::mail::mime::visible::{Shape, reveal};
use crate::outbox::{Hold, Listed};

/// Recipients named in a list before the rest is counted.
const NAMED: usize = 2;

/// What waits for a person or is under way.
pub(in crate::web) fn held(frame: &Frame<'_>, listed: &Listed) -> Markup {
    let holds = &listed.holds;
    let more = listed.all.saturating_sub(holds.len());
    let waiting = holds.iter().filter(|h| h.state == State::Held).count();
    let title = match waiting {
        0 => "Nothing waits".to_owned(),
        n if more > 0 => format!("{n} messages and more wait for you"),
        n => format!("{} wait{} for you", count(n, "message"), if n == 1 { "s" } else { "" }),
    };
    let body = html! {
        h1 { (title) }
        (super::approvers::changes(frame))
        @if frame.mode == ApprovalMode::Passkey && frame.passkeys.is_empty() {
            p.note role="status" { "No passkey is registered, so nothing can be approved. "
                a href="/approvers" { "Add one" } "." }
        }
        @if holds.is_empty() {
            p.lead { "Mail that an AI drafts for " strong { (frame.session.account) } " stops here until you decide. "
                "What you have decided is in the " a href="/history" { "history" } "." }
        } @else {
            p.lead { "Nothing below is sent or removed unless you approve it. What you don't decide expires by itself." }
            @if waiting > 1 { p { a.button href="/batch" { "Approve several at once" } } }
            (rows(frame, holds))
            @if more > 0 {
                p.note { "These are the newest. " (more) " more wait or are under way; they show here when some of "
                    "these are decided, and " code { "tollgate held list" } " lists them." }
            }
        }
    };
    frame.layout(&title, Here::Held, &body)
}

/// What was decided, latest first.
pub(in crate::web) fn history(frame: &Frame<'_>, holds: &[Hold]) -> Markup {
    let body = html! {
        h1 { "History" }
        @if holds.is_empty() {
            p.lead { "Nothing has been decided yet." }
        } @else {
            (rows(frame, holds))
        }
    };
    frame.layout("History", Here::History, &body)
}

fn rows(frame: &Frame<'_>, holds: &[Hold]) -> Markup {
    html! {
        ul.holds {
            @for hold in holds {
                li {
                    a.hold href={ "/held/" (hold.id) } {
                        span.subject { (subject(hold)) }
                        @if hold.action.sends() {
                            (badge(hold.state))
                            span.to { "To " (recipients(hold)) }
                        } @else {
                            (super::deletion::badge(hold.state))
                            span.to { "Removes messages" }
                        }
                        span.meta {
                            (if hold.action.sends() { "Drafted by " } else { "Asked by " }) (frame.key_name(hold)) " · " (frame.time(hold.held_at)) " · " (octets(hold.length))
                            @if hold.state == State::Held { @if let Some(at) = hold.expires_at {
                                " · expires " (frame.distance(at))
                            } }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn recipients(hold: &Hold) -> String {
    let paths = &hold.envelope.forward_paths;
    let named: Vec<String> = paths.iter().take(NAMED).map(|p| reveal(p.as_str(), Shape::Line).text).collect();
    match paths.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
