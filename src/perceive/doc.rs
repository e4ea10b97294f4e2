//! The words of a message: sentences with what was found in them.

use std::borrow::Cow;

use super::body::{Reading, cut};
use super::steering;
use super::text::{count, is_word, letters, normal, sentences};
use super::time::{Clock, Moment, moments};
use super::trained::MAX_CHARACTERS;
use super::words::{Class, Finder, Hit, Lang, Said, spoken};

/// Octets of text that are searched for words; a longer message says what it
/// wants at its start or its end.
const MAX_SEARCHED: usize = 48 * 1024;
/// Fewer visible characters of own text than this: a forward without words.
const FORWARD_ONLY: usize = 24;

/// One sentence.
#[derive(Debug, Clone)]
pub(super) struct Sentence {
    pub(super) text: String,
    pub(super) hits: Vec<Hit>,
    /// The concepts that it names, as often as it does; of the first
    /// [`MAX_CHARACTERS`] only.
    pub(super) concepts: Vec<&'static str>,
    pub(super) moments: Vec<Moment>,
    pub(super) subject: bool,
    /// Classes of the phrases, and of those that [`Sentence::plain`] gives.
    classes: (u64, u64),
}

/// The words of a message.
#[derive(Debug, Clone)]
pub(super) struct Doc {
    pub(super) sentences: Vec<Sentence>,
    pub(super) lang: Option<Lang>,
    /// Visible characters of own text.
    pub(super) length: usize,
    /// A telephone number stands in the text.
    pub(super) has_number: bool,
    /// Words that are meant for a program were left out.
    pub(super) steered: bool,
    /// Classes of all sentences, as [`Sentence`] has them.
    classes: (u64, u64),
}

impl Sentence {
    fn new(text: String, said: Said, moments: Vec<Moment>, subject: bool) -> Sentence {
        let Said { hits, concepts } = said;
        let mut s = Sentence { text, hits, concepts, moments, subject, classes: (0, 0) };
        let bits = |hits: &mut dyn Iterator<Item = &Hit>| -> u64 {
            hits.filter_map(|h| h.class.bit()).fold(0, |all, bit| all | 1 << bit)
        };
        s.classes.0 = bits(&mut s.hits.iter());
        s.classes.1 = bits(&mut s.hits.iter().filter(|h| s.is_plain(h)));
        s
    }

    pub(super) fn has(&self, class: Class) -> bool {
        match class.bit() {
            Some(bit) => self.classes.0 & 1 << bit != 0,
            None => self.hits.iter().any(|h| h.class == class),
        }
    }

    fn is_plain(&self, hit: &Hit) -> bool {
        !self.overlapped(hit, Class::Formula) && !self.overlapped(hit, Class::Calm)
    }

    fn overlapped(&self, hit: &Hit, by: Class) -> bool {
        self.has(by) && self.hits.iter().any(|h| h.class == by && h.start < hit.end && hit.start < h.end)
    }

    /// Phrases of a class that are no part of a formula or a reassurance.
    pub(super) fn plain(&self, class: Class) -> impl Iterator<Item = &Hit> {
        self.hits.iter().filter(move |h| h.class == class && self.is_plain(h))
    }

    pub(super) fn has_plain(&self, class: Class) -> bool {
        match class.bit() {
            Some(bit) => self.classes.1 & 1 << bit != 0,
            None => self.plain(class).next().is_some(),
        }
    }

    pub(super) fn asks_by_mark(&self) -> bool {
        self.text.contains('?')
    }
}

