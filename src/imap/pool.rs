//! Connections to the provider for everything but changes of INBOX: bodies
//! by EXAMINE and PEEK, and mailboxes that pass through.
//!
//! Promises: never more connections than the limit (the watching one
//! included), an idle client costs none. Doesn't know: what is asked over
//! them.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::account::{AccountId, Accounts};
use crate::config::Network;
use crate::upstream::imap::{Connection, ImapError, ImapTarget};

use super::mirror::OpError;

/// Connections of one account beside the watching one. Gmail takes 15 in all
/// from every program of the person.
pub const CONNECTIONS: usize = 8;
/// How long a session waits for a connection before NO [LIMIT].
pub const WAIT: Duration = Duration::from_secs(10);
/// An unused connection is closed after this.
pub const UNUSED: Duration = Duration::from_secs(60);

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// All are in use for longer than [`WAIT`].
    #[error("too many connections to the provider are in use")]
    Limit,
    /// The provider can't be reached or refuses our login.
    #[error("{0}")]
    Unavailable(String),
}

impl From<PoolError> for OpError {
    fn from(e: PoolError) -> OpError {
        OpError::Unavailable(e.to_string())
    }
}

/// What an idle connection has selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selected {
    Nothing,
    /// INBOX by EXAMINE, with this UIDVALIDITY, knowing UIDs below this.
    Inbox(u32, u32),
}

struct Idle {
    connection: Connection,
    selected: Selected,
    since: Instant,
    permit: OwnedSemaphorePermit,
}

/// The connections of one account.
pub struct Pool {
    account: AccountId,
    network: Network,
    accounts: Arc<Accounts>,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<VecDeque<Idle>>>,
}

/// A connection on loan. Dropping it closes it; [`Lease::give_back`] keeps it.
pub struct Lease {
    connection: Connection,
    selected: Selected,
    permit: OwnedSemaphorePermit,
    idle: Arc<Mutex<VecDeque<Idle>>>,
}

impl Deref for Lease {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Lease {
    /// Returns a connection that is between commands, with INBOX examined or
    /// nothing selected, for the next user.
    pub fn give_back(self) {
        let Lease { connection, selected, permit, idle } = self;
        let mut list = idle.lock().unwrap_or_else(PoisonError::into_inner);
        list.push_back(Idle { connection, selected, since: Instant::now(), permit });
    }

    /// Notes that nothing (of use to others) is selected any more.
    pub fn forget_selection(&mut self) {
        self.selected = Selected::Nothing;
    }

    /// UIDVALIDITY of INBOX as this connection examined it.
    pub fn inbox_validity(&self) -> Option<u32> {
        match self.selected {
            Selected::Inbox(v, _) => Some(v),
            Selected::Nothing => None,
        }
    }

    /// Whether a message is newer than what this connection was told of.
    pub fn must_look_for(&self, uid: u32) -> bool {
        matches!(self.selected, Selected::Inbox(_, next) if uid >= next)
    }

    /// Notes that the connection was told of messages up to this one.
    pub fn knows(&mut self, uid: u32) {
        if let Selected::Inbox(_, next) = &mut self.selected {
            *next = (*next).max(uid.saturating_add(1));
        }
    }
}

impl Pool {
    /// A pool without connections.
    pub fn new(account: AccountId, network: Network, accounts: Arc<Accounts>) -> Pool {
        Pool { account, network, accounts, permits: Arc::new(Semaphore::new(CONNECTIONS)), idle: Arc::default() }
    }

    /// Opens a connection outside the pool (for the watcher).
    pub async fn open(&self) -> Result<Connection, PoolError> {
        let password =
            self.accounts.password(&self.account).await.map_err(|e| PoolError::Unavailable(e.to_string()))?;
        let target = ImapTarget {
            endpoint: self.network.imap.clone(),
            user: self.network.imap_user.clone(),
            password: password.into(),
        };
        Connection::open(&target).await.map_err(|e| PoolError::Unavailable(e.to_string()))
    }

    /// A connection in the authenticated state.
    pub async fn any(&self) -> Result<Lease, PoolError> {
        self.lease(false).await
    }

    /// A connection with INBOX examined.
    pub async fn inbox(&self) -> Result<Lease, PoolError> {
        let mut lease = self.lease(true).await?;
        if lease.selected == Selected::Nothing {
            let selected =
                lease.connection.select(b"INBOX", true).await.map_err(|e| PoolError::Unavailable(e.to_string()))?;
            lease.selected = Selected::Inbox(selected.uidvalidity, selected.uidnext);
        }
        Ok(lease)
    }

    async fn lease(&self, inbox: bool) -> Result<Lease, PoolError> {
        while let Some(found) = self.take_idle(inbox) {
            let Idle { mut connection, selected, since, permit } = found;
            // A connection that was idle for a while may be dead without our
            // knowing; one round trip tells.
            let alive =
                since.elapsed() < Duration::from_secs(2) || connection.run(b"NOOP").await.is_ok_and(|o| o.ok().is_ok());
            if alive {
                return Ok(Lease { connection, selected, permit, idle: self.idle.clone() });
            }
        }
        let permit = match self.permits.clone().try_acquire_owned() {
            Ok(p) => p,
            Err(_) => {
                // Idle connections hold permits too: give one up for a new use.
                drop(self.take_idle(!inbox));
                tokio::time::timeout(WAIT, self.permits.clone().acquire_owned())
                    .await
                    .map_err(|_| PoolError::Limit)?
                    .map_err(|_| PoolError::Limit)?
            }
        };
        let connection = self.open().await?;
        Ok(Lease { connection, selected: Selected::Nothing, permit, idle: self.idle.clone() })
    }

    fn take_idle(&self, inbox: bool) -> Option<Idle> {
        let mut list = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |i: &Idle| (i.selected != Selected::Nothing) == inbox;
        let at = list.iter().rposition(fits)?;
        list.remove(at)
    }

    /// Closes connections that nobody used for [`UNUSED`]; `all` closes
    /// every idle one.
    pub fn sweep(&self, all: bool) {
        let mut list = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|i| !all && i.since.elapsed() < UNUSED);
    }
}

/// What a failed command over a lease means to the client.
pub fn refused(e: &ImapError) -> OpError {
    match e {
        ImapError::No { .. } | ImapError::Bad { .. } => OpError::Refused(e.to_string()),
        other => OpError::Unavailable(other.to_string()),
    }
}
