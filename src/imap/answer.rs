//! The provider's answers to a FETCH over a view, turned into ours while they
//! stream.
//!
//! Promises: an answer goes to the message whose UID it carries; stamps are
//! put before and forged ones renamed without collecting a body. Doesn't know:
//! what was asked before the commands were written.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;

use crate::lane::stamp::Neutraliser;
use crate::upstream::imap::{Status, Tag};
use crate::wire::imap::Piece;

use super::fetch::{Job, LOOKAHEAD};
use super::pool::Lease;
use super::scan::{Event, FetchScan, fetch_head};
use super::section::{Fields, Item, Partial, Wanted, cut, select_fields};
use super::session::{Fail, Out};
use super::uid::UpstreamUid;

/// Largest header section that is worked on, in octets.
const MAX_HEADER: usize = 4 * 1024 * 1024;

/// A command in flight and the message that it asks for.
pub(super) struct InFlight {
    tag: Tag,
    job: Job,
    answered: bool,
}

/// Commands in flight and what became of those that ended.
///
/// RFC 9051 §5.5 lets a server answer several commands before it completes
/// the first (Dovecot does), so the tagged responses don't separate the
/// answers: the UID in each does.
pub(super) struct Round<'a> {
    pub(super) live: VecDeque<InFlight>,
    /// Ended without an answer.
    pub(super) missed: Vec<Job>,
    /// An answer was dropped because nothing said whose it was.
    pub(super) blind: bool,
    pub(super) wanted: &'a Wanted,
}

impl Round<'_> {
    pub(super) async fn run(
        &mut self,
        lease: &mut Lease,
        out: &mut Out,
        jobs: Vec<Job>,
        most: usize,
    ) -> Result<(), Fail> {
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
    Fail::Cut(format!("the provider's answer was cut short: {why}"))
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
