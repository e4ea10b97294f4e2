//! `tollgate backfill`: mail from before Tollgate into lanes, and whom the
//! person wrote to before.

use clap::Args;
use serde_json::Value;

use super::exit::Outcome;
use super::{Globals, gate, show};
use crate::gateway::control::Request;

/// What to look at.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true)))]
pub(super) struct BackfillArgs {
    /// How many of the newest messages in INBOX
    #[arg(long, group = "what", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    last: Option<u32>,
    /// Read the headers of Sent (the newest 10,000) for whom you wrote to and
    /// answered, so that who isn't there counts as a stranger. What agents
    /// wrote doesn't count; refused where a key could file or flag. It happens
    /// by itself when the first agent's key is made
    #[arg(long, group = "what")]
    sent: bool,
    /// Only print what would go where
    #[arg(long, conflicts_with = "sent")]
    dry_run: bool,
    /// The account's address; needed where several are configured
    #[arg(long, value_name = "ADDRESS")]
    account: Option<String>,
}

pub(super) fn run(globals: &Globals, args: BackfillArgs) -> Outcome {
    let config = globals.load()?;
    let account = super::account_or_only(&config, args.account)?;
    let Some(last) = args.last else {
        let answer = gate::ask(config, Request::SentRead { account })?;
        super::print(globals, &answer, sent);
        return Ok(());
    };
    let answer = gate::ask(config, Request::Backfill { account, last, dry_run: args.dry_run })?;
    super::print(globals, &answer, lines);
    Ok(())
}

/// What Sent told.
fn sent(answer: &Value) -> String {
    let text = |name: &str| show::text(&answer[name]);
    if answer["mailbox"].is_null() {
        return "the provider has no Sent mailbox: nothing was read".to_owned();
    }
    let strangers = match answer["strangers_are_absent"] == Value::Bool(true) {
        true => "who isn't among them counts as a stranger",
        false => "too few to call anybody a stranger",
    };
    format!(
        "{}: {} messages read, {} of them left out; {} people you wrote to; {strangers}",
        text("mailbox"),
        text("read"),
        text("left_out"),
        text("correspondents")
    )
}

/// Where each message goes, newest last.
fn lines(answer: &Value) -> String {
    let messages = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    if messages.is_empty() {
        return "nothing to do: every one of these messages has its lane".to_owned();
    }
    let row = |m: &Value| ["uid", "lane", "mailbox", "subject"].map(|name| show::text(&m[name])).to_vec();
    let rows: Vec<Vec<String>> = messages.iter().map(row).collect();
    show::table(&["UID", "LANE", "MAILBOX", "SUBJECT"], &rows)
}
