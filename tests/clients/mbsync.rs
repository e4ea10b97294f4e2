//! mbsync (isync), two-way.

use std::fs;
use std::path::{Path, PathBuf};

use crate::clients_of::{self, Login};
use crate::common::mail::{message, stamp, unstamped};
use crate::common::program::run;
use crate::common::world::{LANES, World};
use crate::corpus::delivered;
use crate::holdings::{
    Holdings, assert_same_but_for_stamps, at_the_provider, files, in_maildirs, with_crlf, without_field,
};
use crate::table;

/// What mbsync sends in a run that changes nothing and fetches no message.
const QUIET: [&str; 8] = ["AUTHENTICATE", "LOGIN", "NAMESPACE", "LIST", "SELECT", "CLOSE", "LOGOUT", "CAPABILITY"];

/// Maildirs that follow a server.
struct Mbsync {
    root: PathBuf,
    config: PathBuf,
}

impl Mbsync {
    fn new(world: &World, name: &str, login: &Login) -> Mbsync {
        let root = world.gateway.scratch.folder(name);
        let (shown, port, user, password) = (root.display(), login.imaps, &login.user, &login.password);
        let config = format!(
            "IMAPAccount a\nHost localhost\nPort {port}\nUser {user}\nPass {password}\nSSLType IMAPS\n\
             CertificateFile {}\n\nIMAPStore far\nAccount a\n\nMaildirStore near\nPath {shown}/\n\
             Inbox {shown}/INBOX\nSubFolders Verbatim\n\nChannel c\nFar :far:\nNear :near:\nPatterns *\n\
             Sync All\nCreate Both\nExpunge Both\nSyncState *\n",
            login.trusts.display()
        );
        let config = world.gateway.scratch.file(&format!("{name}.rc"), config);
        Mbsync { root, config }
    }

    /// Runs once; the commands that fetched a message or changed something.
    #[track_caller]
    fn sync(&self) -> Vec<String> {
        let ran = run("mbsync", &["-Dn", "-c", self.config.to_str().unwrap(), "-a"]).ok();
        let said = ran.text() + &ran.stderr;
        let commands = said.lines().filter_map(|l| l.split_once(">>> ")?.1.split_once(' ')).map(|(_, c)| c.to_owned());
        let quiet = |c: &String| {
            let verb = c.split(' ').next().unwrap_or_default();
            QUIET.contains(&verb) || (c.starts_with("UID FETCH ") && c.ends_with(" (UID FLAGS)"))
        };
        commands.filter(|c| !quiet(c)).collect()
    }

    /// Runs until there is nothing to do, and once more.
    #[track_caller]
    fn settle(&self, what: &str) {
        // A change in a lane shows in Lanes/All, which may have had its turn.
        let runs: Vec<Vec<String>> = (0..3).map(|_| self.sync()).collect();
        assert!(runs[2].is_empty(), "after {what}, there is always something to do: {runs:?}");
        let before = self.names();
        assert_eq!(self.sync(), Vec::<String>::new(), "after {what}");
        assert_eq!(self.names(), before, "after {what}");
    }

    fn names(&self) -> Vec<PathBuf> {
        files(&self.root).into_iter().collect()
    }

    /// What the Maildirs hold, without the field that mbsync adds.
    #[track_caller]
    fn held(&self) -> Holdings {
        without_tuid(in_maildirs(&self.root))
    }

    /// The file of a message in a mailbox.
    #[track_caller]
    fn file(&self, mailbox: &str, id: &str) -> PathBuf {
        let wanted = format!("Message-ID: <{id}>");
        let has = |p: &PathBuf| String::from_utf8_lossy(&fs::read(p).unwrap()).lines().any(|l| l == wanted);
        files(&self.root.join(mailbox)).into_iter().find(has).unwrap_or_else(|| panic!("no {id} in {mailbox}"))
    }

    /// Does what a Maildir client does to set flags; the new path.
    #[track_caller]
    fn flag(&self, path: &Path, letters: &str) -> PathBuf {
        let name = path.file_name().unwrap().to_str().unwrap().split(":2,").next().unwrap();
        let to = path.parent().unwrap().parent().unwrap().join("cur").join(format!("{name}:2,{letters}"));
        fs::rename(path, &to).unwrap();
        to
    }

    /// Puts a new message into a mailbox, which may be new itself.
    fn put(&self, mailbox: &str, octets: &[u8], flags: &str) {
        let folder = self.root.join(mailbox);
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        let text: Vec<u8> = octets.iter().copied().filter(|b| *b != b'\r').collect();
        let name = format!("1700000000.{}_{}.test:2,{flags}", std::process::id(), self.names().len());
        fs::write(folder.join("cur").join(name), text).unwrap();
    }
}

fn without_tuid(mut held: Holdings) -> Holdings {
    for message in held.values_mut() {
        message.octets = without_field(&message.octets, "X-TUID");
    }
    held
}

/// The mailbox of a message other than `Lanes/All`.
#[track_caller]
fn lane(held: &Holdings, id: &str) -> String {
    let id = format!("<{id}>");
    let places: Vec<&String> = held.keys().filter(|(m, i)| *i == id && m != "Lanes/All").map(|(m, _)| m).collect();
    let [place] = places[..] else { panic!("{id} is in {places:?}") };
    place.clone()
}

fn another(lane: &str) -> &'static str {
    LANES.into_iter().find(|l| *l != lane).expect("there are several")
}

