//! Reports of what wasn't sent (RFC 6522 multipart/report, RFC 3464), to
//! whoever submitted it, and of removals that were not carried out.
//!
//! Promises: ASCII; an unknown outcome is never called a failure; an agent's
//! report has no link. Doesn't know: who reads it; the row names the view.

use std::collections::BTreeSet;

use super::outbox_view::folded;
use super::removal;
use crate::account::{KeyId, Role};
use crate::floor::submission::State;
use crate::imap::lanes::Place;
use crate::imap::local::ascii;
use crate::imap::ops::internaldate;
use crate::imap::rows::LocalRow;
use crate::outbox::Hold;

/// What names of reports begin with.
pub(super) const PREFIX: &str = "report/";
/// An outcome older than this is reported no more, in seconds.
const REPORTED_FOR: i64 = 7 * 24 * 3600;
/// Reports that stand at a time, the newest.
const MAX_REPORTS: usize = 100;
/// Longest subject that is repeated, in characters.
const MAX_SUBJECT: usize = 200;

/// What is to be told, of each hold once.
pub(super) fn wanted<'h>(holds: &'h [Hold], live: &BTreeSet<KeyId>, now: i64) -> Vec<&'h Hold> {
    let tells = |h: &&Hold| match h.state {
        State::Failed | State::Denied | State::Expired => true,
        // A person has the notice that asks about it.
        State::Unknown => h.role == Role::Agent,
        State::Held | State::Approved | State::Sending | State::Sent | State::Withdrawn => false,
    };
    let reads = |h: &&Hold| h.role == Role::Person || live.contains(&h.key);
    let recent = |h: &&Hold| now.saturating_sub(h.changed_at) < REPORTED_FOR;
    let mut told: Vec<&Hold> = holds.iter().filter(tells).filter(reads).filter(recent).collect();
    told.sort_by_key(|h| h.changed_at);
    told.split_off(told.len().saturating_sub(MAX_REPORTS))
}

/// The name of the local message.
pub(super) fn name(hold: &Hold) -> String {
    format!("{PREFIX}{}/{}", hold.id, hold.state.name())
}

/// A date as header fields have it.
pub(super) fn date(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds).map(|t| t.to_zoned(jiff::tz::TimeZone::UTC));
    time.map(|z| z.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()).unwrap_or_default()
}

/// The report as a local message of whoever submitted.
pub(super) fn row(hold: &Hold, host: &str, url: &str, now: i64) -> LocalRow {
    let key = (hold.role == Role::Agent).then(|| hold.key.as_str().to_owned());
    // RFC 3464 reports of recipients, and a removal has none.
    let octets = match hold.action.sends() {
        true => text(hold, host, key.is_none().then_some(url), now),
        false => removal::report(hold, host, now),
    };
    LocalRow {
        name: name(hold),
        date: internaldate(now),
        octets,
        flags: Vec::new(),
        key,
        place: Place::Inbox,
        body: None,
    }
}

/// What is said of the outcome.
struct Said {
    title: &'static str,
    text: &'static str,
    /// RFC 3464 §2.3.3.
    action: &'static str,
    /// RFC 3463.
    status: String,
    /// RFC 3464 §2.3.6: type and text.
    diagnostic: String,
}

fn said(hold: &Hold) -> Said {
    let detail = ascii(hold.detail.as_deref().unwrap_or_default());
    match hold.state {
        State::Denied => Said {
            title: "Denied",
            text: "A person denied this message. It was not sent.",
            action: "failed",
            status: "5.7.1".to_owned(),
            diagnostic: format!("X-Tollgate; denied: {detail}"),
        },
        State::Expired => Said {
            title: "Not approved in time",
            text: "Nobody approved this message in time. It was not sent.",
            action: "failed",
            status: "5.4.7".to_owned(),
            diagnostic: "X-Tollgate; expired".to_owned(),
        },
        // RFC 3464 §2.3.3 has no word for what nobody knows; `delayed` is the
        // one that doesn't say it failed.
        State::Unknown => Said {
            title: "Sent or not",
            text: "It is not known whether this message was sent: the provider did not answer. \
                   Don't submit it again; a person decides.",
            action: "delayed",
            status: "4.4.2".to_owned(),
            diagnostic: format!("X-Tollgate; unknown: {detail}"),
        },
        State::Failed | State::Held | State::Approved | State::Sending | State::Sent | State::Withdrawn => {
            let (status, reply) = enhanced(&detail);
            let kind = if reply { "smtp" } else { "X-Tollgate" };
            Said {
                title: "Not sent",
                text: "The provider did not take this message. It was sent to nobody.",
                action: "failed",
                status,
                diagnostic: format!("{kind}; {detail}"),
            }
        }
    }
}

