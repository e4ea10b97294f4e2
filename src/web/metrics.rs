//! A few numbers for Prometheus, without names or content, for this machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::App;
use super::peer::Peer;
use super::refusal::Refusal;
use crate::floor::submission::STATES;
use crate::perceive::budget::Figures;

/// Tells the numbers of models.
pub type FiguresFn = Arc<dyn Fn() -> Figures + Send + Sync>;

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics page. A request of unknown origin is not of this machine.
pub(super) async fn metrics(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    if !request.extensions().get::<Peer>().is_some_and(|p| p.address.ip().to_canonical().is_loopback()) {
        return Err(Refusal::NotLocal);
    }
    let accounts = app.services.accounts.ids();
    let mut registry = Registry::with_prefix("tollgate");
    let holds = Family::<Vec<(&'static str, &'static str)>, Gauge>::default();
    for state in STATES {
        holds.get_or_create(&vec![("state", state.name())]).set(0);
    }
    for account in &accounts {
        for hold in app.services.outbox.list(account)? {
            holds.get_or_create(&vec![("state", hold.state.name())]).inc();
        }
    }
    registry.register("holds", "Submissions by state, ended ones included", holds);
    let count = Gauge::<i64, AtomicI64>::default();
    count.set(i64::try_from(accounts.len()).unwrap_or(i64::MAX));
    registry.register("accounts", "Configured accounts", count);
    if let Some(figures) = app.services.models.get() {
        models(&mut registry, &figures());
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).map_err(|e| Refusal::Internal(e.to_string()))?;
    Ok(([(header::CONTENT_TYPE, TYPE)], text).into_response())
}

/// Families by a model's name in the configuration, and by kind.
type ByModel<M> = Family<Vec<(&'static str, String)>, M>;

/// Millionths as units.
fn units(micros: u64) -> f64 {
    micros as f64 / 1e6
}

fn models(registry: &mut Registry, figures: &Figures) {
    let (calls, answers, cached, errors) = (
        ByModel::<Counter>::default(),
        ByModel::<Counter>::default(),
        ByModel::<Counter>::default(),
        ByModel::<Counter>::default(),
    );
    let tokens = ByModel::<Counter>::default();
    let cost = ByModel::<Counter<f64, AtomicU64>>::default();
    let resting = ByModel::<Gauge>::default();
    for (name, m) in &figures.models {
        let label = |more: Option<(&'static str, &str)>| {
            let mut labels = vec![("model", name.clone())];
            labels.extend(more.map(|(k, v)| (k, v.to_owned())));
            labels
        };
        calls.get_or_create(&label(None)).inc_by(m.calls);
        answers.get_or_create(&label(None)).inc_by(m.answers);
        cached.get_or_create(&label(None)).inc_by(m.cached);
        for (kind, count) in &m.errors {
            errors.get_or_create(&label(Some(("kind", kind)))).inc_by(*count);
        }
        tokens.get_or_create(&label(Some(("direction", "input")))).inc_by(m.usage.input);
        tokens.get_or_create(&label(Some(("direction", "output")))).inc_by(m.usage.output);
        cost.get_or_create(&label(None)).inc_by(units(m.metered));
        resting.get_or_create(&label(None)).set(i64::from(m.resting));
    }
    registry.register("model_calls", "Calls to models", calls);
    registry.register("model_answers", "Valid answers of models", answers);
    registry.register("model_cached_answers", "Answers of models that were known already", cached);
    registry.register("model_errors", "Calls that failed or were not made, by kind", errors);
    registry.register("model_tokens", "Tokens of answered calls", tokens);
    registry.register("model_cost", "Cost of answered calls, in the currency of the prices", cost);
    registry.register("model_resting", "1 while a model rests after a failure", resting);
    let number = |registry: &mut Registry, name: &str, help: &str, value: f64| {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    let (fell, of) = figures.rate;
    let share = if of == 0 { 0.0 } else { fell as f64 / of as f64 };
    number(registry, "model_fallback_ratio", "Share of the last 200 scorings that fell back", share);
    let alarm = if figures.alarm { 1.0 } else { 0.0 };
    number(registry, "model_fallback_alarm", "1 where more than 20 % of the last 200 scorings fell back", alarm);
    number(registry, "model_spent_today", "Spent on this day (UTC), calls under way included", units(figures.spent));
    number(registry, "model_budget_per_day", "What may be spent on a day", units(figures.budget));
    if let Some(ratio) = figures.metered_over_estimated() {
        number(registry, "model_metered_over_estimated_ratio", "Metered over estimated cost; near 1", ratio);
    }
    let (scorings, fallbacks) = (Counter::<u64>::default(), Counter::<u64>::default());
    scorings.inc_by(figures.scorings);
    fallbacks.inc_by(figures.fell_back);
    registry.register("model_scorings", "Messages that models were to judge", scorings);
    registry.register("model_fallbacks", "Of these, messages that the offline scorer judged", fallbacks);
}
