//! Many messages in one command. Dovecot answers several pipelined commands
//! before it completes the first (RFC 9051 §5.5 allows it); mbsync and
//! imaplib asked for a lane at once and some of its messages were missing.

use crate::common::eventually;
use crate::common::imap::Response;
use crate::common::mail::{header, message, unstamped};
use crate::common::world::World;

/// More than the gateway has in flight.
const MESSAGES: usize = 75;

#[test]
fn a_fetch_of_all_messages_at_once_answers_for_each_in_order() {
    let world = World::start();
    let mut sent = Vec::new();
    for n in 0..MESSAGES {
        // Lengths of every kind, so that answers end anywhere in what is read at once.
        let text = format!("{}\r\nend of {n}", "x".repeat(n * 37 % 900));
        let mail = message("ann@example.com", &world.alice.address, &format!("No {n}"), &text);
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
        sent.push(mail);
    }
    let mut session = world.person(&world.alice);
    eventually("all mail to be there", || {
        session.ok("SELECT \"Lanes/All\"");
        (session.search("ALL").len() == MESSAGES).then_some(())
    });
    let wholes: Vec<Vec<u8>> = (1..=75).map(|uid| session.body(uid)).collect();
    for (whole, mail) in wholes.iter().zip(&sent) {
        assert_eq!(header(whole, "Message-ID"), Some(format!("<{}>", mail.id)), "in the order of arrival");
        assert!(unstamped(whole).1.ends_with(&mail.octets));
    }
    for (item, literals) in [
        ("BODY.PEEK[]", 1),
        ("BODY.PEEK[HEADER]", 1),
        ("BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)] RFC822.SIZE", 1),
        ("FLAGS BODY.PEEK[]<0.60> BODY.PEEK[TEXT]", 2),
        ("BODYSTRUCTURE", 0),
        ("ENVELOPE", 0),
        ("BODY.PEEK[1]", 1),
    ] {
        for round in 0..3 {
            let answer = session.ok(&format!("UID FETCH 1:* (UID {item})"));
            let fetched = answer.fetched();
            let uids: Vec<u64> = fetched.iter().filter_map(|r| r.number("UID")).collect();
            assert_eq!(uids, (1..=75).collect::<Vec<u64>>(), "{item}, round {round}: {}", answer.status);
            for (response, whole) in fetched.iter().zip(&wholes) {
                assert_eq!(response.literals.len(), literals, "{item}: {}", response.text);
                let head = &whole[..crate::common::mail::header_length(whole)];
                let expected: &[u8] = match item {
                    "BODY.PEEK[]" => whole,
                    "BODY.PEEK[HEADER]" => head,
                    "BODY.PEEK[1]" => &whole[head.len()..],
                    _ => continue,
                };
                assert_eq!(response.literals[0], expected, "{item}");
            }
        }
    }
    // A message that vanished at the provider doesn't hide the others, and
    // isn't shown for being there: Dovecot answers for it with NIL, an
    // ENVELOPE of NILs or the structure of an empty message as long as the
    // command runs that asked for it.
    let mut left: Vec<u64> = (1..=75).collect();
    for (item, one, two) in [
        ("BODY.PEEK[HEADER]", 20, 40),
        ("BODY.PEEK[]", 1, 41),
        ("ENVELOPE", 21, 75),
        ("BODYSTRUCTURE", 22, 64),
        ("BODY.PEEK[1]", 23, 65),
        ("FLAGS BODY.PEEK[]<0.60> BODY.PEEK[TEXT]", 24, 66),
    ] {
        let before = session.ok(&format!("UID FETCH 1:* (UID {item})"));
        let mut direct = world.dovecot.direct("alice");
        direct.ok("SELECT INBOX");
        direct.ok(&format!("UID STORE {one},{two} +FLAGS.SILENT (\\Deleted)"));
        direct.ok("EXPUNGE");
        let answer = session.command(&format!("UID FETCH 1:* (UID {item})"));
        let fetched = answer.fetched();
        let uids: Vec<u64> = fetched.iter().filter_map(|r| r.number("UID")).collect();
        let all = left.clone();
        left.retain(|u| ![one, two].contains(u));
        // What Dovecot has in its cache it may still tell.
        let cached = ["ENVELOPE", "BODYSTRUCTURE"].contains(&item);
        let expected: Vec<u64> = all.into_iter().filter(|u| left.contains(u) || cached && uids.contains(u)).collect();
        assert!(uids == expected, "{item}: {uids:?}, {}", answer.status);
        let data = |r: &Response| (r.text.split_once(" FETCH ").unwrap().1.to_owned(), r.literals.clone());
        for response in &fetched {
            let uid = response.number("UID");
            let was = before.fetched().into_iter().find(|r| r.number("UID") == uid).unwrap();
            assert_eq!(data(response), data(was), "{item}");
        }
        session.ok("NOOP");
    }
}
