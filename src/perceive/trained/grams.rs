//! What the trained part looks at: words, word pairs and pieces of words of
//! the sender's own text, and the facts of its structure.
//!
//! Promises: pure, bounded ([`MAX_CHARACTERS`]), in an order that depends on
//! the message alone. Names no domain: who wrote it is the context's affair.

use super::super::doc::{Doc, Sentence};
use super::super::offline::Case;
use super::super::text::is_word;
use super::super::words::{CLASSES, Class};

/// Characters of own text that are looked at; the rest of a longer message
/// adds little to what it wants.
pub(in crate::perceive) const MAX_CHARACTERS: usize = 2400;

/// Kinds of evidence, told apart so that a word in the subject is another
/// piece of evidence than the word in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Space {
    /// A word.
    Word,
    /// Two words in a row.
    Pair,
    /// A word of the subject.
    Subject,
    /// Five letters of a word, its ends marked.
    Piece,
    /// One to three syllables or ideographs.
    East,
    /// The same in the subject.
    EastSubject,
    /// A word beside the kind of mail that it stands in.
    Kind,
    /// A word of the sender's name or local part.
    Sender,
    /// A fact of the structure.
    Fact,
    /// A concept that the text names in some language.
    Concept,
    /// A word of the last sentences, where a story's outcome is told.
    End,
    /// One to three syllables or ideographs of them.
    EastEnd,
}

/// How many kinds there are.
pub(super) const SPACES: usize = 12;

/// Hands every piece of evidence to `take`, in parts that belong together.
/// Sentences that aren't `wanted`, by their number, are passed over.
pub(super) fn walk(case: &Case<'_>, wanted: &mut dyn FnMut(usize) -> bool, take: &mut dyn FnMut(Space, &[&str])) {
    let kind = if case.facts.bulk {
        "bulk"
    } else if case.facts.list {
        "list"
    } else if case.facts.automated {
        "machine"
    } else {
        "person"
    };
    let mut left = MAX_CHARACTERS;
    let mut buffer = Runs::default();
    let end = end_of(case.doc);
    let mut baits: Vec<&str> = Vec::new();
    for (n, s) in case.doc.sentences.iter().enumerate() {
        if left == 0 {
            break;
        }
        if !wanted(n) {
            left = left.saturating_sub(s.text.chars().count());
            continue;
        }
        let last = n >= end;
        for concept in s.concepts.iter().copied() {
            take(Space::Concept, &[concept]);
            if BAITS.contains(&concept) && !baits.contains(&concept) {
                baits.push(concept);
            }
            if s.subject {
                take(Space::Concept, &[concept, "subject"]);
            }
            if last {
                take(Space::Concept, &[concept, "end"]);
            }
        }
        sentence(s, kind, last, &mut left, &mut buffer, take);
    }
    sender(case, &mut buffer, take);
    facts(case, kind, take);
    take(Space::Fact, &["baits", size(baits.len())]);
    take(Space::Fact, &["baits", size(baits.len()), kind]);
}

/// Concepts of which fakes hold several: honest mail asks for a code or a
/// payment too, but seldom in secret, by a new way and under a threat at once.
const BAITS: [&str; 12] = [
    "asks-card-data",
    "asks-password-code",
    "odd-payment",
    "keep-it-secret",
    "remote-control-virus",
    "advance-fee",
    "new-number-identity",
    "verify-account-phish",
    "click-link-threat",
    "parcel-customs-fee",
    "bank-details-changed-request",
    "petition-chain-letter",
];

/// Sentences of this many letters are more than a greeting or a name.
const SAYS_SOMETHING: usize = 16;
/// Sentences that make up the end.
const LAST: usize = 2;

/// The first sentence of the end.
fn end_of(doc: &Doc) -> usize {
    let long = |s: &Sentence| !s.subject && s.text.len() >= SAYS_SOMETHING;
    let told = doc.sentences.iter().enumerate().rev().filter(|(_, s)| long(s));
    told.take(LAST).last().map_or(usize::MAX, |(n, _)| n)
}

/// A run of letters of one kind.
#[derive(Debug, Clone, Copy)]
struct Run {
    start: usize,
    end: usize,
    east: bool,
}

