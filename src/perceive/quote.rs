//! The new words of a text, apart from quoted history and signature.
//!
//! Promises: every line ends up in exactly one of the three. Doesn't know:
//! languages beyond the lines by which common clients introduce a quotation.

/// A text by who wrote it and when.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Split {
    /// What the sender wrote now.
    pub(super) own: String,
    /// Earlier mail, quoted or forwarded.
    pub(super) quoted: String,
    /// The signature.
    pub(super) signature: String,
}

/// Lines of a header block that introduces forwarded or answered mail.
const BLOCK_KEYS: &[&str] = &[
    "from:",
    "sent:",
    "to:",
    "subject:",
    "date:",
    "cc:",
    "von:",
    "gesendet:",
    "an:",
    "betreff:",
    "datum:",
    "de :",
    "de:",
    "envoyé :",
    "envoyé:",
    "enviado:",
    "enviado el:",
    "para:",
    "asunto:",
    "à :",
    "à:",
    "objet :",
    "objet:",
    "date :",
    "보낸 사람:",
    "보낸사람:",
    "보낸 날짜:",
    "받는 사람:",
    "받는사람:",
    "제목:",
    "差出人:",
    "送信日時:",
    "宛先:",
    "件名:",
    "发件人:",
    "发送时间:",
    "收件人:",
    "主题:",
    "发件人：",
    "发送时间：",
    "收件人：",
    "主题：",
    "寄件者:",
    "主旨:",
];

/// Words of separator lines.
const SEPARATORS: &[&str] = &[
    "original message",
    "forwarded message",
    "ursprüngliche nachricht",
    "weitergeleitete nachricht",
    "message original",
    "message d'origine",
    "message transféré",
    "mensaje original",
    "mensaje reenviado",
    "원본 메일",
    "원본 메시지",
    "전달된 메시지",
    "元のメッセージ",
    "転送されたメッセージ",
    "原始邮件",
    "转发的邮件",
    "原始郵件",
    "begin forwarded message",
];

/// Ends of the line that introduces a quotation, with a word that stands in it.
const INTRODUCTIONS: &[(&str, &str)] = &[
    ("wrote:", ""),
    ("schrieb:", ""),
    ("geschrieben:", ""),
    ("a écrit :", ""),
    ("a écrit:", ""),
    ("escribió:", ""),
    ("님이 작성:", ""),
    ("작성:", "@"),
    ("のメール:", ""),
    ("書きました:", ""),
    ("写道：", ""),
    ("写道:", ""),
    ("寫道：", ""),
    ("寫道:", ""),
    (":", "schrieb "),
];

/// Lines that a sender's program adds below a signature.
const DEVICE: &[&str] = &[
    "sent from my ",
    "get outlook for",
    "von meinem iphone gesendet",
    "gesendet mit",
    "envoyé de mon",
    "enviado desde mi",
    "나의 iphone에서 보냄",
    "iphoneから送信",
    "发自我的",
    "從我的",
];

/// Longest signature in lines; a longer tail is text.
const MAX_SIGNATURE_LINES: usize = 12;

/// Splits a plain text.
pub(super) fn split(text: &str) -> Split {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Split::default();
    let history = history_start(&lines);
    let signature = signature_start(&lines[..history]);
    for (n, line) in lines.iter().enumerate() {
        let to = if n >= history || is_quoted(line) || introduces(&lines, n) {
            &mut out.quoted
        } else if n >= signature {
            &mut out.signature
        } else {
            &mut out.own
        };
        to.push_str(line);
        to.push('\n');
    }
    out
}

fn is_quoted(line: &str) -> bool {
    line.trim_start().starts_with('>')
}

/// A line such as "On … wrote:" right before a quoted line.
fn introduces(lines: &[&str], n: usize) -> bool {
    // Few lines introduce anything: the next one is looked for only behind those.
    let next = || lines[n + 1..].iter().find(|l| !l.trim().is_empty());
    let line = lines[n].trim();
    line.ends_with([':', '：']) && is_introduction(&line.to_lowercase()) && next().is_some_and(|l| is_quoted(l))
}

