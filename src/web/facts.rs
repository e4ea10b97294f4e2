//! What the gateway knows beside a message: whom the person wrote to before,
//! and what it answers.
//!
//! Promises: a recipient counts as known where people wrote to it, or where
//! a person approved mail to it that was sent; what an agent asked for and
//! nobody approved is no evidence. Doesn't know: whether that makes it right.

use std::collections::HashSet;

use super::Services;
use super::refusal::Refusal;
use crate::account::AccountId;
use crate::lane::trace::Trace;
use crate::mail::address::Address;
use crate::mail::mime::MessageView;
use crate::outbox::Hold;
use crate::perceive::CorrespondentRecord;
use crate::store::{self, Reader, StoreError, Table};

/// Message-IDs of In-Reply-To that are looked up.
const MAX_ANSWERED: usize = 4;

/// What is known beside one hold.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Recipients that are known, as the envelope has them.
    pub(super) known: HashSet<String>,
    /// What it says it answers.
    pub(super) answers: Vec<Answered>,
}

/// One Message-ID that a message answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) id: String,
    /// When it was seen and from whom, where it was.
    pub(super) seen: Option<(i64, String)>,
}

/// Key in [`Table::Correspondent`], as `imap` lays it out.
pub(crate) fn correspondent_key(account: &AccountId, canonical: &str) -> Vec<u8> {
    format!("{account}\0{canonical}").into_bytes()
}

/// Key in [`Table::DecisionIndex`], as `imap` lays it out.
pub(crate) fn message_key(account: &AccountId, message_id: &str) -> Vec<u8> {
    format!("mid\0{account}\0{message_id}").into_bytes()
}

/// What is known beside `hold`.
pub(super) fn of(services: &Services, hold: &Hold, view: &MessageView) -> Result<Facts, Refusal> {
    let account = &hold.account;
    let answered: Vec<String> = view
        .field("In-Reply-To")
        .unwrap_or_default()
        .split_whitespace()
        .take(MAX_ANSWERED)
        .map(str::to_owned)
        .collect();
    let paths: Vec<&str> = hold.envelope.forward_paths.iter().map(|p| p.as_str()).collect();
    let mut known = HashSet::new();
    for path in &paths {
        if services.outbox.was_sent_to(account, path)? {
            known.insert((*path).to_owned());
        }
    }
    let facts = store::read(services.store.as_ref(), |r| -> Result<Facts, StoreError> {
        let mut facts = Facts { known: known.clone(), ..Facts::default() };
        for path in &paths {
            if wrote_to(r, account, path)? {
                facts.known.insert((*path).to_owned());
            }
        }
        for id in &answered {
            facts.answers.push(Answered { id: id.clone(), seen: seen(r, account, id)? });
        }
        Ok(facts)
    })?;
    Ok(facts)
}

fn wrote_to(r: &dyn Reader, account: &AccountId, path: &str) -> Result<bool, StoreError> {
    let Ok(address) = Address::parse(path) else { return Ok(false) };
    let key = correspondent_key(account, &address.canonical());
    let record: Option<CorrespondentRecord> = store::get_json(r, Table::Correspondent, &key)?;
    Ok(record.is_some_and(|r| r.sent_to > 0))
}

fn seen(r: &dyn Reader, account: &AccountId, id: &str) -> Result<Option<(i64, String)>, StoreError> {
    let bare = id.trim_start_matches('<').trim_end_matches('>');
    for form in [bare.to_owned(), format!("<{bare}>")] {
        let Some(decision) = r.get(Table::DecisionIndex, &message_key(account, &form))? else { continue };
        let key = [account.as_str().as_bytes(), b"\0", &decision].concat();
        if let Some(trace) = store::get_json::<Trace>(r, Table::Decision, &key)? {
            return Ok(Some((trace.time, trace.from.unwrap_or_default())));
        }
    }
    Ok(None)
}
