//! The consistency oracle: whether what a server says of a message agrees
//! with itself, asked over the wire as a mail client asks.
//!
//! Promises: it only reads (EXAMINE, PEEK); it looks at so many messages, for
//! so long and at so many octets as [`Limits`] say, newest first; what it
//! finds names a law, a mailbox, a UID and numbers, never content. Doesn't
//! know: what a message should be, only that every way to ask for it must
//! give the same one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::fetched::{Peer, PeerError, number, octets};
use crate::demo::client::imap::{Answer, quoted};

/// Messages of each mailbox that are looked at where nobody says otherwise.
pub const DEFAULT_MESSAGES: usize = 10;
/// Octets that are read in all.
pub const DEFAULT_OCTETS: u64 = 256 * 1024 * 1024;
/// Time that is spent in all.
pub const DEFAULT_TIME: Duration = Duration::from_secs(120);
/// A message that is said to be larger than this is passed over. It stays
/// below what one response of the provider may be.
pub const LARGEST_MESSAGE: u64 = 4 * 1024 * 1024;
/// Partials that a message is cut into.
const PARTIALS: usize = 12;
/// Partials that its header and its text are cut into.
const PARTIALS_OF_HALVES: usize = 4;
/// Most findings that are kept; further ones are counted.
const MOST_FINDINGS: usize = 100;
/// A field that no message has.
const ABSENT_FIELD: &str = "X-No-Such-Field";
/// Field names of a message that are asked for by name.
const NAMES_ASKED: usize = 3;

/// How much is looked at.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Newest messages of each mailbox.
    pub messages: usize,
    /// Octets in all.
    pub octets: u64,
    /// Time in all.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { messages: DEFAULT_MESSAGES, octets: DEFAULT_OCTETS, time: DEFAULT_TIME }
    }
}

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// A message that is listed is given when it is asked for.
    Answered,
    /// UIDs ascend.
    Uids,
    /// RFC822.SIZE is the length of `BODY[]`.
    Size,
    /// HEADER and TEXT concatenate to `BODY[]`.
    Halves,
    /// RFC822.HEADER is `BODY[HEADER]`.
    Header,
    /// Partials concatenate to the whole; short at the end, empty past it.
    Partials,
    /// HEADER.FIELDS and HEADER.FIELDS.NOT agree with HEADER.
    Fields,
    /// A UID names the same octets for good.
    Same,
}

impl Law {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Law::Answered => "answered",
            Law::Uids => "uids",
            Law::Size => "size",
            Law::Halves => "halves",
            Law::Header => "header",
            Law::Partials => "partials",
            Law::Fields => "fields",
            Law::Same => "same",
        }
    }

    /// What it says.
    pub fn says(self) -> &'static str {
        match self {
            Law::Answered => "a listed message is given when asked for",
            Law::Uids => "UIDs ascend",
            Law::Size => "RFC822.SIZE is the length of BODY[]",
            Law::Halves => "HEADER and TEXT make BODY[]",
            Law::Header => "RFC822.HEADER is BODY[HEADER]",
            Law::Partials => "partials make the whole, short or empty past its end",
            Law::Fields => "HEADER.FIELDS agree with HEADER",
            Law::Same => "a UID names the same octets",
        }
    }
}

/// A law that doesn't hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub law: Law,
    /// Where.
    pub mailbox: String,
    /// Of which message; 0 where it is about the mailbox.
    pub uid: u32,
    /// What was expected and what came: numbers and names of items.
    pub detail: String,
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// Mailboxes that were opened.
    pub mailboxes: usize,
    /// Messages that were checked.
    pub messages: usize,
    /// Octets that were read.
    pub octets: u64,
    /// Messages that were passed over as too large.
    pub too_large: usize,
    /// Messages that went while they were looked at.
    pub went: usize,
    /// Messages whose octets were compared with those of an earlier look.
    pub compared: usize,
    /// Whether time or octets ran out before the messages did.
    pub cut_short: bool,
}

/// A message as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    length: u64,
    sha256: [u8; 32],
}

/// The oracle. It remembers what it saw, so that a second look (after a new
/// sign-in, after a restart) compares with the first.
#[derive(Debug)]
pub struct Oracle {
    limits: Limits,
    began: Instant,
    looked: Looked,
    findings: Vec<Finding>,
    unkept: usize,
    /// By mailbox, UIDVALIDITY and UID.
    seen: BTreeMap<(String, u32, u32), Seen>,
}

/// A law that doesn't hold, or no further answers.
enum Stop {
    Broken(Law, String),
    Lost(PeerError),
}

