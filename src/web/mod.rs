//! The approval page and what stands around it.
pub mod pin;
pub mod sanitise;
mod session;
