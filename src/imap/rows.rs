//! How the mirror and the views are laid out in the store.
//!
//! Promises: keys of two accounts never share a prefix, UIDs sort as numbers.
//! Doesn't know: when a row is written.

use serde::{Deserialize, Serialize};

use crate::account::AccountId;
use crate::lane::Lane;
use crate::store::blob::BlobId;
use crate::store::{Reader, StoreError, Table, from_json, get_json};

use super::lanes::Place;
use super::uid::{UpstreamUid, ViewUid};
use super::view::{Audience, Entry, Source, View};

/// Rows read at once while loading.
const PAGE: usize = 4096;

/// A view of an account.
pub type ViewId = (Audience, Place);

/// What is stored of a message of the provider's INBOX.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MessageRow {
    /// Length in octets: RFC822.SIZE at the provider, or what was measured.
    pub size: u64,
    /// What is known beside it where the provider's RFC822.SIZE is not the
    /// length of BODY[].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
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

/// A message whose length was measured, since its provider says another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// RFC822.SIZE as the provider told it first.
    pub told: u64,
    /// How often a client had been told another length before.
    pub times: u32,
}

impl MessageRow {
    /// RFC822.SIZE as the provider tells it.
    pub fn told_size(&self) -> u64 {
        self.measured.map_or(self.size, |m| m.told)
    }
}

/// What is stored of a local message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LocalRow {
    /// What it is about; one local message per name.
    pub name: String,
    /// INTERNALDATE.
    pub date: String,
    /// The octets (ASCII); those of `body` follow.
    pub octets: String,
    /// Flags that people set.
    pub flags: Vec<String>,
    /// The id of the agent's key that alone sees it; without, people do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it is shown.
    #[serde(default = "inbox", skip_serializing_if = "is_inbox")]
    pub place: Place,
    /// Octets in a file of their own, after `octets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<LocalBody>,
}

/// Octets of a local message that lie in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalBody {
    /// The file.
    pub blob: BlobId,
    /// How many.
    pub length: u64,
}

fn inbox() -> Place {
    Place::Inbox
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_inbox(place: &Place) -> bool {
    *place == Place::Inbox
}

impl LocalRow {
    /// The view that shows it.
    pub fn view(&self) -> ViewId {
        (if self.key.is_some() { Audience::Agents } else { Audience::People }, self.place)
    }

    /// Its entry in that view.
    pub fn entry(&self, number: u32) -> Entry {
        Entry { key: self.key.as_deref().map(Into::into), ..Entry::new(Source::Local(number)) }
    }

    /// RFC822.SIZE.
    pub fn size(&self) -> u64 {
        self.octets.len() as u64 + self.body.map_or(0, |b| b.length)
    }
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

/// What is stored of the look through an account's Sent, in [`Table::Meta`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SentRead {
    /// When, Unix seconds.
    pub time: i64,
    /// The mailbox.
    pub mailbox: String,
    /// Messages that were read.
    pub read: u32,
    /// Enough was read for somebody who isn't in it to count as absent.
    pub enough: bool,
}

/// Key of [`SentRead`].
pub fn sent_read_key(account: &AccountId) -> Vec<u8> {
    format!("sentread\0{account}").into_bytes()
}

/// Whether Sent was looked through, so that who isn't known is absent.
pub fn sent_was_read(r: &dyn Reader, account: &AccountId) -> Result<bool, StoreError> {
    let row: Option<SentRead> = get_json(r, Table::Meta, &sent_read_key(account))?;
    Ok(row.is_some_and(|row| row.enough))
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
    crate::store::decision_key(account.as_str(), id)
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
