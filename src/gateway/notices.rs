//! What people and agents are told about held mail, as local messages: a
//! notice that something waits, a report of what wasn't sent, and the state
//! of each submission in its agent's `Tollgate/Outbox`.
//!
//! Promises: one notice a key says how many of its messages wait, until they
//! are decided or a person dismisses it; a failure or denial is reported once,
//! to whoever submitted; no octet of any of it goes to the provider. Doesn't
//! know: what held messages say; a notice names recipients and subject only.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::watch;

use super::core::Core;
use super::{outbox_view, reports};
use crate::account::{AccountId, KeyId};
use crate::config::ApprovalMode;
use crate::floor::submission::State;
use crate::imap::lanes::Place;
use crate::imap::local::notice;
use crate::imap::mirror::{Health, Mirror, Op, OpError};
use crate::imap::ops::internaldate;
use crate::imap::perceiving::now;
use crate::imap::rows::LocalRow;
use crate::outbox::Hold;
use crate::store::{StoreError, Table, get_json, put_json, read, write};
use crate::web;

/// What is told is compared with the holds this often, whatever happened.
const COMPARE_EVERY: Duration = Duration::from_secs(30);
/// Between two comparisons at least.
const GATHER: Duration = Duration::from_millis(20);
/// How many times as long as it took the next one waits: looking at many holds
/// takes no more than a tenth of the time.
const RESTS: u32 = 9;
/// And at most, however long the last one took.
const MOST_GATHER: Duration = Duration::from_secs(2);
/// Of how many of the newest holds that ended something is told.
const ENDED_LOOKED_AT: usize = 2000;
/// Recipients of one message that a notice names.
const RECIPIENTS_SHOWN: usize = 10;
/// Local messages that are shown by one change of the mirror.
const POSTED_AT_ONCE: usize = 100;
/// Messages that a notice names.
const MESSAGES_SHOWN: usize = 10;
/// What names of notices that a key's messages wait begin with.
const WAITS: &str = "wait/";
/// What names of notices about one message begin with.
const HOLD: &str = "hold/";

/// The first part of links: the configured one, with the port that is really
/// listened on where port 0 was configured.
pub(super) fn web_url(configured: &str, listening: Option<&SocketAddr>) -> String {
    match (configured.strip_suffix(":0"), listening) {
        (Some(host), Some(address)) => format!("{host}:{}", address.port()),
        _ => configured.to_owned(),
    }
}

