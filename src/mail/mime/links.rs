//! Where a link leads, and where it says that it leads.

use super::html::Link;

/// The host of a link in lower case, user and port left out.
pub(super) fn host(target: &str) -> Option<String> {
    let target: String = target.chars().filter(|c| !c.is_control()).collect();
    let rest = target.split_once("://").map(|(_, r)| r).or_else(|| target.strip_prefix("//"))?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = host.split(':').next()?.trim_end_matches('.');
    (!host.is_empty()).then(|| host.to_lowercase())
}

/// Whether the words on a link name another host than its target.
pub(super) fn leads_elsewhere(link: &Link) -> bool {
    let Some(target) = host(&link.target) else { return false };
    let bare = |h: String| h.strip_prefix("www.").map_or(h.clone(), str::to_owned);
    let said = link.text.split_whitespace().find_map(|w| {
        let w = w.trim_matches(|c: char| "<>()[]\"'.,;:!".contains(c));
        let candidate = host(w).or_else(|| host(&format!("https://{w}")))?;
        let (_, last) = candidate.rsplit_once('.')?;
        let looks = last.len() >= 2 && last.chars().all(char::is_alphabetic) && !w.contains('@');
        looks.then_some(candidate)
    });
    let ascii = |h: String| idna::domain_to_ascii(&h).unwrap_or(h);
    said.is_some_and(|s| bare(ascii(s)) != bare(ascii(target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_what_follows_user_and_scheme() {
        assert_eq!(host("https://bank.example@evil.example:8/x").as_deref(), Some("evil.example"));
        assert_eq!(host("HTTP://A.Example./?q").as_deref(), Some("a.example"));
        assert_eq!(host("//x.example\\y").as_deref(), Some("x.example"));
        assert_eq!(host("mailto:a@b.example"), None);
    }

    #[test]
    fn a_link_that_names_another_host_leads_elsewhere() {
        let link = |target: &str, text: &str| Link { target: target.into(), text: text.into() };
        for (target, text) in [
            ("https://evil.example", "bank.example"),
            ("https://bank.example.evil.example/", "https://bank.example/"),
            ("https://bank.example@evil.example/", "www.bank.example"),
            ("https://xn--bcher-kva.example", "bucher.example"),
        ] {
            assert!(leads_elsewhere(&link(target, text)), "{target} {text}");
        }
        for (target, text) in [
            ("https://www.example.org/a", "example.org/b"),
            ("https://example.org", "click here"),
            ("https://example.org", "ada@example.com"),
            ("https://xn--bcher-kva.example", "bücher.example"),
            ("https://example.org", "version 1.2"),
        ] {
            assert!(!leads_elsewhere(&link(target, text)), "{target} {text}");
        }
    }
}
