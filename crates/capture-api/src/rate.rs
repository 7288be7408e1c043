//! How often samples are taken.

/// How often a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingRate {
    /// So many times per second of processor time; of a software event, per second of wall time at most. Each sample says how much
    /// was counted since the last: of software events the kernel chooses that, of hardware counters plumb does.
    Frequency(u32),
    /// Each time that so much was counted: nanoseconds of the clock, else times that it happened.
    Period(u64),
}
