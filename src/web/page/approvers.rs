//! Who approves: passkeys, and what changed about them.

use maud::{Markup, html};

use super::ask::{Ask, below, ids, script};
use super::{Frame, Here, shell};
use crate::floor::ledger::{Entry, Event};
use crate::floor::passkey::encode;
use crate::mail::mime::visible::{Shape, reveal};
use crate::web::passkey::{MAX_NAME_CHARS, MAX_PASSKEYS};
use crate::web::ticket::Issued;

/// The passkeys of the account and the forms that change them; `removes` has
/// a ticket for each passkey.
pub(in crate::web) fn page(frame: &Frame<'_>, add: &Issued, removes: &[Issued]) -> Markup {
    let body = html! {
        h1 { "Who approves" }
        p.lead { "Approvals for " strong { (frame.session.account) } " need " (needs(frame)) "." }
        (changes(frame))
        section.card aria-labelledby="keys" {
            h2 #keys { "Passkeys" }
            @if frame.passkeys.is_empty() {
                p { "None is registered." }
            }
            ul.files {
                @for (at, (passkey, ticket)) in frame.passkeys.iter().zip(removes).enumerate() {
                    li {
                        span.address { (reveal(&passkey.name, Shape::Line).text) }
                        " " span.meta { "added " (frame.time(passkey.added))
                            @if let Some(used) = passkey.used { ", last used " (frame.time(used)) } }
                        code.hash { (passkey.key.id()) }
                        details {
                            summary { "Remove " (reveal(&passkey.name, Shape::Line).text) }
                            (remove(frame, &passkey.key.credential, ticket, at))
                        }
                    }
                }
            }
        }
        @if frame.passkeys.len() < MAX_PASSKEYS {
            (additions(frame, add))
        }
        (script())
    };
    frame.layout("Who approves", Here::Approvers, &body)
}

fn needs(frame: &Frame<'_>) -> &'static str {
    use crate::config::ApprovalMode;
    match frame.mode {
        ApprovalMode::Pin => "the PIN",
        ApprovalMode::Passkey => "a passkey that is registered here",
        ApprovalMode::Link => "the link of a notice, or the PIN",
    }
}

fn remove(frame: &Frame<'_>, credential: &str, ticket: &Issued, at: usize) -> Markup {
    let fields = html! {
        input type="hidden" name="csrf" value=(frame.session.csrf);
        input type="hidden" name="ticket" value=(ticket.nonce);
        input type="hidden" name="credential" value=(credential);
    };
    let passkey = Ask::Passkey { challenge: ticket.challenge, rp_id: frame.rp_id, allow: &frame.passkeys };
    html! {
        @if frame.has_pin { (Ask::Pin.form("/approvers/remove", &format!("remove-{at}"), &fields, ("stop", "Remove, with the PIN"))) }
        (passkey.form("/approvers/remove", &format!("unkey-{at}"), &fields, ("stop", "Remove, with a passkey")))
    }
}

fn additions(frame: &Frame<'_>, add: &Issued) -> Markup {
    html! {
        section.card aria-labelledby="add" {
            h2 #add { "Add a passkey" }
            p { "Somebody who may approve has to vouch for it. What waits must then be opened anew." }
            @if frame.has_pin {
                h3 { "With the PIN" }
                (addition(frame, add, "by-pin", &html! {
                    label for="pin-add" { "Your PIN" }
                    input #pin-add type="password" name="pin" required autocomplete="off";
                }, "Add, with the PIN"))
            }
            @if !frame.passkeys.is_empty() {
                h3 { "With a passkey that is registered" }
                (addition(frame, add, "by-key", &html! { input type="hidden" name="assertion" value=""; },
                    "Add, with a registered passkey"))
            }
            @if !frame.has_pin && frame.passkeys.is_empty() {
                p { "There is neither a PIN nor a passkey. At the console: " code { "tollgate approver code" }
                    ", then " a href="/enrol" { "use the code" } "." }
            }
        }
    }
}

fn addition(frame: &Frame<'_>, add: &Issued, id: &str, proof: &Markup, button: &str) -> Markup {
    html! {
        form method="post" action="/approvers/add" data-passkey="create" data-challenge=(encode(&add.challenge))
            data-rp=(frame.rp_id) data-allow=(ids(&frame.passkeys)) data-exclude=(ids(&frame.passkeys))
            data-account=(frame.session.account) {
            input type="hidden" name="csrf" value=(frame.session.csrf);
            (created(&add.nonce))
            label for={ "name-" (id) } { "What to call it" }
            input id={ "name-" (id) } type="text" name="name" required maxlength=(MAX_NAME_CHARS) autocomplete="off";
            (proof)
            button.primary type="submit" disabled { (button) }
            (below())
        }
    }
}

/// The fields that the script fills.
fn created(ticket: &str) -> Markup {
    html! {
        input type="hidden" name="ticket" value=(ticket);
        input type="hidden" name="client_data" value="";
        input type="hidden" name="attestation" value="";
    }
}

/// The form that takes a code of the console.
pub(in crate::web) fn enrol(only: Option<&str>, ticket: &Issued, rp_id: &str) -> Markup {
    let body = html! {
        main #main .narrow {
            p.mark { "Tollgate" }
            h1 { "Register a passkey" }
            p { "The console makes a code that works once, for ten minutes: " code { "tollgate approver code" } }
            form.card method="post" action="/enrol" data-passkey="create" data-challenge=(encode(&ticket.challenge))
                data-rp=(rp_id) {
                (created(&ticket.nonce))
                label for="account" { "Account" }
                input #account type="email" name="account" value=[only] required autocomplete="username"
                    autocapitalize="none" spellcheck="false";
                label for="code" { "Code" }
                input #code type="text" name="code" required autocomplete="one-time-code" autocapitalize="characters"
                    spellcheck="false";
                label for="name" { "What to call the passkey" }
                input #name type="text" name="name" required maxlength=(MAX_NAME_CHARS) autocomplete="off";
                button.primary type="submit" disabled { "Register" }
                (below())
            }
            p.small { a href="/sign-in" { "Sign in" } }
        }
        (script())
    };
    shell("Register a passkey", &body)
}

/// What changed about who may approve, of the last seven days.
pub(super) fn changes(frame: &Frame<'_>) -> Markup {
    html! {
        @if !frame.changes.is_empty() {
            section.card.warnings aria-labelledby="changes" {
                h2 #changes { "Who approves was changed" }
                ul {
                    @for entry in &frame.changes { li { (change(entry)) " " (frame.time(entry.time)) } }
                }
                p.small { "Changes stand here for seven days. If one wasn't yours, deny what waits and ask whoever runs "
                    "this gateway." }
            }
        }
    }
}

fn change(entry: &Entry) -> Markup {
    let short = |hash: &crate::floor::digest::Hash| hash.to_string().chars().take(16).collect::<String>();
    match &entry.event {
        Event::PinSet { .. } => html! { "The PIN was set at the console," },
        Event::PasskeyAdded { passkey, proof, .. } => html! {
            "The passkey " code { (short(passkey)) } " was added (vouched for by " (vouched(proof)) "),"
        },
        Event::PasskeyRemoved { passkey, proof, .. } => html! {
            "The passkey " code { (short(passkey)) } " was removed (by " (vouched(proof)) "),"
        },
        other => html! { (format!("{other:?}")) },
    }
}

fn vouched(proof: &str) -> &str {
    match proof {
        "pin" => "the PIN",
        "passkey" => "a registered passkey",
        "code" => "a code of the console",
        "console" => "the console",
        other => other,
    }
}
