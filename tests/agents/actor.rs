//! A program that holds an agent's key and tries everything with it.
//!
//! It speaks to whatever it is pointed at: to the gateway, or, as the control,
//! to the provider itself, where nothing guards the mailbox.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::imap::{Answer, Imap};
use crate::common::mail::date;
use crate::common::smtp::{Smtp, stuffed};

/// The verbs, as grants name them.
pub(crate) const VERBS: [&str; 7] = ["read", "flag", "file", "draft", "send", "forward", "delete"];
/// Mailboxes that it knows of, and names that it tries.
const NAMES: [&str; 24] = [
    "INBOX",
    "inbox",
    "Lanes/Queue",
    "Lanes/Silent",
    "Lanes/All",
    "Lanes",
    "Lanes/Own",
    "Archive",
    "archive",
    "Trash",
    "Junk",
    "Sent",
    "Drafts",
    "Private",
    "private",
    "Outbox",
    "outbox",
    "Templates",
    "Scheduled",
    "Tollgate/Outbox",
    "Agent/One",
    "Agent/Two",
    "Nowhere",
    "Priv&AGE-te",
];
/// In the text of mail that no agent may read.
pub(crate) const SECRET: &str = "c0nfidentia1";
/// In everything that an agent makes.
pub(crate) const MADE: &str = "made-by-the-agent";
/// Commands of one session: after too many bad ones it would be ended.
const STEPS_OF_SESSION: u32 = 40;

/// Random numbers that a seed repeats (xorshift64*).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % n
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}

/// Where it speaks to, and as whom.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) imap: u16,
    pub(crate) smtp: u16,
    pub(crate) user: String,
    pub(crate) password: String,
    /// Whether mail with [`SECRET`] must never be seen.
    pub(crate) blind: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) successes: BTreeMap<&'static str, u64>,
    /// Verb, mailbox, state of the session and answer.
    pub(crate) cells: BTreeSet<(&'static str, String, String)>,
}

impl Record {
    pub(crate) fn add(&mut self, other: Record) {
        for (verb, n) in other.successes {
            *self.successes.entry(verb).or_default() += n;
        }
        self.cells.extend(other.cells);
    }

    /// Whether each verb succeeded so often.
    pub(crate) fn enough(&self, least: u64) -> bool {
        VERBS.iter().all(|v| self.successes.get(v).is_some_and(|n| *n >= least))
    }
}

/// One agent at work.
pub(crate) struct Actor {
    target: Target,
    random: Random,
    pub(crate) record: Record,
    number: u64,
    selected: String,
    /// The command in hand.
    pub(crate) last: String,
}

impl Actor {
    pub(crate) fn new(target: Target, seed: u64) -> Actor {
        Actor {
            target,
            random: Random::new(seed),
            record: Record::default(),
            number: seed << 20,
            selected: String::new(),
            last: String::new(),
        }
    }

    /// A session over IMAP and one over SMTP.
    pub(crate) fn work(&mut self) {
        let mut imap = Imap::login(self.target.imap, &self.target.user, &self.target.password);
        let mut smtp = Smtp::sign_in(self.target.smtp, &self.target.user, &self.target.password);
        for _ in 0..STEPS_OF_SESSION {
            match self.random.below(14) {
                0 => self.open(&mut imap),
                1 => self.look(&mut imap),
                2 => self.read(&mut imap),
                3 | 4 => self.flag(&mut imap),
                5 | 6 => self.file(&mut imap),
                7 => self.draft(&mut imap),
                8 => self.submit(&mut smtp, "send"),
                9 => self.submit(&mut smtp, "forward"),
                10..=12 => self.delete(&mut imap),
                _ => self.strange(&mut imap),
            }
        }
    }

    fn note(&mut self, verb: &'static str, mailbox: &str, answer: &str, success: bool) {
        let answer: String = answer.split([' ', ']']).take(2).collect::<Vec<_>>().join(" ");
        self.record.cells.insert((verb, mailbox.to_ascii_lowercase(), format!("{}: {answer}", self.selected)));
        if success {
            *self.record.successes.entry(verb).or_default() += 1;
        }
    }

    fn ask(&mut self, imap: &mut Imap, command: &str) -> Answer {
        command.clone_into(&mut self.last);
        let answer = imap.command(command);
        self.see(command, &answer);
        answer
    }

    /// What may not be seen isn't.
    fn see(&self, command: &str, answer: &Answer) {
        if !self.target.blind {
            return;
        }
        for response in &answer.untagged {
            let text = response.text.to_ascii_lowercase();
            assert!(!text.contains("private") || text.starts_with("* list () nil"), "{command}: {text}");
            for octets in response.literals.iter().map(Vec::as_slice).chain([response.text.as_bytes()]) {
                let found = memchr::memmem::find(octets, SECRET.as_bytes());
                assert!(found.is_none(), "{command} shows what may not be read");
            }
        }
    }

