//! APPEND (RFC 9051 §6.3.12), streamed.
//!
//! Promises: the octets reach the provider as they came or not at all, but
//! for our own stamps: a person's client that moves a message by uploading
//! what it was shown gives the provider its own octets back. A message put
//! into INBOX or a lane is shown in exactly that mailbox, unstamped, and is
//! never taken for new mail. Doesn't know: what it says.

use bytes::Bytes;
use imap_codec::CommandCodec;
use imap_codec::decode::Decoder;
use imap_codec::imap_types::command::CommandBody;

use tokio::io::AsyncWriteExt;
use tokio::sync::MutexGuard;

use crate::lane::trace::Trace;
use crate::lane::{stamp, unstamp};
use crate::store::{StoreError, Table, get_json, read};
use crate::upstream::imap::{Response, Status, Tag, UntaggedData, parse_appenduid};
use crate::wire::imap::CommandEvent;

use super::agent::draft_flags;
use super::errand::Errand;
use super::lanes::Place;
use super::mirror::{Mirror, Op, OpError};
use super::rows;
use super::select::name_of;
use super::session::{Fail, Session, passed_code};
use super::uid::UpstreamUid;

/// Largest draft of an agent, in octets.
pub const MAX_AGENT_DRAFT: u64 = 10 * 1024 * 1024;

/// Octets at the start of a person's message in which stamps are looked for.
const LOOK: usize = 64 * 1024;

/// The start of a message.
#[derive(Default)]
struct Start {
    octets: Bytes,
    /// How many octets of stamps were taken away.
    taken: u64,
}

/// An APPEND that the provider waits for.
struct Opened {
    tag: String,
    /// UIDNEXT of INBOX as it was before, where the provider won't say the
    /// message's UID.
    before: Option<u32>,
}

/// What the provider said of the message.
struct Answered {
    /// UIDVALIDITY and UID, where it says.
    uid: Option<(u32, u32)>,
    /// The client was told of it (RFC 9051 §6.3.12).
    told: bool,
}

/// Where a message goes.
struct Target {
    mailbox: Vec<u8>,
    /// The view, when it enters one.
    place: Option<Place>,
    /// Flags and date as the command had them, encoded anew.
    middle: String,
}

impl Session {
    /// APPEND up to its literal; reads the rest itself.
    pub(super) async fn append(&mut self, head: Bytes, len: u64, sync: bool) -> Result<(), Fail> {
        let end = head.iter().position(|b| *b == b' ').unwrap_or(head.len());
        let tag = String::from_utf8_lossy(&head[..end]).into_owned();
        match self.prepare_append(&head, len).await {
            Ok((mirror, target)) => {
                let done = self.transfer(&mirror, &target, len, sync).await;
                self.complete(&tag, done).await
            }
            Err(e) => {
                self.reader.refuse_append(sync);
                self.complete(&tag, Err(e)).await
            }
        }
    }

    async fn prepare_append(&mut self, head: &[u8], len: u64) -> Result<(std::sync::Arc<Mirror>, Target), Fail> {
        let mirror = self.mirror()?;
        let open = memchr::memrchr(b'{', head).ok_or_else(|| Fail::Bad("no literal".into()))?;
        if head[..open].ends_with(b"~") {
            return Err(Fail::Bad("literal8 is not offered".into()));
        }
        let whole = [&head[..open], b"{0}\r\n\r\n"].concat();
        let Ok((_, command)) = CommandCodec::default().decode(&whole) else {
            return Err(Fail::Bad("the command is not well formed".into()));
        };
        self.note_asked(&command.body);
        self.permit(&command.body)?;
        let CommandBody::Append { mailbox, flags, date, .. } = &command.body else {
            return Err(Fail::Bad("not an APPEND".into()));
        };
        self.reachable(&mirror).await?;
        if len > mirror.max_message_bytes {
            return Err(Fail::No("TOOBIG", format!("messages are limited to {} octets", mirror.max_message_bytes)));
        }
        let name = name_of(mailbox);
        if !super::session::is_sane(&name) {
            return Err(Fail::No("CANNOT", "a mailbox name can't hold a line end or a NUL".into()));
        }
        let (place, owned) = {
            let state = mirror.state();
            let lanes = state.lanes.as_ref();
            (lanes.and_then(|l| l.find(&name)), lanes.is_some_and(|l| l.owns(&name)))
        };
        if self.signed()?.is_agent() {
            if place.is_some() || !self.is_drafts(&mirror, &name).await? {
                return Err(Fail::No("NOPERM", "an agent's key may append to the mailbox for drafts only".into()));
            }
            if !draft_flags(flags) {
                return Err(Fail::No("NOPERM", "an agent's draft may carry the flags \\Draft and \\Seen only".into()));
            }
            if len > MAX_AGENT_DRAFT {
                return Err(Fail::No("TOOBIG", format!("a draft is limited to {MAX_AGENT_DRAFT} octets")));
            }
        }
        if place == Some(Place::All) || (place.is_none() && owned) {
            return Err(Fail::No("CANNOT", "nothing can be put there".into()));
        }
        let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
        let mut middle = if flags.is_empty() { String::new() } else { format!(" ({})", flags.join(" ")) };
        if let Some(date) = date {
            middle.push_str(&format!(" \"{}\"", date.as_ref().format("%d-%b-%Y %H:%M:%S %z")));
        }
        let mailbox = if place.is_some() { b"INBOX".to_vec() } else { name };
        Ok((mirror, Target { mailbox, place, middle }))
    }