fn is_east(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// Words of a text, every digit as `0`.
#[derive(Default)]
struct Runs {
    text: String,
    runs: Vec<Run>,
}

impl Runs {
    /// Reads the next text, as far as `left` characters go.
    fn read(&mut self, text: &str, left: &mut usize) {
        self.runs.clear();
        let Runs { text: buffer, runs: out } = self;
        buffer.clear();
        let mut open: Option<Run> = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if *left == 0 {
                break;
            }
            *left -= 1;
            let at = buffer.len();
            let inside = is_word(c)
                || (c == '\'' && open.is_some_and(|r| !r.east))
                || (matches!(c, ':' | '.' | ',')
                    && buffer.ends_with('0')
                    && chars.peek().is_some_and(char::is_ascii_digit));
            if !inside {
                out.extend(open.take().map(|r| Run { end: at, ..r }));
                buffer.push(' ');
                continue;
            }
            let east = is_east(c);
            if open.is_some_and(|r| r.east != east) {
                out.extend(open.take().map(|r| Run { end: at, ..r }));
            }
            open.get_or_insert(Run { start: at, end: at, east });
            buffer.push(if c.is_ascii_digit() { '0' } else { c });
        }
        let end = buffer.len();
        out.extend(open.map(|r| Run { end, ..r }));
    }

    fn iter(&self) -> impl Iterator<Item = (&str, bool)> {
        self.runs.iter().map(|r| (&self.text[r.start..r.end], r.east))
    }
}

fn sentence(
    s: &Sentence,
    kind: &str,
    last: bool,
    left: &mut usize,
    buffer: &mut Runs,
    take: &mut dyn FnMut(Space, &[&str]),
) {
    buffer.read(&s.text, left);
    let mut before = "^";
    for (word, is_east) in buffer.iter() {
        if is_east {
            east(word, if s.subject { Space::EastSubject } else { Space::East }, take);
            if last {
                east(word, Space::EastEnd, take);
            }
        }
        take(Space::Word, &[word]);
        take(Space::Pair, &[before, word]);
        if s.subject {
            take(Space::Subject, &[word]);
        } else if last {
            take(Space::End, &[word]);
        }
        if kind != "person" {
            take(Space::Kind, &[kind, word]);
        }
        if !is_east {
            pieces(word, take);
        }
        before = word;
    }
    if s.asks_by_mark() {
        take(Space::Pair, &[before, "?"]);
    }
}

/// Letters of a piece of a word.
const PIECE: usize = 5;

/// Pieces of a word with its ends marked, so that endings and compounds count.
fn pieces(word: &str, take: &mut dyn FnMut(Space, &[&str])) {
    let mut at = [0usize; 34];
    let mut n = 0;
    for (i, _) in word.char_indices().take(at.len() - 1) {
        at[n] = i;
        n += 1;
    }
    if n < PIECE {
        return;
    }
    at[n] = word.len();
    for i in 0..=n - (PIECE - 1) {
        let end = (i + PIECE - 1).min(n);
        let piece = &word[at[i]..at[end]];
        let head = if i == 0 { "^" } else { "" };
        let tail = if end == n { "$" } else { "" };
        take(Space::Piece, &[head, piece, tail]);
    }
}

fn east(word: &str, space: Space, take: &mut dyn FnMut(Space, &[&str])) {
    let mut ends = [0usize; 3];
    let mut starts: [usize; 3] = [0; 3];
    let mut seen = 0;
    for (i, c) in word.char_indices() {
        starts.rotate_left(1);
        starts[2] = i;
        ends[0] = i + c.len_utf8();
        seen += 1;
        for n in 1..=seen.min(3) {
            take(space, &[&word[starts[3 - n]..ends[0]]]);
        }
    }
}

fn sender(case: &Case<'_>, buffer: &mut Runs, take: &mut dyn FnMut(Space, &[&str])) {
    let Some(sender) = case.sender else { return };
    let mut left = 120;
    let text = super::super::text::normal(&format!("{} / {}", sender.display, sender.address.local));
    buffer.read(&text, &mut left);
    for (word, is_east) in buffer.iter() {
        take(Space::Sender, &[word]);
        if is_east {
            east(word, Space::Sender, take);
        }
    }
}

/// Hours ahead, by bucket.
const HOURS: &[(f64, &str)] = &[
    (-12.0, "long past"),
    (0.0, "past"),
    (1.5, "1h"),
    (4.0, "4h"),
    (9.0, "9h"),
    (14.0, "14h"),
    (20.0, "20h"),
    (32.0, "1d"),
    (56.0, "2d"),
    (200.0, "week"),
];

