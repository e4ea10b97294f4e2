//! Passkeys over HTTP, with an authenticator made of software: what it may
//! approve, and every lie that it may not.

use super::house::{Answer, House, OTHER, OTHER_PIN, PIN, me, other_account};
use crate::config::ApprovalMode;
use crate::floor::action::Action;
use crate::floor::ledger::Event;
use crate::floor::passkey::software::{Authenticator, PRESENT_AND_VERIFIED};
use crate::floor::passkey::{Assertion, AssertionError, Purpose};
use crate::floor::receipt::{Expect, Receipt, ReceiptError};
use crate::floor::submission::State;
use crate::outbox::HoldId;
use crate::web::passkey;

fn challenge(text: &str) -> [u8; 32] {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).unwrap().try_into().unwrap()
}

pub(super) fn origin(house: &House) -> String {
    format!("http://{}", house.authority())
}

fn json(assertion: &Assertion) -> String {
    serde_json::to_string(assertion).unwrap()
}

/// Registers an authenticator with the PIN, as the page's script does.
async fn register(house: &House, cookie: &str, authenticator: &Authenticator) -> Answer {
    let page = house.get("/approvers", cookie).await;
    let create = challenge(&page.attribute("/approvers/add", "data-challenge"));
    let (client, object) = authenticator.create(&create);
    let hidden = |name| page.hidden_of("/approvers/add", name);
    let (csrf, ticket) = (hidden("csrf"), hidden("ticket"));
    let form = [
        ("csrf", csrf.as_str()),
        ("ticket", &ticket),
        ("name", "desk"),
        ("client_data", &client),
        ("attestation", &object),
        ("pin", PIN),
    ];
    house.post("/approvers/add", cookie, &form).await
}

/// A house that asks for passkeys, signed in, with one that is registered.
pub(super) async fn ready() -> (House, String, Authenticator) {
    let house = House::requiring(ApprovalMode::Passkey).await;
    let (cookie, authenticator) = (house.me().await, Authenticator::new(7, &origin(&house)));
    let answer = register(&house, &cookie, &authenticator).await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    (house, cookie, authenticator)
}

