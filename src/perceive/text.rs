//! One form of text to look things up in, and its sentences.

use unicode_normalization::UnicodeNormalization;

/// Sentences that are looked at; a longer text says what it wants before.
const MAX_SENTENCES: usize = 600;
/// Characters after which a sentence is cut.
const MAX_SENTENCE: usize = 600;
/// Lines at least this long may be wrapped by a program, not ended by a person.
const WRAPPED: usize = 56;

/// Lower case, compatibility forms and Latin accents folded, typographic
/// quotes plain, invisible characters gone. Idempotent.
pub(super) fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.nfkc() {
        match c {
            '\u{2018}' | '\u{2019}' | '\u{02bc}' | '`' | '´' => out.push('\''),
            '\u{201c}' | '\u{201d}' | '\u{201e}' => out.push('"'),
            '\u{2010}'..='\u{2015}' => out.push('-'),
            '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' => {}
            '\n' => out.push('\n'),
            c if c.is_whitespace() || c.is_control() => out.push(' '),
            '\u{c0}'..='\u{24f}' => {
                out.extend(
                    c.nfd()
                        .filter(|c| !unicode_normalization::char::is_combining_mark(*c))
                        .flat_map(char::to_lowercase),
                );
            }
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// Sentences of a normalised text: blanks single, wrapped lines joined.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut now = String::new();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for (n, line) in lines.iter().enumerate() {
        push_line(line, &mut now, &mut out);
        let wrapped = line.chars().count() >= WRAPPED && lines.get(n + 1).is_some_and(|l| !l.is_empty());
        if wrapped {
            now.push(' ');
        } else {
            end(&mut now, &mut out);
        }
        if out.len() >= MAX_SENTENCES {
            break;
        }
    }
    end(&mut now, &mut out);
    out.truncate(MAX_SENTENCES);
    out
}

fn push_line(line: &str, now: &mut String, out: &mut Vec<String>) {
    // "p.m." would end a sentence in the middle of a time.
    let line = line.replace("p.m.", "pm").replace("a.m.", "am").replace("p.m", "pm").replace("a.m", "am");
    let mut chars = line.chars().peekable();
    let mut length = now.chars().count();
    while let Some(c) = chars.next() {
        if c == ' ' && (now.is_empty() || now.ends_with(' ')) {
            continue;
        }
        now.push(c);
        length += 1;
        let stop = match c {
            '。' | '!' | '?' | '\u{2026}' => true,
            '.' => chars.peek().is_none_or(|n| *n == ' ') && !abbreviated(now),
            _ => length >= MAX_SENTENCE,
        };
        if stop {
            end(now, out);
            length = 0;
        }
    }
}

/// A number or a single letter before the full stop: "5. Dezember", "z. B.".
fn abbreviated(now: &str) -> bool {
    let before = now.trim_end_matches('.');
    let last = before.rsplit(' ').next().unwrap_or_default();
    let digits = !last.is_empty() && last.len() <= 2 && last.bytes().all(|b| b.is_ascii_digit());
    digits
        || last.chars().count() == 1
        || matches!(
            last,
            "mr" | "mrs" | "ms" | "dr" | "st" | "nr" | "no" | "usw" | "bzw" | "ca" | "etc" | "tel" | "sr" | "sra"
        )
}

fn end(now: &mut String, out: &mut Vec<String>) {
    let sentence = std::mem::take(now);
    let sentence = sentence.trim();
    if sentence.chars().any(char::is_alphanumeric) {
        out.push(sentence.to_owned());
    } else if sentence.contains('?')
        && let Some(last) = out.last_mut()
    {
        last.push('?');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_that_read_alike_are_alike() {
        assert_eq!(normal("ＡＢＣ　１２：３０"), "abc 12:30");
        assert_eq!(normal("Réunion Übermorgen mañana ‘x’"), "reunion ubermorgen manana 'x'");
        assert_eq!(normal("ur\u{200b}gent"), "urgent");
        assert_eq!(normal("회의 がぎ"), "회의 がぎ");
    }

    #[test]
    fn sentences_end_where_a_reader_ends_them() {
        assert_eq!(sentences("one. two? three 3.5 four"), ["one.", "two?", "three 3.5 four"]);
        assert_eq!(sentences("bis zum 5. dezember um 3 p.m. bitte"), ["bis zum 5. dezember um 3 pm bitte"]);
        assert_eq!(sentences("一です。二です"), ["一です。", "二です"]);
        assert_eq!(sentences("hi,\n\nshort line\nnext line"), ["hi,", "short line", "next line"]);
        let wrapped = "could you please send the whole quarterly report to me by\nfriday";
        assert_eq!(sentences(wrapped).len(), 1);
    }

    #[test]
    fn an_endless_text_has_an_end() {
        assert!(sentences(&"a. ".repeat(100_000)).len() <= MAX_SENTENCES);
        assert!(sentences(&"word ".repeat(50_000)).len() <= MAX_SENTENCES);
    }
}
