//! The signals of a message, each by its own small function.
//!
//! Promises: what a signal rests on is in the message's own words or its
//! structure, never in quoted history. Doesn't know: lanes, scores.

use super::body::{Reading, Report};
use super::doc::{Doc, Sentence};
use super::fields::Fields;
use super::offline::EVEN;
use super::text::is_word;
use super::time::Moment;
use super::trained::Judged;
use super::words::Class;
use super::{AccountFacts, Sender, auth};
use crate::lane::{Authentication, Context, Lane, Signal, Signals};

/// Facts of the structure that several signals and the scorer read.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// List-Unsubscribe or another mark of bulk mail.
    pub(super) bulk: bool,
    /// A discussion list.
    pub(super) list: bool,
    /// Written by a machine.
    pub(super) automated: bool,
    /// Answers something.
    pub(super) reply: bool,
    /// The account is only among the copied.
    pub(super) copied: bool,
    /// Marketing phrases, and how many stand in the subject.
    pub(super) promo: (usize, usize),
    /// Phrases of regular publications.
    pub(super) newsletter: usize,
    /// Phrases of records.
    pub(super) transactional: (usize, usize),
    /// Phrases of failures.
    pub(super) failure: (usize, usize),
    /// A record by its structure.
    pub(super) recorded: bool,
    /// A delivery report.
    pub(super) reported: bool,
}

/// A deadline that was found, by sentence and moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) at: i64,
    pub(super) words: String,
    pub(super) exact: bool,
}

/// What the signals are read from.
pub(super) struct Evidence<'a> {
    pub(super) fields: &'a Fields<'a>,
    pub(super) reading: &'a Reading,
    pub(super) doc: &'a Doc,
    pub(super) sender: Option<&'a Sender>,
    pub(super) account: &'a AccountFacts,
    pub(super) context: &'a Context,
    pub(super) now: i64,
}

/// The structure's facts.
pub(super) fn facts(x: &Evidence<'_>) -> Facts {
    let doc = x.doc;
    let mut f = Facts {
        list: is_list(x.fields),
        automated: is_automated(x),
        reply: x.fields.has("In-Reply-To") || x.fields.has("References") || super::doc::is_reply(&x.reading.subject),
        copied: is_copied(x),
        promo: doc.count(Class::Promo),
        newsletter: doc.count(Class::Newsletter).0,
        transactional: doc.count(Class::Transactional),
        failure: failures(doc),
        reported: x.reading.report == Some(Report::Delivery),
        ..Facts::default()
    };
    f.bulk = is_bulk(x, &f);
    f.recorded = is_recorded(x, &f);
    if f.bulk && f.promo.0 == 0 && doc.sentences.iter().any(|s| names_an_offer(&s.text)) {
        f.promo.0 = 1;
    }
    f
}

/// Every signal, and the deadline where there is one.
pub(super) fn signals(x: &Evidence<'_>, f: &Facts) -> (Signals, Option<Asked>) {
    let mut s = Signals::NONE;
    // A code is short-lived by nature; entering it isn't asked by anyone.
    let code = is_code(x);
    let asked = if code { None } else { deadline(x, f) };
    s.set(Signal::Invitation, x.reading.calendars.iter().any(|c| c.invites(&x.account.addresses)));
    s.set(Signal::Code, code);
    s.set(Signal::Failure, is_failure(x, f));
    s.set(Signal::Transactional, !s.has(Signal::Code) && is_transactional(x, f));
    s.set(Signal::List, f.list);
    s.set(Signal::Automated, f.automated);
    let excused = s.any(&[Signal::List, Signal::Code, Signal::Transactional, Signal::Invitation]);
    s.set(Signal::Campaign, f.bulk && !excused);
    s.set(Signal::Scheduling, is_scheduling(x, f));
    s.set(Signal::Deadline, asked.is_some());
    s.set(Signal::Ask, asked.is_some() || (!code && asks(x.doc, f)));
    s.set(Signal::Spam, is_spam(x.fields));
    let own: Vec<&str> =
        x.account.addresses.iter().map(|a| a.domain.as_str()).filter(|d| !auth::is_free_mail(d)).collect();
    s.set(Signal::Spoofed, auth::spoofed(x.sender, x.fields.senders_disagree(), x.context, &own).is_some());
    (s, asked)
}

