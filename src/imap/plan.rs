//! One change of the mirror and its views: planned, made durable, applied.
//!
//! Promises: every row of a plan is written in one transaction, and memory
//! changes only after it; the planned UIDs are the ones that memory gives.
//! Doesn't know: why something changes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::account::AccountId;
use crate::perceive::CorrespondentRecord;
use crate::store::{StoreError, Table, get_json, put_json, write};

use super::mirror::{Local, Message, Mirror, OpError, State};
use super::perceiving::now;
use super::pins;
use super::rows::{self, ViewId, ViewRow};
use super::uid::{UpstreamUid, ViewUid};
use super::view::{Entry, Source};

/// Something to do to a correspondent's record inside the transaction.
pub struct Bump {
    /// Canonical address of the correspondent.
    pub address: String,
    /// The change; it may be run more than once, on fresh copies.
    pub change: Box<dyn Fn(&mut CorrespondentRecord) + Send>,
}

/// A change.
pub struct Plan {
    account: AccountId,
    rows: Vec<(Table, Vec<u8>, Option<Vec<u8>>)>,
    next: HashMap<ViewId, ViewRow>,
    pushed: Vec<(ViewId, Entry, ViewUid)>,
    removed: Vec<(ViewId, ViewUid)>,
    updated: Vec<(ViewId, ViewUid, Entry)>,
    messages: Vec<(UpstreamUid, Option<Message>)>,
    locals: Vec<(u32, Option<Local>)>,
    bumps: Vec<Bump>,
}

impl Plan {
    /// A plan that changes nothing.
    pub fn new(account: &AccountId) -> Plan {
        Plan {
            account: account.clone(),
            rows: Vec::new(),
            next: HashMap::new(),
            pushed: Vec::new(),
            removed: Vec::new(),
            updated: Vec::new(),
            messages: Vec::new(),
            locals: Vec::new(),
            bumps: Vec::new(),
        }
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.messages.is_empty()
    }

    /// Any other row that belongs to the change.
    pub fn row(&mut self, table: Table, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.rows.push((table, key, value));
    }

    /// A row in JSON.
    pub fn json<T: serde::Serialize>(&mut self, table: Table, key: Vec<u8>, value: &T) -> Result<(), OpError> {
        let bytes = serde_json::to_vec(value).map_err(|e| OpError::Store(e.to_string()))?;
        self.rows.push((table, key, Some(bytes)));
        Ok(())
    }

    /// Something to do to a correspondent's record.
    pub fn bump(&mut self, bump: Bump) {
        self.bumps.push(bump);
    }

    /// Shows `source` at the end of a view; the UID that it will have.
    pub fn push(&mut self, state: &State, view: ViewId, source: Source) -> Result<ViewUid, OpError> {
        self.push_entry(state, view, Entry::new(source))
    }

    /// Shows an entry as it is at the end of a view; the UID that it will have.
    pub fn push_entry(&mut self, state: &State, view: ViewId, entry: Entry) -> Result<ViewUid, OpError> {
        let missing = || OpError::Unavailable("the mailbox is not ready".into());
        let v = state.views.get(&view).ok_or_else(missing)?;
        let uid = self.next.get(&view).map_or(v.next_uid(), |row| row.next);
        let next = uid.next().ok_or_else(|| OpError::Cannot("the mailbox has no UID left".into()))?;
        self.next.insert(view, ViewRow { uidvalidity: v.uidvalidity, next, recent: Some(v.recent()) });
        self.json(Table::View, rows::entry_key(&self.account, view, uid), &entry)?;
        self.pushed.push((view, entry, uid));
        Ok(uid)
    }

    /// Takes an entry out of a view.
    pub fn remove(&mut self, view: ViewId, uid: ViewUid) {
        self.rows.push((Table::View, rows::entry_key(&self.account, view, uid), None));
        self.removed.push((view, uid));
    }

