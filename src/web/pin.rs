//! The PIN that an approval needs: kept stretched, tried a bounded number of
//! times.
//!
//! Promises: an attempt is counted on disk before it is checked, so neither a
//! crash nor many connections at once give more of them; while an account is
//! locked no PIN is checked at all. One PIN is stretched at a time, since each
//! takes [`MEMORY_KIB`]. Doesn't know: who tries.
//!
//! A PIN's strength against guessing is the lock-out. Against someone who
//! holds the state folder it is its length; that person is outside every claim.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::account::AccountId;
use crate::store::{self, Store, StoreError, Table, Writer};

/// Shortest PIN, in characters.
pub const MIN_CHARS: usize = 6;
/// Longest PIN, in octets.
pub const MAX_OCTETS: usize = 128;
/// Wrong attempts in a row before the account is locked.
pub const ATTEMPTS: u32 = 5;
/// How long the first lock lasts; each further one lasts twice as long.
pub const LOCK_SECONDS: i64 = 15 * 60;
/// Longest lock.
pub const MAX_LOCK_SECONDS: i64 = 24 * 3600;
/// Argon2id: memory of one check, in KiB (46 MiB). Above glibc's largest mmap
/// threshold (32 MiB), so that it goes back to the system after each check; a
/// smaller block would be kept by the heap from the second check on.
pub const MEMORY_KIB: u32 = 46 * 1024;
/// Argon2id: passes.
const PASSES: u32 = 1;
/// Octets of salt and of hash.
const OCTETS: usize = 32;

/// One at a time: memory is bounded, and so is the pace of guessing.
static STRETCHING: Semaphore = Semaphore::const_new(1);

/// Why a PIN was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The account has none.
    #[error("no PIN is set for {0}")]
    NotSet(AccountId),
    /// It is another one.
    #[error("wrong PIN")]
    Wrong {
        /// Attempts left before the account is locked.
        left: u32,
    },
    /// Too many wrong attempts.
    #[error("locked after too many wrong PINs")]
    Locked {
        /// Seconds since 1970 until which nothing is checked.
        until: i64,
    },
    /// Too short, too long, or with control characters.
    #[error("a PIN has at least {MIN_CHARS} characters, at most {MAX_OCTETS} octets and no control characters")]
    Shape,
    /// The system gave no random octets, or the stretching failed.
    #[error("the PIN can't be checked: {0}")]
    Failed(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    salt: [u8; OCTETS],
    hash: [u8; OCTETS],
    memory_kib: u32,
    passes: u32,
    /// Attempts since the last right one, this one included.
    failed: u32,
    /// Locks since the last right one.
    locks: u32,
    locked_until: i64,
}

fn key(account: &AccountId) -> Vec<u8> {
    format!("pin/{account}").into_bytes()
}

/// A PIN that was stretched and is not set yet.
#[derive(Clone)]
pub struct Fresh(Record);

impl Fresh {
    /// Sets it for the account, lifts a lock and ends the account's sign-ins.
    pub fn write(&self, w: &mut dyn Writer, account: &AccountId) -> Result<(), StoreError> {
        store::put_json(w, Table::Web, &key(account), &self.0)
    }
}

impl std::fmt::Debug for Fresh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fresh(…)")
    }
}

/// Stretches a PIN that is to be set.
pub async fn prepare(pin: &str) -> Result<Fresh, PinError> {
    if pin.chars().count() < MIN_CHARS || pin.len() > MAX_OCTETS || pin.chars().any(char::is_control) {
        return Err(PinError::Shape);
    }
    let mut salt = [0; OCTETS];
    getrandom::fill(&mut salt).map_err(|e| PinError::Failed(e.to_string()))?;
    let hash = stretch(pin, salt, MEMORY_KIB, PASSES).await?;
    let (memory_kib, passes) = (MEMORY_KIB, PASSES);
    Ok(Fresh(Record { salt, hash, memory_kib, passes, failed: 0, locks: 0, locked_until: 0 }))
}

/// Sets the account's PIN without a ledger entry: for PINs that everybody
/// knows, such as the demo's. Others go through
/// [`crate::outbox::Outbox::change_approver`].
pub async fn set(store: &dyn Store, account: &AccountId, pin: &str) -> Result<(), PinError> {
    let (fresh, account) = (prepare(pin).await?, account.clone());
    store::write(store, move |w| -> Result<(), PinError> { Ok(fresh.write(w, &account)?) }).await
}

