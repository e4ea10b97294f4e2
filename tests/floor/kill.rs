//! Lists the points of a run, and kills at each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::check::{Copies, check};
use crate::child::{self, FOLDER, MODE, RECOVER, SCENARIO};
use crate::common::dovecot::{Dovecot, USERS};
use crate::common::eventually;
use crate::common::gateway::Upstream;
use crate::common::mail::header;
use crate::common::postfix::Postfix;
use crate::common::scratch::Scratch;
use crate::common::sink::{AfterDot, Sink};

/// Kills at each point.
const KILLS: usize = 3;
/// With `TOLLGATE_LONG`.
const KILLS_LONG: usize = 20;
/// Children at a time.
const WORKERS: usize = 3;
/// Longest that a child may run.
const CHILD_LIMIT: Duration = Duration::from_secs(120);
/// A point whose count isn't the same in every run may be missed; more than
/// one in so many is a fault.
const MISSED_AT_MOST: usize = 20;
/// How often a kill that was missed is tried again, at the point's first
/// occurrence.
const TRIED_AGAIN: usize = 4;
/// How long nothing may arrive before it counts as never.
const NEVER: Duration = Duration::from_secs(3);

/// Points that the scenario must reach, or it doesn't show what it should.
const MUST: [&str; 40] = [
    "db.length",
    "intake/db.sync",
    "intake/file.create",
    "intake/file.write",
    "intake/file.sync",
    "intake/file.rename",
    "intake/folder.make",
    "intake/folder.sync",
    "hold/begin",
    "hold/db.write",
    "hold/db.sync",
    "hold/durable",
    "show/db.sync",
    "approve/db.sync",
    "approve/durable",
    "claim/db.sync",
    "claim/durable",
    "lease/db.sync",
    "deny/db.sync",
    "withdraw/db.sync",
    "expire/db.sync",
    "resend/db.sync",
    "revoke/db.sync",
    "revoke/durable",
    "recover/begin",
    "rotate/db.sync",
    "settle-sent/db.sync",
    "settle-retry/db.sync",
    "settle-failed/db.sync",
    "settle-unknown/db.sync",
    "dispatch/file.sync",
    "dispatch/file.rename",
    "dispatch/EHLO",
    "dispatch/AUTH",
    "dispatch/MAIL",
    "dispatch/RSET",
    "dispatch/DATA",
    "dispatch/data",
    "dispatch/dot",
    "file.link",
];

fn kills() -> usize {
    if std::env::var_os("TOLLGATE_LONG").is_some() { KILLS_LONG } else { KILLS }
}

/// What all children share; dropped in this order.
pub(crate) struct Stand {
    pub(crate) postfix: Postfix,
    pub(crate) dovecot: Dovecot,
    /// Behind Postfix.
    sink: Sink,
    /// Bob's provider, which never answers the dot.
    silent: Sink,
    pub(crate) scratch: Scratch,
}

impl Stand {
    pub(crate) fn start() -> Stand {
        let (sink, silent) = (Sink::start(), Sink::start());
        silent.after_dot(AfterDot::Close);
        let dovecot = Dovecot::start();
        let postfix = Postfix::start(&dovecot, sink.port);
        Stand { postfix, dovecot, sink, silent, scratch: Scratch::new() }
    }

    /// An empty folder with a configuration.
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.scratch.folder(name);
        let account = |n: usize, smtp: u16| {
            let (user, password) = USERS[n];
            Upstream { user, password, imap: (1, "none"), smtp: (smtp, "none"), ca: None }.toml()
        };
        let text = format!(
            "state_dir = \"state\"\ncerts_dir = \"certs\"\n\n[limits]\nmax_holds_per_key = 100\n\n{}{}",
            account(0, self.postfix.submission),
            account(1, self.silent.port)
        );
        stand_file(&folder.join("gateway.toml"), &text);
        folder
    }

    /// How many copies of each message arrived anywhere.
    fn arrived(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for mail in self.sink.arrived().iter().chain(&self.silent.arrived()) {
            let id = header(&mail.octets, "Message-ID").expect("a Message-ID");
            *counts.entry(id.trim_matches(['<', '>']).to_owned()).or_default() += 1;
        }
        counts
    }
}

