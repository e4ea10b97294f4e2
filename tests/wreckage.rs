//! What is left after a crash, and while a provider is away.
//!
//! Builds with debug assertions die at named places (`TOLLGATE_FAILPOINT`, see
//! `src/store/failpoint.rs`); elsewhere the process is killed from outside.

use std::time::Duration;

mod common;

use common::eventually;
use common::gateway::{Gateway, Upstream};
use common::imap::Imap;
use common::mail::message;
use common::sink::AfterDot;
use common::smtp::stuffed;
use common::world::{Keys, LANES, PIN, World};

/// How long nothing may happen before it counts as never.
const NEVER: Duration = Duration::from_secs(3);

/// Starts the gateway again so that it dies at `point`.
fn with_failpoint(world: &mut World, point: &str) {
    world.gateway.stop();
    world.gateway.environment = vec![("TOLLGATE_FAILPOINT".into(), point.into())];
    world.gateway.start();
}

/// Starts it after that death, whole again.
fn after_death(world: &mut World) {
    let status = world.gateway.wait_for_death();
    assert!(!status.success(), "it should have died: {status}");
    world.gateway.environment.clear();
    world.gateway.start();
}

fn holds(gateway: &Gateway) -> Vec<serde_json::Value> {
    let all = gateway.json(&["held", "list", "--all"]);
    all["holds"].as_array().expect("a list").clone()
}

/// Approves where the gateway may die before it answers.
fn approve_and_lose_the_answer(world: &World, keys: &Keys, hold: &str) {
    let browser = world.approver(keys);
    let action = format!("/held/{hold}/approve");
    let page = browser.get(&format!("/held/{hold}"));
    let of = |name: &str| page.input(&action, name);
    let (csrf, hash, nonce) = (of("csrf"), of("hash"), of("nonce"));
    let _ = std::panic::catch_unwind(|| {
        browser.post(&action, &[("pin", PIN), ("csrf", &csrf), ("hash", &hash), ("nonce", &nonce)])
    });
}

/// It is unknown, it stays so, no second copy comes, and no page approves it.
fn stays_unknown(world: &World, keys: &Keys, hold: &str, id: &str, copies: usize) {
    let unknown = world.gateway.wait_for_state(hold, "unknown");
    assert_eq!(holds(&world.gateway).len(), 1, "{unknown}");
    std::thread::sleep(NEVER);
    assert_eq!(world.gateway.hold(hold)["state"], "unknown");
    assert_eq!(world.sink.with_id(id).len(), copies);
    let page = world.approver(keys).get(&format!("/held/{hold}"));
    assert_eq!(page.status, 200);
    assert!(!page.text().contains(&format!("/held/{hold}/approve")), "{}", page.text());
    world.gateway.tollgate(&["ledger", "verify"]).ok();
}

#[test]
fn a_hold_that_was_acknowledged_survives_a_kill_exactly_once_and_can_be_approved() {
    let mut world = World::start();
    with_failpoint(&mut world, "hold.after_250");
    let keys = world.alice.clone();
    let mail = message(&keys.address, "ann@example.com", "Held", "Hello.");
    let hold = world.hold(&keys, &["ann@example.com"], &mail.octets);
    after_death(&mut world);
    let all = holds(&world.gateway);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0]["id"].as_str(), all[0]["state"].as_str()), (Some(hold.as_str()), Some("held")));
    assert!(world.sink.arrived().is_empty());
    assert_eq!(world.approver(&keys).approve(&hold, PIN).status, 303);
    world.gateway.wait_for_state(&hold, "sent");
    eventually("the sink to get it", || (world.sink.with_id(&mail.id).len() == 1).then_some(()));
    world.gateway.tollgate(&["ledger", "verify"]).ok();
}

