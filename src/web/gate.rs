//! `GET /gate/new-mail`: an agent asks whether there is reason to wake up.
//!
//! Promises: an agent's key opens this and no page; the answer has a lane,
//! counts and UIDs of what the key may read, and never what a mail says; no
//! model is asked. Few requests wait at a time, none for long, and a revoked
//! key's ends at once. Doesn't know: views; the gateway looks into them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::App;
use crate::account::{Accounts, Principal, Role, Verb};
use crate::lane::Lane;

/// The path.
pub(super) const PATH: &str = "/gate/new-mail";
/// The longest wait that can be asked for, in seconds.
pub const MAX_WAIT_SECONDS: u64 = 55;
/// The wait where none is asked for, in seconds.
const WAIT_SECONDS: u64 = 25;
/// Requests that wait at a time; the pages have the other connections.
pub const MAX_WAITING: usize = 16;
/// Requests of one key that wait at a time.
pub const MAX_WAITING_PER_KEY: usize = 2;
/// Pause after a key that is none.
const REFUSED_PAUSE: Duration = Duration::from_millis(500);
/// Lanes in the order in which they wake.
const URGENT_FIRST: [Lane; 5] = [Lane::Push, Lane::Meeting, Lane::Queue, Lane::Info, Lane::Silent];

/// Up to where a caller knows the mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Changes when everything is numbered anew.
    pub validity: u32,
    /// The last that is known; 0 for none.
    pub last: u32,
}

impl Cursor {
    fn parse(text: &str) -> Option<Cursor> {
        let (validity, last) = text.split_once('-')?;
        Some(Cursor { validity: validity.parse().ok()?, last: last.parse().ok()? })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.validity, self.last)
    }
}

/// What arrived.
#[derive(Debug, Clone, Default)]
pub struct News {
    /// Messages by lane.
    pub lanes: BTreeMap<Lane, usize>,
    /// UIDs of the newest in `mailbox`, ascending.
    pub uids: Vec<u32>,
    /// The mailbox that shows all of them.
    pub mailbox: String,
    /// Its UIDVALIDITY.
    pub uidvalidity: u32,
}

/// Looks into views.
pub trait Arrivals: Send + Sync {
    /// Where the mail is now, and what came after `since` as far as the key
    /// may see it; `None` before the provider was first reached. A cursor of
    /// another validity knows nothing.
    fn look(&self, who: &Principal, since: Option<Cursor>) -> Option<(Cursor, News)>;
    /// Changes whenever something may have come.
    fn changes(&self, who: &Principal) -> Option<watch::Receiver<u64>>;
}

/// The gate of one gateway.
#[derive(Default)]
pub struct Gate {
    arrivals: OnceLock<Arc<dyn Arrivals>>,
    waiting: Mutex<BTreeMap<String, usize>>,
}

impl Gate {
    /// Opens it; once, at start.
    pub fn open(&self, arrivals: Arc<dyn Arrivals>) {
        if self.arrivals.set(arrivals).is_err() {
            tracing::warn!("the gate was opened twice; the first stays");
        }
    }

    fn enter(self: &Arc<Self>, key: &str) -> Option<Place> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let own = waiting.get(key).copied().unwrap_or_default();
        if own >= MAX_WAITING_PER_KEY || waiting.values().sum::<usize>() >= MAX_WAITING {
            return None;
        }
        waiting.insert(key.to_owned(), own + 1);
        Some(Place { gate: self.clone(), key: key.to_owned() })
    }
}

/// A request that may wait.
struct Place {
    gate: Arc<Gate>,
    key: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.gate.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.get(&self.key).copied() {
            Some(n) if n > 1 => waiting.insert(self.key.clone(), n - 1),
            Some(_) | None => waiting.remove(&self.key),
        };
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    cursor: Option<String>,
    wait: Option<u64>,
}

