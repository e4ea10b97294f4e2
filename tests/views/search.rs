//! SEARCH: every key, over stamps, sizes after stamping, `\Recent`.

use tollgate::demo::client::imap::ImapClient;

use crate::gate::{USER, agent, ok, person, provider, section, start, told, uids, until};

async fn search(client: &mut ImapClient, query: &str) -> Vec<u32> {
    ok(client, &format!("SEARCH {query}")).await.found()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_finds_what_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "shadow").await;
    let mail = [
        "From: ann@example.com\r\nTo: demo@example.org\r\nCc: cy@example.net\r\nDate: Tue, 03 Feb 2026 23:59:00 -0800\r\n\
         Subject: apples\r\nX-Kind: red\r\n\r\nround fruit\r\n",
        "From: bob@example.com\r\nTo: demo@example.org\r\nBcc: dee@example.net\r\nDate: Thu, 05 Feb 2026 00:01:00 +0900\r\n\
         Subject: =?utf-8?q?b=C3=A4ume?=\r\nX-Tollgate-Lane: silent\r\n\r\ntall plants\r\n",
        "From: cat@example.com\r\nTo: other@example.org\r\nSubject: pears\r\n\r\nlong fruit that takes far more words to tell of\r\n",
    ];
    for text in mail {
        provider(&gateway).deliver(USER, text);
    }
    let mut client = person(&gateway).await;
    until(&mut client, "INBOX", 3).await;
    ok(&mut client, "STORE 1 +FLAGS.SILENT (\\Seen \\Flagged $Blue)").await;
    ok(&mut client, "STORE 2 +FLAGS.SILENT (\\Answered \\Draft)").await;
    ok(&mut client, "STORE 3 +FLAGS.SILENT (\\Deleted)").await;
    let lanes: Vec<String> = {
        let mut out = Vec::new();
        for uid in 1..=3 {
            let head = section(&mut client, uid, "BODY.PEEK[HEADER.FIELDS (X-Tollgate-Lane)]").await;
            out.push(String::from_utf8(head).unwrap().split_once(": ").unwrap().1.trim().to_owned());
        }
        out
    };
    for (query, expected) in [
        ("ALL", &[1, 2, 3][..]),
        ("FROM ann", &[1]),
        ("TO demo", &[1, 2]),
        ("CC cy", &[1]),
        ("BCC dee", &[2]),
        ("SUBJECT pears", &[3]),
        ("BODY fruit", &[1, 3]),
        ("TEXT plants", &[2]),
        ("HEADER X-Kind red", &[1]),
        ("HEADER X-Kind \"\"", &[1]),
        ("NOT HEADER X-Kind \"\"", &[2, 3]),
        ("SENTON 3-Feb-2026", &[1]),
        ("SENTBEFORE 5-Feb-2026", &[1]),
        ("SENTSINCE 4-Feb-2026", &[2]),
        ("SEEN", &[1]),
        ("UNSEEN", &[2, 3]),
        ("FLAGGED", &[1]),
        ("UNFLAGGED", &[2, 3]),
        ("KEYWORD $Blue", &[1]),
        ("UNKEYWORD $Blue", &[2, 3]),
        ("ANSWERED", &[2]),
        ("UNANSWERED", &[1, 3]),
        ("DRAFT", &[2]),
        ("UNDRAFT", &[1, 3]),
        ("DELETED", &[3]),
        ("UNDELETED", &[1, 2]),
        ("2:*", &[2, 3]),
        ("UID 1,3", &[1, 3]),
        ("UID 9:*", &[3]),
        ("OR FROM ann SUBJECT pears", &[1, 3]),
        ("OR (OR FROM ann FROM bob) NOT UNDELETED", &[1, 2, 3]),
        ("NOT (BODY fruit NOT FROM ann)", &[1, 2]),
        ("FLAGGED FROM bob", &[]),
        ("SINCE 1-Jan-2020 BEFORE 1-Jan-2100", &[1, 2, 3]),
        ("BEFORE 1-Jan-2020", &[]),
        ("YOUNGER 86400", &[1, 2, 3]),
        ("OLDER 86400", &[]),
        ("CHARSET UTF-8 SUBJECT {6+}\r\nb\u{e4}ume", &[2]),
        ("CHARSET US-ASCII SUBJECT apples", &[1]),
        ("HEADER X-Tollgate-Decision \"\"", &[1, 2, 3]),
    ] {
        assert_eq!(search(&mut client, query).await, expected, "{query}");
    }
    // Stamps are searched as they are shown; the forged one is not.
    for lane in ["push", "meeting", "queue", "info", "silent"] {
        let shown: Vec<u32> = (1..=3).filter(|n| lanes[*n as usize - 1] == lane).collect();
        assert_eq!(search(&mut client, &format!("HEADER X-Tollgate-Lane {lane}")).await, shown, "{lane}");
    }
    for uid in 1..=3 {
        let size = section(&mut client, uid, "BODY.PEEK[]").await.len();
        assert!(search(&mut client, &format!("LARGER {}", size - 1)).await.contains(&uid), "sizes after stamping");
        assert!(!search(&mut client, &format!("LARGER {size}")).await.contains(&uid));
        assert!(search(&mut client, &format!("SMALLER {}", size + 1)).await.contains(&uid));
        assert!(!search(&mut client, &format!("SMALLER {size}")).await.contains(&uid));
    }
    let answer = client.command("SEARCH CHARSET KOI8-R SUBJECT a").await.unwrap();
    assert!(answer.status.starts_with("NO [BADCHARSET"), "{}", answer.status);
    let answer = client.command("SEARCH MODSEQ 1").await.unwrap();
    assert!(answer.status.starts_with("BAD"), "{}", answer.status);
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_is_told_that_mail_is_recent() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "shadow").await;
    let mail = |n: u32| format!("From: a@example.com\r\nSubject: s{n}\r\n\r\nx\r\n");
    let mut first = person(&gateway).await;
    ok(&mut first, "SELECT INBOX").await;
    let mut second = person(&gateway).await;
    provider(&gateway).deliver(USER, mail(1));
    while uids(&mut first).await.is_empty() {
        ok(&mut first, "NOOP").await;
    }
    assert_eq!(search(&mut first, "RECENT").await, [1]);
    assert_eq!(search(&mut first, "NEW").await, [1]);
    assert!(search(&mut first, "OLD").await.is_empty());
    let status = told(&ok(&mut second, "STATUS INBOX (RECENT MESSAGES)").await).join("\n");
    assert!(status.contains("RECENT 0") && status.contains("MESSAGES 1"), "{status}");
    let selected = told(&ok(&mut second, "SELECT INBOX").await);
    assert!(selected.contains(&"0 RECENT".to_owned()), "{selected:?}");
    assert_eq!(search(&mut second, "OLD").await, [1]);
    let flags = told(&ok(&mut first, "FETCH 1 FLAGS").await).join("\n");
    assert!(flags.contains("\\Recent"), "{flags}");
    let flags = told(&ok(&mut second, "FETCH 1 FLAGS").await).join("\n");
    assert!(!flags.contains("\\Recent"), "{flags}");
    // EXAMINE tells, and leaves it for the one who selects.
    ok(&mut first, "UNSELECT").await;
    ok(&mut second, "UNSELECT").await;
    provider(&gateway).deliver(USER, mail(2));
    until_status(&mut first, "MESSAGES 2").await;
    let examined = told(&ok(&mut first, "EXAMINE INBOX").await);
    assert!(examined.contains(&"1 RECENT".to_owned()), "{examined:?}");
    let selected = told(&ok(&mut second, "SELECT INBOX").await);
    assert!(selected.contains(&"1 RECENT".to_owned()), "{selected:?}");
    let selected = told(&ok(&mut first, "SELECT INBOX").await);
    assert!(selected.contains(&"0 RECENT".to_owned()), "{selected:?}");
    // An agent's view is its own.
    let selected = told(&ok(&mut agent(&gateway).await, "SELECT INBOX").await);
    assert!(selected.contains(&"2 RECENT".to_owned()), "{selected:?}");
    gateway.shutdown().await;
}

