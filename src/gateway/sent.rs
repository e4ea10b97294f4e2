//! What became of a held message, for the mailbox: its copy in Sent.
//!
//! Promises: where the provider keeps none, a message that was sent is put
//! into Sent once, whatever crashes in between; a client's own copy that
//! waited goes there in its place, and nowhere when the message isn't sent.
//! Who a person wrote to is noted as for mail that was relayed at once.
//! Doesn't know: how messages are sent.
//!
//! The intent is the state `sent` itself: without [`Progress::done`] there is
//! something left to do. Before it is done, Sent is searched for the
//! Message-ID, so that an APPEND whose answer a crash swallowed isn't
//! repeated; a provider that may still be at work on one gets [`PAUSE`]'s
//! first to finish it. Without a Message-ID a begun APPEND is never repeated. Before an
//! APPEND was begun only the very octets count: a Message-ID that another
//! message had must not keep this one out of Sent.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::core::Core;
use crate::account::{AccountId, Role};
use crate::config::SentCopy;
use crate::floor::submission::State;
use crate::imap::mirror::{Health, Mirror, OpError};
use crate::imap::parking::{Parked, Progress, parked_key, progress_key, sent_among};
use crate::imap::perceiving::now;
use crate::imap::pool::{Lease, PoolError};
use crate::imap::scan::body_of;
use crate::imap::uid::UpstreamUid;
use crate::outbox::{Hold, HoldError, HoldId};
use crate::smtp::PersonSent;
use crate::store::blob::{BlobId, BlobReader};
use crate::store::{StoreError, Table, failpoint, get_json, put_json, read, write};
use crate::upstream::imap::{ImapError, Response, Status, Untagged, UntaggedData};

/// Key of the time from which on copies are made, in [`Table::Meta`]: what
/// was sent before this was built is left as it is.
const SINCE: &[u8] = b"sentcopies-since";
/// Pauses between tries, doubled from the first to the last.
const PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(300));
/// A copy of ours that could not be made for so long is given up, in seconds.
const GIVE_UP: i64 = 7 * 24 * 3600;
/// How long one try may take.
const TRY: Duration = Duration::from_secs(300);
/// Messages with the same Message-ID that are compared, the newest.
const MAX_COMPARED: usize = 8;
/// First octets of a person's message by which its words are remembered.
const MAX_REMEMBERED: u64 = 256 * 1024;
/// Names all of this among the failpoints.
const COPY: &str = "sent-copy";
/// Octets read from a file at once.
const CHUNK: usize = 64 * 1024;

