//! Source files and lines of addresses, in one pass over a unit's line program.
//!
//! Rows are compared with the wanted addresses as they come and never stored: a large unit has a million of them.

use gimli::UnitRef;

use crate::dwarf::budget::Budget;
use crate::dwarf::store::Bytes;

/// A row that covers a wanted address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// Number of the file in the unit's line table.
    pub file: u64,
    /// Line counted from 1, 0 for code that belongs to no line.
    pub line: u32,
}

/// For each of the `wanted` addresses (in order) the row that covers it. Sequences that begin below `lowest`, where
/// the file has no code, belong to functions that the linker dropped.
pub(crate) fn rows(
    unit: UnitRef<'_, Bytes<'_>>,
    wanted: &[u64],
    lowest: u64,
    budget: &Budget,
) -> Vec<Option<Row>> {
    let mut found = vec![None; wanted.len()];
    let Some(program) = unit.line_program.clone() else { return found };
    let mut rows = program.rows();
    let mut last: Option<(u64, Row)> = None;
    // The first wanted address that isn't below the last row's.
    let mut next = 0;
    while let Ok(Some((_, row))) = rows.next_row() {
        if !budget.pay(1) {
            break;
        }
        let address = row.address();
        match last {
            Some((from, covering)) if from < address && from >= lowest => {
                if wanted.get(next).is_some_and(|&wanted| wanted < from) {
                    next = wanted.partition_point(|&wanted| wanted < from);
                }
                while let Some(&hit) = wanted.get(next).filter(|&&wanted| wanted < address) {
                    debug_assert!(hit >= from);
                    found[next].get_or_insert(covering);
                    next += 1;
                }
            }
            _ => {}
        }
        if row.end_sequence() {
            last = None;
            next = 0;
            continue;
        }
        if last.is_none() {
            next = wanted.partition_point(|&wanted| wanted < address);
        }
        let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
        last = Some((address, Row { file: row.file_index(), line }));
    }
    found
}
