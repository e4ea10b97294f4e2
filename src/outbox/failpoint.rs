//! Named places where a test kills the process.
//!
//! In a build with debug assertions, `TOLLGATE_FAILPOINT` names one of
//! [`POINTS`]; reaching it aborts the process, as a power cut would, without
//! unwinding or flushing anything. In other builds [`hit`] is nothing.

/// The places: right after the 250 of a hold was written to the client;
/// before DATA is sent to the provider; after the final dot was written to
/// the provider and before its reply is read.
pub const POINTS: [&str; 3] = ["hold.after_250", "dispatch.before_data", "dispatch.after_dot"];

/// Dies here if the environment says so.
#[cfg(debug_assertions)]
pub fn hit(name: &str) {
    static CHOSEN: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("TOLLGATE_FAILPOINT").ok());
    if CHOSEN.as_deref() == Some(name) {
        eprintln!("failpoint {name}");
        std::process::abort();
    }
}

/// Nothing.
#[cfg(not(debug_assertions))]
pub fn hit(_name: &str) {}
