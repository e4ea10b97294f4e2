//! A TCP relay that counts and cuts what goes through it.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What it saw.
#[derive(Debug, Default)]
struct Seen {
    /// Connections so far.
    taken: usize,
    /// Both sides of those that are open.
    open: Vec<(usize, TcpStream, TcpStream)>,
}

/// It passes connections on to a port of this machine.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) port: u16,
    seen: Arc<Mutex<Seen>>,
}

impl Relay {
    /// A relay to a port of 127.0.0.1; it ends with the process.
    pub(crate) fn to(port: u16) -> Relay {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let here = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let all = seen.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let number = {
                    let mut seen = all.lock().unwrap();
                    seen.taken += 1;
                    let number = seen.taken;
                    seen.open.push((number, client.try_clone().unwrap(), server.try_clone().unwrap()));
                    number
                };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let all = all.clone();
                    thread::spawn(move || {
                        pass(from, to);
                        all.lock().unwrap().open.retain(|(n, ..)| *n != number);
                    });
                }
            }
        });
        Relay { port: here, seen }
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> usize {
        self.seen.lock().unwrap().open.len()
    }

    /// Connections so far.
    pub(crate) fn taken(&self) -> usize {
        self.seen.lock().unwrap().taken
    }

    /// Ends every open connection.
    pub(crate) fn cut(&self) {
        for (_, client, server) in &self.seen.lock().unwrap().open {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
    }
}

/// Passes octets on until one side ends, and then ends both.
fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
