//! Controls hardware counters during a recording: adjusts their periods, ends interrupt storms,
//! and restores the kernel's rate limit if a storm has lowered it.
//!
//! Invariant: an event that `guard` slows down or stops is named in the recording's limits. Elsewhere: detecting a storm (`watchdog`) and
//! choosing a period (`period`).

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use plumb_capture_api::SamplingRate;
use plumb_ingest::SampleWeights;
use plumb_process::Host;
use plumb_process::usage::{monotonic_ns, nanoseconds};

use super::sampled::{Sampled, SampledEvents};
use crate::period::PeriodKeeper;
use crate::watchdog::{Sight, Storm, Watchdog};

/// Time between two checks.
const INTERVAL_NS: u64 = 100_000_000;
/// Smallest factor by which samples are reduced after a first storm.
const FEWER: u64 = 8;
/// A harmless rate of interrupts per second on a CPU: a storm at a given period is reduced to this.
const HARMLESS_HZ: u64 = 1000;
/// Divisor of the kernel's highest rate that gives an affordable one. The kernel lowers the rate to what takes `perf_cpu_time_max_percent` of a CPU,
/// a quarter unless it was changed, by what a sample takes (`perf_sample_event_took` in kernel/events/core.c): an affordable one takes an eighth, and is below
/// the rate at which the kernel drops samples.
const AFFORDABLE: u32 = 2;
/// File with the kernel's highest rate (Documentation/admin-guide/sysctl/kernel.rst).
const HIGHEST_RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// Guards the machine against the hardware counters of a recording.
pub(super) struct Guard {
    /// The counters that are sampled: none after a second storm.
    counters: Vec<Counting>,
    watchdog: Watchdog,
    sight: Sight,
    has_slowed: bool,
    /// Whether samples are kept to what the kernel's lowered rate affords.
    is_kept_low: bool,
    /// Interrupts at the last check.
    interrupts_before: u64,
    /// The kernel's highest rate before, until it is restored.
    highest_before: Option<u32>,
}

/// A hardware counter of a recording.
struct Counting {
    /// Index of the event in the recording.
    index: usize,
    /// `None`: its period was given.
    keeper: Option<PeriodKeeper>,
    /// Count on each CPU at the last check.
    counted: BTreeMap<u32, u64>,
}

impl Guard {
    /// Guards the hardware counters among the events; `None` if there are none. `cycles_per_ns`: the CPU's speed.
    pub fn new(events: &SampledEvents, host: &Host, cycles_per_ns: f64) -> Option<Self> {
        let counting = |(index, one): (usize, &Sampled)| {
            let sampling = one.events.sampling();
            let keeper = match sampling.pace {
                SamplingRate::Frequency(hz) => Some(PeriodKeeper::new(&sampling.counter, hz, cycles_per_ns)),
                SamplingRate::Period(_) => None,
            };
            sampling.counter.is_hardware().then_some(Counting { index, keeper, counted: BTreeMap::new() })
        };
        let counters: Vec<Counting> = events.iter().enumerate().filter_map(counting).collect();
        let paces = counters.iter().map(|one| events.at(one.index).events.sampling().pace);
        let asked = paces.map(|pace| match pace {
            SamplingRate::Frequency(hz) => Some(hz),
            SamplingRate::Period(_) => None,
        });
        let asked_hz = asked.reduce(|a, b| Some(a?.saturating_add(b?)))?;
        let sight = Sight { now_ns: monotonic_ns(), highest_hz: host.max_sample_rate, ..Sight::default() };
        let watchdog = Watchdog::new(asked_hz, sight);
        let highest_before = host.max_sample_rate;
        let (has_slowed, is_kept_low, interrupts_before) = (false, false, 0);
        Some(Self { counters, watchdog, sight, has_slowed, is_kept_low, interrupts_before, highest_before })
    }

    /// Whether fewer samples were taken than requested.
    pub fn took_fewer(&self) -> bool {
        self.has_slowed || self.is_kept_low
    }

