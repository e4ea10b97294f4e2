//! Views over the wire, against the embedded provider: what a client sees
//! agrees with itself, with the stamps and with the provider's octets.

use std::time::Instant;

use tollgate::account::demo as keys;
use tollgate::config::{Endpoint, TlsMode};
use tollgate::demo::client::imap::ImapClient;
use tollgate::demo::provider::{Provider, StoredMessage};
use tollgate::gateway::Gateway;
use tollgate::lane::stamp::neutralise;

mod correct;
mod entering;
mod fetch;
mod gate;
mod search;
mod strange;
mod told;

use gate::{PATIENCE, USER, agent, next_told, ok, person, provider, section, start, uids, until};
use strange::strange;

/// Size, sections and partials of every message of the selected view agree;
/// answers the octets by UID.
async fn check_view(client: &mut ImapClient) -> Vec<(u32, Vec<u8>)> {
    let mut seen = Vec::new();
    for uid in uids(client).await {
        let whole = section(client, uid, "BODY.PEEK[]").await;
        let size = ok(client, &format!("UID FETCH {uid} (RFC822.SIZE)")).await;
        let size = size.fetched().next().and_then(|r| r.number("RFC822.SIZE"));
        assert_eq!(size, Some(whole.len() as u64), "size of {uid}");
        let header = section(client, uid, "BODY.PEEK[HEADER]").await;
        let text = section(client, uid, "BODY.PEEK[TEXT]").await;
        assert_eq!([header.clone(), text].concat(), whole, "HEADER and TEXT of {uid}");
        assert_eq!(section(client, uid, "RFC822.HEADER").await, header);
        let fields = section(client, uid, "BODY.PEEK[HEADER.FIELDS (Subject X-Tollgate-Lane)]").await;
        for line in fields.split_inclusive(|b| *b == b'\n').filter(|l| !l.trim_ascii().is_empty()) {
            assert!(memchr::memmem::find(&header, line.trim_ascii_end()).is_some(), "field of {uid}");
        }
        for (origin, step) in [(0usize, 7usize), (0, 100), (3, 1000), (0, 60_000)] {
            let end = whole.len().min(origin + step * 12);
            let mut got = Vec::new();
            let mut at = origin;
            while at < end {
                got.extend(section(client, uid, &format!("BODY.PEEK[]<{at}.{step}>")).await);
                at += step;
            }
            let expected = &whole[origin.min(whole.len())..at.min(whole.len())];
            assert_eq!(got, expected, "partials of {step} of {uid}");
        }
        let tail = whole.len().saturating_sub(50);
        assert_eq!(section(client, uid, &format!("BODY.PEEK[]<{tail}.500>")).await, &whole[tail..]);
        assert!(section(client, uid, &format!("BODY.PEEK[]<{}.10>", whole.len())).await.is_empty());
        assert!(section(client, uid, &format!("BODY.PEEK[]<{}.10>", whole.len() + 99)).await.is_empty());
        seen.push((uid, whole));
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_sections_and_partials_of_strange_messages_agree() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    let corpus = strange();
    for octets in &corpus {
        provider(&gateway).deliver(USER, octets);
    }
    let mut client = person(&gateway).await;
    until(&mut client, "Lanes/All", corpus.len()).await;
    let people = check_view(&mut client).await;
    for ((uid, shown), sent) in people.iter().zip(&corpus) {
        let renamed = neutralise(sent);
        assert_eq!(renamed.len(), sent.len());
        assert!(shown.ends_with(&renamed), "{uid} shows the provider's octets after the stamp");
        let stamp = &shown[..shown.len() - renamed.len()];
        assert!(stamp.starts_with(b"X-Tollgate-Lane: ") && stamp.is_ascii(), "{uid} is stamped");
        let lanes = tollgate::mail::header::values(shown, "X-Tollgate-Lane");
        assert_eq!(lanes.len(), 1, "{uid} has one lane and it is ours");
    }
    let mut client = agent(&gateway).await;
    until(&mut client, "Lanes/All", corpus.len()).await;
    let agents = check_view(&mut client).await;
    let octets = |list: &[(u32, Vec<u8>)]| list.iter().map(|(_, o)| o.clone()).collect::<Vec<_>>();
    assert_eq!(octets(&people), octets(&agents));
    gateway.shutdown().await;
}

async fn all_octets(client: &mut ImapClient, mailbox: &str) -> Vec<(u32, Vec<u8>)> {
    let selected = ok(client, &format!("EXAMINE {mailbox}")).await;
    assert!(selected.is_ok());
    let answer = ok(client, "UID FETCH 1:* (BODY.PEEK[])").await;
    answer.fetched().map(|r| (r.number("UID").unwrap() as u32, r.literals[0].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_uid_names_the_same_octets_after_lane_changes_and_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), true, "folders").await;
    let mut client = person(&gateway).await;
    until(&mut client, "Lanes/All", 20).await;
    let before = all_octets(&mut client, "Lanes/All").await;
    ok(&mut client, "SELECT Lanes/Queue").await;
    let moved = uids(&mut client).await[0];
    ok(&mut client, &format!("UID MOVE {moved} Lanes/Info")).await;
    let after = all_octets(&mut client, "Lanes/All").await;
    assert_eq!(after.len(), before.len());
    let kept = after.iter().filter(|entry| before.contains(entry)).count();
    assert_eq!(kept, before.len() - 1, "one message has a new stamp");
    let (new_uid, new_octets) = after.iter().find(|entry| !before.contains(entry)).unwrap();
    assert!(before.iter().all(|(uid, _)| uid < new_uid), "and with it a new UID");
    assert!(new_octets.starts_with(b"X-Tollgate-Lane: info\r\n"));
    ok(&mut client, "SELECT Lanes/Queue").await;
    let to_inbox = uids(&mut client).await[0];
    ok(&mut client, &format!("UID MOVE {to_inbox} INBOX")).await;
    let after = all_octets(&mut client, "Lanes/All").await;
    let inbox = all_octets(&mut client, "INBOX").await;
    assert_eq!(inbox.len(), 1);
    gateway.shutdown().await;
    let gateway = start(folder.path(), true, "folders").await;
    let mut client = person(&gateway).await;
    assert_eq!(all_octets(&mut client, "Lanes/All").await, after);
    assert_eq!(all_octets(&mut client, "INBOX").await, inbox, "where a person put it, it stays");
    gateway.shutdown().await;
}

type Snapshot = Vec<(String, Vec<(u32, Vec<String>, Vec<u8>)>)>;

fn snapshot(provider: &Provider) -> Snapshot {
    let mut out = Vec::new();
    for name in provider.mailboxes(USER) {
        let list = provider.mailbox(USER, &name);
        let list = list.into_iter().map(|StoredMessage { uid, flags, octets, .. }| {
            let mut flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
            flags.retain(|f| f != "\\Recent");
            (uid, flags, octets.to_vec())
        });
        out.push((name, list.collect()));
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_through_the_gateway_changes_nothing_at_the_provider() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), true, "folders").await;
    let before = snapshot(provider(&gateway));
    for mut client in [person(&gateway).await, agent(&gateway).await] {
        for mailbox in ok(&mut client, "LIST \"\" *").await.mailboxes() {
            ok(&mut client, &format!("SELECT \"{mailbox}\"")).await;
            ok(&mut client, "UID SEARCH OR TEXT a SUBJECT b").await;
            ok(&mut client, "UID FETCH 1:* (FLAGS ENVELOPE BODYSTRUCTURE BODY.PEEK[] BODY.PEEK[HEADER])").await;
            ok(&mut client, "UNSELECT").await;
        }
    }
    assert_eq!(snapshot(provider(&gateway)), before);
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_can_change_nothing_but_drafts() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), true, "folders").await;
    let before = snapshot(provider(&gateway));
    let mut client = agent(&gateway).await;
    for mailbox in ["INBOX", "Lanes/All", "Lanes/Queue", "Archive", "Sent", "Drafts", "Trash"] {
        ok(&mut client, &format!("SELECT {mailbox}")).await;
        for command in [
            "STORE 1:* +FLAGS (\\Deleted)",
            "UID STORE 1:* FLAGS.SILENT (\\Deleted)",
            "UID STORE 1:* -FLAGS (\\Seen)",
            "UID STORE 1:* +FLAGS ($Any)",
            "COPY 1:* Trash",
            "UID COPY 1:* Archive",
            "MOVE 1:* Trash",
            "UID MOVE 1:* Lanes/Silent",
            "EXPUNGE",
            "UID EXPUNGE 1:*",
            "CREATE New",
            "DELETE Archive",
            "RENAME Archive Other",
            "RENAME INBOX Other",
            "SUBSCRIBE Archive",
            "UNSUBSCRIBE Archive",
            "UID STORE 1 +X-GM-LABELS (\\Trash)",
            "SETACL INBOX anyone lrswipkxtea",
            "SETMETADATA INBOX (/private/comment \"x\")",
            "COMPRESS DEFLATE",
            "ENABLE CONDSTORE",
        ] {
            let answer = client.command(command).await.unwrap();
            let refused = answer.status.starts_with("NO [NOPERM]") || answer.status.starts_with("BAD");
            assert!(refused, "{mailbox}: {command}: {}", answer.status);
        }
        ok(&mut client, "UID FETCH 1:* (FLAGS BODY[] RFC822)").await;
        ok(&mut client, "CLOSE").await;
    }
    let mail = b"From: demo@example.org\r\nDate: Mon, 30 Nov 2026 10:00:00 +0000\r\nSubject: a draft\r\n\r\nx\r\n";
    for mailbox in ["INBOX", "Lanes/All", "Lanes/Push", "Sent", "Archive", "Trash", "Junk", "Lanes", "Other"] {
        let answer = client.append(mailbox, "", mail).await.unwrap();
        assert!(answer.status.starts_with("NO [NOPERM]"), "{mailbox}: {}", answer.status);
    }
    let answer = client.append("Drafts", "\\Deleted", mail).await.unwrap();
    assert!(answer.status.starts_with("NO [NOPERM]"), "{}", answer.status);
    assert_eq!(snapshot(provider(&gateway)), before);
    let answer = client.append("Drafts", "\\Draft", mail).await.unwrap();
    assert!(answer.is_ok(), "{}", answer.status);
    let drafts = provider(&gateway).mailbox(USER, "Drafts");
    assert_eq!(drafts.last().map(|m| m.octets.to_vec()), Some(mail.to_vec()));
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_puts_into_a_view_stays_there_unstamped() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    let mut client = person(&gateway).await;
    let mail = b"From: demo@example.org\r\nSubject: mine\r\n\r\nx\r\n";
    for mailbox in ["INBOX", "Lanes/Info"] {
        let answer = client.append(mailbox, "\\Seen", mail).await.unwrap();
        assert!(answer.status.contains("[APPENDUID "), "{}", answer.status);
        ok(&mut client, &format!("SELECT {mailbox}")).await;
        assert_eq!(uids(&mut client).await.len(), 1, "{mailbox}");
        assert_eq!(section(&mut client, 1, "BODY.PEEK[]").await, mail);
    }
    client.append("Archive", "", mail).await.unwrap().ok().unwrap();
    ok(&mut client, "SELECT Archive").await;
    let answer = ok(&mut client, "UID COPY 1 Lanes/Push").await;
    assert!(answer.status.contains("[COPYUID ") && answer.status.contains(" 1 1]"), "{}", answer.status);
    let answer = ok(&mut client, "UID MOVE 1 INBOX").await;
    let told: String = answer.untagged.iter().map(|r| r.text.clone() + "\n").collect();
    assert!(told.contains("[COPYUID ") && told.contains(" 1 2]") && told.contains("1 EXPUNGE"), "{told}");
    until(&mut client, "Lanes/Push", 1).await;
    assert_eq!(section(&mut client, 1, "BODY.PEEK[]").await, mail);
    until(&mut client, "INBOX", 2).await;
    until(&mut client, "Lanes/All", 4).await;
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn re_laning_every_third_message_is_exact() {
    const MESSAGES: usize = 1000;
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    for n in 0..MESSAGES {
        let text = format!(
            "From: a{n}@example.com\r\nTo: {USER}\r\nSubject: no {n}.\r\nMessage-ID: <m{n}@example.com>\r\n\r\nnumber {n}\r\n"
        );
        provider(&gateway).deliver(USER, text);
    }
    let mut client = person(&gateway).await;
    until(&mut client, "Lanes/All", MESSAGES).await;
    let mut left = 0;
    let mut moved = Vec::new();
    for lane in ["Push", "Meeting", "Queue", "Info"] {
        ok(&mut client, &format!("SELECT Lanes/{lane}")).await;
        let list = uids(&mut client).await;
        let third: Vec<String> = list.iter().step_by(3).map(ToString::to_string).collect();
        left += list.len() - third.len();
        if third.is_empty() {
            continue;
        }
        let answer = ok(&mut client, &format!("UID FETCH {} (BODY.PEEK[TEXT])", third.join(","))).await;
        moved.extend(answer.fetched().map(|r| r.literals[0].clone()));
        ok(&mut client, &format!("UID MOVE {} Lanes/Silent", third.join(","))).await;
        assert_eq!(uids(&mut client).await.len(), list.len() - third.len());
    }
    let silent = all_octets(&mut client, "Lanes/Silent").await;
    for text in &moved {
        let hits =
            silent.iter().filter(|(_, o)| o.ends_with(text) && o.starts_with(b"X-Tollgate-Lane: silent\r\n")).count();
        assert_eq!(hits, 1, "{}", String::from_utf8_lossy(text));
    }
    assert_eq!(silent.len() + left, MESSAGES);
    assert_eq!(all_octets(&mut client, "Lanes/All").await.len(), MESSAGES);
    ok(&mut client, "SELECT Lanes/All").await;
    let hits = ok(&mut client, "UID SEARCH HEADER X-Tollgate-Lane silent").await.found();
    assert_eq!(hits.len(), silent.len());
    ok(&mut client, "SELECT Lanes/Silent").await;
    ok(&mut client, "MOVE 1:* Archive").await;
    assert!(uids(&mut client).await.is_empty());
    assert_eq!(provider(&gateway).mailbox(USER, "Archive").len(), silent.len());
    assert_eq!(provider(&gateway).mailbox(USER, "INBOX").len(), left);
    let whole = |mailbox: &str| -> Vec<Vec<u8>> {
        provider(&gateway).mailbox(USER, mailbox).iter().map(|m| m.octets.to_vec()).collect()
    };
    let (out, stayed) = (whole("Archive"), whole("INBOX"));
    for (_, shown) in &silent {
        // Unstamped, once, and no longer where it was.
        assert_eq!(out.iter().filter(|o| shown.ends_with(o)).count(), 1);
        assert!(!stayed.iter().any(|o| shown.ends_with(o)));
    }
    until(&mut client, "Lanes/All", left).await;
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_sessions_are_told_of_new_mail_flags_and_moves() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "shadow").await;
    let mut watcher = person(&gateway).await;
    ok(&mut watcher, "SELECT INBOX").await;
    watcher.idle().await.unwrap();
    let mut waits = Vec::new();
    for n in 1..=10u32 {
        let text = format!("From: a@example.com\r\nTo: {USER}\r\nSubject: s{n}\r\n\r\nx\r\n");
        let began = Instant::now();
        provider(&gateway).deliver(USER, text);
        let told = next_told(&mut watcher).await;
        waits.push(began.elapsed());
        assert_eq!(told, format!("{n} EXISTS"));
    }
    waits.sort();
    println!("delivery to EXISTS at an idle client: median {:?}, most {:?}", waits[5], waits[9]);
    let mut other = person(&gateway).await;
    ok(&mut other, "SELECT INBOX").await;
    let all = uids(&mut other).await;
    ok(&mut other, &format!("UID STORE {} +FLAGS (\\Flagged)", all[2])).await;
    let told = next_told(&mut watcher).await;
    assert!(told.starts_with(&format!("3 FETCH (UID {} FLAGS (", all[2])) && told.contains("\\Flagged"), "{}", told);
    ok(&mut other, &format!("UID MOVE {} Archive", all[1])).await;
    let told = next_told(&mut watcher).await;
    assert_eq!(told, "2 EXPUNGE");
    watcher.done().await.unwrap().ok().unwrap();
    // A message that went while a session looks the other way keeps its
    // number until the session may be told.
    ok(&mut other, &format!("UID STORE {} +FLAGS.SILENT (\\Deleted)", all[4])).await;
    ok(&mut watcher, "NOOP").await;
    ok(&mut other, "EXPUNGE").await;
    let answer = watcher.command("FETCH 1:* (UID)").await.unwrap();
    assert!(answer.status.starts_with("NO [EXPUNGEISSUED]"), "{}", answer.status);
    let shown: Vec<u32> = answer.fetched().filter_map(|r| r.number("UID")).map(|n| n as u32).collect();
    let left: Vec<u32> = all.iter().copied().filter(|u| *u != all[1] && *u != all[4]).collect();
    assert_eq!(shown, left);
    let answer = ok(&mut watcher, "NOOP").await;
    assert!(answer.untagged.iter().any(|r| r.text == "4 EXPUNGE"), "{answer:?}");
    gateway.shutdown().await;
}

