//! Assigns addresses to units.
//!
//! `.debug_aranges` answers at once if it lists all of them; otherwise every unit's root entry is read.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use gimli::{DebugInfoOffset, UnitRef, UnitSectionOffset, UnitType};

use crate::dwarf::budget::Budget;
use crate::dwarf::bytes::Unit;
use crate::dwarf::entries::Entries;
use crate::dwarf::ranges::{ranges, within};
use crate::dwarf::shapes::Shapes;
use crate::dwarf::side::Side;
use crate::dwarf::spans::Spans;

/// The address ranges of units, read on first use.
#[derive(Default)]
pub(crate) struct Units {
    listed: OnceCell<Listed>,
    others: OnceCell<Vec<(usize, Covers)>>,
}

/// Ranges of units in `.debug_aranges`.
struct Listed {
    spans: Spans,
    /// The offset of each range's unit.
    units: Vec<usize>,
}

/// The address coverage that a unit's root entry states.
enum Covers {
    Ranges(Vec<Range<u64>>),
    /// Not stated (old assemblers): the unit may cover any address that no other claims.
    NotSaid,
}

impl Units {
    /// Returns, for each unit (by the offset of its header), the indices of the `wanted` addresses (sorted) that may be in it.
    pub fn find(&self, side: &Side<'_>, wanted: &[u64], budget: &Budget) -> BTreeMap<usize, Vec<usize>> {
        let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut claimed = vec![false; wanted.len()];
        let listed = self.listed.get_or_init(|| by_table(side, budget));
        for (index, &address) in wanted.iter().enumerate() {
            for (number, _) in listed.spans.at(address, budget) {
                claimed[index] = true;
                found.entry(listed.units[number]).or_default().push(index);
            }
        }
        if !claimed.iter().all(|&claimed| claimed) {
            self.find_others(side, wanted, &claimed, budget, &mut found);
        }
        for indices in found.values_mut() {
            indices.sort_unstable();
            indices.dedup();
        }
        found
    }

    /// Does so for the units that are not listed.
    fn find_others(
        &self,
        side: &Side<'_>,
        wanted: &[u64],
        claimed: &[bool],
        budget: &Budget,
        found: &mut BTreeMap<usize, Vec<usize>>,
    ) {
        let listed = || self.listed.get().map(|listed| &listed.units[..]).unwrap_or_default();
        for (unit, covers) in self.others.get_or_init(|| by_roots(side, listed(), budget)) {
            match covers {
                Covers::Ranges(ranges) => {
                    for index in ranges.iter().flat_map(|range| within(wanted, range)) {
                        found.entry(*unit).or_default().push(index);
                    }
                }
                Covers::NotSaid => {
                    let unclaimed = (0..wanted.len()).filter(|&index| !claimed[index]);
                    found.entry(*unit).or_default().extend(unclaimed);
                }
            }
        }
    }
}

/// Reads all units' ranges from `.debug_aranges`.
fn by_table(side: &Side<'_>, budget: &Budget) -> Listed {
    let (mut units, mut ranges) = (Vec::new(), Vec::new());
    let mut headers = side.dwarf.debug_aranges.headers();
    'all: while let Ok(Some(header)) = headers.next() {
        let DebugInfoOffset(unit) = header.debug_info_offset();
        let mut entries = header.entries();
        while let Some(entry) = entries.next().transpose() {
            if !budget.pay(1) {
                break 'all;
            }
            // An entry that wraps around is a compiler bug and no reason to leave out the others.
            let Ok(entry) = entry else { continue };
            let range = entry.range();
            if range.begin < range.end {
                units.push(unit);
                ranges.push(range.begin..range.end);
            }
        }
    }
    Listed { spans: Spans::new(ranges.into_iter()), units }
}

/// Reads the coverage of units that are not `listed` from their root entries.
fn by_roots(side: &Side<'_>, listed: &[usize], budget: &Budget) -> Vec<(usize, Covers)> {
    let listed: HashSet<usize> = listed.iter().copied().collect();
    let mut found = Vec::new();
    for header in side.headers() {
        let UnitSectionOffset(offset) = header.offset();
        let is_code =
            !matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. } | UnitType::Partial);
        if !is_code || listed.contains(&offset) || budget.is_spent() {
            continue;
        }
        // Bypasses the side's cache: only a few of thousands of units are needed again.
        let Ok(unit) = side.dwarf.unit(*header) else { continue };
        match root(side, &unit, budget) {
            Some(ranges) if !budget.pay_for_kept(ranges.len()) => drop(ranges),
            Some(ranges) if !ranges.is_empty() => found.push((offset, Covers::Ranges(ranges))),
            // A unit with neither ranges nor lines has no code: that of a crate of generic functions, for example.
            _ if has_lines(&unit) => found.push((offset, Covers::NotSaid)),
            _ => {}
        }
    }
    found
}

fn has_lines(unit: &Unit<'_>) -> bool {
    unit.line_program.as_ref().is_some_and(|program| !program.header().raw_program_buf().is_empty())
}

/// Returns the ranges in a unit's root entry.
fn root<'a>(side: &Side<'a>, unit: &Unit<'a>, budget: &Budget) -> Option<Vec<Range<u64>>> {
    let unit = UnitRef::new(&side.dwarf, unit);
    let mut shapes = Shapes::new(&unit.abbreviations);
    let mut entries = Entries::new(unit, &mut shapes, None)?;
    entries.next()?;
    let mut found = Vec::new();
    ranges(entries.attributes(), unit, budget, &mut found);
    Some(found)
}
