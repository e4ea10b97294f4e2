//! Whole sessions against a running provider, over its sockets.

use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::faults::{ImapEffect, SmtpAt, SmtpEffect};
use super::provider::{Options, Provider};

const USER: &str = "a@example.org";

async fn provider() -> Provider {
    let users = vec![(USER.to_owned(), "secret".to_owned()), ("b@example.org".to_owned(), "other".to_owned())];
    Provider::start(Options { users, ..Options::default() }).await.unwrap()
}

struct Client {
    stream: BufReader<TcpStream>,
    tag: u32,
}

impl Client {
    async fn connect(addr: std::net::SocketAddr) -> Client {
        let mut client = Client { stream: BufReader::new(TcpStream::connect(addr).await.unwrap()), tag: 0 };
        client.line().await;
        client
    }

    async fn imap(provider: &Provider) -> Client {
        let mut client = Client::connect(provider.imap_addr()).await;
        assert!(client.cmd("LOGIN a@example.org secret").await.contains(" OK "));
        client
    }

    async fn inbox(provider: &Provider) -> Client {
        let mut client = Client::imap(provider).await;
        client.cmd("SELECT INBOX").await;
        client
    }

    async fn smtp(provider: &Provider) -> Client {
        let mut client = Client::connect(provider.smtp_addr()).await;
        client.send("EHLO client.example.org\r\n").await;
        client.reply().await;
        client.send("AUTH PLAIN AGFAZXhhbXBsZS5vcmcAc2VjcmV0\r\n").await;
        assert!(client.reply().await.starts_with("235"));
        client
    }

    async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(text.as_ref()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).await.unwrap();
        String::from_utf8_lossy(&line).into_owned()
    }

    /// A whole SMTP reply.
    async fn reply(&mut self) -> String {
        let mut all = String::new();
        loop {
            let line = self.line().await;
            let more = line.get(3..4) == Some("-");
            all.push_str(&line);
            if !more {
                return all;
            }
        }
    }

    /// Everything up to the tagged answer, as octets; ends early where the
    /// connection does.
    async fn raw(&mut self, command: &str) -> Vec<u8> {
        self.tag += 1;
        let tag = format!("t{}", self.tag);
        self.send(format!("{tag} {command}\r\n")).await;
        self.until(&tag).await
    }

    async fn until(&mut self, tag: &str) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let mut line = Vec::new();
            if self.stream.read_until(b'\n', &mut line).await.unwrap() == 0 {
                return all;
            }
            let last = line.starts_with(format!("{tag} ").as_bytes());
            let text = String::from_utf8_lossy(&line).into_owned();
            all.extend_from_slice(&line);
            if let Some(size) = text.strip_suffix("}\r\n").and_then(|t| t.rsplit_once('{')) {
                let mut octets = vec![0; size.1.parse().unwrap()];
                if self.stream.read_exact(&mut octets).await.is_err() {
                    return all;
                }
                all.extend_from_slice(&octets);
            }
            if last {
                return all;
            }
        }
    }

    async fn cmd(&mut self, command: &str) -> String {
        String::from_utf8_lossy(&self.raw(command).await).into_owned()
    }
}

/// The octets of the first literal of an answer.
fn literal(answer: &[u8]) -> Vec<u8> {
    let open = answer.iter().position(|b| *b == b'{').unwrap();
    let close = open + answer[open..].iter().position(|b| *b == b'}').unwrap();
    let size: usize = std::str::from_utf8(&answer[open + 1..close]).unwrap().parse().unwrap();
    answer[close + 3..close + 3 + size].to_vec()
}