    fn open(&mut self, imap: &mut Imap) {
        let name = self.random.pick(&NAMES);
        let verb = self.random.pick(&["SELECT", "SELECT", "SELECT", "EXAMINE"]);
        let answer = self.ask(imap, &format!("{verb} \"{name}\""));
        let ok = answer.status.starts_with("OK");
        self.selected = if ok { name.to_ascii_lowercase() } else { String::new() };
        self.note("read", name, &answer.status, ok);
    }

    fn look(&mut self, imap: &mut Imap) {
        let name = self.random.pick(&NAMES);
        let command = match self.random.below(4) {
            0 => format!("STATUS \"{name}\" (MESSAGES UIDNEXT UNSEEN)"),
            1 => format!("LIST \"\" \"{name}\""),
            2 => "LIST \"\" *".to_owned(),
            _ => "LSUB \"\" *".to_owned(),
        };
        let answer = self.ask(imap, &command);
        self.note("read", name, &answer.status, answer.status.starts_with("OK"));
    }

    fn set(&mut self) -> String {
        let n = self.random.below(6) + 1;
        match self.random.below(5) {
            0 => "1:*".to_owned(),
            1 => format!("{n}:{}", n + 2),
            2 => format!("{n},{}", n + 3),
            _ => n.to_string(),
        }
    }

