//! A gateway without mail faces: a real store, outbox and listener, and a
//! client that writes its requests to the octet.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::account::{AccountId, Accounts, KeyId, Role, demo};
use crate::config::{ApprovalMode, Config};
use crate::floor::action::Action;
use crate::floor::envelope::{BodyType, Envelope, ForwardPath};
use crate::floor::hold::Reason;
use crate::mail::address::Address;
use crate::mail::header;
use crate::outbox::{Hold, HoldId, Intake, Outbox};
use crate::store::redb::RedbStore;
use crate::store::{Store, Table, read};
use crate::web::{COOKIE, Services, pin, serve};

pub(super) const PIN: &str = demo::PIN;
pub(super) const OTHER: &str = "other@example.com";
pub(super) const OTHER_PIN: &str = "135790";

/// What an agent submits when nothing is wrong with it.
pub(super) const CALM: &str = "From: Demo <demo@example.org>\r\nTo: Bo <bo@example.com>\r\nDate: Sun, 29 Nov 2026 \
    10:00:00 +0000\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nMessage-ID: <1@example.org>\r\n\r\nHello Bo.\r\n";

pub(super) struct House {
    pub(super) services: Arc<Services>,
    pub(super) address: SocketAddr,
    pub(super) end: watch::Sender<bool>,
    pub(super) served: tokio::task::JoinHandle<()>,
    _folder: tempfile::TempDir,
}

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|l| l.split_once(": "));
        lines.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v)
    }

    /// The value of an attribute of the first form with this action.
    pub(super) fn attribute(&self, action: &str, name: &str) -> String {
        let from = format!("action=\"{action}\"");
        let form = self.body.split("<form").find(|f| f.split('>').next().is_some_and(|tag| tag.contains(&from)));
        let form = form.unwrap_or_else(|| panic!("no form for {action} in {}", self.body));
        let value = form.split('>').next().and_then(|tag| tag.split(&format!("{name}=\"")).nth(1));
        value.and_then(|v| v.split('"').next()).unwrap_or_else(|| panic!("no {name} in {form}")).to_owned()
    }

    /// The value of a hidden input of the first form with this action.
    pub(super) fn hidden_of(&self, action: &str, name: &str) -> String {
        let from = format!("action=\"{action}\"");
        let at = self.body.find(&from).unwrap_or_else(|| panic!("no form for {action} in {}", self.body));
        Answer { body: self.body[at..].to_owned(), ..self.clone() }.hidden(name)
    }

    /// The value of the first hidden input of that name.
    pub(super) fn hidden(&self, name: &str) -> String {
        let from = format!("name=\"{name}\" value=\"");
        let start = self.body.find(&from).unwrap_or_else(|| panic!("no {name} in {}", self.body)) + from.len();
        self.body[start..].split('"').next().unwrap().to_owned()
    }
}

impl House {
    pub(super) async fn new() -> House {
        Self::at("127.0.0.1:0").await
    }

    pub(super) async fn at(listen: &str) -> House {
        Self::made(listen, ApprovalMode::Pin).await
    }

    pub(super) async fn requiring(mode: ApprovalMode) -> House {
        Self::made("127.0.0.1:0", mode).await
    }

