//! Where the plain text and the HTML of one message say different things.
//!
//! Promises: words and links that stand only on one side are listed, up to a
//! limit each. Doesn't know: meaning, order, or how often a word stands.

use std::collections::BTreeSet;

use super::html::Scan;

/// Most words and links listed a side.
pub(super) const MAX_LISTED: usize = 20;

/// What stands only on one side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Part that holds the alternatives.
    pub place: String,
    /// Words only in the plain text.
    pub only_text: Vec<String>,
    /// Words only in the HTML.
    pub only_html: Vec<String>,
    /// Links only in the plain text.
    pub links_only_text: Vec<String>,
    /// Links only in the HTML.
    pub links_only_html: Vec<String>,
    /// How many words stand on one side only.
    pub words: usize,
}

impl Difference {
    /// Whether both say the same, as far as this comparison sees.
    pub fn is_empty(&self) -> bool {
        self.words == 0 && self.links_only_text.is_empty() && self.links_only_html.is_empty()
    }
}

/// Compares a plain text with an HTML text.
pub(super) fn compare(place: &str, text: &str, html: &Scan) -> Difference {
    let (text_links, prose) = take_links(text);
    let (mut html_links, html_prose) = take_links(&html.text);
    html_links.extend(html.links.iter().map(|l| link(&l.target)).filter(|l| !l.starts_with('#') && !l.is_empty()));
    let (left, right) = (words(&prose), words(&html_prose));
    let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect::<Vec<_>>();
    let (mut only_text, mut only_html) = (only(&left, &right), only(&right, &left));
    let total = only_text.len() + only_html.len();
    let (mut links_only_text, mut links_only_html) = (only(&text_links, &html_links), only(&html_links, &text_links));
    for list in [&mut only_text, &mut only_html, &mut links_only_text, &mut links_only_html] {
        list.truncate(MAX_LISTED);
    }
    Difference { place: place.to_owned(), only_text, only_html, links_only_text, links_only_html, words: total }
}

/// Links, and the text without them.
fn take_links(text: &str) -> (BTreeSet<String>, String) {
    let (mut links, mut prose) = (BTreeSet::new(), String::with_capacity(text.len()));
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| "<>()[]\"'.,;".contains(c));
        if bare.contains("://") || bare.starts_with("mailto:") || bare.starts_with("www.") {
            links.insert(link(bare));
        } else {
            prose.push_str(word);
            prose.push(' ');
        }
    }
    (links, prose)
}

fn link(target: &str) -> String {
    target.trim().trim_end_matches('/').trim_start_matches("mailto:").to_owned()
}

/// Words in lower case; marks of plain-text writing (`*`, `>`, `-`) are none.
fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '@')
        .filter(|w| w.chars().count() > 1 || w.chars().any(char::is_numeric))
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::html::scan;
    use super::*;

    #[test]
    fn the_same_words_in_other_dress_are_no_difference() {
        let html = scan("<h1>Hello Ada</h1><p>See <a href=\"https://example.org/a/\">the page</a>.</p>");
        let d = compare("part 1", "HELLO ADA\n\nSee the page <https://example.org/a>.", &html);
        assert!(d.is_empty(), "{d:?}");
    }

    #[test]
    fn another_amount_and_another_link_are_seen() {
        let html = scan("<p>Pay 9000 <a href=\"https://evil.example\">here</a></p>");
        let d = compare("part 1", "Pay 10 here https://bank.example", &html);
        assert_eq!((d.only_text, d.only_html), (vec!["10".to_owned()], vec!["9000".to_owned()]));
        assert_eq!(d.links_only_html, ["https://evil.example"]);
        assert_eq!(d.links_only_text, ["https://bank.example"]);
    }
}
