//! Clients and providers that mean harm.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use tollgate::demo::faults::ImapEffect;

use crate::client::Client;
use crate::stand::{BOUND, Stand, USER};

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_gets_little_time_and_little_room() {
    let stand = Stand::new().await;
    let ended = async |client: &mut Client| loop {
        if client.response().await.is_err() {
            break;
        }
    };
    // An octet now and then is no progress.
    let mut slow = stand.connect().await;
    let began = Instant::now();
    let (mut writer, octet) = (0, [b'a']);
    while began.elapsed() < Duration::from_secs(5) && slow.stream.write_all(&octet).await.is_ok() {
        writer += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(4), "{writer} octets in {:?}", began.elapsed());
    // Nor are commands without end.
    let mut chatty = stand.connect().await;
    let began = Instant::now();
    while chatty.command("NOOP").await.is("OK") {
        assert!(began.elapsed() < Duration::from_secs(6));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut long = stand.connect().await;
    long.send(&vec![b'x'; 9 * 1024]).await;
    ended(&mut long).await;
    let mut literal = stand.connect().await;
    literal.send(b"a1 LOGIN {4097}\r\n").await;
    assert!(literal.reply("a1").await.is("NO [TOOBIG]"));
    literal.send(b"a2 LOGIN {99999999999999999999}\r\n").await;
    assert!(literal.reply("a2").await.is("NO [TOOBIG]"));
    literal.send(b"a3 LOGIN x \"{50}\"\r\n").await;
    assert!(literal.reply("a3").await.is("NO [AUTHENTICATIONFAILED]"));
    let mut promise = stand.connect().await;
    promise.send(b"a1 LOGIN {18446744073709551615+}\r\n").await;
    assert!(promise.reply("a1").await.is("NO [TOOBIG]"));
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_with_a_line_end_is_no_other_mailbox() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    stand.provider.faults().keep_commands(true);
    for verb in ["DELETE", "SELECT", "SUBSCRIBE", "UID COPY 1:*", "UID MOVE 1:*", "LIST \"\"", "LSUB \"\""] {
        for name in ["Arch\r\nive", "Arch\nive", "Archive\r\nx1 DELETE Archive"] {
            let tag = client.tag();
            client.send(format!("{tag} {verb} {{{}+}}\r\n{name}\r\n", name.len()).as_bytes()).await;
            let reply = client.reply(&tag).await;
            assert!(reply.is("NO [CANNOT]"), "{verb} {name:?}: {reply:?}");
        }
    }
    let tag = client.tag();
    client.send(format!("{tag} STATUS {{9+}}\r\nArch\r\nive (MESSAGES)\r\n").as_bytes()).await;
    assert!(client.reply(&tag).await.is("NO [CANNOT]"));
    let tag = client.tag();
    client.send(format!("{tag} APPEND {{9+}}\r\nArch\r\nive {{3+}}\r\nabc\r\n").as_bytes()).await;
    assert!(client.reply(&tag).await.is("NO [CANNOT]"));
    assert_eq!(stand.provider.mailbox(USER, "Archive").len(), 3);
    let named = |c: &Vec<u8>| c.windows(3).any(|w| w == b"ive");
    assert!(!stand.provider.faults().commands().iter().any(named));
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_says_amiss_does_not_reach_the_client() {
    // `Client` itself refuses NULs, bare CR and LF, and lines of other tags.
    let huge = [b"* OK ", vec![b'x'; 10 * 1024 * 1024].as_slice(), b"\r\n"].concat();
    let odd: Vec<(&str, Vec<u8>)> = vec![
        ("status text like a literal", b"* OK text {5}\r\n* NO text {7}\r\n".to_vec()),
        ("forged tags", b"c1 OK a\r\nc2 OK a\r\nc3 OK a\r\nc4 OK a\r\nc5 OK a\r\nc6 OK a\r\n".to_vec()),
        ("a tag of ours to come", b"t99 OK a\r\n".to_vec()),
        ("a continuation", b"+ go on\r\n".to_vec()),
        ("NUL", b"* OK a\0b\r\n".to_vec()),
        ("NUL in data", b"* 1 FETCH (ENVELOPE (\"a\0b\" NIL NIL NIL NIL NIL NIL NIL NIL NIL))\r\n".to_vec()),
        ("bare CR", b"* OK a\rc3 OK b\r\n".to_vec()),
        ("bare LF", b"* OK a\nc3 OK b\r\n".to_vec()),
        ("capabilities", b"* CAPABILITY IMAP4rev1 X-EVIL\r\n".to_vec()),
        ("10 MB in a line", huge),
        ("a literal without end", b"* 1 FETCH (X {99999999999999999999}\r\n".to_vec()),
        ("an empty line", b"\r\n".to_vec()),
        ("no response", b"hello\r\n".to_vec()),
    ];
    for mailbox in ["Archive", "INBOX"] {
        for (name, octets) in &odd {
            for (command, at) in [
                ("UID FETCH 1:* (UID BODY.PEEK[])", "FETCH"),
                ("UID SEARCH TEXT message", "SEARCH"),
                ("UID STORE 1 +FLAGS (\\Flagged)", "STORE"),
                ("LIST \"\" *", "LIST"),
                ("STATUS Archive (MESSAGES)", "STATUS"),
                ("SELECT Archive", "SELECT"),
            ] {
                let stand = Stand::new().await;
                let mut client = stand.selected(mailbox).await;
                stand.fault(at, ImapEffect::Octets(octets.clone()));
                let reply = client.command(command).await;
                let case = format!("{name} at {command} in {mailbox}: {:?} {}", reply.status, reply.untagged.len());
                assert!(!reply.has("X-EVIL"), "{case}");
                match &reply.status {
                    Some(s) if s.starts_with("OK") => {
                        if at == "FETCH" {
                            assert!(reply.bodies().len() >= 3, "{case}");
                        }
                        assert!(at != "SEARCH" || reply.has("SEARCH 1 2 3"), "{case}");
                        assert!(at != "STORE" || client.command("NOOP").await.is("OK"), "{case}");
                    }
                    Some(s) => assert!(s.starts_with("NO"), "{case}"),
                    None => assert!(reply.bye && mailbox == "Archive", "{case}"),
                }
                stand.gateway.shutdown().await;
            }
        }
    }
}

/// Pieces of commands and of attempts to leave them.
fn piece() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;
    let whole = [
        "a2 FETCH 1:* (FLAGS)",
        "a3 UID FETCH 1 (BODY.PEEK[])",
        "a4 SEARCH TEXT {1+}\r\nx",
        "a5 UID SEARCH ALL",
        "a6 STORE 1 FLAGS (\\Flagged)",
        "a7 SELECT Archive",
        "a8 LIST \"\" {1+}\r\n*",
        "a9 STATUS Archive (MESSAGES)",
        "b1 UID COPY 1 {7+}\r\nArchive",
        "b2 FETCH 1 (X-GM-LABELS)",
        "b3 APPEND Archive {3+}\r\na\r\n",
        "b4 UID STORE 1 +X-GM-LABELS ({3+}\r\n)\r\n)",
        "b5 CREATE \"a\\\"b\"",
        "b6 DELETE {5+}\r\na\r\nb",
    ];
    let words = [
        "a1 ",
        "t5 ",
        "* ",
        "+ ",
        "UID ",
        "FETCH ",
        "STORE ",
        "SEARCH ",
        "COPY ",
        "MOVE ",
        "SELECT ",
        "EXAMINE ",
        "STATUS ",
        "LIST ",
        "APPEND ",
        "CREATE ",
        "DELETE ",
        "RENAME ",
        "SUBSCRIBE ",
        "EXPUNGE",
        "CLOSE",
        "UNSELECT",
        "IDLE",
        "DONE",
        "NOOP",
        "SORT ",
        "THREAD ",
        "LOGIN ",
        "INBOX ",
        "Archive ",
        "\"Arch",
        "\\\"",
        "\" ",
        "1:* ",
        "1 ",
        "(",
        ") ",
        "BODY.PEEK[] ",
        "BODY[HEADER.FIELDS (",
        "FLAGS ",
        "+FLAGS ",
        "\\Flagged",
        "X-GM-LABELS ",
        "SUBJECT ",
        "TEXT ",
        "\r\n",
        "\r\n",
        "\r\n",
        "\n",
        "\r",
        "\0",
        "{0}\r\n",
        "{0+}\r\n",
        "{5}\r\n",
        "{5+}\r\n",
        "~{5+}\r\n",
        "{+5}",
        "{5",
        "}",
        "{99999999999999999999+}\r\n",
        "\r\nt9 DELETE Archive\r\n",
        "\"\r\nx DELETE Archive\r\n",
        "{30+}\r\nx\r\nt1 DELETE Archive\r\n",
        "(MESSAGES)",
        "\u{e9}",
        "%",
        "]",
    ];
    prop_oneof![
        8 => proptest::sample::select(words.to_vec()).prop_map(|w| w.as_bytes().to_vec()),
        6 => proptest::sample::select(whole.to_vec()).prop_map(|w| format!("{w}\r\n").into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
    ]
}

/// What is in a command beside its literals, as the provider reads it.
fn texts(command: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut texts) = (command, Vec::new());
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let text = &rest[..end];
        texts.push(text);
        let announced = std::str::from_utf8(text).ok().and_then(|t| t.strip_suffix('}')?.rsplit_once('{'));
        let n: usize = announced.and_then(|(_, n)| n.trim_end_matches('+').parse().ok()).unwrap_or(0);
        rest = &rest[(end + 2 + n).min(rest.len())..];
    }
    texts.push(rest);
    texts
}

