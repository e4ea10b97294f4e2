//! The running gateway of a self-check, its clients, and what earlier steps
//! left for later ones.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Seen;
use crate::account::{AccountId, demo};
use crate::config::{Config, Endpoint, TlsMode};
use crate::demo::client::http::HttpClient;
use crate::demo::client::imap::ImapClient;
use crate::demo::client::smtp::SmtpClient;
use crate::demo::provider::Provider;
use crate::floor::receipt::Receipt;
use crate::gateway::Gateway;
use crate::outbox::{Hold, HoldId};

/// How often something is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// An error of a client or of the gateway, as a step tells it.
pub(super) fn why(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// `Ok` where `holds`, else the reason.
pub(super) fn must(holds: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(reason()) }
}

/// Asks `look` until it finds something, or `limit` is over.
pub(super) async fn wait_for<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if started.elapsed() > limit {
            return None;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Where the delivered message is shown.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) mailbox: String,
    pub(super) uid: u32,
    /// Its octets as a person's session sees them.
    pub(super) shown: Vec<u8>,
}

pub(super) struct Stage {
    gateway: Gateway,
    folder: PathBuf,
    imap: Endpoint,
    smtp: Endpoint,
    pub(super) web: HttpClient,
    pub(super) place: Option<Place>,
    pub(super) hold: Option<HoldId>,
    /// The approver's sign-in.
    pub(super) cookie: Option<String>,
    /// The form that approved: csrf, hash, nonce.
    pub(super) form: Option<[String; 3]>,
    pub(super) receipt: Option<Receipt>,
}

impl Stage {
    pub(super) async fn set(folder: &Path) -> Result<Stage, String> {
        let config = Config::embedded(folder);
        let certificate = config.certs_dir.join(crate::config::certs::CERT_FILE);
        let gateway = Gateway::start(config).await.map_err(why)?;
        let addresses = gateway.addresses();
        let endpoint = |list: &[std::net::SocketAddr], what: &str| {
            let port = list.first().ok_or_else(|| format!("no {what} listener"))?.port();
            Ok::<_, String>(Endpoint {
                host: "localhost".to_owned(),
                port,
                tls: TlsMode::Implicit,
                ca: Some(certificate.clone()),
            })
        };
        let imap = endpoint(&addresses.imaps, "IMAP")?;
        let smtp = endpoint(&addresses.submissions, "submission")?;
        let web = *addresses.web.first().ok_or("no web listener")?;
        let web = HttpClient::new(web, &format!("localhost:{}", web.port()));
        let folder = folder.to_owned();
        Ok(Stage { gateway, folder, imap, smtp, web, place: None, hold: None, cookie: None, form: None, receipt: None })
    }

    pub(super) fn listening(&self) -> String {
        format!("IMAP on {}, submission on {}, pages at {}", self.imap.port, self.smtp.port, self.web.origin())
    }

    pub(super) async fn clear(self) -> Seen {
        self.gateway.shutdown().await;
        Ok("every listener and connection closed".to_owned())
    }

    pub(super) fn provider(&self) -> Result<&Provider, String> {
        self.gateway.provider().ok_or_else(|| "the embedded provider doesn't run".to_owned())
    }

    pub(super) fn core(&self) -> &crate::gateway::core::Core {
        self.gateway.core()
    }

    /// The file with the public keys of receipts.
    pub(super) fn public_keys(&self) -> PathBuf {
        self.folder.join("state").join(crate::gateway::core::PUBLIC_KEY_FILE)
    }

    pub(super) async fn imap(&self, key: &str) -> Result<ImapClient, String> {
        ImapClient::sign_in(&self.imap, demo::ADDRESS, key).await.map_err(why)
    }

    pub(super) async fn smtp(&self, key: &str) -> Result<SmtpClient, String> {
        SmtpClient::sign_in(&self.smtp, demo::ADDRESS, key).await.map_err(why)
    }

    pub(super) fn account(&self) -> AccountId {
        AccountId(demo::ADDRESS.into())
    }

    pub(super) fn place(&self) -> Result<&Place, String> {
        self.place.as_ref().ok_or_else(|| "the message was not found in a lane".to_owned())
    }

    pub(super) fn hold_id(&self) -> Result<&HoldId, String> {
        self.hold.as_ref().ok_or_else(|| "nothing was held".to_owned())
    }

    /// The hold as the gateway has it now.
    pub(super) fn hold(&self) -> Result<Hold, String> {
        let found = self.core().outbox.get(&self.account(), self.hold_id()?).map_err(why)?;
        found.ok_or_else(|| "the gateway doesn't know the hold".to_owned())
    }

    /// The link of the hold's page, as notices have it.
    pub(super) fn link(&self) -> Result<String, String> {
        Ok(format!("{}/held/{}", self.web.origin(), self.hold_id()?))
    }
}
