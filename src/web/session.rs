//! Sign-ins: a cookie that lets a person look, and nothing more.
//!
//! Promises: the cookie's value is 256 random bits and is stored only as a
//! hash; a sign-in names one account, ends after [`LIFETIME_SECONDS`], with a
//! change of the PIN and with the passkey it began with. Doesn't know:
//! approvals; they need the PIN or the passkey itself.
//!
//! Browsers send a cookie to every port of a host. Another program that serves
//! pages on this machine's `localhost` may therefore receive the cookie, which
//! is why it only opens pages and never approves, and why a sign-in counts only
//! on connections of the operating-system user who began it.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{passkey, pin};
use crate::account::AccountId;
use crate::store::{self, Store, StoreError, Table, Writer};

/// Name of the cookie.
pub const COOKIE: &str = "tollgate_session";
/// How long a sign-in lasts.
pub const LIFETIME_SECONDS: i64 = 12 * 3600;
/// Most sign-ins of one account; the oldest ends first.
pub(super) const MAX_PER_ACCOUNT: usize = 16;
/// Most cookies of our name in one request that are looked up.
const MAX_COOKIES: usize = 4;
/// Most stored sign-ins that are looked through when one is added.
const MAX_STORED: usize = 4096;
const PREFIX: &[u8] = b"session/";

/// Who is signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    /// The account.
    pub(super) account: AccountId,
    /// Stands in every form of this sign-in.
    pub(super) csrf: String,
    /// The PIN that was set when it began; zeros for none.
    pin: [u8; 32],
    /// The passkey that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    passkey: Option<String>,
    /// The user whose connection it began on, where the kernel says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    created: i64,
    expires: i64,
}

impl Session {
    /// Whether a form is this sign-in's own.
    pub(super) fn owns_form(&self, csrf: &str) -> bool {
        self.csrf.as_bytes().ct_eq(csrf.as_bytes()).into()
    }

    /// Who follows a notice's link: no sign-in, nothing stored.
    pub(super) fn of_link(account: &AccountId) -> Session {
        let csrf = String::new();
        Session { account: account.clone(), csrf, pin: [0; 32], passkey: None, uid: None, created: 0, expires: 0 }
    }
}

/// Why there is no sign-in.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// The account has no PIN.
    #[error("no PIN is set")]
    NoPin,
    /// The system gave no random octets.
    #[error("no randomness: {0}")]
    Random(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn random() -> Result<String, SessionError> {
    let mut octets = [0; 32];
    getrandom::fill(&mut octets).map_err(|e| SessionError::Random(e.to_string()))?;
    Ok(hex(&octets))
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|b| format!("{b:02x}")).collect()
}

fn key(token: &str) -> Vec<u8> {
    [PREFIX, hex(&Sha256::digest(token)).as_bytes()].concat()
}

/// Begins a sign-in after the PIN was verified; returns the cookie's value.
pub(super) async fn begin(
    store: &dyn Store,
    account: &AccountId,
    uid: Option<u32>,
    now: i64,
) -> Result<String, SessionError> {
    let pin = pin::generation(store, account)?.ok_or(SessionError::NoPin)?;
    start(store, account, pin, None, uid, now).await
}

/// Begins a sign-in after a passkey was verified.
pub(super) async fn begin_by_passkey(
    store: &dyn Store,
    account: &AccountId,
    credential: &str,
    uid: Option<u32>,
    now: i64,
) -> Result<String, SessionError> {
    let pin = pin::generation(store, account)?.unwrap_or_default();
    start(store, account, pin, Some(credential.to_owned()), uid, now).await
}

async fn start(
    store: &dyn Store,
    account: &AccountId,
    pin: [u8; 32],
    passkey: Option<String>,
    uid: Option<u32>,
    now: i64,
) -> Result<String, SessionError> {
    let (token, csrf) = (random()?, random()?);
    let expires = now + LIFETIME_SECONDS;
    let session = Session { account: account.clone(), csrf, pin, passkey, uid, created: now, expires };
    let key = key(&token);
    store::write(store, move |w| -> Result<(), SessionError> {
        make_room(w, &session.account, now)?;
        Ok(store::put_json(w, Table::Web, &key, &session)?)
    })
    .await?;
    Ok(token)
}

/// Removes what has expired and the account's oldest sign-ins over the limit.
fn make_room(w: &mut dyn Writer, account: &AccountId, now: i64) -> Result<(), StoreError> {
    let mut own: Vec<(i64, Vec<u8>)> = Vec::new();
    for (key, value) in w.scan(Table::Web, PREFIX, b"", MAX_STORED)? {
        match store::from_json::<Session>(Table::Web, &value) {
            Ok(session) if session.expires > now => {
                if session.account == *account {
                    own.push((session.created, key));
                }
            }
            Ok(_) | Err(_) => w.delete(Table::Web, &key)?,
        }
    }
    own.sort();
    let over = (own.len() + 1).saturating_sub(MAX_PER_ACCOUNT);
    for (_, key) in own.into_iter().take(over) {
        w.delete(Table::Web, &key)?;
    }
    Ok(())
}

