//! The outbox after a power cut at any moment: database, octets, identity and
//! witness in one image.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::dispatch::{Outcome, Why};
use super::testing::{Bench, envelope, tuning};
use super::*;
use crate::account::Role;
use crate::config::TlsMode;
use crate::floor::action::Action;
use crate::floor::ledger::{self, Event};
use crate::floor::receipt::Expect;
use crate::floor::submission::State;
use crate::store::blob::MAX_IN_DATABASE;
use crate::store::power::{Dice, Journal, Kept};
use crate::upstream::smtp::scripted::{Provider, Script};

/// How many images of the default run; `TOLLGATE_LONG` makes ten times as many.
const IMAGES: u64 = 120;
/// Images in which a forgotten sync must be found out.
const CONTROL_IMAGES: u64 = 80;

/// What somebody was told, and after how many changes of the disk.
struct Told {
    at: usize,
    hold: HoldId,
    /// Where the hold may be after that.
    then: &'static [State],
}

use State::{Approved, Denied, Expired, Failed, Held, Sending, Sent, Unknown, Withdrawn};

struct History {
    root: tempfile::TempDir,
    journal: Arc<Journal>,
    told: Vec<Told>,
}

async fn history() -> History {
    let root = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::default());
    let provider = Provider::start(Script::default()).await;
    let config = Config::embedded(root.path());
    let bench = Bench::on(config, provider.endpoint(TlsMode::None), tuning(), journal.disk()).await;
    let outbox = &bench.outbox;
    let mut told = Vec::new();
    outbox.recover().await.unwrap();
    let mut tell = |hold: &HoldId, then| told.push(Told { at: journal.len(), hold: hold.clone(), then });
    for n in 0..8_u8 {
        // Half of them rows, half of them files.
        let length = if n < 4 { 900 } else { MAX_IN_DATABASE + 1 };
        let octets = [vec![b'a' + n; length], b"\r\n".to_vec()].concat();
        let id = bench.submit(Role::Agent, envelope(&["b@example.com"]), &octets).await.unwrap();
        tell(&id, &[Held, Approved, Sending, Sent, Failed, Unknown, Denied, Expired, Withdrawn]);
        match n % 4 {
            0 => {
                outbox.deny(&bench.account, &id, "no", "owner").await.unwrap();
                tell(&id, &[Denied]);
            }
            1 => {
                outbox.withdraw(&bench.account, &id).await.unwrap();
                tell(&id, &[Withdrawn]);
            }
            _ => {
                bench.approve(&id).await;
                tell(&id, &[Approved, Sending, Sent, Failed]);
                let hold = outbox.claim(&bench.hold(&id)).await.unwrap().unwrap();
                outbox.witness_head(outbox.ledger_head().unwrap().unwrap()).unwrap();
                // From here on the provider may have been called: what is
                // found later must not look as if it had not.
                tell(&id, &[Sending, Sent, Failed]);
                let payload = outbox.receipt(&id).unwrap().unwrap().payload_hash;
                let why = || Why { code: "550".to_owned(), text: "no".to_owned() };
                let outcome = match n {
                    2 | 6 => Outcome::Sent(payload, "250 ok".to_owned()),
                    _ => Outcome::ForGood(why()),
                };
                let end: &[State] = if matches!(outcome, Outcome::Sent(..)) { &[Sent] } else { &[Failed] };
                outbox.settle(&hold, &outcome).await.unwrap();
                tell(&id, end);
            }
        }
        if n == 3 {
            outbox.follow().await.unwrap();
            outbox.rotate_key().await.unwrap();
        }
    }
    History { root, journal, told }
}

/// What is wrong with the image of a moment; nothing where it is as promised.
async fn wrong_with(history: &History, journal: &Journal, moment: usize, seed: u64) -> Result<(), String> {
    let folder = Journal::folder();
    journal.image(moment, &mut Dice::new(seed), history.root.path(), folder.path());
    let told: Vec<&Told> = history.told.iter().filter(|t| t.at <= moment).collect();
    let config = Arc::new(Config::embedded(folder.path()));
    let store: Arc<dyn Store> = match crate::store::redb::RedbStore::open(&config.state_dir) {
        Ok(store) => Arc::new(store),
        Err(error) => return Err(format!("the store doesn't open: {error}")),
    };
    let accounts = Accounts::new(config.clone(), store.clone()).map_err(|e| e.to_string())?;
    let outbox = Outbox::tuned(config, store, accounts, tuning()).map_err(|e| e.to_string())?;
    let before = all(&outbox)?;
    check(&outbox, &before, &told)?;
    let found = outbox.recover().await.map_err(|e| e.to_string())?;
    if found.restored.is_some() {
        return Err("it is taken for a restored backup".to_owned());
    }
    let after = all(&outbox)?;
    for (id, hold) in &before {
        let now = after[id].state;
        let right = if hold.state == Sending { now == Unknown } else { now == hold.state };
        if !right {
            return Err(format!("{} became {now}", hold.state));
        }
    }
    check(&outbox, &after, &[])
}

