//! A person decides.

use tollgate::account::demo::{ADDRESS, PIN};

use crate::common::eventually;
use crate::driver::Chromium;
use crate::{CALM, ODD, gateway, origin, submit};

/// WebDriver's code of the Tab and Enter keys.
const TAB: char = '\u{e004}';
const ENTER: char = '\u{e007}';

#[test]
fn a_person_looks_expands_and_approves_by_pin() {
    let gateway = gateway("pin");
    let id = submit(&gateway, &["bo@example.com", "secret@example.net"], ODD);
    let chromium = Chromium::start();
    chromium.sign_in(&origin(&gateway), ADDRESS, PIN);
    chromium.wait_for("1 message waits for you");
    chromium.click("a.hold");
    chromium.wait_for("Who gets it");
    for said in [
        "Also sent to secret@example.net, whom no header field names",
        "new: never written to",
        "outside",
        "U+202E",
        "hides the address",
        "Answers go to else@example.net",
        "What it answers",
        "not seen here",
        "the plain text and the HTML differ",
    ] {
        chromium.wait_for(said);
    }
    let shut = "return document.querySelector('dl.fields').checkVisibility()";
    assert_eq!(chromium.run(shut), false);
    chromium.click("section[aria-labelledby=fields] summary");
    assert_eq!(chromium.run(shut), true, "every header field, expanded");
    chromium.type_into("#pin-approve", "000000");
    chromium.click(&format!("form[action='/held/{id}/approve'] button"));
    chromium.wait_for("Wrong PIN");
    assert_eq!(gateway.hold(&id)["state"], "held");
    chromium.click("a.button");
    chromium.type_into("#pin-approve", PIN);
    chromium.click(&format!("form[action='/held/{id}/approve'] button"));
    chromium.wait_for("Receipt (JSON)");
    gateway.wait_for_state(&id, "sent");
    let receipt = gateway.json(&["receipt", "export", &id]);
    assert_eq!(receipt["payload"]["method"], "pin");
}

#[test]
fn the_keyboard_alone_is_enough_and_a_reason_reaches_the_hold() {
    let gateway = gateway("pin");
    let id = submit(&gateway, &["bo@example.com"], CALM);
    let chromium = Chromium::start();
    chromium.sign_in(&origin(&gateway), ADDRESS, PIN);
    chromium.open(&format!("{}/held/{id}", origin(&gateway)));
    let focused = |selector: &str| {
        let script = format!("return document.activeElement && document.activeElement.matches({selector:?})");
        chromium.run(&script) == true
    };
    chromium.press(TAB);
    assert!(focused("a.skip"), "the first stop leads past the navigation");
    let mut order = Vec::new();
    for _ in 0..40 {
        chromium.press(TAB);
        let name = "const e = document.activeElement; return e.id || e.textContent.trim()";
        order.push(chromium.run(name).as_str().unwrap_or_default().to_owned());
        if focused("#reason") {
            break;
        }
    }
    let at = |name: &str| order.iter().position(|n| n == name).unwrap_or_else(|| panic!("no {name} in {order:?}"));
    assert!(at("Raw source") < at("pin-approve"), "reading comes before deciding: {order:?}");
    assert!(at("pin-approve") < at("Approve and send") && at("Approve and send") < at("reason"), "{order:?}");
    chromium.type_into("#reason", "wrong date");
    chromium.press(TAB);
    assert!(focused("#pin-deny"));
    chromium.type_into("#pin-deny", PIN);
    chromium.press(ENTER);
    chromium.wait_for("It was denied. Nothing was sent.");
    let hold = gateway.hold(&id);
    assert_eq!((hold["state"].as_str(), hold["detail"].as_str()), (Some("denied"), Some("wrong date")));
}

#[test]
fn pages_have_names_headings_landmarks_and_contrast() {
    let gateway = gateway("pin");
    let id = submit(&gateway, &["bo@example.com", "secret@example.net"], ODD);
    let chromium = Chromium::start();
    chromium.sign_in(&origin(&gateway), ADDRESS, PIN);
    for dark in [false, true] {
        for (size, mobile) in [((1280, 900), false), ((390, 844), true)] {
            chromium.device(size, mobile, dark);
            for path in ["/", "/history", "/approvers", "/batch", &format!("/held/{id}")] {
                chromium.open(&format!("{}{path}", origin(&gateway)));
                let faults = chromium.run(include_str!("accessible.js"));
                assert_eq!(faults, serde_json::json!([]), "{path} {size:?} dark: {dark}");
            }
        }
    }
}

