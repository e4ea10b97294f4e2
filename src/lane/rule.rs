//! The rule: features, signals and context to one lane.
//!
//! Promises: pure, total and deterministic; the first row that matches wins;
//! mail that asks, has a deadline or comes from a known correspondent is never
//! silent by the rule, and mail that could not be scored is in neither silent
//! nor info. Only a person's own correction or pin stands before it. Doesn't
//! know: words, senders, models.

use serde::{Deserialize, Serialize};

use super::{Context, Features, Lane, Signal, Signals, Thresholds};

/// Raised with every change of the table, the guards or the canary.
pub const RULE_VERSION: u32 = 2;

/// A scorer this sure against missing corroboration is a disagreement.
pub const CANARY_CONFIDENCE: f64 = 0.85;
/// Least reversibility of what could be answered without a person.
const ELIGIBLE_REVERSIBILITY: f64 = 0.85;
/// Urgency from which on a person should see it anyway.
const ELIGIBLE_URGENCY: f64 = 0.50;
/// Least trust, by the context alone, of what could be answered without a person.
const ELIGIBLE_TRUST: f64 = 0.50;

/// Everything that the rule reads.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// What the chosen scorer said.
    pub features: Features,
    /// What the offline scorer said; the same where it was chosen.
    pub offline: Features,
    /// The message's signals.
    pub signals: Signals,
    /// What is known from outside the message.
    pub context: &'a Context,
}

/// The row of the table that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Branch {
    /// The person dragged this message.
    Correction,
    /// The person pinned this sender.
    Pin,
    /// Row 1: a calendar request.
    Invitation,
    /// Row 2: a one-time code.
    Code,
    /// Row 3: the scorer isn't sure.
    Unsure,
    /// Row 4: a person is needed within hours.
    Urgent,
    /// Row 5: fixing or moving a time.
    Scheduling,
    /// Row 6: clear bulk marketing.
    Campaign,
    /// Row 7: a calm record.
    Record,
    /// Row 8: everything else.
    Otherwise,
}

impl Branch {
    /// The code in traces and stamps.
    pub fn name(self) -> &'static str {
        match self {
            Branch::Correction => "correction",
            Branch::Pin => "pin",
            Branch::Invitation => "invitation",
            Branch::Code => "code",
            Branch::Unsure => "unsure",
            Branch::Urgent => "urgent",
            Branch::Scheduling => "scheduling",
            Branch::Campaign => "campaign",
            Branch::Record => "record",
            Branch::Otherwise => "otherwise",
        }
    }
}

/// Something that kept a message out of a lane that its features or signals asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// A pin of an address whose authentication failed is not inherited.
    PinUnauthenticated,
    /// Spam gets no louder lane.
    Spam,
    /// A sender who is likely someone else gets no louder lane.
    Spoofed,
    /// Meetings of a sender who was looked for and never seen.
    MeetingStranger,
    /// A campaign gets no louder lane.
    Campaign,
    /// A code of a sender whose authentication failed.
    CodeUnauthenticated,
    /// A machine's urgency without an ask by a time or much urgency, or without
    /// authentication, or of a sender who was looked for and never seen.
    PushAutomated,
    /// A sender who was looked for and never seen needs more urgency.
    PushStranger,
    /// Asks, so it is not hidden.
    Asks,
    /// Has a deadline, so it is not hidden.
    HasDeadline,
    /// Carries a code, so it is not silent.
    HasCode,
    /// From a known correspondent, so it is not silent.
    KnownCorrespondent,
    /// The offline scorer's urgency, the larger one, kept it visible.
    OfflineUrgency,
    /// Reports a failure, so it is no calm record.
    Fails,
}

impl Guard {
    /// The code in traces.
    pub fn name(self) -> &'static str {
        match self {
            Guard::PinUnauthenticated => "pin_unauthenticated",
            Guard::Spam => "spam",
            Guard::Spoofed => "spoofed",
            Guard::MeetingStranger => "meeting_stranger",
            Guard::Campaign => "campaign",
            Guard::CodeUnauthenticated => "code_unauthenticated",
            Guard::PushAutomated => "push_automated",
            Guard::PushStranger => "push_stranger",
            Guard::Asks => "asks",
            Guard::HasDeadline => "has_deadline",
            Guard::HasCode => "has_code",
            Guard::KnownCorrespondent => "known_correspondent",
            Guard::OfflineUrgency => "offline_urgency",
            Guard::Fails => "fails",
        }
    }

    /// Whether it took a louder lane away; the others kept mail visible.
    pub fn demotes(self) -> bool {
        match self {
            Guard::PinUnauthenticated
            | Guard::Spam
            | Guard::Spoofed
            | Guard::MeetingStranger
            | Guard::Campaign
            | Guard::CodeUnauthenticated
            | Guard::PushAutomated
            | Guard::PushStranger => true,
            Guard::Asks
            | Guard::HasDeadline
            | Guard::HasCode
            | Guard::KnownCorrespondent
            | Guard::OfflineUrgency
            | Guard::Fails => false,
        }
    }
}