impl From<PeerError> for Stop {
    fn from(e: PeerError) -> Stop {
        Stop::Lost(e)
    }
}

impl Oracle {
    /// One that has seen nothing.
    pub fn new(limits: Limits) -> Oracle {
        Oracle {
            limits,
            began: Instant::now(),
            looked: Looked::default(),
            findings: Vec::new(),
            unkept: 0,
            seen: BTreeMap::new(),
        }
    }

    /// What it found; most of it where there is very much.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many findings there were.
    pub fn count(&self) -> usize {
        self.findings.len() + self.unkept
    }

    /// What it looked at.
    pub fn looked(&self) -> Looked {
        self.looked
    }

    /// Begins to count messages, octets, time and findings anew; what was
    /// seen stays for comparison.
    pub fn look_again(&mut self) {
        (self.began, self.looked) = (Instant::now(), Looked::default());
        (self.findings, self.unkept) = (Vec::new(), 0);
    }

    /// Opens a mailbox by EXAMINE and checks its newest messages. False where
    /// it can't be opened (NO or BAD), which is no finding.
    pub async fn mailbox(&mut self, peer: &mut impl Peer, name: &str) -> Result<bool, PeerError> {
        let opened = peer.command(&format!("EXAMINE {}", quoted(name))).await?;
        if !opened.is_ok() {
            return Ok(false);
        }
        self.looked.mailboxes += 1;
        let validity = untagged_number(&opened, "UIDVALIDITY").unwrap_or(0);
        let found = peer.command("UID SEARCH ALL").await?.found();
        if found.windows(2).any(|w| w[0] >= w[1]) {
            self.broken(name, 0, Law::Uids, "they don't ascend".to_owned());
        }
        for uid in found.iter().rev().take(self.limits.messages) {
            if self.looked.octets >= self.limits.octets || self.began.elapsed() >= self.limits.time {
                self.looked.cut_short = true;
                break;
            }
            self.message(peer, name, validity, *uid).await?;
        }
        Ok(true)
    }

    /// Reads what was seen of a mailbox once more and compares.
    pub async fn compare(&mut self, peer: &mut impl Peer, name: &str) -> Result<(), PeerError> {
        let opened = peer.command(&format!("EXAMINE {}", quoted(name))).await?;
        let validity = untagged_number(&opened, "UIDVALIDITY").unwrap_or(0);
        let span = (name.to_owned(), validity, 0)..=(name.to_owned(), validity, u32::MAX);
        let uids: Vec<u32> = self.seen.range(span).map(|((_, _, uid), _)| *uid).collect();
        for uid in uids {
            if self.began.elapsed() >= self.limits.time {
                self.looked.cut_short = true;
                break;
            }
            let read = self.item(peer, uid, "BODY.PEEK[]", "BODY[]").await;
            let checked = read.map(|whole| self.remembered(name, validity, uid, &whole));
            self.settle(peer, name, uid, checked).await?;
        }
        Ok(())
    }

    /// Checks one message of the mailbox that is open.
    async fn message(&mut self, peer: &mut impl Peer, name: &str, validity: u32, uid: u32) -> Result<(), PeerError> {
        let checked = self.laws(peer, name, validity, uid).await;
        self.settle(peer, name, uid, checked).await
    }

    /// Notes how the look at one message ended.
    async fn settle(
        &mut self,
        peer: &mut impl Peer,
        name: &str,
        uid: u32,
        checked: Result<(), Stop>,
    ) -> Result<(), PeerError> {
        match checked {
            Ok(()) => {}
            Err(Stop::Lost(e)) => {
                let detail = format!("the connection ended: {} octets read so far", self.looked.octets);
                self.broken(name, uid, Law::Answered, detail);
                return Err(e);
            }
            Err(Stop::Broken(law, detail)) => {
                // Mail may go at any time: that isn't an inconsistency.
                peer.command("NOOP").await?;
                if peer.command(&format!("UID SEARCH UID {uid}")).await?.found().contains(&uid) {
                    self.broken(name, uid, law, detail);
                } else {
                    self.looked.went += 1;
                }
            }
        }
        Ok(())
    }

