//! Accounts without a stored password: people bring their own login, and the
//! gateway is connected for as long as they are.
//!
//! Alice's account stores nothing and is reached through a relay that counts;
//! Bob's has a stored password, keys and an agent. Both are on one gateway.

use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::dovecot::Dovecot;
use crate::common::eventually;
use crate::common::gateway::{Gateway, Upstream};
use crate::common::imap::Imap;
use crate::common::mail::{message, with_fields};
use crate::common::postfix::Postfix;
use crate::common::relay::Relay;
use crate::common::sink::Sink;
use crate::common::smtp::Smtp;
use crate::common::world::{LANES, PIN, held_id};

const ALICE: &str = "alice@example.test";
const BOB: &str = "bob@example.test";
const PASSWORD: &str = "alicepw";
const WRONG: &str = "not-hers-at-all";

/// Fields are dropped in this order: the gateway first.
struct House {
    gateway: Gateway,
    postfix: Postfix,
    imap: Relay,
    smtp: Relay,
    dovecot: Dovecot,
    sink: Sink,
    /// Bob's keys.
    person: String,
    agent: String,
}

impl House {
    #[track_caller]
    fn start() -> House {
        let sink = Sink::start();
        let dovecot = Dovecot::start();
        let postfix = Postfix::start(&dovecot, sink.port);
        let (imap, smtp) = (Relay::to(dovecot.imaps), Relay::to(postfix.submission));
        let alice = Upstream {
            user: "alice",
            password: "",
            imap: (imap.port, "implicit"),
            smtp: (smtp.port, "starttls"),
            ca: Some(&dovecot.authority.ca),
        };
        let bob = Upstream {
            user: "bob",
            password: "bobpw",
            imap: (dovecot.imap, "none"),
            smtp: (postfix.submission, "none"),
            ca: None,
        };
        let alice = alice.toml().replace("password = \"\"", "auth = \"login\"");
        let mut gateway = Gateway::prepare(&format!("[lanes]\npreset = \"folders\"\n\n{alice}{}", bob.toml()));
        gateway.environment = vec![("TOLLGATE_LOG".to_owned(), "trace".to_owned())];
        gateway.start();
        gateway.set_pin(BOB, PIN);
        let (person, agent) = (gateway.add_key(BOB, "person", "Bob's client"), gateway.add_key(BOB, "agent", "helper"));
        House { gateway, postfix, imap, smtp, dovecot, sink, person, agent }
    }

    #[track_caller]
    fn alice(&self) -> Imap {
        Imap::login(self.gateway.imap, ALICE, PASSWORD)
    }

    #[track_caller]
    fn bob(&self) -> Imap {
        Imap::login(self.gateway.imap, BOB, &self.person)
    }

    /// Delivers a message and returns its Message-ID.
    fn mail(&self, user: &str, subject: &str) -> String {
        let mail = message("ann@example.com", &format!("{user}@example.test"), subject, "Hello.");
        self.dovecot.deliver(user, "ann@example.com", &mail.octets);
        mail.id
    }

    /// Waits until no connection of Alice's account is open at the provider.
    #[track_caller]
    fn wait_until_left_alone(&self) {
        eventually("the provider to be left alone", || (self.imap.open() == 0).then_some(()));
    }

    /// No password is in the log, nor in anything that was written.
    #[track_caller]
    fn assert_no_password_is_kept(&self, passwords: &[&str]) {
        let log = self.gateway.log();
        assert!(log.len() > 1000, "it logged what it did");
        for password in passwords {
            let plain = STANDARD.encode(format!("\0alice\0{password}"));
            let from_client = STANDARD.encode(format!("\0{ALICE}\0{password}"));
            for form in [(*password).to_owned(), plain, from_client, STANDARD.encode(password)] {
                assert!(!log.contains(&form), "{password} is in the log");
                assert_not_in(&self.gateway.state_dir(), form.as_bytes());
            }
        }
    }
}

fn assert_not_in(folder: &Path, octets: &[u8]) {
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() {
            assert_not_in(&entry, octets);
        } else if let Ok(content) = std::fs::read(&entry) {
            let found = content.windows(octets.len()).any(|w| w == octets);
            assert!(!found, "{} holds {}", entry.display(), String::from_utf8_lossy(octets));
        }
    }
}

