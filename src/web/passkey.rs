//! Passkeys that may approve for an account, and the codes of the console
//! that register one.
//!
//! Promises: a passkey is added or removed only together with its ledger
//! entry and with the end of every page that was shown before
//! ([`Outbox::change_approver`]); its counter is written before anything
//! acts on its word, so that the same answer is never taken twice; a code is
//! stored as a hash, works once, for [`CODE_SECONDS`], and dies with
//! [`CODE_TRIES`] wrong ones. Doesn't know: who asks.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::pin;
use crate::account::AccountId;
use crate::floor::ledger::Event;
use crate::floor::passkey::{ApproverKey, Assertion, AssertionError, counter_goes_on};
use crate::outbox::{HoldError, Outbox};
use crate::store::{self, Reader, Store, StoreError, Table, Writer};

/// Most passkeys of one account.
pub const MAX_PASSKEYS: usize = 16;
/// Longest name of a passkey, in characters.
pub const MAX_NAME_CHARS: usize = 60;
/// How long a code of the console works.
pub const CODE_SECONDS: i64 = 10 * 60;
/// Wrong codes before the right one is void too.
pub const CODE_TRIES: u32 = 5;
/// Characters of a code: no vowels and no look-alikes.
const CODE_ALPHABET: &[u8; 27] = b"23456789BCDFGHJKMNPQRSTVWXZ";
/// Characters of a code; 4.7 random bits each.
const CODE_CHARS: usize = 16;

const PASSKEY: &[u8] = b"passkey/";
const OWNER: &[u8] = b"passkey-owner/";
const CODE: &[u8] = b"code/";

/// Why a passkey was not added, removed or believed.
#[derive(Debug, thiserror::Error)]
pub enum PasskeyError {
    /// The account has as many as it may.
    #[error("an account has at most {MAX_PASSKEYS} passkeys; remove one first")]
    TooMany,
    /// It is registered already.
    #[error("this passkey is registered already")]
    Exists,
    /// No such passkey.
    #[error("no such passkey is registered")]
    NotFound,
    /// No name, too long a name, or one with control characters.
    #[error("a passkey's name has 1 to {MAX_NAME_CHARS} characters and no control characters")]
    Name,
    /// A wrong, used or old code.
    #[error("the code is wrong, used or too old; make another at the console")]
    NoCode,
    /// What the passkey said is not accepted.
    #[error("{0}")]
    Proof(AssertionError),
    /// The system has no randomness.
    #[error("no randomness: {0}")]
    Random(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger or the holds could not be written.
    #[error(transparent)]
    Hold(#[from] HoldError),
}

/// A registered passkey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passkey {
    /// What its person calls it.
    pub name: String,
    /// Its public half.
    pub key: ApproverKey,
    /// The last counter that it said.
    pub counter: u32,
    /// When it was added, seconds since 1970 (UTC).
    pub added: i64,
    /// When it was last used.
    pub used: Option<i64>,
}

/// A code, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CodeRow {
    hash: [u8; 32],
    until: i64,
    failed: u32,
}

fn prefix(account: &AccountId) -> Vec<u8> {
    [PASSKEY, account.as_str().as_bytes(), b"\0"].concat()
}

fn row(account: &AccountId, credential: &str) -> Vec<u8> {
    [&prefix(account), credential.as_bytes()].concat()
}

fn owner_row(credential: &str) -> Vec<u8> {
    [OWNER, credential.as_bytes()].concat()
}

fn code_row(account: &AccountId) -> Vec<u8> {
    [CODE, account.as_str().as_bytes()].concat()
}

fn all(r: &(impl Reader + ?Sized), account: &AccountId) -> Result<Vec<Passkey>, StoreError> {
    let rows = r.scan(Table::Web, &prefix(account), b"", MAX_PASSKEYS)?;
    rows.iter().map(|(_, value)| store::from_json(Table::Web, value)).collect()
}

/// The passkeys of an account, oldest first.
pub fn list(store: &dyn Store, account: &AccountId) -> Result<Vec<Passkey>, StoreError> {
    let mut list = store::read(store, |r| all(r, account))?;
    list.sort_by_key(|p| p.added);
    Ok(list)
}

