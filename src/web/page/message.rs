//! The page for one message: what misleads first, then who, what, how, and
//! at its end the decision.

use maud::{Markup, html};

use super::ask::{Ask, script};
use super::parts;
use super::reading::{Reading, Recipient};
use super::{Frame, Here, badge, count, octets, subject};
use crate::account::Role;
use crate::floor::action::Action;
use crate::floor::hold::Reason;
use crate::floor::passkey::{Purpose, challenge};
use crate::floor::submission::State;
use crate::mail::mime::visible::{Shape, reveal};
use crate::mail::mime::{Level, MessageView};
use crate::outbox::lineage::Found;
use crate::outbox::{Hold, Shown};
use crate::web::facts::{Answered, Facts};
use crate::web::ticket::Issued;

/// Minutes that a page can approve after it was shown.
const PAGE_MINUTES: i64 = crate::outbox::SHOWN_TTL_SECONDS / 60;

/// A message as one page view has it.
pub(in crate::web) struct Seen<'a> {
    pub(in crate::web) shown: &'a Shown,
    pub(in crate::web) view: &'a MessageView,
    pub(in crate::web) facts: &'a Facts,
    /// The challenge of "deny all and revoke", where a passkey decides.
    pub(in crate::web) revoke: Option<Issued>,
}

/// The page.
pub(in crate::web) fn page(frame: &Frame<'_>, seen: &Seen<'_>) -> Markup {
    let (shown, view) = (seen.shown, seen.view);
    let hold = &shown.hold;
    let reading = Reading::of(&frame.services.accounts, hold, view, seen.facts);
    let title = subject(hold);
    let base = frame.link.clone().unwrap_or_else(|| format!("/held/{}", hold.id));
    let body = html! {
        @if frame.link.is_none() { p.back { a href="/" { "← All held messages" } } }
        div.head {
            h1 { (title) }
            (badge(hold.state))
        }
        (provenance(frame, hold))
        (super::approvers::changes(frame))
        div.columns {
            div.read {
                (warnings(&reading.warnings))
                (who(hold, view, &reading.recipients))
                (answers(frame, &seen.facts.answers))
                (lineage(frame, hold))
                (parts::content(view))
                (parts::attachments(view))
                (parts::fields(view))
                (approved_thing(shown, &base))
            }
            aside.decide aria-label="Decision" {
                @if hold.state == State::Held {
                    (decision(frame, seen, &reading.recipients, &base))
                } @else {
                    (outcome(frame, hold))
                }
            }
        }
    };
    frame.layout(&title, Here::Message, &body)
}

