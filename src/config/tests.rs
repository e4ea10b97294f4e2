//! Files, environments and flags with what comes of them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::load::problems_of as parse;
use super::*;

const SHIPPED: &str = include_str!("../../gateway.toml");
const LEAST: &str = "state_dir = \"s\"\n[[account]]\naddress = \"demo@example.org\"\nprovider = \"embedded\"\n";
const REAL: &str = "state_dir = \"s\"\n[[account]]\naddress = \"jo@example.com\"\nprovider = \"imap\"\n\
    imap.host = \"imap.example.com\"\nsmtp.host = \"smtp.example.com\"\npassword_command = [\"printf\", \"x\"]\n";

fn read(text: &str) -> Result<Config, Vec<Problem>> {
    parse(text, Path::new("/etc/tollgate/gateway.toml"), &Env::new(), &Overrides::default())
}

fn read_env(text: &str, env: &[(&str, &str)]) -> Result<Config, Vec<Problem>> {
    let env: Env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    parse(text, Path::new("/etc/tollgate/gateway.toml"), &env, &Overrides::default())
}

/// The only problem of `text`, as it is printed.
fn refused(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(list) => {
            assert_eq!(list.len(), 1, "{list:?}");
            list[0].to_string()
        }
    }
}

#[test]
fn the_shipped_file_works_and_says_every_default() {
    let config = read(SHIPPED).unwrap();
    assert_eq!(config.state_dir, Path::new("/etc/tollgate/state"));
    assert_eq!(config.certs_dir, Path::new("/etc/tollgate/certs"));
    assert_eq!(config.web_url, "http://localhost:3480");
    assert_eq!(config.accounts[0].lanes, LanePreset::Folders);
    assert!(config.listen.imap_plain.is_empty() && config.listen.smtp_plain.is_empty());

    let least = read(LEAST).unwrap();
    assert_eq!(config.listen.imaps, least.listen.imaps);
    assert_eq!(config.listen.submissions, least.listen.submissions);
    assert_eq!(config.listen.web, least.listen.web);
    assert_eq!(config.thresholds, least.thresholds);
    assert_eq!(config.max_message_bytes, least.max_message_bytes);
    assert_eq!(config.max_recipients, least.max_recipients);
    assert_eq!(config.max_holds_per_key, least.max_holds_per_key);
    assert_eq!(config.agent, least.agent);
    assert_eq!(config.max_holds, least.max_holds);
    assert_eq!(config.max_held_bytes_per_key, least.max_held_bytes_per_key);
    assert_eq!(config.max_held_bytes, least.max_held_bytes);
    assert_eq!(config.witness_file, Path::new("/etc/tollgate/state.witness"));
    assert_eq!((config.hold, config.hold_ttl, config.receipt_ttl), (least.hold, least.hold_ttl, least.receipt_ttl));
    assert_eq!(config.accounts[0].poll, least.accounts[0].poll);
    assert_eq!(least.accounts[0].lanes, LanePreset::Calm);

    // Without a model [perception] says nothing.
    assert!(config.perception.is_none());
    let with_model = |text: &str| {
        let model = "[[model]]\nname = \"m\"\nendpoint = \"http://[::1]/v1\"\nmodel = \"x\"\n";
        let price = "[[price]]\nmodel = \"x\"\ninput = 0\noutput = 0\n";
        read(&format!("{text}\n{model}{price}")).unwrap().perception.unwrap()
    };
    let (shipped, least) = (with_model(SHIPPED), with_model(LEAST));
    assert_eq!((shipped.deadline, shipped.rescore), (least.deadline, least.rescore));
    assert_eq!((shipped.limits, shipped.stronger_below), (least.limits, least.stronger_below));
}

