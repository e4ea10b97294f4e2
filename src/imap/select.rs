//! SELECT, EXAMINE, CLOSE, UNSELECT, EXPUNGE and IDLE (RFC 9051 §6.3 and §6.4,
//! RFC 2177).
//!
//! Promises: a view is answered from the mirror, everything else by the
//! provider. Doesn't know: messages.

use std::time::Duration;

use imap_codec::imap_types::mailbox::Mailbox;
use imap_codec::imap_types::sequence::SequenceSet;
use tokio::io::AsyncWriteExt;

use crate::lane::LANES;

use super::mirror::{Health, Mirror, Op, State};
use super::ops::has_flag;
use super::pass::Passing;
use super::pool::Lease;
use super::session::{Fail, Selection, Session, Viewing, changes};
use super::uid::{UpstreamUid, ViewUid};
use super::view::{Entry, Known, Source};

/// How long SELECT waits for a mirror that is starting.
const START_WAIT: Duration = Duration::from_secs(10);
/// An idling client is synced this often.
const IDLE_SYNC: Duration = Duration::from_secs(60);

/// The wire octets of a mailbox name.
pub(super) fn name_of(mailbox: &Mailbox<'_>) -> Vec<u8> {
    match mailbox {
        Mailbox::Inbox => b"INBOX".to_vec(),
        Mailbox::Other(other) => other.inner().as_ref().to_vec(),
    }
}

/// Waits until the mirror can be shown.
pub(super) async fn ready(mirror: &Mirror) -> Result<(), Fail> {
    let mut health = mirror.health();
    let known = tokio::time::timeout(START_WAIT, health.wait_for(|h| *h != Health::Starting)).await;
    match known.map_err(|_| Fail::No("UNAVAILABLE", "the account is starting".into()))? {
        Ok(h) => match &*h {
            Health::Live => Ok(()),
            Health::Down(why) | Health::Refused(why) => Err(Fail::No("UNAVAILABLE", why.clone())),
            Health::Starting => Err(Fail::No("UNAVAILABLE", "the account is starting".into())),
        },
        Err(_) => Err(Fail::No("UNAVAILABLE", "the account is stopping".into())),
    }
}

/// System flags, in the order in which they are listed.
const SYSTEM_FLAGS: &str = "\\Answered \\Flagged \\Deleted \\Seen \\Draft";

fn flag_list(state: &State) -> String {
    state.keywords().iter().fold(SYSTEM_FLAGS.to_owned(), |list, k| list + " " + k)
}

/// RFC 9051 §7.3.5: every flag that a message may show.
fn flags_line(state: &State) -> String {
    format!("* FLAGS ({})", flag_list(state))
}

/// RFC 9051 §7.1, PERMANENTFLAGS: what the provider keeps, and the keywords of
/// lanes, which are kept here. `\*` where clients may make new keywords.
fn permanent_line(state: &State) -> String {
    let ours = |k: &String| LANES.iter().any(|l| l.keyword().is_some_and(|o| o.eq_ignore_ascii_case(k)));
    let system = SYSTEM_FLAGS.split(' ').filter(|f| has_flag(&state.permanent, f)).map(str::to_owned);
    let any = state.keeps("\\*").then(|| "\\*".to_owned());
    let keywords = state.keywords().into_iter().filter(|k| ours(k) || state.keeps(k));
    let list: Vec<String> = system.chain(keywords).chain(any).collect();
    format!("* OK [PERMANENTFLAGS ({})] flags are kept", list.join(" "))
}

impl Viewing {
    /// The flags that this session sees of a message.
    pub(super) fn flags(&self, state: &State, uid: ViewUid, entry: &Entry) -> Vec<String> {
        let mut flags = state.shown_flags(self.id, entry);
        if self.known.is_recent(uid) {
            flags.push("\\Recent".to_owned());
        }
        flags
    }

    /// The lines that tell of keywords that came up since they were last
    /// told; clients trust FETCH to show no flag that FLAGS didn't name.
    pub(super) fn new_keywords(&mut self, state: &State) -> Vec<String> {
        if state.flag_sets() == self.flag_sets {
            return Vec::new();
        }
        self.flag_sets = state.flag_sets();
        let keywords = state.keywords().len();
        if keywords == std::mem::replace(&mut self.keywords, keywords) {
            return Vec::new();
        }
        let mut lines = vec![flags_line(state)];
        if !self.read_only {
            lines.push(permanent_line(state));
        }
        lines
    }
}