/// A file with a password in it.
pub(crate) fn stand_file(path: &Path, text: &str) {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path).unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
}

/// Runs a child to its end.
fn run(folder: &Path, mode: &str, more: &[(&str, &str)]) -> (ExitStatus, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child::child_that_may_be_killed", "--ignored", "--nocapture"]);
    command.env_clear().env(FOLDER, folder).env(MODE, mode).envs(more.iter().copied());
    command.env("RUST_BACKTRACE", "1");
    let log = folder.join(format!("{mode}.log"));
    let out = std::fs::File::create(&log).unwrap();
    command.stdin(Stdio::null()).stderr(out.try_clone().unwrap()).stdout(out);
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > CHILD_LIMIT {
            child.kill().unwrap();
            break child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    let text = std::fs::read(&log).unwrap();
    (status, String::from_utf8_lossy(&text).into_owned())
}

#[track_caller]
fn run_to_the_end(folder: &Path, mode: &str, more: &[(&str, &str)]) {
    let (status, log) = run(folder, mode, more);
    assert!(status.success(), "{} {mode}: {status}\n{log}", folder.display());
}

/// Every point that a run reaches, with how often.
pub(crate) fn points(folder: &Path, mode: &str) -> BTreeMap<String, usize> {
    let log = folder.join("points");
    run_to_the_end(folder, mode, &[("TOLLGATE_FAILPOINT_LOG", log.to_str().unwrap())]);
    let mut points = BTreeMap::new();
    for name in std::fs::read_to_string(&log).unwrap().lines() {
        *points.entry(name.to_owned()).or_default() += 1;
    }
    points
}

/// The occurrences at which a point is killed: spread from the first to the
/// last, each again where there are fewer.
fn occurrences(count: usize, kills: usize) -> Vec<usize> {
    if count <= kills {
        return (0..kills).map(|n| n % count + 1).collect();
    }
    (0..kills).map(|n| 1 + n * (count - 1) / (kills - 1)).collect()
}

fn all_kills(points: &BTreeMap<String, usize>) -> VecDeque<(String, usize)> {
    let each = |(name, count): (&String, &usize)| {
        let name = name.clone();
        occurrences(*count, kills()).into_iter().map(move |n| (name.clone(), n))
    };
    points.iter().flat_map(each).collect()
}

/// What came of all kills.
struct Tally<T> {
    killed: BTreeMap<String, usize>,
    missed: Vec<String>,
    found: Vec<T>,
}

/// Kills at each of `points` in a folder that `prepare` makes, a process in
/// the first of two modes; one in the other mode follows, and `check` looks at
/// what is left. What it found after each.
pub(crate) fn kill_at_each<T: Send>(
    points: &BTreeMap<String, usize>,
    modes: (&str, &str),
    prepare: impl Fn(usize) -> PathBuf + Sync,
    check: impl Fn(&Path) -> T + Sync,
) -> Vec<T> {
    let queue = Mutex::new(all_kills(points));
    let tally = Mutex::new(Tally { killed: BTreeMap::new(), missed: Vec::new(), found: Vec::new() });
    let numbers = AtomicUsize::new(0);
    let one = |name: String, occurrence: usize| -> bool {
        let folder = prepare(numbers.fetch_add(1, Ordering::Relaxed));
        let point = format!("{name}#{occurrence}");
        let (status, log) = run(&folder, modes.0, &[("TOLLGATE_FAILPOINT", &point)]);
        let killed = status.signal() == Some(nix::libc::SIGABRT) && log.contains("failpoint ");
        assert!(killed || status.success(), "{point}: {status}\n{log}");
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run_to_the_end(&folder, modes.1, &[]);
            check(&folder)
        }));
        let found = found.unwrap_or_else(|_| panic!("after a kill at {point} in {}", folder.display()));
        let mut tally = tally.lock().unwrap();
        tally.found.push(found);
        match killed {
            true => *tally.killed.entry(name).or_default() += 1,
            false => tally.missed.push(point),
        }
        drop(tally);
        std::fs::remove_dir_all(&folder).unwrap();
        killed
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap().pop_front();
                        let Some((name, occurrence)) = next else { return };
                        let mut tries = std::iter::once(occurrence).chain([1; TRIED_AGAIN]);
                        tries.any(|occurrence| one(name.clone(), occurrence));
                    }
                })
            })
            .collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    let tally = tally.into_inner().unwrap();
    let all = all_kills(points).len();
    let killed: usize = tally.killed.values().sum();
    println!("{killed} kills at {} points, {} missed", points.len(), tally.missed.len());
    assert!(tally.missed.len() * MISSED_AT_MOST <= all, "missed: {:?}", tally.missed);
    let never: BTreeSet<_> = points.keys().filter(|name| !tally.killed.contains_key(*name)).collect();
    assert!(never.is_empty(), "never killed at {never:?}");
    tally.found
}

