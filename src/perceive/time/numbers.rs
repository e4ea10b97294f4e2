//! Times that stand on a number: hours, dates, spans.

use super::{Atom, Part};
use crate::perceive::text::{count, is_word};
use crate::perceive::words::{Class, Hit, Lang};

/// A number of the sentence.
#[derive(Debug, Clone, Copy)]
struct Number {
    start: usize,
    end: usize,
    value: u32,
    digits: bool,
}

/// Longest run of digits that can be part of a time.
const MAX_DIGITS: usize = 4;

fn all_numbers(sentence: &str, hits: &[Hit]) -> Vec<Number> {
    let bytes = sentence.as_bytes();
    let mut out = Vec::new();
    // Counting is much quicker than looking for the first.
    let digits = count(bytes, |b| b.is_ascii_digit());
    let mut at = if digits == 0 { bytes.len() } else { 0 };
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            at += 1;
        }
        if at - start <= MAX_DIGITS
            && let Ok(value) = sentence[start..at].parse()
        {
            out.push(Number { start, end: at, value, digits: true });
        }
    }
    for h in hits {
        if let Class::Number(n) = h.class {
            out.push(Number { start: h.start, end: h.end, value: u32::from(n), digits: false });
        }
    }
    out
}

/// Parts that stand on a number.
pub(super) fn numbers(s: &str, hits: &[Hit], lang: Lang, parts: &mut Vec<Part>) {
    let all = all_numbers(s, hits);
    let next = |end: usize| all.iter().find(|n| n.digits && n.start == end);
    for n in all.iter().filter(|n| !(n.digits && glued_to_letter(s, n.start))) {
        let rest = &s[n.end..];
        let found = span(s, hits, n)
            .or_else(|| if n.digits { numeric_date(s, n, &next, lang) } else { None })
            .or_else(|| month_date(s, hits, n, &next))
            .or_else(|| ordinal(s, n))
            .or_else(|| clock_time(s, hits, n, rest, &next));
        parts.extend(found);
    }
}

fn glued_to_letter(s: &str, start: usize) -> bool {
    s[..start]
        .chars()
        .next_back()
        .is_some_and(|c| ((c as u32) < 0x250 && c.is_alphabetic()) || matches!(c, '#' | '/' | '-' | '.' | ':' | ','))
        && !s[..start].ends_with(['(', ' '])
        && !parts_of_date(s, start)
}

/// Numbers inside a date are read from its first number on; only a dash before
/// a clock ("14-15:00") lets the second start anew.
fn parts_of_date(s: &str, start: usize) -> bool {
    s[..start].ends_with('-') && s[start..].chars().nth(2) == Some(':')
}

/// "in 2 hours", "2時間以内", "30분 안에".
fn span(s: &str, hits: &[Hit], n: &Number) -> Option<Part> {
    let unit = hits.iter().find(|h| {
        matches!(h.class, Class::Minutes(_))
            && h.start >= n.end
            && s[n.end..h.start].chars().all(|c| c == ' ' || c == '-')
            && h.start - n.end <= 1
    })?;
    let Class::Minutes(minutes) = unit.class else { return None };
    let before =
        hits.iter().find(|h| h.class == Class::Within && h.end <= n.start && s[h.end..n.start].trim().is_empty());
    let after = hits.iter().find(|h| {
        h.class == Class::ByAfter && h.start >= unit.end && h.start - unit.end <= 3
            || h.class == Class::ByAfter && h.start >= unit.start && h.end <= unit.end
    });
    // "3週間後", "세 시간 뒤": then, not at the latest then.
    let later = ["後", "后", "以后", "之后", "以後", "之後", "후", "뒤", " 후", " 뒤"]
        .iter()
        .any(|w| s[unit.end..].starts_with(w))
        || s[unit.start..unit.end].ends_with(['後', '后', '후', '뒤']);
    let inside = ["以内", "이내", "内", "內", "안", "내"].iter().any(|w| s[unit.start..unit.end].contains(w));
    if before.is_none() && after.is_none() && !inside && !later {
        return None;
    }
    let firm = after.is_some()
        || inside
        || before
            .is_some_and(|h| &s[h.start..h.end] != "in" && &s[h.start..h.end] != "en" && &s[h.start..h.end] != "dans");
    let start = before.map_or(n.start, |h| h.start);
    let end = after.map_or(unit.end, |h| h.end.max(unit.end));
    Some(Part { start, end, atom: Atom::Span(i64::from(n.value) * i64::from(minutes) * 60), by: firm })
}

