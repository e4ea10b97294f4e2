//! To come.
pub mod smtp;
