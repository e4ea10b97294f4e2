//! Held intake beside Postfix accepting into its queue, and long lists.
//! `cargo bench --bench outbox` only, as root; nothing here is asserted.
//!
//! Both servers get the same octets from the same client: 4 KB each, no two
//! messages of a round alike, over 8
//! connections that stay open and send one message after another, each
//! awaited. Both keep their files in the same folder of the same disk, with
//! the syncs that they make by default; Postfix puts what it takes on hold, so
//! that delivering costs it nothing. Rounds alternate.

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::dovecot::{Dovecot, USERS};
use common::gateway::{Gateway, Upstream};
use common::postfix::Postfix;
use common::sink::Sink;
use common::smtp::Smtp;
use tollgate::account::{Accounts, Role, demo};
use tollgate::config::{self, Env, Overrides};
use tollgate::floor::action::Action;
use tollgate::floor::envelope::{BodyType, Envelope, ForwardPath};
use tollgate::floor::hold::Reason;
use tollgate::outbox::{Intake, Outbox};
use tollgate::store::Store;
use tollgate::store::redb::RedbStore;

/// Connections at a time.
const CONNECTIONS: usize = 8;
/// Messages of one connection in one round.
const MESSAGES: usize = 100;
/// Rounds of each server.
const ROUNDS: usize = 5;
/// Octets of a message.
const OCTETS: usize = 4096;
/// Holds of the long list.
const HOLDS: usize = 10_000;
/// Holds that are made at a time.
const AT_A_TIME: usize = 250;
/// Holds of a page.
const PAGE: usize = 200;
/// How often a list is asked for.
const LISTS: usize = 10;

fn main() {
    // `cargo test` runs benches once; this one needs a quiet machine.
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    println!("load: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    intake();
    listing();
    println!("load: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
}

fn message(address: &str, number: usize) -> Vec<u8> {
    let mut text = format!(
        "From: {address}\r\nTo: ann@example.com\r\nSubject: Figures {number}\r\n\
         Date: Mon, 30 Nov 2026 04:00:00 +0000\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=us-ascii\r\n\r\n"
    );
    while text.len() + 66 <= OCTETS {
        text.push_str(&"0123456789abcdef".repeat(4));
        text.push_str("\r\n");
    }
    text.into_bytes()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Messages a second that a server takes.
fn round(port: u16, user: &str, password: &str, address: &str) -> f64 {
    let sessions: Vec<Smtp> = (0..CONNECTIONS).map(|_| Smtp::sign_in(port, user, password)).collect();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for (n, mut session) in sessions.into_iter().enumerate() {
            scope.spawn(move || {
                for m in 0..MESSAGES {
                    let octets = message(address, n * MESSAGES + m);
                    let reply = session.submit(address, &["ann@example.com"], &octets);
                    assert!(reply.starts_with("250 "), "{reply}");
                }
            });
        }
    });
    (CONNECTIONS * MESSAGES) as f64 / began.elapsed().as_secs_f64()
}

fn intake() {
    let sink = Sink::start();
    let dovecot = Dovecot::start();
    let postfix = Postfix::start_holding(&dovecot, sink.port);
    let (user, password) = USERS[0];
    let account =
        Upstream { user, password, imap: (dovecot.imap, "none"), smtp: (postfix.submission, "none"), ca: None }.toml();
    let mut gateway = Gateway::prepare(&format!("[limits]\nmax_holds_per_key = 10000\n\n{account}"));
    // Nobody logs each command of a server that is measured.
    gateway.environment = vec![("TOLLGATE_LOG".to_owned(), "warn".to_owned())];
    gateway.start();
    let address = format!("{user}@example.test");
    let agent = gateway.add_key(&address, "agent", "bench");
    let (mut held, mut queued) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        held.push(round(gateway.smtp, &address, &agent, &address));
        queued.push(round(postfix.submission, user, password, &address));
    }
    println!("held a second:   {held:.0?}");
    println!("queued a second: {queued:.0?}");
    let (ours, theirs) = (median(held), median(queued));
    println!("medians: {ours:.0} held, {theirs:.0} queued by Postfix: {:.2} times as many", ours / theirs);
}

