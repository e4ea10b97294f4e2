//! The stored traces under the rule as it is now, or under other thresholds:
//! what would move. And those in which a sure scorer was against what is known.
//!
//! Promises: reads only; 100,000 traces take under two seconds in a release
//! build. Doesn't know: the messages, which stay where they are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use serde::{Deserialize, Serialize};

use crate::account::AccountId;
use crate::imap::rows;
use crate::lane::rule::{self, Canary, Inputs};
use crate::lane::trace::OFFLINE;
use crate::lane::{Context, Features, Lane, Signals, Thresholds};
use crate::store::{Store, StoreError, Table, read};

/// Moves that one answer names.
pub const MAX_MOVES: usize = 10_000;
/// Decisions that one review list names.
pub const MAX_CANARY: usize = 10_000;

/// Traces that one thread takes at once.
const PAGE: usize = 512;
/// Threads that read traces at most, beside the one that fetches them.
const MAX_THREADS: usize = 4;

/// What the rule reads of a trace, and what tells people which message it is.
/// The rest of a trace, which is most of it, is passed over.
#[derive(Debug, Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    decision: Cow<'a, str>,
    time: i64,
    #[serde(borrow)]
    from: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    scorers: Vec<Scored<'a>>,
    chosen: usize,
    signals: Signals,
    context: Context,
    verdict: Verdict,
    #[serde(borrow)]
    reason: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct Scored<'a> {
    #[serde(borrow)]
    scorer: Cow<'a, str>,
    features: Option<Features>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Verdict {
    lane: Lane,
    #[serde(default)]
    canary: Option<Canary>,
}

impl Stored<'_> {
    fn parse(value: &[u8]) -> Result<Stored<'_>, StoreError> {
        serde_json::from_slice(value).map_err(|e| StoreError::Damaged { table: Table::Decision, why: e.to_string() })
    }

    /// As [`crate::lane::trace::Trace::features`].
    fn features(&self) -> Features {
        self.scorers.get(self.chosen).and_then(|s| s.features).unwrap_or(Features::UNSCORABLE)
    }

    /// As [`crate::lane::trace::Trace::offline`].
    fn offline(&self) -> Features {
        self.scorers.iter().find(|s| s.scorer == OFFLINE).and_then(|s| s.features).unwrap_or(self.features())
    }

    fn decide(&self, thresholds: &Thresholds) -> rule::Verdict {
        let (features, offline) = (self.features(), self.offline());
        rule::decide(&Inputs { features, offline, signals: self.signals, context: &self.context }, thresholds)
    }
}

/// A decision that would be another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The account.
    pub account: String,
    /// The decision's id.
    pub decision: String,
    /// When it was made, Unix seconds.
    pub time: i64,
    /// The sender's address.
    pub from: Option<String>,
    /// The Message-ID.
    pub message_id: Option<String>,
    /// The lane that was decided.
    pub old: Lane,
    /// The lane that the rule gives now.
    pub new: Lane,
    /// The rule's row now.
    pub branch: &'static str,
    /// The guards that fire now.
    pub guards: Vec<&'static str>,
}

/// What a replay shows.
#[derive(Debug, Clone, Serialize)]
pub struct Replayed {
    /// The rule's version now.
    pub rule_version: u32,
    /// The thresholds of this replay.
    pub thresholds: Thresholds,
    /// Traces that were read.
    pub traces: usize,
    /// Those that would move.
    pub moved: usize,
    /// By lane: from, to, how many.
    pub moves: BTreeMap<&'static str, BTreeMap<&'static str, usize>>,
    /// Each, up to [`MAX_MOVES`].
    pub list: Vec<Move>,
}

/// A decision for review.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Doubt {
    /// The account.
    pub account: String,
    /// The decision's id.
    pub decision: String,
    /// When it was made, Unix seconds.
    pub time: i64,
    /// The lane that was decided.
    pub lane: Lane,
    /// What the scorer was against.
    pub canary: &'static str,
    /// How sure it was.
    pub confidence: f64,
    /// The sender's address.
    pub from: Option<String>,
    /// The Message-ID.
    pub message_id: Option<String>,
    /// The reason as shown.
    pub reason: String,
}

/// Decides every stored trace of these accounts again.
pub fn replay(store: &dyn Store, accounts: &[AccountId], thresholds: &Thresholds) -> Result<Replayed, StoreError> {
    let decided = |account: &AccountId, stored: &Stored<'_>, page: &mut Vec<Move>| {
        let verdict = stored.decide(thresholds);
        let (old, new) = (stored.verdict.lane, verdict.lane);
        if old == new {
            return;
        }
        page.push(Move {
            account: account.to_string(),
            decision: stored.decision.clone().into_owned(),
            time: stored.time,
            from: stored.from.clone().map(Cow::into_owned),
            message_id: stored.message_id.clone().map(Cow::into_owned),
            old,
            new,
            branch: verdict.branch.name(),
            guards: verdict.guards.iter().map(|g| g.name()).collect(),
        });
    };
    let mut out = Replayed {
        rule_version: rule::RULE_VERSION,
        thresholds: thresholds.clone(),
        traces: 0,
        moved: 0,
        moves: BTreeMap::new(),
        list: Vec::new(),
    };
    each(store, accounts, decided, |traces, page| {
        out.traces += traces;
        out.moved += page.len();
        for m in page {
            *out.moves.entry(m.old.name()).or_default().entry(m.new.name()).or_default() += 1;
            if out.list.len() < MAX_MOVES {
                out.list.push(m);
            }
        }
    })?;
    Ok(out)
}

