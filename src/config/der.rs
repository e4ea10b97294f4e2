//! As much of a certificate as says how long it is valid (RFC 5280 §4.1).

/// One DER element: its tag, its contents, and what follows it.
fn element(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = octets.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        long @ 0x81..=0x84 => {
            let (count, mut length) = (usize::from(long & 0x7f), 0usize);
            let (bytes, rest) = rest.split_at_checked(count)?;
            for byte in bytes {
                length = length << 8 | usize::from(*byte);
            }
            (length, rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((*tag, contents, rest))
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

fn expect(octets: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    element(octets).filter(|e| e.0 == tag).map(|e| (e.1, e.2))
}

/// First and last second of a certificate's validity, since 1970.
pub(super) fn validity(certificate: &[u8]) -> Option<(i64, i64)> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut rest, _) = expect(certificate, SEQUENCE)?;
    // RFC 5280 §4.1: version (absent in v1), serialNumber, signature, issuer,
    // validity.
    if let Some((_, after)) = expect(rest, VERSION) {
        rest = after;
    }
    let (_, rest) = expect(rest, INTEGER)?;
    let (_, rest) = expect(rest, SEQUENCE)?;
    let (_, rest) = expect(rest, SEQUENCE)?;
    let (validity, _) = expect(rest, SEQUENCE)?;
    let (tag, from, rest) = element(validity)?;
    let from = time(tag, from)?;
    let (tag, until, _) = element(rest)?;
    Some((from, time(tag, until)?))
}

/// RFC 5280 §4.1.2.5: both forms are in UTC, to the second, with a `Z`.
fn time(tag: u8, text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text = match (tag, text.len()) {
        // §4.1.2.5.1: years from 50 on are of the last century.
        (UTC_TIME, 12) => format!("{}{text}", if text.get(..2)?.parse::<u8>().ok()? >= 50 { "19" } else { "20" }),
        (GENERALIZED_TIME, 14) => text.to_owned(),
        _ => return None,
    };
    let at = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", text).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_time_are_read() {
        assert_eq!(time(UTC_TIME, b"700101000001Z"), Some(1));
        assert_eq!(time(UTC_TIME, b"491231235959Z"), time(GENERALIZED_TIME, b"20491231235959Z"));
        assert_eq!(time(UTC_TIME, b"20491231235959Z"), None);
        assert_eq!(time(GENERALIZED_TIME, b"20501331000000Z"), None);
    }

    #[test]
    fn no_octets_make_it_fail_loudly() {
        let key = rcgen::KeyPair::generate().unwrap();
        let der = rcgen::CertificateParams::default().self_signed(&key).unwrap().der().to_vec();
        assert_eq!(validity(&der), Some((time(UTC_TIME, b"750101000000Z").unwrap(), 67_090_118_400)));
        for cut in 0..der.len() {
            let _ = validity(&der[..cut]);
            let mut changed = der.clone();
            changed[cut] ^= 0xff;
            let _ = validity(&changed);
        }
    }
}
