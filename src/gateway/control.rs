//! The operator's door: a Unix socket in the state folder, one request and
//! one answer a connection, each a line of JSON. After the answer to `face` it
//! is IMAP.
//!
//! Promises: only processes of our own user are answered; no request approves
//! anything or reveals a secret other than a key that it just made. Doesn't
//! know: approval, which takes the web page and the PIN.

mod execute;
mod perception;
mod wire;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::account::{AccountsError, Role};
use crate::floor::ledger::LedgerError;
use crate::lane::Lane;
use crate::outbox::{HoldError, RevokeError};
use crate::store::StoreError;
use crate::web::passkey::PasskeyError;
use crate::web::pin::PinError;

pub use execute::execute;
pub use wire::{CallError, call, face, serve};

/// Name of the socket in the state folder.
pub const SOCKET: &str = "control.sock";
/// Who the ledger names for what is decided here.
pub const CONSOLE: &str = "console";

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Make a key: `{key, id, account, role, name}`; the key is shown once.
    KeyAdd {
        /// The account's address.
        account: String,
        /// Person or agent.
        role: Role,
        /// What it is called.
        name: String,
    },
    /// The keys: `{keys: [{id, account, role, name, created, revoked_at}]}`.
    KeyList {
        /// Only this account's.
        account: Option<String>,
    },
    /// Revoke a key and withdraw its holds: the key as in `KeyList`.
    KeyRevoke {
        /// The key's id.
        id: String,
    },
    /// What a key may do: `{key, everywhere, mailboxes}`.
    KeyShow {
        /// The key's id.
        id: String,
    },
    /// Change what an agent's key may do: as `KeyShow`.
    KeyGrant {
        /// The key's id.
        id: String,
        /// Each `VERB[@MAILBOX]=VALUE`; all of them are made or none.
        changes: Vec<String>,
    },
    /// The holds: `{holds: […], more}`, each as in `HeldShow`.
    HeldList {
        /// Only this account's.
        account: Option<String>,
        /// Also those that were decided.
        all: bool,
        /// Of each account only the newest so many; `more` counts the others
        /// that wait.
        #[serde(default)]
        limit: Option<usize>,
    },
    /// One hold.
    HeldShow {
        /// Its id.
        id: String,
    },
    /// The octets of a hold: `{base64}`.
    HeldMessage {
        /// Its id.
        id: String,
    },
    /// Deny a hold: the hold as it then is.
    HeldDeny {
        /// Its id.
        id: String,
        /// Told to the submitter.
        reason: String,
    },
    /// Hold the octets of an unknown outcome again, under a new id that needs
    /// an approval of its own: the new hold.
    HeldResend {
        /// The id of the unknown one.
        id: String,
    },
    /// The receipt of an approved hold, as [`crate::floor::receipt::Receipt`].
    ReceiptExport {
        /// The hold's id.
        hold: String,
    },
    /// Check the chain: `{entries, head, witnessed, tail_witnessed}`.
    LedgerVerify {
        /// A head that was kept elsewhere, `N:HASH`.
        head: Option<String>,
    },
    /// The last entry: `{head}`, `N:HASH` or null.
    LedgerHead,
    /// Entries: `{entries: […]}`.
    LedgerList {
        /// First number.
        from: u64,
        /// At most so many.
        limit: usize,
    },
    /// Sign with a new key from now on: `{keys: […]}`, the public keys that
    /// receipts verify under, the new one first.
    IdentityRotate,
    /// Set the approver's PIN.
    PinSet {
        /// The account's address.
        account: String,
        /// The PIN.
        pin: Pin,
    },
    /// Make a code that registers one passkey: `{account, code, seconds}`.
    ApproverCode {
        /// The account's address.
        account: String,
    },
    /// The passkeys: `{approvers: [{name, key, counter, added, used}]}`.
    ApproverList {
        /// Only this account's.
        account: Option<String>,
    },
    /// Remove a passkey: `{account, credential}`.
    ApproverRemove {
        /// The account's address.
        account: String,
        /// The credential id, as `ApproverList` has it.
        credential: String,
    },
    /// The stored trace of a decision: `{text, trace}`.
    Explain {
        /// Which.
        which: Which,
    },
    /// Put older mail into lanes: a list of `{uid, lane, mailbox, subject}`.
    Backfill {
        /// The account's address.
        account: String,
        /// How many of the newest messages.
        last: u32,
        /// Only say what would go where.
        dry_run: bool,
    },
    /// Accounts whose provider told lengths that aren't true: `{lengths:
    /// [{account, mark}]}`.
    Lengths,
    /// What people corrected: `{corrections: [{account, correction}]}`.
    CorrectionsList,
    /// Sync with the provider, then what the mirror of its INBOX holds:
    /// `{health, uidvalidity, uids, provider}`. `uids` is a set as in IMAP;
    /// `provider` is there where it is the embedded one: `{imap, smtp}`, its
    /// addresses since this start.
    Mirror {
        /// The account's address.
        account: String,
    },
    /// Serve the IMAP face on this connection from the answer on, as people
    /// see it, reading only: `{}`, then a greeting.
    Face {
        /// The account's address.
        account: String,
    },
    /// Read the provider's Sent for whom the person wrote to: as
    /// [`crate::gateway::history::Look`].
    SentRead {
        /// The account's address.
        account: String,
    },
    /// Pin an address's mail to a lane: `{account, address, lane, changed}`.
    PinSender {
        /// The account's address.
        account: String,
        /// The sender's.
        address: String,
        /// The lane.
        lane: Lane,
    },
    /// The pinned addresses: `{pins: [{account, address, lane}]}`.
    PinList {
        /// Only this account's.
        account: Option<String>,
    },
    /// Take an address's pin away: as `PinSender`, without a lane.
    PinRemove {
        /// The account's address.
        account: String,
        /// The sender's.
        address: String,
    },
    /// What the rule makes of the stored traces now: as
    /// [`crate::gateway::replay::Replayed`].
    Replay {
        /// Only this account's.
        account: Option<String>,
        /// Thresholds that differ from the configured ones, by their names.
        thresholds: BTreeMap<String, f64>,
    },
    /// Decisions in which a sure scorer was against what is known: `{found,
    /// canary: […]}`, the newest first.
    Canary {
        /// Only this account's.
        account: Option<String>,
        /// At most so many.
        last: usize,
    },
    /// Take a correction back: `{undone}`.
    CorrectionsUndo {
        /// The account's address.
        account: String,
        /// The correction, as the list names it.
        id: String,
    },
}

