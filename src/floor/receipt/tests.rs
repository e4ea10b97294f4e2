use super::*;
use crate::floor::digest::Hash;
use crate::floor::envelope::{BodyType, ForwardPath, ForwardPathError};
use crate::floor::identity::signing_key;
use crate::floor::ledger;
use crate::floor::payload::tests::{sample, twins};

/// A ledger of a hold and its approval, and the receipt over its head.
fn approved(payload: &Payload) -> (Vec<Entry>, Receipt) {
    let held = Event::Held {
        hold: payload.hold_id.clone(),
        account: payload.account.clone(),
        key: payload.submitter_key.clone(),
        sha256: Hash(payload.sha256),
        length: payload.length,
    };
    let approval =
        Event::Approved { hold: payload.hold_id.clone(), payload: payload.hash(), approver: payload.approver.clone() };
    let held = Entry::next(None, payload.time, held);
    let approval = Entry::next(Some(&held), payload.time, approval);
    let receipt = mint(payload, &signing_key(&[7; 32]), approval.head());
    (vec![held, approval], receipt)
}

fn keys() -> Vec<VerifyingKey> {
    vec![signing_key(&[7; 32]).verifying_key()]
}

/// Everything that the dispatcher knows about the sample.
fn expect_all(payload: &Payload) -> Expect<'_> {
    Expect {
        action: payload.action,
        message: Some((payload.sha256, payload.length)),
        envelope: Some(&payload.envelope),
        account: Some(&payload.account),
        hold: Some(&payload.hold_id),
        upstream: Some((&payload.upstream_host, &payload.upstream_login)),
        approver: Some(&payload.approver),
        spent: false,
        at: Some(payload.time),
    }
}

fn verify(receipt: &Receipt, expect: &Expect<'_>) -> Result<(), ReceiptError> {
    receipt.verify(&keys(), expect).map(drop)
}

fn differs(what: Mismatch) -> Result<(), ReceiptError> {
    Err(ReceiptError::Payload(what))
}

#[test]
fn a_minted_receipt_verifies_and_survives_its_json() {
    let payload = sample();
    let (entries, receipt) = approved(&payload);
    let verified = receipt.verify(&keys(), &expect_all(&payload)).unwrap();
    assert_eq!((verified.payload(), verified.payload_hash()), (&payload, payload.hash()));
    assert_eq!((verified.key_id(), verified.ledger_head()), (key_id(&keys()[0]).as_str(), entries[1].head()));
    let json = serde_json::to_vec_pretty(&receipt).unwrap();
    assert_eq!(Receipt::parse(&json), Ok(receipt.clone()));
    assert_eq!(receipt.check_ledger(entries.get(1)), Ok(()));
}

#[test]
fn a_receipt_is_an_object_of_five_members() {
    let json = serde_json::to_value(approved(&sample()).1).unwrap();
    let members: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(members, ["key_id", "ledger_head", "payload", "payload_hash", "signature"]);
    assert!(json["payload"].is_object());
    assert_eq!(json["ledger_head"]["number"], "2");
    assert_eq!(json["payload_hash"], sample().hash().to_string());
}

// ---- twins: a payload with one thing changed is another payload ----------------

#[test]
fn a_receipt_whose_payload_was_edited_fails_at_the_hash() {
    for (what, twin) in twins() {
        if what == "schema" || what == "action" {
            continue;
        }
        let (_, mut receipt) = approved(&sample());
        receipt.payload = twin;
        let expect = Expect::new(Action::SendEmail);
        assert_eq!(verify(&receipt, &expect), differs(Mismatch::Hash), "{what}");
    }
}

#[test]
fn a_receipt_whose_payload_was_edited_and_hashed_again_fails_at_the_signature() {
    for (what, twin) in twins() {
        let (_, mut receipt) = approved(&sample());
        receipt.payload_hash = twin.hash();
        receipt.payload = twin;
        let expect = Expect::new(receipt.payload.action);
        let expected = match what {
            "schema" => Err(ReceiptError::Schema { found: SCHEMA + 1 }),
            // Refused earlier, for these are no envelopes that could be dispatched.
            "one recipient more" | "look-alike recipient" if receipt.payload.envelope.check().is_err() => {
                differs(Mismatch::Envelope)
            }
            _ => Err(ReceiptError::Signature),
        };
        assert_eq!(verify(&receipt, &expect), expected, "{what}");
    }
}

