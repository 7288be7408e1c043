//! The period of a hardware counter, chosen here and never by the kernel.
//!
//! In frequency mode the kernel starts with an interrupt per count. Where an interrupt is slow (a virtual PMU, stack copies)
//! its adjustment never recovers, and each switch into a cgroup starts over: the machine hangs for seconds. So a
//! counter is opened with a period that is long enough for the CPU's speed, and the period then follows the counts.
//!
//! Elsewhere: setting the period (`events`), and the reaction to too many samples (`watchdog`).

use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING,
    PERF_TYPE_HARDWARE, perf_event_attr,
};
use plumb_process::usage::monotonic_ns;

use crate::attr::{Counter, base};
use crate::sys::perf::{Event, Whom};

/// Assumed cycles per nanosecond of a CPU with unknown speed: more than most have, so that periods are long.
const FAST: f64 = 5.0;
/// Duration of the measurement of the CPU's speed.
const MEASURED_NS: u64 = 2_000_000;
/// At the highest possible count per cycle, there are at most this many times the requested samples.
const BURST: f64 = 16.0;
/// A shorter window is not representative of the event's rate.
const WINDOW_NS: u64 = 10_000_000;
/// One window shortens the period to no less than 1/4; a late check covers several.
const SHORTENS: u64 = 4;
/// Relative change below which a period is kept: for the clock, which hardly varies, and for other events.
const EXACT: (f64, f64) = (0.01, 0.1);

/// Keeps the samples of a hardware counter at the requested frequency.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PeriodKeeper {
    /// Samples per nanosecond of running time.
    wanted: f64,
    period: u64,
    shortest: u64,
    /// Cycles: they pass at a steady rate whenever the CPU works, so the fastest window is used. A slower
    /// one was partly idle.
    is_clock: bool,
    /// Counts per nanosecond.
    fastest: f64,
    /// Count at the end of the last window, and running time in nanoseconds.
    before: (u64, u64),
}

impl PeriodKeeper {
    /// For a counter sampled `frequency_hz` times per second, on a CPU with this many cycles per nanosecond.
    pub fn new(counter: &Counter, frequency_hz: u32, cycles_per_ns: f64) -> Self {
        let wanted = f64::from(frequency_hz.max(1)) / 1e9;
        let most = cycles_per_ns * most_per_cycle(counter);
        let shortest = whole(most / (wanted * BURST));
        Self {
            wanted,
            period: whole(most.min(cycles_per_ns) / wanted).max(shortest),
            shortest,
            is_clock: matches!(counter, Counter::Cycles),
            fastest: cycles_per_ns,
            before: (0, 0),
        }
    }

    /// The count between two samples.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// Takes the count and the total running time in nanoseconds so far, and returns a better period, if any.
    pub fn look(&mut self, count: u64, running_ns: u64) -> Option<u64> {
        if running_ns < self.before.1 || count < self.before.0 {
            // The events were replaced, and the new ones start at zero.
            self.before = (0, 0);
        }
        let (counted, time) = (count - self.before.0, running_ns - self.before.1);
        if time < WINDOW_NS {
            return None;
        }
        self.before = (count, running_ns);
        let rate = counted as f64 / time as f64;
        self.fastest = self.fastest.max(rate);
        let (rate, exact) = if self.is_clock { (self.fastest, EXACT.0) } else { (rate, EXACT.1) };
        let part = SHORTENS.saturating_mul(time / WINDOW_NS);
        let right = whole(rate / self.wanted).max(self.shortest).max(self.period / part);
        let off = (right as f64 / self.period as f64 - 1.0).abs();
        (off > exact).then(|| {
            self.period = right;
            right
        })
    }

    /// Reduces the samples to 1/`times`, whatever is counted from now on.
    pub fn slow_down(&mut self, times: u64) -> u64 {
        self.wanted /= times as f64;
        self.shortest = self.shortest.saturating_mul(times);
        self.period = self.period.saturating_mul(times);
        self.period
    }
}

fn whole(count: f64) -> u64 {
    (count.round() as u64).max(1)
}

/// Most occurrences per cycle, on the widest of CPUs.
fn most_per_cycle(counter: &Counter) -> f64 {
    match counter.name() {
        "instructions" => 8.0,
        "branches" => 4.0,
        "cache-misses" | "branch-misses" => 0.125,
        _ => 1.0,
    }
}

/// An event that counts the cycles of user code, without samples.
pub(crate) fn count_cycles() -> perf_event_attr {
    let mut attr = base(false);
    attr.type_ = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_CPU_CYCLES.into();
    attr.read_format = (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING).into();
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    attr
}

