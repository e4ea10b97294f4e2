//! Every fault at every command.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tollgate::demo::faults::ImapEffect;

use crate::client::{Client, Reply};
use crate::stand::{BOUND, PATIENCE, Stand, USER, eventually, message, unstamped};

/// One way to fail; the name says it in a failed test.
fn faults() -> Vec<(&'static str, ImapEffect)> {
    vec![
        ("NO", ImapEffect::No("[UNAVAILABLE] later {5}".into())),
        ("BAD", ImapEffect::Bad("what {5}".into())),
        ("BYE", ImapEffect::Bye("going down".into())),
        ("dropped", ImapEffect::Drop),
        ("dropped inside a literal", ImapEffect::DropInLiteral(7)),
        ("dropped before the answer", ImapEffect::DropBeforeAnswer),
        ("slow", ImapEffect::Delay(Duration::from_millis(300))),
        ("silent", ImapEffect::Silence),
    ]
}

/// What a client does, and the provider's command at which things go wrong.
const VIEW: &[(&str, &str)] = &[
    ("SELECT INBOX", "NOOP"),
    ("STATUS INBOX (MESSAGES)", "NOOP"),
    ("UID FETCH 1:* (BODY.PEEK[])", "FETCH"),
    ("UID FETCH 1:* (BODY.PEEK[])", "EXAMINE"),
    ("UID FETCH 1:* (BODY.PEEK[])", "AUTHENTICATE"),
    ("UID FETCH 1:* (BODY.PEEK[])", "GREETING"),
    ("UID SEARCH TEXT message", "SEARCH"),
    ("UID STORE 1 +FLAGS (\\Flagged)", "STORE"),
    ("UID STORE 1 +FLAGS (\\Flagged)", "IDLE"),
    ("UID COPY 2 Archive", "COPY"),
    ("UID MOVE 3 Archive", "MOVE"),
    ("UID EXPUNGE 4", "EXPUNGE"),
    ("APPEND Archive", "APPEND"),
    ("APPEND INBOX", "APPEND"),
    ("STATUS Archive (MESSAGES)", "STATUS"),
    ("LIST \"\" *", "LIST"),
    ("SELECT Archive", "SELECT"),
    ("SELECT Archive", "GREETING"),
    ("CREATE New", "CREATE"),
    ("IDLE", "IDLE"),
    ("NOOP", "NOOP"),
];

/// Whether OK was true: what was said to be done is done at the provider.
fn is_done(stand: &Stand, command: &str) -> bool {
    let (inbox, archive) = (stand.provider.mailbox(USER, "INBOX"), stand.provider.mailbox(USER, "Archive"));
    let (in_inbox, in_archive) = (
        |n: usize| inbox.iter().any(|m| m.octets[..] == message(n)),
        |n: usize| archive.iter().any(|m| m.octets[..] == message(n)),
    );
    match command {
        "UID STORE 1 +FLAGS (\\Flagged)" => inbox.iter().any(|m| m.flags.contains("\\Flagged")),
        "UID COPY 2 Archive" => in_inbox(1) && in_archive(1),
        "UID MOVE 3 Archive" => !in_inbox(2) && in_archive(2),
        "UID EXPUNGE 4" => !in_inbox(3),
        "APPEND Archive" => in_archive(77),
        "APPEND INBOX" => in_inbox(77),
        "CREATE New" => stand.provider.mailboxes(USER).contains(&"New".to_owned()),
        _ => true,
    }
}

