//! The few commands that the gateway itself issues.
//!
//! Promises: a mailbox name goes out as the octets it is. Doesn't know: which
//! mailbox is which.

use bytes::Bytes;

use super::response::{Outcome, Status};
use super::untagged::{UntaggedData, atoms, number};
use super::{Connection, ImapError, Part};
use crate::wire::imap::{Quoted, encode_astring};

/// What SELECT or EXAMINE said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selected {
    /// Messages in it.
    pub exists: u32,
    /// Recent ones.
    pub recent: u32,
    /// UIDVALIDITY, never 0. A value beyond 32 bits, which a few servers
    /// send, is cut to its lower 32: it still changes when theirs does.
    pub uidvalidity: u32,
    /// UIDNEXT; 0 where the server didn't say.
    pub uidnext: u32,
    /// HIGHESTMODSEQ, where mod-sequences are kept.
    pub highestmodseq: Option<u64>,
    /// Flags in use.
    pub flags: Vec<Bytes>,
    /// Flags that can be changed for good; as `flags` where the server didn't
    /// say (RFC 9051 §6.3.2).
    pub permanent_flags: Vec<Bytes>,
    /// Whether it was opened for changes.
    pub read_write: bool,
}

/// One mailbox of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// Attributes.
    pub flags: Vec<Bytes>,
    /// Hierarchy delimiter, if it has one.
    pub delimiter: Option<u8>,
    /// Name in wire octets, without quoting.
    pub name: Bytes,
}

impl Connection {
    /// Opens `mailbox` (wire octets), with `examine` only for reading. Where
    /// the server has CONDSTORE it is asked for, because some don't tell
    /// HIGHESTMODSEQ otherwise; FETCH responses then carry MODSEQ.
    pub async fn select(&mut self, mailbox: &[u8], examine: bool) -> Result<Selected, ImapError> {
        let verb: &[u8] = if examine { b"EXAMINE " } else { b"SELECT " };
        let name = encode_astring(mailbox);
        let mut parts = vec![Part::Text(verb), part(&name)];
        if self.capabilities.has("CONDSTORE") || self.capabilities.has("QRESYNC") {
            parts.push(Part::Text(b" (CONDSTORE)"));
        }
        let mut outcome = self.run_parts(&parts).await?;
        if outcome.status == Status::Bad && parts.len() > 2 {
            // Some advertise it and take no parameter (jstedfast/MailKit#970).
            outcome = self.run_parts(&parts[..2]).await?;
        }
        selected(&outcome.ok()?, examine)
    }

    /// Opens `mailbox` as a client that knows nothing of CONDSTORE: once it is
    /// enabled (RFC 7162 §3.1), FETCH responses carry MODSEQ to whoever gets
    /// the connection next.
    pub async fn select_plainly(&mut self, mailbox: &[u8], examine: bool) -> Result<Selected, ImapError> {
        let verb: &[u8] = if examine { b"EXAMINE " } else { b"SELECT " };
        let name = encode_astring(mailbox);
        let outcome = self.run_parts(&[Part::Text(verb), part(&name)]).await?;
        selected(&outcome.ok()?, examine)
    }

    /// Lists the mailboxes that match `pattern` under `reference`.
    pub async fn list(&mut self, reference: &[u8], pattern: &[u8]) -> Result<Vec<ListEntry>, ImapError> {
        let outcome = self.run_with_names(b"LIST ", &[reference, pattern]).await?.ok()?;
        let entries = outcome.untagged.iter().filter_map(|data| match data.parse() {
            UntaggedData::List { flags, delimiter, name } => Some(ListEntry { flags, delimiter, name }),
            _ => None,
        });
        Ok(entries.collect())
    }

    /// Runs `verb` (with a blank at its end) with astring arguments.
    pub async fn run_with_names(&mut self, verb: &[u8], names: &[&[u8]]) -> Result<Outcome, ImapError> {
        let encoded: Vec<Quoted> = names.iter().map(|name| encode_astring(name)).collect();
        let mut parts = vec![Part::Text(verb)];
        for (at, name) in encoded.iter().enumerate() {
            if at > 0 {
                parts.push(Part::Text(b" "));
            }
            parts.push(part(name));
        }
        self.run_parts(&parts).await
    }

    /// Starts IDLE (RFC 2177). Then [`next_response`](Self::next_response)
    /// gives what happens, until [`idle_done`](Self::idle_done).
    pub async fn idle_start(&mut self) -> Result<(), ImapError> {
        let tag = self.send(b"IDLE").await?;
        if !self.continuation(tag).await? {
            self.wait(tag).await?.ok()?;
            return Err(ImapError::Protocol("IDLE ended before it began".into()));
        }
        self.idle = Some(tag);
        Ok(())
    }

    /// Ends IDLE. The outcome holds what came before the server's answer and
    /// wasn't taken yet.
    pub async fn idle_done(&mut self) -> Result<Outcome, ImapError> {
        let Some(tag) = self.idle.take() else {
            return Err(ImapError::Protocol("not in IDLE".into()));
        };
        self.write_raw(b"DONE\r\n").await?;
        self.flush().await?;
        self.wait(tag).await?.ok()
    }

    /// Notes that the server answered IDLE by itself; whether it was in IDLE.
    /// RFC 2177 §3 lets only the client end it, but servers do at a timeout.
    pub fn idle_over(&mut self) -> bool {
        self.idle.take().is_some()
    }

    /// Says goodbye and closes.
    pub async fn logout(mut self) -> Result<(), ImapError> {
        let tag = self.send(b"LOGOUT").await?;
        match self.wait(tag).await {
            // Many servers close right after BYE.
            Ok(_) | Err(ImapError::Closed) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn part(argument: &Quoted) -> Part<'_> {
    match argument {
        Quoted::Plain(text) => Part::Text(text),
        Quoted::NeedsLiteral(octets) => Part::Literal(octets),
    }
}

fn selected(outcome: &Outcome, examine: bool) -> Result<Selected, ImapError> {
    let mut found = Selected::default();
    let mut permanent = None;
    for data in &outcome.untagged {
        match data.parse() {
            UntaggedData::Exists(n) => found.exists = n,
            UntaggedData::Recent(n) => found.recent = n,
            UntaggedData::Flags(flags) => found.flags = flags,
            UntaggedData::Ok { code: Some(code), .. } => code_of_select(&code, &mut found, &mut permanent),
            _ => {}
        }
    }
    if found.uidvalidity == 0 {
        return Err(ImapError::Protocol("the mailbox has no UIDVALIDITY".into()));
    }
    found.permanent_flags = permanent.unwrap_or_else(|| found.flags.clone());
    let read_only = outcome.code.as_deref().is_some_and(|code| code.eq_ignore_ascii_case(b"READ-ONLY"));
    found.read_write = !examine && !read_only;
    Ok(found)
}

fn code_of_select(code: &Bytes, found: &mut Selected, permanent: &mut Option<Vec<Bytes>>) {
    let (name, rest) = super::response::word(code);
    match name.to_ascii_uppercase().as_slice() {
        b"UIDVALIDITY" => {
            let value = number(&rest).unwrap_or(0);
            // The lower half of a larger value may be 0, which means none.
            let low = u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0);
            found.uidvalidity = if value > 0 { low.max(1) } else { 0 };
        }
        b"UIDNEXT" => found.uidnext = number(&rest).and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        b"HIGHESTMODSEQ" => found.highestmodseq = number(&rest).filter(|&n| n > 0),
        b"PERMANENTFLAGS" => *permanent = Some(atoms(&rest)),
        _ => {}
    }
}
