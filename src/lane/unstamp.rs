//! Taking stamps off again: a client that moves a message by uploading its
//! copy of what it was shown sends our stamps along.
//!
//! Promises: a field goes only when it equals, octet for octet, one of a stamp
//! that is given here; every other octet stays, in its order. (Of a message
//! that begins with a folded line, that line belongs to the last field of the
//! stamp, which stays with it.) Doesn't know: which decisions there are, nor
//! what follows the octets that it looks at.

use super::stamp::NAMESPACE;

/// Most decisions that are looked up for one message.
const MAX_DECISIONS: usize = 4;
/// Longest name of a decision.
const MAX_ID: usize = 64;

/// The whole header fields at the start of a message, each with its folded
/// lines. A field that the end cuts, or might, is none; nor is what follows
/// the empty line.
fn fields(start: &[u8], whole: bool) -> impl Iterator<Item = &[u8]> {
    let mut rest = start;
    std::iter::from_fn(move || {
        let mut end = 0;
        loop {
            let line = memchr::memchr(b'\n', &rest[end..])?;
            let first = &rest[end..=end + line];
            if end == 0 && matches!(first, b"\n" | b"\r\n") {
                return None;
            }
            end += line + 1;
            match rest.get(end) {
                Some(b' ' | b'\t') => {}
                None if !whole => return None,
                Some(_) | None => break,
            }
        }
        let (field, after) = rest.split_at(end);
        rest = after;
        Some(field)
    })
}

fn is_ours(field: &[u8]) -> bool {
    field.get(..NAMESPACE.len()).is_some_and(|n| n.eq_ignore_ascii_case(NAMESPACE))
}

/// Whether the header is over within these octets, the first `searched` of
/// which were asked before.
pub fn holds_header(start: &[u8], searched: usize) -> bool {
    // The empty line may stand across the two.
    let tail = &start[searched.saturating_sub(2).min(start.len())..];
    let found = |end: &[u8]| memchr::memmem::find(tail, end).is_some();
    start.starts_with(b"\r\n") || start.starts_with(b"\n") || found(b"\n\r\n") || found(b"\n\n")
}

/// The decisions that the stamps at the start of a message name. `whole`: the
/// message ends where these octets do.
pub fn decisions(start: &[u8], whole: bool) -> Vec<String> {
    let id = |field: &[u8]| {
        let value = field.strip_prefix(b"X-Tollgate-Decision: ")?.strip_suffix(b"\r\n")?;
        let fits = !value.is_empty() && value.len() <= MAX_ID && value.iter().all(u8::is_ascii_alphanumeric);
        fits.then(|| String::from_utf8_lossy(value).into_owned())
    };
    fields(start, whole).filter_map(id).take(MAX_DECISIONS).collect()
}

