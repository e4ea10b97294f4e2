//! Sections of a stamped message (RFC 9051 §6.4.5.1): what a client asks for,
//! what the provider is asked instead, and header arithmetic.
//!
//! Promises: HEADER and TEXT concatenate to BODY[]; partials cut what the
//! whole is; HEADER.FIELDS agree with HEADER. Pure. Doesn't know: where the
//! octets come from.

use imap_codec::imap_types::core::AString;
use imap_codec::imap_types::fetch::{Macro, MacroOrMessageDataItemNames, MessageDataItemName, Part, Section};

use crate::mail::header;

/// A partial: first octet and how many (RFC 9051 §6.4.5, `<origin.count>`).
pub type Partial = Option<(u32, u32)>;

/// Which header fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fields {
    /// The whole header.
    All,
    /// Only these.
    Only(Vec<Vec<u8>>),
    /// All but these.
    Not(Vec<Vec<u8>>),
}

/// One item of a client's FETCH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// FLAGS.
    Flags,
    /// INTERNALDATE.
    Date,
    /// RFC822.SIZE.
    Size,
    /// The whole message; the name to answer with.
    Whole(String, Partial),
    /// The message's own header or fields of it.
    Header(String, Fields, Partial),
    /// Passed to the provider as the second text; answered under the first
    /// name, or as the provider names it.
    Pass(Option<String>, String),
}

/// A client's FETCH.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Items in the order asked, UID left out (it always comes first).
    pub items: Vec<Item>,
    /// Whether UID was asked for.
    pub uid: bool,
    /// Whether `\Seen` has to be set.
    pub sets_seen: bool,
}

/// Why a FETCH can't be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this FETCH item is not supported")]
pub struct Unsupported;

impl Wanted {
    /// Reads the items of a decoded FETCH.
    ///
    /// `peek`: BODY.PEEK\[] stands for `RFC822.PEEK`, see [`without_rfc822_peek`].
    pub fn of(names: &MacroOrMessageDataItemNames<'_>, peek: bool) -> Result<Wanted, Unsupported> {
        let mut wanted = Wanted::default();
        match names {
            MacroOrMessageDataItemNames::Macro(m) => {
                let expanded = match m {
                    Macro::Fast => Macro::Fast.expand(),
                    Macro::All => Macro::All.expand(),
                    Macro::Full => Macro::Full.expand(),
                    _ => return Err(Unsupported),
                };
                for name in expanded {
                    wanted.add(&name)?;
                }
            }
            MacroOrMessageDataItemNames::MessageDataItemNames(list) => {
                for name in list {
                    wanted.add(name)?;
                }
            }
        }
        if peek {
            for item in &mut wanted.items {
                if *item == Item::Whole("BODY[]".into(), None) {
                    *item = Item::Whole("RFC822".into(), None);
                }
            }
        }
        Ok(wanted)
    }

    fn add(&mut self, name: &MessageDataItemName<'_>) -> Result<(), Unsupported> {
        let pass = |text: &str| Item::Pass(None, text.to_owned());
        let item = match name {
            MessageDataItemName::Uid => {
                self.uid = true;
                return Ok(());
            }
            MessageDataItemName::Flags => Item::Flags,
            MessageDataItemName::InternalDate => Item::Date,
            MessageDataItemName::Rfc822Size => Item::Size,
            MessageDataItemName::Body => pass("BODY"),
            MessageDataItemName::BodyStructure => pass("BODYSTRUCTURE"),
            MessageDataItemName::Envelope => pass("ENVELOPE"),
            MessageDataItemName::Rfc822 => {
                self.sets_seen = true;
                Item::Whole("RFC822".into(), None)
            }
            MessageDataItemName::Rfc822Header => Item::Header("RFC822.HEADER".into(), Fields::All, None),
            MessageDataItemName::Rfc822Text => {
                self.sets_seen = true;
                Item::Pass(Some("RFC822.TEXT".into()), "BODY.PEEK[TEXT]".into())
            }
            MessageDataItemName::BodyExt { section, partial, peek } => {
                self.sets_seen |= !peek;
                let partial = partial.map(|(from, count)| (from, count.get()));
                section_item(section.as_ref(), partial)
            }
            _ => return Err(Unsupported),
        };
        if !self.items.contains(&item) {
            self.items.push(item);
        }
        Ok(())
    }
}

