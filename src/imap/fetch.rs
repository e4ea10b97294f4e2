//! FETCH and UID FETCH over a view (RFC 9051 §6.4.5).
//!
//! Promises: responses ascend by UID with UID first; sizes, sections and
//! partials agree with the stamped octets; bodies stream, and messages are
//! planned as they are asked for. Doesn't know: passed-through mailboxes, how
//! the provider is asked.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;
use std::vec;

use imap_codec::imap_types::fetch::MacroOrMessageDataItemNames;
use imap_codec::imap_types::sequence::{SeqOrUid, Sequence, SequenceSet};
use tokio::io::AsyncWriteExt;

use crate::store::StoreError;

use super::encode::set_text;
use super::mirror::{FlagChange, Mirror, Op, OpError};
use super::ops::has_flag;
use super::rows::LocalRow;
use super::runs;
use super::section::{Item, Partial, Wanted, window};
use super::session::{Fail, Out, Selection, Session, Viewing};
use super::uid::{SeqNum, UpstreamUid, ViewUid};
use super::view::Source;

/// Octets asked beyond the end of a partial: longer than a name that is renamed.
pub(super) const LOOKAHEAD: u64 = 16;
/// What is asked of a message's start is rounded up to so many octets, so that
/// messages whose stamps differ in length can be asked for together.
const ROUND_UP: u64 = 1024;

/// What one response is made of.
pub(super) enum Step {
    /// It is known without the provider.
    Known(String),
    /// A local message under this number; the start of the response.
    Local(u32, String),
    /// The provider has to be asked.
    Ask(Job),
}

/// A response that the provider has to be asked for.
pub(super) struct Job {
    pub(super) up: UpstreamUid,
    pub(super) stamp: Option<Arc<str>>,
    /// `* n FETCH (UID u …`, ready to be written.
    pub(super) head: String,
    pub(super) whole: Option<Whole>,
    /// What the provider is asked for, without `UID FETCH n`.
    pub(super) command: String,
    /// The message's length as far as it is known, without its stamp.
    pub(super) size: u64,
    /// Nothing else may be in flight with it: the answer or its absence is
    /// then final.
    pub(super) alone: bool,
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

/// The responses of one FETCH in their order, planned as they are needed.
pub(super) struct Steps<'a> {
    pub(super) mirror: &'a Mirror,
    pub(super) wanted: &'a Wanted,
    viewing: &'a mut Viewing,
    chosen: vec::IntoIter<(SeqNum, ViewUid)>,
    ready: VecDeque<Step>,
    with_uid: bool,
    marks: bool,
    /// A message that was chosen is gone.
    gone: bool,
}

impl Steps<'_> {
    /// The next response.
    pub(super) async fn next(&mut self) -> Result<Option<Step>, Fail> {
        while self.ready.is_empty() {
            let Some((seq, uid)) = self.chosen.next() else { return Ok(None) };
            self.message(seq, uid).await?;
        }
        Ok(self.ready.pop_front())
    }

    /// Plans all that is left: where a plan takes a connection itself, it must
    /// not wait for one while it holds another.
    async fn ahead(&mut self) -> Result<(), Fail> {
        for (seq, uid) in std::mem::take(&mut self.chosen) {
            self.message(seq, uid).await?;
        }
        Ok(())
    }

    async fn message(&mut self, seq: SeqNum, uid: ViewUid) -> Result<(), Fail> {
        let found = head(self.mirror, self.viewing, seq, uid, self.wanted, self.with_uid, self.marks);
        let Some((head, source, stamp, size)) = found else {
            self.gone = true;
            return Ok(());
        };
        match source {
            Source::Local(n) => self.ready.push_back(Step::Local(n, head.text())),
            Source::Upstream(up) => {
                for job in plan(self.mirror, self.viewing, (up, size), stamp, head, self.wanted).await? {
                    self.ready.push_back(if job.command.is_empty() {
                        Step::Known(job.head + ")\r\n")
                    } else {
                        Step::Ask(job)
                    });
                }
            }
        }
        Ok(())
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
        let agent = self.signed()?.is_agent() && !self.may_flag()?;
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
        let Session { selection: Selection::View(viewing), out, .. } = self else {
            return Err(Fail::Bad("select a mailbox first".into()));
        };
        let chosen = chosen.into_iter();
        let mut plan = Steps {
            mirror: &mirror,
            wanted: &wanted,
            viewing,
            chosen,
            ready: VecDeque::new(),
            with_uid,
            marks,
            gone: false,
        };
        if wanted.items.iter().any(|i| matches!(i, Item::Whole(_, Some(_)))) {
            plan.ahead().await?;
        }
        let done = runs::run(&mut plan, out).await;
        let mut gone = plan.gone || !done.missed.is_empty() || done.expunged;
        // What was learned is kept, whatever became of the rest.
        let learned = done.measured;
        if !learned.is_empty()
            && let Err(e) = mirror.ask(|r| Op::Measured(learned, r)).await
        {
            tracing::warn!(account = %mirror.account, "true lengths of messages were not kept: {e}");
        }
        done.outcome?;
        if gone && uid {
            // RFC 9051 §6.4.9: UIDs of messages that are gone are no error. The
            // EXPUNGE waits, as after STORE.
            if !done.missed.is_empty() || done.expunged {
                mirror.ask(Op::Sync).await?;
            }
            let state = mirror.state();
            gone = done.missed.iter().any(|up| state.messages.contains_key(up));
        }
        self.tell(false).await?;
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
) -> Option<(Head, Source, Option<Arc<str>>, u64)> {
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
    let size = match entry.source {
        Source::Upstream(up) => state.messages.get(&up)?.row.size,
        Source::Local(_) => 0,
    };
    let stamp = state.stamp(entry).map(Arc::from);
    Some((Head { start: format!("* {seq} FETCH ({uid_text}"), items: parts }, entry.source, stamp, size))
}

