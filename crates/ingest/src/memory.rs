//! Memory of processes, as crate `interpreters` reads it.

use std::cell::RefCell;

use plumb_interpreters::Memory;
use plumb_process::read_memory;

/// Memory of a process that may run.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMemory(pub u32);

impl Memory for ProcessMemory {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        read_memory(self.0, at, bytes) == bytes.len()
    }
}

/// Memory of a process as it is now, for a few questions that follow each other at once, such as about the frames of one stack: what is read is kept,
/// with its neighbours, as each read is a system call.
pub(crate) struct MemoryNow {
    process: ProcessMemory,
    lines: RefCell<Vec<(u64, [u8; LINE])>>,
}

/// Number of bytes that are read at once: a power of two, so that they are in one page.
const LINE: usize = 256;
/// Maximum number of lines that are kept.
const MAX_LINES: usize = 128;

impl MemoryNow {
    /// The memory of a process.
    pub(crate) fn of(pid: u32) -> Self {
        MemoryNow { process: ProcessMemory(pid), lines: RefCell::default() }
    }

    /// Passes the line at an address on. Returns `None` if it can't be read.
    fn with_line<T>(&self, start: u64, take: impl FnOnce(&[u8; LINE]) -> T) -> Option<T> {
        let mut lines = self.lines.borrow_mut();
        if let Some((_, line)) = lines.iter().find(|(at, _)| *at == start) {
            return Some(take(line));
        }
        let mut line = [0; LINE];
        if !self.process.read(start, &mut line) {
            return None;
        }
        if lines.len() < MAX_LINES {
            lines.push((start, line));
        }
        Some(take(&line))
    }
}

impl Memory for MemoryNow {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        let offset = at as usize % LINE;
        if offset + bytes.len() > LINE {
            return self.process.read(at, bytes);
        }
        let part = offset..offset + bytes.len();
        // A line is in one page, which can be read as a whole or not at all.
        let copy = |line: &[u8; LINE]| line.get(part).map(|part| bytes.copy_from_slice(part));
        self.with_line(at - offset as u64, copy).flatten().is_some()
    }
}

/// Memory that was copied, perhaps with the process to read the rest from.
#[derive(Clone, Copy, Debug)]
pub struct CopiedMemory<'c, B, M = ProcessMemory> {
    /// The address of each part's first byte, and the part.
    pub parts: &'c [(u64, B)],
    /// The memory that has what is in no part; `None`: that can't be read.
    pub process: Option<M>,
}

impl<B: AsRef<[u8]>, M: Memory> Memory for CopiedMemory<'_, B, M> {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        let copied = self.parts.iter().find_map(|(start, part)| {
            let offset = usize::try_from(at.checked_sub(*start)?).ok()?;
            part.as_ref().get(offset..)?.get(..bytes.len())
        });
        match copied {
            Some(copied) => bytes.copy_from_slice(copied),
            None => return self.process.as_ref().is_some_and(|process| process.read(at, bytes)),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_now_is_that_of_the_first_look() {
        let mut words = vec![7_u64; 4096];
        let at = |words: &[u64], index: usize| words.as_ptr() as u64 + 8 * index as u64;
        let memory = MemoryNow::of(std::process::id());
        assert_eq!(memory.word(at(&words, 1000)), Ok(7));
        words[1000] = 8;
        assert_eq!(memory.word(at(&words, 1000)), Ok(7), "kept");
        assert_eq!(MemoryNow::of(std::process::id()).word(at(&words, 1000)), Ok(8));
        // Beyond a line, or across two.
        let mut all = vec![0; 8 * 4096];
        assert!(
            memory.read(at(&words, 0), &mut all) && all.iter().step_by(8).all(|&byte| byte == 7 || byte == 8)
        );
        assert!((0..2000).all(|offset| memory.word(at(&words, 1500) + offset).is_ok()));
        assert!(memory.word(8).is_err(), "nothing is mapped there");
    }
}
