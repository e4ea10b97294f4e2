//! Agreeing with the provider: what INBOX holds there, and what the mirror
//! and its views make of it.
//!
//! Promises: after [`Watcher::settle`] the mirror is what the provider told; a
//! sudden loss is confirmed on a second connection before anyone is told; what
//! a provider leaves out hides no message. Doesn't know: sessions and requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::perceive::MAX_READ;
use crate::store::Table;
use crate::upstream::imap::{FetchItems, Response, Status, Untagged, UntaggedData, Value};

use super::lanes::{DEFAULT_DELIMITER, LaneMap, Place};
use super::mirror::Offers;
use super::pending;
use super::perceiving::{Arrived, now, plan_arrival, trace};
use super::plan::Plan;
use super::pool::Lease;
use super::rows::{self, MessageRow, MirrorRow, ViewRow};
use super::uid::{UpstreamUid, ViewUid, sequence_set};
use super::view::{Audience, View};
use super::watch::{WatchError, Watcher};

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

impl Watcher {
    /// Learns delimiter and prefix, refuses a collision of names.
    pub(super) async fn prepare(&mut self) -> Result<(), WatchError> {
        let has = |name: &str| self.connection.capabilities().has(name);
        let uidplus = has("UIDPLUS");
        self.mirror.state().offers = Offers { uidplus, moves: uidplus || has("MOVE") };
        let mut namespace = None;
        if self.connection.capabilities().has("NAMESPACE") {
            let outcome = self.connection.run(b"NAMESPACE").await?.ok()?;
            namespace = outcome.untagged.iter().find_map(|u| super::scan::personal_namespace(&u.text));
        }
        let (prefix, delimiter) = match namespace {
            Some(found) => found,
            // RFC 2342 §5: there may be no personal namespace, so far or at
            // all; the delimiter is known nonetheless.
            None => (String::new(), self.root_delimiter().await?),
        };
        let lanes = LaneMap::new(self.mirror.settings.lanes, delimiter, &prefix);
        // The whole level is asked for: a parent in another case, or one that
        // only exists through its children, would be hidden behind ours too.
        let level = super::encode::quote(format!("{prefix}%").as_bytes());
        let outcome = self.connection.run(&[b"LIST \"\" ".as_slice(), &level].concat()).await?.ok()?;
        for u in &outcome.untagged {
            if let UntaggedData::List { name, .. } = u.parse()
                && lanes.owns(&name)
            {
                let name = String::from_utf8_lossy(&name).into_owned();
                return Err(WatchError::Refused(format!(
                    "the provider has a mailbox called {name:?}, where mailboxes of ours would be shown: rename it there"
                )));
            }
        }
        self.mirror.state().lanes = Some(lanes);
        Ok(())
    }

    /// The delimiter of the first level (RFC 9051 §6.3.9).
    async fn root_delimiter(&mut self) -> Result<char, WatchError> {
        let outcome = self.connection.run(b"LIST \"\" \"\"").await?.ok()?;
        let told = outcome.untagged.iter().find_map(|u| match u.parse() {
            UntaggedData::List { delimiter, .. } => delimiter,
            _ => None,
        });
        Ok(told.map_or(DEFAULT_DELIMITER, char::from))
    }

