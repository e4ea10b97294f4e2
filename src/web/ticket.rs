//! One-time challenges of pages where a passkey acts on something other than
//! a payload.
//!
//! Promises: a ticket is taken once, for the purpose, account and subject it
//! was made for, within [`LIFETIME_SECONDS`]; a restart voids all. Bounded in
//! number: the oldest goes first, and pages that anybody can open can't push
//! out those of signed-in people. Doesn't know: what the passkey said.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::account::AccountId;
use crate::floor::passkey::{Purpose, encode};

/// How long a ticket is good for, in seconds.
pub(super) const LIFETIME_SECONDS: i64 = 10 * 60;
/// Most tickets of each kind of page at a time.
const MAX_TICKETS: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ticket {
    nonce: String,
    purpose: Purpose,
    account: Option<AccountId>,
    subject: String,
    until: i64,
}

/// A ticket as a form carries it.
#[derive(Debug, Clone)]
pub(super) struct Issued {
    /// The form's field.
    pub(super) nonce: String,
    /// What the passkey signs.
    pub(super) challenge: [u8; 32],
}

/// The tickets of a process.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    open: Mutex<VecDeque<Ticket>>,
    signed_in: Mutex<VecDeque<Ticket>>,
}

/// What the challenge of a ticket is over. None of the parts holds a line end.
fn challenge(purpose: Purpose, account: Option<&AccountId>, subject: &str, nonce: &str) -> [u8; 32] {
    let account = account.map_or("", AccountId::as_str);
    purpose.challenge(format!("{account}\n{subject}\n{nonce}").as_bytes())
}

impl Tickets {
    fn of(&self, account: Option<&AccountId>) -> &Mutex<VecDeque<Ticket>> {
        if account.is_some() { &self.signed_in } else { &self.open }
    }

    /// A fresh ticket; `account` is the signed-in one.
    pub(super) fn issue(
        &self,
        purpose: Purpose,
        account: Option<&AccountId>,
        subject: &str,
        now: i64,
    ) -> Result<Issued, getrandom::Error> {
        let mut octets = [0; 24];
        getrandom::fill(&mut octets)?;
        let nonce = encode(&octets);
        let ticket = Ticket {
            nonce: nonce.clone(),
            purpose,
            account: account.cloned(),
            subject: subject.to_owned(),
            until: now + LIFETIME_SECONDS,
        };
        let mut list = self.of(account).lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() >= MAX_TICKETS {
            list.pop_front();
        }
        list.push_back(ticket);
        Ok(Issued { challenge: challenge(purpose, account, subject, &nonce), nonce })
    }

    /// Takes a ticket: its challenge, where it is one for exactly this.
    pub(super) fn take(
        &self,
        nonce: &str,
        purpose: Purpose,
        account: Option<&AccountId>,
        subject: &str,
        now: i64,
    ) -> Option<[u8; 32]> {
        let mut list = self.of(account).lock().unwrap_or_else(PoisonError::into_inner);
        let at = list.iter().position(|t| t.nonce == nonce)?;
        let ticket = list.remove(at)?;
        let fits = ticket.purpose == purpose
            && ticket.account.as_ref() == account
            && ticket.subject == subject
            && ticket.until > now;
        fits.then(|| challenge(purpose, account, subject, nonce))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_for_one_thing_once_and_not_for_long() {
        let tickets = Tickets::default();
        let (ada, bo) = (AccountId("ada@example.org".into()), AccountId("bo@example.org".into()));
        let issue = || tickets.issue(Purpose::Remove, Some(&ada), "c1", 100).unwrap();
        let take = |nonce: &str, purpose, account, subject, now| tickets.take(nonce, purpose, account, subject, now);
        let one = issue();
        assert_eq!(take(&one.nonce, Purpose::Remove, Some(&ada), "c1", 101), Some(one.challenge));
        assert_eq!(take(&one.nonce, Purpose::Remove, Some(&ada), "c1", 101), None, "once");
        for (purpose, account, subject, now) in [
            (Purpose::Add, Some(&ada), "c1", 101),
            (Purpose::Remove, Some(&bo), "c1", 101),
            (Purpose::Remove, None, "c1", 101),
            (Purpose::Remove, Some(&ada), "c2", 101),
            (Purpose::Remove, Some(&ada), "c1", 100 + LIFETIME_SECONDS),
        ] {
            assert_eq!(take(&issue().nonce, purpose, account, subject, now), None, "{purpose:?} {subject} {now}");
        }
    }

    #[test]
    fn open_pages_do_not_push_out_those_of_signed_in_people() {
        let tickets = Tickets::default();
        let ada = AccountId("ada@example.org".into());
        let mine = tickets.issue(Purpose::Add, Some(&ada), "", 1).unwrap();
        let first = tickets.issue(Purpose::SignIn, None, "", 1).unwrap();
        for _ in 0..MAX_TICKETS {
            tickets.issue(Purpose::SignIn, None, "", 1).unwrap();
        }
        assert!(tickets.take(&first.nonce, Purpose::SignIn, None, "", 2).is_none());
        assert!(tickets.take(&mine.nonce, Purpose::Add, Some(&ada), "", 2).is_some());
    }
}
