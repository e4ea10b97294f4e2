//! Mailboxes that pass through: the provider's connection under a selected
//! mailbox that is no view.
//!
//! Promises: a person's command goes to the provider octet for octet but for
//! its tag, the responses come back so; an agent's is decoded and encoded
//! anew. What enters a view from here takes its place there. Doesn't know:
//! stamps.

use bytes::Bytes;
use imap_codec::CommandCodec;
use imap_codec::encode::{Encoder, Fragment};
use imap_codec::imap_types::command::{Command, CommandBody};
use imap_codec::imap_types::fetch::{MacroOrMessageDataItemNames, MessageDataItemName};
use imap_codec::imap_types::mailbox::Mailbox;
use imap_codec::imap_types::sequence::{SeqOrUid, Sequence, SequenceSet};
use tokio::io::AsyncWriteExt;

use crate::upstream::imap::{Part, Response, Status, Tag, parse_copyuid};
use crate::wire::imap::Piece;

use super::lanes::Place;
use super::mirror::{Mirror, Op};
use super::pool::Lease;
use super::select::name_of;
use super::session::{Fail, Selection, Session};
use super::uid::UpstreamUid;
use super::view::Source;

/// A passed-through mailbox that is selected.
pub struct Passing {
    lease: Lease,
    /// Its name as the client wrote it.
    name: Vec<u8>,
}

impl Passing {
    /// A connection with the mailbox selected.
    pub fn new(lease: Lease, name: Vec<u8>) -> Passing {
        Passing { lease, name }
    }

    /// The mailbox's name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// CLOSE at the provider.
    pub(super) async fn close(&mut self) -> Result<(), Fail> {
        self.lease.run(b"CLOSE").await?.ok()?;
        Ok(())
    }

    /// Leaves the mailbox; the connection serves others.
    pub(super) async fn leave(self) {
        let mut lease = self.lease;
        let free = if lease.capabilities().has("UNSELECT") { lease.run(b"UNSELECT").await.is_ok() } else { false };
        if free {
            lease.give_back();
        }
    }
}

/// A quoted string (RFC 9051 §9, `quoted`). Names reach us as atoms, quoted
/// strings or literals; octets that no quoted string can carry (CR, LF, NUL)
/// are left out, so that nothing can be injected, and the name won't be found.
pub(super) fn quote(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    for b in text {
        match b {
            b'"' | b'\\' => out.extend([b'\\', *b]),
            b'\r' | b'\n' | 0 => {}
            _ => out.push(*b),
        }
    }
    out.push(b'"');
    out
}

/// A sequence set as text.
pub(super) fn set_text(set: &SequenceSet) -> String {
    let value = |v: &SeqOrUid| match v {
        SeqOrUid::Value(n) => n.to_string(),
        SeqOrUid::Asterisk => "*".to_owned(),
    };
    let parts: Vec<String> = set
        .0
        .as_ref()
        .iter()
        .map(|s| match s {
            Sequence::Single(v) => value(v),
            Sequence::Range(a, b) => format!("{}:{}", value(a), value(b)),
        })
        .collect();
    parts.join(",")
}

/// Splits a raw command, after its tag, at its literals.
fn parts(raw: &[u8]) -> Vec<(Bytes, Option<Bytes>)> {
    let mut out = Vec::new();
    let mut rest = raw;
    loop {
        let end = memchr::memmem::find(rest, b"\r\n").unwrap_or(rest.len());
        let line = &rest[..end];
        let announced = line.strip_suffix(b"}").and_then(|l| {
            let open = memchr::memrchr(b'{', l)?;
            let digits = l[open + 1..].strip_suffix(b"+").unwrap_or(&l[open + 1..]);
            let len: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Some((open, len))
        });
        match announced {
            Some((open, len)) if rest.len() >= end + 2 + len => {
                let data = &rest[end + 2..end + 2 + len];
                out.push((Bytes::copy_from_slice(&line[..open]), Some(Bytes::copy_from_slice(data))));
                rest = &rest[end + 2 + len..];
            }
            _ => {
                out.push((Bytes::copy_from_slice(line), None));
                return out;
            }
        }
    }
}

