//! The watching connection of an account: it mirrors INBOX, and it alone
//! changes it.
//!
//! Promises: every change of INBOX that a session asks for is issued here, one
//! after another, so replies and updates can't reorder; a mirror that lost
//! its connection gets a new one, with growing pauses; where no secret is
//! stored, there is a connection only while somebody is signed in. Doesn't
//! know: clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use crate::store::failpoint;
use crate::upstream::imap::{Connection, ImapError, Status};

use super::mirror::{Health, Mirror, Op, OpError};
use super::timing::Sleepless;
use super::uid::UpstreamUid;

/// Expunges that come one by one are looked at together, once the provider
/// paused for this long.
const QUIET: Duration = Duration::from_millis(30);
/// What requests are answered where no secret is stored and nobody brought one.
const NOBODY: &str = "nobody is signed in to the account";

/// Runs until `shutdown` becomes true.
pub async fn run(mirror: Arc<Mirror>, ops: mpsc::Receiver<Op>, shutdown: watch::Receiver<bool>) {
    watch(&mirror, ops, shutdown).await;
    // What waits for models is found again at the next start.
    mirror.pending.clear();
}

async fn watch(mirror: &Arc<Mirror>, mut ops: mpsc::Receiver<Op>, mut shutdown: watch::Receiver<bool>) {
    let timing = mirror.pool.timing().clone();
    let mut pause = timing.retry_first;
    // A request that no connection has begun.
    let mut waiting: Option<Op> = None;
    // Compared over all connections: the machine may sleep between two.
    let mut sleepless = Sleepless::new(&timing.clock);
    loop {
        if !await_somebody(mirror, &mut ops, &mut waiting, &mut shutdown).await {
            return;
        }
        let mut lived = None;
        let ended = tokio::select! {
            ended = attempt(mirror, &mut ops, &mut waiting, &mut sleepless, &mut lived) => ended,
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
            Err(WatchError::Deserted) => continue,
            Err(WatchError::Lost(why)) => why,
        };
        tracing::warn!(account = %mirror.account, "the provider's IMAP connection is gone: {why}");
        mirror.pool.sweep(true);
        if sleepless.slept() {
            mirror.pool.slept();
        }
        let lived = lived.map_or(Duration::ZERO, |since: Instant| since.elapsed());
        if lived > timing.retry_most {
            pause = timing.retry_first;
        }
        if lived >= timing.steady {
            // Sessions wait for the new connection instead of a refusal.
            mirror.health.send_replace(Health::Starting);
            continue;
        }
        if is_deserted(mirror) {
            continue;
        }
        mirror.health.send_replace(Health::Down(why.clone()));
        tokio::select! {
            () = answer_all(&mut ops, &mut waiting, &why, Some(pause)) => {}
            // Another login may open what this one didn't.
            () = somebody_came_or_went(mirror) => {}
            _ = shutdown.wait_for(|stop| *stop) => return,
        }
        pause = (pause * 2).min(timing.retry_most);
    }
}

fn is_deserted(mirror: &Mirror) -> bool {
    mirror.pool.logins().is_some_and(|logins| logins.none())
}

/// Where no secret is stored: waits for a session with a login of its own, and
/// keeps nothing open meanwhile. False when told to stop.
async fn await_somebody(
    mirror: &Mirror,
    ops: &mut mpsc::Receiver<Op>,
    waiting: &mut Option<Op>,
    shutdown: &mut watch::Receiver<bool>,
) -> bool {
    let Some(logins) = mirror.pool.logins() else { return true };
    let mut present = logins.present();
    if *present.borrow_and_update() > 0 {
        return true;
    }
    tracing::info!(account = %mirror.account, "nobody is signed in: the provider is left alone");
    mirror.health.send_replace(Health::Starting);
    loop {
        // Also when one came and went at once.
        mirror.pool.deserted();
        tokio::select! {
            changed = present.changed() => if changed.is_err() { return false },
            () = answer_all(ops, waiting, NOBODY, None) => return false,
            _ = shutdown.wait_for(|stop| *stop) => return false,
        }
        if *present.borrow_and_update() > 0 {
            return true;
        }
    }
}

/// Resolves when nobody is signed in any more; never where a secret is stored.
async fn deserted(mirror: &Mirror) {
    let Some(logins) = mirror.pool.logins() else { return std::future::pending().await };
    // The sender lives as long as the account does.
    let _ = logins.present().wait_for(|present| *present == 0).await;
}

