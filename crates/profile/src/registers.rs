//! User registers of some samples, from which, with the code, data addresses are computed.
//!
//! Invariant: there are at most [`RegisterSamples::MOST`], evenly spaced over all that were offered, so that each represents the same number of
//! samples. Elsewhere: their interpretation with the code.

use crate::event::EventId;
use crate::frame::FrameId;
use crate::process::ThreadId;

/// Largest number of registers of a sample: x0 to x30 and sp of aarch64.
pub const REGISTERS: usize = 32;

/// The user registers of a sample that interrupted user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterSample {
    /// Time on the clock of the samples, in nanoseconds.
    pub time_ns: u64,
    /// The thread.
    pub thread: ThreadId,
    /// The event that took the sample.
    pub event: EventId,
    /// The innermost frame: the instruction that was about to run, as an address of its file.
    pub frame: FrameId,
    /// The instruction pointer at run time.
    pub ip: u64,
    /// By DWARF number of the recorded machine: x0 to x30 and sp on aarch64; rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15 on x86-64, the
    /// others 0.
    pub values: [u64; REGISTERS],
}

/// The registers of some samples, sorted by time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegisterSamples {
    rows: Vec<RegisterSample>,
    /// One of 2^shift offered rows is kept.
    shift: u32,
    offered: u64,
}

impl RegisterSamples {
    /// Largest number of rows kept.
    pub const MOST: usize = 8192;

    /// Offers one more row. In a long recording every second is kept, then every fourth, and so on; `make` runs only for those. If it returns
    /// `None`, the next row offered takes its place.
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
            // The last row offered was kept; now half of the rows are dropped.
            if (self.offered - 1).trailing_zeros() < self.shift {
                return;
            }
        }
        self.rows.push(row);
    }

    /// Appends a row that was kept when it was recorded.
    pub fn push(&mut self, row: RegisterSample) {
        self.rows.push(row);
        self.offered += 1;
    }

    /// Returns the number of samples with registers per row kept.
    pub fn stride(&self) -> u64 {
        1 << self.shift
    }

    /// Returns the rows, sorted by time.
    pub fn rows(&self) -> &[RegisterSample] {
        &self.rows
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the list is empty.
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
        // Every second one turns out to have no registers.
        for time_ns in 0..20_000 {
            kept.offer(|| (time_ns % 2 == 1).then(|| row(time_ns)));
        }
        // At least 10,000 could be kept, so the list was halved once.
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
        // One list, and half of it again at each halving: not one for each that is offered.
        assert!(made <= RegisterSamples::MOST * 4, "{made} made");
        assert!(kept.len() <= RegisterSamples::MOST && kept.len() * 4 > RegisterSamples::MOST);
        let times: Vec<u64> = kept.rows().iter().map(|row| row.time_ns).collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == kept.stride()));
        assert_eq!(times[0], 0);
    }
}
