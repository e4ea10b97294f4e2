//! aioimaplib in IDLE: new mail is pushed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::clients_of;
use crate::common::mail::message;
use crate::common::world::World;
use crate::python::{path, python};
use crate::table;

/// From the delivery to what aioimaplib hears: Dovecot tells its own IDLE
/// after half a second. Generous, since other tests run at the same time.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn aioimaplib_in_idle_hears_of_new_mail_and_reads_it() {
    let world = World::start();
    let login = clients_of::through(&world);
    let mails: Vec<_> =
        (0..3).map(|n| message("ann@example.com", &world.alice.address, &format!("Pushed {n}"), "Hello.")).collect();
    let mut command = Command::new(python());
    command.arg(path("idle.py")).args([&login.imaps.to_string(), login.trusts.to_str().unwrap()]);
    command.args([&login.user, &login.password, "Lanes/All"]).args(mails.iter().map(|m| &m.id));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value {
        let line = lines.next().and_then(Result::ok).unwrap_or_else(|| panic!("the client ended; see its traceback"));
        serde_json::from_str(&line).unwrap()
    };
    for mail in &mails {
        assert_eq!(next()["idle"], mail.id.as_str());
        let began = Instant::now();
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
        let told = next();
        assert!(began.elapsed() < SOON, "{:?}: {told}", began.elapsed());
        println!("pushed {:?} after the delivery", began.elapsed());
        assert_eq!(told["found"], true, "{told}");
        // Longer than what Dovecot holds: the stamps are there already.
        let mut direct = world.dovecot.direct("alice");
        direct.ok("SELECT INBOX");
        let [uid] = direct.find(&mail.id)[..] else { panic!("one at the provider") };
        assert!(told["octets"].as_u64() > Some(direct.body(uid).len() as u64), "{told}");
    }
    assert!(child.wait().unwrap().success());
    table::is_true_of(&world, "aioimaplib");
}
