//! From octets to a decision: what a reader would see, the signals in it, the
//! offline scorer's numbers, and the rule's verdict as a trace.
//!
//! Promises: total (no message makes it fail or panic), bounded in time and
//! memory, deterministic. It has no authority: [`crate::lane::rule`] decides.
//! [`model`] alone opens connections; the rest is pure. Doesn't know: the
//! store, the clock, which models are configured.

pub mod answer;
mod auth;
mod body;
pub mod budget;
mod calendar;
pub mod context;
mod doc;
pub mod failure;
mod fields;
mod html;
pub mod model;
mod offline;
mod parts;
pub mod prompt;
mod quote;
mod sent;
mod signals;
mod steering;
mod text;
mod time;
pub mod trained;
mod words;
mod written;

use sha2::{Digest, Sha256};

use crate::lane::rule::{self, Branch, Verdict};
use crate::lane::trace::{Deadline, Read, Scored, TRACE_SCHEMA, Trace};
use crate::lane::{Context, Features, Lane, Signals, Thresholds};
use crate::mail::address::Address;

use body::Reading;
use doc::Doc;
use fields::Fields;
use offline::Case;
use signals::{Asked, Evidence, Facts};
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
    steering::warm();
    trained::warm();
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

/// What is read of one message before anything is scored.
struct Seen<'a> {
    fields: Fields<'a>,
    sender: Option<Sender>,
    reading: Reading,
    doc: Doc,
    facts: Facts,
    signals: Signals,
    asked: Option<Asked>,
    deadline: Option<Deadline>,
    context: Context,
}

impl<'a> Seen<'a> {
    fn new(input: &PerceiveInput<'a>) -> Seen<'a> {
        let octets = head(input);
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
        Seen { fields, sender, reading, doc, facts, signals, asked, deadline, context }
    }

    fn case(&self, now: i64) -> Case<'_> {
        Case {
            doc: &self.doc,
            facts: &self.facts,
            signals: self.signals,
            context: &self.context,
            asked: self.asked.as_ref(),
            deadline_local: self.deadline.as_ref().map_or("", |d| d.local.as_str()),
            now,
            sender: self.sender.as_ref(),
            links: self.reading.links.len(),
            attachments: self.reading.attachments,
            hidden: self.reading.hidden,
        }
    }

    fn readable(&self) -> bool {
        let r = &self.reading;
        let says_something =
            !self.doc.sentences.is_empty() || self.doc.steered || !r.calendars.is_empty() || r.attachments > 0;
        !self.fields.is_empty() && says_something
    }
}

fn head<'a>(input: &PerceiveInput<'a>) -> &'a [u8] {
    &input.octets[..input.octets.len().min(MAX_READ)]
}

/// What the trained part reads in a message, to learn from.
pub fn evidence(input: &PerceiveInput<'_>) -> trained::Evidence {
    trained::Evidence::of(&Seen::new(input).case(input.now))
}

/// Perceives a message and decides its lane.
pub fn perceive(input: &PerceiveInput<'_>, thresholds: &Thresholds, decision_id: String) -> Trace {
    let mut seen = Seen::new(input);
    let scored = if seen.readable() {
        let judged = trained::judge(&seen.case(input.now));
        let (signals, asked) = signals::reconsider(&seen.doc, &seen.facts, seen.signals, seen.asked.take(), &judged);
        seen.signals = signals;
        seen.asked = asked;
        seen.deadline = seen.deadline.filter(|_| seen.asked.is_some());
        let s = offline::score(&seen.case(input.now), &judged);
        Scored::offline(OFFLINE_VERSION, s.features, s.contributions, &s.reason)
    } else {
        Scored::offline(OFFLINE_VERSION, Features::UNSCORABLE, Vec::new(), "could not be read")
    };
    let octets = head(input);
    let read = Read {
        sha256: hex(&Sha256::digest(octets)),
        octets: octets.len() as u64,
        size: input.size,
        hidden: seen.reading.hidden,
        language: seen.doc.lang.map(|l| l.code().to_owned()),
        parts: seen.reading.parts,
    };
    let message_id = seen.fields.first("Message-ID").map(|id| body::cut(id.trim(), MAX_MESSAGE_ID).to_owned());
    let mut trace = Trace {
        schema: TRACE_SCHEMA,
        decision: decision_id,
        time: input.now,
        from: seen.sender.map(|s| s.address.canonical()),
        message_id,
        read,
        reason: scored.reason.clone(),
        scorers: vec![scored],
        chosen: 0,
        signals: seen.signals,
        context: seen.context,
        deadline: seen.deadline,
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
