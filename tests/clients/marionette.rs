//! Thunderbird in a window of its own, driven by Marionette and by a mouse.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::clients_of::Login;
use crate::common::daemon::Daemon;
use crate::common::eventually;
use crate::common::program::run;
use crate::common::scratch::{Scratch, free_port};

/// A dialog at the start would wait for somebody for ever.
const PATIENCE: Duration = Duration::from_secs(60);
const PRELUDE: &str = include_str!("js/prelude.js");
const PROFILE: &str = include_str!("js/profile.js");
/// The screen and the window, in pixels.
const SCREEN: (u32, u32) = (1200, 760);
/// Names the folder into which pictures go; without, they are thrown away.
const PICTURES: &str = "TOLLGATE_TEST_SCREENSHOTS";

/// A running Thunderbird. Fields are dropped in this order.
pub(crate) struct Thunderbird {
    stream: BufReader<TcpStream>,
    id: u64,
    pub(crate) app: Daemon,
    _screen: Daemon,
    display: String,
    scratch: Scratch,
}

impl Thunderbird {
    /// Starts it with one account, whose certificate it was told to trust.
    #[track_caller]
    pub(crate) fn start(login: &Login) -> Thunderbird {
        let scratch = Scratch::new();
        let profile = scratch.folder("profile");
        let port = free_port();
        let prefs = PROFILE
            .replace("@USER@", &login.user)
            .replace("@PORT@", &login.imaps.to_string())
            .replace("@MARIONETTE@", &port.to_string());
        fs::write(profile.join("user.js"), prefs).unwrap();
        let print =
            run("openssl", &["x509", "-noout", "-fingerprint", "-sha256", "-in", login.trusts.to_str().unwrap()]);
        let print = print.ok().text();
        let print = print.trim().split_once('=').expect("a fingerprint").1.to_owned();
        let exception = format!("localhost:{}:\tOID.2.16.840.1.101.3.4.2.1\t{print}\t\n", login.imaps);
        fs::write(profile.join("cert_override.txt"), exception).unwrap();
        let size = json!({"screenX": "0", "screenY": "0", "width": SCREEN.0.to_string(), "height": SCREEN.1.to_string(), "sizemode": "normal"});
        let window = json!({"chrome://messenger/content/messenger.xhtml": {"messengerWindow": size}});
        fs::write(profile.join("xulstore.json"), window.to_string()).unwrap();

        let (screen, display) = screen(scratch.path());
        // The wrapper in /usr/bin would write into the home folder.
        let mut command = Command::new("/usr/lib/thunderbird/thunderbird");
        command.arg("--profile").arg(&profile);
        command.args(["--new-instance", "--marionette", "--remote-allow-system-access"]);
        command.env("DISPLAY", &display).env("HOME", scratch.folder("home")).env_remove("DBUS_SESSION_BUS_ADDRESS");
        for (name, value) in [
            ("MOZ_CRASHREPORTER_DISABLE", "1"),
            ("MOZ_DISABLE_AUTO_SAFE_MODE", "1"),
            ("GTK_USE_PORTAL", "0"),
            ("NO_AT_BRIDGE", "1"),
            ("LIBGL_ALWAYS_SOFTWARE", "1"),
            ("TZ", "UTC"),
            ("LC_ALL", "C.UTF-8"),
        ] {
            command.env(name, value);
        }
        let mut app = Daemon::start("thunderbird", command, &scratch.path().join("tb.log"), Signal::SIGTERM);
        app.wait_for_port(port);
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let stream = BufReader::new(stream);
        let mut it = Thunderbird { stream, id: 0, app, _screen: screen, display, scratch };
        it.read();
        it.call("WebDriver:NewSession", &json!({}));
        it.call("Marionette:SetContext", &json!({"value": "chrome"}));
        it.call("WebDriver:SetTimeouts", &json!({"script": 50_000}));
        it.js(
            "const l = Cc['@mozilla.org/login-manager/loginInfo;1'].createInstance(Ci.nsILoginInfo);
             l.init('imap://localhost', null, 'imap://localhost', args[0], args[1], '', '');
             await Services.logins.addLoginAsync(l);",
            json!([login.user, login.password]),
        );
        it
    }

