//! The oracle against a server that lies about one thing at a time.

use super::*;
use crate::demo::client::imap::Response;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    Nothing,
    Size,
    Header,
    Text,
    Rfc822Header,
    Partial,
    LongPartial,
    PastTheEnd,
    Fields,
    FieldsNot,
    Body,
    Silence,
    Refusal,
    Order,
    Ends,
}

struct Server {
    message: Vec<u8>,
    lie: Lie,
    bodies: usize,
    listed: bool,
}

fn server(message: &[u8], lie: Lie) -> Server {
    Server { message: message.to_vec(), lie, bodies: 0, listed: true }
}

impl Server {
    fn header(&self) -> usize {
        memchr::memmem::find(&self.message, b"\r\n\r\n").map_or(self.message.len(), |at| at + 4)
    }

    fn section(&mut self, name: &str, partial: bool) -> Vec<u8> {
        let at = self.header();
        let mut octets = match name {
            "" => self.message.clone(),
            "HEADER" => self.message[..at].to_vec(),
            "TEXT" => self.message[at..].to_vec(),
            fields => {
                let not = fields.starts_with("HEADER.FIELDS.NOT");
                let mut keeps = false;
                let kept = self.message[..at - 2].split_inclusive(|b| *b == b'\n').filter(|line| {
                    if !line.starts_with(b" ") {
                        let name = String::from_utf8_lossy(line.split(|b| *b == b':').next().unwrap()).into_owned();
                        keeps = fields.split([' ', '(', ')']).any(|n| n == name) != not;
                    }
                    keeps
                });
                [kept.collect::<Vec<_>>().concat(), b"\r\n".to_vec()].concat()
            }
        };
        match (self.lie, name, partial) {
            (Lie::Header, "HEADER", false) | (Lie::Text, "TEXT", false) => octets.push(b'x'),
            (Lie::Fields, n, _) if n.starts_with("HEADER.FIELDS (") => octets.insert(0, b'x'),
            (Lie::FieldsNot, n, _) if n.starts_with("HEADER.FIELDS.NOT") => octets.insert(0, b'x'),
            (Lie::Body, "", false) => {
                self.bodies += 1;
                *octets.last_mut().unwrap() = b'0' + self.bodies as u8;
            }
            _ => {}
        }
        octets
    }

    fn fetch(&mut self, item: &str) -> Response {
        let said = |name: &str, octets: &[u8]| Response {
            text: format!("1 FETCH (UID 7 {name} {{{}}})", octets.len()),
            literals: vec![octets.to_vec()],
        };
        if item == "RFC822.SIZE" {
            let size = self.message.len() + usize::from(self.lie == Lie::Size);
            return Response { text: format!("1 FETCH (UID 7 RFC822.SIZE {size})"), literals: Vec::new() };
        }
        if item == "RFC822.HEADER" {
            let mut octets = self.section("HEADER", true);
            octets.extend(if self.lie == Lie::Rfc822Header { &b"x"[..] } else { b"" });
            return said(item, &octets);
        }
        let (section, partial) = item.strip_prefix("BODY.PEEK[").unwrap().split_once(']').unwrap();
        let whole = self.section(section, !partial.is_empty());
        let Some((origin, count)) = partial.strip_prefix('<').and_then(|p| p.trim_end_matches('>').split_once('.'))
        else {
            return said(&format!("BODY[{section}]"), &whole);
        };
        let (from, count) = (origin.parse::<usize>().unwrap(), count.parse::<usize>().unwrap());
        let mut part = whole[from.min(whole.len())..(from + count).min(whole.len())].to_vec();
        match self.lie {
            Lie::Partial if section == "TEXT" && from > 3 => drop(part.pop()),
            Lie::LongPartial if section.is_empty() && from + count > whole.len() && from < whole.len() => {
                part.push(b'x')
            }
            Lie::PastTheEnd if from > whole.len() => part = whole.clone(),
            _ => {}
        }
        said(&format!("BODY[{section}]<{from}>"), &part)
    }
}

