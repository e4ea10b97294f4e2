//! The fuzzed agent: programs with agents' keys and several sets of grants try
//! everything over IMAP and SMTP, while a person approves a little and denies
//! the rest. What was sent and what was removed must be exactly what was
//! approved. The control does the same to the provider without the gateway,
//! and must be seen to leak.
//!
//! `TOLLGATE_FUZZ_SECONDS` makes it run longer, `TOLLGATE_FUZZ_SEED` again.

mod actor;
#[path = "../common/mod.rs"]
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use tollgate::account::{AccountId, KeyId, Role, demo as keys};
use tollgate::config::{self, Overrides};
use tollgate::demo::provider::{Options, Provider};
use tollgate::floor::action::Action;
use tollgate::floor::submission::State;
use tollgate::gateway::Gateway;
use tollgate::outbox::Outbox;

use actor::{Actor, MADE, Random, Record, SECRET, Target, VERBS};

/// How long it runs at least, unless the environment says otherwise, in seconds.
const SECONDS: u64 = 10;
/// Successes of each verb before it ends.
const LEAST: u64 = 100;
/// However slow the machine is, it ends after so many seconds more.
const MOST_MORE: u64 = 240;
/// What each agent may do beside what a new key may.
const GRANTS: [&[&str]; 4] = [
    &[],
    &["flag=allow", "file@Archive=allow", "file@Trash=allow", "file@Agent/*=allow", "delete=ask", "read@Private=off"],
    &["read@Private=off", "read@Trash=off", "flag@INBOX=allow", "delete@Archive=ask", "file@Junk=allow", "draft=off"],
    // Whatever can be granted, also where nothing comes of it.
    &[
        "flag=allow",
        "delete=ask",
        "file@INBOX=allow",
        "file@Lanes/*=allow",
        "file@Drafts=allow",
        "file@Sent=allow",
        "file@Outbox=allow",
        "file@Templates=allow",
        "file@Scheduled=allow",
        "file@Tollgate/*=allow",
        "file@Junk=allow",
        "file@Archive=allow",
        "file@Trash=ask",
        "file@Agent/*=allow",
        "read@Private=off",
    ],
];
/// The set of grants whose agent may read everything.
const SEES_ALL: usize = 0;
const MAILBOXES: [&str; 5] = ["Private", "Outbox", "Templates", "Scheduled", "Agent/One"];
const MESSAGES: usize = 12;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seed() -> u64 {
    let by_clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    number("TOLLGATE_FUZZ_SEED").unwrap_or(by_clock % 1_000_000)
}

fn hash(octets: &[u8]) -> [u8; 32] {
    Sha256::digest(octets).into()
}

/// The mail that is there at the beginning.
fn fill(provider: &Provider, user: &str) {
    for mailbox in ["INBOX", "Archive", "Trash", "Junk", "Sent", "Private"] {
        for n in 0..MESSAGES {
            let text = if mailbox == "Private" { SECRET } else { "words" };
            let octets = format!(
                "From: ann{n}@example.com\r\nTo: {user}\r\nSubject: {mailbox} {n}\r\nMessage-ID: <{mailbox}{n}@start.example>\r\n\r\n{text} {n}\r\n"
            );
            provider.put(user, mailbox, octets, if n % 4 == 0 { &["\\Seen"] } else { &[] });
        }
    }
}

/// How often each message is there.
fn census(provider: &Provider, user: &str) -> BTreeMap<[u8; 32], usize> {
    let mut all = BTreeMap::new();
    for mailbox in provider.mailboxes(user) {
        for message in provider.mailbox(user, &mailbox) {
            *all.entry(hash(&message.octets)).or_default() += 1;
        }
    }
    all
}

/// What happened that nobody approved.
fn leaks(
    provider: &Provider,
    user: &str,
    before: &BTreeMap<[u8; 32], usize>,
    sent: &[Vec<u8>],
    removed: &BTreeSet<[u8; 32]>,
) -> Vec<String> {
    let mut leaks = Vec::new();
    let mut left = sent.to_vec();
    for accepted in provider.accepted() {
        match left.iter().position(|octets| *octets == accepted.octets) {
            Some(at) => drop(left.swap_remove(at)),
            None => leaks.push(format!("sent to {:?} unapproved", accepted.forward_paths)),
        }
    }
    let now = census(provider, user);
    for message in before.keys().filter(|m| !now.contains_key(*m) && !removed.contains(*m)) {
        leaks.push(format!("a message is gone: {message:x?}"));
    }
    for mailbox in ["INBOX", "Sent", "Outbox", "Templates", "Scheduled"] {
        let made = |octets: &[u8]| memchr::memmem::find(octets, MADE.as_bytes()).is_some();
        let there = provider.mailbox(user, mailbox);
        let own = there.iter().filter(|m| made(&m.octets) && !sent.iter().any(|s| s[..] == m.octets[..]));
        leaks.extend(own.map(|m| {
            let text = String::from_utf8_lossy(&m.octets).into_owned();
            format!("something of the agent stands in {mailbox}: {:?} {text}", m.flags)
        }));
        if ["Outbox", "Templates", "Scheduled"].contains(&mailbox) && !there.is_empty() {
            leaks.push(format!("{mailbox} isn't empty"));
        }
        leaks.extend(there.iter().filter(|m| m.flags.contains("\\Deleted")).map(|_| format!("\\Deleted in {mailbox}")));
    }
    leaks
}

