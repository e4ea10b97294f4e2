//! What EHLO may offer: what every configured provider really takes.
//!
//! Promises: 8BITMIME and SMTPUTF8 are offered only where each provider was
//! asked and offers them; what isn't known isn't offered, and SIZE is never
//! above a known limit. Doesn't know: whether the provider still offers it
//! when a message comes to be sent; MAIL and the dispatcher look again.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;

use super::Services;
use crate::account::AccountId;
use crate::upstream::smtp::EhloCaps;

/// How often the providers are asked again.
pub const REFRESH: Duration = Duration::from_secs(6 * 3600);
/// How soon a provider that could not be asked is asked again.
pub const RETRY: Duration = Duration::from_secs(60);

/// What is known of each account's provider.
#[derive(Debug, Default)]
pub struct Offers {
    known: RwLock<BTreeMap<AccountId, EhloCaps>>,
}

/// What EHLO says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// 8BITMIME.
    pub eight_bit_mime: bool,
    /// SMTPUTF8.
    pub smtputf8: bool,
    /// The largest message.
    pub size: u64,
}

impl Offers {
    /// Remembers what a provider said.
    pub fn learn(&self, account: &AccountId, caps: &EhloCaps) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(account.clone(), caps.clone());
    }

    /// What may be offered to `accounts` together, of messages up to `size`.
    pub fn common(&self, accounts: &[AccountId], size: u64) -> Offer {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let all = |has: fn(&EhloCaps) -> bool| accounts.iter().all(|a| known.get(a).is_some_and(has));
        // RFC 1870 §4: zero is no limit.
        let limits = accounts.iter().filter_map(|a| known.get(a)?.size).filter(|limit| *limit > 0);
        Offer {
            eight_bit_mime: all(|caps| caps.eight_bit_mime),
            smtputf8: all(|caps| caps.smtputf8),
            size: limits.min().unwrap_or(size).min(size),
        }
    }
}

/// Asks every provider once; whether all answered.
pub async fn refresh(services: &Services) -> bool {
    let mut all = true;
    for account in services.accounts.ids() {
        match services.outbox.greet(&account).await {
            Ok(submission) => {
                services.offers.learn(&account, submission.ehlo());
                submission.quit().await;
            }
            Err(error) => {
                tracing::warn!(%account, %error, "the provider's submission server could not be asked what it takes");
                all = false;
            }
        }
    }
    all
}

/// Asks the providers now and then, until `shutdown` becomes true.
pub async fn run(services: Arc<Services>, mut shutdown: watch::Receiver<bool>) {
    while !*shutdown.borrow() {
        let pause = if refresh(&services).await { REFRESH } else { RETRY };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            changed = shutdown.changed() => if changed.is_err() { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_every_provider_offers_is_offered() {
        let ids = ["a@example.org", "b@example.org"].map(|a| AccountId(a.into()));
        let offers = Offers::default();
        let none = Offer { eight_bit_mime: false, smtputf8: false, size: 100 };
        assert_eq!(offers.common(&ids, 100), none);
        let both = EhloCaps { eight_bit_mime: true, smtputf8: true, size: Some(0), ..EhloCaps::default() };
        offers.learn(&ids[0], &both);
        assert_eq!(offers.common(&ids, 100), none);
        offers.learn(&ids[1], &EhloCaps { smtputf8: false, size: Some(50), ..both });
        assert_eq!(offers.common(&ids, 100), Offer { eight_bit_mime: true, smtputf8: false, size: 50 });
    }
}
