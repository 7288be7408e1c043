//! Reads stacks of running processes beyond the kernel's copy.
//!
//! Some frames are larger than any copy (half a MiB in rustc), so that their callers are never copied. While the
//! process runs, its memory can be read: later than the sample was taken, so the result only counts as one more
//! observed stack, and only if the return addresses at the border are still in place. Stitching has the same
//! standard of evidence, and the frames are marked as stitched.

use std::fs::File;
use std::os::unix::fs::FileExt;

use plumb_unwind::{Avma, Memory, ReadError, Walked};

use super::copy::StackCopy;
use super::stitch::WINDOW;

/// Bytes read at once.
const BLOCK: usize = 1024;

/// The copy of a stack, and the current memory above it.
pub(super) struct Extended<'a> {
    copy: StackCopy<'a>,
    now: Now,
}

/// Current memory of a running process.
struct Now {
    file: File,
    start: u64,
    block: Vec<u8>,
}

impl Now {
    fn read(&mut self, at: u64) -> Option<u64> {
        let inside = |now: &Self| {
            let offset = usize::try_from(at.checked_sub(now.start)?).ok()?;
            now.block.get(offset..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
        };
        if let Some(word) = inside(self) {
            return Some(word);
        }
        self.block.resize(BLOCK, 0);
        let read = self.file.read_at(&mut self.block, at).unwrap_or(0);
        self.block.truncate(read);
        self.start = at;
        inside(self)
    }
}

impl Memory for Extended<'_> {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        match self.copy.read_u64(at) {
            Err(_) if self.copy.is_above(at.0) => self.now.read(at.0).ok_or(ReadError::Unreadable),
            read => read,
        }
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.copy.read_code(at, to)
    }
}

/// The copy of a process' stack that was unwound up to the copy's end, with the current memory above it. `None` if that can't be read, or the
/// outermost return addresses are no longer in place.
pub(super) fn extended<'a>(pid: u32, copy: StackCopy<'a>, walked: &[Walked]) -> Option<Extended<'a>> {
    let file = File::open(format!("/proc/{}/mem", plumb_process::living_thread(pid))).ok()?;
    let mut now = Now { file, start: 0, block: Vec::new() };
    is_still_there(walked, &mut now).then_some(Extended { copy, now })
}

/// Whether the outermost return addresses of a stack are still in place.
fn is_still_there(walked: &[Walked], now: &mut Now) -> bool {
    let callers = walked.get(1..).unwrap_or_default();
    callers.len() >= WINDOW
        && callers.iter().rev().take(WINDOW).all(|caller| now.read(caller.slot.0) == Some(caller.pc.0))
}

#[cfg(test)]
mod tests {
    use plumb_unwind::Method;

    use super::*;

    #[test]
    fn border_counts_only_while_its_words_are_in_place() {
        let mut words: Vec<u64> = (0..400).map(|i| 0x1000 + i).collect();
        let address = |words: &[u64], index: usize| words.as_ptr() as u64 + 8 * index as u64;
        let frame = |pc, slot| Walked { pc: Avma(pc), is_return: true, found: Method::Cfi, slot: Avma(slot) };
        let mut walked = vec![frame(1, 0)];
        walked.extend((0..20).map(|i| frame(0x1000 + 20 * i, address(&words, 20 * i as usize))));
        let now = || Now { file: File::open("/proc/self/mem").unwrap(), start: 0, block: Vec::new() };
        assert_eq!(now().read(address(&words, 399)), Some(0x1000 + 399));
        assert_eq!(now().read(8), None, "nothing is mapped there");
        assert!(is_still_there(&walked, &mut now()));
        words[20 * 5] = 7;
        assert!(is_still_there(&walked, &mut now()), "further in than the border");
        words[20 * 19] = 7;
        assert!(!is_still_there(&walked, &mut now()));
        assert!(!is_still_there(&walked[..WINDOW], &mut now()), "too few frames to compare");
    }
}
