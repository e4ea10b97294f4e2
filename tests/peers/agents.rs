//! What an agent's key can't do.

use crate::common::mail::message;
use crate::common::world::World;

#[test]
fn an_agent_reads_but_neither_flags_nor_files_nor_deletes() {
    let world = World::start();
    let mails = ["One", "Two"].map(|s| message("ann@example.com", &world.alice.address, s, "Hello."));
    world.dovecot.deliver("alice", "ann@example.com", &mails[0].octets);
    world.dovecot.direct("alice").append("Archive", "", &mails[1].octets);
    let mut agent = world.agent(&world.alice);
    let (mailbox, uid) = world.lane_of(&mut agent, &mails[0].id);
    assert!(agent.body(uid).starts_with(b"X-Tollgate-"), "an agent reads its lane");
    agent.ok("SELECT Archive");
    let [archived] = agent.find(&mails[1].id)[..] else { panic!("one in Archive") };
    assert_eq!(agent.body(archived), mails[1].octets);
    for (mailbox, uid) in [(mailbox.as_str(), uid), ("Archive", archived), ("Lanes/All", 1)] {
        agent.ok(&format!("SELECT \"{mailbox}\""));
        for command in [
            format!("UID STORE {uid} +FLAGS (\\Deleted)"),
            format!("UID STORE {uid} +FLAGS (\\Seen)"),
            format!("UID STORE {uid} FLAGS ()"),
            "STORE 1 +FLAGS.SILENT (\\Deleted)".to_owned(),
            "EXPUNGE".to_owned(),
            format!("UID EXPUNGE {uid}"),
            format!("UID MOVE {uid} Trash"),
            "MOVE 1 Trash".to_owned(),
            format!("UID COPY {uid} Drafts"),
            "COPY 1 Archive".to_owned(),
            format!("UID MOVE {uid} \"Lanes/Queue\""),
        ] {
            let answer = agent.command(&command);
            assert!(answer.status.starts_with("NO [NOPERM]"), "{mailbox}: {command}: {}", answer.status);
        }
        // Reading without PEEK flags nothing for an agent, and CLOSE expunges nothing.
        agent.ok(&format!("UID FETCH {uid} (BODY[])"));
        agent.ok("CLOSE");
    }
    let mut direct = world.dovecot.direct("alice");
    for (mailbox, mail) in [("INBOX", &mails[0]), ("Archive", &mails[1])] {
        direct.ok(&format!("SELECT {mailbox}"));
        let [uid] = direct.find(&mail.id)[..] else { panic!("it is still in {mailbox}") };
        let flags: Vec<String> = direct.flags(uid).into_iter().filter(|f| f != "\\Recent").collect();
        assert!(flags.is_empty(), "{mailbox}: {flags:?}");
    }
    for mailbox in ["Trash", "Drafts"] {
        direct.ok(&format!("SELECT {mailbox}"));
        assert!(direct.search("ALL").is_empty(), "{mailbox}");
    }
}

#[test]
fn an_agent_makes_renames_and_subscribes_nothing() {
    let world = World::start();
    let mut agent = world.agent(&world.alice);
    let before = world.dovecot.direct("alice").mailboxes();
    for command in [
        "CREATE Own",
        "DELETE Archive",
        "RENAME Archive Other",
        "SUBSCRIBE Archive",
        "UNSUBSCRIBE Sent",
        "CREATE Lanes/Own",
        "RENAME INBOX Old",
    ] {
        agent.refused(command, "NO [NOPERM]");
    }
    for command in ["SETACL Archive alice lrs", "GETACL Archive", "SETMETADATA INBOX (/private/x y)", "XFOO 1"] {
        let answer = agent.command(command);
        assert!(!answer.status.starts_with("OK"), "{command}: {}", answer.status);
    }
    assert_eq!(world.dovecot.direct("alice").mailboxes(), before);
}

