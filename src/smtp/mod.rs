//! The SMTP face: submission (RFC 6409) for people and for agents.
//!
//! Promises: a person's mail is relayed inside its own transaction, octet
//! for octet, and the provider's replies are the client's; an agent's mail
//! is held, durable before its 250, and nothing of it reaches the provider
//! from here; what could be read as two messages is refused. Doesn't know:
//! approval, dispatch; IMAP.

mod conn;
mod data;
mod marks;
pub mod offer;
pub mod session;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use crate::account::{AccountId, Accounts};
use crate::config::Config;
use crate::outbox::Outbox;
use crate::store::Store;
use offer::Offers;

pub use session::serve;

/// How long a client may be silent between commands and inside data
/// (RFC 5321 §4.5.3.2.7).
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// How long a client that has not signed in may be silent.
pub const STRANGER_TIMEOUT: Duration = Duration::from_secs(60);
/// Commands of a client that has not signed in.
pub const MAX_STRANGER_COMMANDS: u32 = 50;
/// Commands that were answered with 5yz, until the session ends.
pub const MAX_ERRORS: u32 = 20;
/// Failed sign-ins, until the session ends.
pub const MAX_AUTH_FAILURES: u32 = 3;
/// What a failed sign-in waits.
pub const AUTH_FAILURE_DELAY: Duration = Duration::from_secs(1);
/// How long a sign-in waits while another of the same account is tried at
/// the provider.
pub const AUTH_TURN: Duration = Duration::from_secs(10);
/// Longest header of a person's message that is looked at for marks.
pub const MAX_MARKS_HEADER: usize = 256 * 1024;
/// How far beyond the size limit data is read and thrown away, so that the
/// client gets its reply; then the connection is closed.
pub const MAX_DRAIN: u64 = 64 * 1024 * 1024;

/// Told of every message that a person sent: account and recipients.
pub type PersonSent = Arc<dyn Fn(&AccountId, &[String]) + Send + Sync>;

/// What sessions work with.
pub struct Services {
    /// The configuration.
    pub config: Arc<Config>,
    /// Who may sign in.
    pub accounts: Arc<Accounts>,
    /// Where mail is held, and the way to the provider.
    pub outbox: Arc<Outbox>,
    /// Where octets are spooled.
    pub store: Arc<dyn Store>,
    /// What the providers take.
    pub offers: Offers,
    /// Told of every message that a person sent.
    pub on_person_sent: PersonSent,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").field("accounts", &self.accounts).finish_non_exhaustive()
    }
}

impl Services {
    /// With nothing known of the providers yet.
    pub fn new(
        config: Arc<Config>,
        accounts: Arc<Accounts>,
        outbox: Arc<Outbox>,
        store: Arc<dyn Store>,
        on_person_sent: PersonSent,
    ) -> Services {
        Services { config, accounts, outbox, store, offers: Offers::default(), on_person_sent }
    }
}

#[cfg(test)]
mod provenance_tests;
#[cfg(test)]
mod tests;
