//! A provider that fails in every way at every point: the client gets a proper
//! answer within a bound, or the end of its connection where IMAP leaves no
//! other way, and never an untrue one.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use tollgate::account::{AccountId, Role};
use tollgate::config::{self, Config, Endpoint, Overrides, TlsMode};
use tollgate::demo::client::imap::ImapClient;
use tollgate::demo::faults::ImapEffect;
use tollgate::demo::provider::{Caps, Options, Provider};
use tollgate::gateway::Gateway;
use tollgate::imap::timing::Timing;
use tollgate::mail::address::Address;

const USER: &str = "jo@example.org";
const PASSWORD: &str = "upstream password";
/// No command may take longer, whatever the provider does: the longest waits
/// of [`timing`] together, and some for a busy machine.
const BOUND: Duration = Duration::from_secs(12);
/// How long recovery may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// Waits as tests need them.
fn timing() -> Timing {
    let ms = Duration::from_millis;
    Timing {
        before_login: ms(600),
        until_login: ms(1500),
        open: ms(2000),
        answer: ms(1000),
        alive: ms(500),
        fresh: ms(700),
        queue: ms(800),
        unused: ms(300),
        retry_first: ms(50),
        retry_most: ms(300),
        steady: ms(50),
        idle_renew: ms(400),
        idle_least: ms(50),
        tick: ms(50),
        ..Timing::default()
    }
}

/// A provider, a gateway in front of it, and a person's key.
struct Stand {
    gateway: Gateway,
    provider: Provider,
    person: String,
    agent: String,
    timing: Timing,
    _folder: tempfile::TempDir,
}

fn message(n: usize) -> Vec<u8> {
    format!("From: ann@example.com\r\nSubject: number {n}\r\n\r\n{}", "text of the message\r\n".repeat(n + 1))
        .into_bytes()
}

async fn provider(capabilities: Caps, imap: Option<SocketAddr>) -> Provider {
    let users = vec![(USER.to_owned(), PASSWORD.to_owned())];
    let imap = imap.unwrap_or(Options::default().imap);
    Provider::start(Options { users, capabilities, imap, ..Options::default() }).await.unwrap()
}

impl Stand {
    async fn new() -> Stand {
        Stand::with(Caps::default(), 4, |_, _| {}).await
    }

