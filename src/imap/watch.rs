//! The watching connection of an account: it mirrors INBOX, and it alone
//! changes it.
//!
//! Promises: every change of INBOX that a session asks for is issued here, one
//! after another, so replies and updates can't reorder; a mirror that lost
//! its connection gets a new one, with growing pauses. Doesn't know: clients.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use crate::perceive::MAX_READ;
use crate::store::Table;
use crate::upstream::imap::{Connection, FetchItems, ImapError, Response, Status, Untagged, UntaggedData, Value};

use super::lanes::{LaneMap, Place};
use super::mirror::{Health, Mirror, Offers, Op, OpError};
use super::perceiving::{Arrived, now, plan_arrival};
use super::plan::Plan;
use super::pool::Lease;
use super::rows::{self, MessageRow, MirrorRow, ViewRow};
use super::timing::Sleepless;
use super::uid::{UpstreamUid, ViewUid, sequence_set};
use super::view::{Audience, View};

/// New messages committed at once.
const ARRIVALS_PER_COMMIT: usize = 32;
/// UIDs named in one FETCH while catching up.
const UIDS_PER_FETCH: usize = 200;
/// How long new mail waits for a client's own message that is entering INBOX.
const ARRIVALS_WAIT: Duration = Duration::from_secs(30);
/// A loss of more than one in this many messages is confirmed on a second
/// connection before anyone is told.
const SUDDEN_LOSS: usize = 5;
/// Smaller mailboxes lose what they lose.
const SUDDEN_LOSS_MIN: usize = 10;
/// How often sequence numbers are learned anew before the next look.
const REORDER_TRIES: usize = 3;
/// View UIDVALIDITY counts seconds from 2025-01-01, and so stays below 2^31
/// for decades.
const VALIDITY_EPOCH: i64 = 1_735_689_600;

/// Expunges that come one by one are looked at together, once the provider
/// paused for this long.
const QUIET: Duration = Duration::from_millis(30);

/// Runs until `shutdown` becomes true.
pub async fn run(mirror: Arc<Mirror>, mut ops: mpsc::Receiver<Op>, mut shutdown: watch::Receiver<bool>) {
    let timing = mirror.pool.timing().clone();
    let mut pause = timing.retry_first;
    // A request that no connection has begun.
    let mut waiting: Option<Op> = None;
    loop {
        let mut lived = None;
        let ended = tokio::select! {
            ended = attempt(&mirror, &mut ops, &mut waiting, &mut lived) => ended,
            _ = shutdown.wait_for(|stop| *stop) => return,
        };
        let why = match ended {
            Ok(()) => return,
            Err(WatchError::Refused(why)) => {
                tracing::error!(account = %mirror.account, "{why}");
                mirror.health.send_replace(Health::Refused(why.clone()));
                tokio::select! {
                    () = answer_all(&mut ops, &mut waiting, &why, None) => return,
                    _ = shutdown.wait_for(|stop| *stop) => return,
                }
            }
            Err(WatchError::Lost(why)) => why,
        };
        tracing::warn!(account = %mirror.account, "the provider's IMAP connection is gone: {why}");
        mirror.pool.sweep(true);
        let lived = lived.map_or(Duration::ZERO, |since: Instant| since.elapsed());
        if lived > timing.retry_most {
            pause = timing.retry_first;
        }
        if lived >= timing.steady {
            // Sessions wait for the new connection instead of a refusal.
            mirror.health.send_replace(Health::Starting);
            continue;
        }
        mirror.health.send_replace(Health::Down(why.clone()));
        tokio::select! {
            () = answer_all(&mut ops, &mut waiting, &why, Some(pause)) => {}
            _ = shutdown.wait_for(|stop| *stop) => return,
        }
        pause = (pause * 2).min(timing.retry_most);
    }
}

/// Answers every request that the provider can't be reached, for a while.
async fn answer_all(ops: &mut mpsc::Receiver<Op>, waiting: &mut Option<Op>, why: &str, during: Option<Duration>) {
    if let Some(op) = waiting.take() {
        op.fail(OpError::Unavailable(why.to_owned()));
    }
    let end = async {
        match during {
            Some(d) => tokio::time::sleep(d).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return,
            op = ops.recv() => match op {
                None => return,
                Some(op) => op.fail(OpError::Unavailable(why.to_owned())),
            },
        }
    }
}