/// A receipt for the sample against an envelope with one thing changed.
fn against_envelope(change: impl FnOnce(&mut Envelope)) -> Result<(), ReceiptError> {
    let payload = sample();
    let mut envelope = payload.envelope.clone();
    change(&mut envelope);
    assert_ne!(envelope, payload.envelope);
    verify(&approved(&payload).1, &Expect { envelope: Some(&envelope), ..expect_all(&payload) })
}

fn path(text: &str) -> ForwardPath {
    ForwardPath::parse(text).unwrap()
}

#[test]
fn a_fields_case_makes_another_payload() {
    let payload = sample();
    let (_, receipt) = approved(&payload);
    let expect = Expect { account: Some("Jo@example.org"), ..expect_all(&payload) };
    assert_eq!(verify(&receipt, &expect), differs(Mismatch::Account));
    assert_eq!(against_envelope(|e| e.forward_paths[0] = path("Ann@example.com")), differs(Mismatch::Envelope));
}

#[test]
fn one_recipient_more_is_refused() {
    assert_eq!(against_envelope(|e| e.forward_paths.push(path("eve@example.net"))), differs(Mismatch::Envelope));
}

#[test]
fn one_recipient_fewer_is_refused() {
    assert_eq!(against_envelope(|e| e.forward_paths.truncate(1)), differs(Mismatch::Envelope));
}

#[test]
fn a_look_alike_recipient_is_refused() {
    assert_eq!(against_envelope(|e| e.forward_paths[0] = path("\u{430}nn@example.com")), differs(Mismatch::Envelope));
    assert_eq!(against_envelope(|e| e.forward_paths[0] = path("ann@ex\u{430}mple.com")), differs(Mismatch::Envelope));
}

#[test]
fn a_composed_local_part_stands_for_itself_and_a_decomposed_one_for_nothing() {
    let mut payload = sample();
    payload.envelope =
        Envelope::new("jo@example.org", vec![path("jos\u{e9}@example.com")], BodyType::SevenBit, true).unwrap();
    let (_, receipt) = approved(&payload);
    assert_eq!(verify(&receipt, &expect_all(&payload)), Ok(()));
    // The decomposed spelling never becomes a path (SMTP answers 553) …
    assert_eq!(ForwardPath::parse("jose\u{301}@example.com"), Err(ForwardPathError::NotNfc));
    // … nor is it read from a receipt.
    let json = serde_json::to_string(&receipt).unwrap().replace("jos\u{e9}", "jose\u{301}");
    assert_eq!(Receipt::parse(json.as_bytes()).map(drop), differs(Mismatch::Unreadable));
}

#[test]
fn a_changed_esmtp_parameter_is_refused() {
    assert_eq!(against_envelope(|e| e.body = BodyType::EightBitMime), differs(Mismatch::Envelope));
    assert_eq!(against_envelope(|e| e.smtputf8 = true), differs(Mismatch::Envelope));
}

#[test]
fn a_changed_sender_is_refused() {
    assert_eq!(against_envelope(|e| e.reverse_path = "ann@example.org".into()), differs(Mismatch::Envelope));
    assert_eq!(against_envelope(|e| e.reverse_path.clear()), differs(Mismatch::Envelope));
}

#[test]
fn a_changed_upstream_login_or_host_is_refused() {
    let payload = sample();
    let (_, receipt) = approved(&payload);
    for upstream in [("smtp.example.org", "ann@example.org"), ("smtp.example.com", "jo@example.org")] {
        let expect = Expect { upstream: Some(upstream), ..expect_all(&payload) };
        assert_eq!(verify(&receipt, &expect), differs(Mismatch::Upstream));
    }
}

#[test]
fn another_accounts_receipt_is_refused() {
    let theirs = Payload { account: "ann@example.org".into(), ..sample() };
    let (_, receipt) = approved(&theirs);
    assert_eq!(verify(&receipt, &expect_all(&sample())), differs(Mismatch::Account));
}

#[test]
fn another_holds_receipt_is_refused() {
    let other = Payload { hold_id: "h2".into(), ..sample() };
    let (_, receipt) = approved(&other);
    assert_eq!(verify(&receipt, &expect_all(&sample())), differs(Mismatch::Hold));
}