#[test]
fn each_commented_key_of_the_shipped_file_is_a_known_one() {
    // Uncommenting what looks like a key and lines of the sample account.
    let is_key = |l: &str| {
        l.split_once(" = ").is_some_and(|(k, _)| k.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'.'))
    };
    const HEADS: [&str; 3] = ["[[account]]", "[[model]]", "[[price]]"];
    let mut out = String::new();
    for line in SHIPPED.lines() {
        let bare = line.trim_start_matches("# ");
        out.push_str(if line.starts_with('#') && (is_key(bare) || HEADS.contains(&bare)) { bare } else { line });
        out.push('\n');
    }
    let problems = read(&out).unwrap_err();
    assert!(problems.iter().all(|p| !p.message.contains("unknown")), "{problems:?}");
    // The sample's files aren't there, and it names all three sources.
    assert!(problems.iter().any(|p| p.key == "tls.cert"), "{problems:?}");
    assert!(problems.iter().any(|p| p.message.contains("exactly one of password")), "{problems:?}");
}

#[test]
fn unknown_keys_are_refused_with_line_and_nearest_key_in_every_section() {
    for (section, wrong, near) in [
        ("", "state_dri", "state_dir"),
        ("", "hostnam", "hostname"),
        ("[listen]", "imap", "imaps"),
        ("[tls]", "certs", "cert"),
        ("[approval]", "required", "require"),
        ("[web]", "uri", "url"),
        ("[hold]", "ttl_hour", "ttl_hours"),
        ("[limits]", "max_recipient", "max_recipients"),
        ("[rule]", "push_urgancy", "push_urgency"),
        ("[perception]", "deadline", "deadline_ms"),
        ("[lanes]", "presets", "preset"),
    ] {
        let (head, line) = if section.is_empty() { (String::new(), 1) } else { (format!("{section}\n"), 2) };
        let tail = if section.is_empty() { LEAST.to_owned() } else { LEAST.replacen("state_dir = \"s\"\n", "", 1) };
        let text = format!("{head}{wrong} = \"x\"\n{tail}");
        let (text, line) =
            if section.is_empty() { (text, line) } else { (format!("state_dir = \"s\"\n{text}"), line + 1) };
        let path =
            if section.is_empty() { wrong.to_owned() } else { format!("{}.{wrong}", &section[1..section.len() - 1]) };
        assert_eq!(refused(&text), format!("line {line}: {path}: unknown key; the nearest known one is `{near}`"));
    }
}

#[test]
fn unknown_keys_and_sections_of_accounts_are_refused() {
    let embedded = format!("{LEAST}adress = \"x@example.org\"\n");
    assert_eq!(refused(&embedded), "line 5: account[1].adress: unknown key; the nearest known one is `address`");
    let real = format!("{REAL}imap.prot = 1\n");
    assert_eq!(refused(&real), "line 8: account[1].imap.prot: unknown key; the nearest known one is `port`");
    let section = format!("{LEAST}[lane]\npreset = \"calm\"\n");
    assert_eq!(refused(&section), "line 5: lane: unknown key; the nearest known one is `lanes`");
}

#[test]
fn all_problems_are_listed_at_once_in_the_files_order() {
    let text =
        "state_dir = \"s\"\n[hold]\nmode = \"some\"\n[rule]\npush_urgency = 2\n[web]\nurl = \"https://example.org\"\n";
    let list = read(text).unwrap_err();
    let lines: Vec<Option<usize>> = list.iter().map(|p| p.line).collect();
    assert_eq!(lines, [Some(3), Some(5), Some(7), None], "{list:?}");
    assert_eq!(list[3].key, "account");
}

#[test]
fn broken_toml_is_a_problem_with_its_line() {
    let list = read("state_dir = \"s\"\n[listen\nweb = 1\n").unwrap_err();
    assert_eq!(list[0].line, Some(2), "{list:?}");
}

