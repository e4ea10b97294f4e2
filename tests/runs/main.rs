//! FETCH over views: runs of messages that a provider answers in ways of its
//! own, lengths that aren't true, clients that take nothing.

#[allow(dead_code)] // the fault tests use all of it
#[path = "../faults/client.rs"]
mod client;
mod lengths;
mod middle;
mod order;
mod stalled;
#[allow(dead_code)] // the fault tests use all of it
#[path = "../faults/stand.rs"]
mod stand;
