//! A private Dovecot: IMAP, IMAP over TLS, LMTP, and SASL for Postfix.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use super::daemon::Daemon;
use super::imap::Imap;
use super::scratch::{Scratch, free_port};
use super::smtp::Smtp;
use super::tls::{self, Authority};

/// The users, with their passwords; mail for `user@example.test` is theirs.
pub(crate) const USERS: [(&str, &str); 2] = [("alice", "alicepw"), ("bob", "bobpw")];

/// A running Dovecot.
#[derive(Debug)]
pub(crate) struct Dovecot {
    daemon: Option<Daemon>,
    pub(crate) imap: u16,
    pub(crate) imaps: u16,
    pub(crate) lmtp: u16,
    pub(crate) authority: Authority,
    root: PathBuf,
    _scratch: Scratch,
}

impl Dovecot {
    pub(crate) fn start() -> Dovecot {
        Dovecot::start_with("")
    }

    /// With a quota of so many KiB for each user.
    pub(crate) fn start_with_quota(kib: u32) -> Dovecot {
        Dovecot::start_with(&format!(
            "mail_plugins = quota\nprotocol imap {{\n  mail_plugins = quota imap_quota\n}}\n\
             plugin {{\n  quota = maildir:User quota\n  quota_rule = *:storage={kib}K\n}}\n"
        ))
    }

    /// With more at the end of its configuration.
    fn start_with(more: &str) -> Dovecot {
        assert!(nix::unistd::geteuid().is_root(), "Dovecot and Postfix are started by root; run the tests as root");
        let scratch = Scratch::new();
        let root = scratch.path().to_owned();
        for folder in ["etc", "run", "mail", "state"] {
            scratch.folder(folder);
        }
        let authority = tls::authority(&root.join("etc"));
        let users: String = USERS.iter().map(|(u, p)| format!("{u}:{{PLAIN}}{p}\n")).collect();
        fs::write(root.join("etc/passwd"), users).unwrap();
        let nobody = nix::unistd::User::from_name("nobody").unwrap().expect("the user nobody");
        std::os::unix::fs::chown(root.join("mail"), Some(nobody.uid.as_raw()), Some(nobody.gid.as_raw())).unwrap();
        let (imap, imaps, lmtp) = (free_port(), free_port(), free_port());
        fs::write(root.join("etc/dovecot.conf"), config(&root, imap, imaps, lmtp) + more).unwrap();
        let mut dovecot = Dovecot { daemon: None, imap, imaps, lmtp, authority, root, _scratch: scratch };
        dovecot.resume();
        dovecot
    }

    /// Stops it; its mail stays.
    pub(crate) fn pause(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.stop();
        }
    }

    /// Starts it again.
    pub(crate) fn resume(&mut self) {
        let mut command = Command::new("dovecot");
        command.arg("-F").arg("-c").arg(self.root.join("etc/dovecot.conf"));
        let log = self.root.join("dovecot.out");
        let mut daemon =
            Daemon::start("dovecot", command, &log, Signal::SIGQUIT).with_log(self.root.join("dovecot.log"));
        daemon.wait_for_port(self.imap);
        daemon.wait_for_port(self.lmtp);
        self.daemon = Some(daemon);
    }

    /// The socket at which Postfix asks for passwords.
    pub(crate) fn sasl(&self) -> PathBuf {
        self.root.join("run/sasl")
    }

    /// Gives a user another password; sessions that are open stay.
    pub(crate) fn set_password(&self, user: &str, password: &str) {
        let users: String =
            USERS.iter().map(|(u, p)| format!("{u}:{{PLAIN}}{}\n", if *u == user { password } else { p })).collect();
        fs::write(self.root.join("etc/passwd"), users).unwrap();
        // It looks at the file's time and size once a second.
        super::eventually("the new password to be taken", || {
            let answer = Imap::connect(self.imap).command(&format!("LOGIN {user} {password}"));
            answer.status.starts_with("OK").then_some(())
        });
    }

    /// A session without the gateway.
    pub(crate) fn direct(&self, user: &str) -> Imap {
        let (_, password) = USERS.iter().find(|(u, _)| *u == user).expect("a known user");
        Imap::login(self.imap, user, password)
    }

    /// Delivers to a user by LMTP.
    pub(crate) fn deliver(&self, user: &str, from: &str, octets: &[u8]) {
        let mut lmtp = Smtp::connect(self.lmtp);
        lmtp.expect("LHLO tests.example.test", "250");
        lmtp.expect(&format!("MAIL FROM:<{from}>"), "250");
        lmtp.expect(&format!("RCPT TO:<{user}@example.test>"), "250");
        lmtp.expect("DATA", "354");
        lmtp.message(octets);
        let reply = lmtp.reply();
        assert!(reply.starts_with("250"), "LMTP said {reply}");
        lmtp.expect("QUIT", "221");
    }
}

fn config(root: &Path, imap: u16, imaps: u16, lmtp: u16) -> String {
    let root = root.display();
    let special: String = ["Drafts", "Sent", "Trash", "Junk", "Archive"]
        .iter()
        .map(|name| format!("  mailbox {name} {{\n    special_use = \\{name}\n    auto = subscribe\n  }}\n"))
        .collect();
    format!(
        r"base_dir = {root}/run
state_dir = {root}/state
instance_name = tollgate-test
log_path = {root}/dovecot.log
info_log_path = {root}/dovecot.log
protocols = imap lmtp
listen = 127.0.0.1
ssl = yes
ssl_cert = <{root}/etc/cert.pem
ssl_key = <{root}/etc/key.pem
ssl_dh =
disable_plaintext_auth = no
auth_mechanisms = plain login
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%u {root}/etc/passwd
}}
userdb {{
  driver = static
  args = uid=nobody gid=nogroup home={root}/mail/%u
}}
mail_location = maildir:~/Maildir
first_valid_uid = 1
default_internal_user = dovecot
default_internal_group = dovecot
default_login_user = dovenull
mail_max_userip_connections = 100
service imap-login {{
  service_count = 0
  process_min_avail = 1
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = {imaps}
    ssl = yes
  }}
}}
service lmtp {{
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {lmtp}
  }}
}}
service auth {{
  unix_listener sasl {{
    mode = 0666
  }}
}}
protocol lmtp {{
  auth_username_format = %n
}}
namespace inbox {{
  inbox = yes
  separator = /
{special}}}
"
    )
}
