//! Every reply at every stage, and what it makes of an attempt.

use std::time::Duration;

use super::testing::{Bench, MESSAGE, envelope, large, tuning};
use super::*;
use crate::account::Role;
use crate::floor::envelope::{BodyType, Envelope, ForwardPath};
use crate::floor::ledger::{self, Event};
use crate::floor::submission::State;
use crate::upstream::smtp::Timeouts;
use crate::upstream::smtp::scripted::{CLOSE, Dot, Provider, SILENCE, Script};

/// How long each step may take here.
const PATIENCE: Duration = Duration::from_millis(250);

fn impatient() -> Tuning {
    let timeouts = Timeouts {
        greeting: PATIENCE,
        mail: PATIENCE,
        rcpt: PATIENCE,
        data_start: PATIENCE,
        data_block: Duration::from_secs(5),
        data_end: PATIENCE,
        other: PATIENCE,
    };
    Tuning { timeouts, ..tuning() }
}

use State::{Approved as Retry, Failed, Sent, Unknown};

/// One cell: what the provider does, what becomes of the message, and the
/// reason that the ledger gets.
type Cell = (&'static str, Script, State, &'static str);

fn with(change: impl FnOnce(&mut Script)) -> Script {
    let mut script = Script::default();
    change(&mut script);
    script
}

fn rcpt(reply: &'static str) -> Script {
    with(|s| s.rcpt = vec![("b@", reply)])
}

