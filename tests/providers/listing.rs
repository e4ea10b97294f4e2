//! Signing in, and which mailboxes there are.

use std::collections::BTreeSet;

use crate::common::imap::Imap;
use crate::common::mail::message;
use crate::provider::{LEAVES, World};

pub(crate) fn signing_in(world: &World) {
    world.person().ok("NOOP");
    world.agent().ok("NOOP");
    let mut session = Imap::connect(world.gateway.imap);
    session.refused(&format!("LOGIN {} alicepw", world.address), "NO");
    let mut direct = world.direct();
    direct.ok("NOOP");
}

/// The names that LIST or LSUB tells.
fn told(session: &mut Imap, command: &str) -> BTreeSet<String> {
    let listed = session.ok(command).listed();
    let names: BTreeSet<String> = listed.iter().map(|(_, n)| n.clone()).collect();
    assert_eq!(names.len(), listed.len(), "{command}: a name twice in {listed:?}");
    names
}

fn set<const N: usize>(names: [String; N]) -> BTreeSet<String> {
    names.into_iter().collect()
}

pub(crate) fn names(world: &World) {
    let (mut session, mut direct) = (world.person(), world.direct());
    let parent = world.name("Lanes");
    let lanes: BTreeSet<String> = world.lanes().into_iter().collect();
    let all = world.name("Lanes/All");
    let ours: BTreeSet<String> = lanes.iter().cloned().chain([all.clone(), parent.clone()]).collect();
    let delimiter = world.kind.delimiter();

    // The person's prefix and delimiter are the provider's.
    let namespace = |session: &mut Imap| {
        let answer = session.ok("NAMESPACE");
        answer.untagged.into_iter().map(|r| r.text).find(|t| t.starts_with("* NAMESPACE")).expect("NAMESPACE")
    };
    let here = namespace(&mut session);
    assert_eq!(here, namespace(&mut direct));
    assert!(here.starts_with(&format!("* NAMESPACE ((\"{}\" \"{delimiter}\")", world.kind.prefix())), "{here}");

    // Everything: what the provider lists, and ours.
    let there = told(&mut direct, "LIST \"\" \"*\"");
    assert!(there.is_disjoint(&ours), "{there:?}");
    let here = told(&mut session, "LIST \"\" \"*\"");
    assert_eq!(here, there.union(&ours).cloned().collect());
    for response in session.ok("LIST \"\" \"*\"").untagged {
        assert!(response.text.contains(&format!(") \"{delimiter}\" ")), "{}", response.text);
    }
    // One level at a time, as clients walk it; with and without a reference.
    let top = told(&mut session, "LIST \"\" %");
    let top_there = told(&mut direct, "LIST \"\" %");
    if world.kind.prefix().is_empty() {
        assert_eq!(top, top_there.union(&set([parent.clone()])).cloned().collect());
    } else {
        assert_eq!(top, top_there);
        let listed = session.ok("LIST \"\" %").listed();
        let (attributes, _) = listed.iter().find(|(_, n)| n == "INBOX").expect("INBOX");
        assert!(!attributes.contains("\\HasNoChildren") && !attributes.contains("\\Noinferiors"), "{attributes}");
        let second = told(&mut session, "LIST \"\" INBOX.%");
        assert!(second.contains(&parent), "{second:?}");
        assert_eq!(told(&mut session, "LIST INBOX. %"), second);
    }
    let beneath: BTreeSet<String> = lanes.iter().cloned().chain([all.clone()]).collect();
    assert_eq!(told(&mut session, &format!("LIST \"\" {parent}{delimiter}%")), beneath);
    assert_eq!(told(&mut session, &format!("LIST {parent}{delimiter} *")), beneath);
    for (attributes, name) in session.ok("LIST \"\" \"*\"").listed() {
        assert_eq!(name == parent, attributes.contains("\\Noselect"), "{name}: {attributes}");
    }
    session.refused(&format!("SELECT \"{parent}\""), "NO");

    // Lanes are subscribed, but for the one that repeats them.
    let subscribed = told(&mut session, "LSUB \"\" \"*\"");
    assert!(lanes.is_subset(&subscribed) && !subscribed.contains(&all), "{subscribed:?}");
    let rest: BTreeSet<String> = subscribed.difference(&ours).cloned().collect();
    assert_eq!(rest, told(&mut direct, "LSUB \"\" \"*\""));
    let one = world.name("Lanes/Info");
    session.ok(&format!("UNSUBSCRIBE \"{one}\""));
    session.ok(&format!("SUBSCRIBE \"{all}\""));
    let subscribed = told(&mut session, "LSUB \"\" \"*\"");
    assert!(!subscribed.contains(&one) && subscribed.contains(&all), "{subscribed:?}");
    assert_eq!(rest, told(&mut direct, "LSUB \"\" \"*\""), "subscriptions of ours aren't the provider's");
    // Agents see the same names, and what became of what they submitted.
    let theirs: BTreeSet<String> = ["Tollgate", "Tollgate/Outbox"].map(|n| world.name(n)).into();
    assert_eq!(told(&mut world.agent(), "LIST \"\" \"*\""), &here | &theirs);
    for leaf in LEAVES {
        let name = world.name(&format!("Lanes/{leaf}"));
        let status = session.ok(&format!("STATUS \"{name}\" (MESSAGES UIDNEXT UIDVALIDITY UNSEEN RECENT)"));
        assert!(status.untagged.iter().any(|r| r.text.contains("MESSAGES 0 UIDNEXT 1 ")), "{status:?}");
        session.ok(&format!("SELECT \"{name}\""));
    }
}