impl Op {
    /// Answers with an error.
    fn fail(self, e: OpError) {
        // A session that no longer waits needs no answer.
        match self {
            Op::Sync(r)
            | Op::Store(.., r)
            | Op::StoreLocal(.., r)
            | Op::MarkEntries(.., r)
            | Op::DropEntries(.., r)
            | Op::Expunge(.., r)
            | Op::Correct(.., r)
            | Op::Undo(_, r)
            | Op::PostLocal(.., r)
            | Op::RemoveLocals(.., r)
            | Op::RemoveLocalNamed(_, r) => drop(r.send(Err(e))),
            Op::CopyOut(.., r) => drop(r.send(Err(e))),
            Op::Relane(.., r) => drop(r.send(Err(e))),
            Op::Backfill(.., r) => drop(r.send(Err(e))),
        }
    }
}

impl Op {
    /// Whether the session that asked no longer waits. It was told NO, so
    /// that nothing may happen any more.
    fn is_abandoned(&self) -> bool {
        match self {
            Op::Sync(r)
            | Op::Store(.., r)
            | Op::StoreLocal(.., r)
            | Op::MarkEntries(.., r)
            | Op::DropEntries(.., r)
            | Op::Expunge(.., r)
            | Op::Correct(.., r)
            | Op::Undo(_, r)
            | Op::PostLocal(.., r)
            | Op::RemoveLocals(.., r)
            | Op::RemoveLocalNamed(_, r) => r.is_closed(),
            Op::CopyOut(.., r) => r.is_closed(),
            Op::Relane(.., r) => r.is_closed(),
            Op::Backfill(.., r) => r.is_closed(),
        }
    }

    /// The messages that it takes out of INBOX at our own wish.
    fn removes(&self) -> BTreeSet<UpstreamUid> {
        match self {
            Op::Expunge(uids, _) | Op::CopyOut(uids, _, true, _) => uids.iter().copied().collect(),
            _ => BTreeSet::new(),
        }
    }
}

/// Why watching ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    /// Try again later.
    #[error("{0}")]
    Lost(String),
    /// A person has to change something first.
    #[error("{0}")]
    Refused(String),
}

impl From<ImapError> for WatchError {
    fn from(e: ImapError) -> WatchError {
        WatchError::Lost(e.to_string())
    }
}

impl From<OpError> for WatchError {
    fn from(e: OpError) -> WatchError {
        WatchError::Lost(e.to_string())
    }
}

async fn attempt(
    mirror: &Arc<Mirror>,
    ops: &mut mpsc::Receiver<Op>,
    waiting: &mut Option<Op>,
    lived: &mut Option<Instant>,
) -> Result<(), WatchError> {
    let connection = mirror.pool.open().await.map_err(|e| WatchError::Lost(e.to_string()))?;
    let mut watcher = Watcher::new(mirror.clone(), connection);
    watcher.prepare().await?;
    watcher.select().await?;
    *lived = Some(Instant::now());
    mirror.health.send_replace(Health::Live);
    tracing::info!(account = %mirror.account, messages = watcher.order.len(), "INBOX is mirrored");
    watcher.serve(ops, waiting).await
}

/// The watching connection and what it knows of sequence numbers.
pub(super) struct Watcher {
    pub(super) mirror: Arc<Mirror>,
    pub(super) connection: Connection,
    /// UIDs in the order of this connection's sequence numbers.
    order: Vec<UpstreamUid>,
    exists: usize,
    /// `order` contradicts what the provider said, or may.
    unsure: bool,
    gone: Vec<UpstreamUid>,
    flags: BTreeMap<UpstreamUid, Vec<String>>,
    /// What the request in hand removes.
    own: BTreeSet<UpstreamUid>,
    /// A second connection contradicted this one.
    contradicted: bool,
}

/// What ended a wait.
enum Woken {
    Op(Op),
    /// Nobody can ask any more.
    Closed,
    /// Something has to be looked at, or it is time to.
    Look,
    /// The provider answered IDLE by itself.
    Over(Status),
}

impl Watcher {
    fn new(mirror: Arc<Mirror>, connection: Connection) -> Watcher {
        Watcher {
            mirror,
            connection,
            order: Vec::new(),
            exists: 0,
            unsure: false,
            gone: Vec::new(),
            flags: BTreeMap::new(),
            own: BTreeSet::new(),
            contradicted: false,
        }
    }

