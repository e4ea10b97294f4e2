//! Corrections: by keyword, by COPY then `\Deleted`, taken back.

use tollgate::demo::client::imap::ImapClient;
use tollgate::gateway::Gateway;
use tollgate::gateway::control::{self, Request};

use crate::gate::{USER, agent, ok, person, provider, section, start, told, uids, until};

const MAIL: &str = "From: ann@example.com\r\nTo: demo@example.org\r\nSubject: hello\r\nMessage-ID: <one@example.com>\r\n\r\nhow are you\r\n";

async fn lane(client: &mut ImapClient, uid: u32) -> String {
    let head = section(client, uid, "BODY.PEEK[HEADER.FIELDS (X-Tollgate-Lane)]").await;
    String::from_utf8(head).unwrap().split_once(": ").map(|(_, l)| l.trim().to_owned()).unwrap_or_default()
}

async fn flags(client: &mut ImapClient, uid: u32) -> String {
    told(&ok(client, &format!("UID FETCH {uid} (FLAGS)")).await).join("\n")
}

async fn corrections(gateway: &Gateway) -> Vec<serde_json::Value> {
    let answer = control::execute(gateway.core(), Request::CorrectionsList).await.unwrap();
    answer["corrections"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_keyword_corrects_and_the_message_gets_a_new_uid() {
    for preset in ["calm", "focus", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let gateway = start(folder.path(), false, preset).await;
        provider(&gateway).deliver(USER, MAIL);
        let mut client = person(&gateway).await;
        let home = if preset == "focus" { "Lanes/Queue" } else { "INBOX" };
        until(&mut client, home, 1).await;
        assert_eq!(lane(&mut client, 1).await, "queue");
        let mut other = person(&gateway).await;
        ok(&mut other, "SELECT INBOX").await;
        let mut watching = agent(&gateway).await;
        ok(&mut watching, "SELECT Lanes/All").await;
        let answer = ok(&mut client, "UID STORE 1 +FLAGS ($TollgatePush \\Flagged)").await;
        assert!(!told(&answer).iter().any(|l| l.ends_with("EXPUNGE")), "never while answering STORE: {answer:?}");
        let after = told(&ok(&mut client, "NOOP").await);
        assert!(after.contains(&"1 EXPUNGE".to_owned()), "{preset}: {after:?}");
        until(&mut client, "INBOX", 1).await;
        let new = uids(&mut client).await[0];
        assert_eq!(lane(&mut client, new).await, "push");
        let shown = flags(&mut client, new).await;
        assert!(shown.contains("$TollgatePush") && shown.contains("\\Flagged"), "{shown}");
        assert!(!shown.contains("$TollgateQueue"), "{shown}");
        let told_other = told(&ok(&mut other, "NOOP").await);
        assert!(told_other.iter().any(|l| l.ends_with("EXISTS")), "{told_other:?}");
        let told_agent = told(&ok(&mut watching, "NOOP").await);
        assert!(told_agent.contains(&"1 EXPUNGE".to_owned()), "{told_agent:?}");
        // The keyword stays here.
        let stored = provider(&gateway).mailbox(USER, "INBOX");
        assert!(stored[0].flags.iter().all(|f| !f.to_string().contains("Tollgate")), "{:?}", stored[0].flags);
        assert_eq!(corrections(&gateway).await.len(), 1);
        gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyword_taken_away_alone_comes_back_and_two_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "shadow").await;
    provider(&gateway).deliver(USER, MAIL);
    let mut client = person(&gateway).await;
    until(&mut client, "INBOX", 1).await;
    for command in ["STORE 1 -FLAGS ($TollgateQueue)", "STORE 1 -FLAGS.SILENT ($TollgateQueue)"] {
        let answer = told(&ok(&mut client, command).await).join("\n");
        assert!(answer.contains("1 FETCH") && answer.contains("$TollgateQueue"), "{command}: {answer}");
    }
    // A client that replaces flags names what it was shown, or drops it.
    ok(&mut client, "STORE 1 FLAGS (\\Seen $TollgateQueue)").await;
    ok(&mut client, "STORE 1 FLAGS (\\Seen)").await;
    assert!(flags(&mut client, 1).await.contains("$TollgateQueue"));
    assert!(corrections(&gateway).await.is_empty());
    let answer = client.command("STORE 1 +FLAGS ($TollgatePush $TollgateMeeting)").await.unwrap();
    assert!(answer.status.starts_with("NO [CANNOT]"), "{}", answer.status);
    ok(&mut client, "STORE 1 FLAGS (\\Seen $TollgateQueue $TollgateMeeting)").await;
    until(&mut client, "INBOX", 1).await;
    let uid = uids(&mut client).await[0];
    assert_eq!(lane(&mut client, uid).await, "meeting", "the one that is new counts");
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_then_deleted_corrects_and_the_old_uid_keeps_its_octets() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    provider(&gateway).deliver(USER, MAIL);
    let mut client = person(&gateway).await;
    until(&mut client, "Lanes/Queue", 1).await;
    let before = section(&mut client, 1, "BODY.PEEK[]").await;
    let answer = ok(&mut client, "UID COPY 1 Lanes/Info").await;
    assert!(answer.status.contains("[COPYUID ") && answer.status.contains(" 1 1]"), "{}", answer.status);
    assert_eq!(section(&mut client, 1, "BODY.PEEK[]").await, before, "a UID names the same octets for good");
    let size = told(&ok(&mut client, "FETCH 1 RFC822.SIZE").await).join("\n");
    assert!(size.contains(&format!("RFC822.SIZE {})", before.len())), "{size}");
    gateway.shutdown().await;
    let gateway = start(folder.path(), true, "folders").await;
    let mut client = person(&gateway).await;
    until(&mut client, "Lanes/Queue", 1).await;
    assert_eq!(section(&mut client, 1, "BODY.PEEK[]").await, before, "also after a restart");
    ok(&mut client, "UID STORE 1 +FLAGS (\\Deleted)").await;
    let stored = provider(&gateway).mailbox(USER, "INBOX");
    assert!(!stored[0].flags.iter().any(|f| *f == "\\Deleted"), "the message itself is not deleted");
    let answer = told(&ok(&mut client, "UID EXPUNGE 1").await);
    assert!(answer.contains(&"1 EXPUNGE".to_owned()), "{answer:?}");
    until(&mut client, "Lanes/Queue", 0).await;
    until(&mut client, "Lanes/Info", 1).await;
    assert_eq!(lane(&mut client, 1).await, "info");
    assert!(!flags(&mut client, 1).await.contains("\\Deleted"));
    until(&mut client, "Lanes/All", 1).await;
    assert_eq!(provider(&gateway).mailbox(USER, "INBOX").len(), 1);
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn corrections_are_listed_and_taken_back_last_first() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    provider(&gateway).deliver(USER, MAIL);
    let mut client = person(&gateway).await;
    until(&mut client, "Lanes/Queue", 1).await;
    let before = section(&mut client, 1, "BODY.PEEK[]").await;
    ok(&mut client, "MOVE 1 Lanes/Info").await;
    until(&mut client, "Lanes/Info", 1).await;
    ok(&mut client, "MOVE 1 Lanes/Push").await;
    let listed = corrections(&gateway).await;
    let ids: Vec<String> = listed.iter().map(|c| c["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 2, "{listed:?}");
    assert_eq!((&listed[0]["correction"]["from"], &listed[0]["correction"]["to"]), (&"queue".into(), &"info".into()));
    assert_eq!(listed[0]["account"], USER);
    let undo = |id: &str| Request::CorrectionsUndo { account: USER.to_owned(), id: id.to_owned() };
    assert!(control::execute(gateway.core(), undo(&ids[0])).await.is_err(), "the later one comes first");
    assert!(control::execute(gateway.core(), undo("1-2-3")).await.is_err());
    control::execute(gateway.core(), undo(&ids[1])).await.unwrap();
    until(&mut client, "Lanes/Push", 0).await;
    until(&mut client, "Lanes/Info", 1).await;
    control::execute(gateway.core(), undo(&ids[0])).await.unwrap();
    until(&mut client, "Lanes/Info", 0).await;
    until(&mut client, "Lanes/Queue", 1).await;
    let uid = uids(&mut client).await[0];
    assert!(uid > 1, "under a new UID");
    assert_eq!(section(&mut client, uid, "BODY.PEEK[]").await, before, "stamp and octets as before");
    assert!(corrections(&gateway).await.is_empty());
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn moving_to_where_it_is_gives_a_new_uid_and_is_no_correction() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "calm").await;
    provider(&gateway).deliver(USER, MAIL);
    let mut client = person(&gateway).await;
    until(&mut client, "INBOX", 1).await;
    let before = section(&mut client, 1, "BODY.PEEK[]").await;
    let answer = told(&ok(&mut client, "UID MOVE 1 INBOX").await);
    assert!(answer.iter().any(|l| l.contains("[COPYUID ") && l.contains(" 1 2]")), "{answer:?}");
    assert!(answer.contains(&"1 EXPUNGE".to_owned()) && answer.contains(&"1 EXISTS".to_owned()), "{answer:?}");
    assert_eq!(section(&mut client, 2, "BODY.PEEK[]").await, before);
    let refused = client.command("UID COPY 2 INBOX").await.unwrap();
    assert!(refused.status.starts_with("NO [CANNOT]"), "{}", refused.status);
    assert!(corrections(&gateway).await.is_empty());
    gateway.shutdown().await;
}
