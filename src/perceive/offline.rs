//! The offline scorer's four numbers: urgency and confidence from the trained
//! part's odds, trust and reversibility from structure and context.
//!
//! Promises: pure; every number comes with the addends that made it. Its
//! confidence is meant as the probability that the lane is right. Doesn't
//! know: anything that isn't in the evidence.

use super::Sender;
use super::doc::Doc;
use super::signals::{Asked, Facts};
use super::trained::Judged;
use crate::lane::trace::Contribution;
use crate::lane::{Authentication, Context, Features, Lane, Signal, Signals};

/// Raised with every change of a weight, of the vocabulary or of what counts.
pub const OFFLINE_VERSION: &str = "5";

/// What the scorer says.
#[derive(Debug, Clone)]
pub(super) struct Score {
    pub(super) features: Features,
    pub(super) contributions: Vec<Contribution>,
    pub(super) reason: String,
}

/// Urgency by the odds of push: the rule's thresholds (0.20 no longer silent,
/// 0.50 no longer info, 0.70 push) stand where mail that its weights had not
/// seen says that they should.
const CURVE: [(f64, f64); 4] = [(0.0, 0.0), (0.15, 0.50), (0.50, URGENT), (1.0, 1.0)];
/// The urgency of the push row, as the rule has it by default.
const URGENT: f64 = 0.70;
/// The odds from which on a campaign is marketing and nothing else.
const MARKETING_AT: f64 = 0.88;

/// What is scored.
pub(super) struct Case<'a> {
    pub(super) doc: &'a Doc,
    pub(super) facts: &'a Facts,
    pub(super) signals: Signals,
    pub(super) context: &'a Context,
    pub(super) asked: Option<&'a Asked>,
    pub(super) deadline_local: &'a str,
    pub(super) now: i64,
    pub(super) sender: Option<&'a Sender>,
    /// Targets of links.
    pub(super) links: usize,
    /// Parts that are offered as files.
    pub(super) attachments: usize,
    /// Characters that a reader wouldn't see.
    pub(super) hidden: u64,
}

struct Sheet {
    lines: Vec<Contribution>,
}

impl Sheet {
    fn note(&mut self, feature: &str, seen: impl Into<String>, weight: f64) {
        self.lines.push(Contribution { feature: feature.to_owned(), seen: seen.into(), weight: round(weight) });
    }
}

fn round(n: f64) -> f64 {
    (n * 1000.0).round() / 1000.0
}

/// Scores a message that could be read.
pub(super) fn score(case: &Case<'_>, judged: &Judged) -> Score {
    let mut sheet = Sheet { lines: Vec::new() };
    let urgency = urgency(case, judged, &mut sheet);
    let trust = trust(case, &mut sheet);
    let reversibility = reversibility(case, judged, &mut sheet);
    let confidence = confidence(case, judged, &mut sheet);
    let unit = |n: f64| n.clamp(0.0, 1.0);
    // Sums of finite constants are finite, and clamped they are in range.
    let features = Features::new(unit(confidence), unit(trust), unit(reversibility), unit(urgency))
        .unwrap_or(Features::UNSCORABLE);
    Score { features, contributions: sheet.lines, reason: reason(case, judged, urgency) }
}

/// The odds of push, stretched so that the rule's threshold stands where they
/// are even.
fn urgency(case: &Case<'_>, judged: &Judged, sheet: &mut Sheet) -> f64 {
    let odds = judged.of(Lane::Push);
    sheet.note("urgency", "odds that a person is needed within hours", odds);
    for (seen, weight) in &judged.pieces {
        sheet.note(judged.best.name(), seen.clone(), *weight);
    }
    if case.signals.has(Signal::Code) {
        return URGENT;
    }
    let above = CURVE.windows(2).find(|pair| odds <= pair[1].0);
    above.map_or(1.0, |pair| {
        let [(from, low), (to, high)] = [pair[0], pair[1]];
        low + (high - low) * (odds - from) / (to - from)
    })
}

fn trust(case: &Case<'_>, sheet: &mut Sheet) -> f64 {
    let s = case.signals;
    let (seen, base) = if s.any(&[Signal::Spam, Signal::Spoofed]) {
        ("spam or spoofed", 0.03)
    } else if s.has(Signal::Campaign) {
        ("campaign", 0.12)
    } else if case.facts.bulk {
        ("bulk", 0.25)
    } else if s.has(Signal::Automated) {
        ("a machine", 0.35)
    } else {
        ("a person", 0.45)
    };
    sheet.note("trust", seen, base);
    let mut trust = base;
    let mut add = |seen: &str, weight: f64| {
        sheet.note("trust", seen, weight);
        trust += weight;
    };
    if case.context.authentication == Authentication::Authenticated {
        add("authenticated", if case.facts.bulk { 0.04 } else { 0.15 });
    }
    if case.facts.reply && !case.facts.bulk {
        add("answers something", 0.05);
    }
    let (least, most) = case.context.trust_bounds();
    if trust < least || trust > most {
        sheet.note("trust", "bounded by what is known", trust.clamp(least, most) - trust);
    }
    trust.clamp(least, most)
}

