//! SEARCH and UID SEARCH over a view (RFC 9051 §6.4.4).
//!
//! Promises: each leaf of the query is evaluated by who knows the answer
//! (flags, UIDs, sizes and arrival dates here, sizes after stamping; header
//! and text by the provider, and over the stamps here), and the results are
//! combined here. Doesn't know: how the provider matches text.

use std::collections::{BTreeSet, HashMap};

use imap_codec::CommandCodec;
use imap_codec::encode::{Encoder, Fragment};
use imap_codec::imap_types::command::{Command, CommandBody};
use imap_codec::imap_types::core::{Charset, Tag, Vec1};
use imap_codec::imap_types::datetime::NaiveDate;
use imap_codec::imap_types::search::SearchKey;

use crate::upstream::imap::{Part, UntaggedData};

use super::mirror::Mirror;
use super::ops::has_flag;
use super::perceiving::month;
use super::session::{Fail, Session, Viewing};
use super::uid::{SeqNum, UpstreamUid, ViewUid};
use super::view::Source;

/// Deepest nesting of a query.
const MAX_DEPTH: usize = 24;
/// Most leaves that are asked of the provider in one query.
const MAX_LEAVES: usize = 64;

/// What is known of one message while a query is evaluated.
struct Candidate {
    seq: SeqNum,
    uid: ViewUid,
    source: Source,
    flags: Vec<String>,
    size: u64,
    date: String,
    stamp: String,
    /// Octets of a local message, in lower case.
    local: Option<String>,
}

/// Answers of the provider by the encoded leaf.
type Answers = HashMap<String, BTreeSet<UpstreamUid>>;

impl Session {
    /// SEARCH.
    pub(super) async fn search(
        &mut self,
        charset: Option<&Charset<'_>>,
        criteria: &Vec1<SearchKey<'_>>,
        uid: bool,
    ) -> Result<String, Fail> {
        if let Some(c) = charset {
            let name = c.as_ref();
            if !name.eq_ignore_ascii_case("UTF-8") && !name.eq_ignore_ascii_case("US-ASCII") {
                return Err(Fail::No("BADCHARSET (UTF-8 US-ASCII)", "this charset is not known".into()));
            }
        }
        let mirror = self.mirror()?;
        let viewing = self.viewing()?;
        let candidates = candidates(&mirror, viewing);
        let mut leaves: Vec<SearchKey<'_>> = Vec::new();
        for key in criteria.as_ref() {
            collect(key, &mut leaves, 0)?;
        }
        let answers = ask(&mirror, leaves).await?;
        let known = Known { exists: viewing.known.exists(), last: viewing.known.uids().last().map_or(0, |u| u.get()) };
        let mut hits = Vec::new();
        for c in &candidates {
            let mut all = true;
            for key in criteria.as_ref() {
                all = all && holds(key, c, &answers, &known);
            }
            if all {
                hits.push(if uid { c.uid.get() } else { c.seq.get() });
            }
        }
        let numbers: String = hits.iter().map(|n| format!(" {n}")).collect();
        self.line(&format!("* SEARCH{numbers}")).await?;
        // RFC 9051 §7.5.1: UID SEARCH may tell expunges, SEARCH may not.
        self.tell(uid).await?;
        Ok("done".into())
    }
}

struct Known {
    exists: u32,
    last: u32,
}

fn candidates(mirror: &Mirror, viewing: &Viewing) -> Vec<Candidate> {
    let state = mirror.state();
    let Some(view) = state.view(viewing.id) else { return Vec::new() };
    let one = |uid: &ViewUid| {
        let entry = view.get(*uid)?;
        let (stamp, local) = match entry.source {
            Source::Upstream(_) => (state.stamp(entry).unwrap_or_default().to_owned(), None),
            Source::Local(n) => (String::new(), Some(state.locals.get(&n)?.row.octets.to_lowercase())),
        };
        Some(Candidate {
            seq: viewing.known.seq(*uid)?,
            uid: *uid,
            source: entry.source,
            flags: viewing.flags(&state, *uid, entry),
            size: state.shown_size(entry)?,
            date: state.date(entry.source)?,
            stamp,
            local,
        })
    };
    viewing.known.uids().iter().filter_map(one).collect()
}

/// Whether only the provider can answer a leaf.
fn is_remote(key: &SearchKey<'_>) -> bool {
    matches!(
        key,
        SearchKey::Bcc(_)
            | SearchKey::Body(_)
            | SearchKey::Cc(_)
            | SearchKey::From(_)
            | SearchKey::Header(..)
            | SearchKey::SentBefore(_)
            | SearchKey::SentOn(_)
            | SearchKey::SentSince(_)
            | SearchKey::Subject(_)
            | SearchKey::Text(_)
            | SearchKey::To(_)
    )
}

