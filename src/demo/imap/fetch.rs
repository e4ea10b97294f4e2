//! FETCH (RFC 3501 §6.4.5, §7.4.2).
//!
//! Promises: a section is the very octets of the message; UID stands first,
//! then the items in the order in which they were asked for, once each.

use std::ops::Range;

use imap_codec::imap_types::core::AString;
use imap_codec::imap_types::fetch::{MacroOrMessageDataItemNames, MessageDataItemName, Part as PartNumber, Section};
use imap_codec::imap_types::sequence::SequenceSet;

use super::super::state::{Message, Refusal};
use super::{Done, FLUSH_AT, Failure, Session, ok};
use crate::mail::parts::Part;
use crate::mail::structure;

impl Session {
    pub(super) async fn fetch(&mut self, set: &SequenceSet, names: MacroOrMessageDataItemNames<'_>, uid: bool) -> Done {
        let items = match &names {
            MacroOrMessageDataItemNames::Macro(name) => name.expand(),
            MacroOrMessageDataItemNames::MessageDataItemNames(names) => names.clone(),
        };
        if items.iter().any(not_offered) {
            return Err(Failure::Bad("an item is not offered".to_owned()));
        }
        let indices = self.selected()?.resolve(set, uid)?;
        let marks_seen = !self.selected()?.read_only && items.iter().any(sets_seen);
        if marks_seen {
            self.mark_seen(&indices)?;
        }
        let rendering = match items.iter().any(is_body) {
            true => self.shared.faults.rendering(),
            false => None,
        };
        let wants_uid = uid || items.contains(&MessageDataItemName::Uid);
        let wants_flags = items.contains(&MessageDataItemName::Flags);
        for index in indices {
            let Some(newly_seen) = self.refresh(index) else { continue };
            let selected = self.selected()?;
            let known = &selected.known[index];
            let (flags, mut message) = (known.flags(), known.message.clone());
            let stored = i64::try_from(message.octets.len()).unwrap_or(i64::MAX);
            let size = stored.saturating_add(self.shared.faults.size_error(&message.octets)).max(0);
            if let Some((change, version)) = rendering {
                message.octets = change.render(&message.octets, version).into();
            }
            let mut writer = Writer { out: std::mem::take(&mut self.out), first: true, literal_at: self.literal_at };
            writer.out.extend_from_slice(format!("* {} FETCH (", index + 1).as_bytes());
            if wants_uid {
                writer.item(&format!("UID {}", message.uid));
            }
            let tree = Part::of(&message.octets);
            for item in &items {
                match item {
                    MessageDataItemName::Uid => {}
                    MessageDataItemName::Flags => writer.item(&format!("FLAGS {flags}")),
                    MessageDataItemName::Rfc822 if self.shared.character.forgets_rfc822() => {}
                    item => writer.data(item, &message, &tree, size),
                }
            }
            if newly_seen && !wants_flags {
                writer.item(&format!("FLAGS {flags}"));
            }
            self.literal_at = writer.literal_at;
            self.out = writer.out;
            self.push(")\r\n");
            if self.out.len() > FLUSH_AT && self.cut.is_none() {
                self.literal_at = None;
                self.flush().await?;
            }
        }
        ok("done")
    }

    /// RFC 3501 §6.4.5: BODY[…], RFC822 and RFC822.TEXT set \Seen.
    fn mark_seen(&mut self, indices: &[usize]) -> Result<(), Failure> {
        let selected = self.selected()?;
        let validity = selected.validity;
        let uids: Vec<u32> = indices.iter().map(|i| selected.known[*i].message.uid).collect();
        let any = self.with_user(|user| {
            let mailbox = user.by_validity(validity).ok_or(Refusal::Missing)?;
            let mut any = false;
            for uid in uids {
                any |= mailbox.find(uid).is_some_and(|m| m.flags.insert("\\Seen".to_owned()));
            }
            if any {
                mailbox.version += 1;
                user.save()?;
            }
            Ok(any)
        })?;
        if any {
            self.shared.wake();
        }
        Ok(())
    }

