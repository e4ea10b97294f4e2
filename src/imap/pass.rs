//! Mailboxes that pass through: the provider's connection under a selected
//! mailbox that is no view.
//!
//! Promises: a person's command goes to the provider octet for octet but for
//! its tag, the responses come back so; an agent's is decoded and encoded
//! anew. What enters a view from here takes its place there. Doesn't know:
//! stamps.

use std::time::{Duration, Instant};

use bytes::Bytes;
use imap_codec::imap_types::command::{Command, CommandBody};
use imap_codec::imap_types::mailbox::Mailbox;
use imap_codec::imap_types::sequence::SequenceSet;
use tokio::io::AsyncWriteExt;

use crate::upstream::imap::{ImapError, Outcome, Part, Response, Status, Tag, Untagged, UntaggedData, parse_copyuid};
use crate::wire::imap::Piece;

use super::encode::{encoded, fit, fit_response, is_raw_verb, parts, quote, set_text};
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
        self.lease.run(b"CLOSE").await.and_then(Outcome::ok).map_err(lost)?;
        Ok(())
    }

    /// Leaves the mailbox; the connection serves others.
    pub(super) async fn leave(self) {
        if let Some(lease) = self.vacate().await {
            lease.give_back();
        }
    }

    /// Leaves the mailbox; its connection, where it lives on.
    pub(super) async fn vacate(self) -> Option<Lease> {
        let mut lease = self.lease;
        let can = lease.capabilities().has("UNSELECT");
        (can && lease.briefly(b"UNSELECT").await.is_ok_and(|o| o.ok().is_ok())).then_some(lease)
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
                | CommandBody::Sort { .. }
                | CommandBody::Thread { .. }
                | CommandBody::Expunge
                | CommandBody::ExpungeUid { .. }
                | CommandBody::Copy { .. }
                | CommandBody::Move { .. }
                | CommandBody::Noop
                | CommandBody::Check
                | CommandBody::Idle
        )
    }

    /// The connection of the selected mailbox.
    pub(super) fn own_lease(&mut self) -> Result<&mut Lease, Fail> {
        Ok(&mut self.passing()?.lease)
    }

    /// Mailboxes were deleted. With the selected one goes what its connection
    /// has selected, or the connection; nothing is selected from here on.
    pub(super) fn deleted(&mut self, names: &[Vec<u8>]) {
        if let Selection::Pass(passing) = &self.selection
            && names.contains(&passing.name)
        {
            self.selection = Selection::Nothing;
        }
    }

    /// Tells what this session put into the selected mailbox. RFC 9051
    /// §6.3.12: after APPEND, EXISTS comes before the OK.
    pub(super) async fn catch_up(&mut self, mailbox: &[u8]) -> Result<(), Fail> {
        let Selection::Pass(passing) = &mut self.selection else { return Ok(()) };
        if passing.name != mailbox {
            return Ok(());
        }
        let outcome = passing.lease.run(b"NOOP").await.and_then(Outcome::ok).map_err(lost)?;
        self.pass_untagged(&outcome.untagged).await
    }

    /// Passes on what the provider told.
    pub(super) async fn pass_untagged(&mut self, list: &[Untagged]) -> Result<(), Fail> {
        for u in list.iter().filter(|u| is_for_clients(u)) {
            self.write(&fit_response(u)).await?;
            self.write(b"\r\n").await?;
        }
        Ok(())
    }

    fn passing(&mut self) -> Result<&mut Passing, Fail> {
        match &mut self.selection {
            Selection::Pass(passing) => Ok(passing),
            Selection::Nothing | Selection::View(_) => Err(Fail::Bad("select a mailbox first".into())),
        }
    }

    /// Makes sure of a connection that this machine slept over.
    pub(super) async fn wake_passed(&mut self) -> Result<(), Fail> {
        if let Some(outcome) = self.passing()?.lease.after_sleep().await.map_err(lost)? {
            self.pass_untagged(&outcome.untagged).await?;
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
            Err(e) => self.complete(tag, Err(e)).await,
        }
    }

    async fn pass_inner(&mut self, tag: &str, raw: &Bytes, command: &Command<'_>) -> Result<Option<String>, Fail> {
        self.permit(&command.body)?;
        let mirror = self.mirror()?;
        self.wake_passed().await?;
        let can = self.passing()?.lease.capabilities();
        let (moves, uidplus) = (can.has("MOVE"), can.has("UIDPLUS"));
        match &command.body {
            CommandBody::Idle => return self.pass_idle(&mirror).await.map(Some),
            CommandBody::Copy { sequence_set, mailbox, uid } => {
                if let Some(done) = self.pass_into(&mirror, sequence_set, mailbox, *uid, false).await? {
                    return Ok(Some(done));
                }
            }
            CommandBody::Move { sequence_set, mailbox, uid } => {
                if let Some(done) = self.pass_into(&mirror, sequence_set, mailbox, *uid, true).await? {
                    return Ok(Some(done));
                }
                if !moves {
                    let target = quote(&name_of(mailbox));
                    let moved = self.passing()?.move_by_hand(&set_text(sequence_set), &target, *uid).await?;
                    return self.tell_moved(moved).await.map(Some);
                }
            }
            CommandBody::ExpungeUid { .. } if !uidplus => {
                return Err(Fail::No("CANNOT", "the provider can't expunge single messages".into()));
            }
            _ => {}
        }
        let split = if self.signed()?.is_agent() {
            encoded(command)?
        } else {
            parts(raw.get(tag.len() + 1..).unwrap_or_default())
        };
        self.pass_parts(tag, &split).await?;
        Ok(None)
    }

    /// Whether a command that isn't understood here may go to the provider as
    /// it is: a person's, in a passed-through mailbox, and one of those that
    /// act on the selected mailbox alone, so that no view can be named.
    pub(super) fn passes_raw(&self, raw: &[u8], tag_end: usize) -> bool {
        let person = self.signed.as_ref().is_some_and(|s| !s.is_agent() && !s.is_console());
        person && matches!(self.selection, Selection::Pass(_)) && raw.get(tag_end..).is_some_and(is_raw_verb)
    }

    /// Passes on a command that isn't understood here.
    pub(super) async fn pass_raw(&mut self, tag: &str, raw: &Bytes) -> Result<(), Fail> {
        let split = parts(raw.get(tag.len() + 1..).unwrap_or_default());
        let done = match self.wake_passed().await {
            Ok(()) => self.pass_parts(tag, &split).await.map(|()| None),
            Err(e) => Err(e),
        };
        self.complete_passed(tag, done).await
    }

    async fn pass_parts(&mut self, tag: &str, split: &[(Bytes, Option<Bytes>)]) -> Result<(), Fail> {
        if split.iter().any(|(text, _)| !super::session::is_sane(text)) {
            return Err(Fail::Bad("a command can't hold a NUL".into()));
        }
        let borrowed: Vec<Part<'_>> = split
            .iter()
            .flat_map(|(text, literal)| {
                let literal = literal.as_ref().map(|l| Part::Literal(l));
                std::iter::once(Part::Text(text)).chain(literal)
            })
            .collect();
        let sent = self.passing()?.lease.send_parts(&borrowed).await.map_err(lost)?;
        self.relay(tag, sent).await
    }

    /// Passes responses on until the command's own, whose tag is exchanged.
    async fn relay(&mut self, tag: &str, sent: Tag) -> Result<(), Fail> {
        if self.relay_waiting(tag, sent).await? {
            return Ok(());
        }
        let Session { selection: Selection::Pass(passing), out, .. } = self else {
            return Err(Fail::Bad("select a mailbox first".into()));
        };
        let ours = format!("{sent} ").into_bytes();
        let mut line = Line::Between;
        loop {
            let piece = passing.lease.piece_in_time().await.map_err(|e| match line {
                Line::Passed | Line::Last => Fail::Cut(e.to_string()),
                Line::Between | Line::Dropped => lost(e),
            })?;
            match piece {
                Piece::Text(text) if line == Line::Between => {
                    line = Line::of(&text, &ours)?;
                    match line {
                        Line::Between | Line::Dropped => {}
                        Line::Passed => out.write_all(&fit(&text)).await?,
                        Line::Last => {
                            out.write_all(tag.as_bytes()).await?;
                            out.write_all(&fit(&text[ours.len() - 1..])).await?;
                        }
                    }
                }
                Piece::Text(text) if line != Line::Dropped => out.write_all(&fit(&text)).await?,
                Piece::Chunk(octets) if line != Line::Dropped => out.write_all(&octets).await?,
                Piece::Literal { .. } if line != Line::Dropped => out.write_all(b"\r\n").await?,
                Piece::Text(_) | Piece::Chunk(_) | Piece::Literal { .. } => {}
                Piece::End => {
                    if matches!(line, Line::Passed | Line::Last) {
                        out.write_all(b"\r\n").await?;
                    }
                    if line == Line::Last {
                        return Ok(());
                    }
                    line = Line::Between;
                }
            }
        }
    }

    /// Passes on what came while the provider was asked for a literal; true
    /// where the command is answered with it.
    async fn relay_waiting(&mut self, tag: &str, sent: Tag) -> Result<bool, Fail> {
        while let Some(response) = self.passing()?.lease.take_pending() {
            match response {
                Response::Untagged(u) => self.pass_untagged(&[u]).await?,
                Response::Tagged { tag: Some(t), status, code, text, .. } if t == sent => {
                    let word: &[u8] = match status {
                        Status::Ok => b" OK ",
                        Status::No => b" NO ",
                        Status::Bad => b" BAD ",
                    };
                    let code = code.map(|c| [b"[", &c[..], b"] "].concat()).unwrap_or_default();
                    self.write(tag.as_bytes()).await?;
                    self.write(&fit(&[word, &code, &text].concat())).await?;
                    self.write(b"\r\n").await?;
                    return Ok(true);
                }
                Response::Tagged { .. } | Response::Continue(_) => {}
            }
        }
        Ok(false)
    }

    /// IDLE. Where the provider has none, or ends it, it is polled.
    async fn pass_idle(&mut self, mirror: &Mirror) -> Result<String, Fail> {
        let timing = mirror.pool.timing().clone();
        let mut idles = self.passing()?.lease.capabilities().has("IDLE");
        let mut begun = false;
        loop {
            if idles {
                idles = match self.passing()?.lease.idle_start().await {
                    Ok(()) => true,
                    Err(e) if e.ends_connection() => return Err(lost(e)),
                    Err(_) => false,
                };
            }
            if !begun {
                self.line("+ idling").await?;
                self.out.flush().await?;
                begun = true;
            }
            let began = Instant::now();
            let wait = if idles { timing.idle_renew } else { mirror.settings.poll };
            let heard = self.hear(idles, tokio::time::Instant::now() + wait, timing.tick).await?;
            let lease = &mut self.passing()?.lease;
            let told = match heard {
                Heard::Over(status) => {
                    lease.idle_over();
                    idles = status == Status::Ok && began.elapsed() >= timing.idle_least;
                    continue;
                }
                Heard::Line(_) | Heard::Time if idles => {
                    let ended = tokio::time::timeout(timing.alive, lease.idle_done()).await;
                    ended.map_err(|_| ImapError::Timeout).and_then(|o| o).map_err(lost)?
                }
                Heard::Line(_) | Heard::Time => lease.briefly(b"NOOP").await.map_err(lost)?,
            };
            self.pass_untagged(&told.untagged).await?;
            self.out.flush().await?;
            match heard {
                Heard::Line(true) => return Ok("done".into()),
                Heard::Line(false) => return Err(Fail::Bad("expected DONE".into())),
                Heard::Time | Heard::Over(_) => {}
            }
        }
    }

    /// Passes on what the provider tells during IDLE, until something else
    /// has to be done.
    async fn hear(&mut self, idles: bool, until: tokio::time::Instant, tick: Duration) -> Result<Heard, Fail> {
        loop {
            match self.reader.next_line() {
                Ok(Some(line)) => return Ok(Heard::Line(line.trim_ascii().eq_ignore_ascii_case(b"DONE"))),
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
                response = passing.lease.next_response(), if idles => response.map(Some).map_err(lost),
                () = tokio::time::sleep_until(until) => return self.put_back(passing, Heard::Time),
                () = tokio::time::sleep(tick) => {
                    if passing.lease.slept_over() {
                        return self.put_back(passing, Heard::Time);
                    }
                    Ok(None)
                }
            };
            self.selection = Selection::Pass(passing);
            match heard? {
                Some(Response::Untagged(u)) => {
                    if matches!(u.parse(), UntaggedData::Bye { .. }) {
                        return Err(Fail::Bye("the provider ended the session".into()));
                    }
                    self.pass_untagged(&[u]).await?;
                    self.out.flush().await?;
                }
                Some(Response::Tagged { tag: Some(_), status, .. }) => return Ok(Heard::Over(status)),
                Some(Response::Tagged { .. } | Response::Continue(_)) | None => {}
            }
        }
    }

    fn put_back(&mut self, passing: Box<Passing>, heard: Heard) -> Result<Heard, Fail> {
        self.selection = Selection::Pass(passing);
        Ok(heard)
    }

    /// Completes a MOVE that was done by hand.
    async fn tell_moved(&mut self, moved: Moved) -> Result<String, Fail> {
        if let Some(code) = &moved.copyuid {
            let line = [b"* OK [", &code[..], b"] moved\r\n"].concat();
            self.write(&line).await?;
        }
        self.pass_untagged(&moved.untagged).await?;
        Ok("done".into())
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
        let by_hand = moving && !self.passing()?.lease.capabilities().has("MOVE");
        let (pairs, told, done) = {
            let _entering = mirror.arrivals.lock().await;
            let mut expected = None;
            if !self.own_lease()?.capabilities().has("UIDPLUS") {
                let known = super::entering::marks(self.own_lease()?, &set_text(set), uid).await;
                let (marks, news) = known.map_err(lost)?;
                // RFC 9051 §7.5.1: a COPY may tell of expunges as well.
                self.pass_untagged(&news).await?;
                let marks: Vec<_> = marks.into_iter().map(|(_, mark)| mark).collect();
                expected = Some((self.inbox_uid_next(mirror).await?, marks));
            }
            let passing = self.passing()?;
            let (codes, told, done) = if by_hand {
                let moved = passing.move_by_hand(&set_text(set), b"INBOX", uid).await?;
                (moved.copyuid.into_iter().collect(), moved.untagged, Ok(()))
            } else {
                let outcome = passing.lease.run(verb.as_bytes()).await.map_err(lost)?;
                let codes = outcome.code.iter().cloned();
                let codes: Vec<Bytes> = codes.chain(outcome.untagged.iter().filter_map(super::scan::ok_code)).collect();
                let told = outcome.untagged.iter().filter(|u| super::scan::ok_code(u).is_none()).cloned().collect();
                (codes, told, outcome.ok().map(drop).map_err(lost))
            };
            if let (Some((before, marks)), true) = (&expected, done.is_ok()) {
                let found = super::entering::find(mirror, *before, marks).await?;
                mirror.state().placements.extend(found.into_iter().map(|u| (u, place)));
            }
            let pairs = codes.iter().filter_map(|c| parse_copyuid(c)).next();
            if let Some((_, _, to)) = &pairs {
                mirror.state().placements.extend(to.iter().filter_map(|n| UpstreamUid::new(*n)).map(|u| (u, place)));
            }
            (pairs, told, done)
        };
        self.pass_untagged(&told).await?;
        done?;
        // The provider has done it: a sync that fails doesn't make that untrue.
        let synced = mirror.ask(Op::Sync).await.is_ok();
        let Some((_, from, to)) = pairs.filter(|_| synced) else { return Ok(Some("done".into())) };
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

/// What a response line of the provider is to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// None was begun.
    Between,
    Passed,
    /// Between the provider and us, or an answer to nothing that was asked.
    Dropped,
    /// The command's own response.
    Last,
}

