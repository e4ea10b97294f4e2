//! Named places where a test kills the process.
//!
//! In a build with debug assertions, `TOLLGATE_FAILPOINT=NAME` or `NAME#N`
//! aborts the process when the place is reached for the N-th time (the first
//! without a number), as a crash would: nothing is unwound or flushed.
//! `TOLLGATE_FAILPOINT_LOG=FILE` appends the name of every place that is
//! reached, so that a test learns which there are by running a scenario.
//! In other builds all of this is nothing.
//!
//! Every write, fsync, rename and removal of [`super::disk`] and of the
//! database is such a place, and so is every command and piece of data that
//! the dispatcher sends to a provider, over SMTP or IMAP. [`within`] says what is being done, so
//! that the sync of an approval and that of a claim have names of their own:
//! `approve/db.sync`, `claim/db.sync`.

use std::future::Future;

#[cfg(debug_assertions)]
mod armed {
    use std::cell::Cell;
    use std::collections::HashMap;
    use std::fs::File;
    use std::io::Write;
    use std::sync::{LazyLock, Mutex, PoisonError};

    tokio::task_local! {
        pub(super) static TASK: &'static str;
    }
    thread_local! {
        pub(super) static THREAD: Cell<&'static str> = const { Cell::new("") };
    }

    struct Armed {
        chosen: Option<(String, usize)>,
        log: Option<File>,
        seen: HashMap<String, usize>,
    }

    static ARMED: LazyLock<Option<Mutex<Armed>>> = LazyLock::new(|| {
        let chosen = std::env::var("TOLLGATE_FAILPOINT").ok().map(|text| match text.rsplit_once('#') {
            Some((name, n)) => (name.to_owned(), n.parse().unwrap_or(1)),
            None => (text, 1),
        });
        let log = std::env::var_os("TOLLGATE_FAILPOINT_LOG");
        let log = log.and_then(|path| File::options().create(true).append(true).open(path).ok());
        let needed = chosen.is_some() || log.is_some();
        needed.then(|| Mutex::new(Armed { chosen, log, seen: HashMap::new() }))
    });

    pub(super) fn reached(name: &str) {
        let Some(armed) = &*ARMED else { return };
        let mut armed = armed.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = armed.seen.entry(name.to_owned()).or_default();
        *seen += 1;
        let seen = *seen;
        if let Some(log) = &mut armed.log {
            let _ = log.write_all(format!("{name}\n").as_bytes());
        }
        if armed.chosen.as_ref().is_some_and(|(chosen, n)| chosen == name && *n == seen) {
            eprintln!("failpoint {name}#{seen}");
            std::process::abort();
        }
    }
}

/// Dies here if the environment says so.
#[cfg(debug_assertions)]
pub fn hit(name: &str) {
    armed::reached(name);
}

/// Nothing.
#[cfg(not(debug_assertions))]
pub fn hit(_name: &str) {}

/// As [`hit`], under the name of what is being done.
pub fn hit_here(_site: &str) {
    #[cfg(debug_assertions)]
    match doing() {
        "" => hit(_site),
        doing => hit(&format!("{doing}/{_site}")),
    }
}

/// As [`hit_here`], and nothing where it isn't said what is being done.
pub fn hit_within(_site: &str) {
    #[cfg(debug_assertions)]
    if !doing().is_empty() {
        hit_here(_site);
    }
}

/// As [`hit_within`], under the verb of an IMAP command and `when`:
/// `imap.UID STORE`, `imap.UID STORE.written`.
pub fn hit_command(_command: &[u8], _when: &str) {
    #[cfg(debug_assertions)]
    if !doing().is_empty() {
        let words: Vec<&[u8]> = _command.split(|b| *b == b' ').take(2).collect();
        let verb = match words.as_slice() {
            [first, second] if first.eq_ignore_ascii_case(b"UID") => [first, &b" "[..], second].concat(),
            [first, ..] => first.to_vec(),
            [] => Vec::new(),
        };
        hit_here(&format!("imap.{}{_when}", String::from_utf8_lossy(&verb)));
    }
}

/// What is being done: as [`within`] or [`on_this_thread`] said; else empty.
#[cfg(debug_assertions)]
pub fn doing() -> &'static str {
    armed::TASK.try_with(|doing| *doing).unwrap_or_else(|_| armed::THREAD.get())
}

/// Empty.
#[cfg(not(debug_assertions))]
pub fn doing() -> &'static str {
    ""
}

/// Runs `work` under the name of what it does.
#[cfg(debug_assertions)]
pub fn within<F: Future>(doing: &'static str, work: F) -> impl Future<Output = F::Output> {
    armed::TASK.scope(doing, work)
}

/// `work` itself.
#[cfg(not(debug_assertions))]
pub fn within<F: Future>(_doing: &'static str, work: F) -> impl Future<Output = F::Output> {
    work
}

/// Says what this thread does from now on.
pub fn on_this_thread(_doing: &'static str) {
    #[cfg(debug_assertions)]
    armed::THREAD.set(_doing);
}

/// Runs `work` on this thread under the name of what it does.
pub fn here<T>(_doing: &'static str, work: impl FnOnce() -> T) -> T {
    #[cfg(debug_assertions)]
    let before = armed::THREAD.replace(_doing);
    let done = work();
    #[cfg(debug_assertions)]
    armed::THREAD.set(before);
    done
}
