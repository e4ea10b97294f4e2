//! What goes out: a person's mail is relayed, an agent's is held, approved
//! mail arrives exactly as it was submitted, and its receipt verifies.

use std::path::PathBuf;

use crate::common::eventually;
use crate::common::mail::{assert_arrived_untouched, message, with_fields};
use crate::common::postfix::REFUSED;
use crate::common::program::run;
use crate::common::sink::Arrived;
use crate::common::world::{Keys, PIN, World, held_id};

/// What Postfix puts before a message that it relays.
const PREPENDED: [&str; 1] = ["Received"];
/// And what Dovecot's LMTP adds.
const DELIVERED: [&str; 3] = ["Received", "Return-Path", "Delivered-To"];

/// Octets that bad relays change: dots at line starts, long lines, trailing
/// blanks, 8-bit text, an empty last line.
const HARD: &str = ".\r\n..\r\n.leading\r\ntrailing  \t\r\n\r\n\u{e4}\u{f6}\u{fc} 8-bit\r\nFrom here\r\n\r\n";

fn wait_for(world: &World, id: &str) -> Arrived {
    eventually("the sink to get it", || world.sink.with_id(id).pop())
}

fn hard(keys: &Keys, to: &str, subject: &str) -> (String, Vec<u8>) {
    let mail = message(&keys.address, to, subject, HARD);
    let text = String::from_utf8(mail.octets).unwrap().replace("Encoding: 7bit", "Encoding: 8bit");
    (mail.id, text.into_bytes())
}

fn swaks(world: &World, keys: &Keys, key: &str, to: &str, octets: &[u8]) -> crate::common::program::Ran {
    let file: PathBuf = world.gateway.scratch.file("swaks.eml", octets);
    let (server, at) = (format!("127.0.0.1:{}", world.gateway.smtp), format!("@{}", file.display()));
    run(
        "swaks",
        &[
            "--server",
            &server,
            "--auth",
            "PLAIN",
            "--auth-user",
            &keys.address,
            "--auth-password",
            key,
            "--from",
            &keys.address,
            "--to",
            to,
            "--data",
            &at,
            "--suppress-data",
        ],
    )
}

#[test]
fn a_person_s_mail_by_swaks_is_relayed_octet_for_octet() {
    let world = World::start();
    let (id, octets) = hard(&world.alice, "ann@example.com", "From a person");
    let ran = swaks(&world, &world.alice, &world.alice.person, "ann@example.com", &octets).ok();
    // The provider's reply is the client's reply.
    assert!(ran.text().contains("250 2.0.0 Ok: queued as "), "{}", ran.text());
    let arrived = wait_for(&world, &id);
    assert_eq!(
        (arrived.from.as_str(), arrived.to.as_slice()),
        ("alice@example.test", &["ann@example.com".to_owned()][..])
    );
    // swaks ends its data with a line end of its own.
    assert_arrived_untouched(&arrived.octets, &[&octets[..], b"\r\n"].concat(), &PREPENDED);
}

#[test]
fn a_person_s_mail_arrives_in_a_mailbox_octet_for_octet() {
    let world = World::start();
    let (id, octets) = hard(&world.alice, &world.bob.address, "To Bob");
    let reply =
        world.smtp(&world.alice, &world.alice.person).submit(&world.alice.address, &[&world.bob.address], &octets);
    assert!(reply.starts_with("250 2.0.0 Ok: queued as "), "{reply}");
    let mut direct = world.dovecot.direct("bob");
    let uid = eventually("Bob's provider to have it", || {
        direct.ok("SELECT INBOX");
        direct.find(&id).pop()
    });
    assert_arrived_untouched(&direct.body(uid), &octets, &DELIVERED);
    let mut session = world.person(&world.bob);
    world.lane_of(&mut session, &id);
}