    /// Changes an entry in place.
    pub fn update(&mut self, view: ViewId, uid: ViewUid, entry: Entry) -> Result<(), OpError> {
        self.json(Table::View, rows::entry_key(&self.account, view, uid), &entry)?;
        self.updated.push((view, uid, entry));
        Ok(())
    }

    /// Sets a message of INBOX.
    pub fn message(&mut self, uid: UpstreamUid, message: Message) -> Result<(), OpError> {
        self.json(Table::Mirror, rows::message_key(&self.account, uid), &*message.row)?;
        self.messages.push((uid, Some(message)));
        Ok(())
    }

    /// Forgets a message of INBOX and takes it out of every view.
    pub fn forget(&mut self, state: &State, uid: UpstreamUid) {
        self.rows.push((Table::Mirror, rows::message_key(&self.account, uid), None));
        self.take_out(state, Source::Upstream(uid));
        self.messages.push((uid, None));
    }

    /// Takes a source out of every view.
    pub fn take_out(&mut self, state: &State, source: Source) {
        for (id, view) in &state.views {
            for uid in view.all_uids_of(source) {
                self.remove(*id, uid);
            }
        }
    }

    /// Sets or forgets a local message.
    pub fn local(&mut self, number: u32, local: Option<Local>) -> Result<(), OpError> {
        let key = rows::local_key(&self.account, number);
        match &local {
            Some(l) => self.json(Table::Local, key, &*l.row)?,
            None => self.row(Table::Local, key, None),
        }
        self.locals.push((number, local));
        Ok(())
    }

    /// Makes it durable, then applies it and wakes the sessions.
    pub async fn execute(mut self, mirror: &Mirror) -> Result<(), OpError> {
        if self.is_empty() {
            return Ok(());
        }
        for (view, row) in std::mem::take(&mut self.next) {
            let key = rows::view_key(&self.account, view);
            self.json(Table::View, key, &row)?;
        }
        let (written, bumps) = (Arc::new(std::mem::take(&mut self.rows)), std::mem::take(&mut self.bumps));
        let account = self.account.clone();
        let records = write(&*mirror.store, move |w| {
            let mut records = Vec::with_capacity(bumps.len());
            for (table, key, value) in written.iter() {
                match value {
                    Some(v) => w.put(*table, key, v)?,
                    None => w.delete(*table, key)?,
                }
            }
            for bump in &bumps {
                let key = rows::correspondent_key(&account, &bump.address);
                let stored = get_json(w, Table::Correspondent, &key)?;
                let mut record = stored.unwrap_or_else(|| CorrespondentRecord::new(&bump.address));
                let pinned = record.pinned;
                (bump.change)(&mut record);
                if record.pinned != pinned {
                    pins::note(w, &account, &bump.address, (pinned, record.pinned), now())?;
                }
                put_json(w, Table::Correspondent, &key, &record)?;
                records.push(record);
            }
            Ok::<_, StoreError>(records)
        })
        .await?;
        mirror.learn(&records);
        self.apply(&mut mirror.state());
        mirror.announce();
        Ok(())
    }

    fn apply(self, state: &mut State) {
        state.clock += 1;
        for (view, uid) in self.removed {
            state.views.get_mut(&view).and_then(|v| v.remove(uid));
        }
        for (view, uid, entry) in self.updated {
            if let Some(v) = state.views.get_mut(&view) {
                v.update(uid, entry);
            }
        }
        for (uid, message) in self.messages {
            match message {
                Some(m) => state.messages.insert(uid, m),
                None => state.messages.remove(&uid),
            };
        }
        for (number, local) in self.locals {
            match local {
                Some(l) => state.locals.insert(number, l),
                None => state.locals.remove(&number),
            };
        }
        for (view, entry, planned) in self.pushed {
            let given = state.views.get_mut(&view).map(|v| v.push_entry(entry));
            debug_assert_eq!(given, Some(Ok(planned)), "memory gives the planned UID");
        }
    }
}
