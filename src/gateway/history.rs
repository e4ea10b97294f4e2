//! Whom the person wrote to before: a look through the provider's Sent.
//!
//! Promises: only headers are read (To, Cc, Date, In-Reply-To, Message-ID), of
//! at most [`MAX_READ`] messages, the newest; a second look changes nothing
//! that the first one counted. Nothing that an agent wrote counts: what went
//! out for an agent's key or from an agent's draft is left out by its
//! Message-ID, drafts are left out, and where a key could ever file or flag,
//! so that something of it may lie in Sent unseen, nothing is read at all.
//! Doesn't know: what any message says.
//!
//! Where at least [`LEAST_READ`] messages were read, somebody who isn't known
//! counts as looked for and absent; an emptier Sent says nothing of strangers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::core::Core;
use super::sent::leave;
use crate::account::{AccountId, Accounts, Grant, KeyInfo, Role, Verb};
use crate::floor::ledger::Event;
use crate::imap::mirror::{Health, Mirror};
use crate::imap::parking::sent_among;
use crate::imap::perceiving::{now, perceive_date};
use crate::imap::pool::Lease;
use crate::imap::rows::{self, SentRead};
use crate::outbox::Outbox;
use crate::perceive::{CorrespondentRecord, SentBefore, context::MAX_NAMES, sent_header};
use crate::store::{StoreError, Table, get_json, put_json, read, write};
use crate::upstream::imap::{UntaggedData, Value};

/// Messages that are read at most, the newest.
pub const MAX_READ: u32 = 10_000;
/// Messages from which on a stranger to Sent is a stranger.
pub const LEAST_READ: u32 = 20;
/// Messages of one FETCH.
const BATCH: u32 = 500;
/// Records of one transaction.
const ROWS: usize = 500;
/// Correspondents that are counted at most.
const MAX_CORRESPONDENTS: usize = 20_000;
/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// A key is made after so long, whatever Sent says.
const BEFORE_A_KEY: Duration = Duration::from_secs(20);
/// A submission of an agent without a Message-ID hides what is as young as it,
/// less this: clocks differ.
const SLACK: i64 = 24 * 3600;

/// What a look found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Look {
    /// The account.
    pub account: String,
    /// The mailbox; none where the provider has no Sent.
    pub mailbox: Option<String>,
    /// Messages that were read.
    pub read: u32,
    /// Messages among them that don't count: agents' words and drafts.
    pub left_out: u32,
    /// Addresses that the person wrote to.
    pub correspondents: usize,
    /// Enough was read for strangers to count as absent.
    pub strangers_are_absent: bool,
}

/// Gives the control socket a way to look.
pub(super) fn connect(core: &Core, mirrors: &HashMap<AccountId, Arc<Mirror>>) {
    let (mirrors, accounts, outbox) = (mirrors.clone(), core.accounts.clone(), core.outbox.clone());
    // Set once: this core was opened by this start.
    let _ = core.sent_read.set(Arc::new(move |account: AccountId, only_if_due: bool| {
        let scribe = mirrors.get(&account).map(|mirror| Scribe {
            mirror: mirror.clone(),
            accounts: accounts.clone(),
            outbox: outbox.clone(),
        });
        Box::pin(async move {
            let scribe = scribe.ok_or("there is no such account")?;
            let patience = if only_if_due { BEFORE_A_KEY } else { PATIENCE };
            if only_if_due && !scribe.due().map_err(|e| e.to_string())? {
                return Ok(None);
            }
            let looked = tokio::time::timeout(patience, scribe.look()).await;
            looked.map_err(|_| "the provider took too long".to_owned())?.map(Some)
        })
    }));
}

struct Scribe {
    mirror: Arc<Mirror>,
    accounts: Arc<Accounts>,
    outbox: Arc<Outbox>,
}

#[derive(Default)]
struct Counted {
    by_address: BTreeMap<String, SentBefore>,
    uids: BTreeSet<u32>,
    left_out: u32,
}

