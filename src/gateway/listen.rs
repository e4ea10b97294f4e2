//! Listeners of the mail faces.
//!
//! Promises: connections are bounded in number, a TLS handshake in time; one
//! bad connection doesn't end a listener. Doesn't know: what is spoken.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::StartError;
use crate::downstream::{Connection, Stream};
use crate::{imap, smtp};

/// Connections of one listener at a time.
const MAX_CONNECTIONS: usize = 1024;
/// Pause after an accept that failed (too many open files, say).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a listener is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Face {
    Imaps,
    Submissions,
    ImapStartTls,
    SubmissionStartTls,
    ImapPlain,
    SmtpPlain,
    Web,
}

impl Face {
    fn name(self) -> &'static str {
        match self {
            Face::Imaps => "IMAP over TLS",
            Face::Submissions => "submission over TLS",
            Face::ImapStartTls => "IMAP with STARTTLS",
            Face::SubmissionStartTls => "submission with STARTTLS",
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

/// How connections of a listener begin.
#[derive(Clone)]
pub(super) enum Begin {
    /// Inside TLS.
    Tls(TlsAcceptor),
    /// Plain, with STARTTLS before a sign-in.
    StartTls(TlsAcceptor),
    /// Plain for good; loopback only, by the configuration.
    Plain,
}

/// Serves IMAP until told to stop.
pub(super) async fn imap(
    listener: TcpListener,
    begin: Begin,
    services: Arc<imap::session::Services>,
    stop: watch::Receiver<bool>,
) {
    let ended = stop.clone();
    run(listener, begin, stop, move |stream, peer| {
        let (services, ended) = (services.clone(), ended.clone());
        async move { imap::session::serve(stream, peer, services, ended).await }
    })
    .await;
}

/// Serves submission until told to stop.
pub(super) async fn smtp(
    listener: TcpListener,
    begin: Begin,
    services: Arc<smtp::Services>,
    stop: watch::Receiver<bool>,
) {
    let ended = stop.clone();
    run(listener, begin, stop, move |stream: Stream, peer| {
        let (services, ended) = (services.clone(), ended.clone());
        async move {
            let tls = stream.is_tls();
            smtp::serve(stream, tls, peer, services, ended).await
        }
    })
    .await;
}

async fn run<F, S>(listener: TcpListener, begin: Begin, mut stop: watch::Receiver<bool>, session: F)
where
    F: Fn(Stream, SocketAddr) -> S + Clone + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
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
        let (begin, session) = (begin.clone(), session.clone());
        sessions.spawn(async move {
            if let Some(stream) = begun(begin, tcp, peer).await {
                session(stream, peer).await;
            }
            drop(place);
        });
    }
    while sessions.join_next().await.is_some() {}
}

async fn begun(begin: Begin, tcp: TcpStream, peer: SocketAddr) -> Option<Stream> {
    // Replies are small and whole: waiting for more would only delay them.
    let _ = tcp.set_nodelay(true);
    match begin {
        Begin::Plain => Some(Stream::plain(tcp, None)),
        Begin::StartTls(acceptor) => Some(Stream::plain(tcp, Some(acceptor))),
        Begin::Tls(acceptor) => match Stream::accept(tcp, &acceptor).await {
            Ok(stream) => Some(stream),
            Err(e) => {
                tracing::debug!(%peer, "TLS handshake failed: {e}");
                None
            }
        },
    }
}
