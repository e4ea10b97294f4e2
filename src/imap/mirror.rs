//! The mirror of the provider's INBOX and the views over it, in memory.
//!
//! Promises: state changes only after the transaction that holds the change
//! is durable; one task (`watch`) makes every change, sessions ask it through
//! [`Op`]. Doesn't know: how the provider is spoken to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};

use crate::account::AccountId;
use crate::config::{AccountConfig, AgentLimits, Config, Provider};
use crate::lane::{LANES, Lane, Thresholds};
use crate::outbox::Outbox;
use crate::perceive::{AccountFacts, CorrespondentRecord, KnownNames};
use crate::store::{Store, StoreError, Table, from_json, read};

use super::lanes::{LaneMap, Place};
use super::measured::Mark;
use super::pending::{Models, Pending};
use super::pool::Pool;
use super::rows::{self, LocalRow, MessageRow, MirrorRow, ViewId};
use super::uid::{UpstreamUid, ViewUid};
use super::view::{Audience, Entry, Source, View};

/// Requests that may wait for the watching connection.
pub const OPS_QUEUE: usize = 64;
/// A view is synced before SELECT, STATUS, NOOP and CHECK when the last sync
/// is older than this.
pub const FRESH: Duration = Duration::from_secs(5);
/// How long SELECT, STATUS, NOOP and CHECK wait for mail that is being perceived.
pub const PERCEIVING_WAIT: Duration = Duration::from_secs(2);

/// Flags of a message, sorted, shared between equal messages.
pub type Flags = Arc<Vec<Box<str>>>;

/// A message of the provider's INBOX as the mirror knows it.
#[derive(Debug, Clone)]
pub struct Message {
    /// What is stored of it.
    pub row: Arc<MessageRow>,
    /// Its flags at the provider, `\Recent` left out.
    pub flags: Flags,
    /// The state's clock when the flags last changed.
    pub flags_at: u64,
}

/// A message that exists only here.
#[derive(Debug, Clone)]
pub struct Local {
    /// What is stored of it.
    pub row: Arc<LocalRow>,
    /// The state's clock when the flags last changed.
    pub flags_at: u64,
}

/// What is known of one account's INBOX.
#[derive(Debug)]
pub struct State {
    /// Names of our mailboxes; known after the first connection.
    pub lanes: Option<LaneMap>,
    /// The provider's UIDVALIDITY, once synced.
    pub uidvalidity: Option<u32>,
    /// Messages of INBOX.
    pub messages: BTreeMap<UpstreamUid, Message>,
    /// Local messages by number.
    pub locals: BTreeMap<u32, Local>,
    /// The views.
    pub views: HashMap<ViewId, View>,
    /// Rises with every change of a flag.
    pub clock: u64,
    /// When the provider was last known to agree.
    pub synced: Option<Instant>,
    /// Where messages go that a client put into INBOX or a lane by itself.
    pub placements: HashMap<UpstreamUid, Place>,
    /// Messages that one connection no longer saw; a loss is believed when a
    /// second one doesn't see them either.
    pub doubted: BTreeSet<UpstreamUid>,
    /// What works with this provider; known after the first connection.
    pub offers: Offers,
    /// Flags that can be changed for good in the provider's INBOX, `\*` among
    /// them where any keyword can; known after the first connection.
    pub permanent: Vec<String>,
    interned: HashMap<Vec<Box<str>>, Flags>,
}

/// Extensions that depend on the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// MOVE, done by the provider or by COPY, STORE and UID EXPUNGE.
    pub moves: bool,
    /// UIDPLUS.
    pub uidplus: bool,
}

impl State {
    /// A shared copy of sorted, deduplicated flags without `\Recent`.
    pub fn intern(&mut self, flags: impl IntoIterator<Item = String>) -> Flags {
        let mut list: Vec<Box<str>> =
            flags.into_iter().filter(|f| !f.eq_ignore_ascii_case("\\Recent")).map(String::into_boxed_str).collect();
        list.sort_unstable();
        list.dedup();
        if let Some(shared) = self.interned.get(&list) {
            return shared.clone();
        }
        let shared = Arc::new(list.clone());
        self.interned.insert(list, shared.clone());
        shared
    }

