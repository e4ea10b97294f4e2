//! Several messages with one proof.

use super::house::{Answer, CALM, House, PIN, me};
use crate::config::ApprovalMode;
use crate::floor::action::Action;
use crate::floor::passkey::{ApproverKey, Place, Purpose, software::Authenticator};
use crate::floor::receipt::Expect;
use crate::floor::submission::State;
use crate::outbox::HoldId;
use crate::perceive::CorrespondentRecord;
use crate::store::{self, Store, StoreError, Table};
use crate::web::passkey::{self, Passkey};

/// Makes bo@example.com somebody to whom the person wrote before.
async fn know_bo(house: &House) {
    let key = crate::web::facts::correspondent_key(&me(), "bo@example.com");
    let record = CorrespondentRecord { sent_to: 1, ..CorrespondentRecord::new("bo@example.com") };
    let store: &dyn Store = house.services.store.as_ref();
    store::write(store, move |w| -> Result<(), StoreError> { store::put_json(w, Table::Correspondent, &key, &record) })
        .await
        .unwrap();
}

fn items(page: &Answer) -> Vec<String> {
    page.body.split("name=\"item\" value=\"").skip(1).map(|r| r.split('"').next().unwrap().to_owned()).collect()
}

async fn show(house: &House, cookie: &str, ids: &[&HoldId]) -> Answer {
    let query: Vec<String> = ids.iter().map(|id| format!("id={id}")).collect();
    house.get(&format!("/batch?{}", query.join("&")), cookie).await
}

#[tokio::test]
async fn calm_messages_are_approved_together_each_under_its_own_hash() {
    let house = House::new().await;
    know_bo(&house).await;
    let (one, two, cookie) = (house.calm().await, house.calm().await, house.me().await);
    let choice = house.get("/batch", &cookie).await;
    assert!(choice.body.contains(one.as_str()) && choice.body.contains(two.as_str()), "{}", choice.body);
    let page = show(&house, &cookie, &[&one, &two]).await;
    assert_eq!(page.body.matches("Hello Bo.").count(), 2, "each in full");
    let (items, csrf) = (items(&page), page.hidden("csrf"));
    let mut form: Vec<(&str, &str)> = items.iter().map(|i| ("item", i.as_str())).collect();
    form.push(("csrf", &csrf));
    let before = house.fingerprint();
    let wrong = [&form[..], &[("pin", "000000")]].concat();
    assert_eq!(house.post("/batch", &cookie, &wrong).await.status, 403);
    assert_eq!(house.post("/batch", &cookie, &form).await.status, 400, "no proof");
    let twice = [&form[..], &[("item", items[0].as_str()), ("pin", PIN)]].concat();
    assert_eq!(house.post("/batch", &cookie, &twice).await.status, 400);
    let swapped = items[0].replace(one.as_str(), two.as_str());
    let crossed = [("item", swapped.as_str()), ("csrf", &csrf), ("pin", PIN)];
    if swapped != items[0] {
        assert_eq!(house.post("/batch", &cookie, &crossed).await.status, 409);
    }
    assert_eq!(house.fingerprint(), before);
    let right = [&form[..], &[("pin", PIN)]].concat();
    let done = house.post("/batch", &cookie, &right).await;
    assert_eq!(done.body.matches("approved, being sent").count(), 2, "{}", done.body);
    let receipts = [&one, &two].map(|id| house.services.outbox.receipt(id).unwrap().unwrap());
    assert_ne!(receipts[0].payload_hash, receipts[1].payload_hash);
    assert!([one, two].iter().all(|id| house.get_hold(id).state == State::Approved));
}

#[tokio::test]
async fn what_needs_reading_by_itself_is_in_no_batch() {
    let house = House::new().await;
    know_bo(&house).await;
    let cookie = house.me().await;
    let calm = house.calm().await;
    let attachment = CALM.replace("\r\n\r\nHello", "\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\nHello");
    let hidden = CALM.replace("Hello", "Hel\u{200b}lo");
    let odd = [
        house.hold(&me(), &["new@example.com"], CALM.replace("bo@", "new@").as_bytes()).await,
        house.hold(&me(), &["bo@example.com", "secret@example.com"], CALM.as_bytes()).await,
        house.hold(&me(), &["bo@example.com"], attachment.as_bytes()).await,
        house.hold(&me(), &["bo@example.com"], hidden.as_bytes()).await,
    ];
    let choice = house.get("/batch", &cookie).await;
    assert!(choice.body.contains(calm.as_str()));
    for id in &odd {
        assert!(!choice.body.contains(id.as_str()), "{id}");
        assert_eq!(show(&house, &cookie, &[&calm, id]).await.status, 409);
        // Nor by a form that was put together elsewhere.
        let form = super::form_of(&house, id.as_str(), &cookie).await;
        let of = |name: &str| form.iter().find(|(n, _)| *n == name).unwrap().1.clone();
        let item = format!("{id}:{}:{}", of("nonce"), of("hash"));
        let post = [("item", item.as_str()), ("csrf", &of("csrf")), ("pin", PIN)];
        assert_eq!(house.post("/batch", &cookie, &post).await.status, 409);
        assert_eq!(house.get_hold(id).state, State::Held);
    }
}

#[tokio::test]
async fn one_answer_of_a_passkey_is_for_exactly_the_messages_of_the_batch() {
    let house = House::requiring(ApprovalMode::Passkey).await;
    know_bo(&house).await;
    let origin = format!("http://{}", house.authority());
    let mut authenticator = Authenticator::new(7, &origin);
    let create = Purpose::Create.challenge(b"");
    let (client, object) = authenticator.create(&create);
    let place = Place { rp_id: "localhost", origin: &origin };
    let (key, counter) = ApproverKey::register(me().as_str(), place, &create, &client, &object).unwrap();
    let passkey = Passkey { name: "desk".into(), key: key.clone(), counter, added: 1, used: None };
    passkey::add(&house.services.outbox, &me(), passkey, "code").await.unwrap();
    let (one, two, three) = (house.calm().await, house.calm().await, house.calm().await);
    let cookie = house.me().await;
    let page = show(&house, &cookie, &[&one, &two, &three]).await;
    let (items, csrf) = (items(&page), page.hidden("csrf"));
    let challenge: [u8; 32] = {
        use base64::Engine;
        let text = page.attribute("/batch", "data-challenge");
        base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).unwrap().try_into().unwrap()
    };
    let post = async |items: &[String], answer: &str| {
        let mut form: Vec<(&str, &str)> = items.iter().map(|i| ("item", i.as_str())).collect();
        form.extend([("csrf", csrf.as_str()), ("assertion", answer)]);
        house.post("/batch", &cookie, &form).await
    };
    let answer = serde_json::to_string(&authenticator.clone().get(&challenge)).unwrap();
    assert_eq!(post(&items[..2], &answer).await.status, 403, "one fewer is another batch");
    let answer = serde_json::to_string(&authenticator.get(&challenge)).unwrap();
    let done = post(&items, &answer).await;
    assert_eq!(done.body.matches("approved, being sent").count(), 3, "{}", done.body);
    for id in [&one, &two, &three] {
        let receipt = house.services.outbox.receipt(id).unwrap().unwrap();
        receipt.verify(&house.services.outbox.verifying_keys(), &Expect::new(Action::SendEmail)).unwrap();
        assert!(receipt.check_approver(std::slice::from_ref(&key)).is_ok());
        assert_eq!(receipt.assertion.unwrap().batch.len(), 3);
    }
}
