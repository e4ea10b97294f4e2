//! Models that judge mail, against an endpoint that answers by a script: every
//! failure has its next step, and the mail is always shown in time.

mod burst;
mod endpoint;
mod eval;
mod hygiene;
mod restart;
mod rule;
mod stand;
mod steps;

#[path = "../common/mod.rs"]
mod common;
