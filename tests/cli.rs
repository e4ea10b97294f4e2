//! The built program from outside: arguments, output, exit codes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    /// A folder with a configuration of the embedded account on free ports.
    fn new() -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        place.config(
            "state_dir = \"s\"\ncerts_dir = \"c\"\n[listen]\nimaps = [\"127.0.0.1:0\"]\nsubmissions = [\"127.0.0.1:0\"]\n\
             web = [\"127.0.0.1:0\"]\n[[account]]\naddress = \"demo@example.org\"\nprovider = \"embedded\"\n",
        );
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn config(&self, text: &str) {
        std::fs::write(self.path("gateway.toml"), text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(args).current_dir(self.dir.path()).env_clear().env("HOME", self.dir.path());
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The JSON that `args` print, and the exit code.
    fn json(&self, args: &[&str]) -> (i32, Value) {
        let output = self.run(&[&["--json"], args].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let value = serde_json::from_str(&text)
            .unwrap_or_else(|e| panic!("{args:?}: {e}: {text:?} {}", String::from_utf8_lossy(&output.stderr)));
        (output.status.code().unwrap(), value)
    }
}

fn error_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_and_version_succeed_and_unknown_verbs_are_usage_errors() {
    let place = Place::new();
    assert_eq!(place.run(&["--help"]).status.code(), Some(0));
    assert_eq!(place.run(&["--version"]).status.code(), Some(0));
    for args in
        [&["servee"][..], &["key", "add"], &["key", "add", "--person", "a", "--agent", "b"], &["held", "approve", "x"]]
    {
        assert_eq!(place.run(args).status.code(), Some(64), "{args:?}");
    }
}

#[test]
fn every_verb_has_a_help_text() {
    let place = Place::new();
    for verb in [
        "serve",
        "check",
        "doctor",
        "init",
        "key",
        "held",
        "receipt",
        "ledger",
        "explain",
        "replay",
        "eval",
        "backfill",
        "corrections",
        "pin",
    ] {
        let output = place.run(&[verb, "--help"]);
        assert_eq!(output.status.code(), Some(0), "{verb}");
        assert!(String::from_utf8_lossy(&output.stdout).lines().next().is_some_and(|l| l.len() > 10), "{verb}");
    }
}

#[test]
fn check_lists_every_problem_with_its_line_and_ends_with_78() {
    let place = Place::new();
    place.config("state_dri = \"x\"\n[hold]\nmode = \"no\"\n");
    let output = place.run(&["check"]);
    assert_eq!(output.status.code(), Some(78));
    let text = error_text(&output);
    for part in [
        "line 1: state_dri: unknown key; the nearest known one is `state_dir`",
        "line 3: hold.mode",
        "at least one [[account]]",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let (code, value) = place.json(&["check"]);
    assert_eq!(code, 78);
    assert_eq!(value["error"]["details"]["problems"][0]["line"], 1);
}

#[test]
fn check_says_what_would_run_and_makes_nothing() {
    let place = Place::new();
    let (code, value) = place.json(&["check"]);
    assert_eq!((code, &value["ok"]), (0, &Value::Bool(true)));
    assert_eq!(value["accounts"][0]["provider"], "embedded");
    assert!(value["notes"].as_array().unwrap().iter().any(|n| n.as_str().unwrap().contains("not wrapped")));
    assert!(!place.path("s").exists() && !place.path("c").exists());
}

#[test]
fn check_tells_of_a_port_that_another_program_has() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = place.command(&["check"]).env("TOLLGATE_LISTEN_IMAPS", format!("127.0.0.1:{port}")).output().unwrap();
    assert_eq!(output.status.code(), Some(78));
    assert!(error_text(&output).contains("another program has"), "{}", error_text(&output));
}

#[test]
fn without_a_configuration_it_says_where_it_looked() {
    let place = Place::new();
    std::fs::remove_file(place.path("gateway.toml")).unwrap();
    let output = place.run(&["check"]);
    assert_eq!(output.status.code(), Some(78));
    assert!(error_text(&output).contains(".config/tollgate/gateway.toml"), "{}", error_text(&output));
}

#[test]
fn keys_are_made_listed_and_revoked_and_the_ledger_tells() {
    let place = Place::new();
    let (code, made) = place.json(&["key", "add", "--agent", "helper"]);
    assert_eq!(code, 0, "{made}");
    assert!(made["key"].as_str().unwrap().starts_with("tg1_"));
    let id = made["id"].as_str().unwrap();
    let (_, list) = place.json(&["key", "list"]);
    let ours = |list: &Value| list["keys"].as_array().unwrap().iter().find(|k| k["id"] == id).cloned().unwrap();
    assert_eq!((&ours(&list)["role"], &ours(&list)["revoked_at"]), (&Value::from("agent"), &Value::Null));
    assert!(!list.to_string().contains(made["key"].as_str().unwrap()));
    assert_eq!(place.run(&["key", "revoke", id]).status.code(), Some(0));
    assert!(ours(&place.json(&["key", "list"]).1)["revoked_at"].is_i64());
    let (code, error) = place.json(&["key", "revoke", "nosuchkey"]);
    assert_eq!((code, &error["error"]["name"]), (65, &Value::from("no_key")));

    let (code, verdict) = place.json(&["ledger", "verify"]);
    assert_eq!((code, &verdict["entries"], &verdict["tail_witnessed"]), (0, &Value::from(2), &Value::Bool(false)));
    let head = verdict["head"].as_str().unwrap();
    assert_eq!(place.json(&["ledger", "verify", "--head", head]).1["tail_witnessed"], true);
    let forked = format!("2:{}", "0".repeat(64));
    assert_eq!(place.json(&["ledger", "verify", "--head", &forked]).0, 17);
    let lines = String::from_utf8(place.run(&["ledger", "list"]).stdout).unwrap();
    assert_eq!(lines.lines().count(), 2);
    assert!(lines.contains("key_added") && lines.contains("key_revoked"));
}

#[test]
fn accounts_that_are_not_configured_are_refused_by_name() {
    let place = Place::new();
    let (code, error) = place.json(&["key", "add", "--person", "x", "--account", "nobody@example.org"]);
    assert_eq!((code, &error["error"]["name"]), (65, &Value::from("no_account")));
}

#[test]
fn a_pin_comes_from_a_file_or_standard_input_and_never_from_an_argument() {
    let place = Place::new();
    let mut child =
        place.command(&["pin", "set", "--pin-file", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"805173\n").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    std::fs::write(place.path("weak"), "123456\n").unwrap();
    assert_eq!(place.run(&["pin", "set", "--pin-file", "weak"]).status.code(), Some(65));
    assert_eq!(place.run(&["pin", "set", "805173"]).status.code(), Some(64));
    // No terminal to ask on.
    assert_eq!(place.run(&["pin", "set"]).status.code(), Some(64));
}

#[test]
fn what_is_not_there_is_a_data_error_with_a_name() {
    let place = Place::new();
    for (args, name) in [
        (&["held", "show", "2222222222222222"][..], "no_hold"),
        (&["held", "deny", "nonsense"], "no_hold"),
        (&["receipt", "export", "2222222222222222"], "no_hold"),
        (&["explain", "nosuch"], "no_decision"),
        (&["explain", "--message-id", "<x@example.org>"], "no_decision"),
        (&["ledger", "verify", "--head", "x"], "invalid"),
    ] {
        let (code, error) = place.json(args);
        assert_eq!((code, &error["error"]["name"]), (65, &Value::from(name)), "{args:?}");
    }
    assert_eq!(place.json(&["held", "list"]).1["holds"], Value::Array(Vec::new()));
    assert_eq!(place.json(&["corrections", "list"]).1["corrections"], Value::Array(Vec::new()));
    let (code, error) = place.json(&["backfill", "--last", "5", "--dry-run"]);
    assert_eq!((code, &error["error"]["name"]), (69, &Value::from("not_running")));
}

#[test]
fn init_leaves_nothing_behind_when_the_provider_cannot_be_reached() {
    let place = Place::new();
    std::fs::write(place.path("pw"), "app password\n").unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let out = place.path("new/gateway.toml");
    let args = [
        "init",
        "--preset",
        "generic",
        "--address",
        "jo@example.com",
        "--password-file",
        "pw",
        "--imap-host",
        "127.0.0.1",
        "--imap-port",
        &closed,
        "--imap-tls",
        "none",
        "--smtp-host",
        "127.0.0.1",
        "--smtp-tls",
        "none",
        "--output",
        out.to_str().unwrap(),
    ];
    let (code, error) = place.json(&args);
    assert_eq!((code, &error["error"]["name"]), (69, &Value::from("server")), "{error}");
    assert!(!place.path("new").exists());
    let args: Vec<&str> = args.iter().map(|a| if *a == out.to_str().unwrap() { "gateway.toml" } else { a }).collect();
    assert_eq!(place.json(&args).0, 73);
    let wide: Vec<&str> = args
        .iter()
        .map(|a| match *a {
            "127.0.0.1" => "mail.example.com",
            "gateway.toml" => "other.toml",
            a => a,
        })
        .collect();
    assert_eq!(place.json(&wide).1["error"]["name"], "tls");
}

/// A server that greets, then answers each line by the first entry that it
/// contains, with the line's tag in place of `TAG`; serves `sessions`.
fn server(greeting: &'static str, script: &'static [(&'static str, &'static str)], sessions: usize) -> u16 {
    use std::io::{BufRead, BufReader};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for _ in 0..sessions {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(greeting.as_bytes()).unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                let tag = line.split(' ').next().unwrap_or_default();
                let answer = script.iter().find(|(part, _)| line.contains(part)).map_or("TAG BAD no\r\n", |(_, a)| a);
                if stream.write_all(answer.replace("TAG", tag).as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    port
}

// The base64 parts are NUL jo@example.com NUL, "app password".
const IMAP: &[(&str, &str)] = &[
    ("CAPABILITY", "* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR\r\nTAG OK done\r\n"),
    ("AUTHENTICATE PLAIN AGpvQGV4YW1wbGUuY29tAGFwcCBwYXNzd29yZA==", "TAG OK in\r\n"),
    ("AUTHENTICATE", "TAG NO [AUTHENTICATIONFAILED] wrong\r\n"),
    ("LOGOUT", "* BYE\r\nTAG OK\r\n"),
];
const SMTP: &[(&str, &str)] = &[
    ("EHLO", "250-mail.example.com\r\n250 AUTH PLAIN\r\n"),
    ("AUTH PLAIN AGpvQGV4YW1wbGUuY29tAGFwcCBwYXNzd29yZA==", "235 2.7.0 in\r\n"),
    ("AUTH", "535 5.7.8 wrong\r\n"),
    ("QUIT", "221 bye\r\n"),
];

#[test]
fn init_tests_the_logins_and_writes_what_then_runs() {
    let place = Place::new();
    let imap = server("* OK hello\r\n", IMAP, 2).to_string();
    let smtp = server("220 mail.example.com\r\n", SMTP, 1).to_string();
    std::fs::write(place.path("wrong"), "another\n").unwrap();
    let init = |password: &str| {
        let mut command = place.command(&[
            "--json",
            "init",
            "--preset",
            "generic",
            "--address",
            "jo@example.com",
            "--password-file",
            password,
            "--pin-file",
            "-",
            "--imap-host",
            "127.0.0.1",
            "--imap-port",
            &imap,
            "--imap-tls",
            "none",
            "--smtp-host",
            "127.0.0.1",
            "--smtp-port",
            &smtp,
            "--smtp-tls",
            "none",
            "--timezone",
            "Europe/Berlin",
        ]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let secrets: &[u8] = if password == "-" { b"app password\n805173\n" } else { b"805173\n" };
        // A refused login ends before the PIN is read.
        let _ = child.stdin.take().unwrap().write_all(secrets);
        let output = child.wait_with_output().unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), value)
    };
    let (code, error) = init("wrong");
    assert_eq!((code, &error["error"]["name"]), (77, &Value::from("login")), "{error}");
    assert!(!place.path(".config").exists());

    // Both secrets from standard input, the password's line first.
    let (code, made) = init("-");
    assert_eq!(code, 0, "{made}");
    let config = place.path(".config/tollgate/gateway.toml");
    let password = place.path(".config/tollgate/jo@example.com.password");
    assert_eq!(made["config"], config.to_str().unwrap());
    use std::os::unix::fs::PermissionsExt;
    for path in [&config, &password] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    assert_eq!(std::fs::read_to_string(&password).unwrap(), "app password\n");
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains("preset = \"calm\"") && !text.contains("app password"), "{text}");

    let named = config.to_str().unwrap();
    let (code, check) = place.json(&["--config", named, "check"]);
    let account = &check["accounts"][0];
    // The shipped ports may be taken on the machine that tests.
    assert!(code == 0 || check["error"]["name"] == "check", "{check}");
    let account = if code == 0 { account } else { &check["error"]["details"]["accounts"][0] };
    assert_eq!((&account["lanes"], &account["timezone"]), (&Value::from("calm"), &Value::from("Europe/Berlin")));
    let (_, keys) = place.json(&["--config", named, "key", "list"]);
    let roles: Vec<&Value> = keys["keys"].as_array().unwrap().iter().map(|k| &k["role"]).collect();
    assert_eq!(roles.len(), 2);
    assert!(roles.contains(&&Value::from("person")) && roles.contains(&&Value::from("agent")));
    assert!(made["person_key"].as_str().unwrap().starts_with("tg1_") && made["person_key"] != made["agent_key"]);
    let (_, ledger) = place.json(&["--config", named, "ledger", "verify"]);
    assert_eq!(ledger["entries"], 3);
    // A second time nothing is replaced.
    assert_eq!(init("-").0, 73);
    assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
}

#[test]
fn a_receipt_verifies_with_the_public_key_alone_and_each_failure_has_its_code() {
    use tollgate::floor::action::Action;
    use tollgate::floor::envelope::{BodyType, Envelope, ForwardPath};
    use tollgate::floor::identity::{signing_key, to_text};
    use tollgate::floor::ledger::{Entry, Event};
    use tollgate::floor::payload::{Payload, SCHEMA};
    use tollgate::floor::receipt::mint;

    let place = Place::new();
    std::fs::remove_file(place.path("gateway.toml")).unwrap();
    let message = b"From: jo@example.com\r\nTo: a@example.net\r\n\r\nHello\r\n";
    let digest: [u8; 32] = <sha2::Sha256 as sha2::Digest>::digest(message).into();
    let to = vec![ForwardPath::parse("a@example.net").unwrap()];
    let payload = Payload {
        schema: SCHEMA,
        gateway_id: "g".into(),
        account: "jo@example.com".into(),
        action: Action::SendEmail,
        hold_id: "2222222222222222".into(),
        submitter_key: "k".into(),
        upstream_host: "smtp.example.com".into(),
        upstream_login: "jo@example.com".into(),
        envelope: Envelope::new("jo@example.com", to, BodyType::SevenBit, false).unwrap(),
        sha256: digest,
        length: message.len() as u64,
        message_id: None,
        approver: "jo@example.com".into(),
        method: "pin".into(),
        time: 1_000,
        expiry: 2_000,
        nonce: "n".into(),
    };
    let event =
        Event::Approved { hold: payload.hold_id.clone(), payload: payload.hash(), approver: payload.approver.clone() };
    let entry = Entry::next(None, 1_000, event);
    let key = signing_key(&[7; 32]);
    let receipt = serde_json::to_string(&mint(&payload, &key, entry.head())).unwrap();
    std::fs::write(place.path("r.json"), &receipt).unwrap();
    std::fs::write(place.path("m.eml"), message).unwrap();
    std::fs::write(place.path("changed.eml"), [&message[..], b"!"].concat()).unwrap();
    std::fs::write(place.path("pub"), to_text(&key.verifying_key())).unwrap();
    std::fs::write(place.path("other"), to_text(&signing_key(&[8; 32]).verifying_key())).unwrap();
    std::fs::write(place.path("ledger"), serde_json::to_string(&entry).unwrap()).unwrap();
    let elsewhere = Entry::next(None, 1_000, Event::Expired { hold: "x".into() });
    std::fs::write(place.path("elsewhere"), serde_json::to_string(&elsewhere).unwrap()).unwrap();
    std::fs::write(
        place.path("schema.json"),
        receipt.replacen(&format!("\"schema\":\"{SCHEMA}\""), "\"schema\":\"999\"", 1),
    )
    .unwrap();
    std::fs::write(
        place.path("added.json"),
        receipt.replace("[\"a@example.net\"]", "[\"a@example.net\",\"b@example.net\"]"),
    )
    .unwrap();

    let verify = |receipt: &str, message: &str, key: &str, more: &[&str]| {
        place.json(&[&["receipt", "verify", receipt, "--message", message, "--key", key], more].concat())
    };
    let (code, good) =
        verify("r.json", "m.eml", "pub", &["--ledger", "ledger", "--to", "a@example.net", "--at", "1999"]);
    assert_eq!((code, &good["word"]), (0, &Value::from("gateway")), "{good}");
    let plain = place.run(&["receipt", "verify", "r.json", "--message", "m.eml", "--key", "pub"]);
    assert!(String::from_utf8_lossy(&plain.stdout).contains("the gateway's word only"));
    for (code, name, (answered, error)) in [
        (10, "schema", verify("schema.json", "m.eml", "pub", &[])),
        (11, "action", verify("r.json", "m.eml", "pub", &["--action", "delete_permanent"])),
        (12, "payload", verify("r.json", "changed.eml", "pub", &[])),
        (12, "payload", verify("added.json", "m.eml", "pub", &[])),
        (12, "payload", verify("r.json", "m.eml", "pub", &["--to", "a@example.net", "--to", "b@example.net"])),
        (13, "approver", verify("r.json", "m.eml", "pub", &["--approver", "mallory@example.net"])),
        (14, "expired", verify("r.json", "m.eml", "pub", &["--at", "now"])),
        (16, "signature", verify("r.json", "m.eml", "other", &[])),
        (17, "chain", verify("r.json", "m.eml", "pub", &["--ledger", "elsewhere"])),
        (65, "key", verify("r.json", "m.eml", "m.eml", &[])),
        (66, "input", verify("r.json", "none.eml", "pub", &[])),
    ] {
        assert_eq!((answered, &error["error"]["name"]), (code, &Value::from(name)), "{error}");
    }
    assert!(Path::new(&place.path("r.json")).exists() && !place.path(".local").exists());
}

#[test]
fn senders_are_pinned_listed_and_taken_back_without_a_running_gateway() {
    let place = Place::new();
    let (code, pinned) = place.json(&["pin", "sender", "Ann@Example.com", "push"]);
    assert_eq!(
        (code, &pinned["address"], &pinned["changed"]),
        (0, &"ann@example.com".into(), &true.into()),
        "{pinned}"
    );
    assert_eq!(place.json(&["pin", "sender", "ann@example.com", "push"]).1["changed"], false);
    for (args, code) in [
        (&["pin", "sender", "nobody", "push"][..], 65),
        (&["pin", "sender", "a@example.com", "loud"], 64),
        (&["pin", "remove", "b@example.com"], 65),
        (&["corrections", "undo", "1-pin-0000"], 65),
        // Sent is read by the gateway's own connection.
        (&["backfill", "--sent"], 69),
        (&["backfill", "--sent", "--last", "3"], 64),
    ] {
        assert_eq!(place.run(args).status.code(), Some(code), "{args:?}");
    }
    let text = String::from_utf8(place.run(&["pin", "list"]).stdout).unwrap();
    assert!(text.contains("ann@example.com") && text.contains("push"), "{text}");
    let (_, removed) = place.json(&["pin", "remove", "ann@example.com"]);
    assert_eq!(removed["lane"], Value::Null);
    let (_, made) = place.json(&["corrections", "list"]);
    let ids: Vec<&str> = made["corrections"].as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{made}");
    assert_eq!(place.json(&["corrections", "undo", ids[1]]).0, 0);
    assert_eq!(place.json(&["pin", "list"]).1["pins"][0]["lane"], "push");
}

#[test]
fn a_replay_takes_thresholds_by_name_and_refuses_what_breaks_an_invariant() {
    let place = Place::new();
    std::fs::write(place.path("r.toml"), "[rule]\npush_urgency = 0.85\ninfo_urgency = 0.4\n").unwrap();
    let (code, replayed) = place.json(&["replay", "--rule", "r.toml", "--set", "push_urgency=0.8"]);
    assert_eq!((code, &replayed["traces"], &replayed["moved"]), (0, &0.into(), &0.into()), "{replayed}");
    assert_eq!(replayed["thresholds"]["push_urgency"], 0.8);
    assert_eq!(replayed["thresholds"]["info_urgency"], 0.4);
    assert!(String::from_utf8_lossy(&place.run(&["replay"]).stdout).starts_with("0 of 0 decisions would move"));
    for (args, code) in [
        (&["replay", "--set", "push_urgncy=0.8"][..], 65),
        (&["replay", "--set", "confidence_min=0"], 65),
        (&["replay", "--set", "push_urgency"], 64),
        (&["replay", "--rule", "none.toml"], 66),
    ] {
        assert_eq!(place.run(args).status.code(), Some(code), "{args:?}");
    }
    let (code, review) = place.json(&["explain", "--canary"]);
    assert_eq!((code, &review["found"]), (0, &0.into()));
}

#[test]
fn an_evaluation_is_compared_twins_are_judged_and_floors_decide_the_exit_code() {
    let place = Place::new();
    let item = |id: &str, lane: &str, text: &str, more: &str| {
        format!(
            r#"{{"id":"{id}","lane":"{lane}","from":"Ann <ann@example.com>","to":"mina@example.org","subject":"note","date":"Wed, 04 Nov 2026 10:00:00 +0100","text":"{text}"{more}}}"#
        )
    };
    let urgent = "URGENT: the server is down, call me back immediately, by 11:00 today at the latest.";
    let set = [
        item("a", "push", urgent, ""),
        item(
            "ab",
            "queue",
            "Thank you for the notes of last week.",
            r#","twin":"a","change":"negated","expect":"not push""#,
        ),
        item("ac", "push", "Thank you for the notes.", r#","twin":"a","change":"html","expect":"same""#),
    ];
    std::fs::write(place.path("set.jsonl"), set.join("\n")).unwrap();
    let (code, old) = place.json(&["eval", "--set", "set.jsonl"]);
    assert_eq!((code, &old["twins_broken"], &old["twins_moved"]), (0, &1.into(), &Value::Null), "{old}");
    assert_eq!(old["twins"]["broken"][0]["id"], "ac");
    for name in ["tokens", "cost", "latency_us", "confusion", "languages", "lanes"] {
        assert!(!old[name].is_null(), "{name}");
    }
    std::fs::write(place.path("old.json"), old.to_string()).unwrap();
    let changed = [set[0].replace(urgent, "No rush at all."), set[1].clone(), set[2].clone()];
    std::fs::write(place.path("set.jsonl"), changed.join("\n")).unwrap();
    let args = ["eval", "--set", "set.jsonl", "--compare", "old.json"];
    let (code, new) = place.json(&args);
    assert_eq!((code, &new["flips_broken"]), (0, &1.into()), "a flip alone moves no exit code: {new}");
    assert_eq!(
        (&new["compared"]["flips"][0]["id"], &new["compared"]["flips"][0]["old"]),
        (&"a".into(), &"push".into())
    );
    std::fs::write(place.path("f.toml"), "flips_broken = 0\ntwins_broken = 1\n").unwrap();
    let output = place.run(&[&args[..], &["--floors", "f.toml"]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(65), "{text}");
    assert!(text.contains("flip: a push to") && text.contains("floor: flips_broken is 1"), "{text}");
    // Without the comparison the floor was not measured, which isn't kept either.
    assert_eq!(place.run(&["eval", "--set", "set.jsonl", "--floors", "f.toml"]).status.code(), Some(65));
    std::fs::write(place.path("old.json"), "{}").unwrap();
    assert_eq!(place.run(&args).status.code(), Some(65));
    assert_eq!(place.run(&["eval", "--compare", "none.json"]).status.code(), Some(66));
    assert_eq!(place.run(&["eval", "--delta"]).status.code(), Some(64));
}