impl Session {
    /// SELECT or EXAMINE.
    pub(super) async fn select(&mut self, mailbox: &Mailbox<'_>, examine: bool) -> Result<String, Fail> {
        let own = match std::mem::replace(&mut self.selection, Selection::Nothing) {
            Selection::Pass(passing) => passing.vacate().await,
            Selection::Nothing | Selection::View(_) => None,
        };
        self.select_over(own, mailbox, examine).await
    }

    /// SELECT with the connection of the mailbox that was left: another one
    /// that passes through goes over it.
    async fn select_over(&mut self, own: Option<Lease>, mailbox: &Mailbox<'_>, examine: bool) -> Result<String, Fail> {
        let mirror = self.mirror()?;
        ready(&mirror).await?;
        let name = name_of(mailbox);
        let place = mirror.state().lanes.as_ref().and_then(|l| l.find(&name));
        // RFC 9051 §6.3.2: READ-ONLY says that nothing can be changed. An
        // agent has no grant that changes a view.
        let read_only = examine || self.signed()?.is_agent();
        let Some(place) = place else {
            if mirror.state().lanes.as_ref().is_some_and(|l| l.owns(&name)) {
                return Err(Fail::No("NONEXISTENT", "there is no such mailbox".into()));
            }
            return self.select_passed(own, &name, read_only).await;
        };
        if let Some(lease) = own {
            lease.give_back();
        }
        if mirror.freshen().await.is_err() {
            ready(&mirror).await?;
        }
        let audience = self.signed()?.audience;
        let id = (audience, place);
        let (viewing, lines) = {
            let mut state = mirror.state();
            let not_ready = || Fail::No("UNAVAILABLE", "the mailbox is not ready".into());
            let known = Known::of(state.views.get_mut(&id).ok_or_else(not_ready)?, !examine);
            let view = state.view(id).ok_or_else(not_ready)?;
            let unseen = view.iter().position(|(_, e)| !has_flag(&state.shown_flags(id, e), "\\Seen"));
            let mut lines = vec![
                flags_line(&state),
                format!("* {} EXISTS", known.exists()),
                format!("* {} RECENT", known.count_recent()),
                format!("* OK [UIDVALIDITY {}] as long as this stays, UIDs do", view.uidvalidity),
                format!("* OK [UIDNEXT {}] next", view.next_uid()),
            ];
            lines.extend(unseen.map(|n| format!("* OK [UNSEEN {}] first unseen", n + 1)));
            lines.push(if read_only {
                "* OK [PERMANENTFLAGS ()] read-only".to_owned()
            } else {
                permanent_line(&state)
            });
            let viewing = Viewing {
                id,
                known,
                told: state.clock,
                flag_sets: state.flag_sets(),
                keywords: state.keywords().len(),
                read_only,
                uidvalidity: view.uidvalidity,
                header_len: None,
            };
            (viewing, lines)
        };
        for line in lines {
            self.line(&line).await?;
        }
        self.selection = Selection::View(Box::new(viewing));
        Ok(format!("[{}] selected", if read_only { "READ-ONLY" } else { "READ-WRITE" }))
    }

    async fn select_passed(&mut self, own: Option<Lease>, name: &[u8], read_only: bool) -> Result<String, Fail> {
        let mirror = self.mirror()?;
        let mut lease = match own {
            Some(lease) => lease,
            None => mirror.pool.any().await?,
        };
        lease.forget_selection();
        let verb: &[u8] = if read_only { b"EXAMINE" } else { b"SELECT" };
        let command = [verb, b" ", &super::encode::quote(name)].concat();
        let outcome = lease.run(&command).await?;
        self.pass_untagged(&outcome.untagged).await?;
        let outcome = match outcome.ok() {
            Ok(o) => o,
            Err(e) => {
                lease.give_back();
                return Err(e.into());
            }
        };
        let read_write = outcome.code.as_deref() == Some(b"READ-WRITE");
        self.selection = Selection::Pass(Box::new(Passing::new(lease, name.to_vec())));
        Ok(format!("[{}] selected", if read_write && !read_only { "READ-WRITE" } else { "READ-ONLY" }))
    }

