//! An account that is well, and one that can't be examined.

use serde_json::json;

use crate::stand::{Stand, USER, configure, receipt, run, snapshot};

const CHECKS: [&str; 17] = [
    "config",
    "gateway",
    "password",
    "imap.connect",
    "imap.login",
    "imap.idle",
    "imap.condstore",
    "imap.namespace",
    "imap.special-use",
    "imap.literal",
    "imap.uidplus",
    "imap.move",
    "imap.clock",
    "imap.octets",
    "smtp.login",
    "gateway.mirror",
    "gateway.views",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_well_is_used_and_left_as_it_was() {
    let stand = Stand::start().await;
    let before = snapshot(stand.provider());
    let sent = stand.provider().accepted().len();
    stand.provider().faults().keep_commands(true);
    let receipt = stand.doctor(&["--messages", "2"]).await;
    assert_eq!((receipt.code, receipt.failed()), (0, Vec::new()), "{}", receipt.text);
    let names: Vec<&str> = receipt.checks().iter().map(|c| c["check"].as_str().unwrap()).collect();
    assert_eq!(names, CHECKS);
    for name in names {
        let expected: &[&str] = match name {
            "imap.uidplus" | "imap.move" => &["not_tried", "not_offered"],
            "imap.condstore" => &["ok", "not_offered"],
            _ => &["ok"],
        };
        assert!(expected.contains(&receipt.outcome(name)), "{name}: {}", receipt.text);
        assert_eq!(receipt.attempts(name).len(), 1);
        assert!(receipt.attempts(name)[0]["ms"].is_u64() && receipt.check(name)["does"].is_string());
    }
    let views = &receipt.attempts("gateway.views")[0]["facts"];
    assert!(views["messages"].as_u64() >= Some(10) && views["mailboxes"].as_u64() >= Some(8), "{views}");
    assert_eq!(views["read_again"], views["messages"], "every message is read again in a new session");
    assert_eq!(receipt.attempts("gateway.mirror")[0]["facts"]["provider"], json!(20));

    let said: Vec<String> =
        stand.provider().faults().commands().iter().map(|c| String::from_utf8_lossy(c).to_ascii_uppercase()).collect();
    for used in [" IDLE", " NAMESPACE", "LIST \"\"", "EXAMINE", "BODY.PEEK[HEADER.FIELDS"] {
        assert!(said.iter().any(|c| c.contains(used)), "{used} was really used: {said:?}");
    }
    for changes in ["STORE", "APPEND", "EXPUNGE", "COPY", "MOVE", "CREATE", "DELETE", "SUBSCRIBE", "CLOSE"] {
        assert!(!said.iter().any(|c| c.contains(&format!(" {changes}"))), "{changes}: {said:?}");
    }
    assert!(snapshot(stand.provider()) == before, "nothing is changed");
    assert_eq!(stand.provider().accepted().len(), sent, "nothing is sent");

    // What is private stays out of the receipt and is told to the person.
    let output = run(stand.folder.path(), &["doctor", "--messages", "1", "--account", "DEMO@example.org"]).await;
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && told.contains(USER) && told.contains("127.0.0.1"), "{told}");
    // The special uses are words of RFC 6154, not names.
    let said = receipt.text.replace("\\\\Archive", "");
    for word in ["example.org", "127.0.0.1", "Archive", "Subject", stand.folder.path().to_str().unwrap()] {
        assert!(!said.contains(word), "{word} stands in the receipt: {said}");
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gateway_that_is_the_fault_and_nothing_else_is_claimed() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path());
    let receipt = receipt(run(folder.path(), &["--json", "doctor"]).await);
    assert_eq!((receipt.code, receipt.failed()), (69, vec!["gateway"]));
    assert_eq!(receipt.outcome("gateway"), "not_running");
    for name in ["imap.login", "gateway.mirror", "gateway.views"] {
        assert_eq!(receipt.outcome(name), "not_tried");
    }
    assert!(!folder.path().join("state").exists(), "nothing is made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_is_told_by_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path());
    let text = std::fs::read_to_string(folder.path().join("gateway.toml")).unwrap();
    std::fs::write(folder.path().join("gateway.toml"), text.replace(USER, "jo secret@@example.org")).unwrap();
    let told = receipt(run(folder.path(), &["--json", "doctor"]).await);
    assert_eq!((told.code, told.outcome("config")), (78, "config"));
    let problems = &told.attempts("config")[0]["facts"]["problems"];
    assert!(problems[0]["line"].is_u64() && problems[0]["key"].as_str().unwrap().contains("address"), "{problems}");
    assert!(!told.text.contains("jo secret"), "{}", told.text);
    for args in [&["--account", "nobody@example.org"][..], &["--retry", "99"], &["--messages", "-1"]] {
        configure(folder.path());
        let output = run(folder.path(), &[&["doctor"], args].concat()).await;
        assert!(matches!(output.status.code(), Some(64 | 65)), "{args:?}");
    }
}
