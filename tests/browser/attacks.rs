//! Pages and mail that mean harm.

use serde_json::json;
use tollgate::account::demo::{ADDRESS, PIN};

use crate::driver::Chromium;
use crate::other::Other;
use crate::{CALM, gateway, origin, submit};

/// What hostile mail would load, by every road that HTML knows.
fn hostile(canary: u16) -> String {
    let there = format!("http://localhost:{canary}");
    format!(
        "From: Demo <demo@example.org>\r\nTo: Bo <bo@example.com>\r\nDate: Mon, 30 Nov 2026 10:00:00 +0000\r\n\
         Subject: <img src={there}/subject onerror=alert(1)>\r\nMessage-ID: <3@example.org>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/html; charset=utf-8\r\n\r\n<html><head>\r\n\
         <base href=\"{there}/base/\"><meta http-equiv=refresh content=\"0;url={there}/refresh\">\r\n\
         <link rel=stylesheet href=\"{there}/sheet.css\"><link rel=prefetch href=\"{there}/prefetch\">\r\n\
         <link rel=preconnect href=\"{there}\"><link rel=dns-prefetch href=\"//evil.example\">\r\n\
         <style>@import url({there}/import); body {{ background: url({there}/css) }} \
         @font-face {{ font-family: x; src: url({there}/font) }}</style>\r\n\
         <script>fetch('{there}/script'); document.title = 'owned'</script>\r\n\
         <script type=speculationrules>{{\"prerender\":[{{\"urls\":[\"{there}/speculation\"]}}]}}</script></head>\r\n\
         <body background=\"{there}/background\" onload=\"fetch('{there}/onload')\">\r\n\
         <img src=\"{there}/img\" srcset=\"{there}/srcset 2x\"><picture><source srcset=\"{there}/source\"></picture>\r\n\
         <video src=\"{there}/video\" poster=\"{there}/poster\" autoplay></video><audio src=\"{there}/audio\"></audio>\r\n\
         <iframe src=\"{there}/iframe\"></iframe><object data=\"{there}/object\"></object>\r\n\
         <embed src=\"{there}/embed\"><svg><image href=\"{there}/svg\"/><use href=\"{there}/use#x\"/>\r\n\
         <script href=\"{there}/svgscript\"></script></svg><input type=image src=\"{there}/input\">\r\n\
         <form action=\"{there}/form\"><button autofocus onfocus=\"this.form.submit()\">x</button></form>\r\n\
         <a href=\"{there}/ping\" ping=\"{there}/pinged\">a link</a><p style=\"background:url({there}/style)\">words</p>\r\n\
         <table background=\"{there}/table\"><tr><td>cell</td></tr></table>\r\n\
         <p></iframe></section><script>document.title = 'owned'</script>end</p></body></html>\r\n"
    )
}

#[test]
fn hostile_html_loads_and_runs_nothing() {
    let canary = Other::serve("");
    let gateway = gateway("pin");
    let id = submit(&gateway, &["bo@example.com"], &hostile(canary.port));
    let chromium = Chromium::start();
    chromium.sign_in(&origin(&gateway), ADDRESS, PIN);
    chromium.network();
    chromium.open(&format!("{}/held/{id}", origin(&gateway)));
    chromium.wait_for("What it says");
    // Everything open, every element in view, and time for what comes late.
    chromium.run(
        "document.querySelectorAll('details').forEach((d) => { d.open = true; }); \
         document.querySelectorAll('iframe, section').forEach((e) => e.scrollIntoView());",
    );
    let settled = "const done = arguments[0]; requestIdleCallback(() => setTimeout(done, 700))";
    chromium.run_async(settled);
    let own = [format!("{}/held/{id}", origin(&gateway)), format!("{}/style.css", origin(&gateway))];
    for url in chromium.asked_for() {
        assert!(own.contains(&url) || url.starts_with("about:") || url.ends_with("/favicon.ico"), "asked for {url}");
    }
    assert_eq!(canary.asked(), Vec::<String>::new(), "nobody connected");
    let page = chromium.run("return [document.title, document.scripts.length, window.frames.length]");
    assert_eq!(page[1], 0, "{page}");
    assert!(!page[0].as_str().unwrap().contains("owned"), "{page}");
    let frame = chromium.run("const f = document.querySelector('iframe'); return [f.getAttribute('sandbox'), f.src]");
    assert_eq!(frame, json!(["", ""]), "a frame that may do nothing and comes from nowhere");
    // A control: the same harness sees a page that does load.
    chromium.open(&format!("http://localhost:{}/control", canary.port));
    assert!(canary.asked().iter().any(|r| r.contains("/control")), "the canary sings");
    assert!(chromium.asked_for().iter().any(|url| url.ends_with("/control")));
}

