//! What each request does.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{CONSOLE, ControlError, Request, Which, perception};
use crate::account::grants::VERBS;
use crate::account::{AccountId, AccountsError, Change, Grant, GrantError, Grants, KeyId, Role, Verb};
use crate::config::AccountConfig;
use crate::floor::identity::to_text;
use crate::floor::ledger::{self, Event, LedgerHead};
use crate::gateway::core::{BackfillRequest, Core};
use crate::imap::{measured, pins, rows};
use crate::lane::trace::Trace;
use crate::outbox::{Hold, HoldId};
use crate::store::{self, Reader, StoreError, Table, Writer};
use crate::web::{passkey, pin};

/// Most ledger entries of one answer.
const MAX_ENTRIES: usize = 1000;
/// Pairs read from the store at once.
const SCAN_PAGE: usize = 256;
/// Most corrections of one answer.
const MAX_CORRECTIONS: usize = 10_000;
/// Longest reason of a denial, in characters.
const MAX_REASON_CHARS: usize = 200;

/// Runs a request.
pub async fn execute(core: &Core, request: Request) -> Result<Value, ControlError> {
    match request {
        Request::KeyAdd { account, role, name } => key_add(core, &account, role, &name).await,
        Request::KeyList { account } => {
            let account = account.map(|a| account_of(core, &a)).transpose()?;
            Ok(json!({ "keys": core.accounts.list_keys(account.as_ref()) }))
        }
        Request::KeyRevoke { id } => key_revoke(core, &id).await,
        Request::KeyShow { id } => key_show(core, &id),
        Request::KeyGrant { id, changes } => key_grant(core, &id, &changes).await,
        Request::HeldList { account, all, limit } => held_list(core, account.as_deref(), all, limit),
        Request::HeldShow { id } => Ok(hold_json(&find_hold(core, &id)?)),
        Request::HeldMessage { id } => held_message(core, &id),
        Request::HeldDeny { id, reason } => held_deny(core, &id, &reason).await,
        Request::HeldResend { id } => held_resend(core, &id).await,
        Request::ReceiptExport { hold } => receipt_export(core, &hold),
        Request::LedgerVerify { head } => ledger_verify(core, head.as_deref()),
        Request::LedgerHead => Ok(json!({ "head": core.outbox.ledger_head()?.map(|h| h.to_string()) })),
        Request::LedgerList { from, limit } => {
            Ok(json!({ "entries": core.outbox.ledger(from, limit.min(MAX_ENTRIES))? }))
        }
        Request::IdentityRotate => identity_rotate(core).await,
        Request::PinSet { account, pin } => pin_set(core, &account, &pin.0).await,
        Request::ApproverCode { account } => approver_code(core, &account).await,
        Request::ApproverList { account } => approver_list(core, account.as_deref()),
        Request::ApproverRemove { account, credential } => approver_remove(core, &account, &credential).await,
        Request::Explain { which } => explain(core, &which),
        Request::Backfill { account, last, dry_run } => {
            let account = account_of(core, &account)?;
            let backfill = core.backfill.get().ok_or(ControlError::NotRunning("backfill"))?;
            backfill(BackfillRequest { account, last, dry_run }).await.map_err(ControlError::Failed)
        }
        Request::Lengths => lengths(core),
        Request::Mirror { account } => {
            let account = account_of(core, &account)?;
            let mirror = core.mirror.get().ok_or(ControlError::NotRunning("doctor"))?;
            mirror(account).await.map_err(ControlError::Failed)
        }
        // It takes the connection that it came on.
        Request::Face { .. } => Err(ControlError::NotRunning("doctor")),
        Request::CorrectionsList => corrections(core),
        Request::SentRead { account } => perception::sent_read(core, &account).await,
        Request::PinSender { account, address, lane } => perception::pin(core, &account, &address, Some(lane)).await,
        Request::PinList { account } => perception::pins(core, account.as_deref()),
        Request::PinRemove { account, address } => perception::pin(core, &account, &address, None).await,
        Request::Replay { account, thresholds } => perception::replay(core, account.as_deref(), &thresholds).await,
        Request::Canary { account, last } => perception::canary(core, account.as_deref(), last).await,
        Request::CorrectionsUndo { account, id } if pins::is_pin(&id) => {
            perception::undo_pin(core, &account, &id).await
        }
        Request::CorrectionsUndo { account, id } => {
            let account = account_of(core, &account)?;
            let undo = core.undo.get().ok_or(ControlError::NotRunning("corrections undo"))?;
            undo(account, id.clone()).await.map_err(ControlError::Failed)?;
            Ok(json!({ "undone": id }))
        }
    }
}

