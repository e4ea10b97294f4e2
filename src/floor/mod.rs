//! What never happens for an agent without a receipt.
//!
//! Promises: a [`release::Release`] can be had only from a verified, unexpired
//! receipt whose payload names these octets and this envelope, or from the
//! decision that no hold applies to a person's own mail. Pure: time and
//! nonces are arguments. Doesn't know: sockets, files, pages.
//!
//! | module | what it holds |
//! |---|---|
//! | [`action`] | the acts behind the barrier and their signing domains |
//! | [`envelope`] | reverse-path, forward-paths and parameters as dispatched |
//! | [`payload`] | what a person approves, in one canonical form |
//! | [`passkey`] | registering a passkey, and checking what it signed |
//! | [`receipt`] | the signed record, and what makes it fail |
//! | [`ledger`] | numbered, hash-chained entries of every transition |
//! | [`submission`] | the states of a held message |
//! | [`hold`] | whether a submission waits for a person |
//! | [`release`] | the value that opens the provider's DATA |
//! | [`identity`] | the gateway's signing key and its id |

pub mod action;
pub mod digest;
pub mod envelope;
pub mod hold;
pub mod identity;
pub mod ledger;
pub mod passkey;
pub mod payload;
pub mod receipt;
pub mod release;
pub mod submission;
mod text;