/// The CPU's speed in cycles per nanosecond, counted while this thread spins for two milliseconds.
pub(crate) fn cycles_per_ns(cpus: &[u32]) -> f64 {
    let attr = count_cycles();
    let events: Vec<Event> =
        cpus.iter().filter_map(|&cpu| Event::open(&attr, Whom::Thread(0), cpu).ok()).collect();
    if events.iter().any(|event| event.enable().is_err()) {
        return FAST;
    }
    let until = monotonic_ns() + MEASURED_NS;
    while monotonic_ns() < until {
        std::hint::spin_loop();
    }
    let counted = events.iter().filter_map(Event::counted_for);
    let sum = counted.fold((0, 0), |sum, [count, _, running]| (sum.0 + count, sum.1 + running));
    let speed = sum.0 as f64 / sum.1 as f64;
    // No CPU is slower or faster than this: a counter that says so doesn't work.
    if (0.1..20.0).contains(&speed) { speed } else { FAST }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::trigger::{Named, Trigger};

    const SECOND: u64 = 1_000_000_000;

    fn counter(name: &str) -> Counter {
        match Named::parse(name) {
            Ok(Named::Trigger(trigger, _)) => Counter::Trigger(Arc::<Trigger>::new(trigger)),
            Ok(Named::Cycles(_)) => Counter::Cycles,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Counts at a steady rate, with a check every tenth of a second.
    fn run(keeper: &mut PeriodKeeper, per_second: u64, seconds: u64) {
        let (mut count, mut time) = keeper.before;
        for _ in 0..seconds * 10 {
            (count, time) = (count + per_second / 10, time + SECOND / 10);
            keeper.look(count, time);
        }
    }

    #[test]
    fn no_period_is_short_at_the_beginning() {
        for name in ["cycles", "instructions", "branches", "cache-misses", "branch-misses", "ref-cycles"] {
            let counter = counter(name);
            let keeper = PeriodKeeper::new(&counter, 999, 2.6);
            let most_a_second = 2.6e9 * most_per_cycle(&counter) / keeper.period() as f64;
            assert!(most_a_second <= 999.0 * 8.1, "{name}: {most_a_second}");
        }
        // The highest possible frequency.
        assert!(PeriodKeeper::new(&Counter::Cycles, 100_000, 2.6).period() == 26_000);
        assert!(PeriodKeeper::new(&Counter::Cycles, 0, 2.6).period() == 2_600_000_000);
    }

    #[test]
    fn samples_come_at_the_frequency_that_was_asked_for() {
        for (name, per_second) in [("instructions", 9_000_000_000), ("cache-misses", 30_000_000)] {
            let mut keeper = PeriodKeeper::new(&counter(name), 999, 2.6);
            run(&mut keeper, per_second, 2);
            let samples = per_second / keeper.period();
            assert!((890..=1110).contains(&samples), "{name}: {samples}");
        }
    }

    #[test]
    fn a_late_look_finds_the_period_at_once() {
        let mut keeper = PeriodKeeper::new(&counter("cache-references"), 499, 2.6);
        // A fiftieth of what is possible, in 0.3 s.
        assert_eq!(keeper.look(15_600_000, 3 * SECOND / 10), Some(keeper.period()));
        assert_eq!(keeper.period(), keeper.shortest.max(52_000_000 / 499));
        let mut early = PeriodKeeper::new(&counter("cache-references"), 499, 2.6);
        let before = early.period();
        early.look(520_000, SECOND / 100);
        assert_eq!(early.period(), before / 4, "one window may be no rule");
    }

    #[test]
    fn what_is_rare_shortens_no_period_below_the_bound() {
        let mut keeper = PeriodKeeper::new(&counter("cache-misses"), 999, 2.6);
        run(&mut keeper, 1000, 10);
        // In case it comes as fast as possible from now on.
        let most_a_second = 2.6e9 * 0.125 / keeper.period() as f64;
        assert!(most_a_second <= 999.0 * BURST * 1.01, "{most_a_second}");
    }

    #[test]
    fn cycles_keep_their_period_while_processors_are_idle() {
        let mut keeper = PeriodKeeper::new(&Counter::Cycles, 999, 2.6);
        let began = keeper.period();
        run(&mut keeper, 260_000_000, 5);
        assert_eq!(keeper.period(), began, "a tenth of the time was busy");
        // The speed was measured before the CPU sped up.
        run(&mut keeper, 3_900_000_000, 1);
        assert_eq!(keeper.period(), 3_903_904);
    }

    #[test]
    fn events_that_were_exchanged_begin_anew() {
        let mut keeper = PeriodKeeper::new(&counter("instructions"), 999, 2.6);
        run(&mut keeper, 2_600_000_000, 3);
        let before = keeper.period();
        assert_eq!(keeper.look(260_000, 100_000), None, "too little to say anything");
        assert_eq!(keeper.look(260_000_000, 100_000_000), None, "the same rate");
        assert_eq!(keeper.period(), before);
    }

    #[test]
    fn fewer_samples_stay_fewer() {
        let mut keeper = PeriodKeeper::new(&counter("instructions"), 999, 2.6);
        run(&mut keeper, 2_600_000_000, 1);
        let slower = keeper.slow_down(8);
        run(&mut keeper, 2_600_000_000, 3);
        assert_eq!(keeper.period(), slower);
    }
}