/// A passkey of an account.
pub(super) fn find(store: &dyn Store, account: &AccountId, credential: &str) -> Result<Option<Passkey>, StoreError> {
    store::read(store, |r| store::get_json(r, Table::Web, &row(account, credential)))
}

/// Whether any account has a passkey.
pub(super) fn any(store: &dyn Store) -> Result<bool, StoreError> {
    store::read(store, |r| Ok(!r.scan(Table::Web, OWNER, b"", 1)?.is_empty()))
}

/// The account of a passkey that names itself.
pub(super) fn owner(store: &dyn Store, credential: &str) -> Result<Option<AccountId>, StoreError> {
    store::read(store, |r| store::get_json(r, Table::Web, &owner_row(credential)))
}

/// A name as it is kept.
pub(super) fn name(text: &str) -> Result<String, PasskeyError> {
    let name = text.trim();
    let fits = (1..=MAX_NAME_CHARS).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if fits { Ok(name.to_owned()) } else { Err(PasskeyError::Name) }
}

/// Adds a passkey; `proof` says in the ledger what vouched for it.
pub(super) async fn add(
    outbox: &Outbox,
    account: &AccountId,
    passkey: Passkey,
    proof: &'static str,
) -> Result<(), PasskeyError> {
    let event =
        Event::PasskeyAdded { account: account.to_string(), passkey: passkey.key.id(), proof: proof.to_owned() };
    let owner = account.clone();
    let change = move |w: &mut dyn Writer| -> Result<(), PasskeyError> {
        let credential = &passkey.key.credential;
        if w.get(Table::Web, &owner_row(credential))?.is_some() {
            return Err(PasskeyError::Exists);
        }
        if all(w, &owner)?.len() >= MAX_PASSKEYS {
            return Err(PasskeyError::TooMany);
        }
        store::put_json(w, Table::Web, &owner_row(credential), &owner)?;
        Ok(store::put_json(w, Table::Web, &row(&owner, credential), &passkey)?)
    };
    outbox.change_approver(account, event, change).await?;
    tracing::warn!(%account, proof, "a passkey was registered");
    Ok(())
}

/// Removes a passkey; `proof` says in the ledger what vouched for that.
pub async fn remove(
    outbox: &Outbox,
    store: &dyn Store,
    account: &AccountId,
    credential: &str,
    proof: &'static str,
) -> Result<(), PasskeyError> {
    let passkey = find(store, account, credential)?.ok_or(PasskeyError::NotFound)?;
    let event =
        Event::PasskeyRemoved { account: account.to_string(), passkey: passkey.key.id(), proof: proof.to_owned() };
    let (owner, credential) = (account.clone(), credential.to_owned());
    let change = move |w: &mut dyn Writer| -> Result<(), PasskeyError> {
        if w.get(Table::Web, &row(&owner, &credential))?.is_none() {
            return Err(PasskeyError::NotFound);
        }
        w.delete(Table::Web, &owner_row(&credential))?;
        Ok(w.delete(Table::Web, &row(&owner, &credential))?)
    };
    outbox.change_approver(account, event, change).await?;
    tracing::warn!(%account, proof, "a passkey was removed");
    Ok(())
}

/// Checks what a passkey of `account` said for `challenge`, and writes its
/// counter.
pub(super) async fn verify(
    store: &dyn Store,
    account: &AccountId,
    origin: &str,
    assertion: &Assertion,
    challenge: &[u8; 32],
) -> Result<(), PasskeyError> {
    let unknown = || PasskeyError::Proof(AssertionError::Unknown);
    let passkey = find(store, account, &assertion.credential)?.ok_or_else(unknown)?;
    // The key was registered for an address that the pages may have left since.
    if passkey.key.origin != origin {
        return Err(PasskeyError::Proof(AssertionError::Origin));
    }
    let counter = assertion.check(&passkey.key, challenge).map_err(PasskeyError::Proof)?;
    let (row, account, now) = (row(account, &assertion.credential), account.clone(), pin::now());
    store::write(store, move |w| -> Result<(), PasskeyError> {
        // Removed in between?
        let stored: Option<Passkey> = store::get_json(w, Table::Web, &row)?;
        let mut stored = stored.ok_or(PasskeyError::Proof(AssertionError::Unknown))?;
        if !counter_goes_on(stored.counter, counter) {
            tracing::error!(%account, "a passkey's counter went back; it may have been copied");
            return Err(PasskeyError::Proof(AssertionError::Counter));
        }
        (stored.counter, stored.used) = (counter, Some(now));
        Ok(store::put_json(w, Table::Web, &row, &stored)?)
    })
    .await
}