fn reversibility(case: &Case<'_>, judged: &Judged, sheet: &mut Sheet) -> f64 {
    let s = case.signals;
    let (seen, base) = if s.has(Signal::Code) {
        ("a code expires", 0.25)
    } else if s.has(Signal::Campaign) && judged.of(Lane::Silent) >= MARKETING_AT {
        ("marketing", 0.96)
    } else if s.has(Signal::Campaign) {
        ("bulk without marketing words", 0.86)
    } else if s.has(Signal::Invitation) {
        ("an invitation", 0.50)
    } else if s.has(Signal::Transactional) {
        ("a record", 0.88)
    } else if case.facts.list {
        ("a list keeps its archive", 0.90)
    } else {
        ("a message", 0.80)
    };
    sheet.note("reversibility", seen, base);
    let mut reversibility = base;
    for (signal, weight) in [(Signal::Ask, -0.15), (Signal::Deadline, -0.25), (Signal::Failure, -0.12)] {
        if s.has(signal) {
            sheet.note("reversibility", signal.name(), weight);
            reversibility += weight;
        }
    }
    let needed = judged.of(Lane::Push);
    if needed >= EVEN {
        sheet.note("reversibility", "a person is needed", -0.15);
        reversibility -= 0.15;
    }
    reversibility
}

/// More likely than all other lanes together.
pub(super) const EVEN: f64 = 0.50;
/// What structure alone tells.
const STRUCTURE: f64 = 0.96;
/// Without any words there is little to go by.
const WORDLESS: f64 = 0.46;

/// The odds of the lane that this scorer means; they were measured on mail
/// that its weights had not seen.
fn confidence(case: &Case<'_>, judged: &Judged, sheet: &mut Sheet) -> f64 {
    let s = case.signals;
    let (seen, confidence) = if s.has(Signal::Invitation) || s.has(Signal::Code) {
        ("told by its structure", STRUCTURE)
    } else if case.doc.lang.is_none() || case.doc.sentences.is_empty() {
        ("no words", WORDLESS)
    } else {
        ("odds of the likeliest lane", judged.of(judged.best))
    };
    sheet.note("confidence", seen, confidence);
    confidence
}

/// Why, in a few English words; text to show.
fn reason(case: &Case<'_>, judged: &Judged, urgency: f64) -> String {
    let s = case.signals;
    if s.has(Signal::Invitation) {
        return "a calendar request that names you".to_owned();
    } else if s.has(Signal::Code) {
        return "a one-time code or sign-in link".to_owned();
    } else if s.has(Signal::Spoofed) {
        return "the sender is likely not who the From says".to_owned();
    }
    let told = judged.pieces.iter().filter(|(seen, weight)| *weight > 0.0 && seen.starts_with('"'));
    let words: Vec<&str> = told.map(|(seen, _)| seen.as_str()).take(TOLD).collect();
    let with = |what: &str| if words.is_empty() { what.to_owned() } else { format!("{what}: {}", words.join(", ")) };
    match (judged.best, case.asked) {
        (Lane::Push, Some(asked)) if urgency >= URGENT => {
            let local = case.deadline_local.get(..16).unwrap_or_default();
            format!("asks by {local} ({})", asked.words)
        }
        (Lane::Push, _) if urgency >= URGENT => with("a person is needed"),
        (Lane::Push, _) => with("a person may be needed"),
        (Lane::Meeting, _) => with("about a time to meet"),
        (Lane::Info, _) => with("a record"),
        (Lane::Silent, _) => with("marketing"),
        (Lane::Queue, Some(asked)) => {
            let local = case.deadline_local.get(..16).unwrap_or_default();
            format!("asks by {local} ({})", asked.words)
        }
        (Lane::Queue, None) if s.has(Signal::List) => "a discussion list".to_owned(),
        (Lane::Queue, None) if s.has(Signal::Failure) => "reports a failure".to_owned(),
        (Lane::Queue, None) if s.has(Signal::Ask) => "asks something, without a time".to_owned(),
        (Lane::Queue, None) => "nothing asked, no time named".to_owned(),
    }
}

/// Words that a reason names.
const TOLD: usize = 3;
