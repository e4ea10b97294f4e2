//! The acts that never run for an agent without a receipt.
//!
//! Promises: each action signs in a domain of its own, so a receipt of one
//! is no receipt of another. Doesn't know: how an act is carried out.

use serde::{Deserialize, Serialize};

/// An act behind the barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Submits a message to the provider.
    SendEmail,
    /// Submits a message that carries a mailbox message to outside.
    ForwardExternal,
    /// Expunges messages for good.
    DeletePermanent,
}

/// Every action.
pub const ACTIONS: [Action; 3] = [Action::SendEmail, Action::ForwardExternal, Action::DeletePermanent];

impl Action {
    /// The name in payloads, ledgers and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Action::SendEmail => "send_email",
            Action::ForwardExternal => "forward_external",
            Action::DeletePermanent => "delete_permanent",
        }
    }

    /// Whether carrying it out hands a message to the provider's submission.
    pub fn sends(self) -> bool {
        match self {
            Action::SendEmail | Action::ForwardExternal => true,
            Action::DeletePermanent => false,
        }
    }

    /// What precedes the payload under the hash and the signature. No prefix
    /// is the start of another.
    pub fn prefix(self) -> &'static [u8] {
        match self {
            Action::SendEmail => b"tollgate/receipt/send_email/v1\n",
            Action::ForwardExternal => b"tollgate/receipt/forward_external/v1\n",
            Action::DeletePermanent => b"tollgate/receipt/delete_permanent/v1\n",
        }
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_name_their_action_and_none_starts_another() {
        for a in ACTIONS {
            assert_eq!(a.prefix(), format!("tollgate/receipt/{a}/v1\n").as_bytes());
            assert_eq!(serde_json::to_string(&a).unwrap(), format!("\"{a}\""));
            for b in ACTIONS {
                assert_eq!(a == b, b.prefix().starts_with(a.prefix()));
            }
        }
    }
}