    /// A gateway whose INBOX holds 4 messages and whose Archive holds 3.
    async fn with(caps: Caps, connections: usize, change: impl FnOnce(&mut Config, &mut Timing)) -> Stand {
        let provider = provider(caps, None).await;
        let mut direct = direct(&provider).await;
        direct.command("CREATE Archive").await.unwrap();
        for n in 0..4 {
            provider.deliver(USER, message(n));
        }
        for n in 10..13 {
            provider.put(USER, "Archive", message(n), &[]);
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        let text = format!(
            "state_dir = \"state\"\ncerts_dir = \"certs\"\n[listen]\nimaps = []\nsubmissions = []\n\
             imap_plain = [\"127.0.0.1:0\"]\nsmtp_plain = [\"127.0.0.1:0\"]\nweb = [\"127.0.0.1:0\"]\n\
             [lanes]\npreset = \"shadow\"\n[[account]]\naddress = \"{USER}\"\nprovider = \"imap\"\n\
             connections = {connections}\nimap.host = \"127.0.0.1\"\nimap.port = {}\nimap.tls = \"none\"\n\
             smtp.host = \"127.0.0.1\"\nsmtp.port = {}\nsmtp.tls = \"none\"\npassword = \"{PASSWORD}\"\n",
            provider.imap_addr().port(),
            provider.smtp_addr().port(),
        );
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut config = config::load(Some(&file), &Default::default(), &Overrides::default()).unwrap();
        let mut timing = timing();
        change(&mut config, &mut timing);
        let gateway = Gateway::start_with(config, timing.clone()).await.unwrap();
        let id = AccountId::of(&Address::parse(USER).unwrap());
        let accounts = gateway.core().accounts.clone();
        let person = accounts.add_key(&id, Role::Person, "client").await.unwrap();
        let agent = accounts.add_key(&id, Role::Agent, "agent").await.unwrap();
        Stand { gateway, provider, person, agent, timing, _folder: folder }
    }

    fn fault(&self, command: &str, effect: ImapEffect) {
        self.provider.faults().imap(Some(command), effect, Some(1));
    }

    async fn connect(&self) -> Client {
        Client::connect(self.gateway.addresses().imap_plain[0]).await
    }

    async fn sign_in(&self, key: &str) -> Client {
        let mut client = self.connect().await;
        client.ok(&format!("LOGIN {USER} {key}")).await;
        client
    }

    async fn client(&self) -> Client {
        self.sign_in(&self.person).await
    }

    /// A client with a mailbox open, once the gateway can open it.
    async fn selected(&self, mailbox: &str) -> Client {
        let mut client = self.client().await;
        client.until_ok(&format!("SELECT {mailbox}")).await;
        client
    }
}

async fn direct(provider: &Provider) -> ImapClient {
    let port = provider.imap_addr().port();
    let endpoint = Endpoint { host: "127.0.0.1".into(), port, tls: TlsMode::None, ca: None };
    ImapClient::sign_in(&endpoint, USER, PASSWORD).await.unwrap()
}

/// What became of a command.
#[derive(Debug)]
struct Reply {
    /// The tagged response without its tag; none where the connection ended.
    status: Option<String>,
    /// Whether `* BYE` came.
    bye: bool,
    /// Whether the end came inside a response.
    cut: bool,
    untagged: Vec<(String, Vec<Vec<u8>>)>,
}

impl Reply {
    fn is(&self, word: &str) -> bool {
        self.status.as_deref().is_some_and(|s| s.starts_with(word))
    }

    fn bodies(&self) -> Vec<Vec<u8>> {
        self.untagged.iter().filter(|(t, _)| t.contains(" FETCH ")).flat_map(|(_, l)| l.clone()).collect()
    }

    fn has(&self, part: &str) -> bool {
        self.untagged.iter().any(|(t, _)| t.contains(part))
    }
}

/// A client that takes nothing for granted.
struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    tag: u32,
}

