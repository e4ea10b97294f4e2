//! What people and submitters do to a hold: hold, show, approve, deny,
//! withdraw, hold again. Each is one transaction.

use super::approver::Proof;
use super::hold::{ApproveError, Denial, Hold, HoldError, HoldId, Intake, RevokeError, Shown, ShownRecord};
use super::record::{self, Count, ReceiptRow};
use super::{MAX_SHOWN, Outbox, SHOWN_TTL_SECONDS};
use crate::account::{AccountId, KeyId, KeyInfo, Role, is_revoked_in};
use crate::floor::digest::{Hash, to_hex};
use crate::floor::ledger::{Entry, Event};
use crate::floor::payload::{Payload, SCHEMA};
use crate::floor::receipt::{Receipt, mint_with};
use crate::floor::submission::{Illegal, State, Transition, step};
use crate::store::{self, StoreError, Writer, blob};

/// Random octets of a page's nonce.
const NONCE_OCTETS: usize = 16;
/// Reason code of a hold whose key was revoked.
const KEY_REVOKED: &str = "key_revoked";
/// Reason code of a hold that its submitter took back.
const SUBMITTER: &str = "submitter";
/// Longest reason of a denial that is kept, in characters.
const MAX_REASON_CHARS: usize = 500;

impl Outbox {
    /// Holds a submission. When it returns the id, octets and state are on
    /// disk; what is no row of the intake the caller made durable before.
    pub async fn hold(&self, intake: Intake) -> Result<HoldId, HoldError> {
        if self.is_revoked(&intake.key) {
            return Err(HoldError::KeyRevoked);
        }
        let id = HoldId::random()?;
        let limits = (intake.role == Role::Agent).then(|| self.limits());
        limits.iter().try_for_each(|limits| limits.alone(intake.length))?;
        let (ttl, clock) = (seconds(self.config.hold_ttl), (self.tuning.clock)());
        let order = self.in_order(&id).await;
        let hold = self
            .commit("hold", move |w| -> Result<Hold, HoldError> {
                if is_revoked_in(w, &intake.key)? {
                    return Err(HoldError::KeyRevoked);
                }
                record::count_once(w)?;
                if let Some(limits) = &limits {
                    let (of_key, of_all) = record::counts(w, intake.key.as_str())?;
                    limits.check(intake.length, of_key, of_all)?;
                }
                if let Some(octets) = &intake.row {
                    blob::put(w, &intake.blob, octets)?;
                }
                insert(w, id.clone(), intake.clone(), ttl, clock)
            })
            .await?;
        self.announce(&hold);
        drop(order);
        // The key may have been revoked, and its holds frozen, in between.
        if self.is_revoked(&hold.key) {
            self.freeze_key(&hold.key).await?;
            return Err(HoldError::KeyRevoked);
        }
        tracing::info!(hold = %hold.id, account = %hold.account, reason = ?hold.reason, "held");
        Ok(hold.id)
    }

    /// Prepares a payload with a fresh nonce for `approver` to look at, and
    /// remembers it, so that [`Outbox::approve`] can compare.
    pub async fn show(&self, account: &AccountId, id: &HoldId, approver: &str) -> Result<Shown, HoldError> {
        self.show_for(account, id, approver, self.config.approval.method()).await
    }

    /// As [`Outbox::show`], for an approval by `method`.
    pub async fn show_for(
        &self,
        account: &AccountId,
        id: &HoldId,
        approver: &str,
        method: &'static str,
    ) -> Result<Shown, HoldError> {
        let mut nonce = [0; NONCE_OCTETS];
        getrandom::fill(&mut nonce).map_err(|e| HoldError::Random(e.to_string()))?;
        let (clock, ttl) = ((self.tuning.clock)(), seconds(self.config.receipt_ttl));
        let (account, id, approver) = (account.clone(), id.clone(), approver.to_owned());
        let (hold, shown) = self
            .commit("show", move |w| -> Result<_, HoldError> {
                let mut hold = record::load_of(w, &account, &id)?.ok_or(HoldError::NotFound)?;
                let now = record::now(w, clock)?;
                let shown = ShownRecord {
                    nonce: to_hex(&nonce),
                    approver: approver.clone(),
                    method: method.to_owned(),
                    time: now,
                    expiry: now.saturating_add(ttl),
                };
                // What is decided can be looked at; it can't be approved.
                if hold.state == State::Held {
                    hold.shown.retain(|s| now.saturating_sub(s.time) < SHOWN_TTL_SECONDS);
                    if hold.shown.len() >= MAX_SHOWN {
                        hold.shown.remove(0);
                    }
                    hold.shown.push(shown.clone());
                    record::save(w, &hold)?;
                }
                Ok((hold, shown))
            })
            .await?;
        let upstream = self.upstream_names(&hold.account).ok_or(HoldError::NoAccount)?;
        let payload = payload(&self.gateway_id(), &hold, &shown, upstream);
        let hash = payload.hash();
        Ok(Shown { hold, payload, hash })
    }

