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

    /// Offers one more: of a long recording every second is kept, every fourth, and so on. `make` runs only for those. Where it gives
    /// `None`, the next that is offered takes the turn.
    pub fn offer(&mut self, make: impl FnOnce() -> Option<RegisterSample>) {
        if self.offered.trailing_zeros() < self.shift {
            self.offered += 1;
            return;
        }
        let Some(row) = make() else { return };
        self.offered += 1;
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

    fn row(time_ns: u64) -> RegisterSample {
        let (thread, frame, event) =
            (ThreadId::from_index(0), FrameId::from_index(0), EventId::from_index(0));
        RegisterSample { time_ns, thread, event, frame, ip: 0, values: [0; REGISTERS] }
    }

    #[test]
    fn a_turn_without_registers_goes_to_the_next() {
        let mut kept = RegisterSamples::default();
        // Each second one turns out to have none.
        for time_ns in 0..20_000 {
            kept.offer(|| (time_ns % 2 == 1).then(|| row(time_ns)));
        }
        // 10,000 at least could be kept; the list was halved once.
        assert_eq!(kept.stride(), 2);
        assert!(kept.len() > RegisterSamples::MOST / 2, "{}", kept.len());
        assert!(kept.rows().iter().all(|row| row.time_ns % 2 == 1));
    }

    #[test]
    fn long_recordings_keep_evenly_spaced_registers() {
        let mut kept = RegisterSamples::default();
        let mut made = 0;
        for time_ns in 0..100_000 {
            kept.offer(|| {
                made += 1;
                Some(row(time_ns))
            });
        }
        // As many as fill the list, and half of it again at each halving: not one for each that is offered.
        assert!(made <= RegisterSamples::MOST * 4, "{made} made");
        assert!(kept.len() <= RegisterSamples::MOST && kept.len() * 4 > RegisterSamples::MOST);
        let times: Vec<u64> = kept.rows().iter().map(|row| row.time_ns).collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == kept.stride()));
        assert_eq!(times[0], 0);
    }
}