fn code_hash(account: &AccountId, code: &str) -> [u8; 32] {
    let plain: String = code.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect();
    Sha256::digest(format!("tollgate/code/v1\n{account}\n{plain}")).into()
}

/// Makes a code that registers one passkey; an earlier one is void.
pub async fn make_code(store: &dyn Store, account: &AccountId) -> Result<String, PasskeyError> {
    let mut octets = [0u8; CODE_CHARS];
    getrandom::fill(&mut octets).map_err(|e| PasskeyError::Random(e.to_string()))?;
    let code: String =
        octets.iter().map(|o| char::from(CODE_ALPHABET[usize::from(*o) % CODE_ALPHABET.len()])).collect();
    let kept = CodeRow { hash: code_hash(account, &code), until: pin::now() + CODE_SECONDS, failed: 0 };
    let row = code_row(account);
    store::write(store, move |w| -> Result<(), PasskeyError> { Ok(store::put_json(w, Table::Web, &row, &kept)?) })
        .await?;
    // In groups of four, as it is read from a terminal and typed.
    Ok(code.as_bytes().chunks(4).map(String::from_utf8_lossy).collect::<Vec<_>>().join("-"))
}

/// Spends a code. A wrong one counts.
pub(super) async fn take_code(
    store: &dyn Store,
    account: &AccountId,
    code: &str,
    now: i64,
) -> Result<(), PasskeyError> {
    let (row, hash) = (code_row(account), code_hash(account, code));
    let right = store::write(store, move |w| -> Result<bool, PasskeyError> {
        let Some(mut kept) = store::get_json::<CodeRow>(w, Table::Web, &row)? else { return Ok(false) };
        let right = kept.until > now && bool::from(kept.hash.ct_eq(&hash));
        kept.failed += 1;
        if right || kept.until <= now || kept.failed >= CODE_TRIES {
            w.delete(Table::Web, &row)?;
        } else {
            store::put_json(w, Table::Web, &row, &kept)?;
        }
        Ok(right)
    })
    .await?;
    if right { Ok(()) } else { Err(PasskeyError::NoCode) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::RedbStore;

    #[tokio::test]
    async fn a_code_works_once_for_its_account_and_not_after_five_wrong_ones_or_ten_minutes() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path()).unwrap();
        let (ada, bo) = (AccountId("ada@example.org".into()), AccountId("bo@example.org".into()));
        let code = make_code(&store, &ada).await.unwrap();
        let take =
            async |account: &AccountId, code: &str, now: i64| take_code(&store, account, code, now).await.is_ok();
        let now = pin::now();
        assert!(!take(&bo, &code, now).await, "another account's");
        assert!(take(&ada, &code.to_lowercase().replace('-', " "), now).await, "as people type");
        assert!(!take(&ada, &code, now).await, "once");
        let old = make_code(&store, &ada).await.unwrap();
        let code = make_code(&store, &ada).await.unwrap();
        assert!(!take(&ada, &old, now).await, "a new code voids the old one");
        for _ in 2..CODE_TRIES {
            assert!(!take(&ada, "2222-2222-2222-2222", now).await);
        }
        assert!(!take(&ada, "", now).await && !take(&ada, &code, now).await, "five wrong ones");
        let code = make_code(&store, &ada).await.unwrap();
        assert!(!take(&ada, &code, pin::now() + CODE_SECONDS + 1).await, "too late");
        let raw = store::read(&store, |r| r.scan(Table::Web, b"", b"", 99)).unwrap();
        assert!(!raw.iter().any(|(_, v)| String::from_utf8_lossy(v).contains(&code.replace('-', ""))));
    }
}
