//! What was tried, how it ended, and how that is told: to a person in full,
//! to a script as a receipt that can be handed on.
//!
//! Promises: the receipt is made of [`Done::facts`] and [`Fault::kind`] only,
//! which hold numbers, yes and no, and words of this program and of the RFCs;
//! what a server or a message said stands in the other texts. Doesn't know:
//! the checks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::exit::Exit;
use super::super::show;

/// Version of the receipt's form.
const RECEIPT: u32 = 1;
/// What the receipt says of itself.
const REDACTED: &str = "addresses, account and host names, mailbox names other than INBOX and Lanes/…, \
    and everything that a server or a message said are left out";

/// How an attempt ended without a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was done and is as it should be.
    Ok,
    /// The server doesn't offer it.
    NotOffered,
    /// It was not tried, for a reason that is told.
    NotTried,
}

impl Ended {
    fn name(self) -> &'static str {
        match self {
            Ended::Ok => "ok",
            Ended::NotOffered => "not_offered",
            Ended::NotTried => "not_tried",
        }
    }
}

/// An attempt without a fault.
#[derive(Debug, Clone)]
pub(super) struct Done {
    pub(super) ended: Ended,
    /// For a person.
    pub(super) text: String,
    /// For the receipt.
    pub(super) facts: Value,
}

impl Done {
    pub(super) fn ok(text: impl Into<String>, facts: Value) -> Done {
        Done { ended: Ended::Ok, text: text.into(), facts }
    }

    pub(super) fn not_offered(text: impl Into<String>) -> Done {
        Done { ended: Ended::NotOffered, text: text.into(), facts: json!({}) }
    }

    /// `why` is our own sentence and stands in the receipt too.
    pub(super) fn not_tried(why: &str) -> Done {
        Done { ended: Ended::NotTried, text: why.to_owned(), facts: json!({ "why": why }) }
    }
}

/// An attempt that failed.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    /// What kind, a word of ours.
    pub(super) kind: &'static str,
    pub(super) exit: Exit,
    /// For a person.
    pub(super) text: String,
    /// For the receipt.
    pub(super) facts: Value,
    /// Whether asking again could do harm, as with a refused password.
    pub(super) once: bool,
}

impl Fault {
    pub(super) fn new(kind: &'static str, exit: Exit, text: impl std::fmt::Display) -> Fault {
        Fault { kind, exit, text: text.to_string(), facts: json!({}), once: false }
    }
}

/// One attempt.
#[derive(Debug)]
struct Attempt {
    took: Duration,
    result: Result<Done, Fault>,
}

/// One check and its attempts.
#[derive(Debug)]
pub(super) struct Check {
    name: &'static str,
    /// What is really done.
    does: &'static str,
    attempts: Vec<Attempt>,
}

impl Check {
    /// Attempts it, again where it fails and `retries` are asked for. An
    /// attempt that takes longer than `limit` has failed.
    pub(super) async fn run(
        name: &'static str,
        does: &'static str,
        retries: u32,
        limit: Duration,
        mut attempt: impl AsyncFnMut() -> Result<Done, Fault>,
    ) -> Check {
        let mut check = Check { name, does, attempts: Vec::new() };
        loop {
            let began = Instant::now();
            let late =
                || Err(Fault::new("timeout", Exit::Unavailable, format!("not done within {} s", limit.as_secs())));
            let result = tokio::time::timeout(limit, attempt()).await.unwrap_or_else(|_| late());
            let again = result.as_ref().is_err_and(|f| !f.once) && check.attempts.len() < retries as usize;
            check.attempts.push(Attempt { took: began.elapsed(), result });
            if !again {
                return check;
            }
        }
    }

    /// One whose outcome is known without an attempt of its own.
    pub(super) fn known(name: &'static str, does: &'static str, result: Result<Done, Fault>) -> Check {
        Check { name, does, attempts: vec![Attempt { took: Duration::ZERO, result }] }
    }

    /// Its fault, where the last attempt failed.
    pub(super) fn fault(&self) -> Option<&Fault> {
        self.attempts.last().and_then(|a| a.result.as_ref().err())
    }

