//! The negative twins of an approval: a message was approved, one thing is
//! other than it was, and not one octet goes to the provider. One test each.
//!
//! SECURITY.md lists every twin with its test; those that are no matter of the
//! dispatch have theirs where they belong (the page, the ledger, the wire).

use std::sync::atomic::{AtomicI64, Ordering};

use super::decide::payload;
use super::hold::ShownRecord;
use super::record::ReceiptRow;
use super::testing::{Bench, envelope, tuning};
use super::*;
use crate::floor::action::Action;
use crate::floor::envelope::{BodyType, Envelope, ForwardPath};
use crate::floor::identity::{SigningKey, signing_key};
use crate::floor::payload::Payload;
use crate::floor::receipt::mint;
use crate::floor::submission::State;
use crate::upstream::smtp::scripted::{Provider, Script};

const SUBJECT: &str = "Subject: Figures\r\n";

/// The message, with an attachment that says `word`.
fn with_attachment(word: &str) -> Vec<u8> {
    format!(
        "From: demo@example.org\r\nTo: ann@example.com\r\n{SUBJECT}MIME-Version: 1.0\r\nContent-Type: \
         multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nAttached.\r\n--b\r\nContent-Disposition: attachment; \
         filename=figures.txt\r\n\r\n{word}\r\n--b--\r\n"
    )
    .into_bytes()
}

fn message() -> Vec<u8> {
    with_attachment("1000 now")
}

/// An approved message that nobody has tried to send.
struct Twin {
    provider: Provider,
    bench: Bench,
    id: HoldId,
}

impl Twin {
    async fn new() -> Twin {
        Twin::to(envelope(&["ann@example.com", "bob@example.net"])).await
    }

    async fn to(envelope: Envelope) -> Twin {
        let provider = Provider::start(Script::default()).await;
        let bench = Bench::new(&provider, tuning(), |_| {}).await;
        let id = bench.approved(envelope, &message()).await;
        Twin { provider, bench, id }
    }

    /// Changes the hold as it is stored.
    async fn change_hold(&self, change: impl FnOnce(&mut Hold)) {
        let mut hold = self.bench.hold(&self.id);
        change(&mut hold);
        store::write(self.bench.store.as_ref(), move |w| record::save(w, &hold)).await.unwrap();
    }

    fn row(&self, id: &HoldId) -> ReceiptRow {
        store::read(self.bench.store.as_ref(), |r| record::receipt(r, id)).unwrap().unwrap()
    }

    /// Puts another receipt in the place of the hold's.
    async fn put_receipt(&self, row: ReceiptRow) {
        let id = self.id.clone();
        store::write(self.bench.store.as_ref(), move |w| record::put_receipt(w, &id, &row)).await.unwrap();
    }

    /// A receipt that `key` signed for a payload with one thing changed, over
    /// the ledger's true entry.
    async fn put_signed(&self, key: &SigningKey, change: impl FnOnce(&mut Payload)) {
        let mut row = self.row(&self.id);
        let mut payload = row.receipt.payload.clone();
        change(&mut payload);
        row.receipt = mint(&payload, key, row.receipt.ledger_head);
        self.put_receipt(row).await;
    }

    fn own_key(&self) -> SigningKey {
        self.bench.outbox.identity().signing
    }

    /// Writes other octets where the message lies.
    async fn swap(&self, octets: &[u8]) {
        self.bench.swap(&self.id, Some(octets.to_vec())).await;
    }

    /// An attempt, which must fail for good for this reason, before anybody is
    /// called.
    async fn refused(self, reason: &str) {
        let after = self.bench.attempt(&self.id).await;
        assert_eq!(after.state, State::Failed, "{after:?}");
        let detail = after.detail.unwrap_or_default();
        assert!(detail.contains(reason), "{detail}");
        assert!(self.provider.commands().is_empty(), "the provider was called: {:?}", self.provider.commands());
        assert!(self.bench.outbox.claim(&self.bench.hold(&self.id)).await.unwrap().is_none(), "and never again");
    }
}

