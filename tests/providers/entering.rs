//! What clients put into lanes and into the provider's own mailboxes.

use crate::common::imap::Imap;
use crate::common::mail::message;
use crate::provider::{World, holdings};

pub(crate) fn moving(world: &World) {
    let mut direct = world.direct();
    let (sent, queue) = (world.name("Sent"), world.name("Lanes/Queue"));
    let mails = ["One", "Two", "Three"].map(|s| message("ann@example.com", &world.address, s, "From last year."));
    for mail in &mails {
        assert!(direct.append(&sent, "\\Seen", &mail.octets).status.starts_with("OK"));
    }
    let mut session = world.person();
    session.ok(&format!("SELECT \"{sent}\""));
    let can_move = session.ok("CAPABILITY").untagged[0].text.contains(" MOVE");
    let places = [queue.as_str(), "INBOX", queue.as_str()];
    for (n, (mail, place)) in mails.iter().zip(places).enumerate() {
        session.ok(&format!("SELECT \"{sent}\""));
        let [uid] = session.find(&mail.id)[..] else { panic!("one in {sent}") };
        let moves = n < 2;
        if moves && can_move {
            session.ok(&format!("UID MOVE {uid} \"{place}\""));
        } else {
            session.ok(&format!("UID COPY {uid} \"{place}\""));
            if moves {
                session.ok(&format!("UID STORE {uid} +FLAGS (\\Deleted)"));
                session.ok("EXPUNGE");
            }
        }
        let left = session.find(&mail.id).len();
        assert_eq!(left, usize::from(!moves), "in {sent}");
        let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
        assert_eq!(mailbox, place);
        assert_eq!(session.body(uid), mail.octets, "unstamped");
        assert!(session.flags(uid).contains(&"\\Seen".into()));
        let mut direct = world.direct();
        direct.ok("EXAMINE INBOX");
        assert_eq!(direct.find(&mail.id).len(), 1, "it is in the provider's INBOX");
    }
    session.ok(&format!("SELECT \"{sent}\""));
    assert_eq!(session.search("ALL").len(), 1);
    // Nothing can be put where everything is.
    session.refused(&format!("UID COPY 1:* \"{}\"", world.name("Lanes/All")), "NO [CANNOT]");
}

pub(crate) fn appending(world: &World) {
    let mut session = world.person();
    let lane = world.name("Lanes/Queue");
    for (mailbox, at_provider) in
        [(world.name("Sent"), world.name("Sent")), ("INBOX".into(), "INBOX".into()), (lane, "INBOX".into())]
    {
        let mail = message(&world.address, "ann@example.com", "Appended", ".dot\r\nHello.");
        let answer = session.append(&mailbox, "\\Seen", &mail.octets);
        assert!(answer.status.starts_with("OK"), "{mailbox}: {}", answer.status);
        session.ok(&format!("SELECT \"{mailbox}\""));
        let [uid] = session.find(&mail.id)[..] else { panic!("one in {mailbox}") };
        if world.kind.has_uidplus() {
            let told = answer.status.split([' ', ']']).nth(3).and_then(|n| n.parse().ok());
            assert!(answer.status.starts_with("OK [APPENDUID ") && told == Some(uid), "{mailbox}: {}", answer.status);
        }
        assert_eq!(session.body(uid), mail.octets, "{mailbox}: unstamped");
        assert!(session.flags(uid).contains(&"\\Seen".into()), "{mailbox}");
        let mut direct = world.direct();
        direct.ok(&format!("EXAMINE \"{at_provider}\""));
        let [original] = direct.find(&mail.id)[..] else { panic!("one at the provider in {at_provider}") };
        assert_eq!(direct.body(original), mail.octets);
        if at_provider == "INBOX" {
            assert_eq!(world.lane_of(&mut session, &mail.id).0, mailbox);
        }
    }
    let answer = session.append(&world.name("Nowhere"), "", b"Subject: x\r\n\r\nx\r\n");
    assert!(answer.status.starts_with("NO"), "{}", answer.status);
    let answer = session.append(&world.name("Lanes/All"), "", b"Subject: x\r\n\r\nx\r\n");
    assert!(answer.status.starts_with("NO [CANNOT]"), "{}", answer.status);
}