    /// Learns delimiter and prefix, refuses a collision of names.
    async fn prepare(&mut self) -> Result<(), WatchError> {
        let has = |name: &str| self.connection.capabilities().has(name);
        let uidplus = has("UIDPLUS");
        self.mirror.state().offers = Offers { uidplus, moves: uidplus || has("MOVE") };
        let mut prefix = String::new();
        let mut delimiter = '/';
        if self.connection.capabilities().has("NAMESPACE") {
            let outcome = self.connection.run(b"NAMESPACE").await?.ok()?;
            for u in &outcome.untagged {
                if let Some((p, d)) = super::scan::personal_namespace(&u.text) {
                    (prefix, delimiter) = (p, d);
                }
            }
        } else {
            let outcome = self.connection.run(b"LIST \"\" \"\"").await?.ok()?;
            for u in &outcome.untagged {
                if let UntaggedData::List { delimiter: Some(d), .. } = u.parse() {
                    delimiter = d as char;
                }
            }
        }
        let lanes = LaneMap::new(self.mirror.settings.lanes, delimiter, &prefix);
        let wanted = super::pass::quote(lanes.parent().as_bytes());
        let outcome = self.connection.run(&[b"LIST \"\" ".as_slice(), &wanted].concat()).await?.ok()?;
        for u in &outcome.untagged {
            if let UntaggedData::List { name, .. } = u.parse()
                && lanes.owns(&name)
            {
                let name = String::from_utf8_lossy(&name).into_owned();
                return Err(WatchError::Refused(format!(
                    "the provider has a mailbox called {name:?}, where the lanes would be shown: rename it there"
                )));
            }
        }
        self.mirror.state().lanes = Some(lanes);
        Ok(())
    }

    /// Selects INBOX and brings the mirror to what the provider has.
    async fn select(&mut self) -> Result<(), WatchError> {
        let selected = self.connection.select(b"INBOX", false).await?;
        let known = self.mirror.state().uidvalidity;
        let first = known.is_none();
        let mut rejoin: HashMap<(Option<String>, String, u64), MessageRow> = HashMap::new();
        if known != Some(selected.uidvalidity) {
            rejoin = self.reset(selected.uidvalidity).await?;
        }
        self.ensure_views().await?;
        self.exists = selected.exists as usize;
        self.resync(first, rejoin).await
    }

    /// Starts over under a new UIDVALIDITY of the provider; answers what was
    /// known, so that messages find their lanes again.
    async fn reset(
        &mut self,
        uidvalidity: u32,
    ) -> Result<HashMap<(Option<String>, String, u64), MessageRow>, WatchError> {
        let mut plan = Plan::new(&self.mirror.account);
        let mut rejoin = HashMap::new();
        let old: Vec<UpstreamUid> = {
            let state = self.mirror.state();
            for m in state.messages.values() {
                rejoin.insert((m.row.message_id.clone(), m.row.date.clone(), m.row.size), (*m.row).clone());
            }
            for uid in state.messages.keys() {
                plan.forget(&state, *uid);
            }
            state.messages.keys().copied().collect()
        };
        let key = rows::mirror_key(&self.mirror.account);
        plan.json(Table::Meta, key, &MirrorRow { uidvalidity })?;
        let raised: Vec<(rows::ViewId, u32)> = if old.is_empty() {
            Vec::new()
        } else {
            let state = self.mirror.state();
            state.views.iter().map(|(id, v)| (*id, fresh_validity().max(v.uidvalidity + 1))).collect()
        };
        for (id, validity) in &raised {
            let row = ViewRow { uidvalidity: *validity, next: ViewUid::FIRST, recent: None };
            plan.json(Table::View, rows::view_key(&self.mirror.account, *id), &row)?;
        }
        plan.execute(&self.mirror).await?;
        let mut locals = Plan::new(&self.mirror.account);
        {
            let mut state = self.mirror.state();
            state.uidvalidity = Some(uidvalidity);
            let numbers: Vec<u32> = state.locals.keys().copied().collect();
            for (id, validity) in raised {
                state.views.insert(id, View::new(validity));
            }
            // Notices stay: they are shown anew under the new UIDVALIDITY.
            if !old.is_empty() {
                for n in numbers {
                    let inbox = (Audience::People, Place::Inbox);
                    locals.push(&state, inbox, super::view::Source::Local(n))?;
                }
            }
        }
        locals.execute(&self.mirror).await?;
        Ok(rejoin)
    }

