//! SEARCH (RFC 3501 §6.4.4).
//!
//! Strings compare without case, against what was written and against what
//! encoded words and transfer encodings stand for.

use imap_codec::imap_types::core::{AString, Charset};
use imap_codec::imap_types::search::SearchKey;
use mail_parser::DateTime;

use super::super::character::Character;
use super::super::dates::InternalDate;
use super::selected::{Known, Selected};
use super::{Done, Failure, Session, ok};
use crate::mail::header;
use crate::mail::mime::decode;
use crate::mail::mime::split::{Kind, split_as_read};

impl Session {
    pub(super) fn search(&mut self, charset: Option<&Charset<'_>>, keys: &[SearchKey<'_>], uid: bool) -> Done {
        if let Some(charset) = charset {
            let name = charset.as_ref();
            if !name.eq_ignore_ascii_case("UTF-8") && !name.eq_ignore_ascii_case("US-ASCII") {
                return Err(Failure::No("[BADCHARSET (US-ASCII UTF-8)] unknown charset".to_owned()));
            }
        }
        if keys.iter().any(|key| names_refused(key, self.shared.character)) {
            return Err(Failure::Bad("Command Argument Error. 11".to_owned()));
        }
        let selected = self.selected()?;
        let now = InternalDate::now().unix;
        let mut line = "* SEARCH".to_owned();
        for (index, known) in selected.known.iter().enumerate() {
            let candidate = Candidate { selected, index, known, now };
            if candidate.fits_all(keys)? {
                let number = if uid { known.message.uid as usize } else { index + 1 };
                line.push_str(&format!(" {number}"));
            }
        }
        line.push_str("\r\n");
        self.push(&line);
        ok("done")
    }
}

/// Whether a search names a keyword that this provider doesn't have.
fn names_refused(key: &SearchKey<'_>, character: Character) -> bool {
    match key {
        SearchKey::Keyword(word) | SearchKey::Unkeyword(word) => character.refuses(word.as_ref()),
        SearchKey::And(keys) => keys.as_ref().iter().any(|k| names_refused(k, character)),
        SearchKey::Or(a, b) => names_refused(a, character) || names_refused(b, character),
        SearchKey::Not(key) => names_refused(key, character),
        _ => false,
    }
}

struct Candidate<'a> {
    selected: &'a Selected,
    index: usize,
    known: &'a Known,
    now: i64,
}

