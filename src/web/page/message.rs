//! The page for one message: what misleads first, then who, what, how, and
//! at its end the decision.

use maud::{Markup, html};

use super::{Frame, Here, badge, count, octets, subject};
use super::{deletion, parts};
use crate::account::Role;
use crate::floor::deletion::Deletion;
use crate::floor::hold::Reason;
use crate::floor::submission::State;
use crate::mail::mime::visible::{Shape, reveal};
use crate::mail::mime::{Level, MessageView, Warning, domain_forms};
use crate::outbox::{Hold, Shown};

/// Minutes that a page can approve after it was shown.
const PAGE_MINUTES: i64 = crate::outbox::SHOWN_TTL_SECONDS / 60;

/// One recipient of the envelope.
struct Recipient {
    address: String,
    outside: bool,
    unnamed: bool,
    forms: Option<(String, String)>,
}

/// The page.
pub(in crate::web) fn page(frame: &Frame<'_>, shown: &Shown, view: &MessageView) -> Markup {
    let hold = &shown.hold;
    let recipients = recipients(frame, hold, view);
    let title = subject(hold);
    // What removes messages has a list instead of a message.
    let list = deletion::of(frame, hold);
    let body = html! {
        p.back { a href="/" { "← All held messages" } }
        div.head {
            h1 { (title) }
            @if list.is_none() { (badge(hold.state)) } @else { (deletion::badge(hold.state)) }
        }
        (provenance(frame, hold))
        div.columns {
            @if let Some(list) = &list { (deletion::content(frame, shown, list.as_ref())) } @else { div.read {
                (warnings(&all_warnings(hold, view, &recipients)))
                (who(hold, view, &recipients))
                (parts::content(view))
                (parts::attachments(view))
                (parts::fields(view))
                (approved_thing(shown))
            } }
            aside.decide aria-label="Decision" {
                @if let Some(None) = &list {
                    (deletion::unreadable())
                } @else if hold.state == State::Held {
                    (decision(frame, shown, &recipients, list.as_ref().and_then(Option::as_ref)))
                } @else {
                    (outcome(frame, hold))
                }
            }
        }
    };
    frame.layout(&title, Here::Message, &body)
}

fn recipients(frame: &Frame<'_>, hold: &Hold, view: &MessageView) -> Vec<Recipient> {
    let own: Vec<String> =
        frame.services.accounts.account(&hold.account).map_or_else(Vec::new, |a| {
            std::iter::once(&a.address).chain(&a.aliases).map(|a| a.domain.clone()).collect()
        });
    let each = hold.envelope.forward_paths.iter().map(|path| Recipient {
        address: reveal(path.as_str(), Shape::Line).text,
        outside: !own.iter().any(|d| d.eq_ignore_ascii_case(path.domain())),
        unnamed: !view.names_recipient(path.as_str()),
        forms: domain_forms(path.domain()),
    });
    each.collect()
}

fn all_warnings(hold: &Hold, view: &MessageView, recipients: &[Recipient]) -> Vec<(Level, String)> {
    let mut all: Vec<(Level, String)> = view
        .against(&hold.envelope.reverse_path)
        .iter()
        .chain(&view.warnings)
        .map(|w: &Warning| (w.level(), w.to_string()))
        .collect();
    let unnamed: Vec<&str> = recipients.iter().filter(|r| r.unnamed).map(|r| r.address.as_str()).collect();
    if !unnamed.is_empty() {
        let who = unnamed.join(", ");
        all.insert(0, (Level::Danger, format!("Also sent to {who}, whom no header field names (a blind copy).")));
    }
    all.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    all
}

