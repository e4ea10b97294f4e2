//! Dialogues that a person can read, played against a server.
//!
//! A file has a head and lines:
//!
//! ```text
//! # What it is about.
//! face: imap              or smtp
//! runs: split             also split in two at every octet; or: once
//! C: a1 LOGIN x y         a line, with CRLF
//! C| abc                  octets without a line end
//! S: a1 OK*               the next line; `*` stands for anything
//! S~ a1 OK*               lines up to one like this
//! S.                      the server closes
//! ```
//!
//! In client lines `${NAME}` is a value, `<CR>`, `<LF>`, `<NUL>` are octets
//! and `<A*300>` is A three hundred times. `once` is for dialogues that change
//! something: they run against a fresh server each time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::wire::Wire;

/// The pause between two writes that should arrive apart.
const PAUSE: Duration = Duration::from_micros(300);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Send(Vec<u8>),
    Line(String),
    Until(String),
    Closed,
}

/// A dialogue.
#[derive(Debug, Clone)]
pub(crate) struct Transcript {
    name: String,
    pub(crate) face: String,
    /// Whether it may run again and again against one server.
    pub(crate) again: bool,
    /// Each with its line number.
    steps: Vec<(usize, Step)>,
}

/// How the client's octets are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Whole,
    /// Every octet is written alone.
    Single,
    /// Two writes; the first has this many octets of all that are sent.
    At(usize),
}

impl Transcript {
    /// Reads a file of `tests/transcripts`.
    #[track_caller]
    pub(crate) fn load(name: &str, values: &BTreeMap<&str, String>) -> Transcript {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut transcript = Transcript { name: name.to_owned(), face: String::new(), again: true, steps: Vec::new() };
        for (number, line) in text.lines().enumerate().map(|(n, l)| (n + 1, l)) {
            transcript.read(number, line, values);
        }
        assert!(!transcript.steps.is_empty(), "{name} is empty");
        transcript
    }

    fn read(&mut self, number: usize, line: &str, values: &BTreeMap<&str, String>) {
        let step = match line.split_once(' ').unwrap_or((line, "")) {
            ("" | "#", _) => return,
            ("face:", face) => return face.clone_into(&mut self.face),
            ("runs:", runs) => return self.again = runs == "split",
            ("C:", text) => Step::Send([octets(text, values), b"\r\n".to_vec()].concat()),
            ("C|", text) => Step::Send(octets(text, values)),
            ("S:", glob) => Step::Line(filled(glob, values)),
            ("S~", glob) => Step::Until(filled(glob, values)),
            ("S.", "") => Step::Closed,
            _ => panic!("{}:{number}: not a line of a transcript: {line}", self.name),
        };
        // What is sent without waiting is one block, which may be cut anywhere.
        if let (Step::Send(more), Some((_, Step::Send(block)))) = (&step, self.steps.last_mut()) {
            block.extend_from_slice(more);
        } else {
            self.steps.push((number, step));
        }
    }

    /// How many octets the client sends.
    pub(crate) fn sent(&self) -> usize {
        self.steps.iter().map(|(_, s)| if let Step::Send(octets) = s { octets.len() } else { 0 }).sum()
    }

    /// Plays it.
    ///
    /// # Panics
    /// Where the server says something else.
    #[track_caller]
    pub(crate) fn play(&self, port: u16, cut: Cut) {
        let mut wire = Wire::connect(port);
        let mut before = 0;
        for (number, step) in &self.steps {
            let at = format!("{}:{number}, {cut:?}", self.name);
            match step {
                Step::Send(octets) => {
                    for part in parts(octets, cut, before) {
                        // A server that had enough may have closed already.
                        if wire.try_send(part).is_err() {
                            break;
                        }
                        if part.len() < octets.len() {
                            std::thread::sleep(PAUSE);
                        }
                    }
                    before += octets.len();
                }
                Step::Line(glob) => {
                    let line = wire.try_line().unwrap_or_else(|e| panic!("{at}: {e} instead of {glob}"));
                    let line = String::from_utf8_lossy(&line);
                    assert!(like(glob, &line), "{at}: wanted {glob}, got {line}");
                }
                Step::Until(glob) => loop {
                    let line = wire.try_line().unwrap_or_else(|e| panic!("{at}: {e} instead of {glob}"));
                    if like(glob, &String::from_utf8_lossy(&line)) {
                        break;
                    }
                },
                Step::Closed => {
                    let rest = wire.rest();
                    assert!(rest.is_empty(), "{at}: more came: {:?}", String::from_utf8_lossy(&rest));
                }
            }
        }
    }
}

fn parts(octets: &[u8], cut: Cut, before: usize) -> Vec<&[u8]> {
    match cut {
        Cut::Single => octets.chunks(1).collect(),
        Cut::At(n) if n > before && n < before + octets.len() => {
            let (first, second) = octets.split_at(n - before);
            vec![first, second]
        }
        Cut::Whole | Cut::At(_) => vec![octets],
    }
}

fn filled(text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut text = text.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    assert!(!text.contains("${"), "no value for something in {text}");
    text
}

fn octets(text: &str, values: &BTreeMap<&str, String>) -> Vec<u8> {
    let text = filled(text, values).replace("<CR>", "\r").replace("<LF>", "\n").replace("<NUL>", "\0");
    let Some((before, rest)) = text.split_once("<A*") else { return text.into_bytes() };
    let (count, after) = rest.split_once('>').expect("<A*N>");
    format!("{before}{}{after}", "A".repeat(count.parse().expect("<A*N>"))).into_bytes()
}

/// Whether `text` is like `glob`, in which `*` stands for anything. A line
/// that begins with `* ` in IMAP is written `\* `.
fn like(glob: &str, text: &str) -> bool {
    let glob = glob.replace("\\*", "\u{1}");
    let mut pieces = glob.split('*').map(|piece| piece.replace('\u{1}', "*"));
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    let pieces: Vec<String> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last.as_str())
}

#[test]
fn globs_match_what_they_say() {
    assert!(like("a OK*", "a OK done") && like("a OK", "a OK") && like("*", ""));
    assert!(like("\\* LIST (*) \"/\" INBOX", "* LIST (\\HasNoChildren) \"/\" INBOX"));
    assert!(!like("a OK", "a OK done") && !like("a OK*", "b OK") && !like("a*z", "a"));
    assert!(!like("\\* OK*", "+ OK"));
}
