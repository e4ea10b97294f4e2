//! What the provider says about the sender's domain (RFC 8601), and whether
//! the sender pretends to be someone else.
//!
//! Promises: only fields of the account's own authserv-ids are believed, and
//! of those only the topmost run: a sender can add fields below it, not above.
//! Doesn't know: DNS; it checks nothing itself.

use super::Sender;
use super::fields::Fields;
use crate::lane::{Authentication, Context};

/// Domains at which anyone can have an address.
const FREE_MAIL: &[&str] = &[
    "gmail.com",
    "googlemail.com",
    "outlook.com",
    "hotmail.com",
    "live.com",
    "msn.com",
    "yahoo.com",
    "yahoo.co.jp",
    "ymail.com",
    "icloud.com",
    "me.com",
    "aol.com",
    "gmx.de",
    "gmx.net",
    "gmx.com",
    "web.de",
    "t-online.de",
    "mail.com",
    "proton.me",
    "protonmail.com",
    "orange.fr",
    "wanadoo.fr",
    "free.fr",
    "laposte.net",
    "naver.com",
    "daum.net",
    "hanmail.net",
    "nate.com",
    "kakao.com",
    "qq.com",
    "163.com",
    "126.com",
    "sina.com",
    "foxmail.com",
    "yandex.ru",
    "yandex.com",
    "mail.ru",
    "terra.es",
    "hotmail.es",
    "hotmail.fr",
    "docomo.ne.jp",
    "ezweb.ne.jp",
    "softbank.ne.jp",
    "zoho.com",
    "tutanota.com",
    "fastmail.com",
    "freemail.example",
];

/// Whether anyone can have an address there.
pub(super) fn is_free_mail(domain: &str) -> bool {
    FREE_MAIL.contains(&domain)
}

/// One method's result: the method, its result, and its properties.
struct Outcome {
    method: String,
    result: String,
    properties: Vec<(String, String)>,
}

/// Fields that providers write between their Authentication-Results: Fastmail
/// the first, iCloud the others.
const BETWEEN: [&str; 3] = ["X-ME-Authentication-Results", "X-DMARC-Info", "X-DMARC-Policy"];

/// Whether a configured name is this authserv-id: exactly, or by `*.` and the
/// domain that the provider's many servers share.
fn is_authserv(configured: &str, id: &str) -> bool {
    match configured.strip_prefix("*.") {
        None => configured.eq_ignore_ascii_case(id),
        Some(domain) => {
            let host = id.len().checked_sub(domain.len() + 1).filter(|n| *n > 0);
            host.and_then(|n| Some((id.get(n..=n)?, id.get(n + 1..)?)))
                .is_some_and(|(dot, rest)| dot == "." && rest.eq_ignore_ascii_case(domain))
        }
    }
}

/// The provider's verdict on the sender's domain.
pub(super) fn authentication(fields: &Fields<'_>, authserv: &[String], sender: Option<&Sender>) -> Authentication {
    let trusted = |value: &str| {
        let id = strip_comments(value);
        let id = id.split(';').next().unwrap_or_default().split_whitespace().next().unwrap_or_default().to_owned();
        !id.is_empty() && authserv.iter().any(|a| is_authserv(a, &id))
    };
    let run = fields.first_run("Authentication-Results", &BETWEEN, trusted);
    if run.is_empty() {
        return Authentication::Unavailable;
    }
    let Some(sender) = sender else { return Authentication::NotAligned };
    // A method counts in the topmost field that has it: where nothing of the
    // provider's stands below the run, the sender's own fields may begin.
    let mut seen: Vec<Outcome> = Vec::new();
    for field in &run {
        let new: Vec<Outcome> =
            outcomes(field).into_iter().filter(|o| !seen.iter().any(|s| s.method == o.method)).collect();
        seen.extend(new);
    }
    let outcomes = seen;
    judge(&outcomes, &sender.address.domain)
}

fn judge(outcomes: &[Outcome], from: &str) -> Authentication {
    let of = |method: &'static str| outcomes.iter().filter(move |o| o.method == method);
    // DMARC (RFC 7489 §11.1) has looked at alignment already.
    let dmarc_for_from = |o: &&Outcome| o.property("header.from").is_none_or(|d| d.eq_ignore_ascii_case(from));
    if of("dmarc").filter(dmarc_for_from).any(|o| o.result == "pass") {
        return Authentication::Authenticated;
    }
    if of("dmarc").any(|o| o.result == "fail") {
        return Authentication::Failed;
    }
    let dkim =
        of("dkim").any(|o| o.result == "pass" && o.domain(&["header.d", "header.i"]).is_some_and(|d| aligned(d, from)));
    let spf = of("spf")
        .any(|o| o.result == "pass" && o.domain(&["smtp.mailfrom", "smtp.helo"]).is_some_and(|d| aligned(d, from)));
    if dkim || spf {
        return Authentication::Authenticated;
    }
    let undecided = |o: &Outcome| matches!(o.result.as_str(), "temperror" | "none" | "neutral" | "policy");
    if outcomes.iter().any(|o| o.result == "temperror") && outcomes.iter().all(undecided) {
        return Authentication::Unavailable;
    }
    let bad = |method| of(method).any(|o| matches!(o.result.as_str(), "fail" | "hardfail" | "permerror"));
    if bad("dkim") && (bad("spf") || of("spf").next().is_none()) || bad("spf") && of("dkim").all(|o| o.result != "pass")
    {
        return Authentication::Failed;
    }
    Authentication::NotAligned
}

impl Outcome {
    fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    fn domain(&self, names: &[&str]) -> Option<&str> {
        let value = names.iter().find_map(|n| self.property(n))?;
        Some(value.rsplit('@').next().unwrap_or(value))
    }
}