/// Keeps what is told and holds together until told to stop.
pub(super) async fn run(
    core: Arc<Core>,
    mirrors: HashMap<AccountId, Arc<Mirror>>,
    url: String,
    mut stop: watch::Receiver<bool>,
) {
    let mut events = core.outbox.events();
    let mut healths: Vec<watch::Receiver<Health>> = mirrors.values().map(|m| m.health()).collect();
    loop {
        // What was told up to here is looked at now.
        while !matches!(events.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {}
        let began = Instant::now();
        for (account, mirror) in &mirrors {
            if *mirror.health().borrow() == Health::Live
                && let Err(e) = compare(&core, account, mirror, &url).await
            {
                tracing::warn!(%account, "notices: {e}");
            }
        }
        // Many holds at once are looked at together.
        let rest = (began.elapsed() * RESTS).clamp(GATHER, MOST_GATHER);
        tokio::select! {
            _ = stop.wait_for(|s| *s) => return,
            () = tokio::time::sleep(rest) => {}
        }
        let healthy = async {
            let waits: Vec<_> = healths.iter_mut().map(|h| Box::pin(h.changed())).collect();
            any(waits).await;
        };
        tokio::select! {
            _ = stop.wait_for(|s| *s) => return,
            event = events.recv() => match event {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
            () = healthy => {}
            () = tokio::time::sleep(COMPARE_EVERY) => {}
        }
    }
}

/// Resolves when the first of some futures does.
async fn any<F: Future + Unpin>(mut all: Vec<F>) {
    std::future::poll_fn(move |cx| {
        let ready = all.iter_mut().any(|f| std::pin::Pin::new(f).poll(cx).is_ready());
        if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

async fn compare(core: &Core, account: &AccountId, mirror: &Mirror, url: &str) -> Result<(), OpError> {
    let holds = core.outbox.recent(account, ENDED_LOOKED_AT).map_err(|e| OpError::Store(e.to_string()))?;
    notices(core, account, mirror, url, &holds).await?;
    let host = &core.config.hostname;
    let live = live_keys(core, account);
    let told = reports::wanted(&holds, &live, now());
    withdraw(mirror, reports::PREFIX, &told.iter().map(|h| reports::name(h)).collect()).await?;
    let shown = shown(mirror);
    for hold in told {
        let name = reports::name(hold);
        if shown.contains(&name) || seen(core, account, &name)?.is_some() {
            continue;
        }
        post(mirror, reports::row(hold, host, url, now())).await?;
        see(core, account, &name, &Announced::default()).await?;
    }
    let rows = outbox_view::wanted(&holds, &live, host);
    let names = rows.iter().map(|r| r.name.clone()).collect();
    // The new state first: at no time does a submission seem to be gone.
    let mut new = rows.into_iter().filter(|row| !shown.contains(&row.name));
    loop {
        let some: Vec<LocalRow> = new.by_ref().take(POSTED_AT_ONCE).collect();
        if some.is_empty() {
            break;
        }
        mirror.ask(|r| Op::PostLocals(some, r)).await?;
    }
    withdraw(mirror, outbox_view::PREFIX, &names).await
}

/// The agents' keys that can still look.
fn live_keys(core: &Core, account: &AccountId) -> BTreeSet<KeyId> {
    let keys = core.accounts.list_keys(Some(account));
    keys.into_iter().filter(|k| k.revoked_at.is_none()).map(|k| k.id).collect()
}

/// The names of all local messages.
fn shown(mirror: &Mirror) -> HashSet<String> {
    mirror.state().locals.values().map(|l| l.row.name.clone()).collect()
}

fn has(mirror: &Mirror, name: &str) -> bool {
    mirror.state().locals.values().any(|l| l.row.name == name)
}

async fn post(mirror: &Mirror, row: LocalRow) -> Result<(), OpError> {
    mirror.ask(|r| Op::PostLocals(vec![row], r)).await
}

/// Takes away what begins with `prefix` and isn't wanted.
async fn withdraw(mirror: &Mirror, prefix: &str, wanted: &BTreeSet<String>) -> Result<(), OpError> {
    let numbers: Vec<u32> = {
        let state = mirror.state();
        let over = |name: &str| name.starts_with(prefix) && !wanted.contains(name);
        state.locals.iter().filter(|(_, l)| over(&l.row.name)).map(|(n, _)| *n).collect()
    };
    if numbers.is_empty() { Ok(()) } else { mirror.ask(|r| Op::RemoveLocals(numbers, r)).await }
}

/// What was announced under a name. What a person dismissed isn't shown again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Announced {
    holds: BTreeSet<String>,
}

fn seen(core: &Core, account: &AccountId, name: &str) -> Result<Option<Announced>, OpError> {
    let key = announced_key(account, name);
    read::<_, StoreError>(&*core.store, |r| get_json(r, Table::Meta, &key)).map_err(OpError::from)
}

async fn see(core: &Core, account: &AccountId, name: &str, what: &Announced) -> Result<(), OpError> {
    let (key, holds) = (announced_key(account, name), what.holds.clone());
    write(&*core.store, move |w| put_json(w, Table::Meta, &key, &Announced { holds: holds.clone() }))
        .await
        .map_err(OpError::from)
}

fn announced_key(account: &AccountId, name: &str) -> Vec<u8> {
    format!("told\0{account}\0{name}").into_bytes()
}

async fn notices(core: &Core, account: &AccountId, mirror: &Mirror, url: &str, holds: &[Hold]) -> Result<(), OpError> {
    let doubtful: Vec<&Hold> = holds.iter().filter(|h| h.state == State::Unknown).collect();
    let names = doubtful.iter().map(|h| unknown_name(h)).collect();
    withdraw(mirror, HOLD, &names).await?;
    for hold in doubtful {
        let name = unknown_name(hold);
        if !has(mirror, &name) && seen(core, account, &name)?.is_none() {
            post(mirror, unknown(core, hold, &name, &link(core, hold, url).await?)).await?;
            see(core, account, &name, &Announced::default()).await?;
        }
    }
    let mut waiting: BTreeMap<String, Vec<&Hold>> = BTreeMap::new();
    for hold in holds.iter().filter(|h| h.state == State::Held) {
        waiting.entry(format!("{WAITS}{}", hold.key)).or_default().push(hold);
    }
    withdraw(mirror, WAITS, &waiting.keys().cloned().collect()).await?;
    for (name, holds) in waiting {
        one_of_key(core, account, mirror, url, &name, &holds).await?;
    }
    Ok(())
}

/// The notice of one key: said again when another message waits; when fewer
/// do, said anew where it still stands, without calling for attention.
async fn one_of_key(
    core: &Core,
    account: &AccountId,
    mirror: &Mirror,
    url: &str,
    name: &str,
    holds: &[&Hold],
) -> Result<(), OpError> {
    let ids: BTreeSet<String> = holds.iter().map(|h| h.id.to_string()).collect();
    let announced = seen(core, account, name)?.unwrap_or_default().holds;
    let stands = has(mirror, name);
    let more = !ids.is_subset(&announced);
    if !more && (!stands || ids == announced) {
        return Ok(());
    }
    let mut links = Vec::new();
    for hold in holds.iter().take(MESSAGES_SHOWN) {
        links.push(link(core, hold, url).await?);
    }
    let mut row = wait(core, name, holds, &links);
    if !more {
        row.flags.push("\\Seen".to_owned());
    }
    post(mirror, row).await?;
    see(core, account, name, &Announced { holds: ids }).await
}

/// Where the notice leads. A link that is enough by itself stands nowhere but
/// here: the notice is local, and agents' views don't have it.
async fn link(core: &Core, hold: &Hold, url: &str) -> Result<String, OpError> {
    match core.config.approval {
        ApprovalMode::Pin | ApprovalMode::Passkey => Ok(format!("{url}/held/{}", hold.id)),
        ApprovalMode::Link => {
            let path = web::link::path(core.store.as_ref(), &hold.id).await;
            Ok(format!("{url}{}", path.map_err(|e| OpError::Store(e.to_string()))?))
        }
    }
}

fn unknown_name(hold: &Hold) -> String {
    format!("{HOLD}{}/unknown", hold.id)
}

fn subject_of(hold: &Hold) -> &str {
    hold.subject.as_deref().unwrap_or("(no subject)")
}

/// Recipients and subject.
fn about(hold: &Hold) -> Vec<String> {
    let to: Vec<&str> = hold.envelope.forward_paths.iter().map(|p| p.as_str()).collect();
    let more = to.len().saturating_sub(RECIPIENTS_SHOWN);
    let mut lines: Vec<String> = to.iter().take(RECIPIENTS_SHOWN).map(|r| format!("To: {r}")).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.push(format!("Subject: {}", subject_of(hold)));
    lines
}

fn wait(core: &Core, name: &str, holds: &[&Hold], links: &[String]) -> LocalRow {
    let newest = holds.last().map_or_else(String::new, |h| h.id.to_string());
    let key = holds.first().map(|h| key_name(core, h)).unwrap_or_default();
    let (title, first) = match holds {
        [hold] => (
            format!("Approval needed: {}", subject_of(hold)),
            "A message waits for your approval. Nothing is sent or removed before you approve it.".to_owned(),
        ),
        _ => (
            format!("Approval needed: {} messages wait", holds.len()),
            format!(
                "{} messages wait for your approval. Nothing is sent or removed before you approve it.",
                holds.len()
            ),
        ),
    };
    let mut lines = vec![first, String::new(), format!("From key: {key}")];
    for (hold, link) in holds.iter().zip(links) {
        lines.extend(about(hold));
        lines.extend([String::new(), link.clone(), String::new()]);
    }
    let more = holds.len().saturating_sub(links.len());
    if more > 0 {
        lines.push(format!("and {more} more on the page"));
    }
    let id = format!("wait.{newest}.{}", holds.len());
    row(core, holds.first().copied(), name, &id, &title, &lines)
}

fn unknown(core: &Core, hold: &Hold, name: &str, link: &str) -> LocalRow {
    let (title, said) = if hold.action.sends() {
        ("Sent or not?", "It is not known whether this message was sent: the provider did not answer.")
    } else {
        ("Removed or not?", "It is not known whether this was carried out: the provider did not answer.")
    };
    let mut lines = vec![
        said.to_owned(),
        "Look at the page before it is tried again.".to_owned(),
        String::new(),
        format!("From key: {}", key_name(core, hold)),
    ];
    lines.extend(about(hold));
    lines.extend([String::new(), link.to_owned()]);
    let title = format!("{title} {}", subject_of(hold));
    row(core, Some(hold), name, &format!("hold.{}", hold.id), &title, &lines)
}

fn row(core: &Core, hold: Option<&Hold>, name: &str, id: &str, title: &str, lines: &[String]) -> LocalRow {
    let host = &core.config.hostname;
    let to = hold.map_or("", |h| h.account.as_str());
    let octets = notice(&format!("tollgate@{host}"), to, &format!("{id}@{host}"), &reports::date(now()), title, lines);
    LocalRow {
        name: name.to_owned(),
        date: internaldate(now()),
        octets,
        flags: Vec::new(),
        key: None,
        place: Place::Inbox,
        body: None,
    }
}

fn key_name(core: &Core, hold: &Hold) -> String {
    let keys = core.accounts.list_keys(Some(&hold.account));
    keys.into_iter().find(|k| k.id == hold.key).map_or_else(|| hold.key.to_string(), |k| k.name)
}
