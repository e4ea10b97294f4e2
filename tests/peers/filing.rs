//! What people do with mail: move, copy, append, delete, make mailboxes.

use crate::common::eventually;
use crate::common::mail::{message, stamp, unstamped};
use crate::common::world::World;

#[test]
fn a_move_out_of_a_lane_is_a_move_at_the_provider() {
    let world = World::start();
    let mail = message("ann@example.com", &world.alice.address, "Move me", "Please.");
    world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    let mut session = world.person(&world.alice);
    let (_, uid) = world.lane_of(&mut session, &mail.id);
    let answer = session.ok(&format!("UID MOVE {uid} Archive"));
    let code = answer.untagged.iter().find(|r| r.text.contains("[COPYUID ")).expect("COPYUID").text.clone();
    assert!(answer.untagged.iter().any(|r| r.text.ends_with(" EXPUNGE")), "{answer:?}");
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT INBOX");
    assert!(direct.find(&mail.id).is_empty());
    direct.ok("SELECT Archive");
    let [moved] = direct.find(&mail.id)[..] else { panic!("one in Archive") };
    assert!(code.contains(&format!(" {uid} {moved}]")), "{code}, moved to {moved}");
    assert!(!direct.body(moved).starts_with(b"X-Tollgate"), "the provider's octets have no stamps");
    // Through the gateway, Archive is the provider's mailbox.
    session.ok("SELECT Archive");
    assert_eq!(session.body(moved), direct.body(moved));
    session.ok("SELECT \"Lanes/All\"");
    assert!(session.find(&mail.id).is_empty(), "Lanes/All shows INBOX and no more");
}

#[test]
fn a_copy_out_of_a_lane_leaves_the_message_there() {
    let world = World::start();
    let mail = message("ann@example.com", &world.alice.address, "Copy me", "Please.");
    world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    let mut session = world.person(&world.alice);
    let (_, uid) = world.lane_of(&mut session, &mail.id);
    let answer = session.ok(&format!("UID COPY {uid} Archive"));
    assert!(answer.status.contains("[COPYUID "), "{}", answer.status);
    assert_eq!(session.find(&mail.id), [uid]);
    let mut direct = world.dovecot.direct("alice");
    for mailbox in ["INBOX", "Archive"] {
        direct.ok(&format!("SELECT {mailbox}"));
        assert_eq!(direct.find(&mail.id).len(), 1, "{mailbox}");
    }
}

#[test]
fn a_move_between_lanes_is_a_correction_and_gives_a_new_uid() {
    let world = World::start();
    let mail = message("ann@example.com", &world.alice.address, "Correct me", "Please.");
    world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    let mut session = world.person(&world.alice);
    let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
    let target = if mailbox == "Lanes/Meeting" { "Lanes/Push" } else { "Lanes/Meeting" };
    session.ok(&format!("UID MOVE {uid} \"{target}\""));
    let (now, uid) = world.lane_of(&mut session, &mail.id);
    assert_eq!(now, target);
    let octets = session.body(uid);
    let (stamps, _) = unstamped(&octets);
    assert_eq!(stamp(&stamps, "X-Tollgate-Lane").map(|l| format!("lanes/{l}")), Some(target.to_ascii_lowercase()));
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT INBOX");
    assert_eq!(direct.find(&mail.id).len(), 1, "nothing moved at the provider");
    // It is so for the next session and after a restart too.
    let mut world = world;
    world.gateway.stop();
    world.gateway.start();
    let mut session = world.person(&world.alice);
    let (after, same) = world.lane_of(&mut session, &mail.id);
    assert_eq!((after.as_str(), same), (target, uid));
    assert_eq!(session.body(uid), octets, "a UID names the same octets for good");
}

#[test]
fn a_move_into_a_lane_puts_it_there_unstamped() {
    let world = World::start();
    let mail = message("ann@example.com", &world.alice.address, "Old", "From last year.");
    let mut direct = world.dovecot.direct("alice");
    direct.append("Archive", "\\Seen", &mail.octets);
    let mut session = world.person(&world.alice);
    session.ok("SELECT Archive");
    let [uid] = session.find(&mail.id)[..] else { panic!("one in Archive") };
    session.ok(&format!("UID MOVE {uid} \"Lanes/Queue\""));
    let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
    assert_eq!(mailbox, "Lanes/Queue");
    assert_eq!(session.body(uid), mail.octets, "unstamped");
    direct.ok("SELECT INBOX");
    assert_eq!(direct.find(&mail.id).len(), 1, "it is in the provider's INBOX");
}

