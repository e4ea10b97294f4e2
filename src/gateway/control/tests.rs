//! The door against a core on disk.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::*;
use crate::account::{AccountId, KeyId, demo};
use crate::config::Config;
use crate::floor::action::Action;
use crate::floor::envelope::{BodyType, Envelope, ForwardPath};
use crate::floor::hold::Reason;
use crate::gateway::core::Core;
use crate::outbox::{HoldId, Intake};

const MESSAGE: &[u8] = b"From: demo@example.org\r\nTo: a@example.net\r\nSubject: Hi\r\n\r\nHello\r\n";

struct Running {
    dir: tempfile::TempDir,
    core: Arc<Core>,
    end: watch::Sender<bool>,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

async fn running() -> Running {
    let dir = tempfile::tempdir().unwrap();
    let core = Arc::new(Core::open(Config::embedded(dir.path())).await.unwrap());
    let (end, ended) = watch::channel(false);
    let task = tokio::spawn(serve(core.clone(), ended));
    let socket = dir.path().join("state").join(SOCKET);
    while std::fs::metadata(&socket).map_or(0, |m| m.permissions().mode() & 0o777) != 0o600 {
        tokio::task::yield_now().await;
    }
    Running { dir, core, end, task }
}

impl Running {
    async fn ask(&self, request: Request) -> Result<serde_json::Value, CallError> {
        call(&self.core.config.state_dir, &request).await
    }

