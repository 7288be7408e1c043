//! Progress of a recording: the growth of its counters over recent windows.
//!
//! Memory is bounded: every other old reading is dropped, so windows that reach far back start a little
//! earlier or later than requested. [`Rates`] has the actual window.

/// Largest number of readings kept.
const MAX_TICKS: usize = 1024;
/// Number of recent readings that thinning keeps.
const LAST_TICKS: usize = 32;

/// A reading of monotonic counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// Time of the reading, in nanoseconds on the clock of the samples.
    pub time_ns: u64,
    /// Samples taken.
    pub samples: u64,
    /// Samples lost.
    pub lost: u64,
    /// CPU time that the target used, in nanoseconds, if it is known.
    pub target_cpu_ns: Option<u64>,
    /// CPU time that the recorder itself used, in nanoseconds.
    pub own_cpu_ns: u64,
}

/// The readings so far.
#[derive(Clone, Debug, Default)]
pub struct Pulse {
    ticks: Vec<Tick>,
}

/// The growth of the counters over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Start of the window, on the clock of the samples.
    pub from_ns: u64,
    /// End of the window.
    pub to_ns: u64,
    /// Samples taken.
    pub samples: u64,
    /// Samples lost.
    pub lost: u64,
    /// CPU time of the target, if it is known.
    pub target_cpu_ns: Option<u64>,
    /// CPU time of the recorder.
    pub own_cpu_ns: u64,
}

impl Pulse {
    /// Adds a reading, which must be later than the previous ones.
    pub fn push(&mut self, tick: Tick) {
        if self.ticks.len() >= MAX_TICKS {
            // Drops every other reading of the older half.
            let half = MAX_TICKS / 2;
            let mut at = 0;
            self.ticks.retain(|_| {
                at += 1;
                at > half || at % 2 == 1
            });
        }
        self.ticks.push(tick);
    }

    /// Drops all but the last reading, which becomes the start.
    pub fn reset(&mut self) {
        let last = self.ticks.len().saturating_sub(1);
        self.ticks.drain(..last);
    }

    /// Returns the times of all readings.
    pub fn times(&self) -> Vec<u64> {
        self.ticks.iter().map(|tick| tick.time_ns).collect()
    }

    /// Drops every other reading except the last few. Returns whether any were dropped.
    pub fn thin(&mut self) -> bool {
        let (count, mut at) = (self.ticks.len(), 0);
        self.ticks.retain(|_| {
            at += 1;
            at % 2 == 1 || at + LAST_TICKS > count
        });
        self.ticks.len() < count
    }

    /// Returns the growth in the last `window_ns` nanoseconds before the last reading, or since the first reading.
    pub fn rates(&self, window_ns: Option<u64>) -> Rates {
        self.rates_until(u64::MAX, window_ns)
    }

    /// Returns the growth before the last reading at or before `to_ns`; see [`Pulse::rates`].
    pub fn rates_until(&self, to_ns: u64, window_ns: Option<u64>) -> Rates {
        let until = self.ticks.partition_point(|tick| tick.time_ns <= to_ns);
        let Some(&last) = self.ticks[..until].last() else { return Rates::default() };
        let since = window_ns.map_or(0, |window| last.time_ns.saturating_sub(window));
        let before = self.ticks[..until].partition_point(|tick| tick.time_ns <= since).saturating_sub(1);
        let first = self.ticks.get(before).copied().unwrap_or(last);
        Rates {
            from_ns: first.time_ns,
            to_ns: last.time_ns,
            samples: last.samples.saturating_sub(first.samples),
            lost: last.lost.saturating_sub(first.lost),
            target_cpu_ns: last
                .target_cpu_ns
                .zip(first.target_cpu_ns)
                .map(|(last, first)| last.saturating_sub(first)),
            own_cpu_ns: last.own_cpu_ns.saturating_sub(first.own_cpu_ns),
        }
    }
}

impl Rates {
    /// Returns the length in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// Returns the samples taken in percent of those due for the target's CPU time at this frequency. `None` if
    /// fewer than 20 are due, which is too few to judge.
    pub fn coverage(&self, frequency_hz: u32) -> Option<f64> {
        let due = self.target_cpu_ns? as f64 / 1e9 * f64::from(frequency_hz);
        (due >= 20.0).then(|| self.samples as f64 * 100.0 / due)
    }

    /// Returns the recorder's CPU time in percent of one CPU.
    pub fn own_percent(&self) -> f64 {
        if self.length_ns() == 0 { 0.0 } else { self.own_cpu_ns as f64 * 100.0 / self.length_ns() as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(second: u64) -> Tick {
        let ns = second * 1_000_000_000;
        Tick {
            time_ns: ns,
            samples: second * 500,
            lost: second,
            target_cpu_ns: Some(ns / 2),
            own_cpu_ns: ns / 100,
        }
    }

    #[test]
    fn rates_are_of_the_window_that_they_name() {
        let mut pulse = Pulse::default();
        (0..=30).for_each(|second| pulse.push(tick(second)));
        let rates = pulse.rates(Some(10_000_000_000));
        assert_eq!((rates.from_ns, rates.to_ns), (20_000_000_000, 30_000_000_000));
        assert_eq!((rates.samples, rates.lost), (5000, 10));
        // 5 s of CPU time at 1000 Hz should give 5000.
        assert_eq!(rates.coverage(1000), Some(100.0));
        assert_eq!(rates.own_percent(), 1.0);
        assert_eq!(pulse.rates(None).samples, 15_000);
        let earlier = pulse.rates_until(12_500_000_000, Some(2_000_000_000));
        assert_eq!((earlier.from_ns, earlier.to_ns), (10_000_000_000, 12_000_000_000));
        pulse.reset();
        pulse.push(tick(31));
        assert_eq!(pulse.rates(None).samples, 500, "everything begins at the reset");
    }

    #[test]
    fn a_long_past_takes_no_more_memory_and_keeps_its_sums() {
        let mut pulse = Pulse::default();
        (0..100_000).for_each(|second| pulse.push(tick(second)));
        assert!(pulse.ticks.len() <= MAX_TICKS);
        assert_eq!(pulse.rates(None).samples, 99_999 * 500);
        assert_eq!(pulse.rates(Some(60_000_000_000)).samples, 60 * 500, "what is recent is exact");
    }

    #[test]
    fn what_is_thinned_out_keeps_its_ends_and_sums() {
        let mut pulse = Pulse::default();
        (0..500).for_each(|second| pulse.push(tick(second)));
        let rates = pulse.rates(None);
        while pulse.thin() {}
        assert_eq!(pulse.rates(None), rates);
        assert!(pulse.ticks.len() <= LAST_TICKS + 1);
        assert_eq!(pulse.rates(Some(20_000_000_000)).samples, 20 * 500, "what is recent is exact");
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(Pulse::default().rates(None), Rates::default());
        assert_eq!(Rates::default().coverage(999), None);
        assert_eq!(Rates::default().own_percent(), 0.0);
    }
}