fn hours(at: i64, now: i64) -> &'static str {
    let ahead = (at - now) as f64 / 3600.0;
    HOURS.iter().find(|(most, _)| ahead <= *most).map_or("later", |(_, name)| name)
}

fn size(n: usize) -> &'static str {
    match n {
        0 => "0",
        1 => "1",
        2 => "2",
        3..=4 => "3-4",
        5..=8 => "5-8",
        9..=16 => "9-16",
        17..=40 => "17-40",
        41..=100 => "41-100",
        101..=250 => "101-250",
        251..=600 => "251-600",
        _ => "more",
    }
}

fn facts(case: &Case<'_>, kind: &str, take: &mut dyn FnMut(Space, &[&str])) {
    let doc: &Doc = case.doc;
    let mut fact = |parts: &[&str]| take(Space::Fact, parts);
    fact(&["kind", kind]);
    let lang = doc.lang.map_or("none", |l| l.code());
    fact(&["language", lang]);
    fact(&["kind", kind, lang]);
    for (on, name) in [
        (case.facts.automated, "automated"),
        (case.facts.reply, "reply"),
        (case.facts.copied, "copied"),
        (doc.has_number, "number"),
        (case.asked.is_some_and(|a| a.exact), "exact deadline"),
        (case.attachments > 0, "attachments"),
        (case.links > 0, "links"),
        (case.links > 3, "many links"),
        (case.hidden > 0, "hidden text"),
    ] {
        if on {
            fact(&["is", name]);
        }
    }
    for s in crate::lane::SIGNALS {
        if case.signals.has(s) {
            fact(&["signal", s.name()]);
            fact(&["signal", s.name(), kind]);
        }
    }
    for (class, name) in CLASSES {
        if doc.has(*class) {
            fact(&["class", name]);
            if case.signals.has(crate::lane::Signal::Ask) {
                fact(&["class asks", name]);
            }
        } else if doc.mentions(*class) {
            fact(&["class mentioned", name]);
        }
    }
    moments(case, &mut fact);
    fact(&["length", size(doc.length)]);
    fact(&["sentences", size(doc.sentences.len())]);
    fact(&["questions", size(doc.sentences.iter().filter(|s| s.asks_by_mark()).count())]);
    fact(&["exclamations", size(doc.sentences.iter().filter(|s| s.text.ends_with('!')).count())]);
    fact(&["promo", size(case.facts.promo.0)]);
    fact(&["newsletter", size(case.facts.newsletter)]);
    fact(&["records", size(case.facts.transactional.0)]);
    fact(&["failures", size(case.facts.failure.0)]);
}

fn moments(case: &Case<'_>, fact: &mut dyn FnMut(&[&str])) {
    if let Some(asked) = case.asked {
        fact(&["asked", hours(asked.at, case.now)]);
    }
    let calm = case.doc.mentions(Class::Calm);
    let mut nearest: Option<i64> = None;
    for s in &case.doc.sentences {
        for m in &s.moments {
            let by = if m.by { "by" } else { "at" };
            let exact = if m.exact { "hour" } else { "day" };
            fact(&["time", hours(m.at, case.now), by, exact]);
            if m.over {
                fact(&["time over today"]);
            }
            if m.at > case.now && nearest.is_none_or(|n| m.at < n) {
                nearest = Some(m.at);
            }
        }
    }
    match nearest {
        Some(at) => fact(&["nearest", hours(at, case.now), if calm { "calm" } else { "" }]),
        None => fact(&["nearest", "none"]),
    }
}

impl Space {
    /// A piece of evidence in words.
    pub(super) fn tell(self, parts: &[&str]) -> String {
        let joined = |by: &str| parts.join(by).trim().to_owned();
        match self {
            Space::Word | Space::East => format!("\"{}\"", joined(" ")),
            Space::Pair => format!("\"{}\"", joined(" ").trim_start_matches("^ ")),
            Space::Subject | Space::EastSubject => format!("\"{}\" in the subject", joined(" ")),
            Space::Piece => format!("\"{}\" in a word", parts.get(1).unwrap_or(&"")),
            Space::Kind => format!("\"{}\" in mail of a {}", parts.get(1).unwrap_or(&""), parts.first().unwrap_or(&"")),
            Space::Sender => format!("\"{}\" in the sender's name", joined(" ")),
            Space::Fact => joined(" "),
            Space::End | Space::EastEnd => format!("\"{}\" at the end", joined(" ")),
            Space::Concept => format!("concept {}", joined(", in the ")),
        }
    }
}