impl Scribe {
    /// Whether a look is due by itself: before the account has an agent, once,
    /// and with a provider that answers.
    fn due(&self) -> Result<bool, StoreError> {
        let key = rows::sent_read_key(&self.mirror.account);
        let known = read(&*self.mirror.store(), |r| Ok::<_, StoreError>(r.get(Table::Meta, &key)?.is_some()))?;
        let live = *self.mirror.health().borrow() == Health::Live;
        Ok(!known && live && self.agents().is_empty())
    }

    /// Agents' keys, revoked ones too.
    fn agents(&self) -> Vec<KeyInfo> {
        let keys = self.accounts.list_keys(Some(&self.mirror.account));
        keys.into_iter().filter(|k| k.role == Role::Agent).collect()
    }

    /// Why Sent is no witness, where an agent may have put mail there.
    fn tainted(&self) -> Result<Option<String>, String> {
        let agents = self.agents();
        if agents.is_empty() {
            return Ok(None);
        }
        let reason =
            "an agent's key may file or flag, or could once: what it put into Sent can't be told from what you wrote";
        let could = |key: &KeyInfo| {
            let grants = key.grants.clone().unwrap_or_default();
            let own = grants.mailboxes.values().flat_map(|m| [m.file, m.flag]).flatten();
            own.chain([grants.flag]).any(|g| g != Grant::Off)
        };
        if agents.iter().any(could) {
            return Ok(Some(reason.to_owned()));
        }
        let account = self.mirror.account.as_str();
        let granted = |change: &str| {
            [Verb::File, Verb::Flag].iter().any(|v| {
                change.strip_prefix(v.name()).is_some_and(|rest| {
                    rest.starts_with(['@', '=']) && !rest.ends_with("=off") && !rest.ends_with("=default")
                })
            })
        };
        let ledger = self.outbox.whole_ledger().map_err(|e| e.to_string())?;
        let once = ledger.iter().any(|entry| match &entry.event {
            Event::GrantsChanged { account: whose, changes, .. } => {
                whose == account && changes.iter().any(|c| granted(c))
            }
            _ => false,
        });
        Ok(once.then(|| reason.to_owned()))
    }

    async fn look(&self) -> Result<Look, String> {
        if let Some(why) = self.tainted()? {
            return Err(why);
        }
        let mut lease = self.mirror.pool.any().await.map_err(|e| e.to_string())?;
        let Some(mailbox) = self.sent(&mut lease).await? else {
            leave(lease).await;
            return Ok(self.told(None, 0, &Counted::default(), false));
        };
        let counted = self.count(&mut lease, &mailbox).await?;
        leave(lease).await;
        // A grant that came meanwhile may have been used meanwhile.
        if let Some(why) = self.tainted()? {
            return Err(why);
        }
        let read = u32::try_from(counted.uids.len()).unwrap_or(u32::MAX);
        let enough = read - counted.left_out.min(read) >= LEAST_READ;
        let name = String::from_utf8_lossy(&mailbox).into_owned();
        self.keep(&counted, SentRead { time: now(), mailbox: name.clone(), read, enough })
            .await
            .map_err(|e| e.to_string())?;
        Ok(self.told(Some(name), read, &counted, enough))
    }

    fn told(&self, mailbox: Option<String>, read: u32, counted: &Counted, enough: bool) -> Look {
        Look {
            account: self.mirror.account.to_string(),
            mailbox,
            read,
            left_out: counted.left_out,
            correspondents: counted.by_address.len(),
            strangers_are_absent: enough,
        }
    }

    async fn sent(&self, lease: &mut Lease) -> Result<Option<Vec<u8>>, String> {
        let list = lease.list(b"", b"*").await.map_err(|e| e.to_string())?;
        let text = |f: &bytes::Bytes| String::from_utf8_lossy(f).into_owned();
        let list: Vec<(Vec<u8>, Vec<String>)> =
            list.into_iter().map(|e| (e.name.to_vec(), e.flags.iter().map(text).collect())).collect();
        let delimiter = self.mirror.state().lanes.as_ref().map_or('/', |l| l.delimiter());
        Ok(sent_among(&list, delimiter))
    }

