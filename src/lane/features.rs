//! The four numbers that a scorer returns.
//!
//! Promises: whoever holds [`Features`] holds four finite numbers in `0..=1`.
//! An invalid answer is refused whole and never read as zero. Doesn't know:
//! who scored.

use serde::{Deserialize, Serialize};

/// Features are kept to this many steps per unit. Four decimals print and
/// parse back to the same number, so a stored trace replays to the last bit.
const STEPS: f64 = 10_000.0;

/// Four numbers in `0..=1` about one message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Features {
    confidence: f64,
    sender_trust: f64,
    reversibility: f64,
    urgency: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    confidence: f64,
    sender_trust: f64,
    reversibility: f64,
    urgency: f64,
}

/// Why an answer is no set of features.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum FeatureError {
    /// NaN or infinite.
    #[error("{0} is not a finite number")]
    NotFinite(&'static str),
    /// Outside `0..=1`.
    #[error("{0} is {1}, outside 0 to 1")]
    OutOfRange(&'static str, f64),
}

impl Features {
    /// Nothing could be said about the message: shown, never hidden.
    pub const UNSCORABLE: Features = Features { confidence: 0.0, sender_trust: 0.0, reversibility: 0.0, urgency: 0.0 };

    /// Takes four numbers that are finite and in `0..=1`, kept to four decimals.
    pub fn new(confidence: f64, sender_trust: f64, reversibility: f64, urgency: f64) -> Result<Features, FeatureError> {
        Ok(Features {
            confidence: checked("confidence", confidence)?,
            sender_trust: checked("sender_trust", sender_trust)?,
            reversibility: checked("reversibility", reversibility)?,
            urgency: checked("urgency", urgency)?,
        })
    }

    /// The probability that the lane is right.
    pub fn confidence(&self) -> f64 {
        self.confidence
    }

    /// How far the sender is who they say and deserves attention.
    pub fn sender_trust(&self) -> f64 {
        self.sender_trust
    }

    /// How cheaply wrongly setting the message aside is undone (1: nothing is lost).
    pub fn reversibility(&self) -> f64 {
        self.reversibility
    }

    /// How soon a person is needed (1: now).
    pub fn urgency(&self) -> f64 {
        self.urgency
    }
}

fn checked(name: &'static str, value: f64) -> Result<f64, FeatureError> {
    if !value.is_finite() {
        return Err(FeatureError::NotFinite(name));
    }
    if !(0.0..=1.0).contains(&value) {
        return Err(FeatureError::OutOfRange(name, value));
    }
    // `+ 0.0` turns the negative zero that the range admits into zero.
    Ok((value * STEPS).round() / STEPS + 0.0)
}

impl TryFrom<Raw> for Features {
    type Error = FeatureError;

    fn try_from(raw: Raw) -> Result<Features, FeatureError> {
        Features::new(raw.confidence, raw.sender_trust, raw.reversibility, raw.urgency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_numbers_are_refused_and_never_clamped() {
        assert_eq!(Features::new(f64::NAN, 0.0, 0.0, 0.0), Err(FeatureError::NotFinite("confidence")));
        assert_eq!(Features::new(0.0, f64::INFINITY, 0.0, 0.0), Err(FeatureError::NotFinite("sender_trust")));
        assert_eq!(Features::new(0.0, 0.0, 1.01, 0.0), Err(FeatureError::OutOfRange("reversibility", 1.01)));
        assert_eq!(Features::new(0.0, 0.0, 0.0, -0.01), Err(FeatureError::OutOfRange("urgency", -0.01)));
        assert!(Features::new(0.0, 1.0, 0.5, 0.25).is_ok());
    }

    #[test]
    fn json_is_checked_like_numbers() {
        for bad in [
            r#"{"confidence":2,"sender_trust":0,"reversibility":0,"urgency":0}"#,
            r#"{"confidence":0.5,"sender_trust":0,"reversibility":0}"#,
            r#"{"confidence":"0.5","sender_trust":0,"reversibility":0,"urgency":0}"#,
            r#"{"confidence":0.5,"sender_trust":0,"reversibility":0,"urgency":0,"x":1}"#,
        ] {
            assert!(serde_json::from_str::<Features>(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_was_stored_reads_back_the_same(c in 0.0..=1.0f64, t in 0.0..=1.0f64, r in 0.0..=1.0f64, u in 0.0..=1.0f64) {
            let f = Features::new(c, t, r, u).unwrap();
            let back: Features = serde_json::from_str(&serde_json::to_string(&f).unwrap()).unwrap();
            proptest::prop_assert_eq!(f, back);
        }
    }
}
