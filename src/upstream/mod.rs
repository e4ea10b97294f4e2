//! Connections to the provider: TLS, IMAP client, submission client.
//!
//! Promises: connects only to the endpoints of the configuration, never
//! resolves a name taken from a mail. Doesn't know: what the mail is for.

pub mod imap;
pub mod net;
pub mod smtp;
