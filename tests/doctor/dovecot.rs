//! A real provider: Dovecot over TLS, Postfix with STARTTLS.

use serde_json::Value;

use crate::common::program::Ran;
use crate::common::world::World;

fn outcome(receipt: &Value, name: &str) -> String {
    let receipt = receipt.get("error").map_or(receipt, |e| &e["details"]);
    let sections = receipt["sections"].as_array().unwrap();
    let mut checks = sections.iter().flat_map(|s| s["checks"].as_array().unwrap());
    let check = checks.find(|c| c["check"] == name).unwrap_or_else(|| panic!("no {name}: {receipt}"));
    let last = check["attempts"].as_array().unwrap().last().unwrap();
    last["fault"].as_str().or(last["outcome"].as_str()).unwrap().to_owned()
}

fn json(ran: &Ran) -> Value {
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.text()))
}

#[test]
fn dovecot_and_postfix_are_examined_and_an_end_of_dovecot_is_named() {
    let mut world = World::start();
    for n in 0..6 {
        let mail = format!(
            "From: ann@example.com\r\nTo: alice@example.test\r\nSubject: secret {n}\r\n folded\r\nMessage-ID: <d{n}@example.com>\r\n\
             X-Tollgate-Lane: push\r\n\r\n{}",
            "some words of the body\r\n".repeat(n * 40 + 1)
        );
        world.dovecot.deliver("alice", "ann@example.com", mail.as_bytes());
    }
    let mut person = world.person(&world.alice);
    for n in 0..6 {
        world.lane_of(&mut person, &format!("d{n}@example.com"));
    }
    let doctor = |world: &World, account: &str| {
        world.gateway.tollgate(&["--json", "doctor", "--account", account, "--messages", "4"])
    };
    let ran = doctor(&world, &world.alice.address).code(0);
    let receipt = json(&ran);
    for name in [
        "imap.login",
        "imap.idle",
        "imap.condstore",
        "imap.namespace",
        "imap.special-use",
        "imap.literal",
        "imap.clock",
        "imap.octets",
        "smtp.login",
        "gateway.mirror",
        "gateway.views",
    ] {
        assert_eq!(outcome(&receipt, name), "ok", "{name}: {receipt}");
    }
    for word in ["alice", "example.test", "localhost", "secret", "Drafts"] {
        let said = ran.text();
        // The special uses are words of RFC 6154, not names.
        let said = said.replace("\\\\Drafts", "");
        assert!(!said.contains(word), "{word}: {said}");
    }
    world.dovecot.pause();
    let receipt = json(&doctor(&world, &world.alice.address).code(69));
    assert_eq!(outcome(&receipt, "imap.connect"), "unreachable", "{receipt}");
    assert_eq!(outcome(&receipt, "imap.idle"), "not_tried");
    assert_eq!(outcome(&receipt, "gateway.mirror"), "not_synced");
    world.dovecot.resume();
}
