//! How much a hardware counter counts between two samples: chosen here, never by the kernel.
//!
//! In frequency mode the kernel begins with an interrupt for each single count. Where one takes long (a virtual PMU, copies of stacks)
//! its adjustment never gets out of that, and each switch into a cgroup begins anew: the machine stands still for seconds. So a
//! counter is opened with a period that can't be too short at the processor's speed, and the period follows what is counted.
//!
//! Not here: setting it (`events`), and what is done if there are too many samples all the same (`watchdog`).

use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING,
    PERF_TYPE_HARDWARE, perf_event_attr,
};
use plumb_process::usage::monotonic_ns;

use crate::attr::{Counter, base};
use crate::sys::perf::{Event, Whom};

/// A processor of unknown speed is taken to have this many cycles a nanosecond: more than most, so that periods are long.
const FAST: f64 = 5.0;
/// How long the processor's speed is measured.
const MEASURED_NS: u64 = 2_000_000;
/// At the most that can be counted in a cycle, no more than this many times the samples that were asked for.
const BURST: f64 = 16.0;
/// What is counted in a shorter time says little about how often it happens.
const WINDOW_NS: u64 = 10_000_000;
/// One window shortens the period to no less than this part; a look that comes late sees several.
const SHORTENS: u64 = 4;
/// A period that is right but for this share is left as it is: of the clock, which hardly changes, and of others.
const EXACT: (f64, f64) = (0.01, 0.1);

/// Keeps the samples of a hardware counter at the frequency that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PeriodKeeper {
    /// Samples for each nanosecond in which it is counted.
    wanted: f64,
    period: u64,
    shortest: u64,
    /// Cycles: these pass at a steady pace whenever the processor works, so what counts is the fastest that was seen. A slower
    /// one was idle for a part.
    is_clock: bool,
    /// Counts a nanosecond.
    fastest: f64,
    /// What was counted until the last window ended, and for how many nanoseconds.
    before: (u64, u64),
}

impl PeriodKeeper {
    /// Of a counter that is to be sampled `frequency_hz` times a second on a processor with so many cycles a nanosecond.
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

    /// What is to be counted between two samples.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// What the events have counted so far, and for how many nanoseconds all of them together: another period, if that is better.
    pub fn look(&mut self, count: u64, running_ns: u64) -> Option<u64> {
        if running_ns < self.before.1 || count < self.before.0 {
            // The events were exchanged for others, which begin anew.
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

    /// Goes on with so many times fewer samples, whatever is counted from now on.
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

/// How often at most it happens in a cycle, on the widest of processors.
fn most_per_cycle(counter: &Counter) -> f64 {
    match counter.name() {
        "instructions" => 8.0,
        "branches" => 4.0,
        "cache-misses" | "branch-misses" => 0.125,
        _ => 1.0,
    }
}

/// An event that counts the cycles of user code, and takes no samples.
pub(crate) fn count_cycles() -> perf_event_attr {
    let mut attr = base(false);
    attr.type_ = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_CPU_CYCLES.into();
    attr.read_format = (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING).into();
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    attr
}

/// The processor's speed in cycles a nanosecond, counted while this thread does nothing else for two milliseconds.
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
    // No processor is slower or faster than this: a counter that says so doesn't work.
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

    /// Lets it happen at a steady pace, and looks each tenth of a second.
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
        // The highest frequency that can be asked for.
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
        // Should it come as fast as it can from now on.
        let most_a_second = 2.6e9 * 0.125 / keeper.period() as f64;
        assert!(most_a_second <= 999.0 * BURST * 1.01, "{most_a_second}");
    }

    #[test]
    fn cycles_keep_their_period_while_processors_are_idle() {
        let mut keeper = PeriodKeeper::new(&Counter::Cycles, 999, 2.6);
        let began = keeper.period();
        run(&mut keeper, 260_000_000, 5);
        assert_eq!(keeper.period(), began, "a tenth of the time was busy");
        // It was measured before the processor sped up.
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
