//! Which units wanted addresses belong to.
//!
//! `.debug_aranges` answers at once where there is one for all of them; else every unit's root entry is read.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use gimli::{DebugInfoOffset, UnitRef, UnitSectionOffset, UnitType};

use crate::dwarf::budget::Budget;
use crate::dwarf::ranges::{Attributes, within};
use crate::dwarf::side::{Side, Unit};

/// Which addresses each unit covers, found out when first asked.
#[derive(Default)]
pub(crate) struct Units {
    listed: OnceCell<Vec<(usize, Range<u64>)>>,
    others: OnceCell<Vec<(usize, Covers)>>,
}

/// What the root entry of a unit says that it covers.
enum Covers {
    Ranges(Vec<Range<u64>>),
    /// It doesn't say (old assemblers): it may be anything that no other unit claims.
    NotSaid,
}

impl Units {
    /// For each unit (by the offset of its header) the indices of the `wanted` addresses (in order) that may be in it.
    pub fn find(&self, side: &Side<'_>, wanted: &[u64], budget: &Budget) -> BTreeMap<usize, BTreeSet<usize>> {
        let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let mut claimed = vec![false; wanted.len()];
        let listed = self.listed.get_or_init(|| by_table(side, budget));
        for (unit, range) in listed {
            for index in within(wanted, range) {
                claimed[index] = true;
                found.entry(*unit).or_default().insert(index);
            }
        }
        if claimed.iter().all(|&claimed| claimed) {
            return found;
        }
        for (unit, covers) in self.others.get_or_init(|| by_roots(side, listed, budget)) {
            match covers {
                Covers::Ranges(ranges) => {
                    for index in ranges.iter().flat_map(|range| within(wanted, range)) {
                        found.entry(*unit).or_default().insert(index);
                    }
                }
                Covers::NotSaid => {
                    let unclaimed = (0..wanted.len()).filter(|&index| !claimed[index]);
                    found.entry(*unit).or_default().extend(unclaimed);
                }
            }
        }
        found
    }
}

/// Every unit's ranges in `.debug_aranges`.
fn by_table(side: &Side<'_>, budget: &Budget) -> Vec<(usize, Range<u64>)> {
    let mut found = Vec::new();
    let mut headers = side.dwarf.debug_aranges.headers();
    while let Ok(Some(header)) = headers.next() {
        let DebugInfoOffset(unit) = header.debug_info_offset();
        let mut entries = header.entries();
        while let Some(entry) = entries.next().transpose() {
            if !budget.pay(1) {
                return found;
            }
            // An entry that wraps around is the compiler's fault and no reason to leave out the others.
            let Ok(entry) = entry else { continue };
            let range = entry.range();
            if range.begin < range.end {
                found.push((unit, range.begin..range.end));
            }
        }
    }
    found
}

/// What the units that are not `listed` say of themselves.
fn by_roots(side: &Side<'_>, listed: &[(usize, Range<u64>)], budget: &Budget) -> Vec<(usize, Covers)> {
    let listed: HashSet<usize> = listed.iter().map(|&(unit, _)| unit).collect();
    let mut found = Vec::new();
    for header in side.headers() {
        let UnitSectionOffset(offset) = header.offset();
        let is_code =
            !matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. } | UnitType::Partial);
        if !is_code || listed.contains(&offset) || budget.is_spent() {
            continue;
        }
        // Not through the side's table: of thousands of units a few are needed again.
        let Ok(unit) = side.dwarf.unit(*header) else { continue };
        match root(side, &unit, budget) {
            Some(ranges) if !budget.pay_for_kept(ranges.len()) => drop(ranges),
            Some(ranges) if !ranges.is_empty() => found.push((offset, Covers::Ranges(ranges))),
            _ if unit.line_program.is_some() => found.push((offset, Covers::NotSaid)),
            _ => {}
        }
    }
    found
}

/// The ranges that a unit's root entry states.
fn root<'a>(side: &Side<'a>, unit: &Unit<'a>, budget: &Budget) -> Option<Vec<Range<u64>>> {
    let unit = UnitRef::new(&side.dwarf, unit);
    let mut entries = unit.entries_raw(None).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let attributes = Attributes::read(&mut entries, abbreviation.attributes()).ok()?;
    Some(attributes.ranges(unit, budget))
}
