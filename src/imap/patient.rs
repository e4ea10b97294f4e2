//! A client's connection that is waited for, but not for ever.
//!
//! Promises: a client that takes no octet for the limit is given up, and no
//! write or shutdown waits for it again; how long it has taken nothing can be
//! seen from outside. Doesn't know: what is written.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::downstream::Connection;

/// Since when a client takes nothing.
#[derive(Debug, Clone, Default)]
pub struct Stall(Arc<AtomicU64>);

/// When time began, for instants that are kept as numbers.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

impl Stall {
    /// For how long it has taken nothing of what waits for it.
    pub fn lasts(&self) -> Duration {
        match self.0.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => epoch().elapsed().saturating_sub(Duration::from_millis(since)),
        }
    }

    fn set(&self, since: Option<Instant>) {
        let ms = |i: Instant| u64::try_from(i.saturating_duration_since(epoch()).as_millis()).unwrap_or(u64::MAX);
        // 0 means none; a millisecond more or less means nothing.
        self.0.store(since.map_or(0, |i| ms(i).max(1)), Ordering::Relaxed);
    }
}

/// See the module.
pub struct Patient<S> {
    stream: S,
    limit: Duration,
    /// Runs while the client takes nothing.
    end: Option<Pin<Box<Sleep>>>,
    stall: Stall,
    given_up: bool,
}

impl<S> Patient<S> {
    /// Waits for a client for `limit`.
    pub fn new(stream: S, limit: Duration) -> Patient<S> {
        Patient { stream, limit, end: None, stall: Stall::default(), given_up: false }
    }

    /// A view of how long the client has taken nothing.
    pub fn stall(&self) -> Stall {
        self.stall.clone()
    }

    /// What became of an attempt to write.
    fn waited<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            if self.end.take().is_some() {
                self.stall.set(None);
            }
            return done;
        }
        let (limit, stall) = (self.limit, &self.stall);
        let end = self.end.get_or_insert_with(|| {
            stall.set(Some(Instant::now()));
            Box::pin(tokio::time::sleep(limit))
        });
        std::task::ready!(end.as_mut().poll(cx));
        self.given_up = true;
        Poll::Ready(Err(gone()))
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing of what is written to it")
}

impl<S: Connection> Connection for Patient<S> {
    fn is_tls(&self) -> bool {
        self.stream.is_tls()
    }

    fn can_start_tls(&self) -> bool {
        self.stream.can_start_tls()
    }

    async fn start_tls(&mut self) -> io::Result<()> {
        self.stream.start_tls().await
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.given_up {
            return Poll::Ready(Err(gone()));
        }
        let done = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.waited(cx, done)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.given_up {
            return Poll::Ready(Err(gone()));
        }
        let done = Pin::new(&mut this.stream).poll_flush(cx);
        this.waited(cx, done)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.given_up {
            // Dropping the connection ends it.
            return Poll::Ready(Ok(()));
        }
        let done = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.waited(cx, done)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up_and_one_that_takes_a_little_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(4);
        let limit = Duration::from_millis(1500);
        let mut patient = Patient::new(ours, limit);
        let stall = patient.stall();
        let taker = async {
            for _ in 0..8 {
                tokio::time::sleep(limit / 5).await;
                theirs.read_exact(&mut [0; 2]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(patient.write_all(&[7; 16]), taker);
        written.unwrap();
        assert_eq!(stall.lasts(), Duration::ZERO);
        let began = Instant::now();
        let error = patient.write_all(&[7; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= limit && stall.lasts() >= limit);
        let began = Instant::now();
        patient.flush().await.unwrap_err();
        patient.shutdown().await.unwrap();
        assert!(began.elapsed() < limit, "nobody waits again");
    }
}
