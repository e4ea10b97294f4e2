//! Private folders and free ports.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Keeps the folders when it is set, to look at what is left.
const KEEP: &str = "TOLLGATE_TEST_KEEP";

/// Ports are taken from below the range that the kernel gives to clients.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

/// A folder that vanishes with the value. Its path is short, because the path
/// of a Unix socket holds 107 octets.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tg{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new("/tmp").join(name);
        fs::create_dir(&path).expect("a private folder under /tmp");
        // Dovecot's and Postfix's own users pass through it.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Scratch { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A new folder inside.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// A new file inside, for this user alone.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::env::var_os(KEEP).is_some() {
            eprintln!("kept: {}", self.path.display());
            return;
        }
        // A daemon's last child may still write while it ends.
        for _ in 0..50 {
            match fs::remove_dir_all(&self.path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
                _ => return,
            }
        }
        eprintln!("can't remove {}", self.path.display());
    }
}

/// A port of 127.0.0.1 that nobody listens on.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let span = u32::from(PORTS.end - PORTS.start);
    // Test programs that run side by side begin in different places.
    let begin = std::process::id().wrapping_mul(2_654_435_761) >> 8;
    for _ in 0..span {
        let offset = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % span;
        let port = PORTS.start + u16::try_from(offset).unwrap_or_default();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port of 127.0.0.1 in {PORTS:?} is free");
}
