//! Calendar parts as far as a lane needs them (RFC 5545, RFC 5546).

use crate::mail::address::Address;

/// What a calendar part asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Calendar {
    /// METHOD in upper case; empty where there is none.
    pub(super) method: String,
    /// Canonical addresses of ATTENDEE and ORGANIZER.
    pub(super) people: Vec<String>,
}

/// People of one calendar that are kept.
const MAX_PEOPLE: usize = 500;

/// Methods that ask something of an attendee or organizer (RFC 5546 §1.4).
const REQUESTS: [&str; 5] = ["REQUEST", "CANCEL", "ADD", "COUNTER", "DECLINECOUNTER"];

impl Calendar {
    /// Reads a part; `declared` is the METHOD of its Content-Type.
    pub(super) fn parse(text: &str, declared: Option<&str>) -> Calendar {
        let unfolded = text.replace("\r\n ", "").replace("\r\n\t", "").replace("\n ", "").replace("\n\t", "");
        let mut method = String::new();
        let mut people = Vec::new();
        for line in unfolded.lines() {
            let Some((key, value)) = split_property(line.trim_end()) else { continue };
            let name = key.split(';').next().unwrap_or(key);
            if name.eq_ignore_ascii_case("METHOD") && method.is_empty() {
                method = value.trim().to_ascii_uppercase();
            } else if (name.eq_ignore_ascii_case("ATTENDEE") || name.eq_ignore_ascii_case("ORGANIZER"))
                && people.len() < MAX_PEOPLE
                && let Some((scheme, address)) = value.trim().split_once(':')
                && scheme.eq_ignore_ascii_case("mailto")
                && let Ok(address) = Address::parse(address.trim())
            {
                people.push(address.canonical());
            }
        }
        if method.is_empty() {
            method = declared.unwrap_or_default().trim().to_ascii_uppercase();
        }
        Calendar { method, people }
    }

    /// A request that names one of these addresses.
    pub(super) fn invites(&self, addresses: &[Address]) -> bool {
        REQUESTS.contains(&self.method.as_str()) && addresses.iter().any(|a| self.people.contains(&a.canonical()))
    }

    /// An answer or a publication: a record, not a request.
    pub(super) fn records(&self) -> bool {
        self.method == "REPLY" || self.method == "PUBLISH"
    }
}

/// Splits at the first colon outside quotes.
fn split_property(line: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    for (n, b) in line.bytes().enumerate() {
        match b {
            b'"' => quoted = !quoted,
            b':' if !quoted => return Some((&line[..n], &line[n + 1..])),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ICS: &str = "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nORGANIZER;CN=\"A: B\":mailto:ada@example.com\r\nATTENDEE;RSVP=TRUE:MAILTO:mi\r\n na@example.org\r\nEND:VCALENDAR\r\n";

    #[test]
    fn a_request_invites_only_those_it_names() {
        let c = Calendar::parse(ICS, None);
        assert!(c.invites(&[Address::parse("Mina@Example.org").unwrap()]));
        assert!(!c.invites(&[Address::parse("amina@example.org").unwrap()]));
        assert!(!c.records());
    }

    #[test]
    fn the_method_in_the_body_counts_before_the_declared_one() {
        assert_eq!(Calendar::parse(ICS, Some("publish")).method, "REQUEST");
        assert!(Calendar::parse("BEGIN:VCALENDAR\r\n", Some("reply")).records());
    }
}
