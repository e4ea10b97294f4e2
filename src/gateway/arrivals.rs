//! What the gate says of new mail, looked up in the mirrors.
//!
//! Promises: counts only mail that arrived and was given a lane, and that the
//! view of agents shows; nothing for a key that may not read `Lanes/All`.
//! Doesn't know: who waits.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::watch;

use crate::account::{AccountId, Principal};
use crate::imap::agent::place_readable;
use crate::imap::lanes::Place;
use crate::imap::mirror::Mirror;
use crate::imap::uid::UpstreamUid;
use crate::imap::view::{Audience, Source};
use crate::web::gate::{Arrivals, Cursor, News};

/// UIDs that one answer names.
const MAX_UIDS: usize = 200;

/// Every account's mail.
pub(super) struct Views(pub(super) HashMap<AccountId, Arc<Mirror>>);

impl Arrivals for Views {
    fn look(&self, who: &Principal, since: Option<Cursor>) -> Option<(Cursor, News)> {
        let state = self.0.get(&who.account)?.state();
        let validity = state.uidvalidity?;
        let last = state.messages.last_key_value().map_or(0, |(uid, _)| uid.get());
        let last = since.filter(|s| s.validity == validity).map_or(last, |s| last.max(s.last));
        let view = state.view((Audience::Agents, Place::All))?;
        let mut news = News { uidvalidity: view.uidvalidity, ..News::default() };
        let lanes = state.lanes.as_ref()?;
        news.mailbox = lanes.name(Place::All);
        // What a key may not read is not told either, not even its number.
        let readable = place_readable(&who.grants.now(), lanes, Place::All);
        if let Some(known) = since.filter(|s| s.validity == validity && readable) {
            let from = UpstreamUid::new(known.last).map_or(Bound::Unbounded, Bound::Excluded);
            for (uid, message) in state.messages.range((from, Bound::Unbounded)) {
                let (Some(lane), Some(shown)) = (message.row.lane, view.uid_of(Source::Upstream(*uid))) else {
                    continue;
                };
                *news.lanes.entry(lane).or_default() += 1;
                news.uids.push(shown.get());
            }
            news.uids.sort_unstable();
            news.uids = news.uids.split_off(news.uids.len().saturating_sub(MAX_UIDS));
        }
        Some((Cursor { validity, last }, news))
    }

    fn changes(&self, who: &Principal) -> Option<watch::Receiver<u64>> {
        Some(self.0.get(&who.account)?.changes())
    }
}
