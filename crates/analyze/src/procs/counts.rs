//! Counts the processes that ran each program, and their run times.

use plumb_profile::{Id, Life};

use super::Program;
use super::alive::most_at_once;
use super::family::{Family, Run};
use crate::filter::Filter;
use crate::view::View;

/// Lifetime below which a process counts as short-lived.
pub(crate) const SHORT_NS: u64 = 10_000_000;

/// A process' run of one program: one life, or several if it execs the program again.
#[derive(Clone, Copy)]
struct Stay {
    program: usize,
    process: usize,
    /// Run time of the program. `None` if a start or an end is not known.
    ns: Option<u64>,
    /// CPU time accounted by the kernel. `None` unless all of it is known.
    cpu_ns: Option<u64>,
}

impl Stay {
    fn new(program: usize, run: Run) -> Self {
        Self { program, process: run.process, ns: Some(0), cpu_ns: Some(0) }
    }

    /// Adds a life, of which `seen` is within the selected time. `is_all`: all its samples are kept.
    fn add(&mut self, run: Run, seen: (u64, u64), is_all: bool) {
        let ns = run.start_ns.zip(run.end_ns).map(|(start, end)| end.saturating_sub(start));
        self.ns = self.ns.zip(ns).map(|(sum, ns)| sum.saturating_add(ns));
        let is_whole = is_all && (run.start_ns, run.end_ns) == (Some(seen.0), Some(seen.1));
        let cpu_ns = run.cpu_ns.filter(|_| is_whole);
        self.cpu_ns = self.cpu_ns.zip(cpu_ns).map(|(sum, ns)| sum.saturating_add(ns));
    }
}

/// Counts processes and their lifetimes. Returns their number, and the most at one time. If the filter keeps a part of
/// a process' samples by more than names, processes without samples do not count.
pub(super) fn add(
    view: &View<'_>,
    filter: &Filter,
    family: &Family,
    span: (u64, u64),
    programs: &mut [Program<'_>],
) -> (u64, Option<u64>) {
    let mut spans: Vec<Vec<(u64, u64)>> = vec![Vec::new(); programs.len()];
    // By the first life of the process in its program.
    let mut stays: Vec<Option<Stay>> = vec![None; family.lives.len()];
    let profile = view.profile();
    let is_split = filter.splits_processes();
    let sampled = if is_split { sampled(view, family) } else { vec![false; family.lives.len()] };
    // A name is that of a thread, or of a process that may not have been sampled.
    let is_by_name = !Filter { comms: Vec::new(), ..filter.clone() }.splits_processes();
    let is_kept = |index: usize, life: &Life| {
        let (comm, exe) = (profile.strings.get(life.comm), profile.strings.get(life.exe));
        sampled[index] || is_by_name && filter.keeps_process(comm, life.pid, exe)
    };
    for (index, life) in family.lives.iter().enumerate().filter(|&(index, life)| is_kept(index, life)) {
        let at = family.branch_of[index];
        programs[at].forks += family.children[index].len() as u64;
        programs[at].peak_rss_bytes = programs[at].peak_rss_bytes.max(life.peak_rss_bytes);
        let Some(run) = family.run(index) else { continue };
        let seen = (run.start_ns.unwrap_or(0).max(span.0), run.end_ns.unwrap_or(u64::MAX).min(span.1));
        if filter.time.is_some() && seen.0 >= seen.1 {
            continue;
        }
        spans[at].push(seen);
        stays[run.first_here].get_or_insert_with(|| Stay::new(at, run)).add(run, seen, !is_split);
    }
    let processes = sum_up(stays.iter().flatten(), &short_ones(family), programs);
    for (program, spans) in programs.iter_mut().zip(&spans) {
        program.most_alive = Some(most_at_once(spans));
    }
    (processes, Some(most_at_once(&spans.concat())))
}

/// Returns, for each life, whether the view has samples of it.
fn sampled(view: &View<'_>, family: &Family) -> Vec<bool> {
    let mut sampled = vec![false; family.lives.len()];
    for kept in view.samples() {
        let process = view.profile().threads[kept.sample.thread].process;
        if let Some(life) = family.life_of_process[process.index()] {
            sampled[life] = true;
        }
    }
    sampled
}

/// Returns, for each first life of a process, whether the process was short-lived, over all programs it ran.
fn short_ones(family: &Family) -> Vec<bool> {
    let mut ends = vec![None; family.lives.len()];
    for run in (0..family.lives.len()).filter_map(|index| family.run(index)) {
        ends[run.process] = run.end_ns;
    }
    let is_short = |(index, end): (usize, Option<u64>)| {
        let start = family.run(index).and_then(|run| run.start_ns);
        start.zip(end).is_some_and(|(start, end)| end.saturating_sub(start) < SHORT_NS)
    };
    ends.into_iter().enumerate().map(is_short).collect()
}

/// Adds the runs to their programs. Returns the number of processes.
fn sum_up<'s>(stays: impl Iterator<Item = &'s Stay>, is_short: &[bool], programs: &mut [Program<'_>]) -> u64 {
    let mut times: Vec<(u64, u64)> = vec![(0, 0); programs.len()];
    let mut is_counted = vec![false; is_short.len()];
    for stay in stays {
        let program = &mut programs[stay.program];
        let is_first = !std::mem::replace(&mut is_counted[stay.process], true);
        program.processes += 1;
        program.short.all += u64::from(is_short[stay.process]);
        program.short.begun += u64::from(is_short[stay.process] && is_first);
        if let Some(ns) = stay.ns {
            let time = &mut times[stay.program];
            *time = (time.0.saturating_add(ns), time.1 + 1);
        }
        if let Some(ns) = stay.cpu_ns {
            program.accounted_ns = program.accounted_ns.saturating_add(ns);
            program.accounted += 1;
        }
    }
    for (program, (sum, count)) in programs.iter_mut().zip(times) {
        program.mean_life_ns = (count > 0).then(|| sum as f64 / count as f64);
    }
    is_counted.iter().filter(|&&is| is).count() as u64
}
