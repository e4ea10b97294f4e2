//! How providers that people really use differ from the plain one.
//!
//! Promises: every difference was seen at that provider and reported in
//! public; what nobody reported is as at the plain provider. Doesn't know:
//! faults, which come on top of any character.
//!
//! Where it was seen: Gmail, developers.google.com/gmail/imap/imap-extensions
//! and the API's `ImapSettings`, owncloud-archive/mail#664 and #1333,
//! modern-email/defects#18, zone-eu/wildduck#35 and #943. Microsoft 365,
//! jstedfast/MailKit#849, #1282 and #2016, RainLoop/rainloop-webmail#686,
//! mscdex/node-imap#214, #602 and #689, simonrob/email-oauth2-proxy#191.
//! iCloud, nextcloud/mail#3401, modern-email/defects#36, zammad/zammad#4589,
//! Cocoanetics/SwiftMail#30. Fastmail runs Cyrus (pimutils/vdirsyncer#571,
//! N0ury/ImapNote2#3, the Cyrus documentation).

use super::state::{SPECIAL, canonical};

/// Whose conduct the embedded provider shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Character {
    /// Nobody's in particular: by the book, with the extensions of
    /// [`Caps`](super::provider::Caps).
    #[default]
    Plain,
    /// Labels that look like mailboxes: everything but Trash and Spam is in
    /// All Mail too; `\Deleted` takes a label away at once; what enters Trash
    /// or Spam leaves all else; nothing is ever recent; 15 connections.
    Gmail,
    /// No keywords but `$MDNSent`: a command with another is BAD. INBOX is
    /// listed as `Inbox`.
    Microsoft365,
    /// No MOVE, no LITERAL+, no special use; FETCH RFC822 is answered without
    /// it; names are listed that can't be opened.
    Icloud,
    /// Everything beneath `INBOX.`, with `.` between levels.
    Fastmail,
}

/// Mailboxes that a character has from the start, by their names on the wire
/// with `/` between levels, and their attributes.
type Mailboxes = &'static [(&'static str, &'static str)];

const GMAIL: Mailboxes = &[
    ("[Gmail]/All Mail", "\\All"),
    ("[Gmail]/Drafts", "\\Drafts"),
    ("[Gmail]/Important", "\\Important"),
    ("[Gmail]/Sent Mail", "\\Sent"),
    ("[Gmail]/Spam", "\\Junk"),
    ("[Gmail]/Starred", "\\Flagged"),
    ("[Gmail]/Trash", "\\Trash"),
];
const MICROSOFT: Mailboxes = &[
    ("Archive", ""),
    ("Deleted", "\\Trash"),
    ("Drafts", "\\Drafts"),
    ("Junk", "\\Junk"),
    ("Notes", ""),
    ("Outbox", ""),
    ("Sent", "\\Sent"),
];
const ICLOUD: Mailboxes =
    &[("Archive", ""), ("Deleted Messages", ""), ("Drafts", ""), ("Junk", ""), ("Notes", ""), ("Sent Messages", "")];
const FASTMAIL: Mailboxes =
    &[("Archive", "\\Archive"), ("Drafts", "\\Drafts"), ("Junk", "\\Junk"), ("Sent", "\\Sent"), ("Trash", "\\Trash")];

/// Everything but spam and trash, at Gmail.
pub(crate) const ALL_MAIL: &str = "[Gmail]/All Mail";
/// What Gmail keeps out of it.
pub(crate) const OUT_OF_ALL: [&str; 2] = ["[Gmail]/Spam", "[Gmail]/Trash"];