/// Where a message is, over every mailbox that shows lanes, and its UID there.
fn place_of(session: &mut Imap, id: &str) -> Option<(String, u32)> {
    let mut found = Vec::new();
    for mailbox in LANES.iter().chain(&["INBOX"]) {
        session.ok(&format!("SELECT \"{mailbox}\""));
        found.extend(session.find(id).into_iter().map(|uid| ((*mailbox).to_owned(), uid)));
    }
    assert!(found.len() <= 1, "{id} is in several: {found:?}");
    found.pop()
}

#[track_caller]
fn wait_for(session: &mut Imap, id: &str) -> (String, u32) {
    eventually(&format!("{id} to be shown"), || place_of(session, id))
}

#[test]
fn a_session_sees_the_account_only_after_its_own_login_at_the_provider() {
    let house = House::start();
    assert_eq!(house.imap.taken(), 0, "nobody asked for anything yet");
    // While nobody else is signed in, and while somebody is.
    let mut open: Option<Imap> = None;
    for _ in 0..2 {
        for sign_in in [
            format!("LOGIN \"{ALICE}\" \"{WRONG}\""),
            format!("AUTHENTICATE PLAIN {}", STANDARD.encode(format!("\0{ALICE}\0{WRONG}"))),
        ] {
            let taken = house.imap.taken();
            let began = Instant::now();
            let mut session = Imap::connect(house.gateway.imap);
            session.refused(&sign_in, "NO [AUTHENTICATIONFAILED] the provider refused");
            assert!(began.elapsed() >= Duration::from_secs(1), "a refused sign-in is slowed down");
            assert!(house.imap.taken() > taken, "the provider was asked");
            for command in ["LIST \"\" \"*\"", "STATUS INBOX (MESSAGES)", "SELECT INBOX", "IDLE"] {
                session.refused(command, "BAD");
            }
        }
        open.get_or_insert_with(|| house.alice());
    }
    // The third refusal ends the connection, as with keys.
    let mut session = Imap::connect(house.gateway.imap);
    for _ in 0..2 {
        session.refused(&format!("LOGIN \"{ALICE}\" \"{WRONG}\""), "NO [AUTHENTICATIONFAILED]");
    }
    session.wire.send(format!("x LOGIN \"{ALICE}\" \"{WRONG}\"\r\n"));
    assert!(String::from_utf8_lossy(&session.wire.rest()).starts_with("* BYE"));
    // Many connections guess no faster than one.
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut session = Imap::connect(house.gateway.imap);
                session.refused(&format!("LOGIN \"{ALICE}\" \"{WRONG}\""), "NO [");
            });
        }
    });
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
    // Each sign-in of the right person asks the provider too.
    let taken = house.imap.taken();
    let mut second = house.alice();
    assert!(house.imap.taken() > taken);
    let id = house.mail("alice", "Lunch");
    wait_for(&mut second, &id);
    wait_for(&mut open.unwrap(), &id);
    house.assert_no_password_is_kept(&[PASSWORD, WRONG]);
}

#[test]
fn the_provider_is_left_alone_after_the_last_session_and_the_next_one_goes_on() {
    let mut house = House::start();
    let (mut first, mut second) = (house.alice(), house.alice());
    let id = house.mail("alice", "Lunch");
    let at = wait_for(&mut first, &id);
    first.ok(&format!("SELECT \"{}\"", at.0));
    first.body(at.1);
    second.ok("SELECT Archive");
    assert!(house.imap.open() >= 2, "a watching connection and Archive's");
    let validity = first.ok("STATUS INBOX (UIDVALIDITY UIDNEXT)").untagged[0].text.clone();
    first.ok("LOGOUT");
    second.ok("NOOP");
    assert!(house.imap.open() >= 2, "one is still signed in");
    second.ok("LOGOUT");
    house.wait_until_left_alone();
    let taken = house.imap.taken();
    // Mail that comes meanwhile, and a restart.
    let later = house.mail("alice", "Dinner");
    house.gateway.restart_after_kill_9();
    assert_eq!(house.imap.taken(), taken, "nothing was asked while nobody was there");
    let mut third = house.alice();
    let now = wait_for(&mut third, &later);
    assert_eq!(place_of(&mut third, &id), Some(at.clone()), "the same mailbox and UID as before");
    let stamped = third.ok(&format!("SELECT \"{}\"", now.0));
    assert!(stamped.told("* OK [UIDVALIDITY"));
    let uid = now.1;
    let answer = third.ok(&format!("UID FETCH {uid} BODY.PEEK[HEADER.FIELDS (X-Tollgate-Lane)]"));
    let header = String::from_utf8_lossy(&answer.fetched()[0].literals[0]).into_owned();
    assert!(header.contains("X-Tollgate-Lane:"), "perceived like any other mail: {header}");
    let part = |text: &str| {
        text.split("UIDVALIDITY ").nth(1).map(|t| t.chars().take_while(char::is_ascii_digit).collect::<String>())
    };
    let again = third.ok("STATUS INBOX (UIDVALIDITY UIDNEXT)").untagged[0].text.clone();
    assert!(part(&validity).is_some());
    assert_eq!(part(&validity), part(&again));
    // A client that just goes, without LOGOUT, and in the middle of a wait.
    third.idle();
    drop(third);
    house.wait_until_left_alone();
}

