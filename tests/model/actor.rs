//! Who works on the account: people, an agent, another client of the provider.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tollgate::account::demo::PROVIDER_PASSWORD;
use tollgate::config::{Endpoint, TlsMode};
use tollgate::demo::client::imap::{Answer, ImapClient};

use crate::gate::{self, PATIENCE, USER};
use crate::world::{ARCHIVE, Known, PLACES, Random, World, number_of};

/// Above this many messages of one actor, it removes more than it adds.
const PLENTY: usize = 12;

/// A session with a mail client that believes what it is told.
struct Client {
    imap: ImapClient,
    selected: String,
    /// UIDs in sequence order; none where it was told of EXISTS only.
    uids: Vec<Option<u32>>,
}

impl Client {
    fn new(imap: ImapClient) -> Client {
        Client { imap, selected: String::new(), uids: Vec::new() }
    }

    async fn run(&mut self, command: &str) -> Answer {
        let answer = self.imap.command(command).await.unwrap_or_else(|e| panic!("{command}: {e}"));
        let verb = command.trim_start_matches("UID ").split(' ').next().unwrap_or_default();
        for response in &answer.untagged {
            let mut words = response.text.split(' ');
            let (Some(Ok(n)), Some(word)) = (words.next().map(str::parse::<usize>), words.next()) else { continue };
            match word {
                "EXPUNGE" => {
                    // The provider may, in a UID command of a mailbox of its own.
                    let may = self.selected == ARCHIVE || !["FETCH", "STORE", "SEARCH"].contains(&verb);
                    assert!(may, "EXPUNGE while answering {command}");
                    assert!(n >= 1 && n <= self.uids.len(), "EXPUNGE {n} of {}", self.uids.len());
                    self.uids.remove(n - 1);
                }
                "EXISTS" => {
                    assert!(n >= self.uids.len() || verb == "SELECT", "EXISTS {n} after {}", self.uids.len());
                    self.uids.resize(n, None);
                }
                "FETCH" => {
                    let uid = response.number("UID").map(|u| u as u32);
                    let known = self.uids.get_mut(n - 1).unwrap_or_else(|| panic!("FETCH of {n} after {command}"));
                    if let (Some(told), Some(known)) = (uid, *known) {
                        assert_eq!(told, known, "UID of {n} after {command}");
                    }
                    *known = uid.or(*known);
                }
                _ => {}
            }
        }
        answer
    }

    async fn ok(&mut self, command: &str) -> Answer {
        let answer = self.run(command).await;
        assert!(answer.is_ok(), "{} in {}: {}", command, self.selected, answer.status);
        answer
    }

    async fn select(&mut self, mailbox: &str) {
        self.uids.clear();
        self.selected = mailbox.to_owned();
        self.ok(&format!("SELECT {mailbox}")).await;
    }

    /// The UID of a message in the selected mailbox, waiting for it.
    async fn find(&mut self, number: u32) -> u32 {
        let began = Instant::now();
        loop {
            let found = self.ok(&format!("UID SEARCH HEADER Message-ID <m{number}@")).await.found();
            if let [uid] = found[..] {
                return uid;
            }
            assert!(found.is_empty(), "m{number} is in {} as {found:?}", self.selected);
            assert!(began.elapsed() < PATIENCE, "m{number} does not come to {}", self.selected);
            self.ok("NOOP").await;
        }
    }

    /// Compares what it was told with what there is.
    async fn agrees(&mut self) {
        if self.selected.is_empty() {
            return;
        }
        // Others are at work: a look during which nothing left. Of a message
        // that left a UID FETCH says nothing; the NOOP behind it tells.
        let (answer, told) = loop {
            self.ok("NOOP").await;
            let told = self.uids.len();
            let answer = self.ok("UID FETCH 1:* (UID)").await;
            let known = self.uids.clone();
            let after = self.ok("NOOP").await;
            if !after.untagged.iter().any(|r| r.text.ends_with(" EXPUNGE")) {
                assert!(known.len() >= told, "nothing leaves during a FETCH");
                break (answer, known);
            }
        };
        let seq = |text: &str| text.split(' ').next().and_then(|n| n.parse::<usize>().ok());
        let there: BTreeMap<Option<usize>, Option<u64>> =
            answer.fetched().map(|r| (seq(&r.text), r.number("UID"))).collect();
        let there: Vec<Option<u32>> = there.into_values().map(|u| u.map(|u| u as u32)).collect();
        assert!(there.iter().all(Option::is_some) && there.is_sorted(), "UIDs ascend: {there:?}");
        // Mail that came during the look is told of and not yet shown.
        let told = told.into_iter().filter(Option::is_some).collect::<Vec<_>>();
        assert_eq!(there, told, "what the session was told of {}", self.selected);
    }

