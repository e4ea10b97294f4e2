//! `tollgate check`: what would run, and every problem at once.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, show};
use crate::config::{
    self, AccountConfig, Config, Endpoint, HoldMode, KeySource, ModelConfig, Perception, Problems, Provider,
    SecretSource, SentCopy, TlsMode, certs,
};
use crate::gateway::control::{Request, SOCKET};
use crate::lane::LanePreset;
use crate::outbox::IDENTITY_FILE;
use crate::store::redb::DATABASE_FILE;

pub(super) fn run(globals: &Globals) -> Outcome {
    let config = globals.load()?;
    let file = config::locate(globals.config.as_deref(), &config::process_env());
    let running = std::os::unix::net::UnixStream::connect(config.state_dir.join(SOCKET)).is_ok();
    let mut notes = notes(&config);
    let mut problems = Vec::new();
    let certificate = certificate(&config, &mut notes, &mut problems);
    if !running {
        ports(&config, &mut notes, &mut problems);
    }
    identity(&config, &mut notes, &mut problems);
    models(&config, &mut notes, &mut problems);
    let lengths = lengths(&config, running, &mut notes);
    let report = json!({
        "ok": problems.is_empty(),
        "file": file,
        "running": running,
        "state_dir": config.state_dir,
        "witness_file": config.witness_file,
        "certificate": certificate,
        "hostname": config.hostname,
        "listen": listeners(&config),
        "web_url": config.web_url,
        "approval": config.approval.method(),
        "hold": hold_name(config.hold),
        "hold_ttl_hours": config.hold_ttl.as_secs() / 3600,
        "receipt_hours": config.receipt_ttl.as_secs() / 3600,
        "max_message_bytes": config.max_message_bytes,
        "max_recipients": config.max_recipients,
        "max_holds_per_key": config.max_holds_per_key,
        "max_holds": config.max_holds,
        "max_held_bytes_per_key": config.max_held_bytes_per_key,
        "max_held_bytes": config.max_held_bytes,
        "thresholds": config.thresholds,
        "perception": config.perception.as_ref().map(perception_json),
        "lengths": lengths,
        "accounts": config.accounts.iter().map(account_json).collect::<Vec<_>>(),
        "notes": notes,
        "problems": problems,
    });
    if problems.is_empty() {
        super::print(globals, &report, said);
        return Ok(());
    }
    if !globals.json {
        super::exit::say(&format!("{}\n", said(&report)));
    }
    let message = format!("{} in the way of a start:\n  {}", plural(problems.len(), "thing"), problems.join("\n  "));
    Err(Failure { details: Some(report), ..Failure::new(Exit::Config, "check", message) })
}

