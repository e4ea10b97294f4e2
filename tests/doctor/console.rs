//! The IMAP face over the control socket: it reads, and only reads.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tollgate::account::demo as keys;
use tollgate::config::{Endpoint, TlsMode};
use tollgate::demo::client::imap::ImapClient;
use tollgate::gateway::control::{self, CallError};

use crate::stand::{Stand, USER, snapshot};

const PATIENCE: Duration = Duration::from_secs(30);

async fn console(stand: &Stand) -> ImapClient {
    let stream = control::face(&stand.state_dir(), USER).await.unwrap();
    ImapClient::signed_in(stream, PATIENCE).await.unwrap()
}

async fn person(stand: &Stand) -> ImapClient {
    let address = stand.gateway.addresses().imap_plain[0];
    let endpoint = Endpoint { host: "127.0.0.1".into(), port: address.port(), tls: TlsMode::None, ca: None };
    ImapClient::sign_in(&endpoint, USER, keys::PERSON_KEY).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_sees_what_people_see_and_changes_nothing() {
    let stand = Stand::start().await;
    let before = snapshot(stand.provider());
    let (mut console, mut person) = (console(&stand).await, person(&stand).await);
    for mailbox in ["INBOX", "Lanes/All", "Lanes/Queue", "Archive", "Sent"] {
        let mut shown = Vec::new();
        for client in [&mut console, &mut person] {
            client.command(&format!("EXAMINE {mailbox}")).await.unwrap().ok().unwrap();
            let answer = client.command("UID FETCH 1:* (FLAGS RFC822.SIZE BODY.PEEK[])").await.unwrap();
            shown.push(answer.ok().unwrap().untagged);
        }
        assert_eq!(shown[0], shown[1], "{mailbox}");
        // Reading without PEEK marks nothing either.
        console.command("UID FETCH 1:* (BODY[] RFC822)").await.unwrap().ok().unwrap();
        for command in [
            format!("SELECT {mailbox}"),
            "CLOSE".to_owned(),
            "STORE 1:* +FLAGS (\\Deleted)".to_owned(),
            "UID STORE 1:* FLAGS.SILENT ($TollgatePush)".to_owned(),
            "COPY 1:* Trash".to_owned(),
            "UID MOVE 1:* Lanes/Silent".to_owned(),
            "EXPUNGE".to_owned(),
            "UID EXPUNGE 1:*".to_owned(),
            "CREATE New".to_owned(),
            "DELETE Archive".to_owned(),
            "RENAME Archive Other".to_owned(),
            "SUBSCRIBE Lanes/All".to_owned(),
            "UNSUBSCRIBE INBOX".to_owned(),
            "UID STORE 1 +X-GM-LABELS (\\Trash)".to_owned(),
            "SETMETADATA INBOX (/private/comment \"x\")".to_owned(),
        ] {
            let answer = console.command(&command).await.unwrap();
            let refused = answer.status.starts_with("NO [NOPERM]") || answer.status.starts_with("BAD");
            assert!(refused, "{mailbox}: {command}: {}", answer.status);
        }
        let answer = console.append("Drafts", "\\Draft", b"Subject: x\r\n\r\nx\r\n").await.unwrap();
        assert!(answer.status.starts_with("NO [NOPERM]"), "{}", answer.status);
    }
    assert!(snapshot(stand.provider()) == before);
    stand.gateway.shutdown().await;
    // The end of the gateway is the end of the session.
    let ended = tokio::time::timeout(PATIENCE, async { while console.told().await.is_ok() {} });
    ended.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_face_is_asked_for_in_one_line_and_nothing_may_follow_it() {
    let stand = Stand::start().await;
    let refused = control::face(&stand.state_dir(), "nobody@example.org").await;
    assert!(matches!(refused, Err(CallError::Refused { name, .. }) if name == "no_account"));
    let mut stream = tokio::net::UnixStream::connect(stand.state_dir().join(control::SOCKET)).await.unwrap();
    let early = format!("{{\"do\":\"face\",\"account\":\"{USER}\"}}\na NOOP\r\n");
    stream.write_all(early.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let mut reader = BufReader::new(&mut stream);
    reader.read_line(&mut answer).await.unwrap();
    assert!(answer.contains("\"invalid\""), "{answer}");
    let mut rest = Vec::new();
    // Closed with our octets unread, which may be told as a reset.
    let _ = reader.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    let state = stand.state_dir();
    stand.gateway.shutdown().await;
    let gone = control::face(&state, USER).await;
    assert!(matches!(gone, Err(CallError::NotRunning)));
}
