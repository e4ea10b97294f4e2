//! What an agent drafted and a person submits, and mail that an agent sends on.

use super::tests::{World, stuffed};
use crate::account::{KeyId, demo};
use crate::floor::action::Action;
use crate::floor::hold::Reason;
use crate::floor::submission::State;
use crate::outbox::lineage::Found;

const DRAFT: &[u8] =
    b"From: demo@example.org\r\nTo: priya@example.com\r\nSubject: The oak table\r\n\r\nDear Priya,\r\n\
    the oak table that you ordered in spring is ready; we can bring it on Friday between nine and noon.\r\n";

async fn drafted(world: &World) {
    let outbox = &world.bench.outbox;
    outbox.drafted(&world.bench.account, &KeyId("demoagent".into()), DRAFT).await.unwrap();
}

fn message(to: &str, subject: &str, text: &str) -> Vec<u8> {
    format!(
        "From: demo@example.org\r\nTo: {to}\r\nDate: Mon, 30 Nov 2026 00:00:00 +0000\r\nSubject: {subject}\r\n\r\n{text}\r\n"
    )
    .into_bytes()
}

#[tokio::test]
async fn a_person_who_submits_an_agents_draft_waits_and_other_mail_goes_octet_for_octet() {
    let world = World::plain().await;
    drafted(&world).await;
    let mut client = world.person().await;
    // Larger than what is read again at once, with lines that begin with dots.
    let mut own = message("priya@example.com", "Lunch", "Mine.");
    own.extend_from_slice(b".one\r\n..two\r\n\xff\0raw\r\n".repeat(9000).as_slice());
    client.begin(&["priya@example.com"]).await;
    for chunk in stuffed(&own).chunks(1000) {
        client.send(chunk).await;
    }
    client.expect(250).await;
    assert_eq!(world.provider.complete().len(), 1);
    assert_eq!(world.provider.complete()[0].message(), own);
    assert!(world.holds().is_empty());

    let edited = message(
        "bo@example.com",
        "Table",
        "Hi Bo, the OAK table that you ordered in spring, is ready. We can bring it tomorrow.",
    );
    client.begin(&["bo@example.com"]).await;
    client.send(&stuffed(&edited)).await;
    let reply = client.expect(250).await;
    assert!(reply.starts_with("250 2.0.0 held for approval as "), "{reply}");
    assert_eq!(world.provider.complete().len(), 1, "nothing more reached the provider");
    let [hold] = &world.holds()[..] else { panic!("one hold") };
    assert_eq!((hold.reason, hold.action, hold.state), (Reason::Lineage, Action::SendEmail, State::Held));
    assert_eq!(hold.expires_at, None, "a person's own mail doesn't expire");
    let lineage = hold.lineage.as_ref().unwrap();
    assert_eq!((lineage.found, lineage.key.as_str()), (Found::Passage, "demoagent"));
    assert!(lineage.text.contains("Dear Priya"));
    assert_eq!(world.held_octets(), edited);
}

#[tokio::test]
async fn mail_that_an_agent_sends_on_is_an_action_of_its_own() {
    let world = World::plain().await;
    let earlier: String = (0..60).map(|n| format!("word{n} ")).collect();
    let arrived = format!("From: Ann <ann@example.com>\r\nSubject: x\r\n\r\n{earlier}\r\n");
    world.bench.outbox.arrived(&world.bench.account, arrived.as_bytes()).await.unwrap();
    let quoting = format!("Look.\r\n\r\nOn 2 Nov 2026, Ann <ann@example.com> wrote:\r\n> {earlier}");
    // An introduction that names the recipient doesn't make it a reply.
    let forged = quoting.replace("ann@example.com", "bo@example.net");
    let copying = format!("Look what she says: {earlier}");
    for (to, text, action) in [
        ("ann@example.com", quoting.as_str(), Action::SendEmail),
        ("bo@example.net", quoting.as_str(), Action::ForwardExternal),
        ("bo@example.net", copying.as_str(), Action::ForwardExternal),
        ("bo@example.net", forged.as_str(), Action::ForwardExternal),
        ("ann@example.com", copying.as_str(), Action::SendEmail),
        ("bo@example.org", quoting.as_str(), Action::SendEmail),
        ("bo@example.net", "Nothing of hers.", Action::SendEmail),
    ] {
        let mut client = world.agent().await;
        client.begin(&[to]).await;
        client.send(&stuffed(&message(to, "x", text))).await;
        client.expect(250).await;
        let hold = world.holds().into_iter().find(|h| h.state == State::Held).unwrap();
        assert_eq!(hold.action, action, "{to}: {text}");
        let outbox = &world.bench.outbox;
        let shown = outbox.show(&world.bench.account, &hold.id, demo::ADDRESS).await.unwrap();
        assert_eq!(shown.payload.action, action);
        outbox.withdraw(&world.bench.account, &hold.id).await.unwrap();
    }
}