impl Doc {
    pub(super) fn new(reading: &Reading, clock: &Clock) -> Doc {
        let own = searched(&reading.own);
        let own = without_links(&own);
        let length = letters(&own);
        let forwarded = length < FORWARD_ONLY && is_forward(&reading.subject);
        let body =
            if forwarded { format!("{own}\n\n{}", without_links(&searched(&reading.quoted))).into() } else { own };
        let (subject, body) = (normal(bare_subject(&reading.subject)), normal(&body));
        let whole = body.len();
        // Most mail holds no mark at all, which one look at the whole tells.
        let marks = steering::may_be_marked(&subject) || steering::may_be_marked(&body);
        let body = if marks { steering::without(&body) } else { body };
        let langs = spoken(&format!("{subject}\n{}", cut(&body, 4096)));
        let lang = if subject.chars().chain(body.chars()).any(|c| is_word(c) && !c.is_numeric()) {
            langs.first().copied()
        } else {
            None
        };
        let reading_lang = lang.unwrap_or(Lang::En);
        let mut finder = Finder::new(&langs);
        let mut characters = 0;
        let mut make = |text: String, subject: bool| {
            let said = if characters < MAX_CHARACTERS {
                characters += text.chars().count();
                finder.all(&text)
            } else {
                finder.words(&text)
            };
            let moments = moments(&text, &said.hits, reading_lang, clock);
            Sentence::new(text, said, moments, subject)
        };
        let mut steered = body.len() < whole;
        let mut meant = |text: &String| {
            let steers = (marks && steering::is_marked(text)) || steering::is_heap(text, &langs);
            steered |= steers;
            !steers
        };
        let mut all: Vec<Sentence> =
            sentences(&subject).into_iter().filter(&mut meant).map(|s| make(s, true)).collect();
        all.extend(sentences(&body).into_iter().filter(&mut meant).map(|s| make(s, false)));
        let has_number = all.iter().any(|s| has_telephone(&s.text));
        let classes = all.iter().fold((0, 0), |sum, s| (sum.0 | s.classes.0, sum.1 | s.classes.1));
        Doc { sentences: all, lang, length, has_number, steered, classes }
    }

    /// Distinct phrases of a class outside formulas, and how many of the
    /// sentences that hold one are in the subject.
    pub(super) fn count(&self, class: Class) -> (usize, usize) {
        let mut seen: Vec<&str> = Vec::new();
        let mut in_subject = 0;
        for s in self.sentences.iter().filter(|s| s.has_plain(class)) {
            let mut any = false;
            for h in s.plain(class) {
                any = true;
                let words = &s.text[h.start..h.end];
                if !seen.contains(&words) {
                    seen.push(words);
                }
            }
            in_subject += usize::from(any && s.subject);
        }
        (seen.len(), in_subject)
    }

    pub(super) fn has(&self, class: Class) -> bool {
        match class.bit() {
            Some(bit) => self.classes.1 & 1 << bit != 0,
            None => self.sentences.iter().any(|s| s.has_plain(class)),
        }
    }

    /// Any phrase of a class, formulas included.
    pub(super) fn mentions(&self, class: Class) -> bool {
        match class.bit() {
            Some(bit) => self.classes.0 & 1 << bit != 0,
            None => self.sentences.iter().any(|s| s.has(class)),
        }
    }

    /// The sentence and its neighbours.
    pub(super) fn around(&self, n: usize) -> &[Sentence] {
        &self.sentences[n.saturating_sub(1)..(n + 2).min(self.sentences.len())]
    }
}

/// A run of seven to fifteen digits with the marks of telephone numbers.
fn has_telephone(text: &str) -> bool {
    if count(text.as_bytes(), |o| o.is_ascii_digit()) < 7 {
        return false;
    }
    text.split(|c: char| !(c.is_ascii_digit() || matches!(c, ' ' | '-' | '+' | '(' | ')' | '/' | '.')))
        .map(|run| run.trim_matches([' ', '.', '/', '-']))
        .any(|run| {
            let digits = run.bytes().filter(u8::is_ascii_digit).count();
            (7..=15).contains(&digits) && (run.contains('-') || run.contains(' ') || run.starts_with(['+', '0', '(']))
        })
}

/// The start and, of a long text, the end.
fn searched(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_SEARCHED {
        return Cow::Borrowed(text);
    }
    let head = cut(text, MAX_SEARCHED / 4 * 3);
    let mut from = text.len() - MAX_SEARCHED / 4;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    Cow::Owned(format!("{head}\n\n{}", &text[from..]))
}

