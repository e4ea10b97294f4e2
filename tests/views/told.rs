//! What is told about held mail: the notice under every command, reports,
//! `Tollgate/Outbox`, the gate, and the numbers that leave.

use std::path::Path;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tollgate::account::{AccountId, Role, demo as keys};
use tollgate::config::{Endpoint, TlsMode};
use tollgate::demo::client::imap::ImapClient;
use tollgate::demo::client::smtp::SmtpClient;
use tollgate::gateway::Gateway;
use tollgate::gateway::control::{Request, execute};
use tollgate::mail::address::Address;

use crate::gate::{PATIENCE, USER, agent, ok, person, provider, section, sign_in, start, told, uids, until};

const TO: &str = "ann@example.com";

fn mail(subject: &str) -> String {
    let id = subject.replace(' ', "-");
    format!(
        "From: {USER}\r\nTo: {TO}\r\nSubject: {subject}\r\nDate: Mon, 05 Jan 2026 10:00:00 +0000\r\n\
         Message-ID: <{id}@example.org>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n\
         Hello, this is {subject}.\r\n"
    )
}

/// Submits with a key; the id of the hold.
async fn hold(gateway: &Gateway, key: &str, subject: &str) -> String {
    let address = gateway.addresses().smtp_plain[0];
    let endpoint = Endpoint { host: "127.0.0.1".into(), port: address.port(), tls: TlsMode::None, ca: None };
    let mut smtp = SmtpClient::sign_in(&endpoint, USER, key).await.unwrap();
    let reply = smtp.submit(USER, &[TO], mail(subject).as_bytes()).await.unwrap();
    let text = reply.text();
    assert!(text.contains("held for approval as "), "{text}");
    text.rsplit(' ').next().unwrap().trim().to_owned()
}

async fn deny(gateway: &Gateway, id: &str, reason: &str) {
    let request = Request::HeldDeny { id: id.to_owned(), reason: reason.to_owned() };
    execute(gateway.core(), request).await.unwrap();
}

