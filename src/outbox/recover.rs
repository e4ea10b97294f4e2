//! What a start finds: a restored backup, and attempts that nobody is at work
//! on any more.
//!
//! Promises: before any of a restored state can be decided or sent, what is
//! open in it is `unknown`, in the ledger and said loudly; an attempt that was
//! cut off is `unknown`. Doesn't know: a restore that brought the witness
//! back too.

use super::hold::{Hold, HoldError};
use super::lease::Orphans;
use super::record;
use super::witness::Seen;
use super::{Identity, Outbox};
use crate::floor::identity::{key_id, to_text};
use crate::floor::ledger::{Event, LedgerHead};
use crate::floor::submission::Transition;
use crate::store::{self, Reader, Table, Writer, get_json, put_json};

/// Key in [`Table::Meta`]: whether this state was ever witnessed.
const WITNESSED: &[u8] = b"outbox/witnessed";
/// Key in [`Table::Meta`]: id of the key that the ledger names last.
const SIGNING_KEY: &[u8] = b"outbox/signing_key";
/// Reason code of what was open in a restored backup.
const RESTORED: &str = "restored";
/// Reason code of an attempt that was cut off.
const RESTART: &str = "restart";

/// What a start found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Holds that are unknown now because the state is a restored backup;
    /// `None` where it isn't.
    pub restored: Option<usize>,
    /// Attempts that were cut off.
    pub cut_off: usize,
}

impl Outbox {
    /// Once at a start, before anybody can decide: looks for a restored
    /// backup and for attempts that were cut off.
    pub async fn recover(&self) -> Result<Found, HoldError> {
        let mut done = self.recovered.lock().await;
        if *done {
            return Ok(Found::default());
        }
        let seen = self.witness.read().map_err(|e| self.no_witness(&e))?;
        let clock = (self.tuning.clock)();
        let (gateway, identity) = (self.gateway_id(), self.identity());
        let orphans = self.orphans();
        let (found, changed, head) = self
            .commit("recover", move |w| {
                note_signing_key(w, &identity, clock)?;
                record::index_once(w)?;
                let doubt = doubted(w, seen.as_ref(), &gateway)?;
                let mut changed = Vec::new();
                let found = match doubt {
                    Some(witnessed) => {
                        changed = restored(w, witnessed, clock)?;
                        Found { restored: Some(changed.len()), cut_off: 0 }
                    }
                    None => {
                        cut_off(w, &orphans, clock, &mut changed)?;
                        Found { restored: None, cut_off: changed.len() }
                    }
                };
                Ok::<_, HoldError>((found, changed, record::last_entry(w)?.map(|e| e.head())))
            })
            .await?;
        if let Some(open) = found.restored {
            tracing::error!(
                open,
                witness = %self.witness.path().display(),
                "THE STATE IS A RESTORED BACKUP: what was open in it may have been decided or sent since; it is \
                 unknown now, and a person must look at each"
            );
        }
        if let Some(head) = head {
            let witnessed = match found.restored {
                Some(_) => self.witness.reset(&self.gateway_id(), head),
                None => self.witness.advance(&self.gateway_id(), head),
            };
            witnessed.map_err(|e| self.no_witness(&e))?;
            self.enrol().await?;
        }
        *done = true;
        self.say(&changed);
        Ok(found)
    }

    /// Makes attempts `unknown` that nobody is at work on any more.
    pub(super) async fn doubt_orphans(&self) -> Result<(), HoldError> {
        let (clock, orphans) = ((self.tuning.clock)(), self.orphans());
        let changed = self
            .commit("recover", move |w| {
                let mut changed = Vec::new();
                cut_off(w, &orphans, clock, &mut changed)?;
                Ok::<_, HoldError>(changed)
            })
            .await?;
        self.say(&changed);
        Ok(())
    }

    fn say(&self, changed: &[Hold]) {
        for hold in changed {
            tracing::warn!(hold = %hold.id, detail = hold.detail.as_deref().unwrap_or_default(), "unknown");
            self.announce(hold);
        }
    }

    /// Makes the gateway sign with a new key. Receipts of the keys before
    /// stay verifiable.
    pub async fn rotate_key(&self) -> Result<(), HoldError> {
        let _one = self.rotating.lock().await;
        let disk = self.store.disk().clone();
        let new = self.identity().rotate(&self.identity_path(), &disk)?;
        self.set_identity(new.clone());
        let clock = (self.tuning.clock)();
        self.commit("rotate", move |w| note_signing_key(w, &new, clock)).await?;
        tracing::warn!("the gateway signs with a new key from now on; give out identity.pub again");
        Ok(())
    }

