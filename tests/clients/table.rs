//! The README's table of commands: what it says of a client was asked by that
//! client, in a run of these tests, of that kind of mailbox.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::world::World;

/// The heads of the two tables, and what kind of mailbox a cell is about.
const TABLES: [(&str, &[(usize, &str)]); 2] = [
    (
        "| Command | In INBOX and lanes | Elsewhere | Agents | Tried in INBOX and lanes | Tried elsewhere |",
        &[(4, "view"), (5, "passed")],
    ),
    ("| Command | Answer | Agents | Tried with |", &[(3, "none")]),
];
/// What stands before a command in the gateway's log. The clients come over
/// TLS, sessions of the tests themselves don't.
const ASKED: &str = "asked over tls ";

/// A command, with `UID ` where it has it, and `view`, `passed` or `none`.
type Asked = (String, String);

fn asked(world: &World) -> BTreeSet<Asked> {
    let log = fs::read_to_string(world.gateway.scratch.path().join("gateway.log")).expect("the gateway's log");
    let pair = |l: &str| {
        let (command, kind) = l.split_once(ASKED)?.1.trim().rsplit_once(' ')?;
        Some((command.to_owned(), kind.to_owned()))
    };
    log.lines().filter_map(pair).collect()
}

/// The commands of which the README says that a client was tried with them.
fn claimed(client: &str) -> BTreeSet<Asked> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(path).expect("README.md");
    let mut claimed = BTreeSet::new();
    for (head, tried) in TABLES {
        let rows = readme.lines().skip_while(|l| *l != head).skip(2).take_while(|l| l.starts_with('|'));
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            for (cell, kind) in tried {
                if cells[*cell].split(", ").any(|c| c == client) {
                    claimed.extend(cells[0].split(", ").map(|command| (command.to_owned(), (*kind).to_owned())));
                }
            }
        }
    }
    claimed
}

/// What the README says that a client was tried with, it asked here; whether
/// the answers were right, the test itself says.
#[track_caller]
pub(crate) fn is_true_of(world: &World, client: &str) {
    let claimed = claimed(client);
    let asked = asked(world);
    let listed = |set: &BTreeSet<Asked>| {
        let rows: Vec<String> = set.iter().map(|(command, kind)| format!("{command} ({kind})")).collect();
        rows.join(", ")
    };
    assert!(!claimed.is_empty(), "README has nothing of {client}; it asked {}", listed(&asked));
    let missing: BTreeSet<Asked> = claimed.difference(&asked).cloned().collect();
    let more: BTreeSet<Asked> = asked.difference(&claimed).cloned().collect();
    assert!(missing.is_empty(), "README says of {client} what it didn't ask: {}", listed(&missing));
    // Some ask more when they are slow, so this is no fault.
    println!("not in the README: {client} asked {}", listed(&more));
}
