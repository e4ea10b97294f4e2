//! What happens to the provider's INBOX through a lane, and what does not.

use crate::common::eventually;
use crate::common::mail::{Message, message, stamp, unstamped};
use crate::provider::{World, holdings};

fn delivered(world: &World, count: usize) -> Vec<Message> {
    let one = |n: usize| message("ann@example.com", &world.address, &format!("Number {n}"), &format!("Text {n}."));
    let mails: Vec<Message> = (0..count).map(one).collect();
    for mail in &mails {
        world.provider.deliver(&mail.octets);
    }
    let mut session = world.person();
    for mail in &mails {
        world.lane_of(&mut session, &mail.id);
    }
    mails
}

pub(crate) fn switched_off(mut world: World) {
    let mails = delivered(&world, 3);
    let before = holdings(&mut world.direct());
    let mut session = world.person();
    // One drag, one copy with \Deleted as old clients do it, one look.
    let (lane, uid) = world.lane_of(&mut session, &mails[0].id);
    let target = world.other_lane(&lane);
    // A provider without UIDPLUS and MOVE has no MOVE here either.
    if session.ok("CAPABILITY").untagged[0].text.contains(" MOVE") {
        session.ok(&format!("UID MOVE {uid} \"{target}\""));
    } else {
        session.ok(&format!("UID COPY {uid} \"{target}\""));
        session.ok(&format!("UID STORE {uid} +FLAGS (\\Deleted)"));
        session.ok("EXPUNGE");
    }
    let (now, moved) = world.lane_of(&mut session, &mails[0].id);
    assert_eq!(now, target);
    let octets = session.body(moved);
    let told = stamp(&unstamped(&octets).0, "X-Tollgate-Lane").map(|l| world.name(&format!("Lanes/{l}")));
    assert_eq!(told.map(|t| t.to_ascii_lowercase()), Some(target.to_ascii_lowercase()));

    let (lane, uid) = world.lane_of(&mut session, &mails[1].id);
    let target = world.other_lane(&lane);
    session.ok(&format!("UID COPY {uid} \"{target}\""));
    session.ok(&format!("UID STORE {uid} +FLAGS.SILENT (\\Deleted)"));
    session.ok("EXPUNGE");
    assert_eq!(world.lane_of(&mut session, &mails[1].id).0, target);

    let (_, uid) = world.lane_of(&mut session, &mails[2].id);
    session.ok(&format!("UID FETCH {uid} (BODY.PEEK[] BODYSTRUCTURE ENVELOPE)"));
    session.ok(&format!("UNSUBSCRIBE \"{}\"", world.name("Lanes/Info")));
    let mut agent = world.agent();
    agent.ok(&format!("SELECT \"{}\"", world.name("Lanes/All")));
    agent.ok("UID FETCH 1:* (FLAGS BODY.PEEK[])");
    for name in before.keys() {
        session.ok(&format!("EXAMINE \"{name}\""));
        session.ok("UID FETCH 1:* (UID FLAGS BODY.PEEK[HEADER])");
    }
    assert_eq!(holdings(&mut world.direct()), before, "while it runs");
    drop((session, agent));
    world.gateway.stop();
    assert_eq!(holdings(&mut world.direct()), before, "switched off");
}

pub(crate) fn shared_lanes(mut world: World) {
    let mail = message("ann@example.com", &world.address, "Shared", "Text.");
    world.provider.deliver(&mail.octets);
    let before = holdings(&mut world.direct());
    let mut session = world.person();
    session.ok("SELECT INBOX");
    let uid = eventually("it to be in INBOX", || {
        session.ok("NOOP");
        session.find(&mail.id).first().copied()
    });
    let lane = |flags: Vec<String>| flags.into_iter().find(|f| f.starts_with("$Tollgate")).expect("a lane's keyword");
    let now = lane(session.flags(uid));
    let other = if now == "$TollgatePush" { "$TollgateQueue" } else { "$TollgatePush" };
    session.ok(&format!("UID STORE {uid} +FLAGS ({other})"));
    eventually("the correction", || {
        session.ok("NOOP");
        let [uid] = session.find(&mail.id)[..] else { return None };
        (lane(session.flags(uid)) == other).then_some(())
    });
    assert_eq!(holdings(&mut world.direct()), before);
    drop(session);
    world.gateway.stop();
    assert_eq!(holdings(&mut world.direct()), before);
}

