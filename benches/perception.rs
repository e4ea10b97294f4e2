//! How long a decision takes. `cargo bench` only; nothing here is asserted.

use divan::{Bencher, black_box};
use tollgate::account::AccountId;
use tollgate::gateway::replay::replay;
use tollgate::lane::rule::{Inputs, decide};
use tollgate::lane::trace::Trace;
use tollgate::lane::{Context, Features, Signals, Thresholds};
use tollgate::mail::address::Address;
use tollgate::perceive::{AccountFacts, PerceiveInput, perceive, warm};
use tollgate::store::redb::RedbStore;
use tollgate::store::{StoreError, Table, decision_key, put_json, write};

/// Wednesday, 4 November 2026, 10:00 in Berlin.
const NOW: i64 = 1_793_782_800;
/// Traces of a replay.
const TRACES: usize = 100_000;

fn main() {
    warm();
    divan::main();
}

fn account() -> AccountFacts {
    let addresses = Address::parse("mina@example.org").into_iter().collect();
    AccountFacts { addresses, timezone: "Europe/Berlin".to_owned(), authserv: vec!["mx.example.org".to_owned()] }
}

fn message(paragraph: &str, octets: usize) -> Vec<u8> {
    let head = "From: Ana <ana@example.com>\r\nTo: mina@example.org\r\nSubject: figures\r\n\
        Date: Wed, 04 Nov 2026 10:00:00 +0100\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n";
    let mut text = head.to_owned();
    while text.len() < octets {
        text.push_str(paragraph);
        text.push_str("\r\n\r\n");
    }
    text.into_bytes()
}

const ENGLISH: &str = "Thank you for the notes of last week. I went through the second part with Ben and we think that \
    the order could be clearer. Could you send me the figures by 3 pm tomorrow? The client is coming on Thursday.";
const KOREAN: &str = "지난주 자료 잘 받았습니다. 두 번째 부분을 같이 검토했는데 순서를 조금 바꾸면 좋겠습니다. \
    내일 오후 3시까지 수치를 보내 주실 수 있을까요? 고객이 목요일에 방문합니다.";

fn read(octets: &[u8], account: &AccountFacts, thresholds: &Thresholds) -> Trace {
    let input = PerceiveInput {
        octets,
        size: octets.len() as u64,
        account,
        now: NOW,
        internaldate: NOW,
        context: Context::default(),
    };
    perceive(&input, thresholds, String::new())
}

#[divan::bench(args = [1024, 10 * 1024, 100 * 1024])]
fn english(bencher: Bencher<'_, '_>, octets: usize) {
    let (mail, account, thresholds) = (message(ENGLISH, octets), account(), Thresholds::default());
    bencher.bench(|| read(black_box(&mail), &account, &thresholds));
}

#[divan::bench(args = [1024, 10 * 1024])]
fn korean(bencher: Bencher<'_, '_>, octets: usize) {
    let (mail, account, thresholds) = (message(KOREAN, octets), account(), Thresholds::default());
    bencher.bench(|| read(black_box(&mail), &account, &thresholds));
}

#[divan::bench]
fn rule(bencher: Bencher<'_, '_>) {
    let (context, thresholds) = (Context::default(), Thresholds::default());
    let features = Features::UNSCORABLE;
    let inputs = Inputs { features, offline: features, signals: Signals::NONE, context: &context };
    bencher.bench(|| decide(black_box(&inputs), &thresholds));
}

#[divan::bench]
fn rule_to_the_last_row(bencher: Bencher<'_, '_>) {
    let trace = read(&message(ENGLISH, 1024), &account(), &Thresholds::default());
    let features = trace.features();
    let inputs = Inputs { features, offline: features, signals: trace.signals, context: &trace.context };
    bencher.bench(|| decide(black_box(&inputs), &trace.thresholds));
}

#[divan::bench(sample_count = 10)]
fn replay_of_100_000_traces(bencher: Bencher<'_, '_>) {
    let trace = read(&message(ENGLISH, 1024), &account(), &Thresholds::default());
    let thresholds = Thresholds::default();
    bencher.bench(|| (0..TRACES).filter(|_| black_box(&trace).replay(&thresholds) == trace.verdict).count());
}

/// From the store, as `tollgate replay` reads them.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn replay_of_100_000_stored_traces(bencher: Bencher<'_, '_>) {
    const AT_ONCE: usize = 10_000;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RedbStore::open(folder.path()).expect("an empty store");
    let owner = AccountId::of(&account().addresses[0]);
    let trace = read(&message(ENGLISH, 1024), &account(), &Thresholds::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for batch in 0..TRACES / AT_ONCE {
        let (trace, owner) = (trace.clone(), owner.clone());
        let rows = write(&store, move |w| {
            (0..AT_ONCE).try_for_each(|n| {
                let key = decision_key(owner.as_str(), &format!("{:016x}", batch * AT_ONCE + n));
                put_json(w, Table::Decision, &key, &trace)
            })
        });
        runtime.block_on(rows).map_err(|e: StoreError| e.to_string()).expect("stored traces");
    }
    let thresholds = Thresholds { push_urgency: 0.8, ..Thresholds::default() };
    bencher.bench_local(|| replay(&store, std::slice::from_ref(&owner), &thresholds).map(|r| r.traces));
}
