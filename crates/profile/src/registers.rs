//! User registers of some samples: from them and the code one computes which data an instruction worked on.
//!
//! Invariant: there are at most [`RegisterSamples::MOST`], evenly spaced over all that were offered, so that each represents the same number of
//! samples. Not here: what the code does with them.

use crate::event::EventId;
use crate::frame::FrameId;
use crate::process::ThreadId;

/// Number of general registers of x86-64.
pub const REGISTERS: usize = 16;

/// The user registers at a sample that interrupted user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterSample {
    /// When, on the clock of the samples, in nanoseconds.
    pub time_ns: u64,
    /// The thread.
    pub thread: ThreadId,
    /// The event that took the sample.
    pub event: EventId,
    /// The innermost frame: the instruction that was about to run, by its file.
    pub frame: FrameId,
    /// The same as an address at run time.
    pub ip: u64,
    /// By DWARF number (System V ABI for x86-64, figure 3.36): rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15.
    pub values: [u64; REGISTERS],
}

/// The registers of some samples, in the order of their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegisterSamples {
    rows: Vec<RegisterSample>,
    /// Of so many that are offered one is kept, as a power of two.
    shift: u32,
    offered: u64,
}

impl RegisterSamples {
    /// Most that are kept.
    pub const MOST: usize = 8192;

    /// Keeps these registers, or not: of a long recording every second, every fourth, and so on.
    pub fn offer(&mut self, row: RegisterSample) {
        let is_next = self.offered.trailing_zeros() >= self.shift;
        self.offered += 1;
        if !is_next {
            return;
        }
        if self.rows.len() == Self::MOST {
            let mut at = 0_usize;
            self.rows.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.shift += 1;
            // The last one that was offered was kept before; half of those are gone.
            if (self.offered - 1).trailing_zeros() < self.shift {
                return;
            }
        }
        self.rows.push(row);
    }

    /// Appends one that was kept when it was recorded.
    pub fn push(&mut self, row: RegisterSample) {
        self.rows.push(row);
        self.offered += 1;
    }

    /// Of how many samples with registers one is kept.
    pub fn stride(&self) -> u64 {
        1 << self.shift
    }

    /// In the order of their times.
    pub fn rows(&self) -> &[RegisterSample] {
        &self.rows
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Id;

    #[test]
    fn long_recordings_keep_evenly_spaced_registers() {
        let mut kept = RegisterSamples::default();
        for time_ns in 0..100_000 {
            let (thread, frame, event) =
                (ThreadId::from_index(0), FrameId::from_index(0), EventId::from_index(0));
            kept.offer(RegisterSample { time_ns, thread, event, frame, ip: 0, values: [0; REGISTERS] });
        }
        assert!(kept.len() <= RegisterSamples::MOST && kept.len() * 4 > RegisterSamples::MOST);
        let times: Vec<u64> = kept.rows().iter().map(|row| row.time_ns).collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == kept.stride()));
        assert_eq!(times[0], 0);
    }
}