    /// Notes that the recorder was woken this much later than requested.
    pub fn note_delay(&mut self, by: Duration) {
        self.sight.late_ns = self.sight.late_ns.max(nanoseconds(by));
    }

    /// Adds the interrupts since the last check, and returns better periods.
    fn look(&mut self, events: &[Sampled]) -> Vec<(usize, u64)> {
        let mut better = Vec::new();
        for one in &mut self.counters {
            let events = &events[one.index].events;
            let (counted, running_ns) = events.counted_for();
            let before = |cpu: &u32| one.counted.get(cpu).copied().unwrap_or(0);
            // Replaced events start at zero.
            let since = |(cpu, &count): (&u32, &u64)| count.checked_sub(before(cpu)).unwrap_or(count);
            let busiest = counted.iter().map(since).max().unwrap_or(0);
            let count = counted.values().sum();
            one.counted = counted;
            let sampling = events.sampling();
            let period = match sampling.pace {
                SamplingRate::Frequency(_) => sampling.period,
                SamplingRate::Period(period) => period,
            };
            self.sight.interrupts += busiest / period.max(1);
            let period = one.keeper.as_mut().and_then(|keeper| keeper.look(count, running_ns));
            better.extend(period.map(|period| (one.index, period)));
        }
        better
    }

    /// Returns the periods that reduce samples to 1/`times`.
    fn slow_down(&mut self, times: u64, events: &[Sampled]) -> Vec<(usize, u64)> {
        self.watchdog.ask_fewer(times);
        let slower = |one: &mut Counting| {
            let period = match (&mut one.keeper, events[one.index].events.sampling().pace) {
                (Some(keeper), _) => keeper.slow_down(times),
                (None, SamplingRate::Period(period)) => period.saturating_mul(times),
                (None, SamplingRate::Frequency(_)) => return None,
            };
            Some((one.index, period))
        };
        self.counters.iter_mut().filter_map(slower).collect()
    }

    /// Checks the counters, if it is due: adjusts their periods, and on a storm reduces or stops their samples. Returns a message for each counter
    /// of which there are fewer samples from now on. `elapsed`: time since the start of the recording.
    pub fn check(
        &mut self,
        events: &mut SampledEvents,
        weights: &mut SampleWeights<'_>,
        elapsed: Duration,
    ) -> Vec<String> {
        let now_ns = monotonic_ns();
        if self.counters.is_empty() || now_ns < self.sight.now_ns + INTERVAL_NS {
            return Vec::new();
        }
        events.change(|all| {
            let better = self.look(all);
            let elapsed_ns = now_ns.saturating_sub(self.sight.now_ns).max(1);
            self.sight = Sight { now_ns, highest_hz: highest_rate(), ..self.sight };
            let storm = self.watchdog.look(self.sight);
            self.sight.late_ns = 0;
            let reaction = match storm {
                None => {
                    for (index, period) in better {
                        // On failure the period stays as it is, which is long enough.
                        set_period(&mut all[index], weights, period);
                    }
                    Vec::new()
                }
                Some(Storm::Lowered(from, to)) => self.keep_low(all, weights, (from, to), elapsed_ns),
                Some(storm) if !self.has_slowed => self.reduce(all, weights, storm),
                Some(storm) => self.end(all, storm, elapsed),
            };
            self.interrupts_before = self.sight.interrupts;
            reaction
        })
    }

    /// Reduces the samples after a first storm.
    fn reduce(&mut self, all: &mut [Sampled], weights: &mut SampleWeights<'_>, storm: Storm) -> Vec<String> {
        let times = match storm {
            Storm::Interrupts(hz) => (hz / HARMLESS_HZ).max(FEWER),
            Storm::Lowered(..) | Storm::Late(_) => FEWER,
        };
        self.has_slowed = true;
        let slower = self.slow_down(times, all);
        let slowed = |(index, period): (usize, u64)| {
            let one = &mut all[index];
            if !set_period(one, weights, period) {
                one.events.stop();
            }
            let name = one.events.sampling().counter.name();
            format!(
                "{name}: one sample every {period} from here on, {times} times fewer than before, to spare this machine: \
                 {storm}; without such interrupts: -e cpu-clock"
            )
        };
        slower.into_iter().map(slowed).collect()
    }

