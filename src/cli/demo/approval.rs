//! Steps about the pages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::Method;

use super::Seen;
use super::outbound::AGENT_MAIL;
use super::stage::{Stage, must, why};
use crate::account::demo;
use crate::demo::client::http::Page;
use crate::floor::submission::State;

const OK: u16 = 200;
const SEE_OTHER: u16 = 303;
const FORBIDDEN: u16 = 403;
const CONFLICT: u16 = 409;

/// With its key in every place where a credential can stand, and with
/// everything that it can read, an agent gets 403 from every page.
pub(super) async fn agent_gets_403(stage: &Stage) -> Seen {
    let id = stage.hold_id()?.to_string();
    let key = demo::AGENT_KEY;
    let basic = format!("Basic {}", BASE64.encode(format!("{}:{key}", demo::ADDRESS)));
    let bearer = format!("Bearer {key}");
    let cookie = format!("tollgate_session={key}");
    let looks_right = format!("tollgate_session={}", "0123456789abcdef".repeat(4));
    let credentials: [&[(&str, &str)]; 5] = [
        &[],
        &[("authorization", &basic)],
        &[("authorization", &bearer)],
        &[("cookie", &cookie)],
        &[("cookie", &looks_right), ("x-forwarded-for", "127.0.0.1"), ("x-forwarded-user", demo::ADDRESS)],
    ];
    let pages = ["/", "/history", "/held/ID", "/held/ID?key=KEY", "/held/ID/raw", "/held/ID/receipt"];
    let acts = ["/held/ID/approve", "/held/ID/deny", "/keys/KEY/deny-and-revoke", "/sign-out"];
    let path = |template: &str| template.replace("ID", &id).replace("KEY", key);
    let hash = sha256_hex(AGENT_MAIL);
    let form = [("pin", key), ("csrf", key), ("hash", hash.as_str()), ("nonce", id.as_str())];
    let mut tried = 0;
    for headers in credentials {
        for page in pages {
            forbidden(&stage.web.get(&path(page), headers).await.map_err(why)?, page)?;
        }
        for act in acts {
            forbidden(&stage.web.post(&path(act), headers, &form).await.map_err(why)?, act)?;
        }
        tried += pages.len() + acts.len();
    }
    // Once only: wrong PINs are counted, and the approver needs the page next.
    let sign_in = [("account", demo::ADDRESS), ("pin", key)];
    forbidden(&stage.web.post("/sign-in", &[], &sign_in).await.map_err(why)?, "/sign-in")?;
    tried += 1;
    still_held(stage)?;
    Ok(format!("{tried} requests with its key, the hold's id and the message's hash: each 403"))
}

fn forbidden(page: &Page, what: &str) -> Result<(), String> {
    must(page.status == FORBIDDEN, || format!("{what} answered {}", page.status))?;
    must(page.cookie().is_none(), || format!("{what} set a cookie"))?;
    must(!page.text().contains("oak tables"), || format!("{what} shows the message"))
}

fn still_held(stage: &Stage) -> Result<(), String> {
    let state = stage.hold()?.state;
    must(state == State::Held, || format!("the hold is {state:?} now"))
}

fn sha256_hex(octets: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(octets).iter().map(|b| format!("{b:02x}")).collect()
}

/// The approver signs in; then every GET and HEAD leaves hold, ledger and
/// provider as they were.
pub(super) async fn gets_change_nothing(stage: &mut Stage) -> Seen {
    let form = [("account", demo::ADDRESS), ("pin", demo::PIN)];
    let page = stage.web.post("/sign-in", &[], &form).await.map_err(why)?;
    must(page.status == SEE_OTHER, || format!("sign-in answered {}", page.status))?;
    let cookie = page.cookie().ok_or("sign-in set no cookie")?;
    stage.cookie = Some(cookie.clone());

    let id = stage.hold_id()?.to_string();
    let headers = [("cookie", cookie.as_str())];
    let shown = stage.web.get(&format!("/held/{id}"), &headers).await.map_err(why)?;
    must(shown.status == OK, || format!("the page answered {}", shown.status))?;
    let [csrf, hash, nonce] = inputs(&shown)?;
    let query = format!("pin={}&csrf={csrf}&hash={hash}&nonce={nonce}", demo::PIN);
    let head = stage.core().outbox.ledger_head().map_err(why)?;
    let accepted = stage.provider()?.accepted().len();
    let paths = ["/", "/history", "/held/ID", "/held/ID/raw", "/held/ID/approve", "/held/ID/deny", "/sign-out"];
    for path in paths {
        let path = path.replace("ID", &id);
        for target in [path.clone(), format!("{path}?{query}")] {
            for method in [Method::GET, Method::HEAD] {
                stage.web.request(method, &target, &headers, String::new()).await.map_err(why)?;
            }
        }
    }
    still_held(stage)?;
    must(stage.core().outbox.ledger_head().map_err(why)? == head, || "the ledger grew".to_owned())?;
    must(stage.provider()?.accepted().len() == accepted, || "something was sent".to_owned())?;
    let page = stage.web.get("/", &headers).await.map_err(why)?;
    must(page.status == OK && page.text().contains(&id), || "the sign-in or the hold is gone".to_owned())?;
    Ok(format!("{} requests of a signed-in approver; state, ledger and provider as before", paths.len() * 4 + 1))
}

