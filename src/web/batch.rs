//! Several messages with one proof.
//!
//! Promises: only messages without a warning, an attachment or a new
//! recipient, and that is asked again when they are approved; each has been
//! shown in full with a nonce of its own, and is approved under its own
//! payload hash; a passkey's answer is for exactly these payloads. One that
//! can't be approved stops none of the others. Doesn't know: what they say.

use std::sync::Arc;

use axum::extract::{Extension, Form, FromRequest, Request, State};
use axum::http::Uri;
use axum::response::{Html, IntoResponse, Response};

use super::acts::to_the_end;
use super::facts;
use super::page::batch::Item;
use super::page::reading::Reading;
use super::proof::{self, Given};
use super::refusal::Refusal;
use super::session::Session;
use super::{App, held, page, views};
use crate::account::AccountId;
use crate::config::ApprovalMode;
use crate::floor::action::Action;
use crate::floor::passkey::{MAX_BATCH, batch_challenge};
use crate::floor::payload::{PIN, PayloadHash};
use crate::floor::submission::State as HoldState;
use crate::mail::mime::MessageView;
use crate::outbox::{ApproveError, Hold, HoldId, Proof};

/// Held messages that are looked at when a batch is put together.
const MAX_LOOKED_AT: usize = 50;
/// Largest message of a batch, in octets: each is shown in full.
const MAX_OCTETS: u64 = 64 * 1024;

/// A form's fields, in order.
type Fields = Vec<(String, String)>;

/// Reads a hold for a batch; `None` where it must be read by itself.
async fn calm(app: &Arc<App>, hold: &Hold) -> Result<Option<(MessageView, Reading)>, Refusal> {
    let plain = hold.action == Action::SendEmail && hold.lineage.is_none();
    // What removes messages is read by itself.
    if hold.state != HoldState::Held || !hold.action.sends() || hold.length > MAX_OCTETS || !plain {
        return Ok(None);
    }
    let view = held::view(app, hold).await?;
    let facts = facts::of(&app.services, hold, &view)?;
    let reading = Reading::of(&app.services.accounts, hold, &view, &facts);
    Ok(reading.is_calm(&view).then_some((view, reading)))
}

/// With `id`s in the query: these messages in full, and the form that
/// approves them. Without: the choice.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let query = axum::extract::Query::<Fields>::try_from_uri(&uri).map_err(|_| Refusal::Form)?;
    let ids: Vec<&String> = query.0.iter().filter(|(name, _)| name == "id").map(|(_, id)| id).collect();
    if ids.is_empty() {
        let mut holds = app.services.outbox.pending(&session.account, MAX_LOOKED_AT)?.holds;
        holds.retain(|h| h.state == HoldState::Held);
        let mut eligible = Vec::new();
        for hold in holds {
            if calm(&app, &hold).await?.is_some() {
                eligible.push(hold);
            }
        }
        return Ok(Html(page::batch::choice(&views::frame(&app, &session)?, &eligible).into_string()).into_response());
    }
    if ids.len() > MAX_BATCH {
        return Err(Refusal::NotForBatch);
    }
    let method = match app.services.config.approval {
        ApprovalMode::Link => PIN,
        mode @ (ApprovalMode::Pin | ApprovalMode::Passkey) => mode.method(),
    };
    let mut items = Vec::new();
    for id in ids {
        let hold = views::own(&app, &session, id)?;
        let (view, reading) = calm(&app, &hold).await?.ok_or(Refusal::NotForBatch)?;
        let shown = app.services.outbox.show_for(&session.account, &hold.id, session.account.as_str(), method).await?;
        items.push(Item { shown, view, reading });
    }
    items.sort_by_key(|i| i.shown.hash);
    items.dedup_by(|a, b| a.shown.hold.id == b.shown.hold.id);
    let challenge = batch_challenge(&items.iter().map(|i| i.shown.hash).collect::<Vec<_>>());
    let frame = views::frame(&app, &session)?;
    Ok(views::deciding(&app, page::batch::page(&frame, &items, &challenge)))
}

/// One message of the form: `ID:NONCE:HASH`.
struct Chosen {
    hold: HoldId,
    nonce: String,
    hash: PayloadHash,
}

fn chosen(text: &str) -> Option<Chosen> {
    let mut parts = text.split(':');
    let (hold, nonce, hash) = (parts.next()?, parts.next()?, parts.next()?);
    let chosen = Chosen { hold: HoldId::parse(hold)?, nonce: nonce.to_owned(), hash: hash.parse().ok()? };
    parts.next().is_none().then_some(chosen)
}

/// The one value of a field; `None` where it is missing.
fn one<'a>(fields: &'a Fields, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut values = fields.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str());
    let value = values.next();
    if values.next().is_some() { Err(Refusal::Form) } else { Ok(value) }
}

/// Approves each message of the form.
pub(super) async fn approve(
    State(app): State<Arc<App>>,
    Extension(session): Extension<Session>,
    request: Request,
) -> Result<Response, Refusal> {
    let form = Form::<Fields>::from_request(request, &()).await;
    let Form(fields) = form.map_err(|_| Refusal::Form)?;
    if fields.iter().any(|(n, _)| !["csrf", "pin", "assertion", "item"].contains(&n.as_str())) {
        return Err(Refusal::Form);
    }
    to_the_end(async move {
        super::forms::check_csrf(&session, one(&fields, "csrf")?.unwrap_or_default())?;
        let items: Option<Vec<Chosen>> =
            fields.iter().filter(|(n, _)| n == "item").map(|(_, text)| chosen(text)).collect();
        let items = items.filter(|i| (1..=MAX_BATCH).contains(&i.len())).ok_or(Refusal::Form)?;
        let given = Given::of(one(&fields, "pin")?, one(&fields, "assertion")?)?;
        proof::decides(&app, &given)?;
        let hashes = ready(&app, &session.account, &items).await?;
        let proof = match proof::check(&app, &session.account, given, &batch_challenge(&hashes)).await? {
            Proof::Passkey(mut assertion) => {
                assertion.batch = hashes;
                Proof::Passkey(assertion)
            }
            other @ (Proof::Pin | Proof::Link) => other,
        };
        let (account, mut done) = (&session.account, Vec::new());
        for item in items {
            let outbox = &app.services.outbox;
            let hash = item.hash.to_string();
            let said =
                outbox.approve_with(account, &item.hold, &item.nonce, &hash, account.as_str(), proof.clone()).await;
            done.push((item.hold, said.map(drop)));
        }
        Ok(Html(page::batch::done(&views::frame(&app, &session)?, &done).into_string()).into_response())
    })
    .await
}

/// The hashes of a batch, ascending, where every message may be in one and is
/// still what was shown.
async fn ready(app: &Arc<App>, account: &AccountId, items: &[Chosen]) -> Result<Vec<PayloadHash>, Refusal> {
    let mut hashes = Vec::new();
    for item in items {
        let hold = app.services.outbox.get(account, &item.hold)?.ok_or(Refusal::NotFound)?;
        calm(app, &hold).await?.ok_or(Refusal::NotForBatch)?;
        let shown = app.services.outbox.shown(account, &item.hold, &item.nonce, account.as_str())?;
        let shown = shown.ok_or(Refusal::Approve(ApproveError::Stale))?;
        if shown.hash != item.hash {
            return Err(Refusal::Approve(ApproveError::HashDiffers));
        }
        hashes.push(item.hash);
    }
    hashes.sort();
    let many = hashes.len();
    hashes.dedup();
    if hashes.len() == many { Ok(hashes) } else { Err(Refusal::Form) }
}
