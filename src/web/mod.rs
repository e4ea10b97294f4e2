//! The approval page and what stands around it.
//!
//! Promises (invariants 2 and 9):
//! - What is read is what is sent: the page is made from the very octets, and
//!   they are hashed while it is made; what doesn't match is not offered.
//! - A cookie alone approves nothing: each approving or denying POST carries
//!   the PIN, the form's own token, the displayed hash and the page's nonce.
//! - No GET or HEAD changes a hold. Viewing a held message leaves a nonce,
//!   without which it can't be approved.
//! - A request is answered only for our Host and, where it acts, our Origin,
//!   both to the byte. Nothing is loaded from anywhere, and no script runs.
//! - No key, header or query opens a page; only a sign-in with the PIN does,
//!   and it shows one account.
//!
//! Doesn't know: SMTP, IMAP, or how a message is sent.

mod acts;
mod forms;
pub mod gate;
mod guard;
mod metrics;
mod page;
pub mod pin;
mod raw;
mod refusal;
pub mod sanitise;
mod serve;
mod session;
mod site;
mod views;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use tokio::sync::Semaphore;

use crate::account::Accounts;
use crate::config::Config;
use crate::outbox::Outbox;
use crate::store::Store;

pub use serve::{MAX_CONNECTIONS, serve};
pub use session::{COOKIE, LIFETIME_SECONDS};
pub use site::Site;

/// Messages that are read for showing at a time; each is held in memory whole.
pub const MAX_VIEWS: usize = 2;
/// Raw sources that are sent at a time.
pub const MAX_RAW: usize = 4;

/// What the pages work with.
#[derive(Clone)]
pub struct Services {
    /// The configuration.
    pub config: Arc<Config>,
    /// Sign-ins and PINs.
    pub store: Arc<dyn Store>,
    /// The holds.
    pub outbox: Arc<Outbox>,
    /// The accounts and their keys.
    pub accounts: Arc<Accounts>,
    /// Where agents ask for new mail.
    pub gate: Arc<gate::Gate>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}

/// One site: the services under one name.
pub(crate) struct App {
    pub(crate) services: Arc<Services>,
    pub(crate) site: Site,
    pub(crate) views: Semaphore,
    pub(crate) raw: Arc<Semaphore>,
}

/// Every route, under the name that the configuration gives.
pub fn router(services: Arc<Services>) -> Router {
    let site = Site::of(&services.config.web_url, None);
    router_at(services, site)
}

/// Every route, under `site`.
pub fn router_at(services: Arc<Services>, site: Site) -> Router {
    let app =
        Arc::new(App { services, site, views: Semaphore::new(MAX_VIEWS), raw: Arc::new(Semaphore::new(MAX_RAW)) });
    Router::new()
        .route("/healthz", get(views::health))
        .route("/metrics", get(metrics::metrics))
        .route("/style.css", get(views::style))
        .route(gate::PATH, get(gate::new_mail))
        .route("/sign-in", get(views::sign_in).post(acts::sign_in))
        .route("/sign-out", post(acts::sign_out))
        .route("/", get(views::held))
        .route("/history", get(views::history))
        .route("/held/{id}", get(views::message))
        .route("/held/{id}/raw", get(views::raw))
        .route("/held/{id}/receipt", get(views::receipt))
        .route("/held/{id}/approve", post(acts::approve))
        .route("/held/{id}/deny", post(acts::deny))
        .route("/keys/{id}/deny-and-revoke", post(acts::deny_and_revoke))
        .fallback(views::nowhere)
        .method_not_allowed_fallback(views::no_such_method)
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

#[cfg(test)]
mod tests;
