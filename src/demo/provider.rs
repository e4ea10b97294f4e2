//! Starting, stopping and looking into the embedded provider.
//!
//! Promises: listens on loopback only; after [`Provider::stop`] no connection
//! and no task of it is left.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::character::Character;
use super::dates::InternalDate;
use super::faults::Faults;
use super::state::{Shared, State, User};
use super::{imap, samples, smtp};

/// Most connections of one face at a time.
const MAX_CONNECTIONS: usize = 512;

/// What a provider is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Login (an address; compared without case) and password of each user.
    pub users: Vec<(String, String)>,
    /// Where mail outlives the process; none keeps it in memory.
    pub folder: Option<PathBuf>,
    /// Where IMAP listens; port 0 takes a free one.
    pub imap: SocketAddr,
    /// Where submission listens; port 0 takes a free one.
    pub smtp: SocketAddr,
    /// Whether the first user, where new, gets the sample mail.
    pub samples: bool,
    /// What IMAP offers, where the character is the plain one.
    pub capabilities: Caps,
    /// Whose conduct it shows.
    pub character: Character,
}

/// IMAP extensions that can be left out. The rest is always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// IDLE (RFC 2177).
    pub idle: bool,
    /// MOVE (RFC 6851).
    pub move_: bool,
    /// UIDPLUS (RFC 4315).
    pub uidplus: bool,
}

impl Default for Caps {
    fn default() -> Caps {
        Caps { idle: true, move_: true, uidplus: true }
    }
}

impl Default for Options {
    /// No user, memory only, free ports on 127.0.0.1, no samples.
    fn default() -> Options {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Options {
            users: Vec::new(),
            folder: None,
            imap: any,
            smtp: any,
            samples: false,
            capabilities: Caps::default(),
            character: Character::Plain,
        }
    }
}

/// A message that the submission face took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Who was signed in.
    pub login: String,
    /// As between `<` and `>` in MAIL.
    pub reverse_path: String,
    /// As between `<` and `>` in each RCPT, in order.
    pub forward_paths: Vec<String>,
    /// The parameters of MAIL as written.
    pub mail_params: Vec<String>,
    /// The octets after dot-unstuffing.
    pub octets: Vec<u8>,
}

/// A message as the provider holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its UID.
    pub uid: u32,
    /// Its flags as on the wire, without `\Recent`.
    pub flags: BTreeSet<String>,
    /// Its octets.
    pub octets: Arc<[u8]>,
    /// Its INTERNALDATE.
    pub internaldate: InternalDate,
}

/// A running provider.
#[derive(Debug)]
pub struct Provider {
    shared: Arc<Shared>,
    imap: SocketAddr,
    smtp: SocketAddr,
    stopping: watch::Sender<bool>,
    listeners: Mutex<Vec<JoinHandle<()>>>,
}

