//! The states of a held message.
//!
//! ```text
//! held ──approve──▶ approved ──claim──▶ sending ──250──▶ sent
//!  │ deny / expire / withdraw            │ nothing sent: for good → failed, for now → approved
//!  ▼                                     │ 4yz at the dot → approved    5yz at the dot → failed
//! denied, expired, withdrawn             └ no answer, lost after the dot, crash → unknown
//!
//! held, approved, sending ──a backup was restored──▶ unknown
//! ```
//!
//! Promises: [`step`] is total and knows no other arrow. `sent`, `failed`,
//! `unknown`, `denied`, `expired` and `withdrawn` have none that leads out:
//! what is sent again is a new hold with an approval of its own. A receipt
//! that expires while it waits for a retry is claimed once more and ends as
//! [`Transition::NotSent`] for good, so nothing stays approved for ever.
//! Doesn't know: the store; the caller makes the step and its ledger entry
//! one transaction.

use serde::{Deserialize, Serialize};

/// What a held message waits for, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for a person.
    Held,
    /// Waits for an attempt to send it.
    Approved,
    /// An attempt is under way.
    Sending,
    /// The provider took it.
    Sent,
    /// The provider refused it for good.
    Failed,
    /// Nobody knows whether the provider took it; a person decides.
    Unknown,
    /// A person said no.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// The submitter took it back, or its key was revoked.
    Withdrawn,
}

/// Every state.
pub const STATES: [State; 9] = [
    State::Held,
    State::Approved,
    State::Sending,
    State::Sent,
    State::Failed,
    State::Unknown,
    State::Denied,
    State::Expired,
    State::Withdrawn,
];

impl State {
    /// The name in lists, pages and reports.
    pub fn name(self) -> &'static str {
        match self {
            State::Held => "held",
            State::Approved => "approved",
            State::Sending => "sending",
            State::Sent => "sent",
            State::Failed => "failed",
            State::Unknown => "unknown",
            State::Denied => "denied",
            State::Expired => "expired",
            State::Withdrawn => "withdrawn",
        }
    }

    /// Whether no arrow leads out.
    pub fn is_final(self) -> bool {
        !matches!(self, State::Held | State::Approved | State::Sending)
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// A 4yz reply, or no connection.
    ForNow,
    /// A 5yz reply, or a fault on our side that stays (expired receipt, octets
    /// that don't match).
    ForGood,
}

/// What happens to a held message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transition {
    /// A person approved it.
    Approve,
    /// A person denied it.
    Deny,
    /// Its time ran out.
    Expire,
    /// The submitter took it back, or its key was revoked.
    Withdraw,
    /// The dispatcher takes it for an attempt.
    Claim,
    /// The provider answered 250 to the final dot.
    Delivered,
    /// The attempt ended before the final dot: no connection, a refused MAIL,
    /// RCPT or DATA, a connection lost while the dot was still withheld.
    NotSent(Refusal),
    /// The provider refused at the final dot.
    DotRefused(Refusal),
    /// The final dot may have been written and no answer is known.
    NoAnswer,
    /// The state is that of a restored backup: whatever is open in it may have
    /// been decided or sent since.
    Restored,
}

/// Every transition.
pub const TRANSITIONS: [Transition; 12] = [
    Transition::Approve,
    Transition::Deny,
    Transition::Expire,
    Transition::Withdraw,
    Transition::Claim,
    Transition::Delivered,
    Transition::NotSent(Refusal::ForNow),
    Transition::NotSent(Refusal::ForGood),
    Transition::DotRefused(Refusal::ForNow),
    Transition::DotRefused(Refusal::ForGood),
    Transition::NoAnswer,
    Transition::Restored,
];

/// A transition that the state doesn't have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message that is {state} can't take {transition:?}")]
pub struct Illegal {
    /// The state.
    pub state: State,
    /// The transition.
    pub transition: Transition,
}

/// The state after `transition`.
pub fn step(state: State, transition: Transition) -> Result<State, Illegal> {
    match (state, transition) {
        (State::Held, Transition::Approve) => Ok(State::Approved),
        (State::Held, Transition::Deny) => Ok(State::Denied),
        (State::Held, Transition::Expire) => Ok(State::Expired),
        (State::Held, Transition::Withdraw) => Ok(State::Withdrawn),
        (State::Approved, Transition::Claim) => Ok(State::Sending),
        (State::Sending, Transition::Delivered) => Ok(State::Sent),
        (State::Sending, Transition::NotSent(refusal) | Transition::DotRefused(refusal)) => Ok(match refusal {
            Refusal::ForNow => State::Approved,
            Refusal::ForGood => State::Failed,
        }),
        (State::Sending, Transition::NoAnswer) => Ok(State::Unknown),
        (State::Held | State::Approved | State::Sending, Transition::Restored) => Ok(State::Unknown),
        (state, transition) => Err(Illegal { state, transition }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_of_the_table_is_as_the_diagram_says() {
        // One row a state, one column a transition, in the order of STATES and
        // TRANSITIONS; '.' is illegal, else the first letters of the new state.
        #[rustfmt::skip]
        let table = [
            // approve deny   expire  withdr  claim   250     not-now not-ever dot-4yz dot-5yz silence  restored
            ["appr",   "deni", "expi", "with", ".",    ".",    ".",    ".",     ".",    ".",    ".", "unkn"],    // held
            [".",      ".",    ".",    ".",    "send", ".",    ".",    ".",     ".",    ".",    ".", "unkn"],    // approved
            [".",      ".",    ".",    ".",    ".",    "sent", "appr", "fail",  "appr", "fail", "unkn", "unkn"], // sending
            [".",      ".",    ".",    ".",    ".",    ".",    ".",    ".",     ".",    ".",    ".", "."],    // sent
            [".",      ".",    ".",    ".",    ".",    ".",    ".",    ".",     ".",    ".",    ".", "."],    // failed
            [".",      ".",    ".",    ".",    ".",    ".",    ".",    ".",     ".",    ".",    ".", "."],    // unknown
            [".",      ".",    ".",    ".",    ".",    ".",    ".",    ".",     ".",    ".",    ".", "."],    // denied
            [".",      ".",    ".",    ".",    ".",    ".",    ".",    ".",     ".",    ".",    ".", "."],    // expired
            [".",      ".",    ".",    ".",    ".",    ".",    ".",    ".",     ".",    ".",    ".", "."],    // withdrawn
        ];
        for (state, row) in STATES.into_iter().zip(table) {
            for (transition, cell) in TRANSITIONS.into_iter().zip(row) {
                match step(state, transition) {
                    Ok(next) => assert_eq!(&next.name()[..4], cell, "{state} {transition:?}"),
                    Err(illegal) => {
                        assert_eq!(cell, ".", "{illegal}");
                        assert_eq!(illegal, Illegal { state, transition });
                    }
                }
            }
            assert_eq!(state.is_final(), row.iter().all(|cell| *cell == "."), "{state}");
        }
    }

    #[test]
    fn names_are_the_serde_names() {
        for state in STATES {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
        }
    }
}
