//! `tollgate demo`: the shipped demonstration in a private temporary folder,
//! and its story told without a person.
//!
//! Promises: touches nothing but its own folder, which is gone afterwards;
//! `--self-check` exits 0 only if every step held. Doesn't know: any account
//! but the embedded one.

mod approval;
mod inbound;
mod outbound;
mod receipts;
mod stage;

use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use super::Globals;
use super::exit::{Exit, Failure, Outcome};
use crate::config::{Config, DEFAULT_IMAPS_PORT, DEFAULT_SUBMISSIONS_PORT, DEFAULT_WEB_PORT};
use stage::Stage;

/// How long one step may take.
const STEP_LIMIT: Duration = Duration::from_secs(8);
/// How long all steps together may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Flags of the verb.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Tell the story without a person: a line per step (with --json an
    /// object per step); exit code 0 only if all of it holds
    #[arg(long)]
    self_check: bool,
}

pub(super) fn run(globals: &Globals, args: &DemoArgs) -> Outcome {
    let folder = Private::make()?;
    if !args.self_check {
        return super::serve::run(with_usual_ports(Config::embedded(folder.path())));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Exit::Software, "runtime", e))?;
    let mut report = Report { json: globals.json, failed: Vec::new(), steps: 0 };
    let started = Instant::now();
    runtime.block_on(story(folder.path(), &mut report));
    // What still runs belongs to a step that failed.
    runtime.shutdown_timeout(Duration::from_secs(1));
    report.finish(started.elapsed())
}

/// The ports of the shipped configuration where all of them are free, else
/// whatever ports are: the demo may run beside a gateway.
fn with_usual_ports(mut config: Config) -> Config {
    let both =
        |port: u16| -> Vec<SocketAddr> { vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()] };
    let usual = [DEFAULT_IMAPS_PORT, DEFAULT_SUBMISSIONS_PORT, DEFAULT_WEB_PORT].map(both);
    // A machine may be without IPv6; there only the first address counts.
    let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let usual = usual.map(|list| list.into_iter().filter(|a| has_ipv6 || a.is_ipv4()).collect::<Vec<_>>());
    if usual.iter().flatten().all(|address| TcpListener::bind(address).is_ok()) {
        [config.listen.imaps, config.listen.submissions, config.listen.web] = usual;
        config.web_url = format!("http://localhost:{DEFAULT_WEB_PORT}");
    }
    config
}

/// A folder for this run alone.
struct Private(PathBuf);

impl Private {
    fn make() -> Result<Private, Failure> {
        let failed = |e: &dyn std::fmt::Display| Failure::new(Exit::CantCreate, "folder", e);
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|e| failed(&e))?;
        let name: String = random.iter().map(|b| format!("{b:02x}")).collect();
        let path = std::env::temp_dir().join(format!("tollgate-demo-{name}"));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| failed(&format!("{}: {e}", path.display())))?;
        Ok(Private(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "the demo's folder could not be removed");
        }
    }
}

/// What a step saw, or why it doesn't hold.
pub(super) type Seen = Result<String, String>;

/// Tells steps as they happen.
struct Report {
    json: bool,
    failed: Vec<&'static str>,
    steps: usize,
}