/// Resolves when the number of sessions with their own login changes; never
/// where a secret is stored.
async fn somebody_came_or_went(mirror: &Mirror) {
    let Some(logins) = mirror.pool.logins() else { return std::future::pending().await };
    // The sender lives as long as the account does.
    let _ = logins.present().changed().await;
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
            | Op::PostLocals(.., r)
            | Op::RemoveLocals(.., r)
            | Op::RemoveLocalNamed(_, r)
            | Op::Measured(_, r) => drop(r.send(Err(e))),
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
            | Op::PostLocals(.., r)
            | Op::RemoveLocals(.., r)
            | Op::RemoveLocalNamed(_, r)
            | Op::Measured(_, r) => r.is_closed(),
            Op::CopyOut(.., r) => r.is_closed(),
            Op::Relane(.., r) => r.is_closed(),
            Op::Backfill(.., r) => r.is_closed(),
        }
    }

    /// Whether the provider isn't asked for it: it may run during IDLE.
    fn is_local(&self) -> bool {
        match self {
            Op::StoreLocal(..)
            | Op::MarkEntries(..)
            | Op::DropEntries(..)
            | Op::PostLocals(..)
            | Op::RemoveLocals(..)
            | Op::RemoveLocalNamed(..) => true,
            Op::Sync(_)
            | Op::Store(..)
            | Op::CopyOut(..)
            | Op::Expunge(..)
            | Op::Relane(..)
            | Op::Correct(..)
            | Op::Undo(..)
            | Op::Measured(..)
            | Op::Backfill(..) => false,
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
    /// Nobody is signed in any more.
    #[error("nobody is signed in")]
    Deserted,
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
    sleepless: &mut Sleepless,
    lived: &mut Option<Instant>,
) -> Result<(), WatchError> {
    let connection = mirror.pool.open_to_watch().await.map_err(|e| WatchError::Lost(e.to_string()))?;
    let mut watcher = Watcher::new(mirror.clone(), connection);
    watcher.prepare().await?;
    watcher.select().await?;
    *lived = Some(Instant::now());
    mirror.health.send_replace(Health::Live);
    tracing::info!(account = %mirror.account, messages = watcher.order.len(), "INBOX is mirrored");
    let ended = watcher.serve(ops, waiting, sleepless).await;
    if let Err(WatchError::Deserted) = ended {
        // A provider that doesn't answer loses the connection all the same.
        let _ = tokio::time::timeout(mirror.pool.timing().alive, watcher.connection.logout()).await;
    }
    ended
}

/// The watching connection and what it knows of sequence numbers.
pub(super) struct Watcher {
    pub(super) mirror: Arc<Mirror>,
    pub(super) connection: Connection,
    /// UIDs in the order of this connection's sequence numbers.
    pub(super) order: Vec<UpstreamUid>,
    pub(super) exists: usize,
    /// `order` contradicted what the provider said, or may have.
    pub(super) unsure: bool,
    /// EXISTS and our own count, where learning anew didn't make them equal: a
    /// provider that leaves a message out is not asked again and again.
    pub(super) accepted: Option<(usize, usize)>,
    pub(super) gone: Vec<UpstreamUid>,
    pub(super) flags: BTreeMap<UpstreamUid, Vec<String>>,
    /// What the request in hand removes.
    pub(super) own: BTreeSet<UpstreamUid>,
    /// A second connection contradicted this one, which selects anew.
    pub(super) contradicted: bool,
}

/// What ended a wait.
enum Woken {
    Op(Op),
    /// Nobody can ask any more.
    Closed,
    /// The last session with its own login ended.
    Deserted,
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
            accepted: None,
            gone: Vec::new(),
            flags: BTreeMap::new(),
            own: BTreeSet::new(),
            contradicted: false,
        }
    }

    /// Serves requests and watches, until the connection ends. A request that
    /// wasn't begun when it did stays in `waiting`.
    async fn serve(
        &mut self,
        ops: &mut mpsc::Receiver<Op>,
        waiting: &mut Option<Op>,
        sleepless: &mut Sleepless,
    ) -> Result<(), WatchError> {
        let mut idles = self.connection.capabilities().has("IDLE");
        loop {
            while let Some(op) = waiting.take().or_else(|| ops.try_recv().ok()) {
                self.serve_one(op).await?;
            }
            self.settle().await?;
            let began = Instant::now();
            if idles && !self.begin_idle().await? {
                idles = false;
            }
            let woken = self.wait(ops, idles, sleepless).await?;
            match woken {
                Woken::Closed => return Ok(()),
                Woken::Over(status) => {
                    self.connection.idle_over();
                    // Asked again at once it would only end again.
                    idles = status == Status::Ok && began.elapsed() >= self.mirror.pool.timing().idle_least;
                    continue;
                }
                Woken::Op(op) => *waiting = Some(op),
                Woken::Deserted => {}
                Woken::Look if !idles => self.noop().await?,
                Woken::Look => {}
            }
            if idles {
                self.end_idle().await?;
            }
            self.mirror.pool.sweep(false);
            if is_deserted(&self.mirror) {
                return Err(WatchError::Deserted);
            }
            if std::mem::take(&mut self.contradicted) {
                self.select().await?;
            }
        }
    }

    async fn serve_one(&mut self, op: Op) -> Result<(), WatchError> {
        if op.is_abandoned() {
            return Ok(());
        }
        self.own = op.removes();
        let done = match op {
            // What a deletion is made of.
            Op::Store(..) | Op::Expunge(..) | Op::CopyOut(..) => failpoint::within("inbox", self.handle(op)).await,
            op => self.handle(op).await,
        };
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
        let mirror = self.mirror.clone();
        let deserted = deserted(&mirror);
        tokio::pin!(deserted);
        loop {
            tokio::select! {
                () = &mut deserted => return Ok(Woken::Deserted),
                op = ops.recv() => match op {
                    None => return Ok(Woken::Closed),
                    Some(op) if op.is_local() => self.serve_one(op).await?,
                    Some(op) => return Ok(Woken::Op(op)),
                },
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
                    if self.contradicted {
                        return Ok(Woken::Look);
                    }
                }
                // It is shown by what is known already; nothing is asked.
                () = mirror.pending.told() => self.place_told().await?,
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
}
