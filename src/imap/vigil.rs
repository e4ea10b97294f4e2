//! The watching connection between two commands: IDLE or polling, requests of
//! sessions, a machine that slept.
//!
//! Promises: a request that wasn't begun when the connection ended is not
//! lost; a connection that died is noticed within [`Timing::idle_renew`] and
//! [`Timing::alive`]. Doesn't know: what the requests do.
//!
//! [`Timing::idle_renew`]: super::timing::Timing::idle_renew
//! [`Timing::alive`]: super::timing::Timing::alive

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::upstream::imap::{Response, Status, UntaggedData};

use super::mirror::Op;
use super::timing::Sleepless;
use super::watch::{WatchError, Watcher};

/// Expunges that come one by one are looked at together, once the provider
/// paused for this long.
const QUIET: Duration = Duration::from_millis(30);

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
    /// Serves requests and watches, until the connection ends. A request that
    /// wasn't begun when it did stays in `waiting`.
    pub(super) async fn serve(
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
                Woken::Look if !idles => self.noop().await?,
                Woken::Look => {}
            }
            if idles {
                self.end_idle().await?;
            }
            self.mirror.pool.sweep(false);
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
                    if self.exists != self.order.len() {
                        return Ok(Woken::Look);
                    }
                    self.settle().await?;
                    if self.contradicted {
                        return Ok(Woken::Look);
                    }
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
}
