//! Listeners of the mail faces.
//!
//! Promises: connections are bounded in number, a TLS handshake in time; one
//! bad connection doesn't end a listener. Doesn't know: what is spoken.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::StartError;
use crate::{imap, smtp};

/// Connections of one listener at a time.
const MAX_CONNECTIONS: usize = 1024;
/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);
/// Pause after an accept that failed (too many open files, say).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a listener is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Face {
    Imaps,
    Submissions,
    ImapPlain,
    SmtpPlain,
    Web,
}

impl Face {
    fn name(self) -> &'static str {
        match self {
            Face::Imaps => "IMAP over TLS",
            Face::Submissions => "submission over TLS",
            Face::ImapPlain => "IMAP without TLS",
            Face::SmtpPlain => "submission without TLS",
            Face::Web => "the approval page",
        }
    }
}

/// Binds every address of a face. An IPv6 address is left out on a machine
/// without IPv6, as long as another address of the face is bound.
pub(super) async fn bind(face: Face, addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, StartError> {
    let mut out = Vec::new();
    let mut left_out = None;
    for address in addresses {
        match TcpListener::bind(address).await {
            Ok(l) => out.push(l),
            Err(source) => {
                let error = StartError::Listen { what: face.name(), address: *address, source };
                let StartError::Listen { source, .. } = &error else { return Err(error) };
                let missing =
                    matches!(source.kind(), std::io::ErrorKind::AddrNotAvailable | std::io::ErrorKind::Unsupported);
                if !(address.is_ipv6() && missing) {
                    return Err(error);
                }
                tracing::warn!("{error}");
                left_out = Some(error);
            }
        }
    }
    match left_out {
        Some(error) if out.is_empty() => Err(error),
        _ => Ok(out),
    }
}

/// Where the listeners really listen.
pub(super) fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    listeners.iter().filter_map(|l| l.local_addr().ok()).collect()
}

type Tls = Option<Arc<rustls::ServerConfig>>;

/// Serves IMAP until told to stop.
pub(super) async fn imap(
    listener: TcpListener,
    tls: Tls,
    services: Arc<imap::session::Services>,
    stop: watch::Receiver<bool>,
) {
    let ended = stop.clone();
    run(listener, tls, stop, move |stream, secure, peer| {
        let (services, ended) = (services.clone(), ended.clone());
        async move { imap::session::serve(stream, secure, peer, services, ended).await }
    })
    .await;
}

/// Serves submission until told to stop.
pub(super) async fn smtp(listener: TcpListener, tls: Tls, services: Arc<smtp::Services>, stop: watch::Receiver<bool>) {
    let ended = stop.clone();
    run(listener, tls, stop, move |stream, secure, peer| {
        let (services, ended) = (services.clone(), ended.clone());
        async move { smtp::serve(stream, secure, peer, services, ended).await }
    })
    .await;
}

/// A connection, with or without TLS.
type Stream = Box<dyn Io>;

/// What a session needs of a connection.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

async fn run<F, S>(listener: TcpListener, tls: Tls, mut stop: watch::Receiver<bool>, session: F)
where
    F: Fn(Stream, bool, SocketAddr) -> S + Clone + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let acceptor = tls.map(TlsAcceptor::from);
    let mut sessions = JoinSet::new();
    loop {
        // Held until the session ends; the semaphore is never closed.
        let Ok(place) = places.clone().acquire_owned().await else { break };
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|s| *s) => break,
            Some(_) = sessions.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (tcp, peer) = match accepted {
            Ok(pair) => pair,
            Err(e) => {
                tracing::warn!("a connection could not be accepted: {e}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (acceptor, session) = (acceptor.clone(), session.clone());
        sessions.spawn(async move {
            if let Some((stream, secure)) = secured(acceptor, tcp, peer).await {
                session(stream, secure, peer).await;
            }
            drop(place);
        });
    }
    while sessions.join_next().await.is_some() {}
}

async fn secured(acceptor: Option<TlsAcceptor>, tcp: TcpStream, peer: SocketAddr) -> Option<(Stream, bool)> {
    // Replies are small and whole: waiting for more would only delay them.
    let _ = tcp.set_nodelay(true);
    let Some(acceptor) = acceptor else { return Some((Box::new(tcp), false)) };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(tcp)).await {
        Ok(Ok(tls)) => Some((Box::new(tls), true)),
        Ok(Err(e)) => {
            tracing::debug!(%peer, "TLS handshake failed: {e}");
            None
        }
        Err(_) => None,
    }
}
