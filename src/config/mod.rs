//! `gateway.toml` into typed domain values, once, at start.
//!
//! Promises: whoever holds a [`Config`] holds checked values; every problem of
//! a file is reported at once, with the line. Doesn't know: whether the
//! provider answers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::lane::{LanePreset, Thresholds};

mod account;
pub mod certs;
mod der;
mod files;
mod load;
mod notify;
mod perception;
pub mod private;
mod problems;
mod sections;
mod table;

pub use load::{Env, FILE_NAME, Overrides, load, locate, parse, process_env, user_file, user_state};
pub use perception::{KeySource, ModelConfig, Perception};
pub use problems::{Problem, Problems};
pub use sections::{
    DEFAULT_HOLD_TTL, DEFAULT_IMAPS_PORT, DEFAULT_MAX_HELD_BYTES, DEFAULT_MAX_HELD_BYTES_PER_KEY, DEFAULT_MAX_HOLDS,
    DEFAULT_MAX_HOLDS_PER_KEY, DEFAULT_MAX_MESSAGE_BYTES, DEFAULT_MAX_RECIPIENTS, DEFAULT_RECEIPT_TTL,
    DEFAULT_SUBMISSIONS_PORT, DEFAULT_WEB_PORT, loopback_host, web_host,
};

/// The address that the embedded provider's account must have.
pub const EMBEDDED_ADDRESS: &str = "demo@example.org";
/// The authserv-id that the embedded provider's sample mail bears.
pub const EMBEDDED_AUTHSERV: &str = "mx.example.org";

/// Everything that runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where durable state lives.
    pub state_dir: PathBuf,
    /// A file outside `state_dir` that tells a restored backup from the state
    /// that was left.
    pub witness_file: PathBuf,
    /// Where first-start certificates live.
    pub certs_dir: PathBuf,
    /// The host name in links, greetings and Message-IDs of our own mail.
    pub hostname: String,
    /// Addresses that each face listens on.
    pub listen: Listen,
    /// A certificate chain and key of the operator's own (PEM).
    pub tls: Option<TlsFiles>,
    /// Sign-in and proof on the approval page.
    pub approval: ApprovalMode,
    /// First part of links in notices, without a final slash; also the only
    /// accepted Origin, byte for byte.
    pub web_url: String,
    /// What is held beside the floor.
    pub hold: HoldMode,
    /// How long a hold waits for a person (default 72 h).
    pub hold_ttl: Duration,
    /// How long a receipt lives and covers retries (default 24 h).
    pub receipt_ttl: Duration,
    /// Largest message taken, in octets.
    pub max_message_bytes: u64,
    /// Most recipients of one submission.
    pub max_recipients: usize,
    /// Most open holds of one key.
    pub max_holds_per_key: usize,
    /// What one agent key may use up.
    pub agent: AgentLimits,
    /// Most open holds of all agents.
    pub max_holds: usize,
    /// Most octets of one key's open holds.
    pub max_held_bytes_per_key: u64,
    /// Most octets of all agents' open holds.
    pub max_held_bytes: u64,
    /// Thresholds of the rule.
    pub thresholds: Thresholds,
    /// Who is told that something waits.
    pub notify: Option<Notify>,
    /// Models that judge mail; without, the offline scorer alone does.
    pub perception: Option<Perception>,
    /// The accounts, at least one.
    pub accounts: Vec<AccountConfig>,
}

/// What one agent key may use up over IMAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// Octets that it adds to mailboxes a day (UTC), by APPEND and COPY.
    pub bytes_per_day: u64,
    /// Commands a minute.
    pub commands_per_minute: u64,
}

/// Where each face listens; an empty list turns a listener off.
#[derive(Debug, Clone, Default)]
pub struct Listen {
    /// IMAP over implicit TLS.
    pub imaps: Vec<SocketAddr>,
    /// Submission over implicit TLS.
    pub submissions: Vec<SocketAddr>,
    /// IMAP with STARTTLS before a sign-in.
    pub imap_starttls: Vec<SocketAddr>,
    /// Submission with STARTTLS before a sign-in.
    pub submission_starttls: Vec<SocketAddr>,
    /// IMAP without TLS; loopback only.
    pub imap_plain: Vec<SocketAddr>,
    /// Submission without TLS; loopback only.
    pub smtp_plain: Vec<SocketAddr>,
    /// The web face (plain HTTP, loopback only).
    pub web: Vec<SocketAddr>,
}

/// An operator's own certificate.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Chain, PEM.
    pub cert: PathBuf,
    /// Key, PEM, mode 0600.
    pub key: PathBuf,
}

/// What an approval needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalMode {
    /// The PIN with every approval.
    Pin,
    /// A passkey's signature over each approval.
    Passkey,
    /// The link in the notice alone; a signed-in person may also use the PIN.
    Link,
}