/// Waits until exactly so many messages of the mailbox match; their UIDs.
async fn matching(client: &mut ImapClient, mailbox: &str, keys: &str, count: usize) -> Vec<u32> {
    let began = Instant::now();
    loop {
        ok(client, &format!("SELECT {mailbox}")).await;
        let found = ok(client, &format!("UID SEARCH {keys}")).await.found();
        if found.len() == count {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{mailbox} has {} of {count} with {keys}", found.len());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

const NOTICE: &str = "SUBJECT \"Approval needed\"";

async fn text_of(client: &mut ImapClient, uid: u32) -> String {
    String::from_utf8(section(client, uid, "BODY.PEEK[]").await).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_notice_a_key_says_how_many_messages_wait() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    let mut client = person(&gateway).await;
    let first = hold(&gateway, keys::AGENT_KEY, "first one").await;
    let one = matching(&mut client, "INBOX", NOTICE, 1).await[0];
    assert!(text_of(&mut client, one).await.contains("Subject: Approval needed: first one\r\n"));
    let second = hold(&gateway, keys::AGENT_KEY, "second one").await;
    let two = matching(&mut client, "INBOX", "SUBJECT \"2 messages wait\"", 1).await[0];
    assert!(two > one, "what changed has a new UID");
    assert_eq!(uids(&mut client).await, [two], "and there is one notice");
    let text = text_of(&mut client, two).await;
    for id in [&first, &second] {
        assert!(text.contains(&format!("/held/{id}\r\n")), "{text}");
    }
    // Another key has a notice of its own.
    let account = AccountId::of(&Address::parse(USER).unwrap());
    let other = gateway.core().accounts.add_key(&account, Role::Agent, "other").await.unwrap();
    let third = hold(&gateway, &other, "third one").await;
    matching(&mut client, "INBOX", NOTICE, 2).await;
    // Fewer messages call for no attention.
    deny(&gateway, &first, "no").await;
    let fewer = matching(&mut client, "INBOX", "SEEN SUBJECT \"Approval needed: second one\"", 1).await[0];
    // A notice that was dismissed comes back with the next message only.
    ok(&mut client, &format!("UID MOVE {fewer} Trash")).await;
    assert_eq!(ok(&mut client, &format!("UID SEARCH {NOTICE}")).await.found().len(), 1);
    let fourth = hold(&gateway, keys::AGENT_KEY, "fourth one").await;
    matching(&mut client, "INBOX", "UNSEEN SUBJECT \"2 messages wait\"", 1).await;
    for id in [second, third, fourth] {
        deny(&gateway, &id, "no").await;
    }
    matching(&mut client, "INBOX", "ALL", 0).await;
    gateway.shutdown().await;
}

/// Each command of a client over a notice, with what it must answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_notice_is_read_flagged_and_dismissed_and_goes_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    let mut client = person(&gateway).await;
    let mut waiting = Vec::new();
    let mut count = 0;
    for dismissal in [
        &["UID MOVE {} Trash"][..],
        &["MOVE {seq} Junk"],
        &["UID STORE {} +FLAGS.SILENT (\\Deleted)", "EXPUNGE"],
        &["STORE {seq} +FLAGS (\\Deleted)", "UID EXPUNGE {}"],
        &["UID STORE {} FLAGS (\\Deleted)", "CLOSE"],
    ] {
        count += 1;
        waiting.push(hold(&gateway, keys::AGENT_KEY, &format!("notice {count}")).await);
        let uid = matching(&mut client, "INBOX", NOTICE, 1).await[0];
        let fetched = ok(&mut client, &format!("UID FETCH {uid} (FLAGS ENVELOPE BODYSTRUCTURE RFC822.SIZE)")).await;
        let line = &told(&fetched)[0];
        assert!(line.contains("(\"TEXT\" \"PLAIN\" (\"CHARSET\" \"us-ascii\") NIL NIL \"7BIT\" "), "{line}");
        let octets = section(&mut client, uid, "BODY.PEEK[]").await;
        assert!(line.contains(&format!("RFC822.SIZE {}", octets.len())), "{line}");
        ok(&mut client, &format!("UID STORE {uid} +FLAGS (\\Seen \\Flagged)")).await;
        assert_eq!(ok(&mut client, "UID SEARCH SEEN FLAGGED").await.found(), [uid]);
        ok(&mut client, &format!("UID STORE {uid} -FLAGS (\\Flagged)")).await;
        for refused in [
            format!("UID COPY {uid} Archive"),
            "COPY 1 Trash".to_owned(),
            format!("UID COPY {uid} Lanes/Push"),
            format!("UID COPY {uid} Lanes/All"),
            format!("UID MOVE {uid} Archive"),
            "MOVE 1 Drafts".to_owned(),
            format!("UID MOVE {uid} Lanes/Info"),
            format!("UID MOVE {uid} Tollgate/Outbox"),
        ] {
            let answer = client.command(&refused).await.unwrap();
            assert!(answer.status.starts_with("NO [CANNOT]"), "{refused}: {}", answer.status);
        }
        for mailbox in ["INBOX", "Archive", "Drafts", "Sent", "Trash", "Lanes/Push", "Lanes/All", "Tollgate/Outbox"] {
            let answer = client.append(mailbox, "\\Seen", &octets).await.unwrap();
            assert!(answer.status.starts_with("NO [CANNOT]"), "APPEND to {mailbox}: {}", answer.status);
        }
        for command in dismissal {
            ok(&mut client, &command.replace("{}", &uid.to_string()).replace("{seq}", "1")).await;
        }
        matching(&mut client, "INBOX", NOTICE, 0).await;
        let held = gateway.core().outbox.list(&AccountId::of(&Address::parse(USER).unwrap())).unwrap();
        assert_eq!(held.iter().filter(|h| h.state == tollgate::floor::submission::State::Held).count(), waiting.len());
    }
    for name in provider(&gateway).mailboxes(USER) {
        let there = provider(&gateway).mailbox(USER, &name);
        let notices = there.iter().filter(|m| memchr::memmem::find(&m.octets, b"Approval needed").is_some());
        assert_eq!(notices.count(), 0, "{name} at the provider");
    }
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_reaches_the_key_that_submitted_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    let account = AccountId::of(&Address::parse(USER).unwrap());
    let other = gateway.core().accounts.add_key(&account, Role::Agent, "other").await.unwrap();
    let mut mine = agent(&gateway).await;
    let mut others = sign_in(&gateway, &other).await;
    ok(&mut others, "SELECT INBOX").await;
    let id = hold(&gateway, keys::AGENT_KEY, "to be denied").await;
    let outbox = matching(&mut mine, "Tollgate/Outbox", "ALL", 1).await[0];
    let octets = section(&mut mine, outbox, "BODY.PEEK[]").await;
    let fields = format!("X-Tollgate-Hold: {id}\r\nX-Tollgate-State: held\r\n");
    assert_eq!(String::from_utf8_lossy(&octets), fields + &mail("to be denied"));
    deny(&gateway, &id, "Wrong person; ask Ann first").await;
    let uid = matching(&mut mine, "INBOX", "SUBJECT \"Denied: to be denied\"", 1).await[0];
    let structure = told(&ok(&mut mine, &format!("UID FETCH {uid} (BODYSTRUCTURE)")).await).remove(0);
    for part in
        ["(\"TEXT\" \"PLAIN\"", "(\"MESSAGE\" \"DELIVERY-STATUS\"", "\"REPORT\" (\"REPORT-TYPE\" \"delivery-status\""]
    {
        assert!(structure.contains(part), "{structure}");
    }
    let status = String::from_utf8(section(&mut mine, uid, "BODY.PEEK[2]").await).unwrap();
    for line in [
        "Reporting-MTA: dns; localhost\r\n",
        "Final-Recipient: rfc822; ann@example.com\r\n",
        "Action: failed\r\nStatus: 5.7.1\r\n",
        "Diagnostic-Code: X-Tollgate; denied: Wrong person; ask Ann first",
    ] {
        assert!(status.contains(line), "{status}");
    }
    let headers = String::from_utf8(section(&mut mine, uid, "BODY.PEEK[3]").await).unwrap();
    assert!(headers.contains("Message-ID: <to-be-denied@example.org>"), "{headers}");
    let whole = text_of(&mut mine, uid).await;
    assert!(!whole.contains("http"), "an agent's report has no link: {whole}");
    let denied = matching(&mut mine, "Tollgate/Outbox", "HEADER X-Tollgate-State denied", 1).await[0];
    assert!(denied > outbox, "another state is another message");
    assert_eq!(uids(&mut mine).await, [denied]);
    let text = text_of(&mut mine, denied).await;
    assert!(text.contains("X-Tollgate-Detail: Wrong person; ask Ann first\r\n"), "{text}");
    assert!(text.ends_with(&mail("to be denied")));
    // Neither another key nor a person has any of it.
    assert!(!told(&ok(&mut others, "NOOP").await).iter().any(|l| l.contains("EXISTS")));
    for mailbox in ["INBOX", "Tollgate/Outbox", "Lanes/All"] {
        ok(&mut others, &format!("SELECT {mailbox}")).await;
        assert!(uids(&mut others).await.is_empty(), "{mailbox}");
        let status = told(&ok(&mut others, &format!("STATUS {mailbox} (MESSAGES UNSEEN RECENT)")).await).remove(0);
        assert!(status.ends_with("(MESSAGES 0 UNSEEN 0 RECENT 0)"), "{status}");
        let fetched = ok(&mut others, "UID FETCH 1:* (FLAGS)").await;
        assert!(told(&fetched).is_empty(), "{fetched:?}");
    }
    let mut client = person(&gateway).await;
    matching(&mut client, "INBOX", "ALL", 0).await;
    assert!(client.command("SELECT Tollgate/Outbox").await.unwrap().status.starts_with("NO [NONEXISTENT]"));
    let listed = ok(&mut client, "LIST \"\" *").await.mailboxes();
    assert!(!listed.iter().any(|n| n.starts_with("Tollgate")), "{listed:?}");
    gateway.shutdown().await;
    // It is told once, also after a restart.
    let gateway = start(folder.path(), false, "folders").await;
    let mut mine = agent(&gateway).await;
    assert_eq!(matching(&mut mine, "INBOX", "ALL", 1).await, [uid]);
    assert_eq!(matching(&mut mine, "Tollgate/Outbox", "ALL", 1).await, [denied]);
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outbox_of_an_agent_is_listed_watched_and_never_changed() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    let mut client = agent(&gateway).await;
    let listed = ok(&mut client, "LIST \"\" *").await.mailboxes();
    assert!(listed.contains(&"Tollgate/Outbox".to_owned()), "{listed:?}");
    let selected = ok(&mut client, "SELECT Tollgate/Outbox").await;
    assert!(selected.status.contains("[READ-ONLY]"), "{}", selected.status);
    client.idle().await.unwrap();
    let id = hold(&gateway, keys::AGENT_KEY, "watched").await;
    assert_eq!(crate::gate::next_told(&mut client).await, "1 EXISTS");
    client.done().await.unwrap();
    let uid = uids(&mut client).await[0];
    for (section_name, expected) in [
        ("BODY.PEEK[HEADER.FIELDS (Subject)]", b"Subject: watched\r\n\r\n".to_vec()),
        ("BODY.PEEK[TEXT]", b"Hello, this is watched.\r\n".to_vec()),
        ("BODY.PEEK[1]", b"Hello, this is watched.\r\n".to_vec()),
        ("BODY.PEEK[]<0.23>", b"X-Tollgate-Hold: ".iter().copied().chain(id.bytes().take(6)).collect()),
    ] {
        assert_eq!(section(&mut client, uid, section_name).await, expected, "{section_name}");
    }
    let envelope = told(&ok(&mut client, &format!("UID FETCH {uid} (ENVELOPE)")).await).remove(0);
    assert!(envelope.contains("\"watched\"") && envelope.contains("\"<watched@example.org>\""), "{envelope}");
    for query in
        ["SUBJECT watched", "BODY \"this is\"", "TEXT hello", "TO ann@example.com", "HEADER Message-ID watched"]
    {
        assert_eq!(ok(&mut client, &format!("UID SEARCH {query}")).await.found(), [uid], "{query}");
    }
    assert!(ok(&mut client, "UID SEARCH BODY elsewhere").await.found().is_empty());
    for command in [
        "STORE 1 +FLAGS (\\Seen)",
        "UID STORE 1:* FLAGS (\\Deleted)",
        "COPY 1 Drafts",
        "UID MOVE 1:* Trash",
        "EXPUNGE",
        "DELETE Tollgate/Outbox",
        "RENAME Tollgate/Outbox Other",
        "CREATE Tollgate/Other",
    ] {
        let answer = client.command(command).await.unwrap();
        assert!(answer.status.starts_with("NO "), "{command}: {}", answer.status);
    }
    let answer = client.append("Tollgate/Outbox", "", mail("mine").as_bytes()).await.unwrap();
    assert!(answer.status.starts_with("NO "), "{}", answer.status);
    ok(&mut client, "CLOSE").await;
    until(&mut client, "Tollgate/Outbox", 1).await;
    // A person makes nothing beneath it either.
    let mut client = person(&gateway).await;
    for command in ["CREATE Tollgate/x", "CREATE tollgate", "RENAME Archive Tollgate"] {
        let answer = client.command(command).await.unwrap();
        assert!(answer.status.starts_with("NO [CANNOT]"), "{command}: {}", answer.status);
    }
    gateway.shutdown().await;
}

/// One request to the web face; status and body.
async fn get(gateway: &Gateway, path: &str, fields: &str) -> (u16, String) {
    let address = gateway.addresses().web[0];
    let mut stream = TcpStream::connect(address).await.unwrap();
    let host = format!("localhost:{}", address.port());
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

async fn knock(gateway: &Gateway, query: &str) -> serde_json::Value {
    let bearer = format!("Authorization: Bearer {}\r\n", keys::AGENT_KEY);
    let (status, body) = get(gateway, &format!("/gate/new-mail{query}"), &bearer).await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_wakes_an_agent_when_mail_came_and_opens_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    let mut client = agent(&gateway).await;
    until(&mut client, "Lanes/All", 0).await;
    let first = knock(&gateway, "").await;
    assert_eq!(first["wake"], false);
    let cursor = first["data"]["cursor"].as_str().unwrap().to_owned();
    let began = Instant::now();
    let quiet = knock(&gateway, &format!("?cursor={cursor}&wait=1")).await;
    assert!(began.elapsed().as_millis() >= 900, "it waits");
    assert_eq!((quiet["wake"].as_bool(), quiet["data"]["cursor"].as_str()), (Some(false), Some(cursor.as_str())));
    let query = format!("?cursor={cursor}&wait=55");
    let (woken, ()) = tokio::join!(knock(&gateway, &query), async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let secret = "From: ann@example.com\r\nTo: demo@example.org\r\nSubject: secret words\r\n\r\nhidden text\r\n";
        provider(&gateway).deliver(USER, secret);
    });
    assert_eq!((woken["wake"].as_bool(), woken["data"]["count"].as_u64()), (Some(true), Some(1)), "{woken}");
    let topic = woken["topic"].as_str().unwrap();
    assert_eq!(woken["data"]["lanes"][topic], 1);
    assert_eq!(woken["data"]["mailbox"], "Lanes/All");
    ok(&mut client, "SELECT Lanes/All").await;
    assert_eq!(woken["data"]["uids"], serde_json::json!(uids(&mut client).await));
    let text = woken.to_string();
    assert!(!["secret", "hidden", "ann@", "example"].iter().any(|w| text.contains(w)), "{text}");
    let next = woken["data"]["cursor"].as_str().unwrap();
    assert_eq!(knock(&gateway, &format!("?cursor={next}&wait=0")).await["wake"], false);
    // What an agent's own mail or a notice adds is no new mail.
    hold(&gateway, keys::AGENT_KEY, "own").await;
    until(&mut client, "Tollgate/Outbox", 1).await;
    assert_eq!(knock(&gateway, &format!("?cursor={next}&wait=0")).await["wake"], false);
    let key = keys::AGENT_KEY;
    let basic = |user: &str, key: &str| {
        use base64::Engine as _;
        let both = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{key}"));
        format!("Authorization: Basic {both}\r\n")
    };
    assert_eq!(get(&gateway, "/gate/new-mail", &basic(USER, key)).await.0, 200);
    for (fields, status) in [
        (String::new(), 401),
        (basic("other@example.org", key), 401),
        (basic(USER, keys::PERSON_KEY), 401),
        (format!("Authorization: Bearer {}\r\n", keys::PERSON_KEY), 401),
        (format!("Authorization: Bearer {key}x\r\n"), 401),
        (format!("Authorization: Bearer {key}\r\nAuthorization: Bearer {key}\r\n"), 401),
        (format!("Authorization: Bearer {key}\r\nOrigin: http://evil.example\r\n"), 403),
    ] {
        assert_eq!(get(&gateway, "/gate/new-mail", &fields).await.0, status, "{fields}");
    }
    let bearer = format!("Authorization: Bearer {key}\r\n");
    for query in ["?cursor=x", "?cursor=1-2-3", "?other=1", "?wait=-1"] {
        assert_eq!(get(&gateway, &format!("/gate/new-mail{query}"), &bearer).await.0, 400, "{query}");
    }
    for path in ["/", "/history", "/held/2222222222222222"] {
        let (status, _) = get(&gateway, path, &bearer).await;
        assert_ne!(status, 200, "a key opens no page: {path}");
    }
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_s_wait_at_the_gate_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    let mut client = agent(&gateway).await;
    until(&mut client, "Lanes/All", 0).await;
    let account = AccountId::of(&Address::parse(USER).unwrap());
    let key = gateway.core().accounts.add_key(&account, Role::Agent, "short").await.unwrap();
    let bearer = format!("Authorization: Bearer {key}\r\n");
    let (status, body) = get(&gateway, "/gate/new-mail", &bearer).await;
    assert_eq!(status, 200, "{body}");
    let said: serde_json::Value = serde_json::from_str(&body).unwrap();
    let path = format!("/gate/new-mail?wait=55&cursor={}", said["data"]["cursor"].as_str().unwrap());
    let began = Instant::now();
    let ((status, _), ()) = tokio::join!(get(&gateway, &path, &bearer), async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let id = key.split('_').nth(1).unwrap().to_owned();
        execute(gateway.core(), Request::KeyRevoke { id }).await.unwrap();
    });
    assert_eq!(status, 401);
    assert!(began.elapsed().as_secs() < 20);
    gateway.shutdown().await;
}

/// Takes one request and answers it; the whole request.
async fn one_request(listener: &TcpListener, answer: &str) -> String {
    let (mut stream, _) = tokio::time::timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: ")).unwrap().parse::<usize>();
            if body.len() >= length.unwrap() {
                stream.write_all(answer.as_bytes()).await.unwrap();
                return text;
            }
        }
        assert!(stream.read_buf(&mut request).await.unwrap() > 0, "a whole request");
    }
}

