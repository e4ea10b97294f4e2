//! Models that judge new mail: the chain, its rests, its budget.
//!
//! Promises: each question gets one word by the deadline, an answer or none;
//! no model is asked twice about one message, not even over a restart; what
//! may be spent is set aside, durably, before a call is made; a key stands in
//! no log, trace or error. Doesn't know: views, lanes, what follows from an
//! answer.

mod books;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::Semaphore;

use crate::account::secret;
use crate::config::{KeySource, ModelConfig, Perception};
use crate::imap::pending::{Models, Question, Said, Tell};
use crate::lane::trace::Scored;
use crate::perceive::budget::{Figures, Usage};
use crate::perceive::failure::{Failure, Kind};
use crate::perceive::model::{Client, MAX_ANSWER_TOKENS, Reply, Server};
use crate::store::{BoxFuture, Store, StoreError};
use crate::upstream::net::client_config;

use books::{Journal, Ledger};

/// How much later than the deadline the word may come that there is no answer.
const GRACE: Duration = Duration::from_millis(100);

/// Why models can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ScoringError {
    /// A client can't be made.
    #[error("the model {0} can't be used: {1}")]
    Client(String, String),
    /// What was spent can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A model with what is known of it since the start.
struct Entry {
    config: ModelConfig,
    client: Client,
    permits: Semaphore,
    rest: Mutex<Option<Rest>>,
    key: tokio::sync::Mutex<Option<String>>,
    /// Milliseconds that its last answers took, about; 0 before the first.
    usual: AtomicU64,
}

/// Why a model is left alone, and how long.
#[derive(Debug, Clone)]
struct Rest {
    until: Instant,
    why: String,
}

/// What came of one model.
enum One {
    Answered(Scored),
    Not(Scored),
}

/// The configured models.
pub struct Scoring {
    config: Perception,
    chain: Vec<Entry>,
    stronger: Option<Entry>,
    books: Ledger,
}

impl Scoring {
    /// Makes the clients and reads what was spent; without a store nothing is
    /// kept.
    pub async fn open(config: Perception, store: Option<Arc<dyn Store>>) -> Result<Scoring, ScoringError> {
        let entry = |m: &ModelConfig| entry(m, config.proxy.clone());
        let chain = config.chain.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
        let stronger = config.stronger.as_ref().map(entry).transpose()?;
        let books = Ledger::open(store, now()).await?;
        Ok(Scoring { config, chain, stronger, books })
    }

    /// Asks the chain, and the stronger model where that isn't sure. What comes
    /// of it is put into `walked` as it comes.
    async fn walk(&self, question: &Question, by: Option<Instant>, walked: &Mutex<Said>) {
        let put = |one: One| {
            let mut said = walked.lock().unwrap_or_else(PoisonError::into_inner);
            let (scored, answered) = match one {
                One::Answered(scored) => (scored, true),
                One::Not(scored) => (scored, false),
            };
            said.scored.push(scored);
            if answered {
                said.chosen = Some(said.scored.len() - 1);
            }
            answered.then(|| said.scored.last().and_then(|s| s.features)).flatten()
        };
        for entry in &self.chain {
            let Some(features) = put(self.one(entry, question, by).await) else { continue };
            if let Some(stronger) = &self.stronger
                && features.confidence() < self.config.stronger_below
            {
                put(self.one(stronger, question, by).await);
            }
            return;
        }
    }