impl Peer for Server {
    async fn command(&mut self, command: &str) -> Result<Answer, PeerError> {
        let mut answer = Answer { status: "OK done".into(), untagged: Vec::new() };
        let text = |text: &str| Response { text: text.to_owned(), literals: Vec::new() };
        if command.starts_with("EXAMINE") {
            answer.untagged.push(text("OK [UIDVALIDITY 5] x"));
        } else if command.starts_with("UID SEARCH") && self.listed {
            answer.untagged.push(text(if self.lie == Lie::Order { "SEARCH 9 7" } else { "SEARCH 7" }));
        } else if let Some(item) = command.strip_prefix("UID FETCH 7 (") {
            match self.lie {
                Lie::Silence => {}
                Lie::Refusal => answer.status = "NO not now".into(),
                Lie::Ends => return Err(PeerError::Lost("gone".into())),
                _ => answer.untagged.push(self.fetch(item.strip_suffix(')').unwrap())),
            }
        }
        Ok(answer)
    }
}

const MAIL: &[u8] = b"Subject: a\r\nX-Two: b\r\n c\r\nX-Three: d\r\nTo: e\r\n\r\nbody of some length\r\nand more\r\n";

async fn laws(mail: &[u8], lie: Lie) -> Vec<Law> {
    let mut oracle = Oracle::new(Limits::default());
    let _ = oracle.mailbox(&mut server(mail, lie), "INBOX").await;
    let mut laws: Vec<Law> = oracle.findings().iter().map(|f| f.law).collect();
    laws.dedup();
    laws
}

#[tokio::test]
async fn every_lie_is_found_and_named_and_the_truth_is_not() {
    for (lie, law) in [
        (Lie::Size, Law::Size),
        (Lie::Rfc822Header, Law::Header),
        (Lie::Partial, Law::Partials),
        (Lie::LongPartial, Law::Partials),
        (Lie::PastTheEnd, Law::Partials),
        (Lie::Fields, Law::Fields),
        (Lie::FieldsNot, Law::Fields),
        (Lie::Silence, Law::Answered),
        (Lie::Refusal, Law::Answered),
        (Lie::Ends, Law::Answered),
    ] {
        assert_eq!(laws(MAIL, lie).await, [law], "{lie:?}");
    }
    // These can't be told apart from their own consequences.
    for (lie, law) in
        [(Lie::Header, Law::Halves), (Lie::Text, Law::Halves), (Lie::Body, Law::Same), (Lie::Order, Law::Uids)]
    {
        assert!(laws(MAIL, lie).await.contains(&law), "{lie:?}");
    }
    for mail in [MAIL, b"A: 1\r\n\r\n", b"A: 1\r\n\r\nx"] {
        assert_eq!(laws(mail, Lie::Nothing).await, [], "{}", String::from_utf8_lossy(mail));
    }
}

#[tokio::test]
async fn a_second_look_compares_with_the_first() {
    let mut oracle = Oracle::new(Limits::default());
    let mut honest = server(MAIL, Lie::Nothing);
    oracle.mailbox(&mut honest, "INBOX").await.unwrap();
    oracle.look_again();
    oracle.mailbox(&mut honest, "INBOX").await.unwrap();
    assert_eq!((oracle.count(), oracle.looked().compared), (0, 1));
    oracle.look_again();
    *honest.message.last_mut().unwrap() = b'!';
    oracle.mailbox(&mut honest, "INBOX").await.unwrap();
    assert_eq!(oracle.findings()[0].law, Law::Same);
    // Another mailbox's UID is another message.
    oracle.look_again();
    oracle.mailbox(&mut honest, "Other").await.unwrap();
    assert_eq!((oracle.count(), oracle.looked().compared), (0, 0));
}

#[tokio::test]
async fn a_message_that_goes_meanwhile_is_no_finding_and_the_limits_hold() {
    let mut oracle = Oracle::new(Limits::default());
    let mut gone = server(MAIL, Lie::Silence);
    gone.listed = false;
    oracle.message(&mut gone, "INBOX", 1, 7).await.unwrap();
    assert_eq!((oracle.count(), oracle.looked().went), (0, 1));
    for limits in [Limits { octets: 0, ..Limits::default() }, Limits { time: Duration::ZERO, ..Limits::default() }] {
        let mut oracle = Oracle::new(limits);
        oracle.mailbox(&mut server(MAIL, Lie::Nothing), "INBOX").await.unwrap();
        assert!(oracle.looked().cut_short && oracle.looked().messages == 0);
    }
    let mut oracle = Oracle::new(Limits { messages: 0, ..Limits::default() });
    oracle.mailbox(&mut server(MAIL, Lie::Nothing), "INBOX").await.unwrap();
    assert_eq!(oracle.looked().messages, 0);
}
