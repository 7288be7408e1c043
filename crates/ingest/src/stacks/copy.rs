//! The copy of the top of a stack that comes with a sample, as memory to unwind in.

use std::ops::RangeInclusive;

use plumb_process::read_memory;
use plumb_unwind::{Avma, Memory, ReadError, Window};

/// The memory available for unwinding a copied stack.
#[derive(Clone, Copy)]
pub(crate) struct StackCopy<'a> {
    /// Address of the first byte: the stack pointer.
    base: u64,
    bytes: &'a [u8],
    /// Whether as much was copied as was requested.
    full: bool,
    /// The process, if code may be read from its memory.
    running: Option<u32>,
    /// The last address that could not be read.
    missed: Option<u64>,
}

/// The largest copy that the kernel makes.
const MAX_COPY: u64 = 64 << 10;
/// The smallest page.
const PAGE: usize = 4096;
/// No frame is larger, so an address further away is on another stack: the usual limit of a whole stack.
const MAX_FRAME: u64 = 8 << 20;

impl<'a> StackCopy<'a> {
    /// The copy of a stack from address `base` on. `full`: as much was copied as was requested. `running`: the process, if code may be read from its
    /// memory.
    pub(crate) fn new(base: u64, bytes: &'a [u8], full: bool, running: Option<u32>) -> Self {
        Self { base, bytes, full, running, missed: None }
    }

    /// The address of the first byte.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The copied bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether an address is beyond the upper end.
    pub(crate) fn is_above(&self, at: u64) -> bool {
        at >= self.base && at - self.base > (self.bytes.len() as u64).saturating_sub(8)
    }

    /// Whether the last address that could not be read is on another stack.
    pub(crate) fn missed_elsewhere(&self) -> bool {
        self.missed.is_some_and(|at| self.is_elsewhere(at))
    }

    /// The addresses from the copy's end to the last one that could not be read, if the copy ended early, at a page that was never touched, and a
    /// copy of the largest size would reach so far.
    fn untouched(&self) -> Option<RangeInclusive<u64>> {
        let end = self.base.saturating_add(self.bytes.len() as u64);
        let missed = self.missed.filter(|&at| self.is_above(at) && at - self.base < MAX_COPY)?;
        (!self.full).then_some(end..=missed)
    }

    /// Reads the pages at which the copy ended early from the running process, so that they are there when the stack is copied next: each then is the
    /// kernel's page of zeros, and takes no memory.
    pub(crate) fn touch_untouched(&self) {
        let Some((pid, range)) = self.running.zip(self.untouched()) else { return };
        // A page that can't be read ends the next copy, too.
        range.step_by(PAGE).take_while(|&at| read_memory(pid, at, &mut [0]) == 1).for_each(drop);
    }

    /// Whether an address is too far from the copy to be on the same stack.
    fn is_elsewhere(&self, at: u64) -> bool {
        let end = self.base.saturating_add(self.bytes.len() as u64);
        at.saturating_add(MAX_FRAME) < self.base || at.saturating_sub(end) > MAX_FRAME
    }
}

impl Memory for StackCopy<'_> {
    #[inline]
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let offset = at.0.wrapping_sub(self.base);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        match self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(word) => Ok(u64::from_le_bytes(*word)),
            // The stack can continue above only if the full size was copied.
            None if at.0 >= self.base && self.full && !self.is_elsewhere(at.0) => Err(ReadError::BeyondCopy),
            None => {
                self.missed = Some(at.0);
                Err(ReadError::Unreadable)
            }
        }
    }

    /// Reads current memory: sampled code rarely changes soon after.
    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.running.is_some_and(|pid| read_memory(pid, at.0, to) == to.len())
    }

    /// Records are aligned in the ring, and copies in them; a record joined in a buffer may not be.
    #[inline]
    fn window(&self) -> Option<Window<'_>> {
        let whole = self.bytes.get(..self.bytes.len() & !7)?;
        let words = bytemuck::try_cast_slice(whole).ok().filter(|_| cfg!(target_endian = "little"))?;
        Some(Window { base: Avma(self.base), words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_goes_on_above_a_full_copy_and_nowhere_else() {
        let bytes: Vec<u8> = (1..=4_u64).flat_map(u64::to_le_bytes).collect();
        let mut copy = StackCopy::new(0x1000, &bytes, true, None);
        assert_eq!(copy.read_u64(Avma(0x1018)), Ok(4));
        assert_eq!(copy.read_u64(Avma(0x1019)), Err(ReadError::BeyondCopy), "only in part");
        assert_eq!(
            (copy.is_above(0x1018), copy.is_above(0x1019), copy.missed_elsewhere()),
            (false, true, false)
        );
        assert_eq!(copy.read_u64(Avma(0xff8)), Err(ReadError::Unreadable));
        assert!(!copy.missed_elsewhere(), "below the stack pointer");
        assert_eq!(copy.read_u64(Avma(0x1000 + (64 << 20))), Err(ReadError::Unreadable));
        assert!(copy.missed_elsewhere());
        let mut whole = StackCopy::new(0x1000, &bytes, false, None);
        assert_eq!(whole.read_u64(Avma(0x1020)), Err(ReadError::Unreadable), "the copy ends there");
        assert_eq!((whole.untouched(), copy.untouched()), (Some(0x1020..=0x1020), None));
    }
}
