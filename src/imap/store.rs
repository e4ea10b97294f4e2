//! STORE and UID STORE over a view (RFC 9051 §6.4.6).
//!
//! Promises: flags of messages are changed at the provider, flags of local
//! messages and of superseded entries here. A change of a lane's keyword is a
//! person's correction. What another session expunged is passed over.

use std::collections::BTreeMap;

use imap_codec::imap_types::flag::{Flag, StoreResponse, StoreType};
use imap_codec::imap_types::sequence::SequenceSet;
use tokio::io::AsyncWriteExt;

use crate::lane::{LANES, Lane};

use super::mirror::{FlagChange, Op};
use super::ops::has_flag;
use super::session::{Fail, Session};
use super::uid::{SeqNum, UpstreamUid, ViewUid};
use super::view::Source;

/// Most flags in one STORE.
const MAX_FLAGS: usize = 64;

/// The lane that the keywords of a STORE put a message into, if it is not
/// there already. A client that replaces all flags may name the old keyword
/// beside the new one.
fn correction(named: &[Lane], change: FlagChange, now: Option<Lane>) -> Result<Option<Lane>, Fail> {
    if change == FlagChange::Remove {
        return Ok(None);
    }
    let mut others = named.iter().copied().filter(|l| Some(*l) != now);
    match (others.next(), others.next()) {
        (_, Some(_)) => Err(Fail::No("CANNOT", "a message is in one lane only".into())),
        (lane, None) => Ok(lane),
    }
}

impl Session {
    /// STORE.
    pub(super) async fn store(
        &mut self,
        set: &SequenceSet,
        kind: StoreType,
        response: StoreResponse,
        flags: &[Flag<'_>],
        uid: bool,
    ) -> Result<String, Fail> {
        let mirror = self.mirror()?;
        let viewing = self.viewing()?;
        if viewing.read_only {
            return Err(Fail::No("CANNOT", "the mailbox is open read-only".into()));
        }
        if flags.len() > MAX_FLAGS {
            return Err(Fail::No("LIMIT", "too many flags".into()));
        }
        let change = match kind {
            StoreType::Replace => FlagChange::Set,
            StoreType::Add => FlagChange::Add,
            StoreType::Remove => FlagChange::Remove,
        };
        let mut names: Vec<String> = flags.iter().map(ToString::to_string).collect();
        if names.iter().any(|n| n.eq_ignore_ascii_case("\\Recent")) {
            return Err(Fail::Bad("\\Recent can't be stored".into()));
        }
        // Keywords of lanes are shown by us, never stored at the provider.
        // Adding one corrects the lane. One that is taken away alone comes
        // back with the answer: a message is always in some lane.
        let named: Vec<Lane> = LANES.into_iter().filter(|l| l.keyword().is_some_and(|k| has_flag(&names, k))).collect();
        names.retain(|n| !named.iter().any(|l| l.keyword().is_some_and(|k| k.eq_ignore_ascii_case(n))));
        // RFC 9051 §7.1, PERMANENTFLAGS: what isn't kept is passed over. A
        // provider may refuse the whole command for it, the other flags too.
        names.retain(|n| n.starts_with('\\') || mirror.state().keeps(n));
        let chosen = viewing.resolve(set, uid)?;
        let id = viewing.id;
        let (mut up, mut local, mut old): (Vec<UpstreamUid>, Vec<u32>, Vec<ViewUid>) = Default::default();
        let mut corrected: BTreeMap<Lane, Vec<ViewUid>> = BTreeMap::new();
        let mut gone = false;
        {
            let state = mirror.state();
            let view = state.view(id);
            for (_, uid) in &chosen {
                match view.and_then(|v| v.get(*uid)) {
                    None => gone = true,
                    Some(e) if e.superseded => old.push(*uid),
                    Some(e) => match e.source {
                        Source::Upstream(u) => {
                            up.push(u);
                            if let Some(lane) =
                                correction(&named, change, state.messages.get(&u).and_then(|m| m.row.lane))?
                            {
                                corrected.entry(lane).or_default().push(*uid);
                            }
                        }
                        Source::Local(n) => local.push(n),
                    },
                }
            }
        }
        let deletes = names.iter().any(|n| n.eq_ignore_ascii_case("\\Deleted"));
        if !old.is_empty() && (deletes || change == FlagChange::Set) {
            let deleted = deletes && change != FlagChange::Remove;
            mirror.ask(|r| Op::MarkEntries(id, old, deleted, r)).await?;
        }
        if !local.is_empty() {
            let names = names.clone();
            mirror.ask(|r| Op::StoreLocal(local, change, names, r)).await?;
        }
        if !up.is_empty() && (!names.is_empty() || change == FlagChange::Set) {
            mirror.ask(|r| Op::Store(up, change, names, r)).await?;
        }
        for (lane, uids) in corrected {
            mirror.ask(|r| Op::Correct(id, uids, lane, r)).await?;
        }
        // A keyword that was to go and stays is shown even to a client that
        // asked for silence: RFC 9051 §6.4.6 has it learn what is different.
        let kept = !named.is_empty() && change == FlagChange::Remove;
        self.report(&chosen, !kept && response == StoreResponse::Silent, uid).await?;
        // RFC 9051 §7.5.1: UID STORE may tell expunges, STORE may not. It does
        // where it met one; what a correction replaced can wait.
        self.tell(uid && gone).await?;
        // A message that another session expunged, of which this client can't
        // know, makes no STORE fail: RFC 9051 §6.4.9 for UIDs; for sequence
        // numbers OK with the code that asks for a NOOP (RFC 5530 §3), as RFC
        // 2180 §4.2.1 has it for .SILENT. Deviation from RFC 2180 §4.2.2 and
        // §4.2.3, which have a NO without it: clients take that for a
        // failure of the whole command, and its flags were stored.
        let vanished = gone && !uid;
        Ok(if vanished { "[EXPUNGEISSUED] the others are done" } else { "done" }.into())
    }

    /// FETCH responses of a STORE; a silent one only swallows its own echo.
    async fn report(&mut self, chosen: &[(SeqNum, ViewUid)], silent: bool, with_uid: bool) -> Result<(), Fail> {
        let mirror = self.mirror()?;
        let viewing = self.viewing()?;
        let mut lines = Vec::new();
        {
            let state = mirror.state();
            let Some(view) = state.view(viewing.id) else { return Ok(()) };
            lines.extend(viewing.new_keywords(&state).iter().map(|l| format!("{l}\r\n")));
            if !silent {
                for (seq, uid) in chosen {
                    let Some(entry) = view.get(*uid) else { continue };
                    let flags = viewing.flags(&state, *uid, entry).join(" ");
                    let uid = if with_uid { format!("UID {uid} ") } else { String::new() };
                    lines.push(format!("* {seq} FETCH ({uid}FLAGS ({flags}))\r\n"));
                }
            }
            // Changes of others in the same moment are told for the other
            // messages; those of this STORE were just reported.
            for uid in viewing.known.uids() {
                let Some(entry) = view.get(*uid) else { continue };
                let mine = chosen.binary_search_by(|(_, u)| u.cmp(uid)).is_ok();
                if !mine
                    && state.flags_at(entry.source) > viewing.told
                    && let Some(seq) = viewing.known.seq(*uid)
                {
                    let flags = viewing.flags(&state, *uid, entry).join(" ");
                    lines.push(format!("* {seq} FETCH (UID {uid} FLAGS ({flags}))\r\n"));
                }
            }
            viewing.told = state.clock;
        }
        for line in lines {
            self.out.write_all(line.as_bytes()).await?;
        }
        Ok(())
    }
}