/// Writes the response for a local message.
pub(super) async fn write_local(
    mirror: &Mirror,
    out: &mut Out,
    number: u32,
    head: String,
    wanted: &Wanted,
) -> Result<(), Fail> {
    let Some(row) = mirror.state().locals.get(&number).map(|l| l.row.clone()) else { return Ok(()) };
    let of_octets = wanted.items.iter().any(|i| !matches!(i, Item::Flags | Item::Date | Item::Size));
    let whole = if of_octets { Some(local_octets(mirror, row).await?) } else { None };
    out.write_all(head.as_bytes()).await?;
    let mut begun = !head.ends_with('(');
    for item in &wanted.items {
        if let Some((name, value)) = whole.as_ref().and_then(|w| w.item(item)) {
            let space = if begun { " " } else { "" };
            out.write_all(format!("{space}{name} ").as_bytes()).await?;
            out.write_all(&value).await?;
            begun = true;
        }
    }
    Ok(out.write_all(b")\r\n").await?)
}

/// All octets of a local message.
async fn local_octets(mirror: &Mirror, row: Arc<LocalRow>) -> Result<super::local::Whole, Fail> {
    let store = mirror.store.clone();
    let read = tokio::task::spawn_blocking(move || {
        let mut octets = row.octets.clone().into_bytes();
        if let Some(body) = row.body {
            let mut file = store.blobs().open(&body.blob)?;
            file.read_to_end(&mut octets).map_err(|e| StoreError::Failed(e.to_string()))?;
        }
        Ok::<_, StoreError>(super::local::Whole::of(octets))
    });
    let read = read.await.map_err(|e| OpError::Store(e.to_string()))?;
    Ok(read.map_err(OpError::from)?)
}

/// What the provider has to be asked for one message. Every BODY[] beyond the
/// first gets a response of its own, since answers are told apart by name.
async fn plan(
    mirror: &Mirror,
    viewing: &mut Viewing,
    (up, size): (UpstreamUid, u64),
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
    let job = |head: String, items: &[&str], whole: Option<Whole>| {
        let ask = whole.as_ref().map(|w| match w.upstream {
            None => "BODY.PEEK[]".to_owned(),
            Some((from, count)) => format!("BODY.PEEK[]<{from}.{count}>"),
        });
        let mut parts = items.to_vec();
        // Together with RFC822.SIZE, BODY[] stands first: its literal tells the
        // true length before anything of the response is written.
        let first = wanted.items.contains(&Item::Size) && whole.as_ref().is_some_and(|w| w.upstream.is_none());
        parts.splice(if first { 0..0 } else { items.len()..items.len() }, ask.as_deref());
        let command = parts.join(" ");
        Job { up, stamp: stamp.clone(), head, whole, command, size, alone: false }
    };
    let mut out = vec![job(head.text(), &items, wholes.next())];
    out.extend(wholes.map(|w| job(head.start.clone(), &[], Some(w))));
    Ok(out)
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
        let upstream = Some((0, small((from + take + LOOKAHEAD).next_multiple_of(ROUND_UP))));
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