impl Session {
    /// Whether a command goes to the provider while a passed-through mailbox
    /// is selected.
    pub(super) fn passes(&self, command: &Command<'_>) -> bool {
        matches!(
            command.body,
            CommandBody::Fetch { .. }
                | CommandBody::Store { .. }
                | CommandBody::Search { .. }
                | CommandBody::Expunge
                | CommandBody::ExpungeUid { .. }
                | CommandBody::Copy { .. }
                | CommandBody::Move { .. }
                | CommandBody::Noop
                | CommandBody::Check
                | CommandBody::Idle
        )
    }

    /// Tells what another connection of this session put into the selected
    /// mailbox. RFC 9051 §6.3.12: after APPEND, EXISTS comes before the OK.
    pub(super) async fn catch_up(&mut self, mailbox: &[u8]) -> Result<(), Fail> {
        let Selection::Pass(passing) = &mut self.selection else { return Ok(()) };
        if passing.name != mailbox {
            return Ok(());
        }
        let outcome = passing.lease.run(b"NOOP").await.and_then(|o| o.ok()).map_err(|e| Fail::Bye(e.to_string()))?;
        for u in &outcome.untagged {
            self.write(&u.text).await?;
            self.write(b"\r\n").await?;
        }
        Ok(())
    }

    /// A command over a passed-through mailbox.
    pub(super) async fn pass_command(&mut self, tag: &str, raw: &Bytes, command: &Command<'_>) -> Result<(), Fail> {
        let done = self.pass_inner(tag, raw, command).await;
        self.complete_passed(tag, done).await
    }

    async fn complete_passed(&mut self, tag: &str, done: Result<Option<String>, Fail>) -> Result<(), Fail> {
        match done {
            // The provider's tagged response was passed on.
            Ok(None) => Ok(()),
            Ok(Some(text)) => self.complete(tag, Ok(text)).await,
            // The selected connection is gone, and with it what the client
            // knows of sequence numbers.
            Err(Fail::No("UNAVAILABLE", why)) => Err(Fail::Bye(why)),
            Err(e) => self.complete(tag, Err(e)).await,
        }
    }

    async fn pass_inner(&mut self, tag: &str, raw: &Bytes, command: &Command<'_>) -> Result<Option<String>, Fail> {
        self.permit(&command.body)?;
        let mirror = self.mirror()?;
        match &command.body {
            CommandBody::Idle => return self.pass_idle().await.map(Some),
            CommandBody::Copy { sequence_set, mailbox, uid } => {
                if let Some(done) = self.pass_into(&mirror, sequence_set, mailbox, *uid, false).await? {
                    return Ok(Some(done));
                }
            }
            CommandBody::Move { sequence_set, mailbox, uid } => {
                if let Some(done) = self.pass_into(&mirror, sequence_set, mailbox, *uid, true).await? {
                    return Ok(Some(done));
                }
            }
            _ => {}
        }
        let split = if self.signed()?.is_agent() {
            encoded(command)?
        } else {
            parts(raw.get(tag.len() + 1..).unwrap_or_default())
        };
        let borrowed: Vec<Part<'_>> = split
            .iter()
            .flat_map(|(text, literal)| {
                let literal = literal.as_ref().map(|l| Part::Literal(l));
                std::iter::once(Part::Text(text)).chain(literal)
            })
            .collect();
        let Selection::Pass(passing) = &mut self.selection else {
            return Err(Fail::Bad("select a mailbox first".into()));
        };
        let sent = passing.lease.send_parts(&borrowed).await?;
        self.relay(tag, sent).await?;
        Ok(None)
    }

    /// Passes responses on until the command's own, whose tag is exchanged.
    async fn relay(&mut self, tag: &str, sent: Tag) -> Result<(), Fail> {
        let Session { selection: Selection::Pass(passing), out, .. } = self else {
            return Err(Fail::Bad("select a mailbox first".into()));
        };
        let ours = format!("{sent} ").into_bytes();
        let (mut start, mut drop_line, mut last) = (true, false, false);
        loop {
            let piece = match tokio::time::timeout(super::mirror::OP_TIMEOUT, passing.lease.next_piece()).await {
                Ok(piece) => piece.map_err(|e| Fail::Bye(e.to_string()))?,
                Err(_) => return Err(Fail::Bye("the provider did not answer in time".into())),
            };
            match piece {
                Piece::Text(text) if start => {
                    start = false;
                    drop_line = text.to_ascii_uppercase().starts_with(b"* CAPABILITY");
                    if let Some(rest) = text.strip_prefix(&ours[..]) {
                        last = true;
                        out.write_all(tag.as_bytes()).await?;
                        out.write_all(b" ").await?;
                        out.write_all(rest).await?;
                    } else if text.to_ascii_uppercase().starts_with(b"* BYE") {
                        return Err(Fail::Bye("the provider ended the session".into()));
                    } else if !drop_line {
                        out.write_all(&text).await?;
                    }
                }
                Piece::Text(text) | Piece::Chunk(text) => {
                    if !drop_line {
                        out.write_all(&text).await?;
                    }
                }
                Piece::Literal { .. } => {
                    if !drop_line {
                        out.write_all(b"\r\n").await?;
                    }
                }
                Piece::End => {
                    if !drop_line {
                        out.write_all(b"\r\n").await?;
                    }
                    if last {
                        return Ok(());
                    }
                    start = true;
                }
            }
        }
    }

