//! A held message as a response body, read apart from the async threads, a chunk at a
//! time.

use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::store::blob::BlobReader;

/// Octets of a chunk.
const CHUNK: usize = 64 * 1024;
/// Chunks that wait for the connection.
const WAITING: usize = 2;

/// The body.
pub(super) struct FileBody {
    chunks: mpsc::Receiver<std::io::Result<Bytes>>,
    left: u64,
    _permit: OwnedSemaphorePermit,
}

impl FileBody {
    /// Sends the first `length` octets of `message`.
    pub(super) fn new(message: BlobReader, length: u64, permit: OwnedSemaphorePermit) -> FileBody {
        let (send, chunks) = mpsc::channel(WAITING);
        tokio::task::spawn_blocking(move || {
            let mut message = message.take(length);
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = message.read(&mut chunk).map(|n| {
                    chunk.truncate(n);
                    Bytes::from(chunk)
                });
                let end = read.as_ref().map_or(true, Bytes::is_empty);
                // Nobody listens any more, or nothing is left.
                if read.as_ref().is_ok_and(Bytes::is_empty) || send.blocking_send(read).is_err() || end {
                    return;
                }
            }
        });
        FileBody { chunks, left: length, _permit: permit }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        self.chunks.poll_recv(cx).map(|chunk| {
            let chunk = chunk?;
            if let Ok(octets) = &chunk {
                self.left = self.left.saturating_sub(octets.len() as u64);
            }
            Some(chunk.map(Frame::data))
        })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