#[tokio::test]
async fn any_octets_are_served_exactly_in_whole_and_in_part() {
    let provider = provider().await;
    let mut client = Client::inbox(&provider).await;
    for octets in [&b"Subject: x\n\n\xff\x00a\rb\n.\n"[..], b"", b"\x00", b"no header", &[0x80; 70_000]] {
        let uid = provider.deliver(USER, octets);
        client.cmd("NOOP").await;
        let whole = client.raw(&format!("UID FETCH {uid} (RFC822.SIZE BODY.PEEK[])")).await;
        assert_eq!(literal(&whole), octets);
        assert!(String::from_utf8_lossy(&whole).contains(&format!("RFC822.SIZE {}", octets.len())));
        let mut pieces = Vec::new();
        while pieces.len() < octets.len() {
            pieces.extend(literal(&client.raw(&format!("UID FETCH {uid} BODY.PEEK[]<{}.33333>", pieces.len())).await));
        }
        assert_eq!(pieces, octets);
        let header = literal(&client.raw(&format!("UID FETCH {uid} RFC822.HEADER")).await);
        let text = literal(&client.raw(&format!("UID FETCH {uid} BODY.PEEK[TEXT]")).await);
        assert_eq!([header, text].concat(), octets);
    }
    let past = client.cmd("FETCH 1 BODY.PEEK[]<999.10>").await;
    assert!(past.contains("BODY[]<999> {0}\r\n"), "{past}");
}

#[tokio::test]
async fn sections_are_the_very_octets_of_their_parts() {
    let provider = provider().await;
    let message = b"From: x@example.org\r\nX-A: 1\r\n folded\r\nx-a: 2\r\nSubject: s\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\none\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: in\r\n\r\ninner\r\n\r\n--b--\r\n";
    provider.deliver(USER, message);
    let mut client = Client::inbox(&provider).await;
    for (section, wanted) in [
        ("HEADER.FIELDS (X-A Subject)", "X-A: 1\r\n folded\r\nx-a: 2\r\nSubject: s\r\n\r\n"),
        ("HEADER.FIELDS.NOT (x-a subject content-type)", "From: x@example.org\r\n\r\n"),
        ("1", "one"),
        ("1.MIME", "Content-Type: text/plain\r\n\r\n"),
        ("2", "Subject: in\r\n\r\ninner\r\n"),
        ("2.HEADER", "Subject: in\r\n\r\n"),
        ("2.TEXT", "inner\r\n"),
        ("2.1", "inner\r\n"),
        ("2.HEADER.FIELDS (subject)", "Subject: in\r\n\r\n"),
    ] {
        let answer = client.raw(&format!("FETCH 1 BODY.PEEK[{section}]")).await;
        assert_eq!(String::from_utf8(literal(&answer)).unwrap(), wanted, "{section}");
        assert!(String::from_utf8_lossy(&answer).contains(&format!("BODY[{section}] {{")), "{section}");
    }
    assert!(client.cmd("FETCH 1 BODY.PEEK[3]").await.contains("BODY[3] NIL"));
    assert!(!client.cmd("FETCH 1 FLAGS").await.contains("Seen"));
    let seen = client.cmd("FETCH 1 BODY[1]").await;
    assert!(seen.contains("FLAGS (\\Seen \\Recent)"), "{seen}");
    assert!(client.cmd("FETCH 1 BODYSTRUCTURE").await.contains("\"RFC822\" NIL NIL NIL \"7BIT\" 22 (NIL \"in\""));
}

