//! Why a message is in its lane, for the person whose message it is.
//!
//! Promises: only decisions of the signed-in account are found; nothing is
//! changed. Doesn't know: the message.

use std::sync::Arc;

use axum::extract::{Extension, Path, State};
use axum::response::{Html, IntoResponse, Response};

use super::page;
use super::refusal::Refusal;
use super::session::Session;
use super::{App, views};
use crate::lane::trace::Trace;
use crate::store::{Table, decision_key, get_json, read};

/// Longest id that is looked up.
const MAX_ID: usize = 32;

/// The page of one decision.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    if id.is_empty() || id.len() > MAX_ID || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Refusal::NotFound);
    }
    let key = decision_key(session.account.as_str(), &id);
    let trace: Option<Trace> = read(app.services.store.as_ref(), |r| get_json(r, Table::Decision, &key))?;
    let trace = trace.ok_or(Refusal::NotFound)?;
    Ok(Html(page::decision::page(&views::frame(&app, &session)?, &trace).into_string()).into_response())
}
