//! The record of one decision: what was read, what was said, what followed.
//!
//! Promises: [`Trace::replay`] computes the lane again from the record alone;
//! [`Trace::explain`] says it to a person. Doesn't know: the message's text
//! (only what was quoted from it for the reason and the deadline).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::rule::{self, Inputs, Verdict};
use super::{Authentication, Context, Features, History, Signals, Thresholds};

/// The format of stored traces.
pub const TRACE_SCHEMA: u32 = 1;

/// One decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// [`TRACE_SCHEMA`] at the time of writing.
    pub schema: u32,
    /// The decision's id.
    pub decision: String,
    /// When it was decided, Unix seconds.
    pub time: i64,
    /// The sender's canonical address, where the message has one.
    pub from: Option<String>,
    /// The Message-ID, where the message has one.
    pub message_id: Option<String>,
    /// What was read.
    pub read: Read,
    /// What each scorer said, in the order of asking.
    pub scorers: Vec<Scored>,
    /// Index of the chosen scorer in `scorers`.
    pub chosen: usize,
    /// The message's signals.
    pub signals: Signals,
    /// What is known from outside the message.
    pub context: Context,
    /// The earliest deadline, where one is asked.
    pub deadline: Option<Deadline>,
    /// [`rule::RULE_VERSION`] at the time of deciding.
    pub rule_version: u32,
    /// The thresholds that decided.
    pub thresholds: Thresholds,
    /// The decision.
    pub verdict: Verdict,
    /// Why, in a few words; text to show, never parsed.
    pub reason: String,
}

/// What was read of the message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// SHA-256 of the octets that were read, in hex.
    pub sha256: String,
    /// How many octets were read.
    pub octets: u64,
    /// The message's whole size.
    pub size: u64,
    /// The parts that text was taken from: IMAP section number, type, octets of text.
    pub parts: Vec<PartRead>,
    /// Characters of HTML text that a reader would not see and that were dropped.
    pub hidden: u64,
    /// The language that the text seems to be in, as an ISO 639-1 code.
    pub language: Option<String>,
}

/// A part that text was taken from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRead {
    /// Number of the part in mail order, from 0.
    pub part: u32,
    /// Its media type.
    pub media_type: String,
    /// Octets of decoded text that were read.
    pub octets: u64,
}

/// What one scorer said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// `offline`, or the name of the model's entry in the configuration.
    pub scorer: String,
    /// Version of the offline scorer, or the model's id.
    pub version: String,
    /// Its numbers; none where it failed.
    pub features: Option<Features>,
    /// What the numbers are made of, where the scorer can say.
    pub contributions: Vec<Contribution>,
    /// Its reason, cleaned for showing.
    pub reason: String,
    /// SHA-256 of the prompt, in hex, of a model.
    pub prompt_sha256: Option<String>,
    /// Why it gave no numbers.
    pub error: Option<String>,
    /// How long it took, in microseconds, where it was measured.
    pub took_us: Option<u64>,
    /// What it cost, in millionths of the budget's currency.
    pub cost_micros: Option<u64>,
    /// Tokens that a model was asked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens that a model answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// The offline scorer's name in traces and stamps.
pub const OFFLINE: &str = "offline";

impl Scored {
    /// What the offline scorer said.
    pub fn offline(version: &str, features: Features, contributions: Vec<Contribution>, reason: &str) -> Scored {
        Scored {
            scorer: OFFLINE.to_owned(),
            version: version.to_owned(),
            features: Some(features),
            contributions,
            reason: reason.to_owned(),
            prompt_sha256: None,
            error: None,
            took_us: None,
            cost_micros: None,
            input_tokens: None,
            output_tokens: None,
        }
    }

    /// A model that gave no numbers, at least not yet.
    pub fn failed(scorer: &str, model: &str, error: String) -> Scored {
        Scored {
            scorer: scorer.to_owned(),
            version: model.to_owned(),
            features: None,
            contributions: Vec::new(),
            reason: String::new(),
            prompt_sha256: None,
            error: Some(error),
            took_us: None,
            cost_micros: None,
            input_tokens: None,
            output_tokens: None,
        }
    }
}

/// One addend of an explicit score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// The feature that it belongs to: `urgency`, `trust`, `reversibility`, `confidence`.
    pub feature: String,
    /// What was seen.
    pub seen: String,
    /// What it added (or multiplied, as `seen` says).
    pub weight: f64,
}

/// A time by which something is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// Unix seconds.
    pub at: i64,
    /// The same in the account's time zone, RFC 3339.
    pub local: String,
    /// The words that say so.
    pub words: String,
}

impl Trace {
    /// The numbers that decided.
    pub fn features(&self) -> Features {
        self.scorers.get(self.chosen).and_then(|s| s.features).unwrap_or(Features::UNSCORABLE)
    }

