//! `tollgate explain`: the stored trace of a decision.

use clap::Args;

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, gate};
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
    /// The account of --uid; needed where several are configured
    #[arg(long, value_name = "ADDRESS", requires = "uid")]
    account: Option<String>,
}

pub(super) fn run(globals: &Globals, args: ExplainArgs) -> Outcome {
    let config = globals.load()?;
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
        text.lines().map(super::show::visible).collect::<Vec<_>>().join("\n")
    });
    Ok(())
}
