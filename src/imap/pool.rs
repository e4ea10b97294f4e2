//! Connections to the provider for everything but changes of INBOX: bodies
//! by EXAMINE and PEEK, and mailboxes that pass through.
//!
//! Promises: never more connections than the limit (the watching one
//! included), an idle client costs none; where no secret is stored, every
//! connection is opened with the login of a session that lives. Doesn't know:
//! what is asked over them.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use zeroize::Zeroizing;

use crate::account::{AccountId, Accounts, Logins};
use crate::config::{MIN_CONNECTIONS, Network};
use crate::upstream::imap::{Connection, ImapError, ImapTarget, Outcome};

use super::mirror::OpError;
use super::timing::Timing;

/// A connection that was used so recently is taken to be alive.
const SURELY_ALIVE: Duration = Duration::from_secs(2);
/// After the provider refused our login nobody tries again for so long: a
/// storm of logins is how accounts get locked.
const REFUSED_PAUSE: Duration = Duration::from_secs(20);

/// Why there is no connection where nobody brought a login.
const NOBODY: &str = "nobody is signed in, and no password is stored for the account";
/// How often a session that waits tries to sign in where the provider has too
/// many connections already.
const LIMIT_TRIES: u32 = 4;

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

/// Why a session's own login opens nothing.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The provider doesn't take it.
    #[error("{0}")]
    Refused(String),
    /// The provider can't say now, for a reason of RFC 5530 §3.
    #[error("{1}")]
    NotNow(&'static str, String),
    /// It could not be asked.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

/// The codes of RFC 5530 §3 that a sign-in passes on as the provider gave them.
const NOT_NOW: [&str; 5] = ["UNAVAILABLE", "LIMIT", "INUSE", "SERVERBUG", "CONTACTADMIN"];

impl From<OpenError> for ProveError {
    fn from(e: OpenError) -> ProveError {
        let text = e.to_string();
        match e {
            OpenError::Imap(ImapError::Auth { text }) => ProveError::Refused(text),
            OpenError::Imap(ImapError::No { code: Some(code), text }) => {
                let known = NOT_NOW.into_iter().find(|known| code.eq_ignore_ascii_case(known.as_bytes()));
                ProveError::NotNow(known.unwrap_or("UNAVAILABLE"), text)
            }
            OpenError::Imap(_) | OpenError::Late => PoolError::Unavailable(text).into(),
        }
    }
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
    /// Of an account without a stored secret.
    logins: Option<Arc<Logins>>,
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
        let logins = accounts.logins(&account).cloned();
        Pool {
            account,
            network,
            accounts,
            logins,
            permits,
            shelf: Arc::default(),
            timing,
            waiting: AtomicUsize::new(0),
            refused: Mutex::default(),
        }
    }

    /// Host and login of the provider's IMAP server, as a deletion names them.
    /// The embedded provider has another port at every start; its host stays.
    pub fn names(&self) -> (String, String) {
        (self.network.imap.host.clone(), self.network.imap_user.clone())
    }

    /// How long things may take.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The sessions with their own login, where no secret is stored.
    pub fn logins(&self) -> Option<&Arc<Logins>> {
        self.logins.as_ref()
    }

    /// Tries a session's own login at the provider; where it is accepted, the
    /// connection. It takes its place among the others'.
    pub async fn prove(&self, password: &Zeroizing<String>) -> Result<Lease, ProveError> {
        let age = self.shelf.age.load(Ordering::SeqCst);
        let permit = self.place().await?;
        let connection = self.open_with(password.clone()).await?;
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(self.lend(connection, Selected::Nothing, permit, age))
    }

    /// After one password was proven: sessions with another one prove theirs
    /// again. Otherwise a password that was changed would live on with the
    /// connections of the new one.
    pub async fn prove_others(&self, password: &str) {
        let Some(logins) = &self.logins else { return };
        for other in logins.others(password) {
            match self.prove(&other).await {
                Ok(lease) => lease.give_back(),
                Err(ProveError::Refused(_)) => logins.refused(&other),
                Err(ProveError::NotNow(..) | ProveError::Pool(_)) => {}
            }
        }
    }

    /// Opens the watching connection, outside the pool. Sessions whose own
    /// login the provider refuses here end.
    pub async fn open_to_watch(&self) -> Result<Connection, PoolError> {
        let Some(logins) = &self.logins else { return self.open().await };
        loop {
            let password = logins.newest().ok_or_else(|| PoolError::Unavailable(NOBODY.into()))?;
            match self.open_with(password.clone()).await {
                Ok(connection) => return Ok(connection),
                Err(OpenError::Imap(ImapError::Auth { .. })) => logins.refused(&password),
                Err(e) => return Err(PoolError::Unavailable(e.to_string())),
            }
        }
    }

    /// Opens a connection.
    async fn open(&self) -> Result<Connection, PoolError> {
        if let Some((when, why)) = &*self.refused.lock().unwrap_or_else(PoisonError::into_inner)
            && when.elapsed() < REFUSED_PAUSE.min(self.timing.retry_most)
        {
            return Err(PoolError::Unavailable(why.clone()));
        }
        let password = match &self.logins {
            Some(logins) => logins.newest().ok_or_else(|| PoolError::Unavailable(NOBODY.into())),
            None => {
                let stored = self.accounts.password(&self.account).await;
                stored.map(Zeroizing::new).map_err(|e| PoolError::Unavailable(e.to_string()))
            }
        };
        let (connection, refused) = match self.open_with(password?).await {
            Ok(connection) => (Ok(connection), None),
            Err(e) => {
                let why = e.to_string();
                let refused = matches!(e, OpenError::Imap(ImapError::Auth { .. }));
                let limit = matches!(&e, OpenError::Imap(e) if e.is_limit());
                let failed = if limit { PoolError::Limit } else { PoolError::Unavailable(why.clone()) };
                (Err(failed), refused.then(|| (Instant::now(), why)))
            }
        };
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
        connection
    }

    async fn open_with(&self, password: Zeroizing<String>) -> Result<Connection, OpenError> {
        let target = ImapTarget { endpoint: self.network.imap.clone(), user: self.network.imap_user.clone(), password };
        let opened = tokio::time::timeout(self.timing.open, Connection::open(&target)).await;
        let mut connection = opened.map_err(|_| OpenError::Late)??;
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
            let connection = match self.open().await {
                Ok(connection) => connection,
                Err(PoolError::Limit) => {
                    // Other programs hold what the provider allows: the place
                    // is for whoever waits, a connection may be returned, and
                    // the provider is asked again a few times.
                    drop(permit);
                    turn.set(self.permits.clone().acquire_owned());
                    let _waiting = Waiting::new(&self.waiting);
                    tokio::select! {
                        () = &mut returned => {}
                        () = tokio::time::sleep(self.timing.queue / LIMIT_TRIES) => {}
                        () = &mut end => return Err(PoolError::Limit),
                    }
                    continue;
                }
                Err(e) => return Err(e),
            };
            return Ok(self.lend(connection, Selected::Nothing, permit, age));
        }
    }

    /// A place for a connection that is not read from the shelf: an idle one
    /// gives way.
    async fn place(&self) -> Result<OwnedSemaphorePermit, PoolError> {
        let _waiting = Waiting::new(&self.waiting);
        let mut turn = pin!(self.permits.clone().acquire_owned());
        let mut end = pin!(tokio::time::sleep(self.timing.queue));
        loop {
            let mut returned = pin!(self.shelf.returned.notified());
            // From here on a return isn't missed.
            returned.as_mut().enable();
            tokio::select! {
                biased;
                // The semaphore is never closed.
                permit = &mut turn => return permit.map_err(|_| PoolError::Limit),
                () = std::future::ready(()), if self.has_idle(true) || self.has_idle(false) => {
                    if let Some(idle) = self.take_idle(false).or_else(|| self.take_idle(true)) {
                        return Ok(idle.permit);
                    }
                }
                () = &mut returned => {}
                () = &mut end => return Err(PoolError::Limit),
            }
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

    /// Nobody is signed in any more: idle connections are closed, and those on
    /// loan will not come back.
    pub fn deserted(&self) {
        self.slept();
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
    Imap(#[from] ImapError),
    #[error("the provider did not answer in time")]
    Late,
}

/// What a failed command over a lease means to the client.
pub fn refused(e: &ImapError) -> OpError {
    match e {
        ImapError::No { .. } | ImapError::Bad { .. } => OpError::Refused(e.to_string()),
        other => OpError::Unavailable(other.to_string()),
    }
}
