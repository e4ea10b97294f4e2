//! A small IMAP client that says exactly what it is told to.

use super::wire::Wire;

/// A session.
#[derive(Debug)]
pub(crate) struct Imap {
    pub(crate) wire: Wire,
    tag: u32,
}

/// One response: its text, each literal as `{n}`, and the literals.
#[derive(Debug, Clone, Default)]
pub(crate) struct Response {
    pub(crate) text: String,
    pub(crate) literals: Vec<Vec<u8>>,
}

impl Response {
    /// The number after a word, such as that of `UID`.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let mut words = self.text.split([' ', '(', ')', '[', ']']);
        words.find(|w| w.eq_ignore_ascii_case(name))?;
        words.next()?.parse().ok()
    }
}

/// What a command was answered with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// The untagged responses, with `* `.
    pub(crate) untagged: Vec<Response>,
    /// The tagged response without its tag.
    pub(crate) status: String,
}

impl Answer {
    /// The FETCH responses.
    pub(crate) fn fetched(&self) -> Vec<&Response> {
        self.untagged.iter().filter(|r| r.text.split(' ').nth(2) == Some("FETCH")).collect()
    }

    /// The numbers of SEARCH.
    pub(crate) fn found(&self) -> Vec<u32> {
        let lines = self.untagged.iter().filter_map(|r| r.text.strip_prefix("* SEARCH"));
        lines.flat_map(str::split_whitespace).filter_map(|n| n.parse().ok()).collect()
    }

    /// The names that LIST or LSUB told; attributes come first.
    pub(crate) fn listed(&self) -> Vec<(String, String)> {
        let mut names = Vec::new();
        for response in &self.untagged {
            let Some(rest) = response.text.strip_prefix("* LIST (").or(response.text.strip_prefix("* LSUB (")) else {
                continue;
            };
            let Some((attributes, rest)) = rest.split_once(") ") else { continue };
            let Some((_, name)) = rest.split_once(' ') else { continue };
            let name = match response.literals.first() {
                Some(literal) => String::from_utf8_lossy(literal).into_owned(),
                None => name.trim_matches('"').to_owned(),
            };
            names.push((attributes.to_owned(), name));
        }
        names
    }

    /// Whether some untagged response begins like this.
    pub(crate) fn told(&self, start: &str) -> bool {
        self.untagged.iter().any(|r| r.text.starts_with(start))
    }
}

impl Imap {
    /// Connects and reads the greeting.
    #[track_caller]
    pub(crate) fn connect(port: u16) -> Imap {
        let mut imap = Imap { wire: Wire::connect(port), tag: 0 };
        let greeting = imap.response();
        assert!(greeting.text.starts_with("* OK"), "greeted with {}", greeting.text);
        imap
    }

    /// Connects and signs in.
    #[track_caller]
    pub(crate) fn login(port: u16, user: &str, password: &str) -> Imap {
        let mut imap = Imap::connect(port);
        imap.ok(&format!("LOGIN \"{user}\" \"{password}\""));
        imap
    }

    fn next_tag(&mut self) -> String {
        self.tag += 1;
        format!("t{}", self.tag)
    }

    /// A command without tag, and its whole answer.
    #[track_caller]
    pub(crate) fn command(&mut self, command: &str) -> Answer {
        let tag = self.next_tag();
        self.wire.send(format!("{tag} {command}\r\n"));
        self.answer(&tag)
    }

    /// A command that must be answered OK.
    #[track_caller]
    pub(crate) fn ok(&mut self, command: &str) -> Answer {
        let answer = self.command(command);
        assert!(answer.status.starts_with("OK"), "{command}: {}", answer.status);
        answer
    }

    /// A command whose tagged answer must begin like this.
    #[track_caller]
    pub(crate) fn refused(&mut self, command: &str, start: &str) {
        let answer = self.command(command);
        assert!(answer.status.starts_with(start), "{command}: wanted {start}, got {}", answer.status);
    }

    /// APPEND with a synchronising literal.
    #[track_caller]
    pub(crate) fn append(&mut self, mailbox: &str, flags: &str, octets: &[u8]) -> Answer {
        let tag = self.next_tag();
        self.wire.send(format!("{tag} APPEND \"{mailbox}\" ({flags}) {{{}}}\r\n", octets.len()));
        let first = self.response();
        if let Some(status) = first.text.strip_prefix(&format!("{tag} ")) {
            return Answer { untagged: Vec::new(), status: status.to_owned() };
        }
        assert!(first.text.starts_with('+'), "no continuation but {}", first.text);
        self.wire.send(octets);
        self.wire.send("\r\n");
        self.answer(&tag)
    }

