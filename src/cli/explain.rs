//! `tollgate explain`: the stored trace of a decision.

use clap::Args;
use serde_json::Value;

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, gate, show};
use crate::gateway::control::{Request, Which};

/// Which decision.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true)))]
pub(super) struct ExplainArgs {
    /// The decision's id, as X-Tollgate-Decision has it
    #[arg(group = "which")]
    decision: Option<String>,
    /// The newest decision of this Message-ID
    #[arg(long, group = "which", value_name = "ID")]
    message_id: Option<String>,
    /// The message with this UID, in --mailbox (takes a running gateway)
    #[arg(long, group = "which", value_name = "UID", requires = "mailbox")]
    uid: Option<u32>,
    /// The mailbox of --uid, such as Lanes/Queue
    #[arg(long, value_name = "MAILBOX", requires = "uid")]
    mailbox: Option<String>,
    /// List the decisions to review, the newest first: a sure scorer was
    /// against what is known of the sender, or a guard took its lane away
    #[arg(long, group = "which")]
    canary: bool,
    /// How many --canary lists
    #[arg(long, value_name = "N", default_value_t = 50, requires = "canary")]
    last: usize,
    /// The account of --uid, needed where several are configured, or of --canary
    #[arg(long, value_name = "ADDRESS")]
    account: Option<String>,
}

pub(super) fn run(globals: &Globals, args: ExplainArgs) -> Outcome {
    let config = globals.load()?;
    if args.canary {
        let answer = gate::ask(config, Request::Canary { account: args.account, last: args.last })?;
        super::print(globals, &answer, review);
        return Ok(());
    }
    let which = match (args.decision, args.message_id, args.uid, args.mailbox) {
        (Some(id), None, None, _) => Which::Decision(id),
        (None, Some(id), None, _) => Which::MessageId(id),
        (None, None, Some(uid), Some(mailbox)) => {
            Which::Place { account: super::account_or_only(&config, args.account)?, mailbox, uid }
        }
        // The argument group asks for exactly one.
        _ => return Err(Failure::new(Exit::Usage, "usage", "a decision id, --message-id, or --mailbox with --uid")),
    };
    let answer = gate::ask(config, Request::Explain { which })?;
    super::print(globals, &answer, |v| {
        // Our own lines, which quote what others wrote.
        let text = v["text"].as_str().unwrap_or_default();
        text.lines().map(show::visible).collect::<Vec<_>>().join("\n")
    });
    Ok(())
}

/// Decisions to review.
fn review(answer: &Value) -> String {
    let list = answer["canary"].as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() {
        return "nothing to review: no sure scorer was against what is known".to_owned();
    }
    let row = |d: &Value| {
        let time = d["time"].as_i64().map_or_else(|| "-".to_owned(), show::time);
        let confidence = d["confidence"].as_f64().map_or_else(|| "-".to_owned(), |c| format!("{c:.2}"));
        let text = |name: &str| show::text(&d[name]);
        vec![time, text("lane"), text("canary"), confidence, text("from"), text("decision"), text("reason")]
    };
    let rows: Vec<Vec<String>> = list.iter().map(row).collect();
    let table = show::table(&["TIME", "LANE", "CANARY", "SURE", "FROM", "DECISION", "REASON"], &rows);
    format!("{} to review\n{table}", show::text(&answer["found"]))
}
