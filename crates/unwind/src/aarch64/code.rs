//! Reads instructions.

use crate::address::Avma;
use crate::memory::Memory;

/// Number of bytes of code that are read at a time.
const CHUNK: usize = 64;

/// Code of the process, read in parts.
pub(super) struct Code<'m, M> {
    memory: &'m mut M,
    at: u64,
    bytes: [u8; CHUNK],
}

impl<'m, M: Memory> Code<'m, M> {
    pub(super) fn new(memory: &'m mut M) -> Self {
        Code { memory, at: 0, bytes: [0; CHUNK] }
    }

    /// Returns the instruction at `pc`.
    pub(super) fn word(&mut self, pc: u64) -> Option<u32> {
        let part = pc - pc % CHUNK as u64;
        if self.at != part {
            if !self.memory.read_code(Avma(part), &mut self.bytes) {
                self.at = 0;
                return None;
            }
            self.at = part;
        }
        let rest = self.bytes.get((pc - part) as usize..)?;
        rest.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }
}
