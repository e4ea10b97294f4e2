//! The provider's answers to a FETCH over a view, turned into ours while they
//! stream.
//!
//! Promises: an answer goes to the message whose UID it carries; stamps are
//! put before and forged ones renamed without collecting a body; the length
//! that is announced is the one that is sent. Doesn't know: what was asked
//! before the commands were written, what becomes of an answer that isn't due.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;

use crate::lane::stamp::Neutraliser;
use crate::wire::imap::Piece;

use super::fetch::{Job, LOOKAHEAD};
use super::pool::Lease;
use super::runs::{InFlight, cut_short, piece};
use super::scan::{Event, FetchScan};
use super::section::{Fields, Item, Partial, Wanted, cut, select_fields};
use super::session::{Fail, Out};
use super::uid::UpstreamUid;

/// Largest header section that is worked on, in octets.
const MAX_HEADER: usize = 4 * 1024 * 1024;
/// Octets of responses that are collected before they are written.
pub(super) const SINK: usize = 64 * 1024;
/// Octets of one response that wait until it is sure that the message is there.
const MAX_HELD: usize = 64 * 1024;

/// Reads one FETCH response to its end and writes what the sink doesn't hold.
pub(super) async fn stream_one(
    lease: &mut Lease,
    out: &mut Out,
    answer: &mut Answer<'_>,
    first: Bytes,
) -> Result<(), Fail> {
    let mut scan = FetchScan::default();
    let mut events = Vec::new();
    let mut text = Some(first);
    loop {
        let next = piece(lease).await.map_err(|e| answer.failed(e.into()))?;
        let ended = next == Piece::End;
        let read = read(&mut scan, next, &mut text, &mut events);
        let read = read.map_err(|e| Fail::No("UNAVAILABLE", e.to_string()));
        let taken = read.and_then(|()| events.drain(..).try_for_each(|event| answer.event(event)));
        taken.map_err(|e| answer.failed(e))?;
        if answer.sink.len() >= SINK {
            out.write_all(answer.sink).await?;
            answer.sink.clear();
            // What the client saw the start of can't be taken back.
            answer.start = None;
        }
        if ended {
            return Ok(());
        }
    }
}

/// Takes one piece of a response.
fn read(
    scan: &mut FetchScan,
    next: Piece,
    text: &mut Option<Bytes>,
    events: &mut Vec<Event>,
) -> Result<(), super::scan::Unreadable> {
    let literal = if let Piece::Literal { len } = next { Some(len) } else { None };
    if let Some(t) = text.take() {
        scan.text(&t, literal, events)?;
    }
    match next {
        Piece::Literal { .. } => Ok(()),
        Piece::Text(t) => {
            *text = Some(t);
            Ok(())
        }
        Piece::Chunk(c) => scan.chunk(c, events),
        // After a literal the closing text may be all that is left.
        Piece::End if !scan.is_done() => scan.text(&Bytes::new(), None, events),
        Piece::End => Ok(()),
    }
}

enum Mode {
    /// An item that nobody asked for, or that was answered already.
    Skip,
    /// The UID.
    Uid,
    /// Octets pass as they are; whether they are the value's first.
    Pass(bool),
    /// BODY[]: octets still to drop, octets still to pass, and the renamer.
    Whole { skip: u64, take: u64, renamer: Option<Neutraliser> },
    /// The header is collected.
    Header(Vec<u8>),
}

/// What a response came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It carried nothing that was asked for.
    Nothing,
    /// It carried data, and nothing said whose.
    Blind,
    /// It was written; with the message's length where that isn't the known one.
    Written { measured: Option<u64> },
    /// It was good, but not due.
    Dropped,
    /// It doesn't tell whether the message is there.
    Doubtful,
}

/// Turns one response of the provider into ours.
pub(super) struct Answer<'a> {
    live: &'a VecDeque<InFlight>,
    wanted: &'a Wanted,
    /// What is written next.
    sink: &'a mut Vec<u8>,
    /// Where in the sink this response starts, while all of it is there.
    start: Option<usize>,
    /// What waits until it is sure that the message is there; `None` since.
    held: Option<Vec<u8>>,
    /// Nothing is written: others are due.
    dropping: bool,
    /// The message is alone in flight, and the provider says that it is there.
    alone: bool,
    uid: Option<UpstreamUid>,
    /// The message in flight that it is about, once an item of it came.
    pub(super) at: Option<usize>,
    /// An item was begun.
    begun: bool,
    blind: bool,
    doubtful: bool,
    measured: Option<u64>,
    mode: Mode,
}