#[test]
fn a_changed_octet_or_length_of_the_message_is_refused() {
    let payload = sample();
    let (_, receipt) = approved(&payload);
    let mut sha256 = payload.sha256;
    sha256[0] ^= 0x80;
    for message in [(sha256, payload.length), (payload.sha256, payload.length + 1)] {
        let expect = Expect { message: Some(message), ..expect_all(&payload) };
        assert_eq!(verify(&receipt, &expect), differs(Mismatch::Message));
    }
}

#[test]
fn a_receipt_of_another_action_is_refused() {
    let other = Payload { action: Action::ForwardExternal, ..sample() };
    let (_, receipt) = approved(&other);
    let expected = ReceiptError::Action { found: Action::ForwardExternal, expected: Action::SendEmail };
    assert_eq!(verify(&receipt, &expect_all(&sample())), Err(expected));
}

#[test]
fn another_approver_is_refused() {
    let payload = sample();
    let expect = Expect { approver: Some("ann"), ..expect_all(&payload) };
    assert_eq!(verify(&approved(&payload).1, &expect), Err(ReceiptError::Approver));
}

#[test]
fn the_signature_of_another_key_is_refused() {
    let payload = sample();
    let (entries, receipt) = approved(&payload);
    let expect = expect_all(&payload);
    let stranger = signing_key(&[8; 32]);
    let theirs = mint(&payload, &stranger, entries[1].head());
    assert_eq!(verify(&theirs, &expect), Err(ReceiptError::Signature));
    // Nor under the known key's id.
    let claimed = Receipt { key_id: receipt.key_id.clone(), ..theirs.clone() };
    assert_eq!(verify(&claimed, &expect), Err(ReceiptError::Signature));
    let no_keys = receipt.verify(&[], &expect).map(drop);
    assert_eq!(no_keys, Err(ReceiptError::Signature));
    // With both keys known, each passes under its own.
    let both = [keys()[0], stranger.verifying_key()];
    assert!(receipt.verify(&both, &expect).is_ok() && theirs.verify(&both, &expect).is_ok());
}

#[test]
fn a_changed_signature_or_ledger_head_is_refused() {
    let payload = sample();
    let (_, receipt) = approved(&payload);
    let octets = STANDARD.decode(&receipt.signature).unwrap();
    for n in 0..octets.len() {
        let mut changed = octets.clone();
        changed[n] ^= 1;
        let bad = Receipt { signature: STANDARD.encode(changed), ..receipt.clone() };
        assert_eq!(verify(&bad, &expect_all(&payload)), Err(ReceiptError::Signature), "octet {n}");
    }
    for text in ["", "not base64", &receipt.signature[4..]] {
        let bad = Receipt { signature: text.into(), ..receipt.clone() };
        assert_eq!(verify(&bad, &expect_all(&payload)), Err(ReceiptError::Signature));
    }
    let mut moved = receipt.clone();
    moved.ledger_head.number += 1;
    assert_eq!(verify(&moved, &expect_all(&payload)), Err(ReceiptError::Signature));
}

#[test]
fn a_receipt_expires_at_its_second_and_not_before() {
    let payload = sample();
    let (_, receipt) = approved(&payload);
    let at = |at| verify(&receipt, &Expect { at: Some(at), ..expect_all(&payload) });
    assert_eq!(at(payload.expiry - 1), Ok(()));
    for late in [payload.expiry, payload.expiry + 1, i64::MAX] {
        assert_eq!(at(late), Err(ReceiptError::Expired { expiry: payload.expiry }));
    }
}

#[test]
fn a_spent_receipt_is_refused() {
    let payload = sample();
    let expect = Expect { spent: true, ..expect_all(&payload) };
    assert_eq!(verify(&approved(&payload).1, &expect), Err(ReceiptError::Spent));
}

// ---- the ledger behind it -------------------------------------------------------

#[test]
fn an_altered_ledger_entry_carries_no_receipt() {
    let (mut entries, receipt) = approved(&sample());
    entries[1].time += 1;
    assert_eq!(receipt.check_ledger(entries.get(1)), Err(ReceiptError::Chain));
    assert_eq!(ledger::verify(&entries, Some(receipt.ledger_head)), Err(ledger::LedgerError::Changed { number: 2 }));
}