#[test]
fn a_passkey_is_registered_with_a_code_signs_in_and_approves() {
    let gateway = gateway("passkey");
    let chromium = Chromium::start();
    let authenticator = chromium.authenticator();
    let code = gateway.json(&["approver", "code"])["code"].as_str().unwrap().to_owned();
    chromium.open(&format!("{}/enrol", origin(&gateway)));
    chromium.type_into("#code", &code);
    chromium.type_into("#name", "This computer");
    chromium.click("button");
    eventually("the sign-in", || (chromium.url() == format!("{}/sign-in", origin(&gateway))).then_some(()));
    chromium.click("form[action='/sign-in/passkey'] button");
    chromium.wait_for("Nothing waits");
    chromium.wait_for("was added (vouched for by a code of the console)");
    let key = gateway.tollgate(&["approver", "export"]).ok().text();
    let key = gateway.scratch.file("approver.json", key);

    let id = submit(&gateway, &["bo@example.com"], CALM);
    let page = format!("{}/held/{id}", origin(&gateway));
    let approve = format!("form[action='/held/{id}/approve'] button");
    // Without its person the device signs nothing for us.
    chromium.verifies(&authenticator, false);
    chromium.open(&page);
    chromium.click(&approve);
    chromium.wait_for("did not verify you. Nothing was sent.");
    assert_eq!(gateway.hold(&id)["state"], "held");
    // And what a page gets that does not insist on it is refused.
    let asked = include_str!("unverified.js").replace("@ACTION@", &format!("/held/{id}/approve"));
    assert_eq!(chromium.run_async(&asked), 4, "the form's fields");
    chromium.wait_for("the passkey did not verify its user");
    assert_eq!(gateway.hold(&id)["state"], "held");
    chromium.verifies(&authenticator, true);
    chromium.open(&page);
    chromium.click(&approve);
    chromium.wait_for("Receipt (JSON)");
    gateway.wait_for_state(&id, "sent");

    // The receipt convinces somebody who has only public keys.
    let receipt = gateway.scratch.file("receipt.json", gateway.tollgate(&["receipt", "export", &id]).ok().stdout);
    let message = gateway.scratch.file("message.eml", CALM);
    let identity = gateway.state_dir().join("identity.pub");
    let path = |p: &std::path::Path| p.to_str().unwrap().to_owned();
    let (receipt, message, identity, key) = (path(&receipt), path(&message), path(&identity), path(&key));
    let verify = ["receipt", "verify", &receipt, "--message", &message, "--key", &identity];
    let alone = gateway.tollgate(&verify).ok().text();
    assert!(alone.contains("the gateway's word only"), "{alone}");
    let with = gateway.tollgate(&[&verify[..], &["--approver-key", &key]].concat()).ok().text();
    assert!(with.contains("the approver's own passkey signed this payload"), "{with}");
    let mut stranger: serde_json::Value = serde_json::from_slice(&std::fs::read(&key).unwrap()).unwrap();
    stranger["origin"] = "http://localhost:1".into();
    let stranger = path(&gateway.scratch.file("stranger.json", stranger.to_string()));
    gateway.tollgate(&[&verify[..], &["--approver-key", &stranger]].concat()).code(13);
}

#[test]
fn the_notice_s_link_alone_approves_where_that_was_chosen() {
    use crate::common::imap::Imap;
    let gateway = gateway("link");
    let id = submit(&gateway, &["bo@example.com"], CALM);
    let mut person = Imap::login(gateway.imap, ADDRESS, tollgate::account::demo::PERSON_KEY);
    let link = eventually("the notice", || {
        person.ok("EXAMINE INBOX");
        let found = person.search("SUBJECT \"Approval needed\"");
        let body = String::from_utf8(person.body(*found.first()?)).ok()?;
        body.split_whitespace().find(|w| w.contains("/link/")).map(str::to_owned)
    });
    assert!(link.starts_with(&format!("{}/link/{id}/", origin(&gateway))), "{link}");
    let token = link.rsplit('/').next().unwrap().to_owned();
    let chromium = Chromium::start();
    chromium.open(&link);
    chromium.wait_for("Saturday at three");
    chromium.open(&link);
    assert_eq!(gateway.hold(&id)["state"], "held", "looking decides nothing");
    chromium.click("form[action$='/approve'] button");
    chromium.wait_for("Decided by");
    gateway.wait_for_state(&id, "sent");
    assert_eq!(gateway.json(&["receipt", "export", &id])["payload"]["method"], "link");
    assert!(!gateway.log().contains(&token), "the link is in the log");
    // No octet of it is in an agent's view.
    let mut agent = Imap::login(gateway.imap, ADDRESS, tollgate::account::demo::AGENT_KEY);
    agent.ok("EXAMINE INBOX");
    assert!(agent.search("SUBJECT \"Approval needed\"").is_empty());
}