    /// [`Outbox::approve_with`] after the PIN was checked.
    pub async fn approve(
        &self,
        account: &AccountId,
        id: &HoldId,
        nonce: &str,
        displayed_hash: &str,
        approver: &str,
    ) -> Result<Receipt, ApproveError> {
        self.approve_with(account, id, nonce, displayed_hash, approver, Proof::Pin).await
    }

    /// Approves what was shown under `nonce`, if it is still what would be
    /// sent: its hash must be `displayed_hash`, written as [`Shown::hash`] is.
    /// The caller checked `proof`; that it is of the method that was shown and
    /// that is configured, and that an assertion names this payload, is
    /// checked again in the approving transaction.
    pub async fn approve_with(
        &self,
        account: &AccountId,
        id: &HoldId,
        nonce: &str,
        displayed_hash: &str,
        approver: &str,
        proof: Proof,
    ) -> Result<Receipt, ApproveError> {
        if !self.config.approval.takes(proof.method()) {
            return Err(ApproveError::Method);
        }
        let upstream = self.upstream_names(account).ok_or(ApproveError::NoAccount)?;
        let revoked: std::collections::HashSet<KeyId> = self.revoked_keys(account);
        let (clock, signing) = ((self.tuning.clock)(), self.identity().signing);
        let gateway_id = self.gateway_id();
        let (account, id) = (account.clone(), id.clone());
        let (nonce, displayed, approver) = (nonce.to_owned(), displayed_hash.to_owned(), approver.to_owned());
        let order = self.in_order(&id).await;
        let (hold, receipt) = self
            .commit("approve", move |w| -> Result<_, ApproveError> {
                let mut hold = record::load_of(w, &account, &id)?.ok_or(ApproveError::NotFound)?;
                let now = record::now(w, clock)?;
                if hold.state != State::Held {
                    return Err(ApproveError::NotHeld(hold.state));
                }
                if hold.expires_at.is_some_and(|at| at <= now) {
                    return Err(ApproveError::NotHeld(State::Expired));
                }
                if revoked.contains(&hold.key) {
                    return Err(ApproveError::KeyRevoked);
                }
                let shown = hold.shown.iter().find(|s| s.nonce == nonce && s.approver == approver);
                let shown = shown.filter(|s| now.saturating_sub(s.time) < SHOWN_TTL_SECONDS && now < s.expiry);
                let payload = payload(&gateway_id, &hold, shown.ok_or(ApproveError::Stale)?, upstream.clone());
                if payload.hash().to_string() != displayed {
                    return Err(ApproveError::HashDiffers);
                }
                if payload.method != proof.method() {
                    return Err(ApproveError::Method);
                }
                let assertion = proof.assertion();
                if let Some(assertion) = &assertion {
                    assertion.names(&payload).map_err(ApproveError::Proof)?;
                }
                let event =
                    Event::Approved { hold: hold.id.to_string(), payload: payload.hash(), approver: approver.clone() };
                hold.approver = Some(approver.clone());
                hold.next_attempt = Some(now);
                let entry = approve_transition(w, &mut hold, clock, event)?;
                let receipt = mint_with(&payload, &signing, entry.head(), assertion);
                record::put_receipt(w, &hold.id, &ReceiptRow { receipt: receipt.clone(), spent: false })?;
                Ok((hold, receipt))
            })
            .await?;
        tracing::info!(hold = %hold.id, account = %hold.account, "approved");
        self.announce(&hold);
        drop(order);
        self.kick();
        Ok(receipt)
    }

    /// Denies a hold.
    pub async fn deny(&self, account: &AccountId, id: &HoldId, reason: &str, approver: &str) -> Result<(), HoldError> {
        let event = Event::Denied { hold: id.to_string(), approver: approver.to_owned() };
        let reason: String = reason.chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect();
        let reason = (!reason.is_empty()).then_some(reason);
        self.decide(account, id, Transition::Deny, event, reason, Some(approver.to_owned())).await
    }

    /// Takes a hold back, on its submitter's word.
    pub async fn withdraw(&self, account: &AccountId, id: &HoldId) -> Result<(), HoldError> {
        let event = Event::Withdrawn { hold: id.to_string(), reason: SUBMITTER.to_owned() };
        self.decide(account, id, Transition::Withdraw, event, Some(SUBMITTER.to_owned()), None).await
    }

