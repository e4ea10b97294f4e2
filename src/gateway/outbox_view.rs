//! `Tollgate/Outbox`: what an agent's key submitted or asked to remove, and
//! what became of it.
//!
//! Promises: a message there is the submitted octets after a few fields of
//! ours, or a text of ours that names what was asked; a state that changed is
//! a message anew, under a new UID; nothing of another key, and nothing that
//! stands in the messages that were to be removed. Doesn't know: how it is
//! shown.

use std::collections::{BTreeMap, BTreeSet};

use super::removal;
use crate::account::{KeyId, Role};
use crate::floor::submission::State;
use crate::imap::lanes::Place;
use crate::imap::local::ascii;
use crate::imap::ops::internaldate;
use crate::imap::rows::{LocalBody, LocalRow};
use crate::outbox::Hold;

/// What names of these local messages begin with.
pub(super) const PREFIX: &str = "outbox/";
/// Ended submissions of one key that are shown, the newest.
const ENDED_SHOWN: usize = 200;
/// Characters of a line of ours (RFC 5322 §2.1.1 asks for at most 78).
const WIDTH: usize = 76;
/// Longest detail, in characters.
const MAX_DETAIL: usize = 500;

/// The holds to show, oldest first.
pub(super) fn wanted<'h>(holds: &'h [Hold], live: &BTreeSet<KeyId>) -> Vec<&'h Hold> {
    let mut ended: BTreeMap<&KeyId, usize> = BTreeMap::new();
    let mut wanted: Vec<&Hold> = Vec::new();
    for hold in holds.iter().rev().filter(|h| h.role == Role::Agent && live.contains(&h.key)) {
        if hold.state.is_final() {
            let count = ended.entry(&hold.key).or_default();
            *count += 1;
            if *count > ENDED_SHOWN {
                continue;
            }
        }
        wanted.push(hold);
    }
    wanted.reverse();
    wanted
}

/// What the local message of a hold in its state is called.
pub(super) fn name(hold: &Hold) -> String {
    format!("{PREFIX}{}/{}", hold.id, told(hold.state))
}

/// The state as it is told: an attempt is no state of its own, so that
/// retries give no new UIDs.
fn told(state: State) -> &'static str {
    match state {
        State::Sending => State::Approved.name(),
        other => other.name(),
    }
}

/// The local message of a hold.
pub(super) fn row(hold: &Hold, host: &str) -> LocalRow {
    let state = told(hold.state);
    let mut octets = format!("X-Tollgate-Hold: {}\r\nX-Tollgate-State: {state}\r\n", hold.id);
    if hold.state.is_final()
        && let Some(detail) = hold.detail.as_deref().map(str::trim).filter(|d| !d.is_empty())
    {
        octets.push_str(&folded("X-Tollgate-Detail:", detail));
    }
    if !hold.action.sends() {
        octets.push_str(&removal::shown(hold, host, state));
    }
    LocalRow {
        name: name(hold),
        date: internaldate(hold.held_at),
        octets,
        flags: Vec::new(),
        key: Some(hold.key.as_str().to_owned()),
        place: Place::Outbox,
        // What is kept of a removal is a list for people.
        body: hold.action.sends().then_some(LocalBody { blob: hold.blob, length: hold.length }),
    }
}

/// A field in lines of at most [`WIDTH`] characters, where words allow it.
pub(super) fn folded(name: &str, value: &str) -> String {
    let value: String = ascii(value).chars().take(MAX_DETAIL).collect();
    let (mut out, mut line) = (String::new(), name.to_owned());
    for word in value.split_ascii_whitespace() {
        if line.len() + 1 + word.len() > WIDTH && line.trim_start() != "" && line != name {
            out.push_str(&line);
            out.push_str("\r\n");
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    out + &line + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_detail_is_folded_and_makes_no_field() {
        let text = "no\r\nBcc: x ".to_owned() + &"word ".repeat(60);
        let field = folded("X-Tollgate-Detail:", &text);
        assert!(field.lines().all(|l| l.len() <= WIDTH), "{field}");
        assert!(field.lines().skip(1).all(|l| l.starts_with(' ')), "{field}");
        assert!(field.starts_with("X-Tollgate-Detail: no??Bcc: x word"), "{field}");
    }
}