#[tokio::test]
async fn sessions_learn_of_each_other_only_where_numbers_may_change() {
    let provider = provider().await;
    for text in ["Subject: 1\r\n\r\n", "Subject: 2\r\n\r\n", "Subject: 3\r\n\r\n"] {
        provider.deliver(USER, text);
    }
    let (mut one, mut two) = (Client::inbox(&provider).await, Client::inbox(&provider).await);
    two.cmd("STORE 1 +FLAGS.SILENT (\\Deleted)").await;
    let expunged = two.cmd("EXPUNGE").await;
    assert!(expunged.starts_with("* 1 EXPUNGE\r\n"), "{expunged}");
    let fetched = one.cmd("FETCH 1:3 (UID BODY.PEEK[])").await;
    assert!(fetched.contains("Subject: 1") && !fetched.contains("EXPUNGE"), "{fetched}");
    let searched = one.cmd("SEARCH ALL").await;
    assert!(searched.contains("* SEARCH 1 2 3\r\n") && !searched.contains("EXPUNGE"), "{searched}");
    assert!(one.cmd("STORE 1 +FLAGS (\\Seen)").await.contains("NO [EXPUNGEISSUED]"));
    assert!(one.cmd("UID FETCH 2 FLAGS").await.contains("* 1 EXPUNGE\r\n"));
    assert!(one.cmd("FETCH 1 UID").await.contains("* 1 FETCH (UID 2)"));
    two.cmd("UID STORE 3 FLAGS ($Label1 \\Flagged)").await;
    let told = one.cmd("NOOP").await;
    assert!(told.contains("* 2 FETCH (UID 3 FLAGS ($Label1 \\Flagged \\Recent))"), "{told}");
    assert!(!one.cmd("NOOP").await.contains("FETCH"));
}

#[tokio::test]
async fn an_idle_session_is_told_at_once() {
    let provider = provider().await;
    let mut client = Client::inbox(&provider).await;
    client.send("i IDLE\r\n").await;
    assert!(client.line().await.starts_with('+'));
    let before = Instant::now();
    let uid = provider.deliver(USER, "Subject: new\r\n\r\n");
    assert_eq!(client.line().await, "* 1 EXISTS\r\n");
    assert!(before.elapsed() < Duration::from_millis(100));
    assert!(provider.announced(USER, uid).unwrap() >= before);
    assert_eq!(client.line().await, "* 1 RECENT\r\n");
    let mut other = Client::inbox(&provider).await;
    other.cmd("STORE 1 FLAGS (\\Deleted)").await;
    assert_eq!(client.line().await, "* 1 FETCH (UID 1 FLAGS (\\Deleted \\Recent))\r\n");
    other.cmd("CLOSE").await;
    assert_eq!(client.line().await, "* 1 EXPUNGE\r\n");
    client.send("DONE\r\n").await;
    assert!(client.line().await.starts_with("i OK"));
}

#[tokio::test]
async fn copy_move_and_append_tell_the_new_uids() {
    let provider = provider().await;
    for _ in 0..3 {
        provider.deliver(USER, "Subject: x\r\n\r\n");
    }
    let mut client = Client::inbox(&provider).await;
    let archive = provider.uid_validity(USER, "Archive").unwrap();
    assert!(client.cmd("COPY 1,3 Archive").await.contains(&format!("[COPYUID {archive} 1,3 1:2]")));
    let moved = client.cmd("UID MOVE 2:3 Archive").await;
    let wanted = format!("* OK [COPYUID {archive} 2:3 3:4] moved\r\n* 2 EXPUNGE\r\n* 2 EXPUNGE\r\n");
    assert!(moved.starts_with(&wanted), "{moved}");
    assert!(client.cmd("COPY 1 Nowhere").await.contains("NO [TRYCREATE]"));
    assert!(client.cmd("UID MOVE 99 Archive").await.contains(" OK "));
    client.send(&b"p APPEND \"Drafts\" (\\Draft $X) \" 1-Jan-2020 01:02:03 +0200\" {5+}\r\na\0\xff\nb\r\n"[..]).await;
    let _ = client.until("p").await;
    client.send(b"p APPEND {6}\r\n").await;
    assert!(client.line().await.starts_with('+'));
    client.send(b"Drafts {3}\r\n").await;
    assert!(client.line().await.starts_with('+'));
    client.send(b"a\0\xff\r\n").await;
    let drafts = provider.uid_validity(USER, "Drafts").unwrap();
    let done = client.until("p").await;
    assert!(String::from_utf8_lossy(&done).contains(&format!("[APPENDUID {drafts} 2]")));
    let stored = provider.mailbox(USER, "Drafts");
    assert_eq!(&*stored[1].octets, b"a\0\xff");
    assert_eq!(stored[0].internaldate.to_string(), " 1-Jan-2020 01:02:03 +0200");
    assert!(stored[0].flags.contains("$X") && stored[0].flags.contains("\\Draft"));
}