#[test]
fn values_of_the_wrong_kind_are_refused_with_the_right_one() {
    for (line, want) in [
        ("[limits]\nmax_recipients = \"many\"", "must be a whole number from 1 to 10000"),
        ("[limits]\nmax_recipients = 0", "must be a whole number from 1 to 10000"),
        ("[rule]\ninfo_urgency = nan", "must be a number from 0 to 1"),
        ("[rule]\ninfo_urgency = -0.1", "must be a number from 0 to 1"),
        ("[listen]\nweb = \"127.0.0.1:1\"", "must be a list of texts"),
        ("[listen]\nweb = [\"localhost:1\"]", "is no address with a port"),
        ("[approval]\nrequire = \"nothing\"", "none of \"pin\", \"passkey\", \"link\""),
        ("[approval]\nrequire = \"passkey\"\n[web]\nurl = \"http://127.0.0.1:3480\"", "needs a name in `web.url`"),
        ("[approval]\nrequire = \"passkey\"\n[web]\nurl = \"http://[::1]:3480\"", "needs a name in `web.url`"),
        ("[hold]\nmode = \"none\"", "is none of \"ai\", \"external\", \"all\""),
        ("[lanes]\npreset = \"loud\"", "is none of \"calm\""),
        ("[web]\nurl = \"http://localhost:3480/\"", "without a slash"),
        ("[web]\nurl = \"http://example.org\"", "must name localhost"),
        ("[tls]\ncert = \"/etc/hostname\"", "needs `tls.key` beside it"),
        (
            "[approval]\nrequire = \"link\"\n[notify]\nntfy = \"https://ntfy.sh/x\"",
            "can't be used with approval.require = \"link\"",
        ),
        ("[notify]\nwebhook = \"http://example.org/\"", "without TLS only this machine may be told"),
        ("[notify]\nntfy = \"ntfy.sh/x\"", "must start with https://"),
        ("[notify]\ncommand = []", "needs a program"),
        ("lanes = 1", "write it as [section]"),
    ] {
        let message = refused(&format!("state_dir = \"s\"\n{line}\n{}", &LEAST[16..]));
        assert!(message.contains(want), "{line}: {message}");
    }
}

#[test]
fn thresholds_that_break_an_invariant_are_refused_with_line_and_reason() {
    let text = format!("state_dir = \"s\"\n[rule]\npush_urgency = 0.7\nsilent_trust = 0.9\n{}", &LEAST[16..]);
    assert_eq!(refused(&text), "line 4: rule.silent_trust: above 0.5 would silence trusted senders");
}

#[test]
fn what_would_cross_a_network_unprotected_is_refused() {
    for key in ["imap_plain", "smtp_plain", "web"] {
        let text = format!("{LEAST}[listen]\n{key} = [\"192.0.2.1:80\"]\n");
        assert!(refused(&text).contains("is not a loopback address"), "{key}");
        read(&format!("{LEAST}[listen]\n{key} = [\"127.0.0.2:80\"]\n")).unwrap();
    }
    let none = format!("{REAL}imap.tls = \"none\"\n");
    assert!(refused(&none).contains("for loopback hosts only"));
    read(&none.replace("imap.example.com", "localhost")).unwrap();
}

#[test]
fn the_embedded_account_is_demo_at_example_org_and_stays_on_this_machine() {
    assert!(refused(&LEAST.replace("demo@", "jo@")).contains("demo@example.org and no other"));
    assert!(refused(&format!("{LEAST}password = \"x\"\n")).contains("means nothing for the embedded provider"));
    let wide = "[listen]\nimaps = [\"0.0.0.0:3993\"]\n";
    assert!(refused(&format!("{LEAST}{wide}")).contains("keys are public"));
    read(&format!("{REAL}{wide}")).unwrap();
}

#[test]
fn an_address_belongs_to_one_account() {
    let twice = format!("{LEAST}{}", &LEAST[16..]);
    assert_eq!(refused(&twice), "line 6: account[2].address: demo@example.org already belongs to this account");
    let alias = format!("{LEAST}aliases = [\"Jo@EXAMPLE.com\"]\n{}", &REAL[16..]);
    assert!(refused(&alias).contains("already belongs to the account demo@example.org"));
}

