//! Features, signals, context, the rule and its trace.
//!
//! Promises: [`rule`] is pure, total and deterministic; a stored trace replays
//! to its lane. Doesn't know: where the numbers come from.

use serde::{Deserialize, Serialize};

/// One of the five lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// A person is needed within hours.
    Push,
    /// Scheduling.
    Meeting,
    /// Read when you choose; the default.
    Queue,
    /// Calm record.
    Info,
    /// Clear bulk marketing.
    Silent,
}

/// Every lane, loudest first.
pub const LANES: [Lane; 5] = [Lane::Push, Lane::Meeting, Lane::Queue, Lane::Info, Lane::Silent];

impl Lane {
    /// The name in stamps, traces and configuration.
    pub fn name(self) -> &'static str {
        match self {
            Lane::Push => "push",
            Lane::Meeting => "meeting",
            Lane::Queue => "queue",
            Lane::Info => "info",
            Lane::Silent => "silent",
        }
    }

    /// The keyword that tells lanes apart where they share a mailbox.
    pub fn keyword(self) -> Option<&'static str> {
        match self {
            Lane::Push => Some("$TollgatePush"),
            Lane::Meeting => Some("$TollgateMeeting"),
            Lane::Queue => Some("$TollgateQueue"),
            Lane::Info | Lane::Silent => None,
        }
    }
}

/// Which mailbox shows which lane; every preset also has `Lanes/All`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanePreset {
    /// push, meeting, queue in INBOX; `Lanes/Info`, `Lanes/Silent` apart.
    Calm,
    /// As calm, and `Lanes/Queue` apart too.
    Focus,
    /// Each lane in its own: `Lanes/Push`, `Lanes/Meeting`, …; INBOX shows what no lane took.
    Folders,
    /// Nothing moves: all in INBOX, stamps only.
    Shadow,
}

/// Thresholds of the rule, named as in `gateway.toml` under `[rule]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// Below this confidence: queue (0.50).
    pub confidence_min: f64,
    /// Push from this urgency on (0.70).
    pub push_urgency: f64,
    /// Push from this confidence on (0.70).
    pub push_confidence: f64,
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