    async fn pass_idle(&mut self) -> Result<String, Fail> {
        let Selection::Pass(passing) = &mut self.selection else {
            return Err(Fail::Bad("select a mailbox first".into()));
        };
        if !passing.lease.capabilities().has("IDLE") {
            return Err(Fail::No("CANNOT", "the provider doesn't tell changes by itself".into()));
        }
        passing.lease.idle_start().await?;
        self.line("+ idling").await?;
        self.out.flush().await?;
        loop {
            match self.reader.next_line() {
                Ok(Some(line)) => {
                    let ended = line.trim_ascii().eq_ignore_ascii_case(b"DONE");
                    let Selection::Pass(passing) = &mut self.selection else {
                        return Err(Fail::Bye("nothing selected".into()));
                    };
                    let outcome = passing.lease.idle_done().await?;
                    for u in &outcome.untagged {
                        self.write(&u.text).await?;
                        self.write(b"\r\n").await?;
                    }
                    return if ended { Ok("done".into()) } else { Err(Fail::Bad("expected DONE".into())) };
                }
                Ok(None) => {}
                Err(e) => return Err(Fail::Bye(e.to_string())),
            }
            // Both borrow the session: take the connection out for the wait.
            let Selection::Pass(mut passing) = std::mem::replace(&mut self.selection, Selection::Nothing) else {
                return Err(Fail::Bye("nothing selected".into()));
            };
            let heard = tokio::select! {
                more = self.fill() => match more {
                    Ok(true) => Ok(None),
                    Ok(false) => Err(Fail::Io(std::io::ErrorKind::UnexpectedEof.into())),
                    Err(e) => Err(e),
                },
                response = passing.lease.next_response() => response.map(Some).map_err(|e| Fail::Bye(e.to_string())),
            };
            self.selection = Selection::Pass(passing);
            match heard? {
                Some(Response::Untagged(u)) => {
                    self.write(&u.text).await?;
                    self.write(b"\r\n").await?;
                    self.out.flush().await?;
                }
                Some(Response::Tagged { .. }) => return Err(Fail::Bye("the provider ended IDLE".into())),
                Some(Response::Continue(_)) | None => {}
            }
        }
    }

