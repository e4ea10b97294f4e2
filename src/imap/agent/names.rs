//! What mailboxes are for, as far as an agent's commands depend on it.
//!
//! Promises: a name that looks like one of ours, or like one that providers
//! and clients act on, is never a place for an agent to put things, however
//! it is written. Doesn't know: grants.

use crate::mail::mutf7;
use crate::perceive::skeleton;

/// Where nothing is ever put by COPY, MOVE or CREATE: ours, and those whose
/// content is sent, shown as the person's own, or taken as a pattern.
const NEVER: [&str; 14] = [
    "INBOX",
    "Lanes",
    "Tollgate",
    "Templates",
    "Outbox",
    "Scheduled",
    "Drafts",
    "Draft",
    "Sent",
    "Sent Items",
    "Sent Messages",
    "Sent Mail",
    "Snoozed",
    "Send Later",
];
/// Where messages are out of sight, where the provider doesn't say so itself.
const JUNK: [&str; 4] = ["Junk", "Spam", "Junk Email", "Bulk Mail"];
/// Attributes (RFC 6154 §2) of mailboxes where nothing is ever put.
const NEVER_ATTRIBUTES: [&str; 8] =
    ["\\drafts", "\\sent", "\\all", "\\flagged", "\\important", "\\scheduled", "\\noselect", "\\nonexistent"];

/// What a mailbox is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::imap) enum Purpose {
    /// Nothing is put there by an agent.
    Never,
    /// Out of the person's sight: a person is asked.
    Junk,
    /// A matter of grants.
    Ordinary,
}

/// A mailbox's name as a person writes it; `None` for what is no name. A
/// delimiter at the end names no other mailbox (RFC 9051 §6.3.4).
pub(in crate::imap) fn decoded(wire: &[u8], delimiter: char) -> Option<String> {
    let name = mutf7::decode(wire)?;
    let name = name.trim_end_matches(delimiter);
    (!name.is_empty()).then(|| name.to_owned())
}

/// What a mailbox is for by its name alone.
pub(in crate::imap) fn by_name(name: &str, delimiter: char) -> Purpose {
    let parts: Vec<String> = name.split(delimiter).map(skeleton).collect();
    let one_of = |list: &[&str], part: &String| list.iter().any(|reserved| skeleton(reserved) == *part);
    let inbox = skeleton("INBOX");
    // A personal namespace may lie beneath INBOX (RFC 2342 §5).
    let below = if parts.len() > 1 && parts[0] == inbox { &parts[1..] } else { &parts[..] };
    if below.iter().any(|part| part.is_empty() || one_of(&NEVER, part)) {
        Purpose::Never
    } else if below.iter().any(|part| one_of(&JUNK, part)) {
        Purpose::Junk
    } else {
        Purpose::Ordinary
    }
}

/// What a mailbox is for by what the provider says of it, in lower case.
pub(in crate::imap) fn by_attributes(attributes: &[String]) -> Purpose {
    if attributes.iter().any(|a| NEVER_ATTRIBUTES.contains(&a.as_str())) {
        Purpose::Never
    } else if attributes.iter().any(|a| a == "\\junk") {
        Purpose::Junk
    } else {
        Purpose::Ordinary
    }
}

impl Purpose {
    /// The stricter of two.
    pub(in crate::imap) fn or(self, other: Purpose) -> Purpose {
        match (self, other) {
            (Purpose::Never, _) | (_, Purpose::Never) => Purpose::Never,
            (Purpose::Junk, _) | (_, Purpose::Junk) => Purpose::Junk,
            (Purpose::Ordinary, Purpose::Ordinary) => Purpose::Ordinary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_ours_are_no_places_for_an_agent() {
        for name in [
            "INBOX",
            "lanes/x",
            "Tollgate",
            "Tol1gate",
            "TOLLGATE/Outbox",
            "Оutbox",
            "Work/Outbox",
            "INBOX.",
            "0utbox",
            "Drafts",
            "[Gmail]/Sent Mail",
            "Sche\u{200b}duled",
            "lNBOX",
            "|NB0X",
            "Templates",
            "a//b",
        ] {
            assert_eq!(by_name(name, '/'), Purpose::Never, "{name}");
        }
        assert_eq!(by_name("INBOX.Outbox", '.'), Purpose::Never);
        assert_eq!(by_name("INBOX.lanes.mine", '.'), Purpose::Never);
        for name in ["Archive", "Work/2026", "Presentations", "Trash", "Outboxes", "Büro"] {
            assert_eq!(by_name(name, '/'), Purpose::Ordinary, "{name}");
        }
        assert_eq!(by_name("INBOX.Archive", '.'), Purpose::Ordinary);
        for name in ["Junk", "junk", "[Gmail]/Spam", "JUNK E-MAIL"] {
            assert_eq!(by_name(name, '/'), Purpose::Junk, "{name}");
        }
    }

    #[test]
    fn what_the_provider_says_counts_too() {
        let of = |a: &str| by_attributes(&[a.to_owned()]);
        assert_eq!(of("\\junk"), Purpose::Junk);
        assert_eq!(of("\\trash"), Purpose::Ordinary);
        assert_eq!(of("\\sent"), Purpose::Never);
        assert_eq!(by_name("Archive", '/').or(of("\\drafts")), Purpose::Never);
        assert_eq!(by_name("Outbox", '/').or(of("\\junk")), Purpose::Never);
    }

    #[test]
    fn one_mailbox_has_one_name() {
        assert_eq!(decoded(b"Private/", '/').as_deref(), Some("Private"));
        assert_eq!(decoded(b"Priv&AGE-te", '/'), None);
        assert_eq!(decoded(b"/", '/'), None);
    }
}