#[test]
fn an_agent_appends_to_drafts_and_nowhere_else() {
    let world = World::start();
    let mail = message(&world.alice.address, "ann@example.com", "A draft", "Hello.");
    let mut agent = world.agent(&world.alice);
    for mailbox in ["INBOX", "Sent", "Archive", "Junk", "Lanes/Queue", "Lanes/All", "Lanes", "Nowhere"] {
        let answer = agent.append(mailbox, "", &mail.octets);
        assert!(answer.status.starts_with("NO [NOPERM]"), "{mailbox}: {}", answer.status);
    }
    let answer = agent.append("Drafts", "\\Deleted", &mail.octets);
    assert!(answer.status.starts_with("NO [NOPERM]"), "\\Deleted: {}", answer.status);
    let answer = agent.append("Drafts", "\\Draft", &mail.octets);
    assert!(answer.status.starts_with("OK"), "{}", answer.status);
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT Drafts");
    let [uid] = direct.find(&mail.id)[..] else { panic!("one draft") };
    assert_eq!(direct.body(uid), mail.octets);
    for mailbox in ["INBOX", "Sent", "Archive", "Junk"] {
        direct.ok(&format!("SELECT {mailbox}"));
        assert!(direct.search("ALL").is_empty(), "{mailbox}");
    }
}

#[test]
fn an_agent_s_keys_open_no_page() {
    let world = World::start();
    let keys = &world.alice;
    let mail = message(&keys.address, "ann@example.com", "Mine", "Hello.");
    let hold = world.hold(keys, &["ann@example.com"], &mail.octets);
    let browser = world.gateway.browser();
    for secret in [&keys.agent, &keys.person] {
        let page = browser.post("/sign-in", &[("account", &keys.address), ("pin", secret), ("next", "")]);
        assert_ne!(page.status, 303, "a key is no PIN");
    }
    let basic = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", keys.address, keys.agent))
    };
    for path in ["/", &format!("/held/{hold}"), &format!("/held/{hold}/raw"), "/history"] {
        for authorization in [format!("Basic {basic}"), format!("Bearer {}", keys.agent)] {
            let page = browser.request("GET", path, &[("Authorization", &authorization)], "");
            assert_ne!(page.status, 200, "{path}");
            assert!(!page.text().contains("Mine"), "{path} tells of the message");
        }
    }
    assert_eq!(world.gateway.hold(&hold)["state"], "held");
}

#[test]
fn a_revoked_key_ends_its_sessions_and_its_holds_are_never_sent() {
    let world = World::start();
    let keys = &world.alice;
    let mail = message(&keys.address, "ann@example.com", "Revoked", "Hello.");
    let hold = world.hold(keys, &["ann@example.com"], &mail.octets);
    let mut agent = world.agent(keys);
    let mut smtp = world.smtp(keys, &keys.agent);
    smtp.expect(&format!("MAIL FROM:<{}>", keys.address), "250");
    smtp.expect("RCPT TO:<ann@example.com>", "250");
    smtp.expect("DATA", "354");
    let id = keys.agent.split('_').nth(1).expect("tg1_ID_SECRET").to_owned();
    world.gateway.tollgate(&["key", "revoke", &id]).ok();

    let rest = String::from_utf8_lossy(&agent.wire.rest()).into_owned();
    assert!(rest.contains("* BYE"), "{rest:?}");
    // The open DATA is refused, or the connection ends.
    let _ = smtp.wire.try_send(crate::common::smtp::stuffed(&mail.octets));
    let rest = String::from_utf8_lossy(&smtp.wire.rest()).into_owned();
    assert!(!rest.contains("250 "), "{rest}");
    let mut session = crate::common::imap::Imap::connect(world.gateway.imap);
    session.refused(&format!("LOGIN {} {}", keys.address, keys.agent), "NO [AUTHENTICATIONFAILED]");
    assert_eq!(world.gateway.hold(&hold)["state"], "withdrawn");
    let page = world.approver(keys).get(&format!("/held/{hold}"));
    assert!(!page.text().contains("/approve\""), "{}", page.text());
    assert!(world.sink.arrived().is_empty());
    // The person's key still works.
    world.person(keys).ok("SELECT INBOX");
}
