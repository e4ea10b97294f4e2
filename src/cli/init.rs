//! `tollgate init`: from an address to a gateway that is ready to start.
//!
//! The order matters: everything that can fail without leaving a trace comes
//! first (names, passwords, logins), then the password file, the state, and
//! the configuration last. A file that is already there is never replaced.

mod preset;
mod write;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, gate, secrets, show};
use crate::account::Role;
use crate::config::certs::{self, CertInfo};
use crate::config::{self, Config, TlsMode, private};
use crate::gateway::control::{self, Pin, Request};
use crate::gateway::core::Core;
use crate::mail::address::Address;
use crate::upstream::imap::{Connection, ImapError, ImapTarget};
use crate::upstream::smtp::{Submission, SubmissionError};
use preset::Servers;

/// Name of the person's key.
const PERSON_KEY_NAME: &str = "mail client";
/// Name of the agent's key.
const AGENT_KEY_NAME: &str = "agent";

/// The account and where its mail is.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The provider; `generic` takes the servers from --imap-host and --smtp-host
    #[arg(long, value_enum)]
    preset: Preset,
    /// The account's address
    #[arg(long)]
    address: String,
    /// File of the app password at the provider (its first line; `-`: standard
    /// input); without it the password is asked on the terminal
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// File of the PIN for approvals (its first line; `-`: standard input,
    /// after the password where that comes from there too); without it the PIN
    /// is asked twice on the terminal
    #[arg(long, value_name = "FILE")]
    pin_file: Option<PathBuf>,
    /// Where the configuration goes [default: --config, else
    /// $XDG_CONFIG_HOME/tollgate/gateway.toml]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// IANA time zone that deadlines are read in [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// IMAP server
    #[arg(long, value_name = "HOST")]
    imap_host: Option<String>,
    /// Its port [default: the usual one]
    #[arg(long, value_name = "PORT")]
    imap_port: Option<u16>,
    /// How TLS starts there
    #[arg(long, value_enum, value_name = "TLS")]
    imap_tls: Option<TlsArg>,
    /// User name there [default: the address, or what the preset says]
    #[arg(long, value_name = "NAME")]
    imap_user: Option<String>,
    /// Submission server
    #[arg(long, value_name = "HOST")]
    smtp_host: Option<String>,
    /// Its port [default: the usual one]
    #[arg(long, value_name = "PORT")]
    smtp_port: Option<u16>,
    /// How TLS starts there
    #[arg(long, value_enum, value_name = "TLS")]
    smtp_tls: Option<TlsArg>,
    /// User name there [default: the address]
    #[arg(long, value_name = "NAME")]
    smtp_user: Option<String>,
    /// PEM file of a CA that is trusted beside the system's, for both servers
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// Providers whose servers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// Gmail and Google Workspace, by app password
    Gmail,
    /// Fastmail, by app password
    Fastmail,
    /// iCloud Mail, by app-specific password
    Icloud,
    /// Any other provider
    Generic,
}

/// How TLS starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TlsArg {
    /// From the first octet
    Implicit,
    /// By STARTTLS
    Starttls,
    /// None; loopback hosts only
    None,
}

impl From<TlsArg> for TlsMode {
    fn from(tls: TlsArg) -> TlsMode {
        match tls {
            TlsArg::Implicit => TlsMode::Implicit,
            TlsArg::Starttls => TlsMode::StartTls,
            TlsArg::None => TlsMode::None,
        }
    }
}

pub(super) fn run(globals: &Globals, args: &InitArgs) -> Outcome {
    let address = Address::parse(&args.address)
        .map_err(|e| Failure::new(Exit::Usage, "address", format!("{}: {e}", args.address)))?;
    let output = output(globals, args)?;
    let password_path = write::password_path(&output, &address);
    for path in [&output, &password_path] {
        if path.exists() {
            let message = format!("{} is there already and stays as it is; name another with --output", path.display());
            return Err(Failure::new(Exit::CantCreate, "exists", message));
        }
    }
    let servers = preset::servers(args, &address)?;
    let prompt = format!("{} for {address}: ", servers.password_name);
    let password = secrets::password(args.password_file.as_deref(), &prompt)?;
    // Apps passwords are shown in groups; Google's are entered without spaces.
    let password = match args.preset {
        Preset::Gmail => Zeroizing::new(password.replace(' ', "")),
        Preset::Fastmail | Preset::Icloud | Preset::Generic => password,
    };
    let runtime = gate::runtime()?;
    runtime.block_on(test_logins(&servers, &password))?;
    eprintln!("The logins at {} and {} work.", servers.imap.host, servers.smtp.host);
    let pin = secrets::pin(args.pin_file.as_deref())?;

    let text = write::configuration(globals, args, &address, &servers, &password_path);
    let folder = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|e| cannot(folder, &e))?;
    private::create(&password_path, format!("{}\n", password.as_str()).as_bytes())
        .map_err(|e| cannot(&password_path, &e))?;
    let made = runtime.block_on(make(globals, &output, &text, &address, &pin));
    let (config, answers, cert) = made.inspect_err(|_| {
        // Nothing refers to it; another try makes it again.
        let _ = std::fs::remove_file(&password_path);
    })?;
    super::print(globals, &report(&output, &config, &answers, &cert), said);
    Ok(())
}

