//! The client against a scripted server.

use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::scripted::{Dot, Provider, Script};
use super::*;
use crate::floor::action::Action;
use crate::floor::envelope::{BodyType, Envelope, ForwardPath};
use crate::floor::hold::{Decision, Mode, decide};
use crate::floor::identity::signing_key;
use crate::floor::ledger::{Entry, Event};
use crate::floor::payload::{Payload, SCHEMA};
use crate::floor::receipt::{Expect, mint};
use crate::floor::release::Release;

const MESSAGE: &[u8] = b"From: a@example.org\r\n\r\n.dot\r\n..two\r\n.\r\nend\r\n";

/// For a person's own mail: any octets.
fn person() -> Release {
    match decide(false, Mode::Ai, false, false, false) {
        Decision::NoHold(no_hold) => Release::person_unheld(no_hold),
        Decision::Hold(_) => unreachable!(),
    }
}

/// For `message` and nothing else.
fn approved(message: &[u8]) -> Release {
    let paths = vec![ForwardPath::parse("b@example.com").unwrap()];
    let envelope = Envelope::new("a@example.org", paths, BodyType::SevenBit, false).unwrap();
    let payload = Payload {
        schema: SCHEMA,
        gateway_id: "g".into(),
        account: "a@example.org".into(),
        action: Action::SendEmail,
        hold_id: "h".into(),
        submitter_key: "k".into(),
        upstream_host: "u".into(),
        upstream_login: "l".into(),
        envelope: envelope.clone(),
        sha256: Sha256::digest(message).into(),
        length: message.len() as u64,
        message_id: None,
        approver: "p".into(),
        method: "pin".into(),
        time: 1,
        expiry: 100,
        nonce: "n".into(),
    };
    let key = signing_key(&[1; 32]);
    let event = Event::Approved { hold: "h".into(), payload: payload.hash(), approver: "p".into() };
    let receipt = mint(&payload, &key, Entry::next(None, 1, event).head());
    let verified = receipt.verify(&[key.verifying_key()], &Expect::new(Action::SendEmail)).unwrap();
    Release::from_receipt(verified, Action::SendEmail, 2, &envelope).unwrap()
}

fn quick() -> Timeouts {
    Timeouts { data_end: Duration::from_millis(200), mail: Duration::from_millis(200), ..TIMEOUTS }
}

async fn connect(provider: &Provider, tls: TlsMode) -> Result<Submission, SubmissionError> {
    Submission::connect_within(&provider.endpoint(tls), "jo", "secret", quick()).await
}

async fn ready(provider: &Provider) -> Submission {
    let mut submission = connect(provider, TlsMode::None).await.unwrap();
    let to = ["b@example.com".to_owned()];
    let (mail, rcpt) = submission.envelope("a@example.org", &MailParameters::default(), &to).await.unwrap();
    assert!(mail.is_positive() && rcpt.iter().all(Reply::is_positive));
    submission
}

async fn settled() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::test]
async fn a_message_arrives_octet_for_octet_under_any_chunks() {
    for size in [1, 2, 3, 7, MESSAGE.len()] {
        let provider = Provider::start(Script::default()).await;
        let mut submission = ready(&provider).await;
        let mut data = submission.data(approved(MESSAGE)).await.unwrap();
        for chunk in MESSAGE.chunks(size) {
            data.chunk(chunk).await.unwrap();
        }
        let reply = data.finish().await.unwrap();
        assert_eq!(reply.code(), 250);
        assert_eq!(provider.complete()[0].message(), MESSAGE);
        assert!(submission.is_open());
    }
}

#[tokio::test]
async fn octets_that_differ_from_the_release_never_get_the_dot() {
    let mut changed = MESSAGE.to_vec();
    changed[30] ^= 1;
    let mut longer = MESSAGE.to_vec();
    longer.extend_from_slice(b"more\r\n");
    for wrong in [changed, longer, MESSAGE[..MESSAGE.len() - 5].to_vec(), Vec::new()] {
        let provider = Provider::start(Script::default()).await;
        let mut submission = ready(&provider).await;
        let mut data = submission.data(approved(MESSAGE)).await.unwrap();
        let outcome = match data.chunk(&wrong).await {
            Ok(()) => data.finish().await.map(drop),
            Err(error) => Err(error),
        };
        assert!(matches!(outcome, Err(DataError::Mismatch | DataError::Octets(_))), "{outcome:?}");
        assert!(!submission.is_open());
        settled().await;
        assert_eq!(provider.got().len(), 1);
        assert!(provider.complete().is_empty());
    }
}

