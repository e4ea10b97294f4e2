//! A program that runs beside the test and is ended by its process id.

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::PATIENCE;

/// How many of the last lines of its log are shown when a test fails.
const SHOWN_LINES: usize = 60;

/// A running program, leader of its own process group.
#[derive(Debug)]
pub(crate) struct Daemon {
    name: &'static str,
    child: Child,
    /// Its output, and its log where it writes one of its own.
    logs: Vec<PathBuf>,
    /// What asks it to end.
    ask: Signal,
    ended: bool,
    guard: Guard,
}

/// Ends a process group when this process is killed before it can.
#[derive(Debug)]
struct Guard(Child);

impl Guard {
    fn of(group: u32) -> Guard {
        // Its input ends when nobody is left who holds the other end.
        let script = format!("read; kill -TERM -- -{group}; sleep 3; kill -KILL -- -{group}");
        let mut command = Command::new("/bin/bash");
        command.arg("-c").arg(script).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Guard(command.process_group(0).spawn().expect("/bin/bash"))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Daemon {
    /// Starts `command` in the foreground; output goes to `log`.
    pub(crate) fn start(name: &'static str, mut command: Command, log: &Path, ask: Signal) -> Daemon {
        let out = File::options().create(true).append(true).open(log).expect("a log file");
        let err = out.try_clone().unwrap();
        command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
        let child = command.spawn().unwrap_or_else(|e| panic!("{name} can't be started: {e}; see tests/run"));
        let guard = Guard::of(child.id());
        Daemon { name, child, logs: vec![log.to_owned()], ask, ended: false, guard }
    }

    /// Names a further log.
    pub(crate) fn with_log(mut self, log: PathBuf) -> Daemon {
        self.logs.push(log);
        self
    }

    /// Waits until 127.0.0.1 answers on `port`.
    #[track_caller]
    pub(crate) fn wait_for_port(&mut self, port: u16) {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.ended = true;
                panic!("{} ended at its start ({status}):\n{}", self.name, self.tail());
            }
            assert!(began.elapsed() < PATIENCE, "{} doesn't listen on {port}:\n{}", self.name, self.tail());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for an end that comes by itself.
    #[track_caller]
    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        let status = self.ends_within(PATIENCE);
        status.unwrap_or_else(|| panic!("{} did not end by itself:\n{}", self.name, self.tail()))
    }

    fn ends_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().ok()? {
                self.ended = true;
                return Some(status);
            }
            if began.elapsed() > limit {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it without a warning.
    pub(crate) fn kill_9(&mut self) {
        self.group(Signal::SIGKILL);
        let status = self.wait_for_end();
        assert!(status.signal().is_some(), "{} had already ended: {status}", self.name);
    }

    /// Asks it to end and waits; whatever it leaves behind is killed.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.one(self.ask);
        let status = self.wait_for_end();
        self.sweep();
        status
    }

    /// Kills what is left of the group after its leader ended. The group's
    /// number isn't given to another while a member lives.
    fn sweep(&self) {
        let _ = signal::killpg(self.raw(), Signal::SIGKILL);
    }

    fn one(&self, signal: Signal) {
        if !self.ended {
            let _ = signal::kill(self.raw(), signal);
        }
    }

    fn group(&self, signal: Signal) {
        if !self.ended {
            let _ = signal::killpg(self.raw(), signal);
        }
    }

    fn raw(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
    }

    /// What it wrote, in full.
    pub(crate) fn log(&self) -> String {
        self.logs.iter().filter_map(|l| fs::read(l).ok()).map(|l| String::from_utf8_lossy(&l).into_owned()).collect()
    }

    fn tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("---- {} wrote:\n{}\n----", self.name, self.tail());
        }
        self.one(self.ask);
        if !self.ended && self.ends_within(Duration::from_secs(8)).is_none() {
            self.group(Signal::SIGKILL);
            let _ = self.child.wait();
        }
        self.sweep();
    }
}