/// Odds from which on words of asking in a record are its formulas. In marketing
/// they stand: what asks is never silent.
const FORMULAS_AT: f64 = 0.80;
/// Odds from which on mail without any bulk mark is a campaign by its words.
const CAMPAIGN_AT: f64 = 0.88;

/// The signals of wording once the whole text was judged: phrases propose
/// them, the text as a whole decides. Those of structure stay as they are.
pub(super) fn reconsider(
    doc: &Doc,
    f: &Facts,
    signals: Signals,
    asked: Option<Asked>,
    judged: &Judged,
) -> (Signals, Option<Asked>) {
    let mut s = signals;
    let of = |lane| judged.of(lane);
    s.set(Signal::Scheduling, of(Lane::Meeting) >= EVEN);
    s.set(Signal::Transactional, f.recorded || (!s.has(Signal::Code) && of(Lane::Info) >= EVEN));
    let excused = s.any(&[Signal::List, Signal::Code, Signal::Transactional, Signal::Invitation]);
    s.set(Signal::Campaign, !excused && (f.bulk || of(Lane::Silent) >= CAMPAIGN_AT));
    let formulas = of(Lane::Info) >= FORMULAS_AT;
    if formulas {
        s.set(Signal::Ask, false);
        s.set(Signal::Deadline, false);
        s.set(Signal::Failure, signals.has(Signal::Failure) && f.reported);
    }
    // What was left out may have asked: such mail is in no hiding lane.
    s.set(Signal::Ask, s.has(Signal::Ask) || doc.steered);
    (s, asked.filter(|_| !formulas))
}

/// "30 %" or "ab 299 Euro": in bulk mail an offer.
fn names_an_offer(text: &str) -> bool {
    let number_before = |mark: &str| {
        text.match_indices(mark).any(|(at, _)| text[..at].trim_end().ends_with(|c: char| c.is_ascii_digit()))
    };
    let number_after = |mark: &str| {
        text.match_indices(mark)
            .any(|(at, m)| text[at + m.len()..].trim_start().starts_with(|c: char| c.is_ascii_digit()))
    };
    ["%", "€", "eur", "usd", "원", "円", "元"].iter().any(|m| number_before(m))
        || ["$", "£", "¥", "€"].iter().any(|m| number_after(m))
}

fn is_list(fields: &Fields<'_>) -> bool {
    // RFC 2369 §3.4: "NO" means that posting isn't allowed.
    let post = fields.first("List-Post").is_some_and(|v| !v.trim().eq_ignore_ascii_case("no"));
    let discussion = fields.has("List-Id")
        && !fields.has("List-Unsubscribe-Post")
        && (fields.has("Mailing-List") || fields.first("Precedence").is_some_and(|p| p.eq_ignore_ascii_case("list")));
    post || discussion
}

/// Local parts that no person answers from.
const MACHINES: &[&str] = &[
    "noreply",
    "no-reply",
    "no_reply",
    "donotreply",
    "do-not-reply",
    "do_not_reply",
    "mailer-daemon",
    "postmaster",
    "nicht-antworten",
    "nepasrepondre",
    "ne-pas-repondre",
    "noresponder",
    "no-responder",
    "notification",
    "notifications",
    "notify",
    "notice",
    "alerts",
    "alert",
    "bounce",
    "bounces",
    "daemon",
    "robot",
    "bot",
    "automailer",
    "auto-confirm",
    "cron",
    "jenkins",
    "ci",
    "build",
    "monitoring",
    "nagios",
    "system",
];

