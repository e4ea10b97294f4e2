//! A session with a passed-through mailbox needs one connection, and ends
//! with it.

use tollgate::demo::provider::Caps;

use crate::client::Client;
use crate::stand::{Stand, USER, message};

/// Everything that doesn't act on the selected mailbox.
const ERRANDS: [&str; 13] = [
    "NAMESPACE",
    "LIST \"\" *",
    "LSUB \"\" *",
    "STATUS Archive (MESSAGES UIDNEXT)",
    "CREATE New",
    "STATUS New (MESSAGES)",
    "SUBSCRIBE New",
    "RENAME New Newer",
    "UNSUBSCRIBE New",
    "DELETE Newer",
    "APPEND Drafts",
    "APPEND Archive",
    "APPEND INBOX",
];

async fn perform(client: &mut Client, command: &str, n: usize) -> crate::client::Reply {
    match command.strip_prefix("APPEND ") {
        Some(mailbox) => client.append(mailbox, &message(n)).await,
        None => client.command(command).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_serves_a_session_with_a_passed_through_mailbox() {
    // Three sessions and the watching connection: there is no other place.
    let stand = Stand::with(Caps::default(), 4, |_, _| {}).await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(stand.selected("Archive").await);
    }
    assert_eq!(stand.provider.faults().connections(), 4);
    for (i, session) in sessions.iter_mut().enumerate() {
        for command in ERRANDS {
            let reply = perform(session, command, 70 + i).await;
            assert!(reply.is("OK"), "{command}: {reply:?}");
            if command == "APPEND Archive" {
                assert!(reply.has(" EXISTS"), "told before the OK: {reply:?}");
                assert!(reply.is("OK [APPENDUID"), "{reply:?}");
            }
            if command == "STATUS New (MESSAGES)" {
                assert!(reply.has("* STATUS") && reply.has("New"), "{reply:?}");
            }
        }
        // It is still selected, and its numbers are those of the provider.
        let seen = session.ok("FETCH 1:* (BODY.PEEK[])").await.bodies();
        let there: Vec<Vec<u8>> = stand.provider.mailbox(USER, "Archive").iter().map(|m| m.octets.to_vec()).collect();
        assert_eq!(seen, there);
        session.ok("COPY 1 Drafts").await;
        session.ok("COPY 1 INBOX").await;
    }
    assert_eq!(stand.provider.faults().connections(), 4);
    // SELECT of another one, and of the same, goes over the same connection.
    for session in &mut sessions {
        session.ok("SELECT Drafts").await;
        session.ok("EXAMINE Archive").await;
    }
    assert_eq!(stand.provider.faults().connections(), 4);
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_tells_of_the_mailbox_during_an_errand_is_passed_on() {
    let stand = Stand::new().await;
    for errand in ["STATUS INBOX (MESSAGES)", "LIST \"\" *", "STATUS Archive (MESSAGES)", "APPEND INBOX"] {
        let mut reader = stand.selected("Archive").await;
        let mut writer = stand.selected("Archive").await;
        let before = stand.provider.mailbox(USER, "Archive").len();
        assert!(writer.append("Archive", &message(50)).await.is("OK"));
        writer.ok("STORE 1 +FLAGS.SILENT (\\Deleted)").await;
        writer.ok("EXPUNGE").await;
        let mut told = perform(&mut reader, errand, 51).await;
        assert!(told.is("OK"), "{errand}: {told:?}");
        // A provider need not tell it at once, but what it tells isn't lost.
        told.untagged.extend(reader.ok("NOOP").await.untagged);
        assert!(told.has("* 1 EXPUNGE"), "{errand}: {told:?}");
        assert!(told.has("EXISTS"), "{errand}: {told:?}");
        let seen = reader.ok("FETCH 1:* (BODY.PEEK[])").await.bodies();
        assert_eq!(seen.len(), before, "{errand}");
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_of_a_passed_through_mailbox_is_a_bye_at_every_command() {
    let stand = Stand::with(Caps::default(), 4, |_, _| {}).await;
    let others =
        ["FETCH 1 (FLAGS)", "STORE 1 +FLAGS (\\Seen)", "SEARCH ALL", "NOOP", "CHECK", "EXPUNGE", "COPY 1 INBOX"];
    for bye in [None, Some("going down")] {
        for command in others.iter().chain(&ERRANDS) {
            let mut client = stand.selected("Archive").await;
            stand.provider.disconnect(bye);
            // The account itself is well again.
            stand.selected("INBOX").await;
            let reply = perform(&mut client, command, 60).await;
            assert!(reply.bye && reply.status.is_none() && !reply.cut, "{command}: {reply:?}");
        }
    }
    // A client that opens another mailbox doesn't need the lost one.
    let mut client = stand.selected("Archive").await;
    stand.provider.disconnect(None);
    stand.selected("INBOX").await;
    client.ok("SELECT Archive").await;
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_selected_mailbox_was_deleted_nothing_is_selected() {
    let stand = Stand::new().await;
    let mut client = stand.client().await;
    client.until_ok("CREATE Gone").await;
    client.ok("SELECT Gone").await;
    client.ok("DELETE Gone").await;
    for command in ["FETCH 1 (FLAGS)", "SEARCH ALL", "CLOSE"] {
        let reply = client.command(command).await;
        assert!(reply.is("BAD"), "{command}: {reply:?}");
    }
    assert!(client.command("SELECT Gone").await.is("NO"));
    client.ok("SELECT Archive").await;
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_gives_the_connection_to_the_next_session() {
    let stand = Stand::with(Caps::default(), 4, |_, timing| timing.unused = std::time::Duration::from_secs(30)).await;
    for _ in 0..12 {
        let mut client = stand.selected("Archive").await;
        client.command("LOGOUT").await;
    }
    assert!(stand.provider.faults().connections() <= 3, "{}", stand.provider.faults().connections());
    stand.gateway.shutdown().await;
}