    /// Sends head and message to the provider.
    async fn transfer(&mut self, mirror: &Mirror, target: &Target, len: u64, sync: bool) -> Result<String, Fail> {
        let mut errand = match self.errand(mirror).await {
            Ok(errand) => errand,
            Err(e) => {
                self.reader.refuse_append(sync);
                return Err(e);
            }
        };
        let mut invited = !sync;
        let mut start = Start::default();
        if !self.signed()?.is_agent() {
            self.invite(&mut invited).await?;
            start = match self.read_start(mirror, len).await {
                Ok(start) => start,
                Err(e) => {
                    self.reader.refuse_append(false);
                    return Err(errand.failed(e));
                }
            };
        }
        let sent = len - start.taken;
        let opened = match self.open_append(mirror, &mut errand, target, sent).await {
            Ok(opened) => opened,
            Err(e) => {
                self.reader.refuse_append(!invited);
                return Err(errand.failed(e));
            }
        };
        self.invite(&mut invited).await?;
        let (entering, begin) = self.stream(mirror, &mut errand, target, start).await?;
        let mut answer = match self.finish(&mut errand, &opened.tag).await {
            Ok(answer) => answer,
            Err(e) => return Err(errand.failed(e)),
        };
        if let (None, Some(before)) = (answer.uid, opened.before) {
            let mark = super::entering::Mark { size: sent, message_id: super::scan::message_id(&begin) };
            let found = super::entering::find(mirror, before, &[mark]).await?;
            // UIDVALIDITY of INBOX isn't passed on from here.
            answer.uid = found.first().map(|u| (0, u.get()));
        }
        if let (Some(place), Some((_, uid))) = (target.place, answer.uid)
            && let Some(up) = UpstreamUid::new(uid)
        {
            mirror.state().placements.insert(up, place);
        }
        drop(entering);
        if target.place.is_none() && !answer.told {
            self.catch_up(&target.mailbox).await?;
        }
        errand.end();
        let Some((validity, uid)) = answer.uid else { return Ok("done".into()) };
        let Some(place) = target.place else { return Ok(format!("[APPENDUID {validity} {uid}] done")) };
        // The provider has it: a sync that fails doesn't make that untrue.
        if mirror.ask(Op::Sync).await.is_err() {
            return Ok("done".into());
        }
        let (validity, uids) = self.placed(mirror, place, &[uid])?;
        self.tell(true).await?;
        Ok(match uids.first() {
            Some(uid) => format!("[APPENDUID {validity} {uid}] done"),
            None => "done".into(),
        })
    }

    /// Lets a client go on that waits for that.
    async fn invite(&mut self, invited: &mut bool) -> Result<(), Fail> {
        if !std::mem::replace(invited, true) {
            self.line("+ OK").await?;
            self.out.flush().await?;
        }
        Ok(())
    }

    /// The next octets of the message; `None` at its end.
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, Fail> {
        loop {
            match self.reader.next() {
                Ok(Some(CommandEvent::AppendChunk(chunk))) => return Ok(Some(chunk)),
                Ok(Some(CommandEvent::AppendTail(tail))) if tail.as_ref() == b"\r\n" => return Ok(None),
                Ok(Some(_)) => return Err(Fail::Bad("one message at a time".into())),
                Ok(None) => {
                    if !self.fill().await? {
                        return Err(Fail::Io(std::io::ErrorKind::UnexpectedEof.into()));
                    }
                }
                Err(e) => return Err(Fail::Bye(e.to_string())),
            }
        }
    }

    /// Reads the message up to the end of its header, or [`LOOK`] octets, and
    /// takes our own stamps away.
    async fn read_start(&mut self, mirror: &Mirror, len: u64) -> Result<Start, Fail> {
        let mut octets = Vec::new();
        let mut searched = 0;
        while (octets.len() as u64) < len && octets.len() < LOOK {
            let Some(chunk) = self.next_chunk().await? else { break };
            octets.extend_from_slice(&chunk);
            if unstamp::holds_header(&octets, searched) {
                break;
            }
            searched = octets.len();
        }
        let whole = octets.len() as u64 == len;
        if is_notice(mirror, &octets) {
            return Err(Fail::No("CANNOT", "a notice of the gateway stays in INBOX".into()));
        }
        let stamps = stamps(mirror, &unstamp::decisions(&octets, whole))?;
        let kept = unstamp::without(&octets, whole, &stamps);
        let taken = (octets.len() - kept.len()) as u64;
        // A message that is nothing but a stamp stays one.
        if taken == len {
            return Ok(Start { taken: 0, octets: octets.into() });
        }
        Ok(Start { taken, octets: kept.into() })
    }

