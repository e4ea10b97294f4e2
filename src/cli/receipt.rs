//! `tollgate receipt`: export, and verify without any gateway.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::exit::{Exit, Failure, Outcome};
use super::{Globals, gate, show};
use crate::floor::action::Action;
use crate::floor::identity::{VerifyingKey, from_text, key_id, to_text};
use crate::floor::ledger::{self, Entry};
use crate::floor::passkey::ApproverKey;
use crate::floor::receipt::{Expect, MAX_RECEIPT, Receipt, ReceiptError, Verified};
use crate::gateway::control::Request;
use crate::gateway::core::PUBLIC_KEY_FILE;

/// Octets hashed at a time.
const CHUNK: usize = 64 * 1024;
/// Most octets of a file of public keys.
const MAX_KEYS: u64 = 64 * 1024;
/// Longest line of a ledger file.
const MAX_ENTRY: u64 = 1024 * 1024;

const VERIFY_HELP: &str = "\
Exit codes: 0 verified, 10 schema, 11 action, 12 payload (message, recipients or another bound value differs), \
13 approver, 14 expired, 15 spent, 16 signature, 17 chain, 65 something can't be read as what it should be, \
66 a file can't be read. With --json, `error.name` says the same in a word.

Without --approver-key the result is the gateway's word only: its signature says that the approver's proof came \
with this payload. With it, the approver's passkey is checked independently: that it signed this very payload, at \
the page's origin, with its person present and verified. Export the key when you register the passkey and keep it \
away from the gateway. An approval by PIN or link leaves no such proof.";

/// Verbs of receipts.
#[derive(Debug, Subcommand)]
pub(super) enum ReceiptCommand {
    /// Check a receipt against a message, offline, with the public key alone
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Print the receipt of an approved hold
    Export {
        /// The hold's id
        hold: String,
    },
    /// Print the public key that this gateway's receipts verify under
    Key,
}

/// What is checked.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The receipt (JSON); `-`: standard input
    receipt: PathBuf,
    /// The message whose octets it must be for
    #[arg(long, value_name = "FILE.eml")]
    message: PathBuf,
    /// A file of public keys, one a line, as `receipt key` prints them
    /// [default: identity.pub in the configured state folder]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The action that it must be for
    #[arg(long, value_enum, default_value_t = ActionArg::SendEmail)]
    action: ActionArg,
    /// The account that it must be for
    #[arg(long, value_name = "ADDRESS")]
    account: Option<String>,
    /// Who must have approved
    #[arg(long, value_name = "NAME")]
    approver: Option<String>,
    /// A recipient that must be bound (repeat for each: these and no others)
    #[arg(long, value_name = "ADDRESS")]
    to: Vec<String>,
    /// Fail when it had expired by this time (seconds since 1970, or `now`)
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// A file of passkeys' public keys, one a line, as `approver export` prints
    /// them: one of them must have signed this approval
    #[arg(long, value_name = "FILE")]
    approver_key: Option<PathBuf>,
    /// Also check it against a ledger, as `ledger list` prints it
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

/// The actions of the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum ActionArg {
    /// Sending a message
    SendEmail,
    /// Forwarding a mailbox message to outside
    ForwardExternal,
    /// Deleting for good
    DeletePermanent,
}

impl From<ActionArg> for Action {
    fn from(action: ActionArg) -> Action {
        match action {
            ActionArg::SendEmail => Action::SendEmail,
            ActionArg::ForwardExternal => Action::ForwardExternal,
            ActionArg::DeletePermanent => Action::DeletePermanent,
        }
    }
}

pub(super) fn run(globals: &Globals, command: ReceiptCommand) -> Outcome {
    match command {
        ReceiptCommand::Verify(args) => verify(globals, &args),
        ReceiptCommand::Export { hold } => {
            let receipt = gate::ask(globals.load()?, Request::ReceiptExport { hold })?;
            // A receipt is JSON for people too.
            super::exit::say(&receipt.to_string());
            Ok(())
        }
        ReceiptCommand::Key => {
            let path = globals.load()?.state_dir.join(PUBLIC_KEY_FILE);
            for key in keys(&path)? {
                super::print(globals, &json!({ "key": to_text(&key), "key_id": key_id(&key) }), |v| {
                    show::text(&v["key"])
                });
            }
            Ok(())
        }
    }
}

