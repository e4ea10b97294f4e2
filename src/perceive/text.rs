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
        let plain = match unsettled(rest) {
            Some(at) => rest[..at].char_indices().next_back().map_or(0, |(at, _)| at),
            None => rest.len(),
        };
        let (settled, other) = rest.split_at(plain);
        push_settled(settled, &mut out);
        let (other, after) = other.split_at(next_settled(other));
        fold(other, &mut out);
        rest = after;
    }
    out
}

/// Where the first character that isn't settled stands.
fn unsettled(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += ascii_run(&text.as_bytes()[at..]);
        let c = text[at..].chars().next()?;
        if !is_settled(c) {
            return Some(at);
        }
        at += c.len_utf8();
    }
}

/// Octets that are looked at in one go.
const BLOCK: usize = 32;

/// How many octets of ASCII a text begins with.
fn ascii_run(octets: &[u8]) -> usize {
    let blocks = octets.chunks_exact(BLOCK).take_while(|block| block.is_ascii()).count() * BLOCK;
    blocks + octets[blocks..].iter().take_while(|o| o.is_ascii()).count()
}

fn push_settled(settled: &str, out: &mut String) {
    let other = |o: u8| o == b'`' || (o != b'\n' && o.is_ascii_control());
    if count(settled.as_bytes(), other) == 0 {
        let from = out.len();
        out.push_str(settled);
        out[from..].make_ascii_lowercase();
        return;
    }
    for c in settled.chars() {
        out.push(match c {
            '`' => '\'',
            '\n' => '\n',
            c if c.is_ascii_control() => ' ',
            c => c.to_ascii_lowercase(),
        });
    }
}

/// How many octets are of a kind, several at once where the machine can.
pub(super) fn count(octets: &[u8], is: impl Fn(u8) -> bool) -> usize {
    let block = |block: &[u8]| block.iter().map(|o| u8::from(is(*o))).sum::<u8>();
    octets.chunks(usize::from(u8::MAX)).map(|b| usize::from(block(b))).sum()
}

/// How many characters are letters or digits.
pub(super) fn letters(text: &str) -> usize {
    if text.is_ascii() {
        return count(text.as_bytes(), |o| o.is_ascii_alphanumeric());
    }
    text.chars().filter(|c| is_word(*c)).count()
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
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        push_line(line, &mut now, &mut out);
        // Octets are never fewer than characters.
        let long = line.len() >= WRAPPED && line.chars().count() >= WRAPPED;
        if long && lines.peek().is_some_and(|l| !l.is_empty()) {
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
    if now.len() + line.len() < MAX_SENTENCE && !line.contains("  ") {
        push_short(&line, now, out);
    } else {
        push_long(&line, now, out);
    }
}

/// What may end a sentence: `.`, `!`, `?`, and the first octets of `…` and `。`.
fn may_end(octet: u8) -> bool {
    matches!(octet, b'.' | b'!' | b'?' | 0xe2 | 0xe3)
}

/// A line whose blanks are single and that is too short to be cut.
fn push_short(line: &str, now: &mut String, out: &mut Vec<String>) {
    let mut at = 0;
    while at < line.len() {
        if line.as_bytes()[at] == b' ' && (now.is_empty() || now.ends_with(' ')) {
            at += 1;
            continue;
        }
        let said = line.as_bytes()[at..].iter().position(|o| may_end(*o)).unwrap_or(line.len() - at);
        now.push_str(&line[at..at + said]);
        at += said;
        let Some(c) = line[at..].chars().next() else { return };
        now.push(c);
        at += c.len_utf8();
        let stop = match c {
            '.' => matches!(line.as_bytes().get(at), None | Some(b' ')) && !abbreviated(now),
            c => matches!(c, '。' | '!' | '?' | '\u{2026}'),
        };
        if stop {
            end(now, out);
        }
    }
}

fn push_long(line: &str, now: &mut String, out: &mut Vec<String>) {
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
    let sentence = now.trim();
    if sentence.chars().any(is_word) {
        out.push(sentence.to_owned());
    } else if sentence.contains('?')
        && let Some(last) = out.last_mut()
    {
        last.push('?');
    }
    now.clear();
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