    fn broken(&mut self, mailbox: &str, uid: u32, law: Law, detail: String) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(Finding { law, mailbox: mailbox.to_owned(), uid, detail });
        } else {
            self.unkept += 1;
        }
    }

    /// Notes a law that doesn't hold, and goes on with the next.
    fn hold(&mut self, name: &str, uid: u32, law: Law, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.broken(name, uid, law, detail());
        }
    }

    async fn laws(&mut self, peer: &mut impl Peer, name: &str, validity: u32, uid: u32) -> Result<(), Stop> {
        let answer = peer.command(&format!("UID FETCH {uid} (RFC822.SIZE)")).await?;
        let size = one(&answer, uid)?.and_then(|r| number(r, "RFC822.SIZE"));
        let Some(size) = size else { return Err(Stop::Broken(Law::Answered, "no RFC822.SIZE came".to_owned())) };
        if size > LARGEST_MESSAGE {
            self.looked.too_large += 1;
            return Ok(());
        }
        self.looked.messages += 1;
        let whole = self.item(peer, uid, "BODY.PEEK[]", "BODY[]").await?;
        self.hold(name, uid, Law::Size, size == whole.len() as u64, || {
            format!("RFC822.SIZE {size}, BODY[] has {} octets", whole.len())
        });
        self.remembered(name, validity, uid, &whole);
        let header = self.item(peer, uid, "BODY.PEEK[HEADER]", "BODY[HEADER]").await?;
        let text = self.item(peer, uid, "BODY.PEEK[TEXT]", "BODY[TEXT]").await?;
        let joined = whole.strip_prefix(header.as_slice()) == Some(text.as_slice());
        self.hold(name, uid, Law::Halves, joined, || {
            format!("HEADER {} and TEXT {} octets, BODY[] {}", header.len(), text.len(), whole.len())
        });
        let same = self.item(peer, uid, "RFC822.HEADER", "RFC822.HEADER").await? == header;
        self.hold(name, uid, Law::Header, same, || format!("BODY[HEADER] has {} octets", header.len()));
        self.partials(peer, name, uid, "", &whole, header.len()).await?;
        self.partials(peer, name, uid, "HEADER", &header, header.len() / 2).await?;
        self.partials(peer, name, uid, "TEXT", &text, text.len() / 2).await?;
        self.fields(peer, name, uid, &header).await?;
        // Once more, now that others were asked for in between.
        let again = self.item(peer, uid, "BODY.PEEK[]", "BODY[]").await?;
        self.hold(name, uid, Law::Same, again == whole, || {
            format!("{} octets first, then {}", whole.len(), again.len())
        });
        Ok(())
    }

    /// The octets of one item.
    async fn item(&mut self, peer: &mut impl Peer, uid: u32, item: &str, named: &str) -> Result<Vec<u8>, Stop> {
        let answer = peer.command(&format!("UID FETCH {uid} ({item})")).await?;
        let Some(got) = one(&answer, uid)?.and_then(|r| octets(r, named)) else {
            return Err(Stop::Broken(Law::Answered, format!("{named} did not come")));
        };
        self.looked.octets += got.len() as u64;
        Ok(got)
    }

    fn remembered(&mut self, name: &str, validity: u32, uid: u32, whole: &[u8]) {
        let now = Seen { length: whole.len() as u64, sha256: Sha256::digest(whole).into() };
        let before = self.seen.insert((name.to_owned(), validity, uid), now);
        let Some(before) = before else { return };
        self.looked.compared += 1;
        self.hold(name, uid, Law::Same, before == now, || {
            format!("{} octets at an earlier look, {} now", before.length, now.length)
        });
    }

    /// A partition of a section (two where a cut at `inside` is a further
    /// case), what stands across the end, and what lies past it.
    async fn partials(
        &mut self,
        peer: &mut impl Peer,
        name: &str,
        uid: u32,
        section: &str,
        whole: &[u8],
        inside: usize,
    ) -> Result<(), Stop> {
        let length = whole.len();
        let pieces = if section.is_empty() { PARTIALS } else { PARTIALS_OF_HALVES };
        // Not the same borders for every message.
        let step = length.div_ceil(pieces).max(1) + uid as usize % 7;
        let mut spans: Vec<(usize, usize)> = (0..length).step_by(step).map(|at| (at, step)).collect();
        // Across the inner border, across the end, at the end, past it.
        spans.push((inside.saturating_sub(3), 7));
        spans.push((length.saturating_sub(5), 500));
        spans.push((length, 10));
        spans.push((length + 99, 10));
        for (origin, count) in spans {
            let item = format!("BODY.PEEK[{section}]<{origin}.{count}>");
            let got = self.item(peer, uid, &item, &format!("BODY[{section}]<{origin}>")).await?;
            let from = origin.min(length);
            let expected = &whole[from..(from + count).min(length)];
            let holds = got == expected;
            self.hold(name, uid, Law::Partials, holds, || {
                format!("BODY[{section}]<{origin}.{count}> of {length}: {} octets for {}", got.len(), expected.len())
            });
            if !holds {
                // The rest of the partition would only say it again.
                break;
            }
        }
        Ok(())
    }

    async fn fields(&mut self, peer: &mut impl Peer, name: &str, uid: u32, header: &[u8]) -> Result<(), Stop> {
        let lines = lines(header);
        let fields = well_formed(&lines);
        let mut names: Vec<String> = Vec::new();
        for line in &lines {
            if let Some(found) = field_name(line)
                && names.len() < NAMES_ASKED
                && !names.iter().any(|n| n.eq_ignore_ascii_case(&found))
            {
                names.push(found);
            }
        }
        names.push(ABSENT_FIELD.to_owned());
        let list = names.join(" ");
        for (item, wanted) in [("HEADER.FIELDS", true), ("HEADER.FIELDS.NOT", false)] {
            let asked = format!("BODY.PEEK[{item} ({list})]");
            let got = self.item(peer, uid, &asked, &format!("BODY[{item} ({list})]")).await?;
            let got = self::lines(&got);
            let holds = match &fields {
                // What is well formed leaves nothing open.
                Some(fields) => {
                    let named = |n: &str| names.iter().any(|m| m.eq_ignore_ascii_case(n));
                    let chosen = fields.iter().filter(|(n, _)| named(n) == wanted);
                    let expected: Vec<&[u8]> = chosen.flat_map(|(_, lines)| lines.iter().copied()).collect();
                    expected == got
                }
                None => in_order(&got, &lines),
            };
            self.hold(name, uid, Law::Fields, holds, || {
                format!("{item} of {} names: {} lines of the header's {}", names.len(), got.len(), lines.len())
            });
        }
        Ok(())
    }
}

