//! What kind of records come, and whose samples are kept.

use std::ops::Range;
use std::sync::Arc;

use plumb_profile::EventId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Where records come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This machine, now: what records leave out may be looked up in /proc.
    Live,
    /// A file, possibly of another machine: files are looked up by build id and path, /proc is not read.
    File,
}

/// Whose samples are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Everyone's: the events themselves are scoped (cgroup, inherited, or the whole machine is wanted).
    All,
    /// Those of these processes and of what they fork.
    Tree(Vec<u32>),
}

/// How samples are made of records.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// Stacks that end for want of unwind information are scanned.
    pub scans: bool,
    /// How samples of an event say what they count, if they don't count 1.
    pub weights: FxHashMap<EventId, Weight>,
    /// The functions through which programs are called that take samples of an event.
    pub ways_in: FxHashMap<EventId, Arc<[Range<u64>]>>,
    /// Events of which samples of the idle task are kept: what happens on a machine may well happen in it.
    pub keeps_idle: FxHashSet<EventId>,
    /// How long threads were off, where that is what samples weigh.
    pub times_off: Option<super::off_cpu::Times>,
}

/// How a record says what its sample counts, unless its period does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// It counts so much.
    Each(u64),
    /// By what the program wrote with it whose the record is.
    Said,
}

impl Ways {
    /// How many of these frames of the kernel, innermost first, are no part of what happened: a program that took the sample, and the
    /// functions through which it was called.
    pub fn before(&self, event: EventId, mut kernel: impl Iterator<Item = u64>) -> usize {
        let Some(way_in) = self.ways_in.get(&event) else { return 0 };
        let program = usize::from(kernel.next().is_some());
        program + kernel.take_while(|address| way_in.iter().any(|range| range.contains(address))).count()
    }
}