    /// Selects INBOX and brings the mirror to what the provider has.
    pub(super) async fn select(&mut self) -> Result<(), WatchError> {
        let selected = self.connection.select(b"INBOX", false).await?;
        let known = {
            let mut state = self.mirror.state();
            state.permanent = strings(&selected.permanent_flags);
            state.uidvalidity
        };
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
        self.mirror.pending.clear();
        let mut plan = Plan::new(&self.mirror.account);
        let mut rejoin = HashMap::new();
        let old: Vec<UpstreamUid> = {
            let state = self.mirror.state();
            for m in state.messages.values() {
                rejoin.insert((m.row.message_id.clone(), m.row.date.clone(), m.row.told_size()), (*m.row).clone());
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
            for (id, validity) in raised {
                state.views.insert(id, View::new(validity));
            }
            // Notices stay: they are shown anew under the new UIDVALIDITY.
            if !old.is_empty() {
                for (n, local) in &state.locals {
                    locals.push_entry(&state, local.row.view(), local.row.entry(*n))?;
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
                let own = (audience == Audience::Agents).then_some(Place::Outbox);
                for place in lanes.places().into_iter().chain(own) {
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
    pub(super) async fn resync(
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
        self.mirror.pending.retain(|uid| set.contains(&uid));
        let missing: Vec<UpstreamUid> = {
            let state = self.mirror.state();
            let new = |u: &&UpstreamUid| !state.messages.contains_key(u) && !self.mirror.pending.holds(**u);
            self.order.iter().filter(new).copied().collect()
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
    pub(super) async fn relocate(&mut self) -> Result<(), WatchError> {
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
    pub(super) async fn noop(&mut self) -> Result<(), WatchError> {
        let outcome = self.connection.run(b"NOOP").await?.ok()?;
        self.absorb_all(&outcome.untagged);
        Ok(())
    }

    /// What came during IDLE; a status where it answers the IDLE itself.
    pub(super) fn absorb_response(&mut self, response: Response) -> Result<Option<Status>, WatchError> {
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

    pub(super) fn absorb(&mut self, u: &Untagged) {
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
            self.mirror.perceiving.send_replace(!self.mirror.pending.is_empty());
            fetched?;
        }
        // An EXPUNGE that came among the answers to a UID FETCH may name a
        // message that had no place in our order yet.
        for _ in 0..REORDER_TRIES {
            let count = (self.exists, self.order.len());
            if !self.unsure && (count.0 == count.1 || self.accepted == Some(count)) {
                break;
            }
            self.reorder().await?;
            self.accepted = Some((self.exists, self.order.len()));
        }
        self.settle_losses().await?;
        self.settle_flags();
        self.place_told().await?;
        self.mirror.state().synced = Some(Instant::now());
        Ok(())
    }

    pub(super) async fn settle_losses(&mut self) -> Result<(), WatchError> {
        let gone = std::mem::take(&mut self.gone);
        if gone.is_empty() {
            return Ok(());
        }
        if !self.mirror.pending.is_empty() {
            let gone: BTreeSet<UpstreamUid> = gone.iter().copied().collect();
            self.mirror.pending.retain(|uid| !gone.contains(&uid));
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

    pub(super) fn settle_flags(&mut self) {
        let mut changed = false;
        {
            let mut state = self.mirror.state();
            for (uid, flags) in std::mem::take(&mut self.flags) {
                if self.mirror.pending.flag(uid, &flags) {
                    continue;
                }
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
    pub(super) async fn reorder(&mut self) -> Result<(), WatchError> {
        // Without an order, an EXPUNGE among the answers can't be taken for
        // another message's; it makes us unsure again.
        self.order.clear();
        self.unsure = false;
        let there = self.uids_and_flags().await?;
        self.order = there.iter().map(|(u, _)| *u).collect();
        self.flags.extend(there);
        if self.unsure {
            return Ok(());
        }
        let set: BTreeSet<UpstreamUid> = self.order.iter().copied().collect();
        let lost: Vec<UpstreamUid> =
            self.mirror.state().messages.keys().filter(|u| !set.contains(u)).copied().collect();
        self.gone.extend(lost);
        self.mirror.pending.retain(|uid| set.contains(&uid));
        self.settle_losses().await?;
        self.settle_flags();
        let missing: Vec<u32> = {
            let state = self.mirror.state();
            let new = |u: &&UpstreamUid| !state.messages.contains_key(u) && !self.mirror.pending.holds(**u);
            self.order.iter().filter(new).map(|u| u.get()).collect()
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
                        Some(a) if !mirror.state().messages.contains_key(&a.uid) && !mirror.pending.holds(a.uid) => {
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
        let mut new: Vec<Vec<u8>> = Vec::new();
        let asks = self.mirror.models.get().is_some() && perceive;
        let examples = if asks { pending::examples(&self.mirror)? } else { Vec::new() };
        let mut here = Vec::with_capacity(batch.len());
        for mut a in batch.drain(..) {
            // It left while the others were fetched.
            if self.gone.contains(&a.uid) {
                continue;
            }
            let known = known_row(rejoin, &a);
            if !perceive && known.is_none() {
                a.prefix = None;
            }
            let perceived = known.is_none() && !self.mirror.state().placements.contains_key(&a.uid);
            if !asks || !perceived || a.prefix.is_none() {
                here.push((a, known, perceived, None));
                continue;
            }
            // Without the state locked: a prompt takes as long as perceiving.
            let trace = trace(&self.mirror, &a, a.prefix.as_deref().unwrap_or_default())?;
            if let Err(back) = pending::wait_for_models(&self.mirror, a, trace, &examples) {
                let (arrived, trace) = *back;
                here.push((arrived, None, true, Some(trace)));
            }
            tokio::task::yield_now().await;
        }
        {
            let mut state = self.mirror.state();
            for (a, known, perceived, decided) in here {
                new.extend(a.prefix.clone().filter(|_| perceived));
                plan_arrival(&self.mirror, &mut state, &mut plan, a, known, decided.as_ref())?;
            }
        }
        plan.execute(&self.mirror).await?;
        self.remember(&new).await;
        Ok(())
    }

    /// Tells the outbox of mail that arrived.
    pub(super) async fn remember(&self, new: &[Vec<u8>]) {
        if let Some(outbox) = self.mirror.outbox.get() {
            for octets in new {
                // Without it a copy of this mail isn't known for one; it is
                // held all the same.
                if let Err(e) = outbox.arrived(&self.mirror.account, octets).await {
                    tracing::warn!(account = %self.mirror.account, "an arrival was not remembered: {e}");
                }
            }
        }
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
