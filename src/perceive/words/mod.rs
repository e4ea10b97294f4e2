//! The vocabulary, one file per language, and one automaton that finds all of
//! it in one pass.
//!
//! A phrase ends in `*` where any ending may follow. Phrases are brought to
//! the same form as the text ([`super::text::normal`]), so accents may stand
//! or not.

mod de;
mod en;
mod es;
mod fr;
mod ja;
mod ko;
mod zh;

use std::collections::HashMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::text::{is_word, normal};

/// A language that there is a vocabulary for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Lang {
    En,
    De,
    Fr,
    Es,
    Ko,
    Ja,
    Zh,
}

pub(super) const LANGS: [Lang; 7] = [Lang::En, Lang::De, Lang::Fr, Lang::Es, Lang::Ko, Lang::Ja, Lang::Zh];

impl Lang {
    /// ISO 639-1.
    pub(super) fn code(self) -> &'static str {
        match self {
            Lang::En => "en",
            Lang::De => "de",
            Lang::Fr => "fr",
            Lang::Es => "es",
            Lang::Ko => "ko",
            Lang::Ja => "ja",
            Lang::Zh => "zh",
        }
    }

    pub(super) fn is_latin(self) -> bool {
        matches!(self, Lang::En | Lang::De | Lang::Fr | Lang::Es)
    }
}

/// What a phrase stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// Says itself that it is urgent.
    Urgent,
    /// Someone waits or calls at this moment.
    Live,
    /// Asks to be called.
    Call,
    /// Something broke or someone is hurt, now.
    Incident,
    /// A word for trouble, which may be past or other people's.
    Trouble,
    /// Someone is ill or hurt.
    Health,
    /// A building, a door or a car fails someone.
    Home,
    /// A service or a machine fails many.
    Ops,
    /// People are there, or on their way, and the reader isn't.
    Presence,
    /// What is lost without the reader.
    Stakes,
    /// It is so at this time.
    Now,
    /// The reader was called, is to call or is to come.
    Reach,
    /// It is over, or only written about.
    Past,
    /// To type something somewhere.
    Enter,
    /// What a code is typed for.
    SignIn,
    /// A word of records, which means something only in a machine's mail.
    Record,
    /// A word of meeting, which means something only beside a time.
    Suit,
    /// "By then": a time that was named before.
    Then,
    /// Says that nothing is needed or nothing hurries.
    Calm,
    /// Asks the reader for something.
    Request,
    /// Polite formula that only looks like a request.
    Formula,
    /// Wording about fixing or moving a time.
    Scheduling,
    /// Receipt, confirmation, delivery, statement.
    Transactional,
    /// Something failed or is overdue.
    Failure,
    /// Names a one-time code.
    Code,
    /// Names a reset or sign-in link.
    Reset,
    /// Marketing.
    Promo,
    /// A regular publication.
    Newsletter,
    /// How to get off a list.
    Unsubscribe,
    /// A machine says that it is one.
    Machine,
    /// "By" before a time.
    By,
    /// "By" after a time.
    ByAfter,
    /// A word for a deadline.
    Due,
    /// Days from today.
    Day(i8),
    /// 1 Monday … 7 Sunday.
    Weekday(u8),
    /// 1 January … 12 December; counts beside a number.
    Month(u8),
    /// The week after this.
    NextWeek,
    /// The month after this.
    NextMonth,
    /// The end of this week.
    ThisWeek,
    /// The end of this month.
    ThisMonth,
    /// An hour of the day that a word names.
    Hour(u8),
    /// Makes hours of one to eleven those of the afternoon.
    Pm,
    /// Keeps hours as they are.
    Am,
    /// "In" or "within" before a number of units.
    Within,
    /// A unit after a number, in minutes.
    Minutes(u32),
    /// A number word.
    Number(u8),
}

/// Every class that a phrase stands for by itself, with its name in a trace.
pub(super) const CLASSES: &[(Class, &str)] = &[
    (Class::Urgent, "urgent"),
    (Class::Live, "live"),
    (Class::Call, "call"),
    (Class::Incident, "incident"),
    (Class::Trouble, "trouble"),
    (Class::Health, "health"),
    (Class::Home, "home"),
    (Class::Ops, "ops"),
    (Class::Presence, "presence"),
    (Class::Stakes, "stakes"),
    (Class::Now, "now"),
    (Class::Reach, "reach"),
    (Class::Past, "past"),
    (Class::Enter, "enter"),
    (Class::SignIn, "sign in"),
    (Class::Record, "record"),
    (Class::Suit, "suit"),
    (Class::Then, "then"),
    (Class::Calm, "calm"),
    (Class::Request, "request"),
    (Class::Formula, "formula"),
    (Class::Scheduling, "scheduling"),
    (Class::Transactional, "transactional"),
    (Class::Failure, "failure"),
    (Class::Code, "code"),
    (Class::Reset, "reset"),
    (Class::Promo, "promo"),
    (Class::Newsletter, "newsletter"),
    (Class::Unsubscribe, "unsubscribe"),
    (Class::Due, "due"),
];

