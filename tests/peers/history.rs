//! Whom a person knows: read from Sent at Dovecot, pinned from the console,
//! pinned by dragging; and what an agent wrote, which is never evidence.

use serde_json::Value;

use crate::common::eventually;
use crate::common::mail::{message, with_fields};
use crate::common::world::{PIN, World};

/// The trace of a message that is in its lane.
#[track_caller]
fn explained(world: &World, id: &str) -> Value {
    world.lane_of(&mut world.person(&world.alice), id);
    world.gateway.json(&["explain", "--message-id", id])
}

/// Delivers a message from `from`, and what is said of its sender.
#[track_caller]
fn known(world: &World, from: &str) -> String {
    let mail = message(from, &world.alice.address, "A question", "Could you send me the figures?");
    world.dovecot.deliver("alice", from, &mail.octets);
    let text = explained(world, &mail.id)["text"].as_str().unwrap().to_owned();
    text.lines().find(|l| l.starts_with("Known:")).unwrap().to_owned()
}

/// The connections that looked into Sent and filed a copy there serve sessions
/// afterwards, which never asked for MODSEQ (RFC 7162 §3.1).
fn modseq_is_told_to_nobody(world: &World) {
    for _ in 0..2 {
        let mut session = world.person(&world.alice);
        session.ok("SELECT Sent");
        for command in ["STORE 1 +FLAGS (\\Flagged)", "STORE 1 -FLAGS (\\Flagged)", "FETCH 1 (FLAGS)"] {
            let answer = session.ok(command);
            assert!(!answer.untagged.is_empty(), "{command}");
            assert!(!format!("{:?}", answer.untagged).contains("MODSEQ"), "{command}: {:?}", answer.untagged);
        }
    }
}

#[test]
fn sent_tells_whom_the_person_knows_and_nothing_that_an_agent_wrote() {
    let world = World::start();
    let keys = &world.alice;
    assert!(known(&world, "early@example.com").contains("history not looked up"));

    let mut direct = world.dovecot.direct("alice");
    let to = |to: &str, more: &str| with_fields(&format!("From: {}\r\nTo: {to}\r\n{more}", keys.address), "Hello.");
    for n in 0..18 {
        direct.append("Sent", "\\Seen", &to(&format!("p{n}@example.net"), "").octets);
    }
    direct.append("Sent", "\\Seen", &to("Ann Lee <Ann@EXAMPLE.com>", "").octets);
    direct.append("Sent", "\\Seen", &to("ann@example.com", "In-Reply-To: <q@example.com>\r\n").octets);
    direct.append("Sent", "\\Seen", &to("bo@example.org", "Cc: ann@example.com, alice@example.test\r\n").octets);
    direct.append("Sent", "\\Draft", &to("drafted@example.com", "").octets);
    // Approved and sent, but an agent's words all the same.
    let mail = message(&keys.address, "befriended@example.com", "Hello", "From an agent.");
    let hold = world.hold(keys, &["befriended@example.com"], &mail.octets);
    assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
    eventually("the copy in Sent", || {
        direct.ok("SELECT Sent");
        (!direct.find(&mail.id).is_empty()).then_some(())
    });

    let args = ["backfill", "--sent", "--account", keys.address.as_str()];
    let look = world.gateway.json(&args);
    assert_eq!((&look["mailbox"], &look["read"], &look["left_out"]), (&"Sent".into(), &23.into(), &2.into()), "{look}");
    assert_eq!((&look["correspondents"], &look["strangers_are_absent"]), (&20.into(), &true.into()), "{look}");
    assert_eq!(world.gateway.json(&args), look, "a second look finds the same");
    modseq_is_told_to_nobody(&world);

    assert!(
        known(&world, "ann@example.com").contains("written to 3×, answered 1×"),
        "{}",
        known(&world, "ann@example.com")
    );
    assert!(known(&world, "p3@example.net").contains("written to 1×, answered 0×"));
    for stranger in ["drafted@example.com", "befriended@example.com", "stranger@example.com"] {
        assert!(known(&world, stranger).contains("never seen before"), "{stranger}");
    }
    // It came before anybody looked.
    assert!(known(&world, "early@example.com").contains("received 1×"));

    // A key that may file could have put anything there, also when it no longer may.
    let id = keys.agent.split('_').nth(1).unwrap();
    for change in ["file@Archive=allow", "file@Archive=default"] {
        world.gateway.tollgate(&["key", "grant", id, change]).ok();
        let refused = world.gateway.tollgate(&args);
        assert!(refused.stderr.contains("can't be told from what you wrote"), "{change}: {}", refused.stderr);
    }
}

