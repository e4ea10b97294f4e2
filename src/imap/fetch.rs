//! FETCH and UID FETCH over a view (RFC 9051 §6.4.5).
//!
//! Promises: responses ascend by UID with UID first; sizes, sections and
//! partials agree with the stamped octets; bodies stream. Doesn't know:
//! passed-through mailboxes.
//!
//! One command a message is pipelined to the provider: a view's order is not
//! the provider's, and an answer is then known to belong to its message even
//! where the provider puts UID last or adds flags of others.

use std::collections::VecDeque;
use std::sync::Arc;

use imap_codec::imap_types::fetch::MacroOrMessageDataItemNames;
use imap_codec::imap_types::sequence::{SeqOrUid, Sequence, SequenceSet};
use tokio::io::AsyncWriteExt;

use super::answer::Round;
use super::encode::set_text;
use super::mirror::{FlagChange, Mirror, Op, OpError};
use super::ops::has_flag;
use super::section::{Item, Partial, Wanted, window};
use super::session::{Fail, Out, Selection, Session, Viewing};
use super::uid::{SeqNum, UpstreamUid, ViewUid};
use super::view::Source;

/// Commands in flight to the provider.
const IN_FLIGHT: usize = 32;
/// Octets asked beyond the end of a partial: longer than a name that is renamed.
pub(super) const LOOKAHEAD: u64 = 16;

/// One message of a FETCH.
pub(super) struct Job {
    pub(super) up: UpstreamUid,
    pub(super) stamp: Option<Arc<str>>,
    /// `* n FETCH (UID u …`, ready to be written.
    pub(super) head: String,
    /// Whether an item stands in `head` already.
    pub(super) begun: bool,
    pub(super) whole: Option<Whole>,
    /// What the provider is asked for, without `UID FETCH n`.
    pub(super) command: String,
}

/// How BODY[] of one message is put together.
pub(super) struct Whole {
    pub(super) name: String,
    pub(super) stamp: (usize, usize),
    /// First octet asked from the provider and how many; all without.
    pub(super) upstream: Partial,
    /// Octets of the provider's answer to drop at its start.
    pub(super) skip: u64,
    /// Octets to pass on after that.
    pub(super) take: u64,
    pub(super) neutralise: bool,
}

/// The start of a response.
struct Head {
    /// `* n FETCH (`, and `UID u` where asked.
    start: String,
    /// Other items that are known without the provider.
    items: Vec<String>,
}

impl Head {
    fn text(&self) -> String {
        let space = if self.start.ends_with('(') || self.items.is_empty() { "" } else { " " };
        format!("{}{space}{}", self.start, self.items.join(" "))
    }
}

/// Numbers of a set as ascending, inclusive ranges; `*` is `largest`.
pub(super) fn ranges(set: &SequenceSet, largest: u32) -> Vec<(u32, u32)> {
    let value = |v: SeqOrUid| match v {
        SeqOrUid::Value(n) => n.get(),
        SeqOrUid::Asterisk => largest,
    };
    let mut out: Vec<(u32, u32)> = set
        .0
        .as_ref()
        .iter()
        .map(|s| match s {
            Sequence::Single(v) => (value(*v), value(*v)),
            Sequence::Range(a, b) => (value(*a).min(value(*b)), value(*a).max(value(*b))),
        })
        .collect();
    out.sort_unstable();
    out
}

