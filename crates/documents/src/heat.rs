//! Highlighting of shares.

/// Highlighting of a share, with perf's thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heat {
    /// 5% and more.
    Hot,
    /// 0.5% and more.
    Warm,
    /// Less.
    Cold,
}

impl Heat {
    /// The level for a percentage.
    pub fn of(percent: f64) -> Self {
        match percent {
            p if p >= 5.0 => Heat::Hot,
            p if p >= 0.5 => Heat::Warm,
            _ => Heat::Cold,
        }
    }
}