impl ApprovalMode {
    /// Its name in the file, and the method of payloads that are shown.
    pub fn method(self) -> &'static str {
        match self {
            ApprovalMode::Pin => "pin",
            ApprovalMode::Passkey => "passkey",
            ApprovalMode::Link => "link",
        }
    }

    /// Whether an approval by `method` is taken.
    pub fn takes(self, method: &str) -> bool {
        method == self.method() || (self == ApprovalMode::Link && method == ApprovalMode::Pin.method())
    }
}

/// What is held beside an agent's mail, which is always held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldMode {
    /// Only AI-drafted mail.
    Ai,
    /// Also a person's mail to outside the account's domain.
    External,
    /// All mail.
    All,
}

/// Who is told, outside of mail, how many messages wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// Gets `{"waiting": N}` by POST.
    pub webhook: Option<NotifyUrl>,
    /// Gets a line of text by POST, as ntfy takes it.
    pub ntfy: Option<NotifyUrl>,
    /// A program and its arguments; the line of text follows.
    pub command: Vec<String>,
}

/// Where a notification goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyUrl {
    /// The server.
    pub endpoint: Endpoint,
    /// Host and port as they stand in the URL.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

/// One account.
#[derive(Debug, Clone)]
pub struct AccountConfig {
    /// The account's address; names the account everywhere.
    pub address: crate::mail::address::Address,
    /// Other addresses that the person may write from.
    pub aliases: Vec<crate::mail::address::Address>,
    /// Where the mail is.
    pub provider: Provider,
    /// Lanes to mailboxes.
    pub lanes: LanePreset,
    /// IANA time zone that deadlines are read in.
    pub timezone: String,
    /// The authserv-ids whose Authentication-Results are believed.
    pub authserv: Vec<String>,
    /// How often a provider without IDLE is polled.
    pub poll: Duration,
    /// Most connections to the IMAP server at a time, the watching one
    /// included; at least [`MIN_CONNECTIONS`].
    pub connections: usize,
    /// Who puts what was held and is sent into Sent.
    pub sent: SentCopy,
}

/// Who puts a message that was held, and is sent, into the Sent mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentCopy {
    /// The provider does it with every message that it takes.
    Provider,
    /// The gateway, once.
    Append,
    /// Nobody but the client that submitted.
    Off,
}

impl SentCopy {
    /// What is right for a submission server where nothing is said: Google
    /// and Microsoft keep a copy of what they send.
    pub fn of(host: &str) -> SentCopy {
        const KEEPERS: [&str; 5] = ["gmail.com", "googlemail.com", "office365.com", "outlook.com", "hotmail.com"];
        let host = host.to_ascii_lowercase();
        let keeps = |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        if KEEPERS.into_iter().any(keeps) { SentCopy::Provider } else { SentCopy::Append }
    }
}

impl AccountConfig {
    /// Whether the gateway itself can sign in at the provider. Without it
    /// there are no keys, and nothing is held.
    pub fn stores_secret(&self) -> bool {
        match &self.provider {
            Provider::Embedded => true,
            Provider::Network(network) => network.secret != SecretSource::Login,
        }
    }
}

/// One connection watches, one reads bodies, one serves a passed-through
/// mailbox.
pub const MIN_CONNECTIONS: usize = 3;

/// The provider of an account.
#[derive(Debug, Clone)]
pub enum Provider {
    /// The embedded provider with sample mail (demo keys and PIN apply).
    Embedded,
    /// A provider on the network.
    Network(Box<Network>),
}

/// A provider on the network.
#[derive(Debug, Clone)]
pub struct Network {
    /// Its IMAP server.
    pub imap: Endpoint,
    /// User name at its IMAP server.
    pub imap_user: String,
    /// Its submission server.
    pub smtp: Endpoint,
    /// User name at its submission server.
    pub smtp_user: String,
    /// The password of both.
    pub secret: SecretSource,
}

/// A server's address and how TLS is used there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// TLS from the first octet, by STARTTLS, or none (loopback only).
    pub tls: TlsMode,
    /// PEM file of a CA that is trusted beside the system's.
    pub ca: Option<PathBuf>,
}

/// How TLS starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// From the first octet.
    Implicit,
    /// By STARTTLS; a server that doesn't offer it is refused.
    StartTls,
    /// None; accepted for loopback hosts only.
    None,
}

/// Where a provider password comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In the file itself.
    Inline(String),
    /// First line of a file.
    File(PathBuf),
    /// First line of a command's output; arguments as given, no shell.
    Command(Vec<String>),
    /// Nothing is stored: each session signs in with the person's own login
    /// at the provider (`auth = "login"`).
    Login,
}

impl std::fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SecretSource::Inline(_) => f.write_str("Inline(…)"),
            SecretSource::File(p) => write!(f, "File({})", p.display()),
            SecretSource::Command(c) => write!(f, "Command({})", c.first().map_or("", |s| s)),
            SecretSource::Login => f.write_str("Login"),
        }
    }
}

/// Seconds since 1970 by the wall clock.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
