//! Kills in the middle of a removal, and of a copy into Sent: nothing is lost,
//! nothing goes that wasn't approved, no copy is made twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tollgate::floor::ledger;
use tollgate::floor::receipt::Expect;
use tollgate::floor::submission::State;
use tollgate::outbox::Hold;

use crate::acts_child::{
    ACTS, ACTS_AGAIN, KINDS, MAIL, MESSAGES, away, direct, is_victim, mailbox, message_id, name_of,
};
use crate::check::{Copies, told};
use crate::child;
use crate::common::dovecot::USERS;
use crate::common::gateway::Upstream;
use crate::common::imap::Imap;
use crate::kill::{Stand, arrived_as_told, kill_at_each, points, stand_file};

/// What of a run's points is looked at here: from the claim on. What comes
/// before is the same for a message, and so is SMTP.
const OURS: [&str; 8] = [
    "claim/",
    "lease/",
    "settle-sent/",
    "dispatch/imap.",
    "dispatch/file.",
    "dispatch/folder.",
    "inbox/",
    "sent-copy/",
];
/// Points that the scenario must reach, or it doesn't show what it should.
const MUST: [&str; 28] = [
    "claim/db.sync",
    "claim/durable",
    "lease/db.sync",
    "settle-sent/db.sync",
    "dispatch/file.sync",
    "dispatch/file.rename",
    "dispatch/imap.EXAMINE",
    "dispatch/imap.UID FETCH",
    "dispatch/imap.SELECT",
    "dispatch/imap.UID STORE",
    "dispatch/imap.UID STORE.written",
    "dispatch/imap.UID EXPUNGE",
    "dispatch/imap.UID EXPUNGE.written",
    "dispatch/imap.UID MOVE",
    "dispatch/imap.UID MOVE.written",
    "dispatch/imap.UID SEARCH",
    "dispatch/imap.DELETE",
    "dispatch/imap.DELETE.written",
    "inbox/imap.UID STORE",
    "inbox/imap.UID EXPUNGE",
    "inbox/imap.UID EXPUNGE.written",
    "sent-copy/db.sync",
    "sent-copy/imap.LIST",
    "sent-copy/imap.UID SEARCH",
    "sent-copy/imap.APPEND",
    "sent-copy/imap.APPEND.announced",
    "sent-copy/imap.APPEND.written",
    "sent-copy/imap.APPEND.answered",
];

/// A folder with alice before Dovecot and Postfix.
fn folder(stand: &Stand, name: &str) -> PathBuf {
    let folder = stand.scratch.folder(name);
    let (user, password) = USERS[0];
    let (imap, smtp) = ((stand.dovecot.imap, "none"), (stand.postfix.submission, "none"));
    let account = Upstream { user, password, imap, smtp, ca: None }.toml();
    let text = format!(
        "state_dir = \"state\"\ncerts_dir = \"certs\"\n[listen]\nimaps = []\nsubmissions = []\n\
         web = [\"127.0.0.1:0\"]\n\n{account}"
    );
    stand_file(&folder.join("gateway.toml"), &text);
    folder
}

/// How often a message stands in a mailbox; 0 where there is none. A message
/// that stays isn't flagged for others to remove, unless `doubtful`.
fn there(imap: &mut Imap, mailbox: &str, id: &str, doubtful: bool) -> usize {
    if !imap.command(&format!("EXAMINE {mailbox}")).status.starts_with("OK") {
        return 0;
    }
    let uids = imap.find(id);
    // Asked by a search: other runs' flags in INBOX are told in between.
    let flagged = imap.search(&format!("DELETED HEADER Message-ID \"{id}\""));
    assert!(doubtful || flagged.is_empty(), "{id} in {mailbox} is flagged");
    uids.len()
}

