//! The vocabulary, one file per language, of which all is found in one pass
//! together with the concepts.
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
pub(super) mod phrases;
mod zh;

use std::sync::LazyLock;

use super::text::{is_word, normal};
use super::trained;
use phrases::{Phrases, Sets};

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

/// What a phrase of the vocabulary or of a concept stands for.
#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    Class(Class, Lang),
    Concept(&'static str),
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
    phrases: Phrases,
    /// By phrase, a place in `meanings`, which hold each row's once.
    rows: Vec<u16>,
    meanings: Vec<Meaning>,
}

impl Lexicon {
    fn meaning(&self, phrase: u32) -> Option<Meaning> {
        let row = *self.rows.get(phrase as usize)?;
        self.meanings.get(usize::from(row)).copied()
    }
}

/// The sets of the vocabulary in these languages.
fn words(langs: &[Lang]) -> Sets {
    langs.iter().fold(0, |all, lang| all | 1 << *lang as u8)
}

/// The sets of the concepts in these languages.
fn concepts(langs: &[Lang]) -> Sets {
    words(langs) << LANGS.len()
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
    let rows = tables.into_iter().flat_map(|(lang, rows)| rows.iter().map(move |row| (lang, row.0, row.1)));
    let vocabulary = rows.flat_map(|(lang, class, phrases)| {
        let phrases = phrases.split('|').filter(|p| !p.is_empty());
        phrases.map(move |phrase| (words(&[lang]), Meaning::Class(class, lang), phrase))
    });
    let all = vocabulary.chain(
        trained::concepts::phrases()
            .map(|(lang, concept, phrase)| (concepts(&[lang]), Meaning::Concept(concept), phrase)),
    );
    let (mut rows, mut meanings) = (Vec::new(), Vec::new());
    let phrases = Phrases::new(all.map(|(set, meaning, phrase)| {
        if meanings.last() != Some(&meaning) {
            meanings.push(meaning);
        }
        // Rows are some thousands; one that had no number would mean nothing.
        rows.push(u16::try_from(meanings.len() - 1).unwrap_or(u16::MAX));
        (set, normal(phrase.trim_end_matches('*')), phrase.ends_with('*'))
    }));
    Lexicon { phrases, rows, meanings }
});

/// Makes the vocabulary ready, which takes a while, unless that is done.
pub(super) fn warm() {
    LazyLock::force(&LEXICON);
}

/// What a text has of the vocabulary and of the concepts, in order of the
/// phrases' ends.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) hits: Vec<Hit>,
    /// One by one, as often as they are said.
    pub(super) concepts: Vec<&'static str>,
}

/// Finds phrases in one normalised text after another; those of languages that
/// aren't spoken are left out.
pub(super) struct Finder {
    words: Sets,
    concepts: Sets,
    found: Vec<phrases::Found>,
}

impl Finder {
    pub(super) fn new(spoken: &[Lang]) -> Finder {
        Finder { words: words(spoken), concepts: concepts(spoken), found: Vec::new() }
    }

    /// The phrases of the vocabulary.
    pub(super) fn words(&mut self, text: &str) -> Said {
        self.said(text, self.words)
    }

    /// The concepts.
    pub(super) fn concepts(&mut self, text: &str) -> Vec<&'static str> {
        self.said(text, self.concepts).concepts
    }

    /// Both.
    pub(super) fn all(&mut self, text: &str) -> Said {
        self.said(text, self.words | self.concepts)
    }

    fn said(&mut self, text: &str, sets: Sets) -> Said {
        let lexicon = &*LEXICON;
        lexicon.phrases.find(text, sets, &mut self.found);
        let mut out = Said::default();
        let Some(last) = self.found.len().checked_sub(1) else { return out };
        out.hits.reserve_exact(last + 1);
        for found in &self.found {
            match lexicon.meaning(found.phrase) {
                Some(Meaning::Class(class, lang)) => {
                    out.hits.push(Hit { class, lang, start: found.start, end: found.end });
                }
                Some(Meaning::Concept(concept)) => out.concepts.push(concept),
                None => {}
            }
        }
        out
    }
}

/// Words so common that they tell a Latin language, and in which they do;
/// hashed by their octets, free places are 0.
static TELLING: LazyLock<[(u64, [bool; 4]); TELLING_PLACES]> = LazyLock::new(|| {
    let mut all = [(0, [false; 4]); TELLING_PLACES];
    for (n, (_, words)) in COMMON.iter().enumerate() {
        for key in words.iter().filter_map(|w| telling_key(w)) {
            let mut at = telling_place(key);
            while all[at].0 != 0 && all[at].0 != key {
                at = (at + 1) % TELLING_PLACES;
            }
            all[at].0 = key;
            all[at].1[n] = true;
        }
    }
    all
});

/// Many more than [`COMMON`] has words.
const TELLING_PLACES: usize = 512;

/// A short word as a number.
fn telling_key(word: &str) -> Option<u64> {
    (word.len() <= 8).then(|| word.bytes().rev().fold(0, |key, octet| key << 8 | u64::from(octet)))
}

fn telling_place(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % TELLING_PLACES
}

/// The languages that a word tells, in the order of [`COMMON`].
fn telling(word: &str) -> Option<&'static [bool; 4]> {
    let key = telling_key(word).filter(|key| *key != 0)?;
    let all = &*TELLING;
    let mut at = telling_place(key);
    while all[at].0 != 0 {
        if all[at].0 == key {
            return Some(&all[at].1);
        }
        at = (at + 1) % TELLING_PLACES;
    }
    None
}

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
    telling(word).is_some()
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
        if let Some(tells) = telling(word) {
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
        let found = |t: &str| Finder::new(&LANGS).words(&normal(t)).hits.iter().any(|h| h.class == Class::Urgent);
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
                    assert!(
                        Finder::new(&[lang]).words(&text).hits.iter().any(|h| h.class == *class),
                        "{lang:?} {phrase}"
                    );
                }
            }
        }
    }
}