/// The sign-in of a cookie's value on a connection of `uid`.
pub(super) fn find(store: &dyn Store, token: &str, uid: Option<u32>, now: i64) -> Result<Option<Session>, StoreError> {
    let key = key(token);
    let stored = store::read(store, |r| r.get(Table::Web, &key))?;
    let Some(session) = stored.map(|v| store::from_json::<Session>(Table::Web, &v)).transpose()? else {
        return Ok(None);
    };
    // A clock that went back behind the sign-in doesn't lengthen it.
    let lives = session.expires > now && session.created <= now.saturating_add(LIFETIME_SECONDS);
    let pin = pin::generation(store, &session.account)?.unwrap_or_default() == session.pin;
    let passkey = match &session.passkey {
        Some(credential) => passkey::find(store, &session.account, credential)?.is_some(),
        None => true,
    };
    if uid != session.uid {
        tracing::warn!(account = %session.account, ?uid, "a sign-in's cookie came from another user of this machine");
        return Ok(None);
    }
    Ok((lives && pin && passkey).then_some(session))
}

/// Ends the sign-in of a cookie's value.
pub(super) async fn end(store: &dyn Store, token: &str) -> Result<(), StoreError> {
    let key = key(token);
    store::write(store, move |w| w.delete(Table::Web, &key)).await
}

/// The values of our cookie in the Cookie fields of a request.
pub(super) fn tokens(headers: &axum::http::HeaderMap) -> Vec<String> {
    let fields = headers.get_all(axum::http::header::COOKIE).iter().filter_map(|v| v.to_str().ok());
    fields
        .flat_map(|v| v.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, value)| *name == COOKIE && value.len() == 64 && value.bytes().all(|b| b.is_ascii_hexdigit()))
        .map(|(_, value)| value.to_owned())
        .take(MAX_COOKIES)
        .collect()
}

/// The Set-Cookie field of a sign-in; `None` takes the cookie back.
pub(super) fn cookie(token: Option<&str>, https: bool) -> String {
    let secure = if https { "; Secure" } else { "" };
    let age = if token.is_some() { LIFETIME_SECONDS } else { 0 };
    format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}", token.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::RedbStore;

    const NOON: i64 = 1_800_000_000;
    const ME: Option<u32> = Some(1000);

    #[tokio::test]
    async fn a_sign_in_is_found_expires_and_ends_with_the_pin() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path()).unwrap();
        let account = AccountId("ada@example.org".into());
        assert!(matches!(begin(&store, &account, ME, NOON).await, Err(SessionError::NoPin)));
        pin::set(&store, &account, "314159").await.unwrap();
        let token = begin(&store, &account, ME, NOON).await.unwrap();
        let session = find(&store, &token, ME, NOON).unwrap().unwrap();
        assert_eq!(session.account, account);
        assert!(session.owns_form(&session.csrf.clone()) && !session.owns_form("") && !session.owns_form(&token));
        assert!(find(&store, &token, ME, NOON + LIFETIME_SECONDS).unwrap().is_none());
        for other in [Some(0), Some(1001), None] {
            assert!(find(&store, &token, other, NOON).unwrap().is_none(), "{other:?} is another user");
        }
        assert!(find(&store, &token.replace(&token[..1], "g"), ME, NOON).unwrap().is_none());
        pin::set(&store, &account, "314159").await.unwrap();
        assert!(find(&store, &token, ME, NOON).unwrap().is_none(), "a new PIN ends sign-ins");
    }

    #[tokio::test]
    async fn the_token_is_not_in_the_store_and_sign_ins_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path()).unwrap();
        let account = AccountId("ada@example.org".into());
        pin::set(&store, &account, "314159").await.unwrap();
        let first = begin(&store, &account, ME, NOON).await.unwrap();
        for n in 1..=MAX_PER_ACCOUNT as i64 {
            begin(&store, &account, ME, NOON + n).await.unwrap();
        }
        assert!(find(&store, &first, ME, NOON).unwrap().is_none(), "the oldest went");
        let all = store::read(&store, |r| r.scan(Table::Web, PREFIX, b"", 100)).unwrap();
        assert_eq!(all.len(), MAX_PER_ACCOUNT);
        let last = begin(&store, &account, ME, NOON + 99).await.unwrap();
        assert!(
            !all.iter()
                .any(|(k, v)| String::from_utf8_lossy(k).contains(&last) || String::from_utf8_lossy(v).contains(&last))
        );
        end(&store, &last).await.unwrap();
        assert!(find(&store, &last, ME, NOON).unwrap().is_none());
    }

    #[test]
    fn only_whole_cookies_of_our_name_count() {
        let mut headers = axum::http::HeaderMap::new();
        let token = "a".repeat(64);
        let value = format!("x={token}; {COOKIE}={token}; {COOKIE}=short; {COOKIE}2={token}");
        headers.insert("cookie", value.parse().unwrap());
        assert_eq!(tokens(&headers), [token]);
        assert!(cookie(Some("t"), true).ends_with("; Secure") && cookie(None, false).contains("Max-Age=0"));
    }
}
