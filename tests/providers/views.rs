//! What a lane shows of the provider's INBOX.

use crate::common::eventually;
use crate::common::mail::{message, stamp, unstamped};
use crate::provider::World;

pub(crate) fn arriving(world: &World) {
    let mut direct = world.direct();
    let mails = ["Lunch on Thursday?", "Your receipt 4711", "The minutes"]
        .map(|subject| message("ann@example.com", &world.address, subject, "Hello Alice,\r\n.\r\nbye."));
    let mut session = world.person();
    session.ok("SELECT INBOX");
    world.provider.deliver(&mails[0].octets);
    world.provider.deliver(&mails[1].octets);
    // A delivery by IMAP is one too.
    direct.append("INBOX", "", &mails[2].octets);
    for mail in &mails {
        let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
        let octets = session.body(uid);
        let (stamps, rest) = unstamped(&octets);
        let lane = stamp(&stamps, "X-Tollgate-Lane").expect("a lane");
        assert_eq!(mailbox.to_ascii_lowercase(), world.name(&format!("Lanes/{lane}")).to_ascii_lowercase());
        direct.ok("SELECT INBOX");
        let [original] = direct.find(&mail.id)[..] else { panic!("one copy at the provider") };
        assert_eq!(direct.body(original), rest, "what follows the stamps are the provider's octets");
        let mut section = |name: &str| {
            let answer = session.ok(&format!("UID FETCH {uid} (BODY.PEEK[{name}])"));
            answer.fetched()[0].literals.first().cloned().unwrap_or_default()
        };
        assert_eq!([section("HEADER"), section("TEXT")].concat(), octets);
        assert_eq!(section("1"), section("TEXT"));
        let fields = String::from_utf8(section("HEADER.FIELDS (X-Tollgate-Lane Message-ID)")).unwrap();
        assert!(fields.contains("X-Tollgate-Lane: ") && fields.contains(&mail.id), "{fields}");
        let border = octets.len() - rest.len();
        for (from, count) in [(0, 10), (border - 3, 7), (border, 5), (octets.len() - 4, 100), (octets.len() + 5, 5)] {
            let answer = session.ok(&format!("UID FETCH {uid} (BODY.PEEK[]<{from}.{count}>)"));
            let part = answer.fetched()[0].literals.first().cloned().unwrap_or_default();
            assert_eq!(part, octets[from.min(octets.len())..(from + count).min(octets.len())], "<{from}.{count}>");
        }
        let answer = session.ok(&format!("UID FETCH {uid} (FLAGS INTERNALDATE ENVELOPE BODYSTRUCTURE)"));
        let text = &answer.fetched()[0].text;
        assert!(
            text.contains(&mail.id) && text.contains("\"ann\" NIL") || text.contains("\"ann\" \"example.com\""),
            "{text}"
        );
        let there = direct.ok(&format!("UID FETCH {original} (INTERNALDATE)"));
        let date = there.fetched()[0].text.split("INTERNALDATE ").nth(1).unwrap().split('"').nth(1).unwrap().to_owned();
        assert!(text.contains(&date), "{text}: not {date}");
    }
    let all = world.name("Lanes/All");
    let answer = session.ok(&format!("STATUS \"{all}\" (MESSAGES UNSEEN UIDNEXT)"));
    assert!(answer.untagged.iter().any(|r| r.text.contains("MESSAGES 3 UNSEEN 3")), "{answer:?}");
    session.ok(&format!("SELECT \"{all}\""));
    for mail in &mails {
        let [uid] = session.find(&mail.id)[..] else { panic!("once in {all}") };
        session.ok(&format!("UID FETCH {uid} (BODY[HEADER])"));
        assert!(session.flags(uid).contains(&"\\Seen".into()), "FETCH without PEEK");
    }
    let answer = session.ok(&format!("STATUS \"{all}\" (UNSEEN)"));
    assert!(answer.untagged.iter().any(|r| r.text.contains("UNSEEN 0")), "{answer:?}");
    direct.ok("SELECT INBOX");
    assert_eq!(direct.search("SEEN").len(), 3);
}

pub(crate) fn flags(world: &World) {
    let mut direct = world.direct();
    let mail = message("ann@example.com", &world.address, "Flags", "Please read.");
    world.provider.deliver(&mail.octets);
    let mut session = world.person();
    let (lane, uid) = world.lane_of(&mut session, &mail.id);
    direct.ok("SELECT INBOX");
    let [original] = direct.find(&mail.id)[..] else { panic!("one copy") };
    let has = |flags: &[String], flag: &str| flags.iter().any(|f| f.eq_ignore_ascii_case(flag));

    session.ok(&format!("UID STORE {uid} +FLAGS (\\Seen \\Flagged $Forwarded Work)"));
    let here = session.flags(uid);
    direct.ok("NOOP");
    let there = direct.flags(original);
    for flag in ["\\Seen", "\\Flagged", "$Forwarded", "Work"] {
        assert!(has(&here, flag) && has(&there, flag), "{flag}: {here:?} {there:?}");
    }
    let answer = session.ok(&format!("UID STORE {uid} -FLAGS (\\Seen Work)"));
    assert!(answer.fetched().iter().any(|r| !r.text.contains("\\Seen")), "{answer:?}");
    session.ok(&format!("UID STORE {uid} +FLAGS.SILENT (\\Answered)"));
    direct.ok("NOOP");
    let there = direct.flags(original);
    assert!(!has(&there, "\\Seen") && !has(&there, "Work"), "{there:?}");
    assert!(has(&there, "\\Answered") && has(&there, "$Forwarded"), "{there:?}");
    session.ok(&format!("UID STORE {uid} FLAGS (\\Draft Other)"));
    direct.ok("NOOP");
    let mut there = direct.flags(original);
    there.retain(|f| f != "\\Recent");
    there.sort();
    assert_eq!(there, ["Other", "\\Draft"]);
    session.ok(&format!("UID STORE {uid} FLAGS ()"));
    direct.ok("NOOP");
    let mut there = direct.flags(original);
    there.retain(|f| f != "\\Recent");
    assert!(there.is_empty(), "{there:?}");

    // And the other way round.
    direct.ok(&format!("UID STORE {original} +FLAGS (\\Flagged Errand)"));
    eventually("the flags of another client", || {
        session.ok(&format!("SELECT \"{lane}\""));
        let flags = session.flags(uid);
        (has(&flags, "\\Flagged") && has(&flags, "Errand")).then_some(())
    });
    let selected = session.ok(&format!("EXAMINE \"{lane}\""));
    assert!(selected.status.contains("READ-ONLY"), "{}", selected.status);
    session.refused(&format!("UID STORE {uid} +FLAGS (\\Seen)"), "NO");
}

