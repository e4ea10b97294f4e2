use std::collections::HashSet;

use super::software::Authenticator;
use super::*;
use crate::floor::payload::tests::{sample, twins};

const ORIGIN: &str = "http://localhost:3480";
const PLACE: Place<'static> = Place { rp_id: "localhost", origin: ORIGIN };

fn registered(authenticator: &Authenticator) -> ApproverKey {
    let challenge = Purpose::Create.challenge(b"x");
    let (client, object) = authenticator.create(&challenge);
    ApproverKey::register("jo@example.org", PLACE, &challenge, &client, &object).unwrap().0
}

fn payload() -> Payload {
    Payload { method: "passkey".into(), ..sample() }
}

#[test]
fn a_registered_passkey_approves_its_payload_and_no_twin_of_it() {
    let mut authenticator = Authenticator::new(7, ORIGIN);
    let key = registered(&authenticator);
    let assertion = authenticator.get(&challenge(&payload()));
    assert_eq!(assertion.check(&key, &challenge(&payload())), Ok(1));
    assert_eq!(assertion.names(&payload()), Ok(()));
    for (what, twin) in twins() {
        let wanted = challenge(&Payload { method: "passkey".into(), ..twin.clone() });
        if wanted != challenge(&payload()) {
            assert_eq!(assertion.check(&key, &wanted), Err(AssertionError::Challenge), "{what}");
        }
    }
}

#[test]
fn each_lie_of_an_authenticator_is_refused_with_its_reason() {
    let good = Authenticator::new(7, ORIGIN);
    let key = registered(&good);
    let wanted = challenge(&payload());
    type Lie = (AssertionError, fn(&mut Authenticator));
    let lies: [Lie; 12] = [
        (AssertionError::NotVerified, |a| a.flags = USER_PRESENT),
        (AssertionError::NotPresent, |a| a.flags = USER_VERIFIED),
        (AssertionError::Origin, |a| a.origin = "http://localhost:3481".into()),
        (AssertionError::Origin, |a| a.origin = "https://localhost:3480".into()),
        (AssertionError::Origin, |a| a.origin = "http://LOCALHOST:3480".into()),
        (AssertionError::CrossOrigin, |a| a.more = ",\"crossOrigin\":true"),
        (AssertionError::CrossOrigin, |a| a.more = ",\"topOrigin\":\"http://evil.example\""),
        (AssertionError::Unreadable, |a| a.more = ",\"origin\":\"http://evil.example\""),
        (AssertionError::RpId, |a| a.rp_id = "evil.example".into()),
        (AssertionError::Type, |a| a.kind = "webauthn.create"),
        (AssertionError::Unreadable, |a| a.flags |= EXTENSIONS),
        (AssertionError::Unknown, |a| a.id = vec![8; 16]),
    ];
    for (reason, lie) in lies {
        let mut liar = good.clone();
        lie(&mut liar);
        assert_eq!(liar.get(&wanted).check(&key, &wanted), Err(reason), "{reason}");
    }
    let mut other = Authenticator::new(8, ORIGIN);
    other.id = good.id.clone();
    assert_eq!(other.get(&wanted).check(&key, &wanted), Err(AssertionError::Signature));
    let mut flipped = good.clone().get(&wanted);
    flipped.authenticator_data = encode(&{
        let mut data = decode(&flipped.authenticator_data).unwrap();
        data[36] ^= 1;
        data
    });
    assert_eq!(flipped.check(&key, &wanted), Err(AssertionError::Signature), "the counter is signed");
}

