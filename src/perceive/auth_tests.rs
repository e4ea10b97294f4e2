use super::*;
use crate::lane::{Correspondence, History, KnownName};
use crate::mail::address::Address;

fn auth(fields: &str) -> Authentication {
    let m = format!("{fields}From: Ana <ana@example.com>\r\n\r\n");
    let f = Fields::new(m.as_bytes());
    let sender = f.sender();
    authentication(&f, &["mx.example.org".to_owned()], sender.as_ref())
}

#[test]
fn only_the_providers_own_results_are_believed() {
    assert_eq!(auth(""), Authentication::Unavailable);
    assert_eq!(
        auth("Authentication-Results: evil.example; dmarc=pass header.from=example.com\r\n"),
        Authentication::Unavailable
    );
    assert_eq!(
        auth("Authentication-Results: MX.example.org 1; dmarc=pass (p=none) header.from=example.com\r\n"),
        Authentication::Authenticated
    );
}

#[test]
fn a_field_that_a_sender_added_below_is_not_believed() {
    let m = "Authentication-Results: mx.example.org; dmarc=fail header.from=example.com\r\nReceived: x\r\nAuthentication-Results: mx.example.org; dmarc=pass header.from=example.com\r\n";
    assert_eq!(auth(m), Authentication::Failed);
}

#[test]
fn alignment_is_by_the_organisational_domain() {
    let dkim = |d: &str| auth(&format!("Authentication-Results: mx.example.org; dkim=pass header.d={d}; spf=none\r\n"));
    assert_eq!(dkim("example.com"), Authentication::Authenticated);
    assert_eq!(dkim("mail.example.com"), Authentication::Authenticated);
    assert_eq!(dkim("example.net"), Authentication::NotAligned);
    assert_eq!(dkim("notexample.com"), Authentication::NotAligned);
    assert_eq!(
        auth("Authentication-Results: mx.example.org; spf=pass smtp.mailfrom=bounce@example.com\r\n"),
        Authentication::Authenticated
    );
}

#[test]
fn comments_and_quotes_say_nothing() {
    assert_eq!(
        auth("Authentication-Results: mx.example.org; dmarc=fail (x; dmarc=pass header.from=example.com)\r\n"),
        Authentication::Failed
    );
    assert_eq!(
        auth(
            "Authentication-Results: mx.example.org; spf=fail reason=\"; dmarc=pass\" smtp.mailfrom=x@example.com\r\n"
        ),
        Authentication::Failed
    );
    assert_eq!(auth("Authentication-Results: mx.example.org; none\r\n"), Authentication::NotAligned);
    assert_eq!(auth("Authentication-Results: mx.example.org; spf=temperror\r\n"), Authentication::Unavailable);
}

fn sender(display: &str, address: &str) -> Sender {
    Sender { address: Address::parse(address).unwrap(), display: display.to_owned() }
}

fn knows(name: &str, address: &str) -> Context {
    Context {
        known_names: vec![KnownName { name: name.to_owned(), address: address.to_owned() }],
        ..Context::default()
    }
}

#[test]
fn a_known_name_on_another_address_is_spoofed() {
    let mut c = knows("Ana Ruiz", "ana@example.com");
    let s = sender("ANA  RUIZ", "ana@reuse-works.net");
    assert!(spoofed(Some(&s), false, &c, &[]).is_some());
    c.authentication = Authentication::Authenticated;
    assert!(spoofed(Some(&s), false, &c, &[]).is_none());
    assert!(spoofed(Some(&sender("Ana Ruiz", "ana.ruiz@gmail.com")), false, &c, &[]).is_some());
    assert!(spoofed(Some(&sender("Ana Ruiz", "ana@examp1e.com")), false, &c, &[]).is_some());
    assert!(spoofed(Some(&sender("Ana Ruiz", "ana@example.com")), false, &c, &[]).is_none());
    c.history = History::Present(Correspondence { sent_to: 1, ..Correspondence::default() });
    assert!(spoofed(Some(&sender("Ana Ruiz", "ana.ruiz@gmail.com")), false, &c, &[]).is_none());
}