pub(crate) fn passed_through(world: &World) {
    let (mut session, mut direct) = (world.person(), world.direct());
    let work = world.name("Work");
    session.ok(&format!("CREATE \"{work}\""));
    let mut long = String::new();
    for n in 0..2000 {
        long.push_str(&format!("line {n} of a longer message\r\n"));
    }
    let mails = [
        message("ann@example.com", &world.address, "Short", "x"),
        message("ann@example.com", &world.address, "Long", &long),
    ];
    for mail in &mails {
        assert!(session.append(&work, "\\Seen Errand", &mail.octets).status.starts_with("OK"));
    }
    // The same questions, the same answers.
    let selected = |session: &mut Imap| {
        let answer = session.ok(&format!("EXAMINE \"{work}\""));
        let mut told: Vec<String> = answer.untagged.into_iter().map(|r| r.text).collect();
        told.retain(|t| t.ends_with(" EXISTS") || t.contains("[UIDVALIDITY ") || t.starts_with("* FLAGS"));
        told.sort();
        told
    };
    assert_eq!(selected(&mut session), selected(&mut direct));
    for command in [
        "UID FETCH 1:* (UID FLAGS RFC822.SIZE INTERNALDATE ENVELOPE BODYSTRUCTURE)",
        "UID FETCH 1:* (BODY.PEEK[] BODY.PEEK[HEADER])",
        "UID FETCH 2 (BODY.PEEK[TEXT]<10.1000>)",
        "FETCH 1:* FAST",
        "UID SEARCH SUBJECT long",
        "UID SEARCH KEYWORD Errand",
        "SEARCH TEXT \"line 1999\"",
    ] {
        let without_recent = |session: &mut Imap| {
            let answer = session.ok(command);
            let told: Vec<(String, Vec<Vec<u8>>)> = answer
                .untagged
                .into_iter()
                .filter(|r| r.text.contains("FETCH") || r.text.contains("SEARCH"))
                .map(|r| (r.text.replace(" \\Recent", "").replace("\\Recent ", ""), r.literals))
                .collect();
            told
        };
        let here = without_recent(&mut session);
        assert!(!here.is_empty(), "{command}");
        assert_eq!(here, without_recent(&mut direct), "{command}");
    }
    // Another client's doing is told here too.
    session.ok(&format!("SELECT \"{work}\""));
    direct.ok(&format!("SELECT \"{work}\""));
    direct.ok("UID STORE 1 +FLAGS (\\Flagged)");
    direct.ok("UID STORE 2 +FLAGS (\\Deleted)");
    direct.ok("EXPUNGE");
    let answer = session.ok("NOOP");
    let again = session.ok("NOOP");
    let told = |what: &str| answer.untagged.iter().chain(&again.untagged).any(|r| r.text.contains(what));
    assert!(told("2 EXPUNGE"), "{answer:?} {again:?}");
    assert!(session.flags(1).contains(&"\\Flagged".into()));
    session.ok("UID STORE 1 +FLAGS (\\Deleted)");
    session.ok("CLOSE");
    direct.ok(&format!("EXAMINE \"{work}\""));
    assert_eq!(direct.search("ALL").len(), 0, "CLOSE expunges");
}

