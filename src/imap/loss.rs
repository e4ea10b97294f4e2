//! Messages that are gone from INBOX, as far as that can be believed.
//!
//! Promises: a sudden loss that wasn't our own doing is told to nobody before
//! a second connection sees it too. Doesn't know: how the loss was noticed.

use std::collections::BTreeSet;

use crate::upstream::imap::UntaggedData;

use super::plan::Plan;
use super::pool::Lease;
use super::uid::UpstreamUid;
use super::watch::{WatchError, Watcher};

/// A loss of more than one in this many messages is confirmed on a second
/// connection before anyone is told.
const SUDDEN_LOSS: usize = 5;
/// Smaller mailboxes lose what they lose.
const SUDDEN_LOSS_MIN: usize = 10;

impl Watcher {
    /// Takes what is gone out of the mirror.
    pub(super) async fn settle_losses(&mut self) -> Result<(), WatchError> {
        let gone = std::mem::take(&mut self.gone);
        if gone.is_empty() {
            return Ok(());
        }
        let gone = self.confirmed(gone).await?;
        let mut plan = Plan::new(&self.mirror.account);
        {
            let state = self.mirror.state();
            for uid in gone {
                plan.forget(&state, uid);
            }
        }
        Ok(plan.execute(&self.mirror).await?)
    }

    /// What of `lost` is really gone. A sudden loss that wasn't our own doing
    /// is first looked at over a second connection.
    async fn confirmed(&mut self, mut lost: Vec<UpstreamUid>) -> Result<Vec<UpstreamUid>, WatchError> {
        {
            let mut state = self.mirror.state();
            lost.retain(|u| state.messages.contains_key(u));
            let others = lost.iter().filter(|u| !self.own.contains(u)).count();
            if !is_sudden(others, state.messages.len()) {
                return Ok(lost);
            }
            let doubted = std::mem::take(&mut state.doubted);
            if lost.iter().all(|u| doubted.contains(u)) {
                return Ok(lost);
            }
        }
        tracing::warn!(account = %self.mirror.account, messages = lost.len(), "a sudden loss: looking again");
        let there = match self.mirror.pool.any().await {
            Ok(second) => self.second_look(second).await?,
            Err(e) => {
                // The next watching connection is the second one then.
                self.mirror.state().doubted = lost.into_iter().collect();
                return Err(WatchError::Lost(format!("a sudden loss could not be confirmed: {e}")));
            }
        };
        let before = lost.len();
        lost.retain(|u| !there.contains(u));
        self.contradicted |= lost.len() < before;
        Ok(lost)
    }

    /// The UIDs of INBOX as another connection sees them.
    async fn second_look(&self, mut second: Lease) -> Result<BTreeSet<UpstreamUid>, WatchError> {
        second.forget_selection();
        let selected = second.select(b"INBOX", true).await?;
        if self.mirror.state().uidvalidity != Some(selected.uidvalidity) {
            return Err(WatchError::Lost("INBOX has another UIDVALIDITY".into()));
        }
        if selected.exists == 0 {
            return Ok(BTreeSet::new());
        }
        let outcome = second.run(b"UID FETCH 1:* (UID)").await?.ok()?;
        let uids = outcome.untagged.iter().filter_map(|u| match u.parse() {
            UntaggedData::Fetch { items, .. } => items.uid.and_then(UpstreamUid::new),
            _ => None,
        });
        Ok(uids.collect())
    }
}

/// Whether so many of so many messages may not go without a second look: more
/// than a fifth, or all of several.
fn is_sudden(lost: usize, known: usize) -> bool {
    let all = lost == known && known > 1;
    all || (known >= SUDDEN_LOSS_MIN && lost * SUDDEN_LOSS > known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_fifth_or_all_of_several_is_a_sudden_loss() {
        for (lost, known, sudden) in
            [(0, 0, false), (1, 1, false), (2, 2, true), (1, 2, false), (8, 9, false), (2, 10, false), (3, 10, true)]
        {
            assert_eq!(is_sudden(lost, known), sudden, "{lost} of {known}");
        }
    }
}