/// What it says it answers.
fn answers(frame: &Frame<'_>, answers: &[Answered]) -> Markup {
    html! {
        @if !answers.is_empty() {
            section.card aria-labelledby="answers" {
                h2 #answers { "What it answers" }
                ul.recipients {
                    @for answer in answers {
                        li {
                            code { (reveal(&answer.id, Shape::Line).text) }
                            @if let Some((at, from)) = &answer.seen {
                                span { "mail from " strong { (reveal(from, Shape::Line).text) } ", seen " (frame.time(*at)) }
                            } @else {
                                span.tag.outside { "not seen here" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The agent's draft that was found in a person's submission, to be read
/// beside what it says now.
fn lineage(frame: &Frame<'_>, hold: &Hold) -> Markup {
    let Some(lineage) = &hold.lineage else { return html! {} };
    let found = match lineage.found {
        Found::Passage => "words of it stand in this message",
        Found::File => "a file of it is in this message",
        Found::Subject => "subject and recipients are its own",
    };
    html! {
        section.card aria-labelledby="draft" {
            h2 #draft { "The agent's draft" }
            p { "The key " code { (lineage.key) } " drafted it, " (frame.time(lineage.drafted_at)) "; " (found) "." }
            pre.mail tabindex="0" role="region" aria-label="The draft's own words" {
                (reveal(&lineage.text, Shape::Lines).text)
            }
        }
    }
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
            @if hold.action == Action::ForwardExternal {
                " " strong { "It hands a message of the mailbox on to outside." }
            }
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
                        @if r.new { span.tag.outside { "new: never written to" } }
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

fn approved_thing(shown: &Shown, base: &str) -> Markup {
    let payload = String::from_utf8_lossy(&shown.payload.canonical()).into_owned();
    html! {
        section.card aria-labelledby="what" {
            h2 #what { "What is approved" }
            p { "The message as it was submitted, to the octet, and the envelope above. "
                a href={ (base) "/raw" } { "Raw source" } " (" (octets(shown.payload.length)) ")" }
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

fn decision(frame: &Frame<'_>, seen: &Seen<'_>, recipients: &[Recipient], base: &str) -> Markup {
    let (hold, payload) = (&seen.shown.hold, &seen.shown.payload);
    let marked = |mark: fn(&Recipient) -> bool, what: &str| match recipients.iter().filter(|r| mark(r)).count() {
        0 => None,
        n => Some(format!("{n} {what}")),
    };
    let marks: Vec<String> =
        [marked(|r| r.outside, "outside"), marked(|r| r.new, "new")].into_iter().flatten().collect();
    let hidden = html! {
        @if frame.link.is_none() { input type="hidden" name="csrf" value=(frame.session.csrf); }
        input type="hidden" name="hash" value=(seen.shown.hash);
        input type="hidden" name="nonce" value=(payload.nonce);
    };
    let approve = Ask::deciding(frame, challenge(payload));
    let deny = Ask::deciding(frame, Purpose::Deny.challenge(&payload.canonical()));
    let reason = html! {
        (hidden)
        label for="reason" { "Reason, if you like (the drafter sees it)" }
        input #reason type="text" name="reason" maxlength="500" autocomplete="off";
    };
    html! {
        section.card aria-labelledby="approve" {
            h2 #approve { "Approve" }
            p { "Approving sends exactly these " (octets(payload.length)) ", unchanged, to "
                strong { (count(recipients.len(), "recipient")) }
                @if !marks.is_empty() { " (" (marks.join(", ")) ")" }
                ", once, through " (payload.upstream_host) ". It can't be called back." }
            p.small { "It is signed and kept as a receipt, good for attempts until " (frame.time(payload.expiry))
                ". This page can approve for " (PAGE_MINUTES) " minutes." }
            (approve.form(&format!("{base}/approve"), "approve", &hidden, ("primary", "Approve and send")))
        }
        section.card aria-labelledby="deny" {
            h2 #deny { "Deny" }
            p { "Denying sends nothing, for good." }
            (deny.form(&format!("{base}/deny"), "deny", &reason, ("", "Deny")))
        }
        @if hold.role == Role::Agent && frame.link.is_none() { (revocation(frame, seen)) }
        @if matches!(approve, Ask::Passkey { .. }) { (script()) }
    }
}

fn revocation(frame: &Frame<'_>, seen: &Seen<'_>) -> Markup {
    let hold = &seen.shown.hold;
    let fields = html! {
        input type="hidden" name="csrf" value=(frame.session.csrf);
        @if let Some(ticket) = &seen.revoke { input type="hidden" name="ticket" value=(ticket.nonce); }
    };
    let ask = Ask::deciding(frame, seen.revoke.as_ref().map_or([0; 32], |ticket| ticket.challenge));
    let action = format!("/keys/{}/deny-and-revoke", hold.key);
    html! {
        details.card {
            summary { "Deny all and revoke this key" }
            p { "Everything that " strong { (frame.key_name(hold)) } " has waiting is denied, its sessions end, and "
                "the key never works again." }
            (ask.form(&action, "revoke", &fields, ("stop", "Deny all and revoke")))
        }
    }
}

fn outcome(frame: &Frame<'_>, hold: &Hold) -> Markup {
    let what = match hold.state {
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
            p { (badge(hold.state)) }
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
            @if approved && frame.link.is_none() {
                p { a.button href={ "/held/" (hold.id) "/receipt" } { "Receipt (JSON)" } }
            }
            @if let Some(again) = hold.again.as_ref().filter(|_| frame.link.is_none()) {
                p { a href={ "/held/" (again) } { "Held again as " (again) } }
            }
        }
    }
}