#[test]
fn a_registration_is_bound_to_challenge_origin_name_and_person() {
    let good = Authenticator::new(7, ORIGIN);
    let wanted = Purpose::Create.challenge(b"x");
    let register = |a: &Authenticator, challenge: &[u8; 32]| {
        let (client, object) = a.create(challenge);
        ApproverKey::register("jo@example.org", PLACE, &wanted, &client, &object).map(drop)
    };
    assert_eq!(register(&good, &wanted), Ok(()));
    assert_eq!(register(&good, &Purpose::Create.challenge(b"y")), Err(AssertionError::Challenge));
    let lied = |lie: fn(&mut Authenticator)| {
        let mut liar = good.clone();
        lie(&mut liar);
        register(&liar, &wanted)
    };
    assert_eq!(lied(|a| a.flags = USER_PRESENT), Err(AssertionError::NotVerified));
    assert_eq!(lied(|a| a.origin = "http://localhost:1".into()), Err(AssertionError::Origin));
    assert_eq!(lied(|a| a.rp_id = "example.org".into()), Err(AssertionError::RpId));
    assert_eq!(lied(|a| a.flags |= EXTENSIONS), Err(AssertionError::Unreadable));
    let (client, object) = good.create(&wanted);
    let octets = decode(&object).unwrap();
    for cut in 0..octets.len() {
        let cut = encode(&octets[..cut]);
        assert!(ApproverKey::register("jo@example.org", PLACE, &wanted, &client, &cut).is_err());
    }
    let longer = encode(&[&octets[..], &[0]].concat());
    assert!(ApproverKey::register("jo@example.org", PLACE, &wanted, &client, &longer).is_err());
}

#[test]
fn keys_of_other_kinds_are_refused() {
    let key = |octets: &[u8]| cose_key(&mut Reader::new(octets)).map(|(a, _)| a);
    let ed = ed25519_dalek::SigningKey::from_bytes(&[7; 32]).verifying_key();
    let okp = [&[0xa4, 0x01, 0x01, 0x03, 0x27, 0x20, 0x06, 0x21, 0x58, 0x20], &ed.as_bytes()[..]].concat();
    assert_eq!(key(&okp), Ok(Algorithm::EdDsa));
    // RS256: {1: 3, 3: -257, -1: h'00', -2: h'01'}
    let rsa = [0xa4, 0x01, 0x03, 0x03, 0x39, 0x01, 0x00, 0x20, 0x41, 0x00, 0x21, 0x41, 0x01];
    assert_eq!(key(&rsa), Err(AssertionError::Algorithm));
    // A point that is not on the curve.
    let off =
        [&[0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20][..], &[1; 32], &[0x22, 0x58, 0x20], &[1; 32]];
    assert_eq!(key(&off.concat()), Err(AssertionError::Algorithm));
    let twice = [0xa2, 0x01, 0x02, 0x01, 0x02];
    assert_eq!(key(&twice), Err(AssertionError::Unreadable));
}

#[test]
fn a_batch_approves_its_payloads_and_no_other() {
    let (one, two, three) = (payload(), Payload { nonce: "n2".into(), ..payload() }, sample());
    let mut hashes = vec![one.hash(), two.hash()];
    hashes.sort();
    let mut authenticator = Authenticator::new(7, ORIGIN);
    let key = registered(&authenticator);
    let mut assertion = authenticator.get(&batch_challenge(&hashes));
    assert_eq!(assertion.names(&one), Err(AssertionError::Challenge), "without its list");
    assertion.batch = hashes.clone();
    for payload in [&one, &two] {
        assert_eq!(assertion.names(payload), Ok(()));
        assert!(assertion.check(&key, &assertion.challenge_for(payload).unwrap()).is_ok());
    }
    assert_eq!(assertion.names(&three), Err(AssertionError::Challenge));
    assertion.batch.push(three.hash());
    assertion.batch.sort();
    assert_eq!(assertion.names(&three), Err(AssertionError::Challenge), "a list that grew");
    assertion.batch = vec![hashes[1], hashes[0]];
    assert_eq!(assertion.names(&one), Err(AssertionError::Challenge), "another order");
}

#[test]
fn challenges_of_different_acts_never_meet() {
    let prefixes: Vec<&[u8]> = Purpose::ALL.iter().map(|p| p.prefix()).chain([APPROVE_PREFIX, BATCH_PREFIX]).collect();
    for (a, one) in prefixes.iter().enumerate() {
        for (b, two) in prefixes.iter().enumerate() {
            assert_eq!(a == b, two.starts_with(one));
        }
    }
    let all: HashSet<[u8; 32]> = Purpose::ALL.iter().map(|p| p.challenge(b"x")).collect();
    assert_eq!(all.len(), Purpose::ALL.len());
}

#[test]
fn a_counter_goes_on_or_is_always_zero() {
    for (seen, now, on) in [(0, 0, true), (0, 1, true), (1, 2, true), (1, 1, false), (2, 1, false), (1, 0, false)] {
        assert_eq!(counter_goes_on(seen, now), on, "{seen} {now}");
    }
}
