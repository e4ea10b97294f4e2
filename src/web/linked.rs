//! What a notice's link opens where it is enough by itself
//! (`[approval] require = "link"`).
//!
//! Promises: nothing is here in another mode; the token is checked before
//! anything is read; a GET shows and only a POST, from the page that it
//! showed, decides. Doesn't know: who follows the link.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};

use super::acts::{see_other, to_the_end};
use super::refusal::Refusal;
use super::session::Session;
use super::{App, forms, link, views};
use crate::config::ApprovalMode;
use crate::floor::payload::LINK;
use crate::outbox::{Hold, HoldId, Proof};

/// The hold that a link is of.
fn hold(app: &App, id: &str, token: &str) -> Result<Hold, Refusal> {
    if app.services.config.approval != ApprovalMode::Link {
        return Err(Refusal::NotFound);
    }
    let id = HoldId::parse(id).ok_or(Refusal::NotFound)?;
    if !link::fits(app.services.store.as_ref(), &id, token)? {
        return Err(Refusal::NotFound);
    }
    for account in app.services.accounts.ids() {
        if let Some(hold) = app.services.outbox.get(&account, &id)? {
            return Ok(hold);
        }
    }
    Err(Refusal::NotFound)
}

/// The message, with the forms that decide.
pub(super) async fn message(
    State(app): State<Arc<App>>,
    Path((id, token)): Path<(String, String)>,
    method: Method,
) -> Result<Response, Refusal> {
    let hold = hold(&app, &id, &token)?;
    if method == Method::HEAD {
        return Ok(StatusCode::OK.into_response());
    }
    let session = Session::of_link(&hold.account);
    views::show(&app, &session, &hold, LINK, format!("/link/{}/{token}", hold.id)).await
}

/// The message as it is.
pub(super) async fn raw(
    State(app): State<Arc<App>>,
    Path((id, token)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let hold = hold(&app, &id, &token)?;
    views::raw_of(&app, &hold).await
}

/// Approves what the link's page showed.
pub(super) async fn approve(
    State(app): State<Arc<App>>,
    Path((id, token)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Refusal> {
    let form: forms::DecideByLink = forms::read(request).await?;
    to_the_end(async move {
        let hold = hold(&app, &id, &token)?;
        let (path, approver) = (format!("/link/{}/{token}", hold.id), hold.account.as_str());
        let outbox = &app.services.outbox;
        let done = outbox.approve_with(&hold.account, &hold.id, &form.nonce, &form.hash, approver, Proof::Link).await;
        done.map_err(|e| Refusal::from(e).at(&path))?;
        Ok(see_other(&path))
    })
    .await
}

/// Denies what the link's page showed.
pub(super) async fn deny(
    State(app): State<Arc<App>>,
    Path((id, token)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Refusal> {
    let form: forms::DecideByLink = forms::read(request).await?;
    to_the_end(async move {
        let hold = hold(&app, &id, &token)?;
        let path = format!("/link/{}/{token}", hold.id);
        let account = &hold.account;
        let denied = app.services.outbox.deny(account, &hold.id, form.reason.trim(), account.as_str()).await;
        denied.map_err(|e| Refusal::from(e).at(&path))?;
        Ok(see_other(&path))
    })
    .await
}
