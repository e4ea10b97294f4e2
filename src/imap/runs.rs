//! Asking the provider for the messages of a FETCH.
//!
//! Promises: responses are written in the order of the plan, whatever the
//! provider's order is; a message is told only from data that is there; what
//! is in flight is bounded in messages and octets. Doesn't know: what a
//! response is made of.
//!
//! One command asks for a run of messages, and several are in flight. RFC 9051
//! §5.5 lets a server answer several commands before it completes the first,
//! so the UID in each answer says whose it is. An answer is written only when
//! it is the one that is due. When another comes, or one that is doubtful,
//! nothing more of what is in flight is written: it is read to its end, the
//! provider is asked which of the unclear messages it has, and what is left is
//! asked for again, unclear messages one at a time. A provider that answers in
//! an order of its own is asked for one message at a time from then on.
//!
//! Doubtful: Dovecot answers for a message that another session expunged as if
//! it were there and empty (`BODY[] NIL`, an ENVELOPE of NILs), as long as the
//! command that asked for it runs, and completes it with OK [EXPUNGEISSUED].

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use tokio::io::AsyncWriteExt;

use crate::upstream::imap::{ImapError, Status, Tag, UntaggedData};
use crate::wire::imap::Piece;

use super::answer::{Answer, Ending, SINK, stream_one};
use super::fetch::{Job, Step, Steps, write_local};
use super::mirror::Mirror;
use super::patient::Stall;
use super::pool::Lease;
use super::scan::fetch_head;
use super::session::{Fail, Out};
use super::uid::{UpstreamUid, sequence_set};

/// Messages that one command asks for at most.
const RUN: usize = 64;
/// Octets of messages that one command asks for, unless one has more.
const RUN_OCTETS: u64 = 512 * 1024;
/// Messages in flight at most.
const IN_FLIGHT: usize = 4 * RUN;
/// Octets of messages in flight at most, unless one has more. They are read
/// for nothing where the provider's answers are of no use.
const IN_FLIGHT_OCTETS: u64 = 4 * RUN_OCTETS;

/// Looks at a client while it may take nothing before it is given up.
const LOOKS: u32 = 8;

/// What became of a FETCH.
pub(super) struct Done {
    /// Messages whose length isn't the one that was known.
    pub(super) measured: Vec<(UpstreamUid, u64)>,
    /// Messages that the provider doesn't have, or whose data it doesn't have.
    pub(super) missed: Vec<UpstreamUid>,
    /// The provider says that messages were expunged, and not which.
    pub(super) expunged: bool,
    pub(super) outcome: Result<(), Fail>,
}

/// Writes every response of a plan.
pub(super) async fn run(steps: &mut Steps<'_>, out: &mut Out) -> Done {
    let mut runs = Runs::default();
    let stalled = stalled(steps.mirror, out.get_ref().stall());
    let mut outcome = tokio::select! {
        biased;
        done = runs.all(steps, out) => done,
        () = stalled => {
            // The end of the session may take longer; the connection to the
            // provider ends now.
            runs.lease = None;
            // Nobody knows how much of it was written.
            runs.sink.clear();
            Err(Fail::Cut("the client takes nothing, and others wait".into()))
        }
    };
    // The start of a response that can't be finished is written too: the
    // connection ends after it.
    if !runs.sink.is_empty()
        && !matches!(outcome, Err(Fail::Io(_)))
        && let Err(e) = out.write_all(&runs.sink).await
    {
        outcome = Err(e.into());
    }
    if outcome.is_ok()
        && let Some(lease) = runs.lease
    {
        lease.give_back();
    }
    Done { measured: runs.measured, missed: runs.missed, expunged: runs.expunged, outcome }
}

/// Ends when the client takes nothing while others wait for the connection to
/// the provider that it keeps.
async fn stalled(mirror: &Mirror, stall: Stall) {
    let most = mirror.pool.timing().write_contested;
    loop {
        tokio::time::sleep(most / LOOKS).await;
        if stall.lasts() >= most && mirror.pool.is_contested() {
            return;
        }
    }
}