    async fn raw(&self, octets: &[u8]) -> String {
        let mut stream = UnixStream::connect(self.core.config.state_dir.join(SOCKET)).await.unwrap();
        // A peer that stops reading early may close on us.
        let _ = stream.write_all(octets).await;
        let _ = stream.shutdown().await;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    fn demo(&self) -> AccountId {
        self.core.accounts.find(demo::ADDRESS).unwrap()
    }

    async fn hold(&self) -> HoldId {
        let key = self.core.accounts.authenticate(demo::ADDRESS, demo::AGENT_KEY).unwrap();
        let mut writer = self.core.store.blobs().writer();
        writer.write(MESSAGE).unwrap();
        let (blob, length) = writer.finish().await.unwrap();
        let to = vec![ForwardPath::parse("a@example.net").unwrap()];
        let envelope = Envelope::new(demo::ADDRESS, to, BodyType::SevenBit, false).unwrap();
        let intake = Intake {
            account: self.demo(),
            key: key.key,
            role: key.role,
            envelope,
            blob,
            row: None,
            length,
            message_id: None,
            subject: Some("Hi".into()),
            reason: Reason::AgentKey,
            action: Action::SendEmail,
            lineage: None,
        };
        self.core.outbox.hold(intake).await.unwrap()
    }
}

fn name(error: CallError) -> String {
    match error {
        CallError::Refused { name, .. } => name,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_key_is_made_and_revoked_through_the_socket_and_its_session_ends() {
    let r = running().await;
    let add = Request::KeyAdd { account: "Demo@example.org".into(), role: Role::Agent, name: "x".into() };
    let made = r.ask(add).await.unwrap();
    let mut session = r.core.accounts.authenticate(demo::ADDRESS, made["key"].as_str().unwrap()).unwrap();
    r.ask(Request::KeyRevoke { id: made["id"].as_str().unwrap().into() }).await.unwrap();
    session.revoked.changed().await.unwrap();
    let ledger = r.core.outbox.whole_ledger().unwrap();
    let kinds: Vec<String> =
        ledger.iter().map(|e| serde_json::to_value(&e.event).unwrap()["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["key_added", "key_revoked"]);
    assert_eq!(name(r.ask(Request::KeyRevoke { id: "nosuch".into() }).await.unwrap_err()), names::NO_KEY);
}

#[tokio::test]
async fn a_hold_is_listed_read_back_and_denied_but_never_approved() {
    let r = running().await;
    let id = r.hold().await.to_string();
    let list = r.ask(Request::HeldList { account: None, all: false, limit: None }).await.unwrap();
    assert_eq!(list["holds"][0]["id"], json!(id));
    assert_eq!(list["holds"][0]["to"], json!(["a@example.net"]));
    let octets = r.ask(Request::HeldMessage { id: id.clone() }).await.unwrap();
    use base64::Engine;
    let octets = base64::engine::general_purpose::STANDARD.decode(octets["base64"].as_str().unwrap()).unwrap();
    assert_eq!(octets, MESSAGE);
    let receipt = Request::ReceiptExport { hold: id.clone() };
    assert_eq!(name(r.ask(receipt).await.unwrap_err()), names::NO_RECEIPT);

    for forged in ["held_approve", "approve", "receipt_mint"] {
        let answer = r.raw(format!("{{\"do\":\"{forged}\",\"id\":\"{id}\"}}\n").as_bytes()).await;
        assert!(answer.contains("\"invalid\""), "{answer}");
    }
    let deny = Request::HeldDeny { id: id.clone(), reason: "no".into() };
    assert_eq!(r.ask(deny.clone()).await.unwrap()["state"], "denied");
    assert_eq!(name(r.ask(deny).await.unwrap_err()), names::STATE);
    let open = r.ask(Request::HeldList { account: None, all: false, limit: None }).await.unwrap();
    assert_eq!(open["holds"], json!([]));
    let lines = Request::HeldDeny { id, reason: "two\nlines".into() };
    assert_eq!(name(r.ask(lines).await.unwrap_err()), names::INVALID);
}

#[tokio::test]
async fn revoking_a_key_withdraws_what_it_had_waiting() {
    let r = running().await;
    let id = r.hold().await.to_string();
    r.ask(Request::KeyRevoke { id: "demoagent".into() }).await.unwrap();
    assert_eq!(r.ask(Request::HeldShow { id }).await.unwrap()["state"], "withdrawn");
    assert!(r.core.accounts.authenticate(demo::ADDRESS, demo::AGENT_KEY).is_err());
    let revoked = KeyId("demoagent".into());
    assert!(r.core.accounts.list_keys(None).iter().any(|k| k.id == revoked && k.revoked_at.is_some()));
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_bounded() {
    let r = running().await;
    for octets in [
        &b"\n"[..],
        b"{}\n",
        b"{\"do\":\"ledger_head\"}",
        b"\xff\xfe\n",
        b"{\"do\":\"key_list\",\"account\":null,\"x\":1}\n",
    ] {
        assert!(r.raw(octets).await.contains("\"invalid\""), "{octets:?}");
    }
    let long = [vec![b' '; 70 * 1024], b"{\"do\":\"ledger_head\"}\n".to_vec()].concat();
    assert!(!r.raw(&long).await.contains("\"ok\""));
    assert!(r.raw(b"{\"do\":\"ledger_head\"}\n").await.contains("\"ok\""));
}

#[tokio::test]
async fn a_pin_that_is_set_counts_and_shows_nowhere() {
    let r = running().await;
    web_pin(&r, demo::PIN).await.unwrap();
    let request = Request::PinSet { account: demo::ADDRESS.into(), pin: Pin("805173".into()) };
    assert!(!format!("{request:?}").contains("805173"));
    r.ask(request).await.unwrap();
    web_pin(&r, "805173").await.unwrap();
    assert!(web_pin(&r, demo::PIN).await.is_err());
}

async fn web_pin(r: &Running, pin: &str) -> Result<(), PinError> {
    crate::web::pin::verify(r.core.store.as_ref(), &r.demo(), pin).await
}

#[tokio::test]
async fn hooks_that_nobody_set_say_that_the_gateway_must_run() {
    let r = running().await;
    let backfill = Request::Backfill { account: demo::ADDRESS.into(), last: 3, dry_run: true };
    assert_eq!(name(r.ask(backfill.clone()).await.unwrap_err()), names::NOT_RUNNING);
    let hook: crate::gateway::core::BackfillFn =
        Arc::new(|request| Box::pin(async move { Ok(json!({ "looked": request.last })) }));
    assert!(r.core.backfill.set(hook).is_ok());
    assert_eq!(r.ask(backfill).await.unwrap()["looked"], 3);
    for request in [Request::Mirror { account: demo::ADDRESS.into() }, Request::Face { account: demo::ADDRESS.into() }]
    {
        assert_eq!(name(r.ask(request).await.unwrap_err()), names::NOT_RUNNING);
    }
    let place = Which::Place { account: demo::ADDRESS.into(), mailbox: "INBOX".into(), uid: 1 };
    assert_eq!(name(r.ask(Request::Explain { which: place }).await.unwrap_err()), names::NOT_RUNNING);
}

#[tokio::test]
async fn a_second_core_on_one_state_is_refused_and_the_socket_goes_with_its_gateway() {
    let r = running().await;
    let second = Core::open(Config::embedded(r.dir.path())).await;
    assert!(matches!(second, Err(crate::gateway::core::CoreError::Store(StoreError::InUse(_)))));
    r.end.send(true).unwrap();
    r.task.await.unwrap().unwrap();
    assert!(!r.core.config.state_dir.join(SOCKET).exists());
    let gone = call(&r.core.config.state_dir, &Request::LedgerHead).await;
    assert!(matches!(gone, Err(CallError::NotRunning)));
}

#[tokio::test]
async fn the_public_key_is_written_and_a_restart_keeps_pin_and_keys() {
    let dir = tempfile::tempdir().unwrap();
    let core = Core::open(Config::embedded(dir.path())).await.unwrap();
    let path = dir.path().join("state").join(crate::gateway::core::PUBLIC_KEY_FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(crate::floor::identity::from_text(&text), core.outbox.verifying_keys().first().copied());
    let account = core.accounts.find(demo::ADDRESS).unwrap();
    crate::web::pin::set(core.store.as_ref(), &account, "805173").await.unwrap();
    drop(core);
    let core = Core::open(Config::embedded(dir.path())).await.unwrap();
    crate::web::pin::verify(core.store.as_ref(), &account, "805173").await.unwrap();
    assert_eq!(core.accounts.list_keys(None).len(), 2);
}

#[tokio::test]
async fn a_decision_is_explained_by_its_id_and_by_its_message_id() {
    let r = running().await;
    let trace = crate::lane::trace::Trace { message_id: Some("<m@example.com>".into()), ..trace("d1") };
    let account = r.demo();
    let key = [crate::imap::rows::account_prefix(&account), b"d1".to_vec()].concat();
    let index = crate::imap::rows::by_message_id(&account, "<m@example.com>");
    crate::store::write(r.core.store.as_ref(), move |w| -> Result<(), StoreError> {
        crate::store::put_json(w, crate::store::Table::Decision, &key, &trace)?;
        w.put(crate::store::Table::DecisionIndex, &index, b"d1")
    })
    .await
    .unwrap();
    for which in [
        Which::Decision("d1".into()),
        Which::MessageId("<m@example.com>".into()),
        Which::MessageId("m@example.com".into()),
    ] {
        let answer = r.ask(Request::Explain { which }).await.unwrap();
        assert!(answer["text"].as_str().unwrap().contains("d1"));
        assert_eq!(answer["trace"]["decision"], "d1");
    }
    for which in [Which::Decision("d2".into()), Which::MessageId("x@example.com".into())] {
        assert_eq!(name(r.ask(Request::Explain { which }).await.unwrap_err()), names::NO_DECISION);
    }
}

fn trace(decision: &str) -> crate::lane::trace::Trace {
    use crate::lane::{Context, Features, Signals, Thresholds, rule};
    let (features, signals, context) = (Features::UNSCORABLE, Signals::default(), Context::default());
    let inputs = rule::Inputs { features, offline: features, signals, context: &context };
    crate::lane::trace::Trace {
        schema: crate::lane::trace::TRACE_SCHEMA,
        decision: decision.into(),
        time: 1,
        from: None,
        message_id: None,
        read: Default::default(),
        scorers: Vec::new(),
        chosen: 0,
        signals,
        verdict: rule::decide(&inputs, &Thresholds::default()),
        context,
        deadline: None,
        rule_version: rule::RULE_VERSION,
        thresholds: Thresholds::default(),
        reason: "test".into(),
    }
}

#[test]
fn the_pages_read_the_rows_that_the_mirror_writes() {
    use crate::imap::rows;
    use crate::web::facts;
    let account = AccountId(demo::ADDRESS.into());
    assert_eq!(facts::message_key(&account, "<1@x>"), rows::by_message_id(&account, "<1@x>"));
    assert_eq!(facts::correspondent_key(&account, "a@x"), rows::correspondent_key(&account, "a@x"));
}
