//! Mail that comes in: delivered by LMTP, read in its lane, flagged, searched.

use crate::common::eventually;
use crate::common::mail::{self, header, message, stamp, unstamped, with_fields};
use crate::common::world::{LANES, World};

#[test]
fn the_listing_shows_the_provider_s_mailboxes_and_the_lanes() {
    let world = World::start();
    let mut session = world.person(&world.alice);
    let listed = session.ok("LIST \"\" \"*\"").listed();
    let names: Vec<&str> = listed.iter().map(|(_, n)| n.as_str()).collect();
    for wanted in ["INBOX", "Drafts", "Sent", "Trash", "Junk", "Archive", "Lanes/All"].iter().chain(&LANES) {
        assert_eq!(names.iter().filter(|n| *n == wanted).count(), 1, "{wanted} once in {names:?}");
    }
    let attributes = |name: &str| listed.iter().find(|(_, n)| n == name).map(|(a, _)| a.to_ascii_lowercase());
    assert!(attributes("Lanes").is_some_and(|a| a.contains("\\noselect")), "{listed:?}");
    assert!(attributes("Sent").is_some_and(|a| a.contains("\\sent")), "{listed:?}");
    let mut direct = world.dovecot.direct("alice");
    assert!(!direct.mailboxes().iter().any(|n| n.starts_with("Lanes")), "the provider has lanes of its own");
}

#[test]
fn mail_that_is_delivered_appears_in_its_lane_with_stamps_and_its_true_size() {
    let world = World::start();
    let (person, mut direct) = (&world.alice, world.dovecot.direct("alice"));
    let subjects = ["Lunch on Thursday?", "Your receipt 4711", "The minutes"];
    let mails = subjects.map(|subject| message("ann@example.com", &person.address, subject, "Hello Alice,\r\nbye."));
    for mail in &mails {
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    }
    let mut session = world.person(person);
    for mail in &mails {
        let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
        let octets = session.body(uid);
        let (stamps, rest) = unstamped(&octets);
        let lane = stamp(&stamps, "X-Tollgate-Lane").expect("a lane").to_owned();
        assert_eq!(mailbox.to_ascii_lowercase(), format!("lanes/{lane}"), "{stamps:?}");
        assert!(stamp(&stamps, "X-Tollgate-Decision").is_some(), "{stamps:?}");
        direct.ok("SELECT INBOX");
        let [original] = direct.find(&mail.id)[..] else { panic!("one copy at the provider") };
        assert_eq!(direct.body(original), rest, "what follows the stamps are the provider's octets");
        mail::assert_arrived_untouched(rest, &mail.octets, &["Return-Path", "Delivered-To", "Received"]);
        session.ok("SELECT \"Lanes/All\"");
        assert_eq!(session.find(&mail.id).len(), 1, "Lanes/All shows it");
    }
}

#[test]
fn sections_partials_and_sizes_of_a_stamped_message_agree() {
    let world = World::start();
    let mail = message("ann@example.com", &world.alice.address, "Sections", "One.\r\nTwo.\r\nThree.");
    world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    let mut session = world.person(&world.alice);
    let (_, uid) = world.lane_of(&mut session, &mail.id);
    let whole = session.body(uid);
    let mut section = |name: &str| {
        let answer = session.ok(&format!("UID FETCH {uid} (BODY.PEEK[{name}])"));
        answer.fetched()[0].literals.first().cloned().unwrap_or_default()
    };
    let (head, text) = (section("HEADER"), section("TEXT"));
    assert_eq!([head.as_slice(), text.as_slice()].concat(), whole);
    assert_eq!(section("1"), text);
    let lane = String::from_utf8(section("HEADER.FIELDS (X-Tollgate-Lane Subject)")).unwrap();
    assert!(lane.contains("X-Tollgate-Lane: ") && lane.contains("Subject: Sections"), "{lane}");
    // Partials across the border of stamps and message.
    let border = whole.len() - unstamped(&whole).1.len();
    for (from, count) in [(0, 10), (border - 3, 7), (border, 5), (whole.len() - 4, 100), (whole.len() + 5, 5)] {
        let answer = session.ok(&format!("UID FETCH {uid} (BODY.PEEK[]<{from}.{count}>)"));
        let part = answer.fetched()[0].literals.first().cloned().unwrap_or_default();
        let wanted = &whole[from.min(whole.len())..(from + count).min(whole.len())];
        assert_eq!(part, wanted, "<{from}.{count}>");
    }
}

#[test]
fn a_forged_stamp_is_renamed_and_nothing_else_moves() {
    let world = World::start();
    let fields = "X-Tollgate-Lane: push\r\nFrom: mallory@example.com\r\nX-TOLLGATE-Scores: conf=1.00\r\n\
                  To: alice@example.test\r\nSubject: Look\r\n";
    let mail = with_fields(fields, "X-Tollgate-Lane: in the text is text");
    world.dovecot.deliver("alice", "mallory@example.com", &mail.octets);
    let mut session = world.person(&world.alice);
    let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
    let octets = session.body(uid);
    let (stamps, rest) = unstamped(&octets);
    let lanes = stamps.iter().filter(|(n, _)| n == "X-Tollgate-Lane").count();
    assert_eq!(lanes, 1, "{stamps:?}");
    assert_eq!(mailbox.to_ascii_lowercase(), format!("lanes/{}", stamp(&stamps, "X-Tollgate-Lane").unwrap()));
    assert_eq!(header(rest, "X-Tollgate-Lane"), None, "the forged field still has its name");
    assert_eq!(header(rest, "X-Tollgate-Scores"), None);
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT INBOX");
    let original = direct.find(&mail.id)[0];
    let original = direct.body(original);
    assert_eq!(original.len(), rest.len());
    let differing = original.iter().zip(rest).filter(|(a, b)| a != b).count();
    assert!((2..=24).contains(&differing), "{differing} octets differ");
    assert!(rest.ends_with(b"\r\n\r\nX-Tollgate-Lane: in the text is text\r\n"));
}

