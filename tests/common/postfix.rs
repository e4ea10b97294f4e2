//! A private Postfix: submission with Dovecot's passwords. Mail for
//! `example.test` goes to Dovecot, everything else to the sink, nothing out.

use std::fs;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use super::daemon::Daemon;
use super::dovecot::Dovecot;
use super::program;
use super::scratch::{Scratch, free_port};

/// A recipient that it refuses with 550.
pub(crate) const REFUSED: &str = "refused@example.net";

/// A recipient that it puts off with 450.
pub(crate) const DEFERRED: &str = "deferred@example.net";

/// A running Postfix.
#[derive(Debug)]
pub(crate) struct Postfix {
    daemon: Option<Daemon>,
    pub(crate) submission: u16,
    scratch: Scratch,
}

impl Postfix {
    /// Starts one that relays to the SMTP server at `sink`.
    pub(crate) fn start(dovecot: &Dovecot, sink: u16) -> Postfix {
        Postfix::start_with(dovecot, sink, "")
    }

    /// Starts one that keeps everything in its queue, on hold.
    pub(crate) fn start_holding(dovecot: &Dovecot, sink: u16) -> Postfix {
        Postfix::start_with(dovecot, sink, "header_checks = static:HOLD\n")
    }

    fn start_with(dovecot: &Dovecot, sink: u16, more: &str) -> Postfix {
        let scratch = Scratch::new();
        let root = scratch.path().to_owned();
        for folder in ["etc", "queue", "data", "log"] {
            scratch.folder(folder);
        }
        let owner = nix::unistd::User::from_name("postfix").unwrap().expect("the user postfix; see tests/run");
        std::os::unix::fs::chown(root.join("data"), Some(owner.uid.as_raw()), None).unwrap();
        let submission = free_port();
        fs::write(root.join("etc/main.cf"), main_cf(&root, dovecot, sink) + more).unwrap();
        fs::write(root.join("etc/master.cf"), master_cf(submission)).unwrap();
        let mut postfix = Postfix { daemon: None, submission, scratch };
        postfix.resume();
        postfix
    }

    /// Stops it; its queue stays.
    pub(crate) fn pause(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.stop();
        }
    }

    /// Starts it again.
    pub(crate) fn resume(&mut self) {
        let root = self.scratch.path();
        let etc = root.join("etc");
        // It makes the folders of the queue.
        let mut check = Command::new("postfix");
        check.arg("-c").arg(&etc).arg("check");
        program::finish(check, b"").ok();
        // Not `postfix start-fg`: that one detaches the master from what we started.
        let mut command = Command::new("/usr/lib/postfix/sbin/master");
        command.arg("-c").arg(&etc).arg("-d");
        let log = root.join("postfix.out");
        let mut daemon = Daemon::start("postfix", command, &log, Signal::SIGTERM).with_log(root.join("log/mail.log"));
        daemon.wait_for_port(self.submission);
        self.daemon = Some(daemon);
    }
}

fn main_cf(root: &Path, dovecot: &Dovecot, sink: u16) -> String {
    let (root, sasl, lmtp) = (root.display(), dovecot.sasl(), dovecot.lmtp);
    let (sasl, cert, key) = (sasl.display(), dovecot.authority.cert.display(), dovecot.authority.key.display());
    format!(
        "compatibility_level = 3.7
queue_directory = {root}/queue
data_directory = {root}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
maillog_file = {root}/log/mail.log
maillog_file_prefixes = {root}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.example.test
mydomain = example.test
myorigin = example.test
mydestination = example.test, localhost
mynetworks = 127.0.0.1/32
alias_maps =
alias_database =
local_recipient_maps =
mailbox_transport =
local_transport = lmtp:inet:127.0.0.1:{lmtp}
default_transport = smtp:[127.0.0.1]:{sink}
relay_transport = smtp:[127.0.0.1]:{sink}
relayhost =
smtp_dns_support_level = disabled
disable_dns_lookups = yes
smtpd_tls_cert_file = {cert}
smtpd_tls_key_file = {key}
smtpd_tls_security_level = may
smtpd_sasl_type = dovecot
smtpd_sasl_path = {sasl}
smtpd_sasl_security_options = noanonymous
smtpd_client_connection_rate_limit = 0
smtpd_client_connection_count_limit = 0
smtpd_client_message_rate_limit = 0
smtpd_peername_lookup = no
smtpd_recipient_restrictions = check_recipient_access inline:{{ {{{REFUSED} = 550 5.1.1 nobody here}} {{{DEFERRED} = 450 4.7.1 later}} }}
message_size_limit = 52428800
mailbox_size_limit = 0
biff = no
"
    )
}

fn master_cf(submission: u16) -> String {
    format!(
        "127.0.0.1:{submission} inet n - n - - smtpd
  -o smtpd_sasl_auth_enable=yes
  -o smtpd_tls_auth_only=no
  -o smtpd_relay_restrictions=permit_sasl_authenticated,reject
  -o smtpd_client_restrictions=permit_sasl_authenticated,reject
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
proxywrite unix - - n - 1 proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
local unix - n n - - local
virtual unix - n n - - virtual
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"
    )
}