impl Class {
    /// The place of a class of [`CLASSES`] in a set of bits.
    pub(super) fn bit(self) -> Option<u32> {
        Some(match self {
            Class::Urgent => 0,
            Class::Live => 1,
            Class::Call => 2,
            Class::Incident => 3,
            Class::Trouble => 4,
            Class::Health => 5,
            Class::Home => 6,
            Class::Ops => 7,
            Class::Presence => 8,
            Class::Stakes => 9,
            Class::Now => 10,
            Class::Reach => 11,
            Class::Past => 12,
            Class::Enter => 13,
            Class::SignIn => 14,
            Class::Record => 15,
            Class::Suit => 16,
            Class::Then => 17,
            Class::Calm => 18,
            Class::Request => 19,
            Class::Formula => 20,
            Class::Scheduling => 21,
            Class::Transactional => 22,
            Class::Failure => 23,
            Class::Code => 24,
            Class::Reset => 25,
            Class::Promo => 26,
            Class::Newsletter => 27,
            Class::Unsubscribe => 28,
            Class::Due => 29,
            Class::Machine => 30,
            _ => return None,
        })
    }
}

/// Phrases of one class, separated by `|`.
type Row = (Class, &'static str);

struct Entry {
    class: Class,
    lang: Lang,
    open_end: bool,
}

/// A phrase found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) class: Class,
    pub(super) lang: Lang,
    pub(super) start: usize,
    pub(super) end: usize,
}

struct Lexicon {
    automaton: Option<AhoCorasick>,
    entries: Vec<Entry>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let tables: [(Lang, &[Row]); 7] = [
        (Lang::En, en::WORDS),
        (Lang::De, de::WORDS),
        (Lang::Fr, fr::WORDS),
        (Lang::Es, es::WORDS),
        (Lang::Ko, ko::WORDS),
        (Lang::Ja, ja::WORDS),
        (Lang::Zh, zh::WORDS),
    ];
    let mut entries = Vec::new();
    let mut patterns = Vec::new();
    for (lang, rows) in tables {
        for (class, phrases) in rows {
            for phrase in phrases.split('|').filter(|p| !p.is_empty()) {
                let open_end = phrase.ends_with('*');
                patterns.push(normal(phrase.trim_end_matches('*')));
                entries.push(Entry { class: *class, lang, open_end });
            }
        }
    }
    // Building fails only for more patterns than 32-bit ids can name; then
    // nothing is found, and mail is shown.
    let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(patterns).ok();
    Lexicon { automaton, entries }
});

/// Builds the automaton, which takes a while, unless that is done.
pub(super) fn warm() {
    LazyLock::force(&LEXICON);
}

/// Every phrase in a normalised text, in order of their ends; phrases of
/// languages that aren't `spoken` are left out.
pub(super) fn find(text: &str, spoken: &[Lang]) -> Vec<Hit> {
    let Some(automaton) = &LEXICON.automaton else { return Vec::new() };
    let mut hits = Vec::new();
    for m in automaton.find_overlapping_iter(text) {
        let Some(entry) = LEXICON.entries.get(m.pattern().as_usize()) else { continue };
        if spoken.contains(&entry.lang) && stands_alone(text, m.start(), m.end(), entry.open_end) {
            hits.push(Hit { class: entry.class, lang: entry.lang, start: m.start(), end: m.end() });
        }
    }
    hits
}

/// A phrase in Latin letters must not be a part of a longer word.
pub(super) fn stands_alone(text: &str, start: usize, end: usize, open_end: bool) -> bool {
    // A digit beside a letter is a border: "3pm", "30min".
    let latin = |c: char| (c as u32) < 0x250 && c.is_alphabetic();
    let same = |a: char, b: char| (latin(a) && latin(b)) || (a.is_ascii_digit() && b.is_ascii_digit());
    let before = text[..start].chars().next_back();
    let first = text[start..].chars().next();
    if before.zip(first).is_some_and(|(a, b)| same(a, b)) {
        return false;
    }
    let last = text[..end].chars().next_back();
    let after = text[end..].chars().next();
    open_end || !last.zip(after).is_some_and(|(a, b)| same(a, b))
}

/// Words so common that they tell a Latin language, in which.
static TELLING: LazyLock<HashMap<&str, [bool; 4]>> = LazyLock::new(|| {
    let mut all: HashMap<&str, [bool; 4]> = HashMap::new();
    for (n, (_, words)) in COMMON.iter().enumerate() {
        words.iter().for_each(|w| all.entry(w).or_default()[n] = true);
    }
    all
});

