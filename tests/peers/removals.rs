//! What an agent asks to remove, over Dovecot; and grants that change while
//! it is signed in.

use crate::common::eventually;
use crate::common::imap::Imap;
use crate::common::mail::{Message, message};
use crate::common::world::{Keys, PIN, World};

/// Changes a key's grants from the command line.
#[track_caller]
fn grant(world: &World, key: &str, changes: &[&str]) {
    let id = key.split('_').nth(1).expect("tg1_ID_SECRET");
    world.gateway.tollgate(&[&["key", "grant", id][..], changes].concat()).ok();
}

/// The hold that a refusal names.
#[track_caller]
fn held(session: &mut Imap, command: &str) -> String {
    let status = session.command(command).status;
    let rest = status.strip_prefix("NO [NOPERM] held for approval as ");
    let rest = rest.unwrap_or_else(|| panic!("{command}: {status}"));
    rest.chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn mails(keys: &Keys, names: &[&str]) -> Vec<Message> {
    names.iter().map(|s| message("ann@example.com", &keys.address, s, "Hello.")).collect()
}

/// Which of these stand in a mailbox at the provider.
fn there(direct: &mut Imap, mailbox: &str, mails: &[Message]) -> Vec<bool> {
    direct.ok(&format!("SELECT \"{mailbox}\""));
    mails.iter().map(|m| !direct.find(&m.id).is_empty()).collect()
}

#[test]
fn what_an_agent_removes_waits_and_goes_once_a_person_approves() {
    let world = World::start();
    let keys = &world.alice;
    let mails = mails(keys, &["One", "Two", "Three"]);
    let mut direct = world.dovecot.direct("alice");
    mails.iter().for_each(|m| drop(direct.append("Archive", "", &m.octets)));
    grant(&world, &keys.agent, &["delete=ask"]);
    let mut agent = world.agent(keys);
    agent.ok("SELECT Archive");
    let [one] = agent.find(&mails[0].id)[..] else { panic!("one") };
    let [two] = agent.find(&mails[1].id)[..] else { panic!("two") };
    let hold = held(&mut agent, &format!("UID STORE {one},{two} +FLAGS (\\Deleted)"));
    assert_eq!(held(&mut agent, &format!("UID STORE {one},{two} +FLAGS.SILENT (\\Deleted)")), hold, "held once");
    assert_eq!(there(&mut direct, "Archive", &mails), [true; 3]);
    assert!(direct.search("DELETED").is_empty(), "nothing is flagged");
    let browser = world.approver(keys);
    let page = browser.get(&format!("/held/{hold}"));
    for shown in ["One", "Two", "ann@example.com", "Archive", "Approve and delete"] {
        assert!(page.text().contains(shown), "{shown}: {}", page.text());
    }
    assert!(!page.text().contains("Three"));
    assert_eq!(browser.approve(&hold, PIN).status, 303);
    world.gateway.wait_for_state(&hold, "sent");
    assert_eq!(there(&mut direct, "Archive", &mails), [false, false, true]);
    assert!(browser.get(&format!("/held/{hold}")).text().contains("were removed"));
    assert!(world.sink.arrived().is_empty());
}

#[test]
fn inbox_is_removed_from_by_the_same_way() {
    let world = World::start();
    let keys = &world.alice;
    let mails = mails(keys, &["One", "Two"]);
    mails.iter().for_each(|m| world.dovecot.deliver("alice", "ann@example.com", &m.octets));
    grant(&world, &keys.agent, &["delete=ask"]);
    let mut agent = world.agent(keys);
    let (mailbox, uid) = world.lane_of(&mut agent, &mails[0].id);
    agent.ok(&format!("SELECT \"{mailbox}\""));
    let hold = held(&mut agent, &format!("UID STORE {uid} +FLAGS (\\Deleted)"));
    assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
    world.gateway.wait_for_state(&hold, "sent");
    let mut direct = world.dovecot.direct("alice");
    assert_eq!(there(&mut direct, "INBOX", &mails), [false, true]);
}

#[test]
fn a_mailbox_that_changed_loses_nothing() {
    let world = World::start();
    let keys = &world.alice;
    let mails = mails(keys, &["One", "Two", "Three"]);
    let mut direct = world.dovecot.direct("alice");
    direct.ok("CREATE Old");
    mails[..2].iter().for_each(|m| drop(direct.append("Old", "", &m.octets)));
    grant(&world, &keys.agent, &["delete=ask"]);
    let mut agent = world.agent(keys);
    agent.ok("SELECT Old");
    let some = held(&mut agent, "STORE 1:2 +FLAGS (\\Deleted)");
    let whole = held(&mut agent, "DELETE Old");
    agent.ok("UNSELECT");
    // One more message: the mailbox is no longer what was shown.
    drop(direct.append("Old", "", &mails[2].octets));
    let browser = world.approver(keys);
    assert_eq!(browser.approve(&whole, PIN).status, 303);
    world.gateway.wait_for_state(&whole, "failed");
    assert_eq!(there(&mut direct, "Old", &mails), [true; 3]);
    // The same UIDs in a mailbox that was made anew name other messages.
    direct.ok("UNSELECT");
    direct.ok("DELETE Old");
    direct.ok("CREATE Old");
    mails.iter().rev().for_each(|m| drop(direct.append("Old", "", &m.octets)));
    assert_eq!(browser.approve(&some, PIN).status, 303);
    world.gateway.wait_for_state(&some, "failed");
    assert_eq!(there(&mut direct, "Old", &mails), [true; 3]);
    assert!(direct.search("DELETED").is_empty());
}

#[test]
fn a_mailbox_is_deleted_with_exactly_what_was_shown() {
    let world = World::start();
    let keys = &world.alice;
    let mut direct = world.dovecot.direct("alice");
    direct.ok("CREATE Old");
    drop(direct.append("Old", "", &mails(keys, &["One"])[0].octets));
    grant(&world, &keys.agent, &["delete=ask"]);
    let mut agent = world.agent(keys);
    for never in ["INBOX", "Sent", "Trash", "Drafts", "Lanes/Silent"] {
        agent.refused(&format!("DELETE {never}"), "NO [NOPERM] an agent");
    }
    let hold = held(&mut agent, "DELETE Old");
    assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
    world.gateway.wait_for_state(&hold, "sent");
    assert!(!direct.mailboxes().contains(&"Old".to_owned()));
}

/// Waits for one message of the agent's that matches; its octets as text.
#[track_caller]
fn told(agent: &mut Imap, mailbox: &str, keys: &str) -> String {
    let uid = eventually(&format!("{keys} in {mailbox}"), || {
        agent.ok(&format!("SELECT \"{mailbox}\""));
        let found = agent.search(keys);
        (found.len() == 1).then(|| found[0])
    });
    String::from_utf8(agent.body(uid)).unwrap()
}

#[test]
fn an_agent_is_told_how_what_it_asked_to_remove_ended() {
    let world = World::start();
    let keys = &world.alice;
    let mails = mails(keys, &["Secret words", "Two", "Three"]);
    let mut direct = world.dovecot.direct("alice");
    mails.iter().for_each(|m| drop(direct.append("Archive", "", &m.octets)));
    grant(&world, &keys.agent, &["delete=ask"]);
    let mut agent = world.agent(keys);
    agent.ok("SELECT Archive");
    let [done, denied, failed] = [1, 2, 3].map(|n| held(&mut agent, &format!("STORE {n} +FLAGS (\\Deleted)")));
    let shown = told(&mut agent, "Tollgate/Outbox", &format!("HEADER X-Tollgate-Hold {done}"));
    for text in ["X-Tollgate-State: held", "Delete 1 message in Archive for good", "waits for a person"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!shown.contains("Secret words") && !shown.contains("/held/"), "{shown}");
    assert_eq!(world.approver(keys).approve(&done, PIN).status, 303);
    world.gateway.wait_for_state(&done, "sent");
    let shown =
        told(&mut agent, "Tollgate/Outbox", &format!("HEADER X-Tollgate-Hold {done} HEADER X-Tollgate-State sent"));
    assert!(shown.contains("it was carried out"), "{shown}");
    world.gateway.tollgate(&["held", "deny", &denied, "--reason", "still needed"]).ok();
    let report = told(&mut agent, "INBOX", "SUBJECT \"Denied: Delete 1 message\"");
    assert!(report.contains("Reason: still needed") && report.contains(&denied), "{report}");
    let shown =
        told(&mut agent, "Tollgate/Outbox", &format!("HEADER X-Tollgate-Hold {denied} HEADER X-Tollgate-State denied"));
    assert!(shown.contains("X-Tollgate-Detail: still needed"), "{shown}");
    // What was approved is gone already.
    direct.ok("SELECT Archive");
    direct.ok("STORE 2 +FLAGS (\\Deleted)");
    direct.ok("EXPUNGE");
    assert_eq!(world.approver(keys).approve(&failed, PIN).status, 303);
    world.gateway.wait_for_state(&failed, "failed");
    let report = told(&mut agent, "INBOX", "SUBJECT \"Not removed: Delete 1 message\"");
    assert!(report.contains("can't be read any more") && report.contains(&failed), "{report}");
    // People read of it on the page; another agent reads nothing of it.
    let mut person = world.person(keys);
    person.ok("SELECT INBOX");
    assert!(person.search("SUBJECT \"Not removed\"").is_empty());
    let other = world.gateway.add_key(&keys.address, "agent", "other");
    let mut other = Imap::login(world.gateway.imap, &keys.address, &other);
    for mailbox in ["INBOX", "Tollgate/Outbox"] {
        other.ok(&format!("SELECT \"{mailbox}\""));
        assert!(other.search("ALL").is_empty(), "{mailbox}");
    }
}

#[test]
fn a_revoked_key_removes_nothing() {
    let world = World::start();
    let keys = &world.alice;
    let mails = mails(keys, &["One"]);
    let mut direct = world.dovecot.direct("alice");
    drop(direct.append("Archive", "", &mails[0].octets));
    grant(&world, &keys.agent, &["delete@Archive=ask"]);
    let mut agent = world.agent(keys);
    agent.ok("SELECT Archive");
    let hold = held(&mut agent, "STORE 1 +FLAGS (\\Deleted)");
    let id = keys.agent.split('_').nth(1).expect("tg1_ID_SECRET");
    world.gateway.tollgate(&["key", "revoke", id]).ok();
    assert_eq!(world.gateway.hold(&hold)["state"], "withdrawn");
    assert!(!world.approver(keys).get(&format!("/held/{hold}")).text().contains("/approve\""));
    assert_eq!(there(&mut direct, "Archive", &mails), [true]);
}

#[test]
fn grants_change_under_a_session_and_unreadable_mailboxes_do_not_exist() {
    let world = World::start();
    let keys = &world.alice;
    let mail = &mails(keys, &["One"])[0];
    let mut direct = world.dovecot.direct("alice");
    direct.ok("CREATE Private");
    for mailbox in ["Archive", "Private"] {
        drop(direct.append(mailbox, "", &mail.octets));
    }
    let mut agent = world.agent(keys);
    agent.ok("SELECT Archive");
    agent.refused("STORE 1 +FLAGS (\\Flagged)", "NO [NOPERM]");
    grant(&world, &keys.agent, &["flag=allow", "file@Trash=allow"]);
    agent.ok("SELECT Archive");
    agent.ok("STORE 1 +FLAGS (\\Flagged)");
    agent.ok("COPY 1 Trash");
    agent.refused("COPY 1 Private", "NO [NOPERM]");
    grant(&world, &keys.agent, &["flag=off", "file@Trash=off"]);
    agent.refused("STORE 1 -FLAGS (\\Flagged)", "NO [NOPERM]");
    agent.refused("MOVE 1 Trash", "NO [NOPERM]");

    let nowhere = ["SELECT Nowhere", "STATUS Nowhere (MESSAGES)"].map(|c| agent.command(c).status);
    agent.ok("SELECT Private");
    grant(&world, &keys.agent, &["read@Private=off"]);
    let rest = String::from_utf8_lossy(&agent.wire.rest()).into_owned();
    assert!(rest.contains("* BYE"), "an open mailbox closes: {rest:?}");
    let mut agent = world.agent(keys);
    for name in ["Private", "\"private\"", "\"Private/\""] {
        let answers = [format!("SELECT {name}"), format!("STATUS {name} (MESSAGES)")].map(|c| agent.command(&c).status);
        assert_eq!(answers, nowhere, "{name}");
    }
    for command in ["LIST \"\" *", "LIST \"\" Private", "LSUB \"\" *"] {
        assert!(!agent.ok(command).listed().iter().any(|(_, name)| name == "Private"), "{command}");
    }
    assert!(world.person(keys).mailboxes().contains(&"Private".to_owned()));
    let shown = world.gateway.json(&["key", "show", keys.agent.split('_').nth(1).expect("an id")]);
    assert_eq!(shown["mailboxes"]["Private"]["read"], "off", "{shown}");
    assert_eq!(shown["everywhere"]["delete"], "off", "{shown}");
}

#[test]
fn a_draft_is_checked_and_remembered_before_the_provider_has_it() {
    let world = World::start();
    let keys = &world.alice;
    let mut agent = world.agent(keys);
    let from = &keys.address;
    let html = format!(
        "From: {from}\r\nTo: ann@example.com\r\nDate: Mon, 30 Nov 2026 10:00:00 +0000\r\nSubject: x\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/html; charset=utf-8\r\n\r\n<img src=\"https://example.com/p.png\">\r\n"
    );
    let answer = agent.append("Drafts", "\\Draft", html.as_bytes());
    assert!(answer.status.starts_with("NO [CANNOT]"), "{}", answer.status);
    let words = "Dear Ann, the table that you ordered in spring is ready and we can bring it on Friday at nine.";
    let draft = message(from, "ann@example.com", "The table", words);
    let answer = agent.append("Drafts", "\\Draft", &draft.octets);
    assert!(answer.status.starts_with("OK"), "{}", answer.status);
    // A person who sends those words is asked.
    let mine = message(from, "ann@example.com", "Something else", words);
    let reply = world.smtp(keys, &keys.person).submit(from, &["ann@example.com"], &mine.octets);
    assert!(reply.contains("held for approval"), "{reply}");
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT Drafts");
    assert_eq!(direct.search("ALL").len(), 1);
}
