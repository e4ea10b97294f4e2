//! As much CBOR (RFC 8949) as a WebAuthn registration holds.
//!
//! Promises: reads only what CTAP2's canonical form allows (definite lengths,
//! each in its shortest form), never deeper than [`MAX_DEPTH`], never more
//! than [`MAX_ITEMS`] items in one list; lends what it reads. Doesn't know:
//! floats, tags, what the values mean.

/// Deepest nesting that is skipped over.
const MAX_DEPTH: u8 = 8;
/// Most items of one array, or pairs of one map.
const MAX_ITEMS: u64 = 32;

/// Reads one item after another.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(octets: &'a [u8]) -> Reader<'a> {
        Reader { rest: octets }
    }

    /// What was not read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let count = usize::try_from(count).ok()?;
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// Major type and argument (RFC 8949 §3).
    fn head(&mut self) -> Option<(u8, u64)> {
        let first = *self.take(1)?.first()?;
        let (major, info) = (first >> 5, first & 31);
        let (width, least) = match info {
            0..24 => return Some((major, info.into())),
            24 => (1, 24),
            25 => (2, 1 << 8),
            26 => (4, 1 << 16),
            27 => (8, 1 << 32),
            _ => return None,
        };
        let argument = self.take(width)?.iter().fold(0, |n: u64, b| n << 8 | u64::from(*b));
        (argument >= least).then_some((major, argument))
    }

    /// A map's number of pairs.
    pub(super) fn map(&mut self) -> Option<u64> {
        self.head().filter(|(major, n)| *major == 5 && *n <= MAX_ITEMS).map(|(_, n)| n)
    }

    /// An integer.
    pub(super) fn int(&mut self) -> Option<i64> {
        let (major, n) = self.head()?;
        let n = i64::try_from(n).ok()?;
        match major {
            0 => Some(n),
            1 => Some(-1 - n),
            _ => None,
        }
    }

    /// A byte string.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let (major, n) = self.head()?;
        if major == 2 { self.take(n) } else { None }
    }

    /// A text string.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        let (major, n) = self.head()?;
        if major == 3 { std::str::from_utf8(self.take(n)?).ok() } else { None }
    }

    /// Reads over one item of any kind but floats and tags.
    pub(super) fn skip(&mut self) -> Option<()> {
        self.skip_at(0)
    }

    fn skip_at(&mut self, depth: u8) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (major, n) = self.head()?;
        let inner = match major {
            0 | 1 => 0,
            2 | 3 => {
                self.take(n)?;
                0
            }
            4 if n <= MAX_ITEMS => n,
            5 if n <= MAX_ITEMS => n * 2,
            // false, true, null.
            7 if (20..=22).contains(&n) => 0,
            _ => return None,
        };
        for _ in 0..inner {
            self.skip_at(depth + 1)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_shortest_definite_forms_are_read() {
        assert_eq!(Reader::new(&[0x26]).int(), Some(-7));
        assert_eq!(Reader::new(&[0x18, 0x18]).int(), Some(24));
        for long in [&[0x18, 0x17][..], &[0x19, 0, 0xff], &[0x1a, 0, 0, 0xff, 0xff], &[0x5f], &[0xff], &[]] {
            assert_eq!(Reader::new(long).head(), None, "{long:x?}");
        }
        assert_eq!(Reader::new(&[0x43, 1, 2]).bytes(), None, "cut off");
        assert_eq!(Reader::new(&[0xfa, 0, 0, 0, 0]).skip(), None, "a float");
    }

    #[test]
    fn nesting_and_counts_are_bounded() {
        let deep = |n: usize| [vec![0x81; n], vec![0]].concat();
        assert_eq!(Reader::new(&deep(usize::from(MAX_DEPTH))).skip(), Some(()));
        assert_eq!(Reader::new(&deep(usize::from(MAX_DEPTH) + 1)).skip(), None);
        assert_eq!(Reader::new(&[0xb8, 33]).map(), None);
    }

    proptest! {
        #[test]
        fn no_octets_make_it_panic(octets: Vec<u8>) {
            let mut reader = Reader::new(&octets);
            while reader.skip().is_some() {}
        }
    }
}