    async fn ensure_views(&mut self) -> Result<(), WatchError> {
        let mut plan = Plan::new(&self.mirror.account);
        let mut made = Vec::new();
        {
            let state = self.mirror.state();
            let Some(lanes) = &state.lanes else { return Ok(()) };
            for audience in Audience::BOTH {
                for place in lanes.places() {
                    let id = (audience, place);
                    if state.views.contains_key(&id) {
                        continue;
                    }
                    let validity = fresh_validity();
                    let row = ViewRow { uidvalidity: validity, next: ViewUid::FIRST, recent: None };
                    plan.json(Table::View, rows::view_key(&self.mirror.account, id), &row)?;
                    made.push((id, validity));
                }
            }
        }
        plan.execute(&self.mirror).await?;
        let mut state = self.mirror.state();
        for (id, validity) in made {
            state.views.insert(id, View::new(validity));
        }
        Ok(())
    }

    /// Compares every UID and flag with the provider.
    async fn resync(
        &mut self,
        first: bool,
        mut rejoin: HashMap<(Option<String>, String, u64), MessageRow>,
    ) -> Result<(), WatchError> {
        let mut there = self.uids_and_flags().await?;
        self.order = there.iter().map(|(u, _)| *u).collect();
        let set: BTreeSet<UpstreamUid> = self.order.iter().copied().collect();
        let lost: Vec<UpstreamUid> =
            self.mirror.state().messages.keys().filter(|u| !set.contains(u)).copied().collect();
        self.gone.extend(lost);
        self.flags.extend(there.drain(..));
        let missing: Vec<UpstreamUid> = {
            let state = self.mirror.state();
            self.order.iter().filter(|u| !state.messages.contains_key(u)).copied().collect()
        };
        let perceive = !first || self.mirror.perceives_existing();
        for chunk in missing.chunks(UIDS_PER_FETCH) {
            let numbers: Vec<u32> = chunk.iter().map(|u| u.get()).collect();
            self.fetch_new(&sequence_set(&numbers), perceive, &mut rejoin).await?;
        }
        self.settle().await?;
        self.relocate().await
    }

    async fn uids_and_flags(&mut self) -> Result<Vec<(UpstreamUid, Vec<String>)>, WatchError> {
        if self.exists == 0 {
            return Ok(Vec::new());
        }
        let outcome = self.connection.run(b"UID FETCH 1:* (UID FLAGS)").await?.ok()?;
        let mut list: BTreeMap<UpstreamUid, Vec<String>> = BTreeMap::new();
        let mut by_seq: HashMap<u32, UpstreamUid> = HashMap::new();
        for u in &outcome.untagged {
            match u.parse() {
                UntaggedData::Fetch { seq, items } => {
                    let uid = items.uid.and_then(UpstreamUid::new).or_else(|| by_seq.get(&seq).copied());
                    if let (Some(uid), Some(flags)) = (uid, &items.flags) {
                        by_seq.insert(seq, uid);
                        // A flag that changes meanwhile is told again: the
                        // last word counts.
                        list.insert(uid, strings(flags));
                    }
                }
                other => {
                    if matches!(other, UntaggedData::Expunge(_)) {
                        by_seq.clear();
                    }
                    self.absorb_data(other);
                }
            }
        }
        Ok(list.into_iter().collect())
    }

    /// What of `lost` is really gone. A sudden loss that wasn't our own doing
    /// is first looked at over a second connection.
    async fn confirmed(&mut self, mut lost: Vec<UpstreamUid>) -> Result<Vec<UpstreamUid>, WatchError> {
        {
            let mut state = self.mirror.state();
            lost.retain(|u| state.messages.contains_key(u));
            let others = lost.iter().filter(|u| !self.own.contains(u)).count();
            if !is_sudden(others, state.messages.len()) {
                return Ok(lost);
            }
            let doubted = std::mem::take(&mut state.doubted);
            if lost.iter().all(|u| doubted.contains(u)) {
                return Ok(lost);
            }
        }
        tracing::warn!(account = %self.mirror.account, messages = lost.len(), "a sudden loss: looking again");
        let there = match self.mirror.pool.any().await {
            Ok(second) => self.second_look(second).await?,
            Err(e) => {
                // The next watching connection is the second one then.
                self.mirror.state().doubted = lost.into_iter().collect();
                return Err(WatchError::Lost(format!("a sudden loss could not be confirmed: {e}")));
            }
        };
        let before = lost.len();
        lost.retain(|u| !there.contains(u));
        self.contradicted |= lost.len() < before;
        Ok(lost)
    }

