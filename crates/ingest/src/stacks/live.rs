//! Reads stacks of running processes beyond the kernel's copy.
//!
//! Some frames are larger than any copy (half a MiB in rustc), so that their callers are never copied. While the
//! process runs, its memory can be read: later than the sample was taken, so the result only counts as one more
//! observed stack, and only if the return addresses at the border are still in place. Stitching has the same
//! standard of evidence, and the frames are marked as stitched.

use std::fs::File;
use std::os::unix::fs::FileExt;

use plumb_unwind::{Avma, End, Memory, ReadError, Registers, Walked};

use super::builder::StackBuilder;
use super::copied::StackCopy;
use super::stitch::{Border, WINDOW};
use crate::spaces::SpaceId;

/// Time between attempts for one thread. None is needed while the stack beyond a border was seen recently.
const PAUSE_NS: u64 = 20_000_000;
/// Bytes read at once.
const BLOCK: usize = 1024;

/// The copy of a stack, and the current memory above it.
struct Extended<'a> {
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

impl StackBuilder<'_> {
    /// Passes a stack that was truncated at its copy's end to the stitcher, read from the process itself. Returns whether that worked.
    pub(crate) fn learn_live(
        &mut self,
        now_ns: u64,
        space: SpaceId,
        registers: &Registers,
        copy: &StackCopy<'_>,
    ) -> bool {
        let is_live = self.processes.scope.is_live();
        let Some(thread) = self.processes.tasks.threads.get_mut(&self.tid) else { return false };
        let tried_ns = &mut thread.stacks.tried_ns;
        if !is_live || thread.exited || now_ns.saturating_sub(*tried_ns) < PAUSE_NS {
            return false;
        }
        *tried_ns = now_ns;
        let Ok(file) = File::open(format!("/proc/{}/mem", plumb_process::living_thread(self.pid))) else {
            return false;
        };
        let mut now = Now { file, start: 0, block: Vec::new() };
        if !is_still_there(&self.walked, &mut now) {
            return false;
        }
        let mut memory = Extended { copy: *copy, now };
        let end = self.processes.spaces.walk(space, registers, &mut memory, &mut self.walked);
        if end == End::Root {
            let walked = std::mem::take(&mut self.walked);
            self.stitch(space, &walked, Border::Root);
            self.walked = walked;
        }
        end == End::Root
    }
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