fn verify(globals: &Globals, args: &VerifyArgs) -> Outcome {
    let key_file = match &args.key {
        Some(file) => file.clone(),
        None => globals.load()?.state_dir.join(PUBLIC_KEY_FILE),
    };
    let keys = keys(&key_file)?;
    let receipt = Receipt::parse(&read(&args.receipt, MAX_RECEIPT as u64 + 1)?).map_err(|e| failed(&e))?;
    let message = digest(&args.message)?;
    let at = args.at.as_deref().map(time).transpose()?;
    let expect = Expect {
        message: Some(message),
        account: args.account.as_deref(),
        approver: args.approver.as_deref(),
        at,
        ..Expect::new(args.action.into())
    };
    let verified = receipt.verify(&keys, &expect).map_err(|e| failed(&e))?;
    let passkey = match &args.approver_key {
        Some(file) => Some(receipt.check_approver(&approver_keys(file)?).map_err(|e| failed(&e))?.id().to_string()),
        None => None,
    };
    recipients(&verified, &args.to)?;
    if let Some(file) = &args.ledger {
        let entries = entries(file)?;
        ledger::verify(&entries, None).map_err(|e| Failure::new(Exit::Chain, "chain", e))?;
        let entry = entries.iter().find(|e| e.number == receipt.ledger_head.number);
        receipt.check_ledger(entry).map_err(|e| failed(&e))?;
    }
    let report = report(&verified, args.ledger.is_some(), passkey, receipt.assertion.is_some());
    super::print(globals, &report, said);
    Ok(())
}

fn recipients(verified: &Verified, wanted: &[String]) -> Outcome {
    if wanted.is_empty() {
        return Ok(());
    }
    let bound: Vec<&str> = verified.payload().envelope.forward_paths.iter().map(|p| p.as_str()).collect();
    let mut wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    wanted.dedup();
    if bound != wanted {
        let message = format!("payload: the receipt is for {}", bound.join(", "));
        return Err(Failure::new(Exit::ReceiptPayload, "payload", message));
    }
    Ok(())
}

fn report(verified: &Verified, chain: bool, passkey: Option<String>, assertion: bool) -> serde_json::Value {
    let p = verified.payload();
    json!({
        "verified": true,
        "word": if passkey.is_some() { "approver" } else { "gateway" },
        "passkey": passkey,
        "assertion": assertion,
        "action": p.action.name(),
        "account": p.account,
        "hold": p.hold_id,
        "from": p.envelope.reverse_path,
        "to": p.envelope.forward_paths,
        "approver": p.approver,
        "method": p.method,
        "time": p.time,
        "expiry": p.expiry,
        "gateway": p.gateway_id,
        "key_id": verified.key_id(),
        "payload_hash": verified.payload_hash().to_string(),
        "ledger_head": verified.ledger_head().to_string(),
        "chain_checked": chain,
    })
}

fn said(v: &serde_json::Value) -> String {
    let time = |name: &str| v[name].as_i64().map_or_else(|| "-".to_owned(), show::time);
    let chain = match v["chain_checked"].as_bool() {
        Some(true) => "found in the given ledger",
        Some(false) | None => "not checked (give --ledger)",
    };
    let note = match (v["word"].as_str(), v["assertion"].as_bool()) {
        (Some("approver"), _) => "the approver's own passkey signed this payload, as a key that you gave says",
        (_, Some(true)) => "the gateway's word only; a passkey's signature is in the receipt (give --approver-key)",
        _ => "the gateway's word only; no proof of the approver's own is in the receipt",
    };
    format!(
        "verified: these octets were approved as {}\n\
         account:   {}\nfrom:      {}\nto:        {}\napprover:  {} by {} at {}\nvalid to:  {}\n\
         hold:      {}\npayload:   {}\nsigned by: {}\nledger:    {}, {chain}\n\
         note:      {note}",
        show::text(&v["action"]),
        show::text(&v["account"]),
        show::text(&v["from"]),
        show::text(&v["to"]),
        show::text(&v["approver"]),
        show::text(&v["method"]),
        time("time"),
        time("expiry"),
        show::text(&v["hold"]),
        show::text(&v["payload_hash"]),
        show::text(&v["key_id"]),
        show::text(&v["ledger_head"]),
    )
}

