//! Names of mailboxes as IMAP4rev1 writes them (RFC 3501 §5.1.3, modified
//! UTF-7).
//!
//! Promises: [`decode`] and [`encode`] undo each other for every name that
//! has one spelling; what is malformed decodes to `None` and is never guessed
//! at. Doesn't know: whether a server uses it.

use base64::Engine;
use base64::alphabet::Alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};

/// `,` instead of `/`, no padding.
const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,";

fn engine() -> Option<GeneralPurpose> {
    let config: GeneralPurposeConfig = general_purpose::NO_PAD.with_decode_padding_mode(DecodePaddingMode::RequireNone);
    Some(GeneralPurpose::new(&Alphabet::new(ALPHABET).ok()?, config))
}

/// The name that `wire` spells. Servers with UTF8=ACCEPT and clients that
/// don't care send UTF-8: that is taken as it is.
pub fn decode(wire: &[u8]) -> Option<String> {
    let mut rest = std::str::from_utf8(wire).ok()?;
    let mut out = String::with_capacity(rest.len());
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let (shifted, after) = rest[at + 1..].split_once('-')?;
        rest = after;
        if shifted.is_empty() {
            out.push('&');
            continue;
        }
        let octets = engine()?.decode(shifted).ok()?;
        if !octets.len().is_multiple_of(2) {
            return None;
        }
        let units = octets.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        for c in char::decode_utf16(units) {
            // What has a spelling of its own must not have a second one.
            out.push(c.ok().filter(|c| !matches!(c, ' '..='~'))?);
        }
    }
    out.push_str(rest);
    Some(out)
}

/// The spelling of a name.
pub fn encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut shifted: Vec<u8> = Vec::new();
    let end = |shifted: &mut Vec<u8>, out: &mut String| {
        if let (false, Some(engine)) = (shifted.is_empty(), engine()) {
            out.push('&');
            out.push_str(&engine.encode(&shifted));
            out.push('-');
            shifted.clear();
        }
    };
    for c in name.chars() {
        if matches!(c, ' '..='~') {
            end(&mut shifted, &mut out);
            out.push(c);
            if c == '&' {
                out.push('-');
            }
        } else {
            let mut units = [0; 2];
            shifted.extend(c.encode_utf16(&mut units).iter().flat_map(|u| u.to_be_bytes()));
        }
    }
    end(&mut shifted, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_rfc_read_as_they_should() {
        assert_eq!(decode(b"~peter/mail/&U,BTFw-/&ZeVnLIqe-").unwrap(), "~peter/mail/台北/日本語");
        assert_eq!(encode("~peter/mail/台北/日本語"), "~peter/mail/&U,BTFw-/&ZeVnLIqe-");
        assert_eq!(decode(b"Research&-Development").unwrap(), "Research&Development");
        assert_eq!(decode("Entwürfe".as_bytes()).unwrap(), "Entwürfe");
    }

    #[test]
    fn a_second_spelling_and_what_is_malformed_is_no_name() {
        // "&AEE-" would be an A; "&2D3cmg-" is fine, a lone surrogate isn't.
        for wire in [&b"&AEE-"[..], b"&2D0-", b"&U-", b"&U,BTFw", b"&U,BTFw==-", b"\xff"] {
            assert_eq!(decode(wire), None, "{wire:?}");
        }
    }

    proptest! {
        #[test]
        fn names_survive(name in "\\PC{0,20}") {
            prop_assert_eq!(decode(encode(&name).as_bytes()).unwrap(), name);
        }
    }
}