#[test]
fn a_password_that_the_provider_no_longer_takes_ends_its_sessions() {
    let house = House::start();
    let mut idle = house.alice();
    idle.ok("SELECT INBOX");
    idle.idle();
    house.dovecot.set_password("alice", "changed-since-then");
    // The watching connection is lost, and the new one is refused.
    house.imap.cut();
    let bye = String::from_utf8_lossy(&idle.wire.rest()).into_owned();
    assert!(bye.contains("* BYE the provider no longer takes this password"), "{bye}");
    house.wait_until_left_alone();
    let mut session = Imap::connect(house.gateway.imap);
    session.refused(&format!("LOGIN \"{ALICE}\" \"{PASSWORD}\""), "NO [AUTHENTICATIONFAILED]");
    let login = format!("LOGIN \"{ALICE}\" \"changed-since-then\"");
    session.ok(&login);
    // A sign-in with a new password ends sessions that stand on the old one,
    // also where no connection was lost.
    house.dovecot.set_password("alice", "changed-once-more-then");
    let mut new = Imap::login(house.gateway.imap, ALICE, "changed-once-more-then");
    let bye = String::from_utf8_lossy(&session.wire.rest()).into_owned();
    assert!(bye.contains("* BYE the provider no longer takes this password"), "{bye}");
    let id = house.mail("alice", "Lunch");
    wait_for(&mut new, &id);
    house.assert_no_password_is_kept(&[PASSWORD, "changed-since-then", "changed-once-more-then"]);
}

#[test]
fn a_provider_that_can_t_be_asked_is_not_a_wrong_password() {
    let mut house = House::start();
    house.dovecot.pause();
    house.postfix.pause();
    let mut session = Imap::connect(house.gateway.imap);
    for _ in 0..4 {
        session.refused(&format!("LOGIN \"{ALICE}\" \"{PASSWORD}\""), "NO [UNAVAILABLE]");
    }
    let mut smtp = Smtp::connect(house.gateway.smtp);
    smtp.expect("EHLO client.example.test", "250");
    smtp.expect(&format!("AUTH PLAIN {}", STANDARD.encode(format!("\0{ALICE}\0{PASSWORD}"))), "454 4.7.0");
    house.dovecot.resume();
    house.postfix.resume();
    session.ok(&format!("LOGIN \"{ALICE}\" \"{PASSWORD}\""));
    smtp.expect(&format!("AUTH PLAIN {}", STANDARD.encode(format!("\0{ALICE}\0{PASSWORD}"))), "235");
}

#[test]
fn a_persons_mail_goes_out_with_their_own_login_and_is_never_held() {
    let house = House::start();
    let mut smtp = Smtp::connect(house.gateway.smtp);
    smtp.expect("EHLO client.example.test", "250");
    let auth = |password: &str| format!("AUTH PLAIN {}", STANDARD.encode(format!("\0{ALICE}\0{password}")));
    let began = Instant::now();
    smtp.expect(&auth(WRONG), "535 5.7.8 the provider refused");
    assert!(began.elapsed() >= Duration::from_secs(1));
    smtp.expect(&format!("MAIL FROM:<{ALICE}>"), "530");
    smtp.expect(&auth(PASSWORD), "235");
    assert_eq!(house.imap.taken(), 0, "submission opens no mailbox");
    let mail = message(ALICE, "ann@example.com", "From a person", "Hello.");
    let reply = smtp.submit(ALICE, &["ann@example.com"], &mail.octets);
    assert!(reply.starts_with("250"), "{reply}");
    eventually("the sink to get it", || house.sink.with_id(&mail.id).pop());
    // What declares a machine would be held elsewhere; here it is refused.
    for mark in ["X-AI-Drafted: yes", "Auto-Submitted: auto-generated"] {
        let fields = format!("From: {ALICE}\r\nTo: ann@example.com\r\nSubject: Marked\r\n{mark}\r\n");
        let marked = with_fields(&fields, "Hello.");
        let reply = smtp.submit(ALICE, &["ann@example.com"], &marked.octets);
        assert!(reply.starts_with("550 5.7.1") && reply.contains("not stored here"), "{reply}");
        assert!(house.sink.with_id(&marked.id).is_empty());
    }
    assert_eq!(house.gateway.json(&["held", "list", "--account", ALICE, "--all"])["holds"], serde_json::json!([]));
    // After a change of the password at the provider the session is told.
    house.dovecot.set_password("alice", "changed-since-then");
    smtp.expect(&format!("MAIL FROM:<{ALICE}>"), "421 4.7.0");
    assert!(smtp.wire.rest().is_empty());
    house.assert_no_password_is_kept(&[PASSWORD, WRONG, "changed-since-then"]);
    assert!(house.sink.faults().is_empty());
}

