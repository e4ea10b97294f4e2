//! Facts about a message, named by short codes.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One fact about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Signal {
    /// A calendar request (REQUEST, CANCEL, ADD, COUNTER, DECLINECOUNTER) that names the account.
    Invitation,
    /// Wording about fixing or moving a time.
    Scheduling,
    /// Receipt, confirmation, delivery, statement; calendar REPLY and PUBLISH.
    Transactional,
    /// Delivery report, failed build or payment, overdue, reminder of a debt.
    Failure,
    /// A one-time code, or a reset link to the authenticated sender's own domain.
    Code,
    /// A question or request to the person, or a number to call.
    Ask,
    /// A time, not yet past, by which something is asked.
    Deadline,
    /// A discussion list.
    List,
    /// Bulk marks without list, code, transactional or invitation.
    Campaign,
    /// Written by a machine.
    Automated,
    /// The provider's verdict.
    Spam,
    /// The sender is likely not who the From says.
    Spoofed,
}

/// Every signal, in the order of stamps and traces.
pub const SIGNALS: [Signal; 12] = [
    Signal::Invitation,
    Signal::Scheduling,
    Signal::Transactional,
    Signal::Failure,
    Signal::Code,
    Signal::Ask,
    Signal::Deadline,
    Signal::List,
    Signal::Campaign,
    Signal::Automated,
    Signal::Spam,
    Signal::Spoofed,
];

impl Signal {
    /// The code in stamps and traces.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Invitation => "invitation",
            Signal::Scheduling => "scheduling",
            Signal::Transactional => "transactional",
            Signal::Failure => "failure",
            Signal::Code => "code",
            Signal::Ask => "ask",
            Signal::Deadline => "deadline",
            Signal::List => "list",
            Signal::Campaign => "campaign",
            Signal::Automated => "automated",
            Signal::Spam => "spam",
            Signal::Spoofed => "spoofed",
        }
    }

    /// The signal with this code.
    pub fn from_name(name: &str) -> Option<Signal> {
        SIGNALS.into_iter().find(|s| s.name() == name)
    }
}

/// A set of signals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Signals(u16);

impl Signals {
    /// The empty set.
    pub const NONE: Signals = Signals(0);

    /// Adds one.
    pub fn insert(&mut self, signal: Signal) {
        self.0 |= 1 << signal as u8;
    }

    /// Takes one away.
    pub fn remove(&mut self, signal: Signal) {
        self.0 &= !(1 << signal as u8);
    }

    /// Adds one where `holds`, takes it away where not.
    pub fn set(&mut self, signal: Signal, holds: bool) {
        if holds {
            self.insert(signal);
        } else {
            self.remove(signal);
        }
    }

    /// Whether the signal is in the set.
    pub fn has(self, signal: Signal) -> bool {
        self.0 & (1 << signal as u8) != 0
    }

    /// Whether any of these is in the set.
    pub fn any(self, signals: &[Signal]) -> bool {
        signals.iter().any(|s| self.has(*s))
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members in the fixed order.
    pub fn iter(self) -> impl Iterator<Item = Signal> {
        SIGNALS.into_iter().filter(move |s| self.has(*s))
    }

    /// The codes in the fixed order.
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(Signal::name).collect()
    }
}

impl FromIterator<Signal> for Signals {
    fn from_iter<I: IntoIterator<Item = Signal>>(signals: I) -> Signals {
        let mut set = Signals::NONE;
        for s in signals {
            set.insert(s);
        }
        set
    }
}

impl Serialize for Signals {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(Signal::name))
    }
}

impl<'de> Deserialize<'de> for Signals {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Signals, D::Error> {
        Vec::<String>::deserialize(from)?
            .iter()
            .map(|n| Signal::from_name(n).ok_or_else(|| D::Error::custom(format!("no signal is called {n:?}"))))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_stored_as_codes_in_the_fixed_order() {
        let s: Signals = [Signal::Deadline, Signal::Ask].into_iter().collect();
        let json = serde_json::to_string(&s).unwrap();
        assert_eq!(json, r#"["ask","deadline"]"#);
        assert_eq!(serde_json::from_str::<Signals>(&json).unwrap(), s);
        assert!(serde_json::from_str::<Signals>(r#"["asks"]"#).is_err());
    }

    #[test]
    fn every_code_names_its_signal() {
        for s in SIGNALS {
            assert_eq!(Signal::from_name(s.name()), Some(s));
            let mut set = Signals::NONE;
            set.set(s, true);
            assert!(set.has(s) && set.iter().eq([s]));
            set.set(s, false);
            assert!(set.is_empty());
        }
    }
}