    /// The offline scorer's numbers, else the ones that decided.
    pub fn offline(&self) -> Features {
        self.scorers.iter().find(|s| s.scorer == OFFLINE).and_then(|s| s.features).unwrap_or(self.features())
    }

    /// Decides again, from the record alone.
    pub fn replay(&self, thresholds: &Thresholds) -> Verdict {
        let inputs = Inputs {
            features: self.features(),
            offline: self.offline(),
            signals: self.signals,
            context: &self.context,
        };
        rule::decide(&inputs, thresholds)
    }

    /// Takes in what models said, in the order of asking, and decides again.
    /// `chosen` is the one of them that counts; without one, or where that one
    /// gave no numbers, what was chosen before stays.
    pub fn choose(&mut self, models: Vec<Scored>, chosen: Option<usize>) {
        let before = self.scorers.len();
        self.scorers.extend(models);
        let counts = chosen.map(|n| before + n).filter(|n| self.scorers.get(*n).is_some_and(|s| s.features.is_some()));
        if let Some(n) = counts {
            self.chosen = n;
            self.reason = self.scorers[n].reason.clone();
        }
        self.verdict = self.replay(&self.thresholds.clone());
    }

    /// The decision in words for a person, several lines.
    pub fn explain(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let v = &self.verdict;
        let f = self.features();
        writeln!(out, "Lane:       {} (row: {}, rule {})", v.lane.name(), v.branch.name(), self.rule_version)?;
        writeln!(out, "Reason:     {}", self.reason)?;
        writeln!(out, "Decision:   {}", self.decision)?;
        if let Some(from) = &self.from {
            writeln!(out, "From:       {from}")?;
        }
        if let Some(id) = &self.message_id {
            writeln!(out, "Message-ID: {id}")?;
        }
        let scorer = self.scorers.get(self.chosen).map_or("none", |s| s.scorer.as_str());
        writeln!(
            out,
            "Scores:     confidence {:.2}, sender trust {:.2}, reversibility {:.2}, urgency {:.2} (by {scorer})",
            f.confidence(),
            f.sender_trust(),
            f.reversibility(),
            f.urgency()
        )?;
        let names = self.signals.names();
        writeln!(out, "Signals:    {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") })?;
        if let Some(d) = &self.deadline {
            writeln!(out, "Deadline:   {} (\"{}\")", d.local, d.words)?;
        }
        writeln!(out, "Known:      {}", self.known())?;
        for g in &v.guards {
            let what = if g.demotes() { "kept it from a louder lane" } else { "kept it visible" };
            writeln!(out, "Guard:      {} ({what})", g.name())?;
        }
        if let Some(c) = v.canary {
            writeln!(out, "Canary:     {} (a sure scorer against what is known; for review)", c.name())?;
        }
        writeln!(
            out,
            "Read:       {} of {} octets, sha256 {}, {} part(s) of text, {} hidden characters dropped",
            self.read.octets,
            self.read.size,
            self.read.sha256,
            self.read.parts.len(),
            self.read.hidden
        )?;
        for s in &self.scorers {
            if let Some(error) = &s.error {
                writeln!(out, "Scorer:     {} {} gave no numbers: {error}", s.scorer, s.version)?;
            } else if let (Some(prompt), Some(f)) = (&s.prompt_sha256, &s.features) {
                writeln!(
                    out,
                    "Scorer:     {} {} said confidence {:.2}, sender trust {:.2}, reversibility {:.2}, urgency {:.2}",
                    s.scorer,
                    s.version,
                    f.confidence(),
                    f.sender_trust(),
                    f.reversibility(),
                    f.urgency()
                )?;
                writeln!(
                    out,
                    "            prompt {prompt}, {} and {} tokens, cost {:.6}, {} ms",
                    s.input_tokens.unwrap_or(0),
                    s.output_tokens.unwrap_or(0),
                    s.cost_micros.unwrap_or(0) as f64 / 1e6,
                    s.took_us.unwrap_or(0) / 1000
                )?;
            }
            for c in &s.contributions {
                writeln!(out, "  {:<14} {:+.2}  {}", c.feature, c.weight, c.seen)?;
            }
        }
        Ok(())
    }

    fn known(&self) -> String {
        let history = match &self.context.history {
            History::Unavailable => "history not looked up".to_owned(),
            History::Absent => "never seen before".to_owned(),
            History::Present(c) => {
                format!("written to {}×, answered {}×, received {}×", c.sent_to, c.replied, c.received)
            }
        };
        let authentication = match self.context.authentication {
            Authentication::Unavailable => "authentication not available",
            Authentication::Authenticated => "authenticated",
            Authentication::NotAligned => "authentication not aligned with the From",
            Authentication::Failed => "authentication failed",
        };
        let pin = self.context.pinned.map_or(String::new(), |l| format!(", pinned to {}", l.name()));
        format!("{history}, {authentication}{pin}")
    }
}
