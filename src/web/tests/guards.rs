//! What gets no page.

use super::house::{House, PIN, me};
use super::{form_of, with};
use crate::account::demo;
use crate::floor::submission::State;

const GETS: [&str; 6] = ["/", "/history", "/held/ID", "/held/ID/raw", "/held/ID/receipt", "/nowhere"];
const POSTS: [&str; 4] = ["/held/ID/approve", "/held/ID/deny", "/keys/demoagent/deny-and-revoke", "/sign-out"];

#[tokio::test]
async fn without_a_sign_in_every_page_is_403() {
    let house = House::new().await;
    let id = house.calm().await;
    let before = house.fingerprint();
    let agent = demo::AGENT_KEY;
    let basic = {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(format!("{}:{agent}", me()))
    };
    let (basic, bearer) = (format!("Basic {basic}"), format!("Bearer {agent}"));
    let (bad, key_cookie) = (format!("tollgate_session={}", "a".repeat(64)), format!("tollgate_session={agent}"));
    let origin = format!("http://{}", house.authority());
    let form = format!("pin={PIN}&csrf=x&hash=x&nonce=x");
    let tries: [&[(&str, &str)]; 6] = [
        &[],
        &[("Authorization", &basic)],
        &[("Authorization", &bearer)],
        &[("Cookie", &bad)],
        &[("Cookie", &key_cookie)],
        &[("Cookie", "tollgate_session=")],
    ];
    for fields in tries {
        for path in GETS {
            let path = path.replace("ID", id.as_str());
            for path in [path.clone(), format!("{path}?token={agent}&key={agent}&pin={PIN}")] {
                let answer = house.request("GET", &path, fields, "").await;
                assert_eq!(answer.status, 403, "{path} {fields:?}");
                assert!(answer.body.contains("/sign-in") && !answer.body.contains("Grüße"));
                assert_eq!(answer.header("location"), None, "no redirect");
            }
        }
        for path in POSTS {
            let mut fields = fields.to_vec();
            fields.push(("Origin", &origin));
            let answer = house.request("POST", &path.replace("ID", id.as_str()), &fields, &form).await;
            assert_eq!(answer.status, 403, "{path} {fields:?}");
        }
    }
    assert_eq!(house.fingerprint(), before);
}

#[tokio::test]
async fn open_pages_say_nothing_of_held_mail() {
    let house = House::new().await;
    let id = house.calm().await;
    for (path, says) in [("/healthz", "ok"), ("/sign-in", "PIN"), ("/style.css", ":root"), ("/metrics", "tollgate_")] {
        let answer = house.request("GET", path, &[], "").await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body.contains(says), "{path} {}", answer.body);
        for secret in [id.as_str(), "example.com", "Grüße"] {
            assert!(!answer.body.contains(secret), "{path} says {secret}");
        }
    }
    let metrics = house.request("GET", "/metrics", &[], "").await.body;
    assert!(
        metrics.contains("tollgate_holds{state=\"held\"} 1") && metrics.contains("tollgate_accounts 2"),
        "{metrics}"
    );
}

#[tokio::test]
async fn no_get_and_no_odd_method_changes_anything() {
    let house = House::new().await;
    let (id, cookie) = (house.calm().await, house.me().await);
    let form = form_of(&house, id.as_str(), &cookie).await;
    let body = super::house::urlencoded(&with(&form, "", ""));
    let before = house.fingerprint();
    let origin = format!("http://{}", house.authority());
    let fields = [("Cookie", cookie.as_str()), ("Origin", origin.as_str())];
    for path in GETS.iter().chain(&POSTS).chain(&["/healthz", "/metrics", "/sign-in", "/style.css"]) {
        let path = path.replace("ID", id.as_str());
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "APPROVE", "CONNECT"] {
            let with_query = format!("{path}?{body}");
            for path in [&path, &with_query] {
                let answer = house.request(method, path, &fields, "").await;
                assert_ne!(answer.status, 303, "{method} {path}");
                let answer = house.request(method, path, &fields, &body).await;
                assert_ne!(answer.status, 303, "{method} {path} with a body");
            }
        }
    }
    for path in POSTS {
        let answer = house.request("GET", &path.replace("ID", id.as_str()), &fields, "").await;
        assert_eq!(answer.status, 405, "{path}");
    }
    assert_eq!(house.fingerprint(), before);
    assert_eq!(house.get_hold(&id).state, State::Held);
    assert_eq!(house.get("/", &cookie).await.status, 200, "still signed in");
}

