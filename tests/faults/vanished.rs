//! Messages that another session expunged: RFC 9051 §6.4.9 and §7.5.1, RFC
//! 2180 §4, RFC 5530 §3. Seen with 20 stress clients on one INBOX, which were
//! refused 107 of their STOREs in 25 seconds.

use crate::client::Client;
use crate::stand::{Stand, USER};

/// Two sessions of one INBOX of four messages; the second expunged message 2,
/// of which the first doesn't know yet.
async fn two(stand: &Stand) -> Client {
    let first = stand.selected("INBOX").await;
    let mut second = stand.selected("INBOX").await;
    second.ok("STORE 2 +FLAGS.SILENT (\\Deleted)").await;
    second.ok("EXPUNGE").await;
    first
}

/// What a client does, how it is answered, whether it is told at once, and for
/// how many messages it gets FETCH responses.
const CASES: &[(&str, &str, bool, usize)] = &[
    ("STORE 2 +FLAGS (\\Seen)", "OK [EXPUNGEISSUED]", false, 0),
    ("STORE 2 +FLAGS.SILENT (\\Seen)", "OK [EXPUNGEISSUED]", false, 0),
    ("STORE 1:3 FLAGS (\\Flagged)", "OK [EXPUNGEISSUED]", false, 2),
    ("STORE 1:* -FLAGS.SILENT (\\Seen)", "OK [EXPUNGEISSUED]", false, 0),
    ("STORE 1 +FLAGS (\\Seen)", "OK done", false, 1),
    ("UID STORE 2 +FLAGS (\\Seen)", "OK done", true, 0),
    ("UID STORE 1:3 +FLAGS (\\Flagged)", "OK done", true, 2),
    ("UID STORE 77 +FLAGS (\\Flagged)", "OK done", false, 0),
    ("FETCH 1:3 (FLAGS)", "NO [EXPUNGEISSUED]", false, 2),
    ("UID FETCH 2 (FLAGS)", "OK", true, 0),
    ("UID FETCH 1:* (BODY.PEEK[])", "OK", true, 3),
    ("SEARCH ALL", "OK", false, 0),
    ("UID SEARCH ALL", "OK", true, 0),
    ("COPY 2 Archive", "NO [EXPUNGEISSUED]", true, 0),
    ("COPY 1:3 Archive", "NO [EXPUNGEISSUED]", true, 0),
    ("MOVE 1:3 Archive", "NO [EXPUNGEISSUED]", true, 0),
    ("UID COPY 2 Archive", "OK", true, 0),
    ("UID MOVE 2 Archive", "OK", true, 0),
    ("UID COPY 1:3 Archive", "OK [COPYUID", true, 0),
    ("EXPUNGE", "OK", true, 0),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_command_fails_that_can_be_done_and_numbers_stay_right() {
    for &(command, answer, at_once, fetched) in CASES {
        let stand = Stand::new().await;
        let mut client = two(&stand).await;
        let reply = client.command(command).await;
        assert!(reply.is(answer), "{command}: {reply:?}");
        assert_eq!(reply.has("* 2 EXPUNGE"), at_once, "{command}: {reply:?}");
        let answers = reply.untagged.iter().filter(|(t, _)| t.contains(" FETCH (")).count();
        assert_eq!(answers, fetched, "{command}: {reply:?}");
        let copied = stand.provider.mailbox(USER, "Archive").len() - 3;
        assert_eq!(copied, if command == "UID COPY 1:3 Archive" { 2 } else { 0 }, "{command}");
        // The next command that may tell it does, if none has.
        let later = client.ok("NOOP").await;
        assert_eq!(later.has("* 2 EXPUNGE"), !at_once, "{command}: {later:?}");
        let left = client.ok("FETCH 1:* (UID)").await;
        let uids: Vec<&str> = left.untagged.iter().map(|(t, _)| t.as_str()).filter(|t| t.contains("FETCH")).collect();
        let wanted = ["* 1 FETCH (UID 1)", "* 2 FETCH (UID 3)", "* 3 FETCH (UID 4)"];
        assert_eq!(uids, wanted, "{command}");
        stand.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_at_the_provider_before_the_mirror_knows_is_no_failure_of_a_uid_fetch() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    let mut direct = crate::stand::direct(&stand.provider).await;
    direct.command("SELECT INBOX").await.unwrap();
    direct.command("UID STORE 2 +FLAGS.SILENT (\\Deleted)").await.unwrap();
    direct.command("EXPUNGE").await.unwrap();
    let reply = client.command("UID FETCH 1:* (BODY.PEEK[])").await;
    assert!(reply.is("OK") && reply.bodies().len() == 3, "{reply:?}");
    let reply = client.ok("UID FETCH 1:* (FLAGS)").await;
    assert_eq!(reply.untagged.iter().filter(|(t, _)| t.contains(" FETCH (")).count(), 3, "{reply:?}");
    stand.gateway.shutdown().await;
}