#[test]
fn appends_go_to_the_provider_and_into_the_mailbox_named() {
    let world = World::start();
    let mut session = world.person(&world.alice);
    let mut direct = world.dovecot.direct("alice");
    for (mailbox, at_provider) in [("Sent", "Sent"), ("INBOX", "INBOX"), ("Lanes/Queue", "INBOX")] {
        let mail = message(&world.alice.address, "ann@example.com", "Appended", ".dot\r\nHello.");
        let answer = session.append(mailbox, "\\Seen", &mail.octets);
        assert!(answer.status.starts_with("OK [APPENDUID "), "{mailbox}: {}", answer.status);
        let told: u32 = answer.status.split([' ', ']']).nth(3).and_then(|n| n.parse().ok()).expect("a UID");
        session.ok(&format!("SELECT \"{mailbox}\""));
        assert_eq!(session.find(&mail.id), [told], "{mailbox}");
        assert_eq!(session.body(told), mail.octets, "{mailbox}: unstamped");
        assert!(session.flags(told).contains(&"\\Seen".into()), "{mailbox}");
        direct.ok(&format!("SELECT {at_provider}"));
        let [uid] = direct.find(&mail.id)[..] else { panic!("one at the provider in {at_provider}") };
        assert_eq!(direct.body(uid), mail.octets);
    }
    // None of them is taken for new mail a moment later.
    std::thread::sleep(std::time::Duration::from_secs(2));
    session.ok("SELECT INBOX");
    assert_eq!(session.search("ALL").len(), 1);
}

#[test]
fn an_append_of_five_megabytes_arrives_whole() {
    let world = World::start();
    let line = "0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ .,-\r\n";
    let mail = message(&world.alice.address, "ann@example.com", "Large", &line.repeat(70_000));
    let mut session = world.person(&world.alice);
    let answer = session.append("Archive", "", &mail.octets);
    assert!(answer.status.starts_with("OK"), "{}", answer.status);
    session.ok("SELECT Archive");
    let [uid] = session.find(&mail.id)[..] else { panic!("one in Archive") };
    assert!(session.body(uid) == mail.octets, "the octets differ");
    session.ok(&format!("UID COPY {uid} INBOX"));
    session.ok("SELECT INBOX");
    let [uid] = session.find(&mail.id)[..] else { panic!("one in INBOX") };
    assert!(session.body(uid) == mail.octets, "the octets differ in the view");
}

#[test]
fn deleting_in_a_lane_deletes_at_the_provider() {
    let world = World::start();
    let mails = ["One", "Two"].map(|s| message("ann@example.com", &world.alice.address, s, "Hello."));
    for mail in &mails {
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    }
    let mut session = world.person(&world.alice);
    let (_, keep) = world.lane_of(&mut session, &mails[1].id);
    let (mailbox, uid) = world.lane_of(&mut session, &mails[0].id);
    session.ok(&format!("UID STORE {uid} +FLAGS (\\Deleted)"));
    session.ok(&format!("UID EXPUNGE {uid}"));
    assert!(session.find(&mails[0].id).is_empty());
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT INBOX");
    assert!(direct.find(&mails[0].id).is_empty());
    let [left] = direct.find(&mails[1].id)[..] else { panic!("the other one stays") };
    // A deletion at the provider reaches the lane.
    direct.ok(&format!("UID STORE {left} +FLAGS (\\Deleted)"));
    direct.ok("EXPUNGE");
    eventually("the deletion to reach the lane", || {
        session.ok(&format!("SELECT \"{mailbox}\""));
        (!session.search("ALL").contains(&keep) && session.find(&mails[1].id).is_empty()).then_some(())
    });
}

#[test]
fn mailboxes_are_made_filled_renamed_and_deleted_at_the_provider_and_lanes_are_not() {
    let world = World::start();
    let mut session = world.person(&world.alice);
    let mut direct = world.dovecot.direct("alice");
    session.ok("CREATE Projects/Bridge");
    assert!(direct.mailboxes().contains(&"Projects/Bridge".into()));
    session.ok("SUBSCRIBE Projects/Bridge");
    assert!(session.ok("LSUB \"\" \"*\"").listed().iter().any(|(_, n)| n == "Projects/Bridge"));
    let mail = message(&world.alice.address, "ann@example.com", "Plan", "Hello.");
    session.append("Projects/Bridge", "", &mail.octets);
    let answer = session.ok("STATUS Projects/Bridge (MESSAGES UIDNEXT)");
    assert!(answer.untagged.iter().any(|r| r.text.contains("MESSAGES 1")), "{answer:?}");
    session.ok("RENAME Projects/Bridge Projects/Tunnel");
    session.ok("SELECT Projects/Tunnel");
    assert_eq!(session.find(&mail.id).len(), 1);
    session.ok("UNSELECT");
    session.ok("DELETE Projects/Tunnel");
    assert!(!direct.mailboxes().contains(&"Projects/Tunnel".into()));
    for command in [
        "CREATE Lanes/Own",
        "CREATE Lanes",
        "DELETE Lanes/Queue",
        "DELETE \"Lanes/All\"",
        "RENAME Lanes/Queue Other",
        "RENAME Archive Lanes/Queue",
        "RENAME Archive Lanes/Archive",
    ] {
        session.refused(command, "NO [CANNOT]");
    }
    assert!(!direct.mailboxes().iter().any(|n| n.starts_with("Lanes")));
    session.refused("SELECT Nowhere", "NO");
}
