//! Holds, receipts and the ledger as rows.
//!
//! Keys of [`Table::Hold`]: `h/ID` the hold; `o/ID` its submitting key, while
//! it has not ended; `a/ACCOUNT\0TIME ID` an account's holds by age;
//! `u/ACCOUNT\0ID` those whose outcome is unknown; `s/ACCOUNT\0PATH` the paths
//! that mail was sent to; `n/KEY` how many open holds a key has, and `n/` all
//! agents together; `i/` that a state from before has these rows.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::SCAN_PAGE;
use super::hold::{Hold, HoldError, HoldId};
use crate::account::{AccountId, Role};
use crate::floor::ledger::{Entry, Event};
use crate::floor::receipt::Receipt;
use crate::floor::submission::{State, Transition, step};
use crate::store::{self, Reader, StoreError, Table, Writer};

const HOLD: &[u8] = b"h/";
const OPEN: &[u8] = b"o/";
const ACCOUNT: &[u8] = b"a/";
const COUNT: &[u8] = b"n/";
const UNKNOWN: &[u8] = b"u/";
const SENT_TO: &[u8] = b"s/";
const INDEXED: &[u8] = b"i/";

/// Open holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Count {
    pub(super) holds: usize,
    pub(super) octets: u64,
}

impl Count {
    fn plus(self, octets: u64) -> Count {
        Count { holds: self.holds.saturating_add(1), octets: self.octets.saturating_add(octets) }
    }

    fn minus(self, octets: u64) -> Count {
        Count { holds: self.holds.saturating_sub(1), octets: self.octets.saturating_sub(octets) }
    }
}

/// A receipt, and whether an attempt under it got as far as the final dot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ReceiptRow {
    pub(super) receipt: Receipt,
    pub(super) spent: bool,
}

fn key(prefix: &[u8], id: &HoldId) -> Vec<u8> {
    [prefix, id.as_str().as_bytes()].concat()
}

fn account_prefix(account: &AccountId) -> Vec<u8> {
    prefix_of(ACCOUNT, account)
}

/// Addresses hold no NUL.
fn prefix_of(kind: &[u8], account: &AccountId) -> Vec<u8> {
    [kind, account.as_str().as_bytes(), b"\0"].concat()
}

/// A hold.
pub(super) fn load(r: &(impl Reader + ?Sized), id: &HoldId) -> Result<Option<Hold>, HoldError> {
    Ok(store::get_json(r, Table::Hold, &key(HOLD, id))?)
}

/// As [`load`]; none where its row can't be read, which is said in the log.
/// Nothing can be done with such a hold, and with the others everything.
pub(super) fn load_readable(r: &(impl Reader + ?Sized), id: &HoldId) -> Result<Option<Hold>, HoldError> {
    match load(r, id) {
        Err(HoldError::Store(error @ StoreError::Damaged { .. })) => {
            tracing::error!(hold = %id, %error, "a held message can't be read; it stays as it is");
            Ok(None)
        }
        other => other,
    }
}

/// A hold of `account`.
pub(super) fn load_of(
    r: &(impl Reader + ?Sized),
    account: &AccountId,
    id: &HoldId,
) -> Result<Option<Hold>, StoreError> {
    let hold: Option<Hold> = store::get_json(r, Table::Hold, &key(HOLD, id))?;
    Ok(hold.filter(|hold| hold.account == *account))
}

/// Writes a hold that exists.
pub(super) fn save(w: &mut (impl Writer + ?Sized), hold: &Hold) -> Result<(), StoreError> {
    let open = key(OPEN, &hold.id);
    if hold.state.is_final() && w.get(Table::Hold, &open)?.is_some() {
        w.delete(Table::Hold, &open)?;
        recount(w, hold, |count| count.minus(hold.length))?;
    }
    index(w, hold)?;
    store::put_json(w, Table::Hold, &key(HOLD, &hold.id), hold)
}

/// The rows by which lists find an ended hold.
fn index(w: &mut (impl Writer + ?Sized), hold: &Hold) -> Result<(), StoreError> {
    let id = hold.id.as_str().as_bytes();
    if hold.state == State::Unknown {
        w.put(Table::Hold, &[&prefix_of(UNKNOWN, &hold.account), id].concat(), id)?;
    }
    if hold.state == State::Sent {
        for path in &hold.envelope.forward_paths {
            let key = [&prefix_of(SENT_TO, &hold.account), path.as_str().as_bytes()].concat();
            w.put(Table::Hold, &key, id)?;
        }
    }
    Ok(())
}

