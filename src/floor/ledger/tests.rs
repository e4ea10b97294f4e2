use proptest::prelude::*;

use super::*;

fn events() -> Vec<Event> {
    let (hold, account, key) = ("h1".to_owned(), "jo@example.org".to_owned(), "k1".to_owned());
    let (approver, reason) = ("jo".to_owned(), "451".to_owned());
    let (sha256, payload) = (Hash([1; 32]), PayloadHash([2; 32]));
    let (length, attempt) = (u64::MAX, u32::MAX);
    vec![
        Event::KeyAdded { account: account.clone(), key: key.clone(), role: "agent".into() },
        Event::PinSet { account: account.clone() },
        Event::Held { hold: hold.clone(), account: account.clone(), key: key.clone(), sha256, length },
        Event::Approved { hold: hold.clone(), payload, approver: approver.clone() },
        Event::Sending { hold: hold.clone(), attempt },
        Event::Retry { hold: hold.clone(), attempt, reason: reason.clone() },
        Event::Sent { hold: hold.clone(), attempt, payload },
        Event::Failed { hold: hold.clone(), attempt, reason: reason.clone() },
        Event::Unknown { hold: hold.clone(), attempt, reason: reason.clone() },
        Event::Reheld { hold: hold.clone(), again: "h2".into(), approver: approver.clone() },
        Event::Denied { hold: hold.clone(), approver },
        Event::Expired { hold: hold.clone() },
        Event::Withdrawn { hold, reason },
        Event::KeyRevoked { account, key },
        Event::Restored { witnessed: "7:".to_owned() + &"0".repeat(64), open: 3 },
        Event::SigningKey { retired: String::new(), key: "0".repeat(16), public: "AA==".into() },
    ]
}

/// A whole ledger of `count` entries, one second apart.
fn ledger(count: usize) -> Vec<Entry> {
    let events = events();
    let mut entries: Vec<Entry> = Vec::new();
    for n in 0..count {
        let event = events[n % events.len()].clone();
        entries.push(Entry::next(entries.last(), 1_700_000_000 + n as i64, event));
    }
    entries
}

/// Rebuilds the chain from `at` on, as one would who can write the store.
fn rebuild(entries: &mut [Entry], at: usize) {
    for n in at..entries.len() {
        let (before, rest) = entries.split_at_mut(n);
        rest[0] = Entry::next(before.last(), rest[0].time, rest[0].event.clone());
    }
}

#[test]
fn a_whole_ledger_passes_and_says_that_its_tail_is_not_witnessed() {
    let entries = ledger(20);
    let verdict = verify(&entries, None).unwrap();
    assert_eq!(verdict, Verdict { entries: 20, head: Some(entries[19].head()), witnessed: 0 });
    assert!(!verdict.tail_is_witnessed());
    assert!(verdict.to_string().contains("the tail isn't witnessed"), "{verdict}");
}

#[test]
fn a_head_from_elsewhere_witnesses_up_to_itself() {
    let entries = ledger(20);
    let last = verify(&entries, Some(entries[19].head())).unwrap();
    assert!(last.tail_is_witnessed());
    assert_eq!(last.to_string(), "20 entries, chain whole, witnessed to the last");
    let earlier = verify(&entries, Some(entries[9].head())).unwrap();
    assert_eq!((earlier.witnessed, earlier.tail_is_witnessed()), (10, false));
    assert!(earlier.to_string().contains("witnessed to 10; the tail after it isn't witnessed"), "{earlier}");
}

#[test]
fn an_empty_ledger_passes_only_without_a_head() {
    let none: [Entry; 0] = [];
    assert_eq!(verify(&none, None), Ok(Verdict { entries: 0, head: None, witnessed: 0 }));
    assert!(!verify(&none, None).unwrap().tail_is_witnessed());
    let head = ledger(1)[0].head();
    assert_eq!(verify(&none, Some(head)), Err(LedgerError::Truncated { last: 0, witnessed: 1 }));
}

#[test]
fn an_altered_entry_is_found() {
    for n in 0..14 {
        let mut entries = ledger(14);
        entries[n].time += 1;
        assert_eq!(verify(&entries, None), Err(LedgerError::Changed { number: n as u64 + 1 }));
        let mut entries = ledger(14);
        entries[n].event = Event::PinSet { account: "eve@example.net".into() };
        assert_eq!(verify(&entries, None), Err(LedgerError::Changed { number: n as u64 + 1 }));
    }
}

#[test]
fn an_altered_entry_with_a_hash_of_its_own_breaks_the_chain_after_it() {
    let mut entries = ledger(10);
    entries[4].event = Event::Expired { hold: "h9".into() };
    let before = entries[3].clone();
    entries[4] = Entry::next(Some(&before), entries[4].time, entries[4].event.clone());
    assert_eq!(verify(&entries, None), Err(LedgerError::Forked { number: 6 }));
}

#[test]
fn a_rebuilt_ledger_is_found_by_any_head_after_the_change() {
    let entries = ledger(10);
    let mut forged = entries.clone();
    forged[4].event = Event::Expired { hold: "h9".into() };
    rebuild(&mut forged, 4);
    assert!(verify(&forged, None).is_ok(), "without a head nothing can tell");
    assert!(verify(&forged, Some(entries[3].head())).is_ok(), "the head is older than the change");
    for head in &entries[4..] {
        assert_eq!(verify(&forged, Some(head.head())), Err(LedgerError::Forked { number: head.number }));
    }
}