#[test]
fn mbsync_two_way_stores_what_a_direct_run_stores_and_settles_after_every_change() {
    let world = World::start();
    let mails = delivered(&world);
    let mut direct = world.dovecot.direct("alice");
    let older = message("ann@example.com", &world.alice.address, "Older", "Filed.");
    assert!(direct.append("Archive", "\\Seen \\Answered", &older.octets).status.starts_with("OK"));
    let mut session = world.person(&world.alice);
    let through = Mbsync::new(&world, "mbs", &clients_of::through(&world));
    // A run at Dovecot itself, with Maildirs of its own.
    let compare = |number: usize| {
        let plain = Mbsync::new(&world, &format!("mbd{number}"), &clients_of::direct(&world, "alice"));
        plain.sync();
        assert_same_but_for_stamps(&through.held(), &plain.held());
        assert_eq!(plain.held(), without_tuid(at_the_provider(&world.dovecot, "alice")));
    };

    through.sync();
    let first = through.names();
    assert_eq!(through.sync(), Vec::<String>::new(), "the second run is empty");
    assert_eq!(through.names(), first);
    compare(0);
    for ((mailbox, id), message) in through.held().iter().filter(|((m, _), _)| m.starts_with("Lanes/")) {
        assert!(stamp(&unstamped(&message.octets).0, "X-Tollgate-Decision").is_some(), "{mailbox} {id}");
    }

    // Another client moves messages to other lanes.
    for mail in mails.iter().step_by(3) {
        let (from, uid) = world.lane_of(&mut session, &mail.id);
        session.ok(&format!("UID MOVE {uid} \"{}\"", another(&from)));
    }
    through.settle("lane changes");
    compare(1);
    for mail in mails.iter().step_by(3) {
        let place = lane(&through.held(), &mail.id);
        let octets = &through.held()[&(place.clone(), format!("<{}>", mail.id))].octets;
        let (stamps, _) = unstamped(octets);
        assert_eq!(format!("lanes/{}", stamp(&stamps, "X-Tollgate-Lane").unwrap()), place.to_ascii_lowercase());
    }

    // Flags, set and cleared in the Maildirs.
    let held = through.held();
    let flagged = through.file(&lane(&held, &mails[1].id), &mails[1].id);
    let flagged = through.flag(&flagged, "FS");
    let answered = through.file("Archive", &older.id);
    through.flag(&answered, "S");
    through.settle("flags");
    compare(2);
    let truth = at_the_provider(&world.dovecot, "alice");
    let flags = |mailbox: &str, id: &str| truth[&(mailbox.to_owned(), format!("<{id}>"))].flags.clone();
    assert!(flags("INBOX", &mails[1].id).into_iter().eq(["\\Flagged", "\\Seen"]));
    assert!(flags("Archive", &older.id).into_iter().eq(["\\Seen"]));
    assert!(flagged.exists());

    // New messages: in INBOX, in a lane, in Archive, in a mailbox that is new.
    for mailbox in ["INBOX", "Lanes/Info", "Archive", "Projects"] {
        let new = message(&world.alice.address, "ann@example.com", &format!("New in {mailbox}"), "Mine.");
        through.put(mailbox, &new.octets, "S");
        through.settle(&format!("a new message in {mailbox}"));
        let at = if mailbox == "Lanes/Info" { "INBOX" } else { mailbox };
        let truth = without_tuid(at_the_provider(&world.dovecot, "alice"));
        assert_eq!(truth[&(at.to_owned(), format!("<{}>", new.id))].octets, new.octets, "{mailbox}");
        if at == "INBOX" {
            assert_eq!(lane(&through.held(), &new.id), mailbox, "it stays where it was put");
        }
    }
    compare(3);

    // A message deleted in its lane is deleted everywhere.
    let gone = &mails[4].id;
    let file = through.file(&lane(&through.held(), gone), gone);
    through.flag(&file, "ST");
    through.settle("a deletion");
    compare(4);
    let id = format!("<{gone}>");
    assert!(!at_the_provider(&world.dovecot, "alice").keys().any(|(_, i)| *i == id));

    // A move out of a lane, done as Maildir clients do: a copy, then \Deleted.
    let moved = &mails[5].id;
    let delivered_as =
        at_the_provider(&world.dovecot, "alice")[&("INBOX".to_owned(), format!("<{moved}>"))].octets.clone();
    let file = through.file(&lane(&through.held(), moved), moved);
    through.put("Archive", &fs::read(&file).unwrap(), "S");
    through.flag(&file, "ST");
    through.settle("a move to Archive");
    let truth = at_the_provider(&world.dovecot, "alice");
    let places: Vec<&str> = truth.keys().filter(|(_, i)| *i == format!("<{moved}>")).map(|(m, _)| m.as_str()).collect();
    assert_eq!(places, ["Archive"]);
    // It carried our stamps; the provider has the message that was delivered.
    let kept = with_crlf(&fs::read(through.file("Archive", moved)).unwrap());
    assert!(stamp(&unstamped(&kept).0, "X-Tollgate-Lane").is_some());
    let there = &truth[&("Archive".to_owned(), format!("<{moved}>"))].octets;
    assert!(there.windows(8).any(|w| w == b"X-TUID: "), "it was an upload");
    assert_eq!(String::from_utf8_lossy(&without_field(there, "X-TUID")), String::from_utf8_lossy(&delivered_as));
    table::is_true_of(&world, "mbsync");
}
