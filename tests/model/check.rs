//! The check at rest: views, model and provider say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tollgate::demo::client::imap::ImapClient;
use tollgate::lane::stamp::neutralise;

use crate::gate::{self, PATIENCE, USER};
use crate::world::{ARCHIVE, Known, PLACES, World, number_of};

/// A message as one mailbox shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    flags: BTreeSet<String>,
    lane: Option<String>,
    octets: Vec<u8>,
}

type Mailbox = BTreeMap<u32, Shown>;

/// Waits until everything agrees; what has no place in the model gets the one
/// where it is shown.
pub(crate) async fn agree(world: &World) {
    let began = Instant::now();
    loop {
        let found = differences(world).await;
        if found.is_empty() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{} differences: {:#?}", found.len(), &found[..found.len().min(8)]);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Every UID of the people's and the agents' views, with its message.
pub(crate) async fn uids(world: &World) -> Vec<(String, u32, Option<u32>)> {
    let mut out = Vec::new();
    for mut client in [gate::person(&world.gateway).await, gate::agent(&world.gateway).await] {
        for mailbox in PLACES.iter().chain(&["Lanes/All"]) {
            gate::ok(&mut client, &format!("EXAMINE {mailbox}")).await;
            let answer = gate::ok(&mut client, "UID FETCH 1:* (BODY.PEEK[])").await;
            let one = |r: &tollgate::demo::client::imap::Response| {
                ((*mailbox).to_owned(), r.number("UID").unwrap() as u32, number_of(&r.literals[0]))
            };
            out.extend(answer.fetched().map(one));
        }
    }
    out
}

async fn shown(
    world: &World,
    client: &mut ImapClient,
    who: &'static str,
    mailbox: &str,
    notes: &mut Vec<String>,
) -> Mailbox {
    gate::ok(client, &format!("EXAMINE {mailbox}")).await;
    let answer = client.command("UID FETCH 1:* (FLAGS RFC822.SIZE BODY.PEEK[])").await.unwrap();
    let mut out = Mailbox::new();
    for response in answer.fetched().filter(|r| !r.literals.is_empty()) {
        let octets = response.literals[0].clone();
        let uid = response.number("UID").unwrap() as u32;
        world.names(who, mailbox, uid, &octets);
        let flags = response.text.split("FLAGS (").nth(1).unwrap().split(')').next().unwrap();
        let flags = flags.split(' ').filter(|f| !f.is_empty() && *f != "\\Recent" && !f.starts_with("$Tollgate"));
        let flags = flags.map(str::to_owned).collect();
        let lanes = tollgate::mail::header::values(&octets, "X-Tollgate-Lane");
        if lanes.len() > 1 {
            notes.push(format!("{who} {mailbox} {uid} has {} stamps", lanes.len()));
        }
        let lane = lanes.into_iter().next().and_then(|l| String::from_utf8(l).ok());
        let Some(number) = number_of(&octets) else {
            notes.push(format!("{who} {mailbox} {uid} is nobody's"));
            continue;
        };
        if out.insert(number, Shown { flags, lane, octets }).is_some() {
            notes.push(format!("m{number} is twice in {mailbox} of {who}"));
        }
    }
    out
}

async fn differences(world: &World) -> Vec<String> {
    let mut notes = Vec::new();
    let mut views: Vec<(&'static str, BTreeMap<&str, Mailbox>)> = Vec::new();
    for (who, mut client) in
        [("people", gate::person(&world.gateway).await), ("agents", gate::agent(&world.gateway).await)]
    {
        let mut all = BTreeMap::new();
        for mailbox in PLACES.iter().chain(&["Lanes/All"]) {
            all.insert(*mailbox, shown(world, &mut client, who, mailbox, &mut notes).await);
        }
        views.push((who, all));
    }
    let mut state = world.state();
    for (number, known) in state.messages.iter_mut().filter(|(_, m)| m.place.is_none()) {
        learn(*number, known, &views[0].1);
    }
    for (who, all) in &views {
        for (number, known) in &state.messages {
            compare(who, *number, known, all, &mut notes);
        }
        for (mailbox, list) in all {
            let unknown = list.keys().filter(|n| !state.messages.contains_key(n));
            notes.extend(unknown.map(|n| format!("m{n} is gone and {who} see it in {mailbox}")));
        }
    }
    for (mailbox, here) in [("INBOX", false), (ARCHIVE, true)] {
        let truth: BTreeMap<u32, (BTreeSet<String>, Vec<u8>)> = world
            .provider()
            .mailbox(USER, mailbox)
            .into_iter()
            .filter_map(|m| Some((number_of(&m.octets)?, (m.flags, m.octets.to_vec()))))
            .collect();
        let model: BTreeMap<u32, (BTreeSet<String>, Vec<u8>)> = state
            .messages
            .iter()
            .filter(|(_, m)| (m.place.as_deref() == Some(ARCHIVE)) == here)
            .map(|(n, m)| (*n, (m.flags.clone(), m.octets.clone())))
            .collect();
        for n in truth.keys().chain(model.keys()).collect::<BTreeSet<_>>() {
            if truth.get(n) != model.get(n) {
                let flags = |m: Option<&(BTreeSet<String>, Vec<u8>)>| m.map(|(f, o)| (f.clone(), o.len()));
                notes.push(format!(
                    "provider {mailbox} m{n}: {:?}, model {:?}",
                    flags(truth.get(n)),
                    flags(model.get(n))
                ));
            }
        }
    }
    notes
}

fn learn(number: u32, known: &mut Known, views: &BTreeMap<&str, Mailbox>) {
    for place in PLACES {
        if let Some(shown) = views[place].get(&number) {
            known.place = Some(place.to_owned());
            known.stamp = shown.lane.clone();
            known.lane = shown.lane.clone();
        }
    }
}

fn compare(who: &str, number: u32, known: &Known, all: &BTreeMap<&str, Mailbox>, notes: &mut Vec<String>) {
    for (mailbox, list) in all {
        let place = known.place.as_deref();
        let expected = place == Some(*mailbox) || (*mailbox == "Lanes/All" && place != Some(ARCHIVE));
        let renamed = neutralise(&known.octets);
        match (list.get(&number), expected) {
            (None, true) => notes.push(format!("{who} miss m{number} in {mailbox}")),
            (Some(_), false) => notes.push(format!("{who} see m{number} in {mailbox}, it is in {place:?}")),
            (Some(s), true) => {
                if s.flags != known.flags {
                    notes.push(format!("{who} m{number} in {mailbox}: flags {:?}, model {:?}", s.flags, known.flags));
                }
                if s.lane != known.stamp {
                    notes.push(format!("{who} m{number} in {mailbox}: stamp {:?}, model {:?}", s.lane, known.stamp));
                }
                if !s.octets.ends_with(&renamed) || (known.stamp.is_none() && s.octets.len() != renamed.len()) {
                    notes.push(format!("{who} m{number} in {mailbox}: other octets"));
                }
            }
            (None, false) => {}
        }
    }
}
