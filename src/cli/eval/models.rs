//! Measuring models: the chain, or one of it.
//!
//! Promises: a run in which any item fell back to the offline scorer is called
//! no measurement of a model. Doesn't know: the store; what a run costs is
//! bounded by the configured budget, and isn't added to what the gateway spent.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;
use tokio::task::JoinSet;

use super::item::Item;
use super::report::{Report, Scored};
use super::{EvalArgs, EvalError, Scorer, failure, items, perceived, read_floors};
use crate::account::AccountId;
use crate::cli::Globals;
use crate::cli::exit::{Exit, Failure};
use crate::config::Perception;
use crate::gateway::scoring::Scoring;
use crate::imap::pending::{Question, Said};
use crate::lane::trace::Trace;
use crate::mail::address::Address;

/// What models did in a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ModelRun {
    /// Items that models were asked about.
    pub asked: usize,
    /// Of these, items that the offline scorer decided.
    pub fell_back: usize,
    /// Whether the numbers are those of the models alone.
    pub measurement: bool,
    /// Tokens that were asked with.
    pub input_tokens: u64,
    /// Tokens that were answered with.
    pub output_tokens: u64,
    /// What it cost, in the currency of the prices.
    pub cost: f64,
    /// Median and 95th percentile of an answer's time, milliseconds.
    pub latency_ms: (u64, u64),
    /// Why items fell back, and how many each.
    pub errors: std::collections::BTreeMap<String, usize>,
    #[serde(skip)]
    times: Vec<u64>,
}

impl ModelRun {
    fn take(&mut self, said: &Said) {
        self.asked += 1;
        self.fell_back += usize::from(said.chosen.is_none());
        for scored in &said.scored {
            self.input_tokens += scored.input_tokens.unwrap_or(0);
            self.output_tokens += scored.output_tokens.unwrap_or(0);
            self.cost += scored.cost_micros.unwrap_or(0) as f64 / 1e6;
            match &scored.error {
                // The kind alone: the rest differs from item to item.
                Some(error) => {
                    let kind = error.split(':').next().unwrap_or_default().to_owned();
                    *self.errors.entry(format!("{}: {kind}", scored.scorer)).or_default() += 1;
                }
                None => self.times.extend(scored.took_us.map(|us| us / 1000)),
            }
        }
    }

    fn finish(mut self) -> ModelRun {
        self.times.sort_unstable();
        let at = |share: f64| {
            let last = self.times.len().saturating_sub(1);
            self.times.get(((self.times.len() as f64 * share) as usize).min(last)).copied().unwrap_or(0)
        };
        self.latency_ms = (at(0.5), at(0.95));
        self.measurement = self.fell_back == 0 && self.asked > 0;
        self
    }
}

/// Measures a set with the configured models.
pub(super) fn measure(globals: &Globals, args: &EvalArgs) -> Result<Report, Failure> {
    let config = globals.load()?;
    let none = || Failure::new(Exit::Config, "models", "the configuration has no [[model]]");
    let perception = chosen(config.perception.ok_or_else(none)?, &args.scorer)?;
    let floors = args.floors.as_deref().map(read_floors).transpose().map_err(failure)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Exit::Software, "runtime", e))?;
    let mut open = VecDeque::new();
    for (line, item) in items(&args.set).map_err(failure)? {
        let fault = |reason| failure(EvalError::Item { path: args.set.clone(), line, reason });
        open.push_back(perceived(&item).map(|(mail, trace, _)| (item, mail.octets, trace)).map_err(fault)?);
    }
    let (scored, run) = runtime.block_on(async {
        let scoring = Scoring::open(perception, None).await.map_err(|e| Failure::new(Exit::Config, "models", e))?;
        Ok::<_, Failure>(ask_all(Arc::new(scoring), open).await)
    })?;
    let report = Report::new(args.set.display().to_string(), scored, floors, globals.json);
    Ok(report.by_models(args.scorer.name(), run))
}

/// The models that are measured.
fn chosen(mut perception: Perception, scorer: &Scorer) -> Result<Perception, Failure> {
    let Scorer::Model(name) = scorer else { return Ok(perception) };
    let found = perception.models().find(|m| m.name == *name).cloned();
    let names = || perception.models().map(|m| m.name.as_str()).collect::<Vec<_>>().join(", ");
    let unknown = || Failure::new(Exit::Usage, "scorer", format!("no model is called {name}; there are: {}", names()));
    perception.chain = vec![found.ok_or_else(unknown)?];
    perception.stronger = None;
    Ok(perception)
}

/// Asks about every item, as many at a time as the models take.
async fn ask_all(scoring: Arc<Scoring>, mut open: VecDeque<(Item, Vec<u8>, Trace)>) -> (Vec<Scored>, ModelRun) {
    let mut tasks = JoinSet::new();
    let (mut done, mut run) = (Vec::new(), ModelRun::default());
    let nobody = Address { local: "eval".to_owned(), domain: "localhost".to_owned() };
    let account = AccountId::of(&nobody);
    let mut next = 0usize;
    while !open.is_empty() || !tasks.is_empty() {
        while tasks.len() < scoring.concurrency()
            && let Some((item, octets, trace)) = open.pop_front()
        {
            let (scoring, account, number) = (scoring.clone(), account.clone(), next);
            next += 1;
            tasks.spawn(async move {
                let said = match Question::of(&account, &octets, &trace, &[]) {
                    Some(question) => Some(scoring.measure(&question).await),
                    None => None,
                };
                (number, item, trace, said)
            });
        }
        // A task that panicked would leave a set that isn't the whole.
        let Some(Ok((number, item, mut trace, said))) = tasks.join_next().await else { continue };
        let mut micros = 0;
        if let Some(said) = said {
            run.take(&said);
            micros = said.scored.iter().filter_map(|s| s.took_us).sum();
            trace.choose(said.scored, said.chosen);
        }
        done.push((number, Scored::new(&item, &trace, micros)));
    }
    done.sort_by_key(|(number, _)| *number);
    run.fell_back += next - done.len();
    (done.into_iter().map(|(_, scored)| scored).collect(), run.finish())
}