    /// Takes over the flags of now; answers whether they are new to the
    /// client. A message that is gone keeps what was known.
    fn refresh(&mut self, index: usize) -> Option<bool> {
        let selected = self.selected.as_mut()?;
        let validity = selected.validity;
        let known = selected.known.get_mut(index)?;
        let mut state = self.shared.lock();
        let mailbox = state.user(self.user.as_deref()?)?.by_validity(validity)?;
        match mailbox.find(known.message.uid) {
            Some(message) if message.flags != known.message.flags => {
                known.message.flags.clone_from(&message.flags);
                Some(true)
            }
            Some(_) | None => Some(false),
        }
    }
}

fn not_offered(item: &MessageDataItemName<'_>) -> bool {
    matches!(
        item,
        MessageDataItemName::Binary { .. } | MessageDataItemName::BinarySize { .. } | MessageDataItemName::ModSeq
    )
}

/// Whether the item is made of the message's octets.
fn is_body(item: &MessageDataItemName<'_>) -> bool {
    matches!(
        item,
        MessageDataItemName::BodyExt { .. }
            | MessageDataItemName::Rfc822
            | MessageDataItemName::Rfc822Header
            | MessageDataItemName::Rfc822Text
            | MessageDataItemName::BodyStructure
            | MessageDataItemName::Body
            | MessageDataItemName::Envelope
    )
}

fn sets_seen(item: &MessageDataItemName<'_>) -> bool {
    matches!(
        item,
        MessageDataItemName::BodyExt { peek: false, .. }
            | MessageDataItemName::Rfc822
            | MessageDataItemName::Rfc822Text
    )
}

/// Writes the items of one message.
struct Writer {
    out: Vec<u8>,
    first: bool,
    literal_at: Option<usize>,
}

impl Writer {
    fn item(&mut self, text: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b' ');
        }
        self.out.extend_from_slice(text.as_bytes());
    }

    fn literal(&mut self, octets: &[u8]) {
        self.out.extend_from_slice(format!(" {{{}}}\r\n", octets.len()).as_bytes());
        self.literal_at.get_or_insert(self.out.len());
        self.out.extend_from_slice(octets);
    }

    fn data(&mut self, item: &MessageDataItemName<'_>, message: &Message, tree: &Part, size: i64) {
        let octets = &message.octets;
        match item {
            MessageDataItemName::Uid
            | MessageDataItemName::Flags
            | MessageDataItemName::ModSeq
            | MessageDataItemName::Binary { .. }
            | MessageDataItemName::BinarySize { .. } => {}
            MessageDataItemName::InternalDate => self.item(&format!("INTERNALDATE \"{}\"", message.date)),
            MessageDataItemName::Rfc822Size => self.item(&format!("RFC822.SIZE {size}")),
            MessageDataItemName::Envelope => {
                self.item("ENVELOPE ");
                structure::envelope(&mut self.out, octets, tree);
            }
            MessageDataItemName::Body => {
                self.item("BODY ");
                structure::body(&mut self.out, octets, tree, false);
            }
            MessageDataItemName::BodyStructure => {
                self.item("BODYSTRUCTURE ");
                structure::body(&mut self.out, octets, tree, true);
            }
            MessageDataItemName::Rfc822 => {
                self.item("RFC822");
                self.literal(octets);
            }
            MessageDataItemName::Rfc822Header => {
                self.item("RFC822.HEADER");
                self.literal(&octets[tree.header.clone()]);
            }
            MessageDataItemName::Rfc822Text => {
                self.item("RFC822.TEXT");
                self.literal(&octets[tree.body.clone()]);
            }
            MessageDataItemName::BodyExt { section, partial, .. } => {
                self.item(&format!("BODY[{}]", section_name(section.as_ref())));
                let found = content(octets, tree, section.as_ref());
                let Some(found) = found else {
                    self.out.extend_from_slice(b" NIL");
                    return;
                };
                match partial {
                    None => self.literal(&found),
                    Some((origin, length)) => {
                        let range = partial_range(found.len(), *origin, length.get());
                        self.out.extend_from_slice(format!("<{origin}>").as_bytes());
                        self.literal(&found[range]);
                    }
                }
            }
        }
    }
}

