//! Steps about the receipt and the ledger.

use sha2::{Digest, Sha256};

use super::Seen;
use super::outbound::{AGENT_MAIL, AGENT_TO};
use super::stage::{Stage, must, why};
use crate::account::demo;
use crate::floor::action::Action;
use crate::floor::envelope::{Envelope, ForwardPath};
use crate::floor::identity::{VerifyingKey, from_text};
use crate::floor::ledger;
use crate::floor::receipt::{Expect, Mismatch, Receipt, ReceiptError};

fn digest(octets: &[u8]) -> ([u8; 32], u64) {
    (Sha256::digest(octets).into(), octets.len() as u64)
}

/// The public keys, from their file alone.
fn keys(stage: &Stage) -> Result<Vec<VerifyingKey>, String> {
    let text = std::fs::read_to_string(stage.public_keys()).map_err(why)?;
    let keys: Vec<VerifyingKey> = text.lines().filter_map(from_text).collect();
    must(!keys.is_empty(), || "the file of public keys has none".to_owned())?;
    Ok(keys)
}

/// The submission's envelope with these recipients more.
fn envelope(receipt: &Receipt, more: &[&str]) -> Result<Envelope, String> {
    let mut envelope = receipt.payload.envelope.clone();
    envelope.reverse_path = demo::ADDRESS.to_owned();
    let parsed: Result<Vec<ForwardPath>, _> = AGENT_TO.iter().chain(more).map(|p| ForwardPath::parse(p)).collect();
    envelope.forward_paths = parsed.map_err(why)?;
    envelope.forward_paths.sort();
    Ok(envelope)
}

/// The receipt, fetched by the approver, verifies with the public key, the
/// submitted octets and the envelope, and with nothing else.
pub(super) async fn verifies(stage: &mut Stage) -> Seen {
    let cookie = stage.cookie.clone().ok_or("nobody is signed in")?;
    let path = format!("/held/{}/receipt", stage.hold_id()?);
    let page = stage.web.get(&path, &[("cookie", &cookie)]).await.map_err(why)?;
    must(page.status == 200, || format!("the receipt's page answered {}", page.status))?;
    let receipt = Receipt::parse(&page.body).map_err(why)?;
    let envelope = envelope(&receipt, &[])?;
    let expect = Expect {
        message: Some(digest(AGENT_MAIL)),
        envelope: Some(&envelope),
        account: Some(demo::ADDRESS),
        ..Expect::new(Action::SendEmail)
    };
    let verified = receipt.verify(&keys(stage)?, &expect).map_err(why)?;
    let hash = verified.payload_hash().to_string();
    let shown = stage.form.as_ref().map(|form| form[1].clone()).ok_or("nothing was approved")?;
    must(hash == shown, || format!("the page showed {shown}, the receipt is for {hash}"))?;
    let seen = format!("signed by {}, for the hash that the page showed", verified.key_id());
    stage.receipt = Some(receipt);
    Ok(seen)
}

/// It fails on one changed octet, one more recipient and another action, each
/// with its own error; a changed receipt fails too.
pub(super) fn fits_only_that(stage: &Stage) -> Seen {
    let receipt = stage.receipt.as_ref().ok_or("there is no receipt")?;
    let keys = keys(stage)?;
    let verify = |receipt: &Receipt, expect: &Expect<'_>| receipt.verify(&keys, expect).err();
    let send = || Expect::new(Action::SendEmail);

    let mut changed = AGENT_MAIL.to_vec();
    let last = changed.len() - 3;
    changed[last] ^= 1;
    let error = verify(receipt, &Expect { message: Some(digest(&changed)), ..send() });
    must(error == Some(ReceiptError::Payload(Mismatch::Message)), || format!("a changed octet: {error:?}"))?;

    let more = envelope(receipt, &["one.more@example.net"])?;
    let error = verify(receipt, &Expect { envelope: Some(&more), ..send() });
    must(error == Some(ReceiptError::Payload(Mismatch::Envelope)), || format!("one more recipient: {error:?}"))?;

    let error = verify(receipt, &Expect::new(Action::ForwardExternal));
    must(matches!(error, Some(ReceiptError::Action { .. })), || format!("another action: {error:?}"))?;

    let mut forged = receipt.clone();
    forged.payload.envelope = more;
    let error = verify(&forged, &send());
    must(error == Some(ReceiptError::Payload(Mismatch::Hash)), || format!("a recipient written in: {error:?}"))?;
    forged.payload_hash = forged.payload.hash();
    let error = verify(&forged, &send());
    must(error == Some(ReceiptError::Signature), || format!("a recipient and its hash written in: {error:?}"))?;
    Ok("a changed octet, one more recipient, another action, two forged receipts: each refused for its reason"
        .to_owned())
}

/// The chain holds up to its head and contains the approval.
pub(super) fn ledger_is_whole(stage: &Stage) -> Seen {
    let outbox = &stage.core().outbox;
    let entries = outbox.whole_ledger().map_err(why)?;
    let head = outbox.ledger_head().map_err(why)?;
    ledger::verify(&entries, head).map_err(why)?;
    let receipt = stage.receipt.as_ref().ok_or("there is no receipt")?;
    let entry = entries.iter().find(|e| e.number == receipt.ledger_head.number);
    receipt.check_ledger(entry).map_err(why)?;
    Ok(format!("{} entries, the approval among them", entries.len()))
}