#[test]
fn a_pin_decides_until_it_is_taken_back() {
    let world = World::start();
    let (keys, account) = (&world.alice, world.alice.address.as_str());
    let lane = |from: &str| {
        let mail = message(from, &keys.address, "Minutes", "Here are the minutes.");
        world.dovecot.deliver("alice", from, &mail.octets);
        let trace = explained(&world, &mail.id)["trace"].clone();
        (trace["verdict"]["lane"].as_str().unwrap().to_owned(), trace["verdict"]["branch"].as_str().unwrap().to_owned())
    };
    let before = lane("ann@example.com");
    let pinned = world.gateway.json(&["pin", "sender", "ANN@example.com", "push", "--account", account]);
    assert_eq!((&pinned["address"], &pinned["changed"]), (&"ann@example.com".into(), &true.into()));
    assert_eq!(lane("ann@example.com"), ("push".to_owned(), "pin".to_owned()));
    let list = world.gateway.json(&["pin", "list"]);
    assert_eq!(list["pins"][0]["lane"], "push", "{list}");
    let made = world.gateway.json(&["corrections", "list"]);
    let row = &made["corrections"][0];
    assert_eq!((&row["correction"]["address"], &row["correction"]["to"]), (&"ann@example.com".into(), &"push".into()));
    world.gateway.json(&["corrections", "undo", row["id"].as_str().unwrap(), "--account", account]);
    assert_eq!(lane("ann@example.com"), before);
    world.gateway.tollgate(&["pin", "remove", "ann@example.com", "--account", account]).code(65);
}

#[test]
fn two_drags_of_one_sender_s_campaigns_pin_it_as_the_person_s_act() {
    let world = World::start();
    let keys = &world.alice;
    let mut session = world.person(keys);
    let mut campaign = |n: usize| {
        let fields = format!(
            "From: Shop <news@shop.example.com>\r\nTo: {}\r\nSubject: The form {n}\r\nPrecedence: bulk\r\n\
             List-Unsubscribe: <https://shop.example.com/u>\r\n",
            keys.address
        );
        let mail = with_fields(&fields, "Please send us the signed form by Friday 5 pm. Can you do that?");
        world.dovecot.deliver("alice", "news@shop.example.com", &mail.octets);
        let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
        if mailbox != "Lanes/Silent" {
            session.ok(&format!("UID MOVE {uid} \"Lanes/Silent\""));
        }
        mailbox
    };
    assert_ne!(campaign(1), "Lanes/Silent", "the sample asks something, so that the rule shows it");
    assert_ne!(campaign(2), "Lanes/Silent", "one drag corrects its message alone");
    assert_eq!(campaign(3), "Lanes/Silent");
    let list = world.gateway.json(&["pin", "list"]);
    assert_eq!(
        (&list["pins"][0]["address"], &list["pins"][0]["lane"]),
        (&"news@shop.example.com".into(), &"silent".into()),
        "{list}"
    );
    let made = world.gateway.json(&["corrections", "list"]);
    let rows = made["corrections"].as_array().unwrap();
    let pin = rows.iter().find(|r| !r["correction"]["address"].is_null()).expect("the pin is recorded");
    world.gateway.json(&["corrections", "undo", pin["id"].as_str().unwrap(), "--account", keys.address.as_str()]);
    assert_ne!(campaign(4), "Lanes/Silent");
}