    /// The UIDs of INBOX as another connection sees them.
    async fn second_look(&self, mut second: Lease) -> Result<BTreeSet<UpstreamUid>, WatchError> {
        second.forget_selection();
        let selected = second.select(b"INBOX", true).await?;
        if self.mirror.state().uidvalidity != Some(selected.uidvalidity) {
            return Err(WatchError::Lost("INBOX has another UIDVALIDITY".into()));
        }
        if selected.exists == 0 {
            return Ok(BTreeSet::new());
        }
        let outcome = second.run(b"UID FETCH 1:* (UID)").await?.ok()?;
        let uids = outcome.untagged.iter().filter_map(|u| match u.parse() {
            UntaggedData::Fetch { items, .. } => items.uid.and_then(UpstreamUid::new),
            _ => None,
        });
        Ok(uids.collect())
    }

    /// Moves stamped messages whose lane the preset now shows elsewhere.
    async fn relocate(&mut self) -> Result<(), WatchError> {
        let mut plan = Plan::new(&self.mirror.account);
        {
            let state = self.mirror.state();
            let Some(lanes) = state.lanes.clone() else { return Ok(()) };
            let places = lanes.places();
            for (uid, m) in &state.messages {
                let want = match m.row.lane {
                    _ if m.row.by_person && places.contains(&m.row.place) => m.row.place,
                    Some(lane) => lanes.place(lane),
                    None if places.contains(&m.row.place) => m.row.place,
                    None => Place::Inbox,
                };
                if want == m.row.place {
                    continue;
                }
                let source = super::view::Source::Upstream(*uid);
                for audience in Audience::BOTH {
                    let old = (audience, m.row.place);
                    if let Some(v) = state.views.get(&old).and_then(|v| v.uid_of(source)) {
                        plan.remove(old, v);
                    }
                    plan.push(&state, (audience, want), source)?;
                }
                let row = MessageRow { place: want, ..(*m.row).clone() };
                plan.message(*uid, super::mirror::Message { row: Arc::new(row), ..m.clone() })?;
            }
        }
        Ok(plan.execute(&self.mirror).await?)
    }

    /// Serves requests and watches, until the connection ends. A request that
    /// wasn't begun when it did stays in `waiting`.
    async fn serve(&mut self, ops: &mut mpsc::Receiver<Op>, waiting: &mut Option<Op>) -> Result<(), WatchError> {
        let mut idles = self.connection.capabilities().has("IDLE");
        let mut sleepless = Sleepless::new(&self.mirror.pool.timing().clock);
        loop {
            while let Some(op) = waiting.take().or_else(|| ops.try_recv().ok()) {
                self.serve_one(op).await?;
            }
            self.settle().await?;
            let began = Instant::now();
            if idles && !self.begin_idle().await? {
                idles = false;
            }
            let woken = self.wait(ops, idles, &mut sleepless).await?;
            match woken {
                Woken::Closed => return Ok(()),
                Woken::Over(status) => {
                    self.connection.idle_over();
                    // Asked again at once it would only end again.
                    idles = status == Status::Ok && began.elapsed() >= self.mirror.pool.timing().idle_least;
                    continue;
                }
                Woken::Op(op) => *waiting = Some(op),
                Woken::Look if !idles => self.noop().await?,
                Woken::Look => {}
            }
            if idles {
                self.end_idle().await?;
            }
            self.mirror.pool.sweep(false);
            if std::mem::take(&mut self.contradicted) {
                self.reorder().await?;
            }
        }
    }

    async fn serve_one(&mut self, op: Op) -> Result<(), WatchError> {
        if op.is_abandoned() {
            return Ok(());
        }
        self.own = op.removes();
        let done = self.handle(op).await;
        self.own.clear();
        done
    }

    /// Begins IDLE; false where the provider refuses it.
    async fn begin_idle(&mut self) -> Result<bool, WatchError> {
        match self.connection.idle_start().await {
            Ok(()) => Ok(true),
            Err(e) if e.ends_connection() => Err(e.into()),
            Err(e) => {
                tracing::info!(account = %self.mirror.account, "the provider is polled, since IDLE is refused: {e}");
                Ok(false)
            }
        }
    }

