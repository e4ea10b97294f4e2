use std::collections::HashSet;

use super::*;
use crate::floor::action::ACTIONS;
use crate::floor::envelope::{BodyType, ForwardPath};

/// A payload that the tests of the floor start from.
pub(in crate::floor) fn sample() -> Payload {
    let recipients = ["ann@example.com", "bob@example.net"].map(|text| ForwardPath::parse(text).unwrap());
    Payload {
        schema: SCHEMA,
        gateway_id: "gw-1".into(),
        account: "jo@example.org".into(),
        action: Action::SendEmail,
        hold_id: "h1".into(),
        submitter_key: "k1".into(),
        upstream_host: "smtp.example.org".into(),
        upstream_login: "jo@example.org".into(),
        envelope: Envelope::new("jo@example.org", recipients.to_vec(), BodyType::SevenBit, false).unwrap(),
        sha256: [0xab; 32],
        length: 1234,
        message_id: Some("<1@example.org>".into()),
        approver: "jo".into(),
        method: "pin".into(),
        time: 1_700_000_000,
        expiry: 1_700_086_400,
        nonce: "n1".into(),
    }
}

/// The sample with exactly one field changed, for each field.
pub(in crate::floor) fn twins() -> Vec<(&'static str, Payload)> {
    let edit = |change: fn(&mut Payload)| {
        let mut payload = sample();
        change(&mut payload);
        payload
    };
    vec![
        ("schema", edit(|p| p.schema += 1)),
        ("gateway_id", edit(|p| p.gateway_id = "gw-2".into())),
        ("account", edit(|p| p.account = "Jo@example.org".into())),
        ("action", edit(|p| p.action = Action::ForwardExternal)),
        ("hold_id", edit(|p| p.hold_id = "H1".into())),
        ("submitter_key", edit(|p| p.submitter_key = "k2".into())),
        ("upstream_host", edit(|p| p.upstream_host = "smtp.example.com".into())),
        ("upstream_login", edit(|p| p.upstream_login = "ann@example.org".into())),
        ("reverse_path", edit(|p| p.envelope.reverse_path = "Jo@example.org".into())),
        ("one recipient fewer", edit(|p| p.envelope.forward_paths.truncate(1))),
        ("one recipient more", edit(|p| p.envelope.forward_paths.push(ForwardPath::parse("eve@example.net").unwrap()))),
        (
            "look-alike recipient",
            edit(|p| p.envelope.forward_paths[0] = ForwardPath::parse("\u{430}nn@example.com").unwrap()),
        ),
        ("body", edit(|p| p.envelope.body = BodyType::EightBitMime)),
        ("smtputf8", edit(|p| p.envelope.smtputf8 = true)),
        ("sha256", edit(|p| p.sha256[31] ^= 1)),
        ("length", edit(|p| p.length += 1)),
        ("message_id", edit(|p| p.message_id = Some("<2@example.org>".into()))),
        ("no message_id", edit(|p| p.message_id = None)),
        ("approver", edit(|p| p.approver = "ann".into())),
        ("method", edit(|p| p.method = "link".into())),
        ("time", edit(|p| p.time += 1)),
        ("expiry", edit(|p| p.expiry += 1)),
        ("nonce", edit(|p| p.nonce = "n2".into())),
    ]
}

#[test]
fn the_canonical_form_is_sorted_json_with_integers_as_strings() {
    let expected = format!(
        concat!(
            r#"{{"account":"jo@example.org","action":"send_email","approver":"jo","#,
            r#""envelope":{{"body":"7BIT","forward_paths":["ann@example.com","bob@example.net"],"#,
            r#""reverse_path":"jo@example.org","smtputf8":false}},"expiry":"1700086400","gateway_id":"gw-1","#,
            r#""hold_id":"h1","length":"1234","message_id":"<1@example.org>","method":"pin","nonce":"n1","#,
            r#""schema":"1","sha256":"{}","submitter_key":"k1","time":"1700000000","#,
            r#""upstream_host":"smtp.example.org","upstream_login":"jo@example.org"}}"#
        ),
        "ab".repeat(32)
    );
    assert_eq!(String::from_utf8(sample().canonical()).unwrap(), expected);
}

#[test]
fn integers_above_two_to_the_53_are_kept_exactly() {
    let mut big = sample();
    (big.length, big.time, big.expiry) = (u64::MAX, i64::MIN, i64::MAX);
    let text = String::from_utf8(big.canonical()).unwrap();
    for number in [u64::MAX.to_string(), i64::MIN.to_string(), i64::MAX.to_string()] {
        assert!(text.contains(&format!("\"{number}\"")));
    }
    assert_eq!(serde_json::from_str::<Payload>(&text).unwrap(), big);
}

#[test]
fn every_field_changes_the_canonical_form_and_the_hash() {
    let mut forms = HashSet::from([sample().canonical()]);
    let mut hashes = HashSet::from([sample().hash()]);
    for (what, twin) in twins() {
        assert!(forms.insert(twin.canonical()), "{what}");
        assert!(hashes.insert(twin.hash()), "{what}");
    }
}

#[test]
fn the_hash_is_of_prefix_and_canonical_form() {
    for action in ACTIONS {
        let payload = Payload { action, ..sample() };
        let octets = [action.prefix(), &payload.canonical()].concat();
        assert_eq!(payload.hash().0, <[u8; 32]>::from(Sha256::digest(octets)));
    }
}

#[test]
fn other_spellings_of_a_payload_are_refused() {
    let good = String::from_utf8(sample().canonical()).unwrap();
    assert_eq!(serde_json::from_str::<Payload>(&good).unwrap(), sample());
    let hex = "ab".repeat(32);
    for (from, to) in [
        (r#""length":"1234""#, r#""length":"01234""#),
        (r#""length":"1234""#, r#""length":"+1234""#),
        (r#""length":"1234""#, r#""length":" 1234""#),
        (r#""length":"1234""#, r#""length":1234"#),
        (r#""length":"1234""#, r#""length":"-1""#),
        (r#""length":"1234""#, r#""length":"18446744073709551616""#),
        (r#""length":"1234""#, r#""length":"1234","length":"1234""#),
        (r#""length":"1234","#, ""),
        (r#""nonce":"n1""#, r#""nonce":"n1","extra":"x""#),
        (r#""smtputf8":false"#, r#""smtputf8":false,"extra":"x""#),
        (r#""body":"7BIT""#, r#""body":"7bit""#),
        (r#""ann@example.com""#, r#""ann@EXAMPLE.com""#),
        (hex.as_str(), &hex.to_uppercase()),
        (hex.as_str(), &hex[2..]),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good);
        assert!(serde_json::from_str::<Payload>(&bad).is_err(), "{bad}");
    }
}
