//! The offline scorer: structure first, then words, by explicit weights.
//!
//! Promises: pure; every number comes with the addends that made it. Its
//! confidence is meant as the probability that the lane is right. Doesn't
//! know: anything that isn't in the evidence.

use super::doc::Doc;
use super::signals::{Asked, Facts, sentence_asks};
use super::words::Class;
use crate::lane::trace::Contribution;
use crate::lane::{Authentication, Context, Features, Signal, Signals};

/// Raised with every change of a weight or of the vocabulary.
pub const OFFLINE_VERSION: &str = "2";

/// What the scorer says.
#[derive(Debug, Clone)]
pub(super) struct Score {
    pub(super) features: Features,
    pub(super) contributions: Vec<Contribution>,
    pub(super) reason: String,
}

/// Urgency of a deadline by the hours that are left: at most, urgency.
const BY_HOURS: &[(f64, f64)] =
    &[(4.0, 0.84), (9.0, 0.78), (13.0, 0.74), (17.0, 0.70), (22.0, 0.55), (30.0, 0.42), (54.0, 0.28), (170.0, 0.15)];
/// Urgency of a deadline later than that.
const FAR: f64 = 0.06;
/// Urgency cannot exceed this where the sender says that nothing hurries.
const CALM_CAP: f64 = 0.30;
/// Factor on what a campaign says of its own urgency.
const CAMPAIGN_DAMP: f64 = 0.15;
/// Factor on the words of a calm record.
const RECORD_DAMP: f64 = 0.4;

/// What is scored.
pub(super) struct Case<'a> {
    pub(super) doc: &'a Doc,
    pub(super) facts: &'a Facts,
    pub(super) signals: Signals,
    pub(super) context: &'a Context,
    pub(super) asked: Option<&'a Asked>,
    pub(super) deadline_local: &'a str,
    pub(super) now: i64,
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
pub(super) fn score(case: &Case<'_>) -> Score {
    let mut sheet = Sheet { lines: Vec::new() };
    let urgency = urgency(case, &mut sheet);
    let trust = trust(case, &mut sheet);
    let reversibility = reversibility(case, &mut sheet);
    let confidence = confidence(case, urgency, &mut sheet);
    let unit = |n: f64| n.clamp(0.0, 1.0);
    // Sums of finite constants are finite, and clamped they are in range.
    let features = Features::new(unit(confidence), unit(trust), unit(reversibility), unit(urgency))
        .unwrap_or(Features::UNSCORABLE);
    Score { features, contributions: sheet.lines, reason: reason(case, urgency) }
}

/// Independent grounds, none of which cancels another: 1 − Π(1 − w).
fn urgency(case: &Case<'_>, sheet: &mut Sheet) -> f64 {
    let grounds = grounds(case);
    let mut calm = 1.0;
    for (seen, weight) in &grounds {
        calm *= 1.0 - weight;
        sheet.note("urgency", seen.clone(), *weight);
    }
    let mut urgency = 1.0 - calm;
    let s = case.signals;
    if s.has(Signal::Campaign) || (case.facts.bulk && case.facts.promo.0 >= 2) {
        urgency *= CAMPAIGN_DAMP;
        sheet.note("urgency", "× campaign", CAMPAIGN_DAMP);
    } else if s.has(Signal::Transactional) && !s.any(&[Signal::Failure, Signal::Deadline]) {
        urgency *= RECORD_DAMP;
        sheet.note("urgency", "× record", RECORD_DAMP);
    }
    let pressing = case.asked.is_some_and(|a| hours_left(a, case.now) <= SAME_DAY);
    if case.doc.mentions(Class::Calm) && !pressing && !case.doc.has(Class::Incident) && urgency > CALM_CAP {
        urgency = CALM_CAP;
        sheet.note("urgency", "at most: nothing hurries", CALM_CAP);
    }
    urgency
}

/// Hours within which a deadline outweighs "no rush".
const SAME_DAY: f64 = 12.0;

/// Hours within which a failure with a deadline needs someone.
const SOON: f64 = 36.0;

fn hours_left(asked: &Asked, now: i64) -> f64 {
    (asked.at - now) as f64 / 3600.0
}