/// 2026-11-05, 5.11.2026, 5.11., 11/5, 2026年11月5日, 11월 5일, 5日.
fn numeric_date<'n>(s: &str, n: &Number, next: &dyn Fn(usize) -> Option<&'n Number>, lang: Lang) -> Option<Part> {
    let part = |end: usize, year: Option<u32>, month: u32, day: u32| -> Option<Part> {
        let year = match year {
            Some(y) if y < 100 => Some(2000 + y as i16),
            Some(y) => Some(i16::try_from(y).ok()?),
            None => None,
        };
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        Some(Part { start: n.start, end, atom: Atom::Date { year, month: month as i8, day: day as i8 }, by: false })
    };
    let rest = &s[n.end..];
    if let Some(unit) = rest.strip_prefix(['年', '년']) {
        let at = s.len() - unit.trim_start().len();
        let month = next(at)?;
        return east_date(s, month, next).and_then(|(end, day)| part(end, Some(n.value), month.value, day));
    }
    if rest.starts_with(['月', '월']) {
        return east_date(s, n, next).and_then(|(end, day)| part(end, None, n.value, day));
    }
    if let Some(after) = rest.strip_prefix(['日', '일', '号', '號']) {
        let span = ["間", "间", "以内", "내", " 내", " 이내", " 안", " 동안", "目", "째", "程"]
            .iter()
            .any(|w| after.starts_with(w));
        let end = s.len() - after.len();
        // In Japanese "3号" is a number of something, never a day.
        let ordinal = lang == Lang::Ja && rest.starts_with(['号', '號']) || after.starts_with(['线', '線', '楼', '樓']);
        let fits = (1..=31).contains(&n.value) && !span && !ordinal;
        return fits.then_some(Part { start: n.start, end, atom: Atom::DayOfMonth(n.value as i8), by: false });
    }
    let separator = rest.chars().next().filter(|c| matches!(c, '-' | '/' | '.'))?;
    let second = next(n.end + 1)?;
    let third = s[second.end..].strip_prefix(separator).and_then(|_| next(second.end + 1));
    if n.value >= 1000 {
        let third = third?;
        return part(third.end, Some(n.value), second.value, third.value);
    }
    match separator {
        // 15.30 without a final point is a time or a number, not a date.
        '.' if third.is_none() && !s[second.end..].starts_with('.') => None,
        '.' => part(third.map_or(second.end + 1, |t| t.end), third.map(|t| t.value), second.value, n.value),
        '/' => {
            let year = third.map(|t| t.value);
            let end = third.map_or(second.end, |t| t.end);
            let month_first = !matches!(lang, Lang::Fr | Lang::Es | Lang::De) && n.value <= 12;
            if month_first { part(end, year, n.value, second.value) } else { part(end, year, second.value, n.value) }
        }
        _ => None,
    }
}

/// "the 19th", "le 19", "el 19", "am 19.": a day without its month.
fn ordinal(s: &str, n: &Number) -> Option<Part> {
    if !n.digits || !(1..=31).contains(&n.value) {
        return None;
    }
    let rest = &s[n.end..];
    let before = s[..n.start].trim_end();
    let word = |w: &str| before.strip_suffix(w).is_some_and(|b| b.is_empty() || b.ends_with([' ', ',']));
    let english = ["th", "st", "nd", "rd"].iter().find(|w| starts_word(rest, w)).map(|w| w.len());
    let article = (word("le") || word("el") || word("del") || word("dia"))
        && !rest.starts_with(|c: char| is_word(c) || matches!(c, '%' | '.' | '/' | ','));
    let german = (word("am") || word("vom") || word("zum") || word("der")) && rest.starts_with(". ");
    let length = english.or_else(|| (article || german).then_some(0))?;
    Some(Part { start: n.start, end: n.end + length, atom: Atom::DayOfMonth(n.value as i8), by: false })
}