impl Line {
    /// `ours` is the command's tag at the provider and a blank.
    fn of(text: &[u8], ours: &[u8]) -> Result<Line, Fail> {
        let begins = |what: &[u8]| text.get(..what.len()).is_some_and(|t| t.eq_ignore_ascii_case(what));
        if let Some(rest) = text.strip_prefix(ours) {
            let known = [&b"OK"[..], b"NO", b"BAD"].iter().any(|w| {
                rest.get(..w.len()).is_some_and(|r| r.eq_ignore_ascii_case(w))
                    && rest.get(w.len()).is_none_or(|b| *b == b' ')
            });
            return if known { Ok(Line::Last) } else { Err(Fail::Bye("the provider's answer is none".into())) };
        }
        if begins(b"* BYE") {
            return Err(Fail::Bye("the provider ended the session".into()));
        }
        // A tag that isn't the command's might be one that the client used.
        Ok(if text.starts_with(b"* ") && !begins(b"* CAPABILITY") { Line::Passed } else { Line::Dropped })
    }
}

/// What was heard during IDLE.
#[derive(Debug, Clone, Copy)]
enum Heard {
    /// A line of the client; whether it is DONE.
    Line(bool),
    /// It is time to renew or to poll.
    Time,
    /// The provider answered IDLE by itself.
    Over(Status),
}

