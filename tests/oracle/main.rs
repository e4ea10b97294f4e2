//! What must hold of every message in every view, over messages that break
//! what programs take for granted and over random ones: the oracle that
//! `tollgate doctor` asks with finds nothing, and a UID names the same octets
//! after a new session, lane changes elsewhere and a restart.

#[path = "../views/gate.rs"]
mod gate;
#[path = "../views/strange.rs"]
mod strange;

mod random;

use std::time::Duration;

use tollgate::cli::doctor::oracle::{Limits, Oracle};
use tollgate::demo::client::imap::ImapClient;
use tollgate::gateway::Gateway;
use tollgate::lane::stamp::neutralise;
use tollgate::mail::header;

use gate::{USER, agent, ok, person, provider, section, start, uids, until};
use random::Random;
use strange::{forged, strange};

/// Sets the seed of a run; a failure prints it.
const SEED: &str = "TOLLGATE_ORACLE_SEED";
/// Random messages of a run.
const RANDOM_MESSAGES: usize = 30;

fn everything() -> Limits {
    Limits { messages: usize::MAX, octets: u64::MAX, time: Duration::from_secs(600) }
}

fn seed() -> u64 {
    let set = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
    set.unwrap_or_else(|| std::process::id().into())
}

#[track_caller]
fn sound(oracle: &Oracle, when: &str, seed: u64) {
    let findings = oracle.findings();
    assert!(findings.is_empty(), "{when}, {SEED}={seed}: {} findings: {findings:#?}", oracle.count());
}

/// Every mailbox that shows messages, with how many were checked.
async fn look(oracle: &mut Oracle, client: &mut ImapClient, mailboxes: &[&str]) -> usize {
    oracle.look_again();
    for mailbox in mailboxes {
        assert!(oracle.mailbox(client, mailbox).await.unwrap(), "{mailbox} opens");
    }
    oracle.looked().messages
}

async fn compare(oracle: &mut Oracle, client: &mut ImapClient, mailboxes: &[&str]) -> usize {
    oracle.look_again();
    for mailbox in mailboxes {
        oracle.compare(client, mailbox).await.unwrap();
    }
    oracle.looked().compared
}

/// Has the corpus in INBOX's lanes and in Archive; how many messages it is.
async fn deliver(gateway: &Gateway, corpus: &[Vec<u8>]) {
    for octets in corpus {
        provider(gateway).deliver(USER, octets);
        provider(gateway).put(USER, "Archive", octets, &[]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_of_every_message_agrees_with_itself_for_good() {
    let seed = seed();
    let mut random = Random::new(seed);
    let mut corpus = strange();
    corpus.extend((0..RANDOM_MESSAGES).map(|_| random.message()));
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "folders").await;
    deliver(&gateway, &corpus).await;
    let mut client = person(&gateway).await;
    until(&mut client, "Lanes/All", corpus.len()).await;
    // Some a client put there itself: INBOX shows them, unstamped.
    for octets in corpus.iter().filter(|o| !o.is_empty()).step_by(7) {
        client.append("INBOX", "", octets).await.unwrap().ok().unwrap();
    }
    let put = corpus.iter().filter(|o| !o.is_empty()).step_by(7).count();
    until(&mut client, "INBOX", put).await;

    let lanes = ["Lanes/Push", "Lanes/Meeting", "Lanes/Queue", "Lanes/Info", "Lanes/Silent"];
    let shown = ["INBOX", "Archive", lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]];
    let mut oracle = Oracle::new(everything());
    let looked = look(&mut oracle, &mut client, &shown).await;
    sound(&oracle, "people's views", seed);
    assert_eq!(looked, 2 * corpus.len() + put, "each message in one lane, and in Archive");
    assert_eq!(oracle.looked().too_large, 0);
    let mut agents = Oracle::new(Limits { messages: 12, ..everything() });
    look(&mut agents, &mut agent(&gateway).await, &["Lanes/All", "Archive"]).await;
    sound(&agents, "an agent's views", seed);

    // Lane changes: of the last message of each lane; those that it is
    // compared with stay where they are.
    let mut moved = 0;
    for lane in lanes {
        ok(&mut client, &format!("SELECT {lane}")).await;
        let Some(last) = uids(&mut client).await.last().copied() else { continue };
        let to = if lane == "Lanes/Info" { "Lanes/Queue" } else { "Lanes/Info" };
        ok(&mut client, &format!("UID MOVE {last} {to}")).await;
        moved += 1;
    }
    assert!(moved > 0);
    let mut client = person(&gateway).await;
    let compared = compare(&mut oracle, &mut client, &shown).await;
    sound(&oracle, "after lane changes elsewhere, in a new session", seed);
    // A message that was moved into a lane and on again was compared nowhere.
    assert!(looked - compared <= moved, "{compared} of {looked} were still there, {moved} had moved");
    look(&mut oracle, &mut client, &["Lanes/Info", "Lanes/Queue"]).await;
    sound(&oracle, "lanes with new members", seed);
    gateway.shutdown().await;

    let gateway = start(folder.path(), false, "folders").await;
    let mut client = person(&gateway).await;
    ok(&mut client, "SELECT Lanes/All").await;
    let again = compare(&mut oracle, &mut client, &shown).await;
    sound(&oracle, "after a restart", seed);
    assert!(again >= compared, "{again} of {compared} compared after the restart");
    gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_a_forged_stamp_is_taken_for_ours() {
    let corpus = forged();
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(folder.path(), false, "shadow").await;
    deliver(&gateway, &corpus).await;
    let mut client = person(&gateway).await;
    until(&mut client, "INBOX", corpus.len()).await;
    for (uid, sent) in uids(&mut client).await.into_iter().zip(&corpus) {
        let shown = section(&mut client, uid, "BODY.PEEK[]").await;
        let renamed = neutralise(sent);
        assert_eq!(renamed.len(), sent.len());
        assert!(shown.ends_with(&renamed), "{}", String::from_utf8_lossy(&shown));
        let text = String::from_utf8_lossy(sent);
        // By any reading: with blanks before the colon, and by substring.
        let lanes = header::values(&shown, "X-Tollgate-Lane");
        assert_eq!(lanes.len(), 1, "{text}");
        let head = section(&mut client, uid, "BODY.PEEK[HEADER]").await;
        let ours = shown.len() - renamed.len();
        let forged_part = String::from_utf8_lossy(&head[ours..]).to_ascii_lowercase();
        let claims = forged_part.lines().filter(|l| l.starts_with("x-tollgate-"));
        assert_eq!(claims.count(), 0, "{text}: {forged_part}");
    }
    let mut oracle = Oracle::new(everything());
    assert_eq!(look(&mut oracle, &mut client, &["INBOX", "Archive"]).await, 2 * corpus.len());
    sound(&oracle, "forged stamps", 0);
    gateway.shutdown().await;
}
