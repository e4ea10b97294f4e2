//! What the tests against real programs stand on: Dovecot, Postfix, a strict
//! SMTP sink, the gateway's own binary, and small clients.
//!
//! Everything listens on 127.0.0.1 in a private folder, and what was started
//! is ended by its process id. A peer that can't be started is a failure, and
//! never a skipped test.

// Each test program uses its own part of this module.
#![allow(dead_code)]

pub(crate) mod daemon;
pub(crate) mod dovecot;
pub(crate) mod gateway;
pub(crate) mod http;
pub(crate) mod imap;
pub(crate) mod mail;
pub(crate) mod postfix;
pub(crate) mod program;
pub(crate) mod relay;
pub(crate) mod scratch;
pub(crate) mod sink;
pub(crate) mod smtp;
pub(crate) mod tls;
pub(crate) mod transcript;
pub(crate) mod wire;
pub(crate) mod world;

use std::time::{Duration, Instant};

/// How long an answer may take before a test gives up. Generous: the machine
/// may be building something at the same time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until there is an answer.
///
/// # Panics
/// After [`PATIENCE`], with `what` was waited for.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
