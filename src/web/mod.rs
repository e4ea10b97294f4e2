//! The approval page and what stands around it.
//!
//! Promises (invariants 2 and 9):
//! - What is read is what is sent: the page is made from the very octets, and
//!   they are hashed while it is made; what doesn't match is not offered.
//! - A cookie alone approves nothing: each approving or denying POST carries
//!   the PIN or a passkey's answer to this very page, the form's own token, the
//!   displayed hash and the page's nonce. (Where `[approval] require = "link"`
//!   is chosen, the notice's link stands for all but hash and nonce.)
//! - No GET or HEAD changes a hold. Viewing a held message leaves a nonce,
//!   without which it can't be approved.
//! - A request is answered only for our Host and, where it acts, our Origin,
//!   both to the byte. Nothing is loaded from anywhere; the one script is ours
//!   and may run only on pages that ask for a passkey.
//! - No key, header or query opens a page; only a sign-in with the PIN or a
//!   passkey does, and it shows one account, to the user of this machine who
//!   signed in (where the kernel says who that is).
//!
//! Doesn't know: SMTP, IMAP, or how a message is sent.

mod acts;
mod approvers;
mod batch;
mod decision;
pub(crate) mod facts;
mod forms;
pub mod gate;
mod guard;
mod held;
pub mod link;
mod linked;
pub mod metrics;
mod page;
pub mod passkey;
mod peer;
pub mod pin;
mod proof;
mod raw;
mod refusal;
pub mod sanitise;
mod serve;
mod session;
mod site;
mod ticket;
mod views;

use std::sync::{Arc, OnceLock};

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
/// Where the script is, for pages that ask for a passkey.
pub(crate) const SCRIPT_PATH: &str = "/passkey.js";
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
    /// Numbers of models, where some are configured.
    pub models: Arc<OnceLock<metrics::FiguresFn>>,
    /// Challenges that pages gave out.
    tickets: Arc<ticket::Tickets>,
}

impl Services {
    /// What the pages work with.
    pub fn new(config: Arc<Config>, store: Arc<dyn Store>, outbox: Arc<Outbox>, accounts: Arc<Accounts>) -> Services {
        Services {
            config,
            store,
            outbox,
            accounts,
            gate: Arc::default(),
            models: Arc::default(),
            tickets: Arc::default(),
        }
    }
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
        .route(SCRIPT_PATH, get(views::script))
        .route(gate::PATH, get(gate::new_mail))
        .route("/sign-in", get(views::sign_in).post(acts::sign_in))
        .route("/sign-in/passkey", post(acts::sign_in_by_passkey))
        .route("/enrol", get(approvers::enrol_page).post(approvers::enrol))
        .route("/approvers", get(approvers::page))
        .route("/approvers/add", post(approvers::add))
        .route("/approvers/remove", post(approvers::remove))
        .route("/batch", get(batch::page).post(batch::approve))
        .route("/sign-out", post(acts::sign_out))
        .route("/", get(views::held))
        .route("/history", get(views::history))
        .route("/decision/{id}", get(decision::page))
        .route("/held/{id}", get(views::message))
        .route("/held/{id}/raw", get(views::raw))
        .route("/held/{id}/receipt", get(views::receipt))
        .route("/held/{id}/approve", post(acts::approve))
        .route("/held/{id}/deny", post(acts::deny))
        .route("/keys/{id}/deny-and-revoke", post(acts::deny_and_revoke))
        .route("/link/{id}/{token}", get(linked::message))
        .route("/link/{id}/{token}/raw", get(linked::raw))
        .route("/link/{id}/{token}/approve", post(linked::approve))
        .route("/link/{id}/{token}/deny", post(linked::deny))
        .fallback(views::nowhere)
        .method_not_allowed_fallback(views::no_such_method)
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

#[cfg(test)]
mod tests;