    async fn end_idle(&mut self) -> Result<(), WatchError> {
        let alive = self.mirror.pool.timing().alive;
        let outcome = tokio::time::timeout(alive, self.connection.idle_done())
            .await
            .map_err(|_| WatchError::Lost("no answer to the end of IDLE in time".into()))??;
        self.absorb_all(&outcome.untagged);
        Ok(())
    }

    /// Waits for a request, for news, or for the time to look.
    async fn wait(
        &mut self,
        ops: &mut mpsc::Receiver<Op>,
        idles: bool,
        sleepless: &mut Sleepless,
    ) -> Result<Woken, WatchError> {
        let timing = self.mirror.pool.timing().clone();
        let renew = tokio::time::sleep(if idles { timing.idle_renew } else { self.mirror.settings.poll });
        tokio::pin!(renew);
        loop {
            tokio::select! {
                op = ops.recv() => return Ok(op.map_or(Woken::Closed, Woken::Op)),
                response = self.connection.next_response(), if idles => {
                    if let Some(status) = self.absorb_response(response?)? {
                        return Ok(Woken::Over(status));
                    }
                    if !self.gone.is_empty() && let Some(status) = self.gather().await? {
                        return Ok(Woken::Over(status));
                    }
                    // To ask anything, IDLE has to end first.
                    if self.exists != self.order.len() || self.unsure {
                        return Ok(Woken::Look);
                    }
                    self.settle().await?;
                }
                () = tokio::time::sleep(timing.tick) => {
                    if sleepless.slept() {
                        self.mirror.pool.slept();
                        return Err(WatchError::Lost("this machine slept".into()));
                    }
                }
                () = &mut renew => return Ok(Woken::Look),
            }
        }
    }

