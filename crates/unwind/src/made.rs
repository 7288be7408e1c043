//! What tells call-frame information that was made of code from that of compilers: the data alignment factor of its CIE. Compilers have -8 for
//! x86_64.
//!
//! Not here: how it is made, which is what `plumb-table-cache` does.

use crate::address::Svma;
use crate::cfi::{Fde, Frames, Index};
use crate::module::Extent;

/// Of the first part of a function, or all of it.
pub const FIRST: i64 = -4;
/// Of another part: there is code between that no rules are known of.
pub const PART: i64 = -2;

/// Parts of a function are looked at, one after the other.
const MOST_PARTS: usize = 1 << 10;

pub(crate) fn is(fde: &Fde) -> bool {
    [FIRST, PART].contains(&fde.cie.data_alignment)
}

/// The function that holds an address, the last entry at or before which was made. `has_rules`: that entry holds it.
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