#[test]
fn random_octets_never_become_commands_of_their_own_at_the_provider() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config as Cases, TestRunner};
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let stand = runtime.block_on(Stand::new());
    let mut runner =
        TestRunner::new(Cases { cases: 1500, max_shrink_iters: 32, failure_persistence: None, ..Cases::default() });
    let script = (0..4u8, proptest::collection::vec(piece(), 1..40));
    let seen = std::sync::atomic::AtomicUsize::new(0);
    let done = runner.run(&script, |(who, pieces)| {
        let octets = pieces.concat();
        let log = runtime.block_on(async {
            // A client's own command may have deleted it.
            let mut before = stand.client().await;
            before.command("CREATE Archive").await;
            drop(before);
            stand.provider.faults().keep_commands(true);
            let mut client = match who {
                0 => stand.connect().await,
                1 => stand.sign_in(&stand.agent).await,
                2 => stand.selected("INBOX").await,
                _ => stand.selected("Archive").await,
            };
            client.send(&octets).await;
            client.send(b"\r\nlast LOGOUT\r\n").await;
            let _ = client.stream.shutdown().await;
            let mut rest = Vec::new();
            let read = tokio::time::timeout(BOUND, client.stream.read_to_end(&mut rest)).await;
            assert!(read.is_ok(), "a hang after {:?}", String::from_utf8_lossy(&octets));
            stand.provider.faults().commands_by_connection()
        });
        let mut last = std::collections::BTreeMap::new();
        seen.fetch_add(log.len(), std::sync::atomic::Ordering::SeqCst);
        for (connection, command) in log {
            let shown = String::from_utf8_lossy(&command).into_owned();
            // Our tags only, each once, in order: no command came between.
            let tag = command.split(|b| *b == b' ' || *b == b'\r').next().unwrap_or_default();
            let tag = std::str::from_utf8(tag).ok().and_then(|t| t.strip_prefix('t')?.parse::<u32>().ok());
            prop_assert!(tag.is_some(), "{shown:?}");
            let before = last.insert(connection, tag);
            prop_assert!(before.is_none_or(|b| b.map(|b| b + 1) == tag), "{before:?} then {shown:?}");
            for text in texts(&command) {
                prop_assert!(!text.iter().any(|b| matches!(b, 0 | b'\r' | b'\n')), "{shown:?}");
            }
        }
        Ok(())
    });
    assert_eq!(done, Ok(()));
    assert!(seen.into_inner() > 300, "something must have come through");
    runtime.block_on(stand.gateway.shutdown());
}
