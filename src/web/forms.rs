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

/// Sign-in with a passkey that names itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignInByPasskey {
    pub(super) ticket: String,
    pub(super) assertion: String,
    #[serde(default)]
    pub(super) next: String,
}

/// Approve or deny one message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decide {
    pub(super) pin: Option<String>,
    pub(super) assertion: Option<String>,
    pub(super) csrf: String,
    pub(super) hash: String,
    pub(super) nonce: String,
    #[serde(default)]
    pub(super) reason: String,
}

/// Approve or deny from a notice's link.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecideByLink {
    pub(super) hash: String,
    pub(super) nonce: String,
    #[serde(default)]
    pub(super) reason: String,
}

/// Register a passkey with an approver's proof.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddPasskey {
    pub(super) csrf: String,
    pub(super) ticket: String,
    pub(super) name: String,
    pub(super) client_data: String,
    pub(super) attestation: String,
    pub(super) pin: Option<String>,
    pub(super) assertion: Option<String>,
}

/// Register a passkey with a code of the console.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Enrol {
    pub(super) account: String,
    pub(super) code: String,
    pub(super) ticket: String,
    pub(super) name: String,
    pub(super) client_data: String,
    pub(super) attestation: String,
}

/// Remove a passkey.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemovePasskey {
    pub(super) csrf: String,
    pub(super) ticket: String,
    pub(super) credential: String,
    pub(super) pin: Option<String>,
    pub(super) assertion: Option<String>,
}

/// Deny everything of a key and revoke it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Revoke {
    pub(super) pin: Option<String>,
    pub(super) assertion: Option<String>,
    #[serde(default)]
    pub(super) ticket: String,
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
