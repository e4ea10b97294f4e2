//! What is talked of, in whatever language: concepts by the words that people
//! use for them, so that what mail in one language taught holds in the others.
//!
//! Promises: pure; phrases of languages that the text isn't in are left out.
//! Doesn't know: which concept matters; the weights learn that.

use super::super::words::{Finder, Lang};

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

/// Every phrase, with the concept that it names.
pub(in crate::perceive) fn phrases() -> impl Iterator<Item = (Lang, &'static str, &'static str)> {
    TABLES.into_iter().flat_map(|(lang, table)| {
        table.lines().filter_map(|l| l.split_once(':')).flat_map(move |(concept, list)| {
            let phrases = list.split(';').map(str::trim).filter(|p| !p.is_empty());
            phrases.map(move |p| (lang, concept.trim(), p))
        })
    })
}

/// How many distinct concepts a normalised text names.
pub(in crate::perceive) fn named(text: &str, spoken: &[Lang]) -> usize {
    let mut concepts = Finder::new(spoken).concepts(text);
    concepts.sort_unstable();
    concepts.dedup();
    concepts.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::text::normal;
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
            let seen = Finder::new(&[lang]).concepts(&normal(phrase.trim_end_matches('*')));
            assert!(seen.contains(&concept), "{lang:?} {concept}: {phrase}");
        }
    }
}
