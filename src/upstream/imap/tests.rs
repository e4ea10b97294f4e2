//! The client against scripted servers on loopback, and what data says.

use std::time::Instant;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::config::TlsMode;

/// The server's side of a script.
struct Peer<S> {
    stream: S,
    buf: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    /// Waits until exactly `octets` came.
    async fn hear(&mut self, octets: &str) {
        while self.buf.len() < octets.len() {
            assert_ne!(self.stream.read_buf(&mut self.buf).await.unwrap(), 0, "closed before {octets:?}");
        }
        let heard: Vec<u8> = self.buf.drain(..octets.len()).collect();
        assert_eq!(String::from_utf8_lossy(&heard), octets);
    }

    async fn say(&mut self, octets: &str) {
        self.stream.write_all(octets.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Each octet in a segment of its own, as far as the kernel goes along.
    async fn say_slowly(&mut self, octets: &str) {
        for octet in octets.as_bytes() {
            self.stream.write_all(&[*octet]).await.unwrap();
            tokio::task::yield_now().await;
        }
    }

    /// Greeting and a login by AUTHENTICATE; the next tag is t4.
    async fn welcome(&mut self, capabilities: &str) {
        self.say("* OK ready {5}\r\n").await;
        self.hear("t1 CAPABILITY\r\n").await;
        self.say("* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR\r\nt1 OK done\r\n").await;
        self.hear("t2 AUTHENTICATE PLAIN AGRlbW8Ac2VjcmV0\r\n").await;
        self.say("t2 OK in\r\n").await;
        self.hear("t3 CAPABILITY\r\n").await;
        self.say(&format!("* CAPABILITY {capabilities}\r\nt3 OK done\r\n")).await;
    }

    /// Stays until the client is gone.
    async fn until_gone(mut self) {
        while self.stream.read_buf(&mut self.buf).await.is_ok_and(|n| n > 0) {}
    }
}

/// A server that runs `script` with its first client.
async fn server<F, Fut>(script: F) -> (ImapTarget, JoinHandle<()>)
where
    F: FnOnce(Peer<TcpStream>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        script(Peer { stream, buf: Vec::new() }).await;
    });
    (target(port), task)
}

fn target(port: u16) -> ImapTarget {
    let endpoint = Endpoint { host: "127.0.0.1".into(), port, tls: TlsMode::None, ca: None };
    ImapTarget { endpoint, user: "demo".into(), password: Zeroizing::new("secret".into()) }
}

fn untagged(text: &str) -> UntaggedData {
    Untagged { text: Bytes::from(text.to_owned()), literals: Vec::new() }.parse()
}

