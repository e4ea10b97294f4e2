//! LIST, LSUB, STATUS, SELECT, CREATE and their kin (RFC 3501 §6.3).

use std::collections::BTreeMap;

use imap_codec::imap_types::mailbox::{ListMailbox, Mailbox};
use imap_codec::imap_types::status::StatusDataItemName;

use super::super::state::User;
use super::selected::Selected;
use super::{Done, Failure, Session, name_of, ok};
use crate::mail::structure;

/// The flags that always exist.
const SYSTEM_FLAGS: &str = "\\Answered \\Flagged \\Deleted \\Seen \\Draft";

impl Session {
    /// Runs `work` on the signed-in user's mail.
    pub(super) fn with_user<T>(&self, work: impl FnOnce(&mut User) -> Result<T, Failure>) -> Result<T, Failure> {
        let login = self.user()?;
        match self.shared.lock().user(&login) {
            Some(user) => work(user),
            None => Err(Failure::No("[UNAVAILABLE] no such user".to_owned())),
        }
    }

    pub(super) fn select(&mut self, mailbox: &Mailbox<'_>, read_only: bool, condstore: bool) -> Done {
        self.user()?;
        // RFC 3501 §6.3.1: a failed SELECT leaves nothing selected.
        self.selected = None;
        let name = self.name_of(mailbox)?;
        let own = self.shared.character.keywords();
        let (selected, text) = self.with_user(|user| {
            let mailbox = user.mailbox(&name)?;
            let selected = Selected::new(mailbox, read_only, condstore);
            let mut keywords: Vec<&String> =
                mailbox.messages.iter().flat_map(|m| &m.flags).filter(|f| !f.starts_with('\\')).collect();
            keywords.sort();
            keywords.dedup();
            let mut keywords: String = keywords.iter().map(|k| format!(" {k}")).collect();
            if let Some(own) = own {
                keywords = own.iter().map(|k| format!(" {k}")).collect();
            }
            let any = if own.is_none() { " \\*" } else { "" };
            let permanent = if read_only { String::new() } else { format!("{SYSTEM_FLAGS}{keywords}{any}") };
            let mut text = format!("* FLAGS ({SYSTEM_FLAGS}{keywords})\r\n");
            text.push_str(&format!("* OK [PERMANENTFLAGS ({permanent})] flags that stay\r\n"));
            text.push_str(&format!("* {} EXISTS\r\n* {} RECENT\r\n", selected.known.len(), selected.recent()));
            if let Some(index) = mailbox.messages.iter().position(|m| !m.flags.contains("\\Seen")) {
                text.push_str(&format!("* OK [UNSEEN {}] first unseen\r\n", index + 1));
            }
            text.push_str(&format!("* OK [UIDVALIDITY {}] UIDs valid\r\n", mailbox.validity));
            text.push_str(&format!("* OK [UIDNEXT {}] next UID\r\n", mailbox.uid_next));
            if condstore {
                text.push_str(&format!("* OK [HIGHESTMODSEQ {}] highest\r\n", mailbox.version + 1));
            }
            Ok((selected, text))
        })?;
        self.push(&text);
        self.selected = Some(selected);
        ok(if read_only { "[READ-ONLY] selected" } else { "[READ-WRITE] selected" })
    }

    /// CLOSE expunges, UNSELECT (RFC 3691) doesn't.
    pub(super) fn close(&mut self, expunge: bool) -> Done {
        if expunge && !self.selected()?.read_only {
            self.remove_deleted(None)?;
        }
        self.selected()?;
        self.selected = None;
        ok("done")
    }

    pub(super) fn create(&mut self, mailbox: &Mailbox<'_>) -> Done {
        let name = self.name_of(mailbox)?;
        self.with_user(|user| Ok(user.create(&name)?))?;
        ok("created")
    }

    pub(super) fn delete(&mut self, mailbox: &Mailbox<'_>) -> Done {
        let name = self.name_of(mailbox)?;
        let gone = self.with_user(|user| {
            let validity = user.mailbox(&name)?.validity;
            user.delete(&name)?;
            Ok(validity)
        })?;
        if self.selected.as_ref().is_some_and(|s| s.validity == gone) {
            self.selected = None;
        }
        self.shared.wake();
        ok("deleted")
    }

    pub(super) fn rename(&mut self, from: &Mailbox<'_>, to: &Mailbox<'_>) -> Done {
        let (from, to) = (self.name_of(from)?, self.name_of(to)?);
        self.with_user(|user| Ok(user.rename(&from, &to)?))?;
        self.shared.wake();
        ok("renamed")
    }

    pub(super) fn subscribe(&mut self, mailbox: &Mailbox<'_>, on: bool) -> Done {
        let name = self.name_of(mailbox)?;
        self.with_user(|user| {
            if on {
                user.mailbox(&name)?;
                user.subscribed.insert(name);
            } else {
                user.subscribed.remove(&name);
            }
            Ok(user.save()?)
        })?;
        ok("done")
    }

    pub(super) fn list(&mut self, reference: &Mailbox<'_>, pattern: &ListMailbox<'_>) -> Done {
        let pattern = full_pattern(reference, pattern)?;
        self.user()?;
        if pattern.is_empty() {
            self.push(&format!("* LIST (\\Noselect) \"{}\" \"\"\r\n", self.shared.character.delimiter()));
            return ok("done");
        }
        let character = self.shared.character;
        let delimiter = character.delimiter();
        let wire = |name: &String| character.wire_name(name);
        let phantoms = character.phantoms().iter().map(|name| (*name).to_owned());
        let names = self.with_user(|user| {
            let all: Vec<String> = user.mailboxes.keys().map(wire).chain(phantoms).collect();
            Ok(with_parents(all.iter(), delimiter))
        })?;
        for (name, exists) in names.iter().filter(|(name, _)| matches(&pattern, name, delimiter)) {
            let mut attributes = vec![if exists.has_children { "\\HasChildren" } else { "\\HasNoChildren" }];
            if !exists.itself {
                attributes.push("\\Noselect");
            }
            attributes.extend(character.attributes(&character.stored_name(name)));
            self.list_line("LIST", &attributes.join(" "), name);
        }
        ok("done")
    }

