//! Pages as HTML, without a line of script in them; those that ask for a
//! passkey name the one script file.
//!
//! Promises: every value of a mail is escaped (maud does) and shown with
//! nothing hidden in it. Doesn't know: who may see a page.

pub(super) mod approvers;
mod ask;
pub(super) mod batch;
pub(super) mod decision;
mod deletion;
pub(super) mod list;
pub(super) mod message;
mod parts;
pub(super) mod reading;
pub(super) mod sign_in;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, html};

use super::Services;
use super::passkey::Passkey;
use super::session::Session;
use crate::config::ApprovalMode;
use crate::floor::ledger::Entry;
use crate::floor::submission::State;
use crate::mail::mime::decode;
use crate::mail::mime::visible::{Shape, reveal};
use crate::outbox::Hold;

/// What every page of a signed-in person knows.
pub(super) struct Frame<'a> {
    pub(super) services: &'a Services,
    pub(super) session: &'a Session,
    pub(super) now: i64,
    /// What approvals need.
    pub(super) mode: ApprovalMode,
    /// The host name of the pages.
    pub(super) rp_id: &'a str,
    /// Who may approve.
    pub(super) passkeys: Vec<Passkey>,
    /// What changed about that of late.
    pub(super) changes: Vec<Entry>,
    /// Whether a PIN is set.
    pub(super) has_pin: bool,
    /// The link's path, where one led here and nobody is signed in.
    pub(super) link: Option<String>,
}

/// A place in the navigation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Here {
    Held,
    History,
    Approvers,
    Message,
    Decision,
}

impl Frame<'_> {
    fn zone(&self) -> TimeZone {
        let name = self.services.accounts.account(&self.session.account).map(|a| a.timezone.clone());
        name.and_then(|n| TimeZone::get(&n).ok()).unwrap_or(TimeZone::UTC)
    }

    /// A time in the account's zone.
    fn time(&self, seconds: i64) -> Markup {
        let Ok(stamp) = Timestamp::from_second(seconds) else { return html! { "unknown time" } };
        let local = stamp.to_zoned(self.zone());
        html! { time datetime=(stamp) { (local.strftime("%a %-d %b %Y, %H:%M %Z")) } }
    }

    /// How far away a time is, roughly.
    fn distance(&self, seconds: i64) -> String {
        let away = seconds.saturating_sub(self.now);
        let (n, unit) = match away.unsigned_abs() {
            s @ 0..60 => (s, "second"),
            s @ 60..3600 => (s / 60, "minute"),
            s @ 3600..172_800 => (s / 3600, "hour"),
            s => (s / 86_400, "day"),
        };
        let plural = if n == 1 { "" } else { "s" };
        if away >= 0 { format!("in {n} {unit}{plural}") } else { format!("{n} {unit}{plural} ago") }
    }

    /// The name of a key, or its id.
    fn key_name(&self, hold: &Hold) -> String {
        let keys = self.services.accounts.list_keys(Some(&self.session.account));
        let name = keys.into_iter().find(|k| k.id == hold.key).map(|k| k.name);
        reveal(&name.unwrap_or_else(|| hold.key.to_string()), Shape::Line).text
    }

    fn layout(&self, title: &str, here: Here, body: &Markup) -> Markup {
        let nav = |to: &str, text: &str, this: bool| {
            html! { a href=(to) aria-current=[this.then_some("page")] { (text) } }
        };
        if self.link.is_some() {
            return shell(
                title,
                &html! {
                    header.top { span.mark { "Tollgate" } span.who { "For " (self.session.account) ", by a notice's link" } }
                    main #main { (body) }
                },
            );
        }
        shell(
            title,
            &html! {
                header.top {
                    a.mark href="/" { "Tollgate" }
                    nav aria-label="Main" {
                        (nav("/", "Held", here == Here::Held))
                        (nav("/history", "History", here == Here::History))
                        (nav("/approvers", "Approvers", here == Here::Approvers))
                    }
                    form.out method="post" action="/sign-out" {
                        input type="hidden" name="csrf" value=(self.session.csrf);
                        span.who title="Signed in as" { (self.session.account) }
                        button.quiet type="submit" { "Sign out" }
                    }
                }
                main #main { (body) }
            },
        )
    }
}

fn shell(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Tollgate" }
                link rel="stylesheet" href="/style.css";
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (body)
            }
        }
    }
}

/// A short page that says one thing.
pub(super) fn notice(heading: &str, text: &str, to: &str, link: &str) -> String {
    let body = html! {
        main #main .narrow {
            p.mark { "Tollgate" }
            h1 { (heading) }
            p { (text) }
            p { a.button href=(to) { (link) } }
        }
    };
    shell(heading, &body).into_string()
}

/// The subject of a hold, decoded, nothing hidden.
fn subject(hold: &Hold) -> String {
    let decoded = hold.subject.as_deref().map(|s| decode::words(s.as_bytes()).value).unwrap_or_default();
    let shown = reveal(decoded.trim(), Shape::Line).text;
    if shown.is_empty() { "(no subject)".to_owned() } else { shown }
}

/// The state as a badge.
fn badge(state: State) -> Markup {
    let (class, text) = match state {
        State::Held => ("wait", "Waits for you"),
        State::Approved => ("go", "Approved, being sent"),
        State::Sending => ("go", "Being sent"),
        State::Sent => ("done", "Sent"),
        State::Failed => ("bad", "Failed"),
        State::Unknown => ("bad", "Outcome unknown"),
        State::Denied => ("off", "Denied"),
        State::Expired => ("off", "Expired"),
        State::Withdrawn => ("off", "Withdrawn"),
    };
    html! { span class={ "badge " (class) } { (text) } }
}

/// `1 234 567 octets (1.2 MB)`.
fn octets(n: u64) -> String {
    let exact = grouped(n);
    // Only for reading; the exact number stands beside it.
    let rounded = |unit: u64, name: &str| {
        let tenths = n.saturating_mul(10) / unit;
        format!("{exact} octets ({}.{} {name})", tenths / 10, tenths % 10)
    };
    match n {
        1 => "1 octet".to_owned(),
        0..1_000 => format!("{exact} octets"),
        1_000..1_000_000 => rounded(1_000, "kB"),
        _ => rounded(1_000_000, "MB"),
    }
}

/// Digits in groups of three, with a narrow blank.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// `1 recipient`, `2 recipients`.
fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_and_readable() {
        assert_eq!(octets(1), "1 octet");
        assert_eq!(octets(999), "999 octets");
        assert_eq!(octets(1_234_567), "1\u{202f}234\u{202f}567 octets (1.2 MB)");
    }

    #[test]
    fn a_notice_escapes_what_it_says() {
        let html = notice("<h>", "<script>", "/\"x", "y");
        assert!(!html.contains("<script>") && html.contains("&lt;script&gt;") && html.contains("/&quot;x"));
    }
}
