//! Each section of the file into its typed values, with the rules between them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::account;
use super::load::{Env, user_state};
use super::table::{Found, Section};
use super::{AgentLimits, ApprovalMode, Config, HoldMode, LanePreset, Listen, Provider, Thresholds, TlsFiles, files};

/// Default of `[limits] max_message_bytes`: 50 MiB.
pub const DEFAULT_MAX_MESSAGE_BYTES: u64 = 50 * 1024 * 1024;
/// Default of `[limits] max_recipients`; RFC 5321 §4.5.3.1.8 asks for at least 100.
pub const DEFAULT_MAX_RECIPIENTS: usize = 100;
/// Default of `[limits] agent_bytes_per_day` (200 MiB).
const DEFAULT_AGENT_BYTES_PER_DAY: u64 = 200 * 1024 * 1024;
/// Default of `[limits] agent_commands_per_minute`.
const DEFAULT_AGENT_COMMANDS_PER_MINUTE: u64 = 600;
/// Default of `[limits] max_holds`.
pub const DEFAULT_MAX_HOLDS: usize = 10_000;
/// Default of `[limits] max_held_bytes_per_key` (200 MiB).
pub const DEFAULT_MAX_HELD_BYTES_PER_KEY: u64 = 200 * 1024 * 1024;
/// Default of `[limits] max_held_bytes` (2 GiB).
pub const DEFAULT_MAX_HELD_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Greatest value of both (1 TiB).
const MOST_HELD_BYTES: u64 = 1024 * 1024 * 1024 * 1024;
/// Default of `[limits] max_holds_per_key`.
pub const DEFAULT_MAX_HOLDS_PER_KEY: usize = 20;
/// Default of `[hold] ttl_hours`.
pub const DEFAULT_HOLD_TTL: Duration = Duration::from_secs(72 * 3600);
/// Default of `[hold] receipt_hours`.
pub const DEFAULT_RECEIPT_TTL: Duration = Duration::from_secs(24 * 3600);
/// Default port of IMAP over implicit TLS, on loopback.
pub const DEFAULT_IMAPS_PORT: u16 = 3993;
/// Default port of submission over implicit TLS, on loopback.
pub const DEFAULT_SUBMISSIONS_PORT: u16 = 3465;
/// Default port of the web face, on loopback.
pub const DEFAULT_WEB_PORT: u16 = 3480;

/// Names of the presets.
pub(super) const PRESETS: [(&str, LanePreset); 4] = [
    ("calm", LanePreset::Calm),
    ("focus", LanePreset::Focus),
    ("folders", LanePreset::Folders),
    ("shadow", LanePreset::Shadow),
];

/// Everything; `None` only where a problem was noted.
pub(super) fn config(mut top: Section<'_, '_>, env: &Env) -> Option<Config> {
    let state_dir = state_dir(&mut top, env);
    let certs_dir = top.path("certs_dir").map(|f| f.value).or_else(|| state_dir.as_ref().map(|d| d.join("certs")));
    let witness_file = top.path("witness_file").map(|f| f.value).or_else(|| state_dir.as_deref().map(witness_beside));
    outside(&top, state_dir.as_deref(), witness_file.as_deref());
    let hostname = hostname(&mut top);
    let listen = listen(top.section("listen"));
    let tls = tls(top.section("tls"));
    let approval = approval(top.section("approval"));
    let web_url = web(top.section("web"), &listen);
    approval_fits(&top, approval, &web_url, &listen);
    let (hold, hold_ttl, receipt_ttl) = hold(top.section("hold"));
    let limits = limits(top.section("limits"));
    let thresholds = rule(top.section("rule"));
    let notify = super::notify::notify(top.section("notify"), approval);
    let preset = lanes(top.section("lanes"));
    let tables = top.sections("account");
    if tables.is_empty() {
        top.source().note(None, "account", "at least one [[account]] is needed");
    }
    let accounts = account::accounts(tables, preset, hold);
    embedded_stays_here(&top, &listen, &accounts);
    top.finish();
    Some(Config {
        state_dir: state_dir?,
        witness_file: witness_file?,
        certs_dir: certs_dir?,
        hostname,
        listen,
        tls: tls?,
        approval: approval?,
        web_url,
        hold: hold?,
        hold_ttl,
        receipt_ttl,
        max_message_bytes: limits.message_bytes,
        max_recipients: limits.recipients,
        max_holds_per_key: limits.holds_per_key,
        max_holds: limits.holds,
        max_held_bytes_per_key: limits.held_bytes_per_key,
        max_held_bytes: limits.held_bytes,
        agent: limits.agent,
        thresholds,
        notify,
        accounts,
    })
}

