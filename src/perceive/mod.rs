//! From octets to a decision: what a reader would see, the signals in it, the
//! offline scorer's numbers, and the rule's verdict as a trace.
//!
//! Promises: total (no message makes it fail or panic), bounded in time and
//! memory, deterministic. It has no authority: [`crate::lane::rule`] decides.
//! Doesn't know: the store, the clock, models.

mod auth;
mod body;
mod calendar;
pub mod context;
mod doc;
mod fields;
mod html;
mod offline;
mod parts;
mod quote;
mod sent;
mod signals;
mod text;
mod time;
mod words;
mod written;

use sha2::{Digest, Sha256};

use crate::lane::rule::{self, Branch, Verdict};
use crate::lane::trace::{Deadline, Read, Scored, TRACE_SCHEMA, Trace};
use crate::lane::{Context, Features, Lane, Thresholds};
use crate::mail::address::Address;

use doc::Doc;
use fields::Fields;
use offline::Case;
use signals::Evidence;
use time::Clock;

pub(crate) use auth::skeleton;
pub use context::{CorrespondentRecord, KnownNames, SentBefore};
pub use offline::OFFLINE_VERSION;
pub use sent::{SentHeader, sent_header};
pub use written::{Written, written};

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

/// Builds what perception looks words up in, which takes some tens of
/// milliseconds: called once at start, the first message needn't wait for it.
pub fn warm() {
    words::warm();
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
    Fields::new(&octets[..octets.len().min(MAX_READ)]).sender()
}

/// A Date later than the arrival by more than this is not believed.
const MAX_AHEAD: i64 = 24 * 3600;
/// A Date earlier than the arrival by more than this is not believed.
const MAX_BEHIND: i64 = 14 * 24 * 3600;

/// Perceives a message and decides its lane.
pub fn perceive(input: &PerceiveInput<'_>, thresholds: &Thresholds, decision_id: String) -> Trace {
    let octets = &input.octets[..input.octets.len().min(MAX_READ)];
    let fields = Fields::new(octets);
    let sender = fields.sender();
    let reading = body::read(octets, &fields);
    let zone = time::zone(&input.account.timezone);
    let doc = Doc::new(&reading, &Clock::new(dated(&fields, input), zone.clone()));
    let context = complete(input, &fields, sender.as_ref());
    let evidence = Evidence {
        fields: &fields,
        reading: &reading,
        doc: &doc,
        sender: sender.as_ref(),
        account: input.account,
        context: &context,
        now: input.now,
    };
    let facts = signals::facts(&evidence);
    let (signals, asked) = signals::signals(&evidence, &facts);
    let deadline =
        asked.as_ref().map(|a| Deadline { at: a.at, local: time::local(a.at, &zone), words: a.words.clone() });
    let says_something = !doc.sentences.is_empty() || !reading.calendars.is_empty() || reading.attachments > 0;
    let readable = !fields.is_empty() && says_something;
    let scored = if readable {
        let case = Case {
            doc: &doc,
            facts: &facts,
            signals,
            context: &context,
            asked: asked.as_ref(),
            deadline_local: deadline.as_ref().map_or("", |d| d.local.as_str()),
            now: input.now,
        };
        let s = offline::score(&case);
        Scored::offline(OFFLINE_VERSION, s.features, s.contributions, &s.reason)
    } else {
        Scored::offline(OFFLINE_VERSION, Features::UNSCORABLE, Vec::new(), "could not be read")
    };
    let read = Read {
        sha256: hex(&Sha256::digest(octets)),
        octets: octets.len() as u64,
        size: input.size,
        hidden: reading.hidden,
        language: doc.lang.map(|l| l.code().to_owned()),
        parts: reading.parts,
    };
    let mut trace = Trace {
        schema: TRACE_SCHEMA,
        decision: decision_id,
        time: input.now,
        from: sender.map(|s| s.address.canonical()),
        message_id: fields.first("Message-ID").map(|id| body::cut(id.trim(), MAX_MESSAGE_ID).to_owned()),
        read,
        reason: scored.reason.clone(),
        scorers: vec![scored],
        chosen: 0,
        signals,
        context,
        deadline,
        rule_version: rule::RULE_VERSION,
        thresholds: thresholds.clone(),
        verdict: UNDECIDED,
    };
    trace.verdict = trace.replay(thresholds);
    trace
}

/// Longest Message-ID that a trace keeps.
const MAX_MESSAGE_ID: usize = 998;

/// Stands until the rule has read the trace, whose replay is the decision.
const UNDECIDED: Verdict = Verdict {
    lane: Lane::Queue,
    branch: Branch::Unsure,
    guards: Vec::new(),
    canary: None,
    auto_eligible: false,
    overridden: None,
};

/// When the words were written: the Date where it fits the arrival, else the arrival.
fn dated(fields: &Fields<'_>, input: &PerceiveInput<'_>) -> i64 {
    let arrived = if input.internaldate > 0 { input.internaldate } else { input.now };
    match fields.date() {
        Some(date) if date <= arrived.saturating_add(MAX_AHEAD) && date >= arrived.saturating_sub(MAX_BEHIND) => date,
        _ => arrived,
    }
}

/// The caller's context, with what the message itself is asked for.
fn complete(input: &PerceiveInput<'_>, fields: &Fields<'_>, sender: Option<&Sender>) -> Context {
    let mut context = input.context.clone();
    context.authentication = auth::authentication(fields, &input.account.authserv, sender);
    if let Some(sender) = sender {
        let domain = sender.address.domain.as_str();
        context.organisation |=
            !auth::is_free_mail(domain) && input.account.addresses.iter().any(|a| a.domain == domain);
        // A trace keeps only the names that bear on it.
        context.known_names.retain(|k| auth::same_name(&k.name, &sender.display));
    } else {
        context.known_names.clear();
    }
    context
}

fn hex(octets: &[u8]) -> String {
    let mut out = String::with_capacity(octets.len() * 2);
    for o in octets {
        out.push(char::from_digit(u32::from(o >> 4), 16).unwrap_or('0'));
        out.push(char::from_digit(u32::from(o & 15), 16).unwrap_or('0'));
    }
    out
}

#[cfg(test)]
#[path = "hostile_tests.rs"]
mod hostile_tests;
#[cfg(test)]
#[path = "perceive_tests.rs"]
mod tests;