/// Approves a little and denies the rest; what was approved.
async fn decide(outbox: &Outbox, account: &AccountId, random: &mut Random) -> (Vec<Vec<u8>>, BTreeSet<[u8; 32]>) {
    let (mut sent, mut removed) = (Vec::new(), BTreeSet::new());
    for hold in outbox.list(account).unwrap().into_iter().filter(|h| h.state == State::Held) {
        if random.below(8) > 0 {
            outbox.deny(account, &hold.id, "no", "you").await.unwrap();
            continue;
        }
        if hold.action == Action::DeletePermanent {
            let list = outbox.deletion(&hold).unwrap();
            removed.extend(list.messages.iter().map(|m| m.sha256));
        } else {
            let mut octets = Vec::new();
            outbox.open(&hold).unwrap().read_to_end(&mut octets).unwrap();
            sent.push(octets);
        }
        let shown = outbox.show(account, &hold.id, "you").await.unwrap();
        let hash = shown.hash.to_string();
        outbox.approve(account, &hold.id, &shown.payload.nonce, &hash, "you").await.unwrap();
        outbox.kick();
    }
    (sent, removed)
}

/// One session to its end, which may be that the other side ended it.
fn session(target: &Target, seed: u64) -> (bool, Record) {
    let mut actor = Actor::new(target.clone(), seed);
    let done = catch_unwind(AssertUnwindSafe(|| actor.work()));
    let ended = match done {
        Ok(()) => false,
        Err(panic) => {
            let why = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            if !why.contains("no line from the server") {
                resume_unwind(panic);
            }
            println!("agents: a session was ended at {:?}: {why}", actor.last);
            true
        }
    };
    (ended, std::mem::take(&mut actor.record))
}

/// Ends the others' work when one ends, however.
struct Stops(Arc<AtomicBool>);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

