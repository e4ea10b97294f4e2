//! Mail that clients trip over, all of it with a Message-ID and CRLF.

use crate::common::mail::{Message, date, message, with_fields};
use crate::common::world::World;

/// A message given whole, but for Date and Message-ID.
fn raw(id: &str, fields: &str, body: &[u8]) -> Message {
    let id = format!("{id}.{}@tests.example.test", std::process::id());
    let head = format!("{fields}Date: {}\r\nMessage-ID: <{id}>\r\n\r\n", date());
    Message { id, octets: [head.as_bytes(), body].concat() }
}

/// Messages to `to`, each hard in a way of its own.
fn hard(to: &str) -> Vec<Message> {
    let from = "Ann <ann@example.com>";
    let fields = format!("From: {from}\r\nTo: {to}\r\n");
    let long = "0123456789 ".repeat(80);
    let nested = "Content-Type: message/rfc822\r\n\r\nFrom: inner@example.net\r\nSubject: Inner\r\n\r\nInside.\r\n";
    let attachment = "--b\r\nContent-Type: text/plain\r\n\r\nSee the file.\r\n--b\r\nContent-Type: \
                      application/octet-stream; name=\"a.bin\"\r\nContent-Transfer-Encoding: base64\r\n\r\n\
                      AAECAwQFBgcICQ==\r\n--b--\r\n";
    vec![
        message(from, to, "Plain", "Hello."),
        message(from, to, "Dots", ".\r\n..\r\n.dot\r\nthe end"),
        raw("folded", &format!("{fields}Subject: Folded\r\n over\r\n\tthree lines\r\n"), b"Text.\r\n"),
        raw(
            "eightbit",
            &format!("{fields}Subject: Gr\u{fc}\u{df}e aus K\u{f6}ln\r\nContent-Type: text/plain; charset=utf-8\r\n"),
            "Sch\u{f6}ne Gr\u{fc}\u{df}e \u{263a}\r\n".as_bytes(),
        ),
        raw(
            "latin",
            &format!("{fields}Subject: Latin\r\nContent-Type: text/plain; charset=iso-8859-1\r\n"),
            b"\xfc\r\n",
        ),
        raw("long", &format!("{fields}Subject: Long\r\nX-Long: {long}\r\n"), format!("{long}\r\n").as_bytes()),
        raw("empty", &format!("{fields}Subject: No body\r\n"), b""),
        raw(
            "parts",
            &format!("{fields}Subject: Parts\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n"),
            attachment.as_bytes(),
        ),
        raw(
            "nested",
            &format!("{fields}Subject: Nested\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=n\r\n"),
            format!("--n\r\n{nested}--n--\r\n").as_bytes(),
        ),
        with_fields(
            &format!("X-Tollgate-Lane: push\r\nX-TUID: AbCdEfGhIjKl\r\n{fields}Subject: Forged\r\n"),
            "X-Tollgate-Lane: text",
        ),
        with_fields(
            "From: Shop <news@shop.example.net>\r\nTo: alice@example.test\r\nSubject: Sale: 50 % off everything\r\n\
             List-Unsubscribe: <https://shop.example.net/u>\r\nPrecedence: bulk\r\n",
            "Buy now. Unsubscribe at any time.",
        ),
    ]
}

/// Delivers the corpus to Alice, and waits until all of it is in its lanes.
#[track_caller]
pub(crate) fn delivered(world: &World) -> Vec<Message> {
    let mails = hard(&world.alice.address);
    for mail in &mails {
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    }
    let mut session = world.person(&world.alice);
    for mail in &mails {
        world.lane_of(&mut session, &mail.id);
    }
    mails
}