/// Reads until a line that starts with `end`.
async fn lines(tcp: &mut (impl tokio::io::AsyncRead + Unpin), end: &str) -> String {
    use tokio::io::AsyncReadExt;
    let mut got = Vec::new();
    let began = Instant::now();
    while !String::from_utf8_lossy(&got).lines().any(|l| l.starts_with(end)) {
        let mut buf = [0u8; 4096];
        let n = tokio::time::timeout(PATIENCE, tcp.read(&mut buf)).await.unwrap().unwrap_or(0);
        if n == 0 || began.elapsed() > PATIENCE {
            break;
        }
        got.extend(&buf[..n]);
    }
    String::from_utf8_lossy(&got).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn starttls_comes_before_a_login_and_nothing_may_follow_it_in_the_clear() {
    use tokio::io::AsyncWriteExt;
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(tollgate::config::Config::embedded(folder.path())).await.unwrap();
    let imap = gateway.addresses().imap_starttls[0];
    let smtp = gateway.addresses().submission_starttls[0];
    let login = format!("LOGIN {USER} {}", keys::PERSON_KEY);

    // Without TLS nobody signs in.
    let mut tcp = tokio::net::TcpStream::connect(imap).await.unwrap();
    let greeting = lines(&mut tcp, "* OK").await;
    assert!(greeting.contains(" STARTTLS LOGINDISABLED"), "{greeting}");
    tcp.write_all(format!("a {login}\r\n").as_bytes()).await.unwrap();
    assert!(lines(&mut tcp, "a ").await.contains("a NO [PRIVACYREQUIRED]"));
    // What waits behind STARTTLS was sent in the clear.
    tcp.write_all(format!("b STARTTLS\r\nc {login}\r\n").as_bytes()).await.unwrap();
    let rest = lines(&mut tcp, "never").await;
    assert!(rest.contains("* BYE") && !rest.contains("c OK"), "{rest}");

    let mut tcp = tokio::net::TcpStream::connect(smtp).await.unwrap();
    lines(&mut tcp, "220").await;
    tcp.write_all(b"EHLO client.example.org\r\n").await.unwrap();
    let offered = lines(&mut tcp, "250 ").await;
    assert!(offered.contains("STARTTLS") && !offered.contains("AUTH"), "{offered}");
    tcp.write_all(b"AUTH PLAIN AAA=\r\n").await.unwrap();
    let refused = lines(&mut tcp, "5").await;
    assert!(refused.starts_with("538") || refused.starts_with("530") || refused.starts_with("503"), "{refused}");
    tcp.write_all(b"STARTTLS\r\nNOOP\r\n").await.unwrap();
    let rest = lines(&mut tcp, "never").await;
    assert!(!rest.contains("220") && !rest.contains("250"), "{rest}");

    // With it, both faces work.
    let ca = Some(gateway.cert().path.clone());
    let endpoint = |port| Endpoint { host: "localhost".into(), port, tls: TlsMode::StartTls, ca: ca.clone() };
    let target = tollgate::upstream::imap::ImapTarget {
        endpoint: endpoint(imap.port()),
        user: USER.into(),
        password: keys::PERSON_KEY.to_owned().into(),
    };
    let mut client = tollgate::upstream::imap::Connection::open(&target).await.unwrap();
    assert_eq!(client.select(b"Lanes/All", true).await.unwrap().exists, 20);
    let submission =
        tollgate::upstream::smtp::Submission::connect(&endpoint(smtp.port()), USER, keys::PERSON_KEY).await.unwrap();
    drop(submission);
    gateway.shutdown().await;
}
