use proptest::prelude::*;

use super::*;

fn path(text: &str) -> String {
    ForwardPath::parse(text).unwrap().as_str().to_owned()
}

#[test]
fn the_local_part_stays_and_the_domain_becomes_its_a_label() {
    for (text, dispatched) in [
        ("Jo.Doe+tag@Example.ORG", "Jo.Doe+tag@example.org"),
        ("jo@BÜCHER.example", "jo@xn--bcher-kva.example"),
        ("jo@xn--bcher-kva.example", "jo@xn--bcher-kva.example"),
        ("\"a b@c\"@example.org", "\"a b@c\"@example.org"),
        ("\"a\\\"b\"@example.org", "\"a\\\"b\"@example.org"),
        ("Δοκιμή@example.org", "Δοκιμή@example.org"),
        ("jo@[192.0.2.1]", "jo@[192.0.2.1]"),
        ("jo@[ipv6:2001:DB8:0::1]", "jo@[IPv6:2001:db8::1]"),
        ("jo@localhost", "jo@localhost"),
    ] {
        assert_eq!(path(text), dispatched, "{text}");
    }
}

#[test]
fn the_domain_mapping_is_the_non_transitional_one() {
    // Under the transitional mapping this would become fass.example, another's name.
    assert_eq!(path("jo@faß.example"), "jo@xn--fa-hia.example");
    assert_ne!(path("jo@faß.example"), path("jo@fass.example"));
}

#[test]
fn what_is_no_path_is_refused_with_its_reason() {
    use ForwardPathError::*;
    let long_local = format!("{}@example.org", "a".repeat(65));
    let long_path = format!("{}@{}.example.org", "a".repeat(64), ["b".repeat(60).as_str(); 3].join("."));
    for (text, reason) in [
        ("", Shape),
        ("postmaster", Shape),
        ("@example.org", Shape),
        ("jo@", Shape),
        ("@relay.example.org:jo@example.org", Shape),
        ("a b@example.org", Local),
        ("a..b@example.org", Local),
        (".a@example.org", Local),
        ("a.@example.org", Local),
        ("a@b@example.org", Local),
        ("\"a\"b\"@example.org", Local),
        ("\"a\\\"@example.org", Local),
        ("\"@example.org", Local),
        ("a>,<b@example.org", Local),
        ("a\r\nRCPT TO:<b@example.org", Local),
        ("a\0@example.org", Local),
        ("a\u{85}@example.org", Local),
        ("jo@exa mple.org", Domain),
        ("jo@-bad-.example", Domain),
        ("jo@example.org.", Domain),
        ("jo@example..org", Domain),
        ("jo@xn--a.example", Domain),
        ("jo@[192.0.2.256]", Domain),
        ("jo@[tag:what]", Domain),
        ("jo@example.org>\r\nDATA", Domain),
        (long_local.as_str(), Length),
        (long_path.as_str(), Length),
    ] {
        assert_eq!(ForwardPath::parse(text), Err(reason), "{text:?}");
    }
}

#[test]
fn a_decomposed_local_part_or_domain_is_refused_and_the_composed_one_taken() {
    assert_eq!(path("jos\u{e9}@example.org"), "jos\u{e9}@example.org");
    assert_eq!(ForwardPath::parse("jose\u{301}@example.org"), Err(ForwardPathError::NotNfc));
    assert_eq!(ForwardPath::parse("jo@bu\u{308}cher.example"), Err(ForwardPathError::NotNfc));
}

#[test]
fn look_alikes_are_other_paths() {
    let latin = path("paypal@example.org");
    for other in ["p\u{430}ypal@example.org", "Paypal@example.org", "paypal@ex\u{430}mple.org", "paypal@example.com"] {
        assert_ne!(path(other), latin);
    }
    assert!(path("paypal@ex\u{430}mple.org").contains("@xn--"));
}

