//! Why a model gave no answer, told apart by status and body, and how long it
//! is left alone for that.
//!
//! Promises: total; a text of a server is cut and cleaned before it is kept.
//! Doesn't know: connections, the clock, other models.

use std::time::Duration;

use super::answer::shown;
use super::budget::Usage;

/// Rest of a model that doesn't exist (any more).
pub const GONE: Duration = Duration::from_secs(24 * 3600);
/// Rest where our key was refused, or nothing is left to spend there: a person
/// has to do something first.
pub const NEEDS_A_PERSON: Duration = Duration::from_secs(3600);
/// Rest where a limit was reached and nothing says until when.
pub const LIMITED: Duration = Duration::from_secs(30);
/// Longest rest that a server can ask for.
pub const MOST_LIMITED: Duration = Duration::from_secs(24 * 3600);
/// Rest of a server that failed or can't be reached.
pub const FAILED: Duration = Duration::from_secs(30);

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The key was refused (401, 403).
    Auth,
    /// Nothing is left to spend there (402, or the body says so).
    Credit,
    /// The model doesn't exist (404, 410, or the body says so).
    Gone,
    /// Too many calls (429).
    Rate,
    /// The server failed (5xx).
    Server,
    /// The request was refused (other 4xx).
    Refused,
    /// It wants us elsewhere (3xx), where we don't go.
    Redirected,
    /// Nothing answers there.
    Unreachable,
    /// No answer in time.
    Slow,
    /// The answer broke off.
    Cut,
    /// The answer is too large.
    Large,
    /// The answer isn't what was asked for.
    Invalid,
}

/// Every kind.
pub const KINDS: [Kind; 12] = [
    Kind::Auth,
    Kind::Credit,
    Kind::Gone,
    Kind::Rate,
    Kind::Server,
    Kind::Refused,
    Kind::Redirected,
    Kind::Unreachable,
    Kind::Slow,
    Kind::Cut,
    Kind::Large,
    Kind::Invalid,
];

impl Kind {
    /// The code in traces, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Auth => "auth",
            Kind::Credit => "credit",
            Kind::Gone => "gone",
            Kind::Rate => "rate",
            Kind::Server => "server",
            Kind::Refused => "refused",
            Kind::Redirected => "redirected",
            Kind::Unreachable => "unreachable",
            Kind::Slow => "slow",
            Kind::Cut => "cut",
            Kind::Large => "large",
            Kind::Invalid => "invalid",
        }
    }

    /// Whether only a person can mend it.
    pub fn is_loud(self) -> bool {
        match self {
            Kind::Auth | Kind::Credit | Kind::Gone | Kind::Redirected => true,
            Kind::Rate
            | Kind::Server
            | Kind::Refused
            | Kind::Unreachable
            | Kind::Slow
            | Kind::Cut
            | Kind::Large
            | Kind::Invalid => false,
        }
    }

    /// How long the model is left alone, where the server doesn't say. What
    /// may be about one message or one moment costs the next message nothing.
    pub fn rest(self) -> Option<Duration> {
        match self {
            Kind::Auth | Kind::Credit | Kind::Redirected => Some(NEEDS_A_PERSON),
            Kind::Gone => Some(GONE),
            Kind::Rate => Some(LIMITED),
            Kind::Server | Kind::Unreachable => Some(FAILED),
            Kind::Refused | Kind::Slow | Kind::Cut | Kind::Large | Kind::Invalid => None,
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", kind.name())]
pub struct Failure {
    /// What kind.
    pub kind: Kind,
    /// In words, one line; may quote the server.
    pub detail: String,
    /// How long the model is left alone.
    pub rest: Option<Duration>,
    /// Tokens that it cost all the same.
    pub usage: Option<Usage>,
}

impl Failure {
    /// A failure with the usual rest.
    pub fn new(kind: Kind, detail: &str) -> Failure {
        Failure { kind, detail: shown(detail), rest: kind.rest(), usage: None }
    }
}

/// When a server says that its limit ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reset<'a> {
    /// `Retry-After`: seconds or a date (RFC 9110 §10.2.3).
    pub retry_after: Option<&'a str>,
    /// `X-RateLimit-Reset`: seconds, or a time in seconds or milliseconds.
    pub limit_reset: Option<&'a str>,
}

impl Reset<'_> {
    /// The rest that it asks for at `now` (Unix seconds).
    fn rest(self, now: i64) -> Option<Duration> {
        let until = |at: i64| u64::try_from(at.saturating_sub(now)).ok();
        let after = self.retry_after.map(str::trim).and_then(|text| match text.parse::<f64>() {
            Ok(seconds) => (seconds.is_finite() && seconds >= 0.0).then_some(seconds.ceil() as u64),
            Err(_) => mail_parser::DateTime::parse_rfc822(text).and_then(|date| until(date.to_timestamp())),
        });
        let seconds = after.or_else(|| {
            let number = self.limit_reset?.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)?;
            match number {
                n if n > 1e11 => until((n / 1000.0) as i64),
                n if n > 1e8 => until(n as i64),
                n => Some(n.ceil() as u64),
            }
        })?;
        Some(Duration::from_secs(seconds).min(MOST_LIMITED))
    }
}