    /// A person saw that the outcome is unknown and wants the same octets to
    /// be held again; the new hold needs an approval of its own.
    pub async fn resend_unknown(&self, account: &AccountId, id: &HoldId, approver: &str) -> Result<HoldId, HoldError> {
        let again = HoldId::random()?;
        let (ttl, clock) = (seconds(self.config.hold_ttl), (self.tuning.clock)());
        let (account, id, approver) = (account.clone(), id.clone(), approver.to_owned());
        let _order = self.in_order(&again).await;
        let hold = self
            .commit("resend", move |w| -> Result<Hold, HoldError> {
                let mut old = record::load_of(w, &account, &id)?.ok_or(HoldError::NotFound)?;
                if let Some(again) = old.again {
                    return Err(HoldError::Again(again));
                }
                if old.state != State::Unknown {
                    return Err(Illegal { state: old.state, transition: Transition::Approve }.into());
                }
                let event =
                    Event::Reheld { hold: id.to_string(), again: again.to_string(), approver: approver.clone() };
                record::append(w, clock, event)?;
                old.again = Some(again.clone());
                record::save(w, &old)?;
                let intake = Intake {
                    account: old.account,
                    key: old.key,
                    role: old.role,
                    envelope: old.envelope,
                    blob: old.blob,
                    row: None,
                    length: old.length,
                    message_id: old.message_id,
                    subject: old.subject,
                    reason: old.reason,
                    action: old.action,
                    lineage: old.lineage,
                };
                insert(w, again.clone(), intake, ttl, clock)
            })
            .await?;
        self.announce(&hold);
        Ok(hold.id)
    }

