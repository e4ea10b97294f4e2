//! APPEND (RFC 9051 §6.3.12), streamed.
//!
//! Promises: the octets reach the provider as they came or not at all; a
//! message put into INBOX or a lane is shown in exactly that mailbox,
//! unstamped, and is never taken for new mail. Doesn't know: what it says.

use bytes::Bytes;
use imap_codec::CommandCodec;
use imap_codec::decode::Decoder;
use imap_codec::imap_types::command::CommandBody;

use tokio::io::AsyncWriteExt;

use crate::upstream::imap::{Response, Status, parse_appenduid};
use crate::wire::imap::CommandEvent;

use super::agent::draft_flags;
use super::lanes::Place;
use super::mirror::{Mirror, Op};
use super::pool::Lease;
use super::select::{name_of, ready};
use super::session::{Fail, Session};
use super::uid::UpstreamUid;

/// Largest draft of an agent, in octets.
pub const MAX_AGENT_DRAFT: u64 = 10 * 1024 * 1024;

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
        ready(&mirror).await?;
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
            if place.is_some() || !super::list::is_drafts(&mirror, &name).await? {
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
        let (mut lease, before) = match self.open_append(mirror, target, len).await {
            Ok(opened) => opened,
            Err(e) => {
                self.reader.refuse_append(sync);
                return Err(e);
            }
        };
        if sync {
            self.line("+ OK").await?;
            self.out.flush().await?;
        }
        let mut left = len;
        let mut entering = None;
        let mut begin = Vec::new();
        loop {
            if left == 0 && entering.is_none() && target.place.is_some() {
                // From here on the message may appear in INBOX at any moment.
                entering = Some(mirror.arrivals.lock().await);
            }
            match self.reader.next() {
                Ok(Some(CommandEvent::AppendChunk(chunk))) => {
                    left -= (chunk.len() as u64).min(left);
                    if left == 0 && target.place.is_some() {
                        entering = Some(mirror.arrivals.lock().await);
                    }
                    if before.is_some() {
                        let room = super::entering::HEAD.saturating_sub(begin.len());
                        begin.extend_from_slice(&chunk[..chunk.len().min(room)]);
                    }
                    lease.write_raw(&chunk).await?;
                }
                Ok(Some(CommandEvent::AppendTail(tail))) if tail.as_ref() == b"\r\n" => break,
                // Dropping the connection here makes the provider forget the
                // unfinished message.
                Ok(Some(_)) => return Err(Fail::Bad("one message at a time".into())),
                Ok(None) => {
                    if !self.fill().await? {
                        return Err(Fail::Io(std::io::ErrorKind::UnexpectedEof.into()));
                    }
                }
                Err(e) => return Err(Fail::Bye(e.to_string())),
            }
        }
        lease.write_raw(b"\r\n").await?;
        lease.flush().await?;
        let mut uid = finish(&mut lease).await?;
        if let (None, Some(before)) = (uid, before) {
            let mark = super::entering::Mark { size: len, message_id: super::scan::message_id(&begin) };
            let found = super::entering::find(mirror, before, &[mark]).await?;
            // UIDVALIDITY of INBOX isn't passed on from here.
            uid = found.first().map(|u| (0, u.get()));
        }
        if let (Some(place), Some((_, uid))) = (target.place, uid)
            && let Some(up) = UpstreamUid::new(uid)
        {
            mirror.state().placements.insert(up, place);
        }
        drop(entering);
        lease.give_back();
        if target.place.is_none() {
            self.catch_up(&target.mailbox).await?;
        }
        let Some((validity, uid)) = uid else { return Ok("done".into()) };
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

    /// Announces the message to the provider and waits for its consent.
    /// Where the provider won't say the message's UID, UIDNEXT of INBOX as it
    /// was before comes with the connection.
    async fn open_append(&mut self, mirror: &Mirror, target: &Target, len: u64) -> Result<(Lease, Option<u32>), Fail> {
        let mut lease = mirror.pool.any().await?;
        let mut before = None;
        if target.place.is_some() && !lease.capabilities().has("UIDPLUS") {
            before = Some(super::entering::uid_next(&mut lease).await?);
        }
        let tag = lease.fresh_tag();
        let name = super::encode::quote(&target.mailbox);
        let head = [tag.as_bytes(), b" APPEND ", &name, target.middle.as_bytes(), format!(" {{{len}}}\r\n").as_bytes()]
            .concat();
        lease.write_raw(&head).await?;
        lease.flush().await?;
        loop {
            match response(&mut lease).await? {
                Response::Continue(_) => return Ok((lease, before)),
                Response::Tagged { code, text, .. } => {
                    lease.give_back();
                    let text = String::from_utf8_lossy(&text).into_owned();
                    return match code.as_deref() {
                        // RFC 9051 §7.1: the client may create it and try again.
                        Some(b"TRYCREATE") => Err(Fail::No("TRYCREATE", text)),
                        Some(b"OVERQUOTA") => Err(Fail::No("OVERQUOTA", text)),
                        _ => Err(Fail::Refused(text)),
                    };
                }
                Response::Untagged(_) => {}
            }
        }
    }
}

async fn response(lease: &mut Lease) -> Result<Response, Fail> {
    Ok(lease.response_in_time().await?)
}

/// The provider's answer to the message: UIDVALIDITY and UID, where it says.
async fn finish(lease: &mut Lease) -> Result<Option<(u32, u32)>, Fail> {
    loop {
        if let Response::Tagged { status, code, text, .. } = response(lease).await? {
            return match status {
                Status::Ok => Ok(code.as_deref().and_then(parse_appenduid)),
                Status::No | Status::Bad => Err(Fail::Refused(String::from_utf8_lossy(&text).into_owned())),
            };
        }
    }
}
