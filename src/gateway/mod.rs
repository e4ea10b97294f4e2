//! Wiring, supervision, shutdown.
//!
//! Promises: every listener is bound before anything else starts, so a taken
//! port stops the start; what is started here is ended here. Doesn't know:
//! any protocol.

mod arrivals;
pub mod control;
pub mod core;
pub mod history;
mod listen;
mod notices;
mod notify;
mod outbox_view;
mod removal;
pub mod replay;
mod reports;
pub mod scoring;
mod sent;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::account::{AccountId, demo as demo_keys};
use crate::config::certs::{self, CertError, CertInfo};
use crate::config::{AccountConfig, Config, Endpoint, Network, Provider as ProviderConfig, SecretSource, TlsMode};
use crate::demo::provider::{Options, Provider};
use crate::imap::mirror::{Mirror, Op};
use crate::imap::pool::Pool;
use crate::imap::timing::Timing;
use crate::perceive::CorrespondentRecord;
use crate::store::blob::BlobId;
use crate::store::{Store, StoreError, Table, get_json, put_json, read, write};
use crate::{imap, smtp, web};

use self::core::{BackfillRequest, Core, CoreError};
use self::listen::{Begin, Face, bind};
use self::scoring::{Judges, Scoring, ScoringError};

/// How long sessions get to end after a stop.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// Folder of the embedded provider's mail, beneath the state folder.
const PROVIDER_FOLDER: &str = "provider";

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// State, keys or identity.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was under way can't be told.
    #[error(transparent)]
    Recover(#[from] crate::outbox::HoldError),
    /// The certificate.
    #[error(transparent)]
    Cert(#[from] CertError),
    /// An address can't be listened on.
    #[error("can't listen on {address} for {what}: {source}")]
    Listen {
        /// Which face.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The models.
    #[error(transparent)]
    Models(#[from] ScoringError),
    /// The embedded provider.
    #[error("the embedded provider does not start: {0}")]
    Provider(std::io::Error),
}

/// The addresses that are really listened on.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    /// IMAP over TLS.
    pub imaps: Vec<SocketAddr>,
    /// Submission over TLS.
    pub submissions: Vec<SocketAddr>,
    /// IMAP with STARTTLS.
    pub imap_starttls: Vec<SocketAddr>,
    /// Submission with STARTTLS.
    pub submission_starttls: Vec<SocketAddr>,
    /// IMAP without TLS.
    pub imap_plain: Vec<SocketAddr>,
    /// Submission without TLS.
    pub smtp_plain: Vec<SocketAddr>,
    /// The web face.
    pub web: Vec<SocketAddr>,
}

/// A running gateway.
pub struct Gateway {
    core: Arc<Core>,
    cert: CertInfo,
    addresses: Addresses,
    provider: Option<Provider>,
    mirrors: HashMap<AccountId, Arc<Mirror>>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Gateway {
    /// Starts everything that a configuration names.
    pub async fn start(config: Config) -> Result<Gateway, StartError> {
        Gateway::start_with(config, Timing::default()).await
    }

    /// As [`Gateway::start`], with waits for the provider as tests need them.
    #[doc(hidden)]
    pub async fn start_with(config: Config, timing: Timing) -> Result<Gateway, StartError> {
        let core = Arc::new(Core::open(config).await?);
        let config = core.config.clone();
        // Octets that no hold names are left from submissions that got no 250.
        let swept = match live_blobs(&core) {
            Ok(live) => core.store.blobs().sweep(&live).await?,
            // What a damaged row names isn't known: everything stays.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::error!(%error, "unfinished submissions are not removed");
                0
            }
            Err(error) => return Err(error.into()),
        };
        // Before anybody can decide: a restored backup must not look alive.
        core.outbox.recover().await?;
        if swept > 0 {
            tracing::info!("{swept} unfinished submissions were removed");
        }
        let (tls, cert) = certs::server_config(&config)?;
        let imaps = bind(Face::Imaps, &config.listen.imaps).await?;
        let submissions = bind(Face::Submissions, &config.listen.submissions).await?;
        let imap_starttls = bind(Face::ImapStartTls, &config.listen.imap_starttls).await?;
        let submission_starttls = bind(Face::SubmissionStartTls, &config.listen.submission_starttls).await?;
        let imap_plain = bind(Face::ImapPlain, &config.listen.imap_plain).await?;
        let smtp_plain = bind(Face::SmtpPlain, &config.listen.smtp_plain).await?;
        let pages = bind(Face::Web, &config.listen.web).await?;
        let addresses = Addresses {
            imaps: listen::addresses(&imaps),
            submissions: listen::addresses(&submissions),
            imap_starttls: listen::addresses(&imap_starttls),
            submission_starttls: listen::addresses(&submission_starttls),
            imap_plain: listen::addresses(&imap_plain),
            smtp_plain: listen::addresses(&smtp_plain),
            web: listen::addresses(&pages),
        };
        // The first message must not wait for the scorer's vocabulary.
        tokio::task::spawn_blocking(crate::perceive::warm);
        let scoring = match &config.perception {
            Some(models) => Some(Arc::new(Scoring::open(models.clone(), Some(core.store.clone())).await?)),
            None => None,
        };
        let provider = embedded(&config).await?;
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let mut mirrors = HashMap::new();
        for settings in &config.accounts {
            let id = AccountId::of(&settings.address);
            let network = network(settings, provider.as_ref());
            let pool = Pool::new(id.clone(), network, core.accounts.clone(), settings.connections, timing.clone());
            let (mirror, ops) = Mirror::load(&config, id.clone(), settings.clone(), core.store.clone(), pool)?;
            // Set once: this mirror was loaded by this start.
            let _ = mirror.outbox.set(core.outbox.clone());
            if let Some(scoring) = &scoring {
                let _ = mirror.models.set(Arc::new(Judges(scoring.clone())));
            }
            tasks.spawn(imap::watch::run(mirror.clone(), ops, stopped.clone()));
            mirrors.insert(id, mirror);
        }
        if let Some(p) = &provider {
            core.outbox.set_embedded_submission(loopback(p.smtp_addr()));
        }
        connect(&core, &mirrors, provider.as_ref());
        history::connect(&core, &mirrors);
        core.outbox.set_executor(imap::deletion::executor(&mirrors));
        tasks.spawn(core.outbox.clone().run(stopped.clone()));
        tasks.spawn(supervised("control", control::serve(core.clone(), stopped.clone())));
        let url = notices::web_url(&config.web_url, addresses.web.first());
        tasks.spawn(notify::run(core.clone(), stopped.clone()));
        tasks.spawn(notices::run(core.clone(), mirrors.clone(), url, stopped.clone()));

        let imap_services = Arc::new(imap::session::Services {
            mirrors: mirrors.clone(),
            accounts: core.accounts.clone(),
            max_message_bytes: config.max_message_bytes,
            hostname: config.hostname.clone(),
            timing,
        });
        let (faces, ended) = (imap_services.clone(), stopped.clone());
        // Set once, like what `connect` sets.
        let _ = core.face.set(Arc::new(move |account, stream| {
            Box::pin(imap::console::serve(stream, account, faces.clone(), ended.clone()))
        }));
        let sent = person_sent(core.store.clone(), mirrors.clone());
        for (account, mirror) in mirrors.iter().filter(|(_, m)| m.settings.stores_secret()) {
            let (account, mirror) = (account.clone(), mirror.clone());
            tasks.spawn(sent::run(core.clone(), account, mirror, sent.clone(), stopped.clone()));
        }
        let (accounts, outbox, store) = (core.accounts.clone(), core.outbox.clone(), core.store.clone());
        let smtp_services =
            Arc::new(smtp::Services::new(config.clone(), accounts.clone(), outbox.clone(), store.clone(), sent));
        tasks.spawn(smtp::offer::run(smtp_services.clone(), stopped.clone()));
        let web_services = Arc::new(web::Services::new(config.clone(), store, outbox, accounts));
        web_services.gate.open(Arc::new(arrivals::Views(mirrors.clone())));
        if let Some(scoring) = scoring {
            let _ = web_services.models.set(Arc::new(move || scoring.figures()));
        }
        let acceptor = TlsAcceptor::from(tls);
        let (secure, upgraded) = (Begin::Tls(acceptor.clone()), Begin::StartTls(acceptor));
        for (listeners, begin) in
            [(imaps, secure.clone()), (imap_starttls, upgraded.clone()), (imap_plain, Begin::Plain)]
        {
            for l in listeners {
                tasks.spawn(listen::imap(l, begin.clone(), imap_services.clone(), stopped.clone()));
            }
        }
        for (listeners, begin) in [(submissions, secure), (submission_starttls, upgraded), (smtp_plain, Begin::Plain)] {
            for l in listeners {
                tasks.spawn(listen::smtp(l, begin.clone(), smtp_services.clone(), stopped.clone()));
            }
        }
        for l in pages {
            tasks.spawn(web::serve(l, web_services.clone(), stopped.clone()));
        }
        Ok(Gateway { core, cert, addresses, provider, mirrors, stop, tasks })
    }

    /// State, accounts and outbox.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The certificate that clients see.
    pub fn cert(&self) -> &CertInfo {
        &self.cert
    }

    /// Where it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The embedded provider, where an account uses it.
    pub fn provider(&self) -> Option<&Provider> {
        self.provider.as_ref()
    }

    /// The mirror of an account.
    pub fn mirror(&self, account: &AccountId) -> Option<&Arc<Mirror>> {
        self.mirrors.get(account)
    }

    /// Ends sessions, then everything else.
    pub async fn shutdown(mut self) {
        // Every task holds a receiver; one that is gone needs no word.
        let _ = self.stop.send(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_GRACE, all).await.is_err() {
            tracing::warn!("some sessions did not end in time");
            self.tasks.abort_all();
            while self.tasks.join_next().await.is_some() {}
        }
        if let Some(provider) = &self.provider {
            provider.stop().await;
        }
    }
}

async fn supervised<E: std::fmt::Display>(what: &'static str, task: impl Future<Output = Result<(), E>>) {
    if let Err(e) = task.await {
        tracing::error!("{what}: {e}");
    }
}

/// The octets that something names.
fn live_blobs(core: &Core) -> Result<HashSet<BlobId>, StoreError> {
    let mut live = core.outbox.live_blobs()?;
    live.extend(read(&*core.store, imap::parking::live_blobs)?);
    Ok(live)
}

/// Starts the embedded provider where an account uses it.
async fn embedded(config: &Config) -> Result<Option<Provider>, StartError> {
    let Some(account) = config.accounts.iter().find(|a| matches!(a.provider, ProviderConfig::Embedded)) else {
        return Ok(None);
    };
    let options = Options {
        users: vec![(account.address.to_string(), demo_keys::PROVIDER_PASSWORD.to_owned())],
        folder: Some(config.state_dir.join(PROVIDER_FOLDER)),
        samples: true,
        ..Options::default()
    };
    Provider::start(options).await.map(Some).map_err(StartError::Provider)
}

fn loopback(address: SocketAddr) -> Endpoint {
    Endpoint { host: address.ip().to_string(), port: address.port(), tls: TlsMode::None, ca: None }
}

/// Where an account's provider is; the embedded one has a new port at every
/// start.
fn network(account: &AccountConfig, provider: Option<&Provider>) -> Network {
    match (&account.provider, provider) {
        (ProviderConfig::Network(n), _) => (**n).clone(),
        (ProviderConfig::Embedded, provider) => {
            let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
            Network {
                imap: loopback(provider.map_or(nowhere, Provider::imap_addr)),
                imap_user: account.address.to_string(),
                smtp: loopback(provider.map_or(nowhere, Provider::smtp_addr)),
                smtp_user: account.address.to_string(),
                secret: SecretSource::Inline(demo_keys::PROVIDER_PASSWORD.to_owned()),
            }
        }
    }
}

/// Gives the control socket what only a running gateway can do.
fn connect(core: &Core, mirrors: &HashMap<AccountId, Arc<Mirror>>, provider: Option<&Provider>) {
    let all = mirrors.clone();
    // Set once: this core was opened by this start.
    let _ = core.backfill.set(Arc::new(move |request: BackfillRequest| {
        let mirror = all.get(&request.account).cloned();
        Box::pin(async move {
            let mirror = mirror.ok_or("there is no such account")?;
            let last = request.last as usize;
            let lines = mirror.ask(|r| Op::Backfill(last, request.dry_run, r)).await.map_err(|e| e.to_string())?;
            serde_json::to_value(lines).map_err(|e| e.to_string())
        })
    }));
    let all = mirrors.clone();
    let _ = core.undo.set(Arc::new(move |account, id| {
        let mirror = all.get(&account).cloned();
        Box::pin(async move {
            let mirror = mirror.ok_or("there is no such account")?;
            mirror.ask(|r| Op::Undo(id, r)).await.map_err(|e| e.to_string())
        })
    }));
    let all = mirrors.clone();
    let embedded = provider.map(|p| serde_json::json!({ "imap": p.imap_addr(), "smtp": p.smtp_addr() }));
    let _ = core.mirror.set(Arc::new(move |account| {
        let (mirror, embedded) = (all.get(&account).cloned(), embedded.clone());
        Box::pin(async move {
            let mirror = mirror.ok_or("there is no such account")?;
            let mut shown = mirror.shown().await;
            if let (ProviderConfig::Embedded, Some(addresses)) = (&mirror.settings.provider, embedded) {
                shown["provider"] = addresses;
            }
            Ok(shown)
        })
    }));
    let all = mirrors.clone();
    let _ = core.locate.set(Arc::new(move |account, mailbox, uid| {
        Ok(all.get(account).and_then(|m| m.decision_at(mailbox.as_bytes(), uid)))
    }));
}

/// Notes who a person writes to; this is evidence for later mail from there.
fn person_sent(store: Arc<dyn Store>, mirrors: HashMap<AccountId, Arc<Mirror>>) -> smtp::PersonSent {
    Arc::new(move |account, recipients| {
        let (store, account, recipients) = (store.clone(), account.clone(), recipients.to_vec());
        let mirror = mirrors.get(&account).cloned();
        tokio::spawn(async move {
            let now = imap::perceiving::now();
            let done = write(&*store, move |w| {
                let mut records = Vec::with_capacity(recipients.len());
                for text in &recipients {
                    let Ok(address) = crate::mail::address::Address::parse(text) else { continue };
                    let canonical = address.canonical();
                    let key = imap::rows::correspondent_key(&account, &canonical);
                    let stored = get_json(w, Table::Correspondent, &key)?;
                    let mut record = stored.unwrap_or_else(|| CorrespondentRecord::new(&canonical));
                    record.saw_sent(now, false, None);
                    put_json(w, Table::Correspondent, &key, &record)?;
                    records.push(record);
                }
                Ok::<_, StoreError>(records)
            });
            match (done.await, mirror) {
                (Ok(records), Some(mirror)) => mirror.learn(&records),
                (Ok(_), None) => {}
                (Err(e), _) => tracing::warn!("a correspondent was not noted: {e}"),
            }
        });
    })
}
