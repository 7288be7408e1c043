//! What walks stacks in the kernel, as a recorder sees it.
//!
//! An [`KernelUnwinder`] is attached to the sampling events and keeps the samples that it can walk; all others come as records of
//! their own. Not here: how it walks, what it says ([`Messages`]).

use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::{Counted, Messages, OffCpu, SamplingRate, UnwindInfoRef};

/// Something that walks stacks before they are copied. Messages may be taken by a thread of their own, while another works.
pub trait KernelUnwinder: Send {
    /// The program for the sampling events, unless it only measures. It returns 0 for a sample that it keeps.
    fn program(&self) -> Option<BorrowedFd<'_>>;
    /// Becomes readable when there are messages to be taken soon.
    fn wakes(&self) -> BorrowedFd<'_>;
    /// Keeps to processes that are followed: to none, until one is.
    fn only_followed(&mut self) -> io::Result<()>;
    /// Keeps to this process, by its pidfd, with what it forks from now on, and to others that are told.
    fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()>;
    /// From now on samples count. Before, it only says which files' code it wants, and no sample becomes a record.
    fn begin(&mut self) -> io::Result<()>;
    /// Keeps to processes that are followed, and follows any that execs a program and then has this name, from that moment on.
    fn await_comm(&mut self, comm: &[u8]) -> io::Result<()>;
    /// Has each passing of a place be an event. Which of them are samples is then decided in the kernel. An error says why it can't
    /// be, in words that end a sentence.
    fn watch(&mut self, watched: &ProbeSpec<'_>) -> io::Result<FallbackEvents>;
    /// The program for the events of functions that are watched, to be attached with their numbers.
    fn at_function(&self) -> Option<BorrowedFd<'_>>;
    /// Watches no place any more.
    fn unwatch(&mut self) -> io::Result<()>;
    /// What became of a place that is watched.
    fn passed(&self, number: usize) -> Option<ProbeCounts>;
    /// Takes the messages that are there.
    fn take(&mut self, into: &mut Messages);
    /// Takes what was counted since the last time.
    fn take_counts(&mut self, each: &mut dyn FnMut(Counted));
    /// Whether it can take the code of a file now; else it is making room for some.
    fn can_load(&self) -> bool;
    /// Gives it the code of a file that it wants; `None`: it could not be found this time. Returns whether it has what it needs of that now: else
    /// it will ask again.
    fn supply(&mut self, file: u32, code: Option<UnwindInfoRef<'_>>) -> bool;
    /// What it wanted the code of as a file is memory that the kernel keeps as one: shared, or of `memfd_create`.
    fn is_memory(&mut self, file: u32);
    /// There is a known interpreter in what this process has mapped at an address.
    fn has_interpreter(&mut self, pid: u32, address: u64);
    /// Anonymous memory of this process that begins at `start` holds a copy of a file's text, from this offset on. Equal `file`s are the same.
    fn has_copied_text(&mut self, pid: u32, start: u64, file: usize, offset: u64);
    /// Something else was mapped over a mapping of this process.
    fn forget(&mut self, pid: u32);
    /// Programs of other tools that ran so far, in which no sample is taken: as of a look within the last second, or `now`.
    fn other_programs(&mut self, _now: bool) -> OtherPrograms {
        OtherPrograms::default()
    }
    /// How many samples it walked, and why others were handed over.
    fn handed_over(&self) -> UnwindFallbackStats;
    /// What measures time off the processor, if this does. Its stacks have the numbers 0 and 1 of events, for time blocked and time waited for a
    /// processor; programs are attached to other events with numbers from 2 on then.
    fn off_cpu(&mut self) -> Option<&mut dyn OffCpu>;
}

/// A place to be watched.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSpec<'a> {
    /// The number of its event.
    pub number: usize,
    /// The tracepoint, as `GROUP:NAME`; `None`: a function, to whose event [`KernelUnwinder::at_function`] is attached.
    pub tracepoint: Option<&'a str>,
    /// How often a sample is taken.
    pub pace: SamplingRate,
    /// So many samples a second are taken once each single one is too many; `None`: they never are.
    pub limit_hz: Option<u32>,
    /// Only what runs while its copiers do is to be sampled.
    pub is_scoped: bool,
}

/// What samples of a place that can't be walked are sent through: events that exist for that.
#[derive(Debug)]
pub struct FallbackEvents {
    /// The map that they are entered in, by processor.
    pub map: OwnedFd,
    /// The functions through which the kernel calls the program, where its samples have kernel stacks.
    pub way_in: Option<Vec<Range<u64>>>,
}

/// What became of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeCounts {
    /// How often the target passed it.
    pub times: u64,
    /// Samples are taken by time, as was asked for or because each single one was too many.
    pub is_by_time: bool,
    /// Samples that could neither be walked nor copied.
    pub lost: u64,
}

/// What an assistant did, in samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindFallbackStats {
    /// Walked in the kernel, counted ones included.
    pub walked: u64,
    /// Of tasks that are not recorded.
    pub others: u64,
    /// Not walked, by where that ended.
    pub reasons: Vec<(&'static str, u64)>,
    /// At most so many times a tracepoint was passed and it was not seen: in an interrupt, while its program was at work for one.
    pub unseen: u64,
    /// Memory that its tables take.
    pub table_bytes: u64,
    /// Tables that had to make room for others.
    pub evicted: u64,
    /// Messages that made no sense.
    pub damaged: u64,
}

impl UnwindFallbackStats {
    /// Samples that it was asked about.
    pub fn asked(&self) -> u64 {
        self.walked + self.others + self.reasons.iter().map(|(_, samples)| samples).sum::<u64>()
    }
}

/// Programs of other tools in the kernel. While one runs the kernel drops a sample that a program is to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherPrograms {
    /// For how long all of them together ran while they were watched, in nanoseconds.
    pub run_ns: u64,
    /// Those that ran, the longest first, as the kernel calls them.
    pub names: Vec<String>,
}
