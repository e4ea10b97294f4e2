//! A provider whose RFC822.SIZE isn't the length of the message, or whose
//! bodies change: the true length is sent, and afterwards all agrees.

use std::time::{Duration, Instant};

use tollgate::account::AccountId;
use tollgate::demo::faults::BodyChange;
use tollgate::gateway::control::{Request, execute};
use tollgate::imap::measured::{Mark, mark_of};
use tollgate::mail::address::Address;
use tollgate::store::{StoreError, read};

use crate::client::Client;
use crate::stand::{PATIENCE, Stand, USER, message, unstamped};

fn mark(stand: &Stand) -> Option<Mark> {
    let account = AccountId::of(&Address::parse(USER).unwrap());
    read::<_, StoreError>(&*stand.gateway.core().store, |r| mark_of(r, &account)).unwrap()
}

/// UID, RFC822.SIZE and BODY[] of every message, asked one after the other
/// and in one command.
async fn sizes(client: &mut Client) -> Vec<(u32, usize, Vec<u8>)> {
    let number = |text: &str, name: &str| -> usize {
        text.split_once(name).unwrap().1.split([' ', ')']).next().unwrap().parse().unwrap()
    };
    let uid = |text: &str| u32::try_from(number(text, "UID ")).unwrap();
    let fetched = |reply: crate::client::Reply| -> Vec<(String, Vec<Vec<u8>>)> {
        reply.untagged.into_iter().filter(|(t, _)| t.contains("FETCH (UID")).collect()
    };
    let alone = fetched(client.ok("UID FETCH 1:* (RFC822.SIZE)").await);
    let both = fetched(client.ok("UID FETCH 1:* (BODYSTRUCTURE RFC822.SIZE BODY.PEEK[])").await);
    assert_eq!(alone.len(), both.len());
    let mut out = Vec::new();
    for ((text, _), (with, octets)) in alone.iter().zip(both) {
        assert_eq!(uid(text), uid(&with));
        assert_eq!(number(&with, "RFC822.SIZE "), octets[0].len(), "one response agrees with itself: {with}");
        out.push((uid(text), number(text, "RFC822.SIZE "), octets[0].clone()));
    }
    out
}

/// The same, once it holds so many messages.
async fn holding(client: &mut Client, messages: usize) -> Vec<(u32, usize, Vec<u8>)> {
    let began = Instant::now();
    loop {
        client.ok("NOOP").await;
        if client.ok("STATUS INBOX (MESSAGES)").await.has(&format!("(MESSAGES {messages})")) {
            client.ok("NOOP").await;
            return sizes(client).await;
        }
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn all_agree(list: &[(u32, usize, Vec<u8>)]) {
    for (uid, size, octets) in list {
        assert_eq!(*size, octets.len(), "{uid}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_that_is_wrong_from_the_start_is_put_right_before_anyone_is_told() {
    for lie in [-7, 5, -100_000] {
        let stand = Stand::new().await;
        let mut client = stand.selected("INBOX").await;
        assert_eq!(mark(&stand), None, "nothing is marked without a reason");
        stand.provider.faults().size_lie_where("number 30", lie);
        stand.provider.deliver(USER, message(30));
        stand.provider.deliver(USER, message(31));
        let list = holding(&mut client, 6).await;
        all_agree(&list);
        assert_eq!(unstamped(&list[4].2), message(30));
        assert_eq!(list.iter().map(|(u, ..)| *u).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6], "no UID was spent");
        let mark = mark(&stand).expect("the account is marked");
        assert_eq!((mark.sizes, mark.bodies, mark.found), (1, 0, message(30).len() as u64), "{lie}");
        stand.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_changes_is_sent_with_its_true_length_and_gets_a_new_uid() {
    for change in [BodyChange::Longer, BodyChange::Shorter] {
        let stand = Stand::new().await;
        let mut client = stand.selected("INBOX").await;
        let before = sizes(&mut client).await;
        all_agree(&before);
        assert_eq!(mark(&stand), None);
        stand.provider.faults().body_changes(Some(change), false);
        let during = sizes(&mut client).await;
        for ((uid, size, octets), (old, told, was)) in during.iter().zip(&before) {
            assert_eq!((uid, size), (old, told), "{change:?}");
            assert_ne!(octets.len(), was.len(), "the true octets are sent");
        }
        let reply = client.ok("NOOP").await;
        assert_eq!(reply.untagged.iter().filter(|(t, _)| t.ends_with(" EXPUNGE")).count(), 4, "{change:?}: {reply:?}");
        let after = sizes(&mut client).await;
        all_agree(&after);
        assert_eq!(after.iter().map(|(u, ..)| *u).collect::<Vec<_>>(), [5, 6, 7, 8], "{change:?}");
        for ((.., now), (.., then)) in after.iter().zip(&during) {
            assert_eq!(now, then, "the new UID names what was sent");
        }
        assert_eq!(mark(&stand).map(|m| (m.sizes, m.bodies)), Some((0, 4)), "{change:?}");
        stand.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_renders_anew_each_time_is_not_followed_for_ever() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    stand.provider.faults().body_changes(Some(BodyChange::Longer), true);
    let mut last = 0;
    for round in 0..8 {
        for (uid, ..) in sizes(&mut client).await {
            last = last.max(uid);
        }
        client.ok("NOOP").await;
        assert!(last <= 4 * 4, "round {round}: {last}");
    }
    assert!(mark(&stand).is_some_and(|m| m.bodies >= 8 * 4));
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mark_outlives_the_gateway_and_is_told_to_whoever_asks() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    let told = || execute(stand.gateway.core(), Request::Lengths);
    assert_eq!(told().await.unwrap()["lengths"].as_array().map(Vec::len), Some(0));
    stand.provider.faults().size_lie_where("number 30", 5);
    stand.provider.deliver(USER, message(30));
    all_agree(&holding(&mut client, 5).await);
    let answer = told().await.unwrap();
    assert_eq!(answer["lengths"][0]["account"], USER);
    assert_eq!(answer["lengths"][0]["mark"]["sizes"], 1, "{answer}");
    assert_eq!(serde_json::from_value::<Mark>(answer["lengths"][0]["mark"].clone()).ok(), mark(&stand));
    stand.gateway.shutdown().await;
}