async fn perform(client: &mut Client, command: &str) -> Reply {
    match command.strip_prefix("APPEND ") {
        Some(mailbox) => client.append(mailbox, &message(77)).await,
        None if command == "IDLE" => client.idle(Duration::from_millis(700)).await,
        None => client.command(command).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_outlives_every_fault_at_every_command() {
    let mut runs = tokio::task::JoinSet::new();
    for (name, effect) in faults() {
        for &(command, at) in VIEW {
            // Some can't happen at all.
            if at == "GREETING" && matches!(effect, ImapEffect::No(_) | ImapEffect::Bad(_)) {
                continue;
            }
            let effect = effect.clone();
            runs.spawn(async move {
                let case = format!("{command}, the provider {name} at {at}");
                let within = tokio::time::timeout(Duration::from_secs(60), one_view_case(&case, command, at, effect));
                (within.await.unwrap_or_else(|_| panic!("{case}: took too long")), case)
            });
            if runs.len() >= 6 {
                runs.join_next().await.unwrap().unwrap();
            }
        }
    }
    while let Some(done) = runs.join_next().await {
        done.unwrap();
    }
}

async fn one_view_case(case: &str, command: &str, at: &str, effect: ImapEffect) {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    if command == "UID EXPUNGE 4" {
        client.ok("UID STORE 4 +FLAGS (\\Deleted)").await;
    }
    if at == "GREETING" || at == "AUTHENTICATE" || at == "EXAMINE" {
        // No connection waits in the pool.
        eventually("unused connections to be closed", || stand.provider.faults().connections() <= 1).await;
    }
    if at == "NOOP" {
        // The last sync has to be old.
        stand.provider.faults().imap(Some("NOOP"), effect.clone(), Some(3));
        tokio::time::sleep(Duration::from_millis(100)).await;
    } else {
        stand.fault(at, effect.clone());
    }
    let began = Instant::now();
    let reply = perform(&mut client, command).await;
    assert!(began.elapsed() < BOUND, "{case}: {:?}", began.elapsed());
    let begun = matches!(effect, ImapEffect::DropInLiteral(_) | ImapEffect::DropBeforeAnswer) && at == "FETCH";
    match &reply.status {
        Some(s) if s.starts_with("OK") => assert!(is_done(&stand, command), "{case}: {reply:?}"),
        Some(s) if s.starts_with("NO") => {}
        None if reply.cut && begun => {}
        _ => panic!("{case}: {reply:?}"),
    }
    if matches!(effect, ImapEffect::Delay(_)) {
        assert!(reply.is("OK"), "{case}: {reply:?}");
    }
    // What came is what is there, and nothing else.
    let known: Vec<Vec<u8>> = (0..4).chain([77]).map(message).collect();
    for body in reply.bodies() {
        assert!(known.contains(&unstamped(&body)), "{case}: {:?}", String::from_utf8_lossy(&body));
    }
    stand.provider.faults().clear();
    if reply.status.is_none() {
        client = stand.client().await;
    }
    // Behind the client's back all is well again.
    client.until_ok("SELECT INBOX").await;
    let began = Instant::now();
    loop {
        let bodies = client.until_ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies();
        let seen: BTreeSet<Vec<u8>> = bodies.iter().map(|b| unstamped(b)).collect();
        let there = stand.provider.mailbox(USER, "INBOX");
        if seen == there.iter().map(|m| m.octets.to_vec()).collect() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{case}: {} of {}", seen.len(), there.len());
        client.ok("NOOP").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stand.gateway.shutdown().await;
}

const PASSED: &[(&str, &str)] = &[
    ("FETCH 1:* (BODY.PEEK[])", "FETCH"),
    ("STORE 1 +FLAGS (\\Flagged)", "STORE"),
    ("SEARCH TEXT message", "SEARCH"),
    ("COPY 1 Archive", "COPY"),
    ("COPY 1 INBOX", "COPY"),
    ("MOVE 1 INBOX", "MOVE"),
    ("EXPUNGE", "EXPUNGE"),
    ("NOOP", "NOOP"),
    ("CLOSE", "CLOSE"),
    ("IDLE", "IDLE"),
    // What doesn't act on the selected mailbox goes over its connection too.
    ("APPEND Archive", "APPEND"),
    ("APPEND INBOX", "APPEND"),
    ("STATUS Archive (MESSAGES)", "STATUS"),
    ("LIST \"\" *", "LIST"),
    ("LSUB \"\" *", "LSUB"),
    ("CREATE New", "CREATE"),
    ("SUBSCRIBE Archive", "SUBSCRIBE"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_passed_through_mailbox_ends_only_with_its_connection() {
    let mut runs = tokio::task::JoinSet::new();
    for (name, effect) in faults() {
        for &(command, at) in PASSED {
            let effect = effect.clone();
            runs.spawn(async move {
                let case = format!("{command}, the provider {name} at {at}");
                let stand = Stand::new().await;
                // The watching connection says NOOP and IDLE too: it is far
                // from either now.
                let mut client = stand.selected("Archive").await;
                stand.provider.faults().imap(Some(at), effect.clone(), if at == "IDLE" { Some(2) } else { Some(1) });
                let reply = perform(&mut client, command).await;
                match effect {
                    _ if at == "IDLE" || at == "NOOP" => {
                        assert!(reply.status.is_some() || reply.bye, "{case}: {reply:?}")
                    }
                    ImapEffect::No(_) => assert!(reply.is("NO"), "{case}: {reply:?}"),
                    ImapEffect::Bad(_) => assert!(reply.is("BAD") || reply.is("NO"), "{case}: {reply:?}"),
                    ImapEffect::Delay(_) => assert!(reply.is("OK"), "{case}: {reply:?}"),
                    ImapEffect::DropInLiteral(_) if reply.cut => assert!(!reply.bye, "{case}: {reply:?}"),
                    _ => assert!(reply.bye && reply.status.is_none() && !reply.cut, "{case}: {reply:?}"),
                }
                let known: Vec<Vec<u8>> = (10..13).map(message).collect();
                assert!(reply.bodies().iter().all(|b| known.contains(b)), "{case}: {reply:?}");
                stand.provider.faults().clear();
                if reply.status.is_none() {
                    client = stand.client().await;
                }
                client.until_ok("SELECT Archive").await;
                client.until_ok("SELECT INBOX").await;
                stand.gateway.shutdown().await;
            });
            if runs.len() >= 6 {
                runs.join_next().await.unwrap().unwrap();
            }
        }
    }
    while let Some(done) = runs.join_next().await {
        done.unwrap();
    }
}
