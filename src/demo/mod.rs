//! The embedded provider: a small IMAP and SMTP server with sample mail.
//!
//! Promises: answers only on loopback; serves any octets exactly as they came;
//! with a folder, a second start finds every mailbox, UID and flag again; it
//! breaks on request, at the place that a test names. Doesn't know: lanes,
//! holds, or that there is a gateway at all.
//!
//! It is a provider for the demo and for tests. Mailboxes live in memory (and
//! are mirrored to the folder), so it is no place for a real archive.

pub mod character;
pub mod client;
pub mod faults;
pub mod provider;

mod dates;
mod disk;
mod frame;
mod imap;
mod labels;
mod samples;
mod smtp;
mod state;

#[cfg(test)]
mod tests;

pub use dates::InternalDate;
