//! Another web server on this machine: it keeps what it was asked, and
//! serves one page.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// The server; its thread ends with the process.
pub(crate) struct Other {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Other {
    /// Serves `page` under every path.
    pub(crate) fn serve(page: impl Into<String>) -> Other {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, page) = (Arc::new(Mutex::new(Vec::new())), page.into());
        let seen = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let _ = stream.set_read_timeout(Some(crate::common::PATIENCE));
                let mut head = Vec::new();
                let mut octet = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut octet).is_ok_and(|n| n == 1) {
                    head.push(octet[0]);
                }
                // A connection counts even where nothing was asked on it.
                seen.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                    page.len()
                );
            }
        });
        Other { port, asked }
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}