/// A FETCH with `RFC822.PEEK`, which Outlook sends though no RFC has it, as
/// one that can be decoded; `None` when there is nothing such. Servers that
/// know the item answer it as `RFC822`.
pub fn without_rfc822_peek(command: &[u8]) -> Option<Vec<u8>> {
    const NAME: &[u8] = b"RFC822.PEEK";
    let mut words = command.split(|b| *b == b' ').skip(1).map(<[u8]>::to_ascii_uppercase);
    let verb = words.next().filter(|w| w != b"UID").or_else(|| words.next())?;
    if verb != b"FETCH" {
        return None;
    }
    let at = command.windows(NAME.len()).position(|w| w.eq_ignore_ascii_case(NAME))?;
    Some([&command[..at], b"BODY.PEEK[]", &command[at + NAME.len()..]].concat())
}

fn section_item(section: Option<&Section<'_>>, partial: Partial) -> Item {
    let origin = partial.map_or(String::new(), |(from, _)| format!("<{from}>"));
    let range = partial.map_or(String::new(), |(from, count)| format!("<{from}.{count}>"));
    let names = |list: &[AString<'_>]| list.iter().map(|n| n.as_ref().to_vec()).collect::<Vec<_>>();
    match section {
        None => Item::Whole(format!("BODY[]{origin}"), partial),
        Some(Section::Header(None)) => Item::Header(format!("BODY[HEADER]{origin}"), Fields::All, partial),
        Some(Section::HeaderFields(None, list)) => {
            let list = names(list.as_ref());
            Item::Header(format!("BODY[HEADER.FIELDS {}]{origin}", name_list(&list)), Fields::Only(list), partial)
        }
        Some(Section::HeaderFieldsNot(None, list)) => {
            let list = names(list.as_ref());
            Item::Header(format!("BODY[HEADER.FIELDS.NOT {}]{origin}", name_list(&list)), Fields::Not(list), partial)
        }
        Some(Section::Text(None)) => Item::Pass(None, format!("BODY.PEEK[TEXT]{range}")),
        Some(Section::Part(part)) => Item::Pass(None, format!("BODY.PEEK[{}]{range}", part_text(part))),
        Some(Section::Mime(part)) => Item::Pass(None, format!("BODY.PEEK[{}.MIME]{range}", part_text(part))),
        Some(Section::Header(Some(part))) => Item::Pass(None, format!("BODY.PEEK[{}.HEADER]{range}", part_text(part))),
        Some(Section::Text(Some(part))) => Item::Pass(None, format!("BODY.PEEK[{}.TEXT]{range}", part_text(part))),
        Some(Section::HeaderFields(Some(part), list)) => {
            let list = name_list(&names(list.as_ref()));
            Item::Pass(None, format!("BODY.PEEK[{}.HEADER.FIELDS {list}]{range}", part_text(part)))
        }
        Some(Section::HeaderFieldsNot(Some(part), list)) => {
            let list = name_list(&names(list.as_ref()));
            Item::Pass(None, format!("BODY.PEEK[{}.HEADER.FIELDS.NOT {list}]{range}", part_text(part)))
        }
    }
}

fn part_text(part: &Part) -> String {
    let numbers: Vec<String> = part.0.as_ref().iter().map(ToString::to_string).collect();
    numbers.join(".")
}

/// A list of field names; a name that is no plain atom is quoted.
fn name_list(names: &[Vec<u8>]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|n| {
            let text = String::from_utf8_lossy(n);
            let atom = !n.is_empty() && n.iter().all(|b| b.is_ascii_graphic() && !b"(){%*\"\\]".contains(b));
            if atom { text.into_owned() } else { String::from_utf8_lossy(&super::encode::quote(n)).into_owned() }
        })
        .collect();
    format!("({})", quoted.join(" "))
}