#[test]
fn a_provider_on_the_network_gets_the_usual_ports_and_names() {
    let config = read(REAL).unwrap();
    let Provider::Network(n) = &config.accounts[0].provider else { panic!() };
    assert_eq!((n.imap.port, n.imap.tls, n.smtp.port), (993, TlsMode::Implicit, 465));
    assert_eq!((n.imap_user.as_str(), n.smtp_user.as_str()), ("jo@example.com", "jo@example.com"));
    let text = format!("{REAL}imap.tls = \"starttls\"\nsmtp.tls = \"starttls\"\nimap_user = \"jo\"\n");
    let config = read(&text).unwrap();
    let Provider::Network(n) = &config.accounts[0].provider else { panic!() };
    assert_eq!((n.imap.port, n.smtp.port, n.smtp_user.as_str()), (143, 587, "jo"));
}

#[test]
fn the_copy_in_sent_is_the_provider_s_where_it_keeps_one() {
    let of = |text: &str| read(text).unwrap().accounts[0].sent;
    assert_eq!((of(LEAST), of(REAL)), (SentCopy::Append, SentCopy::Append));
    for (host, sent) in [
        ("smtp.gmail.com", SentCopy::Provider),
        ("smtp.office365.com", SentCopy::Provider),
        ("SMTP-mail.Outlook.com", SentCopy::Provider),
        ("notgmail.com", SentCopy::Append),
        ("smtp.gmail.com.example.org", SentCopy::Append),
    ] {
        assert_eq!(SentCopy::of(host), sent, "{host}");
    }
    assert_eq!(of(&format!("{REAL}sent = \"off\"\n")), SentCopy::Off);
    assert!(refused(&format!("{REAL}sent = \"on\"\n")).contains("is none of \"provider\", \"append\", \"off\""));
}

#[test]
fn whoever_is_told_that_something_waits_is_named() {
    assert_eq!(read(LEAST).unwrap().notify, None);
    let text = "[notify]\nwebhook = \"https://hooks.example.com/x\"\ncommand = [\"notify-send\", \"Tollgate\"]\n";
    let notify = read(&format!("{LEAST}{text}")).unwrap().notify.unwrap();
    let webhook = notify.webhook.unwrap();
    assert_eq!((webhook.endpoint.host.as_str(), webhook.endpoint.port), ("hooks.example.com", 443));
    assert_eq!((notify.ntfy, notify.command.len()), (None, 2));
}

#[test]
fn exactly_one_source_says_the_password() {
    assert!(refused(&format!("{REAL}password = \"x\"\n")).contains("exactly one of"));
    assert!(refused(&REAL.replace("password_command = [\"printf\", \"x\"]\n", "")).contains("exactly one of"));
    assert!(refused(&REAL.replace("[\"printf\", \"x\"]", "[]")).contains("needs a program"));
}

#[test]
fn files_that_are_named_must_be_readable_and_secrets_private() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("pw");
    let text = REAL.replace("password_command = [\"printf\", \"x\"]", "password_file = \"pw\"");
    let file = dir.path().join("gateway.toml");
    let go = || parse(&text, &file, &Env::new(), &Overrides::default());
    assert!(go().unwrap_err()[0].message.contains("can't be read"));
    std::fs::write(&secret, "x").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(go().unwrap_err()[0].message.contains("every user can use"));
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let config = go().unwrap();
    let Provider::Network(n) = &config.accounts[0].provider else { panic!() };
    assert_eq!(n.secret, SecretSource::File(secret));
}

#[test]
fn a_flag_stands_before_the_environment_and_that_before_the_file() {
    let env =
        [("TOLLGATE_STATE_DIR", "/e"), ("TOLLGATE_LISTEN_WEB", "127.0.0.1:1,127.0.0.1:2"), ("TOLLGATE_LOG", "info")];
    let config = read_env(LEAST, &env).unwrap();
    assert_eq!(config.state_dir, Path::new("/e"));
    assert_eq!(config.listen.web.len(), 2);
    assert_eq!(config.web_url, "http://localhost:1");

    let env: Env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let flags = Overrides { state_dir: Some("/f".into()), certs_dir: None };
    let config = parse(LEAST, Path::new("gateway.toml"), &env, &flags).unwrap();
    assert_eq!(config.state_dir, Path::new("/f"));
    assert_eq!(config.certs_dir, Path::new("/f/certs"));
}