#[tokio::test]
async fn a_writer_that_is_dropped_ends_the_connection_without_the_dot() {
    let provider = Provider::start(Script::default()).await;
    let mut submission = ready(&provider).await;
    let mut data = submission.data(person()).await.unwrap();
    data.chunk(b"Subject: x\r\n\r\nhalf\r\n").await.unwrap();
    drop(data);
    assert!(matches!(submission.rset().await, Err(SubmissionError::Closed)));
    settled().await;
    assert!(provider.complete().is_empty());
    assert!(!provider.got()[0].wire.ends_with(b"\r\n"), "the last line end is withheld");
}

#[tokio::test]
async fn bare_line_ends_are_never_sent() {
    let provider = Provider::start(Script::default()).await;
    let mut submission = ready(&provider).await;
    let mut data = submission.data(person()).await.unwrap();
    assert!(matches!(data.chunk(b"a\n.\r\n").await, Err(DataError::Octets(_))));
}

#[tokio::test]
async fn after_the_dot_silence_and_loss_are_unknown_and_a_reply_is_a_reply() {
    for (dot, code) in
        [(Dot::Silence, None), (Dot::Close, None), (Dot::Reply("354 what"), None), (Dot::Reply("x"), None)]
            .into_iter()
            .chain([(Dot::Reply("451 4.3.0 later"), Some(451)), (Dot::Reply("554 5.7.1 no"), Some(554))])
    {
        let provider = Provider::start(Script { dot: dot.clone(), ..Script::default() }).await;
        let mut submission = ready(&provider).await;
        let mut data = submission.data(approved(MESSAGE)).await.unwrap();
        data.chunk(MESSAGE).await.unwrap();
        match (data.finish().await, code) {
            (Err(DataError::Unknown(_)), None) => {}
            (Ok(reply), Some(code)) => assert_eq!(reply.code(), code),
            (other, _) => panic!("{dot:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn data_that_is_refused_leaves_the_connection() {
    let provider = Provider::start(Script { data: "554 5.5.1 no", ..Script::default() }).await;
    let mut submission = ready(&provider).await;
    assert!(matches!(submission.data(person()).await, Err(DataError::Refused(r)) if r.code() == 554));
    assert!(submission.rset().await.unwrap().is_positive());
}

#[tokio::test]
async fn starttls_is_needed_where_it_is_configured() {
    let provider = Provider::start(Script::default()).await;
    assert!(matches!(connect(&provider, TlsMode::StartTls).await, Err(SubmissionError::NoStartTls)));
    let ehlo = vec!["p", "STARTTLS", "AUTH PLAIN"];
    let provider =
        Provider::start(Script { ehlo, starttls: "220 go\r\n250 2.0.0 injected", ..Script::default() }).await;
    assert!(matches!(connect(&provider, TlsMode::StartTls).await, Err(SubmissionError::PlaintextInjected)));
    provider.script(|s| s.starttls = "454 4.7.0 no");
    assert!(matches!(connect(&provider, TlsMode::StartTls).await, Err(SubmissionError::NoStartTls)));
    assert!(provider.commands().iter().all(|c| !c.starts_with("AUTH")), "credentials stay here");
}

#[tokio::test]
async fn credentials_go_by_plain_else_by_login() {
    let provider = Provider::start(Script::default()).await;
    connect(&provider, TlsMode::None).await.unwrap();
    assert!(provider.commands().contains(&"AUTH PLAIN AGpvAHNlY3JldA==".to_owned()));
    let provider = Provider::start(Script { ehlo: vec!["p", "AUTH LOGIN"], ..Script::default() }).await;
    connect(&provider, TlsMode::None).await.unwrap();
    let commands = provider.commands();
    assert!(commands.contains(&"am8=".to_owned()) && commands.contains(&"c2VjcmV0".to_owned()));
    provider.script(|s| s.auth = "535 5.7.8 no");
    assert!(matches!(connect(&provider, TlsMode::None).await, Err(SubmissionError::Auth(r)) if r.code() == 535));
    provider.script(|s| s.ehlo = vec!["p", "AUTH GSSAPI"]);
    assert!(matches!(connect(&provider, TlsMode::None).await, Err(SubmissionError::NoMechanism)));
    provider.script(|s| s.greeting = "554 no");
    assert!(matches!(connect(&provider, TlsMode::None).await, Err(SubmissionError::Refused { .. })));
}

#[tokio::test]
async fn parameters_go_only_where_they_are_offered() {
    let provider = Provider::start(Script::default()).await;
    let mut submission = connect(&provider, TlsMode::None).await.unwrap();
    let all = MailParameters { size: Some(10), eight_bit: true, smtputf8: true };
    submission.mail("a@example.org", &all).await.unwrap();
    assert!(provider.commands().contains(&"MAIL FROM:<a@example.org> SIZE=10 BODY=8BITMIME SMTPUTF8".to_owned()));
    let large = MailParameters { size: Some(1_000_001), ..all };
    assert!(matches!(submission.takes(&large), Err(SubmissionError::TooLarge { limit: 1_000_000 })));

    provider.script(|s| s.ehlo = vec!["p", "AUTH PLAIN"]);
    let mut submission = connect(&provider, TlsMode::None).await.unwrap();
    let plain = MailParameters { size: Some(10), ..MailParameters::default() };
    submission.mail("", &plain).await.unwrap();
    assert!(provider.commands().contains(&"MAIL FROM:<>".to_owned()));
    for needs in [MailParameters { eight_bit: true, ..plain }, MailParameters { smtputf8: true, ..plain }] {
        assert!(matches!(submission.mail("a@example.org", &needs).await, Err(SubmissionError::NotOffered(_))));
    }
    assert!(submission.rcpt("a@example.org>\r\nDATA").await.is_err());
}

#[tokio::test]
async fn without_pipelining_recipients_go_one_by_one() {
    let rcpt = vec![("bad", "550 5.1.1 no")];
    let provider = Provider::start(Script { ehlo: vec!["p", "AUTH PLAIN"], rcpt, ..Script::default() }).await;
    let mut submission = connect(&provider, TlsMode::None).await.unwrap();
    let to = ["b@example.com".to_owned(), "bad@example.com".to_owned()];
    let (_, rcpt) = submission.envelope("a@example.org", &MailParameters::default(), &to).await.unwrap();
    assert_eq!(rcpt.iter().map(Reply::code).collect::<Vec<_>>(), [250, 550]);
    provider.script(|s| s.mail = "550 5.7.1 no");
    let (mail, rcpt) = submission.envelope("a@example.org", &MailParameters::default(), &to).await.unwrap();
    assert_eq!((mail.code(), rcpt.len()), (550, 0));
}

#[tokio::test]
async fn a_server_that_speaks_out_of_turn_is_left() {
    let provider = Provider::start(Script { mail: "250 2.1.0 ok\r\n250 2.1.5 and more", ..Script::default() }).await;
    let mut submission = connect(&provider, TlsMode::None).await.unwrap();
    submission.mail("a@example.org", &MailParameters::default()).await.unwrap();
    assert!(matches!(submission.rcpt("b@example.com").await, Err(SubmissionError::OutOfStep)));
    assert!(!submission.is_open());
}

#[tokio::test]
async fn a_step_that_takes_too_long_ends() {
    // A reply whose last line never comes.
    let provider = Provider::start(Script { mail: "250-2.1.0 wait", ..Script::default() }).await;
    let mut submission = connect(&provider, TlsMode::None).await.unwrap();
    let begun = Instant::now();
    let outcome = submission.mail("a@example.org", &MailParameters::default()).await;
    assert!(matches!(outcome, Err(SubmissionError::Timeout("MAIL"))));
    assert!(begun.elapsed() < Duration::from_secs(5));
}
