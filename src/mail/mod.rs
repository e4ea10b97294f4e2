//! What a message is, as octets: addresses, header fields, MIME for showing.
//!
//! Pure: knows no socket, file, clock or randomness.

pub mod address;
pub mod header;
pub mod mime;
pub mod mutf7;
pub(crate) mod parts;
pub(crate) mod structure;