/// Without a change it goes: the refusals below are of the change.
#[tokio::test]
async fn the_twin_without_a_change_is_sent() {
    let twin = Twin::new().await;
    twin.put_signed(&twin.own_key(), |_| {}).await;
    assert_eq!(twin.bench.attempt(&twin.id).await.state, State::Sent);
    assert_eq!(twin.provider.complete()[0].message(), message());
}

#[tokio::test]
async fn one_changed_octet_of_the_body_sends_nothing() {
    let twin = Twin::new().await;
    let mut other = message();
    let at = memchr::memmem::find(&other, b"Attached.").unwrap();
    other[at] ^= 1;
    twin.swap(&other).await;
    twin.refused("the stored message is not the approved one").await;
}

#[tokio::test]
async fn another_case_of_one_field_name_sends_nothing() {
    let twin = Twin::new().await;
    let text = String::from_utf8(message()).unwrap();
    twin.swap(text.replace("Subject:", "subject:").as_bytes()).await;
    twin.refused("the stored message is not the approved one").await;
}

#[tokio::test]
async fn an_attachment_swapped_for_one_of_equal_length_sends_nothing() {
    let twin = Twin::new().await;
    let other = with_attachment("9000 now");
    assert_eq!(other.len(), message().len());
    twin.swap(&other).await;
    twin.refused("the stored message is not the approved one").await;
}

#[tokio::test]
async fn one_recipient_more_sends_nothing() {
    let twin = Twin::new().await;
    twin.change_hold(|h| h.envelope = envelope(&["ann@example.com", "bob@example.net", "eve@example.net"])).await;
    twin.refused("the envelope differs").await;
}

#[tokio::test]
async fn one_recipient_fewer_sends_nothing() {
    let twin = Twin::new().await;
    twin.change_hold(|h| h.envelope = envelope(&["ann@example.com"])).await;
    twin.refused("the envelope differs").await;
}

/// A Cyrillic letter in the place of a Latin one.
#[tokio::test]
async fn a_homoglyph_in_a_recipient_sends_nothing() {
    for (written, other) in [("ann@example.com", "ann@ex\u{430}mple.com"), ("bob@example.net", "b\u{43e}b@example.net")]
    {
        let twin = Twin::new().await;
        let to = ["ann@example.com", "bob@example.net"].map(|t| if t == written { other } else { t });
        let paths = to.iter().map(|t| ForwardPath::parse(t).unwrap()).collect();
        let other = Envelope::new("demo@example.org", paths, BodyType::SevenBit, true).unwrap();
        // The parameter is another twin's: only the recipient differs.
        let other = Envelope { smtputf8: false, ..other };
        twin.change_hold(|h| h.envelope = other).await;
        twin.refused("the envelope differs").await;
    }
}

/// A composed local part goes as it is; its decomposed spelling is no path,
/// so that a row that was changed to it can't even be read.
#[tokio::test]
async fn a_decomposed_local_part_in_place_of_the_composed_one_sends_nothing() {
    let composed = ForwardPath::parse("jos\u{e9}@example.com").unwrap();
    let to = Envelope::new("demo@example.org", vec![composed], BodyType::SevenBit, true).unwrap();
    let twin = Twin::to(to).await;
    let approved = twin.bench.hold(&twin.id);
    let json = serde_json::to_string(&approved).unwrap();
    assert!(json.contains("jos\u{e9}"), "{json}");
    let decomposed = json.replace("jos\u{e9}", "jose\u{301}");
    assert!(serde_json::from_str::<Hold>(&decomposed).is_err());
    let key = format!("h/{}", twin.id).into_bytes();
    store::write(twin.bench.store.as_ref(), move |w| w.put(Table::Hold, &key, decomposed.as_bytes())).await.unwrap();
    assert!(twin.bench.outbox.claim(&approved).await.is_err());
    assert!(twin.provider.commands().is_empty());
}

#[tokio::test]
async fn another_esmtp_parameter_sends_nothing() {
    let changes: [fn(&mut Hold); 2] =
        [|h| h.envelope.body = BodyType::EightBitMime, |h| h.envelope.smtputf8 = !h.envelope.smtputf8];
    for change in changes {
        let twin = Twin::new().await;
        twin.change_hold(change).await;
        twin.refused("the envelope differs").await;
    }
}