    fn uid(&mut self) -> &'static str {
        self.random.pick(&["", "UID "])
    }

    fn ensure_open(&mut self, imap: &mut Imap) {
        while self.selected.is_empty() {
            self.open(imap);
        }
    }

    fn read(&mut self, imap: &mut Imap) {
        self.ensure_open(imap);
        let (uid, set) = (self.uid(), self.set());
        let item =
            self.random.pick(&["FLAGS", "(UID BODY[])", "(BODY.PEEK[HEADER])", "FULL", "(ENVELOPE RFC822.SIZE)"]);
        let command = match self.random.below(4) {
            0 => format!("{uid}SEARCH TEXT {SECRET}"),
            _ => format!("{uid}FETCH {set} {item}"),
        };
        let answer = self.ask(imap, &command);
        let selected = self.selected.clone();
        self.note("read", &selected, &answer.status, answer.status.starts_with("OK"));
    }

    fn flag(&mut self, imap: &mut Imap) {
        self.ensure_open(imap);
        let (uid, set) = (self.uid(), self.set());
        let sign = self.random.pick(&["+FLAGS", "-FLAGS", "FLAGS", "+FLAGS.SILENT"]);
        let flags = self.random.pick(&[
            "\\Seen",
            "\\Flagged",
            "\\Seen \\Flagged",
            "$Later",
            "\\Answered",
            "$TollgatePush",
            "$Junk",
            "",
        ]);
        let answer = self.ask(imap, &format!("{uid}STORE {set} {sign} ({flags})"));
        let selected = self.selected.clone();
        self.note("flag", &selected, &answer.status, answer.status.starts_with("OK"));
    }

    fn file(&mut self, imap: &mut Imap) {
        self.ensure_open(imap);
        let (uid, set) = (self.uid(), self.set());
        let name = match self.random.below(2) {
            0 => self.random.pick(&NAMES),
            _ => self.random.pick(&["Archive", "Trash", "Agent/One"]),
        };
        let command = match self.random.below(5) {
            0 => format!("CREATE \"{name}\""),
            // All of a mailbox into another and back again would double both
            // each time: after minutes no answer comes in time.
            1 | 2 => format!("{uid}COPY {} \"{name}\"", if set == "1:*" { "1:9" } else { &set }),
            _ => format!("{uid}MOVE {set} \"{name}\""),
        };
        let answer = self.ask(imap, &command);
        self.note("file", name, &answer.status, answer.status.starts_with("OK"));
    }

    fn message(&mut self, fields: &str, body: &str) -> Vec<u8> {
        self.number += 1;
        let (user, n) = (&self.target.user, self.number);
        format!(
            "From: {user}\r\nTo: ann@example.com\r\nDate: {}\r\nMessage-ID: <{n}@agent.example>\r\n\
             Subject: {MADE} {n}\r\nMIME-Version: 1.0\r\n{fields}\r\n{body}\r\n",
            date()
        )
        .into_bytes()
    }

    fn draft(&mut self, imap: &mut Imap) {
        let name = match self.random.below(3) {
            0 => self.random.pick(&NAMES),
            _ => "Drafts",
        };
        let (fields, body) = match self.random.below(6) {
            0 => ("Content-Type: text/html; charset=utf-8\r\n", "<img src=\"https://example.com/x.png\">"),
            1 => ("Bcc: eve@example.com\r\n", "x"),
            _ => ("", "A draft."),
        };
        let flags = self.random.pick(&["", "\\Draft", "\\Draft \\Seen", "\\Deleted"]);
        let octets = self.message(fields, body);
        self.last = format!("APPEND {name} ({flags})");
        let answer = append(imap, name, flags, &octets);
        self.see("APPEND", &answer);
        self.note("draft", name, &answer.status, answer.status.starts_with("OK"));
    }

    fn submit(&mut self, smtp: &mut Smtp, verb: &'static str) {
        let octets = if verb == "forward" {
            let fields = "Content-Type: multipart/mixed; boundary=b\r\n";
            let inner = "From: bo@example.com\r\nSubject: Inner\r\nDate: Mon, 2 Nov 2026 10:00:00 +0000\r\n\r\nWords.";
            self.message(fields, &format!("--b\r\nContent-Type: message/rfc822\r\n\r\n{inner}\r\n--b--"))
        } else {
            self.message("", "Mail.")
        };
        let from = match self.random.below(8) {
            0 => "eve@example.com".to_owned(),
            _ => self.target.user.clone(),
        };
        let to = self.random.pick(&["ann@example.com", "bo@example.net", "demo@example.org"]);
        self.last = format!("{verb} from {from} to {to}");
        let mut reply = smtp.command(&format!("MAIL FROM:<{from}>"));
        if reply.starts_with("250") {
            reply = smtp.command(&format!("RCPT TO:<{to}>"));
        }
        if reply.starts_with("250") {
            reply = smtp.command("DATA");
        }
        if reply.starts_with("354") {
            smtp.wire.send(stuffed(&octets));
            reply = smtp.reply();
        } else {
            smtp.expect("RSET", "250");
        }
        let outside = verb == "send" || to != "demo@example.org";
        self.note(verb, to, &reply, reply.starts_with("250") && outside);
    }

    fn delete(&mut self, imap: &mut Imap) {
        self.ensure_open(imap);
        let (uid, set, name) = (self.uid(), self.set(), self.random.pick(&NAMES));
        let command = match self.random.below(7) {
            0 => "EXPUNGE".to_owned(),
            1 => format!("UID EXPUNGE {set}"),
            2 => format!("DELETE \"{name}\""),
            3 => format!("{uid}STORE {set} FLAGS (\\Seen \\Deleted)"),
            4 => format!("{uid}MOVE {set} Junk"),
            _ => format!("{uid}STORE {set} +FLAGS (\\Deleted)"),
        };
        let answer = self.ask(imap, &command);
        let selected = self.selected.clone();
        let done = answer.status.starts_with("OK") || answer.status.contains("held for approval");
        self.note("delete", &selected, &answer.status, done);
    }

    fn strange(&mut self, imap: &mut Imap) {
        self.ensure_open(imap);
        let name = self.random.pick(&NAMES);
        let command = match self.random.below(12) {
            0 => format!("RENAME \"{name}\" Other"),
            1 => format!("RENAME INBOX \"{name}\""),
            2 => format!("SETACL \"{name}\" anyone lrswipkxtea"),
            3 => format!("SUBSCRIBE \"{name}\""),
            4 => "UID STORE 1:* (UNCHANGEDSINCE 1) +FLAGS (\\dElEtEd)".to_owned(),
            5 => "STORE 1 +X-GM-LABELS (\\Trash)".to_owned(),
            6 => "FETCH 1 (X-GM-MSGID)".to_owned(),
            7 => "FETCH 1 (FLAGS) (VANISHED CHANGEDSINCE 1)".to_owned(),
            8 => format!("SETMETADATA \"{name}\" (/private/comment \"x\")"),
            9 => "CLOSE".to_owned(),
            10 => format!("COPY 1:* \"{name}/\""),
            _ => "UID MOVE 1:* \"\"".to_owned(),
        };
        let closes = command == "CLOSE";
        let answer = self.ask(imap, &command);
        self.note("strange", name, &answer.status, false);
        if closes && answer.status.starts_with("OK") {
            self.selected.clear();
        }
    }
}

/// APPEND by a client that goes on only when it is asked to. What is told
/// before that is left out of the answer.
fn append(imap: &mut Imap, mailbox: &str, flags: &str, octets: &[u8]) -> Answer {
    let tag = "append";
    imap.wire.send(format!("{tag} APPEND \"{mailbox}\" ({flags}) {{{}}}\r\n", octets.len()));
    loop {
        let response = imap.response();
        if response.text.starts_with('+') {
            break;
        }
        if let Some(status) = response.text.strip_prefix("append ") {
            return Answer { untagged: Vec::new(), status: status.to_owned() };
        }
    }
    imap.wire.send([octets, b"\r\n"].concat());
    imap.answer(tag)
}
