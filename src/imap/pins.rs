//! Pins: a person says which lane mail of an address belongs to, from the
//! console or by dragging its campaigns away.
//!
//! Promises: each change of a pin is recorded beside the corrections in the
//! same transaction, and is taken back like one. Doesn't know: which session
//! or verb asked; only people's may.

use crate::account::AccountId;
use crate::lane::Lane;
use crate::perceive::CorrespondentRecord;
use crate::store::{Store, StoreError, Table, Writer, from_json, get_json, put_json, read, write};

use super::correct::Correction;
use super::rows;

/// Stands in a pin's key where a correction has its message's UID.
const PIN: &str = "pin";

/// An address that is pinned.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Pinned {
    /// The canonical address.
    pub address: String,
    /// The lane of its mail.
    pub lane: Lane,
}

/// Why a pin could not be taken back.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// There is none of this name.
    #[error("there is no such pin of this account")]
    Unknown,
    /// Another one of the same address came after it.
    #[error("{0} was pinned again later: take that back first")]
    Later(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a name from the list of corrections is a pin's.
pub fn is_pin(id: &str) -> bool {
    id.split('-').nth(1) == Some(PIN)
}

/// Records a change of a pin.
pub(super) fn note(
    w: &mut dyn Writer,
    account: &AccountId,
    address: &str,
    (from, to): (Option<Lane>, Option<Lane>),
    time: i64,
) -> Result<(), StoreError> {
    let row = Correction {
        time,
        from,
        to,
        place: None,
        by_person: true,
        uidvalidity: None,
        decision: None,
        message_id: None,
        address: Some(address.to_owned()),
    };
    let mut number = 0;
    loop {
        let key = key(account, time, number);
        if w.get(Table::Correction, &key)?.is_none() {
            return put_json(w, Table::Correction, &key, &row);
        }
        number += 1;
    }
}

fn key(account: &AccountId, time: i64, number: u32) -> Vec<u8> {
    format!("{account}\0{time:020}\0{PIN}\0{number:04}").into_bytes()
}

/// Pins an address (canonical) to a lane, or with none takes its pin away.
/// Whether that changed anything.
pub async fn set(
    store: &dyn Store,
    account: &AccountId,
    address: &str,
    lane: Option<Lane>,
    time: i64,
) -> Result<bool, StoreError> {
    let (account, address) = (account.clone(), address.to_owned());
    write(store, move |w| {
        let key = rows::correspondent_key(&account, &address);
        let stored: Option<CorrespondentRecord> = get_json(w, Table::Correspondent, &key)?;
        let mut record = stored.unwrap_or_else(|| CorrespondentRecord::new(&address));
        let before = record.pinned;
        if before == lane {
            return Ok(false);
        }
        record.pinned = lane;
        put_json(w, Table::Correspondent, &key, &record)?;
        note(w, &account, &address, (before, lane), time)?;
        Ok(true)
    })
    .await
}

/// Every address that is pinned.
pub fn list(store: &dyn Store, account: &AccountId) -> Result<Vec<Pinned>, StoreError> {
    read(store, |r| {
        let mut found = Vec::new();
        rows::for_each(r, Table::Correspondent, &rows::account_prefix(account), |_, v| {
            let record: CorrespondentRecord = from_json(Table::Correspondent, v)?;
            found.extend(record.pinned.map(|lane| Pinned { address: record.address, lane }));
            Ok(())
        })?;
        Ok(found)
    })
}

/// Takes a pin back: the address is pinned as it was before.
pub async fn undo(store: &dyn Store, account: &AccountId, id: &str) -> Result<(), PinError> {
    let mut parts = id.split('-');
    let (time, number) = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(time), Some(PIN), Some(number), None) => (time.parse::<i64>(), number.parse::<u32>()),
        _ => return Err(PinError::Unknown),
    };
    let (Ok(time), Ok(number)) = (time, number) else { return Err(PinError::Unknown) };
    let account = account.clone();
    write(store, move |w| {
        let own = key(&account, time, number);
        let row: Option<Correction> = get_json(w, Table::Correction, &own)?;
        let Some((row, address)) = row.and_then(|r| r.address.clone().map(|a| (r, a))) else {
            return Err(PinError::Unknown);
        };
        if pinned_after(w, &account, &own, &address)? {
            return Err(PinError::Later(address));
        }
        let at = rows::correspondent_key(&account, &address);
        if let Some(mut record) = get_json::<CorrespondentRecord>(w, Table::Correspondent, &at)? {
            record.pinned = row.from;
            put_json(w, Table::Correspondent, &at, &record)?;
        }
        w.delete(Table::Correction, &own)?;
        Ok(())
    })
    .await
}