async fn start_with(folder: &Path, more: &str) -> Gateway {
    let gateway = start(folder, false, "folders").await;
    gateway.shutdown().await;
    let file = folder.join("gateway.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("[lanes]", &format!("{more}\n[lanes]"));
    std::fs::write(&file, text).unwrap();
    let overrides = tollgate::config::Overrides::default();
    let config = tollgate::config::load(Some(&file), &Default::default(), &overrides).unwrap();
    Gateway::start(config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_ntfy_and_command_learn_a_number_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (webhook, ntfy) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let said = folder.path().join("said");
    let section = format!(
        "[notify]\nwebhook = \"http://{}/hook?token=t\"\nntfy = \"http://{}/topic\"\n\
         command = [\"sh\", \"-c\", \"printf '%s' \\\"$0\\\" > {}\"]\n",
        webhook.local_addr().unwrap(),
        ntfy.local_addr().unwrap(),
        said.display()
    );
    let gateway = start_with(folder.path(), &section).await;
    let id = hold(&gateway, keys::AGENT_KEY, "confidential").await;
    // A refusal is tried again.
    let refused = one_request(&webhook, "HTTP/1.1 503 Busy\r\n\r\n").await;
    let hook = one_request(&webhook, "HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(refused, hook);
    assert!(hook.starts_with("POST /hook?token=t HTTP/1.1\r\n") && hook.ends_with("\r\n\r\n{\"waiting\":1}"), "{hook}");
    let pushed = one_request(&ntfy, "HTTP/1.1 200 OK\r\n\r\n").await;
    assert!(
        pushed.starts_with("POST /topic HTTP/1.1\r\n") && pushed.ends_with("\r\n\r\n1 message waits for approval"),
        "{pushed}"
    );
    for text in [&hook, &pushed] {
        for word in ["confidential", TO, USER, id.as_str(), "/held", "tg1_"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
    let began = Instant::now();
    while std::fs::read_to_string(&said).unwrap_or_default() != "1 message waits for approval" {
        assert!(began.elapsed() < PATIENCE, "the command was not run");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    gateway.shutdown().await;
}