/// The start of a message without the fields of these stamps, each taken away
/// once.
pub fn without(start: &[u8], whole: bool, stamps: &[Vec<u8>]) -> Vec<u8> {
    let mut known: Vec<&[u8]> = stamps.iter().flat_map(|s| fields(s, true)).collect();
    let mut out = Vec::with_capacity(start.len());
    let mut seen = 0;
    for field in fields(start, whole) {
        seen += field.len();
        if is_ours(field)
            && let Some(at) = known.iter().position(|k| *k == field)
        {
            known.swap_remove(at);
            continue;
        }
        out.extend_from_slice(field);
    }
    out.extend_from_slice(&start[seen..]);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAMP: &[u8] =
        b"X-Tollgate-Lane: queue\r\nX-Tollgate-Signals: ask\r\n deadline\r\nX-Tollgate-Decision: 00ff\r\n";

    fn taken(message: &[u8]) -> String {
        String::from_utf8(without(message, true, &[STAMP.to_vec()])).unwrap()
    }

    #[test]
    fn a_stamp_goes_and_what_the_client_added_stays() {
        let original = "From: a@example.org\r\nSubject: x\r\n\r\nX-Tollgate-Lane: queue\r\n";
        let shown = [STAMP, original.as_bytes()].concat();
        assert_eq!(decisions(&shown, true), ["00ff"]);
        assert_eq!(taken(&shown), original);
        let tuid = [b"X-TUID: abc\r\n", STAMP, b"X-TUID: abc\r\n", original.as_bytes()].concat();
        assert_eq!(taken(&tuid), format!("X-TUID: abc\r\nX-TUID: abc\r\n{original}"));
    }

    #[test]
    fn what_differs_in_one_octet_stays_and_a_second_copy_too() {
        for other in [
            "x-tollgate-lane: queue\r\n",
            "X-Tollgate-Lane: push\r\n",
            "X-Tollgate-Lane: queue\n",
            "X-Tollgate-Lane: queue\r\n more\r\n",
            "X-Tollgate-Signals: ask deadline\r\n",
            "X-Outsider-Lane: queue\r\n",
            " X-Tollgate-Lane: queue\r\n",
        ] {
            let message = format!("A: b\r\n{other}\r\nbody");
            assert_eq!(taken(message.as_bytes()), message, "{other:?}");
        }
        let twice = [STAMP, STAMP, b"\r\n"].concat();
        assert_eq!(taken(&twice).as_bytes(), [STAMP, b"\r\n"].concat());
    }

    #[test]
    fn no_name_of_a_decision_is_longer_or_odder_than_ours() {
        let long = format!("X-Tollgate-Decision: {}\r\n\r\n", "a".repeat(65));
        for message in [&long[..], "X-Tollgate-Decision: a\0b\r\n\r\n", "X-Tollgate-Decision: \r\n\r\n", "A: b\r\n\r\n"]
        {
            assert!(decisions(message.as_bytes(), true).is_empty(), "{message:?}");
        }
        let many = "X-Tollgate-Decision: a\r\n".repeat(9);
        assert_eq!(decisions(many.as_bytes(), true).len(), MAX_DECISIONS);
    }

    #[test]
    fn the_end_of_the_header_is_seen() {
        for (start, over) in [
            (&b"\r\nbody"[..], true),
            (b"\n", true),
            (b"A: b\r\n\r\n", true),
            (b"A: b\n\nc", true),
            (b"A: b\r\n", false),
            (b"", false),
        ] {
            for searched in 0..=start.len() {
                let before = holds_header(&start[..searched], 0);
                assert_eq!(before || holds_header(start, searched), over, "{start:?} {searched}");
            }
        }
    }

    proptest! {
        /// Whatever stands around it, octets that aren't the stamp's stay.
        #[test]
        fn only_the_stamp_goes(before in "([A-Z]: [a-z ]{0,9}\r\n){0,3}", after in "([A-Z]: [a-z ]{0,9}\r\n){0,3}(\r\n[a-z]{0,9})?") {
            let message = [before.as_bytes(), STAMP, after.as_bytes()].concat();
            prop_assert_eq!(taken(&message), format!("{before}{after}"));
        }

        /// A prefix changes no octet but those of whole stamp fields in it.
        #[test]
        fn a_cut_anywhere_takes_whole_fields_only(cut in 0usize..140) {
            let message = [b"A: b\r\n", STAMP, b"B: c\r\n\r\nbody and more of the body"].concat();
            let cut = cut.min(message.len());
            let out = [without(&message[..cut], false, &[STAMP.to_vec()]), message[cut..].to_vec()].concat();
            let left: Vec<u8> = fields(STAMP, true).filter(|f| memchr::memmem::find(&out, f).is_some()).flatten().copied().collect();
            prop_assert_eq!(out, [b"A: b\r\n", &left[..], b"B: c\r\n\r\nbody and more of the body"].concat());
        }

        /// Arbitrary octets never panic, and without stamps nothing changes.
        #[test]
        fn octets_without_a_stamp_stay(octets in prop::collection::vec(prop::sample::select(b"A: \r\n\tx".to_vec()), 0..60), whole: bool) {
            prop_assert_eq!(without(&octets, whole, &[STAMP.to_vec()]), octets);
        }
    }
}
