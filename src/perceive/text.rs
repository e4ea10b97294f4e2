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
    let mut rest = text;
    while !rest.is_empty() {
        // The last settled character may be composed with a mark that follows.
        let mut chars = rest.char_indices();
        let end = chars.find(|(_, c)| !is_settled(*c)).map(|(at, _)| at);
        let plain = end.map_or(rest.len(), |at| rest[..at].char_indices().next_back().map_or(0, |(at, _)| at));
        let (settled, other) = rest.split_at(plain);
        for c in settled.chars() {
            out.push(match c {
                '`' => '\'',
                '\n' => '\n',
                c if c.is_ascii_control() => ' ',
                c => c.to_ascii_lowercase(),
            });
        }
        let (other, after) = other.split_at(next_settled(other));
        fold(other, &mut out);
        rest = after;
    }
    out
}

/// A letter or a digit; of the scripts that mail is mostly in, without a table.
pub(super) fn is_word(c: char) -> bool {
    match c {
        c if c.is_ascii() => c.is_ascii_alphanumeric(),
        '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => true,
        c => c.is_alphanumeric(),
    }
}

/// A character that is its own compatibility form and has no other case than ASCII's.
fn is_settled(c: char) -> bool {
    matches!(c,
        '\0'..='\x7f' | '\u{3001}' | '\u{3002}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Settled characters in a row from which on a text is read as such again.
const SETTLED_RUN: usize = 8;

/// Where the next run of settled characters begins that is worth reading as such.
fn next_settled(text: &str) -> usize {
    let (mut run, mut from) = (0, 0);
    for (at, c) in text.char_indices() {
        if !is_settled(c) {
            run = 0;
            continue;
        }
        if run == 0 {
            from = at;
        }
        run += 1;
        // The first of them may itself be composed with what stands before it.
        if run == SETTLED_RUN && from > 0 {
            return from;
        }
    }
    text.len()
}

fn fold(text: &str, out: &mut String) {
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
            // Scripts without case, which most that isn't Latin is.
            '\u{3000}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => out.push(c),
            c => out.extend(c.to_lowercase()),
        }
    }
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
    let timed = line.contains(".m");
    let line = if timed {
        line.replace("p.m.", "pm").replace("a.m.", "am").replace("p.m", "pm").replace("a.m", "am").into()
    } else {
        std::borrow::Cow::Borrowed(line)
    };
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
    if sentence.chars().any(is_word) {
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
    fn settled_runs_change_nothing() {
        let whole = |text: &str| {
            let mut out = String::new();
            fold(text, &mut out);
            out
        };
        for text in [
            "plain text, Of Some Length; then e\u{301}t\u{e9} and plain text again e\u{301}",
            "회의 abcdefghijk e\u{308} ABCDEFGHIJKLMN\u{301}",
            "`a`\tb\r\nc\u{7f}",
            "\u{301}abc",
            "",
            "가나다라마바사아자\u{11a8}차카타파하 ﾊﾟﾋﾟ かきくけこさしすせそか\u{3099}たちつてと",
            "漢字漢字漢字漢字漢字㈱漢字漢字漢字漢字漢字漢字 ＡＢＣ ｱｲｳ",
            "e\u{301}가나다라마바사아자e\u{301}가나다라마바사아자\u{301}",
        ] {
            assert_eq!(normal(text), whole(text), "{text:?}");
        }
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