/// Whether the account has a PIN.
pub fn is_set(store: &dyn Store, account: &AccountId) -> Result<bool, StoreError> {
    Ok(generation(store, account)?.is_some())
}

/// What changes with every PIN that is set; sign-ins are bound to it.
pub(super) fn generation(store: &dyn Store, account: &AccountId) -> Result<Option<[u8; OCTETS]>, StoreError> {
    store::read(store, |r| -> Result<_, StoreError> {
        let value = r.get(Table::Web, &key(account))?;
        let record: Option<Record> = value.map(|v| store::from_json(Table::Web, &v)).transpose()?;
        Ok(record.map(|r| r.salt))
    })
}

/// Checks a PIN. An error other than [`PinError::Wrong`] says nothing of it.
pub async fn verify(store: &dyn Store, account: &AccountId, pin: &str) -> Result<(), PinError> {
    verify_at(store, account, pin, now()).await
}

/// [`verify`] at a time of the caller's choice.
pub(super) async fn verify_at(store: &dyn Store, account: &AccountId, pin: &str, now: i64) -> Result<(), PinError> {
    let record = count_attempt(store, account, now).await?;
    let fits = pin.len() <= MAX_OCTETS
        && bool::from(stretch(pin, record.salt, record.memory_kib, record.passes).await?.ct_eq(&record.hash));
    if fits {
        return clear_attempts(store, account, record.salt).await;
    }
    tracing::warn!(%account, "wrong PIN");
    if record.locked_until > now {
        return Err(PinError::Locked { until: record.locked_until });
    }
    Err(PinError::Wrong { left: ATTEMPTS - record.failed % ATTEMPTS })
}

/// Takes as long as a check, so that an unknown account can't be told apart.
pub(super) async fn pretend(pin: &str) {
    let _ = stretch(&pin[..pin.floor_char_boundary(MAX_OCTETS)], [0; OCTETS], MEMORY_KIB, PASSES).await;
}

/// Counts the attempt and, where it is the last one, locks before it is
/// checked; a right PIN lifts that again.
async fn count_attempt(store: &dyn Store, account: &AccountId, now: i64) -> Result<Record, PinError> {
    let (key, account) = (key(account), account.clone());
    store::write(store, move |w| -> Result<Record, PinError> {
        let value = w.get(Table::Web, &key)?.ok_or_else(|| PinError::NotSet(account.clone()))?;
        let mut record: Record = store::from_json(Table::Web, &value)?;
        if record.locked_until > now {
            return Err(PinError::Locked { until: record.locked_until });
        }
        record.failed = record.failed.saturating_add(1);
        if record.failed.is_multiple_of(ATTEMPTS) {
            let doubled = LOCK_SECONDS.saturating_mul(1_i64.checked_shl(record.locks).unwrap_or(i64::MAX));
            record.locked_until = now.saturating_add(doubled.clamp(LOCK_SECONDS, MAX_LOCK_SECONDS));
            record.locks = record.locks.saturating_add(1).min(32);
        }
        store::put_json(w, Table::Web, &key, &record)?;
        Ok(record)
    })
    .await
}

async fn clear_attempts(store: &dyn Store, account: &AccountId, salt: [u8; OCTETS]) -> Result<(), PinError> {
    let (key, account) = (key(account), account.clone());
    store::write(store, move |w| -> Result<(), PinError> {
        let value = w.get(Table::Web, &key)?.ok_or_else(|| PinError::NotSet(account.clone()))?;
        let mut record: Record = store::from_json(Table::Web, &value)?;
        if record.salt != salt {
            // The PIN was changed while the old one was being checked.
            return Err(PinError::Wrong { left: ATTEMPTS });
        }
        (record.failed, record.locks, record.locked_until) = (0, 0, 0);
        Ok(store::put_json(w, Table::Web, &key, &record)?)
    })
    .await
}