    /// Keeps samples at a rate that is affordable now that the kernel has lowered its highest one, which depends on what a sample takes and not on their
    /// number. The first time returns a message for each counter.
    fn keep_low(
        &mut self,
        all: &mut [Sampled],
        weights: &mut SampleWeights<'_>,
        (from, to): (u32, u32),
        elapsed_ns: u64,
    ) -> Vec<String> {
        let affordable_hz = (to / AFFORDABLE).max(1);
        let interrupts = self.sight.interrupts.saturating_sub(self.interrupts_before);
        let hz = u128::from(interrupts) * 1_000_000_000 / u128::from(elapsed_ns);
        let hz = u64::try_from(hz).unwrap_or(u64::MAX).max(self.watchdog.asked_hz().unwrap_or(0).into());
        let times = hz.div_ceil(affordable_hz.into());
        if times <= 1 {
            return Vec::new();
        }
        let is_first = !std::mem::replace(&mut self.is_kept_low, true);
        let slower = self.slow_down(times, all);
        self.watchdog.ask(affordable_hz);
        let kept_low = |(index, period): (usize, u64)| {
            let one = &mut all[index];
            if !set_period(one, weights, period) {
                one.events.stop();
            }
            let name = one.events.sampling().counter.name();
            is_first.then(|| {
                format!(
                    "{name}: at most {affordable_hz} samples a second on a processor from here on, to spare this machine: {}; without such \
                     interrupts: -e cpu-clock",
                    Storm::Lowered(from, to)
                )
            })
        };
        slower.into_iter().filter_map(kept_low).collect()
    }

    /// Stops all samples after a second storm.
    fn end(&mut self, all: &[Sampled], storm: Storm, elapsed: Duration) -> Vec<String> {
        let seconds = elapsed.as_secs_f64();
        let stopped = |one: Counting| {
            let events = &all[one.index].events;
            events.stop();
            let name = events.sampling().counter.name();
            format!(
                "{name}: not sampled after the first {seconds:.1} s, to spare this machine: {storm}; without such \
                 interrupts: -e cpu-clock"
            )
        };
        let mut limits: Vec<String> = self.counters.drain(..).map(stopped).collect();
        limits.extend(self.restore());
        limits
    }

    /// Restores the kernel's highest rate; returns a message if interrupts had caused it to be lowered.
    pub fn restore(&mut self) -> Option<String> {
        set_back(self.highest_before.take())
    }
}

/// Sets the period of a counter. Returns whether that succeeded.
fn set_period(one: &mut Sampled, weights: &mut SampleWeights<'_>, period: u64) -> bool {
    let since_ns = monotonic_ns();
    let is_set = one.events.set_period(period).is_ok();
    if is_set {
        weights.weigh_from(one.id, since_ns, period);
    }
    is_set
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.restore();
    }
}

fn highest_rate() -> Option<u32> {
    fs::read_to_string(HIGHEST_RATE).ok()?.trim().parse().ok()
}

/// Restores the highest rate; returns a message if it had been lowered.
fn set_back(before: Option<u32>) -> Option<String> {
    let (before, now) = (before?, highest_rate()?);
    (now < before).then(|| {
        let lowered = format!(
            "interrupts took so long that the kernel lowered kernel.perf_event_max_sample_rate from {before} to {now}"
        );
        match fs::write(HIGHEST_RATE, before.to_string()) {
            Ok(()) => format!("{lowered}; plumb set it back to {before}"),
            Err(_) => {
                format!("{lowered}; to set it back: sudo sysctl kernel.perf_event_max_sample_rate={before}")
            }
        }
    })
}
