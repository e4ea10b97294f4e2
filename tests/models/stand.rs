//! A provider, a gateway in front of it, and what clients see of new mail.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tollgate::account::{AccountId, Role};
use tollgate::config::{self, Endpoint, Overrides, TlsMode};
use tollgate::demo::client::imap::ImapClient;
use tollgate::demo::provider::{Options, Provider};
use tollgate::gateway::Gateway;
use tollgate::imap::rows;
use tollgate::lane::trace::Trace;
use tollgate::mail::address::Address;
use tollgate::store::{StoreError, Table, get_json, read};

use crate::common::http::Browser;

pub(crate) const USER: &str = "jo@example.org";
pub(crate) const PASSWORD: &str = "upstream password";
/// How long a test waits for something that takes milliseconds: the machine
/// may be building something at the same time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A price for everything that costs nothing.
pub(crate) const FREE: &str = "[[price]]\nmodel = \"*\"\ninput = 0\noutput = 0\n";

/// The table of a model.
pub(crate) fn model(name: &str, url: &str, more: &str) -> String {
    format!("[[model]]\nname = \"{name}\"\nendpoint = \"{url}\"\nmodel = \"lab\"\n{more}\n")
}

pub(crate) struct Stand {
    pub(crate) gateway: Gateway,
    pub(crate) provider: Provider,
    pub(crate) person: String,
    _folder: tempfile::TempDir,
}

pub(crate) async fn provider() -> Provider {
    Provider::start(Options { users: vec![(USER.to_owned(), PASSWORD.to_owned())], ..Options::default() })
        .await
        .unwrap()
}

/// The account at a provider.
pub(crate) fn account(provider: &Provider) -> String {
    format!(
        "[lanes]\npreset = \"folders\"\n[[account]]\naddress = \"{USER}\"\nprovider = \"imap\"\n\
         imap.host = \"127.0.0.1\"\nimap.port = {}\nimap.tls = \"none\"\n\
         smtp.host = \"127.0.0.1\"\nsmtp.port = {}\nsmtp.tls = \"none\"\npassword = \"{PASSWORD}\"\n",
        provider.imap_addr().port(),
        provider.smtp_addr().port(),
    )
}

fn write_config(folder: &Path, provider: &Provider, models: &str) -> std::path::PathBuf {
    let file = folder.join("gateway.toml");
    let text = format!(
        "state_dir = \"state\"\ncerts_dir = \"certs\"\n[listen]\nimaps = []\nsubmissions = []\n\
         imap_plain = [\"127.0.0.1:0\"]\nsmtp_plain = [\"127.0.0.1:0\"]\nweb = [\"127.0.0.1:0\"]\n{models}\n{}",
        account(provider)
    );
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file
}

impl Stand {
    /// A gateway over an empty INBOX, with these tables about models.
    pub(crate) async fn start(models: &str) -> Stand {
        let provider = provider().await;
        let folder = tempfile::tempdir().unwrap();
        let file = write_config(folder.path(), &provider, models);
        let config = config::load(Some(&file), &Default::default(), &Overrides::default()).unwrap();
        let gateway = Gateway::start(config).await.unwrap();
        let accounts = gateway.core().accounts.clone();
        let person = accounts.add_key(&account_id(), Role::Person, "client").await.unwrap();
        let stand = Stand { gateway, provider, person, _folder: folder };
        // From here on mail is new.
        let mut client = stand.client().await;
        until(&mut client, "Lanes/All", 0).await;
        stand
    }

    pub(crate) async fn client(&self) -> ImapClient {
        let address = self.gateway.addresses().imap_plain[0];
        let endpoint = Endpoint { host: "127.0.0.1".into(), port: address.port(), tls: TlsMode::None, ca: None };
        ImapClient::sign_in(&endpoint, USER, &self.person).await.unwrap()
    }

    /// Delivers a message and waits until a client sees it; what it sees, and
    /// how long that took.
    pub(crate) async fn shown(&self, octets: &[u8], messages: usize) -> (String, Duration) {
        let mut client = self.client().await;
        let began = Instant::now();
        self.provider.deliver(USER, octets);
        until(&mut client, "Lanes/All", messages).await;
        let took = began.elapsed();
        (header(&mut client, messages).await, took)
    }

    /// The decision that a header names.
    pub(crate) fn trace(&self, header: &str) -> Trace {
        let key = rows::decision_key(&account_id(), &field(header, "X-Tollgate-Decision"));
        let found: Result<Option<Trace>, StoreError> =
            read(&*self.gateway.core().store, |r| get_json(r, Table::Decision, &key));
        found.unwrap().expect("the decision is stored")
    }

    /// One number of the metrics page; labels as they are written there.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let page = Browser::new(self.gateway.addresses().web[0].port()).get("/metrics").text();
        page.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }
}

pub(crate) fn account_id() -> AccountId {
    AccountId::of(&Address::parse(USER).unwrap())
}

/// Mail that says little.
pub(crate) fn note(n: usize) -> Vec<u8> {
    format!(
        "From: Ann <ann{n}@example.com>\r\nTo: {USER}\r\nSubject: note {n}\r\nMessage-ID: <note-{n}@example.com>\r\n\r\n\
         This is note number {n}, with a few words about the garden and the weather.\r\n"
    )
    .into_bytes()
}

/// Waits until a view holds so many messages.
pub(crate) async fn until(client: &mut ImapClient, mailbox: &str, messages: usize) {
    let began = Instant::now();
    loop {
        let selected = client.command(&format!("SELECT {mailbox}")).await.unwrap();
        let found = match selected.is_ok() {
            true => Some(client.command("UID SEARCH ALL").await.unwrap().found().len()),
            false => None,
        };
        if found == Some(messages) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{mailbox} holds {found:?} of {messages}: {}", selected.status);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The header of the message with this sequence number.
pub(crate) async fn header(client: &mut ImapClient, seq: usize) -> String {
    let answer = client.command(&format!("FETCH {seq} (UID BODY.PEEK[HEADER])")).await.unwrap();
    let fetched = answer.fetched().find(|r| !r.literals.is_empty()).cloned();
    String::from_utf8_lossy(&fetched.unwrap_or_else(|| panic!("no header of {seq}: {}", answer.status)).literals[0])
        .into()
}

/// A field of a header.
pub(crate) fn field(header: &str, name: &str) -> String {
    let line = header.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name} in\n{header}")).to_owned()
}
