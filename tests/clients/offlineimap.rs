//! OfflineIMAP, two-way.

use std::fs;
use std::path::{Path, PathBuf};

use crate::clients_of;
use crate::common::mail::message;
use crate::common::program::run;
use crate::common::world::{LANES, World};
use crate::corpus::delivered;
use crate::holdings::{Holdings, assert_same_but_for_stamps, at_the_provider, files, in_maildirs};
use crate::table;

struct Offlineimap {
    root: PathBuf,
    config: PathBuf,
}

impl Offlineimap {
    fn new(world: &World) -> Offlineimap {
        let login = clients_of::through(world);
        let (root, meta) = (world.gateway.scratch.folder("oi"), world.gateway.scratch.folder("oi-meta"));
        let config = format!(
            "[general]\nmetadata = {}\naccounts = a\nui = basic\n[Account a]\nlocalrepository = l\n\
             remoterepository = r\n[Repository l]\ntype = Maildir\nlocalfolders = {}\n[Repository r]\ntype = IMAP\n\
             remotehost = localhost\nremoteport = {}\nremoteuser = {}\nremotepass = {}\nssl = yes\nsslcacertfile = {}\n",
            meta.display(),
            root.display(),
            login.imaps,
            login.user,
            login.password,
            login.trusts.display()
        );
        Offlineimap { root, config: world.gateway.scratch.file("oi.rc", config) }
    }

    /// Runs once; what it says that it did.
    #[track_caller]
    fn sync(&self) -> Vec<String> {
        let ran = run("offlineimap", &["-c", self.config.to_str().unwrap(), "-o"]).ok();
        let said = ran.text() + &ran.stderr;
        assert!(said.contains("*** Finished account 'a'"), "{said}");
        assert!(!said.contains("ERROR"), "{said}");
        let did =
            |l: &&str| ["Copy ", "Adding ", "Deleting ", "Creating ", "Flagging "].iter().any(|v| l.starts_with(v));
        said.lines().filter(did).map(str::to_owned).collect()
    }

    #[track_caller]
    fn settle(&self, what: &str) {
        let runs: Vec<Vec<String>> = (0..3).map(|_| self.sync()).collect();
        assert!(runs[2].is_empty(), "after {what}, there is always something to do: {runs:#?}");
    }

    /// Its folders use dots for the delimiter.
    #[track_caller]
    fn held(&self) -> Holdings {
        in_maildirs(&self.root).into_iter().map(|((m, id), h)| ((m.replace("Lanes.", "Lanes/"), id), h)).collect()
    }

    #[track_caller]
    fn file(&self, folder: &str, id: &str) -> PathBuf {
        let wanted = format!("Message-ID: <{id}>");
        let has = |p: &PathBuf| String::from_utf8_lossy(&fs::read(p).unwrap()).lines().any(|l| l == wanted);
        let found = files(&self.root.join(folder.replace('/', "."))).into_iter().find(has);
        found.unwrap_or_else(|| panic!("no {id} in {folder}"))
    }
}

fn seen(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap().to_str().unwrap().split(":2,").next().unwrap().to_owned();
    let to = path.parent().unwrap().parent().unwrap().join("cur").join(format!("{name}:2,S"));
    fs::rename(path, &to).unwrap();
    to
}

#[test]
fn offlineimap_two_way_agrees_with_dovecot_and_settles_after_every_change() {
    let world = World::start();
    let mails = delivered(&world);
    let client = Offlineimap::new(&world);
    client.sync();
    assert_eq!(client.sync(), Vec::<String>::new(), "the second run is empty");
    let agree = || assert_same_but_for_stamps(&client.held(), &at_the_provider(&world.dovecot, "alice"));
    agree();

    // Another client moves messages to other lanes.
    let mut session = world.person(&world.alice);
    for mail in mails.iter().take(3) {
        let (from, uid) = world.lane_of(&mut session, &mail.id);
        let to = LANES.into_iter().find(|l| *l != from).unwrap();
        session.ok(&format!("UID MOVE {uid} \"{to}\""));
    }
    client.settle("lane changes");
    agree();

    // Read here, deleted here, filed here.
    let (lane, _) = world.lane_of(&mut session, &mails[3].id);
    seen(&client.file(&lane, &mails[3].id));
    let (lane, _) = world.lane_of(&mut session, &mails[4].id);
    fs::remove_file(client.file(&lane, &mails[4].id)).unwrap();
    let mine = message(&world.alice.address, "ann@example.com", "Mine", "Filed by hand.");
    let text: Vec<u8> = mine.octets.iter().copied().filter(|b| *b != b'\r').collect();
    fs::write(client.root.join("Archive/cur/1700000000_1.1.host:2,S"), &text).unwrap();
    let other = message(&world.alice.address, "ann@example.com", "In a lane", "Put by hand.");
    let text: Vec<u8> = other.octets.iter().copied().filter(|b| *b != b'\r').collect();
    fs::write(client.root.join("Lanes.Info/cur/1700000000_2.1.host:2,S"), &text).unwrap();
    client.settle("changes of ours");
    agree();
    let truth = at_the_provider(&world.dovecot, "alice");
    let at = |mailbox: &str, id: &str| truth.get(&(mailbox.to_owned(), format!("<{id}>")));
    assert!(at("INBOX", &mails[3].id).unwrap().flags.contains("\\Seen"));
    assert!(at("INBOX", &mails[4].id).is_none(), "deleted");
    assert_eq!(at("Archive", &mine.id).unwrap().octets, mine.octets);
    assert_eq!(at("INBOX", &other.id).unwrap().octets, other.octets);
    assert_eq!(world.lane_of(&mut session, &other.id).0, "Lanes/Info");
    table::is_true_of(&world, "OfflineIMAP");
}
