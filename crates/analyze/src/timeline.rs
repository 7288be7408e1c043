//! Activity over time: the weight of each thread and event in bins of equal length over the recording, or a window of it.
//!
//! Invariant: the bins of all rows and the rows left out add up to the view's part within the window. A sample of an
//! interval (off-CPU time) is spread over it; any other is in the bin of its time.
//!
//! Elsewhere: colours, pixels, the choice of rows.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use plumb_profile::{EventId, Sample, ThreadId};

use crate::cost::Cost;
use crate::coverage::is_cpu_time;
use crate::filter::start_ns;
use crate::intervals::Intervals;
use crate::view::View;

/// Samples of a clock event with an average weight above this many periods are aggregates with a single time.
const AGGREGATED: f64 = 3.0;

/// A thread's weights for one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineRow {
    /// The thread.
    pub thread: ThreadId,
    /// The event.
    pub event: EventId,
    /// Total cost.
    pub total: Cost,
    /// Weight in each bin.
    pub bins: Vec<u64>,
}

/// The weights over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Length of the recording.
    pub duration_ns: u64,
    /// Start of the first bin, since the start of the recording.
    pub from_ns: u64,
    /// Length of a bin.
    pub bin_ns: u64,
    /// Rows of the requested threads; rows of a thread are adjacent, most expensive thread first.
    pub rows: Vec<TimelineRow>,
    /// Number of threads without rows, because their ranks were not requested.
    pub left_out: usize,
    /// Cost of these threads, by event.
    pub left_out_costs: Vec<(EventId, Cost)>,
    /// Whether samples lack times of their own: identical stacks are aggregated.
    pub is_aggregated: bool,
}

impl Timeline {
    /// Computes weights in `bins` bins for the threads of these ranks: `0..64` are the 64 most expensive of the whole view, which should have no
    /// time range and may have all events. `window`: the nanoseconds since the start that the bins divide; the whole recording if it is empty.
    pub fn new(view: &View<'_>, bins: usize, threads: Range<usize>, window: Range<u64>) -> Self {
        let profile = view.profile();
        let zero = start_ns(profile);
        let bins = bins.max(1);
        let last = view.samples().map(|kept| kept.sample.time_ns.saturating_sub(zero)).max().unwrap_or(0);
        let duration_ns = profile.meta.duration_ns.max(last + 1);
        let shown = if window.is_empty() { 0..duration_ns } else { window.clone() };
        let bin_ns = (shown.end - shown.start).div_ceil(bins as u64).max(1);
        // Samples after the end of the recording go into the last bin.
        let filled = if window.is_empty() { 0..u64::MAX } else { window };
        let (ranks, rest) = heaviest(view, threads);
        let mut filler = Filler {
            zero,
            window: filled,
            bin_ns,
            bins,
            intervals: Intervals::new(profile),
            rows: HashMap::new(),
        };
        for kept in view.samples().filter(|kept| ranks.contains_key(&kept.sample.thread)) {
            filler.add(kept.sample);
        }
        let mut rows: Vec<TimelineRow> = filler.rows.into_values().collect();
        rows.sort_by_key(|row| (ranks[&row.thread], row.event));
        Timeline {
            duration_ns,
            from_ns: shown.start,
            bin_ns,
            rows,
            left_out: rest.threads,
            left_out_costs: rest.costs,
            is_aggregated: is_aggregated(view),
        }
    }
}

/// The threads without rows.
#[derive(Default)]
struct LeftOut {
    threads: usize,
    costs: Vec<(EventId, Cost)>,
}

