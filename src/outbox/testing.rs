//! For tests: an outbox of the embedded account before a scripted provider.

use std::sync::Arc;
use std::time::Duration;

use super::{Hold, HoldId, Outbox, Tuning};
use crate::account::{AccountId, Accounts};
use crate::config::{Config, TlsMode};
use crate::floor::submission::State;
use crate::store::Store;
use crate::store::redb::RedbStore;
use crate::upstream::smtp::TIMEOUTS;
use crate::upstream::smtp::scripted::Provider;

/// Short times: a silent provider is silent for 300 ms, a retry is due at once.
pub(crate) fn tuning() -> Tuning {
    let mut timeouts = TIMEOUTS;
    timeouts.data_end = Duration::from_millis(300);
    Tuning { timeouts, retry_seconds: |_| 0, ..Tuning::default() }
}

/// An outbox and what it stands on.
pub(crate) struct Bench {
    /// Removed with the bench.
    _folder: tempfile::TempDir,
    pub(crate) config: Arc<Config>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) account: AccountId,
}

impl Bench {
    /// The embedded account before `provider`; `change` alters the configuration.
    pub(crate) async fn new(provider: &Provider, tuning: Tuning, change: impl FnOnce(&mut Config)) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::embedded(folder.path());
        change(&mut config);
        let config = Arc::new(config);
        let store: Arc<dyn Store> = Arc::new(RedbStore::open(&config.state_dir).unwrap());
        let accounts = Accounts::new(config.clone(), store.clone()).unwrap();
        accounts.ensure_demo_keys().await.unwrap();
        let outbox = Outbox::tuned(config.clone(), store.clone(), accounts.clone(), tuning).unwrap();
        outbox.set_embedded_submission(provider.endpoint(TlsMode::None));
        let account = accounts.ids().remove(0);
        Bench { _folder: folder, config, store, accounts, outbox: Arc::new(outbox), account }
    }

    /// The hold once it is in `state`; panics after five seconds.
    pub(crate) async fn wait_for(&self, id: &HoldId, state: State) -> Hold {
        for _ in 0..500 {
            let hold = self.outbox.get(&self.account, id).unwrap().unwrap();
            if hold.state == state {
                return hold;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never {state}: {:?}", self.outbox.get(&self.account, id));
    }

    /// Shows and approves as the page does.
    pub(crate) async fn approve(&self, id: &HoldId) {
        let shown = self.outbox.show(&self.account, id, "owner").await.unwrap();
        let hash = shown.hash.to_string();
        self.outbox.approve(&self.account, id, &shown.payload.nonce, &hash, "owner").await.unwrap();
    }
}
