//! Small pieces of what people read.

use serde_json::Value;

/// Seconds since 1970 as a UTC time to the second.
pub(super) fn time(second: i64) -> String {
    jiff::Timestamp::from_second(second).map_or_else(|_| second.to_string(), |t| t.to_string())
}

/// Text of a JSON value without quotes; an absent one is a dash.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => visible(text),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// `text` with control and bidirectional characters made visible, so that
/// what others wrote can't move the cursor or reorder a line.
pub(super) fn visible(text: &str) -> String {
    let bidi = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    text.chars()
        .map(|c| if c.is_control() || bidi(c) { c.escape_unicode().to_string() } else { c.to_string() })
        .collect()
}

/// Rows under a head, each column as wide as its widest cell.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|h| h.chars().count())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let head: Vec<String> = head.iter().map(|h| (*h).to_owned()).collect();
    let mut lines = vec![line(&head)];
    lines.extend(rows.iter().map(|row| line(row)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["a".to_owned(), "long one".to_owned()], vec!["bcd".to_owned(), "x".to_owned()]];
        assert_eq!(table(&["ID", "NAME"], &rows), "ID   NAME\na    long one\nbcd  x");
    }

    #[test]
    fn what_others_wrote_cannot_move_the_cursor() {
        assert_eq!(visible("a\u{1b}[2J\r\u{202e}b"), "a\\u{1b}[2J\\u{d}\\u{202e}b");
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
    }
}
