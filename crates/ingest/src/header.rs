//! The part of a sample that all sources have: everything but its stack.

use plumb_capture_api::{OffThread, WalkedSample};
use plumb_profile::EventId;

use crate::perf_records;

/// A sample without its stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleHeader {
    pub(crate) event: EventId,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// Time of the sample in nanoseconds, on the clock of the records.
    pub(crate) time_ns: u64,
    pub(crate) cpu: u32,
    /// The weight, in the event's unit.
    pub(crate) weight: u64,
    /// The system call that it interrupted, if known.
    pub(crate) syscall: Option<u32>,
    /// Whether it was taken in kernel mode.
    pub(crate) in_kernel: bool,
}

impl SampleHeader {
    /// The header of a sample in a record. `syscall` comes from another source.
    pub(crate) fn of_record(event: EventId, sample: &perf_records::Sample<'_>, syscall: Option<u32>) -> Self {
        let &perf_records::Sample { pid, tid, time: time_ns, cpu, period: weight, in_kernel, .. } = sample;
        Self { event, pid, tid, time_ns, cpu, weight, syscall, in_kernel }
    }

    /// The header of a sample whose stack was unwound in the kernel.
    pub(crate) fn of_walked(event: EventId, walked: &WalkedSample) -> Self {
        let &WalkedSample { pid, tid, time_ns, cpu, period: weight, syscall, in_kernel, .. } = walked;
        Self { event, pid, tid, time_ns, cpu, weight, syscall, in_kernel }
    }

    /// The header for a thread that is off the CPU, which it left in the kernel. Its weight is not known yet.
    pub(crate) fn of_off(event: EventId, thread: &OffThread) -> Self {
        let &OffThread { pid, tid, time_ns, .. } = thread;
        Self { event, pid, tid, time_ns, cpu: 0, weight: 0, syscall: None, in_kernel: true }
    }
}
