//! `tollgate doctor`, the built program, at accounts that are well and at
//! accounts that are not: what is wrong is found, named and told by the exit
//! code; what is well is really used; the receipt gives nothing away.

#[path = "../common/mod.rs"]
mod common;

mod console;
mod dovecot;
mod faults;
mod stand;
mod well;
