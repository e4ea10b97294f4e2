use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A base held in memory.
#[derive(Default)]
struct Memory(BTreeMap<Vec<u8>, Vec<u8>>);

impl Memory {
    fn visit<'m>(pairs: impl Iterator<Item = (&'m Vec<u8>, &'m Vec<u8>)>, span: Span<'_>, visit: Visit<'_>) {
        for (key, value) in pairs.filter(|(key, _)| key.starts_with(span.prefix) && key.as_slice() >= span.from) {
            if visit(key, value).is_break() {
                break;
            }
        }
    }
}

impl Base for Memory {
    fn get(&self, _: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.get(key).cloned())
    }
    fn each(&self, _: Table, span: Span<'_>, visit: Visit<'_>) -> Result<(), StoreError> {
        Memory::visit(self.0.iter(), span, visit);
        Ok(())
    }
    fn each_back(&self, _: Table, span: Span<'_>, visit: Visit<'_>) -> Result<(), StoreError> {
        Memory::visit(self.0.iter().rev(), span, visit);
        Ok(())
    }
}

/// Short keys over few octets, so that keys, prefixes and ends meet often.
fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0_u8), Just(1), Just(0xfe), Just(0xff)], 0..4)
}

proptest! {
    #[test]
    fn an_overlay_reads_as_if_the_changes_were_made(
        base in vec((key(), 0_u8..4), 0..12),
        changes in vec((key(), proptest::option::of(0_u8..4)), 0..12),
        prefix in key(),
        from in key(),
        limit in 0_usize..8,
    ) {
        let base = Memory(base.into_iter().map(|(k, v)| (k, vec![v])).collect());
        let mut model = base.0.clone();
        let mut overlay = Overlay::new(&base);
        for (key, change) in changes {
            match change {
                Some(value) => {
                    overlay.put(Table::Hold, &key, &[value]).unwrap();
                    model.insert(key, vec![value]);
                }
                None => {
                    overlay.delete(Table::Hold, &key).unwrap();
                    model.remove(&key);
                }
            }
        }
        let within: Vec<Pair> = model.clone().into_iter().filter(|(k, _)| k.starts_with(&prefix)).collect();
        let expected: Vec<Pair> = within.iter().filter(|(k, _)| *k >= from).take(limit).cloned().collect();
        prop_assert_eq!(overlay.scan(Table::Hold, &prefix, &from, limit).unwrap(), expected);
        prop_assert_eq!(overlay.last(Table::Hold, &prefix).unwrap(), within.last().cloned());
        prop_assert_eq!(overlay.get(Table::Hold, &from).unwrap(), model.get(&from).cloned());
        prop_assert_eq!(overlay.scan(Table::Web, b"", b"", 1).unwrap(), base.0.clone().into_iter().take(1).collect::<Vec<_>>());
    }

    #[test]
    fn a_span_holds_exactly_the_keys_between_its_ends(prefix in key(), from in key(), probe in key()) {
        let span = Span { prefix: &prefix, from: &from };
        let inside = probe.starts_with(&prefix) && probe >= from;
        let below_end = span.end().is_none_or(|end| probe < end);
        prop_assert_eq!(inside, probe.as_slice() >= span.start() && below_end);
        prop_assert!(!(inside && span.is_empty()));
    }
}
