//! How the mirror and the views are laid out in the store.
//!
//! Promises: keys of two accounts never share a prefix, UIDs sort as numbers.
//! Doesn't know: when a row is written.

use serde::{Deserialize, Serialize};

use crate::account::AccountId;
use crate::lane::Lane;
use crate::store::{Reader, StoreError, Table, from_json, get_json};

use super::lanes::Place;
use super::uid::{UpstreamUid, ViewUid};
use super::view::{Audience, Entry, View};

/// Rows read at once while loading.
const PAGE: usize = 4096;

/// A view of an account.
pub type ViewId = (Audience, Place);

/// What is stored of a message of the provider's INBOX.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MessageRow {
    /// RFC822.SIZE at the provider, in octets.
    pub size: u64,
    /// INTERNALDATE as the provider wrote it, without quotes.
    pub date: String,
    /// Where it is shown beside `Lanes/All`.
    pub place: Place,
    /// A person put it there: a change of the preset doesn't move it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_person: bool,
    /// The lane, where one was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// The stamp: ASCII header lines with CRLF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<String>,
    /// The decision's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Message-ID as it stands in the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
}

/// What is stored of a local message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LocalRow {
    /// What it is about; one local message per name.
    pub name: String,
    /// INTERNALDATE.
    pub date: String,
    /// The octets (ASCII).
    pub octets: String,
    /// Flags that people set.
    pub flags: Vec<String>,
}

/// What is stored of a view beside its entries.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ViewRow {
    /// UIDVALIDITY.
    pub uidvalidity: u32,
    /// UIDNEXT.
    pub next: ViewUid,
    /// First UID that no session was told of when the row was written. What
    /// sessions were told after that is not stored: a message that may not
    /// have been told counts as recent (RFC 3501 §2.3.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recent: Option<ViewUid>,
}

/// What is stored of a mirror.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct MirrorRow {
    /// The provider's UIDVALIDITY of INBOX.
    pub uidvalidity: u32,
}

/// Prefix of every key of an account. Addresses hold no NUL.
pub fn account_prefix(account: &AccountId) -> Vec<u8> {
    let mut key = account.as_str().as_bytes().to_vec();
    key.push(0);
    key
}

/// Key of the mirror's own row in [`Table::Meta`].
pub fn mirror_key(account: &AccountId) -> Vec<u8> {
    format!("mirror\0{account}").into_bytes()
}

/// Key of a message in [`Table::Mirror`].
pub fn message_key(account: &AccountId, uid: UpstreamUid) -> Vec<u8> {
    let mut key = account_prefix(account);
    key.extend(uid.get().to_be_bytes());
    key
}

/// Key of a local message in [`Table::Local`].
pub fn local_key(account: &AccountId, number: u32) -> Vec<u8> {
    let mut key = account_prefix(account);
    key.extend(number.to_be_bytes());
    key
}

/// Prefix of a view in [`Table::View`]; the prefix with UID 0 is its own row.
pub fn view_prefix(account: &AccountId, (audience, place): ViewId) -> Vec<u8> {
    let mut key = account_prefix(account);
    key.push(audience.code());
    key.push(place.code());
    key
}

/// Key of the view's own row.
pub fn view_key(account: &AccountId, view: ViewId) -> Vec<u8> {
    let mut key = view_prefix(account, view);
    key.extend([0; 4]);
    key
}

/// Key of a view entry.
pub fn entry_key(account: &AccountId, view: ViewId, uid: ViewUid) -> Vec<u8> {
    let mut key = view_prefix(account, view);
    key.extend(uid.get().to_be_bytes());
    key
}

/// Key in [`Table::Decision`].
pub fn decision_key(account: &AccountId, id: &str) -> Vec<u8> {
    format!("{account}\0{id}").into_bytes()
}

/// Key in [`Table::DecisionIndex`] from a Message-ID to decision ids.
pub fn by_message_id(account: &AccountId, message_id: &str) -> Vec<u8> {
    format!("mid\0{account}\0{message_id}").into_bytes()
}

/// Key in [`Table::DecisionIndex`] from an upstream UID to a decision id.
pub fn by_upstream_uid(account: &AccountId, uid: UpstreamUid) -> Vec<u8> {
    let mut key = format!("uid\0{account}\0").into_bytes();
    key.extend(uid.get().to_be_bytes());
    key
}

/// Key in [`Table::Correspondent`].
pub fn correspondent_key(account: &AccountId, canonical: &str) -> Vec<u8> {
    format!("{account}\0{canonical}").into_bytes()
}

/// Calls `each` for every row under `prefix`, in pages.
pub fn for_each(
    r: &dyn Reader,
    table: Table,
    prefix: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut from = prefix.to_vec();
    loop {
        let page = r.scan(table, prefix, &from, PAGE)?;
        for (k, v) in &page {
            each(k, v)?;
        }
        match page.last() {
            Some((k, _)) if page.len() == PAGE => {
                from = k.clone();
                from.push(0);
            }
            _ => return Ok(()),
        }
    }
}

/// The number in the last four octets of a key.
pub fn tail(key: &[u8]) -> u32 {
    key.last_chunk::<4>().map_or(0, |b| u32::from_be_bytes(*b))
}

/// Reads a view back, or `None` where it was never stored.
pub fn load_view(r: &dyn Reader, account: &AccountId, view: ViewId) -> Result<Option<View>, StoreError> {
    let Some(row) = get_json::<ViewRow>(r, Table::View, &view_key(account, view))? else { return Ok(None) };
    let mut entries = Vec::new();
    for_each(r, Table::View, &view_prefix(account, view), |k, v| {
        if let Some(uid) = ViewUid::new(tail(k)) {
            entries.push((uid, from_json::<Entry>(Table::View, v)?));
        }
        Ok(())
    })?;
    Ok(Some(View::restore(row.uidvalidity, row.next, row.recent, entries)))
}
