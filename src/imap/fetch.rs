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

use bytes::Bytes;
use imap_codec::imap_types::fetch::MacroOrMessageDataItemNames;
use imap_codec::imap_types::sequence::{SeqOrUid, Sequence, SequenceSet};
use tokio::io::AsyncWriteExt;

use crate::lane::stamp::Neutraliser;
use crate::upstream::imap::{Status, Tag};
use crate::wire::imap::Piece;

use super::mirror::{FlagChange, Mirror, Op, OpError};
use super::ops::has_flag;
use super::pass::set_text;
use super::pool::Lease;
use super::scan::{Event, FetchScan, fetch_head};
use super::section::{Fields, Item, Partial, Wanted, cut, select_fields, window};
use super::session::{Fail, Out, Selection, Session, Viewing};
use super::uid::{SeqNum, UpstreamUid, ViewUid};
use super::view::Source;

/// Commands in flight to the provider.
const IN_FLIGHT: usize = 32;
/// Octets asked beyond the end of a partial: longer than a name that is renamed.
const LOOKAHEAD: u64 = 16;
/// Largest header section that is worked on, in octets.
const MAX_HEADER: usize = 4 * 1024 * 1024;

/// One message of a FETCH.
struct Job {
    up: UpstreamUid,
    stamp: Option<Arc<str>>,
    /// `* n FETCH (UID u …`, ready to be written.
    head: String,
    /// Whether an item stands in `head` already.
    begun: bool,
    whole: Option<Whole>,
    /// What the provider is asked for, without `UID FETCH n`.
    command: String,
}

/// How BODY[] of one message is put together.
struct Whole {
    name: String,
    stamp: (usize, usize),
    /// First octet asked from the provider and how many; all without.
    upstream: Partial,
    /// Octets of the provider's answer to drop at its start.
    skip: u64,
    /// Octets to pass on after that.
    take: u64,
    neutralise: bool,
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
        gone |= run_jobs(&mirror, out, jobs, &wanted).await?;
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

/// A command in flight and the message that it asks for.
struct InFlight {
    tag: Tag,
    job: Job,
    answered: bool,
}

/// Runs the jobs over one connection; whether a message was gone.
async fn run_jobs(mirror: &Mirror, out: &mut Out, jobs: Vec<Job>, wanted: &Wanted) -> Result<bool, Fail> {
    if jobs.is_empty() {
        return Ok(false);
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
    Ok(!round.missed.is_empty())
}

/// Commands in flight and what became of those that ended.
///
/// RFC 9051 §5.5 lets a server answer several commands before it completes
/// the first (Dovecot does), so the tagged responses don't separate the
/// answers: the UID in each does.
struct Round<'a> {
    live: VecDeque<InFlight>,
    /// Ended without an answer.
    missed: Vec<Job>,
    /// An answer was dropped because nothing said whose it was.
    blind: bool,
    wanted: &'a Wanted,
}

impl Round<'_> {
    async fn run(&mut self, lease: &mut Lease, out: &mut Out, jobs: Vec<Job>, most: usize) -> Result<(), Fail> {
        let mut queue = jobs.into_iter();
        loop {
            while self.live.len() < most
                && let Some(job) = queue.next()
            {
                let tag = lease.send(format!("UID FETCH {} (UID {})", job.up, job.command).as_bytes()).await?;
                self.live.push_back(InFlight { tag, job, answered: false });
            }
            if self.live.is_empty() {
                return Ok(());
            }
            match next_of(lease, &self.live).await? {
                Next::Done(at, Status::No | Status::Bad) if self.live[at].answered => {
                    return Err(cut_short("the provider refused mid-way"));
                }
                Next::Done(at, _) => {
                    let ended = self.live.remove(at);
                    self.missed.extend(ended.filter(|f| !f.answered).map(|f| f.job));
                }
                Next::Fetch(text) => self.answer(lease, out, text).await?,
            }
        }
    }

