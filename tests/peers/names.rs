//! A name that the person writes to, on an address of somebody else.

use crate::common::eventually;
use crate::common::mail::{Message, message, stamp, unstamped};
use crate::common::world::{Keys, World};

const ANA: &str = "ana@example.com";
const OTHER: &str = "ana.marin@mailbox.example.net";
/// The second and the third only look like the first.
const WRITTEN: [&str; 3] = ["Ana Marin", "ANA  MARIN", "\u{410}na Marin"];

fn deliver(world: &World, keys: &Keys, name: &str, address: &str) -> Message {
    // RFC 2047 for the one with a Cyrillic letter.
    use base64::Engine as _;
    let encoded = format!("=?utf-8?B?{}?=", base64::engine::general_purpose::STANDARD.encode(name));
    let name = if name.is_ascii() { format!("\"{name}\"") } else { encoded };
    let mail = message(&format!("{name} <{address}>"), &keys.address, "The invoice", "Please pay today.");
    let user = keys.address.split('@').next().unwrap();
    world.dovecot.deliver(user, address, &mail.octets);
    mail
}

/// Whether a message that is delivered now is taken for a forgery.
#[track_caller]
fn is_spoofed(world: &World, keys: &Keys, name: &str, address: &str) -> bool {
    let mail = deliver(world, keys, name, address);
    let mut session = world.person(keys);
    let (_, uid) = world.lane_of(&mut session, &mail.id);
    let octets = session.body(uid);
    let (stamps, _) = unstamped(&octets);
    assert!(stamp(&stamps, "X-Tollgate-Decision").is_some(), "{stamps:?}");
    stamp(&stamps, "X-Tollgate-Signals").is_some_and(|s| s.split_whitespace().any(|s| s == "spoofed"))
}

#[test]
fn the_name_of_someone_written_to_on_another_address_is_spoofed() {
    let mut world = World::start();
    let (alice, bob) = (world.alice.clone(), world.bob.clone());
    // Nobody was written to yet: a name alone is nobody's.
    assert!(!is_spoofed(&world, &alice, WRITTEN[0], ANA));
    assert!(!is_spoofed(&world, &alice, WRITTEN[0], OTHER));
    let mail = message(&alice.address, ANA, "Hello", "Hello Ana.");
    let reply = world.smtp(&alice, &alice.person).submit(&alice.address, &[ANA], &mail.octets);
    assert!(reply.starts_with("250"), "{reply}");
    // It is noted a moment after the client's 250.
    eventually("the name to be known", || is_spoofed(&world, &alice, WRITTEN[0], OTHER).then_some(()));
    for again in [false, true] {
        if again {
            world.gateway.restart_after_kill_9();
        }
        for name in WRITTEN {
            assert!(is_spoofed(&world, &alice, name, OTHER), "{name}, after a restart: {again}");
        }
        assert!(!is_spoofed(&world, &alice, WRITTEN[0], ANA), "her own address");
        assert!(!is_spoofed(&world, &alice, "Ana Marinova", OTHER), "another name");
        assert!(!is_spoofed(&world, &bob, WRITTEN[0], OTHER), "Bob never wrote to her");
    }
}

#[test]
fn a_name_that_only_an_agent_wrote_to_is_not_known() {
    let world = World::start();
    let alice = &world.alice;
    assert!(!is_spoofed(&world, alice, WRITTEN[0], ANA));
    let mail = message(&alice.address, ANA, "Hello", "Hello Ana.");
    let hold = world.hold(alice, &[ANA], &mail.octets);
    world.approver(alice).approve(&hold, crate::common::world::PIN);
    world.gateway.wait_for_state(&hold, "sent");
    assert!(!is_spoofed(&world, alice, WRITTEN[0], OTHER));
}