fn is_automated(x: &Evidence<'_>) -> bool {
    // RFC 3834 §5.
    let submitted = x.fields.first("Auto-Submitted").is_some_and(|v| !v.trim().to_ascii_lowercase().starts_with("no"));
    let machine = x.sender.is_some_and(|s| {
        let local = s.address.local.to_ascii_lowercase();
        let first = local.split(['+', '=', '.']).next().unwrap_or(&local).to_owned();
        MACHINES.contains(&local.as_str())
            || MACHINES.contains(&first.as_str())
            || local.contains("noreply")
            || local.contains("no-reply")
    });
    let null_path = x.fields.first("Return-Path").is_some_and(|v| v.trim() == "<>");
    let says = x.doc.mentions(Class::Machine);
    submitted
        || machine
        || null_path
        || says
        || x.reading.report.is_some()
        || x.fields.has("X-Auto-Response-Suppress")
        || x.fields.has("Feedback-ID")
}

/// Fields that programs for campaigns add.
const CAMPAIGN_FIELDS: &[&str] = &[
    "X-Campaign",
    "X-CampaignID",
    "X-Campaign-Id",
    "X-MC-User",
    "X-Mailer-RecptId",
    "X-Mailgun-Tag",
    "X-CSA-Complaints",
    "X-EMarSys-Identify",
    "X-SFMC-Stack",
    "X-Klaviyo-Id",
];

fn is_bulk(x: &Evidence<'_>, f: &Facts) -> bool {
    // "Re:" in a subject is any sender's to write; what it answers is not.
    let answers = x.fields.has("In-Reply-To") || x.fields.has("References");
    if answers && f.promo.0 == 0 {
        return false;
    }
    let precedence = x.fields.first("Precedence").map(|p| p.trim().to_ascii_lowercase()).unwrap_or_default();
    let answering =
        x.fields.first("Auto-Submitted").is_some_and(|v| v.trim().to_ascii_lowercase().starts_with("auto-replied"));
    let marked = x.fields.has("List-Unsubscribe") || ((precedence == "bulk" || precedence == "junk") && !answering);
    let program = CAMPAIGN_FIELDS.iter().any(|n| x.fields.has(n));
    let subject = x.reading.subject.to_lowercase();
    let labelled = ["(광고)", "[광고]", "【pr】", "[pr]", "(ad)", "<광고>"].iter().any(|m| subject.contains(m));
    let footer = x.doc.mentions(Class::Unsubscribe) && (f.promo.0 >= 1 || f.newsletter >= 1);
    marked || program || labelled || footer
}

fn is_copied(x: &Evidence<'_>) -> bool {
    let mine = |name| {
        x.fields
            .mailboxes(name)
            .iter()
            .any(|m| x.account.addresses.iter().any(|a| a.canonical() == m.address.canonical()))
    };
    !mine("To") && mine("Cc")
}

/// Words before a failure that deny it.
const NONE_OF: &[&str] =
    &["0 ", "no ", "without ", "keine ", "ohne ", "sin ", "sans ", "aucun ", "aucune ", "if ", "not ", "nicht "];

fn failures(doc: &Doc) -> (usize, usize) {
    let mut found = (0, 0);
    for s in &doc.sentences {
        let real = s.plain(Class::Failure).filter(|h| !NONE_OF.iter().any(|n| s.text[..h.start].ends_with(n))).count();
        found.0 += real;
        found.1 += usize::from(real > 0 && s.subject);
    }
    found
}

fn is_failure(x: &Evidence<'_>, f: &Facts) -> bool {
    if x.reading.report == Some(Report::Delivery) {
        return true;
    }
    let marketing = f.bulk && f.promo.0 >= 2;
    !marketing && (f.failure.1 > 0 || f.failure.0 >= if f.automated { 1 } else { 2 })
}

/// A record by its structure: an absence note, a read receipt, a calendar's reply.
fn is_recorded(x: &Evidence<'_>, f: &Facts) -> bool {
    let replied =
        x.fields.first("Auto-Submitted").is_some_and(|v| v.trim().to_ascii_lowercase().starts_with("auto-replied"));
    let calendar = x.reading.calendars.iter().any(|c| c.records()) && !(f.bulk && f.promo.0 > 0);
    x.reading.report == Some(Report::Disposition) || replied || calendar
}

