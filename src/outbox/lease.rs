//! Whose attempt it is: a dispatcher claims a hold for a while and renews the
//! claim as long as it is at work.
//!
//! Promises: of several dispatchers over one store only the one that claimed
//! a hold begins its DATA and writes its outcome; a claim whose dispatcher is
//! gone is seen. Doesn't know: what becomes of such a hold;
//! [`super::recover`] makes it `unknown`, because DATA may have begun.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Outbox;
use super::hold::{Hold, HoldError, HoldId};
use super::record;
use crate::floor::digest::to_hex;
use crate::floor::submission::State;

/// How long a claim lasts without being renewed, in seconds.
pub const LEASE_SECONDS: i64 = 90;
/// How often claims are renewed.
pub(super) const RENEW: Duration = Duration::from_secs(30);
/// Random octets of a dispatcher's name.
const NAME_OCTETS: usize = 8;

/// A dispatcher's claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lease {
    /// The dispatcher.
    by: String,
    /// The opening of the store that it stands on, where only one can be.
    opening: Option<String>,
    /// Seconds since 1970 after which the claim is over.
    until: i64,
}

impl Lease {
    /// The same claim, from `now` on.
    pub(super) fn lasting_from(&self, now: i64) -> Lease {
        Lease { until: now.saturating_add(LEASE_SECONDS), ..self.clone() }
    }

    /// Whether `hold` is still being sent under the claim that `attempt` was
    /// begun with, renewed or not.
    pub(super) fn same(claim: &Option<Lease>, hold: &Hold, attempt: u32) -> bool {
        let by = |lease: &Option<Lease>| lease.as_ref().map(|l| l.by.clone());
        hold.state == State::Sending && hold.attempt == attempt && by(claim) == by(&hold.lease)
    }
}

/// A dispatcher's name, and what it is at work on.
#[derive(Debug)]
pub(super) struct Dispatcher {
    name: String,
    at_work: Mutex<HashSet<HoldId>>,
}

impl Dispatcher {
    pub(super) fn new() -> Result<Dispatcher, getrandom::Error> {
        let mut name = [0; NAME_OCTETS];
        getrandom::fill(&mut name)?;
        Ok(Dispatcher { name: to_hex(&name), at_work: Mutex::default() })
    }

    fn at_work(&self) -> std::sync::MutexGuard<'_, HashSet<HoldId>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What tells an attempt that nobody is at work on.
#[derive(Debug, Clone)]
pub(super) struct Orphans {
    name: String,
    at_work: HashSet<HoldId>,
    opening: Option<String>,
}

impl Orphans {
    /// Whether `hold` is being sent by nobody any more.
    pub(super) fn has(&self, hold: &Hold, now: i64) -> bool {
        if hold.state != State::Sending {
            return false;
        }
        // Claimed before there were leases.
        let Some(lease) = &hold.lease else { return true };
        if lease.by == self.name {
            return !self.at_work.contains(&hold.id);
        }
        match (&self.opening, &lease.opening) {
            (Some(ours), Some(theirs)) if ours != theirs => true,
            _ => lease.until <= now,
        }
    }
}

impl Outbox {
    /// A fresh claim of ours.
    pub(super) fn lease(&self, now: i64) -> Lease {
        Lease {
            by: self.dispatcher.name.clone(),
            opening: self.store.sole_opening().map(str::to_owned),
            until: now.saturating_add(LEASE_SECONDS),
        }
    }

    /// Notes that an attempt is under way here.
    pub(super) fn begin_work(&self, id: &HoldId) {
        self.dispatcher.at_work().insert(id.clone());
    }

    /// Notes that it has ended.
    pub(super) fn end_work(&self, id: &HoldId) {
        self.dispatcher.at_work().remove(id);
    }

    /// Tells attempts that nobody is at work on any more.
    pub(super) fn orphans(&self) -> Orphans {
        Orphans {
            name: self.dispatcher.name.clone(),
            at_work: self.dispatcher.at_work().clone(),
            opening: self.store.sole_opening().map(str::to_owned),
        }
    }

    /// Renews the claim of `hold`; without one that is still ours nothing may
    /// be sent.
    pub(super) async fn keep_lease(&self, hold: &Hold) -> Result<(), HoldError> {
        let (id, attempt, claim) = (hold.id.clone(), hold.attempt, hold.lease.clone());
        let clock = (self.tuning.clock)();
        self.commit("lease", move |w| {
            let mut hold = record::load(w, &id)?.ok_or(HoldError::NotFound)?;
            let now = record::now(w, clock)?;
            let lasts = hold.lease.as_ref().is_some_and(|lease| lease.until > now);
            if !lasts || !Lease::same(&claim, &hold, attempt) {
                return Err(HoldError::LostLease);
            }
            hold.lease = hold.lease.map(|lease| lease.lasting_from(now));
            record::save(w, &hold)?;
            Ok(())
        })
        .await
    }

    /// Renews every claim of ours that is at work.
    pub(super) async fn renew_leases(&self) -> Result<(), HoldError> {
        let ids: Vec<HoldId> = self.dispatcher.at_work().iter().cloned().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let clock = (self.tuning.clock)();
        let name = self.dispatcher.name.clone();
        self.commit("lease", move |w| {
            let now = record::now(w, clock)?;
            for id in &ids {
                let Some(mut hold) = record::load(w, id)? else { continue };
                let ours = hold.lease.as_ref().is_some_and(|lease| lease.by == name);
                if hold.state == State::Sending && ours {
                    hold.lease = hold.lease.map(|lease| lease.lasting_from(now));
                    record::save(w, &hold)?;
                }
            }
            Ok::<_, HoldError>(())
        })
        .await
    }
}
