//! Paths (RFC 5321 §4.1.2, with UTF-8 by RFC 6531 §3.3): checked by the
//! grammar, kept as the octets that they came with.

/// Longest path in octets, angle brackets included (RFC 5321 §4.5.3.1.3).
pub const MAX_PATH: usize = 256;
/// Longest local part in octets (RFC 5321 §4.5.3.1.1).
const MAX_LOCAL: usize = 64;
/// Longest domain in octets (RFC 5321 §4.5.3.1.2).
const MAX_DOMAIN: usize = 255;

/// A checked path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    mailbox: String,
}

impl Path {
    /// The mailbox as it was written, without angle brackets; empty for `<>`.
    pub fn as_str(&self) -> &str {
        &self.mailbox
    }

    /// `<>`.
    pub fn is_null(&self) -> bool {
        self.mailbox.is_empty()
    }

    /// Whether every octet is ASCII; one that isn't needs SMTPUTF8.
    pub fn is_ascii(&self) -> bool {
        self.mailbox.is_ascii()
    }

    /// The path without angle brackets, owned.
    pub fn into_string(self) -> String {
        self.mailbox
    }
}

/// Why a path was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Not of the grammar.
    #[error("the path is not valid")]
    Syntax,
    /// Not UTF-8.
    #[error("the path is not UTF-8")]
    NotUtf8,
    /// A source route.
    #[error("source routes are not accepted")]
    SourceRoute,
    /// A local part without a domain, `<Postmaster>` included.
    #[error("the path has no domain")]
    NoDomain,
    /// Longer than RFC 5321 §4.5.3.1 allows.
    #[error("the path is too long")]
    TooLong,
}

/// Reads `<…>` at the start of `input`; the path and what follows it.
///
/// Deviation from RFC 5321 §4.1.1.3: a source route is refused, not ignored:
/// what a person approves is what is dispatched, and a route that we dropped
/// would make two. A bare `<Postmaster>` is refused because a submission has
/// no domain of ours to mean (RFC 6409 §5.1).
pub fn parse_path(input: &[u8]) -> Result<(Path, &[u8]), PathError> {
    let inner = input.strip_prefix(b"<").ok_or(PathError::Syntax)?;
    let end = closing_bracket(inner).ok_or(PathError::Syntax)?;
    let (mailbox, rest) = (&inner[..end], &inner[end + 1..]);
    if mailbox.len() + 2 > MAX_PATH {
        return Err(PathError::TooLong);
    }
    let mailbox = std::str::from_utf8(mailbox).map_err(|_| PathError::NotUtf8)?;
    if !mailbox.is_empty() {
        parse_mailbox(mailbox)?;
    }
    Ok((Path { mailbox: mailbox.to_owned() }, rest))
}

/// Offset of the `>` that is not inside a quoted string.
fn closing_bracket(input: &[u8]) -> Option<usize> {
    let mut quoted = false;
    let mut at = 0;
    while at < input.len() {
        match input[at] {
            b'"' => quoted = !quoted,
            b'\\' if quoted => at += 1,
            b'>' if !quoted => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Checks `Local-part "@" ( Domain / address-literal )`; the two parts.
pub fn parse_mailbox(text: &str) -> Result<(&str, &str), PathError> {
    if text.starts_with('@') {
        return Err(PathError::SourceRoute);
    }
    let local_len = if text.starts_with('"') { quoted_len(text)? } else { text.find('@').unwrap_or(text.len()) };
    let (local, rest) = text.split_at(local_len);
    if !local.starts_with('"') && !is_dot_string(local) {
        return Err(PathError::Syntax);
    }
    let domain = match rest.strip_prefix('@') {
        Some(domain) => domain,
        None if rest.is_empty() => return Err(PathError::NoDomain),
        None => return Err(PathError::Syntax),
    };
    if local.len() > MAX_LOCAL || domain.len() > MAX_DOMAIN {
        return Err(PathError::TooLong);
    }
    if is_domain(domain) || is_address_literal(domain) { Ok((local, domain)) } else { Err(PathError::Syntax) }
}

/// Octets of the Quoted-string at the start of `text`.
fn quoted_len(text: &str) -> Result<usize, PathError> {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok(at + 1),
            '\\' => match chars.next() {
                Some((_, ' '..='~')) => {}
                _ => return Err(PathError::Syntax),
            },
            c if c.is_control() => return Err(PathError::Syntax),
            _ => {}
        }
    }
    Err(PathError::Syntax)
}

/// `Dot-string = Atom *("." Atom)`.
fn is_dot_string(local: &str) -> bool {
    local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atext))
}

