//! People's own logins at their provider, for accounts without a stored
//! secret (`auth = "login"`).
//!
//! Promises: a password stands in memory only, for as long as the session
//! that brought it is signed in, and is erased then; it shows in no Debug
//! output and no log. A session becomes a [`Principal`] only through
//! [`Unproven::accepted`]. Doesn't know: how the provider is asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, watch};
use zeroize::Zeroizing;

use super::{AccountId, Grants, KeyId, Principal, Role};

/// What names such a session where others name a key. No key has this id:
/// theirs hold no hyphen.
pub const OWN_LOGIN: &str = "own-login";

/// A password and the switch of the session that brought it.
struct Living {
    number: u64,
    password: Zeroizing<String>,
    revoked: Arc<watch::Sender<bool>>,
}

#[derive(Default)]
struct Seats {
    /// In the order of their sign-ins.
    living: Vec<Living>,
    /// Numbers given so far.
    given: u64,
}

/// The sessions of one account that are signed in with their own login and
/// see its mailboxes.
pub struct Logins {
    account: AccountId,
    seats: Mutex<Seats>,
    present: watch::Sender<usize>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl std::fmt::Debug for Logins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logins").field("account", &self.account).field("present", &*self.present.borrow()).finish()
    }
}

impl Logins {
    pub(super) fn new(account: AccountId) -> Arc<Logins> {
        let present = watch::Sender::new(0);
        Arc::new(Logins { account, seats: Mutex::default(), present, turn: Arc::default() })
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many sessions there are, now and later.
    pub fn present(&self) -> watch::Receiver<usize> {
        self.present.subscribe()
    }

    /// Whether there is none.
    pub fn none(&self) -> bool {
        *self.present.borrow() == 0
    }

    /// The password that the provider accepted last, of a session that lives.
    pub fn newest(&self) -> Option<Zeroizing<String>> {
        self.seats().living.last().map(|l| l.password.clone())
    }

    /// The passwords of living sessions that differ from this one, each once.
    pub fn others(&self, password: &str) -> Vec<Zeroizing<String>> {
        let mut list: Vec<Zeroizing<String>> = Vec::new();
        for one in &self.seats().living {
            if *one.password != password && !list.contains(&one.password) {
                list.push(one.password.clone());
            }
        }
        list
    }

    /// The provider no longer takes this password: its sessions end.
    pub fn refused(&self, password: &str) {
        let mut seats = self.seats();
        for one in seats.living.iter().filter(|l| *l.password == password) {
            one.revoked.send_replace(true);
        }
        seats.living.retain(|l| *l.password != password);
        self.count(&seats);
    }

    /// Waits to be the only one of this account that tries a password. A
    /// refused try keeps its turn for as long as the client waits, so that
    /// many connections guess no faster than one.
    pub async fn turn(&self, at_most: Duration) -> Option<OwnedMutexGuard<()>> {
        tokio::time::timeout(at_most, self.turn.clone().lock_owned()).await.ok()
    }

    fn enter(&self, password: &Zeroizing<String>, revoked: &Arc<watch::Sender<bool>>) -> u64 {
        let mut seats = self.seats();
        seats.given += 1;
        let number = seats.given;
        seats.living.push(Living { number, password: password.clone(), revoked: revoked.clone() });
        self.count(&seats);
        number
    }

    fn leave(&self, number: u64) {
        let mut seats = self.seats();
        seats.living.retain(|l| l.number != number);
        self.count(&seats);
    }

    /// Told while the seats are locked, so that no older count comes last.
    fn count(&self, seats: &Seats) {
        self.present.send_replace(seats.living.len());
    }
}

/// A login that a client brought and nobody has checked yet.
pub struct Unproven {
    logins: Arc<Logins>,
    password: Zeroizing<String>,
}

impl std::fmt::Debug for Unproven {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unproven").field("account", &self.logins.account).finish_non_exhaustive()
    }
}

/// What a session that the provider accepted may reach with its login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The account's mailboxes: the mirror runs while such a session lives.
    Mailboxes,
    /// Only what this session itself submits.
    Submission,
}

impl Unproven {
    pub(super) fn new(logins: Arc<Logins>, password: &str) -> Unproven {
        Unproven { logins, password: Zeroizing::new(password.to_owned()) }
    }

    /// The account.
    pub fn account(&self) -> &AccountId {
        &self.logins.account
    }

