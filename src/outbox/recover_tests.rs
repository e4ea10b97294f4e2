//! A restored backup, and a change of the signing key.

use std::path::Path;

use super::identity::Identity;
use super::testing::{Bench, MESSAGE, envelope, tuning};
use super::*;
use crate::account::Role;
use crate::floor::action::Action;
use crate::floor::ledger::{self, Event};
use crate::floor::receipt::{Expect, ReceiptError};
use crate::floor::submission::State;
use crate::store::disk::Disk;
use crate::upstream::smtp::scripted::{Provider, Script};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name())).unwrap();
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            std::fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

struct Stand {
    provider: Provider,
    root: tempfile::TempDir,
}

impl Stand {
    async fn new() -> Stand {
        Stand { provider: Provider::start(Script::default()).await, root: tempfile::tempdir().unwrap() }
    }

    async fn open(&self) -> Bench {
        Bench::in_folder(self.root.path(), &self.provider, tuning()).await
    }

    fn state(&self) -> std::path::PathBuf {
        self.root.path().join("state")
    }

    fn back_up(&self) {
        copy(&self.state(), &self.root.path().join("backup"));
    }

    fn restore(&self) {
        std::fs::remove_dir_all(self.state()).unwrap();
        std::fs::rename(self.root.path().join("backup"), self.state()).unwrap();
    }
}

fn restored(bench: &Bench) -> Vec<(String, u64)> {
    let entries = bench.outbox.whole_ledger().unwrap();
    ledger::verify(&entries, None).unwrap();
    let told = |e: &Entry| match &e.event {
        Event::Restored { witnessed, open } => Some((witnessed.clone(), *open)),
        _ => None,
    };
    entries.iter().filter_map(told).collect()
}

