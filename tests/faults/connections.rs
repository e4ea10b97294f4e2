//! The pool, the watching connection, a provider that is gone for a while.

use std::time::{Duration, Instant};

use tollgate::config::{self, Overrides};
use tollgate::demo::faults::ImapEffect;
use tollgate::demo::provider::Caps;

use crate::client::Client;
use crate::stand::{PATIENCE, Stand, USER, direct, eventually, message, provider, unstamped};

/// Waits until a client that idles in INBOX or Archive is told of a message.
pub(crate) async fn told_of_mail(stand: &Stand, client: &mut Client, mailbox: &str, within: Duration) {
    let tag = client.tag();
    client.send(format!("{tag} IDLE\r\n").as_bytes()).await;
    assert_eq!(client.response().await.unwrap().0, "+ idling");
    // A provider's own prefix is no part of the name there.
    stand.provider.put(USER, mailbox.strip_prefix("INBOX.").unwrap_or(mailbox), message(50), &[]);
    let told = async { while !client.response().await.unwrap().0.ends_with(" EXISTS") {} };
    tokio::time::timeout(within, told).await.expect("the client is told");
    client.send(b"DONE\r\n").await;
    assert!(client.reply(&tag).await.is("OK"));
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_clients_cost_no_connection() {
    let stand = Stand::new().await;
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut client = stand.selected("INBOX").await;
        client.ok("UID FETCH 1:* (BODY.PEEK[])").await;
        let tag = client.tag();
        client.send(format!("{tag} IDLE\r\n").as_bytes()).await;
        clients.push(client);
    }
    eventually("only the watching connection to be open", || stand.provider.faults().connections() == 1).await;
    tokio::time::sleep(stand.timing.idle_renew * 3).await;
    assert_eq!(stand.provider.faults().connections(), 1);
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_the_limit_a_session_waits_its_turn_and_is_then_refused() {
    let stand = Stand::with(Caps::default(), 4, |_, timing| timing.queue = Duration::from_millis(1500)).await;
    let mut holders = Vec::new();
    for _ in 0..3 {
        holders.push(stand.selected("Archive").await);
    }
    assert_eq!(stand.provider.faults().connections(), 4);
    let mut late = stand.client().await;
    for command in ["SELECT Archive", "STATUS Archive (MESSAGES)"] {
        let began = Instant::now();
        let reply = late.command(command).await;
        assert!(reply.is("NO [LIMIT]"), "{command}: {reply:?}");
        assert!(began.elapsed() >= Duration::from_millis(1400), "{:?}", began.elapsed());
    }
    // The mirror needs none; a body does.
    late.ok("SELECT INBOX").await;
    late.ok("UID FETCH 1:* (FLAGS)").await;
    assert!(late.command("UID FETCH 1 (BODY.PEEK[])").await.is("NO [LIMIT]"));
    assert_eq!(stand.provider.faults().connections(), 4);
    // Whoever waits gets the place that another gives up, however it does.
    let (waiting, _) = tokio::join!(late.command("SELECT Archive"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        holders[0].ok("UNSELECT").await;
    });
    assert!(waiting.is("OK"), "{waiting:?}");
    let mut other = stand.client().await;
    let (waiting, ()) = tokio::join!(other.command("STATUS Archive (MESSAGES)"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(holders.pop());
    });
    assert!(waiting.is("OK"), "{waiting:?}");
    assert!(stand.provider.faults().connections() <= 4);
    stand.gateway.shutdown().await;
}

#[test]
fn the_limit_is_configured_for_each_account() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let load = |connections: &str| {
        let text = format!(
            "state_dir = \"state\"\n[[account]]\naddress = \"demo@example.org\"\nprovider = \"embedded\"\n{connections}\n"
        );
        std::fs::write(&file, text).unwrap();
        config::load(Some(&file), &Default::default(), &Overrides::default()).map(|c| c.accounts[0].connections)
    };
    assert_eq!(load("").unwrap(), 8);
    assert_eq!(load("connections = 12").unwrap(), 12);
    assert!(load("connections = 2").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sudden_loss_is_told_only_when_a_second_connection_sees_it_too() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    // The provider says that everything went, and that is not so.
    let lie = b"* 1 EXPUNGE\r\n* 1 EXPUNGE\r\n* 1 EXPUNGE\r\n* 1 EXPUNGE\r\n".to_vec();
    stand.fault("IDLE", ImapEffect::Octets(lie));
    let reply = client.idle(Duration::from_millis(1500)).await;
    assert!(reply.is("OK") && !reply.has("EXPUNGE"), "{reply:?}");
    assert_eq!(client.ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies().len(), 4);
    // And now it is so.
    let mut other = direct(&stand.provider).await;
    other.command("SELECT INBOX").await.unwrap().ok().unwrap();
    other.command("STORE 1:3 +FLAGS.SILENT (\\Deleted)").await.unwrap().ok().unwrap();
    other.command("EXPUNGE").await.unwrap().ok().unwrap();
    let began = Instant::now();
    loop {
        let reply = client.command("UID FETCH 1:* (BODY.PEEK[])").await;
        if reply.is("OK") && reply.bodies().len() == 1 {
            break;
        }
        assert!(reply.is("OK") || reply.is("NO [EXPUNGEISSUED]"), "{reply:?}");
        assert!(began.elapsed() < PATIENCE);
        client.idle(Duration::from_millis(50)).await;
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loss_is_confirmed_without_a_free_place_too() {
    let stand = Stand::with(Caps::default(), 3, |_, _| {}).await;
    let mut client = stand.selected("INBOX").await;
    let _holders = (stand.selected("Archive").await, stand.selected("Archive").await);
    let mut other = direct(&stand.provider).await;
    other.command("SELECT INBOX").await.unwrap().ok().unwrap();
    other.command("STORE 1:3 +FLAGS.SILENT (\\Deleted)").await.unwrap().ok().unwrap();
    other.command("EXPUNGE").await.unwrap().ok().unwrap();
    let began = Instant::now();
    let mut expunged = 0;
    while expunged < 3 {
        assert!(began.elapsed() < PATIENCE, "{expunged}");
        let reply = client.idle(Duration::from_millis(50)).await;
        expunged += reply.untagged.iter().filter(|(t, _)| t.ends_with(" EXPUNGE")).count();
    }
    assert_eq!(expunged, 3);
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_is_renewed_and_one_that_the_provider_ends_is_begun_anew() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    let mut passed = stand.selected("Archive").await;
    let faults = stand.provider.faults();
    faults.keep_commands(true);
    let made = faults.connections_made();
    let idles = || faults.commands().iter().filter(|c| c.ends_with(b" IDLE\r\n")).count();
    eventually("IDLE to be renewed", || idles() >= 3).await;
    faults.imap(Some("IDLE"), ImapEffect::EndIdle(Duration::from_millis(150)), None);
    let before = idles();
    eventually("IDLE to be begun anew", || idles() >= before + 4).await;
    told_of_mail(&stand, &mut client, "INBOX", Duration::from_secs(2)).await;
    told_of_mail(&stand, &mut passed, "Archive", Duration::from_secs(2)).await;
    let reply = passed.idle(Duration::from_millis(1000)).await;
    assert!(reply.is("OK"), "{reply:?}");
    assert_eq!(faults.connections_made(), made, "no connection was lost");
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_idle_or_that_ends_it_at_once_is_polled() {
    for ends in [false, true] {
        let caps = Caps { idle: ends, ..Caps::default() };
        let stand = Stand::with(caps, 4, |config, _| config.accounts[0].poll = Duration::from_millis(300)).await;
        if ends {
            stand.provider.faults().imap(Some("IDLE"), ImapEffect::EndIdle(Duration::ZERO), None);
        }
        let mut client = stand.selected("INBOX").await;
        let mut passed = stand.selected("Archive").await;
        stand.provider.faults().keep_commands(true);
        told_of_mail(&stand, &mut client, "INBOX", Duration::from_secs(4)).await;
        told_of_mail(&stand, &mut passed, "Archive", Duration::from_secs(4)).await;
        let commands = stand.provider.faults().commands().len();
        assert!(commands < 200, "a busy loop: {commands}");
        stand.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_connections_are_replaced_after_a_suspend_and_after_a_while() {
    for suspend in [true, false] {
        let stand = Stand::with(Caps::default(), 4, |_, timing| {
            if suspend {
                timing.idle_renew = Duration::from_secs(600);
                timing.unused = Duration::from_secs(600);
            }
        })
        .await;
        let mut client = stand.selected("INBOX").await;
        client.ok("UID FETCH 1:* (BODY.PEEK[])").await;
        let mut passed = stand.selected("Archive").await;
        let mut idling = stand.selected("Archive").await;
        let tag = idling.tag();
        idling.send(format!("{tag} IDLE\r\n").as_bytes()).await;
        assert_eq!(idling.response().await.unwrap().0, "+ idling");
        stand.provider.freeze();
        if suspend {
            stand.timing.clock.advance(Duration::from_secs(3600));
        }
        told_of_mail(&stand, &mut client, "INBOX", Duration::from_secs(5)).await;
        assert_eq!(client.ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies().len(), 5);
        let end = idling.reply(&tag).await;
        assert!(end.bye && end.status.is_none(), "{end:?}");
        let began = Instant::now();
        let end = passed.command("NOOP").await;
        assert!(end.bye && began.elapsed() < stand.timing.answer + Duration::from_secs(2), "{end:?}");
        stand.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_a_provider_that_is_gone_for_a_while() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    let address = stand.provider.imap_addr();
    stand.provider.stop().await;
    for command in ["UID FETCH 1 (BODY.PEEK[])", "UID STORE 1 +FLAGS (\\Seen)", "SELECT INBOX", "LIST \"\" *"] {
        let began = Instant::now();
        let reply = client.command(command).await;
        assert!(reply.is("NO [UNAVAILABLE]"), "{command}: {reply:?}");
        assert!(began.elapsed() < Duration::from_secs(3), "{command}: {:?}", began.elapsed());
    }
    assert!(client.append("INBOX", &message(1)).await.is("NO [UNAVAILABLE]"));
    client.ok("NOOP").await;
    let back = provider(Caps::default(), Some(address)).await;
    back.deliver(USER, message(0));
    let began = Instant::now();
    loop {
        client.until_ok("SELECT INBOX").await;
        if client.ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies().iter().map(|b| unstamped(b)).eq([message(0)]) {
            break;
        }
        assert!(began.elapsed() < PATIENCE);
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_refused_later_is_unavailable_and_makes_no_storm() {
    let stand = Stand::with(Caps::default(), 4, |_, timing| timing.retry_most = Duration::from_secs(2)).await;
    let mut client = stand.selected("INBOX").await;
    let faults = stand.provider.faults();
    faults.reject_auth(true);
    faults.keep_commands(true);
    stand.provider.disconnect(None);
    for _ in 0..40 {
        let reply = client.command("LIST \"\" *").await;
        assert!(reply.is("NO [UNAVAILABLE]"), "{reply:?}");
        let reply = client.command("UID FETCH 1 (BODY.PEEK[])").await;
        assert!(reply.is("NO [UNAVAILABLE]"), "{reply:?}");
    }
    let tries = faults.commands().iter().filter(|c| c.windows(12).any(|w| w == b"AUTHENTICATE")).count();
    assert!((1..=4).contains(&tries), "{tries} logins");
    faults.reject_auth(false);
    client.until_ok("SELECT INBOX").await;
    client.until_ok("UID FETCH 1:* (BODY.PEEK[])").await;
    stand.gateway.shutdown().await;
}