pub(super) fn account_of(core: &Core, text: &str) -> Result<AccountId, ControlError> {
    core.accounts.find(text).ok_or_else(|| ControlError::NoAccount(text.to_owned()))
}

async fn key_add(core: &Core, account: &str, role: Role, name: &str) -> Result<Value, ControlError> {
    let account = account_of(core, account)?;
    if role == Role::Agent {
        perception::before_the_first_agent(core, &account).await;
    }
    let text = zeroize::Zeroizing::new(core.accounts.add_key(&account, role, name).await?);
    let info = core.accounts.key_info(&text).ok_or_else(|| ControlError::Failed("the new key is gone".to_owned()))?;
    let role_name = match role {
        Role::Person => "person",
        Role::Agent => "agent",
    };
    let event = Event::KeyAdded { account: account.to_string(), key: info.id.to_string(), role: role_name.to_owned() };
    if let Err(e) = core.outbox.record(event).await {
        // A key that the ledger doesn't know must not open anything.
        core.accounts.revoke(&info.id).await?;
        return Err(e.into());
    }
    Ok(json!({ "key": text.as_str(), "id": info.id, "account": info.account, "role": info.role, "name": info.name }))
}

async fn key_revoke(core: &Core, id: &str) -> Result<Value, ControlError> {
    let info = core.outbox.revoke_key(&KeyId(id.into()), None).await?;
    to_value(&info)
}

