//! Other people's clients: imaplib, curl, mbsync.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::eventually;
use crate::common::mail::{header, message, unstamped};
use crate::common::program::{python, run};
use crate::common::world::{Keys, LANES, World};

#[test]
fn python_s_imaplib_reads_flags_moves_and_appends_over_tls() {
    let world = World::start();
    let (person, certificate) = (&world.alice, world.gateway.certificate());
    let mail = message("ann@example.com", &person.address, "For imaplib", "Hello.");
    world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    let port = world.gateway.imaps.to_string();
    let ran = python("lanes.py", &[&port, certificate.to_str().unwrap(), &person.address, &person.person, &mail.id]);
    let saw: serde_json::Value = serde_json::from_slice(&ran.ok().stdout).unwrap();
    assert!(saw["names"].as_array().unwrap().iter().any(|n| n == "Lanes/All"), "{saw}");
    assert_eq!(saw["size"], saw["octets"]);
    assert!(saw["stamps"][0].as_str().unwrap().starts_with("X-Tollgate-"), "{saw}");
    assert!(saw["flags"].as_str().unwrap().contains("\\Flagged"), "{saw}");
    assert!(saw["left"].as_array().unwrap().is_empty(), "{saw}");
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT INBOX");
    assert!(direct.find(&mail.id).is_empty(), "it was moved away");
    direct.ok("SELECT Archive");
    let [moved] = direct.find(&mail.id)[..] else { panic!("one in Archive") };
    let octets = direct.body(moved);
    assert!(!octets.starts_with(b"X-Tollgate-"), "the provider's copy has no stamps");
    assert!(direct.flags(moved).contains(&"\\Flagged".into()));
    direct.ok("SELECT Sent");
    assert_eq!(direct.find(&mail.id).len(), 1, "the appended copy");
}

#[test]
fn curl_lists_fetches_searches_and_appends() {
    let world = World::start();
    let person = &world.alice;
    let mail = message("ann@example.com", &person.address, "Marzipan", "Hello curl.");
    world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    let mut session = world.person(person);
    let (mailbox, uid) = world.lane_of(&mut session, &mail.id);
    let certificate = world.gateway.certificate();
    let user = format!("{}:{}", person.address, person.person);
    let base = format!("imaps://localhost:{}", world.gateway.imaps);
    let curl = |path: &str, more: &[&str]| {
        let url = format!("{base}{path}");
        let fixed = ["--silent", "--show-error", "--cacert", certificate.to_str().unwrap(), "--user", &user, &url];
        run("curl", &[&fixed, more].concat()).ok()
    };
    let listed = curl("/", &[]).text();
    assert!(LANES.iter().all(|lane| listed.contains(lane)), "{listed}");
    let path = mailbox.replace('/', "%2F");
    let fetched = curl(&format!("/{path};UID={uid}"), &[]).stdout;
    assert_eq!(fetched, session.body(uid), "curl's copy is the session's");
    let found = curl(&format!("/{path}?SUBJECT%20Marzipan"), &[]).text();
    assert_eq!(found.trim(), "* SEARCH 1");
    let sent = message(&person.address, "ann@example.com", "Sent by curl", "Hello.");
    let file = world.gateway.scratch.file("sent.eml", &sent.octets);
    curl("/Sent", &["--upload-file", file.to_str().unwrap()]);
    let mut direct = world.dovecot.direct("alice");
    direct.ok("SELECT Sent");
    let [uid] = direct.find(&sent.id)[..] else { panic!("one in Sent") };
    assert_eq!(direct.body(uid), sent.octets);
}

/// Every stored message by Message-ID, per mailbox folder.
type Stored = BTreeMap<(String, String), Vec<u8>>;

fn mbsync(world: &World, folder: &str, port: u16, certificate: &Path, user: &str, password: &str) -> Stored {
    let root = world.gateway.scratch.folder(folder);
    let shown = root.display();
    let config = world.gateway.scratch.file(
        &format!("{folder}.rc"),
        format!(
            "IMAPAccount a\nHost localhost\nPort {port}\nUser {user}\nPass {password}\nSSLType IMAPS\n\
             CertificateFile {}\n\nIMAPStore far\nAccount a\n\nMaildirStore near\nPath {shown}/\n\
             Inbox {shown}/INBOX\nSubFolders Verbatim\n\nChannel c\nFar :far:\nNear :near:\nPatterns *\n\
             Sync Pull\nCreate Near\nExpunge None\nSyncState *\n",
            certificate.display()
        ),
    );
    run("mbsync", &["-c", config.to_str().unwrap(), "-a"]).ok();
    stored(&root)
}

fn stored(root: &Path) -> Stored {
    let (mut found, mut open) = (Stored::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let parent = folder.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                open.push(path);
            } else if parent == "cur" || parent == "new" {
                let mailbox = folder.parent().unwrap().strip_prefix(root).unwrap().display().to_string();
                let octets = without_marks_of_mbsync(&std::fs::read(&path).unwrap());
                let id = header(&octets, "Message-ID").expect("a Message-ID");
                let before = found.insert((mailbox, id), octets);
                assert!(before.is_none(), "twice: {}", path.display());
            }
        }
    }
    found
}

