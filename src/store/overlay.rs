//! The pending changes of one work function over an open transaction.
//!
//! Promises: a reader of the overlay sees the base with the changes merged,
//! in order, without copying more than it returns; dropping the overlay
//! leaves the base as it was. Doesn't know: what the base is.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::{Pair, Reader, StoreError, Table, Visit, Writer};

/// Which pairs of a table are visited.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'s> {
    /// What every key starts with.
    pub(super) prefix: &'s [u8],
    /// The least key.
    pub(super) from: &'s [u8],
}

impl Span<'_> {
    /// The least key that can be in the span.
    pub(super) fn start(&self) -> &[u8] {
        self.prefix.max(self.from)
    }

    /// The least key above every key that starts with the prefix; `None`
    /// where there is none (empty, or all octets 0xff).
    pub(super) fn end(&self) -> Option<Vec<u8>> {
        let kept = self.prefix.iter().rposition(|octet| *octet != u8::MAX)?;
        let mut end = self.prefix[..=kept].to_vec();
        end[kept] += 1;
        Some(end)
    }

    /// Whether no key can be in the span.
    pub(super) fn is_empty(&self) -> bool {
        self.end().is_some_and(|end| self.start() >= end.as_slice())
    }
}

/// What lies under an overlay.
pub(super) trait Base {
    /// The value of a key.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;
    /// Visits the pairs of a span, ascending.
    fn each(&self, table: Table, span: Span<'_>, visit: Visit<'_>) -> Result<(), StoreError>;
    /// Visits the pairs of a span, descending.
    fn each_back(&self, table: Table, span: Span<'_>, visit: Visit<'_>) -> Result<(), StoreError>;
}

/// Changes of one table; `None` is a removal.
pub(super) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A base with pending changes.
pub(super) struct Overlay<'b> {
    base: &'b dyn Base,
    changed: BTreeMap<Table, Changes>,
}

impl<'b> Overlay<'b> {
    /// No changes yet.
    pub(super) fn new(base: &'b dyn Base) -> Overlay<'b> {
        Overlay { base, changed: BTreeMap::new() }
    }

    /// The changes, by table.
    pub(super) fn into_changes(self) -> BTreeMap<Table, Changes> {
        self.changed
    }
}

impl Reader for Overlay<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.changed.get(&table).and_then(|changes| changes.get(key)) {
            Some(change) => Ok(change.clone()),
            None => self.base.get(table, key),
        }
    }

    fn visit(&self, table: Table, prefix: &[u8], from: &[u8], visit: Visit<'_>) -> Result<(), StoreError> {
        let span = Span { prefix, from };
        if span.is_empty() {
            return Ok(());
        }
        let none = Changes::new();
        let changes = self.changed.get(&table).unwrap_or(&none);
        let mut pending =
            changes.range(span.start().to_vec()..).take_while(|(key, _)| key.starts_with(prefix)).peekable();
        let mut go_on = ControlFlow::Continue(());
        self.base.each(table, span, &mut |key, value| {
            while let Some((new, change)) = pending.next_if(|(new, _)| new.as_slice() < key) {
                if let Some(value) = change {
                    go_on = visit(new, value);
                    go_on?;
                }
            }
            go_on = match pending.next_if(|(new, _)| new.as_slice() == key) {
                Some((_, Some(value))) => visit(key, value),
                Some((_, None)) => ControlFlow::Continue(()),
                None => visit(key, value),
            };
            go_on
        })?;
        let rest = pending.filter_map(|(key, change)| change.as_ref().map(|value| (key, value)));
        if go_on.is_continue() {
            // Whether it was broken off matters to nobody any more.
            let _ = rest.into_iter().try_for_each(|(key, value)| visit(key, value));
        }
        Ok(())
    }

    fn scan(&self, table: Table, prefix: &[u8], from: &[u8], limit: usize) -> Result<Vec<Pair>, StoreError> {
        let mut out = Vec::new();
        if limit == 0 {
            return Ok(out);
        }
        self.visit(table, prefix, from, &mut |key, value| {
            out.push((key.to_vec(), value.to_vec()));
            if out.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(out)
    }

    fn last(&self, table: Table, prefix: &[u8]) -> Result<Option<Pair>, StoreError> {
        let none = Changes::new();
        let changes = self.changed.get(&table).unwrap_or(&none);
        let span = Span { prefix, from: &[] };
        let mut stored = None;
        self.base.each_back(table, span, &mut |key, value| {
            if changes.contains_key(key) {
                return ControlFlow::Continue(());
            }
            stored = Some((key.to_vec(), value.to_vec()));
            ControlFlow::Break(())
        })?;
        let pending = changes
            .range(prefix.to_vec()..)
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter_map(|(key, change)| change.clone().map(|value| (key.clone(), value)))
            .last();
        Ok(stored.max(pending))
    }
}

impl Writer for Overlay<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.changed.entry(table).or_default().insert(key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        self.changed.entry(table).or_default().insert(key.to_vec(), None);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
