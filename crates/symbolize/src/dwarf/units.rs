//! Which units wanted addresses belong to.
//!
//! `.debug_aranges` answers at once where there is one for all of them; else every unit's root entry is read.

use std::collections::{BTreeMap, BTreeSet};

use gimli::{DebugInfoOffset, UnitRef, UnitSectionOffset, UnitType};

use crate::dwarf::budget::Budget;
use crate::dwarf::ranges::{Attributes, within};
use crate::dwarf::side::{Side, Unit};

/// For each unit (by the offset of its header) the indices of the `wanted` addresses (in order) that may be in it.
pub(crate) fn units(side: &Side<'_>, wanted: &[u64], budget: &Budget) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut claimed = vec![false; wanted.len()];
    let mut listed = BTreeSet::new();
    by_table(side, budget, |unit, range| {
        listed.insert(unit);
        for index in within(wanted, &range) {
            claimed[index] = true;
            found.entry(unit).or_default().insert(index);
        }
    });
    if claimed.iter().all(|&claimed| claimed) {
        return found;
    }
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
            Some(ranges) if !ranges.is_empty() => {
                for index in ranges.iter().flat_map(|range| within(wanted, range)) {
                    found.entry(offset).or_default().insert(index);
                }
            }
            // It doesn't say what it covers (old assemblers): it may be anything that no other unit claims.
            _ if unit.line_program.is_some() => {
                let unclaimed = (0..wanted.len()).filter(|&index| !claimed[index]);
                found.entry(offset).or_default().extend(unclaimed);
            }
            _ => {}
        }
    }
    found
}

/// Calls `each` with every unit's ranges in `.debug_aranges`.
fn by_table(side: &Side<'_>, budget: &Budget, mut each: impl FnMut(usize, std::ops::Range<u64>)) {
    let mut headers = side.dwarf.debug_aranges.headers();
    while let Ok(Some(header)) = headers.next() {
        let DebugInfoOffset(unit) = header.debug_info_offset();
        let mut entries = header.entries();
        while let Some(entry) = entries.next().transpose() {
            if !budget.pay(1) {
                return;
            }
            // An entry that wraps around is the compiler's fault and no reason to leave out the others.
            let Ok(entry) = entry else { continue };
            let range = entry.range();
            if range.begin < range.end {
                each(unit, range.begin..range.end);
            }
        }
    }
}

/// The ranges that a unit's root entry states.
fn root<'a>(side: &Side<'a>, unit: &Unit<'a>, budget: &Budget) -> Option<Vec<std::ops::Range<u64>>> {
    let unit = UnitRef::new(&side.dwarf, unit);
    let mut entries = unit.entries_raw(None).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let attributes = Attributes::read(&mut entries, abbreviation.attributes()).ok()?;
    Some(attributes.ranges(unit, budget))
}