/// Words so common that they tell a Latin language.
const COMMON: [(Lang, &[&str]); 4] = [
    (
        Lang::En,
        &[
            "the", "and", "you", "to", "of", "is", "for", "your", "we", "in", "it", "on", "with", "this", "that",
            "are", "have", "please", "i",
        ],
    ),
    (
        Lang::De,
        &[
            "der", "die", "das", "und", "sie", "ist", "nicht", "wir", "ich", "zu", "fur", "mit", "ihre", "ihr", "auf",
            "den", "bitte", "ein", "eine", "im", "von", "am", "bis", "du",
        ],
    ),
    (
        Lang::Fr,
        &[
            "le", "la", "les", "et", "vous", "de", "des", "est", "pour", "une", "votre", "nous", "je", "du", "au",
            "dans", "que", "pas", "un", "sur", "tu", "avec",
        ],
    ),
    (
        Lang::Es,
        &[
            "el", "la", "los", "y", "de", "que", "su", "por", "para", "una", "es", "en", "con", "no", "del", "se",
            "las", "un", "le", "lo", "tu", "nos",
        ],
    ),
];

/// A word that joins others in some Latin language.
pub(super) fn is_common(word: &str) -> bool {
    TELLING.contains_key(word)
}

/// Share of the leading Latin language from which on another counts as spoken too.
const SECOND_SHARE: f64 = 0.5;

/// Common words below which a text is too short to tell its language.
const FEW: usize = 3;

/// The languages that a normalised text seems to be in, the leading one first.
pub(super) fn spoken(text: &str) -> Vec<Lang> {
    let (mut hangul, mut kana, mut han, mut latin) = (0usize, 0usize, 0usize, 0usize);
    for c in text.chars() {
        match c {
            '\u{ac00}'..='\u{d7af}' => hangul += 1,
            '\u{3040}'..='\u{30ff}' => kana += 1,
            '\u{4e00}'..='\u{9fff}' => han += 1,
            'a'..='z' => latin += 1,
            _ => {}
        }
    }
    let mut shares: Vec<(Lang, f64)> = Vec::new();
    // A syllable or ideograph says as much as about three letters.
    let east = 3.0;
    if hangul > 0 {
        shares.push((Lang::Ko, hangul as f64 * east));
    }
    if kana * 8 >= han && kana > 0 {
        shares.push((Lang::Ja, (kana + han) as f64 * east));
    } else if han > 0 && hangul < han {
        shares.push((Lang::Zh, han as f64 * east));
    }
    let mut counts = [0usize; 4];
    for word in text.split(|c: char| !is_word(c)).filter(|w| !w.is_empty()) {
        if let Some(tells) = TELLING.get(word) {
            counts.iter_mut().zip(tells).for_each(|(count, tells)| *count += usize::from(*tells));
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    for (n, (lang, _)) in COMMON.iter().enumerate() {
        if counts[n] > 0 && counts[n] as f64 >= most as f64 * SECOND_SHARE {
            shares.push((*lang, latin as f64 * counts[n] as f64 / most as f64));
        }
    }
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut spoken: Vec<Lang> = shares.into_iter().map(|(l, _)| l).collect();
    // English words stand in mail of every language; a text too short to tell
    // may be in any.
    if most < FEW && latin > 0 {
        spoken.extend(LANGS.into_iter().filter(|l| l.is_latin()));
    } else if !spoken.contains(&Lang::En) {
        spoken.push(Lang::En);
    }
    let mut seen = Vec::new();
    spoken.retain(|l| {
        !seen.contains(l) && {
            seen.push(*l);
            true
        }
    });
    spoken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_apart() {
        let first = |t: &str| spoken(&normal(t))[0];
        assert_eq!(first("Could you send me the report by Friday?"), Lang::En);
        assert_eq!(first("Können Sie mir bitte den Bericht bis Freitag schicken?"), Lang::De);
        assert_eq!(first("Pourriez-vous m'envoyer le rapport avant vendredi ?"), Lang::Fr);
        assert_eq!(first("¿Puede enviarme el informe antes del viernes?"), Lang::Es);
        assert_eq!(first("금요일까지 보고서를 보내 주시겠어요?"), Lang::Ko);
        assert_eq!(first("金曜日までに報告書を送っていただけますか。"), Lang::Ja);
        assert_eq!(first("请在周五之前把报告发给我。"), Lang::Zh);
    }

    #[test]
    fn a_word_inside_a_word_is_not_found() {
        let found = |t: &str| find(&normal(t), &LANGS).iter().any(|h| h.class == Class::Urgent);
        assert!(found("this is urgent!") && found("URGENT") && !found("insurgents"));
    }

    #[test]
    fn every_phrase_is_found_in_itself() {
        for (lang, rows) in [
            (Lang::En, en::WORDS),
            (Lang::Ko, ko::WORDS),
            (Lang::Ja, ja::WORDS),
            (Lang::Zh, zh::WORDS),
            (Lang::De, de::WORDS),
            (Lang::Fr, fr::WORDS),
            (Lang::Es, es::WORDS),
        ] {
            for (class, phrases) in rows {
                for phrase in phrases.split('|') {
                    assert!(!phrase.is_empty(), "{lang:?} {class:?}");
                    let text = normal(phrase.trim_end_matches('*'));
                    assert!(find(&text, &[lang]).iter().any(|h| h.class == *class), "{lang:?} {phrase}");
                }
            }
        }
    }
}
