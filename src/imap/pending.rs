//! New mail that waits for models: it is perceived already, and shown as soon
//! as they answered or the time for that is over.
//!
//! Promises: a message that waits is shown once, by the first word that comes
//! of it, however that came about (an answer, none, a task that died); one
//! that left the provider's INBOX meanwhile is forgotten; what waits is
//! bounded, and what comes beyond that is shown at once. A later word moves a
//! message only where the scorer gives one, and never one that a person put
//! somewhere. Doesn't know: which models there are, how long they get.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::task::{AbortHandle, JoinSet};

use crate::account::AccountId;
use crate::lane::Lane;
use crate::lane::trace::{Scored, Trace};
use crate::perceive::prompt::{self, Example, MAX_EXAMPLES, Prompt};
use crate::store::{BoxFuture, StoreError, Table, from_json, get_json, read};

use super::correct::Correction;
use super::mirror::{Message, Mirror, OpError};
use super::perceiving::{Arrived, decide, decision_id, lanes_of, now, plan_arrival, show};
use super::plan::Plan;
use super::rows;
use super::uid::UpstreamUid;
use super::view::Source;
use super::watch::{WatchError, Watcher};

/// Messages of one account that wait at a time.
const MAX_WAITING: usize = 4096;
/// Octets of them that are kept meanwhile.
const MAX_WAITING_OCTETS: usize = 64 * 1024 * 1024;
/// Messages that are shown by one commit.
const PER_COMMIT: usize = 32;

/// What models are asked about one message.
#[derive(Debug, Clone)]
pub struct Question {
    /// The account that it arrived at.
    pub account: AccountId,
    /// SHA-256 of what was read of it, in hex.
    pub sha256: String,
    /// What is known from outside it, as JSON.
    pub context: String,
    /// The prompt.
    pub prompt: Prompt,
}

impl Question {
    /// The question about a message that was perceived as `trace`; `None` where
    /// no model could change anything: there is nothing to read, or a person
    /// said where it belongs.
    pub fn of(account: &AccountId, octets: &[u8], trace: &Trace, examples: &[Example]) -> Option<Question> {
        if trace.features().confidence() <= 0.0 || trace.verdict.overridden.is_some() {
            return None;
        }
        Some(Question {
            account: account.clone(),
            sha256: trace.read.sha256.clone(),
            // A context is made of strings, numbers and lists of them.
            context: serde_json::to_string(&trace.context).unwrap_or_default(),
            prompt: prompt::prompt(octets, trace, examples),
        })
    }
}

/// What models said of one message.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// Each model that was asked, in the order of asking.
    pub scored: Vec<Scored>,
    /// The one that counts; without, the offline scorer does.
    pub chosen: Option<usize>,
    /// A row of [`Table::Meta`] that goes in the transaction that shows the
    /// message.
    pub done: Option<Vec<u8>>,
}

/// Takes what models said: once in time, and once more where a later answer
/// may count.
pub type Tell = Box<dyn FnMut(Said) + Send>;

/// Models, as the mirror knows them.
pub trait Models: Send + Sync {
    /// Asks about a message and tells what came of it, in the time that the
    /// configuration gives.
    fn ask(&self, question: Question, tell: Tell) -> BoxFuture<'static, ()>;
    /// A message was not asked about, since too many wait.
    fn passed_over(&self);
}

struct Waiting {
    arrived: Arrived,
    trace: Trace,
    said: Option<Said>,
    /// Set once it runs.
    task: Option<AbortHandle>,
}

impl Waiting {
    fn octets(&self) -> usize {
        self.arrived.prefix.as_ref().map_or(0, Vec::len)
    }
}

/// A word that came after its message was shown.
struct Late {
    uid: UpstreamUid,
    decision: String,
    said: Said,
}

#[derive(Default)]
struct Inner {
    waiting: BTreeMap<UpstreamUid, Waiting>,
    octets: usize,
    late: Vec<Late>,
}

/// What waits in one account.
#[derive(Default)]
pub struct Pending {
    inner: Mutex<Inner>,
    /// Apart from the rest: a task that ends at once tells at once.
    tasks: Mutex<JoinSet<()>>,
    told: tokio::sync::Notify,
}

