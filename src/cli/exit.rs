//! How a verb ends: exit codes of sysexits.h, and failures with a name that a
//! script can tell apart.

use std::process::ExitCode;

/// Exit codes. Those of `receipt verify` have numbers of their own, below the
/// ones of sysexits.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// A receipt under a schema that isn't known here.
    ReceiptSchema = 10,
    /// A receipt for another action.
    ReceiptAction = 11,
    /// A receipt for another payload.
    ReceiptPayload = 12,
    /// A receipt by another approver.
    ReceiptApprover = 13,
    /// A receipt whose time is over.
    ReceiptExpired = 14,
    /// A receipt that was spent.
    ReceiptSpent = 15,
    /// A receipt that no known key signed.
    ReceiptSignature = 16,
    /// A receipt that the ledger doesn't hold, or a ledger that is broken.
    Chain = 17,
    /// EX_USAGE: the command line is wrong.
    Usage = 64,
    /// EX_DATAERR: what was given or named is wrong.
    Data = 65,
    /// EX_NOINPUT: a named file can't be read.
    NoInput = 66,
    /// EX_UNAVAILABLE: a server can't be reached or refused.
    Unavailable = 69,
    /// EX_SOFTWARE: an error of this program.
    Software = 70,
    /// EX_CANTCREAT: a file can't be written.
    CantCreate = 73,
    /// EX_IOERR: reading or writing failed.
    Io = 74,
    /// EX_TEMPFAIL: may work later, such as while another process is busy.
    Temp = 75,
    /// EX_PROTOCOL: a server doesn't do what it says or what its protocol asks.
    Protocol = 76,
    /// EX_NOPERM: not allowed.
    NoPerm = 77,
    /// EX_CONFIG: the configuration is wrong.
    Config = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a verb failed.
#[derive(Debug)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// A short name for scripts, such as `no_key`.
    pub name: String,
    /// What a person reads.
    pub message: String,
    /// More for scripts, beside name and message.
    pub details: Option<serde_json::Value>,
    /// What was printed says it already: with `--json`, standard output holds
    /// one value.
    pub in_output: bool,
}

impl Failure {
    /// A failure.
    pub fn new(exit: Exit, name: &str, message: impl std::fmt::Display) -> Failure {
        Failure { exit, name: name.to_owned(), message: message.to_string(), details: None, in_output: false }
    }

    /// Tells it: JSON to standard output for scripts, a line to standard
    /// error for people.
    pub fn tell(&self, json: bool) {
        if json && self.in_output {
            return;
        }
        if json {
            let mut error = serde_json::json!({ "name": self.name, "message": self.message });
            if let Some(details) = &self.details {
                error["details"] = details.clone();
            }
            say(&serde_json::json!({ "error": error }).to_string());
        } else {
            eprintln!("tollgate: {}", self.message);
        }
    }
}

/// What a verb returns.
pub type Outcome = Result<(), Failure>;

/// Prints a text and a line end on standard output. A reader that went away
/// (`tollgate … | head`) ends the program quietly: nobody is left to be told.
pub fn say(text: &str) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{text}").and_then(|()| out.flush());
    if said.is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}