    /// Leaves what is selected, without expunging.
    pub(super) async fn leave(&mut self) {
        if let Selection::Pass(passing) = std::mem::replace(&mut self.selection, Selection::Nothing) {
            passing.leave().await;
        }
    }

    /// CLOSE (`expunge`) or UNSELECT. An agent's CLOSE is an UNSELECT.
    pub(super) async fn unselect(&mut self, expunge: bool) -> Result<String, Fail> {
        let expunges = expunge && !self.signed()?.is_agent();
        match &self.selection {
            Selection::Nothing => return Err(Fail::Bad("select a mailbox first".into())),
            Selection::View(v) if expunges && !v.read_only => {
                // RFC 9051 §6.4.1: CLOSE expunges without telling.
                self.expunge_now(None).await?;
            }
            Selection::View(_) => {}
            Selection::Pass(_) => {}
        }
        if let Selection::Pass(passing) = &mut self.selection
            && expunges
        {
            passing.close().await?;
        }
        self.leave().await;
        Ok("done".into())
    }

    /// EXPUNGE or UID EXPUNGE.
    pub(super) async fn expunge(&mut self, set: Option<&SequenceSet>) -> Result<String, Fail> {
        if self.viewing()?.read_only {
            return Err(Fail::No("CANNOT", "the mailbox is open read-only".into()));
        }
        self.expunge_now(set).await?;
        self.tell(true).await?;
        Ok("done".into())
    }

    async fn expunge_now(&mut self, set: Option<&SequenceSet>) -> Result<(), Fail> {
        let mirror = self.mirror()?;
        let viewing = self.viewing()?;
        let id = viewing.id;
        let chosen: Vec<ViewUid> = match set {
            None => viewing.known.uids().to_vec(),
            Some(set) => viewing.resolve(set, true)?.into_iter().map(|(_, u)| u).collect(),
        };
        let (mut up, mut local, mut entries): (Vec<UpstreamUid>, Vec<u32>, Vec<ViewUid>) = Default::default();
        {
            let state = mirror.state();
            let Some(view) = state.view(id) else { return Ok(()) };
            for uid in chosen {
                let Some(entry) = view.get(uid) else { continue };
                if !has_flag(&state.shown_flags(id, entry), "\\Deleted") {
                    continue;
                }
                match entry.source {
                    _ if entry.superseded => entries.push(uid),
                    Source::Upstream(u) => up.push(u),
                    Source::Local(n) => local.push(n),
                }
            }
        }
        if !entries.is_empty() {
            mirror.ask(|r| Op::DropEntries(id, entries, r)).await?;
        }
        if !local.is_empty() {
            mirror.ask(|r| Op::RemoveLocals(local, r)).await?;
        }
        if !up.is_empty() {
            mirror.ask(|r| Op::Expunge(up, r)).await?;
        }
        Ok(())
    }

    /// IDLE.
    pub(super) async fn idle(&mut self, _tag: &str) -> Result<String, Fail> {
        self.line("+ idling").await?;
        self.tell(true).await?;
        self.out.flush().await?;
        let mirror = self.mirror()?;
        let mut changed = mirror.changes();
        loop {
            match self.reader.next_line() {
                Ok(Some(line)) => {
                    let line = line.trim_ascii();
                    return if line.eq_ignore_ascii_case(b"DONE") {
                        self.tell(true).await?;
                        Ok("done".into())
                    } else {
                        Err(Fail::Bad("expected DONE".into()))
                    };
                }
                Ok(None) => {}
                Err(e) => return Err(Fail::Bye(e.to_string())),
            }
            let told = tokio::select! {
                more = self.fill() => {
                    if !more? {
                        return Err(Fail::Io(std::io::ErrorKind::UnexpectedEof.into()));
                    }
                    false
                }
                woken = changed.changed() => woken.is_ok(),
                () = tokio::time::sleep(IDLE_SYNC) => {
                    let _ = mirror.freshen().await;
                    true
                }
            };
            if told {
                self.tell_idle(&mirror).await?;
            }
        }
    }

    async fn tell_idle(&mut self, mirror: &Mirror) -> Result<(), Fail> {
        if let Selection::View(viewing) = &mut self.selection {
            for line in changes(mirror, viewing, true)? {
                self.out.write_all(line.as_bytes()).await?;
            }
            self.out.flush().await?;
        }
        Ok(())
    }
}
