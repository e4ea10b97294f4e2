//! Signing in: with a key of ours, or with the person's own login at the
//! provider where no secret is stored.
//!
//! Promises: nothing of an account is looked at before the sign-in is decided;
//! an own login is decided by the provider each time, whoever else is signed
//! in; a refusal costs a pause. Doesn't know: how LOGIN and AUTHENTICATE are
//! read.

use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::account::{AccountId, Principal, Reach, Role, Unproven};

use super::mirror::{Health, Mirror};
use super::pool::ProveError;
use super::session::{Fail, Session, Signed};
use super::view::Audience;

/// Failed logins before the connection ends.
const MAX_LOGIN_FAILURES: u32 = 3;
/// Pause after a failed login.
const LOGIN_PAUSE: Duration = Duration::from_secs(1);
/// A client that signs in before the provider was reached waits so long to
/// learn what works there.
const OFFERS_WAIT: Duration = Duration::from_secs(2);

impl Session {
    /// LOGIN, and AUTHENTICATE PLAIN once it was taken apart.
    pub(super) async fn sign_in_octets(&mut self, user: &[u8], password: &[u8]) -> Result<String, Fail> {
        // What isn't UTF-8 is nobody's login: it must not become another text.
        let user = std::str::from_utf8(user).unwrap_or_default().to_owned();
        let password = Zeroizing::new(std::str::from_utf8(password).unwrap_or_default().to_owned());
        self.sign_in(&user, &password).await
    }

    async fn sign_in(&mut self, user: &str, password: &str) -> Result<String, Fail> {
        if self.signed.is_some() {
            return Err(Fail::Bad("already signed in".into()));
        }
        if !self.login_allowed {
            return Err(Fail::No("PRIVACYREQUIRED", "sign in over TLS".into()));
        }
        if let Some(own) = self.services.accounts.own_login(user, password) {
            return self.sign_in_there(own).await;
        }
        let Ok(principal) = self.services.accounts.authenticate(user, password) else {
            return Err(self.failed_login("user name or key is wrong".into()).await);
        };
        let mirror = self.mirror_of(&principal.account)?;
        self.signed_in(principal, mirror).await
    }

    /// A sign-in with the person's own login, which the provider answers:
    /// RFC 5530 §3 tells a wrong password from a provider that can't say now.
    /// Nothing is looked up here before it did, whoever else is signed in.
    async fn sign_in_there(&mut self, own: Unproven) -> Result<String, Fail> {
        let mirror = self.mirror_of(own.account())?;
        let Some(turn) = own.turn(self.services.timing.queue).await else {
            return Err(Fail::No("LIMIT", "too many sign-ins of this account wait".into()));
        };
        let lease = match mirror.pool.prove(own.password()).await {
            Ok(lease) => lease,
            Err(ProveError::Refused(text)) => {
                tracing::info!(account = %own.account(), "sign-in refused by the provider");
                // The turn is held through the pause.
                return Err(self.failed_login(format!("the provider refused: {text}")).await);
            }
            Err(ProveError::NotNow(code, text)) => return Err(Fail::No(code, format!("the provider said: {text}"))),
            Err(ProveError::Pool(e)) => return Err(e.into()),
        };
        drop(turn);
        let password = own.password().clone();
        let principal = own.accepted(Reach::Mailboxes);
        lease.give_back();
        let others = mirror.clone();
        tokio::spawn(async move { others.pool.prove_others(&password).await });
        self.signed_in(principal, mirror).await
    }

    async fn failed_login(&mut self, why: String) -> Fail {
        self.login_failures += 1;
        tokio::time::sleep(LOGIN_PAUSE).await;
        if self.login_failures >= MAX_LOGIN_FAILURES {
            return Fail::Bye("too many failed logins".into());
        }
        Fail::No("AUTHENTICATIONFAILED", why)
    }

    fn mirror_of(&self, account: &AccountId) -> Result<Arc<Mirror>, Fail> {
        let mirror = self.services.mirrors.get(account).cloned();
        mirror.ok_or_else(|| Fail::No("UNAVAILABLE", "the account is not running".into()))
    }

    async fn signed_in(&mut self, principal: Principal, mirror: Arc<Mirror>) -> Result<String, Fail> {
        let audience = if principal.role == Role::Agent { Audience::Agents } else { Audience::People };
        self.signed = Some(Signed { principal, mirror, audience });
        self.reader.set_authenticated();
        self.await_offers().await;
        Ok(format!("[CAPABILITY {}] signed in", self.capability_line()))
    }

    /// A gateway that has just started may not have met the provider yet.
    pub(super) async fn await_offers(&self) {
        if let Some(signed) = &self.signed {
            let mut health = signed.mirror.health();
            let met = health.wait_for(|h| *h != Health::Starting);
            // Without it, what depends on the provider isn't offered yet.
            let _ = tokio::time::timeout(OFFERS_WAIT, met).await;
        }
    }
}
