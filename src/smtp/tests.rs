//! Sessions over a pipe, in front of a scripted provider.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::watch;

use super::*;
use crate::account::demo;
use crate::config::HoldMode;
use crate::floor::submission::State;
use crate::outbox::testing::{Bench, Fills, tuning};
use crate::outbox::{Hold, HoldId};
use crate::upstream::smtp::scripted::{Dot, Provider, Script};

const AGENT_MESSAGE: &[u8] =
    b"From: demo@example.org\r\nTo: b@example.com\r\nDate: Mon, 30 Nov 2026 00:00:00 +0000\r\nSubject: hi\r\n\r\n.dot\r\nend\r\n";

/// A client and what it talks to.
pub(super) struct World {
    pub(super) provider: Provider,
    pub(super) bench: Bench,
    services: Arc<Services>,
    shutdown: watch::Sender<bool>,
    sent: Arc<Mutex<Vec<Vec<String>>>>,
}

impl World {
    async fn new(script: Script, change: impl FnOnce(&mut Config)) -> World {
        let provider = Provider::start(script).await;
        let bench = Bench::new(&provider, tuning(), change).await;
        World::around(provider, bench)
    }

    fn around(provider: Provider, bench: Bench) -> World {
        let sent: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let log = sent.clone();
        let hook: PersonSent = Arc::new(move |_, to| log.lock().unwrap().push(to.to_vec()));
        let (config, accounts) = (bench.config.clone(), bench.accounts.clone());
        let services = Services::new(config, accounts, bench.outbox.clone(), bench.store.clone(), hook);
        let (shutdown, _) = watch::channel(false);
        World { provider, bench, services: Arc::new(services), shutdown, sent }
    }

    /// On a disk that can be filled.
    async fn filling(fills: Arc<Fills>) -> World {
        let provider = Provider::start(Script::default()).await;
        let bench = Bench::filling(&provider, fills).await;
        World::around(provider, bench)
    }

    pub(super) async fn plain() -> World {
        World::new(Script::default(), |_| {}).await
    }

    async fn client_at(&self, tls: bool, peer: &str) -> Client {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let peer: SocketAddr = peer.parse().unwrap();
        tokio::spawn(serve(theirs, tls, peer, self.services.clone(), self.shutdown.subscribe()));
        let mut client = Client(BufReader::new(ours));
        assert!(client.reply().await.starts_with("220 "));
        client
    }

    async fn client(&self, key: &str) -> Client {
        let mut client = self.client_at(true, "192.0.2.1:1").await;
        client.ask("EHLO client.example", 250).await;
        let plain = BASE64.encode(format!("\0{}\0{key}", demo::ADDRESS));
        client.ask(&format!("AUTH PLAIN {plain}"), 235).await;
        client
    }

    pub(super) async fn person(&self) -> Client {
        self.client(demo::PERSON_KEY).await
    }

    pub(super) async fn agent(&self) -> Client {
        self.client(demo::AGENT_KEY).await
    }

    pub(super) fn holds(&self) -> Vec<Hold> {
        self.bench.outbox.list(&self.bench.account).unwrap()
    }

    /// The octets of the only hold.
    pub(super) fn held_octets(&self) -> Vec<u8> {
        let holds = self.holds();
        assert_eq!(holds.len(), 1);
        let mut octets = Vec::new();
        std::io::Read::read_to_end(&mut self.bench.outbox.open(&holds[0]).unwrap(), &mut octets).unwrap();
        octets
    }
}

pub(super) struct Client(BufReader<DuplexStream>);

impl Client {
    pub(super) async fn send(&mut self, octets: &[u8]) {
        self.0.write_all(octets).await.unwrap();
    }