#[test]
fn flags_set_in_a_lane_are_the_provider_s_flags() {
    let world = World::start();
    let mail = message("ann@example.com", &world.alice.address, "Flags", "Please read.");
    world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    let mut session = world.person(&world.alice);
    let (_, uid) = world.lane_of(&mut session, &mail.id);
    session.ok(&format!("UID STORE {uid} +FLAGS (\\Seen \\Flagged)"));
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT INBOX");
    let original = direct.find(&mail.id)[0];
    let flags = direct.flags(original);
    assert!(flags.contains(&"\\Seen".into()) && flags.contains(&"\\Flagged".into()), "{flags:?}");
    session.ok(&format!("UID STORE {uid} -FLAGS.SILENT (\\Seen)"));
    direct.ok("NOOP");
    assert!(!direct.flags(original).contains(&"\\Seen".into()));
    // And the other way.
    direct.ok(&format!("UID STORE {original} +FLAGS (\\Answered)"));
    eventually("a flag set at the provider", || {
        session.ok("NOOP");
        session.flags(uid).contains(&"\\Answered".into()).then_some(())
    });
}

#[test]
fn a_fetch_without_peek_sets_seen_and_one_under_examine_does_not() {
    let world = World::start();
    let mail = message("ann@example.com", &world.alice.address, "Peek", "Please read.");
    world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    let mut session = world.person(&world.alice);
    let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
    session.ok(&format!("EXAMINE \"{mailbox}\""));
    session.ok(&format!("UID FETCH {uid} (BODY[])"));
    assert!(!session.flags(uid).contains(&"\\Seen".into()), "EXAMINE changes nothing");
    session.ok(&format!("SELECT \"{mailbox}\""));
    session.ok(&format!("UID FETCH {uid} (BODY.PEEK[] RFC822.SIZE)"));
    assert!(!session.flags(uid).contains(&"\\Seen".into()), "PEEK changes nothing");
    session.ok(&format!("UID FETCH {uid} (BODY[TEXT])"));
    assert!(session.flags(uid).contains(&"\\Seen".into()));
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT INBOX");
    let original = direct.find(&mail.id)[0];
    assert!(direct.flags(original).contains(&"\\Seen".into()));
}

#[test]
fn searching_a_lane_finds_what_it_should_and_no_more() {
    let world = World::start();
    let mail = message("ann@example.com", &world.alice.address, "Needle in hay", "The word is marzipan.");
    let other = message("eve@example.com", &world.alice.address, "Hay", "Nothing here.");
    for mail in [&mail, &other] {
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    }
    let mut session = world.person(&world.alice);
    world.lane_of(&mut session, &other.id);
    world.lane_of(&mut session, &mail.id);
    session.ok("SELECT \"Lanes/All\"");
    let [uid] = session.find(&mail.id)[..] else { panic!("one in Lanes/All") };
    for keys in [
        "SUBJECT \"needle\"".to_owned(),
        "TEXT marzipan".to_owned(),
        "BODY marzipan FROM ann".to_owned(),
        format!("UID {uid} UNSEEN"),
        "NOT SUBJECT nothing SUBJECT needle".to_owned(),
        "OR BODY marzipan SUBJECT nonexistent".to_owned(),
        "SINCE 1-Jan-2020 SUBJECT Needle SMALLER 100000".to_owned(),
        "CHARSET UTF-8 BODY marzipan".to_owned(),
    ] {
        assert_eq!(session.search(&keys), [uid], "{keys}");
    }
    assert!(session.search("SUBJECT Needle SEEN").is_empty());
    assert_eq!(session.search("ALL").len(), 2);
    let stamped = session.search("HEADER X-Tollgate-Lane \"\"");
    assert!(stamped.len() == 2, "a search sees the stamps: {stamped:?}");
}

#[test]
fn an_idle_client_is_told_of_mail_in_its_lane() {
    let world = World::start();
    let first = message("ann@example.com", &world.alice.address, "First", "Hello.");
    world.dovecot.deliver("alice", "ann@example.com", &first.octets);
    let mut session = world.person(&world.alice);
    let (mailbox, _) = world.lane_of(&mut session, &first.id);
    session.idle();
    // The same once more belongs in the same lane.
    let second = message("ann@example.com", &world.alice.address, "First", "Hello.");
    world.dovecot.deliver("alice", "ann@example.com", &second.octets);
    let told = loop {
        let response = session.response();
        if response.text.ends_with(" EXISTS") {
            break response.text;
        }
    };
    assert_eq!(told, "* 2 EXISTS");
    session.done();
    assert_eq!(session.find(&second.id).len(), 1, "it is in {mailbox}");
}