/// A status other than 200, with the start of its body.
pub fn of_status(status: u16, body: &str, reset: Reset<'_>, now: i64) -> Failure {
    let kind = kind_of(status, body);
    let mut failure = Failure::new(kind, &format!("{status} {}", message(body)));
    if matches!(kind, Kind::Rate | Kind::Server)
        && let Some(rest) = reset.rest(now)
    {
        failure.rest = Some(rest);
    }
    failure
}

/// The code and the message of an error, as servers usually put them.
fn message(body: &str) -> String {
    let Ok(v) = serde_json::from_str::<serde_json::Value>(body) else { return body.to_owned() };
    let error = if v["error"].is_null() { &v } else { &v["error"] };
    if let Some(text) = error.as_str() {
        return text.to_owned();
    }
    let part = |name: &str| match &error[name] {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Number(n) => n.to_string(),
        _ => String::new(),
    };
    let all = [part("code"), part("type"), part("message")];
    let words: Vec<&str> = all.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
    if words.is_empty() { body.to_owned() } else { words.join(": ") }
}

fn kind_of(status: u16, body: &str) -> Kind {
    let text = message(body).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| text.contains(w));
    let credit = says(&[
        "insufficient_quota",
        "insufficient quota",
        "insufficient credit",
        "insufficient balance",
        "insufficient_balance",
        "credit balance",
        "out of credits",
        "exceeded your current quota",
        "billing",
        "payment required",
    ]);
    let gone = says(&["model_not_found", "model not found", "decommissioned", "no longer available", "unknown model"])
        || (text.contains("model") && says(&["does not exist", "not found", "not exist", "has been removed"]));
    match status {
        402 => Kind::Credit,
        // Some servers say "quota" with any of these.
        400 | 403 | 429 if credit => Kind::Credit,
        404 | 410 => Kind::Gone,
        400 | 403 | 422 if gone => Kind::Gone,
        401 | 403 | 407 => Kind::Auth,
        429 => Kind::Rate,
        300..=399 => Kind::Redirected,
        408 | 425 | 500..=599 => Kind::Server,
        _ => Kind::Refused,
    }
}

