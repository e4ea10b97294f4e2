//! Which submission server an account's mail goes to.

use super::Outbox;
use crate::account::{AccountId, SecretError};
use crate::config::{Endpoint, Provider};
use crate::upstream::smtp::{Submission, SubmissionError};

/// What a payload names as the host of the embedded provider, whose port is
/// another one at each start.
const EMBEDDED_HOST: &str = "embedded";

/// A submission server and the login there.
#[derive(Debug, Clone)]
pub struct Route {
    /// The server.
    pub endpoint: Endpoint,
    /// The login.
    pub user: String,
    /// What payloads call the server.
    pub host: String,
}

/// Why there is no connection to the provider.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// No such account is configured.
    #[error("the account is not configured")]
    NoAccount,
    /// The embedded provider doesn't run.
    #[error("the embedded provider does not run")]
    NoProvider,
    /// The password can't be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The provider can't be used.
    #[error(transparent)]
    Submission(#[from] SubmissionError),
}

impl Outbox {
    /// Says where the embedded provider takes submissions; once, at start.
    pub fn set_embedded_submission(&self, endpoint: Endpoint) {
        if self.embedded.set(endpoint).is_err() {
            tracing::warn!("the embedded provider's address was set twice; the first stays");
        }
    }

    /// The route of an account.
    pub fn route(&self, account: &AccountId) -> Result<Route, RouteError> {
        let config = self.accounts.account(account).ok_or(RouteError::NoAccount)?;
        match &config.provider {
            Provider::Embedded => {
                let endpoint = self.embedded.get().cloned().ok_or(RouteError::NoProvider)?;
                Ok(Route { endpoint, user: config.address.to_string(), host: EMBEDDED_HOST.to_owned() })
            }
            Provider::Network(network) => Ok(Route {
                endpoint: network.smtp.clone(),
                user: network.smtp_user.clone(),
                host: network.smtp.host.clone(),
            }),
        }
    }

    /// Host and login as a payload names them; needs no running provider.
    pub(super) fn upstream_names(&self, account: &AccountId) -> Option<(String, String)> {
        let config = self.accounts.account(account)?;
        Some(match &config.provider {
            Provider::Embedded => (EMBEDDED_HOST.to_owned(), config.address.to_string()),
            Provider::Network(network) => (network.smtp.host.clone(), network.smtp_user.clone()),
        })
    }

    /// A connection to an account's submission server, signed in with the
    /// stored password.
    pub async fn connect(&self, account: &AccountId) -> Result<Submission, RouteError> {
        let password = zeroize::Zeroizing::new(self.accounts.password(account).await?);
        self.connect_with(account, &password).await
    }

    /// The same with a password that a session brought, where none is stored.
    pub async fn connect_with(&self, account: &AccountId, password: &str) -> Result<Submission, RouteError> {
        let route = self.route(account)?;
        Ok(Submission::connect_within(&route.endpoint, &route.user, password, self.tuning.timeouts).await?)
    }

    /// A connection that says what an account's submission server offers; not
    /// signed in where no password is stored.
    pub async fn greet(&self, account: &AccountId) -> Result<Submission, RouteError> {
        if self.accounts.logins(account).is_none() {
            return self.connect(account).await;
        }
        Ok(Submission::greet(&self.route(account)?.endpoint, self.tuning.timeouts).await?)
    }
}