fn collect<'a>(key: &SearchKey<'a>, leaves: &mut Vec<SearchKey<'a>>, depth: usize) -> Result<(), Fail> {
    if depth > MAX_DEPTH {
        return Err(Fail::No("LIMIT", "the query is nested too deeply".into()));
    }
    match key {
        SearchKey::And(keys) => keys.as_ref().iter().try_for_each(|k| collect(k, leaves, depth + 1)),
        SearchKey::Not(k) => collect(k, leaves, depth + 1),
        SearchKey::Or(a, b) => {
            collect(a, leaves, depth + 1)?;
            collect(b, leaves, depth + 1)
        }
        SearchKey::ModSequence { .. } => Err(Fail::Bad("this search key is not offered".into())),
        // Of our own namespace the provider knows forged fields only.
        SearchKey::Header(name, _) if is_ours(name.as_ref()) => Ok(()),
        leaf if is_remote(leaf) => {
            if !leaves.contains(leaf) {
                leaves.push(leaf.clone());
            }
            if leaves.len() > MAX_LEAVES {
                return Err(Fail::No("LIMIT", "the query has too many terms".into()));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn is_ours(name: &[u8]) -> bool {
    name.to_ascii_lowercase().starts_with(b"x-tollgate-")
}

/// Asks the provider for each leaf.
async fn ask(mirror: &Mirror, leaves: Vec<SearchKey<'_>>) -> Result<Answers, Fail> {
    let mut answers = Answers::new();
    if leaves.is_empty() {
        return Ok(answers);
    }
    let mut lease = mirror.pool.inbox().await?;
    if lease.inbox_validity() != mirror.state().uidvalidity {
        return Err(Fail::No("UNAVAILABLE", "the mailbox is being rebuilt".into()));
    }
    lease.run(b"NOOP").await?.ok()?;
    for leaf in leaves {
        let parts = encode(&leaf)?;
        let borrowed: Vec<Part<'_>> =
            parts.iter().map(|(text, literal)| if *literal { Part::Literal(text) } else { Part::Text(text) }).collect();
        let outcome = lease.run_parts(&borrowed).await?.ok()?;
        let mut found = BTreeSet::new();
        for u in &outcome.untagged {
            if let UntaggedData::Search(numbers) = u.parse() {
                found.extend(numbers.into_iter().filter_map(UpstreamUid::new));
            }
        }
        answers.insert(format!("{leaf:?}"), found);
    }
    lease.give_back();
    Ok(answers)
}

/// `UID SEARCH CHARSET UTF-8 leaf` in pieces; true marks a literal.
fn encode(leaf: &SearchKey<'_>) -> Result<Vec<(Vec<u8>, bool)>, Fail> {
    let tag = Tag::try_from("x").map_err(|_| Fail::Bad("tag".into()))?;
    let body = CommandBody::Search { charset: None, criteria: Vec1::from(leaf.clone()), uid: true };
    let command = Command { tag, body };
    let mut out: Vec<(Vec<u8>, bool)> = Vec::new();
    for fragment in CommandCodec::default().encode(&command) {
        match fragment {
            Fragment::Line { data } => {
                let open = if data.ends_with(b"}\r\n") { memchr::memrchr(b'{', &data) } else { None };
                let end = open.unwrap_or(data.trim_ascii_end().len());
                out.push((data[..end].to_vec(), false));
            }
            Fragment::Literal { data, .. } => out.push((data, true)),
        }
    }
    // The tag is the connection's to choose; a charset is named only where
    // it is needed, since some providers know none.
    let needs = out.iter().any(|(text, _)| !text.is_ascii());
    if let Some((first, _)) = out.first_mut() {
        let rest = first.strip_prefix(b"x UID SEARCH ").unwrap_or(first).to_vec();
        let head: &[u8] = if needs { b"UID SEARCH CHARSET UTF-8 " } else { b"UID SEARCH " };
        *first = [head, &rest].concat();
    }
    Ok(out)
}

fn holds(key: &SearchKey<'_>, c: &Candidate, answers: &Answers, known: &Known) -> bool {
    let flag = |name: &str| has_flag(&c.flags, name);
    let day = || day_of(&c.date);
    match key {
        SearchKey::And(keys) => keys.as_ref().iter().all(|k| holds(k, c, answers, known)),
        SearchKey::Not(k) => !holds(k, c, answers, known),
        SearchKey::Or(a, b) => holds(a, c, answers, known) || holds(b, c, answers, known),
        SearchKey::All => true,
        SearchKey::Old => !flag("\\Recent"),
        SearchKey::Recent => flag("\\Recent"),
        SearchKey::New => flag("\\Recent") && !flag("\\Seen"),
        SearchKey::SequenceSet(set) => within(super::fetch::ranges(set, known.exists), c.seq.get()),
        SearchKey::Uid(set) => within(super::fetch::ranges(set, known.last), c.uid.get()),
        SearchKey::Answered => flag("\\Answered"),
        SearchKey::Unanswered => !flag("\\Answered"),
        SearchKey::Deleted => flag("\\Deleted"),
        SearchKey::Undeleted => !flag("\\Deleted"),
        SearchKey::Draft => flag("\\Draft"),
        SearchKey::Undraft => !flag("\\Draft"),
        SearchKey::Flagged => flag("\\Flagged"),
        SearchKey::Unflagged => !flag("\\Flagged"),
        SearchKey::Seen => flag("\\Seen"),
        SearchKey::Unseen => !flag("\\Seen"),
        SearchKey::Keyword(k) => flag(k.as_ref()),
        SearchKey::Unkeyword(k) => !flag(k.as_ref()),
        SearchKey::Larger(n) => c.size > u64::from(*n),
        SearchKey::Smaller(n) => c.size < u64::from(*n),
        SearchKey::Before(d) => day().is_some_and(|x| x < date_of(d)),
        SearchKey::On(d) => day().is_some_and(|x| x == date_of(d)),
        SearchKey::Since(d) => day().is_some_and(|x| x >= date_of(d)),
        SearchKey::Older(n) => age(&c.date).is_some_and(|a| a >= i64::from(n.get())),
        SearchKey::Younger(n) => age(&c.date).is_some_and(|a| a <= i64::from(n.get())),
        SearchKey::Header(name, value) if is_ours(name.as_ref()) => stamp_has(&c.stamp, name.as_ref(), value.as_ref()),
        leaf => match c.source {
            Source::Upstream(up) => {
                let remote = answers.get(&format!("{leaf:?}")).is_some_and(|s| s.contains(&up));
                // TEXT looks at the header too, and the stamp is part of it.
                let stamped = matches!(leaf, SearchKey::Text(t) if contains(&c.stamp, t.as_ref()));
                remote || stamped
            }
            Source::Local(_) => c.local.as_deref().is_some_and(|text| local_holds(leaf, text)),
        },
    }
}

fn within(ranges: Vec<(u32, u32)>, n: u32) -> bool {
    ranges.iter().any(|(a, b)| (*a..=*b).contains(&n))
}

fn contains(text: &str, part: &[u8]) -> bool {
    text.to_lowercase().contains(&String::from_utf8_lossy(part).to_lowercase())
}

fn stamp_has(stamp: &str, name: &[u8], value: &[u8]) -> bool {
    crate::mail::header::values(stamp.as_bytes(), &String::from_utf8_lossy(name))
        .iter()
        .any(|v| contains(&String::from_utf8_lossy(v), value))
}

fn local_holds(leaf: &SearchKey<'_>, lower: &str) -> bool {
    let field = |name: &str, value: &[u8]| stamp_has(lower, name.as_bytes(), value);
    let text = lower.split_once("\r\n\r\n").map_or("", |(_, t)| t);
    match leaf {
        SearchKey::From(v) => field("from", v.as_ref()),
        SearchKey::To(v) => field("to", v.as_ref()),
        SearchKey::Cc(v) => field("cc", v.as_ref()),
        SearchKey::Bcc(v) => field("bcc", v.as_ref()),
        SearchKey::SentBefore(d) => sent(lower).is_some_and(|x| x < date_of(d)),
        SearchKey::SentOn(d) => sent(lower).is_some_and(|x| x == date_of(d)),
        SearchKey::SentSince(d) => sent(lower).is_some_and(|x| x >= date_of(d)),
        SearchKey::Subject(v) => field("subject", v.as_ref()),
        SearchKey::Header(name, v) => stamp_has(lower, name.as_ref(), v.as_ref()),
        SearchKey::Body(v) => contains(text, v.as_ref()),
        SearchKey::Text(v) => contains(lower, v.as_ref()),
        _ => false,
    }
}

/// Year, month and day of the Date field of a local message, such as
/// `mon, 1 jan 2026 00:00:00 +0000`.
fn sent(text: &str) -> Option<(i32, i8, i8)> {
    let value = crate::mail::header::values(text.as_bytes(), "date").into_iter().next()?;
    let value = String::from_utf8(value).ok()?;
    let mut words = value.split(", ").last()?.split_ascii_whitespace();
    let day = words.next()?.parse().ok()?;
    let month = month(words.next()?)?;
    Some((words.next()?.parse().ok()?, month, day))
}

/// Year, month and day of an INTERNALDATE, in its own zone (RFC 9051 §6.4.4:
/// dates disregard time and zone).
fn day_of(date: &str) -> Option<(i32, i8, i8)> {
    let mut parts = date.trim().split(' ').next()?.split('-');
    let day = parts.next()?.trim().parse().ok()?;
    let month = month(parts.next()?)?;
    Some((parts.next()?.parse().ok()?, month, day))
}

fn date_of(date: &NaiveDate) -> (i32, i8, i8) {
    let text = date.as_ref().format("%d-%b-%Y").to_string();
    day_of(&text).unwrap_or((0, 0, 0))
}

fn age(date: &str) -> Option<i64> {
    super::perceiving::perceive_date(date).map(|at| super::perceiving::now() - at)
}
