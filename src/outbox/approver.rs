//! Who approves: the proofs that an approval carries, and what happens to
//! waiting holds when that changes.
//!
//! Promises: a change of who may approve, its ledger entry, and the end of
//! every page that was shown before are one transaction. Doesn't know: how a
//! PIN or a passkey is kept; the caller writes that inside the transaction.

use super::decide::payload;
use super::hold::{HoldError, HoldId, Shown};
use super::{Outbox, record};
use crate::account::AccountId;
use crate::floor::ledger::{Entry, Event};
use crate::floor::passkey::Assertion;
use crate::floor::payload::{LINK, PASSKEY, PIN};
use crate::floor::submission::State;
use crate::store::{self, StoreError, Table, Writer};

/// How long a change of who may approve stands on the pages: seven days.
pub const CHANGES_SHOWN_SECONDS: i64 = 7 * 24 * 3600;
/// Most changes that are read for showing; older ones are in the ledger.
const MAX_CHANGES: usize = 256;
/// Rows of [`Table::Web`]: `change/ACCOUNT\0NUMBER` with the ledger's entry.
const CHANGE: &[u8] = b"change/";

/// The approver's own proof, checked by the page.
#[derive(Debug, Clone)]
pub enum Proof {
    /// The PIN.
    Pin,
    /// The link of the notice.
    Link,
    /// What a registered passkey signed.
    Passkey(Box<Assertion>),
}

impl Proof {
    /// Its name in payloads.
    pub fn method(&self) -> &'static str {
        match self {
            Proof::Pin => PIN,
            Proof::Link => LINK,
            Proof::Passkey(_) => PASSKEY,
        }
    }

    pub(super) fn assertion(&self) -> Option<Assertion> {
        match self {
            Proof::Pin | Proof::Link => None,
            Proof::Passkey(assertion) => Some(Assertion::clone(assertion)),
        }
    }
}

fn change_prefix(account: &AccountId) -> Vec<u8> {
    [CHANGE, account.as_str().as_bytes(), b"\0"].concat()
}

impl Outbox {
    /// Runs `change` and writes `event` in one transaction, in which every
    /// page of the account's waiting holds also loses its nonce: what waits
    /// must be shown anew before anyone approves it.
    pub async fn change_approver<E, F>(&self, account: &AccountId, event: Event, change: F) -> Result<Entry, E>
    where
        E: From<HoldError> + From<StoreError> + Send + 'static,
        F: Fn(&mut dyn Writer) -> Result<(), E> + Send + Sync + 'static,
    {
        let (account, clock) = (account.clone(), (self.tuning.clock)());
        self.commit("approver", move |w| -> Result<Entry, E> {
            change(w)?;
            for mut hold in record::open(w)?.into_iter().filter(|h| h.account == account && h.state == State::Held) {
                hold.shown.clear();
                record::save(w, &hold)?;
            }
            let entry = record::append(w, clock, event.clone())?;
            let prefix = change_prefix(&account);
            for (key, value) in w.scan(Table::Web, &prefix, b"", MAX_CHANGES)? {
                let old: Entry = store::from_json(Table::Web, &value)?;
                if old.time.saturating_add(CHANGES_SHOWN_SECONDS) < entry.time {
                    w.delete(Table::Web, &key)?;
                }
            }
            let key = [prefix, entry.number.to_be_bytes().to_vec()].concat();
            store::put_json(w, Table::Web, &key, &entry)?;
            Ok(entry)
        })
        .await
    }

    /// What changed about who may approve, of the last seven days, newest
    /// first.
    pub fn approver_changes(&self, account: &AccountId) -> Result<Vec<Entry>, HoldError> {
        let prefix = change_prefix(account);
        store::read(self.store.as_ref(), |r| {
            let since = self.now(r)?.saturating_sub(CHANGES_SHOWN_SECONDS);
            let mut entries = Vec::new();
            for (_, value) in r.scan(Table::Web, &prefix, b"", MAX_CHANGES)? {
                let entry: Entry = store::from_json(Table::Web, &value)?;
                if entry.time >= since {
                    entries.push(entry);
                }
            }
            entries.reverse();
            Ok(entries)
        })
    }

    /// What a page showed under `nonce`, while that can still be decided on.
    pub fn shown(
        &self,
        account: &AccountId,
        id: &HoldId,
        nonce: &str,
        approver: &str,
    ) -> Result<Option<Shown>, HoldError> {
        let Some(hold) = self.get(account, id)? else { return Ok(None) };
        let record = hold.shown.iter().find(|s| s.nonce == nonce && s.approver == approver).cloned();
        let Some(record) = record else { return Ok(None) };
        let upstream = self.upstream_names(account).ok_or(HoldError::NoAccount)?;
        let payload = payload(&self.gateway_id(), &hold, &record, upstream);
        let hash = payload.hash();
        Ok(Some(Shown { hold, payload, hash }))
    }
}
