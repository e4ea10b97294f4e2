//! The same work of a person and an agent at providers as they really are.

use std::time::{Duration, Instant};

use tollgate::demo::character::Character;
use tollgate::demo::faults::{BodyChange, ImapEffect};
use tollgate::imap::timing::Timing;

use crate::client::Client;
use crate::connections::told_of_mail;
use crate::stand::{BOUND, PATIENCE, Stand, USER, eventually, message, unstamped};

/// A provider and what its mailboxes are called on the wire.
#[derive(Clone, Copy)]
struct Place {
    character: Character,
    archive: &'static str,
    trash: &'static str,
    drafts: &'static str,
    all: &'static str,
    /// A name that only looks like the one for drafts.
    confusable: &'static str,
}

const PLACES: [Place; 4] = [
    Place {
        character: Character::Gmail,
        archive: "Archive",
        trash: "[Gmail]/Trash",
        drafts: "[Gmail]/Drafts",
        all: "Lanes/All",
        confusable: "[Gmail]/Sent Mail",
    },
    Place {
        character: Character::Microsoft365,
        archive: "Archive",
        trash: "Deleted",
        drafts: "Drafts",
        all: "Lanes/All",
        confusable: "Sent",
    },
    Place {
        character: Character::Icloud,
        archive: "Archive",
        trash: "Deleted Messages",
        drafts: "Drafts",
        all: "Lanes/All",
        confusable: "Sent Messages",
    },
    Place {
        character: Character::Fastmail,
        archive: "INBOX.Archive",
        trash: "INBOX.Trash",
        drafts: "INBOX.Drafts",
        all: "INBOX.Lanes.All",
        confusable: "Drafts",
    },
];

impl Place {
    async fn stand(self) -> Stand {
        Stand::like(self.character, 4).await
    }

    /// What a mailbox holds, by its name on the wire.
    fn holds(self, stand: &Stand, name: &str, octets: &[u8]) -> usize {
        let name = name.strip_prefix("INBOX.").unwrap_or(name);
        stand.provider.mailbox(USER, name).iter().filter(|m| &m.octets[..] == octets).count()
    }
}

/// Runs the same for every provider at once.
async fn everywhere<F, Fut>(run: F)
where
    F: Fn(Place) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let mut runs = tokio::task::JoinSet::new();
    for place in PLACES {
        let run = run(place);
        runs.spawn(async move {
            let done = tokio::time::timeout(Duration::from_secs(90), run).await;
            assert!(done.is_ok(), "{:?} took too long", place.character);
        });
    }
    while let Some(done) = runs.join_next().await {
        done.unwrap();
    }
}

/// The UID of the message in the selected mailbox, once it is there.
async fn uid_of(client: &mut Client, octets: &[u8]) -> u32 {
    let began = Instant::now();
    loop {
        let reply = client.ok("UID FETCH 1:* (UID BODY.PEEK[])").await;
        for (text, literals) in &reply.untagged {
            if literals.iter().any(|l| unstamped(l) == octets) {
                return text.split("UID ").nth(1).unwrap().split([' ', ')']).next().unwrap().parse().unwrap();
            }
        }
        assert!(began.elapsed() < PATIENCE, "{reply:?}");
        client.idle(Duration::from_millis(50)).await;
    }
}