impl<'a> Answer<'a> {
    /// Before the first event of a response.
    pub(super) fn new(
        live: &'a VecDeque<InFlight>,
        wanted: &'a Wanted,
        sink: &'a mut Vec<u8>,
        dropping: bool,
        alone: bool,
    ) -> Answer<'a> {
        Answer {
            live,
            wanted,
            start: Some(sink.len()),
            sink,
            held: Some(Vec::new()),
            dropping,
            alone,
            uid: None,
            at: None,
            begun: false,
            blind: false,
            doubtful: false,
            measured: None,
            mode: Mode::Skip,
        }
    }

    /// What it came to, once all of it was taken.
    pub(super) fn ending(&self) -> Ending {
        match (self.doubtful, self.begun) {
            // A message that is there and whose data isn't is not shown empty.
            (true, _) if self.alone => Ending::Nothing,
            (true, _) => Ending::Doubtful,
            (false, false) if self.blind => Ending::Blind,
            (false, false) => Ending::Nothing,
            (false, true) if self.dropping => Ending::Dropped,
            (false, true) => Ending::Written { measured: self.measured },
        }
    }

    /// Takes back what can be; an error after the client saw the start of the
    /// response ends the connection.
    fn failed(&mut self, e: Fail) -> Fail {
        match (self.start, &e) {
            (_, Fail::Io(_)) => e,
            (Some(start), _) => {
                self.sink.truncate(start);
                e
            }
            (None, _) => cut_short(&e.to_string()),
        }
    }

    fn event(&mut self, event: Event) -> Result<(), Fail> {
        match event {
            Event::Begin { .. } => Ok(()),
            Event::Item(name) => self.item(&name),
            Event::Raw(raw) => self.raw(&raw),
            Event::Literal(len) => self.literal(len),
            Event::Chunk(chunk) => {
                self.chunk(&chunk);
                Ok(())
            }
            Event::ItemEnd => {
                self.item_end();
                Ok(())
            }
            Event::End => {
                if self.begun && !self.doubtful {
                    self.put(b")\r\n");
                    self.settle();
                }
                Ok(())
            }
        }
    }

    fn job(&self) -> Option<&'a Job> {
        self.live.get(self.at?).map(|f| &f.job)
    }

    /// Finds the message in flight that this is about; whether there is one.
    fn attribute(&mut self) -> bool {
        if self.at.is_none() {
            let (uid, single) = (self.uid, self.live.len() == 1);
            self.at = self.live.iter().position(|f| f.is_waiting() && uid.map_or(single, |u| u == f.job.up));
            self.blind |= self.at.is_none() && uid.is_none();
            // Those before it are due first.
            self.dropping |= self.at.is_some_and(|at| at > 0);
        }
        self.at.is_some()
    }

    fn put(&mut self, octets: &[u8]) {
        if self.dropping || self.doubtful {
            return;
        }
        match &mut self.held {
            Some(held) => {
                held.extend_from_slice(octets);
                if held.len() > MAX_HELD {
                    self.settle();
                }
            }
            None => self.sink.extend_from_slice(octets),
        }
    }

    /// The message is there: what was held is written.
    fn settle(&mut self) {
        if let Some(held) = self.held.take() {
            self.sink.extend_from_slice(&held);
        }
    }

    /// What came may stand for a message that is gone.
    fn doubt(&mut self) -> Result<(), Fail> {
        if self.held.is_none() && !self.dropping {
            return Err(cut_short("a message went while it was sent"));
        }
        self.doubtful = true;
        self.mode = Mode::Skip;
        Ok(())
    }

    fn begin_item(&mut self, name: &str) {
        let Some(job) = self.job() else { return };
        let first = !std::mem::replace(&mut self.begun, true);
        let space = if first && job.head.ends_with('(') { "" } else { " " };
        if first {
            match self.measured {
                // It says the length that follows, not the one that was known.
                Some(length) => {
                    let stamp = job.stamp.as_ref().map_or(0, |s| s.len() as u64);
                    let size = |n: u64| format!("RFC822.SIZE {}", n + stamp);
                    self.put(job.head.replacen(&size(job.size), &size(length), 1).as_bytes());
                }
                None => self.put(job.head.as_bytes()),
            }
        }
        self.put(space.as_bytes());
        self.put(name.as_bytes());
        self.put(b" ");
    }

    fn announce(&mut self, length: u64) {
        self.put(format!("{{{length}}}\r\n").as_bytes());
    }

    fn item(&mut self, name: &[u8]) -> Result<(), Fail> {
        let upper = String::from_utf8_lossy(name).to_ascii_uppercase();
        self.mode = match upper.as_str() {
            "UID" => Mode::Uid,
            "FLAGS" | "MODSEQ" | "RFC822.SIZE" | "INTERNALDATE" => Mode::Skip,
            _ if self.doubtful || !self.attribute() => Mode::Skip,
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
                self.begin_item(&name);
                Mode::Pass(true)
            }
        };
        Ok(())
    }

    fn raw(&mut self, raw: &Bytes) -> Result<(), Fail> {
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
            Mode::Pass(true) if self.held.is_some() && !self.alone && is_hollow(raw) => self.doubt(),
            Mode::Pass(first) => {
                *first = false;
                self.put(raw);
                Ok(())
            }
            // RFC 9051 §7.5.2: NIL is no message, and a message that is there
            // has a header and a body.
            Mode::Whole { .. } | Mode::Header(_) if raw.eq_ignore_ascii_case(b"NIL") => self.doubt(),
            Mode::Whole { .. } | Mode::Header(_) => {
                // A short body may come quoted.
                let inside = raw.strip_prefix(b"\"").and_then(|r| r.strip_suffix(b"\"")).unwrap_or(raw);
                let data = crate::wire::imap::unescape(inside).into_owned();
                self.literal(data.len() as u64)?;
                self.chunk(&data);
                Ok(())
            }
        }
    }

    fn literal(&mut self, len: u64) -> Result<(), Fail> {
        match &self.mode {
            Mode::Skip | Mode::Uid => Ok(()),
            Mode::Pass(_) => {
                self.announce(len);
                self.settle();
                Ok(())
            }
            Mode::Header(_) if len > MAX_HEADER as u64 => {
                Err(Fail::No("LIMIT", "the header is too large to be shown".into()))
            }
            Mode::Header(_) => Ok(()),
            Mode::Whole { skip, take, .. } => {
                let body = len.saturating_sub(*skip).min(*take);
                let Some(job) = self.job() else { return Ok(()) };
                let Some(w) = &job.whole else { return Ok(()) };
                if w.upstream.is_none() && len != job.size {
                    if len == 0 && !self.alone {
                        return self.doubt();
                    }
                    self.measured = Some(len);
                }
                let stamp = job.stamp.as_deref().unwrap_or("").as_bytes();
                let stamp = stamp.get(w.stamp.0..w.stamp.1).unwrap_or(b"");
                self.begin_item(&w.name);
                self.announce(stamp.len() as u64 + body);
                self.put(stamp);
                self.settle();
                Ok(())
            }
        }
    }

    fn chunk(&mut self, chunk: &[u8]) {
        let mut mode = std::mem::replace(&mut self.mode, Mode::Skip);
        match &mut mode {
            Mode::Skip | Mode::Uid => {}
            Mode::Pass(_) => self.put(chunk),
            Mode::Header(all) => all.extend_from_slice(chunk),
            Mode::Whole { skip, take, renamer } => match renamer {
                Some(r) if !r.in_body() => {
                    let mut renamed = Vec::with_capacity(chunk.len() + LOOKAHEAD as usize);
                    r.push(chunk, &mut renamed);
                    self.put(clip(&renamed, skip, take));
                }
                _ => self.put(clip(chunk, skip, take)),
            },
        }
        self.mode = mode;
    }

    fn item_end(&mut self) {
        match std::mem::replace(&mut self.mode, Mode::Skip) {
            Mode::Skip | Mode::Uid | Mode::Pass(_) => {}
            Mode::Whole { mut skip, mut take, renamer } => {
                let mut rest = Vec::new();
                if let Some(r) = renamer {
                    r.finish(&mut rest);
                }
                self.put(clip(&rest, &mut skip, &mut take));
            }
            Mode::Header(octets) => self.header(&octets),
        }
    }

    /// Writes the header and the fields of it that were asked for.
    fn header(&mut self, octets: &[u8]) {
        let mut whole = self.job().and_then(|j| j.stamp.as_deref()).unwrap_or("").as_bytes().to_vec();
        let mut n = Neutraliser::new();
        n.push(octets, &mut whole);
        n.finish(&mut whole);
        let wanted = self.wanted;
        let items = wanted.items.iter().filter_map(|i| match i {
            Item::Header(name, fields, partial) => Some((name, fields, *partial)),
            _ => None,
        });
        for (name, fields, partial) in items {
            let (name, fields, partial): (&String, &Fields, Partial) = (name, fields, partial);
            let selected = select_fields(&whole, fields);
            let data = cut(&selected, partial);
            self.begin_item(name);
            self.announce(data.len() as u64);
            self.put(data);
        }
        self.settle();
    }
}

/// Whether a value may stand for a message that is gone: NIL, an ENVELOPE of
/// NILs, and the BODY or BODYSTRUCTURE of an empty message.
fn is_hollow(raw: &[u8]) -> bool {
    const EMPTY: &[u8] = b"(\"text\" \"plain\" NIL NIL NIL \"7bit\" 0";
    let nil = |word: &[u8]| word.is_empty() || word.eq_ignore_ascii_case(b"NIL");
    raw.split(|b| matches!(b, b' ' | b'(' | b')')).all(nil)
        || raw.get(..EMPTY.len()).is_some_and(|start| start.eq_ignore_ascii_case(EMPTY))
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
