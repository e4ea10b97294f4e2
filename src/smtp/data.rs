//! DATA: relayed to the provider as it comes, or spooled and held.

use std::io::{ErrorKind, Read, Seek, Write};
use std::sync::Arc;

use crate::downstream::Connection;

use super::conn::{Conn, End};
use super::transaction::{Transaction, Way, mode, passed_on, provider_fault};
use super::{MAX_DRAIN, MAX_MARKS_HEADER, Services, marks};
use crate::account::{Grant, Principal, Role, Verb};
use crate::floor::action::Action;
use crate::floor::hold::{Decision, Reason, decide};
use crate::floor::release::Release;
use crate::outbox::lineage::{Lineage, MAX_COMPARED};
use crate::outbox::strict::{Checker, Passed, Rules};
use crate::outbox::{HoldError, HoldId, Intake};
use crate::store::StoreError;
use crate::store::blob::{BlobId, BlobWriter, Settled};
use crate::store::scratch::scratch;
use crate::upstream::smtp::{DataError, DataWriter, Submission};
use crate::wire::smtp::{DataDecoder, Fault, Reply};

/// Longest Subject and Message-ID that are kept beside a held message.
const MAX_KEPT_FIELD: usize = 998;
/// First octets of a person's message by which its words are remembered.
const MAX_REMEMBERED: usize = 256 * 1024;
/// Octets read at once of a message that was taken whole.
const READ_AGAIN: usize = 64 * 1024;

/// What DATA came to.
#[derive(Debug)]
pub(super) enum Done {
    /// The reply to the client.
    Reply(Reply),
    /// It is held, on disk.
    Held(HoldId),
}

/// The client's message, as it comes.
struct Incoming<'a, S> {
    conn: &'a mut Conn<S>,
    decoder: DataDecoder,
    limit: u64,
    length: u64,
    ended: bool,
    /// The whole message, taken already: it comes from here once more.
    again: Option<std::fs::File>,
}

/// Why a message is not taken, found in its octets.
#[derive(Debug, Clone, Copy)]
enum Unfit {
    Fault(Fault),
    TooLarge(u64),
}

impl Unfit {
    fn reply(self) -> Reply {
        match self {
            Unfit::Fault(fault) => Reply::new(550, "5.6.0", format!("{fault}; lines must end in CR LF")),
            Unfit::TooLarge(limit) => Reply::new(552, "5.3.4", format!("the message is larger than {limit} octets")),
        }
    }
}

impl<S: Connection> Incoming<'_, S> {
    /// Decodes the next octets into `out`. Once the message is unfit nothing
    /// more is kept.
    async fn next(&mut self, out: &mut Vec<u8>) -> Result<Result<(), Unfit>, End> {
        if let Some(file) = &mut self.again {
            // At most one chunk from the page cache: not worth a thread.
            let before = out.len();
            out.resize(before + READ_AGAIN, 0);
            let n = file.read(&mut out[before..]).map_err(|_| End::Closed)?;
            out.truncate(before + n);
            self.length += n as u64;
            self.ended = n == 0;
            return Ok(Ok(()));
        }
        let octets = self.conn.data().await?;
        let before = out.len();
        let fed = self.decoder.feed(&octets, out);
        self.ended = fed.ended;
        self.length += (out.len() - before) as u64;
        if fed.ended {
            self.conn.lines.put_back(&octets[fed.consumed..]);
        }
        Ok(match self.unfit() {
            Some(unfit) => Err(unfit),
            None => Ok(()),
        })
    }

    fn unfit(&self) -> Option<Unfit> {
        let large = (self.length > self.limit).then_some(Unfit::TooLarge(self.limit));
        self.decoder.fault().map(Unfit::Fault).or(large)
    }

    /// Reads to the end of the message and keeps nothing.
    async fn drain(&mut self) -> Result<(), End> {
        let mut scrap = Vec::new();
        while !self.ended {
            scrap.clear();
            let _ = self.next(&mut scrap).await?;
            if self.length > self.limit.saturating_add(MAX_DRAIN) {
                return Err(End::Closed);
            }
        }
        Ok(())
    }
}

