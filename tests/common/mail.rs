//! Messages, their header, and the stamps that the gateway put before them.

use std::sync::atomic::{AtomicU32, Ordering};

/// A message with a Message-ID of its own.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// Without the angle brackets.
    pub(crate) id: String,
    pub(crate) octets: Vec<u8>,
}

/// The current time as a Date field has it.
pub(crate) fn date() -> String {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

/// A plain text message from now.
pub(crate) fn message(from: &str, to: &str, subject: &str, body: &str) -> Message {
    with_fields(&format!("From: {from}\r\nTo: {to}\r\nSubject: {subject}\r\n"), body)
}

/// A plain text message with these fields, each with its line end.
pub(crate) fn with_fields(fields: &str, body: &str) -> Message {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let id = format!("m{}.{}@tests.example.test", COUNT.fetch_add(1, Ordering::Relaxed), std::process::id());
    let octets = format!(
        "{fields}Date: {}\r\nMessage-ID: <{id}>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n{body}\r\n",
        date()
    );
    Message { id, octets: octets.into_bytes() }
}

/// The length of the header, with the empty line.
pub(crate) fn header_length(octets: &[u8]) -> usize {
    octets.windows(4).position(|w| w == b"\r\n\r\n").map_or(octets.len(), |n| n + 4)
}

/// The first value of a field, unfolded.
pub(crate) fn header(octets: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(&octets[..header_length(octets)]).replace("\r\n ", " ").replace("\r\n\t", " ");
    text.lines().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}

/// The stamps at the beginning, and everything behind them.
pub(crate) fn unstamped(octets: &[u8]) -> (Vec<(String, String)>, &[u8]) {
    let (mut stamps, mut rest) = (Vec::new(), octets);
    while rest.starts_with(b"X-Tollgate-") {
        let end = rest.windows(2).position(|w| w == b"\r\n").expect("a field ends");
        let line = std::str::from_utf8(&rest[..end]).expect("stamps are ASCII");
        assert!(line.is_ascii() && line.len() < 78, "a stamp of {} octets: {line}", line.len());
        let (name, value) = line.split_once(": ").expect("a field has a name");
        stamps.push((name.to_owned(), value.to_owned()));
        rest = &rest[end + 2..];
        assert!(!rest.starts_with(b" ") && !rest.starts_with(b"\t"), "a folded stamp: {line}");
    }
    (stamps, rest)
}

/// The value of one stamp.
pub(crate) fn stamp<'a>(stamps: &'a [(String, String)], name: &str) -> Option<&'a str> {
    stamps.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
}

/// Whether `octets` end with exactly `message`, what stands before being
/// whole fields that a server prepends, none other than `allowed`.
#[track_caller]
pub(crate) fn assert_arrived_untouched(octets: &[u8], message: &[u8], allowed: &[&str]) {
    let Some(prefix) = octets.len().checked_sub(message.len()).filter(|n| octets[*n..] == *message) else {
        panic!(
            "the octets differ:\n{:?}\nwanted at the end:\n{:?}",
            String::from_utf8_lossy(octets),
            String::from_utf8_lossy(message)
        );
    };
    let prepended = String::from_utf8_lossy(&octets[..prefix]).into_owned();
    for line in prepended.split_terminator("\r\n").filter(|l| !l.starts_with([' ', '\t'])) {
        let name = line.split(':').next().unwrap_or_default();
        assert!(allowed.contains(&name), "{name} was put before the message:\n{prepended}");
    }
}