/// A MOVE that was done by hand.
struct Moved {
    /// The response code of the COPY.
    copyuid: Option<Bytes>,
    untagged: Vec<Untagged>,
}

impl Passing {
    /// RFC 6851 §3.3 describes MOVE as COPY, STORE and EXPUNGE; the last takes
    /// others' deleted mail along but for UIDPLUS.
    async fn move_by_hand(&mut self, set: &str, target: &[u8], uid: bool) -> Result<Moved, Fail> {
        if !self.lease.capabilities().has("UIDPLUS") {
            let why = "the provider can't move, nor expunge single messages: copy, then delete";
            return Err(Fail::No("CANNOT", why.into()));
        }
        let mut moved = Moved { copyuid: None, untagged: Vec::new() };
        let verb = if uid { "UID FETCH" } else { "FETCH" };
        let found =
            self.lease.run(format!("{verb} {set} (UID)").as_bytes()).await.and_then(Outcome::ok).map_err(lost)?;
        let mut uids = Vec::new();
        for u in found.untagged {
            match u.parse() {
                UntaggedData::Fetch { items, .. } if items.flags.is_none() => uids.extend(items.uid),
                _ => moved.untagged.push(u),
            }
        }
        if uids.is_empty() {
            return Ok(moved);
        }
        uids.sort_unstable();
        uids.dedup();
        let set = super::uid::sequence_set(&uids);
        let copy = [format!("UID COPY {set} ").as_bytes(), target].concat();
        let copied = self.lease.run(&copy).await.map_err(lost)?;
        moved.untagged.extend(copied.untagged.iter().cloned());
        if copied.status != Status::Ok {
            let text = String::from_utf8_lossy(&copied.text).into_owned();
            // RFC 9051 §6.4.7: the client may create it and try again.
            let create = copied.code.as_deref().is_some_and(|c| c.eq_ignore_ascii_case(b"TRYCREATE"));
            return Err(if create { Fail::No("TRYCREATE", text) } else { Fail::Refused(text) });
        }
        moved.copyuid = copied.code.filter(|c| parse_copyuid(c).is_some());
        for command in [format!("UID STORE {set} +FLAGS.SILENT (\\Deleted)"), format!("UID EXPUNGE {set}")] {
            let done = self.lease.run(command.as_bytes()).await.map_err(lost)?;
            moved.untagged.extend(done.untagged.iter().cloned());
            if let Err(e) = done.ok() {
                return Err(Fail::Refused(format!("the messages were copied, but not removed: {e}")));
            }
        }
        Ok(moved)
    }
}

