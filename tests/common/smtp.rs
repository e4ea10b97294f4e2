//! A small SMTP client that says exactly what it is told to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::wire::Wire;

/// A session.
#[derive(Debug)]
pub(crate) struct Smtp {
    pub(crate) wire: Wire,
}

impl Smtp {
    /// Connects and reads the greeting.
    #[track_caller]
    pub(crate) fn connect(port: u16) -> Smtp {
        let mut smtp = Smtp { wire: Wire::connect(port) };
        let greeting = smtp.reply();
        assert!(greeting.starts_with("220 "), "greeted with {greeting}");
        smtp
    }

    /// Connects, says EHLO and signs in.
    #[track_caller]
    pub(crate) fn sign_in(port: u16, user: &str, password: &str) -> Smtp {
        let mut smtp = Smtp::connect(port);
        smtp.expect("EHLO client.example.test", "250");
        let plain = STANDARD.encode(format!("\0{user}\0{password}"));
        smtp.expect(&format!("AUTH PLAIN {plain}"), "235");
        smtp
    }

    /// A whole reply, its lines joined by LF.
    #[track_caller]
    pub(crate) fn reply(&mut self) -> String {
        let mut lines = Vec::new();
        loop {
            let line = String::from_utf8(self.wire.line()).expect("replies are UTF-8");
            let more = line.as_bytes().get(3) == Some(&b'-');
            lines.push(line);
            if !more {
                return lines.join("\n");
            }
        }
    }

    #[track_caller]
    pub(crate) fn command(&mut self, line: &str) -> String {
        self.wire.send(format!("{line}\r\n"));
        self.reply()
    }

    /// A command whose reply begins with `code`.
    #[track_caller]
    pub(crate) fn expect(&mut self, line: &str, code: &str) -> String {
        let reply = self.command(line);
        assert!(reply.starts_with(code), "{line}: wanted {code}, got {reply}");
        reply
    }

    /// The octets of a message, dots doubled, with the final dot.
    #[track_caller]
    pub(crate) fn message(&mut self, octets: &[u8]) {
        self.wire.send(stuffed(octets));
    }

    /// A whole transaction; the reply to the message.
    #[track_caller]
    pub(crate) fn submit(&mut self, from: &str, to: &[&str], octets: &[u8]) -> String {
        self.expect(&format!("MAIL FROM:<{from}>"), "250");
        for to in to {
            self.expect(&format!("RCPT TO:<{to}>"), "250");
        }
        self.expect("DATA", "354");
        self.message(octets);
        self.reply()
    }
}

/// As it stands between DATA and the reply: RFC 5321 §4.5.2.
pub(crate) fn stuffed(octets: &[u8]) -> Vec<u8> {
    assert!(octets.ends_with(b"\r\n"), "a message ends with a line end");
    let mut out = Vec::with_capacity(octets.len() + 5);
    for line in octets.split_inclusive(|b| *b == b'\n') {
        if line.first() == Some(&b'.') {
            out.push(b'.');
        }
        out.extend_from_slice(line);
    }
    out.extend_from_slice(b".\r\n");
    out
}
