//! What kind of records come, and whose samples are kept.

use plumb_profile::EventId;
use rustc_hash::FxHashMap;

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
    /// What a sample of an event counts that doesn't say so, if it isn't 1.
    pub each: FxHashMap<EventId, u64>,
    /// How long threads were off, where that is what samples weigh.
    pub times_off: Option<super::off_cpu::Times>,
}