impl Pending {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a message waits.
    pub(super) fn holds(&self, uid: UpstreamUid) -> bool {
        self.inner().waiting.contains_key(&uid)
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.inner().waiting.is_empty()
    }

    /// Resolves when there is something to show.
    pub(super) async fn told(&self) {
        self.told.notified().await;
    }

    /// Forgets what is no longer in INBOX.
    pub(super) fn retain(&self, keep: impl Fn(UpstreamUid) -> bool) {
        let mut inner = self.inner();
        inner.waiting.retain(|uid, waiting| {
            let kept = keep(*uid);
            if let (false, Some(task)) = (kept, &waiting.task) {
                task.abort();
            }
            kept
        });
        inner.octets = inner.waiting.values().map(Waiting::octets).sum();
    }

    /// Forgets everything and ends every call.
    pub(super) fn clear(&self) {
        let forgotten = (std::mem::take(&mut *self.inner()), std::mem::take(&mut *self.tasks()));
        // Without a lock: what ends tells so.
        drop(forgotten);
    }

    /// Flags that a waiting message has now; false where it doesn't wait.
    pub(super) fn flag(&self, uid: UpstreamUid, flags: &[String]) -> bool {
        let mut inner = self.inner();
        let waiting = inner.waiting.get_mut(&uid);
        waiting.map(|w| w.arrived.flags = flags.to_vec()).is_some()
    }

    fn tell(&self, uid: UpstreamUid, decision: &str, said: Said) {
        {
            let mut inner = self.inner();
            match inner.waiting.get_mut(&uid).filter(|w| w.trace.decision == decision && w.said.is_none()) {
                Some(waiting) => waiting.said = Some(said),
                None if said.chosen.is_some() => inner.late.push(Late { uid, decision: decision.to_owned(), said }),
                None => return,
            }
        }
        self.told.notify_one();
    }

    fn take_told(&self, most: usize) -> Vec<Waiting> {
        let mut inner = self.inner();
        let told: Vec<UpstreamUid> =
            inner.waiting.iter().filter(|(_, w)| w.said.is_some()).map(|(uid, _)| *uid).take(most).collect();
        let taken: Vec<Waiting> = told.iter().filter_map(|uid| inner.waiting.remove(uid)).collect();
        inner.octets -= taken.iter().map(Waiting::octets).sum::<usize>();
        taken
    }
}

/// Tells of one message; dropped without a word, it says that there is none.
struct Teller {
    mirror: Weak<Mirror>,
    uid: UpstreamUid,
    decision: String,
    told: bool,
}

