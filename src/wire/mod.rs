//! Framing of the two mail protocols over bytes.
//!
//! Promises: octets in, events out, no await and no clock inside, so every
//! schedule of reads can be replayed; nothing is allocated on a promise of
//! the peer. Doesn't know: what a command or a response means.

pub mod imap;
pub mod smtp;