#[test]
fn an_agent_s_mail_is_held_and_goes_exactly_once_when_a_person_approves() {
    let world = World::start();
    let keys = &world.alice;
    // swaks can't say BODY=8BITMIME; the next test does.
    let seven_bit: String = HARD.chars().filter(char::is_ascii).collect();
    let mail = message(&keys.address, "ann@example.com", "From an agent", &seven_bit);
    let (id, octets) = (mail.id, mail.octets);
    let ran = swaks(&world, keys, &keys.agent, "ann@example.com", &octets).ok();
    let text = ran.text();
    let line = text.lines().find(|l| l.contains("held for approval as ")).expect("held");
    let hold = held_id(line.trim_start_matches("<-").trim());
    let submitted = [&octets[..], b"\r\n"].concat();

    // Nothing goes by itself.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(world.sink.arrived().is_empty());
    let shown = world.gateway.hold(&hold);
    assert_eq!(shown["state"], "held");

    let browser = world.approver(keys);
    let listed = browser.get("/");
    assert!(listed.text().contains(&hold), "{}", listed.text());
    let page = browser.approve(&hold, PIN);
    assert_eq!(page.status, 303, "{}", page.text());
    world.gateway.wait_for_state(&hold, "sent");
    let arrived = wait_for(&world, &id);
    assert_eq!(
        (arrived.from.as_str(), arrived.to.as_slice()),
        ("alice@example.test", &["ann@example.com".to_owned()][..])
    );
    assert_arrived_untouched(&arrived.octets, &submitted, &PREPENDED);

    // A second approval is refused, and nothing goes a second time.
    let again = browser.get(&format!("/held/{hold}"));
    assert!(!again.text().contains("/approve\""), "a sent message can't be approved: {}", again.text());
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(world.sink.with_id(&id).len(), 1);
}

#[test]
fn an_agent_s_8_bit_mail_goes_unchanged_where_the_provider_takes_it() {
    let world = World::start();
    let keys = &world.alice;
    // What the providers take is asked at the start.
    let mut smtp = eventually("8BITMIME to be offered", || {
        let mut smtp = world.smtp(keys, &keys.agent);
        smtp.expect("EHLO client.example.test", "250").contains("8BITMIME").then_some(smtp)
    });
    let (id, octets) = hard(keys, "ann@example.com", "From an agent");
    smtp.expect(&format!("MAIL FROM:<{}> BODY=8BITMIME SIZE={}", keys.address, octets.len()), "250");
    smtp.expect("RCPT TO:<ann@example.com>", "250");
    smtp.expect("DATA", "354");
    smtp.message(&octets);
    let hold = held_id(&smtp.reply());
    assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
    assert_arrived_untouched(&wait_for(&world, &id).octets, &octets, &PREPENDED);
    // Without the parameter it is refused, not converted.
    let reply = world.smtp(keys, &keys.agent).submit(&keys.address, &["ann@example.com"], &octets);
    assert!(reply.starts_with("554 5.6.3"), "{reply}");
}

#[test]
fn the_receipt_verifies_offline_and_fails_on_any_change() {
    let world = World::start();
    let (keys, gateway) = (&world.alice, &world.gateway);
    let mail = message(&keys.address, "ann@example.com", "For a receipt", "Hello.");
    let hold = world.hold(keys, &["ann@example.com", "ben@example.net"], &mail.octets);
    assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
    gateway.wait_for_state(&hold, "sent");

    let exported = gateway.tollgate(&["receipt", "export", &hold]).ok().stdout;
    let receipt = gateway.scratch.file("receipt.json", &exported);
    let message = gateway.scratch.file("message.eml", &mail.octets);
    let (receipt, message) = (receipt.to_str().unwrap(), message.to_str().unwrap());
    let verify = |receipt: &str, message: &str, more: &[&str]| {
        gateway.tollgate(&[&["receipt", "verify", receipt, "--message", message], more].concat())
    };
    let both = ["--to", "ann@example.com", "--to", "ben@example.net"];
    verify(receipt, message, &both).ok();
    verify(receipt, message, &["--account", &keys.address, "--action", "send_email"]).ok();

    // Exit codes of `receipt verify`: 11 action, 12 payload, 16 signature.
    let mut changed = mail.octets.clone();
    let at = changed.len() - 4;
    changed[at] ^= 1;
    let changed = gateway.scratch.file("changed.eml", changed);
    verify(receipt, changed.to_str().unwrap(), &[]).code(12);
    let longer = gateway.scratch.file("longer.eml", [&mail.octets[..], b"\r\n"].concat());
    verify(receipt, longer.to_str().unwrap(), &[]).code(12);
    verify(receipt, message, &[&both[..], &["--to", "mallory@example.com"]].concat()).code(12);
    verify(receipt, message, &["--to", "ann@example.com"]).code(12);
    verify(receipt, message, &["--account", &world.bob.address]).code(12);
    verify(receipt, message, &["--action", "delete_permanent"]).code(11);
    let text = String::from_utf8(exported).unwrap();
    let edited = text.replacen("ben@example.net", "eve@example.net", 1);
    assert_ne!(edited, text);
    let edited = gateway.scratch.file("edited.json", edited);
    let code = verify(edited.to_str().unwrap(), message, &[]).code;
    assert!([Some(12), Some(16)].contains(&code), "an edited recipient: exit code {code:?}");
    let verified = gateway.json(&["ledger", "verify"]);
    assert!(verified["entries"].as_u64().unwrap() >= 4, "{verified}");
}

