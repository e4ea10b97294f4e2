//! A private Courier IMAP server, everything of it as `nobody`.
//!
//! Its package can't be installed beside Dovecot's; `tests/run` unpacks it
//! into a folder of its own, and there lets its login ask for passwords at a
//! socket in its own working folder. Who answers at that socket is this file:
//! Courier's authentication daemon would want its configuration in /etc.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::common::daemon::Daemon;
use crate::common::program;
use crate::common::scratch::{Scratch, free_port};
use crate::provider::{USERS, chown_to_nobody, nobody, unpacked};

/// What a server needs to run, of what was unpacked.
const PARTS: [&str; 6] = [
    "usr/sbin/couriertcpd",
    "usr/lib/courier/courier/imaplogin",
    "usr/bin/imapd",
    "usr/lib/libcourierauth.so.0",
    "usr/lib/libcourierauthcommon.so.0",
    "usr/lib/libcourierauthsasl.so.0",
];
/// The socket of the authentication daemon, as `tests/run` has written it
/// into the library.
const SOCKET: &str = "auth";
/// What the server sent, where it is set up to send: this program of ours
/// only keeps it.
const SENT: &str = "sent";
/// How long a login may take to ask.
const ASKING: Duration = Duration::from_secs(10);

/// A running Courier.
#[derive(Debug)]
pub(crate) struct Courier {
    _daemon: Daemon,
    _passwords: Passwords,
    pub(crate) imap: u16,
    root: PathBuf,
    _scratch: Scratch,
}

impl Courier {
    /// Starts it with these capabilities and further variables.
    pub(crate) fn start(capabilities: &str, more: &[(&str, &str)]) -> Courier {
        let from = unpacked("courier");
        let scratch = Scratch::new();
        let root = scratch.path().to_owned();
        scratch.folder("bin");
        // A copy, because `nobody` may not be let into the folder where they
        // were unpacked.
        for part in PARTS {
            let part = from.join(part);
            let to = root.join("bin").join(part.file_name().expect("a file"));
            fs::copy(&part, to).unwrap_or_else(|e| panic!("{}: {e}; see tests/run", part.display()));
        }
        for (user, _) in USERS {
            scratch.folder(user);
            let maildir = root.join(user).join("Maildir");
            let maildirmake = from.join("usr/bin/maildirmake.courier");
            let maildir = maildir.to_str().expect("a plain path");
            program::run(&maildirmake, &[maildir]).ok();
            for folder in ["Drafts", "Sent", "Trash"] {
                program::run(&maildirmake, &["-f", folder, maildir]).ok();
            }
            let names = ["INBOX", "INBOX.Drafts", "INBOX.Sent", "INBOX.Trash", ""].join("\n");
            fs::write(Path::new(maildir).join("courierimapsubscribed"), names).unwrap();
        }
        let sendmail = root.join("bin/sendmail");
        fs::write(&sendmail, format!("#!/bin/sh\ncat >>{}\n", root.join(SENT).display())).unwrap();
        fs::set_permissions(&sendmail, fs::Permissions::from_mode(0o755)).unwrap();
        chown_to_nobody(&root);
        let passwords = Passwords::start(&root);
        let imap = free_port();
        let (uid, gid) = nobody();
        let mut command = Command::new(root.join("bin/couriertcpd"));
        command.args(["-address=127.0.0.1", "-maxprocs=100", "-maxperip=100", "-nodnslookup", "-noidentlookup"]);
        command.arg(imap.to_string()).arg(root.join("bin/imaplogin")).arg(root.join("bin/imapd")).arg("Maildir");
        command.current_dir(&root).env_clear().uid(uid).gid(gid);
        command.env("LD_LIBRARY_PATH", root.join("bin")).env("PATH", "/usr/bin:/bin");
        command.env("IMAP_CAPABILITY", capabilities).env("PROTOCOL", "IMAP").env("DEBUG_LOGIN", "1");
        for (name, value) in [
            ("IMAP_KEYWORDS", "1"),
            ("IMAP_ACL", "0"),
            ("IMAP_STARTTLS", "NO"),
            ("IMAP_TLS_REQUIRED", "0"),
            ("IMAP_USELOCKS", "1"),
            ("IMAP_IDLE_TIMEOUT", "1"),
            // The one called so can't be deleted, and Trash shall be.
            ("IMAP_TRASHFOLDERNAME", "Bin"),
            ("IMAP_EMPTYTRASH", ""),
        ] {
            command.env(name, value);
        }
        command.env("SENDMAIL", sendmail);
        command.envs(more.iter().copied());
        let mut daemon = Daemon::start("courier", command, &root.join("log"), Signal::SIGTERM);
        daemon.wait_for_port(imap);
        Courier { _daemon: daemon, _passwords: passwords, imap, root, _scratch: scratch }
    }

