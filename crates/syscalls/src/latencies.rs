//! Latency histogram of bounded size, with quantiles exact to three percent.

/// Bits of a latency below its highest that select a bucket.
const PARTS: u32 = 5;

/// Histogram of latencies in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    counts: Vec<u64>,
    number: u64,
    total_ns: u64,
    max_ns: u64,
}

impl Latencies {
    /// Adds a latency.
    pub fn add(&mut self, ns: u64) {
        let place = place(ns);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.number += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Number of latencies.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Sum of the latencies, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The longest latency, in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The latency that this share (0 to 1) of all latencies does not exceed, or `None` if the histogram is empty.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let wanted = (share * self.number as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(middle(place).min(self.max_ns))
    }
}

/// Bucket of a latency: exact below 32, then by its highest bit and the five bits below that.
fn place(ns: u64) -> usize {
    let bits = 64 - ns.leading_zeros();
    if bits <= PARTS {
        return ns as usize;
    }
    let shift = bits - PARTS - 1;
    ((shift as usize + 1) << PARTS) + (ns >> shift) as usize - (1 << PARTS)
}

/// Middle of a bucket, in nanoseconds.
fn middle(place: usize) -> u64 {
    let (group, part) = (place >> PARTS, place as u64 & ((1 << PARTS) - 1));
    match group.checked_sub(1) {
        None => part,
        Some(shift) => {
            let low = ((1 << PARTS) + part) << shift;
            low + ((1_u64 << shift) >> 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near_those_of_the_sorted_list() {
        // A simple generator with a fixed seed, to make the test deterministic.
        let mut state = 12345_u64;
        let mut all = Vec::new();
        let mut counted = Latencies::default();
        for _ in 0..50_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let ns = (state >> 33) >> (state >> 59);
            all.push(ns);
            counted.add(ns);
        }
        all.sort_unstable();
        for share in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let truth = all[((share * all.len() as f64).ceil() as usize).max(1) - 1];
            let found = counted.quantile_ns(share).expect("there are some");
            assert!(found.abs_diff(truth) <= truth / 32 + 1, "{share}: {found} for {truth}");
        }
        assert_eq!((counted.number(), counted.total_ns()), (50_000, all.iter().sum()));
        assert_eq!(counted.max_ns(), all[all.len() - 1]);
    }

    #[test]
    fn the_ends_of_the_scale_are_counted() {
        let mut counted = Latencies::default();
        assert_eq!(counted.quantile_ns(0.5), None);
        counted.add(0);
        assert_eq!(counted.quantile_ns(0.5), Some(0));
        counted.add(u64::MAX);
        assert!(counted.quantile_ns(1.0) > Some(u64::MAX / 33 * 32));
    }
}
