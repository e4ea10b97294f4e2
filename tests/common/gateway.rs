//! The gateway's own binary, with a private configuration and state.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::daemon::Daemon;
use super::http::Browser;
use super::program::{self, Ran};
use super::scratch::{Scratch, free_port};

const BINARY: &str = env!("CARGO_BIN_EXE_tollgate");

/// A gateway that can be ended and started again.
#[derive(Debug)]
pub(crate) struct Gateway {
    daemon: Option<Daemon>,
    config: PathBuf,
    pub(crate) imap: u16,
    pub(crate) imaps: u16,
    pub(crate) imap_starttls: u16,
    pub(crate) smtp: u16,
    pub(crate) submission_starttls: u16,
    pub(crate) web: u16,
    /// Further variables of its environment.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) scratch: Scratch,
}

/// The embedded provider's account.
pub(crate) const EMBEDDED: &str = "[lanes]\npreset = \"folders\"\n\n\
    [[account]]\naddress = \"demo@example.org\"\nprovider = \"embedded\"\ntimezone = \"UTC\"\n";

impl Gateway {
    /// Writes the configuration; `rest` is what follows `[listen]`.
    pub(crate) fn prepare(rest: &str) -> Gateway {
        let scratch = Scratch::new();
        let (imap, imaps, smtp, submissions, web) = (free_port(), free_port(), free_port(), free_port(), free_port());
        let (imap_starttls, submission_starttls) = (free_port(), free_port());
        let config = format!(
            "state_dir = \"state\"\ncerts_dir = \"certs\"\nhostname = \"localhost\"\n\n[listen]\n\
             imap_plain = [\"127.0.0.1:{imap}\"]\nimaps = [\"127.0.0.1:{imaps}\"]\n\
             imap_starttls = [\"127.0.0.1:{imap_starttls}\"]\n\
             smtp_plain = [\"127.0.0.1:{smtp}\"]\nsubmissions = [\"127.0.0.1:{submissions}\"]\n\
             submission_starttls = [\"127.0.0.1:{submission_starttls}\"]\n\
             web = [\"127.0.0.1:{web}\"]\n\n{rest}"
        );
        let config = scratch.file("gateway.toml", config);
        let environment = Vec::new();
        Gateway {
            daemon: None,
            config,
            imap,
            imaps,
            imap_starttls,
            smtp,
            submission_starttls,
            web,
            environment,
            scratch,
        }
    }

    /// Writes the configuration and starts.
    #[track_caller]
    pub(crate) fn spawn(rest: &str) -> Gateway {
        let mut gateway = Gateway::prepare(rest);
        gateway.start();
        gateway
    }

    /// Starts, and waits until every face listens.
    #[track_caller]
    pub(crate) fn start(&mut self) {
        assert!(self.daemon.is_none(), "it runs already");
        let log = self.scratch.path().join("gateway.log");
        let command = self.command(&["serve"]);
        let mut daemon = Daemon::start("tollgate", command, &log, Signal::SIGTERM);
        for port in [self.imap, self.imaps, self.imap_starttls, self.smtp, self.web] {
            daemon.wait_for_port(port);
        }
        self.daemon = Some(daemon);
    }

