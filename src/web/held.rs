//! One held message, read for showing.
//!
//! Promises: what is shown is made from octets whose hash and length are the
//! hold's. Doesn't know: who looks.

use std::io::Read;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::App;
use super::refusal::Refusal;
use crate::mail::mime::MessageView;
use crate::outbox::Hold;
use crate::store::blob::BlobReader;

/// Reads a hold's message.
pub(super) async fn view(app: &Arc<App>, hold: &Hold) -> Result<MessageView, Refusal> {
    let _permit = app.views.acquire().await.map_err(|e| Refusal::Internal(e.to_string()))?;
    let file = app.services.outbox.open(hold)?;
    let (length, sha256) = (hold.length, hold.blob.0);
    let read = tokio::task::spawn_blocking(move || read(file, length, sha256));
    read.await.map_err(|e| Refusal::Internal(e.to_string()))?
}

/// Reads the octets and makes sure that they are the ones that were hashed.
fn read(file: BlobReader, length: u64, sha256: [u8; 32]) -> Result<MessageView, Refusal> {
    let mut octets = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(length.saturating_add(1)).read_to_end(&mut octets).map_err(|e| Refusal::Internal(e.to_string()))?;
    if octets.len() as u64 != length || Sha256::digest(&octets)[..] != sha256 {
        return Err(Refusal::Octets);
    }
    Ok(MessageView::of(&octets))
}