    /// A view that exists for every place of the map; `None` before the
    /// first connection.
    pub fn view(&self, id: ViewId) -> Option<&View> {
        self.views.get(&id)
    }

    /// The flags that a view shows for an entry, lane keyword included.
    pub fn shown_flags(&self, id: ViewId, entry: &Entry) -> Vec<String> {
        let mut out: Vec<String> = match entry.source {
            Source::Upstream(uid) => {
                let Some(m) = self.messages.get(&uid) else { return Vec::new() };
                let mut flags: Vec<String> = m.flags.iter().map(|f| f.to_string()).collect();
                let shared = self.lanes.as_ref().is_some_and(|l| l.shared(id.1)) || id.1 == Place::All;
                if shared && let Some(k) = m.row.lane.and_then(Lane::keyword) {
                    flags.push(k.to_owned());
                }
                flags
            }
            Source::Local(n) => self.locals.get(&n).map(|l| l.row.flags.clone()).unwrap_or_default(),
        };
        if entry.superseded {
            out.retain(|f| !f.eq_ignore_ascii_case("\\Deleted"));
            if entry.deleted {
                out.push("\\Deleted".to_owned());
            }
        }
        out
    }

    /// When the flags of a source last changed.
    pub fn flags_at(&self, source: Source) -> u64 {
        match source {
            Source::Upstream(uid) => self.messages.get(&uid).map_or(0, |m| m.flags_at),
            Source::Local(n) => self.locals.get(&n).map_or(0, |l| l.flags_at),
        }
    }

    /// The stamp that a view shows an entry with.
    pub fn stamp<'a>(&'a self, entry: &'a Entry) -> Option<&'a str> {
        match (&entry.stamp, entry.source) {
            (Some(stamp), _) => Some(stamp),
            (None, Source::Upstream(uid)) => self.messages.get(&uid)?.row.stamp.as_deref(),
            (None, Source::Local(_)) => None,
        }
    }

    /// Every keyword in use, those of the lanes included.
    pub fn keywords(&self) -> BTreeSet<String> {
        let used = self.interned.keys().flatten().filter(|f| !f.starts_with('\\')).map(|f| f.to_string());
        let permanent = self.permanent.iter().filter(|f| !f.starts_with('\\')).cloned();
        used.chain(permanent).chain(LANES.iter().filter_map(|l| l.keyword()).map(str::to_owned)).collect()
    }

    /// Whether the provider keeps this keyword: RFC 9051 §7.1, PERMANENTFLAGS.
    pub fn keeps(&self, keyword: &str) -> bool {
        self.permanent.iter().any(|f| f == "\\*" || f.eq_ignore_ascii_case(keyword))
    }

    /// Rises when a message has flags that no message had before.
    pub fn flag_sets(&self) -> usize {
        self.interned.len()
    }

    /// The size that a view shows: stamp and provider's octets together.
    pub fn shown_size(&self, entry: &Entry) -> Option<u64> {
        match entry.source {
            Source::Upstream(uid) => {
                let m = self.messages.get(&uid)?;
                Some(m.row.size + self.stamp(entry).map_or(0, |s| s.len() as u64))
            }
            Source::Local(n) => self.locals.get(&n).map(|l| l.row.size()),
        }
    }

    /// INTERNALDATE of a source.
    pub fn date(&self, source: Source) -> Option<String> {
        match source {
            Source::Upstream(uid) => self.messages.get(&uid).map(|m| m.row.date.clone()),
            Source::Local(n) => self.locals.get(&n).map(|l| l.row.date.clone()),
        }
    }
}

/// Whether the mirror can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Not yet connected, or connecting anew after a loss.
    Starting,
    /// Connected and synced.
    Live,
    /// The provider can't be reached or refuses us.
    Down(String),
    /// The account can't run until a person changes something (a collision
    /// of names, say).
    Refused(String),
}