#[tokio::test]
async fn search_knows_every_key() {
    let provider = provider().await;
    provider.deliver(USER, "From: Ann <ann@example.org>\r\nTo: b@example.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nDate: Wed, 01 Jan 2020 10:00:00 +0000\r\nContent-Transfer-Encoding: base64\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nSGVsbG8gV29ybGQ=\r\n");
    provider.put(USER, "INBOX", "From: bob@example.net\r\nSubject: two\r\n\r\nbody", &["\\Seen", "\\Flagged", "Work"]);
    let mut client = Client::inbox(&provider).await;
    for (keys, wanted) in [
        ("ALL", " 1 2"),
        ("SEEN", " 2"),
        ("NEW", " 1"),
        ("NOT SEEN", " 1"),
        ("OR FROM ann SUBJECT two", " 1 2"),
        ("KEYWORD work", " 2"),
        ("UNKEYWORD Work", " 1"),
        ("BODY \"hello world\"", " 1"),
        ("TEXT example.net", " 2"),
        ("HEADER Message-ID \"\"", ""),
        ("HEADER Subject \"\"", " 1 2"),
        ("SENTON 1-Jan-2020", " 1"),
        ("SENTBEFORE 1-Jan-2020", ""),
        ("SINCE 1-Jan-2020", " 1 2"),
        ("BEFORE 1-Jan-2020", ""),
        ("LARGER 60", " 1"),
        ("SMALLER 60", " 2"),
        ("UID 2:*", " 2"),
        ("1 (UNFLAGGED UNDELETED)", " 1"),
        ("literal {", ""),
    ] {
        if keys.contains('{') {
            client.send("s SEARCH CHARSET UTF-8 SUBJECT {7+}\r\ngr\u{fc}\u{df}e\r\n".as_bytes()).await;
            assert!(String::from_utf8_lossy(&client.until("s").await).starts_with("* SEARCH 1\r\n"));
            continue;
        }
        let answer = client.cmd(&format!("SEARCH {keys}")).await;
        assert!(answer.starts_with(&format!("* SEARCH{wanted}\r\n")), "{keys}: {answer}");
    }
    assert!(client.cmd("SEARCH CHARSET KOI8-R ALL").await.contains("NO [BADCHARSET"));
}

#[tokio::test]
async fn mailboxes_are_listed_with_their_use() {
    let provider = provider().await;
    let mut client = Client::imap(&provider).await;
    client.cmd("CREATE A/B/C").await;
    client.cmd("SUBSCRIBE A/B/C").await;
    let listed = client.cmd("LIST \"\" *").await;
    for line in [
        "* LIST (\\HasChildren \\Noselect) \"/\" \"A/B\"\r\n",
        "* LIST (\\HasNoChildren \\Sent) \"/\" \"Sent\"\r\n",
        "* LIST (\\HasNoChildren) \"/\" \"INBOX\"\r\n",
    ] {
        assert!(listed.contains(line), "{listed}");
    }
    assert!(client.cmd("LIST \"\" %").await.contains("\"A\"\r\n"));
    assert!(client.cmd("LSUB \"\" *").await.contains("* LSUB () \"/\" \"A/B/C\"\r\n"));
    assert!(client.cmd("LIST \"\" \"\"").await.starts_with("* LIST (\\Noselect) \"/\" \"\"\r\n"));
    let status = client.cmd("STATUS inbox (MESSAGES UIDNEXT UIDVALIDITY UNSEEN RECENT SIZE)").await;
    assert!(status.starts_with("* STATUS \"INBOX\" (MESSAGES 0 UIDNEXT 1 UIDVALIDITY "), "{status}");
    assert!(client.cmd("SELECT A/B").await.contains("NO [NONEXISTENT]"));
    assert!(client.cmd("DELETE INBOX").await.contains("NO [CANNOT]"));
    let examined = client.cmd("EXAMINE Sent").await;
    assert!(examined.contains("[PERMANENTFLAGS ()]") && examined.contains("OK [READ-ONLY]"), "{examined}");
}

