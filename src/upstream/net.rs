//! TCP and TLS to a configured endpoint.
//!
//! Promises: a stream comes back only after the TLS that the configuration
//! asks for; a certificate is checked against the system's roots and, where
//! set, one more CA. Doesn't know: the protocol spoken inside.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::config::{Endpoint, TlsMode};

/// How long a TCP connection and its TLS handshake may take together.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Why an endpoint could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name doesn't resolve or nothing answers.
    #[error("can't reach {host}:{port}: {source}")]
    Unreachable {
        /// Configured host.
        host: String,
        /// Configured port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// It took longer than [`CONNECT_TIMEOUT`].
    #[error("{host}:{port} did not answer in time")]
    Timeout {
        /// Configured host.
        host: String,
        /// Configured port.
        port: u16,
    },
    /// The certificate or the handshake was refused.
    #[error("TLS with {host} failed: {why}")]
    Tls {
        /// Configured host.
        host: String,
        /// What was wrong.
        why: String,
    },
}

/// A connection, with or without TLS.
#[derive(Debug)]
pub enum Stream {
    /// Without TLS (loopback only).
    Plain(TcpStream),
    /// With TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Whether the stream is inside TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }
}

/// Connects to `endpoint`. With [`TlsMode::Implicit`] the result is inside
/// TLS; with [`TlsMode::StartTls`] it is still plain and the caller speaks
/// STARTTLS, makes sure that nothing is buffered, then calls [`start_tls`].
pub async fn connect(endpoint: &Endpoint) -> Result<Stream, ConnectError> {
    let attempt = async {
        let tcp = TcpStream::connect((endpoint.host.as_str(), endpoint.port))
            .await
            .map_err(|source| ConnectError::Unreachable { host: endpoint.host.clone(), port: endpoint.port, source })?;
        let _ = tcp.set_nodelay(true);
        match endpoint.tls {
            TlsMode::Implicit => handshake(endpoint, tcp).await,
            TlsMode::StartTls | TlsMode::None => Ok(Stream::Plain(tcp)),
        }
    };
    tokio::time::timeout(CONNECT_TIMEOUT, attempt)
        .await
        .map_err(|_| ConnectError::Timeout { host: endpoint.host.clone(), port: endpoint.port })?
}

/// Puts a plain stream inside TLS, after the server agreed to STARTTLS.
pub async fn start_tls(endpoint: &Endpoint, stream: Stream) -> Result<Stream, ConnectError> {
    match stream {
        Stream::Plain(tcp) => tokio::time::timeout(CONNECT_TIMEOUT, handshake(endpoint, tcp))
            .await
            .map_err(|_| ConnectError::Timeout { host: endpoint.host.clone(), port: endpoint.port })?,
        tls @ Stream::Tls(_) => Ok(tls),
    }
}

async fn handshake(endpoint: &Endpoint, tcp: TcpStream) -> Result<Stream, ConnectError> {
    let fail = |why: String| ConnectError::Tls { host: endpoint.host.clone(), why };
    let config = client_config(endpoint).map_err(fail)?;
    let name = ServerName::try_from(endpoint.host.clone()).map_err(|e| fail(e.to_string()))?;
    let tls = TlsConnector::from(config).connect(name, tcp).await.map_err(|e| fail(e.to_string()))?;
    Ok(Stream::Tls(Box::new(tls)))
}

/// How TLS is spoken with an endpoint.
pub fn client_config(endpoint: &Endpoint) -> Result<Arc<rustls::ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let extra = match &endpoint.ca {
        None => Vec::new(),
        Some(path) => rustls::pki_types::CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|e| format!("{}: {e}", path.display()))?,
    };
    let verifier =
        rustls_platform_verifier::Verifier::new_with_extra_roots(extra, provider.clone()).map_err(|e| e.to_string())?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(s) => Pin::new(s).poll_read(cx, buf),
            Stream::Tls(s) => Pin::new(s).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(s) => Pin::new(s).poll_write(cx, buf),
            Stream::Tls(s) => Pin::new(s).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(s) => Pin::new(s).poll_flush(cx),
            Stream::Tls(s) => Pin::new(s).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(s) => Pin::new(s).poll_shutdown(cx),
            Stream::Tls(s) => Pin::new(s).poll_shutdown(cx),
        }
    }
}