    /// Sends the message. What is sent last waits until the client ended the
    /// command, so that the provider never has a whole message of a command
    /// that has none. From then on it may appear in INBOX at any moment.
    /// Also the octets that it begins with.
    async fn stream<'m>(
        &mut self,
        mirror: &'m Mirror,
        errand: &mut Errand,
        target: &Target,
        start: Start,
    ) -> Result<(Option<MutexGuard<'m, ()>>, Vec<u8>), Fail> {
        let mut begin = Vec::new();
        let mut last = start.octets;
        loop {
            let next = self.next_chunk().await.map_err(|e| match e {
                // An APPEND that was begun can't be taken back.
                Fail::Bad(why) if errand.is_own() => Fail::Bye(why),
                other => other,
            })?;
            let entering = match (&next, target.place) {
                (None, Some(_)) => Some(mirror.arrivals.lock().await),
                _ => None,
            };
            let room = super::entering::HEAD.saturating_sub(begin.len());
            begin.extend_from_slice(&last[..last.len().min(room)]);
            let lease = errand.lease(self)?;
            let mut written = lease.write_raw(&last).await;
            if next.is_none() && written.is_ok() {
                written = lease.write_raw(b"\r\n").await;
            }
            if next.is_none() && written.is_ok() {
                written = lease.flush().await;
            }
            written.map_err(|e| errand.fail(e))?;
            match next {
                Some(chunk) => last = chunk,
                None => return Ok((entering, begin)),
            }
        }
    }

    /// Announces the message to the provider and waits for its consent.
    async fn open_append(
        &mut self,
        mirror: &Mirror,
        errand: &mut Errand,
        target: &Target,
        len: u64,
    ) -> Result<Opened, Fail> {
        let mut before = None;
        if target.place.is_some() && !errand.lease(self)?.capabilities().has("UIDPLUS") {
            before = Some(self.inbox_uid_next(mirror).await?);
        }
        let lease = errand.lease(self)?;
        let tag = lease.fresh_tag();
        let name = super::encode::quote(&target.mailbox);
        // The literal is one that waits: RFC 7888 §5 lets a provider with
        // LITERAL- refuse larger ones, and a refusal costs no upload.
        let head = [tag.as_bytes(), b" APPEND ", &name, target.middle.as_bytes(), format!(" {{{len}}}\r\n").as_bytes()]
            .concat();
        let mut written = lease.write_raw(&head).await;
        if written.is_ok() {
            written = lease.flush().await;
        }
        written.map_err(|e| errand.fail(e))?;
        loop {
            match errand.response(self).await? {
                Response::Continue(_) => return Ok(Opened { tag, before }),
                Response::Tagged { tag: of, code, text, .. } if is_tag(of, &tag) => {
                    return Err(refusal(code.as_deref(), &text));
                }
                Response::Tagged { .. } => {}
                Response::Untagged(u) => self.overheard(errand, u).await?,
            }
        }
    }

    /// The provider's answer to the message.
    async fn finish(&mut self, errand: &mut Errand, tag: &str) -> Result<Answered, Fail> {
        let mut told = false;
        loop {
            match errand.response(self).await? {
                Response::Tagged { tag: of, status, code, text, .. } if is_tag(of, tag) => {
                    return match status {
                        Status::Ok => Ok(Answered { uid: code.as_deref().and_then(parse_appenduid), told }),
                        Status::No | Status::Bad => Err(refusal(code.as_deref(), &text)),
                    };
                }
                Response::Tagged { .. } | Response::Continue(_) => {}
                Response::Untagged(u) => {
                    told |= errand.is_own() && matches!(u.parse(), UntaggedData::Exists(_));
                    self.overheard(errand, u).await?;
                }
            }
        }
    }
}

/// The provider's refusal. RFC 9051 §7.1: after TRYCREATE the client may create
/// the mailbox and try again.
fn refusal(code: Option<&[u8]>, text: &[u8]) -> Fail {
    let text = String::from_utf8_lossy(text).into_owned();
    match code.and_then(passed_code) {
        Some(code) => Fail::No(code, text),
        None => Fail::Refused(text),
    }
}

fn is_tag(of: Option<Tag>, ours: &str) -> bool {
    of.is_some_and(|t| t.to_string() == ours)
}

/// Whether a message is a notice: no octet of one goes to the provider.
fn is_notice(mirror: &Mirror, start: &[u8]) -> bool {
    let state = mirror.state();
    if state.locals.is_empty() {
        return false;
    }
    let id = super::scan::message_id(start);
    id.is_some() && state.locals.values().any(|l| super::scan::message_id(l.row.octets.as_bytes()) == id)
}

/// The stamps of these decisions, as far as they are this account's.
fn stamps(mirror: &Mirror, ids: &[String]) -> Result<Vec<Vec<u8>>, Fail> {
    let mut out = Vec::new();
    for id in ids {
        let key = rows::decision_key(&mirror.account, id);
        let trace: Option<Trace> =
            read::<_, StoreError>(&*mirror.store, |r| get_json(r, Table::Decision, &key)).map_err(OpError::from)?;
        out.extend(trace.map(|t| stamp::render(&t)));
    }
    Ok(out)
}