    pub(super) fn lsub(&mut self, reference: &Mailbox<'_>, pattern: &ListMailbox<'_>) -> Done {
        let pattern = full_pattern(reference, pattern)?;
        let character = self.shared.character;
        let delimiter = character.delimiter();
        let names = self.with_user(|user| {
            let all: Vec<String> = user.subscribed.iter().map(|name| character.wire_name(name)).collect();
            Ok(with_parents(all.iter(), delimiter))
        })?;
        for (name, exists) in names.iter().filter(|(name, _)| matches(&pattern, name, delimiter)) {
            if exists.itself {
                self.list_line("LSUB", "", name);
            } else if pattern.contains('%') {
                // RFC 3501 §6.3.9: a level that only leads to subscribed names.
                self.list_line("LSUB", "\\Noselect", name);
            }
        }
        ok("done")
    }

    fn list_line(&mut self, kind: &str, attributes: &str, name: &str) {
        self.push(&format!("* {kind} ({attributes}) \"{}\" ", self.shared.character.delimiter()));
        structure::string(&mut self.out, name.as_bytes());
        self.push("\r\n");
    }

    pub(super) fn status(&mut self, mailbox: &Mailbox<'_>, items: &[StatusDataItemName]) -> Done {
        let name = self.name_of(mailbox)?;
        let text = self.with_user(|user| {
            let mailbox = user.mailbox(&name)?;
            let mut told = Vec::new();
            for item in items {
                told.push(match item {
                    StatusDataItemName::Messages => format!("MESSAGES {}", mailbox.messages.len()),
                    StatusDataItemName::Recent => {
                        let from = mailbox.recent_from;
                        format!("RECENT {}", mailbox.messages.iter().filter(|m| m.uid >= from).count())
                    }
                    StatusDataItemName::UidNext => format!("UIDNEXT {}", mailbox.uid_next),
                    StatusDataItemName::UidValidity => format!("UIDVALIDITY {}", mailbox.validity),
                    StatusDataItemName::Unseen => format!("UNSEEN {}", mailbox.unseen()),
                    StatusDataItemName::Size => {
                        format!("SIZE {}", mailbox.messages.iter().map(|m| m.octets.len()).sum::<usize>())
                    }
                    StatusDataItemName::Deleted
                    | StatusDataItemName::DeletedStorage
                    | StatusDataItemName::HighestModSeq => {
                        return Err(Failure::Bad("this status item is not offered".to_owned()));
                    }
                });
            }
            Ok(told.join(" "))
        })?;
        self.push("* STATUS ");
        let told = self.shared.character.wire_name(&super::super::state::canonical(&name));
        structure::string(&mut self.out, told.as_bytes());
        self.push(&format!(" ({text})\r\n"));
        ok("done")
    }
}

/// What is known of a name in a listing.
#[derive(Debug, Default, Clone, Copy)]
struct Listed {
    /// It is in the list itself, not only a level above something that is.
    itself: bool,
    has_children: bool,
}

/// The names and every level above them.
fn with_parents<'a>(names: impl Iterator<Item = &'a String>, delimiter: char) -> BTreeMap<String, Listed> {
    let mut all: BTreeMap<String, Listed> = BTreeMap::new();
    for name in names {
        all.entry(name.clone()).or_default().itself = true;
        for (at, _) in name.match_indices(delimiter) {
            all.entry(name[..at].to_owned()).or_default().has_children = true;
        }
    }
    all
}

fn full_pattern(reference: &Mailbox<'_>, pattern: &ListMailbox<'_>) -> Result<String, Failure> {
    let pattern = match pattern {
        ListMailbox::Token(token) => token.as_ref().to_vec(),
        ListMailbox::String(string) => string.as_ref().to_vec(),
    };
    let pattern = String::from_utf8(pattern).map_err(|_| Failure::No("[CANNOT] a name is ASCII".to_owned()))?;
    Ok(super::super::state::canonical(&format!("{}{pattern}", name_of(reference)?)))
}

/// RFC 3501 §6.3.8: `*` matches anything, `%` anything but the delimiter.
fn matches(pattern: &str, name: &str, delimiter: char) -> bool {
    // RFC 3501 §5.1: INBOX is INBOX in any case.
    if pattern == "INBOX" && name.eq_ignore_ascii_case("INBOX") {
        return true;
    }
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    // One row per pattern octet: which prefixes of the name it can cover.
    let mut reach = vec![false; name.len() + 1];
    reach[0] = true;
    for p in pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match p {
                b'*' | b'%' => {
                    let grows = at > 0 && next[at - 1] && (*p == b'*' || char::from(name[at - 1]) != delimiter);
                    reach[at] || grows
                }
                p => at > 0 && reach[at - 1] && name[at - 1] == *p,
            };
        }
        reach = next;
    }
    reach[name.len()]
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn wildcards_match_as_the_rfc_says() {
        for (pattern, name, fits) in [
            ("*", "a/b", true),
            ("%", "a/b", false),
            ("%", "a", true),
            ("a/%", "a/b", true),
            ("a*c", "a/b/c", true),
            ("a%c", "a/c", false),
            ("%/%", "a/b", true),
            ("INBOX", "INBOX", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name, '/'), fits, "{pattern} {name}");
        }
    }
}