/// What was found for one ground, and its weight without and with an ask.
type Ground = (Class, &'static str, f64, f64);

/// Something is wrong: of these the strongest counts.
const TROUBLES: &[Ground] = &[
    (Class::Incident, "an incident", 0.52, 0.66),
    (Class::Health, "someone is unwell", 0.50, 0.56),
    (Class::Home, "a place or a car fails", 0.46, 0.58),
    (Class::Ops, "a service fails", 0.44, 0.57),
    (Class::Trouble, "trouble", 0.30, 0.40),
];
/// Someone is there, now: of these the strongest counts.
const PRESENCES: &[Ground] =
    &[(Class::Live, "happening now", 0.40, 0.66), (Class::Presence, "someone is there", 0.40, 0.50)];
/// The reader is called: of these the strongest counts.
const CALLS: &[Ground] = &[(Class::Call, "wants a call", 0.40, 0.45), (Class::Reach, "wants to reach you", 0.30, 0.40)];
/// What is at stake.
const STAKES: &[Ground] = &[(Class::Stakes, "hangs on it", 0.36, 0.46)];
/// Weight of a call where a number stands beside it.
const CALL_WITH_NUMBER: f64 = 0.55;
/// Trouble that began at an hour of today.
const BEGUN: f64 = 0.30;
/// Hours ago at most.
const BEGUN_HOURS: f64 = 8.0;
/// Seconds of a day.
const DAY: i64 = 24 * 3600;
/// A telephone number beside another ground.
const NUMBER: f64 = 0.20;
/// "Now" beside another ground.
const NOW: f64 = 0.12;
/// An hour that comes so soon needs no "by".
const IMMINENT_HOURS: f64 = 3.0;
/// The same where something hangs on it.
const STAKES_HOURS: f64 = 6.0;
/// Weight of such an hour, without and with an ask or something at stake.
const IMMINENT: (f64, f64) = (0.60, 0.72);
/// Least factor on these grounds in a text so long that any word stands in it.
const DILUTED: f64 = 0.5;
/// Letters up to which a text isn't long, and from which on it is.
const LONG: (f64, f64) = (300.0, 1200.0);
/// Letters that a syllable or an ideograph stands for.
const EAST: f64 = 2.5;
/// Factor on trouble that is told of as past or is planned.
const TOLD: f64 = 0.4;
/// Factor on people who are there on a day to come.
const PLANNED: f64 = 0.5;
/// A time so far ahead is a plan.
const AHEAD_HOURS: f64 = 20.0;
/// Factor where others are asked.
const COPIED: f64 = 0.6;

fn grounds(case: &Case<'_>) -> Vec<(String, f64)> {
    let mut out = Vec::new();
    let doc = case.doc;
    let first = |class: Class| doc.sentences.iter().find_map(|s| s.words(class)).unwrap_or_default().to_owned();
    if let Some(asked) = case.asked {
        let hours = hours_left(asked, case.now);
        let weight = BY_HOURS.iter().find(|(most, _)| hours <= *most).map_or(FAR, |(_, w)| *w);
        out.push((format!("asked within {hours:.0} h: \"{}\"", asked.words), weight));
    }
    let urgent = doc.sentences.iter().any(|s| s.has_plain(Class::Urgent) && s.subject);
    if urgent {
        out.push((format!("urgent in the subject: \"{}\"", first(Class::Urgent)), 0.62));
    } else if doc.has(Class::Urgent) {
        let with_ask = doc.sentences.iter().any(|s| s.has_plain(Class::Urgent) && sentence_asks(s, case.facts));
        out.push((format!("says urgent: \"{}\"", first(Class::Urgent)), if with_ask { 0.60 } else { 0.42 }));
    }
    if case.facts.automated || case.facts.bulk {
        // A machine's usual words: without an ask they tell, they don't call.
        for (class, seen, weight) in [
            (Class::Live, "happening now", 0.15),
            (Class::Incident, "an incident", 0.35),
            (Class::Trouble, "trouble", 0.20),
            (Class::Call, "wants a call", 0.10),
        ] {
            if doc.has(class) {
                out.push((format!("{seen}: \"{}\"", first(class)), weight));
            }
        }
    } else if !case.facts.list {
        situation(case, &mut out);
    }
    if case.signals.has(Signal::Ask) && !case.facts.bulk {
        out.push(("asks".to_owned(), if case.facts.copied || case.facts.list { 0.06 } else { 0.15 }));
    }
    if case.signals.has(Signal::Failure) {
        let soon = case.asked.is_some_and(|a| hours_left(a, case.now) <= SOON);
        let weight = if soon && case.facts.failure.0 >= 2 { 0.42 } else { 0.18 };
        out.push((format!("a failure: \"{}\"", first(Class::Failure)), weight));
    }
    if case.signals.has(Signal::Code) {
        out.push(("a one-time code".to_owned(), 0.60));
    }
    out
}

/// What a person's mail tells of the hour: none of its parts is enough alone,
/// any two of them nearly are, in whatever words each comes.
fn situation(case: &Case<'_>, out: &mut Vec<(String, f64)>) {
    let doc = case.doc;
    let asks = case.signals.has(Signal::Ask);
    let strongest = |grounds: &[Ground]| {
        let found = grounds.iter().filter(|g| doc.has(g.0));
        found.map(|g| (g.0, g.1, if asks { g.3 } else { g.2 })).max_by(|a, b| a.2.total_cmp(&b.2))
    };
    let reach = if doc.has(Class::Stakes) { STAKES_HOURS } else { IMMINENT_HOURS };
    let imminent = imminent(case, reach);
    let mut factor = dilution(case);
    if case.facts.copied {
        factor *= COPIED;
    }
    let (trouble, presence) = (strongest(TROUBLES), strongest(PRESENCES));
    let (call, stakes) = (strongest(CALLS), strongest(STAKES));
    let soon = imminent.is_some() || case.asked.is_some_and(|a| hours_left(a, case.now) <= AHEAD_HOURS);
    let planned = !soon && is_planned(case);
    let told = planned || doc.has(Class::Past) && presence.is_none() && !soon && begun(case).is_none();
    let any = trouble.is_some() || presence.is_some() || stakes.is_some();
    for (found, is_trouble) in [(trouble, true), (presence, false), (stakes, false), (call, false)] {
        let Some((class, seen, mut weight)) = found else { continue };
        if class == Class::Call && doc.has_number {
            weight = CALL_WITH_NUMBER;
        }
        weight *= factor;
        if told && is_trouble {
            weight *= TOLD;
        } else if planned {
            weight *= PLANNED;
        }
        let words = doc.sentences.iter().find_map(|s| s.words(class)).unwrap_or_default();
        out.push((format!("{seen}: \"{words}\""), weight));
    }
    if let Some(words) = begun(case).filter(|_| trouble.is_some()) {
        out.push((format!("since today: \"{words}\""), BEGUN * factor));
    }
    if any && doc.has_number && call.is_none() && !told {
        out.push(("a number to call".to_owned(), NUMBER * factor));
    }
    if any && doc.has(Class::Now) && !told {
        out.push(("now".to_owned(), NOW * factor));
    }
    let fixes = case.signals.has(Signal::Scheduling) && !any;
    if let Some(words) = imminent.filter(|_| !fixes) {
        let weight = if asks || stakes.is_some() { IMMINENT.1 } else { IMMINENT.0 };
        out.push((format!("soon: \"{words}\""), weight * factor));
    }
}

/// A text of a few lines means each of its words.
fn dilution(case: &Case<'_>) -> f64 {
    let east = case.doc.lang.is_some_and(|l| !l.is_latin());
    let letters = case.doc.length as f64 * if east { EAST } else { 1.0 };
    let over = ((letters - LONG.0) / (LONG.1 - LONG.0)).clamp(0.0, 1.0);
    1.0 - over * (1.0 - DILUTED)
}

/// The words of an hour of today that is just over.
fn begun(case: &Case<'_>) -> Option<String> {
    let since = case.now.saturating_sub((BEGUN_HOURS * 3600.0) as i64);
    let all = case.doc.sentences.iter().flat_map(|s| s.moments.iter().map(move |m| (s, m)));
    let mut found =
        all.filter(|(_, m)| m.over && m.at.saturating_sub(DAY) >= since && m.at.saturating_sub(DAY) <= case.now);
    found.next().map(|(s, m)| s.text.get(m.start..m.end).unwrap_or_default().to_owned())
}

/// A time is named, and it isn't near.
fn is_planned(case: &Case<'_>) -> bool {
    let ahead = case.now.saturating_add((AHEAD_HOURS * 3600.0) as i64);
    case.doc.sentences.iter().flat_map(|s| &s.moments).any(|m| m.at >= ahead && !m.over)
}

/// The words of an hour within the next few that isn't the deadline already.
fn imminent(case: &Case<'_>, hours: f64) -> Option<String> {
    if case.asked.is_some_and(|a| hours_left(a, case.now) <= SAME_DAY) {
        return None;
    }
    let end = case.now.saturating_add((hours * 3600.0) as i64);
    let all = case.doc.sentences.iter();
    let (s, m) = all
        .flat_map(|s| s.moments.iter().map(move |m| (s, m)))
        .find(|(s, m)| m.exact && m.at > case.now && m.at <= end && !s.has(Class::Calm) && !s.has(Class::Promo))?;
    Some(s.text.get(m.start..m.end).unwrap_or_default().to_owned())
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

fn reversibility(case: &Case<'_>, sheet: &mut Sheet) -> f64 {
    let s = case.signals;
    let (seen, base) = if s.has(Signal::Code) {
        ("a code expires", 0.25)
    } else if s.has(Signal::Campaign) && is_marketing(case) {
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
    if case.doc.has(Class::Incident) || case.doc.has(Class::Live) && !case.facts.bulk {
        sheet.note("reversibility", "happening now", -0.15);
        reversibility -= 0.15;
    }
    reversibility
}

fn is_marketing(case: &Case<'_>) -> bool {
    let f = case.facts;
    f.promo.0 >= 2 || f.promo.1 >= 1 || f.newsletter >= 1 || (f.promo.0 >= 1 && case.doc.mentions(Class::Unsubscribe))
}

/// The probability that the lane is right, by the kind of evidence.
fn confidence(case: &Case<'_>, urgency: f64, sheet: &mut Sheet) -> f64 {
    let s = case.signals;
    let (seen, mut confidence) = if s.has(Signal::Invitation) || s.has(Signal::Code) {
        ("told by its structure", 0.96)
    } else if urgency >= 0.70 {
        ("urgent", 0.82 + 0.14 * ((urgency - 0.70) / 0.30))
    } else if s.has(Signal::Campaign) && is_marketing(case) {
        ("marketing", if case.facts.promo.0 >= 3 { 0.96 } else { 0.93 })
    } else if s.has(Signal::Campaign) {
        ("bulk without marketing words", 0.60)
    } else if s.has(Signal::Scheduling) {
        ("fixes a time", 0.90)
    } else if s.has(Signal::Transactional) {
        ("a record", if case.facts.transactional.0 >= 2 { 0.94 } else { 0.90 })
    } else if s.has(Signal::List) {
        ("a discussion list", 0.92)
    } else if s.has(Signal::Failure) {
        ("a failure", 0.86)
    } else if s.has(Signal::Ask) {
        ("asks", 0.90)
    } else {
        ("nothing particular", 0.82)
    };
    sheet.note("confidence", seen, confidence);
    let mut add = |seen: &str, weight: f64| {
        sheet.note("confidence", seen, weight);
        confidence += weight;
    };
    let decided =
        s.any(&[Signal::Invitation, Signal::Code, Signal::Campaign, Signal::Transactional, Signal::Scheduling]);
    if !decided {
        // The more speaks for urgency without carrying it, the less sure is "not urgent".
        match urgency {
            u if (0.60..0.70).contains(&u) => add("close to urgent", -0.30),
            u if (0.40..0.60).contains(&u) => add("on the way to urgent", -0.18),
            _ => {}
        }
    }
    if case.doc.length < FEW_CHARACTERS && !s.any(&[Signal::Invitation, Signal::Code]) && urgency < 0.70 {
        add("few words", -0.08);
    }
    if case.doc.lang.is_none() {
        add("no words", -0.36);
    }
    confidence
}

/// Below this many visible characters there is little to go by.
const FEW_CHARACTERS: usize = 20;

/// Why, in a few English words; text to show.
fn reason(case: &Case<'_>, urgency: f64) -> String {
    let s = case.signals;
    let first = |class: Class| case.doc.sentences.iter().find_map(|x| x.words(class)).unwrap_or_default();
    if s.has(Signal::Invitation) {
        "a calendar request that names you".to_owned()
    } else if s.has(Signal::Code) {
        "a one-time code or sign-in link".to_owned()
    } else if s.has(Signal::Spoofed) {
        "the sender is likely not who the From says".to_owned()
    } else if let Some(asked) = case.asked {
        format!("asks by {} ({})", case.deadline_local.get(..16).unwrap_or_default(), asked.words)
    } else if urgency >= 0.70 && case.doc.has(Class::Incident) {
        format!("something is wrong: {}", first(Class::Incident))
    } else if urgency >= 0.70 && case.doc.has(Class::Live) {
        format!("someone waits now: {}", first(Class::Live))
    } else if urgency >= 0.70 && case.doc.has(Class::Urgent) {
        format!("says it is urgent: {}", first(Class::Urgent))
    } else if urgency >= 0.70 {
        let seen = [Class::Health, Class::Home, Class::Ops, Class::Presence, Class::Stakes, Class::Call, Class::Reach];
        let words = seen.into_iter().map(first).find(|w| !w.is_empty()).unwrap_or_default();
        format!("a person is needed now: {words}")
    } else if s.has(Signal::Campaign) {
        "bulk mail".to_owned() + if is_marketing(case) { ", marketing words" } else { "" }
    } else if s.has(Signal::Scheduling) {
        format!("about a time to meet: {}", first(Class::Scheduling))
    } else if s.has(Signal::Failure) {
        format!("reports a failure: {}", first(Class::Failure))
    } else if s.has(Signal::Transactional) {
        format!("a record: {}", first(Class::Transactional))
    } else if s.has(Signal::List) {
        "a discussion list".to_owned()
    } else if s.has(Signal::Ask) {
        "asks something, without a time".to_owned()
    } else {
        "nothing asked, no time named".to_owned()
    }
}
