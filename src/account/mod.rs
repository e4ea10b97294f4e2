//! Accounts, keys, grants, secrets and authentication.
//!
//! Promises: a [`Principal`] exists only for a key that was presented whole
//! and is not revoked, or, where no secret is stored, for a login that the
//! provider accepted, or for the operator's console, which only reads; it
//! names one account and nothing of another can be reached through it.
//! Doesn't know: what a protocol does with it.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::config::{AccountConfig, Config, Provider};
use crate::mail::address::Address;
use crate::store::{self, Reader, Store, StoreError, Table, Writer};

pub mod demo;
pub mod grants;
mod key;
pub mod login;
pub mod secret;

pub use grants::{AgentGrants, Change, FloorGrant, Grant, GrantError, Grants, LiveGrants, Verb};
pub use login::{Logins, OwnLogin, Reach, Unproven};
pub use secret::SecretError;

/// Names an account: its address in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccountId(pub Arc<str>);

impl AccountId {
    /// The account of this address.
    pub fn of(address: &Address) -> AccountId {
        AccountId(address.canonical().into())
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for AccountId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names a key: the `<id>` of `tg1_<id>_<secret>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(pub Arc<str>);

impl KeyId {
    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person's mail client.
    Person,
    /// An AI agent.
    Agent,
}

/// Who is signed in.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The account that the key belongs to.
    pub account: AccountId,
    /// The key.
    pub key: KeyId,
    /// The name that the key was given.
    pub key_name: String,
    /// Person or agent.
    pub role: Role,
    /// What the key may do, as it is at the moment.
    pub grants: LiveGrants,
    /// Becomes true when the key is revoked, or the provider no longer takes
    /// the own login; sessions end then.
    pub revoked: tokio::sync::watch::Receiver<bool>,
    /// The session's own login at the provider, where no secret is stored.
    pub own: Option<OwnLogin>,
}

impl Principal {
    /// Why a session ends whose [`Principal::revoked`] became true.
    pub fn why_revoked(&self) -> &'static str {
        match &self.own {
            Some(_) => "the provider no longer takes this password",
            None => "the key was revoked",
        }
    }
}

/// Who the operator's console is, where a key's id and name would stand.
pub const CONSOLE_KEY: &str = "console";

impl Principal {
    /// The operator at the control socket, who sees what people see and
    /// changes nothing. Becomes revoked when `ended` turns true.
    pub fn console(account: AccountId, ended: watch::Receiver<bool>) -> Principal {
        Principal {
            account,
            key: KeyId(CONSOLE_KEY.into()),
            key_name: CONSOLE_KEY.to_owned(),
            role: Role::Person,
            grants: LiveGrants::fixed(Grants::read_only()),
            revoked: ended,
            own: None,
        }
    }
}

/// Most keys of one account that are not revoked.
pub const MAX_KEYS_PER_ACCOUNT: usize = 256;
/// Longest name of a key, in characters.
pub const MAX_KEY_NAME_CHARS: usize = 64;
/// Keys read from the store at a time.
const SCAN_PAGE: usize = 256;

/// Sign-in was refused. One error for every reason, so that a stranger learns
/// nothing; the reason is logged without the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("wrong address or key")]
pub struct AuthError;

/// Why a change of the keys was refused.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// The account isn't configured.
    #[error("no account {0} is configured")]
    NoAccount(String),
    /// No key has this id.
    #[error("no key has the id {0}")]
    NoKey(String),
    /// Keys stand for a stored secret, and the account has none.
    #[error(
        "{0} stores no password (auth = \"login\"): its person signs in with the provider's own password, \
         and there are no keys, no agents and no held mail; they need auth = \"stored\""
    )]
    NoSecret(AccountId),
    /// The name is empty, too long or holds control characters.
    #[error("a key's name is 1 to {MAX_KEY_NAME_CHARS} characters without control characters")]
    Name,
    /// The account has [`MAX_KEYS_PER_ACCOUNT`] keys.
    #[error("the account has {MAX_KEYS_PER_ACCOUNT} keys; revoke one first")]
    TooMany,
    /// Only agents' keys have grants.
    #[error("{0} is a person's key: it may do everything")]
    NotAgent(KeyId),
    /// The grant can't be given.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The system gave no random octets.
    #[error("no randomness: {0}")]
    Random(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is known of a key; the key itself is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    /// The part that finds it.
    pub id: KeyId,
    /// The account that it belongs to.
    pub account: AccountId,
    /// Person or agent.
    pub role: Role,
    /// The name that it was given.
    pub name: String,
    /// When it was made, seconds since 1970.
    pub created: i64,
    /// When it was revoked, seconds since 1970.
    pub revoked_at: Option<i64>,
    /// An agent key's grants.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grants: Option<grants::AgentGrants>,
}

impl KeyInfo {
    /// What the key may do.
    pub fn grants(&self) -> Grants {
        match (self.role, &self.grants) {
            (Role::Person, _) => Grants::Person,
            (Role::Agent, Some(grants)) => Grants::Agent(Arc::new(grants.clone())),
            (Role::Agent, None) => Grants::default_agent(),
        }
    }
}

/// A key as [`Table::Key`] stores it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct KeyRecord {
    #[serde(flatten)]
    info: KeyInfo,
    /// SHA-256 of the whole text.
    hash: [u8; 32],
}

/// A key in memory, with the switch that its sessions watch.
#[derive(Debug)]
struct Live {
    record: KeyRecord,
    revoked: watch::Sender<bool>,
    grants: watch::Sender<Grants>,
}

impl Live {
    fn new(record: KeyRecord) -> Live {
        let (revoked, _) = watch::channel(record.info.revoked_at.is_some());
        let (grants, _) = watch::channel(record.info.grants());
        Live { record, revoked, grants }
    }
}

/// A key that is revoked in memory already. While this lives, nothing else
/// writes the record of a key.
#[derive(Debug)]
pub struct Revoking<'a> {
    record: KeyRecord,
    _writing: tokio::sync::MutexGuard<'a, ()>,
}

impl Revoking<'_> {
    /// What is known of the key.
    pub fn info(&self) -> &KeyInfo {
        &self.record.info
    }

    /// The row to be written.
    pub fn row(&self) -> RevokedRow {
        RevokedRow(self.record.clone())
    }
}

/// The row of a revoked key.
#[derive(Debug, Clone)]
pub struct RevokedRow(KeyRecord);

impl RevokedRow {
    /// Writes it; whether the key wasn't revoked in the store before.
    pub fn write(&self, w: &mut dyn Writer) -> Result<bool, StoreError> {
        let first = !is_revoked_in(w, &self.0.info.id)?;
        store::put_json(w, Table::Key, self.0.info.id.as_str().as_bytes(), &self.0)?;
        Ok(first)
    }
}

/// Whether a key is revoked as the store has it; a key that the store doesn't
/// know is not.
pub fn is_revoked_in(r: &(impl Reader + ?Sized), id: &KeyId) -> Result<bool, StoreError> {
    let record: Option<KeyRecord> = store::get_json(r, Table::Key, id.as_str().as_bytes())?;
    Ok(record.is_some_and(|r| r.info.revoked_at.is_some()))
}

/// The configured accounts and their keys.
///
/// The keys are read once and kept; this process is the store's only writer.
pub struct Accounts {
    config: Arc<Config>,
    store: Arc<dyn Store>,
    keys: RwLock<BTreeMap<KeyId, Live>>,
    /// Held while the record of a key that exists is written: the last write
    /// holds every change.
    writing: tokio::sync::Mutex<()>,
    /// Of the accounts without a stored secret.
    logins: BTreeMap<AccountId, Arc<Logins>>,
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accounts").field("accounts", &self.ids()).finish_non_exhaustive()
    }
}

impl Accounts {
    /// Reads the keys of `store`.
    pub fn new(config: Arc<Config>, store: Arc<dyn Store>) -> Result<Arc<Accounts>, AccountsError> {
        let keys = store::read(store.as_ref(), |r| -> Result<_, StoreError> {
            let mut keys = BTreeMap::new();
            let mut from = Vec::new();
            loop {
                let page = r.scan(Table::Key, b"", &from, SCAN_PAGE)?;
                let Some((last, _)) = page.last() else { return Ok(keys) };
                // The smallest key that is greater than the page's last.
                from = last.iter().copied().chain([0]).collect();
                for (_, value) in &page {
                    let record: KeyRecord = store::from_json(Table::Key, value)?;
                    keys.insert(record.info.id.clone(), Live::new(record));
                }
            }
        })?;
        let own = config.accounts.iter().filter(|a| !a.stores_secret()).map(|a| AccountId::of(&a.address));
        let logins = own.map(|id| (id.clone(), Logins::new(id))).collect();
        let (keys, writing) = (RwLock::new(keys), tokio::sync::Mutex::default());
        Ok(Arc::new(Accounts { config, store, keys, writing, logins }))
    }

    /// The configuration of an account.
    pub fn account(&self, id: &AccountId) -> Option<&AccountConfig> {
        self.config.accounts.iter().find(|a| a.address.canonical() == id.as_str())
    }

    /// Every account, in the order of the configuration.
    pub fn ids(&self) -> Vec<AccountId> {
        self.config.accounts.iter().map(|a| AccountId::of(&a.address)).collect()
    }

    /// The account that `text` names, by its address in any writing.
    pub fn find(&self, text: &str) -> Option<AccountId> {
        let id = AccountId::of(&Address::parse(text).ok()?);
        self.account(&id).map(|_| id)
    }

    /// The sessions of an account without a stored secret; `None` for others.
    pub fn logins(&self, id: &AccountId) -> Option<&Arc<Logins>> {
        self.logins.get(id)
    }

    /// What `user`, an account's address, and `password` are where no secret
    /// is stored: a login that the provider has to accept before anything is
    /// shown. `None` where [`Accounts::authenticate`] is to answer: for other
    /// accounts, and for what must not be sent to a provider, which is a key
    /// of ours (whosever it is) and no password at all.
    pub fn own_login(&self, user: &str, password: &str) -> Option<Unproven> {
        let logins = self.logins.get(&self.find(user)?)?;
        let for_us_only = password.is_empty() || key::KeyText::parse(password).is_some();
        (!for_us_only).then(|| Unproven::new(logins.clone(), password))
    }

    /// Signs in: `user` is the account's address, `password` a whole key.
    pub fn authenticate(&self, user: &str, password: &str) -> Result<Principal, AuthError> {
        let keys = self.keys.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let id = key::KeyText::parse(password).map(|k| KeyId(k.id.into()));
        let live = id.as_ref().and_then(|id| keys.get(id));
        // An unknown id takes the same comparison, against a hash of nothing.
        let stored = live.map_or([0; 32], |l| l.record.hash);
        let secret_fits = key::matches(password, &stored);
        let refuse = |why: &str| {
            tracing::info!(key = id.as_ref().map(KeyId::as_str), why, "sign-in refused");
            AuthError
        };
        let live = live.ok_or_else(|| refuse("no such key"))?;
        let info = &live.record.info;
        if !secret_fits {
            return Err(refuse("wrong secret"));
        }
        if info.revoked_at.is_some() || *live.revoked.borrow() {
            return Err(refuse("revoked"));
        }
        let account = self.account(&info.account).ok_or_else(|| refuse("account not configured"))?;
        if !account.stores_secret() {
            return Err(refuse("the account takes no keys"));
        }
        if demo::is_demo_key(&info.id) && !matches!(account.provider, Provider::Embedded) {
            return Err(refuse("a demo key on a real account"));
        }
        if !Address::parse(user).is_ok_and(|a| a.canonical() == info.account.as_str()) {
            return Err(refuse("another account's address"));
        }
        Ok(Principal {
            account: info.account.clone(),
            key: info.id.clone(),
            key_name: info.name.clone(),
            role: info.role,
            grants: LiveGrants::of_key(&live.grants),
            revoked: live.revoked.subscribe(),
            own: None,
        })
    }

    /// Makes a key and returns its text, which is stored nowhere.
    pub async fn add_key(&self, account: &AccountId, role: Role, name: &str) -> Result<String, AccountsError> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > MAX_KEY_NAME_CHARS || name.chars().any(char::is_control) {
            return Err(AccountsError::Name);
        }
        let known = self.account(account).ok_or_else(|| AccountsError::NoAccount(account.to_string()))?;
        if !known.stores_secret() {
            return Err(AccountsError::NoSecret(account.clone()));
        }
        if self.list_keys(Some(account)).iter().filter(|k| k.revoked_at.is_none()).count() >= MAX_KEYS_PER_ACCOUNT {
            return Err(AccountsError::TooMany);
        }
        let (id, text) = key::generate().map_err(|e| AccountsError::Random(e.to_string()))?;
        self.insert(&id, &text, account, role, name).await?;
        Ok(text.to_string())
    }

    async fn insert(
        &self,
        id: &str,
        text: &str,
        account: &AccountId,
        role: Role,
        name: &str,
    ) -> Result<(), AccountsError> {
        let info = KeyInfo {
            id: KeyId(id.into()),
            account: account.clone(),
            role,
            name: name.to_owned(),
            created: now(),
            revoked_at: None,
            grants: (role == Role::Agent).then(AgentGrants::default),
        };
        let record = KeyRecord { info, hash: key::hash(text) };
        self.persist(&record).await?;
        let mut keys = self.keys.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        keys.insert(record.info.id.clone(), Live::new(record));
        Ok(())
    }

    async fn persist(&self, record: &KeyRecord) -> Result<(), StoreError> {
        let record = record.clone();
        store::write(self.store.as_ref(), move |w| -> Result<(), StoreError> {
            store::put_json(w, Table::Key, record.info.id.as_str().as_bytes(), &record)
        })
        .await
    }

    /// What is known of the key with this text; the secret isn't checked.
    pub fn key_info(&self, text: &str) -> Option<KeyInfo> {
        let id = KeyId(key::KeyText::parse(text)?.id.into());
        let keys = self.keys.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        keys.get(&id).map(|live| live.record.info.clone())
    }

    /// The keys, revoked ones too, oldest first.
    pub fn list_keys(&self, account: Option<&AccountId>) -> Vec<KeyInfo> {
        let keys = self.keys.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut list: Vec<KeyInfo> =
            keys.values().map(|l| l.record.info.clone()).filter(|k| account.is_none_or(|a| *a == k.account)).collect();
        list.sort_by(|a, b| a.created.cmp(&b.created).then_with(|| a.id.cmp(&b.id)));
        list
    }

    /// Revokes a key that nothing was submitted with. What was is
    /// [`crate::outbox::Outbox::revoke_key`]'s matter.
    pub async fn revoke(&self, id: &KeyId) -> Result<KeyInfo, AccountsError> {
        let revoking = self.revoking(id).await?;
        self.persist(&revoking.record).await?;
        Ok(revoking.record.info)
    }

    /// Begins to revoke a key: its sessions are told and new ones are refused
    /// before anything is written, so a failing disk doesn't keep a key alive.
    /// The caller writes [`Revoking::row`] in the transaction that ends what
    /// the key has waiting. Revoking twice keeps the first time.
    pub async fn revoking(&self, id: &KeyId) -> Result<Revoking<'_>, AccountsError> {
        {
            let mut keys = self.keys.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            let live = keys.get_mut(id).ok_or_else(|| AccountsError::NoKey(id.to_string()))?;
            live.record.info.revoked_at.get_or_insert_with(now);
            live.revoked.send_replace(true);
        }
        let writing = self.writing.lock().await;
        Ok(Revoking { record: self.record(id)?, _writing: writing })
    }

    /// Changes an agent key's grants; all of the changes or none. Open
    /// sessions see them from their next command on. The caller writes the
    /// ledger entry.
    pub async fn set_grants(&self, id: &KeyId, changes: &[Change]) -> Result<KeyInfo, AccountsError> {
        let _writing = self.writing.lock().await;
        let mut record = self.record(id)?;
        if record.info.role != Role::Agent {
            return Err(AccountsError::NotAgent(id.clone()));
        }
        let mut grants = record.info.grants.take().unwrap_or_default();
        for change in changes {
            grants.change(change)?;
        }
        record.info.grants = Some(grants.clone());
        self.persist(&record).await?;
        let mut keys = self.keys.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let live = keys.get_mut(id).ok_or_else(|| AccountsError::NoKey(id.to_string()))?;
        live.record.info.grants = Some(grants);
        live.grants.send_replace(live.record.info.grants());
        Ok(live.record.info.clone())
    }

    /// A key's record as it is in memory, which is never behind the store.
    fn record(&self, id: &KeyId) -> Result<KeyRecord, AccountsError> {
        let keys = self.keys.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        keys.get(id).map(|live| live.record.clone()).ok_or_else(|| AccountsError::NoKey(id.to_string()))
    }

    /// What is known of a key.
    pub fn key(&self, id: &KeyId) -> Option<KeyInfo> {
        self.record(id).ok().map(|record| record.info)
    }

    /// The stored password of an account at its provider.
    pub async fn password(&self, id: &AccountId) -> Result<String, SecretError> {
        match &self.account(id).ok_or(SecretError::NoAccount)?.provider {
            Provider::Embedded => Ok(demo::PROVIDER_PASSWORD.to_owned()),
            Provider::Network(network) => secret::fetch(&network.secret).await,
        }
    }

    /// Gives the embedded account, where one is configured, its fixed keys. A
    /// fixed key that was revoked stays revoked.
    pub async fn ensure_demo_keys(&self) -> Result<(), AccountsError> {
        let Some(config) = self.config.accounts.iter().find(|a| matches!(a.provider, Provider::Embedded)) else {
            return Ok(());
        };
        let account = AccountId::of(&config.address);
        for (text, name, role) in demo::KEYS {
            let Some(parsed) = key::KeyText::parse(text) else { continue };
            let known = {
                let keys = self.keys.read().unwrap_or_else(std::sync::PoisonError::into_inner);
                keys.contains_key(&KeyId(parsed.id.into()))
            };
            if !known {
                self.insert(parsed.id, text, &account, role, name).await?;
            }
        }
        Ok(())
    }
}

/// Seconds since 1970 by the wall clock.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
