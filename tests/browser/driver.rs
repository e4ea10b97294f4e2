//! Headless Chromium, driven over chromedriver's own HTTP API (W3C WebDriver
//! and its WebAuthn extension).

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::common::daemon::Daemon;
use crate::common::eventually;
use crate::common::scratch::{Scratch, free_port};
use crate::common::wire::Wire;

/// Key under which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window. Fields are dropped in this order.
pub(crate) struct Chromium {
    port: u16,
    session: String,
    _driver: Daemon,
    _scratch: Scratch,
}

impl Chromium {
    #[track_caller]
    pub(crate) fn start() -> Chromium {
        let scratch = Scratch::new();
        let port = free_port();
        let mut command = Command::new("chromedriver");
        command.arg(format!("--port={port}"));
        command.env("HOME", scratch.folder("home")).env("TMPDIR", scratch.folder("tmp")).env_remove("DISPLAY");
        command.env_remove("DBUS_SESSION_BUS_ADDRESS");
        let mut driver = Daemon::start("chromedriver", command, &scratch.path().join("driver.log"), Signal::SIGTERM);
        driver.wait_for_port(port);
        let mut chromium = Chromium { port, session: String::new(), _driver: driver, _scratch: scratch };
        let profile = chromium._scratch.folder("profile");
        let arguments = [
            "--headless=new".to_owned(),
            // The tests run as root, where Chromium has no sandbox of its own.
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            // What the browser fetches by itself is not what a page loads.
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--window-size=1280,900".to_owned(),
            format!("--user-data-dir={}", profile.display()),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": "/usr/bin/chromium", "args": arguments},
            "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
            "webauthn:virtualAuthenticators": true,
        }}});
        let answer = chromium.call("POST", "/session", &wanted);
        chromium.session = answer["sessionId"].as_str().expect("a session").to_owned();
        chromium
    }

    /// One call, which must succeed.
    #[track_caller]
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_call(method, path, body).unwrap_or_else(|e| panic!("{method} {path} {body}: {e}"))
    }

    fn try_call(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let mut wire = Wire::connect(self.port);
        wire.send(format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        ));
        // chromedriver leaves its connections open, whatever it announces.
        let good = wire.line().starts_with(b"HTTP/1.1 200");
        let mut length = 0;
        loop {
            let line = String::from_utf8(wire.line()).unwrap().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            length = line.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap());
        }
        let answer: Value = serde_json::from_slice(&wire.exact(length)).expect("WebDriver speaks JSON");
        if good { Ok(answer["value"].clone()) } else { Err(answer["value"].clone()) }
    }

    fn path(&self, rest: &str) -> String {
        format!("/session/{}{rest}", self.session)
    }

    #[track_caller]
    pub(crate) fn open(&self, url: &str) {
        self.call("POST", &self.path("/url"), &json!({"url": url}));
    }

    #[track_caller]
    pub(crate) fn url(&self) -> String {
        self.call("GET", &self.path("/url"), &Value::Null).as_str().unwrap().to_owned()
    }

    /// What the script returns.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> Value {
        self.call("POST", &self.path("/execute/sync"), &json!({"script": script, "args": []}))
    }

    /// What the script hands to its last argument.
    #[track_caller]
    pub(crate) fn run_async(&self, script: &str) -> Value {
        self.call("POST", &self.path("/execute/async"), &json!({"script": script, "args": []}))
    }

    #[track_caller]
    fn find(&self, css: &str) -> String {
        let found = eventually(&format!("an element {css}"), || {
            let asked = json!({"using": "css selector", "value": css});
            self.try_call("POST", &self.path("/element"), &asked).ok()
        });
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        let element = self.find(css);
        self.call("POST", &self.path(&format!("/element/{element}/click")), &json!({}));
    }

    #[track_caller]
    pub(crate) fn type_into(&self, css: &str, text: &str) {
        let element = self.find(css);
        self.call("POST", &self.path(&format!("/element/{element}/value")), &json!({"text": text}));
    }

    /// Keys to whatever has the focus.
    #[track_caller]
    pub(crate) fn press(&self, key: char) {
        let actions = json!({"actions": [{"type": "key", "id": "k",
            "actions": [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}]});
        self.call("POST", &self.path("/actions"), &actions);
    }

    /// Waits until the window shows this text.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        eventually(&format!("a page that says {text:?}"), || {
            // A page that is just being left answers nothing.
            let asked = json!({"script": "return document.body ? document.body.innerText : ''", "args": []});
            let shown = self.try_call("POST", &self.path("/execute/sync"), &asked).ok()?;
            shown.as_str().is_some_and(|shown| shown.contains(text)).then_some(())
        });
    }

    /// Signs in with the PIN.
    #[track_caller]
    pub(crate) fn sign_in(&self, origin: &str, account: &str, pin: &str) {
        self.open(&format!("{origin}/sign-in"));
        self.run("document.getElementById('account').value = ''");
        self.type_into("#account", account);
        self.type_into("#pin", pin);
        self.click("form[action=\"/sign-in\"] button");
        eventually("the list", || (self.url() == format!("{origin}/")).then_some(()));
    }

    /// A passkey of this device, its person verified and willing.
    #[track_caller]
    pub(crate) fn authenticator(&self) -> String {
        let wanted = json!({"protocol": "ctap2", "transport": "internal", "hasResidentKey": true,
            "hasUserVerification": true, "isUserVerified": true, "isUserConsenting": true});
        let id = self.call("POST", &self.path("/webauthn/authenticator"), &wanted);
        id.as_str().expect("an authenticator").to_owned()
    }

    /// Whether the device can verify its person from now on.
    #[track_caller]
    pub(crate) fn verifies(&self, authenticator: &str, yes: bool) {
        let path = self.path(&format!("/webauthn/authenticator/{authenticator}/uv"));
        self.call("POST", &path, &json!({"isUserVerified": yes}));
    }

    #[track_caller]
    fn devtools(&self, command: &str, parameters: &Value) {
        let asked = json!({"cmd": command, "params": parameters});
        self.call("POST", &self.path("/goog/cdp/execute"), &asked);
    }

    /// Looks as on this device.
    #[track_caller]
    pub(crate) fn device(&self, (width, height): (u32, u32), mobile: bool, dark: bool) {
        let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.devtools("Emulation.setDeviceMetricsOverride", &screen);
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", &media);
    }

    /// Writes a picture of the window.
    #[track_caller]
    pub(crate) fn picture(&self, file: &Path) {
        let picture = self.call("GET", &self.path("/screenshot"), &Value::Null);
        std::fs::write(file, STANDARD.decode(picture.as_str().unwrap()).unwrap()).unwrap();
    }

    /// Takes what DevTools told of the network since the last time: methods
    /// and their parameters.
    #[track_caller]
    pub(crate) fn network(&self) -> Vec<(String, Value)> {
        let log = self.call("POST", &self.path("/se/log"), &json!({"type": "performance"}));
        let entries = log.as_array().expect("a log").iter();
        entries
            .filter_map(|entry| {
                let told: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
                let method = told["message"]["method"].as_str()?.to_owned();
                method.starts_with("Network.").then(|| (method, told["message"]["params"].clone()))
            })
            .collect()
    }

    /// The addresses that were asked for since the last time.
    #[track_caller]
    pub(crate) fn asked_for(&self) -> Vec<String> {
        let told = self.network().into_iter().filter(|(method, _)| method == "Network.requestWillBeSent");
        told.filter_map(|(_, p)| p["request"]["url"].as_str().map(str::to_owned)).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Ends the browser itself; chromedriver is ended after it.
        if !self.session.is_empty() {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                self.try_call("DELETE", &self.path(""), &Value::Null)
            }));
        }
    }
}
