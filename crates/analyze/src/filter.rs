//! The filter that selects a part of a profile.

use plumb_profile::{EventId, Profile, Thread};

use crate::pattern::Pattern;
use crate::report::exe_text;

/// Selects samples and frames. The default keeps everything; conditions of different kinds must all hold, and of
/// several patterns of one kind any may match.
///
/// `event`, `time`, `cpus` and `no_idle` determine the whole that percentages refer to. The others
/// select a part of it.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only samples of this event. Adding up weights of different events makes no sense.
    pub event: Option<EventId>,
    /// Only samples taken in this time. An off-CPU period counts with its part within the range.
    pub time: Option<TimeRange>,
    /// Excluded times, sorted, in nanoseconds on the samples' clock: the target was disturbed then.
    pub except: Vec<std::ops::Range<u64>>,
    /// Only samples taken on these CPUs; empty: all.
    pub cpus: Vec<u32>,
    /// Leaves out the idle task.
    pub no_idle: bool,

    /// Only threads with such a name.
    pub comms: Vec<Pattern>,
    /// Only these threads.
    pub threads: Vec<ThreadPattern>,
    /// Only processes with these ids.
    pub pids: Vec<u32>,
    /// Only processes that run such an executable: its path or the last part of it; where none is known `[NAME]` of the thread.
    pub exes: Vec<Pattern>,
    /// Only samples taken in the kernel, or only those taken in user code.
    pub mode: Option<Mode>,
    /// Only stacks with a frame in such a file.
    pub dsos: Vec<Pattern>,
    /// Only stacks with a function of such a name.
    pub symbols: Vec<Pattern>,
    /// Only stacks with a frame whose name matches.
    pub focus: Vec<Pattern>,
    /// No stacks with a frame whose name matches.
    pub ignore: Vec<Pattern>,

    /// Removes matching frames from stacks; what was spent in them goes to their callers.
    pub hide: Vec<Pattern>,
    /// Leaves inlined calls out of stacks.
    pub no_inline: bool,
    /// Shows an interpreter's loop instead of the functions of the program that it ran.
    pub native: bool,
}

/// The processor mode of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the kernel.
    Kernel,
    /// In user code.
    User,
}

/// A stretch of time in nanoseconds since the start of the recording; `end` is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First nanosecond.
    pub start: u64,
    /// One past the last nanosecond.
    pub end: u64,
    /// Only this part of each second.
    pub part: Option<SecondPart>,
}

/// A part of each second, as in a heat map: activity that repeats every second at the same offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondPart {
    /// First nanosecond of the second.
    pub from: u64,
    /// One past the last nanosecond; at most 10⁹.
    pub to: u64,
    /// Offset of the recording's start in its second.
    pub phase: u64,
}

/// A thread as named by a user.
#[derive(Clone, Debug)]
pub enum ThreadPattern {
    /// By its thread id.
    Tid(u32),
    /// By its name.
    Name(Pattern),
}

impl Filter {
    /// Whether samples of `thread` are a part of the whole that percentages refer to.
    pub(crate) fn counts_thread(&self, profile: &Profile, thread: &Thread) -> bool {
        !self.no_idle || profile.processes[thread.process].pid != 0
    }

    /// Whether samples of `thread` are kept.
    pub(crate) fn keeps_thread(&self, profile: &Profile, thread: &Thread) -> bool {
        let comm = profile.strings.get(thread.comm);
        let pid = profile.processes[thread.process].pid;
        any(&self.comms, |pattern| pattern.matches(comm))
            && any(&self.pids, |&wanted| wanted == pid)
            && self.keeps_exe(profile.strings.get(profile.processes[thread.process].exe), comm)
            && any(&self.threads, |wanted| match wanted {
                ThreadPattern::Tid(tid) => *tid == thread.tid,
                ThreadPattern::Name(pattern) => pattern.matches(comm),
            })
    }

    /// Returns whether a process is kept, as far as its ID, name and executable decide it without its samples.
    pub(crate) fn keeps_process(&self, comm: &str, pid: u32, exe: &str) -> bool {
        any(&self.comms, |pattern| pattern.matches(comm))
            && any(&self.pids, |&wanted| wanted == pid)
            && self.keeps_exe(exe, comm)
    }

