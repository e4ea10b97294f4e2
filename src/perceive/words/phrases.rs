//! Every phrase of several vocabularies in a text, in one pass: a trie that is
//! entered only where a phrase may begin.
//!
//! Promises: finds all phrases, overlapping ones too, in order of their ends,
//! the longer first, then as they were given; a phrase in Latin letters or in
//! digits is found only where it isn't a part of a longer word or number.
//! Reading takes time by the text's length, whatever the vocabulary's size,
//! and a vocabulary some 50 octets a phrase. Doesn't know: what phrases mean.

use std::collections::VecDeque;
use std::ops::Range;

/// A phrase that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::perceive) struct Found {
    /// The phrase, as numbered when the vocabulary was made.
    pub(in crate::perceive) phrase: u32,
    /// Octets of the text.
    pub(in crate::perceive) start: usize,
    pub(in crate::perceive) end: usize,
}

/// Sets of phrases, a bit each: a text is searched for some of them.
pub(in crate::perceive) type Sets = u16;

/// Some octets that phrases go through in common, and what may follow them.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// The octets after the first, in the pool.
    tail: u32,
    /// The first of the nodes below, which stand in a row, by their first octets.
    below: u32,
    /// The first of the phrases that end here.
    ending: u32,
    endings: u16,
    belows: u8,
    tail_length: u8,
    /// The sets of the phrases that go through here.
    sets: Sets,
}

/// A phrase at the node where it ends.
#[derive(Debug, Clone, Copy)]
struct Ending {
    phrase: u32,
    sets: Sets,
    open_end: bool,
}

impl Ending {
    /// Takes the phrase in where it is in one of these sets and stands alone.
    fn note(&self, text: &str, start: usize, end: usize, sets: Sets, out: &mut Vec<Found>) {
        if self.sets & sets != 0 && (self.open_end || ends(text, end)) {
            out.push(Found { phrase: self.phrase, start, end });
        }
    }
}

/// A vocabulary, made to be found.
#[derive(Debug)]
pub(in crate::perceive) struct Phrases {
    pool: Vec<u8>,
    nodes: Vec<Node>,
    /// The first octet of each node.
    firsts: Vec<u8>,
    endings: Vec<Ending>,
    /// The nodes that phrases begin with, hashed by their first octets; its
    /// length is a power of two.
    entries: Vec<Entry>,
    /// The sets of phrases by a hash of what they begin with: most places
    /// of a text are passed over by this alone.
    begun: Vec<Sets>,
    /// Phrases of one octet, and the sets that an octet is a phrase in.
    octets: Vec<(u8, Ending)>,
    octet_sets: [Sets; 256],
}

/// A node that phrases begin with.
#[derive(Debug, Clone, Copy)]
struct Entry {
    node: u32,
    /// Bits of the hash that the place in the table doesn't tell.
    tag: u16,
    /// The sets of its phrases; none where the place is free.
    sets: Sets,
}

/// Bits of a place among what phrases begin with.
const BEGUN_BITS: u32 = 15;
/// Places of the table of beginnings for each of them.
const ROOM: usize = 2;
/// Longest tail of a node.
const MAX_TAIL: usize = u8::MAX as usize;

/// What stands beside a phrase and may make it a part of something longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A Latin letter.
    Letter,
    Digit,
    Other,
}

const fn kinds() -> [Kind; 128] {
    let mut out = [Kind::Other; 128];
    let mut n = 0;
    while n < 128 {
        if (n as u8).is_ascii_digit() {
            out[n] = Kind::Digit;
        } else if (n as u8).is_ascii_alphabetic() {
            out[n] = Kind::Letter;
        }
        n += 1;
    }
    out
}

const KINDS: [Kind; 128] = kinds();

/// First octets of the two that letters of U+0080 to U+024F are written in.
const LATIN: Range<u8> = 0xc2..0xca;

impl Kind {
    fn of(c: char) -> Kind {
        match c {
            c if c.is_ascii() => KINDS[c as usize],
            // Above this, scripts that write words without blanks, or few mails.
            c if (c as u32) < 0x250 && c.is_alphabetic() => Kind::Letter,
            _ => Kind::Other,
        }
    }

    /// A digit beside a letter is a border: "3pm", "30min".
    fn joins(self, other: Kind) -> bool {
        self == other && self != Kind::Other
    }
}

/// Octets that phrases are entered by: one letter of the East says little, a
/// second one much.
fn window(first: u8) -> usize {
    if first < 0xe0 { 4 } else { 6 }
}

/// The same for phrases that are shorter than that.
fn short_window(first: u8) -> usize {
    if first < 0xe0 { 2 } else { 3 }
}