/// `tollgate.witness` beside the state folder `tollgate`.
fn witness_beside(state_dir: &Path) -> PathBuf {
    let mut name = state_dir.file_name().unwrap_or_default().to_owned();
    name.push(".witness");
    state_dir.with_file_name(name)
}

/// A witness that is backed up with the state sees no restore.
fn outside(top: &Section<'_, '_>, state_dir: Option<&Path>, witness: Option<&Path>) {
    if let (Some(state), Some(witness)) = (state_dir, witness)
        && witness.starts_with(state)
    {
        top.source().note(None, "witness_file", "must be outside state_dir: it tells a restored state_dir");
    }
}

fn state_dir(top: &mut Section<'_, '_>, env: &Env) -> Option<PathBuf> {
    if top.has("state_dir") {
        return top.path("state_dir").map(|f| f.value);
    }
    let default = user_state(env);
    if default.is_none() {
        top.source().note(None, "state_dir", "is not set, and neither XDG_STATE_HOME nor HOME says where state lives");
    }
    default
}

fn hostname(top: &mut Section<'_, '_>) -> String {
    let Some(found) = top.filled("hostname") else { return "localhost".to_owned() };
    let label = |l: &str| {
        !l.is_empty()
            && l.len() <= 63
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !l.starts_with('-')
    };
    if found.value.len() > 253 || !found.value.split('.').all(label) {
        top.source().problem(&found.at, "must be a host name in ASCII letters, digits, hyphens and dots");
    }
    found.value
}

fn listen(mut table: Section<'_, '_>) -> Listen {
    let listen = Listen {
        imaps: addresses(&mut table, "imaps", Some(DEFAULT_IMAPS_PORT), Beyond::Tls),
        submissions: addresses(&mut table, "submissions", Some(DEFAULT_SUBMISSIONS_PORT), Beyond::Tls),
        imap_starttls: addresses(&mut table, "imap_starttls", None, Beyond::Tls),
        submission_starttls: addresses(&mut table, "submission_starttls", None, Beyond::Tls),
        imap_plain: addresses(&mut table, "imap_plain", None, Beyond::Never(PASSWORDS)),
        smtp_plain: addresses(&mut table, "smtp_plain", None, Beyond::Never(PASSWORDS)),
        web: addresses(&mut table, "web", Some(DEFAULT_WEB_PORT), Beyond::Never(PIN)),
    };
    let all = [
        &listen.imaps,
        &listen.submissions,
        &listen.imap_starttls,
        &listen.submission_starttls,
        &listen.imap_plain,
        &listen.smtp_plain,
        &listen.web,
    ];
    let mut seen = std::collections::HashSet::new();
    for address in all.into_iter().flatten().filter(|a| a.port() != 0) {
        if !seen.insert(address) {
            table.source().problem(&table.here(), format!("{address} is used twice"));
        }
    }
    table.finish();
    listen
}

const PASSWORDS: &str = "passwords would cross the network unprotected";
const PIN: &str = "this version's web face is plain HTTP, and the PIN would cross the network unprotected";