/// The day after "11月" or "11월": end and day.
fn east_date<'n>(s: &str, month: &Number, next: &dyn Fn(usize) -> Option<&'n Number>) -> Option<(usize, u32)> {
    let rest = s[month.end..].strip_prefix(['月', '월'])?;
    let at = s.len() - rest.trim_start().len();
    let day = next(at)?;
    let after = s[day.end..].strip_prefix(['日', '일', '号', '號'])?;
    Some((s.len() - after.len(), day.value))
}

/// "5 December", "December 5th", "5. Dezember", "5 de diciembre 2026".
fn month_date<'n>(s: &str, hits: &[Hit], n: &Number, next: &dyn Fn(usize) -> Option<&'n Number>) -> Option<Part> {
    if !n.digits || !(1..=31).contains(&n.value) {
        return None;
    }
    let filler = |text: &str| {
        matches!(
            text.trim_matches([' ', '.', ',']),
            "" | "de" | "th" | "st" | "nd" | "rd" | "of" | "th of" | "er" | "der"
        )
    };
    let months = || hits.iter().filter_map(|h| if let Class::Month(m) = h.class { Some((h, m)) } else { None });
    let (start, end, month) = months()
        .find(|(h, _)| h.start >= n.end && h.start - n.end <= 6 && filler(&s[n.end..h.start]))
        .map(|(h, m)| (n.start, h.end, m))
        .or_else(|| {
            months()
                .find(|(h, _)| {
                    h.end <= n.start
                        && n.start - h.end <= 2
                        && filler(&s[h.end..n.start])
                        && !s[n.end..].starts_with(':')
                })
                .map(|(h, m)| (h.start, n.end, m))
        })?;
    let after = s[end..]
        .trim_start_matches([',', ' '])
        .strip_prefix("de ")
        .unwrap_or(s[end..].trim_start_matches([',', ' ', '.']));
    let year = next(s.len() - after.len()).filter(|y| (2000..2200).contains(&y.value));
    Some(Part {
        start,
        end: year.map_or(end, |y| y.end),
        atom: Atom::Date { year: year.map(|y| y.value as i16), month: month as i8, day: n.value as i8 },
        by: false,
    })
}

/// 15:00, 3 pm, 15 Uhr, 15h30, 오후 3시, 午後3時, 下午3点半, "by 5".
fn clock_time<'n>(
    s: &str,
    hits: &[Hit],
    n: &Number,
    rest: &str,
    next: &dyn Fn(usize) -> Option<&'n Number>,
) -> Option<Part> {
    if n.value > 24 {
        return None;
    }
    let mut minute = 0;
    let mut end = n.end;
    let mut marked = false;
    let mut sure = n.value > 12;
    if n.digits
        && (rest.starts_with(':') || rest.starts_with('.') || rest.starts_with('h'))
        && let Some(m) = next(n.end + 1).filter(|m| m.value < 60 && m.end - m.start == 2)
    {
        minute = m.value;
        end = m.end;
        marked = !rest.starts_with('.');
        sure |= marked && !rest.starts_with(':');
    }
    let after = &s[end..];
    let blank = after.trim_start();
    let east = blank.chars().next().filter(|c| matches!(c, '時' | '시' | '点' | '點'));
    if let Some(c) = east.filter(|_| end == n.end) {
        let tail = &blank[c.len_utf8()..];
        if tail.starts_with(['間', '간']) {
            return None;
        }
        end = s.len() - tail.len();
        marked = true;
        let tail = tail.trim_start();
        if tail.starts_with(['半', '반']) {
            minute = 30;
        } else if let Some(m) =
            next(s.len() - tail.len()).filter(|m| m.value < 60 && s[m.end..].starts_with(['分', '분']))
        {
            minute = m.value;
            end = m.end;
        }
    } else if starts_word(blank, "uhr") || (end == n.end && (starts_word(after, "h") || starts_word(blank, "heures"))) {
        marked = true;
        sure = true;
        end = s.len() - blank.len() + blank.find(|c: char| !c.is_alphabetic()).unwrap_or(blank.len());
    } else if starts_word(blank, "o'clock") {
        marked = true;
    }
    let (half, half_start, half_end) = day_half(s, hits, n.start, end);
    marked |= half.is_some();
    marked |= hour_by_preposition(s, n.start, after);
    if !marked {
        return None;
    }
    let mut hour = n.value as i8;
    match half {
        Some(true) if hour < 12 => hour += 12,
        Some(false) if hour == 12 => hour = 0,
        _ => {}
    }
    let (hour, minute) = if hour == 24 { (23, 59) } else { (hour, minute as i8) };
    let start = half_start.unwrap_or(n.start).min(n.start);
    Some(Part {
        start,
        end: end.max(half_end.unwrap_or(end)),
        atom: Atom::Clock { hour, minute, sure: sure || half.is_some() },
        by: false,
    })
}

