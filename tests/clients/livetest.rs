//! IMAPClient's own live test: at Dovecot, and through the gateway in the
//! provider's mailboxes. The same results, but for what isn't offered.

use std::collections::BTreeMap;
use std::process::Command;

use crate::clients_of::{self, Login};
use crate::common::program::finish;
use crate::common::world::World;
use crate::holdings::at_the_provider;
use crate::python::python;
use crate::table;

/// All but TestSocketTimeout, which measures how fast the machine is.
const CLASSES: [&str; 3] = ["TestGeneral", "TestWithUIDs", "TestWithoutUIDs"];

/// What is skipped through the gateway, because it is not offered.
const NOT_OFFERED: [(&str, &str); 6] = [
    ("test_fetch_modifiers", "CONDSTORE"),
    ("test_search_with_modseq", "CONDSTORE"),
    ("test_sort", "SORT"),
    ("test_sort_with_unicode", "SORT"),
    ("test_thread", "THREAD=REFERENCES"),
    ("test_thread_with_unicode", "THREAD=REFERENCES"),
];

/// Results by test; most run by UID and without.
fn live_test(world: &World, name: &str, login: &Login) -> BTreeMap<String, Vec<String>> {
    let config = format!(
        "[DEFAULT]\nhost = localhost\nport = {}\nssl = true\nssl_ca_file = {}\nusername = {}\npassword = {}\ntimeout = 60\n",
        login.imaps,
        login.trusts.display(),
        login.user,
        login.password
    );
    let config = world.gateway.scratch.file(name, config);
    let mut command = Command::new(python());
    command.args(["-m", "imapclient.livetest"]).arg(config).arg("-v").args(CLASSES);
    let ran = finish(command, b"");
    let mut results: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in ran.stderr.lines().filter(|l| l.starts_with("test_")) {
        let Some((test, result)) = line.split_once(" ... ") else { continue };
        let test = test.split(' ').next().unwrap_or_default();
        results.entry(test.to_owned()).or_default().push(result.to_owned());
    }
    let count = results.values().map(Vec::len).sum::<usize>();
    assert!(count > 50, "{count} results: {}", ran.stderr);
    results
}

#[test]
fn imapclient_s_live_test_has_the_same_results_as_at_dovecot() {
    let world = World::start();
    let (direct, through) = std::thread::scope(|scope| {
        let direct = scope.spawn(|| live_test(&world, "direct.ini", &clients_of::direct(&world, "bob")));
        let through = live_test(&world, "through.ini", &clients_of::through(&world));
        (direct.join().unwrap(), through)
    });
    let mut ok = 0;
    assert!(direct.keys().eq(through.keys()), "{direct:?}\n{through:?}");
    for (test, at_dovecot) in &direct {
        let here = &through[test];
        if let Some((_, what)) = NOT_OFFERED.iter().find(|(t, _)| t == test) {
            let reason = format!("skipped \"Server doesn't support {what}\"");
            assert!(here.iter().all(|r| *r == reason), "{test}: {here:?}");
            assert!(at_dovecot.iter().all(|r| r == "ok"), "{test}: {at_dovecot:?}");
        } else {
            assert_eq!(here, at_dovecot, "{test}");
            ok += here.iter().filter(|r| *r == "ok").count();
        }
    }
    println!("{ok} of the live test pass on both sides");
    assert!(ok > 30, "{ok}");
    // It cleans up after itself.
    assert!(at_the_provider(&world.dovecot, "alice").is_empty());
    assert!(!world.dovecot.direct("alice").mailboxes().iter().any(|m| m.contains("__imapclient")));
    table::is_true_of(&world, "IMAPClient");
}
