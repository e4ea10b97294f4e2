//! INTERNALDATE, and the placeholders by which sample mail is always recent.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use serde::{Deserialize, Serialize};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// When a message arrived: a point in time and the zone that it is shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InternalDate {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub unix: i64,
    /// Minutes east of Greenwich.
    pub offset_minutes: i32,
}

impl InternalDate {
    /// This moment, shown in UTC.
    pub fn now() -> InternalDate {
        InternalDate { unix: Timestamp::now().as_second(), offset_minutes: 0 }
    }

    fn strftime(self, format: &str) -> String {
        let time = Timestamp::from_second(self.unix).unwrap_or(Timestamp::UNIX_EPOCH);
        let offset = Offset::from_seconds(self.offset_minutes.saturating_mul(60)).unwrap_or(Offset::UTC);
        time.to_zoned(TimeZone::fixed(offset)).strftime(format).to_string()
    }

    /// `YYYY-MM-DD` as the zone reads it.
    pub(crate) fn day(self) -> String {
        self.strftime("%Y-%m-%d")
    }
}

impl std::fmt::Display for InternalDate {
    /// RFC 3501 §9: date-time without its quotes; the day is padded by a space.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.strftime("%e-%b-%Y %H:%M:%S %z"))
    }
}

/// Fills the placeholders of a sample: `{{KIND±Nu}}` with `u` one of `m`, `h`,
/// `d` and KIND one of
/// - `date`: RFC 5322 date-time,
/// - `ics`: RFC 5545 UTC date-time, at the full hour,
/// - `iso`: `YYYY-MM-DD`,
/// - `M`, `D`: month and day of the month as numbers,
/// - `weekday`: the English name.
///
/// What is no placeholder stays as it is.
pub(crate) fn fill(template: &[u8], now: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = memchr::memmem::find(rest, b"{{") {
        out.extend_from_slice(&rest[..at]);
        let inner = &rest[at + 2..];
        let filled = memchr::memmem::find(inner, b"}}").and_then(|end| {
            std::str::from_utf8(&inner[..end]).ok().and_then(|s| placeholder(s, now)).map(|s| (s, end))
        });
        match filled {
            Some((text, end)) => {
                out.extend_from_slice(text.as_bytes());
                rest = &inner[end + 2..];
            }
            None => {
                out.extend_from_slice(b"{{");
                rest = inner;
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

/// How long before `now` the first `{{date…}}` of a sample lies, in seconds.
pub(crate) fn sample_time(template: &[u8], now: i64) -> i64 {
    let found = memchr::memmem::find(template, b"{{date").and_then(|at| {
        let inner = &template[at + 2..];
        let end = memchr::memmem::find(inner, b"}}")?;
        shifted(std::str::from_utf8(&inner[..end]).ok()?.strip_prefix("date")?, now)
    });
    found.unwrap_or(now)
}

fn placeholder(text: &str, now: i64) -> Option<String> {
    let split = text.find(['+', '-'])?;
    let (kind, shift) = text.split_at(split);
    let date = InternalDate { unix: shifted(shift, now)?, offset_minutes: 0 };
    let format = match kind {
        "date" => "%a, %d %b %Y %H:%M:%S %z",
        "ics" => "%Y%m%dT%H0000Z",
        "iso" => "%Y-%m-%d",
        "M" => "%-m",
        "D" => "%-d",
        "weekday" => "%A",
        _ => return None,
    };
    Some(date.strftime(format))
}

/// `±Nu` added to `now`.
fn shifted(shift: &str, now: i64) -> Option<i64> {
    let unit = match shift.chars().last()? {
        'm' => MINUTE,
        'h' => HOUR,
        'd' => DAY,
        _ => return None,
    };
    let count: i64 = shift[..shift.len() - 1].parse().ok()?;
    now.checked_add(count.checked_mul(unit)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let text = fill(b"a {{date-2h}} {{iso+1d}} {{x}} {{D+0d}}.{{M+0d}}.", 86_400);
        assert_eq!(String::from_utf8(text).unwrap(), "a Thu, 01 Jan 1970 22:00:00 +0000 1970-01-03 {{x}} 2.1.");
        assert_eq!(sample_time(b"Date: {{date-30m}}", 7200), 5400);
    }

    #[test]
    fn an_internal_date_has_a_two_column_day() {
        let date = InternalDate { unix: 0, offset_minutes: 90 };
        assert_eq!(date.to_string(), " 1-Jan-1970 01:30:00 +0130");
    }
}
