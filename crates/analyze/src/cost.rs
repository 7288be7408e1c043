//! The cost of a row, a tree node or a whole view.

use std::ops::AddAssign;

/// A sum over samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost {
    /// Sum of the samples' weights in the event's unit (nanoseconds for `cpu-clock`).
    pub weight: u64,
    /// Number of samples.
    pub samples: u64,
}

impl Cost {
    /// The cost of one sample.
    pub fn of_sample(weight: u64) -> Self {
        Cost { weight, samples: 1 }
    }

    /// Subtracts a part, stopping at zero.
    pub(crate) fn without(self, part: Cost) -> Cost {
        Cost {
            weight: self.weight.saturating_sub(part.weight),
            samples: self.samples.saturating_sub(part.samples),
        }
    }

    /// Returns the share of `total` in percent; 0 if the total is zero.
    pub fn percent_of(self, total: Cost) -> f64 {
        if total.weight == 0 { 0.0 } else { self.weight as f64 * 100.0 / total.weight as f64 }
    }
}

/// Saturates instead of overflowing: weights come from files, and only absurd ones could overflow.
impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.samples = self.samples.saturating_add(other.samples);
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Cost::default(), |mut sum, cost| {
            sum += cost;
            sum
        })
    }
}
