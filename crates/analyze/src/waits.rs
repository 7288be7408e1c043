//! Classifies the waits of threads off the CPU, and finds the idle ones: those of a thread that waits for work.
//!
//! The kind of a wait comes from its system call, the kernel's functions on its stack, and for futexes the function that waits. A wait is
//! idle if it may be one for work (a condition, readiness of descriptors, a message, a timer) and is the outermost of its thread's
//! loop: wherever a thread comes from one place to several waits, the one with the fewest calls in between.
//!
//! Invariant: a wait for a mutex or another lock, for the disk, one stream, a child or a thread's end is never idle, nor one of the main thread of
//! the command that was recorded unless it waits for several descriptors at once.

mod kind;

use std::collections::{HashMap, HashSet};

use plumb_profile::{Event, Profile, ThreadId};

use crate::cost::Cost;
use crate::filter::Filter;
use crate::frame::Kind;
use crate::kernel::{Places, cause_of};
use crate::view::{NodeId, View, ViewSample};

use kind::{Wait, WorkSource, wait_at};
pub use kind::{WaitKind, lock_taken_at};

/// Calls by which other waits of a loop may be further out and this one still be the loop's own.
const SLACK: usize = 2;
/// A helper sleeps at least as long each time, on average.
const LONG_NS: u64 = 100_000_000;
/// With more calls than this a thread that never woke is rather stuck than idle.
const IDLE_DEPTH: usize = 12;

/// The kind of each wait of a view.
pub struct WaitKinds {
    kinds: HashMap<(ThreadId, NodeId), WaitKind>,
}

impl WaitKinds {
    /// Looks at all samples of a view of [`Event::OFF_CPU`]. `name_of`: the names of system calls by number.
    pub fn new(view: &View<'_>, name_of: impl Fn(u32) -> Option<&'static str>) -> Self {
        let places = Places::new(view);
        let mut waits: HashMap<(ThreadId, NodeId), Thread> = HashMap::new();
        for sample in view.samples() {
            let key = (sample.sample.thread, sample.node);
            let one = waits.entry(key).or_insert_with(|| {
                let place = places.of(sample.node);
                let (cause, name) = cause_of(place, sample.sample.syscall, false, &name_of);
                Thread { wait: wait_at(view, sample.node, (cause, &name)), times: 0, ns: 0 }
            });
            one.times += 1;
            one.ns = one.ns.saturating_add(sample.sample.weight);
        }
        let loops = Loops::new(view, &waits);
        let kind = |(&(thread, node), one): (&(ThreadId, NodeId), &Thread)| {
            let is_idle = may_be_idle(view.profile(), (thread, loops.places_of(thread)), one)
                && loops.is_outermost(view, (thread, node), one);
            ((thread, node), if is_idle { WaitKind::Idle } else { one.wait.kind })
        };
        Self { kinds: waits.iter().map(kind).collect() }
    }

    /// The kind of a sample's wait.
    pub fn of(&self, sample: &ViewSample) -> WaitKind {
        self.kinds.get(&(sample.sample.thread, sample.node)).copied().unwrap_or(WaitKind::Other)
    }

    /// Returns the cost of each kind, largest first. Idle, which does not belong to the others, is last.
    pub fn sums(&self, view: &View<'_>) -> Vec<(WaitKind, Cost)> {
        let mut sums: HashMap<WaitKind, Cost> = HashMap::new();
        for sample in view.samples() {
            *sums.entry(self.of(&sample)).or_default() += Cost::of_sample(sample.sample.weight);
        }
        let mut sums: Vec<(WaitKind, Cost)> = sums.into_iter().collect();
        sums.sort_by_key(|&(kind, cost)| (kind == WaitKind::Idle, std::cmp::Reverse(cost.weight), kind));
        sums
    }
}

/// The waits of a view by kind.
pub struct WaitSums<'p> {
    /// Cost of each kind, largest first; idle last.
    pub kinds: Vec<(WaitKind, Cost)>,
    /// Idle waits, which were taken out of the view.
    pub idle: View<'p>,
}

impl<'p> WaitSums<'p> {
    /// Takes idle waits out of a view, so that its shares are of the rest. `None`: its event is not the time that threads are blocked.
    ///
    /// `name_of`: the names of system calls by number.
    pub fn set_idle_aside(
        view: &mut View<'p>,
        filter: &Filter,
        name_of: impl Fn(u32) -> Option<&'static str>,
    ) -> Option<Self> {
        let profile = view.profile();
        let event = filter.event.map(|event| profile.strings.get(profile.events[event].name));
        if event != Some(Event::OFF_CPU) {
            return None;
        }
        let waits = WaitKinds::new(view, name_of);
        let kinds = waits.sums(view);
        let mut idle = view.clone();
        idle.set_aside(|sample| waits.of(sample) != WaitKind::Idle);
        idle.refer_to_part();
        view.set_aside(|sample| waits.of(sample) == WaitKind::Idle);
        Some(Self { kinds, idle })
    }

