//! The listener: bounded connections, bounded headers, a graceful end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::peer::Peer;
use super::{Services, Site, router_at};

/// Most connections at a time; further ones wait unaccepted.
pub const MAX_CONNECTIONS: usize = 64;
/// How long a request's header may take, and how long a connection may idle.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long one connection may live; a page needs a few.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(600);
/// Octets of a request's header.
const MAX_HEADER: usize = 16 * 1024;
/// Fields of a request's header.
const MAX_FIELDS: usize = 64;
/// How long requests under way may take once it ends.
const GRACE: Duration = Duration::from_secs(5);
/// Pause after a failed accept (most often: too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves the pages on `listener` until `shutdown` becomes true. A port 0 in
/// `web_url` stands for the listener's.
pub async fn serve(listener: TcpListener, services: Arc<Services>, mut shutdown: watch::Receiver<bool>) {
    let port = listener.local_addr().ok().map(|a| a.port());
    let site = Site::of(&services.config.web_url, port);
    let router = router_at(services, site);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = ended(&mut shutdown) => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let (router, shutdown) = (router.clone(), shutdown.clone());
        connections.spawn(async move {
            connection(stream, router, shutdown).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    let rest = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, rest).await.is_err() {
        tracing::info!("connections of the web face were cut off");
    }
}

async fn ended(shutdown: &mut watch::Receiver<bool>) {
    // A sender that is gone ends it too.
    let _ = shutdown.wait_for(|end| *end).await;
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(error) => {
            tracing::warn!(%error, "accept failed");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn connection(stream: TcpStream, router: Router, mut shutdown: watch::Receiver<bool>) {
    let (Ok(address), Ok(here)) = (stream.peer_addr(), stream.local_addr()) else { return };
    let _ = stream.set_nodelay(true);
    let Ok(peer) = tokio::task::spawn_blocking(move || Peer::of(address, here)).await else { return };
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        TowerToHyperService::new(router.clone()).call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER)
        .max_headers(MAX_FIELDS);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let served = async {
        tokio::select! {
            result = connection.as_mut() => result,
            () = ended(&mut shutdown) => {
                connection.as_mut().graceful_shutdown();
                connection.as_mut().await
            }
        }
    };
    match tokio::time::timeout(CONNECTION_TIMEOUT, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "connection of the web face ended"),
        Err(_) => tracing::debug!("connection of the web face was too long"),
    }
}
