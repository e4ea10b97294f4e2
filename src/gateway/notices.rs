//! Notices that something waits for approval: local messages in the INBOX
//! view of people.
//!
//! Promises: a hold that waits has one notice until it is decided or a person
//! dismisses it; no octet of a notice goes to the provider. Doesn't know: what
//! the held message says; the notice names recipients and subject only.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::core::Core;
use crate::account::AccountId;
use crate::config::ApprovalMode;
use crate::floor::submission::State;
use crate::imap::local::notice;
use crate::imap::mirror::{Health, Mirror, Op, OpError};
use crate::imap::perceiving::now;
use crate::outbox::Hold;
use crate::store::{StoreError, Table, read, write};
use crate::web;

/// Notices are compared with the holds this often, whatever was told.
const COMPARE_EVERY: Duration = Duration::from_secs(30);
/// Recipients that a notice names.
const RECIPIENTS_SHOWN: usize = 10;
/// What names of notices begin with.
const PREFIX: &str = "hold/";

/// The first part of links: the configured one, with the port that is really
/// listened on where port 0 was configured.
pub(super) fn web_url(configured: &str, listening: Option<&SocketAddr>) -> String {
    match (configured.strip_suffix(":0"), listening) {
        (Some(host), Some(address)) => format!("{host}:{}", address.port()),
        _ => configured.to_owned(),
    }
}

/// Keeps notices and holds together until told to stop.
pub(super) async fn run(
    core: Arc<Core>,
    mirrors: HashMap<AccountId, Arc<Mirror>>,
    url: String,
    mut stop: watch::Receiver<bool>,
) {
    let mut events = core.outbox.events();
    let mut healths: Vec<watch::Receiver<Health>> = mirrors.values().map(|m| m.health()).collect();
    loop {
        for (account, mirror) in &mirrors {
            if *mirror.health().borrow() == Health::Live
                && let Err(e) = compare(&core, account, mirror, &url).await
            {
                tracing::warn!(%account, "notices: {e}");
            }
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
    let holds = core.outbox.list(account).map_err(|e| OpError::Store(e.to_string()))?;
    let waiting: Vec<&Hold> = holds.iter().filter(|h| matches!(h.state, State::Held | State::Unknown)).collect();
    let wanted: BTreeSet<String> = waiting.iter().map(|h| name_of(h)).collect();
    let shown: BTreeSet<String> = {
        let state = mirror.state();
        state.locals.values().map(|l| l.row.name.clone()).filter(|n| n.starts_with(PREFIX)).collect()
    };
    for name in shown.difference(&wanted) {
        let name = name.clone();
        mirror.ask(|r| Op::RemoveLocalNamed(name, r)).await?;
    }
    for hold in waiting {
        let name = name_of(hold);
        if shown.contains(&name) || announced(core, account, &name)? {
            continue;
        }
        let octets = text(core, hold, &link(core, hold, url).await?);
        let posted = name.clone();
        mirror.ask(|r| Op::PostLocal(posted, octets, r)).await?;
        announce(core, account, &name).await?;
    }
    Ok(())
}

fn name_of(hold: &Hold) -> String {
    let state = if hold.state == State::Unknown { "unknown" } else { "held" };
    format!("{PREFIX}{}/{state}", hold.id)
}

/// A notice that a person dismissed isn't shown again.
fn announced(core: &Core, account: &AccountId, name: &str) -> Result<bool, OpError> {
    let key = announced_key(account, name);
    read::<_, StoreError>(&*core.store, |r| Ok(r.get(Table::Meta, &key)?.is_some())).map_err(OpError::from)
}

async fn announce(core: &Core, account: &AccountId, name: &str) -> Result<(), OpError> {
    let key = announced_key(account, name);
    write(&*core.store, move |w| w.put(Table::Meta, &key, b"1")).await.map_err(OpError::from)
}

fn announced_key(account: &AccountId, name: &str) -> Vec<u8> {
    format!("announced\0{account}\0{name}").into_bytes()
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

fn text(core: &Core, hold: &Hold, link: &str) -> String {
    let host = &core.config.hostname;
    let subject = hold.subject.as_deref().unwrap_or("(no subject)");
    let to: Vec<&str> = hold.envelope.forward_paths.iter().map(|p| p.as_str()).collect();
    let more = to.len().saturating_sub(RECIPIENTS_SHOWN);
    let mut lines = match hold.state {
        State::Unknown => vec![
            "It is not known whether this message was sent: the provider did not answer.".to_owned(),
            "Look at the page before anything is sent again.".to_owned(),
        ],
        _ => vec!["A message waits for your approval. Nothing is sent before you approve it.".to_owned()],
    };
    lines.push(String::new());
    lines.push(format!("From key: {}", key_name(core, hold)));
    lines.extend(to.iter().take(RECIPIENTS_SHOWN).map(|r| format!("To: {r}")));
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.push(format!("Subject: {subject}"));
    lines.push(String::new());
    lines.push(link.to_owned());
    let date = jiff::Timestamp::from_second(now()).map(|t| t.to_zoned(jiff::tz::TimeZone::UTC));
    let date = date.map(|z| z.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()).unwrap_or_default();
    let id = format!("hold.{}@{host}", hold.id);
    let title = match hold.state {
        State::Unknown => format!("Sent or not? {subject}"),
        _ => format!("Approval needed: {subject}"),
    };
    notice(&format!("tollgate@{host}"), hold.account.as_str(), &id, &date, &title, &lines)
}

fn key_name(core: &Core, hold: &Hold) -> String {
    let keys = core.accounts.list_keys(Some(&hold.account));
    keys.into_iter().find(|k| k.id == hold.key).map_or_else(|| hold.key.to_string(), |k| k.name)
}
