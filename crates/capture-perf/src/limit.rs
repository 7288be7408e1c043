//! Lengthens the period of an event that is sampled at each occurrence, if it turns out to be frequent.
//!
//! So rare events are recorded completely, and frequent ones cost no more than a clock does. Periods are fixed and grow in steps, as the kernel's
//! frequency mode takes next to no samples of bursts after a pause: one sample then stands for a whole burst.

/// Number of samples that may come at once, with each period.
const BURST: u64 = 1000;
/// Beyond that, the average rate may be this multiple of the requested sampling rate.
const TIMES: u64 = 2;
/// First period above 1: it holds off the most frequent of events.
const FIRST: u64 = 16;
/// Factor by which later ones grow and shrink.
const STEP: u64 = 4;
/// Time after which a period with few samples shrinks.
const QUIET_NS: u64 = 10_000_000_000;
/// Part of the requested rate that is few.
const QUIET_PART: u64 = 16;

/// The limit for an event, with the period that it has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Samples per second that are asked for.
    frequency_hz: u32,
    period: u64,
    /// Occurrences, samples and time at the last change.
    since: Progress,
}

/// Progress of an event since the recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Samples that were seen.
    pub samples: u64,
    /// Occurrences, where the kernel's count is known.
    pub counted: u64,
    /// Elapsed time.
    pub elapsed_ns: u64,
}

impl Limit {
    /// A limit for an event that is sampled at each occurrence.
    pub fn new(frequency_hz: u32) -> Self {
        Self { frequency_hz: frequency_hz.max(1), period: 1, since: Progress::default() }
    }

    /// Period after the first change.
    pub fn first() -> u64 {
        FIRST
    }

    /// The period that the event has.
    pub fn period(self) -> u64 {
        self.period
    }

    /// Returns the limit with a longer period if there are too many samples, and with a shorter one if there are few.
    pub fn next(self, now: Progress) -> Self {
        let elapsed_ns = now.elapsed_ns.saturating_sub(self.since.elapsed_ns);
        let counted = now.counted.saturating_sub(self.since.counted) / self.period;
        let samples = u128::from(now.samples.saturating_sub(self.since.samples).max(counted));
        let asked = u128::from(elapsed_ns) * u128::from(self.frequency_hz) / 1_000_000_000;
        let is_few = samples < asked / u128::from(QUIET_PART);
        let period = match samples > asked * u128::from(TIMES) + u128::from(BURST) {
            true if self.period < FIRST => FIRST,
            true => self.period.saturating_mul(STEP),
            false if self.period == 1 || elapsed_ns < QUIET_NS => return self,
            false if is_few => self.period / STEP,
            false => self.period,
        };
        Self { period, since: now, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn progress(samples: u64, elapsed_ns: u64) -> Progress {
        Progress { samples, counted: 0, elapsed_ns }
    }

    #[test]
    fn what_is_rare_stays_whole_and_what_is_frequent_does_not() {
        let limit = Limit::new(1000);
        let next = |samples, elapsed_ns| limit.next(progress(samples, elapsed_ns)).period();
        assert_eq!(next(1000, 0), 1, "a burst is no flood");
        assert_eq!(next(1001, 0), FIRST);
        assert_eq!(next(100_000, 60 * SECOND), 1, "1,667 a second for a minute");
        assert_eq!(next(200_000, 60 * SECOND), FIRST);
        assert_eq!(limit.next(Progress { counted: 1001, ..Progress::default() }).period(), FIRST);
        assert_eq!(Limit::new(0).next(progress(u64::MAX, 0)).period(), FIRST);
    }

    /// Samples per second after `seconds` of an event with this many occurrences a second, looked at each 10 ms.
    fn run(limit: &mut Limit, (now, per_second): (&mut Progress, u64), seconds: u64) -> u64 {
        let mut last = 0;
        for _ in 0..seconds {
            last = now.samples;
            for _ in 0..100 {
                now.samples += per_second / 100 / limit.period();
                now.elapsed_ns += SECOND / 100;
                *limit = limit.next(*now);
            }
        }
        now.samples - last
    }

    #[test]
    fn periods_follow_what_is_frequent_and_return_when_it_is_rare() {
        let (mut limit, mut now) = (Limit::new(999), Progress::default());
        let samples = run(&mut limit, (&mut now, 2_000_000), 5);
        assert!((499..=2 * 999).contains(&samples), "{samples} of 2,000,000 a second");
        assert!(now.samples < 40_000, "{} until the period was found", now.samples);
        run(&mut limit, (&mut now, 3000), 120);
        assert!(limit.period() <= FIRST, "{} where 3,000 come a second", limit.period());
    }
}
