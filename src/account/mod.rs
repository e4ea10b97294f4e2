//! Accounts, keys, grants, secrets and authentication.
//!
//! Promises: a [`Principal`] exists only for a key that was presented whole
//! and is not revoked; it names one account and nothing of another can be
//! reached through it. Doesn't know: what a protocol does with it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Names an account: its address in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccountId(pub Arc<str>);

impl AccountId {
    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for AccountId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names a key: the `<id>` of `tg1_<id>_<secret>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(pub Arc<str>);

/// Whose key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person's mail client.
    Person,
    /// An AI agent.
    Agent,
}

/// Who is signed in.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The account that the key belongs to.
    pub account: AccountId,
    /// The key.
    pub key: KeyId,
    /// The name that the key was given.
    pub key_name: String,
    /// Person or agent.
    pub role: Role,
    /// Becomes true when the key is revoked; sessions end then.
    pub revoked: tokio::sync::watch::Receiver<bool>,
}
