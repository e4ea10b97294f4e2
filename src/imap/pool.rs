//! Connections to the provider for everything but changes of INBOX: bodies
//! by EXAMINE and PEEK, and mailboxes that pass through.
//!
//! Promises: never more connections than the limit (the watching one
//! included), an idle client costs none. Doesn't know: what is asked over
//! them.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::account::{AccountId, Accounts};
use crate::config::{MIN_CONNECTIONS, Network};
use crate::upstream::imap::{Connection, ImapError, ImapTarget, Outcome};

use super::mirror::OpError;
use super::timing::Timing;

/// A connection that was used so recently is taken to be alive.
const SURELY_ALIVE: Duration = Duration::from_secs(2);
/// After the provider refused our login nobody tries again for so long: a
/// storm of logins is how accounts get locked.
const REFUSED_PAUSE: Duration = Duration::from_secs(20);

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// All were in use for as long as a session waits ([`Timing::queue`]).
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

/// A connection between two uses.
struct Idle {
    connection: Connection,
    selected: Selected,
    since: Instant,
    permit: OwnedSemaphorePermit,
}

/// Connections that nobody uses, and the news that one was returned.
#[derive(Default)]
struct Shelf {
    list: Mutex<VecDeque<Idle>>,
    returned: Notify,
    /// Rises when this machine slept: connections from before may be dead.
    age: AtomicU64,
}

