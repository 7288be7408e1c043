//! Bursts of CPU time: when a service takes more for a moment than it usually does. A window's sums don't show them, but the times of its samples do.
//!
//! Samples of each service are counted in steps of a tenth of a second. A burst is where three steps have far more than the median of the last minute.
//! A burst that goes on when the window ends goes on as another one in the next window.
//!
//! Elsewhere: whether bursts are regular (`server`).

use std::collections::{BTreeMap, HashMap, VecDeque};

use plumb_formats::otlp::BurstSamples;
use plumb_profile::{Profile, StackId};

use crate::labels::{Attributes, Resources};
use crate::totals::Quantity;

/// Length of a step in nanoseconds.
const STEP_NS: u64 = 100_000_000;
/// Number of steps that are remembered: a minute.
const STEPS: usize = 600;
/// Steps on each side of one that are counted with it.
const AROUND: usize = 1;
/// Standard deviations that a burst is above the median: those of the steps, and at least those of chance.
const ABOVE: [f64; 2] = [5.0, 2.0];
/// Fewest samples that a burst has beyond that.
const BEYOND: f64 = 2.0;
/// Standard deviations of a normal distribution in its median absolute deviation.
const DEVIATIONS: f64 = 1.4826;
/// Most steps between two parts of a burst.
const GAP: usize = 3;
/// Most bursts of a service in a window: more have no rhythm that a person would look for.
const MOST: usize = 32;
/// Most stacks of a burst. The rest of its time is without a stack.
const STACKS: usize = 16;
/// Most services that are remembered.
const SERVICES: usize = 512;

/// The recent past of all services.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    known: HashMap<Attributes, VecDeque<u16>>,
    frequency_hz: u32,
}

/// A sample of CPU time.
#[derive(Clone, Copy, Debug)]
struct Moment {
    time_ns: u64,
    stack: Option<StackId>,
    weight: u64,
}

impl Bursts {
    /// Returns the bursts of a window. `unix_ns`: the time of the samples' clock at 0, in nanoseconds since 1970.
    pub fn of_window(
        &mut self,
        profile: &Profile,
        resources: &Resources,
        frequency_hz: u32,
        unix_ns: u64,
    ) -> Vec<BurstSamples> {
        if frequency_hz != self.frequency_hz {
            // Numbers of samples at another rate say nothing.
            self.known.clear();
            self.frequency_hz = frequency_hz;
        }
        let moments = moments(profile, resources);
        let times = || moments.values().flatten().map(|moment| moment.time_ns);
        let (Some(first), Some(last)) = (times().min(), times().max()) else { return Vec::new() };
        let (first, count) = (first / STEP_NS, (last / STEP_NS - first / STEP_NS) as usize + 1);
        if count > STEPS {
            self.known.clear();
            return Vec::new();
        }
        let (mut found, mut before) = (Vec::new(), std::mem::take(&mut self.known));
        for (&resource, moments) in &moments {
            let mut steps = vec![0_u16; count];
            for moment in moments {
                let step = &mut steps[(moment.time_ns / STEP_NS - first) as usize];
                *step = step.saturating_add(1);
            }
            let Some(attributes) = resources.attributes.get(resource) else { continue };
            let past = before.remove(attributes).unwrap_or_default();
            let mut add = |(from, to): (usize, usize)| {
                let range = (first + from as u64) * STEP_NS..(first + to as u64 + 1) * STEP_NS;
                found.extend(burst(moments, resource, range, unix_ns));
            };
            let runs = runs(&past, &steps);
            runs.iter().filter(|_| runs.len() <= MOST).for_each(|&run| add(run));
            self.remember(attributes.clone(), past, &steps);
        }
        // Services without samples did nothing.
        let idle = vec![0; count];
        before.into_iter().for_each(|(attributes, past)| self.remember(attributes, past, &idle));
        found
    }

    fn remember(&mut self, attributes: Attributes, mut past: VecDeque<u16>, steps: &[u16]) {
        past.extend(steps);
        past.drain(..past.len().saturating_sub(STEPS));
        if self.known.len() < SERVICES && past.iter().any(|&step| step > 0) {
            self.known.insert(attributes, past);
        }
    }
}