/// The decisions for review, the newest first, and how many there are.
pub fn doubts(store: &dyn Store, accounts: &[AccountId], last: usize) -> Result<(usize, Vec<Doubt>), StoreError> {
    let doubted = |account: &AccountId, stored: &Stored<'_>, page: &mut Vec<Doubt>| {
        let Some(canary) = stored.verdict.canary else { return };
        page.push(Doubt {
            account: account.to_string(),
            decision: stored.decision.clone().into_owned(),
            time: stored.time,
            lane: stored.verdict.lane,
            canary: canary.name(),
            confidence: stored.features().confidence(),
            from: stored.from.clone().map(Cow::into_owned),
            message_id: stored.message_id.clone().map(Cow::into_owned),
            reason: stored.reason.clone().into_owned(),
        });
    };
    let mut found = Vec::new();
    each(store, accounts, doubted, |_, page| found.extend(page))?;
    let all = found.len();
    found.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.decision.cmp(&b.decision)));
    found.truncate(last.min(MAX_CANARY));
    Ok((all, found))
}

/// Some stored traces in a row.
struct Page {
    account: AccountId,
    /// The traces one behind another: threads that allocate what others free
    /// wait for one another.
    octets: Vec<u8>,
    ends: Vec<usize>,
}

impl Page {
    fn new(account: &AccountId) -> Page {
        Page { account: account.clone(), octets: Vec::new(), ends: Vec::with_capacity(PAGE) }
    }

    fn push(&mut self, value: &[u8]) {
        self.octets.extend_from_slice(value);
        self.ends.push(self.octets.len());
    }

    fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.octets[start..*end])
    }
}

/// Reads every trace of these accounts, on as many cores as there are: `visit`
/// notes what it finds, `take` gets the notes of so many traces, in the order
/// of the store.
fn each<T: Send>(
    store: &dyn Store,
    accounts: &[AccountId],
    visit: impl Fn(&AccountId, &Stored<'_>, &mut Vec<T>) + Sync,
    mut take: impl FnMut(usize, Vec<T>),
) -> Result<(), StoreError> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let read_page = |page: &Page| {
        let mut notes = Vec::new();
        for value in page.values() {
            visit(&page.account, &Stored::parse(value)?, &mut notes);
        }
        Ok((page.ends.len(), notes))
    };
    // A thread has one page in work and one in wait.
    let (pages, waiting) = mpsc::sync_channel::<(usize, Page)>(threads);
    let waiting = Mutex::new(waiting);
    let (notes, noted) = mpsc::channel();
    let mut all: BTreeMap<usize, Result<(usize, Vec<T>), StoreError>> = BTreeMap::new();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (waiting, read_page, notes) = (&waiting, &read_page, notes.clone());
            scope.spawn(move || {
                let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
                while let Some((number, page)) = next() {
                    // Nobody takes notes any more where the reading failed.
                    let _ = notes.send((number, read_page(&page)));
                }
            });
        }
        drop(notes);
        let fetched = fetch(store, accounts, &pages);
        drop(pages);
        all.extend(noted);
        fetched
    })?;
    for (_, page) in all {
        let (traces, notes) = page?;
        take(traces, notes);
    }
    Ok(())
}

