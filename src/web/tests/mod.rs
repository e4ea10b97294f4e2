//! The pages over the wire, with a real outbox and store.

mod batches;
mod decisions;
mod guards;
mod house;
mod links;
mod passkeys;
mod shows;
mod twins;

use super::pin::{ATTEMPTS, MAX_OCTETS};
use crate::floor::action::Action;
use crate::floor::receipt::{Expect, Receipt};
use crate::floor::submission::State;
use house::{CALM, House, OTHER, OTHER_PIN, PIN, agent, me, other_account};

/// The fields of a decision, as the page of `id` gives them.
async fn form_of(house: &House, id: &str, cookie: &str) -> Vec<(&'static str, String)> {
    let page = house.get(&format!("/held/{id}"), cookie).await;
    assert_eq!(page.status, 200, "{}", page.body);
    let mut form: Vec<(&'static str, String)> = vec![("pin", PIN.to_owned())];
    form.extend(["csrf", "hash", "nonce"].map(|name| (name, page.hidden(name))));
    form
}

fn with<'a>(form: &'a [(&'static str, String)], name: &str, value: &'a str) -> Vec<(&'static str, &'a str)> {
    form.iter().map(|(n, v)| (*n, if *n == name { value } else { v.as_str() })).collect()
}

#[tokio::test]
async fn an_approval_works_once_and_leaves_a_receipt_that_verifies() {
    let house = House::new().await;
    let (id, cookie) = (house.calm().await, house.me().await);
    let approve = format!("/held/{id}/approve");
    let form = form_of(&house, id.as_str(), &cookie).await;
    let second = form_of(&house, id.as_str(), &cookie).await;
    let answer = house.post(&approve, &cookie, &with(&form, "", "")).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some(format!("/held/{id}").as_str())),
        "{}",
        answer.body
    );
    assert_eq!(house.get_hold(&id).state, State::Approved);
    for again in [&form, &second] {
        let refused = house.post(&approve, &cookie, &with(again, "", "")).await;
        assert_eq!(refused.status, 409);
        assert!(refused.body.contains("Already decided"), "{}", refused.body);
    }
    let page = house.get(&format!("/held/{id}"), &cookie).await;
    assert!(page.body.contains("Receipt (JSON)") && !page.body.contains("Approve and send"));
    let receipt = house.get(&format!("/held/{id}/receipt"), &cookie).await;
    assert_eq!(receipt.header("content-type"), Some("application/json"));
    let receipt = Receipt::parse(receipt.body.as_bytes()).unwrap();
    let mut expect = Expect::new(Action::SendEmail);
    let hold = house.get_hold(&id);
    (expect.message, expect.envelope) = (Some((hold.blob.0, CALM.len() as u64)), Some(&hold.envelope));
    (expect.account, expect.approver) = (Some(hold.account.as_str()), Some(hold.account.as_str()));
    let verified = receipt.verify(&house.services.outbox.verifying_keys(), &expect).unwrap();
    assert_eq!(verified.payload_hash().to_string(), form.iter().find(|(n, _)| *n == "hash").unwrap().1);
}

