//! Address ranges of an entry, and the wanted addresses within them.

use std::ops::Range;

use gimli::UnitRef;

use crate::dwarf::budget::Budget;
use crate::dwarf::bytes::Bytes;
use crate::dwarf::entries::Attributes;

/// Largest number of ranges read per entry: more than any function has.
const MAX_RANGES: usize = 1 << 16;

/// Replaces the contents of `found` by the ranges of an entry with these attributes; empty ones are left out.
pub(crate) fn ranges(
    attributes: &Attributes,
    unit: UnitRef<'_, Bytes<'_>>,
    budget: &Budget,
    found: &mut Vec<Range<u64>>,
) {
    found.clear();
    if let Some(list) = attributes.list() {
        let Ok(Some(mut list)) = unit.attr_ranges(list) else { return };
        while let Ok(Some(range)) = list.next() {
            if !budget.pay(1) || found.len() >= MAX_RANGES {
                break;
            }
            found.push(range.begin..range.end);
        }
    } else if let Some((low, high)) = attributes.range(unit) {
        found.push(low..high);
    }
    found.retain(|range| range.start < range.end);
}

/// Returns the indices of the `wanted` addresses (sorted) that lie in `range`.
pub(crate) fn within(wanted: &[u64], range: &Range<u64>) -> Range<usize> {
    let start = wanted.partition_point(|&address| address < range.start);
    let length = wanted[start..].partition_point(|&address| address < range.end);
    start..start + length
}