impl Teller {
    fn tell(&mut self, said: Said) {
        self.told = true;
        if let Some(mirror) = self.mirror.upgrade() {
            mirror.pending.tell(self.uid, &self.decision, said);
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if !self.told {
            self.tell(Said::default());
        }
    }
}

/// Lets a message wait for models. It comes back where it need not.
pub(super) fn wait_for_models(
    mirror: &Arc<Mirror>,
    arrived: Arrived,
    trace: Trace,
    examples: &[Example],
) -> Result<(), Box<(Arrived, Trace)>> {
    let question = arrived.prefix.as_deref().and_then(|o| Question::of(&mirror.account, o, &trace, examples));
    let (Some(models), Some(question)) = (mirror.models.get(), question) else {
        return Err(Box::new((arrived, trace)));
    };
    let uid = arrived.uid;
    let mut teller = Teller { mirror: Arc::downgrade(mirror), uid, decision: trace.decision.clone(), told: false };
    {
        let mut inner = mirror.pending.inner();
        let waiting = Waiting { arrived, trace, said: None, task: None };
        let octets = inner.octets + waiting.octets();
        if inner.waiting.len() >= MAX_WAITING || octets > MAX_WAITING_OCTETS {
            models.passed_over();
            // There is nothing to tell.
            teller.told = true;
            return Err(Box::new((waiting.arrived, waiting.trace)));
        }
        inner.octets = octets;
        inner.waiting.insert(uid, waiting);
    }
    let task = {
        let mut tasks = mirror.pending.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(models.ask(question, Box::new(move |said| teller.tell(said))))
    };
    if let Some(waiting) = mirror.pending.inner().waiting.get_mut(&uid) {
        waiting.task = Some(task);
    }
    mirror.perceiving.send_replace(true);
    Ok(())
}

/// What people of the account put right last, newest first.
pub(super) fn examples(mirror: &Mirror) -> Result<Vec<Example>, OpError> {
    read::<_, StoreError>(&*mirror.store, |r| {
        let mut last: std::collections::VecDeque<(String, Option<Lane>, Lane)> = Default::default();
        // Only people's sessions write here, and keys sort by time.
        rows::for_each(r, Table::Correction, &rows::account_prefix(&mirror.account), |_, v| {
            let correction: Correction = from_json(Table::Correction, v)?;
            if let (Some(decision), Some(to)) = (correction.decision, correction.to) {
                last.push_front((decision, correction.from, to));
                last.truncate(MAX_EXAMPLES);
            }
            Ok(())
        })?;
        let mut examples = Vec::new();
        for (decision, was, is) in last {
            let key = rows::decision_key(&mirror.account, &decision);
            let Some(trace) = get_json::<Trace>(r, Table::Decision, &key)? else { continue };
            examples.push(Example {
                from: trace.from.unwrap_or_default(),
                signals: trace.signals.names(),
                reason: trace.reason,
                was,
                is,
            });
        }
        Ok(examples)
    })
    .map_err(OpError::from)
}

impl Watcher {
    /// Shows the messages that models had their say about.
    pub(super) async fn place_told(&mut self) -> Result<(), WatchError> {
        let mirror = self.mirror.clone();
        loop {
            let told = mirror.pending.take_told(PER_COMMIT);
            if told.is_empty() {
                break;
            }
            let mut plan = Plan::new(&mirror.account);
            let mut new = Vec::new();
            {
                let mut state = mirror.state();
                for Waiting { arrived, mut trace, said, .. } in told {
                    let said = said.unwrap_or_default();
                    if let Some(row) = said.done {
                        plan.row(Table::Meta, row, None);
                    }
                    // It left while it waited.
                    if self.gone.contains(&arrived.uid) {
                        continue;
                    }
                    trace.choose(said.scored, said.chosen);
                    new.extend(arrived.prefix.clone());
                    plan_arrival(&mirror, &mut state, &mut plan, arrived, None, Some(&trace))?;
                }
            }
            plan.execute(&mirror).await?;
            self.remember(&new).await;
        }
        let late = std::mem::take(&mut mirror.pending.inner().late);
        for late in late {
            self.rescore(late).await?;
        }
        if mirror.pending.is_empty() {
            mirror.perceiving.send_replace(false);
        }
        Ok(())
    }

    /// An answer that came after the message was shown.
    async fn rescore(&mut self, late: Late) -> Result<(), WatchError> {
        let mirror = self.mirror.clone();
        let Some(mut trace) = self.decision(Some(&late.decision))? else { return Ok(()) };
        let before = trace.verdict.lane;
        trace.choose(late.said.scored, late.said.chosen);
        if trace.verdict.lane == before {
            return Ok(());
        }
        trace.decision = decision_id()?;
        trace.time = now();
        let mut plan = Plan::new(&mirror.account);
        {
            let state = mirror.state();
            let still = |m: &&Message| m.row.decision.as_ref() == Some(&late.decision) && !m.row.by_person;
            let Some(message) = state.messages.get(&late.uid).filter(still) else { return Ok(()) };
            let mut row = (*message.row).clone();
            decide(&mirror, &lanes_of(&state)?, &mut plan, late.uid, &mut row, &trace)?;
            plan.take_out(&state, Source::Upstream(late.uid));
            show(&state, &mut plan, late.uid, row.place)?;
            plan.message(late.uid, Message { row: Arc::new(row), ..message.clone() })?;
        }
        Ok(plan.execute(&mirror).await?)
    }
}
