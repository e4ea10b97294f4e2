//! serde forms of the canonical payload: integers as decimal strings, digests
//! as hexadecimal digits. A spelling that would be written otherwise is
//! refused, so that a receipt has exactly one text of each value.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Integers as strings (RFC 8785 rounds numbers above 2^53).
pub(super) mod decimal {
    use super::*;

    pub(in crate::floor) fn serialize<T: Display, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(value)
    }

    pub(in crate::floor) fn deserialize<'de, T: FromStr + Display, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        match text.parse::<T>() {
            Ok(value) if value.to_string() == text => Ok(value),
            _ => Err(D::Error::custom("not an integer in its shortest decimal form")),
        }
    }
}

/// Thirty-two bytes as hexadecimal digits.
pub(super) mod hex {
    use super::*;

    pub(in crate::floor) fn serialize<S: Serializer>(value: &[u8; 32], s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&crate::floor::digest::to_hex(value))
    }

    pub(in crate::floor) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<[u8; 32], D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        crate::floor::digest::from_hex(&text).ok_or_else(|| D::Error::custom(crate::floor::digest::NotHex))
    }
}

/// The canonical form (RFC 8785) of a value that holds only strings,
/// booleans, nulls, and arrays and objects of these.
pub(super) fn canonical(value: &impl serde::Serialize) -> Vec<u8> {
    // serde_jcs fails on numbers that JSON lacks (NaN, infinities) and on map
    // keys that are no strings; no type passed here has a number or a map.
    serde_jcs::to_vec(value).expect("strings, booleans and arrays always have a canonical form")
}
