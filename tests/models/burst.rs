//! A thousand messages at once, and a model that takes two seconds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::endpoint::{Does, Endpoint, answers};
use crate::stand::{PATIENCE, Stand, USER, field, model, note, until};

const MESSAGES: usize = 1000;
const LATENCY: Duration = Duration::from_secs(2);
const DEADLINE: Duration = Duration::from_secs(7);
/// What a call costs, as the endpoint counts its tokens.
const CALL: f64 = 0.35;
/// One that is used up early, and one that isn't.
const BUDGETS: [f64; 2] = [5.0, 1000.0];

/// Delivers so many at once and waits until all are shown.
async fn deliver(stand: &Stand, from: usize, messages: usize) -> Duration {
    let began = Instant::now();
    for n in from..from + messages {
        stand.provider.deliver(USER, note(n));
    }
    // While a thousand messages are fetched a SELECT may wait as long as the
    // client's patience: then another session looks.
    loop {
        let mut client = stand.client().await;
        if client.command("SELECT Lanes/All").await.is_ok_and(|answer| answer.is_ok())
            && let Ok(answer) = client.command("UID SEARCH ALL").await
            && answer.found().len() == from + messages - 1
        {
            return began.elapsed();
        }
        assert!(began.elapsed() < PATIENCE * 2, "not shown after {:?}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_shown_within_the_deadline_and_none_is_lost_or_scored_twice() {
    // How long as many take here where no model is asked: this machine's
    // share, which no deadline for models changes.
    let plain = Stand::start("").await;
    let usual = deliver(&plain, 1, MESSAGES).await;
    plain.gateway.shutdown().await;
    for budget in BUDGETS {
        burst(budget, usual).await;
    }
}

async fn burst(budget: f64, usual: Duration) {
    let first = Endpoint::start(|_| Does::Waits(LATENCY, Box::new(answers("by the model")))).await;
    let stand = Stand::start(&format!(
        "[perception]\ndeadline_ms = {}\nbudget_per_day = {budget}\n\
         [[price]]\nmodel = \"lab\"\ninput = 1000\noutput = 1000\n{}",
        DEADLINE.as_millis(),
        model("first", &first.url(), "concurrency = 4\ntimeout_ms = 5000")
    ))
    .await;
    let took = deliver(&stand, 1, MESSAGES).await;
    // Beside the deadline, the machine works as long as it did before, twice:
    // it builds each prompt too.
    let most = DEADLINE + usual * 2 + Duration::from_secs(5);
    assert!(took < most, "shown after {took:?}; without models {usual:?}");

    let mut client = stand.client().await;
    until(&mut client, "Lanes/All", MESSAGES).await;
    let answer = client.command("FETCH 1:* (UID BODY.PEEK[HEADER])").await.unwrap();
    let headers: Vec<String> =
        answer.fetched().filter_map(|r| r.literals.first()).map(|l| String::from_utf8_lossy(l).into_owned()).collect();
    assert_eq!(headers.len(), MESSAGES);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let (mut judged, mut decisions) = (0, std::collections::BTreeSet::new());
    for header in &headers {
        *seen.entry(field(header, "Subject")).or_default() += 1;
        judged += usize::from(field(header, "X-Tollgate-Reason") == "by the model");
        decisions.insert(field(header, "X-Tollgate-Decision"));
    }
    assert!(seen.len() == MESSAGES && seen.values().all(|n| *n == 1), "each message once");
    assert_eq!(decisions.len(), MESSAGES, "each message has its own decision");

    let asked = first.asked();
    let mut subjects: Vec<String> = asked.iter().map(|a| a.subject()).collect();
    subjects.sort();
    subjects.dedup();
    assert_eq!(subjects.len(), asked.len(), "no message is asked about twice");
    assert!(judged >= 4 && judged <= asked.len(), "{judged} judged by the model, {} asked", asked.len());
    let spent = stand.metric("tollgate_model_spent_today").unwrap();
    assert!(spent <= budget, "spent {spent}");
    assert!(CALL * judged as f64 <= budget);
    assert_eq!(stand.metric("tollgate_model_scorings_total"), Some(MESSAGES as f64));
    assert_eq!(stand.metric("tollgate_model_fallbacks_total"), Some((MESSAGES - judged) as f64));
    assert_eq!(stand.metric("tollgate_model_fallback_alarm"), Some(1.0));
    println!("{MESSAGES} shown after {took:?} (without models {usual:?}), {judged} judged by the model");
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_do_meanwhile_is_done_at_once() {
    let first = Endpoint::start(|_| Does::Waits(Duration::from_secs(60), Box::new(answers("late")))).await;
    let stand = Stand::start(&format!(
        "[perception]\ndeadline_ms = 20000\n{}{}",
        crate::stand::FREE,
        model("first", &first.url(), "timeout_ms = 60000")
    ))
    .await;
    // Of a person's mail nothing waits: it is put where the client says.
    let mut client = stand.client().await;
    client.append("INBOX", "", &note(900)).await.unwrap().ok().unwrap();
    until(&mut client, "Lanes/All", 1).await;
    let uid = stand.provider.deliver(USER, note(1));
    let gone = stand.provider.deliver(USER, note(2));
    while first.asked().len() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Flags and removals of mail that waits, and of mail that doesn't.
    let began = Instant::now();
    client.command("STORE 1 +FLAGS (\\Flagged)").await.unwrap().ok().unwrap();
    let endpoint = tollgate::config::Endpoint {
        host: "127.0.0.1".into(),
        port: stand.provider.imap_addr().port(),
        tls: tollgate::config::TlsMode::None,
        ca: None,
    };
    let mut direct =
        tollgate::demo::client::imap::ImapClient::sign_in(&endpoint, USER, crate::stand::PASSWORD).await.unwrap();
    direct.command("SELECT INBOX").await.unwrap().ok().unwrap();
    direct.command(&format!("UID STORE {uid} +FLAGS (\\Answered)")).await.unwrap().ok().unwrap();
    direct.command(&format!("UID STORE {gone} +FLAGS (\\Deleted)")).await.unwrap().ok().unwrap();
    direct.command("EXPUNGE").await.unwrap().ok().unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    until(&mut client, "Lanes/All", 2).await;
    let answer = client.command("FETCH 1:* (FLAGS BODY.PEEK[HEADER.FIELDS (Subject)])").await.unwrap();
    let waited = answer.fetched().find(|r| r.literals.iter().any(|l| l.ends_with(b"note 1\r\n\r\n"))).unwrap();
    assert!(waited.text.contains("\\Answered"), "{}", waited.text);
    assert!(!answer.fetched().any(|r| r.literals.iter().any(|l| l.ends_with(b"note 2\r\n\r\n"))));
    stand.gateway.shutdown().await;
}