impl Viewing {
    /// The messages that a set names, ascending. A sequence number that the
    /// session doesn't have is BAD; a UID without message is nothing.
    pub(super) fn resolve(&self, set: &SequenceSet, uid: bool) -> Result<Vec<(SeqNum, ViewUid)>, Fail> {
        let uids = self.known.uids();
        // RFC 9051 §9, `seq-number`: `*` is an error in an empty mailbox; many
        // clients send `1:*` there all the same, and mean nothing.
        if uids.is_empty() && set_text(set).contains('*') {
            return Ok(Vec::new());
        }
        let largest = if uid { uids.last().map_or(0, |u| u.get()) } else { self.known.exists() };
        let mut out: Vec<(SeqNum, ViewUid)> = Vec::new();
        for (from, to) in ranges(set, largest) {
            let (start, end) = if uid {
                (uids.partition_point(|u| u.get() < from), uids.partition_point(|u| u.get() <= to))
            } else {
                if to > largest || from == 0 {
                    return Err(Fail::Bad("there is no message with that number".into()));
                }
                (from as usize - 1, to as usize)
            };
            for (i, uid) in uids.iter().enumerate().take(end).skip(start) {
                if let Some(seq) = u32::try_from(i + 1).ok().and_then(SeqNum::new) {
                    out.push((seq, *uid));
                }
            }
        }
        out.sort_unstable_by_key(|(s, _)| *s);
        out.dedup();
        Ok(out)
    }
}

impl Session {
    pub(super) fn viewing(&mut self) -> Result<&mut Viewing, Fail> {
        match &mut self.selection {
            Selection::View(v) => Ok(v),
            Selection::Nothing | Selection::Pass(_) => Err(Fail::Bad("select a mailbox first".into())),
        }
    }

    /// FETCH.
    pub(super) async fn fetch(
        &mut self,
        set: &SequenceSet,
        names: &MacroOrMessageDataItemNames<'_>,
        uid: bool,
    ) -> Result<String, Fail> {
        let wanted = Wanted::of(names, std::mem::take(&mut self.rfc822_peek)).map_err(|e| Fail::Bad(e.to_string()))?;
        let agent = self.signed()?.is_agent();
        let mirror = self.mirror()?;
        let viewing = self.viewing()?;
        let chosen = viewing.resolve(set, uid)?;
        let with_uid = uid || wanted.uid;
        let marks = wanted.sets_seen && !viewing.read_only && !agent;
        if marks {
            mark_seen(&mirror, viewing, &chosen).await?;
        }
        let told = viewing.new_keywords(&mirror.state());
        for line in told {
            self.line(&line).await?;
        }
        let mut gone = false;
        let mut jobs: Vec<Job> = Vec::new();
        let Session { selection: Selection::View(viewing), out, .. } = self else {
            return Err(Fail::Bad("select a mailbox first".into()));
        };
        for (seq, view_uid) in chosen {
            let Some((head, source, stamp)) = head(&mirror, viewing, seq, view_uid, &wanted, with_uid, marks) else {
                gone = true;
                continue;
            };
            match source {
                Source::Local(n) => write_local(&mirror, out, n, head.text(), &wanted).await?,
                Source::Upstream(up) => {
                    let rounds = plan(&mirror, viewing, up, stamp, head, &wanted).await?;
                    for job in rounds {
                        if job.command.is_empty() {
                            out.write_all(job.head.as_bytes()).await?;
                            out.write_all(b")\r\n").await?;
                        } else {
                            jobs.push(job);
                        }
                    }
                }
            }
        }
        let missed = run_jobs(&mirror, out, jobs, &wanted).await?;
        gone |= !missed.is_empty();
        if gone && uid {
            // RFC 9051 §6.4.9 and §7.5.1: UIDs of messages that are gone are
            // no error, and the client may be told so at once.
            if !missed.is_empty() {
                mirror.ask(Op::Sync).await?;
            }
            self.tell(true).await?;
            let state = mirror.state();
            gone = missed.iter().any(|up| state.messages.contains_key(up));
        } else {
            self.tell(false).await?;
        }
        if gone { Err(OpError::Gone.into()) } else { Ok("done".into()) }
    }
}

