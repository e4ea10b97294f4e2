//! What a session asks of the provider beside its selected mailbox: LIST,
//! STATUS, APPEND and their like.
//!
//! Promises: a session with a passed-through mailbox asks over that mailbox's
//! connection, so that it needs no second one, and tells its client what the
//! provider said of the mailbox meanwhile; when that connection is lost the
//! session ends. Others borrow a connection. Doesn't know: what is asked.

use crate::upstream::imap::{ImapError, Outcome, Response, Untagged, UntaggedData};

use super::mirror::Mirror;
use super::pass::lost;
use super::pool::Lease;
use super::select::ready;
use super::session::{Fail, Selection, Session};

/// The connection of one errand.
pub(super) struct Errand {
    /// `None`: the one of the selected mailbox.
    borrowed: Option<Lease>,
    /// Nobody can use the connection any more.
    broken: bool,
}

impl Errand {
    /// Whether it goes over the connection of the selected mailbox.
    pub(super) fn is_own(&self) -> bool {
        self.borrowed.is_none()
    }

    /// The connection.
    pub(super) fn lease<'a>(&'a mut self, session: &'a mut Session) -> Result<&'a mut Lease, Fail> {
        match &mut self.borrowed {
            Some(lease) => Ok(lease),
            None => session.own_lease(),
        }
    }

    /// What a failure of the connection means.
    pub(super) fn fail(&mut self, e: ImapError) -> Fail {
        self.broken |= e.ends_connection();
        if self.is_own() { lost(e) } else { e.into() }
    }

    /// The next response; see [`Session::overheard`] for what isn't an answer.
    pub(super) async fn response(&mut self, session: &mut Session) -> Result<Response, Fail> {
        let got = self.lease(session)?.response_in_time().await;
        got.map_err(|e| self.fail(e))
    }

    /// The errand is done and its connection between commands.
    pub(super) fn end(self) {
        if let Some(lease) = self.borrowed
            && !self.broken
        {
            lease.give_back();
        }
    }

    /// The errand failed; a refusal leaves its connection between commands.
    pub(super) fn failed(self, why: Fail) -> Fail {
        match why {
            Fail::No(..) | Fail::Refused(_) => self.end(),
            Fail::Bad(_) | Fail::Bye(_) | Fail::Cut(_) | Fail::Io(_) => {}
        }
        why
    }
}

impl Session {
    /// Waits until errands can be done. A session with a passed-through
    /// mailbox has its connection; whether that lives the errand tells.
    pub(super) async fn reachable(&self, mirror: &Mirror) -> Result<(), Fail> {
        match &self.selection {
            Selection::Pass(_) => Ok(()),
            Selection::Nothing | Selection::View(_) => ready(mirror).await,
        }
    }

    /// Begins an errand.
    pub(super) async fn errand(&mut self, mirror: &Mirror) -> Result<Errand, Fail> {
        if let Selection::Pass(_) = &self.selection {
            self.wake_passed().await?;
            return Ok(Errand { borrowed: None, broken: false });
        }
        Ok(Errand { borrowed: Some(mirror.pool.any().await?), broken: false })
    }

    /// One command without literals; its untagged responses without those
    /// that tell of the selected mailbox, which the client has then got.
    pub(super) async fn ask_provider(&mut self, mirror: &Mirror, command: &[u8]) -> Result<Outcome, Fail> {
        let mut errand = self.errand(mirror).await?;
        let ran = errand.lease(self)?.run(command).await;
        let mut outcome = ran.map_err(|e| errand.fail(e))?;
        if errand.is_own() {
            let (answers, news): (Vec<_>, Vec<_>) = outcome.untagged.into_iter().partition(is_answer);
            // RFC 9051 §7.5.1: an EXPUNGE may be told during every command
            // but FETCH, STORE and SEARCH.
            self.pass_untagged(&news).await?;
            outcome.untagged = answers;
        }
        errand.end();
        Ok(outcome)
    }

    /// UIDNEXT of the provider's INBOX, for [`super::entering::find`].
    pub(super) async fn inbox_uid_next(&mut self, mirror: &Mirror) -> Result<u32, Fail> {
        let outcome = self.ask_provider(mirror, b"STATUS INBOX (UIDNEXT)").await?.ok()?;
        let next = outcome.untagged.iter().find_map(|u| match u.parse() {
            UntaggedData::Status { items, .. } => items
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("UIDNEXT"))
                .and_then(|(_, n)| u32::try_from(*n).ok()),
            _ => None,
        });
        next.ok_or_else(|| Fail::No("UNAVAILABLE", "the provider doesn't say its UIDNEXT".into()))
    }

    /// What the provider tells during an errand without being asked: of the
    /// selected mailbox, where the errand goes over its connection.
    pub(super) async fn overheard(&mut self, errand: &Errand, u: Untagged) -> Result<(), Fail> {
        if errand.is_own() { self.pass_untagged(&[u]).await } else { Ok(()) }
    }
}

/// Whether untagged data answers an errand.
fn is_answer(u: &Untagged) -> bool {
    match u.parse() {
        UntaggedData::List { .. } | UntaggedData::Lsub { .. } | UntaggedData::Status { .. } => true,
        _ => u.text.get(..11).is_some_and(|t| t.eq_ignore_ascii_case(b"* NAMESPACE")),
    }
}