#[tokio::test]
async fn another_sender_sends_nothing() {
    let changes: [fn(&mut Hold); 2] =
        [|h| h.envelope.reverse_path = "eve@example.org".into(), |h| h.envelope.reverse_path.clear()];
    for change in changes {
        let twin = Twin::new().await;
        twin.change_hold(change).await;
        twin.refused("the envelope differs").await;
    }
}

/// As where the configuration was changed after the approval: the receipt is
/// for the login, and the host, that it names.
#[tokio::test]
async fn another_upstream_login_or_host_sends_nothing() {
    let changes: [fn(&mut Payload); 2] =
        [|p| p.upstream_login = "eve@example.org".into(), |p| p.upstream_host = "smtp.example.net".into()];
    for change in changes {
        let twin = Twin::new().await;
        twin.put_signed(&twin.own_key(), change).await;
        twin.refused("the provider differs").await;
    }
}

#[tokio::test]
async fn another_action_sends_nothing() {
    let twin = Twin::new().await;
    twin.change_hold(|h| h.action = Action::ForwardExternal).await;
    twin.refused("the receipt is for send_email, not for forward_external").await;
    let twin = Twin::new().await;
    twin.put_signed(&twin.own_key(), |p| p.action = Action::ForwardExternal).await;
    twin.refused("the receipt is for forward_external, not for send_email").await;
}

#[tokio::test]
async fn a_receipt_of_an_older_schema_sends_nothing() {
    let twin = Twin::new().await;
    twin.put_signed(&twin.own_key(), |p| p.schema = 0).await;
    twin.refused("schema 0 is not known here").await;
}

#[tokio::test]
async fn a_receipt_of_another_account_sends_nothing() {
    let twin = Twin::new().await;
    twin.put_signed(&twin.own_key(), |p| p.account = "other@example.com".into()).await;
    twin.refused("the account differs").await;
}

/// Both were approved; each receipt is for its own.
#[tokio::test]
async fn a_receipt_of_another_hold_sends_nothing() {
    let twin = Twin::new().await;
    let other = twin.bench.approved(envelope(&["ann@example.com", "bob@example.net"]), &message()).await;
    twin.put_receipt(twin.row(&other)).await;
    twin.refused("the hold differs").await;
}

#[tokio::test]
async fn a_spent_receipt_sends_nothing() {
    let twin = Twin::new().await;
    let row = ReceiptRow { spent: true, ..twin.row(&twin.id) };
    twin.put_receipt(row).await;
    twin.refused("spent before").await;
}

static CLOCK: AtomicI64 = AtomicI64::new(5_000_000);

#[tokio::test]
async fn an_expired_receipt_sends_nothing() {
    let provider = Provider::start(Script::default()).await;
    let clock = || CLOCK.load(Ordering::SeqCst);
    let bench = Bench::new(&provider, Tuning { clock, ..tuning() }, |_| {}).await;
    let id = bench.approved(envelope(&["ann@example.com"]), &message()).await;
    let twin = Twin { provider, bench, id };
    CLOCK.store(twin.row(&twin.id).receipt.payload.expiry, Ordering::SeqCst);
    twin.refused("expired at").await;
}

#[tokio::test]
async fn an_altered_ledger_entry_sends_nothing() {
    let twin = Twin::new().await;
    let number = twin.row(&twin.id).receipt.ledger_head.number;
    store::write(twin.bench.store.as_ref(), move |w| -> Result<(), HoldError> {
        let mut entry = record::entry(w, number)?.unwrap();
        entry.time += 1;
        Ok(store::put_json(w, Table::Ledger, &number.to_be_bytes(), &entry)?)
    })
    .await
    .unwrap();
    twin.refused("the ledger holds no such approval").await;
}

