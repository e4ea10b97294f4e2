//! How much may wait.

use super::testing::{Bench, Fills, MESSAGE, envelope, tuning};
use super::*;
use crate::account::Role;
use crate::floor::submission::State;
use crate::store::power::Dice;
use crate::upstream::smtp::scripted::{Provider, Script};

const LENGTH: u64 = MESSAGE.len() as u64;

async fn bench(change: impl FnOnce(&mut Config)) -> Bench {
    let provider = Provider::start(Script::default()).await;
    Bench::new(&provider, tuning(), change).await
}

async fn agent(bench: &Bench) -> Result<HoldId, HoldError> {
    bench.submit(Role::Agent, envelope(&["b@example.com"]), MESSAGE).await
}

#[tokio::test]
async fn the_octets_of_a_key_are_limited_and_come_back_when_it_is_decided() {
    let bench = bench(|c| c.max_held_bytes_per_key = 2 * LENGTH).await;
    let first = agent(&bench).await.unwrap();
    agent(&bench).await.unwrap();
    assert!(matches!(agent(&bench).await, Err(HoldError::TooManyOctets(_))));
    bench.outbox.deny(&bench.account, &first, "", "owner").await.unwrap();
    agent(&bench).await.unwrap();
    assert!(matches!(agent(&bench).await, Err(HoldError::TooManyOctets(_))));
}

#[tokio::test]
async fn a_message_that_never_fits_is_told_so() {
    let bench = bench(|c| c.max_held_bytes_per_key = LENGTH - 1).await;
    assert!(matches!(agent(&bench).await, Err(HoldError::NeverFits(n)) if n == LENGTH - 1));
    let bench = self::bench(|c| c.max_held_bytes = LENGTH - 1).await;
    assert!(matches!(agent(&bench).await, Err(HoldError::NeverFits(_))));
}

#[tokio::test]
async fn all_agents_together_are_limited_and_people_are_not() {
    for change in [(|c| c.max_holds = 2) as fn(&mut Config), |c| c.max_held_bytes = 2 * LENGTH] {
        let bench = bench(change).await;
        let person = || bench.submit(Role::Person, envelope(&["b@example.com"]), MESSAGE);
        person().await.unwrap();
        let first = agent(&bench).await.unwrap();
        agent(&bench).await.unwrap();
        assert!(matches!(agent(&bench).await, Err(HoldError::Crowded)));
        person().await.unwrap();
        bench.outbox.withdraw(&bench.account, &first).await.unwrap();
        agent(&bench).await.unwrap();
        assert!(matches!(agent(&bench).await, Err(HoldError::Crowded)));
    }
}

#[tokio::test]
async fn many_at_once_do_not_pass_a_limit_together() {
    let bench = bench(|c| c.max_holds_per_key = 5).await;
    let tries: Vec<_> = (0..20).map(|_| agent(&bench)).collect();
    let mut held = 0;
    let all = futures(tries).await;
    for one in all {
        match one {
            Ok(_) => held += 1,
            Err(error) => assert!(matches!(error, HoldError::TooMany(5)), "{error}"),
        }
    }
    assert_eq!(held, 5);
}

/// Drives all at once.
async fn futures<T>(all: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.into_iter().map(|f| (Box::pin(f), None)).collect();
    std::future::poll_fn(move |context| {
        for (future, done) in all.iter_mut().filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(out) = future.as_mut().poll(context) {
                *done = Some(out);
            }
        }
        match all.iter().all(|(_, done)| done.is_some()) {
            true => std::task::Poll::Ready(all.iter_mut().filter_map(|(_, done)| done.take()).collect()),
            false => std::task::Poll::Pending,
        }
    })
    .await
}

