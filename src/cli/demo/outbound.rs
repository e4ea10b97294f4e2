//! Steps about mail that goes out.

use std::time::Duration;

use super::Seen;
use super::stage::{Stage, must, wait_for, why};
use crate::account::demo;
use crate::demo::client::imap::quoted;
use crate::demo::provider::Accepted;
use crate::floor::submission::State;
use crate::outbox::HoldId;

/// How long the provider may wait for an approved message.
const SENT_WITHIN: Duration = Duration::from_secs(5);
/// How long a notice may take.
const NOTICE_WITHIN: Duration = Duration::from_secs(3);

const PERSON_TO: [&str; 1] = ["camille.laurent@example.net"];
const PERSON_MAIL: &[u8] = b"From: Robin Demo <demo@example.org>\r\n\
To: Camille Laurent <camille.laurent@example.net>\r\n\
Subject: Stand plan   \r\n\
Date: Thu, 1 Jan 2026 00:00:00 +0000\r\n\
Message-ID: <self-check-2@example.org>\r\n\
\r\n\
.\r\n\
..two dots, blanks at the end:  \t \r\n\
\r\n";

/// Whom the agent writes to.
pub(super) const AGENT_TO: [&str; 2] = ["priya.raman@example.com", "Order.Desk@example.net"];
/// What the agent writes.
pub(super) const AGENT_MAIL: &[u8] = b"From: Robin Demo <demo@example.org>\r\n\
To: Priya Raman <priya.raman@example.com>,\r\n\
\tOrder Desk <Order.Desk@example.net>\r\n\
Subject: Re: A question about your oak tables\r\n\
Date: Thu, 1 Jan 2026 00:00:00 +0000\r\n\
Message-ID: <self-check-3@example.org>\r\n\
In-Reply-To: <self-check-1@example.com>\r\n\
MIME-Version: 1.0\r\n\
Content-Type: text/plain; charset=us-ascii\r\n\
\r\n\
Yes, we build them round.\r\n\
.\r\n\
...and with a dot at a line's start, and blanks at its end. \t\r\n";

fn taken(stage: &Stage, octets: &[u8]) -> Result<Vec<Accepted>, String> {
    Ok(stage.provider()?.accepted().into_iter().filter(|a| a.octets == octets).collect())
}

fn paths_fit(accepted: &Accepted, from: &str, to: &[&str]) -> Result<(), String> {
    let mut got: Vec<&str> = accepted.forward_paths.iter().map(String::as_str).collect();
    let mut wanted = to.to_vec();
    got.sort_unstable();
    wanted.sort_unstable();
    must(got == wanted && accepted.reverse_path == from, || {
        format!("the provider was given {} to {got:?}", accepted.reverse_path)
    })
}

/// A person's submission is at the provider when its reply comes.
pub(super) async fn person_sends_at_once(stage: &Stage) -> Seen {
    let mut smtp = stage.smtp(demo::PERSON_KEY).await?;
    let reply = smtp.submit(demo::ADDRESS, &PERSON_TO, PERSON_MAIL).await.map_err(why)?;
    must(reply.code() == 250, || format!("refused: {}", reply.text()))?;
    let taken = taken(stage, PERSON_MAIL)?;
    let [one] = taken.as_slice() else { return Err(format!("the provider has it {} times", taken.len())) };
    paths_fit(one, demo::ADDRESS, &PERSON_TO)?;
    Ok(format!("the provider took all {} octets before the reply: {}", PERSON_MAIL.len(), reply.text()))
}

/// An agent's submission gets a 250 that says it is held, and stays here.
pub(super) async fn agent_is_held(stage: &mut Stage) -> Seen {
    let before = stage.provider()?.accepted().len();
    let mut smtp = stage.smtp(demo::AGENT_KEY).await?;
    let reply = smtp.submit(demo::ADDRESS, &AGENT_TO, AGENT_MAIL).await.map_err(why)?;
    let text = reply.text();
    must(reply.code() == 250 && text.contains("held"), || format!("answered {text}"))?;
    let id = text.split_whitespace().filter_map(|word| HoldId::parse(word.trim_matches(['<', '>', '.']))).next_back();
    stage.hold = Some(id.ok_or_else(|| format!("no id in {text}"))?);
    let state = stage.hold()?.state;
    must(state == State::Held, || format!("the state is {state:?}"))?;
    let after = stage.provider()?.accepted().len();
    must(after == before, || "the provider got something".to_owned())?;
    Ok(text)
}