fn cannot(path: &Path, e: &std::io::Error) -> Failure {
    Failure::new(Exit::CantCreate, "write", format!("{}: {e}", path.display()))
}

fn output(globals: &Globals, args: &InitArgs) -> Result<PathBuf, Failure> {
    let named = args.output.clone().or_else(|| globals.config.clone());
    named.or_else(|| config::user_file(&config::process_env())).ok_or_else(|| {
        Failure::new(Exit::Usage, "output", "neither XDG_CONFIG_HOME nor HOME is set; name a file with --output")
    })
}

async fn test_logins(servers: &Servers, password: &Zeroizing<String>) -> Outcome {
    let target =
        ImapTarget { endpoint: servers.imap.clone(), user: servers.imap_user.clone(), password: password.clone() };
    let connection = Connection::open(&target).await.map_err(|e| match e {
        ImapError::Auth { .. } => refused(&format!("{} (as {})", e, servers.imap_user), servers),
        other => unreachable_server("IMAP", &other),
    })?;
    // The login was what counted.
    let _ = connection.logout().await;
    let submission = Submission::connect(&servers.smtp, &servers.smtp_user, password).await.map_err(|e| match e {
        SubmissionError::Auth(_) => refused(&format!("{} (as {})", e, servers.smtp_user), servers),
        other => unreachable_server("submission", &other),
    })?;
    submission.quit().await;
    Ok(())
}

fn refused(what: &str, servers: &Servers) -> Failure {
    Failure::new(Exit::NoPerm, "login", format!("{what}. {}", servers.hint))
}

fn unreachable_server(which: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Unavailable, "server", format!("{which} server: {error}"))
}

/// What `KeyAdd` answered for the person and for the agent.
struct Answers {
    person: Value,
    agent: Value,
}

/// Keys, PIN and certificate, and the configuration last.
async fn make(
    globals: &Globals,
    output: &Path,
    text: &str,
    address: &Address,
    pin: &str,
) -> Result<(Config, Answers, CertInfo), Failure> {
    let config = config::parse(text, output, &config::process_env(), &globals.overrides())
        .map_err(|problems| Failure::new(Exit::Config, "config", problems))?;
    let (_, cert) = certs::server_config(&config).map_err(|e| Failure::new(Exit::CantCreate, "certificate", e))?;
    let core = Core::open(config.clone()).await.map_err(gate::core_failure)?;
    let add = |role, name: &str| {
        control::execute(&core, Request::KeyAdd { account: address.to_string(), role, name: name.to_owned() })
    };
    let person = add(Role::Person, PERSON_KEY_NAME).await.map_err(|e| gate::refused(&e))?;
    let agent = add(Role::Agent, AGENT_KEY_NAME).await.map_err(|e| gate::refused(&e))?;
    let set = Request::PinSet { account: address.to_string(), pin: Pin(pin.to_owned()) };
    control::execute(&core, set).await.map_err(|e| gate::refused(&e))?;
    private::create(output, text.as_bytes()).map_err(|e| cannot(output, &e))?;
    Ok((config, Answers { person, agent }, cert))
}

fn report(output: &Path, config: &Config, answers: &Answers, cert: &CertInfo) -> Value {
    let port = |list: &[std::net::SocketAddr]| list.first().map(std::net::SocketAddr::port);
    json!({
        "config": output,
        "state_dir": config.state_dir,
        "address": answers.person["account"],
        "person_key": answers.person["key"],
        "agent_key": answers.agent["key"],
        "host": "localhost",
        "imap_port": port(&config.listen.imaps),
        "submission_port": port(&config.listen.submissions),
        "web_url": config.web_url,
        "certificate": cert.path,
        "certificate_sha256": cert.fingerprint_sha256,
    })
}

fn said(v: &Value) -> String {
    let t = |name: &str| show::text(&v[name]);
    let here = match Path::new(config::FILE_NAME).exists() {
        true => "\n(without --config, the gateway.toml of this folder would be used)",
        false => "",
    };
    format!(
        "Written: {}\n\n\
         In your mail client, for incoming and outgoing mail:\n\
         \x20 user name       {}\n  password        {}\n\
         \x20 IMAP            {} port {}, TLS/SSL, normal password\n\
         \x20 SMTP            {} port {}, TLS/SSL, normal password\n\n\
         For an AI agent, the same servers and user name with this password; what it sends waits for you:\n\
         \x20 password        {}\n\n\
         Both passwords are shown once. Approvals: {}/ with your PIN.\n\
         The client must be told to trust {}\n  SHA-256 {}\n\n\
         Start it: tollgate --config {}{here}",
        t("config"),
        t("address"),
        t("person_key"),
        t("host"),
        t("imap_port"),
        t("host"),
        t("submission_port"),
        t("agent_key"),
        t("web_url"),
        t("certificate"),
        t("certificate_sha256"),
        t("config"),
    )
}
