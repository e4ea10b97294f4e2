//! What a key may do, per verb.
//!
//! Promises: no value of these types lets an agent send, forward or delete
//! without being asked for; there is no such variant to construct or to read
//! back from the store. Doesn't know: which command needs which verb.

use serde::{Deserialize, Serialize};

/// What a command does, as the closed table of commands names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Read messages and mailboxes.
    Read,
    /// Change flags other than \Deleted.
    Flag,
    /// Copy, move, append to mailboxes other than Drafts.
    File,
    /// Append drafts.
    Draft,
    /// Submit mail.
    Send,
    /// Submit mail that carries a mailbox message to outside.
    Forward,
    /// Set \Deleted or expunge.
    Delete,
}

/// Every verb, in a fixed order.
pub const VERBS: [Verb; 7] = [Verb::Read, Verb::Flag, Verb::File, Verb::Draft, Verb::Send, Verb::Forward, Verb::Delete];

impl Verb {
    /// The name in the store, in listings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Flag => "flag",
            Verb::File => "file",
            Verb::Draft => "draft",
            Verb::Send => "send",
            Verb::Forward => "forward",
            Verb::Delete => "delete",
        }
    }
}

/// The answer for one verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grant {
    /// Done at once.
    Allow,
    /// Done after a person approved it.
    Ask,
    /// Refused.
    Off,
}

/// The answer for a verb of the floor, where `allow` doesn't exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FloorGrant {
    /// Done after a person approved it.
    Ask,
    /// Refused.
    Off,
}

impl From<FloorGrant> for Grant {
    fn from(grant: FloorGrant) -> Grant {
        match grant {
            FloorGrant::Ask => Grant::Ask,
            FloorGrant::Off => Grant::Off,
        }
    }
}

/// An agent key's grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentGrants {
    /// Reading.
    pub read: Grant,
    /// Flags other than \Deleted.
    pub flag: Grant,
    /// Filing.
    pub file: Grant,
    /// Drafts.
    pub draft: Grant,
    /// Submissions.
    pub send: FloorGrant,
    /// Forwards to outside.
    pub forward: FloorGrant,
    /// Deletion.
    pub delete: FloorGrant,
}

/// What a signed-in key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grants {
    /// A person: everything, at once.
    Person,
    /// An agent: what its key says. The console too: it reads.
    Agent(AgentGrants),
}

impl Grants {
    /// What a new agent key gets: read and draft at once, send and forward
    /// after a person's approval, nothing else.
    pub fn default_agent() -> Grants {
        Grants::Agent(AgentGrants {
            read: Grant::Allow,
            flag: Grant::Off,
            file: Grant::Off,
            draft: Grant::Allow,
            send: FloorGrant::Ask,
            forward: FloorGrant::Ask,
            delete: FloorGrant::Off,
        })
    }

    /// Reading, and nothing else.
    pub fn read_only() -> Grants {
        Grants::Agent(AgentGrants {
            read: Grant::Allow,
            flag: Grant::Off,
            file: Grant::Off,
            draft: Grant::Off,
            send: FloorGrant::Off,
            forward: FloorGrant::Off,
            delete: FloorGrant::Off,
        })
    }

    /// The answer for `verb`.
    pub fn of(&self, verb: Verb) -> Grant {
        match self {
            Grants::Person => Grant::Allow,
            Grants::Agent(g) => match verb {
                Verb::Read => g.read,
                Verb::Flag => g.flag,
                Verb::File => g.file,
                Verb::Draft => g.draft,
                Verb::Send => g.send.into(),
                Verb::Forward => g.forward.into(),
                Verb::Delete => g.delete.into(),
            },
        }
    }

    /// True only where `verb` is done at once.
    pub fn allows(&self, verb: Verb) -> bool {
        self.of(verb) == Grant::Allow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_agent_key_reads_and_drafts_and_asks_to_send() {
        let g = Grants::default_agent();
        let got: Vec<Grant> = VERBS.iter().map(|v| g.of(*v)).collect();
        use Grant::{Allow, Ask, Off};
        assert_eq!(got, [Allow, Off, Off, Allow, Ask, Ask, Off]);
    }

    #[test]
    fn a_person_may_do_everything() {
        assert!(VERBS.iter().all(|v| Grants::Person.allows(*v)));
    }

    #[test]
    fn who_only_reads_may_do_nothing_else() {
        let allowed: Vec<&Verb> = VERBS.iter().filter(|v| Grants::read_only().of(**v) != Grant::Off).collect();
        assert_eq!(allowed, [&Verb::Read]);
    }

    #[test]
    fn a_stored_allow_for_a_verb_of_the_floor_is_no_value() {
        let stored = r#"{"read":"allow","flag":"allow","file":"allow","draft":"allow","send":"ask","forward":"off","delete":"off"}"#;
        let grants: AgentGrants = serde_json::from_str(stored).unwrap();
        assert_eq!(Grants::Agent(grants).of(Verb::Send), Grant::Ask);
        for verb in ["send", "forward", "delete"] {
            let forged = stored
                .replace(&format!(r#""{verb}":"ask""#), &format!(r#""{verb}":"allow""#))
                .replace(&format!(r#""{verb}":"off""#), &format!(r#""{verb}":"allow""#));
            assert!(serde_json::from_str::<AgentGrants>(&forged).is_err(), "{verb}");
        }
    }
}
