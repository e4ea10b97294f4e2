//! fetchmail, by sequence numbers, in one mailbox after the other. (getmail6
//! loses the signal of its own delivering child on a busy machine, and then
//! waits a minute a message.)

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::clients_of;
use crate::common::mail::header;
use crate::common::program::{Ran, finish};
use crate::common::world::{LANES, World};
use crate::corpus::delivered;
use crate::holdings::{at_the_provider, with_crlf};
use crate::table;

/// Its exit code where there was no mail.
const NO_MAIL: i32 = 1;

#[test]
fn fetchmail_fetches_each_message_of_its_lanes_once_and_deletes_when_told() {
    let world = World::start();
    let mails = delivered(&world);
    let login = clients_of::through(&world);
    let out = world.gateway.scratch.folder("out");
    let run = |what: &str| -> Ran {
        let folders: Vec<String> = LANES.iter().chain(&["INBOX"]).map(|l| format!("\"{l}\"")).collect();
        let config = format!(
            "set no bouncemail\npoll localhost service {} protocol IMAP timeout 30\n\
             user \"{}\" password \"{}\" ssl sslcertck sslcertfile \"{}\"\nfolder {}\n\
             {what} no rewrite stripcr mda \"/bin/sh -c 'cat > $(mktemp {}/m.XXXXXX)'\"\n",
            login.imaps,
            login.user,
            login.password,
            login.trusts.display(),
            folders.join(","),
            out.display()
        );
        let config = world.gateway.scratch.file("fetchmailrc", config);
        let mut command = Command::new("fetchmail");
        command.arg("--fetchmailrc").arg(config).arg("--idfile").arg(out.with_extension("ids"));
        command.env("HOME", world.gateway.scratch.path());
        finish(command, b"")
    };
    let files = || fs::read_dir(&out).unwrap().count();
    run("keep").ok();
    assert_eq!(files(), mails.len());
    run("keep").code(NO_MAIL);
    assert_eq!(files(), mails.len(), "the second run fetches nothing");
    let held = at_the_provider(&world.dovecot, "alice");
    assert_eq!(held.len(), mails.len());
    assert!(held.values().all(|h| h.flags.contains("\\Seen")), "it marks what it fetched");

    // What it delivered is what another session sees, but for its own Received.
    let mut session = world.person(&world.alice);
    session.ok("EXAMINE \"Lanes/All\"");
    let wanted: BTreeMap<String, Vec<u8>> = session
        .search("ALL")
        .into_iter()
        .map(|uid| session.body(uid))
        .map(|octets| (header(&octets, "Message-ID").unwrap(), octets))
        .collect();
    for entry in fs::read_dir(&out).unwrap() {
        let octets = without_its_received(&with_crlf(&fs::read(entry.unwrap().path()).unwrap()));
        let id = header(&octets, "Message-ID").unwrap();
        let end = octets.strip_suffix(b"\r\n").filter(|o| o.len() == wanted[&id].len()).unwrap_or(&octets);
        let (got, want) = (String::from_utf8_lossy(end), String::from_utf8_lossy(&wanted[&id]));
        assert!(end == wanted[&id], "{id}:\n{got}\nwanted:\n{want}");
    }

    run("nokeep fetchall").ok();
    assert_eq!(at_the_provider(&world.dovecot, "alice").len(), 0);
    table::is_true_of(&world, "fetchmail");
}

fn without_its_received(octets: &[u8]) -> Vec<u8> {
    let from = b"Received: from localhost [127.0.0.1]\r\n";
    let at = octets.windows(from.len()).position(|w| w == from).expect("fetchmail's Received");
    let mut lines = octets[at..].split_inclusive(|b| *b == b'\n').skip(1);
    let folded: usize = lines.by_ref().take_while(|l| l.starts_with(b"\t")).map(<[u8]>::len).sum();
    [&octets[..at], &octets[at + from.len() + folded..]].concat()
}
