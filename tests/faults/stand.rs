//! A provider with faults, a gateway in front of it, and clients.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use tollgate::account::{AccountId, Role};
use tollgate::config::{self, Config, Endpoint, Overrides, TlsMode};
use tollgate::demo::character::Character;
use tollgate::demo::client::imap::ImapClient;
use tollgate::demo::faults::ImapEffect;
use tollgate::demo::provider::{Caps, Options, Provider};
use tollgate::gateway::Gateway;
use tollgate::imap::timing::Timing;
use tollgate::mail::address::Address;

use crate::client::Client;

pub(crate) const USER: &str = "jo@example.org";
pub(crate) const PASSWORD: &str = "upstream password";
/// No command may take longer, whatever the provider does: the longest waits
/// of [`timing`] together, and some for a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(12);
/// How long recovery may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// Waits as tests need them.
pub(crate) fn timing() -> Timing {
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
pub(crate) struct Stand {
    pub(crate) gateway: Gateway,
    pub(crate) provider: Provider,
    pub(crate) person: String,
    pub(crate) agent: String,
    pub(crate) timing: Timing,
    _folder: tempfile::TempDir,
}

pub(crate) fn message(n: usize) -> Vec<u8> {
    format!("From: ann@example.com\r\nSubject: number {n}\r\n\r\n{}", "text of the message\r\n".repeat(n + 1))
        .into_bytes()
}

pub(crate) async fn provider(capabilities: Caps, imap: Option<SocketAddr>) -> Provider {
    provider_like(Character::Plain, capabilities, imap).await
}

async fn provider_like(character: Character, capabilities: Caps, imap: Option<SocketAddr>) -> Provider {
    let users = vec![(USER.to_owned(), PASSWORD.to_owned())];
    let imap = imap.unwrap_or(Options::default().imap);
    Provider::start(Options { users, capabilities, imap, character, ..Options::default() }).await.unwrap()
}

impl Stand {
    pub(crate) async fn new() -> Stand {
        Stand::with(Caps::default(), 4, |_, _| {}).await
    }

    /// A gateway whose INBOX holds 4 messages and whose Archive holds 3.
    pub(crate) async fn with(caps: Caps, connections: usize, change: impl FnOnce(&mut Config, &mut Timing)) -> Stand {
        Stand::built(provider(caps, None).await, connections, "shadow", change).await
    }

    /// The same in front of a provider of some character, with a mailbox for
    /// each lane.
    pub(crate) async fn like(character: Character, connections: usize) -> Stand {
        let provider = provider_like(character, Caps::default(), None).await;
        Stand::built(provider, connections, "folders", |_, _| {}).await
    }

    async fn built(
        provider: Provider,
        connections: usize,
        preset: &str,
        change: impl FnOnce(&mut Config, &mut Timing),
    ) -> Stand {
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
             [limits]\nagent_commands_per_minute = 1000000\n\
             [lanes]\npreset = \"{preset}\"\n[[account]]\naddress = \"{USER}\"\nprovider = \"imap\"\n\
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

    pub(crate) fn fault(&self, command: &str, effect: ImapEffect) {
        self.provider.faults().imap(Some(command), effect, Some(1));
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.gateway.addresses().imap_plain[0]).await
    }

    pub(crate) async fn sign_in(&self, key: &str) -> Client {
        let mut client = self.connect().await;
        client.ok(&format!("LOGIN {USER} {key}")).await;
        client
    }

    pub(crate) async fn client(&self) -> Client {
        self.sign_in(&self.person).await
    }

    /// A client with a mailbox open, once the gateway can open it.
    pub(crate) async fn selected(&self, mailbox: &str) -> Client {
        let mut client = self.client().await;
        client.until_ok(&format!("SELECT {mailbox}")).await;
        client
    }
}

pub(crate) async fn direct(provider: &Provider) -> ImapClient {
    let port = provider.imap_addr().port();
    let endpoint = Endpoint { host: "127.0.0.1".into(), port, tls: TlsMode::None, ca: None };
    ImapClient::sign_in(&endpoint, USER, PASSWORD).await.unwrap()
}

pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn unstamped(octets: &[u8]) -> Vec<u8> {
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
