//! The folder of a durable provider.
//!
//! `FOLDER/<login>/index.json` names mailboxes, subscriptions, UIDs and flags
//! and is replaced by rename; `FOLDER/<login>/mail/<sha256>` holds the octets
//! of a message once. Files that the index doesn't name are removed at start.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::dates::InternalDate;
use super::state::{Mailbox, Message, User};

const INDEX: &str = "index.json";
const INDEX_NEW: &str = "index.json.new";
const MAIL: &str = "mail";

#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Index {
    next_validity: u32,
    subscribed: BTreeSet<String>,
    mailboxes: BTreeMap<String, IndexMailbox>,
}

#[derive(Serialize, Deserialize)]
struct IndexMailbox {
    validity: u32,
    uid_next: u32,
    recent_from: u32,
    messages: Vec<IndexMessage>,
}

#[derive(Serialize, Deserialize)]
struct IndexMessage {
    uid: u32,
    file: Arc<str>,
    flags: BTreeSet<String>,
    date: InternalDate,
}

impl Disk {
    /// Makes the folder of `login` under `root` where it is missing.
    pub(crate) fn open(root: &Path, login: &str) -> io::Result<Disk> {
        let folder = root.join(file_name(login));
        fs::create_dir_all(folder.join(MAIL))?;
        Ok(Disk { folder })
    }

    /// Fills `user` from the index, if there is one.
    pub(crate) fn load(&self, user: &mut User) -> io::Result<()> {
        let text = match fs::read(self.folder.join(INDEX)) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        };
        let index: Index = serde_json::from_slice(&text).map_err(io::Error::other)?;
        user.next_validity = index.next_validity;
        user.subscribed = index.subscribed;
        let mut known: HashMap<Arc<str>, Arc<[u8]>> = HashMap::new();
        for (name, stored) in index.mailboxes {
            let mut messages = Vec::with_capacity(stored.messages.len());
            for m in stored.messages {
                let octets = match known.get(&m.file) {
                    Some(octets) => octets.clone(),
                    None => {
                        let octets: Arc<[u8]> = fs::read(self.folder.join(MAIL).join(&*m.file))?.into();
                        known.insert(m.file.clone(), octets.clone());
                        octets
                    }
                };
                let (file, flags, date) = (Some(m.file), m.flags, m.date);
                messages.push(Message { uid: m.uid, octets, file, flags, date, announced: None });
            }
            let (validity, uid_next, recent_from) = (stored.validity, stored.uid_next, stored.recent_from);
            user.mailboxes.insert(name, Mailbox { validity, uid_next, recent_from, messages, version: 0 });
        }
        self.sweep(&known)
    }

    fn sweep(&self, named: &HashMap<Arc<str>, Arc<[u8]>>) -> io::Result<()> {
        for entry in fs::read_dir(self.folder.join(MAIL))? {
            let entry = entry?;
            if entry.file_name().to_str().is_none_or(|name| !named.contains_key(name)) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Stores octets; answers the file's name.
    pub(crate) fn put(&self, octets: &[u8]) -> io::Result<Arc<str>> {
        let mut name = String::new();
        for byte in Sha256::digest(octets) {
            // Writing to a String can't fail.
            let _ = write!(name, "{byte:02x}");
        }
        let path = self.folder.join(MAIL).join(&name);
        if !path.exists() {
            let new = path.with_extension("new");
            fs::write(&new, octets)?;
            fs::rename(&new, &path)?;
        }
        Ok(name.into())
    }

    /// Replaces the index.
    pub(crate) fn save(&self, user: &User) -> io::Result<()> {
        let mailbox = |m: &Mailbox| IndexMailbox {
            validity: m.validity,
            uid_next: m.uid_next,
            recent_from: m.recent_from,
            messages: m.messages.iter().filter_map(index_message).collect(),
        };
        let index = Index {
            next_validity: user.next_validity,
            subscribed: user.subscribed.clone(),
            mailboxes: user.mailboxes.iter().map(|(name, m)| (name.clone(), mailbox(m))).collect(),
        };
        let text = serde_json::to_vec(&index).map_err(io::Error::other)?;
        let new = self.folder.join(INDEX_NEW);
        let mut file = fs::File::create(&new)?;
        file.write_all(&text)?;
        fs::rename(&new, self.folder.join(INDEX))
    }
}

fn index_message(m: &Message) -> Option<IndexMessage> {
    Some(IndexMessage { uid: m.uid, file: m.file.clone()?, flags: m.flags.clone(), date: m.date })
}

/// A login as one path component: what isn't plainly safe becomes `%XX`.
fn file_name(login: &str) -> String {
    let mut name = String::new();
    for byte in login.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'@' || byte == b'-' || (byte == b'.' && !name.is_empty()) {
            name.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_one_path_component() {
        assert_eq!(file_name("demo@example.org"), "demo@example.org");
        assert_eq!(file_name("../x"), "%2E.%2Fx");
    }

    #[test]
    fn a_second_start_finds_mail_flags_and_numbers_again() {
        let dir = tempfile::tempdir().unwrap();
        let date = InternalDate { unix: 5, offset_minutes: 60 };
        let mut user = User::open("a@example.org", "x".into(), Some(dir.path())).unwrap();
        user.create("Work").unwrap();
        user.add("Work", Arc::from(&b"a\0\xff\n"[..]), BTreeSet::from(["\\Seen".to_owned()]), date).unwrap();
        let validity = user.mailbox("Work").unwrap().validity;
        fs::write(dir.path().join("a@example.org/mail/orphan"), b"x").unwrap();

        let mut again = User::open("a@example.org", "x".into(), Some(dir.path())).unwrap();
        let work = again.mailbox("Work").unwrap();
        assert_eq!((work.validity, work.uid_next), (validity, 2));
        assert_eq!(&*work.messages[0].octets, b"a\0\xff\n");
        assert!(work.messages[0].flags.contains("\\Seen"));
        assert_eq!(work.messages[0].date, date);
        assert!(!dir.path().join("a@example.org/mail/orphan").exists());
    }
}
