//! The gateway's own binary over the wire, with the embedded provider:
//! dialogues of `tests/transcripts`, whole and cut everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tollgate::account::demo::{ADDRESS, AGENT_KEY, PERSON_KEY, PIN};

mod common;

use common::gateway::{EMBEDDED, Gateway};
use common::imap::Imap;
use common::transcript::{Cut, Transcript};
use common::{eventually, mail};

fn values() -> BTreeMap<&'static str, String> {
    let plain = |authzid: &str, key: &str| STANDARD.encode(format!("{authzid}\0{ADDRESS}\0{key}"));
    BTreeMap::from([
        ("USER", ADDRESS.to_owned()),
        ("PERSON", PERSON_KEY.to_owned()),
        ("AGENT", AGENT_KEY.to_owned()),
        ("USER_64", STANDARD.encode(ADDRESS)),
        ("AGENT_64", STANDARD.encode(AGENT_KEY)),
        ("PLAIN", plain("", PERSON_KEY)),
        ("PLAIN_AGENT", plain("", AGENT_KEY)),
        ("PLAIN_AS_ANOTHER", plain("eve@example.org", PERSON_KEY)),
    ])
}

/// A gateway whose sample mail is in its lanes.
fn ready() -> Gateway {
    // A transcript that is cut at every octet is as many sessions.
    let gateway = Gateway::spawn(&format!("[limits]\nagent_commands_per_minute = 1000000\n\n{EMBEDDED}"));
    // Mail from before the first start stays in INBOX until this.
    eventually("the backfill", || {
        let ran = gateway.tollgate(&["backfill", "--last", "100"]);
        (ran.code == Some(0)).then_some(())
    });
    let mut session = Imap::login(gateway.imap, ADDRESS, PERSON_KEY);
    eventually("the sample mail to be in its lanes", || {
        let answer = session.ok("STATUS Lanes/Push (MESSAGES)");
        let count = answer.untagged.first().and_then(|r| r.number("MESSAGES"));
        session.ok("EXAMINE \"Lanes/All\"");
        (count > Some(0) && session.search("ALL").len() >= 20).then_some(())
    });
    gateway
}

fn port(gateway: &Gateway, transcript: &Transcript) -> u16 {
    match transcript.face.as_str() {
        "imap" => gateway.imap,
        "smtp" => gateway.smtp,
        other => panic!("no face is called {other}"),
    }
}

/// Plays one that changes nothing: whole, by octets, cut at every octet.
fn split(name: &str) {
    let (gateway, transcript) = (ready(), Transcript::load(name, &values()));
    assert!(transcript.again, "{name} says that it changes something");
    let port = port(&gateway, &transcript);
    transcript.play(port, Cut::Whole);
    transcript.play(port, Cut::Single);
    for n in 1..transcript.sent() {
        transcript.play(port, Cut::At(n));
    }
}

/// Plays one that changes something, each time against a fresh gateway, and
/// looks at what it left.
fn once(name: &str, look: impl Fn(&Gateway)) {
    for cut in [Cut::Whole, Cut::Single] {
        let (gateway, transcript) = (ready(), Transcript::load(name, &values()));
        assert!(!transcript.again, "{name} says that it changes nothing");
        transcript.play(port(&gateway, &transcript), cut);
        look(&gateway);
    }
}

/// A test for each transcript that is played again and again.
macro_rules! split {
    ($($test:ident $file:literal)*) => {
        $(#[test] fn $test() { split($file); })*
        const SPLIT: &[&str] = &[$($file),*];
    };
}

split! {
    a_person_s_client_reads "imap-reading.txt"
    literals_of_both_kinds_are_understood "imap-literals.txt"
    braces_in_quotes_are_no_literal "imap-braces-in-quotes.txt"
    authenticate_plain_and_its_refusals "imap-authenticate.txt"
    authenticate_plain_with_an_initial_response "imap-initial-response.txt"
    mistakes_are_answered_and_end_nothing "imap-not-understood.txt"
    names_and_offers_are_what_they_say "imap-names-and-offers.txt"
    pipelined_commands_are_answered_in_order "imap-pipelined.txt"
    a_stranger_s_large_literal_is_refused "imap-large-literal-before-sign-in.txt"
    an_agent_s_commands_are_refused_one_by_one "imap-agent.txt"
    submission_keeps_its_order "smtp-order.txt"
    an_agent_s_submission_is_checked_before_it_is_held "smtp-agent-refusals.txt"
    false_ends_of_data_smuggle_nothing "smtp-smuggling.txt"
}

const ONCE: [&str; 4] =
    ["imap-long-line-before-sign-in.txt", "imap-append.txt", "smtp-agent-held.txt", "smtp-person.txt"];

#[test]
fn every_transcript_is_played() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".txt"))
        .collect();
    let played: BTreeSet<String> = SPLIT.iter().chain(&ONCE).map(|name| (*name).to_owned()).collect();
    assert_eq!(files, played);
}

