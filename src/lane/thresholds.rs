//! The rule's thresholds, all in one place.

use serde::{Deserialize, Serialize};

/// Thresholds of the rule, named as in `gateway.toml` under `[rule]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// Below this confidence: queue (0.50).
    pub confidence_min: f64,
    /// Push from this urgency on (0.70).
    pub push_urgency: f64,
    /// Push from this confidence on (0.50).
    pub push_confidence: f64,
    /// A machine that asks for nothing by a time needs this urgency for push (0.80).
    #[serde(default = "machine_urgency")]
    pub machine_urgency: f64,
    /// A scanned-and-absent sender needs this urgency for push (0.90).
    pub stranger_urgency: f64,
    /// Silent only below this sender_trust (0.20).
    pub silent_trust: f64,
    /// Silent only below this urgency (0.20).
    pub silent_urgency: f64,
    /// Silent only above this reversibility (0.90).
    pub silent_reversibility: f64,
    /// Info only below this urgency (0.50).
    pub info_urgency: f64,
}

/// Below this a scorer that knows nothing could hide mail (invariant: uncertain mail is shown).
const LEAST_CONFIDENCE: f64 = 0.30;
/// Above this, correspondents that a scorer trusts could be silenced.
const MOST_SILENT_TRUST: f64 = 0.50;
/// Above this, mail that may be needed within the day could be silenced.
const MOST_SILENT_URGENCY: f64 = 0.50;
/// Below this, mail whose loss costs something could be silenced.
const LEAST_SILENT_REVERSIBILITY: f64 = 0.75;

/// Machines pushed only with an ask by a time where a trace has no such threshold.
fn machine_urgency() -> f64 {
    2.0
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            confidence_min: 0.50,
            push_urgency: 0.70,
            push_confidence: 0.50,
            machine_urgency: 0.80,
            stranger_urgency: 0.90,
            silent_trust: 0.20,
            silent_urgency: 0.20,
            silent_reversibility: 0.90,
            info_urgency: 0.50,
        }
    }
}

impl Thresholds {
    /// Every reason for which these values must be refused, each naming its key.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut reasons = Vec::new();
        for (key, value) in self.named() {
            if !value.is_finite() || !(0.0..=1.0).contains(&value) {
                reasons.push(format!("rule.{key} must lie between 0 and 1, not {value}"));
            }
        }
        if !reasons.is_empty() {
            return Err(reasons);
        }
        let mut need = |holds: bool, reason: String| {
            if !holds {
                reasons.push(reason);
            }
        };
        need(
            self.confidence_min >= LEAST_CONFIDENCE,
            format!("rule.confidence_min below {LEAST_CONFIDENCE} would let uncertain mail be hidden"),
        );
        need(
            self.push_confidence >= self.confidence_min,
            "rule.push_confidence below rule.confidence_min can never count: such mail is in queue already".to_owned(),
        );
        need(
            self.stranger_urgency >= self.push_urgency,
            "rule.stranger_urgency below rule.push_urgency would make strangers louder than anyone else".to_owned(),
        );
        need(
            self.machine_urgency >= self.push_urgency,
            "rule.machine_urgency below rule.push_urgency would make machines louder than people".to_owned(),
        );
        need(
            self.info_urgency <= self.push_urgency,
            "rule.info_urgency above rule.push_urgency would file urgent mail as a calm record".to_owned(),
        );
        need(
            self.silent_urgency <= self.info_urgency && self.silent_urgency <= MOST_SILENT_URGENCY,
            format!(
                "rule.silent_urgency above rule.info_urgency or {MOST_SILENT_URGENCY} would silence mail that is needed soon"
            ),
        );
        need(
            self.silent_trust <= MOST_SILENT_TRUST,
            format!("rule.silent_trust above {MOST_SILENT_TRUST} would silence trusted senders"),
        );
        need(
            self.silent_reversibility >= LEAST_SILENT_REVERSIBILITY,
            format!(
                "rule.silent_reversibility below {LEAST_SILENT_REVERSIBILITY} would silence mail whose loss costs something"
            ),
        );
        if reasons.is_empty() { Ok(()) } else { Err(reasons) }
    }

    fn named(&self) -> [(&'static str, f64); 9] {
        [
            ("confidence_min", self.confidence_min),
            ("push_urgency", self.push_urgency),
            ("push_confidence", self.push_confidence),
            ("machine_urgency", self.machine_urgency),
            ("stranger_urgency", self.stranger_urgency),
            ("silent_trust", self.silent_trust),
            ("silent_urgency", self.silent_urgency),
            ("silent_reversibility", self.silent_reversibility),
            ("info_urgency", self.info_urgency),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl Fn(&mut Thresholds)) -> Vec<String> {
        let mut t = Thresholds::default();
        change(&mut t);
        t.check().expect_err("must be refused")
    }

    #[test]
    fn the_defaults_pass() {
        assert_eq!(Thresholds::default().check(), Ok(()));
    }

    #[test]
    fn values_that_break_an_invariant_are_refused_with_the_reason() {
        assert!(refused(|t| t.confidence_min = 0.0)[0].contains("confidence_min"));
        assert!(refused(|t| t.push_confidence = 0.4)[0].contains("push_confidence"));
        assert!(refused(|t| t.machine_urgency = 0.6)[0].contains("machine_urgency"));
        assert!(refused(|t| t.stranger_urgency = 0.6)[0].contains("stranger_urgency"));
        assert!(refused(|t| t.info_urgency = 0.8)[0].contains("info_urgency"));
        assert!(refused(|t| t.silent_urgency = 0.6)[0].contains("silent_urgency"));
        assert!(refused(|t| t.silent_trust = 0.9)[0].contains("silent_trust"));
        assert!(refused(|t| t.silent_reversibility = 0.1)[0].contains("silent_reversibility"));
        assert!(refused(|t| t.push_urgency = f64::NAN)[0].contains("push_urgency"));
    }

    #[test]
    fn every_problem_is_told_at_once() {
        let reasons = refused(|t| {
            t.silent_trust = 0.9;
            t.silent_reversibility = 0.1;
        });
        assert_eq!(reasons.len(), 2);
    }
}