#[tokio::test]
async fn each_missing_proof_is_refused_with_its_reason_and_nothing_changes() {
    let house = House::new().await;
    let (id, cookie) = (house.calm().await, house.me().await);
    let approve = format!("/held/{id}/approve");
    let form = form_of(&house, id.as_str(), &cookie).await;
    let before = house.fingerprint();
    let zero = "0".repeat(64);
    for (name, value, status, says) in [
        ("csrf", zero.as_str(), 403, "An old form"),
        ("csrf", "", 403, "An old form"),
        ("pin", "", 403, "Wrong PIN"),
        ("pin", "246811", 403, "Wrong PIN"),
        ("hash", zero.as_str(), 409, "Not what was shown"),
        ("hash", "", 409, "Not what was shown"),
        ("nonce", "00", 409, "The page is too old"),
    ] {
        for path in [&approve, &format!("/held/{id}/deny")] {
            if path.ends_with("deny") && (name == "hash" || name == "nonce") {
                continue;
            }
            let answer = house.post(path, &cookie, &with(&form, name, value)).await;
            assert_eq!(answer.status, status, "{path} {name}={value}: {}", answer.body);
            assert!(answer.body.contains(says), "{path} {name}={value}: {}", answer.body);
            let back = answer.body.contains(&format!("href=\"/held/{id}\""));
            assert!(back, "{name} leads back to the message");
            assert_eq!(house.fingerprint(), before, "{path} {name}={value}");
        }
    }
    for missing in ["pin", "csrf", "hash", "nonce"] {
        let fewer: Vec<_> = with(&form, "", "").into_iter().filter(|(n, _)| *n != missing).collect();
        assert_eq!(house.post(&approve, &cookie, &fewer).await.status, 400, "{missing}");
    }
    let mut twice = with(&form, "", "");
    twice.push(("pin", PIN));
    assert_eq!(house.post(&approve, &cookie, &twice).await.status, 400, "a field twice");
    assert_eq!(house.fingerprint(), before);
    assert_eq!(house.post(&approve, &cookie, &with(&form, "", "")).await.status, 303, "and with all of them it works");
}

#[tokio::test]
async fn a_nonce_belongs_to_its_message_and_its_approver() {
    let house = House::new().await;
    let (one, two, cookie) = (house.calm().await, house.calm().await, house.me().await);
    let form = form_of(&house, one.as_str(), &cookie).await;
    let crossed = house.post(&format!("/held/{two}/approve"), &cookie, &with(&form, "", "")).await;
    assert_eq!(crossed.status, 409);
    assert_eq!(house.get_hold(&two).state, State::Held);
}

#[tokio::test]
async fn wrong_pins_lock_approving_and_sign_in() {
    let house = House::new().await;
    let (id, cookie) = (house.calm().await, house.me().await);
    let form = form_of(&house, id.as_str(), &cookie).await;
    let approve = format!("/held/{id}/approve");
    for _ in 1..ATTEMPTS {
        assert_eq!(house.post(&approve, &cookie, &with(&form, "pin", "000000")).await.status, 403);
    }
    let locked = house.post(&approve, &cookie, &with(&form, "pin", "000000")).await;
    assert_eq!(locked.status, 429);
    assert!(locked.header("retry-after").is_some());
    assert_eq!(house.post(&approve, &cookie, &with(&form, "", "")).await.status, 429, "the right PIN waits too");
    let sign_in = house.post("/sign-in", "", &[("account", me().as_str()), ("pin", PIN)]).await;
    assert_eq!(sign_in.status, 429);
    assert_eq!(house.get_hold(&id).state, State::Held);
    house.sign_in(OTHER, OTHER_PIN).await;
}

#[tokio::test]
async fn a_denial_keeps_its_reason_and_ends_the_message() {
    let house = House::new().await;
    let (id, cookie) = (house.calm().await, house.me().await);
    let form = form_of(&house, id.as_str(), &cookie).await;
    let mut deny = with(&form, "", "");
    deny.push(("reason", "not <yet>"));
    assert_eq!(house.post(&format!("/held/{id}/deny"), &cookie, &deny).await.status, 303);
    let hold = house.get_hold(&id);
    assert_eq!((hold.state, hold.detail.as_deref()), (State::Denied, Some("not <yet>")));
    let approve = house.post(&format!("/held/{id}/approve"), &cookie, &with(&form, "", "")).await;
    assert_eq!(approve.status, 409);
    let history = house.get("/history", &cookie).await;
    assert!(history.body.contains("Denied") && history.body.contains("Grüße"));
    assert_eq!(house.get(&format!("/held/{id}/receipt"), &cookie).await.status, 404);
}