/// Why a request to the watching connection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// The provider can't be reached.
    #[error("the provider can't be reached: {0}")]
    Unavailable(String),
    /// The provider said NO or BAD.
    #[error("the provider refused: {0}")]
    Refused(String),
    /// What was named is gone.
    #[error("some of the messages no longer exist")]
    Gone,
    /// It can't be done by design.
    #[error("{0}")]
    Cannot(String),
    /// The store failed.
    #[error("the gateway's store failed: {0}")]
    Store(String),
}

impl From<StoreError> for OpError {
    fn from(e: StoreError) -> OpError {
        OpError::Store(e.to_string())
    }
}

/// How STORE changes flags (RFC 9051 §6.4.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagChange {
    /// `FLAGS`.
    Set,
    /// `+FLAGS`.
    Add,
    /// `-FLAGS`.
    Remove,
}

/// The result of copying to a passed-through mailbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// UIDVALIDITY of the destination, where the provider has UIDPLUS.
    pub uidvalidity: Option<u32>,
    /// Pairs of source UID upstream and UID in the destination.
    pub pairs: Vec<(UpstreamUid, u32)>,
}

/// What sessions ask of the watching connection.
#[derive(Debug)]
pub enum Op {
    /// Agree with the provider now.
    Sync(oneshot::Sender<Result<(), OpError>>),
    /// Change flags in INBOX.
    Store(Vec<UpstreamUid>, FlagChange, Vec<String>, oneshot::Sender<Result<(), OpError>>),
    /// Change flags of local messages.
    StoreLocal(Vec<u32>, FlagChange, Vec<String>, oneshot::Sender<Result<(), OpError>>),
    /// Flag superseded entries as deleted or not.
    MarkEntries(ViewId, Vec<ViewUid>, bool, oneshot::Sender<Result<(), OpError>>),
    /// Take entries out of one view; the messages stay.
    DropEntries(ViewId, Vec<ViewUid>, oneshot::Sender<Result<(), OpError>>),
    /// COPY (false) or MOVE (true) to a passed-through mailbox.
    CopyOut(Vec<UpstreamUid>, Vec<u8>, bool, oneshot::Sender<Result<Copied, OpError>>),
    /// Expunge these (they are flagged `\Deleted`).
    Expunge(Vec<UpstreamUid>, oneshot::Sender<Result<(), OpError>>),
    /// A person moves (true) or copies messages of a view to a lane; answers
    /// pairs of old and new view UID.
    Relane(ViewId, Vec<ViewUid>, Place, bool, oneshot::Sender<Result<Vec<(ViewUid, ViewUid)>, OpError>>),
    /// A person says which lane messages of a view belong to.
    Correct(ViewId, Vec<ViewUid>, Lane, oneshot::Sender<Result<(), OpError>>),
    /// A person takes a correction back; it is named as `corrections` lists it.
    Undo(String, oneshot::Sender<Result<(), OpError>>),
    /// Show local messages; those of the same names go.
    PostLocals(Vec<LocalRow>, oneshot::Sender<Result<(), OpError>>),
    /// Take local messages away.
    RemoveLocals(Vec<u32>, oneshot::Sender<Result<(), OpError>>),
    /// Take the local message with this name away.
    RemoveLocalNamed(String, oneshot::Sender<Result<(), OpError>>),
    /// Bodies that came out in another length than was known.
    Measured(Vec<(UpstreamUid, u64)>, oneshot::Sender<Result<(), OpError>>),
    /// Perceive the newest `n` messages that have no stamp.
    Backfill(usize, bool, oneshot::Sender<Result<Vec<BackfillLine>, OpError>>),
}

/// What backfill did or would do with one message.
#[derive(Debug, Clone, serde::Serialize)]
pub struct BackfillLine {
    /// UID in the provider's INBOX.
    pub uid: u32,
    /// Lane decided.
    pub lane: Lane,
    /// The mailbox that shows it.
    pub mailbox: String,
    /// Subject, for people.
    pub subject: String,
}

