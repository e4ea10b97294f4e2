//! COPY and MOVE (RFC 9051 §6.4.7 and §6.4.8).
//!
//! Promises: between lanes it is a person's correction; out of a view it acts
//! on the provider's INBOX; into a view the message enters exactly the mailbox
//! named, unstamped; COPYUID carries the UIDs that this client sees. Of
//! messages that another session expunged, a UID names nothing, and a sequence
//! number makes the command fail before anything is copied.

use imap_codec::imap_types::mailbox::Mailbox;
use imap_codec::imap_types::sequence::SequenceSet;

use super::lanes::Place;
use super::mirror::{Copied, Mirror, Op, OpError};
use super::rows::ViewId;
use super::select::name_of;
use super::session::{Fail, Session};
use super::uid::{UpstreamUid, ViewUid};
use super::view::Source;

impl Session {
    /// COPY or MOVE out of a view.
    pub(super) async fn copy(
        &mut self,
        set: &SequenceSet,
        mailbox: &Mailbox<'_>,
        uid: bool,
        moving: bool,
    ) -> Result<String, Fail> {
        let mirror = self.mirror()?;
        let viewing = self.viewing()?;
        if moving && viewing.read_only {
            return Err(Fail::No("CANNOT", "the mailbox is open read-only".into()));
        }
        let id = viewing.id;
        let mut chosen: Vec<ViewUid> = viewing.resolve(set, uid)?.into_iter().map(|(_, u)| u).collect();
        let named = chosen.len();
        {
            let state = mirror.state();
            chosen.retain(|u| state.view(id).is_some_and(|v| v.get(*u).is_some()));
        }
        // The client learns of it at once: RFC 9051 §7.5.1 forbids an EXPUNGE
        // during FETCH, STORE and SEARCH alone.
        if chosen.len() != named {
            self.tell(true).await?;
            if !uid {
                // RFC 9051 §6.4.7: all of them or none.
                return Err(OpError::Gone.into());
            }
        }
        if chosen.is_empty() {
            // RFC 9051 §6.4.9: a UID that isn't there is no error.
            return Ok("nothing to do".into());
        }
        let name = name_of(mailbox);
        let lanes = mirror.state().lanes.clone();
        let lanes = lanes.ok_or_else(|| Fail::No("UNAVAILABLE", "the account is starting".into()))?;
        let text = match lanes.find(&name) {
            Some(Place::All) => return Err(Fail::No("CANNOT", "everything is there already".into())),
            Some(place) if place == id.1 && !moving => return Err(Fail::No("CANNOT", "it is there already".into())),
            Some(place) => self.relane(&mirror, id, chosen, place, moving).await?,
            None if lanes.owns(&name) => return Err(Fail::No("CANNOT", "nothing can be put there".into())),
            None => self.copy_out(&mirror, id, &chosen, name, moving).await?,
        };
        if moving {
            self.tell(true).await?;
        }
        Ok(text)
    }

    async fn relane(
        &mut self,
        mirror: &Mirror,
        id: ViewId,
        chosen: Vec<ViewUid>,
        place: Place,
        moving: bool,
    ) -> Result<String, Fail> {
        let pairs = mirror.ask(|r| Op::Relane(id, chosen, place, moving, r)).await?;
        let validity = mirror.state().view((id.0, place)).map_or(0, |v| v.uidvalidity);
        let from: Vec<String> = pairs.iter().map(|(a, _)| a.to_string()).collect();
        let to: Vec<String> = pairs.iter().map(|(_, b)| b.to_string()).collect();
        self.copyuid(moving, validity, &from, &to).await
    }

    async fn copy_out(
        &mut self,
        mirror: &Mirror,
        id: ViewId,
        chosen: &[ViewUid],
        name: Vec<u8>,
        moving: bool,
    ) -> Result<String, Fail> {
        let (mut up, mut notices) = (Vec::new(), Vec::new());
        {
            let state = mirror.state();
            let view = state.view(id).ok_or(OpError::Gone)?;
            for uid in chosen {
                match view.get(*uid).ok_or(OpError::Gone)?.source {
                    Source::Upstream(u) => up.push((u, *uid)),
                    Source::Local(n) => notices.push(n),
                }
            }
        }
        if !notices.is_empty() {
            // No octet of a notice goes to the provider. Putting it into the
            // trash or junk is how people get rid of it.
            if !(moving && up.is_empty() && self.is_bin(mirror, &name).await?) {
                return Err(Fail::No("CANNOT", "a notice of the gateway stays in INBOX".into()));
            }
            mirror.ask(|r| Op::RemoveLocals(notices, r)).await?;
            return Ok("the notice is dismissed".into());
        }
        let uids: Vec<UpstreamUid> = up.iter().map(|(u, _)| *u).collect();
        let Copied { uidvalidity, pairs } = mirror.ask(|r| Op::CopyOut(uids, name, moving, r)).await?;
        let Some(validity) = uidvalidity else { return Ok("done".into()) };
        let mut from = Vec::new();
        let mut to = Vec::new();
        for (u, dest) in pairs {
            if let Some((_, view_uid)) = up.iter().find(|(known, _)| *known == u) {
                from.push(view_uid.to_string());
                to.push(dest.to_string());
            }
        }
        self.copyuid(moving, validity, &from, &to).await
    }

    /// COPYUID: in the completion of COPY, before the expunges of MOVE
    /// (RFC 6851 §4.3).
    pub(super) async fn copyuid(
        &mut self,
        moving: bool,
        validity: u32,
        from: &[String],
        to: &[String],
    ) -> Result<String, Fail> {
        if from.is_empty() || validity == 0 {
            return Ok("done".into());
        }
        let code = format!("[COPYUID {validity} {} {}]", from.join(","), to.join(","));
        if moving {
            self.line(&format!("* OK {code} moved")).await?;
            return Ok("done".into());
        }
        Ok(format!("{code} done"))
    }
}
