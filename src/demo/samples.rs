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
const INBOX: &[&[u8]] = samples![];

/// What the person wrote before: it makes some senders known.
const SENT: &[&[u8]] = samples![];

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
