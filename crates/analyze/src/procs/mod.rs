//! The processes of a recording by program: number, run time, cost by part, parent program and start
//! stacks.
//!
//! Numbers of processes and their times come from the profile's lives and are exact; costs come from samples. All kept
//! samples except those of the idle task are in exactly one program and one part.

mod alive;
mod counts;
mod family;
mod part;
mod start;

use plumb_profile::{Id, Profile};

use crate::cost::Cost;
use crate::coverage::is_clock;
use crate::filter::{Filter, start_ns};
use crate::kernel::{Mark, Places};
use crate::view::View;

pub(crate) use counts::SHORT_NS;
pub use part::Part;
pub use start::Start;

use family::Family;

/// The processes of a view by program.
pub struct Procs<'p> {
    /// The programs, each after its parent, most expensive (including children) first.
    pub programs: Vec<Program<'p>>,
    /// Cost of all programs.
    pub whole: Cost,
    /// Whether costs are nanoseconds of CPU time, and not another time, such as off-CPU time, or a number of
    /// events.
    pub is_time: bool,
    /// Event that costs refer to. Empty if the profile has none.
    pub event: &'p str,
    /// Unit of costs: `ns`, or the counted event. Empty if not known.
    pub unit: &'p str,
    /// Length of the recording, or of the part of it that the filter keeps, in nanoseconds.
    pub span_ns: u64,
    /// Number of processes.
    pub processes: u64,
    /// Largest number at one time. `None` if lives were not recorded.
    pub most_alive: Option<u64>,
    /// Whether lives were recorded. Otherwise only sampled processes are known.
    pub has_lives: bool,
    /// Whether kernel functions have no names, so that only user and kernel time can be distinguished.
    pub nameless_kernel: bool,
}

/// A program started by one other program.
#[derive(Clone, Debug)]
pub struct Program<'p> {
    /// Index of the parent program.
    pub parent: Option<usize>,
    /// Level in the tree, 0 for those without a known parent.
    pub depth: usize,
    /// Path of the executable, empty if not known and for kernel threads.
    pub exe: &'p str,
    /// The kernel's name for it; for a script, the script's name.
    pub comm: &'p str,
    /// Forked from the parent program, and never exec'd.
    pub forked: bool,
    /// Number of processes that ran it, counting one that execs it again once.
    pub processes: u64,
    /// Largest number at one time. `None` if lives were not recorded.
    pub most_alive: Option<u64>,
    /// Mean run time of a process, from fork (or exec, without one) to the end, over those recorded from
    /// start to end.
    pub mean_life_ns: Option<f64>,
    /// Short-lived processes.
    pub short: ShortProcesses,
    /// Cost of its processes per [`Part`], in that order.
    pub parts: [Cost; Part::ALL.len()],
    /// Part of the cost between fork and exec.
    pub before_exec: Cost,
    /// Cost including all programs that it started.
    pub total: Cost,
    /// CPU time that the kernel accounted for those of its processes where it is known.
    pub accounted_ns: u64,
    /// Number of processes whose CPU time is known from start to end.
    pub accounted: u64,
    /// Cost of creating its processes, in their parents.
    pub forking: Cost,
    /// Part of `forking` spent on copying page tables.
    pub copying: Cost,
    /// Cost of its page faults that copy a page shared since a fork.
    pub unsharing: Cost,
    /// CPU time of its waiting for children.
    pub waiting: Cost,
    /// Number of processes that it forked.
    pub forks: u64,
    /// Peak resident memory of one of its processes, in bytes, if that was read: for some that fork.
    pub peak_rss_bytes: Option<u64>,
    /// Stacks that its processes were started from, most samples first.
    pub starts: Vec<Start>,
}

/// Processes that lived for less than 10 ms, over all programs that they ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortProcesses {
    /// Number of processes that ran a program.
    pub all: u64,
    /// Number of these that ran no other program before: each process counts for one program only.
    pub begun: u64,
}

impl Program<'_> {
    /// Returns the cost of its own processes.
    pub fn own(&self) -> Cost {
        self.parts.iter().copied().sum()
    }

    /// Returns the cost of a part.
    pub fn part(&self, part: Part) -> Cost {
        self.parts[part as usize]
    }

    /// Returns its cost in the kernel.
    pub fn in_kernel(&self) -> Cost {
        self.parts[Part::User as usize + 1..].iter().copied().sum()
    }

    /// Returns the file's name, or another name if there is none.
    pub fn name(&self) -> &str {
        match self.exe.rsplit('/').next() {
            Some(name) if !name.is_empty() => name,
            _ => self.comm,
        }
    }
}

