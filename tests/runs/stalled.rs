//! Clients that ask for much and take nothing.

use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tollgate::demo::provider::Caps;

use crate::client::Client;
use crate::stand::{PATIENCE, Stand, USER, eventually};

/// More than the buffers of two connections hold.
const MAILS: usize = 12;
const MAIL: usize = 2 * 1024 * 1024;

async fn filled(connections: usize, write: Duration, contested: Duration) -> Stand {
    let stand = Stand::with(Caps::default(), connections, |_, timing| {
        timing.write = write;
        timing.write_contested = contested;
        timing.queue = Duration::from_secs(5);
    })
    .await;
    let line = "text of the message, and more of it, and more\r\n";
    let body = line.repeat(MAIL / line.len());
    for n in 0..MAILS {
        stand.provider.deliver(USER, format!("Subject: large {n}\r\n\r\n{body}").into_bytes());
    }
    let mut client = stand.selected("INBOX").await;
    let began = Instant::now();
    while !client.ok("STATUS INBOX (MESSAGES)").await.has(&format!("(MESSAGES {})", MAILS + 4)) {
        assert!(began.elapsed() < PATIENCE);
        client.ok("NOOP").await;
    }
    stand
}

/// A client that asks for everything and takes nothing.
async fn deaf(stand: &Stand) -> Client {
    let mut client = stand.selected("INBOX").await;
    client.send(b"deaf UID FETCH 1:* (BODY.PEEK[])\r\n").await;
    client
}

/// Reads until the command is completed or the connection ends; which it was.
async fn completed(mut client: Client) -> bool {
    let mut all = client.buffer.clone();
    let reading = async {
        while !all.windows(8).any(|w| w == b"\ndeaf OK") {
            // The last octets of what was searched may begin the words.
            all.drain(..all.len().saturating_sub(8));
            if client.stream.read_buf(&mut all).await.unwrap_or(0) == 0 {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("an end of the command or the session")
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_take_nothing_hold_up_nobody() {
    let stand = filled(3, Duration::from_secs(600), Duration::from_millis(500)).await;
    let mut idle = stand.selected("INBOX").await;
    let (one, two) = (deaf(&stand).await, deaf(&stand).await);
    eventually("both to hold a connection", || stand.provider.faults().connections() == 3).await;
    let mut other = stand.selected("INBOX").await;
    let began = Instant::now();
    other.ok("UID FETCH 1:4 (BODY.PEEK[])").await;
    other.ok("UID STORE 1 +FLAGS (\\Flagged)").await;
    idle.ok("NOOP").await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    // Only as many were given up as were in the way.
    let (one, two) = tokio::join!(completed(one), completed(two));
    assert!(!(one && two), "one of them was given up");
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_is_given_up_in_the_end() {
    let stand = filled(8, Duration::from_millis(1500), Duration::from_secs(600)).await;
    let client = deaf(&stand).await;
    eventually("it to be served", || stand.provider.faults().connections() == 2).await;
    eventually("its connection to end", || stand.provider.faults().connections() == 1).await;
    assert!(!completed(client).await);
    let mut other = stand.selected("INBOX").await;
    other.ok("UID FETCH 1:4 (BODY.PEEK[])").await;
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_is_waited_for() {
    let stand = filled(8, Duration::from_millis(1500), Duration::from_millis(300)).await;
    let mut client = deaf(&stand).await;
    // It takes a little, now and then, and nobody else wants the connection.
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let mut some = vec![0; 1024 * 1024];
        client.stream.read_exact(&mut some).await.unwrap();
        client.buffer.extend(some);
    }
    assert!(client.reply("deaf").await.is("OK"));
    stand.gateway.shutdown().await;
}