/// The samples of CPU time of each resource, in the order of their times.
fn moments(profile: &Profile, resources: &Resources) -> BTreeMap<usize, Vec<Moment>> {
    let mut moments: BTreeMap<usize, Vec<Moment>> = BTreeMap::new();
    for sample in profile.samples.iter() {
        let is_cpu = Quantity::of_event(profile, sample.event) == Quantity::CpuTime;
        let resource = resources.of_process.get(&profile.threads[sample.thread].process);
        if let (true, Some(&resource)) = (is_cpu, resource) {
            let moment = Moment { time_ns: sample.time_ns, stack: sample.stack, weight: sample.weight };
            moments.entry(resource).or_default().push(moment);
        }
    }
    moments.values_mut().for_each(|of_one| of_one.sort_by_key(|moment| moment.time_ns));
    moments
}

/// First and last step of each burst in `steps`, which follow those of the past.
fn runs(past: &VecDeque<u16>, steps: &[u16]) -> Vec<(usize, usize)> {
    let all: Vec<u32> = past.iter().chain(steps).map(|&step| step.into()).collect();
    let around =
        |at: usize| all[at.saturating_sub(AROUND)..all.len().min(at + AROUND + 1)].iter().sum::<u32>();
    let sums: Vec<u32> = (0..all.len()).map(around).collect();
    let median = f64::from(median(sums.clone()));
    let differences = sums.iter().map(|&sum| (f64::from(sum) - median).abs() as u32).collect();
    let usual = DEVIATIONS * f64::from(self::median(differences));
    let limit = median + (ABOVE[0] * usual).max(ABOVE[1] * (median + 1.0).sqrt() + BEYOND);
    let width = (2 * AROUND + 1) as f64;
    // Neighbours of a burst's steps have its samples in their sums.
    let is_above = |at: usize| f64::from(sums[at]) >= limit && f64::from(all[at]) >= limit / width;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in (past.len()..all.len()).filter(|&at| is_above(at)).map(|at| at - past.len()) {
        match runs.last_mut() {
            Some((_, to)) if at - *to <= GAP => *to = at,
            _ => runs.push((at, at)),
        }
    }
    runs
}

fn median(mut values: Vec<u32>) -> u32 {
    let middle = values.len() / 2;
    if values.is_empty() { 0 } else { *values.select_nth_unstable(middle).1 }
}

/// The samples of a burst by stack.
fn burst(
    moments: &[Moment],
    resource: usize,
    range: std::ops::Range<u64>,
    unix_ns: u64,
) -> Option<BurstSamples> {
    let from = moments.partition_point(|moment| moment.time_ns < range.start);
    let to = moments.partition_point(|moment| moment.time_ns < range.end);
    let inside = moments.get(from..to)?;
    let (first, last) = (inside.first()?.time_ns, inside.last()?.time_ns);
    let mut sums: BTreeMap<Option<StackId>, u64> = BTreeMap::new();
    inside.iter().for_each(|moment| *sums.entry(moment.stack).or_default() += moment.weight);
    let mut by_weight: Vec<(Option<StackId>, u64)> = sums.into_iter().collect();
    by_weight.sort_by_key(|&(stack, weight)| (std::cmp::Reverse(weight), stack));
    let mut stacks: BTreeMap<Option<StackId>, u64> = by_weight.iter().take(STACKS).copied().collect();
    let rest: u64 = by_weight.iter().skip(STACKS).map(|(_, weight)| weight).sum();
    if rest > 0 {
        *stacks.entry(None).or_default() += rest;
    }
    Some(BurstSamples { resource, time_unix_ns: unix_ns + first, length_ns: last - first, stacks })
}

#[cfg(test)]
mod tests {
    use plumb_profile::{Event, Process, Sample, Thread};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A window of 15 seconds from `start` in seconds, of one service: samples at these times, in milliseconds after the start.
    fn window(start: u64, times_ms: &[u64]) -> (Profile, Resources) {
        let mut profile = Profile::default();
        let (name, unit) = (profile.strings.add("cpu-clock"), profile.strings.add("ns"));
        let event = profile.events.push(Event { name, unit });
        let empty = profile.strings.empty();
        let mut resources = Resources::default();
        // The second one marks the ends of the window.
        for (pid, times) in [(1, times_ms), (2, &[0, 14_999][..])] {
            let process = profile.processes.push(Process { pid, ppid: 0, exe: empty });
            let thread = profile.threads.push(Thread { process, tid: pid, comm: empty });
            resources.of_process.insert(process, pid as usize - 1);
            let name = ("service.name".to_owned(), pid.to_string());
            resources.attributes.push([name].into());
            for time_ms in times {
                let time_ns = start * SECOND + time_ms * 1_000_000;
                let (stack, syscall) = (None, None);
                profile.samples.push(Sample { time_ns, thread, cpu: 0, event, stack, syscall, weight: 10 });
            }
        }
        (profile, resources)
    }

