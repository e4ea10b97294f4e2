//! The command line: one file per verb.
//!
//! Promises: exit codes of sysexits.h; `--json` prints one JSON value on
//! standard output, failures too; no secret is taken as an argument. Doesn't
//! know: how to approve anything; only the approval page can.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::{self, Config, Overrides};

mod approver;
mod backfill;
mod check;
mod corrections;
mod demo;
pub mod doctor;
pub mod eval;
pub mod exit;
mod explain;
mod gate;
mod held;
mod identity;
mod init;
mod key;
mod ledger;
mod pin;
mod receipt;
mod replay;
mod secrets;
mod serve;
mod show;
mod train;

use exit::{Exit, Failure, Outcome};

const AFTER_HELP: &str = "\
Exit codes: 0 done, 64 usage, 65 wrong or unknown data, 66 no input, 69 a server can't be reached, \
70 internal, 73 can't write, 74 input or output, 75 try again later, 76 a server breaks its protocol, 77 not allowed, 78 configuration; \
`receipt verify` has its own (see its help).

Environment: TOLLGATE_CONFIG, TOLLGATE_LOG (log filter), and TOLLGATE_<SECTION>_<KEY> for each key of \
gateway.toml outside [[account]], such as TOLLGATE_LISTEN_WEB.";

/// An SMTP and IMAP gateway: lanes for what comes in, a person's approval for
/// what an agent sends, a receipt for every approval.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, about, after_help = AFTER_HELP, infer_long_args = false)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Flags of every verb.
#[derive(Debug, Clone, Args)]
pub struct Globals {
    /// The configuration [default: ./gateway.toml, else
    /// $XDG_CONFIG_HOME/tollgate/gateway.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The state folder, in place of the configured one
    #[arg(long, global = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// The folder of the certificate made at first start, in place of the
    /// configured one
    #[arg(long, global = true, value_name = "DIR")]
    pub certs_dir: Option<PathBuf>,
    /// Print JSON for scripts
    #[arg(long, global = true)]
    pub json: bool,
}

impl Globals {
    /// Settings of the command line.
    pub fn overrides(&self) -> Overrides {
        Overrides { state_dir: self.state_dir.clone(), certs_dir: self.certs_dir.clone() }
    }

    /// The configuration, or everything that is wrong with it.
    pub fn load(&self) -> Result<Config, Failure> {
        config::load(self.config.as_deref(), &config::process_env(), &self.overrides()).map_err(|problems| Failure {
            details: Some(check::problems_json(&problems)),
            ..Failure::new(Exit::Config, "config", problems)
        })
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway (what happens without a verb)
    Serve,
    /// Print what would run, and every problem at once
    Check,
    /// Try everything that a running gateway relies on, reading only
    Doctor(doctor::DoctorArgs),
    /// Write a configuration for your own account, with keys and a PIN
    Init(Box<init::InitArgs>),
    /// App passwords of people's mail clients and of agents
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Submissions that wait for approval (approving takes the web page)
    #[command(subcommand)]
    Held(held::HeldCommand),
    /// Receipts of approvals
    #[command(subcommand)]
    Receipt(receipt::ReceiptCommand),
    /// The numbered, hash-chained record of everything that was decided
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// The key that receipts are signed with
    #[command(subcommand)]
    Identity(identity::IdentityCommand),
    /// Say why a message is in its lane
    Explain(explain::ExplainArgs),
    /// Say what would move if the stored decisions were made now, or under
    /// other thresholds; nothing moves
    Replay(replay::ReplayArgs),
    /// Put mail from before Tollgate into lanes, or read Sent for whom you know
    Backfill(backfill::BackfillArgs),
    /// What people corrected and pinned
    #[command(subcommand)]
    Corrections(corrections::CorrectionsCommand),
    /// Measure lanes against labelled mail
    Eval(eval::EvalArgs),
    /// Make the offline scorer's weights from labelled mail
    Train(train::TrainArgs),
    /// The PIN of the approval page, and senders whose lane you decide
    #[command(subcommand)]
    Pin(pin::PinCommand),
    /// The passkeys that may approve
    #[command(subcommand)]
    Approver(approver::ApproverCommand),
    /// Run the sample account in a private temporary folder
    Demo(demo::DemoArgs),
}

/// Runs the program with this process's arguments.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Printing can only fail where nobody reads.
            let _ = e.print();
            return if e.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    let json = cli.globals.json;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(json);
            failure.exit.into()
        }
    }
}

fn run(cli: Cli) -> Outcome {
    let globals = &cli.globals;
    match cli.command {
        Some(Command::Check) => check::run(globals),
        Some(Command::Doctor(args)) => doctor::run(globals, &args),
        Some(Command::Init(args)) => init::run(globals, &args),
        Some(Command::Key(command)) => key::run(globals, command),
        Some(Command::Held(command)) => held::run(globals, command),
        Some(Command::Receipt(command)) => receipt::run(globals, command),
        Some(Command::Ledger(command)) => ledger::run(globals, command),
        Some(Command::Identity(command)) => identity::run(globals, command),
        Some(Command::Explain(args)) => explain::run(globals, args),
        Some(Command::Replay(args)) => replay::run(globals, args),
        Some(Command::Backfill(args)) => backfill::run(globals, args),
        Some(Command::Corrections(command)) => corrections::run(globals, command),
        Some(Command::Eval(args)) => eval::command(globals, &args),
        Some(Command::Train(args)) => train::run(globals, &args),
        Some(Command::Pin(command)) => pin::run(globals, command),
        Some(Command::Approver(command)) => approver::run(globals, command),
        Some(Command::Demo(args)) => demo::run(globals, &args),
        Some(Command::Serve) | None => serve::run(globals.load()?),
    }
}

/// Prints an answer: JSON, or what `human` makes of it.
fn print(globals: &Globals, answer: &serde_json::Value, human: impl FnOnce(&serde_json::Value) -> String) {
    if globals.json {
        exit::say(&answer.to_string());
    } else {
        exit::say(&human(answer).to_string());
    }
}

/// The account that was named, or the only one that is configured.
fn account_or_only(config: &Config, named: Option<String>) -> Result<String, Failure> {
    match (named, config.accounts.as_slice()) {
        (Some(name), _) => Ok(name),
        (None, [only]) => Ok(only.address.to_string()),
        (None, several) => {
            let list: Vec<String> = several.iter().map(|a| a.address.to_string()).collect();
            let message = format!("--account is needed: {}", list.join(", "));
            Err(Failure::new(Exit::Usage, "account", message))
        }
    }
}