#[tokio::test]
async fn what_is_open_in_a_restored_backup_is_unknown_and_nothing_goes_twice() {
    let stand = Stand::new().await;
    let bench = stand.open().await;
    assert_eq!(bench.outbox.recover().await.unwrap(), Found::default());
    let held = bench.submit(Role::Agent, envelope(&["b@example.com"]), MESSAGE).await.unwrap();
    let approved = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    let denied = bench.submit(Role::Agent, envelope(&["b@example.com"]), MESSAGE).await.unwrap();
    bench.outbox.deny(&bench.account, &denied, "", "owner").await.unwrap();
    drop(bench);
    stand.back_up();

    // Since the backup it was sent.
    let bench = stand.open().await;
    assert_eq!(bench.outbox.recover().await.unwrap(), Found::default(), "a start that nobody restored");
    assert_eq!(bench.attempt(&approved).await.state, State::Sent);
    let head = bench.outbox.ledger_head().unwrap().unwrap();
    drop(bench);
    stand.restore();

    let bench = stand.open().await;
    assert_eq!(bench.hold(&approved).state, State::Approved, "the backup says so");
    let found = bench.outbox.recover().await.unwrap();
    assert_eq!(found, Found { restored: Some(2), cut_off: 0 });
    assert_eq!(bench.hold(&held).state, State::Unknown);
    assert_eq!(bench.hold(&approved).state, State::Unknown);
    assert_eq!(bench.hold(&denied).state, State::Denied);
    assert!(bench.hold(&held).detail.unwrap().contains("a backup was restored"));
    assert!(bench.outbox.claim(&bench.hold(&approved)).await.unwrap().is_none());
    // The attempt was witnessed before the provider was called.
    let told = restored(&bench);
    let [(witnessed, 2)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(witnessed.parse::<LedgerHead>().unwrap().number, head.number - 1);
    assert_eq!(stand.provider.complete().len(), 1);
    // A head that was kept elsewhere shows it too.
    let entries = bench.outbox.whole_ledger().unwrap();
    assert!(ledger::verify(&entries, Some(head)).is_err());
    drop(bench);
    let bench = stand.open().await;
    assert_eq!(bench.outbox.recover().await.unwrap(), Found::default(), "said once");
    // What is held from now on is alive.
    let fresh = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    assert_eq!(bench.attempt(&fresh).await.state, State::Sent);
}

#[tokio::test]
async fn a_restored_backup_that_went_on_before_it_was_looked_at_is_found_out() {
    let stand = Stand::new().await;
    let bench = stand.open().await;
    let id = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    drop(bench);
    stand.back_up();
    let bench = stand.open().await;
    bench.outbox.recover().await.unwrap();
    bench.attempt(&id).await;
    drop(bench);
    stand.restore();
    let bench = stand.open().await;
    // As verbs of the command line do: entries of another past, and more of them.
    for _ in 0..5 {
        bench.outbox.record(Event::PinSet { account: "demo@example.org".into() }).await.unwrap();
    }
    assert_eq!(bench.outbox.recover().await.unwrap().restored, Some(1));
    assert_eq!(bench.hold(&id).state, State::Unknown);
}

#[tokio::test]
async fn a_state_without_its_witness_is_doubted_and_a_new_one_is_not() {
    let stand = Stand::new().await;
    let bench = stand.open().await;
    assert_eq!(bench.outbox.recover().await.unwrap(), Found::default(), "new");
    let id = bench.submit(Role::Agent, envelope(&["b@example.com"]), MESSAGE).await.unwrap();
    bench.outbox.follow().await.unwrap();
    drop(bench);
    let witness = stand.root.path().join("state.witness");
    std::fs::remove_file(&witness).unwrap();
    let bench = stand.open().await;
    assert_eq!(bench.outbox.recover().await.unwrap().restored, Some(1));
    assert_eq!(bench.hold(&id).state, State::Unknown);
    assert_eq!(restored(&bench), [(String::new(), 1)]);
    drop(bench);
    // One of another gateway vouches for nothing.
    let text = std::fs::read_to_string(&witness).unwrap();
    let gateway = text.lines().nth(1).unwrap().to_owned();
    std::fs::write(&witness, text.replace(&gateway, "gateway somebody-else")).unwrap();
    let bench = stand.open().await;
    assert_eq!(bench.outbox.recover().await.unwrap().restored, Some(0));
}

#[tokio::test]
async fn a_witness_that_can_not_be_written_stops_the_dispatch_and_not_the_message() {
    let stand = Stand::new().await;
    let bench = stand.open().await;
    bench.outbox.recover().await.unwrap();
    let id = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    let witness = stand.root.path().join("state.witness");
    let _ = std::fs::remove_file(&witness);
    std::fs::create_dir(&witness).unwrap();
    assert_eq!(bench.attempt(&id).await.state, State::Approved);
    assert!(stand.provider.commands().is_empty());
    assert!(bench.hold(&id).detail.unwrap().contains("witness_file"));
    std::fs::remove_dir(&witness).unwrap();
    assert_eq!(bench.attempt(&id).await.state, State::Sent);
}

#[tokio::test]
async fn receipts_of_a_key_that_was_retired_stay_verifiable_and_the_ledger_says_when() {
    let stand = Stand::new().await;
    let bench = stand.open().await;
    bench.outbox.recover().await.unwrap();
    let sent = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    bench.attempt(&sent).await;
    let waiting = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    let before = bench.outbox.verifying_keys();
    bench.outbox.rotate_key().await.unwrap();
    let keys = bench.outbox.verifying_keys();
    assert_eq!((keys.len(), keys[1]), (2, before[0]));
    assert_eq!(bench.attempt(&waiting).await.state, State::Sent, "what the key before signed goes");
    let after = bench.approved(envelope(&["b@example.com"]), MESSAGE).await;
    let expect = Expect::new(Action::SendEmail);
    let old = bench.outbox.receipt(&sent).unwrap().unwrap();
    let new = bench.outbox.receipt(&after).unwrap().unwrap();
    assert_ne!(old.key_id, new.key_id);
    old.verify(&keys, &expect).unwrap();
    new.verify(&keys, &expect).unwrap();
    assert_eq!(new.verify(&before, &expect).err(), Some(ReceiptError::Signature));
    let entries = bench.outbox.whole_ledger().unwrap();
    ledger::verify(&entries, None).unwrap();
    let changes: Vec<_> = entries.iter().filter(|e| matches!(e.event, Event::SigningKey { .. })).collect();
    assert_eq!(changes.len(), 1);
    let Event::SigningKey { retired, key, .. } = &changes[0].event else { panic!() };
    assert_eq!((retired, key), (&old.key_id, &new.key_id));
    drop(bench);

    // Cut off between the file and the entry: the next start writes it.
    let path = stand.state().join(IDENTITY_FILE);
    Identity::load_or_make(&path, &Disk::default()).unwrap().rotate(&path, &Disk::default()).unwrap();
    let bench = stand.open().await;
    bench.outbox.recover().await.unwrap();
    assert_eq!(bench.outbox.verifying_keys().len(), 3);
    let entries = bench.outbox.whole_ledger().unwrap();
    assert_eq!(entries.iter().filter(|e| matches!(e.event, Event::SigningKey { .. })).count(), 2);
    bench.attempt(&after).await;
    assert_eq!(bench.hold(&after).state, State::Sent);
}