impl Candidate<'_> {
    fn fits_all(&self, keys: &[SearchKey<'_>]) -> Result<bool, Failure> {
        for key in keys {
            if !self.fits(key)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn flag(&self, name: &str) -> bool {
        self.known.message.flags.iter().any(|f| f.eq_ignore_ascii_case(name))
    }

    fn fits(&self, key: &SearchKey<'_>) -> Result<bool, Failure> {
        let size = self.known.message.octets.len() as u64;
        let arrived = self.known.message.date;
        Ok(match key {
            SearchKey::All => true,
            SearchKey::And(keys) => self.fits_all(keys.as_ref())?,
            SearchKey::Or(a, b) => self.fits(a)? || self.fits(b)?,
            SearchKey::Not(key) => !self.fits(key)?,
            SearchKey::SequenceSet(set) => self.selected.resolve(set, false)?.binary_search(&self.index).is_ok(),
            SearchKey::Uid(set) => self.selected.resolve(set, true)?.binary_search(&self.index).is_ok(),
            SearchKey::Answered => self.flag("\\Answered"),
            SearchKey::Unanswered => !self.flag("\\Answered"),
            SearchKey::Deleted => self.flag("\\Deleted"),
            SearchKey::Undeleted => !self.flag("\\Deleted"),
            SearchKey::Draft => self.flag("\\Draft"),
            SearchKey::Undraft => !self.flag("\\Draft"),
            SearchKey::Flagged => self.flag("\\Flagged"),
            SearchKey::Unflagged => !self.flag("\\Flagged"),
            SearchKey::Seen => self.flag("\\Seen"),
            SearchKey::Unseen => !self.flag("\\Seen"),
            SearchKey::Keyword(word) => self.flag(word.as_ref()),
            SearchKey::Unkeyword(word) => !self.flag(word.as_ref()),
            SearchKey::Recent => self.known.recent,
            SearchKey::Old => !self.known.recent,
            SearchKey::New => self.known.recent && !self.flag("\\Seen"),
            SearchKey::Larger(n) => size > u64::from(*n),
            SearchKey::Smaller(n) => size < u64::from(*n),
            SearchKey::Before(day) => arrived.day() < day.as_ref().to_string(),
            SearchKey::On(day) => arrived.day() == day.as_ref().to_string(),
            SearchKey::Since(day) => arrived.day() >= day.as_ref().to_string(),
            SearchKey::SentBefore(day) => self.sent().is_some_and(|d| d < day.as_ref().to_string()),
            SearchKey::SentOn(day) => self.sent().is_some_and(|d| d == day.as_ref().to_string()),
            SearchKey::SentSince(day) => self.sent().is_some_and(|d| d >= day.as_ref().to_string()),
            SearchKey::Older(seconds) => arrived.unix <= self.now - i64::from(seconds.get()),
            SearchKey::Younger(seconds) => arrived.unix > self.now - i64::from(seconds.get()),
            SearchKey::From(text) => self.field("From", text),
            SearchKey::To(text) => self.field("To", text),
            SearchKey::Cc(text) => self.field("Cc", text),
            SearchKey::Bcc(text) => self.field("Bcc", text),
            SearchKey::Subject(text) => self.field("Subject", text),
            SearchKey::Header(name, text) => match std::str::from_utf8(name.as_ref()) {
                Ok(name) => self.field(name, text),
                Err(_) => false,
            },
            SearchKey::Body(text) => self.body(text),
            SearchKey::Text(text) => self.header(text) || self.body(text),
            SearchKey::ModSequence { .. } => return Err(Failure::Bad("MODSEQ is not offered".to_owned())),
        })
    }

    /// The day of the Date field, as written there.
    fn sent(&self) -> Option<String> {
        let head = header::values(&self.known.message.octets, "Date");
        let date = DateTime::parse_rfc822(std::str::from_utf8(head.first()?).ok()?)?;
        Some(format!("{:04}-{:02}-{:02}", date.year, date.month, date.day))
    }

    /// Whether a field of this name holds the text; an empty text is in any.
    fn field(&self, name: &str, text: &AString<'_>) -> bool {
        let wanted = lower(text.as_ref());
        header::values(&self.known.message.octets, name)
            .iter()
            .any(|value| lower(value).contains(&wanted) || decoded(value).contains(&wanted))
    }

    fn header(&self, text: &AString<'_>) -> bool {
        let wanted = lower(text.as_ref());
        let octets = &self.known.message.octets;
        let spans = header::split(octets);
        lower(&octets[..spans.body_start]).contains(&wanted)
            || spans.fields.iter().any(|f| decoded(&f.unfolded(octets)).contains(&wanted))
    }

    fn body(&self, text: &AString<'_>) -> bool {
        let wanted = lower(text.as_ref());
        let octets = &self.known.message.octets;
        if lower(&octets[header::split(octets).body_start..]).contains(&wanted) {
            return true;
        }
        split_as_read(octets).entities.iter().any(|part| {
            let text = part.kind == Kind::Leaf && part.content.name.starts_with("text/");
            text && {
                let body = part.encoding.decode(&octets[part.body.clone()]).value;
                decode::charset(&body, part.content.parameter("charset")).0.to_lowercase().contains(&wanted)
            }
        })
    }
}

fn lower(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).to_lowercase()
}

/// A field value with its encoded words decoded, in lower case.
fn decoded(value: &[u8]) -> String {
    decode::words(value).value.to_lowercase()
}