/// The connection of the selected mailbox is gone, and with it what the client
/// knows of sequence numbers; a refusal is only that.
pub(super) fn lost(e: ImapError) -> Fail {
    if e.ends_connection() { Fail::Bye(e.to_string()) } else { e.into() }
}

/// Whether untagged data is for clients, not between the provider and us.
fn is_for_clients(u: &Untagged) -> bool {
    match u.parse() {
        UntaggedData::Bye { .. } | UntaggedData::Capability(_) => false,
        UntaggedData::Ok { code: Some(code), .. } => {
            !code.get(..10).is_some_and(|c| c.eq_ignore_ascii_case(b"CAPABILITY"))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_another_tag_answers_nothing() {
        let of = |text: &[u8]| Line::of(text, b"t7 ").ok();
        assert_eq!(of(b"t7 OK done"), Some(Line::Last));
        assert_eq!(of(b"t7 no"), Some(Line::Last));
        assert_eq!(of(b"t7 OKAY"), None);
        for other in [&b"t71 OK done"[..], b"c1 OK done", b"+ go on", b"* capability X"] {
            assert_eq!(of(other), Some(Line::Dropped));
        }
        assert_eq!(of(b"* bye"), None);
        assert_eq!(of(b"* 1 EXISTS"), Some(Line::Passed));
    }
}
