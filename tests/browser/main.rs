//! The approval page in headless Chromium, in front of the gateway's own
//! binary with the embedded provider.

#[path = "../common/mod.rs"]
mod common;

mod attacks;
mod deciding;
mod driver;
mod other;
mod others;
mod pictures;

use common::gateway::{EMBEDDED, Gateway};
use common::smtp::Smtp;
use tollgate::account::demo::{ADDRESS, AGENT_KEY};

/// What an agent submits when nothing is wrong with it.
pub(crate) const CALM: &str = "From: Demo <demo@example.org>\r\nTo: Bo <bo@example.com>\r\n\
    Date: Mon, 30 Nov 2026 10:00:00 +0000\r\nSubject: Garden party on Saturday\r\n\
    Message-ID: <1@example.org>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\
    Dear Bo,\r\n\r\nSaturday at three suits us well. We bring the cake.\r\n\r\nKind regards\r\nDemo\r\n";

/// Looks harmless to a hurried eye.
pub(crate) const ODD: &str = "From: Demo <demo@example.org>\r\nTo: \"ceo@bank.example\" <bo@example.com>\r\n\
    Reply-To: else@example.net\r\nIn-Reply-To: <unknown@example.com>\r\n\
    Date: Mon, 30 Nov 2026 10:00:00 +0000\r\nSubject: =?utf-8?q?Invoice=E2=80=AE_paid?=\r\n\
    Message-ID: <2@example.org>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n\
    --b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nPlease pay 10 euros.\r\n\
    --b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Please pay 9000 euros at \
    <a href=\"https://evil.example/\">bank.example</a></p>\r\n--b--\r\n";

/// A gateway whose approvals need `require`.
pub(crate) fn gateway(require: &str) -> Gateway {
    Gateway::spawn(&format!("[approval]\nrequire = \"{require}\"\n\n{EMBEDDED}"))
}

pub(crate) fn origin(gateway: &Gateway) -> String {
    format!("http://localhost:{}", gateway.web)
}

/// The agent submits; the hold's id.
#[track_caller]
pub(crate) fn submit(gateway: &Gateway, to: &[&str], message: &str) -> String {
    let mut smtp = Smtp::sign_in(gateway.smtp, ADDRESS, AGENT_KEY);
    let reply = smtp.submit(ADDRESS, to, message.as_bytes());
    assert!(reply.starts_with("250 "), "{reply}");
    reply.split_whitespace().last().expect("an id").to_owned()
}
