//! The sample queue of one thread: its signal handler writes, and the draining thread reads.
//!
//! One writer, one reader, no locks, no allocation after [`Ring::new`]. A sample that does not fit is dropped and counted; unread samples are never
//! overwritten.

use std::sync::atomic::{AtomicU64, Ordering};

use plumb_unwind::{End, Walked};

/// Flag of a frame whose address is not a return address: the sampled instruction, or one interrupted by a signal. No user address has this bit.
const NOT_RETURN: u64 = 1 << 63;
/// Reasons by their number in a header.
const ENDS: [End; 11] = [
    End::Root,
    End::BeyondCopy,
    End::StackUnreadable,
    End::NoUnwindInfo,
    End::BadUnwindInfo,
    End::NotMapped,
    End::FileUnreadable,
    End::RegisterUnknown,
    End::NotAdvancing,
    End::TooManyFrames,
    End::ProbedReturn,
];

/// A frame of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// Program counter; for a caller, the return address of its call.
    pub pc: u64,
    /// Whether `pc` is a return address; the call is then before it.
    pub is_return: bool,
}

/// A sampled stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Frames, innermost first.
    pub frames: Vec<Frame>,
    /// The reason for the end of the stack; [`End::Root`]: the stack is complete.
    pub end: End,
    /// Number of periods that the sample represents: more than one if the timer is coarser than the period.
    pub weight: u32,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Storage, a power of two of words. A sample is a header (frames, reason, weight: 16, 16 and 32 bits) followed by its frames.
    words: Box<[AtomicU64]>,
    written: AtomicU64,
    read: AtomicU64,
}

impl Ring {
    /// A queue of at least `words` words of 8 bytes. Touches all of them, so that writing causes no page fault.
    pub fn new(words: usize) -> Self {
        let words = words.clamp(64, 1 << 24).next_power_of_two();
        let words = (0..words).map(|index| AtomicU64::new(index as u64)).collect();
        Self { words, written: AtomicU64::new(0), read: AtomicU64::new(0) }
    }

    fn word(&self, position: u64) -> Option<&AtomicU64> {
        self.words.get(position as usize & (self.words.len() - 1))
    }

    /// Writes a sample. Returns `false` if it does not fit. Only for the thread that owns the ring.
    pub fn push(&self, frames: &[Walked], end: End, weight: u32) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        let used = written.wrapping_sub(self.read.load(Ordering::Acquire));
        let count = frames.len().min(usize::from(u16::MAX)) as u64;
        if used + count + 1 > self.words.len() as u64 {
            return false;
        }
        let reason = ENDS.iter().position(|known| *known == end).unwrap_or(0) as u64;
        let header = count | reason << 16 | u64::from(weight) << 32;
        let put = |position: u64, value: u64| {
            if let Some(word) = self.word(position) {
                word.store(value, Ordering::Relaxed);
            }
        };
        put(written, header);
        for (position, frame) in (written.wrapping_add(1)..).zip(frames.iter().take(count as usize)) {
            put(position, frame.pc.0 | if frame.is_return { 0 } else { NOT_RETURN });
        }
        self.written.store(written.wrapping_add(count + 1), Ordering::Release);
        true
    }

    /// Whether no sample is queued.
    pub fn is_empty(&self) -> bool {
        self.read.load(Ordering::Relaxed) == self.written.load(Ordering::Acquire)
    }

    /// Takes the oldest sample. Only for one reader at a time.
    pub fn pop(&self) -> Option<Stack> {
        let read = self.read.load(Ordering::Relaxed);
        if read == self.written.load(Ordering::Acquire) {
            return None;
        }
        let get = |position: u64| self.word(position).map_or(0, |word| word.load(Ordering::Relaxed));
        let header = get(read);
        let count = header & 0xffff;
        let frame = |word: u64| Frame { pc: word & !NOT_RETURN, is_return: word & NOT_RETURN == 0 };
        let frames = (1..=count).map(|index| frame(get(read.wrapping_add(index)))).collect();
        let end = ENDS.get((header >> 16 & 0xffff) as usize).copied().unwrap_or(End::Root);
        self.read.store(read.wrapping_add(count + 1), Ordering::Release);
        Some(Stack { frames, end, weight: (header >> 32) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use plumb_unwind::{Avma, Method};

    use super::*;

    fn frame(walked: &Walked) -> Frame {
        Frame { pc: walked.pc.0, is_return: walked.is_return }
    }

    fn walked(pcs: &[u64]) -> Vec<Walked> {
        let make = |(index, &pc): (usize, &u64)| Walked {
            pc: Avma(pc),
            is_return: index > 0,
            found: Method::Cfi,
            slot: Avma(0),
        };
        pcs.iter().enumerate().map(make).collect()
    }

    #[test]
    fn samples_come_out_as_they_went_in_and_what_does_not_fit_is_refused() {
        let ring = Ring::new(64);
        for round in 0..1000_u64 {
            let pcs: Vec<u64> = (0..round % 30).map(|i| 0x7fff_0000_0000 + round * 100 + i).collect();
            assert!(ring.push(&walked(&pcs), End::NoUnwindInfo, round as u32));
            let stack = ring.pop().unwrap();
            assert_eq!(stack.frames, walked(&pcs).iter().map(frame).collect::<Vec<_>>());
            assert_eq!((stack.end, stack.weight), (End::NoUnwindInfo, round as u32));
        }
        assert_eq!(ring.pop(), None);
        assert!(ring.push(&walked(&[1; 40]), End::Root, 1));
        assert!(!ring.push(&walked(&[2; 40]), End::Root, 1), "64 words hold one of them");
        assert!(ring.push(&walked(&[3; 22]), End::Root, 1));
        assert!(!ring.push(&[], End::Root, 1), "full");
        assert_eq!(ring.pop().unwrap().frames.len(), 40);
        assert_eq!(ring.pop().unwrap().frames.len(), 22);
    }

    #[test]
    fn a_reader_beside_a_writer_sees_whole_samples() {
        let ring = Ring::new(256);
        let written = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                (0..200_000_u64)
                    .filter(|&n| ring.push(&walked(&[n; 7][..(n % 7 + 1) as usize]), End::Root, n as u32))
                    .count()
            });
            let (mut seen, mut last) = (0, None);
            while !writer.is_finished()
                || ring.read.load(Ordering::Relaxed) != ring.written.load(Ordering::Relaxed)
            {
                let Some(stack) = ring.pop() else { continue };
                let n = u64::from(stack.weight);
                assert!(last < Some(n), "in order");
                last = Some(n);
                assert_eq!(stack.frames.len() as u64, n % 7 + 1);
                assert!(stack.frames.iter().all(|frame| frame.pc == n));
                seen += 1;
            }
            assert_eq!(seen, writer.join().unwrap());
            seen
        });
        assert!(written > 0);
    }
}
