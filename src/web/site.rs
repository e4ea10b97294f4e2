//! The one name that the pages answer to.

/// Scheme, host and port, as they must stand in Host and Origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// `http://localhost:3480`: the only Origin that is accepted.
    pub origin: String,
    /// `localhost:3480`: the only Host that is accepted.
    pub authority: String,
    /// Whether cookies may be limited to TLS.
    pub https: bool,
}

impl Site {
    /// From `web_url` of the configuration; a port 0 there stands for `port`.
    pub fn of(web_url: &str, port: Option<u16>) -> Site {
        let trimmed = web_url.trim_end_matches('/');
        let origin = match (trimmed.strip_suffix(":0"), port) {
            (Some(base), Some(port)) => format!("{base}:{port}"),
            _ => trimmed.to_owned(),
        };
        let authority = origin.split_once("://").map_or(origin.as_str(), |(_, a)| a).to_owned();
        let https = origin.starts_with("https://");
        Site { origin, authority, https }
    }

    /// What passkeys are bound to (WebAuthn's relying party): the host name.
    pub fn rp_id(&self) -> &str {
        crate::config::web_host(&self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_origin_come_from_one_address() {
        let site = Site::of("http://localhost:3480", Some(9));
        assert_eq!((site.origin.as_str(), site.authority.as_str()), ("http://localhost:3480", "localhost:3480"));
        assert_eq!(Site::of("http://localhost:0", Some(41)).origin, "http://localhost:41");
        assert!(Site::of("https://mail.example.org/", None).https);
        assert_eq!(Site::of("https://mail.example.org", None).rp_id(), "mail.example.org");
        assert_eq!(Site::of("http://localhost:0", Some(41)).rp_id(), "localhost");
    }
}
