//! Receipts with the verdict that each must get, in `tests/vectors/`.
//!
//! A file holds the receipt, the public keys that are known, what is
//! expected, and the result: `ok` or the code of the error. All come from one
//! fixed test key, so the same files can be made again; with
//! `TOLLGATE_WRITE_VECTORS=1` the test writes them instead of comparing.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use tollgate::floor::action::Action;
use tollgate::floor::digest::Hash;
use tollgate::floor::envelope::{BodyType, Envelope, ForwardPath};
use tollgate::floor::identity::{self, SigningKey};
use tollgate::floor::ledger::{Entry, Event};
use tollgate::floor::passkey::{self, Algorithm, ApproverKey, Assertion};
use tollgate::floor::payload::{Payload, SCHEMA};
use tollgate::floor::receipt::{Expect, Receipt, mint_with};

/// The message that the sample receipts are for.
const MESSAGE: &str = "From: jo@example.org\r\nTo: ann@example.com\r\nSubject: Tuesday\r\n\
                       Message-ID: <1@example.org>\r\n\r\nTen o'clock suits me.\r\n";
const TIME: i64 = 1_700_000_000;
const EXPIRY: i64 = TIME + 24 * 60 * 60;

/// One file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    about: String,
    result: String,
    keys: Vec<String>,
    /// Passkeys of which one must have signed; none: that isn't asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    approvers: Vec<ApproverKey>,
    expect: Expected,
    receipt: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    action: Action,
    message: String,
    envelope: Envelope,
    account: String,
    approver: String,
    at: String,
    spent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hold: Option<String>,
    /// Host and login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upstream: Option<(String, String)>,
}

fn test_key(name: &str) -> SigningKey {
    identity::signing_key(&Sha256::digest(format!("tollgate test vectors: {name}")).into())
}

fn recipients(texts: &[&str]) -> Vec<ForwardPath> {
    texts.iter().map(|text| ForwardPath::parse(text).unwrap()).collect()
}

fn payload() -> Payload {
    let to = recipients(&["ann@example.com", "bob@example.net"]);
    Payload {
        schema: SCHEMA,
        gateway_id: "test-gateway".into(),
        account: "jo@example.org".into(),
        action: Action::SendEmail,
        hold_id: "h1".into(),
        submitter_key: "k1".into(),
        upstream_host: "smtp.example.org".into(),
        upstream_login: "jo@example.org".into(),
        envelope: Envelope::new("jo@example.org", to, BodyType::SevenBit, false).unwrap(),
        sha256: Sha256::digest(MESSAGE).into(),
        length: MESSAGE.len() as u64,
        message_id: Some("<1@example.org>".into()),
        approver: "jo@example.org".into(),
        method: "pin".into(),
        time: TIME,
        expiry: EXPIRY,
        nonce: "bm9uY2U".into(),
    }
}

/// The receipt of a payload that was held and approved in a ledger of its own.
fn signed(payload: &Payload, key: &SigningKey) -> Value {
    signed_with(payload, key, None)
}

fn signed_with(payload: &Payload, key: &SigningKey, assertion: Option<Assertion>) -> Value {
    let held = Event::Held {
        hold: payload.hold_id.clone(),
        account: payload.account.clone(),
        key: payload.submitter_key.clone(),
        sha256: Hash(payload.sha256),
        length: payload.length,
    };
    let approved =
        Event::Approved { hold: payload.hold_id.clone(), payload: payload.hash(), approver: payload.approver.clone() };
    let held = Entry::next(None, payload.time, held);
    let approved = Entry::next(Some(&held), payload.time, approved);
    serde_json::to_value(mint_with(payload, key, approved.head(), assertion)).unwrap()
}

fn good() -> Value {
    signed(&payload(), &test_key("gateway"))
}

/// The good receipt with one place of its JSON changed.
fn edited(pointer: &str, value: Value) -> Value {
    let mut receipt = good();
    *receipt.pointer_mut(pointer).unwrap() = value;
    receipt
}

/// The good receipt with an edited payload whose hash was made to fit.
fn rehashed(change: impl FnOnce(&mut Payload)) -> Value {
    let mut payload = payload();
    change(&mut payload);
    let mut receipt = edited("/payload_hash", json!(payload.hash()));
    receipt["payload"] = serde_json::to_value(payload).unwrap();
    receipt
}