pub(crate) fn searching(world: &World) {
    let mut direct = world.direct();
    let subjects = ["Alpha plan", "Beta plan", "Gamma note"];
    let mails = subjects.map(|s| message("ann@example.com", &world.address, s, &format!("The body of {s}.")));
    for mail in &mails {
        world.provider.deliver(&mail.octets);
    }
    let mut session = world.person();
    for mail in &mails {
        world.lane_of(&mut session, &mail.id);
    }
    session.ok(&format!("SELECT \"{}\"", world.name("Lanes/All")));
    let [first] = session.find(&mails[0].id)[..] else { panic!("one") };
    session.ok(&format!("UID STORE {first} +FLAGS (\\Flagged Work)"));
    direct.ok("SELECT INBOX");
    // The one and the other name messages by Message-ID.
    let mut subjects_of = |keys: &str| {
        let ids = |session: &mut crate::common::imap::Imap| -> Vec<bool> {
            let found = session.search(keys);
            mails.iter().map(|m| session.find(&m.id).iter().any(|u| found.contains(u))).collect()
        };
        let (here, there) = (ids(&mut session), ids(&mut direct));
        assert_eq!(here, there, "{keys}");
        here.iter().filter(|f| **f).count()
    };
    for (keys, count) in [
        ("ALL", 3),
        ("SUBJECT plan", 2),
        ("SUBJECT \"beta PLAN\"", 1),
        ("BODY gamma", 1),
        ("TEXT \"body of alpha\"", 1),
        ("FLAGGED", 1),
        ("UNFLAGGED UNSEEN", 2),
        ("KEYWORD Work", 1),
        ("UNKEYWORD Work SUBJECT plan", 1),
        ("OR SUBJECT alpha SUBJECT gamma", 2),
        ("NOT SUBJECT plan", 1),
        ("FROM ann@example.com", 3),
        ("TO nobody", 0),
        ("HEADER Message-ID tests.example.test", 3),
        ("SMALLER 100000", 3),
        ("LARGER 100000", 0),
        ("SINCE 1-Jan-2020", 3),
        ("BEFORE 1-Jan-2020", 0),
        ("SENTSINCE 1-Jan-2020 SUBJECT note", 1),
        ("CHARSET UTF-8 SUBJECT plan", 2),
    ] {
        assert_eq!(subjects_of(keys), count, "{keys}");
    }
    // What we put before the message is found here only.
    assert_eq!(session.search("HEADER X-Tollgate-Lane \"\"").len(), 3);
    assert_eq!(direct.search("HEADER X-Tollgate-Lane \"\"").len(), 0);
}

pub(crate) fn others_at_work(world: &World) {
    let mut direct = world.direct();
    let mails: Vec<_> =
        (0..4).map(|n| message("ann@example.com", &world.address, &format!("Number {n}"), "Text.")).collect();
    for mail in &mails {
        world.provider.deliver(&mail.octets);
    }
    let mut session = world.person();
    for mail in &mails {
        world.lane_of(&mut session, &mail.id);
    }
    let all = world.name("Lanes/All");
    session.ok(&format!("SELECT \"{all}\""));
    let uids: Vec<u32> = mails.iter().map(|m| session.find(&m.id)[0]).collect();
    direct.ok("SELECT INBOX");
    let at: Vec<u32> = mails.iter().map(|m| direct.find(&m.id)[0]).collect();
    direct.ok(&format!("UID STORE {} +FLAGS (\\Flagged)", at[0]));
    direct.ok(&format!("UID STORE {} +FLAGS (\\Deleted)", at[1]));
    direct.ok("EXPUNGE");
    direct.ok(&format!("UID COPY {} {}", at[2], world.name("Trash")));
    let late = message("ann@example.com", &world.address, "Late", "Another.");
    world.provider.deliver(&late.octets);
    // This session stays selected; NOOP tells it.
    let mut told = Vec::new();
    eventually("EXPUNGE, FETCH and EXISTS in a session", || {
        let answer = session.ok("NOOP");
        told.extend(answer.untagged.into_iter().map(|r| r.text));
        let says = |what: &str| told.iter().any(|t| t.contains(what));
        (says(" EXPUNGE") && says("\\Flagged") && says(" EXISTS")).then_some(())
    });
    assert!(session.flags(uids[0]).contains(&"\\Flagged".into()));
    assert!(session.find(&mails[1].id).is_empty());
    assert_eq!(session.find(&mails[2].id), [uids[2]], "a copy leaves it");
    let (mailbox, uid) = world.lane_of(&mut session, &late.id);
    assert!(world.lanes().contains(&mailbox), "{mailbox}");
    let octets = session.body(uid);
    assert!(stamp(&unstamped(&octets).0, "X-Tollgate-Lane").is_some());
}