#[test]
fn wrong_and_unknown_variables_are_refused_by_name() {
    let list = read_env(LEAST, &[("TOLLGATE_HOLD_TTL_HOURS", "soon"), ("TOLLGATE_STATEDIR", "x"), ("OTHER", "y")]);
    let list: Vec<String> = list.unwrap_err().iter().map(Problem::to_string).collect();
    assert_eq!(
        list,
        [
            "TOLLGATE_HOLD_TTL_HOURS: must be a whole number from 1 to 8760",
            "TOLLGATE_STATEDIR: unknown variable; the nearest known one is TOLLGATE_STATE_DIR",
        ]
    );
}

#[test]
fn variables_that_name_no_key_are_left_to_what_reads_them() {
    for name in ["TOLLGATE_CONFIG", "TOLLGATE_LOG", "TOLLGATE_FAILPOINT", "TOLLGATE_TEST_ANYTHING"] {
        read_env(LEAST, &[(name, "x")]).unwrap();
    }
}

#[test]
fn the_file_is_the_named_one_or_the_variables_or_the_users() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/tollgate");
    std::fs::create_dir_all(&folder).unwrap();
    let user = folder.join(FILE_NAME);
    let mut env = Env::from([("HOME".to_owned(), home.path().display().to_string())]);
    assert_eq!(user_file(&env), Some(user.clone()));
    assert_eq!(user_state(&env), Some(home.path().join(".local/state/tollgate")));
    env.insert("TOLLGATE_CONFIG".into(), "/v.toml".into());
    assert_eq!(locate(None, &env), Some("/v.toml".into()));
    assert_eq!(locate(Some(Path::new("/n.toml")), &env), Some("/n.toml".into()));
    let gone = load(Some(Path::new("/nonexistent.toml")), &env, &Overrides::default()).unwrap_err();
    assert!(gone.to_string().contains("can't be read"), "{gone}");
}

#[test]
fn inline_passwords_show_in_no_debug_output() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(FILE_NAME);
    let text = REAL.replace("password_command = [\"printf\", \"x\"]", "password = \"hunter2\"");
    std::fs::write(&file, &text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let config = load(Some(&file), &Env::new(), &Overrides::default()).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let problems = load(Some(&file), &Env::new(), &Overrides::default()).unwrap_err();
    assert!(problems.to_string().contains("every user can read this file"));
}

/// An account whose people bring their own login.
fn own_login() -> String {
    REAL.replace("password_command = [\"printf\", \"x\"]", "auth = \"login\"")
}

#[test]
fn an_account_may_store_no_password() {
    let config = read(&own_login()).unwrap();
    let account = &config.accounts[0];
    let Provider::Network(n) = &account.provider else { panic!() };
    assert!(n.secret == SecretSource::Login && !account.stores_secret());
    let stored = read(&REAL.replace("password_command", "auth = \"stored\"\npassword_command")).unwrap();
    assert!(stored.accounts[0].stores_secret());
}

#[test]
fn an_account_without_a_password_takes_nothing_that_needs_one() {
    for key in ["password = \"x\"", "password_file = \"x\"", "password_command = [\"x\"]"] {
        let said = refused(&format!("{}{key}\n", own_login()));
        let name = key.split(' ').next().unwrap();
        assert!(said.contains(name) && said.contains("stands beside auth = \"login\""), "{said}");
    }
    for mode in ["external", "all"] {
        let said = refused(&format!("{}[hold]\nmode = \"{mode}\"\n", own_login()));
        assert!(said.contains(&format!("hold.mode = \"{mode}\"")) && said.contains("auth"), "{said}");
    }
    assert!(refused(&own_login().replace("\"login\"", "\"client\"")).contains("is none of \"stored\", \"login\""));
    let without = refused(&own_login().replace("auth = \"login\"", "auth = \"stored\""));
    assert!(without.contains("exactly one of"), "{without}");
    assert!(refused(&format!("{LEAST}auth = \"login\"\n")).contains("means nothing for the embedded provider"));
}
