//! From octets to a decision: what a reader would see, the signals in it, the
//! offline scorer's numbers, and the rule's verdict as a trace.
//!
//! Promises: total (no message makes it fail or panic), bounded in time and
//! memory, deterministic. It has no authority: [`crate::lane::rule`] decides.
//! Doesn't know: the store, the clock, models.

pub mod context;

use crate::lane::trace::{Read, Scored, TRACE_SCHEMA, Trace};
use crate::lane::{Context, Features, Signals, Thresholds, rule};
use crate::mail::address::Address;

pub use context::CorrespondentRecord;

/// Octets of a message that are read at most, from its start.
pub const MAX_READ: usize = 512 * 1024;
/// Octets of decoded text that are read at most.
pub const MAX_TEXT: usize = 256 * 1024;

/// What perception needs to know of the account.
#[derive(Debug, Clone)]
pub struct AccountFacts {
    /// Every address of the person, the account's own first.
    pub addresses: Vec<Address>,
    /// IANA name of the time zone that deadlines are read in.
    pub timezone: String,
    /// The authserv-ids whose Authentication-Results are believed (RFC 8601).
    pub authserv: Vec<String>,
}

/// One message to perceive.
#[derive(Debug, Clone)]
pub struct PerceiveInput<'a> {
    /// The message's first octets; more than [`MAX_READ`] are not read.
    pub octets: &'a [u8],
    /// The message's whole size.
    pub size: u64,
    /// The account that received it.
    pub account: &'a AccountFacts,
    /// Now, Unix seconds.
    pub now: i64,
    /// INTERNALDATE, Unix seconds.
    pub internaldate: i64,
    /// What is known of the sender; authentication is read from the message.
    pub context: Context,
}

/// Who a message says it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// The address of the first From mailbox.
    pub address: Address,
    /// Its display name, decoded; may be empty.
    pub display: String,
}

/// The sender of a message, to look up before perceiving.
pub fn sender(octets: &[u8]) -> Option<Sender> {
    let octets = &octets[..octets.len().min(MAX_READ)];
    let message = mail_parser::MessageParser::new().parse_headers(octets)?;
    let first = message.from()?.first()?;
    let address = Address::parse(first.address()?.trim()).ok()?;
    Some(Sender { address, display: first.name().unwrap_or_default().trim().to_owned() })
}

/// Perceives a message and decides its lane.
pub fn perceive(input: &PerceiveInput<'_>, thresholds: &Thresholds, decision_id: String) -> Trace {
    let features = Features::UNSCORABLE;
    let reason = "could not be read";
    let signals = Signals::NONE;
    let context = input.context.clone();
    let verdict = rule::decide(&rule::Inputs { features, offline: features, signals, context: &context }, thresholds);
    Trace {
        schema: TRACE_SCHEMA,
        decision: decision_id,
        time: input.now,
        from: sender(input.octets).map(|s| s.address.canonical()),
        message_id: None,
        read: Read { size: input.size, ..Read::default() },
        scorers: vec![Scored::offline("0", features, Vec::new(), reason)],
        chosen: 0,
        signals,
        context,
        deadline: None,
        rule_version: rule::RULE_VERSION,
        thresholds: thresholds.clone(),
        verdict,
        reason: reason.to_owned(),
    }
}
