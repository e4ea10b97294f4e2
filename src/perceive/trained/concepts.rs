//! What is talked of, in whatever language: concepts by the words that people
//! use for them, so that what mail in one language taught holds in the others.
//!
//! Promises: pure; phrases of languages that the text isn't in are left out.
//! Doesn't know: which concept matters; the weights learn that.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::super::text::normal;
use super::super::words::{Lang, stands_alone};

/// A language's lines: `concept: phrase; phrase`, a phrase with `*` open at its end.
const TABLES: [(Lang, &str); 7] = [
    (Lang::En, include_str!("concepts/en.txt")),
    (Lang::De, include_str!("concepts/de.txt")),
    (Lang::Fr, include_str!("concepts/fr.txt")),
    (Lang::Es, include_str!("concepts/es.txt")),
    (Lang::Ko, include_str!("concepts/ko.txt")),
    (Lang::Ja, include_str!("concepts/ja.txt")),
    (Lang::Zh, include_str!("concepts/zh.txt")),
];

struct Entry {
    concept: &'static str,
    lang: Lang,
    open_end: bool,
}

struct Lexicon {
    automaton: Option<AhoCorasick>,
    entries: Vec<Entry>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut entries = Vec::new();
    let mut patterns = Vec::new();
    for (lang, concept, phrase) in phrases() {
        patterns.push(normal(phrase.trim_end_matches('*')));
        entries.push(Entry { concept, lang, open_end: phrase.ends_with('*') });
    }
    // Building fails only for more patterns than 32-bit ids can name; then no
    // concept is found, and the words alone count.
    let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(patterns).ok();
    Lexicon { automaton, entries }
});

fn phrases() -> impl Iterator<Item = (Lang, &'static str, &'static str)> {
    TABLES.into_iter().flat_map(|(lang, table)| {
        table.lines().filter_map(|l| l.split_once(':')).flat_map(move |(concept, list)| {
            let phrases = list.split(';').map(str::trim).filter(|p| !p.is_empty());
            phrases.map(move |p| (lang, concept.trim(), p))
        })
    })
}

/// Builds the automaton, which takes a while, unless that is done.
pub(in crate::perceive) fn warm() {
    LazyLock::force(&LEXICON);
}

/// Hands every concept in a normalised text to `take`.
pub(super) fn found(text: &str, spoken: &[Lang], take: &mut dyn FnMut(&'static str)) {
    let Some(automaton) = &LEXICON.automaton else { return };
    for m in automaton.find_overlapping_iter(text) {
        let Some(entry) = LEXICON.entries.get(m.pattern().as_usize()) else { continue };
        if spoken.contains(&entry.lang) && stands_alone(text, m.start(), m.end(), entry.open_end) {
            take(entry.concept);
        }
    }
}

/// How many distinct concepts a normalised text names.
pub(in crate::perceive) fn named(text: &str, spoken: &[Lang]) -> usize {
    let mut concepts: Vec<&str> = Vec::new();
    found(text, spoken, &mut |concept| {
        if !concepts.contains(&concept) {
            concepts.push(concept);
        }
    });
    concepts.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_language_has_every_concept() {
        let of = |lang| -> BTreeSet<&str> { phrases().filter(|p| p.0 == lang).map(|p| p.1).collect() };
        let all = of(Lang::En);
        assert!(all.len() >= 150, "{}", all.len());
        for (lang, _) in TABLES {
            assert_eq!(of(lang), all, "{lang:?}");
        }
    }

    #[test]
    fn every_phrase_is_found_in_itself() {
        for (lang, concept, phrase) in phrases() {
            let mut seen = Vec::new();
            found(&normal(phrase.trim_end_matches('*')), &[lang], &mut |c| seen.push(c));
            assert!(seen.contains(&concept), "{lang:?} {concept}: {phrase}");
        }
    }
}