/// A hash of the first `window` of eight octets.
fn hash(head: u64, window: usize) -> u64 {
    let octets = head << (64 - 8 * window);
    (octets ^ octets >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn begun(hash: u64) -> usize {
    (hash >> (64 - BEGUN_BITS)) as usize
}

fn tag(hash: u64) -> u16 {
    (hash >> 24) as u16
}

/// The eight octets from a place on, zeros behind the text's end.
fn head(text: &[u8], at: usize) -> u64 {
    if let Some(all) = text.get(at..at + 8).and_then(|o| <[u8; 8]>::try_from(o).ok()) {
        return u64::from_le_bytes(all);
    }
    text.get(at..).unwrap_or_default().iter().take(8).rev().fold(0, |head, o| head << 8 | u64::from(*o))
}

/// A phrase to be put in its place.
struct Given<'t> {
    text: &'t str,
    phrase: u32,
    sets: Sets,
    open_end: bool,
}

impl Given<'_> {
    fn ending(&self) -> Ending {
        Ending { phrase: self.phrase, sets: self.sets, open_end: self.open_end }
    }
}

impl Phrases {
    /// Of phrases in the form that texts are looked up in, numbered from 0 in
    /// this order, each with its set and whether any ending may follow it.
    /// Empty ones are never found.
    pub(in crate::perceive) fn new(phrases: impl Iterator<Item = (Sets, String, bool)>) -> Phrases {
        // All texts in a row: tens of thousands of small pieces would leave
        // holes in the memory of a program that lives long.
        let mut texts = String::new();
        let noted: Vec<(usize, Sets, bool)> = phrases
            .map(|(sets, text, open_end)| {
                texts.push_str(&text);
                (text.len(), sets, open_end)
            })
            .collect();
        let mut rest = texts.as_str();
        let mut given: Vec<Given<'_>> = noted
            .iter()
            .zip(0..)
            .filter_map(|((length, sets, open_end), phrase)| {
                let (text, others) = rest.split_at(*length);
                rest = others;
                (*length > 0).then_some(Given { text, phrase, sets: *sets, open_end: *open_end })
            })
            .collect();
        // Those that are entered by as many octets stand together.
        let key = |g: &Given<'_>| {
            let (long, short) = (window(g.text.as_bytes()[0]), short_window(g.text.as_bytes()[0]));
            [long, short].into_iter().find(|octets| g.text.len() >= *octets).unwrap_or(1)
        };
        given.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then(a.text.cmp(b.text)).then(a.phrase.cmp(&b.phrase)));
        let mut all = Phrases {
            pool: Vec::new(),
            nodes: Vec::new(),
            firsts: Vec::new(),
            endings: Vec::with_capacity(given.len()),
            entries: Vec::new(),
            begun: vec![0; 1 << BEGUN_BITS],
            octets: Vec::new(),
            octet_sets: [0; 256],
        };
        let single = given.partition_point(|g| g.text.len() == 1);
        let (single, given) = given.split_at(single);
        for g in single {
            let octet = g.text.as_bytes()[0];
            all.octets.push((octet, g.ending()));
            all.octet_sets[usize::from(octet)] |= g.sets;
        }
        let same = |a: &Given<'_>, b: &Given<'_>| {
            key(a) == key(b) && a.text.as_bytes()[..key(a)] == b.text.as_bytes()[..key(b)]
        };
        let begun: Vec<&[Given<'_>]> = given.chunk_by(same).collect();
        let free = Entry { node: 0, tag: 0, sets: 0 };
        all.entries = vec![free; (begun.len() * ROOM).next_power_of_two()];
        // Nodes wait here with the phrases that go through them.
        let mut waiting = VecDeque::new();
        for given in begun {
            let Some(first) = given.first() else { continue };
            let window = key(first);
            let node = all.push(&first.text.as_bytes()[..window], given);
            all.entry(node, &first.text.as_bytes()[..window]);
            waiting.push_back((node, given, window));
        }
        while let Some((node, given, depth)) = waiting.pop_front() {
            all.grow(node, given, depth, &mut waiting);
        }
        all.nodes.shrink_to_fit();
        all.firsts.shrink_to_fit();
        all.pool.shrink_to_fit();
        all
    }

    /// A new node behind all others, of phrases that go through these octets.
    fn push(&mut self, octets: &[u8], given: &[Given<'_>]) -> usize {
        let (first, tail) = octets.split_first().map_or((0, octets), |(first, tail)| (*first, tail));
        let sets = given.iter().fold(0, |all, g| all | g.sets);
        let tail_length = tail.len() as u8;
        self.nodes.push(Node {
            tail: self.pool.len() as u32,
            below: 0,
            ending: 0,
            endings: 0,
            belows: 0,
            tail_length,
            sets,
        });
        self.firsts.push(first);
        self.pool.extend_from_slice(tail);
        self.nodes.len() - 1
    }

    /// Makes a node be found by what its phrases begin with.
    fn entry(&mut self, node: usize, octets: &[u8]) {
        let hash = hash(head(octets, 0), octets.len());
        let mut at = self.place(hash);
        while self.entries[at].sets != 0 {
            at = (at + 1) & (self.entries.len() - 1);
        }
        self.begun[begun(hash)] |= self.nodes[node].sets;
        self.entries[at] = Entry { node: node as u32, tag: tag(hash), sets: self.nodes[node].sets };
    }

    /// The first place of the table to look in.
    fn place(&self, hash: u64) -> usize {
        (hash >> 40) as usize & (self.entries.len() - 1)
    }

    /// Fills a node, whose phrases have `depth` octets in common, and makes
    /// room for those below.
    fn grow<'g>(
        &mut self,
        node: usize,
        given: &'g [Given<'g>],
        depth: usize,
        waiting: &mut VecDeque<(usize, &'g [Given<'g>], usize)>,
    ) {
        let ended = given.iter().take_while(|g| g.text.len() == depth).count();
        let (ended, further) = given.split_at(ended);
        let (ending, below) = (self.endings.len() as u32, self.nodes.len() as u32);
        self.endings.extend(ended.iter().map(Given::ending));
        for given in further.chunk_by(|a, b| a.text.as_bytes()[depth] == b.text.as_bytes()[depth]) {
            let (Some(first), Some(last)) = (given.first(), given.last()) else { continue };
            let (a, b) = (&first.text.as_bytes()[depth..], &last.text.as_bytes()[depth..]);
            // In order, so what the outer two have in common, all have.
            let common = a.iter().zip(b).take(MAX_TAIL).take_while(|(a, b)| a == b).count();
            let node = self.push(&a[..common], given);
            waiting.push_back((node, given, depth + common));
        }
        let belows = (self.nodes.len() as u32 - below) as u8;
        let n = &mut self.nodes[node];
        *n = Node { below, ending, endings: ended.len() as u16, belows, ..*n };
    }

    /// Every phrase of these sets in a normalised text, in place of what `out` held.
    pub(in crate::perceive) fn find(&self, text: &str, sets: Sets, out: &mut Vec<Found>) {
        let octets = text.as_bytes();
        out.clear();
        let mut before = Kind::Other;
        let mut at = 0;
        while let Some(&first) = octets.get(at) {
            let (kind, length) = match first {
                0..0x80 => (KINDS[usize::from(first)], 1),
                _ if LATIN.contains(&first) => (text[at..].chars().next().map_or(Kind::Other, Kind::of), 2),
                0x80..0xe0 => (Kind::Other, 2),
                0xe0..0xf0 => (Kind::Other, 3),
                _ => (Kind::Other, 4),
            };
            if !before.joins(kind) {
                if self.octet_sets[usize::from(first)] & sets != 0 {
                    let single = self.octets.iter().filter(|(octet, _)| *octet == first);
                    single.for_each(|(_, ending)| ending.note(text, at, at + 1, sets, out));
                }
                let head = head(octets, at);
                let (long, short) = (hash(head, window(first)), hash(head, short_window(first)));
                for hash in [long, short] {
                    if self.begun[begun(hash)] & sets != 0 {
                        self.look(text, at, hash, sets, out);
                    }
                }
            }
            before = kind;
            at += length;
        }
        // Found by their starts.
        out.sort_unstable_by_key(|f| (f.end, f.start, f.phrase));
    }

    /// Looks for what phrases begin with at `start`.
    fn look(&self, text: &str, start: usize, hash: u64, sets: Sets, out: &mut Vec<Found>) {
        let mut at = self.place(hash);
        while let Some(entry) = self.entries.get(at).filter(|e| e.sets != 0) {
            if entry.tag == tag(hash) && self.enter(text, start, entry.node as usize, sets, out) {
                return;
            }
            at = (at + 1) & (self.entries.len() - 1);
        }
    }

    /// Every phrase of these sets that begins at `start` and goes through a
    /// node; false where the text doesn't begin as the node's phrases do.
    fn enter(&self, text: &str, start: usize, entry: usize, sets: Sets, out: &mut Vec<Found>) -> bool {
        let octets = text.as_bytes();
        if octets[start] != self.firsts[entry] || !self.goes_on(octets, start + 1, &self.nodes[entry]) {
            return false;
        }
        self.follow(text, start, entry, sets, out);
        true
    }

    fn follow(&self, text: &str, start: usize, entry: usize, sets: Sets, out: &mut Vec<Found>) {
        let octets = text.as_bytes();
        let (mut node, mut at) = (entry, start + 1);
        loop {
            let n = &self.nodes[node];
            if n.sets & sets == 0 || !self.goes_on(octets, at, n) {
                return;
            }
            at += usize::from(n.tail_length);
            let endings = n.ending as usize..n.ending as usize + usize::from(n.endings);
            self.endings[endings].iter().for_each(|e| e.note(text, start, at, sets, out));
            let below = n.below as usize..n.below as usize + usize::from(n.belows);
            let Some(first) = octets.get(at) else { return };
            let Some(next) = self.firsts[below.clone()].iter().position(|f| f == first) else { return };
            node = below.start + next;
            at += 1;
        }
    }

    /// Whether the octets after a node's first are in the text.
    fn goes_on(&self, text: &[u8], at: usize, node: &Node) -> bool {
        let tail = node.tail as usize..node.tail as usize + usize::from(node.tail_length);
        match tail.len() {
            0 => true,
            few @ 1..=8 => (head(text, at) ^ head(&self.pool, tail.start)) << (64 - 8 * few) == 0,
            _ => text.get(at..at + tail.len()) == Some(&self.pool[tail]),
        }
    }
}