async fn stretch(pin: &str, salt: [u8; OCTETS], memory_kib: u32, passes: u32) -> Result<[u8; OCTETS], PinError> {
    let failed = |e: String| PinError::Failed(e);
    let pin = Arc::new(Zeroizing::new(pin.as_bytes().to_vec()));
    let _one = STRETCHING.acquire().await.map_err(|e| failed(e.to_string()))?;
    tokio::task::spawn_blocking(move || {
        let params = Params::new(memory_kib, passes, 1, Some(OCTETS)).map_err(|e| failed(e.to_string()))?;
        let mut hash = [0; OCTETS];
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(&pin, &salt, &mut hash)
            .map_err(|e| failed(e.to_string()))?;
        Ok(hash)
    })
    .await
    .map_err(|e| failed(e.to_string()))?
}

/// Seconds since 1970 by the wall clock.
pub(super) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::RedbStore;

    const PIN: &str = "271828";
    const NOON: i64 = 1_800_000_000;

    async fn ready() -> (tempfile::TempDir, RedbStore, AccountId) {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path()).unwrap();
        let account = AccountId("ada@example.org".into());
        set(&store, &account, PIN).await.unwrap();
        (folder, store, account)
    }

    #[tokio::test]
    async fn the_right_pin_is_right_and_another_is_not() {
        let (_folder, store, account) = ready().await;
        assert!(is_set(&store, &account).unwrap());
        assert!(verify(&store, &account, PIN).await.is_ok());
        assert!(matches!(verify(&store, &account, "271829").await, Err(PinError::Wrong { left: 4 })));
        let other = AccountId("bo@example.org".into());
        assert!(matches!(verify(&store, &other, PIN).await, Err(PinError::NotSet(_))));
        assert!(!is_set(&store, &other).unwrap());
    }

    #[tokio::test]
    async fn five_wrong_ones_lock_and_the_right_one_waits_too() {
        let (_folder, store, account) = ready().await;
        for left in (1..ATTEMPTS).rev() {
            let said = verify_at(&store, &account, "wrong", NOON).await;
            assert!(matches!(said, Err(PinError::Wrong { left: l }) if l == left), "{said:?}");
        }
        let locked = verify_at(&store, &account, "wrong", NOON).await;
        assert!(matches!(locked, Err(PinError::Locked { until }) if until == NOON + LOCK_SECONDS));
        let still = verify_at(&store, &account, PIN, NOON + LOCK_SECONDS - 1).await;
        assert!(matches!(still, Err(PinError::Locked { .. })));
        for _ in 0..ATTEMPTS {
            let _ = verify_at(&store, &account, "wrong", NOON + LOCK_SECONDS).await;
        }
        let twice = verify_at(&store, &account, PIN, NOON + 2 * LOCK_SECONDS).await;
        assert!(matches!(twice, Err(PinError::Locked { until }) if until == NOON + 3 * LOCK_SECONDS), "{twice:?}");
        assert!(verify_at(&store, &account, PIN, NOON + 3 * LOCK_SECONDS).await.is_ok());
        let fresh = verify_at(&store, &account, "wrong", NOON + 3 * LOCK_SECONDS).await;
        assert!(matches!(fresh, Err(PinError::Wrong { left: 4 })));
    }

    #[tokio::test]
    async fn attempts_at_once_are_counted_one_by_one() {
        let (_folder, store, account) = ready().await;
        let store = Arc::new(store);
        let mut tries = tokio::task::JoinSet::new();
        for _ in 0..12 {
            let (store, account) = (store.clone(), account.clone());
            tries.spawn(async move { verify_at(store.as_ref(), &account, "wrong", NOON).await });
        }
        let said = tries.join_all().await;
        let wrong = said.iter().filter(|s| matches!(s, Err(PinError::Wrong { .. }))).count();
        assert_eq!(wrong, ATTEMPTS as usize - 1);
    }

    #[tokio::test]
    async fn short_long_and_control_are_refused() {
        let (_folder, store, account) = ready().await;
        for pin in ["", "123", "12\n45", &"9".repeat(MAX_OCTETS + 1)] {
            assert!(matches!(set(&store, &account, pin).await, Err(PinError::Shape)), "{pin:?}");
        }
        assert!(matches!(verify(&store, &account, &"9".repeat(9999)).await, Err(PinError::Wrong { .. })));
        assert!(verify(&store, &account, PIN).await.is_ok());
    }
}