/// Before and after login; without those of the plain provider's list.
const GMAIL_CAPS: [&str; 2] = [
    "IMAP4rev1 UNSELECT IDLE NAMESPACE QUOTA ID XLIST CHILDREN X-GM-EXT-1 XYZZY SASL-IR AUTH=XOAUTH2 AUTH=PLAIN \
     AUTH=PLAIN-CLIENTTOKEN AUTH=OAUTHBEARER",
    "IMAP4rev1 UNSELECT IDLE NAMESPACE QUOTA ID XLIST CHILDREN X-GM-EXT-1 UIDPLUS COMPRESS=DEFLATE ENABLE MOVE \
     CONDSTORE ESEARCH UTF8=ACCEPT LIST-EXTENDED LIST-STATUS LITERAL- APPENDLIMIT=35651584",
];
const MICROSOFT_CAPS: [&str; 2] = [
    "IMAP4 IMAP4rev1 AUTH=PLAIN AUTH=XOAUTH2 SASL-IR UIDPLUS ID UNSELECT CHILDREN IDLE NAMESPACE LITERAL+",
    "IMAP4 IMAP4rev1 AUTH=PLAIN AUTH=XOAUTH2 SASL-IR UIDPLUS MOVE ID UNSELECT CLIENTACCESSRULES \
     CLIENTNETWORKPRESENCELOCATION BACKENDAUTHENTICATE CHILDREN IDLE NAMESPACE LITERAL+",
];
const ICLOUD_CAPS: [&str; 2] = [
    "XAPPLEPUSHSERVICE IMAP4 IMAP4rev1 SASL-IR AUTH=ATOKEN AUTH=PLAIN",
    "XAPPLEPUSHSERVICE IMAP4 IMAP4rev1 CONDSTORE ENABLE QRESYNC QUOTA NAMESPACE UIDPLUS CHILDREN BINARY UNSELECT \
     SORT CATENATE URLAUTH LANGUAGE ESEARCH ESORT THREAD=ORDEREDSUBJECT THREAD=REFERENCES CONTEXT=SEARCH \
     CONTEXT=SORT WITHIN SASL-IR SEARCHRES METADATA ID XMSEARCH X-SUN-SORT ANNOTATE-EXPERIMENT-1 X-UNAUTHENTICATE \
     X-SUN-IMAP XUM1 MULTISEARCH IDLE LIST-STATUS",
];
const FASTMAIL_CAPS: [&str; 2] = [
    "IMAP4rev1 LITERAL+ ID ENABLE SASL-IR AUTH=PLAIN",
    "IMAP4rev1 LITERAL+ ID ENABLE ACL RIGHTS=kxte QUOTA NAMESPACE UIDPLUS UNSELECT CHILDREN MULTIAPPEND BINARY \
     CATENATE CONDSTORE ESEARCH SORT SORT=MODSEQ THREAD=ORDEREDSUBJECT THREAD=REFERENCES LIST-EXTENDED WITHIN QRESYNC \
     XLIST MOVE SPECIAL-USE URLAUTH COMPRESS=DEFLATE IDLE",
];

/// Most connections of one user at Gmail.
const GMAIL_CONNECTIONS: usize = 15;

impl Character {
    /// Every character.
    pub const ALL: [Character; 5] =
        [Character::Plain, Character::Gmail, Character::Microsoft365, Character::Icloud, Character::Fastmail];