    /// Streams one FETCH response of the provider.
    async fn answer(&mut self, lease: &mut Lease, out: &mut Out, first: Bytes) -> Result<(), Fail> {
        let wanted = self.wanted;
        let live = &mut self.live;
        let mut writer = Answer { live, wanted, uid: None, at: None, begun: false, blind: false, mode: Mode::Skip };
        let done = stream_one(lease, out, &mut writer, first).await;
        let (at, begun) = (writer.at, writer.begun);
        self.blind |= writer.blind;
        if begun && let Some(flight) = at.and_then(|at| self.live.get_mut(at)) {
            flight.answered = true;
        }
        // A response that the client saw the start of can't be taken back.
        done.map_err(|e| if begun && !matches!(e, Fail::Io(_)) { cut_short(&e.to_string()) } else { e })
    }
}

fn cut_short(why: &str) -> Fail {
    Fail::Bye(format!("the provider's answer was cut short: {why}"))
}

enum Next {
    Fetch(Bytes),
    /// The end of the command at this place in the queue.
    Done(usize, Status),
}

/// The next FETCH response or the end of a command; all else is skipped.
async fn next_of(lease: &mut Lease, live: &VecDeque<InFlight>) -> Result<Next, Fail> {
    loop {
        let Piece::Text(text) = piece(lease).await? else { continue };
        if fetch_head(&text).is_some() {
            return Ok(Next::Fetch(text));
        }
        skip_rest(lease).await?;
        let mut words = text.splitn(3, |b| *b == b' ');
        let (tag, status) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().to_ascii_uppercase());
        let Some(at) = live.iter().position(|f| f.tag.to_string().as_bytes() == tag) else { continue };
        return Ok(Next::Done(
            at,
            match &status[..] {
                b"OK" => Status::Ok,
                b"NO" => Status::No,
                _ => Status::Bad,
            },
        ));
    }
}

async fn piece(lease: &mut Lease) -> Result<Piece, Fail> {
    Ok(lease.piece_in_time().await?)
}

async fn skip_rest(lease: &mut Lease) -> Result<(), Fail> {
    while piece(lease).await? != Piece::End {}
    Ok(())
}

/// Reads one FETCH response to its end.
async fn stream_one(lease: &mut Lease, out: &mut Out, writer: &mut Answer<'_>, first: Bytes) -> Result<(), Fail> {
    let mut scan = FetchScan::default();
    let mut events = Vec::new();
    let mut text = Some(first);
    loop {
        let next = piece(lease).await?;
        let literal = if let Piece::Literal { len } = next { Some(len) } else { None };
        if let Some(t) = text.take() {
            scan.text(&t, literal, &mut events).map_err(|e| Fail::No("UNAVAILABLE", e.to_string()))?;
        }
        let ended = next == Piece::End;
        match next {
            Piece::Literal { .. } => {}
            Piece::Text(t) => text = Some(t),
            Piece::Chunk(c) => scan.chunk(c, &mut events).map_err(|e| Fail::No("UNAVAILABLE", e.to_string()))?,
            // After a literal the closing text may be all that is left.
            Piece::End if !scan.is_done() => {
                scan.text(&Bytes::new(), None, &mut events).map_err(|e| Fail::No("UNAVAILABLE", e.to_string()))?;
            }
            Piece::End => {}
        }
        for e in events.drain(..) {
            writer.event(e, out).await?;
        }
        if ended {
            return Ok(());
        }
    }
}

enum Mode {
    /// An item that nobody asked for, or that was answered already.
    Skip,
    /// The UID.
    Uid,
    /// Octets pass as they are.
    Pass,
    /// BODY[]: octets still to drop, octets still to pass, and the renamer.
    Whole { skip: u64, take: u64, renamer: Option<Neutraliser> },
    /// The header is collected.
    Header(Vec<u8>),
}

/// Turns one response of the provider into ours.
struct Answer<'a> {
    live: &'a mut VecDeque<InFlight>,
    wanted: &'a Wanted,
    uid: Option<UpstreamUid>,
    /// The command that it answers, once an item of it came.
    at: Option<usize>,
    /// Something was written.
    begun: bool,
    /// It carried data, and nothing said whose.
    blind: bool,
    mode: Mode,
}

