//! What models said, cost and failed at, as far as it is kept.
//!
//! Promises: what is kept is kept as it is at the moment of writing, so that
//! no later write of an earlier moment undoes it; caches and journals are
//! bounded. Doesn't know: models.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::ModelConfig;
use crate::imap::pending::Question;
use crate::lane::trace::Scored;
use crate::perceive::budget::{Alarm, Fallbacks, Figures, ModelFigures, Spending};
use crate::store::{Store, StoreError, Table, from_json, get_json, put_json, read, write};

/// Key in [`Table::Meta`] of what was spent.
const SPENT_KEY: &[u8] = b"models\0spent";
/// Prefix in [`Table::Meta`] of what was asked about messages that aren't
/// shown yet.
const ASKED_PREFIX: &[u8] = b"models\0asked\0";
/// What was asked about a message that never came back is forgotten after.
const MAX_ASKED_SECONDS: i64 = 7 * 24 * 3600;
/// What was asked, at most, that is read at a start.
const MAX_ASKED: usize = 10_000;
/// Answers that are remembered.
const MAX_CACHED: usize = 1024;

/// One message that was asked about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Journal {
    /// When, Unix seconds.
    time: i64,
    /// What came of it, and which of that counts.
    pub(super) said: Option<(Vec<Scored>, Option<usize>)>,
}

impl Journal {
    pub(super) fn asked(time: i64) -> Journal {
        Journal { time, said: None }
    }

    pub(super) fn said(time: i64, scored: Vec<Scored>, chosen: usize) -> Journal {
        Journal { time, said: Some((scored, Some(chosen))) }
    }
}

/// The row of a message, by its octets.
pub(super) fn journal_key(question: &Question) -> Vec<u8> {
    [ASKED_PREFIX, question.account.as_str().as_bytes(), b"\0", question.sha256.as_bytes()].concat()
}

/// What an answer depends on.
pub(super) fn cache_key(question: &Question, model: &ModelConfig) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [&question.sha256, &model.url, &model.model, &question.prompt.sha256, &question.context] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// What is known since the start, and what of it is kept.
#[derive(Default)]
pub(super) struct Books {
    pub(super) spending: Spending,
    fallbacks: Fallbacks,
    models: BTreeMap<String, ModelFigures>,
    scorings: u64,
    fell_back: u64,
    cache: HashMap<[u8; 32], Scored>,
    /// Keys of the cache, oldest first.
    cached: VecDeque<[u8; 32]>,
    /// What a process before this one asked.
    pub(super) left: HashMap<Vec<u8>, Journal>,
}

/// What is stored under [`SPENT_KEY`].
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    spending: Spending,
    fallbacks: Fallbacks,
}

impl Books {
    pub(super) fn figures(&mut self, name: &str) -> &mut ModelFigures {
        self.models.entry(name.to_owned()).or_default()
    }

    /// A model that was not asked.
    pub(super) fn skipped(&mut self, name: &str, kind: &'static str) {
        *self.figures(name).errors.entry(kind).or_default() += 1;
    }

    /// An answer that is known already; it costs nothing.
    pub(super) fn cached(&mut self, name: &str, key: &[u8; 32]) -> Option<Scored> {
        let known = self.cache.get(key)?;
        let scored = Scored {
            scorer: name.to_owned(),
            took_us: Some(0),
            cost_micros: Some(0),
            input_tokens: None,
            output_tokens: None,
            ..known.clone()
        };
        self.figures(name).cached += 1;
        Some(scored)
    }

    pub(super) fn remember(&mut self, key: [u8; 32], scored: &Scored) {
        if self.cache.insert(key, scored.clone()).is_none() {
            self.cached.push_back(key);
        }
        while self.cached.len() > MAX_CACHED
            && let Some(oldest) = self.cached.pop_front()
        {
            self.cache.remove(&oldest);
        }
    }

    /// One scoring more; says so when too many fell back.
    pub(super) fn noted(&mut self, fell_back: bool) {
        self.scorings += 1;
        self.fell_back += u64::from(fell_back);
        let change = self.fallbacks.note(fell_back);
        let (fell, of) = self.fallbacks.rate();
        match change {
            Some(Alarm::Raised) => alarm((fell, of)),
            Some(Alarm::Ended) => tracing::info!("models: {fell} of the last {of} scorings fell back: no alarm"),
            None => {}
        }
    }

    pub(super) fn all(&self, budget: u64, now: i64) -> Figures {
        Figures {
            models: self.models.clone(),
            scorings: self.scorings,
            fell_back: self.fell_back,
            rate: self.fallbacks.rate(),
            alarm: self.fallbacks.alarm(),
            spent: self.spending.spent(now),
            budget,
        }
    }
}

fn alarm((fell, of): (usize, usize)) {
    tracing::error!(
        "models: {fell} of the last {of} scorings fell back to the offline scorer; `tollgate explain` says why"
    );
}

/// The books, and where they are kept.
pub(super) struct Ledger {
    books: Arc<Mutex<Books>>,
    store: Option<Arc<dyn Store>>,
}

fn lock(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    /// Reads what was kept, and forgets what is too old.
    pub(super) async fn open(store: Option<Arc<dyn Store>>, now: i64) -> Result<Ledger, StoreError> {
        let mut books = Books::default();
        if let Some(store) = &store {
            let (kept, asked) = read::<_, StoreError>(&**store, |r| {
                let kept: Kept = get_json(r, Table::Meta, SPENT_KEY)?.unwrap_or_default();
                Ok((kept, r.scan(Table::Meta, ASKED_PREFIX, &[], MAX_ASKED)?))
            })?;
            (books.spending, books.fallbacks) = (kept.spending, kept.fallbacks);
            if books.fallbacks.alarm() {
                alarm(books.fallbacks.rate());
            }
            let mut old = Vec::new();
            for (key, value) in asked {
                let journal: Journal = from_json(Table::Meta, &value)?;
                if now - journal.time > MAX_ASKED_SECONDS {
                    old.push(key);
                } else {
                    books.left.insert(key, journal);
                }
            }
            if !old.is_empty() {
                write::<_, StoreError>(&**store, move |w| old.iter().try_for_each(|key| w.delete(Table::Meta, key)))
                    .await?;
            }
        }
        Ok(Ledger { books: Arc::new(Mutex::new(books)), store })
    }

    /// A short look or change.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Books) -> T) -> T {
        work(&mut lock(&self.books))
    }

    /// Makes what was spent durable, and one message's row.
    pub(super) async fn keep(&self, row: Option<(Vec<u8>, Journal)>) -> Result<(), StoreError> {
        let Some(store) = &self.store else { return Ok(()) };
        let books = self.books.clone();
        write::<_, StoreError>(&**store, move |w| {
            let kept = {
                let books = lock(&books);
                Kept { spending: books.spending.clone(), fallbacks: books.fallbacks.clone() }
            };
            put_json(w, Table::Meta, SPENT_KEY, &kept)?;
            if let Some((key, journal)) = &row {
                put_json(w, Table::Meta, key, journal)?;
            }
            Ok(())
        })
        .await
    }
}
