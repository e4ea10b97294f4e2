//! The negative twins of a passkey's answer, one test each. Every other lie
//! of an authenticator is in `passkeys`.

use super::house::House;
use super::passkeys::{Seen, decide, origin, ready, see};
use crate::floor::passkey::Assertion;
use crate::floor::passkey::software::{Authenticator, PRESENT_AND_VERIFIED};
use crate::floor::submission::State;

/// The user is present; nobody looked who it is.
const PRESENT_ONLY: u8 = PRESENT_AND_VERIFIED & 1;

/// A page view of one hold, and the passkey that may approve it.
struct Scene {
    house: House,
    cookie: String,
    passkey: Authenticator,
    seen: Seen,
}

impl Scene {
    async fn new() -> Scene {
        let (house, cookie, passkey) = ready().await;
        let id = house.calm().await;
        let seen = see(&house, &id, &cookie).await;
        Scene { house, cookie, passkey, seen }
    }

    /// What the passkey signs of this page view while it lies about itself.
    fn lied(&self, lie: impl FnOnce(&mut Authenticator)) -> Assertion {
        let mut liar = self.passkey.clone();
        lie(&mut liar);
        liar.get(&self.seen.approve)
    }

    /// The answer is refused and changes nothing, and the right one of the
    /// same page view works.
    async fn refuses(&self, twin: &Assertion) {
        let before = self.house.fingerprint();
        let answer = decide(&self.house, &self.cookie, &self.seen, "approve", twin).await;
        assert_eq!(answer.status, 403, "{}", answer.body);
        assert!(answer.body.contains("Not with this passkey"), "{}", answer.body);
        assert_eq!(self.house.fingerprint(), before);
        let right = self.passkey.clone().get(&self.seen.approve);
        let answer = decide(&self.house, &self.cookie, &self.seen, "approve", &right).await;
        assert_eq!(answer.status, 303, "{}", answer.body);
    }
}

#[tokio::test]
async fn another_holds_assertion_approves_nothing() {
    let scene = Scene::new().await;
    let other = scene.house.calm().await;
    let elsewhere = see(&scene.house, &other, &scene.cookie).await;
    scene.refuses(&scene.passkey.clone().get(&elsewhere.approve)).await;
    assert_eq!(scene.house.get_hold(&other).state, State::Held);
}

#[tokio::test]
async fn an_assertion_without_user_verification_approves_nothing() {
    let scene = Scene::new().await;
    scene.refuses(&scene.lied(|a| a.flags = PRESENT_ONLY)).await;
}

#[tokio::test]
async fn an_assertion_of_another_port_of_our_name_approves_nothing() {
    let scene = Scene::new().await;
    let other = format!("http://localhost:{}", scene.house.address.port() ^ 1);
    assert_ne!(other, origin(&scene.house));
    scene.refuses(&scene.lied(|a| a.origin = other)).await;
}

#[tokio::test]
async fn a_cross_origin_assertion_approves_nothing() {
    let scene = Scene::new().await;
    scene.refuses(&scene.lied(|a| a.more = ",\"crossOrigin\":true")).await;
}

/// Once for its own page view, and never for another: nor is one that was
/// never sent good after the page view that it is for was decided.
#[tokio::test]
async fn a_replayed_assertion_approves_nothing() {
    let mut scene = Scene::new().await;
    let used = scene.passkey.get(&scene.seen.approve);
    let answer = decide(&scene.house, &scene.cookie, &scene.seen, "approve", &used).await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    let after = scene.house.fingerprint();
    let again = decide(&scene.house, &scene.cookie, &scene.seen, "approve", &used).await;
    assert_eq!(again.status, 409, "{}", again.body);
    assert_eq!(scene.house.fingerprint(), after);
    let id = scene.house.calm().await;
    let fresh = see(&scene.house, &id, &scene.cookie).await;
    let crossed = decide(&scene.house, &scene.cookie, &fresh, "approve", &used).await;
    assert_eq!(crossed.status, 403, "{}", crossed.body);
    assert_eq!(scene.house.get_hold(&id).state, State::Held);
    // As `Seen` has it, the form is of the page view that was decided.
    assert_ne!(scene.seen.id, id);
}