    /// Notes in the state that there is a witness outside: from now on one
    /// that is missing is a sign. Only after the witness is durable, or a crash
    /// in between would look like a restore.
    async fn enrol(&self) -> Result<(), HoldError> {
        let enrolled = |r: &dyn Reader| get_json::<bool>(r, Table::Meta, WITNESSED);
        if store::read(self.store.as_ref(), |r| enrolled(r).map_err(HoldError::from))?.unwrap_or_default() {
            return Ok(());
        }
        self.commit("enrol", |w| Ok(put_json(w, Table::Meta, WITNESSED, &true)?)).await
    }

    /// Witnesses what the ledger has come to.
    pub(super) async fn follow(&self) -> Result<(), HoldError> {
        let Some(head) = self.ledger_head()? else { return Ok(()) };
        self.witness_head(head)?;
        self.enrol().await
    }

    /// Witnesses the ledger's head, where it went on.
    pub(super) fn witness_head(&self, head: LedgerHead) -> Result<(), HoldError> {
        self.witness.advance(&self.gateway_id(), head).map_err(|e| self.no_witness(&e))
    }

    fn no_witness(&self, error: &std::io::Error) -> HoldError {
        HoldError::Witness(format!("{}: {error}", self.witness.path().display()))
    }
}

/// The ledger names every change of the key that signs. An entry that a crash kept from
/// being written after the file was is written at the next start.
fn note_signing_key(w: &mut dyn Writer, identity: &Identity, clock: i64) -> Result<(), HoldError> {
    let key = identity.signing.verifying_key();
    let (id, before) = (key_id(&key), get_json::<String>(w, Table::Meta, SIGNING_KEY)?);
    match before {
        Some(same) if same == id => return Ok(()),
        Some(retired) => {
            let event = Event::SigningKey { retired, key: id.clone(), public: to_text(&key) };
            record::append(w, clock, event)?;
        }
        // The first one; every receipt names it.
        None => {}
    }
    put_json(w, Table::Meta, SIGNING_KEY, &id)?;
    Ok(())
}

/// Whether the state is not the one that was witnessed; the head that was.
fn doubted(w: &dyn Writer, seen: Option<&Seen>, gateway: &str) -> Result<Option<String>, HoldError> {
    let Some(seen) = seen.filter(|seen| seen.gateway == gateway) else {
        // A state that was never witnessed is new here; one that was has
        // been moved, or brought back, without its witness.
        let before: Option<bool> = get_json(w, Table::Meta, WITNESSED)?;
        return Ok(before.unwrap_or_default().then(String::new));
    };
    let entry = record::entry(w, seen.head.number)?;
    let same = entry.is_some_and(|entry| entry.is_intact() && entry.head() == seen.head);
    Ok((!same).then(|| seen.head.to_string()))
}

/// Everything open becomes unknown.
fn restored(w: &mut dyn Writer, witnessed: String, clock: i64) -> Result<Vec<Hold>, HoldError> {
    let open = record::open(w)?;
    record::append(w, clock, Event::Restored { witnessed, open: open.len() as u64 })?;
    let mut changed = Vec::new();
    for mut hold in open {
        let event = Event::Unknown { hold: hold.id.to_string(), attempt: hold.attempt, reason: RESTORED.to_owned() };
        let detail = "a backup was restored; it may have been decided or sent since the backup was made".to_owned();
        record::transition(w, &mut hold, Transition::Restored, clock, event, Some(detail))?;
        record::spend(w, &hold.id)?;
        changed.push(hold);
    }
    Ok(changed)
}

/// Attempts that nobody is at work on: nobody knows where they were cut off.
fn cut_off(w: &mut dyn Writer, orphans: &Orphans, clock: i64, changed: &mut Vec<Hold>) -> Result<(), HoldError> {
    let now = record::now(w, clock)?;
    for mut hold in record::open(w)?.into_iter().filter(|h| orphans.has(h, now)) {
        let event = Event::Unknown { hold: hold.id.to_string(), attempt: hold.attempt, reason: RESTART.to_owned() };
        let detail = "the gateway stopped while it was being sent; it may have been sent".to_owned();
        record::transition(w, &mut hold, Transition::NoAnswer, clock, event, Some(detail))?;
        record::spend(w, &hold.id)?;
        changed.push(hold);
    }
    Ok(())
}
