//! Finds code that ends its thread: the code that coroutines and threads return to, which has no caller.
//!
//! Walks also recognize it by its instructions if they can read them. In the kernel they cannot, so it needs rules
//! there.

use std::ops::Range;

use plumb_process::{Section, SectionReader};
use plumb_unwind::x86_64::{LONGEST_END, ends_thread};

use super::{begins, read};

/// Returns addresses of such code: just after a gap that is padding, or within a gap whose code computes the address.
pub(super) fn roots(code: &SectionReader, gaps: &[Range<u64>]) -> Vec<u64> {
    let with_next = |gap: &Range<u64>| read(code, &(gap.start..gap.end.saturating_add(LONGEST_END as u64)));
    gaps.iter().filter_map(|gap| Some(of_gap(gap, &with_next(gap)?))).flatten().collect()
}

/// Returns the roots in one gap. `piece` holds its code and the code after it.
pub(super) fn of_gap(gap: &Range<u64>, piece: &Section) -> Vec<u64> {
    let mut begins = vec![gap.end];
    begins::search(&piece.bytes, gap.start, std::slice::from_ref(gap), &mut begins);
    begins.sort_unstable();
    begins.dedup();
    let code = |at: u64| piece.bytes.get((at - gap.start) as usize..).unwrap_or_default();
    // A return address is looked up by the byte before it, which must be in the gap.
    begins.retain(|&at| at > gap.start && ends_thread(code(at)));
    begins
}
