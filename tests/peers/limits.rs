//! What one agent's key may use up, over the wire to Dovecot: each limit with
//! the code that README.md names.

use crate::common::dovecot::{Dovecot, USERS};
use crate::common::gateway::{Gateway, Upstream};
use crate::common::imap::Imap;
use crate::common::mail::message;

/// A gateway before Dovecot, with these limits; dropped in this order.
struct Stand {
    gateway: Gateway,
    address: String,
    agent: String,
    person: String,
    dovecot: Dovecot,
}

impl Stand {
    fn start(dovecot: Dovecot, limits: &str) -> Stand {
        let (user, password) = USERS[0];
        // Nothing is submitted here.
        let smtp = (dovecot.lmtp, "none");
        let account = Upstream { user, password, imap: (dovecot.imap, "none"), smtp, ca: None }.toml();
        let gateway = Gateway::spawn(&format!("[limits]\n{limits}\n[lanes]\npreset = \"folders\"\n\n{account}"));
        let address = format!("{user}@example.test");
        let key = |role| gateway.add_key(&address, role, "test");
        let (agent, person) = (key("agent"), key("person"));
        Stand { gateway, address, agent, person, dovecot }
    }

    fn agent(&self) -> Imap {
        Imap::login(self.gateway.imap, &self.address, &self.agent)
    }

    fn person(&self) -> Imap {
        Imap::login(self.gateway.imap, &self.address, &self.person)
    }

    /// A draft of about so many octets.
    fn draft(&self, subject: &str, octets: usize) -> Vec<u8> {
        let body = "0123456789 0123456789 0123456789 0123456789 0123456789\r\n".repeat(octets / 56);
        message(&self.address, "ann@example.com", subject, &body).octets
    }
}

/// The tagged answer to a draft.
#[track_caller]
fn append(session: &mut Imap, octets: &[u8]) -> String {
    session.append("Drafts", "\\Draft", octets).status
}

#[test]
fn an_agent_fills_a_mailbox_to_nine_tenths_of_its_quota_and_no_more() {
    let stand = Stand::start(Dovecot::start_with_quota(100), "");
    let id = stand.agent.split('_').nth(1).expect("tg1_ID_SECRET");
    stand.gateway.tollgate(&["key", "grant", id, "file@Archive=allow"]).ok();
    let mut agent = stand.agent();
    for n in 0..2 {
        let answer = append(&mut agent, &stand.draft(&format!("Draft {n}"), 40 * 1024));
        assert!(answer.starts_with("OK"), "{answer}");
    }
    // 80 of 100 KiB are used.
    let more = stand.draft("One more", 12 * 1024);
    let answer = append(&mut agent, &more);
    assert!(answer.starts_with("NO [OVERQUOTA]") && answer.contains("90 %"), "{answer}");
    agent.ok("SELECT Drafts");
    agent.refused("COPY 1 Archive", "NO [OVERQUOTA]");
    let answer = append(&mut agent, &stand.draft("A small one", 2 * 1024));
    assert!(answer.starts_with("OK"), "what fits is taken: {answer}");
    // The rest is the person's, up to what the provider says.
    let mut person = stand.person();
    let answer = append(&mut person, &more);
    assert!(answer.starts_with("OK"), "{answer}");
    let answer = append(&mut person, &more);
    assert!(answer.starts_with("NO [OVERQUOTA]") && !answer.contains("90 %"), "{answer}");
    let mut direct = stand.dovecot.direct("alice");
    direct.ok("SELECT Drafts");
    assert_eq!(direct.search("ALL").len(), 4);
    direct.ok("SELECT Archive");
    assert!(direct.search("ALL").is_empty());
}

#[test]
fn an_agent_adds_its_octets_of_a_day_and_no_more() {
    let mut stand = Stand::start(Dovecot::start(), "agent_bytes_per_day = 10000\n");
    let (first, second) = (stand.draft("First", 6_000), stand.draft("Second", 6_000));
    let mut agent = stand.agent();
    assert!(append(&mut agent, &first).starts_with("OK"));
    for _ in 0..2 {
        let answer = append(&mut agent, &second);
        assert!(answer.starts_with("NO [LIMIT]") && answer.contains("10000 octets a day"), "{answer}");
    }
    let answer = append(&mut agent, &stand.draft("Small", 1_000));
    assert!(answer.starts_with("OK"), "a refusal costs nothing: {answer}");
    // Another session, and another run of the gateway, of the same day.
    assert!(append(&mut stand.agent(), &second).starts_with("NO [LIMIT]"));
    stand.gateway.restart_after_kill_9();
    assert!(append(&mut stand.agent(), &second).starts_with("NO [LIMIT]"));
    // Another key has its own, and a person is not counted.
    let other = stand.gateway.add_key(&stand.address, "agent", "other");
    assert!(append(&mut Imap::login(stand.gateway.imap, &stand.address, &other), &second).starts_with("OK"));
    for _ in 0..2 {
        assert!(append(&mut stand.person(), &second).starts_with("OK"));
    }
}

#[test]
fn an_agent_gives_its_commands_of_a_minute_and_no_more() {
    const A_MINUTE: usize = 40;
    let stand = Stand::start(Dovecot::start(), &format!("agent_commands_per_minute = {A_MINUTE}\n"));
    let (mut one, mut two, mut person) = (stand.agent(), stand.agent(), stand.person());
    // One comes back every 1.5 seconds while these run.
    let refused = (0..A_MINUTE * 4).find_map(|n| {
        let session = if n % 2 == 0 { &mut one } else { &mut two };
        let status = session.command("NAMESPACE").status;
        (!status.starts_with("OK")).then_some((n, status))
    });
    let (taken, status) = refused.expect("a limit");
    assert!(taken >= A_MINUTE, "{taken} commands over two sessions: {status}");
    assert!(status.starts_with("NO [LIMIT]") && status.contains("40 commands a minute; wait"), "{status}");
    for _ in 0..A_MINUTE * 2 {
        person.ok("NAMESPACE");
    }
    std::thread::sleep(std::time::Duration::from_secs(4));
    one.ok("NAMESPACE");
    one.ok("LOGOUT");
}

/// What an agent asks to remove waits beside its mail, under the same limit.
#[test]
fn a_removal_over_the_limit_of_what_waits_is_told_so_and_nothing_is_held() {
    let stand = Stand::start(Dovecot::start(), "max_holds_per_key = 1\n");
    let id = stand.agent.split('_').nth(1).expect("tg1_ID_SECRET");
    stand.gateway.tollgate(&["key", "grant", id, "delete=ask"]).ok();
    let mut direct = stand.dovecot.direct("alice");
    for n in 0..2 {
        direct.append("Archive", "", &stand.draft(&format!("Number {n}"), 100));
    }
    let mut agent = stand.agent();
    agent.ok("SELECT Archive");
    agent.refused("STORE 1 +FLAGS (\\Deleted)", "NO [NOPERM] held for approval as ");
    agent.refused("STORE 2 +FLAGS (\\Deleted)", "NO [LIMIT] this key has 1 messages waiting");
    agent.refused("STORE 1 +FLAGS (\\Deleted)", "NO [NOPERM] held for approval as ");
    assert_eq!(stand.gateway.json(&["held", "list"])["holds"].as_array().map(Vec::len), Some(1));
    direct.ok("SELECT Archive");
    assert_eq!(direct.search("UNDELETED").len(), 2);
}