    /// The next whole reply; empty at the end of the connection.
    async fn reply(&mut self) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let read = tokio::time::timeout(Duration::from_secs(20), self.0.read_line(&mut line)).await;
            read.expect("no reply").unwrap();
            all.push_str(&line);
            if line.is_empty() || line.as_bytes().get(3) != Some(&b'-') {
                return all;
            }
        }
    }

    async fn ask(&mut self, command: &str, code: u16) -> String {
        self.send(format!("{command}\r\n").as_bytes()).await;
        self.expect(code).await
    }

    pub(super) async fn expect(&mut self, code: u16) -> String {
        let reply = self.reply().await;
        assert!(reply.starts_with(&code.to_string()), "wanted {code}, got {reply:?}");
        reply
    }

    /// An envelope from the account to `to`, then DATA.
    pub(super) async fn begin(&mut self, to: &[&str]) {
        self.ask("MAIL FROM:<demo@example.org>", 250).await;
        for to in to {
            self.ask(&format!("RCPT TO:<{to}>"), 250).await;
        }
        self.ask("DATA", 354).await;
    }
}

/// As it stands on the wire: dots stuffed by the plainest reading of the RFC.
pub(super) fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in message.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(b".") {
            out.push(b'.');
        }
        out.extend_from_slice(line);
    }
    out.extend_from_slice(b".\r\n");
    out
}

#[tokio::test]
async fn a_persons_mail_is_relayed_octet_for_octet_and_the_reply_is_the_providers() {
    let world = World::plain().await;
    let mut message = b"From: demo@example.org\r\nX-Odd:\tkept \r\n\r\n.dot\r\n..two\r\n.\r\n\xff\0raw\r\n".to_vec();
    message.extend_from_slice(&[b"x".repeat(2000), b"\r\n".to_vec()].concat());
    for step in [1, 5, message.len() + 10] {
        let mut client = world.person().await;
        client.begin(&["b@example.com", "C@Example.COM"]).await;
        for chunk in stuffed(&message).chunks(step) {
            client.send(chunk).await;
        }
        assert_eq!(client.expect(250).await, "250 2.0.0 queued as 1\r\n");
        client.ask("QUIT", 221).await;
    }
    let got = world.provider.complete();
    assert_eq!(got.len(), 3);
    for got in got {
        assert_eq!(got.message(), message);
        assert_eq!(got.rcpt, ["RCPT TO:<b@example.com>", "RCPT TO:<C@Example.COM>"], "as the client wrote them");
    }
    assert_eq!(world.sent.lock().unwrap()[0], ["b@example.com", "C@Example.COM"]);
    assert!(world.holds().is_empty());
}

