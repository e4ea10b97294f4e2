//! curl: imaps:// and imap:// with every kind of request that it has.

use crate::clients_of;
use crate::common::mail::message;
use crate::common::program::{Ran, run};
use crate::common::world::World;
use crate::corpus::delivered;
use crate::holdings::at_the_provider;
use crate::table;

struct Curl {
    fixed: Vec<String>,
    base: String,
}

impl Curl {
    fn tls(world: &World) -> Curl {
        let login = clients_of::through(world);
        let fixed = ["--cacert", login.trusts.to_str().unwrap()].map(str::to_owned).to_vec();
        Curl::new(fixed, format!("imaps://localhost:{}", login.imaps), &login)
    }

    /// STARTTLS on the other port.
    fn starttls(world: &World) -> Curl {
        let login = clients_of::through(world);
        let fixed = ["--ssl-reqd", "--cacert", login.trusts.to_str().unwrap()].map(str::to_owned).to_vec();
        Curl::new(fixed, format!("imap://localhost:{}", world.gateway.imap_starttls), &login)
    }

    fn new(mut fixed: Vec<String>, base: String, login: &clients_of::Login) -> Curl {
        let more = ["--silent", "--show-error", "--user"].map(str::to_owned);
        fixed.extend(more);
        fixed.push(format!("{}:{}", login.user, login.password));
        Curl { fixed, base }
    }

    #[track_caller]
    fn run(&self, path: &str, more: &[&str]) -> Ran {
        let url = format!("{}{path}", self.base);
        let mut arguments: Vec<&str> = self.fixed.iter().map(String::as_str).collect();
        arguments.extend(more);
        arguments.push(&url);
        run("curl", &arguments)
    }
}

#[test]
fn curl_reads_searches_sections_and_commands_over_tls_and_starttls() {
    let world = World::start();
    let mails = delivered(&world);
    let mut session = world.person(&world.alice);
    let before = at_the_provider(&world.dovecot, "alice");
    for curl in [Curl::tls(&world), Curl::starttls(&world)] {
        let get = |path: &str| curl.run(path, &[]).ok();
        session.ok("EXAMINE \"Lanes/All\"");
        let validity = session.ok("STATUS \"Lanes/All\" (UIDVALIDITY)");
        let validity = validity.untagged[0].number("UIDVALIDITY").unwrap();
        for mail in &mails {
            let [uid] = session.find(&mail.id)[..] else { panic!("one in Lanes/All") };
            let whole = session.body(uid);
            let base = format!("/Lanes%2FAll;UIDVALIDITY={validity};UID={uid}");
            // curl reads by BODY[], which sets \Seen: the message is compared with
            // what another session sees, the flag below.
            assert_eq!(get(&base).stdout, whole, "{}", mail.id);
            let head = get(&format!("{base};SECTION=HEADER")).stdout;
            let text = get(&format!("{base};SECTION=TEXT")).stdout;
            assert_eq!([head, text].concat(), whole, "{}", mail.id);
            let partial = get(&format!("{base};PARTIAL=3.40")).stdout;
            assert_eq!(partial, &whole[3..43], "{}", mail.id);
            let found = get(&format!("/Lanes%2FAll?HEADER%20Message-ID%20{}", mail.id)).text();
            assert_eq!(found.trim(), format!("* SEARCH {uid}"));
        }
        // Another UIDVALIDITY: the message isn't the one that was meant.
        assert_eq!(curl.run(&format!("/Lanes%2FAll;UIDVALIDITY={};UID=1", validity + 1), &[]).code, Some(78));
        assert!(get("/").text().contains("Lanes/Push"));
        let flags = curl.run("/Lanes%2FAll", &["--request", "UID FETCH 1:* (FLAGS)"]).ok().text();
        assert_eq!(flags.lines().count(), mails.len(), "{flags}");
        let examined = curl.run("", &["--request", "EXAMINE Lanes/All"]).ok().text();
        assert!(examined.contains("[READ-ONLY]") || examined.contains(" EXISTS"), "{examined}");
    }
    // BODY[] without PEEK sets \Seen at the provider and changes nothing else.
    let after = at_the_provider(&world.dovecot, "alice");
    for (key, held) in &before {
        assert_eq!(held.octets, after[key].octets);
        assert!(after[key].flags.iter().eq(["\\Seen"]), "{:?}", after[key].flags);
    }
    assert_eq!(before.len(), after.len());
}

#[test]
fn curl_appends_to_a_view_and_to_a_mailbox_and_flags() {
    let world = World::start();
    let curl = Curl::tls(&world);
    for mailbox in ["INBOX", "Lanes/Info", "Archive"] {
        let mail = message(&world.alice.address, "ann@example.com", "By curl", ".dot\r\n\u{e9}");
        let file = world.gateway.scratch.file("up.eml", &mail.octets);
        curl.run(&format!("/{}", mailbox.replace('/', "%2F")), &["--upload-file", file.to_str().unwrap()]).ok();
        let mut direct = world.dovecot.direct("alice");
        direct.ok(if mailbox == "Archive" { "SELECT Archive" } else { "SELECT INBOX" });
        let [uid] = direct.find(&mail.id)[..] else { panic!("{mailbox}") };
        assert_eq!(direct.body(uid), mail.octets, "{mailbox}");
        let mut session = world.person(&world.alice);
        session.ok(&format!("SELECT \"{mailbox}\""));
        let [view] = session.find(&mail.id)[..] else { panic!("it is in {mailbox}") };
        assert_eq!(session.body(view), mail.octets);
        let path = format!("/{}", mailbox.replace('/', "%2F"));
        curl.run(&path, &["--request", &format!("UID STORE {view} +FLAGS (\\Flagged)")]).ok();
        assert!(direct.flags(uid).contains(&"\\Flagged".into()), "{mailbox}");
    }
    table::is_true_of(&world, "curl");
}
