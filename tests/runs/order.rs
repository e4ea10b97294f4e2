//! Responses come in the view's order and are about what is there, whatever
//! the provider does. Seen over Dovecot: messages that another session
//! expunged were answered in the middle of a run as if they were there and
//! empty; one command a message had hidden it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tollgate::config::Provider;
use tollgate::demo::provider::Caps;

use crate::client::{Client, Reply};
use crate::middle::{Manner, Middle};
use crate::stand::{Stand, USER, eventually, message};

/// More than two runs.
const MESSAGES: usize = 140;
const ITEMS: [&str; 5] = ["BODY.PEEK[]", "BODY.PEEK[HEADER]", "BODY.PEEK[]<0.700>", "ENVELOPE", "BODYSTRUCTURE"];

/// Text and literals of a response.
type Response = (String, Vec<Vec<u8>>);

struct Line {
    stand: Stand,
    middle: Middle,
    client: Client,
    /// What one message answers when nothing else is asked.
    alone: BTreeMap<(u32, &'static str), Response>,
    uids: Vec<u32>,
}

fn uid_of(text: &str) -> u32 {
    text.split_once("(UID ").unwrap().1.split([' ', ')']).next().unwrap().parse().unwrap()
}

fn answers(reply: &Reply) -> Vec<(u32, String, Vec<Vec<u8>>)> {
    let fetched = reply.untagged.iter().filter(|(t, _)| t.contains(" FETCH (UID "));
    fetched.map(|(t, l)| (uid_of(t), t.split_once(" FETCH ").unwrap().1.to_owned(), l.clone())).collect()
}

impl Line {
    /// A view whose order is not the provider's, behind a middle.
    async fn new() -> Line {
        let middle = Middle::default();
        let set = middle.clone();
        let stand = Stand::with(Caps::default(), 4, move |config, timing| {
            let Provider::Network(network) = &mut config.accounts[0].provider else { panic!("a provider") };
            network.imap.port = set.start(([127, 0, 0, 1], network.imap.port).into());
            timing.answer = Duration::from_secs(5);
        })
        .await;
        let mut client = stand.selected("INBOX").await;
        for n in 4..MESSAGES {
            stand.provider.deliver(USER, message(n % 40));
        }
        let began = std::time::Instant::now();
        while !client.ok("STATUS INBOX (MESSAGES)").await.has(&format!("(MESSAGES {MESSAGES})")) {
            assert!(began.elapsed() < Duration::from_secs(30));
            client.ok("NOOP").await;
        }
        // What is moved to where it is gets a new place in the view.
        client.ok("UID MOVE 10:20,30,50 INBOX").await;
        client.ok("UID MOVE 5 INBOX").await;
        client.ok("NOOP").await;
        let uids: Vec<u32> = answers(&client.ok("UID FETCH 1:* (UID)").await).iter().map(|(u, ..)| *u).collect();
        assert_eq!(uids.len(), MESSAGES);
        let mut alone = BTreeMap::new();
        for item in ITEMS {
            for uid in &uids {
                let reply = client.ok(&format!("UID FETCH {uid} ({item})")).await;
                let [(_, text, literals)] = &answers(&reply)[..] else { panic!("{item}: {reply:?}") };
                alone.insert((*uid, item), (text.clone(), literals.clone()));
            }
        }
        Line { stand, middle, client, alone, uids }
    }

    /// The provider's UID of a message: its place in the order of arrival.
    fn upstream(&self, uid: u32) -> u32 {
        let moved: Vec<u32> = (10..=20).chain([30, 50, 5]).collect();
        match usize::try_from(uid).unwrap() {
            n if n <= MESSAGES => uid,
            n => moved[n - MESSAGES - 1],
        }
    }

    fn check(&self, reply: &Reply, item: &'static str, missing: &BTreeSet<u32>, what: &Manner) {
        let got = answers(reply);
        let there: Vec<u32> = self.uids.iter().copied().filter(|u| !missing.contains(&self.upstream(*u))).collect();
        let uids: Vec<u32> = got.iter().map(|(u, ..)| *u).collect();
        assert_eq!(uids, there, "{item}, {what:?}: {:?}", reply.status);
        for (uid, text, literals) in got {
            let (alone, octets) = &self.alone[&(uid, item)];
            assert_eq!((&text, &literals), (alone, octets), "{item}, {what:?}, {uid}");
        }
        let expected = if missing.is_empty() { "OK" } else { "NO [EXPUNGEISSUED]" };
        assert!(reply.is(expected), "{item}, {what:?}: {:?}", reply.status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_ascend_and_are_whole_whatever_the_provider_does() {
    let mut line = Line::new().await;
    let some: BTreeSet<u32> = [1, 12, 20, 40, 63, 64, 65, 66, 128, 139, 140].into();
    let none = BTreeSet::new();
    for (manner, missing) in [
        (Manner::Plain, &none),
        (Manner::Backwards, &none),
        (Manner::EvenLast, &none),
        (Manner::CompletedLate, &none),
        (Manner::NextFirst, &none),
        (Manner::UidLast, &none),
        (Manner::Silent(some.clone()), &some),
        (Manner::Hollow(some.clone()), &some),
        (Manner::HollowAmongOthers(some.clone()), &none),
        (Manner::Refused(some.clone()), &some),
        (Manner::Silent((1..=140).collect()), &(1..=140).collect()),
    ] {
        for item in ITEMS {
            line.middle.set(manner.clone());
            let reply = line.client.command(&format!("UID FETCH 1:* ({item})")).await;
            line.check(&reply, item, missing, &manner);
            line.middle.set(Manner::Plain);
        }
    }
    line.stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_ends_inside_a_run_leaves_whole_responses_and_the_next_fetch_works() {
    let mut line = Line::new().await;
    for (uid, octets) in [(1, 0), (70, 0), (70, 20), (70, 90), (130, 300), (140, usize::MAX)] {
        let manner = Manner::DropAt(uid, octets);
        line.middle.set(manner.clone());
        let reply = line.client.command("UID FETCH 1:* (BODY.PEEK[])").await;
        let got: Vec<u32> = answers(&reply).iter().map(|(u, ..)| *u).collect();
        assert_eq!(got, line.uids[..got.len()], "{manner:?}");
        for (uid, text, literals) in answers(&reply) {
            assert_eq!((text, literals), line.alone[&(uid, "BODY.PEEK[]")].clone(), "{manner:?}");
        }
        match &reply.status {
            Some(status) => assert!(status.starts_with("NO [UNAVAILABLE]"), "{manner:?}: {status}"),
            None => {
                line.client = line.stand.selected("INBOX").await;
            }
        }
        let reply = line.client.until_ok("UID FETCH 1:* (BODY.PEEK[])").await;
        line.check(&reply, "BODY.PEEK[]", &BTreeSet::new(), &manner);
    }
    eventually("connections to be few", || line.stand.provider.faults().connections() <= 4).await;
    line.stand.gateway.shutdown().await;
}