fn fetched(text: &str) -> FetchItems {
    match untagged(text) {
        UntaggedData::Fetch { seq: 1, items } => items,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn logs_in_by_authenticate_and_learns_capabilities_again() {
    let (target, task) = server(|mut peer| async move {
        peer.welcome("IMAP4rev1 Idle").await;
        peer.hear("t4 LOGOUT\r\n").await;
        peer.say("* BYE\r\n").await;
    })
    .await;
    let connection = Connection::open(&target).await.unwrap();
    assert!(connection.capabilities().has("IDLE") && !connection.capabilities().has("SASL-IR"));
    assert_eq!(connection.capabilities().iter().collect::<Vec<_>>(), ["IMAP4rev1", "Idle"]);
    connection.logout().await.unwrap();
    task.await.unwrap();
    assert!(!format!("{target:?}").contains("secret"));
}

#[tokio::test]
async fn logs_in_by_login_with_quoting_and_untagged_in_between() {
    let (mut target, task) = server(|mut peer| async move {
        peer.say_slowly("* OK hi\r\n").await;
        peer.hear("t1 CAPABILITY\r\n").await;
        peer.say_slowly("* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\nt1 OK\r\n").await;
        peer.hear("t2 LOGIN demo \"se \\\"cret\"\r\n").await;
        peer.say_slowly("* OK wait\r\n* CAPABILITY X\r\nt2 OK [CAPABILITY X] in\r\n").await;
        peer.hear("t3 CAPABILITY\r\n").await;
        peer.say("* CAPABILITY IMAP4rev1 UIDPLUS \r\nt3 OK\r\n").await;
    })
    .await;
    target.password = Zeroizing::new("se \"cret".into());
    assert!(Connection::open(&target).await.unwrap().capabilities().has("uidplus"));
    task.await.unwrap();
}

#[tokio::test]
async fn logs_in_with_literals_where_octets_demand_it() {
    let (mut target, task) = server(|mut peer| async move {
        peer.say("* OK hi\r\n").await;
        peer.hear("t1 CAPABILITY\r\n").await;
        peer.say("* CAPABILITY IMAP4rev1\r\nt1 OK\r\n").await;
        peer.hear("t2 LOGIN {5}\r\n").await;
        peer.say("+ \r\n").await;
        peer.hear("dem\u{e9} {6}\r\n").await;
        peer.say("* OK thinking\r\n+ go\r\n").await;
        peer.hear("secr\u{e9}\r\n").await;
        peer.say("t2 OK\r\n").await;
        peer.hear("t3 CAPABILITY\r\n").await;
        peer.say("t3 OK [CAPABILITY IMAP4rev1 IDLE] done\r\n").await;
    })
    .await;
    target.user = "dem\u{e9}".into();
    target.password = Zeroizing::new("secr\u{e9}".into());
    assert!(Connection::open(&target).await.unwrap().capabilities().has("IDLE"));
    task.await.unwrap();
}

#[tokio::test]
async fn authenticates_in_two_steps_where_login_is_disabled() {
    let (target, task) = server(|mut peer| async move {
        peer.say("* OK hi\r\n").await;
        peer.hear("t1 CAPABILITY\r\n").await;
        peer.say("* CAPABILITY IMAP4rev1 LOGINDISABLED AUTH=PLAIN\r\nt1 OK\r\n").await;
        peer.hear("t2 AUTHENTICATE PLAIN\r\n").await;
        peer.say("+ \r\n").await;
        peer.hear("AGRlbW8Ac2VjcmV0\r\n").await;
        peer.say("t2 NO [UNAVAILABLE] later\r\n").await;
    })
    .await;
    let error = Connection::open(&target).await.unwrap_err();
    assert!(matches!(error, ImapError::No { .. }), "not the password's fault: {error:?}");
    task.await.unwrap();
}

#[tokio::test]
async fn a_refused_login_is_an_auth_error() {
    let (target, task) = server(|mut peer| async move {
        peer.say("* OK hi\r\n").await;
        peer.hear("t1 CAPABILITY\r\n").await;
        peer.say("* CAPABILITY IMAP4rev1\r\nt1 OK\r\n").await;
        peer.hear("t2 LOGIN demo secret\r\n").await;
        peer.say("t2 NO [AUTHENTICATIONFAILED] wrong {5}\r\n").await;
    })
    .await;
    match Connection::open(&target).await {
        Err(ImapError::Auth { text }) => assert_eq!(text, "wrong {5}"),
        other => panic!("{other:?}"),
    }
    task.await.unwrap();
}

#[tokio::test]
async fn too_many_connections_are_no_fault_of_the_password() {
    for (answer, limit) in [
        ("[ALERT] Too many simultaneous connections. (Failure)", true),
        ("[UNAVAILABLE] Maximum number of connections from user+IP exceeded (mail_max_userip_connections=10)", true),
        ("[LIMIT] later", true),
        ("[ALERT] Please log in via your web browser (Failure)", false),
        ("[AUTHENTICATIONFAILED] Invalid credentials (Failure)", false),
    ] {
        let (target, task) = server(move |mut peer| async move {
            peer.say("* OK hi\r\n").await;
            peer.hear("t1 CAPABILITY\r\n").await;
            peer.say("* CAPABILITY IMAP4rev1\r\nt1 OK\r\n").await;
            peer.hear("t2 LOGIN demo secret\r\n").await;
            peer.say(&format!("t2 NO {answer}\r\n")).await;
        })
        .await;
        let error = Connection::open(&target).await.unwrap_err();
        assert_eq!(error.is_limit(), limit, "{answer}: {error:?}");
        assert_eq!(matches!(error, ImapError::Auth { .. }), !limit, "{answer}: {error:?}");
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_hangs_up_or_preauthenticates_is_refused() {
    for (greeting, expected) in [
        ("* BYE [LIMIT] too many\r\n", "No"),
        ("* PREAUTH hello\r\n", "Protocol"),
        ("", "Closed"),
        ("+ x\r\n", "Protocol"),
    ] {
        let (target, task) = server(move |mut peer| async move { peer.say(greeting).await }).await;
        let error = Connection::open(&target).await.unwrap_err();
        assert!(format!("{error:?}").starts_with(expected), "{greeting}: {error:?}");
        task.await.unwrap();
    }
}

#[tokio::test]
async fn starttls_is_required_and_nothing_may_precede_tls() {
    for (offer, answer) in [("IMAP4rev1", None), ("STARTTLS", Some("t2 OK go\r\nt3 OK injected\r\n"))] {
        let (mut target, task) = server(move |mut peer| async move {
            peer.say("* OK [CAPABILITY STARTTLS] hi\r\n").await;
            peer.hear("t1 CAPABILITY\r\n").await;
            peer.say(&format!("* CAPABILITY {offer}\r\nt1 OK\r\n")).await;
            if let Some(answer) = answer {
                peer.hear("t2 STARTTLS\r\n").await;
                peer.say(answer).await;
            }
            peer.until_gone().await;
        })
        .await;
        target.endpoint.tls = TlsMode::StartTls;
        assert!(matches!(Connection::open(&target).await, Err(ImapError::Protocol(_))));
        task.await.unwrap();
    }
}

#[tokio::test]
async fn logs_in_inside_starttls() {
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let (mut target, task) = server(|mut peer| async move {
        peer.say("* OK hi\r\n").await;
        peer.hear("t1 CAPABILITY\r\n").await;
        peer.say("* CAPABILITY STARTTLS\r\nt1 OK\r\n").await;
        peer.hear("t2 STARTTLS\r\n").await;
        peer.say("t2 OK go\r\n").await;
        let stream = acceptor.accept(peer.stream).await.unwrap();
        let mut peer = Peer { stream, buf: Vec::new() };
        // Tags start again; nothing from before counts.
        peer.hear("t1 CAPABILITY\r\n").await;
        peer.say("* CAPABILITY IMAP4rev1\r\nt1 OK\r\n").await;
        peer.hear("t2 LOGIN demo secret\r\n").await;
        peer.say("t2 OK\r\n").await;
        peer.hear("t3 CAPABILITY\r\n").await;
        peer.say("* CAPABILITY IDLE\r\nt3 OK\r\n").await;
        peer.until_gone().await;
    })
    .await;
    target.endpoint = Endpoint { host: "localhost".into(), tls: TlsMode::StartTls, ca: Some(ca), ..target.endpoint };
    let connection = Connection::open(&target).await.unwrap();
    assert!(connection.stream.is_tls() && connection.capabilities().has("IDLE"));
    drop(connection);
    task.await.unwrap();
}

#[tokio::test]
async fn pipelined_commands_keep_their_answers_apart() {
    let (target, task) = server(|mut peer| async move {
        peer.welcome("IMAP4rev1").await;
        peer.hear("t4 FETCH 1 BODY[]\r\nt5 FETCH 2 FLAGS\r\n").await;
        peer.say_slowly("* 9 EXISTS\r\n* 1 FETCH (BODY[] {11}\r\n\0 (x)\r\nt4 \0 UID 7 )\r\n").await;
        peer.say("t5 OK out of order\r\nt4 NO [X {3}] done {3}\r\n").await;
    })
    .await;
    let mut connection = Connection::open(&target).await.unwrap();
    let first = connection.send(b"FETCH 1 BODY[]").await.unwrap();
    let second = connection.send(b"FETCH 2 FLAGS").await.unwrap();
    let outcome = connection.wait(first).await.unwrap();
    assert_eq!(outcome.code.as_deref(), Some(&b"X {3}"[..]));
    assert_eq!(outcome.untagged[0].parse(), UntaggedData::Exists(9));
    let UntaggedData::Fetch { seq: 1, items } = outcome.untagged[1].parse() else { panic!() };
    let body = b"\0 (x)\r\nt4 \0";
    assert_eq!(outcome.untagged[1].literals, [&body[..]]);
    assert_eq!(items.uid, Some(7));
    assert_eq!(items.other, [(Bytes::from("BODY[]"), Value::Literal(Bytes::from(&body[..])))]);
    let answer = connection.next_response().await.unwrap();
    assert!(matches!(answer, Response::Tagged { tag: Some(tag), status: Status::Ok, .. } if tag == second));
    assert!(matches!(outcome.ok(), Err(ImapError::No { .. })));
    task.await.unwrap();
}

#[tokio::test]
async fn a_silent_server_ends_in_a_timeout() {
    let (target, task) = server(|mut peer| async move {
        peer.welcome("IMAP4rev1").await;
        peer.hear("t4 NOOP\r\n").await;
        peer.say("* 1 EXISTS\r\n* 2 EXI").await;
        peer.until_gone().await;
    })
    .await;
    let mut connection = Connection::open(&target).await.unwrap();
    connection.set_deadline(Duration::from_millis(60));
    let start = Instant::now();
    assert!(matches!(connection.run(b"NOOP").await, Err(ImapError::Timeout)));
    assert!(start.elapsed() < Duration::from_secs(10));
    drop(connection);
    task.await.unwrap();
}

#[tokio::test]
async fn reading_can_be_cancelled_anywhere() {
    let (target, task) = server(|mut peer| async move {
        peer.welcome("IMAP4rev1 IDLE").await;
        peer.hear("t4 IDLE\r\n").await;
        peer.say("* 3 EXISTS\r\n+ idling\r\n").await;
        for octet in "* 1 FETCH (BODY[] {4}\r\nab\r\n)\r\n".as_bytes() {
            peer.stream.write_all(&[*octet]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        peer.hear("DONE\r\n").await;
        peer.say("* 2 EXPUNGE\r\nt4 OK\r\n").await;
    })
    .await;
    let mut connection = Connection::open(&target).await.unwrap();
    connection.idle_start().await.unwrap();
    let Response::Untagged(exists) = connection.next_response().await.unwrap() else { panic!() };
    assert_eq!(exists.parse(), UntaggedData::Exists(3));
    let data = loop {
        tokio::select! {
            biased;
            response = connection.next_response() => break response.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    };
    let Response::Untagged(data) = data else { panic!() };
    assert_eq!(data.literals, [&b"ab\r\n"[..]]);
    assert_eq!(data.text, "* 1 FETCH (BODY[] {4}\r\nab\r\n)");
    let outcome = connection.idle_done().await.unwrap();
    assert_eq!(outcome.untagged[0].parse(), UntaggedData::Expunge(2));
    task.await.unwrap();
}

#[tokio::test]
async fn literals_wait_for_the_server_unless_it_takes_them_unasked() {
    let (target, task) = server(|mut peer| async move {
        peer.welcome("IMAP4rev1 LITERAL-").await;
        peer.hear("t4 CREATE {3+}\r\n\u{e9}x\r\n").await;
        peer.say("t4 OK\r\n").await;
        peer.hear("t5 APPEND x {5000}\r\n").await;
        peer.say("* 5 EXISTS\r\nt5 NO [OVERQUOTA] full\r\n").await;
        peer.hear("t6 SELECT {5000}\r\n").await;
        peer.say("+\r\n").await;
        peer.hear(&"\u{e9}".repeat(2500)).await;
        peer.hear("\r\n").await;
        peer.say("t6 OK\r\n").await;
    })
    .await;
    let mut connection = Connection::open(&target).await.unwrap();
    connection.run_with_names(b"CREATE ", &["\u{e9}x".as_bytes()]).await.unwrap().ok().unwrap();
    let refused = connection.run_parts(&[Part::Text(b"APPEND x "), Part::Literal(&[b'x'; 5000])]).await.unwrap();
    assert_eq!((refused.status, refused.untagged.len()), (Status::No, 1));
    let sent = connection.select("\u{e9}".repeat(2500).as_bytes(), false).await;
    assert!(matches!(sent, Err(ImapError::Protocol(_))), "a mailbox without UIDVALIDITY: {sent:?}");
    task.await.unwrap();
}

#[tokio::test]
async fn a_command_cannot_smuggle_another() {
    let (target, task) = server(|mut peer| async move {
        peer.welcome("IMAP4rev1").await;
        peer.until_gone().await;
    })
    .await;
    let mut connection = Connection::open(&target).await.unwrap();
    assert!(matches!(connection.send(b"NOOP\r\nt9 LOGOUT").await, Err(ImapError::Protocol(_))));
    drop(connection);
    task.await.unwrap();
}

#[tokio::test]
async fn select_and_list_say_what_they_found() {
    let (target, task) = server(|mut peer| async move {
        peer.welcome("IMAP4rev1 CondStore").await;
        peer.hear("t4 SELECT \"My Mail\" (CONDSTORE)\r\n").await;
        peer.say("* FLAGS (\\Seen a])\r\n* OK [PERMANENTFLAGS (\\Seen a] \\*)] {3}\r\n* 7 EXISTS\r\n* 2 RECENT\r\n")
            .await;
        peer.say("* OK [UIDVALIDITY 4294967303] ok\r\n* OK [UIDNEXT 12]\r\n* OK [HIGHESTMODSEQ 99] x\r\n").await;
        peer.say("t4 OK [READ-WRITE] done\r\n").await;
        peer.hear("t5 EXAMINE INBOX (CONDSTORE)\r\n").await;
        peer.say("* FLAGS (\\Seen)\r\n* OK [UIDVALIDITY 5]\r\nt5 OK [READ-ONLY]\r\n").await;
        peer.hear("t6 LIST \"\" \"*\"\r\n").await;
        peer.say("* LIST (\\HasNoChildren) \"/\" \"a \\\"b\"\r\n* LIST () NIL {4}\r\n\"({x\r\n").await;
        peer.say("* LIST () \"\\\" \"c\\d\"\r\n* LIST (\\Noselect) \"\\\\\" NIL\r\nt6 OK\r\n").await;
    })
    .await;
    let mut connection = Connection::open(&target).await.unwrap();
    let found = connection.select(b"My Mail", false).await.unwrap();
    assert_eq!((found.exists, found.recent, found.uidvalidity, found.uidnext), (7, 2, 7, 12));
    assert_eq!((found.highestmodseq, found.read_write), (Some(99), true));
    assert_eq!(found.flags, ["\\Seen", "a]"]);
    assert_eq!(found.permanent_flags, ["\\Seen", "a]", "\\*"]);
    let found = connection.select(b"INBOX", true).await.unwrap();
    assert_eq!((found.read_write, found.permanent_flags.len()), (false, 1));
    let names: Vec<_> = connection.list(b"", b"*").await.unwrap().into_iter().map(|e| (e.delimiter, e.name)).collect();
    let expected: [(Option<u8>, &[u8]); 4] =
        [(Some(b'/'), b"a \"b"), (None, b"\"({x"), (Some(b'\\'), b"c\\d"), (Some(b'\\'), b"NIL")];
    assert_eq!(names, expected.map(|(d, n)| (d, Bytes::from(n))));
    task.await.unwrap();
}

#[tokio::test]
async fn a_response_too_large_is_not_collected_but_can_be_streamed() {
    for stream in [false, true] {
        let (target, task) = server(move |mut peer| async move {
            peer.welcome("IMAP4rev1").await;
            peer.hear("t4 FETCH 1 BODY[]\r\n").await;
            peer.say(&format!("* 1 FETCH (BODY[] {{{}}}\r\n", MAX_RESPONSE + 1)).await;
            if stream {
                peer.say(&"x".repeat(MAX_RESPONSE + 1)).await;
                peer.say(")\r\nt4 OK\r\n").await;
            }
            peer.until_gone().await;
        })
        .await;
        let mut connection = Connection::open(&target).await.unwrap();
        let tag = connection.send(b"FETCH 1 BODY[]").await.unwrap();
        if stream {
            let mut octets = 0;
            loop {
                match connection.next_piece().await.unwrap() {
                    Piece::Chunk(chunk) => octets += chunk.len(),
                    Piece::End => break,
                    Piece::Text(_) | Piece::Literal { .. } => {}
                }
            }
            assert_eq!(octets, MAX_RESPONSE + 1);
            connection.wait(tag).await.unwrap().ok().unwrap();
        } else {
            assert!(matches!(connection.wait(tag).await, Err(ImapError::TooLarge)));
            assert!(matches!(connection.next_response().await, Err(ImapError::TooLarge)));
        }
        drop(connection);
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_talks_before_it_reads_does_not_block_us() {
    const MANY: usize = 2 * 1024 * 1024;
    let (target, task) = server(|mut peer| async move {
        peer.welcome("IMAP4rev1").await;
        for _ in 0..MANY / 16 {
            peer.say("* 1234567 EXIST\n".replace('\n', "\r\n").as_str()).await;
        }
        peer.hear(&"x".repeat(MANY)).await;
    })
    .await;
    let mut connection = Connection::open(&target).await.unwrap();
    for chunk in vec![b'x'; MANY].chunks(4096) {
        connection.write_raw(chunk).await.unwrap();
    }
    connection.flush().await.unwrap();
    assert!(matches!(connection.next_response().await.unwrap(), Response::Untagged(_)));
    task.await.unwrap();
}

#[test]
fn tags_read_back_only_what_they_write() {
    assert_eq!(Tag::parse(b"t7"), Some(Tag(7)));
    for raw in [&b"t07"[..], b"t", b"7", b"T7", b"t+7", b"t99999999999"] {
        assert_eq!(Tag::parse(raw), None);
    }
}

#[test]
fn fetch_takes_what_real_servers_send() {
    let items = fetched(
        "* 1 FETCH (UID 4 FLAGS (\\Seen \\* foo[bar) RFC822.SIZE 5000000000 INTERNALDATE \"01-Jan-2026 00:00:00 +0000\" \
         MODSEQ (12) X-GM-LABELS (\\Inbox \"a b\") BODY[1] NIL PREVIEW \"a\\\"b\" )",
    );
    assert_eq!((items.uid, items.size, items.modseq), (Some(4), Some(5_000_000_000), Some(12)));
    assert_eq!(items.flags.unwrap(), ["\\Seen", "\\*", "foo[bar"]);
    assert_eq!(items.internaldate.unwrap(), "01-Jan-2026 00:00:00 +0000");
    assert_eq!(
        items.other,
        [
            (Bytes::from("X-GM-LABELS"), Value::Raw(Bytes::from("(\\Inbox \"a b\")"))),
            (Bytes::from("BODY[1]"), Value::Nil),
            (Bytes::from("PREVIEW"), Value::Quoted(Bytes::from("a\"b"))),
        ]
    );
    let odd = fetched(
        "* 1 FETCH (INTERNALDATE NIL FLAGS NIL RFC822.SIZE -1 UID 0x ENVELOPE (\"d\" \"a \"b\"\" NIL) MODSEQ (3)",
    );
    assert_eq!((odd.internaldate, odd.flags, odd.size, odd.uid), (None, Some(vec![]), None, None));
    assert_eq!(odd.modseq, Some(3));
    assert_eq!(fetched("* 1 FETCH (UID"), FetchItems::default());
    assert_eq!(fetched("* 1 FETCH"), FetchItems::default());
}

#[test]
fn untagged_data_is_taken_apart_or_left_alone() {
    assert_eq!(untagged("*  23 EXISTS"), UntaggedData::Exists(23));
    assert_eq!(untagged("* SEARCH 3 2 (MODSEQ 9)"), UntaggedData::Search(vec![3, 2]));
    assert_eq!(untagged("* SEARCH"), UntaggedData::Search(vec![]));
    assert_eq!(
        untagged("* STATUS \"a b\" (MESSAGES 1 MAILBOXID (F1) Size 7 ) "),
        UntaggedData::Status { mailbox: "a b".into(), items: vec![("MESSAGES".into(), 1), ("SIZE".into(), 7)] }
    );
    assert_eq!(untagged("* VANISHED (EARLIER) 1:3"), UntaggedData::Vanished { earlier: true, raw: "1:3".into() });
    assert_eq!(untagged("* vanished 4"), UntaggedData::Vanished { earlier: false, raw: "4".into() });
    assert_eq!(
        untagged("* OK [BADCHARSET (\"]\")] text"),
        UntaggedData::Ok { code: Some("BADCHARSET (\"]\")".into()), text: "text".into() }
    );
    assert_eq!(untagged("* OK [broken text"), UntaggedData::Ok { code: None, text: "[broken text".into() });
    for other in ["*", "* ", "* 5", "* 5 FOO", "* FOO bar", "* LIST", "* LIST ()", "* 99999999999999999999 EXISTS"] {
        assert_eq!(untagged(other), UntaggedData::Other, "{other}");
    }
}

#[test]
fn uid_codes_are_expanded_within_bounds() {
    assert_eq!(parse_appenduid(b"APPENDUID 38505 3955"), Some((38505, 3955)));
    assert_eq!(parse_appenduid(b"APPENDUID 38505 3955:3956"), None);
    assert_eq!(
        parse_copyuid(b"copyuid 5 9,3,5:1 1:7"),
        Some((5, vec![9, 3, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 6, 7]))
    );
    for odd in
        ["COPYUID 5 1:3 1:2", "COPYUID 5 1 *", "COPYUID 5 1:4294967295 1:4294967295", "COPYUID 5 0 1", "COPYUID 5 1, 1"]
    {
        assert_eq!(parse_copyuid(odd.as_bytes()), None, "{odd}");
    }
    assert_eq!(expand_set(b"1:1000000").map(|uids| uids.len()), Some(MAX_SET_UIDS));
    assert_eq!(expand_set(b"1:1000001"), None);
    assert_eq!(expand_set(b"1:999999,5:6"), None);
}
