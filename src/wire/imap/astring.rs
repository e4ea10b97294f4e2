//! Writing an astring in its shortest safe form.

/// An argument ready for the wire, or the news that it has to be a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quoted {
    /// An atom or a quoted string, to be written as it stands.
    Plain(Vec<u8>),
    /// The octets themselves, which only a literal can carry.
    NeedsLiteral(Vec<u8>),
}

/// Encodes `name` as atom, quoted string, or asks for a literal.
///
/// RFC 3501 §9: a quoted string carries 7-bit text without NUL, CR and LF;
/// 8-bit octets go into a literal, because a server without UTF8=ACCEPT need
/// not take them in quotes. `NIL` is quoted: some servers take the bare word
/// for the missing value.
pub fn encode_astring(name: &[u8]) -> Quoted {
    if !name.is_empty() && name.iter().all(|&b| is_astring_char(b)) && !name.eq_ignore_ascii_case(b"NIL") {
        return Quoted::Plain(name.to_vec());
    }
    if name.iter().any(|&b| matches!(b, 0 | b'\r' | b'\n') || !b.is_ascii()) {
        return Quoted::NeedsLiteral(name.to_vec());
    }
    let mut out = Vec::with_capacity(name.len() + 2);
    out.push(b'"');
    for &b in name {
        if matches!(b, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(b);
    }
    out.push(b'"');
    Quoted::Plain(out)
}

/// RFC 3501 §9: ASTRING-CHAR = ATOM-CHAR / "]".
fn is_astring_char(b: u8) -> bool {
    b.is_ascii_graphic() && !matches!(b, b'(' | b')' | b'{' | b'%' | b'*' | b'"' | b'\\')
}