/// What of `total` octets a partial names; short or empty past the end.
fn partial_range(total: usize, origin: u32, length: u32) -> Range<usize> {
    let clamp = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(total);
    clamp(u64::from(origin))..clamp(u64::from(origin) + u64::from(length))
}

fn section_name(section: Option<&Section<'_>>) -> String {
    let number = |part: &PartNumber| part.0.as_ref().iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
    let prefix = |part: &Option<PartNumber>| part.as_ref().map_or_else(String::new, |p| format!("{}.", number(p)));
    let fields = |names: &[AString<'_>]| {
        let mut out = Vec::new();
        for (i, name) in names.iter().enumerate() {
            out.extend_from_slice(if i == 0 { b"" } else { b" " });
            match name {
                AString::Atom(atom) => out.extend_from_slice(atom.as_ref().as_bytes()),
                AString::String(text) => structure::string(&mut out, text.as_ref()),
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    };
    match section {
        None => String::new(),
        Some(Section::Part(part)) => number(part),
        Some(Section::Header(part)) => format!("{}HEADER", prefix(part)),
        Some(Section::HeaderFields(part, names)) => {
            format!("{}HEADER.FIELDS ({})", prefix(part), fields(names.as_ref()))
        }
        Some(Section::HeaderFieldsNot(part, names)) => {
            format!("{}HEADER.FIELDS.NOT ({})", prefix(part), fields(names.as_ref()))
        }
        Some(Section::Text(part)) => format!("{}TEXT", prefix(part)),
        Some(Section::Mime(part)) => format!("{}.MIME", number(part)),
    }
}

fn at<'p>(tree: &'p Part, number: &PartNumber) -> Option<&'p Part> {
    let path: Vec<u32> = number.0.as_ref().iter().map(|n| n.get()).collect();
    tree.at(&path)
}

/// The message that HEADER and TEXT speak of: the whole one, or the one that
/// a message/rfc822 part encloses.
fn message_at<'p>(tree: &'p Part, number: &Option<PartNumber>) -> Option<&'p Part> {
    match number {
        None => Some(tree),
        Some(number) => at(tree, number)?.message.as_deref(),
    }
}

/// The octets of a section; none where there is no such part.
fn content(octets: &[u8], tree: &Part, section: Option<&Section<'_>>) -> Option<Vec<u8>> {
    let span = |range: &Range<usize>| octets[range.clone()].to_vec();
    match section {
        None => Some(octets.to_vec()),
        Some(Section::Part(number)) => at(tree, number).map(|p| span(&p.body)),
        Some(Section::Mime(number)) => at(tree, number).map(|p| span(&p.header)),
        Some(Section::Header(number)) => message_at(tree, number).map(|p| span(&p.header)),
        Some(Section::Text(number)) => message_at(tree, number).map(|p| span(&p.body)),
        Some(Section::HeaderFields(number, names)) => {
            message_at(tree, number).map(|p| some_fields(octets, p, names.as_ref(), true))
        }
        Some(Section::HeaderFieldsNot(number, names)) => {
            message_at(tree, number).map(|p| some_fields(octets, p, names.as_ref(), false))
        }
    }
}

/// The fields that are (or are not) named, and the empty line.
fn some_fields(octets: &[u8], part: &Part, names: &[AString<'_>], named: bool) -> Vec<u8> {
    let head = &octets[part.header.clone()];
    let mut out = Vec::new();
    for field in part.fields(octets).fields {
        let hit = names.iter().any(|n| field.name(head).eq_ignore_ascii_case(n.as_ref()));
        if hit == named {
            out.extend_from_slice(&head[field.name.start..field.value.end]);
        }
    }
    out.extend_from_slice(b"\r\n");
    out
}

#[cfg(test)]
mod tests {
    use super::partial_range;

    #[test]
    fn a_partial_past_the_end_is_empty() {
        assert_eq!(partial_range(10, 4, 3), 4..7);
        assert_eq!(partial_range(10, 8, 100), 8..10);
        assert_eq!(partial_range(10, 11, 1), 10..10);
        assert_eq!(partial_range(10, u32::MAX, u32::MAX), 10..10);
    }
}
