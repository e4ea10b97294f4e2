//! One attempt to send an approved message.
//!
//! Promises: the octets are hashed before the provider is called and again
//! while they are written; every recipient is accepted or nothing is sent;
//! an error before the final dot means that nothing was sent, one after it
//! is [`Outcome::Unknown`]. Doesn't know: states; [`super::run`] keeps them.

use std::io::Read;

use sha2::{Digest, Sha256};

use super::Outbox;
use super::hold::{Hold, HoldError};
use super::record;
use super::route::RouteError;
use crate::account::SecretError;
use crate::floor::envelope::{BodyType, Envelope};
use crate::floor::ledger::LedgerHead;
use crate::floor::payload::PayloadHash;
use crate::floor::receipt::{Expect, ReceiptError, Verified};
use crate::floor::release::Release;
use crate::store::blob::BlobReader;
use crate::store::{self, StoreError, failpoint};
use crate::upstream::smtp::{DataError, MailParameters, Submission, SubmissionError};
use crate::wire::smtp::Reply;

/// Octets read from the file at once.
const READ_CHUNK: usize = 64 * 1024;

/// Why an attempt ended. The ledger gets the code alone: the text may quote
/// the provider, and the provider the message.
#[derive(Debug)]
pub(super) struct Why {
    /// A reply code, or a word.
    pub(super) code: String,
    /// For people.
    pub(super) text: String,
}

impl Why {
    fn local(text: impl Into<String>) -> Why {
        Why { code: "local".to_owned(), text: text.into() }
    }

    fn reply(reply: &Reply, text: impl Into<String>) -> Why {
        Why { code: reply.code().to_string(), text: text.into() }
    }
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The provider took the message.
    Sent(PayloadHash, String),
    /// Nothing was sent; another attempt may help.
    ForNow(Why),
    /// Nothing was sent; no attempt will help.
    ForGood(Why),
    /// Nobody knows.
    Unknown(Why),
}

/// Why an attempt did not end with a 2yz.
#[derive(Debug)]
pub(super) enum Stop {
    ForNow(Why),
    ForGood(Why),
    Unknown(Why),
}

/// A receipt that covers what is about to be carried out, and when that was
/// found.
pub(super) struct Standing {
    pub(super) verified: Verified,
    pub(super) payload: PayloadHash,
    pub(super) head: LedgerHead,
    pub(super) now: i64,
}

pub(super) fn not_covered(error: ReceiptError) -> Stop {
    Stop::for_good(format!("the receipt does not cover it: {error}"))
}

impl From<Result<(PayloadHash, String), Stop>> for Outcome {
    fn from(tried: Result<(PayloadHash, String), Stop>) -> Outcome {
        match tried {
            Ok((payload, said)) => Outcome::Sent(payload, said),
            Err(Stop::ForNow(why)) => Outcome::ForNow(why),
            Err(Stop::ForGood(why)) => Outcome::ForGood(why),
            Err(Stop::Unknown(why)) => Outcome::Unknown(why),
        }
    }
}

impl Outbox {
    /// Sends `hold`, which the caller has claimed.
    pub(super) async fn send(&self, hold: &Hold) -> Outcome {
        if !hold.action.sends() {
            return self.delete(hold).await.into();
        }
        self.try_send(hold).await.map(|(payload, reply)| (payload, reply.summary())).into()
    }

    async fn try_send(&self, hold: &Hold) -> Result<(PayloadHash, Reply), Stop> {
        if self.is_revoked(&hold.key) {
            return Err(Stop::for_good("the submitting key was revoked"));
        }
        let Standing { verified, payload, head, now } = self.standing(hold)?;
        let release = Release::from_receipt(verified, hold.action, now, &hold.envelope).map_err(not_covered)?;
        self.check_file(hold).await?;
        // From the provider's first octet on a restored backup must be able
        // to tell that this attempt was made.
        self.witness_head(head).map_err(|e| Stop::for_now(e.to_string()))?;
        let mut submission = self.connect(&hold.account).await.map_err(Stop::from)?;
        offer_envelope(&mut submission, &hold.envelope, hold.length).await?;
        failpoint::hit("dispatch.before_data");
        self.keep_lease(hold).await.map_err(|e| Stop::for_now(e.to_string()))?;
        let reply = self.stream(hold, &mut submission, release).await?;
        tokio::spawn(failpoint::within("dispatch", submission.quit()));
        match reply {
            reply if reply.is_positive() => Ok((payload, reply)),
            reply if reply.is_permanent() => Err(Stop::ForGood(Why::reply(&reply, reply.summary()))),
            reply => Err(Stop::ForNow(Why::reply(&reply, reply.summary()))),
        }
    }