impl Shelf {
    fn list(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connections of one account.
pub struct Pool {
    account: AccountId,
    network: Network,
    accounts: Arc<Accounts>,
    permits: Arc<Semaphore>,
    shelf: Arc<Shelf>,
    timing: Timing,
    /// How many sessions wait for a connection.
    waiting: AtomicUsize,
    /// When and how the provider last refused our login.
    refused: Mutex<Option<(Instant, String)>>,
}

/// A connection on loan. Dropping it closes it; [`Lease::give_back`] keeps it.
pub struct Lease {
    connection: Connection,
    selected: Selected,
    permit: OwnedSemaphorePermit,
    shelf: Arc<Shelf>,
    age: u64,
    alive: Duration,
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
        let Lease { connection, selected, permit, shelf, age, .. } = self;
        if shelf.age.load(Ordering::SeqCst) == age {
            shelf.list().push_back(Idle { connection, selected, since: Instant::now(), permit });
        }
        shelf.returned.notify_one();
    }

    /// Whether this machine slept since the connection was last used.
    pub fn slept_over(&self) -> bool {
        self.shelf.age.load(Ordering::SeqCst) != self.age
    }

    /// Asks a connection that this machine slept over whether it still lives;
    /// its answer, where it was asked.
    pub async fn after_sleep(&mut self) -> Result<Option<Outcome>, ImapError> {
        let now = self.shelf.age.load(Ordering::SeqCst);
        if now == self.age {
            return Ok(None);
        }
        let outcome = self.briefly(b"NOOP").await?;
        self.age = now;
        Ok(Some(outcome))
    }

    /// Runs a command that costs the provider nothing.
    pub async fn briefly(&mut self, command: &[u8]) -> Result<Outcome, ImapError> {
        let alive = self.alive;
        tokio::time::timeout(alive, self.connection.run(command)).await.map_err(|_| ImapError::Timeout)?
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
    /// A pool without connections; at most `limit` at a time, the watching
    /// one included.
    pub fn new(account: AccountId, network: Network, accounts: Arc<Accounts>, limit: usize, timing: Timing) -> Pool {
        let permits = Arc::new(Semaphore::new(limit.max(MIN_CONNECTIONS) - 1));
        Pool {
            account,
            network,
            accounts,
            permits,
            shelf: Arc::default(),
            timing,
            waiting: AtomicUsize::new(0),
            refused: Mutex::default(),
        }
    }

    /// How long things may take.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Opens a connection outside the pool (for the watcher).
    pub async fn open(&self) -> Result<Connection, PoolError> {
        if let Some((when, why)) = &*self.refused.lock().unwrap_or_else(PoisonError::into_inner)
            && when.elapsed() < REFUSED_PAUSE.min(self.timing.retry_most)
        {
            return Err(PoolError::Unavailable(why.clone()));
        }
        let late = || PoolError::Unavailable("the provider did not answer in time".into());
        let opened = tokio::time::timeout(self.timing.open, self.log_in()).await.map_err(|_| late())?;
        let (connection, refused) = match opened {
            Ok(connection) => (Ok(connection), None),
            Err(e) => {
                let why = e.to_string();
                let refused = matches!(e, OpenError::Imap(ImapError::Auth { .. }));
                (Err(PoolError::Unavailable(why.clone())), refused.then(|| (Instant::now(), why)))
            }
        };
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
        connection
    }

    async fn log_in(&self) -> Result<Connection, OpenError> {
        let password = self.accounts.password(&self.account).await?;
        let target = ImapTarget {
            endpoint: self.network.imap.clone(),
            user: self.network.imap_user.clone(),
            password: password.into(),
        };
        let mut connection = Connection::open(&target).await?;
        connection.set_deadline(self.timing.answer);
        Ok(connection)
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

    /// Whether a session waits for a connection.
    pub fn is_contested(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Waits for a place, in turn, for as long as [`Timing::queue`] says.
    async fn lease(&self, inbox: bool) -> Result<Lease, PoolError> {
        let age = self.shelf.age.load(Ordering::SeqCst);
        let mut turn = pin!(self.permits.clone().acquire_owned());
        let mut end = pin!(tokio::time::sleep(self.timing.queue));
        loop {
            let mut returned = pin!(self.shelf.returned.notified());
            // From here on a return isn't missed.
            returned.as_mut().enable();
            while let Some(found) = self.take_idle(inbox) {
                if let Some(lease) = self.living(found, age).await {
                    return Ok(lease);
                }
            }
            let waiting = Waiting::new(&self.waiting);
            let permit = tokio::select! {
                biased;
                // The semaphore is never closed.
                permit = &mut turn => permit.map_err(|_| PoolError::Limit)?,
                permit = async { self.take_idle(!inbox).map(|idle| idle.permit) }, if self.has_idle(!inbox) => {
                    // Idle connections hold places too: one gives way.
                    let Some(permit) = permit else { continue };
                    permit
                }
                () = &mut returned => continue,
                () = &mut end => return Err(PoolError::Limit),
            };
            drop(waiting);
            let connection = self.open().await?;
            return Ok(self.lend(connection, Selected::Nothing, permit, age));
        }
    }

    fn lend(&self, connection: Connection, selected: Selected, permit: OwnedSemaphorePermit, age: u64) -> Lease {
        Lease { connection, selected, permit, shelf: self.shelf.clone(), age, alive: self.timing.alive }
    }

    /// A connection that was idle for a while may be dead without our
    /// knowing; one round trip tells. Where one is dead the others are too.
    async fn living(&self, idle: Idle, age: u64) -> Option<Lease> {
        let mut lease = self.lend(idle.connection, idle.selected, idle.permit, age);
        if idle.since.elapsed() < SURELY_ALIVE || lease.briefly(b"NOOP").await.is_ok_and(|o| o.ok().is_ok()) {
            return Some(lease);
        }
        self.sweep(true);
        None
    }

    fn has_idle(&self, inbox: bool) -> bool {
        self.shelf.list().iter().any(|i| i.examines() == inbox)
    }

    fn take_idle(&self, inbox: bool) -> Option<Idle> {
        let mut list = self.shelf.list();
        let at = list.iter().rposition(|i| i.examines() == inbox)?;
        list.remove(at)
    }

    /// Closes connections that nobody used for [`Timing::unused`]; `all`
    /// closes every idle one.
    pub fn sweep(&self, all: bool) {
        self.shelf.list().retain(|i| !all && i.since.elapsed() < self.timing.unused);
    }

    /// This machine slept: no connection from before is trusted.
    pub fn slept(&self) {
        self.shelf.age.fetch_add(1, Ordering::SeqCst);
        self.sweep(true);
    }
}

/// A session that waits for a connection, counted while it does.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn new(count: &AtomicUsize) -> Waiting<'_> {
        count.fetch_add(1, Ordering::SeqCst);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Idle {
    fn examines(&self) -> bool {
        self.selected != Selected::Nothing
    }
}

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Secret(#[from] crate::account::SecretError),
    #[error(transparent)]
    Imap(#[from] ImapError),
}

/// What a failed command over a lease means to the client.
pub fn refused(e: &ImapError) -> OpError {
    match e {
        ImapError::No { .. } | ImapError::Bad { .. } => OpError::Refused(e.to_string()),
        other => OpError::Unavailable(other.to_string()),
    }
}