/// The problems of a file for scripts.
pub(super) fn problems_json(problems: &Problems) -> Value {
    let one = |p: &config::Problem| json!({ "line": p.line, "key": p.key, "message": p.message });
    json!({ "file": problems.file, "problems": problems.list.iter().map(one).collect::<Vec<_>>() })
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn certificate(config: &Config, notes: &mut Vec<String>, problems: &mut Vec<String>) -> Value {
    match certs::inspect(config) {
        Ok(None) => {
            notes.push(format!("the first start makes a certificate in {}", config.certs_dir.display()));
            Value::Null
        }
        Ok(Some(info)) => {
            if info.ends_soon(jiff::Timestamp::now().as_second()) {
                notes.push(match info.own {
                    true => "your certificate has ended or ends within 30 days: renew it".to_owned(),
                    false => "the certificate is near its end: the next start makes another, and clients must be told"
                        .to_owned(),
                });
            }
            json!({ "path": info.path, "sha256": info.fingerprint_sha256, "own": info.own, "not_after": info.not_after })
        }
        // One that we made is made anew; the operator's own is theirs to mend.
        Err(e) if config.tls.is_none() => {
            notes.push(format!("{e}; the next start makes another certificate"));
            Value::Null
        }
        Err(e) => {
            problems.push(e.to_string());
            Value::Null
        }
    }
}

fn every_listener(config: &Config) -> [(&'static str, &[SocketAddr]); 7] {
    let l = &config.listen;
    [
        ("imaps", &l.imaps),
        ("submissions", &l.submissions),
        ("imap_starttls", &l.imap_starttls),
        ("submission_starttls", &l.submission_starttls),
        ("imap_plain", &l.imap_plain),
        ("smtp_plain", &l.smtp_plain),
        ("web", &l.web),
    ]
}

fn listeners(config: &Config) -> Value {
    every_listener(config)
        .into_iter()
        .map(|(name, list)| (name.to_owned(), json!(list)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Tries each address and lets it go again.
fn ports(config: &Config, notes: &mut Vec<String>, problems: &mut Vec<String>) {
    for (name, list) in every_listener(config) {
        for address in list {
            match TcpListener::bind(address) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::AddrNotAvailable => {
                    notes.push(format!("listen.{name}: this machine has no {}", address.ip()));
                }
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                    problems.push(format!("listen.{name}: another program has {address}"));
                }
                Err(e) => problems.push(format!("listen.{name}: {address}: {e}")),
            }
        }
    }
}

/// Accounts whose provider told lengths of messages that aren't true. Where
/// there is no state yet nothing is known, and none is made.
fn lengths(config: &Config, running: bool, notes: &mut Vec<String>) -> Value {
    if !running && !config.state_dir.join(DATABASE_FILE).exists() {
        return json!([]);
    }
    let answer = match super::gate::ask(config.clone(), Request::Lengths) {
        Ok(mut answer) => answer["lengths"].take(),
        Err(e) => {
            notes.push(format!("what the state knows of the providers can't be read: {}", e.message));
            return json!([]);
        }
    };
    for one in answer.as_array().map(Vec::as_slice).unwrap_or_default() {
        let mark = &one["mark"];
        notes.push(format!(
            "{}: the provider's RFC822.SIZE was not the length of {} new messages, and bodies changed their length \
             {} times, last on {}: true lengths are sent",
            show::text(&one["account"]),
            mark["sizes"],
            mark["bodies"],
            mark["last"].as_i64().map_or_else(|| "-".to_owned(), show::time),
        ));
    }
    answer
}

/// Who is asked about mail, and with which key.
fn models(config: &Config, notes: &mut Vec<String>, problems: &mut Vec<String>) {
    let Some(perception) = &config.perception else { return };
    for model in perception.models() {
        let server = format!("{}:{}", model.endpoint.host, model.endpoint.port);
        notes.push(format!("{}: gets the text of new mail at {server}", model.name));
        match &model.key {
            None => {}
            Some(KeySource::Env(name)) if std::env::var_os(name).is_none() => {
                problems.push(format!("{}: {name} is not set", model.name));
            }
            Some(KeySource::Env(name)) => notes.push(format!("{}: its key is {name} of the environment", model.name)),
            Some(KeySource::Secret(source)) => notes.push(format!("{}: its key is {}", model.name, secret(source))),
        }
    }
}

fn perception_json(perception: &Perception) -> Value {
    let one = |m: &ModelConfig| {
        let price = perception.prices.of(&m.model);
        json!({
            "name": m.name,
            "model": m.model,
            "endpoint": m.url,
            "server": format!("{}:{}", m.endpoint.host, m.endpoint.port),
            "timeout_ms": u64::try_from(m.timeout.as_millis()).unwrap_or(u64::MAX),
            "concurrency": m.concurrency,
            "input_price": price.map(|p| units(p.input)),
            "output_price": price.map(|p| units(p.output)),
        })
    };
    json!({
        "chain": perception.chain.iter().map(one).collect::<Vec<_>>(),
        "stronger": perception.stronger.as_ref().map(one),
        "stronger_below": perception.stronger_below,
        "deadline_ms": u64::try_from(perception.deadline.as_millis()).unwrap_or(u64::MAX),
        "rescore": perception.rescore,
        "budget_per_day": units(perception.limits.overall),
        "budget_per_account": units(perception.limits.account),
    })
}

/// Millionths as units.
fn units(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Where the signing key lies, and what that means.
fn identity(config: &Config, notes: &mut Vec<String>, problems: &mut Vec<String>) {
    let path = config.state_dir.join(IDENTITY_FILE);
    notes.push(format!(
        "receipts are signed with {}, which lies beside the data and is not wrapped: who can read that folder can sign",
        path.display()
    ));
    if let Ok(meta) = std::fs::metadata(&path)
        && meta.permissions().mode() & 0o077 != 0
    {
        problems.push(format!("{} can be used by others: chmod 600 it, and replace it if they did", path.display()));
    }
}

fn notes(config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    if config.listen.web.is_empty() {
        notes
            .push("listen.web is empty: there is no approval page, so nothing that is held can be approved".to_owned());
    }
    if let Some(notify) = &config.notify {
        for url in notify.webhook.iter().chain(&notify.ntfy) {
            notes.push(format!("{} is told how many messages wait, and nothing else", url.authority));
        }
        if let Some(program) = notify.command.first() {
            notes.push(format!("{program} is run with the number of messages that wait"));
        }
    }
    for account in &config.accounts {
        match &account.provider {
            Provider::Embedded => notes.push(format!(
                "{}: sample mail; its keys and PIN are known to everybody and open no other account",
                account.address
            )),
            Provider::Network(network) => {
                notes.push(format!("{}: the provider password is {}", account.address, secret(&network.secret)));
            }
        }
        if account.authserv.is_empty() && !matches!(account.provider, Provider::Embedded) {
            notes.push(format!(
                "{}: authserv is empty, so authentication of mail counts as unavailable",
                account.address
            ));
        }
    }
    notes
}

fn secret(source: &SecretSource) -> String {
    match source {
        SecretSource::Inline(_) => "in the configuration itself, not wrapped".to_owned(),
        SecretSource::File(path) => format!("the first line of {}, not wrapped", path.display()),
        SecretSource::Command(argv) => {
            format!("what {} prints, asked for when it is needed", argv.first().map_or("", String::as_str))
        }
        SecretSource::Login => "stored nowhere: people sign in with it themselves (auth = \"login\"), so there are no \
                                keys, no agents and no held mail"
            .to_owned(),
    }
}

fn hold_name(mode: HoldMode) -> &'static str {
    match mode {
        HoldMode::Ai => "ai",
        HoldMode::External => "external",
        HoldMode::All => "all",
    }
}

fn sent_name(sent: SentCopy) -> &'static str {
    match sent {
        SentCopy::Provider => "provider",
        SentCopy::Append => "append",
        SentCopy::Off => "off",
    }
}

fn preset_name(preset: LanePreset) -> &'static str {
    match preset {
        LanePreset::Calm => "calm",
        LanePreset::Focus => "focus",
        LanePreset::Folders => "folders",
        LanePreset::Shadow => "shadow",
    }
}

fn endpoint(e: &Endpoint) -> String {
    let tls = match e.tls {
        TlsMode::Implicit => "TLS",
        TlsMode::StartTls => "STARTTLS",
        TlsMode::None => "no TLS",
    };
    format!("{}:{} ({tls})", e.host, e.port)
}

fn account_json(account: &AccountConfig) -> Value {
    let mut value = json!({
        "address": account.address.to_string(),
        "aliases": account.aliases.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "lanes": preset_name(account.lanes),
        "timezone": account.timezone,
        "authserv": account.authserv,
        "poll_seconds": account.poll.as_secs(),
        "connections": account.connections,
        "sent": sent_name(account.sent),
    });
    match &account.provider {
        Provider::Embedded => value["provider"] = json!("embedded"),
        Provider::Network(n) => {
            value["provider"] = json!("imap");
            value["imap"] = json!(endpoint(&n.imap));
            value["imap_user"] = json!(n.imap_user);
            value["auth"] = json!(if account.stores_secret() { "stored" } else { "login" });
            value["smtp"] = json!(endpoint(&n.smtp));
            value["smtp_user"] = json!(n.smtp_user);
        }
    }
    value
}

fn said(report: &Value) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{:<14}{value}", format!("{name}:")));
    line("file", show::text(&report["file"]));
    line("running", if report["running"] == true { "yes".to_owned() } else { "no".to_owned() });
    line("state", show::text(&report["state_dir"]));
    if let Some(path) = report["certificate"]["path"].as_str() {
        line("certificate", show::visible(path));
        line("  SHA-256", show::text(&report["certificate"]["sha256"]));
        line("  ends", report["certificate"]["not_after"].as_i64().map_or_else(|| "-".to_owned(), show::time));
    }
    for (name, what) in [
        ("imaps", "IMAP, TLS"),
        ("submissions", "submit, TLS"),
        ("imap_starttls", "IMAP, STARTTLS"),
        ("submission_starttls", "submit, STARTTLS"),
        ("imap_plain", "IMAP, plain"),
        ("smtp_plain", "submit, plain"),
        ("web", "web"),
    ] {
        if report["listen"][name].as_array().is_some_and(|l| !l.is_empty()) {
            line(what, show::text(&report["listen"][name]));
        }
    }
    let proof = match report["approval"].as_str() {
        Some("passkey") => "passkey",
        Some("link") => "the notice's link alone, or PIN,",
        _ => "PIN",
    };
    line("approval", format!("by {proof} at {}", show::text(&report["web_url"])));
    line(
        "hold",
        format!(
            "\"{}\", {} h; a receipt covers {} h",
            show::text(&report["hold"]),
            report["hold_ttl_hours"],
            report["receipt_hours"]
        ),
    );
    let perception = &report["perception"];
    if perception.is_null() {
        line("models", "none: the offline scorer judges mail".to_owned());
    } else {
        let told = |m: &Value| {
            format!(
                "{}: {} at {}, {} ms, {} at a time, {} and {} for a million tokens",
                show::text(&m["name"]),
                show::text(&m["model"]),
                show::text(&m["server"]),
                m["timeout_ms"],
                m["concurrency"],
                m["input_price"],
                m["output_price"]
            )
        };
        for (n, model) in perception["chain"].as_array().into_iter().flatten().enumerate() {
            line(&format!("model {}", n + 1), told(model));
        }
        if !perception["stronger"].is_null() {
            line(
                "stronger",
                format!("{} (below confidence {})", told(&perception["stronger"]), perception["stronger_below"]),
            );
        }
        let later = if perception["rescore"] == true { ", later answers move mail" } else { "" };
        line(
            "  in all",
            format!(
                "deadline {} ms{later}; budget {} a day, {} for each account",
                perception["deadline_ms"], perception["budget_per_day"], perception["budget_per_account"]
            ),
        );
    }
    for account in report["accounts"].as_array().into_iter().flatten() {
        line("account", show::text(&account["address"]));
        line("  provider", show::text(&account["provider"]));
        for (key, what) in [("imap", "  IMAP"), ("smtp", "  submission")] {
            if let Some(server) = account[key].as_str() {
                line(
                    what,
                    format!("{} as {}", show::visible(server), show::text(&account[format!("{key}_user").as_str()])),
                );
            }
        }
        line("  lanes", format!("{}, times in {}", show::text(&account["lanes"]), show::text(&account["timezone"])));
    }
    for note in report["notes"].as_array().into_iter().flatten() {
        line("note", show::text(note));
    }
    lines.join("\n")
}