/// The enhanced status code (RFC 3463) of a provider's reply, and whether it
/// is a reply at all.
fn enhanced(detail: &str) -> (String, bool) {
    let mut words = detail.split_ascii_whitespace();
    let reply = words.next().is_some_and(|w| w.len() == 3 && w.bytes().all(|b| b.is_ascii_digit()));
    let code = words.next().filter(|w| {
        let parts: Vec<&str> = w.split('.').collect();
        let digits = |p: &&str| !p.is_empty() && p.len() <= 3 && p.bytes().all(|b| b.is_ascii_digit());
        reply && parts.len() == 3 && parts[0] == "5" && parts.iter().all(digits)
    });
    (code.unwrap_or("5.0.0").to_owned(), reply)
}

fn text(hold: &Hold, host: &str, url: Option<&str>, now: i64) -> String {
    let said = said(hold);
    let subject: String = ascii(hold.subject.as_deref().unwrap_or("(no subject)")).chars().take(MAX_SUBJECT).collect();
    let boundary = format!("=_tollgate_{}", hold.id);
    let id = hold.message_id.as_deref().map(ascii);
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push_str("\r\n");
    };
    line(&format!("From: \"Tollgate\" <tollgate@{host}>"));
    line(&format!("To: <{}>", hold.account));
    line(&format!("Subject: {}: {subject}", said.title));
    line(&format!("Date: {}", date(now)));
    line(&format!("Message-ID: <report.{}.{}@{host}>", hold.id, hold.state.name()));
    if let Some(id) = &id {
        line(&format!("In-Reply-To: {id}"));
        line(&format!("References: {id}"));
    }
    line("Auto-Submitted: auto-replied");
    line("MIME-Version: 1.0");
    line("Content-Type: multipart/report; report-type=delivery-status;");
    line(&format!(" boundary=\"{boundary}\""));
    line("");
    line(&format!("--{boundary}"));
    line("Content-Type: text/plain; charset=us-ascii");
    line("");
    line(said.text);
    line("");
    line(&format!("Hold: {}", hold.id));
    line(&format!("Subject: {subject}"));
    for path in &hold.envelope.forward_paths {
        line(&format!("To: {}", ascii(path.as_str())));
    }
    if let Some(detail) = hold.detail.as_deref().filter(|d| !d.trim().is_empty()) {
        line(&format!("Reason: {}", ascii(detail)));
    }
    if let Some(url) = url {
        line("");
        line("A copy that your mail program put into Sent meanwhile is not kept.");
        line("The message itself can be read here:");
        line(&format!("{url}/held/{}", hold.id));
    }
    line("");
    line(&format!("--{boundary}"));
    line("Content-Type: message/delivery-status");
    line("");
    line(&format!("Reporting-MTA: dns; {host}"));
    line(&format!("Arrival-Date: {}", date(hold.held_at)));
    line(&format!("X-Tollgate-Hold: {}", hold.id));
    line(&format!("X-Tollgate-State: {}", hold.state.name()));
    for path in &hold.envelope.forward_paths {
        line("");
        line(&format!("Final-Recipient: rfc822; {}", ascii(path.as_str())));
        line(&format!("Action: {}", said.action));
        line(&format!("Status: {}", said.status));
        line(folded("Diagnostic-Code:", &said.diagnostic).trim_end());
    }
    line("");
    line(&format!("--{boundary}"));
    line("Content-Type: text/rfc822-headers");
    line("");
    if let Some(id) = &id {
        line(&format!("Message-ID: {id}"));
    }
    line(&format!("Subject: {subject}"));
    line("");
    line(&format!("--{boundary}--"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_the_providers_where_it_gave_one() {
        assert_eq!(enhanced("550 5.1.1 no such user"), ("5.1.1".to_owned(), true));
        assert_eq!(enhanced("554 refused"), ("5.0.0".to_owned(), true));
        assert_eq!(enhanced("550 4.2.1 odd"), ("5.0.0".to_owned(), true));
        assert_eq!(enhanced("the submitting key was revoked"), ("5.0.0".to_owned(), false));
    }
}
