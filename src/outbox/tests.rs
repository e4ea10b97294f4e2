//! The outbox against a scripted provider.

use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::watch;

use super::testing::{Bench, MESSAGE, large, tuning};
use super::*;
use crate::account::{KeyId, Role, demo};
use crate::floor::action::Action;
use crate::floor::envelope::{BodyType, Envelope, ForwardPath};
use crate::floor::hold::Reason;
use crate::floor::ledger::{self, Event};
use crate::floor::receipt::{Expect, Mismatch, ReceiptError};
use crate::floor::submission::State;
use crate::upstream::smtp::scripted::{Dot, Provider, Script};

fn envelope(to: &[&str], body: BodyType) -> Envelope {
    let paths = to.iter().map(|t| ForwardPath::parse(t).unwrap()).collect();
    Envelope::new("demo@example.org", paths, body, false).unwrap()
}

fn agent_key(bench: &Bench) -> KeyId {
    bench.accounts.authenticate(demo::ADDRESS, demo::AGENT_KEY).unwrap().key
}

async fn try_hold(bench: &Bench, role: Role, envelope: Envelope) -> Result<HoldId, HoldError> {
    let mut writer = bench.store.blobs().writer();
    writer.write(MESSAGE).unwrap();
    let (blob, length) = writer.finish().await.unwrap();
    let intake = Intake {
        account: bench.account.clone(),
        key: agent_key(bench),
        role,
        envelope,
        blob,
        row: None,
        length,
        message_id: None,
        subject: Some("x".to_owned()),
        reason: Reason::AgentKey,
        action: Action::SendEmail,
        lineage: None,
    };
    bench.outbox.hold(intake).await
}

async fn hold(bench: &Bench, to: &[&str]) -> HoldId {
    try_hold(bench, Role::Agent, envelope(to, BodyType::SevenBit)).await.unwrap()
}

/// Runs the dispatcher until it is dropped.
struct Running(watch::Sender<bool>);

