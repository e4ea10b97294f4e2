//! The sample mail: about twenty messages over all five lanes.
//!
//! The files are templates (see [`super::dates::fill`]) with LF line ends;
//! they become CRLF when they are seeded.

use std::collections::BTreeSet;

use super::dates::{InternalDate, fill, sample_time};
use super::state::{Refusal, User};

macro_rules! samples {
    ($($name:literal),* $(,)?) => { &[$(include_bytes!(concat!("samples/", $name, ".eml"))),*] };
}

/// What lies in INBOX.
const INBOX: &[&[u8]] = samples![
    "info-de-versand",
    "info-receipt",
    "info-statement",
    "meeting-de-termin",
    "meeting-fr-rendez-vous",
    "meeting-invitation",
    "push-board-figures",
    "push-code",
    "push-ko-contract",
    "push-payment-failed",
    "queue-delivery-failure",
    "queue-first-contact",
    "queue-forged-stamp",
    "queue-ja-question",
    "queue-list-post",
    "queue-quote-attachment",
    "queue-spoofed-name",
    "silent-fr-promo",
    "silent-ko-ad",
    "silent-sale",
];

/// What the person wrote before: it makes some senders known.
const SENT: &[&[u8]] = samples!["sent-camille", "sent-jihye", "sent-jonas", "sent-mina"];

/// The INBOX samples with dates before `now`, oldest first.
pub(crate) fn inbox(now: i64) -> Vec<Vec<u8>> {
    dated(INBOX, now).into_iter().map(|(_, octets)| octets).collect()
}

fn dated(templates: &[&[u8]], now: i64) -> Vec<(i64, Vec<u8>)> {
    let mut all: Vec<_> = templates.iter().map(|t| (sample_time(t, now), to_crlf(&fill(t, now)))).collect();
    all.sort_by_key(|(time, _)| *time);
    all
}

fn to_crlf(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 32);
    for line in text.split_inclusive(|b| *b == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                out.extend_from_slice(line);
                out.extend_from_slice(b"\r\n");
            }
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// Fills the mailboxes of a new user.
pub(crate) fn seed(user: &mut User, now: i64) -> Result<(), Refusal> {
    let seen = BTreeSet::from(["\\Seen".to_owned()]);
    for (mailbox, templates, flags) in [("Sent", SENT, seen), ("INBOX", INBOX, BTreeSet::new())] {
        for (unix, octets) in dated(templates, now) {
            user.add(mailbox, octets.into(), flags.clone(), InternalDate { unix, offset_minutes: 0 })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::parts::Part;

    const NOW: i64 = 1_790_000_000;

    #[test]
    fn samples_are_recent_strict_mail() {
        let all = [dated(INBOX, NOW), dated(SENT, NOW)].concat();
        assert!(inbox(NOW).len() >= 20);
        for (time, octets) in all {
            let text = String::from_utf8(octets.clone()).unwrap();
            assert!(time < NOW && time > NOW - 30 * 86_400, "{text}");
            assert!(!text.contains("{{") && !text.contains("}}"), "{text}");
            assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "{text}");
            assert!(text.lines().all(|line| line.len() <= 998), "{text}");
            let parsed = mail_parser::MessageParser::default().parse(&octets).unwrap();
            assert_eq!(parsed.date().unwrap().to_timestamp(), time, "{text}");
            assert!(parsed.from().is_some() && parsed.to().is_some() && parsed.subject().is_some(), "{text}");
            assert!(!parsed.subject().unwrap().contains('\u{fffd}'), "{text}");
            assert_eq!(parsed.parts.iter().filter(|p| p.is_encoding_problem).count(), 0, "{text}");
        }
    }

    #[test]
    fn samples_cover_the_kinds_of_mail() {
        let kinds: BTreeSet<String> = inbox(NOW)
            .iter()
            .map(|m| Part::of(m).kind)
            .map(|kind| String::from_utf8([kind.main, kind.sub].join(&b'/')).unwrap())
            .collect();
        for kind in ["TEXT/PLAIN", "TEXT/HTML", "MULTIPART/ALTERNATIVE", "MULTIPART/MIXED", "MULTIPART/REPORT"] {
            assert!(kinds.contains(kind), "{kind}");
        }
        let forged = inbox(NOW).iter().filter(|m| m.starts_with(b"X-Tollgate-Lane: push")).count();
        assert_eq!(forged, 1);
    }
}