/// Sets `\Seen` where it is missing (RFC 9051 §6.4.5, BODY[<section>]).
async fn mark_seen(mirror: &Mirror, viewing: &Viewing, chosen: &[(SeqNum, ViewUid)]) -> Result<(), Fail> {
    let (mut up, mut local) = (Vec::new(), Vec::new());
    {
        let state = mirror.state();
        let Some(view) = state.view(viewing.id) else { return Ok(()) };
        for (_, uid) in chosen {
            let Some(entry) = view.get(*uid) else { continue };
            if has_flag(&state.shown_flags(viewing.id, entry), "\\Seen") {
                continue;
            }
            match entry.source {
                Source::Upstream(u) => up.push(u),
                Source::Local(n) => local.push(n),
            }
        }
    }
    let seen = || vec!["\\Seen".to_owned()];
    if !up.is_empty() {
        mirror.ask(|r| Op::Store(up, FlagChange::Add, seen(), r)).await?;
    }
    if !local.is_empty() {
        mirror.ask(|r| Op::StoreLocal(local, FlagChange::Add, seen(), r)).await?;
    }
    Ok(())
}

/// The start of a response with everything that is known without the
/// provider; `None` when the message is gone.
fn head(
    mirror: &Mirror,
    viewing: &Viewing,
    seq: SeqNum,
    uid: ViewUid,
    wanted: &Wanted,
    with_uid: bool,
    marks: bool,
) -> Option<(Head, Source, Option<Arc<str>>)> {
    let state = mirror.state();
    let entry = state.view(viewing.id)?.get(uid)?;
    let uid_text = if with_uid { format!("UID {uid}") } else { String::new() };
    let mut parts = Vec::new();
    if marks && !wanted.items.contains(&Item::Flags) {
        parts.push(format!("FLAGS ({})", viewing.flags(&state, uid, entry).join(" ")));
    }
    for item in &wanted.items {
        match item {
            Item::Flags => parts.push(format!("FLAGS ({})", viewing.flags(&state, uid, entry).join(" "))),
            Item::Date => parts.push(format!("INTERNALDATE \"{}\"", state.date(entry.source)?)),
            Item::Size => parts.push(format!("RFC822.SIZE {}", state.shown_size(entry)?)),
            Item::Whole(..) | Item::Header(..) | Item::Pass(..) => {}
        }
    }
    if let Source::Upstream(up) = entry.source {
        state.messages.get(&up)?;
    }
    let stamp = state.stamp(entry).map(Arc::from);
    Some((Head { start: format!("* {seq} FETCH ({uid_text}"), items: parts }, entry.source, stamp))
}

async fn write_local(mirror: &Mirror, out: &mut Out, number: u32, head: String, wanted: &Wanted) -> Result<(), Fail> {
    let Some(row) = mirror.state().locals.get(&number).map(|l| l.row.clone()) else { return Ok(()) };
    out.write_all(head.as_bytes()).await?;
    let mut begun = !head.ends_with('(');
    for item in &wanted.items {
        if let Some((name, value)) = super::local::item(row.octets.as_bytes(), item) {
            let space = if begun { " " } else { "" };
            out.write_all(format!("{space}{name} ").as_bytes()).await?;
            out.write_all(&value).await?;
            begun = true;
        }
    }
    Ok(out.write_all(b")\r\n").await?)
}

/// What the provider has to be asked for one message. Every BODY[] beyond the
/// first gets a response of its own, since answers are told apart by name.
async fn plan(
    mirror: &Mirror,
    viewing: &mut Viewing,
    up: UpstreamUid,
    stamp: Option<Arc<str>>,
    head: Head,
    wanted: &Wanted,
) -> Result<Vec<Job>, Fail> {
    let mut items: Vec<&str> = Vec::new();
    let mut wholes: Vec<Whole> = Vec::new();
    for item in &wanted.items {
        match item {
            Item::Flags | Item::Date | Item::Size => {}
            Item::Header(..) if !items.contains(&"BODY.PEEK[HEADER]") => items.push("BODY.PEEK[HEADER]"),
            Item::Header(..) => {}
            Item::Pass(_, text) => items.push(text),
            Item::Whole(name, partial) => {
                wholes.push(whole(mirror, viewing, up, stamp.as_ref().map_or(0, |s| s.len()), name, *partial).await?);
            }
        }
    }
    let mut wholes = wholes.into_iter();
    let first = job(up, stamp.clone(), head.text(), items.join(" "), wholes.next());
    let mut out = vec![first];
    out.extend(wholes.map(|w| job(up, stamp.clone(), head.start.clone(), String::new(), Some(w))));
    Ok(out)
}

