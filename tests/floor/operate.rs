//! What an operator does: a backup brought back, a signing key changed.

use std::path::Path;
use std::process::Command;

use crate::common::eventually;
use crate::common::mail::message;
use crate::common::program;
use crate::common::world::{PIN, World};

fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    command.arg("-a").arg(from).arg(to);
    program::finish(command, b"").ok();
}

#[test]
fn a_restored_backup_sends_nothing_again_and_says_so_loudly() {
    let mut world = World::start();
    let keys = world.alice.clone();
    let mail = message(&keys.address, "ann@example.com", "Once", "Hello.");
    let hold = world.hold(&keys, &["ann@example.com"], &mail.octets);
    world.gateway.stop();
    let (state, backup) = (world.gateway.state_dir(), world.gateway.scratch.path().join("backup"));
    copy(&state, &backup);
    world.gateway.start();
    assert_eq!(world.approver(&keys).approve(&hold, PIN).status, 303);
    world.gateway.wait_for_state(&hold, "sent");
    eventually("the sink to get it", || (world.sink.with_id(&mail.id).len() == 1).then_some(()));
    let head = world.gateway.json(&["ledger", "head"])["head"].as_str().unwrap().to_owned();

    world.gateway.stop();
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&backup, &state).unwrap();
    world.gateway.start();
    let found = world.gateway.hold(&hold);
    assert_eq!(found["state"], "unknown", "{found}");
    assert!(found["detail"].as_str().unwrap().contains("a backup was restored"), "{found}");
    assert!(world.gateway.log().contains("THE STATE IS A RESTORED BACKUP"));
    let page = world.approver(&keys).get(&format!("/held/{hold}"));
    assert!(!page.text().contains(&format!("/held/{hold}/approve")), "{}", page.text());
    world.gateway.tollgate(&["ledger", "verify"]).ok();
    // Exit code 17: the chain is not the one whose head was kept.
    world.gateway.tollgate(&["ledger", "verify", "--head", &head]).code(17);
    let listed = world.gateway.tollgate(&["ledger", "list"]).ok().text();
    assert!(listed.contains("\"restored\""), "{listed}");
    assert_eq!(world.sink.with_id(&mail.id).len(), 1);

    // Again only on a person's word, and then it waits for an approval.
    world.gateway.tollgate(&["held", "resend", &hold]).code(64);
    let again = world.gateway.json(&["held", "resend", &hold, "--it-may-arrive-twice"]);
    assert_eq!((again["state"].as_str(), again["role"].as_str()), (Some("held"), Some("agent")), "{again}");
    world.gateway.tollgate(&["held", "resend", &hold, "--it-may-arrive-twice"]).code(65);
    assert_eq!(world.sink.with_id(&mail.id).len(), 1);
}

#[test]
fn a_new_signing_key_leaves_old_receipts_verifiable() {
    let world = World::start();
    let (keys, gateway) = (&world.alice, &world.gateway);
    let receipt_of = |name: &str| {
        let mail = message(&keys.address, "ann@example.com", name, "Hello.");
        let hold = world.hold(keys, &["ann@example.com"], &mail.octets);
        assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
        gateway.wait_for_state(&hold, "sent");
        let receipt = gateway.tollgate(&["receipt", "export", &hold]).ok().stdout;
        (gateway.scratch.file(&format!("{name}.json"), receipt), gateway.scratch.file(name, &mail.octets))
    };
    let verify = |(receipt, message): &(std::path::PathBuf, std::path::PathBuf)| {
        let (receipt, message) = (receipt.to_str().unwrap(), message.to_str().unwrap());
        gateway.tollgate(&["receipt", "verify", receipt, "--message", message])
    };
    let before = receipt_of("before");
    let published = std::fs::read_to_string(gateway.state_dir().join("identity.pub")).unwrap();
    let answer = gateway.json(&["identity", "rotate"]);
    assert_eq!(answer["keys"].as_array().unwrap().len(), 2, "{answer}");
    let now = std::fs::read_to_string(gateway.state_dir().join("identity.pub")).unwrap();
    assert!(now.ends_with(&published) && now.lines().count() == 2, "{now}");
    let after = receipt_of("after");
    verify(&before).ok();
    verify(&after).ok();
    // Whoever has only the key before can't verify what came after: exit 16.
    std::fs::write(gateway.state_dir().join("identity.pub"), published).unwrap();
    verify(&before).ok();
    verify(&after).code(16);
    let listed = gateway.tollgate(&["ledger", "list"]).ok().text();
    assert!(listed.contains("\"signing_key\""), "{listed}");
    gateway.tollgate(&["ledger", "verify"]).ok();
}