    /// All that the server sent.
    pub(crate) fn sent(&self) -> String {
        fs::read_to_string(self.root.join(SENT)).unwrap_or_default()
    }

    /// Delivers as every program does that knows maildir: a file is written
    /// in `tmp` and renamed into `new`.
    pub(crate) fn deliver(&self, user: &str, octets: &[u8]) {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let maildir = self.root.join(user).join("Maildir");
        let now = jiff::Timestamp::now();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}.M{}P{}Q{count}.tests", now.as_second(), now.subsec_microsecond(), std::process::id());
        let tmp = maildir.join("tmp").join(&name);
        let text = String::from_utf8(octets.to_vec()).expect("the mails delivered here are text");
        fs::write(&tmp, text.replace("\r\n", "\n")).unwrap();
        let (uid, gid) = nobody();
        std::os::unix::fs::chown(&tmp, Some(uid), Some(gid)).unwrap();
        fs::rename(&tmp, maildir.join("new").join(&name)).unwrap();
    }
}

/// Answers as Courier's authentication daemon does, until it is dropped.
#[derive(Debug)]
struct Passwords {
    socket: PathBuf,
    ends: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Passwords {
    fn start(root: &Path) -> Passwords {
        let socket = root.join(SOCKET);
        let listener = UnixListener::bind(&socket).expect("a socket");
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
        let (root, ends) = (root.to_owned(), Arc::new(AtomicBool::new(false)));
        let until = ends.clone();
        let thread = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if until.load(Ordering::Relaxed) {
                    return;
                }
                // Who asks nothing proper isn't let in.
                let _ = answer_password(stream, &root);
            }
        });
        Passwords { socket, ends, thread: Some(thread) }
    }
}

impl Drop for Passwords {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if UnixStream::connect(&self.socket).is_ok() {
            let _ = self.thread.take().map(thread::JoinHandle::join);
        }
    }
}

/// `AUTH LENGTH`, then that many octets: service, kind, user, password, each
/// on a line.
fn answer_password(mut stream: UnixStream, root: &Path) -> std::io::Result<()> {
    stream.set_read_timeout(Some(ASKING))?;
    let mut asked = Vec::new();
    let mut chunk = [0; 4096];
    let question = loop {
        if let Some(question) = question(&asked) {
            break question;
        }
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            n => asked.extend_from_slice(&chunk[..n]),
        }
    };
    let mut lines = question.lines().skip(2);
    let (user, password) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    if !USERS.contains(&(user, password)) {
        return stream.write_all(b"FAIL\n");
    }
    let (uid, gid) = nobody();
    let home = root.join(user).display().to_string();
    stream
        .write_all(format!("UID={uid}\nGID={gid}\nHOME={home}\nADDRESS={user}\nMAILDIR={home}/Maildir\n.\n").as_bytes())
}

fn question(asked: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(asked).ok()?;
    let at = text.find("AUTH ")?;
    let (length, rest) = text[at + 5..].split_once('\n')?;
    let length: usize = length.trim().parse().ok()?;
    (rest.len() >= length).then(|| rest[..length].to_owned())
}
