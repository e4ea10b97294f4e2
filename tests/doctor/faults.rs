//! Providers with faults: a doctor that can't fail is none.

use std::time::Duration;

use tollgate::demo::faults::{BodyChange, Faults, ImapEffect, SmtpAt, SmtpEffect};

use crate::stand::Stand;

struct Case {
    name: &'static str,
    fault: fn(&Faults),
    /// Arguments beside `--messages 2`.
    args: &'static [&'static str],
    code: i32,
    /// The check that must fail, how, and after how many attempts.
    check: &'static str,
    outcome: &'static str,
    attempts: usize,
    /// The law that the oracle names, where it is the oracle's.
    law: Option<&'static str>,
}

const CASES: &[Case] = &[
    Case {
        name: "RFC822.SIZE lies",
        fault: |f| f.size_lie(3),
        args: &[],
        code: 76,
        check: "imap.octets",
        outcome: "inconsistent",
        attempts: 1,
        law: Some("size"),
    },
    Case {
        name: "a body is another at each FETCH",
        fault: |f| f.body_changes(Some(BodyChange::SameLength), true),
        args: &[],
        code: 76,
        check: "imap.octets",
        outcome: "inconsistent",
        attempts: 1,
        law: Some("same"),
    },
    Case {
        name: "a body grows",
        fault: |f| f.body_changes(Some(BodyChange::Longer), true),
        args: &[],
        code: 76,
        check: "imap.octets",
        outcome: "inconsistent",
        attempts: 1,
        law: Some("size"),
    },
    Case {
        name: "IDLE is advertised and refused",
        fault: |f| f.imap(Some("IDLE"), ImapEffect::No("not now".into()), None),
        args: &["--retry", "1"],
        code: 76,
        check: "imap.idle",
        outcome: "refused",
        attempts: 2,
        law: None,
    },
    Case {
        name: "IDLE is advertised and not understood",
        fault: |f| f.imap(Some("IDLE"), ImapEffect::Bad("what".into()), None),
        args: &[],
        code: 76,
        check: "imap.idle",
        outcome: "not_understood",
        attempts: 1,
        law: None,
    },
    Case {
        name: "IDLE ends at once",
        fault: |f| f.imap(Some("IDLE"), ImapEffect::EndIdle(Duration::from_millis(20)), None),
        args: &[],
        code: 76,
        check: "imap.idle",
        outcome: "protocol",
        attempts: 1,
        law: None,
    },
    Case {
        name: "NAMESPACE is advertised and refused",
        fault: |f| f.imap(Some("NAMESPACE"), ImapEffect::No("no".into()), None),
        args: &[],
        code: 76,
        check: "imap.namespace",
        outcome: "refused",
        attempts: 1,
        law: None,
    },
    Case {
        name: "submission ends at AUTH",
        fault: |f| f.smtp(SmtpAt::Auth, SmtpEffect::Close, None),
        args: &["--retry", "2"],
        code: 69,
        check: "smtp.login",
        outcome: "closed",
        attempts: 3,
        law: None,
    },
    Case {
        name: "submission refuses EHLO",
        fault: |f| f.smtp(SmtpAt::Ehlo, SmtpEffect::Reply("502 5.5.1 no".into()), None),
        args: &[],
        code: 69,
        check: "smtp.login",
        outcome: "refused",
        attempts: 1,
        law: None,
    },
    Case {
        name: "the greeting is BYE",
        fault: |f| f.imap(Some("GREETING"), ImapEffect::Bye("full".into()), None),
        args: &[],
        code: 76,
        check: "imap.login",
        outcome: "refused",
        attempts: 1,
        law: None,
    },
    Case {
        name: "a body breaks off",
        fault: |f| f.imap(Some("UID FETCH"), ImapEffect::DropInLiteral(5), None),
        args: &[],
        code: 76,
        check: "imap.octets",
        outcome: "inconsistent",
        attempts: 1,
        law: Some("answered"),
    },
    Case {
        name: "a message that is listed is refused",
        fault: |f| f.imap(Some("UID FETCH"), ImapEffect::No("later".into()), None),
        args: &[],
        code: 76,
        check: "imap.octets",
        outcome: "inconsistent",
        attempts: 1,
        law: Some("answered"),
    },
    Case {
        name: "a UID that the gateway doesn't know",
        fault: |f| f.imap(Some("UID SEARCH"), ImapEffect::Octets(b"* SEARCH 4000000\r\n".to_vec()), None),
        args: &[],
        code: 76,
        check: "gateway.mirror",
        outcome: "mirror_differs",
        attempts: 1,
        law: None,
    },
    // The last: after it the gateway rests before it signs in again.
    Case {
        name: "the password is refused, which is tried once whatever was asked",
        fault: |f| f.reject_auth(true),
        args: &["--retry", "3"],
        code: 77,
        check: "imap.login",
        outcome: "password_refused",
        attempts: 1,
        law: None,
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_a_provider_is_found_and_named() {
    let stand = Stand::start().await;
    for case in CASES {
        stand.provider().faults().clear();
        let well = stand.doctor(&["--messages", "0"]).await;
        assert_eq!(well.code, 0, "before {}: {}", case.name, well.text);
        (case.fault)(stand.provider().faults());
        let receipt = stand.doctor(&[&["--messages", "2"], case.args].concat()).await;
        assert!(receipt.failed().contains(&case.check), "{}: {}", case.name, receipt.text);
        assert_eq!(receipt.outcome(case.check), case.outcome, "{}: {}", case.name, receipt.text);
        assert_eq!(receipt.attempts(case.check).len(), case.attempts, "{}", case.name);
        assert_eq!(receipt.code, case.code, "{}: {}", case.name, receipt.text);
        if let Some(law) = case.law {
            assert!(receipt.laws(case.check).iter().any(|l| l == law), "{}: {}", case.name, receipt.text);
        }
        assert_eq!(receipt.json["ok"], false);
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_once_passes_only_where_a_retry_was_asked_for() {
    let stand = Stand::start().await;
    for (args, code, outcomes) in [(&[][..], 69, &["failed"][..]), (&["--retry", "1"], 0, &["failed", "ok"])] {
        stand.provider().faults().clear();
        stand.provider().faults().smtp(SmtpAt::Auth, SmtpEffect::Close, Some(1));
        let receipt = stand.doctor(&[&["--messages", "0"], args].concat()).await;
        assert_eq!(receipt.code, code, "{}", receipt.text);
        let told: Vec<&str> = receipt.attempts("smtp.login").iter().map(|a| a["outcome"].as_str().unwrap()).collect();
        assert_eq!(told, outcomes, "each attempt stands in the receipt");
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_offered_is_no_fault() {
    let stand = Stand::start().await;
    for capability in ["IDLE", "NAMESPACE", "SPECIAL-USE", "CONDSTORE", "MOVE"] {
        stand.provider().faults().hide_imap_capability(capability);
    }
    let receipt = stand.doctor(&["--messages", "1"]).await;
    assert_eq!(receipt.code, 0, "{}", receipt.text);
    for check in ["imap.idle", "imap.namespace", "imap.special-use", "imap.condstore", "imap.move"] {
        assert_eq!(receipt.outcome(check), "not_offered", "{check}");
    }
    stand.gateway.shutdown().await;
}
