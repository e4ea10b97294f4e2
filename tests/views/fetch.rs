//! FETCH: items, macros, sections of parts, what clients spell in their own way.

use crate::gate::{USER, ok, person, provider, section, start, told, uids, until};

const NESTED: &[u8] = b"From: a@example.com\r\nTo: demo@example.org\r\nSubject: outer\r\n\
MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
--b\r\nContent-Type: text/plain\r\nX-Part: one\r\n\r\nfirst part\r\n\
--b\r\nContent-Type: message/rfc822\r\n\r\nX-Tollgate-Lane: push\r\nSubject: inner\r\nFrom: b@example.com\r\n\r\ninside\r\n\
--b--\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn parts_and_macros_are_answered_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "shadow").await;
    provider(&gateway).deliver(USER, NESTED);
    let mut client = person(&gateway).await;
    until(&mut client, "INBOX", 1).await;
    assert_eq!(section(&mut client, 1, "BODY.PEEK[1]").await, b"first part");
    assert_eq!(section(&mut client, 1, "BODY.PEEK[1]<6.100>").await, b"part");
    assert!(section(&mut client, 1, "BODY.PEEK[1.MIME]").await.starts_with(b"Content-Type: text/plain\r\nX-Part: one"));
    let inner = section(&mut client, 1, "BODY.PEEK[2.HEADER]").await;
    assert!(
        inner.starts_with(b"X-Tollgate-Lane: push\r\nSubject: inner\r\n"),
        "only the message's own header is stamped"
    );
    assert_eq!(section(&mut client, 1, "BODY.PEEK[2.HEADER.FIELDS (subject)]").await, b"Subject: inner\r\n\r\n");
    assert_eq!(section(&mut client, 1, "BODY.PEEK[2.TEXT]").await.trim_ascii(), b"inside");
    // RFC 9051 §7.5.2: the section is named as it was asked for.
    let answer = ok(&mut client, "UID FETCH 1 (BODY.PEEK[HEADER.FIELDS (sUBJECT \"x-none\")])").await;
    let text = &answer.fetched().next().unwrap().text;
    assert!(text.contains("BODY[HEADER.FIELDS (sUBJECT x-none)]"), "{text}");
    for (name, items) in [
        ("FAST", &["FLAGS", "INTERNALDATE", "RFC822.SIZE"][..]),
        ("ALL", &["FLAGS", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE"]),
        ("FULL", &["FLAGS", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE", "BODY ("]),
    ] {
        let answer = ok(&mut client, &format!("FETCH 1 {name}")).await;
        let text = &answer.fetched().next().unwrap().text;
        assert!(items.iter().all(|i| text.contains(i)), "{name}: {text}");
    }
    let answer = client.command("UID FETCH 1 (MODSEQ)").await.unwrap();
    assert!(answer.status.starts_with("BAD"), "{}", answer.status);
    let answer = ok(&mut client, "UID FETCH 7:9,99 (FLAGS BODY.PEEK[])").await;
    assert_eq!(answer.fetched().count(), 0, "a UID that isn't there is nothing");
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_peek_of_outlook_reads_without_marking() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "shadow").await;
    provider(&gateway).deliver(USER, b"Subject: peek\r\n\r\nx\r\n");
    let mut client = person(&gateway).await;
    until(&mut client, "INBOX", 1).await;
    let whole = section(&mut client, 1, "BODY.PEEK[]").await;
    let answer = ok(&mut client, "UID FETCH 1 (UID RFC822.PEEK)").await;
    let response = answer.fetched().next().unwrap();
    assert!(response.text.contains("RFC822 {"), "{}", response.text);
    assert_eq!(response.literals[0], whole);
    let flags = told(&ok(&mut client, "FETCH 1 FLAGS").await).join("\n");
    assert!(!flags.contains("\\Seen"), "{flags}");
    ok(&mut client, "FETCH 1 RFC822").await;
    let flags = told(&ok(&mut client, "FETCH 1 FLAGS").await).join("\n");
    assert!(flags.contains("\\Seen"), "{flags}");
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_messages_in_one_command_keep_their_own_octets() {
    const MESSAGES: usize = 120;
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    for n in 0..MESSAGES {
        provider(&gateway).deliver(USER, format!("Subject: number {n}\r\n\r\n{}", "y".repeat(n * 31 % 700)));
    }
    let mut client = person(&gateway).await;
    until(&mut client, "Lanes/All", MESSAGES).await;
    // One that the mirror still shows is gone at the provider: its neighbours
    // must not be shown in its place.
    let all = uids(&mut client).await;
    let answer = ok(&mut client, "FETCH 1:* (ENVELOPE BODY.PEEK[TEXT] RFC822.SIZE)").await;
    let seen: Vec<_> = answer.fetched().collect();
    assert_eq!(seen.len(), all.len());
    for (n, response) in seen.iter().enumerate() {
        assert!(response.text.starts_with(&format!("{} FETCH (", n + 1)), "ascending: {}", response.text);
        assert!(response.text.contains(&format!("\"number {n}\"")), "{}", response.text);
        assert_eq!(response.literals[0].len(), n * 31 % 700);
    }
    gateway.shutdown().await;
}
