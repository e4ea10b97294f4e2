//! Other people's mail clients, through the gateway, with a real Dovecot
//! behind it: mbsync, neomutt, curl, imaplib, IMAPClient's own live test,
//! aioimaplib, OfflineIMAP, fetchmail, Thunderbird.
//!
//! Each test asks both sides: what the client saw, and what Dovecot really
//! holds. `bash tests/run imap` installs the clients and runs them.

#[path = "../common/mod.rs"]
mod common;

mod clients_of;
mod corpus;
mod curl;
mod fetchmail;
mod holdings;
mod idle;
mod imaplib;
mod livetest;
mod many;
mod marionette;
mod mbsync;
mod neomutt;
mod offlineimap;
mod python;
mod table;
mod thunderbird;
