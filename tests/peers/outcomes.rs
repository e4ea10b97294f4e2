//! What becomes of held mail, for the mailbox of whoever submitted it: its
//! copy in Sent, the client's own, and reports.

use crate::common::eventually;
use crate::common::imap::Imap;
use crate::common::mail::{header, message, with_fields};
use crate::common::sink::AfterDot;
use crate::common::world::{Keys, PIN, World, held_id};

/// The octets of what a mailbox of Alice's has at the provider under an id.
fn there(world: &World, mailbox: &str, id: &str) -> Vec<Vec<u8>> {
    of(world, "alice", mailbox, id)
}

fn of(world: &World, user: &str, mailbox: &str, id: &str) -> Vec<Vec<u8>> {
    let mut direct = world.dovecot.direct(user);
    direct.ok(&format!("SELECT \"{mailbox}\""));
    direct.find(id).into_iter().map(|uid| direct.body(uid)).collect()
}

fn approve(world: &World, hold: &str) {
    let page = world.approver(&world.alice).approve(hold, PIN);
    assert_eq!(page.status, 303, "{}", page.text());
}

/// Waits until the selected mailbox of a session has one message that matches.
fn one(session: &mut Imap, mailbox: &str, keys: &str) -> u32 {
    eventually(&format!("{keys} in {mailbox}"), || {
        session.ok(&format!("SELECT \"{mailbox}\""));
        let found = session.search(keys);
        (found.len() == 1).then(|| found[0])
    })
}

/// A person's message that is held since it says a machine drafted it.
fn marked(keys: &Keys, subject: &str) -> crate::common::mail::Message {
    let fields =
        format!("From: {}\r\nTo: ann@example.com\r\nSubject: {subject}\r\nX-AI-Drafted: yes\r\n", keys.address);
    with_fields(&fields, "Drafted by a machine.")
}

#[test]
fn an_agent_s_sent_message_is_in_sent_once_and_its_outbox_says_so() {
    let world = World::start();
    let keys = &world.alice;
    let mail = message(&keys.address, "ann@example.com", "Sent copy", "Hello.");
    let hold = world.hold(keys, &["ann@example.com"], &mail.octets);
    let mut agent = world.agent(keys);
    let waits = one(&mut agent, "Tollgate/Outbox", "HEADER X-Tollgate-State held");
    assert!(there(&world, "Sent", &mail.id).is_empty(), "nothing is in Sent before it is sent");
    // An agent's own copy is taken for what it is, and none of its octets kept.
    let forged = String::from_utf8(mail.octets.clone()).unwrap().replace("Hello.", "Other.");
    assert!(agent.append("Sent", "\\Seen", forged.as_bytes()).status.starts_with("OK"));
    let other = message(&keys.address, "ann@example.com", "Never submitted", "Hello.");
    assert!(agent.append("Sent", "\\Seen", &other.octets).status.starts_with("NO [NOPERM]"));
    approve(&world, &hold);
    world.gateway.wait_for_state(&hold, "sent");
    let sent = one(&mut agent, "Tollgate/Outbox", "HEADER X-Tollgate-State sent");
    assert!(sent > waits, "another state is another UID");
    assert_eq!(agent.search("ALL"), [sent]);
    let shown = agent.body(sent);
    assert!(shown.ends_with(&mail.octets), "the submitted octets follow our fields");
    assert_eq!(header(&shown, "X-Tollgate-Hold").as_deref(), Some(hold.as_str()));
    let copies = eventually("the copy in Sent", || {
        let copies = there(&world, "Sent", &mail.id);
        (!copies.is_empty()).then_some(copies)
    });
    assert_eq!(copies, std::slice::from_ref(&mail.octets));
    assert_eq!(world.sink.with_id(&mail.id).len(), 1);
    // Another message under the same Message-ID has its own copy.
    let again = String::from_utf8(mail.octets.clone()).unwrap().replace("Hello.", "Again.").into_bytes();
    let second = world.hold(keys, &["ann@example.com"], &again);
    approve(&world, &second);
    world.gateway.wait_for_state(&second, "sent");
    let both = eventually("the second copy in Sent", || {
        let copies = there(&world, "Sent", &mail.id);
        (copies.len() > 1).then_some(copies)
    });
    assert_eq!(both, [mail.octets.clone(), again]);
    // Told as success only there: no report.
    agent.ok("SELECT INBOX");
    assert!(agent.search("ALL").is_empty());
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT Sent");
    for uid in direct.find(&mail.id) {
        assert!(direct.flags(uid).contains(&"\\Seen".to_owned()));
    }
}

