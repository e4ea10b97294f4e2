//! Connections of clients: inside TLS from the first octet, by STARTTLS, or
//! (loopback only, where configured) without; and the operator's, over a
//! socket of this machine.
//!
//! Promises: a connection says truly whether it is inside TLS; STARTTLS works
//! once and only where a certificate is at hand. Doesn't know: what is spoken,
//! nor what a session has buffered; the session refuses STARTTLS when octets
//! wait behind the command.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a TLS handshake may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);

/// What a session needs of a client's connection.
pub trait Connection: AsyncRead + AsyncWrite + Unpin + Send {
    /// Whether it is inside TLS.
    fn is_tls(&self) -> bool {
        false
    }

    /// Whether STARTTLS can be offered now.
    fn can_start_tls(&self) -> bool {
        false
    }

    /// Speaks the TLS handshake over what was plain until now. After an error
    /// the connection is of no more use.
    fn start_tls(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        std::future::ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

/// Plain streams, as tests use them.
impl Connection for TcpStream {}
impl Connection for tokio::io::DuplexStream {}

enum State {
    /// Without TLS; the acceptor is for STARTTLS.
    Plain(TcpStream, Option<TlsAcceptor>),
    Tls(Box<TlsStream<TcpStream>>),
    /// Over a socket file, whose mode says who may come.
    Local(UnixStream),
    /// A handshake failed.
    Broken,
}

/// A client's connection.
pub struct Stream {
    state: State,
}

impl Stream {
    /// A connection that is inside TLS from the first octet.
    pub async fn accept(tcp: TcpStream, acceptor: &TlsAcceptor) -> io::Result<Stream> {
        let tls = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(tcp)).await??;
        Ok(Stream { state: State::Tls(Box::new(tls)) })
    }

    /// A connection without TLS, for as long as nobody asks for it.
    pub fn plain(tcp: TcpStream, starttls: Option<TlsAcceptor>) -> Stream {
        Stream { state: State::Plain(tcp, starttls) }
    }

    /// A connection over a socket file.
    pub fn local(unix: UnixStream) -> Stream {
        Stream { state: State::Local(unix) }
    }
}

impl Connection for Stream {
    fn is_tls(&self) -> bool {
        matches!(self.state, State::Tls(_))
    }

    fn can_start_tls(&self) -> bool {
        matches!(self.state, State::Plain(_, Some(_)))
    }

    async fn start_tls(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Plain(tcp, Some(acceptor)) => {
                *self = Stream::accept(tcp, &acceptor).await?;
                Ok(())
            }
            other => {
                self.state = other;
                Err(io::ErrorKind::Unsupported.into())
            }
        }
    }
}

fn broken() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().state {
            State::Plain(s, _) => Pin::new(s).poll_read(cx, buf),
            State::Tls(s) => Pin::new(s).poll_read(cx, buf),
            State::Local(s) => Pin::new(s).poll_read(cx, buf),
            State::Broken => Poll::Ready(Err(broken())),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().state {
            State::Plain(s, _) => Pin::new(s).poll_write(cx, buf),
            State::Tls(s) => Pin::new(s).poll_write(cx, buf),
            State::Local(s) => Pin::new(s).poll_write(cx, buf),
            State::Broken => Poll::Ready(Err(broken())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().state {
            State::Plain(s, _) => Pin::new(s).poll_flush(cx),
            State::Tls(s) => Pin::new(s).poll_flush(cx),
            State::Local(s) => Pin::new(s).poll_flush(cx),
            State::Broken => Poll::Ready(Err(broken())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().state {
            State::Plain(s, _) => Pin::new(s).poll_shutdown(cx),
            State::Tls(s) => Pin::new(s).poll_shutdown(cx),
            State::Local(s) => Pin::new(s).poll_shutdown(cx),
            State::Broken => Poll::Ready(Err(broken())),
        }
    }
}