    /// What CAPABILITY says; none where [`Caps`](super::provider::Caps) does.
    pub(crate) fn capabilities(self, signed_in: bool) -> Option<&'static str> {
        let list = match self {
            Character::Plain => return None,
            Character::Gmail => GMAIL_CAPS,
            Character::Microsoft365 => MICROSOFT_CAPS,
            Character::Icloud => ICLOUD_CAPS,
            Character::Fastmail => FASTMAIL_CAPS,
        };
        Some(list[usize::from(signed_in)])
    }

    /// Whether it has an extension after login; none where
    /// [`Caps`](super::provider::Caps) says so.
    pub(crate) fn has(self, name: &str) -> Option<bool> {
        Some(self.capabilities(true)?.split(' ').any(|c| c == name))
    }

    /// The greeting after `* OK `; none where it holds the capabilities.
    pub(crate) fn greeting(self) -> Option<&'static str> {
        match self {
            Character::Plain | Character::Icloud | Character::Fastmail => None,
            Character::Gmail => Some("Gimap ready for requests from 127.0.0.1 demo"),
            Character::Microsoft365 => Some("The Microsoft Exchange IMAP4 service is ready. [ZABlAG0AbwA=]"),
        }
    }

    /// The text of the OK to a login, and whether the capabilities come first
    /// as a response of their own; none where they stand in that OK.
    pub(crate) fn welcome(self, login: &str) -> Option<(String, bool)> {
        match self {
            Character::Plain | Character::Fastmail => None,
            Character::Gmail => Some((format!("{login} authenticated (Success)"), true)),
            Character::Microsoft365 => Some(("LOGIN completed.".to_owned(), false)),
            Character::Icloud => Some((format!("user {login} authenticated"), false)),
        }
    }

    /// Most connections of a user, and how one more is refused.
    pub(crate) fn connections(self) -> (usize, &'static str) {
        match self {
            Character::Gmail => (GMAIL_CONNECTIONS, "[ALERT] Too many simultaneous connections. (Failure)"),
            Character::Plain | Character::Microsoft365 | Character::Icloud | Character::Fastmail => {
                (usize::MAX, "[LIMIT] too many connections")
            }
        }
    }

    /// The mailboxes that a new user has beside INBOX, with their special use.
    pub(crate) fn mailboxes(self) -> Mailboxes {
        match self {
            Character::Plain => &SPECIAL,
            Character::Gmail => GMAIL,
            Character::Microsoft365 => MICROSOFT,
            Character::Icloud => ICLOUD,
            Character::Fastmail => FASTMAIL,
        }
    }

    /// Names that are listed and can't be opened.
    pub(crate) fn phantoms(self) -> &'static [&'static str] {
        match self {
            Character::Icloud => &["Notes/Shared"],
            Character::Plain | Character::Gmail | Character::Microsoft365 | Character::Fastmail => &[],
        }
    }

    /// The attributes that LIST has for a mailbox beside those of any.
    pub(crate) fn attributes(self, name: &str) -> Option<&'static str> {
        if self == Character::Icloud && name == "INBOX" {
            return Some("\\Noinferiors");
        }
        self.mailboxes().iter().find(|(n, _)| *n == name).map(|(_, special)| *special).filter(|s| !s.is_empty())
    }

    /// Whether clients may make keywords; else those that exist.
    pub(crate) fn keywords(self) -> Option<&'static [&'static str]> {
        match self {
            Character::Microsoft365 => Some(&["$MDNSent"]),
            Character::Plain | Character::Gmail | Character::Icloud | Character::Fastmail => None,
        }
    }

    /// Whether it refuses a flag or keyword.
    pub(crate) fn refuses(self, flag: &str) -> bool {
        let known = |list: &[&str]| list.iter().any(|k| k.eq_ignore_ascii_case(flag));
        !flag.starts_with('\\') && self.keywords().is_some_and(|list| !known(list))
    }

    /// Whether mailboxes are labels of one set of messages.
    pub(crate) fn labels(self) -> bool {
        self == Character::Gmail
    }

    /// Whether FETCH leaves RFC822 out.
    pub(crate) fn forgets_rfc822(self) -> bool {
        self == Character::Icloud
    }

    /// The delimiter on the wire.
    pub(crate) fn delimiter(self) -> char {
        if self == Character::Fastmail { '.' } else { super::state::DELIMITER }
    }

    /// The personal namespace's prefix.
    pub(crate) fn prefix(self) -> &'static str {
        if self == Character::Fastmail { "INBOX." } else { "" }
    }

    /// A mailbox's name on the wire.
    pub(crate) fn wire_name(self, stored: &str) -> String {
        match self {
            Character::Fastmail if stored != "INBOX" => format!("INBOX.{}", stored.replace('/', ".")),
            Character::Microsoft365 if stored == "INBOX" => "Inbox".to_owned(),
            _ => stored.to_owned(),
        }
    }

    /// A mailbox's name in store; a name outside of what there can be stays
    /// one that doesn't exist.
    pub(crate) fn stored_name(self, wire: &str) -> String {
        if self != Character::Fastmail {
            return canonical(wire);
        }
        match wire.get(..6) {
            Some(head) if head.eq_ignore_ascii_case("INBOX.") => wire[6..].replace('.', "/"),
            _ if wire.eq_ignore_ascii_case("INBOX") => "INBOX".to_owned(),
            // RFC 3501 §5.1.3 names: no level can hold the delimiter.
            _ => format!("/{wire}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_the_wire_as_they_were() {
        for character in Character::ALL {
            for name in ["INBOX", "Archive", "A/B"] {
                assert_eq!(character.stored_name(&character.wire_name(name)), name, "{character:?}");
            }
            assert_eq!(character.stored_name("inbox"), "INBOX", "{character:?}");
        }
        assert_eq!(Character::Fastmail.wire_name("A/B"), "INBOX.A.B");
        assert_ne!(Character::Fastmail.stored_name("Archive"), "Archive");
    }

    #[test]
    fn only_microsoft_refuses_keywords() {
        for character in Character::ALL {
            let refuses = character == Character::Microsoft365;
            assert_eq!(character.refuses("$label1"), refuses, "{character:?}");
            assert!(!character.refuses("$mdnsent") && !character.refuses("\\Seen"), "{character:?}");
        }
    }
}
