//! The header of a message that a person sent: to whom, and whether it
//! answers something.
//!
//! Promises: total and bounded. Doesn't know: who wrote it; the caller reads
//! Sent and leaves out what an agent may have put there.

use super::Sender;
use super::fields::Fields;

/// Recipients of one message that count: mail to more is no correspondence.
const MAX_RECIPIENTS: usize = 50;

/// What Sent says of one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentHeader {
    /// Of To.
    pub to: Vec<Sender>,
    /// Of Cc.
    pub cc: Vec<Sender>,
    /// It names what it answers (RFC 5322 §3.6.4).
    pub answers: bool,
    /// Unix seconds of the Date, where it is one.
    pub date: Option<i64>,
    /// As it stands there.
    pub message_id: Option<String>,
}

/// Reads the header.
pub fn sent_header(octets: &[u8]) -> SentHeader {
    let fields = Fields::new(octets);
    let (to, cc) = (fields.mailboxes("To"), fields.mailboxes("Cc"));
    let many = to.len() + cc.len() > MAX_RECIPIENTS;
    let filled = |name: &str| fields.first(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
    SentHeader {
        to: if many { Vec::new() } else { to },
        cc: if many { Vec::new() } else { cc },
        answers: filled("In-Reply-To").is_some(),
        date: fields.date(),
        message_id: filled("Message-ID"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_are_told_by_field_and_too_many_are_none() {
        let h = sent_header(
            b"To: Ana <Ana@EXAMPLE.com>, b@example.net\r\nCc: c@example.net\r\nIn-Reply-To: <x@y>\r\n\
              Message-ID: <m@example.org>\r\nDate: Thu, 01 Jan 1970 00:00:09 +0000\r\n\r\n",
        );
        let names: Vec<String> = h.to.iter().map(|s| s.address.canonical()).collect();
        assert_eq!((names.len(), h.cc.len(), h.answers, h.date), (2, 1, true, Some(9)));
        assert_eq!((h.to[0].display.as_str(), h.message_id.as_deref()), ("Ana", Some("<m@example.org>")));
        let list = (0..=MAX_RECIPIENTS).map(|n| format!("a{n}@example.net")).collect::<Vec<_>>().join(", ");
        let h = sent_header(format!("To: {list}\r\nIn-Reply-To: \r\n\r\n").as_bytes());
        assert!(h.to.is_empty() && !h.answers);
    }
}