#[test]
fn a_display_name_that_is_another_address_is_spoofed() {
    let c = Context::default();
    assert!(spoofed(Some(&sender("boss@example.org", "x@example.net")), false, &c, &[]).is_some());
    assert!(spoofed(Some(&sender("ana@example.com", "ana@mail.example.com")), false, &c, &[]).is_none());
}

#[test]
fn an_imitation_of_the_own_domain_is_spoofed() {
    let c = Context::default();
    let by = |d: &str| spoofed(Some(&sender("IT", &format!("it@{d}"))), false, &c, &["tollgate.example"]).is_some();
    assert!(by("tol1gate.example") && by("tollgaet.example") && by("tollgate-support.net"));
    assert!(!by("tollgate.example.net") && !by("tollgate.net"));
    assert!(!by("tollgate.example") && !by("mail.tollgate.example") && !by("gatekeeper.example"));
}

fn auth_of(authserv: &[&str], fields: &str) -> Authentication {
    let m = format!("{fields}From: Ana <ana@example.com>\r\n\r\n");
    let f = Fields::new(m.as_bytes());
    let names: Vec<String> = authserv.iter().map(|a| (*a).to_owned()).collect();
    authentication(&f, &names, f.sender().as_ref())
}

#[test]
fn one_field_for_each_method_is_read_as_one_result() {
    // As iCloud writes them, its own fields in between.
    let ids = ["dmarc.icloud.com", "dkim-verifier.icloud.com", "spf.icloud.com"];
    let fields = |dmarc: &str, d: &str| {
        format!(
            "Authentication-Results: bimi.icloud.com; bimi=none\r\n\
             Authentication-Results: dmarc.icloud.com; dmarc={dmarc} header.from=example.com\r\n\
             X-DMARC-Info: pass=none; dmarc-policy=(nopolicy); s=u0; d=u0\r\nX-DMARC-Policy: none\r\n\
             Authentication-Results: dkim-verifier.icloud.com;\r\n dkim=pass (1024-bit key) header.d={d}\r\n\
             Authentication-Results: spf.icloud.com; spf=none smtp.mailfrom=x@example.net\r\n"
        )
    };
    assert_eq!(auth_of(&ids, &fields("pass", "example.net")), Authentication::Authenticated);
    assert_eq!(auth_of(&ids, &fields("none", "example.com")), Authentication::Authenticated);
    assert_eq!(auth_of(&ids, &fields("none", "example.net")), Authentication::NotAligned);
    assert_eq!(auth_of(&ids, &fields("fail", "example.com")), Authentication::Failed);
}

#[test]
fn a_method_that_a_sender_repeats_right_below_is_not_believed() {
    let forged = "Authentication-Results: mx.example.org; dmarc=pass header.from=example.com; dkim=pass header.d=example.com\r\n";
    let own = "Authentication-Results: mx.example.org; dkim=none; dmarc=none header.from=example.com\r\n";
    assert_eq!(auth(&format!("{own}{forged}")), Authentication::NotAligned);
}

#[test]
fn a_star_stands_for_the_hosts_of_one_provider_alone() {
    let fields = |id: &str| {
        format!(
            "Authentication-Results: {id}; x-csa=none\r\nX-ME-Authentication-Results: {id}; x-vs=clean\r\n\
             Authentication-Results: {id};\r\n dmarc=pass header.from=example.com\r\n"
        )
    };
    let of = |id: &str| auth_of(&["*.messagingengine.com"], &fields(id));
    assert_eq!(of("phl-mx-04.messagingengine.com"), Authentication::Authenticated);
    for other in ["messagingengine.com", "evilmessagingengine.com", "mx.messagingengine.com.example.net", "m\u{fc}.com"]
    {
        assert_eq!(of(other), Authentication::Unavailable, "{other}");
    }
}
