//! The gateway between real programs: Dovecot and Postfix upstream; curl,
//! swaks, mbsync and Python's imaplib downstream.
//!
//! Each test starts its own peers in private folders. Nothing leaves the
//! machine: mail to the outside ends in the sink.

#[path = "../common/mod.rs"]
mod common;

mod accounts;
mod agents;
mod clients;
mod filing;
mod history;
mod lanes;
mod limits;
mod login;
mod names;
mod outcomes;
mod removals;
mod sending;