    /// One message: its length in digits, a colon, JSON.
    #[track_caller]
    fn read(&mut self) -> Value {
        let mut length = 0usize;
        loop {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).expect("Thunderbird answers; a dialog may be open");
            match byte[0] {
                b':' => break,
                digit => length = length * 10 + usize::from(digit - b'0'),
            }
        }
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    #[track_caller]
    fn call(&mut self, name: &str, parameters: &Value) -> Value {
        self.id += 1;
        let text = json!([0, self.id, name, parameters]).to_string();
        write!(self.stream.get_mut(), "{}:{text}", text.len()).unwrap();
        let mut answer = self.read();
        assert!(answer[2].is_null(), "{name}: {}", answer[2]);
        answer[3].take()
    }

    /// Runs a script in the main window.
    #[track_caller]
    pub(crate) fn js(&mut self, body: &str, arguments: Value) -> Value {
        let script = format!(
            "{PRELUDE}\n(async () => {{ {body} }})().then(r => done(r === undefined ? null : r), \
             e => done('ERR ' + e + ' ' + (e.stack || '')));"
        );
        let mut answer = self.call("WebDriver:ExecuteAsyncScript", &json!({"script": script, "args": arguments}));
        let value = answer["value"].take();
        if let Some(error) = value.as_str().filter(|v| v.starts_with("ERR ")) {
            self.picture("failure");
            panic!("{body}\nsaid {error}");
        }
        value
    }

    /// Moves the mouse with the button held down, as a hand does; `halfway`
    /// happens before the button is let go.
    #[track_caller]
    pub(crate) fn drag(&self, from: (i64, i64), to: (i64, i64), halfway: impl FnOnce(&Thunderbird)) {
        const STEPS: i64 = 12;
        let mut way = vec!["mousemove".to_owned(), from.0.to_string(), from.1.to_string()];
        way.extend(["sleep", "0.3", "mousedown", "1", "sleep", "0.2"].map(str::to_owned));
        for i in 1..=STEPS {
            let at = |a: i64, b: i64| (a + (b - a) * i / STEPS).to_string();
            way.extend(["mousemove".to_owned(), at(from.0, to.0), at(from.1, to.1), "sleep".into(), "0.05".into()]);
        }
        self.xdotool(&way);
        std::thread::sleep(Duration::from_millis(500));
        halfway(self);
        // One more movement over the target, so that it is the target.
        let last = ["mousemove", &(to.0 + 2).to_string(), &to.1.to_string(), "sleep", "0.3", "mouseup", "1"];
        self.xdotool(&last.map(str::to_owned));
    }

    fn xdotool(&self, arguments: &[String]) {
        let mut command = Command::new("xdotool");
        command.args(arguments).env("DISPLAY", &self.display);
        crate::common::program::finish(command, b"").ok();
    }

    /// A picture of the screen.
    #[track_caller]
    pub(crate) fn picture(&self, name: &str) {
        let folder = std::env::var_os(PICTURES).map_or_else(|| self.scratch.path().to_owned(), PathBuf::from);
        let file = format!("PNG8:{}", folder.join(format!("{name}.png")).display());
        let ran = run(
            "import",
            &["-display", &self.display, "-window", "root", "+dither", "-colors", "128", "-strip", &file],
        );
        ran.ok();
    }

    /// Ends it as its menu does.
    #[track_caller]
    pub(crate) fn quit(mut self) {
        let script = "Services.startup.quit(Ci.nsIAppStartup.eForceQuit)";
        self.id += 1;
        let text = json!([0, self.id, "WebDriver:ExecuteScript", {"script": script, "args": []}]).to_string();
        write!(self.stream.get_mut(), "{}:{text}", text.len()).unwrap();
        self.app.wait_for_end();
    }
}

/// A screen of its own; the server chooses its number.
#[track_caller]
fn screen(folder: &Path) -> (Daemon, String) {
    let log = folder.join("xvfb.log");
    let mut command = Command::new("Xvfb");
    let size = format!("{}x{}x24", SCREEN.0, SCREEN.1);
    command.args(["-displayfd", "1", "-screen", "0", &size, "-nolisten", "tcp"]);
    let daemon = Daemon::start("Xvfb", command, &log, Signal::SIGTERM);
    let display = eventually("Xvfb's display", || {
        let text = fs::read_to_string(&log).ok()?;
        text.lines().find_map(|l| l.trim().parse::<u32>().ok()).map(|n| format!(":{n}"))
    });
    (daemon, display)
}