/// A disagreement between a sure scorer and what is known. It never votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Canary {
    /// Sure about a sender for whom nothing was found.
    Uncorroborated,
    /// Sure, and a guard took the lane away.
    Demoted,
}

impl Canary {
    /// The code in traces and stamps.
    pub fn name(self) -> &'static str {
        match self {
            Canary::Uncorroborated => "uncorroborated",
            Canary::Demoted => "demoted",
        }
    }
}

/// Which act of the person stood before the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Override {
    /// This message was dragged.
    Correction,
    /// This sender was pinned.
    Pin,
}

/// What the rule decided, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The lane.
    pub lane: Lane,
    /// The row that matched.
    pub branch: Branch,
    /// What kept the message out of other lanes, in order of evaluation.
    pub guards: Vec<Guard>,
    /// A disagreement to review.
    pub canary: Option<Canary>,
    /// Information only; permits nothing.
    pub auto_eligible: bool,
    /// The person's act that stood before the rule.
    pub overridden: Option<Override>,
}

/// Decides the lane.
pub fn decide(inputs: &Inputs<'_>, thresholds: &Thresholds) -> Verdict {
    let mut table = Table { x: inputs, t: thresholds, guards: Vec::new() };
    let (lane, branch, overridden) = match table.person() {
        Some((lane, branch, act)) => (lane, branch, Some(act)),
        None => {
            let (lane, branch) = table.rows();
            (lane, branch, None)
        }
    };
    let guards = table.guards;
    Verdict {
        lane,
        branch,
        canary: canary(inputs, &guards),
        auto_eligible: auto_eligible(inputs, lane),
        guards,
        overridden,
    }
}

/// After the decision, confidence reads the gate.
fn canary(x: &Inputs<'_>, guards: &[Guard]) -> Option<Canary> {
    if x.features.confidence() < CANARY_CONFIDENCE {
        None
    } else if guards.iter().any(|g| g.demotes()) {
        Some(Canary::Demoted)
    } else if x.context.is_absent() {
        Some(Canary::Uncorroborated)
    } else {
        None
    }
}

/// Confidence takes no part: how sure a scorer is of itself permits nothing.
fn auto_eligible(x: &Inputs<'_>, lane: Lane) -> bool {
    x.features.reversibility().min(x.offline.reversibility()) >= ELIGIBLE_REVERSIBILITY
        && x.features.urgency().max(x.offline.urgency()) < ELIGIBLE_URGENCY
        && x.context.own_trust() >= ELIGIBLE_TRUST
        && matches!(lane, Lane::Queue | Lane::Meeting)
}

struct Table<'a> {
    x: &'a Inputs<'a>,
    t: &'a Thresholds,
    guards: Vec<Guard>,
}