#[test]
fn a_ledger_whose_last_entry_was_cut_carries_no_receipt() {
    let (mut entries, receipt) = approved(&sample());
    entries.pop();
    assert_eq!(receipt.check_ledger(entries.get(1)), Err(ReceiptError::Chain));
    let cut = ledger::verify(&entries, Some(receipt.ledger_head));
    assert_eq!(cut, Err(ledger::LedgerError::Truncated { last: 1, witnessed: 2 }));
}

#[test]
fn an_entry_that_is_no_approval_of_this_payload_carries_no_receipt() {
    let payload = sample();
    let (entries, _) = approved(&payload);
    let key = signing_key(&[7; 32]);
    let over = |event| {
        let entry = Entry::next(Some(&entries[0]), payload.time, event);
        mint(&payload, &key, entry.head()).check_ledger(Some(&entry))
    };
    let (hold, hash, approver) = (payload.hold_id.clone(), payload.hash(), payload.approver.clone());
    let other_hash = PayloadHash([0; 32]);
    for event in [
        Event::Denied { hold: hold.clone(), approver: approver.clone() },
        Event::Approved { hold: hold.clone(), payload: other_hash, approver: approver.clone() },
        Event::Approved { hold: "h2".into(), payload: hash, approver: approver.clone() },
        Event::Approved { hold: hold.clone(), payload: hash, approver: "ann".into() },
    ] {
        assert_eq!(over(event), Err(ReceiptError::Chain));
    }
    assert_eq!(over(Event::Approved { hold, payload: hash, approver }), Ok(()));
}

// ---- reading ----------------------------------------------------------------------

#[test]
fn a_newer_schema_is_called_so_even_where_it_has_new_fields() {
    let json = serde_json::to_string(&approved(&sample()).1).unwrap();
    let newer = json.replace(r#""schema":"1""#, r#""schema":"2","new_in_2":"x""#);
    assert_eq!(Receipt::parse(newer.as_bytes()), Err(ReceiptError::Schema { found: 2 }));
    let older = json.replace(r#""schema":"1""#, r#""schema":"0""#);
    assert_eq!(Receipt::parse(older.as_bytes()), Err(ReceiptError::Schema { found: 0 }));
}

#[test]
fn what_is_no_receipt_is_unreadable() {
    let json = serde_json::to_string(&approved(&sample()).1).unwrap();
    let too_long = format!("{json}{}", " ".repeat(MAX_RECEIPT));
    let member_twice = json.replacen("{\"payload\"", "{\"key_id\":\"x\",\"payload\"", 1);
    let more = json.replacen("{\"payload\"", "{\"more\":\"x\",\"payload\"", 1);
    assert_ne!(member_twice, json);
    for bad in ["", "{}", "[]", "null", &json[1..], &too_long, &member_twice, &more] {
        assert_eq!(Receipt::parse(bad.as_bytes()).map(drop), differs(Mismatch::Unreadable));
    }
    let mut not_utf8 = json.into_bytes();
    let at = not_utf8.len() / 2;
    not_utf8[at] = 0xff;
    assert!(Receipt::parse(&not_utf8).is_err());
}

#[test]
fn each_error_has_a_code_of_its_own() {
    let errors = [
        ReceiptError::Schema { found: 2 },
        ReceiptError::Action { found: Action::SendEmail, expected: Action::ForwardExternal },
        ReceiptError::Payload(Mismatch::Hash),
        ReceiptError::Approver,
        ReceiptError::Expired { expiry: 0 },
        ReceiptError::Spent,
        ReceiptError::Signature,
        ReceiptError::Chain,
    ];
    let codes: std::collections::HashSet<_> = errors.iter().map(ReceiptError::code).collect();
    assert_eq!(codes.len(), errors.len());
}

proptest::proptest! {
    /// Whatever single octet of a receipt's JSON is changed, it fails, or it
    /// is the same receipt in another spelling of JSON.
    #[test]
    fn no_changed_octet_makes_another_valid_receipt(at in proptest::prelude::any::<proptest::sample::Index>(), octet: u8) {
        let payload = sample();
        let (_, receipt) = approved(&payload);
        let mut json = serde_json::to_vec(&receipt).unwrap();
        let at = at.index(json.len());
        json[at] = octet;
        if let Ok(read) = Receipt::parse(&json) {
            let ok = verify(&read, &Expect { envelope: None, message: None, ..expect_all(&payload) }).is_ok();
            proptest::prop_assert_eq!(ok, read == receipt);
        }
    }
}