/// Why a copy isn't there yet.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error(transparent)]
    Imap(#[from] ImapError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Hold(#[from] HoldError),
    #[error(transparent)]
    Mirror(#[from] OpError),
    #[error("the file of the message: {0}")]
    File(#[from] std::io::Error),
    #[error("no answer in time")]
    Late,
}

/// A message whose copy is due.
struct Due {
    /// News of the provider bring a try forward up to here.
    earliest: Instant,
    not_before: Instant,
    pause: Duration,
}

impl Due {
    fn after(pause: Duration) -> Due {
        let at = Instant::now() + pause;
        Due { earliest: at, not_before: at, pause: PAUSE.0 }
    }
}

/// One account's copies, until told to stop.
pub(super) async fn run(
    core: Arc<Core>,
    account: AccountId,
    mirror: Arc<Mirror>,
    note: PersonSent,
    mut stop: watch::Receiver<bool>,
) {
    let desk = Desk { core, account, mirror, note };
    let mut events = desk.core.outbox.events();
    let mut health = desk.mirror.health();
    let mut due: BTreeMap<HoldId, Due> = BTreeMap::new();
    let mut look = true;
    loop {
        if look {
            match failpoint::within(COPY, desk.scan()).await {
                Ok(found) => {
                    due.extend(found);
                    look = false;
                }
                Err(e) => tracing::error!(account = %desk.account, "copies for Sent: {e}"),
            }
        }
        desk.turn(&mut due).await;
        let next = due.values().map(|d| d.not_before).min();
        let next =
            next.map_or(PAUSE.1, |at| at.saturating_duration_since(Instant::now()).max(Duration::from_millis(50)));
        tokio::select! {
            () = told_to_stop(&mut stop) => return,
            event = events.recv() => match event {
                Ok(event) if event.account != desk.account => {}
                Ok(event) => desk.happened(&event.hold, event.state, &mut due).await,
                Err(RecvError::Lagged(_)) => look = true,
                Err(RecvError::Closed) => return,
            },
            changed = health.changed() => {
                if changed.is_err() { return }
                due.values_mut().for_each(|d| d.not_before = d.earliest.max(Instant::now()));
            }
            () = tokio::time::sleep(next) => {}
        }
    }
}

async fn told_to_stop(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone ends it too.
    let _ = stop.wait_for(|s| *s).await;
}

struct Desk {
    core: Arc<Core>,
    account: AccountId,
    mirror: Arc<Mirror>,
    note: PersonSent,
}

impl Desk {
    /// Sent messages without a copy; what waits for a message that won't be
    /// sent is dropped on the way.
    async fn scan(&self) -> Result<Vec<(HoldId, Due)>, CopyError> {
        let time = now();
        let since: i64 = write(&*self.core.store, move |w| {
            let known: Option<i64> = get_json(w, Table::Meta, SINCE)?;
            if known.is_none() {
                put_json(w, Table::Meta, SINCE, &time)?;
            }
            Ok::<_, StoreError>(known.unwrap_or(time))
        })
        .await?;
        let holds = self.core.outbox.list(&self.account)?;
        let mut due = Vec::new();
        for hold in holds.iter().filter(|h| h.action.sends() && h.changed_at >= since) {
            match hold.state {
                State::Sent => {
                    let progress = self.progress(&hold.id)?;
                    // The provider may not have noticed yet that we were gone.
                    let pause = if progress.begun { PAUSE.0 } else { Duration::ZERO };
                    if !progress.done {
                        due.push((hold.id.clone(), Due::after(pause)));
                    }
                }
                State::Failed | State::Denied | State::Expired | State::Withdrawn => self.drop_parked(hold).await?,
                State::Held | State::Approved | State::Sending | State::Unknown => {}
            }
        }
        Ok(due)
    }

    async fn happened(&self, id: &HoldId, state: State, due: &mut BTreeMap<HoldId, Due>) {
        match state {
            State::Sent => {
                due.insert(id.clone(), Due::after(Duration::ZERO));
            }
            State::Failed | State::Denied | State::Expired | State::Withdrawn => {
                let dropped = match self.core.outbox.get(&self.account, id) {
                    Ok(Some(hold)) => failpoint::within(COPY, self.drop_parked(&hold)).await,
                    Ok(None) => Ok(()),
                    Err(e) => Err(e.into()),
                };
                if let Err(e) = dropped {
                    tracing::warn!(account = %self.account, hold = %id, "a client's copy was not dropped: {e}");
                }
            }
            State::Held | State::Approved | State::Sending | State::Unknown => {}
        }
    }

    async fn turn(&self, due: &mut BTreeMap<HoldId, Due>) {
        let ready: Vec<HoldId> =
            due.iter().filter(|(_, d)| d.not_before <= Instant::now()).map(|(id, _)| id.clone()).collect();
        for id in ready {
            let tried = tokio::time::timeout(TRY, failpoint::within(COPY, self.one(&id))).await;
            let tried = tried.unwrap_or(Err(CopyError::Late));
            match tried {
                Ok(true) => {
                    due.remove(&id);
                }
                Ok(false) => later(due, &id),
                Err(e) => {
                    tracing::warn!(account = %self.account, hold = %id, "no copy in Sent yet: {e}");
                    later(due, &id);
                }
            }
        }
    }

    fn progress(&self, id: &HoldId) -> Result<Progress, StoreError> {
        let key = progress_key(id);
        read(&*self.core.store, |r| Ok(get_json(r, Table::Meta, &key)?.unwrap_or_default()))
    }

    async fn set(&self, id: &HoldId, progress: Progress, drops: Option<Vec<u8>>) -> Result<(), StoreError> {
        let key = progress_key(id);
        write(&*self.core.store, move |w| {
            if let Some(parked) = &drops {
                w.delete(Table::Meta, parked)?;
            }
            put_json(w, Table::Meta, &key, &progress)
        })
        .await
    }

    /// Brings one message as far as it goes; false: not yet.
    async fn one(&self, id: &HoldId) -> Result<bool, CopyError> {
        let mut progress = self.progress(id)?;
        let hold = self.core.outbox.get(&self.account, id)?.filter(|h| h.action.sends() && h.state == State::Sent);
        let Some(hold) = hold.filter(|_| !progress.done) else { return Ok(true) };
        if !progress.noted {
            if hold.role == Role::Person {
                let to: Vec<String> = hold.envelope.forward_paths.iter().map(|p| p.as_str().to_owned()).collect();
                (self.note)(&self.account, &to);
                self.remember(&hold).await;
            }
            progress.noted = true;
            self.set(id, progress, None).await?;
        }
        let key = hold.message_id.as_ref().map(|m| parked_key(&self.account, m));
        let parked: Option<Parked> = match &key {
            Some(key) => read::<_, StoreError>(&*self.core.store, |r| get_json(r, Table::Meta, key))?,
            None => None,
        };
        let wanted = match self.mirror.settings.sent {
            SentCopy::Provider => false,
            SentCopy::Append => true,
            SentCopy::Off => parked.is_some(),
        };
        if wanted {
            if *self.mirror.health().borrow() != Health::Live {
                return Ok(false);
            }
            // A client's own copy was answered with OK: it is never given up.
            let given_up = parked.is_none() && now().saturating_sub(hold.changed_at) > GIVE_UP;
            if given_up || (progress.begun && hold.message_id.is_none()) {
                tracing::warn!(account = %self.account, hold = %id, "there may be no copy in Sent");
            } else {
                self.put_into_sent(&hold, parked.as_ref(), &mut progress).await?;
            }
        }
        progress.done = true;
        self.set(id, progress, key).await?;
        Ok(true)
    }

    /// What a person wrote and approved is theirs from now on. Without it they
    /// are asked once more; nothing else depends on it.
    async fn remember(&self, hold: &Hold) {
        let mut first = Vec::new();
        let read = self
            .core
            .outbox
            .open(hold)
            .map_err(|e| e.to_string())
            .and_then(|file| file.take(MAX_REMEMBERED).read_to_end(&mut first).map_err(|e| e.to_string()));
        let done = match read {
            Ok(_) => self.core.outbox.wrote(&self.account, &first).await.map_err(|e| e.to_string()),
            Err(e) => Err(e),
        };
        if let Err(e) = done {
            tracing::warn!(account = %self.account, hold = %hold.id, "what a person wrote was not remembered: {e}");
        }
    }

    async fn put_into_sent(
        &self,
        hold: &Hold,
        parked: Option<&Parked>,
        progress: &mut Progress,
    ) -> Result<(), CopyError> {
        let mut lease = self.mirror.pool.any().await?;
        let mailbox = match parked {
            Some(parked) => parked.mailbox.clone(),
            None => self.sent_mailbox(&mut lease).await?,
        };
        let (middle, blob, length) = match parked {
            Some(p) => (p.middle.clone(), p.blob, p.length),
            None => (" (\\Seen)".to_owned(), hold.blob, hold.length),
        };
        let there = match &hold.message_id {
            Some(id) => {
                let found = found(&mut lease, &mailbox, id.trim()).await?;
                match progress.begun {
                    true => !found.is_empty(),
                    false => any_is(&mut lease, &found, &blob, length).await?,
                }
            }
            None => false,
        };
        if !there {
            progress.begun = true;
            self.set(&hold.id, *progress, None).await?;
            let file = self.core.store.blobs().open(&blob)?;
            append(&mut lease, &mailbox, &middle, file, length).await?;
            tracing::info!(account = %self.account, hold = %hold.id, "a copy is in Sent");
        }
        progress.appended = true;
        leave(lease).await;
        Ok(())
    }

    /// The provider's Sent; made where there is none.
    async fn sent_mailbox(&self, lease: &mut Lease) -> Result<Vec<u8>, CopyError> {
        let list = lease.list(b"", b"*").await?;
        let text = |f: &bytes::Bytes| String::from_utf8_lossy(f).into_owned();
        let list: Vec<(Vec<u8>, Vec<String>)> =
            list.into_iter().map(|e| (e.name.to_vec(), e.flags.iter().map(text).collect())).collect();
        let lanes = self.mirror.state().lanes.clone();
        let delimiter = lanes.as_ref().map_or('/', |l| l.delimiter());
        if let Some(found) = sent_among(&list, delimiter) {
            return Ok(found);
        }
        let name = lanes.map_or_else(|| "Sent".to_owned(), |l| l.personal("Sent"));
        lease.run_with_names(b"CREATE ", &[name.as_bytes()]).await?.ok()?;
        Ok(name.into_bytes())
    }

    /// A copy whose message won't be sent is shown as nothing, unless the
    /// same message waits once more.
    async fn drop_parked(&self, hold: &Hold) -> Result<(), CopyError> {
        let Some(id) = &hold.message_id else { return Ok(()) };
        let key = parked_key(&self.account, id);
        if read::<_, StoreError>(&*self.core.store, |r| r.get(Table::Meta, &key))?.is_none() {
            return Ok(());
        }
        let holds = self.core.outbox.list(&self.account)?;
        let waits = |h: &Hold| !h.state.is_final() || h.state == State::Unknown;
        if holds.iter().any(|h| h.id != hold.id && h.message_id == hold.message_id && waits(h)) {
            return Ok(());
        }
        Ok(write::<_, StoreError>(&*self.core.store, move |w| w.delete(Table::Meta, &key)).await?)
    }
}

fn later(due: &mut BTreeMap<HoldId, Due>, id: &HoldId) {
    if let Some(d) = due.get_mut(id) {
        d.not_before = Instant::now() + d.pause;
        d.pause = (d.pause * 2).min(PAUSE.1);
    }
}

/// The messages of a mailbox with this Message-ID; selects it.
async fn found(lease: &mut Lease, mailbox: &[u8], id: &str) -> Result<Vec<UpstreamUid>, CopyError> {
    lease.forget_selection();
    lease.select_plainly(mailbox, true).await?;
    let outcome = lease.run_with_names(b"UID SEARCH HEADER Message-ID ", &[id.as_bytes()]).await?.ok()?;
    let hits = outcome.untagged.iter().filter_map(|u| match u.parse() {
        UntaggedData::Search(numbers) => Some(numbers),
        _ => None,
    });
    Ok(hits.flatten().filter_map(UpstreamUid::new).collect())
}

/// Whether one of these messages has the very octets.
async fn any_is(lease: &mut Lease, uids: &[UpstreamUid], blob: &BlobId, length: u64) -> Result<bool, CopyError> {
    for uid in uids.iter().rev().take(MAX_COMPARED) {
        let outcome = lease.run(format!("UID FETCH {uid} (UID RFC822.SIZE)").as_bytes()).await?.ok()?;
        let sized = |u: &Untagged| matches!(u.parse(), UntaggedData::Fetch { items, .. } if items.size == Some(length));
        if !outcome.untagged.iter().any(sized) {
            continue;
        }
        let outcome = lease.run(format!("UID FETCH {uid} (UID BODY.PEEK[])").as_bytes()).await?.ok()?;
        let octets = outcome.untagged.iter().find_map(|u| body_of(u, *uid));
        if octets.is_some_and(|o| <[u8; 32]>::from(Sha256::digest(&o)) == blob.0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// APPEND with a literal that waits (RFC 9051 §6.3.12).
async fn append(
    lease: &mut Lease,
    mailbox: &[u8],
    middle: &str,
    file: BlobReader,
    length: u64,
) -> Result<(), CopyError> {
    let tag = lease.fresh_tag();
    let name = crate::imap::encode::quote(mailbox);
    failpoint::hit_command(b"APPEND", "");
    let head =
        [tag.as_bytes(), b" APPEND ", &name, middle.as_bytes(), format!(" {{{length}}}\r\n").as_bytes()].concat();
    lease.write_raw(&head).await?;
    lease.flush().await?;
    failpoint::hit_command(b"APPEND", ".announced");
    let mut file = Some(file);
    loop {
        match lease.response_in_time().await? {
            Response::Continue(_) => {
                let Some(file) = file.take() else { continue };
                stream(lease, file, length).await?;
            }
            Response::Tagged { tag: of, status, code, text, .. } if of.is_some_and(|t| t.to_string() == tag) => {
                failpoint::hit_command(b"APPEND", ".answered");
                let text = String::from_utf8_lossy(&text).into_owned();
                return match status {
                    Status::Ok => Ok(()),
                    Status::No | Status::Bad => Err(ImapError::No { code, text }.into()),
                };
            }
            Response::Tagged { .. } | Response::Untagged(_) => {}
        }
    }
}

async fn stream(lease: &mut Lease, file: BlobReader, length: u64) -> Result<(), CopyError> {
    let mut file = file.take(length);
    let mut chunk = vec![0; CHUNK];
    let mut left = length;
    while left > 0 {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        left -= read as u64;
        lease.write_raw(&chunk[..read]).await?;
        lease.flush().await?;
        failpoint::hit_command(b"APPEND", ".octets");
    }
    lease.write_raw(b"\r\n").await?;
    lease.flush().await?;
    failpoint::hit_command(b"APPEND", ".written");
    Ok(())
}

/// Gives the connection back with nothing selected, or closes it.
pub(super) async fn leave(mut lease: Lease) {
    if lease.capabilities().has("UNSELECT") && lease.briefly(b"UNSELECT").await.is_ok_and(|o| o.ok().is_ok()) {
        lease.give_back();
    }
}
