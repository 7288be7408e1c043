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

/// Memory that was copied, perhaps with the process to read the rest from.
#[derive(Clone, Copy, Debug)]
pub struct CopiedMemory<'c, B> {
    /// The address of each part's first byte, and the part.
    pub parts: &'c [(u64, B)],
    /// The process whose memory has what is in no part; `None`: that can't be read.
    pub process: Option<u32>,
}

impl<B: AsRef<[u8]>> Memory for CopiedMemory<'_, B> {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        let copied = self.parts.iter().find_map(|(start, part)| {
            let offset = usize::try_from(at.checked_sub(*start)?).ok()?;
            part.as_ref().get(offset..)?.get(..bytes.len())
        });
        match copied {
            Some(copied) => bytes.copy_from_slice(copied),
            None => return self.process.is_some_and(|pid| ProcessMemory(pid).read(at, bytes)),
        }
        true
    }
}