#[test]
fn a_dropped_entry_is_found() {
    for n in 0..9 {
        let mut entries = ledger(10);
        entries.remove(n);
        assert_eq!(verify(&entries, None), Err(LedgerError::Dropped { number: n as u64 + 1 }));
    }
    let mut entries = ledger(10);
    entries.remove(4);
    rebuild(&mut entries, 4);
    let head = ledger(10)[8].head();
    assert_eq!(verify(&entries, Some(head)), Err(LedgerError::Forked { number: 9 }));
}

#[test]
fn swapped_and_repeated_entries_are_found() {
    let mut entries = ledger(10);
    entries.swap(3, 7);
    assert_eq!(verify(&entries, None), Err(LedgerError::Swapped { place: 4, found: 8 }));
    let mut entries = ledger(10);
    entries.insert(5, entries[4].clone());
    assert_eq!(verify(&entries, None), Err(LedgerError::Swapped { place: 6, found: 5 }));
    // Renumbering the swapped ones shows as a change.
    let mut entries = ledger(10);
    entries.swap(3, 7);
    (entries[3].number, entries[7].number) = (4, 8);
    assert_eq!(verify(&entries, None), Err(LedgerError::Changed { number: 4 }));
}

#[test]
fn a_cut_tail_is_found_by_a_head_and_only_by_it() {
    let entries = ledger(10);
    let head = entries[9].head();
    let cut = &entries[..9];
    assert_eq!(verify(cut, Some(head)), Err(LedgerError::Truncated { last: 9, witnessed: 10 }));
    assert!(!verify(cut, None).unwrap().tail_is_witnessed());
}

#[test]
fn a_clock_that_was_set_back_doesnt_take_the_ledger_with_it() {
    let first = Entry::next(None, 100, Event::PinSet { account: "a".into() });
    let second = Entry::next(Some(&first), 50, Event::PinSet { account: "a".into() });
    let third = Entry::next(Some(&second), 101, Event::PinSet { account: "a".into() });
    assert_eq!((first.time, second.time, third.time), (100, 100, 101));
    assert!(verify([&first, &second, &third], None).is_ok());
    let mut back = second.clone();
    back.time = 50;
    back.hash = hash_of(2, 50, back.prev, &back.event);
    assert_eq!(verify([&first, &back], None), Err(LedgerError::Backwards { number: 2 }));
}

#[test]
fn an_entrys_hash_is_of_domain_and_canonical_form() {
    let entry = Entry::next(None, 7, Event::Sending { hold: "h".into(), attempt: 3 });
    let canonical = format!(
        r#"{{"event":{{"attempt":"3","hold":"h","kind":"sending"}},"number":"1","prev":"{}","time":"7"}}"#,
        "0".repeat(64)
    );
    let octets = [DOMAIN, canonical.as_bytes()].concat();
    assert_eq!(entry.hash.0, <[u8; 32]>::from(Sha256::digest(octets)));
}

#[test]
fn every_event_reads_back_and_takes_no_field_that_it_doesnt_know() {
    for entry in ledger(events().len()) {
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
        let more = text.replace(r#""event":{"#, r#""event":{"extra":"x","#);
        assert!(serde_json::from_str::<Entry>(&more).is_err(), "{more}");
        let more = text.replacen('{', r#"{"extra":"x","#, 1);
        assert!(serde_json::from_str::<Entry>(&more).is_err(), "{more}");
    }
}

#[test]
fn a_head_has_one_text() {
    let head = ledger(3)[2].head();
    assert_eq!(head.to_string().parse::<LedgerHead>(), Ok(head));
    assert!(head.to_string().starts_with("3:"));
    for bad in
        ["", "3", "3:", "x:00", &format!("0:{}", head.hash), &format!("+3:{}", head.hash), &format!("03:{}", head.hash)]
    {
        assert_eq!(bad.parse::<LedgerHead>(), Err(NotAHead), "{bad}");
    }
}

/// One act of somebody who can write the store but not the witnessed head.
#[derive(Debug, Clone, Copy)]
enum Tampering {
    Change,
    Drop,
    Swap,
    Repeat,
    Cut,
    Rebuild,
}

proptest! {
    #[test]
    fn no_tampering_passes_a_witnessed_head(
        count in 2_usize..30,
        at in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        tampering in prop::sample::select(vec![
            Tampering::Change, Tampering::Drop, Tampering::Swap, Tampering::Repeat, Tampering::Cut, Tampering::Rebuild,
        ]),
    ) {
        let whole = ledger(count);
        let head = whole[count - 1].head();
        prop_assert!(verify(&whole, Some(head)).unwrap().tail_is_witnessed());
        let (at, other) = (at.index(count), other.index(count));
        let mut entries = whole.clone();
        match tampering {
            Tampering::Change => entries[at].time += 1,
            Tampering::Drop => drop(entries.remove(at)),
            Tampering::Swap => entries.swap(at, other),
            Tampering::Repeat => entries.insert(at, whole[other].clone()),
            Tampering::Cut => entries.truncate(at),
            Tampering::Rebuild => {
                entries[at].time += 1;
                rebuild(&mut entries, at);
            }
        }
        prop_assume!(entries != whole);
        prop_assert!(verify(&entries, Some(head)).is_err(), "{:?} at {} with {}", tampering, at, other);
    }
}