/// Whether a listener may be reached from other machines.
#[derive(Clone, Copy)]
enum Beyond {
    Tls,
    Never(&'static str),
}

/// `port` on both loopback addresses.
fn loopback(port: u16) -> Vec<SocketAddr> {
    vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]
}

fn addresses(table: &mut Section<'_, '_>, key: &'static str, default: Option<u16>, beyond: Beyond) -> Vec<SocketAddr> {
    if !table.has(key) {
        return default.map(loopback).unwrap_or_default();
    }
    let Some(Found { value, at }) = table.list(key) else { return Vec::new() };
    let mut list = Vec::new();
    for text in value {
        let Ok(address) = text.parse::<SocketAddr>() else {
            table
                .source()
                .problem(&at, format!("\"{text}\" is no address with a port, such as 127.0.0.1:3993 or [::1]:3993"));
            continue;
        };
        if let (Beyond::Never(why), false) = (beyond, address.ip().is_loopback()) {
            table.source().problem(&at, format!("{address} is not a loopback address; {why}"));
        }
        list.push(address);
    }
    list
}

/// `Some(None)` without own files; `None` beside a problem.
fn tls(mut table: Section<'_, '_>) -> Option<Option<TlsFiles>> {
    let (cert, key) = (table.path("cert"), table.path("key"));
    let source = table.source();
    let result = match (cert, key) {
        (None, None) => Some(None),
        (Some(cert), Some(key)) => {
            files::readable(source, &cert);
            files::readable_secret(source, &key);
            Some(Some(TlsFiles { cert: cert.value, key: key.value }))
        }
        (Some(found), None) => {
            source.problem(&found.at, "needs `tls.key` beside it");
            None
        }
        (None, Some(found)) => {
            source.problem(&found.at, "needs `tls.cert` beside it");
            None
        }
    };
    table.finish();
    result
}

fn approval(mut table: Section<'_, '_>) -> Option<ApprovalMode> {
    let modes = [ApprovalMode::Pin, ApprovalMode::Passkey, ApprovalMode::Link].map(|m| (m.method(), m));
    let mode = match table.has("require") {
        true => table.word("require", &modes).map(|f| f.value),
        false => Some(ApprovalMode::Pin),
    };
    table.finish();
    mode
}

/// Passkeys belong to a name (WebAuthn L3 §5.1.3: no address is a valid
/// domain); a link that is enough by itself must not leave this machine.
fn approval_fits(top: &Section<'_, '_>, mode: Option<ApprovalMode>, web_url: &str, listen: &Listen) {
    let host = web_host(web_url);
    match mode {
        Some(ApprovalMode::Passkey) if host.starts_with('[') || host.parse::<IpAddr>().is_ok() => {
            let message = format!("\"passkey\" needs a name in `web.url`, such as localhost; {host} is an address");
            top.source().note(None, "approval.require", message);
        }
        Some(ApprovalMode::Link) if listen.web.iter().any(|a| !a.ip().is_loopback()) || !loopback_host(host) => {
            let message = "\"link\" is for pages that only this machine reaches; use \"pin\" or \"passkey\"";
            top.source().note(None, "approval.require", message.to_owned());
        }
        Some(ApprovalMode::Pin | ApprovalMode::Passkey | ApprovalMode::Link) | None => {}
    }
}