/// Looks at the mailboxes of a run after its kill and the start that followed.
fn check(folder: &Path) -> Left {
    let run = name_of(folder);
    let opened = child::open(folder);
    let holds: Vec<Hold> = opened.accounts.ids().iter().flat_map(|a| opened.outbox.list(a).unwrap()).collect();
    let told = told(folder);
    let entries = opened.outbox.whole_ledger().unwrap();
    ledger::verify(&entries, None).unwrap();
    let keys = opened.outbox.verifying_keys();
    for hold in &holds {
        if let Some(receipt) = opened.outbox.receipt(&hold.id).unwrap() {
            receipt.verify(&keys, &Expect::new(hold.action)).unwrap();
        }
    }
    let mut imap = direct(folder);
    let mut left = Left::default();
    let of_kind = |kind: &str| {
        let (id, said) = told.iter().find(|(_, t)| t.kind == kind)?;
        let hold = holds.iter().find(|h| h.id.as_str() == id).unwrap_or_else(|| panic!("{said:?} is gone"));
        // Told as ended, and never other than that.
        let ended = said.state.as_deref().filter(|s| *s != "approved");
        assert!(ended.is_none_or(|s| s == hold.state.name()), "{said:?} is {}", hold.state);
        assert!(said.state.is_none() || hold.state != State::Held, "an approval was lost: {said:?}");
        Some(hold)
    };
    for kind in KINDS {
        let first = of_kind(kind);
        let again = first.and_then(|h| h.again.as_ref()).and_then(|a| holds.iter().find(|h| h.id == *a));
        let states = (first.map_or(State::Held, |h| h.state), again.map(|h| h.state));
        *left.ends.entry(format!("{kind} {states:?}")).or_default() += 1;
        let mailbox = mailbox(&run, kind);
        for n in 0..MESSAGES {
            let id = message_id(&run, kind, n);
            let what = format!("{id} after {states:?}");
            let victim = is_victim(kind, n);
            // Cut off between STORE and EXPUNGE it may stay flagged.
            let count = there(&mut imap, &mailbox, &id, victim && states.0 != State::Held);
            let moved = if kind == "move" { there(&mut imap, &away(&run), &id, false) } else { 0 };
            match states {
                _ if !victim => assert_eq!((count, moved), (1, 0), "nobody approved it: {what}"),
                (State::Held, _) => assert_eq!((count, moved), (1, 0), "nobody approved it yet: {what}"),
                // The second time says for certain that all is done, or that
                // something was no longer as it was approved: the first had
                // got to its end.
                (State::Sent, None) | (State::Unknown, Some(State::Sent | State::Failed)) => {
                    assert_eq!((count, moved), (0, usize::from(kind == "move")), "{what}");
                }
                other => panic!("{what}: {other:?}"),
            }
        }
        let stays = imap.command(&format!("EXAMINE {mailbox}")).status.starts_with("OK");
        match states {
            (State::Sent, _) | (_, Some(State::Sent)) => assert_eq!(stays, kind != "mailbox", "{mailbox}"),
            // Cut off between the last message and the mailbox it stays, empty.
            (_, Some(_)) => {}
            _ => assert!(stays, "{mailbox} after {states:?}"),
        }
    }
    if let Some(hold) = of_kind(MAIL) {
        let id = message_id(&run, MAIL, 0);
        let (of, in_sent) = match hold.state {
            State::Sent => (Copies::One, 1),
            State::Unknown => (Copies::AtMostOne, 0),
            State::Held => (Copies::None, 0),
            other => panic!("{id} is {other}"),
        };
        assert_eq!(there(&mut imap, "Sent", &id, false), in_sent, "copies of {id}, which is {}", hold.state);
        *left.ends.entry(format!("{MAIL} {}", hold.state)).or_default() += 1;
        left.copies.insert(id, of);
    }
    left
}

/// What a run left.
#[derive(Default)]
struct Left {
    /// What the sink must have.
    copies: BTreeMap<String, Copies>,
    /// How often each kind ended in which states, the second time too.
    ends: BTreeMap<String, usize>,
}

impl Left {
    fn add(&mut self, other: Left) {
        self.copies.extend(other.copies);
        other.ends.into_iter().for_each(|(end, n)| *self.ends.entry(end).or_default() += n);
    }
}

#[test]
fn a_kill_at_every_point_of_a_removal_or_a_sent_copy_loses_nothing_and_doubles_nothing() {
    let began = Instant::now();
    let stand = Stand::start();
    let listed = folder(&stand, "list");
    let mut points = points(&listed, ACTS);
    let all = points.len();
    points.retain(|name, _| OURS.iter().any(|start| name.starts_with(start)));
    for must in MUST {
        assert!(points.contains_key(must), "{must} is not among {:?}", points.keys());
    }
    let mut left = check(&listed);
    assert_eq!(left.copies.values().filter(|of| **of == Copies::One).count(), 1);
    println!(
        "{} of {all} points, {} in all; one run takes {:?}",
        points.len(),
        points.values().sum::<usize>(),
        began.elapsed()
    );
    let modes = (ACTS, ACTS_AGAIN);
    let found = kill_at_each(&points, modes, |n| folder(&stand, &format!("k{n}")), check);
    found.into_iter().for_each(|one| left.add(one));
    println!("{:#?}", left.ends);
    for kind in KINDS {
        // It was killed before, during and after: each way of going on was taken.
        let seen = |second: &str| left.ends.keys().any(|e| e.starts_with(kind) && e.contains(second));
        for second in ["Held, None", "Sent, None", "Unknown, Some(Sent)", "Unknown, Some(Failed)"] {
            assert!(seen(second), "{kind} never ended as ({second})");
        }
    }
    arrived_as_told(&stand, &left.copies);
    println!("took {:?}", began.elapsed());
}