/// Whether what ends at `at` isn't continued.
fn ends(text: &str, at: usize) -> bool {
    let (last, next) = (text.as_bytes()[at - 1], text.as_bytes().get(at).copied());
    if let (0..0x80, Some(next @ 0..0x80)) = (last, next) {
        return !KINDS[usize::from(last)].joins(KINDS[usize::from(next)]);
    }
    let kind = |c: Option<char>| c.map_or(Kind::Other, Kind::of);
    !kind(text[..at].chars().next_back()).joins(kind(text[at..].chars().next()))
}

#[cfg(test)]
mod tests {
    use aho_corasick::{AhoCorasick, MatchKind};
    use proptest::prelude::*;

    use super::*;

    /// What a text has by the plain reading of the promise.
    fn plainly(phrases: &[(Sets, String, bool)], text: &str, sets: Sets) -> Vec<Found> {
        let all = AhoCorasick::builder().match_kind(MatchKind::Standard).build(phrases.iter().map(|p| &p.1)).unwrap();
        let latin = |c: char| (c as u32) < 0x250 && c.is_alphabetic();
        let same = |a: char, b: char| (latin(a) && latin(b)) || (a.is_ascii_digit() && b.is_ascii_digit());
        let joined = |at: usize| {
            let (before, after) = (text[..at].chars().next_back(), text[at..].chars().next());
            before.zip(after).is_some_and(|(a, b)| same(a, b))
        };
        let found = all.find_overlapping_iter(text).map(|m| (m.pattern().as_usize(), m.start(), m.end()));
        let stands = |(n, start, end): &(usize, usize, usize)| {
            phrases[*n].0 & sets != 0 && !joined(*start) && (phrases[*n].2 || !joined(*end))
        };
        found.filter(stands).map(|(n, start, end)| Found { phrase: n as u32, start, end }).collect()
    }

