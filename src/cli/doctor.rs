//! `tollgate doctor`: tries what a running gateway relies on.
//!
//! Promises: what it reports it did, now; an advertised capability is used
//! before it is believed; it reads only, and sends no mail; it tries again
//! only where `--retry` asks, and a refused password never. Doesn't know: how
//! to mend anything.

mod face;
pub mod fetched;
pub mod oracle;
mod provider;
mod report;

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, gate};
use crate::config::{self, AccountConfig, Config};
use crate::gateway::control::{self, CallError, Request};
use face::Faced;
use oracle::Limits;
use provider::Upstream;
use report::{Check, Done, Fault, Report, Section};

/// How long one attempt of a check may take; those of the oracle have
/// [`oracle::DEFAULT_TIME`] for what they look at, and this beside it.
const CHECK_TIME: Duration = Duration::from_secs(60);
/// Most attempts after the first.
const MOST_RETRIES: u32 = 10;
/// Most messages of each mailbox.
const MOST_MESSAGES: u32 = 100_000;

const AFTER_HELP: &str = "\
Checks: the configuration; the running gateway; at the provider: password, connection, sign-in, IDLE, \
CONDSTORE, NAMESPACE, SPECIAL-USE, literals (each used, not only read from CAPABILITY; MOVE and UIDPLUS \
are not tried, since they change a mailbox), the clock, submission (EHLO and AUTH, no message), and whether \
it gives each message consistently; at the gateway: whether its mirror holds what the provider's INBOX \
holds, and whether every mailbox that it shows agrees with itself: sizes, sections, partials, header \
fields, and the same octets for a UID after a new session.

Everything is read by EXAMINE and BODY.PEEK: no flag changes. The running gateway is asked over its \
control socket; no key is needed.

--json prints a receipt without addresses, host names, mailbox names of yours and anything that a server \
or a message said. Exit codes: 0 all is well, 69 a server or the gateway can't be reached, 70 the \
gateway's own views are wrong, 76 the provider doesn't do what it says, 77 the password is refused, 78 \
the configuration is wrong; of several faults the first counts.";

/// What is looked at.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct DoctorArgs {
    /// Only this account [default: all]
    #[arg(long, value_name = "ADDRESS")]
    account: Option<String>,
    /// How many of the newest messages of each mailbox are read and compared
    #[arg(long, value_name = "N", default_value_t = oracle::DEFAULT_MESSAGES as u32,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_MESSAGES)))]
    messages: u32,
    /// How often a check that failed is tried again
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_RETRIES)))]
    retry: u32,
}

impl DoctorArgs {
    fn limits(&self) -> Limits {
        Limits { messages: self.messages as usize, ..Limits::default() }
    }
}

const READS_CONFIG: &str = "reads the configuration";

pub(super) fn run(globals: &Globals, args: &DoctorArgs) -> Outcome {
    let began = jiff::Timestamp::now().as_second();
    let mut report = Report { began, sections: Vec::new() };
    match globals.load() {
        Ok(config) => {
            report.sections = gate::runtime()?.block_on(examine(globals, args, &config))?;
        }
        Err(failure) => {
            let keys = failure.details.as_ref().map_or(Value::Null, keys_of);
            let fault =
                Fault { facts: json!({ "problems": keys }), ..Fault::new("config", Exit::Config, failure.message) };
            let checks = vec![Check::known("config", READS_CONFIG, Err(fault))];
            report.sections.push(Section { title: "gateway".to_owned(), label: "gateway".to_owned(), checks });
        }
    }
    finish(globals, &report)
}

/// Lines and keys of problems, without the values.
fn keys_of(details: &Value) -> Value {
    let one = |p: &Value| json!({ "line": p["line"], "key": p["key"] });
    details["problems"].as_array().map_or(Value::Null, |list| list.iter().map(one).collect())
}