#[test]
fn another_site_can_neither_frame_nor_post_nor_prefetch() {
    let gateway = gateway("link");
    let id = submit(&gateway, &["bo@example.com"], CALM);
    let at = origin(&gateway);
    let (page, approve) = (format!("{at}/held/{id}"), format!("{at}/held/{id}/approve"));
    let evil = Other::serve(format!(
        "<!doctype html><title>evil</title><link rel=prefetch href=\"{page}\"><link rel=prerender href=\"{page}\">\
         <script type=speculationrules>{{\"prefetch\":[{{\"urls\":[\"{page}\"]}}],\"prerender\":[{{\"urls\":[\"{page}\"]}}]}}\
         </script><img src=\"{approve}\"><iframe id=f src=\"{page}\"></iframe><iframe name=t></iframe>\
         <form id=g method=post target=t action=\"{approve}\"><input name=pin value={PIN}><input name=csrf value=x>\
         <input name=hash value=x><input name=nonce value=x></form><script>g.submit()</script>"
    ));
    let chromium = Chromium::start();
    chromium.sign_in(&at, ADDRESS, PIN);
    chromium.network();
    // Both names of this machine: another site, and the same site on another port.
    for host in ["127.0.0.1", "localhost"] {
        chromium.open(&format!("http://{host}:{}/", evil.port));
        chromium.run_async("const done = arguments[0]; requestIdleCallback(() => setTimeout(done, 700))");
        let told = chromium.network();
        let asked = told.iter().filter(|(m, p)| {
            m == "Network.requestWillBeSent" && p["request"]["url"].as_str().is_some_and(|u| u.starts_with(&at))
        });
        assert!(asked.count() >= 2, "the attack was tried from {host}");
        let answers: Vec<i64> = told
            .iter()
            .filter(|(m, p)| {
                m == "Network.responseReceived"
                    && p["response"]["url"].as_str().is_some_and(|u| u.starts_with(&format!("{at}/held/")))
            })
            .filter_map(|(_, p)| p["response"]["status"].as_i64())
            .collect();
        assert!(answers.iter().all(|status| *status >= 400), "{host}: {answers:?}");
        let seen =
            chromium.run("try { return document.getElementById('f').contentDocument === null } catch { return true }");
        assert_eq!(seen, true, "the frame shows nothing of ours");
        let hold = gateway.hold(&id);
        assert_eq!((hold["state"].as_str(), hold["attempt"].as_i64()), (Some("held"), Some(0)), "from {host}");
    }
    // The same page in a window of ours still decides.
    chromium.open(&page);
    chromium.type_into("#pin-approve", PIN);
    chromium.click(&format!("form[action='/held/{id}/approve'] button"));
    chromium.wait_for("Receipt (JSON)");
}

#[test]
fn a_link_that_is_fetched_ahead_of_time_changes_nothing() {
    use crate::common::imap::Imap;
    let gateway = gateway("link");
    let id = submit(&gateway, &["bo@example.com"], CALM);
    let mut person = Imap::login(gateway.imap, ADDRESS, tollgate::account::demo::PERSON_KEY);
    let link = crate::common::eventually("the notice", || {
        person.ok("EXAMINE INBOX");
        let found = person.search("SUBJECT \"Approval needed\"");
        let body = String::from_utf8(person.body(*found.first()?)).ok()?;
        body.split_whitespace().find(|w| w.contains("/link/")).map(str::to_owned)
    });
    let path = link.strip_prefix(&origin(&gateway)).unwrap();
    let ledger = gateway.json(&["ledger", "head"]);
    let browser = gateway.browser();
    for (method, fields) in [
        ("GET", &[][..]),
        ("HEAD", &[]),
        ("OPTIONS", &[]),
        ("GET", &[("Sec-Purpose", "prefetch")]),
        ("GET", &[("Sec-Purpose", "prefetch;prerender")]),
        ("GET", &[("Purpose", "prefetch")]),
        ("GET", &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Dest", "iframe")]),
    ] {
        for act in ["", "/approve", "/deny"] {
            let page = browser.request(method, &format!("{path}{act}"), fields, "");
            assert_ne!(page.status, 303, "{method} {act} {fields:?}");
        }
    }
    let ahead = browser.request("GET", path, &[("Sec-Purpose", "prefetch")], "");
    assert!(ahead.status == 503 && !ahead.text().contains("nonce"), "{}", ahead.text());
    assert_eq!(gateway.hold(&id)["state"], "held");
    assert_eq!(gateway.json(&["ledger", "head"]), ledger, "the ledger stands still");
}

#[test]
fn another_host_or_origin_gets_nothing() {
    let gateway = gateway("pin");
    let id = submit(&gateway, &["bo@example.com"], CALM);
    let good = gateway.approver(ADDRESS, PIN);
    for host in ["127.0.0.1", "evil.example", "localhost.evil.example"] {
        let mut other = good.clone();
        other.host = format!("{host}:{}", gateway.web);
        assert_eq!(other.get("/").status, 421, "{host}");
        other.origin = format!("http://{}", other.host);
        assert_eq!(other.post(&format!("/held/{id}/approve"), &[("pin", PIN)]).status, 421, "{host}");
    }
    for origin in ["null", "http://evil.example", &format!("http://localhost:{}", gateway.web + 1)] {
        let mut other = good.clone();
        other.origin = origin.to_owned();
        assert_eq!(other.post(&format!("/held/{id}/approve"), &[("pin", PIN)]).status, 403, "{origin}");
    }
    // A browser that is led here under another name (DNS rebinding) is turned away as well.
    let chromium = Chromium::start();
    chromium.open(&format!("http://127.0.0.1:{}/sign-in", gateway.web));
    chromium.wait_for("Another address");
    assert_eq!(gateway.hold(&id)["state"], "held");
}
