//! `tollgate serve`, and `tollgate` alone: runs until it is told to end.

use std::net::SocketAddr;

use super::exit::{Exit, Failure, Outcome};
use crate::account::demo;
use crate::config::certs::CertInfo;
use crate::config::{Config, Listen, Provider};
use crate::gateway::{Gateway, StartError};

/// The variable that sets the log filter.
const LOG_VARIABLE: &str = "TOLLGATE_LOG";
/// Its default.
const LOG_DEFAULT: &str = "info";

/// Logs to standard error, so that standard output is for what was asked.
pub(super) fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env(LOG_VARIABLE)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(LOG_DEFAULT));
    // It fails only where logging was started before, which is as good.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}

/// What a start says: where it listens, what it shows to clients, what to do next.
pub(super) fn banner(config: &Config, listen: &Listen, cert: &CertInfo) -> String {
    let mut lines = vec![format!("Tollgate {} runs.", env!("CARGO_PKG_VERSION"))];
    let addresses = |list: &[SocketAddr]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    for (name, list) in [
        ("IMAP over TLS", &listen.imaps),
        ("submission over TLS", &listen.submissions),
        ("IMAP, STARTTLS", &listen.imap_starttls),
        ("submission, STARTTLS", &listen.submission_starttls),
        ("IMAP without TLS", &listen.imap_plain),
        ("submission without TLS", &listen.smtp_plain),
    ] {
        if !list.is_empty() {
            lines.push(format!("  {name:<23} {}", addresses(list)));
        }
    }
    if !listen.web.is_empty() {
        lines.push(format!("  {:<23} {}/", "approval page", web_url(config, listen)));
    }
    lines.push(format!("  {:<23} {}", "certificate", cert.path.display()));
    lines.push(format!("  {:<23} {}", "  its SHA-256", cert.fingerprint_sha256));
    if let Some(replaced) = cert.replaced {
        lines.push(format!("A new certificate was made: {replaced}. Clients must be told again."));
    }
    if cert.made_now {
        lines.push("Mail clients must be told to trust it: see certs/README.md.".to_owned());
    }
    if config.accounts.iter().any(|a| matches!(a.provider, Provider::Embedded)) {
        lines.push(format!(
            "Sample account {} (these are known to everybody and open no other account):\n\
             \x20 a person's mail client  {}\n  an AI agent             {}\n  PIN for approvals       {}",
            demo::ADDRESS,
            demo::PERSON_KEY,
            demo::AGENT_KEY,
            demo::PIN
        ));
        lines.push(next_steps(config, listen));
    }
    lines.join("\n")
}

/// What a person who sees this for the first time can do.
fn next_steps(config: &Config, listen: &Listen) -> String {
    let port = |list: &[SocketAddr]| list.first().map_or_else(|| "(off)".to_owned(), |a| a.port().to_string());
    [
        "What to do next:".to_owned(),
        format!(
            "  1. Add an account to your mail client: user {}, password the first key above,\n\
             \x20    IMAP localhost port {} and SMTP localhost port {}, both SSL/TLS. Trust the certificate.",
            demo::ADDRESS,
            port(&listen.imaps),
            port(&listen.submissions)
        ),
        "  2. Open the folder Lanes. Drag a message to another lane: that corrects it.".to_owned(),
        format!(
            "  3. Send a message with the agent's key (README.md shows how). It is held; a notice\n\
             \x20    appears in INBOX. Click its link, or open {}/ and approve it with the PIN.",
            web_url(config, listen)
        ),
        "  4. `tollgate init --help` sets up your own account. Ctrl-C stops.".to_owned(),
    ]
    .join("\n")
}

/// The page's address; port 0 means the port that the system gave.
fn web_url(config: &Config, listen: &Listen) -> String {
    match (config.web_url.strip_suffix(":0"), listen.web.first()) {
        (Some(host), Some(address)) => format!("{host}:{}", address.port()),
        _ => config.web_url.clone(),
    }
}

/// Runs the gateway until SIGINT or SIGTERM.
pub(super) fn run(config: Config) -> Outcome {
    start_logging();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Exit::Software, "runtime", e))?;
    runtime.block_on(until_told(config))
}

async fn until_told(config: Config) -> Outcome {
    let gateway = Gateway::start(config).await.map_err(start_failure)?;
    tell(&banner(&gateway.core().config, &listening(&gateway), gateway.cert()));
    told_to_end().await.map_err(|e| Failure::new(Exit::Software, "signal", e))?;
    tell("Stopping.");
    gateway.shutdown().await;
    Ok(())
}

/// Says something to whoever started it; a gateway goes on when nobody reads.
fn tell(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Where the gateway really listens.
fn listening(gateway: &Gateway) -> Listen {
    let a = gateway.addresses().clone();
    Listen {
        imaps: a.imaps,
        submissions: a.submissions,
        imap_starttls: a.imap_starttls,
        submission_starttls: a.submission_starttls,
        imap_plain: a.imap_plain,
        smtp_plain: a.smtp_plain,
        web: a.web,
    }
}

/// What a failed start means to whoever started it.
pub(super) fn start_failure(error: StartError) -> Failure {
    match error {
        StartError::Core(e) => super::gate::core_failure(e),
        StartError::Store(e) => super::gate::core_failure(e.into()),
        StartError::Recover(_) => Failure::new(Exit::Io, "state", error),
        StartError::Cert(e) => Failure::new(Exit::Config, "certificate", e),
        StartError::Listen { .. } => Failure::new(Exit::Unavailable, "listen", error),
        StartError::Provider(_) => Failure::new(Exit::Unavailable, "provider", error),
        StartError::Models(_) => Failure::new(Exit::Config, "models", error),
    }
}

/// Resolves at SIGINT or SIGTERM.
pub(super) async fn told_to_end() -> std::io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}
