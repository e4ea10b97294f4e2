//! Several messages with one proof: the choice, the messages, the outcome.

use maud::{Markup, html};

use super::ask::{Ask, script};
use super::reading::Reading;
use super::{Frame, Here, count, list, octets, parts, subject};
use crate::floor::passkey::MAX_BATCH;
use crate::mail::mime::MessageView;
use crate::outbox::{ApproveError, Hold, HoldId, Shown};

/// One message of a batch.
pub(in crate::web) struct Item {
    pub(in crate::web) shown: Shown,
    pub(in crate::web) view: MessageView,
    pub(in crate::web) reading: Reading,
}

/// Which messages.
pub(in crate::web) fn choice(frame: &Frame<'_>, eligible: &[Hold]) -> Markup {
    let body = html! {
        p.back { a href="/" { "← All held messages" } }
        h1 { "Approve several at once" }
        p.lead { "Only messages without a warning, an attachment or a recipient who is new can be approved together. "
            "You will see each in full." }
        @if eligible.is_empty() {
            p { "None of what waits is of that kind." }
        } @else {
            form method="get" action="/batch" {
                fieldset.card {
                    legend { "Which (at most " (MAX_BATCH) ")" }
                    @for hold in eligible {
                        label.check {
                            input type="checkbox" name="id" value=(hold.id);
                            span { strong { (subject(hold)) } " to " (list::recipients(hold)) }
                        }
                    }
                }
                button type="submit" { "Show them" }
            }
        }
    };
    frame.layout("Approve several at once", Here::Held, &body)
}

/// Each message in full, and the form that approves all of them.
pub(in crate::web) fn page(frame: &Frame<'_>, items: &[Item], challenge: &[u8; 32]) -> Markup {
    let title = format!("Approve {} at once", count(items.len(), "message"));
    let fields = html! {
        input type="hidden" name="csrf" value=(frame.session.csrf);
        @for item in items {
            input type="hidden" name="item"
                value={ (item.shown.hold.id) ":" (item.shown.payload.nonce) ":" (item.shown.hash) };
        }
    };
    let ask = Ask::deciding(frame, *challenge);
    let body = html! {
        p.back { a href="/batch" { "← Choose others" } }
        h1 { (title) }
        (super::approvers::changes(frame))
        @for (at, item) in items.iter().enumerate() { (message(item, at)) }
        section.card aria-labelledby="approve" {
            h2 #approve { "Approve" }
            p { "Approving sends each of these, unchanged, once. It can't be called back." }
            (ask.form("/batch", "batch", &fields, ("primary", "Approve and send all of them")))
        }
        @if matches!(ask, Ask::Passkey { .. }) { (script()) }
    };
    frame.layout(&title, Here::Held, &body)
}

fn message(item: &Item, at: usize) -> Markup {
    let hold = &item.shown.hold;
    html! {
        article.card aria-labelledby={ "m" (at) } {
            h2 id={ "m" (at) } { (subject(hold)) }
            ul.recipients {
                @for r in &item.reading.recipients {
                    li { span.address { (r.address) } @if r.outside { span.tag.outside { "outside" } } }
                }
            }
            (parts::texts(&item.view))
            p.small { a href={ "/held/" (hold.id) } { "By itself" } " · " (octets(hold.length)) }
            dl.short { dt { "Hash of this approval" } dd { code.hash { (item.shown.hash) } } }
        }
    }
}

/// What became of each.
pub(in crate::web) fn done(frame: &Frame<'_>, done: &[(HoldId, Result<(), ApproveError>)]) -> Markup {
    let body = html! {
        h1 { "Approved together" }
        section.card role="status" aria-label="Outcome" {
            ul.files {
                @for (id, said) in done {
                    li { a href={ "/held/" (id) } { (id) } " "
                        @match said { Ok(()) => { "approved, being sent" }, Err(e) => { "not approved: " (e) } } }
                }
            }
        }
        p { a.button href="/" { "Held messages" } }
    };
    frame.layout("Approved together", Here::Held, &body)
}