fn finish(globals: &Globals, report: &Report) -> Outcome {
    let receipt = report.json();
    let failed = report.failed();
    let Some((first, fault)) = failed.first().and_then(|c| Some((c, c.fault()?))) else {
        super::print(globals, &receipt, |_| report.text());
        return Ok(());
    };
    if !globals.json {
        super::exit::say(&report.text());
    }
    let message = format!("{} failed, first {} ({})", failed.len(), first.name(), fault.kind);
    Err(Failure { details: Some(receipt), ..Failure::new(fault.exit, "doctor", message) })
}

async fn examine(globals: &Globals, args: &DoctorArgs, config: &Config) -> Result<Vec<Section>, Failure> {
    let chosen = chosen(config, args.account.as_deref())?;
    let file = config::locate(globals.config.as_deref(), &config::process_env());
    let read = format!(
        "{} with {} accounts",
        file.map_or_else(String::new, |f| f.display().to_string()),
        config.accounts.len()
    );
    let mut checks =
        vec![Check::known("config", READS_CONFIG, Ok(Done::ok(read, json!({ "accounts": config.accounts.len() }))))];
    checks.push(
        Check::run("gateway", "asks the running gateway over its control socket", args.retry, CHECK_TIME, async || {
            control::call(&config.state_dir, &Request::LedgerHead).await.map_err(|e| call_fault(&e))?;
            Ok(Done::ok("it runs and answers", json!({})))
        })
        .await,
    );
    let running = checks.iter().all(|c| c.fault().is_none());
    let mut sections = vec![Section { title: "gateway".to_owned(), label: "gateway".to_owned(), checks }];
    for (n, account) in chosen {
        let checks = account_checks(args, config, account, running).await;
        sections.push(Section {
            title: format!("account {}", account.address),
            label: format!("account {}", n + 1),
            checks,
        });
    }
    Ok(sections)
}

/// The accounts that were asked for, with their numbers in the configuration.
fn chosen<'a>(config: &'a Config, named: Option<&str>) -> Result<Vec<(usize, &'a AccountConfig)>, Failure> {
    let wanted = named.map(|n| crate::mail::address::Address::parse(n).map(|a| a.canonical()));
    let fits = |account: &AccountConfig| match &wanted {
        None => true,
        Some(address) => address.as_ref().is_ok_and(|a| *a == account.address.canonical()),
    };
    let list: Vec<_> = config.accounts.iter().enumerate().filter(|(_, a)| fits(a)).collect();
    if list.is_empty() {
        let message = format!("no account {} is configured", named.unwrap_or_default());
        return Err(Failure::new(Exit::Data, "no_account", message));
    }
    Ok(list)
}

async fn account_checks(args: &DoctorArgs, config: &Config, account: &AccountConfig, running: bool) -> Vec<Check> {
    let mut faced = Faced::new(&config.state_dir, account, args, running);
    let mut upstream = match faced.network().await {
        Ok(network) => Upstream::new(network),
        // Only the embedded provider can be unknown: it starts with the gateway.
        Err(why) => Upstream::unknown(why),
    };
    let mut checks = upstream.checks(args).await;
    checks.extend(faced.checks(&mut upstream).await);
    upstream.close().await;
    checks
}

/// What a call that brought no answer means.
fn call_fault(error: &CallError) -> Fault {
    match error {
        CallError::NotRunning => Fault::new(
            "not_running",
            Exit::Unavailable,
            "no gateway runs on this state; start it with `tollgate serve`",
        ),
        CallError::Refused { .. } => Fault::new("refused", Exit::Unavailable, error),
        CallError::Io(_) => Fault::new("io", Exit::Io, error),
        CallError::Protocol(_) => Fault::new("protocol", Exit::Software, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_the_configuration_are_told_by_line_and_key_only() {
        let details = json!({ "file": "/home/jo/x", "problems": [{ "line": 3, "key": "account.address", "message": "jo@example.org is no" }] });
        assert_eq!(keys_of(&details), json!([{ "line": 3, "key": "account.address" }]));
        assert_eq!(keys_of(&json!({})), Value::Null);
    }
}
