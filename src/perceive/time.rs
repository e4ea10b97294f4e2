//! Times in a sentence, read against a clock and a time zone.
//!
//! Promises: total; only what names a day, an hour or a span counts as a time.
//! Doesn't know: whether anything is asked by that time.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};

use super::words::{Class, Hit, Lang};

mod numbers;

/// The hour at which a working day ends, where only a day is named.
const DAY_ENDS: i8 = 18;
/// A day of this many days in the past is meant for next year.
const LONG_AGO: i64 = 60;
/// Times of one sentence that are kept.
const MAX_MOMENTS: usize = 16;
/// Octets between the parts of one time ("Thursday, in the afternoon, at 3 pm").
const NEAR: usize = 16;
/// Octets between "by" and its time.
const BY_REACH: usize = 18;
/// Octets between a time and the "by" that follows it.
const BY_AFTER_REACH: usize = 9;

/// The clock that words are read against.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    now: Zoned,
}

/// A time in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moment {
    /// Octets of the sentence that name it.
    pub(super) start: usize,
    /// End of them.
    pub(super) end: usize,
    /// Unix seconds.
    pub(super) at: i64,
    /// Marked as an end: "by", "until", "within".
    pub(super) by: bool,
    /// It names an hour or a span, not only a day.
    pub(super) exact: bool,
    /// An hour without a day that is over today, so that the next one is tomorrow's.
    pub(super) over: bool,
}

/// A zone by its IANA name or an offset such as `+09:00`; UTC where it is
/// neither. The one place that reads the system's zone table.
pub(super) fn zone(name: &str) -> TimeZone {
    if let Some(offset) = fixed_offset(name) {
        return TimeZone::fixed(offset);
    }
    TimeZone::get(name).unwrap_or(TimeZone::UTC)
}