fn provenance(frame: &Frame<'_>, hold: &Hold) -> Markup {
    let why = match hold.reason {
        Reason::AgentKey => "it was submitted with an agent's key",
        Reason::Lineage => "an agent's draft is in it",
        Reason::Marks => "it declares that a machine drafted it",
        Reason::External => "it goes outside, and such mail is held",
        Reason::All => "all mail is held",
    };
    let whose = match hold.role {
        Role::Agent => "agent",
        Role::Person => "person",
    };
    html! {
        p.meta {
            "Submitted by " strong { (frame.key_name(hold)) } " (" (whose) " key " code { (hold.key) } ") on "
            (frame.time(hold.held_at)) ". Held because " (why) "."
            @if hold.state == State::Held { @if let Some(at) = hold.expires_at {
                " Expires " (frame.distance(at)) "."
            } }
        }
    }
}

fn warnings(all: &[(Level, String)]) -> Markup {
    let dangers = all.iter().filter(|(level, _)| *level == Level::Danger).count();
    html! {
        @if all.is_empty() {
            section.card.calm aria-labelledby="w" {
                h2 #w { "No warnings" }
                p { "No sign of anything hidden or misleading was found. That is no judgement of what it says." }
            }
        } @else {
            section.card.warnings.danger[dangers > 0] aria-labelledby="w" {
                h2 #w { (count(all.len(), "warning")) }
                ul {
                    @for (level, text) in all {
                        @if *level == Level::Danger {
                            li.danger { strong.tag { "Caution" } " " (text) }
                        } @else {
                            li { span.tag { "Note" } " " (text) }
                        }
                    }
                }
            }
        }
    }
}

fn who(hold: &Hold, view: &MessageView, recipients: &[Recipient]) -> Markup {
    let from = if hold.envelope.reverse_path.is_empty() { "nobody (<>)" } else { &hold.envelope.reverse_path };
    html! {
        section.card aria-labelledby="who" {
            h2 #who { "Who gets it" }
            ul.recipients {
                @for r in recipients {
                    li {
                        span.address { (r.address) }
                        @if r.outside { span.tag.outside { "outside" } }
                        @if r.unnamed { span.tag.hidden { "in no header field" } }
                        @if let Some((unicode, ascii)) = &r.forms { span.forms { (unicode) " is " (ascii) } }
                    }
                }
            }
            dl.short {
                dt { "Envelope from" } dd { (reveal(from, Shape::Line).text) }
                @for name in ["From", "To", "Cc", "Reply-To", "Date", "In-Reply-To"] {
                    @for field in view.fields.iter().filter(|f| f.name.eq_ignore_ascii_case(name)) {
                        dt { (field.name) } dd { (field.decoded) }
                    }
                }
            }
        }
    }
}

