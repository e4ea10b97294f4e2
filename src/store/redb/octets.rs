//! Small blobs as rows of [`Table::Octets`].
//!
//! Promises: those of [`super::super::blob`], by the writer's group commit.
//! Doesn't know: what is too large for a row.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::{Job, Slot, Snapshot, closed, submit};
use crate::store::blob::{self, BlobId, Rows};
use crate::store::overlay::{Base, Span};
use crate::store::{BoxFuture, StoreError, Table, Work, Writer};

/// Small blobs, as rows of [`Table::Octets`].
pub(super) struct OctetRows {
    /// Doesn't keep the writer from ending.
    pub(super) jobs: mpsc::WeakSender<Job>,
    pub(super) slot: Arc<Slot>,
}

impl std::fmt::Debug for OctetRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OctetRows").finish_non_exhaustive()
    }
}

impl OctetRows {
    /// One transaction; `change` returns nothing that a caller waits for.
    async fn change(
        &self,
        mut change: impl FnMut(&mut dyn Writer) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let jobs = self.jobs.upgrade().ok_or_else(closed)?;
        let failed = Arc::new(Mutex::new(None));
        let kept = failed.clone();
        let work: Work =
            Box::new(move |w| change(w).map_err(|e| *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(e)));
        let done = submit(&jobs, work).await?;
        let failed = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (done, failed) {
            (true, _) => Ok(()),
            (false, error) => Err(error.unwrap_or_else(closed)),
        }
    }
}

impl Rows for OctetRows {
    fn put(&self, id: BlobId, octets: Arc<[u8]>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.change(move |w| blob::put(w, &id, &octets)))
    }

    fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        Snapshot::of(&*self.slot.current()?)?.get(Table::Octets, &id.0)
    }

    fn sweep<'r>(&'r self, live: &'r HashSet<BlobId>) -> BoxFuture<'r, Result<usize, StoreError>> {
        Box::pin(async move {
            let mut dead: Vec<Vec<u8>> = Vec::new();
            let known = |key: &[u8]| <[u8; 32]>::try_from(key).is_ok_and(|id| live.contains(&BlobId(id)));
            Snapshot::of(&*self.slot.current()?)?.each(
                Table::Octets,
                Span { prefix: &[], from: &[] },
                &mut |key, _| {
                    if !known(key) {
                        dead.push(key.to_vec());
                    }
                    ControlFlow::Continue(())
                },
            )?;
            let found = dead.len();
            if found > 0 {
                self.change(move |w| dead.iter().try_for_each(|key| w.delete(Table::Octets, key))).await?;
            }
            Ok(found)
        })
    }
}