    /// The UIDs of a search.
    #[track_caller]
    pub(crate) fn search(&mut self, keys: &str) -> Vec<u32> {
        self.ok(&format!("UID SEARCH {keys}")).found()
    }

    /// The UIDs in the selected mailbox whose Message-ID contains `id`.
    #[track_caller]
    pub(crate) fn find(&mut self, id: &str) -> Vec<u32> {
        self.search(&format!("HEADER Message-ID \"{id}\""))
    }

    /// The octets of a message in the selected mailbox, size checked.
    #[track_caller]
    pub(crate) fn body(&mut self, uid: u32) -> Vec<u8> {
        let answer = self.ok(&format!("UID FETCH {uid} (UID RFC822.SIZE BODY.PEEK[])"));
        // Flags that changed meanwhile may be told in between.
        let bodies: Vec<&Response> = answer.fetched().into_iter().filter(|r| !r.literals.is_empty()).collect();
        let [one] = bodies[..] else { panic!("{} bodies of {uid}: {}", bodies.len(), answer.status) };
        let octets = one.literals[0].clone();
        assert_eq!(one.number("RFC822.SIZE"), Some(octets.len() as u64), "RFC822.SIZE of {uid}");
        octets
    }

    /// The flags of a message in the selected mailbox.
    #[track_caller]
    pub(crate) fn flags(&mut self, uid: u32) -> Vec<String> {
        let answer = self.ok(&format!("UID FETCH {uid} (FLAGS)"));
        let fetched = answer.fetched();
        let text = &fetched.last().unwrap_or_else(|| panic!("no message {uid}: {answer:?}")).text;
        let flags = text.split("FLAGS (").nth(1).and_then(|t| t.split(')').next()).unwrap_or_default();
        flags.split_whitespace().map(str::to_owned).collect()
    }

    /// All selectable mailboxes.
    #[track_caller]
    pub(crate) fn mailboxes(&mut self) -> Vec<String> {
        let listed = self.ok("LIST \"\" \"*\"").listed();
        listed.into_iter().filter(|(a, _)| !a.to_ascii_lowercase().contains("\\noselect")).map(|(_, n)| n).collect()
    }

    /// Starts IDLE.
    #[track_caller]
    pub(crate) fn idle(&mut self) {
        let tag = self.next_tag();
        self.wire.send(format!("{tag} IDLE\r\n"));
        let first = self.response();
        assert!(first.text.starts_with('+'), "IDLE: {}", first.text);
    }

    /// Ends IDLE.
    #[track_caller]
    pub(crate) fn done(&mut self) -> Answer {
        self.wire.send("DONE\r\n");
        let tag = format!("t{}", self.tag);
        let answer = self.answer(&tag);
        assert!(answer.status.starts_with("OK"), "DONE: {}", answer.status);
        answer
    }

    #[track_caller]
    pub(crate) fn answer(&mut self, tag: &str) -> Answer {
        let mut answer = Answer::default();
        loop {
            let response = self.response();
            if let Some(status) = response.text.strip_prefix(tag).and_then(|t| t.strip_prefix(' ')) {
                answer.status = status.to_owned();
                return answer;
            }
            assert!(response.text.starts_with("* "), "out of place: {}", response.text);
            answer.untagged.push(response);
        }
    }

    /// A line, and on with every literal that it announces.
    #[track_caller]
    pub(crate) fn response(&mut self) -> Response {
        let mut response = Response::default();
        loop {
            let line = self.wire.line();
            response.text.push_str(&String::from_utf8_lossy(&line));
            // RFC 9051 §7.1: the text of a status response holds no literal.
            let second = response.text.split(' ').nth(1).unwrap_or_default();
            if ["OK", "NO", "BAD", "BYE", "PREAUTH"].contains(&second) {
                return response;
            }
            let Some(size) = announced(&line) else { return response };
            response.literals.push(self.wire.exact(size));
        }
    }
}

fn announced(line: &[u8]) -> Option<usize> {
    let inner = std::str::from_utf8(line).ok()?.strip_suffix('}')?;
    inner.rsplit_once('{')?.1.parse().ok()
}
