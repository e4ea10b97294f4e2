//! What somebody holds: Dovecot, asked directly, or a client's Maildir.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::dovecot::Dovecot;
use crate::common::mail::{header, unstamped};

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// As IMAP spells them, without `\Recent`; keywords are left out.
    pub(crate) flags: BTreeSet<String>,
    /// With CRLF.
    pub(crate) octets: Vec<u8>,
}

/// Messages by mailbox and Message-ID.
pub(crate) type Holdings = BTreeMap<(String, String), Held>;

/// Everything that a user has at the provider.
#[track_caller]
pub(crate) fn at_the_provider(dovecot: &Dovecot, user: &str) -> Holdings {
    let mut direct = dovecot.direct(user);
    let mut held = Holdings::new();
    for mailbox in direct.mailboxes() {
        direct.ok(&format!("EXAMINE \"{mailbox}\""));
        for uid in direct.search("ALL") {
            let octets = direct.body(uid);
            let system = |f: &String| f.starts_with('\\') && f != "\\Recent";
            let flags = direct.flags(uid).into_iter().filter(system).collect();
            add(&mut held, &mailbox, Held { flags, octets });
        }
    }
    held
}

#[track_caller]
fn add(held: &mut Holdings, mailbox: &str, message: Held) {
    let shown = String::from_utf8_lossy(&message.octets).into_owned();
    let id = header(&message.octets, "Message-ID").unwrap_or_else(|| panic!("no Message-ID in {mailbox}:\n{shown}"));
    let before = held.insert((mailbox.to_owned(), id.clone()), message);
    assert!(before.is_none(), "{id} is twice in {mailbox}");
}

/// The files of all messages beneath a folder of Maildirs.
pub(crate) fn files(root: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut open) = (BTreeSet::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let parent = folder.file_name().and_then(|n| n.to_str());
            if path.is_dir() {
                open.push(path);
            } else if matches!(parent, Some("cur" | "new")) {
                found.insert(path);
            }
        }
    }
    found
}

/// Everything in a folder of Maildirs. Their line end is LF.
#[track_caller]
pub(crate) fn in_maildirs(root: &Path) -> Holdings {
    let mut held = Holdings::new();
    for path in files(root) {
        let mailbox = path.parent().and_then(Path::parent).unwrap().strip_prefix(root).unwrap();
        add(
            &mut held,
            mailbox.to_str().unwrap(),
            Held { flags: flags(&path), octets: with_crlf(&fs::read(&path).unwrap()) },
        );
    }
    held
}

/// The flags in a Maildir file's name.
fn flags(path: &Path) -> BTreeSet<String> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let letters = name.split_once(":2,").map_or("", |(_, f)| f);
    let word = |c| match c {
        'D' => "\\Draft",
        'F' => "\\Flagged",
        'R' => "\\Answered",
        'S' => "\\Seen",
        'T' => "\\Deleted",
        other => panic!("the flag {other} of {name}"),
    };
    letters.chars().filter(|c| *c != 'P').map(|c| word(c).to_owned()).collect()
}

/// Every line with CRLF.
pub(crate) fn with_crlf(octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(octets.len() + octets.len() / 32);
    for (i, b) in octets.iter().enumerate() {
        if *b == b'\n' && (i == 0 || octets[i - 1] != b'\r') {
            out.push(b'\r');
        }
        out.push(*b);
    }
    out
}

/// Without the lines of a field in the header that somebody added.
pub(crate) fn without_field(octets: &[u8], name: &str) -> Vec<u8> {
    let end = crate::common::mail::header_length(octets);
    let lines = octets[..end].split_inclusive(|b| *b == b'\n');
    let start = format!("{name}:").into_bytes();
    let kept = lines.filter(|l| !l.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(&start)));
    kept.chain([&octets[end..]]).flatten().copied().collect()
}

/// Asserts that `through` holds what `direct` holds: a message of INBOX in its
/// lane's mailbox and in `Lanes/All` (its stamps before it, forged ones renamed in
/// place), everything else unchanged.
#[track_caller]
pub(crate) fn assert_same_but_for_stamps(through: &Holdings, direct: &Holdings) {
    let mut seen = 0;
    for ((mailbox, id), message) in direct {
        if mailbox != "INBOX" {
            assert_eq!(through.get(&(mailbox.clone(), id.clone())), Some(message), "{mailbox} {id}");
            seen += 1;
            continue;
        }
        let copies: Vec<_> = through.iter().filter(|((m, i), _)| i == id && is_view(m)).collect();
        let places: Vec<&str> = copies.iter().map(|((m, _), _)| m.as_str()).collect();
        assert!(copies.len() == 2 && places.contains(&"Lanes/All"), "{id} is in {places:?}");
        for ((place, _), copy) in copies {
            let (_, rest) = unstamped(&copy.octets);
            assert!(same_but_renamed(rest, &message.octets), "{place} {id}:\n{}", String::from_utf8_lossy(rest));
            assert_eq!(copy.flags, message.flags, "{place} {id}");
            seen += 1;
        }
    }
    assert_eq!(through.len(), seen, "the client holds more than there is: {:?}", through.keys());
}

fn is_view(mailbox: &str) -> bool {
    mailbox == "INBOX" || mailbox.starts_with("Lanes/")
}

/// Whether two messages are the same but for the names of forged stamps.
fn same_but_renamed(a: &[u8], b: &[u8]) -> bool {
    let forged = |line: &[u8]| line.get(..11).is_some_and(|n| n.eq_ignore_ascii_case(b"X-Tollgate-"));
    let colon = |line: &[u8]| line.iter().position(|c| *c == b':').unwrap_or(line.len());
    let (mut x, mut y) = (a.split_inclusive(|c| *c == b'\n'), b.split_inclusive(|c| *c == b'\n'));
    loop {
        match (x.next(), y.next()) {
            (None, None) => return true,
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) if forged(y) && colon(x) == colon(y) && x[colon(x)..] == y[colon(y)..] => {}
            _ => return false,
        }
    }
}
