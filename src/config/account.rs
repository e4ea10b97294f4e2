//! `[[account]]`: one account and its provider.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::sections::{PRESETS, loopback_host};
use super::table::{Found, Origin, Section};
use super::{
    AccountConfig, EMBEDDED_ADDRESS, EMBEDDED_AUTHSERV, Endpoint, HoldMode, LanePreset, MIN_CONNECTIONS, Network,
    Provider, SecretSource, SentCopy, TlsMode, files,
};
use crate::mail::address::Address;

/// Default of `poll_seconds`.
const DEFAULT_POLL: Duration = Duration::from_secs(60);
/// Default of `connections`. Gmail takes 15 in all from every program of the
/// person.
const DEFAULT_CONNECTIONS: usize = 8;
/// Largest value of `connections`.
const MAX_CONNECTIONS: u64 = 100;
/// Default of `timezone`.
const DEFAULT_TIMEZONE: &str = "UTC";
/// Keys that mean something for a provider on the network only.
const NETWORK_KEYS: [&str; 9] =
    ["imap", "smtp", "imap_user", "smtp_user", "auth", "password", "password_file", "password_command", "ca"];
/// Keys that say a stored password.
const SECRET_KEYS: [&str; 3] = ["password", "password_file", "password_command"];

/// A protocol's well-known ports: implicit TLS, STARTTLS or none.
struct Ports {
    implicit: u16,
    starttls: u16,
    none: u16,
}

const IMAP_PORTS: Ports = Ports { implicit: 993, starttls: 143, none: 143 };
const SMTP_PORTS: Ports = Ports { implicit: 465, starttls: 587, none: 587 };

/// The embedded provider's account with nothing else said.
pub(super) fn embedded_account(lanes: LanePreset) -> AccountConfig {
    // EMBEDDED_ADDRESS has a local part and a domain.
    let (local, domain) = EMBEDDED_ADDRESS.split_once('@').unwrap_or_default();
    AccountConfig {
        address: Address { local: local.to_owned(), domain: domain.to_owned() },
        aliases: Vec::new(),
        provider: Provider::Embedded,
        lanes,
        timezone: DEFAULT_TIMEZONE.to_owned(),
        authserv: vec![EMBEDDED_AUTHSERV.to_owned()],
        poll: DEFAULT_POLL,
        connections: DEFAULT_CONNECTIONS,
        sent: SentCopy::Append,
    }
}

/// The accounts; those with problems are left out.
pub(super) fn accounts(tables: Vec<Section<'_, '_>>, preset: LanePreset, hold: Option<HoldMode>) -> Vec<AccountConfig> {
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    tables.into_iter().filter_map(|table| account(table, preset, hold, &mut owners)).collect()
}

fn account(
    mut table: Section<'_, '_>,
    preset: LanePreset,
    hold: Option<HoldMode>,
    owners: &mut BTreeMap<String, String>,
) -> Option<AccountConfig> {
    let address = table.required("address").and_then(|found| parse_address(&table, found));
    let aliases = aliases(&mut table);
    let name = address.as_ref().map_or_else(String::new, |(a, _)| a.canonical());
    for (address, at) in address.iter().chain(&aliases) {
        if let Some(other) = owners.insert(address.canonical(), name.clone()) {
            let whose = if other == name { "this account".to_owned() } else { format!("the account {other}") };
            table.source().problem(at, format!("{address} already belongs to {whose}"));
        }
    }
    let kinds = [("embedded", false), ("imap", true)];
    if !table.has("provider") {
        table.source().problem(&table.here(), "provider is missing: \"embedded\" or \"imap\"");
    }
    let provider = match table.word("provider", &kinds).map(|f| f.value) {
        Some(false) => embedded(&mut table, address.as_ref()),
        Some(true) => network(&mut table, &name, hold),
        None => {
            for key in NETWORK_KEYS {
                table.has(key);
            }
            None
        }
    };
    let timezone = timezone(&mut table);
    let authserv = table.list("authserv").map(|f| f.value).unwrap_or_default();
    let poll = table.whole("poll_seconds", 5..=3600).map_or(DEFAULT_POLL, |f| Duration::from_secs(f.value));
    let connections = table
        .whole("connections", MIN_CONNECTIONS as u64..=MAX_CONNECTIONS)
        .map_or(DEFAULT_CONNECTIONS, |f| usize::try_from(f.value).unwrap_or(DEFAULT_CONNECTIONS));
    let lanes = table.word("lanes", &PRESETS).map_or(preset, |f| f.value);
    let kinds = [("provider", SentCopy::Provider), ("append", SentCopy::Append), ("off", SentCopy::Off)];
    let usual = match &provider {
        Some(Provider::Network(network)) => SentCopy::of(&network.smtp.host),
        Some(Provider::Embedded) | None => SentCopy::Append,
    };
    let sent = table.word("sent", &kinds).map_or(usual, |f| f.value);
    table.finish();
    let (address, _) = address?;
    let aliases = aliases.into_iter().map(|(a, _)| a).collect();
    Some(AccountConfig { address, aliases, provider: provider?, lanes, timezone, authserv, poll, connections, sent })
}

fn parse_address(table: &Section<'_, '_>, found: Found<String>) -> Option<(Address, Origin)> {
    match Address::parse(&found.value) {
        Ok(address) => Some((address, found.at)),
        Err(e) => {
            table.source().problem(&found.at, format!("\"{}\": {e}", found.value));
            None
        }
    }
}

fn aliases(table: &mut Section<'_, '_>) -> Vec<(Address, Origin)> {
    let Some(Found { value, at }) = table.list("aliases") else { return Vec::new() };
    value.into_iter().filter_map(|text| parse_address(table, Found { value: text, at: at.clone() })).collect()
}