/// Whether the hour is one of the afternoon, by a word before or after it.
fn day_half(s: &str, hits: &[Hit], start: usize, end: usize) -> (Option<bool>, Option<usize>, Option<usize>) {
    for h in hits {
        let half = match h.class {
            Class::Pm => true,
            Class::Am => false,
            _ => continue,
        };
        let before =
            h.end <= start && start - h.end <= 4 && s[h.end..start].chars().all(|c| matches!(c, ' ' | 'の' | '的'));
        let after = matches!(h.lang, Lang::En) && h.start >= end && s[end..h.start].trim().is_empty();
        if before && !matches!(h.lang, Lang::En) {
            return (Some(half), Some(h.start), None);
        }
        if after {
            return (Some(half), None, Some(h.end));
        }
    }
    let tail = s[end..].trim_start();
    for (word, half) in [
        ("de la tarde", true),
        ("de la noche", true),
        ("de la manana", false),
        ("nachmittags", true),
        ("abends", true),
        ("du soir", true),
        ("de l'apres-midi", true),
        ("du matin", false),
    ] {
        if tail.starts_with(word) {
            return (Some(half), None, Some(s.len() - tail.len() + word.len()));
        }
    }
    (None, None, None)
}

/// "at 3", "by 5 today", "a las 13": an hour without any mark of its own.
fn hour_by_preposition(s: &str, start: usize, after: &str) -> bool {
    let before = s[..start].trim_end();
    if ["a las", "las", "de las", "a la"].iter().any(|w| before.ends_with(w)) {
        return true;
    }
    let preposition = ["at", "by", "before", "until", "around", "um", "gegen"]
        .iter()
        .any(|w| before.strip_suffix(w).is_some_and(|b| b.is_empty() || b.ends_with(' ')));
    // "um 10 kommen sie": in German any word may follow, but for a measure.
    let measure = ["%", "prozent", "euro", "eur", "€", "grad", "stuck"];
    let german = before.strip_suffix("um").is_some_and(|b| b.is_empty() || b.ends_with(' '));
    if german && after.starts_with(' ') && !measure.iter().any(|m| after.trim_start().starts_with(m)) {
        return true;
    }
    let next = after.trim_start_matches([',', ' ']);
    let word = next.split(|c: char| !is_word(c)).next().unwrap_or_default();
    let ends = next.is_empty()
        || next.starts_with(['.', '?', '!', ')', ';'])
            && !after.starts_with(|c: char| c == '.' && after.len() > 1 && after.as_bytes()[1].is_ascii_digit());
    preposition
        && (ends
            || matches!(
                word,
                "today"
                    | "tomorrow"
                    | "on"
                    | "or"
                    | "and"
                    | "please"
                    | "so"
                    | "sharp"
                    | "if"
                    | "this"
                    | "because"
                    | "with"
                    | "without"
                    | "to"
                    | "but"
                    | "when"
                    | "then"
                    | "unless"
                    | "we"
                    | "they"
                    | "i"
                    | "you"
                    | "he"
                    | "she"
                    | "it"
                    | "heute"
                    | "morgen"
                    | "bitte"
            ))
}

fn starts_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(is_word))
}
