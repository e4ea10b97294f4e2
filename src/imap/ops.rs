//! What sessions ask of the watching connection, one operation each.
//!
//! Promises: an operation that touches the provider is answered after the
//! provider answered and the mirror has settled; a refusal changes nothing.
//! Doesn't know: sequence numbers of clients.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::store::{Table, get_json, read};
use crate::upstream::imap::{ImapError, Outcome, parse_copyuid};

use super::mirror::{BackfillLine, Copied, FlagChange, Local, Message, Op, OpError};
use super::perceiving::{Arrived, decide, lanes_of, trace};
use super::plan::Plan;
use super::rows::{LocalRow, ViewId};
use super::uid::{UpstreamUid, ViewUid, sequence_set};
use super::view::{Entry, Source};
use super::watch::{WatchError, Watcher};

/// UIDs named in one command: RFC 7162 §4 has lines kept below 8192 octets.
const UIDS_PER_COMMAND: usize = 700;

impl Watcher {
    /// Does what a session asked and answers it.
    pub(super) async fn handle(&mut self, op: Op) -> Result<(), WatchError> {
        // A session that no longer waits needs no answer.
        match op {
            Op::Sync(reply) => {
                self.noop().await?;
                self.settle().await?;
                let _ = reply.send(Ok(()));
            }
            Op::Store(uids, change, flags, reply) => {
                let done = self.store(&uids, change, &flags).await;
                self.finish(done, reply).await?;
            }
            Op::StoreLocal(numbers, change, flags, reply) => {
                let done = self.store_local(&numbers, change, &flags).await;
                let _ = reply.send(done);
            }
            Op::MarkEntries(view, uids, deleted, reply) => {
                let done = self.mark(view, &uids, deleted).await;
                let _ = reply.send(done);
            }
            Op::DropEntries(view, uids, reply) => {
                let mut plan = Plan::new(&self.mirror.account);
                for uid in uids {
                    plan.remove(view, uid);
                }
                let done = plan.execute(&self.mirror).await;
                let _ = reply.send(done);
            }
            Op::CopyOut(uids, mailbox, moving, reply) => {
                let done = self.copy_out(&uids, &mailbox, moving).await;
                self.finish(done, reply).await?;
            }
            Op::Expunge(uids, reply) => {
                let done = self.expunge(&uids).await;
                self.finish(done, reply).await?;
            }
            Op::Relane(view, uids, place, moving, reply) => {
                let done = self.relane(view, &uids, place, moving).await;
                let _ = reply.send(done);
            }
            Op::Correct(view, uids, lane, reply) => {
                let done = self.correct(view, &uids, lane).await;
                let _ = reply.send(done);
            }
            Op::Undo(id, reply) => {
                let done = self.undo(&id).await;
                let _ = reply.send(done);
            }
            Op::PostLocals(rows, reply) => {
                let done = self.post_locals(rows).await;
                let _ = reply.send(done);
            }
            Op::RemoveLocals(numbers, reply) => {
                let done = self.remove_locals(&numbers).await;
                let _ = reply.send(done);
            }
            Op::RemoveLocalNamed(name, reply) => {
                let numbers: Vec<u32> =
                    self.mirror.state().locals.iter().filter(|(_, l)| l.row.name == name).map(|(n, _)| *n).collect();
                let done = self.remove_locals(&numbers).await;
                let _ = reply.send(done);
            }
            Op::Measured(lengths, reply) => {
                let done = self.measured(&lengths).await;
                let _ = reply.send(done);
            }
            Op::Backfill(last, dry_run, reply) => {
                let done = self.backfill(last, dry_run).await;
                self.finish(done, reply).await?;
            }
        }
        Ok(())
    }

    /// Settles and answers. A lost connection is answered, then reported.
    async fn finish<T>(
        &mut self,
        done: Result<T, ImapError>,
        reply: tokio::sync::oneshot::Sender<Result<T, OpError>>,
    ) -> Result<(), WatchError> {
        match done {
            Ok(value) => {
                // What the provider did is done, settled or not.
                let settled = self.settle().await;
                let _ = reply.send(Ok(value));
                settled
            }
            Err(e @ (ImapError::No { .. } | ImapError::Bad { .. })) => {
                let settled = self.settle().await;
                let _ = reply.send(Err(OpError::Refused(e.to_string())));
                settled
            }
            Err(e) => {
                let _ = reply.send(Err(OpError::Unavailable(e.to_string())));
                Err(e.into())
            }
        }
    }

    async fn command(&mut self, command: &[u8]) -> Result<Outcome, ImapError> {
        let outcome = self.connection.run(command).await?;
        self.absorb_all(&outcome.untagged);
        outcome.ok()
    }