pub(crate) fn agents(world: &World) {
    let mut direct = world.direct();
    let mail = message("ann@example.com", &world.address, "For both", "Text.");
    world.provider.deliver(&mail.octets);
    let (mut person, mut agent) = (world.person(), world.agent());
    let (lane, uid) = world.lane_of(&mut person, &mail.id);
    let octets = person.body(uid);
    let (same, uid) = world.lane_of(&mut agent, &mail.id);
    assert_eq!((same, agent.body(uid)), (lane, octets));
    let before = holdings(&mut direct);
    for command in [
        format!("UID STORE {uid} +FLAGS (\\Deleted)"),
        format!("UID COPY {uid} \"{}\"", world.name("Trash")),
        format!("UID COPY {uid} \"{}\"", world.other_lane("")),
        "EXPUNGE".to_owned(),
        format!("CREATE \"{}\"", world.name("Own")),
        format!("DELETE \"{}\"", world.name("Sent")),
    ] {
        agent.refused(&command, "NO [NOPERM]");
    }
    agent.ok(&format!("UID FETCH {uid} (BODY[])"));
    for mailbox in ["INBOX".to_owned(), world.name("Sent"), world.name("Lanes/Queue"), world.name("Trash")] {
        let answer = agent.append(&mailbox, "", &mail.octets);
        assert!(answer.status.starts_with("NO [NOPERM]"), "{mailbox}: {}", answer.status);
    }
    assert_eq!(holdings(&mut direct), before);
    let drafts = world.name("Drafts");
    let draft = message(&world.address, "ann@example.com", "A draft", "Text.");
    let answer = agent.append(&drafts, "\\Draft", &draft.octets);
    assert!(answer.status.starts_with("OK"), "{}", answer.status);
    direct.ok(&format!("EXAMINE \"{drafts}\""));
    assert_eq!(direct.find(&draft.id).len(), 1);
}

pub(crate) fn many(world: &World) {
    let (mut session, mut direct) = (world.person(), world.direct());
    let (work, queue, info) = (world.name("Work"), world.name("Lanes/Queue"), world.name("Lanes/Info"));
    direct.ok(&format!("CREATE \"{work}\""));
    let mails: Vec<_> = (0..30)
        .map(|n| message("ann@example.com", &world.address, &format!("Number {n}"), &"line\r\n".repeat(n)))
        .collect();
    for mail in &mails {
        direct.append(&work, "", &mail.octets);
    }
    // All at once into a lane, some by their numbers onward, some back.
    session.ok(&format!("SELECT \"{work}\""));
    let answer = session.ok(&format!("UID COPY 1:* \"{queue}\""));
    if world.kind.has_uidplus() {
        assert!(answer.status.contains("[COPYUID "), "{}", answer.status);
    }
    session.ok(&format!("SELECT \"{queue}\""));
    for mail in &mails {
        let [uid] = session.find(&mail.id)[..] else { panic!("{} once in {queue}", mail.id) };
        assert_eq!(session.body(uid), mail.octets);
    }
    session.ok(&format!("COPY 5:9,20 \"{info}\""));
    session.ok("STORE 5:9,20 +FLAGS.SILENT (\\Deleted)");
    session.ok("EXPUNGE");
    assert_eq!(session.search("ALL").len(), 24);
    session.ok(&format!("SELECT \"{info}\""));
    assert_eq!(session.search("ALL").len(), 6);
    session.ok("STORE 1:* +FLAGS (\\Flagged Errand)");
    session.ok(&format!("SELECT \"{work}\""));
    session.ok("UID STORE 1:* +FLAGS.SILENT (\\Deleted)");
    session.ok("EXPUNGE");
    session.ok(&format!("SELECT \"{}\"", world.name("Lanes/All")));
    let answer = session.ok(&format!("COPY 1:* \"{work}\""));
    if world.kind.has_uidplus() {
        assert!(answer.status.contains("[COPYUID "), "{}", answer.status);
    }
    let mut direct = world.direct();
    for mailbox in ["INBOX", work.as_str()] {
        direct.ok(&format!("EXAMINE \"{mailbox}\""));
        assert_eq!(direct.search("ALL").len(), 30, "{mailbox}");
        assert_eq!(direct.search("FLAGGED KEYWORD Errand").len(), 6, "{mailbox}");
        for mail in &mails {
            let [uid] = direct.find(&mail.id)[..] else { panic!("once in {mailbox}") };
            assert_eq!(direct.body(uid), mail.octets, "without stamps in {mailbox}");
        }
    }
}