/// The approval was the last entry; what is written next takes its number.
#[tokio::test]
async fn a_ledger_whose_last_entry_was_cut_off_sends_nothing() {
    let twin = Twin::new().await;
    let number = twin.row(&twin.id).receipt.ledger_head.number;
    assert_eq!(twin.bench.outbox.ledger_head().unwrap().unwrap().number, number);
    store::write(twin.bench.store.as_ref(), move |w| w.delete(Table::Ledger, &number.to_be_bytes())).await.unwrap();
    twin.refused("the ledger holds no such approval").await;
}

#[tokio::test]
async fn a_signature_of_another_key_sends_nothing() {
    let twin = Twin::new().await;
    twin.put_signed(&signing_key(&[9; 32]), |_| {}).await;
    twin.refused("the signature is not of a known key").await;
}

/// Signed by the gateway, over another nonce than the ledger's entry is of.
#[tokio::test]
async fn a_receipt_that_the_ledger_does_not_know_sends_nothing() {
    let twin = Twin::new().await;
    twin.put_signed(&twin.own_key(), |p| p.nonce = "00".into()).await;
    twin.refused("the ledger holds no such approval").await;
}

/// The payload of another page view is another one: what was shown to be
/// approved is what is signed.
#[tokio::test]
async fn a_hash_of_another_page_view_approves_nothing() {
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::new(&provider, tuning(), |_| {}).await;
    let id = bench.submit(crate::account::Role::Agent, envelope(&["ann@example.com"]), &message()).await.unwrap();
    let shown = bench.outbox.show(&bench.account, &id, "owner").await.unwrap();
    let of = ShownRecord {
        nonce: "00".into(),
        approver: "owner".into(),
        method: shown.payload.method.clone(),
        time: shown.payload.time,
        expiry: shown.payload.expiry,
    };
    let upstream = (shown.payload.upstream_host.clone(), shown.payload.upstream_login.clone());
    let other = payload(&bench.outbox.gateway_id(), &bench.hold(&id), &of, upstream).hash().to_string();
    let refused = bench.outbox.approve(&bench.account, &id, &shown.payload.nonce, &other, "owner").await;
    assert!(matches!(refused, Err(ApproveError::HashDiffers)), "{refused:?}");
    assert_eq!(bench.hold(&id).state, State::Held);
}

/// An approved deletion of one message, and how often it was carried out.
async fn deletion() -> (Twin, std::sync::Arc<AtomicI64>) {
    let provider = Provider::start(Script::default()).await;
    let bench = Bench::new(&provider, tuning(), |_| {}).await;
    let done = std::sync::Arc::new(AtomicI64::new(0));
    let count = done.clone();
    bench.outbox.set_executor(std::sync::Arc::new(move |_, permit| {
        count.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(permit.into_used()) })
    }));
    let id = bench.outbox.hold_deletion(&bench.agent(), &bench.deletion("Archive")).await.unwrap();
    bench.approve(&id).await;
    (Twin { provider, bench, id }, done)
}

/// The list is read back at every attempt: none brings the approved one back.
#[tokio::test]
async fn a_list_of_messages_that_was_changed_or_is_gone_removes_nothing_and_fails_for_good() {
    let (twin, done) = deletion().await;
    let other = twin.bench.deletion("Private").canonical();
    twin.swap(&other).await;
    twin.refused("the list of messages was changed after it was held").await;
    assert_eq!(done.load(Ordering::SeqCst), 0);
    let (twin, done) = deletion().await;
    twin.bench.swap(&twin.id, None).await;
    twin.refused("the list of messages is gone").await;
    assert_eq!(done.load(Ordering::SeqCst), 0);
    let (twin, done) = deletion().await;
    assert_eq!(twin.bench.attempt(&twin.id).await.state, State::Sent);
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

/// A receipt over one list is none over another that is stored in its place,
/// hash and all.
#[tokio::test]
async fn a_receipt_over_another_list_removes_nothing() {
    let (twin, done) = deletion().await;
    let other = twin.bench.outbox.hold_deletion(&twin.bench.agent(), &twin.bench.deletion("Private")).await.unwrap();
    let other = twin.bench.hold(&other);
    twin.change_hold(|h| (h.blob, h.length) = (other.blob, other.length)).await;
    twin.refused("the message differs").await;
    assert_eq!(done.load(Ordering::SeqCst), 0);
}