/// How far a message in flight is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// It was answered, and the answer not written.
    Answered,
    /// What came doesn't tell whether it is there.
    Doubtful,
}

/// A message in flight and the command that asks for it.
pub(super) struct InFlight {
    tag: Tag,
    pub(super) job: Job,
    state: State,
}

impl InFlight {
    /// Whether an answer can be for it.
    pub(super) fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }
}

#[derive(Default)]
struct Runs {
    lease: Option<Lease>,
    /// What comes before the plan goes on.
    queue: VecDeque<Step>,
    /// Messages in flight that aren't written yet, in their order.
    live: VecDeque<InFlight>,
    /// Commands that aren't completed.
    open: VecDeque<Tag>,
    /// The one message in flight has to be alone.
    alone: bool,
    /// Nothing of what is in flight is written any more.
    troubled: bool,
    /// The provider is asked for one message at a time.
    careful: bool,
    /// What is still to be written.
    sink: Vec<u8>,
    missed: Vec<UpstreamUid>,
    expunged: bool,
    measured: Vec<(UpstreamUid, u64)>,
}

impl Runs {
    async fn all(&mut self, steps: &mut Steps<'_>, out: &mut Out) -> Result<(), Fail> {
        loop {
            if !self.troubled {
                self.fill(steps, out).await?;
            }
            let Some(lease) = self.lease.as_mut().filter(|_| !self.open.is_empty()) else { return Ok(()) };
            match next_of(lease, &self.open).await? {
                Next::Fetch(text) => self.answer(steps, out, text).await?,
                Next::Done { tag, status, expunged } => self.ended(tag, status, expunged)?,
            }
            if self.troubled && self.open.is_empty() {
                self.look_again().await?;
            }
        }
    }

    /// Writes what needs no provider and sends commands, as far as both are
    /// possible now.
    async fn fill(&mut self, steps: &mut Steps<'_>, out: &mut Out) -> Result<(), Fail> {
        while self.has_room() {
            let Some(step) = self.next(steps).await? else { return Ok(()) };
            let waits = match &step {
                Step::Known(_) | Step::Local(..) => !self.open.is_empty(),
                Step::Ask(job) => {
                    let same = |f: &InFlight| f.job.up == job.up;
                    !self.open.is_empty() && (job.alone || self.live.iter().any(same))
                }
            };
            if waits {
                self.queue.push_front(step);
                return Ok(());
            }
            match step {
                Step::Known(text) => {
                    self.sink.extend_from_slice(text.as_bytes());
                    if self.sink.len() >= SINK {
                        out.write_all(&self.sink).await?;
                        self.sink.clear();
                    }
                }
                Step::Local(n, head) => {
                    out.write_all(&self.sink).await?;
                    self.sink.clear();
                    write_local(steps.mirror, out, n, head, steps.wanted).await?;
                }
                Step::Ask(job) => {
                    let jobs = self.run_from(job, steps).await?;
                    self.send(steps.mirror, jobs).await?;
                }
            }
        }
        Ok(())
    }

    /// Whether another run may be sent, or something that needs no provider.
    fn has_room(&self) -> bool {
        if self.open.is_empty() {
            return true;
        }
        let octets: u64 = self.live.iter().map(|f| f.job.cost()).sum();
        !self.alone
            && !self.careful
            && self.live.len() + RUN <= IN_FLIGHT
            && octets.saturating_add(RUN_OCTETS) <= IN_FLIGHT_OCTETS
    }

    async fn next(&mut self, steps: &mut Steps<'_>) -> Result<Option<Step>, Fail> {
        match self.queue.pop_front() {
            Some(step) => Ok(Some(step)),
            None => steps.next().await,
        }
    }