    async fn count(&self, lease: &mut Lease, mailbox: &[u8]) -> Result<Counted, String> {
        let not_theirs = NotTheirs::of(&self.outbox, &self.mirror.account)?;
        let own: BTreeSet<String> = self.mirror.facts.addresses.iter().map(|a| a.canonical()).collect();
        lease.forget_selection();
        let exists = lease.select_plainly(mailbox, true).await.map_err(|e| e.to_string())?.exists;
        let mut counted = Counted::default();
        let mut from = exists.saturating_sub(MAX_READ) + 1;
        while from <= exists {
            let to = exists.min(from + BATCH - 1);
            let command = format!(
                "FETCH {from}:{to} (UID FLAGS INTERNALDATE BODY.PEEK[HEADER.FIELDS (TO CC DATE IN-REPLY-TO MESSAGE-ID)])"
            );
            let outcome = lease.run(command.as_bytes()).await.and_then(|o| o.ok()).map_err(|e| e.to_string())?;
            for untagged in &outcome.untagged {
                let UntaggedData::Fetch { items, .. } = untagged.parse() else { continue };
                let Some(uid) = items.uid else { continue };
                let header = items.other.iter().find_map(|(name, value)| match value {
                    Value::Literal(b) | Value::Quoted(b) if name.to_ascii_uppercase().starts_with(b"BODY[") => Some(b),
                    _ => None,
                });
                // An expunge meanwhile shifts numbers: each message once.
                let Some(header) = header.filter(|_| counted.uids.insert(uid)) else { continue };
                let date =
                    items.internaldate.and_then(|d| perceive_date(String::from_utf8_lossy(&d).trim_matches('"')));
                let draft = items.flags.unwrap_or_default().iter().any(|f| f.eq_ignore_ascii_case(b"\\Draft"));
                counted.take(header, date, draft, &not_theirs, &own);
            }
            from = to + 1;
        }
        Ok(counted)
    }

    async fn keep(&self, counted: &Counted, row: SentRead) -> Result<(), StoreError> {
        let store = self.mirror.store();
        let all: Vec<(String, SentBefore)> = counted.by_address.clone().into_iter().collect();
        for some in all.chunks(ROWS) {
            let (some, account) = (some.to_vec(), self.mirror.account.clone());
            let records = write(&*store, move |w| {
                let mut records = Vec::with_capacity(some.len());
                for (address, before) in &some {
                    let key = rows::correspondent_key(&account, address);
                    let stored: Option<CorrespondentRecord> = get_json(w, Table::Correspondent, &key)?;
                    let mut record = stored.unwrap_or_else(|| CorrespondentRecord::new(address));
                    record.saw_sent_before(before);
                    put_json(w, Table::Correspondent, &key, &record)?;
                    records.push(record);
                }
                Ok::<_, StoreError>(records)
            })
            .await?;
            self.mirror.learn(&records);
        }
        // Last: who isn't there may count as absent only once all are there.
        let key = rows::sent_read_key(&self.mirror.account);
        write(&*store, move |w| put_json(w, Table::Meta, &key, &row)).await
    }
}

/// What went out for agents.
struct NotTheirs {
    ids: BTreeSet<String>,
    /// From here on nothing counts: an agent's mail without a Message-ID of
    /// its own can't be told apart.
    from: Option<i64>,
}

impl NotTheirs {
    fn of(outbox: &Outbox, account: &AccountId) -> Result<NotTheirs, String> {
        let holds = outbox.list(account).map_err(|e| e.to_string())?;
        let theirs = || holds.iter().filter(|h| h.action.sends() && (h.role == Role::Agent || h.lineage.is_some()));
        Ok(NotTheirs {
            ids: theirs().filter_map(|h| h.message_id.as_deref()).map(|id| id.trim().to_owned()).collect(),
            from: theirs().filter(|h| h.message_id.is_none()).map(|h| h.held_at.saturating_sub(SLACK)).min(),
        })
    }