#[tokio::test]
async fn one_act_denies_all_of_a_key_and_revokes_it() {
    let house = House::new().await;
    let (one, two, cookie) = (house.calm().await, house.calm().await, house.me().await);
    let path = format!("/keys/{}/deny-and-revoke", agent().as_str());
    let csrf = house.get(&format!("/held/{one}"), &cookie).await.hidden("csrf");
    let wrong = house.post(&path, &cookie, &[("pin", "000000"), ("csrf", &csrf)]).await;
    assert_eq!(wrong.status, 403);
    let unknown = house.post("/keys/nokey/deny-and-revoke", &cookie, &[("pin", PIN), ("csrf", &csrf)]).await;
    assert_eq!(unknown.status, 404);
    assert!(house.services.accounts.list_keys(None).iter().all(|k| k.revoked_at.is_none()));
    assert_eq!(house.post(&path, &cookie, &[("pin", PIN), ("csrf", &csrf)]).await.status, 303);
    assert!([one, two].iter().all(|id| house.get_hold(id).state == State::Denied));
    let key = house.services.accounts.list_keys(Some(&me())).into_iter().find(|k| k.id == agent()).unwrap();
    assert!(key.revoked_at.is_some());
}

#[tokio::test]
async fn another_account_sees_and_decides_nothing() {
    let house = House::new().await;
    let (id, mine) = (house.calm().await, house.me().await);
    let form = form_of(&house, id.as_str(), &mine).await;
    let cookie = house.sign_in(OTHER, OTHER_PIN).await;
    let before = house.fingerprint();
    for path in ["", "/raw", "/receipt"] {
        assert_eq!(house.get(&format!("/held/{id}{path}"), &cookie).await.status, 404, "{path}");
    }
    assert!(!house.get("/", &cookie).await.body.contains(id.as_str()));
    let csrf = house.get("/", &cookie).await.hidden("csrf");
    let form: Vec<(&'static str, String)> = form
        .into_iter()
        .map(|(n, v)| match n {
            "csrf" => (n, csrf.clone()),
            "pin" => (n, OTHER_PIN.to_owned()),
            _ => (n, v),
        })
        .collect();
    for act in ["approve", "deny"] {
        assert_eq!(house.post(&format!("/held/{id}/{act}"), &cookie, &with(&form, "", "")).await.status, 404);
    }
    let key = format!("/keys/{}/deny-and-revoke", agent().as_str());
    assert_eq!(house.post(&key, &cookie, &[("pin", OTHER_PIN), ("csrf", &csrf)]).await.status, 404);
    assert_eq!(house.fingerprint(), before);
    assert_ne!(me(), other_account());
}

#[tokio::test]
async fn sign_in_is_refused_alike_and_sign_out_ends_it() {
    let house = House::new().await;
    for (account, pin) in
        [(me().as_str(), "000000"), ("nobody@example.org", PIN), ("", ""), ("x", &"9".repeat(MAX_OCTETS * 9))]
    {
        let answer = house.post("/sign-in", "", &[("account", account), ("pin", pin)]).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{account}");
    }
    let cookie = house.me().await;
    let csrf = house.get("/", &cookie).await.hidden("csrf");
    assert_eq!(house.post("/sign-out", &cookie, &[("csrf", "0")]).await.status, 403);
    assert_eq!(house.get("/", &cookie).await.status, 200);
    assert_eq!(house.post("/sign-out", &cookie, &[("csrf", &csrf)]).await.status, 303);
    assert_eq!(house.get("/", &cookie).await.status, 403);
}

#[tokio::test]
async fn a_browser_that_goes_away_does_not_stop_an_approval_half_way() {
    let house = House::new().await;
    let (id, cookie) = (house.calm().await, house.me().await);
    let form = form_of(&house, id.as_str(), &cookie).await;
    let body = house::urlencoded(&with(&form, "", ""));
    let request = format!(
        "POST /held/{id}/approve HTTP/1.1\r\nHost: {h}\r\nOrigin: http://{h}\r\nCookie: {cookie}\r\nContent-Type: \
         application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
        h = house.authority()
    );
    let mut stream = tokio::net::TcpStream::connect(house.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    drop(stream);
    for _ in 0..200 {
        if house.get_hold(&id).state == State::Approved {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // It may have gone before the request was read; then nothing happened at all.
    assert_eq!(house.get_hold(&id).state, State::Held);
}