/// Takes the message after DATA. Nothing may be left half done: on every way
/// out the message is wholly taken, or refused and nothing kept.
pub(super) async fn receive<S: Connection>(
    conn: &mut Conn<S>,
    services: &Services,
    principal: &Principal,
    mut transaction: Transaction,
) -> Result<Done, End> {
    if transaction.to.is_empty() {
        transaction.abandon();
        return Ok(Done::Reply(Reply::new(554, "5.5.1", "no recipient was accepted")));
    }
    if let Way::Held(_) = transaction.way
        && let Err(reply) = transaction.envelope()
    {
        return Ok(Done::Reply(reply));
    }
    conn.reply(&Reply::new(354, "", "go ahead"));
    conn.flush().await?;
    let offer = services.offers.common(std::slice::from_ref(&principal.account), services.config.max_message_bytes);
    let mut incoming =
        Incoming { conn, decoder: DataDecoder::new(), limit: offer.size, length: 0, ended: false, again: None };
    let (mut head, mut lineage) = (Vec::new(), None);
    if let Way::Relay(_) = transaction.way {
        match read_header(&mut incoming, &mut head).await? {
            Ok(()) => {}
            Err(unfit) => return refuse(&mut incoming, transaction, unfit.reply()).await,
        }
        // What stands in the header decides before DATA opens upstream: the
        // release that opens it is made of that decision. So the provider's
        // 354 comes after ours; a refusal of its own is still the client's
        // final reply.
        let marked = marks::declared(&head);
        match compare(&mut incoming, services, principal, &mut head).await? {
            Ok(found) => lineage = found,
            Err(reply) => return refuse(&mut incoming, transaction, reply).await,
        }
        match decide(false, mode(services.config.hold), transaction.external, marked, lineage.is_some()) {
            Decision::NoHold(no_hold) => {
                let release = Release::person_unheld(no_hold);
                return relay(incoming, services, principal, transaction, head, release).await;
            }
            Decision::Hold(reason) => {
                let held = match transaction.turn_to_hold(reason).await {
                    Ok(()) => transaction.envelope().map(drop),
                    Err(reply) => Err(reply),
                };
                if let Err(reply) = held {
                    return refuse(&mut incoming, transaction, reply).await;
                }
            }
        }
    }
    let Way::Held(reason) = transaction.way else { return Err(End::Closed) };
    hold(incoming, services, principal, transaction, head, Grounds { reason, lineage }).await
}

/// Why a message is held.
struct Grounds {
    reason: Reason,
    lineage: Option<Lineage>,
}

/// What a person's message has of an agent's draft. Only where an agent
/// drafted lately is the message taken whole before anything is passed on;
/// it then comes once more from a file.
async fn compare<S: Connection>(
    incoming: &mut Incoming<'_, S>,
    services: &Services,
    principal: &Principal,
    head: &mut Vec<u8>,
) -> Result<Result<Option<Lineage>, Reply>, End> {
    match services.outbox.has_drafts(&principal.account) {
        Ok(false) => return Ok(Ok(None)),
        Ok(true) => {}
        Err(error) => return Ok(Err(hold_fault(&error))),
    }
    let mut file = match scratch(&services.config.state_dir) {
        Ok(file) => file,
        Err(error) => return Ok(Err(store_fault(&error))),
    };
    let mut compared = Vec::new();
    loop {
        if let Err(error) = file.write_all(head) {
            return Ok(Err(store_fault(&scratch_fault(&error))));
        }
        let room = usize::try_from(MAX_COMPARED).unwrap_or(usize::MAX).saturating_sub(compared.len());
        compared.extend_from_slice(&head[..head.len().min(room)]);
        if incoming.ended {
            break;
        }
        head.clear();
        if let Err(unfit) = incoming.next(head).await? {
            return Ok(Err(unfit.reply()));
        }
    }
    head.clear();
    if let Err(error) = file.rewind() {
        return Ok(Err(store_fault(&scratch_fault(&error))));
    }
    (incoming.again, incoming.ended, incoming.length) = (Some(file), false, 0);
    let (outbox, account) = (services.outbox.clone(), principal.account.clone());
    let found = tokio::task::spawn_blocking(move || outbox.lineage(&account, &compared)).await;
    Ok(match found {
        Ok(found) => found.map_err(|error| hold_fault(&error)),
        Err(error) => Err(store_fault(&StoreError::Failed(error.to_string()))),
    })
}

