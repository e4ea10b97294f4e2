//! What the pages say.

use super::house::{CALM, House, PIN, me};
use crate::store::{self, StoreError, Table};

const HOSTILE: &str = "From: Demo <demo@example.org>\r\nTo: \"ceo@bank.example\" <bo@example.com>\r\nDate: Sun, 29 Nov \
    2026 10:00:00 +0000\r\nSubject: <script>alert(1)</script> =?utf-8?q?pay=E2=80=AEnow?=\r\nMIME-Version: 1.0\r\n\
    Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
    --a\r\nContent-Type: text/plain\r\n\r\nPay 10 to <b>Bo</b>.\r\n--a\r\nContent-Type: text/html\r\n\r\n\
    <p onclick=x>Pay 9000 <a href=\"https://evil.example/\">bank.example</a><img src=\"http://t.example/p.gif\">\
    <script>fetch('/')</script><form action=/x><input></form></p>\r\n--a--\r\n--m\r\nContent-Type: \
    application/octet-stream\r\nContent-Disposition: attachment; filename=\"bill.pdf.exe\"\r\n\
    Content-Transfer-Encoding: base64\r\n\r\nTVqQAA==\r\n--m--\r\n";

#[tokio::test]
async fn the_page_shows_everything_and_warns_first() {
    let house = House::new().await;
    let to = ["bo@example.com", "secret@example.net", "colleague@example.org"];
    let id = house.hold(&me(), &to, HOSTILE.as_bytes()).await;
    let cookie = house.me().await;
    let page = house.get(&format!("/held/{id}"), &cookie).await.body;
    for part in [
        "Also sent to colleague@example.org, secret@example.net, whom no header field names",
        "in no header field",
        "outside",
        "pay⟦U+202E⟧now",
        "hides the address",
        "double extension",
        "leads to https://evil.example/",
        "the plain text and the HTML differ",
        "bill.pdf.exe",
        "application/octet-stream",
        "4 octets",
        "Pay 10 to &lt;b&gt;Bo&lt;/b&gt;.",
        "sandbox=\"\"",
        "SHA-256 of the message",
        "&quot;action&quot;:&quot;send_email&quot;",
        "3 recipients",
        "Content-Type",
    ] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    assert!(page.find("whom no header field names") < page.find("Who gets it"), "warnings stand first");
    for markup in ["<script", "<img", "<form action=/x", "<b>Bo"] {
        assert!(!page.contains(markup), "{markup}");
    }
    let frame = page.split("srcdoc=\"").nth(1).and_then(|s| s.split('"').next()).unwrap();
    assert!(frame.contains("default-src 'none'") && frame.contains("Pay 9000"));
    for markup in ["onclick", "fetch", "&lt;form", "&lt;img", "&lt;script", "href", "src="] {
        assert!(!frame.contains(markup), "{markup} in {frame}");
    }
}

#[tokio::test]
async fn a_calm_message_is_shown_without_alarm() {
    let house = House::new().await;
    let id = house.calm().await;
    let cookie = house.me().await;
    let list = house.get("/", &cookie).await.body;
    assert!(
        list.contains("Grüße") && list.contains("bo@example.com") && list.contains("1 message waits for you"),
        "{list}"
    );
    let page = house.get(&format!("/held/{id}"), &cookie).await.body;
    assert!(page.contains("No warnings") && page.contains("Hello Bo.") && page.contains("It can't be called back"));
    assert!(!page.contains("in no header field"));
}

#[tokio::test]
async fn the_raw_source_is_the_octets_as_text() {
    let house = House::new().await;
    let octets: Vec<u8> = [CALM.as_bytes(), "<html><script>x</script>\r\n".repeat(20_000).as_bytes()].concat();
    let id = house.hold(&me(), &["bo@example.com"], &octets).await;
    let cookie = house.me().await;
    let raw = house.get(&format!("/held/{id}/raw"), &cookie).await;
    assert_eq!(raw.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(raw.header("content-length"), Some(octets.len().to_string().as_str()));
    assert!(raw.header("content-disposition").unwrap().contains(id.as_str()));
    assert_eq!(raw.body.as_bytes(), octets);
}

#[tokio::test]
async fn stored_octets_that_were_changed_are_neither_shown_nor_approved() {
    let house = House::new().await;
    let id = house.calm().await;
    let cookie = house.me().await;
    let blob = house.get_hold(&id).blob;
    let other = CALM.replace("Bo.", "Al.");
    store::write(&*house.services.store, move |w| -> Result<(), StoreError> {
        assert!(w.get(Table::Octets, &blob.0)?.is_some());
        w.put(Table::Octets, &blob.0, other.as_bytes())
    })
    .await
    .unwrap();
    let page = house.get(&format!("/held/{id}"), &cookie).await;
    assert_eq!(page.status, 500);
    assert!(page.body.contains("was changed") && !page.body.contains("Hello") && !page.body.contains("nonce"));
}

#[tokio::test]
async fn a_link_from_a_notice_leads_through_the_sign_in_to_its_message() {
    let house = House::new().await;
    let id = house.calm().await;
    let path = format!("/held/{id}");
    let refused = house.get(&path, "").await;
    assert!(refused.body.contains(&format!("/sign-in?next={path}")), "{}", refused.body);
    let form = house.get(&format!("/sign-in?next={path}"), "").await;
    assert_eq!(form.hidden("next"), path);
    let fields = |next| [("account", me().as_str().to_owned()), ("pin", PIN.to_owned()), ("next", next)];
    for (next, to) in
        [(path.clone(), path.as_str()), ("//evil.example".to_owned(), "/"), ("/held/../x".to_owned(), "/")]
    {
        let fields = fields(next);
        let form: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let answer = house.post("/sign-in", "", &form).await;
        assert_eq!(answer.header("location"), Some(to));
    }
    let odd = house.get("/sign-in?next=//evil.example", "").await;
    assert!(!odd.body.contains("evil.example"));
}

/// Serves sample pages for a look with a browser:
/// `TOLLGATE_LOOK=127.0.0.1:3499 cargo test --lib web::tests::shows::look -- --ignored`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "serves until it is stopped"]
async fn look() {
    let Ok(listen) = std::env::var("TOLLGATE_LOOK") else { return };
    let house = House::at(&listen).await;
    house.calm().await;
    house.hold(&me(), &["bo@example.com", "secret@example.net", "colleague@example.org"], HOSTILE.as_bytes()).await;
    let long =
        CALM.replace("=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "Re: Offer for the garden party on Saturday, with all the details");
    let id = house.hold(&me(), &["bo@example.com"], long.as_bytes()).await;
    house.services.outbox.deny(&me(), &id, "wrong date", me().as_str()).await.unwrap();
    house.served.await.unwrap();
}
