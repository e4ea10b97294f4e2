//! Who approves: registering and removing passkeys.
//!
//! Promises: a passkey is registered only with an approver's proof (the PIN,
//! or a registered passkey that signs this very registration) or with a code
//! of the console; removing one takes a proof too. Doesn't know: whose hands
//! hold the passkey; the changes stand on every page for seven days so that
//! the person can see them.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::acts::{see_other, to_the_end};
use super::passkey::{Passkey, PasskeyError};
use super::proof::{self, Given};
use super::refusal::Refusal;
use super::session::Session;
use super::ticket::Issued;
use super::{App, forms, page, passkey, pin, views};
use crate::account::AccountId;
use crate::floor::passkey::{ApproverKey, Place, Purpose};

const PATH: &str = "/approvers";
/// What the ledger says vouched for a change.
const BY_PIN: &str = "pin";
const BY_PASSKEY: &str = "passkey";
const BY_CODE: &str = "code";

/// The passkeys of the account, and the forms that change them.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
) -> Result<Response, Refusal> {
    let frame = views::frame(&app, &session)?;
    let add = views::issue(&app, Purpose::Create, Some(&session), "")?;
    let removes: Result<Vec<Issued>, Refusal> =
        frame.passkeys.iter().map(|p| views::issue(&app, Purpose::Remove, Some(&session), &p.key.credential)).collect();
    Ok(views::scripted(page::approvers::page(&frame, &add, &removes?)))
}

/// The form that takes a code of the console.
pub(super) async fn enrol_page(State(app): State<Arc<App>>) -> Result<Response, Refusal> {
    let ticket = views::issue(&app, Purpose::Create, None, "")?;
    let accounts = app.services.accounts.ids();
    let only = match accounts.as_slice() {
        [one] => Some(one.as_str()),
        _ => None,
    };
    Ok(views::scripted(page::approvers::enrol(only, &ticket, app.site.rp_id())))
}

/// What a registration made, checked against its challenge.
fn made(
    app: &App,
    account: &AccountId,
    challenge: &[u8; 32],
    name: &str,
    client_data: &str,
    attestation: &str,
) -> Result<Passkey, Refusal> {
    let name = passkey::name(name)?;
    let place = Place { rp_id: app.site.rp_id(), origin: &app.site.origin };
    let (key, counter) = ApproverKey::register(account.as_str(), place, challenge, client_data, attestation)
        .map_err(PasskeyError::Proof)?;
    Ok(Passkey { name, key, counter, added: pin::now(), used: None })
}

/// What a registered passkey signs to vouch for a new one: the challenge of
/// the registration and the hash of what it made.
fn vouching(create: &[u8; 32], attestation: &str) -> Result<[u8; 32], Refusal> {
    let object = URL_SAFE_NO_PAD.decode(attestation).map_err(|_| Refusal::Form)?;
    Ok(Purpose::Add.challenge(&[&create[..], &Sha256::digest(object)].concat()))
}

/// Registers a passkey with an approver's proof.
pub(super) async fn add(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    request: Request,
) -> Result<Response, Refusal> {
    let form: forms::AddPasskey = forms::read(request).await?;
    to_the_end(async move {
        forms::check_csrf(&session, &form.csrf)?;
        let account = &session.account;
        let given = Given::of(form.pin.as_deref(), form.assertion.as_deref())?;
        let create = app.services.tickets.take(&form.ticket, Purpose::Create, Some(account), "", pin::now());
        let create = create.ok_or(Refusal::Ticket).map_err(|r| r.at(PATH))?;
        let passkey = made(&app, account, &create, &form.name, &form.client_data, &form.attestation);
        let passkey = passkey.map_err(|r| r.at(PATH))?;
        let by = if matches!(given, Given::Pin(_)) { BY_PIN } else { BY_PASSKEY };
        let challenge = vouching(&create, &form.attestation)?;
        proof::check(&app, account, given, &challenge).await.map_err(|r| r.at(PATH))?;
        let added = passkey::add(&app.services.outbox, account, passkey, by).await;
        added.map_err(|e| Refusal::from(e).at(PATH))?;
        Ok(see_other(PATH))
    })
    .await
}

/// Registers a passkey with a code of the console.
pub(super) async fn enrol(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let form: forms::Enrol = forms::read(request).await?;
    to_the_end(async move {
        let create = app.services.tickets.take(&form.ticket, Purpose::Create, None, "", pin::now());
        let create = create.ok_or(Refusal::Ticket)?;
        // An unknown account is a wrong code, so that neither can be told from the other.
        let account = app.services.accounts.find(form.account.trim()).ok_or(PasskeyError::NoCode)?;
        let passkey = made(&app, &account, &create, &form.name, &form.client_data, &form.attestation)?;
        passkey::take_code(app.services.store.as_ref(), &account, &form.code, pin::now()).await?;
        passkey::add(&app.services.outbox, &account, passkey, BY_CODE).await?;
        Ok(see_other("/sign-in"))
    })
    .await
}

/// Removes a passkey.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    request: Request,
) -> Result<Response, Refusal> {
    let form: forms::RemovePasskey = forms::read(request).await?;
    to_the_end(async move {
        forms::check_csrf(&session, &form.csrf)?;
        let account = &session.account;
        let given = Given::of(form.pin.as_deref(), form.assertion.as_deref())?;
        let tickets = &app.services.tickets;
        let challenge = tickets.take(&form.ticket, Purpose::Remove, Some(account), &form.credential, pin::now());
        let challenge = challenge.ok_or(Refusal::Ticket).map_err(|r| r.at(PATH))?;
        let by = if matches!(given, Given::Pin(_)) { BY_PIN } else { BY_PASSKEY };
        proof::check(&app, account, given, &challenge).await.map_err(|r| r.at(PATH))?;
        let (outbox, store) = (&app.services.outbox, app.services.store.as_ref());
        let removed = passkey::remove(outbox, store, account, &form.credential, by).await;
        removed.map_err(|e| Refusal::from(e).at(PATH))?;
        Ok(see_other(PATH))
    })
    .await
}
