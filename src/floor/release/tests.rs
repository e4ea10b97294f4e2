use super::*;
use crate::floor::action::ACTIONS;
use crate::floor::envelope::{BodyType, ForwardPath};
use crate::floor::hold::{Decision, Mode, decide};
use crate::floor::identity::signing_key;
use crate::floor::ledger::{Entry, Event};
use crate::floor::payload::Payload;
use crate::floor::payload::tests::sample;
use crate::floor::receipt::{Expect, mint};

/// Compiles only where the type has none of the traits: with one, the method
/// would be ambiguous.
macro_rules! assert_lacks {
    ($type:ty: $($bound:path),+) => {$({
        trait Ambiguous<A> {
            fn check() {}
        }
        impl<T: ?Sized> Ambiguous<()> for T {}
        struct Has;
        impl<T: $bound> Ambiguous<Has> for T {}
        <$type as Ambiguous<_>>::check();
    })+};
}

#[test]
fn authority_cant_be_copied_read_from_a_file_or_conjured() {
    assert_lacks!(Release: Clone, Default, serde::de::DeserializeOwned, serde::Serialize);
    assert_lacks!(Verified: Clone, Default, serde::de::DeserializeOwned, serde::Serialize);
    assert_lacks!(NoHold: Clone, Default, serde::de::DeserializeOwned, serde::Serialize);
}

fn verified(payload: &Payload) -> Verified {
    let key = signing_key(&[7; 32]);
    let head = Entry::next(None, payload.time, Event::PinSet { account: payload.account.clone() }).head();
    mint(payload, &key, head).verify(&[key.verifying_key()], &Expect::new(payload.action)).unwrap()
}

#[test]
fn a_receipt_releases_exactly_what_it_names() {
    let payload = sample();
    let release = Release::from_receipt(verified(&payload), payload.action, payload.time, &payload.envelope).unwrap();
    assert_eq!(release.expected(), Some((&payload.sha256, payload.length)));
    assert_eq!(release.envelope(), Some(&payload.envelope));
    assert_eq!(release.upstream(), Some(("smtp.example.org", "jo@example.org")));
    assert!(release.permits(&payload.sha256, payload.length));
    assert!(!release.permits(&payload.sha256, payload.length - 1));
    assert!(!release.permits(&[0; 32], payload.length));
    assert_eq!(release.into_used(), Some(Used { hold_id: payload.hold_id.clone(), payload_hash: payload.hash() }));
}

#[test]
fn a_receipt_of_another_action_releases_no_mail() {
    for found in ACTIONS {
        for expected in ACTIONS {
            let payload = Payload { action: found, ..sample() };
            let released =
                Release::from_receipt(verified(&payload), expected, payload.time, &payload.envelope).map(drop);
            let fits = found == expected && found != Action::DeletePermanent;
            let refused = Err(ReceiptError::Action { found, expected });
            assert_eq!(released, if fits { Ok(()) } else { refused });
        }
    }
}

#[test]
fn an_expired_receipt_releases_nothing_even_if_it_was_verified_before() {
    let payload = sample();
    let refused =
        Release::from_receipt(verified(&payload), payload.action, payload.expiry, &payload.envelope).map(drop);
    assert_eq!(refused, Err(ReceiptError::Expired { expiry: payload.expiry }));
}

#[test]
fn another_envelope_is_not_released() {
    let payload = sample();
    let more = [payload.envelope.forward_paths.clone(), vec![ForwardPath::parse("eve@example.net").unwrap()]].concat();
    let envelope = Envelope::new("jo@example.org", more, BodyType::SevenBit, false).unwrap();
    let refused = Release::from_receipt(verified(&payload), payload.action, payload.time, &envelope).map(drop);
    assert_eq!(refused, Err(ReceiptError::Payload(Mismatch::Envelope)));
}

#[test]
fn a_persons_own_mail_is_released_without_a_hash_to_match() {
    let Decision::NoHold(no_hold) = decide(false, Mode::Ai, true, false, false) else { panic!("held") };
    let release = Release::person_unheld(no_hold);
    assert_eq!((release.expected(), release.envelope(), release.upstream()), (None, None, None));
    assert!(release.permits(&[9; 32], 9));
    assert_eq!(release.into_used(), None);
}