fn permanent(reply: &crate::client::Reply) -> String {
    let line = reply.untagged.iter().find(|(t, _)| t.contains("[PERMANENTFLAGS ("));
    line.map(|(t, _)| t.split(['(', ')']).nth(1).unwrap().to_owned()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_works_as_with_any_provider() {
    everywhere(person).await;
}

async fn person(place: Place) {
    let case = place.character;
    let stand = place.stand().await;
    let faults = stand.provider.faults();
    let mut client = stand.client().await;
    let listed = client.until_ok("LIST \"\" *").await;
    for name in [place.archive, place.trash, place.drafts, place.all] {
        assert!(listed.has(name), "{case:?}: {name} in {listed:?}");
    }
    let offered = client.ok("CAPABILITY").await;
    for theirs in ["COMPRESS", "CONDSTORE", "QRESYNC", "X-GM", "XAPPLE", "XLIST", "UTF8", "OBJECTID", "BINARY"] {
        assert!(!offered.has(theirs), "{case:?}: {offered:?}");
    }
    assert!(offered.has(" MOVE") && offered.has(" UIDPLUS"), "{case:?}: {offered:?}");

    // New mail is in its lane, and comes out as it is.
    faults.keep_commands(true);
    let began = Instant::now();
    stand.provider.deliver(USER, message(30));
    client.ok(&format!("SELECT {}", place.all)).await;
    let uid = uid_of(&mut client, &message(30)).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{case:?}: {:?}", began.elapsed());
    let whole = client.ok(&format!("UID FETCH {uid} (RFC822.SIZE BODY.PEEK[])")).await;
    let body = &whole.bodies()[0];
    assert!(whole.has(&format!("RFC822.SIZE {} ", body.len())), "{case:?}: {whole:?}");
    let head = String::from_utf8_lossy(body).into_owned();
    let lane = head.split("X-Tollgate-Lane: ").nth(1).unwrap().split('\r').next().unwrap().to_owned();
    let old = client.ok(&format!("UID FETCH {uid} RFC822")).await;
    assert_eq!(&old.bodies()[0], body, "{case:?}");
    let delimiter = if case == Character::Fastmail { '.' } else { '/' };
    let named = format!(
        "{}{delimiter}{}{}",
        place.all.strip_suffix("/All").or(place.all.strip_suffix(".All")).unwrap(),
        lane[..1].to_uppercase(),
        &lane[1..]
    );
    let selected = client.ok(&format!("SELECT {named}")).await;
    let uid = uid_of(&mut client, &message(30)).await;

    // Flags; a keyword is promised and kept, or neither.
    let keeps = case != Character::Microsoft365;
    let promised = permanent(&selected);
    assert_eq!(promised.contains("\\*"), keeps, "{case:?}: {promised}");
    assert!(promised.contains("\\Flagged") && promised.contains("$TollgateQueue"), "{case:?}: {promised}");
    assert_eq!(promised.contains("$MDNSent"), !keeps, "{case:?}: {promised}");
    let stored = client.ok(&format!("UID STORE {uid} +FLAGS (\\Flagged $label1)")).await;
    assert!(stored.has("\\Flagged") && stored.has("$label1") == keeps, "{case:?}: {stored:?}");
    client.ok(&format!("UID STORE {uid} +FLAGS ($label2)")).await;
    client.ok(&format!("UID STORE {uid} -FLAGS ($TollgateQueue)")).await;
    let there = stand.provider.mailbox(USER, "INBOX").into_iter().find(|m| m.octets[..] == message(30)).unwrap();
    assert!(there.flags.contains("\\Flagged") && there.flags.contains("$label1") == keeps, "{case:?}: {there:?}");
    assert!(!there.flags.iter().any(|f| f.contains("Tollgate")), "{case:?}: {there:?}");
    let found = client.ok("UID SEARCH KEYWORD $label1").await;
    assert_eq!(found.has(&format!("SEARCH {uid}")), keeps, "{case:?}: {found:?}");
    client.ok("UID SEARCH UNKEYWORD $label9 SEEN").await;

    // Lane to lane, and back.
    let moved = client.ok(&format!("UID MOVE {uid} INBOX")).await;
    assert!(moved.has("COPYUID") && moved.has("EXPUNGE"), "{case:?}: {moved:?}");
    assert_eq!(place.holds(&stand, "INBOX", &message(30)), 1, "{case:?}");
    client.ok("SELECT INBOX").await;
    let uid = uid_of(&mut client, &message(30)).await;

    // To other mailboxes: they have it, and at Gmail it stays in All Mail.
    let copied = client.ok(&format!("UID COPY {uid} {}", place.archive)).await;
    assert!(copied.is("OK [COPYUID "), "{case:?}: {copied:?}");
    assert_eq!(place.holds(&stand, place.archive, &message(30)), 1, "{case:?}");
    client.ok(&format!("UID STORE {uid} +FLAGS.SILENT (\\Deleted)")).await;
    client.ok(&format!("UID EXPUNGE {uid}")).await;
    client.ok("NOOP").await;
    assert!(!client.ok(&format!("UID FETCH {uid} (UID)")).await.has("FETCH"), "{case:?}");
    assert_eq!(place.holds(&stand, "INBOX", &message(30)), 0, "{case:?}");
    let gmail = usize::from(case == Character::Gmail);
    assert_eq!(place.holds(&stand, "[Gmail]/All Mail", &message(30)), gmail, "{case:?}");
    let uid = uid_of(&mut client, &message(1)).await;
    client.ok(&format!("UID MOVE {uid} \"{}\"", place.trash)).await;
    assert_eq!(place.holds(&stand, "INBOX", &message(1)), 0, "{case:?}");
    assert_eq!(place.holds(&stand, place.trash, &message(1)), 1, "{case:?}");
    assert_eq!(place.holds(&stand, "[Gmail]/All Mail", &message(1)), 0, "{case:?}");
    // As clients do that know no MOVE.
    let uid = uid_of(&mut client, &message(2)).await;
    client.ok(&format!("UID COPY {uid} \"{}\"", place.trash)).await;
    client.command(&format!("UID STORE {uid} +FLAGS.SILENT (\\Deleted)")).await;
    client.ok("EXPUNGE").await;
    client.ok("NOOP").await;
    assert_eq!(place.holds(&stand, "INBOX", &message(2)), 0, "{case:?}");
    assert_eq!(place.holds(&stand, place.trash, &message(2)), 1, "{case:?}");
    assert_eq!(client.ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies().len(), 2, "{case:?}");

    // A mailbox that passes through, and what it gives back to INBOX.
    client.ok(&format!("SELECT {}", place.archive)).await;
    let there = client.ok("FETCH 1:* (BODY.PEEK[])").await.bodies();
    assert!(there.contains(&message(10)) && there.contains(&message(30)), "{case:?}");
    client.ok("MOVE 1 INBOX").await;
    eventually("it to be in INBOX", || place.holds(&stand, "INBOX", &message(10)) == 1).await;
    assert!(client.append(&format!("\"{}\"", place.archive), &message(400)).await.is("OK"), "{case:?}");
    assert!(client.append("INBOX", &message(401)).await.is("OK"), "{case:?}");
    assert_eq!(place.holds(&stand, "INBOX", &message(401)), 1, "{case:?}");
    if case == Character::Icloud {
        // Listed, and not to be opened.
        assert!(listed.has("Notes/Shared"), "{listed:?}");
        assert!(client.command("SELECT Notes/Shared").await.is("NO"));
        client.ok("SELECT INBOX").await;
    }
    let commands = faults.commands();
    let said = |word: &str| commands.iter().any(|c| String::from_utf8_lossy(c).contains(word));
    assert!(!said("Tollgate") && !said(" ENABLE") && !said(" COMPRESS"), "{case:?}");
    assert_eq!(said("$label"), keeps, "{case:?}");
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_puts_drafts_where_drafts_are_and_changes_nothing_else() {
    everywhere(agent).await;
}

async fn agent(place: Place) {
    let case = place.character;
    let stand = place.stand().await;
    let mut agent = stand.sign_in(&stand.agent).await;
    agent.until_ok("SELECT INBOX").await;
    stand.provider.faults().keep_commands(true);
    for command in [
        format!("UID COPY 1 \"{}\"", place.trash),
        format!("UID MOVE 1 \"{}\"", place.archive),
        "UID STORE 1 +FLAGS (\\Deleted)".to_owned(),
        "UID STORE 1 +X-GM-LABELS (\\Trash)".to_owned(),
        "UID SEARCH X-GM-RAW \"in:trash\"".to_owned(),
        "UID FETCH 1 (X-GM-LABELS)".to_owned(),
        "EXPUNGE".to_owned(),
        format!("DELETE \"{}\"", place.archive),
        format!("RENAME \"{}\" Other", place.trash),
    ] {
        let reply = agent.command(&command).await;
        assert!(reply.is("NO [NOPERM]") || reply.is("BAD"), "{case:?} {command}: {reply:?}");
    }
    let draft =
        b"From: jo@example.org\r\nTo: ann@example.com\r\nSubject: draft\r\nDate: Mon, 30 Nov 2026 10:00:00 +0000\r\n\
        Message-ID: <draft@example.org>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\nhello\r\n";
    for wrong in [place.confusable, place.archive, place.trash, "INBOX", place.all] {
        let reply = agent.append(&format!("\"{wrong}\""), draft).await;
        assert!(reply.is("NO"), "{case:?} {wrong}: {reply:?}");
    }
    let reply = agent.append(&format!("\"{}\"", place.drafts), draft).await;
    assert!(reply.is("OK"), "{case:?}: {reply:?}");
    assert_eq!(place.holds(&stand, place.drafts, draft), 1, "{case:?}");
    for verb in [" STORE", " COPY", " MOVE", " EXPUNGE", " DELETE", " RENAME", "X-GM"] {
        let said = |c: &Vec<u8>| String::from_utf8_lossy(c).contains(verb);
        assert!(!stand.provider.faults().commands().iter().any(said), "{case:?}: {verb}");
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_outlives_what_the_provider_does_to_it() {
    // RFC 2177 §3: at least every 29 minutes.
    assert!(Timing::default().idle_renew < Duration::from_secs(29 * 60));
    everywhere(idle).await;
}

async fn idle(place: Place) {
    let case = place.character;
    let stand = place.stand().await;
    let mut inbox = stand.selected(place.all).await;
    let mut passed = stand.selected(place.archive).await;
    let all = place.all;
    // The views are told of what comes to INBOX.
    let told = async |client: &mut Client, within: u64| {
        let tag = client.tag();
        client.send(format!("{tag} IDLE\r\n").as_bytes()).await;
        assert_eq!(client.response().await.unwrap().0, "+ idling");
        stand.provider.deliver(USER, message(60));
        let news = async { while !client.response().await.unwrap().0.ends_with(" EXISTS") {} };
        tokio::time::timeout(Duration::from_secs(within), news).await.unwrap_or_else(|_| panic!("{case:?}: {all}"));
        client.send(b"DONE\r\n").await;
        assert!(client.reply(&tag).await.is("OK"), "{case:?}");
    };
    told(&mut inbox, 3).await;
    told_of_mail(&stand, &mut passed, place.archive, Duration::from_secs(3)).await;
    // It ends IDLE, ends the session, drops it, or falls asleep with us.
    let faults = stand.provider.faults();
    faults.imap(Some("IDLE"), ImapEffect::EndIdle(Duration::from_millis(150)), Some(4));
    told(&mut inbox, 3).await;
    faults.clear();
    for bye in [Some("Session expired, please login again."), None] {
        stand.provider.disconnect(bye);
        told(&mut inbox, 5).await;
        let end = passed.command("NOOP").await;
        assert!(end.bye && end.status.is_none(), "{case:?}: {end:?}");
        passed = stand.selected(place.archive).await;
    }
    stand.provider.freeze();
    stand.timing.clock.advance(Duration::from_secs(3600));
    told(&mut inbox, 8).await;
    let began = Instant::now();
    let end = passed.command("NOOP").await;
    assert!(end.bye && began.elapsed() < BOUND, "{case:?}: {end:?}");
    let mut passed = stand.selected(place.archive).await;
    told_of_mail(&stand, &mut passed, place.archive, Duration::from_secs(3)).await;
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_midway_is_answered_everywhere() {
    let faults: [(&str, ImapEffect); 7] = [
        ("BYE", ImapEffect::Bye("Session expired, please login again.".into())),
        (
            "throttled",
            ImapEffect::BadAndBye(
                "Request is throttled. Suggested Backoff Time: 89117 milliseconds".into(),
                "Connection closed. 14".into(),
            ),
        ),
        ("refused", ImapEffect::No("[THROTTLED] later".into())),
        ("dropped inside a literal", ImapEffect::DropInLiteral(7)),
        ("dropped before the answer", ImapEffect::DropBeforeAnswer),
        ("slow", ImapEffect::Delay(Duration::from_millis(300))),
        ("silent", ImapEffect::Silence),
    ];
    everywhere(move |place| {
        let faults = faults.clone();
        async move {
            let stand = place.stand().await;
            for (name, effect) in faults {
                for (mailbox, command, at) in [
                    ("INBOX", "UID FETCH 1:* (BODY.PEEK[])", "FETCH"),
                    ("INBOX", "UID STORE 1:* +FLAGS (\\Seen)", "STORE"),
                    (place.archive, "UID FETCH 1:* (BODY.PEEK[])", "FETCH"),
                    (place.archive, "STORE 1 +FLAGS (\\Seen)", "STORE"),
                ] {
                    let case = format!("{:?}: {command} in {mailbox}, {name}", place.character);
                    let mut client = stand.selected(mailbox).await;
                    stand.fault(at, effect.clone());
                    let began = Instant::now();
                    let reply = client.command(command).await;
                    assert!(began.elapsed() < BOUND, "{case}: {:?}", began.elapsed());
                    let view = mailbox == "INBOX";
                    match &reply.status {
                        Some(s) if s.starts_with("OK") || s.starts_with("NO") => {}
                        // It is the provider's own word there.
                        Some(s) => assert!(s.starts_with("BAD") && !view && name == "throttled", "{case}: {reply:?}"),
                        None if at == "FETCH" && reply.cut => {}
                        None => assert!(reply.bye, "{case}: {reply:?}"),
                    }
                    if name == "slow" {
                        assert!(reply.is("OK"), "{case}: {reply:?}");
                    }
                    let known: Vec<Vec<u8>> = (0..20).map(message).collect();
                    assert!(reply.bodies().iter().all(|b| known.contains(&unstamped(b))), "{case}");
                    stand.provider.faults().clear();
                    // Within a minute all is well again, here far sooner.
                    let mut client = stand.selected(mailbox).await;
                    let bodies = client.until_ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies();
                    assert!(bodies.len() >= 3, "{case}: {}", bodies.len());
                }
            }
            stand.gateway.shutdown().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_rendered_anew_is_passed_on_as_it_came() {
    everywhere(|place| async move {
        let stand = place.stand().await;
        let mut client = stand.selected(place.archive).await;
        for change in [BodyChange::SameLength, BodyChange::Longer, BodyChange::Shorter] {
            stand.provider.faults().body_changes(Some(change), true);
            let (one, two) = (client.ok("FETCH 1 BODY.PEEK[]").await, client.ok("FETCH 1 BODY.PEEK[]").await);
            assert!(one.bodies()[0] != two.bodies()[0], "{:?}: {change:?}", place.character);
            client.ok("NOOP").await;
        }
        stand.gateway.shutdown().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_others_hold_are_waited_for_and_no_fault_of_the_password() {
    let stand = Stand::like(Character::Gmail, 8).await;
    let faults = stand.provider.faults();
    let mut client = stand.selected("INBOX").await;
    let mut other = stand.client().await;
    eventually("unused connections to be closed", || faults.connections() <= 1).await;
    faults.limit_connections(Some(1));
    let began = Instant::now();
    let reply = other.command("SELECT Archive").await;
    assert!(reply.is("NO [LIMIT]"), "{reply:?}");
    assert!(began.elapsed() >= stand.timing.queue - Duration::from_millis(50), "{:?}", began.elapsed());
    client.ok("UID FETCH 1:* (FLAGS)").await;
    // Nobody is made to wait for it once there is room.
    faults.limit_connections(None);
    let began = Instant::now();
    other.ok("SELECT Archive").await;
    assert!(began.elapsed() < Duration::from_millis(250), "{:?}", began.elapsed());
    other.ok("UNSELECT").await;
    eventually("unused connections to be closed", || faults.connections() <= 1).await;
    faults.limit_connections(Some(1));
    let (reply, ()) = tokio::join!(other.command("SELECT Archive"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        faults.limit_connections(None);
    });
    assert!(reply.is("OK"), "{reply:?}");
    // Also the watching connection comes back by itself.
    faults.limit_connections(Some(0));
    stand.provider.disconnect(Some("System error"));
    let reply = client.command("UID FETCH 1 (BODY.PEEK[])").await;
    assert!(reply.is("NO [UNAVAILABLE]") || reply.is("NO [LIMIT]"), "{reply:?}");
    faults.limit_connections(None);
    client.until_ok("SELECT Lanes/All").await;
    told_of_mail(&stand, &mut client, "INBOX", PATIENCE).await;
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_offers_condstore_and_refuses_it_is_opened_without() {
    for character in [Character::Gmail, Character::Icloud, Character::Fastmail] {
        let stand = Stand::like(character, 4).await;
        let faults = stand.provider.faults();
        let mut client = stand.selected("INBOX").await;
        faults.keep_commands(true);
        faults.imap(Some("SELECT"), ImapEffect::Bad("Unexpected extra arguments".into()), Some(1));
        let made = faults.connections_made();
        stand.provider.disconnect(None);
        eventually("INBOX to be selected", || faults.commands().iter().any(|c| c.ends_with(b" SELECT INBOX\r\n")))
            .await;
        client.until_ok("UID FETCH 1:* (FLAGS)").await;
        assert_eq!(faults.connections_made(), made + 1, "{character:?}");
        stand.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_leads_nowhere_makes_no_storm() {
    // "User is authenticated but not connected": jstedfast/MailKit#1494.
    let stand = Stand::like(Character::Microsoft365, 4).await;
    let faults = stand.provider.faults();
    let mut client = stand.selected("INBOX").await;
    faults.imap(Some("NAMESPACE"), ImapEffect::Bad("User is authenticated but not connected.".into()), None);
    stand.provider.disconnect(None);
    let made = faults.connections_made();
    for _ in 0..30 {
        let began = Instant::now();
        client.command("LIST \"\" *").await;
        client.command("UID FETCH 1 (BODY.PEEK[])").await;
        assert!(began.elapsed() < BOUND);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let made = faults.connections_made() - made;
    assert!((1..=12).contains(&made), "{made} connections");
    faults.clear();
    client.until_ok("SELECT INBOX").await;
    client.until_ok("UID FETCH 1:* (BODY.PEEK[])").await;
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_password_goes_to_a_provider_that_takes_none() {
    let stand = Stand::like(Character::Microsoft365, 4).await;
    let mut client = stand.selected("INBOX").await;
    let faults = stand.provider.faults();
    faults.hide_imap_capability("AUTH=PLAIN");
    faults.keep_commands(true);
    stand.provider.disconnect(None);
    eventually("the gateway to try", || faults.commands().len() > 2).await;
    let reply = client.command("UID FETCH 1 (BODY.PEEK[])").await;
    assert!(reply.is("NO [UNAVAILABLE]"), "{reply:?}");
    let secret = |c: &Vec<u8>| c.windows(5).any(|w| w == b"LOGIN") || c.windows(12).any(|w| w == b"AUTHENTICATE");
    assert!(!faults.commands().iter().any(secret));
    stand.gateway.shutdown().await;
}