/// Why there is no answer.
enum Refused {
    NoKey,
    NotAllowed,
    Cursor,
    Crowded,
    NotReady,
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Refused::NoKey => (StatusCode::UNAUTHORIZED, "an agent's key is needed"),
            Refused::NotAllowed => (StatusCode::FORBIDDEN, "this key has no grant to read"),
            Refused::Cursor => (StatusCode::BAD_REQUEST, "the cursor is not one of ours"),
            Refused::Crowded => (StatusCode::TOO_MANY_REQUESTS, "too many requests wait already"),
            Refused::NotReady => (StatusCode::SERVICE_UNAVAILABLE, "the account is starting"),
        };
        let mut response = answer(status, &json!({ "error": text }));
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer realm=\"tollgate\""));
        } else if status != StatusCode::FORBIDDEN && status != StatusCode::BAD_REQUEST {
            headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("5"));
        }
        response
    }
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// The route.
pub(super) async fn new_mail(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Response {
    match look(&app, &headers, asked.ok().map(|Query(a)| a)).await {
        Ok(body) => answer(StatusCode::OK, &body),
        Err(refused) => {
            if matches!(refused, Refused::NoKey) {
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
            refused.into_response()
        }
    }
}

async fn look(app: &App, headers: &HeaderMap, asked: Option<Asked>) -> Result<Value, Refused> {
    let who = authenticate(&app.services.accounts, headers).ok_or(Refused::NoKey)?;
    if who.role != Role::Agent {
        return Err(Refused::NoKey);
    }
    if !who.grants.now().allows(Verb::Read) {
        return Err(Refused::NotAllowed);
    }
    let asked = asked.ok_or(Refused::Cursor)?;
    let since = asked.cursor.as_deref().map(|c| Cursor::parse(c).ok_or(Refused::Cursor)).transpose()?;
    let arrivals = app.services.gate.arrivals.get().ok_or(Refused::NotReady)?;
    let mut changes = arrivals.changes(&who).ok_or(Refused::NotReady)?;
    let see = || arrivals.look(&who, since).ok_or(Refused::NotReady);
    let (now, news) = see()?;
    // Whoever doesn't say from where is told where that is.
    if since.is_none() || !news.lanes.is_empty() || since.is_some_and(|s| s.validity != now.validity) {
        return Ok(told(now, &news, since));
    }
    let wait = Duration::from_secs(asked.wait.unwrap_or(WAIT_SECONDS).min(MAX_WAIT_SECONDS));
    let _place = app.services.gate.enter(who.key.as_str()).ok_or(Refused::Crowded)?;
    let end = tokio::time::sleep(wait);
    tokio::pin!(end);
    let mut revoked = who.revoked.clone();
    loop {
        changes.mark_unchanged();
        let (now, news) = see()?;
        if !news.lanes.is_empty() || since.is_some_and(|s| s.validity != now.validity) {
            return Ok(told(now, &news, since));
        }
        tokio::select! {
            () = &mut end => return Ok(told(now, &news, since)),
            // A sender that is gone took the key along.
            _ = revoked.wait_for(|r| *r) => return Err(Refused::NoKey),
            changed = changes.changed() => if changed.is_err() { return Err(Refused::NotReady) },
        }
    }
}

fn told(now: Cursor, news: &News, since: Option<Cursor>) -> Value {
    let anew = since.is_some_and(|s| s.validity != now.validity);
    let wake = since.is_some() && (anew || !news.lanes.is_empty());
    let topic = URGENT_FIRST.into_iter().find(|lane| news.lanes.contains_key(lane)).filter(|_| wake);
    let lanes: serde_json::Map<String, Value> =
        news.lanes.iter().map(|(lane, count)| (lane.name().to_owned(), json!(count))).collect();
    json!({
        "wake": wake,
        "topic": topic.map(Lane::name),
        "data": {
            "cursor": now.to_string(),
            "anew": anew,
            "count": news.lanes.values().sum::<usize>(),
            "lanes": lanes,
            "mailbox": news.mailbox,
            "uidvalidity": news.uidvalidity,
            "uids": news.uids,
        },
    })
}

/// `Bearer KEY`, or `Basic` with the account's address and the key.
fn authenticate(accounts: &Accounts, headers: &HeaderMap) -> Option<Principal> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?.to_str().ok()?, values.next()) else { return None };
    let (scheme, rest) = value.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("Bearer") {
        // The key's id stands in its text and names the account.
        let id = rest.strip_prefix("tg1_")?.split('_').next()?;
        let account = accounts.list_keys(None).into_iter().find(|k| k.id.as_str() == id)?.account;
        return accounts.authenticate(account.as_str(), rest).ok();
    }
    if !scheme.eq_ignore_ascii_case("Basic") {
        return None;
    }
    let decoded = zeroize::Zeroizing::new(base64::engine::general_purpose::STANDARD.decode(rest).ok()?);
    let (user, key) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    accounts.authenticate(user, key).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_lane_is_the_topic() {
        let now = Cursor { validity: 7, last: 9 };
        let news = News { lanes: BTreeMap::from([(Lane::Info, 2), (Lane::Meeting, 1)]), ..News::default() };
        let said = told(now, &news, Some(Cursor { validity: 7, last: 3 }));
        assert_eq!((said["wake"].as_bool(), said["topic"].as_str()), (Some(true), Some("meeting")));
        assert_eq!((said["data"]["cursor"].as_str(), said["data"]["count"].as_u64()), (Some("7-9"), Some(3)));
        let quiet = told(now, &News::default(), Some(now));
        assert_eq!((quiet["wake"].as_bool(), quiet["topic"].as_str()), (Some(false), None));
        assert_eq!(told(now, &news, None)["wake"], false, "a first look wakes nobody");
        assert_eq!(told(now, &News::default(), Some(Cursor { validity: 6, last: 9 }))["wake"], true);
    }

    #[test]
    fn cursors_read_back_and_nothing_else_does() {
        let cursor = Cursor { validity: 7, last: 0 };
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        for text in ["", "7", "7-", "-7", "7-x", "7-1-2", "99999999999-1"] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }

    #[test]
    fn few_wait_at_a_time_and_fewer_of_one_key() {
        let gate = Arc::new(Gate::default());
        let first = gate.enter("a");
        let _second = gate.enter("a");
        assert!(first.is_some() && gate.enter("a").is_none());
        drop(first);
        assert!(gate.enter("a").is_some());
        let all: Vec<_> = (0..MAX_WAITING * 2).filter_map(|n| gate.enter(&n.to_string())).collect();
        assert_eq!(all.len(), MAX_WAITING - 1);
        drop(all);
        assert_eq!(gate.waiting.lock().unwrap().len(), 1);
    }
}