/// Relaxed alignment: the same organisational domain (RFC 7489 §3.1).
pub(super) fn aligned(a: &str, b: &str) -> bool {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    a == b || organisation(&a).is_some_and(|o| organisation(&b) == Some(o))
}

/// The registrable domain.
pub(super) fn organisation(domain: &str) -> Option<&str> {
    psl::domain_str(domain)
}

fn outcomes(value: &str) -> Vec<Outcome> {
    let clean = strip_comments(value);
    clean.split(';').skip(1).filter_map(one_outcome).collect()
}

fn one_outcome(text: &str) -> Option<Outcome> {
    let mut tokens = text.split_whitespace();
    let (method, result) = tokens.next()?.split_once('=')?;
    let properties = tokens
        .filter_map(|t| t.split_once('='))
        .map(|(k, v)| (k.to_ascii_lowercase(), v.trim_matches('"').to_owned()))
        .collect();
    let method = method.split('/').next().unwrap_or(method).to_ascii_lowercase();
    Some(Outcome { method, result: result.to_ascii_lowercase(), properties })
}

/// Comments may hold anything, a semicolon or a "pass" among it.
fn strip_comments(value: &str) -> String {
    let (mut depth, mut quoted) = (0u32, false);
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' if depth == 0 => {
                quoted = !quoted;
                out.push(c);
            }
            '(' if !quoted => depth += 1,
            ')' if !quoted && depth > 0 => depth -= 1,
            // A semicolon inside quotes separates nothing.
            ';' if quoted => {}
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// Whether the sender is likely not who the From says, and why.
pub(super) fn spoofed(
    sender: Option<&Sender>,
    from_disagrees: bool,
    context: &Context,
    own_domains: &[&str],
) -> Option<&'static str> {
    if context.authentication == Authentication::Failed {
        return Some("authentication failed");
    }
    if from_disagrees {
        return Some("two From fields that disagree");
    }
    let sender = sender?;
    if names_another_address(sender) {
        return Some("the display name is another address");
    }
    let authenticated = context.authentication == Authentication::Authenticated;
    let own = sender.address.canonical();
    let domain = sender.address.domain.as_str();
    let borrowed = context.known_names.iter().any(|k| {
        let theirs = k.address.rsplit('@').next().unwrap_or_default();
        same_name(&k.name, &sender.display)
            && k.address != own
            && (!authenticated || is_free_mail(domain) || looks_alike(domain, theirs))
    });
    // One who is known by both addresses borrows nothing.
    if borrowed && !context.is_known() {
        return Some("a known name on another address");
    }
    let imitates = own_domains.iter().any(|d| looks_alike(domain, d)) && !context.is_known();
    imitates.then_some("a domain that imitates the account's own")
}

/// "boss@example.org" <someone@else.example>
fn names_another_address(sender: &Sender) -> bool {
    let shown = sender.display.trim();
    shown.split_whitespace().filter(|w| w.contains('@')).any(|w| {
        let w = w.trim_matches(|c: char| !c.is_alphanumeric());
        crate::mail::address::Address::parse(w)
            .is_ok_and(|a| a.domain.contains('.') && !aligned(&a.domain, &sender.address.domain))
    })
}

/// Whether two display names look the same.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    let shown = skeleton(b);
    !shown.is_empty() && skeleton(a) == shown
}

/// A text as it looks: case, blanks, marks and common stand-ins removed.
pub(crate) fn skeleton(text: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    let mut out = String::new();
    for c in text.nfkd().flat_map(char::to_lowercase) {
        out.push(match c {
            'а' | 'α' => 'a',
            'е' | 'ε' => 'e',
            'о' | 'ο' | '0' => 'o',
            'р' | 'ρ' => 'p',
            'с' => 'c',
            'у' => 'y',
            'х' => 'x',
            'і' | 'ı' | '1' | '|' => 'l',
            'i' => 'l',
            'ѕ' | '5' => 's',
            c if c.is_alphanumeric() => c,
            _ => continue,
        });
    }
    out.replace("rn", "m").replace("vv", "w")
}

/// A different domain that a reader could take for the other.
fn looks_alike(domain: &str, original: &str) -> bool {
    if domain == original || aligned(domain, original) {
        return false;
    }
    let unicode = |d: &str| idna::domain_to_unicode(d).0;
    let (a, b) = (unicode(domain), unicode(original));
    let label = |d: &str| {
        let whole = organisation(d).unwrap_or(d).to_owned();
        whole.split('.').next().unwrap_or_default().to_owned()
    };
    // The same label under another top-level domain is common and no imitation.
    if label(&a).eq_ignore_ascii_case(&label(&b)) {
        return false;
    }
    let (a, b) = (skeleton(&label(&a)), skeleton(&label(&b)));
    // Short labels differ by one letter all the time.
    const LEAST_LABEL: usize = 5;
    a.len() >= LEAST_LABEL && b.len() >= LEAST_LABEL && (a == b || a.contains(&b) || within_one(&a, &b))
}

/// At most one character inserted, dropped, changed or swapped with its neighbour.
fn within_one(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (short, long) = if a.len() <= b.len() { (&a, &b) } else { (&b, &a) };
    let same = short.iter().zip(long).take_while(|(x, y)| x == y).count();
    match long.len() - short.len() {
        0 => {
            let rest = |n: usize| short.get(same + n..) == long.get(same + n..);
            let swapped =
                same + 1 < short.len() && short[same] == long[same + 1] && short[same + 1] == long[same] && rest(2);
            same == short.len() || rest(1) || swapped
        }
        1 => short[same..] == long[same + 1..],
        _ => false,
    }
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
