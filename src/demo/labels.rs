//! Mailboxes that are labels of one set of messages, as at Gmail.
//!
//! Promises: what is done to a message under one label shows under the
//! others; a message under two labels is known by its octets, which both
//! share. Only in memory: a provider with a folder has no labels.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::character::{ALL_MAIL, OUT_OF_ALL};
use super::state::{Message, User};

impl User {
    /// A message came under the label `name`: it is in All Mail too; in Trash
    /// or Spam it is nowhere else.
    pub(crate) fn labelled(&mut self, name: &str, message: &Message) {
        if OUT_OF_ALL.contains(&name) {
            for (other, mailbox) in &mut self.mailboxes {
                if other != name {
                    let same = |m: &&Message| Arc::ptr_eq(&m.octets, &message.octets);
                    let gone: BTreeSet<u32> = mailbox.messages.iter().filter(same).map(|m| m.uid).collect();
                    mailbox.remove(&gone);
                }
            }
            return;
        }
        if let Ok(all) = self.mailbox(ALL_MAIL)
            && !all.messages.iter().any(|m| Arc::ptr_eq(&m.octets, &message.octets))
        {
            all.push(Message { announced: None, ..message.clone() });
        }
    }

    /// Flags of a message changed under one label. `\Deleted` is the label's
    /// own, and takes it away at once; the rest is the message's.
    pub(crate) fn flagged(&mut self, validity: u32, uids: &[u32]) {
        let Some(mailbox) = self.by_validity(validity) else { return };
        let deleted = |m: &&Message| uids.contains(&m.uid) && m.flags.contains("\\Deleted");
        let gone: BTreeSet<u32> = mailbox.messages.iter().filter(deleted).map(|m| m.uid).collect();
        let changed: Vec<Message> = mailbox.messages.iter().filter(|m| uids.contains(&m.uid)).cloned().collect();
        mailbox.remove(&gone);
        for mailbox in self.mailboxes.values_mut().filter(|m| m.validity != validity) {
            let mut any = false;
            for message in &mut mailbox.messages {
                let Some(now) = changed.iter().find(|c| Arc::ptr_eq(&c.octets, &message.octets)) else { continue };
                let flags: BTreeSet<String> = now.flags.iter().filter(|f| *f != "\\Deleted").cloned().collect();
                any |= flags != message.flags;
                message.flags = flags;
            }
            mailbox.version += u64::from(any);
        }
    }
}