    fn has(&self, id: Option<&str>, date: Option<i64>) -> bool {
        id.is_some_and(|id| self.ids.contains(id)) || self.from.is_some_and(|from| date.is_none_or(|d| d >= from))
    }
}

impl Counted {
    fn take(&mut self, header: &[u8], date: Option<i64>, draft: bool, not_theirs: &NotTheirs, own: &BTreeSet<String>) {
        let header = sent_header(header);
        // INTERNALDATE is when it was put there, which no header says.
        if draft || not_theirs.has(header.message_id.as_deref(), date.or(header.date)) {
            self.left_out += 1;
            return;
        }
        let at = date.or(header.date).unwrap_or(0);
        let mut once = BTreeSet::new();
        let to = header.to.iter().map(|who| (who, header.answers));
        // Who is in Cc was written to, and wasn't answered.
        for (who, answered) in to.chain(header.cc.iter().map(|who| (who, false))) {
            let address = who.address.canonical();
            let full = self.by_address.len() >= MAX_CORRESPONDENTS && !self.by_address.contains_key(&address);
            if full || own.contains(&address) || !once.insert(address.clone()) {
                continue;
            }
            let known = self.by_address.entry(address).or_default();
            known.sent_to = known.sent_to.saturating_add(1);
            known.replied = known.replied.saturating_add(u32::from(answered));
            if at > 0 {
                known.first = if known.first == 0 { at } else { known.first.min(at) };
                known.last = known.last.max(at);
            }
            let name = who.display.trim();
            if !name.is_empty() && known.names.len() < MAX_NAMES && !known.names.iter().any(|n| n == name) {
                known.names.push(name.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(headers: &[(&str, bool)], not_theirs: &NotTheirs) -> Counted {
        let own = BTreeSet::from(["me@example.org".to_owned()]);
        let mut counted = Counted::default();
        for (n, (header, draft)) in headers.iter().enumerate() {
            counted.take(header.as_bytes(), Some(1000 + n as i64), *draft, not_theirs, &own);
        }
        counted
    }

    #[test]
    fn who_was_written_to_is_counted_once_a_message_and_never_oneself() {
        let none = NotTheirs { ids: BTreeSet::new(), from: None };
        let c = counted(
            &[
                (
                    "To: Ana <ana@example.com>, me@example.org\r\nCc: Ana <ANA@example.com>, b@example.net\r\n\r\n",
                    false,
                ),
                ("To: ana@example.com\r\nIn-Reply-To: <x@example.com>\r\nCc: b@example.net\r\n\r\n", false),
                ("To: ana@example.com\r\n\r\n", true),
            ],
            &none,
        );
        let ana = &c.by_address["ana@example.com"];
        assert_eq!((ana.sent_to, ana.replied, ana.first, ana.last), (2, 1, 1000, 1001));
        assert_eq!(ana.names, ["Ana"]);
        assert_eq!((c.by_address["b@example.net"].sent_to, c.by_address["b@example.net"].replied), (2, 0));
        assert_eq!((c.by_address.len(), c.left_out), (2, 1));
    }

    #[test]
    fn what_went_out_for_an_agent_is_left_out() {
        let theirs = NotTheirs { ids: BTreeSet::from(["<a@example.org>".to_owned()]), from: Some(1002) };
        let to = |id: &str| format!("To: x@example.com\r\nMessage-ID: {id}\r\n\r\n");
        let (a, b) = (to("<a@example.org>"), to("<b@example.org>"));
        let c = counted(&[(&a, false), (&b, false), (&b, false)], &theirs);
        assert_eq!((c.by_address["x@example.com"].sent_to, c.left_out), (1, 2));
    }
}
