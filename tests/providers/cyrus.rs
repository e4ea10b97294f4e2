//! A private Cyrus IMAP server: IMAP and LMTP, everything of it as `nobody`.
//!
//! Its package can't be installed beside Dovecot's; `tests/run` unpacks it
//! into a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::common::daemon::Daemon;
use crate::common::program;
use crate::common::scratch::{Scratch, free_port};
use crate::common::smtp::Smtp;
use crate::provider::{USERS, chown_to_nobody, unpacked};

/// What a server needs to run, of what was unpacked.
const PARTS: [&str; 7] = [
    "usr/lib/cyrus/bin/master",
    "usr/lib/cyrus/bin/imapd",
    "usr/lib/cyrus/bin/lmtpd",
    "usr/lib/x86_64-linux-gnu/libcyrus.so.0",
    "usr/lib/x86_64-linux-gnu/libcyrus_imap.so.0",
    "usr/lib/x86_64-linux-gnu/libcyrus_min.so.0",
    "usr/lib/x86_64-linux-gnu/libcyrus_sieve.so.0",
];

/// A running Cyrus.
#[derive(Debug)]
pub(crate) struct Cyrus {
    _daemon: Daemon,
    pub(crate) imap: u16,
    lmtp: u16,
    _scratch: Scratch,
}

impl Cyrus {
    /// Starts it without the capabilities in `without`.
    pub(crate) fn start(without: &str) -> Cyrus {
        let from = unpacked("cyrus");
        let scratch = Scratch::new();
        let root = scratch.path().to_owned();
        for folder in ["conf", "spool", "run", "bin"] {
            scratch.folder(folder);
        }
        // A copy, because `nobody` may not be let into the folder where they
        // were unpacked.
        for part in PARTS {
            copy_part(&from.join(part), &root.join("bin"));
        }
        let (imap, lmtp) = (free_port(), free_port());
        fs::write(root.join("imapd.conf"), imapd_conf(&root, without)).unwrap();
        fs::write(root.join("cyrus.conf"), cyrus_conf(&root, imap, lmtp)).unwrap();
        for (user, password) in USERS {
            let mut command = Command::new(from.join("usr/sbin/saslpasswd2"));
            command.args(["-p", "-c", "-u", "localhost", "-f"]).arg(root.join("sasldb")).arg(user);
            program::finish(command, format!("{password}\n").as_bytes()).ok();
        }
        chown_to_nobody(&root);
        let mut command = Command::new(root.join("bin/master"));
        command.arg("-C").arg(root.join("imapd.conf")).arg("-M").arg(root.join("cyrus.conf"));
        command.arg("-p").arg(root.join("run/pid")).arg("-L").arg(root.join("log"));
        command.env("LD_LIBRARY_PATH", root.join("bin"));
        let out = root.join("out");
        let mut daemon = Daemon::start("cyrus", command, &out, Signal::SIGTERM).with_log(root.join("log"));
        daemon.wait_for_port(imap);
        daemon.wait_for_port(lmtp);
        Cyrus { _daemon: daemon, imap, lmtp, _scratch: scratch }
    }

    /// Delivers by LMTP.
    pub(crate) fn deliver(&self, user: &str, octets: &[u8]) {
        let mut lmtp = Smtp::connect(self.lmtp);
        lmtp.expect("LHLO tests.example.test", "250");
        lmtp.expect("MAIL FROM:<ann@example.com>", "250");
        lmtp.expect(&format!("RCPT TO:<{user}>"), "250");
        lmtp.expect("DATA", "354");
        lmtp.message(octets);
        let reply = lmtp.reply();
        assert!(reply.starts_with("250"), "LMTP said {reply}");
        lmtp.expect("QUIT", "221");
    }
}

fn copy_part(from: &Path, folder: &Path) -> PathBuf {
    let to = folder.join(from.file_name().expect("a file"));
    fs::copy(from, &to).unwrap_or_else(|e| panic!("{}: {e}; see tests/run", from.display()));
    to
}

fn imapd_conf(root: &Path, without: &str) -> String {
    let root = root.display();
    let suppress = if without.is_empty() { String::new() } else { format!("suppress_capabilities: {without}\n") };
    // IDLE is offered where it can be served: by looking every second.
    let poll = u8::from(!without.split(' ').any(|w| w == "IDLE"));
    format!(
        "configdirectory: {root}/conf
partition-default: {root}/spool
defaultpartition: default
cyrus_user: nobody
servername: localhost
admins: admin
allowplaintext: yes
sasl_pwcheck_method: auxprop
sasl_auxprop_plugin: sasldb
sasl_sasldb_path: {root}/sasldb
sasl_mech_list: PLAIN
unixhierarchysep: no
altnamespace: no
virtdomains: off
autocreate_quota: 0
autocreate_inbox_folders: Drafts|Sent|Trash
autocreate_subscribe_folders: Drafts|Sent|Trash
duplicatesuppression: no
lmtpsocket: {root}/run/lmtp
idlesocket: {root}/run/idle
notifysocket: {root}/run/notify
imapidlepoll: {poll}
{suppress}"
    )
}

fn cyrus_conf(root: &Path, imap: u16, lmtp: u16) -> String {
    let root = root.display();
    format!(
        r#"START {{
}}
SERVICES {{
  imap cmd="{root}/bin/imapd -C {root}/imapd.conf" listen="127.0.0.1:{imap}" prefork=1
  lmtp cmd="{root}/bin/lmtpd -a -C {root}/imapd.conf" listen="127.0.0.1:{lmtp}" prefork=0
}}
EVENTS {{
}}
"#
    )
}
