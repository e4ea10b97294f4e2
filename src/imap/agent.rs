//! The closed table of what an agent's key, and the operator's console, may do
//! over IMAP.
//!
//! Promises: what isn't in the table is refused; each row needs a grant for
//! its verb in its mailbox, looked up anew for every command; what would
//! remove messages is held for a person and changes nothing now. A mailbox
//! that may not be read answers like one that doesn't exist. Doesn't know:
//! how a permitted command is done.

pub mod draft;
mod held;
pub mod limits;
pub(super) mod names;

use imap_codec::imap_types::command::CommandBody;
use imap_codec::imap_types::fetch::{Macro, MacroOrMessageDataItemNames, MessageDataItemName};
use imap_codec::imap_types::flag::{Flag, StoreType};
use imap_codec::imap_types::mailbox::Mailbox;
use imap_codec::imap_types::sequence::SequenceSet;

use crate::account::{Grant, Grants, Verb};

use self::held::Victims;
use self::names::Purpose;
use super::lanes::{LaneMap, Place};
use super::mirror::Mirror;
use super::select::name_of;
use super::session::{Fail, Selection, Session};

/// Keywords that start like ours, or on which providers and clients act:
/// people's to set.
const KEPT_KEYWORDS: [&str; 7] = ["$Tollgate", "$Junk", "$NotJunk", "Junk", "NonJunk", "$Phishing", "$MDNSent"];