fn fastest(mut ask: impl FnMut()) -> (Duration, Duration) {
    let mut all: Vec<Duration> = (0..LISTS)
        .map(|_| {
            let began = Instant::now();
            ask();
            began.elapsed()
        })
        .collect();
    all.sort();
    (all[LISTS / 2], all[LISTS - 1])
}

fn listing() {
    let mut gateway =
        Gateway::prepare(&format!("[limits]\nmax_holds_per_key = 10000\n\n{}", common::gateway::EMBEDDED));
    gateway.environment = vec![("TOLLGATE_LOG".to_owned(), "warn".to_owned())];
    fill(&gateway);
    gateway.start();
    let browser = gateway.approver(demo::ADDRESS, demo::PIN);
    let all = gateway.json(&["held", "list", "--limit", "0"]);
    let holds = all["holds"].as_array().expect("a list");
    println!("with {} holds waiting (median and worst of {LISTS}):", holds.len());
    let one = format!("/held/{}", holds[holds.len() - 1]["id"].as_str().expect("an id"));
    for (what, path) in [("the list", "/"), ("the history", "/history"), ("a batch", "/batch"), ("a message", &one)] {
        let (median, worst) = fastest(|| assert_eq!(browser.get(path).status, 200));
        println!("  {what}: {median:.1?}, {worst:.1?}");
    }
    for (what, arguments) in [
        ("`held list`", &["held", "list"][..]),
        ("all of it", &["held", "list", "--limit", "0"]),
        ("a process alone", &["--version"]),
    ] {
        let (median, worst) = fastest(|| drop(gateway.tollgate(arguments).ok()));
        println!("  {what}: {median:.1?}, {worst:.1?}");
    }
}

/// Holds as many as the list shows, before the gateway starts.
fn fill(gateway: &Gateway) {
    let config = Arc::new(config::load(Some(gateway.config_file()), &Env::new(), &Overrides::default()).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store: Arc<dyn Store> = Arc::new(RedbStore::open(&config.state_dir).unwrap());
        let accounts = Accounts::new(config.clone(), store.clone()).unwrap();
        accounts.ensure_demo_keys().await.unwrap();
        let outbox = Arc::new(Outbox::new(config.clone(), store.clone(), accounts.clone()).unwrap());
        let account = accounts.ids().remove(0);
        let keys = accounts.list_keys(Some(&account));
        let key = keys.into_iter().find(|k| k.role == Role::Agent).unwrap().id;
        let mut writer = store.blobs().writer();
        writer.write(&message("demo@example.org", 0)).unwrap();
        let (blob, length) = writer.finish().await.unwrap();
        let to = vec![ForwardPath::parse("ann@example.com").unwrap(), ForwardPath::parse("ben@example.net").unwrap()];
        let envelope = Envelope::new("demo@example.org", to, BodyType::SevenBit, false).unwrap();
        let began = Instant::now();
        for _ in 0..HOLDS / AT_A_TIME {
            let mut some = tokio::task::JoinSet::new();
            for n in 0..AT_A_TIME {
                let intake = Intake {
                    account: account.clone(),
                    key: key.clone(),
                    role: Role::Agent,
                    envelope: envelope.clone(),
                    blob,
                    row: None,
                    length,
                    message_id: Some(format!("<{n}@example.org>")),
                    subject: Some(format!("Figures of week {n}")),
                    reason: Reason::AgentKey,
                    action: Action::SendEmail,
                    lineage: None,
                };
                let outbox = outbox.clone();
                some.spawn(async move { outbox.hold(intake).await.unwrap() });
            }
            some.join_all().await;
        }
        println!("{HOLDS} holds made in {:.1?}", began.elapsed());
        let (median, worst) = fastest(|| assert_eq!(outbox.list(&account).unwrap().len(), HOLDS));
        println!("reading {HOLDS} holds in the process: {median:.1?}, {worst:.1?}");
        let (median, worst) = fastest(|| assert_eq!(outbox.pending(&account, PAGE).unwrap().holds.len(), PAGE));
        println!("the newest {PAGE} of them: {median:.1?}, {worst:.1?}");
    });
}
