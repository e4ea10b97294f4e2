//! Messages whose length isn't the one that their provider tells.
//!
//! Promises: after a body came out in another length than was known, the view
//! shows the new length under a new UID (RFC 9051 §2.3.1.1: a UID names one
//! size and one text); the account is marked for good. Doesn't know: how
//! bodies are read; a body that changes and keeps its length isn't noticed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::account::AccountId;
use crate::store::{Reader, StoreError, Table, get_json, read};

use super::mirror::{Message, Mirror, OpError};
use super::perceiving::{now, show};
use super::plan::Plan;
use super::rows::{Measured, MessageRow};
use super::uid::UpstreamUid;
use super::view::Source;
use super::watch::Watcher;

/// New UIDs that one message gets for this. A provider that renders a body
/// anew at each FETCH would have clients fetch it for ever.
const MOST_UIDS: u32 = 3;

/// What is remembered of a provider whose lengths aren't true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When it was noticed first, in Unix seconds.
    pub since: i64,
    /// When it was noticed last.
    pub last: i64,
    /// How often RFC822.SIZE was not the length of a new message.
    pub sizes: u64,
    /// How often a body had another length than was told before.
    pub bodies: u64,
    /// The message of the last time: UID in the provider's INBOX.
    pub uid: u32,
    /// The length that was known.
    pub told: u64,
    /// The length that came.
    pub found: u64,
}

fn key(account: &AccountId) -> Vec<u8> {
    format!("lengths\0{account}").into_bytes()
}

/// The mark of an account, if it has one.
pub fn mark_of(r: &dyn Reader, account: &AccountId) -> Result<Option<Mark>, StoreError> {
    get_json(r, Table::Meta, &key(account))
}

/// Marks the account as part of a plan. One plan may do so often; the last
/// mark is written.
fn mark(
    mirror: &Mirror,
    plan: &mut Plan,
    uid: UpstreamUid,
    (told, found): (u64, u64),
    new: bool,
) -> Result<(), OpError> {
    let mut marked = mirror.marked.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = match *marked {
        Some(mark) => Some(mark),
        None => read::<_, StoreError>(&*mirror.store, |r| mark_of(r, &mirror.account))?,
    };
    let time = now();
    let (sizes, bodies) = before.map_or((0, 0), |m| (m.sizes, m.bodies));
    let mark = Mark {
        since: before.map_or(time, |m| m.since),
        last: time,
        sizes: sizes + u64::from(new),
        bodies: bodies + u64::from(!new),
        uid: uid.get(),
        told,
        found,
    };
    if before.is_none() {
        tracing::warn!(
            account = %mirror.account, %uid, told, found,
            "the provider's RFC822.SIZE is not the length of the message; the account is marked"
        );
    } else {
        tracing::debug!(account = %mirror.account, %uid, told, found, "a message has another length");
    }
    *marked = Some(mark);
    plan.json(Table::Meta, key(&mirror.account), &mark)
}

/// Corrects the length of a new message of which all octets are at hand.
pub fn correct_new(
    mirror: &Mirror,
    plan: &mut Plan,
    uid: UpstreamUid,
    row: &mut MessageRow,
    octets: &[u8],
) -> Result<(), OpError> {
    let found = octets.len() as u64;
    // Nothing came, or not all of it.
    if octets.is_empty() || octets.len() >= crate::perceive::MAX_READ || found == row.size {
        return Ok(());
    }
    mark(mirror, plan, uid, (row.size, found), true)?;
    row.measured = Some(Measured { told: row.size, times: 0 });
    row.size = found;
    Ok(())
}

impl Watcher {
    /// Takes over lengths that bodies had when sessions read them.
    pub(super) async fn measured(&mut self, lengths: &[(UpstreamUid, u64)]) -> Result<(), OpError> {
        let mirror = self.mirror.clone();
        let mut plan = Plan::new(&mirror.account);
        {
            let state = mirror.state();
            for (uid, found) in lengths {
                let Some(message) = state.messages.get(uid).filter(|m| m.row.size != *found) else { continue };
                let told = message.row.size;
                let times = message.row.measured.map_or(0, |m| m.times);
                mark(&mirror, &mut plan, *uid, (told, *found), false)?;
                let measured = Some(Measured { told: message.row.told_size(), times: times.saturating_add(1) });
                let row = MessageRow { size: *found, measured, ..(*message.row).clone() };
                if times < MOST_UIDS {
                    plan.take_out(&state, Source::Upstream(*uid));
                    show(&state, &mut plan, *uid, row.place)?;
                }
                plan.message(*uid, Message { row: Arc::new(row), ..message.clone() })?;
            }
        }
        plan.execute(&mirror).await
    }
}
