//! What a server offers in its reply to EHLO (RFC 5321 §4.1.1.1).

use crate::wire::smtp::Reply;

/// The offers that matter here; unknown keywords are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EhloCaps {
    /// SIZE (RFC 1870); zero means no fixed limit.
    pub size: Option<u64>,
    /// 8BITMIME (RFC 6152).
    pub eight_bit_mime: bool,
    /// SMTPUTF8 (RFC 6531).
    pub smtputf8: bool,
    /// PIPELINING (RFC 2920).
    pub pipelining: bool,
    /// DSN (RFC 3461).
    pub dsn: bool,
    /// STARTTLS (RFC 3207).
    pub starttls: bool,
    /// AUTH mechanisms (RFC 4954), in upper case.
    pub auth: Vec<String>,
}

impl EhloCaps {
    /// Reads the reply; its first line is the server's name.
    pub fn parse(reply: &Reply) -> Self {
        let mut caps = EhloCaps::default();
        for line in reply.lines().iter().skip(1) {
            let line = line.trim().to_ascii_uppercase();
            // Old servers write `AUTH=PLAIN`.
            let (keyword, rest) = line.split_once([' ', '=']).unwrap_or((line.as_str(), ""));
            match keyword {
                "SIZE" => caps.size = Some(rest.trim().parse().unwrap_or(0)),
                "8BITMIME" => caps.eight_bit_mime = true,
                "SMTPUTF8" => caps.smtputf8 = true,
                "PIPELINING" => caps.pipelining = true,
                "DSN" => caps.dsn = true,
                "STARTTLS" => caps.starttls = true,
                "AUTH" => {
                    for mechanism in rest.split_whitespace() {
                        if !caps.auth.iter().any(|m| m == mechanism) {
                            caps.auth.push(mechanism.to_owned());
                        }
                    }
                }
                _ => {}
            }
        }
        caps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_read_in_any_case_and_the_name_is_none() {
        let lines = ["SMTPUTF8", "size 100", "8bitmime", "AUTH=LOGIN", "AUTH PLAIN LOGIN", "LIMITS RCPTMAX=5", "DSN"];
        let caps = EhloCaps::parse(&Reply::lines_of(250, lines.map(str::to_owned).to_vec()));
        let auth = vec!["LOGIN".to_owned(), "PLAIN".to_owned()];
        let want = EhloCaps { size: Some(100), eight_bit_mime: true, dsn: true, auth, ..EhloCaps::default() };
        assert_eq!(caps, want);
    }
}
