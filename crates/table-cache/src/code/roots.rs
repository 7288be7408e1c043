//! Code that ends its thread: what coroutines and threads return to, which has no caller.
//!
//! Walks know it by its instructions as well, where these can be read: in the kernel they can't, unless the program has come by.

use std::ops::Range;

use plumb_process::{Section, SectionReader};
use plumb_unwind::x86_64::{LONGEST_END, ends_thread};

use super::{begins, read};

/// Addresses of such code: just behind a gap, which is there for alignment, or in one whose code takes the address.
pub(super) fn roots(code: &SectionReader, gaps: &[Range<u64>]) -> Vec<u64> {
    let with_next = |gap: &Range<u64>| read(code, &(gap.start..gap.end.saturating_add(LONGEST_END as u64)));
    gaps.iter().filter_map(|gap| Some(of_gap(gap, &with_next(gap)?))).flatten().collect()
}

/// Those of one gap, with its code and what comes behind it.
pub(super) fn of_gap(gap: &Range<u64>, piece: &Section) -> Vec<u64> {
    let mut begins = vec![gap.end];
    begins::search(&piece.bytes, gap.start, std::slice::from_ref(gap), &mut begins);
    begins.sort_unstable();
    begins.dedup();
    let code = |at: u64| piece.bytes.get((at - gap.start) as usize..).unwrap_or_default();
    // What is looked up for a return address is the byte before it, which is to be in the gap.
    begins.retain(|&at| at > gap.start && ends_thread(code(at)));
    begins
}
