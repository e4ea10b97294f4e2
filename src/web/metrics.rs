//! A few numbers for Prometheus, without names or content, for this machine.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::App;
use super::peer::Peer;
use super::refusal::Refusal;
use crate::floor::submission::STATES;

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
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).map_err(|e| Refusal::Internal(e.to_string()))?;
    Ok(([(header::CONTENT_TYPE, TYPE)], text).into_response())
}