    async fn made(listen: &str, mode: ApprovalMode) -> House {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::embedded(folder.path());
        config.approval = mode;
        let mut other = config.accounts[0].clone();
        other.address = Address::parse(OTHER).unwrap();
        config.accounts.push(other);
        let config = Arc::new(config);
        let store: Arc<dyn Store> = Arc::new(RedbStore::open(&config.state_dir).unwrap());
        let accounts = Accounts::new(config.clone(), store.clone()).unwrap();
        accounts.ensure_demo_keys().await.unwrap();
        let outbox = Arc::new(Outbox::new(config.clone(), store.clone(), accounts.clone()).unwrap());
        let services = Arc::new(Services::new(config, store, outbox, accounts));
        pin::set(services.store.as_ref(), &me(), PIN).await.unwrap();
        pin::set(services.store.as_ref(), &other_account(), OTHER_PIN).await.unwrap();
        let listener = TcpListener::bind(listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = watch::channel(false);
        let served = tokio::spawn(serve(listener, services.clone(), ended));
        House { services, address, end, served, _folder: folder }
    }

    /// Holds a message of the demo agent for `account`.
    pub(super) async fn hold(&self, account: &AccountId, to: &[&str], message: &[u8]) -> HoldId {
        let mut writer = self.services.store.blobs().writer();
        writer.write(message).unwrap();
        let (blob, length) = writer.finish().await.unwrap();
        let paths = to.iter().map(|t| ForwardPath::parse(t).unwrap()).collect();
        let text = |name| header::values(message, name).first().map(|v| String::from_utf8_lossy(v).into_owned());
        let intake = Intake {
            account: account.clone(),
            key: agent(),
            role: Role::Agent,
            envelope: Envelope::new(account.as_str(), paths, BodyType::SevenBit, false).unwrap(),
            blob,
            row: None,
            length,
            message_id: text("Message-ID"),
            subject: text("Subject"),
            reason: Reason::AgentKey,
            action: Action::SendEmail,
            lineage: None,
        };
        self.services.outbox.hold(intake).await.unwrap()
    }

    pub(super) async fn calm(&self) -> HoldId {
        self.hold(&me(), &["bo@example.com"], CALM.as_bytes()).await
    }

    pub(super) fn get_hold(&self, id: &HoldId) -> Hold {
        self.services.outbox.get(&me(), id).unwrap().unwrap()
    }

    /// Everything that a decision could change.
    pub(super) fn fingerprint(&self) -> String {
        let holds: Vec<String> = self
            .services
            .outbox
            .list(&me())
            .unwrap()
            .iter()
            .map(|h| format!("{} {} {} {:?} {:?} {}", h.id, h.state, h.changed_at, h.detail, h.approver, h.attempt))
            .collect();
        let ledger = self.services.outbox.whole_ledger().unwrap().len();
        let receipts = read(self.services.store.as_ref(), |r| r.scan(Table::Receipt, b"", b"", 99)).unwrap().len();
        let keys = self.services.accounts.list_keys(None);
        format!("{holds:?} {ledger} {receipts} {keys:?}")
    }

    pub(super) fn authority(&self) -> String {
        format!("localhost:{}", self.address.port())
    }

    /// Sends `request` as it is and reads to the end of the connection.
    pub(super) async fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A refused body may be answered with a reset after the answer.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(super) async fn request(&self, method: &str, path: &str, fields: &[(&str, &str)], body: &str) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !fields.iter().any(|(n, _)| *n == "Host") {
            request.push_str(&format!("Host: {}\r\n", self.authority()));
        }
        for (name, value) in fields {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            let length = body.len();
            request
                .push_str(&format!("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n"));
        }
        self.send(&format!("{request}\r\n{body}")).await
    }

    pub(super) async fn get(&self, path: &str, cookie: &str) -> Answer {
        self.request("GET", path, &[("Cookie", cookie)], "").await
    }

    /// A POST as a browser on our page sends it.
    pub(super) async fn post(&self, path: &str, cookie: &str, form: &[(&str, &str)]) -> Answer {
        let origin = format!("http://{}", self.authority());
        let fields = [("Origin", origin.as_str()), ("Cookie", cookie), ("Sec-Fetch-Site", "same-origin")];
        self.request("POST", path, &fields, &urlencoded(form)).await
    }

    /// Signs in and returns the Cookie field.
    pub(super) async fn sign_in(&self, account: &str, pin: &str) -> String {
        let answer = self.post("/sign-in", "", &[("account", account), ("pin", pin)]).await;
        assert_eq!(answer.status, 303, "{}", answer.body);
        let set = answer.header("set-cookie").unwrap();
        assert!(set.starts_with(COOKIE) && set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
        set.split(';').next().unwrap().to_owned()
    }

    pub(super) async fn me(&self) -> String {
        self.sign_in(me().as_str(), PIN).await
    }
}

pub(super) fn me() -> AccountId {
    AccountId(demo::ADDRESS.into())
}

pub(super) fn other_account() -> AccountId {
    AccountId(OTHER.into())
}

pub(super) fn agent() -> KeyId {
    KeyId("demoagent".into())
}

pub(super) fn urlencoded(form: &[(&str, &str)]) -> String {
    let encode = |text: &str| -> String {
        text.bytes()
            .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
            .collect()
    };
    form.iter().map(|(n, v)| format!("{}={}", encode(n), encode(v))).collect::<Vec<_>>().join("&")
}