/// The notice is in a person's INBOX; neither an agent nor the provider has
/// the link anywhere.
pub(super) async fn notice_for_people_only(stage: &Stage) -> Seen {
    let link = stage.link()?;
    let mut person = stage.imap(demo::PERSON_KEY).await?;
    let started = std::time::Instant::now();
    loop {
        person.command("EXAMINE INBOX").await.map_err(why)?.ok().map_err(why)?;
        let answer = person.command("UID FETCH 1:* (BODY.PEEK[])").await.map_err(why)?.ok().map_err(why)?;
        if answer.fetched().flat_map(|r| &r.literals).any(|octets| holds(octets, &link)) {
            break;
        }
        must(started.elapsed() < NOTICE_WITHIN, || "no notice with the link in the person's INBOX".to_owned())?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (mailboxes, messages) = agent_sees_none(stage, &stage.web.origin()).await?;
    let provider = stage.provider()?;
    for name in provider.mailboxes(demo::ADDRESS) {
        let clean = provider.mailbox(demo::ADDRESS, &name).iter().all(|m| !holds(&m.octets, &link));
        must(clean, || format!("the link reached {name} at the provider"))?;
    }
    Ok(format!("shown to the person; in none of {messages} messages of {mailboxes} mailboxes that the agent can read"))
}

/// Reads everything that the agent's key can read; fails where `text` is in
/// it. Answers how many mailboxes and messages it read.
async fn agent_sees_none(stage: &Stage, text: &str) -> Result<(usize, usize), String> {
    let mut agent = stage.imap(demo::AGENT_KEY).await?;
    let mut messages = 0;
    let mut mailboxes = 0;
    for name in agent.command("LIST \"\" *").await.map_err(why)?.ok().map_err(why)?.mailboxes() {
        let selected = agent.command(&format!("EXAMINE {}", quoted(&name))).await.map_err(why)?;
        if !selected.is_ok() {
            continue;
        }
        mailboxes += 1;
        let answer = agent.command("UID FETCH 1:* (BODY.PEEK[])").await.map_err(why)?.ok().map_err(why)?;
        for octets in answer.fetched().flat_map(|r| &r.literals) {
            messages += 1;
            must(!holds(octets, text), || format!("the agent reads a link in {name}"))?;
        }
    }
    must(messages > 0, || "the agent can read nothing at all".to_owned())?;
    Ok((mailboxes, messages))
}

fn holds(octets: &[u8], text: &str) -> bool {
    memchr::memmem::find(octets, text.as_bytes()).is_some()
}

/// After the approval the provider has the submitted octets, once, for the
/// submitted recipients.
pub(super) async fn exact_octets_sent(stage: &Stage) -> Seen {
    let provider = stage.provider()?;
    let about_it = |a: &Accepted| holds(&a.octets, "self-check-3@example.org");
    wait_for(SENT_WITHIN, || provider.accepted().iter().any(about_it).then_some(()))
        .await
        .ok_or("nothing reached the provider")?;
    let sent: Vec<Accepted> = provider.accepted().into_iter().filter(about_it).collect();
    let [one] = sent.as_slice() else { return Err(format!("sent {} times", sent.len())) };
    must(one.octets == AGENT_MAIL, || "the provider got other octets than were submitted".to_owned())?;
    paths_fit(one, demo::ADDRESS, &AGENT_TO)?;
    let state = wait_for(SENT_WITHIN, || stage.hold().ok().map(|h| h.state).filter(|s| *s == State::Sent)).await;
    must(state.is_some(), || "the hold is not marked as sent".to_owned())?;
    Ok(format!("{} octets, {} recipients, byte for byte", one.octets.len(), one.forward_paths.len()))
}
