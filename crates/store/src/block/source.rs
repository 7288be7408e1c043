//! Sources that a block is written from: a head, or blocks to compact.

use crate::batch::{Batch, StoredSample};
use crate::dictionary::Dictionary;
use crate::error::StoreError;
use crate::labels::Labels;

/// Samples by series, with their stacks in a dictionary.
pub(crate) trait BlockSource {
    /// Strings, frames and stacks.
    fn dictionary(&self) -> &Dictionary;
    /// The series.
    fn series(&self) -> Vec<&Labels>;
    /// Whether each node of the dictionary is the stack of a sample.
    fn used(&self) -> Vec<bool>;
    /// The samples of a series, in any order.
    fn samples(&self, series: usize) -> Result<Vec<StoredSample>, StoreError>;
}

/// A batch with its samples indexed by series.
pub(crate) struct BatchSource<'b> {
    batch: &'b Batch,
    by_series: Vec<Vec<u32>>,
}

impl<'b> BatchSource<'b> {
    pub fn new(batch: &'b Batch) -> Self {
        let mut by_series = vec![Vec::new(); batch.series.len()];
        for (place, sample) in batch.samples.iter().enumerate() {
            by_series[sample.series.0 as usize].push(place as u32);
        }
        Self { batch, by_series }
    }
}

impl BlockSource for BatchSource<'_> {
    fn dictionary(&self) -> &Dictionary {
        &self.batch.dictionary
    }

    fn series(&self) -> Vec<&Labels> {
        self.batch.series.iter().collect()
    }

    fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.batch.dictionary.nodes().len()];
        self.batch.samples.iter().for_each(|sample| used[sample.stack.0 as usize] = true);
        used
    }

    fn samples(&self, series: usize) -> Result<Vec<StoredSample>, StoreError> {
        Ok(self.by_series[series].iter().map(|&place| self.batch.samples[place as usize]).collect())
    }
}
