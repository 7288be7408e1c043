//! Assigns addresses to functions and to the calls inlined into them.
//!
//! One pass over the entries of a unit finds its functions; another over each function with a wanted address finds its
//! inlined calls. Both results are kept.

use std::collections::HashMap;
use std::rc::Rc;

use gimli::{UnitOffset, UnitRef};

use crate::boundaries::Boundaries;
use crate::dwarf::budget::Budget;
use crate::dwarf::bytes::{Bytes, Unit};
use crate::dwarf::calls::Calls;
use crate::dwarf::entries::Entries;
use crate::dwarf::ranges::ranges;
use crate::dwarf::shapes::Shapes;
use crate::dwarf::spans::Spans;

/// A function that contains a wanted address.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    /// Offset of its entry.
    pub entry: UnitOffset,
    /// First address.
    pub start: u64,
    /// Number of the innermost inlined call at the address, if any.
    pub innermost: Option<u32>,
    /// The calls inlined into it.
    pub calls: Rc<Calls>,
}

/// The functions of a unit, scanned on first use.
pub(crate) struct Functions {
    shapes: Shapes,
    outer: Option<Found>,
    all: Option<Found>,
    calls: HashMap<UnitOffset, Rc<Calls>>,
}

/// Functions that a pass found.
struct Found {
    spans: Spans,
    /// The function of each span.
    functions: Vec<Function>,
}

#[derive(Clone, Copy)]
struct Function {
    entry: UnitOffset,
    start: u64,
}

impl Functions {
    /// Creates it for `unit`; later calls must pass the same one.
    pub fn new(unit: &Unit<'_>) -> Self {
        Self { shapes: Shapes::new(&unit.abbreviations), outer: None, all: None, calls: HashMap::new() }
    }

    /// Returns the functions of `unit` that contain the `wanted` addresses (sorted).
    pub fn find(
        &mut self,
        unit: UnitRef<'_, Bytes<'_>>,
        wanted: &[u64],
        budget: &Budget,
    ) -> Vec<Option<Hit>> {
        let shapes = &mut self.shapes;
        let outer = self.outer.get_or_insert_with(|| Found::scan(unit, shapes, Skip::Bodies, budget));
        let mut found: Vec<_> = wanted.iter().map(|&address| outer.at(address, budget)).collect();
        if found.iter().any(Option::is_none) {
            // Functions nested in functions (GNU C, Ada) or in types (Rust) are so rare that they are searched only if
            // an address was not found.
            let all = self.all.get_or_insert_with(|| Found::scan(unit, shapes, Skip::Nothing, budget));
            for (found, &address) in found.iter_mut().zip(wanted).filter(|(found, _)| found.is_none()) {
                *found = all.at(address, budget);
            }
        }
        let mut by_entry: Vec<(UnitOffset, usize)> = Vec::with_capacity(found.len());
        by_entry.extend(found.iter().enumerate().filter_map(|(index, found)| Some(((*found)?.entry, index))));
        by_entry.sort_unstable();
        let mut hits = vec![None; wanted.len()];
        for of_one in by_entry.chunk_by(|one, other| one.0 == other.0) {
            let entry = of_one[0].0;
            let calls = self.calls.entry(entry);
            let calls = calls.or_insert_with(|| Rc::new(Calls::read(unit, shapes, entry, budget)));
            let addresses: Vec<u64> = of_one.iter().map(|&(_, index)| wanted[index]).collect();
            for (&(_, index), innermost) in of_one.iter().zip(calls.innermost(&addresses)) {
                let start = found[index].map_or(0, |function| function.start);
                hits[index] = Some(Hit { entry, start, innermost, calls: Rc::clone(calls) });
            }
        }
        hits
    }
}

impl Functions {
    /// Adds the bounds of all functions of `unit` and of the calls inlined into them.
    pub fn boundaries(&mut self, unit: UnitRef<'_, Bytes<'_>>, budget: &Budget, boundaries: &mut Boundaries) {
        let shapes = &mut self.shapes;
        let all = self.all.get_or_insert_with(|| Found::scan(unit, shapes, Skip::Nothing, budget));
        boundaries.extend(all.spans.bounds());
        for entry in all.functions.iter().map(|function| function.entry) {
            self.calls.entry(entry).or_insert_with(|| {
                let calls = Calls::read(unit, shapes, entry, budget);
                boundaries.extend(calls.bounds());
                Rc::new(calls)
            });
        }
    }
}

/// The entries that a scan skips, if they have sibling references.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skip {
    /// Children of functions and types.
    Bodies,
    Nothing,
}

impl Found {
    /// Finds the functions of a unit.
    fn scan(unit: UnitRef<'_, Bytes<'_>>, shapes: &mut Shapes, skip: Skip, budget: &Budget) -> Self {
        let mut functions = Vec::new();
        let mut found = Vec::new();
        let mut here = Vec::new();
        let mut entries = Entries::new(unit, shapes, None);
        while let Some(entries) = &mut entries
            && let Some(entry) = entries.next().filter(|_| budget.pay(1))
        {
            let is_type = matches!(
                entry.tag,
                gimli::DW_TAG_structure_type
                    | gimli::DW_TAG_class_type
                    | gimli::DW_TAG_union_type
                    | gimli::DW_TAG_enumeration_type
            );
            if !is_type && entry.tag != gimli::DW_TAG_subprogram {
                continue;
            }
            let attributes = entries.attributes();
            if !is_type && attributes.has_code() {
                ranges(attributes, unit, budget, &mut here);
                if !budget.pay_for_kept(here.len()) {
                    break;
                }
                let stated = attributes.entry(unit).filter(|&start| start != 0);
                if let Some(start) = stated.or(here.first().map(|range| range.start)) {
                    functions.resize(functions.len() + here.len(), Function { entry: entry.offset, start });
                    found.append(&mut here);
                }
            }
            if skip == Skip::Bodies {
                entries.skip_children();
            }
        }
        Self { spans: Spans::new(found.into_iter()), functions }
    }

    /// Returns the smallest function at an address.
    fn at(&self, address: u64, budget: &Budget) -> Option<Function> {
        // If equal, the first.
        let smallest = self.spans.at(address, budget).min_by_key(|&(number, size)| (size, number));
        Some(self.functions[smallest?.0])
    }
}
