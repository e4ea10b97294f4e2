//! Two dispatchers over one store.

use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::watch;

use super::dispatch::{Outcome, Why};
use super::testing::{Bench, MESSAGE, envelope, tuning};
use super::*;
use crate::config::TlsMode;
use crate::floor::ledger::{self, Event};
use crate::floor::submission::State;
use crate::upstream::smtp::scripted::{Provider, Script};

/// A second outbox over the bench's store.
fn second(bench: &Bench, provider: &Provider, tuning: Tuning) -> Arc<Outbox> {
    let other = Outbox::tuned(bench.config.clone(), bench.store.clone(), bench.accounts.clone(), tuning).unwrap();
    other.set_embedded_submission(provider.endpoint(TlsMode::None));
    Arc::new(other)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_dispatchers_never_take_one_message() {
    const MESSAGES: usize = 30;
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::new(&provider, tuning(), |c| c.max_holds_per_key = 100).await;
    let other = second(&bench, &provider, tuning());
    let (stop, shutdown) = watch::channel(false);
    let one = tokio::spawn(bench.outbox.clone().run(shutdown.clone()));
    let two = tokio::spawn(other.clone().run(shutdown));
    let mut ids = Vec::new();
    for _ in 0..MESSAGES {
        ids.push(bench.approved(envelope(&["b@example.com"]), MESSAGE).await);
        // Both look at the same moment.
        bench.outbox.kick();
        other.kick();
    }
    for id in &ids {
        bench.wait_for(id, State::Sent).await;
    }
    stop.send(true).unwrap();
    one.await.unwrap();
    two.await.unwrap();
    assert_eq!(provider.complete().len(), MESSAGES);
    let entries = bench.outbox.whole_ledger().unwrap();
    ledger::verify(&entries, None).unwrap();
    let attempts = entries.iter().filter(|e| matches!(e.event, Event::Sending { .. })).count();
    assert_eq!(attempts, MESSAGES, "each was claimed once");
}

#[tokio::test]
async fn of_two_claims_at_once_one_wins() {
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::new(&provider, tuning(), |_| {}).await;
    let other = second(&bench, &provider, tuning());
    let id = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    let hold = bench.hold(&id);
    let (a, b, c) = tokio::join!(bench.outbox.claim(&hold), other.claim(&hold), other.claim(&hold));
    let won = [a, b, c].into_iter().filter(|claim| claim.as_ref().unwrap().is_some()).count();
    assert_eq!(won, 1);
}

static CLOCK: AtomicI64 = AtomicI64::new(2_000_000);

#[tokio::test]
async fn a_claim_that_lapsed_is_unknown_and_its_dispatcher_may_not_go_on() {
    let provider = Provider::start(Script::default()).await;
    let slow = Tuning { clock: || CLOCK.load(Ordering::SeqCst), ..tuning() };
    let bench = Bench::new(&provider, slow, |_| {}).await;
    let other = second(&bench, &provider, slow);
    let id = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    let claimed = bench.outbox.claim(&bench.hold(&id)).await.unwrap().unwrap();
    bench.outbox.begin_work(&id);

    // As long as it lasts the other leaves it alone, also at its own start.
    other.recover().await.unwrap();
    CLOCK.fetch_add(LEASE_SECONDS - 1, Ordering::SeqCst);
    other.doubt_orphans().await.unwrap();
    assert_eq!(bench.hold(&id).state, State::Sending);
    // A renewal makes it last longer.
    bench.outbox.renew_leases().await.unwrap();
    CLOCK.fetch_add(LEASE_SECONDS - 1, Ordering::SeqCst);
    other.doubt_orphans().await.unwrap();
    assert_eq!(bench.hold(&id).state, State::Sending);
    bench.outbox.keep_lease(&claimed).await.unwrap();

    CLOCK.fetch_add(LEASE_SECONDS, Ordering::SeqCst);
    other.doubt_orphans().await.unwrap();
    assert_eq!(bench.hold(&id).state, State::Unknown);
    let late = bench.outbox.keep_lease(&claimed).await;
    assert!(matches!(late, Err(HoldError::LostLease)), "{late:?}");
    let outcome = Outcome::ForNow(Why { code: "451".to_owned(), text: "later".to_owned() });
    let late = bench.outbox.settle(&claimed, &outcome).await;
    assert!(matches!(late, Err(HoldError::LostLease)), "{late:?}");
    assert_eq!(bench.hold(&id).state, State::Unknown, "a person decides");
    // A dispatcher that slept through the end of its claim gets to MAIL and
    // RCPT, and not to DATA.
    let _ = bench.outbox.send(&claimed).await;
    assert!(provider.got().is_empty(), "{:?}", provider.commands());
}

static DELETING: AtomicI64 = AtomicI64::new(2_000_000);

#[tokio::test]
async fn a_deletion_is_carried_out_once_and_never_under_a_claim_that_lapsed() {
    let provider = Provider::start(Script::default()).await;
    let slow = Tuning { clock: || DELETING.load(Ordering::SeqCst), ..tuning() };
    let bench = Bench::new(&provider, slow, |_| {}).await;
    let done = Arc::new(AtomicI64::new(0));
    let count = done.clone();
    bench.outbox.set_executor(Arc::new(move |_, permit| {
        count.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(permit.into_used()) })
    }));
    let deletion = bench.deletion("Archive");
    let hold = async || {
        let id = bench.outbox.hold_deletion(&bench.agent(), &deletion).await.unwrap();
        bench.approve(&id).await;
        bench.outbox.claim(&bench.hold(&id)).await.unwrap().unwrap()
    };

    let claimed = hold().await;
    DELETING.fetch_add(LEASE_SECONDS, Ordering::SeqCst);
    let outcome = bench.outbox.send(&claimed).await;
    assert!(matches!(outcome, Outcome::ForNow(_)), "{outcome:?}");
    assert_eq!(done.load(Ordering::SeqCst), 0, "nothing is removed without a claim");

    let claimed = hold().await;
    let head = bench.outbox.ledger_head().unwrap().unwrap();
    let outcome = bench.outbox.send(&claimed).await;
    assert!(matches!(outcome, Outcome::Sent(..)), "{outcome:?}");
    assert_eq!(done.load(Ordering::SeqCst), 1);
    assert_eq!(bench.outbox.witness.read().unwrap().map(|s| s.head), Some(head), "a restored backup can tell");
    bench.outbox.settle(&claimed, &outcome).await.unwrap();
    let again = bench.outbox.send(&claimed).await;
    assert!(matches!(again, Outcome::ForGood(_)), "its receipt is spent: {again:?}");
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_claim_of_a_process_that_ended_is_unknown_at_once() {
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::new(&provider, tuning(), |_| {}).await;
    let id = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    bench.outbox.claim(&bench.hold(&id)).await.unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bench = bench.reopened_at(folder.path(), &provider).await;
    assert_eq!(bench.hold(&id).state, State::Sending);
    let found = bench.outbox.recover().await.unwrap();
    assert_eq!(found, Found { restored: None, cut_off: 1 });
    assert_eq!(bench.hold(&id).state, State::Unknown);
}
