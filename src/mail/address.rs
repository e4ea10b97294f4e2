//! Mail addresses in their exact and canonical forms (RFC 5321 §4.1.2).
//!
//! Promises: two addresses compare equal only when local parts are the same
//! octets after the account rule (ASCII case folded for comparison of people,
//! never for dispatch) and domains are the same A-label form. Substrings and
//! look-alikes never compare equal.

use std::fmt;

/// An address split at the last `@`, as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Address {
    /// Local part as written, quotes included.
    pub local: String,
    /// Domain as an A-label in lower case, or an address literal.
    pub domain: String,
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// No `@`, or nothing on one side of it.
    #[error("an address needs a local part, '@' and a domain")]
    Shape,
    /// The domain has no A-label form (UTS 46, non-transitional).
    #[error("the domain is not valid")]
    Domain,
    /// A control character or space outside quotes.
    #[error("the address holds a character that may not stand there")]
    Character,
    /// Longer than RFC 5321 §4.5.3.1 allows (64 local, 255 domain).
    #[error("the address is too long")]
    Length,
}

/// Longest local part in octets (RFC 5321 §4.5.3.1.1).
pub const MAX_LOCAL: usize = 64;
/// Longest domain in octets (RFC 5321 §4.5.3.1.2).
pub const MAX_DOMAIN: usize = 255;

impl Address {
    /// Parses `local@domain`; the domain is brought to lower-case A-labels.
    pub fn parse(text: &str) -> Result<Address, AddressError> {
        let (local, domain) = text.rsplit_once('@').ok_or(AddressError::Shape)?;
        if local.is_empty() || domain.is_empty() {
            return Err(AddressError::Shape);
        }
        if local.len() > MAX_LOCAL || domain.len() > MAX_DOMAIN {
            return Err(AddressError::Length);
        }
        let quoted = local.len() >= 2 && local.starts_with('"') && local.ends_with('"');
        let bad = |c: char| {
            c.is_control() || (!quoted && (c == ' ' || c == '<' || c == '>' || c == '"' || c == ',' || c == '@'))
        };
        if local.chars().any(bad) {
            return Err(AddressError::Character);
        }
        let domain = if domain.starts_with('[') && domain.ends_with(']') {
            domain.to_ascii_lowercase()
        } else {
            let ascii = idna::domain_to_ascii_strict(domain).map_err(|_| AddressError::Domain)?;
            if ascii.is_empty() || ascii.len() > MAX_DOMAIN {
                return Err(AddressError::Domain);
            }
            ascii
        };
        Ok(Address { local: local.to_owned(), domain })
    }

    /// The form that people are compared by: local part in lower case.
    pub fn canonical(&self) -> String {
        format!("{}@{}", self.local.to_lowercase(), self.domain)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.local, self.domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_brought_to_lower_case_a_labels() {
        let a = Address::parse("Jo.Doe@BÜCHER.example").unwrap();
        assert_eq!(a.to_string(), "Jo.Doe@xn--bcher-kva.example");
        assert_eq!(a.canonical(), "jo.doe@xn--bcher-kva.example");
    }

    #[test]
    fn a_substring_of_an_address_is_another_address() {
        let a = Address::parse("alice@example.org").unwrap();
        let b = Address::parse("malice@example.org").unwrap();
        assert_ne!(a.canonical(), b.canonical());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "@", "a@", "@b", "a b@c", "a\r\n@b", "a<b@c", "x@-bad-.example"] {
            assert!(Address::parse(text).is_err(), "{text:?}");
        }
    }
}