    fn found(all: &Phrases, text: &str, sets: Sets) -> Vec<Found> {
        let mut out = vec![Found { phrase: 7, start: 0, end: 1 }];
        all.find(text, sets, &mut out);
        out
    }

    proptest! {
        #[test]
        fn all_is_found_in_order(
            phrases in proptest::collection::vec(("[abß1 가나時é]{1,5}", 0u16..16, any::<bool>()), 0..40),
            text in "[abß1 가나時é]{0,60}",
            sets: Sets,
        ) {
            let phrases: Vec<_> = phrases.into_iter().map(|(p, set, open)| (1 << set, p, open)).collect();
            let made = Phrases::new(phrases.iter().cloned());
            prop_assert_eq!(found(&made, &text, sets), plainly(&phrases, &text, sets));
        }
    }

    #[test]
    fn phrases_of_any_length_are_found() {
        let long = "a".repeat(700);
        let phrases = [(1, long.clone(), false), (1, "a".repeat(300), true), (1, String::new(), false)];
        let made = Phrases::new(phrases.into_iter());
        let ends: Vec<usize> = found(&made, &long, 1).iter().map(|f| f.end).collect();
        assert_eq!(ends, [300, 700]);
        assert!(found(&made, &long, 2).is_empty() && found(&made, "", 1).is_empty());
    }
}
