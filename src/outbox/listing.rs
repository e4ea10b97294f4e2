//! Lists of holds that stay short however many there were.
//!
//! Promises: of what has ended only the newest are read whole, of the others
//! an id in a row of the index; what is open `[limits] max_holds` bounds.
//! Doesn't know: who looks.

use super::hold::{Hold, HoldError, HoldId};
use super::{Outbox, record};
use crate::account::AccountId;
use crate::floor::submission::State;
use crate::store::{self, Reader};

/// The newest of a list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Oldest first; without those that can't be read.
    pub holds: Vec<Hold>,
    /// How many there are in all.
    pub all: usize,
}

/// The newest of `ids`, which are oldest first.
fn newest(r: &dyn Reader, mut ids: Vec<HoldId>, most: usize) -> Result<Listed, HoldError> {
    let all = ids.len();
    let ids = ids.split_off(all.saturating_sub(most));
    let holds: Result<Vec<Hold>, HoldError> =
        ids.iter().filter_map(|id| record::load_readable(r, id).transpose()).collect();
    Ok(Listed { holds: holds?, all })
}

impl Outbox {
    /// The newest `most` holds of an account that wait for anything: a person,
    /// an attempt, or a look at an unknown outcome.
    pub fn pending(&self, account: &AccountId, most: usize) -> Result<Listed, HoldError> {
        store::read(self.store.as_ref(), |r| {
            let pending = record::pending(r, account)?;
            let mut ids = record::by_age(r, account)?;
            ids.retain(|id| pending.contains(id));
            newest(r, ids, most)
        })
    }

    /// What is [`Outbox::pending`], all of it, with the newest `most` of what
    /// has ended; oldest first.
    pub fn recent(&self, account: &AccountId, most: usize) -> Result<Vec<Hold>, HoldError> {
        store::read(self.store.as_ref(), |r| {
            let pending = record::pending(r, account)?;
            let mut ids = record::by_age(r, account)?;
            let ended = ids.iter().filter(|id| !pending.contains(id)).count();
            let mut over = ended.saturating_sub(most);
            ids.retain(|id| {
                let drop = over > 0 && !pending.contains(id);
                over -= usize::from(drop);
                !drop
            });
            Ok(newest(r, ids, usize::MAX)?.holds)
        })
    }

    /// How many holds of an account wait for a person.
    pub fn waiting(&self, account: &AccountId) -> Result<usize, HoldError> {
        let open = store::read(self.store.as_ref(), |r| record::open(r))?;
        Ok(open.iter().filter(|h| h.account == *account && h.state == State::Held).count())
    }

    /// Whether mail to `path`, a forward-path as the envelope has it, was sent
    /// with a person's approval.
    pub fn was_sent_to(&self, account: &AccountId, path: &str) -> Result<bool, HoldError> {
        store::read(self.store.as_ref(), |r| Ok(record::was_sent_to(r, account, path)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Role;
    use crate::outbox::testing::{Bench, MESSAGE, envelope, tuning};
    use crate::store::Table;
    use crate::upstream::smtp::scripted::{Dot, Provider, Script};

    #[tokio::test]
    async fn lists_are_of_what_is_open_and_of_the_newest_that_ended() {
        let provider = Provider::start(Script::default()).await;
        let bench = Bench::new(&provider, tuning(), |c| c.max_holds_per_key = 100).await;
        let (outbox, account) = (&bench.outbox, &bench.account);
        let submit = async || bench.submit(Role::Agent, envelope(&["b@example.com"]), MESSAGE).await.unwrap();
        let mut denied = Vec::new();
        for _ in 0..5 {
            let id = submit().await;
            outbox.deny(account, &id, "no", "owner").await.unwrap();
            denied.push(id);
        }
        let waits = [submit().await, submit().await, submit().await];
        provider.script(|s| s.dot = Dot::Close);
        let unknown = bench.approved(envelope(&["lost@example.com"]), MESSAGE).await;
        assert_eq!(bench.attempt(&unknown).await.state, State::Unknown);
        assert!(!outbox.was_sent_to(account, "lost@example.com").unwrap());
        provider.script(|s| *s = Script::default());
        let sent = bench.approved(envelope(&["ann@example.com"]), MESSAGE).await;
        assert!(!outbox.was_sent_to(account, "ann@example.com").unwrap());
        assert_eq!(bench.attempt(&sent).await.state, State::Sent);

        let ids = |holds: &[Hold]| holds.iter().map(|h| h.id.clone()).collect::<std::collections::BTreeSet<_>>();
        let set = |all: &[&HoldId]| all.iter().map(|id| (*id).clone()).collect::<std::collections::BTreeSet<_>>();
        let pending = outbox.pending(account, 100).unwrap();
        assert_eq!(ids(&pending.holds), set(&[&waits[0], &waits[1], &waits[2], &unknown]));
        let two = outbox.pending(account, 2).unwrap();
        assert_eq!((two.holds.len(), two.all), (2, 4));
        assert_eq!(outbox.recent(account, 2).unwrap().len(), 6);
        assert_eq!(outbox.recent(account, 100).unwrap().len(), outbox.list(account).unwrap().len());
        assert_eq!(outbox.recent(account, 0).unwrap().len(), 4);
        assert_eq!(outbox.waiting(account).unwrap(), 3);
        assert!(outbox.was_sent_to(account, "ann@example.com").unwrap());
        assert!(!outbox.was_sent_to(&AccountId("x@example.org".into()), "ann@example.com").unwrap());

        // A state from before there were these rows gets them at its start.
        store::write(bench.store.as_ref(), |w| -> Result<(), HoldError> {
            for prefix in [&b"u/"[..], b"s/", b"i/"] {
                for (key, _) in w.scan(Table::Hold, prefix, b"", 100)? {
                    w.delete(Table::Hold, &key)?;
                }
            }
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(outbox.pending(account, 100).unwrap().all, 3);
        outbox.recover().await.unwrap();
        assert_eq!(ids(&outbox.pending(account, 100).unwrap().holds), ids(&pending.holds));
        assert!(outbox.was_sent_to(account, "ann@example.com").unwrap());
    }
}
