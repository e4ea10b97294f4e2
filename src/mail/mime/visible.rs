//! Characters that can't be seen, made visible.
//!
//! Promises: in what [`reveal`] returns, no character hides, reorders or joins
//! another one: each such character stands there as `⟦U+202E⟧`. Every other
//! character is unchanged. Doesn't know: look-alike letters.

use std::collections::BTreeMap;

/// Whether a text may hold line ends of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One line: a field, a file name. Line ends and tabs are revealed.
    Line,
    /// Many lines: a body. CRLF, LF and tab stay as they are.
    Lines,
}

/// A text in which nothing hides, and what was hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revealed {
    /// The text with marks.
    pub text: String,
    /// Which characters were revealed, and how often.
    pub found: BTreeMap<char, usize>,
}

/// Makes what can't be seen in `text` visible.
pub fn reveal(text: &str, shape: Shape) -> Revealed {
    let mut out = Revealed { text: String::with_capacity(text.len()), found: BTreeMap::new() };
    let mut before: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let after = chars.peek().copied();
        let plain_line_end = shape == Shape::Lines && (c == '\n' || c == '\t' || (c == '\r' && after == Some('\n')));
        if plain_line_end {
            if c != '\r' {
                out.text.push(c);
            }
        } else if hides(c) && !belongs_to_an_emoji(before, c, after) {
            out.text.push_str(&mark(c));
            *out.found.entry(c).or_default() += 1;
        } else {
            out.text.push(c);
        }
        before = Some(c);
    }
    out
}

/// How a revealed character is written.
pub fn mark(c: char) -> String {
    format!("⟦U+{:04X}⟧", u32::from(c))
}

/// What a revealed character is called, for the ones that people meet.
pub fn name(c: char) -> &'static str {
    match c {
        '\u{0}' => "NUL",
        '\u{1b}' => "escape",
        '\u{ad}' => "soft hyphen",
        '\u{200b}' => "zero-width space",
        '\u{200c}' => "zero-width non-joiner",
        '\u{200d}' => "zero-width joiner",
        '\u{200e}' | '\u{200f}' | '\u{61c}' => "direction mark",
        '\u{202a}' | '\u{202b}' | '\u{202d}' | '\u{202e}' => "direction override or embedding",
        '\u{202c}' | '\u{2069}' => "end of direction change",
        '\u{2066}'..='\u{2068}' => "direction isolate",
        '\u{2060}' | '\u{feff}' => "zero-width no-break space",
        '\u{e0000}'..='\u{e007f}' => "invisible tag",
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => "variation selector",
        c if c.is_control() => "control character",
        _ => "invisible character",
    }
}

/// Characters without a glyph of their own, and those that reorder others.
/// The list follows Unicode's Default_Ignorable_Code_Point, Bidi_Control and
/// the general categories Cc, Zl and Zp, and adds blank-looking letters.
fn hides(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A joiner between two pictographs and the selector that makes one colourful
/// are part of what is seen.
fn belongs_to_an_emoji(before: Option<char>, c: char, after: Option<char>) -> bool {
    let pictograph = |c: Option<char>| {
        c.is_some_and(
            |c| matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '\u{fe0f}' | '\u{3030}' | '\u{303d}'),
        )
    };
    match c {
        '\u{200d}' => pictograph(before) && pictograph(after),
        '\u{fe0e}' | '\u{fe0f}' => pictograph(before) && before != Some('\u{fe0f}'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_override_is_seen() {
        let r = reveal("invoice\u{202e}fdp.exe", Shape::Line);
        assert_eq!(r.text, "invoice⟦U+202E⟧fdp.exe");
        assert_eq!(r.found.get(&'\u{202e}'), Some(&1));
    }

    #[test]
    fn lines_stay_lines_in_a_body_and_are_revealed_in_a_field() {
        assert_eq!(reveal("a\r\nb\tc\n", Shape::Lines).text, "a\nb\tc\n");
        assert_eq!(reveal("a\rb", Shape::Lines).text, "a⟦U+000D⟧b");
        assert_eq!(reveal("a\r\nb", Shape::Line).text, "a⟦U+000D⟧⟦U+000A⟧b");
    }

    #[test]
    fn tags_and_zero_widths_are_seen_and_emoji_are_left_alone() {
        assert_eq!(reveal("a\u{200b}b\u{e0041}", Shape::Lines).found.len(), 2);
        assert!(reveal("👩\u{200d}🚀 ❤\u{fe0f} naïve Ünïcode 日本", Shape::Lines).found.is_empty());
        assert_eq!(reveal("pay\u{200d}pal", Shape::Lines).found.len(), 1);
        assert_eq!(reveal("a\u{fe0f}", Shape::Lines).found.len(), 1);
    }
}
