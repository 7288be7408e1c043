//! Numbers that look random, the same in each run of a test.

/// A linear congruential generator (Knuth's MMIX).
pub(crate) struct Numbers(pub u64);

impl Numbers {
    /// A number from 0 to below 1.
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1_u64 << 31) as f64
    }

    /// Approximately normal: a sum of twelve.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        mean + deviation * ((0..12).map(|_| self.next()).sum::<f64>() - 6.0)
    }
}