fn timezone(table: &mut Section<'_, '_>) -> String {
    let Some(found) = table.filled("timezone") else { return DEFAULT_TIMEZONE.to_owned() };
    if jiff::tz::TimeZone::get(&found.value).is_err() {
        table.source().problem(&found.at, format!("\"{}\" is no IANA time zone, such as Europe/Berlin", found.value));
    }
    found.value
}

fn embedded(table: &mut Section<'_, '_>, address: Option<&(Address, Origin)>) -> Option<Provider> {
    for key in NETWORK_KEYS {
        if table.has(key) {
            let at = table.at(key);
            table.source().problem(&at, "means nothing for the embedded provider");
        }
    }
    if let Some((address, at)) = address
        && address.canonical() != EMBEDDED_ADDRESS
    {
        table.source().problem(at, format!("the embedded provider's account is {EMBEDDED_ADDRESS} and no other"));
    }
    Some(Provider::Embedded)
}

fn network(table: &mut Section<'_, '_>, address: &str, hold: Option<HoldMode>) -> Option<Provider> {
    let ca = table.path("ca");
    if let Some(found) = &ca {
        files::readable(table.source(), found);
    }
    let ca = ca.map(|f| f.value);
    let imap = endpoint(table.section("imap"), &IMAP_PORTS, ca.as_ref());
    let smtp = endpoint(table.section("smtp"), &SMTP_PORTS, ca.as_ref());
    let imap_user = table.filled("imap_user").map_or_else(|| address.to_owned(), |f| f.value);
    let smtp_user = table.filled("smtp_user").map_or_else(|| imap_user.clone(), |f| f.value);
    let secret = auth(table, hold);
    Some(Provider::Network(Box::new(Network { imap: imap?, imap_user, smtp: smtp?, smtp_user, secret: secret? })))
}

fn endpoint(mut table: Section<'_, '_>, ports: &Ports, ca: Option<&PathBuf>) -> Option<Endpoint> {
    if !table.present() {
        table.source().problem(&table.here(), "is missing: the server's host, port and tls");
        return None;
    }
    let host = table.required("host");
    let modes = [("implicit", TlsMode::Implicit), ("starttls", TlsMode::StartTls), ("none", TlsMode::None)];
    let tls = table.word("tls", &modes).map_or(TlsMode::Implicit, |f| f.value);
    let default = match tls {
        TlsMode::Implicit => ports.implicit,
        TlsMode::StartTls => ports.starttls,
        TlsMode::None => ports.none,
    };
    let port = table.whole("port", 1..=65535).map_or(default, |f| u16::try_from(f.value).unwrap_or(default));
    if let Some(found) = &host {
        if found.value.contains([' ', '/', '@'])
            || (found.value.contains(':') && found.value.parse::<std::net::IpAddr>().is_err())
        {
            table.source().problem(&found.at, "must be a host name or an address; the port is a key of its own");
        }
        if tls == TlsMode::None && !loopback_host(&found.value) {
            let at = table.at("tls");
            table
                .source()
                .problem(&at, "\"none\" is for loopback hosts only: the password would cross the network unprotected");
        }
    }
    let own_ca = table.path("ca");
    if let Some(found) = &own_ca {
        files::readable(table.source(), found);
    }
    table.finish();
    Some(Endpoint { host: host?.value, port, tls, ca: own_ca.map(|f| f.value).or_else(|| ca.cloned()) })
}

/// How the gateway signs in: with a stored password, or with each session's
/// own login.
fn auth(table: &mut Section<'_, '_>, hold: Option<HoldMode>) -> Option<SecretSource> {
    let own = table.word("auth", &[("stored", false), ("login", true)]);
    match own {
        Some(Found { value: true, at }) => {
            for key in SECRET_KEYS {
                if table.has(key) {
                    let at = table.at(key);
                    let message =
                        "stands beside auth = \"login\", which stores no password: each session brings its own";
                    table.source().problem(&at, message);
                }
            }
            if let Some(mode @ (HoldMode::External | HoldMode::All)) = hold {
                let mode = if mode == HoldMode::All { "all" } else { "external" };
                let message = format!(
                    "\"login\" can't be used with hold.mode = \"{mode}\": what is held is sent later, with a stored \
                     password; use auth = \"stored\" or hold.mode = \"ai\""
                );
                table.source().problem(&at, message);
            }
            Some(SecretSource::Login)
        }
        Some(Found { value: false, .. }) => secret(table),
        // A word that isn't known is a problem of its own.
        None if table.has("auth") => {
            for key in SECRET_KEYS {
                table.has(key);
            }
            None
        }
        None => secret(table),
    }
}

fn secret(table: &mut Section<'_, '_>) -> Option<SecretSource> {
    let inline = table.filled("password");
    let file = table.path("password_file");
    let command = table.list("password_command");
    let count = SECRET_KEYS.into_iter().filter(|key| table.has(key)).count();
    if count != 1 {
        let message = "exactly one of password, password_file and password_command is needed, \
                       or auth = \"login\" where nothing may be stored";
        table.source().problem(&table.here(), message);
        return None;
    }
    if let Some(found) = inline {
        files::holder_of_secret(table.source(), &found.at);
        return Some(SecretSource::Inline(found.value));
    }
    if let Some(found) = file {
        files::readable_secret(table.source(), &found);
        return Some(SecretSource::File(found.value));
    }
    let found = command?;
    if found.value.first().is_none_or(String::is_empty) {
        table.source().problem(&found.at, "needs a program, then its arguments: [\"pass\", \"show\", \"mail\"]");
        return None;
    }
    Some(SecretSource::Command(found.value))
}