    /// Reads all of a mailbox; every UID must name what it always named.
    async fn read(&mut self, world: &World, audience: &'static str) {
        let answer = self.run("UID FETCH 1:* (FLAGS RFC822.SIZE BODY.PEEK[])").await;
        // Others may have removed some meanwhile.
        assert!(answer.is_ok() || answer.status.starts_with("NO [EXPUNGEISSUED]"), "{}", answer.status);
        for response in answer.fetched().filter(|r| !r.literals.is_empty()) {
            let uid = response.number("UID").unwrap() as u32;
            assert_eq!(response.number("RFC822.SIZE"), Some(response.literals[0].len() as u64), "size of {uid}");
            world.names(audience, &self.selected, uid, &response.literals[0]);
        }
    }
}

/// A person's session.
pub(crate) struct Person {
    world: Arc<World>,
    owner: usize,
    random: Random,
    client: Client,
}

impl Person {
    pub(crate) async fn new(world: &Arc<World>, owner: usize, random: Random) -> Person {
        let client = Client::new(gate::person(&world.gateway).await);
        Person { world: world.clone(), owner, random, client }
    }

    pub(crate) async fn agrees(&mut self) {
        self.client.agrees().await;
    }

    fn mine(&self) -> Vec<(u32, Known)> {
        let state = self.world.state();
        let mine = state.messages.iter().filter(|(_, m)| m.owner == self.owner);
        mine.map(|(n, m)| (*n, m.clone())).collect()
    }

    pub(crate) async fn work(&mut self, steps: usize) {
        for _ in 0..steps {
            let mine = self.mine();
            let add = mine.is_empty() || (mine.len() < PLENTY && self.random.below(4) == 0);
            if add {
                self.add().await;
                continue;
            }
            let (number, known) = self.random.pick(&mine).clone();
            match known.place.as_deref() {
                None => self.meet(number).await,
                Some(ARCHIVE) => self.bring_back(number, known).await,
                Some(_) => self.change(number, known).await,
            }
        }
        if self.random.below(3) == 0 {
            self.client.read(&self.world, "people").await;
        }
    }

    /// New mail arrives, or the client puts its own into a view.
    async fn add(&mut self) {
        let (number, octets) = self.world.compose(&mut self.random);
        let place = if self.random.below(3) > 0 { None } else { Some(*self.random.pick(&PLACES)) };
        let mut flags = std::collections::BTreeSet::new();
        match place {
            None => {
                self.world.provider().deliver(USER, &octets);
                self.world.count("arrivals");
            }
            Some(place) => {
                flags.insert("\\Seen".to_owned());
                // The client's own sequence list hears of it at the next look.
                let answer = self.client.imap.append(place, "\\Seen", &octets).await.unwrap();
                assert!(answer.status.starts_with("OK [APPENDUID "), "m{number} into {place}: {}", answer.status);
                self.client.select(place).await;
                self.world.count("appends");
            }
        }
        let place = place.map(str::to_owned);
        let known = Known { owner: self.owner, place, lane: None, stamp: None, flags, octets };
        self.world.state().messages.insert(number, known);
    }