fn scratch_fault(error: &std::io::Error) -> StoreError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full(error.to_string()),
        _ => StoreError::Failed(error.to_string()),
    }
}

/// Reads until the header is whole, or longer than what is looked at.
async fn read_header<S: Connection>(
    incoming: &mut Incoming<'_, S>,
    head: &mut Vec<u8>,
) -> Result<Result<(), Unfit>, End> {
    let mut searched: usize = 0;
    while !incoming.ended && head.len() < MAX_MARKS_HEADER {
        if let Err(unfit) = incoming.next(head).await? {
            return Ok(Err(unfit));
        }
        // The empty line may begin in the octets before.
        let from = searched.saturating_sub(3);
        if head.starts_with(b"\r\n") || memchr::memmem::find(&head[from..], b"\r\n\r\n").is_some() {
            break;
        }
        searched = head.len();
    }
    Ok(Ok(()))
}

async fn refuse<S: Connection>(
    incoming: &mut Incoming<'_, S>,
    transaction: Transaction,
    reply: Reply,
) -> Result<Done, End> {
    transaction.abandon();
    incoming.drain().await?;
    Ok(Done::Reply(reply))
}

/// A person's message, into the provider's own DATA.
async fn relay<S: Connection>(
    mut incoming: Incoming<'_, S>,
    services: &Services,
    principal: &Principal,
    transaction: Transaction,
    head: Vec<u8>,
    release: Release,
) -> Result<Done, End> {
    let Way::Relay(mut submission) = transaction.way else { return Err(End::Closed) };
    let mut first = services.outbox.has_agents(&principal.account).then(Vec::new);
    let reply = match pass(&mut incoming, &mut submission, head, release, first.as_mut()).await? {
        Ok(reply) => passed_on(reply),
        Err(reply) => reply,
    };
    // Nothing is dropped here: a writer that was given up has closed the
    // connection, and then QUIT does nothing.
    tokio::spawn(submission.quit());
    incoming.drain().await?;
    if reply.is_positive() {
        let to: Vec<String> = transaction.to.into_iter().map(|r| r.written).collect();
        tracing::info!(account = %principal.account, recipients = to.len(), octets = incoming.length, "relayed");
        (services.on_person_sent)(&principal.account, &to);
        if let Some(first) = first {
            remember(services, principal, first);
        }
    }
    Ok(Done::Reply(reply))
}

/// Remembers what a person wrote, after the client has its reply: nothing is
/// lost with it but a question less.
fn remember(services: &Services, principal: &Principal, first: Vec<u8>) {
    let (outbox, account) = (services.outbox.clone(), principal.account.clone());
    tokio::spawn(async move {
        if let Err(error) = outbox.wrote(&account, &first).await {
            tracing::warn!(%account, "what a person wrote was not remembered: {error}");
        }
    });
}

/// Streams; the provider's final reply, or the reply that stands for it. On
/// `Err` the provider never got the final dot, or nobody knows.
async fn pass<S: Connection>(
    incoming: &mut Incoming<'_, S>,
    submission: &mut Submission,
    mut chunk: Vec<u8>,
    release: Release,
    mut first: Option<&mut Vec<u8>>,
) -> Result<Result<Reply, Reply>, End> {
    let mut data: DataWriter<'_> = match submission.data(release).await {
        Ok(data) => data,
        Err(error) => return Ok(Err(data_fault(error))),
    };
    loop {
        if let Some(first) = &mut first {
            let room = MAX_REMEMBERED.saturating_sub(first.len());
            first.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        if let Err(error) = data.chunk(&chunk).await {
            return Ok(Err(data_fault(error)));
        }
        if incoming.ended {
            break;
        }
        chunk.clear();
        // The writer is dropped with an unfit message, or a client that went,
        // and the provider sees a connection that ended without the dot.
        if let Err(unfit) = incoming.next(&mut chunk).await? {
            return Ok(Err(unfit.reply()));
        }
    }
    Ok(data.finish().await.map_err(data_fault))
}