    fn keeps_exe(&self, exe: &str, comm: &str) -> bool {
        any(&self.exes, |pattern| pattern.matches_path(&exe_text(exe, comm)))
    }

    /// Whether all samples of an event are kept, so that the kernel's account of the recording covers the same.
    pub fn is_whole(&self) -> bool {
        !self.takes_a_part() && self.time.is_none() && self.cpus.is_empty()
    }

    /// Whether some samples of a process may be kept and others not, for another reason than their time.
    pub(crate) fn splits_processes(&self) -> bool {
        self.names_samples() || !self.cpus.is_empty()
    }

    /// Whether threads, files, functions or a mode are asked for.
    fn names_samples(&self) -> bool {
        let patterns = [&self.comms, &self.dsos, &self.symbols, &self.focus, &self.ignore];
        patterns.iter().any(|list| !list.is_empty()) || !self.threads.is_empty() || self.mode.is_some()
    }

    /// Whether anything but the whole is asked for, so that percentages don't sum to 100.
    pub fn takes_a_part(&self) -> bool {
        self.names_samples() || !self.pids.is_empty() || !self.exes.is_empty()
    }
}

/// Zero of the time that users give: the start of the recording, or its first sample if that is not known.
pub(crate) fn start_ns(profile: &Profile) -> u64 {
    match (profile.meta.start_ns, profile.samples.get(0)) {
        (0, first) => first.map_or(0, |sample| sample.time_ns),
        (start, first) => first.map_or(start, |sample| sample.time_ns.min(start)),
    }
}

/// No condition, or one that holds.
fn any<T>(conditions: &[T], holds: impl FnMut(&T) -> bool) -> bool {
    conditions.is_empty() || conditions.iter().any(holds)
}

impl TimeRange {
    /// From one moment to another on the clock of the profile's samples.
    pub fn between(profile: &Profile, from_ns: u64, to_ns: u64) -> Self {
        let zero = start_ns(profile);
        Self { start: from_ns.saturating_sub(zero), end: to_ns.saturating_sub(zero), part: None }
    }

    /// Whether `ns` is part of the range.
    pub fn contains(self, ns: u64) -> bool {
        let in_part =
            |part: SecondPart| (part.from..part.to).contains(&((ns % SECOND_NS + part.phase) % SECOND_NS));
        (self.start..self.end).contains(&ns) && self.part.is_none_or(in_part)
    }

    /// Returns the length of the overlap of the range with `length` nanoseconds from `from` on.
    pub fn overlap(self, from: u64, length: u64) -> u64 {
        let (begin, end) = (from.max(self.start), from.saturating_add(length).min(self.end));
        let Some(part) = self.part else { return end.saturating_sub(begin) };
        let until = |ns: u64| {
            let ns = ns.saturating_add(part.phase);
            let of_last = (ns % SECOND_NS).clamp(part.from, part.to.max(part.from)) - part.from;
            (ns / SECOND_NS).saturating_mul(part.to.saturating_sub(part.from)).saturating_add(of_last)
        };
        if begin < end { until(end) - until(begin) } else { 0 }
    }
}

/// Nanoseconds of a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Returns the time that a filter's times are relative to, in nanoseconds since 1970 if the recording has that, otherwise on the clock of its
/// samples.
pub fn zero_unix_ns(profile: &Profile) -> i64 {
    let meta = &profile.meta;
    let zero = i128::from(meta.start_unix_ns) + i128::from(start_ns(profile)) - i128::from(meta.start_ns);
    i64::try_from(zero).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_what_is_contained() {
        let ms = 1_000_000;
        let part = |from: u64, to: u64, phase| SecondPart { from: from * ms, to: to * ms, phase: phase * ms };
        for part in [None, Some(part(200, 300, 0)), Some(part(0, 50, 990)), Some(part(900, 1000, 450))] {
            let range = TimeRange { start: 150 * ms, end: 3_260 * ms, part };
            for (from, length) in [(0, 100), (0, 5000), (170, 1200), (240, 30), (3_200, 900), (4_000, 10)] {
                let contained = (from..from + length).filter(|&at| range.contains(at * ms)).count() as u64;
                assert_eq!(range.overlap(from * ms, length * ms), contained * ms, "{part:?} {from} {length}");
            }
        }
    }
}