/// Writes these rows once for a state from before there were any.
pub(super) fn index_once(w: &mut (impl Writer + ?Sized)) -> Result<(), HoldError> {
    if w.get(Table::Hold, INDEXED)?.is_some() {
        return Ok(());
    }
    let mut ids = Vec::new();
    pairs(w, HOLD, |key, _| {
        ids.push(id_of(&key[HOLD.len()..])?);
        Ok(())
    })?;
    let mut ended = Vec::new();
    for id in ids {
        ended.extend(load_readable(w, &id)?.filter(|h| matches!(h.state, State::Unknown | State::Sent)));
    }
    ended.iter().try_for_each(|hold| index(w, hold))?;
    Ok(w.put(Table::Hold, INDEXED, b"1")?)
}

/// Writes a new hold with its index rows.
pub(super) fn insert(w: &mut (impl Writer + ?Sized), hold: &Hold) -> Result<(), StoreError> {
    let mut by_age = account_prefix(&hold.account);
    by_age.extend_from_slice(&hold.held_at.max(0).to_be_bytes());
    by_age.extend_from_slice(hold.id.as_str().as_bytes());
    w.put(Table::Hold, &by_age, hold.id.as_str().as_bytes())?;
    w.put(Table::Hold, &key(OPEN, &hold.id), hold.key.as_str().as_bytes())?;
    recount(w, hold, |count| count.plus(hold.length))?;
    save(w, hold)
}

/// Counts `hold` in or out: with its key, and an agent's with all agents'.
fn recount(w: &mut (impl Writer + ?Sized), hold: &Hold, change: impl Fn(Count) -> Count) -> Result<(), StoreError> {
    let mut change_one = |key: &[u8]| -> Result<(), StoreError> {
        let before: Count = store::get_json(w, Table::Hold, key)?.unwrap_or_default();
        match change(before) {
            Count { holds: 0, .. } if key != COUNT => w.delete(Table::Hold, key),
            after => store::put_json(w, Table::Hold, key, &after),
        }
    };
    change_one(&count_key(hold.key.as_str()))?;
    if hold.role == Role::Agent { change_one(COUNT) } else { Ok(()) }
}

fn count_key(submitter: &str) -> Vec<u8> {
    [COUNT, submitter.as_bytes()].concat()
}

/// What a key has open, and what all agents have.
pub(super) fn counts(r: &(impl Reader + ?Sized), submitter: &str) -> Result<(Count, Count), StoreError> {
    let one = store::get_json(r, Table::Hold, &count_key(submitter))?;
    let all = store::get_json(r, Table::Hold, COUNT)?;
    Ok((one.unwrap_or_default(), all.unwrap_or_default()))
}

/// Counts everything that is open, in a state that was written before there
/// were counts.
pub(super) fn count_once(w: &mut (impl Writer + ?Sized)) -> Result<(), HoldError> {
    if w.get(Table::Hold, COUNT)?.is_some() {
        return Ok(());
    }
    store::put_json(w, Table::Hold, COUNT, &Count::default())?;
    for hold in open(w)? {
        recount(w, &hold, |count| count.plus(hold.length))?;
    }
    Ok(())
}