#[test]
fn an_approval_takes_the_pin_the_form_s_token_and_the_displayed_hash() {
    let world = World::start();
    let keys = &world.alice;
    let mail = message(&keys.address, "ann@example.com", "Careful", "Hello.");
    let hold = world.hold(keys, &["ann@example.com"], &mail.octets);
    let (path, action) = (format!("/held/{hold}"), format!("/held/{hold}/approve"));
    let browser = world.approver(keys);
    let page = browser.get(&path);
    let of = |name: &str| page.input(&action, name);
    let (csrf, hash, nonce) = (of("csrf"), of("hash"), of("nonce"));
    let form = |pin: &str, csrf: &str, hash: &str, nonce: &str| {
        let fields = [("pin", pin), ("csrf", csrf), ("hash", hash), ("nonce", nonce)];
        browser.post(&action, &fields).status
    };
    let zeros = "0".repeat(64);
    assert_ne!(form("999999", &csrf, &hash, &nonce), 303, "a wrong PIN");
    assert_ne!(form("", &csrf, &hash, &nonce), 303, "no PIN");
    assert_ne!(form(PIN, &zeros, &hash, &nonce), 303, "another token");
    assert_ne!(form(PIN, &csrf, &zeros, &nonce), 303, "another hash");
    assert_ne!(form(PIN, &csrf, &hash, "0"), 303, "another nonce");
    assert_eq!(world.gateway.hold(&hold)["state"], "held");

    // Elsewhere: no sign-in, a foreign page, a foreign name, a GET.
    let mut stranger = browser.clone();
    stranger.cookie = None;
    let fields = [("pin", PIN), ("csrf", csrf.as_str()), ("hash", hash.as_str()), ("nonce", nonce.as_str())];
    assert_ne!(stranger.post(&action, &fields).status, 303, "no sign-in");
    let mut foreign = browser.clone();
    foreign.origin = "http://mail.example.com".into();
    assert_eq!(foreign.post(&action, &fields).status, 403, "a foreign Origin");
    let mut renamed = browser.clone();
    renamed.host = "mail.example.com".into();
    assert!((400..500).contains(&renamed.get(&path).status), "a foreign Host");
    for path in [&path, &action, "/"] {
        browser.get(path);
    }
    assert_eq!(world.gateway.hold(&hold)["state"], "held");
    assert!(world.sink.arrived().is_empty());

    // And with everything right it goes.
    assert_eq!(form(PIN, &csrf, &hash, &nonce), 303);
    world.gateway.wait_for_state(&hold, "sent");
    // The page approves once.
    assert_ne!(form(PIN, &csrf, &hash, &nonce), 303, "the same form a second time");
    wait_for(&world, &mail.id);
    assert_eq!(world.sink.with_id(&mail.id).len(), 1);
}

#[test]
fn a_denied_message_is_never_sent() {
    let world = World::start();
    let keys = &world.alice;
    let mail = message(&keys.address, "ann@example.com", "No", "Hello.");
    let hold = world.hold(keys, &["ann@example.com"], &mail.octets);
    let browser = world.approver(keys);
    let action = format!("/held/{hold}/deny");
    let page = browser.get(&format!("/held/{hold}"));
    let of = |name: &str| page.input(&action, name);
    let (csrf, hash, nonce) = (of("csrf"), of("hash"), of("nonce"));
    let fields = [("pin", PIN), ("csrf", &csrf), ("hash", &hash), ("nonce", &nonce), ("reason", "too early")];
    assert_eq!(browser.post(&action, &fields).status, 303);
    assert_eq!(world.gateway.hold(&hold)["state"], "denied");
    let approve = [("pin", PIN), ("csrf", &csrf), ("hash", &hash), ("nonce", &nonce)];
    assert_ne!(browser.post(&format!("/held/{hold}/approve"), &approve).status, 303);
    world.gateway.tollgate(&["receipt", "export", &hold]).code(65);
    assert!(world.sink.arrived().is_empty());
}

#[test]
fn one_refused_recipient_stops_the_whole_message() {
    let world = World::start();
    let keys = &world.alice;
    let mail = message(&keys.address, "ann@example.com", "All or nothing", "Hello.");
    let hold = world.hold(keys, &["ann@example.com", REFUSED], &mail.octets);
    assert_eq!(world.approver(keys).approve(&hold, PIN).status, 303);
    let failed = world.gateway.wait_for_state(&hold, "failed");
    assert!(failed["detail"].as_str().unwrap_or_default().contains("550"), "{failed}");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(world.sink.arrived().is_empty(), "nobody gets it");
}