impl Report {
    fn tell(&mut self, name: &'static str, seen: &Seen, took: Duration) {
        self.steps += 1;
        let (held, text) = match seen {
            Ok(text) => (true, text),
            Err(text) => (false, text),
        };
        if !held {
            self.failed.push(name);
        }
        let line = if self.json {
            json!({ "step": name, "ok": held, "seen": text, "ms": took.as_millis() as u64 }).to_string()
        } else {
            let mark = if held { "ok  " } else { "FAIL" };
            format!("{mark} {name:<22} {:>5} ms  {text}", took.as_millis())
        };
        // Standard output may be closed early, by `head` for one; the exit
        // code still counts.
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    fn finish(self, took: Duration) -> Outcome {
        let (steps, failed) = (self.steps, self.failed.len());
        if failed == 0 && took <= LIMIT {
            let line = if self.json {
                json!({ "step": "all", "ok": true, "steps": steps, "ms": took.as_millis() as u64 }).to_string()
            } else {
                format!("all {steps} steps hold, in {:.1} s", took.as_secs_f64())
            };
            let _ = writeln!(std::io::stdout(), "{line}");
            return Ok(());
        }
        let message = match failed {
            0 => format!("all steps hold, but they took {:.1} s", took.as_secs_f64()),
            _ => format!("{failed} of {steps} steps do not hold: {}", self.failed.join(", ")),
        };
        Err(Failure::new(Exit::Software, "self_check", message))
    }
}

/// Runs a step within [`STEP_LIMIT`] and tells it.
macro_rules! step {
    ($report:expr, $name:literal, $work:expr) => {{
        let started = Instant::now();
        let seen: Seen = match tokio::time::timeout(STEP_LIMIT, $work).await {
            Ok(seen) => seen,
            Err(_) => Err(format!("not done after {} s", STEP_LIMIT.as_secs())),
        };
        $report.tell($name, &seen, started.elapsed());
    }};
}

async fn story(folder: &Path, report: &mut Report) {
    let mut stage = None;
    step!(report, "starts", async {
        let set = Stage::set(folder).await?;
        let seen = set.listening();
        stage = Some(set);
        Ok(seen)
    });
    let Some(mut stage) = stage else { return };
    step!(report, "mail_arrives", inbound::arrives(&mut stage));
    step!(report, "read_in_its_lane", inbound::read_in_its_lane(&mut stage));
    step!(report, "forged_stamp_is_none", inbound::forged_stamp_is_none(&stage));
    step!(report, "person_sends_at_once", outbound::person_sends_at_once(&stage));
    step!(report, "agent_is_held", outbound::agent_is_held(&mut stage));
    step!(report, "notice_for_people_only", outbound::notice_for_people_only(&stage));
    step!(report, "agent_gets_403", approval::agent_gets_403(&stage));
    step!(report, "gets_change_nothing", approval::gets_change_nothing(&mut stage));
    step!(report, "approver_approves", approval::approver_approves(&mut stage));
    step!(report, "exact_octets_sent", outbound::exact_octets_sent(&stage));
    step!(report, "receipt_verifies", receipts::verifies(&mut stage));
    step!(report, "receipt_fits_only_that", async { receipts::fits_only_that(&stage) });
    step!(report, "no_second_approval", approval::no_second_approval(&stage));
    step!(report, "agent_cannot_delete", inbound::agent_cannot_delete(&stage));
    step!(report, "ledger_is_whole", async { receipts::ledger_is_whole(&stage) });
    step!(report, "stops", stage.clear());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::faults::{SmtpAt, SmtpEffect};

    fn globals() -> Globals {
        Globals { config: None, state_dir: None, certs_dir: None, json: true }
    }

    #[test]
    fn the_whole_story_holds() {
        run(&globals(), &DemoArgs { self_check: true }).unwrap();
    }

    #[test]
    fn one_step_that_does_not_hold_fails_the_check() {
        let mut report = Report { json: true, failed: Vec::new(), steps: 0 };
        report.tell("one", &Ok("seen".to_owned()), Duration::ZERO);
        report.tell("two", &Err("not seen".to_owned()), Duration::ZERO);
        let failure = report.finish(Duration::ZERO).unwrap_err();
        assert_eq!(failure.exit, Exit::Software);
        assert!(failure.message.contains("two") && !failure.message.contains("one,"), "{}", failure.message);
        let slow = Report { json: true, failed: Vec::new(), steps: 1 };
        assert!(slow.finish(LIMIT + Duration::from_secs(1)).is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn steps_notice_what_goes_wrong_at_the_provider() {
        let folder = Private::make().unwrap();
        let mut stage = Stage::set(folder.path()).await.unwrap();
        assert!(inbound::read_in_its_lane(&mut stage).await.is_err(), "nothing arrived yet");
        let faults = stage.provider().unwrap().faults();
        faults.smtp(SmtpAt::Dot, SmtpEffect::Reply("550 5.7.1 no".to_owned()), None);
        assert!(outbound::person_sends_at_once(&stage).await.is_err());
        faults.clear();
        outbound::person_sends_at_once(&stage).await.unwrap();
        // Sent twice is not sent once.
        assert!(outbound::person_sends_at_once(&stage).await.is_err());
        stage.clear().await.unwrap();
    }
}
