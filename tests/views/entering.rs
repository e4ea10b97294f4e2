//! Mail that clients put into views, and mailboxes that change under them.

use std::time::Duration;

use crate::gate::{PATIENCE, USER, ok, person, provider, section, start, told, uids, until};

#[tokio::test(flavor = "multi_thread")]
async fn without_uidplus_a_message_still_enters_exactly_the_mailbox_named() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    provider(&gateway).faults().hide_imap_capability("UIDPLUS");
    provider(&gateway).disconnect(Some("new capabilities"));
    tokio::time::sleep(Duration::from_millis(700)).await;
    let mut client = person(&gateway).await;
    until(&mut client, "Lanes/All", 0).await;
    let mail =
        |n: u32| format!("From: me@example.org\r\nSubject: m{n}\r\nMessage-ID: <m{n}@example.org>\r\n\r\nx{n}\r\n");
    let mut expected = 0;
    for (n, mailbox) in [(1, "Lanes/Info"), (2, "Lanes/Push"), (3, "INBOX"), (4, "Lanes/Info")] {
        // New mail of the same moment goes its own way.
        provider(&gateway).deliver(USER, format!("From: ann@example.com\r\nSubject: other {n}\r\n\r\nhow are you\r\n"));
        client.append(mailbox, "\\Seen", mail(n).as_bytes()).await.unwrap().ok().unwrap();
        expected += 2;
        until(&mut client, "Lanes/All", expected).await;
        ok(&mut client, &format!("SELECT {mailbox}")).await;
        let uid = *uids(&mut client).await.last().unwrap();
        assert_eq!(section(&mut client, uid, "BODY.PEEK[]").await, mail(n).as_bytes(), "{mailbox}, unstamped");
    }
    for n in 5..8 {
        client.append("Archive", "", mail(n).as_bytes()).await.unwrap().ok().unwrap();
    }
    ok(&mut client, "SELECT Archive").await;
    provider(&gateway).deliver(USER, "From: ann@example.com\r\nSubject: between\r\n\r\nhow are you\r\n");
    ok(&mut client, "COPY 1,3 Lanes/Silent").await;
    until(&mut client, "Lanes/All", expected + 3).await;
    until(&mut client, "Lanes/Silent", 2).await;
    for (uid, n) in [(1, 5), (2, 7)] {
        assert_eq!(section(&mut client, uid, "BODY.PEEK[]").await, mail(n).as_bytes());
    }
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_uidvalidity_ends_sessions_and_messages_find_their_lanes_again() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    for n in 0..9 {
        let text = format!(
            "From: a{n}@example.com\r\nTo: {USER}\r\nSubject: no {n}\r\nMessage-ID: <m{n}@example.com>\r\n\r\nnumber {n}\r\n"
        );
        provider(&gateway).deliver(USER, text);
    }
    let mut client = person(&gateway).await;
    until(&mut client, "Lanes/All", 9).await;
    ok(&mut client, "SELECT Lanes/Queue").await;
    assert_eq!(uids(&mut client).await.len(), 9);
    ok(&mut client, "UID MOVE 2,5 Lanes/Silent").await;
    ok(&mut client, "UID MOVE 7 INBOX").await;
    let validity = |lines: Vec<String>| {
        let line = lines.into_iter().find(|l| l.contains("[UIDVALIDITY ")).unwrap();
        line.split("[UIDVALIDITY ").nth(1).unwrap().split(']').next().unwrap().parse::<u32>().unwrap()
    };
    let old = validity(told(&ok(&mut client, "SELECT Lanes/Silent").await));
    let octets = [section(&mut client, 1, "BODY.PEEK[]").await, section(&mut client, 2, "BODY.PEEK[]").await];
    let mut idle = person(&gateway).await;
    ok(&mut idle, "SELECT Lanes/Silent").await;
    idle.idle().await.unwrap();
    assert!(provider(&gateway).renumber(USER));
    // BYE, whatever comes before it.
    let ended = tokio::time::timeout(PATIENCE, async {
        while let Ok(told) = idle.told().await {
            if told.text.starts_with("BYE") {
                return true;
            }
        }
        false
    });
    assert!(ended.await.unwrap(), "an idle session is ended with BYE");
    assert!(client.command("NOOP").await.map_or(true, |a| told(&a).iter().any(|l| l.starts_with("BYE"))));
    let mut client = person(&gateway).await;
    while !client.command("SELECT Lanes/All").await.unwrap().is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    until(&mut client, "Lanes/All", 9).await;
    until(&mut client, "Lanes/Queue", 6).await;
    until(&mut client, "INBOX", 1).await;
    until(&mut client, "Lanes/Silent", 2).await;
    let new = validity(told(&ok(&mut client, "SELECT Lanes/Silent").await));
    assert!(new > old && new < 1 << 31, "{old} {new}");
    let again = [section(&mut client, 1, "BODY.PEEK[]").await, section(&mut client, 2, "BODY.PEEK[]").await];
    assert_eq!(again, octets, "lane, stamp and octets");
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_deleted_under_an_open_session_ends_in_peace() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    let mut client = person(&gateway).await;
    ok(&mut client, "CREATE Short").await;
    client.append("Short", "", b"Subject: s\r\n\r\nx\r\n").await.unwrap().ok().unwrap();
    ok(&mut client, "SELECT Short").await;
    let mut other = person(&gateway).await;
    ok(&mut other, "DELETE Short").await;
    for command in ["NOOP", "FETCH 1 (FLAGS BODY.PEEK[])", "SEARCH ALL", "STORE 1 +FLAGS (\\Seen)"] {
        // NO, or BYE: never a hang, never another mailbox.
        match tokio::time::timeout(PATIENCE, client.command(command)).await.expect("an answer") {
            Ok(answer) => assert_eq!(answer.fetched().filter(|f| !f.literals.is_empty()).count(), 0, "{command}"),
            Err(_) => client = person(&gateway).await,
        }
    }
    ok(&mut client, "SELECT INBOX").await;
    let answer = client.command("SELECT Short").await.unwrap();
    assert!(answer.status.starts_with("NO"), "{}", answer.status);
    gateway.shutdown().await;
}