#[tokio::test]
async fn a_deleted_mailbox_ends_the_sessions_in_it() {
    let provider = provider().await;
    let mut client = Client::imap(&provider).await;
    client.cmd("CREATE X").await;
    client.cmd("SELECT X").await;
    Client::imap(&provider).await.cmd("DELETE X").await;
    assert!(client.cmd("NOOP").await.starts_with("* BYE"));
}

#[tokio::test]
async fn a_submission_is_recorded_to_the_octet() {
    let provider = provider().await;
    let mut client = Client::smtp(&provider).await;
    client
        .send(b"MAIL FROM:<a@example.org> BODY=8BITMIME\r\nRCPT TO:<x@example.net>\r\nRCPT TO:<B@example.org>\r\nDATA\r\n")
        .await;
    for code in ["250", "250", "250", "354"] {
        assert!(client.reply().await.starts_with(code));
    }
    client.send(b"Subject: x\r\n\r\n..\r\n\xffa\n.\nb\r\n.\r\nNOOP\r\n").await;
    assert!(client.reply().await.starts_with("250 2.0.0 taken"));
    assert!(client.reply().await.starts_with("250"));
    let accepted = provider.accepted();
    assert_eq!(accepted[0].octets, b"Subject: x\r\n\r\n.\r\n\xffa\n.\nb\r\n");
    assert_eq!(accepted[0].forward_paths, ["x@example.net", "B@example.org"]);
    assert_eq!(accepted[0].mail_params, ["BODY=8BITMIME"]);
    assert_eq!(&*provider.mailbox("b@example.org", "INBOX")[0].octets, accepted[0].octets);
    assert!(provider.mailbox(USER, "Sent").is_empty());
}

#[tokio::test]
async fn submission_wants_a_login_and_what_was_offered() {
    let provider = provider().await;
    let mut client = Client::connect(provider.smtp_addr()).await;
    for (command, code) in [
        ("MAIL FROM:<a@example.org>", "530"),
        ("EHLO x", "250"),
        ("AUTH LOGIN", "334"),
        ("YUBleGFtcGxlLm9yZw==", "334"),
        ("eA==", "535"),
        ("AUTH PLAIN AGFAZXhhbXBsZS5vcmcAc2VjcmV0", "235"),
        ("DATA", "503"),
        ("MAIL FROM:<a@example.org> RET=FULL", "555"),
        ("MAIL FROM:<\u{fc}@example.org>", "553"),
        ("MAIL FROM:<\u{fc}@example.org> SMTPUTF8", "250"),
        ("RCPT TO:<>", "501"),
        ("RSET", "250"),
        ("QUIT", "221"),
    ] {
        client.send(format!("{command}\r\n")).await;
        let reply = client.reply().await;
        assert!(reply.starts_with(code), "{command}: {reply}");
    }
}