pub(crate) fn expunging(world: &World) {
    let mails = delivered(world, 3);
    let mut session = world.person();
    // Two of them into two lanes of their own.
    let targets = [world.name("Lanes/Info"), world.name("Lanes/Meeting")];
    for (mail, target) in mails.iter().zip(&targets) {
        let (lane, uid) = world.lane_of(&mut session, &mail.id);
        if lane != *target {
            session.ok(&format!("UID COPY {uid} \"{target}\""));
            session.ok(&format!("UID STORE {uid} +FLAGS (\\Deleted)"));
            session.ok("EXPUNGE");
        }
    }
    for (mail, target) in mails.iter().zip(&targets) {
        let (lane, uid) = world.lane_of(&mut session, &mail.id);
        assert_eq!(lane, *target);
        session.ok(&format!("UID STORE {uid} +FLAGS (\\Deleted)"));
    }
    let mut direct = world.direct();
    direct.ok("EXAMINE INBOX");
    assert_eq!(direct.search("DELETED").len(), 2);
    session.ok(&format!("SELECT \"{}\"", targets[0]));
    let answer = session.command("EXPUNGE");
    let mut direct = world.direct();
    direct.ok("EXAMINE INBOX");
    if world.kind.has_uidplus() {
        assert!(answer.status.starts_with("OK") && answer.told("* 1 EXPUNGE"), "{answer:?}");
        assert!(direct.find(&mails[0].id).is_empty(), "it is gone");
    } else {
        // The provider could only expunge both; then it expunges neither.
        assert!(answer.status.starts_with("NO"), "{answer:?}");
        assert_eq!(direct.find(&mails[0].id).len(), 1, "a refusal changes nothing");
        session.ok(&format!("SELECT \"{}\"", targets[1]));
        let uid = session.find(&mails[1].id)[0];
        session.ok(&format!("UID STORE {uid} -FLAGS (\\Deleted)"));
        session.ok(&format!("SELECT \"{}\"", targets[0]));
        let answer = session.ok("EXPUNGE");
        assert!(answer.told("* 1 EXPUNGE"), "{answer:?}");
        let mut direct = world.direct();
        direct.ok("EXAMINE INBOX");
        assert!(direct.find(&mails[0].id).is_empty(), "now it is gone");
    }
    assert!(session.find(&mails[0].id).is_empty());
    let mut direct = world.direct();
    direct.ok("EXAMINE INBOX");
    for mail in &mails[1..] {
        assert_eq!(direct.find(&mail.id).len(), 1, "another view's mail stays");
        world.lane_of(&mut session, &mail.id);
    }
}

pub(crate) fn filing(world: &World) {
    let mails = delivered(world, 2);
    let mut session = world.person();
    let archive = world.name("Archived");
    let missing = session.command(&format!("SELECT \"{archive}\""));
    assert!(missing.status.starts_with("NO"), "{}", missing.status);
    let (lane, uid) = world.lane_of(&mut session, &mails[0].id);
    session.refused(&format!("UID COPY {uid} \"{archive}\""), "NO");
    session.ok(&format!("CREATE \"{archive}\""));
    let answer = session.ok(&format!("UID COPY {uid} \"{archive}\""));
    if world.kind.has_uidplus() {
        assert!(answer.status.starts_with("OK [COPYUID "), "{}", answer.status);
    }
    assert_eq!(world.lane_of(&mut session, &mails[0].id), (lane, uid), "a copy leaves it in its lane");
    let mut direct = world.direct();
    direct.ok("EXAMINE INBOX");
    let [original] = direct.find(&mails[0].id)[..] else { panic!("one in INBOX") };
    let octets = direct.body(original);
    direct.ok(&format!("EXAMINE \"{archive}\""));
    let [copy] = direct.find(&mails[0].id)[..] else { panic!("one in {archive}") };
    assert_eq!(direct.body(copy), octets, "the provider's octets, without stamps");

    let (lane, uid) = world.lane_of(&mut session, &mails[1].id);
    let can_move = session.ok("CAPABILITY").untagged[0].text.contains(" MOVE");
    assert_eq!(can_move, world.kind.has_uidplus(), "MOVE is offered where it can be done");
    if can_move {
        let answer = session.ok(&format!("UID MOVE {uid} \"{archive}\""));
        assert!(
            answer.told("* OK [COPYUID ") && answer.told("* 1 EXPUNGE") || answer.told("* 2 EXPUNGE"),
            "{answer:?}"
        );
    } else {
        session.ok(&format!("UID COPY {uid} \"{archive}\""));
        session.ok(&format!("UID STORE {uid} +FLAGS (\\Deleted)"));
        session.ok("EXPUNGE");
    }
    assert!(session.find(&mails[1].id).is_empty(), "it left {lane}");
    let mut direct = world.direct();
    direct.ok("EXAMINE INBOX");
    assert!(direct.find(&mails[1].id).is_empty());
    direct.ok(&format!("EXAMINE \"{archive}\""));
    assert_eq!(direct.find(&mails[1].id).len(), 1);
    session.ok(&format!("SELECT \"{archive}\""));
    assert_eq!(session.search("ALL").len(), 2);
    session.ok(&format!("SELECT \"{}\"", world.name("Lanes/All")));
    assert_eq!(session.search("ALL").len(), 1);
}
