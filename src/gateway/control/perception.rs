//! What the console asks of lanes: pins, Sent, replays, reviews.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ControlError;
use super::execute::{account_of, to_value};
use crate::account::AccountId;
use crate::gateway::core::Core;
use crate::gateway::replay;
use crate::imap::perceiving::now;
use crate::imap::pins;
use crate::lane::{Lane, Thresholds};
use crate::mail::address::Address;

/// The accounts that are asked about.
fn accounts(core: &Core, named: Option<&str>) -> Result<Vec<AccountId>, ControlError> {
    match named {
        Some(text) => Ok(vec![account_of(core, text)?]),
        None => Ok(core.accounts.ids()),
    }
}

pub(super) async fn pin(core: &Core, account: &str, address: &str, lane: Option<Lane>) -> Result<Value, ControlError> {
    let account = account_of(core, account)?;
    let parsed = Address::parse(address).map_err(|_| ControlError::Invalid(format!("{address:?} is no address")))?;
    let address = parsed.canonical();
    let changed = pins::set(core.store.as_ref(), &account, &address, lane, now()).await?;
    if !changed && lane.is_none() {
        return Err(ControlError::Invalid(format!("{address} is not pinned")));
    }
    Ok(json!({ "account": account, "address": address, "lane": lane, "changed": changed }))
}

pub(super) fn pins(core: &Core, account: Option<&str>) -> Result<Value, ControlError> {
    let mut list = Vec::new();
    for account in accounts(core, account)? {
        let pinned = pins::list(core.store.as_ref(), &account)?;
        list.extend(pinned.into_iter().map(|p| json!({ "account": account, "address": p.address, "lane": p.lane })));
    }
    Ok(json!({ "pins": list }))
}

pub(super) async fn undo_pin(core: &Core, account: &str, id: &str) -> Result<Value, ControlError> {
    let account = account_of(core, account)?;
    pins::undo(core.store.as_ref(), &account, id).await.map_err(|e| match e {
        pins::PinError::Store(e) => ControlError::Store(e),
        e @ (pins::PinError::Unknown | pins::PinError::Later(_)) => ControlError::Invalid(e.to_string()),
    })?;
    Ok(json!({ "undone": id }))
}

pub(super) async fn sent_read(core: &Core, account: &str) -> Result<Value, ControlError> {
    let account = account_of(core, account)?;
    let look = core.sent_read.get().ok_or(ControlError::NotRunning("reading Sent"))?;
    to_value(&look(account, false).await.map_err(ControlError::Failed)?)
}

/// History is read while no agent can have written any of it. The key is made
/// in any case: without history senders are unavailable, which hides nothing.
pub(super) async fn before_the_first_agent(core: &Core, account: &AccountId) {
    let Some(look) = core.sent_read.get() else { return };
    match look(account.clone(), true).await {
        Ok(Some(found)) => tracing::info!(
            account = %account, messages = found.read, correspondents = found.correspondents, "Sent was read"
        ),
        Ok(None) => {}
        Err(e) => tracing::warn!(account = %account, "Sent was not read: {e}"),
    }
}

/// The configured thresholds with some changed, by their names in `[rule]`.
fn changed(base: &Thresholds, changes: &BTreeMap<String, f64>) -> Result<Thresholds, ControlError> {
    let mut value = to_value(base)?;
    let Some(fields) = value.as_object_mut() else { return Ok(base.clone()) };
    for (name, new) in changes {
        let known = fields.keys().cloned().collect::<Vec<_>>().join(", ");
        let number = serde_json::Number::from_f64(*new);
        let (Some(field), Some(number)) = (fields.get_mut(name), number) else {
            return Err(ControlError::Invalid(format!("{name} = {new} is no threshold; they are {known}")));
        };
        *field = Value::Number(number);
    }
    let thresholds: Thresholds = serde_json::from_value(value).map_err(|e| ControlError::Failed(e.to_string()))?;
    thresholds.check().map_err(|reasons| ControlError::Invalid(reasons.join("; ")))?;
    Ok(thresholds)
}

pub(super) async fn replay(
    core: &Core,
    account: Option<&str>,
    changes: &BTreeMap<String, f64>,
) -> Result<Value, ControlError> {
    let thresholds = changed(&core.config.thresholds, changes)?;
    let (accounts, store) = (accounts(core, account)?, core.store.clone());
    // It reads for as long as a second; sessions go on meanwhile.
    let work = tokio::task::spawn_blocking(move || replay::replay(store.as_ref(), &accounts, &thresholds));
    to_value(&work.await.map_err(|e| ControlError::Failed(e.to_string()))??)
}

pub(super) async fn canary(core: &Core, account: Option<&str>, last: usize) -> Result<Value, ControlError> {
    let (accounts, store) = (accounts(core, account)?, core.store.clone());
    let work = tokio::task::spawn_blocking(move || replay::doubts(store.as_ref(), &accounts, last));
    let (found, list) = work.await.map_err(|e| ControlError::Failed(e.to_string()))??;
    Ok(json!({ "found": found, "canary": list }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::control::names;

    #[test]
    fn thresholds_are_changed_by_name_and_checked() {
        let base = Thresholds::default();
        let one = |name: &str, value: f64| changed(&base, &BTreeMap::from([(name.to_owned(), value)]));
        assert!((one("push_urgency", 0.8).unwrap().push_urgency - 0.8).abs() < 1e-9);
        for (name, value, says) in [
            ("push_urgncy", 0.8, "push_urgency"),
            ("confidence_min", 0.0, "uncertain"),
            ("push_urgency", f64::NAN, "no threshold"),
        ] {
            let e = one(name, value).unwrap_err();
            assert!(e.name() == names::INVALID && e.to_string().contains(says), "{e}");
        }
    }
}
