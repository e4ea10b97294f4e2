//! What a POST does. Each act checks the form's token, then the approver's
//! proof, then acts; it runs to its end even when the browser goes away.

use std::future::Future;
use std::sync::Arc;

use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::passkey::PasskeyError;
use super::peer::Peer;
use super::proof::{self, Given};
use super::refusal::Refusal;
use super::session::{self, Session};
use super::{App, forms, passkey, pin, views};
use crate::account::{AccountId, KeyId};
use crate::config::AccountConfig;
use crate::floor::passkey::{AssertionError, Purpose, challenge};
use crate::outbox::{ApproveError, Denial, HoldId, Proof, Shown};

/// What the holds of a revoked key are denied with.
const REVOKED: &str = "the key was revoked";

/// Runs an act apart from the connection, so that a browser that goes away
/// can't stop it half-way.
pub(super) async fn to_the_end<F>(act: F) -> Result<Response, Refusal>
where
    F: Future<Output = Result<Response, Refusal>> + Send + 'static,
{
    tokio::spawn(act).await.map_err(|e| Refusal::Internal(e.to_string()))?
}

pub(super) fn see_other(path: &str) -> Response {
    // Paths are ours: constants, or with an id that was parsed.
    let location = HeaderValue::from_str(path).unwrap_or_else(|_| HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

fn with_cookie(mut response: Response, token: Option<&str>, https: bool) -> Response {
    if let Ok(value) = HeaderValue::from_str(&session::cookie(token, https)) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

/// The user whose connection a request came on.
fn uid(request: &Request) -> Option<u32> {
    request.extensions().get::<Peer>().and_then(|p| p.uid)
}

/// Begins a sign-in.
pub(super) async fn sign_in(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let uid = uid(&request);
    let form: forms::SignIn = forms::read(request).await?;
    to_the_end(async move {
        let store = app.services.store.as_ref();
        let accounts = &app.services.accounts;
        // Where no secret is stored nothing is held, so there is nothing to
        // sign in for, whatever PIN was set before.
        let approves = |id: &AccountId| accounts.account(id).is_some_and(AccountConfig::stores_secret);
        let Some(account) = accounts.find(form.account.trim()).filter(approves) else {
            pin::pretend(&form.pin).await;
            return Err(Refusal::SignIn);
        };
        pin::verify(store, &account, &form.pin).await?;
        let token = session::begin(store, &account, uid, pin::now()).await?;
        tracing::info!(%account, "signed in to the pages");
        let next = views::next_path(&form.next).unwrap_or_else(|| "/".to_owned());
        Ok(with_cookie(see_other(&next), Some(&token), app.site.https))
    })
    .await
}

/// Begins a sign-in with a passkey, which names its account.
pub(super) async fn sign_in_by_passkey(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let uid = uid(&request);
    let form: forms::SignInByPasskey = forms::read(request).await?;
    to_the_end(async move {
        let store = app.services.store.as_ref();
        let given = Given::of(None, Some(&form.assertion))?;
        let Given::Passkey(assertion) = &given else { return Err(Refusal::Form) };
        let challenge = app.services.tickets.take(&form.ticket, Purpose::SignIn, None, "", pin::now());
        let challenge = challenge.ok_or(Refusal::Ticket)?;
        let unknown = || Refusal::Passkey(PasskeyError::Proof(AssertionError::Unknown));
        let account = passkey::owner(store, &assertion.credential)?.ok_or_else(unknown)?;
        if !app.services.accounts.account(&account).is_some_and(AccountConfig::stores_secret) {
            return Err(unknown());
        }
        let credential = assertion.credential.clone();
        proof::check(&app, &account, given, &challenge).await?;
        let token = session::begin_by_passkey(store, &account, &credential, uid, pin::now()).await?;
        tracing::info!(%account, "signed in to the pages with a passkey");
        let next = views::next_path(&form.next).unwrap_or_else(|| "/".to_owned());
        Ok(with_cookie(see_other(&next), Some(&token), app.site.https))
    })
    .await
}

/// Ends a sign-in.
pub(super) async fn sign_out(
    State(app): State<Arc<App>>,
    Extension(signed_in): Extension<Session>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Refusal> {
    let form: forms::SignOut = forms::read(request).await?;
    forms::check_csrf(&signed_in, &form.csrf)?;
    to_the_end(async move {
        for token in session::tokens(&headers) {
            session::end(app.services.store.as_ref(), &token).await?;
        }
        Ok(with_cookie(see_other("/sign-in"), None, app.site.https))
    })
    .await
}

/// The form of a decision, its token and proof checked; `signed` says what a
/// passkey must have signed of what was shown.
async fn proven(
    app: &App,
    session: &Session,
    id: &HoldId,
    form: &forms::Decide,
    signed: fn(&Shown) -> [u8; 32],
) -> Result<Proof, Refusal> {
    forms::check_csrf(session, &form.csrf)?;
    let given = Given::of(form.pin.as_deref(), form.assertion.as_deref())?;
    proof::decides(app, &given)?;
    let account = &session.account;
    let challenge = match &given {
        Given::Pin(_) => [0; 32],
        Given::Passkey(_) => {
            let shown = app.services.outbox.shown(account, id, &form.nonce, account.as_str())?;
            signed(&shown.ok_or(Refusal::Approve(ApproveError::Stale))?)
        }
    };
    proof::check(app, account, given, &challenge).await
}

/// A hold's id, where the account has such a hold.
pub(super) fn own_hold(app: &App, account: &AccountId, id: &str) -> Result<HoldId, Refusal> {
    let id = HoldId::parse(id).ok_or(Refusal::NotFound)?;
    app.services.outbox.get(account, &id)?.ok_or(Refusal::NotFound)?;
    Ok(id)
}

/// Approves what was shown.
pub(super) async fn approve(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let form: forms::Decide = forms::read(request).await?;
    to_the_end(async move {
        let id = own_hold(&app, &session.account, &id)?;
        let (path, account) = (format!("/held/{id}"), &session.account);
        let proof = proven(&app, &session, &id, &form, |shown| challenge(&shown.payload)).await;
        let proof = proof.map_err(|r| r.at(&path))?;
        let outbox = &app.services.outbox;
        let approved = outbox.approve_with(account, &id, &form.nonce, &form.hash, account.as_str(), proof).await;
        approved.map_err(|e| Refusal::from(e).at(&path))?;
        Ok(see_other(&path))
    })
    .await
}

/// Denies a hold.
pub(super) async fn deny(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let form: forms::Decide = forms::read(request).await?;
    to_the_end(async move {
        let id = own_hold(&app, &session.account, &id)?;
        let (path, account) = (format!("/held/{id}"), &session.account);
        let denies = |shown: &Shown| Purpose::Deny.challenge(&shown.payload.canonical());
        proven(&app, &session, &id, &form, denies).await.map_err(|r| r.at(&path))?;
        let denied = app.services.outbox.deny(account, &id, form.reason.trim(), account.as_str()).await;
        denied.map_err(|e| Refusal::from(e).at(&path))?;
        Ok(see_other(&path))
    })
    .await
}

/// Revokes a key and denies all that it has waiting, in one transaction.
pub(super) async fn deny_and_revoke(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    Path(key): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let form: forms::Revoke = forms::read(request).await?;
    to_the_end(async move {
        forms::check_csrf(&session, &form.csrf)?;
        let (account, services) = (&session.account, &app.services);
        let key = KeyId(key.into());
        services.accounts.list_keys(Some(account)).into_iter().find(|k| k.id == key).ok_or(Refusal::NotFound)?;
        let given = Given::of(form.pin.as_deref(), form.assertion.as_deref())?;
        proof::decides(&app, &given)?;
        let challenge = match &given {
            Given::Pin(_) => [0; 32],
            Given::Passkey(_) => {
                let of = services.tickets.take(&form.ticket, Purpose::Revoke, Some(account), key.as_str(), pin::now());
                of.ok_or(Refusal::Ticket)?
            }
        };
        proof::check(&app, account, given, &challenge).await?;
        let denial = Denial { approver: account.to_string(), reason: REVOKED.to_owned() };
        services.outbox.revoke_key(&key, Some(denial)).await?;
        tracing::warn!(%account, key = key.as_str(), "key revoked and its messages denied from the page");
        Ok(see_other("/history"))
    })
    .await
}