    /// COPY or MOVE whose destination is a view: `None` when it is not.
    async fn pass_into(
        &mut self,
        mirror: &Mirror,
        set: &SequenceSet,
        mailbox: &Mailbox<'_>,
        uid: bool,
        moving: bool,
    ) -> Result<Option<String>, Fail> {
        let name = name_of(mailbox);
        let place = {
            let state = mirror.state();
            let Some(lanes) = &state.lanes else { return Err(Fail::No("CANNOT", "the account is starting".into())) };
            match lanes.find(&name) {
                None if lanes.owns(&name) => return Err(Fail::No("CANNOT", "nothing can be put there".into())),
                None => return Ok(None),
                Some(Place::All) => return Err(Fail::No("CANNOT", "nothing can be put there".into())),
                Some(place) => place,
            }
        };
        let verb = format!(
            "{}{} {} INBOX",
            if uid { "UID " } else { "" },
            if moving { "MOVE" } else { "COPY" },
            set_text(set)
        );
        let pairs = {
            let _entering = mirror.arrivals.lock().await;
            let Selection::Pass(passing) = &mut self.selection else {
                return Err(Fail::Bad("select a mailbox first".into()));
            };
            let mut expected = None;
            if !passing.lease.capabilities().has("UIDPLUS") {
                let marks = super::entering::marks(&mut passing.lease, &set_text(set), uid).await?;
                let marks: Vec<_> = marks.into_iter().map(|(_, mark)| mark).collect();
                expected = Some((super::entering::uid_next(&mut passing.lease).await?, marks));
            }
            let outcome = passing.lease.run(verb.as_bytes()).await?;
            if let (Some((before, marks)), true) = (&expected, outcome.status == Status::Ok) {
                let found = super::entering::find(mirror, *before, marks).await?;
                mirror.state().placements.extend(found.into_iter().map(|u| (u, place)));
            }
            let codes = outcome.code.iter().cloned().chain(outcome.untagged.iter().filter_map(super::scan::ok_code));
            let pairs = codes.filter_map(|c| parse_copyuid(&c)).next();
            if let Some((_, _, to)) = &pairs {
                mirror.state().placements.extend(to.iter().filter_map(|n| UpstreamUid::new(*n)).map(|u| (u, place)));
            }
            for u in &outcome.untagged {
                if super::scan::ok_code(u).is_none() {
                    self.write(&u.text).await?;
                    self.write(b"\r\n").await?;
                }
            }
            outcome.ok()?;
            pairs
        };
        mirror.ask(Op::Sync).await?;
        let Some((_, from, to)) = pairs else { return Ok(Some("done".into())) };
        let (validity, view_uids) = self.placed(mirror, place, &to)?;
        let from: Vec<String> = from.iter().map(ToString::to_string).collect();
        self.copyuid(moving, validity, &from, &view_uids).await.map(Some)
    }

    /// The UIDs that this client's view gave to messages of the provider.
    pub(super) fn placed(&self, mirror: &Mirror, place: Place, upstream: &[u32]) -> Result<(u32, Vec<String>), Fail> {
        let state = mirror.state();
        let view = state.view((self.signed()?.audience, place));
        let view = view.ok_or_else(|| Fail::No("CANNOT", "the mailbox is not ready".into()))?;
        let uids = upstream
            .iter()
            .filter_map(|n| view.uid_of(Source::Upstream(UpstreamUid::new(*n)?)))
            .map(|u| u.to_string())
            .collect();
        Ok((view.uidvalidity, uids))
    }
}

/// An agent's command, encoded anew; FETCH never sets `\Seen`.
fn encoded(command: &Command<'_>) -> Result<Vec<(Bytes, Option<Bytes>)>, Fail> {
    let mut command = command.clone();
    if let CommandBody::Fetch {
        macro_or_item_names: MacroOrMessageDataItemNames::MessageDataItemNames(items), ..
    } = &mut command.body
    {
        for item in items {
            if let MessageDataItemName::BodyExt { peek, .. } = item {
                *peek = true;
            }
        }
    }
    let tag_len = command.tag.as_ref().len() + 1;
    let mut out: Vec<(Bytes, Option<Bytes>)> = Vec::new();
    let mut text: Vec<u8> = Vec::new();
    for fragment in CommandCodec::default().encode(&command) {
        match fragment {
            Fragment::Line { data } => text.extend(data),
            Fragment::Literal { data, .. } => {
                let open = memchr::memrchr(b'{', &text).unwrap_or(text.len());
                out.push((Bytes::copy_from_slice(&text[..open]), Some(Bytes::from(data))));
                text.clear();
            }
        }
    }
    out.push((Bytes::copy_from_slice(text.trim_ascii_end()), None));
    match out.first_mut() {
        Some((first, _)) if first.len() > tag_len => *first = first.slice(tag_len..),
        _ => return Err(Fail::Bad("the command can't be passed on".into())),
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_can_not_be_left() {
        assert_eq!(quote(b"a\"b\\c\r\nd"), b"\"a\\\"b\\\\cd\"");
    }

    #[test]
    fn commands_split_at_their_literals() {
        let split = parts(b"SEARCH SUBJECT {3+}\r\na{1 FROM {2}\r\n\r\n SEEN\r\n");
        assert_eq!(split.len(), 3);
        assert_eq!(split[0], (Bytes::from_static(b"SEARCH SUBJECT "), Some(Bytes::from_static(b"a{1"))));
        assert_eq!(split[1], (Bytes::from_static(b" FROM "), Some(Bytes::from_static(b"\r\n"))));
        assert_eq!(split[2], (Bytes::from_static(b" SEEN"), None));
    }
}