/// Returns the threads of some ranks by cost, and the others. Events of different units cannot be added up, so each thread
/// is ranked by its best rank in any of them.
fn heaviest(view: &View<'_>, wanted: Range<usize>) -> (HashMap<ThreadId, usize>, LeftOut) {
    let mut costs: HashMap<(EventId, ThreadId), Cost> = HashMap::new();
    for kept in view.samples() {
        *costs.entry((kept.sample.event, kept.sample.thread)).or_default() +=
            Cost::of_sample(kept.sample.weight);
    }
    let mut ordered: Vec<_> = costs.iter().collect();
    ordered.sort_by_key(|&(&(event, thread), cost)| (event, Reverse(cost.weight), thread));
    let mut places: HashMap<ThreadId, (usize, EventId)> = HashMap::new();
    for of_event in ordered.chunk_by(|a, b| a.0.0 == b.0.0) {
        for (place, &(&(event, thread), _)) in of_event.iter().enumerate() {
            let best = places.entry(thread).or_insert((place, event));
            *best = (*best).min((place, event));
        }
    }
    let mut threads: Vec<_> = places.into_iter().map(|(thread, place)| (place, thread)).collect();
    threads.sort_unstable();
    let ranks: HashMap<ThreadId, usize> = threads
        .iter()
        .enumerate()
        .filter(|(rank, _)| wanted.contains(rank))
        .map(|(rank, &(_, thread))| (thread, rank))
        .collect();
    let mut rest = LeftOut { threads: threads.len() - ranks.len(), costs: Vec::new() };
    for (&(event, _), &cost) in ordered.iter().copied().filter(|((_, thread), _)| !ranks.contains_key(thread))
    {
        match rest.costs.last_mut().filter(|(known, _)| *known == event) {
            Some((_, sum)) => *sum += cost,
            None => rest.costs.push((event, cost)),
        }
    }
    (ranks, rest)
}

/// Whether samples lack times of their own: identical stacks are aggregated.
pub fn is_aggregated(view: &View<'_>) -> bool {
    let profile = view.profile();
    let Some(hz) = profile.meta.frequency_hz.filter(|&hz| hz > 0) else { return false };
    let of_clock: Cost = view
        .samples()
        .filter(|kept| is_cpu_time(profile, &profile.events[kept.sample.event]))
        .map(|kept| Cost::of_sample(kept.sample.weight))
        .sum();
    of_clock.weight as f64 > AGGREGATED * of_clock.samples as f64 * 1e9 / f64::from(hz)
}

struct Filler {
    zero: u64,
    window: Range<u64>,
    bin_ns: u64,
    bins: usize,
    intervals: Intervals,
    rows: HashMap<(ThreadId, EventId), TimelineRow>,
}

