//! The loop: what is due is claimed, sent and settled; what nobody decided
//! expires; claims at work are renewed; the witness follows the ledger.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Outbox;
use super::dispatch::Outcome;
use super::hold::{Hold, HoldError};
use super::lease::{Lease, RENEW};
use super::record;
use crate::account::AccountId;
use crate::floor::ledger::Event;
use crate::floor::submission::{Refusal, State, Transition};
use crate::store::{self, failpoint};

/// Attempts under way at once.
const MAX_ATTEMPTS: usize = 8;
/// Attempts of one account under way at once: a provider that is silent for
/// ten minutes must not stop the other accounts.
const MAX_ATTEMPTS_PER_ACCOUNT: usize = 3;
/// The longest sleep between looks at what is due: clocks may jump.
const MAX_SLEEP: Duration = Duration::from_secs(60);
/// How long attempts under way may go on after a shutdown was asked for;
/// what is cut off then is unknown at the next start.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(20);
/// The longest pause between two tries to write the outcome of an attempt.
const MAX_SETTLE_PAUSE: Duration = Duration::from_secs(60);
/// Longest reason that is kept, in characters.
const MAX_DETAIL_CHARS: usize = 400;

impl Outbox {
    /// Dispatches and expires until `shutdown` becomes true.
    pub async fn run(self: Arc<Self>, mut shutdown: watch::Receiver<bool>) {
        if let Err(error) = self.recover().await {
            tracing::error!(%error, "can't tell what was under way; nothing is dispatched");
            return;
        }
        let mut attempts = JoinSet::new();
        let mut renew = tokio::time::interval(RENEW);
        while !*shutdown.borrow() {
            while attempts.try_join_next().is_some() {}
            let sleep = match self.turn(&mut attempts).await {
                Ok(sleep) => sleep,
                Err(error) => {
                    tracing::error!(%error, "the outbox can't be read");
                    MAX_SLEEP
                }
            };
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(sleep) => {}
                _ = attempts.join_next(), if !attempts.is_empty() => {}
                _ = renew.tick() => self.renew().await,
                changed = shutdown.changed() => if changed.is_err() { break },
            }
        }
        let rest = async { while attempts.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_GRACE, rest).await.is_err() {
            tracing::warn!("an attempt was cut off; its outcome will be unknown");
        }
        self.follow().await.unwrap_or_else(|error| tracing::warn!(%error, "the last entries have no witness"));
    }

    async fn renew(&self) {
        if let Err(error) = self.renew_leases().await {
            tracing::error!(%error, "claims can't be renewed");
        }
    }

    /// Expires and starts what is due; says how long nothing else is.
    async fn turn(self: &Arc<Self>, attempts: &mut JoinSet<()>) -> Result<Duration, HoldError> {
        let (open, now) =
            store::read(self.store.as_ref(), |r| -> Result<_, HoldError> { Ok((record::open(r)?, self.now(r)?)) })?;
        let mut next = i64::try_from(MAX_SLEEP.as_secs()).unwrap_or(i64::MAX);
        let mut busy: HashMap<AccountId, usize> = HashMap::new();
        self.follow().await.unwrap_or_else(|error| tracing::error!(%error, "the ledger can't be witnessed"));
        let orphans = self.orphans();
        if open.iter().any(|h| orphans.has(h, now)) {
            self.doubt_orphans().await?;
        }
        for hold in open.iter().filter(|h| h.state == State::Sending) {
            *busy.entry(hold.account.clone()).or_default() += 1;
        }
        for hold in open {
            let due = match hold.state {
                State::Held => hold.expires_at,
                State::Approved => Some(hold.next_attempt.unwrap_or(now)),
                _ => None,
            };
            let Some(due) = due else { continue };
            if due > now {
                next = next.min(due - now);
            } else if hold.state == State::Held {
                self.expire(&hold).await?;
            } else if attempts.len() < MAX_ATTEMPTS
                && busy.get(&hold.account).is_none_or(|n| *n < MAX_ATTEMPTS_PER_ACCOUNT)
                && let Some(claimed) = self.claim(&hold).await?
            {
                *busy.entry(hold.account.clone()).or_default() += 1;
                let this = self.clone();
                self.begin_work(&claimed.id);
                attempts.spawn(failpoint::within("dispatch", async move {
                    this.attempt(&claimed).await;
                    this.end_work(&claimed.id);
                }));
            }
        }
        Ok(Duration::from_secs(u64::try_from(next).unwrap_or(1).max(1)))
    }

    /// approved → sending, unless somebody else was faster.
    pub(super) async fn claim(&self, hold: &Hold) -> Result<Option<Hold>, HoldError> {
        let (id, clock, lease) = (hold.id.clone(), (self.tuning.clock)(), self.lease(0));
        let _order = self.in_order(&id).await;
        let claimed = self
            .commit("claim", move |w| -> Result<Option<Hold>, HoldError> {
                let Some(mut hold) = record::load(w, &id)?.filter(|h| h.state == State::Approved) else {
                    return Ok(None);
                };
                hold.attempt = hold.attempt.saturating_add(1);
                hold.next_attempt = None;
                hold.lease = Some(lease.lasting_from(record::now(w, clock)?));
                let event = Event::Sending { hold: id.to_string(), attempt: hold.attempt };
                record::transition(w, &mut hold, Transition::Claim, clock, event, None)?;
                Ok(Some(hold))
            })
            .await?;
        if let Some(hold) = &claimed {
            self.announce(hold);
        }
        Ok(claimed)
    }

    async fn attempt(&self, hold: &Hold) {
        let outcome = self.send(hold).await;
        tracing::info!(hold = %hold.id, attempt = hold.attempt, outcome = outcome.name(), "attempt ended");
        // What is known is worth writing however long the disk is full; where
        // it can't be, the next start finds `sending` and makes that `unknown`.
        let mut pause = Duration::from_secs(1);
        loop {
            match self.settle(hold, &outcome).await {
                Ok(()) => return,
                Err(HoldError::LostLease) => {
                    tracing::error!(hold = %hold.id, outcome = outcome.name(), "the claim ran out before the attempt did");
                    return;
                }
                Err(error) => tracing::error!(hold = %hold.id, %error, "the outcome can't be written"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_SETTLE_PAUSE);
        }
    }

    /// sending → what the attempt came to.
    pub(super) async fn settle(&self, claimed: &Hold, outcome: &Outcome) -> Result<(), HoldError> {
        let (id, clock, attempt) = (claimed.id.clone(), (self.tuning.clock)(), claimed.attempt);
        let delay = (self.tuning.retry_seconds)(attempt);
        let name = id.to_string();
        let (transition, event, detail) = match outcome {
            Outcome::Sent(payload, reply) => {
                (Transition::Delivered, Event::Sent { hold: name, attempt, payload: *payload }, reply)
            }
            Outcome::ForNow(why) => {
                let event = Event::Retry { hold: name, attempt, reason: why.code.clone() };
                (Transition::NotSent(Refusal::ForNow), event, &why.text)
            }
            Outcome::ForGood(why) => {
                let event = Event::Failed { hold: name, attempt, reason: why.code.clone() };
                (Transition::NotSent(Refusal::ForGood), event, &why.text)
            }
            Outcome::Unknown(why) => {
                let event = Event::Unknown { hold: name, attempt, reason: why.code.clone() };
                (Transition::NoAnswer, event, &why.text)
            }
        };
        let detail: String = detail.chars().take(MAX_DETAIL_CHARS).collect();
        let _order = self.in_order(&id).await;
        let claim = claimed.lease.clone();
        let hold = self
            .commit(outcome.doing(), move |w| -> Result<Hold, HoldError> {
                let mut hold = record::load(w, &id)?.ok_or(HoldError::NotFound)?;
                if !Lease::same(&claim, &hold, attempt) {
                    return Err(HoldError::LostLease);
                }
                let entry = record::transition(w, &mut hold, transition, clock, event.clone(), Some(detail.clone()))?;
                if let Some(row) = record::receipt(w, &id)? {
                    if hold.state == State::Approved {
                        // At the receipt's end it is claimed once more, and ends.
                        let due = entry.time.saturating_add(delay).min(row.receipt.payload.expiry);
                        hold.next_attempt = Some(due);
                        record::save(w, &hold)?;
                    } else {
                        record::spend(w, &id)?;
                    }
                }
                Ok(hold)
            })
            .await?;
        self.announce(&hold);
        Ok(())
    }

    async fn expire(&self, hold: &Hold) -> Result<(), HoldError> {
        let (id, clock) = (hold.id.clone(), (self.tuning.clock)());
        let _order = self.in_order(&id).await;
        let expired = self
            .commit("expire", move |w| -> Result<Option<Hold>, HoldError> {
                let Some(mut hold) = record::load(w, &id)?.filter(|h| h.state == State::Held) else { return Ok(None) };
                let event = Event::Expired { hold: id.to_string() };
                record::transition(w, &mut hold, Transition::Expire, clock, event, None)?;
                Ok(Some(hold))
            })
            .await?;
        expired.iter().for_each(|hold| self.announce(hold));
        Ok(())
    }
}

impl Outcome {
    /// Names the settling transaction among the failpoints.
    fn doing(&self) -> &'static str {
        match self {
            Outcome::Sent(..) => "settle-sent",
            Outcome::ForNow(_) => "settle-retry",
            Outcome::ForGood(_) => "settle-failed",
            Outcome::Unknown(_) => "settle-unknown",
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Outcome::Sent(..) => "sent",
            Outcome::ForNow(_) => "retry",
            Outcome::ForGood(_) => "failed",
            Outcome::Unknown(_) => "unknown",
        }
    }
}