/// What a key may do, everywhere and in the mailboxes that have grants of
/// their own.
fn key_show(core: &Core, id: &str) -> Result<Value, ControlError> {
    let info = core.accounts.key(&KeyId(id.into())).ok_or_else(|| AccountsError::NoKey(id.to_owned()))?;
    let grants = info.grants();
    let of = |verbs: &[Verb], grant: &dyn Fn(Verb) -> Grant| -> Value {
        verbs
            .iter()
            .map(|v| (v.name().to_owned(), Value::from(grant(*v).name())))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let per_mailbox: Vec<Verb> = VERBS.into_iter().filter(|v| v.is_per_mailbox()).collect();
    let mailboxes: serde_json::Map<String, Value> = match &grants {
        Grants::Person => serde_json::Map::new(),
        Grants::Agent(agent) => {
            let names = agent.mailboxes.keys();
            names.map(|name| (name.clone(), of(&per_mailbox, &|verb| agent.of_in(verb, name)))).collect()
        }
    };
    let mut key = to_value(&info)?;
    if let Some(fields) = key.as_object_mut() {
        fields.remove("grants");
    }
    Ok(json!({ "key": key, "everywhere": of(&VERBS, &|verb| grants.of(verb)), "mailboxes": mailboxes }))
}

async fn key_grant(core: &Core, id: &str, changes: &[String]) -> Result<Value, ControlError> {
    let changes: Result<Vec<Change>, GrantError> = changes.iter().map(|c| c.parse()).collect();
    let changes = changes.map_err(AccountsError::from)?;
    let info = core.accounts.set_grants(&KeyId(id.into()), &changes).await?;
    let event = Event::GrantsChanged {
        account: info.account.to_string(),
        key: info.id.to_string(),
        changes: changes.iter().map(ToString::to_string).collect(),
    };
    core.outbox.record(event).await?;
    key_show(core, id)
}

fn held_list(core: &Core, account: Option<&str>, all: bool, limit: Option<usize>) -> Result<Value, ControlError> {
    let accounts = match account {
        Some(text) => vec![account_of(core, text)?],
        None => core.accounts.ids(),
    };
    let (mut holds, mut more) = (Vec::new(), 0);
    let most = limit.unwrap_or(usize::MAX);
    for account in accounts {
        let mut listed = core.outbox.pending(&account, most)?;
        if all {
            listed.holds = core.outbox.recent(&account, most)?;
            listed.holds.drain(..listed.holds.len().saturating_sub(most));
        } else {
            more += listed.all - listed.holds.len();
        }
        holds.extend(listed.holds.iter().map(hold_json));
    }
    Ok(json!({ "holds": holds, "more": more }))
}

fn find_hold(core: &Core, text: &str) -> Result<Hold, ControlError> {
    let none = || ControlError::NoHold(text.to_owned());
    let id = HoldId::parse(text).ok_or_else(none)?;
    for account in core.accounts.ids() {
        if let Some(hold) = core.outbox.get(&account, &id)? {
            return Ok(hold);
        }
    }
    Err(none())
}

fn hold_json(hold: &Hold) -> Value {
    json!({
        "id": hold.id,
        "account": hold.account,
        "state": hold.state.name(),
        "key": hold.key,
        "role": hold.role,
        "reason": hold.reason,
        "from": hold.envelope.reverse_path,
        "to": hold.envelope.forward_paths,
        "subject": hold.subject,
        "message_id": hold.message_id,
        "sha256": hold.blob,
        "length": hold.length,
        "held_at": hold.held_at,
        "expires_at": hold.expires_at,
        "changed_at": hold.changed_at,
        "attempt": hold.attempt,
        "next_attempt": hold.next_attempt,
        "detail": hold.detail,
        "approver": hold.approver,
        "again": hold.again,
    })
}

fn held_message(core: &Core, id: &str) -> Result<Value, ControlError> {
    let hold = find_hold(core, id)?;
    let mut octets = Vec::new();
    let file = core.outbox.open(&hold)?;
    file.take(core.config.max_message_bytes)
        .read_to_end(&mut octets)
        .map_err(|source| ControlError::File { path: hold.blob.to_string().into(), source })?;
    Ok(json!({ "base64": STANDARD.encode(octets) }))
}

async fn held_deny(core: &Core, id: &str, reason: &str) -> Result<Value, ControlError> {
    if reason.chars().count() > MAX_REASON_CHARS || reason.chars().any(char::is_control) {
        return Err(ControlError::Invalid(format!("a reason is one line of up to {MAX_REASON_CHARS} characters")));
    }
    let hold = find_hold(core, id)?;
    core.outbox.deny(&hold.account, &hold.id, reason, CONSOLE).await?;
    Ok(hold_json(&find_hold(core, id)?))
}

async fn held_resend(core: &Core, id: &str) -> Result<Value, ControlError> {
    let hold = find_hold(core, id)?;
    let again = core.outbox.resend_unknown(&hold.account, &hold.id, CONSOLE).await?;
    Ok(hold_json(&find_hold(core, again.as_str())?))
}

fn receipt_export(core: &Core, hold: &str) -> Result<Value, ControlError> {
    let hold = find_hold(core, hold)?;
    let receipt = core.outbox.receipt(&hold.id)?.ok_or_else(|| ControlError::NoReceipt(hold.id.to_string()))?;
    to_value(&receipt)
}

fn ledger_verify(core: &Core, head: Option<&str>) -> Result<Value, ControlError> {
    let head: Option<LedgerHead> = head
        .map(|text| text.parse().map_err(|e: ledger::NotAHead| ControlError::Invalid(e.to_string())))
        .transpose()?;
    let verdict = ledger::verify(core.outbox.whole_ledger()?, head)?;
    Ok(json!({
        "entries": verdict.entries,
        "head": verdict.head.map(|h| h.to_string()),
        "witnessed": verdict.witnessed,
        "tail_witnessed": verdict.tail_is_witnessed(),
        "text": verdict.to_string(),
    }))
}

async fn identity_rotate(core: &Core) -> Result<Value, ControlError> {
    core.outbox.rotate_key().await?;
    core.publish().map_err(|e| ControlError::Failed(e.to_string()))?;
    let keys: Vec<String> = core.outbox.verifying_keys().iter().map(to_text).collect();
    Ok(json!({ "keys": keys }))
}

async fn pin_set(core: &Core, account: &str, pin: &str) -> Result<Value, ControlError> {
    let account = account_of(core, account)?;
    if !core.accounts.account(&account).is_some_and(AccountConfig::stores_secret) {
        // The same reason as for keys.
        return Err(AccountsError::NoSecret(account).into());
    }
    let (fresh, owner) = (pin::prepare(pin).await?, account.clone());
    let set = move |w: &mut dyn Writer| -> Result<(), ControlError> { Ok(fresh.write(w, &owner)?) };
    core.outbox.change_approver(&account, Event::PinSet { account: account.to_string() }, set).await?;
    Ok(json!({ "account": account }))
}

async fn approver_code(core: &Core, account: &str) -> Result<Value, ControlError> {
    let account = account_of(core, account)?;
    let code = passkey::make_code(core.store.as_ref(), &account).await?;
    Ok(json!({ "account": account, "code": code, "seconds": passkey::CODE_SECONDS }))
}

fn approver_list(core: &Core, account: Option<&str>) -> Result<Value, ControlError> {
    let accounts = match account {
        Some(text) => vec![account_of(core, text)?],
        None => core.accounts.ids(),
    };
    let mut list = Vec::new();
    for account in accounts {
        list.extend(passkey::list(core.store.as_ref(), &account)?);
    }
    Ok(json!({ "approvers": list }))
}

async fn approver_remove(core: &Core, account: &str, credential: &str) -> Result<Value, ControlError> {
    let account = account_of(core, account)?;
    passkey::remove(&core.outbox, core.store.as_ref(), &account, credential, CONSOLE).await?;
    Ok(json!({ "account": account, "credential": credential }))
}

fn explain(core: &Core, which: &Which) -> Result<Value, ControlError> {
    let everywhere = || core.accounts.ids();
    let (trace, what) = match which {
        Which::Decision(id) => (newest(core, &everywhere(), |_, _| Ok(Some(id.clone())))?, id.clone()),
        Which::MessageId(id) => {
            // With its brackets or without.
            let bare = id.trim().trim_start_matches('<').trim_end_matches('>');
            let forms = [bare.to_owned(), format!("<{bare}>")];
            let found = newest(core, &everywhere(), |r, account| {
                for form in &forms {
                    if let Some(decision) = r.get(Table::DecisionIndex, &rows::by_message_id(account, form))? {
                        return Ok(Some(String::from_utf8_lossy(&decision).into_owned()));
                    }
                }
                Ok(None)
            })?;
            (found, id.clone())
        }
        Which::Place { account, mailbox, uid } => {
            let account = account_of(core, account)?;
            let locate = core.locate.get().ok_or(ControlError::NotRunning("explaining a UID"))?;
            let id = locate(&account, mailbox, *uid)?;
            (newest(core, &[account], |_, _| Ok(id.clone()))?, format!("UID {uid} of {mailbox}"))
        }
    };
    let trace = trace.ok_or(ControlError::NoDecision(what))?;
    Ok(json!({ "text": trace.explain(), "trace": trace }))
}

/// The newest of the decisions that `find` names, one for each account.
fn newest(
    core: &Core,
    accounts: &[AccountId],
    find: impl Fn(&dyn Reader, &AccountId) -> Result<Option<String>, StoreError>,
) -> Result<Option<Trace>, StoreError> {
    store::read(core.store.as_ref(), |r| {
        let mut newest: Option<Trace> = None;
        for account in accounts {
            let Some(id) = find(r, account)? else { continue };
            let key = [rows::account_prefix(account), id.into_bytes()].concat();
            let trace: Option<Trace> = store::get_json(r, Table::Decision, &key)?;
            newest = match (newest, trace) {
                (Some(a), Some(b)) => Some(if b.time > a.time { b } else { a }),
                (a, b) => a.or(b),
            };
        }
        Ok(newest)
    })
}

fn corrections(core: &Core) -> Result<Value, ControlError> {
    let mut list = Vec::new();
    each(core, Table::Correction, |key, value| {
        let value: Value = store::from_json(Table::Correction, value)?;
        // The key starts with the account; addresses hold no NUL.
        let account = key.split(|b| *b == 0).next().unwrap_or_default();
        let id = crate::imap::correct::id_of(key);
        list.push(json!({ "account": String::from_utf8_lossy(account), "id": id, "correction": value }));
        Ok(list.len() < MAX_CORRECTIONS)
    })?;
    Ok(json!({ "corrections": list }))
}

fn lengths(core: &Core) -> Result<Value, ControlError> {
    let mut list = Vec::new();
    for account in core.accounts.ids() {
        let mark = store::read::<_, StoreError>(core.store.as_ref(), |r| measured::mark_of(r, &account))?;
        list.extend(mark.map(|mark| json!({ "account": account.to_string(), "mark": mark })));
    }
    Ok(json!({ "lengths": list }))
}

/// Visits a table in pages until `visit` says no.
fn each(
    core: &Core,
    table: Table,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    let mut from = Vec::new();
    loop {
        let page = store::read(core.store.as_ref(), |r| r.scan(table, b"", &from, SCAN_PAGE))?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        from = last.iter().copied().chain([0]).collect();
        for (key, value) in &page {
            if !visit(key, value)? {
                return Ok(());
            }
        }
    }
}

pub(super) fn to_value(value: &impl serde::Serialize) -> Result<Value, ControlError> {
    serde_json::to_value(value).map_err(|e| ControlError::Failed(e.to_string()))
}