    /// The stored receipt, checked against everything that is about to be
    /// carried out: what a [`Release`] or a permit to delete is made of.
    pub(super) fn standing(&self, hold: &Hold) -> Result<Standing, Stop> {
        let upstream = self.upstream_names(&hold.account);
        let (host, login) = upstream.ok_or_else(|| Stop::for_good("the account is not configured"))?;
        let (row, entry, head, now) = store::read(self.store.as_ref(), |r| -> Result<_, HoldError> {
            let row = record::receipt(r, &hold.id)?;
            let entry = match &row {
                Some(row) => record::entry(r, row.receipt.ledger_head.number)?,
                None => None,
            };
            Ok((row, entry, record::last_entry(r)?.map(|e| e.head()), self.now(r)?))
        })
        .map_err(|e| Stop::for_now(e.to_string()))?;
        let row = row.ok_or_else(|| Stop::for_good("there is no receipt"))?;
        let head = head.ok_or_else(|| Stop::for_good("the ledger is empty"))?;
        let expect = Expect {
            action: hold.action,
            message: Some((hold.blob.0, hold.length)),
            envelope: Some(&hold.envelope),
            account: Some(hold.account.as_str()),
            hold: Some(hold.id.as_str()),
            upstream: Some((&host, &login)),
            approver: hold.approver.as_deref(),
            spent: row.spent,
            at: Some(now),
        };
        let verified = row
            .receipt
            .verify(&self.verifying_keys(), &expect)
            .and_then(|verified| row.receipt.check_ledger(entry.as_ref()).map(|()| verified))
            .map_err(not_covered)?;
        Ok(Standing { verified, payload: row.receipt.payload_hash, head, now })
    }

    /// Hashes the file before anybody is called: a file that was changed
    /// must not even open a transaction.
    async fn check_file(&self, hold: &Hold) -> Result<(), Stop> {
        let file = self.open(hold).map_err(unopened)?;
        let read = tokio::task::spawn_blocking(move || hash_of(file)).await;
        let (hash, length) = match read {
            Ok(Ok(found)) => found,
            Ok(Err(e)) => return Err(Stop::for_now(format!("the message can't be read: {e}"))),
            Err(e) => return Err(Stop::for_now(e.to_string())),
        };
        if (hash, length) == (hold.blob.0, hold.length) {
            Ok(())
        } else {
            Err(Stop::for_good("the stored message is not the approved one"))
        }
    }

    async fn stream(&self, hold: &Hold, submission: &mut Submission, release: Release) -> Result<Reply, Stop> {
        let mut file = self.open(hold).map_err(unopened)?;
        let mut data = submission.data(release).await.map_err(Stop::from)?;
        loop {
            // At most one chunk from the page cache: not worth a thread.
            let mut chunk = vec![0; READ_CHUNK];
            let n = file.read(&mut chunk).map_err(|e| Stop::for_now(format!("the message can't be read: {e}")))?;
            if n == 0 {
                break;
            }
            data.chunk(&chunk[..n]).await.map_err(Stop::from)?;
        }
        let ended = data.end().await.map_err(Stop::from)?;
        failpoint::hit("dispatch.after_dot");
        ended.reply().await.map_err(Stop::from)
    }
}

/// What is gone no attempt brings back; a store that fails may work again.
fn unopened(error: HoldError) -> Stop {
    match error {
        HoldError::Store(StoreError::Gone(_)) => Stop::for_good(format!("the message is gone: {error}")),
        other => Stop::for_now(format!("the message can't be read: {other}")),
    }
}

