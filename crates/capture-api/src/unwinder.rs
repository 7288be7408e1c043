//! The in-kernel stack unwinder, as seen by a recorder.
//!
//! A [`KernelUnwinder`] is attached to the sampling events and keeps the samples whose stacks it can unwind; all others become ordinary
//! records. Elsewhere: the unwinding itself, its messages ([`Messages`]).

use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::{Counted, Measure, Messages, SamplingRate, UnwindInfoRef};

/// Unwinds stacks before they are copied.
///
/// # Order of calls
/// 1. *Whom*: [`only_followed`](Self::only_followed), then [`follow`](Self::follow) for each process; or
///    [`await_comm`](Self::await_comm); or neither, for all processes.
/// 2. *Which events*: [`measure`](Self::measure) for events of its own (may be asked at any time), [`watch`](Self::watch) for each probe. The
///    recorder attaches
///    [`program`](Self::program) and [`at_function`](Self::at_function) to events that it opens. An unwinder that no event uses is dropped.
/// 3. *Warm-up*, if the target runs already: the program only requests files' unwind information, and the recorder supplies it.
/// 4. [`begin`](Self::begin). A command is held until then.
/// 5. *Again and again*: [`take`](Self::take), then [`supply`](Self::supply) or [`mark_memory`](Self::mark_memory) for each request;
///    [`take_counts`](Self::take_counts) about once a second; `follow` for processes that join the target.
/// 6. [`unwatch`](Self::unwatch), a last `take` and `take_counts`, [`probe_counts`](Self::probe_counts), [`handed_over`](Self::handed_over). Dropping the
///    unwinder detaches all programs.
///
/// # Threads
/// One call at a time, from the recorder's thread, except `take`: while the recorder is busy, the thread that empties the rings calls it.
///
/// # What the implementor owes
/// - **A stack that cannot be unwound costs a copy, never a sample.** The program then returns 1, and the kernel writes its record. It
///   sends stacks that are complete or have the most frames, and counts the reason for [`UnwindFallbackStats::reasons`].
/// - **A message is sent after the records that it depends on**: the recorder takes messages first and reads records after them.
/// - **Bounded work**: `take` moves what is there and does not wait. Tables stay within the memory that it was loaded with; others make room
///   ([`can_load`](Self::can_load) is false meanwhile). A full buffer means copies, not waiting.
/// - **Requests are repeated** until `supply` returns true. `None` means: not now.
/// - **Errors** before `begin` end the recording, or, from `watch`, leave that event to perf. Afterwards there are none: malformed messages are
///   skipped and counted ([`UnwindFallbackStats::damaged`]).
///
/// Example: `Programs` in `plumb-capture-bpf` (`loader.rs`); the smallest one is `Scripted` in the tests of `plumb-capture-perf`.
pub trait KernelUnwinder: Send {
    /// Returns the program for the sampling events, unless it only measures. The program returns 0 for a sample that it keeps.
    fn program(&self) -> Option<BorrowedFd<'_>>;
    /// Returns a descriptor that becomes readable when there are messages to take soon.
    fn wakes(&self) -> BorrowedFd<'_>;
    /// Restricts sampling to followed processes (initially none).
    fn only_followed(&mut self) -> io::Result<()>;
    /// Follows this process, given by its pidfd, and its future children, and restricts sampling to followed processes.
    fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()>;
    /// Starts sampling. Before, it only requests files' unwind information, and no sample becomes a record.
    fn begin(&mut self) -> io::Result<()>;
    /// Restricts sampling to followed processes, and follows any process that execs a program and then has this name, from that moment on.
    fn await_comm(&mut self, comm: &[u8]) -> io::Result<()>;
    /// Makes each hit of a probe an event; the kernel side decides which of them become samples. The error is the
    /// reason, worded as the end of a sentence.
    fn watch(&mut self, watched: &ProbeSpec<'_>) -> io::Result<FallbackEvents>;
    /// Returns the program for the events of function probes, to be attached with their numbers.
    fn at_function(&self) -> Option<BorrowedFd<'_>>;
    /// Removes all probes.
    fn unwatch(&mut self) -> io::Result<()>;
    /// Returns the counts of a probe.
    fn probe_counts(&self, number: usize) -> Option<ProbeCounts>;
    /// Moves pending messages into `into`.
    fn take(&mut self, into: &mut Messages);
    /// Passes on the counts since the last call.
    fn take_counts(&mut self, each: &mut dyn FnMut(Counted));
    /// Whether it can load a file's unwind information now; otherwise it is making room.
    fn can_load(&self) -> bool;
    /// Supplies the unwind information of a requested file; `None`: it was not found this time. Returns whether the request is settled;
    /// otherwise it is repeated.
    fn supply(&mut self, file: u32, code: Option<UnwindInfoRef<'_>>) -> bool;
    /// Marks a requested file as memory that the kernel keeps as a file: shared memory, or that of `memfd_create`.
    fn mark_memory(&mut self, file: u32);
    /// Adds a known interpreter of this process, mapped at an address.
    fn add_interpreter(&mut self, pid: u32, address: u64);
    /// Adds anonymous memory of this process from `start` on as a copy of a file's text, from this offset on. Equal `file`s are the same.
    fn add_copied_text(&mut self, pid: u32, start: u64, file: usize, offset: u64);
    /// Reports that another mapping replaced one of this process.
    fn forget(&mut self, pid: u32);
    /// Returns the other tools' programs that ran so far, during which no sample is taken: as of a check within the last second, or `now`.
    fn other_programs(&mut self, _now: bool) -> OtherPrograms {
        OtherPrograms::default()
    }
    /// Returns the number of samples unwound, and the reasons for passing others on.
    fn handed_over(&self) -> UnwindFallbackStats;
    /// Returns its measurement, if it has one. Programs are attached to other events with the numbers after its events then.
    fn measure(&mut self) -> Option<&mut dyn Measure>;
}

/// A probe to attach.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSpec<'a> {
    /// Number of its event.
    pub number: usize,
    /// The tracepoint, as `GROUP:NAME`; `None`: a function, to whose event [`KernelUnwinder::at_function`] is attached.
    pub tracepoint: Option<&'a str>,
    /// Rate at which hits become samples.
    pub pace: SamplingRate,
    /// Sampling rate to fall back to when the event fires too often; `None`: never fall back.
    pub limit_hz: Option<u32>,
    /// Sample only while its fallback events are running.
    pub is_scoped: bool,
}

/// Events through which samples of a probe are sent if they cannot be unwound.
#[derive(Debug)]
pub struct FallbackEvents {
    /// The map with these events, by CPU.
    pub map: OwnedFd,
    /// Kernel functions through which the program is called, if its samples have kernel stacks.
    pub way_in: Option<Vec<Range<u64>>>,
}

/// The counts of a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeCounts {
    /// Number of hits by the target.
    pub times: u64,
    /// Whether samples are taken by time, as requested or because the event fires too often.
    pub is_by_time: bool,
    /// Number of samples that could neither be unwound nor copied.
    pub lost: u64,
}

/// Statistics of an unwinder, in samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindFallbackStats {
    /// Unwound in the kernel, including counted ones.
    pub walked: u64,
    /// Samples of threads that are not recorded.
    pub others: u64,
    /// Not unwound, by reason.
    pub reasons: Vec<(&'static str, u64)>,
    /// Upper bound of the tracepoint hits that were missed: in an interrupt, while its program was running.
    pub unseen: u64,
    /// Memory used by its tables, in bytes.
    pub table_bytes: u64,
    /// Number of tables evicted.
    pub evicted: u64,
    /// Number of malformed messages.
    pub damaged: u64,
}

impl UnwindFallbackStats {
    /// Returns the number of samples that it received.
    pub fn asked(&self) -> u64 {
        self.walked + self.others + self.reasons.iter().map(|(_, samples)| samples).sum::<u64>()
    }
}

/// Other tools' programs in the kernel. While one runs, the kernel drops samples that a program would take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherPrograms {
    /// Total time for which they ran while observed, in nanoseconds.
    pub run_ns: u64,
    /// Names in the kernel of those that ran, the longest first.
    pub names: Vec<String>,
}
