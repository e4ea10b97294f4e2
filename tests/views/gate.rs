//! A gateway over the embedded provider, and small talk with it.

// Each test program uses its own part.
#![allow(dead_code)]

use std::path::Path;
use std::time::{Duration, Instant};

use tollgate::account::demo as keys;
use tollgate::config::{self, Endpoint, Overrides, TlsMode};
use tollgate::demo::client::imap::{Answer, ImapClient};
use tollgate::demo::provider::Provider;
use tollgate::gateway::Gateway;

pub(crate) const USER: &str = keys::ADDRESS;
/// How long a test waits for something that takes milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn start(folder: &Path, samples: bool, preset: &str) -> Gateway {
    let file = folder.join("gateway.toml");
    let text = format!(
        "state_dir = \"state\"\ncerts_dir = \"certs\"\n[listen]\nimaps = []\nsubmissions = []\n\
         imap_plain = [\"127.0.0.1:0\"]\nsmtp_plain = [\"127.0.0.1:0\"]\nweb = [\"127.0.0.1:0\"]\n\
         [limits]\nagent_commands_per_minute = 1000000\n\
         [lanes]\npreset = \"{preset}\"\n[[account]]\naddress = \"{USER}\"\nprovider = \"embedded\"\n"
    );
    std::fs::write(&file, text).unwrap();
    let state = folder.join("state");
    if !samples && !state.exists() {
        // The provider keeps its mail, the gateway forgets that it saw any:
        // UIDs start at 1.
        let gateway = run(&file).await;
        let mut client = person(&gateway).await;
        ok(&mut client, "SELECT Lanes/All").await;
        ok(&mut client, "UID STORE 1:* +FLAGS.SILENT (\\Deleted)").await;
        ok(&mut client, "EXPUNGE").await;
        gateway.shutdown().await;
        for entry in std::fs::read_dir(&state).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }
    run(&file).await
}

async fn run(file: &Path) -> Gateway {
    let config = config::load(Some(file), &Default::default(), &Overrides::default()).unwrap();
    Gateway::start(config).await.unwrap()
}

pub(crate) async fn sign_in(gateway: &Gateway, key: &str) -> ImapClient {
    let address = gateway.addresses().imap_plain[0];
    let endpoint = Endpoint { host: "127.0.0.1".into(), port: address.port(), tls: TlsMode::None, ca: None };
    ImapClient::sign_in(&endpoint, USER, key).await.unwrap()
}

pub(crate) async fn person(gateway: &Gateway) -> ImapClient {
    sign_in(gateway, keys::PERSON_KEY).await
}

pub(crate) async fn agent(gateway: &Gateway) -> ImapClient {
    sign_in(gateway, keys::AGENT_KEY).await
}

pub(crate) fn provider(gateway: &Gateway) -> &Provider {
    gateway.provider().unwrap()
}

pub(crate) async fn ok(client: &mut ImapClient, command: &str) -> Answer {
    let answer = client.command(command).await.unwrap();
    assert!(answer.is_ok(), "{command}: {}", answer.status);
    answer
}

/// The next response of an idling session that isn't about RECENT.
pub(crate) async fn next_told(client: &mut ImapClient) -> String {
    loop {
        let told = tokio::time::timeout(PATIENCE, client.told()).await.unwrap().unwrap();
        if !told.text.ends_with(" RECENT") {
            return told.text;
        }
    }
}

/// Waits until a view holds so many messages.
pub(crate) async fn until(client: &mut ImapClient, mailbox: &str, messages: usize) {
    let began = Instant::now();
    loop {
        ok(client, &format!("SELECT {mailbox}")).await;
        let found = ok(client, "UID SEARCH ALL").await.found();
        if found.len() == messages {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{mailbox} holds {} of {messages}", found.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// One literal of a message.
pub(crate) async fn section(client: &mut ImapClient, uid: u32, item: &str) -> Vec<u8> {
    let answer = ok(client, &format!("UID FETCH {uid} ({item})")).await;
    let response = answer.fetched().find(|r| r.number("UID") == Some(u64::from(uid))).cloned();
    let response = response.unwrap_or_else(|| panic!("no answer to {item} of {uid}: {answer:?}"));
    assert_eq!(response.literals.len(), 1, "{item}: {}", response.text);
    response.literals[0].clone()
}

pub(crate) async fn uids(client: &mut ImapClient) -> Vec<u32> {
    ok(client, "UID SEARCH ALL").await.found()
}

/// What the untagged responses of an answer say.
pub(crate) fn told(answer: &Answer) -> Vec<String> {
    answer.untagged.iter().map(|r| r.text.clone()).collect()
}