/// A receipt that the gateway signed for something else.
fn signed_for(change: impl FnOnce(&mut Payload)) -> Value {
    let mut payload = payload();
    change(&mut payload);
    signed(&payload, &test_key("gateway"))
}

fn expected() -> Expected {
    let payload = payload();
    Expected {
        action: Action::SendEmail,
        message: MESSAGE.into(),
        envelope: payload.envelope,
        account: payload.account,
        approver: payload.approver,
        at: (TIME + 60).to_string(),
        spent: false,
        hold: None,
        upstream: None,
    }
}

/// What is expected, with one thing changed.
fn expecting(change: impl FnOnce(&mut Expected)) -> Expected {
    let mut expect = expected();
    change(&mut expect);
    expect
}

fn flipped(sha256: [u8; 32]) -> [u8; 32] {
    let mut changed = sha256;
    changed[0] ^= 1;
    changed
}

type Row = (&'static str, &'static str, &'static str, Value, Expected);

fn rows() -> Vec<Row> {
    let with_eve = || recipients(&["ann@example.com", "bob@example.net", "eve@example.net"]);
    let body = json!(Hash(flipped(payload().sha256)));
    let mut newer = edited("/payload/schema", json!("2"));
    newer["payload"]["new_in_schema_2"] = json!("a field that this program doesn't know");
    vec![
        ("good", "ok", "as the gateway signed it", good(), expected()),
        ("body-octet", "payload", "an octet of the body's hash changed", edited("/payload/sha256", body), expected()),
        (
            "body-octet-rehashed",
            "payload",
            "an octet of the body's hash changed, and the payload's hash made to fit",
            rehashed(|p| p.sha256 = flipped(p.sha256)),
            expected(),
        ),
        (
            "message-octet",
            "payload",
            "an octet of the message changed",
            good(),
            expecting(|e| e.message = MESSAGE.replace("Ten", "Tin")),
        ),
        (
            "recipient-added",
            "payload",
            "a recipient added to the payload",
            edited("/payload/envelope/forward_paths", json!(with_eve())),
            expected(),
        ),
        (
            "recipient-added-to-both",
            "signature",
            "a recipient added to payload and envelope, and the payload's hash made to fit",
            rehashed(|p| p.envelope.forward_paths = with_eve()),
            expecting(|e| e.envelope.forward_paths = with_eve()),
        ),
        (
            "recipient-added-to-envelope",
            "payload",
            "a recipient added to the envelope alone",
            good(),
            expecting(|e| e.envelope.forward_paths = with_eve()),
        ),
        (
            "other-action",
            "action",
            "signed for forward_external",
            signed_for(|p| p.action = Action::ForwardExternal),
            expected(),
        ),
        (
            "other-action-rehashed",
            "signature",
            "signed for send_email, its action then changed to the expected one and the hash made to fit",
            rehashed(|p| p.action = Action::ForwardExternal),
            expecting(|e| e.action = Action::ForwardExternal),
        ),
        (
            "other-account",
            "payload",
            "signed for another account",
            signed_for(|p| p.account = "ann@example.org".into()),
            expected(),
        ),
        (
            "other-approver",
            "approver",
            "approved by another",
            signed_for(|p| p.approver = "ann@example.org".into()),
            expected(),
        ),
        ("expired", "expired", "at the second of its expiry", good(), expecting(|e| e.at = EXPIRY.to_string())),
        ("spent", "spent", "used before", good(), expecting(|e| e.spent = true)),
        ("other-key", "signature", "signed by a stranger's key", signed(&payload(), &test_key("stranger")), expected()),
        (
            "ledger-head",
            "signature",
            "moved to another place in the ledger",
            edited("/ledger_head/number", json!("3")),
            expected(),
        ),
        ("schema", "schema", "written under a newer schema", newer, expected()),
    ]
    .into_iter()
    .chain(message_rows())
    .chain(envelope_rows())
    .chain(other_rows())
    .collect()
}

/// A message with an attachment that says `word`.
fn with_attachment(word: &str) -> String {
    format!(
        "From: jo@example.org\r\nTo: ann@example.com\r\nSubject: Figures\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nAttached.\r\n--b\r\n\
         Content-Disposition: attachment; filename=figures.txt\r\n\r\n{word}\r\n--b--\r\n"
    )
}

fn message_rows() -> Vec<Row> {
    let changed = |change: fn(&str) -> String| expecting(|e| e.message = change(MESSAGE));
    let for_message =
        |text: String| signed_for(|p| (p.sha256, p.length) = (Sha256::digest(&text).into(), text.len() as u64));
    vec![
        (
            "field-case",
            "payload",
            "the case of one field's name changed",
            good(),
            changed(|m| m.replace("Subject:", "subject:")),
        ),
        (
            "field-space",
            "payload",
            "a space after a field's colon gone",
            good(),
            changed(|m| m.replace(": Tue", ":Tue")),
        ),
        ("no-final-line-end", "payload", "without its last line end", good(), changed(|m| m.trim_end().to_owned())),
        ("line-ends", "payload", "with other line ends", good(), changed(|m| m.replace("\r\n", "\n"))),
        (
            "dot-doubled",
            "payload",
            "a line that begins with a dot, its dot doubled",
            for_message(MESSAGE.replace("Ten", ".Ten")),
            changed(|m| m.replace("Ten", "..Ten")),
        ),
        (
            "attachment-good",
            "ok",
            "with an attachment",
            for_message(with_attachment("1000 now")),
            expecting(|e| e.message = with_attachment("1000 now")),
        ),
        (
            "attachment-swapped",
            "payload",
            "an attachment swapped for one of equal length",
            for_message(with_attachment("1000 now")),
            expecting(|e| e.message = with_attachment("9000 now")),
        ),
    ]
}

fn envelope_rows() -> Vec<Row> {
    let to = |texts: &[&str]| {
        let to = recipients(texts);
        expecting(|e| e.envelope.forward_paths = to)
    };
    // Latin and Cyrillic letters that look the same, in the domain.
    let homoglyph = "bob@\u{435}xample.net";
    let composed = |p: &mut Payload| {
        p.envelope =
            Envelope::new("jo@example.org", recipients(&["jos\u{e9}@example.com"]), BodyType::SevenBit, true).unwrap();
    };
    let mut decomposed = signed_for(composed);
    decomposed["payload"]["envelope"]["forward_paths"][0] = json!("jose\u{301}@example.com");
    let as_composed = || {
        let mut payload = payload();
        composed(&mut payload);
        expecting(|e| e.envelope = payload.envelope)
    };
    vec![
        ("recipient-removed", "payload", "a recipient fewer", good(), to(&["ann@example.com"])),
        (
            "recipient-homoglyph",
            "payload",
            "a recipient whose domain looks the same",
            good(),
            to(&["ann@example.com", homoglyph]),
        ),
        (
            "recipient-case",
            "payload",
            "another case of a local part",
            good(),
            to(&["Ann@example.com", "bob@example.net"]),
        ),
        ("local-part-composed", "ok", "a composed local part", signed_for(composed), as_composed()),
        ("local-part-decomposed", "payload", "the same local part decomposed", decomposed, as_composed()),
        ("parameter-body", "payload", "another BODY", good(), expecting(|e| e.envelope.body = BodyType::EightBitMime)),
        ("parameter-smtputf8", "payload", "with SMTPUTF8", good(), expecting(|e| e.envelope.smtputf8 = true)),
        (
            "sender",
            "payload",
            "another sender",
            good(),
            expecting(|e| e.envelope.reverse_path = "ann@example.org".into()),
        ),
        ("sender-null", "payload", "without a sender", good(), expecting(|e| e.envelope.reverse_path = String::new())),
    ]
}

fn other_rows() -> Vec<Row> {
    let upstream = |host: &str, login: &str| expecting(|e| e.upstream = Some((host.to_owned(), login.to_owned())));
    let signature = good()["signature"].as_str().unwrap().to_owned();
    let other = if signature.starts_with('A') { "B" } else { "A" };
    let altered = edited("/signature", json!(format!("{other}{}", &signature[1..])));
    let hash = json!(Hash(flipped([0; 32])));
    vec![
        ("upstream", "ok", "for this provider", good(), upstream("smtp.example.org", "jo@example.org")),
        ("upstream-login", "payload", "another login", good(), upstream("smtp.example.org", "ann@example.org")),
        ("upstream-host", "payload", "another host", good(), upstream("smtp.example.com", "jo@example.org")),
        ("other-hold", "payload", "of another hold", good(), expecting(|e| e.hold = Some("h2".into()))),
        ("schema-older", "schema", "written under an older schema", edited("/payload/schema", json!("0")), expected()),
        ("signature-octet", "signature", "an octet of the signature changed", altered, expected()),
        (
            "ledger-hash",
            "signature",
            "moved to another entry of the ledger",
            edited("/ledger_head/hash", hash),
            expected(),
        ),
        (
            "later-expiry",
            "payload",
            "made to live longer",
            edited("/payload/expiry", json!((EXPIRY + 1).to_string())),
            expected(),
        ),
        (
            "later-expiry-rehashed",
            "signature",
            "made to live longer, and the payload's hash made to fit",
            rehashed(|p| p.expiry += 1),
            expected(),
        ),
    ]
}

/// What an authenticator says; [`assertion`] signs it.
struct Said {
    challenge: [u8; 32],
    origin: &'static str,
    rp_id: &'static str,
    flags: u8,
    more: &'static str,
}

const ORIGIN: &str = "http://localhost:3480";
/// User presence and user verification.
const UP_UV: u8 = 5;

fn said(challenge: [u8; 32]) -> Said {
    Said { challenge, origin: ORIGIN, rp_id: "localhost", flags: UP_UV, more: ",\"crossOrigin\":false" }
}

fn passkey_of(name: &str) -> p256::ecdsa::SigningKey {
    p256::ecdsa::SigningKey::from_slice(&Sha256::digest(format!("tollgate test passkey: {name}"))).unwrap()
}

fn assertion(said: &Said, key: &str) -> Assertion {
    use p256::ecdsa::signature::Signer;
    let (challenge, origin, more) = (passkey::encode(&said.challenge), said.origin, said.more);
    let client = format!("{{\"type\":\"webauthn.get\",\"challenge\":\"{challenge}\",\"origin\":\"{origin}\"{more}}}");
    let data = [&Sha256::digest(said.rp_id)[..], &[said.flags], &7u32.to_be_bytes()].concat();
    let signed = [&data[..], &Sha256::digest(&client)].concat();
    let signature: p256::ecdsa::Signature = passkey_of(key).sign(&signed);
    Assertion {
        credential: passkey::encode(b"test credential"),
        authenticator_data: passkey::encode(&data),
        client_data: passkey::encode(client.as_bytes()),
        signature: passkey::encode(signature.to_der().as_bytes()),
        batch: Vec::new(),
    }
}

fn approver() -> ApproverKey {
    use base64::Engine;
    let point = passkey_of("jo").verifying_key().to_sec1_point(false);
    ApproverKey {
        account: "jo@example.org".into(),
        credential: passkey::encode(b"test credential"),
        algorithm: Algorithm::Es256,
        public_key: base64::engine::general_purpose::STANDARD.encode(point.as_bytes()),
        rp_id: "localhost".into(),
        origin: ORIGIN.into(),
    }
}

/// Receipts by passkey, each signed by the gateway, so that only the
/// approver's own key can tell them apart.
fn passkey_rows() -> Vec<Row> {
    let payload = Payload { method: "passkey".into(), ..payload() };
    let right = passkey::challenge(&payload);
    let receipt = |assertion| signed_with(&payload, &test_key("gateway"), assertion);
    let lied = |change: fn(&mut Said)| {
        let mut said = said(right);
        change(&mut said);
        receipt(Some(assertion(&said, "jo")))
    };
    let older = passkey::challenge(&Payload { nonce: "b2xkZXI".into(), ..payload.clone() });
    let other = Payload { hold_id: "h2".into(), nonce: "b3RoZXI".into(), ..payload.clone() };
    let mut batch = vec![payload.hash(), other.hash()];
    batch.sort();
    let in_batch = Assertion { batch: batch.clone(), ..assertion(&said(passkey::batch_challenge(&batch)), "jo") };
    let mut stripped = receipt(Some(assertion(&said(right), "jo")));
    stripped.as_object_mut().unwrap().remove("assertion");
    let good = receipt(Some(assertion(&said(right), "jo")));
    let rows: Vec<(&str, &str, &str, Value)> = vec![
        ("passkey-good", "ok", "a passkey signed the payload", good),
        ("passkey-batch", "ok", "a passkey signed a batch with the payload", receipt(Some(in_batch.clone()))),
        (
            "passkey-other-batch",
            "approver",
            "a batch without the payload",
            receipt(Some(Assertion { batch: vec![other.hash()], ..in_batch })),
        ),
        ("passkey-missing", "approver", "the gateway signed without a passkey", receipt(None)),
        ("passkey-stripped", "signature", "the assertion was taken out", stripped),
        (
            "passkey-other-page",
            "approver",
            "signed for an older view of the page",
            receipt(Some(assertion(&said(older), "jo"))),
        ),
        (
            "passkey-other-hold",
            "approver",
            "signed for another hold",
            receipt(Some(assertion(&said(passkey::challenge(&other)), "jo"))),
        ),
        (
            "passkey-other-key",
            "approver",
            "signed by a passkey that only has the same id",
            receipt(Some(assertion(&said(right), "stranger"))),
        ),
        ("passkey-without-uv", "approver", "the user was not verified", lied(|s| s.flags = 1)),
        ("passkey-without-up", "approver", "nobody was there", lied(|s| s.flags = 4)),
        ("passkey-other-port", "approver", "made on another port", lied(|s| s.origin = "http://localhost:3481")),
        ("passkey-cross-origin", "approver", "made in another site's page", lied(|s| s.more = ",\"crossOrigin\":true")),
        ("passkey-other-rp", "approver", "made for another name", lied(|s| s.rp_id = "example.org")),
    ];
    rows.into_iter().map(|(name, result, about, receipt)| (name, result, about, receipt, expected())).collect()
}

fn vectors() -> Vec<(&'static str, Vector)> {
    let keys = vec![identity::to_text(&test_key("gateway").verifying_key())];
    let by_pin = rows().into_iter().map(|row| (row, Vec::new()));
    let by_passkey = passkey_rows().into_iter().map(|row| (row, vec![approver()]));
    by_pin
        .chain(by_passkey)
        .map(|((name, result, about, receipt, expect), approvers)| {
            let (about, result, keys) = (about.into(), result.into(), keys.clone());
            (name, Vector { about, result, keys, approvers, expect, receipt })
        })
        .collect()
}

fn verdict(vector: &Vector) -> String {
    let keys: Vec<_> = vector.keys.iter().map(|text| identity::from_text(text).unwrap()).collect();
    let e = &vector.expect;
    let expect = Expect {
        message: Some((Sha256::digest(&e.message).into(), e.message.len() as u64)),
        envelope: Some(&e.envelope),
        account: Some(&e.account),
        approver: Some(&e.approver),
        at: Some(e.at.parse().unwrap()),
        spent: e.spent,
        hold: e.hold.as_deref(),
        upstream: e.upstream.as_ref().map(|(host, login)| (host.as_str(), login.as_str())),
        ..Expect::new(e.action)
    };
    let json = serde_json::to_vec(&vector.receipt).unwrap();
    let checked = Receipt::parse(&json).and_then(|receipt| {
        receipt.verify(&keys, &expect)?;
        if vector.approvers.is_empty() { Ok(()) } else { receipt.check_approver(&vector.approvers).map(drop) }
    });
    match checked {
        Ok(()) => "ok".into(),
        Err(error) => error.code().into(),
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

#[test]
fn every_receipt_vector_gets_its_result() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("receipt-") {
            continue;
        }
        let vector: Vector = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(verdict(&vector), vector.result, "{name}: {}", vector.about);
        seen += 1;
    }
    assert_eq!(seen, vectors().len());
}

#[test]
fn the_vectors_can_be_made_again() {
    for (name, vector) in vectors() {
        let path = folder().join(format!("receipt-{name}.json"));
        if std::env::var_os("TOLLGATE_WRITE_VECTORS").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(&vector).unwrap() + "\n").unwrap();
        }
        let stored: Vector = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(stored, vector, "{}", path.display());
    }
}