    async fn store(&mut self, uids: &[UpstreamUid], change: FlagChange, flags: &[String]) -> Result<(), ImapError> {
        let sign = match change {
            FlagChange::Set => "",
            FlagChange::Add => "+",
            FlagChange::Remove => "-",
        };
        // RFC 9051 §9, `store-att-flags`: a list may stand without
        // parentheses. Inside them some servers take a keyword NIL for none.
        let flags = flags.join(" ");
        let list = if has_flag(&flags.split(' ').collect::<Vec<_>>(), "NIL") { flags } else { format!("({flags})") };
        for set in sets_of(uids) {
            self.command(format!("UID STORE {set} {sign}FLAGS {list}").as_bytes()).await?;
        }
        Ok(())
    }

    async fn store_local(&mut self, numbers: &[u32], change: FlagChange, flags: &[String]) -> Result<(), OpError> {
        let mut plan = Plan::new(&self.mirror.account);
        {
            let state = self.mirror.state();
            for n in numbers {
                // STORE passes over what is gone; so does `mark`.
                let Some(local) = state.locals.get(n) else { continue };
                let flags = changed(&local.row.flags, change, flags);
                let row = LocalRow { flags, ..(*local.row).clone() };
                plan.local(*n, Some(Local { row: Arc::new(row), flags_at: state.clock + 1 }))?;
            }
        }
        plan.execute(&self.mirror).await
    }

    async fn mark(&mut self, view: ViewId, uids: &[ViewUid], deleted: bool) -> Result<(), OpError> {
        let mut plan = Plan::new(&self.mirror.account);
        {
            let state = self.mirror.state();
            for uid in uids {
                let Some(entry) = state.view(view).and_then(|v| v.get(*uid)) else { continue };
                plan.update(view, *uid, Entry { deleted, ..entry.clone() })?;
            }
        }
        plan.execute(&self.mirror).await
    }

    async fn copy_out(&mut self, uids: &[UpstreamUid], mailbox: &[u8], moving: bool) -> Result<Copied, ImapError> {
        let mut all = Copied::default();
        for set in sets_of(uids) {
            let Copied { uidvalidity, pairs } = self.copy_set(&set, mailbox, moving).await?;
            all.uidvalidity = uidvalidity;
            all.pairs.extend(pairs);
        }
        Ok(all)
    }

    async fn copy_set(&mut self, set: &str, mailbox: &[u8], moving: bool) -> Result<Copied, ImapError> {
        let target = super::encode::quote(mailbox);
        let has = |name: &str| self.connection.capabilities().has(name);
        let (can_move, uidplus) = (has("MOVE"), has("UIDPLUS"));
        let verb = if moving && can_move { "MOVE" } else { "COPY" };
        let outcome = self.command(&[format!("UID {verb} {set} ").as_bytes(), &target].concat()).await?;
        let codes = outcome.code.iter().cloned().chain(outcome.untagged.iter().filter_map(super::scan::ok_code));
        let copied = codes.filter_map(|c| parse_copyuid(&c)).next();
        if moving && !can_move {
            // RFC 6851 §3.3 describes MOVE as these three; without UIDPLUS
            // others' deleted mail would go too, so ours stays flagged.
            self.command(format!("UID STORE {set} +FLAGS.SILENT (\\Deleted)").as_bytes()).await?;
            if uidplus {
                self.command(format!("UID EXPUNGE {set}").as_bytes()).await?;
            }
        }
        Ok(match copied {
            None => Copied::default(),
            Some((validity, from, to)) => Copied {
                uidvalidity: Some(validity),
                pairs: from.into_iter().filter_map(UpstreamUid::new).zip(to).collect(),
            },
        })
    }

    async fn expunge(&mut self, uids: &[UpstreamUid]) -> Result<(), ImapError> {
        if uids.is_empty() {
            return Ok(());
        }
        if self.connection.capabilities().has("UIDPLUS") {
            for set in sets_of(uids) {
                self.command(format!("UID EXPUNGE {set}").as_bytes()).await?;
            }
            return Ok(());
        }
        // Without UIDPLUS a plain EXPUNGE takes every deleted message of
        // INBOX: only when that is exactly what was asked.
        let asked: BTreeSet<UpstreamUid> = uids.iter().copied().collect();
        let flagged: BTreeSet<UpstreamUid> = {
            let state = self.mirror.state();
            state.messages.iter().filter(|(_, m)| has_flag(&m.flags, "\\Deleted")).map(|(u, _)| *u).collect()
        };
        if flagged == asked {
            self.command(b"EXPUNGE").await?;
            return Ok(());
        }
        Err(ImapError::No {
            code: None,
            text: "the provider can't expunge some deleted messages of INBOX without the others".to_owned(),
        })
    }

    async fn post_locals(&mut self, rows: Vec<LocalRow>) -> Result<(), OpError> {
        let mut plan = Plan::new(&self.mirror.account);
        {
            let state = self.mirror.state();
            let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            for (n, _) in state.locals.iter().filter(|(_, l)| names.contains(l.row.name.as_str())) {
                plan.take_out(&state, Source::Local(*n));
                plan.local(*n, None)?;
            }
            for (number, row) in (self.next_local(&state)?..).zip(rows) {
                plan.push_entry(&state, row.view(), row.entry(number))?;
                plan.local(number, Some(Local { row: Arc::new(row), flags_at: state.clock }))?;
                plan.json(Table::Meta, local_counter(&self.mirror.account), &number)?;
            }
        }
        plan.execute(&self.mirror).await
    }