/// RFC 5322 §3.2.3 `atext`, with UTF-8 by RFC 6531 §3.3.
fn is_atext(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
    } else {
        !c.is_control() && !c.is_whitespace()
    }
}

/// `sub-domain *("." sub-domain)`, U-labels by RFC 6531 §3.3.
fn is_domain(domain: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| match c.is_ascii() {
                // The underscore is outside the grammar but inside the DNS.
                true => c.is_ascii_alphanumeric() || c == '-' || c == '_',
                false => !c.is_control() && !c.is_whitespace(),
            })
    };
    domain.split('.').all(label)
}

/// `"[" ( IPv4 / IPv6 / General ) "]"` (RFC 5321 §4.1.3).
fn is_address_literal(domain: &str) -> bool {
    let Some(inner) = domain.strip_prefix('[').and_then(|d| d.strip_suffix(']')) else { return false };
    if let Some(six) = inner.get(..5).filter(|tag| tag.eq_ignore_ascii_case("ipv6:")).map(|tag| &inner[tag.len()..]) {
        return six.parse::<std::net::Ipv6Addr>().is_ok();
    }
    inner.parse::<std::net::Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_their_octets() {
        for text in [
            "",
            "a@example.org",
            "Jo.Doe+tag@Example.ORG",
            "\"a b\"@example.org",
            "\"a\\\"b>\"@example.org",
            "\"a@b\"@example.org",
            "a@[192.0.2.1]",
            "a@[IPv6:2001:db8::1]",
            "jösé@bücher.example",
            "o'hara@a_b.example",
        ] {
            let input = format!("<{text}> SIZE=1");
            let (path, rest) = parse_path(input.as_bytes()).unwrap();
            assert_eq!(path.as_str(), text);
            assert_eq!(rest, b" SIZE=1");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        use PathError::*;
        let cases: [(&[u8], PathError); 24] = [
            (b"a@example.org", Syntax),
            (b"<a@example.org", Syntax),
            (b"<@x.example,@y.example:a@example.org>", SourceRoute),
            (b"<@example.org>", SourceRoute),
            (b"<Postmaster>", NoDomain),
            (b"<a@>", Syntax),
            (b"<a b@example.org>", Syntax),
            (b"<a..b@example.org>", Syntax),
            (b"<.a@example.org>", Syntax),
            (b"<a@b@example.org>", Syntax),
            (b"<a@example..org>", Syntax),
            (b"<a@example.org.>", Syntax),
            (b"<a@-x.example>", Syntax),
            (b"<a@[1.2.3]>", Syntax),
            (b"<a@[IPv6:zz]>", Syntax),
            (b"<a@[x]>", Syntax),
            (b"<\"a@example.org>", Syntax),
            (b"<\"a\"b@example.org>", Syntax),
            (b"<\"a\rb\"@example.org>", Syntax),
            (b"<a\rb@example.org>", Syntax),
            (b"<a\0@example.org>", Syntax),
            (b"<a\xff@example.org>", NotUtf8),
            (b"<\xc2\x85@example.org>", Syntax),
            (b"<<a@example.org>>", Syntax),
        ];
        for (input, want) in cases {
            assert_eq!(parse_path(input).map(|(p, _)| p), Err(want), "{:?}", String::from_utf8_lossy(input));
        }
        assert_eq!(parse_path(format!("<{}@b.c>", "a".repeat(65)).as_bytes()), Err(TooLong));
        assert_eq!(parse_path(format!("<a@{}>", "a.".repeat(130)).as_bytes()), Err(TooLong));
    }
}