/// mbsync writes line ends as LF and adds a field of its own.
fn without_marks_of_mbsync(octets: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(octets).replace("\r\n", "\n");
    let lines: Vec<&str> = text.split('\n').filter(|l| !l.starts_with("X-TUID: ")).collect();
    lines.join("\r\n").into_bytes()
}

#[test]
fn mbsync_pulls_the_same_mail_as_without_the_gateway_but_for_stamps() {
    let world = World::start();
    let person = &world.alice;
    let mut direct = world.dovecot.direct("alice");
    for n in 0..6 {
        let mail = message("ann@example.com", &person.address, &format!("Inbox {n}"), ".dot\r\n..dots\r\nx");
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
        let kept = message("ann@example.com", &person.address, &format!("Kept {n}"), "Older.");
        assert!(direct.append("Archive", "\\Seen", &kept.octets).status.starts_with("OK"));
        if n == 5 {
            let mut session = world.person(person);
            world.lane_of(&mut session, &mail.id);
        }
    }
    let certificate = world.gateway.certificate();
    let through =
        |folder: &str| mbsync(&world, folder, world.gateway.imaps, &certificate, &person.address, &person.person);
    let first = through("mbs");
    let direct = mbsync(&world, "mbd", world.dovecot.imaps, &world.dovecot.authority.cert, "alice", "alicepw");
    assert_eq!(direct.len(), 12, "{:?}", direct.keys());
    for ((mailbox, id), octets) in &direct {
        if mailbox != "INBOX" {
            assert_eq!(first.get(&(mailbox.clone(), id.clone())), Some(octets), "{mailbox} {id}");
            continue;
        }
        let copies: Vec<_> = first.iter().filter(|((_, i), _)| i == id).collect();
        let places: Vec<&str> = copies.iter().map(|((m, _), _)| m.as_str()).collect();
        assert_eq!(copies.len(), 2, "in its lane and in Lanes/All: {places:?}");
        assert!(places.contains(&"Lanes/All"), "{places:?}");
        for (_, stamped) in copies {
            let (stamps, rest) = unstamped(stamped);
            assert!(!stamps.is_empty());
            assert_eq!(rest, octets, "{id}");
        }
    }
    // The second run finds nothing to do: not a file more, none changed.
    let again = through("mbs");
    assert_eq!(again, first);
}

#[test]
fn a_client_that_trusts_only_another_certificate_gets_nothing() {
    let world = World::start();
    let keys: &Keys = &world.alice;
    let wrong = &world.dovecot.authority.ca;
    let url = format!("imaps://localhost:{}/", world.gateway.imaps);
    let user = format!("{}:{}", keys.address, keys.person);
    let ran = run("curl", &["--silent", "--cacert", wrong.to_str().unwrap(), "--user", &user, &url]);
    // 60: the peer's certificate can't be authenticated.
    assert_eq!(ran.code, Some(60), "{ran:?}");
}

#[test]
fn starttls_comes_before_any_sign_in_and_carries_nothing_over() {
    let world = World::start();
    let (keys, certificate) = (&world.alice, world.gateway.certificate());
    let (imap, smtp) = (world.gateway.imap_starttls.to_string(), world.gateway.submission_starttls.to_string());
    let arguments = [&imap, &smtp, certificate.to_str().unwrap(), &keys.address, &keys.person];
    python("starttls.py", &arguments).ok();
}

#[test]
fn curl_and_swaks_read_and_send_with_starttls() {
    let world = World::start();
    let (keys, certificate) = (&world.alice, world.gateway.certificate());
    let certificate = certificate.to_str().unwrap();
    let user = format!("{}:{}", keys.address, keys.person);
    let fixed = ["--silent", "--show-error", "--ssl-reqd", "--cacert", certificate, "--user", &user];
    let url = format!("imap://localhost:{}/", world.gateway.imap_starttls);
    let listed = run("curl", &[&fixed[..], &[&url]].concat()).ok().text();
    assert!(listed.contains("Lanes/All"), "{listed}");
    let mail = message(&keys.address, "ann@example.com", "By curl", "Hello.");
    let file = world.gateway.scratch.file("curl.eml", &mail.octets);
    let url = format!("smtp://localhost:{}/client.example.net", world.gateway.submission_starttls);
    let upload = ["--mail-from", &keys.address, "--mail-rcpt", "ann@example.com", "--upload-file"];
    run("curl", &[&fixed[..], &upload, &[file.to_str().unwrap(), &url]].concat()).ok();
    eventually("the sink to get it", || (world.sink.with_id(&mail.id).len() == 1).then_some(()));
    let server = format!("localhost:{}", world.gateway.submission_starttls);
    let ran = run(
        "swaks",
        &[
            "--server",
            &server,
            "--tls",
            "--auth",
            "LOGIN",
            "--auth-user",
            &keys.address,
            "--auth-password",
            &keys.agent,
            "--from",
            &keys.address,
            "--to",
            "ann@example.com",
            "--header",
            "Subject: by swaks",
        ],
    );
    assert!(ran.ok().text().contains("250 2.0.0 held for approval as "));
}