#[test]
fn what_needs_a_stored_password_is_refused_with_the_reason() {
    let house = House::start();
    for role in ["person", "agent"] {
        let ran = house.gateway.tollgate(&["key", "add", "--account", ALICE, &format!("--{role}"), "x"]);
        assert!(ran.code != Some(0) && ran.stderr.contains("auth = \"login\""), "{}", ran.stderr);
    }
    let pin = house.gateway.scratch.file("pin", PIN);
    let ran = house.gateway.tollgate(&["pin", "set", "--account", ALICE, "--pin-file", pin.to_str().unwrap()]);
    assert!(ran.code != Some(0) && ran.stderr.contains("auth = \"login\""), "{}", ran.stderr);
    let page = house.gateway.browser().post("/sign-in", &[("account", ALICE), ("pin", PIN)]);
    assert_eq!(page.status, 403);
    let ran = house.gateway.tollgate(&["backfill", "--account", ALICE, "--last", "5"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("nobody is signed in"), "{}", ran.stderr);
    let check = house.gateway.tollgate(&["check"]).ok().text();
    assert!(check.contains("stored nowhere"), "{check}");
    for mode in ["external", "all"] {
        let rest = format!(
            "[hold]\nmode = \"{mode}\"\n\n[[account]]\naddress = \"{ALICE}\"\nprovider = \"imap\"\nauth = \"login\"\n\
             imap.host = \"localhost\"\nsmtp.host = \"localhost\"\n"
        );
        let ran = Gateway::prepare(&rest).tollgate(&["check"]).code(78);
        assert!(ran.stderr.contains(&format!("hold.mode = \"{mode}\"")), "{}", ran.stderr);
    }
}

/// The tagged answer without the name that was asked for, and without the times that Dovecot adds:
/// "(0.002 + 0.000 + 0.001 secs)".
fn without(answer: &str, name: &str) -> String {
    let answer = answer.strip_suffix(" secs).").and_then(|a| a.rsplit_once(" (")).map_or(answer, |(said, _)| said);
    answer.replace(name, "NAME")
}

#[test]
fn nothing_of_one_account_reaches_the_other() {
    let house = House::start();
    for (user, own) in [("alice", "OnlyAlices"), ("bob", "OnlyBobs")] {
        let mut direct = house.dovecot.direct(user);
        direct.ok(&format!("CREATE {own}"));
        direct.ok(&format!("SUBSCRIBE {own}"));
    }
    let (mut alice, mut bob) = (house.alice(), house.bob());
    let mut agent = Imap::login(house.gateway.imap, BOB, &house.agent);
    let ids = [house.mail("alice", "Quince jam"), house.mail("bob", "Medlar jam")];
    let alices = wait_for(&mut alice, &ids[0]);
    wait_for(&mut bob, &ids[1]);

    // Names, subscriptions, and what is said of a name that isn't there.
    bob.ok("UNSUBSCRIBE Lanes/Silent");
    alice.ok("SUBSCRIBE Lanes/All");
    let names = |s: &mut Imap, verb: &str| -> Vec<String> {
        s.ok(&format!("{verb} \"\" \"*\"")).listed().into_iter().map(|(_, n)| n).collect()
    };
    for verb in ["LIST", "LSUB"] {
        let (a, b, g) = (names(&mut alice, verb), names(&mut bob, verb), names(&mut agent, verb));
        assert!(a.contains(&"OnlyAlices".into()) && !a.contains(&"OnlyBobs".into()), "{verb}: {a:?}");
        for list in [b, g] {
            assert!(list.contains(&"OnlyBobs".into()) && !list.contains(&"OnlyAlices".into()), "{verb}: {list:?}");
        }
    }
    let (a, b) = (names(&mut alice, "LSUB"), names(&mut bob, "LSUB"));
    assert!(a.contains(&"Lanes/All".into()) && a.contains(&"Lanes/Silent".into()), "{a:?}");
    assert!(!b.contains(&"Lanes/All".into()) && !b.contains(&"Lanes/Silent".into()), "{b:?}");
    for (session, other) in [(&mut alice, "OnlyBobs"), (&mut bob, "OnlyAlices"), (&mut agent, "OnlyAlices")] {
        for command in ["SELECT NAME", "EXAMINE NAME", "STATUS NAME (MESSAGES UIDNEXT)", "DELETE NAME"] {
            let there = session.command(&command.replace("NAME", other));
            let nowhere = session.command(&command.replace("NAME", "OnlyNobodys"));
            assert!(there.status.starts_with("NO"), "{command} {other}: {}", there.status);
            assert_eq!(without(&there.status, other), without(&nowhere.status, "OnlyNobodys"), "{command}");
            assert!(there.untagged.is_empty());
        }
    }

    // Messages: each is found in its own account only, by whatever is asked.
    for (session, own, other) in [(&mut alice, 0, 1), (&mut bob, 1, 0), (&mut agent, 1, 0)] {
        let word = ["Quince", "Medlar"];
        let (mut of_own, mut of_other) = (0, 0);
        for mailbox in session.mailboxes() {
            session.ok(&format!("EXAMINE \"{mailbox}\""));
            of_own += session.find(&ids[own]).len();
            of_other += session.find(&ids[other]).len();
            of_other += session.search(&format!("TEXT {}", word[other])).len();
            of_other += session.search(&format!("SUBJECT {}", word[other])).len();
        }
        assert!(of_own >= 1 && of_other == 0, "{of_own} {of_other}");
    }

    // UIDs and events: mail of one moves nothing of the other.
    let status = "STATUS Lanes/All (MESSAGES UIDNEXT UIDVALIDITY UNSEEN)";
    let before = alice.ok(status).untagged[0].text.clone();
    alice.ok("SELECT Lanes/All");
    alice.idle();
    let more: Vec<String> = (0..3).map(|n| house.mail("bob", &format!("Medlar {n}"))).collect();
    for id in &more {
        wait_for(&mut bob, id);
    }
    let held = {
        let mail = message(BOB, "ann@example.com", "Medlar plans", "Hello.");
        let mut smtp = Smtp::sign_in(house.gateway.smtp, BOB, &house.agent);
        held_id(&smtp.submit(BOB, &["ann@example.com"], &mail.octets))
    };
    eventually("the notice", || {
        bob.ok("SELECT INBOX");
        (!bob.search("SUBJECT \"Approval needed\"").is_empty()).then_some(())
    });
    assert!(alice.done().untagged.is_empty(), "an event of the other account");
    assert_eq!(alice.ok(status).untagged[0].text, before);
    for mailbox in ["INBOX", "Lanes/All"] {
        alice.ok(&format!("SELECT {mailbox}"));
        assert!(alice.search("SUBJECT \"Approval needed\"").is_empty());
        assert!(alice.search("TEXT \"/held/\"").is_empty());
    }

    // Corrections are the own account's, at the console too.
    let target = if alices.0 == "Lanes/Info" { "Lanes/Queue" } else { "Lanes/Info" };
    alice.ok(&format!("SELECT \"{}\"", alices.0));
    alice.ok(&format!("UID MOVE {} {target}", alices.1));
    let corrected = wait_for(&mut alice, &ids[0]);
    assert_eq!(corrected.0, target);
    let list = house.gateway.json(&["corrections", "list"]);
    let list = list["corrections"].as_array().unwrap();
    assert!(list.len() == 1 && list[0]["account"] == ALICE, "{list:?}");
    let correction = list[0]["id"].as_str().unwrap();
    let undo = |account| house.gateway.tollgate(&["corrections", "undo", "--account", account, correction]);
    assert!(undo(BOB).code != Some(0));
    assert_eq!(place_of(&mut alice, &ids[0]), Some(corrected));
    undo(ALICE).ok();
    assert_ne!(wait_for(&mut alice, &ids[0]).0, target);

    // The console names an account's own things only.
    let text = |arguments: &[&str]| house.gateway.json(arguments).to_string();
    assert!(text(&["held", "list", "--account", BOB]).contains(&held));
    assert!(!text(&["held", "list", "--account", ALICE, "--all"]).contains(&held));
    assert!(text(&["key", "list", "--account", BOB]).contains("Bob's client"));
    assert_eq!(house.gateway.json(&["key", "list", "--account", ALICE])["keys"], serde_json::json!([]));
    for (account, id) in [(ALICE, &ids[0]), (BOB, &ids[1])] {
        for uid in 1..=5 {
            let uid = uid.to_string();
            let explain = ["explain", "--account", account, "--mailbox", "Lanes/All", "--uid", &uid];
            let ran = house.gateway.tollgate(&[&["--json"], &explain[..]].concat());
            let other = if id == &ids[0] { &ids[1] } else { &ids[0] };
            assert!(!ran.text().contains(other.as_str()), "{}", ran.text());
        }
    }

    // The pages: Bob's shows Bob's hold; Alice has none to sign in to.
    assert_eq!(house.gateway.approver(BOB, PIN).get(&format!("/held/{held}")).status, 200);
    let page = house.gateway.browser().post("/sign-in", &[("account", ALICE), ("pin", PIN)]);
    assert!(page.status == 403 && page.field("set-cookie").is_none());

    credentials_open_their_own_account_only(&house);
    house.assert_no_password_is_kept(&[PASSWORD, "bobpw", WRONG]);
}

fn credentials_open_their_own_account_only(house: &House) {
    let plain = |user: &str, password: &str| STANDARD.encode(format!("\0{user}\0{password}"));
    let refused = |user: &str, password: &str| {
        let mut session = Imap::connect(house.gateway.imap);
        let answer = session.command(&format!("LOGIN \"{user}\" \"{password}\""));
        assert!(answer.status.starts_with("NO [AUTHENTICATIONFAILED]"), "{user}: {}", answer.status);
        session.refused("SELECT INBOX", "BAD");
        let mut smtp = Smtp::connect(house.gateway.smtp);
        smtp.expect("EHLO client.example.test", "250");
        smtp.expect(&format!("AUTH PLAIN {}", plain(user, password)), "535");
        smtp.expect(&format!("MAIL FROM:<{ALICE}>"), "530");
        answer.status
    };
    // What is only for us never goes to a provider: keys, and passwords for
    // an account that takes none.
    let taken = (house.imap.taken(), house.smtp.taken());
    let nowhere = refused("nobody@example.test", PASSWORD);
    for (user, password) in [
        (ALICE, house.person.as_str()),
        (ALICE, house.agent.as_str()),
        (ALICE, ""),
        (BOB, PASSWORD),
        (BOB, "bobpw"),
        ("alice", PASSWORD),
        ("bob", PASSWORD),
        ("alice@example.org", PASSWORD),
    ] {
        assert_eq!(refused(user, password), nowhere, "{user}");
    }
    assert_eq!((house.imap.taken(), house.smtp.taken()), taken, "something was sent to the provider");
    // A password is tried as the account's own user and as no other.
    refused(ALICE, "bobpw");
    // Nobody acts for another.
    for (acting, user, password) in [(BOB, ALICE, PASSWORD), (ALICE, BOB, house.person.as_str())] {
        let both = STANDARD.encode(format!("{acting}\0{user}\0{password}"));
        let mut session = Imap::connect(house.gateway.imap);
        session.refused(&format!("AUTHENTICATE PLAIN {both}"), "NO [AUTHORIZATIONFAILED]");
        let mut smtp = Smtp::connect(house.gateway.smtp);
        smtp.expect("EHLO client.example.test", "250");
        smtp.expect(&format!("AUTH PLAIN {both}"), "535");
    }
    // Nor sends as another.
    let mut smtp = Smtp::sign_in(house.gateway.smtp, ALICE, PASSWORD);
    smtp.expect(&format!("MAIL FROM:<{BOB}>"), "553");
    let mut smtp = Smtp::sign_in(house.gateway.smtp, BOB, &house.person);
    smtp.expect(&format!("MAIL FROM:<{ALICE}>"), "553");
    assert!(house.sink.arrived().is_empty());
}
