//! Which messages of INBOX are the ones that a client has just put there,
//! where the provider doesn't say (no UIDPLUS, RFC 4315).
//!
//! Promises: a message is found by what it is, never by its number alone, so
//! that new mail of the same moment isn't taken for it. Doesn't know: where
//! it will be shown.

use crate::upstream::imap::{ImapError, Untagged, UntaggedData, Value};

use super::mirror::Mirror;
use super::pool::{Lease, refused};
use super::session::Fail;
use super::uid::UpstreamUid;

/// Octets of a message in which its Message-ID is looked for.
pub(super) const HEAD: usize = 64 * 1024;

/// What a message is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// RFC822.SIZE, in octets.
    pub(super) size: u64,
    /// Message-ID, where it has one.
    pub(super) message_id: Option<String>,
}

/// What messages of the selected mailbox are known by, and what else the
/// provider told meanwhile.
pub(super) async fn marks(
    lease: &mut Lease,
    set: &str,
    by_uid: bool,
) -> Result<(Vec<(u32, Mark)>, Vec<Untagged>), ImapError> {
    let verb = if by_uid { "UID FETCH" } else { "FETCH" };
    let command = format!("{verb} {set} (UID RFC822.SIZE BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)])");
    let outcome = lease.run(command.as_bytes()).await?.ok()?;
    let (mut out, mut news) = (Vec::new(), Vec::new());
    for u in outcome.untagged {
        let UntaggedData::Fetch { items, .. } = u.parse() else {
            news.push(u);
            continue;
        };
        let (Some(uid), Some(size)) = (items.uid, items.size) else {
            news.push(u);
            continue;
        };
        let message_id = items.other.iter().find_map(|(name, value)| match value {
            Value::Literal(b) | Value::Quoted(b) if name.to_ascii_uppercase().starts_with(b"BODY[") => {
                super::scan::message_id(b)
            }
            _ => None,
        });
        out.push((uid, Mark { size, message_id }));
    }
    out.sort_by_key(|(uid, _)| *uid);
    Ok((out, news))
}

/// The messages from `before` on that are the ones with these marks, in the
/// order of the marks. To be called while [`Mirror::arrivals`] is held.
pub(super) async fn find(mirror: &Mirror, before: u32, wanted: &[Mark]) -> Result<Vec<UpstreamUid>, Fail> {
    let mut lease = mirror.pool.inbox().await?;
    lease.run(b"NOOP").await.map_err(|e| refused(&e))?.ok()?;
    let (found, _) = marks(&mut lease, &format!("{before}:*"), true).await?;
    lease.give_back();
    let mut new: Vec<(UpstreamUid, Mark)> = {
        let state = mirror.state();
        found
            .into_iter()
            // `n:*` names the last message even where its UID is below n.
            .filter(|(uid, _)| *uid >= before)
            .filter_map(|(uid, mark)| Some((UpstreamUid::new(uid)?, mark)))
            .filter(|(uid, _)| !state.messages.contains_key(uid))
            .collect()
    };
    Ok(wanted.iter().filter_map(|mark| choose(&mut new, mark)).collect())
}

/// Takes the message with a mark out of the list. A provider may count sizes
/// in its own way: then the Message-ID decides, or that there is no other.
fn choose(new: &mut Vec<(UpstreamUid, Mark)>, mark: &Mark) -> Option<UpstreamUid> {
    let same_id = |m: &Mark| mark.message_id.is_some() && m.message_id == mark.message_id;
    let at = new
        .iter()
        .position(|(_, m)| m == mark)
        .or_else(|| new.iter().position(|(_, m)| same_id(m)))
        .or_else(|| (new.len() == 1).then_some(0))?;
    Some(new.remove(at).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(list: &[(u32, u64, &str)]) -> Vec<(UpstreamUid, Mark)> {
        let one = |(uid, size, id): &(u32, u64, &str)| {
            let message_id = (!id.is_empty()).then(|| (*id).to_owned());
            (UpstreamUid::new(*uid).unwrap(), Mark { size: *size, message_id })
        };
        list.iter().map(one).collect()
    }

    #[test]
    fn a_message_is_known_by_size_and_message_id_then_by_either() {
        let wanted = Mark { size: 10, message_id: Some("<a@x>".into()) };
        let pick = |list: &[(u32, u64, &str)]| choose(&mut new(list), &wanted).map(UpstreamUid::get);
        assert_eq!(pick(&[(5, 10, "<b@x>"), (6, 10, "<a@x>"), (7, 11, "<a@x>")]), Some(6));
        assert_eq!(pick(&[(5, 10, "<b@x>"), (6, 12, "<a@x>")]), Some(6));
        assert_eq!(pick(&[(5, 12, "")]), Some(5));
        assert_eq!(pick(&[(5, 12, ""), (6, 10, "<b@x>")]), None);
        assert_eq!(pick(&[]), None);
    }
}