#[test]
fn a_kill_between_sent_and_the_sent_copy_leaves_one_copy() {
    let mut world = World::with_the_sink_as_provider();
    let keys = world.bob.clone();
    for appended_before in [false, true] {
        let mail = message(&keys.address, "ann@example.com", "Killed between", "Hello.");
        let hold = world.hold(&keys, &["ann@example.com"], &mail.octets);
        let approver = world.approver(&keys);
        // No APPEND can succeed from here on.
        world.dovecot.pause();
        assert_eq!(approver.approve(&hold, PIN).status, 303);
        world.gateway.wait_for_state(&hold, "sent");
        world.gateway.kill_9();
        world.dovecot.resume();
        if appended_before {
            // As after an APPEND whose answer never came.
            world.dovecot.direct("bob").append("Sent", "\\Seen", &mail.octets);
        }
        assert_eq!(of(&world, "bob", "Sent", &mail.id).len(), usize::from(appended_before));
        world.gateway.start();
        eventually("the copy in Sent", || (!of(&world, "bob", "Sent", &mail.id).is_empty()).then_some(()));
        // The next one's copy comes after whatever was due of this one.
        let next = message(&keys.address, "ann@example.com", "After it", "Hello.");
        let after = world.hold(&keys, &["ann@example.com"], &next.octets);
        assert_eq!(world.approver(&keys).approve(&after, PIN).status, 303);
        eventually("the next copy", || (!of(&world, "bob", "Sent", &next.id).is_empty()).then_some(()));
        // Another start looks again and finds nothing to do.
        world.gateway.stop();
        world.gateway.start();
        one(&mut world.agent(&keys), "Tollgate/Outbox", &format!("HEADER Message-ID {}", next.id));
        assert_eq!(
            of(&world, "bob", "Sent", &mail.id),
            std::slice::from_ref(&mail.octets),
            "appended before: {appended_before}"
        );
        assert_eq!(of(&world, "bob", "Sent", &next.id).len(), 1);
        assert_eq!(world.sink.with_id(&mail.id).len(), 1);
    }
}

#[test]
fn a_client_s_own_copy_waits_with_its_message_and_goes_to_sent_with_it() {
    let world = World::start();
    let keys = &world.alice;
    let mail = marked(keys, "Parked");
    let hold = held_id(&world.smtp(keys, &keys.person).submit(&keys.address, &["ann@example.com"], &mail.octets));
    // Clients add fields of their own to what they file.
    let copy = [b"X-Client: kept\r\n".as_slice(), &mail.octets].concat();
    let mut person = world.person(keys);
    let answer = person.append("Sent", "\\Seen \\Flagged", &copy);
    assert!(answer.status.starts_with("OK"), "{}", answer.status);
    assert!(there(&world, "Sent", &mail.id).is_empty(), "it is shown nowhere before");
    person.ok("SELECT Sent");
    assert!(person.find(&mail.id).is_empty());
    // What isn't held goes to Sent as ever.
    let free = message(&keys.address, "bo@example.com", "Free", "Hello.");
    person.append("Sent", "\\Seen", &free.octets);
    assert_eq!(there(&world, "Sent", &free.id), std::slice::from_ref(&free.octets));
    approve(&world, &hold);
    world.gateway.wait_for_state(&hold, "sent");
    let copies = eventually("the client's copy in Sent", || {
        let copies = there(&world, "Sent", &mail.id);
        (!copies.is_empty()).then_some(copies)
    });
    assert_eq!(copies, std::slice::from_ref(&copy), "the client's octets, once");
    // A client that files it late is answered as if it were the one.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(person.append("Sent", "\\Seen", &copy).status.starts_with("OK"));
    assert_eq!(there(&world, "Sent", &mail.id).len(), 1);
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT Sent");
    let uid = direct.find(&mail.id)[0];
    assert!(direct.flags(uid).contains(&"\\Flagged".to_owned()), "with the client's flags");
}

