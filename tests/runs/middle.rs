//! A machine in the middle between the gateway and its provider that answers
//! in another manner what the provider answered well.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// How long the middle waits for another command before it goes on.
const QUIET: Duration = Duration::from_millis(10);

/// What it does to the answers of `UID FETCH`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Manner {
    #[default]
    Plain,
    /// The last message first.
    Backwards,
    /// Every second message after the others.
    EvenLast,
    /// A command is completed only after the next one is answered.
    CompletedLate,
    /// The next command is answered before this one.
    NextFirst,
    /// UID stands last in each response.
    UidLast,
    /// Nothing is said of these.
    Silent(BTreeSet<u32>),
    /// These went while the command ran: Dovecot's way to say so.
    Hollow(BTreeSet<u32>),
    /// These are answered hollow among others, and well when asked for alone.
    HollowAmongOthers(BTreeSet<u32>),
    /// A command that names these is refused at that point.
    Refused(BTreeSet<u32>),
    /// The connection ends at this message, once, after so many octets of it.
    DropAt(u32, usize),
}

#[derive(Clone, Default)]
pub(crate) struct Middle(Arc<Mutex<Manner>>);

impl Middle {
    pub(crate) fn set(&self, manner: Manner) {
        *self.0.lock().unwrap() = manner;
    }

    fn get(&self) -> Manner {
        self.0.lock().unwrap().clone()
    }

    /// Listens before `provider`; the port.
    pub(crate) fn start(&self, provider: SocketAddr) -> u16 {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let listener = TcpListener::from_std(listener).unwrap();
        let middle = self.clone();
        tokio::spawn(async move {
            while let Ok((ours, _)) = listener.accept().await {
                let theirs = TcpStream::connect(provider).await.unwrap();
                tokio::spawn(middle.clone().between(ours, theirs));
            }
        });
        port
    }

    async fn between(self, ours: TcpStream, theirs: TcpStream) {
        let (mut from_gateway, to_gateway) = ours.into_split();
        let (from_provider, mut to_provider) = theirs.into_split();
        let fetches = Arc::new(Mutex::new(BTreeSet::new()));
        let noted = fetches.clone();
        let asking = async move {
            let (mut buffer, mut line) = ([0; 4096], Vec::new());
            while let Ok(n @ 1..) = from_gateway.read(&mut buffer).await {
                for b in &buffer[..n] {
                    line.push(*b);
                    if line.ends_with(b"\r\n") {
                        let text = String::from_utf8_lossy(&line).into_owned();
                        // What the watching connection asks is left alone.
                        if text.contains(" UID FETCH ") && !text.contains("FLAGS") {
                            noted.lock().unwrap().insert(text.split(' ').next().unwrap().to_owned());
                        }
                        line.clear();
                    }
                }
                if to_provider.write_all(&buffer[..n]).await.is_err() {
                    return;
                }
            }
        };
        let answering = self.answers(from_provider, to_gateway, fetches);
        tokio::select! { () = asking => {}, () = answering => {} }
    }

    async fn answers(
        &self,
        mut provider: OwnedReadHalf,
        mut gateway: OwnedWriteHalf,
        fetches: Arc<Mutex<BTreeSet<String>>>,
    ) {
        let (mut buffer, mut batch) = (Vec::new(), Vec::new());
        // A command's answers and its completion that wait for the next's.
        let mut waiting: Option<(Vec<Vec<u8>>, Vec<u8>)> = None;
        loop {
            let Some(response) = take(&mut buffer) else {
                let read = provider.read_buf(&mut buffer);
                let read = match waiting {
                    None => read.await,
                    Some(_) => match tokio::time::timeout(QUIET, read).await {
                        Ok(read) => read,
                        Err(_) => {
                            let (answers, end) = waiting.take().unwrap();
                            let _ = gateway.write_all(&[answers.concat(), end].concat()).await;
                            continue;
                        }
                    },
                };
                if !matches!(read, Ok(1..)) {
                    return;
                }
                continue;
            };
            if response.starts_with(b"* ") && uid_of(&response).is_some() {
                batch.push(response);
                continue;
            }
            let tag = String::from_utf8_lossy(&response).split(' ').next().unwrap().to_owned();
            if !fetches.lock().unwrap().remove(&tag) {
                // Data of other commands comes before what ends them.
                let all = [batch.concat(), response].concat();
                batch.clear();
                if gateway.write_all(&all).await.is_err() {
                    return;
                }
                continue;
            }
            let manner = self.get();
            let answers = std::mem::take(&mut batch);
            let out = match &manner {
                Manner::CompletedLate => match waiting.replace((Vec::new(), response)) {
                    None => answers.concat(),
                    Some((_, end)) => [answers.concat(), end].concat(),
                },
                Manner::NextFirst => match waiting.take() {
                    None => {
                        waiting = Some((answers, response));
                        Vec::new()
                    }
                    Some((first, end)) => [answers.concat(), first.concat(), end, response].concat(),
                },
                Manner::DropAt(uid, octets) => match answers.iter().position(|a| uid_of(a) == Some(*uid)) {
                    None => [answers.concat(), response].concat(),
                    Some(at) => {
                        self.set(Manner::Plain);
                        let cut = &answers[at][..(*octets).min(answers[at].len())];
                        let _ = gateway.write_all(&[&answers[..at].concat(), cut].concat()).await;
                        return;
                    }
                },
                other => rewritten(other, answers, response, &tag),
            };
            if gateway.write_all(&out).await.is_err() {
                return;
            }
        }
    }
}

