//! Address ranges of an entry, and which of the wanted addresses lie in them.

use std::ops::Range;

use gimli::{AttributeSpecification, AttributeValue, EntriesRaw, UnitRef};

use crate::dwarf::budget::Budget;
use crate::dwarf::side::Value;
use crate::dwarf::store::Bytes;

/// More ranges than any function has: an entry's list is read up to here.
const MAX_RANGES: usize = 1 << 16;

/// The attributes of an entry that say where its code is and what else this crate needs of it.
#[derive(Default)]
pub(crate) struct Attributes<'a> {
    low: Option<Value<'a>>,
    high: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    /// Offset of the next entry that isn't a child.
    pub sibling: Option<gimli::UnitOffset>,
    /// File of an inlined call.
    pub call_file: Option<u64>,
    /// Line of an inlined call.
    pub call_line: u32,
}

impl<'a> Attributes<'a> {
    /// Reads the attributes of the entry that `entries` is at.
    pub fn read(
        entries: &mut EntriesRaw<'_, Bytes<'a>>,
        specs: &[AttributeSpecification],
    ) -> gimli::Result<Self> {
        let mut found = Self::default();
        for &spec in specs {
            let attribute = entries.read_attribute(spec)?;
            match attribute.name() {
                gimli::DW_AT_low_pc => found.low = Some(attribute.value()),
                gimli::DW_AT_high_pc => found.high = Some(attribute.value()),
                gimli::DW_AT_ranges => found.ranges = Some(attribute.value()),
                gimli::DW_AT_sibling => {
                    if let AttributeValue::UnitRef(offset) = attribute.value() {
                        found.sibling = Some(offset);
                    }
                }
                gimli::DW_AT_call_file => {
                    found.call_file = match attribute.value() {
                        AttributeValue::FileIndex(index) => Some(index),
                        value => value.udata_value(),
                    };
                }
                gimli::DW_AT_call_line => {
                    let line = attribute.udata_value().unwrap_or(0);
                    found.call_line = u32::try_from(line).unwrap_or(0);
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Whether there is anything that could be code.
    pub fn has_code(&self) -> bool {
        self.ranges.is_some() || self.low.is_some()
    }

    /// The ranges of the entry, each with its end after its begin.
    pub fn ranges(&self, unit: UnitRef<'_, Bytes<'a>>, budget: &Budget) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        if let Some(ranges) = &self.ranges {
            let Ok(Some(mut list)) = unit.attr_ranges(*ranges) else { return found };
            while let Ok(Some(range)) = list.next() {
                if !budget.pay(1) || found.len() >= MAX_RANGES {
                    break;
                }
                found.push(range.begin..range.end);
            }
        } else if let Some(low) = self.low.and_then(|low| unit.attr_address(low).ok().flatten()) {
            let high = match self.high {
                Some(AttributeValue::Addr(high)) => Some(high),
                Some(AttributeValue::DebugAddrIndex(index)) => unit.address(index).ok(),
                Some(size) => size.udata_value().and_then(|size| low.checked_add(size)),
                None => None,
            };
            found.extend(high.map(|high| low..high));
        }
        found.retain(|range| range.start < range.end);
        found
    }

    /// The entry's first address as stated by itself: that of the function's hot part.
    pub fn entry(&self, unit: UnitRef<'_, Bytes<'a>>) -> Option<u64> {
        unit.attr_address(self.low?).ok().flatten()
    }
}

/// The indices of the `wanted` addresses (in order) that lie in `range`.
pub(crate) fn within(wanted: &[u64], range: &Range<u64>) -> Range<usize> {
    let start = wanted.partition_point(|&address| address < range.start);
    let length = wanted[start..].partition_point(|&address| address < range.end);
    start..start + length
}