fn offering(words: &[&'static str]) -> Script {
    let all = ["p", "AUTH PLAIN"].iter().chain(words).copied().collect();
    with(|s| s.ehlo = all)
}

fn before_data() -> Vec<Cell> {
    vec![
        ("the greeting 4yz", with(|s| s.greeting = "421 4.3.2 not now"), Retry, "421"),
        ("the greeting 5yz", with(|s| s.greeting = "554 5.3.2 never"), Retry, "554"),
        ("lost at the greeting", with(|s| s.greeting = CLOSE), Retry, "local"),
        ("silent at the greeting", with(|s| s.greeting = SILENCE), Retry, "local"),
        ("EHLO 4yz", with(|s| s.no_ehlo = Some("421 4.3.2 no")), Retry, "421"),
        ("EHLO 5yz", with(|s| s.no_ehlo = Some("502 5.5.1 no")), Retry, "502"),
        ("lost at EHLO", with(|s| s.no_ehlo = Some(CLOSE)), Retry, "local"),
        ("silent at EHLO", with(|s| s.no_ehlo = Some(SILENCE)), Retry, "local"),
        ("AUTH 4yz", with(|s| s.auth = "454 4.7.0 later"), Retry, "454"),
        ("AUTH 5yz", with(|s| s.auth = "535 5.7.8 wrong"), Retry, "535"),
        ("AUTH too weak", with(|s| s.auth = "534 5.7.9 stronger"), Retry, "534"),
        ("no AUTH we know", with(|s| s.ehlo = vec!["p", "AUTH GSSAPI"]), Retry, "local"),
        ("lost at AUTH", with(|s| s.auth = CLOSE), Retry, "local"),
        ("silent at AUTH", with(|s| s.auth = SILENCE), Retry, "local"),
        ("MAIL 4yz", with(|s| s.mail = "450 4.2.0 wait"), Retry, "450"),
        ("MAIL 421", with(|s| s.mail = "421 4.3.2 closing"), Retry, "421"),
        ("MAIL 5yz", with(|s| s.mail = "550 5.7.1 no"), Failed, "550"),
        ("MAIL 552", with(|s| s.mail = "552 5.3.4 too large"), Failed, "552"),
        ("MAIL wants credentials", with(|s| s.mail = "530 5.7.0 sign in"), Retry, "530"),
        ("lost at MAIL", with(|s| s.mail = CLOSE), Retry, "local"),
        ("silent at MAIL", with(|s| s.mail = SILENCE), Retry, "local"),
        ("RCPT 4yz", rcpt("450 4.2.1 later"), Retry, "450"),
        ("RCPT 452", rcpt("452 4.5.3 too many"), Retry, "452"),
        ("RCPT 5yz", rcpt("550 5.1.1 nobody"), Failed, "550"),
        ("RCPT 553", rcpt("553 5.1.3 no address"), Failed, "553"),
        ("RCPT wants credentials", rcpt("530 5.7.0 sign in"), Retry, "530"),
        ("lost at RCPT", rcpt(CLOSE), Retry, "local"),
        ("silent at RCPT", rcpt(SILENCE), Retry, "local"),
        ("DATA 4yz", with(|s| s.data = "451 4.3.0 later"), Retry, "451"),
        ("DATA 421", with(|s| s.data = "421 4.3.2 closing"), Retry, "421"),
        ("DATA 5yz", with(|s| s.data = "554 5.5.1 no"), Failed, "554"),
        ("DATA wants credentials", with(|s| s.data = "530 5.7.0 sign in"), Retry, "530"),
        ("DATA 250", with(|s| s.data = "250 2.0.0 what"), Retry, "250"),
        ("lost at DATA", with(|s| s.data = CLOSE), Retry, "local"),
        ("silent at DATA", with(|s| s.data = SILENCE), Retry, "local"),
        ("SIZE is less now", offering(&["SIZE 10"]), Failed, "local"),
    ]
}

fn at_the_dot() -> Vec<Cell> {
    let dot = |dot| with(|s| s.dot = dot);
    vec![
        ("250", dot(Dot::Reply("250 2.0.0 ok")), Sent, ""),
        ("251", dot(Dot::Reply("251 2.0.0 ok, elsewhere")), Sent, ""),
        ("4yz", dot(Dot::Reply("451 4.3.0 later")), Retry, "451"),
        ("421", dot(Dot::Reply("421 4.3.2 closing")), Retry, "421"),
        ("452", dot(Dot::Reply("452 4.3.1 full")), Retry, "452"),
        ("5yz", dot(Dot::Reply("554 5.7.1 spam")), Failed, "554"),
        ("552", dot(Dot::Reply("552 5.3.4 too large")), Failed, "552"),
        ("354", dot(Dot::Reply("354 go on")), Unknown, "no_answer"),
        ("no reply", dot(Dot::Reply("what?")), Unknown, "no_answer"),
        ("half a reply", dot(Dot::Reply("250-2.0.0 ok")), Unknown, "no_answer"),
        ("lost", dot(Dot::Close), Unknown, "no_answer"),
        ("silent", dot(Dot::Silence), Unknown, "no_answer"),
    ]
}

/// The reason of the last attempt, as the ledger has it.
fn reason(bench: &Bench) -> String {
    let entries = bench.outbox.whole_ledger().unwrap();
    ledger::verify(&entries, None).unwrap();
    match &entries.last().unwrap().event {
        Event::Retry { reason, .. } | Event::Failed { reason, .. } | Event::Unknown { reason, .. } => reason.clone(),
        _ => String::new(),
    }
}

/// Runs one attempt for each cell; says how many octets of data were begun.
async fn run(cells: Vec<Cell>, data: bool) {
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::new(&provider, impatient(), |c| c.max_holds_per_key = 1000).await;
    for (name, script, state, code) in cells {
        provider.script(|s| *s = script);
        let (begun, complete) = (provider.got().len(), provider.complete().len());
        let id = bench.approved(envelope(&["a@example.com", "b@example.com", "c@example.com"]), MESSAGE).await;
        let after = bench.attempt(&id).await;
        assert_eq!(after.state, state, "{name}: {after:?}");
        assert_eq!(reason(&bench), code, "{name}");
        assert_eq!(after.next_attempt.is_some(), state == Retry, "{name}");
        assert_eq!(provider.got().len() - begun, usize::from(data), "{name}: octets of data");
        assert_eq!(provider.complete().len() - complete, usize::from(data), "{name}: final dots");
        let spent = crate::store::read(bench.store.as_ref(), |r| record::receipt(r, &id)).unwrap().unwrap().spent;
        assert_eq!(spent, state != Retry, "{name}: a receipt is spent with its message's end");
        assert!(after.detail.is_some_and(|detail| !detail.is_empty()), "{name}: nobody is told why");
        if state == Retry {
            provider.script(|s| *s = Script::default());
            assert_eq!(bench.attempt(&id).await.state, Sent, "{name}: another attempt helps");
        }
    }
}

#[tokio::test]
async fn each_reply_before_the_data_is_a_retry_or_a_failure_and_no_octet_goes() {
    run(before_data(), false).await;
}

#[tokio::test]
async fn each_reply_at_the_dot_is_its_own_outcome() {
    run(at_the_dot(), true).await;
}

#[tokio::test]
async fn three_accepted_one_refused_and_one_deferred_recipient_mean_that_not_an_octet_goes() {
    let mixed = vec![("d@", "550 5.1.1 nobody"), ("e@", "450 4.2.1 later")];
    for pipelining in [true, false] {
        let provider = Provider::start(with(|s| {
            s.rcpt = mixed.clone();
            s.ehlo.retain(|word| pipelining || *word != "PIPELINING");
        }))
        .await;
        let bench = Bench::new(&provider, impatient(), |_| {}).await;
        let five = ["a@example.com", "b@example.com", "c@example.com", "d@example.com", "e@example.com"];
        let id = bench.approved(envelope(&five), MESSAGE).await;
        let after = bench.attempt(&id).await;
        assert_eq!(after.state, Failed, "{after:?}");
        assert!(after.detail.unwrap().contains("<d@example.com> was refused, nothing was sent"));
        let commands = provider.commands();
        assert!(provider.got().is_empty() && !commands.contains(&"DATA".to_owned()), "{commands:?}");
        assert!(commands.contains(&"RSET".to_owned()));
        assert_eq!(commands.iter().filter(|c| c.starts_with("RCPT")).count(), 5);
    }
}

#[tokio::test]
async fn a_connection_lost_in_mid_transfer_sends_nothing_and_is_tried_again() {
    let provider = Provider::start(with(|s| {
        s.leaves_after = Some(4096);
        s.ehlo = vec!["p", "AUTH PLAIN"];
    }))
    .await;
    let bench = Bench::new(&provider, impatient(), |_| {}).await;
    // More than what the sockets' buffers hold.
    let mut octets = MESSAGE.to_vec();
    while octets.len() < 16 * 1024 * 1024 {
        octets.extend_from_slice(&[b'x'; 70]);
        octets.extend_from_slice(b"\r\n");
    }
    let id = bench.approved(envelope(&["b@example.com"]), &octets).await;
    let after = bench.attempt(&id).await;
    assert_eq!(after.state, Retry, "{after:?}");
    assert_eq!((provider.got().len(), provider.complete().len()), (1, 0));
}

#[tokio::test]
async fn what_is_not_offered_any_more_fails_with_its_name_and_nothing_is_converted() {
    let provider = Provider::start(offering(&["SIZE 1000000"])).await;
    let bench = Bench::new(&provider, impatient(), |_| {}).await;
    let path = |text: &str| vec![ForwardPath::parse(text).unwrap()];
    let eight = Envelope::new("demo@example.org", path("b@example.com"), BodyType::EightBitMime, false).unwrap();
    let utf8 = Envelope::new("demo@example.org", path("bé@example.com"), BodyType::EightBitMime, true).unwrap();
    let ascii = Envelope::new("demo@example.org", path("b@example.com"), BodyType::SevenBit, true).unwrap();
    for (envelope, what) in [(eight, "8BITMIME"), (utf8, "8BITMIME"), (ascii, "SMTPUTF8")] {
        let id = bench.approved(envelope, MESSAGE).await;
        let after = bench.attempt(&id).await;
        assert_eq!(after.state, Failed);
        assert!(after.detail.unwrap().contains(what), "{what}");
    }
    assert!(provider.commands().iter().all(|c| !c.starts_with("MAIL")), "{:?}", provider.commands());
}

#[tokio::test]
async fn tls_that_can_not_be_had_is_no_fault_of_the_message() {
    let ehlo = vec!["p", "STARTTLS", "AUTH PLAIN"];
    for (name, script) in [
        ("not offered", Script::default()),
        ("refused", with(|s| (s.ehlo, s.starttls) = (ehlo.clone(), "454 4.7.0 no"))),
        ("injected", with(|s| (s.ehlo, s.starttls) = (ehlo.clone(), "220 go\r\n250 2.0.0 injected"))),
        ("lost", with(|s| (s.ehlo, s.starttls) = (ehlo.clone(), CLOSE))),
    ] {
        let provider = Provider::start(script).await;
        let bench = Bench::over_tls(&provider, impatient()).await;
        let id = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
        let after = bench.attempt(&id).await;
        assert_eq!(after.state, Retry, "{name}: {after:?}");
        assert!(provider.commands().iter().all(|c| !c.starts_with("AUTH")), "{name}: credentials stay here");
    }
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_no_fault_of_the_message() {
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::elsewhere(impatient()).await;
    let id = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    assert_eq!(bench.attempt(&id).await.state, Retry);
    assert!(provider.commands().is_empty());
}

/// The octets are hashed before the provider is called, and again while they
/// are written: a change in between is found before the final dot.
#[tokio::test]
async fn a_file_that_is_swapped_in_mid_transfer_never_gets_the_dot() {
    let message = large();
    let swapped: Vec<u8> = message.iter().map(|o| if *o == b'e' { b'f' } else { *o }).collect();
    let longer = [&message[..], b"more\r\n"].concat();
    for other in [swapped, longer, message[..message.len() - 5].to_vec(), Vec::new()] {
        let wait = Arc::new(tokio::sync::Notify::new());
        let provider = Provider::start(with(|s| s.waits_at_data = Some(wait.clone()))).await;
        let bench = Bench::new(&provider, tuning(), |_| {}).await;
        let id = bench.approved(envelope(&["b@example.com"]), &message).await;
        let swap = async {
            while !provider.commands().contains(&"DATA".to_owned()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            bench.swap(&id, Some(other.clone())).await;
            wait.notify_one();
        };
        let (after, ()) = tokio::join!(bench.attempt(&id), swap);
        assert_eq!(after.state, Failed, "{after:?}");
        assert!(provider.complete().is_empty(), "{} octets", other.len());
    }
}

/// A store that can't be read now is no message that is gone.
#[tokio::test]
async fn octets_that_cannot_be_read_for_now_are_tried_again() {
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::new(&provider, tuning(), |_| {}).await;
    let id = bench.approved(envelope(&["b@example.com"]), &large()).await;
    let (file, aside) = (bench.file_of(&id), bench.config.state_dir.join("aside"));
    std::fs::rename(&file, &aside).unwrap();
    // Opening it fails, and not because there is nothing.
    std::os::unix::fs::symlink(&file, &file).unwrap();
    assert_eq!(bench.attempt(&id).await.state, Retry);
    assert!(provider.commands().is_empty());
    std::fs::rename(&aside, &file).unwrap();
    assert_eq!(bench.attempt(&id).await.state, Sent);
    assert_eq!(provider.complete().len(), 1);
}

/// Octets that would end a message early, or that a careless reader would
/// change, arrive as they were approved.
#[tokio::test]
async fn dots_at_line_starts_arrive_as_they_were_approved() {
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::new(&provider, impatient(), |c| c.max_holds_per_key = 100).await;
    let head = "From: demo@example.org\r\nSubject: x\r\n\r\n";
    let bodies = [
        ".\r\n",
        "..\r\n",
        "...\r\n",
        ".\r\n.\r\n",
        "a\r\n.\r\nb\r\n",
        ".a\r\n..b\r\n",
        "a.\r\n.\r\n",
        "\r\n.\r\n\r\n",
    ];
    for (n, body) in bodies.into_iter().enumerate() {
        let octets = format!("{head}{body}");
        let id = bench.approved(envelope(&["b@example.com"]), octets.as_bytes()).await;
        assert_eq!(bench.attempt(&id).await.state, Sent, "{body:?}");
        assert_eq!(provider.complete()[n].message(), octets.as_bytes(), "{body:?}");
    }
}

/// The end mark would add the line end that the approved octets don't have.
#[tokio::test]
async fn a_message_without_a_final_line_end_is_not_sent() {
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::new(&provider, impatient(), |_| {}).await;
    for cut in [1, 2] {
        let id = bench.approved(envelope(&["b@example.com"]), &MESSAGE[..MESSAGE.len() - cut]).await;
        let after = bench.attempt(&id).await;
        assert_eq!(after.state, Failed, "{after:?}");
    }
    assert!(provider.complete().is_empty());
}

#[tokio::test]
async fn an_unknown_outcome_is_held_again_only_where_a_person_says_so() {
    let provider = Provider::start(with(|s| s.dot = Dot::Close)).await;
    let bench = Bench::new(&provider, impatient(), |_| {}).await;
    let id = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    assert_eq!(bench.attempt(&id).await.state, Unknown);
    assert!(bench.outbox.claim(&bench.hold(&id)).await.unwrap().is_none(), "nothing claims it");
    let again = bench.outbox.resend_unknown(&bench.account, &id, "owner").await.unwrap();
    assert!(bench.outbox.claim(&bench.hold(&again)).await.unwrap().is_none(), "it waits for an approval of its own");
    for state in [Sent, Failed] {
        // Only what is unknown can be held again.
        provider.script(|s| s.dot = Dot::Reply(if state == Sent { "250 2.0.0 ok" } else { "554 5.7.1 no" }));
        let id = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
        assert_eq!(bench.attempt(&id).await.state, state);
        let refused = bench.outbox.resend_unknown(&bench.account, &id, "owner").await;
        assert!(matches!(refused, Err(HoldError::Illegal(_))), "{refused:?}");
    }
    assert!(bench.submit(Role::Agent, envelope(&["b@example.com"]), MESSAGE).await.is_ok());
}

static SCHEDULE: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(3_000_000);

/// The whole life of a message that the provider puts off for ever.
#[tokio::test]
async fn what_is_put_off_is_tried_by_the_schedule_until_its_receipt_ends() {
    use std::sync::atomic::Ordering::SeqCst;
    let provider = Provider::start(rcpt("450 4.2.1 later")).await;
    let clock = || SCHEDULE.load(SeqCst);
    let tuning = Tuning { clock, retry_seconds: super::retry_seconds, ..impatient() };
    let bench = Bench::new(&provider, tuning, |_| {}).await;
    let id = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    let began = clock();
    let end = bench.outbox.receipt(&id).unwrap().unwrap().payload.expiry;
    let mut waits = Vec::new();
    loop {
        let after = bench.attempt(&id).await;
        let Some(next) = after.next_attempt else {
            assert_eq!(after.state, Failed);
            assert!(after.detail.unwrap().contains("expired"));
            break;
        };
        waits.push((next - clock()) / 60);
        assert!(next <= end && next > clock());
        SCHEDULE.store(next, SeqCst);
    }
    assert_eq!(clock(), end, "the last look is at the receipt's end, and sends nothing");
    assert_eq!(&waits[..8], [1, 2, 5, 15, 30, 60, 60, 60]);
    assert_eq!(waits.iter().sum::<i64>() * 60, end - began);
    assert_eq!(provider.commands().iter().filter(|c| c.starts_with("MAIL")).count(), waits.len());
    assert!(provider.got().is_empty());
}
