//! Why a request got no page, and how that is said.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::page;
use super::passkey::PasskeyError;
use super::pin::{self, PinError};
use super::session::SessionError;
use crate::account::AccountsError;
use crate::outbox::{ApproveError, HoldError, RevokeError};
use crate::store::StoreError;

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("another Host")]
    Host,
    #[error("another Origin")]
    Origin,
    #[error("from another site")]
    CrossSite { path: Option<String> },
    #[error("no such method")]
    Method,
    #[error("asked for before anyone wanted it")]
    Speculative,
    #[error("not signed in")]
    NotSignedIn { next: Option<String> },
    #[error("the form is not of this sign-in")]
    Csrf,
    #[error("the form can't be read")]
    Form,
    #[error("the request is too large")]
    TooLarge,
    #[error("the request came too slowly")]
    TooSlow,
    #[error("no such page")]
    NotFound,
    #[error("not from this machine")]
    NotLocal,
    #[error("wrong address or PIN")]
    SignIn,
    #[error("{0}")]
    Pin(#[from] PinError),
    #[error("{0}")]
    Passkey(#[from] PasskeyError),
    #[error("the page's challenge is used or too old")]
    Ticket,
    #[error("a message is not for a batch")]
    NotForBatch,
    #[error("{0}")]
    Approve(#[from] ApproveError),
    #[error("{0}")]
    Hold(#[from] HoldError),
    #[error("{0}")]
    Accounts(#[from] AccountsError),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("the stored octets are not the ones that were submitted")]
    Octets,
    #[error("{0}")]
    Internal(String),
    /// Another refusal, met while deciding about one message.
    #[error("{why}")]
    At { path: String, why: Box<Refusal> },
}

impl From<RevokeError> for Refusal {
    fn from(error: RevokeError) -> Refusal {
        match error {
            RevokeError::Accounts(e) => e.into(),
            RevokeError::Hold(e) => e.into(),
        }
    }
}

impl Refusal {
    /// Leads back to the message at `path`, where the message is known to be.
    pub(super) fn at(self, path: &str) -> Refusal {
        match self {
            Refusal::NotFound | Refusal::At { .. } => self,
            why => Refusal::At { path: path.to_owned(), why: Box::new(why) },
        }
    }

    /// Until when nothing is checked.
    fn locked_until(&self) -> Option<i64> {
        match self {
            Refusal::Pin(PinError::Locked { until }) => Some(*until),
            Refusal::At { why, .. } => why.locked_until(),
            _ => None,
        }
    }
}

impl From<SessionError> for Refusal {
    fn from(error: SessionError) -> Refusal {
        match error {
            SessionError::NoPin => Refusal::SignIn,
            SessionError::Random(why) => Refusal::Internal(why),
            SessionError::Store(error) => Refusal::Store(error),
        }
    }
}

/// What is said outside: status, heading, sentence.
type Said = (StatusCode, &'static str, String);

impl Refusal {
    fn said(&self) -> Said {
        let broken = || {
            let text = "Something failed on our side; nothing was approved by this request. The log says more.";
            (StatusCode::SERVICE_UNAVAILABLE, "That didn't work", text.to_owned())
        };
        match self {
            Refusal::At { why, .. } => why.said(),
            Refusal::Host => (
                StatusCode::MISDIRECTED_REQUEST,
                "Another address",
                "These pages answer only to the address that Tollgate is configured with.".into(),
            ),
            Refusal::Origin => {
                (StatusCode::FORBIDDEN, "Not from our page", "The form was not sent from a page of Tollgate.".into())
            }
            Refusal::CrossSite { .. } => (
                StatusCode::FORBIDDEN,
                "From another site",
                "Another site led here. Open the page from here if you meant to.".into(),
            ),
            Refusal::Method => {
                (StatusCode::METHOD_NOT_ALLOWED, "Not like that", "This page doesn't know that method.".into())
            }
            Refusal::Speculative => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Not ahead of time",
                "This page is made only when a person asks for it.".into(),
            ),
            Refusal::NotSignedIn { .. } => {
                (StatusCode::FORBIDDEN, "Sign in first", "Held mail is shown only after signing in.".into())
            }
            Refusal::Csrf => (
                StatusCode::FORBIDDEN,
                "An old form",
                "The form belongs to another sign-in. Open the page again; nothing was changed.".into(),
            ),
            Refusal::Form => (StatusCode::BAD_REQUEST, "Unreadable form", "Nothing was changed.".into()),
            Refusal::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "Too large", "Nothing was changed.".into()),
            Refusal::TooSlow => (StatusCode::REQUEST_TIMEOUT, "Too slow", "Nothing was changed.".into()),
            Refusal::NotFound => (StatusCode::NOT_FOUND, "Nothing here", "There is no such page.".into()),
            Refusal::NotLocal => (StatusCode::FORBIDDEN, "Not from here", "Only this machine may read that.".into()),
            Refusal::SignIn => (StatusCode::FORBIDDEN, "Not signed in", "The address or the PIN is wrong.".into()),
            Refusal::Pin(error) => said_of_pin(error).unwrap_or_else(broken),
            Refusal::Passkey(error) => said_of_passkey(error).unwrap_or_else(broken),
            Refusal::Ticket => (
                StatusCode::CONFLICT,
                "The page is too old",
                "Nothing was changed: its challenge was used or has ended. Open the page again.".into(),
            ),
            Refusal::NotForBatch => (
                StatusCode::CONFLICT,
                "Not in a batch",
                "Nothing was sent: one of these messages has to be read by itself, or was decided. Open the list again."
                    .into(),
            ),
            Refusal::Approve(error) => said_of_approve(error).unwrap_or_else(broken),
            Refusal::Hold(error) => said_of_hold(error).unwrap_or_else(broken),
            Refusal::Accounts(AccountsError::NoKey(_) | AccountsError::NoAccount(_)) => {
                (StatusCode::NOT_FOUND, "No such key", "This account has no such key.".into())
            }
            Refusal::Octets => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "The stored message was changed",
                "Its octets are not the ones that were submitted, so it can't be shown or approved. Deny it at the console.".into(),
            ),
            Refusal::Accounts(
                AccountsError::Name
                | AccountsError::NoSecret(_)
                | AccountsError::TooMany
                | AccountsError::NotAgent(_)
                | AccountsError::Grant(_)
                | AccountsError::Random(_)
                | AccountsError::Store(_),
            )
            | Refusal::Store(_)
            | Refusal::Internal(_) => broken(),
        }
    }
}

fn said_of_pin(error: &PinError) -> Option<Said> {
    Some(match error {
        PinError::NotSet(_) => (
            StatusCode::FORBIDDEN,
            "No PIN is set",
            "Set one at the console with: tollgate pin set. Until then nothing can be approved.".into(),
        ),
        PinError::Wrong { left } => {
            let text =
                format!("That is not the PIN. Nothing was changed. {left} more before it is locked for a while.");
            (StatusCode::FORBIDDEN, "Wrong PIN", text)
        }
        PinError::Locked { until } => {
            let minutes = (until - pin::now()).max(0) / 60 + 1;
            let text = format!(
                "Too many wrong PINs. No PIN is checked for {minutes} more minute(s). Nothing was changed. \
                 If it wasn't you, someone on this machine is guessing."
            );
            (StatusCode::TOO_MANY_REQUESTS, "Locked", text)
        }
        PinError::Shape => (StatusCode::FORBIDDEN, "Wrong PIN", "That is not the PIN. Nothing was changed.".into()),
        PinError::Failed(_) | PinError::Store(_) => return None,
    })
}

fn said_of_passkey(error: &PasskeyError) -> Option<Said> {
    let (status, heading) = match error {
        PasskeyError::Proof(_) => (StatusCode::FORBIDDEN, "Not with this passkey"),
        PasskeyError::NoCode => (StatusCode::FORBIDDEN, "Not this code"),
        PasskeyError::TooMany | PasskeyError::Exists | PasskeyError::Name => (StatusCode::CONFLICT, "Not registered"),
        PasskeyError::NotFound => (StatusCode::NOT_FOUND, "No such passkey"),
        PasskeyError::Random(_) | PasskeyError::Store(_) | PasskeyError::Hold(_) => return None,
    };
    Some((status, heading, format!("Nothing was changed: {error}.")))
}

fn said_of_approve(error: &ApproveError) -> Option<Said> {
    let (status, heading) = match error {
        ApproveError::NotFound => (StatusCode::NOT_FOUND, "Nothing here"),
        ApproveError::NotHeld(_) => (StatusCode::CONFLICT, "Already decided"),
        ApproveError::Stale => (StatusCode::CONFLICT, "The page is too old"),
        ApproveError::HashDiffers => (StatusCode::CONFLICT, "Not what was shown"),
        ApproveError::KeyRevoked => (StatusCode::CONFLICT, "The key was revoked"),
        ApproveError::NoAccount => (StatusCode::NOT_FOUND, "No such account"),
        ApproveError::Method => (StatusCode::FORBIDDEN, "Another proof is needed"),
        ApproveError::Proof(_) => (StatusCode::FORBIDDEN, "Not with this passkey"),
        ApproveError::Store(_) => return None,
    };
    Some((status, heading, format!("Nothing was sent by this: {error}.")))
}

fn said_of_hold(error: &HoldError) -> Option<Said> {
    let (status, heading) = match error {
        HoldError::NotFound => (StatusCode::NOT_FOUND, "Nothing here"),
        HoldError::Illegal(_) => (StatusCode::CONFLICT, "Already decided"),
        HoldError::KeyRevoked => (StatusCode::CONFLICT, "The key was revoked"),
        HoldError::NoAccount => (StatusCode::NOT_FOUND, "No such account"),
        HoldError::Again(_) => (StatusCode::CONFLICT, "Held again already"),
        HoldError::TooMany(_)
        | HoldError::TooManyOctets(_)
        | HoldError::Crowded
        | HoldError::NeverFits(_)
        | HoldError::LostLease
        | HoldError::Witness(_)
        | HoldError::Identity(_)
        | HoldError::Random(_)
        | HoldError::Store(_) => return None,
    };
    Some((status, heading, format!("Nothing was changed: {error}.")))
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, heading, text) = self.said();
        if status.is_server_error() {
            tracing::error!(why = %self, "page failed");
        } else {
            tracing::info!(why = %self, status = status.as_u16(), "page refused");
        }
        let link = match &self {
            Refusal::NotSignedIn { next: Some(next) } => (format!("/sign-in?next={next}"), "Sign in"),
            Refusal::NotSignedIn { next: None } | Refusal::SignIn => ("/sign-in".to_owned(), "Sign in"),
            Refusal::CrossSite { path: Some(path) } => (path.clone(), "Open the page"),
            Refusal::At { path, .. } => (path.clone(), "Open the message again"),
            _ => ("/".to_owned(), "Held messages"),
        };
        let html = page::notice(heading, &text, &link.0, link.1);
        let mut response = (status, axum::response::Html(html)).into_response();
        if let Some(until) = self.locked_until() {
            let seconds = HeaderValue::from((until - pin::now()).max(1));
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        if matches!(self, Refusal::Method) {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        }
        response
    }
}