#[test]
fn a_parked_copy_survives_a_kill_and_is_dropped_when_its_message_is_denied() {
    let mut world = World::start();
    let keys = world.alice.clone();
    let (kept, dropped) = (marked(&keys, "Kept over a kill"), marked(&keys, "Dropped"));
    let mut ids = Vec::new();
    for mail in [&kept, &dropped] {
        let reply = world.smtp(&keys, &keys.person).submit(&keys.address, &["ann@example.com"], &mail.octets);
        ids.push(held_id(&reply));
        assert!(world.person(&keys).append("Sent", "\\Seen", &mail.octets).status.starts_with("OK"));
    }
    world.gateway.kill_9();
    world.gateway.start();
    approve(&world, &ids[0]);
    world.gateway.tollgate(&["held", "deny", &ids[1], "--reason", "not like this"]).ok();
    world.gateway.wait_for_state(&ids[0], "sent");
    eventually("the copy", || (there(&world, "Sent", &kept.id) == std::slice::from_ref(&kept.octets)).then_some(()));
    let mut person = world.person(&keys);
    let uid = one(&mut person, "INBOX", "SUBJECT \"Denied: Dropped\"");
    let report = String::from_utf8(person.body(uid)).unwrap();
    for text in ["multipart/report", "Status: 5.7.1", "not like this", "put into Sent meanwhile is not kept", "/held/"]
    {
        assert!(report.contains(text), "{text}: {report}");
    }
    assert!(there(&world, "Sent", &dropped.id).is_empty());
    // Its own octets go nowhere, and it is deleted here.
    assert!(person.append("Archive", "", report.as_bytes()).status.starts_with("NO [CANNOT]"));
    person.refused(&format!("UID COPY {uid} Archive"), "NO [CANNOT]");
    person.ok(&format!("UID MOVE {uid} Trash"));
    let mut direct = world.dovecot.direct("alice");
    for mailbox in ["INBOX", "Trash", "Archive"] {
        direct.ok(&format!("SELECT {mailbox}"));
        assert!(direct.search("ALL").is_empty(), "{mailbox} at the provider");
    }
    let mut agent = world.agent(&keys);
    agent.ok("SELECT INBOX");
    assert!(agent.search("ALL").is_empty(), "an agent sees a person's report");
}

#[test]
fn what_the_provider_refuses_is_reported_to_the_agent_with_its_reply() {
    let world = World::with_the_sink_as_provider();
    let keys = &world.bob;
    world.sink.after_dot(AfterDot::Say("554 5.6.0 not this content"));
    let mail = message(&keys.address, "ann@example.com", "Refused", "Hello.");
    let hold = world.hold(keys, &["ann@example.com", "bo@example.com"], &mail.octets);
    assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
    world.gateway.wait_for_state(&hold, "failed");
    let mut agent = world.agent(keys);
    let uid = one(&mut agent, "INBOX", "SUBJECT \"Not sent: Refused\"");
    let report = String::from_utf8(agent.body(uid)).unwrap();
    assert_eq!(report.matches("Final-Recipient: rfc822; ").count(), 2, "{report}");
    for text in ["Action: failed\r\nStatus: 5.6.0\r\n", "Diagnostic-Code: smtp; 554 5.6.0 not this content"] {
        assert!(report.contains(text), "{text}: {report}");
    }
    one(&mut agent, "Tollgate/Outbox", "HEADER X-Tollgate-State failed");
    let mut person = world.person(keys);
    person.ok("SELECT INBOX");
    assert!(person.search("ALL").is_empty(), "a person has no report of an agent's mail");
    let mut direct = world.dovecot.direct("bob");
    direct.ok("SELECT Sent");
    assert!(direct.find(&mail.id).is_empty(), "no copy of what wasn't sent");
}

#[test]
fn an_unknown_outcome_is_never_reported_as_a_failure() {
    let world = World::with_the_sink_as_provider();
    let keys = &world.bob;
    world.sink.after_dot(AfterDot::Close);
    let mail = message(&keys.address, "ann@example.com", "Nobody knows", "Hello.");
    let hold = world.hold(keys, &["ann@example.com"], &mail.octets);
    assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
    world.gateway.wait_for_state(&hold, "unknown");
    let mut agent = world.agent(keys);
    let uid = one(&mut agent, "INBOX", "SUBJECT \"Sent or not: Nobody knows\"");
    let report = String::from_utf8(agent.body(uid)).unwrap();
    assert!(report.contains("Action: delayed\r\nStatus: 4.4.2\r\n") && !report.contains("Action: failed"), "{report}");
    one(&mut world.person(keys), "INBOX", "SUBJECT \"Sent or not? Nobody knows\"");
    let mut direct = world.dovecot.direct("bob");
    direct.ok("SELECT Sent");
    assert!(direct.find(&mail.id).is_empty());
}
