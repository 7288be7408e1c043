//! Switches from sampling each occurrence to sampling by frequency, if an event turns out to be frequent.
//!
//! So rare events are recorded completely, and frequent ones cost no more than a clock does.

/// Number of samples that may come at once.
const BURST: u64 = 1000;
/// Beyond that, the average rate may be this multiple of the requested sampling rate.
const TIMES: u64 = 2;

/// The limit for an event whose every occurrence is a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Samples per second after the switch.
    frequency_hz: u32,
}

impl Limit {
    /// A limit after which an event is sampled at `frequency_hz`.
    pub fn new(frequency_hz: u32) -> Self {
        Self { frequency_hz: frequency_hz.max(1) }
    }

    /// Whether there are more samples than allowed after `elapsed_ns`.
    pub fn is_exceeded(self, samples: u64, elapsed_ns: u64) -> bool {
        let per_second = u64::from(self.frequency_hz).saturating_mul(TIMES);
        let allowed = u128::from(elapsed_ns) * u128::from(per_second) / 1_000_000_000 + u128::from(BURST);
        u128::from(samples) > allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rare_stays_whole_and_what_is_frequent_does_not() {
        let limit = Limit::new(1000);
        assert!(!limit.is_exceeded(1000, 0), "a burst is no flood");
        assert!(limit.is_exceeded(1001, 0));
        assert!(!limit.is_exceeded(100_000, 60_000_000_000), "1,667 a second for a minute");
        assert!(limit.is_exceeded(200_000, 60_000_000_000));
        assert!(Limit::new(0).is_exceeded(u64::MAX, u64::MAX));
    }
}
