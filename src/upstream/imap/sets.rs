//! UID sets in response codes (RFC 4315 §3).
//!
//! Promises: expanding a set costs at most [`MAX_SET_UIDS`] numbers, whatever
//! the server writes. Doesn't know: whether the UIDs exist.

use super::untagged::number;

/// Most UIDs that a set is expanded to.
pub const MAX_SET_UIDS: usize = 1_000_000;

/// `APPENDUID uidvalidity uid`.
pub fn parse_appenduid(code: &[u8]) -> Option<(u32, u32)> {
    let [name, validity, uid] = words(code)?;
    if !name.eq_ignore_ascii_case(b"APPENDUID") {
        return None;
    }
    Some((uid_of(validity)?, uid_of(uid)?))
}

/// `COPYUID uidvalidity source-set destination-set`, as pairs in order. `None`
/// also where the sets differ in length, because then nothing says which copy
/// is whose.
pub fn parse_copyuid(code: &[u8]) -> Option<(u32, Vec<u32>, Vec<u32>)> {
    let [name, validity, source, destination] = words(code)?;
    if !name.eq_ignore_ascii_case(b"COPYUID") {
        return None;
    }
    let (source, destination) = (expand_set(source)?, expand_set(destination)?);
    (source.len() == destination.len()).then_some((uid_of(validity)?, source, destination))
}

/// Expands a set of UIDs in the order written, without `*`; `5:3` is 3, 4, 5.
/// `None` where it isn't one or holds more than [`MAX_SET_UIDS`].
pub fn expand_set(set: &[u8]) -> Option<Vec<u32>> {
    let mut uids = Vec::new();
    for range in set.split(|&b| b == b',') {
        let mut ends = range.splitn(2, |&b| b == b':');
        let first = uid_of(ends.next()?)?;
        let last = ends.next().map_or(Some(first), uid_of)?;
        let (low, high) = (first.min(last), first.max(last));
        if (high - low) as usize >= MAX_SET_UIDS - uids.len() {
            return None;
        }
        uids.extend(low..=high);
    }
    Some(uids)
}

fn words<const N: usize>(text: &[u8]) -> Option<[&[u8]; N]> {
    let words: Vec<&[u8]> = text.split(|&b| b == b' ').filter(|word| !word.is_empty()).collect();
    words.try_into().ok()
}

/// RFC 9051 §9: nz-number.
fn uid_of(text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    u32::try_from(number(text)?).ok().filter(|&n| n > 0)
}
