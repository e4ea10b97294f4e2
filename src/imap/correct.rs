//! Corrections: a person says that a message belongs to another lane, and may
//! take that back.
//!
//! Promises: a corrected message gets a new entry under a new stamp, and so a
//! new UID everywhere; an entry that a client copied from goes on to show the
//! octets that it always showed; what is taken back is as it was, under new
//! UIDs. Doesn't know: whether it was dragged, copied or given a keyword.

use std::collections::HashSet;
use std::sync::Arc;

use crate::account::AccountId;
use crate::lane::trace::Trace;
use crate::lane::{Lane, Signal, stamp};
use crate::store::{StoreError, Table, from_json, get_json, read};

use super::lanes::Place;
use super::mirror::{Message, OpError, State};
use super::perceiving::{decide, decision_id, lanes_of, now, show};
use super::plan::{Bump, Plan};
use super::rows::{self, MessageRow, ViewId};
use super::uid::{UpstreamUid, ViewUid};
use super::view::{Audience, Entry, Source};
use super::watch::Watcher;

/// A correction by a person, as stored in [`Table::Correction`].
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Correction {
    /// When, Unix seconds.
    pub time: i64,
    /// Lane before, where there was one.
    pub from: Option<Lane>,
    /// Lane after; none for INBOX.
    pub to: Option<Lane>,
    /// Where it was shown before.
    #[serde(default)]
    pub place: Option<Place>,
    /// A person had put it there.
    #[serde(default)]
    pub by_person: bool,
    /// UIDVALIDITY of the provider's INBOX at the time.
    #[serde(default)]
    pub uidvalidity: Option<u32>,
    /// Decision that was corrected.
    pub decision: Option<String>,
    /// Message-ID, where known.
    pub message_id: Option<String>,
    /// The address whose pin was changed; none where a message was corrected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Key of a correction: account, time, UID in the provider's INBOX and a
/// running number, so that they sort by time.
fn key(account: &AccountId, time: i64, uid: UpstreamUid, number: u32) -> Vec<u8> {
    format!("{account}\0{time:020}\0{uid}\0{number}").into_bytes()
}

/// How people name a correction, from its key: `time-uid-number`. The number
/// is missing in keys of older versions.
pub fn id_of(key: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(key).ok()?;
    let mut parts = text.split('\0').skip(1);
    let time: i64 = parts.next()?.parse().ok()?;
    let uid = parts.next()?;
    Some(match parts.next() {
        Some(number) => format!("{time}-{uid}-{number}"),
        None => format!("{time}-{uid}"),
    })
}

impl Watcher {
    /// COPY or MOVE from one view to another.
    pub(super) async fn relane(
        &mut self,
        view: ViewId,
        uids: &[ViewUid],
        to: Place,
        moving: bool,
    ) -> Result<Vec<(ViewUid, ViewUid)>, OpError> {
        let (mut pairs, mut seen) = (Vec::new(), HashSet::new());
        let mut plan = Plan::new(&self.mirror.account);
        {
            let state = self.mirror.state();
            let lanes = lanes_of(&state)?;
            for uid in uids {
                let entry = state.view(view).and_then(|v| v.get(*uid)).ok_or(OpError::Gone)?;
                if !seen.insert(entry.source) {
                    // The message and an entry that waits for its deletion.
                    if moving {
                        plan.remove(view, *uid);
                    }
                    continue;
                }
                let new = if view.1 == to && !entry.superseded {
                    // RFC 6851 §3.3: to where it is, it gets a new UID.
                    plan.remove(view, *uid);
                    plan.push_entry(&state, view, Entry { key: entry.key.clone(), ..Entry::new(entry.source) })?
                } else {
                    self.change(&state, &mut plan, (view, *uid, entry), (to, lanes.lane_of(to)), moving)?
                };
                pairs.push((*uid, new));
            }
        }
        plan.execute(&self.mirror).await?;
        Ok(pairs)
    }

    /// A person names the lane itself, by its keyword.
    pub(super) async fn correct(&mut self, view: ViewId, uids: &[ViewUid], lane: Lane) -> Result<(), OpError> {
        let mut plan = Plan::new(&self.mirror.account);
        let mut seen = HashSet::new();
        {
            let state = self.mirror.state();
            let to = lanes_of(&state)?.place(lane);
            for uid in uids {
                // It was asked by STORE, which passes over what is gone.
                let Some(entry) = state.view(view).and_then(|v| v.get(*uid)) else { continue };
                if seen.insert(entry.source) {
                    self.change(&state, &mut plan, (view, *uid, entry), (to, Some(lane)), true)?;
                }
            }
        }
        plan.execute(&self.mirror).await
    }

    /// Plans one correction; the new UID in the destination. Unless it is
    /// moved, the old entry stays until the client deletes it.
    fn change(
        &self,
        state: &State,
        plan: &mut Plan,
        (view, uid, entry): (ViewId, ViewUid, &Entry),
        (to, lane): (Place, Option<Lane>),
        moving: bool,
    ) -> Result<ViewUid, OpError> {
        let Source::Upstream(up) = entry.source else {
            return Err(OpError::Cannot("a notice of the gateway can't be moved to a lane".into()));
        };
        let message = state.messages.get(&up).ok_or(OpError::Gone)?;
        let row = self.corrected(state, plan, up, &message.row, (to, lane))?;
        let mut given = None;
        for audience in Audience::BOTH {
            for id in [(audience, message.row.place), (audience, Place::All)] {
                let Some(v) = state.view(id) else { continue };
                for old in v.all_uids_of(entry.source).into_iter().filter(|old| (id, *old) != (view, uid)) {
                    plan.remove(id, old);
                }
            }
            let new = plan.push(state, (audience, to), entry.source)?;
            plan.push(state, (audience, Place::All), entry.source)?;
            if audience == view.0 {
                given = Some(new);
            }
        }
        if moving {
            plan.remove(view, uid);
        } else {
            let stamp = Some(state.stamp(entry).unwrap_or_default().into());
            plan.update(view, uid, Entry { superseded: true, stamp, ..entry.clone() })?;
        }
        plan.message(up, Message { row: Arc::new(row), ..message.clone() })?;
        given.ok_or_else(|| OpError::Cannot("the mailbox is not shown".into()))
    }

    fn corrected(
        &self,
        state: &State,
        plan: &mut Plan,
        uid: UpstreamUid,
        old: &MessageRow,
        (to, lane): (Place, Option<Lane>),
    ) -> Result<MessageRow, OpError> {
        let mut row = MessageRow { place: to, by_person: true, ..old.clone() };
        let correction = Correction {
            time: now(),
            from: old.lane,
            to: lane,
            place: Some(old.place),
            by_person: old.by_person,
            uidvalidity: state.uidvalidity,
            decision: old.decision.clone(),
            message_id: old.message_id.clone(),
            address: None,
        };
        plan.json(Table::Correction, self.free_key(uid)?, &correction)?;
        let Some(lane) = lane else { return Ok(row) };
        if let Some(mut trace) = self.decision(old.decision.as_deref())? {
            // A forged From neither teaches nor pins anything.
            if let Some(from) = trace.from.clone().filter(|_| !trace.context.authentication.is_bad()) {
                let campaign = trace.signals.has(Signal::Campaign);
                plan.bump(Bump { address: from, change: Box::new(move |r| r.saw_drag(lane, campaign)) });
            }
            trace.decision = decision_id()?;
            trace.time = now();
            trace.context.correction = Some(lane);
            trace.verdict = trace.replay(&self.mirror.thresholds);
            decide(&self.mirror, &lanes_of(state)?, plan, uid, &mut row, &trace)?;
            row.place = to;
        } else {
            row.lane = Some(lane);
        }
        Ok(row)
    }

    /// A key that no correction has: one message may be corrected twice
    /// within a second.
    fn free_key(&self, uid: UpstreamUid) -> Result<Vec<u8>, OpError> {
        let mut number = 0;
        read::<_, StoreError>(&*self.mirror.store, |r| {
            loop {
                let key = key(&self.mirror.account, now(), uid, number);
                if r.get(Table::Correction, &key)?.is_none() {
                    return Ok(key);
                }
                number += 1;
            }
        })
        .map_err(OpError::from)
    }

    pub(super) fn decision(&self, id: Option<&str>) -> Result<Option<Trace>, OpError> {
        let Some(id) = id else { return Ok(None) };
        let key = rows::decision_key(&self.mirror.account, id);
        read::<_, StoreError>(&*self.mirror.store, |r| get_json(r, Table::Decision, &key)).map_err(OpError::from)
    }

    /// Takes a correction back: lane, place and stamp become what they were.
    pub(super) async fn undo(&mut self, id: &str) -> Result<(), OpError> {
        let mut found: Option<(Vec<u8>, UpstreamUid, Correction)> = None;
        let mut later = false;
        read::<_, StoreError>(&*self.mirror.store, |r| {
            rows::for_each(r, Table::Correction, &rows::account_prefix(&self.mirror.account), |k, v| {
                let parts: Vec<&[u8]> = k.split(|b| *b == 0).collect();
                let uid =
                    parts.get(2).and_then(|u| std::str::from_utf8(u).ok()?.parse().ok()).and_then(UpstreamUid::new);
                let Some(uid) = uid else { return Ok(()) };
                if id_of(k).as_deref() == Some(id) {
                    found = Some((k.to_vec(), uid, from_json(Table::Correction, v)?));
                } else if found.as_ref().is_some_and(|(_, u, _)| *u == uid) {
                    later = true;
                }
                Ok(())
            })
        })?;
        let (key, uid, correction) =
            found.ok_or_else(|| OpError::Cannot("there is no such correction of this account".into()))?;
        if later {
            return Err(OpError::Cannot("the message was corrected again later: take that back first".into()));
        }
        let before = self.decision(correction.decision.as_deref())?;
        let stamp = before.as_ref().map(stamp::render);
        let mut plan = Plan::new(&self.mirror.account);
        let from = before.filter(|t| !t.context.authentication.is_bad()).and_then(|t| t.from);
        if let (Some(address), Some(lane)) = (from, correction.to) {
            plan.bump(Bump { address, change: Box::new(move |r| r.took_back(lane)) });
        }
        {
            let state = self.mirror.state();
            let lanes = lanes_of(&state)?;
            plan.row(Table::Correction, key, None);
            let same = correction.uidvalidity.is_none() || correction.uidvalidity == state.uidvalidity;
            // A message that is gone leaves nothing to take back but the record.
            if let Some(message) = state.messages.get(&uid).filter(|_| same) {
                let place = correction.place.or_else(|| correction.from.map(|l| lanes.place(l)));
                let place = place.filter(|p| lanes.places().contains(p)).unwrap_or(Place::Inbox);
                let row = MessageRow {
                    place,
                    by_person: correction.by_person,
                    lane: correction.from,
                    stamp: stamp.map(|s| String::from_utf8_lossy(&s).into_owned()),
                    decision: correction.decision,
                    ..(*message.row).clone()
                };
                plan.take_out(&state, Source::Upstream(uid));
                show(&state, &mut plan, uid, place)?;
                plan.message(uid, Message { row: Arc::new(row), ..message.clone() })?;
            }
        }
        plan.execute(&self.mirror).await
    }
}