impl Client {
    async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut client = Client { stream, buffer: Vec::new(), tag: 0 };
        assert!(client.line().await.unwrap().starts_with(b"* OK [CAPABILITY IMAP4rev1"));
        client
    }

    async fn send(&mut self, octets: &[u8]) {
        // A connection that ended is noticed when it is read.
        let _ = self.stream.write_all(octets).await;
    }

    async fn more(&mut self) -> io::Result<()> {
        match tokio::time::timeout(BOUND, self.stream.read_buf(&mut self.buffer)).await {
            Err(_) => panic!("a hang, after {:?}", String::from_utf8_lossy(&self.buffer)),
            Ok(Ok(0)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(e),
        }
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|w| w == b"\r\n") {
                let mut line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                line.truncate(at);
                assert!(!line.iter().any(|b| matches!(b, 0 | b'\r' | b'\n')), "{:?}", String::from_utf8_lossy(&line));
                return Ok(line);
            }
            self.more().await?;
        }
    }

    async fn exact(&mut self, n: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < n {
            self.more().await?;
        }
        Ok(self.buffer.drain(..n).collect())
    }

    /// One response with its literals; an error says whether it was begun.
    async fn response(&mut self) -> Result<(String, Vec<Vec<u8>>), bool> {
        let (mut text, mut literals) = (String::new(), Vec::new());
        loop {
            let begun = !text.is_empty();
            let line = self.line().await.map_err(|_| begun || !self.buffer.is_empty())?;
            text.push_str(&String::from_utf8_lossy(&line));
            let status = text.split(' ').nth(1).is_some_and(|w| ["OK", "NO", "BAD", "BYE"].contains(&w));
            let announced = text.strip_suffix('}').and_then(|t| t.rsplit_once('{')?.1.parse().ok());
            match announced {
                Some(n) if !status => literals.push(self.exact(n).await.map_err(|_| true)?),
                _ => return Ok((text, literals)),
            }
        }
    }

    /// Reads to the tagged response, or to the end of the connection.
    async fn reply(&mut self, tag: &str) -> Reply {
        let mut reply = Reply { status: None, bye: false, cut: false, untagged: Vec::new() };
        loop {
            match self.response().await {
                Err(cut) => {
                    reply.cut = cut;
                    return reply;
                }
                Ok((text, literals)) => {
                    if let Some(status) = text.strip_prefix(tag).and_then(|t| t.strip_prefix(' ')) {
                        reply.status = Some(status.to_owned());
                        return reply;
                    }
                    assert!(text.starts_with("* ") || text.starts_with('+'), "a line that is no response: {text}");
                    reply.bye |= text.starts_with("* BYE");
                    reply.untagged.push((text, literals));
                }
            }
        }
    }

    fn tag(&mut self) -> String {
        self.tag += 1;
        format!("c{}", self.tag)
    }

    async fn command(&mut self, command: &str) -> Reply {
        let tag = self.tag();
        self.send(format!("{tag} {command}\r\n").as_bytes()).await;
        self.reply(&tag).await
    }

    async fn ok(&mut self, command: &str) -> Reply {
        let reply = self.command(command).await;
        assert!(reply.is("OK"), "{command}: {reply:?}");
        reply
    }

    async fn until_ok(&mut self, command: &str) -> Reply {
        let began = Instant::now();
        loop {
            let reply = self.command(command).await;
            if reply.is("OK") {
                return reply;
            }
            assert!(reply.status.is_some() && began.elapsed() < PATIENCE, "{command}: {reply:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn append(&mut self, mailbox: &str, octets: &[u8]) -> Reply {
        let tag = self.tag();
        self.send(format!("{tag} APPEND {mailbox} {{{}+}}\r\n", octets.len()).as_bytes()).await;
        self.send(octets).await;
        self.send(b"\r\n").await;
        self.reply(&tag).await
    }

    async fn idle(&mut self, during: Duration) -> Reply {
        let tag = self.tag();
        self.send(format!("{tag} IDLE\r\n").as_bytes()).await;
        tokio::time::sleep(during).await;
        self.send(b"DONE\r\n").await;
        self.reply(&tag).await
    }
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// One way to fail; the name says it in a failed test.
fn faults() -> Vec<(&'static str, ImapEffect)> {
    vec![
        ("NO", ImapEffect::No("[UNAVAILABLE] later {5}".into())),
        ("BAD", ImapEffect::Bad("what {5}".into())),
        ("BYE", ImapEffect::Bye("going down".into())),
        ("dropped", ImapEffect::Drop),
        ("dropped inside a literal", ImapEffect::DropInLiteral(7)),
        ("dropped before the answer", ImapEffect::DropBeforeAnswer),
        ("slow", ImapEffect::Delay(Duration::from_millis(300))),
        ("silent", ImapEffect::Silence),
    ]
}

/// What a client does, and the provider's command at which things go wrong.
const VIEW: &[(&str, &str)] = &[
    ("SELECT INBOX", "NOOP"),
    ("STATUS INBOX (MESSAGES)", "NOOP"),
    ("UID FETCH 1:* (BODY.PEEK[])", "FETCH"),
    ("UID FETCH 1:* (BODY.PEEK[])", "EXAMINE"),
    ("UID FETCH 1:* (BODY.PEEK[])", "AUTHENTICATE"),
    ("UID FETCH 1:* (BODY.PEEK[])", "GREETING"),
    ("UID SEARCH TEXT message", "SEARCH"),
    ("UID STORE 1 +FLAGS (\\Flagged)", "STORE"),
    ("UID STORE 1 +FLAGS (\\Flagged)", "IDLE"),
    ("UID COPY 2 Archive", "COPY"),
    ("UID MOVE 3 Archive", "MOVE"),
    ("UID EXPUNGE 4", "EXPUNGE"),
    ("APPEND Archive", "APPEND"),
    ("APPEND INBOX", "APPEND"),
    ("STATUS Archive (MESSAGES)", "STATUS"),
    ("LIST \"\" *", "LIST"),
    ("SELECT Archive", "SELECT"),
    ("SELECT Archive", "GREETING"),
    ("CREATE New", "CREATE"),
    ("IDLE", "IDLE"),
    ("NOOP", "NOOP"),
];

/// Whether OK was true: what was said to be done is done at the provider.
fn is_done(stand: &Stand, command: &str) -> bool {
    let (inbox, archive) = (stand.provider.mailbox(USER, "INBOX"), stand.provider.mailbox(USER, "Archive"));
    let (in_inbox, in_archive) = (
        |n: usize| inbox.iter().any(|m| m.octets[..] == message(n)),
        |n: usize| archive.iter().any(|m| m.octets[..] == message(n)),
    );
    match command {
        "UID STORE 1 +FLAGS (\\Flagged)" => inbox.iter().any(|m| m.flags.contains("\\Flagged")),
        "UID COPY 2 Archive" => in_inbox(1) && in_archive(1),
        "UID MOVE 3 Archive" => !in_inbox(2) && in_archive(2),
        "UID EXPUNGE 4" => !in_inbox(3),
        "APPEND Archive" => in_archive(77),
        "APPEND INBOX" => in_inbox(77),
        "CREATE New" => stand.provider.mailboxes(USER).contains(&"New".to_owned()),
        _ => true,
    }
}

async fn perform(client: &mut Client, command: &str) -> Reply {
    match command.strip_prefix("APPEND ") {
        Some(mailbox) => client.append(mailbox, &message(77)).await,
        None if command == "IDLE" => client.idle(Duration::from_millis(700)).await,
        None => client.command(command).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_outlives_every_fault_at_every_command() {
    let mut runs = tokio::task::JoinSet::new();
    for (name, effect) in faults() {
        for &(command, at) in VIEW {
            // Some can't happen at all.
            if at == "GREETING" && matches!(effect, ImapEffect::No(_) | ImapEffect::Bad(_)) {
                continue;
            }
            let effect = effect.clone();
            runs.spawn(async move {
                let case = format!("{command}, the provider {name} at {at}");
                let within = tokio::time::timeout(Duration::from_secs(60), one_view_case(&case, command, at, effect));
                (within.await.unwrap_or_else(|_| panic!("{case}: took too long")), case)
            });
            if runs.len() >= 6 {
                runs.join_next().await.unwrap().unwrap();
            }
        }
    }
    while let Some(done) = runs.join_next().await {
        done.unwrap();
    }
}

async fn one_view_case(case: &str, command: &str, at: &str, effect: ImapEffect) {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    if command == "UID EXPUNGE 4" {
        client.ok("UID STORE 4 +FLAGS (\\Deleted)").await;
    }
    if at == "GREETING" || at == "AUTHENTICATE" || at == "EXAMINE" {
        // No connection waits in the pool.
        eventually("unused connections to be closed", || stand.provider.faults().connections() <= 1).await;
    }
    if at == "NOOP" {
        // The last sync has to be old.
        stand.provider.faults().imap(Some("NOOP"), effect.clone(), Some(3));
        tokio::time::sleep(Duration::from_millis(100)).await;
    } else {
        stand.fault(at, effect.clone());
    }
    let began = Instant::now();
    let reply = perform(&mut client, command).await;
    assert!(began.elapsed() < BOUND, "{case}: {:?}", began.elapsed());
    let begun = matches!(effect, ImapEffect::DropInLiteral(_) | ImapEffect::DropBeforeAnswer) && at == "FETCH";
    match &reply.status {
        Some(s) if s.starts_with("OK") => assert!(is_done(&stand, command), "{case}: {reply:?}"),
        Some(s) if s.starts_with("NO") => {}
        None if reply.cut && begun => {}
        _ => panic!("{case}: {reply:?}"),
    }
    if matches!(effect, ImapEffect::Delay(_)) {
        assert!(reply.is("OK"), "{case}: {reply:?}");
    }
    // What came is what is there, and nothing else.
    let known: Vec<Vec<u8>> = (0..4).chain([77]).map(message).collect();
    for body in reply.bodies() {
        assert!(known.contains(&unstamped(&body)), "{case}: {:?}", String::from_utf8_lossy(&body));
    }
    stand.provider.faults().clear();
    if reply.status.is_none() {
        client = stand.client().await;
    }
    // Behind the client's back all is well again.
    client.until_ok("SELECT INBOX").await;
    let began = Instant::now();
    loop {
        let bodies = client.until_ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies();
        let seen: BTreeSet<Vec<u8>> = bodies.iter().map(|b| unstamped(b)).collect();
        let there = stand.provider.mailbox(USER, "INBOX");
        if seen == there.iter().map(|m| m.octets.to_vec()).collect() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{case}: {} of {}", seen.len(), there.len());
        client.ok("NOOP").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stand.gateway.shutdown().await;
}

fn unstamped(octets: &[u8]) -> Vec<u8> {
    let mut rest = octets;
    while rest.to_ascii_lowercase().starts_with(b"x-tollgate-") {
        let mut at = 0;
        loop {
            at += rest[at..].iter().position(|b| *b == b'\n').unwrap() + 1;
            if !matches!(rest.get(at), Some(b' ' | b'\t')) {
                break;
            }
        }
        rest = &rest[at..];
    }
    rest.to_vec()
}

const PASSED: &[(&str, &str)] = &[
    ("FETCH 1:* (BODY.PEEK[])", "FETCH"),
    ("STORE 1 +FLAGS (\\Flagged)", "STORE"),
    ("SEARCH TEXT message", "SEARCH"),
    ("COPY 1 Archive", "COPY"),
    ("COPY 1 INBOX", "COPY"),
    ("MOVE 1 INBOX", "MOVE"),
    ("EXPUNGE", "EXPUNGE"),
    ("NOOP", "NOOP"),
    ("CLOSE", "CLOSE"),
    ("IDLE", "IDLE"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_passed_through_mailbox_ends_only_with_its_connection() {
    let mut runs = tokio::task::JoinSet::new();
    for (name, effect) in faults() {
        for &(command, at) in PASSED {
            let effect = effect.clone();
            runs.spawn(async move {
                let case = format!("{command}, the provider {name} at {at}");
                let stand = Stand::new().await;
                // The watching connection says NOOP and IDLE too: it is far
                // from either now.
                let mut client = stand.selected("Archive").await;
                stand.provider.faults().imap(Some(at), effect.clone(), if at == "IDLE" { Some(2) } else { Some(1) });
                let reply = perform(&mut client, command).await;
                match effect {
                    _ if at == "IDLE" || at == "NOOP" => {
                        assert!(reply.status.is_some() || reply.bye, "{case}: {reply:?}")
                    }
                    ImapEffect::No(_) => assert!(reply.is("NO"), "{case}: {reply:?}"),
                    ImapEffect::Bad(_) => assert!(reply.is("BAD") || reply.is("NO"), "{case}: {reply:?}"),
                    ImapEffect::Delay(_) => assert!(reply.is("OK"), "{case}: {reply:?}"),
                    ImapEffect::DropInLiteral(_) if reply.cut => assert!(!reply.bye, "{case}: {reply:?}"),
                    _ => assert!(reply.bye && reply.status.is_none() && !reply.cut, "{case}: {reply:?}"),
                }
                let known: Vec<Vec<u8>> = (10..13).map(message).collect();
                assert!(reply.bodies().iter().all(|b| known.contains(b)), "{case}: {reply:?}");
                stand.provider.faults().clear();
                if reply.status.is_none() {
                    client = stand.client().await;
                }
                client.until_ok("SELECT Archive").await;
                client.until_ok("SELECT INBOX").await;
                stand.gateway.shutdown().await;
            });
            if runs.len() >= 6 {
                runs.join_next().await.unwrap().unwrap();
            }
        }
    }
    while let Some(done) = runs.join_next().await {
        done.unwrap();
    }
}

/// Waits until a client that idles in INBOX or Archive is told of a message.
async fn told_of_mail(stand: &Stand, client: &mut Client, mailbox: &str, within: Duration) {
    let tag = client.tag();
    client.send(format!("{tag} IDLE\r\n").as_bytes()).await;
    assert_eq!(client.response().await.unwrap().0, "+ idling");
    stand.provider.put(USER, mailbox, message(50), &[]);
    let told = async { while !client.response().await.unwrap().0.ends_with(" EXISTS") {} };
    tokio::time::timeout(within, told).await.expect("the client is told");
    client.send(b"DONE\r\n").await;
    assert!(client.reply(&tag).await.is("OK"));
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_clients_cost_no_connection() {
    let stand = Stand::new().await;
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut client = stand.selected("INBOX").await;
        client.ok("UID FETCH 1:* (BODY.PEEK[])").await;
        let tag = client.tag();
        client.send(format!("{tag} IDLE\r\n").as_bytes()).await;
        clients.push(client);
    }
    eventually("only the watching connection to be open", || stand.provider.faults().connections() == 1).await;
    tokio::time::sleep(stand.timing.idle_renew * 3).await;
    assert_eq!(stand.provider.faults().connections(), 1);
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_the_limit_a_session_waits_its_turn_and_is_then_refused() {
    let stand = Stand::with(Caps::default(), 4, |_, timing| timing.queue = Duration::from_millis(1500)).await;
    let mut holders = Vec::new();
    for _ in 0..3 {
        holders.push(stand.selected("Archive").await);
    }
    assert_eq!(stand.provider.faults().connections(), 4);
    let mut late = stand.client().await;
    for command in ["SELECT Archive", "STATUS Archive (MESSAGES)"] {
        let began = Instant::now();
        let reply = late.command(command).await;
        assert!(reply.is("NO [LIMIT]"), "{command}: {reply:?}");
        assert!(began.elapsed() >= Duration::from_millis(1400), "{:?}", began.elapsed());
    }
    // The mirror needs none; a body does.
    late.ok("SELECT INBOX").await;
    late.ok("UID FETCH 1:* (FLAGS)").await;
    assert!(late.command("UID FETCH 1 (BODY.PEEK[])").await.is("NO [LIMIT]"));
    assert_eq!(stand.provider.faults().connections(), 4);
    // Whoever waits gets the place that another gives up, however it does.
    let (waiting, _) = tokio::join!(late.command("SELECT Archive"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        holders[0].ok("UNSELECT").await;
    });
    assert!(waiting.is("OK"), "{waiting:?}");
    let mut other = stand.client().await;
    let (waiting, ()) = tokio::join!(other.command("STATUS Archive (MESSAGES)"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(holders.pop());
    });
    assert!(waiting.is("OK"), "{waiting:?}");
    assert!(stand.provider.faults().connections() <= 4);
    stand.gateway.shutdown().await;
}

#[test]
fn the_limit_is_configured_for_each_account() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let load = |connections: &str| {
        let text = format!(
            "state_dir = \"state\"\n[[account]]\naddress = \"demo@example.org\"\nprovider = \"embedded\"\n{connections}\n"
        );
        std::fs::write(&file, text).unwrap();
        config::load(Some(&file), &Default::default(), &Overrides::default()).map(|c| c.accounts[0].connections)
    };
    assert_eq!(load("").unwrap(), 8);
    assert_eq!(load("connections = 12").unwrap(), 12);
    assert!(load("connections = 2").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sudden_loss_is_told_only_when_a_second_connection_sees_it_too() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    // The provider says that everything went, and that is not so.
    let lie = b"* 1 EXPUNGE\r\n* 1 EXPUNGE\r\n* 1 EXPUNGE\r\n* 1 EXPUNGE\r\n".to_vec();
    stand.fault("IDLE", ImapEffect::Octets(lie));
    let reply = client.idle(Duration::from_millis(1500)).await;
    assert!(reply.is("OK") && !reply.has("EXPUNGE"), "{reply:?}");
    assert_eq!(client.ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies().len(), 4);
    // And now it is so.
    let mut other = direct(&stand.provider).await;
    other.command("SELECT INBOX").await.unwrap().ok().unwrap();
    other.command("STORE 1:3 +FLAGS.SILENT (\\Deleted)").await.unwrap().ok().unwrap();
    other.command("EXPUNGE").await.unwrap().ok().unwrap();
    let began = Instant::now();
    loop {
        let reply = client.command("UID FETCH 1:* (BODY.PEEK[])").await;
        if reply.is("OK") && reply.bodies().len() == 1 {
            break;
        }
        assert!(reply.is("OK") || reply.is("NO [EXPUNGEISSUED]"), "{reply:?}");
        assert!(began.elapsed() < PATIENCE);
        client.idle(Duration::from_millis(50)).await;
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loss_is_confirmed_without_a_free_place_too() {
    let stand = Stand::with(Caps::default(), 3, |_, _| {}).await;
    let mut client = stand.selected("INBOX").await;
    let _holders = (stand.selected("Archive").await, stand.selected("Archive").await);
    let mut other = direct(&stand.provider).await;
    other.command("SELECT INBOX").await.unwrap().ok().unwrap();
    other.command("STORE 1:3 +FLAGS.SILENT (\\Deleted)").await.unwrap().ok().unwrap();
    other.command("EXPUNGE").await.unwrap().ok().unwrap();
    let began = Instant::now();
    let mut expunged = 0;
    while expunged < 3 {
        assert!(began.elapsed() < PATIENCE, "{expunged}");
        let reply = client.idle(Duration::from_millis(50)).await;
        expunged += reply.untagged.iter().filter(|(t, _)| t.ends_with(" EXPUNGE")).count();
    }
    assert_eq!(expunged, 3);
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_is_renewed_and_one_that_the_provider_ends_is_begun_anew() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    let mut passed = stand.selected("Archive").await;
    let faults = stand.provider.faults();
    faults.keep_commands(true);
    let made = faults.connections_made();
    let idles = || faults.commands().iter().filter(|c| c.ends_with(b" IDLE\r\n")).count();
    eventually("IDLE to be renewed", || idles() >= 3).await;
    faults.imap(Some("IDLE"), ImapEffect::EndIdle(Duration::from_millis(150)), None);
    let before = idles();
    eventually("IDLE to be begun anew", || idles() >= before + 4).await;
    told_of_mail(&stand, &mut client, "INBOX", Duration::from_secs(2)).await;
    told_of_mail(&stand, &mut passed, "Archive", Duration::from_secs(2)).await;
    let reply = passed.idle(Duration::from_millis(1000)).await;
    assert!(reply.is("OK"), "{reply:?}");
    assert_eq!(faults.connections_made(), made, "no connection was lost");
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_idle_or_that_ends_it_at_once_is_polled() {
    for ends in [false, true] {
        let caps = Caps { idle: ends, ..Caps::default() };
        let stand = Stand::with(caps, 4, |config, _| config.accounts[0].poll = Duration::from_millis(300)).await;
        if ends {
            stand.provider.faults().imap(Some("IDLE"), ImapEffect::EndIdle(Duration::ZERO), None);
        }
        let mut client = stand.selected("INBOX").await;
        let mut passed = stand.selected("Archive").await;
        stand.provider.faults().keep_commands(true);
        told_of_mail(&stand, &mut client, "INBOX", Duration::from_secs(4)).await;
        told_of_mail(&stand, &mut passed, "Archive", Duration::from_secs(4)).await;
        let commands = stand.provider.faults().commands().len();
        assert!(commands < 200, "a busy loop: {commands}");
        stand.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_connections_are_replaced_after_a_suspend_and_after_a_while() {
    for suspend in [true, false] {
        let stand = Stand::with(Caps::default(), 4, |_, timing| {
            if suspend {
                timing.idle_renew = Duration::from_secs(600);
                timing.unused = Duration::from_secs(600);
            }
        })
        .await;
        let mut client = stand.selected("INBOX").await;
        client.ok("UID FETCH 1:* (BODY.PEEK[])").await;
        let mut passed = stand.selected("Archive").await;
        let mut idling = stand.selected("Archive").await;
        let tag = idling.tag();
        idling.send(format!("{tag} IDLE\r\n").as_bytes()).await;
        assert_eq!(idling.response().await.unwrap().0, "+ idling");
        stand.provider.freeze();
        if suspend {
            stand.timing.clock.advance(Duration::from_secs(3600));
        }
        told_of_mail(&stand, &mut client, "INBOX", Duration::from_secs(5)).await;
        assert_eq!(client.ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies().len(), 5);
        let end = idling.reply(&tag).await;
        assert!(end.bye && end.status.is_none(), "{end:?}");
        let began = Instant::now();
        let end = passed.command("NOOP").await;
        assert!(end.bye && began.elapsed() < stand.timing.answer + Duration::from_secs(2), "{end:?}");
        stand.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_a_provider_that_is_gone_for_a_while() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    let address = stand.provider.imap_addr();
    stand.provider.stop().await;
    for command in ["UID FETCH 1 (BODY.PEEK[])", "UID STORE 1 +FLAGS (\\Seen)", "SELECT INBOX", "LIST \"\" *"] {
        let began = Instant::now();
        let reply = client.command(command).await;
        assert!(reply.is("NO [UNAVAILABLE]"), "{command}: {reply:?}");
        assert!(began.elapsed() < Duration::from_secs(3), "{command}: {:?}", began.elapsed());
    }
    assert!(client.append("INBOX", &message(1)).await.is("NO [UNAVAILABLE]"));
    client.ok("NOOP").await;
    let back = provider(Caps::default(), Some(address)).await;
    back.deliver(USER, message(0));
    let began = Instant::now();
    loop {
        client.until_ok("SELECT INBOX").await;
        if client.ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies().iter().map(|b| unstamped(b)).eq([message(0)]) {
            break;
        }
        assert!(began.elapsed() < PATIENCE);
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_refused_later_is_unavailable_and_makes_no_storm() {
    let stand = Stand::with(Caps::default(), 4, |_, timing| timing.retry_most = Duration::from_secs(2)).await;
    let mut client = stand.selected("INBOX").await;
    let faults = stand.provider.faults();
    faults.reject_auth(true);
    faults.keep_commands(true);
    stand.provider.disconnect(None);
    for _ in 0..40 {
        let reply = client.command("LIST \"\" *").await;
        assert!(reply.is("NO [UNAVAILABLE]"), "{reply:?}");
        let reply = client.command("UID FETCH 1 (BODY.PEEK[])").await;
        assert!(reply.is("NO [UNAVAILABLE]"), "{reply:?}");
    }
    let tries = faults.commands().iter().filter(|c| c.windows(12).any(|w| w == b"AUTHENTICATE")).count();
    assert!((1..=4).contains(&tries), "{tries} logins");
    faults.reject_auth(false);
    client.until_ok("SELECT INBOX").await;
    client.until_ok("UID FETCH 1:* (BODY.PEEK[])").await;
    stand.gateway.shutdown().await;
}

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

/// Pieces of commands and of attempts to leave them.
fn piece() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;
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
    assert!(seen.into_inner() > 1500, "something must have come through");
    runtime.block_on(stand.gateway.shutdown());
}