    /// The password to try at the provider.
    pub fn password(&self) -> &Zeroizing<String> {
        &self.password
    }

    /// As [`Logins::turn`].
    pub async fn turn(&self, at_most: Duration) -> Option<OwnedMutexGuard<()>> {
        self.logins.turn(at_most).await
    }

    /// The provider accepted exactly this login a moment ago. Only for whoever
    /// asked it.
    pub fn accepted(self, reach: Reach) -> Principal {
        let revoked = Arc::new(watch::Sender::new(false));
        let seat = match reach {
            Reach::Mailboxes => Some(self.logins.enter(&self.password, &revoked)),
            Reach::Submission => None,
        };
        let account = self.logins.account.clone();
        let receiver = revoked.subscribe();
        let own = OwnLogin(Arc::new(Seat { logins: self.logins, password: self.password, number: seat, revoked }));
        Principal {
            account,
            key: KeyId(OWN_LOGIN.into()),
            key_name: "own login".to_owned(),
            role: Role::Person,
            grants: Grants::Person,
            revoked: receiver,
            own: Some(own),
        }
    }
}

/// The login of a session, which the provider accepted. The last copy that is
/// dropped ends it.
#[derive(Clone)]
pub struct OwnLogin(Arc<Seat>);

struct Seat {
    logins: Arc<Logins>,
    password: Zeroizing<String>,
    number: Option<u64>,
    /// Held, since a receiver without a sender counts as revoked.
    revoked: Arc<watch::Sender<bool>>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.logins.leave(number);
        }
    }
}

impl std::fmt::Debug for OwnLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnLogin").field("revoked", &*self.0.revoked.borrow()).finish_non_exhaustive()
    }
}

impl OwnLogin {
    /// The password.
    pub fn password(&self) -> &str {
        &self.0.password
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logins() -> Arc<Logins> {
        Logins::new(AccountId("jo@example.org".into()))
    }

    fn session(logins: &Arc<Logins>, password: &str) -> Principal {
        Unproven::new(logins.clone(), password).accepted(Reach::Mailboxes)
    }

    #[test]
    fn a_password_stays_for_as_long_as_its_session() {
        let logins = logins();
        assert!(logins.none() && logins.newest().is_none());
        let first = session(&logins, "one");
        let second = session(&logins, "two");
        let copy = second.clone();
        assert_eq!((*logins.present().borrow(), logins.newest().unwrap().as_str()), (2, "two"));
        drop(second);
        assert_eq!(logins.newest().unwrap().as_str(), "two", "a copy of the session lives");
        drop(copy);
        assert_eq!(logins.newest().unwrap().as_str(), "one");
        drop(first);
        assert!(logins.none() && logins.newest().is_none());
    }

    #[test]
    fn a_refused_password_ends_its_own_sessions_only() {
        let logins = logins();
        let (old, again, new) = (session(&logins, "old"), session(&logins, "old"), session(&logins, "new"));
        assert_eq!(logins.others("new").len(), 1);
        logins.refused("old");
        assert!(*old.revoked.borrow() && *again.revoked.borrow() && !*new.revoked.borrow());
        assert_eq!((*logins.present().borrow(), logins.newest().unwrap().as_str()), (1, "new"));
        drop(old);
        assert_eq!(*logins.present().borrow(), 1, "its seat was given up already");
    }

    #[test]
    fn a_login_for_submission_opens_no_mailbox() {
        let logins = logins();
        let principal = Unproven::new(logins.clone(), "one").accepted(Reach::Submission);
        assert!(logins.none() && logins.newest().is_none());
        assert_eq!(principal.own.as_ref().unwrap().password(), "one");
        assert!(!*principal.revoked.borrow());
    }

    #[test]
    fn no_debug_output_shows_a_password() {
        let logins = logins();
        let unproven = Unproven::new(logins.clone(), "hunter2");
        let text = format!("{unproven:?}");
        let principal = unproven.accepted(Reach::Mailboxes);
        assert!(!format!("{text} {principal:?} {logins:?}").contains("hunter2"));
    }

    #[tokio::test]
    async fn one_password_is_tried_at_a_time() {
        let logins = logins();
        let held = logins.turn(Duration::ZERO).await.unwrap();
        assert!(logins.turn(Duration::from_millis(10)).await.is_none());
        drop(held);
        assert!(logins.turn(Duration::ZERO).await.is_some());
    }
}
