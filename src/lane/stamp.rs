//! Stamps: the header fields that are prepended to what a client sees, and the
//! renaming of fields that pretend to be stamps.
//!
//! Promises: every line of a stamp is ASCII, under 78 columns and ends with
//! CRLF; a message that went through [`Neutraliser`] has the length that it
//! had, no header field of our namespace, and an untouched body, however it
//! was cut into chunks. Doesn't know: sections, partials, where a stamp goes.

use unicode_normalization::UnicodeNormalization;

use super::trace::Trace;

/// The namespace of stamps.
pub const NAMESPACE: &[u8; NAMESPACE_LEN] = b"X-Tollgate-";
/// What fields of our namespace that came from outside are called instead.
pub const OUTSIDE: &[u8; NAMESPACE_LEN] = b"X-Outsider-";
const NAMESPACE_LEN: usize = 11;

/// Longest line of a stamp, without its CRLF.
const MAX_COLUMNS: usize = 77;

/// The stamp of a decision: header lines in their fixed order.
pub fn render(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::with_capacity(400);
    let f = trace.features();
    field(&mut out, "Lane", trace.verdict.lane.name());
    let scores = format!(
        "conf={:.2} trust={:.2} rev={:.2} urg={:.2}",
        f.confidence(),
        trace.context.bound_trust(f.sender_trust()),
        f.reversibility(),
        f.urgency()
    );
    field(&mut out, "Scores", &scores);
    if !trace.signals.is_empty() {
        words(&mut out, "Signals", &trace.signals.names());
    }
    field(&mut out, "Reason", &trace.reason);
    field(&mut out, "Decision", &trace.decision);
    if let Some(canary) = trace.verdict.canary {
        field(&mut out, "Canary", canary.name());
    }
    if let Some(deadline) = &trace.deadline {
        field(&mut out, "Deadline", &deadline.local);
    }
    out
}

/// One field on one line, its value cut to fit.
fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    let head = format!("X-Tollgate-{name}: ");
    let room = MAX_COLUMNS - head.len();
    let mut value = ascii(value);
    if value.len() > room {
        value.truncate(room - 3);
        value.truncate(value.trim_end().len());
        value.push_str("...");
    }
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(if value.is_empty() { "-" } else { &value }.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// One field of words, folded where they don't fit on one line.
fn words(out: &mut Vec<u8>, name: &str, words: &[&str]) {
    let mut line = format!("X-Tollgate-{name}:");
    for word in words {
        if line.len() + 1 + word.len() > MAX_COLUMNS {
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(b"\r\n");
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Printable ASCII on one line: accents taken off, runs of blanks and controls
/// to one blank, runs of anything else to one question mark.
fn ascii(text: &str) -> String {
    let mut out = String::new();
    // Enough characters for any line after folding; the rest is cut anyway.
    for c in text.chars().take(MAX_COLUMNS * 4).nfkd() {
        let c = match c {
            ' '..='~' => c,
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}' | '\u{201d}' => '"',
            '\u{2010}'..='\u{2015}' => '-',
            c if unicode_normalization::char::is_combining_mark(c) || is_invisible(c) => continue,
            c if c.is_control() || c.is_whitespace() => ' ',
            _ => '?',
        };
        let repeated = (c == ' ' || c == '?') && out.ends_with(c);
        let leads = c == ' ' && out.is_empty();
        if !repeated && !leads {
            out.push(c);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Format characters that change or hide what is shown: bidi, zero-width, tags.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Renames fields of our namespace that came from outside, in a stream.
///
/// Feed the octets of one message from the first on, in any chunks. At most
/// ten octets are held back between calls.
#[derive(Debug, Clone)]
pub struct Neutraliser {
    /// The octets at a line start that match the namespace so far, as written.
    held: [u8; NAMESPACE_LEN],
    held_len: usize,
    /// Whether the next octet could continue a match.
    matching: bool,
    line: Line,
}

/// What stands on the current line, as far as the empty line is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Empty,
    OnlyCr,
    Text,
    /// Past the empty line.
    Body,
}

impl Default for Neutraliser {
    fn default() -> Neutraliser {
        Neutraliser::new()
    }
}

impl Neutraliser {
    /// At the first octet of a message.
    pub fn new() -> Neutraliser {
        Neutraliser { held: [0; NAMESPACE_LEN], held_len: 0, matching: true, line: Line::Empty }
    }

    /// Whether the header section is over, so that all that follows is unchanged.
    pub fn in_body(&self) -> bool {
        self.line == Line::Body
    }

    /// Takes the next octets; appends what is settled to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        for (at, &octet) in chunk.iter().enumerate() {
            if self.line == Line::Body {
                out.extend_from_slice(&chunk[at..]);
                return;
            }
            self.step(octet, out);
        }
    }

    /// The message ends here; appends what was held back.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.release(out);
    }

    fn step(&mut self, octet: u8, out: &mut Vec<u8>) {
        match octet {
            b'\n' => {
                self.release(out);
                let over = matches!(self.line, Line::Empty | Line::OnlyCr);
                self.line = if over { Line::Body } else { Line::Empty };
                self.matching = true;
                out.push(octet);
            }
            // A bare CR ends no line here (RFC 5322 §2.2), but some readers of
            // header fields take it for one: what follows it is matched as well.
            b'\r' => {
                self.release(out);
                self.line = if self.line == Line::Empty { Line::OnlyCr } else { Line::Text };
                self.matching = true;
                out.push(octet);
            }
            _ => {
                self.line = Line::Text;
                if self.matching && octet.eq_ignore_ascii_case(&NAMESPACE[self.held_len]) {
                    self.held[self.held_len] = octet;
                    self.held_len += 1;
                    if self.held_len == NAMESPACE_LEN {
                        out.extend_from_slice(OUTSIDE);
                        self.held_len = 0;
                        self.matching = false;
                    }
                } else {
                    self.release(out);
                    self.matching = false;
                    out.push(octet);
                }
            }
        }
    }

    fn release(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.held[..self.held_len]);
        self.held_len = 0;
    }
}

/// The whole message at once.
pub fn neutralise(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len());
    let mut n = Neutraliser::new();
    n.push(message, &mut out);
    n.finish(&mut out);
    out
}

#[cfg(test)]
#[path = "stamp_tests.rs"]
mod tests;