impl Table<'_> {
    fn has(&self, signal: Signal) -> bool {
        self.x.signals.has(signal)
    }

    fn fires(&mut self, guard: Guard, when: bool) -> bool {
        if when && !self.guards.contains(&guard) {
            self.guards.push(guard);
        }
        when
    }

    /// The person's own acts. A correction is of this very message, which the
    /// person saw; a pin is inherited through the From, which must hold.
    fn person(&mut self) -> Option<(Lane, Branch, Override)> {
        if let Some(lane) = self.x.context.correction {
            return Some((lane, Branch::Correction, Override::Correction));
        }
        let lane = self.x.context.pinned?;
        let forged = self.x.context.authentication.is_bad();
        (!self.fires(Guard::PinUnauthenticated, forged)).then_some((lane, Branch::Pin, Override::Pin))
    }

    /// The table of the design, top to bottom.
    fn rows(&mut self) -> (Lane, Branch) {
        if self.has(Signal::Invitation) && self.meeting_guards_hold() {
            return (Lane::Meeting, Branch::Invitation);
        }
        if self.has(Signal::Code) && self.code_guards_hold() {
            return (Lane::Push, Branch::Code);
        }
        // A confidence of zero is "could not be scored", whatever the threshold.
        let confidence = self.x.features.confidence();
        if confidence < self.t.confidence_min || confidence <= 0.0 {
            return (Lane::Queue, Branch::Unsure);
        }
        let urgent = self.x.features.urgency() >= self.t.push_urgency && confidence >= self.t.push_confidence;
        if urgent && self.push_guards_hold() {
            return (Lane::Push, Branch::Urgent);
        }
        let campaign = self.has(Signal::Campaign);
        if self.has(Signal::Scheduling) && !self.fires(Guard::Campaign, campaign) && self.meeting_guards_hold() {
            return (Lane::Meeting, Branch::Scheduling);
        }
        if self.would_silence() && self.silence_guards_hold() {
            return (Lane::Silent, Branch::Campaign);
        }
        if self.would_record() && self.record_guards_hold() {
            return (Lane::Info, Branch::Record);
        }
        (Lane::Queue, Branch::Otherwise)
    }

    fn spam_or_spoofed(&mut self) -> bool {
        let spam = self.fires(Guard::Spam, self.has(Signal::Spam));
        let spoofed = self.fires(Guard::Spoofed, self.has(Signal::Spoofed));
        spam || spoofed
    }

    fn meeting_guards_hold(&mut self) -> bool {
        let bad = self.spam_or_spoofed();
        let stranger = self.fires(Guard::MeetingStranger, self.x.context.is_absent());
        !bad && !stranger
    }

    fn code_guards_hold(&mut self) -> bool {
        let bad = self.spam_or_spoofed();
        let failed = self.fires(Guard::CodeUnauthenticated, self.x.context.authentication.is_bad());
        !bad && !failed
    }

    fn push_guards_hold(&mut self) -> bool {
        let bad = self.spam_or_spoofed();
        let campaign = self.fires(Guard::Campaign, self.has(Signal::Campaign));
        let machine = self.has(Signal::Automated) && !self.machine_may_push();
        let machine = self.fires(Guard::PushAutomated, machine);
        let stranger = self.x.context.is_absent() && self.x.features.urgency() < self.t.stranger_urgency;
        let stranger = self.fires(Guard::PushStranger, stranger);
        !(bad || campaign || machine || stranger)
    }

    /// A pin counts only as the person's word for this sender: forged, it is no pin.
    fn machine_may_push(&self) -> bool {
        let fair = !self.x.context.authentication.is_bad();
        let by_a_time = self.has(Signal::Ask) && self.has(Signal::Deadline);
        let alarms = self.x.features.urgency() >= self.t.machine_urgency;
        fair && (self.x.context.pinned.is_some() || ((by_a_time || alarms) && !self.x.context.is_absent()))
    }

    /// Row 6 by the chosen scorer's own numbers.
    fn would_silence(&self) -> bool {
        self.has(Signal::Campaign)
            && self.x.context.bound_trust(self.x.features.sender_trust()) < self.t.silent_trust
            && self.x.features.urgency() < self.t.silent_urgency
            && self.x.features.reversibility() > self.t.silent_reversibility
    }

    fn silence_guards_hold(&mut self) -> bool {
        let asks = self.fires(Guard::Asks, self.has(Signal::Ask));
        let deadline = self.fires(Guard::HasDeadline, self.has(Signal::Deadline));
        let code = self.fires(Guard::HasCode, self.has(Signal::Code));
        // Known stays known when the From may be forged: shown costs little, hidden may not.
        let known = self.fires(Guard::KnownCorrespondent, self.x.context.is_known());
        let offline = self.x.offline.urgency() >= self.t.silent_urgency;
        let offline = self.fires(Guard::OfflineUrgency, offline);
        !(asks || deadline || code || known || offline)
    }

    /// Row 7 by the chosen scorer's own numbers.
    fn would_record(&self) -> bool {
        self.has(Signal::Transactional) && self.x.features.urgency() < self.t.info_urgency
    }

    fn record_guards_hold(&mut self) -> bool {
        let asks = self.fires(Guard::Asks, self.has(Signal::Ask));
        let deadline = self.fires(Guard::HasDeadline, self.has(Signal::Deadline));
        let fails = self.fires(Guard::Fails, self.has(Signal::Failure));
        let offline = self.x.offline.urgency() >= self.t.info_urgency;
        let offline = self.fires(Guard::OfflineUrgency, offline);
        // A forged receipt in the calm lane would be believed; in queue it is looked at.
        let bad = self.spam_or_spoofed() || self.x.context.authentication.is_bad();
        !(asks || deadline || fails || offline || bad)
    }
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
