//! Marks by which a message declares that a machine drafted it.
//!
//! A net for honest mistakes: whoever leaves the mark out is not caught here,
//! and the floor doesn't lean on it.

use crate::mail::header::{self, HeaderSpans};

/// Whether the header declares a machine's draft: `X-AI-Drafted`, or an
/// `Auto-Submitted` (RFC 3834 §5) other than `no`. The automatic replies of
/// calendars and of read receipts (RFC 8098) are a client's own.
pub(super) fn declared(header: &[u8]) -> bool {
    let spans = header::split(header);
    let has = |name: &str| spans.fields.iter().any(|f| f.is(header, name));
    if has("X-AI-Drafted") {
        return true;
    }
    values(&spans, header, "Auto-Submitted").any(|value| {
        let keyword = value.split([';', '(']).next().unwrap_or_default().trim().to_owned();
        match keyword.as_str() {
            "no" => false,
            "auto-replied" => !is_client_reply(&spans, header),
            _ => true,
        }
    })
}

fn values<'a>(spans: &'a HeaderSpans, header: &'a [u8], name: &'a str) -> impl Iterator<Item = String> + 'a {
    let fields = spans.fields.iter().filter(move |f| f.is(header, name));
    fields.map(|f| String::from_utf8_lossy(&f.unfolded(header)).to_ascii_lowercase())
}

fn is_client_reply(spans: &HeaderSpans, header: &[u8]) -> bool {
    values(spans, header, "Content-Type").any(|value| {
        let kind = value.split(';').next().unwrap_or_default().trim().to_owned();
        kind == "text/calendar" || (kind == "multipart/report" && value.contains("disposition-notification"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_marks_are_found_and_client_replies_are_none() {
        for (fields, want) in [
            ("From: a@example.org\r\n", false),
            ("x-ai-drafted: yes\r\n", true),
            ("Auto-Submitted: no\r\n", false),
            ("Auto-Submitted: NO (really)\r\n", false),
            ("Auto-Submitted: auto-generated\r\n", true),
            ("Auto-Submitted: auto-replied\r\n", true),
            ("Auto-Submitted:\r\n auto-replied; owner-email=x\r\nContent-Type: text/calendar; method=REPLY\r\n", false),
            (
                "Auto-Submitted: auto-replied\r\nContent-Type: multipart/report;\r\n report-type=disposition-notification\r\n",
                false,
            ),
            ("Auto-Submitted: auto-generated\r\nContent-Type: text/calendar\r\n", true),
            ("Auto-Submitted: no\r\nAuto-Submitted: auto-generated\r\n", true),
        ] {
            assert_eq!(declared(format!("{fields}\r\n").as_bytes()), want, "{fields}");
        }
    }
}