#[test]
fn a_person_hears_what_the_provider_says_of_each_recipient() {
    let world = World::start();
    let keys = &world.alice;
    let mut smtp = world.smtp(keys, &keys.person);
    smtp.expect(&format!("MAIL FROM:<{}>", keys.address), "250");
    smtp.expect(&format!("RCPT TO:<{REFUSED}>"), "550");
    smtp.expect("RCPT TO:<ann@example.com>", "250");
    smtp.expect("DATA", "354");
    let mail = message(&keys.address, "ann@example.com", "To one", "Hello.");
    smtp.message(&mail.octets);
    let reply = smtp.reply();
    assert!(reply.starts_with("250 "), "{reply}");
    assert_eq!(wait_for(&world, &mail.id).to, ["ann@example.com"]);
}

#[test]
fn an_agent_s_dangerous_mail_is_refused_before_it_is_held() {
    let world = World::start();
    let keys = &world.alice;
    let fine = format!("From: {}\r\nTo: ann@example.com\r\nSubject: x\r\n", keys.address);
    let cases = [
        ("another sender in From", with_fields("From: eve@example.com\r\nTo: ann@example.com\r\nSubject: x\r\n", "x")),
        ("a Bcc field", with_fields(&format!("{fine}Bcc: eve@example.com\r\n"), "x")),
        ("two From fields", with_fields(&format!("From: {}\r\n{fine}", keys.address), "x")),
        ("an instruction to a provider", with_fields(&format!("{fine}X-Mailgun-Send-At: never\r\n"), "x")),
        ("an unknown field", with_fields(&format!("{fine}X-Odd: 1\r\n"), "x")),
    ];
    for (what, mail) in cases {
        let reply = world.smtp(keys, &keys.agent).submit(&keys.address, &["ann@example.com"], &mail.octets);
        assert!(reply.starts_with('5'), "{what}: {reply}");
    }
    let mut smtp = world.smtp(keys, &keys.agent);
    let reply = smtp.command("MAIL FROM:<bob@example.test>");
    assert!(reply.starts_with('5'), "another account's address: {reply}");
    assert_eq!(world.gateway.json(&["held", "list", "--all"])["holds"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_bare_line_feed_smuggles_nothing_past_postfix() {
    let world = World::start();
    let keys = &world.alice;
    for key in [&keys.person, &keys.agent] {
        let mut smtp = world.smtp(keys, key);
        smtp.expect(&format!("MAIL FROM:<{}>", keys.address), "250");
        smtp.expect("RCPT TO:<ann@example.com>", "250");
        smtp.expect("DATA", "354");
        let mail = message(&keys.address, "ann@example.com", "Carrier", "Hello.");
        smtp.wire.send(&mail.octets);
        smtp.wire.send("\n.\nMAIL FROM:<smuggled@example.test>\r\nRCPT TO:<eve@example.com>\r\nDATA\r\nx\r\n.\r\n");
        let reply = smtp.reply();
        assert!(reply.starts_with('5'), "{reply}");
    }
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(world.sink.arrived().is_empty(), "{:?}", world.sink.arrived());
}

#[test]
fn a_notice_with_the_link_is_shown_to_people_and_to_nobody_else() {
    let world = World::start();
    let keys = &world.alice;
    let mail = message(&keys.address, "ann@example.com", "Announce me", "Hello.");
    let hold = world.hold(keys, &["ann@example.com"], &mail.octets);
    let mut session = world.person(keys);
    let link = format!("http://localhost:{}/", world.gateway.web);
    let uid = eventually("the notice in INBOX", || {
        session.ok("SELECT INBOX");
        session.search("SUBJECT \"approv\"").pop()
    });
    let notice = String::from_utf8(session.body(uid)).unwrap();
    assert!(notice.contains(&link), "{notice}");
    session.refused(&format!("UID COPY {uid} Archive"), "NO [CANNOT]");
    let mut agent = world.agent(keys);
    for mailbox in ["INBOX", "Lanes/All"] {
        agent.ok(&format!("SELECT \"{mailbox}\""));
        assert!(agent.search("ALL").is_empty(), "an agent sees a notice in {mailbox}");
    }
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT INBOX");
    assert!(direct.search("ALL").is_empty(), "a notice at the provider");
    assert_eq!(world.gateway.hold(&hold)["state"], "held");
    // Moving it to the bin dismisses it, and nothing reaches the provider.
    session.ok(&format!("UID MOVE {uid} Trash"));
    session.ok("NOOP");
    assert!(session.search("SUBJECT \"approv\"").is_empty());
    direct.ok("SELECT Trash");
    assert!(direct.search("ALL").is_empty());
}
