//! APPEND of an agent: a draft, read whole before the provider sees an octet.
//!
//! Promises: what reaches the provider is MIME that every reader reads the
//! same way, of the account's own addresses, and loads, runs, asks and
//! schedules nothing; it is remembered as the agent's on disk before that.
//! Doesn't know: what becomes of it.

use crate::imap::mirror::Mirror;
use crate::imap::session::{Fail, Session};
use crate::mail::address::Address;
use crate::mail::mime::MessageView;
use crate::mail::mime::Warning;
use crate::outbox::strict::{Checker, Rules};

/// Largest draft of an agent, in octets.
pub const MAX_AGENT_DRAFT: u64 = 10 * 1024 * 1024;

/// Why a draft is refused; `None`: it is fine.
fn fault(octets: &[u8], rules: Rules) -> Option<String> {
    if has_bare_line_end(octets) {
        return Some("lines end in CRLF".to_owned());
    }
    let mut checker = Checker::new(rules);
    checker.feed(octets);
    if let Err(refusal) = checker.finish() {
        return Some(refusal.to_string());
    }
    let view = MessageView::of(octets);
    let acts = view.warnings.iter().find(|w| {
        matches!(
            w,
            Warning::RemoteContent { .. }
                | Warning::ActiveContent { .. }
                | Warning::CalendarMethod { .. }
                | Warning::ExternalBody { .. }
                | Warning::ReceiptRequest { .. }
                | Warning::TooManyParts
                | Warning::TextCut { .. }
        )
    });
    if let Some(warning) = acts {
        return Some(warning.to_string());
    }
    // A calendar part may have its METHOD inside alone (RFC 5546 §1.4).
    let method = |text: &String| text.lines().any(|l| l.get(..7).is_some_and(|l| l.eq_ignore_ascii_case("METHOD:")));
    let calendar =
        |kind: &str| kind.eq_ignore_ascii_case("text/calendar") || kind.eq_ignore_ascii_case("application/ics");
    let schedules = view.parts.iter().any(|p| calendar(&p.content_type) && p.text.as_ref().is_none_or(method));
    schedules.then(|| "a calendar part acts on the recipient's calendar".to_owned())
}

/// Whether a CR or a LF stands without the other.
fn has_bare_line_end(octets: &[u8]) -> bool {
    memchr::memchr2_iter(b'\r', b'\n', octets).any(|at| match octets[at] {
        b'\r' => octets.get(at + 1) != Some(&b'\n'),
        _ => at == 0 || octets[at - 1] != b'\r',
    })
}

impl Session {
    /// Checks a draft and remembers it.
    pub(in crate::imap) async fn take_draft(&self, mirror: &Mirror, octets: &[u8]) -> Result<(), Fail> {
        let addresses = mirror.facts.addresses.iter().map(Address::canonical).collect();
        let rules = Rules { addresses, eight_bit: true, smtputf8: true };
        if let Some(why) = fault(octets, rules) {
            return Err(Fail::No("CANNOT", format!("this can't be a draft: {why}")));
        }
        let outbox = mirror.outbox.get().ok_or_else(|| Fail::No("UNAVAILABLE", "the account is starting".into()))?;
        let key = &self.signed()?.principal.key;
        outbox.drafted(&mirror.account, key, octets).await.map_err(|e| {
            tracing::error!(account = %mirror.account, "a draft can't be remembered: {e}");
            Fail::No("UNAVAILABLE", "the draft can't be remembered now".into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: &str) -> Option<String> {
        let addresses = ["you@example.org".to_owned()].into();
        fault(message.as_bytes(), Rules { addresses, eight_bit: true, smtputf8: true })
    }

    fn with(fields: &str, body: &str) -> Option<String> {
        refused(&format!("From: you@example.org\r\nDate: Mon, 30 Nov 2026 10:00:00 +0000\r\n{fields}\r\n{body}\r\n"))
    }

    #[test]
    fn a_plain_draft_and_one_in_html_are_fine() {
        assert_eq!(with("To: ann@example.com\r\nSubject: Hi\r\n", "Hello."), None);
        let html = "MIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n";
        assert_eq!(with(html, "<p>Grüße, <a href=\"https://example.com/\">see</a></p>"), None);
    }

    #[test]
    fn what_loads_runs_asks_or_schedules_is_refused() {
        let html = "MIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\n";
        let calendar =
            |parameter: &str| format!("MIME-Version: 1.0\r\nContent-Type: text/calendar; charset=utf-8{parameter}\r\n");
        for (fields, body) in [
            (html.to_owned(), "<img src=\"https://example.com/p.png\">"),
            (html.to_owned(), "<p style=\"background:url(https://example.com/p)\">x</p>"),
            (html.to_owned(), "<script>x()</script>"),
            ("Disposition-Notification-To: you@example.org\r\n".to_owned(), "x"),
            ("Return-Receipt-To: you@example.org\r\n".to_owned(), "x"),
            ("Bcc: ann@example.com\r\n".to_owned(), "x"),
            ("X-Tollgate-Lane: push\r\n".to_owned(), "x"),
            (calendar("; method=REQUEST"), "BEGIN:VCALENDAR\r\nEND:VCALENDAR"),
            (calendar(""), "BEGIN:VCALENDAR\r\nmethod:REQUEST\r\nEND:VCALENDAR"),
            ("MIME-Version: 1.0\r\nContent-Type: message/external-body; access-type=URL\r\n".to_owned(), "x"),
            ("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n".to_owned(), "--b\r\n\r\nno end"),
        ] {
            assert!(with(&fields, body).is_some(), "{fields}{body}");
        }
        assert!(refused("From: eve@example.com\r\nDate: Mon, 30 Nov 2026 10:00:00 +0000\r\n\r\nx\r\n").is_some());
        for bare in ["a\nb", "a\rb", "\n", "a\r"] {
            assert!(with("", bare).is_some(), "{bare:?}");
        }
    }
}