/// The response of a FETCH of one UID; `None` where the message is gone.
fn one(answer: &Answer, uid: u32) -> Result<Option<&crate::demo::client::imap::Response>, Stop> {
    // Flags of other messages may be told in between.
    let of_it = answer.fetched().filter(|r| number(r, "UID") == Some(u64::from(uid)));
    let found = of_it.max_by_key(|r| (!r.literals.is_empty(), r.text.len()));
    match found {
        Some(response) if answer.is_ok() => Ok(Some(response)),
        None if answer.is_ok() || answer.status.starts_with("NO [EXPUNGEISSUED]") => Ok(None),
        _ => {
            let how = answer.status.split(' ').next().unwrap_or_default();
            Err(Stop::Broken(Law::Answered, format!("the FETCH was answered {how}")))
        }
    }
}

/// The number after a response code's name.
fn untagged_number(answer: &Answer, name: &str) -> Option<u32> {
    answer.untagged.iter().find_map(|r| r.number(name)).and_then(|n| u32::try_from(n).ok())
}

/// The lines of a header without their ends; the empty one that ends it is
/// left out.
fn lines(header: &[u8]) -> Vec<&[u8]> {
    let mut out: Vec<&[u8]> = header
        .split_inclusive(|b| *b == b'\n')
        .map(|l| l.strip_suffix(b"\n").unwrap_or(l))
        .map(|l| l.strip_suffix(b"\r").unwrap_or(l))
        .collect();
    if out.last().is_some_and(|l| l.is_empty()) {
        out.pop();
    }
    out
}

/// The name of a line that begins a field, where it can stand in a command.
fn field_name(line: &[u8]) -> Option<String> {
    let colon = memchr::memchr(b':', line)?;
    let name = &line[..colon];
    let fits = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    fits.then(|| String::from_utf8_lossy(name).into_owned())
}

/// A field's name and lines.
type Field<'a> = (String, Vec<&'a [u8]>);

/// The fields, where every line of the header begins or
/// continues one and is plain ASCII. Servers differ on all else.
fn well_formed<'a>(lines: &[&'a [u8]]) -> Option<Vec<Field<'a>>> {
    let mut fields: Vec<Field<'a>> = Vec::new();
    for line in lines {
        if !line.iter().all(|b| b.is_ascii_graphic() || matches!(b, b' ' | b'\t')) {
            return None;
        }
        match (line.first()?, fields.last_mut()) {
            (b' ' | b'\t', Some((_, lines))) => lines.push(line),
            _ => fields.push((field_name(line)?, vec![line])),
        }
    }
    Some(fields)
}

/// Whether all of `part` stand in `whole`, in this order.
fn in_order(part: &[&[u8]], whole: &[&[u8]]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|line| rest.any(|l| l.trim_ascii_end() == line.trim_ascii_end()))
}

#[cfg(test)]
#[path = "oracle_tests.rs"]
mod tests;