/// The handle that sessions and the gateway hold.
pub struct Mirror {
    /// The account.
    pub account: AccountId,
    /// Its configuration.
    pub settings: AccountConfig,
    /// What the scorer knows of it.
    pub facts: AccountFacts,
    /// Thresholds of the rule.
    pub thresholds: Thresholds,
    /// Largest message taken by APPEND.
    pub max_message_bytes: u64,
    /// What one agent key may use up.
    pub agent_limits: AgentLimits,
    /// What agent keys used up of that.
    pub(super) rates: super::agent::limits::Rates,
    /// Connections that read bodies and serve passed-through mailboxes.
    pub pool: Pool,
    /// Held while a client's own message enters INBOX, so that the watcher
    /// doesn't take it for new mail.
    pub arrivals: tokio::sync::Mutex<()>,
    /// The names of everyone that the person wrote to.
    names: Mutex<KnownNames>,
    pub(super) store: Arc<dyn Store>,
    pub(super) state: Mutex<State>,
    pub(super) health: watch::Sender<Health>,
    pub(super) changed: watch::Sender<u64>,
    /// Whether new mail is being fetched and perceived.
    pub(super) perceiving: watch::Sender<bool>,
    /// What is stored of lengths that weren't true, once it was read.
    pub(super) marked: Mutex<Option<Mark>>,
    /// New mail that waits for models.
    pub(super) pending: Pending,
    /// Models that judge new mail, where some are configured.
    pub models: OnceLock<Arc<dyn Models>>,
    /// What is held for the account, in a gateway that has an outbox.
    pub outbox: OnceLock<Arc<Outbox>>,
    ops: mpsc::Sender<Op>,
}

impl Mirror {
    /// Loads what is stored of an account. The receiver belongs to
    /// [`super::watch::run`].
    pub fn load(
        config: &Config,
        account: AccountId,
        settings: AccountConfig,
        store: Arc<dyn Store>,
        pool: Pool,
    ) -> Result<(Arc<Mirror>, mpsc::Receiver<Op>), StoreError> {
        let state = load_state(&*store, &account)?;
        let names = load_names(&*store, &account)?;
        let (ops, receiver) = mpsc::channel(OPS_QUEUE);
        let facts = AccountFacts {
            addresses: std::iter::once(settings.address.clone()).chain(settings.aliases.iter().cloned()).collect(),
            timezone: settings.timezone.clone(),
            authserv: settings.authserv.clone(),
        };
        let mirror = Mirror {
            account,
            settings,
            facts,
            thresholds: config.thresholds.clone(),
            max_message_bytes: config.max_message_bytes,
            agent_limits: config.agent,
            rates: Default::default(),
            pool,
            arrivals: tokio::sync::Mutex::new(()),
            names: Mutex::new(names),
            store,
            state: Mutex::new(state),
            health: watch::Sender::new(Health::Starting),
            changed: watch::Sender::new(0),
            perceiving: watch::Sender::new(false),
            marked: Mutex::default(),
            pending: Pending::default(),
            models: OnceLock::new(),
            outbox: OnceLock::new(),
            ops,
        };
        Ok((Arc::new(mirror), receiver))
    }

    /// The state, locked for a short look or change.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of everyone that the person wrote to, locked for a short look.
    pub(super) fn names(&self) -> MutexGuard<'_, KnownNames> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what is known of correspondents, after it became durable.
    pub fn learn(&self, records: &[CorrespondentRecord]) {
        let mut names = self.names();
        records.iter().for_each(|record| names.learn(record));
    }

    /// Whether mail that was there before the first sync is perceived too.
    pub fn perceives_existing(&self) -> bool {
        matches!(self.settings.provider, Provider::Embedded)
    }

    /// The decision of the message that people see under a UID.
    pub fn decision_at(&self, mailbox: &[u8], uid: u32) -> Option<String> {
        let state = self.state();
        let place = state.lanes.as_ref()?.find(mailbox)?;
        match state.view((Audience::People, place))?.get(ViewUid::new(uid)?)?.source {
            Source::Upstream(up) => state.messages.get(&up)?.row.decision.clone(),
            Source::Local(_) => None,
        }
    }

    /// Changes whenever a view or a flag changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Durable state.
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// Whether the provider can be used.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// Sends a request to the watching connection and waits for its answer.
    pub async fn ask<T>(&self, make: impl FnOnce(oneshot::Sender<Result<T, OpError>>) -> Op) -> Result<T, OpError> {
        let (tx, rx) = oneshot::channel();
        let unavailable = |why: &str| OpError::Unavailable(why.to_owned());
        let asked = async {
            self.ops.send(make(tx)).await.map_err(|_| unavailable("the account is stopping"))?;
            rx.await.map_err(|_| unavailable("the connection was lost"))?
        };
        match tokio::time::timeout(self.pool.timing().answer, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(unavailable("no answer in time")),
        }
    }

