//! Whether a submission waits for a person.
//!
//! Promises: an agent's submission always waits; [`NoHold`] exists only where
//! [`decide`] said that a person's own mail need not. Doesn't know: how
//! marks and lineage were found.

/// What is held beside an agent's mail (`hold` in `gateway.toml`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Only AI-drafted mail.
    Ai,
    /// Also a person's mail to outside.
    External,
    /// All mail.
    All,
}

/// Why a submission waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// An agent's key submitted it. The only one that is part of the floor.
    AgentKey,
    /// An agent's draft is in it.
    Lineage,
    /// It declares that it was drafted by a machine.
    Marks,
    /// A recipient is outside, and such mail is held.
    External,
    /// All mail is held.
    All,
}

/// That no hold applies to a person's own mail; only [`decide`] makes one.
#[derive(Debug)]
pub struct NoHold(());

/// Hold, or not.
#[derive(Debug)]
pub enum Decision {
    /// A person must approve.
    Hold(Reason),
    /// A person's own mail, relayed at once.
    NoHold(NoHold),
}

/// Decides by provenance first, by what is configured last. `marks` and
/// `lineage` hold in every mode.
pub fn decide(role_is_agent: bool, mode: Mode, external: bool, marks: bool, lineage: bool) -> Decision {
    if role_is_agent {
        return Decision::Hold(Reason::AgentKey);
    }
    if lineage {
        return Decision::Hold(Reason::Lineage);
    }
    if marks {
        return Decision::Hold(Reason::Marks);
    }
    match (mode, external) {
        (Mode::All, _) => Decision::Hold(Reason::All),
        (Mode::External, true) => Decision::Hold(Reason::External),
        (Mode::External, false) | (Mode::Ai, _) => Decision::NoHold(NoHold(())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [bool; 2] = [false, true];

    #[test]
    fn an_agents_submission_waits_whatever_else_is_said() {
        for mode in [Mode::Ai, Mode::External, Mode::All] {
            for external in BOTH {
                for marks in BOTH {
                    for lineage in BOTH {
                        let decision = decide(true, mode, external, marks, lineage);
                        assert!(matches!(decision, Decision::Hold(Reason::AgentKey)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_persons_own_mail_goes_at_once_only_without_marks_lineage_or_mode() {
        for mode in [Mode::Ai, Mode::External, Mode::All] {
            for external in BOTH {
                for marks in BOTH {
                    for lineage in BOTH {
                        let free = matches!(decide(false, mode, external, marks, lineage), Decision::NoHold(_));
                        let by_mode = mode == Mode::Ai || (mode == Mode::External && !external);
                        assert_eq!(free, by_mode && !marks && !lineage, "{mode:?} {external} {marks} {lineage}");
                    }
                }
            }
        }
    }
}
