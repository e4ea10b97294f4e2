//! What must be true after a crash and the start that follows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tollgate::floor::action::Action;
use tollgate::floor::ledger::{self, Event};
use tollgate::floor::receipt::Expect;
use tollgate::floor::submission::State;
use tollgate::outbox::Hold;
use tollgate::store::blob::BlobId;
use tollgate::store::{self, StoreError, Table};

use crate::child::{self, TOLD};

/// A hold that somebody was told of.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) kind: String,
    id: String,
    /// The last state that was told.
    pub(crate) state: Option<String>,
}

/// Everything that was told, by the id of the hold.
pub(crate) fn told(folder: &Path) -> BTreeMap<String, Told> {
    let text = std::fs::read_to_string(folder.join(TOLD)).unwrap_or_default();
    let mut all: BTreeMap<String, Told> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["held", hold, kind, id] => {
                all.insert((*hold).to_owned(), Told { kind: (*kind).to_owned(), id: (*id).to_owned(), state: None });
            }
            ["state", hold, state] => all.get_mut(*hold).unwrap().state = Some((*state).to_owned()),
            _ => panic!("the child told {line:?}"),
        }
    }
    all
}

/// The states that a hold of this kind can be in once nothing is due.
fn legal(kind: &str) -> &'static [State] {
    match kind {
        "deny" | "again" | "revoke" => &[State::Held, State::Denied],
        "withdraw" => &[State::Held, State::Withdrawn],
        "expire" => &[State::Held, State::Expired],
        "send" | "rotated" => &[State::Held, State::Sent, State::Unknown],
        "refuse" => &[State::Held, State::Failed, State::Unknown],
        "later" => &[State::Held, State::Approved, State::Failed, State::Unknown],
        "lost" => &[State::Held, State::Unknown],
        other => panic!("what is {other}?"),
    }
}

/// What the sinks must have of a message, by its Message-ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copies {
    None,
    One,
    AtMostOne,
}

/// Looks at a state folder that nobody has open; what the sinks must have.
pub(crate) fn check(folder: &Path) -> BTreeMap<String, Copies> {
    let opened = child::open(folder);
    let holds: Vec<Hold> = opened.accounts.ids().iter().flat_map(|a| opened.outbox.list(a).unwrap()).collect();
    let mut copies = BTreeMap::new();
    for (id, told) in told(folder) {
        let hold = holds.iter().find(|h| h.id.as_str() == id);
        let hold = hold.unwrap_or_else(|| panic!("what had its 250 is gone: {told:?}"));
        assert!(legal(&told.kind).contains(&hold.state), "{told:?} is {}", hold.state);
        match told.state.as_deref() {
            None => {}
            Some("approved") => assert_ne!(hold.state, State::Held, "an approval was lost: {told:?}"),
            Some(state) => assert_eq!(hold.state.name(), state, "{told:?}"),
        }
        if told.id != "-" {
            let of = match hold.state {
                State::Sent => Copies::One,
                State::Unknown => Copies::AtMostOne,
                _ => Copies::None,
            };
            copies.insert(told.id, of);
        }
    }
    let entries = opened.outbox.whole_ledger().unwrap();
    revoked_whole(&opened, &holds, &entries);
    ledger::verify(&entries, None).unwrap();
    let in_ledger = entries.iter().filter(|e| matches!(e.event, Event::Held { .. })).count();
    assert_eq!(in_ledger, holds.len(), "each hold has its entry, and each entry its hold");
    assert!(!entries.iter().any(|e| matches!(e.event, Event::Restored { .. })), "a crash is no restore");
    let keys = opened.outbox.verifying_keys();
    for hold in &holds {
        if let Some(receipt) = opened.outbox.receipt(&hold.id).unwrap() {
            receipt.verify(&keys, &Expect::new(Action::SendEmail)).unwrap();
            receipt.check_ledger(entries.iter().find(|e| e.number == receipt.ledger_head.number)).unwrap();
        }
    }
    swept(folder, &opened);
    copies
}

/// A key is revoked, its messages are denied, and the ledger says so; or none
/// of it.
fn revoked_whole(opened: &child::Opened, holds: &[Hold], entries: &[ledger::Entry]) {
    for key in opened.accounts.list_keys(None).iter().filter(|k| k.name == child::DOOMED) {
        let revoked = key.revoked_at.is_some();
        let own = holds.iter().filter(|h| h.key == key.id);
        assert!(own.clone().all(|h| h.state == if revoked { State::Denied } else { State::Held }), "{holds:?}");
        let told = |e: &&ledger::Entry| matches!(&e.event, Event::KeyRevoked { key: k, .. } if *k == key.id.as_str());
        assert_eq!(entries.iter().filter(told).count(), usize::from(revoked));
    }
}

/// Exactly the octets that holds name, and nothing half-written.
fn swept(folder: &Path, opened: &child::Opened) {
    let live: BTreeSet<String> = opened.outbox.live_blobs().unwrap().iter().map(ToString::to_string).collect();
    let names = |folder: &Path| -> Vec<String> {
        let read = std::fs::read_dir(folder).unwrap();
        read.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    let state = folder.join("state");
    let rows =
        store::read(&*opened.store, |r| -> Result<_, StoreError> { r.scan(Table::Octets, b"", b"", usize::MAX) })
            .unwrap();
    let of_row = |(key, _): (Vec<u8>, Vec<u8>)| BlobId(key.try_into().expect("a content address")).to_string();
    let mut found: BTreeSet<String> = rows.into_iter().map(of_row).collect();
    for below in names(&state.join("blobs")) {
        found.extend(names(&state.join("blobs").join(below)));
    }
    assert_eq!(found, live, "the octets that holds name");
    for name in names(&state).iter().chain(&names(folder)) {
        assert!(!name.ends_with(".tmp") || name == "state.witness.tmp", "{name} was left behind");
    }
}
