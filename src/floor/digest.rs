//! SHA-256 values that are written as 64 lower-case hexadecimal digits.
//!
//! Promises: one value has one text, so that no two spellings of a digest
//! both pass a comparison of texts. Doesn't know: what was hashed.

/// Bytes as lower-case hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)] as char, DIGITS[usize::from(b & 15)] as char]).collect()
}

/// Exactly 64 lower-case hexadecimal digits as 32 bytes.
pub fn from_hex(text: &str) -> Option<[u8; 32]> {
    fn digit(c: u8) -> Option<u8> {
        match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        }
    }
    if text.len() != 64 {
        return None;
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

/// A text is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not 64 lower-case hexadecimal digits")]
pub struct NotHex;

/// Declares a SHA-256 newtype with its one text form.
macro_rules! digest {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub [u8; 32]);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&$crate::floor::digest::to_hex(&self.0))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::floor::digest::NotHex;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::floor::digest::from_hex(text).map($name).ok_or($crate::floor::digest::NotHex)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use digest;

digest! {
    /// SHA-256 of some octets, or of a ledger entry.
    Hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn upper_case_and_other_lengths_are_refused() {
        let good = "00ff".repeat(16);
        assert!(from_hex(&good).is_some());
        for bad in [good.to_uppercase(), good[1..].to_owned(), format!("{good}0"), good.replace('f', "g")] {
            assert_eq!(from_hex(&bad), None, "{bad}");
        }
        assert_eq!(from_hex(&"é".repeat(32)), None);
    }

    proptest! {
        #[test]
        fn a_digest_has_one_text_that_reads_back(bytes: [u8; 32]) {
            let text = Hash(bytes).to_string();
            prop_assert_eq!(text.parse::<Hash>(), Ok(Hash(bytes)));
            prop_assert_eq!(serde_json::from_str::<Hash>(&serde_json::to_string(&Hash(bytes)).unwrap()).unwrap(), Hash(bytes));
        }
    }
}
