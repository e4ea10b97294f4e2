//! Steps about mail that comes in.

use std::time::{Duration, Instant};

use super::Seen;
use super::stage::{Place, Stage, must, why};
use crate::account::demo;
use crate::demo::client::imap::{ImapClient, quoted};
use crate::lane::LANES;
use crate::lane::stamp::{NAMESPACE, OUTSIDE};
use crate::mail::header;

/// How long the message may take to its lane before the check gives up.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);
const MESSAGE_ID: &str = "self-check-1@example.com";
/// Longest line of a stamp.
const MAX_STAMP_LINE: usize = 78;

/// A question of a stranger, with stamps that the stranger made: they claim
/// the loudest lane.
const MESSAGE: &[u8] = b"X-Tollgate-Lane: push\r\n\
x-TOLLGATE-scores: conf=1.00 trust=1.00\r\n rev=1.00 urg=1.00\r\n\
Received: from a by b; Thu, 1 Jan 2026 00:00:00 +0000\r\n\
From: Priya Raman <priya.raman@example.com>\r\n\
To: demo@example.org\r\n\
Subject: A question about your oak tables\r\n\
Date: Thu, 1 Jan 2026 00:00:00 +0000\r\n\
Message-ID: <self-check-1@example.com>\r\n\
X-Tollgate-Reason: the sender says so\r\n\
MIME-Version: 1.0\r\n\
Content-Type: text/plain; charset=utf-8\r\n\
Content-Transfer-Encoding: 8bit\r\n\
\r\n\
Do you build them round, too? There is no hurry. Gr\xc3\xbc\xc3\x9fe\r\n\
X-Tollgate-Lane: this line is text\r\n\
.\r\n";

/// A message reaches the provider and then exactly one lane.
pub(super) async fn arrives(stage: &mut Stage) -> Seen {
    let mut person = stage.imap(demo::PERSON_KEY).await?;
    let provider = stage.provider()?;
    let uid = provider.deliver(demo::ADDRESS, MESSAGE);
    must(uid != 0, || "the provider could not deliver".to_owned())?;
    let started = Instant::now();
    loop {
        let found = lanes_with(&mut person).await?;
        if let [(mailbox, uid)] = found.as_slice() {
            let since = started.elapsed().as_millis();
            let place = Place { mailbox: mailbox.clone(), uid: *uid, shown: Vec::new() };
            let seen = format!("delivered, and in {mailbox} {since} ms later");
            stage.place = Some(place);
            return Ok(seen);
        }
        must(found.is_empty(), || format!("the message is in several lanes: {found:?}"))?;
        must(started.elapsed() < ARRIVES_WITHIN, || "the message came into no lane".to_owned())?;
    }
}

/// The lane mailboxes that show the message.
async fn lanes_with(client: &mut ImapClient) -> Result<Vec<(String, u32)>, String> {
    let mut found = Vec::new();
    for lane in LANES {
        let mailbox = lane_mailbox(lane.name());
        client.command(&format!("EXAMINE {}", quoted(&mailbox))).await.map_err(why)?.ok().map_err(why)?;
        let search = format!("UID SEARCH HEADER Message-ID {}", quoted(MESSAGE_ID));
        let answer = client.command(&search).await.map_err(why)?.ok().map_err(why)?;
        found.extend(answer.found().into_iter().map(|uid| (mailbox.clone(), uid)));
    }
    Ok(found)
}

/// The mailbox of a lane where each lane has its own.
fn lane_mailbox(lane: &str) -> String {
    let mut letters = lane.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    format!("Lanes/{}{}", first.map(String::from).unwrap_or_default(), letters.as_str())
}