impl Answer<'_> {
    async fn event(&mut self, event: Event, out: &mut Out) -> Result<(), Fail> {
        match event {
            Event::Begin { .. } => Ok(()),
            Event::Item(name) => self.item(&name, out).await,
            Event::Raw(raw) => self.raw(&raw, out).await,
            Event::Literal(len) => self.literal(len, out).await,
            Event::Chunk(chunk) => self.chunk(&chunk, out).await,
            Event::ItemEnd => self.item_end(out).await,
            Event::End if self.begun => Ok(out.write_all(b")\r\n").await?),
            Event::End => Ok(()),
        }
    }

    fn job(&mut self) -> Option<&mut Job> {
        self.live.get_mut(self.at?).map(|f| &mut f.job)
    }

    /// Finds the command that asked for this; whether there is one.
    fn attribute(&mut self) -> bool {
        if self.at.is_none() {
            let (uid, alone) = (self.uid, self.live.len() == 1);
            self.at = self.live.iter().position(|f| !f.answered && uid.map_or(alone, |u| u == f.job.up));
            self.blind |= self.at.is_none() && uid.is_none();
        }
        self.at.is_some()
    }

    async fn begin_item(&mut self, name: &str, out: &mut Out) -> Result<(), Fail> {
        let first = !std::mem::replace(&mut self.begun, true);
        let Some(job) = self.job() else { return Ok(()) };
        if first {
            out.write_all(job.head.as_bytes()).await?;
        }
        let space = if job.begun { " " } else { "" };
        job.begun = true;
        Ok(out.write_all(format!("{space}{name} ").as_bytes()).await?)
    }

    async fn item(&mut self, name: &[u8], out: &mut Out) -> Result<(), Fail> {
        let upper = String::from_utf8_lossy(name).to_ascii_uppercase();
        self.mode = match upper.as_str() {
            "UID" => Mode::Uid,
            "FLAGS" | "MODSEQ" | "RFC822.SIZE" | "INTERNALDATE" => Mode::Skip,
            _ if !self.attribute() => Mode::Skip,
            "BODY[HEADER]" if self.wanted.items.iter().any(|i| matches!(i, Item::Header(..))) => {
                Mode::Header(Vec::new())
            }
            body if body == "BODY[]" || body.starts_with("BODY[]<") => {
                match self.job().and_then(|j| j.whole.as_ref()) {
                    None => Mode::Skip,
                    Some(w) => Mode::Whole { skip: w.skip, take: w.take, renamer: w.neutralise.then(Neutraliser::new) },
                }
            }
            _ => {
                let renamed = self.wanted.items.iter().find_map(|i| match i {
                    Item::Pass(Some(name), text) if *text == upper.replacen("BODY[", "BODY.PEEK[", 1) => {
                        Some(name.clone())
                    }
                    _ => None,
                });
                let name = renamed.unwrap_or_else(|| String::from_utf8_lossy(name).into_owned());
                self.begin_item(&name, out).await?;
                Mode::Pass
            }
        };
        Ok(())
    }

    async fn raw(&mut self, raw: &Bytes, out: &mut Out) -> Result<(), Fail> {
        match &mut self.mode {
            Mode::Skip => Ok(()),
            Mode::Uid => {
                self.uid = std::str::from_utf8(raw).ok().and_then(|t| t.parse().ok()).and_then(UpstreamUid::new);
                let asked = self.job().map(|j| j.up);
                if asked.is_some() && self.uid != asked {
                    return Err(Fail::No("UNAVAILABLE", "the provider's answer is about another message".into()));
                }
                Ok(())
            }
            Mode::Pass => Ok(out.write_all(raw).await?),
            Mode::Whole { .. } | Mode::Header(_) => {
                // A short or missing body may come quoted or as NIL.
                let data = if raw.eq_ignore_ascii_case(b"NIL") {
                    Bytes::new()
                } else {
                    let inside = raw.strip_prefix(b"\"").and_then(|r| r.strip_suffix(b"\"")).unwrap_or(raw);
                    Bytes::from(crate::wire::imap::unescape(inside).into_owned())
                };
                self.literal(data.len() as u64, out).await?;
                self.chunk(&data, out).await
            }
        }
    }

    async fn literal(&mut self, len: u64, out: &mut Out) -> Result<(), Fail> {
        match &self.mode {
            Mode::Skip | Mode::Uid => Ok(()),
            Mode::Pass => Ok(out.write_all(format!("{{{len}}}\r\n").as_bytes()).await?),
            Mode::Header(_) if len > MAX_HEADER as u64 => {
                Err(Fail::No("LIMIT", "the header is too large to be shown".into()))
            }
            Mode::Header(_) => Ok(()),
            Mode::Whole { skip, take, .. } => {
                let body = len.saturating_sub(*skip).min(*take);
                let Some(job) = self.job() else { return Ok(()) };
                let (Some(w), stamp) = (&job.whole, job.stamp.clone()) else { return Ok(()) };
                let (name, (from, to)) = (w.name.clone(), w.stamp);
                let stamp = stamp.as_deref().unwrap_or("").as_bytes();
                let stamp = stamp.get(from..to).unwrap_or(b"");
                self.begin_item(&name, out).await?;
                out.write_all(format!("{{{}}}\r\n", stamp.len() as u64 + body).as_bytes()).await?;
                Ok(out.write_all(stamp).await?)
            }
        }
    }

    async fn chunk(&mut self, chunk: &Bytes, out: &mut Out) -> Result<(), Fail> {
        match &mut self.mode {
            Mode::Skip | Mode::Uid => Ok(()),
            Mode::Pass => Ok(out.write_all(chunk).await?),
            Mode::Header(all) => {
                all.extend_from_slice(chunk);
                Ok(())
            }
            Mode::Whole { skip, take, renamer } => match renamer {
                Some(r) if !r.in_body() => {
                    let mut renamed = Vec::with_capacity(chunk.len() + LOOKAHEAD as usize);
                    r.push(chunk, &mut renamed);
                    Ok(out.write_all(clip(&renamed, skip, take)).await?)
                }
                _ => Ok(out.write_all(clip(chunk, skip, take)).await?),
            },
        }
    }

    async fn item_end(&mut self, out: &mut Out) -> Result<(), Fail> {
        match std::mem::replace(&mut self.mode, Mode::Skip) {
            Mode::Skip | Mode::Uid | Mode::Pass => Ok(()),
            Mode::Whole { mut skip, mut take, renamer } => {
                let mut rest = Vec::new();
                if let Some(r) = renamer {
                    r.finish(&mut rest);
                }
                Ok(out.write_all(clip(&rest, &mut skip, &mut take)).await?)
            }
            Mode::Header(octets) => {
                let stamp = self.job().and_then(|j| j.stamp.clone());
                let mut whole = stamp.as_deref().unwrap_or("").as_bytes().to_vec();
                let mut n = Neutraliser::new();
                n.push(&octets, &mut whole);
                n.finish(&mut whole);
                let items: Vec<(String, Fields, Partial)> = self
                    .wanted
                    .items
                    .iter()
                    .filter_map(|i| match i {
                        Item::Header(name, fields, partial) => Some((name.clone(), fields.clone(), *partial)),
                        _ => None,
                    })
                    .collect();
                for (name, fields, partial) in items {
                    let selected = select_fields(&whole, &fields);
                    let data = cut(&selected, partial);
                    self.begin_item(&name, out).await?;
                    out.write_all(format!("{{{}}}\r\n", data.len()).as_bytes()).await?;
                    out.write_all(data).await?;
                }
                Ok(())
            }
        }
    }
}

/// Drops and passes octets as far as the counters say.
fn clip<'a>(octets: &'a [u8], skip: &mut u64, take: &mut u64) -> &'a [u8] {
    let drop = (*skip).min(octets.len() as u64);
    *skip -= drop;
    let rest = &octets[drop as usize..];
    let pass = (*take).min(rest.len() as u64);
    *take -= pass;
    &rest[..pass as usize]
}
