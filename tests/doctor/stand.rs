//! A gateway over the embedded provider in this process, and the program that
//! examines it from another.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tollgate::account::demo as keys;
use tollgate::config::{self, Overrides};
use tollgate::demo::provider::Provider;
use tollgate::gateway::Gateway;

pub(crate) const USER: &str = keys::ADDRESS;

pub(crate) struct Stand {
    pub(crate) gateway: Gateway,
    pub(crate) folder: tempfile::TempDir,
}

/// What `doctor --json` printed.
#[derive(Debug)]
pub(crate) struct Receipt {
    pub(crate) code: i32,
    pub(crate) json: Value,
    pub(crate) text: String,
}

pub(crate) fn configure(folder: &Path) {
    let text = format!(
        "state_dir = \"state\"\ncerts_dir = \"certs\"\n[listen]\nimaps = []\nsubmissions = []\n\
         imap_plain = [\"127.0.0.1:0\"]\nsmtp_plain = [\"127.0.0.1:0\"]\nweb = [\"127.0.0.1:0\"]\n\
         [lanes]\npreset = \"folders\"\n[[account]]\naddress = \"{USER}\"\nprovider = \"embedded\"\n"
    );
    std::fs::write(folder.join("gateway.toml"), text).unwrap();
}

impl Stand {
    pub(crate) async fn start() -> Stand {
        let folder = tempfile::tempdir().unwrap();
        configure(folder.path());
        let file = folder.path().join("gateway.toml");
        let config = config::load(Some(&file), &Default::default(), &Overrides::default()).unwrap();
        let gateway = Gateway::start(config).await.unwrap();
        let account = gateway.core().accounts.find(USER).unwrap();
        let mirror = gateway.mirror(&account).unwrap();
        let mut health = mirror.health();
        health.wait_for(|h| *h == tollgate::imap::mirror::Health::Live).await.unwrap();
        Stand { gateway, folder }
    }

    pub(crate) fn provider(&self) -> &Provider {
        self.gateway.provider().unwrap()
    }

    pub(crate) fn state_dir(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    /// `tollgate --json doctor …`
    pub(crate) async fn doctor(&self, args: &[&str]) -> Receipt {
        receipt(run(self.folder.path(), &[&["--json", "doctor"], args].concat()).await)
    }
}

/// Runs the program; the gateway that it asks goes on meanwhile.
pub(crate) async fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(args).current_dir(folder).env_clear().env("HOME", folder).stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

pub(crate) fn receipt(output: Output) -> Receipt {
    let text = String::from_utf8(output.stdout).unwrap();
    let json: Value = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text:?} {}", String::from_utf8_lossy(&output.stderr)));
    let json = match json.get("error") {
        Some(error) => error["details"].clone(),
        None => json,
    };
    Receipt { code: output.status.code().unwrap(), json, text }
}

impl Receipt {
    pub(crate) fn checks(&self) -> Vec<&Value> {
        let sections = self.json["sections"].as_array().unwrap_or_else(|| panic!("no receipt: {}", self.text));
        sections.iter().flat_map(|s| s["checks"].as_array().unwrap()).collect()
    }

    pub(crate) fn check(&self, name: &str) -> &Value {
        self.checks().into_iter().find(|c| c["check"] == name).unwrap_or_else(|| panic!("no {name}: {}", self.text))
    }

    /// The attempts of a check.
    pub(crate) fn attempts(&self, name: &str) -> &[Value] {
        self.check(name)["attempts"].as_array().unwrap()
    }

    /// How the last attempt of a check ended; for a failed one what failed.
    pub(crate) fn outcome(&self, name: &str) -> &str {
        let last = self.attempts(name).last().unwrap();
        last["fault"].as_str().or(last["outcome"].as_str()).unwrap()
    }

    /// The checks whose last attempt failed.
    pub(crate) fn failed(&self) -> Vec<&str> {
        let failed = |c: &&&Value| c["attempts"].as_array().unwrap().last().unwrap()["outcome"] == "failed";
        self.checks().iter().filter(failed).map(|c| c["check"].as_str().unwrap()).collect()
    }

    /// The laws that a check of the oracle found broken.
    pub(crate) fn laws(&self, name: &str) -> Vec<String> {
        let findings = self.attempts(name).last().unwrap()["facts"]["findings"].as_array().cloned().unwrap_or_default();
        let mut laws: Vec<String> = findings.iter().map(|f| f["law"].as_str().unwrap().to_owned()).collect();
        laws.sort();
        laws.dedup();
        laws
    }
}

/// Everything that the provider holds.
pub(crate) fn snapshot(provider: &Provider) -> Vec<(String, u32, Vec<String>, Vec<u8>)> {
    let mut out = Vec::new();
    for name in provider.mailboxes(USER) {
        for m in provider.mailbox(USER, &name) {
            let flags: Vec<String> = m.flags.iter().map(ToString::to_string).filter(|f| f != "\\Recent").collect();
            out.push((name.clone(), m.uid, flags, m.octets.to_vec()));
        }
    }
    out
}
