//! Links that are enough by themselves: the explicit downgrade
//! `[approval] require = "link"`.
//!
//! Promises: a link's token is bound to one hold and can't be told from the
//! hold's id; it stands in the notice that people see and in the pages it
//! opens, nowhere else. A GET of it shows; only a POST from that page decides.
//! Doesn't know: who follows it.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::outbox::HoldId;
use crate::store::{self, Store, StoreError, Table};

/// Row of [`Table::Web`] with the secret that tokens are made from.
const SECRET: &[u8] = b"link-secret";
const PREFIX: &str = "tollgate/link/v1\n";

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The system has no randomness.
    #[error("no randomness: {0}")]
    Random(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The path of a hold's link; the secret is made with the first one.
pub async fn path(store: &dyn Store, hold: &HoldId) -> Result<String, LinkError> {
    let mut fresh = [0u8; 32];
    getrandom::fill(&mut fresh).map_err(|e| LinkError::Random(e.to_string()))?;
    let secret = store::write(store, move |w| -> Result<Vec<u8>, LinkError> {
        if let Some(secret) = w.get(Table::Web, SECRET)? {
            return Ok(secret);
        }
        w.put(Table::Web, SECRET, &fresh)?;
        Ok(fresh.to_vec())
    })
    .await?;
    Ok(format!("/link/{hold}/{}", token(&secret, hold)))
}

/// Whether `given` is the token of the hold's link.
pub(super) fn fits(store: &dyn Store, hold: &HoldId, given: &str) -> Result<bool, StoreError> {
    let secret = store::read(store, |r| r.get(Table::Web, SECRET))?;
    Ok(secret.is_some_and(|s| token(&s, hold).as_bytes().ct_eq(given.as_bytes()).into()))
}

/// The secret on both sides of the hash (as HMAC has it), so that no token
/// can be lengthened into another one.
fn token(secret: &[u8], hold: &HoldId) -> String {
    let inner = Sha256::new().chain_update(secret).chain_update(PREFIX).chain_update(hold.as_str()).finalize();
    let outer = Sha256::new().chain_update(secret).chain_update(inner).finalize();
    crate::floor::digest::to_hex(&outer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::RedbStore;

    #[tokio::test]
    async fn a_token_is_of_one_hold_of_one_gateway() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, two] = folders.each_ref().map(|f| RedbStore::open(f.path()).unwrap());
        let (a, b) = (HoldId::parse("2222222222222222").unwrap(), HoldId::parse("3333333333333333").unwrap());
        assert!(!fits(&one, &a, "").unwrap(), "before there is a secret");
        let path = path(&one, &a).await.unwrap();
        assert_eq!(path, super::path(&one, &a).await.unwrap(), "the notice may be written again");
        super::path(&two, &a).await.unwrap();
        let token = path.rsplit('/').next().unwrap();
        assert!(fits(&one, &a, token).unwrap());
        assert!(!fits(&one, &b, token).unwrap() && !fits(&two, &a, token).unwrap() && !fits(&one, &a, "").unwrap());
        assert!(!fits(&one, &a, &token[1..]).unwrap() && !fits(&one, &a, &token.to_uppercase()).unwrap());
    }
}