#[tokio::test]
async fn the_providers_refusals_pass_through() {
    let rcpt = vec![("bad", "550 5.1.1 no such user"), ("grey", "451 4.7.1 come back")];
    let world = World::new(Script { rcpt, ..Script::default() }, |_| {}).await;
    let mut client = world.person().await;
    client.ask("MAIL FROM:<demo@example.org>", 250).await;
    assert_eq!(client.ask("RCPT TO:<bad@example.com>", 550).await, "550 5.1.1 no such user\r\n");
    assert_eq!(client.ask("RCPT TO:<grey@example.com>", 451).await, "451 4.7.1 come back\r\n");
    client.ask("DATA", 554).await;
    client.ask("MAIL FROM:<demo@example.org>", 250).await;
    client.ask("RCPT TO:<b@example.com>", 250).await;
    world.provider.script(|s| s.dot = Dot::Reply("554 5.7.1 spam"));
    client.ask("DATA", 354).await;
    client.send(&stuffed(b"Subject: x\r\n\r\ny\r\n")).await;
    assert_eq!(client.reply().await, "554 5.7.1 spam\r\n");
    world.provider.script(|s| s.data = "452 4.3.1 full");
    client.begin(&["b@example.com"]).await;
    client.send(&stuffed(b"Subject: x\r\n\r\ny\r\n")).await;
    assert_eq!(client.reply().await, "452 4.3.1 full\r\n");
    world.provider.script(|s| s.mail = "421 4.3.2 closing");
    client.ask("MAIL FROM:<demo@example.org>", 451).await;
    client.ask("NOOP", 250).await;
    assert!(world.sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_provider_that_is_down_or_refuses_our_secret_is_a_failure_for_now() {
    let world = World::new(Script { auth: "535 5.7.8 wrong", ..Script::default() }, |_| {}).await;
    let mut client = world.person().await;
    assert!(client.ask("MAIL FROM:<demo@example.org>", 454).await.starts_with("454 4.7.0 "));
    world.provider.script(|s| s.greeting = "421 4.3.2 down");
    assert!(client.ask("MAIL FROM:<demo@example.org>", 451).await.starts_with("451 4.4.1 "));

    let world = World::new(Script { dot: Dot::Close, ..Script::default() }, |_| {}).await;
    let mut client = world.person().await;
    client.begin(&["b@example.com"]).await;
    client.send(&stuffed(b"Subject: x\r\n\r\ny\r\n")).await;
    assert!(client.reply().await.starts_with("451 4.4.2 "));
}

#[tokio::test]
async fn a_person_writes_from_the_accounts_addresses_only() {
    let world = World::plain().await;
    let mut client = world.person().await;
    assert!(client.ask("MAIL FROM:<else@example.org>", 553).await.starts_with("553 5.7.1 "));
    assert!(client.ask("MAIL FROM:<demo@example.com>", 553).await.starts_with("553 5.7.1 "));
    assert!(world.provider.commands().is_empty(), "the provider was not called");
    client.ask("MAIL FROM:<Demo@example.org>", 250).await;
    client.ask("RSET", 250).await;
    client.ask("MAIL FROM:<>", 250).await;
}

#[tokio::test]
async fn an_agents_mail_is_held_and_nothing_reaches_the_provider() {
    let world = World::plain().await;
    let mut client = world.agent().await;
    client
        .begin(
            &["b@example.com", "a@B\u{fc}cher.example"]
                .map(|a| if a.is_ascii() { a } else { "a@xn--bcher-kva.example" }),
        )
        .await;
    client.send(&stuffed(AGENT_MESSAGE)).await;
    let reply = client.expect(250).await;
    let id = reply.trim_end().strip_prefix("250 2.0.0 held for approval as ").unwrap();
    let id = HoldId::parse(id).unwrap();
    assert_eq!(world.held_octets(), AGENT_MESSAGE);
    let hold = world.bench.wait_for(&id, State::Held).await;
    assert_eq!((hold.subject.as_deref(), hold.key.as_str()), (Some("hi"), "demoagent"));
    client.ask("QUIT", 221).await;
    assert!(world.provider.commands().is_empty());
    assert!(world.sent.lock().unwrap().is_empty());

    let (_stop, shutdown) = watch::channel(false);
    tokio::spawn(world.bench.outbox.clone().run(shutdown));
    world.bench.approve(&id).await;
    world.bench.wait_for(&id, State::Sent).await;
    assert_eq!(world.provider.complete()[0].message(), AGENT_MESSAGE);
}

#[tokio::test]
async fn what_an_agent_may_not_send_has_its_reply_and_nothing_is_kept() {
    let world = World::new(Script::default(), |c| {
        c.max_message_bytes = 4000;
        c.max_recipients = 2;
    })
    .await;
    let mut client = world.agent().await;
    let head = "From: demo@example.org\r\nDate: x\r\n";
    for (message, reply) in [
        (format!("{head}Bcc: c@example.com\r\n\r\nx\r\n"), "550 5.7.1"),
        (format!("{head}X-Mailgun-Tag: c\r\n\r\nx\r\n"), "550 5.7.1"),
        ("From: else@example.com\r\nDate: x\r\n\r\nx\r\n".to_owned(), "550 5.7.1"),
        (format!("{head}{head}\r\nx\r\n"), "550 5.6.0"),
        (format!("{head}\r\n\u{fc}\r\n"), "554 5.6.3"),
        (format!("{head}\r\n{}\r\n", "a".repeat(999)), "550 5.6.0"),
        (format!("{head}\r\n{}", "line\r\n".repeat(1000)), "552 5.3.4"),
    ] {
        client.begin(&["b@example.com"]).await;
        client.send(&stuffed(message.as_bytes())).await;
        let got = client.reply().await;
        assert!(got.starts_with(reply), "{message:.60}: {got}");
    }
    client.ask("MAIL FROM:<demo@example.org> SIZE=4001", 552).await;
    client.ask("MAIL FROM:<>", 553).await;
    client.ask("MAIL FROM:<demo@example.org> BODY=8BITMIME", 555).await;
    client.ask("MAIL FROM:<demo@example.org> RET=HDRS", 555).await;
    client.ask("MAIL FROM:<demo@example.org> SIZE=4000 BODY=7BIT", 250).await;
    assert!(client.ask("RCPT TO:<e\u{301}@example.com>", 553).await.starts_with("553 5.6.7"));
    client.ask("RCPT TO:<b@-x.example>", 501).await;
    client.ask("RCPT TO:<b@example.com> NOTIFY=NEVER", 555).await;
    client.ask("RCPT TO:<b@example.com>", 250).await;
    client.ask("RCPT TO:<c@example.com>", 250).await;
    assert!(client.ask("RCPT TO:<d@example.com>", 452).await.starts_with("452 4.5.3"));
    assert!(world.holds().is_empty());
    assert!(world.provider.commands().is_empty());
    let files = std::fs::read_dir(world.bench.config.state_dir.join("blobs").join("tmp")).unwrap().count();
    assert_eq!(files, 0, "no unfinished file stays");
}

#[tokio::test]
async fn a_local_part_outside_nfc_is_refused() {
    let world = World::plain().await;
    offer::refresh(&world.services).await;
    let mut client = world.agent().await;
    client.ask("MAIL FROM:<demo@example.org> SMTPUTF8 BODY=8BITMIME", 250).await;
    assert!(client.ask("RCPT TO:<e\u{301}@example.com>", 553).await.contains("normalisation form C"));
    client.ask("RCPT TO:<\u{e9}@example.com>", 250).await;
}

#[tokio::test]
async fn smuggled_ends_are_refused_from_both_and_nothing_is_kept() {
    let world = World::plain().await;
    for key in [demo::PERSON_KEY, demo::AGENT_KEY] {
        for trick in
            ["\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r\n.\r", "\r.\r\n", "\n\n.\r\n", "\r\r\n", "\nx", "\0\r.\n"]
        {
            let mut client = world.client(key).await;
            client.begin(&["b@example.com"]).await;
            let smuggled = "MAIL FROM:<demo@example.org>\r\nRCPT TO:<evil@example.com>\r\nDATA\r\n";
            let message = format!("From: demo@example.org\r\nDate: x\r\n\r\nfirst{trick}{smuggled}");
            client.send(message.as_bytes()).await;
            client.send(b"second\r\n.\r\nNOOP\r\n").await;
            assert!(client.reply().await.starts_with("550 5.6.0 "), "{trick:?}");
            assert_eq!(client.reply().await, "250 2.0.0 ok\r\n", "in step after {trick:?}");
            client.ask("QUIT", 221).await;
        }
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(world.provider.complete().is_empty());
    assert!(world.holds().is_empty());
}

#[tokio::test]
async fn a_client_that_goes_in_the_middle_leaves_nothing() {
    let world = World::plain().await;
    for key in [demo::PERSON_KEY, demo::AGENT_KEY] {
        let mut client = world.client(key).await;
        client.begin(&["b@example.com"]).await;
        client.send(b"From: demo@example.org\r\nDate: x\r\n\r\nhalf\r\n.").await;
        drop(client);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(world.provider.complete().is_empty());
    assert!(world.holds().is_empty());
}

#[tokio::test]
async fn declared_drafts_of_machines_are_held() {
    let world = World::plain().await;
    let mut client = world.person().await;
    client.begin(&["b@example.com"]).await;
    let message = b"From: demo@example.org\r\nX-AI-Drafted: yes\r\nSubject: s\r\nBcc: kept@example.com\r\n\r\n.x\r\n";
    client.send(&stuffed(message)).await;
    assert!(client.expect(250).await.starts_with("250 2.0.0 held for approval as "));
    assert_eq!(world.held_octets(), message);
    assert_eq!(world.holds()[0].subject.as_deref(), Some("s"));
    assert!(world.provider.got().is_empty(), "DATA was never opened");
}

#[tokio::test]
async fn modes_hold_a_persons_mail() {
    let message = b"From: demo@example.org\r\n\r\nx\r\n";
    let world = World::new(Script::default(), |c| c.hold = HoldMode::External).await;
    let mut client = world.person().await;
    client.begin(&["friend@example.org"]).await;
    client.send(&stuffed(message)).await;
    assert_eq!(client.reply().await, "250 2.0.0 queued as 1\r\n");
    client.begin(&["friend@example.org", "b@example.com"]).await;
    client.send(&stuffed(message)).await;
    assert!(client.reply().await.contains("held"));
    assert_eq!(world.holds()[0].envelope.forward_paths.len(), 2);
    assert_eq!(world.provider.got().len(), 1);
    assert!(world.provider.commands().iter().all(|c| !c.contains("b@example.com")), "the provider never heard of it");

    let world = World::new(Script::default(), |c| c.hold = HoldMode::All).await;
    let mut client = world.person().await;
    client.begin(&["friend@example.org"]).await;
    client.send(&stuffed(message)).await;
    assert!(client.reply().await.contains("held"));
    assert!(world.provider.commands().is_empty());
}

#[tokio::test]
async fn commands_out_of_order_and_unknown_ones_have_their_replies() {
    let world = World::plain().await;
    let mut client = world.client_at(true, "192.0.2.1:1").await;
    client.ask("MAIL FROM:<demo@example.org>", 503).await;
    client.ask("AUTH PLAIN", 503).await;
    client.ask("HELO x", 250).await;
    let offered = client.ask("EHLO client.example", 250).await;
    let words: Vec<&str> = offered.lines().map(|l| &l[4..]).collect();
    let size = format!("SIZE {}", world.bench.config.max_message_bytes);
    assert_eq!(words, ["localhost", "PIPELINING", &size, "ENHANCEDSTATUSCODES", "AUTH PLAIN LOGIN"]);
    for command in ["MAIL FROM:<demo@example.org>", "RCPT TO:<b@example.com>", "DATA"] {
        assert!(client.ask(command, 530).await.starts_with("530 5.7.0 "), "{command}");
    }
    client.ask("AUTH CRAM-MD5", 504).await;
    client.ask("FROB", 500).await;
    client.ask("STARTTLS", 502).await;
    client.ask("BDAT 1 LAST", 502).await;
    client.ask("DATA now", 501).await;
    client.ask("RCPT TO:<@a:b@c>", 553).await;
    client.ask("RCPT TO:<Postmaster>", 553).await;
    client.send(b"NOOP\nNOOP\r\n").await;
    client.expect(500).await;
    client.ask(&"N".repeat(5000), 500).await;
    client.ask("VRFY demo", 252).await;
    client.ask("NOOP x", 250).await;
    client.ask("RSET", 250).await;
    client.ask("QUIT", 221).await;
    assert_eq!(client.reply().await, "");

    let mut client = world.agent().await;
    client.ask("RCPT TO:<b@example.com>", 503).await;
    client.ask("DATA", 503).await;
    client.ask("AUTH PLAIN x", 503).await;
    client.ask("MAIL FROM:<demo@example.org>", 250).await;
    client.ask("MAIL FROM:<demo@example.org>", 503).await;
    client.ask("DATA", 554).await;
}

#[tokio::test]
async fn offers_follow_what_the_provider_says() {
    let world = World::plain().await;
    assert!(offer::refresh(&world.services).await);
    let mut client = world.client_at(true, "192.0.2.1:1").await;
    let offered = client.ask("EHLO c", 250).await;
    assert!(offered.contains("8BITMIME") && offered.contains("SMTPUTF8") && offered.contains("SIZE 1000000\r\n"));
    world.provider.script(|s| s.ehlo = vec!["p", "AUTH PLAIN"]);
    assert!(offer::refresh(&world.services).await);
    let offered = client.ask("EHLO c", 250).await;
    assert!(!offered.contains("8BITMIME") && !offered.contains("SMTPUTF8"));
    world.provider.script(|s| s.greeting = "554 no");
    assert!(!offer::refresh(&world.services).await);
    // A person's provider is asked itself: it doesn't take what was asked for.
    world.provider.script(|s| s.greeting = "220 ok");
    let mut client = world.person().await;
    client.ask("MAIL FROM:<demo@example.org> BODY=8BITMIME", 555).await;
}

#[tokio::test]
async fn sign_in_takes_plain_and_login_and_only_where_nobody_listens() {
    let world = World::plain().await;
    let (user, key) = (demo::ADDRESS, demo::PERSON_KEY);
    let mut client = world.client_at(true, "192.0.2.1:1").await;
    client.ask("EHLO c", 250).await;
    assert_eq!(client.ask("AUTH PLAIN", 334).await, "334 \r\n");
    client.ask(&BASE64.encode(format!("{user}\0{user}\0{key}")), 235).await;

    let mut client = world.client_at(false, "127.0.0.1:1").await;
    client.ask("EHLO c", 250).await;
    client.ask("AUTH LOGIN", 334).await;
    client.ask("*", 501).await;
    client.ask("AUTH LOGIN", 334).await;
    client.ask("!", 501).await;
    client.ask(&format!("AUTH LOGIN {}", BASE64.encode(user)), 334).await;
    client.ask(&BASE64.encode(key), 235).await;

    let mut client = world.client_at(false, "192.0.2.1:1").await;
    assert!(!client.ask("EHLO c", 250).await.contains("AUTH"));
    client.ask("AUTH PLAIN AA==", 538).await;

    let mut client = world.client_at(true, "192.0.2.1:1").await;
    client.ask("EHLO c", 250).await;
    for _ in 0..2 {
        client.ask(&format!("AUTH PLAIN {}", BASE64.encode(format!("\0{user}\0wrong"))), 535).await;
    }
    client.ask(&format!("AUTH PLAIN {}", BASE64.encode(format!("else@example.org\0{user}\0{key}"))), 535).await;
    client.ask(&format!("AUTH PLAIN {}", BASE64.encode(format!("\0x@example.org\0{key}"))), 535).await;
    client.expect(421).await;
}

#[tokio::test]
async fn pipelined_commands_are_answered_in_order() {
    let world = World::plain().await;
    let mut client = world.agent().await;
    let mut all = b"MAIL FROM:<demo@example.org>\r\nRCPT TO:<b@example.com>\r\nRCPT TO:<x>\r\nDATA\r\n".to_vec();
    client.send(&all).await;
    for code in [250, 250, 553, 354] {
        client.expect(code).await;
    }
    all.clear();
    all.extend_from_slice(&stuffed(AGENT_MESSAGE));
    all.extend_from_slice(b"MAIL FROM:<demo@example.org>\r\nRSET\r\nQUIT\r\n");
    client.send(&all).await;
    for code in [250, 250, 250, 221] {
        client.expect(code).await;
    }
    assert_eq!(world.held_octets(), AGENT_MESSAGE);
}

#[tokio::test]
async fn a_revoked_key_ends_its_sessions_and_an_open_data() {
    let world = World::plain().await;
    let key = world.bench.accounts.authenticate(demo::ADDRESS, demo::AGENT_KEY).unwrap().key;
    let mut idle = world.agent().await;
    let mut busy = world.agent().await;
    busy.begin(&["b@example.com"]).await;
    busy.send(b"From: demo@example.org\r\n").await;
    world.bench.accounts.revoke(&key).await.unwrap();
    idle.expect(421).await;
    busy.expect(421).await;
    assert_eq!(busy.reply().await, "");
    assert!(world.holds().is_empty());
}

#[tokio::test]
async fn errors_strangers_and_shutdown_end_a_session() {
    let world = World::plain().await;
    let mut client = world.agent().await;
    for _ in 0..=MAX_ERRORS {
        client.ask("FROB", 500).await;
    }
    client.expect(421).await;
    let mut client = world.client_at(true, "192.0.2.1:1").await;
    for _ in 0..MAX_STRANGER_COMMANDS {
        client.ask("NOOP", 250).await;
    }
    client.ask("NOOP", 421).await;
    let mut client = world.agent().await;
    world.shutdown.send(true).unwrap();
    assert!(client.reply().await.starts_with("421 4.3.2 "));
    let mut rest = Vec::new();
    client.0.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_key_with_too_many_holds_is_told_so() {
    let world = World::new(Script::default(), |c| c.max_holds_per_key = 1).await;
    let mut client = world.agent().await;
    for code in ["250 2.0.0", "452 4.7.1"] {
        client.begin(&["b@example.com"]).await;
        client.send(&stuffed(AGENT_MESSAGE)).await;
        assert!(client.reply().await.starts_with(code));
    }
    assert_eq!(world.holds().len(), 1);
}

#[tokio::test]
async fn each_limit_of_what_waits_has_its_own_answer() {
    const LENGTH: u64 = AGENT_MESSAGE.len() as u64;
    type Case = (fn(&mut Config), [&'static str; 2]);
    let cases: [Case; 5] = [
        (|c| c.max_held_bytes_per_key = 2 * LENGTH - 1, ["250 2.0.0", "452 4.7.1"]),
        (|c| c.max_held_bytes = 2 * LENGTH - 1, ["250 2.0.0", "452 4.3.1"]),
        (|c| c.max_holds = 1, ["250 2.0.0", "452 4.3.1"]),
        (|c| c.max_held_bytes_per_key = LENGTH - 1, ["552 5.3.4", "552 5.3.4"]),
        (|c| c.max_message_bytes = LENGTH - 1, ["552 5.3.4", "552 5.3.4"]),
    ];
    for (n, (change, replies)) in cases.into_iter().enumerate() {
        let world = World::new(Script::default(), change).await;
        let mut client = world.agent().await;
        for code in &replies {
            client.begin(&["b@example.com"]).await;
            client.send(&stuffed(AGENT_MESSAGE)).await;
            let reply = client.reply().await;
            assert!(reply.starts_with(code), "{n}: {reply}");
        }
        let held = replies.iter().filter(|r| r.starts_with("250")).count();
        assert_eq!(world.holds().len(), held, "{n}");
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_what_was_held_stays() {
    let fills = Arc::new(Fills::default());
    let world = World::filling(fills.clone()).await;
    let mut client = world.agent().await;
    for (full, code) in [(false, "250 2.0.0"), (true, "452 4.3.1"), (true, "452 4.3.1"), (false, "250 2.0.0")] {
        fills.0.store(full, std::sync::atomic::Ordering::SeqCst);
        client.begin(&["b@example.com"]).await;
        client.send(&stuffed(AGENT_MESSAGE)).await;
        let reply = client.reply().await;
        assert!(reply.starts_with(code), "{reply}");
    }
    assert_eq!(world.holds().len(), 2);
    assert!(world.holds().iter().all(|h| h.state == State::Held));
}
