//! The explicit downgrade: a notice's link that is enough by itself.

use super::house::{House, PIN, me};
use super::{form_of, with};
use crate::config::ApprovalMode;
use crate::floor::submission::State;
use crate::web::link;

async fn ready() -> (House, crate::outbox::HoldId, String) {
    let house = House::requiring(ApprovalMode::Link).await;
    let id = house.calm().await;
    let path = link::path(house.services.store.as_ref(), &id).await.unwrap();
    (house, id, path)
}

#[tokio::test]
async fn the_link_shows_and_only_its_form_approves() {
    let (house, id, path) = ready().await;
    let before = house.fingerprint();
    for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
        for act in ["", "/approve", "/deny", "/raw"] {
            house.request(method, &format!("{path}{act}"), &[], "").await;
        }
    }
    for (name, value) in [("Sec-Purpose", "prefetch"), ("Sec-Purpose", "prefetch;prerender"), ("Purpose", "prefetch")] {
        assert_eq!(house.request("GET", &path, &[(name, value)], "").await.status, 503, "{value}");
    }
    assert_eq!(house.fingerprint(), before);
    let page = house.get(&path, "").await;
    assert!(page.status == 200 && page.body.contains("Hello Bo."), "{}", page.body);
    assert!(!page.body.contains("Your PIN") && !page.body.contains("sign-out") && !page.body.contains("/keys/"));
    assert_eq!(page.header("set-cookie"), None);
    let (hash, nonce) = (page.hidden("hash"), page.hidden("nonce"));
    let wrong = house.post(&format!("{path}/approve"), "", &[("hash", "x"), ("nonce", &nonce)]).await;
    assert_eq!(wrong.status, 409);
    let form = [("hash", hash.as_str()), ("nonce", nonce.as_str())];
    let body = super::house::urlencoded(&form);
    let foreign = [("Origin", "http://evil.example")];
    assert_eq!(house.request("POST", &format!("{path}/approve"), &foreign, &body).await.status, 403);
    assert_eq!(house.request("POST", &format!("{path}/approve"), &[], &body).await.status, 403);
    assert_eq!(house.fingerprint(), before);
    assert_eq!(house.post(&format!("{path}/approve"), "", &form).await.status, 303);
    assert_eq!(house.get_hold(&id).state, State::Approved);
    let receipt = house.services.outbox.receipt(&id).unwrap().unwrap();
    assert_eq!(receipt.payload.method, "link", "the receipt says how little it took");
    assert_eq!(house.post(&format!("{path}/approve"), "", &form).await.status, 409);
}

#[tokio::test]
async fn a_link_is_of_one_hold_and_opens_nothing_else() {
    let (house, _, path) = ready().await;
    let other = house.calm().await;
    let token = path.rsplit('/').next().unwrap();
    for path in
        [format!("/link/{other}/{token}"), format!("{path}0"), format!("/link/{other}/"), format!("/link/x/{token}")]
    {
        let answer = house.get(&path, "").await;
        assert!(answer.status == 404 && !answer.body.contains("Hello"), "{path}: {}", answer.status);
        let deny = house.post(&format!("{path}/deny"), "", &[("hash", ""), ("nonce", "")]).await;
        assert!([404, 405].contains(&deny.status), "{path}: {}", deny.status);
    }
    assert_eq!(house.get("/", "").await.status, 403, "no sign-in");
    assert_eq!(house.get(&format!("/held/{other}"), "").await.status, 403);
    assert_eq!(house.get_hold(&other).state, State::Held);
}

#[tokio::test]
async fn in_other_modes_no_link_opens_anything() {
    for mode in [ApprovalMode::Pin, ApprovalMode::Passkey] {
        let house = House::requiring(mode).await;
        let id = house.calm().await;
        let path = link::path(house.services.store.as_ref(), &id).await.unwrap();
        assert_eq!(house.get(&path, "").await.status, 403);
        let cookie = house.me().await;
        assert_eq!(house.get(&path, &cookie).await.status, 404);
        assert_eq!(house.post(&format!("{path}/approve"), &cookie, &[("hash", ""), ("nonce", "")]).await.status, 404);
        assert_eq!(house.get_hold(&id).state, State::Held);
    }
}

#[tokio::test]
async fn a_signed_in_person_uses_the_pin_and_the_reason_of_a_link_is_kept() {
    let (house, id, _) = ready().await;
    let cookie = house.me().await;
    let form = form_of(&house, id.as_str(), &cookie).await;
    let wrong = house.post(&format!("/held/{id}/approve"), &cookie, &with(&form, "pin", "000000")).await;
    assert_eq!(wrong.status, 403);
    assert_eq!(house.post(&format!("/held/{id}/approve"), &cookie, &with(&form, "pin", PIN)).await.status, 303);
    let two = house.calm().await;
    let path = link::path(house.services.store.as_ref(), &two).await.unwrap();
    let page = house.get(&path, "").await;
    let (hash, nonce) = (page.hidden("hash"), page.hidden("nonce"));
    let form = [("hash", hash.as_str()), ("nonce", &nonce), ("reason", "not today")];
    assert_eq!(house.post(&format!("{path}/deny"), "", &form).await.status, 303);
    assert_eq!(house.get_hold(&two).detail.as_deref(), Some("not today"));
    assert_eq!(house.get_hold(&two).approver.as_deref(), Some(me().as_str()));
}
