//! Which function, and which calls inlined into it, wanted addresses belong to.
//!
//! One pass over the entries of a unit finds where its functions are, and one over each that holds a wanted address its
//! inlined calls. Nothing is recursive, so that nesting can't exhaust the stack.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use gimli::{UnitOffset, UnitRef};

use crate::dwarf::budget::Budget;
use crate::dwarf::ranges::{Attributes, within};
use crate::dwarf::store::Bytes;

/// Deepest nesting of inlined calls; compilers stay below 100.
const MAX_INLINED: usize = 512;

/// A function that holds a wanted address.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    /// Its entry.
    pub entry: UnitOffset,
    /// Its first address.
    pub start: u64,
    /// The innermost call that was inlined there.
    pub inlined: Option<Rc<Inlined>>,
    /// Bytes of the range that it was found by: where several contain an address, the smallest holds.
    size: u64,
    /// The same for `inlined`.
    inlined_size: u64,
}

/// An inlined call.
#[derive(Debug)]
pub(crate) struct Inlined {
    /// Its entry.
    pub entry: UnitOffset,
    /// File of the call, by its number in the unit's line table.
    pub call_file: Option<u64>,
    /// Line of the call, 0 if not known.
    pub call_line: u32,
    /// The inlined call that this one is inside of.
    pub outer: Option<Rc<Inlined>>,
    depth: usize,
}

/// Where the functions of a unit are, found out when first asked.
#[derive(Default)]
pub(crate) struct Functions {
    outer: OnceCell<Vec<Function>>,
    all: OnceCell<Vec<Function>>,
}

/// One range of a function.
struct Function {
    range: Range<u64>,
    entry: UnitOffset,
    start: u64,
}

impl Functions {
    /// The functions of `unit` that the `wanted` addresses (in order) belong to.
    pub fn find(&self, unit: UnitRef<'_, Bytes<'_>>, wanted: &[u64], budget: &Budget) -> Vec<Option<Hit>> {
        let mut hits = vec![None; wanted.len()];
        let functions = |skip| {
            let mut functions = Vec::new();
            // Damage ends the list; what comes before is used.
            let _ = scan(unit, budget, skip, &mut functions);
            functions
        };
        note_functions(self.outer.get_or_init(|| functions(Skip::Bodies)), wanted, &mut hits);
        if hits.iter().any(Option::is_none) {
            // Functions within functions (GNU C, Ada) or within types (Rust) are rare enough to look for only when
            // something was not found.
            let mut thorough = vec![None; wanted.len()];
            note_functions(self.all.get_or_init(|| functions(Skip::Nothing)), wanted, &mut thorough);
            for (hit, found) in hits.iter_mut().zip(thorough) {
                if hit.is_none() {
                    *hit = found;
                }
            }
        }
        let mut entries: Vec<UnitOffset> = hits.iter().flatten().map(|hit| hit.entry).collect();
        entries.sort_unstable();
        entries.dedup();
        for entry in entries {
            let _ = inlined(unit, wanted, budget, entry, &mut hits);
        }
        hits
    }
}

/// Notes each function for the wanted addresses that it holds.
fn note_functions(functions: &[Function], wanted: &[u64], hits: &mut [Option<Hit>]) {
    for function in functions {
        let size = function.range.end - function.range.start;
        for index in within(wanted, &function.range) {
            if hits[index].as_ref().is_none_or(|hit| size < hit.size) {
                let (entry, start) = (function.entry, function.start);
                hits[index] = Some(Hit { entry, start, inlined: None, size, inlined_size: u64::MAX });
            }
        }
    }
}

/// What a scan passes over, where the compiler said how long it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skip {
    /// Children of functions and of types.
    Bodies,
    Nothing,
}

/// Finds the ranges of the functions of a unit.
fn scan(
    unit: UnitRef<'_, Bytes<'_>>,
    budget: &Budget,
    skip: Skip,
    functions: &mut Vec<Function>,
) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() && budget.pay(1) {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        let skippable = matches!(
            abbreviation.tag(),
            gimli::DW_TAG_subprogram
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_enumeration_type
        );
        if !skippable {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let attributes = Attributes::read(&mut entries, abbreviation.attributes())?;
        if abbreviation.tag() == gimli::DW_TAG_subprogram && attributes.has_code() {
            let ranges = attributes.ranges(unit, budget);
            let stated = attributes.entry(unit).filter(|&start| start != 0);
            if !budget.pay_for_kept(ranges.len()) {
                break;
            }
            if let Some(start) = stated.or(ranges.first().map(|range| range.start)) {
                functions.extend(ranges.into_iter().map(|range| Function { range, entry: offset, start }));
            }
        }
        let after = entries.next_offset();
        match attributes.sibling {
            // Only ever forwards, so that the scan ends.
            Some(sibling) if skip == Skip::Bodies && abbreviation.has_children() && sibling > after => {
                entries = unit.entries_raw(Some(sibling))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Finds the inlined calls in the function at `entry` for the addresses that it was noted for.
fn inlined(
    unit: UnitRef<'_, Bytes<'_>>,
    wanted: &[u64],
    budget: &Budget,
    function: UnitOffset,
    hits: &mut [Option<Hit>],
) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(Some(function))?;
    let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(()) };
    entries.skip_attributes(abbreviation.attributes())?;
    // Inlined calls around the current entry, with the depth of each.
    let mut around: Vec<(isize, Rc<Inlined>)> = Vec::new();
    while !entries.is_empty() && entries.next_depth() > 0 && budget.pay(1) {
        let depth = entries.next_depth();
        let entry = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        while around.last().is_some_and(|&(outer, _)| outer >= depth) {
            around.pop();
        }
        if abbreviation.tag() != gimli::DW_TAG_inlined_subroutine {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let attributes = Attributes::read(&mut entries, abbreviation.attributes())?;
        let outer = around.last().map(|(_, outer)| Rc::clone(outer));
        let level = outer.as_ref().map_or(1, |outer| outer.depth + 1);
        if level > MAX_INLINED {
            continue;
        }
        let Attributes { call_file, call_line, .. } = attributes;
        let call = Rc::new(Inlined { entry, call_file, call_line, outer, depth: level });
        for range in attributes.ranges(unit, budget) {
            note(wanted, function, &range, &call, hits);
        }
        around.push((depth, call));
    }
    Ok(())
}

/// Notes an inlined call for the addresses in `range`, where it is the innermost so far.
fn note(
    wanted: &[u64],
    function: UnitOffset,
    range: &Range<u64>,
    call: &Rc<Inlined>,
    hits: &mut [Option<Hit>],
) {
    let size = range.end - range.start;
    for index in within(wanted, range) {
        let Some(hit) = hits[index].as_mut().filter(|hit| hit.entry == function) else { continue };
        if size <= hit.inlined_size {
            hit.inlined = Some(Rc::clone(call));
            hit.inlined_size = size;
        }
    }
}