    /// Syncs when the last sync is older than [`FRESH`].
    pub async fn freshen(&self) -> Result<(), OpError> {
        let fresh = self.state().synced.is_some_and(|t| t.elapsed() < FRESH);
        if !fresh {
            let late = || OpError::Unavailable("no sync in time".to_owned());
            return tokio::time::timeout(self.pool.timing().fresh, self.ask(Op::Sync)).await.map_err(|_| late())?;
        }
        let mut perceiving = self.perceiving.subscribe();
        // Mail that takes longer is shown with the next look.
        let _ = tokio::time::timeout(PERCEIVING_WAIT, perceiving.wait_for(|busy| !busy)).await;
        Ok(())
    }

    /// Agrees with the provider, then says what is mirrored of its INBOX:
    /// `{health, synced, uidvalidity, uids}`, the UIDs as a set (RFC 9051 §9).
    pub async fn shown(&self) -> serde_json::Value {
        let synced = self.ask(Op::Sync).await;
        let health = match &*self.health.borrow() {
            Health::Starting => "starting",
            Health::Live => "live",
            Health::Down(_) => "down",
            Health::Refused(_) => "refused",
        };
        let state = self.state();
        let uids: Vec<u32> = state.messages.keys().map(|uid| uid.get()).collect();
        serde_json::json!({
            "health": health,
            "synced": synced.is_ok(),
            "uidvalidity": state.uidvalidity,
            "uids": super::uid::sequence_set(&uids),
        })
    }

    pub(super) fn announce(&self) {
        self.changed.send_modify(|v| *v += 1);
    }
}

fn load_names(store: &dyn Store, account: &AccountId) -> Result<KnownNames, StoreError> {
    read(store, |r| {
        let mut names = KnownNames::default();
        rows::for_each(r, Table::Correspondent, &rows::account_prefix(account), |_, v| {
            names.learn(&from_json(Table::Correspondent, v)?);
            Ok(())
        })?;
        Ok::<_, StoreError>(names)
    })
}

fn load_state(store: &dyn Store, account: &AccountId) -> Result<State, StoreError> {
    read(store, |r| {
        let mut state = State {
            lanes: None,
            uidvalidity: crate::store::get_json::<MirrorRow>(r, Table::Meta, &rows::mirror_key(account))?
                .map(|m| m.uidvalidity),
            messages: BTreeMap::new(),
            locals: BTreeMap::new(),
            views: HashMap::new(),
            clock: 1,
            synced: None,
            placements: HashMap::new(),
            doubted: BTreeSet::new(),
            offers: Offers::default(),
            permanent: Vec::new(),
            interned: HashMap::new(),
        };
        let none = state.intern([]);
        rows::for_each(r, Table::Mirror, &rows::account_prefix(account), |k, v| {
            if let Some(uid) = UpstreamUid::new(rows::tail(k)) {
                let row = Arc::new(from_json::<MessageRow>(Table::Mirror, v)?);
                state.messages.insert(uid, Message { row, flags: none.clone(), flags_at: 0 });
            }
            Ok(())
        })?;
        rows::for_each(r, Table::Local, &rows::account_prefix(account), |k, v| {
            let row = Arc::new(from_json::<LocalRow>(Table::Local, v)?);
            state.locals.insert(rows::tail(k), Local { row, flags_at: 0 });
            Ok(())
        })?;
        for audience in Audience::BOTH {
            for place in [
                Place::Inbox,
                Place::Push,
                Place::Meeting,
                Place::Queue,
                Place::Info,
                Place::Silent,
                Place::All,
                Place::Outbox,
            ] {
                if let Some(view) = rows::load_view(r, account, (audience, place))? {
                    state.views.insert((audience, place), view);
                }
            }
        }
        Ok::<_, StoreError>(state)
    })
}
