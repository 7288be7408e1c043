//! The calls inlined into a function: [`Calls`], read once and queried for any number of addresses.
//!
//! Nothing is recursive, so nesting cannot exhaust the stack.

use std::ops::Range;

use gimli::{UnitOffset, UnitRef};

use crate::dwarf::budget::Budget;
use crate::dwarf::bytes::Bytes;
use crate::dwarf::entries::{Entries, Origin};
use crate::dwarf::ranges::{ranges, within};
use crate::dwarf::shapes::Shapes;

/// Deepest nesting of inlined calls; compilers stay below 100.
const MAX_INLINED: u32 = 512;

/// The inlined calls of a function.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    /// Address ranges with the numbers of their calls, outer before inner.
    ranges: Vec<(Range<u64>, u32)>,
}

/// An inlined call.
#[derive(Debug)]
pub(crate) struct Call {
    /// Offset of its entry.
    pub entry: UnitOffset,
    /// The function that it is a copy of, if known.
    pub origin: Option<Origin>,
    /// File of the call, by its number in the unit's line table.
    pub file: Option<u64>,
    /// Line of the call, 0 if not known.
    pub line: u32,
    /// Number of the enclosing inlined call, always smaller than the call's own.
    outer: Option<u32>,
    /// Nesting depth of the call.
    level: u32,
}

impl Calls {
    /// Reads the calls inlined into the function at `entry`.
    pub fn read(
        unit: UnitRef<'_, Bytes<'_>>,
        shapes: &mut Shapes,
        entry: UnitOffset,
        budget: &Budget,
    ) -> Self {
        let mut found = Self::default();
        let Some(mut entries) = Entries::new(unit, shapes, Some(entry)) else { return found };
        entries.next();
        // Inlined calls around the current entry, with the depth of each.
        let mut around: Vec<(usize, u32)> = Vec::new();
        let mut here = Vec::new();
        while let Some(entry) = entries.next().filter(|entry| entry.depth > 0 && budget.pay(1)) {
            while around.last().is_some_and(|&(outer, _)| outer >= entry.depth) {
                around.pop();
            }
            if entry.tag != gimli::DW_TAG_inlined_subroutine {
                if entry.tag == gimli::DW_TAG_call_site {
                    entries.skip_children();
                }
                continue;
            }
            let outer = around.last().map(|&(_, outer)| outer);
            let level = outer.map_or(1, |outer| found.calls[outer as usize].level + 1);
            if level > MAX_INLINED {
                continue;
            }
            let attributes = entries.attributes();
            ranges(attributes, unit, budget, &mut here);
            if !budget.pay_for_kept(1 + here.len()) {
                break;
            }
            let number = found.calls.len() as u32;
            found.ranges.extend(here.drain(..).map(|range| (range, number)));
            let (origin, file, line) = (attributes.origin(), attributes.call_file(), attributes.call_line());
            found.calls.push(Call { entry: entry.offset, origin, file, line, outer, level });
            around.push((entry.depth, number));
        }
        found
    }

    /// Returns, for each of the `wanted` addresses (sorted), the number of the innermost call: the one with the smallest range
    /// that contains it.
    pub fn innermost(&self, wanted: &[u64]) -> Vec<Option<u32>> {
        let mut found: Vec<Option<(u64, u32)>> = vec![None; wanted.len()];
        for (range, call) in &self.ranges {
            let size = range.end - range.start;
            for index in within(wanted, range) {
                if found[index].is_none_or(|(smallest, _)| size <= smallest) {
                    found[index] = Some((size, *call));
                }
            }
        }
        found.into_iter().map(|found| found.map(|(_, call)| call)).collect()
    }

    /// Returns the start and the end of each range.
    pub fn bounds(&self) -> impl Iterator<Item = u64> {
        self.ranges.iter().flat_map(|(range, _)| [range.start, range.end])
    }

    /// Returns a call and those around it, from the inner to the outer.
    pub fn outwards(&self, innermost: u32) -> impl Iterator<Item = &Call> {
        let call = |number: u32| self.calls.get(number as usize);
        std::iter::successors(call(innermost), move |inner| call(inner.outer?))
    }
}