    /// Samples each 10 ms from one time to another, in milliseconds.
    fn busy(from: u64, to: u64) -> impl Iterator<Item = u64> {
        (from..to).step_by(10)
    }

    /// Beginning and length in milliseconds, and value, of the bursts of windows that follow each other.
    fn found(windows: &[Vec<u64>]) -> Vec<(u64, u64, u64)> {
        let mut bursts = Bursts::default();
        let mut all = Vec::new();
        for (place, times) in windows.iter().enumerate() {
            let (profile, resources) = window(60 + 15 * place as u64, times);
            let of_window = bursts.of_window(&profile, &resources, 97, 1000 * SECOND);
            let of_first = of_window.iter().filter(|one| one.resource == 0);
            all.extend(of_first.map(|one| {
                let begin = (one.time_unix_ns - 1060 * SECOND) / 1_000_000;
                (begin, one.length_ns / 1_000_000, one.stacks.values().sum())
            }));
        }
        all
    }

    #[test]
    fn a_burst_has_its_time_length_and_value() {
        let idle: Vec<u64> = (0..15_000).step_by(500).collect();
        let with_burst: Vec<u64> = idle.iter().copied().chain(busy(3_120, 3_920)).collect();
        // The sample at 3.5 s is the idle service's.
        assert_eq!(found(&[idle.clone(), with_burst, idle]), [(18_120, 790, 810)]);
    }

    #[test]
    fn a_burst_stands_out_of_steady_load() {
        // Two threads that are always busy, and a third for 0.8 s.
        let steady = || busy(0, 15_000).chain(busy(5, 15_000));
        let with_burst: Vec<u64> = steady().chain(busy(7_003, 7_803)).collect();
        let found = found(&[steady().collect(), with_burst, steady().collect()]);
        let [(begin, length, _)] = found[..] else { panic!("{found:?}") };
        assert!(begin.abs_diff(22_000) <= 100 && length.abs_diff(800) <= 200, "{found:?}");
    }

    #[test]
    fn noise_and_steady_load_have_no_bursts() {
        let (mut seed, mut noise) = (1_u64, Vec::new());
        for time in (0..15_000).step_by(10) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            noise.extend((seed >> 60 < 8).then_some(time));
        }
        assert_eq!(found(&[noise.clone(), noise.clone(), noise]), []);
        let steady: Vec<u64> = busy(0, 15_000).collect();
        assert_eq!(found(&[steady.clone(), steady]), []);
    }

    #[test]
    fn a_burst_at_the_end_of_a_window_goes_on_in_the_next() {
        let first: Vec<u64> = busy(14_600, 15_000).collect();
        let second: Vec<u64> = busy(0, 400).collect();
        assert_eq!(found(&[vec![], first, second]), [(29_600, 390, 400), (30_000, 390, 400)]);
    }

    #[test]
    fn a_long_burst_has_few_stacks_and_all_of_its_time() {
        let mut profile = Profile::default();
        let frame =
            profile.frames.add(plumb_profile::Frame::marker(plumb_profile::Truncation::NoUserStack, None));
        let mut stacks = vec![profile.stacks.add(None, frame)];
        for _ in 1..40 {
            stacks.push(profile.stacks.add(stacks.last().copied(), frame));
        }
        let moment = |place: u64| Moment {
            time_ns: place,
            stack: stacks.get(place as usize % 40).copied(),
            weight: 1 + place % 40,
        };
        let moments: Vec<Moment> = (0..400).map(moment).collect();
        let burst = burst(&moments, 0, 0..400, 0);
        let stacks = burst.map(|one| one.stacks).unwrap_or_default();
        assert_eq!(stacks.len(), STACKS + 1);
        assert_eq!(stacks.values().sum::<u64>(), moments.iter().map(|one| one.weight).sum::<u64>());
    }
}