/// The answers of one command in that manner.
fn rewritten(manner: &Manner, mut answers: Vec<Vec<u8>>, end: Vec<u8>, tag: &str) -> Vec<u8> {
    let among = answers.len() > 1;
    let roll_call =
        answers.iter().all(|a| String::from_utf8_lossy(a).ends_with(&format!("(UID {})\r\n", uid_of(a).unwrap())));
    let names = |a: &[u8], uids: &BTreeSet<u32>| uid_of(a).is_some_and(|uid| uids.contains(&uid));
    match manner {
        Manner::Plain | Manner::CompletedLate | Manner::NextFirst | Manner::DropAt(..) => {}
        Manner::Backwards => answers.reverse(),
        Manner::EvenLast => answers.sort_by_key(|a| uid_of(a).unwrap().is_multiple_of(2)),
        Manner::UidLast => {
            for a in &mut answers {
                let uid = format!("UID {}", uid_of(a).unwrap());
                let text = String::from_utf8_lossy(a).into_owned();
                if let Some((start, rest)) = text.split_once(&format!("{uid} ")) {
                    *a = format!("{start}{} {uid})\r\n", rest.strip_suffix(")\r\n").unwrap()).into_bytes();
                }
            }
        }
        Manner::Silent(uids) => answers.retain(|a| !names(a, uids)),
        Manner::Hollow(uids) if roll_call => answers.retain(|a| !names(a, uids)),
        Manner::HollowAmongOthers(_) if roll_call || !among => {}
        Manner::Hollow(uids) | Manner::HollowAmongOthers(uids) => {
            let before = answers.clone();
            for a in answers.iter_mut().filter(|a| names(a, uids)) {
                *a = hollow(a);
            }
            if before != answers {
                let end = format!("{tag} OK [EXPUNGEISSUED] Some messages were already expunged.\r\n").into_bytes();
                return [answers.concat(), end].concat();
            }
        }
        Manner::Refused(_) if roll_call => {}
        Manner::Refused(uids) => {
            if let Some(at) = answers.iter().position(|a| names(a, uids)) {
                answers.truncate(at);
                return [answers.concat(), format!("{tag} NO can't be read\r\n").into_bytes()].concat();
            }
        }
    }
    [answers.concat(), end].concat()
}

/// How Dovecot answers for a message that another session expunged.
fn hollow(response: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(response);
    let (start, rest) = text.split_once(&format!("UID {} ", uid_of(response).unwrap())).unwrap();
    let uid = format!("UID {}", uid_of(response).unwrap());
    let item = rest.split(" {").next().unwrap().split(" (").next().unwrap();
    let value = match item {
        "ENVELOPE" => "(NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL)",
        "BODYSTRUCTURE" => "(\"text\" \"plain\" NIL NIL NIL \"7bit\" 0 0 NIL NIL NIL NIL)",
        _ => "NIL",
    };
    format!("{start}{uid} {item} {value})\r\n").into_bytes()
}

/// Takes one response with its literals.
fn take(buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut from = 0;
    loop {
        let end = from + buffer[from..].windows(2).position(|w| w == b"\r\n")? + 2;
        let line = &buffer[from..end - 2];
        let announced = line.ends_with(b"}").then(|| line.rsplitn(2, |b| *b == b'{').next());
        match announced.flatten().and_then(|n| String::from_utf8_lossy(&n[..n.len() - 1]).parse::<usize>().ok()) {
            None => return Some(buffer.drain(..end).collect()),
            Some(n) if buffer.len() < end + n => return None,
            Some(n) => from = end + n,
        }
    }
}

/// The UID of a FETCH response.
fn uid_of(response: &[u8]) -> Option<u32> {
    let line = response.split(|b| *b == b'\r').next()?;
    let text = String::from_utf8_lossy(line);
    let (_, rest) = text.split_once(" FETCH (")?;
    let (_, rest) = rest.split_once("UID ")?;
    rest.split([' ', ')']).next()?.parse().ok()
}
