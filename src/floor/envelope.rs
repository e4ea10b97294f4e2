//! The envelope of a submission (RFC 5321 §2.3.1) as it will be dispatched.
//!
//! Promises: a [`ForwardPath`] is the very octets that follow `RCPT TO:<`;
//! its local part is what the submitter wrote, its domain an A-label form
//! that reads back to the same name; two spellings of one look-alike never
//! become one path. Doesn't know: whether anybody receives mail there.

use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Deserializer, Serialize};
use unicode_normalization::is_nfc;

use crate::mail::address::{MAX_DOMAIN, MAX_LOCAL};

/// Longest path in octets without its brackets (RFC 5321 §4.5.3.1.3).
pub const MAX_PATH: usize = 254;

/// A mailbox in the form that is dispatched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ForwardPath(String);

/// Why a text is no path that can be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ForwardPathError {
    /// No `@`, nothing on one side of it, or a source route.
    #[error("a path needs a local part, '@' and a domain")]
    Shape,
    /// The local part is neither a dot-string nor a quoted string.
    #[error("the local part holds a character that may not stand there")]
    Local,
    /// Not in Unicode normalisation form C: another spelling of the same
    /// glyphs exists, so the page can't show which one is meant.
    #[error("the path is not in Unicode normalisation form C")]
    NotNfc,
    /// The domain has no A-label form that reads back to the same name, and
    /// is no address literal.
    #[error("the domain is not valid")]
    Domain,
    /// Longer than RFC 5321 §4.5.3.1 allows.
    #[error("the path is too long")]
    Length,
}

impl ForwardPath {
    /// Reads `local@domain` without brackets. The local part stays as it is;
    /// the domain becomes its A-label form.
    pub fn parse(text: &str) -> Result<ForwardPath, ForwardPathError> {
        if !is_nfc(text) {
            return Err(ForwardPathError::NotNfc);
        }
        let (local, domain) = text.rsplit_once('@').ok_or(ForwardPathError::Shape)?;
        if local.is_empty() || domain.is_empty() || local.starts_with('@') {
            return Err(ForwardPathError::Shape);
        }
        if local.len() > MAX_LOCAL || domain.len() > MAX_DOMAIN {
            return Err(ForwardPathError::Length);
        }
        if !is_dot_string(local) && !is_quoted_string(local) {
            return Err(ForwardPathError::Local);
        }
        let path = format!("{local}@{}", dispatched_domain(domain)?);
        if path.len() > MAX_PATH {
            return Err(ForwardPathError::Length);
        }
        Ok(ForwardPath(path))
    }

    /// The exact octets that are dispatched, without brackets.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands before the last `@`.
    pub fn local(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(local, _)| local)
    }

    /// The A-label domain or the address literal.
    pub fn domain(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(_, domain)| domain)
    }

    /// Whether the path can only be sent under SMTPUTF8 (RFC 6531 §3.2).
    pub fn needs_smtputf8(&self) -> bool {
        !self.0.is_ascii()
    }
}

impl fmt::Display for ForwardPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ForwardPath {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        match ForwardPath::parse(&text) {
            Ok(path) if path.0 == text => Ok(path),
            Ok(_) => Err(serde::de::Error::custom("a path that is not in the form that is dispatched")),
            Err(e) => Err(serde::de::Error::custom(e)),
        }
    }
}

/// RFC 5321 §4.1.2: `Dot-string = Atom *("." Atom)`, with RFC 6531 §3.3's
/// `atext =/ UTF8-non-ascii`.
fn is_dot_string(local: &str) -> bool {
    let atext = |c: char| match c {
        '!' | '#' | '$' | '%' | '&' | '\'' | '*' | '+' | '-' | '/' | '=' | '?' | '^' | '_' | '`' | '{' | '|' | '}'
        | '~' => true,
        c => c.is_ascii_alphanumeric() || (!c.is_ascii() && !c.is_control()),
    };
    local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(atext))
}

/// RFC 5321 §4.1.2: `Quoted-string = DQUOTE *QcontentSMTP DQUOTE`.
fn is_quoted_string(local: &str) -> bool {
    let Some(inner) = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let fits = match c {
            '\\' => chars.next().is_some_and(|escaped| (' '..='~').contains(&escaped)),
            '"' => false,
            c => (' '..='~').contains(&c) || (!c.is_ascii() && !c.is_control()),
        };
        if !fits {
            return false;
        }
    }
    true
}