impl<'p> Procs<'p> {
    /// Sums up the samples that `view` keeps, with the lives that `filter` keeps.
    pub fn new(view: &View<'p>, filter: &Filter) -> Self {
        let profile = view.profile();
        let family = Family::new(profile);
        let places = Places::new(view);
        let span = span(profile, filter);
        let mut programs: Vec<Program<'p>> =
            family.branches.iter().map(|branch| program(profile, branch)).collect();
        let (processes, most_alive) = counts::add(view, filter, &family, span, &mut programs);
        let whole = add_samples(view, &family, &places, &mut programs);
        start::find(view, &family, &places, &mut programs);
        let has_lives = !profile.lives.is_empty();
        for program in programs.iter_mut().filter(|_| !has_lives) {
            program.most_alive = None;
        }
        let event = filter.event.map(|event| &profile.events[event]).or(profile.events.rows().first());
        let (event, unit) = event
            .map_or(("", ""), |event| (profile.strings.get(event.name), profile.strings.get(event.unit)));
        Procs {
            programs: sorted(programs),
            whole,
            is_time: unit == "ns" && is_clock(event),
            event,
            unit,
            span_ns: span.1.saturating_sub(span.0),
            processes,
            most_alive: most_alive.filter(|_| has_lives),
            has_lives,
            nameless_kernel: places.nameless,
        }
    }
}

fn program<'p>(profile: &'p Profile, branch: &family::Branch) -> Program<'p> {
    Program {
        parent: branch.parent,
        depth: 0,
        exe: profile.strings.get(branch.exe),
        comm: profile.strings.get(branch.comm),
        forked: branch.forked,
        processes: 0,
        most_alive: None,
        mean_life_ns: None,
        short: ShortProcesses::default(),
        parts: Default::default(),
        before_exec: Cost::default(),
        total: Cost::default(),
        accounted_ns: 0,
        accounted: 0,
        forking: Cost::default(),
        copying: Cost::default(),
        unsharing: Cost::default(),
        waiting: Cost::default(),
        forks: 0,
        peak_rss_bytes: None,
        starts: Vec::new(),
    }
}

/// Returns the selected time range, on the samples' clock.
fn span(profile: &Profile, filter: &Filter) -> (u64, u64) {
    let start = start_ns(profile);
    let last_sample = profile.samples.len().checked_sub(1).and_then(|last| profile.samples.get(last));
    let last_life = profile.lives.rows().iter().filter_map(|life| life.end_ns.max(life.start_ns)).max();
    let end = start
        .saturating_add(profile.meta.duration_ns)
        .max(last_sample.map_or(0, |sample| sample.time_ns))
        .max(last_life.unwrap_or(0));
    match filter.time {
        Some(time) => (start.saturating_add(time.start).min(end), start.saturating_add(time.end).min(end)),
        None => (start, end),
    }
}

/// Adds each sample to its program and part.
fn add_samples(view: &View<'_>, family: &Family, places: &Places<'_>, programs: &mut [Program<'_>]) -> Cost {
    let mut whole = Cost::default();
    for (thread, node, cost) in view.costs() {
        let process = view.profile().threads[thread].process;
        let Some(life) = family.life_of_process[process.index()] else { continue };
        let place = places.of(node);
        let program = &mut programs[family.branch_of[life]];
        whole += cost;
        let part = Part::of(place);
        program.parts[part as usize] += cost;
        if family.is_before_exec[life] {
            program.before_exec += cost;
        }
        if part == Part::Fault && place.has(Mark::UNSHARING) {
            program.unsharing += cost;
        }
        if place.has(Mark::WAITING) {
            program.waiting += cost;
        }
    }
    whole
}

/// Leaves out programs without a process, a sample or a child that has one; sorts the others by their totals,
/// each after its parent.
fn sorted(mut programs: Vec<Program<'_>>) -> Vec<Program<'_>> {
    let mut counts: Vec<u64> = programs.iter().map(|program| program.processes).collect();
    for index in (0..programs.len()).rev() {
        let own = programs[index].own();
        programs[index].total += own;
        let total = programs[index].total;
        if let Some(parent) = programs[index].parent {
            programs[parent].total += total;
            counts[parent] += counts[index];
        }
    }
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); programs.len() + 1];
    for (index, program) in programs.iter().enumerate() {
        if counts[index] > 0 || program.total.samples > 0 {
            below[program.parent.map_or(0, |parent| parent + 1)].push(index);
        }
    }
    for list in &mut below {
        let key = |&index: &usize| {
            let program = &programs[index];
            (
                std::cmp::Reverse((program.total.weight, counts[index])),
                program.exe,
                program.comm,
                program.forked,
            )
        };
        list.sort_by(|one, other| key(one).cmp(&key(other)));
    }
    let mut ordered = Vec::new();
    let mut stack: Vec<(usize, Option<usize>, usize)> =
        below[0].iter().rev().map(|&index| (index, None, 0)).collect();
    while let Some((index, parent, depth)) = stack.pop() {
        let at = ordered.len();
        ordered.push(Program { parent, depth, ..programs[index].clone() });
        stack.extend(below[index + 1].iter().rev().map(|&child| (child, Some(at), depth + 1)));
    }
    ordered
}