fn data_fault(error: DataError) -> Reply {
    match error {
        DataError::Refused(reply) => passed_on(reply),
        DataError::Before(inner) => provider_fault(&inner),
        DataError::Octets(_) => Reply::new(550, "5.6.0", "lines must end in CR LF"),
        DataError::Mismatch => Reply::new(554, "5.7.1", "the message changed on its way; nothing was sent"),
        DataError::Unknown(_) => Reply::new(
            451,
            "4.4.2",
            "the provider did not answer at the end of the message; it may have been sent, look before sending again",
        ),
    }
}

/// What is to be held, on its way to disk.
struct Spool {
    blob: Result<BlobWriter, StoreError>,
    checker: Option<Checker>,
}

impl Spool {
    fn take(&mut self, octets: &[u8]) {
        if let Some(checker) = &mut self.checker {
            checker.feed(octets);
        }
        if let Ok(blob) = &mut self.blob
            && let Err(error) = blob.write(octets)
        {
            self.blob = Err(error);
        }
    }
}

/// Spools the message, checks it, makes it durable and holds it.
async fn hold<S: Connection>(
    mut incoming: Incoming<'_, S>,
    services: &Services,
    principal: &Principal,
    transaction: Transaction,
    head: Vec<u8>,
    grounds: Grounds,
) -> Result<Done, End> {
    let mut spool = Spool { blob: Ok(services.store.blobs().writer()), checker: None };
    if principal.role == Role::Agent {
        spool.checker = Some(Checker::new(Rules {
            addresses: transaction.addresses.clone(),
            eight_bit: transaction.parameters.eight_bit,
            smtputf8: transaction.parameters.smtputf8,
        }));
    }
    let mut kept = Kept::default();
    let mut chunk = head;
    loop {
        kept.take(&chunk);
        spool.take(&chunk);
        if incoming.ended {
            break;
        }
        chunk.clear();
        if let Err(unfit) = incoming.next(&mut chunk).await? {
            drop(spool);
            incoming.drain().await?;
            // A fault found later still counts: it is the graver of the two.
            return Ok(Done::Reply(incoming.unfit().unwrap_or(unfit).reply()));
        }
    }
    let passed = match spool.checker.take().map(Checker::finish) {
        None => kept.passed(),
        Some(Ok(passed)) => passed,
        Some(Err(refusal)) => return Ok(Done::Reply(refusal.reply())),
    };
    Ok(match commit(services, principal, &transaction, spool, passed, grounds).await {
        Ok(id) => Done::Held(id),
        Err(reply) => Done::Reply(reply),
    })
}

async fn commit(
    services: &Services,
    principal: &Principal,
    transaction: &Transaction,
    spool: Spool,
    passed: Passed,
    grounds: Grounds,
) -> Result<HoldId, Reply> {
    let envelope = transaction.envelope()?;
    let writer = spool.blob.map_err(|error| store_fault(&error))?;
    let Settled { id: blob, length, row } = writer.settle().await.map_err(|error| store_fault(&error))?;
    let action = match principal.role {
        Role::Person => Action::SendEmail,
        Role::Agent => action_of(services, principal, transaction, &blob, row.clone()).await?,
    };
    if action == Action::ForwardExternal && principal.grants.now().of(Verb::Forward) == Grant::Off {
        return Err(Reply::new(550, "5.7.1", "this key may not forward mail of the mailbox to outside"));
    }
    let intake = Intake {
        account: principal.account.clone(),
        key: principal.key.clone(),
        role: principal.role,
        envelope,
        blob,
        row,
        length,
        message_id: passed.message_id,
        subject: passed.subject,
        reason: grounds.reason,
        action,
        lineage: grounds.lineage,
    };
    services.outbox.hold(intake).await.map_err(|error| hold_fault(&error))
}