    /// Threads with an idle wait.
    pub fn idle_threads(&self) -> usize {
        self.idle.samples().map(|kept| kept.sample.thread).collect::<HashSet<ThreadId>>().len()
    }

    /// Returns the names of threads with an idle wait, the one that idles longest first.
    pub fn idle_names(&self) -> Vec<&'p str> {
        let profile = self.idle.profile();
        let mut weights: HashMap<&'p str, u64> = HashMap::new();
        for kept in self.idle.samples() {
            let weight =
                weights.entry(profile.strings.get(profile.threads[kept.sample.thread].comm)).or_default();
            *weight = weight.saturating_add(kept.sample.weight);
        }
        let mut names: Vec<(&str, u64)> = weights.into_iter().collect();
        names.sort_unstable_by_key(|&(name, weight)| (std::cmp::Reverse(weight), name));
        names.into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the cost of all kinds except idle.
    pub fn whole(&self) -> Cost {
        self.kinds.iter().filter(|(kind, _)| *kind != WaitKind::Idle).map(|&(_, cost)| cost).sum()
    }
}

/// The waits of one thread in one place.
struct Thread {
    wait: Wait,
    /// Number of samples.
    times: u64,
    /// Total duration of these samples, in nanoseconds.
    ns: u64,
}

/// Returns whether a thread that waits in this number of places may wait in this one for work.
fn may_be_idle(profile: &Profile, (thread, places): (ThreadId, usize), one: &Thread) -> bool {
    let row = &profile.threads[thread];
    let process = &profile.processes[row.process];
    let is_main = row.tid == process.pid;
    let is_root =
        || !profile.processes.rows().iter().any(|other| other.pid == process.ppid && process.ppid != 0);
    let is_command = is_main && !profile.meta.command.is_empty() && is_root();
    match one.wait.work {
        WorkSource::None => false,
        WorkSource::Several => true,
        WorkSource::Condition => !is_command,
        // A thread that was woken here came back to wait for the next request.
        WorkSource::One => !is_main && one.times > 1,
        // A short sleep is part of the work, and so is a sleep of a thread that also waits for other things.
        WorkSource::Time => !is_main && one.times > 1 && places == 1 && one.ns >= one.times * LONG_NS,
    }
}

/// The places from which threads come to several waits.
struct Loops {
    /// Per such place and branch that a thread takes there, the fewest calls to a wait for work that the same thread has from there.
    outermost: HashMap<(NodeId, NodeId), usize>,
    /// Places in which a thread waits.
    places: HashMap<ThreadId, usize>,
}

impl Loops {
    fn new(view: &View<'_>, waits: &HashMap<(ThreadId, NodeId), Thread>) -> Self {
        // By thread and node the branches to its waits, and the fewest calls to one for work.
        let mut nodes: HashMap<(ThreadId, NodeId), (HashSet<NodeId>, usize)> = HashMap::new();
        let mut places: HashMap<ThreadId, usize> = HashMap::new();
        for (&(thread, node), one) in waits {
            *places.entry(thread).or_default() += 1;
            let path = user_path(view, node);
            let calls = if one.wait.work == WorkSource::None { usize::MAX } else { path.len() };
            for pair in path.windows(2) {
                let (branches, fewest) =
                    nodes.entry((thread, pair[1])).or_insert_with(|| (HashSet::new(), usize::MAX));
                branches.insert(pair[0]);
                *fewest = (*fewest).min(calls);
            }
        }
        let mut outermost: HashMap<(NodeId, NodeId), usize> = HashMap::new();
        for ((_, node), (branches, fewest)) in nodes {
            for &branch in branches.iter().filter(|_| branches.len() > 1) {
                let least = outermost.entry((node, branch)).or_insert(fewest);
                *least = (*least).min(fewest);
            }
        }
        Self { outermost, places }
    }

    fn places_of(&self, thread: ThreadId) -> usize {
        self.places.get(&thread).copied().unwrap_or(0)
    }

    fn is_outermost(&self, view: &View<'_>, (thread, node): (ThreadId, NodeId), one: &Thread) -> bool {
        let path = user_path(view, node);
        let is_known = self.places_of(thread) > 1 || one.times > 1;
        let mut loops = path.windows(2).filter_map(|pair| self.outermost.get(&(pair[1], pair[0]))).peekable();
        if loops.peek().is_none() && !is_known && path.len() > IDLE_DEPTH {
            return false;
        }
        loops.all(|&fewest| path.len() <= fewest.saturating_add(SLACK))
    }
}

/// The nodes of a stack that are not the kernel's, innermost first.
fn user_path(view: &View<'_>, node: NodeId) -> Vec<NodeId> {
    let stack = std::iter::successors(Some(node), |&node| view.node(node).caller);
    stack.filter(|&node| view.frame(view.node(node).frame).kind == Kind::User).collect()
}
