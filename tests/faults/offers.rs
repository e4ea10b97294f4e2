//! What is offered, what passes as it is, and names that keep every octet.

use std::collections::BTreeSet;

use tollgate::demo::provider::Caps;

use crate::client::Reply;
use crate::stand::{Stand, USER, direct, eventually, message};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_offered_is_what_works_with_this_provider() {
    for (move_, uidplus) in [(true, true), (false, true), (true, false), (false, false)] {
        let stand = Stand::with(Caps { idle: true, move_, uidplus }, 4, |_, _| {}).await;
        let mut stranger = stand.connect().await;
        let before = stranger.ok("CAPABILITY").await;
        assert!(!before.has(" MOVE") && !before.has(" UIDPLUS"), "nobody knows yet: {before:?}");
        let mut client = stand.selected("Archive").await;
        let after = client.ok("CAPABILITY").await;
        assert_eq!(after.has(" MOVE"), move_ || uidplus, "{after:?}");
        assert_eq!(after.has(" UIDPLUS"), uidplus, "{after:?}");
        let names = |mailbox: &str| -> Vec<Vec<u8>> {
            stand.provider.mailbox(USER, mailbox).iter().map(|m| m.octets.to_vec()).collect()
        };
        client.ok("CREATE Target").await;
        client.ok("STORE 3 +FLAGS (\\Deleted)").await;
        let moved = client.command("MOVE 2 Target").await;
        if move_ || uidplus {
            assert!(moved.is("OK") && moved.has("2 EXPUNGE"), "{moved:?}");
            assert_eq!(moved.has("COPYUID"), uidplus, "{moved:?}");
            assert_eq!(names("Target"), [message(11)]);
            assert_eq!(names("Archive"), [message(10), message(12)], "what others deleted stays");
            client.ok("MOVE 1 INBOX").await;
            assert_eq!(names("Archive"), [message(12)]);
            eventually("it to be in INBOX", || names("INBOX").contains(&message(10))).await;
            assert!(client.command("UID MOVE 99 Target").await.is("OK"), "nothing to move");
            let missing = client.command("MOVE 1 Nowhere").await;
            assert!(missing.is("NO"), "{missing:?}");
            assert_eq!(names("Archive"), [message(12)], "a refused move removes nothing");
        } else {
            assert!(moved.is("NO [CANNOT]"), "{moved:?}");
            assert_eq!(names("Archive").len(), 3);
        }
        let expunged = client.command("UID EXPUNGE 3").await;
        assert_eq!(expunged.is("OK"), uidplus, "{expunged:?}");
        assert!(uidplus || expunged.is("NO [CANNOT]"), "{expunged:?}");
        stand.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vendor_items_pass_for_people_in_passed_through_mailboxes_only() {
    let stand = Stand::new().await;
    let faults = stand.provider.faults();
    let passed = |command: &str| {
        faults.commands().iter().any(|c| c.strip_suffix(b"\r\n").is_some_and(|c| c.ends_with(command.as_bytes())))
    };
    let vendor = [
        "FETCH 1 (X-GM-LABELS)",
        "UID STORE 1 +X-GM-LABELS (x)",
        "UID SEARCH X-GM-RAW \"in:{5} x\"",
        "FETCH 1 (PREVIEW)",
        "SORT (DATE) UTF-8 ALL",
        "uid thread REFERENCES UTF-8 ALL",
    ];
    let never = [
        "GETQUOTAROOT INBOX",
        "XFROB 1",
        "UID FROB 1",
        "FETCH",
        "UID FETCH",
        "ESEARCH IN (mailboxes INBOX) ALL",
        "SETMETADATA INBOX (/private/comment \"x\")",
    ];
    faults.keep_commands(true);
    let mut person = stand.selected("Archive").await;
    for command in vendor {
        let reply = person.command(command).await;
        // The embedded provider knows none of them, and says so itself.
        assert!(reply.is("BAD not understood") || reply.is("BAD not offered"), "{command}: {reply:?}");
        assert!(passed(command), "{command}");
    }
    for command in never {
        assert!(person.command(command).await.is("BAD"), "{command}");
        assert!(!passed(command), "{command}");
    }
    assert!(person.command("FETCH 1 (X-GM-LABELS \0)").await.is("BAD"));
    // A literal stays one.
    person.send(b"l1 UID SEARCH X-GM-RAW {14+}\r\nx\r\nl2 LOGOUT\r\n").await;
    person.send(b"\r\n").await;
    assert!(person.reply("l1").await.is("BAD"));
    let literal = |c: &Vec<u8>| c.ends_with(b" UID SEARCH X-GM-RAW {14+}\r\nx\r\nl2 LOGOUT\r\n\r\n");
    assert!(faults.commands().iter().any(literal));
    person.ok("NOOP").await;
    let mut viewing = stand.selected("INBOX").await;
    let mut agent = stand.sign_in(&stand.agent).await;
    agent.until_ok("SELECT Archive").await;
    faults.keep_commands(true);
    for command in vendor {
        assert!(viewing.command(command).await.is("BAD"), "{command}");
        let refused = agent.command(command).await;
        assert!(refused.is("BAD") || refused.is("NO [NOPERM]"), "{command}: {refused:?}");
        assert!(!passed(command), "{command}");
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_modified_utf_7_keep_every_octet() {
    let stand = Stand::new().await;
    let mut direct = direct(&stand.provider).await;
    // RFC 3501 §5.1.3, and names that merely look like it.
    let before = stand.provider.mailboxes(USER).len();
    let names =
        ["Entw&APw-rfe", "&ZeVnLIqe-", "A&-B", "a&AOk- b", "&AOkA6A-/&AOk-", "not&encoded", "we\"ird\\", "{5}", "NIL"];
    for name in names {
        let quoted = tollgate::demo::client::imap::quoted(name);
        direct.command(&format!("CREATE {quoted}")).await.unwrap().ok().unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let listed = |reply: &Reply| -> BTreeSet<String> { reply.untagged.iter().map(|(t, _)| t.clone()).collect() };
    let mut client = stand.selected("INBOX").await;
    let through = listed(&client.ok("LIST \"\" *").await);
    for response in direct.command("LIST \"\" *").await.unwrap().untagged {
        let same = through.contains(&format!("* {}", response.text));
        assert!(same || response.text.contains("INBOX"), "{}: {through:?}", response.text);
    }
    for name in names {
        let quoted = tollgate::demo::client::imap::quoted(name);
        let literal = format!("{{{}+}}\r\n{name}", name.len());
        let mut forms = vec![quoted.clone(), literal];
        if !name.contains([' ', '"', '\\', '{']) && name != "NIL" {
            forms.push(name.to_owned());
        }
        for form in forms {
            client.ok("SELECT INBOX").await;
            let before = stand.provider.mailbox(USER, name).len();
            client.ok(&format!("UID COPY 1 {form}")).await;
            assert_eq!(stand.provider.mailbox(USER, name).len(), before + 1, "{form}");
            let status = client.ok(&format!("STATUS {form} (MESSAGES)")).await;
            assert!(status.has(&format!("(MESSAGES {})", before + 1)), "{form}: {status:?}");
            client.ok(&format!("SELECT {form}")).await;
            client.ok(&format!("COPY 1 {form}")).await;
            assert_eq!(stand.provider.mailbox(USER, name).len(), before + 2, "{form}");
            let tag = client.tag();
            client.send(format!("{tag} APPEND {form} {{3+}}\r\nabc\r\n").as_bytes()).await;
            assert!(client.reply(&tag).await.is("OK"), "{form}");
            assert_eq!(stand.provider.mailbox(USER, name).len(), before + 3, "{form}");
        }
    }
    assert_eq!(stand.provider.mailboxes(USER).len(), before + names.len(), "{:?}", stand.provider.mailboxes(USER));
    stand.gateway.shutdown().await;
}