/// The host of `web.url`, without scheme and port.
pub fn web_host(url: &str) -> &str {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// The link's first part. Without `web.url` it follows the first web
/// listener; port 0 there means the port that the system gives.
fn web(mut table: Section<'_, '_>, listen: &Listen) -> String {
    let port = listen.web.first().map_or(DEFAULT_WEB_PORT, SocketAddr::port);
    let url = match table.filled("url") {
        None => format!("http://localhost:{port}"),
        Some(found) => {
            if let Err(why) = check_url(&found.value) {
                table.source().problem(&found.at, why);
            }
            found.value
        }
    };
    table.finish();
    url
}

fn check_url(url: &str) -> Result<(), &'static str> {
    let Some(authority) = url.strip_prefix("http://") else {
        return Err("must start with http:// (this version serves the web face on loopback without TLS)");
    };
    if authority.contains(['/', '?', '#', '@']) {
        return Err("must end after the host and port, without a slash");
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    if port.is_some_and(|p| p.parse::<u16>().is_err()) {
        return Err("has a port that is no number");
    }
    if !loopback_host(host.trim_start_matches('[').trim_end_matches(']')) {
        return Err("must name localhost or a loopback address: this version serves the web face there only");
    }
    Ok(())
}

/// True for `localhost` and loopback addresses; resolves nothing.
pub fn loopback_host(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn hold(mut table: Section<'_, '_>) -> (Option<HoldMode>, Duration, Duration) {
    let modes = [("ai", HoldMode::Ai), ("external", HoldMode::External), ("all", HoldMode::All)];
    let mode = match table.has("mode") {
        true => table.word("mode", &modes).map(|f| f.value),
        false => Some(HoldMode::Ai),
    };
    let mut hours = |key, default: Duration| {
        table.whole(key, 1..=24 * 365).map_or(default, |f| Duration::from_secs(f.value * 3600))
    };
    let ttl = hours("ttl_hours", DEFAULT_HOLD_TTL);
    let receipt = hours("receipt_hours", DEFAULT_RECEIPT_TTL);
    table.finish();
    (mode, ttl, receipt)
}

/// `[limits]`.
struct Limits {
    message_bytes: u64,
    recipients: usize,
    holds_per_key: usize,
    holds: usize,
    held_bytes_per_key: u64,
    held_bytes: u64,
    agent: AgentLimits,
}

fn limits(mut table: Section<'_, '_>) -> Limits {
    let mut octets = |key, default: u64, range| table.whole(key, range).map_or(default, |f| f.value);
    let message_bytes = octets("max_message_bytes", DEFAULT_MAX_MESSAGE_BYTES, 64 * 1024..=1024 * 1024 * 1024);
    let held_bytes_per_key =
        octets("max_held_bytes_per_key", DEFAULT_MAX_HELD_BYTES_PER_KEY, 64 * 1024..=MOST_HELD_BYTES);
    let agent = AgentLimits {
        bytes_per_day: octets("agent_bytes_per_day", DEFAULT_AGENT_BYTES_PER_DAY, 1..=MOST_HELD_BYTES),
        commands_per_minute: octets("agent_commands_per_minute", DEFAULT_AGENT_COMMANDS_PER_MINUTE, 1..=1_000_000),
    };
    let held_bytes = octets("max_held_bytes", DEFAULT_MAX_HELD_BYTES, 64 * 1024..=MOST_HELD_BYTES);
    let mut count = |key, default: usize, most: u64| {
        // The range ends far below what a usize holds.
        table.whole(key, 1..=most).map_or(default, |f| usize::try_from(f.value).unwrap_or(default))
    };
    let recipients = count("max_recipients", DEFAULT_MAX_RECIPIENTS, 10_000);
    let holds_per_key = count("max_holds_per_key", DEFAULT_MAX_HOLDS_PER_KEY, 10_000);
    let holds = count("max_holds", DEFAULT_MAX_HOLDS, 1_000_000);
    table.finish();
    Limits { message_bytes, recipients, holds_per_key, holds, held_bytes_per_key, held_bytes, agent }
}

/// The keys of `[rule]`.
const RULE_KEYS: [&str; 8] = [
    "confidence_min",
    "push_urgency",
    "push_confidence",
    "stranger_urgency",
    "silent_trust",
    "silent_urgency",
    "silent_reversibility",
    "info_urgency",
];

fn rule(mut table: Section<'_, '_>) -> Thresholds {
    let default = Thresholds::default();
    let mut share = |key, default: f64| table.share(key).map_or(default, |f| f.value);
    let thresholds = Thresholds {
        confidence_min: share("confidence_min", default.confidence_min),
        push_urgency: share("push_urgency", default.push_urgency),
        push_confidence: share("push_confidence", default.push_confidence),
        stranger_urgency: share("stranger_urgency", default.stranger_urgency),
        silent_trust: share("silent_trust", default.silent_trust),
        silent_urgency: share("silent_urgency", default.silent_urgency),
        silent_reversibility: share("silent_reversibility", default.silent_reversibility),
        info_urgency: share("info_urgency", default.info_urgency),
    };
    for reason in thresholds.check().err().unwrap_or_default() {
        // Each reason starts with the key that it is about.
        let named = RULE_KEYS.into_iter().find_map(|key| {
            let rest = reason.strip_prefix("rule.")?.strip_prefix(key)?.strip_prefix(' ')?;
            Some((table.at(key), rest.to_owned()))
        });
        let (at, message) = named.unwrap_or_else(|| (table.here(), reason));
        table.source().problem(&at, message);
    }
    table.finish();
    thresholds
}

/// Listeners that may be reached from other machines.
fn under_tls(listen: &Listen) -> impl Iterator<Item = &SocketAddr> {
    [&listen.imaps, &listen.submissions, &listen.imap_starttls, &listen.submission_starttls].into_iter().flatten()
}

fn lanes(mut table: Section<'_, '_>) -> LanePreset {
    let preset = table.word("preset", &PRESETS).map_or(LanePreset::Calm, |f| f.value);
    table.finish();
    preset
}

/// The embedded account's keys are public, so it is for this machine only.
fn embedded_stays_here(top: &Section<'_, '_>, listen: &Listen, accounts: &[super::AccountConfig]) {
    if !accounts.iter().any(|a| matches!(a.provider, Provider::Embedded)) {
        return;
    }
    for address in under_tls(listen).filter(|a| !a.ip().is_loopback()) {
        let message =
            format!("{address} can be reached from other machines, and the embedded account's keys are public");
        top.source().note(None, "listen", message);
    }
}

impl Config {
    /// The embedded account alone, with state and certificates under `folder`,
    /// each TLS listener and the web face on a free port of 127.0.0.1: what
    /// the demo and tests run. Port 0 in `web_url` means the port that the
    /// web face got.
    pub fn embedded(folder: &std::path::Path) -> Config {
        let free: Vec<SocketAddr> = vec![(Ipv4Addr::LOCALHOST, 0).into()];
        Config {
            state_dir: folder.join("state"),
            witness_file: folder.join("state.witness"),
            certs_dir: folder.join("certs"),
            hostname: "localhost".to_owned(),
            listen: Listen {
                imaps: free.clone(),
                submissions: free.clone(),
                imap_starttls: free.clone(),
                submission_starttls: free.clone(),
                imap_plain: Vec::new(),
                smtp_plain: Vec::new(),
                web: free,
            },
            tls: None,
            approval: ApprovalMode::Pin,
            web_url: "http://localhost:0".to_owned(),
            hold: HoldMode::Ai,
            hold_ttl: DEFAULT_HOLD_TTL,
            receipt_ttl: DEFAULT_RECEIPT_TTL,
            max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES,
            max_recipients: DEFAULT_MAX_RECIPIENTS,
            max_holds_per_key: DEFAULT_MAX_HOLDS_PER_KEY,
            agent: AgentLimits {
                bytes_per_day: DEFAULT_AGENT_BYTES_PER_DAY,
                commands_per_minute: DEFAULT_AGENT_COMMANDS_PER_MINUTE,
            },
            max_holds: DEFAULT_MAX_HOLDS,
            max_held_bytes_per_key: DEFAULT_MAX_HELD_BYTES_PER_KEY,
            max_held_bytes: DEFAULT_MAX_HELD_BYTES,
            thresholds: Thresholds::default(),
            notify: None,
            accounts: vec![account::embedded_account(LanePreset::Folders)],
        }
    }
}