pub(crate) fn managing(world: &World) {
    let (mut session, mut direct) = (world.person(), world.direct());
    let bridge = world.name("Projects/Bridge");
    let tunnel = world.name("Projects/Tunnel");
    session.ok(&format!("CREATE \"{bridge}\""));
    assert!(direct.mailboxes().contains(&bridge));
    session.ok(&format!("SUBSCRIBE \"{bridge}\""));
    assert!(told(&mut session, "LSUB \"\" \"*\"").contains(&bridge));
    assert!(told(&mut direct, "LSUB \"\" \"*\"").contains(&bridge));
    session.ok(&format!("UNSUBSCRIBE \"{bridge}\""));
    assert!(!told(&mut direct, "LSUB \"\" \"*\"").contains(&bridge));
    let mail = message(&world.address, "ann@example.com", "Plan", "Hello.");
    assert!(session.append(&bridge, "", &mail.octets).status.starts_with("OK"));
    let answer = session.ok(&format!("STATUS \"{bridge}\" (MESSAGES UIDNEXT)"));
    assert!(answer.untagged.iter().any(|r| r.text.contains("MESSAGES 1")), "{answer:?}");
    session.ok(&format!("RENAME \"{bridge}\" \"{tunnel}\""));
    session.ok(&format!("SELECT \"{tunnel}\""));
    assert_eq!(session.find(&mail.id).len(), 1);
    session.ok("SELECT INBOX");
    session.ok(&format!("DELETE \"{tunnel}\""));
    let mut fresh = world.direct();
    let left = fresh.mailboxes();
    assert!(!left.contains(&tunnel) && !left.contains(&bridge), "{left:?}");
    let sent = world.name("Sent");
    let (parent, queue, own) = (world.name("Lanes"), world.name("Lanes/Queue"), world.name("Lanes/Own"));
    let elsewhere = world.name("Other");
    for command in [
        format!("CREATE \"{own}\""),
        format!("CREATE \"{parent}\""),
        format!("DELETE \"{queue}\""),
        format!("DELETE \"{parent}\""),
        format!("RENAME \"{queue}\" \"{elsewhere}\""),
        format!("RENAME \"{sent}\" \"{queue}\""),
        format!("RENAME \"{sent}\" \"{own}\""),
    ] {
        session.refused(&command, "NO [CANNOT]");
    }
    assert_eq!(fresh.mailboxes().iter().filter(|n| n.contains("Lanes")).count(), 0);
    assert!(fresh.mailboxes().contains(&sent));
    session.refused(&format!("SELECT \"{}\"", world.name("Nowhere")), "NO");
}

pub(crate) fn alone(world: &World) {
    let mut direct = world.direct();
    for name in direct.mailboxes() {
        if name != "INBOX" {
            direct.ok(&format!("UNSUBSCRIBE \"{name}\""));
            direct.ok(&format!("DELETE \"{name}\""));
        }
    }
    // Dovecot makes some mailboxes anew, but not beneath INBOX.
    let there = told(&mut direct, "LIST \"\" \"*\"");
    assert!(world.kind.prefix().is_empty() || there.len() == 1, "{there:?}");
    direct.ok("UNSUBSCRIBE INBOX");
    let mut session = world.person();
    let listed = session.ok("LIST \"\" %").listed();
    let (parent, root) = (world.name("Lanes"), world.kind.prefix().trim_end_matches('.'));
    let top = if root.is_empty() { parent.as_str() } else { root };
    let (attributes, _) = listed.iter().find(|(_, n)| n == top).unwrap_or_else(|| panic!("{top}: {listed:?}"));
    assert!(attributes.contains("\\HasChildren") && !attributes.contains("\\HasNoChildren"), "{listed:?}");
    assert!(!attributes.contains("\\Noinferiors"), "{listed:?}");
    if !root.is_empty() {
        assert!(!attributes.contains("\\Noselect"), "INBOX can be selected: {listed:?}");
    }
    // A client that walks what is subscribed level by level finds the lanes.
    assert!(told(&mut session, "LSUB \"\" %").contains(top));
    assert!(told(&mut session, "LSUB \"\" \"*\"").is_superset(&world.lanes().into_iter().collect()));
    if !root.is_empty() {
        assert!(told(&mut session, "LSUB \"\" INBOX.%").contains(&parent));
    }
}

pub(crate) fn collisions(world: &mut World) {
    let mut direct = world.direct();
    // The parent alone, the parent that only a child implies, another case.
    for path in ["Lanes", "Lanes/Mine", "lanes"] {
        let name = world.name(path);
        direct.ok(&format!("CREATE \"{name}\""));
        world.gateway.stop();
        world.gateway.start();
        let mut session = world.person();
        let answer = session.command("SELECT INBOX");
        assert!(answer.status.starts_with("NO"), "{name} would be hidden: {}", answer.status);
        direct.ok(&format!("DELETE \"{name}\""));
        // Some keep the parent that they made for the child.
        let parent = world.name("Lanes");
        if direct.mailboxes().contains(&parent)
            || direct.ok("LIST \"\" \"*\"").listed().iter().any(|(_, n)| *n == parent)
        {
            // Cyrus keeps what was deleted by name and second: two deletions
            // of one name in a second are refused.
            crate::common::eventually("the deletion of the parent", || {
                direct.command(&format!("DELETE \"{parent}\"")).status.starts_with("OK").then_some(())
            });
        }
    }
    world.gateway.stop();
    world.gateway.start();
    world.person().ok("SELECT INBOX");
}