impl Filler {
    fn add(&mut self, sample: Sample) {
        let interval = self.intervals.begin(&sample);
        let from = interval.unwrap_or(sample.time_ns).saturating_sub(self.zero);
        let row = self.rows.entry((sample.thread, sample.event)).or_insert_with(|| TimelineRow {
            thread: sample.thread,
            event: sample.event,
            total: Cost::default(),
            bins: vec![0; self.bins],
        });
        row.total += Cost::of_sample(sample.weight);
        let (start, last) = (self.window.start, self.bins - 1);
        let at = |ns: u64| usize::try_from((ns - start) / self.bin_ns).unwrap_or(last).min(last);
        if interval.is_none() {
            if self.window.contains(&from) {
                row.bins[at(from)] = row.bins[at(from)].saturating_add(sample.weight);
            }
            return;
        }
        let end = from.saturating_add(sample.weight).min(self.window.end);
        let mut moment = from.max(start);
        while moment < end {
            let bin = at(moment);
            let of_bin = start.saturating_add((bin as u64 + 1).saturating_mul(self.bin_ns));
            let next = if bin == last { end } else { of_bin.min(end) };
            row.bins[bin] = row.bins[bin].saturating_add(next - moment);
            moment = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Filter;
    use plumb_profile::{Event, Id, Process, Profile, Thread};

    /// Threads 1 and 2 of one process; samples are (event, thread, time in 0.1 s, weight).
    fn profile(samples: &[(&str, u32, u64, u64)]) -> Profile {
        let mut profile = Profile::default();
        let empty = profile.strings.empty();
        let process = profile.processes.push(Process { pid: 1, ppid: 0, exe: empty });
        let threads: Vec<ThreadId> =
            (1..=3).map(|tid| profile.threads.push(Thread { process, tid, comm: empty })).collect();
        for &(name, tid, tenths, weight) in samples {
            let name = profile.strings.add(name);
            let known = profile.events.iter().find(|(_, event)| event.name == name).map(|(id, _)| id);
            let event = known.unwrap_or_else(|| profile.events.push(Event { name, unit: name }));
            profile.samples.push(Sample {
                time_ns: 1_000_000_000 + tenths * 100_000_000,
                thread: threads[tid as usize - 1],
                cpu: 0,
                event,
                stack: None,
                syscall: None,
                weight,
            });
        }
        profile.meta.start_ns = 1_000_000_000;
        profile.meta.duration_ns = 1_000_000_000;
        profile
    }

    fn bins(timeline: &Timeline) -> Vec<Vec<u64>> {
        timeline.rows.iter().map(|row| row.bins.clone()).collect()
    }

    #[test]
    fn moments_are_in_their_bin_and_all_are_there() {
        let profile = profile(&[("cpu-clock", 1, 0, 5), ("cpu-clock", 1, 9, 2), ("cpu-clock", 2, 5, 9)]);
        let timeline = Timeline::new(&View::new(&profile, &Filter::default()), 2, 0..8, 0..0);
        assert_eq!(timeline.bin_ns, 500_000_000);
        assert_eq!(bins(&timeline), [[0, 9], [5, 2]], "the heavier thread is first");
    }

    #[test]
    fn intervals_are_spread_and_a_wait_for_a_processor_follows() {
        let tenth = 100_000_000;
        let profile = profile(&[("off-cpu", 1, 2, 4 * tenth), ("run-queue", 1, 2, 2 * tenth)]);
        let timeline = Timeline::new(&View::new(&profile, &Filter::default()), 5, 0..8, 0..0);
        assert_eq!(bins(&timeline), [[0, 2, 2, 0, 0], [0, 0, 0, 2, 0]].map(|row| row.map(|n| n * tenth)));
    }

    #[test]
    fn a_window_has_what_lies_in_it_in_bins_of_its_own() {
        let tenth = 100_000_000;
        let profile = profile(&[
            ("cpu-clock", 1, 0, 5),
            ("cpu-clock", 1, 5, 2),
            ("cpu-clock", 1, 6, 7),
            ("off-cpu", 2, 2, 4 * tenth),
            ("cpu-clock", 3, 9, 1),
        ]);
        let window = 4 * tenth..6 * tenth;
        let timeline = Timeline::new(&View::new(&profile, &Filter::default()), 2, 0..8, window);
        assert_eq!((timeline.from_ns, timeline.bin_ns), (4 * tenth, tenth));
        // The most expensive thread overall comes first, and a thread without samples in the window keeps its row.
        let rows: Vec<(usize, Vec<u64>)> =
            timeline.rows.iter().map(|row| (row.thread.index(), row.bins.clone())).collect();
        assert_eq!(rows, [(0, vec![0, 2]), (1, vec![tenth, tenth]), (2, vec![0, 0])]);
    }

    #[test]
    fn of_waits_what_is_in_the_wanted_time_counts() {
        let tenth = 100_000_000;
        let profile = profile(&[("off-cpu", 1, 2, 4 * tenth), ("run-queue", 1, 2, 2 * tenth)]);
        for (wanted, weights) in
            [(3..7, vec![3, 1]), (4..5, vec![1]), (7..9, vec![1]), (0..2, vec![]), (0..99, vec![4, 2])]
        {
            let (start, end) = (wanted.start * tenth, wanted.end * tenth);
            let time = Some(crate::TimeRange { start, end, part: None });
            let view = View::new(&profile, &Filter { time, ..Filter::default() });
            let kept: Vec<u64> = view.samples().map(|kept| kept.sample.weight / tenth).collect();
            assert_eq!(kept, weights, "{wanted:?}");
            assert_eq!(view.part().weight, kept.iter().sum::<u64>() * tenth);
        }
    }

    #[test]
    fn threads_beyond_the_limit_are_counted() {
        let profile = profile(&[("cpu-clock", 1, 0, 5), ("cpu-clock", 2, 1, 3), ("cpu-clock", 3, 2, 4)]);
        let timeline = Timeline::new(&View::new(&profile, &Filter::default()), 1, 0..1, 0..0);
        assert_eq!(bins(&timeline), [[5]]);
        assert_eq!(timeline.left_out, 2);
        assert_eq!(timeline.left_out_costs[0].1, Cost { weight: 7, samples: 2 });
        let others = Timeline::new(&View::new(&profile, &Filter::default()), 1, 1..9, 0..0);
        assert_eq!((bins(&others), others.left_out), (vec![vec![4], vec![3]], 1));
    }
}
