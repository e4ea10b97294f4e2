//! Wiring, supervision, shutdown.
//!
//! Promises: what is started here is ended here. Doesn't know: any protocol.

pub mod control;
pub mod core;
