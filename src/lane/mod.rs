//! Features, signals, context, the rule and its trace.
//!
//! Promises: [`rule`] is pure, total and deterministic; a stored trace replays
//! to its lane. Doesn't know: where the numbers come from.

mod context;
mod corroboration;
mod features;
pub mod rule;
mod signal;
pub mod stamp;
mod thresholds;
pub mod trace;
pub mod unstamp;

use serde::{Deserialize, Serialize};

pub use context::{Authentication, Context, Correspondence, History, KnownName};
pub use corroboration::corroboration;
pub use features::{FeatureError, Features};
pub use signal::{SIGNALS, Signal, Signals};
pub use thresholds::Thresholds;

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

    /// The lane of this name, exactly as [`Lane::name`] writes it.
    pub fn from_name(name: &str) -> Option<Lane> {
        LANES.into_iter().find(|l| l.name() == name)
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