    /// Learns where new mail went.
    async fn meet(&mut self, number: u32) {
        self.client.select("Lanes/All").await;
        let uid = self.client.find(number).await;
        let answer = self.client.ok(&format!("UID FETCH {uid} (BODY.PEEK[])")).await;
        let octets = answer.fetched().find(|r| !r.literals.is_empty()).map(|r| r.literals[0].clone()).unwrap();
        assert_eq!(number_of(&octets), Some(number));
        let lanes = tollgate::mail::header::values(&octets, "X-Tollgate-Lane");
        assert_eq!(lanes.len(), 1, "one stamp, ours");
        let lane = String::from_utf8(lanes[0].clone()).unwrap();
        let mut state = self.world.state();
        let known = state.messages.get_mut(&number).unwrap();
        known.place = Some(place_of(&lane));
        known.stamp = Some(lane.clone());
        known.lane = Some(lane);
    }

    /// Selects a mailbox that shows the message; its UID there.
    async fn open(&mut self, number: u32, known: &Known) -> u32 {
        let place = known.place.clone().unwrap();
        let place = if self.random.below(3) == 0 { "Lanes/All".to_owned() } else { place };
        self.client.select(&place).await;
        self.client.find(number).await
    }

    async fn change(&mut self, number: u32, mut known: Known) {
        let uid = self.open(number, &known).await;
        let crowded = self.mine().len() >= PLENTY;
        match if crowded { 6 } else { self.random.below(8) } {
            0..=2 => self.flag(uid, &mut known).await,
            3 => {
                let to = *self.random.pick(&PLACES);
                self.client.ok(&format!("UID MOVE {uid} {to}")).await;
                self.world.count("moves between lanes");
                let same = self.client.selected == to;
                if !same {
                    corrected(&mut known, to);
                }
            }
            4 => {
                let to = *self.random.pick(&PLACES);
                if self.client.selected != to {
                    self.client.ok(&format!("UID COPY {uid} {to}")).await;
                    self.client.ok(&format!("UID STORE {uid} +FLAGS.SILENT (\\Deleted)")).await;
                    self.client.ok(&format!("UID EXPUNGE {uid}")).await;
                    self.world.count("copies with deletion");
                    corrected(&mut known, to);
                }
            }
            5 => {
                let lane = *self.random.pick(&["Push", "Meeting", "Queue"]);
                self.client.ok(&format!("UID STORE {uid} +FLAGS ($Tollgate{lane})")).await;
                self.world.count("keywords");
                if known.lane.as_deref() != Some(&lane.to_ascii_lowercase()) {
                    corrected(&mut known, &format!("Lanes/{lane}"));
                }
            }
            6 => {
                self.client.ok(&format!("UID STORE {uid} +FLAGS (\\Deleted)")).await;
                self.client.ok(&format!("UID EXPUNGE {uid}")).await;
                self.world.count("deletions");
                self.world.state().messages.remove(&number);
                return;
            }
            _ => {
                self.client.ok(&format!("UID MOVE {uid} {ARCHIVE}")).await;
                self.world.count("moves out");
                known = Known { place: Some(ARCHIVE.to_owned()), lane: None, stamp: None, ..known };
            }
        }
        self.world.state().messages.insert(number, known);
    }

    async fn flag(&mut self, uid: u32, known: &mut Known) {
        let flag = *self.random.pick(&["\\Seen", "\\Flagged", "\\Answered", "$Blue", "$Green"]);
        let silent = if self.random.below(2) == 0 { ".SILENT" } else { "" };
        self.world.count("flags");
        if self.random.below(2) == 0 {
            self.client.ok(&format!("UID STORE {uid} +FLAGS{silent} ({flag})")).await;
            known.flags.insert(flag.to_owned());
        } else {
            self.client.ok(&format!("UID STORE {uid} -FLAGS{silent} ({flag})")).await;
            known.flags.remove(flag);
        }
    }

    /// From a passed-through mailbox into a view: unstamped, in no lane.
    async fn bring_back(&mut self, number: u32, known: Known) {
        self.client.select(ARCHIVE).await;
        let uid = self.client.find(number).await;
        let to = *self.random.pick(&PLACES);
        self.client.ok(&format!("UID MOVE {uid} {to}")).await;
        self.world.count("moves in");
        self.world.state().messages.insert(number, Known { place: Some(to.to_owned()), ..known });
    }
}