    /// The messages that one command asks for: their UIDs ascend at the
    /// provider as they do in the view, so that answers come in this order.
    async fn run_from(&mut self, first: Job, steps: &mut Steps<'_>) -> Result<Vec<Job>, Fail> {
        let single = self.careful || first.alone;
        let mut octets = first.cost();
        let mut jobs = vec![first];
        while !single && jobs.len() < RUN {
            let Some(step) = self.next(steps).await? else { break };
            let last = &jobs[jobs.len() - 1];
            match step {
                Step::Ask(job)
                    if !job.alone
                        && last.up < job.up
                        && last.command == job.command
                        && octets.saturating_add(job.cost()) <= RUN_OCTETS =>
                {
                    octets += job.cost();
                    jobs.push(job);
                }
                other => {
                    self.queue.push_front(other);
                    break;
                }
            }
        }
        Ok(jobs)
    }

    async fn send(&mut self, mirror: &Mirror, jobs: Vec<Job>) -> Result<(), Fail> {
        let lease = match &mut self.lease {
            Some(lease) => lease,
            empty => empty.insert(connect(mirror).await?),
        };
        let uids: Vec<u32> = jobs.iter().map(|j| j.up.get()).collect();
        let command = format!("UID FETCH {} (UID {})", sequence_set(&uids), jobs[0].command);
        let tag = lease.send(command.as_bytes()).await?;
        self.alone = self.careful || jobs[0].alone;
        self.open.push_back(tag);
        self.live.extend(jobs.into_iter().map(|job| InFlight { tag, job, state: State::Waiting }));
        Ok(())
    }

    /// Reads one FETCH response and writes it where it is due.
    async fn answer(&mut self, steps: &Steps<'_>, out: &mut Out, first: Bytes) -> Result<(), Fail> {
        let Some(lease) = &mut self.lease else { return Ok(()) };
        let mut answer = Answer::new(&self.live, steps.wanted, &mut self.sink, self.troubled, self.alone);
        stream_one(lease, out, &mut answer, first).await?;
        let (at, ending) = (answer.at, answer.ending());
        let Some(at) = at else {
            if ending == Ending::Blind {
                // With one message in flight an answer is known without its UID.
                (self.troubled, self.careful) = (true, true);
            }
            return Ok(());
        };
        match ending {
            Ending::Written { measured } => {
                if let Some(flight) = self.live.remove(at) {
                    self.measured.extend(measured.map(|length| (flight.job.up, length)));
                }
            }
            Ending::Dropped => {
                self.troubled = true;
                self.live[at].state = State::Answered;
            }
            Ending::Doubtful => {
                self.troubled = true;
                self.live[at].state = State::Doubtful;
            }
            Ending::Nothing | Ending::Blind => {}
        }
        Ok(())
    }

    /// A command is complete.
    fn ended(&mut self, tag: Tag, status: Status, expunged: bool) -> Result<(), Fail> {
        self.open.retain(|t| *t != tag);
        let left = self.live.iter().filter(|f| f.tag == tag).count();
        if left == 0 && status != Status::Ok {
            return Err(cut_short("the provider refused mid-way"));
        }
        if self.alone {
            // Neither answered nor doubted any more.
            self.missed.extend(self.live.drain(..).map(|f| f.job.up));
            self.alone = false;
        } else if left > 0 {
            self.troubled = true;
        }
        self.expunged |= expunged && !self.troubled;
        Ok(())
    }

    /// Nothing is in flight any more, and some of it wasn't written: finds out
    /// what is there and asks for that again.
    async fn look_again(&mut self) -> Result<(), Fail> {
        self.troubled = false;
        let mut unclear: Vec<u32> =
            self.live.iter().filter(|f| f.state != State::Answered).map(|f| f.job.up.get()).collect();
        // All are there: it was but the order.
        self.careful |= unclear.is_empty();
        unclear.sort_unstable();
        let there = match &mut self.lease {
            Some(lease) if !unclear.is_empty() => roll_call(lease, &unclear).await?,
            _ => BTreeSet::new(),
        };
        for mut flight in std::mem::take(&mut self.live).into_iter().rev() {
            if flight.state != State::Answered {
                if !there.contains(&flight.job.up.get()) {
                    self.missed.push(flight.job.up);
                    continue;
                }
                flight.job.alone = true;
            }
            self.queue.push_front(Step::Ask(flight.job));
        }
        Ok(())
    }
}