#[test]
fn a_line_without_end_ends_a_stranger_s_connection() {
    once("imap-long-line-before-sign-in.txt", |gateway| {
        Imap::login(gateway.imap, ADDRESS, PERSON_KEY).ok("NOOP");
    });
}

#[test]
fn an_append_holds_lines_that_look_like_commands() {
    once("imap-append.txt", |gateway| {
        let mut session = Imap::login(gateway.imap, ADDRESS, PERSON_KEY);
        session.ok("EXAMINE Sent");
        let [uid] = session.search("SUBJECT \"look like commands\"")[..] else { panic!("one copy") };
        let octets = session.body(uid);
        assert!(octets.ends_with(b"\r\n\r\na9 LOGOUT\r\n{5}\r\n.\r\n"), "{:?}", String::from_utf8_lossy(&octets));
    });
}

#[test]
fn a_pipelined_submission_of_an_agent_is_held_with_its_exact_octets() {
    once("smtp-agent-held.txt", |gateway| {
        let held = gateway.json(&["held", "list"]);
        let [hold] = &held["holds"].as_array().unwrap()[..] else { panic!("one hold: {held}") };
        let id = hold["id"].as_str().unwrap();
        let octets = gateway.tollgate(&["held", "show", id, "--message", "-"]).ok().stdout;
        let wanted = "From: demo@example.org\r\nTo: ann@example.com\r\nDate: Mon, 30 Nov 2026 10:00:00 +0000\r\n\
                      Subject: dots\r\n\r\n.\r\n..\r\n.leading\r\nnot.leading\r\n";
        assert_eq!(String::from_utf8_lossy(&octets), wanted);
        // And after approval the provider's copy for the person's own address
        // can't exist; the hold says that it was sent.
        assert_eq!(gateway.approver(ADDRESS, PIN).approve(id, PIN).status, 303);
        gateway.wait_for_state(id, "sent");
    });
}

#[test]
fn a_person_s_pipelined_message_is_relayed_and_leaves_no_hold() {
    once("smtp-person.txt", |gateway| {
        assert_eq!(gateway.json(&["held", "list", "--all"])["holds"].as_array().map(Vec::len), Some(0));
    });
}

#[test]
fn every_sample_is_in_the_lane_of_its_stamp_and_in_lanes_all_once() {
    let gateway = ready();
    let mut session = Imap::login(gateway.imap, ADDRESS, PERSON_KEY);
    let mut in_lanes = BTreeMap::new();
    for lane in common::world::LANES {
        session.ok(&format!("EXAMINE \"{lane}\""));
        for uid in session.search("ALL") {
            let octets = session.body(uid);
            let (stamps, rest) = mail::unstamped(&octets);
            let stamp = mail::stamp(&stamps, "X-Tollgate-Lane").expect("a lane");
            assert_eq!(format!("lanes/{stamp}"), lane.to_ascii_lowercase());
            let before = in_lanes.insert(rest.to_vec(), lane);
            assert_eq!(before, None, "in two lanes");
        }
    }
    assert!(in_lanes.len() >= 20, "{}", in_lanes.len());
    let lanes: BTreeSet<&str> = in_lanes.values().copied().collect();
    assert_eq!(lanes.len(), 5, "samples are in all lanes: {lanes:?}");
    session.ok("EXAMINE \"Lanes/All\"");
    let all = session.search("ALL");
    assert_eq!(all.len(), in_lanes.len());
    for uid in all {
        let octets = session.body(uid);
        assert!(in_lanes.remove(mail::unstamped(&octets).1).is_some(), "twice in Lanes/All, or in no lane");
    }
}

#[test]
fn a_start_says_what_to_do_next_and_a_second_start_finds_its_state() {
    let mut gateway = Gateway::spawn(EMBEDDED);
    for wanted in ["Tollgate", PERSON_KEY, AGENT_KEY, PIN, "tollgate init"] {
        eventually(wanted, || gateway.log().contains(wanted).then_some(()));
    }
    let key = gateway.add_key(ADDRESS, "person", "second device");
    let certificate = std::fs::read(gateway.certificate()).unwrap();
    assert!(gateway.stop().success());
    gateway.start();
    assert_eq!(std::fs::read(gateway.certificate()).unwrap(), certificate, "the certificate stays");
    Imap::login(gateway.imap, ADDRESS, &key).ok("SELECT INBOX");
    let log = gateway.log();
    assert!(!log.contains(&key) && !log.contains("the-embedded-provider"), "a secret is in the log");
}
