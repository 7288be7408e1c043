//! Finds code that ends its thread: the code that coroutines and threads return to, which has no caller.
//!
//! Walks also recognize it by its instructions if they can read them. In the kernel they cannot, so it needs rules
//! there.

use std::ops::Range;

use plumb_process::{Section, SectionReader};
use plumb_unwind::x86_64::{LONGEST_END, ends_thread};
use plumb_unwind::{Architecture, Avma, Isa, Memory, ReadError, aarch64::Aarch64};

use super::{aarch64, begins, read};

/// Returns addresses of such code: just after a gap that is padding, or within a gap whose code computes the address.
pub(super) fn roots(isa: Isa, code: &SectionReader, gaps: &[Range<u64>]) -> Vec<u64> {
    let with_next = |gap: &Range<u64>| read(code, &(gap.start..gap.end.saturating_add(LONGEST_END as u64)));
    gaps.iter().filter_map(|gap| Some(of_gap(isa, gap, &with_next(gap)?))).flatten().collect()
}

/// Returns the roots in one gap. `piece` holds its code and the code after it.
pub(super) fn of_gap(isa: Isa, gap: &Range<u64>, piece: &Section) -> Vec<u64> {
    if isa != Isa::X86_64 {
        return behind_calls(gap, piece);
    }
    let mut begins = vec![gap.end];
    begins::search(isa, &piece.bytes, gap.start, std::slice::from_ref(gap), &mut begins);
    begins.sort_unstable();
    begins.dedup();
    let code = |at: u64| piece.bytes.get((at - gap.start) as usize..).unwrap_or_default();
    // A return address is looked up by the byte before it, which must be in the gap.
    begins.retain(|&at| at > gap.start && ends_thread(code(at)));
    begins
}

/// As [`of_gap`] on aarch64, where such code follows the call of the thread's function.
fn behind_calls(gap: &Range<u64>, piece: &Section) -> Vec<u64> {
    let words = piece.bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let ends = (gap.start + 4..=gap.end).step_by(4);
    let behind = ends.zip(words).filter(|&(_, word)| aarch64::is_call(word)).map(|(at, _)| at);
    behind.filter(|&at| Aarch64::ends_thread(Avma(at), &mut Code(piece))).collect()
}

/// Code of a piece as memory.
struct Code<'a>(&'a Section);

impl Memory for Code<'_> {
    fn read_u64(&mut self, _: Avma) -> Result<u64, ReadError> {
        Err(ReadError::Unreadable)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        let offset = at.0.checked_sub(self.0.address).and_then(|offset| usize::try_from(offset).ok());
        let bytes = offset.and_then(|offset| self.0.bytes.get(offset..)?.get(..to.len()));
        bytes.is_some_and(|bytes| {
            to.copy_from_slice(bytes);
            true
        })
    }
}