async fn start(folder: &Path) -> Gateway {
    let file = folder.join("gateway.toml");
    let text = format!(
        "state_dir = \"state\"\ncerts_dir = \"certs\"\n[listen]\nimaps = []\nsubmissions = []\n\
         imap_plain = [\"127.0.0.1:0\"]\nsmtp_plain = [\"127.0.0.1:0\"]\nweb = [\"127.0.0.1:0\"]\n\
         [limits]\nagent_commands_per_minute = 1000000\nagent_bytes_per_day = 1000000000\n\
         [lanes]\npreset = \"folders\"\n[[account]]\naddress = \"{}\"\nprovider = \"embedded\"\nconnections = 20\n",
        keys::ADDRESS
    );
    std::fs::write(&file, text).unwrap();
    let config = config::load(Some(&file), &Default::default(), &Overrides::default()).unwrap();
    Gateway::start(config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fuzzed_agent_sends_and_removes_only_what_was_approved() {
    let seed = seed();
    let time = Duration::from_secs(number("TOLLGATE_FUZZ_SECONDS").unwrap_or(SECONDS));
    println!("agents: seed {seed}, {} s", time.as_secs());
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path()).await;
    let core = gateway.core().clone();
    let account = core.accounts.ids().remove(0);
    let user = account.to_string();
    let ports = (gateway.addresses().imap_plain[0].port(), gateway.addresses().smtp_plain[0].port());
    let provider = gateway.provider().unwrap();
    {
        let (user, port) = (user.clone(), ports.0);
        let make = move || {
            let mut person = common::imap::Imap::login(port, &user, keys::PERSON_KEY);
            MAILBOXES.iter().for_each(|m| drop(person.ok(&format!("CREATE {m}"))));
        };
        tokio::task::spawn_blocking(make).await.unwrap();
    }
    fill(provider, &user);
    let before = census(provider, &user);
    let mut targets = Vec::new();
    for (n, changes) in GRANTS.iter().enumerate() {
        let key = core.accounts.add_key(&account, Role::Agent, &format!("agent {n}")).await.unwrap();
        let id = KeyId(key.split('_').nth(1).unwrap().into());
        let changes: Vec<_> = changes.iter().map(|c| c.parse().unwrap()).collect();
        core.accounts.set_grants(&id, &changes).await.unwrap();
        let (imap, smtp) = ports;
        targets.push(Target { imap, smtp, user: user.clone(), password: key, blind: n != SEES_ALL });
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (began, total) = (Instant::now(), Arc::new(Mutex::new(Record::default())));
    let mut workers = Vec::new();
    for (n, target) in targets.into_iter().enumerate() {
        let (stop, total) = (stop.clone(), total.clone());
        workers.push(tokio::task::spawn_blocking(move || {
            let (mut round, mut lost) = (0u64, 0);
            let _stops = Stops(stop.clone());
            while !stop.load(Ordering::SeqCst) {
                round += 1;
                let (ended, record) = session(&target, seed * 1000 + round * 10 + n as u64);
                lost += u64::from(ended);
                let enough = {
                    let mut total = total.lock().unwrap();
                    total.add(record);
                    total.enough(LEAST)
                };
                let over = began.elapsed() > time + Duration::from_secs(MOST_MORE);
                if began.elapsed() > time && enough || over {
                    stop.store(true, Ordering::SeqCst);
                }
            }
            (round, lost)
        }));
    }
    let (mut sent, mut removed, mut random) = (Vec::new(), BTreeSet::new(), Random::new(seed));
    while !stop.load(Ordering::SeqCst) {
        let (octets, messages) = decide(&core.outbox, &account, &mut random).await;
        sent.extend(octets);
        removed.extend(messages);
        let open = provider.accepted().len();
        assert!(open <= sent.len(), "{open} were sent, {} approved", sent.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (mut sessions, mut ended) = (0, 0);
    for worker in workers {
        let (rounds, lost) = worker.await.unwrap();
        sessions += rounds;
        ended += lost;
    }
    let record = std::mem::take(&mut *total.lock().unwrap());
    println!("agents: {sessions} sessions, {ended} of them ended by the gateway");
    assert!(ended * 2 <= sessions, "seed {seed}: most sessions are ended");
    // What was approved comes to its end.
    let under_way = || {
        let holds = core.outbox.list(&account).unwrap();
        holds.iter().any(|h| matches!(h.state, State::Approved | State::Sending))
    };
    let waited = Instant::now();
    while under_way() && waited.elapsed() < common::PATIENCE {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut outcomes: BTreeMap<(Action, State), usize> = BTreeMap::new();
    for hold in core.outbox.list(&account).unwrap() {
        *outcomes.entry((hold.action, hold.state)).or_default() += 1;
    }
    println!("agents: {:?}", record.successes);
    println!("agents: {} cells of verb, mailbox and state", record.cells.len());
    println!("agents: {} approved to be sent, {} messages to be removed; {outcomes:?}", sent.len(), removed.len());
    let leaks = leaks(provider, &user, &before, &sent, &removed);
    assert!(leaks.is_empty(), "seed {seed}: {leaks:#?}");
    assert!(record.enough(LEAST), "seed {seed}: too few successes: {:?}", record.successes);
    let vanished = before.keys().filter(|m| !census(provider, &user).contains_key(*m)).count();
    assert!(vanished > 0 && !provider.accepted().is_empty(), "nothing approved was carried out: {vanished} gone");
    gateway.shutdown().await;
}

/// Without the gateway the same programs do harm, and the test sees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_agent_without_the_guard_is_seen_to_leak() {
    let seed = seed();
    let (user, password) = (keys::ADDRESS.to_owned(), "unguarded".to_owned());
    let options = Options { users: vec![(user.clone(), password.clone())], ..Options::default() };
    let provider = Provider::start(options).await.unwrap();
    let (imap, smtp) = (provider.imap_addr().port(), provider.smtp_addr().port());
    let target = Target { imap, smtp, user: user.clone(), password, blind: false };
    let before = {
        let target = target.clone();
        let make = move || {
            let mut owner = common::imap::Imap::login(target.imap, &target.user, &target.password);
            MAILBOXES.iter().for_each(|m| drop(owner.ok(&format!("CREATE {m}"))));
        };
        tokio::task::spawn_blocking(make).await.unwrap();
        fill(&provider, &user);
        census(&provider, &user)
    };
    let mut record = Record::default();
    for round in 0..20 {
        let target = target.clone();
        let work = move || session(&target, seed * 1000 + round);
        record.add(tokio::task::spawn_blocking(work).await.unwrap().1);
    }
    let leaks = leaks(&provider, &user, &before, &[], &BTreeSet::new());
    println!("control: seed {seed}, {} leaks, {:?}", leaks.len(), record.successes);
    for kind in ["unapproved", "is gone", "something of the agent"] {
        assert!(leaks.iter().any(|l| l.contains(kind)), "seed {seed}: {kind} was not seen: {leaks:#?}");
    }
    for verb in VERBS {
        assert!(record.successes.contains_key(verb), "seed {seed}: {verb} never succeeded");
    }
    provider.stop().await;
}