    /// Asks one model, if it may be asked.
    async fn one(&self, entry: &Entry, question: &Question, by: Option<Instant>) -> One {
        let name = entry.config.name.as_str();
        let not = |kind: &'static str, why: String| {
            self.books.with(|b| b.skipped(name, kind));
            One::Not(Scored::failed(name, &entry.config.model, why))
        };
        let cached = books::cache_key(question, &entry.config);
        if let Some(known) = self.books.with(|b| b.cached(name, &cached)) {
            return One::Answered(known);
        }
        if let Some(rest) = entry.rest() {
            return not("resting", rest.said());
        }
        let left = || by.map(|by| by.saturating_duration_since(Instant::now()));
        let at_once = entry.permits.try_acquire().ok();
        let queued = at_once.is_none();
        let permit = match (at_once, left()) {
            (Some(permit), _) => Some(permit),
            (None, None) => entry.permits.acquire().await.ok(),
            (None, Some(left)) => tokio::time::timeout(left, entry.permits.acquire()).await.ok().and_then(Result::ok),
        };
        // At the end of a queue a call that can't be answered in time would
        // only cost.
        let usual = Duration::from_millis(entry.usual.load(Ordering::Relaxed));
        if permit.is_none() || (queued && left().is_some_and(|left| left < usual)) {
            return not("busy", "its turn didn't come before the message had to be shown".to_owned());
        }
        // Another call may have learned something meanwhile.
        if let Some(rest) = entry.rest() {
            return not("resting", rest.said());
        }
        let key = match entry.key().await {
            Ok(key) => key,
            Err(why) => return self.failed(entry, Failure::new(Kind::Auth, &why), None, Duration::ZERO, question),
        };
        let within = left().map_or(entry.config.timeout, |left| left.min(entry.config.timeout));
        if within.is_zero() {
            return not("busy", "no time was left for it before the message had to be shown".to_owned());
        }
        let price = self.config.prices.of(&entry.config.model).unwrap_or(crate::perceive::budget::UNKNOWN_PRICE);
        let octets = question.prompt.octets();
        let most = price.cost(Usage::most(octets, MAX_ANSWER_TOKENS));
        let reserved =
            self.books.with(|b| b.spending.reserve(self.config.limits, question.account.as_str(), most, now()));
        let reserved = match reserved {
            Ok(reserved) => reserved,
            Err(e) => return not("budget", e.to_string()),
        };
        // Durable before the call: a crash neither asks again nor spends again.
        if let Err(e) = self.books.keep(Some((books::journal_key(question), Journal::asked(now())))).await {
            self.books.with(|b| b.spending.settle(reserved, 0));
            return not("store", format!("what is spent could not be stored: {e}"));
        }
        self.books.with(|b| b.figures(name).calls += 1);
        let began = Instant::now();
        let answer = entry.client.ask(key.as_deref(), &question.prompt, within).await;
        let took = began.elapsed();
        match answer {
            Ok(reply) => {
                entry.answered_within(took);
                let usage = reply.usage.unwrap_or(Usage::estimated(octets));
                let cost = self.config.prices.of_answer(&entry.config.model, reply.model.as_deref()).cost(usage);
                let scored = self.answered(entry, question, reply, (usage, cost), took);
                self.books.with(|b| {
                    b.spending.settle(reserved, cost);
                    let figures = b.figures(name);
                    figures.answers += 1;
                    figures.usage.input += usage.input;
                    figures.usage.output += usage.output;
                    figures.metered += cost;
                    figures.estimated += price.cost(Usage::estimated(octets));
                    b.remember(cached, &scored);
                });
                One::Answered(scored)
            }
            Err(mut failure) => {
                if let Some(key) = key.filter(|k| !k.is_empty()) {
                    // Some servers repeat the key that they refuse.
                    failure.detail = failure.detail.replace(&key, "…");
                }
                let cost = match (failure.usage, free(failure.kind)) {
                    (Some(usage), _) => Some(price.cost(usage)),
                    (None, true) => Some(0),
                    // It may have been worked on: it stays spent at its most.
                    (None, false) => None,
                };
                if let Some(cost) = cost {
                    self.books.with(|b| b.spending.settle(reserved, cost));
                }
                if failure.kind == Kind::Auth {
                    entry.key.lock().await.take();
                }
                self.failed(entry, failure, Some(cost.unwrap_or(most)), took, question)
            }
        }
    }

    fn answered(
        &self,
        entry: &Entry,
        q: &Question,
        reply: Reply,
        (usage, cost): (Usage, u64),
        took: Duration,
    ) -> Scored {
        let version = reply.model.filter(|m| *m != entry.config.model);
        Scored {
            scorer: entry.config.name.clone(),
            // A server may name another model than was asked.
            version: version.map_or_else(
                || entry.config.model.clone(),
                |other| format!("{} ({})", entry.config.model, crate::perceive::answer::shown(&other)),
            ),
            features: Some(reply.answer.features),
            contributions: Vec::new(),
            reason: reply.answer.reason,
            prompt_sha256: Some(q.prompt.sha256.clone()),
            error: None,
            took_us: Some(micros(took)),
            cost_micros: Some(cost),
            input_tokens: Some(usage.input),
            output_tokens: Some(usage.output),
        }
    }

    fn failed(&self, entry: &Entry, failure: Failure, cost: Option<u64>, took: Duration, question: &Question) -> One {
        let name = entry.config.name.as_str();
        self.books.with(|b| *b.figures(name).errors.entry(failure.kind.name()).or_default() += 1);
        if let Some(rest) = failure.rest {
            let until = Instant::now() + rest;
            entry.set_rest(Rest { until, why: failure.to_string() });
        }
        // The server's words stay out of the log: they may repeat the message.
        let (kind, rest) = (failure.kind.name(), failure.rest.map_or(0, |r| r.as_secs()));
        if failure.kind.is_loud() {
            tracing::error!(model = name, kind, rest_seconds = rest, "a model can't be used until somebody mends that");
        } else {
            tracing::warn!(model = name, kind, rest_seconds = rest, "a model gave no answer");
        }
        One::Not(Scored {
            prompt_sha256: Some(question.prompt.sha256.clone()),
            took_us: Some(micros(took)),
            cost_micros: cost,
            input_tokens: failure.usage.map(|u| u.input),
            output_tokens: failure.usage.map(|u| u.output),
            ..Scored::failed(name, &entry.config.model, failure.to_string())
        })
    }

    /// What models say of one message, by the deadline. `tell` gets it.
    async fn judge(&self, question: Question, mut tell: Tell) {
        let key = books::journal_key(&question);
        if let Some(left) = self.books.with(|b| b.left.remove(&key)) {
            // Asked before a restart: what was said then counts, if anything.
            let said = left.said.unwrap_or_else(|| {
                let why = "it was asked before a restart, and nothing came of that";
                let name = self.chain.first().map_or("", |e| e.config.name.as_str());
                let model = self.chain.first().map_or("", |e| e.config.model.as_str());
                (vec![Scored::failed(name, model, why.to_owned())], None)
            });
            self.noted(said.1.is_none());
            tell(Said { scored: said.0, chosen: said.1, done: Some(key) });
            return;
        }
        let walked = Mutex::new(Said::default());
        let deadline = Instant::now() + self.config.deadline;
        let by = (!self.config.rescore).then_some(deadline);
        let walk = self.walk(&question, by, &walked);
        tokio::pin!(walk);
        let in_time = tokio::time::timeout_at((deadline + GRACE).into(), &mut walk).await.is_ok();
        let said = || {
            let said = walked.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Said { done: Some(key.clone()), ..said }
        };
        let mut first = said();
        if !in_time && first.chosen.is_none() {
            let next = self.chain.get(first.scored.len()).or(self.chain.last());
            let (name, model) = next.map_or(("", ""), |e| (&e.config.name, &e.config.model));
            first.scored.push(Scored::failed(name, model, "no answer before the message had to be shown".to_owned()));
        }
        self.noted(first.chosen.is_none());
        self.done(&key, &first).await;
        let fell_back = first.chosen.is_none();
        tell(first);
        if !in_time && fell_back && self.config.rescore {
            walk.await;
            let later = said();
            if later.chosen.is_some() {
                tell(later);
            }
            self.done(&key, &Said::default()).await;
        }
    }

    /// Keeps an answer until its message is shown. Without one, only what was
    /// spent.
    async fn done(&self, key: &[u8], said: &Said) {
        let journal = said.chosen.map(|n| (key.to_vec(), Journal::said(now(), said.scored.clone(), n)));
        if let Err(e) = self.books.keep(journal).await {
            tracing::warn!("what models said could not be stored: {e}");
        }
    }

    fn noted(&self, fell_back: bool) {
        self.books.with(|b| b.noted(fell_back));
    }

    /// What models say of one message, as long as they take, for measuring.
    pub async fn measure(&self, question: &Question) -> Said {
        let walked = Mutex::new(Said::default());
        self.walk(question, None, &walked).await;
        let said = walked.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.noted(said.chosen.is_none());
        said
    }

    /// Calls that may be made at a time.
    pub fn concurrency(&self) -> usize {
        self.chain.iter().map(|e| e.config.concurrency).max().unwrap_or(1)
    }

    /// What is told of the models.
    pub fn figures(&self) -> Figures {
        let mut figures = self.books.with(|b| b.all(self.config.limits.overall, now()));
        for entry in self.chain.iter().chain(&self.stronger) {
            figures.models.entry(entry.config.name.clone()).or_default().resting = entry.rest().is_some();
        }
        figures
    }
}