#[test]
fn holds_of_many_sessions_survive_a_kill_from_outside() {
    let mut world = World::start();
    let keys = world.alice.clone();
    let mails: Vec<_> =
        (0..8).map(|n| message(&keys.address, "ann@example.com", &format!("Held {n}"), "Hello.")).collect();
    let mut acknowledged: Vec<String> = std::thread::scope(|scope| {
        let submit = |octets: &[u8]| world.hold(&keys, &["ann@example.com"], octets);
        let all: Vec<_> = mails.iter().map(|mail| scope.spawn(move || submit(&mail.octets))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    world.gateway.restart_after_kill_9();
    let mut found: Vec<String> = holds(&world.gateway).iter().map(|h| h["id"].as_str().unwrap().to_owned()).collect();
    acknowledged.sort();
    found.sort();
    assert_eq!(found, acknowledged);
    assert!(world.sink.arrived().is_empty());
    world.gateway.tollgate(&["ledger", "verify"]).ok();
}

#[test]
fn a_submission_that_was_cut_off_before_its_end_is_no_hold() {
    let mut world = World::start();
    let keys = world.alice.clone();
    let mail = message(&keys.address, "ann@example.com", "Cut off", "Hello.");
    let mut smtp = world.smtp(&keys, &keys.agent);
    smtp.expect(&format!("MAIL FROM:<{}>", keys.address), "250");
    smtp.expect("RCPT TO:<ann@example.com>", "250");
    smtp.expect("DATA", "354");
    let octets = stuffed(&mail.octets);
    smtp.wire.send(&octets[..octets.len() - 3]);
    std::thread::sleep(Duration::from_millis(200));
    world.gateway.restart_after_kill_9();
    assert!(holds(&world.gateway).is_empty());
    // The same for a client that goes away.
    let mut smtp = world.smtp(&keys, &keys.agent);
    smtp.expect(&format!("MAIL FROM:<{}>", keys.address), "250");
    smtp.expect("RCPT TO:<ann@example.com>", "250");
    smtp.expect("DATA", "354");
    smtp.wire.send(&octets[..octets.len() - 3]);
    drop(smtp);
    std::thread::sleep(Duration::from_millis(500));
    assert!(holds(&world.gateway).is_empty());
    assert!(world.sink.arrived().is_empty());
}

#[test]
fn a_crash_after_the_final_dot_is_unknown_and_nothing_goes_twice() {
    let mut world = World::start();
    let keys = world.alice.clone();
    let mail = message(&keys.address, "ann@example.com", "Once", "Hello.");
    let hold = world.hold(&keys, &["ann@example.com"], &mail.octets);
    with_failpoint(&mut world, "dispatch.after_dot");
    approve_and_lose_the_answer(&world, &keys, &hold);
    after_death(&mut world);
    // Postfix may have taken it or not: it got the dot, but its client was gone.
    eventually("the sink to get it", || (!world.sink.with_id(&mail.id).is_empty()).then_some(()));
    stays_unknown(&world, &keys, &hold, &mail.id, 1);
}

#[test]
fn a_crash_before_the_octets_sends_nothing_and_is_unknown() {
    let mut world = World::start();
    let keys = world.alice.clone();
    let mail = message(&keys.address, "ann@example.com", "Never", "Hello.");
    let hold = world.hold(&keys, &["ann@example.com"], &mail.octets);
    with_failpoint(&mut world, "dispatch.before_data");
    approve_and_lose_the_answer(&world, &keys, &hold);
    after_death(&mut world);
    stays_unknown(&world, &keys, &hold, &mail.id, 0);
}

#[test]
fn a_kill_while_the_provider_is_silent_after_the_dot_leaves_one_copy_and_unknown() {
    let mut world = World::with_the_sink_as_provider();
    let keys = world.alice.clone();
    world.sink.after_dot(AfterDot::Silence);
    let mail = message(&keys.address, "ann@example.com", "Silence", "Hello.");
    let hold = world.hold(&keys, &["ann@example.com"], &mail.octets);
    assert_eq!(world.approver(&keys).approve(&hold, PIN).status, 303);
    eventually("the sink to have it", || (world.sink.with_id(&mail.id).len() == 1).then_some(()));
    assert_eq!(world.gateway.hold(&hold)["state"], "sending");
    world.sink.after_dot(AfterDot::Accept);
    world.gateway.restart_after_kill_9();
    let arrived = world.sink.with_id(&mail.id);
    assert_eq!(arrived[0].octets, mail.octets, "octet for octet");
    stays_unknown(&world, &keys, &hold, &mail.id, 1);
}

#[test]
fn a_connection_lost_after_the_dot_is_unknown() {
    let world = World::with_the_sink_as_provider();
    let keys = &world.alice;
    world.sink.after_dot(AfterDot::Close);
    let mail = message(&keys.address, "ann@example.com", "Lost", "Hello.");
    let hold = world.hold(keys, &["ann@example.com"], &mail.octets);
    assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
    world.sink.after_dot(AfterDot::Close);
    world.gateway.wait_for_state(&hold, "unknown");
    world.sink.after_dot(AfterDot::Accept);
    stays_unknown(&world, keys, &hold, &mail.id, 1);
}

#[test]
fn what_the_provider_says_at_the_dot_decides_whether_it_is_tried_again() {
    let world = World::with_the_sink_as_provider();
    let keys = &world.alice;
    for (reply, state) in [("554 5.7.1 no", "failed"), ("451 4.3.0 later", "approved")] {
        world.sink.after_dot(AfterDot::Say(reply));
        let mail = message(&keys.address, "ann@example.com", "Refused", "Hello.");
        let hold = world.hold(keys, &["ann@example.com"], &mail.octets);
        assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
        eventually("an attempt", || (!world.sink.with_id(&mail.id).is_empty()).then_some(()));
        let hold = world.gateway.wait_for_state(&hold, state);
        assert!(hold["detail"].as_str().unwrap_or_default().contains(&reply[..3]), "{hold}");
        assert_eq!(state == "approved", hold["next_attempt"].is_i64(), "{hold}");
    }
}

#[test]
fn lanes_and_uids_are_the_same_after_a_kill() {
    let mut world = World::start();
    let keys = world.alice.clone();
    let mails: Vec<_> =
        (0..5).map(|n| message("ann@example.com", &keys.address, &format!("Mail {n}"), "Hello.")).collect();
    for mail in &mails {
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    }
    let look = |world: &World| -> Vec<(String, u32, Vec<u8>)> {
        let mut session = world.person(&keys);
        let look = |mail: &common::mail::Message| {
            let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
            let octets = session.body(uid);
            (mailbox, uid, octets)
        };
        mails.iter().map(look).collect()
    };
    let before = look(&world);
    world.gateway.kill_9();
    // One more arrives while nobody watches.
    let late = message("ann@example.com", &keys.address, "Late", "Hello.");
    world.dovecot.deliver("alice", "ann@example.com", &late.octets);
    world.gateway.start();
    assert_eq!(look(&world), before);
    let mut session = world.person(&keys);
    let (mailbox, uid) = world.lane_of(&mut session, &late.id);
    assert!(session.body(uid).starts_with(b"X-Tollgate-Lane: "), "in {mailbox}");
    session.ok("SELECT \"Lanes/All\"");
    assert_eq!(session.search("ALL").len(), mails.len() + 1);
}

#[test]
fn without_the_provider_s_imap_everything_says_unavailable_and_comes_back() {
    let mut world = World::start();
    let keys = world.alice.clone();
    let mail = message("ann@example.com", &keys.address, "Before", "Hello.");
    world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    let mut session = world.person(&keys);
    let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
    world.dovecot.pause();
    // Its key is ours, so signing in works; what needs the provider doesn't.
    let mut other = world.person(&keys);
    other.refused("SELECT Archive", "NO [UNAVAILABLE]");
    other.refused("STATUS Archive (MESSAGES)", "NO [UNAVAILABLE]");
    let draft = message(&keys.address, "ann@example.com", "Lost?", "Hello.");
    let answer = other.append("Drafts", "", &draft.octets);
    assert!(answer.status.starts_with("NO [UNAVAILABLE]"), "{}", answer.status);
    session.refused(&format!("UID FETCH {uid} (BODY.PEEK[])"), "NO [UNAVAILABLE]");
    session.refused(&format!("UID STORE {uid} +FLAGS (\\Seen)"), "NO [UNAVAILABLE]");
    world.dovecot.resume();
    eventually("the lane to be readable again", || {
        let answer = session.command(&format!("UID FETCH {uid} (BODY.PEEK[])"));
        answer.status.starts_with("OK").then_some(())
    });
    eventually("Archive to open again", || other.command("SELECT Archive").status.starts_with("OK").then_some(()));
    // And new mail comes in as before.
    let after = message("ann@example.com", &keys.address, "After", "Hello.");
    world.dovecot.deliver("alice", "ann@example.com", &after.octets);
    world.lane_of(&mut session, &after.id);
    session.ok(&format!("SELECT \"{mailbox}\""));
    assert_eq!(session.find(&mail.id), [uid], "the UID is the same");
}

#[test]
fn a_start_without_the_provider_waits_for_it() {
    let mut world = World::start();
    let keys = world.alice.clone();
    world.gateway.stop();
    world.dovecot.pause();
    world.gateway.start();
    let mut session = world.person(&keys);
    session.refused("SELECT Archive", "NO [UNAVAILABLE]");
    let answer = session.command("SELECT INBOX");
    assert!(answer.status.starts_with("OK") || answer.status.starts_with("NO [UNAVAILABLE]"), "{}", answer.status);
    world.dovecot.resume();
    let mail = message("ann@example.com", &keys.address, "Hello", "Hello.");
    world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    eventually("INBOX to open", || session.command("SELECT INBOX").status.starts_with("OK").then_some(()));
    world.lane_of(&mut session, &mail.id);
}

#[test]
fn without_the_provider_s_submission_people_hear_451_and_agents_are_still_held() {
    let mut world = World::start();
    let keys = world.alice.clone();
    world.postfix.as_mut().unwrap().pause();
    let mail = message(&keys.address, "ann@example.com", "Person", "Hello.");
    let mut smtp = world.smtp(&keys, &keys.person);
    let reply = smtp.command(&format!("MAIL FROM:<{}>", keys.address));
    assert!(reply.starts_with("451 4."), "{reply}");
    let held = message(&keys.address, "ann@example.com", "Agent", "Hello.");
    let hold = world.hold(&keys, &["ann@example.com"], &held.octets);
    world.postfix.as_mut().unwrap().resume();
    let reply = smtp.submit(&keys.address, &["ann@example.com"], &mail.octets);
    assert!(reply.starts_with("250 "), "the same session, later: {reply}");
    assert_eq!(world.approver(&keys).approve(&hold, PIN).status, 303);
    world.gateway.wait_for_state(&hold, "sent");
    for id in [&mail.id, &held.id] {
        eventually("the sink to get it", || (world.sink.with_id(id).len() == 1).then_some(()));
    }
}

#[test]
fn an_approval_while_submission_is_down_waits_for_another_attempt() {
    let mut world = World::start();
    let keys = world.alice.clone();
    world.postfix.as_mut().unwrap().pause();
    let mail = message(&keys.address, "ann@example.com", "Later", "Hello.");
    let hold = world.hold(&keys, &["ann@example.com"], &mail.octets);
    assert_eq!(world.approver(&keys).approve(&hold, PIN).status, 303);
    let waiting = eventually("the first attempt to fail", || {
        let hold = world.gateway.hold(&hold);
        // Before the first attempt it is approved, too, and due at once.
        (hold["state"] == "approved" && hold["attempt"] == 1).then_some(hold)
    });
    assert!(waiting["next_attempt"].is_i64(), "{waiting}");
    // A restart forgets neither the approval nor the attempt.
    world.gateway.restart_after_kill_9();
    let after = world.gateway.hold(&hold);
    assert_eq!((&after["state"], &after["next_attempt"]), (&waiting["state"], &waiting["next_attempt"]));
    assert!(world.sink.arrived().is_empty());
}

#[test]
fn a_password_that_the_provider_refuses_is_never_the_client_s_fault() {
    let world = World::start();
    let (dovecot, postfix) = (&world.dovecot, world.postfix.as_ref().unwrap());
    let account = Upstream {
        user: "alice",
        password: "outdated",
        imap: (dovecot.imap, "none"),
        smtp: (postfix.submission, "none"),
        ca: None,
    };
    let gateway = Gateway::spawn(&account.toml());
    let (person, agent) =
        (gateway.add_key("alice@example.test", "person", "p"), gateway.add_key("alice@example.test", "agent", "a"));
    for key in [&person, &agent] {
        let mut session = Imap::login(gateway.imap, "alice@example.test", key);
        session.refused("SELECT Archive", "NO [UNAVAILABLE]");
    }
    let mut smtp = common::smtp::Smtp::sign_in(gateway.smtp, "alice@example.test", &person);
    smtp.expect("MAIL FROM:<alice@example.test>", "454 4.7.0");
}

#[test]
fn a_second_process_on_the_same_state_is_refused_in_clear_words() {
    let world = World::start();
    let keys = &world.alice;
    let ran = world.gateway.tollgate(&["serve"]);
    // 75, EX_TEMPFAIL of sysexits.h: another time it may work.
    assert_eq!(ran.code, Some(75), "{ran:?}");
    let state = world.gateway.state_dir();
    assert!(ran.stderr.contains("another process uses the state folder"), "{}", ran.stderr);
    assert!(ran.stderr.contains(state.to_str().unwrap()), "{}", ran.stderr);
    // The first is untouched by it.
    world.person(keys).ok("SELECT INBOX");
    let mail = message(&keys.address, "ann@example.com", "Still here", "Hello.");
    world.hold(keys, &["ann@example.com"], &mail.octets);
    assert_eq!(holds(&world.gateway).len(), 1);
}

#[test]
fn a_taken_port_stops_the_start_in_clear_words() {
    let first = Gateway::spawn(common::gateway::EMBEDDED);
    let second = Gateway::prepare(common::gateway::EMBEDDED);
    let text = std::fs::read_to_string(second.config_file()).unwrap();
    let taken = text.replace(&format!("127.0.0.1:{}", second.web), &format!("127.0.0.1:{}", first.web));
    std::fs::write(second.config_file(), taken).unwrap();
    let ran = second.tollgate(&["serve"]);
    assert!(ran.code.is_some_and(|code| code != 0), "{ran:?}");
    assert!(ran.stderr.contains(&format!("127.0.0.1:{}", first.web)), "{}", ran.stderr);
}

#[test]
fn a_stop_is_clean_and_a_start_finds_everything_again() {
    let mut world = World::start();
    let keys = world.alice.clone();
    let mail = message(&keys.address, "ann@example.com", "Kept", "Hello.");
    let hold = world.hold(&keys, &["ann@example.com"], &mail.octets);
    let mut session = world.person(&keys);
    session.idle();
    assert!(world.gateway.stop().success(), "SIGTERM ends it with 0");
    let said = String::from_utf8_lossy(&session.wire.rest()).into_owned();
    assert!(said.contains("* BYE"), "{said:?}");
    world.gateway.start();
    assert_eq!(world.gateway.hold(&hold)["state"], "held");
    let mut session = world.person(&keys);
    for lane in LANES {
        session.ok(&format!("SELECT \"{lane}\""));
    }
    assert_eq!(world.approver(&keys).approve(&hold, PIN).status, 303);
    world.gateway.wait_for_state(&hold, "sent");
}