/// Every write of an approval and a dispatch meets a full disk once.
#[tokio::test]
async fn a_full_disk_refuses_loses_nothing_and_needs_no_restart() {
    let provider = Provider::start(Script::default()).await;
    let fills = Arc::new(Fills::default());
    let bench = Bench::filling(&provider, fills.clone()).await;
    let full = |is| fills.0.store(is, std::sync::atomic::Ordering::SeqCst);
    let is_full = |error: &HoldError| matches!(error, HoldError::Store(StoreError::Full(_)));
    let before = agent(&bench).await.unwrap();
    let shown = bench.outbox.show(&bench.account, &before, "owner").await.unwrap();
    full(true);
    assert!(is_full(&agent(&bench).await.unwrap_err()));
    assert!(is_full(&bench.outbox.show(&bench.account, &before, "owner").await.unwrap_err()));
    let approve = || {
        let (nonce, hash) = (shown.payload.nonce.clone(), shown.hash.to_string());
        let (outbox, account, id) = (bench.outbox.clone(), bench.account.clone(), before.clone());
        async move { outbox.approve(&account, &id, &nonce, &hash, "owner").await }
    };
    assert!(matches!(approve().await, Err(ApproveError::Store(StoreError::Full(_)))));
    assert!(is_full(&bench.outbox.deny(&bench.account, &before, "", "owner").await.unwrap_err()));
    full(false);
    assert_eq!(bench.hold(&before).state, State::Held);
    approve().await.unwrap();
    full(true);
    assert!(is_full(&bench.outbox.claim(&bench.hold(&before)).await.unwrap_err()));
    full(false);
    let claimed = bench.outbox.claim(&bench.hold(&before)).await.unwrap().unwrap();
    bench.outbox.begin_work(&before);
    full(true);
    // Nothing may be sent that a restored backup could not tell of.
    let outcome = bench.outbox.send(&claimed).await;
    assert!(provider.got().is_empty(), "{outcome:?}");
    assert!(is_full(&bench.outbox.settle(&claimed, &outcome).await.unwrap_err()));
    full(false);
    bench.outbox.settle(&claimed, &outcome).await.unwrap();
    bench.outbox.end_work(&before);
    assert_eq!(bench.attempt(&before).await.state, State::Sent);
    agent(&bench).await.unwrap();
    assert_eq!(bench.outbox.list(&bench.account).unwrap().len(), 2);
    crate::floor::ledger::verify(bench.outbox.whole_ledger().unwrap(), None).unwrap();
}

/// What is counted is what is there, whatever was done before.
#[tokio::test]
async fn the_counts_are_those_of_what_is_open() {
    let bench = bench(|c| c.max_holds_per_key = 1000).await;
    let (mut dice, mut open) = (Dice::new(5), Vec::new());
    for _ in 0..60 {
        match dice.below(3) {
            0 | 1 => {
                let role = if dice.below(2) == 0 { Role::Agent } else { Role::Person };
                open.push(bench.submit(role, envelope(&["b@example.com"]), MESSAGE).await.unwrap());
            }
            _ if open.is_empty() => {}
            _ => {
                let id = open.swap_remove(dice.below(open.len()));
                match dice.below(3) {
                    0 => bench.outbox.deny(&bench.account, &id, "", "owner").await.unwrap(),
                    1 => bench.outbox.withdraw(&bench.account, &id).await.unwrap(),
                    _ => {
                        bench.approve(&id).await;
                        bench.attempt(&id).await;
                    }
                }
            }
        }
        let key = bench.agent();
        let (holds, of_key, of_all) = store::read(bench.store.as_ref(), |r| -> Result<_, HoldError> {
            let (of_key, of_all) = record::counts(r, key.as_str())?;
            Ok((record::open(r)?, of_key, of_all))
        })
        .unwrap();
        let agents = holds.iter().filter(|h| h.role == Role::Agent);
        assert_eq!((of_key.holds, of_key.octets), (holds.len(), holds.iter().map(|h| h.length).sum::<u64>()));
        assert_eq!((of_all.holds, of_all.octets), (agents.clone().count(), agents.map(|h| h.length).sum::<u64>()));
    }
}
