//! Address ranges of an entry, and which of the wanted addresses lie in them.

use std::ops::Range;

use gimli::UnitRef;

use crate::dwarf::budget::Budget;
use crate::dwarf::bytes::Bytes;
use crate::dwarf::entries::Attributes;

/// More ranges than any function has: an entry's list is read up to here.
const MAX_RANGES: usize = 1 << 16;

/// Puts the ranges of an entry with these attributes into `found`, each with its end after its begin.
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

/// The indices of the `wanted` addresses (in order) that lie in `range`.
pub(crate) fn within(wanted: &[u64], range: &Range<u64>) -> Range<usize> {
    let start = wanted.partition_point(|&address| address < range.start);
    let length = wanted[start..].partition_point(|&address| address < range.end);
    start..start + length
}