#[tokio::test]
async fn another_host_gets_nothing() {
    let house = House::new().await;
    let cookie = house.me().await;
    let port = house.address.port();
    for host in [
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        "localhost".to_owned(),
        format!("LOCALHOST:{port}"),
        format!("localhost:{port}."),
        format!("localhost.:{port}"),
        format!("evil.example:{port}"),
        String::new(),
    ] {
        for path in ["/", "/healthz", "/sign-in", "/metrics"] {
            let answer = house.request("GET", path, &[("Host", &host), ("Cookie", &cookie)], "").await;
            assert!(answer.status == 421 || answer.status == 400, "{host:?} {path}: {}", answer.status);
        }
    }
    let good = house.authority();
    let twice = format!("GET / HTTP/1.1\r\nHost: {good}\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert!([400, 421].contains(&house.send(&twice).await.status));
    let none = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert!([400, 421].contains(&house.send(none).await.status));
    let absolute = format!("GET http://evil.example/ HTTP/1.1\r\nHost: {good}\r\nConnection: close\r\n\r\n");
    assert_eq!(house.send(&absolute).await.status, 421);
}

#[tokio::test]
async fn a_post_of_another_origin_does_nothing() {
    let house = House::new().await;
    let (id, cookie) = (house.calm().await, house.me().await);
    let form = form_of(&house, id.as_str(), &cookie).await;
    let body = super::house::urlencoded(&with(&form, "", ""));
    let before = house.fingerprint();
    let good = format!("http://{}", house.authority());
    let port = house.address.port();
    let origins = [
        "null".to_owned(),
        format!("http://127.0.0.1:{port}"),
        "http://localhost".to_owned(),
        format!("https://localhost:{port}"),
        format!("http://localhost:{port}/"),
        format!("HTTP://localhost:{port}"),
        format!("http://localhost:{}", port.wrapping_add(1)),
        "http://evil.example".to_owned(),
        format!("{good}, {good}"),
        String::new(),
    ];
    let path = format!("/held/{id}/approve");
    for origin in &origins {
        let fields = [("Cookie", cookie.as_str()), ("Origin", origin)];
        let answer = house.request("POST", &path, &fields, &body).await;
        assert_eq!(answer.status, 403, "{origin:?}");
        assert!(answer.body.contains("Not from our page"));
        let get = house.request("GET", "/", &fields, "").await;
        assert_eq!(get.status, 403, "{origin:?}");
    }
    let missing = house.request("POST", &path, &[("Cookie", &cookie)], &body).await;
    assert_eq!(missing.status, 403, "no Origin");
    for site in ["cross-site", "same-site", "none", "", "Same-Origin"] {
        let fields = [("Cookie", cookie.as_str()), ("Origin", good.as_str()), ("Sec-Fetch-Site", site)];
        assert_eq!(house.request("POST", &path, &fields, &body).await.status, 403, "{site:?}");
    }
    let led = house.request("GET", "/", &[("Cookie", &cookie), ("Sec-Fetch-Site", "cross-site")], "").await;
    assert_eq!(led.status, 403);
    let typed = house.request("GET", "/", &[("Cookie", &cookie), ("Sec-Fetch-Site", "none")], "").await;
    assert_eq!(typed.status, 200);
    assert_eq!(house.fingerprint(), before);
}

#[tokio::test]
async fn every_answer_carries_the_policy() {
    let house = House::new().await;
    let (id, cookie) = (house.calm().await, house.me().await);
    for path in
        ["/", "/nowhere", "/healthz", "/style.css", "/sign-in", &format!("/held/{id}"), &format!("/held/{id}/raw")]
    {
        let answer = house.get(path, &cookie).await;
        let policy = answer.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("script-src") && !policy.contains("unsafe-inline"));
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cache-control", "no-store"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("x-frame-options", "DENY"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path} {name}");
        }
        assert!(!answer.body.contains("<script") && !answer.body.contains(" style="), "{path}");
    }
}

#[tokio::test]
async fn large_bodies_and_headers_are_refused() {
    let house = House::new().await;
    let cookie = house.me().await;
    let large = format!("csrf={}", "x".repeat(65 * 1024));
    let origin = format!("http://{}", house.authority());
    let answer = house.request("POST", "/sign-out", &[("Cookie", &cookie), ("Origin", &origin)], &large).await;
    assert!(answer.status == 413 || answer.status == 0, "{}", answer.status);
    let long = "x".repeat(20 * 1024);
    let answer = house.request("GET", "/healthz", &[("X-Long", &long)], "").await;
    assert!(answer.status == 431 || answer.status == 0, "{}", answer.status);
    let many: Vec<(&str, &str)> = vec![("X-Many", "x"); 100];
    assert_ne!(house.request("GET", "/healthz", &many, "").await.status, 200);
    assert_eq!(house.get("/", &cookie).await.status, 200);
}

#[tokio::test]
async fn the_listener_ends_when_told_and_answers_what_is_under_way() {
    let house = House::new().await;
    let idle = tokio::net::TcpStream::connect(house.address).await.unwrap();
    house.end.send(true).unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(8), house.served).await.unwrap().unwrap();
    drop(idle);
    assert!(tokio::net::TcpStream::connect(house.address).await.is_err());
}
