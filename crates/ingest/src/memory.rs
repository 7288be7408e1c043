//! Memory of processes, as crate `interpreters` reads it.

use plumb_interpreters::Memory;

use plumb_process::read_memory;

/// Memory of a process that may run.
pub struct ProcessMemory(pub u32);

impl Memory for ProcessMemory {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        read_memory(self.0, at, bytes) == bytes.len()
    }
}