fn is_transactional(x: &Evidence<'_>, f: &Facts) -> bool {
    if f.recorded {
        return true;
    }
    let promotional = f.promo.0 + 2 * f.promo.1;
    let (phrases, in_subject) = f.transactional;
    let marketing = f.bulk && promotional > phrases + 2 * in_subject;
    let enough = if f.automated || f.bulk {
        phrases >= 2 || in_subject > 0 || (phrases == 1 && f.promo.0 == 0)
    } else {
        in_subject > 0 || phrases >= 2
    };
    // What a machine sends without asking, failing or selling is a record
    // where any word says so.
    let trouble = [Class::Incident, Class::Trouble, Class::Ops, Class::Home, Class::Health];
    let calm = f.failure.0 == 0 && promotional == 0 && f.newsletter == 0 && !trouble.iter().any(|c| x.doc.has(*c));
    let plain = f.automated && !f.bulk && calm && x.doc.has(Class::Record);
    let enough = enough || plain;
    // A person's answer that mentions an order is a conversation.
    let conversation = f.reply && !f.automated && in_subject == 0 && phrases < 3;
    enough && !(marketing || f.list || conversation)
}

fn is_code(x: &Evidence<'_>) -> bool {
    let all = &x.doc.sentences;
    let code = all.iter().enumerate().any(|(n, s)| {
        s.has(Class::Code)
            && !s.has(Class::Promo)
            && all[n..(n + 4).min(all.len())]
                .iter()
                .chain(all.iter().filter(|s| s.subject))
                .any(|s| has_code_token(&s.text))
    });
    code || is_typed_code(x)
        || (x.context.authentication == Authentication::Authenticated && x.doc.has(Class::Reset) && links_home(x))
}

/// "Enter 482 913 to sign in": a machine's number to type, and what for.
fn is_typed_code(x: &Evidence<'_>) -> bool {
    let all = &x.doc.sentences;
    let machine = is_automated(x) && !x.doc.has(Class::Promo);
    machine
        && all.iter().enumerate().any(|(n, s)| {
            let near = || x.doc.around(n).iter().chain(all.iter().filter(|s| s.subject));
            s.has(Class::Enter) && near().any(|s| s.has(Class::SignIn)) && near().any(|s| has_code_token(&s.text))
        })
}

/// A token such as `482913`, `482 913`, `G-482913` or `7KX-2M9`.
fn has_code_token(text: &str) -> bool {
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == ':' || c == '+' || c == '.' || c == '/'))
        .collect();
    let digits = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_digit());
    words.iter().enumerate().any(|(n, w)| {
        let w = w.trim_matches(['.', ':', '-']);
        let bare: String = w.chars().filter(|c| *c != '-').collect();
        let number = digits(&bare)
            && (4..=8).contains(&bare.len())
            && !is_year(&bare)
            && !(w.contains('-') && w.starts_with("20"));
        let mixed = (5..=9).contains(&bare.len())
            && bare.bytes().any(|b| b.is_ascii_digit())
            && bare.bytes().any(|b| b.is_ascii_alphabetic())
            && bare.bytes().all(|b| b.is_ascii_alphanumeric())
            && bare.bytes().filter(u8::is_ascii_digit).count() >= 2;
        let split = digits(w)
            && w.len() == 3
            && words.get(n + 1).is_some_and(|v| digits(v.trim_matches('.')) && v.trim_matches('.').len() == 3);
        let pair = |v: &str| digits(v) && v.len() == 2;
        let pairs = pair(w)
            && words.get(n + 1).is_some_and(|v| pair(v))
            && words.get(n + 2).is_some_and(|v| pair(v.trim_matches('.')));
        number || mixed || split || pairs
    })
}

fn is_year(digits: &str) -> bool {
    digits.len() == 4 && digits.starts_with("20")
}