    /// The binary with our configuration and nothing of the caller's own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.arg("--config").arg(&self.config).args(arguments);
        command.env_clear().envs(std::env::vars().filter(|(name, _)| name == "PATH" || name == "RUST_BACKTRACE"));
        command.env("HOME", self.scratch.path()).env("TOLLGATE_LOG", "debug");
        command.envs(self.environment.iter().map(|(n, v)| (n, v)));
        command.current_dir(self.scratch.path());
        command
    }

    /// A verb of the command line.
    #[track_caller]
    pub(crate) fn tollgate(&self, arguments: &[&str]) -> Ran {
        program::finish(self.command(arguments), b"")
    }

    /// A verb that must succeed, its JSON.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.tollgate(&[&["--json"], arguments].concat()).ok();
        serde_json::from_slice(&ran.stdout).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {}", ran.text()))
    }

    /// Makes a key; `role` is `person` or `agent`.
    #[track_caller]
    pub(crate) fn add_key(&self, account: &str, role: &str, name: &str) -> String {
        let answer = self.json(&["key", "add", "--account", account, &format!("--{role}"), name]);
        answer["key"].as_str().expect("a key").to_owned()
    }

    /// Sets the PIN of an account.
    #[track_caller]
    pub(crate) fn set_pin(&self, account: &str, pin: &str) {
        let command = self.command(&["pin", "set", "--account", account, "--pin-file", "-"]);
        program::finish(command, format!("{pin}\n").as_bytes()).ok();
    }

    /// A hold as the console shows it.
    #[track_caller]
    pub(crate) fn hold(&self, id: &str) -> Value {
        self.json(&["held", "show", id])
    }

    /// Waits until a hold is in this state.
    #[track_caller]
    pub(crate) fn wait_for_state(&self, id: &str, state: &str) -> Value {
        super::eventually(&format!("hold {id} to be {state}"), || {
            let hold = self.hold(id);
            (hold["state"] == state).then_some(hold)
        })
    }

    pub(crate) fn browser(&self) -> Browser {
        Browser::new(self.web)
    }

    /// A browser that is signed in.
    #[track_caller]
    pub(crate) fn approver(&self, account: &str, pin: &str) -> Browser {
        let mut browser = self.browser();
        browser.sign_in(account, pin);
        browser
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        let certs = self.scratch.path().join("certs");
        let files = std::fs::read_dir(&certs).unwrap().map(|e| e.unwrap().path());
        let is_cert = |p: &PathBuf| std::fs::read_to_string(p).is_ok_and(|t| t.contains("BEGIN CERTIFICATE"));
        let mut found: Vec<PathBuf> = files.filter(is_cert).collect();
        assert_eq!(found.len(), 1, "one certificate in {}", certs.display());
        found.remove(0)
    }

    fn running(&mut self) -> &mut Daemon {
        self.daemon.as_mut().expect("it runs")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.daemon.as_ref().expect("it runs").pid()
    }

    /// SIGKILL.
    #[track_caller]
    pub(crate) fn kill_9(&mut self) {
        self.running().kill_9();
        self.daemon = None;
    }

    /// SIGTERM, and its exit status.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let status = self.running().stop();
        self.daemon = None;
        status
    }

    /// Waits until it died by itself, at a failpoint.
    #[track_caller]
    pub(crate) fn wait_for_death(&mut self) -> ExitStatus {
        let status = self.running().wait_for_end();
        self.daemon = None;
        status
    }

    /// Ends it as a power cut would, and starts it again.
    #[track_caller]
    pub(crate) fn restart_after_kill_9(&mut self) {
        self.kill_9();
        self.start();
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> String {
        let read = std::fs::read(self.scratch.path().join("gateway.log")).unwrap_or_default();
        String::from_utf8_lossy(&read).into_owned()
    }

    pub(crate) fn config_file(&self) -> &Path {
        &self.config
    }
}

/// An account at a provider on the network.
#[derive(Debug, Clone)]
pub(crate) struct Upstream<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
    pub(crate) imap: (u16, &'a str),
    pub(crate) smtp: (u16, &'a str),
    pub(crate) ca: Option<&'a Path>,
}

impl Upstream<'_> {
    /// The `[[account]]` of `user@example.test`.
    pub(crate) fn toml(&self) -> String {
        let Upstream { user, password, imap, smtp, ca } = self;
        let ca = ca.map(|ca| format!("ca = \"{}\"\n", ca.display())).unwrap_or_default();
        format!(
            "[[account]]\naddress = \"{user}@example.test\"\nprovider = \"imap\"\ntimezone = \"UTC\"\n\
             imap.host = \"localhost\"\nimap.port = {}\nimap.tls = \"{}\"\n\
             smtp.host = \"localhost\"\nsmtp.port = {}\nsmtp.tls = \"{}\"\n\
             imap_user = \"{user}\"\nsmtp_user = \"{user}\"\npassword = \"{password}\"\n{ca}\n",
            imap.0, imap.1, smtp.0, smtp.1
        )
    }
}
