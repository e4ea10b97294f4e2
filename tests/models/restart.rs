//! A process that dies while models are asked.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::common::gateway::Gateway;
use crate::common::imap::Imap;
use crate::endpoint::{Does, Endpoint, answers};
use crate::stand::{PATIENCE, USER, account, model, note, provider};

const MESSAGES: usize = 120;
const BUDGET: f64 = 20.0;

/// Waits for the synchronous client without keeping the provider waiting.
fn aside<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

fn count(gateway: &Gateway, key: &str) -> usize {
    let mut client = Imap::login(gateway.imap, USER, key);
    match client.command("SELECT \"Lanes/All\"").status.starts_with("OK") {
        true => client.search("ALL").len(),
        false => usize::MAX,
    }
}

fn wait_for(gateway: &Gateway, key: &str, messages: usize) {
    let began = Instant::now();
    loop {
        let found = count(gateway, key);
        if found == messages {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{found} of {messages}:\n{}", gateway.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restart_in_the_middle_loses_nothing_and_asks_nothing_twice() {
    let first = Endpoint::start(|_| Does::Waits(Duration::from_millis(1500), Box::new(answers("by the model")))).await;
    let provider = provider().await;
    let models = format!(
        "[perception]\ndeadline_ms = 8000\nbudget_per_day = {BUDGET}\n\
         [[price]]\nmodel = \"lab\"\ninput = 1000\noutput = 1000\n{}\n{}",
        model("first", &first.url(), "concurrency = 4\ntimeout_ms = 5000"),
        account(&provider)
    );
    let (mut gateway, key) = aside(|| {
        let gateway = Gateway::spawn(&models);
        let key = gateway.add_key(USER, "person", "client");
        wait_for(&gateway, &key, 0);
        (gateway, key)
    });
    for n in 1..=MESSAGES {
        provider.deliver(USER, note(n));
    }
    // Some were answered and some are being asked about.
    let began = Instant::now();
    while first.asked().len() < 8 {
        assert!(began.elapsed() < PATIENCE, "nothing is asked:\n{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    aside(|| {
        gateway.restart_after_kill_9();
        wait_for(&gateway, &key, MESSAGES);
    });
    let asked: Vec<String> = first.asked().iter().map(|a| a.subject()).collect();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for subject in &asked {
        *times.entry(subject).or_default() += 1;
    }
    let twice: Vec<_> = times.iter().filter(|(_, n)| **n > 1).collect();
    assert!(twice.is_empty(), "asked about twice: {twice:?}");
    aside(|| {
        let mut client = Imap::login(gateway.imap, USER, &key);
        client.ok("SELECT \"Lanes/All\"");
        let answer = client.ok("FETCH 1:* (BODY.PEEK[HEADER.FIELDS (Subject X-Tollgate-Decision)])");
        let mut headers: Vec<String> =
            answer.fetched().iter().map(|r| String::from_utf8_lossy(&r.literals[0]).into_owned()).collect();
        assert_eq!(headers.len(), MESSAGES);
        headers.sort();
        headers.dedup();
        assert_eq!(headers.len(), MESSAGES, "each message once, each with its own decision");
        // What was spent before the crash is still spent after it.
        let page = gateway.browser().get("/metrics").text();
        let number = |name: &str| -> f64 {
            page.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()).unwrap_or(f64::NAN)
        };
        let spent = number("tollgate_model_spent_today");
        assert!((0.35 * 8.0..=BUDGET).contains(&spent), "spent {spent}");
        // A message that was being asked about when it died was shown all the
        // same; `explain` says why no model judged it.
        let mut lost = 0;
        for subject in &asked {
            let id = format!("<{}@example.com>", subject.replace(' ', "-"));
            let told = gateway.json(&["explain", "--message-id", &id]);
            lost += usize::from(told.to_string().contains("before a restart"));
        }
        assert!((1..=8).contains(&lost), "{lost} were under way");
        assert!(gateway.stop().success());
    });
}