/// Failures that no server bills: it said so before it worked.
fn free(kind: Kind) -> bool {
    match kind {
        Kind::Auth
        | Kind::Credit
        | Kind::Gone
        | Kind::Rate
        | Kind::Server
        | Kind::Refused
        | Kind::Redirected
        | Kind::Unreachable => true,
        Kind::Slow | Kind::Cut | Kind::Large | Kind::Invalid => false,
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Unix seconds now.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}

fn entry(config: &ModelConfig, proxy: Option<String>) -> Result<Entry, ScoringError> {
    let cannot = |why: String| ScoringError::Client(config.name.clone(), why);
    let tls = client_config(&config.endpoint).map_err(cannot)?;
    let server = Server { endpoint: config.url.clone(), model: config.model.clone(), proxy };
    Ok(Entry {
        client: Client::new(server, Arc::unwrap_or_clone(tls)).map_err(cannot)?,
        permits: Semaphore::new(config.concurrency),
        rest: Mutex::default(),
        key: tokio::sync::Mutex::default(),
        usual: AtomicU64::new(0),
        config: config.clone(),
    })
}

impl Rest {
    fn said(&self) -> String {
        let left = self.until.saturating_duration_since(Instant::now()).as_secs();
        format!("it rests for another {left} s after {}", self.why)
    }
}

impl Entry {
    fn answered_within(&self, took: Duration) {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        let before = self.usual.load(Ordering::Relaxed);
        let now = if before == 0 { took } else { (before.saturating_mul(3).saturating_add(took)) / 4 };
        self.usual.store(now, Ordering::Relaxed);
    }

    fn rest(&self) -> Option<Rest> {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.clone().filter(|r| r.until > Instant::now())
    }

    /// A longer rest stays: calls that began before it end after it.
    fn set_rest(&self, new: Rest) {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        if rest.as_ref().is_none_or(|old| old.until < new.until) {
            *rest = Some(new);
        }
    }

    /// The API key, fetched once; again after it was refused.
    async fn key(&self) -> Result<Option<String>, String> {
        let Some(source) = &self.config.key else { return Ok(None) };
        let mut key = self.key.lock().await;
        if key.is_none() {
            *key = Some(match source {
                KeySource::Env(name) => std::env::var(name).map_err(|_| format!("{name} is not set"))?,
                KeySource::Secret(source) => secret::fetch(source).await.map_err(|e| e.to_string())?,
            });
        }
        Ok(key.clone())
    }
}

/// The models, as mirrors know them.
pub struct Judges(pub Arc<Scoring>);

impl Models for Judges {
    fn ask(&self, question: Question, tell: Tell) -> BoxFuture<'static, ()> {
        let scoring = self.0.clone();
        Box::pin(async move { scoring.judge(question, tell).await })
    }

    fn passed_over(&self) {
        self.0.noted(true);
    }
}
