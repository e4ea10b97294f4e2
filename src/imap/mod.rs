//! The IMAP face: the mirror of the provider's INBOX, the views over it, and
//! sessions with mail clients.
//!
//! Promises: a view UID names the same octets for good; the provider's INBOX
//! is changed only by the one watching connection of the account; mailboxes
//! that are no views pass through untouched for people; an agent's command is
//! decoded, looked up in one closed table and encoded anew. Doesn't know:
//! how mail leaves.

pub mod agent;
pub mod answer;
pub mod append;
pub mod asked;
pub mod console;
pub mod copy;
pub mod correct;
pub mod deletion;
pub mod encode;
pub mod entering;
pub mod errand;
pub mod fetch;
pub mod lanes;
pub mod list;
pub mod local;
pub mod measured;
pub mod mirror;
pub mod ops;
pub mod parking;
pub mod pass;
pub mod patient;
pub mod pending;
pub mod perceiving;
pub mod pins;
pub mod plan;
pub mod pool;
pub mod rows;
pub mod runs;
pub mod scan;
pub mod search;
pub mod section;
pub mod select;
pub mod session;
mod sign_in;
pub mod store;
pub mod sync;
pub mod timing;
pub mod uid;
pub mod view;
pub mod watch;