fn fixed_offset(name: &str) -> Option<Offset> {
    let (sign, rest) = match name.as_bytes().first()? {
        b'+' => (1, &name[1..]),
        b'-' => (-1, &name[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let seconds =
        hours.parse::<i32>().ok()?.checked_mul(3600)?.checked_add(minutes.parse::<i32>().ok()?.checked_mul(60)?)?;
    Offset::from_seconds(sign * seconds).ok()
}

/// A time as RFC 3339 in a zone.
pub(super) fn local(at: i64, zone: &TimeZone) -> String {
    match Timestamp::from_second(at) {
        Ok(t) => t.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        Err(_) => String::new(),
    }
}

impl Clock {
    /// A clock that stands at `now`, Unix seconds.
    pub(super) fn new(now: i64, zone: TimeZone) -> Clock {
        let now = Timestamp::from_second(now).unwrap_or(Timestamp::UNIX_EPOCH);
        Clock { now: now.to_zoned(zone) }
    }

    fn today(&self) -> Date {
        self.now.date()
    }

    fn day_of(&self, at: i64) -> Option<Date> {
        Timestamp::from_second(at).ok().map(|t| t.to_zoned(self.now.time_zone().clone()).date())
    }

    fn instant(&self, at: DateTime) -> Option<i64> {
        at.to_zoned(self.now.time_zone().clone()).ok().map(|z| z.timestamp().as_second())
    }
}

/// A part of a time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Atom {
    Date { year: Option<i16>, month: i8, day: i8 },
    DayOfMonth(i8),
    Day(i8),
    Weekday(i8),
    NextWeek,
    NextMonth,
    WeekEnd,
    MonthEnd,
    Clock { hour: i8, minute: i8, sure: bool },
    Named(i8),
    Span(i64),
}

#[derive(Debug, Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    atom: Atom,
    by: bool,
}

/// The times of a sentence.
pub(super) fn moments(sentence: &str, hits: &[Hit], lang: Lang, clock: &Clock) -> Vec<Moment> {
    let mut parts = Vec::new();
    words(hits, &mut parts);
    numbers::numbers(sentence, hits, lang, &mut parts);
    if parts.is_empty() {
        return Vec::new();
    }
    parts.sort_by_key(|p| (p.start, std::cmp::Reverse(p.end)));
    drop_contained(&mut parts);
    let mut out = Vec::new();
    let mut group: Vec<Part> = Vec::new();
    let mut before: Option<(usize, Date)> = None;
    for part in parts {
        let fits = group
            .last()
            .is_some_and(|last| part.start.saturating_sub(last.end) <= NEAR && compatible(&group, part.atom));
        if !fits && !group.is_empty() {
            out.extend(resolve(sentence, hits, &group, clock, &mut before));
            group.clear();
        }
        group.push(part);
        if out.len() >= MAX_MOMENTS {
            return out;
        }
    }
    out.extend(resolve(sentence, hits, &group, clock, &mut before));
    out
}

/// Of two parts of which one lies in the other, the longer one counts; two of
/// the same words (a day and its hour) both count.
fn drop_contained(parts: &mut Vec<Part>) {
    let all = parts.clone();
    parts.retain(|p| {
        !all.iter().any(|q| {
            let inside = q.start <= p.start && p.end <= q.end && (q.end - q.start) > (p.end - p.start);
            inside && kind(q.atom) == kind(p.atom)
        })
    });
}

fn kind(atom: Atom) -> u8 {
    match atom {
        Atom::Date { .. } | Atom::DayOfMonth(_) | Atom::Day(_) | Atom::WeekEnd | Atom::MonthEnd => 0,
        Atom::Weekday(_) => 1,
        Atom::NextWeek => 2,
        Atom::Clock { .. } => 3,
        Atom::Named(_) => 4,
        Atom::Span(_) => 5,
        Atom::NextMonth => 6,
    }
}

fn compatible(group: &[Part], atom: Atom) -> bool {
    let taken = |k: u8| group.iter().any(|p| kind(p.atom) == k);
    !taken(5) && kind(atom) != 5 && !taken(kind(atom))
}

/// Parts that are words.
fn words(hits: &[Hit], parts: &mut Vec<Part>) {
    for h in hits {
        let atom = match h.class {
            Class::Day(n) => Atom::Day(n),
            Class::Weekday(n) => Atom::Weekday(n as i8),
            Class::NextWeek => Atom::NextWeek,
            Class::NextMonth => Atom::NextMonth,
            Class::ThisWeek => Atom::WeekEnd,
            Class::ThisMonth => Atom::MonthEnd,
            Class::Hour(n) => Atom::Named(n as i8),
            _ => continue,
        };
        parts.push(Part { start: h.start, end: h.end, atom, by: false });
    }
}

/// A group of parts as an instant; `before` is the day named last and where.
fn resolve(s: &str, hits: &[Hit], group: &[Part], clock: &Clock, before: &mut Option<(usize, Date)>) -> Option<Moment> {
    let first = group.first()?;
    let last = group.last()?;
    let (start, end) = (first.start, group.iter().map(|p| p.end).max().unwrap_or(last.end));
    let now = &clock.now;
    if let Some(span) = group.iter().find_map(|p| if let Atom::Span(n) = p.atom { Some(n) } else { None }) {
        let at = now.timestamp().as_second().checked_add(span)?;
        return Some(Moment { start, end, at, by: first.by || is_by(s, hits, start, end), exact: true, over: false });
    }
    // "the 20th from 9:00 to 12:00": the second hour is of the same day.
    let same = before.filter(|(at, _)| start.saturating_sub(*at) <= NEAR).map(|(_, day)| day);
    let day = day_of(group, clock).or(same);
    *before = day.map(|day| (end, day));
    let time = group.iter().find_map(|p| match p.atom {
        Atom::Clock { hour, minute, sure } => Some((hour, minute, sure)),
        _ => None,
    });
    let named = group.iter().find_map(|p| if let Atom::Named(h) = p.atom { Some(h) } else { None });
    let at = match (day, time, named) {
        (None, None, None) => return None,
        (None, Some((hour, minute, sure)), _) => next_hour(clock, hour, minute, sure)?,
        (day, Some((hour, minute, sure)), named) => {
            // "tomorrow at 3" of a working day, unless the morning is named.
            let afternoon = !sure && hour < 7 && named.is_none_or(|n| n >= 12);
            let hour = if afternoon { hour + 12 } else { hour };
            clock.instant(day.unwrap_or(clock.today()).to_datetime(Time::new(hour, minute, 0, 0).ok()?))?
        }
        (day, None, Some(hour)) => {
            clock.instant(day.unwrap_or(clock.today()).to_datetime(Time::new(hour, 0, 0, 0).ok()?))?
        }
        (Some(day), None, None) => end_of_day(clock, day)?,
    };
    let over = day.is_none() && time.is_some() && clock.day_of(at).is_some_and(|d| d > clock.today());
    let exact = time.is_some() || named.is_some();
    Some(Moment { start, end, at, by: is_by(s, hits, start, end), exact, over })
}

fn end_of_day(clock: &Clock, day: Date) -> Option<i64> {
    let over = day == clock.today() && clock.now.hour() >= DAY_ENDS;
    let time = if over { Time::new(23, 59, 0, 0) } else { Time::new(DAY_ENDS, 0, 0, 0) };
    clock.instant(day.to_datetime(time.ok()?))
}

/// The next time that a clock shows this hour.
fn next_hour(clock: &Clock, hour: i8, minute: i8, sure: bool) -> Option<i64> {
    let now = clock.now.timestamp().as_second();
    let today = clock.today();
    let at = |day: Date, hour: i8| clock.instant(day.to_datetime(Time::new(hour, minute, 0, 0).ok()?));
    let first = at(today, hour)?;
    if !sure && hour < 12 && (first <= now || hour < 7) {
        let later = at(today, hour + 12)?;
        if later > now {
            return Some(later);
        }
    }
    if first > now { Some(first) } else { at(today.checked_add(1.day()).ok()?, hour) }
}

fn day_of(group: &[Part], clock: &Clock) -> Option<Date> {
    let today = clock.today();
    let next_week = group.iter().any(|p| p.atom == Atom::NextWeek);
    let next_month = group.iter().any(|p| p.atom == Atom::NextMonth);
    let ahead = |days: i64| today.checked_add(days.days()).ok();
    let this = i64::from(today.weekday().to_monday_one_offset());
    let mut weekday = None;
    for p in group {
        match p.atom {
            Atom::Date { year, month, day } => return dated(today, year, month, day),
            Atom::DayOfMonth(day) if next_month => return next_months(today, Some(day)),
            Atom::DayOfMonth(day) => return day_of_month(today, day),
            Atom::Day(n) => return ahead(i64::from(n)),
            Atom::Weekday(n) => weekday = Some(i64::from(n)),
            Atom::WeekEnd if !next_week => weekday = weekday.or(Some(5.max(this))),
            Atom::MonthEnd => return Some(today.last_of_month()),
            _ => {}
        }
    }
    if next_month {
        // Which of its days isn't said: "Monday next month" is some Monday.
        return next_months(today, None);
    }
    match (weekday, next_week) {
        (Some(w), true) => ahead(7 - this + w),
        (None, true) => ahead(7 - this + 5),
        // The same weekday is today's while the day lasts, by its hour later on.
        (Some(w), false) => ahead((w - this).rem_euclid(7)),
        (None, false) => None,
    }
}

fn dated(today: Date, year: Option<i16>, month: i8, day: i8) -> Option<Date> {
    if let Some(year) = year {
        return Date::new(year, month, day).ok();
    }
    let this = Date::new(today.year(), month, day).ok()?;
    let since = (today - this).get_days();
    if i64::from(since) > LONG_AGO { Date::new(today.year() + 1, month, day).ok() } else { Some(this) }
}

fn day_of_month(today: Date, day: i8) -> Option<Date> {
    match Date::new(today.year(), today.month(), day) {
        Ok(this) if this >= today => Some(this),
        _ => next_months(today, Some(day)),
    }
}

/// A day of the month after this, or its last one.
fn next_months(today: Date, day: Option<i8>) -> Option<Date> {
    let next = today.first_of_month().checked_add(1.month()).ok()?;
    match day {
        Some(day) => Date::new(next.year(), next.month(), day).ok(),
        None => Some(next.last_of_month()),
    }
}

/// Whether the words around a time make it an end.
fn is_by(s: &str, hits: &[Hit], start: usize, end: usize) -> bool {
    hits.iter().any(|h| match h.class {
        // "by" reaches its time without a stop between, holds a part of it
        // ("para hoy") or stands inside ("closes today at 5").
        Class::By => {
            let between = s.get(h.end.min(start)..start).unwrap_or_default();
            let before =
                h.start < start && h.end <= end && between.len() <= BY_REACH && !between.contains([',', ';', '.']);
            before || (h.start >= start && h.end <= end)
        }
        // "오전에" is the morning, not "before".
        Class::ByAfter => {
            !(s[h.start..].starts_with('전') && s[..h.start].ends_with('오'))
                && h.start >= start
                && h.start <= end + BY_AFTER_REACH
                && !s.get(end..h.start).unwrap_or("").contains([',', '、', '。'])
        }
        _ => false,
    })
}

#[cfg(test)]
#[path = "time_tests.rs"]
mod tests;
