//! The sampling rate.

/// The rate at which samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingRate {
    /// Samples per second of CPU time; for a software event, at most per second of wall time. Each sample has the count
    /// since the previous one as weight: for software events the kernel adjusts the period, for hardware counters plumb does.
    Frequency(u32),
    /// One sample per this count: nanoseconds for a clock, otherwise occurrences.
    Period(u64),
}