    /// Numbers of local messages are never reused, as their UIDs are not.
    fn next_local(&self, state: &super::mirror::State) -> Result<u32, OpError> {
        let key = local_counter(&self.mirror.account);
        let stored: u32 =
            read::<_, OpError>(&*self.mirror.store, |r| Ok(get_json(r, Table::Meta, &key)?))?.unwrap_or(0);
        let highest = state.locals.last_key_value().map_or(0, |(n, _)| *n);
        Ok(stored.max(highest) + 1)
    }

    async fn remove_locals(&mut self, numbers: &[u32]) -> Result<(), OpError> {
        let mut plan = Plan::new(&self.mirror.account);
        {
            let state = self.mirror.state();
            for n in numbers {
                plan.take_out(&state, Source::Local(*n));
                plan.local(*n, None)?;
            }
        }
        plan.execute(&self.mirror).await
    }

    async fn backfill(&mut self, last: usize, dry_run: bool) -> Result<Vec<BackfillLine>, ImapError> {
        let chosen: Vec<(UpstreamUid, Message)> = {
            let state = self.mirror.state();
            let unstamped = state.messages.iter().rev().filter(|(_, m)| m.row.stamp.is_none());
            unstamped.take(last).map(|(u, m)| (*u, m.clone())).collect()
        };
        let mut lines = Vec::new();
        for (uid, message) in chosen.into_iter().rev() {
            let command = format!("UID FETCH {uid} (UID BODY.PEEK[]<0.{}>)", crate::perceive::MAX_READ);
            let outcome = self.command(command.as_bytes()).await?;
            let Some(octets) = outcome.untagged.iter().find_map(|u| super::scan::body_of(u, uid)) else { continue };
            match self.backfill_one(uid, &message, &octets, dry_run).await {
                Ok(line) => lines.push(line),
                Err(e) => tracing::warn!(account = %self.mirror.account, %uid, "backfill: {e}"),
            }
        }
        Ok(lines)
    }

    async fn backfill_one(
        &mut self,
        uid: UpstreamUid,
        message: &Message,
        octets: &[u8],
        dry_run: bool,
    ) -> Result<BackfillLine, OpError> {
        let arrived =
            Arrived { uid, flags: Vec::new(), size: message.row.size, date: message.row.date.clone(), prefix: None };
        let trace = trace(&self.mirror, &arrived, octets)?;
        let mut row = (*message.row).clone();
        let mut plan = Plan::new(&self.mirror.account);
        let mailbox = {
            let state = self.mirror.state();
            let lanes = lanes_of(&state)?;
            decide(&self.mirror, &lanes, &mut plan, uid, &mut row, &trace)?;
            let mailbox = lanes.name(row.place);
            if !dry_run {
                plan.take_out(&state, Source::Upstream(uid));
                super::perceiving::show(&state, &mut plan, uid, row.place)?;
                plan.message(uid, Message { row: Arc::new(row), ..message.clone() })?;
            }
            mailbox
        };
        if !dry_run {
            plan.execute(&self.mirror).await?;
        }
        let subject =
            crate::mail::header::values(octets, "Subject").first().map(|s| String::from_utf8_lossy(s).into_owned());
        Ok(BackfillLine { uid: uid.get(), lane: trace.verdict.lane, mailbox, subject: subject.unwrap_or_default() })
    }
}

/// The flags after a STORE.
pub fn changed(now: &[String], change: FlagChange, flags: &[String]) -> Vec<String> {
    let named = |f: &String| flags.iter().any(|g| g.eq_ignore_ascii_case(f));
    let mut out: Vec<String> = match change {
        FlagChange::Set => flags.to_vec(),
        FlagChange::Add => now.iter().filter(|f| !named(f)).chain(flags).cloned().collect(),
        FlagChange::Remove => now.iter().filter(|f| !named(f)).cloned().collect(),
    };
    out.sort();
    out.dedup();
    out
}

/// Whether a flag is set, ASCII case ignored.
pub fn has_flag<S: AsRef<str>>(flags: &[S], flag: &str) -> bool {
    flags.iter().any(|f| f.as_ref().eq_ignore_ascii_case(flag))
}

/// An INTERNALDATE in UTC (RFC 9051 §9, `date-time`).
pub fn internaldate(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(t) => t.to_zoned(jiff::tz::TimeZone::UTC).strftime("%d-%b-%Y %H:%M:%S +0000").to_string(),
        Err(_) => "01-Jan-1970 00:00:00 +0000".to_owned(),
    }
}

fn local_counter(account: &crate::account::AccountId) -> Vec<u8> {
    format!("locals\0{account}").into_bytes()
}

/// The UIDs as ascending sets, each short enough for one command.
fn sets_of(uids: &[UpstreamUid]) -> Vec<String> {
    let mut numbers: Vec<u32> = uids.iter().map(|u| u.get()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.chunks(UIDS_PER_COMMAND).map(sequence_set).collect()
}
