//! Who is at the other end of a connection from this machine.
//!
//! Promises: the user id that the kernel names for the other end of a
//! loopback connection, on Linux. `None` for everything else: other
//! machines, other systems, another network namespace. Doesn't know: which
//! program of that user it is.
//!
//! Why: a browser sends a cookie to every port of a host name, so a program of
//! another user on this machine can come to see it. A sign-in therefore
//! counts only on connections of the user who began it.

use std::net::{IpAddr, SocketAddr};

/// What the kernel tells of TCP sockets (proc(5)).
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// Largest table that is read, in octets.
const MAX_TABLE: u64 = 16 * 1024 * 1024;

/// The other end of a connection; [`super::serve`] says so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    /// Its address.
    pub(super) address: SocketAddr,
    /// The user that it runs as.
    pub(super) uid: Option<u32>,
}

impl Peer {
    /// Reads the kernel's tables; `here` is our end.
    pub(super) fn of(address: SocketAddr, here: SocketAddr) -> Peer {
        let local = address.ip().to_canonical().is_loopback() && here.ip().to_canonical().is_loopback();
        let uid = local.then(|| TABLES.iter().find_map(|table| uid_in(&read(table)?, address, here))).flatten();
        Peer { address, uid }
    }
}

fn read(table: &str) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(table).ok()?.take(MAX_TABLE).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The user of the socket whose own end is `theirs` and whose other is `ours`.
fn uid_in(table: &str, theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        // sl, local, remote, state, queues, timer, retransmits, uid, …
        let fields: Vec<&str> = line.split_whitespace().take(8).collect();
        let [_, local, remote, _, _, _, _, uid] = fields[..] else { return None };
        let fits = address(local)? == canonical(theirs) && address(remote)? == canonical(ours);
        fits.then(|| uid.parse().ok()).flatten()
    })
}

fn canonical(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// `0100007F:0D98`: each word of the address in the machine's own order.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(host.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match host.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            IpAddr::from(<[u8; 16]>::try_from(words).ok()?)
        }
        _ => return None,
    };
    Some((ip.to_canonical(), port))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_names_the_user_of_each_end() {
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may be without IPv6.
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let here = listener.local_addr().unwrap();
            let client = TcpStream::connect(here).unwrap();
            let (server, address) = listener.accept().unwrap();
            assert_eq!(Peer::of(address, server.local_addr().unwrap()).uid, Some(nix::unistd::getuid().as_raw()));
            let nobody = SocketAddr::new(here.ip(), client.local_addr().unwrap().port().wrapping_add(1));
            assert_eq!(Peer::of(nobody, here).uid, None);
        }
        assert_eq!(Peer::of("192.0.2.1:9".parse().unwrap(), "127.0.0.1:1".parse().unwrap()).uid, None);
    }

    #[test]
    fn lines_that_are_no_sockets_name_nobody() {
        let (theirs, ours) = ("127.0.0.1:50000".parse().unwrap(), "127.0.0.1:3480".parse().unwrap());
        for table in ["", "head\n", "head\n0: x y 01 0 0 0 7", "head\n 0: 0100007F:C350 0100007F:0D98 01 0:0 0:0 0 x"] {
            assert_eq!(uid_in(table, theirs, ours), None, "{table:?}");
        }
    }
}
