//! A provider that fails in every way at every point: the client gets a proper
//! answer within a bound, or the end of its connection where IMAP leaves no
//! other way, and never an untrue one.

mod characters;
mod client;
mod connections;
mod errands;
mod hostile;
mod offers;
mod stand;
mod table;
mod uploads;
mod vanished;