/// Links say nothing in words, and their question marks ask nothing.
fn without_links(text: &str) -> Cow<'_, str> {
    let mut links = Links { text, scheme: Some(0), www: Some(0) };
    let mut out = String::new();
    let mut said = 0;
    while let Some(start) = links.next(said) {
        out.push_str(&text[said..start]);
        said = text[start..]
            .find(|c: char| c.is_whitespace() || matches!(c, '>' | '"' | ')' | '。' | '」'))
            .map_or(text.len(), |n| start + n);
    }
    if said == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[said..]);
    Cow::Owned(out)
}

/// Where links begin in a text.
struct Links<'a> {
    text: &'a str,
    /// Where each of the two kinds was found last, from which on the next is
    /// looked for; none where there is none any more.
    scheme: Option<usize>,
    www: Option<usize>,
}

impl Links<'_> {
    /// The first link from `from` on, which never goes back.
    fn next(&mut self, from: usize) -> Option<usize> {
        let octets = self.text.as_bytes();
        while let Some(at) = self.scheme.filter(|at| *at < from || !self.is_scheme(*at, from)) {
            let next = at.max(from) + usize::from(at >= from);
            self.scheme = octets.get(next..).and_then(|rest| memchr::memmem::find(rest, b"://")).map(|n| next + n);
        }
        while let Some(at) = self.www.filter(|at| *at < from || !octets[*at..].starts_with(b"www.")) {
            let next = at.max(from);
            self.www = octets.get(next..).and_then(|rest| memchr::memmem::find(rest, b"www.")).map(|n| next + n);
        }
        let scheme = self.scheme.map(|at| at - if octets[..at].ends_with(b"s") { 5 } else { 4 });
        scheme.into_iter().chain(self.www).min()
    }

    /// Whether `://` stands here after `http` or `https` that begins at `from` or later.
    fn is_scheme(&self, at: usize, from: usize) -> bool {
        let before = &self.text.as_bytes()[from..at];
        self.text.as_bytes()[at..].starts_with(b"://") && (before.ends_with(b"http") || before.ends_with(b"https"))
    }
}

const REPLY_MARKS: &[&str] =
    &["re:", "aw:", "sv:", "antw:", "回复:", "回复：", "回覆:", "答复:", "답장:", "返信:", "rv:", "re："];
const FORWARD_MARKS: &[&str] = &["fw:", "fwd:", "wg:", "tr:", "rv:", "转发:", "转发：", "轉寄:", "전달:", "転送:"];

fn is_forward(subject: &str) -> bool {
    let s = subject.trim().to_lowercase();
    FORWARD_MARKS.iter().any(|m| s.starts_with(m))
}

/// Whether the subject says that it answers.
pub(super) fn is_reply(subject: &str) -> bool {
    let s = subject.trim().to_lowercase();
    REPLY_MARKS.iter().any(|m| s.starts_with(m))
}

/// The subject without the marks of replies and forwards.
pub(super) fn bare_subject(subject: &str) -> &str {
    let mut s = subject.trim();
    for _ in 0..8 {
        let mark = REPLY_MARKS
            .iter()
            .chain(FORWARD_MARKS)
            .find(|m| s.get(..m.len()).is_some_and(|head| head.to_lowercase() == **m));
        match mark {
            Some(m) => s = s[m.len()..].trim_start(),
            None => break,
        }
    }
    s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_lose_their_marks() {
        assert_eq!(bare_subject("Re: AW: Fwd: Zahlen"), "Zahlen");
        assert_eq!(bare_subject("回复：项目"), "项目");
        assert!(is_forward("WG: x") && is_reply("AW: x") && !is_reply("Rent: x"));
    }

    #[test]
    fn links_ask_nothing() {
        assert_eq!(without_links("see https://example.org/?a=b now"), "see  now");
        assert_eq!(without_links("日本 https://example.org/?a。次"), "日本 。次");
    }
}