/// One page view of a hold: what the script would sign, and the form.
pub(super) struct Seen {
    pub(super) id: HoldId,
    pub(super) approve: [u8; 32],
    deny: [u8; 32],
    form: Vec<(&'static str, String)>,
}

pub(super) async fn see(house: &House, id: &HoldId, cookie: &str) -> Seen {
    let page = house.get(&format!("/held/{id}"), cookie).await;
    assert_eq!(page.status, 200, "{}", page.body);
    let of = |act: &str| challenge(&page.attribute(&format!("/held/{id}/{act}"), "data-challenge"));
    let form = ["csrf", "hash", "nonce"].map(|name| (name, page.hidden_of(&format!("/held/{id}/approve"), name)));
    Seen { id: id.clone(), approve: of("approve"), deny: of("deny"), form: form.to_vec() }
}

pub(super) async fn decide(house: &House, cookie: &str, seen: &Seen, act: &str, assertion: &Assertion) -> Answer {
    let answer = json(assertion);
    let mut form: Vec<(&str, &str)> = seen.form.iter().map(|(n, v)| (*n, v.as_str())).collect();
    form.push(("assertion", &answer));
    house.post(&format!("/held/{}/{act}", seen.id), cookie, &form).await
}

#[tokio::test]
async fn a_passkey_approves_and_its_receipt_convinces_without_the_gateway() {
    let (house, cookie, mut authenticator) = ready().await;
    let id = house.calm().await;
    let seen = see(&house, &id, &cookie).await;
    let answer = decide(&house, &cookie, &seen, "approve", &authenticator.get(&seen.approve)).await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    assert_eq!(house.get_hold(&id).state, State::Approved);
    let body = house.get(&format!("/held/{id}/receipt"), &cookie).await.body;
    let receipt = Receipt::parse(body.as_bytes()).unwrap();
    let keys = house.services.outbox.verifying_keys();
    receipt.verify(&keys, &Expect::new(Action::SendEmail)).unwrap();
    let registered = passkey::list(house.services.store.as_ref(), &me()).unwrap();
    let approver = [registered[0].key.clone()];
    assert_eq!(receipt.check_approver(&approver), Ok(&approver[0]));
    // The gateway's own key can't make up what the passkey signed.
    let mut stripped = receipt.clone();
    stripped.assertion = None;
    assert_eq!(stripped.verify(&keys, &Expect::new(Action::SendEmail)).unwrap_err(), ReceiptError::Signature);
    assert_eq!(stripped.check_approver(&approver), Err(ReceiptError::Proof(AssertionError::Missing)));
    let mut other = approver.clone();
    other[0].origin = "http://localhost:1".into();
    assert_eq!(receipt.check_approver(&other), Err(ReceiptError::Proof(AssertionError::Origin)));
    let someone = Authenticator::new(9, &origin(&house));
    let mut theirs = approver.clone();
    theirs[0].public_key = {
        let create = Purpose::Create.challenge(b"");
        let (client, object) = someone.create(&create);
        let place = crate::floor::passkey::Place { rp_id: "localhost", origin: &origin(&house) };
        crate::floor::passkey::ApproverKey::register("x", place, &create, &client, &object).unwrap().0.public_key
    };
    assert_eq!(receipt.check_approver(&theirs), Err(ReceiptError::Proof(AssertionError::Signature)));
}

#[tokio::test]
async fn each_negative_twin_of_an_assertion_is_refused_and_nothing_changes() {
    let (house, cookie, good) = ready().await;
    let (id, other) = (house.calm().await, house.calm().await);
    let seen = see(&house, &id, &cookie).await;
    let older = see(&house, &id, &cookie).await;
    let elsewhere = see(&house, &other, &cookie).await;
    let before = house.fingerprint();
    let port = house.address.port();
    let lied = |lie: &dyn Fn(&mut Authenticator)| {
        let mut liar = good.clone();
        lie(&mut liar);
        liar.get(&seen.approve)
    };
    let mut stranger = Authenticator::new(8, &origin(&house));
    let mut forged = Authenticator::new(8, &origin(&house));
    forged.id.clone_from(&good.id);
    let twins: [(&str, Assertion); 15] = [
        ("another hold's", good.clone().get(&elsewhere.approve)),
        ("an older page view's", good.clone().get(&older.approve)),
        ("a denial's", good.clone().get(&seen.deny)),
        ("a challenge of nothing", good.clone().get(&[0; 32])),
        ("without user verification", lied(&|a| a.flags = PRESENT_AND_VERIFIED & 1)),
        ("without user presence", lied(&|a| a.flags = PRESENT_AND_VERIFIED & 4)),
        ("another port", lied(&|a| a.origin = format!("http://localhost:{}", port.wrapping_add(1)))),
        ("another scheme", lied(&|a| a.origin = format!("https://localhost:{port}"))),
        ("another origin", lied(&|a| a.origin = "http://evil.example".into())),
        ("in another site's frame", lied(&|a| a.more = ",\"crossOrigin\":true")),
        ("under another site", lied(&|a| a.more = ",\"topOrigin\":\"http://evil.example\"")),
        ("another relying party", lied(&|a| a.rp_id = "evil.example".into())),
        ("a registration's", lied(&|a| a.kind = "webauthn.create")),
        ("a passkey that isn't registered", stranger.get(&seen.approve)),
        ("another key under its id", forged.get(&seen.approve)),
    ];
    for (what, assertion) in &twins {
        let answer = decide(&house, &cookie, &seen, "approve", assertion).await;
        assert_eq!(answer.status, 403, "{what}: {}", answer.body);
        assert!(answer.body.contains("Not with this passkey"), "{what}: {}", answer.body);
        assert_eq!(house.fingerprint(), before, "{what}");
    }
    for answer in ["", "{}", "null", "[]", &"x".repeat(40_000)] {
        let mut form: Vec<(&str, &str)> = seen.form.iter().map(|(n, v)| (*n, v.as_str())).collect();
        form.push(("assertion", answer));
        assert_eq!(house.post(&format!("/held/{id}/approve"), &cookie, &form).await.status, 403, "{answer:.9}");
    }
    let mut pin: Vec<(&str, &str)> = seen.form.iter().map(|(n, v)| (*n, v.as_str())).collect();
    pin.push(("pin", PIN));
    let answer = house.post(&format!("/held/{id}/approve"), &cookie, &pin).await;
    assert!(answer.status == 403 && answer.body.contains("Another proof is needed"), "the PIN: {}", answer.body);
    let mut both = pin.clone();
    let right = json(&good.clone().get(&seen.approve));
    both.push(("assertion", &right));
    assert_eq!(house.post(&format!("/held/{id}/approve"), &cookie, &both).await.status, 400, "both");
    assert_eq!(house.fingerprint(), before);
    let answer = decide(&house, &cookie, &seen, "approve", &good.clone().get(&seen.approve)).await;
    assert_eq!(answer.status, 303, "and the right one works: {}", answer.body);
}

#[tokio::test]
async fn an_assertion_is_taken_once_and_a_counter_that_goes_back_is_refused() {
    let (house, cookie, mut authenticator) = ready().await;
    authenticator.counter = 5;
    let (one, two) = (house.calm().await, house.calm().await);
    let seen = see(&house, &one, &cookie).await;
    let assertion = authenticator.get(&seen.approve);
    // Spent on a form that fails afterwards: its counter is gone all the same.
    let mut broken = see(&house, &one, &cookie).await;
    broken.form.clone_from(&seen.form);
    broken.form[1].1 = "0".repeat(64);
    assert_eq!(decide(&house, &cookie, &broken, "approve", &assertion).await.status, 409);
    let replayed = decide(&house, &cookie, &seen, "approve", &assertion).await;
    assert!(replayed.status == 403 && replayed.body.contains("counter went back"), "{}", replayed.body);
    let mut copy = authenticator.clone();
    copy.counter = 3;
    let answer = decide(&house, &cookie, &seen, "approve", &copy.get(&seen.approve)).await;
    assert!(answer.status == 403 && answer.body.contains("counter went back"));
    assert_eq!(house.get_hold(&one).state, State::Held);
    let again = authenticator.get(&seen.approve);
    assert_eq!(decide(&house, &cookie, &seen, "approve", &again).await.status, 303);
    assert_eq!(decide(&house, &cookie, &seen, "approve", &again).await.status, 409, "replayed after the fact");
    let other = see(&house, &two, &cookie).await;
    assert_eq!(decide(&house, &cookie, &other, "approve", &again).await.status, 403, "on another hold");
    assert_eq!(house.get_hold(&two).state, State::Held);
}

#[tokio::test]
async fn a_passkey_that_never_counts_is_still_taken_once_for_each_page() {
    let house = House::requiring(ApprovalMode::Passkey).await;
    let cookie = house.me().await;
    let mut authenticator = Authenticator::new(7, &origin(&house));
    authenticator.counter = 0;
    assert_eq!(register(&house, &cookie, &authenticator).await.status, 303);
    let id = house.calm().await;
    let seen = see(&house, &id, &cookie).await;
    let assertion = authenticator.get(&seen.approve);
    assert_eq!(decide(&house, &cookie, &seen, "approve", &assertion).await.status, 303);
    assert_eq!(decide(&house, &cookie, &seen, "approve", &assertion).await.status, 409);
}

#[tokio::test]
async fn denying_and_revoking_take_an_answer_of_their_own() {
    let (house, cookie, mut authenticator) = ready().await;
    let (id, other) = (house.calm().await, house.calm().await);
    let mut seen = see(&house, &id, &cookie).await;
    seen.form.push(("reason", "wrong person".to_owned()));
    let approving = authenticator.get(&seen.approve);
    assert_eq!(decide(&house, &cookie, &seen, "deny", &approving).await.status, 403);
    let denying = authenticator.get(&seen.deny);
    assert_eq!(decide(&house, &cookie, &seen, "deny", &denying).await.status, 303);
    assert_eq!(house.get_hold(&id).detail.as_deref(), Some("wrong person"));
    let page = house.get(&format!("/held/{other}"), &cookie).await;
    let path = format!("/keys/{}/deny-and-revoke", super::agent().as_str());
    let (ticket, csrf) = (page.hidden_of(&path, "ticket"), page.hidden("csrf"));
    let answer = json(&authenticator.get(&challenge(&page.attribute(&path, "data-challenge"))));
    let form = [("csrf", csrf.as_str()), ("ticket", &ticket), ("assertion", &answer)];
    let wrong = json(&denying);
    let refused = house.post(&path, &cookie, &[("csrf", csrf.as_str()), ("ticket", "x"), ("assertion", &wrong)]).await;
    assert_eq!(refused.status, 409);
    assert_eq!(house.post(&path, &cookie, &form).await.status, 303);
    assert_eq!(house.get_hold(&other).state, State::Denied);
    assert_eq!(house.post(&path, &cookie, &form).await.status, 409, "a ticket is good once");
}

#[tokio::test]
async fn registering_takes_a_proof_and_voids_every_page_that_was_shown() {
    let (house, cookie, mut first) = ready().await;
    let id = house.calm().await;
    let stale = see(&house, &id, &cookie).await;
    let page = house.get("/approvers", &cookie).await;
    assert!(page.body.contains("was added (vouched for by the PIN)"), "{}", page.body);
    let create = challenge(&page.attribute("/approvers/add", "data-challenge"));
    let second = Authenticator::new(9, &origin(&house));
    let (client, object) = second.create(&create);
    let made: [u8; 32] = {
        use base64::Engine;
        use sha2::Digest;
        let octets = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(&object).unwrap();
        sha2::Sha256::digest(octets).into()
    };
    let vouched = |create: &[u8; 32]| Purpose::Add.challenge(&[&create[..], &made].concat());
    let ticket = page.hidden_of("/approvers/add", "ticket");
    let csrf = page.hidden("csrf");
    let add = async |ticket: &str, proof: (&str, &str)| {
        let form = [
            ("csrf", csrf.as_str()),
            ("ticket", ticket),
            ("name", "phone"),
            ("client_data", client.as_str()),
            ("attestation", object.as_str()),
            proof,
        ];
        house.post("/approvers/add", &cookie, &form).await
    };
    let fresh = async || house.get("/approvers", &cookie).await;
    let before = house.fingerprint();
    let ledger = house.services.outbox.whole_ledger().unwrap().len();
    // A ticket is spent by each try, so the registration itself is made anew each time.
    assert_eq!(add("x", ("pin", PIN)).await.status, 409, "no ticket");
    let again = fresh().await;
    let other_ticket = again.hidden_of("/approvers/add", "ticket");
    assert_eq!(add(&other_ticket, ("pin", PIN)).await.status, 403, "a registration for another ticket");
    let itself = json(&second.clone().get(&vouched(&create)));
    let page_ticket = ticket.clone();
    assert_eq!(add(&page_ticket, ("assertion", &itself)).await.status, 403, "it can't vouch for itself");
    assert_eq!(house.services.outbox.whole_ledger().unwrap().len(), ledger);
    assert_eq!(house.fingerprint(), before);
    // And properly, vouched for by the first one.
    let page = fresh().await;
    let create = challenge(&page.attribute("/approvers/add", "data-challenge"));
    let (client, object) = second.create(&create);
    let made: [u8; 32] = {
        use base64::Engine;
        use sha2::Digest;
        sha2::Sha256::digest(base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(&object).unwrap()).into()
    };
    let proof = json(&first.get(&Purpose::Add.challenge(&[&create[..], &made].concat())));
    let (csrf, ticket) = (page.hidden("csrf"), page.hidden_of("/approvers/add", "ticket"));
    let form = [
        ("csrf", csrf.as_str()),
        ("ticket", &ticket),
        ("name", "phone"),
        ("client_data", &client),
        ("attestation", &object),
        ("assertion", &proof),
    ];
    let answer = house.post("/approvers/add", &cookie, &form).await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    let events: Vec<Event> = house.services.outbox.whole_ledger().unwrap().into_iter().map(|e| e.event).collect();
    let proofs: Vec<&str> = events
        .iter()
        .filter_map(|e| if let Event::PasskeyAdded { proof, .. } = e { Some(proof.as_str()) } else { None })
        .collect();
    assert_eq!(proofs, ["pin", "passkey"]);
    // What was shown before can't be approved any more; shown anew it can, by either.
    let old = decide(&house, &cookie, &stale, "approve", &first.get(&stale.approve)).await;
    assert!(old.status == 409 && old.body.contains("The page is too old"), "{}", old.body);
    let page = house.get("/", &cookie).await;
    assert!(page.body.contains("vouched for by a registered passkey"), "the change stands on the list: {}", page.body);
    let seen = see(&house, &id, &cookie).await;
    assert!(house.get(&format!("/held/{id}"), &cookie).await.body.contains("Who approves was changed"));
    let answer = decide(&house, &cookie, &seen, "approve", &second.clone().get(&seen.approve)).await;
    assert_eq!(answer.status, 303, "{}", answer.body);
}

#[tokio::test]
async fn removing_ends_its_sign_ins_and_voids_pages_and_needs_a_proof() {
    let (house, cookie, mut authenticator) = ready().await;
    let sign_in = house.get("/sign-in", "").await;
    let answer = json(&authenticator.get(&challenge(&sign_in.attribute("/sign-in/passkey", "data-challenge"))));
    let ticket = sign_in.hidden_of("/sign-in/passkey", "ticket");
    let form = [("ticket", ticket.as_str()), ("assertion", &answer), ("next", "")];
    let signed_in = house.post("/sign-in/passkey", "", &form).await;
    assert_eq!(signed_in.status, 303, "{}", signed_in.body);
    let by_passkey = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(house.get("/", &by_passkey).await.status, 200);
    assert_eq!(house.post("/sign-in/passkey", "", &form).await.status, 409, "once");
    let id = house.calm().await;
    let stale = see(&house, &id, &cookie).await;
    let page = house.get("/approvers", &cookie).await;
    let hidden = |name| page.hidden_of("/approvers/remove", name);
    let (csrf, ticket, credential) = (hidden("csrf"), hidden("ticket"), hidden("credential"));
    let base = [("csrf", csrf.as_str()), ("ticket", &ticket), ("credential", &credential)];
    let without = house.post("/approvers/remove", &cookie, &base).await;
    assert_eq!(without.status, 400);
    let form = [base[0], base[1], base[2], ("pin", PIN)];
    assert_eq!(house.post("/approvers/remove", &cookie, &form).await.status, 303);
    assert_eq!(house.get("/", &by_passkey).await.status, 403, "its sign-in ended");
    assert_eq!(house.get("/", &cookie).await.status, 200, "the PIN's did not");
    let old = decide(&house, &cookie, &stale, "approve", &authenticator.get(&stale.approve)).await;
    assert_eq!(old.status, 409, "{}", old.body);
    let seen = see(&house, &id, &cookie).await;
    let gone = decide(&house, &cookie, &seen, "approve", &authenticator.get(&seen.approve)).await;
    assert!(gone.status == 403 && gone.body.contains("not registered"), "{}", gone.body);
    assert!(house.get("/", &cookie).await.body.contains("nothing can be approved"));
}

#[tokio::test]
async fn a_code_of_the_console_registers_one_passkey() {
    let house = House::requiring(ApprovalMode::Passkey).await;
    let code = passkey::make_code(house.services.store.as_ref(), &me()).await.unwrap();
    let authenticator = Authenticator::new(7, &origin(&house));
    let enrol = async |account: &str, code: &str| {
        let page = house.get("/enrol", "").await;
        let create = challenge(&page.attribute("/enrol", "data-challenge"));
        let (client, object) = authenticator.create(&create);
        let ticket = page.hidden("ticket");
        let form = [
            ("account", account),
            ("code", code),
            ("name", "desk"),
            ("ticket", &ticket),
            ("client_data", &client),
            ("attestation", &object),
        ];
        house.post("/enrol", "", &form).await
    };
    assert_eq!(enrol(me().as_str(), "2222-2222-2222-2222").await.status, 403);
    assert_eq!(enrol("nobody@example.org", &code).await.status, 403);
    assert_eq!(enrol(OTHER, &code).await.status, 403, "of another account");
    let done = enrol(me().as_str(), &code).await;
    assert_eq!((done.status, done.header("location")), (303, Some("/sign-in")), "{}", done.body);
    assert_eq!(enrol(me().as_str(), &code).await.status, 403, "once");
    assert_eq!(passkey::list(house.services.store.as_ref(), &me()).unwrap().len(), 1);
    assert!(passkey::list(house.services.store.as_ref(), &other_account()).unwrap().is_empty());
}

#[tokio::test]
async fn a_passkey_is_of_one_account() {
    let (house, _, mut authenticator) = ready().await;
    let cookie = house.sign_in(OTHER, OTHER_PIN).await;
    let id = house.hold(&other_account(), &["bo@example.com"], super::CALM.as_bytes()).await;
    let page = house.get(&format!("/held/{id}"), &cookie).await;
    assert_eq!(page.attribute(&format!("/held/{id}/approve"), "data-allow"), "");
    let seen = see(&house, &id, &cookie).await;
    let answer = decide(&house, &cookie, &seen, "approve", &authenticator.get(&seen.approve)).await;
    assert!(answer.status == 403 && answer.body.contains("not registered"), "{}", answer.body);
}

#[tokio::test]
async fn only_pages_that_ask_for_a_passkey_may_run_the_one_script() {
    let (house, cookie, _) = ready().await;
    let id = house.calm().await;
    let own = format!("script-src {}/passkey.js; require-trusted-types-for 'script'", origin(&house));
    for path in ["/approvers", "/sign-in", "/enrol", &format!("/held/{id}")] {
        let answer = house.get(path, &cookie).await;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.ends_with(&own) && policy.starts_with("default-src 'none'"), "{path}: {policy}");
        assert_eq!(answer.body.matches("<script").count(), 1, "{path}");
        assert!(answer.body.contains("<script src=\"/passkey.js\" defer></script>"), "{path}");
    }
    for path in ["/", "/history", "/batch", "/passkey.js", "/nowhere", &format!("/held/{id}/raw")] {
        let answer = house.get(path, &cookie).await;
        assert!(!answer.header("content-security-policy").unwrap().contains("script-src"), "{path}");
    }
    let script = house.get("/passkey.js", "").await;
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert!(!script.body.contains("innerHTML") && !script.body.contains("eval(") && !script.body.contains("fetch("));
}

