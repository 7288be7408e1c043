//! Markers of call-frame information that was generated from machine code: the data alignment factor of its CIE.
//! Compilers use -8 for x86_64.
//!
//! The generator is elsewhere, in `plumb-table-cache`.

use crate::address::Svma;
use crate::cfi::{Fde, Frames, Index};
use crate::module::Extent;

/// Data alignment factor of the first part of a function, or of a whole function.
pub const FIRST: i64 = -4;
/// Data alignment factor of any further part of a function. The code between parts has no known rules.
pub const PART: i64 = -2;

/// Maximum number of parts of a function that are searched.
const MOST_PARTS: usize = 1 << 10;

pub(crate) fn is(fde: &Fde) -> bool {
    [FIRST, PART].contains(&fde.cie.data_alignment)
}

/// Returns the extent of the code around an address whose preceding entry is a generated one. `has_rules`: that entry
/// holds the address.
pub(crate) fn extent(frames: &Frames<'_>, index: &Index, pc: u64, has_rules: bool) -> Extent {
    let here = index.search(pc);
    let fde = |at: usize| frames.fde(index.fde(at)?).ok()?;
    let mut first = None;
    for before in (here.saturating_sub(MOST_PARTS)..here).rev().map_while(fde) {
        match before.cie.data_alignment {
            FIRST => {
                first = Some(before.range);
                break;
            }
            PART => {}
            _ => return Extent::Gap { start: Svma(before.range.end) },
        }
    }
    let Some(first) = first else { return Extent::Gap { start: Svma(0) } };
    if !has_rules {
        return Extent::Gap { start: Svma(first.start) };
    }
    let after = (here.saturating_sub(1)..index.len()).take(MOST_PARTS).map_while(fde);
    let parts = after.enumerate().take_while(|(number, fde)| *number == 0 || fde.cie.data_alignment == PART);
    let end = parts.last().map_or(first.end, |(_, fde)| fde.range.end);
    Extent::Function(Svma(first.start)..Svma(end))
}