/// What an agent's submission is, read from the very octets that are held.
async fn action_of(
    services: &Services,
    principal: &Principal,
    transaction: &Transaction,
    blob: &BlobId,
    row: Option<Arc<[u8]>>,
) -> Result<Action, Reply> {
    let outside = transaction.outside();
    if let Some(octets) = &row
        && matches!(services.outbox.has_arrived(&principal.account), Ok(false))
    {
        // Little to read, and nothing to compare it with: not worth a thread.
        let action = services.outbox.action_of(&principal.account, octets, &outside);
        return action.map_err(|error| hold_fault(&error));
    }
    let (outbox, store, account) = (services.outbox.clone(), services.store.clone(), principal.account.clone());
    let blob = *blob;
    let read = tokio::task::spawn_blocking(move || -> Result<Action, HoldError> {
        if let Some(octets) = row {
            return outbox.action_of(&account, &octets, &outside);
        }
        let mut octets = Vec::new();
        let file = store.blobs().open(&blob)?;
        file.take(MAX_COMPARED).read_to_end(&mut octets).map_err(|e| StoreError::Failed(e.to_string()))?;
        outbox.action_of(&account, &octets, &outside)
    });
    match read.await {
        Ok(action) => action.map_err(|error| hold_fault(&error)),
        Err(error) => Err(store_fault(&StoreError::Failed(error.to_string()))),
    }
}

fn store_fault(error: &StoreError) -> Reply {
    tracing::error!(%error, "a message can't be held");
    match error {
        StoreError::Full(_) => Reply::new(452, "4.3.1", "no space is left to hold the message; try again later"),
        StoreError::InUse(_)
        | StoreError::Newer { .. }
        | StoreError::Damaged { .. }
        | StoreError::Gone(_)
        | StoreError::Failed(_) => Reply::new(451, "4.3.0", "the message can't be held; try again later"),
    }
}

fn hold_fault(error: &HoldError) -> Reply {
    match error {
        HoldError::Store(inner) => store_fault(inner),
        HoldError::TooMany(_) | HoldError::TooManyOctets(_) => Reply::new(452, "4.7.1", error.to_string()),
        // RFC 3463 §3.4: X.3.1, the system is full.
        HoldError::Crowded => Reply::new(452, "4.3.1", error.to_string()),
        HoldError::NeverFits(_) => Reply::new(552, "5.3.4", error.to_string()),
        HoldError::KeyRevoked => Reply::new(550, "5.7.1", error.to_string()),
        HoldError::NoAccount => Reply::new(550, "5.7.1", error.to_string()),
        HoldError::NotFound
        | HoldError::Illegal(_)
        | HoldError::Again(_)
        | HoldError::Random(_)
        | HoldError::LostLease
        | HoldError::Witness(_)
        | HoldError::Identity(_) => {
            tracing::error!(%error, "a message can't be held");
            Reply::new(451, "4.3.0", "the message can't be held; try again later")
        }
    }
}

/// The header of a person's held message, for its Subject and Message-ID.
#[derive(Default)]
struct Kept {
    header: Vec<u8>,
}

impl Kept {
    fn take(&mut self, octets: &[u8]) {
        let room = MAX_MARKS_HEADER.saturating_sub(self.header.len());
        self.header.extend_from_slice(&octets[..octets.len().min(room)]);
    }

    fn passed(&self) -> Passed {
        let field = |name: &str| {
            let value = crate::mail::header::values(&self.header, name).into_iter().next()?;
            let text = String::from_utf8_lossy(&value).into_owned();
            (text.len() <= MAX_KEPT_FIELD).then_some(text)
        };
        Passed { message_id: field("Message-ID"), subject: field("Subject") }
    }
}