/// Visits every pair whose key starts with `prefix`.
fn pairs(
    r: &(impl Reader + ?Sized),
    prefix: &[u8],
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut from = Vec::new();
    loop {
        let page = r.scan(Table::Hold, prefix, &from, SCAN_PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        // The smallest key that is greater than the page's last.
        from = last.iter().copied().chain([0]).collect();
        for (key, value) in &page {
            visit(key, value)?;
        }
    }
}

fn id_of(text: &[u8]) -> Result<HoldId, StoreError> {
    let id = std::str::from_utf8(text).ok().and_then(HoldId::parse);
    id.ok_or(StoreError::Damaged { table: Table::Hold, why: "an index row names no hold".to_owned() })
}

/// The ids of an account's holds, oldest first.
pub(super) fn by_age(r: &(impl Reader + ?Sized), account: &AccountId) -> Result<Vec<HoldId>, StoreError> {
    let mut ids = Vec::new();
    pairs(r, &account_prefix(account), |_, id| {
        ids.push(id_of(id)?);
        Ok(())
    })?;
    Ok(ids)
}

/// An account's holds that can be read, oldest first.
pub(super) fn of_account(r: &(impl Reader + ?Sized), account: &AccountId) -> Result<Vec<Hold>, HoldError> {
    by_age(r, account)?.iter().filter_map(|id| load_readable(r, id).transpose()).collect()
}

/// The ids of the holds that have not ended, of every account, and of those
/// of one account whose outcome is unknown.
pub(super) fn pending(r: &(impl Reader + ?Sized), account: &AccountId) -> Result<HashSet<HoldId>, StoreError> {
    let mut ids = HashSet::new();
    pairs(r, OPEN, |row, _| {
        ids.insert(id_of(&row[OPEN.len()..])?);
        Ok(())
    })?;
    pairs(r, &prefix_of(UNKNOWN, account), |_, id| {
        ids.insert(id_of(id)?);
        Ok(())
    })?;
    Ok(ids)
}

/// Whether mail was sent to a path with an approval.
pub(super) fn was_sent_to(r: &(impl Reader + ?Sized), account: &AccountId, path: &str) -> Result<bool, StoreError> {
    let key = [&prefix_of(SENT_TO, account), path.as_bytes()].concat();
    Ok(r.get(Table::Hold, &key)?.is_some())
}

/// Visits every hold.
pub(super) fn each(r: &(impl Reader + ?Sized), mut visit: impl FnMut(Hold)) -> Result<(), StoreError> {
    pairs(r, HOLD, |_, value| {
        visit(store::from_json(Table::Hold, value)?);
        Ok(())
    })
}

/// The holds that have not ended and can be read.
pub(super) fn open(r: &(impl Reader + ?Sized)) -> Result<Vec<Hold>, HoldError> {
    let mut ids = Vec::new();
    pairs(r, OPEN, |row, _| {
        ids.push(id_of(&row[OPEN.len()..])?);
        Ok(())
    })?;
    ids.iter().filter_map(|id| load_readable(r, id).transpose()).collect()
}

/// The receipt of a hold.
pub(super) fn receipt(r: &(impl Reader + ?Sized), id: &HoldId) -> Result<Option<ReceiptRow>, HoldError> {
    Ok(store::get_json(r, Table::Receipt, id.as_str().as_bytes())?)
}

/// Writes the receipt of a hold.
pub(super) fn put_receipt(w: &mut (impl Writer + ?Sized), id: &HoldId, row: &ReceiptRow) -> Result<(), StoreError> {
    store::put_json(w, Table::Receipt, id.as_str().as_bytes(), row)
}

/// The receipt of a hold, where there is one, opens nothing any more.
pub(super) fn spend(w: &mut (impl Writer + ?Sized), id: &HoldId) -> Result<(), HoldError> {
    if let Some(mut row) = receipt(w, id)? {
        row.spent = true;
        put_receipt(w, id, &row)?;
    }
    Ok(())
}

/// The ledger's last entry.
pub(super) fn last_entry(r: &(impl Reader + ?Sized)) -> Result<Option<Entry>, StoreError> {
    r.last(Table::Ledger, b"")?.map(|(_, value)| store::from_json(Table::Ledger, &value)).transpose()
}

/// The ledger's entry of a number.
pub(super) fn entry(r: &(impl Reader + ?Sized), number: u64) -> Result<Option<Entry>, StoreError> {
    store::get_json(r, Table::Ledger, &number.to_be_bytes())
}

/// The later of the clock and the last entry's time.
pub(super) fn now(r: &(impl Reader + ?Sized), clock: i64) -> Result<i64, StoreError> {
    Ok(last_entry(r)?.map_or(clock, |entry| entry.time.max(clock)))
}

/// Appends to the ledger.
pub(super) fn append(w: &mut (impl Writer + ?Sized), clock: i64, event: Event) -> Result<Entry, StoreError> {
    let entry = Entry::next(last_entry(w)?.as_ref(), clock, event);
    store::put_json(w, Table::Ledger, &entry.number.to_be_bytes(), &entry)?;
    Ok(entry)
}

/// One transition: state, time and detail of `hold`, and its ledger entry.
pub(super) fn transition(
    w: &mut (impl Writer + ?Sized),
    hold: &mut Hold,
    transition: Transition,
    clock: i64,
    event: Event,
    detail: Option<String>,
) -> Result<Entry, HoldError> {
    hold.state = step(hold.state, transition)?;
    let entry = append(w, clock, event)?;
    hold.changed_at = entry.time;
    hold.detail = detail;
    if hold.state != State::Held {
        hold.shown.clear();
    }
    if hold.state != State::Sending {
        hold.lease = None;
    }
    save(w, hold)?;
    Ok(entry)
}