#[test]
fn a_stored_path_in_another_form_is_refused() {
    assert!(serde_json::from_str::<ForwardPath>("\"jo@example.org\"").is_ok());
    for other in ["jo@EXAMPLE.org", "jo@bücher.example", "jo", "jose\u{301}@example.org"] {
        assert!(serde_json::from_str::<ForwardPath>(&format!("{other:?}")).is_err(), "{other}");
    }
}

fn paths(texts: &[&str]) -> Vec<ForwardPath> {
    texts.iter().map(|text| ForwardPath::parse(text).unwrap()).collect()
}

#[test]
fn recipients_are_sorted_and_collapsed_by_octets() {
    let recipients = paths(&["b@example.org", "a@example.org", "b@EXAMPLE.org", "B@example.org"]);
    let envelope = Envelope::new("Jo@Example.org", recipients, BodyType::SevenBit, false).unwrap();
    assert_eq!(envelope.reverse_path, "Jo@example.org");
    assert_eq!(envelope.forward_paths, paths(&["B@example.org", "a@example.org", "b@example.org"]));
}

#[test]
fn the_null_reverse_path_stays_null() {
    let envelope = Envelope::new("", paths(&["a@example.org"]), BodyType::SevenBit, false).unwrap();
    assert_eq!(envelope.reverse_path, "");
}

#[test]
fn an_envelope_without_recipients_or_without_smtputf8_where_needed_is_refused() {
    let new = |from, to: &[&str], utf8| Envelope::new(from, paths(to), BodyType::EightBitMime, utf8).map(drop);
    assert_eq!(new("jo@example.org", &[], false), Err(EnvelopeError::NoRecipient));
    assert_eq!(new("jo@example.org", &["é@example.org"], false), Err(EnvelopeError::NeedsSmtpUtf8));
    assert_eq!(new("é@example.org", &["jo@example.org"], false), Err(EnvelopeError::NeedsSmtpUtf8));
    assert_eq!(new("é@example.org", &["jo@example.org"], true), Ok(()));
    // The A-label form of the domain is ASCII and needs nothing.
    assert_eq!(new("jo@bücher.example", &["jo@example.org"], false), Ok(()));
    assert_eq!(new("not a path", &["jo@example.org"], false), Err(EnvelopeError::ReversePath(ForwardPathError::Shape)));
}

#[test]
fn an_envelope_that_was_not_made_by_new_fails_the_check() {
    let good =
        Envelope::new("jo@example.org", paths(&["a@example.org", "b@example.org"]), BodyType::SevenBit, false).unwrap();
    assert_eq!(good.check(), Ok(()));
    let mut reversed = good.clone();
    reversed.forward_paths.reverse();
    let mut repeated = good.clone();
    repeated.forward_paths.push(good.forward_paths[1].clone());
    let respelled = Envelope { reverse_path: "jo@EXAMPLE.org".into(), ..good };
    for bad in [reversed, repeated, respelled] {
        assert_eq!(bad.check(), Err(EnvelopeError::NotCanonical));
    }
}

proptest! {
    #[test]
    fn parsing_is_total_and_what_it_took_reads_back_as_itself(text in "\\PC{0,20}@?[a-zß-ÿA-Z0-9.-]{0,20}") {
        if let Ok(path) = ForwardPath::parse(&text) {
            prop_assert_eq!(ForwardPath::parse(path.as_str()), Ok(path.clone()));
            prop_assert_eq!(path.local(), text.rsplit_once('@').unwrap().0);
            prop_assert!(path.domain().is_ascii());
            prop_assert!(!path.as_str().contains(['\r', '\n', '\0']));
        }
    }

    #[test]
    fn the_order_in_which_recipients_came_makes_no_difference(mut order in Just((0..6).collect::<Vec<u32>>()).prop_shuffle()) {
        let recipients = |order: &[u32]| {
            order.iter().map(|n| ForwardPath::parse(&format!("r{n}@example.org")).unwrap()).collect::<Vec<_>>()
        };
        let shuffled = Envelope::new("", recipients(&order), BodyType::SevenBit, false).unwrap();
        order.sort();
        prop_assert_eq!(shuffled, Envelope::new("", recipients(&order), BodyType::SevenBit, false).unwrap());
    }
}