/// UID FETCH in the lane: size, whole, header and partial agree, and the
/// stamps name that lane.
pub(super) async fn read_in_its_lane(stage: &mut Stage) -> Seen {
    let place = stage.place()?.clone();
    let mut person = stage.imap(demo::PERSON_KEY).await?;
    person.command(&format!("EXAMINE {}", quoted(&place.mailbox))).await.map_err(why)?.ok().map_err(why)?;
    let fetch = format!("UID FETCH {} (UID RFC822.SIZE BODY.PEEK[])", place.uid);
    let answer = person.command(&fetch).await.map_err(why)?.ok().map_err(why)?;
    let response = answer.fetched().next().ok_or("UID FETCH answered nothing")?;
    let shown = response.literals.first().ok_or("UID FETCH gave no literal")?.clone();
    let size = response.number("RFC822.SIZE").ok_or("UID FETCH told no size")?;
    must(size == shown.len() as u64, || format!("RFC822.SIZE is {size}, but {} octets came", shown.len()))?;
    must(response.number("UID") == Some(place.uid.into()), || "UID FETCH told another UID".to_owned())?;

    let fetch = format!("UID FETCH {} (BODY.PEEK[HEADER] BODY.PEEK[TEXT] BODY.PEEK[]<7.100>)", place.uid);
    let answer = person.command(&fetch).await.map_err(why)?.ok().map_err(why)?;
    let literals: Vec<&Vec<u8>> = answer.fetched().flat_map(|r| &r.literals).collect();
    let [head, text, partial] = literals.as_slice() else { return Err("a section is missing".to_owned()) };
    must([head.as_slice(), text].concat() == shown, || "header and text are not the whole".to_owned())?;
    must(shown.get(7..107) == Some(partial.as_slice()), || "a partial differs from the whole".to_owned())?;

    let lane = header::values(&shown, "X-Tollgate-Lane");
    let [lane] = lane.as_slice() else { return Err(format!("{} lane stamps", lane.len())) };
    let lane = String::from_utf8_lossy(lane).into_owned();
    must(lane_mailbox(&lane) == place.mailbox, || format!("the stamp says {lane}, the mailbox is {}", place.mailbox))?;
    for name in ["X-Tollgate-Scores", "X-Tollgate-Reason", "X-Tollgate-Decision"] {
        must(header::values(&shown, name).len() == 1, || format!("{name} is not there once"))?;
    }
    let seen = format!("lane {lane}, {size} octets told and read, stamped");
    stage.place = Some(Place { shown, ..place });
    Ok(seen)
}

/// Below the stamps stand the delivered octets, only that fields which
/// pretended to be stamps have other names of the same length.
pub(super) async fn forged_stamp_is_none(stage: &Stage) -> Seen {
    let shown = &stage.place()?.shown;
    let at = shown.len().checked_sub(MESSAGE.len()).ok_or("the message was not read whole")?;
    let (stamps, below) = shown.split_at(at);
    for line in stamps.split_inclusive(|b| *b == b'\n') {
        let fits = line.len() <= MAX_STAMP_LINE + 2 && line.is_ascii() && line.ends_with(b"\r\n");
        must(fits, || format!("a stamp line is odd: {}", String::from_utf8_lossy(line)))?;
    }
    let (expected, renamed) = neutralised();
    must(below == expected, || "what stands below the stamps is not what was delivered".to_owned())?;
    must(!shown.starts_with(b"X-Tollgate-Lane: push"), || "the forged lane was believed".to_owned())?;
    Ok(format!("{renamed} forged fields renamed in place, every other octet as delivered"))
}

/// The message with its forged fields renamed, and how many they are.
fn neutralised() -> (Vec<u8>, usize) {
    let mut octets = MESSAGE.to_vec();
    let mut renamed = 0;
    for field in header::split(MESSAGE).fields {
        let name = &mut octets[field.name];
        if name.len() >= NAMESPACE.len() && name[..NAMESPACE.len()].eq_ignore_ascii_case(NAMESPACE) {
            name[..OUTSIDE.len()].copy_from_slice(OUTSIDE);
            renamed += 1;
        }
    }
    (octets, renamed)
}

/// STORE of \Deleted and EXPUNGE by the agent's key are refused and change
/// nothing.
pub(super) async fn agent_cannot_delete(stage: &Stage) -> Seen {
    let mailbox = &stage.place()?.mailbox;
    let mut agent = stage.imap(demo::AGENT_KEY).await?;
    agent.command(&format!("SELECT {}", quoted(mailbox))).await.map_err(why)?.ok().map_err(why)?;
    let search = format!("UID SEARCH HEADER Message-ID {}", quoted(MESSAGE_ID));
    let found = agent.command(&search).await.map_err(why)?.ok().map_err(why)?.found();
    let uid = *found.first().ok_or("the agent doesn't see the message")?;
    let tries = [
        format!("UID STORE {uid} +FLAGS (\\Deleted)"),
        format!("UID STORE {uid} +FLAGS.SILENT (\\Deleted)"),
        "STORE 1 FLAGS (\\Seen \\Deleted)".to_owned(),
        format!("UID EXPUNGE {uid}"),
        "EXPUNGE".to_owned(),
    ];
    for command in &tries {
        let status = agent.command(command).await.map_err(why)?.status;
        must(status.starts_with("NO [NOPERM]"), || format!("{command} was answered {status}"))?;
    }
    let inbox = stage.provider()?.mailbox(demo::ADDRESS, "INBOX");
    must(inbox.iter().any(|m| *m.octets == *MESSAGE), || "the message is gone at the provider".to_owned())?;
    must(inbox.iter().all(|m| !m.flags.contains("\\Deleted")), || "something is flagged \\Deleted".to_owned())?;
    Ok(format!("{} ways tried, each NO [NOPERM]", tries.len()))
}
