//! Other users and other ports of this machine.

use std::process::Command;

use tollgate::account::demo::{ADDRESS, PIN};

use crate::common::program::{self, Ran};
use crate::driver::Chromium;
use crate::other::Other;
use crate::{CALM, gateway, origin, submit};

/// curl as somebody else: as `nobody` where the tests run as root, else in a
/// process of its own.
fn curl(another_user: bool, arguments: &[&str]) -> Ran {
    let root = nix::unistd::getuid().is_root();
    let mut command = match another_user && root {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "curl"]);
            command
        }
        false => Command::new("curl"),
    };
    command.args(["-s", "-S", "-m", "20", "-w", "\n%{http_code}"]).args(arguments);
    program::finish(command, b"").ok()
}

#[test]
fn another_user_with_a_captured_cookie_lists_and_approves_nothing() {
    let gateway = gateway("pin");
    let id = submit(&gateway, &["bo@example.com"], CALM);
    let at = origin(&gateway);
    let chromium = Chromium::start();
    chromium.sign_in(&at, ADDRESS, PIN);
    // A program of somebody else listens on another port of the same name.
    let trap = Other::serve("<!doctype html><title>trap</title>");
    chromium.open(&format!("http://localhost:{}/", trap.port));
    let asked = trap.asked();
    let cookie = asked.iter().flat_map(|r| r.lines()).find_map(|l| l.strip_prefix("Cookie: "));
    let cookie = cookie.unwrap_or_else(|| panic!("browsers send cookies to every port: {asked:?}")).to_owned();
    assert!(cookie.starts_with("tollgate_session="), "{cookie}");

    let address = format!("localhost:{}:127.0.0.1", gateway.web);
    let own = ["--resolve", &address, "-b", &cookie];
    let another = nix::unistd::getuid().is_root();
    if another {
        // The capture is worth something: to the very user who signed in it opens the list.
        let list = curl(false, &[&own[..], &[&format!("{at}/")]].concat()).text();
        assert!(list.ends_with("\n200") && list.contains("Garden party"), "{list}");
    }
    let ledger = gateway.json(&["ledger", "head"]);
    let with: &[&str] = if another { &["-b", &cookie] } else { &[] };
    let base = [&["--resolve", address.as_str()][..], with].concat();
    for path in ["/", "/history", "/approvers", "/batch", &format!("/held/{id}"), &format!("/held/{id}/raw")] {
        let page = curl(true, &[&base[..], &[&format!("{at}{path}")]].concat()).text();
        assert!(page.ends_with("\n403"), "{path}: {page}");
        assert!(!page.contains("Garden party") && !page.contains("bo@example.com"), "{path}: {page}");
    }
    let from = format!("Origin: {at}");
    for (path, form) in [
        (format!("/held/{id}/approve"), "pin=271828&csrf=x&hash=x&nonce=x"),
        (format!("/held/{id}/deny"), "pin=271828&csrf=x&hash=x&nonce=x&reason=x"),
        ("/batch".to_owned(), "csrf=x&item=x"),
        ("/keys/demoagent/deny-and-revoke".to_owned(), "pin=271828&csrf=x"),
        ("/approvers/add".to_owned(), "csrf=x&ticket=x&name=x&client_data=x&attestation=x&pin=271828"),
    ] {
        let page = curl(true, &[&base[..], &["-H", &from, "-d", form, &format!("{at}{path}")]].concat()).text();
        assert!(page.ends_with("\n403"), "{path}: {page}");
    }
    assert_eq!(gateway.hold(&id)["state"], "held");
    assert_eq!(gateway.json(&["ledger", "head"]), ledger);
    if another {
        assert!(gateway.log().contains("another user of this machine"), "and it is noticed");
        // The console's socket is not theirs either.
        let socket = gateway.state_dir().join("control.sock");
        let mut command = Command::new("setpriv");
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "curl", "-s", "-m", "5", "--unix-socket"]);
        command.arg(socket).arg("http://localhost/");
        let ran = program::finish(command, b"");
        assert_ne!(ran.code, Some(0), "{}", ran.text());
    }
    // The person, meanwhile, is still signed in.
    chromium.open(&format!("{at}/"));
    chromium.wait_for("1 message waits for you");
}
