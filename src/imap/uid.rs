//! Numbers that must not be mixed up (RFC 9051 §2.3.1).
//!
//! Promises: none of them is zero, and only [`crate::imap::view`] turns one
//! into another.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The number, unless it is zero.
            pub fn new(n: u32) -> Option<$name> {
                NonZeroU32::new(n).map($name)
            }

            /// The number.
            pub fn get(self) -> u32 {
                self.0.get()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A UID in the provider's INBOX.
    UpstreamUid
);
number!(
    /// A UID in one of our views.
    ViewUid
);
number!(
    /// A message sequence number as one client session knows it.
    SeqNum
);

impl ViewUid {
    /// The first UID of every view.
    pub const FIRST: ViewUid = ViewUid(NonZeroU32::MIN);

    /// The UID after this one; `None` when the range is used up.
    pub fn next(self) -> Option<ViewUid> {
        self.0.checked_add(1).map(ViewUid)
    }
}

/// Writes ascending numbers as an IMAP sequence set (RFC 9051 §9,
/// `sequence-set`), with ranges where they are consecutive.
pub fn sequence_set(numbers: &[u32]) -> String {
    let mut out = String::new();
    let mut i = 0;
    while i < numbers.len() {
        let mut j = i;
        while j + 1 < numbers.len() && numbers[j + 1] == numbers[j] + 1 {
            j += 1;
        }
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&numbers[i].to_string());
        if j > i {
            out.push(':');
            out.push_str(&numbers[j].to_string());
        }
        i = j + 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_use_ranges_and_keep_order() {
        assert_eq!(sequence_set(&[1, 2, 3, 7, 9, 10]), "1:3,7,9:10");
        assert_eq!(sequence_set(&[]), "");
    }

    #[test]
    fn zero_is_no_uid() {
        assert!(ViewUid::new(0).is_none());
        assert_eq!(ViewUid::new(u32::MAX).and_then(ViewUid::next), None);
    }
}