/// csrf, hash and nonce of the page's form.
fn inputs(page: &Page) -> Result<[String; 3], String> {
    let input = |name: &str| page.input(name).ok_or_else(|| format!("the page has no {name}"));
    Ok([input("csrf")?, input("hash")?, input("nonce")?])
}

/// Without the PIN, with another hash, or from another origin nothing is
/// approved; with all of it, it is.
pub(super) async fn approver_approves(stage: &mut Stage) -> Seen {
    let cookie = stage.cookie.clone().ok_or("nobody is signed in")?;
    let id = stage.hold_id()?.to_string();
    let headers = [("cookie", cookie.as_str())];
    let path = format!("/held/{id}/approve");
    let page = stage.web.get(&format!("/held/{id}"), &headers).await.map_err(why)?;
    for text in ["priya.raman@example.com", "Order.Desk@example.net", "oak tables"] {
        must(page.text().contains(text), || format!("the page doesn't show {text}"))?;
    }
    let [csrf, hash, nonce] = inputs(&page)?;
    let other = sha256_hex(hash.as_bytes());
    let wrong_pin = demo::PIN.chars().rev().collect::<String>();
    let wrong: [(&str, &[(&str, &str)]); 4] = [
        ("no PIN", &[("csrf", &csrf), ("hash", &hash), ("nonce", &nonce)]),
        ("a wrong PIN", &[("pin", &wrong_pin), ("csrf", &csrf), ("hash", &hash), ("nonce", &nonce)]),
        ("no token", &[("pin", demo::PIN), ("csrf", ""), ("hash", &hash), ("nonce", &nonce)]),
        ("another hash", &[("pin", demo::PIN), ("csrf", &csrf), ("hash", &other), ("nonce", &nonce)]),
    ];
    for (what, form) in wrong {
        let answer = stage.web.post(&path, &headers, form).await.map_err(why)?;
        must((400..500).contains(&answer.status), || format!("with {what}: {}", answer.status))?;
        still_held(stage).map_err(|e| format!("with {what}: {e}"))?;
    }
    let page = stage.web.get(&format!("/held/{id}"), &headers).await.map_err(why)?;
    let form = inputs(&page)?;
    let answer = post_approval(stage, &cookie, &form).await?;
    must(answer.status == SEE_OTHER, || format!("the approval was answered {}", answer.status))?;
    let state = stage.hold()?.state;
    must(matches!(state, State::Approved | State::Sending | State::Sent), || format!("the hold is {state:?}"))?;
    let hash = form[1].clone();
    stage.form = Some(form);
    Ok(format!("{} incomplete approvals refused, then approved with the PIN for {hash}", wrong.len()))
}

async fn post_approval(stage: &Stage, cookie: &str, form: &[String; 3]) -> Result<Page, String> {
    let path = format!("/held/{}/approve", stage.hold_id()?);
    let [csrf, hash, nonce] = form;
    let form = [("pin", demo::PIN), ("csrf", csrf.as_str()), ("hash", hash.as_str()), ("nonce", nonce.as_str())];
    stage.web.post(&path, &[("cookie", cookie)], &form).await.map_err(why)
}

/// The same form again: refused, and nothing is sent again.
pub(super) async fn no_second_approval(stage: &Stage) -> Seen {
    let cookie = stage.cookie.clone().ok_or("nobody is signed in")?;
    let form = stage.form.clone().ok_or("nothing was approved")?;
    let accepted = stage.provider()?.accepted().len();
    let answer = post_approval(stage, &cookie, &form).await?;
    must(answer.status == CONFLICT, || format!("answered {}", answer.status))?;
    stage.core().outbox.kick();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    must(stage.provider()?.accepted().len() == accepted, || "it was sent again".to_owned())?;
    Ok(format!("answered {CONFLICT}, and nothing more was sent"))
}
