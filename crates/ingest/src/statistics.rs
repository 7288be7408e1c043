//! Counts of samples.

use std::collections::BTreeMap;

use plumb_profile::{DsoId, Truncation};

/// Counts over all samples that were kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Samples kept.
    pub samples: u64,
    /// Samples of processes outside the filter and of the idle task, which were dropped.
    pub filtered: u64,
    /// Samples with a complete stack, including stitched ones and those without a user stack by nature.
    pub complete: u64,
    /// Samples whose stack was completed from other samples of the thread.
    pub stitched: u64,
    /// Samples whose stack was deeper than the copy, stitched or not: a larger copy would help.
    pub beyond_copy: u64,
    /// Samples with a truncated stack, by reason and by the file responsible, if any and its profile was not taken out.
    pub cut: BTreeMap<(Truncation, Option<DsoId>), u64>,
    /// Samples that the kernel dropped because the ring was full.
    pub lost_samples: u64,
    /// Other records that the kernel dropped: mappings or processes may be missing.
    pub lost_records: u64,
    /// Number of times that the kernel throttled an event because of too many samples.
    pub throttled: u64,
    /// Samples whose user stack was to come in a record of its own, which is not there.
    pub deferred_missing: u64,
    /// Records that could not be read.
    pub damaged_records: u64,
}

impl Statistics {
    /// Drops the file IDs, whose profile was taken out: only reasons stay.
    pub(crate) fn forget_files(&mut self) {
        for ((cut, _), samples) in std::mem::take(&mut self.cut) {
            *self.cut.entry((cut, None)).or_default() += samples;
        }
    }

    /// Counts a sample as complete that was counted as truncated.
    pub(crate) fn uncut(&mut self, cut: (Truncation, Option<DsoId>)) {
        self.complete += 1;
        if let Some(count) = self.cut.get_mut(&cut) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.cut.remove(&cut);
            }
        }
    }
}
