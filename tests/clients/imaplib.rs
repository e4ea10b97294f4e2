//! Python's imaplib: the same walk at Dovecot, through the gateway in a
//! mailbox that passes through, and in views; and a look at stamped mail.

use serde_json::Value;

use crate::clients_of::{self, Login};
use crate::common::world::World;
use crate::corpus::delivered;
use crate::holdings::at_the_provider;
use crate::python::script;
use crate::table;

/// Steps that may be answered differently in a view.
const VIEWS: [(&str, &str); 4] = [
    ("status", "STATUS items come in the order in which they were asked"),
    ("fetch without peek", "the change of \\Seen is told in the answer and once more (RFC 9051 §6.4.5 allows both)"),
    ("fetch RFC822", "items come in another order"),
    ("a read-only store", "NO; Dovecot says OK and does nothing"),
];

fn walk(login: &Login, mailbox: &str) -> Vec<Value> {
    let port = login.imaps.to_string();
    let ran = script("walk.py", &[&port, login.trusts.to_str().unwrap(), &login.user, &login.password, mailbox]);
    serde_json::from_slice(&ran.ok().stdout).unwrap()
}

#[track_caller]
fn assert_same_walk(where_: &str, direct: &[Value], through: &[Value], may: &[(&str, &str)]) {
    assert_eq!(direct.len(), through.len(), "{where_}");
    let differing: Vec<&str> =
        direct.iter().zip(through).filter(|(a, b)| a != b).map(|(a, _)| a[0].as_str().unwrap()).collect();
    for (a, b) in direct.iter().zip(through).filter(|(a, b)| a != b) {
        let name = a[0].as_str().unwrap();
        assert!(may.iter().any(|(n, _)| *n == name), "{where_}, {name}:\ndirect  {a}\nthrough {b}");
    }
    for (name, why) in may {
        assert!(differing.contains(name), "{where_}: {name} doesn't differ any more; it was listed because: {why}");
    }
}

#[test]
fn imaplib_walks_a_passed_through_mailbox_and_views_as_it_walks_dovecot() {
    let world = World::start();
    let mut direct = world.dovecot.direct("alice");
    direct.ok("CREATE Walk");
    direct.ok("CREATE Walk2");
    let plain = walk(&clients_of::direct(&world, "alice"), "Walk");
    assert_eq!(plain.len(), 127);
    let login = clients_of::through(&world);
    assert_same_walk("Walk2", &plain, &walk(&login, "Walk2"), &[]);
    for view in ["INBOX", "Lanes/Info", "Lanes/Silent"] {
        assert_same_walk(view, &plain, &walk(&login, view), &VIEWS);
    }
    // What the walks copied and moved is at the provider, without stamps; what
    // they deleted is not.
    direct.ok("SELECT Archive");
    let mut counts = std::collections::BTreeMap::new();
    for uid in direct.search("ALL") {
        let octets = direct.body(uid);
        assert!(octets.starts_with(b"From: Ann <ann"), "{}", String::from_utf8_lossy(&octets));
        *counts.entry(crate::common::mail::header(&octets, "Message-ID").unwrap()).or_insert(0) += 1;
    }
    let expected =
        [("1", 5), ("2", 5), ("5", 5), ("6", 10)].map(|(n, count)| (format!("<walk{n}@example.com>"), count));
    assert!(counts.iter().eq(expected.iter().map(|(id, count)| (id, count))), "{counts:?}");
    for mailbox in ["INBOX", "Walk", "Walk2"] {
        direct.ok(&format!("SELECT {mailbox}"));
        assert_eq!(direct.search("ALL"), Vec::<u32>::new(), "{mailbox}");
    }
    table::is_true_of(&world, "imaplib");
}

#[test]
fn imaplib_sees_stamped_mail_as_dovecot_has_it_but_for_the_stamps() {
    let world = World::start();
    let mails = delivered(&world);
    let look = |login: &Login, mailbox: &str| -> Value {
        let port = login.imaps.to_string();
        let ran = script("look.py", &[&port, login.trusts.to_str().unwrap(), &login.user, &login.password, mailbox]);
        serde_json::from_slice(&ran.ok().stdout).unwrap()
    };
    let plain = look(&clients_of::direct(&world, "alice"), "INBOX");
    let before = at_the_provider(&world.dovecot, "alice");
    let stamped = look(&clients_of::through(&world), "Lanes/All");
    let all = plain["messages"].as_object().unwrap();
    assert_eq!(all.len(), mails.len());
    assert_eq!(all.len(), stamped["messages"].as_object().unwrap().len());
    for (id, a) in all {
        let b = &stamped["messages"][id];
        for (item, value) in a["items"].as_object().unwrap() {
            assert_eq!(value, &b["items"][item], "{id} {item}");
        }
        assert_eq!(b["size"][0], b["size"][1], "{id}: the size told is the size that came");
        assert!(b["size"][0].as_u64() > a["size"][0].as_u64(), "{id}: stamped");
        assert_eq!(b["header begins the message"], true, "{id}");
    }
    for (keys, hits) in plain["searches"].as_object().unwrap() {
        assert_eq!(hits, &stamped["searches"][keys], "{keys}");
    }
    assert_eq!(plain["searches"]["BODY Schöne Grüße"].as_array().unwrap().len(), 1);
    assert_eq!(at_the_provider(&world.dovecot, "alice"), before, "looking changes nothing");
}