fn approved_thing(shown: &Shown) -> Markup {
    let payload = String::from_utf8_lossy(&shown.payload.canonical()).into_owned();
    let id = &shown.hold.id;
    html! {
        section.card aria-labelledby="what" {
            h2 #what { "What is approved" }
            p { "The message as it was submitted, to the octet, and the envelope above. "
                a href={ "/held/" (id) "/raw" } { "Raw source" } " (" (octets(shown.payload.length)) ")" }
            dl.short {
                dt { "SHA-256 of the message" } dd { code.hash { (shown.hold.blob) } }
                dt { "Through" } dd { (shown.payload.upstream_host) " as " (shown.payload.upstream_login) }
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

fn decision(frame: &Frame<'_>, shown: &Shown, recipients: &[Recipient], list: Option<&Deletion>) -> Markup {
    let (hold, payload) = (&shown.hold, &shown.payload);
    let outside = recipients.iter().filter(|r| r.outside).count();
    let hidden = html! {
        input type="hidden" name="csrf" value=(frame.session.csrf);
        input type="hidden" name="hash" value=(shown.hash);
        input type="hidden" name="nonce" value=(payload.nonce);
    };
    html! {
        section.card aria-labelledby="approve" {
            h2 #approve { "Approve" }
            @if let Some(list) = list { (deletion::approving(list)) } @else { p { "Approving sends exactly these " (octets(payload.length)) ", unchanged, to "
                strong { (count(recipients.len(), "recipient")) }
                @if outside > 0 { " (" (outside) " outside)" }
                ", once, through " (payload.upstream_host) ". It can't be called back." } }
            p.small { "It is signed and kept as a receipt, good for attempts until " (frame.time(payload.expiry))
                ". This page can approve for " (PAGE_MINUTES) " minutes." }
            form method="post" action={ "/held/" (hold.id) "/approve" } {
                (hidden)
                label for="pin-approve" { "Your PIN" }
                input #pin-approve type="password" name="pin" required autocomplete="off";
                button.primary type="submit" { (list.map_or("Approve and send", deletion::button)) }
            }
        }
        section.card aria-labelledby="deny" {
            h2 #deny { "Deny" }
            p { (if list.is_some() { "Denying leaves everything as it is." } else { "Denying sends nothing, for good." }) }
            form method="post" action={ "/held/" (hold.id) "/deny" } {
                (hidden)
                label for="reason" { "Reason, if you like (the drafter sees it)" }
                input #reason type="text" name="reason" maxlength="500" autocomplete="off";
                label for="pin-deny" { "Your PIN" }
                input #pin-deny type="password" name="pin" required autocomplete="off";
                button type="submit" { "Deny" }
            }
        }
        @if hold.role == Role::Agent {
            details.card {
                summary { "Deny all and revoke this key" }
                p { "Everything that " strong { (frame.key_name(hold)) } " has waiting is denied, its sessions end, and "
                    "the key never works again." }
                form method="post" action={ "/keys/" (hold.key) "/deny-and-revoke" } {
                    input type="hidden" name="csrf" value=(frame.session.csrf);
                    label for="pin-revoke" { "Your PIN" }
                    input #pin-revoke type="password" name="pin" required autocomplete="off";
                    button.stop type="submit" { "Deny all and revoke" }
                }
            }
        }
    }
}

fn outcome(frame: &Frame<'_>, hold: &Hold) -> Markup {
    let what = match hold.state {
        state if !hold.action.sends() => deletion::outcome(state),
        State::Held => "It waits for you.",
        State::Approved => "You approved it. It waits for the next attempt to send it.",
        State::Sending => "It is being sent.",
        State::Sent => "The provider took it.",
        State::Failed => "The provider refused it, and nothing was sent.",
        State::Unknown => {
            "The connection was lost when all had been sent, so nobody knows whether the provider took it. \
             Look in your Sent mailbox or ask the recipient. It is not sent again by itself."
        }
        State::Denied => "It was denied. Nothing was sent.",
        State::Expired => "Nobody decided in time. Nothing was sent.",
        State::Withdrawn => "It was taken back, or its key was revoked. Nothing was sent.",
    };
    let approved =
        matches!(hold.state, State::Approved | State::Sending | State::Sent | State::Failed | State::Unknown);
    html! {
        section.card aria-labelledby="outcome" role="status" {
            h2 #outcome { "Outcome" }
            p { @if hold.action.sends() { (badge(hold.state)) } @else { (deletion::badge(hold.state)) } }
            p { (what) }
            dl.short {
                dt { "Since" } dd { (frame.time(hold.changed_at)) }
                @if let Some(approver) = &hold.approver { dt { "Decided by" } dd { (approver) } }
                @if hold.attempt > 0 { dt { "Attempts" } dd { (hold.attempt) } }
                @if let Some(at) = hold.next_attempt.filter(|_| hold.state == State::Approved) {
                    dt { "Next attempt" } dd { (frame.time(at)) }
                }
                @if let Some(detail) = &hold.detail { dt { "Said" } dd { (reveal(detail, Shape::Line).text) } }
            }
            @if approved {
                p { a.button href={ "/held/" (hold.id) "/receipt" } { "Receipt (JSON)" } }
            }
            @if let Some(again) = &hold.again {
                p { a href={ "/held/" (again) } { "Held again as " (again) } }
            }
        }
    }
}