/// The fields of a header section that are asked for, and the empty line
/// that ends it (RFC 9051 §6.4.5.1: it is always included, unless the message
/// has no header end).
pub fn select_fields(header: &[u8], fields: &Fields) -> Vec<u8> {
    let (names, keep) = match fields {
        Fields::All => return header.to_vec(),
        Fields::Only(names) => (names, true),
        Fields::Not(names) => (names, false),
    };
    let spans = header::split(header);
    let mut out = Vec::new();
    for field in &spans.fields {
        let named = names.iter().any(|n| n.eq_ignore_ascii_case(field.name(header)));
        if named == keep {
            out.extend(&header[field.name.start..field.value.end]);
            // A header that nothing ends may break off inside its last line.
            if !out.ends_with(b"\n") {
                out.extend(b"\r\n");
            }
        }
    }
    out.extend(b"\r\n");
    out
}

/// The part of `whole` that a partial names; empty past the end.
pub fn cut(whole: &[u8], partial: Partial) -> &[u8] {
    match partial {
        None => whole,
        Some((from, count)) => {
            let start = (from as usize).min(whole.len());
            let end = start.saturating_add(count as usize).min(whole.len());
            &whole[start..end]
        }
    }
}

/// Which octets of the provider's message a partial of the stamped message
/// needs, and how the answer is put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Octets of the stamp that belong to the answer.
    pub stamp: (usize, usize),
    /// First octet and count at the provider; `None` when none is needed.
    pub upstream: Option<(u64, u64)>,
}

/// Maps a partial over a stamped message.
pub fn window(stamp_len: usize, partial: (u32, u32)) -> Window {
    let (from, count) = (u64::from(partial.0), u64::from(partial.1));
    let (stamp_len64, end) = (stamp_len as u64, from + count);
    let stamp = (from.min(stamp_len64) as usize, end.min(stamp_len64) as usize);
    let upstream = (end > stamp_len64).then(|| {
        let start = from.saturating_sub(stamp_len64);
        (start, end - stamp_len64 - start)
    });
    Window { stamp, upstream }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_chosen_without_case_and_end_with_an_empty_line() {
        let h = b"A: 1\r\n x\r\nB: 2\r\nX-Tollgate-Lane: push\r\n\r\n";
        let only = Fields::Only(vec![b"a".to_vec(), b"x-tollgate-lane".to_vec()]);
        assert_eq!(select_fields(h, &only), b"A: 1\r\n x\r\nX-Tollgate-Lane: push\r\n\r\n");
        let not = Fields::Not(vec![b"A".to_vec()]);
        assert_eq!(select_fields(h, &not), b"B: 2\r\nX-Tollgate-Lane: push\r\n\r\n");
    }

    #[test]
    fn what_outlook_sends_can_be_read() {
        let read = |c: &[u8]| without_rfc822_peek(c).map(|c| String::from_utf8(c).unwrap());
        assert_eq!(read(b"a UID FETCH 1 (UID RFC822.PEEK)\r\n").unwrap(), "a UID FETCH 1 (UID BODY.PEEK[])\r\n");
        assert_eq!(read(b"a fetch 1 rfc822.peek\r\n").unwrap(), "a fetch 1 BODY.PEEK[]\r\n");
        assert_eq!(read(b"a SEARCH SUBJECT RFC822.PEEK\r\n"), None);
        assert_eq!(read(b"a FETCH 1 RFC822\r\n"), None);
    }

    proptest! {
        /// Windows of every partition concatenate to the stamped whole.
        #[test]
        fn partials_concatenate_to_the_whole(stamp in 0usize..40, body in 0usize..60, step in 1u32..25) {
            let stamp: Vec<u8> = (0..stamp).map(|n| n as u8).collect();
            let body: Vec<u8> = (0..body).map(|n| 100 + n as u8).collect();
            let whole = [stamp.clone(), body.clone()].concat();
            let mut got = Vec::new();
            let mut from = 0;
            while (from as usize) < whole.len() + 60 {
                let w = window(stamp.len(), (from, step));
                let mut part = stamp[w.stamp.0..w.stamp.1].to_vec();
                if let Some((start, count)) = w.upstream {
                    part.extend(cut(&body, Some((start as u32, count as u32))));
                }
                prop_assert_eq!(&part[..], cut(&whole, Some((from, step))));
                got.extend(part);
                from += step;
            }
            prop_assert_eq!(got, whole);
        }
    }
}