/// What a command is to an agent.
enum Need<'a> {
    /// The session's own matters and the selected mailbox, which is readable.
    Nothing,
    /// To read this mailbox.
    Read(&'a Mailbox<'a>),
    /// To open this mailbox.
    Open(&'a Mailbox<'a>),
    /// To change flags in the selected mailbox.
    Flag,
    /// To put messages into this mailbox, away from where they are or not.
    File { set: &'a SequenceSet, uid: bool, to: &'a Mailbox<'a>, moving: bool },
    /// To make this mailbox.
    Make(&'a Mailbox<'a>),
    /// A draft, which `append` checks.
    Draft(&'a Mailbox<'a>),
    /// To remove what is named.
    Remove(Victims<'a>),
}

/// The table. `None`: not in it.
fn need<'a>(body: &'a CommandBody<'a>) -> Option<Need<'a>> {
    Some(match body {
        // An agent's CLOSE expunges nothing.
        CommandBody::Noop
        | CommandBody::Check
        | CommandBody::Namespace
        | CommandBody::Unselect
        | CommandBody::Close
        | CommandBody::Idle
        | CommandBody::Search { .. } => Need::Nothing,
        // What may not be read is left out of the answer.
        CommandBody::List { .. } | CommandBody::Lsub { .. } => Need::Nothing,
        CommandBody::Fetch { macro_or_item_names, modifiers, .. } if modifiers.is_empty() => {
            known_items(macro_or_item_names).then_some(Need::Nothing)?
        }
        CommandBody::Status { mailbox, .. } => Need::Read(mailbox),
        CommandBody::Select { mailbox, parameters } if parameters.is_empty() => Need::Open(mailbox),
        CommandBody::Examine { mailbox, parameters } if parameters.is_empty() => Need::Open(mailbox),
        CommandBody::Store { sequence_set, kind, flags, uid, modifiers, .. } if modifiers.is_empty() => {
            flag_need(sequence_set, *uid, *kind, flags)?
        }
        CommandBody::Copy { sequence_set, mailbox, uid } => {
            Need::File { set: sequence_set, uid: *uid, to: mailbox, moving: false }
        }
        CommandBody::Move { sequence_set, mailbox, uid } => {
            Need::File { set: sequence_set, uid: *uid, to: mailbox, moving: true }
        }
        CommandBody::Create { mailbox } => Need::Make(mailbox),
        CommandBody::Append { mailbox, flags, .. } if draft_flags(flags) => Need::Draft(mailbox),
        CommandBody::Expunge => Need::Remove(Victims::Deleted(None)),
        CommandBody::ExpungeUid { sequence_set } => Need::Remove(Victims::Deleted(Some(sequence_set))),
        CommandBody::Delete { mailbox } => Need::Remove(Victims::Mailbox(mailbox)),
        _ => return None,
    })
}

/// The items that an agent may fetch: those of RFC 3501 §6.4.5.
fn known_items(names: &MacroOrMessageDataItemNames<'_>) -> bool {
    match names {
        MacroOrMessageDataItemNames::Macro(m) => matches!(m, Macro::All | Macro::Fast | Macro::Full),
        MacroOrMessageDataItemNames::MessageDataItemNames(items) => items.iter().all(|item| {
            matches!(
                item,
                MessageDataItemName::Body
                    | MessageDataItemName::BodyExt { .. }
                    | MessageDataItemName::BodyStructure
                    | MessageDataItemName::Envelope
                    | MessageDataItemName::Flags
                    | MessageDataItemName::InternalDate
                    | MessageDataItemName::Rfc822
                    | MessageDataItemName::Rfc822Header
                    | MessageDataItemName::Rfc822Size
                    | MessageDataItemName::Rfc822Text
                    | MessageDataItemName::Uid
            )
        }),
    }
}

/// What a STORE is: of \Deleted it removes, of others it flags.
fn flag_need<'a>(set: &'a SequenceSet, uid: bool, kind: StoreType, flags: &[Flag<'_>]) -> Option<Need<'a>> {
    let kept = |flag: &Flag<'_>| match flag {
        Flag::Answered | Flag::Deleted | Flag::Draft | Flag::Flagged | Flag::Seen => false,
        Flag::Extension(_) => true,
        Flag::Keyword(name) => {
            let name = name.as_ref();
            let starts = |kept: &str| name.get(..kept.len()).is_some_and(|start| start.eq_ignore_ascii_case(kept));
            KEPT_KEYWORDS.iter().any(|k| k.eq_ignore_ascii_case(name))
                || KEPT_KEYWORDS.iter().take(1).any(|k| starts(k))
        }
    };
    if flags.iter().any(kept) {
        return None;
    }
    let deleted = flags.contains(&Flag::Deleted);
    match kind {
        StoreType::Add | StoreType::Replace if deleted => Some(Need::Remove(Victims::Named { set, uid })),
        StoreType::Add | StoreType::Replace | StoreType::Remove => Some(Need::Flag),
    }
}

/// Whether flags of an APPEND are harmless for an agent.
fn draft_flags(flags: &[Flag<'_>]) -> bool {
    flags.iter().all(|f| matches!(f, Flag::Draft | Flag::Seen))
}

fn no_grant(verb: Verb) -> Fail {
    Fail::No("NOPERM", format!("this key has no grant to {verb} here"))
}

/// As a mailbox that doesn't exist answers.
pub(super) fn nonexistent() -> Fail {
    Fail::No("NONEXISTENT", "there is no such mailbox".into())
}

/// What becomes of a command that is not refused.
pub(super) enum Permission {
    /// It is done.
    Granted,
    /// It is answered with this; nothing is left to do.
    Done(String),
}

/// Whether a view may be read: its own name decides, `Lanes/All` shows what
/// all of the others do.
pub fn place_readable(grants: &Grants, lanes: &LaneMap, place: Place) -> bool {
    let one = |place: Place| grants.of_in(Verb::Read, &lanes.name(place)) == Grant::Allow;
    one(place) && (place != Place::All || lanes.places().into_iter().all(one))
}

/// Whether a mailbox may be read, by its name on the wire.
pub(super) fn readable(grants: &Grants, lanes: Option<&LaneMap>, name: &[u8]) -> bool {
    if *grants == Grants::Person {
        return true;
    }
    if let Some((lanes, place)) = lanes.and_then(|l| Some((l, l.find(name)?))) {
        return place_readable(grants, lanes, place);
    }
    let delimiter = lanes.map_or('/', LaneMap::delimiter);
    let parent = lanes.filter(|l| l.parent().as_bytes() == name);
    if let Some(lanes) = parent {
        return lanes.places().into_iter().any(|p| p != Place::Inbox && place_readable(grants, lanes, p));
    }
    names::decoded(name, delimiter).is_some_and(|name| grants.of_in(Verb::Read, &name) == Grant::Allow)
}

impl Session {
    /// The grants of whoever is signed in, at this moment.
    pub(super) fn grants(&self) -> Result<Grants, Fail> {
        Ok(self.signed()?.principal.grants.now())
    }

    /// The name of what is selected, as it stands on the wire.
    pub(super) fn selected_name(&self) -> Option<Vec<u8>> {
        match &self.selection {
            Selection::Nothing => None,
            Selection::View(viewing) => {
                let state = self.signed.as_ref()?.mirror.state();
                state.lanes.as_ref().map(|l| l.name(viewing.id.1).into_bytes())
            }
            Selection::Pass(passing) => Some(passing.name().to_vec()),
        }
    }

    /// Whether the key may read a mailbox.
    pub(super) fn may_read(&self, name: &[u8]) -> Result<bool, Fail> {
        let signed = self.signed()?;
        let lanes = signed.mirror.state().lanes.clone();
        Ok(readable(&signed.principal.grants.now(), lanes.as_ref(), name))
    }

    /// The answer for `verb` in a mailbox.
    fn grant_in(&self, verb: Verb, name: &[u8]) -> Result<Grant, Fail> {
        let signed = self.signed()?;
        let delimiter = signed.mirror.state().lanes.as_ref().map_or('/', LaneMap::delimiter);
        let name = names::decoded(name, delimiter);
        let grants = signed.principal.grants.now();
        Ok(name.map_or(Grant::Off, |name| grants.of_in(verb, &name)))
    }

    /// Whether the key may set flags in the selected mailbox.
    pub(super) fn may_flag(&self) -> Result<bool, Fail> {
        let Some(name) = self.selected_name() else { return Ok(false) };
        Ok(self.grant_in(Verb::Flag, &name)? == Grant::Allow)
    }

    /// Whether anything at all in a mailbox could be changed by the key.
    pub(super) fn may_change(&self, name: &[u8]) -> Result<bool, Fail> {
        match self.grants()? {
            Grants::Person => Ok(true),
            Grants::Agent(agent) => {
                let flags = self.grant_in(Verb::Flag, name)? == Grant::Allow;
                Ok(flags || self.grant_in(Verb::Delete, name)? != Grant::Off || agent.files())
            }
        }
    }

    /// Refuses what the key has no grant for.
    pub(super) async fn permit(&mut self, body: &CommandBody<'_>) -> Result<Permission, Fail> {
        let signed = self.signed()?;
        if signed.is_console() {
            return self.permit_console(body);
        }
        if !signed.is_agent() {
            return Ok(Permission::Granted);
        }
        self.take_command()?;
        if let Some(name) = self.selected_name()
            && !self.may_read(&name)?
        {
            return Err(Fail::Bye("the selected mailbox may no longer be read".into()));
        }
        let need = need(body).ok_or_else(|| Fail::No("NOPERM", "an agent's key may not do this".into()))?;
        match need {
            Need::Nothing if self.would_mark_seen(body)? => {
                let text = "this sets \\Seen, for which the key has no grant; use BODY.PEEK[]";
                Err(Fail::No("NOPERM", text.into()))
            }
            Need::Nothing => Ok(Permission::Granted),
            Need::Read(mailbox) if self.may_read(&name_of(mailbox))? => Ok(Permission::Granted),
            Need::Open(mailbox) if self.may_read(&name_of(mailbox))? => Ok(Permission::Granted),
            Need::Read(_) => Err(nonexistent()),
            Need::Open(_) => {
                // RFC 9051 §6.3.2: a SELECT that fails leaves nothing selected.
                self.leave().await;
                Err(nonexistent())
            }
            Need::Flag => {
                if !self.may_flag()? {
                    return Err(no_grant(Verb::Flag));
                }
                self.must_be_writable().map(|()| Permission::Granted)
            }
            Need::File { set, uid, to, moving } => self.permit_filing(set, uid, to, moving).await,
            Need::Make(mailbox) => self.permit_making(mailbox).await.map(|()| Permission::Granted),
            Need::Draft(mailbox) if self.grant_in(Verb::Draft, &name_of(mailbox))? == Grant::Allow => {
                Ok(Permission::Granted)
            }
            Need::Draft(_) => Err(no_grant(Verb::Draft)),
            Need::Remove(victims) => self.permit_removal(victims).await,
        }
    }

    /// Whether a FETCH would change a flag at the provider, and may not. Where
    /// it reads BODY[…], that is encoded as BODY.PEEK[…]; these have no such
    /// form.
    fn would_mark_seen(&self, body: &CommandBody<'_>) -> Result<bool, Fail> {
        let Selection::Pass(passing) = &self.selection else { return Ok(false) };
        let CommandBody::Fetch {
            macro_or_item_names: MacroOrMessageDataItemNames::MessageDataItemNames(items), ..
        } = body
        else {
            return Ok(false);
        };
        let marks = |item: &MessageDataItemName<'_>| {
            matches!(item, MessageDataItemName::Rfc822 | MessageDataItemName::Rfc822Text)
        };
        Ok(!passing.read_only() && items.iter().any(marks) && !self.may_flag()?)
    }

    fn permit_console(&self, body: &CommandBody<'_>) -> Result<Permission, Fail> {
        if matches!(body, CommandBody::Select { .. } | CommandBody::Close) {
            return Err(Fail::No("NOPERM", "the console opens mailboxes by EXAMINE".into()));
        }
        match need(body) {
            Some(Need::Nothing | Need::Read(_) | Need::Open(_)) => Ok(Permission::Granted),
            _ => Err(Fail::No("NOPERM", "the console only reads".into())),
        }
    }

    /// A grant that came after a mailbox was opened read-only.
    fn must_be_writable(&self) -> Result<(), Fail> {
        let read_only = match &self.selection {
            Selection::Nothing => return Err(Fail::Bad("select a mailbox first".into())),
            Selection::View(viewing) => viewing.read_only,
            Selection::Pass(passing) => passing.read_only(),
        };
        if read_only {
            Err(Fail::No("CANNOT", "the mailbox is open read-only; select it again".into()))
        } else {
            Ok(())
        }
    }

    /// The grant to put things into a mailbox, once it is certain that it is
    /// none where that never happens.
    async fn filing_grant(&mut self, mirror: &Mirror, name: &[u8]) -> Result<Grant, Fail> {
        let lanes = mirror.state().lanes.clone();
        let lanes = lanes.ok_or_else(|| Fail::No("UNAVAILABLE", "the account is starting".into()))?;
        let never = || Fail::No("NOPERM", "an agent's key puts nothing there".into());
        if lanes.find(name).is_some() || lanes.owns(name) {
            return Err(never());
        }
        let text = names::decoded(name, lanes.delimiter()).ok_or_else(never)?;
        let grant = self.grants()?.of_in(Verb::File, &text);
        // Before the provider is asked: the answer tells nothing of it.
        if grant == Grant::Off {
            return Err(no_grant(Verb::File));
        }
        let mut purpose = names::by_name(&text, lanes.delimiter());
        if purpose != Purpose::Never && self.sends(mirror, name).await? {
            purpose = Purpose::Never;
        }
        if purpose != Purpose::Never {
            purpose = purpose.or(names::by_attributes(&self.roles(mirror, name).await?));
        }
        match purpose {
            Purpose::Never => Err(never()),
            Purpose::Junk => Ok(grant.least(Grant::Ask)),
            Purpose::Ordinary => Ok(grant),
        }
    }

    async fn permit_filing(
        &mut self,
        set: &SequenceSet,
        uid: bool,
        to: &Mailbox<'_>,
        moving: bool,
    ) -> Result<Permission, Fail> {
        let (mirror, name) = (self.mirror()?, name_of(to));
        if let Selection::Nothing = self.selection {
            return Err(Fail::Bad("select a mailbox first".into()));
        }
        match self.filing_grant(&mirror, &name).await? {
            Grant::Off => Err(no_grant(Verb::File)),
            Grant::Ask if moving => self.hold(Victims::Moved { set, uid, to: name }).await,
            Grant::Ask => Err(Fail::No("NOPERM", "only a MOVE to there can be asked for".into())),
            Grant::Allow if moving => {
                self.must_be_writable()?;
                // Without MOVE and UIDPLUS the provider is left with messages
                // that are flagged \Deleted, which is another verb.
                if mirror.state().offers.moves {
                    Ok(Permission::Granted)
                } else {
                    Err(Fail::No("CANNOT", "the provider can't move single messages".into()))
                }
            }
            Grant::Allow => {
                let (octets, messages) = self.weight(&mirror, set, uid).await?;
                self.take_octets(&mirror, &name, octets, messages).await?;
                Ok(Permission::Granted)
            }
        }
    }

    async fn permit_making(&mut self, mailbox: &Mailbox<'_>) -> Result<(), Fail> {
        let (mirror, name) = (self.mirror()?, name_of(mailbox));
        self.reachable(&mirror).await?;
        match self.filing_grant(&mirror, &name).await? {
            Grant::Allow => Ok(()),
            Grant::Ask | Grant::Off => Err(no_grant(Verb::File)),
        }
    }

    async fn permit_removal(&mut self, victims: Victims<'_>) -> Result<Permission, Fail> {
        let name = match &victims {
            Victims::Mailbox(mailbox) => {
                let name = name_of(mailbox);
                if !self.may_read(&name)? {
                    return Err(nonexistent());
                }
                name
            }
            Victims::Named { .. } | Victims::Deleted(_) | Victims::Moved { .. } => {
                self.selected_name().ok_or_else(|| Fail::Bad("select a mailbox first".into()))?
            }
        };
        match self.grant_in(Verb::Delete, &name)? {
            Grant::Ask => self.hold(victims).await,
            // `allow` is no value of this verb.
            Grant::Off | Grant::Allow => Err(no_grant(Verb::Delete)),
        }
    }
}

#[cfg(test)]
mod tests {
    use imap_codec::CommandCodec;
    use imap_codec::decode::Decoder;

    use super::*;

    fn row(command: &str) -> &'static str {
        let text = format!("a {command}\r\n");
        let Ok(([], command)) = CommandCodec::default().decode(text.as_bytes()) else { return "undecoded" };
        match need(&command.body) {
            None => "refused",
            Some(Need::Nothing) => "nothing",
            Some(Need::Read(_) | Need::Open(_)) => "read",
            Some(Need::Flag) => "flag",
            Some(Need::File { .. } | Need::Make(_)) => "file",
            Some(Need::Draft(_)) => "draft",
            Some(Need::Remove(_)) => "delete",
        }
    }

    #[test]
    fn every_command_has_one_row_or_none() {
        for (command, expected) in [
            ("NOOP", "nothing"),
            ("CLOSE", "nothing"),
            ("LIST \"\" *", "nothing"),
            ("UID SEARCH UNSEEN", "nothing"),
            ("FETCH 1 (FLAGS BODY.PEEK[])", "nothing"),
            ("FETCH 1 (MODSEQ)", "refused"),
            ("FETCH 1 (FLAGS) (CHANGEDSINCE 1)", "refused"),
            ("SELECT Archive", "read"),
            ("SELECT Archive (CONDSTORE)", "refused"),
            ("STATUS Archive (MESSAGES)", "read"),
            ("STORE 1 +FLAGS (\\Seen \\Flagged $Later)", "flag"),
            ("STORE 1 -FLAGS (\\Deleted)", "flag"),
            ("STORE 1 FLAGS ()", "flag"),
            ("STORE 1 +FLAGS (\\Seen \\Deleted)", "delete"),
            ("UID STORE 1 FLAGS.SILENT (\\DELETED)", "delete"),
            ("STORE 1 +FLAGS ($TollgatePush)", "refused"),
            ("STORE 1 -FLAGS ($tollgatequeue)", "refused"),
            ("STORE 1 +FLAGS ($Junk)", "refused"),
            ("STORE 1 +FLAGS (\\Other)", "refused"),
            ("STORE 1 (UNCHANGEDSINCE 5) +FLAGS (\\Seen)", "refused"),
            ("UID COPY 1 Archive", "file"),
            ("MOVE 1 Archive", "file"),
            ("CREATE Own", "file"),
            ("EXPUNGE", "delete"),
            ("DELETE Archive", "delete"),
            ("RENAME Archive Other", "refused"),
            ("SUBSCRIBE Archive", "refused"),
            ("UNSUBSCRIBE Archive", "refused"),
            ("GETMETADATA INBOX /shared/comment", "refused"),
        ] {
            assert_eq!(row(command), expected, "{command}");
        }
        for command in ["SETACL INBOX a lrs", "GETACL INBOX", "REPLACE 1 Drafts {1}", "GENURLAUTH x INTERNAL", "XFOO"] {
            assert!(["refused", "undecoded"].contains(&row(command)), "{command}");
        }
    }
}