/// Hands all stored traces over, page by page, each with its number.
fn fetch(store: &dyn Store, accounts: &[AccountId], pages: &mpsc::SyncSender<(usize, Page)>) -> Result<(), StoreError> {
    let gone = || StoreError::Failed("the threads that read traces have ended".to_owned());
    read(store, |r| {
        let mut numbers = 0..;
        let mut send = |page| numbers.next().and_then(|n| pages.send((n, page)).ok()).ok_or_else(gone);
        for account in accounts {
            let mut page = Page::new(account);
            let mut sent = Ok(());
            r.visit(Table::Decision, &rows::account_prefix(account), &[], &mut |_, value| {
                page.push(value);
                if page.ends.len() < PAGE {
                    return ControlFlow::Continue(());
                }
                sent = send(std::mem::replace(&mut page, Page::new(account)));
                if sent.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            sent?;
            send(page)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::trace::Trace;
    use crate::mail::address::Address;
    use crate::perceive::{AccountFacts, PerceiveInput, perceive};
    use crate::store::redb::RedbStore;
    use crate::store::{put_json, write};

    fn account() -> AccountId {
        AccountId::of(&Address::parse("mina@example.org").unwrap())
    }

    fn trace(n: usize, text: &str, context: Context) -> Trace {
        let octets = format!(
            "From: A\"{n} <a{n}@example.com>\r\nTo: mina@example.org\r\nSubject: s\r\nMessage-ID: <{n}\"x@example.com>\r\n\
             Date: Wed, 04 Nov 2026 10:00:00 +0100\r\n\r\n{text}\r\n"
        );
        let addresses = vec![Address::parse("mina@example.org").unwrap()];
        let facts = AccountFacts { addresses, timezone: "Europe/Berlin".to_owned(), authserv: vec![] };
        let at = 1_793_782_800;
        let input = PerceiveInput {
            octets: octets.as_bytes(),
            size: octets.len() as u64,
            account: &facts,
            now: at,
            internaldate: at,
            context,
        };
        perceive(&input, &Thresholds::default(), format!("{n:016x}"))
    }

    async fn keep(store: &RedbStore, traces: Vec<Trace>) {
        write(store, move |w| {
            for t in &traces {
                put_json(w, Table::Decision, &rows::decision_key(&account(), &t.decision), t)?;
            }
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn a_replay_decides_as_the_whole_trace_does_and_tells_what_would_move() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path()).unwrap();
        let urgent = "URGENT: the server is down, please call me back immediately, by 11:00 today at the latest.";
        let traces: Vec<Trace> = [urgent, "Thanks, no rush.", "Could you send me the figures by Friday?", ""]
            .iter()
            .enumerate()
            .map(|(n, text)| trace(n, text, Context::default()))
            .collect();
        let strict =
            Thresholds { push_urgency: 1.0, push_confidence: 1.0, stranger_urgency: 1.0, ..Thresholds::default() };
        for t in &traces {
            let json = serde_json::to_vec(t).unwrap();
            for thresholds in [&Thresholds::default(), &strict] {
                assert_eq!(Stored::parse(&json).unwrap().decide(thresholds), t.replay(thresholds));
            }
        }
        let pushed = traces.iter().filter(|t| t.verdict.lane == Lane::Push).count();
        assert!(pushed > 0, "the sample has something to move");
        keep(&store, traces).await;
        let same = replay(&store, &[account()], &Thresholds::default()).unwrap();
        assert_eq!((same.traces, same.moved), (4, 0));
        let moved = replay(&store, &[account()], &strict).unwrap();
        assert_eq!((moved.moved, moved.moves["push"].values().sum::<usize>()), (pushed, pushed));
        assert!(moved.list[0].message_id.as_deref().unwrap().contains('"'), "{:?}", moved.list);
    }

    #[tokio::test]
    async fn many_traces_are_told_in_the_order_of_the_store_whatever_thread_read_them() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path()).unwrap();
        let one = trace(0, "URGENT: the server is down, please call me back by 11:00 today.", Context::default());
        assert_eq!(one.verdict.lane, Lane::Push);
        let many = PAGE * 3 + 5;
        let traces = (0..many).map(|n| Trace { decision: format!("{n:016x}"), ..one.clone() }).collect();
        keep(&store, traces).await;
        let strict =
            Thresholds { push_urgency: 1.0, push_confidence: 1.0, stranger_urgency: 1.0, ..Thresholds::default() };
        let moved = replay(&store, &[account()], &strict).unwrap();
        assert_eq!((moved.traces, moved.moved, moved.list.len()), (many, many, many));
        assert!(moved.list.iter().enumerate().all(|(n, m)| m.decision == format!("{n:016x}")));
        let nobody = AccountId::of(&Address::parse("nobody@example.org").unwrap());
        assert_eq!(replay(&store, &[nobody], &strict).unwrap().traces, 0);
        write(&store, |w| w.put(Table::Decision, &rows::decision_key(&account(), "zz"), b"{")).await.unwrap();
        assert!(matches!(replay(&store, &[account()], &strict), Err(StoreError::Damaged { .. })));
    }

    #[tokio::test]
    async fn decisions_for_review_come_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path()).unwrap();
        let absent = || Context { history: crate::lane::History::Absent, ..Context::default() };
        let mut traces: Vec<Trace> = (0..3).map(|n| trace(n, "Thanks, no rush.", absent())).collect();
        for (n, t) in traces.iter_mut().enumerate() {
            t.time += n as i64;
            t.verdict.canary = (n != 1).then_some(Canary::Uncorroborated);
        }
        keep(&store, traces).await;
        let (all, list) = doubts(&store, &[account()], 1).unwrap();
        assert_eq!((all, list.len(), list[0].decision.as_str()), (2, 1, "0000000000000002"));
        assert_eq!(doubts(&store, &[account()], 10).unwrap().1.len(), 2);
    }
}