impl Job {
    /// Octets that the provider will send for it, as far as they count.
    fn cost(&self) -> u64 {
        match &self.whole {
            Some(w) => w.upstream.map_or(self.size, |(_, count)| u64::from(count).min(self.size)),
            None if self.command.contains("BODY.PEEK[") => self.size,
            None => 0,
        }
    }
}

/// Which of these messages the provider has.
async fn roll_call(lease: &mut Lease, uids: &[u32]) -> Result<BTreeSet<u32>, Fail> {
    // RFC 9051 §7.5.1: a server may keep expunged messages until a command
    // that is no FETCH.
    lease.run(b"NOOP").await?;
    let outcome = lease.run(format!("UID FETCH {} (UID)", sequence_set(uids)).as_bytes()).await?;
    if outcome.status != Status::Ok {
        // It doesn't say; each is asked for.
        return Ok(uids.iter().copied().collect());
    }
    let uid = |data| match data {
        UntaggedData::Fetch { items, .. } => items.uid,
        _ => None,
    };
    Ok(outcome.untagged.iter().filter_map(|u| uid(u.parse())).collect())
}

/// A connection that knows every message of the mirror.
async fn connect(mirror: &Mirror) -> Result<Lease, Fail> {
    let mut lease = mirror.pool.inbox().await?;
    let (validity, newest) = {
        let state = mirror.state();
        (state.uidvalidity, state.messages.last_key_value().map_or(0, |(uid, _)| uid.get()))
    };
    if lease.inbox_validity() != validity {
        return Err(Fail::No("UNAVAILABLE", "the mailbox is being rebuilt".into()));
    }
    if lease.must_look_for(newest) {
        // A connection that selected INBOX earlier may not know new mail yet.
        lease.run(b"NOOP").await?.ok()?;
        lease.knows(newest);
    }
    Ok(lease)
}

pub(super) fn cut_short(why: &str) -> Fail {
    Fail::Cut(format!("the provider's answer was cut short: {why}"))
}

enum Next {
    Fetch(Bytes),
    /// The end of a command; whether messages that it asked for were gone.
    Done {
        tag: Tag,
        status: Status,
        expunged: bool,
    },
}

/// The next piece; a timer is set only where it has to be waited for.
pub(super) async fn piece(lease: &mut Lease) -> Result<Piece, ImapError> {
    match lease.ready_piece()? {
        Some(piece) => Ok(piece),
        None => lease.piece_in_time().await,
    }
}

/// The next FETCH response or the end of a command; all else is skipped.
async fn next_of(lease: &mut Lease, open: &VecDeque<Tag>) -> Result<Next, Fail> {
    loop {
        let Piece::Text(text) = piece(lease).await? else { continue };
        if fetch_head(&text).is_some() {
            return Ok(Next::Fetch(text));
        }
        while piece(lease).await? != Piece::End {}
        let mut words = text.splitn(4, |b| *b == b' ');
        let mut word = || words.next().unwrap_or_default();
        let (tag, status, code) = (word(), word().to_ascii_uppercase(), word());
        let Some(tag) = open.iter().find(|t| t.to_string().as_bytes() == tag) else { continue };
        let status = match &status[..] {
            b"OK" => Status::Ok,
            b"NO" => Status::No,
            _ => Status::Bad,
        };
        return Ok(Next::Done { tag: *tag, status, expunged: code.eq_ignore_ascii_case(b"[EXPUNGEISSUED]") });
    }
}
