//! The outbox under every crash: a process that holds, shows, approves,
//! dispatches and settles is killed at each point that its own run listed,
//! before real Postfix with a counting sink behind it. So is one that removes
//! messages at Dovecot and puts copies into Sent.
//!
//! `TOLLGATE_LONG` kills 20 times at each point in place of 3.

#[path = "../common/mod.rs"]
mod common;

mod acts;
mod acts_child;
mod check;
mod child;
mod kill;
mod operate;
