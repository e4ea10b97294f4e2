//! The forms that act.

use axum::extract::{Form, FromRequest, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::refusal::Refusal;
use super::session::Session;

/// Sign-in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignIn {
    pub(super) account: String,
    pub(super) pin: String,
    #[serde(default)]
    pub(super) next: String,
}

/// Sign-out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignOut {
    pub(super) csrf: String,
}

/// Approve or deny one message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decide {
    pub(super) pin: String,
    pub(super) csrf: String,
    pub(super) hash: String,
    pub(super) nonce: String,
    #[serde(default)]
    pub(super) reason: String,
}

/// Deny everything of a key and revoke it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Revoke {
    pub(super) pin: String,
    pub(super) csrf: String,
}

/// Reads a form; a repeated or unknown field is no form of ours.
pub(super) async fn read<T: DeserializeOwned>(request: Request) -> Result<T, Refusal> {
    Form::<T>::from_request(request, &()).await.map(|Form(form)| form).map_err(|_| Refusal::Form)
}

/// Refuses a form of another sign-in.
pub(super) fn check_csrf(session: &Session, csrf: &str) -> Result<(), Refusal> {
    if session.owns_form(csrf) { Ok(()) } else { Err(Refusal::Csrf) }
}