fn place_of(lane: &str) -> String {
    let (first, rest) = lane.split_at(1);
    format!("Lanes/{}{rest}", first.to_ascii_uppercase())
}

/// A person put the message there. INBOX is no lane in this preset.
fn corrected(known: &mut Known, to: &str) {
    known.place = Some(to.to_owned());
    if let Some(lane) = to.strip_prefix("Lanes/") {
        let lane = lane.to_ascii_lowercase();
        known.lane = Some(lane.clone());
        known.stamp = known.stamp.take().map(|_| lane);
    }
}

/// An agent's session: it reads, and all else is refused.
pub(crate) struct Agent {
    world: Arc<World>,
    random: Random,
    client: Client,
}

impl Agent {
    pub(crate) async fn new(world: &Arc<World>, random: Random) -> Agent {
        Agent { world: world.clone(), random, client: Client::new(gate::agent(&world.gateway).await) }
    }

    pub(crate) async fn work(&mut self, steps: usize) {
        for _ in 0..steps {
            let mailbox = if self.random.below(2) == 0 { "Lanes/All" } else { *self.random.pick(&PLACES) };
            self.client.select(mailbox).await;
            self.client.read(&self.world, "agents").await;
            let commands =
                ["STORE 1:* +FLAGS (\\Deleted)", "EXPUNGE", "UID MOVE 1:* Archive", "UID COPY 1:* Lanes/Silent"];
            let answer = self.client.run(commands[self.random.below(4) as usize]).await;
            assert!(answer.status.starts_with("NO [NOPERM]"), "{}", answer.status);
            self.client.agrees().await;
            self.world.count("looks of an agent");
        }
    }
}

/// Another client that is signed in at the provider itself.
pub(crate) struct Stranger {
    world: Arc<World>,
    owner: usize,
    random: Random,
    imap: ImapClient,
}

impl Stranger {
    pub(crate) async fn new(world: &Arc<World>, owner: usize, random: Random) -> Stranger {
        let port = world.provider().imap_addr().port();
        let endpoint = Endpoint { host: "127.0.0.1".into(), port, tls: TlsMode::None, ca: None };
        let imap = ImapClient::sign_in(&endpoint, USER, PROVIDER_PASSWORD).await.unwrap();
        Stranger { world: world.clone(), owner, random, imap }
    }

    pub(crate) async fn work(&mut self, steps: usize) {
        for _ in 0..steps {
            let mine: Vec<u32> = {
                let state = self.world.state();
                state.messages.iter().filter(|(_, m)| m.owner == self.owner).map(|(n, _)| *n).collect()
            };
            self.world.count("acts of another client");
            if mine.is_empty() || (mine.len() < PLENTY && self.random.below(3) == 0) {
                let (number, octets) = self.world.compose(&mut self.random);
                self.world.provider().deliver(USER, &octets);
                let known = Known {
                    owner: self.owner,
                    place: None,
                    lane: None,
                    stamp: None,
                    flags: Default::default(),
                    octets,
                };
                self.world.state().messages.insert(number, known);
                continue;
            }
            let number = *self.random.pick(&mine);
            gate::ok(&mut self.imap, "SELECT INBOX").await;
            let query = format!("UID SEARCH HEADER Message-ID <m{number}@");
            let [uid] = gate::ok(&mut self.imap, &query).await.found()[..] else { panic!("m{number} is not there") };
            if mine.len() >= PLENTY || self.random.below(4) == 0 {
                gate::ok(&mut self.imap, &format!("UID STORE {uid} +FLAGS (\\Deleted)")).await;
                gate::ok(&mut self.imap, &format!("UID EXPUNGE {uid}")).await;
                self.world.state().messages.remove(&number);
            } else {
                let flag = *self.random.pick(&["\\Seen", "\\Flagged", "$Theirs"]);
                gate::ok(&mut self.imap, &format!("UID STORE {uid} +FLAGS ({flag})")).await;
                self.world.state().messages.get_mut(&number).unwrap().flags.insert(flag.to_owned());
            }
        }
    }
}