#[tokio::test]
async fn faults_strike_where_they_are_set() {
    let provider = provider().await;
    let faults = provider.faults();
    provider.deliver(USER, "Subject: x\r\n\r\n0123456789");
    faults.reject_auth(true);
    let mut client = Client::connect(provider.imap_addr()).await;
    assert!(client.cmd("LOGIN a@example.org secret").await.contains("NO [AUTHENTICATIONFAILED]"));
    faults.reject_auth(false);
    faults.size_lie(-3);
    faults.hide_imap_capability("IDLE");
    let mut client = Client::inbox(&provider).await;
    assert!(client.cmd("FETCH 1 RFC822.SIZE").await.contains("RFC822.SIZE 21)"));
    assert!(!client.cmd("CAPABILITY").await.contains("IDLE"));
    assert!(client.cmd("IDLE").await.contains("BAD"));
    faults.imap(Some("NOOP"), ImapEffect::No("later".into()), Some(1));
    assert!(client.cmd("NOOP").await.ends_with("NO later\r\n"));
    assert!(client.cmd("NOOP").await.contains("OK"));
    faults.imap(Some("FETCH"), ImapEffect::DropInLiteral(4), Some(1));
    let cut = client.cmd("UID FETCH 1 BODY.PEEK[]").await;
    assert!(cut.ends_with("BODY[] {24}\r\n"), "{cut}");
    let mut client = Client::inbox(&provider).await;
    faults.imap(None, ImapEffect::Bye("away".into()), Some(1));
    assert_eq!(client.cmd("NOOP").await, "* BYE away\r\n");
    let mut client = Client::inbox(&provider).await;
    provider.disconnect(Some("all"));
    assert_eq!(client.line().await, "* BYE all\r\n");
}

#[tokio::test]
async fn submission_faults_strike_where_they_are_set() {
    let provider = provider().await;
    let faults = provider.faults();
    faults.hide_ehlo_keyword("8BITMIME");
    faults.smtp(SmtpAt::Rcpt(Some("bad@example.net".into())), SmtpEffect::Reply("550 5.1.1 nobody".into()), None);
    faults.smtp(SmtpAt::Dot, SmtpEffect::Reply("451 4.3.0 later".into()), Some(1));
    faults.smtp(SmtpAt::AfterDot, SmtpEffect::Close, Some(1));
    let mut client = Client::smtp(&provider).await;
    client.send("MAIL FROM:<a@example.org> BODY=8BITMIME\r\n").await;
    assert!(client.reply().await.starts_with("555"));
    for (round, answer) in [(0, "451 4.3.0 later\r\n"), (1, "")] {
        client
            .send("MAIL FROM:<a@example.org>\r\nRCPT TO:<bad@example.net>\r\nRCPT TO:<x@example.net>\r\nDATA\r\n")
            .await;
        for code in ["250", "550", "250", "354"] {
            assert!(client.reply().await.starts_with(code));
        }
        client.send("x\r\n.\r\n").await;
        assert_eq!(client.reply().await, answer);
        assert_eq!(provider.accepted().len(), round);
    }
}

#[tokio::test]
async fn a_second_start_finds_its_state() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        users: vec![(USER.to_owned(), "secret".to_owned())],
        folder: Some(dir.path().to_owned()),
        samples: true,
        ..Options::default()
    };
    let first = Provider::start(options.clone()).await.unwrap();
    first.deliver(USER, b"Subject: x\n\n\0\xff");
    let mut client = Client::inbox(&first).await;
    client.cmd("STORE 1 FLAGS (\\Flagged Work)").await;
    client.cmd("UNSUBSCRIBE Junk").await;
    let (before, validity) = (first.mailbox(USER, "INBOX"), first.uid_validity(USER, "INBOX"));
    first.stop().await;
    assert!(TcpStream::connect(first.imap_addr()).await.is_err());
    let second = Provider::start(options).await.unwrap();
    assert_eq!(second.mailbox(USER, "INBOX"), before);
    assert_eq!(second.uid_validity(USER, "INBOX"), validity);
    let mut client = Client::imap(&second).await;
    assert!(!client.cmd("LSUB \"\" *").await.contains("Junk"));
}

#[tokio::test]
async fn other_addresses_than_loopback_are_refused() {
    let options = Options { imap: "0.0.0.0:0".parse().unwrap(), ..Options::default() };
    assert_eq!(Provider::start(options).await.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}