impl Provider {
    /// Opens the mail and starts to listen.
    ///
    /// Fails with [`io::ErrorKind::InvalidInput`] where an address is not
    /// loopback.
    pub async fn start(options: Options) -> io::Result<Provider> {
        if !options.imap.ip().is_loopback() || !options.smtp.ip().is_loopback() {
            let text = "the embedded provider listens on loopback only";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut state = State::default();
        for (login, password) in &options.users {
            let login = login.to_lowercase();
            let mut user =
                User::with_character(options.character, password.clone(), options.folder.as_deref(), &login)?;
            if options.samples && state.users.is_empty() && user.is_new() {
                samples::seed(&mut user, InternalDate::now().unix).map_err(io::Error::other)?;
            }
            state.users.insert(login, user);
        }
        let (imap, smtp) = (TcpListener::bind(options.imap).await?, TcpListener::bind(options.smtp).await?);
        let (imap_addr, smtp_addr) = (imap.local_addr()?, smtp.local_addr()?);
        let shared = Arc::new(Shared::new(state, options.capabilities, options.character));
        let stopping = watch::Sender::new(false);
        let listeners = vec![
            tokio::spawn(listen(imap, shared.clone(), stopping.subscribe(), imap::serve)),
            tokio::spawn(listen(smtp, shared.clone(), stopping.subscribe(), smtp::serve)),
        ];
        let listeners = Mutex::new(listeners);
        Ok(Provider { shared, imap: imap_addr, smtp: smtp_addr, stopping, listeners })
    }

    /// Where IMAP listens.
    pub fn imap_addr(&self) -> SocketAddr {
        self.imap
    }

    /// Where submission listens.
    pub fn smtp_addr(&self) -> SocketAddr {
        self.smtp
    }

    /// Ends all connections and stops listening; returns when that is done.
    pub async fn stop(&self) {
        self.stopping.send_replace(true);
        let listeners = std::mem::take(&mut *self.listeners.lock().unwrap_or_else(PoisonError::into_inner));
        for listener in listeners {
            // A listener ends when told so; it can't be cancelled by others.
            let _ = listener.await;
        }
    }

    /// Ends all present connections; with a text, IMAP says BYE first. The
    /// provider goes on listening.
    pub fn disconnect(&self, bye: Option<&str>) {
        self.shared.kick.send_modify(|(count, text)| {
            *count += 1;
            *text = bye.map(str::to_owned);
        });
    }

    /// Present connections stay open, but nothing comes of them any more, as
    /// after a suspend or behind a firewall that forgot them. New ones work.
    pub fn freeze(&self) {
        self.shared.freeze.send_modify(|count| *count += 1);
    }

    /// Puts a message into INBOX of `user` as if it had just arrived, and
    /// tells idle sessions at once. Answers its UID; 0 where there is no such
    /// user or the folder can't be written.
    pub fn deliver(&self, user: &str, octets: impl AsRef<[u8]>) -> u32 {
        self.put(user, "INBOX", octets, &[])
    }

    /// Puts a message into a mailbox with flags; else as [`Provider::deliver`].
    pub fn put(&self, user: &str, mailbox: &str, octets: impl AsRef<[u8]>, flags: &[&str]) -> u32 {
        let flags = flags.iter().map(|f| (*f).to_owned()).collect();
        let octets = Arc::from(octets.as_ref());
        let labels = self.shared.character.labels();
        let added = self.shared.lock().user(user).map(|u| {
            let added = u.add(mailbox, octets, flags, InternalDate::now())?;
            u.after_add(labels, mailbox, added.1);
            Ok::<_, super::state::Refusal>(added)
        });
        self.shared.wake();
        match added {
            Some(Ok((_, uid))) => uid,
            Some(Err(_)) | None => 0,
        }
    }

    /// Gives INBOX of `user` a new UIDVALIDITY and its messages new UIDs, then
    /// ends all connections. Whether it did.
    pub fn renumber(&self, user: &str) -> bool {
        let done = self.shared.lock().user(user).is_some_and(|u| u.renumber("INBOX").is_ok());
        self.disconnect(Some("the mailbox was rebuilt"));
        done
    }

    /// Delivers the sample mail of INBOX to `user` now, one by one, as if it
    /// arrived. Answers how many.
    pub fn deliver_samples(&self, user: &str) -> usize {
        let inbox = samples::inbox(InternalDate::now().unix);
        inbox.iter().filter(|octets| self.deliver(user, octets) != 0).count()
    }

    /// When a session first told its client (EXISTS) of this message in INBOX.
    pub fn announced(&self, user: &str, uid: u32) -> Option<Instant> {
        self.shared.lock().user(user)?.mailbox("INBOX").ok()?.find(uid)?.announced
    }

    /// What the submission face took so far, in order.
    pub fn accepted(&self) -> Vec<Accepted> {
        self.shared.lock().accepted.clone()
    }

    /// What a mailbox holds; empty where there is none.
    pub fn mailbox(&self, user: &str, name: &str) -> Vec<StoredMessage> {
        let mut state = self.shared.lock();
        let Some(Ok(mailbox)) = state.user(user).map(|u| u.mailbox(name)) else { return Vec::new() };
        let stored = |m: &super::state::Message| StoredMessage {
            uid: m.uid,
            flags: m.flags.clone(),
            octets: m.octets.clone(),
            internaldate: m.date,
        };
        mailbox.messages.iter().map(stored).collect()
    }

    /// The names of all mailboxes, sorted.
    pub fn mailboxes(&self, user: &str) -> Vec<String> {
        self.shared.lock().user(user).map(|u| u.mailboxes.keys().cloned().collect()).unwrap_or_default()
    }

    /// The UIDVALIDITY of a mailbox.
    pub fn uid_validity(&self, user: &str, name: &str) -> Option<u32> {
        self.shared.lock().user(user)?.mailbox(name).ok().map(|m| m.validity)
    }

    /// The faults to play.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the provider was dropped, which is a stop too.
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Accepts until told to stop, then ends every connection.
async fn listen<F, Fut>(listener: TcpListener, shared: Arc<Shared>, mut stopping: watch::Receiver<bool>, serve: F)
where
    F: Fn(TcpStream, Arc<Shared>) -> Fut,
    Fut: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if sessions.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    sessions.spawn(serve(stream, shared.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "the embedded provider can't accept");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            },
            Some(ended) = sessions.join_next() => {
                if let Ok(Err(error)) = ended {
                    tracing::debug!(%error, "a connection of the embedded provider ended");
                }
            }
            () = stopped(&mut stopping) => break,
        }
    }
    sessions.shutdown().await;
}