/// A PIN in a request; it shows in no Debug output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pin(pub String);

impl std::fmt::Debug for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pin(…)")
    }
}

/// Which decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// By its id, as X-Tollgate-Decision has it.
    Decision(String),
    /// The newest one of this Message-ID.
    MessageId(String),
    /// By the place where people see the message.
    Place {
        /// The account's address.
        account: String,
        /// The mailbox.
        mailbox: String,
        /// The UID there.
        uid: u32,
    },
}

/// Names of errors, for scripts.
pub mod names {
    /// No such account.
    pub const NO_ACCOUNT: &str = "no_account";
    /// No such key.
    pub const NO_KEY: &str = "no_key";
    /// No such hold.
    pub const NO_HOLD: &str = "no_hold";
    /// The hold has no receipt.
    pub const NO_RECEIPT: &str = "no_receipt";
    /// No such decision.
    pub const NO_DECISION: &str = "no_decision";
    /// No such passkey.
    pub const NO_PASSKEY: &str = "no_passkey";
    /// A value of the request is wrong.
    pub const INVALID: &str = "invalid";
    /// The hold is in a state that doesn't allow it.
    pub const STATE: &str = "state";
    /// It takes a running gateway.
    pub const NOT_RUNNING: &str = "not_running";
    /// The ledger is broken.
    pub const CHAIN: &str = "chain";
    /// The store or a file failed.
    pub const IO: &str = "io";
}

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No account of this address is configured.
    #[error("no account {0} is configured")]
    NoAccount(String),
    /// No hold has this id.
    #[error("no held message has the id {0}")]
    NoHold(String),
    /// The hold was never approved.
    #[error("{0} has no receipt: it was not approved")]
    NoReceipt(String),
    /// No decision was found.
    #[error("no decision is stored for {0}")]
    NoDecision(String),
    /// A value is wrong.
    #[error("{0}")]
    Invalid(String),
    /// It takes a running gateway.
    #[error("{0} takes a running gateway; start it with `tollgate serve`")]
    NotRunning(&'static str),
    /// The part that does it failed.
    #[error("{0}")]
    Failed(String),
    /// Keys.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// Holds.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The PIN.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A passkey.
    #[error(transparent)]
    Passkey(#[from] PasskeyError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl From<RevokeError> for ControlError {
    fn from(error: RevokeError) -> ControlError {
        match error {
            RevokeError::Accounts(e) => e.into(),
            RevokeError::Hold(e) => e.into(),
        }
    }
}

impl ControlError {
    /// The error's name, one of [`names`].
    pub fn name(&self) -> &'static str {
        match self {
            ControlError::NoAccount(_) => names::NO_ACCOUNT,
            ControlError::NoHold(_) => names::NO_HOLD,
            ControlError::NoReceipt(_) => names::NO_RECEIPT,
            ControlError::NoDecision(_) => names::NO_DECISION,
            ControlError::Invalid(_) => names::INVALID,
            ControlError::NotRunning(_) => names::NOT_RUNNING,
            ControlError::Ledger(_) => names::CHAIN,
            ControlError::Failed(_) | ControlError::Store(_) | ControlError::File { .. } => names::IO,
            ControlError::Accounts(e) => match e {
                AccountsError::NoAccount(_) => names::NO_ACCOUNT,
                AccountsError::NoKey(_) => names::NO_KEY,
                AccountsError::Name
                | AccountsError::TooMany
                | AccountsError::NoSecret(_)
                | AccountsError::NotAgent(_)
                | AccountsError::Grant(_) => names::INVALID,
                AccountsError::Random(_) | AccountsError::Store(_) => names::IO,
            },
            ControlError::Hold(e) => match e {
                HoldError::NotFound => names::NO_HOLD,
                HoldError::NoAccount => names::NO_ACCOUNT,
                HoldError::Illegal(_)
                | HoldError::KeyRevoked
                | HoldError::Again(_)
                | HoldError::TooMany(_)
                | HoldError::TooManyOctets(_)
                | HoldError::Crowded
                | HoldError::NeverFits(_)
                | HoldError::LostLease => names::STATE,
                HoldError::Store(_) | HoldError::Random(_) | HoldError::Witness(_) | HoldError::Identity(_) => {
                    names::IO
                }
            },
            ControlError::Passkey(e) => match e {
                PasskeyError::NotFound => names::NO_PASSKEY,
                PasskeyError::TooMany
                | PasskeyError::Exists
                | PasskeyError::Name
                | PasskeyError::NoCode
                | PasskeyError::Proof(_) => names::INVALID,
                PasskeyError::Random(_) | PasskeyError::Store(_) | PasskeyError::Hold(_) => names::IO,
            },
            ControlError::Pin(e) => match e {
                PinError::Shape | PinError::NotSet(_) | PinError::Wrong { .. } | PinError::Locked { .. } => {
                    names::INVALID
                }
                PinError::Failed(_) | PinError::Store(_) => names::IO,
            },
        }
    }
}

#[cfg(test)]
mod tests;