impl Running {
    fn start(bench: &Bench) -> Running {
        let (stop, shutdown) = watch::channel(false);
        tokio::spawn(bench.outbox.clone().run(shutdown));
        Running(stop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.send(true);
    }
}

async fn bench(script: Script) -> (Provider, Bench) {
    let provider = Provider::start(script).await;
    let bench = Bench::new(&provider, tuning(), |_| {}).await;
    (provider, bench)
}

fn kinds(bench: &Bench) -> Vec<String> {
    let entries = bench.outbox.whole_ledger().unwrap();
    ledger::verify(&entries, bench.outbox.ledger_head().unwrap()).unwrap();
    let kind = |e: &Entry| serde_json::to_value(&e.event).unwrap()["kind"].as_str().unwrap().to_owned();
    entries.iter().map(kind).collect()
}

#[tokio::test]
async fn exactly_the_approved_octets_arrive_once_and_the_receipt_verifies() {
    let (provider, bench) = bench(Script::default()).await;
    let mut events = bench.outbox.events();
    let _running = Running::start(&bench);
    let id = hold(&bench, &["b@example.com", "a@example.com", "b@example.com"]).await;
    assert!(provider.commands().is_empty(), "nothing before the approval");
    bench.approve(&id).await;
    let sent = bench.wait_for(&id, State::Sent).await;
    assert_eq!(provider.complete().len(), 1);
    let got = &provider.got()[0];
    assert_eq!(got.message(), MESSAGE);
    assert_eq!(got.rcpt, ["RCPT TO:<a@example.com>", "RCPT TO:<b@example.com>"]);
    assert_eq!(got.mail, format!("MAIL FROM:<demo@example.org> SIZE={}", MESSAGE.len()));

    let receipt = bench.outbox.receipt(&id).unwrap().unwrap();
    let expect = Expect {
        message: Some((sent.blob.0, sent.length)),
        envelope: Some(&sent.envelope),
        account: Some("demo@example.org"),
        approver: Some("owner"),
        ..Expect::new(Action::SendEmail)
    };
    receipt.verify(&bench.outbox.verifying_keys(), &expect).unwrap();
    let more = envelope(&["a@example.com", "b@example.com", "c@example.com"], BodyType::SevenBit);
    let other = receipt.verify(&bench.outbox.verifying_keys(), &Expect { envelope: Some(&more), ..expect });
    assert_eq!(other.err(), Some(ReceiptError::Payload(Mismatch::Envelope)));
    let entry = bench.outbox.ledger(receipt.ledger_head.number, 1).unwrap().remove(0);
    receipt.check_ledger(Some(&entry)).unwrap();
    assert_eq!(kinds(&bench), ["held", "approved", "sending", "sent"]);
    for state in [State::Held, State::Approved, State::Sending, State::Sent] {
        assert_eq!(events.recv().await.unwrap().state, state);
    }
}

#[tokio::test]
async fn an_approval_is_for_what_was_shown_to_that_approver_and_once() {
    let (provider, bench) = bench(Script::default()).await;
    let (outbox, account) = (&bench.outbox, &bench.account);
    let id = hold(&bench, &["b@example.com"]).await;
    let shown = outbox.show(account, &id, "owner").await.unwrap();
    let (nonce, hash) = (shown.payload.nonce.as_str(), shown.hash.to_string());
    let other = outbox.show(account, &id, "owner").await.unwrap();
    assert_ne!(other.hash, shown.hash, "each page has a nonce of its own");

    let approve = |nonce: String, hash: String, approver: &'static str| async move {
        outbox.approve(account, &id.clone(), &nonce, &hash, approver).await.map(|_| ())
    };
    let id2 = HoldId::parse(other.payload.hold_id.as_str()).unwrap();
    let wrong = outbox.approve(account, &id2, nonce, &other.hash.to_string(), "owner").await;
    assert!(matches!(wrong, Err(ApproveError::HashDiffers)));
    let wrong = outbox.approve(account, &id2, nonce, "", "owner").await;
    assert!(matches!(wrong, Err(ApproveError::HashDiffers)));
    let wrong = outbox.approve(account, &id2, "00", &hash, "owner").await;
    assert!(matches!(wrong, Err(ApproveError::Stale)));
    let wrong = outbox.approve(account, &id2, nonce, &hash, "somebody").await;
    assert!(matches!(wrong, Err(ApproveError::Stale)));
    let stranger = AccountId("x@example.org".into());
    assert!(matches!(
        outbox.approve(&stranger, &id2, nonce, &hash, "owner").await,
        Err(ApproveError::NoAccount | ApproveError::NotFound)
    ));
    assert!(outbox.get(&stranger, &id2).unwrap().is_none());
    assert!(outbox.receipt(&id2).unwrap().is_none());

    approve(nonce.to_owned(), hash.clone(), "owner").await.unwrap();
    let again = outbox.approve(account, &id2, nonce, &hash, "owner").await;
    assert!(matches!(again, Err(ApproveError::NotHeld(State::Approved))));
    let again = outbox.approve(account, &id2, &other.payload.nonce, &other.hash.to_string(), "owner").await;
    assert!(matches!(again, Err(ApproveError::NotHeld(State::Approved))));
    assert_eq!(kinds(&bench), ["held", "approved"]);
    let _running = Running::start(&bench);
    bench.wait_for(&id2, State::Sent).await;
    assert_eq!(provider.complete().len(), 1);
}

#[tokio::test]
async fn two_approvals_at_once_make_one() {
    let (_provider, bench) = bench(Script::default()).await;
    let id = hold(&bench, &["b@example.com"]).await;
    let shown = bench.outbox.show(&bench.account, &id, "owner").await.unwrap();
    let hash = shown.hash.to_string();
    let one = || bench.outbox.approve(&bench.account, &id, &shown.payload.nonce, &hash, "owner");
    let (a, b, c) = tokio::join!(one(), one(), one());
    assert_eq!([a.is_ok(), b.is_ok(), c.is_ok()].iter().filter(|ok| **ok).count(), 1);
    assert_eq!(kinds(&bench), ["held", "approved"]);
}