#[track_caller]
pub(crate) fn arrived_as_told(stand: &Stand, copies: &BTreeMap<String, Copies>) {
    let sent = || copies.iter().filter(|(_, of)| **of == Copies::One);
    eventually("everything that was sent to arrive", || {
        let arrived = stand.arrived();
        sent().all(|(id, _)| arrived.contains_key(id)).then_some(())
    });
    std::thread::sleep(NEVER);
    let arrived = stand.arrived();
    for (id, of) in copies {
        let found = arrived.get(id).copied().unwrap_or_default();
        let right = match of {
            Copies::None => found == 0,
            Copies::One => found == 1,
            Copies::AtMostOne => found <= 1,
        };
        assert!(right, "{id}: {of:?}, and {found} arrived");
    }
    let twice: Vec<_> = arrived.iter().filter(|(_, n)| **n > 1).collect();
    assert!(twice.is_empty(), "arrived twice: {twice:?}");
    println!("{} messages looked for, {} sent, {} arrived", copies.len(), sent().count(), arrived.len());
}

#[test]
fn a_kill_at_every_point_loses_nothing_and_sends_nothing_twice() {
    let began = Instant::now();
    let stand = Stand::start();
    let folder = stand.folder("list");
    let points = points(&folder, SCENARIO);
    for must in MUST {
        assert!(points.contains_key(must), "{must} is not among {:?}", points.keys());
    }
    let mut copies = check(&folder);
    assert_eq!(copies.values().filter(|of| **of == Copies::One).count(), 2, "the run without a kill sends two");
    println!("{} points, {} in all; one run takes {:?}", points.len(), points.values().sum::<usize>(), began.elapsed());
    let found = kill_at_each(&points, (SCENARIO, RECOVER), |n| stand.folder(&format!("k{n}")), check);
    copies.extend(found.into_iter().flatten());
    arrived_as_told(&stand, &copies);
    println!("took {:?}", began.elapsed());
}

/// The start after a crash is killed too.
#[test]
fn a_kill_at_every_point_of_a_recovery_changes_nothing() {
    let stand = Stand::start();
    let crashed = stand.folder("crashed");
    let (status, log) = run(&crashed, SCENARIO, &[("TOLLGATE_FAILPOINT", "dispatch/dot#1")]);
    assert!(!status.success(), "{log}");
    // As a crash in mid-intake leaves it.
    std::fs::write(crashed.join("state/blobs/tmp/0123"), b"half").unwrap();
    orphan(&crashed);
    let copy = |name: &str| {
        let to = stand.scratch.path().join(name);
        copy(&crashed, &to);
        to
    };
    let points = points(&copy("list"), RECOVER);
    for must in ["sweep/file.remove", "sweep/db.sync", "recover/db.sync", "recover/durable", "file.rename"] {
        assert!(points.contains_key(must), "{must} is not among {:?}", points.keys());
    }
    let found = kill_at_each(&points, (RECOVER, RECOVER), |n| copy(&format!("k{n}")), check);
    arrived_as_told(&stand, &found.into_iter().flatten().collect());
}

/// Octets that were made durable and that no hold names: the crash came in
/// between.
fn orphan(folder: &Path) {
    let opened = child::open(folder);
    let mut writer = opened.store.blobs().writer();
    writer.write(b"From: alice@example.test\r\n\r\nnever held\r\n").unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(writer.finish()).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name())).unwrap();
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else if path.is_file() {
            std::fs::copy(&path, to.join(name)).unwrap();
        }
    }
}