/// Whether a refusal is about the form of answers that was asked for, so that
/// another form may do.
pub fn is_about_form(status: u16, body: &str) -> bool {
    let text = body.to_lowercase();
    let named = ["response_format", "json_schema", "json_object"].iter().any(|w| text.contains(w));
    let hinted = ["schema", "maxlength", "grammar", "structured output"].iter().any(|w| text.contains(w));
    match status {
        400 | 404 | 415 | 422 => named || hinted,
        // A server that fails over a form it doesn't know.
        500 | 501 => named,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> Failure {
        of_status(status, body, Reset::default(), 0)
    }

    #[test]
    fn status_and_body_together_say_what_failed() {
        for (status, body, kind) in [
            (401, r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#, Kind::Auth),
            (403, "forbidden", Kind::Auth),
            (403, r#"{"error":{"message":"Your credit balance is too low"}}"#, Kind::Credit),
            (402, "", Kind::Credit),
            (404, r#"{"error":"model 'x' not found"}"#, Kind::Gone),
            (404, "", Kind::Gone),
            (410, "", Kind::Gone),
            (400, r#"{"error":{"code":"model_not_found","message":"The model `x` does not exist"}}"#, Kind::Gone),
            (403, r#"{"error":{"message":"The model `x` has been decommissioned"}}"#, Kind::Gone),
            (
                429,
                r#"{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached for requests"}}"#,
                Kind::Rate,
            ),
            (
                429,
                r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#,
                Kind::Credit,
            ),
            (429, "", Kind::Rate),
            (500, "boom", Kind::Server),
            (503, r#"{"error":{"message":"model is overloaded"}}"#, Kind::Server),
            (529, "", Kind::Server),
            (400, r#"{"error":{"message":"too many tokens"}}"#, Kind::Refused),
            (413, "", Kind::Refused),
            (301, "", Kind::Redirected),
        ] {
            assert_eq!(of(status, body).kind, kind, "{status} {body}");
        }
    }

    #[test]
    fn a_limit_ends_when_the_server_says_and_soon_where_it_does_not() {
        let now = 1_445_412_420;
        let rest = |after: Option<&str>, reset: Option<&str>| {
            of_status(429, "", Reset { retry_after: after, limit_reset: reset }, now).rest.unwrap().as_secs()
        };
        assert_eq!(rest(Some("7"), None), 7);
        assert_eq!(rest(Some(" 1.5 "), None), 2);
        assert_eq!(rest(Some("Wed, 21 Oct 2015 07:28:00 GMT"), None), 60);
        assert_eq!(rest(None, Some("1445412480")), 60);
        assert_eq!(rest(None, Some("1445412480000")), 60);
        assert_eq!(rest(None, Some("30")), 30);
        assert_eq!(rest(Some("99999999"), None), MOST_LIMITED.as_secs());
        for nonsense in ["", "-5", "NaN", "inf", "soon"] {
            assert_eq!(rest(Some(nonsense), None), LIMITED.as_secs(), "{nonsense}");
        }
        // A date that has passed asks for no rest that could be told.
        assert_eq!(rest(Some("Wed, 21 Oct 2015 07:00:00 GMT"), None), LIMITED.as_secs());
    }

    #[test]
    fn what_a_server_says_is_kept_short_and_clean() {
        let f = of(500, &format!("a\r\nb\u{202e}{}", "x".repeat(10_000)));
        assert!(f.detail.starts_with("500 a b") && f.detail.chars().count() <= 160, "{}", f.detail);
    }

    #[test]
    fn a_refused_form_is_told_from_a_refused_request() {
        for (status, body, about) in [
            (
                500,
                r#"{"error":{"message":"[{'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\"}]"}}"#,
                true,
            ),
            (400, r#"{"error":{"message":"Invalid schema for response_format: maxLength is not permitted"}}"#, true),
            (422, "json_schema unsupported", true),
            (400, "too many tokens", false),
            (500, "database schema is locked", false),
            (401, "response_format", false),
        ] {
            assert_eq!(is_about_form(status, body), about, "{status} {body}");
        }
    }

    #[test]
    fn only_what_a_person_must_mend_rests_long() {
        for kind in KINDS {
            let long = kind.rest().is_some_and(|r| r >= NEEDS_A_PERSON);
            assert_eq!(long, kind.is_loud(), "{}", kind.name());
        }
    }
}