#[tokio::test]
async fn one_refused_recipient_means_that_nothing_is_sent() {
    let rcpt = vec![("bad", "550 5.1.1 no such user")];
    let (provider, bench) = bench(Script { rcpt, ..Script::default() }).await;
    let _running = Running::start(&bench);
    let id = hold(&bench, &["a@example.com", "b@example.com", "bad@example.com", "c@example.com"]).await;
    bench.approve(&id).await;
    let failed = bench.wait_for(&id, State::Failed).await;
    assert!(failed.detail.unwrap().contains("<bad@example.com> was refused, nothing was sent: 550 5.1.1"));
    assert!(provider.got().is_empty(), "not an octet");
    assert!(provider.commands().contains(&"RSET".to_owned()));
    assert!(
        bench
            .outbox
            .whole_ledger()
            .unwrap()
            .iter()
            .any(|e| matches!(&e.event, Event::Failed { reason, .. } if reason == "550"))
    );
}

#[tokio::test]
async fn refusals_for_now_are_tried_again() {
    for (change, kind) in [
        (Script { rcpt: vec![("b@", "451 4.7.1 greylisted")], ..Script::default() }, 0),
        (Script { dot: Dot::Reply("451 4.3.0 later"), ..Script::default() }, 1),
        (Script { data: "421 4.3.2 busy", ..Script::default() }, 2),
        (Script { mail: "450 4.2.0 wait", ..Script::default() }, 3),
        (Script { auth: "535 5.7.8 wrong", ..Script::default() }, 4),
        (Script { greeting: "554 no", ..Script::default() }, 5),
    ] {
        let (provider, bench) = bench(change).await;
        let _running = Running::start(&bench);
        let id = hold(&bench, &["b@example.com"]).await;
        bench.approve(&id).await;
        for _ in 0..500 {
            if bench.outbox.get(&bench.account, &id).unwrap().unwrap().attempt > 1 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        provider.script(|s| *s = Script::default());
        bench.outbox.kick();
        let sent = bench.wait_for(&id, State::Sent).await;
        assert!(sent.attempt >= 2, "{kind}");
        assert!(kinds(&bench).contains(&"retry".to_owned()), "{kind}");
        assert_eq!(provider.complete().last().unwrap().message(), MESSAGE);
    }
}

#[tokio::test]
async fn refusals_for_good_fail() {
    for script in [
        Script { dot: Dot::Reply("554 5.7.1 spam"), ..Script::default() },
        Script { data: "554 5.7.1 no", ..Script::default() },
        Script { mail: "550 5.7.1 no", ..Script::default() },
        Script { rcpt: vec![("a@", "451 4.7.1 later"), ("b@", "550 5.1.1 no")], ..Script::default() },
        Script { ehlo: vec!["p", "SIZE 10", "AUTH PLAIN"], ..Script::default() },
    ] {
        let (_provider, bench) = bench(script).await;
        let _running = Running::start(&bench);
        let id = hold(&bench, &["a@example.com", "b@example.com"]).await;
        bench.approve(&id).await;
        bench.wait_for(&id, State::Failed).await;
        assert_eq!(kinds(&bench), ["held", "approved", "sending", "failed"]);
    }
}

#[tokio::test]
async fn what_the_provider_does_not_offer_is_not_converted() {
    let (provider, bench) = bench(Script { ehlo: vec!["p", "AUTH PLAIN"], ..Script::default() }).await;
    let _running = Running::start(&bench);
    let eight_bit = envelope(&["b@example.com"], BodyType::EightBitMime);
    let id = try_hold(&bench, Role::Agent, eight_bit).await.unwrap();
    bench.approve(&id).await;
    let failed = bench.wait_for(&id, State::Failed).await;
    assert!(failed.detail.unwrap().contains("8BITMIME"));
    assert!(provider.commands().iter().all(|c| !c.starts_with("MAIL")));
}

#[tokio::test]
async fn silence_after_the_dot_is_unknown_and_only_a_person_holds_it_again() {
    for dot in [Dot::Silence, Dot::Close] {
        let (provider, bench) = bench(Script { dot, ..Script::default() }).await;
        let _running = Running::start(&bench);
        let id = hold(&bench, &["b@example.com"]).await;
        let early = bench.outbox.resend_unknown(&bench.account, &id, "owner").await;
        assert!(matches!(early, Err(HoldError::Illegal(_))));
        bench.approve(&id).await;
        bench.wait_for(&id, State::Unknown).await;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        assert_eq!(provider.complete().len(), 1, "never by itself");
        let again = bench.outbox.resend_unknown(&bench.account, &id, "owner").await.unwrap();
        assert_eq!(bench.wait_for(&again, State::Held).await.blob, bench.wait_for(&id, State::Unknown).await.blob);
        let twice = bench.outbox.resend_unknown(&bench.account, &id, "owner").await;
        assert!(matches!(twice, Err(HoldError::Again(found)) if found == again));
        assert_eq!(provider.complete().len(), 1, "it needs an approval of its own");
        assert_eq!(kinds(&bench), ["held", "approved", "sending", "unknown", "reheld", "held"]);
    }
}

#[tokio::test]
async fn what_a_restart_finds_under_way_is_unknown() {
    let (provider, bench) = bench(Script::default()).await;
    let id = hold(&bench, &["b@example.com"]).await;
    bench.approve(&id).await;
    let approved = bench.wait_for(&id, State::Approved).await;
    assert!(bench.outbox.claim(&approved).await.unwrap().is_some());
    assert!(bench.outbox.claim(&approved).await.unwrap().is_none(), "claimed once");
    let _running = Running::start(&bench);
    bench.wait_for(&id, State::Unknown).await;
    assert!(provider.commands().is_empty());
    assert!(store::read(bench.store.as_ref(), |r| record::receipt(r, &id)).unwrap().unwrap().spent);
}

#[tokio::test]
async fn an_approved_message_outlives_a_restart() {
    let (provider, bench) = bench(Script::default()).await;
    let id = hold(&bench, &["b@example.com"]).await;
    bench.approve(&id).await;
    let again = Outbox::tuned(bench.config.clone(), bench.store.clone(), bench.accounts.clone(), tuning()).unwrap();
    assert_eq!(again.gateway_id(), bench.outbox.gateway_id());
    again.set_embedded_submission(provider.endpoint(crate::config::TlsMode::None));
    let (_stop, shutdown) = watch::channel(false);
    tokio::spawn(Arc::new(again).run(shutdown));
    bench.wait_for(&id, State::Sent).await;
}

#[tokio::test]
async fn octets_that_changed_after_the_approval_are_not_sent() {
    let other = b"From: demo@example.org\r\n\r\nother\r\n".to_vec();
    // A row of the database, and a file.
    let sizes = [MESSAGE.to_vec(), large()];
    for (message, change) in sizes.iter().flat_map(|m| [(m, Some(other.clone())), (m, None)]) {
        let (provider, bench) = bench(Script::default()).await;
        let id = bench.approved(envelope(&["b@example.com"], BodyType::SevenBit), message).await;
        bench.swap(&id, change).await;
        let _running = Running::start(&bench);
        bench.wait_for(&id, State::Failed).await;
        assert!(provider.commands().is_empty(), "the provider is not even called");
    }
}

/// One row that a disk or a person spoiled costs that hold, not the others.
#[tokio::test]
async fn a_hold_whose_row_is_damaged_stops_no_other() {
    let (provider, bench) = bench(Script::default()).await;
    let damaged = hold(&bench, &["a@example.com"]).await;
    let good = hold(&bench, &["b@example.com"]).await;
    bench.approve(&damaged).await;
    bench.approve(&good).await;
    let key = [b"h/", damaged.as_str().as_bytes()].concat();
    let spoil = move |w: &mut dyn Writer| w.put(Table::Hold, &key, b"{\"id\":");
    store::write::<_, StoreError>(bench.store.as_ref(), spoil).await.unwrap();
    bench.outbox.recover().await.unwrap();
    let _running = Running::start(&bench);
    bench.wait_for(&good, State::Sent).await;
    assert_eq!(provider.complete().len(), 1);
    let listed = bench.outbox.recent(&bench.account, 10).unwrap();
    assert_eq!(listed.iter().map(|h| &h.id).collect::<Vec<_>>(), [&good]);
    assert_eq!(bench.outbox.list(&bench.account).unwrap().len(), 1);
    assert!(matches!(bench.outbox.get(&bench.account, &damaged), Err(HoldError::Store(StoreError::Damaged { .. }))));
    assert!(bench.outbox.approve(&bench.account, &damaged, "n", "h", "owner").await.is_err());
    // Nobody knows which octets it names: none may be swept.
    assert!(matches!(bench.outbox.live_blobs(), Err(StoreError::Damaged { .. })));
    // Its key can be revoked all the same.
    bench.outbox.revoke_key(&agent_key(&bench), None).await.unwrap();
}

#[tokio::test]
async fn an_envelope_that_changed_after_the_approval_is_not_sent() {
    let (provider, bench) = bench(Script::default()).await;
    let id = hold(&bench, &["b@example.com"]).await;
    bench.approve(&id).await;
    let mut hold = bench.wait_for(&id, State::Approved).await;
    hold.envelope = envelope(&["b@example.com", "c@example.com"], BodyType::SevenBit);
    store::write(bench.store.as_ref(), move |w| record::save(w, &hold)).await.unwrap();
    let _running = Running::start(&bench);
    let failed = bench.wait_for(&id, State::Failed).await;
    assert!(failed.detail.unwrap().contains("the envelope differs"));
    assert!(provider.commands().is_empty());
}

#[tokio::test]
async fn denied_and_withdrawn_holds_can_not_be_approved() {
    let (_provider, bench) = bench(Script::default()).await;
    for deny in [true, false] {
        let id = hold(&bench, &["b@example.com"]).await;
        let shown = bench.outbox.show(&bench.account, &id, "owner").await.unwrap();
        let state = if deny {
            bench.outbox.deny(&bench.account, &id, "not\r\nthis", "owner").await.unwrap();
            State::Denied
        } else {
            bench.outbox.withdraw(&bench.account, &id).await.unwrap();
            State::Withdrawn
        };
        let late =
            bench.outbox.approve(&bench.account, &id, &shown.payload.nonce, &shown.hash.to_string(), "owner").await;
        assert!(matches!(late, Err(ApproveError::NotHeld(found)) if found == state));
        let twice = bench.outbox.deny(&bench.account, &id, "", "owner").await;
        assert!(matches!(twice, Err(HoldError::Illegal(_))));
    }
    let list = bench.outbox.list(&bench.account).unwrap();
    assert_eq!(list.len(), 2);
    assert!(list.iter().any(|h| h.detail.as_deref() == Some("notthis")));
    assert!(bench.outbox.list(&AccountId("x@example.org".into())).unwrap().is_empty());
}

static EXPIRE_CLOCK: AtomicI64 = AtomicI64::new(1_000_000);

#[tokio::test]
async fn a_hold_expires_but_a_persons_own_does_not() {
    let provider = Provider::start(Script::default()).await;
    let clock = || EXPIRE_CLOCK.load(Ordering::SeqCst);
    let bench = Bench::new(&provider, Tuning { clock, ..tuning() }, |_| {}).await;
    let id = hold(&bench, &["b@example.com"]).await;
    let own = try_hold(&bench, Role::Person, envelope(&["b@example.com"], BodyType::SevenBit)).await.unwrap();
    let shown = bench.outbox.show(&bench.account, &id, "owner").await.unwrap();
    let approve = || {
        let (nonce, hash) = (shown.payload.nonce.clone(), shown.hash.to_string());
        let (outbox, account, id) = (bench.outbox.clone(), bench.account.clone(), id.clone());
        async move { outbox.approve(&account, &id, &nonce, &hash, "owner").await }
    };
    EXPIRE_CLOCK.fetch_add(SHOWN_TTL_SECONDS, Ordering::SeqCst);
    assert!(matches!(approve().await, Err(ApproveError::Stale)), "an old page");
    EXPIRE_CLOCK.fetch_add(i64::try_from(bench.config.hold_ttl.as_secs()).unwrap(), Ordering::SeqCst);
    assert!(matches!(approve().await, Err(ApproveError::NotHeld(State::Expired))), "before anything swept it");
    let _running = Running::start(&bench);
    bench.wait_for(&id, State::Expired).await;
    EXPIRE_CLOCK.fetch_sub(1_000_000, Ordering::SeqCst);
    assert_eq!(bench.wait_for(&own, State::Held).await.expires_at, None);
    bench.outbox.withdraw(&bench.account, &own).await.unwrap();
    let times: Vec<i64> = bench.outbox.whole_ledger().unwrap().iter().map(|e| e.time).collect();
    assert!(times.is_sorted(), "a clock that is set back moves nothing back: {times:?}");
}

static RECEIPT_CLOCK: AtomicI64 = AtomicI64::new(1_000_000);

#[tokio::test]
async fn a_receipt_ends_its_retries() {
    let provider = Provider::start(Script { mail: "450 4.2.0 wait", ..Script::default() }).await;
    let clock = || RECEIPT_CLOCK.load(Ordering::SeqCst);
    let bench = Bench::new(&provider, Tuning { clock, ..tuning() }, |_| {}).await;
    let _running = Running::start(&bench);
    let id = hold(&bench, &["b@example.com"]).await;
    bench.approve(&id).await;
    while !kinds(&bench).contains(&"retry".to_owned()) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    RECEIPT_CLOCK.fetch_add(i64::try_from(bench.config.receipt_ttl.as_secs()).unwrap(), Ordering::SeqCst);
    bench.outbox.kick();
    let failed = bench.wait_for(&id, State::Failed).await;
    assert!(failed.detail.unwrap().contains("expired"));
}

#[tokio::test]
async fn a_revoked_keys_holds_go_nowhere() {
    let (provider, bench) = bench(Script::default()).await;
    let held = hold(&bench, &["b@example.com"]).await;
    let approved = hold(&bench, &["c@example.com"]).await;
    bench.approve(&approved).await;
    let shown = bench.outbox.show(&bench.account, &held, "owner").await.unwrap();
    let key = agent_key(&bench);
    bench.accounts.revoke(&key).await.unwrap();
    let late =
        bench.outbox.approve(&bench.account, &held, &shown.payload.nonce, &shown.hash.to_string(), "owner").await;
    assert!(matches!(late, Err(ApproveError::KeyRevoked)));
    bench.outbox.revoke_key(&key, None).await.unwrap();
    bench.wait_for(&held, State::Withdrawn).await;
    let _running = Running::start(&bench);
    bench.wait_for(&approved, State::Failed).await;
    assert!(provider.commands().is_empty());
}

#[tokio::test]
async fn open_holds_of_a_key_are_limited_and_ended_ones_do_not_count() {
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::new(&provider, tuning(), |c| c.max_holds_per_key = 2).await;
    let first = hold(&bench, &["b@example.com"]).await;
    hold(&bench, &["b@example.com"]).await;
    let one = || envelope(&["b@example.com"], BodyType::SevenBit);
    assert!(matches!(try_hold(&bench, Role::Agent, one()).await, Err(HoldError::TooMany(2))));
    assert!(try_hold(&bench, Role::Person, one()).await.is_ok(), "a person's own are not limited");
    bench.outbox.deny(&bench.account, &first, "", "owner").await.unwrap();
    // The person's hold carries the same key here and still counts.
    assert!(matches!(try_hold(&bench, Role::Agent, one()).await, Err(HoldError::TooMany(2))));
    let open = store::read(bench.store.as_ref(), |r| record::open(r)).unwrap();
    assert_eq!(open.len(), 2);
    bench.outbox.withdraw(&bench.account, &open[0].id).await.unwrap();
    assert!(try_hold(&bench, Role::Agent, one()).await.is_ok());
    assert_eq!(bench.outbox.live_blobs().unwrap().len(), 1);
}

#[test]
fn retries_wait_longer_and_longer() {
    let waits: Vec<i64> = (1..=8).map(retry_seconds).collect();
    assert_eq!(waits, [60, 120, 300, 900, 1800, 3600, 3600, 3600]);
}