    /// Whether the last attempt ended like this.
    fn ended(&self, how: Ended) -> bool {
        self.attempts.last().is_some_and(|a| a.result.as_ref().is_ok_and(|d| d.ended == how))
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    fn json(&self) -> Value {
        let attempts = self.attempts.iter().enumerate().map(|(n, a)| {
            let ms = u64::try_from(a.took.as_millis()).unwrap_or(u64::MAX);
            match &a.result {
                Ok(done) => json!({ "attempt": n + 1, "ms": ms, "outcome": done.ended.name(), "facts": done.facts }),
                Err(f) => {
                    json!({ "attempt": n + 1, "ms": ms, "outcome": "failed", "fault": f.kind, "facts": f.facts })
                }
            }
        });
        json!({ "check": self.name, "does": self.does, "attempts": attempts.collect::<Vec<_>>() })
    }

    fn lines(&self) -> Vec<String> {
        let count = self.attempts.len();
        let line = |(n, a): (usize, &Attempt)| {
            let (mark, text) = match &a.result {
                Ok(done) => (
                    match done.ended {
                        Ended::Ok => "ok",
                        Ended::NotOffered => "not offered",
                        Ended::NotTried => "not tried",
                    },
                    done.text.clone(),
                ),
                Err(f) => ("FAILED", format!("{}: {}", f.kind, f.text)),
            };
            let which = if count > 1 { format!(" (attempt {} of {count})", n + 1) } else { String::new() };
            let ms = format!("{} ms", a.took.as_millis());
            format!("  {mark:<12}{:<20}{ms:>9}  {}{which}", self.name, show::visible(&text))
        };
        self.attempts.iter().enumerate().map(line).collect()
    }
}

/// The checks under one heading.
#[derive(Debug)]
pub(super) struct Section {
    /// For a person.
    pub(super) title: String,
    /// For the receipt.
    pub(super) label: String,
    pub(super) checks: Vec<Check>,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) began: i64,
    pub(super) sections: Vec<Section>,
}

impl Report {
    fn checks(&self) -> impl Iterator<Item = &Check> {
        self.sections.iter().flat_map(|s| &s.checks)
    }

    /// The checks that failed, the first one first.
    pub(super) fn failed(&self) -> Vec<&Check> {
        self.checks().filter(|c| c.fault().is_some()).collect()
    }

    fn count(&self, how: Ended) -> usize {
        self.checks().filter(|c| c.ended(how)).count()
    }

    fn summary(&self) -> [(&'static str, usize); 4] {
        [
            ("ok", self.count(Ended::Ok)),
            ("failed", self.failed().len()),
            ("not_offered", self.count(Ended::NotOffered)),
            ("not_tried", self.count(Ended::NotTried)),
        ]
    }

    /// The receipt.
    pub(super) fn json(&self) -> Value {
        let section =
            |s: &Section| json!({ "about": s.label, "checks": s.checks.iter().map(Check::json).collect::<Vec<_>>() });
        let summary: serde_json::Map<String, Value> =
            self.summary().into_iter().map(|(name, n)| (name.to_owned(), json!(n))).collect();
        json!({
            "doctor": RECEIPT,
            "version": env!("CARGO_PKG_VERSION"),
            "time": self.began,
            "ok": self.failed().is_empty(),
            "summary": summary,
            "sections": self.sections.iter().map(section).collect::<Vec<_>>(),
            "redacted": REDACTED,
        })
    }

    /// For a person.
    pub(super) fn text(&self) -> String {
        let mut lines = Vec::new();
        for section in &self.sections {
            lines.push(show::visible(&section.title));
            lines.extend(section.checks.iter().flat_map(Check::lines));
        }
        let counts = self.summary().map(|(name, n)| format!("{n} {}", name.replace('_', " ")));
        lines.push(counts.join(", "));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(once: bool) -> Fault {
        Fault { once, ..Fault::new("refused", Exit::Protocol, "said jo@example.org") }
    }

    #[tokio::test]
    async fn a_check_is_tried_again_only_where_asked_and_never_after_a_refused_password() {
        for (retries, once, succeeds_at, attempts) in
            [(0, false, 9, 1), (2, false, 9, 3), (2, true, 9, 1), (5, false, 2, 2), (3, false, 1, 1)]
        {
            let mut n = 0;
            let check = Check::run("x", "does", retries, Duration::from_secs(9), async || {
                n += 1;
                if n >= succeeds_at { Ok(Done::ok("", json!({}))) } else { Err(fault(once)) }
            })
            .await;
            assert_eq!(check.attempts.len(), attempts);
            assert_eq!(check.fault().is_some(), succeeds_at > attempts);
        }
    }

    #[tokio::test]
    async fn what_takes_too_long_has_failed() {
        let check = Check::run("x", "does", 0, Duration::from_millis(1), async || std::future::pending().await).await;
        assert_eq!(check.fault().map(|f| f.kind), Some("timeout"));
    }

    #[test]
    fn the_receipt_holds_nothing_that_a_server_said() {
        let checks = vec![
            Check::known("a", "does", Err(fault(false))),
            Check::known("b", "does", Ok(Done::ok("jo@example.org", json!({ "messages": 3 })))),
        ];
        let section = Section { title: "jo@example.org".into(), label: "account 1".into(), checks };
        let report = Report { began: 1, sections: vec![section] };
        let receipt = report.json();
        assert!(!receipt.to_string().contains("jo@") && report.text().contains("jo@"), "{receipt}");
        assert_eq!((&receipt["ok"], &receipt["summary"]["failed"]), (&json!(false), &json!(1)));
        assert_eq!(receipt["sections"][0]["checks"][0]["attempts"][0]["fault"], "refused");
    }
}