async fn until_status(client: &mut ImapClient, part: &str) {
    loop {
        let status = told(&ok(client, "STATUS INBOX (MESSAGES)").await).join("\n");
        if status.contains(part) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyword_is_listed_before_a_message_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "shadow").await;
    provider(&gateway).deliver(USER, "Subject: s\r\n\r\nx\r\n");
    let mut client = person(&gateway).await;
    until(&mut client, "INBOX", 1).await;
    let mut other = person(&gateway).await;
    ok(&mut other, "SELECT INBOX").await;
    let answer = told(&ok(&mut client, "STORE 1 +FLAGS ($Green NIL)").await);
    let flags = answer.iter().position(|l| l.starts_with("FLAGS (") && l.contains("$Green")).unwrap();
    let fetch = answer.iter().position(|l| l.starts_with("1 FETCH") && l.contains("$Green")).unwrap();
    assert!(flags < fetch, "{answer:?}");
    let answer = told(&ok(&mut other, "NOOP").await);
    let flags = answer.iter().position(|l| l.starts_with("FLAGS (") && l.contains("$Green")).unwrap();
    let fetch = answer.iter().position(|l| l.starts_with("1 FETCH") && l.contains("$Green")).unwrap();
    assert!(flags < fetch, "{answer:?}");
    gateway.shutdown().await;
}
