//! Courier can send whatever is put into a mailbox. An agent can put nothing
//! there.

use crate::common::mail::message;
use crate::provider::{Kind, World};

#[test]
fn an_agent_gets_nothing_into_the_mailbox_from_which_courier_sends() {
    let world = World::start(Kind::CourierOutbox(".Outbox"));
    let outbox = world.name("Outbox");
    let mail = message(&world.address, "ann@example.com", "Out", "Text.");
    let mut direct = world.direct();
    direct.ok(&format!("CREATE \"{outbox}\""));
    direct.append("INBOX", "", &mail.octets);
    direct.append(&world.name("Drafts"), "\\Draft", &mail.octets);
    let mut agent = world.agent();
    let (_, uid) = world.lane_of(&mut agent, &mail.id);
    for name in [outbox.clone(), outbox.to_ascii_lowercase(), format!("{outbox}.Drafts")] {
        agent.refused(&format!("UID COPY {uid} \"{name}\""), "NO [NOPERM]");
        agent.refused(&format!("UID MOVE {uid} \"{name}\""), "NO [NOPERM]");
        agent.refused(&format!("CREATE \"{name}\""), "NO [NOPERM]");
    }
    for name in [&outbox, &outbox.to_ascii_lowercase()] {
        let answer = agent.append(name, "\\Draft", &mail.octets);
        assert!(answer.status.starts_with("NO [NOPERM]"), "{}", answer.status);
    }
    agent.ok(&format!("SELECT \"{}\"", world.name("Drafts")));
    agent.refused(&format!("COPY 1 \"{outbox}\""), "NO [NOPERM]");
    assert_eq!(world.provider.sent(), "", "nothing was sent");
    // What the person puts there is sent: that is between them and the provider.
    let mut person = world.person();
    person.ok(&format!("SELECT \"{}\"", world.name("Drafts")));
    person.ok(&format!("COPY 1 \"{outbox}\""));
    assert!(world.provider.sent().contains(&mail.id), "Courier is set up to send");
}

#[test]
fn an_agent_s_draft_is_not_sent_by_a_provider_that_sends_from_drafts() {
    let world = World::start(Kind::CourierOutbox(".Drafts"));
    let drafts = world.name("Drafts");
    let mail = message(&world.address, "ann@example.com", "Draft", "Text.");
    let mut agent = world.agent();
    for name in [drafts.clone(), drafts.to_ascii_lowercase()] {
        let answer = agent.append(&name, "\\Draft", &mail.octets);
        assert!(answer.status.starts_with("NO [NOPERM]"), "{name}: {}", answer.status);
    }
    assert_eq!(world.provider.sent(), "");
    let answer = world.person().append(&drafts, "\\Draft", &mail.octets);
    assert!(answer.status.starts_with("OK"), "{}", answer.status);
    assert!(world.provider.sent().contains(&mail.id), "Courier is set up to send");
}
