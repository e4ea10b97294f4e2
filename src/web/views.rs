//! What a GET shows. None changes a hold.

use std::sync::Arc;

use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;

use super::guard::Scripted;
use super::page::{self, Frame};
use super::refusal::Refusal;
use super::session::Session;
use super::{App, facts, held as held_message, passkey, pin, raw};
use crate::config::ApprovalMode;
use crate::floor::passkey::Purpose;
use crate::floor::payload::PIN;
use crate::floor::submission::State as HoldState;
use crate::outbox::{Hold, HoldId};

/// Most entries of a list.
pub(super) const MAX_LIST: usize = 200;
/// Of how many of the newest holds that ended the history shows those that
/// were decided last.
const MAX_HISTORY: usize = 1000;

const STYLE: &str = include_str!("style.css");

const SCRIPT: &str = include_str!("passkey.js");

type Page = Result<Response, Refusal>;

fn html(markup: maud::Markup) -> Response {
    Html(markup.into_string()).into_response()
}

/// A page that may load the script.
pub(super) fn scripted(markup: maud::Markup) -> Response {
    let mut response = html(markup);
    response.extensions_mut().insert(Scripted);
    response
}

/// With the script where passkeys decide.
pub(super) fn deciding(app: &App, markup: maud::Markup) -> Response {
    match app.services.config.approval {
        ApprovalMode::Passkey => scripted(markup),
        ApprovalMode::Pin | ApprovalMode::Link => html(markup),
    }
}

/// Whether the process answers.
pub(super) async fn health() -> &'static str {
    "ok"
}

/// The one style sheet.
pub(super) async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

/// The one script.
pub(super) async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT).into_response()
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
    let store = app.services.store.as_ref();
    let mut without_pin = false;
    for account in &accounts {
        without_pin |= !pin::is_set(store, account)?;
    }
    let ticket = match passkey::any(store)? {
        true => Some(issue(&app, Purpose::SignIn, None, "")?),
        false => None,
    };
    // A query that can't be read is none.
    let next = Query::<Next>::try_from_uri(&uri).ok().and_then(|Query(n)| next_path(&n.next));
    let by_passkey = ticket.as_ref().map(|ticket| (ticket, app.site.rp_id()));
    let page = page::sign_in::page(only, next.as_deref(), without_pin, app.services.config.approval, by_passkey);
    Ok(if ticket.is_some() { scripted(page) } else { html(page) })
}

/// A fresh challenge for a page.
pub(super) fn issue(
    app: &App,
    purpose: Purpose,
    session: Option<&Session>,
    subject: &str,
) -> Result<super::ticket::Issued, Refusal> {
    let account = session.map(|s| &s.account);
    let issued = app.services.tickets.issue(purpose, account, subject, pin::now());
    issued.map_err(|e| Refusal::Internal(e.to_string()))
}

/// What every page of a signed-in person shows.
pub(super) fn frame<'a>(app: &'a App, session: &'a Session) -> Result<Frame<'a>, Refusal> {
    let services = app.services.as_ref();
    Ok(Frame {
        services,
        session,
        now: pin::now(),
        mode: services.config.approval,
        rp_id: app.site.rp_id(),
        passkeys: passkey::list(services.store.as_ref(), &session.account)?,
        changes: services.outbox.approver_changes(&session.account)?,
        has_pin: pin::is_set(services.store.as_ref(), &session.account)?,
        link: None,
    })
}

/// What waits for a person, or is under way.
pub(super) async fn held(State(app): State<Arc<App>>, Extension(session): Extension<Session>) -> Page {
    let mut listed = app.services.outbox.pending(&session.account, MAX_LIST)?;
    listed.holds.sort_by_key(|h| std::cmp::Reverse(h.held_at));
    Ok(html(page::list::held(&frame(&app, &session)?, &listed)))
}

/// What was decided.
pub(super) async fn history(State(app): State<Arc<App>>, Extension(session): Extension<Session>) -> Page {
    let mut holds = app.services.outbox.recent(&session.account, MAX_HISTORY)?;
    holds.retain(|h| h.state != HoldState::Held);
    holds.sort_by_key(|h| std::cmp::Reverse(h.changed_at));
    holds.truncate(MAX_LIST);
    Ok(html(page::list::history(&frame(&app, &session)?, &holds)))
}

pub(super) fn own(app: &App, session: &Session, id: &str) -> Result<Hold, Refusal> {
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
    let method = match app.services.config.approval {
        // A signed-in person has no link; their PIN does.
        ApprovalMode::Link => PIN,
        mode @ (ApprovalMode::Pin | ApprovalMode::Passkey) => mode.method(),
    };
    let base = format!("/held/{}", hold.id);
    show(&app, &session, &hold, method, base).await
}

/// The page of a message under `base`, to be approved by `method`.
pub(super) async fn show(app: &Arc<App>, session: &Session, hold: &Hold, method: &'static str, base: String) -> Page {
    let view = held_message::view(app, hold).await?;
    let facts = facts::of(&app.services, hold, &view)?;
    // After the octets proved to be the submitted ones: the nonce lets this page approve.
    let shown = app.services.outbox.show_for(&session.account, &hold.id, session.account.as_str(), method).await?;
    if shown.payload.sha256 != hold.blob.0 || shown.payload.length != hold.length {
        return Err(Refusal::Octets);
    }
    let mut frame = frame(app, session)?;
    let mut revoke = None;
    if base.starts_with("/link/") {
        frame.link = Some(base.clone());
    } else if frame.mode == ApprovalMode::Passkey {
        revoke = Some(issue(app, Purpose::Revoke, Some(session), hold.key.as_str())?);
    }
    let page = page::message::page(&frame, &page::message::Seen { shown: &shown, view: &view, facts: &facts, revoke });
    Ok(deciding(app, page))
}

/// The message as it is, as text.
pub(super) async fn raw(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
) -> Page {
    let hold = own(&app, &session, &id)?;
    raw_of(&app, &hold).await
}

/// The octets of a hold, as text.
pub(super) async fn raw_of(app: &App, hold: &Hold) -> Page {
    let file = app.services.outbox.open(hold)?;
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
