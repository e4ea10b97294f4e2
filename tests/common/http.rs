//! A browser that does only what it is told.

use super::wire::Wire;

/// A page.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Page {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The value of the first input of this name, after `after`.
    #[track_caller]
    pub(crate) fn input(&self, after: &str, name: &str) -> String {
        let text = self.text();
        let from = text.find(after).unwrap_or_else(|| panic!("no {after} on the page:\n{text}"));
        let wanted = format!("name=\"{name}\"");
        let tag = text[from..].split('<').find(|tag| tag.starts_with("input") && tag.contains(&wanted));
        let value = tag.and_then(|t| t.split('>').next()?.split(" value=\"").nth(1)?.split('"').next());
        value.unwrap_or_else(|| panic!("no input {name} after {after} on the page:\n{text}")).to_owned()
    }
}

/// A browser at one of our web faces.
#[derive(Debug, Clone)]
pub(crate) struct Browser {
    port: u16,
    /// What it sends as Host.
    pub(crate) host: String,
    /// What it sends as Origin with a POST.
    pub(crate) origin: String,
    pub(crate) cookie: Option<String>,
}

impl Browser {
    pub(crate) fn new(port: u16) -> Browser {
        let host = format!("localhost:{port}");
        Browser { port, origin: format!("http://{host}"), host, cookie: None }
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Page {
        self.request("GET", path, &[], "")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, form: &[(&str, &str)]) -> Page {
        let body: Vec<String> = form.iter().map(|(n, v)| format!("{}={}", encoded(n), encoded(v))).collect();
        let fields = [("Origin", self.origin.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        self.request("POST", path, &fields, &body.join("&"))
    }

    /// One request on a connection of its own.
    #[track_caller]
    pub(crate) fn request(&self, method: &str, path: &str, fields: &[(&str, &str)], body: &str) -> Page {
        let mut wire = Wire::connect(self.port);
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.host);
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(cookie) = &self.cookie {
            head.push_str(&format!("Cookie: {cookie}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        wire.send(format!("{head}\r\n{body}"));
        parse(&wire.rest())
    }

    /// Signs in with the PIN.
    #[track_caller]
    pub(crate) fn sign_in(&mut self, account: &str, pin: &str) {
        let page = self.post("/sign-in", &[("account", account), ("pin", pin), ("next", "")]);
        assert_eq!(page.status, 303, "sign-in: {}", page.text());
        let cookie = page.field("set-cookie").expect("a cookie");
        self.cookie = cookie.split(';').next().map(str::to_owned);
    }

    /// Opens the page of a hold and approves what it shows.
    #[track_caller]
    pub(crate) fn approve(&self, hold: &str, pin: &str) -> Page {
        let path = format!("/held/{hold}");
        let page = self.get(&path);
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        let action = format!("{path}/approve");
        let of = |name: &str| page.input(&action, name);
        let (csrf, hash, nonce) = (of("csrf"), of("hash"), of("nonce"));
        self.post(&action, &[("pin", pin), ("csrf", &csrf), ("hash", &hash), ("nonce", &nonce)])
    }
}

fn parse(octets: &[u8]) -> Page {
    let end = super::mail::header_length(octets);
    let head = String::from_utf8_lossy(&octets[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no HTTP response: {head:?}"));
    let fields: Vec<(String, String)> = head
        .lines()
        .skip(1)
        .filter_map(|l| l.split_once(':'))
        .map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned()))
        .collect();
    let chunked = fields.iter().any(|(n, v)| n == "transfer-encoding" && v == "chunked");
    let body = if chunked { unchunked(&octets[end..]) } else { octets[end..].to_vec() };
    Page { status, fields, body }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(n) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&rest[..n]).ok().and_then(|s| usize::from_str_radix(s, 16).ok());
        let size = size.expect("a chunk has a size");
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[n + 2..n + 2 + size]);
        rest = &rest[n + 4 + size..];
    }
    body
}

fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}
