//! neomutt on a terminal of its own.

use std::path::PathBuf;
use std::process::Command;

use crate::clients_of;
use crate::common::eventually;
use crate::common::mail::message;
use crate::common::program::{finish, run};
use crate::common::world::{LANES, World};
use crate::holdings::at_the_provider;
use crate::table;

/// A tmux server with one window.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    fn start(world: &World, arguments: &str) -> Terminal {
        let socket = world.gateway.scratch.path().join("tmux");
        let folder = world.gateway.scratch.path().display();
        let shell = format!("cd {folder} && env HOME={folder} neomutt {arguments}; echo ENDED; exec sleep 600");
        let terminal = Terminal { socket };
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "45", &shell]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        // tmux insists on UTF-8 and a terminal type.
        command.arg("-u").arg("-S").arg(&self.socket).args(arguments).env("TERM", "screen").env("LC_ALL", "C.UTF-8");
        finish(command, b"").ok().text()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    #[track_caller]
    fn wait(&self, text: &str) -> String {
        eventually(&format!("{text} on neomutt's screen:\n{}", self.screen()), || {
            let screen = self.screen();
            screen.contains(text).then_some(screen)
        })
    }

    /// Keys by tmux's names.
    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Answers a prompt.
    #[track_caller]
    fn answer(&self, prompt: &str, text: &str) {
        self.wait(prompt);
        self.keys(&["C-u"]);
        self.tmux(&["send-keys", "-l", text]);
        self.keys(&["Enter"]);
    }

    /// Puts the cursor on the message with this subject.
    #[track_caller]
    fn go_to(&self, subject: &str) {
        let is_there = |screen: &str| screen.lines().any(|l| l.contains("->") && l.contains(subject));
        // What the screen shows may be from before the last keys; the prompt
        // comes after them. The search goes around, to where it began too.
        self.keys(&["Home", "/"]);
        self.answer("Search for", &format!("~s \"{subject}\""));
        eventually(&format!("the cursor on {subject}:\n{}", self.screen()), || is_there(&self.screen()).then_some(()));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("---- neomutt showed:\n{}\n----", self.screen());
        }
        // Ends the server of this socket, and with it neomutt.
        let _ = run("tmux", &["-S", self.socket.to_str().unwrap(), "kill-server"]);
    }
}

#[test]
fn neomutt_reads_corrects_flags_files_deletes_and_hears_of_new_mail() {
    let world = World::start();
    let mail = |subject: &str| {
        let mail = message("Ann <ann@example.com>", &world.alice.address, subject, "Hello Alice.");
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
        mail
    };
    // The same kind of mail, so that all are in one lane.
    let [corrected, flagged, filed, deleted] = ["Correct me", "Flag me", "File me", "Delete me"].map(mail);
    let mut session = world.person(&world.alice);
    let (lane, _) = world.lane_of(&mut session, &corrected.id);
    for other in [&flagged, &filed, &deleted] {
        assert_eq!(world.lane_of(&mut session, &other.id).0, lane);
    }
    let login = clients_of::through(&world);
    let config = format!(
        "set folder = \"imaps://localhost:{}/\"\nset imap_user = \"{}\"\nset imap_pass = \"{}\"\nset spool_file = \"+INBOX\"\n\
         set ssl_force_tls = yes\nset certificate_file = \"{}\"\nset ssl_verify_host = no\nset header_cache = \"\"\n\
         set message_cachedir = \"\"\nset timeout = 1\nset mail_check = 1\nset imap_idle = yes\nset sleep_time = 0\n\
         set wait_key = no\nset confirm_append = no\nset delete = yes\nset move = no\nset mark_old = no\n\
         set arrow_cursor = yes\nset sort = mailbox-order\nset wrap_search = yes\n",
        login.imaps,
        login.user,
        login.password,
        login.trusts.display()
    );
    let config = world.gateway.scratch.file("neomuttrc", config);
    let terminal = Terminal::start(&world, &format!("-n -F {} -f '={lane}'", config.display()));

    // The index, and a message with its stamps.
    let screen = terminal.wait("Delete me");
    for subject in ["Correct me", "Flag me", "File me"] {
        assert!(screen.contains(subject), "{screen}");
    }
    terminal.go_to("Correct me");
    terminal.keys(&["Enter"]);
    terminal.wait("Hello Alice.");
    terminal.keys(&["h"]);
    let name = lane.rsplit('/').next().unwrap().to_ascii_lowercase();
    terminal.wait(&format!("X-Tollgate-Lane: {name}"));
    terminal.keys(&["i"]);

    // A move between lanes: neomutt copies, sets \Deleted and expunges.
    let to = LANES.into_iter().find(|l| **l != *lane).unwrap();
    terminal.go_to("Correct me");
    terminal.keys(&["s"]);
    terminal.answer("Save", &format!("={to}"));
    terminal.keys(&["$"]);
    // Between its COPY and its EXPUNGE the message is in both.
    eventually("the correction", || {
        session.ok(&format!("SELECT \"{lane}\""));
        let left = session.find(&corrected.id).is_empty();
        session.ok(&format!("SELECT \"{to}\""));
        (left && session.find(&corrected.id).len() == 1).then_some(())
    });
    let noted = world.gateway.json(&["corrections", "list"]);
    assert!(noted.to_string().contains(&corrected.id), "{noted}");
    session.ok("SELECT \"Lanes/All\"");
    assert_eq!(session.find(&corrected.id).len(), 1);

    terminal.go_to("Flag me");
    terminal.keys(&["F", "$"]);
    terminal.go_to("File me");
    terminal.keys(&["s"]);
    terminal.answer("Save", "=Archive");
    terminal.go_to("Delete me");
    terminal.keys(&["d", "$"]);
    let held = |mailbox: &str, id: &str| {
        at_the_provider(&world.dovecot, "alice").remove(&(mailbox.to_owned(), format!("<{id}>")))
    };
    eventually("the deletion", || held("INBOX", &deleted.id).is_none().then_some(()));
    eventually("the move out", || held("INBOX", &filed.id).is_none().then_some(()));
    assert!(held("Archive", &filed.id).unwrap().octets.ends_with(&filed.octets));
    assert!(!held("Archive", &filed.id).unwrap().octets.starts_with(b"X-Tollgate"));
    assert!(held("INBOX", &flagged.id).unwrap().flags.contains("\\Flagged"));
    let kept = held("INBOX", &corrected.id).unwrap();
    assert!(kept.octets.ends_with(&corrected.octets) && !kept.flags.contains("\\Deleted"), "{:?}", kept.flags);

    // New mail appears by itself, and Lanes/All shows what is left.
    mail("Brand new");
    terminal.wait("Brand new");
    terminal.keys(&["c"]);
    terminal.answer("Open mailbox", "=Lanes/All");
    let screen = terminal.wait("Correct me");
    assert!(screen.contains("Flag me") && !screen.contains("Delete me"), "{screen}");
    terminal.keys(&["q"]);
    terminal.wait("ENDED");
    table::is_true_of(&world, "neomutt");
}