    /// Takes in what follows an EXPUNGE at once, so that a flood of them
    /// counts as one loss.
    async fn gather(&mut self) -> Result<Option<Status>, WatchError> {
        for _ in 0..self.order.len() {
            let Ok(response) = tokio::time::timeout(QUIET, self.connection.next_response()).await else { break };
            if let Some(status) = self.absorb_response(response?)? {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    pub(super) async fn noop(&mut self) -> Result<(), WatchError> {
        let outcome = self.connection.run(b"NOOP").await?.ok()?;
        self.absorb_all(&outcome.untagged);
        Ok(())
    }

    /// What came during IDLE; a status where it answers the IDLE itself.
    fn absorb_response(&mut self, response: Response) -> Result<Option<Status>, WatchError> {
        match response {
            Response::Untagged(u) => {
                if let UntaggedData::Bye { text } = u.parse() {
                    return Err(WatchError::Lost(String::from_utf8_lossy(&text).into_owned()));
                }
                self.absorb(&u);
                Ok(None)
            }
            // Only IDLE is in flight; a tag that isn't ours answers nothing.
            Response::Tagged { tag, status, .. } => Ok(tag.map(|_| status)),
            Response::Continue(_) => Ok(None),
        }
    }

    pub(super) fn absorb_all(&mut self, list: &[Untagged]) {
        for u in list {
            self.absorb(u);
        }
    }

    fn absorb(&mut self, u: &Untagged) {
        self.absorb_data(u.parse());
    }

    fn absorb_data(&mut self, data: UntaggedData) {
        match data {
            UntaggedData::Exists(n) => self.exists = n as usize,
            UntaggedData::Expunge(seq) => {
                let at = (seq as usize).wrapping_sub(1);
                if at < self.order.len() {
                    self.gone.push(self.order.remove(at));
                } else {
                    self.unsure = true;
                }
                self.exists = self.exists.saturating_sub(1);
            }
            UntaggedData::Fetch { seq, items } => {
                let by_seq = self.order.get((seq as usize).wrapping_sub(1)).copied();
                let by_uid = items.uid.and_then(UpstreamUid::new);
                self.unsure |= by_uid.is_some() && by_seq.is_some() && by_uid != by_seq;
                let uid = by_uid.or(by_seq);
                if let (Some(uid), Some(flags)) = (uid, items.flags) {
                    self.flags.insert(uid, strings(&flags));
                }
            }
            _ => {}
        }
    }

    /// Makes the mirror what was absorbed: losses, flags, arrivals.
    pub(super) async fn settle(&mut self) -> Result<(), WatchError> {
        self.settle_losses().await?;
        self.settle_flags();
        if self.exists > self.order.len() {
            let from = self.order.last().map_or(1, |u| u.get().saturating_add(1));
            self.mirror.perceiving.send_replace(true);
            let fetched = self.fetch_new(&format!("{from}:*"), true, &mut HashMap::new()).await;
            self.mirror.perceiving.send_replace(false);
            fetched?;
        }
        // An EXPUNGE that came among the answers to a UID FETCH may name a
        // message that had no place in our order yet.
        for _ in 0..REORDER_TRIES {
            if self.exists == self.order.len() && !self.unsure {
                break;
            }
            self.reorder().await?;
        }
        self.settle_losses().await?;
        self.mirror.state().synced = Some(Instant::now());
        Ok(())
    }

    async fn settle_losses(&mut self) -> Result<(), WatchError> {
        let gone = std::mem::take(&mut self.gone);
        if gone.is_empty() {
            return Ok(());
        }
        let gone = self.confirmed(gone).await?;
        let mut plan = Plan::new(&self.mirror.account);
        {
            let state = self.mirror.state();
            for uid in gone {
                plan.forget(&state, uid);
            }
        }
        Ok(plan.execute(&self.mirror).await?)
    }

    fn settle_flags(&mut self) {
        let mut changed = false;
        {
            let mut state = self.mirror.state();
            for (uid, flags) in std::mem::take(&mut self.flags) {
                let flags = state.intern(flags);
                let clock = state.clock + 1;
                if let Some(m) = state.messages.get_mut(&uid)
                    && m.flags != flags
                {
                    m.flags = flags;
                    m.flags_at = clock;
                    state.clock = clock;
                    changed = true;
                }
            }
        }
        if changed {
            self.mirror.announce();
        }
    }

    /// Learns the sequence numbers anew, where the provider's count and ours
    /// disagree, drops what is gone and places what was missed.
    async fn reorder(&mut self) -> Result<(), WatchError> {
        let told = self.exists;
        // Without an order, an EXPUNGE among the answers can't be taken for
        // another message's; it makes us unsure again.
        self.order.clear();
        self.unsure = false;
        let there = self.uids_and_flags().await?;
        self.order = there.iter().map(|(u, _)| *u).collect();
        if self.unsure {
            self.flags.extend(there);
            return Ok(());
        }
        if self.exists == told {
            // Nothing came meanwhile: the list is right, not the count.
            self.exists = self.order.len();
        }
        let set: BTreeSet<UpstreamUid> = self.order.iter().copied().collect();
        let lost: Vec<UpstreamUid> =
            self.mirror.state().messages.keys().filter(|u| !set.contains(u)).copied().collect();
        self.gone.extend(lost);
        self.flags.extend(there);
        self.settle_losses().await?;
        self.settle_flags();
        let missing: Vec<u32> = {
            let state = self.mirror.state();
            self.order.iter().filter(|u| !state.messages.contains_key(u)).map(|u| u.get()).collect()
        };
        for chunk in missing.chunks(UIDS_PER_FETCH) {
            self.fetch_new(&sequence_set(chunk), true, &mut HashMap::new()).await?;
        }
        Ok(())
    }

    /// Fetches and places messages that the mirror doesn't have yet.
    async fn fetch_new(
        &mut self,
        set: &str,
        perceive: bool,
        rejoin: &mut HashMap<(Option<String>, String, u64), MessageRow>,
    ) -> Result<(), WatchError> {
        let mirror = self.mirror.clone();
        // A client's own message may be entering: it says where it belongs.
        let _entering = tokio::time::timeout(ARRIVALS_WAIT, mirror.arrivals.lock()).await;
        let with_body = perceive || !rejoin.is_empty();
        let body = if with_body { format!(" BODY.PEEK[]<0.{MAX_READ}>") } else { String::new() };
        let command = format!("UID FETCH {set} (UID FLAGS RFC822.SIZE INTERNALDATE{body})");
        let tag = self.connection.send(command.as_bytes()).await?;
        let mut batch: Vec<Arrived> = Vec::new();
        loop {
            let response = self.connection.response_in_time().await?;
            match response {
                Response::Tagged { tag: Some(t), status, text, .. } if t == tag => {
                    if status != Status::Ok {
                        return Err(WatchError::Lost(format!("FETCH: {}", String::from_utf8_lossy(&text))));
                    }
                    break;
                }
                Response::Tagged { .. } | Response::Continue(_) => {}
                Response::Untagged(u) => match u.parse() {
                    UntaggedData::Fetch { items, seq } => match arrived(&items, with_body) {
                        Some(a) if !mirror.state().messages.contains_key(&a.uid) => {
                            self.append(seq, a.uid);
                            batch.push(a);
                        }
                        _ => self.absorb_data(UntaggedData::Fetch { items, seq }),
                    },
                    UntaggedData::Bye { text } => {
                        return Err(WatchError::Lost(String::from_utf8_lossy(&text).into_owned()));
                    }
                    other => self.absorb_data(other),
                },
            }
            if batch.len() >= ARRIVALS_PER_COMMIT {
                self.place(&mut batch, perceive, rejoin).await?;
            }
        }
        self.place(&mut batch, perceive, rejoin).await
    }

    /// Gives a new message its place in the order of sequence numbers.
    fn append(&mut self, seq: u32, uid: UpstreamUid) {
        let at = (seq as usize).wrapping_sub(1);
        match self.order.get(at) {
            None if at == self.order.len() && self.order.last().is_none_or(|last| *last < uid) => self.order.push(uid),
            Some(known) if *known == uid => {}
            _ => self.unsure = true,
        }
    }

    async fn place(
        &mut self,
        batch: &mut Vec<Arrived>,
        perceive: bool,
        rejoin: &mut HashMap<(Option<String>, String, u64), MessageRow>,
    ) -> Result<(), WatchError> {
        if batch.is_empty() {
            return Ok(());
        }
        batch.sort_by_key(|a| a.uid);
        let mut plan = Plan::new(&self.mirror.account);
        {
            let mut state = self.mirror.state();
            for mut a in batch.drain(..) {
                // It left while the others were fetched.
                if self.gone.contains(&a.uid) {
                    continue;
                }
                let known = known_row(rejoin, &a);
                if !perceive && known.is_none() {
                    a.prefix = None;
                }
                plan_arrival(&self.mirror, &mut state, &mut plan, a, known)?;
            }
        }
        Ok(plan.execute(&self.mirror).await?)
    }
}

/// Whether so many of so many messages may not go without a second look: more
/// than a fifth, or all of several.
fn is_sudden(lost: usize, known: usize) -> bool {
    let all = lost == known && known > 1;
    all || (known >= SUDDEN_LOSS_MIN && lost * SUDDEN_LOSS > known)
}

fn known_row(rejoin: &mut HashMap<(Option<String>, String, u64), MessageRow>, a: &Arrived) -> Option<MessageRow> {
    if rejoin.is_empty() {
        return None;
    }
    let id = a.prefix.as_deref().and_then(super::scan::message_id);
    rejoin.remove(&(id, a.date.clone(), a.size)).or_else(|| rejoin.remove(&(None, a.date.clone(), a.size)))
}

fn arrived(items: &FetchItems, with_body: bool) -> Option<Arrived> {
    let uid = items.uid.and_then(UpstreamUid::new)?;
    let body = items.other.iter().find(|(name, _)| name.to_ascii_uppercase().starts_with(b"BODY["));
    let prefix = match body {
        Some((_, Value::Literal(b) | Value::Quoted(b))) => Some(b.to_vec()),
        Some((_, Value::Raw(_) | Value::Nil)) if with_body => Some(Vec::new()),
        _ => None,
    };
    // Flags of a message that is known may come at any time, and are no arrival.
    if items.size.is_none() && prefix.is_none() {
        return None;
    }
    // What a provider leaves out is no reason to hide a message.
    let size = items.size.unwrap_or_else(|| prefix.as_ref().map_or(0, |p| p.len() as u64));
    let date = match &items.internaldate {
        Some(date) => String::from_utf8_lossy(date).into_owned(),
        None => super::ops::internaldate(now()),
    };
    let flags = items.flags.as_ref().map(|f| strings(f)).unwrap_or_default();
    Some(Arrived { uid, flags, size, date, prefix })
}

fn strings(flags: &[bytes::Bytes]) -> Vec<String> {
    flags.iter().map(|f| String::from_utf8_lossy(f).into_owned()).collect()
}

fn fresh_validity() -> u32 {
    u32::try_from((now() - VALIDITY_EPOCH).max(1)).unwrap_or(1).min(i32::MAX as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_fifth_or_all_of_several_is_a_sudden_loss() {
        for (lost, known, sudden) in
            [(0, 0, false), (1, 1, false), (2, 2, true), (1, 2, false), (8, 9, false), (2, 10, false), (3, 10, true)]
        {
            assert_eq!(is_sudden(lost, known), sudden, "{lost} of {known}");
        }
    }
}
