//! `[notify]`: who is told, outside of mail, that something waits.

use super::sections::loopback_host;
use super::table::{Found, Section};
use super::{ApprovalMode, Endpoint, Notify, NotifyUrl, TlsMode};

/// Longest URL.
const MAX_URL: usize = 2000;

/// Everything under `[notify]`; `None` where nothing is.
pub(super) fn notify(mut table: Section<'_, '_>, approval: Option<ApprovalMode>) -> Option<Notify> {
    let webhook = url(&mut table, "webhook", approval);
    let ntfy = url(&mut table, "ntfy", approval);
    let command = table.list("command");
    if let Some(found) = &command
        && found.value.first().is_none_or(String::is_empty)
    {
        table.source().problem(&found.at, "needs a program, then its arguments: [\"notify-send\", \"Tollgate\"]");
    }
    let command = command.map(|f| f.value).unwrap_or_default();
    table.finish();
    let any = webhook.is_some() || ntfy.is_some() || !command.is_empty();
    any.then_some(Notify { webhook, ntfy, command })
}

/// Whether whoever has a notice's link can approve by it alone.
fn link_is_enough(mode: ApprovalMode) -> bool {
    match mode {
        ApprovalMode::Pin | ApprovalMode::Passkey => false,
        ApprovalMode::Link => true,
    }
}

fn url(table: &mut Section<'_, '_>, key: &'static str, approval: Option<ApprovalMode>) -> Option<NotifyUrl> {
    let Found { value, at } = table.filled(key)?;
    if approval.is_some_and(link_is_enough) {
        table.source().problem(&at, "can't be used with approval.require = \"link\"; use \"pin\" or \"passkey\"");
    }
    match parse_url(&value) {
        Ok(url) => Some(url),
        Err(why) => {
            table.source().problem(&at, why);
            None
        }
    }
}

/// A URL of a server that is told or asked something: HTTPS, or HTTP on this
/// machine.
pub(super) fn parse_url(text: &str) -> Result<NotifyUrl, &'static str> {
    let (rest, tls) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => (rest, TlsMode::Implicit),
        (None, Some(rest)) => (rest, TlsMode::None),
        (None, None) => return Err("must start with https:// (or http:// for this machine)"),
    };
    if text.len() > MAX_URL || !text.bytes().all(|b| b.is_ascii_graphic()) || text.contains('#') {
        return Err("must be a URL in printable ASCII, without a fragment");
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains('@') {
        return Err("must not hold a user name or password; put a token into the path");
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let usual = if tls == TlsMode::Implicit { 443 } else { 80 };
    let port = port.map_or(Ok(usual), |p| p.parse::<u16>().map_err(|_| "has a port that is no number"))?;
    if host.is_empty() || port == 0 {
        return Err("names no host and port");
    }
    if tls == TlsMode::None && !loopback_host(host) {
        return Err("must be https://: without TLS only this machine may be told");
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let endpoint = Endpoint { host: host.to_owned(), port, tls, ca: None };
    Ok(NotifyUrl { endpoint, authority: authority.to_owned(), path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_or_refused() {
        let url = parse_url("https://ntfy.example.com/topic?x=1").unwrap();
        assert_eq!(
            (url.endpoint.port, url.path.as_str(), url.authority.as_str()),
            (443, "/topic?x=1", "ntfy.example.com")
        );
        let url = parse_url("http://[::1]:8080").unwrap();
        assert_eq!((url.endpoint.host.as_str(), url.endpoint.port, url.path.as_str()), ("::1", 8080, "/"));
        for wrong in [
            "ntfy.example.com",
            "http://example.com/",
            "https://u:p@example.com/",
            "https:///x",
            "https://h:0/",
            "https://h/a b",
            "https://h/\r\nX: y",
            "ftp://h/",
            "https://h/#a",
        ] {
            assert!(parse_url(wrong).is_err(), "{wrong}");
        }
    }
}