fn all(outbox: &Outbox) -> Result<BTreeMap<HoldId, Hold>, String> {
    let mut holds = BTreeMap::new();
    let read: Result<(), StoreError> = store::read(outbox.store.as_ref(), |r| {
        record::each(r, |hold| {
            holds.insert(hold.id.clone(), hold);
        })
    });
    read.map_err(|e| e.to_string())?;
    Ok(holds)
}

fn check(outbox: &Outbox, holds: &BTreeMap<HoldId, Hold>, told: &[&Told]) -> Result<(), String> {
    for told in told {
        let hold = holds.get(&told.hold).ok_or("a hold that had its 250 is gone")?;
        if !told.then.contains(&hold.state) {
            return Err(format!("told one of {:?}, found {}", told.then, hold.state));
        }
    }
    let entries = outbox.whole_ledger().map_err(|e| e.to_string())?;
    ledger::verify(&entries, None).map_err(|e| e.to_string())?;
    let named = entries.iter().filter(|e| matches!(e.event, Event::Held { .. })).count();
    if named != holds.len() {
        return Err(format!("{} holds and {named} of them in the ledger", holds.len()));
    }
    let keys = outbox.verifying_keys();
    for hold in holds.values() {
        let mut octets = Vec::new();
        let mut file = outbox.open(hold).map_err(|e| format!("the octets are gone: {e}"))?;
        file.read_to_end(&mut octets).map_err(|e| e.to_string())?;
        if <[u8; 32]>::from(Sha256::digest(&octets)) != hold.blob.0 {
            return Err("the octets aren't whole".to_owned());
        }
        let receipt = outbox.receipt(&hold.id).map_err(|e| e.to_string())?;
        let approved = matches!(hold.state, Approved | Sending | Sent | Failed);
        if approved && receipt.is_none() {
            return Err(format!("{} without a receipt", hold.state));
        }
        if let Some(receipt) = receipt {
            receipt.verify(&keys, &Expect::new(Action::SendEmail)).map_err(|e| e.to_string())?;
            let head = receipt.ledger_head;
            let entry = entries.iter().find(|e| e.number == head.number);
            receipt.check_ledger(entry).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn after_a_power_cut_nobody_was_told_what_is_not_there() {
    let history = history().await;
    let images = if std::env::var_os("TOLLGATE_LONG").is_some() { IMAGES * 10 } else { IMAGES };
    let mut dice = Dice::new(3);
    for seed in 0..images {
        let moment = dice.below(history.journal.len() + 1);
        if let Err(wrong) = wrong_with(&history, &history.journal, moment, seed).await {
            panic!("after {moment} of {} changes, seed {seed}: {wrong}", history.journal.len());
        }
    }
    println!("{images} images of {} changes", history.journal.len());
}

/// Without any one kind of sync something is lost, so the test above can see.
#[test]
fn an_outbox_that_forgets_a_sync_is_found_out() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let history = runtime.block_on(history());
    let named = |path: &Path, word: &str| path.to_string_lossy().contains(word);
    type Forgets<'f> = Box<dyn Fn(&Kept) -> bool + 'f>;
    let kinds: [(&str, Forgets<'_>); 4] = [
        ("the database", Box::new(|k| matches!(k, Kept::Sync(p) if named(p, "tollgate.redb")))),
        ("a message's octets", Box::new(|k| matches!(k, Kept::Sync(p) if named(p, "blobs")))),
        ("a message's name", Box::new(|k| matches!(k, Kept::SyncFolder(p) if named(p, "blobs")))),
        ("the identity", Box::new(|k| matches!(k, Kept::Sync(p) if named(p, "identity")))),
    ];
    for (what, forgets) in kinds {
        let forgetful = history.journal.without(forgets);
        let (mut dice, mut found) = (Dice::new(4), 0);
        for seed in 0..CONTROL_IMAGES {
            let moment = dice.below(history.journal.len() + 1);
            // A database that was torn in ways that no disk tears one may make
            // its reader panic.
            let look = || runtime.block_on(wrong_with(&history, &forgetful, moment, seed));
            let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look));
            found += u32::from(!matches!(looked, Ok(Ok(()))));
        }
        assert!(found > 0, "an outbox that doesn't sync {what} passes");
        println!("without a sync of {what}: {found} of {CONTROL_IMAGES} images are found out");
    }
}