/// The domain as it is dispatched: an A-label form by non-transitional
/// UTS 46 that reads back to the same name, or an address literal.
fn dispatched_domain(domain: &str) -> Result<String, ForwardPathError> {
    if let Some(literal) = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address_literal(literal).ok_or(ForwardPathError::Domain);
    }
    let ascii = idna::domain_to_ascii_strict(domain).map_err(|_| ForwardPathError::Domain)?;
    let (unicode, valid) = idna::domain_to_unicode(&ascii);
    let again = idna::domain_to_ascii_strict(&unicode).map_err(|_| ForwardPathError::Domain)?;
    // A final dot names the DNS root and has no place in a Mailbox (RFC 5321 §4.1.2).
    if valid.is_err() || again != ascii || ascii.is_empty() || ascii.ends_with('.') {
        return Err(ForwardPathError::Domain);
    }
    Ok(ascii)
}

/// RFC 5321 §4.1.3: IPv4 and IPv6 literals; general ones are refused, for
/// nobody could tell on the page where they lead.
fn address_literal(inner: &str) -> Option<String> {
    if let Ok(v4) = inner.parse::<Ipv4Addr>() {
        return Some(format!("[{v4}]"));
    }
    let tag = inner.get(..5)?;
    let v6: Ipv6Addr = inner.get(5..)?.parse().ok()?;
    tag.eq_ignore_ascii_case("IPv6:").then(|| format!("[IPv6:{v6}]"))
}

/// BODY of MAIL (RFC 6152 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BodyType {
    /// `BODY=7BIT`, also where no BODY was given.
    #[serde(rename = "7BIT")]
    SevenBit,
    /// `BODY=8BITMIME`.
    #[serde(rename = "8BITMIME")]
    EightBitMime,
}

/// Who a message goes to, and under which parameters. Made by
/// [`Envelope::new`], which sorts and collapses; one that was put together
/// otherwise never compares equal to an approved one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// What follows `MAIL FROM:<`, in the form of a [`ForwardPath`]; empty
    /// for the null reverse-path.
    pub reverse_path: String,
    /// Every recipient, ascending by octets, each once.
    pub forward_paths: Vec<ForwardPath>,
    /// BODY parameter.
    pub body: BodyType,
    /// SMTPUTF8 parameter.
    pub smtputf8: bool,
}

/// Why an envelope can't be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The reverse-path is no path.
    #[error("reverse-path: {0}")]
    ReversePath(ForwardPathError),
    /// Nobody receives it.
    #[error("no recipient")]
    NoRecipient,
    /// A path outside ASCII without SMTPUTF8 (RFC 6531 §3.4).
    #[error("a path outside ASCII needs SMTPUTF8")]
    NeedsSmtpUtf8,
    /// Recipients unsorted or repeated, or a reverse-path in another form.
    #[error("the envelope is not in its canonical form")]
    NotCanonical,
}

impl Envelope {
    /// Checks the reverse-path (`""` is the null one), sorts the recipients
    /// and collapses duplicates.
    pub fn new(
        reverse_path: &str,
        mut forward_paths: Vec<ForwardPath>,
        body: BodyType,
        smtputf8: bool,
    ) -> Result<Envelope, EnvelopeError> {
        let reverse_path = match reverse_path {
            "" => String::new(),
            text => ForwardPath::parse(text).map_err(EnvelopeError::ReversePath)?.0,
        };
        forward_paths.sort();
        forward_paths.dedup();
        let envelope = Envelope { reverse_path, forward_paths, body, smtputf8 };
        envelope.check()?;
        Ok(envelope)
    }

    /// Of an act that sends nothing.
    pub fn nobody() -> Envelope {
        let (reverse_path, forward_paths) = (String::new(), Vec::new());
        Envelope { reverse_path, forward_paths, body: BodyType::SevenBit, smtputf8: false }
    }

    /// Fails where [`Envelope::new`] would have failed or changed something.
    pub fn check(&self) -> Result<(), EnvelopeError> {
        if !self.reverse_path.is_empty() {
            let parsed = ForwardPath::parse(&self.reverse_path).map_err(EnvelopeError::ReversePath)?;
            if parsed.0 != self.reverse_path {
                return Err(EnvelopeError::NotCanonical);
            }
        }
        if self.forward_paths.is_empty() {
            return Err(EnvelopeError::NoRecipient);
        }
        if !self.forward_paths.is_sorted_by(|a, b| a < b) {
            return Err(EnvelopeError::NotCanonical);
        }
        let outside_ascii = !self.reverse_path.is_ascii() || self.forward_paths.iter().any(ForwardPath::needs_smtputf8);
        if outside_ascii && !self.smtputf8 {
            return Err(EnvelopeError::NeedsSmtpUtf8);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
