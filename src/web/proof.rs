//! The approver's own proof with every act.
//!
//! Promises: exactly one proof, of the kind that is configured for decisions;
//! a passkey's answer counts only for the challenge of the very thing that
//! was shown. Doesn't know: what the act does.

use super::App;
use super::passkey::{self, PasskeyError};
use super::pin;
use super::refusal::Refusal;
use crate::account::AccountId;
use crate::config::ApprovalMode;
use crate::floor::passkey::{Assertion, AssertionError};
use crate::outbox::{ApproveError, Proof};

/// Longest text of a passkey's answer in a form.
const MAX_ANSWER: usize = 32 * 1024;

/// The proof that a form brought.
pub(super) enum Given<'a> {
    Pin(&'a str),
    Passkey(Box<Assertion>),
}

impl<'a> Given<'a> {
    /// Exactly one of both.
    pub(super) fn of(pin: Option<&'a str>, answer: Option<&str>) -> Result<Given<'a>, Refusal> {
        match (pin, answer) {
            (Some(pin), None) => Ok(Given::Pin(pin)),
            (None, Some(answer)) => read(answer).map(|a| Given::Passkey(Box::new(a))),
            (Some(_), Some(_)) | (None, None) => Err(Refusal::Form),
        }
    }
}

/// Reads what the page's script wrote. A list of hashes is ours to add.
fn read(answer: &str) -> Result<Assertion, Refusal> {
    let unreadable = || Refusal::Passkey(PasskeyError::Proof(AssertionError::Unreadable));
    if answer.len() > MAX_ANSWER {
        return Err(unreadable());
    }
    let assertion: Assertion = serde_json::from_str(answer).map_err(|_| unreadable())?;
    if assertion.batch.is_empty() { Ok(assertion) } else { Err(unreadable()) }
}

/// Checks a proof; `challenge` is what a passkey must have signed.
pub(super) async fn check(
    app: &App,
    account: &AccountId,
    given: Given<'_>,
    challenge: &[u8; 32],
) -> Result<Proof, Refusal> {
    let store = app.services.store.as_ref();
    match given {
        Given::Pin(pin) => {
            pin::verify(store, account, pin).await?;
            Ok(Proof::Pin)
        }
        Given::Passkey(assertion) => {
            passkey::verify(store, account, &app.site.origin, &assertion, challenge).await?;
            Ok(Proof::Passkey(assertion))
        }
    }
}

/// Refuses a proof of a kind that decides nothing here.
pub(super) fn decides(app: &App, given: &Given<'_>) -> Result<(), Refusal> {
    match (app.services.config.approval, given) {
        (ApprovalMode::Pin | ApprovalMode::Link, Given::Pin(_)) | (ApprovalMode::Passkey, Given::Passkey(_)) => Ok(()),
        (ApprovalMode::Pin | ApprovalMode::Link, Given::Passkey(_)) | (ApprovalMode::Passkey, Given::Pin(_)) => {
            Err(Refusal::Approve(ApproveError::Method))
        }
    }
}
