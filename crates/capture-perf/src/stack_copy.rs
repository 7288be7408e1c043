//! Decides when to copy more of the stack: once enough recent stacks were deeper than their copy.

use crate::attr::MAX_STACK_COPY;

/// Number of truncated stacks that can't be a coincidence.
const ENOUGH: u64 = 16;
/// One in this many stacks may be truncated without a larger copy, which costs every sample.
const TOLERATED: u64 = 100;

/// Chooses the size of stack copies.
#[derive(Clone, Debug)]
pub(crate) struct StackCopySizer {
    bytes: u32,
    most: u32,
    samples: u64,
    cut: u64,
}

impl StackCopySizer {
    /// Starts with copies of `first` bytes, and never exceeds `most`.
    pub fn new(first: u32, most: u32) -> Self {
        let most = most.min(MAX_STACK_COPY) & !7;
        Self { bytes: first.min(most), most, samples: 0, cut: 0 }
    }

    /// The current size in bytes.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The new size, if it has to change. `samples` and `cut` count from the start of the recording.
    pub fn wanted(&self, samples: u64, cut: u64) -> Option<u32> {
        let samples = samples.saturating_sub(self.samples);
        let cut = cut.saturating_sub(self.cut);
        let often = cut >= ENOUGH && cut.saturating_mul(TOLERATED) >= samples;
        let wanted = self.bytes.saturating_mul(2).min(self.most);
        (often && wanted > self.bytes).then_some(wanted)
    }

    /// Notes that copies have `bytes` from now on, and that the counts so far belong to smaller ones.
    pub fn grown(&mut self, bytes: u32, samples: u64, cut: u64) {
        (self.bytes, self.samples, self.cut) = (bytes, samples, cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_tens_of_cut_stacks_make_copies_grow_to_the_limit() {
        let mut growth = StackCopySizer::new(16 << 10, u32::MAX);
        let mut sizes = vec![growth.bytes()];
        let mut samples = 0;
        for _ in 0..100 {
            samples += 16;
            if let Some(bytes) = growth.wanted(samples, samples) {
                growth.grown(bytes, samples, samples);
                sizes.push(bytes);
            }
        }
        assert_eq!(sizes, [16 << 10, 32 << 10, MAX_STACK_COPY]);
    }

    #[test]
    fn rare_deep_stacks_cost_the_others_nothing() {
        let growth = StackCopySizer::new(16 << 10, u32::MAX);
        assert_eq!(growth.wanted(1000, 9), None);
        assert_eq!(growth.wanted(100_000, 500), None, "half a percent");
        assert_eq!(growth.wanted(2000, 40), Some(32 << 10), "two percent");
    }

    #[test]
    fn only_what_came_since_the_last_growth_counts() {
        let mut growth = StackCopySizer::new(16 << 10, u32::MAX);
        growth.grown(32 << 10, 100, 100);
        assert_eq!(growth.wanted(300, 110), None);
        assert_eq!(growth.wanted(300, 120), Some(MAX_STACK_COPY));
    }

    #[test]
    fn small_rings_hold_growth_back() {
        let growth = StackCopySizer::new(16 << 10, 8 << 10);
        assert_eq!(growth.bytes(), 8 << 10);
        assert_eq!(growth.wanted(100, 100), None);
    }
}