#[tokio::test]
async fn setting_the_pin_voids_pages_and_stands_there_for_seven_days() {
    let house = House::new().await;
    let (id, cookie) = (house.calm().await, house.me().await);
    let form = super::form_of(&house, id.as_str(), &cookie).await;
    let fresh = crate::web::pin::prepare("998877").await.unwrap();
    let event = Event::PinSet { account: me().to_string() };
    let set =
        move |w: &mut dyn crate::store::Writer| -> Result<(), crate::outbox::HoldError> { Ok(fresh.write(w, &me())?) };
    house.services.outbox.change_approver(&me(), event, set).await.unwrap();
    assert_eq!(house.get("/", &cookie).await.status, 403, "the sign-in ended");
    let cookie = house.sign_in(me().as_str(), "998877").await;
    let csrf = house.get("/", &cookie).await.hidden("csrf");
    let mut form = super::with(&form, "pin", "998877");
    form.iter_mut().filter(|(n, _)| *n == "csrf").for_each(|(_, v)| *v = &csrf);
    let old = house.post(&format!("/held/{id}/approve"), &cookie, &form).await;
    assert!(old.status == 409 && old.body.contains("The page is too old"), "{}", old.body);
    assert!(house.get("/", &cookie).await.body.contains("The PIN was set at the console"));
}