fn job(up: UpstreamUid, stamp: Option<Arc<str>>, head: String, items: String, whole: Option<Whole>) -> Job {
    let mut command = items;
    if let Some(w) = &whole {
        let ask = match w.upstream {
            None => "BODY.PEEK[]".to_owned(),
            Some((from, count)) => format!("BODY.PEEK[]<{from}.{count}>"),
        };
        if !command.is_empty() {
            command.push(' ');
        }
        command.push_str(&ask);
    }
    let begun = !head.ends_with('(');
    Job { up, stamp, head, begun, whole, command }
}

async fn whole(
    mirror: &Mirror,
    viewing: &mut Viewing,
    up: UpstreamUid,
    stamp_len: usize,
    name: &str,
    partial: Partial,
) -> Result<Whole, Fail> {
    let name = name.to_owned();
    let Some(asked) = partial else {
        return Ok(Whole { name, stamp: (0, stamp_len), upstream: None, skip: 0, take: u64::MAX, neutralise: true });
    };
    let w = window(stamp_len, asked);
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let inside_header = match w.upstream {
        None | Some((0, _)) => true,
        // Inside the header, forged stamps are renamed, which needs the
        // octets before; past it the provider's octets are the answer.
        Some((from, _)) => from < header_len(mirror, viewing, up).await?,
    };
    let (from, take) = w.upstream.unwrap_or((0, 0));
    Ok(if inside_header {
        // A few octets more, so that a name that the end cuts is renamed too.
        let upstream = Some((0, small(from + take + LOOKAHEAD)));
        Whole { name, stamp: w.stamp, upstream, skip: from, take, neutralise: true }
    } else {
        let upstream = Some((small(from), small(take)));
        Whole { name, stamp: w.stamp, upstream, skip: 0, take, neutralise: false }
    })
}

async fn header_len(mirror: &Mirror, viewing: &mut Viewing, up: UpstreamUid) -> Result<u64, Fail> {
    if let Some((known, len)) = viewing.header_len
        && known == up
    {
        return Ok(len);
    }
    let mut lease = mirror.pool.inbox().await?;
    let outcome = lease.run(format!("UID FETCH {up} (UID BODY.PEEK[HEADER])").as_bytes()).await?.ok()?;
    let len = outcome.untagged.iter().find_map(|u| super::scan::body_of(u, up)).map_or(0, |b| b.len() as u64);
    lease.give_back();
    viewing.header_len = Some((up, len));
    Ok(len)
}

/// Runs the jobs over one connection; the messages that were gone.
async fn run_jobs(mirror: &Mirror, out: &mut Out, jobs: Vec<Job>, wanted: &Wanted) -> Result<Vec<UpstreamUid>, Fail> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let mut lease = mirror.pool.inbox().await?;
    if lease.inbox_validity() != mirror.state().uidvalidity {
        return Err(Fail::No("UNAVAILABLE", "the mailbox is being rebuilt".into()));
    }
    let newest = jobs.iter().map(|j| j.up.get()).max().unwrap_or(0);
    if lease.must_look_for(newest) {
        // A connection that selected INBOX earlier may not know new mail yet.
        lease.run(b"NOOP").await?.ok()?;
        lease.knows(newest);
    }
    let mut round = Round { live: VecDeque::new(), missed: Vec::new(), blind: false, wanted };
    round.run(&mut lease, out, jobs, IN_FLIGHT).await?;
    if round.blind && !round.missed.is_empty() {
        // With one command in flight an answer is known without its UID.
        let again = std::mem::take(&mut round.missed);
        round.run(&mut lease, out, again, 1).await?;
    }
    lease.give_back();
    Ok(round.missed.iter().map(|job| job.up).collect())
}