/// Each failure of a receipt has a code and a name of its own.
fn failed(error: &ReceiptError) -> Failure {
    let (exit, name) = match error {
        ReceiptError::Schema { .. } => (Exit::ReceiptSchema, "schema"),
        ReceiptError::Action { .. } => (Exit::ReceiptAction, "action"),
        ReceiptError::Payload(_) => (Exit::ReceiptPayload, "payload"),
        ReceiptError::Approver | ReceiptError::Proof(_) => (Exit::ReceiptApprover, "approver"),
        ReceiptError::Expired { .. } => (Exit::ReceiptExpired, "expired"),
        ReceiptError::Spent => (Exit::ReceiptSpent, "spent"),
        ReceiptError::Signature => (Exit::ReceiptSignature, "signature"),
        ReceiptError::Chain => (Exit::Chain, "chain"),
    };
    Failure::new(exit, name, format!("not verified: {error}"))
}

fn unreadable(path: &Path, e: &std::io::Error) -> Failure {
    Failure::new(Exit::NoInput, "input", format!("{}: {e}", path.display()))
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let mut octets = Vec::new();
    let done = match path.as_os_str() == "-" {
        true => std::io::stdin().take(limit).read_to_end(&mut octets),
        false => File::open(path).and_then(|f| f.take(limit).read_to_end(&mut octets)),
    };
    done.map(|_| octets).map_err(|e| unreadable(path, &e))
}

fn keys(path: &Path) -> Result<Vec<VerifyingKey>, Failure> {
    let text = String::from_utf8(read(path, MAX_KEYS)?).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let keys: Option<Vec<VerifyingKey>> = lines.iter().map(|line| from_text(line)).collect();
    keys.filter(|k| !k.is_empty()).ok_or_else(|| {
        let message = format!("{}: not a file of public keys, one a line in base64", path.display());
        Failure::new(Exit::Data, "key", message)
    })
}

fn approver_keys(path: &Path) -> Result<Vec<ApproverKey>, Failure> {
    let text = String::from_utf8(read(path, MAX_KEYS)?).unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let keys: Result<Vec<ApproverKey>, serde_json::Error> = lines.map(serde_json::from_str).collect();
    keys.ok().filter(|k| !k.is_empty()).ok_or_else(|| {
        let message = format!("{}: not a file of passkeys' public keys, as `approver export` prints", path.display());
        Failure::new(Exit::Data, "approver_key", message)
    })
}

fn digest(path: &Path) -> Result<([u8; 32], u64), Failure> {
    let mut file = File::open(path).map_err(|e| unreadable(path, &e))?;
    let (mut hasher, mut length, mut chunk) = (Sha256::new(), 0u64, vec![0; CHUNK]);
    loop {
        match file.read(&mut chunk).map_err(|e| unreadable(path, &e))? {
            0 => return Ok((hasher.finalize().into(), length)),
            n => {
                hasher.update(&chunk[..n]);
                length += n as u64;
            }
        }
    }
}

fn entries(path: &Path) -> Result<Vec<Entry>, Failure> {
    let mut reader = BufReader::new(File::open(path).map_err(|e| unreadable(path, &e))?);
    let mut entries = Vec::new();
    loop {
        let mut line = String::new();
        let read = reader.by_ref().take(MAX_ENTRY).read_line(&mut line).map_err(|e| unreadable(path, &e))?;
        if read == 0 {
            return Ok(entries);
        }
        if line.trim().is_empty() {
            continue;
        }
        entries.push(serde_json::from_str(&line).map_err(|e| {
            Failure::new(Exit::Data, "ledger", format!("{}: entry {}: {e}", path.display(), entries.len() + 1))
        })?);
    }
}

fn time(text: &str) -> Result<i64, Failure> {
    if text == "now" {
        return Ok(jiff::Timestamp::now().as_second());
    }
    text.parse().map_err(|_| Failure::new(Exit::Usage, "usage", "--at takes seconds since 1970, or `now`"))
}
