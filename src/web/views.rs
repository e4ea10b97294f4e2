//! What a GET shows. None changes a hold.

use std::io::Read;
use std::sync::Arc;

use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::page::{self, Frame};
use super::refusal::Refusal;
use super::session::Session;
use super::{App, pin, raw};
use crate::floor::submission::State as HoldState;
use crate::mail::mime::MessageView;
use crate::outbox::{Hold, HoldId};

/// Most entries of a list.
pub(super) const MAX_LIST: usize = 200;

const STYLE: &str = include_str!("style.css");

type Page = Result<Response, Refusal>;

fn html(markup: maud::Markup) -> Response {
    Html(markup.into_string()).into_response()
}

/// Whether the process answers.
pub(super) async fn health() -> &'static str {
    "ok"
}

/// The one style sheet.
pub(super) async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

/// Where there is nothing.
pub(super) async fn nowhere() -> Refusal {
    Refusal::NotFound
}

/// A known page, another method.
pub(super) async fn no_such_method() -> Refusal {
    Refusal::Method
}

#[derive(Deserialize)]
pub(super) struct Next {
    #[serde(default)]
    next: String,
}

/// A path to go on to, where it is one message's page.
pub(super) fn next_path(next: &str) -> Option<String> {
    let id = HoldId::parse(next.strip_prefix("/held/")?)?;
    Some(format!("/held/{id}"))
}

/// The sign-in form.
pub(super) async fn sign_in(State(app): State<Arc<App>>, uri: Uri) -> Page {
    let accounts = app.services.accounts.ids();
    let only = match accounts.as_slice() {
        [one] => Some(one.as_str()),
        _ => None,
    };
    let mut without_pin = false;
    for account in &accounts {
        without_pin |= !pin::is_set(app.services.store.as_ref(), account)?;
    }
    // A query that can't be read is none.
    let next = Query::<Next>::try_from_uri(&uri).ok().and_then(|Query(n)| next_path(&n.next));
    Ok(html(page::sign_in::page(only, next.as_deref(), without_pin)))
}

fn frame<'a>(app: &'a App, session: &'a Session) -> Frame<'a> {
    Frame { services: &app.services, session, now: pin::now() }
}

/// What waits for a person, or is under way.
pub(super) async fn held(State(app): State<Arc<App>>, Extension(session): Extension<Session>) -> Page {
    let mut holds = app.services.outbox.list(&session.account)?;
    holds.retain(|h| !h.state.is_final() || h.state == HoldState::Unknown);
    newest_first(&mut holds);
    Ok(html(page::list::held(&frame(&app, &session), &holds)))
}

/// What was decided.
pub(super) async fn history(State(app): State<Arc<App>>, Extension(session): Extension<Session>) -> Page {
    let mut holds = app.services.outbox.list(&session.account)?;
    holds.retain(|h| h.state != HoldState::Held);
    holds.sort_by_key(|h| std::cmp::Reverse(h.changed_at));
    holds.truncate(MAX_LIST);
    Ok(html(page::list::history(&frame(&app, &session), &holds)))
}

fn newest_first(holds: &mut Vec<Hold>) {
    holds.sort_by_key(|h| std::cmp::Reverse(h.held_at));
    holds.truncate(MAX_LIST);
}

fn own(app: &App, session: &Session, id: &str) -> Result<Hold, Refusal> {
    let id = HoldId::parse(id).ok_or(Refusal::NotFound)?;
    app.services.outbox.get(&session.account, &id)?.ok_or(Refusal::NotFound)
}

/// One message, with the forms that decide while it is held.
pub(super) async fn message(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
    method: Method,
) -> Page {
    let hold = own(&app, &session, &id)?;
    if method == Method::HEAD {
        return Ok(StatusCode::OK.into_response());
    }
    let _permit = app.views.acquire().await.map_err(|e| Refusal::Internal(e.to_string()))?;
    let file = app.services.outbox.open(&hold)?;
    let (length, sha256) = (hold.length, hold.blob.0);
    let read = tokio::task::spawn_blocking(move || read_view(file, length, sha256));
    let view = read.await.map_err(|e| Refusal::Internal(e.to_string()))??;
    // After the octets proved to be the submitted ones: the nonce lets this page approve.
    let shown = app.services.outbox.show(&session.account, &hold.id, session.account.as_str()).await?;
    if shown.payload.sha256 != sha256 || shown.payload.length != length {
        return Err(Refusal::Octets);
    }
    Ok(html(page::message::page(&frame(&app, &session), &shown, &view)))
}

/// Reads the octets and makes sure that they are the ones that were hashed.
fn read_view(file: std::fs::File, length: u64, sha256: [u8; 32]) -> Result<MessageView, Refusal> {
    let mut octets = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(length.saturating_add(1)).read_to_end(&mut octets).map_err(|e| Refusal::Internal(e.to_string()))?;
    if octets.len() as u64 != length || Sha256::digest(&octets)[..] != sha256 {
        return Err(Refusal::Octets);
    }
    Ok(MessageView::of(&octets))
}

/// The message as it is, as text.
pub(super) async fn raw(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
) -> Page {
    let hold = own(&app, &session, &id)?;
    let file = app.services.outbox.open(&hold)?;
    let permit = app.raw.clone().acquire_owned().await.map_err(|e| Refusal::Internal(e.to_string()))?;
    let mut response = Response::new(axum::body::Body::new(raw::FileBody::new(file, hold.length, permit)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    // The id has only letters and digits.
    if let Ok(value) = HeaderValue::from_str(&format!("inline; filename=\"tollgate-{}.txt\"", hold.id)) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// The receipt of an approved message.
pub(super) async fn receipt(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
) -> Page {
    let hold = own(&app, &session, &id)?;
    let receipt = app.services.outbox.receipt(&hold.id)?.ok_or(Refusal::NotFound)?;
    let json = serde_json::to_string_pretty(&receipt).map_err(|e| Refusal::Internal(e.to_string()))?;
    let name = format!("inline; filename=\"tollgate-receipt-{}.json\"", hold.id);
    let headers = [(header::CONTENT_TYPE, "application/json".to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, json + "\n").into_response())
}