fn hash_of(mut file: BlobReader) -> std::io::Result<([u8; 32], u64)> {
    let (mut hasher, mut length, mut chunk) = (Sha256::new(), 0, vec![0; READ_CHUNK]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok((hasher.finalize().into(), length)),
            n => {
                hasher.update(&chunk[..n]);
                length += n as u64;
            }
        }
    }
}

/// MAIL and every RCPT, all or nothing.
async fn offer_envelope(submission: &mut Submission, envelope: &Envelope, length: u64) -> Result<(), Stop> {
    let parameters = MailParameters {
        size: Some(length),
        eight_bit: envelope.body == BodyType::EightBitMime,
        smtputf8: envelope.smtputf8,
    };
    let to: Vec<String> = envelope.forward_paths.iter().map(|p| p.as_str().to_owned()).collect();
    let (mail, rcpts) =
        submission.envelope(&envelope.reverse_path, &parameters, &to).await.map_err(|e| Stop::from_submission(&e))?;
    let refused = if mail.is_positive() {
        let mut refused = to.iter().zip(&rcpts).filter(|(_, reply)| !reply.is_positive());
        let first = refused.next().map(|(to, reply)| (format!("<{to}>"), reply));
        // One refusal for good among several decides.
        let for_good = rcpts.iter().any(|reply| reply.is_permanent() && !wants_credentials(reply));
        first.map(|(to, reply)| (to, reply, for_good))
    } else {
        Some(("the sender".to_owned(), &mail, mail.is_permanent()))
    };
    let Some((who, reply, for_good)) = refused else { return Ok(()) };
    let why = Why::reply(reply, format!("{who} was refused, nothing was sent: {}", reply.summary()));
    let _ = submission.rset().await;
    Err(if for_good && !wants_credentials(reply) { Stop::ForGood(why) } else { Stop::ForNow(why) })
}

/// RFC 4954 §6: replies about our own sign-in. They are permanent, and no
/// fault of the message.
fn wants_credentials(reply: &Reply) -> bool {
    matches!(reply.code(), 530 | 534 | 535 | 538)
}

impl Stop {
    pub(super) fn for_now(text: impl Into<String>) -> Stop {
        Stop::ForNow(Why::local(text))
    }

    pub(super) fn for_good(text: impl Into<String>) -> Stop {
        Stop::ForGood(Why::local(text))
    }

    fn from_submission(error: &SubmissionError) -> Stop {
        let why = match error {
            SubmissionError::Auth(reply) | SubmissionError::Refused { reply, .. } => {
                Why::reply(reply, error.to_string())
            }
            _ => Why::local(error.to_string()),
        };
        match error {
            SubmissionError::NotOffered(_) | SubmissionError::TooLarge { .. } => Stop::ForGood(why),
            SubmissionError::Connect(_)
            | SubmissionError::NoStartTls
            | SubmissionError::PlaintextInjected
            | SubmissionError::NoMechanism
            | SubmissionError::Auth(_)
            | SubmissionError::Refused { .. }
            | SubmissionError::Reply(_)
            | SubmissionError::OutOfStep
            | SubmissionError::Timeout(_)
            | SubmissionError::Io(_)
            | SubmissionError::Closed => Stop::ForNow(why),
        }
    }
}

impl From<RouteError> for Stop {
    fn from(error: RouteError) -> Self {
        match &error {
            // Also mail that was held while a password was still stored.
            RouteError::NoAccount | RouteError::Secret(SecretError::OwnLogin) => Stop::for_good(error.to_string()),
            RouteError::NoProvider | RouteError::Secret(_) => Stop::for_now(error.to_string()),
            RouteError::Submission(inner) => Stop::from_submission(inner),
        }
    }
}

impl From<DataError> for Stop {
    fn from(error: DataError) -> Self {
        match &error {
            DataError::Refused(reply) if reply.is_permanent() && !wants_credentials(reply) => {
                Stop::ForGood(Why::reply(reply, error.to_string()))
            }
            DataError::Refused(reply) => Stop::ForNow(Why::reply(reply, error.to_string())),
            DataError::Mismatch | DataError::Octets(_) => Stop::for_good(error.to_string()),
            DataError::Before(inner) => Stop::from_submission(inner),
            DataError::Unknown(_) => Stop::Unknown(Why { code: "no_answer".to_owned(), text: error.to_string() }),
        }
    }
}