    /// Withdraws every undecided hold of a key that was revoked while one was
    /// on its way in. Approved ones are stopped by the dispatcher, which asks
    /// whether the key is revoked.
    async fn freeze_key(&self, key: &KeyId) -> Result<(), HoldError> {
        let open = store::read(self.store.as_ref(), |r| record::open(r))?;
        for hold in open.into_iter().filter(|h| h.key == *key && h.state == State::Held) {
            let event = Event::Withdrawn { hold: hold.id.to_string(), reason: KEY_REVOKED.to_owned() };
            let detail = Some(KEY_REVOKED.to_owned());
            match self.decide(&hold.account, &hold.id, Transition::Withdraw, event, detail, None).await {
                // Decided in between: nothing is left to freeze.
                Ok(()) | Err(HoldError::Illegal(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Revokes a key and ends all that it has waiting, in one transaction:
    /// denied, where an approver says so, else withdrawn. A key that was
    /// revoked before ends what it still has.
    pub async fn revoke_key(&self, key: &KeyId, denied_by: Option<Denial>) -> Result<KeyInfo, RevokeError> {
        let revoking = self.accounts.revoking(key).await?;
        let (info, row, clock) = (revoking.info().clone(), revoking.row(), (self.tuning.clock)());
        let (key, account) = (info.id.clone(), info.account.to_string());
        // Whoever changes a hold has one of these, and waits for no other.
        let mut in_order = Vec::new();
        for lock in &self.order {
            in_order.push(lock.lock().await);
        }
        let ended = self
            .commit("revoke", move |w| -> Result<Vec<Hold>, HoldError> {
                if row.write(w)? {
                    record::append(w, clock, Event::KeyRevoked { account: account.clone(), key: key.to_string() })?;
                }
                let waits = |h: &Hold| h.key == key && h.state == State::Held;
                let mut ended = record::open(w)?;
                ended.retain(waits);
                for hold in &mut ended {
                    let name = hold.id.to_string();
                    let (event, transition, detail) = match &denied_by {
                        Some(Denial { approver, reason }) => {
                            hold.approver = Some(approver.clone());
                            let event = Event::Denied { hold: name, approver: approver.clone() };
                            (event, Transition::Deny, reason.clone())
                        }
                        None => {
                            let event = Event::Withdrawn { hold: name, reason: KEY_REVOKED.to_owned() };
                            (event, Transition::Withdraw, KEY_REVOKED.to_owned())
                        }
                    };
                    record::transition(w, hold, transition, clock, event, Some(detail))?;
                }
                Ok(ended)
            })
            .await?;
        tracing::warn!(account = %info.account, key = %info.id, ended = ended.len(), "a key was revoked");
        ended.iter().for_each(|hold| self.announce(hold));
        drop(in_order);
        Ok(info)
    }

    /// Writes an event of another module (keys, PIN) to the ledger.
    pub async fn record(&self, event: Event) -> Result<Entry, HoldError> {
        let clock = (self.tuning.clock)();
        self.commit("record", move |w| Ok(record::append(w, clock, event.clone())?)).await
    }

    async fn decide(
        &self,
        account: &AccountId,
        id: &HoldId,
        transition: Transition,
        event: Event,
        detail: Option<String>,
        approver: Option<String>,
    ) -> Result<(), HoldError> {
        let (account, id, clock) = (account.clone(), id.clone(), (self.tuning.clock)());
        let _order = self.in_order(&id).await;
        let hold = self
            .commit(doing(transition), move |w| -> Result<Hold, HoldError> {
                let mut hold = record::load_of(w, &account, &id)?.ok_or(HoldError::NotFound)?;
                hold.approver.clone_from(&approver);
                record::transition(w, &mut hold, transition, clock, event.clone(), detail.clone())?;
                Ok(hold)
            })
            .await?;
        tracing::info!(hold = %hold.id, account = %hold.account, state = %hold.state, "decided");
        self.announce(&hold);
        Ok(())
    }

    fn limits(&self) -> Limits {
        Limits {
            holds_per_key: self.config.max_holds_per_key,
            holds: self.config.max_holds,
            octets_per_key: self.config.max_held_bytes_per_key,
            octets: self.config.max_held_bytes,
        }
    }

    pub(super) fn is_revoked(&self, key: &KeyId) -> bool {
        self.accounts.list_keys(None).iter().any(|k| k.id == *key && k.revoked_at.is_some())
    }

    fn revoked_keys(&self, account: &AccountId) -> std::collections::HashSet<KeyId> {
        let keys = self.accounts.list_keys(Some(account));
        keys.into_iter().filter(|k| k.revoked_at.is_some()).map(|k| k.id).collect()
    }
}

/// Names the transaction among the failpoints.
fn doing(transition: Transition) -> &'static str {
    match transition {
        Transition::Deny => "deny",
        Transition::Withdraw => "withdraw",
        Transition::Approve
        | Transition::Expire
        | Transition::Claim
        | Transition::Delivered
        | Transition::NotSent(_)
        | Transition::DotRefused(_)
        | Transition::NoAnswer
        | Transition::Restored => "decide",
    }
}

/// How much agents may have waiting. A person's own mail is not counted
/// among it: an agent must not be able to crowd a person out.
#[derive(Debug, Clone, Copy)]
struct Limits {
    holds_per_key: usize,
    holds: usize,
    octets_per_key: u64,
    octets: u64,
}

impl Limits {
    /// What is too large whatever else waits.
    fn alone(&self, length: u64) -> Result<(), HoldError> {
        let most = self.octets_per_key.min(self.octets);
        if length > most { Err(HoldError::NeverFits(most)) } else { Ok(()) }
    }

    fn check(&self, length: u64, of_key: Count, of_all: Count) -> Result<(), HoldError> {
        if of_key.holds >= self.holds_per_key {
            return Err(HoldError::TooMany(self.holds_per_key));
        }
        if of_key.octets.saturating_add(length) > self.octets_per_key {
            return Err(HoldError::TooManyOctets(self.octets_per_key));
        }
        if of_all.holds >= self.holds || of_all.octets.saturating_add(length) > self.octets {
            return Err(HoldError::Crowded);
        }
        Ok(())
    }
}

fn insert(w: &mut dyn Writer, id: HoldId, intake: Intake, ttl: i64, clock: i64) -> Result<Hold, HoldError> {
    let event = Event::Held {
        hold: id.to_string(),
        account: intake.account.to_string(),
        key: intake.key.as_str().to_owned(),
        sha256: Hash(intake.blob.0),
        length: intake.length,
    };
    let entry = record::append(w, clock, event)?;
    let hold = Hold::new(id, intake, entry.time, ttl);
    record::insert(w, &hold)?;
    Ok(hold)
}

/// The state was checked before, so only the store can fail here.
fn approve_transition(w: &mut dyn Writer, hold: &mut Hold, clock: i64, event: Event) -> Result<Entry, ApproveError> {
    step(hold.state, Transition::Approve).map_err(|illegal| ApproveError::NotHeld(illegal.state))?;
    match record::transition(w, hold, Transition::Approve, clock, event, None) {
        Ok(entry) => Ok(entry),
        Err(HoldError::Store(error)) => Err(ApproveError::Store(error)),
        Err(other) => Err(ApproveError::Store(StoreError::Failed(other.to_string()))),
    }
}

/// What an approval signs.
pub(super) fn payload(gateway_id: &str, hold: &Hold, shown: &ShownRecord, upstream: (String, String)) -> Payload {
    Payload {
        schema: SCHEMA,
        gateway_id: gateway_id.to_owned(),
        account: hold.account.to_string(),
        action: hold.action,
        hold_id: hold.id.to_string(),
        submitter_key: hold.key.as_str().to_owned(),
        upstream_host: upstream.0,
        upstream_login: upstream.1,
        envelope: hold.envelope.clone(),
        sha256: hold.blob.0,
        length: hold.length,
        message_id: hold.message_id.clone(),
        approver: shown.approver.clone(),
        method: shown.method.clone(),
        time: shown.time,
        expiry: shown.expiry,
        nonce: shown.nonce.clone(),
    }
}

fn seconds(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