/// Of a line in lower case without blanks at its ends.
fn is_introduction(line: &str) -> bool {
    line.len() < 300 && INTRODUCTIONS.iter().any(|(end, word)| line.ends_with(end) && line.contains(word))
}

/// The first line from which on everything is earlier mail.
fn history_start(lines: &[&str]) -> usize {
    let last_quoted = lines.iter().rposition(|l| is_quoted(l));
    for (n, line) in lines.iter().enumerate() {
        if !may_introduce(line.trim()) {
            continue;
        }
        let lower = line.trim().to_lowercase();
        let bare = lower.trim_matches(|c: char| c == '-' || c == '_' || c == '=' || c == ' ' || c == ':');
        let ruled =
            lower.starts_with("--") || lower.starts_with("__") || lower.starts_with("==") || lower.ends_with(':');
        if ruled && SEPARATORS.iter().any(|s| bare.starts_with(s)) {
            return n;
        }
        if block_key(&lower)
            && lines[n + 1..].iter().take(4).filter(|l| block_key(&l.trim().to_lowercase())).count() >= 2
        {
            return n;
        }
        // An introduction without quote marks: the rest is the earlier mail,
        // unless quoted lines follow, which are told line by line.
        if is_introduction(&lower) && has_date_or_address(&lower) && last_quoted.is_none_or(|q| q <= n) {
            return n;
        }
    }
    lines.len()
}

/// Whether a line could be any of those by which earlier mail begins: all of
/// them hold a colon or are ruled.
fn may_introduce(line: &str) -> bool {
    line.starts_with(['-', '_', '=']) || line.contains([':', '：'])
}

fn block_key(lower: &str) -> bool {
    let lower = lower.trim_matches('*');
    BLOCK_KEYS.iter().any(|k| lower.starts_with(k))
}

fn has_date_or_address(lower: &str) -> bool {
    lower.contains('@') || lower.bytes().filter(u8::is_ascii_digit).count() >= 3
}

/// Where the signature starts: "-- " (RFC 3676 §4.3) or a device's line.
fn signature_start(lines: &[&str]) -> usize {
    let end = lines.len();
    for (n, line) in lines.iter().enumerate().rev().take(MAX_SIGNATURE_LINES + 1) {
        if *line == "-- " || line.trim_end() == "--" {
            return n;
        }
    }
    for (n, line) in lines.iter().enumerate().rev().take(4) {
        let lower = line.trim().to_lowercase();
        if DEVICE.iter().any(|d| lower.starts_with(d)) {
            return n;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_lines_and_their_introduction_stand_apart() {
        let s =
            split("Yes, fine.\n\nOn Mon, 2 Nov 2026, Ana <ana@example.org> wrote:\n> urgent, call me\n> now\n\nBye\n");
        assert_eq!(s.own.split_whitespace().collect::<Vec<_>>().join(" "), "Yes, fine. Bye");
        assert!(s.quoted.contains("urgent"));
    }

    #[test]
    fn history_without_quote_marks_is_found() {
        for intro in [
            "-----Original Message-----",
            "---------- Forwarded message ---------",
            "From: Ana <a@example.org>\nSent: Monday\nTo: Mina\nSubject: x",
            "Von: Ana\nGesendet: Montag\nAn: Mina\nBetreff: x",
            "보낸 사람: 아나\n보낸 날짜: 월요일\n받는 사람: 미나\n제목: x",
            "Am 2.11.2026 um 10:00 schrieb Ana <ana@example.org>:",
            "2026年11月2日(月) 10:00 Ana <ana@example.org> 写道：",
        ] {
            let s = split(&format!("new\n\n{intro}\nold words\n"));
            assert_eq!(s.own.trim(), "new", "{intro}");
            assert!(s.quoted.contains("old words"), "{intro}");
        }
    }

    #[test]
    fn signatures_stand_apart() {
        let s = split("text\n\n-- \nAna\nCall us now: 555\n");
        assert_eq!((s.own.trim(), s.signature.contains("Call us")), ("text", true));
        assert_eq!(split("text\n\nSent from my phone\n").own.trim(), "text");
    }

    #[test]
    fn ordinary_lines_with_colons_are_text() {
        let text = "Please bring:\nFrom: the station walk left\nthen ring.\n";
        assert_eq!(split(text).own, text);
    }
}
