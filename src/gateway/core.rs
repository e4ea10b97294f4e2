//! What every part of a running gateway shares, and what a verb of the
//! command line opens when no gateway runs: state, accounts, outbox.
//!
//! Promises: one process at a time has it open. Doesn't know: any socket.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;

use crate::account::{AccountId, Accounts, AccountsError, demo};
use crate::config::{Config, Provider, private};
use crate::floor::identity::to_text;
use crate::gateway::history::Look;
use crate::outbox::{IdentityError, Outbox};
use crate::store::redb::RedbStore;
use crate::store::{BoxFuture, Store, StoreError};
use crate::web::pin::{self, PinError};

/// Name of the file with the public keys that receipts verify under, in the
/// state folder; one key a line.
pub const PUBLIC_KEY_FILE: &str = "identity.pub";

/// Why the state can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// The store: in use, newer, damaged, or failing.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keys can't be read.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// The signing identity can't be used.
    #[error(transparent)]
    Outbox(#[from] IdentityError),
    /// The embedded account's PIN can't be set.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The public key can't be written beside the identity.
    #[error("{0}: {1}")]
    PublicKey(String, std::io::Error),
}

/// A request to put older mail into lanes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillRequest {
    /// The account.
    pub account: AccountId,
    /// How many of the newest messages.
    pub last: u32,
    /// Only say what would go where.
    pub dry_run: bool,
}

/// Puts older mail into lanes, or says why it can't.
pub type BackfillFn =
    Arc<dyn Fn(BackfillRequest) -> BoxFuture<'static, Result<serde_json::Value, String>> + Send + Sync>;

/// Takes a correction of an account back, or says why it can't.
pub type UndoFn = Arc<dyn Fn(AccountId, String) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The decision of the message that a mailbox shows under a UID to people.
pub type LocateFn = Arc<dyn Fn(&AccountId, &str, u32) -> Result<Option<String>, StoreError> + Send + Sync>;

/// Looks through an account's Sent for whom the person wrote to. The flag: only
/// where the provider can be used now and Sent wasn't read before.
pub type SentReadFn = Arc<dyn Fn(AccountId, bool) -> BoxFuture<'static, Result<Option<Look>, String>> + Send + Sync>;

/// Serves the IMAP face to the operator, reading only, until one of both ends.
pub type FaceFn = Arc<dyn Fn(AccountId, UnixStream) -> BoxFuture<'static, ()> + Send + Sync>;

/// What the mirror of an account holds, after it was asked to agree with the
/// provider.
pub type MirrorFn = Arc<dyn Fn(AccountId) -> BoxFuture<'static, Result<serde_json::Value, String>> + Send + Sync>;

/// State, accounts and outbox.
#[derive(Clone)]
pub struct Core {
    /// What runs.
    pub config: Arc<Config>,
    /// Durable state.
    pub store: Arc<dyn Store>,
    /// Accounts and keys.
    pub accounts: Arc<Accounts>,
    /// Held mail.
    pub outbox: Arc<Outbox>,
    /// Set by a gateway that watches mailboxes; without it `backfill` says
    /// that the gateway must run.
    pub backfill: Arc<OnceLock<BackfillFn>>,
    /// Set like `backfill`.
    pub undo: Arc<OnceLock<UndoFn>>,
    /// Set by what keeps views; without it `explain` takes no UID.
    pub locate: Arc<OnceLock<LocateFn>>,
    /// Set like `backfill`.
    pub face: Arc<OnceLock<FaceFn>>,
    /// Set like `backfill`.
    pub mirror: Arc<OnceLock<MirrorFn>>,
    /// Set like `backfill`.
    pub sent_read: Arc<OnceLock<SentReadFn>>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("accounts", &self.accounts).finish_non_exhaustive()
    }
}

impl Core {
    /// Opens the state folder, making what is missing: the folder, the
    /// identity and its public key, the embedded account's fixed keys and PIN.
    pub async fn open(config: Config) -> Result<Core, CoreError> {
        let config = Arc::new(config);
        let store: Arc<dyn Store> = Arc::new(RedbStore::open(&config.state_dir)?);
        let accounts = Accounts::new(config.clone(), store.clone())?;
        let outbox = Arc::new(Outbox::new(config.clone(), store.clone(), accounts.clone())?);
        accounts.ensure_demo_keys().await?;
        ensure_demo_pin(&config, store.as_ref()).await?;
        let core = Core {
            config,
            store,
            accounts,
            outbox,
            backfill: Arc::default(),
            undo: Arc::default(),
            locate: Arc::default(),
            face: Arc::default(),
            mirror: Arc::default(),
            sent_read: Arc::default(),
        };
        core.publish()?;
        Ok(core)
    }

    /// Writes the public keys beside the identity.
    pub fn publish(&self) -> Result<(), CoreError> {
        publish(&self.config.state_dir.join(PUBLIC_KEY_FILE), &self.outbox)
    }
}

/// A PIN that a person set for the embedded account stays.
async fn ensure_demo_pin(config: &Config, store: &dyn Store) -> Result<(), CoreError> {
    for account in config.accounts.iter().filter(|a| matches!(a.provider, Provider::Embedded)) {
        let id = AccountId::of(&account.address);
        if !pin::is_set(store, &id)? {
            pin::set(store, &id, demo::PIN).await?;
        }
    }
    Ok(())
}

fn publish(path: &Path, outbox: &Outbox) -> Result<(), CoreError> {
    let text: String = outbox.verifying_keys().iter().map(|key| to_text(key) + "\n").collect();
    if std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    private::write(path, text.as_bytes()).map_err(|e| CoreError::PublicKey(path.display().to_string(), e))
}