/// Whether the address has a pin that was recorded after `own`.
fn pinned_after(w: &dyn Writer, account: &AccountId, own: &[u8], address: &str) -> Result<bool, StoreError> {
    const PAGE: usize = 256;
    let prefix = rows::account_prefix(account);
    let mut from = [own, b"\0"].concat();
    loop {
        let page = w.scan(Table::Correction, &prefix, &from, PAGE)?;
        for (_, value) in &page {
            let row: Correction = from_json(Table::Correction, value)?;
            if row.address.as_deref() == Some(address) {
                return Ok(true);
            }
        }
        match page.last() {
            Some((last, _)) if page.len() == PAGE => from = [last.as_slice(), b"\0"].concat(),
            _ => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::RedbStore;

    fn account() -> AccountId {
        AccountId::of(&crate::mail::address::Address::parse("mina@example.org").unwrap())
    }

    fn ids(store: &dyn Store) -> Vec<String> {
        read::<_, StoreError>(store, |r| {
            let mut ids = Vec::new();
            rows::for_each(r, Table::Correction, &rows::account_prefix(&account()), |k, _| {
                ids.extend(super::super::correct::id_of(k));
                Ok(())
            })?;
            Ok(ids)
        })
        .unwrap()
    }

    #[tokio::test]
    async fn a_pin_is_recorded_and_taken_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path()).unwrap();
        let (s, a, who) = (&store, account(), "ann@example.com");
        assert!(set(s, &a, who, Some(Lane::Push), 5).await.unwrap());
        assert!(!set(s, &a, who, Some(Lane::Push), 5).await.unwrap(), "nothing changes");
        assert!(set(s, &a, who, Some(Lane::Info), 5).await.unwrap());
        assert_eq!(list(s, &a).unwrap(), [Pinned { address: who.to_owned(), lane: Lane::Info }]);
        let made = ids(s);
        assert_eq!(made.len(), 2);
        assert!(made.iter().all(|id| is_pin(id)));
        assert!(matches!(undo(s, &a, &made[0]).await, Err(PinError::Later(_))));
        undo(s, &a, &made[1]).await.unwrap();
        assert_eq!(list(s, &a).unwrap()[0].lane, Lane::Push);
        undo(s, &a, &made[0]).await.unwrap();
        assert!(list(s, &a).unwrap().is_empty() && ids(s).is_empty());
        for none in [made[0].as_str(), "5-7-0", "x-pin-0", "5-pin-0-0", "5-pin-9"] {
            assert!(matches!(undo(s, &a, none).await, Err(PinError::Unknown)), "{none}");
        }
    }

    #[tokio::test]
    async fn a_pin_that_is_removed_leaves_a_record_of_both() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path()).unwrap();
        let (s, a) = (&store, account());
        set(s, &a, "x@example.com", Some(Lane::Silent), 1).await.unwrap();
        set(s, &a, "x@example.com", None, 2).await.unwrap();
        assert!(list(s, &a).unwrap().is_empty());
        let last = ids(s).pop().unwrap();
        undo(s, &a, &last).await.unwrap();
        assert_eq!(list(s, &a).unwrap()[0].lane, Lane::Silent);
    }
}
