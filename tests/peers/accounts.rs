//! Two accounts on one gateway see nothing of each other.

use crate::common::imap::Imap;
use crate::common::mail::message;
use crate::common::smtp::Smtp;
use crate::common::world::{PIN, World};

#[test]
fn a_key_of_one_account_opens_no_other() {
    let world = World::start();
    let (alice, bob) = (&world.alice, &world.bob);
    for key in [&bob.person, &bob.agent, &"bobpw".to_owned(), &"alicepw".to_owned(), &String::new()] {
        let mut session = Imap::connect(world.gateway.imap);
        session.refused(&format!("LOGIN \"{}\" \"{key}\"", alice.address), "NO [AUTHENTICATIONFAILED]");
        let mut smtp = Smtp::connect(world.gateway.smtp);
        smtp.expect("EHLO client.example.test", "250");
        use base64::Engine as _;
        let plain = base64::engine::general_purpose::STANDARD.encode(format!("\0{}\0{key}", alice.address));
        smtp.expect(&format!("AUTH PLAIN {plain}"), "535");
        smtp.expect(&format!("MAIL FROM:<{}>", alice.address), "530");
    }
    // An authorisation identity of somebody else is refused too.
    let mut smtp = Smtp::connect(world.gateway.smtp);
    smtp.expect("EHLO client.example.test", "250");
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let plain = engine.encode(format!("{}\0{}\0{}", alice.address, bob.address, bob.person));
    smtp.expect(&format!("AUTH PLAIN {plain}"), "535");
}

#[test]
fn the_mail_of_one_account_is_not_in_the_other_s_mailboxes() {
    let world = World::start();
    let (alice, bob) = (&world.alice, &world.bob);
    let mails = [("alice", alice), ("bob", bob)].map(|(user, keys)| {
        let mail = message("ann@example.com", &keys.address, "Private", "Hello.");
        world.dovecot.deliver(user, "ann@example.com", &mail.octets);
        mail
    });
    world.dovecot.direct("bob").ok("CREATE OnlyBobs");
    for (keys, own, other) in [(alice, 0, 1), (bob, 1, 0)] {
        for mut session in [world.person(keys), world.agent(keys)] {
            world.lane_of(&mut session, &mails[own].id);
            for mailbox in session.mailboxes() {
                session.ok(&format!("EXAMINE \"{mailbox}\""));
                assert!(session.find(&mails[other].id).is_empty(), "{mailbox} of {}", keys.address);
            }
        }
    }
    assert!(!world.person(alice).mailboxes().contains(&"OnlyBobs".into()));
    assert!(world.person(bob).mailboxes().contains(&"OnlyBobs".into()));
}

#[test]
fn the_holds_of_one_account_don_t_exist_for_the_other_s_approver() {
    let world = World::start();
    let (alice, bob) = (&world.alice, &world.bob);
    let mail = message(&alice.address, "ann@example.com", "Secret plan", "Hello.");
    let hold = world.hold(alice, &["ann@example.com"], &mail.octets);
    let (own, other) = (world.approver(alice), world.approver(bob));
    let page = own.get(&format!("/held/{hold}"));
    assert_eq!(page.status, 200);
    for path in ["", "/raw", "/receipt"].map(|p| format!("/held/{hold}{p}")) {
        let page = other.get(&path);
        assert_eq!(page.status, 404, "{path}");
        assert!(!page.text().contains("Secret plan"));
    }
    assert!(!other.get("/").text().contains(&hold));
    // With everything but the right account's sign-in.
    let action = format!("/held/{hold}/approve");
    let of = |name: &str| page.input(&action, name);
    let (hash, nonce) = (of("hash"), of("nonce"));
    let mine = message(&bob.address, "ann@example.com", "Bob's", "Hello.");
    let bobs = world.hold(bob, &["ann@example.com"], &mine.octets);
    let csrf = other.get(&format!("/held/{bobs}")).input(&format!("/held/{bobs}/approve"), "csrf");
    let fields = [("pin", PIN), ("csrf", csrf.as_str()), ("hash", hash.as_str()), ("nonce", nonce.as_str())];
    assert_eq!(other.post(&action, &fields).status, 404);
    assert_eq!(other.post(&format!("/held/{bobs}/approve"), &fields).status / 100, 4, "Alice's hash for Bob's message");
    for id in [&hold, &bobs] {
        assert_eq!(world.gateway.hold(id)["state"], "held");
    }
    assert!(world.sink.arrived().is_empty());
}

#[test]
fn one_account_may_not_send_as_the_other_s_agent() {
    let world = World::start();
    let (alice, bob) = (&world.alice, &world.bob);
    let mut smtp = world.smtp(bob, &bob.agent);
    let reply = smtp.command(&format!("MAIL FROM:<{}>", alice.address));
    assert!(reply.starts_with('5'), "{reply}");
    let forged = message(&alice.address, "ann@example.com", "Forged", "Hello.");
    let reply = world.smtp(bob, &bob.agent).submit(&bob.address, &["ann@example.com"], &forged.octets);
    assert!(reply.starts_with('5'), "{reply}");
}

#[test]
fn the_published_demo_keys_open_no_real_account() {
    use tollgate::account::demo;
    let world = World::start();
    for key in [demo::PERSON_KEY, demo::AGENT_KEY] {
        for user in [&world.alice.address, demo::ADDRESS] {
            let mut session = Imap::connect(world.gateway.imap);
            session.refused(&format!("LOGIN \"{user}\" \"{key}\""), "NO [AUTHENTICATIONFAILED]");
        }
    }
    let page = world.gateway.browser().post("/sign-in", &[("account", &world.alice.address), ("pin", demo::PIN)]);
    assert_ne!(page.status, 303);
}