/// A link to the sender's own domain.
fn links_home(x: &Evidence<'_>) -> bool {
    let Some(sender) = x.sender else { return false };
    let in_text = x.reading.own.split_whitespace().filter(|w| w.starts_with("https://"));
    x.reading
        .links
        .iter()
        .map(String::as_str)
        .chain(in_text)
        .filter_map(host)
        .any(|h| auth::aligned(&h, &sender.address.domain))
}

fn host(link: &str) -> Option<String> {
    let rest = link.trim_start_matches(['<', '(']).strip_prefix("https://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.split(':').next()?;
    Some(host.to_ascii_lowercase())
}

fn is_scheduling(x: &Evidence<'_>, f: &Facts) -> bool {
    let all = &x.doc.sentences;
    if f.promo.0 >= 3 && (f.bulk || f.automated) {
        return false;
    }
    if !f.bulk && !f.automated && !f.list && proposes(x, f) {
        return true;
    }
    let timed = all.iter().any(|s| !s.moments.is_empty());
    all.iter().enumerate().any(|(n, s)| {
        let fixes = s.has_plain(Class::Scheduling) && !s.has(Class::Promo) && !s.has(Class::Failure);
        let open = || x.doc.around(n).iter().any(|s| s.asks_by_mark() || s.has_plain(Class::Request));
        fixes && (timed || open())
    })
}

/// A time to come, a word of meeting beside it, and a question about both.
fn proposes(x: &Evidence<'_>, f: &Facts) -> bool {
    let all = &x.doc.sentences;
    all.iter().enumerate().any(|(n, s)| {
        let around = x.doc.around(n);
        let time = s.moments.iter().any(|m| !m.by && m.at > x.now) && !s.has(Class::Due) && !s.has(Class::ThisMonth);
        time && around.iter().any(|s| s.has_plain(Class::Suit))
            && around.iter().any(|s| sentence_asks(s, f) || s.asks_by_mark())
    })
}

fn is_spam(fields: &Fields<'_>) -> bool {
    let yes = |name: &str| fields.first(name).is_some_and(|v| v.trim().to_ascii_lowercase().starts_with("yes"));
    let level =
        |name: &str| fields.first(name).and_then(|v| v.trim().parse::<i32>().ok()).is_some_and(|n| n >= SPAM_LEVEL);
    yes("X-Spam-Flag") || yes("X-Spam-Status") || yes("X-Spam") || level("X-MS-Exchange-Organization-SCL")
}

/// Spam confidence level from which on Exchange files mail as junk.
const SPAM_LEVEL: i32 = 5;

/// Whether a sentence asks the reader for something.
pub(super) fn sentence_asks(s: &Sentence, f: &Facts) -> bool {
    if s.has(Class::Unsubscribe) || (s.has(Class::Calm) && !s.has(Class::Urgent)) {
        return false;
    }
    let formula = s.has(Class::Formula);
    let request = s.has_plain(Class::Request);
    if f.bulk || f.automated {
        // A machine's questions and courtesies ask nothing.
        return request && !formula && !s.has(Class::Promo);
    }
    let request = request || (!formula && commands(&s.text));
    let question = s.asks_by_mark() && (!formula || request) && !(s.subject && s.has(Class::Promo));
    request || question
}

/// Verbs that a person starts a request with, folded as texts are.
const COMMANDS: &[&str] = &[
    "send",
    "upload",
    "bring",
    "release",
    "come",
    "tell",
    "give",
    "sign",
    "forward",
    "join",
    "reply",
    "answer",
    "ring",
    "text",
    "open",
    "let",
    "fix",
    "restart",
    "review",
    "approve",
    "decide",
    "grab",
    "check",
    "say",
    "hand",
    "pick",
    "schick",
    "schicken",
    "gib",
    "geben",
    "komm",
    "kommen",
    "bring",
    "ruf",
    "rufen",
    "melde",
    "sag",
    "hilf",
    "unterschreib",
    "prufe",
    "leite",
    "envoie",
    "envoyez",
    "dis",
    "dites",
    "donne",
    "donnez",
    "viens",
    "venez",
    "signe",
    "signez",
    "reponds",
    "repondez",
    "passe",
    "passez",
    "ouvre",
    "ouvrez",
    "envia",
    "enviame",
    "envie",
    "envielo",
    "manda",
    "mandame",
    "ven",
    "venga",
    "firma",
    "firme",
    "dame",
    "deme",
    "abre",
    "abra",
    "presentalo",
    "mira",
    "revisa",
    "revise",
];

fn commands(text: &str) -> bool {
    let first = text.split(|c: char| !is_word(c)).find(|w| !w.is_empty()).unwrap_or_default();
    COMMANDS.contains(&first)
}

fn asks(doc: &Doc, f: &Facts) -> bool {
    let asking = doc.sentences.iter().filter(|s| sentence_asks(s, f)).count();
    if f.bulk && f.promo.0 + f.newsletter >= 2 {
        return false;
    }
    if f.transactional.0 >= 2 && f.automated && f.failure.0 == 0 {
        // Receipts are full of "please"; one of several asks may be meant.
        return asking >= 3;
    }
    asking > 0
}

/// The earliest time, not yet past, by which something is asked.
fn deadline(x: &Evidence<'_>, f: &Facts) -> Option<Asked> {
    if f.bulk && f.promo.0 + f.newsletter >= 2 {
        return None;
    }
    let all = &x.doc.sentences;
    let mut found: Vec<Asked> = Vec::new();
    for (n, s) in all.iter().enumerate() {
        if s.has(Class::Promo) && (f.bulk || f.automated) || s.has(Class::Unsubscribe) || s.has(Class::Code) {
            continue;
        }
        for m in s.moments.iter().filter(|m| m.at > x.now) {
            if is_deadline(x.doc, n, s, m, f) {
                let words = s.text.get(m.start..m.end).unwrap_or_default().to_owned();
                found.push(Asked { at: m.at, words, exact: m.exact });
            }
        }
    }
    if found.is_empty() {
        found.extend(by_then(x, f));
    }
    found.into_iter().min_by_key(|a| a.at)
}

/// "The call starts at 11:30. Can you fix it before then?"
fn by_then(x: &Evidence<'_>, f: &Facts) -> Option<Asked> {
    let all = &x.doc.sentences;
    let n = all.iter().position(|s| s.has(Class::Then) && sentence_asks(s, f))?;
    let named = all[..=n].iter().rev().take(3).flat_map(|s| s.moments.iter().map(move |m| (s, m)));
    let (s, m) = named.filter(|(_, m)| m.at > x.now).min_by_key(|(_, m)| m.at)?;
    Some(Asked { at: m.at, words: s.text.get(m.start..m.end).unwrap_or_default().to_owned(), exact: m.exact })
}

fn is_deadline(doc: &Doc, n: usize, s: &Sentence, m: &Moment, f: &Facts) -> bool {
    let asks_here = sentence_asks(s, f);
    let asks_near = || doc.around(n).iter().any(|s| sentence_asks(s, f));
    let due = s.has_plain(Class::Due);
    let fixes = doc.around(n).iter().any(|s| s.has_plain(Class::Scheduling)) || s.has_plain(Class::Suit);
    let calm = s.has(Class::Calm);
    let record = f.automated && f.transactional.0 > 0 && f.failure.0 == 0;
    if calm {
        // "No rush, any time before Friday" names an end and takes it back.
        return false;
    }
    if m.by && s.has_plain(Class::Suit) && !due && fixes {
        // "Tuesday, or Thursday before noon, works for me."
        return false;
    }
    if m.by && !record {
        return asks_here || due || asks_near();
    }
    if record {
        return m.by && asks_here && due;
    }
    // "Can you send it this afternoon?" has its end without saying "by".
    (asks_here && !fixes && m.exact) || (due && (asks_here || asks_near()))
}

#[cfg(test)]
#[path = "signals_tests.rs"]
mod tests;
