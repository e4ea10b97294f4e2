//! Message data to the provider, with the end withheld until it is right.

use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use super::{Submission, SubmissionError, read_reply};
use crate::floor::release::Release;
use crate::store::failpoint;
use crate::upstream::net::Stream;
use crate::wire::smtp::{DotEncoder, EncodeError, Reply};

/// Why a message was not accepted, or why nobody knows.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// DATA itself was refused; the connection can be used on.
    #[error("the provider refused DATA: {0}")]
    Refused(Reply),
    /// The octets are not the released ones. The connection was closed
    /// before the final dot.
    #[error("the octets differ from the approved ones; nothing was sent")]
    Mismatch,
    /// The octets can't be sent as they are. The connection was closed
    /// before the final dot.
    #[error(transparent)]
    Octets(#[from] EncodeError),
    /// The connection failed before the final dot: nothing was sent.
    #[error(transparent)]
    Before(#[from] SubmissionError),
    /// The final dot was written, or a part of it, and no answer came. The
    /// message may have been sent.
    #[error("no answer after the final dot ({0}); the message may have been sent")]
    Unknown(SubmissionError),
}

impl Submission {
    /// Opens DATA. Only the floor makes a [`Release`], from a receipt or from
    /// the decision that nothing holds a person's own mail; it is used up here.
    pub async fn data(&mut self, release: Release) -> Result<DataWriter<'_>, DataError> {
        let reply = self.command("DATA", "DATA\r\n", self.timeouts.data_start).await?;
        if reply.code() != 354 {
            // A 2yz here is no leave to send, and neither is it a refusal
            // that the client could be shown as one.
            if reply.is_positive() || reply.code() / 100 == 3 {
                self.stream = None;
                return Err(SubmissionError::Refused { step: "DATA", reply }.into());
            }
            return Err(DataError::Refused(reply));
        }
        let stream = self.stream.take().ok_or(SubmissionError::Closed)?;
        let hasher = release.expected().is_some().then(Sha256::new);
        Ok(DataWriter {
            submission: self,
            stream,
            release,
            encoder: DotEncoder::new(),
            hasher,
            length: 0,
            wire: Vec::new(),
        })
    }
}

/// Streams one message. Dropped before [`DataWriter::end`], it closes the
/// connection, and the server discards what it got (RFC 5321 §4.1.1.4: no
/// end mark, no message).
#[derive(Debug)]
pub struct DataWriter<'a> {
    submission: &'a mut Submission,
    stream: Stream,
    release: Release,
    encoder: DotEncoder,
    hasher: Option<Sha256>,
    length: u64,
    wire: Vec<u8>,
}

impl<'a> DataWriter<'a> {
    /// Sends a piece of the message. After an error the writer must be dropped.
    pub async fn chunk(&mut self, octets: &[u8]) -> Result<(), DataError> {
        self.length += octets.len() as u64;
        if self.release.expected().is_some_and(|(_, length)| self.length > length) {
            return Err(DataError::Mismatch);
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(octets);
        }
        self.wire.clear();
        self.encoder.encode(octets, &mut self.wire).map_err(EncodeError::Bare)?;
        self.write().await
    }

    async fn write(&mut self) -> Result<(), DataError> {
        failpoint::hit_within("data");
        let (stream, wire) = (&mut self.stream, &self.wire);
        let write = async {
            stream.write_all(wire).await?;
            stream.flush().await
        };
        let limit = self.submission.timeouts.data_block;
        let written = tokio::time::timeout(limit, write).await;
        written.map_err(|_| SubmissionError::Timeout("the data"))?.map_err(SubmissionError::Io)?;
        Ok(())
    }

    /// Compares what was written with what was released, then sends the end
    /// mark. An error other than [`DataError::Unknown`] means that it was not
    /// sent.
    pub async fn end(self) -> Result<Ended<'a>, DataError> {
        let DataWriter { submission, mut stream, release, encoder, hasher, length, .. } = self;
        if let Some((hash, expected)) = release.expected() {
            let found: Option<[u8; 32]> = hasher.map(|h| h.finalize().into());
            if length != expected || found.as_ref() != Some(hash) {
                return Err(DataError::Mismatch);
            }
        }
        let mark = encoder.finish()?;
        failpoint::hit_within("dot");
        // From here on an error says nothing about what the server got.
        let write = async {
            stream.write_all(mark).await?;
            stream.flush().await
        };
        match tokio::time::timeout(submission.timeouts.data_block, write).await {
            Ok(Ok(())) => Ok(Ended { submission, stream }),
            Ok(Err(error)) => Err(DataError::Unknown(error.into())),
            Err(_) => Err(DataError::Unknown(SubmissionError::Timeout("the end of the data"))),
        }
    }

    /// [`DataWriter::end`] and [`Ended::reply`].
    pub async fn finish(self) -> Result<Reply, DataError> {
        self.end().await?.reply().await
    }
}

/// The end mark is sent; the server decides.
#[derive(Debug)]
pub struct Ended<'a> {
    submission: &'a mut Submission,
    stream: Stream,
}

impl Ended<'_> {
    /// The server's final reply: 2yz, 4yz or 5yz; all else is
    /// [`DataError::Unknown`].
    pub async fn reply(self) -> Result<Reply, DataError> {
        let Ended { submission, mut stream } = self;
        let limit = submission.timeouts.data_end;
        let reply = tokio::time::timeout(limit, read_reply(&mut stream, &mut submission.reader))
            .await
            .map_err(|_| DataError::Unknown(SubmissionError::Timeout("the end of the data")))?
            .map_err(DataError::Unknown)?;
        if reply.code() / 100 == 3 {
            return Err(DataError::Unknown(SubmissionError::Refused { step: "the end of the data", reply }));
        }
        submission.stream = Some(stream);
        Ok(reply)
    }
}
