//! Histogram of sizes by powers of two.

/// Counts of sizes in classes: 0, 1, 2 to 3, 4 to 7, ...
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    counts: [u64; 65],
    /// Number of sizes.
    pub calls: u64,
    /// Sum of the sizes.
    pub bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { counts: [0; 65], calls: 0, bytes: 0 }
    }
}

impl Sizes {
    /// Adds a size.
    pub fn add(&mut self, bytes: u64) {
        self.counts[(64 - bytes.leading_zeros()) as usize] += 1;
        self.calls += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns the exclusive upper end of the class that holds the median.
    pub fn median_below(&self) -> u64 {
        let mut so_far = 0;
        for (power, count) in self.counts.iter().enumerate() {
            so_far += count;
            if so_far * 2 >= self.calls.max(1) {
                return 1_u64.checked_shl(power as u32).unwrap_or(u64::MAX);
            }
        }
        0
    }

    /// Returns the average size.
    pub fn mean(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.bytes as f64 / self.calls as f64 }
    }
}
